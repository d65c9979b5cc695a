"""Mechanisms: randomised releases known by their parameters.

``gaussian`` adds normal noise to a value, ``batch_gradient`` to the mean gradient of a secret batch. The others are
channels: ``categorical`` (randomised response, exponential mechanism), ``geometric`` (noise on integers),
``set_valued`` (unary encoding, subset selection). By ``broadcasting`` functions take stacks of priors and arrays of
sigma, one call for each setting.
"""

from ..base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
