"""Coverage of sampled curves of banded matrices, and their bits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fastpriv import BandedMatrixMechanism, Estimate
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


@pytest.mark.slow
def test_wide_bands_take_another_product():
    few, many = (np.r_[1.0, np.full(k, 1e-3)] for k in (63, 64))
    rows = [BandedMatrixMechanism(c, 1.0, 70).sampled_delta(0.5, rng=1, max_samples=15_000) for c in (few, many)]
    assert rows[0].value != rows[1].value
    assert abs(rows[0].value / rows[1].value - 1.0) < 0.4
    assert rows[0].lower < rows[1].upper
    assert rows[1].lower < rows[0].upper
