from .bayes import posterior as posterior
from .gaussian import gaussian_abp as gaussian_abp
from .result import Posterior as Posterior
from .subset_sampling import SampledSubsetPosterior as SampledSubsetPosterior
from .subset_sampling import sampled_subset_posterior as sampled_subset_posterior
