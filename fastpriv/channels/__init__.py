"""Channels: how a release depends on a secret. All are immutable.

``base`` defines what every channel can do, with matrices, products and cascades; ``matrix_cells`` checks the cells of
matrices. ``sparse_channels`` holds the channels that store few of their cells; those known by parameters are in
``fastpriv.mechanisms``. ``type_classes`` holds the groups of equivalent releases and secrets that quantities are
computed from, ``likelihoods`` and ``subset_likelihoods`` the likelihood of one release over all secrets, which
``column`` returns, ``vector_sources`` long vectors in memory and files. ``files`` reads and writes channels.
"""

from ..base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
