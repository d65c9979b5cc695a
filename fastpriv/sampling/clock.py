"""The time that a call may take: one clock for all of it, from the check of the arguments to the last sample."""

from __future__ import annotations

import math
import time

__all__ = ["UNLIMITED", "Clock", "endless"]


class Clock:
    """Counts from its making; remembers whether it had a say, since then a rerun may not give the same bits.

    Parameters
    ----------
    seconds : float
        What may be spent; infinity for no limit.
    whole : Clock, optional
        The clock that this one is a part of.
    """

    def __init__(self, seconds: float, whole: Clock | None = None) -> None:
        self.seconds, self.whole = seconds, whole
        self.began = time.monotonic()
        self.felt = False

    @property
    def left(self) -> float:
        """Seconds left, at least 0."""
        if math.isinf(self.seconds):
            return math.inf
        return max(0.0, self.seconds - (time.monotonic() - self.began))

    def late(self, share: float = 1.0) -> bool:
        """Whether this share of the time is over; to be asked only where the answer decides something."""
        over = self.left <= (1.0 - share) * self.seconds if math.isfinite(self.seconds) else False
        if over:
            self.feel()
        return over

    def feel(self) -> None:
        """Note that the time decided something."""
        self.felt = True
        if self.whole is not None:
            self.whole.feel()

    def part(self, share: float) -> Clock:
        """A clock for this share of what is left."""
        return Clock(self.left * share, self)


UNLIMITED = Clock(math.inf)


def endless() -> bool:
    """What a search asks that may take all the time it needs: is it late?"""
    return False
