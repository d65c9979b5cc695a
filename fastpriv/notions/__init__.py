"""Privacy notions of a secret behind a mechanism: LDP, LIP, LMIP, MBP, ABP, leakage to a guess, and accuracy.

The secret is the input with a prior; the mechanism, a channel or Gaussian noise, turns it into the release. ``local``
holds LDP, LIP and LMIP, ``bayesian`` MBP and ABP, ``information_flow`` vulnerability and leakage, ``channel_summary``
all of them from the same passes through a channel, ``accuracy`` how likely a release misses its target, and claims of
privacy and accuracy at once. ``gaussian`` computes the notions of Gaussian noise in one dimension, ``discrete`` of
channels.
"""

from ..base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
