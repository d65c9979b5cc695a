"""Capacities: the largest mutual information between a secret and its release.

``awgn`` is about a secret in a ball behind Gaussian noise; ``bac`` about the binary
asymmetric channel; ``finite`` about finite channels, solved by ``interior_point`` or, by their structure, in
``structured``; ``gaussian`` about Gaussian signals in Gaussian noise, and the game between them.
"""

from ..base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
