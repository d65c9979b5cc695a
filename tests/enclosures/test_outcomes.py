"""Divergences of probability vectors and Pmfs against sums in 400 digits, from equal vectors to 1e-300."""

import mpmath
import numpy as np
import pytest
from scipy import stats

from fastpriv import (
    DomainError,
    GaussianMixture,
    Pmf,
    hockey_stick_divergence,
    jensen_shannon,
    kl_divergence,
    renyi_divergence,
    total_variation,
)
from fastpriv.divergences import log_hockey_stick_divergence
from fastpriv.errors import ShapeError

MPMATH_DIGITS = 400
RNG = np.random.default_rng(5)


def normalized(p):
    numbers = [mpmath.mpf(float(x)) for x in p]
    return [x / mpmath.fsum(numbers) for x in numbers]


def true_renyi(p, q, order):
    """Of the vectors divided by their sums."""
    pairs = list(zip(normalized(p), normalized(q), strict=True))
    if order >= 1 and any(b == 0 < a for a, b in pairs):
        return mpmath.inf
    pairs = [(a, b) for a, b in pairs if a > 0 and b > 0]
    if not pairs:
        return mpmath.inf
    if order == 1:
        return mpmath.fsum(a * mpmath.log(a / b) for a, b in pairs)
    if order == np.inf:
        return max(mpmath.log(a / b) for a, b in pairs)
    return mpmath.log(mpmath.fsum(a**order * b ** (1 - mpmath.mpf(order)) for a, b in pairs)) / (mpmath.mpf(order) - 1)


def true_hockey_stick(p, q, epsilon):
    factor = mpmath.exp(mpmath.mpf(epsilon))
    return mpmath.fsum(max(a - factor * b, 0) for a, b in zip(normalized(p), normalized(q), strict=True))


def pairs():
    """Vectors of every kind: far, near, equal, with zeros, with tiny entries, of one outcome."""
    for n in (2, 3, 17):
        p, q = RNG.dirichlet(np.ones(n), size=2)
        yield f"{n}", p, q
        for near in (1e-3, 1e-6, 1e-9, 1e-13):
            twisted = p * (1 + near * RNG.uniform(-1, 1, n))
            yield f"{n}, {near}", p, twisted / twisted.sum()
        logs = RNG.uniform(-690, 0, (2, n))
        logs[:, 0] = 0.0
        rows = np.exp(logs)
        yield f"{n}, tiny", *(rows / rows.sum(axis=1, keepdims=True))
    yield "equal", np.full(4, 0.25), np.full(4, 0.25)
    yield "one outcome", np.ones(1), np.ones(1)
    yield "zeros in p", np.array([0.0, 0.5, 0.5]), np.array([0.2, 0.3, 0.5])
    yield "zeros in q", np.array([0.2, 0.3, 0.5]), np.array([0.0, 0.5, 0.5])
    yield "disjoint", np.array([1.0, 0.0]), np.array([0.0, 1.0])
    yield "sums not 1", np.array([0.3, 0.3, 0.4 + 4e-10]), np.array([0.1, 0.2, 0.7 - 6e-10])
    yield "least doubles", np.array([5e-324, 1.0]), np.array([1e-300, 1.0])
    for side in (1 / 8, -1 / 8, 1 / 50, -1 / 50):  # where the series ends
        for step in (0.999999, 1.000001):
            q = np.array([0.5, 0.5])
            yield f"{side} {step}", q * [1 + side * step, 1 - side * step], q


CASES = [pytest.param(p, q, id=name) for name, p, q in pairs()]


@pytest.mark.parametrize(("p", "q"), CASES)
def test_bounds_contain_the_truth_and_are_narrow(p, q):
    middle = [(a + b) / 2 for a, b in zip(normalized(p), normalized(q), strict=True)]
    sides = [mpmath.fsum(a * mpmath.log(a / m) for a, m in zip(side, middle, strict=True) if a > 0)
             for side in (normalized(p), normalized(q))]
    rows = [(jensen_shannon(p, q), mpmath.fsum(sides) / 2, True)]
    for order in (1e-3, 0.5, 0.999, 1.0, 1.001, 2.0, 50.0, 1e6, np.inf):
        rows.append((renyi_divergence(p, q, order), true_renyi(p, q, order), order <= 50.0))
    for estimate, truth, relative in rows:
        assert estimate.kind == "certified"
        assert estimate.lower <= truth <= estimate.upper
        assert estimate.lower <= estimate.value <= estimate.upper
        if mpmath.isfinite(truth):
            scale = truth if relative and truth > 1e-15 else 1 + abs(truth)
            assert estimate.upper - estimate.lower <= 1e-9 * scale
        else:
            assert estimate.lower == np.inf
    for epsilon in (0.0, 0.3, 5.0):
        truth = true_hockey_stick(p, q, epsilon)
        estimate = hockey_stick_divergence(p, q, epsilon)
        assert estimate.lower <= truth <= estimate.upper
        assert estimate.upper - estimate.lower <= 1e-15
        logarithm = log_hockey_stick_divergence(p, q, epsilon)
        assert logarithm.lower <= mpmath.log(truth) <= logarithm.upper


def test_equal_vectors_are_at_distance_zero():
    p = RNG.dirichlet(np.ones(1000))
    for estimate in (kl_divergence(p, p), jensen_shannon(p, p), total_variation(p, p)):
        assert estimate.lower == 0.0
        assert estimate.upper == 0.0


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_random_pairs_of_jensen_shannon(seed):
    random = np.random.default_rng(seed)
    for _ in range(200):
        p, q = random.dirichlet(np.full(random.integers(1, 6), 0.3), size=2)
        middle = [(a + b) / 2 for a, b in zip(normalized(p), normalized(q), strict=True)]
        truth = mpmath.fsum(
            a * mpmath.log(a / m) / 2 for side in (p, q) for a, m in zip(normalized(side), middle, strict=True) if a > 0
        )
        estimate = jensen_shannon(p, q)
        assert estimate.lower <= truth <= estimate.upper


def test_a_hundred_thousand_outcomes():
    p, q = RNG.dirichlet(np.ones(100_000), size=2)
    exact = kl_divergence(p, q)
    plain = float((p / p.sum() * np.log((p / p.sum()) / (q / q.sum()))).sum())
    assert exact.value == pytest.approx(plain, rel=1e-12)
    assert exact.upper - exact.lower <= 1e-12 * exact.value


def test_pmfs_are_joined_on_their_points():
    p, q = Pmf([0, 1, 5], [0.5, 0.3, 0.2]), Pmf([5, 0, 1], [0.1, 0.4, 0.5])
    vectors = [0.5, 0.3, 0.2], [0.4, 0.5, 0.1]
    assert kl_divergence(p, q) == kl_divergence(*vectors)
    assert kl_divergence(p, q, both=True).value.tolist() == [kl_divergence(p, q).value, kl_divergence(q, p).value]
    assert total_variation(p, q).value == pytest.approx(0.2, abs=1e-13)
    logarithm, delta = log_hockey_stick_divergence(p, q, 0.1), hockey_stick_divergence(p, q, 0.1)
    assert logarithm.value == pytest.approx(np.log(delta.value))
    assert kl_divergence(p, q, unit="bits").value == pytest.approx(kl_divergence(p, q).value / np.log(2))
    assert hockey_stick_divergence(p, q, -1.0).lower <= 1 - 0.1 * np.exp(-1) - 0.9 * np.exp(-1) <= 1.0


def test_frozen_distributions_of_scipy():
    normal = kl_divergence(stats.norm(0, 1), stats.norm(1, 2))
    assert normal == kl_divergence(GaussianMixture.single(0, 1), GaussianMixture.single(1, 2))
    plane = stats.multivariate_normal([0, 0], [[2, 1], [1, 2]]), stats.multivariate_normal([1, 0], [[2, 1], [1, 2]])
    assert total_variation(*plane).kind == "certified"
    sampled = total_variation(stats.laplace(0, 1), stats.laplace(1, 1), rng=1)
    assert sampled.lower <= 1 - np.exp(-0.5) <= sampled.upper


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: kl_divergence([0.5, 0.6], [0.5, 0.5]), DomainError, "p must sum to 1 within 1e-09"),
        (lambda: kl_divergence([0.5, 0.5], [1.0]), ShapeError, "q must have one probability for each of p, 2; got 1"),
        (lambda: kl_divergence([0.5, 0.5], stats.norm()), DomainError, "p must be a GaussianMixture or a Density"),
        (lambda: jensen_shannon(Pmf([0], [1]), [1.0]), DomainError, "q must be a Pmf"),
        (lambda: kl_divergence(stats.binom(3, 0.2), stats.binom(3, 0.4)), DomainError,
         r"p must have a density; got .* Pass the vector of its probabilities, p.pmf\(outcomes\), for both"),
        (lambda: total_variation([1.0], [1.0], method="plain"), DomainError,
         "method must be 'auto' with probabilities of outcomes, which are summed; got one that samples. Drop it"),
    ],
)
def test_wrong_arguments(call, error, match):
    with pytest.raises(error, match=match):
        call()
