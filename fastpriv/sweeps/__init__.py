"""Sweeps: one quantity over a table of settings, in a store that survives anything."""

from ..base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
