from . import datasets as datasets
from . import figures as figures
from . import notions as notions
from . import special as special
from .assessment.columns import read_column as read_column
from .assessment.result import Assessment as Assessment
from .assessment.run import assess as assess
from .capacity.bac import bac_capacity as bac_capacity
from .capacity.bac import binary_entropy as binary_entropy
from .distributions import GaussianMixture as GaussianMixture
from .distributions import Pmf as Pmf
from .divergences.hockey_stick import hockey_stick_divergence as hockey_stick_divergence
from .divergences.hockey_stick import log_hockey_stick_divergence as log_hockey_stick_divergence
from .divergences.hockey_stick import total_variation as total_variation
from .divergences.information import entropy as entropy
from .divergences.information import mutual_information as mutual_information
from .divergences.kl import jensen_shannon as jensen_shannon
from .divergences.kl import kl_divergence as kl_divergence
from .divergences.renyi import renyi_divergence as renyi_divergence
from .errors import BackendMissingError as BackendMissingError
from .errors import DomainError as DomainError
from .errors import NotConvergedError as NotConvergedError
from .errors import ShapeError as ShapeError
from .estimate import Estimate as Estimate
from .info import show_versions as show_versions
from .mechanisms.gaussian import GaussianMechanism as GaussianMechanism

__version__: str
