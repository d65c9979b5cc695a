"""The noise that meets a mutual-information or LIP target, beside the root finding one would write with SciPy."""

import math

import numpy as np
import pytest
from comparison.accounting import information_bits
from scipy.optimize import brentq
from scipy.special import ndtr

from fastpriv import Pmf
from fastpriv.calibration import sigma_from_cd_lmip, sigma_from_lip

POINTS = np.linspace(-1.0, 1.0, 21)
WEIGHTS = np.exp(-2.0 * POINTS**2)
WEIGHTS /= WEIGHTS.sum()
PRIOR = Pmf(POINTS, WEIGHTS)
TARGETS = np.geomspace(1e-4, 2.0, 100)


def lip(sigma, epsilon, grid=20_001):
    """Both hockey-sticks of every point by sums over a grid."""
    edges = np.linspace(-1 - 12 * sigma, 1 + 12 * sigma, grid)
    cells = np.diff(ndtr((edges - POINTS[:, None]) / sigma), axis=1)
    release = WEIGHTS @ cells
    forth = np.maximum(release - math.exp(epsilon) * cells, 0).sum(axis=1)
    back = np.maximum(math.exp(-epsilon) * cells - release, 0).sum(axis=1)
    return max(forth.max(), back.max())


@pytest.mark.benchmark(group="sigma for 0.1 bit, 21 points")
def test_information_fastpriv(benchmark):
    got = benchmark(sigma_from_cd_lmip, 0.1, PRIOR, unit="bits")
    assert got.value == pytest.approx(1.16618639010826510130566, rel=1e-13)
    assert got.width < 1e-12


@pytest.mark.benchmark(group="sigma for 0.1 bit, 21 points")
def test_information_brentq(benchmark):
    def excess(sigma):
        return information_bits(POINTS, WEIGHTS, sigma) - 0.1

    got = benchmark.pedantic(lambda: brentq(excess, 1e-2, 1e2, rtol=1e-12), rounds=2)
    assert got == pytest.approx(1.16618639010826510130566, rel=1e-9)


@pytest.mark.benchmark(group="sigma for 100 targets from 1e-4 to 2 bits")
def test_grid_fastpriv(benchmark):
    got = benchmark(sigma_from_cd_lmip, TARGETS, PRIOR, unit="bits")
    assert (got.width <= 1e-12 * got.upper).all()


@pytest.mark.benchmark(group="sigma for LIP 0.01 at epsilon 0.5, 21 points")
def test_lip_fastpriv(benchmark):
    got = benchmark(sigma_from_lip, 0.5, 0.01, PRIOR)
    assert got.value == pytest.approx(brentq(lambda s: lip(s, 0.5) - 0.01, 0.1, 10), rel=1e-6)


@pytest.mark.benchmark(group="sigma for LIP 0.01 at epsilon 0.5, 21 points")
def test_lip_brentq_on_a_grid(benchmark):
    got = benchmark.pedantic(lambda: brentq(lambda s: lip(s, 0.5) - 0.01, 0.1, 10), rounds=2)
    assert got == pytest.approx(sigma_from_lip(0.5, 0.01, PRIOR).value, rel=1e-6)
