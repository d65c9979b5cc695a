"""Estimation by sampling: points, proposals, the engine, intervals."""

from ..base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
