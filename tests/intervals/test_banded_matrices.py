"""Coverage of sampled curves of banded matrices, and their bits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fastpriv import Estimate
from fastpriv.composition import BandedMatrixMechanism
from fastpriv.composition.banded_matrices import _TiltSampler, _TupleSampler
from oracles import structured_sampling as oracle


@pytest.mark.slow
def test_bounds_miss_no_more_often_than_they_say(monkeypatch):
    one, epsilon = BandedMatrixMechanism([1.0, 0.5], 1.5, 2, epochs=2), 2.5
    truth = oracle.bins_delta(oracle.toeplitz([1.0, 0.5], 1.5, 2, 2), epsilon, False, 0.2, 10.0)
    certified = one.delta(epsilon, direction="forward")
    nothing = Estimate(0.5, 0.0, 1.0, kind="certified", unit="probability", method="")  # samples alone
    runs, misses = 40, 0
    for seed in range(runs):
        options = {"confidence": 0.8, "rng": seed, "max_samples": 4000, "rtol": 1e-9}
        found = one.sampled_delta(epsilon, **options)
        assert certified.lower <= found.lower
        assert found.upper <= certified.upper
        with monkeypatch.context() as patch:
            patch.setattr(BandedMatrixMechanism, "delta", lambda *arguments, **options: nothing, raising=False)
            found = one.sampled_delta(epsilon, **options)
        misses += not found.lower <= truth <= found.upper
        assert found.cost["largest_value"] > found.upper
    assert misses <= stats.binom.ppf(0.999, runs, 0.2)


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


SAMPLERS = {"forward": _TupleSampler, "backward": _TiltSampler}


@pytest.mark.few(3)
@pytest.mark.parametrize(("direction", "epsilon", "bins"), [
    ("forward", 2.2, 12), ("forward", 4.0, 12), ("forward", 0.0, 3),
    ("backward", 1.2, 12), ("backward", 0.3, 40), ("backward", 0.0, 3),
])
def test_values_have_the_mean_delta_and_are_bounded(direction, epsilon, bins):
    one = BandedMatrixMechanism([1.0], 1.0, bins)
    truth = one.delta(epsilon, direction=direction)
    sampler = SAMPLERS[direction](one, epsilon, np.random.SeedSequence(3), 4000)
    values = np.array([sampler(block) for block in range(12)])
    assert values.min() >= 0.0
    assert values.max() <= math.exp(sampler.log_largest) * (1.0 + 1e-9)
    spread = values.std(axis=1) / math.sqrt(values.shape[1])
    misses = np.abs(values.mean(axis=1) - truth.value) > 2.0 * spread + truth.width
    assert misses.sum() <= stats.binom.ppf(0.9999, len(values), 0.05)


def test_correlated_bins_have_the_mean_delta_too():
    """Two bins, whose truth is an integral."""
    one = BandedMatrixMechanism([1.0, 0.5], 1.0, 2, epochs=2)
    for direction in ("forward", "backward"):
        truth = one.delta(1.0, direction=direction).value
        values = SAMPLERS[direction](one, 1.0, np.random.SeedSequence(4), 40_000)(0)
        assert abs(values.mean() - truth) < 4.0 * values.std() / math.sqrt(values.size)


def test_values_of_a_constant_have_the_largest_bound():
    """At s = 0 the bound of addition is 1, that of a probability."""
    sampler = _TiltSampler(BandedMatrixMechanism([1.0], 0.1, 2), 0.0, np.random.SeedSequence(3), 10)
    assert sampler.bounds() == (0.0, 0.0)


def test_deltas_below_all_doubles_end():
    for direction in ("forward", "backward"):
        one = BandedMatrixMechanism([1.0, 0.5], sigma=2.0, bins=10)
        found = one.sampled_delta(30.0, direction=direction, rng=1, max_samples=4096)
        assert found.lower == 0.0
        assert 0.0 < found.upper < 1e-250


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_many_bands_have_narrow_bounds(direction):
    """Six bands, whose certified bounds are 6 digits apart and more."""
    found = BandedMatrixMechanism([1.0] * 6, 4.0, 30).sampled_delta(1.0, direction=direction, rng=1)
    assert found.lower > 1e-5
    assert found.upper < 1.2 * found.value


@pytest.mark.slow
def test_bits_do_not_depend_on_threads():
    one = BandedMatrixMechanism([1.0, 0.6, 0.3], 2.0, 40, epochs=3)
    rows = [one.sampled_delta(1.0, rng=7, n_jobs=n_jobs, max_samples=30_000, rtol=1e-6) for n_jobs in (1, 3)]
    assert rows[0] == rows[1]
    assert rows[0] != one.sampled_delta(1.0, rng=8, max_samples=30_000)


@pytest.mark.slow
def test_rare_losses_are_sampled_as_well_as_common_ones():
    one = BandedMatrixMechanism([1.0, 0.5], 1.0, 100, epochs=2)
    found = one.sampled_delta(9.0, rng=1, max_samples=100_000)
    assert found.lower > 1e-16
    assert found.upper < 1.2 * found.value
    certified = one.delta(9.0, direction="forward")
    assert certified.lower <= found.lower
    assert found.upper <= certified.upper
