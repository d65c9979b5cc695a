"""Comparison of the integrals of two log densities by draws, such that heavy tails cannot deceive it.

Notation: l = log p - log q at a draw, infinite where one of them is zero; Z_p and Z_q the integrals of what was given.
With draws of both, s(l) = n_p p / (n_p p + n_q q) is the chance that a draw at this point is one of P, and

    sum over draws of P of (1 - s) - sum over draws of Q of s

has mean 0 when Z_p = Z_q. Its terms lie in [0, 1], so that no tail can deceive it, and where P and Q do not meet it
says nothing. With l moved by log r it is 0 at the best estimate of r = Z_p / Z_q.

During a run ``LogRatioSums`` holds what the draws so far say. Under equal integrals q / (p + q) has the same mean under
P as p / (p + q) has under Q, however many draws each has; both lie in [0, 1]. The ratio of these means is Z_p / Z_q.

With draws of one side alone the mean of the other density over its own is at most 1: less where the other distribution
has mass that these draws cannot reach. A mean above 1 is proved by betting (a supermartingale); one below 1 is reported
where the weights have a light tail.

Sources: Bennett 1976; Meng and Wong 1996, with the variance of the intercept of a logistic regression; Ville 1939 for
the bet.
"""

# bounds: none - when a warning is given

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from ...base.errors import warned
from ...base.inverse import bisect
from ...base.numerics import FloatArray
from .tail_index import LargestValues

__all__ = [
    "RATIO_ROUNDING", "IntegralComparison", "LogRatioSums", "compare_integrals", "compare_integrals_and_warn",
    "warn_of_normalisation",
]  # fmt: skip

Verdict = Literal["equal", "unequal", "out of reach"]

_DOUBT = 20.0  # minus log of the chance of a false alarm
_LIGHT_TAIL = 0.3  # tail index below which a mean with a standard error is believed
# bound: none - when a warning is given
_ERRORS = 8.0  # standard errors that the mean of light-tailed weights must lie below 1
_HALVINGS = 80  # of the search for the ratio: more than doubles tell apart
_RUN_ERRORS = 4.2  # standard errors at the end of a run: a false alarm has a chance of 3e-5 where a mean is normal
_LARGEST_SHARE = 0.03  # of the sum of squares: a weight that has more says that the mean is not near normal
_BLOCK = 2**12  # draws taken at once: fresh memory for more would cost more than the work
_MIN_DRAWS = 64  # of each side, for a comparison
# bound: none - when a warning is given
RATIO_ROUNDING = 1e-12  # relative to the log densities: log ratios that differ by less are equal but for rounding
_VAGUE = 0.25  # variance of log r from which on the estimate is not worth giving


class IntegralComparison(NamedTuple):
    """Estimate of Z_p / Z_q and its standard error; NaN and infinity where the draws do not determine it.

    ``verdict`` is "equal" unless the opposite is shown; "out of reach" for one-sided draws whose mean is below 1: the
    integrals differ, or the other distribution has mass where these draws never are.
    """

    ratio: float
    error: float
    verdict: Verdict


_NOTHING_SAID = IntegralComparison(math.nan, math.inf, "equal")  # of draws that are too few or of no use


def compare_integrals(at_p: FloatArray | None, at_q: FloatArray | None) -> IntegralComparison:
    """Compare the integrals from l, shape (n,), at independent draws of P, of Q, or of both.

    ``tests/properties/test_normalisation.py`` holds estimate, error and false alarms.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> at_p, at_q = 0.5 + rng.standard_normal(4000), -0.5 + rng.standard_normal(4000)
    >>> compare_integrals(at_p, at_q).verdict
    'equal'
    >>> compare_integrals(at_p + np.log(0.37), at_q + np.log(0.37))
    IntegralComparison(ratio=0.36..., error=0.004..., verdict='unequal')
    """
    if at_p is not None and at_q is not None and len(at_p) and len(at_q):
        return _both_sides(np.asarray(at_p), np.asarray(at_q))
    if at_q is not None and len(at_q):
        return _one_side(np.asarray(at_q))
    if at_p is not None and len(at_p):
        comparison = _one_side(-np.asarray(at_p))
        if math.isfinite(comparison.error) and comparison.ratio > 1e-100:
            ratio = comparison.ratio
            return IntegralComparison(1.0 / ratio, comparison.error / ratio**2, comparison.verdict)
        return comparison
    return _NOTHING_SAID


class LogRatioSums:
    """Statistics of l = log p - log q over all draws of a run: its range, and whether the integrals are equal.

    ``one_sided`` says that only one of the two is drawn from, so that the tail of the weights matters. Sums add up; a
    merge in a fixed order gives fixed bits. ``tests/properties/test_normalisation.py`` counts false alarms.
    """

    def __init__(self, *, one_sided: bool) -> None:
        self.one_sided = one_sided
        self.counts = [0, 0]  # draws of P and of Q, as all pairs below
        self.chances = np.zeros((2, 2))  # sums of the chance that the draw is of the other side, and of its square
        self.weights = np.zeros(3)  # sums of the density ratio (other side over own), its square and its cube
        self.largest = 0.0
        self.low, self.high, self.size = math.inf, -math.inf, 1.0

    def update(self, lp: FloatArray, lq: FloatArray, of_p: bool, ratio: FloatArray | None = None) -> None:
        """Take in log densities at draws of P or of Q; each counts ``ratio`` times where that is given."""
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            for first in range(0, len(lp), _BLOCK):
                some = slice(first, first + _BLOCK)
                self._take(lp[some], lq[some], of_p, None if ratio is None else ratio[some])

    def _take(self, lp: FloatArray, lq: FloatArray, of_p: bool, ratio: FloatArray | None) -> None:
        difference = lp - lq
        self.low, self.high = min(self.low, float(difference.min())), max(self.high, float(difference.max()))
        for logs in (lp, lq):
            size = max(-float(logs.min()), float(logs.max()))
            self.size = max(self.size, size) if math.isfinite(size) else self.size
        weight = np.exp(-difference if of_p else difference)
        chance = 1.0 / (1.0 + 1.0 / weight)
        if ratio is not None:
            weight, chance = weight * ratio, chance * ratio
        side = 0 if of_p else 1
        self.counts[side] += len(lp)
        self.chances[side] += chance.sum(), (chance * chance).sum()
        if self.one_sided:
            square = weight * weight
            self.weights += weight.sum(), square.sum(), (square * weight).sum()
            self.largest = max(self.largest, float(weight.max()))

    def merge(self, other: LogRatioSums) -> None:
        """Take in what another collector holds."""
        self.counts = [mine + new for mine, new in zip(self.counts, other.counts, strict=True)]
        self.chances = self.chances + other.chances
        with np.errstate(invalid="ignore", over="ignore"):
            self.weights = self.weights + other.weights
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.size = max(self.size, other.size)
        self.largest = max(self.largest, other.largest)

    @property
    def ratios_equal(self) -> bool:
        """Whether all log ratios are equal but for their rounding."""
        return sum(self.counts) > 1 and self.high - self.low <= RATIO_ROUNDING * self.size

    @property
    def infinite_ratio(self) -> bool:
        """Whether some log ratio is infinite: a density is 0 there."""
        return not (math.isfinite(self.low) and math.isfinite(self.high))

    def comparison(self) -> IntegralComparison:
        """The verdict of all draws so far."""
        if min(self.counts) >= _MIN_DRAWS:
            return self._both_sides()
        side = int(np.argmax(self.counts))
        if not self.one_sided or self.counts[side] < _MIN_DRAWS:
            return _NOTHING_SAID
        return self._one_side(side)

    def _both_sides(self) -> IntegralComparison:
        n = np.array(self.counts, dtype=np.float64)
        mean = self.chances[:, 0] / n
        variance = np.maximum(self.chances[:, 1] / n - mean * mean, 0.0) / n
        gap, least = abs(float(mean[1] - mean[0])), float(n.min())
        verdict: Verdict = "equal"
        if gap > _RUN_ERRORS * math.sqrt(float(variance.sum())) + _DOUBT / least:
            verdict = "unequal"
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = float(mean[1] / mean[0])
            error = ratio * math.sqrt(float(np.sum(variance / (mean * mean))))
        return IntegralComparison(ratio, error if math.isfinite(error) else math.inf, verdict)

    def _one_side(self, side: int) -> IntegralComparison:
        """A mean of weights above 1 is shown by its own standard error: those of rare large weights err downward. One
        below 1 is believed where no weight dominates the sums, and twice their skewness does not explain it. The mass
        that the draws may have missed explains a little."""
        n = self.counts[side]
        if not np.isfinite(self.weights).all():
            return _NOTHING_SAID
        mean, square, cube = (self.weights / n).tolist()
        variance = max(square - mean * mean, 0.0)
        error, unseen = math.sqrt(variance / n), _DOUBT / n + RATIO_ROUNDING * self.size
        third = max(cube - 3.0 * mean * square + 2.0 * mean**3, 0.0)
        skewness = third / variance**1.5 / math.sqrt(n) if variance > 0.0 else 0.0
        lacking = _RUN_ERRORS + 2.0 * skewness * (1.0 + 2.0 * _RUN_ERRORS**2) / 6.0
        verdict: Verdict = "equal"
        if mean - 1.0 > _RUN_ERRORS * error + unseen:
            verdict = "unequal"
        elif 1.0 - mean > lacking * error + unseen and self.largest**2 <= _LARGEST_SHARE * self.weights[1]:
            verdict = "out of reach"
        if side == 1 or mean <= 1e-100:  # q over p at draws of P
            return IntegralComparison(mean, error, verdict)
        return IntegralComparison(1.0 / mean, error / mean**2, verdict)


def compare_integrals_and_warn(
    at_p: FloatArray | None, at_q: FloatArray | None, p: str = "p", q: str = "q"
) -> IntegralComparison:
    """Warn where the draws show that the log densities named ``p`` and ``q`` are not both normalised."""
    comparison = compare_integrals(at_p, at_q)
    warn_of_normalisation(comparison, p, q, of_p=at_q is None)
    return comparison


def warn_of_normalisation(comparison: IntegralComparison, p: str = "p", q: str = "q", *, of_p: bool = True) -> None:
    """Warn of integrals that are not equal; if one side alone was drawn from, ``of_p`` says whether it was P."""
    drawn, other = (p, q) if of_p else (q, p)
    size = f"{comparison.ratio:.3g} +- {comparison.error:.1g}"
    if comparison.verdict == "unequal":
        warned(
            f"log densities must be normalised: the integral of {p} over that of {q} is {size}, not 1. The answer is "
            "that of other distributions. Subtract the logarithm of its integral from each."
        )
    elif comparison.verdict == "out of reach":
        warned(
            f"draws of {drawn} alone give the integral of {p} over that of {q} as {size}, not 1: the log densities are "
            f"not normalised, or {other} has mass where {drawn} has none. In the second case give a sampler for "
            f"{other} too, where the quantity depends on that mass."
        )


def _both_sides(at_p: FloatArray, at_q: FloatArray) -> IntegralComparison:
    shift = math.log(len(at_p) / len(at_q))

    def likelihood_score(c: float) -> tuple[float, float]:
        """The sum above when l moves by -c, and the sum of s (1 - s) over all draws."""
        p, q = _chance(shift + at_p - c), _chance(shift + at_q - c)
        return float((1.0 - p).sum() - q.sum()), float((p * (1.0 - p)).sum() + (q * (1.0 - q)).sum())

    everything = np.concatenate([at_p, at_q])
    finite = everything[np.isfinite(everything)]
    if finite.size == 0:
        return _NOTHING_SAID
    low, high = float(finite.min()) - 60.0, float(finite.max()) + 60.0
    if likelihood_score(low)[0] > 0 or likelihood_score(high)[0] < 0:
        return _NOTHING_SAID
    low, high = bisect(lambda c: not likelihood_score(c)[0] < 0, low, high, _HALVINGS)
    best = 0.5 * (low + high)
    weight = likelihood_score(best)[1]
    spread = 1.0 / weight - 1.0 / len(at_p) - 1.0 / len(at_q) if weight > 0 else math.inf
    unequal = _differs(at_p, at_q, shift)
    if spread > _VAGUE:  # P and Q hardly overlap
        excess = _one_side(at_q).ratio, _one_side(-at_p).ratio
        ratio = excess[0] if excess[0] > 1 else 1.0 / max(excess[1], 1.0)
        return IntegralComparison(ratio, math.inf, "unequal") if unequal else _NOTHING_SAID
    ratio = math.exp(min(best, 700.0))
    return IntegralComparison(ratio, ratio * math.sqrt(max(spread, 0.0)), "unequal" if unequal else "equal")


def _differs(at_p: FloatArray, at_q: FloatArray, shift: float) -> bool:
    """Whether the sum above is too far from 0 for equal integrals: Bernstein's inequality with the variance that equal
    integrals give at most, or with the one that is seen (Maurer and Pontil 2009)."""
    p, q = _chance(shift + at_p), _chance(shift + at_q)
    total = abs(float((1.0 - p).sum() - q.sum()))
    most = float((p * (1.0 - p)).sum() + (q * (1.0 - q)).sum())
    seen = len(p) * float(p.var()) + len(q) * float(q.var())
    bernstein_bound = math.sqrt(2.0 * most * _DOUBT) + _DOUBT / 3.0
    empirical_bernstein_bound = math.sqrt(2.0 * seen * _DOUBT) + _DOUBT * 7.0 / 3.0
    return total > min(bernstein_bound, empirical_bernstein_bound)


def _one_side(log_weights: FloatArray) -> IntegralComparison:
    with np.errstate(over="ignore"):
        weights = np.exp(log_weights)
    n = len(weights)
    mean = float(weights.mean())
    error = float(weights.std()) / math.sqrt(n) if math.isfinite(mean) else math.inf
    stakes = 0.5 ** np.arange(1, 25)
    won = max(float(np.log1p(stake * (weights - 1.0)).sum()) for stake in stakes) - math.log(len(stakes))
    if won > _DOUBT:
        return IntegralComparison(mean, error, "unequal")
    if 1.0 - mean > _ERRORS * error:
        top = LargestValues()
        top.update(weights)
        if float(top.index()[0]) < _LIGHT_TAIL:
            return IntegralComparison(mean, error, "out of reach")
    return IntegralComparison(mean, error, "equal")


def _chance(logit: FloatArray) -> FloatArray:
    return 0.5 + 0.5 * np.tanh(0.5 * logit)
