"""The posterior over a domain with one log likelihood a secret: two passes over fixed blocks.

Notation: l_d log likelihood, pi_d prior over its sum, t_d = log pi_d + l_d, Z = sum e^t, y_d = l_d - log Z = log of
posterior over prior. The first pass finds maxima, log Z and entropy, the second KL, Jensen-Shannon and the posterior;
the mathematics is in csrc/fp_beliefs.h, the bounds in ``rounding``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _parallel, _validate
from ..._values import FloatArray
from ...channels.likelihoods.kinds import DenseLikelihood
from ...channels.likelihoods.sources import BLOCK, SourceFault
from ...errors import DomainError, NotConvergedError, ShapeError
from ...kernels import _beliefs
from ..result import Options, Posterior, Top
from .output import Output
from .passes import Block, Pair
from .rounding import Evidence, evidence, numbers

__all__ = ["Mode", "Unfinished", "mode", "posterior"]

_NOTHING: tuple[float, ...] = (0.0,) * 6
_SAME = 1e-6  # to which both passes must find one evidence
_TOP, _MASS = 0, 7  # places in the sums of a first pass


class Unfinished(NamedTuple):
    """What an error or an interruption left; ``posterior(..., resume=)`` goes on from there."""

    stage: int  # the pass that was running, 1 or 2
    secrets: int  # those done in this pass: whole blocks of 2**18
    size: int  # number of secrets; 0 until the first pass is over
    shift: float
    single: bool
    first: tuple[Any, ...]  # sums of the first pass
    weights: FloatArray  # the largest joint weights, and where they are
    places: NDArray[np.int64]
    second: tuple[float, ...]  # sums of the second pass

    @property
    def blocks(self) -> int:
        """Blocks done in this pass."""
        return -(-self.secrets // BLOCK)


def posterior(likelihood: DenseLikelihood, prior: Any, options: Options) -> Posterior:
    """Posterior of a ``DenseLikelihood``; ``prior`` is None or what ``DenseLikelihood`` takes as values."""
    pair = Pair(likelihood, prior, options.log_prior)
    run = _Run(pair, options)
    try:
        run.first_pass()
        found = run.evidence()
        if pair.again:
            run.second_pass(found)
    except SourceFault as fault:
        raise NotConvergedError(
            f"{fault.name} must be arrays to its end; got {fault.cause!r} from the function, in place of its array "
            f"{fault.piece}, which starts at secret {fault.entry}. What was computed is in the attribute best of this "
            "error: pass it on as resume=error.best.",
            run.state(),
        ) from fault.cause
    except BaseException as error:
        error.best = run.state()  # type: ignore[attr-defined]
        if isinstance(error, KeyboardInterrupt):
            error.add_note("What was computed is in the attribute best of this error: pass it on as resume=error.best.")
        raise
    finally:
        run.close()
    return run.result(found)


@dataclass(frozen=True, slots=True)
class Mode:
    """The most probable secret, and the ends of the log likelihoods of secrets with a positive prior."""

    index: int  # the lowest on ties
    log_weight: float  # log of prior times likelihood; under a uniform prior the log likelihood
    max_log_likelihood: float
    min_log_likelihood: float


def mode(likelihood: DenseLikelihood, prior: Any, options: Options) -> Mode:
    """The mode of a ``DenseLikelihood``: comparisons alone, at the pace of the memory."""
    pair = Pair(likelihood, prior, options.log_prior)
    row: Any = None
    blocks = None if pair.length is None else -(-pair.length // BLOCK)
    report, close = _parallel.progress_reporter(options.progress, blocks or 0)
    try:
        for done, (_, one) in enumerate(pair.run(lambda block: _first(pair, block, 0, False)[0], 0, options.n_jobs), 1):
            row = one if row is None else _beliefs.joined([row, one])
            report(done)
    except SourceFault as fault:
        raise NotConvergedError(
            f"{fault.name} must be arrays to its end; got {fault.cause!r} from the function, in place of its array "
            f"{fault.piece}, which starts at secret {fault.entry}. Mend the function, and call again."
        ) from fault.cause
    finally:
        close()
    if row is None:
        raise _empty()
    return Mode(int(row[4]), float(row[_TOP] + pair.shift), float(row[2]), float(row[3]))


def _empty() -> ShapeError:
    return ShapeError("likelihood must have at least one secret; got none. Pass one number for each secret.")


class _Run:
    """Both passes, and how far they are."""

    def __init__(self, pair: Pair, options: Options) -> None:
        self.pair, self.options = pair, options
        self.stage, self.secrets, self.size, self.done = 1, 0, pair.length or 0, 0
        self.first: tuple[Any, ...] = ()
        self.weights, self.places = np.empty(0), np.empty(0, dtype=np.int64)
        self.second: tuple[float, ...] = _NOTHING
        self.out = Output(options.out, pair)
        if options.resume is not None:
            self._resume(options.resume)
        total = 0 if pair.length is None else -(-pair.length // BLOCK) * (2 if pair.again else 1)
        self.report, self.close = _parallel.progress_reporter(options.progress, total)

    def _resume(self, best: Any) -> None:
        if not isinstance(best, Unfinished):
            raise DomainError(
                f"resume must be what an error of posterior carries; got {_validate.shown(best)}. "
                "Pass error.best, with the same likelihood and prior."
            )
        pair = self.pair
        if best.size and pair.length not in (None, best.size):
            raise DomainError(
                f"resume must belong to a likelihood of this size, {pair.length}; got one of size {best.size}. "
                "Pass the same likelihood and prior."
            )
        self.stage, self.secrets, self.size, self.second = best.stage, best.secrets, best.size, best.second
        self.first, self.weights, self.places = best.first, best.weights, best.places
        pair.shift, pair.single, pair.seen = best.shift, best.single, bool(best.first)
        if self.stage == 2 and self.options.out is not None:  # what was written may be gone
            self.secrets, self.second = 0, _NOTHING

    def state(self) -> Unfinished:
        return Unfinished(self.stage, self.secrets, self.size if self.stage == 2 else 0, self.pair.shift,
                          self.pair.single, self.first, self.weights, self.places, self.second)  # fmt: skip

    def _blocks(self, work: Callable[[Block], Any]) -> Iterator[Any]:
        skip = -(-self.secrets // BLOCK)
        for size, result in self.pair.run(work, skip, self.options.n_jobs):
            yield result
            self.secrets += size
            self.done += 1
            self.report(self.done)

    def first_pass(self) -> None:
        if self.stage == 2:
            return
        room = min(self.options.top, BLOCK)
        for row, weights, places in self._blocks(lambda block: _first(self.pair, block, room)):
            self.first = _beliefs.joined([self.first, row]) if self.first else row
            self._keep(weights, places)
        if not self.first:
            raise _empty()
        self.stage, self.size, self.secrets = 2, self.secrets, 0

    def _keep(self, weights: FloatArray, places: NDArray[np.int64]) -> None:
        top = self.options.top
        if not weights.size or (self.weights.size == top and weights.max() <= self.weights[-1]):
            return
        weights, places = np.concatenate([self.weights, weights]), np.concatenate([self.places, places])
        order = np.lexsort((places, -weights))[:top]
        self.weights, self.places = weights[order], places[order]

    def evidence(self) -> Evidence:
        if self.first[_TOP] == -np.inf:
            raise DomainError(
                f"likelihood must be positive for some secret of positive prior; got zero for all {self.size}. "
                "Such a release cannot happen: check likelihood and prior."
            )
        mass = float(self.first[_MASS] + self.first[_MASS + 1])
        tolerance = _validate.sum_tolerance(np.float32 if self.pair.single else np.float64)
        if self.pair.prior is not None and not abs(mass - 1.0) <= tolerance:
            raise DomainError(
                f"{self.pair.prior_name} must sum to 1 within {tolerance:g}; got a sum of "
                f"{mass!r} over {self.size} secrets. Divide by the sum if the numbers are relative."
            )
        return evidence(self.first, self.size, self.pair)

    def second_pass(self, found: Evidence) -> None:
        with self.out.opened(self.size) as room:
            for sums in self._blocks(lambda block: _second(self.pair, block, found, room)):
                self.second = _added(self.second, sums)
            if self.secrets != self.size or not abs(self.second[0] + self.second[1]) <= _SAME:
                raise DomainError(
                    f"likelihood must be the same in both passes; got {self.size} and {self.secrets} secrets, and "
                    f"evidences that differ by a factor of {1.0 + self.second[0] + self.second[1]!r}. "
                    "Pass what can be read twice, or an iterator to read it once."
                )

    def result(self, found: Evidence) -> Posterior:
        pair = self.pair
        again = pair.again
        probabilities = np.exp(self.weights - self.first[_TOP]) / found.sum
        secrets = _Law(pair, found) if again else None
        return Posterior(
            self.size, map_index=int(self.first[4]), ties=int(self.first[1]), top=Top(self.places, probabilities),
            cost={"secrets": self.size, "passes": 2 if again else 1}, _law=secrets,
            **numbers(self.first, self.second if again else None, found, pair),
        )  # fmt: skip


class _Law:
    """Posterior probabilities of a range of secrets, read once more."""

    def __init__(self, pair: Pair, found: Evidence) -> None:
        self.pair, self.found = pair, found

    def __call__(self, start: int, stop: int) -> FloatArray:
        _validate.memory("probabilities", 8 * (stop - start), "Ask for fewer at a time, or pass out=.")
        wanted = np.empty(stop - start)
        for block in self.pair.streams(start // BLOCK):
            if block.start >= stop:
                break
            room = np.empty(block.likelihood.size)
            _second(self.pair, block, self.found, lambda _, room=room: room)
            first, last = max(start, block.start), min(stop, block.start + room.size)
            wanted[first - start : last - start] = room[first - block.start : last - block.start]
        return wanted


def _first(pair: Pair, block: Block, room: int, sums: bool = True) -> tuple[Any, FloatArray, NDArray[np.int64]]:
    weights, places = np.empty(room), np.empty(room, dtype=np.intp)
    row, count = _beliefs.first_pass(
        block.likelihood, block.prior, pair.log_prior, pair.shift, sums, block.start, weights, places
    )
    if not np.isfinite(row[_MASS]):
        raise pair.fault(block)
    return row, weights[:count], places[:count].astype(np.int64) + block.start


def _second(pair: Pair, block: Block, found: Evidence, room: Any) -> tuple[float, ...]:
    to = None if room is None else room(block)
    sums = _beliefs.second_pass(
        block.likelihood, block.prior, pair.log_prior, found.weight, found.high, found.low, to
    )
    if room is not None and hasattr(room, "write"):
        room.write(block, to)
    return tuple(part for pair_of in sums for part in pair_of)


def _added(total: tuple[float, ...], one: tuple[float, ...]) -> tuple[float, ...]:
    """Sums of pairs of doubles: the high parts exactly, what they lose into the low parts."""
    found: list[float] = []
    for i in range(0, 6, 2):
        high = total[i] + one[i]
        back = high - total[i]
        found += [high, total[i + 1] + one[i + 1] + ((total[i] - (high - back)) + (one[i] - back))]
    return tuple(found)
