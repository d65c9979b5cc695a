"""Compositions of private releases: delta and epsilon after many steps, with proved bounds on both sides.

``compose`` makes one object of any pairs, mechanisms and channels; ``largest_count`` and ``least_sigma`` say how many
releases, and how little noise, a target allows.
"""

from __future__ import annotations

from ..base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
