from .densities import Density as Density
from .densities import LogRatio as LogRatio
from .files import read_mixture as read_mixture
from .files import write_mixture as write_mixture
from .mixture_stacks import MixtureStack as MixtureStack
from .mixtures import GaussianMixture as GaussianMixture
from .pmf import Pmf as Pmf
from .pmf_stacks import PmfStack as PmfStack
