"""Distributions: immutable objects whose quantities are computed.

``GaussianMixture`` (``mixtures``) in one and in d dimensions is stored in one way only, ``univariate``, ``isotropic``,
``diagonal`` or ``full``, with one matrix where all are equal; below it are ``covariances`` (checks in blocks, simplest
form, Cholesky factors) and ``packed`` (the layout of the kernels: log densities, samples, affine images). ``Pmf``
(``pmf``) is a discrete distribution on the real line. ``Density`` and ``LogRatio`` (``densities``) are known by a
user's functions, which ``user_functions`` calls on arrays of samples and checks. ``MixtureStack`` (``mixture_stacks``)
and ``PmfStack`` (``pmf_stacks``) have leading axes. ``files`` reads and writes mixtures.
"""

from ..base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
