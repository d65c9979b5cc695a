from .densities import Density as Density
from .densities import LogRatio as LogRatio
from .files import read_mixture as read_mixture
from .files import write_mixture as write_mixture
from .mixtures import GaussianMixture as GaussianMixture
from .pmf import Pmf as Pmf
from .stacks import MixtureStack as MixtureStack
