"""The noise that meets a privacy target: sigma from LDP, LIP and LMIP levels.

All answers are an ``Estimate`` of sigma, unit 1, whose ``upper`` is the safe sigma: the level there, with its own upper
bound, is at most the target. ``gaussian_noise`` holds the functions, ``root_search`` the search between two proofs.
"""

from ..base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
