"""Limits of Clopper and Pearson around counted misses: coverage over seeds, looks, sides, and what a run may not move.

Misses are judged by a binomial region: an interval at level c may miss at most as often as the 1 - 1e-6 quantile says.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from contracts.work_clock import installed_work_clock
from fastpriv import GaussianMechanism, notions

ALPHA = np.array([0.1, 1.0, 2.5])
TRUTH = 2 * norm.sf(ALPHA)
SAMPLED = {"method": "direct", "max_samples": 1e6}


def misses(seeds, level, **words):
    below = above = 0
    for seed in range(seeds):
        found = notions.pac_accuracy(
            GaussianMechanism(1.0), 0.0, 0.0, ALPHA, rng=seed, confidence=level, **(SAMPLED | words)
        )
        below = below + (found.lower > TRUTH)
        above = above + (found.upper < TRUTH)
    return below, above


@pytest.mark.parametrize("level", [0.9, 0.99])
@pytest.mark.parametrize("words", [{"rtol": 0.0, "atol": 0.0, "max_samples": 500}, {"rtol": 0.3, "atol": 0.02}])
def test_coverage(level, words):
    check_misses(level, words, 60)


def check_misses(level, words, seeds):
    below, above = misses(seeds, level, **words)
    most = binom.isf(1e-6, seeds, (1 - level) / 2)
    assert (below <= most).all(), (below, most)
    assert (above <= most).all(), (above, most)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.9, 0.99])
@pytest.mark.parametrize(
    "words",
    [
        {"rtol": 0.0, "atol": 0.0, "max_samples": 500}, {"rtol": 0.3, "atol": 0.02}, {"rtol": 0.1, "atol": 0.0},
        {"rtol": 0.0, "atol": 0.01}, {"rtol": 0.5, "atol": 0.0, "max_samples": 3000},
    ],
)
def test_coverage_over_many_seeds(level, words):
    check_misses(level, words, 1500)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["lower", "upper"])
def test_one_side_spends_all_of_the_error(side):
    below, above = misses(1500, 0.9, side=side, rtol=0.0, atol=0.0, max_samples=400)
    bad = below if side == "lower" else above
    assert (bad <= binom.isf(1e-6, 1500, 0.1)).all(), bad
    assert bad.max() > 60, "at 0.9 one-sided limits of 400 draws miss about a tenth of the time"


def test_the_trivial_side_is_trivial():
    for side, end, bound in (("lower", "upper", 1.0), ("upper", "lower", 0.0)):
        found = notions.pac_accuracy(GaussianMechanism(1.0), 0.0, 0.0, 1.0, side=side, rng=1, method="direct")
        assert getattr(found, end) == bound


@pytest.mark.parametrize("seeds", [80, pytest.param(2000, marks=pytest.mark.slow)])
def test_the_maximum_covers_with_its_union_correction(seeds):
    level = 0.9
    secrets = np.linspace(0.0, 0.3, 6)
    truth = max(norm.sf(1 - s) + norm.sf(1 + s) for s in secrets)
    below = above = 0
    for seed in range(seeds):
        found = notions.robust_accuracy(
            GaussianMechanism(1.0), secrets, 0.0, 1.0, rng=seed, confidence=level, rtol=0.0, atol=0.0, max_samples=600,
            method="direct",
        )
        below += found.maximum.lower > truth
        above += found.maximum.upper < truth
        assert found.maximum.lower <= found.per_neighbour.lower.max()
        assert found.maximum.upper == found.per_neighbour.upper.max()
    most = binom.isf(1e-6, seeds, (1 - level) / 2)
    assert max(below, above) <= most


def test_targets_are_met_and_no_samples_wasted():
    found = notions.pac_accuracy(GaussianMechanism(1.0), 0.0, 0.0, ALPHA, method="direct", rtol=0.05, rng=1)
    assert found.cost["stopped"] == "target"
    assert (0.5 * found.width <= np.maximum(1e-4, 0.05 * found.value)).all()
    assert found.cost["samples"] <= 4 * (2.5 / 0.05) ** 2 / TRUTH[2]
    loose = notions.pac_accuracy(GaussianMechanism(1.0), 0.0, 0.0, 1.0, method="direct", rtol=0.5, rng=1)
    assert loose.cost["samples"] <= 2**14


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_seed_gives_the_bits_for_any_number_of_threads(n_jobs):
    words = {"rng": 5, "rtol": 0.02, "method": "direct"}
    one = notions.robust_accuracy(GaussianMechanism(1.0), [0.0, 1.0], 0.0, ALPHA, **words)
    two = notions.robust_accuracy(GaussianMechanism(1.0), [0.0, 1.0], 0.0, ALPHA, n_jobs=n_jobs, **words)
    assert one.per_neighbour.value.tobytes() == two.per_neighbour.value.tobytes()
    assert one.maximum.to_dict() == two.maximum.to_dict()
    assert one.maximum.cost["repeatable"]
    other = notions.robust_accuracy(GaussianMechanism(1.0), [0.0, 1.0], 0.0, ALPHA, **(words | {"rng": 6}))
    assert other.per_neighbour.value.tobytes() != one.per_neighbour.value.tobytes()


def test_all_alphas_share_their_samples():
    words = {"method": "direct", "rng": 1, "rtol": 0.0, "atol": 0.0, "max_samples": 2000}
    many = notions.pac_accuracy(GaussianMechanism(1.0), 4.0, 4.0, [3.0, 0.0, 1.0], **words)
    alone = notions.pac_accuracy(GaussianMechanism(1.0), 4.0, 4.0, 1.0, **words)
    assert many.value[2] == alone.value
    assert many.value[1] >= many.value[2] >= many.value[0]


@pytest.mark.slow
def test_jitted_mechanisms():
    numba = pytest.importorskip("numba")

    @numba.njit
    def fills(rng, x):
        x[0] = rng.standard_normal()

    @numba.njit
    def draws(rng, n, secret):
        return secret + rng.standard_normal(n)

    one = notions.pac_accuracy(fills, None, 0.0, ALPHA, rng=1, rtol=0.05)
    two = notions.pac_accuracy(draws, 0.0, 0.0, ALPHA, rng=1, rtol=0.05, n_jobs=2)
    for found in (one, two):
        assert (found.lower <= TRUTH).all()
        assert (found.upper >= TRUTH).all()


def test_the_clock_ends_a_run_with_a_true_interval(monkeypatch):
    clock = installed_work_clock(monkeypatch, look=1e-4)

    def slow(rng, n):
        clock.spend(0.01)
        return rng.standard_normal(n)

    found = notions.pac_accuracy(slow, None, 0.0, 1.0, rtol=1e-6, atol=0.0, max_samples=1e12, max_seconds=0.2, rng=1)
    assert 0.2 <= clock.now < 0.4
    assert (found.cost["stopped"], found.cost["repeatable"]) == ("max_seconds", False)
    assert found.lower < 2 * norm.sf(1.0) < found.upper


def test_an_interruption_carries_what_was_reached():
    def stop(done, total):
        if total > 2 and done == 3:
            raise KeyboardInterrupt

    words = {"rtol": 0.001, "atol": 0.0, "max_samples": 1e7, "rng": 1, "method": "direct"}
    with pytest.raises(KeyboardInterrupt, match=r"the run was interrupted after \d+ draws\.") as stopped:
        notions.robust_accuracy(GaussianMechanism(1.0), [0.0, 1.0], 0.0, 1.0, progress=stop, **words)
    found = stopped.value.best
    assert found.maximum.cost["stopped"] == "interrupted"
    assert not found.maximum.cost["repeatable"]
    assert found.maximum.cost["samples"] >= 2 * 2**14
    assert found.per_neighbour.lower[0] < 2 * norm.sf(1.0) < found.per_neighbour.upper[0]

    def at_once(rng, n):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        notions.pac_accuracy(at_once, None, 0.0, 1.0)
    assert not hasattr(stopped.value, "best")
    with pytest.raises(KeyboardInterrupt) as stopped:
        notions.pac_accuracy(GaussianMechanism(1.0), 0.0, 0.0, 1.0, progress=stop, **words)
    assert stopped.value.best.cost["stopped"] == "interrupted"


def test_certain_hits_and_misses():
    for point, value in ((0.0, 0.0), (9.0, 1.0)):
        found = notions.pac_accuracy(lambda rng, n, x=point: np.full(n, x), None, 0.0, 1.0, rng=1)
        assert found.value == value
        assert found.lower <= value <= found.upper
        assert found.width < 3e-4
    assert math.isclose(found.upper, 1.0)
