"""Posteriors over a discrete secret after one release.

``bayes`` has the function ``posterior``, which chooses a method by the kind of likelihood; ``result`` its answer.
``dense`` handles one number a secret, read by ``blocks``, and ``shards`` such a vector in pieces; ``groups`` one
number for all secrets but a few; ``products`` tuples; ``subsets`` all subsets of a pool, and ``subset_sampling`` pools
with too many of them. ``gaussian`` has average Bayesian privacy of Gaussian noise.
"""

from ..base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
