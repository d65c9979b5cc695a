"""Membership inference: releases of frequencies of binary attributes, and what they tell about who is among the people.

Notation: K people, m binary attributes, D the K x m matrix of a ``Panel``; b in {0, 1}^K without 0 says who is a
member, n = |b|; the frequencies of the members are f(b) = D^T b / n, and a release is r = f(b) + noise, perhaps clipped
to [0, 1]. ``panels`` holds D in packed bits, ``priors`` are distributions of b, ``noises`` of the noise, ``releases``
the model of r given b.
"""

from ...base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
