"""Two laws as a run takes them: how each is evaluated, and where samples can come from.

A law is a GaussianMixture, a Density, or one side of a LogRatio. Two mixtures are brought to the coordinates in which
they cost least; a density that only its owner knows keeps them as they are.
"""

# bounds: none - how many draws functions are tried on

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from .. import _random
from ..distributions import Density, GaussianMixture, LogRatio
from ..distributions.packed import Packed, log_density, pack, pack_together
from ..errors import DomainError
from .clock import UNLIMITED, Clock
from .problem import Evaluated, Integrand, Part, Problem, Sampled
from .statistics.normalisation import warned_of_integrals

__all__ = ["DOMINANT", "Pair", "RatioSide", "accompanied", "paired", "proposed"]

FloatArray = NDArray[np.float64]
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

    def draw(self, words: NDArray[np.uint64], n: int) -> FloatArray:
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


def paired(p: Any, q: Any, root: SeedSequence, clock: Clock = UNLIMITED) -> Pair:
    """The pair, its functions tried once: their errors and the warning of plain Python come from here."""
    if isinstance(p, LogRatio):
        doubted = _tried_ratio(p, root, clock)
        over, under = RatioSide(p, "p"), RatioSide(p, "q")
        sources = (_sampled(under),) if "q" in p.sides else ()
        return Pair(over, under, (_sampled(over),), sources, known=False, doubted=doubted)
    if isinstance(p, GaussianMixture) and isinstance(q, GaussianMixture):
        first, second = pack_together(p, q).packs
        return Pair(first, second, (_component_wise(first, p),), (_component_wise(second, q),), known=True)
    doubted = _tried(p, q, root, clock)
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
    return law, (_sampled(law),) if law.has_sampler else ()


def _component_wise(packed: Packed, law: GaussianMixture) -> Part:
    return Part.of(packed, law.weights / law.weights.sum())


def _sampled(source: Sampled) -> Part:
    return Part.of(source, ONE)


def _tried(p: Any, q: Any, root: SeedSequence, clock: Clock) -> bool:
    """Try every function on a few points, and compare the integrals where draws can: are they in doubt?"""
    cost = 0.0
    words = [_random.words(root, (9, index), 4) for index in range(2)]
    draws = [_drawn(law, words[index]) for index, law in enumerate((p, q))]
    for law, own, other, seed in zip((p, q), draws, draws[::-1], words, strict=True):
        if isinstance(law, Density):
            cost += law.trial(seed, None if own is not None else other).evaluate
    n = _affordable(cost * sum(x is not None for x in draws), clock)
    few = [None if x is None else np.ascontiguousarray(x[:, :n]) for x in draws]
    at_p, at_q = (None if x is None else _log_density(p, x) - _log_density(q, x) for x in few)
    return warned_of_integrals(at_p, at_q).verdict != "equal"


def _tried_ratio(ratio: LogRatio, root: SeedSequence, clock: Clock) -> bool:
    words = _random.words(root, (9, 0), 4)
    n = _affordable(ratio.trial(words).evaluate * len(ratio.sides), clock)
    at = {side: ratio.evaluate(ratio.draw(words, n, side), own=side) for side in ratio.sides}
    return warned_of_integrals(at["p"], at.get("q")).verdict != "equal"


def _affordable(cost: float, clock: Clock) -> int:
    """TRIED draws, or as many as a share of the time allows where each costs so many nanoseconds."""
    able = TRIAL_TIME * clock.left / max(1e-9 * cost, 1e-12) if cost > 0.0 else math.inf  # an unknown cost is none
    if able >= TRIED:
        return TRIED
    clock.feel()
    return max(FEWEST_TRIED, int(able))


def _drawn(law: Any, words: NDArray[np.uint64]) -> FloatArray | None:
    if isinstance(law, GaussianMixture):
        drawn = law.sample(TRIED, rng=words.tolist())
        return np.ascontiguousarray(drawn.reshape(TRIED, -1).T)
    return law.draw(words, TRIED) if law.has_sampler else None


def _log_density(law: Any, x: FloatArray) -> FloatArray:
    if isinstance(law, GaussianMixture):
        return log_density(pack(law), x)
    found: FloatArray = law.evaluate(x)
    return found
