from .banded_matrices import BandedMatrixMechanism as BandedMatrixMechanism
from .compositions import Composition as Composition
from .compositions import compose as compose
from .measured_losses import PrivacyLossDistribution as PrivacyLossDistribution
from .random_allocation import BallsInBins as BallsInBins
from .random_allocation import RandomAllocation as RandomAllocation
from .targets import largest_count as largest_count
from .targets import least_sigma as least_sigma
