"""Distributions: immutable values that the quantities take.

``mixtures`` holds ``GaussianMixture`` on the line and in d dimensions, with ``covariances`` (stacks of matrices: checks
in blocks, simplest form, Cholesky factors) and ``points`` (log densities, draws, affine images) below it; ``pmf`` holds
``Pmf``, discrete laws on the line; ``values`` what both are made of. A law is stored in one way only: ``line``,
``isotropic``, ``diagonal`` or ``full``, with one matrix where all are equal.
"""

from .mixtures import GaussianMixture
from .pmf import Pmf

__all__ = ["GaussianMixture", "Pmf"]
