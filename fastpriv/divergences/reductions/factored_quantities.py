"""Quantities of d-dimensional mixtures that are one-dimensional in disguise, by the certified one-dimensional path.

Every function answers None where ``recognition.factors`` finds no reduction. KL and Renyi divergences, entropy and
mutual information add over independent factors; the others need one factor that tells the laws apart. What rounding
may have done to the laws is in the bounds, by ``bounds.py``. Where the line gives no useful bounds the answer is None
too, unless ``certified`` asks for bounds at any width. ``subspace`` is for
pairs that must be sampled after all.

ERRORS
Notation: eta is the slack, D the diameter of all means, both in the metric K^-1 of the one covariance K; beta is twice
the blur (once more for scaling to mass 1); u = p/q; P~, Q~ the laws that are computed with.

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

Blur. p = p~ e^a, q = q~ e^b with |a|, |b| <= beta everywhere, all of mass 1. Then

* KL - KL~ is the integral of p~ (e^a - 1) log u~ + p a - p b. E |log u~| <= KL~ + 2 TV~ <= KL~ + r, r = sqrt(2 KL~),
  by Pinsker; the integral of p a is a KL divergence of at most beta (e^beta - 1), and so is that of q b, and that of
  (p - q) b is at most beta 2 TV <= beta (r + 2 beta). Together (e^beta - 1)(KL~ + r) + beta r + 5 beta^2;
* JS is the mean of two such divergences from M: the same with JS in the place of KL, by concavity of the root;
* mutual information is KL of the joint law, within beta, from the product of its marginals, within 2 beta;
* D_a changes by at most (a + |1 - a|) beta / |a - 1|;
* entropy: (e^beta - 1) E~ |log p~| + beta, E~ |log p~| <= |h~| + 2 log^+ max p~.

Hockey-sticks. N_i and N~_i differ on {|z| <= X}, z the sample's normal coordinate along d_i, by a factor within
e^(+-(eta X + eta^2/2)), and each has at most tau = e^(-X^2/2) outside. With kappa = eta X + eta^2/2 + beta,
P(A) <= e^kappa P~(A) + tau and P(A) >= e^-kappa P~(A) - tau for every event A, likewise Q, and with a = e^epsilon

    e^-kappa H_{epsilon + 2 kappa}(P~||Q~) - (1 + a) tau <= H_epsilon(P||Q)
        <= e^kappa H_{epsilon - 2 kappa}(P~||Q~) + (1 + a) tau.

X is chosen for every epsilon such that (1 + a) tau is e^-40 of a first lower bound. At epsilon < 2 kappa the order is
cut at 0, and H_b - H_1 <= 1 - b for b < 1.
"""

# bounds: tested by enclosures/test_reductions, enclosures/test_reductions_to_factors - rounding of entropies and
#    logarithms

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...distributions import GaussianMixture, Pmf
from ...estimate import Estimate, Kind
from ..one_dimension import integrals
from ..one_dimension.monotone_pieces import hockey_stick_divergence, log_hockey_stick_divergence
from ..one_dimension.quadrature import NO_DEADLINE, STOPPED, Deadline
from . import gaussian_pairs
from .collinear_means import Line
from .exact_linear_algebra import log_determinant
from .independent_factors import equal, factors, one_normal_law
from .subspaces import Subspace, subspace

__all__ = [
    "Subspace", "entropy", "hockey_stick", "jensen_shannon", "kl", "log_hockey_stick", "mutual_information", "renyi",
    "subspace", "total_variation",
]  # fmt: skip

FloatArray = NDArray[np.float64]
_LOG_2_PI_E = 2.8378770664093454836
# bound: proved - half a unit in the last place of a double, IEEE 754
_UNIT = 2.0**-53
_MASS = 1.00001  # masses up to 1 + 1e-9 and the rounding of a bound
_WIDE, _WIDE_PART = 1e-3, 1e-2  # bounds wider than both, absolutely and relatively, are no better than a sample
# bound: none - from where a logarithm stands for a number that underflows
_LOG_TINY = -745.0
_BELOW = 40.0  # logarithm of the part of a hockey-stick that its window may leave out
_NO_SIZE = 1e6  # the same where the hockey-stick itself is 0 or infinitely small
_KINDS: tuple[Kind, ...] = ("exact", "certified", "heuristic")


Arguments = ParamSpec("Arguments")


def _useful(function: Callable[Arguments, Estimate | None]) -> Callable[Arguments, Estimate | None]:
    """None for an answer that says too little, unless certified bounds are asked for."""

    @functools.wraps(function)
    def asked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Estimate | None:
        found = function(*args, **kwargs)
        if found is None or kwargs.get("certified"):
            return found
        with np.errstate(invalid="ignore"):
            wide = (np.asarray(found.width) > _WIDE) & (np.asarray(found.width) > _WIDE_PART * np.abs(found.value))
            if found.unit == "log probability":
                wide &= np.asarray(found.upper) > _LOG_TINY
        wide &= np.isfinite(found.upper)
        return None if wide.size and wide.all() else found

    return asked


@_useful
def kl(
    p: GaussianMixture, q: GaussianMixture, *, certified: bool = False, deadline: Deadline = NO_DEADLINE
) -> Estimate | None:
    """KL(P||Q) in nats; the sum over independent factors."""

    def part(line: Line) -> Estimate:
        return _between(line, lambda laws: integrals.kl_divergence(laws[0], laws[1], certified=certified, deadline=deadline))

    def missed(line: Line) -> float:
        return 2 * line.slack * mean_gap(line)

    found = _added(p, q, part, missed, blurred)
    return gaussian_pairs.kl(p, q) if found is None and one_normal_law(p) and one_normal_law(q) else found


@_useful
def renyi(
    p: GaussianMixture, q: GaussianMixture, order: float, *, certified: bool = False, deadline: Deadline = NO_DEADLINE
) -> Estimate | None:
    """D_order(P||Q) in nats; the sum over independent factors, infinite if one of them is."""
    if order == 1.0:
        return kl(p, q, certified=certified, deadline=deadline)

    def part(line: Line) -> Estimate:
        def divergence(laws: tuple[GaussianMixture, ...]) -> Estimate:
            return integrals.renyi_divergence(laws[0], laws[1], order, certified=certified, deadline=deadline)

        return _between(line, divergence)

    def missed(line: Line) -> float:
        return 2 * order * line.slack * line.extent

    def known(_: float, blur: float) -> float:
        return 2 * blur * (order + abs(1.0 - order)) / abs(order - 1.0)

    found = _added(p, q, part, missed, known)
    return gaussian_pairs.renyi(p, q, order) if found is None and one_normal_law(p) and one_normal_law(q) else found


@_useful
def jensen_shannon(
    p: GaussianMixture, q: GaussianMixture, *, certified: bool = False, deadline: Deadline = NO_DEADLINE
) -> Estimate | None:
    """JS(P, Q) in nats, where one factor alone tells them apart."""
    line = _one(p, q)
    if not isinstance(line, Line):
        return line
    error = line.slack * min(line.extent / 2, mean_gap(line))
    found = _between(line, lambda laws: integrals.jensen_shannon(*laws, certified=certified, deadline=deadline), error)
    found = _sum([found], "reduced to the line", blurred(found.upper, line.blur))
    ceiling = math.nextafter(math.log(2.0), 1.0)
    return _with(found, min(found.value, ceiling), found.lower, min(found.upper, ceiling))


@_useful
def hockey_stick(
    p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike, *, deadline: Deadline = NO_DEADLINE
) -> Estimate | None:
    """H_{e^epsilon}(P||Q), where one factor alone tells them apart."""
    return _sticks(p, q, epsilon, logs=False, deadline=deadline)


@_useful
def log_hockey_stick(
    p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike, *, deadline: Deadline = NO_DEADLINE
) -> Estimate | None:
    """log H_{e^epsilon}(P||Q), where one factor alone tells them apart."""
    return _sticks(p, q, epsilon, logs=True, deadline=deadline)


@_useful
def total_variation(p: GaussianMixture, q: GaussianMixture, *, deadline: Deadline = NO_DEADLINE) -> Estimate | None:
    """Total variation distance, where one factor alone tells them apart."""
    return _sticks(p, q, 0.0, logs=False, deadline=deadline)


@_useful
def entropy(p: GaussianMixture, *, certified: bool = False, deadline: Deadline = NO_DEADLINE) -> Estimate | None:
    """Differential entropy in nats: that of the noise and the information about the label, or of coordinates."""
    lines = factors(p)
    if lines is None:
        return None
    parts, without = [], []
    for line in lines:
        law = line.narrow[0]
        if line.axis is not None and np.ptp(law.sigmas):
            parts.append(integrals.entropy(law, certified=certified, deadline=deadline))
            without.append(line.axis)
        else:
            parts.append(_information(line, certified=certified, deadline=deadline))
    noise = _noise(p, without)
    if not lines:
        return noise
    error = 0.0
    if lines[0].blur:
        peak = sum(max(0.0, -math.log(float(line.narrow[0].sigmas.min()))) for line in lines if line.axis in without)
        size = sum(abs(part.value) for part in parts) + abs(noise.value) + 2 * (peak + _peak(p, without)) + 1.0
        error = 4.0001 * lines[0].blur * size
    return _sum([*parts, noise], _words(lines), error, floor=-math.inf)


@_useful
def mutual_information(p: GaussianMixture, *, certified: bool = False, deadline: Deadline = NO_DEADLINE) -> Estimate | None:
    """Information in nats between the component of a mixture and the sample: I(X; X + noise) for a discrete X."""
    lines = factors(p)
    if lines is None:
        return None
    if not lines:
        return Estimate(0.0, 0.0, 0.0, kind="exact", unit="nats", method="one input")
    found = _sum([_label(line, certified=certified, deadline=deadline) for line in lines], _words(lines))
    return _sum([found], "", 2 * blurred(found.upper, lines[0].blur)) if lines[0].blur else found


def _label(line: Line, *, certified: bool, deadline: Deadline) -> Estimate:
    law = line.narrow[0]
    if not np.ptp(law.sigmas):
        return _information(line, certified=certified, deadline=deadline)
    found = integrals.entropy(law, certified=certified, deadline=deadline)
    logs = np.log(law.sigmas)
    noise = math.fsum((law.weights * (_LOG_2_PI_E / 2 + logs)).tolist())
    error = 4 * _UNIT * (math.fsum((law.weights * (3 + np.abs(logs))).tolist()) + abs(found.value))
    return _outward(found.value - noise, found.lower - noise - error, found.upper - noise + error, found, floor=0.0)


def _information(line: Line, *, certified: bool, deadline: Deadline) -> Estimate:
    if not np.ptp(line.narrow[0].means):
        return Estimate(0.0, 0.0, 0.0, kind="exact", unit="nats", method="one input")

    def quantity(laws: tuple[GaussianMixture, ...]) -> Estimate:
        law = laws[0]
        values, index = np.unique(law.means, return_inverse=True)
        parts: list[list[float]] = [[] for _ in values]
        for i, w in zip(index.tolist(), law.weights.tolist(), strict=True):
            parts[i].append(w)
        prior = Pmf(values, [math.fsum(part) for part in parts])
        found = integrals.mutual_information(prior, float(law.sigmas[0]), certified=certified, deadline=deadline)
        rounding = 4 * _UNIT * (found.upper + _UNIT) if len(values) < len(law) else 0.0
        return _outward(found.value, found.lower - rounding, found.upper + rounding, found, floor=0.0)

    return _between(line, quantity, line.slack * line.extent)


def _noise(p: GaussianMixture, without: list[int]) -> Estimate:
    """Entropy of N(0, K), K the first covariance, without some coordinates."""
    d = p.dimension
    if p.form == "full":
        assert p.covariances is not None
        log, error = log_determinant(p.covariances[0])
        value = (d * _LOG_2_PI_E + log) / 2
        error = error / 2 + 4 * _UNIT * (d * _LOG_2_PI_E + abs(log))
    else:
        assert p.sigmas is not None
        sigmas = np.broadcast_to(p.sigmas.reshape(len(p), -1)[0], (d,))
        logs = np.log(np.delete(sigmas, without))
        value = math.fsum([*logs.tolist(), logs.size * _LOG_2_PI_E / 2])
        error = 4 * _UNIT * (float(np.abs(logs).sum()) + logs.size * _LOG_2_PI_E + abs(value))
    return Estimate(value, value - error, value + error, kind="exact", unit="nats", method="closed form")


def _peak(p: GaussianMixture, without: list[int]) -> float:
    """A bound of the logarithm of the largest density of N(0, K), K diagonal and the first covariance; at least 0."""
    sigmas = np.broadcast_to(p.sigmas.reshape(len(p), -1)[0], (p.dimension,))
    return float(np.maximum(0.0, -np.log(np.delete(sigmas, without))).sum())


def _words(lines: tuple[Line, ...]) -> str:
    return "reduced to the line" if len(lines) == 1 else f"{len(lines)} independent factors on the line"


def _added(
    p: GaussianMixture, q: GaussianMixture, part: Callable[[Line], Estimate], missed: Callable[[Line], float],
    known: Callable[[float, float], float],
) -> Estimate | None:  # fmt: skip
    """The sum of the parts, what each line may have ``missed``, and what is ``known`` for such a sum and a blur.

    A slack moves means in all directions, across a line as well: its error is one of the sum, not of the part.
    """
    lines = _factors(p, q)
    if lines is None:
        return None
    if not lines:
        return _zero("nats", ())
    found = _sum([part(line) for line in lines], _words(lines))
    if math.isinf(found.lower):
        return found
    error = math.fsum(missed(line) for line in lines if line.slack)
    error += known(found.upper + error, lines[0].blur) if lines[0].blur else 0.0
    return _sum([found], "", error)


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


def _between(
    line: Line, quantity: Callable[[tuple[GaussianMixture, ...]], Estimate], error: float = 0.0
) -> Estimate:
    """A quantity that noise lowers, from the narrow and the wide laws, and an absolute error."""
    above = quantity(line.narrow)
    if line.exact:
        return above
    below = quantity(line.wide) if line.wide is not line.narrow else above
    error *= _MASS
    value = above.value if math.isinf(above.value) else (above.value + below.value) / 2
    found = _outward(value, below.lower - error, above.upper + error, below, floor=0.0)
    return _with(found, found.value, found.lower, found.upper, kind=_weakest([above, below], "certified"))


def _sticks(
    p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike, *, logs: bool, deadline: Deadline
) -> Estimate | None:
    one = _one(p, q)
    if one is None:
        return None
    if not isinstance(one, Line):
        return _zero("log probability" if logs else "probability", np.shape(epsilon))
    grid = np.asarray(epsilon, dtype=np.float64)
    above = curve(one.narrow, grid, logs=logs, deadline=deadline)
    if one.exact:
        return _with(above, above.value, above.lower, above.upper, method=f"reduced to the line: {above.method}")
    below = curve(one.wide, grid, logs=logs, deadline=deadline) if one.wide is not one.narrow else above
    lower, upper = np.asarray(below.lower), np.asarray(above.upper)
    if one.slack or one.blur:
        lower, upper = windowed(one, grid, logs=logs, deadline=deadline)
    value = np.clip(np.asarray(below.value), lower, upper)
    method = f"reduced to the line: {above.method}"
    return Estimate(value, lower, upper, kind="certified", unit=above.unit, method=method, cost=above.cost)


def _sum(parts: list[Estimate], words: str, error: float = 0.0, *, floor: float = 0.0) -> Estimate:
    """A sum of estimates, its bounds an error and a rounding further out, but not below the floor."""
    methods = ", ".join(sorted({part.method for part in parts}))
    method = f"{words}: {methods}" if words else methods
    if len(parts) == 1 and not error:
        only = parts[0]
        return _with(only, only.value, only.lower, only.upper, method=method)
    value, lower, upper = (_total(getattr(part, name) for part in parts) for name in ("value", "lower", "upper"))
    lower = lower if math.isinf(lower) else max(floor, math.nextafter(lower - _MASS * error, -math.inf))
    upper = upper if math.isinf(upper) else math.nextafter(upper + _MASS * error, math.inf)
    kind = _weakest(parts, "certified" if error else "exact")
    cost = STOPPED if any("stopped" in part.cost for part in parts) else {}
    return Estimate(
        min(max(value, lower), upper), lower, upper, kind=kind, unit=parts[0].unit, method=method, cost=cost
    )  # fmt: skip


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


def mean_gap(line: Line) -> float:
    """The bound of E of the header; D where the laws lie on different lines."""
    if line.across:
        return line.extent
    p, q = line.narrow
    gap: dict[float, list[float]] = {}
    for law, sign in ((p, 1.0), (q, -1.0)):
        for x, w in zip(law.means.tolist(), law.weights.tolist(), strict=True):
            gap.setdefault(x, []).append(sign * w)
    total = math.fsum(abs(math.fsum(weights)) for weights in gap.values())
    return min(line.extent, line.extent * total + (2 + 2 * line.extent) * line.slack)


def blurred(divergence: float, blur: float) -> float:
    """Change of a KL or Jensen-Shannon divergence of this size (an upper bound of it) by a blur of both laws."""
    if blur == 0.0:
        return 0.0
    beta, root = 2 * blur, math.sqrt(2 * divergence)
    return 1.0001 * (math.expm1(beta) * (divergence + root) + beta * root + 5 * beta * beta)


def curve(laws: tuple[GaussianMixture, ...], epsilon: FloatArray, *, logs: bool, deadline: Deadline) -> Estimate:
    """Hockey-sticks of two laws on the line, or their logarithms."""
    p, q = laws
    exact = log_hockey_stick_divergence if logs else hockey_stick_divergence
    return exact(p, q, epsilon, deadline=deadline)


def windowed(
    line: Line, epsilon: FloatArray, *, logs: bool, deadline: Deadline
) -> tuple[FloatArray, FloatArray]:
    """Bounds of hockey-sticks, or of their logarithms, for all that slack and blur allow."""
    with np.errstate(all="ignore"):
        size = np.asarray(curve(line.wide, epsilon, logs=True, deadline=deadline).lower)
        growth = np.logaddexp(0.0, epsilon)  # log(1 + a)
        drop = np.where(np.isfinite(size) & np.isfinite(growth), growth - size, _NO_SIZE)
        window = np.sqrt(2 * (np.maximum(drop, 0.0) + _BELOW))
        kappa = 1.0001 * (line.slack * window + line.slack**2 / 2 + 2 * line.blur)
        kappa += 4 * _UNIT * np.where(np.isfinite(epsilon), epsilon, 0.0)
        tail = growth - window**2 / 2 + 1e-9 * (1 + window**2)  # log of (1 + a) tau
        tail = np.where(line.slack == 0.0, -np.inf, tail)
        missing = np.where(epsilon < 2 * kappa, 2 * kappa, 0.0)
        high = curve(line.narrow, np.maximum(epsilon - 2 * kappa, 0.0), logs=logs, deadline=deadline)
        low = curve(line.wide, epsilon + 2 * kappa, logs=logs, deadline=deadline)
        top, bottom = np.asarray(high.upper), np.asarray(low.lower)
        if logs:
            margin = 8 * _UNIT
            top = np.logaddexp(np.logaddexp(top + kappa, tail), np.log(missing))
            bottom = bottom - kappa
            bottom = np.where(tail < bottom, bottom + np.log(-np.expm1(np.minimum(tail - bottom, 0.0))), -np.inf)
            top, bottom = top + margin * (1 + np.abs(top)), bottom - margin * (1 + np.abs(bottom))
            top = np.minimum(np.where(np.isnan(top), -np.inf, top), 0.0)
            bottom = np.where(np.isnan(bottom), -np.inf, bottom)
        else:
            top = (top * np.exp(kappa) + np.exp(tail) + missing) * (1 + 8 * _UNIT)
            bottom = (bottom * np.exp(-kappa) - np.exp(tail)) * (1 - 8 * _UNIT)
            top, bottom = np.minimum(top + 1e-322, 1.0), np.maximum(bottom - 1e-322, 0.0)
    nothing = -np.inf if logs else 0.0
    none = np.isposinf(epsilon)
    return np.where(none, nothing, bottom), np.where(none, nothing, top)
