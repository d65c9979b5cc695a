"""The Laplace mechanism against arithmetic of 50 digits."""

import math

import numpy as np
import pytest
from mpmath import exp, expm1, log1p, mp, mpf

from fastpriv import DomainError, LaplaceMechanism

PAIRS = [(1.0, 1.0), (3.0, 1.0), (0.1, 0.3), (1e300, 1e-300), (7.0, 5e-324), (1e-3, 1e3), (1.0, 2.0**-40)]


@pytest.mark.parametrize(("scale", "sensitivity"), PAIRS)
def test_curve_and_inverse(scale, sensitivity):
    mechanism, ratio = LaplaceMechanism(scale, sensitivity), mpf(sensitivity) / mpf(scale)
    levels = np.array([0.0, 1e-300, 0.1, 0.5, 0.999999, 1.0, 1.0001, 5.0]) * float(ratio)
    with mp.workdps(50):
        ratio = mpf(sensitivity) / mpf(scale)
        found = mechanism.delta(levels)
        for level, value, low, high in zip(levels, found.value, found.lower, found.upper, strict=True):
            truth = max(mpf(0), -expm1((mpf(float(level)) - ratio) / 2))
            assert low <= value <= high
            assert low <= truth <= high, (level, low, truth, high)
            if truth > 1e-290 and level < 0.9 * float(ratio):
                assert high - low <= 4e-15 * truth
        deltas = np.array([0.0, 1e-300, 1e-9, 0.01, 0.5, 1 - 1e-16, 1.0])
        back = mechanism.epsilon(deltas)
        for delta, low, high in zip(deltas, back.lower, back.upper, strict=True):
            truth = max(mpf(0), ratio + 2 * log1p(-mpf(float(delta)))) if delta < 1 else mpf(0)
            assert low <= truth <= high, (delta, low, truth, high)


def test_ends():
    assert LaplaceMechanism(1.0, 0.0).delta(0.0).upper == 0.0
    assert LaplaceMechanism(2.0, 1.0).epsilon(0.0).upper == 0.5
    assert LaplaceMechanism(5e-324, 1e300).epsilon(0.1).upper == math.inf
    assert LaplaceMechanism(1e-3, 1e3).delta(0.0).value == 1.0
    assert float(exp(0)) == 1.0


def test_what_is_refused():
    for call, text in (
        (lambda: LaplaceMechanism(0.0), "scale must be positive and finite"),
        (lambda: LaplaceMechanism(1.0, -1.0), "sensitivity must be at least 0 and finite"),
        (lambda: LaplaceMechanism(1.0).delta(np.nan), "epsilon must be a number; got nan"),
        (lambda: LaplaceMechanism(1.0).epsilon(2.0), "delta must be between 0 and 1"),
    ):
        with pytest.raises(DomainError, match=text):
            call()
