"""Bounds for a mean that hold at every moment of a stream: bets against each candidate mean.

Notation: observations X_i >= 0 with means that average to mu over each batch, given the past; b >= 0 a bet. For every
candidate m >= mu the wealth W(m) = product of (1 + b X_i) / (1 + b m) is a nonnegative supermartingale that starts at
1, and so is its average over bets with fixed weights; by Ville's inequality the chance that it ever reaches 1/a is at
most a. The candidates whose wealth has reached 1/a are refused: what is left is a lower bound. Where X <= 1 is known
too, the same bets on 1 - X give the upper bound. The logarithm of W(m) is S(b) - n log(1 + b m) with
S(b) = sum log(1 + b X_i), so the state is one sum a bet, whatever the length of the stream.

Observations need not have one mean: if those of a batch are independent with means m_i, then
product (1 + b m_i) <= (1 + b mean(m_i))^n, so one point from each stratum counts as a batch. The mean of a batch is an
observation too: it varies less than its points where strata differ, but n times fewer of them bound what is rarely hit
n times worse. The average of the wealth of both bets serves where either would, at the price of log 2.

Sources: Ville 1939; Waudby-Smith and Ramdas 2023 (betting); Orabona and Jun 2024 (averages over bets);
Howard, Ramdas, McAuliffe and Sekhon 2021 (stopping times); Honda and Takemura 2010 (one sum a bet).
"""

# bounds: tested by intervals/test_sequences - rounding of log wealth and of moments

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _validate
from ...errors import DomainError, ShapeError
from ...kernels import _wealth
from ...numerics import FloatArray
from ..options import Side
from .intervals import Interval, _error, _finished

__all__ = ["BoundedMean", "KlFloor", "tail_excess", "truncated_interval"]


_BETS = np.ldexp(1.0, np.arange(-22, 31))  # in units of 1 / (high - low)
_LOG_PRIOR = -np.log1p(((np.arange(-22, 31) + 3.0) / 3.0) ** 2)
_LOG_PRIOR -= np.log(np.exp(_LOG_PRIOR).sum())
_NO_BETS = _wealth.BETS - len(_BETS)  # fill the lanes of the kernel: factors of 1
_LARGER = np.concatenate([_BETS, np.zeros(_NO_BETS)])
_SMALLER = np.concatenate([1.0 / (1.0 + _BETS), np.ones(_NO_BETS)])
_LARGEST = 1e25  # larger values are lowered to this where the range is open: a lower bound stays one
_HALVINGS, _STEPS = 14, 60
# bound: tested by intervals/test_sequences - rounding of the bisection for an end
_SLACK = 1e-13  # outward, relative, for the rounding of the bisection
# bound: tested by intervals/test_sequences - error of one factor of the wealth and its logarithm
_ROUNDING = 2.0**-46  # error of one factor, and of its part of the logarithm of all


class BoundedMean:
    """The mean of observations in a known range, bounded at any time, in constant memory.

    Parameters
    ----------
    quantities : int or None
        Number e of streams side by side; None is one stream, with floats as answers.
    low, high : float
        Range of every observation. ``high=inf`` leaves the upper bound infinite; then ``unit`` sets the scale.
    unit : float, optional
        Scale of the bets where ``high`` is infinite, 1 by default: fix it before looking at the observations.
    batch : int, optional
        Points of a batch: where it is more than 1, observations come by ``update_batches`` alone.

    Attributes
    ----------
    count : int
        Observations taken in; of batches, their points.

    Raises
    ------
    DomainError, ShapeError
        A range that is empty, an observation outside it by more than rounding (1e-9 of the range; less is cut), NaN.

    Notes
    -----
    Valid at any stopping time and for any law in the range: the interval may be looked at after every batch, and the
    run may stop for any reason. Rounding of the sums is added to the wealth that is needed.

    The weights of the bets are fixed (wide, and highest near 1/8), so states add up: tiles are filled anywhere and
    merged. An interval is about 1.75 times as wide as a Student interval that may be looked at once.

    **Accuracy** ``tests/intervals/test_sequences.py`` counts misses at the worst time of each run.

    Source: Waudby-Smith and Ramdas 2023, theorem 3; Ville 1939.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.sampling.statistics.confidence_sequences import BoundedMean
    >>> mean = BoundedMean()
    >>> mean.update(np.tile([0.2, 0.3, 0.4], 1000))
    >>> mean.interval(0.95)
    Interval(value=0.3, lower=0.29..., upper=0.30...)
    """

    def __init__(
        self, quantities: int | None = None, *, low: float = 0.0, high: float = 1.0, unit: float = 1.0, batch: int = 1
    ) -> None:
        self._scalar = quantities is None
        self.quantities = 1 if quantities is None else _validate.count("quantities", quantities)
        self.low = _validate.scalar("low", low, "finite", np.isfinite)
        self.high = _validate.scalar("high", high, "above low", lambda x: x > self.low)
        self._width = self.high - self.low
        if math.isinf(self._width):
            self._width = _validate.scalar("unit", unit, "positive and finite", lambda x: (x > 0) & np.isfinite(x))
        self.batch = _validate.count("batch", batch)
        self.count = 0
        self._sum = np.zeros(self.quantities)
        self._sides = 1 if math.isinf(self.high) else 2
        self._sizes = (1,) if self.batch == 1 else (1, self.batch)  # points of an observation: alone, and of a mean
        self._logs = np.zeros((len(self._sizes), self._sides, self.quantities, _wealth.BETS))

    def update(self, values: Any) -> None:
        """Take in observations of shape (n,) or (n, quantities)."""
        block = self._unit(values)
        self.count += len(block)
        self._sum += block.sum(axis=0)
        self._bet(0, block[block.any(axis=1)])  # log(1 + b 0) = 0

    def update_batches(self, values: FloatArray) -> None:
        """Take in batches of independent points, shape (quantities, batch, n), whose means average to the mean."""
        batches = values.shape[2]
        for place, rows in enumerate(values):
            block = self._unit(rows.reshape(-1, 1), alone=True)
            self._sum[place] += block.sum()
            self._bet(0, block[block[:, 0] > 0.0], place)
            if self.batch > 1:
                means = block.reshape(self.batch, batches).mean(axis=0)
                self._bet(1, means[means > 0.0, None], place)
        self.count += self.batch * batches

    def fresh(self) -> BoundedMean:
        """An empty state of the same range, to be filled elsewhere and merged."""
        return BoundedMean(
            None if self._scalar else self.quantities, low=self.low, high=self.high, unit=self._width, batch=self.batch
        )

    def merge(self, other: BoundedMean) -> None:
        """Add what another state of the same range has taken in since it was fresh."""
        if (other.low, other.high, other._width, other.quantities, other.batch) != (
            self.low, self.high, self._width, self.quantities, self.batch,
        ):  # fmt: skip
            raise ShapeError(
                f"other must be of the range [{self.low!r}, {self.high!r}] and {self.quantities} quantities; got "
                f"[{other.low!r}, {other.high!r}] and {other.quantities}. Start it with fresh()."
            )
        self.count += other.count
        self._sum += other._sum
        self._logs += other._logs

    def interval(self, confidence: float, side: Side = "both") -> Interval:
        """The mean so far and bounds for the true one; ``side`` as for ``replicate_interval``."""
        error = _error(confidence, side)
        mean = self._sum / max(self.count, 1)
        zeros = np.zeros(self.quantities)
        need = -math.log(error) + 1e-9 + self.count * _ROUNDING
        lower = zeros
        upper = np.full(self.quantities, math.inf if self._sides == 1 else 1.0)
        if self.count and side != "upper":
            lower = _boundary(lambda m: self._wealth(0, m), zeros, mean, need) * (1.0 - _SLACK)
        if self.count and side != "lower" and self._sides == 2:
            found = _boundary(lambda m: self._wealth(1, m), zeros + 1.0, mean, need)
            upper = np.minimum(found * (1.0 + _SLACK), 1.0)
        value, lower, upper = (self.low + self._width * x for x in (mean, lower, upper))
        lower, upper = np.nextafter(lower, -math.inf), np.nextafter(upper, math.inf)
        shape = () if self._scalar else (self.quantities,)
        return _finished(value, lower, upper, side, self.low, self.high, shape)

    def _bet(self, kind: int, block: FloatArray, place: int | None = None) -> None:
        """Add the logarithms of the factors of observations in units of the range, of one quantity or of all."""
        block = np.ascontiguousarray(block)
        for side, bets in enumerate((_LARGER, _SMALLER)[: self._sides]):
            sums = self._logs[kind, side] if place is None else self._logs[kind, side, place : place + 1]
            _wealth.log_products(block, bool(side), bets, sums)

    def _unit(self, values: Any, *, alone: bool = False) -> FloatArray:
        array = np.asarray(values, dtype=np.float64)
        quantities = 1 if alone else self.quantities
        columns = array.shape[1] if array.ndim == 2 else 1
        if array.ndim > 2 or columns != quantities:
            raise ShapeError(
                f"values must be of shape (n,) or (n, {quantities}); got {array.shape}. One column a quantity."
            )
        array = (array.reshape(-1, quantities) - self.low) / self._width
        bound = 1.0 + 1e-9 if self._sides == 2 else np.finfo(float).max
        inside = (array >= -1e-9) & (array <= bound)
        if not inside.all():
            at = tuple(int(i) for i in np.argwhere(~inside)[0])
            worst = float(np.asarray(values).reshape(array.shape)[at])
            raise DomainError(
                f"values must be between {self.low!r} and {self.high!r}; got {worst!r} at index {at} "
                f"({int((~inside).sum())} of {array.size} entries). Give the range that holds for sure."
            )
        return np.clip(array, 0.0, 1.0 if self._sides == 2 else _LARGEST)

    def _wealth(self, side: int, m: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Logarithm of the wealth against the candidates m, shape (quantities,), and its slope; convex in m."""
        column = m[:, None]
        rate = _BETS if side == 0 else -_BETS / (1.0 + _BETS)  # price 1 + rate m
        price = 1.0 + rate * column if side == 0 else (1.0 - column) + column / (1.0 + _BETS)
        prior = _LOG_PRIOR - math.log(len(self._sizes))
        counts = [self.count / size for size in self._sizes]
        logs = [
            prior + sums[side, :, : len(_BETS)] - count * np.log(price)
            for sums, count in zip(self._logs, counts, strict=True)
        ]
        total, shares = _log_sum(np.concatenate(logs, axis=-1))
        slope = np.concatenate([-count * rate / price for count in counts], axis=-1)
        return total, (shares * slope).sum(axis=-1)


class KlFloor:
    """A lower bound for a Kullback-Leibler divergence that holds for any pair of laws, at any time.

    Parameters
    ----------
    quantities : int or None
        Number of streams side by side; None is one stream, with floats as answers.
    unit : float, optional
        Scale of the divergence, 1 by default: fix it before looking at the samples.

    Notes
    -----
    Under P the log ratio l = log p/q has E exp(-l) = Q(p > 0) <= 1, so its lower tail is light whatever the laws are:
    P(l <= -t) <= exp(-t). For every a in (0, 1] the variable Z = l + a exp(-l) - 1 - log a is nonnegative (its
    minimum 0 is at l = log a) and E Z <= KL + a - 1 - log a, with equality at a = 1 where Q << P. So each bet on Z is
    a bet against KL, and the average over a few a is one too. At a = 1, Z is the integrand with its natural control
    variate: for laws near each other its variance is of the order KL^2, that of l is of the order KL.
    There is no such upper bound: P may have an atom of mass 1e-9 where log p/q is 1e12.

    Samples of another law G with weights w = dP/dG serve as well: w Z is nonnegative and has the same mean.

    **Accuracy** ``tests/intervals/test_sequences.py``, on laws with every tail.

    Source: E exp(-l) <= 1 and Ville's inequality, as above.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.sampling.statistics.confidence_sequences import KlFloor
    >>> x = np.random.default_rng(0).normal(size=100_000)  # P = N(0, 1), Q = N(0.1, 1): KL = 0.005
    >>> floor = KlFloor()
    >>> floor.update(0.005 - 0.1 * x)
    >>> floor.lower(0.95)
    0.0049...
    """

    def __init__(self, quantities: int | None = None, *, unit: float = 1.0) -> None:
        self._scalar = quantities is None
        self.quantities = 1 if quantities is None else _validate.count("quantities", quantities)
        self._state = BoundedMean(self.quantities * len(_SHARES), high=math.inf, unit=unit)

    @property
    def count(self) -> int:
        """Samples taken in."""
        return self._state.count

    def update(self, log_ratio: Any, weights: Any = None) -> None:
        """Take in log p/q at samples of P, shape (n,) or (n, quantities), or of G with weights dP/dG."""
        ratio = _validate.real("log_ratio", log_ratio, "numbers").reshape(-1, self.quantities)
        ratio = np.maximum(ratio, -600.0)  # below, this lowers Z
        columns = [_gap(ratio)]
        columns += [ratio - 1.0 - math.log(a) + np.exp(math.log(a) - ratio) for a in _SHARES[1:]]
        values = np.maximum(np.stack(columns, axis=2), 0.0)
        if weights is not None:
            weight = _validate.real("weights", weights, "at least 0", lambda x: x >= 0)
            with np.errstate(invalid="ignore"):
                values = np.nan_to_num(weight.reshape(len(ratio), -1, 1) * values, nan=0.0, posinf=math.inf)
        self._state.update(np.minimum(values, _LARGEST * self._state._width).reshape(len(ratio), -1))

    def fresh(self) -> KlFloor:
        """An empty state, to be filled elsewhere and merged."""
        return KlFloor(None if self._scalar else self.quantities, unit=self._state._width)

    def merge(self, other: KlFloor) -> None:
        """Add what another state has taken in."""
        self._state.merge(other._state)

    def lower(self, confidence: float) -> Any:
        """The bound at this level, at least 0."""
        error = _error(confidence, "lower")
        need = -math.log(error) + 1e-9 + self.count * _ROUNDING
        extra = np.array([a - 1.0 - math.log(a) for a in _SHARES]) / self._state._width
        mean = (self._state._sum / max(self.count, 1)).reshape(-1, len(_SHARES))

        def wealth(m: FloatArray) -> tuple[FloatArray, FloatArray]:
            each, slopes = self._state._wealth(0, (m[:, None] + extra).ravel())
            total, shares = _log_sum(each.reshape(mean.shape) - math.log(len(_SHARES)))
            return total, (shares * slopes.reshape(mean.shape)).sum(axis=-1)

        start = _boundary(wealth, np.zeros(self.quantities), np.maximum((mean - extra).max(axis=1), 0.0), need)
        bound = start * self._state._width * (1.0 - _SLACK)
        return float(bound[0]) if self._scalar else bound


def tail_excess(log_moment: float, order: float, cut: float) -> float:
    """Largest possible E (f - cut)^+ of a variable with log E exp(order f) <= log_moment.

    Parameters
    ----------
    log_moment, order, cut : float
        The bound, the order s > 0, and where f is cut.

    Returns
    -------
    float
        exp(log_moment - s cut) / (s e), moved up by 1e-12 of itself.

    Raises
    ------
    DomainError
        For an order that is not positive.

    Notes
    -----
    (f - M)^+ <= exp(s (f - M)) / (s e), with equality at f = M + 1/s.

    Examples
    --------
    >>> from fastpriv.sampling.statistics.confidence_sequences import tail_excess
    >>> tail_excess(0.0, 1.0, 20.0)
    7.58...e-10
    """
    order = _validate.scalar("order", order, "positive and finite", lambda x: (x > 0) & np.isfinite(x))
    exponent = log_moment - order * cut - 1.0 - math.log(order)
    return math.exp(exponent) * (1.0 + 1e-12) if exponent < 709.0 else math.inf


def truncated_interval(
    state: BoundedMean, confidence: float, side: Side = "both", *, log_moment: float = math.inf, order: float = 1.0,
    log_moment_below: float = math.inf, order_below: float = 1.0,
) -> Interval:  # fmt: skip
    """Interval for the mean of an unbounded f from a stream of f cut to a range, by exponential moments.

    Parameters
    ----------
    state : BoundedMean
        Has taken in ``clip(f, low, high)``.
    confidence : float
        Level in (0, 1).
    side : {"both", "lower", "upper"}
        As for ``replicate_interval``.
    log_moment, order : float
        log E exp(order f) <= log_moment; infinite where nothing is known, and then so is the upper bound.
    log_moment_below, order_below : float
        log E exp(-order_below f) <= log_moment_below; for a log ratio under P it is 0 at order 1 for any pair of laws.

    Returns
    -------
    Interval
        The value is the mean of the cut variable.

    Notes
    -----
    E f <= E clip(f) + E (f - high)^+ and E f >= E clip(f) - E (low - f)^+; both excesses by ``tail_excess``. For
    f = log p/q under P and order s the upper moment is s times the Renyi divergence of order 1 + s.

    **Accuracy** ``tests/intervals/test_sequences.py``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.sampling.statistics.confidence_sequences import BoundedMean, truncated_interval
    >>> x = np.random.default_rng(0).normal(size=100_000)  # KL of N(0, 1) from N(1, 1), Renyi of order 2 is 1
    >>> state = BoundedMean(low=-15.0, high=20.0)
    >>> state.update(np.clip(0.5 - x, -15.0, 20.0))
    >>> truncated_interval(state, 0.95, log_moment=1.0, log_moment_below=0.0)
    Interval(value=0.500..., lower=0.490..., upper=0.511...)
    """
    value, lower, upper = state.interval(confidence, side)
    above, below = tail_excess(log_moment, order, state.high), tail_excess(log_moment_below, order_below, -state.low)
    lower = np.full_like(np.asarray(value), -math.inf) if side == "upper" else np.asarray(lower) - below
    upper = np.full_like(np.asarray(value), math.inf) if side == "lower" else np.asarray(upper) + above
    if np.ndim(value) == 0:
        return Interval(value, float(lower), float(upper))
    return Interval(value, lower, upper)


_SHARES = (1.0, 2.0**-3, 2.0**-6, 2.0**-10)


def _boundary(
    wealth: Callable[[FloatArray], tuple[FloatArray, FloatArray]], refused: FloatArray, kept: FloatArray, need: float
) -> FloatArray:  # fmt: skip
    """The candidate where the wealth is what is needed, from the end that is refused; that end where it is kept itself.

    The wealth is convex and falls from there to the mean: after some halvings Newton's steps, which stop short of the
    boundary, so that whatever they return is refused, or on the boundary.
    """
    outer = wealth(refused)[0] < need
    start = refused
    for _ in range(_HALVINGS):
        middle = 0.5 * (start + kept)
        far = wealth(middle)[0] >= need
        start, kept = np.where(far, middle, start), np.where(far, kept, middle)
    for _ in range(_STEPS):
        level, slope = wealth(start)
        step = np.where(slope == 0.0, 0.0, (need - level) / np.where(slope == 0.0, 1.0, slope))
        moved = np.clip(start + step, np.minimum(start, kept), np.maximum(start, kept))
        done = (level <= need) | (np.abs(moved - start) <= 1e-14 * np.abs(start - kept))
        start = np.where(level <= need, start, moved)
        if done.all():
            break
    return np.where(outer, refused, start)


def _log_sum(terms: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logarithm of the sum of exp over the last axis, and the share of each term."""
    top = terms.max(axis=-1, keepdims=True)
    shares = np.exp(terms - top)
    total = shares.sum(axis=-1, keepdims=True)
    return (top + np.log(total))[..., 0], shares / total


def _gap(ratio: FloatArray) -> FloatArray:
    """l + exp(-l) - 1 >= 0 with its relative accuracy near 0."""
    near = np.abs(ratio) < 0.03
    x = np.where(near, ratio, 0.0)
    series = x * x * (0.5 - x * (1 / 6 - x * (1 / 24 - x * (1 / 120 - x * (1 / 720 - x / 5040)))))
    return np.where(near, series, ratio + np.expm1(-ratio))
