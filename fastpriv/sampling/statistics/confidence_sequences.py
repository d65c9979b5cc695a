"""Confidence sequences: bounds for a mean that hold at every moment of a stream, by bets against each candidate mean.

Notation: observations X_i >= 0 with means that average to mu over each batch, given the past; b >= 0 a bet. For every
candidate m >= mu the wealth W(m) = product of (1 + b X_i) / (1 + b m) is a nonnegative supermartingale that starts at
1, and so is its average over bets with fixed weights; by Ville's inequality the chance that it ever reaches 1/a is at
most a. The candidates whose wealth has reached 1/a are refused: what is left is a lower bound. Where X <= 1 is known
too, the same bets on 1 - X give the upper bound. The logarithm of W(m) is S(b) - n log(1 + b m) with
S(b) = sum log(1 + b X_i), so the state is one sum a bet, whatever the length of the stream.

docs/proofs/betting.md, theorem 9.1. Observations need not have one mean: one point from each stratum counts as a batch,
and the mean of a batch is an observation too (9.2). It varies less than its points where strata differ, but n times
fewer of them bound what is rarely hit n times worse. The average of the wealth of both bets serves where either would,
at the price of log 2.

Sources: Ville 1939; Waudby-Smith and Ramdas 2023 (betting); Orabona and Jun 2024 (averages over bets);
Howard, Ramdas, McAuliffe and Sekhon 2021 (stopping times); Honda and Takemura 2010 (one sum a bet).
"""

# bounds: proved - docs/proofs/roundings.md, 13.16: rounding of a logarithm of few terms and of an exponential

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...base import validate
from ...base.errors import DomainError, ShapeError
from ...base.inverse import bisect
from ...base.numerics import BoolArray, FloatArray, two_sum
from ...kernels import _betting
from ..options import Side
from .intervals import Interval, error_of_one_bound, finished_interval

_EXPONENTS = np.arange(-22, 31)  # of the bets, powers of 2: from means known to 2^-22 of the range to rare hits
_BETS = np.ldexp(1.0, _EXPONENTS)  # in units of 1 / (high - low)
_LOG_PRIOR = -np.log1p(((_EXPONENTS + 3.0) / 3.0) ** 2)  # log weight of each bet: a Cauchy law around 1/8
_LOG_PRIOR -= np.log(np.exp(_LOG_PRIOR).sum())  # normalised: the weights sum to 1
_IDLE_LANES = _betting.BETS - len(_BETS)  # fill the lanes of the kernel with factors of 1
_LARGER = np.concatenate([_BETS, np.zeros(_IDLE_LANES)])  # b of the factors 1 + b X
_SMALLER = np.concatenate([1.0 / (1.0 + _BETS), np.ones(_IDLE_LANES)])  # 1 / (1 + b) of the bets on 1 - X
_LARGEST = 1e25  # larger values are lowered to this where the range is open: a lower bound stays one
_HALVINGS, _NEWTON_STEPS = 14, 60  # of the search for a bound: enough from any start
# bound: proved - docs/proofs/roundings.md, 13.16: relative rounding of observations and ends in units of the range
_SLACK = 1e-13
# bound: proved - docs/proofs/roundings.md, 13.16: error of a factor, of its price and of their logarithms
_ROUNDING = 2.0**-42


class BoundedMean:
    """The mean of observations in a known range, bounded at any time, in constant memory.

    Parameters
    ----------
    quantities : int or None
        Number e of streams side by side; None is one stream, with floats as answers.
    low, high : float
        Range of every observation. ``high=inf`` leaves the upper bound infinite.
    batch : int, optional
        Points of a batch: where it is more than 1, observations come by ``update_batches`` alone.

    Raises
    ------
    DomainError, ShapeError
        A range that is empty, an observation outside it by more than rounding (1e-9 of the range; less is cut), NaN.

    Notes
    -----
    Valid at any stopping time and for any distribution in the range: the interval may be read after every batch, and
    the run may stop for any reason. Rounding of the sums is added to the wealth that is needed.

    The weights of the bets are fixed (wide, and highest near 1/8), so states add up: tiles are filled anywhere and
    merged. An interval is about 1.75 times as wide as a Student interval that may be read once.

    **Accuracy** ``tests/intervals/test_sequences.py`` counts misses at the worst time of each run.

    Source: Waudby-Smith and Ramdas 2023, theorem 3; Ville 1939.

    Examples
    --------
    >>> import numpy as np
    >>> mean = BoundedMean()
    >>> mean.update(np.tile([0.2, 0.3, 0.4], 1000))
    >>> mean.interval(0.95)
    Interval(value=0.3, lower=0.29..., upper=0.30...)
    """

    def __init__(self, quantities: int | None = None, *, low: float = 0.0, high: float = 1.0, batch: int = 1) -> None:
        self._scalar = quantities is None
        self.quantities = 1 if quantities is None else validate.count("quantities", quantities)
        self.low = validate.scalar("low", low, "finite", np.isfinite)
        self.high = validate.scalar("high", high, "above low", lambda x: x > self.low)
        self._width = 1.0 if math.isinf(self.high) else self.high - self.low
        if math.isinf(self._width):
            raise DomainError(f"high must be within a finite distance of low; got {high!r}. Pass a range of doubles.")
        self.batch = validate.count("batch", batch)
        self.count = 0  # observations taken in; of batches, their points
        self._sum = np.zeros(self.quantities)
        self._sides = 1 if math.isinf(self.high) else 2
        self._sizes = (1,) if self.batch == 1 else (1, self.batch)  # points of an observation: alone, and of a mean
        self._logs = np.zeros((len(self._sizes), self._sides, self.quantities, _betting.BETS))
        self._lost = np.zeros_like(self._logs)  # by the roundings of their sums

    def update(self, values: Any) -> None:
        """Take in observations of shape (n,) or (n, quantities)."""
        block = self._in_units_of_range(values)
        self.count += len(block)
        self._sum += block.sum(axis=0)
        self._bet(0, block[block.any(axis=1)])  # log(1 + b 0) = 0

    def update_batches(self, values: FloatArray) -> None:
        """Take in batches of independent points, shape (quantities, batch, n), whose means average to the mean."""
        batches = values.shape[2]
        for index, rows in enumerate(values):
            block = self._in_units_of_range(rows.reshape(-1, 1), quantities=1)
            self._sum[index] += block.sum()
            self._bet(0, block[block[:, 0] > 0.0], index)
            if self.batch > 1:
                means = block.reshape(self.batch, batches).mean(axis=0)
                self._bet(1, means[means > 0.0, None], index)
        self.count += self.batch * batches

    def merge(self, other: BoundedMean) -> None:
        """Add what another state of the same range has taken in."""
        if (other.low, other.high, other.quantities, other.batch) != (self.low, self.high, self.quantities, self.batch):
            raise ShapeError(
                f"other must be of the range [{self.low!r}, {self.high!r}] and {self.quantities} quantities; got "
                f"[{other.low!r}, {other.high!r}] and {other.quantities}. Make both with the same arguments."
            )
        self.count += other.count
        self._sum += other._sum
        self._logs, lost = two_sum(self._logs, other._logs)
        self._lost += other._lost + lost

    def interval(self, confidence: float, side: Side = "both") -> Interval:
        """The mean so far and bounds for the true one; ``side`` as for ``replicate_interval``."""
        error = error_of_one_bound(confidence, side)
        mean = self._sum / max(self.count, 1)
        zeros = np.zeros(self.quantities)
        needed, slack = self._needed(error), self._needed(1.0)  # the second is its error alone
        lower = zeros
        upper = np.full(self.quantities, math.inf if self._sides == 1 else 1.0)
        if self.count and side != "upper":
            lower = _boundary(lambda m: self._log_wealth(0, m), zeros, mean, needed, slack) * (1.0 - _SLACK)
        if self.count and side != "lower" and self._sides == 2:
            boundary = _boundary(lambda m: self._log_wealth(1, m), zeros + 1.0, mean, needed, slack)
            upper = np.minimum(boundary * (1.0 + _SLACK), 1.0)
        value, lower, upper = (self.low + self._width * x for x in (mean, lower, upper))
        lower, upper = np.nextafter(lower, -math.inf), np.nextafter(upper, math.inf)
        shape = () if self._scalar else (self.quantities,)
        return finished_interval(value, lower, upper, side, self.low, self.high, shape)

    def exceeds(self, candidates: FloatArray, error: float) -> BoolArray:
        """Whether the mean of each quantity is proved to be above a candidate, each wrongly with this probability.

        It is the test that the lower end of ``interval`` inverts, in units of the observations.
        """
        if not self.count:
            return np.zeros(self.quantities, dtype=bool)
        m = np.maximum((candidates - self.low) / self._width * (1.0 + _SLACK), 0.0)
        return np.asarray(self._log_wealth(0, m)[0] >= self._needed(error))

    def _needed(self, error: float) -> float:
        """Logarithm of the wealth at which a candidate is refused."""
        return -math.log(error) + 1e-9 + self.count * _ROUNDING

    def _bet(self, kind: int, block: FloatArray, index: int | None = None) -> None:
        """Add the logarithms of the factors of observations in units of the range, of one quantity or of all."""
        block = np.ascontiguousarray(block)
        for side, bets in enumerate((_LARGER, _SMALLER)[: self._sides]):
            part = (kind, side, slice(None) if index is None else slice(index, index + 1))
            added = np.zeros_like(self._logs[part])
            _betting.add_log_wealth(block, bool(side), bets, added)
            self._logs[part], lost = two_sum(self._logs[part], added)
            self._lost[part] += lost

    def _in_units_of_range(self, values: Any, *, quantities: int | None = None) -> FloatArray:
        array = np.asarray(values, dtype=np.float64)
        quantities = quantities or self.quantities
        columns = array.shape[1] if array.ndim == 2 else 1
        if array.ndim > 2 or columns != quantities:
            raise ShapeError(
                f"values must be of shape (n,) or (n, {quantities}); got {array.shape}. One column a quantity."
            )
        array = (array.reshape(-1, quantities) - self.low) / self._width
        most = 1.0 + 1e-9 if self._sides == 2 else np.finfo(float).max
        inside = (array >= -1e-9) & (array <= most)
        if not inside.all():
            index = tuple(int(i) for i in np.argwhere(~inside)[0])
            worst = float(np.asarray(values).reshape(array.shape)[index])
            raise DomainError(
                f"values must be between {self.low!r} and {self.high!r}; got {worst!r} at index {index} "
                f"({int((~inside).sum())} of {array.size} entries). Give the range that holds for sure."
            )
        return np.clip(array, 0.0, 1.0 if self._sides == 2 else _LARGEST)

    def _log_wealth(self, side: int, m: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Logarithm of the wealth against the candidates m, shape (quantities,), and its slope; convex in m."""
        column = m[:, None]
        rate = _BETS if side == 0 else -_BETS / (1.0 + _BETS)  # the factor of one observation is divided by 1 + rate m
        price = 1.0 + rate * column if side == 0 else (1.0 - column) + column / (1.0 + _BETS)
        prior = _LOG_PRIOR - math.log(len(self._sizes))
        counts = [self.count / size for size in self._sizes]
        logs = [
            prior + sums[side, :, : len(_BETS)] - count * np.log(price)
            for sums, count in zip(self._logs + self._lost, counts, strict=True)
        ]
        terms = np.concatenate(logs, axis=-1)
        top = terms.max(axis=-1, keepdims=True)
        shares = np.exp(terms - top)
        total = shares.sum(axis=-1, keepdims=True)
        slope = np.concatenate([-count * rate / price for count in counts], axis=-1)
        return (top + np.log(total))[..., 0], (shares / total * slope).sum(axis=-1)


def tail_excess(log_moment: float, order: float, threshold: float) -> float:
    """Largest possible E (f - threshold)^+ of a variable with log E exp(order f) <= log_moment.

    It is exp(log_moment - s T) / (s e) for order s > 0 and threshold T, moved up by 1e-12 of itself, since
    (f - T)^+ <= exp(s (f - T)) / (s e), with equality at f = T + 1/s. Raises DomainError for an order that is not
    positive.

    Examples
    --------
    >>> tail_excess(0.0, 1.0, 20.0)
    7.58...e-10
    """
    order = validate.scalar("order", order, "positive and finite", lambda x: (x > 0) & np.isfinite(x))
    exponent = log_moment - order * threshold - 1.0 - math.log(order)
    exponent += 1e-15 * (abs(log_moment) + abs(order * threshold) + abs(math.log(order)) + 2.0)
    return math.exp(exponent) * (1.0 + 1e-12) if exponent < 709.0 else math.inf


def _boundary(
    log_wealth: Callable[[FloatArray], tuple[FloatArray, FloatArray]], refused: FloatArray, accepted: FloatArray,
    needed: float, slack: float,
) -> FloatArray:
    """The candidate at which the wealth reaches the threshold, searched from the rejected end; that end where it is
    accepted itself.

    The wealth is convex and falls from there to the mean. After some halvings come Newton's steps, which stop short of
    the boundary of ``needed + slack``; what they return is refused, or else the end of the halvings stands.
    """
    end_accepted, aim = log_wealth(refused)[0] < needed, needed + slack
    refused, accepted = bisect(lambda mean: ~(log_wealth(mean)[0] >= aim), refused, accepted, _HALVINGS)
    start = refused
    for _ in range(_NEWTON_STEPS):
        level, slope = log_wealth(start)
        step = np.where(slope == 0.0, 0.0, (aim - level) / np.where(slope == 0.0, 1.0, slope))
        shifted = np.clip(start + step, np.minimum(start, accepted), np.maximum(start, accepted))
        done = (level <= aim) | (np.abs(shifted - start) <= 1e-14 * np.abs(start - accepted))
        start = np.where(level <= aim, start, shifted)
        if done.all():
            break
    return np.where(end_accepted | ~(log_wealth(start)[0] >= needed), refused, start)
