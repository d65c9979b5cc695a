"""Steps of a composition in the normal forms that the engines take.

Notation: a step is ``count`` independent releases of a pair P, Q with the loss L = log dP/dQ. ``forward`` is the
curve of P against Q, ``backward`` that of Q against P. All fields are checked by whoever makes a step.

A gap g of a step is a bound of relative errors: the step stands for all measures whose densities lie within 1 +- g of
those given, the exact or normalised ones among them. ``engines`` widens the bounds for it: the engines themselves take
the numbers as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from .._values import ValueObject
from ..distributions import GaussianMixture
from ..numerics import FloatArray
from .discretised_losses import PrivacyLoss
from .pairs import Curve

__all__ = ["AtomStep", "CurveStep", "LaplaceStep", "LossStep", "MixtureStep", "Side", "Step", "reversed_step"]

Side = Literal["exact", "upper", "lower"]


@dataclass(frozen=True, slots=True, eq=False)
class MixtureStep(ValueObject):
    """Mixtures on the line, with the gaps of their weights."""

    _fields = ("p", "q", "count", "p_gap", "q_gap")

    p: GaussianMixture
    q: GaussianMixture
    count: int
    p_gap: float = 0.0
    q_gap: float = 0.0


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

# bound: proved - relative rounding of e^-l in extended precision for |l| < 2^14, and of its product, as doubles
_REVERSAL_ERROR = 2.0**-52


def reversed_step(step: Step) -> Step:
    """The step of Q against P."""
    if isinstance(step, MixtureStep):
        return MixtureStep(step.q, step.p, step.count, step.q_gap, step.p_gap)
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
