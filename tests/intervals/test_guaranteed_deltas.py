"""Small deltas with intervals that hold for every number of samples: of use, and right where weights are rounded."""

import math

import numpy as np
import pytest

from fastpriv import GaussianMixture, hockey_stick_divergence
from fastpriv.divergences import log_hockey_stick_divergence
from fastpriv.sampling.proposals.tilting import hockey_stick_proposal, log_mass_of_larger
from misses import assert_few_misses

K, D = 10, 10
WEIGHTS = np.array([1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 2.0, 1.0, 2.0, 2.0]) / 16.0


def law(a, b, scale=0.25):
    """Ten components in ten dimensions, all numbers exact."""
    i, j = np.mgrid[:K, :D]
    means = scale * (((a * i * i + b * i * j + 3 * j) % 11) - 5) / 4
    return GaussianMixture(WEIGHTS, means, 0.5 + ((b * i + a * j * j + i * j) % 9) / 8)


# epsilon = 50; bounds at 95 % from 2e8 samples of the dominating law
HARD = {
    "1e-17": ((1, 4), (6, 5), 5.836e-17, 5.981e-17),
    "1e-25": ((3, 5), (2, 7), 2.545e-25, 2.602e-25),
}


@pytest.mark.parametrize("row", HARD)
def test_a_million_samples_bound_a_small_delta_of_many_components_within_a_factor_of_2(row):
    a, b, low, high = HARD[row]
    found = hockey_stick_divergence(
        law(*a), law(*b), 50.0, interval="guaranteed", rtol=0.0, max_samples=10**6, rng=1
    )
    assert found.lower <= high
    assert low <= found.upper <= 2.0 * low
    assert found.lower <= found.value <= found.upper
    assert found.cost["samples"] <= 10**6


@pytest.mark.slow
@pytest.mark.parametrize("row", HARD)
def test_the_bounds_hold_over_many_seeds(row):
    a, b, low, high = HARD[row]
    p, q = law(*a), law(*b)
    for samples in (300, 3000, 30_000):

        def missed(seed, samples=samples):
            found = hockey_stick_divergence(
                p, q, 50.0, interval="guaranteed", confidence=0.9, rtol=0.0, max_samples=samples, rng=seed
            )
            return found.lower > high or found.upper < low

        assert_few_misses(missed, range(200), 0.9, 1e-9, f"{samples} samples")


def test_the_same_bits_for_any_number_of_threads():
    ends = {
        (found.value, found.lower, found.upper)
        for found in (
            hockey_stick_divergence(
                law(1, 4), law(6, 5), 50.0, interval="guaranteed", rtol=0.0, max_samples=200_000, rng=1, n_jobs=jobs
            )
            for jobs in (1, 2, 3)
        )
    }
    assert len(ends) == 1


@pytest.mark.parametrize("interval", ["replicates", "guaranteed"])
@pytest.mark.parametrize("epsilon", [8.0, 20.0])
def test_rounded_weights_widen_a_small_delta_by_a_small_part_of_it(interval, epsilon):
    """Weights that miss 1 by a rounding move a delta by that times the mass that it is of, not by that itself."""
    exact = [
        GaussianMixture([0.25, 0.5, 0.25], means, 1.0) for means in ([0.0, 0.5, 1.0], [-0.75, -0.25, 0.25])
    ]
    p, q = (GaussianMixture(x.weights * (1 + 2.0**-50), x.means, x.sigmas) for x in exact)
    assert p.mass_gap > 0.0
    truth = hockey_stick_divergence(*exact, epsilon)
    assert truth.value < 1e-10
    words = {"method": "tilted", "interval": interval, "rtol": 0.0, "max_samples": 200_000, "rng": 1}
    found = hockey_stick_divergence(p, q, epsilon, **words)
    assert found.lower <= truth.value <= found.upper <= 1.1 * truth.value
    logs = log_hockey_stick_divergence(p, q, epsilon, **words)
    assert logs.lower <= math.log(truth.value) <= logs.upper <= math.log(1.1 * truth.value)


def test_the_mass_where_p_is_larger_is_bounded():
    p, q = GaussianMixture([0.5, 0.5], [0.0, 1.0], [1.0, 0.75]), GaussianMixture([0.25, 0.75], [-1.0, 0.5], [1.0, 1.0])
    x = np.linspace(-12.0, 12.0, 48_001)
    ratio, density = p.log_density(x) - q.log_density(x), np.exp(p.log_density(x))
    for start in (0.5, 1.0, 1.5):
        proposal = hockey_stick_proposal(p, q, start)
        for shift in (0.0, 0.25, 1.0):
            mass = float(density[ratio > start + shift].sum() * (x[1] - x[0]))
            bound = log_mass_of_larger(p, proposal, shift)
            assert bound <= 0.0
            assert mass <= math.exp(bound) * (1 + 1e-6)
            assert mass == 0.0 or bound < math.log(mass) + 6.0
