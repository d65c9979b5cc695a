"""Pictures, by matplotlib: assessments, privacy profiles, audits, leakage, and the figures of a paper.

Every panel takes an ``ax`` and returns it; without one it makes a figure, which a notebook shows.
"""

from ..base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
