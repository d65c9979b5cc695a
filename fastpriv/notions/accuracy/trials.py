"""Misses of a target by counting draws.

A pilot plans the first look; each further one doubles the number of draws. Given the pilot, the looks lie at fixed
numbers, and each spends its part of the level on an exact interval of its count: whichever look the run stops at, the
interval holds. The draws come in blocks, each from its own stream, so that the count depends on the seed alone, unless
the clock or an interruption had a say. Secrets, several for robust accuracy, advance together.
"""

# bounds: none - keeps a quotient by 0 away

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from ... import _random
from ..._parallel import ordered_map
from ..._values import FloatArray
from ...distributions.user_functions import Sampler
from ...sampling.request import Request
from ...sampling.statistics.intervals import Interval, binomial_interval, look_confidence, student_factor
from .finite import distances

__all__ = ["Trials", "run"]

_BLOCK, _ENTRIES = 2**14, 2**20  # draws of a block, and their coordinates in all, at most
_PASS = 2**10  # blocks of a secret that are handed out at once
_FEW = 16  # alphas that are compared one by one
_PILOT = 2**12
_PILOT_SHARE = 8  # of the budget
_SURE = 100  # misses of the pilot that plan the first look; it is a quarter as long after fewer
_DRAWS, _PILOTS = 0, 1  # keys of streams


@dataclass
class Trials:
    """What the draws of one secret gave: misses of each alpha among so many, at which look, and why no more."""

    hits: NDArray[np.int64]
    count: int = 0
    looks: list[int] = field(default_factory=list)
    look: int = 1
    stopped: str = ""

    def interval(self, request: Request, side: str | None = None, share: int = 1) -> Interval:
        """Exact interval at the level of this look, or at that of one of ``share`` that all hold."""
        level = 1.0 - (1.0 - request.confidence) / share
        if not request.spends_everything:
            level = look_confidence(level, self.look)
        return binomial_interval(self.hits, self.count, level, side or request.side)  # type: ignore[arg-type]


class _Block(NamedTuple):
    """A task: so many draws of one secret from stream ``number`` of its kind."""

    number: int
    which: int
    n: int
    kind: int


@dataclass(frozen=True)
class _Draws:
    """How many draws of a block lie beyond each alpha (in increasing order)."""

    samplers: Sequence[Sampler]
    target: FloatArray
    alpha: FloatArray
    norm: float
    root: SeedSequence

    def __call__(self, block: _Block) -> NDArray[np.int64]:
        words = _random.words(self.root, (block.which, block.kind, block.number), 4)
        points = self.samplers[block.which](words, block.n).T
        far = distances(points, self.target, self.norm)
        if self.alpha.size <= _FEW:
            return np.array([np.count_nonzero(far > a) for a in self.alpha.tolist()])
        beyond = np.searchsorted(self.alpha, far, side="left")
        counts = np.bincount(beyond, minlength=self.alpha.size + 1)
        return np.cumsum(counts[::-1])[::-1][1:]


def run(
    samplers: Sequence[Sampler], target: FloatArray, alpha: FloatArray, norm: float, request: Request
) -> tuple[list[Trials], bool]:
    """Trials of each sampler, and whether a run with this seed gives them again.

    ``alpha`` increases. Raises ``KeyboardInterrupt`` only when some secret has no draws yet.
    """
    size = max(64, min(_BLOCK, _ENTRIES // target.size))
    draws = _Draws(samplers, target, alpha, norm, request.root)
    found = [Trials(np.zeros(alpha.size, dtype=np.int64)) for _ in samplers]
    if request.spends_everything:
        for each in found:
            each.looks = [request.max_samples]
    else:
        n = min(_PILOT, size, request.max_samples // _PILOT_SHARE)
        pilots = [_Block(0, which, n, _PILOTS) for which in range(len(found))]
        for each, hits in zip(found, _counted(draws, pilots, request), strict=True):
            each.looks = _schedule(hits, n, size, request)
    interrupted = late = False
    while not (interrupted or late) and (active := [i for i, each in enumerate(found) if not each.stopped]):
        work = []
        for i in active:
            begin, end = found[i].count, found[i].looks[found[i].look - 1]
            starts = range(begin, min(end, begin + _PASS * size), size)
            work += [_Block(at // size, i, min(size, end - at), _DRAWS) for at in starts]
        work.sort()
        results = _counted(draws, work, request)
        try:
            for block, hits in zip(work, results, strict=True):
                found[block.which].hits += hits
                found[block.which].count += block.n
                if min(each.count for each in found) and request.clock.late():
                    late = True
                    break
        except KeyboardInterrupt:
            if not min(each.count for each in found):
                raise
            interrupted = True
        finally:
            results.close()
        for i in active:
            _judge(found[i], request)
    for each in found:
        each.stopped = each.stopped or ("interrupted" if interrupted else "max_seconds")
    return found, not (request.clock.felt or interrupted)


def _judge(each: Trials, request: Request) -> None:
    """At a look: whether to stop."""
    if each.count == each.looks[each.look - 1]:
        if not request.spends_everything and _excess(each.interval(request), request) <= 1.0:
            each.stopped = "target"
        elif each.look == len(each.looks):
            each.stopped = "max_samples"
        else:
            each.look += 1


def _counted(
    draws: _Draws, work: Sequence[_Block], request: Request
) -> Generator[NDArray[np.int64], None, None]:
    return ordered_map(draws, work, n_jobs=request.n_jobs, progress=request.progress)


def _schedule(hits: NDArray[np.int64], n: int, size: int, request: Request) -> list[int]:
    """Numbers of draws at the looks: what the pilot asks for, in whole blocks, then twice as many each time."""
    share = np.maximum(hits, 1) / n
    wanted = np.maximum(request.atol, request.rtol * share)
    quantile = student_factor(look_confidence(request.confidence, 1), 2**20, request.side)
    needed = float(np.max(1.1 * (quantile / wanted) ** 2 * share * np.maximum(1.0 - share, 1.0 / n) + 4.0 / wanted))
    most = request.max_samples - n
    first = min(needed if hits.min() >= min(_SURE, n) else 0.25 * needed, float(most))
    looks = [min(most, max(1, math.ceil(first / size)) * size)]
    while looks[-1] < most:
        looks.append(min(most, 2 * looks[-1]))
    return looks


def _excess(found: Interval, request: Request) -> float:
    """Largest half width over what was asked."""
    ends: dict[str, Callable[[], Any]] = {
        "lower": lambda: found.value - found.lower,
        "upper": lambda: found.upper - found.value,
        "both": lambda: 0.5 * (found.upper - found.lower),
    }
    asked = np.maximum(request.atol, request.rtol * found.value)
    return float(np.max(ends[request.side]() / np.maximum(asked, 1e-300)))
