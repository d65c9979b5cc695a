"""What an assessment computes: the quantities, and arrays of them over its grid.

To add one, add its row to ``QUANTITIES`` and a function to ``measures`` that returns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..estimate import KINDS, Estimate

__all__ = ["BOUND", "QUANTITIES", "Quantity", "Surface"]

FloatArray = NDArray[np.float64]
BOUND = "bounds alone"  # how the method of an estimate begins that is no more than that


@dataclass(frozen=True)
class Quantity:
    """A quantity: its name, unit, whether it is a curve over epsilon, and its meaning in one line."""

    name: str
    unit: str
    curve: bool
    meaning: str


@dataclass(frozen=True, eq=False)
class Surface:
    """A quantity over the grid: arrays of shape (s,) or (s, e), kind and method for each of the s rows."""

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    kind: tuple[str, ...]
    method: tuple[str, ...]

    @classmethod
    def stacked(cls, estimates: list[Estimate]) -> Surface:
        """The estimates of consecutive rows, one above the other."""
        value, lower, upper = (
            np.array([getattr(e, name) for e in estimates], dtype=np.float64) for name in ("value", "lower", "upper")
        )
        return cls(value, lower, upper, tuple(e.kind for e in estimates), tuple(e.method for e in estimates))

    @classmethod
    def joined(cls, parts: list[Surface]) -> Surface:
        """Blocks of consecutive rows, in order."""
        value, lower, upper = (np.concatenate([getattr(p, x) for p in parts]) for x in ("value", "lower", "upper"))
        kind, method = (tuple(word for p in parts for word in getattr(p, x)) for x in ("kind", "method"))
        return cls(value, lower, upper, kind, method)

    def bound_alone(self, row: int) -> bool:
        """Whether only bounds are known there, and the value is the upper one."""
        return self.method[row].startswith(BOUND)

    @property
    def weakest_kind(self) -> str:
        """The least that is claimed of the bounds anywhere on the grid."""
        return max(set(self.kind), key=KINDS.index)


QUANTITIES: Mapping[str, Quantity] = {
    row.name: row
    for row in (
        Quantity("ldp_delta", "probability", True, "local differential privacy: delta(epsilon) between any two values"),
        Quantity("log_ldp_delta", "log probability", True, "natural logarithm of ldp_delta, for deltas below 1e-300"),
        Quantity("ldp_epsilon", "nats", False, "local differential privacy: epsilon at delta = 1e-5"),
        Quantity("pure_ldp_epsilon", "nats", False, "local differential privacy: epsilon at delta = 0"),
        Quantity("lip_delta", "probability", True, "local information privacy: delta(epsilon), one value against all"),
        Quantity("log_lip_delta", "log probability", True, "natural logarithm of lip_delta, for deltas below 1e-300"),
        Quantity("mutual_information", "nats", False, "average information about the value in its release (CD-LMIP)"),
        Quantity("capacity", "nats", False, "the same under the law of values that leaks most (CI-LMIP)"),
        Quantity("abp_max", "1", False, "average Bayesian privacy: shift of beliefs at the worst value, 0 to 0.8326"),
        Quantity("abp_mean", "1", False, "average Bayesian privacy: shift of beliefs, averaged over the column"),
        Quantity("mbp_xi", "nats", False, "maximum Bayesian privacy: largest |log(posterior / prior)| of any release"),
        Quantity("bayes_vulnerability", "probability", False, "chance that a best guess of the value is right"),
        Quantity("min_entropy_leakage", "nats", False, "log of how many times likelier a best guess gets to be right"),
        Quantity("maximal_leakage", "nats", False, "the same for the worst law of values and any function of them"),
    )
}
