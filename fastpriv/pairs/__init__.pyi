from .measured_losses import PrivacyLossDistribution as PrivacyLossDistribution
from .sampled import FixedSizeSampled as FixedSizeSampled
from .sampled import PoissonSampled as PoissonSampled
from .sampled import TruncatedPoissonSampled as TruncatedPoissonSampled
