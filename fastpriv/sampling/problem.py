"""What is averaged: where samples come from, which densities they are given, which function of these is the integrand.

Notation: lp, lq, lg the log densities of P, Q and of the law G that the samples come from; f the integrand, whose
mean under G is the number wanted. A law has parts, each with a fixed share of the samples; the part of a mixture is
cut into strata, its components.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._parallel import blocks
from ..distributions.packed import Packed, log_density, log_density_information
from ..kernels import _terms

__all__ = ["Densities", "Evaluated", "Integrand", "Part", "Problem", "Row", "Sampled"]

FloatArray = NDArray[np.float64]

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

    def draw(self, words: NDArray[np.uint64], n: int) -> FloatArray:
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

    def bounds(self, n: int, start: FloatArray) -> NDArray[np.int64]:
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
