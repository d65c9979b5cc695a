"""What an assessment computes: the quantities, and the families of mechanisms they are computed for.

To add a quantity, add its row to ``QUANTITIES`` and a function to ``MEASURES`` that returns it. To add a mechanism, add
its row to ``FAMILIES``; the notions must know it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import notions
from ..distributions import Pmf
from ..estimate import KINDS, Estimate
from ..mechanisms.gaussian import GaussianMechanism

__all__ = ["FAMILIES", "MEASURES", "QUANTITIES", "Family", "Quantity", "Surface", "measured"]

FloatArray = NDArray[np.float64]
LDP_DELTA = 1e-5


@dataclass(frozen=True)
class Family:
    """A family of mechanisms with one noise parameter."""

    name: str
    noise: str
    build: Callable[[float, float], Any]  # (sigma, sensitivity)


@dataclass(frozen=True)
class Quantity:
    """A quantity: its name, unit, whether it is a curve over epsilon, and its meaning in one line."""

    name: str
    unit: str
    curve: bool
    meaning: str


@dataclass(frozen=True, eq=False)
class Surface:
    """A quantity over the grid: arrays of shape (sigmas,) or (sigmas, epsilons), kind and method for each sigma."""

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    kind: tuple[str, ...]
    method: tuple[str, ...]

    @classmethod
    def stacked(cls, estimates: list[Estimate]) -> Surface:
        """The estimates of consecutive sigmas, one above the other."""
        value, lower, upper = (
            np.array([getattr(e, name) for e in estimates], dtype=np.float64) for name in ("value", "lower", "upper")
        )
        return cls(value, lower, upper, tuple(e.kind for e in estimates), tuple(e.method for e in estimates))

    @classmethod
    def joined(cls, parts: list[Surface]) -> Surface:
        """Blocks of consecutive sigmas, in order."""
        value, lower, upper = (np.concatenate([getattr(p, x) for p in parts]) for x in ("value", "lower", "upper"))
        kind, method = (tuple(word for p in parts for word in getattr(p, x)) for x in ("kind", "method"))
        return cls(value, lower, upper, kind, method)

    @property
    def weakest_kind(self) -> str:
        """The least that is claimed of the bounds anywhere on the grid."""
        return max(set(self.kind), key=KINDS.index)


def measured(prior: Pmf, mechanism: Any, epsilon: FloatArray) -> dict[str, Estimate]:
    """Every quantity of one mechanism; the curves at all of ``epsilon``."""
    found: dict[str, Estimate] = {}
    for measure in MEASURES:
        found.update(measure(prior, mechanism, epsilon))
    return found


def _local(prior: Pmf, mechanism: Any, epsilon: FloatArray) -> Mapping[str, Estimate]:
    return {
        "ldp_delta": mechanism.delta(epsilon),
        "log_ldp_delta": mechanism.log_delta(epsilon),
        "ldp_epsilon": mechanism.epsilon(LDP_DELTA),
    }


def _information(prior: Pmf, mechanism: Any, epsilon: FloatArray) -> Mapping[str, Estimate]:
    delta, log_delta = notions.lip_curves(prior, mechanism, epsilon)
    return {"lip_delta": delta, "log_lip_delta": log_delta}


def _average(prior: Pmf, mechanism: Any, epsilon: FloatArray) -> Mapping[str, Estimate]:
    return {"mutual_information": notions.cd_lmip(prior, mechanism).to("bits")}


def _bayesian(prior: Pmf, mechanism: Any, epsilon: FloatArray) -> Mapping[str, Estimate]:
    abp = notions.abp(prior, mechanism)
    return {"abp_max": abp.maximum, "abp_mean": abp.mean, "mbp_xi": notions.mbp_xi(prior, mechanism)}


FAMILIES: Mapping[str, Family] = {"gaussian": Family("gaussian", "N(0, sigma^2)", GaussianMechanism)}

MEASURES: tuple[Callable[[Pmf, Any, FloatArray], Mapping[str, Estimate]], ...] = (
    _local, _information, _average, _bayesian,
)  # fmt: skip

QUANTITIES: Mapping[str, Quantity] = {
    row.name: row
    for row in (
        Quantity("ldp_delta", "probability", True, "local differential privacy: delta(epsilon) between any two values"),
        Quantity("log_ldp_delta", "log probability", True, "natural logarithm of ldp_delta, for deltas below 1e-300"),
        Quantity("ldp_epsilon", "nats", False, "local differential privacy: epsilon at delta = 1e-5"),
        Quantity("lip_delta", "probability", True, "local information privacy: delta(epsilon), one value against all"),
        Quantity("log_lip_delta", "log probability", True, "natural logarithm of lip_delta, for deltas below 1e-300"),
        Quantity("mutual_information", "bits", False, "average information about the value in its release (CD-LMIP)"),
        Quantity("abp_max", "1", False, "average Bayesian privacy: shift of beliefs at the worst value, 0 to 0.8326"),
        Quantity("abp_mean", "1", False, "average Bayesian privacy: shift of beliefs, averaged over the column"),
        Quantity("mbp_xi", "nats", False, "maximum Bayesian privacy: largest |log(posterior / prior)| of any release"),
    )
}
