"""The objective of gradient matching beside mpmath, and both searches beside answers known otherwise."""

import numpy as np
import pytest
from mpmath import mpf

from fastpriv.studies.kernels import _gradient_matching
from kernels.variants import check_same_lines, each_wider_variant
from oracles.gradient_matching import derivatives

SCRIPT = """
import numpy as np
from fastpriv.studies.kernels import _gradient_matching
def numbers(n, phase):
    return (np.arange(1, n + 1) * 0.6180339887498949 + phase) % 1.0
for records, classes, features in ((1, 2, 1), (3, 5, 11), (4, 10, 64)):
    x = numbers(records * features, 0.1).reshape(records, features)
    q = np.eye(classes)[np.arange(records) % classes]
    w, t = (numbers(classes * (features + 1), p).reshape(classes, -1) - 0.5 for p in (0.3, 0.7))
    m = _gradient_matching.Matching(numbers(records, 0.5), w, t * 0.1)
    centre = np.full(features, 0.5)
    for part in m.value(x, q):
        print(np.asarray(part).tobytes().hex())
    print(m.search(x, q, centre, 0.001, 0.0, 1.0, 1e-9, 0.0, 50)[0].tobytes().hex())
    print(m.search(x, q, centre, 0.0, -np.inf, np.inf, 1e-9, 0.0, 50)[0].tobytes().hex())
    if records * features < 50:
        print(m.descend(x, q, centre, 0.001, 0.0, 9)[0].tobytes().hex())
"""


def softmax(z):
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


def gradient(x, q, shares, w):
    rows = np.c_[x, np.ones(len(x))]
    return ((softmax(rows @ w.T) - q) * np.asarray(shares)[:, None]).T @ rows


def problem(rng, records=2, classes=3, features=2, scale=1.0):
    x, w = rng.normal(size=(records, features)), scale * rng.normal(size=(classes, features + 1))
    q, t = np.eye(classes)[rng.integers(0, classes, records)], rng.normal(size=(classes, features + 1))
    return x, q, rng.random(records), w, t


CASES = {
    "ordinary": lambda rng: problem(rng),
    "soft labels": lambda rng: [*problem(rng)[:1], rng.dirichlet(np.ones(3), 2), *problem(rng)[2:]],
    "one record, one feature": lambda rng: problem(rng, 1, 2, 1),
    "a full row of lanes": lambda rng: problem(rng, 2, 2, 7),
    "zero weights": lambda rng: problem(rng, scale=0.0),
    "certain": lambda rng: problem(rng, scale=30.0),
    "tiny target": lambda rng: [*problem(rng, scale=20.0)[:4], np.full((3, 3), 1e-30)],
    "huge target": lambda rng: [*problem(rng)[:4], 1e100 * problem(rng)[4]],
    "small shares": lambda rng: [*problem(rng)[:2], np.array([1e-150, 1e-3]), *problem(rng)[3:]],
}


@pytest.mark.parametrize("case", CASES)
def test_objective_and_derivatives(case):
    x, q, shares, w, t = CASES[case](np.random.default_rng(len(case)))
    value, by_records, by_labels = _gradient_matching.Matching(shares, w, t).value(x, q)
    true, true_records, true_labels = derivatives(x, q, shares, w, t)
    assert abs(value - true) <= 1e-13 * true, (value, true)
    for found, wanted in ((by_records, true_records), (by_labels, true_labels)):
        largest = max(abs(one) for row in wanted for one in row)
        for row, others in zip(found, wanted, strict=True):
            for got, want in zip(row, others, strict=True):
                assert abs(mpf(float(got)) - want) <= 1e-12 * largest, (case, got, want)


def test_errors_of_certain_records_keep_their_digits():
    w, q = np.array([[40.0, 0.0], [0.0, 0.0]]), np.array([[1.0, 0.0]])
    value = _gradient_matching.Matching([1.0], w, np.zeros((2, 2))).value(np.ones((1, 1)), q)[0]
    assert value == pytest.approx(4 * np.exp(-80.0), rel=1e-13)  # 1 - p = e^-40 / (1 + e^-40) in each of four places


@pytest.mark.parametrize("seed", range(6))
def test_descent_recovers_records(seed):
    rng = np.random.default_rng(seed)
    x, q, shares, w, _ = problem(rng, 3, 6, 4)
    q, shares = np.eye(6)[[0, 2, 5]], np.full(3, 1 / 3)
    matching = _gradient_matching.Matching(shares, w, gradient(x, q, shares, w))
    found, value, steps = matching.descend(x + 0.1 * rng.normal(size=x.shape), q, np.zeros(4), 0.0, 0.0, 100)
    assert value < 1e-28
    assert 0 < steps < 40
    np.testing.assert_allclose(found, x, rtol=0, atol=1e-11)
    assert matching.value(found, q)[0] == pytest.approx(value, rel=1e-12)


def test_descent_with_a_ridge_ends_where_derivatives_vanish():
    x, q, shares, w, t = problem(np.random.default_rng(5), 3, 4, 5)
    centre, matching = np.linspace(0, 1, 5), _gradient_matching.Matching(shares, w, 0.1 * t)
    found, value, _ = matching.descend(x, q, centre, 0.3, 0.0, 500)
    plain, slope, _ = matching.value(found, q)
    assert value == pytest.approx(plain + 0.3 * ((found - centre) ** 2).sum(), rel=1e-13)
    assert np.abs(slope + 0.6 * (found - centre)).max() < 1e-4 * np.abs(slope).max()
    assert matching.search(x, q, centre, 0.3, -np.inf, np.inf, 1e-15, 0.0, 2000)[1] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.2, 0.3), (-np.inf, np.inf), (0.4, np.inf)])
def test_search_ends_at_a_stationary_point_of_the_box(low, high):
    x, q, shares, w, t = problem(np.random.default_rng(2), 3, 4, 5)
    matching = _gradient_matching.Matching(shares, w, t)
    found, value, evaluations = matching.search(x, q, np.zeros(5), 0.01, low, high, 1e-16, 0.0, 5000)
    assert evaluations < 5000
    assert np.all((found >= low) & (found <= high))
    plain, slope, _ = matching.value(found, q)
    slope = slope + 0.02 * found
    free = (found > low) & (found < high)
    assert value == pytest.approx(plain + 0.01 * (found**2).sum(), rel=1e-13)
    assert np.abs(slope[free]).max(initial=0.0) < 1e-5
    assert np.all(slope[found == low] >= 0)
    assert np.all(slope[found == high] <= 0)


@pytest.mark.parametrize("n", [1, 7, 8, 19])
def test_least_value_of_a_quadratic_in_a_box(n):
    scale, centre = np.geomspace(1, 1e4, n), np.linspace(-2, 2, n)
    low = np.where(np.arange(n) % 3, -1.0, -np.inf)
    found, value, _ = _gradient_matching.bounded_minimum(
        lambda x: (float((scale * (x - centre) ** 2).sum()), 2 * scale * (x - centre)), np.zeros(n), low, 1.0, 0.0,
        0.0, 2000)
    np.testing.assert_allclose(found, np.clip(centre, low, 1.0), rtol=0, atol=1e-5)
    assert value == pytest.approx(float((scale * (found - centre) ** 2).sum()), rel=1e-12)


def test_least_value_in_a_curved_valley():
    def rosenbrock(x):
        gap = x[1] - x[0] ** 2
        return 100 * gap**2 + (1 - x[0]) ** 2, np.array([-400 * x[0] * gap - 2 * (1 - x[0]), 200 * gap])

    found, value, _ = _gradient_matching.bounded_minimum(rosenbrock, [-1.2, 1.0], -2.0, 2.0, 1e-15, 1e-28, 1000)
    assert value < 1e-18
    np.testing.assert_allclose(found, 1.0, atol=1e-8)
    found, value, _ = _gradient_matching.bounded_minimum(rosenbrock, [-1.2, 1.0], -2.0, 0.5, 1e-15, 0.0, 1000)
    np.testing.assert_allclose(found, [0.5, 0.25], atol=1e-8)


def test_values_that_are_not_finite_are_no_lower():
    def pole(x):
        return (float(x[0] - np.log(x[0])), 1 - 1 / x) if x[0] > 0 else (np.nan, np.array([np.nan]))

    found, value, _ = _gradient_matching.bounded_minimum(pole, [0.1], -9.0, 9.0, 1e-15, -np.inf, 200)
    assert found[0] == pytest.approx(1.0, abs=1e-6)
    assert value == pytest.approx(1.0)


def test_an_error_of_the_function_is_raised():
    def broken(x):
        raise ZeroDivisionError("of the function")

    with pytest.raises(ZeroDivisionError, match="of the function"):
        _gradient_matching.bounded_minimum(broken, [0.0], 0.0, 1.0, 0.0, 0.0, 10)
    with pytest.raises(ValueError):
        _gradient_matching.bounded_minimum(lambda x: (0.0, np.zeros(3)), [0.0], 0.0, 1.0, 0.0, 0.0, 10)


def test_arrays_that_do_not_fit_are_refused():
    w = np.zeros((3, 5))
    with pytest.raises(ValueError, match="one shape"):
        _gradient_matching.Matching([1.0], w, w[:, 1:])
    matching = _gradient_matching.Matching([1.0], w, w)
    with pytest.raises(ValueError, match="column for each feature"):
        matching.value(np.zeros((1, 5)), np.zeros((1, 3)))
    with pytest.raises(ValueError, match="column for each class"):
        matching.value(np.zeros((1, 4)), np.zeros((1, 4)))
    for call in (lambda: matching.descend(np.zeros((1, 4)), np.zeros((1, 3)), np.zeros(3), 0.0, 0.0, 9),
                 lambda: matching.search(np.zeros((1, 4)), np.zeros((1, 3)), np.zeros(3), 0.0, 0.0, 1.0, 0.0, 0.0, 9)):
        with pytest.raises(ValueError, match="entry for each feature"):
            call()
    with pytest.raises(ValueError, match="there must be a coordinate"):
        _gradient_matching.bounded_minimum(lambda x: (0.0, x), [], 0.0, 1.0, 0.0, 0.0, 10)


@each_wider_variant
@pytest.mark.slow
def test_same_bits(variant):
    check_same_lines(SCRIPT, 17, variant)
