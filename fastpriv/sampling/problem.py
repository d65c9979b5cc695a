"""What is averaged: where samples come from, which densities they are given, which function of these is the integrand.

Notation: lp, lq, lg the log densities of P, Q and of the law G that the samples come from; f the integrand, whose
mean under G is the number wanted. A law has parts, each with a fixed share of the samples; the part of a mixture is
cut into strata, its components.

Two laws as a run takes them: how each is evaluated, and where samples can come from.

A law is a GaussianMixture, a Density, or one side of a LogRatio. Two mixtures are brought to the coordinates in which
they cost least; a density that only its owner knows keeps them as they are.
"""

# bounds: none - how many draws functions are tried on

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import SeedSequence

from .. import _random
from .._parallel import blocks
from ..distributions import Density, GaussianMixture, LogRatio
from ..distributions.packed import Packed, log_density, log_density_information, pack, pack_together
from ..errors import DomainError
from ..kernels import _terms
from ..numerics import FloatArray, IntArray, WordArray
from .options import UNLIMITED, Deadline
from .statistics.normalisation import warned_of_integrals

__all__ = [
    "DOMINANT", "Densities", "Evaluated", "Integrand", "Pair", "Part", "Problem", "RatioSide", "Row", "Sampled",
    "accompanied", "paired", "proposed",
]  # fmt: skip


DRAWN = 40.0  # cost of drawing a sample, for each coordinate
AT_ONCE = 8  # rows of terms held at a time
UNKNOWN_COST, PLAIN_COST = 100.0, 1e4  # of a density only its owner knows, for each coordinate; in plain Python


class Evaluated(Protocol):
    """A density only its owner knows; ``x`` has one row a dimension."""

    dimension: int

    @property
    def form(self) -> str:
        """How it is called: "jitted", "vectorized" or "plain"."""

    def evaluate(self, x: FloatArray, *, own: Any = ...) -> FloatArray:
        """Log densities, shape (n,), of the columns of x; ``own`` is what they were drawn from."""


class Sampled(Evaluated, Protocol):
    """A density with a sampler."""

    def draw(self, words: WordArray, n: int) -> FloatArray:
        """The n samples, shape (d, n), of the stream that ``words`` name."""


@dataclass(frozen=True)
class Part:
    """One source of samples.

    Attributes
    ----------
    share : float
        Its part of all samples.
    source : Packed or Sampled
        A mixture, sampled component by component, or a sampler.
    weights : ndarray, shape (k,)
        What the components count for; they sum to 1.
    chances : ndarray, shape (k,)
        The share of this part's samples that each component gets; ``weights`` unless reallocated.
    """

    share: float
    source: Packed | Sampled
    weights: FloatArray
    chances: FloatArray

    @classmethod
    def of(cls, source: Packed | Sampled, weights: FloatArray, share: float = 1.0) -> Part:
        """Components get the samples that their weights ask for."""
        return cls(share, source, weights, weights)

    def reallocated(self, chances: FloatArray) -> Part:
        """The same law, with other chances."""
        return replace(self, chances=chances)

    @property
    def ratio(self) -> FloatArray | None:
        """What a sample of each component counts for; None for 1 everywhere."""
        return None if self.chances is self.weights else self.weights / self.chances

    def bounds(self, n: int, start: FloatArray) -> IntArray:
        """The first sample after those of each component, when sample k stands at (k + start) / n; a row a start."""
        ends = np.ceil(n * np.cumsum(self.chances) - start[:, np.newaxis])
        ends[:, -1] = n
        return np.clip(ends, 0, n).astype(np.int64)


@dataclass(frozen=True)
class Row:
    """One kind of term, for each of its parameters; ``swapped`` exchanges P and Q.

    ``name`` is one of ``fastpriv.kernels._terms.NAMES``, or "information" or "entropy".
    """

    name: str
    parameters: FloatArray
    swapped: bool = False


@dataclass(frozen=True)
class Integrand:
    """Functions of log densities, and the range of their values.

    Attributes
    ----------
    rows : tuple of Row
        All that is averaged; e is the number of their parameters.
    low, high : float
        What f can never leave; infinite where there is no bound.
    """

    rows: tuple[Row, ...]
    low: float
    high: float

    @property
    def size(self) -> int:
        """The number e of averages."""
        return sum(len(row.parameters) for row in self.rows)


class Densities(NamedTuple):
    """Log densities at n samples, and what they tell of their component where that is asked."""

    lp: FloatArray
    lq: FloatArray
    lg: FloatArray


@dataclass(frozen=True)
class Problem:
    """A law, the densities of its samples, and an integrand; ``watched`` where its variance may be infinite.

    ``g`` are mixtures of which the density given to the integrand is the sum. ``unknown`` says that a density is known
    to its owner alone, so that its normalisation is in doubt and mass may hide from samples; ``others`` are sources of
    Q where samples are of P alone; ``doubted`` that a warning of the normalisation has been given.
    """

    law: str
    parts: tuple[Part, ...]
    p: Packed | Evaluated
    q: Packed | Evaluated | None
    g: tuple[Packed, ...]
    integrand: Integrand
    watched: bool = False
    unknown: bool = False
    others: tuple[Part, ...] = ()
    doubted: bool = False

    def with_parts(self, parts: tuple[Part, ...]) -> Problem:
        """The same averages from other chances of the components."""
        return replace(self, parts=parts)

    @property
    def has_components(self) -> bool:
        """Whether some part is a mixture, so that its points can be chosen."""
        return any(isinstance(part.source, Packed) for part in self.parts)

    @property
    def unit(self) -> int:
        """Samples come in multiples of this, so that every part gets its share of them exactly."""
        return round(1.0 / min(part.share for part in self.parts))

    @property
    def largest_ratio(self) -> float:
        """The most that a sample counts for."""
        return max([1.0, *(float(part.ratio.max()) for part in self.parts if part.ratio is not None)])

    @property
    def dimension(self) -> int:
        """Coordinates of a sample."""
        return self.p.dimension

    @property
    def cost(self) -> float:
        """Components times coordinates that a sample is held against: a fixed model, so that choices never depend
        on a clock."""
        return sum(_cost(side) for side in (self.p, self.q, *self.g) if side is not None)

    @property
    def effort(self) -> float:
        """``cost``, and what a sample takes whatever it is held against: what problems are compared by."""
        return self.cost + DRAWN * self.dimension

    def pieces(self, n: int) -> Iterator[tuple[Part, int, int]]:
        """Every part with the first and the last-but-one of its samples among n."""
        first, share = 0, 0.0
        for part in self.parts:
            share += part.share
            last = n if part is self.parts[-1] else round(n * share)
            yield part, first, last
            first = last

    def densities(self, x: FloatArray, source: object, room: FloatArray | None = None) -> Densities:
        """Log densities at the columns of x, drawn from ``source``; for "information" the divergence takes lq's place.

        ``room`` of shape (3, n) holds what mixtures give: memory that is asked for anew costs as much as the work.
        """
        room = np.empty((3, x.shape[1])) if room is None else room
        if self.integrand.rows[0].name == "information":
            assert isinstance(self.p, Packed)
            return Densities(*log_density_information(self.p, x), room[0])
        lp = _of(self.p, x, source, room[0])
        lq = lp if self.q is None else _of(self.q, x, source, room[1])
        lg = log_density(self.g[0], x, room[2]) if self.g else lp
        for more in self.g[1:]:
            np.logaddexp(lg, log_density(more, x), out=lg)
        return Densities(lp, lq, lg)

    def sums(self, at: Densities, ratio: FloatArray | None, count: int = 1) -> FloatArray:
        """Sums of f over each of ``count`` runs of samples of one length, shape (count, e), in a fixed order and in
        bounded memory."""
        found = []
        for row in self.integrand.rows:
            sums = np.empty((len(row.parameters), count))
            if count == 1 and ratio is None and row.name in _terms.CODES:
                lp, lq = (at.lq, at.lp) if row.swapped else (at.lp, at.lq)
                _terms.term_sums(row.name, lp, lq, at.lg, row.parameters, sums[:, 0])
            else:
                for some in blocks(len(sums), AT_ONCE):
                    terms = _terms_of(row, at, row.parameters[some], ratio)
                    _terms.ordered_sums(terms.reshape(-1, terms.shape[1] // count), sums[some].reshape(-1))
            found.append(sums.T)
        return found[0] if len(found) == 1 else np.concatenate(found, axis=1)

    def values(self, at: Densities, ratio: FloatArray | None) -> FloatArray:
        """f at the samples, shape (e, n)."""
        return np.concatenate([_terms_of(row, at, row.parameters, ratio) for row in self.integrand.rows])


def _terms_of(row: Row, at: Densities, parameters: FloatArray, ratio: FloatArray | None) -> FloatArray:
    if row.name == "information":
        out = at.lq[np.newaxis].copy()
    elif row.name == "entropy":
        out = -at.lp[np.newaxis]
    else:
        out = np.empty((len(parameters), len(at.lp)))
        lp, lq = (at.lq, at.lp) if row.swapped else (at.lp, at.lq)
        _terms.terms(row.name, lp, lq, at.lg, parameters, out)
    if ratio is not None:
        out *= ratio
    return out


def _cost(side: Packed | Evaluated) -> float:
    if not isinstance(side, Packed):
        return (PLAIN_COST if side.form == "plain" else UNKNOWN_COST) * side.dimension
    return float(side.scales.size if len(side.scales) == len(side) else len(side) * side.scales.size)


def _of(side: Packed | Evaluated, x: FloatArray, source: object, out: FloatArray) -> FloatArray:
    return log_density(side, x, out) if isinstance(side, Packed) else side.evaluate(x, own=source)


ONE = np.ones(1)
DOMINANT = 0.25  # share of the samples that a dominating law keeps
TRIED, FEWEST_TRIED = 1024, 16  # draws that functions are tried on
TRIAL_TIME = 0.2  # of the time


class RatioSide:
    """P or Q of a LogRatio: log p/q stands for log p, and 0 for log q."""

    def __init__(self, ratio: LogRatio, side: str) -> None:
        self.ratio, self.side, self.dimension = ratio, side, ratio.dimension

    @property
    def form(self) -> str:
        """That of the ratio; q costs nothing."""
        return self.ratio.form if self.side == "p" else "vectorized"

    def evaluate(self, x: FloatArray, own: object = None) -> FloatArray:
        """Log densities relative to q; ``own`` is the side that x was drawn from."""
        if self.side == "q":
            return np.zeros(x.shape[1])
        drawn = own.side if isinstance(own, RatioSide) else None
        return self.ratio.evaluate(x, own=drawn)

    def draw(self, words: WordArray, n: int) -> FloatArray:
        """Draws of this side."""
        return self.ratio.draw(words, n, self.side)


@dataclasses.dataclass(frozen=True)
class Pair:
    """P and Q, and their samples where there are any.

    Attributes
    ----------
    p, q : Packed or Evaluated
        What gives log densities.
    draws_p, draws_q : tuple of Part
        Where samples of each come from; empty where they can't.
    known : bool
        Whether both are mixtures, so that tails are known to be light.
    doubted : bool
        Whether a first trial has already warned that the densities are not normalised.
    """

    p: Packed | Evaluated
    q: Packed | Evaluated
    draws_p: tuple[Part, ...]
    draws_q: tuple[Part, ...]
    known: bool
    doubted: bool = False

    def direct(self, integrand: Integrand, *, heavy: bool = False) -> Problem:
        """Samples of P."""
        return Problem(
            "direct", self.draws_p, self.p, self.q, (), integrand, watched=self._watched(integrand, heavy),
            unknown=not self.known, others=() if self.known else self.draws_q, doubted=self.doubted,
        )  # fmt: skip

    def balanced(self, integrand: Integrand, *, heavy: bool = False) -> Problem:
        """Samples of (P + Q) / 2, half of them from each."""
        halves = tuple(dataclasses.replace(part, share=0.5) for part in (*self.draws_p, *self.draws_q))
        return Problem(
            "balanced", halves, self.p, self.q, (), integrand, watched=self._watched(integrand, heavy),
            unknown=not self.known, doubted=self.doubted,
        )  # fmt: skip

    def swapped(self) -> Pair:
        """Q and P."""
        return dataclasses.replace(self, p=self.q, q=self.p, draws_p=self.draws_q, draws_q=self.draws_p)

    def _watched(self, integrand: Integrand, heavy: bool) -> bool:
        return heavy or (not self.known and not (math.isfinite(integrand.low) and math.isfinite(integrand.high)))


def paired(p: Any, q: Any, root: SeedSequence, deadline: Deadline = UNLIMITED) -> Pair:
    """The pair, its functions tried once: their errors and the warning of plain Python come from here."""
    if isinstance(p, LogRatio):
        doubted = _tried_ratio(p, root, deadline)
        over, under = RatioSide(p, "p"), RatioSide(p, "q")
        sources = (_sampled(under),) if "q" in p.sides else ()
        return Pair(over, under, (_sampled(over),), sources, known=False, doubted=doubted)
    if isinstance(p, GaussianMixture) and isinstance(q, GaussianMixture):
        first, second = pack_together(p, q).packs
        return Pair(first, second, (_component_wise(first, p),), (_component_wise(second, q),), known=True)
    doubted = _tried(p, q, root, deadline)
    (source_p, draws_p), (source_q, draws_q) = _source(p), _source(q)
    if not draws_p and not draws_q:
        raise DomainError("p must have a sampler, or q; got neither. Pass Density(log_density, sampler, ...).")
    return Pair(source_p, source_q, draws_p, draws_q, known=False, doubted=doubted)


def proposed(pair: Pair, law: GaussianMixture, packed: Packed, log_scale: float, integrand: Integrand) -> Problem:
    """Samples of a proposal whose density times exp(log_scale) is the g of the integrand."""
    part = _component_wise(packed, law)
    return Problem("tilted", (part,), pair.p, pair.q, (_scaled(packed, log_scale),), integrand, watched=True)


def accompanied(problem: Problem, law: GaussianMixture, packed: Packed, log_scale: float) -> Problem:
    """DOMINANT of the samples from the proposal, the rest from another law: the integrand stays below 1 / DOMINANT."""
    parts = (
        dataclasses.replace(problem.parts[0], share=DOMINANT),
        dataclasses.replace(_component_wise(packed, law), share=1.0 - DOMINANT),
    )
    own = _scaled(problem.g[0], math.log(DOMINANT))
    other = _scaled(packed, log_scale + math.log1p(-DOMINANT))
    integrand = dataclasses.replace(problem.integrand, high=problem.integrand.high / DOMINANT)
    return dataclasses.replace(problem, parts=parts, g=(own, other), integrand=integrand)


def _scaled(packed: Packed, log_scale: float) -> Packed:
    return dataclasses.replace(packed, constants=packed.constants + log_scale)


def _source(law: Any) -> tuple[Packed | Evaluated, tuple[Part, ...]]:
    if isinstance(law, GaussianMixture):
        packed = pack(law)
        return packed, (_component_wise(packed, law),)
    return law, (_sampled(law),) if law.draws else ()


def _component_wise(packed: Packed, law: GaussianMixture) -> Part:
    return Part.of(packed, law.weights / law.weights.sum())


def _sampled(source: Sampled) -> Part:
    return Part.of(source, ONE)


def _tried(p: Any, q: Any, root: SeedSequence, deadline: Deadline) -> bool:
    """Try every function on a few points, and compare the integrals where draws can: are they in doubt?"""
    cost = 0.0
    words = [_random.words(root, (9, index), 4) for index in range(2)]
    draws = [_drawn(law, words[index]) for index, law in enumerate((p, q))]
    for law, own, other, seed in zip((p, q), draws, draws[::-1], words, strict=True):
        if isinstance(law, Density):
            cost += law.trial(seed, None if own is not None else other).evaluate
    n = _affordable(cost * sum(x is not None for x in draws), deadline)
    few = [None if x is None else np.ascontiguousarray(x[:, :n]) for x in draws]
    at_p, at_q = (None if x is None else _log_density(p, x) - _log_density(q, x) for x in few)
    return warned_of_integrals(at_p, at_q).verdict != "equal"


def _tried_ratio(ratio: LogRatio, root: SeedSequence, deadline: Deadline) -> bool:
    words = _random.words(root, (9, 0), 4)
    n = _affordable(ratio.trial(words).evaluate * len(ratio.sides), deadline)
    at = {side: ratio.evaluate(ratio.draw(words, n, side), own=side) for side in ratio.sides}
    return warned_of_integrals(at["p"], at.get("q")).verdict != "equal"


def _affordable(cost: float, deadline: Deadline) -> int:
    """TRIED draws, or as many as a share of the time allows where each costs so many nanoseconds."""
    able = math.inf  # an unknown cost is none
    if cost > 0.0:
        able = TRIAL_TIME * deadline.remaining / max(1e-9 * cost, 1e-12)
    if able >= TRIED:
        return TRIED
    deadline.mark_affected()
    return max(FEWEST_TRIED, int(able))


def _drawn(law: Any, words: WordArray) -> FloatArray | None:
    if isinstance(law, GaussianMixture):
        drawn = law.sample(TRIED, rng=words.tolist())
        return np.ascontiguousarray(drawn.reshape(TRIED, -1).T)
    return law.draw(words, TRIED) if law.draws else None


def _log_density(law: Any, x: FloatArray) -> FloatArray:
    if isinstance(law, GaussianMixture):
        return log_density(pack(law), x)
    found: FloatArray = law.evaluate(x)
    return found
