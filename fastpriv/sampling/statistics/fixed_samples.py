"""Bounds for means and ratios of means from a fixed number of observations, about as narrow as a normal approximation.

Notation: (H_i, N_i) independent pairs of one distribution, 0 <= H <= N; p = E H / E N; a the error of one bound.

Candidates p_1 < p_2 < ... are fixed in advance, and each is tested by bets of its own (``csrc/sampling/
fp_ratio_bets.h``), as the hypothesis that p is at most that. They are tested in increasing order up to the first that
is not refused, and the one before it is the lower bound (docs/proofs/betting.md, theorem 9.4). The upper bound is that
of N - H.

``confidence_sequences`` has bounds that hold at every moment of a stream; these hold for the whole sample only, and
are 1.04 to 1.2 times as wide as normal intervals where those are 1.75 times as wide.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...kernels import _betting
from ..options import Side
from .intervals import Interval, error_of_one_bound, finished_interval

_CANDIDATES_PER_DEVIATION = 20.0  # over the square root of the number of outcomes: an interval has some forty
# bound: none - observations beyond which a mean is that of groups of equal size, which is unbiased: a second of tests
_MOST_UNITS = 100_000
_TESTS_PER_CALL = 2**22  # factors of the wealth of one call of the kernel, less than 0.2 s


def ratio_lower_bound(hits: Any, totals: Any, most: float, error: float, *, outcomes: int | None = None) -> float:
    """Lower bound of E hits / E totals, which fails with probability ``error`` at most.

    Parameters
    ----------
    hits, totals : array_like, shape (n,)
        Observations with 0 <= hits <= totals.
    most : float
        Largest possible total.
    error : float
        Probability in (0, 1).
    outcomes : int, optional
        Outcomes behind all observations, known in advance: how fine the candidates are. Default: n.

    Notes
    -----
    **Accuracy** ``tests/intervals/test_fixed_samples.py`` counts the misses.

    Examples
    --------
    >>> ratio_lower_bound([1.0, 0.0, 1.0, 1.0] * 100, [1.0] * 400, 1.0, 0.025)
    0.70...
    """
    h = np.ascontiguousarray(np.asarray(hits, dtype=np.float64) / most)
    n = np.ascontiguousarray(np.asarray(totals, dtype=np.float64) / most)
    number = math.ceil(_CANDIDATES_PER_DEVIATION * math.sqrt(max(outcomes or h.size, 1)))
    t = np.arange(1, number) / number
    candidates = t * t / (t * t + (1.0 - t) ** 2)  # closer to each other near 0 and 1, as deviations are
    step = max(1, _TESTS_PER_CALL // max(h.size, 1))
    refused = 0
    for start in range(0, candidates.size, step):
        part = candidates[start : start + step]
        leading = _betting.leading_refused(h, n, part, error)
        refused += leading
        if leading < part.size:
            break
    return float(candidates[refused - 1]) if refused else 0.0


def bounded_mean_interval(
    values: Any, confidence: float, side: Side = "both", *, low: float = 0.0, high: float = 1.0,
    outcomes: int | None = None,
) -> Interval:
    """The mean of independent observations between ``low`` and ``high``, and bounds for the true one.

    ``side`` is as for ``replicate_interval``, ``outcomes`` as for ``ratio_lower_bound``.

    Examples
    --------
    >>> bounded_mean_interval([0.2, 0.3, 0.4] * 1000, 0.95)
    Interval(value=0.3, lower=0.29..., upper=0.30...)
    """
    x = np.clip((np.asarray(values, dtype=np.float64) - low) / (high - low), 0.0, 1.0)
    group = math.ceil(x.size / _MOST_UNITS)
    units = x[: x.size // group * group].reshape(-1, group).mean(axis=1)
    error, item = error_of_one_bound(confidence, side), np.ones(units.size)
    requested = ((units, side != "upper"), (1.0 - units, side != "lower"))
    lower, remainder = (
        ratio_lower_bound(y, item, 1.0, error, outcomes=outcomes) if wanted else 0.0 for y, wanted in requested
    )
    # an observation is rounded by some 1e-16 of the range, the distance of candidates is above 1e-9
    ends = np.array([[np.mean(x)], [lower], [1.0 - remainder]])
    value, lower_end, upper_end = low + (high - low) * ends
    return finished_interval(value, lower_end, upper_end, side, low, high, ())
