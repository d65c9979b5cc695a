"""From a column of data to a table of what its noisy release leaks, with bounds."""

from ...base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
