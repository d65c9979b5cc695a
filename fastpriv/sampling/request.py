"""What is asked of a sampled number: the interval, the target, the budget, the way.

Every sampled function of the public API takes these as keywords and hands them here at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.random import SeedSequence

from .. import _parallel, _random, _validate
from .._parallel import Progress
from ..errors import DomainError
from .clock import Clock
from .statistics.intervals import Side

__all__ = ["LAWS", "POINTS", "Request"]

LAWS = ("direct", "balanced", "tilted")
POINTS = ("sobol", "antithetic", "random", "plain")
SIDES = ("both", "lower", "upper")
INTERVALS = ("replicates", "guaranteed")
FEWEST_SAMPLES, MOST_SAMPLES = 8, 2**50  # two replicates of one pair from each of two laws


@dataclass(frozen=True)
class Request:
    """The validated keywords of a sampled call.

    Attributes
    ----------
    confidence : float
        Level of the interval, in (0, 1).
    side : {"both", "lower", "upper"}
        Which end is of interest; the other one is then the trivial bound.
    rtol, atol : float
        Stop when half the width is at most ``max(atol, rtol * |value|)``; both 0 spend the whole budget.
    max_samples : int
        Samples drawn at most, the pilot included.
    max_seconds : float
        Time after which no new work is begun.
    law, points : str or None
        The parts of ``method`` that were forced.
    interval : {"replicates", "guaranteed"}
        Student's t over replicates, or one that holds for every sample size.
    root : SeedSequence
        Where all streams come from.
    clock : Clock
        Of the whole call: searches for proposals and trials of functions count too.
    """

    confidence: float
    side: Side
    rtol: float
    atol: float
    max_samples: int
    max_seconds: float
    law: str | None
    points: str | None
    interval: str
    root: SeedSequence
    n_jobs: int | None
    progress: Progress
    clock: Clock

    @property
    def forced(self) -> bool:
        """Whether ``method`` asks for samples, also where something exact applies."""
        return self.law is not None or self.points is not None

    @property
    def spends_everything(self) -> bool:
        """Whether no target stops the run."""
        return self.rtol == 0.0 and self.atol == 0.0


def request(
    *, confidence: float, side: str, rtol: float, atol: float, max_samples: int, max_seconds: float, method: str,
    interval: str, rng: Any, n_jobs: int | None, progress: Progress,
) -> Request:  # fmt: skip
    """Validate the keywords of a sampled call, one clear error a fault."""
    _parallel.checked(n_jobs, progress)
    at_least_0 = ("at least 0 and finite", lambda x: (x >= 0) & np.isfinite(x))
    law, points = _words(method)
    interval = _validate.choice("interval", interval, INTERVALS)
    if interval == "guaranteed" and points not in (None, "random"):
        raise DomainError(
            f"method must leave the points open for interval='guaranteed', which is proved for random ones; got "
            f"{method!r}. Name a law alone, or take interval='replicates'."
        )
    seconds = _validate.scalar(
        "max_seconds", max_seconds, "positive", lambda x: x > 0, remedy="Pass seconds, or infinity for no limit."
    )
    return Request(
        confidence=_validate.scalar(
            "confidence", confidence, "between 0 and 1, both excluded", lambda x: (x > 0) & (x < 1),
            remedy="Write 0.95 for 95 %.",
        ),
        side=cast(Side, _validate.choice("side", side, SIDES)),
        rtol=_validate.scalar("rtol", rtol, *at_least_0),
        atol=_validate.scalar("atol", atol, *at_least_0),
        max_samples=_samples(max_samples),
        max_seconds=seconds,
        law=law,
        points=points,
        interval=interval,
        root=_random.root(rng),
        n_jobs=n_jobs,
        progress=progress,
        clock=Clock(seconds),
    )  # fmt: skip


def _samples(value: Any) -> int:
    """Whole numbers may come as floats: 1e8 is how people write it."""
    if isinstance(value, (float, np.floating)) and math.isfinite(value) and value == int(value):
        value = int(value)
    return _validate.count("max_samples", value, minimum=FEWEST_SAMPLES, maximum=MOST_SAMPLES)


def _words(method: Any) -> tuple[str | None, str | None]:
    law = points = None
    words = method.split() if isinstance(method, str) else []
    for word in words:
        if word in LAWS and law is None:
            law = word
        elif word in POINTS and points is None:
            points = word
        elif word != "auto" or len(words) > 1:
            words = []
            break
    if not words:
        raise DomainError(
            f"method must be 'auto' or name a law ({', '.join(LAWS)}), points ({', '.join(POINTS)}) or both; "
            f"got {method!r}. Write for instance method='direct sobol'."
        )
    return law, points
