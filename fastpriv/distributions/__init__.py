"""Distributions: immutable values that the quantities take.

``mixtures`` holds ``GaussianMixture`` on the line and in d dimensions, with ``covariances`` (stacks of matrices: checks
in blocks, simplest form, Cholesky factors), ``points`` (log densities, draws, affine images) and ``packed`` (mixtures
as the kernels take them) below it; ``pmf`` holds ``Pmf``, discrete laws on the line; ``values`` what both are made of.
A law is stored in one way only: ``line``, ``isotropic``, ``diagonal`` or ``full``, with one matrix where all are equal.

``densities`` holds ``Density`` and ``LogRatio``, laws known by a person's functions, with ``functions`` (these
functions as tiles of samples, checked) and ``trials`` (what is tried before a run) below it. ``files`` reads and writes
mixtures as NumPy archives and JSON. ``exact`` takes doubles as whole numbers, for what rounding would drown.
"""

from .densities import Density, LogRatio
from .mixtures import GaussianMixture
from .pmf import Pmf

__all__ = ["Density", "GaussianMixture", "LogRatio", "Pmf"]
