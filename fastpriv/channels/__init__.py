"""Channels: how a release depends on a secret, immutable.

``base`` says what every channel can do; ``dense`` and ``sparse`` hold written ones, ``families`` those that are known
by parameters. ``profiles`` holds what quantities are read from, ``priors`` the distinct probabilities of a prior,
``files`` reads and writes. ``likelihoods`` holds one release over all secrets.
"""

from .base import AnyChannel, Exceptions, Factors
from .dense import Channel
from .families.geometric import DiscreteLaplace, GeometricMechanism
from .families.products import ProductChannel
from .families.responses import DefaultChannel, ExponentialMechanism, RandomizedResponse
from .families.subsets import SubsetSelection, UnaryEncoding
from .profiles import Extremes, Profiles, RowPair
from .sparse import SparseChannel

__all__ = [
    "AnyChannel", "Channel", "DefaultChannel", "DiscreteLaplace", "Exceptions", "ExponentialMechanism", "Extremes",
    "Factors", "GeometricMechanism", "ProductChannel", "Profiles", "RandomizedResponse", "RowPair", "SparseChannel",
    "SubsetSelection", "UnaryEncoding",
]  # fmt: skip
