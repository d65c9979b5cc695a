"""Tilts along a path, and the proved bound of what their values are cut by."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from fastpriv import BandedMatrixMechanism, Estimate
from fastpriv.composition import mixture_sampling
from fastpriv.composition.banded_matrices import _covariances, _noise
from oracles import structured_sampling as oracle


@functools.cache
def proposals(coefficients, sigma, bins, epsilon, adds=False):
    one = BandedMatrixMechanism(coefficients, sigma, bins)
    places = np.arange(bins)
    matrix = _covariances(one)[np.abs(places - places[:, None])]
    law = mixture_sampling.Covariances(matrix, lambda rng, size: _noise(one, rng, size))
    return mixture_sampling.fitted_proposals(law, epsilon, adds, np.random.SeedSequence(5))


CASES = [((1.0,), 1.0, 2, 2.0, False), ((1.0, 0.5), 0.5, 6, 6.0, False),
         ((1.0, 0.5), 5.0, 12, 0.2, False), ((1.0, 0.9, 0.8), 2.0, 6, 1.0, False),
         ((1.0, 0.5), 1.0, 10, 1.0, True), ((1.0,), 3.0, 5, 0.4, True)]  # fmt: skip


@pytest.mark.few(4)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("cut", [0.3, 1.0, 10.0])
def test_remainder_is_above_what_is_cut(case, cut):
    """Cuts so low that much is cut, which the samples see."""
    one = proposals(*case)
    log_cut = one.log_delta + math.log(cut)
    values = np.exp(one.log_values(np.random.default_rng(1), 20_000)[0] - one.log_delta)
    over = np.maximum(values - cut, 0.0)
    bound = math.exp(mixture_sampling.log_remainder(one, log_cut, math.inf) - one.log_delta)
    assert over.mean() - 4.0 * over.std() / math.sqrt(over.size) <= bound
    assert bound < 1000.0


def test_remainder_falls_with_the_cut_and_may_be_too_large():
    one = proposals((1.0, 0.5), 1.0, 10, 3.4)
    bounds = [mixture_sampling.log_remainder(one, one.log_delta + math.log(t), math.inf) for t in (10.0, 1e3, 1e5)]
    assert bounds[0] > bounds[1] > bounds[2]
    assert bounds[2] < one.log_delta + math.log(0.02)
    assert mixture_sampling.log_remainder(one, one.log_delta, one.log_delta - 20.0) == math.inf


@pytest.mark.parametrize("falls", [False, True])
@pytest.mark.parametrize(("rate", "power", "deviation", "shift"), [
    (0.5, 1.0, 0.3, 0.2), (4.0, 2.5, 1.0, -1.0), (30.0, 1.2, 0.2, 0.5), (2.0, 3.0, 2.5, -4.0),
])  # fmt: skip
def test_means_of_functions_are_bounded_closely(falls, rate, power, deviation, shift):
    cap, cut = 1.5, 3.0
    end = math.inf if falls else cut

    def integrand(z):
        y = math.exp(shift + deviation * z)
        log = -rate * power * y if falls else rate * power * min(y, math.exp(cap))
        return math.exp(log - 0.5 * z * z) / math.sqrt(2.0 * math.pi)

    points = np.linspace(-12.0, min(end, 20.0), 60)
    truth = sum(integrate.quad(integrand, a, b)[0] for a, b in itertools.pairwise(points))
    one = np.ones(1)
    variables = mixture_sampling._Variables(
        2.0 * one, shift * one, deviation * one, deviation * one, end * one, power * one
    )
    found = mixture_sampling._log_means(np.array([rate]), variables, math.inf if falls else cap, falls)[0]
    exact = 2.0 * math.log(truth) / power
    assert exact <= found + 1e-9
    assert found < exact + 0.3 + 0.1 * abs(exact)


def test_powers_of_the_product_bound():
    """Two exponentials of correlated variables, in closed form, against the bound with its p_j."""
    g = np.array([[1.0, 0.6], [0.6, 2.0]])
    for weights in ([1.0, 1.0], [1.0, 3.0]):
        w = np.array(weights)
        p = (g * w).sum(axis=1) / (np.diagonal(g) * w)
        assert np.linalg.eigvalsh(np.diag(p * np.diagonal(g)) - g)[0] > -1e-12
        truth = 0.5 * w @ g @ w
        assert truth == pytest.approx(0.5 * (p * w**2 * np.diagonal(g)).sum())


@pytest.mark.few(1)
@pytest.mark.parametrize(("direction", "epsilon"), [("forward", 2.2), ("forward", 4.0), ("backward", 1.2)])
def test_bounds_hold_the_certified_value_of_one_band(direction, epsilon):
    one = BandedMatrixMechanism([1.0], 1.0, 12)
    truth = one.delta(epsilon, direction=direction)
    sampler = proposals((1.0,), 1.0, 12, epsilon, direction == "backward")
    runs, misses = 12, 0
    for seed in range(runs):
        values = np.exp(sampler.log_values(np.random.default_rng(seed), 4000)[0])
        spread = values.std() / math.sqrt(values.size)
        misses += abs(values.mean() - truth.value) > 2.0 * spread + truth.width
    assert misses <= stats.binom.ppf(0.9999, runs, 0.05)


@pytest.mark.slow
def test_addition_misses_no_more_often_than_it_says(monkeypatch):
    truth = oracle.bins_delta(oracle.toeplitz([1.0], 1.5, 2), 0.5, True, 0.2, 10.0)
    nothing = Estimate(0.5, 0.0, 1.0, kind="certified", unit="probability", method="")  # samples alone
    monkeypatch.setattr(BandedMatrixMechanism, "delta", lambda *arguments, **options: nothing, raising=False)
    runs, misses = 60, 0
    for seed in range(runs):
        found = BandedMatrixMechanism([1.0], 1.5, 2).sampled_delta(
            0.5, direction="backward", confidence=0.8, rng=seed, max_samples=4000, rtol=1e-9
        )
        misses += not found.lower <= truth * (1 + 1e-9) or not truth * (1 - 1e-9) <= found.upper
    assert misses <= stats.binom.ppf(0.999, runs, 0.2)


@pytest.mark.slow
def test_small_deltas_have_narrow_bounds():
    for coefficients, sigma, bins, epsilon, least in (
        ([1.0, 0.5], 0.5, 8, 30.0, 1e-60), ([1.0, 0.5], 5.0, 40, 0.12, 1e-9),
    ):  # fmt: skip
        found = BandedMatrixMechanism(coefficients, sigma, bins).sampled_delta(epsilon, rng=1, max_samples=60_000)
        assert least < found.lower
        assert found.upper < 1.3 * found.value


def test_deltas_below_all_doubles_end():
    found = BandedMatrixMechanism([1.0, 0.5], sigma=2.0, bins=10).sampled_delta(30.0, rng=1, max_samples=4096)
    assert found.lower == 0.0
    assert 0.0 < found.upper < 1e-250
