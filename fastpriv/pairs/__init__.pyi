from .measured_losses import PrivacyLossDistribution as PrivacyLossDistribution
from .shuffled import Shuffled as Shuffled
from .shuffled import ShuffledBatches as ShuffledBatches
from .shuffled import shuffled_least_reports as shuffled_least_reports
from .shuffled import shuffled_local_epsilon as shuffled_local_epsilon
