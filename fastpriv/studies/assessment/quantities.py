"""The quantities that an assessment computes of Gaussian noise or a channel, as arrays over the grid.

To add a quantity, add its row to ``QUANTITIES`` and its computation to ``_gaussian_quantities`` or
``_channel_quantities``.

A quantity of a channel that takes too long to compute (the curve of a million rows; a distribution of 2**42 outputs
under a prior without symmetry) is bounded by quantities that every channel gives. Notation: e is the pure LDP epsilon
of the channel, xi_plus and xi_minus are the sides of its MBP under the prior. A hockey-stick divergence of two
distributions within a ratio of e^e is at most (e^e - e^epsilon)^+ / (1 + e^e). LIP is at most LDP at each epsilon,
since the distribution of the output is a mixture of rows. A best guess gains at most e^xi_plus. The value of a quantity
of which only bounds are known is its upper bound.
"""

# bounds: proved - docs/proofs/roundings.md, 13.3: rounding of the entropy that caps an information, and underflow

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import notions
from ...base.errors import TooLargeError
from ...base.estimate import KINDS, Estimate, Unit, equal_fields, exact
from ...base.numerics import FloatArray, IntArray
from ...channels import AnyChannel
from ...conversions.average_bayesian_privacy import abp_given_secret_from_mbp
from ...mechanisms import GaussianMechanism, GeometricMechanism
from .secret import SecretDistribution

LDP_DELTA = 1e-5  # the delta at which the approximate LDP epsilon is reported, as is usual
_BOUNDS_ALONE = "bounds alone"  # the method of an estimate that is no more than bounds begins with this
_MAX_COMPARISONS = 2**31  # inputs^2 times outputs that are compared for a curve: some seconds
# The capacity is solved for channels of at most _MAX_SOLVER_CELLS cells. Channels of more than _MAX_WRITTEN_CELLS are
# known by structure, so that their capacity is a closed form.
_MAX_SOLVER_CELLS, _MAX_WRITTEN_CELLS = 2**20, 2**32
# Cells of a geometric mechanism that are made from its parameters: all rows up to the first number, and up to the
# second only those of the inputs that occur.
_MAX_ALL_CELLS, _MAX_OCCURRING_CELLS = 2**24, 2**28
# bound: proved - docs/proofs/roundings.md, 13.3: relative error of the maximal leakage of geometric noise
_LEAKAGE_ROUNDING = 1e-14
# bound: proved - docs/proofs/roundings.md, 13.3: rounding where a level is turned into a bound
_ROUNDING_UP = 1.0 + 1e-14
_EPSILON_RTOL = 1e-6  # relative width at which the bisection for an epsilon stops
_LARGEST_EPSILON = 700.0  # exp of more overflows


@dataclass(frozen=True)
class Quantity:
    """A quantity: its name, unit, whether it is a curve over epsilon, and its meaning in one line."""

    name: str
    unit: Unit
    curve: bool
    meaning: str


# Every quantity of the report by its name, in the order of the table; first those of statistics alone.
QUANTITIES: Mapping[str, Quantity] = {
    quantity.name: quantity
    for quantity in (
        Quantity("noise_deviation", "1", False, "standard error of the answer by the noise, in its unit"),
        Quantity("noise_half_width", "1", False, "95 % of releases are within this of the answer without noise"),
        Quantity("noise_share", "1", False, "share of the noise in the variance of a mean, beside sampling"),
        Quantity("dp_delta", "probability", True, "differential privacy: delta(epsilon) between neighbouring data"),
        Quantity("dp_epsilon", "nats", False, "differential privacy: epsilon at delta = 1e-5"),
        Quantity("pure_dp_epsilon", "nats", False, "differential privacy: epsilon at delta = 0"),
        Quantity("ldp_delta", "probability", True, "local differential privacy: delta(epsilon) between any two values"),
        Quantity("log_ldp_delta", "log probability", True, "natural logarithm of ldp_delta, for deltas below 1e-300"),
        Quantity("ldp_epsilon", "nats", False, "local differential privacy: epsilon at delta = 1e-5"),
        Quantity("pure_ldp_epsilon", "nats", False, "local differential privacy: epsilon at delta = 0"),
        Quantity("lip_delta", "probability", True, "local information privacy: delta(epsilon), one value against all"),
        Quantity("log_lip_delta", "log probability", True, "natural logarithm of lip_delta, for deltas below 1e-300"),
        Quantity("mutual_information", "nats", False, "average information about the value in its release (CD-LMIP)"),
        Quantity("capacity", "nats", False, "the same under the prior that leaks most (CI-LMIP)"),
        Quantity("abp_max", "1", False, "average Bayesian privacy: shift of beliefs at the worst value, 0 to 0.8326"),
        Quantity("abp_mean", "1", False, "average Bayesian privacy: shift of beliefs, averaged over the column"),
        Quantity("mbp_xi", "nats", False, "maximum Bayesian privacy: largest |log(posterior / prior)| of any release"),
        Quantity("bayes_vulnerability", "probability", False, "chance that a best guess of the value is right"),
        Quantity("min_entropy_leakage", "nats", False, "log of how many times likelier a best guess gets to be right"),
        Quantity("maximal_leakage", "nats", False, "the same for the worst prior and any function of the value"),
    )
}


@dataclass(frozen=True, eq=False)
class QuantityGrid:
    """A quantity over the grid: arrays of shape (s,) or (s, e), kind and method for each of the s rows."""

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    kind: tuple[str, ...]
    method: tuple[str, ...]

    def __eq__(self, other: object) -> Any:
        return equal_fields(self, other)

    @classmethod
    def stack(cls, estimates: list[Estimate]) -> QuantityGrid:
        """Stack the estimates of consecutive rows."""
        value, lower, upper = (
            np.array([getattr(e, name) for e in estimates], dtype=np.float64) for name in ("value", "lower", "upper")
        )
        return cls(value, lower, upper, tuple(e.kind for e in estimates), tuple(e.method for e in estimates))

    @classmethod
    def concatenate(cls, blocks: list[QuantityGrid]) -> QuantityGrid:
        """Join blocks of consecutive rows, in order."""
        value, lower, upper = (np.concatenate([getattr(b, x) for b in blocks]) for x in ("value", "lower", "upper"))
        kind, method = (tuple(word for b in blocks for word in getattr(b, x)) for x in ("kind", "method"))
        return cls(value, lower, upper, kind, method)

    def is_bound_only(self, row: int) -> bool:
        """Whether only bounds are known in this row, so that the value is the upper one."""
        return self.method[row].startswith(_BOUNDS_ALONE)

    @property
    def weakest_kind(self) -> str:
        """The weakest kind of bounds anywhere on the grid."""
        return max(set(self.kind), key=KINDS.index)


def compute_quantities(secret: SecretDistribution, mechanism: Any, epsilon: FloatArray) -> dict[str, Estimate]:
    """Compute every quantity of one mechanism, the curves at all of ``epsilon``."""
    if isinstance(mechanism, AnyChannel):
        return _channel_quantities(secret, mechanism, epsilon)
    return _gaussian_quantities(secret, mechanism, epsilon)


def mutual_information(secret: SecretDistribution, channel: AnyChannel) -> Estimate:
    """Compute the mutual information of a channel alone, as ``compute_quantities`` gives it."""
    prior, rows = _occurring_rows(secret, channel)
    information = _unless_too_large(lambda: notions.cd_lmip(prior, rows, n_jobs=1)) if rows else None
    return _capacity_and_information(secret, channel, None, math.inf)[1] if information is None else information


def _gaussian_quantities(
    secret: SecretDistribution, mechanism: GaussianMechanism, epsilon: FloatArray
) -> dict[str, Estimate]:
    lip_delta, log_lip_delta = notions.lip_curves(secret.prior, mechanism, epsilon)
    abp = notions.abp(secret.prior, mechanism)
    return {
        "ldp_delta": mechanism.delta(epsilon),
        "log_ldp_delta": mechanism.log_delta(epsilon),
        "ldp_epsilon": mechanism.epsilon(LDP_DELTA),
        "pure_ldp_epsilon": mechanism.epsilon(0.0),
        "lip_delta": lip_delta,
        "log_lip_delta": log_lip_delta,
        "mutual_information": notions.cd_lmip(secret.prior, mechanism),
        "abp_max": abp.maximum,
        "abp_mean": abp.mean,
        "mbp_xi": notions.lip_epsilon(secret.prior, mechanism),
        "bayes_vulnerability": notions.bayes_vulnerability(secret.prior, mechanism),
    }


def _channel_quantities(secret: SecretDistribution, channel: AnyChannel, epsilon: FloatArray) -> dict[str, Estimate]:
    prior, rows = _occurring_rows(secret, channel)
    summary = None if rows is None else notions.summary(prior, rows, n_jobs=1)
    pure_epsilon = summary.ldp_epsilon if summary and rows is channel else None
    pure_epsilon = pure_epsilon or notions.ldp_epsilon(None, channel, n_jobs=1)
    largest_epsilon = float(pure_epsilon.upper)
    mbp = notions.mbp(secret.input_probabilities, channel, n_jobs=1)

    ldp_delta, ldp_epsilon = _ldp(channel, epsilon, largest_epsilon)
    lip_delta = _unless_too_large(lambda: notions.lip_delta(prior, rows, epsilon, n_jobs=1)) if rows else None
    if rows is channel:
        maximal_leakage = _unless_too_large(lambda: notions.maximal_leakage(None, channel, n_jobs=1))
    else:
        maximal_leakage = _geometric_maximal_leakage(channel)
    # Maximal leakage is at most the pure LDP epsilon, and bounds the capacity and the leakage of a best guess.
    most = largest_epsilon if maximal_leakage is None else min(largest_epsilon, float(maximal_leakage.upper))
    vulnerability, leakage = (summary.bayes_vulnerability, summary.min_entropy_leakage) if summary else (None, None)
    if vulnerability is None or leakage is None:
        vulnerability, leakage = _vulnerability_bounds(float(prior.max()), float(mbp.plus.upper), most)
    capacity, information = _capacity_and_information(secret, channel, summary.cd_lmip if summary else None, most)
    abp = (summary.abp or _unless_too_large(lambda: notions.abp(prior, rows, n_jobs=1))) if summary and rows else None
    if lip_delta is None:
        lip_delta = _at_most(ldp_delta.upper, "probability", why="no more than LDP")
    abp_bound = _abp_bound(float(mbp.xi.upper))
    return {
        "ldp_delta": ldp_delta,
        "ldp_epsilon": ldp_epsilon,
        "pure_ldp_epsilon": pure_epsilon,
        "lip_delta": lip_delta,
        "mutual_information": information,
        "capacity": capacity,
        "abp_max": abp_bound if abp is None else abp.maximum,
        "abp_mean": abp_bound if abp is None else abp.mean,
        "mbp_xi": mbp.xi,
        "bayes_vulnerability": vulnerability,
        "min_entropy_leakage": leakage,
        "maximal_leakage": _at_most(most, "nats") if maximal_leakage is None else maximal_leakage,
    }


class _OccurringRows(AnyChannel):
    """The rows of the inputs that occur, of a channel whose rows are made one by one."""

    __slots__ = _fields = ("channel", "inputs_that_occur")

    channel: AnyChannel
    inputs_that_occur: IntArray

    def __init__(self, channel: AnyChannel, inputs_that_occur: IntArray) -> None:
        self._set(channel=channel, inputs_that_occur=inputs_that_occur)

    @property
    def inputs(self) -> int:
        return self.inputs_that_occur.size

    @property
    def outputs(self) -> int:
        return self.channel.outputs

    @property
    def mass_gap(self) -> float:
        return self.channel.mass_gap

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        return np.concatenate([self.channel._log_rows(i, i + 1) for i in self.inputs_that_occur[start:stop].tolist()])


def _occurring_rows(secret: SecretDistribution, channel: AnyChannel) -> tuple[FloatArray, AnyChannel | None]:
    """Return prior and channel, restricted to the inputs that occur where all would take long; None if these do too."""
    if not isinstance(channel, GeometricMechanism) or channel.inputs * channel.outputs <= _MAX_ALL_CELLS:
        return secret.input_probabilities, channel
    rows = _OccurringRows(channel, secret.input_indices)
    return secret.prior.probabilities, rows if rows.inputs * rows.outputs <= _MAX_OCCURRING_CELLS else None


def _unless_too_large(quantity: Callable[[], Any]) -> Any:
    """Compute the quantity; return None if the channel is too large to enumerate."""
    try:
        return quantity()
    except (TooLargeError, MemoryError):
        return None


def _ldp(channel: AnyChannel, epsilon: FloatArray, pure_epsilon: float) -> tuple[Estimate, Estimate]:
    """Return the LDP curve and the epsilon at ``LDP_DELTA``, or what the pure epsilon says of them."""
    if not (channel._cells_within(_MAX_COMPARISONS, exponent=2) or channel.dominating_pairs() is not None):
        return _worst_curve(pure_epsilon, epsilon), _at_most(pure_epsilon, "nats")
    curve = _unless_too_large(lambda: notions.ldp_delta(None, channel, epsilon, n_jobs=1))
    return _worst_curve(pure_epsilon, epsilon) if curve is None else curve, _approximate_epsilon(channel, pure_epsilon)


def _approximate_epsilon(channel: AnyChannel, pure_epsilon: float) -> Estimate:
    """Find the LDP epsilon at ``LDP_DELTA`` by bisection; each step compares all pairs of rows once."""

    def delta(epsilon: float) -> Estimate:
        return notions.ldp_delta(None, channel, epsilon, n_jobs=1)

    low, high = 0.0, min(pure_epsilon, _LARGEST_EPSILON)
    if delta(0.0).upper <= LDP_DELTA:
        high = 0.0
    elif delta(high).upper > LDP_DELTA:
        low, high = (high if delta(high).lower > LDP_DELTA else 0.0), pure_epsilon
    while _EPSILON_RTOL * high < high - low < math.inf:
        middle = 0.5 * (low + high)
        at_middle = delta(middle)
        if at_middle.upper <= LDP_DELTA:
            high = middle
        elif at_middle.lower > LDP_DELTA:
            low = middle
        else:
            break
    return Estimate(high, low, high, kind="certified", unit="nats", method="bisection of the curve")


def _geometric_maximal_leakage(channel: Any) -> Estimate:
    """log of the sum over outputs of the largest likelihood, which for geometric noise is that of the same input."""
    alpha = -math.expm1(-channel.epsilon)
    leakage = math.log1p((channel.inputs - 1) * alpha / (2.0 - alpha))
    error = _LEAKAGE_ROUNDING * leakage + (2e-323 if channel.inputs > 1 else 0.0)  # of subnormal numbers
    return exact(leakage, error, unit="nats", method="closed form", least=0.0)


def _capacity_and_information(
    secret: SecretDistribution, channel: AnyChannel, information: Estimate | None, most: float
) -> tuple[Estimate, Estimate]:
    """Return capacity and mutual information in nats, each bounded by the other where it is unknown."""
    solvable = channel._cells_within(_MAX_SOLVER_CELLS) or not channel._cells_within(_MAX_WRITTEN_CELLS)
    capacity = _unless_too_large(lambda: notions.ci_lmip(channel, n_jobs=1)) if solvable else None
    if capacity is None:
        least = 0.0 if information is None else float(information.lower)
        capacity = _at_most(min(math.log(channel.inputs), most), "nats", least, "no more than maximal leakage")
    if information is None:
        p = secret.prior.probabilities
        entropy = -float(np.sum(p * np.log(p))) * (1.0 + 1e-13) + 1e-15  # p itself is rounded
        information = _at_most(min(entropy, float(capacity.upper)), "nats")
    return capacity, information


def _at_most(upper: Any, unit: Unit, lower: Any = 0.0, why: str = "more releases than can be gone through") -> Estimate:
    """Return a quantity of which only bounds are known; its value is the upper one."""
    return Estimate(
        upper, np.minimum(lower, upper) + np.zeros(np.shape(upper)), upper, kind="certified", unit=unit,
        method=f"{_BOUNDS_ALONE}: {why}",
    )


def _worst_curve(pure_epsilon: float, epsilon: FloatArray) -> Estimate:
    """Bound the LDP curve by that of the worst channel with this pure LDP epsilon, binary randomised response."""
    gap = np.maximum(pure_epsilon - epsilon, 0.0)
    truth = 1.0 if pure_epsilon > _LARGEST_EPSILON else 1.0 / (1.0 + math.exp(-pure_epsilon))
    most = np.minimum(1.0, -np.expm1(-gap) * truth * _ROUNDING_UP + 5e-324 * (gap > 0.0))
    return _at_most(most, "probability", why="the worst curve of its LDP epsilon")


def _abp_bound(xi: float) -> Estimate:
    """Bound the ABP of a channel with this MBP, for a release drawn at a true value."""
    return _at_most(float(abp_given_secret_from_mbp(xi).upper), "1")


def _vulnerability_bounds(
    prior_vulnerability: float, xi_plus: float, maximal_leakage: float
) -> tuple[Estimate, Estimate]:
    """Bound the posterior vulnerability and the min-entropy leakage, in nats."""
    most = max(0.0, min(xi_plus, maximal_leakage, -math.log(prior_vulnerability)) * _ROUNDING_UP)
    posterior_vulnerability = min(1.0, prior_vulnerability * math.exp(most) * _ROUNDING_UP)
    return _at_most(posterior_vulnerability, "probability", prior_vulnerability), _at_most(most, "nats")
