"""What is built on the engine: assessments, membership, leakage and auditing studies, figures of papers, data sets."""

from ..base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
