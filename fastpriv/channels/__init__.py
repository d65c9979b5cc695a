"""Channels: how a release depends on a secret, immutable.

``base`` says what every channel can do; ``dense`` and ``sparse`` hold written ones; ``structured`` (randomised
response, default rows, exponential mechanism), ``subsets`` (unary encoding, subset selection, with ``membership`` and
``binomials``) and ``geometric`` (noise on integers) are known by parameters; ``products`` and ``cascades`` combine.
``profiles`` holds what quantities are read from, ``priors`` the distinct probabilities of a prior, ``files`` reads and
writes.
"""

from .base import AnyChannel, Exceptions, Factors
from .dense import Channel
from .geometric import DiscreteLaplace, GeometricMechanism
from .products import ProductChannel
from .profiles import Extremes, Profiles, RowPair
from .sparse import SparseChannel
from .structured import DefaultChannel, ExponentialMechanism, RandomizedResponse
from .subsets import SubsetSelection, UnaryEncoding

__all__ = [
    "AnyChannel", "Channel", "DefaultChannel", "DiscreteLaplace", "Exceptions", "ExponentialMechanism", "Extremes",
    "Factors", "GeometricMechanism", "ProductChannel", "Profiles", "RandomizedResponse", "RowPair", "SparseChannel",
    "SubsetSelection", "UnaryEncoding",
]  # fmt: skip
