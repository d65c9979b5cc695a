"""Privacy curves as functions of epsilon, with a proved bound of what lies beyond any epsilon.

Notation: L = log(p/q) for distributions P, Q with densities p, q; H_a(P||Q) = sup_E P(E) - a Q(E) =
E_P (1 - e^(epsilon - L))^+ at a = e^epsilon; pi the prior, P_x the distribution of the release of x, P_M that of the
release.

The tails: (1 - u)^+ <= c_s u^-s with c_s = s^s / (1+s)^(1+s), hence H_a(P||Q) <= c_s a^-s M(s) for every s > 0, where
M(s), the integral of p^(1+s) q^-s, is convex in p and decreasing in q, so that it is at most
sum_i w_i min_j v_j^-s M(P_i||Q_j) for mixtures, and closed-form for two normal distributions.
"""

# bounds: proved - docs/proofs/roundings.md, 13.13: rounding of chords, of exponents and of a logarithm, and underflow

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.estimate import Estimate, NumberLike
from ..base.monotone import monotone
from ..base.numerics import FloatArray, IndexArray, log_sum_exp, next_above
from ..distributions import GaussianMixture, Pmf
from ..divergences.one_dimension.monotone_pieces import MAX_DOUBLE_WIDTH, curve_estimate, hockey_stick_rows
from ..mechanisms.gaussian import GaussianMechanism
from ..notions.gaussian import lip_rows

# the orders s of the tails: from 2^-60 to 2^60, denser where the best ones usually are
_ORDERS = np.exp2(np.concatenate([np.arange(-60.0, -6.0), np.arange(-6.0, 60.5, 0.5)]))
# bound: proved - docs/proofs/roundings.md, 13.13: relative rounding of log moments and of an exponent that they enter
_MOMENT_ERROR = 1e-9  # a tail is a small part of an integral
# bound: proved - docs/proofs/roundings.md, 13.13: least variance whose rounding is relative, in any power that is taken
_LEAST_VARIANCE = 1e-270
# bound: none - when double-doubles take the place of doubles
_ACCEPTED_WIDTH = 1e-10  # relative width up to which sums in doubles are taken: double-doubles cost ten times more
_STATIONS = 49  # epsilons at which every point's curve is known, to leave out points that are not the worst


class _Curve:
    """A curve with log moments, upper bounds at the orders s, and the epsilon from which on they bound its tail."""

    __slots__ = ("_log_moments", "_vanishes_from")

    _log_moments: FloatArray
    _vanishes_from: float

    def tail(self, epsilon: float, rate: float) -> float:
        """Upper bound of the integral of e^(rate e) times the curve over e > ``epsilon``."""
        start = validate.scalar("epsilon", epsilon, "at least 0", lambda e: e >= 0)
        rate = validate.scalar("rate", rate, "between -1 and 1", lambda r: np.abs(r) <= 1)
        return math.inf if start < self._vanishes_from else _tail(self._log_moments, start, rate)


class HockeyStickCurve(_Curve):
    """The curve H_{e^epsilon}(P||Q) of two Gaussian mixtures, certified, for the integrals of this room.

    Parameters
    ----------
    p, q : GaussianMixture
        The distributions P and Q.

    Raises
    ------
    DomainError
        If an argument is not a mixture.

    Notes
    -----
    **Accuracy** as ``hockey_stick_divergence``; the tail is tested by
    ``tests/enclosures/test_information_from_curves.py``.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, conversions
    >>> curve = conversions.HockeyStickCurve(GaussianMixture.single(1.0, 1.0), GaussianMixture.single(0.0, 1.0))
    >>> curve([0.0, 1.0]).value
    array([0.38292492, 0.12693674])
    >>> 0.0 < curve.tail(20.0, 0) < 1e-75
    True
    """

    __slots__ = ("p", "q")

    def __init__(self, p: GaussianMixture, q: GaussianMixture) -> None:
        validate.instance("p", p, GaussianMixture)
        validate.instance("q", q, GaussianMixture)
        validate.univariate(p=p, q=q)
        self.p, self.q = p, q
        self._log_moments, self._vanishes_from = _log_moments(p, q), 0.0

    @monotone(falling="epsilon")
    def __call__(self, epsilon: NumberLike) -> Estimate:
        """The curve at ``epsilon``, at least 0, any shape."""
        return _pair(self.p, self.q, epsilon, MAX_DOUBLE_WIDTH)


class LipCurve(_Curve):
    """The optimal LIP curve of a prior under a Gaussian mechanism, certified, for ``cd_lmip_from_lip_curve``.

    Parameters
    ----------
    prior : Pmf
        The distribution of the secret.
    mechanism : GaussianMechanism
        Its sigma is used; one number.

    Raises
    ------
    DomainError
        For a prior that is no Pmf or a mechanism that is not Gaussian.

    Notes
    -----
    **Accuracy** as ``notions.lip_delta``; the tail is tested by ``tests/enclosures/test_information_from_curves.py``.

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, eq. (6).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, conversions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> curve = conversions.LipCurve(prior, GaussianMechanism(20.0))
    >>> curve([0.5, 2.0]).upper
    array([0.2801..., 0.0859...])
    """

    __slots__ = ("_prior", "_sigma")

    def __init__(self, prior: Pmf, mechanism: GaussianMechanism) -> None:
        release = _release_distribution(prior, mechanism)
        self._prior, self._sigma = prior, float(release.sigmas[0])
        # H(P_x||P_M) vanishes from log 1/pi_x on, and the tail of H(P_M||P_x) is left
        self._log_moments, self._vanishes_from = _release_moments(release), _vanishes_from(release)

    @monotone(falling="epsilon")
    def __call__(self, epsilon: NumberLike) -> Estimate:
        """The curve at ``epsilon``, at least 0, any shape."""
        points = validate.real("epsilon", epsilon, "at least 0", lambda e: e >= 0)
        flat = np.ascontiguousarray(points).reshape(-1)
        rows, method, cost = lip_rows(self._prior, self._sigma, flat, _ACCEPTED_WIDTH, logs=False)
        return curve_estimate(rows[:, :3], points, "probability", method, cost)


class WorstHockeyStickCurve(_Curve):
    """The worst point's curve: sup over x of H_{e^epsilon}(P_x || P_M), or of H_{e^epsilon}(P_M || P_x).

    Points that are provably not the worst between two stations are left out there.

    Parameters
    ----------
    prior : Pmf
        The distribution of the secret.
    mechanism : GaussianMechanism
        Its sigma is used; one number.
    released_first : bool
        False for H(P_x || P_M), True for H(P_M || P_x).

    Raises
    ------
    DomainError
        As ``LipCurve``.

    Notes
    -----
    **Accuracy** as ``hockey_stick_divergence``; ``tests/enclosures/test_information_from_curves.py``.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf
    >>> from fastpriv.conversions.privacy_curves import WorstHockeyStickCurve
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> WorstHockeyStickCurve(prior, GaussianMechanism(20.0), False)([0.0, 1.0]).value
    array([0.38644383, 0.04715125])
    """

    __slots__ = ("_high", "_low", "_points", "_release", "_released_first", "_stations")

    def __init__(self, prior: Pmf, mechanism: GaussianMechanism, released_first: bool) -> None:
        self._release = _release_distribution(prior, mechanism)
        self._released_first = validate.flag("released_first", released_first)
        self._points = [GaussianMixture.single(float(x), float(self._release.sigmas[0])) for x in self._release.means]
        self._log_moments, self._vanishes_from = np.full(_ORDERS.size, -np.inf), _vanishes_from(self._release)
        if released_first:  # H(P_M||P_x) vanishes nowhere
            self._log_moments, self._vanishes_from = _release_moments(self._release), 0.0
        span = float(np.ptp(self._release.means) / self._release.sigmas[0])
        last = span * span / 2 + 9 * span if released_first else self._vanishes_from
        self._stations = max(last, 1.0) * np.linspace(0.0, 1.0, _STATIONS) ** 2
        curves = [self._point_curve(x, self._stations) for x in range(len(self._points))]
        self._low, self._high = (np.array([getattr(e, side) for e in curves]) for side in ("lower", "upper"))

    @monotone(falling="epsilon")
    def __call__(self, epsilon: NumberLike) -> Estimate:
        """The curve at ``epsilon``, at least 0, any shape."""
        grid = validate.real("epsilon", epsilon, "at least 0", lambda e: e >= 0)
        flat = grid.reshape(-1)
        index = np.searchsorted(self._stations, flat, side="right") - 1
        inner = index < _STATIONS - 1
        index = np.minimum(index, _STATIONS - 2)
        value, lower, upper = (np.zeros(flat.size) for _ in range(3))
        floor = np.where(inner, self._low.max(axis=0)[index + 1], 0.0)
        evaluations = 0
        # by monotonicity H_x(e) <= H_x at the station before, and the worst is at least the worst at the station after
        for x in np.argsort(-self._low.sum(axis=1), kind="stable"):
            ceiling = np.where(inner, self._chord(x, index, flat), self._high[x, -1])
            wanted = np.flatnonzero(ceiling >= np.maximum(floor, lower))
            if not wanted.size:
                continue
            evaluations += wanted.size
            curve = self._point_curve(x, flat[wanted])
            for best, new in ((value, curve.value), (lower, curve.lower), (upper, curve.upper)):
                best[wanted] = np.maximum(best[wanted], new)
        return Estimate(
            *(x.reshape(grid.shape) for x in (value, lower, upper)), kind="certified", unit="probability",
            method="worst point, by chords between stations", cost={"evaluations": evaluations},
        )

    def _point_curve(self, x: int, epsilon: FloatArray) -> Estimate:
        pair = (self._release, self._points[x]) if self._released_first else (self._points[x], self._release)
        return _pair(*pair, epsilon, _ACCEPTED_WIDTH)

    def _chord(self, x: int, index: IndexArray, epsilon: FloatArray) -> FloatArray:
        """Above H_x by convexity in e^epsilon."""
        start, end = self._stations[index], self._stations[index + 1]
        before, after = self._high[x, index], self._high[x, index + 1]
        with np.errstate(over="ignore", invalid="ignore"):
            weight = np.exp(epsilon - end) * np.expm1(start - epsilon) / np.expm1(start - end)
        return np.asarray((before + (after - before) * np.clip(weight * (1 - 1e-14), 0.0, 1.0)) * (1 + 1e-15))


def _pair(p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike, width: float) -> Estimate:
    """As ``hockey_stick_divergence``, with doubles wherever they give this relative width."""
    grid = validate.real("epsilon", epsilon, "at least 0", lambda e: e >= 0)
    rows, cost, _ = hockey_stick_rows(p, q, np.ascontiguousarray(grid).reshape(-1), width, logs=False)
    return curve_estimate(rows[:, :3], grid, "probability", "monotone pieces", cost)


def _release_distribution(prior: Pmf, mechanism: Any) -> GaussianMixture:
    validate.instance("prior", prior, Pmf)
    validate.instance("mechanism", mechanism, GaussianMechanism)
    return prior.through_gaussian(validate.scalar("sigma", mechanism.sigma))


def _release_moments(release: GaussianMixture) -> FloatArray:
    """Upper bounds of log M(s) of the release against every point: they are convex in it, so that the outermost do."""
    sigma = float(release.sigmas[0])
    points = (GaussianMixture.single(float(x), sigma) for x in (release.means.min(), release.means.max()))
    return np.asarray(np.maximum(*(_log_moments(release, point) for point in points)))


def _vanishes_from(release: GaussianMixture) -> float:
    """From this epsilon on no component exceeds e^epsilon times the mixture it is a part of."""
    return next_above(-math.log(float(release.weights.min())) * (1 + 1e-15) + 2 * release.mass_gap)


def _log_moments(p: GaussianMixture, q: GaussianMixture) -> FloatArray:
    """Upper bounds of log M(s) for every order s; infinite where a variance of P is too large for them."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        sigma, reference = p.sigmas[:, None], q.sigmas[None, :]
        variance, other = sigma**2, reference**2
        excess, usable = (reference - sigma) * (reference + sigma), np.minimum(variance, other) > _LEAST_VARIANCE
        distance = (p.means[:, None] - q.means[None, :]) ** 2
        log_weights, log_parts = np.log(p.weights), np.log(q.weights)
        ratio = np.log1p((reference - sigma) / sigma)  # of deviations: keeps its digits where these are nearly equal
        rows = []
        step = min(12, 1 + len(p) * len(q) // 20_000)  # large pairs make do with fewer orders
        for index, s in enumerate(_ORDERS):
            if index % step:
                rows.append(np.inf)
                continue
            joint = other + s * excess
            pair = s * ratio + np.log(other / joint) / 2 + s * (1 + s) * distance / (2 * joint) - s * log_parts
            nearest = np.where(usable & (joint > 1e-4 * other), pair, np.inf).min(axis=1)
            rows.append(log_sum_exp(log_weights + nearest))
    log_moments = np.array(rows)
    log_moments[np.isnan(log_moments)] = np.inf
    gap = p.mass_gap + q.mass_gap
    return np.asarray(log_moments + 2 * gap * (1 + 2 * _ORDERS) + _MOMENT_ERROR * (1 + np.abs(log_moments)))


def _tail(log_moments: FloatArray, epsilon: float, rate: float) -> float:
    s = _ORDERS
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        peak = -s * np.log1p(1 / s) - np.log1p(s)
        exponent = peak + log_moments - (s - rate) * epsilon * (1 - 1e-14) - np.log(s - rate)
        usable = (s > rate) & (log_moments < np.inf)
        if not usable.any():
            return math.inf
        return float(np.exp(exponent[usable].min() + _MOMENT_ERROR))
