"""Steps of a composition in the normal forms that the engines take.

Notation: a step is ``count`` independent releases of a pair P, Q with the loss L = log dP/dQ. ``forward`` is the
curve of P against Q, ``backward`` that of Q against P. All fields are checked by whoever makes a step.

A gap g of a step is a bound of relative errors: the step stands for all measures whose densities lie within 1 +- g of
those given, the exact or normalised ones among them. ``engines`` widens the bounds for it: the engines themselves take
the numbers as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..base.numerics import BoolArray, FloatArray
from ..base.values import ValueObject
from ..distributions import GaussianMixture
from .discretised_losses import PrivacyLoss
from .pairs import Curve, PairObject

__all__ = [
    "LARGEST_DISTANCE", "AtomStep", "BoundingSteps", "CurveStep", "LaplaceStep", "LossStep", "MixtureStep", "Side",
    "Step", "SteppedPair", "bounding_atoms", "reversed_step",
]  # fmt: skip

# bound: none - distance of means, in standard deviations, from which moments are not tried: its square is no double
LARGEST_DISTANCE = 1e154

Side = Literal["exact", "upper", "lower"]


@dataclass(frozen=True, slots=True, eq=False)
class MixtureStep(ValueObject):
    """Mixtures on the line, with the gaps of their weights.

    Where ``rate`` is not 0 one of them is the normal distribution of the other with the weight 1 - rate, exactly, and
    another with the weight rate, a double: the gaps are the rounding of 1 - rate alone.
    """

    _fields = ("p", "q", "count", "p_gap", "q_gap", "rate")

    p: GaussianMixture
    q: GaussianMixture
    count: int
    p_gap: float = 0.0
    q_gap: float = 0.0
    rate: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class LaplaceStep(ValueObject):
    """P = Laplace(0, scale) and Q = Laplace(shift, scale); scale > 0, shift >= 0. Both orders have one curve."""

    _fields = ("scale", "shift", "count")

    scale: float
    shift: float
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class AtomStep(ValueObject):
    """Probabilities of the same outcomes. Where q = 0 < p the loss is infinite."""

    _fields = ("p", "q", "count", "p_gap", "q_gap")

    p: FloatArray
    q: FloatArray
    count: int
    p_gap: float = 0.0
    q_gap: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class LossStep(ValueObject):
    """A loss on a grid: that of the pair itself, or one that dominates it ("upper") or is dominated ("lower")."""

    _fields = ("losses", "count", "side", "p_gap", "q_gap")

    losses: PrivacyLoss
    count: int
    side: Side = "exact"
    p_gap: float = 0.0
    q_gap: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class CurveStep(ValueObject):
    """Only two certified curves at epsilon >= 0 are known."""

    _fields = ("forward", "backward", "count")

    forward: Curve
    backward: Curve
    count: int


Step = MixtureStep | LaplaceStep | AtomStep | LossStep | CurveStep


@dataclass(frozen=True, slots=True, eq=False)
class BoundingSteps(ValueObject):
    """Steps whose composition has at least the delta of what is meant, and alternatives that have at most that.

    Each of ``below`` is a list of steps by itself. Where ``below`` is empty, ``above`` is what is meant, exactly.
    """

    above: tuple[Step, ...]
    below: tuple[tuple[Step, ...], ...] = ()

    _fields = ("above", "below")

    def reversed(self) -> BoundingSteps:
        """The same of Q against P: a pair that dominates does so in both orders."""
        above, *below = (tuple(reversed_step(step) for step in steps) for steps in (self.above, *self.below))
        return BoundingSteps(above, tuple(below))


class SteppedPair(PairObject):
    """An object that is a pair, and whose composition is one of steps."""

    __slots__ = ()

    def _steps(self) -> BoundingSteps:
        """The steps of the removal of a record."""
        raise NotImplementedError


# bound: proved - the least probability of a finite loss that keeps a relative accuracy of one rounding as a double
_LEAST_PROBABILITY = 2.0**-1021
# bound: proved - relative rounding of e^-l in extended precision for |l| < 2^14, and of its product, as doubles
_REVERSAL_ERROR = 2.0**-52


def reversed_step(step: Step) -> Step:
    """The step of Q against P."""
    if isinstance(step, MixtureStep):
        return MixtureStep(step.q, step.p, step.count, step.q_gap, step.p_gap, step.rate)
    if isinstance(step, AtomStep):
        return AtomStep(step.q, step.p, step.count, step.q_gap, step.p_gap)
    if isinstance(step, CurveStep):
        return CurveStep(step.backward, step.forward, step.count)
    if isinstance(step, LossStep):
        turned = _reversed_losses(step.losses)
        return replace(step, losses=turned, p_gap=step.q_gap + _REVERSAL_ERROR, q_gap=step.p_gap)
    return step


def _reversed_losses(loss: PrivacyLoss) -> PrivacyLoss:
    """Mass m at the loss l of P against Q is mass m e^-l at -l of Q against P; what is left of Q is infinite there."""
    places = np.arange(loss.first, loss.first + len(loss.masses))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        factors = np.exp(-(places * np.longdouble(loss.interval)))
        masses = np.where(loss.masses == 0.0, np.longdouble(0.0), loss.masses * factors)
    rest = max(0.0, float(1.0 - masses.sum()))
    return PrivacyLoss(-int(places[-1]), loss.interval, masses[::-1].astype(np.float64), rest)


def bounding_atoms(p: Any, q: Any, finite: BoolArray, p_gap: float, q_gap: float) -> BoundingSteps:
    """Atoms of probabilities in extended precision, with relative errors, to which the rounding to doubles is added.

    ``finite`` marks finite losses of both signs.

    A probability that underflows as a double is raised under P and becomes 0 under Q above, where what Q loses is an
    outcome of its own; below such an outcome is left out.
    """
    p, q = np.asarray(p), np.asarray(q)
    lost = finite & ((p < _LEAST_PROBABILITY) | (q < _LEAST_PROBABILITY))
    kept = ~lost & ((p > 0.0) | (q > 0.0))
    p_gap, q_gap = p_gap + _rounding(p[kept]), q_gap + _rounding(q[kept])
    inside = AtomStep(p[kept].astype(np.float64), q[kept].astype(np.float64), 1, p_gap, q_gap)
    if not lost.any():
        return BoundingSteps((inside,))
    raised = np.maximum(p[lost], _LEAST_PROBABILITY).astype(np.float64)
    rare = q[lost] < _LEAST_PROBABILITY
    rest = np.where(rare, 0.0, q[lost]).astype(np.float64)
    above_p = np.concatenate([inside.p, raised, [0.0]])
    above_q = np.concatenate([inside.q, rest, [rare.sum() * _LEAST_PROBABILITY]])
    return BoundingSteps((AtomStep(above_p, above_q, 1, p_gap, q_gap),), ((inside,),))


def _rounding(x: Any) -> float:
    """The largest relative error of numbers in extended precision as doubles, rounded up; 0 if there is none."""
    used = x[x > 0]
    error = float(np.abs(used.astype(np.float64) / used - 1).max(initial=0.0))
    return error * (1 + 2.0**-10) if error else 0.0
