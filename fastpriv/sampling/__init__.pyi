from .options import Sampling as Sampling
