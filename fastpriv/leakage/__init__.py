"""What an update of a model leaks about the records that it was computed from.

Notation: S records of a batch, out of a pool of N candidates with prior pi; M releases (updates of models) of one
batch, each attacked T times; kappa_1 the belief about a record of the batch, kappa_3 the maximum Bayesian privacy.
"""

from .._public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
