"""Quantities of d-dimensional mixtures that are one-dimensional in disguise, by the certified one-dimensional path.

Every function answers None where ``recognition.factors`` finds no reduction. Notation as there: eta is the slack, D the
diameter of all means, both in the metric K^-1 of the one covariance K; u = p/q.

Slack. The means move along m_i(t) = m~_i + t d_i, |d_i| <= eta, 0 <= t <= 1, from the line to where they are. Write
m_p(x) and d_p(x) for the posterior means of m_i and d_i given x under P, and likewise for Q. In units K = I the score
is grad log p = m_p(x) - x, so that grad log u = m_p - m_q, and partial integration gives for f convex

    d/dt of the integral of q f(u) = the integral of q u^2 f''(u) (d_p - d_q).(m_p - m_q),

where |d_p - d_q| <= 2 eta and |m_p - m_q| <= D. So the whole path changes

* KL (q u^2 f'' = p) by at most 2 eta E, E = E_P |m_p - m_q| <= D;
* JS (q u^2 f'' = pq / 2(p + q), of mass <= 1/4 and at most p/2) by at most eta min(D/2, E);
* D_a (f = u^a; d/dt log of the integral is a(a - 1) times a mean of the same product) by at most 2 a eta D;
* the entropy, whose derivative is -E_P d_p.(m_p - x) = -sum w_i d_i . E_i (m_p - m_i), by at most eta D, and so the
  mutual information of label and output, which differs from it by a constant.

For E: with c the centre of the line, E_P |m_p - m_q| is at most the integral of |sum w_i N_i (m_i - c) - sum v_i N_i
(m_i - c)| + (D/2) |p - q|; where components share a position of the line, up to 2 eta apart and so within 0.8 eta in
total variation, E <= D |w - v|_1 + (2 + 2 D) eta.

Hockey-sticks. N_i and N~_i differ on {|z| <= X}, z the sample's normal coordinate along d_i, by a factor within
e^(+-kappa), kappa = eta X + eta^2/2, and each has at most tau = e^(-X^2/2) outside. So P(A) <= e^kappa P~(A) + tau and
P(A) >= e^-kappa P~(A) - tau for every event A, likewise Q, and with a = e^epsilon

    e^-kappa H_{epsilon + 2 kappa}(P~||Q~) - (1 + a) tau <= H_epsilon(P||Q)
        <= e^kappa H_{epsilon - 2 kappa}(P~||Q~) + (1 + a) tau.

X is chosen for every epsilon such that (1 + a) tau is e^-40 of a first lower bound. At epsilon < 2 kappa the order is
cut at 0, and H_b - H_1 <= 1 - b for b < 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...distributions import GaussianMixture, Pmf
from ...estimate import Estimate, Kind
from ..line.hockey_stick import hockey_stick_divergence, log_hockey_stick_divergence
from ..line.information import entropy as line_entropy
from ..line.information import mutual_information as line_information
from ..line.kl import jensen_shannon as line_jensen_shannon
from ..line.kl import kl_divergence
from ..line.renyi import renyi_divergence
from . import gaussians
from .rationals import log_determinant
from .recognition import Line, equal, factors, one_normal_law

__all__ = [
    "entropy", "hockey_stick", "jensen_shannon", "kl", "log_hockey_stick", "mutual_information", "renyi",
    "total_variation",
]  # fmt: skip

FloatArray = NDArray[np.float64]
_LOG_2_PI_E = 2.8378770664093454836
_UNIT = 2.0**-53
_MASS = 1.00001  # masses up to 1 + 1e-9 and the rounding of a bound
_KINDS: tuple[Kind, ...] = ("exact", "certified", "heuristic")
_BELOW = 40.0  # logarithm of the part of a hockey-stick that its window may leave out


def kl(p: GaussianMixture, q: GaussianMixture, *, certified: bool = False) -> Estimate | None:
    """KL(P||Q) in nats; the sum over independent factors."""

    def part(line: Line) -> Estimate:
        error = 2 * line.slack * _mean_gap(line)
        return _between(line, lambda laws: kl_divergence(laws[0], laws[1], certified=certified), error)

    found = _added(p, q, part)
    return gaussians.kl(p, q) if found is None and one_normal_law(p) and one_normal_law(q) else found


def renyi(p: GaussianMixture, q: GaussianMixture, order: float, *, certified: bool = False) -> Estimate | None:
    """D_order(P||Q) in nats; the sum over independent factors, infinite if one of them is."""
    if order == 1.0:
        return kl(p, q, certified=certified)

    def part(line: Line) -> Estimate:
        error = 2 * order * line.slack * line.extent
        return _between(line, lambda laws: renyi_divergence(laws[0], laws[1], order, certified=certified), error)

    found = _added(p, q, part)
    return gaussians.renyi(p, q, order) if found is None and one_normal_law(p) and one_normal_law(q) else found


def jensen_shannon(p: GaussianMixture, q: GaussianMixture, *, certified: bool = False) -> Estimate | None:
    """JS(P, Q) in nats, where one factor alone tells them apart."""
    line = _one(p, q)
    if not isinstance(line, Line):
        return line
    error = line.slack * min(line.extent / 2, _mean_gap(line))
    found = _between(line, lambda laws: line_jensen_shannon(laws[0], laws[1], certified=certified), error)
    ceiling = math.nextafter(math.log(2.0), 1.0)
    found = _with(found, min(found.value, ceiling), found.lower, min(found.upper, ceiling))
    return _sum([found], "reduced to the line")


def hockey_stick(p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike) -> Estimate | None:
    """H_{e^epsilon}(P||Q), where one factor alone tells them apart."""
    return _sticks(p, q, epsilon, logs=False)


def log_hockey_stick(p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike) -> Estimate | None:
    """log H_{e^epsilon}(P||Q), where one factor alone tells them apart."""
    return _sticks(p, q, epsilon, logs=True)


def total_variation(p: GaussianMixture, q: GaussianMixture) -> Estimate | None:
    """Total variation distance, where one factor alone tells them apart."""
    return _sticks(p, q, 0.0, logs=False)


def entropy(p: GaussianMixture, *, certified: bool = False) -> Estimate | None:
    """Differential entropy in nats: that of the noise plus the information about the label, or of one coordinate."""
    lines = factors(p)
    if lines is None:
        return None
    if not lines:
        return _noise(p, None)
    line = lines[0]
    if line.axis is not None and np.ptp(line.narrow[0].sigmas):
        return _sum([line_entropy(line.narrow[0], certified=certified), _noise(p, line.axis)], "reduced to the line")
    return _sum([_information(line, certified=certified), _noise(p, None)], "reduced to the line")


def mutual_information(p: GaussianMixture, *, certified: bool = False) -> Estimate | None:
    """Information in nats between the component of a mixture and the sample: I(X; X + noise) for a discrete X."""
    lines = factors(p)
    if lines is None:
        return None
    if not lines:
        return Estimate(0.0, 0.0, 0.0, kind="exact", unit="nats", method="one input")
    law = lines[0].narrow[0]
    if not np.ptp(law.sigmas):
        return _sum([_information(lines[0], certified=certified)], "reduced to the line")
    found = line_entropy(law, certified=certified)
    logs = np.log(law.sigmas)
    noise = math.fsum((law.weights * (_LOG_2_PI_E / 2 + logs)).tolist())
    error = 4 * _UNIT * (math.fsum((law.weights * (3 + np.abs(logs))).tolist()) + abs(found.value))
    return _outward(found.value - noise, found.lower - noise - error, found.upper - noise + error, found, floor=0.0)


def _information(line: Line, *, certified: bool) -> Estimate:
    if not np.ptp(line.narrow[0].means):
        return Estimate(0.0, 0.0, 0.0, kind="exact", unit="nats", method="one input")

    def quantity(laws: tuple[GaussianMixture, ...]) -> Estimate:
        law = laws[0]
        values, index = np.unique(law.means, return_inverse=True)
        parts: list[list[float]] = [[] for _ in values]
        for i, w in zip(index.tolist(), law.weights.tolist(), strict=True):
            parts[i].append(w)
        prior = Pmf(values, [math.fsum(part) for part in parts])
        found = line_information(prior, float(law.sigmas[0]), certified=certified)
        rounding = 4 * _UNIT * (found.upper + _UNIT) if len(values) < len(law) else 0.0
        return _outward(found.value, found.lower - rounding, found.upper + rounding, found, floor=0.0)

    return _between(line, quantity, line.slack * line.extent)


def _noise(p: GaussianMixture, without: int | None) -> Estimate:
    """Entropy of N(0, K), K the first covariance, without one coordinate if asked."""
    d = p.dimension
    if p.form == "full":
        assert p.covariances is not None
        log, error = log_determinant(p.covariances[0])
        value = (d * _LOG_2_PI_E + log) / 2
        error = error / 2 + 4 * _UNIT * (d * _LOG_2_PI_E + abs(log))
    else:
        assert p.sigmas is not None
        sigmas = np.broadcast_to(p.sigmas.reshape(len(p), -1)[0], (d,))
        logs = np.log(sigmas if without is None else np.delete(sigmas, without))
        value = math.fsum([*logs.tolist(), logs.size * _LOG_2_PI_E / 2])
        error = 4 * _UNIT * (float(np.abs(logs).sum()) + logs.size * _LOG_2_PI_E + abs(value))
    return Estimate(value, value - error, value + error, kind="exact", unit="nats", method="closed form")


def _added(p: GaussianMixture, q: GaussianMixture, part: Callable[[Line], Estimate]) -> Estimate | None:
    lines = _factors(p, q)
    if lines is None:
        return None
    if not lines:
        return _zero("nats", ())
    words = "reduced to the line" if len(lines) == 1 else f"{len(lines)} independent factors on the line"
    return _sum([part(line) for line in lines], words)


def _one(p: GaussianMixture, q: GaussianMixture) -> Line | Estimate | None:
    """The only factor; 0 for equal laws; None if there is no reduction to one line."""
    lines = _factors(p, q)
    if lines is None or len(lines) > 1:
        return None
    return lines[0] if lines else _zero("nats", ())


def _factors(p: GaussianMixture, q: GaussianMixture) -> tuple[Line, ...] | None:
    return () if equal(p, q) else factors(p, q)


def _zero(unit: Any, shape: tuple[int, ...]) -> Estimate:
    zero = np.zeros(shape) if unit != "log probability" else np.full(shape, -np.inf)
    return Estimate(zero, zero, zero, kind="exact", unit=unit, method="equal laws")


def _mean_gap(line: Line) -> float:
    """The bound of E of the header."""
    p, q = line.narrow
    gap: dict[float, list[float]] = {}
    for law, sign in ((p, 1.0), (q, -1.0)):
        for x, w in zip(law.means.tolist(), law.weights.tolist(), strict=True):
            gap.setdefault(x, []).append(sign * w)
    total = math.fsum(abs(math.fsum(weights)) for weights in gap.values())
    return min(line.extent, line.extent * total + (2 + 2 * line.extent) * line.slack)


def _between(line: Line, quantity: Callable[[tuple[GaussianMixture, ...]], Estimate], error: float) -> Estimate:
    """A quantity that noise lowers, from the narrow and the wide laws, and an absolute error."""
    above = quantity(line.narrow)
    if line.exact:
        return above
    below = quantity(line.wide) if line.wide is not line.narrow else above
    error *= _MASS
    value = above.value if math.isinf(above.value) else (above.value + below.value) / 2
    found = _outward(value, below.lower - error, above.upper + error, below, floor=0.0)
    return _with(found, found.value, found.lower, found.upper, kind=_weakest([above, below], "certified"))


def _sticks(p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike, *, logs: bool) -> Estimate | None:
    one = _one(p, q)
    if one is None:
        return None
    if not isinstance(one, Line):
        return _zero("log probability" if logs else "probability", np.shape(epsilon))
    grid = np.asarray(epsilon, dtype=np.float64)
    above = _curve(one.narrow, grid, logs=logs)
    if one.exact:
        return _with(above, above.value, above.lower, above.upper, method=f"reduced to the line: {above.method}")
    below = _curve(one.wide, grid, logs=logs) if one.wide is not one.narrow else above
    lower, upper = np.asarray(below.lower), np.asarray(above.upper)
    if one.slack:
        lower, upper = _windowed(one, grid, lower, upper, logs=logs)
    value = np.clip(np.asarray(below.value), lower, upper)
    method = f"reduced to the line: {above.method}"
    return Estimate(value, lower, upper, kind="certified", unit=above.unit, method=method, cost=above.cost)


def _curve(laws: tuple[GaussianMixture, ...], epsilon: FloatArray, *, logs: bool) -> Estimate:
    p, q = laws
    return log_hockey_stick_divergence(p, q, epsilon) if logs else hockey_stick_divergence(p, q, epsilon)


def _windowed(
    line: Line, epsilon: FloatArray, lower: FloatArray, upper: FloatArray, *, logs: bool
) -> tuple[FloatArray, FloatArray]:
    """Bounds of hockey-sticks widened for the slack, as proved in the header."""
    with np.errstate(all="ignore"):
        size = np.asarray(_curve(line.wide, epsilon, logs=True).lower)
        growth = np.logaddexp(0.0, epsilon)  # log(1 + a)
        drop = np.where(np.isfinite(size) & np.isfinite(growth), growth - size, 1e6)
        window = np.sqrt(2 * (np.maximum(drop, 0.0) + _BELOW))
        kappa = 1.0001 * (line.slack * window + line.slack**2 / 2) + 4 * _UNIT * np.where(epsilon < 1e300, epsilon, 0.0)
        tail = growth - window**2 / 2 + 1e-9 * (1 + window**2)  # log of (1 + a) tau
        shifted = np.maximum(epsilon - 2 * kappa, 0.0)
        missing = np.where(epsilon < 2 * kappa, 2 * kappa, 0.0)
        high = _curve(line.narrow, shifted, logs=logs)
        low = _curve(line.wide, epsilon + 2 * kappa, logs=logs)
        if logs:
            top = np.logaddexp(np.logaddexp(np.asarray(high.upper) + kappa, tail), np.log(missing))
            base = np.asarray(low.lower) - kappa
            rest = -np.expm1(np.minimum(tail - base, 0.0))
            bottom = np.where(tail < base, base + np.log(rest), -np.inf)
            margin = 8 * _UNIT
            top, bottom = top + margin * (1 + np.abs(top)), bottom - margin * (1 + np.abs(bottom))
            top = np.minimum(top, 0.0)
        else:
            top = (np.asarray(high.upper) * np.exp(kappa) + np.exp(tail) + missing) * (1 + 8 * _UNIT)
            bottom = (np.asarray(low.lower) * np.exp(-kappa) - np.exp(tail)) * (1 - 8 * _UNIT)
            top, bottom = np.minimum(top + 1e-322, 1.0), np.maximum(bottom - 1e-322, 0.0)
        none = np.isposinf(epsilon)
        return np.where(none, lower, np.fmin(bottom, lower)), np.where(none, upper, np.fmax(top, upper))


def _sum(parts: list[Estimate], words: str) -> Estimate:
    """A sum of estimates, its bounds rounded outward."""
    method = f"{words}: {', '.join(sorted({part.method for part in parts}))}"
    kind = _weakest(parts, "exact")
    if len(parts) == 1:
        only = parts[0]
        return _with(only, only.value, only.lower, only.upper, method=method)
    value, lower, upper = (_total(getattr(part, name) for part in parts) for name in ("value", "lower", "upper"))
    lower = lower if math.isinf(lower) else math.nextafter(lower, -math.inf)
    upper = upper if math.isinf(upper) else math.nextafter(upper, math.inf)
    floor = 0.0 if min(part.lower for part in parts) >= 0.0 else -math.inf
    lower = max(lower, floor)
    return Estimate(min(max(value, lower), upper), lower, upper, kind=kind, unit=parts[0].unit, method=method)


def _total(numbers: Iterable[float]) -> float:
    found = list(numbers)
    return math.fsum(found) if all(map(math.isfinite, found)) else sum(found)


def _weakest(parts: list[Estimate], least: Kind) -> Kind:
    return max((least, *(part.kind for part in parts)), key=_KINDS.index)


def _outward(value: float, lower: float, upper: float, like: Estimate, *, floor: float) -> Estimate:
    lower = max(floor, math.nextafter(lower, -math.inf) if lower > floor else floor)
    upper = max(math.nextafter(upper, math.inf), lower)
    return _with(like, min(max(value, lower), upper), lower, upper)


def _with(
    like: Estimate, value: Any, lower: Any, upper: Any, *, kind: Kind | None = None, method: str | None = None
) -> Estimate:
    return Estimate(
        value, lower, upper, kind=kind or like.kind, unit=like.unit, method=method or like.method, cost=like.cost
    )
