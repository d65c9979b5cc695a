"""The rate-distortion function of a finite source, with its certificate.

Notation: source theta over n symbols b, reproductions r, distortion d(b, r) >= 0, channel p(r | b), rate I(B; R) in
nats, slope s >= 0. The Lagrangian and its dual (Csiszar 1974; Cover and Thomas 2006, section 10.8)

    F(s) = min over p(r|b) of I(B; R) + s E d(B, R)
         = min over q of - sum_b theta_b log Z_b,            Z_b = sum_r q_r exp(-s d(b, r)),
         >= - sum_b theta_b log Z_b - log max_r c_r,         c_r = sum_b theta_b exp(-s d(b, r)) / Z_b,

both for every q; they meet at the best q. Its channel is p(r | b) = q_r exp(-s d(b, r)) / Z_b, at which the
rate-distortion function R(D) = min {I : E d <= D} is F(s) - s D, and R(D) >= F(s) - s D for every D and s.

The iteration of Blahut and Arimoto, q_r <- q_r c_r, climbs slowly where a reproduction leaves the support. Since
sum_b theta_b log Z_b is the log-likelihood of a mixture with weights q, the solver is the constrained Newton method of
Wang (2007) for such likelihoods: reproductions with the largest c_r join the support, a least-squares problem with
nonnegative unknowns gives the step, and those of weight 0 leave.
"""

# bounds: proved - roundings of the exponents, the exponential function, sums and logarithms, each counted below

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import DomainError, NotConvergedError, ShapeError
from ..base.estimate import Estimate, Result
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, IndexArray, enclosure
from ..channels import Channel

_NEW_REPRODUCTIONS = 32  # that join the support in one step: the ones with the largest c_r
_MAX_STEPS = 500  # Newton steps, far more than convergence takes
_MAX_HALVINGS = 40  # of the step, until the likelihood rises
_MAX_SLOPES = 200  # slopes tried for a level of distortion
_METHOD = "constrained Newton method, dual certificate"  # ``method`` of the numbers
# bound: proved - exp of NumPy, two units in the last place, and the product by a weight
_TERM_ROUNDING = 5 * UNIT_ROUNDOFF
# bound: proved - the least number above 0
_SMALLEST = 2.0**-1074  # what an exponential that underflows may have been
# bound: none - a choice of the solver; the bounds hold for any weights
_SMALLEST_WEIGHT = 1e-200  # of a reproduction, relative to the largest: smaller ones leave the support


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RateDistortion(Result):
    """A point of the rate-distortion function, and the channel that attains it.

    Parameters
    ----------
    rate : Estimate
        R at the distortion of ``channel``, nats: the least mutual information of source and reproduction among all
        channels whose mean distortion is at most that.
    distortion : Estimate
        Mean distortion of ``channel``.
    lagrangian : Estimate
        F(slope), nats; its lower bound is the dual certificate.
    slope : float
        s, in nats a unit of distortion: minus the derivative of R.
    channel : Channel
        From the n symbols to the reproductions that are used.
    reproductions : ndarray of int
        Indices of these reproductions among the columns of the distortion.

    Notes
    -----
    **Accuracy** as ``rate_distortion``, which makes it.

    Source: Cover and Thomas 2006, section 10.8.

    Examples
    --------
    >>> from fastpriv import capacity
    >>> point = capacity.rate_distortion([0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]], slope=2.0)
    >>> print(f"{point.rate.value:.4f} at {point.distortion.value:.4f}")
    0.3278 at 0.1192
    """

    rate: Estimate
    distortion: Estimate
    lagrangian: Estimate
    slope: float
    channel: Channel
    reproductions: IndexArray


def rate_distortion(
    source: ArrayLike, distortion: ArrayLike, *, slope: float | None = None, level: float | None = None,
    atol: float = 1e-9,
) -> RateDistortion:
    """A point of the rate-distortion function of a finite source, by its slope or by its distortion, certified.

    Parameters
    ----------
    source : array_like, shape (n,)
        Probabilities of the symbols.
    distortion : array_like, shape (n, m)
        d(b, r) >= 0; +inf forbids a reproduction. Each symbol needs one that is finite.
    slope : float
        s > 0, nats a unit of distortion: minimises I + s E d. Give this or ``level``.
    level : float
        Largest mean distortion D >= 0.
    atol : float, default 1e-9
        Largest distance of the bounds of ``lagrangian``, and with ``level`` of those of ``rate``, in nats. The rest is
        rounding.

    Returns
    -------
    RateDistortion
        With ``level`` the channel has at most that mean distortion, up to 1e-15 of the largest one.

    Raises
    ------
    DomainError, ShapeError
        For probabilities that do not sum to 1, negative distortions, a symbol without a finite one, shapes that do not
        fit, a level below the least possible distortion, or both or neither of slope and level.
    NotConvergedError
        If the bounds do not meet within ``atol``; ``best`` has the point that was reached.

    Notes
    -----
    **Accuracy** Certified, and within ``atol``: ``tests/enclosures/test_rate_distortion.py`` compares binary, uniform
    and random sources with closed forms and with an independent solver in arithmetic of more digits.

    Source: Csiszar 1974; Cover and Thomas 2006, section 10.8; solver: Wang 2007.

    Examples
    --------
    >>> from fastpriv import capacity
    >>> point = capacity.rate_distortion([0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]], level=0.25)
    >>> print(f"{point.rate.value:.4f} at {point.distortion.value:.4f}, slope {point.slope:.4f}")
    0.1308 at 0.2500, slope 1.0986
    """
    theta = validate.probabilities("source", source)
    d = _distortions(distortion, theta.size)
    tolerance = validate.scalar("atol", atol, "a positive number", lambda x: x > 0)
    if (slope is None) == (level is None):
        raise DomainError("slope must be given if level is not, and only then; got both or neither. Give one of them.")
    problem = _Problem(theta, d, tolerance)
    if slope is not None:
        s = validate.scalar("slope", slope, "a finite number of at least 0", lambda x: (x >= 0) & np.isfinite(x))
        solution = problem.solve(s, None)
        return problem.checked(solution, solution, 1.0)
    least = float(theta @ d.min(axis=1))
    wanted = validate.scalar("level", level, "a finite number of at least 0", lambda x: (x >= 0) & np.isfinite(x))
    if wanted < least:
        raise DomainError(
            f"level must be at least the least possible distortion, {least!r}; got {wanted!r}. Ask for a larger one."
        )
    return problem.checked(*problem.at_level(wanted))


class _SlopeSolution(NamedTuple):
    """Weights of the reproductions at one slope, mean distortion of their channel, bounds of F, and log max c."""

    slope: float
    weights: FloatArray
    distortion: float
    lower: float
    upper: float
    gap: float


class _Problem:
    """One source and its distortions; distances are from the least distortion of each symbol."""

    def __init__(self, theta: FloatArray, d: FloatArray, atol: float) -> None:
        used = theta > 0
        self.all_theta, self.theta = theta, theta[used]
        self.least = d.min(axis=1)
        self.all_excess = d - self.least[:, None]
        self.excess = self.all_excess[used]
        self.offset = float(self.theta @ self.least[used])
        self.atol = atol

    def solve(self, s: float, start: FloatArray | None) -> _SlopeSolution:
        """Maximise sum_b theta_b log Z_b over q, from the weights ``start``."""
        kernel = _kernel(s, self.excess)
        q = self._start(s)
        if start is not None:  # the own start keeps every Z above 0
            q = 0.875 * start + 0.125 * q
        root = np.sqrt(self.theta)
        for _ in range(_MAX_STEPS):
            z = kernel @ q
            c = (self.theta / z) @ kernel
            if np.log(c.max()) <= 0.25 * self.atol:
                break
            support = np.union1d(np.flatnonzero(q), np.argsort(-c, kind="stable")[:_NEW_REPRODUCTIONS])
            step = np.zeros_like(q)
            step[support] = _newton_weights(kernel[:, support] * (root / z)[:, None], root)
            following = _line_search(self.theta, z, kernel @ step)
            if following == 0.0:  # rounding hides all that is left to gain: Blahut and Arimoto's step cannot fall
                q = q * c
            else:
                q = (1 - following) * q + following * step
            q[q < _SMALLEST_WEIGHT * q.max()] = 0.0
            q /= q.sum()
        return self._bounds(s, kernel, q)

    def at_level(self, level: float) -> tuple[_SlopeSolution, _SlopeSolution, float]:
        """The solutions at two slopes that enclose the level, and the part of the second one in their mixture."""
        flat = self.solve(0.0, None)
        if flat.distortion <= level:
            return flat, flat, 1.0
        low, high = flat, self.solve(1.0 / max(level, flat.distortion), None)
        for _ in range(_MAX_SLOPES):
            if high.distortion <= level:
                break
            low, high = high, self.solve(4.0 * high.slope, high.weights)
        for _ in range(_MAX_SLOPES):
            # R lies below the chord of both points and above the tangent at each; the slope of the chord is tried next
            rates = [part.upper - part.slope * part.distortion for part in (low, high)]
            steepness = (rates[1] - rates[0]) / max(low.distortion - high.distortion, _SMALLEST)
            width = min(
                (high.slope - steepness) * (level - high.distortion), (steepness - low.slope) * (low.distortion - level)
            )
            if width <= 0.25 * self.atol or not low.slope < steepness < high.slope:
                break
            tried = self.solve(steepness, high.weights)
            low, high = (low, tried) if tried.distortion <= level else (tried, high)
        fall = low.distortion - high.distortion
        return low, high, min(max((low.distortion - level) / fall, 0.0), 1.0) if fall > 0.0 else 1.0

    def checked(self, low: _SlopeSolution, high: _SlopeSolution, weight: float) -> RateDistortion:
        """The mixture of two channels, ``weight`` of it from ``high``, if the bounds of both met."""
        cells = weight * self._channel(high) + (1 - weight) * self._channel(low)
        used = np.flatnonzero(cells.any(axis=0))
        cells = np.ascontiguousarray(cells[:, used] / cells[:, used].sum(axis=1, keepdims=True))
        d = self.all_excess[:, used] + self.least[:, None]
        products = np.where(cells > 0, cells * np.where(np.isfinite(d), d, 0.0), 0.0)
        mean = float(self.all_theta @ products.sum(axis=1))
        error = mean * ((sum(products.shape) + 8) * UNIT_ROUNDOFF + validate.sum_gap(self.all_theta))
        value, lower, upper = enclosure(mean, error, 0.0)
        distortion = Estimate(value, lower, upper, kind="certified", unit="1", method="sum over the channel")
        rate_lower = max(max(part.lower - part.slope * upper for part in (low, high)), 0.0)
        rates = [part.upper - part.slope * part.distortion for part in (low, high)]
        chord = (1 - weight) * rates[0] + weight * rates[1]
        spread = max(low.slope, high.slope) * (upper - lower)  # rounding of the mean distortions of the two channels
        rate_upper = max(chord + 2 * spread + 8 * UNIT_ROUNDOFF * (abs(chord) + high.slope * upper), rate_lower)
        steepest = max(low, high, key=lambda part: part.slope)
        point = RateDistortion(
            _certified(rate_lower, rate_upper), distortion, _certified(steepest.lower, steepest.upper), steepest.slope,
            Channel(cells), used,
        )
        gap = max(low.gap, high.gap)
        if gap <= self.atol:
            return point
        raise NotConvergedError(
            f"lagrangian must have bounds within {self.atol:g} of each other; got {gap:g} after {_MAX_STEPS} steps. "
            "Allow a larger atol; best has the point that was reached.",
            best=point,
        )

    def _start(self, s: float) -> FloatArray:
        """Weights of the best reproduction of each symbol; for slope 0 all on the one that is best on average."""
        q = np.zeros(self.excess.shape[1])
        means = self.theta @ self.excess
        if s == 0.0 and np.isfinite(means.min()):
            q[means.argmin()] = 1.0
            return q
        np.add.at(q, self.excess.argmin(axis=1), self.theta)
        return np.asarray(q / q.sum())

    def _bounds(self, s: float, kernel: FloatArray, q: FloatArray) -> _SlopeSolution:
        """The mean distortion of q's channel, and bounds of F(s) from q, rounding counted.

        An exponent s (d - least d) carries two roundings, so that a term is off by 2 u of its exponent, relatively, and
        by the rounding of exp; a sum of k nonnegative terms is off by k u.
        """
        n, m = kernel.shape
        exponents = np.where(kernel > 0, s * np.where(np.isfinite(self.excess), self.excess, 0.0), 0.0)
        rounding = kernel * (2 * UNIT_ROUNDOFF * exponents + _TERM_ROUNDING) + 2 * _SMALLEST
        z = kernel @ q
        z_error = (rounding @ q + (m + 2) * UNIT_ROUNDOFF * z) / z
        c = (self.theta / z) @ kernel
        c_error = (self.theta / z) @ rounding + c * (float(z_error.max()) + (n + 4) * UNIT_ROUNDOFF)
        logs = np.log(z)
        start = -float(self.theta @ logs) + s * self.offset
        terms = float(self.theta @ np.abs(logs)) + s * self.offset
        error = float(self.theta @ z_error) * 1.01 + (n + 8) * UNIT_ROUNDOFF * terms
        error += (validate.rounded_sum_gap(self.all_theta) + validate.sum_gap(q)) * (1.0 + terms)
        excess = np.where(kernel > 0, kernel * np.where(np.isfinite(self.excess), self.excess, 0.0), 0.0)
        mean = self.offset + float((self.theta / z) @ (excess @ q))
        gap = max(float(np.log(np.max(c + c_error))), 0.0)
        lower = start - error - gap * (1 + 4 * UNIT_ROUNDOFF)
        return _SlopeSolution(s, q, mean, lower, start + error, float(np.log(c.max())))

    def _channel(self, solution: _SlopeSolution) -> FloatArray:
        """p(r | b) of all symbols, those of probability 0 included."""
        cells = solution.weights * _kernel(solution.slope, self.all_excess)
        empty = ~cells.any(axis=1)  # symbols whose allowed reproductions are used by no other: of probability 0
        cells[empty, self.all_excess[empty].argmin(axis=1)] = 1.0
        return np.asarray(cells / cells.sum(axis=1, keepdims=True))


def _distortions(distortion: ArrayLike, n: int) -> FloatArray:
    d = validate.real(
        "distortion", distortion, "numbers of at least 0, +inf allowed", lambda x: x >= 0, answer=False,
        remedy="Give one row a symbol and one column a reproduction.",
    )
    if d.ndim != 2 or d.shape[0] != n or d.shape[1] == 0:
        raise ShapeError(
            f"distortion must have one row for each of the {n} symbols; got shape {d.shape}. "
            "Give one row a symbol and one column a reproduction."
        )
    validate.memory(f"distortion of shape {d.shape}", 8 * 6 * d.size, "Merge symbols or reproductions that are equal.")
    bad = np.flatnonzero(~np.isfinite(d.min(axis=1)))
    if bad.size:
        raise DomainError(
            f"distortion must be finite for one reproduction of each symbol; got only +inf at index {int(bad[0])} "
            f"({bad.size} of {n} symbols). Allow these symbols a reproduction."
        )
    return d


def _certified(lower: float, upper: float) -> Estimate:
    return Estimate(0.5 * (lower + upper), lower, upper, kind="certified", unit="nats", method=_METHOD)


def _kernel(s: float, excess: FloatArray) -> FloatArray:
    if s == 0.0:
        return np.isfinite(excess).astype(float)
    return np.asarray(np.exp(-s * excess))


def _newton_weights(columns: FloatArray, root: FloatArray) -> FloatArray:
    """Weights of sum 1 that minimise |columns x - 2 root|, the second-order model of the log-likelihood (Wang 2007).

    With sum x = 1 this is |(columns - 2 root) x|, and the nonnegative least-squares problem with one row more, of ones,
    has its minimum on the same ray (Haskell and Hanson 1981).
    """
    from scipy.optimize import nnls

    matrix = np.vstack([columns - 2 * root[:, None], np.ones(columns.shape[1])])
    target = np.zeros(matrix.shape[0])
    target[-1] = 1.0
    weights = nnls(matrix, target)[0]
    total = float(weights.sum())
    return np.asarray(weights / total) if total > 0 else np.full(columns.shape[1], 1 / columns.shape[1])


def _line_search(theta: FloatArray, before: FloatArray, after: FloatArray) -> float:
    """The longest of 1, 1/2, 1/4, ... at which the log-likelihood rises by a third of what its slope promises."""
    slope = float(theta @ (after / before)) - 1.0
    length = 1.0
    with np.errstate(divide="ignore"):
        for _ in range(_MAX_HALVINGS):
            gain = float(theta @ np.log1p(length * (after - before) / before))
            if gain > 0 and gain >= length * slope / 3:
                return length
            length *= 0.5
    return 0.0
