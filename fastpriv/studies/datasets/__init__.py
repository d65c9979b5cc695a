"""Data that ships with the package, and tasks with known truths; ``README.md`` states sources and licences."""

from ...base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
