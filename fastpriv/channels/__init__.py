"""Channels: how a release depends on a secret, immutable.

``base`` says what every channel can do; ``dense`` and ``sparse`` hold written ones, the rest is known by structure.
"""

from .base import AnyChannel, Exceptions, Factors
from .dense import Channel
from .profiles import Extremes, Profiles, RowPair

__all__ = ["AnyChannel", "Channel", "Exceptions", "Extremes", "Factors", "Profiles", "RowPair"]
