"""Lower bounds of divergences from samples: never more than the truth oftener than they may, and near it with many."""

import numpy as np
import pytest
from scipy import special, stats

from fastpriv import errors
from fastpriv.studies.auditing import hockey_stick_of_samples

PAIRS, LEVEL = 500, 0.9
EPSILONS = np.array([-0.5, 0.0, 0.5, 2.0])


def of_normals(mu, epsilon):
    """D_e(N(mu, 1) || N(0, 1)) by its closed form."""
    above = mu / 2 - epsilon / mu
    return special.ndtr(above) - np.exp(epsilon) * special.ndtr(above - mu)


def of_coins(p, q, epsilon):
    return np.maximum(p - np.exp(epsilon) * q, 0) + np.maximum((1 - p) - np.exp(epsilon) * (1 - q), 0)


CASES = {
    "equal": (lambda rng: (rng.normal(size=150), rng.normal(size=100)), np.maximum(0, -np.expm1(EPSILONS))),
    "normal": (lambda rng: (rng.normal(size=300) + 1, rng.normal(size=200)), of_normals(1.0, EPSILONS)),
    "far": (lambda rng: (rng.normal(size=80) + 4, rng.normal(size=90)), of_normals(4.0, EPSILONS)),
    "coins": (lambda rng: (rng.random(200) < 0.6, rng.random(300) < 0.2), of_coins(0.6, 0.2, EPSILONS)),
    "tiny": (lambda rng: (rng.normal(size=2) + 1, rng.normal(size=3)), of_normals(1.0, EPSILONS)),
}


def misses(case, selection, pairs):
    """How often each bound exceeds the truth."""
    draw, truth = CASES[case]
    rng = np.random.default_rng(5)
    bounds = [hockey_stick_of_samples(*draw(rng), EPSILONS, confidence=LEVEL, selection=selection).lower
              for _ in range(pairs)]
    return (np.array(bounds) > truth).sum(axis=0)


@pytest.mark.parametrize("selection", ["simultaneous", "split"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("pairs", [100, pytest.param(PAIRS, marks=pytest.mark.slow)])
def test_misses(case, selection, pairs):
    assert misses(case, selection, pairs).max() <= stats.binom.ppf(1 - 1e-5, pairs, 1 - LEVEL)


def test_many_samples_come_near():
    rng = np.random.default_rng(3)
    epsilon = np.array([0.0, 1.0])
    got = hockey_stick_of_samples(rng.normal(size=200_000) + 1, rng.normal(size=200_000), epsilon)
    truth = of_normals(1.0, epsilon)
    assert np.all((truth - 0.015 < got.lower) & (got.lower <= truth)), got.lower - truth
    assert np.all(got.lower <= got.value)
    assert (got.upper.min(), got.confidence) == (1.0, 0.95)


def test_what_no_sample_is_needed_for():
    got = hockey_stick_of_samples([0.0], [0.0], [-np.inf, -800.0, -1e-300, 0.0, 800.0, np.inf])
    assert got.lower[:2].min() > 1 - 1e-14
    assert 0 < got.lower[2] <= 1e-300
    assert np.all(got.lower[3:] == 0.0)
    assert hockey_stick_of_samples([np.inf] * 40, [-np.inf] * 40).lower > 0.7  # thresholds at 12 ranks share 0.05
    assert isinstance(hockey_stick_of_samples([0.0], [1.0]).lower, float)


@pytest.mark.parametrize(("arguments", "message"), [
    (([], [1.0]), r"p must be of shape \(n,\), n >= 1; got \(0,\). Pass one number for each sample."),
    (([1.0], [[1.0]]), r"q must be of shape \(n,\), n >= 1; got \(1, 1\)."),
    (([np.nan], [1.0]), "p must be numbers"),
    (([1.0], [1.0], np.nan), "epsilon must be numbers"),
    (([1.0], "x"), "q must be numbers"),
])
def test_errors(arguments, message):
    with pytest.raises((errors.DomainError, errors.ShapeError), match=message):
        hockey_stick_of_samples(*arguments)


def test_options():
    with pytest.raises(errors.DomainError, match="selection must be"):
        hockey_stick_of_samples([1.0], [0.0], selection="as_published")
    with pytest.raises(errors.DomainError, match="confidence must be"):
        hockey_stick_of_samples([1.0], [0.0], confidence=1.0)
