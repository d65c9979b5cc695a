"""The quantities of one mechanism: Gaussian noise, or a channel.

What a channel does not give away in reasonable time (the curve of a million rows; a law of 2**42 releases under a prior
without symmetry) is bracketed by what it does.
"""

# bounds: tested by surfaces/test_assess_channels - rounding of the entropy that caps an information

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import notions
from ..channels import AnyChannel, GeometricMechanism
from ..errors import DomainError
from ..estimate import Estimate
from . import brackets
from .inputs.secrets import Secret

__all__ = ["information", "measured"]

FloatArray = NDArray[np.float64]
LDP_DELTA = 1e-5
_PAIRS = 2**31  # rows times rows times releases that are compared for a curve
_CELLS, _WRITTEN = 2**20, 2**32  # of a channel whose capacity is solved for; more are known by structure
_MADE, _LONGEST = 2**24, 2**28  # cells made from parameters: all of them up to here; those of values that occur
# bound: tested by surfaces/test_assess_channels - rounding of the maximal leakage of geometric noise
_ROUNDING = 1e-14
_NARROW = 1e-6  # relative width of an epsilon
_LARGEST = 700.0


def measured(secret: Secret, mechanism: Any, epsilon: FloatArray) -> dict[str, Estimate]:
    """Every quantity of one mechanism; the curves at all of ``epsilon``."""
    if isinstance(mechanism, AnyChannel):
        return _channel(secret, mechanism, epsilon)
    found: dict[str, Estimate] = {}
    for measure in GAUSSIAN:
        found.update(measure(secret, mechanism, epsilon))
    return found


def _local(secret: Secret, mechanism: Any, epsilon: FloatArray) -> Mapping[str, Estimate]:
    return {
        "ldp_delta": mechanism.delta(epsilon),
        "log_ldp_delta": mechanism.log_delta(epsilon),
        "ldp_epsilon": mechanism.epsilon(LDP_DELTA),
        "pure_ldp_epsilon": mechanism.epsilon(0.0),
    }


def _information(secret: Secret, mechanism: Any, epsilon: FloatArray) -> Mapping[str, Estimate]:
    delta, log_delta = notions.lip_curves(secret.prior, mechanism, epsilon)
    return {"lip_delta": delta, "log_lip_delta": log_delta}


def _average(secret: Secret, mechanism: Any, epsilon: FloatArray) -> Mapping[str, Estimate]:
    return {"mutual_information": notions.cd_lmip(secret.prior, mechanism)}


def _bayesian(secret: Secret, mechanism: Any, epsilon: FloatArray) -> Mapping[str, Estimate]:
    abp = notions.abp(secret.prior, mechanism)
    return {"abp_max": abp.maximum, "abp_mean": abp.mean, "mbp_xi": notions.mbp_xi(secret.prior, mechanism)}


GAUSSIAN: tuple[Callable[[Secret, Any, FloatArray], Mapping[str, Estimate]], ...] = (
    _local, _information, _average, _bayesian,
)  # fmt: skip


def _channel(secret: Secret, channel: AnyChannel, epsilon: FloatArray) -> dict[str, Estimate]:
    prior, rows = _occurring(secret, channel)
    known = None if rows is None else notions.summary(prior, rows, n_jobs=1)
    level = (known.ldp_epsilon if known and rows is channel else None) or notions.ldp_epsilon(None, channel, n_jobs=1)
    sides = notions.mbp(secret.weights, channel, n_jobs=1)
    reach = float(level.upper)
    ldp = _curve(lambda e: notions.ldp_delta(None, channel, e, n_jobs=1), epsilon, reach, _comparable(channel))
    lip = _known(lambda: notions.lip_delta(prior, rows, epsilon, n_jobs=1)) if rows else None
    maximal = _known(lambda: notions.maximal_leakage(None, channel, n_jobs=1)) if rows is channel else _maximal(channel)
    most = reach if maximal is None else min(reach, float(maximal.upper))
    guess, leak = (known.bayes_vulnerability, known.min_entropy_leakage) if known else (None, None)
    if guess is None or leak is None:
        guess, leak = brackets.gain(float(prior.max()), float(sides.plus.upper), most)
    capacity, average = _capacities(secret, channel, known.cd_lmip if known else None, most)
    abp = (known.abp or _known(lambda: notions.abp(prior, rows, n_jobs=1))) if known else None
    shift = brackets.shift(float(sides.xi.upper))
    return {
        "ldp_delta": ldp,
        "ldp_epsilon": _approximate(channel, reach) if _comparable(channel) else brackets.below(reach, "nats"),
        "pure_ldp_epsilon": level,
        "lip_delta": brackets.below(ldp.upper, "probability", why="no more than LDP") if lip is None else lip,
        "mutual_information": average,
        "capacity": capacity,
        "abp_max": shift if abp is None else abp.maximum,
        "abp_mean": shift if abp is None else abp.mean,
        "mbp_xi": sides.xi,
        "bayes_vulnerability": guess,
        "min_entropy_leakage": leak,
        "maximal_leakage": brackets.below(most, "nats") if maximal is None else maximal,
    }


def information(secret: Secret, channel: AnyChannel) -> Estimate:
    """Mutual information of a channel, as ``measured`` gives it."""
    prior, rows = _occurring(secret, channel)
    found = _known(lambda: notions.cd_lmip(prior, rows, n_jobs=1)) if rows else None
    return _capacities(secret, channel, found, math.inf)[1] if found is None else found


class _Occurring(AnyChannel):
    """The rows of the values that occur, of a channel whose rows are made one by one."""

    __slots__ = _fields = ("channel", "places")

    channel: AnyChannel
    places: NDArray[np.int64]

    def __init__(self, channel: AnyChannel, places: NDArray[np.int64]) -> None:
        self._set(channel=channel, places=places)

    @property
    def inputs(self) -> int:
        return self.places.size

    @property
    def outputs(self) -> int:
        return self.channel.outputs

    @property
    def mass_gap(self) -> float:
        return self.channel.mass_gap

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        return np.concatenate([self.channel._log_rows(place, place + 1) for place in self.places[start:stop].tolist()])


def _occurring(secret: Secret, channel: AnyChannel) -> tuple[FloatArray, AnyChannel | None]:
    """Law and channel of the values that occur, where others cost time; None for more than time allows."""
    if not isinstance(channel, GeometricMechanism) or channel.inputs * channel.outputs <= _MADE:
        return secret.weights, channel
    law, rows = secret.prior.probabilities, _Occurring(channel, secret.places)
    return law, rows if rows.inputs * rows.outputs <= _LONGEST else None


def _maximal(channel: Any) -> Estimate:
    """log of the sum over releases of the largest likelihood, which of geometric noise is that of the same secret."""
    step = -math.expm1(-channel.epsilon)
    found = math.log1p((channel.inputs - 1) * step / (2.0 - step))
    ends = found * (1.0 - _ROUNDING), found * (1.0 + _ROUNDING)
    return Estimate(found, *ends, kind="exact", unit="nats", method="closed form")


def _known(quantity: Callable[[], Any]) -> Any:
    """None where it would take releases that nobody can go through."""
    try:
        return quantity()
    except (DomainError, MemoryError):
        return None


def _comparable(channel: AnyChannel) -> bool:
    """Whether all pairs of rows can be compared, or need not be."""
    return channel._cells_within(_PAIRS, secrets=2) or channel.pairs() is not None


def _curve(
    curve: Callable[[FloatArray], Estimate], epsilon: FloatArray, level: float, comparable: bool
) -> Estimate:  # fmt: skip
    found = _known(lambda: curve(epsilon)) if comparable else None
    return brackets.curve(level, epsilon) if found is None else found


def _capacities(
    secret: Secret, channel: AnyChannel, information: Estimate | None, most: float
) -> tuple[Estimate, Estimate]:
    """Capacity and mutual information in nats, each a bound of the other where it is unknown."""
    small = channel._cells_within(_CELLS) or not channel._cells_within(_WRITTEN)
    capacity = _known(lambda: notions.ci_lmip(channel, n_jobs=1)) if small else None
    if capacity is None:
        least = 0.0 if information is None else float(information.lower)
        capacity = brackets.below(min(math.log(channel.inputs), most), "nats", least, "no more than maximal leakage")
    if information is None:
        p = secret.prior.probabilities
        entropy = -float(np.sum(p * np.log(p))) * (1.0 + 1e-13)
        information = brackets.below(min(entropy, float(capacity.upper)), "nats")
    return capacity, information


def _approximate(channel: AnyChannel, level: float) -> Estimate:
    """The epsilon of LDP at delta = 1e-5: bisection, one comparison of all pairs a step."""

    def at(epsilon: float) -> Estimate:
        return notions.ldp_delta(None, channel, epsilon, n_jobs=1)

    low, high = 0.0, min(level, _LARGEST)
    if at(0.0).upper <= LDP_DELTA:
        high = 0.0
    elif at(high).upper > LDP_DELTA:
        low, high = (high if at(high).lower > LDP_DELTA else 0.0), level
    while _NARROW * high < high - low < math.inf:
        middle = 0.5 * (low + high)
        found = at(middle)
        if found.upper <= LDP_DELTA:
            high = middle
        elif found.lower > LDP_DELTA:
            low = middle
        else:
            break
    return Estimate(high, low, high, kind="certified", unit="nats", method="bisection of the curve")
