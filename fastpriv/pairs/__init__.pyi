from ..composition.matrix_mechanisms import MatrixMechanism as MatrixMechanism
from ..composition.random_allocation import Allocation as Allocation
from .measured_losses import PrivacyLossDistribution as PrivacyLossDistribution
