"""What a privacy notion may ask of a mechanism: one protocol, so that new mechanisms need no new notions."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from numpy.typing import ArrayLike

from ..distributions import GaussianMixture, Pmf
from ..estimate import Estimate

__all__ = ["Mechanism"]


@runtime_checkable
class Mechanism(Protocol):
    """A randomised release of a number on the line.

    ``law(x)`` is the law of the output at one secret, ``release(prior)`` that of the output when the secret is drawn
    from ``prior``; ``delta`` and ``epsilon`` are the mechanism's own worst-case privacy curve and its inverse.
    """

    def law(self, x: float) -> GaussianMixture:
        """Law of the output when the secret is ``x``."""

    def release(self, prior: Pmf) -> GaussianMixture:
        """Law of the output when the secret is drawn from ``prior``."""

    def delta(self, epsilon: ArrayLike) -> Estimate:
        """Smallest delta for which the mechanism is (epsilon, delta)-private."""

    def epsilon(self, delta: ArrayLike) -> Estimate:
        """Smallest epsilon for which the mechanism is (epsilon, delta)-private."""
