"""What is averaged: where samples come from, which densities they are given, which function of these is the integrand.

Notation: lp, lq, lg the log densities of P, Q and of the law G that the samples come from; f the integrand, whose
mean under G is the number wanted. A law has parts, each with a fixed share of the samples; the part of a mixture is
cut into strata, its components.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..kernels import _terms
from .packed import Packed, log_density, log_density_information

__all__ = ["Evaluated", "Integrand", "Part", "Problem", "Sampled"]

FloatArray = NDArray[np.float64]


class Evaluated(Protocol):
    """A density only its owner knows; ``x`` has one row a dimension."""

    dimension: int

    def evaluate(self, x: FloatArray) -> FloatArray:
        """Log densities, shape (n,), of the columns of x."""


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

    def bounds(self, n: int, start: float) -> NDArray[np.int64]:
        """The first sample after those of each component, when sample k stands at (k + start) / n."""
        ends = np.ceil(n * np.cumsum(self.chances) - start)
        ends[-1] = n
        return np.clip(ends, 0, n).astype(np.int64)


@dataclass(frozen=True)
class Integrand:
    """A function of log densities, with its parameters and the range of its values.

    Attributes
    ----------
    name : str
        A name of ``fastpriv.kernels._terms``, or "information" or "entropy".
    parameters : ndarray, shape (e,)
        One row of values for each.
    low, high : float
        What f can never leave; infinite where there is no bound.
    """

    name: str
    parameters: FloatArray
    low: float
    high: float


@dataclass(frozen=True)
class Problem:
    """A law, the densities of its samples, and an integrand; ``watched`` where its variance may be infinite."""

    law: str
    parts: tuple[Part, ...]
    p: Packed | Evaluated
    q: Packed | Evaluated | None
    g: Packed | None
    integrand: Integrand
    watched: bool = False

    def with_parts(self, parts: tuple[Part, ...]) -> Problem:
        """The same averages from other chances of the components."""
        return replace(self, parts=parts)

    @property
    def has_components(self) -> bool:
        """Whether some part is a mixture, so that its points can be chosen."""
        return any(isinstance(part.source, Packed) for part in self.parts)

    @property
    def dimension(self) -> int:
        """Coordinates of a sample."""
        return self.p.dimension

    @property
    def cost(self) -> float:
        """Components times coordinates that a sample is held against: a fixed model, so that choices never depend
        on a clock."""
        sides = [side for side in (self.p, self.q, self.g) if side is not None]
        return float(sum(len(side.constants) * side.dimension if isinstance(side, Packed) else 100 for side in sides))

    def pieces(self, n: int) -> Iterator[tuple[Part, int, int]]:
        """Every part with the first and the last-but-one of its samples among n."""
        first, share = 0, 0.0
        for part in self.parts:
            share += part.share
            last = n if part is self.parts[-1] else round(n * share)
            yield part, first, last
            first = last

    def values(self, x: FloatArray) -> FloatArray:
        """f of the columns of x, shape (e, n)."""
        name, parameters = self.integrand.name, self.integrand.parameters
        if name == "information":
            assert isinstance(self.p, Packed)
            return log_density_information(self.p, x)[1][np.newaxis]
        lp = _of(self.p, x)
        if name == "entropy":
            return -lp[np.newaxis]
        lq = lp if self.q is None else _of(self.q, x)
        lg = lp if self.g is None else _of(self.g, x)
        out = np.empty((len(parameters), x.shape[1]))
        _terms.terms(name, lp, lq, lg, parameters, out)
        return out


def _of(side: Packed | Evaluated, x: FloatArray) -> FloatArray:
    return log_density(side, x) if isinstance(side, Packed) else side.evaluate(x)
