"""Comparison of the integrals of two log densities by the draws of a run.

Notation: l = log p - log q at a draw, infinite where one of them is zero; Z_p and Z_q the integrals of what was given.
Under equal integrals q / (p + q) has the same mean under P as p / (p + q) has under Q, however many draws each has;
both lie in [0, 1], so that no tail can deceive them. The ratio of these means is Z_p / Z_q. Where P and Q do not meet
it says nothing.

With draws of one side alone the mean of the other density over its own is at most 1: less where the other distribution
has mass that these draws cannot reach. A mean above 1 is shown by its standard error; one below 1 is reported where the
weights have a light tail.

Sources: Bennett 1976; Meng and Wong 1996.
"""

# bounds: none - when a warning is given

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from ...base.errors import warned
from ...base.numerics import FloatArray

Verdict = Literal["equal", "unequal", "out of reach"]

_DOUBT = 20.0  # minus log of the chance of a false alarm
_RUN_ERRORS = 4.2  # standard errors at the end of a run: a false alarm has a chance of 3e-5 where a mean is normal
_LARGEST_SHARE = 0.03  # of the sum of squares: a weight that has more says that the mean is not near normal
_BLOCK = 2**12  # draws taken at once: fresh memory for more would cost more than the work
_MIN_DRAWS = 64  # of each side, for a comparison
# bound: none - when a warning is given
RATIO_ROUNDING = 1e-12  # relative to the log densities: log ratios that differ by less are equal but for rounding


class IntegralComparison(NamedTuple):
    """Estimate of Z_p / Z_q and its standard error; NaN and infinity where the draws do not determine it.

    ``verdict`` is "equal" unless the opposite is shown; "out of reach" for one-sided draws whose mean is below 1: the
    integrals differ, or the other distribution has mass where these draws never are.
    """

    ratio: float
    error: float
    verdict: Verdict


_NOTHING_SAID = IntegralComparison(math.nan, math.inf, "equal")  # of draws that are too few or of no use


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
        least = self.low if side == 1 else -self.high
        if not np.isfinite(self.weights).all() and least > 1.0:  # a weight above e has a chance below 1 / e
            return IntegralComparison(math.inf if side == 1 else 0.0, math.inf, "unequal")
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
