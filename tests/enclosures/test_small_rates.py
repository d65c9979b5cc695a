"""Few releases of Poisson-sampled Gaussians at small rates: narrow bounds near epsilon = 0 that hold the truth."""

import math

import numpy as np
import pytest
from mpmath import log

from fastpriv import GaussianMixture, LaplaceMechanism, PoissonSampledGaussian, compose, special
from fastpriv.base.quadrature_rules import gauss_legendre
from fastpriv.composition import engines, many_sampled_gaussians
from fastpriv.composition.contour import contour_bounds
from fastpriv.composition.many_sampled_gaussians import small_rate_bounds
from fastpriv.composition.two_sampled_gaussians import few_release_bounds
from oracles.composition import two_sampled_releases
from oracles.jumps import log_delta

# (rate, distance over sigma) of two releases, epsilon, direction, log delta by oracles.composition.two_sampled_releases
TWO = [
    ((1e-4, 1.0), (1e-4, 1.0), 0.0, "forward", -9.72867213224566),
    ((1e-6, 2.0), (1e-6, 2.0), 1e-4, "forward", -16.158747080399134),
    ((1e-6, 0.1), (1e-6, 0.1), 4e-6, "forward", -140.58673818465965),  # 100 digits
    ((1e-6, 1.0), (1e-6, 1.0), 1e-6, "backward", -16.126650380008616),
    ((1e-5, 0.5), (3e-6, 1.5), 1e-5, "forward", -13.88208965869015),
    ((1e-5, 0.5), (3e-6, 1.5), 1e-5, "backward", -20.242577173987847),
    ((1e-4, 0.1), (1e-4, 0.1), 1e-4, "backward", -64.98419812183081),
    ((0.25, 1.0), (0.25, 1.0), 0.3, "forward", -2.6561052369837483),
    ((0.25, 1.0), (0.25, 1.0), 0.3, "backward", -3.930097659991578),
]
# epsilon, sigma, rate, count, log delta by oracles.jumps.log_delta, true to about 1e-12
MANY = [
    (0.0, 1.0, 1e-6, 3, -14.087473390103373),
    (4e-6, 1.0, 1e-6, 3, -15.72942605226789),
    (9.999999999999999e-05, 1.0, 1e-6, 3, -25.270599133537132),
    (0.0, 1.0, 1e-4, 3, -9.482334290147069),
    (0.0, 0.5, 1e-4, 3, -8.710467226263725),
    (1e-4, 0.5, 1e-4, 10, -7.878776443884744),
    (4e-4, 0.5, 1e-4, 10, -8.049441849459964),
    (0.01, 0.5, 1e-4, 10, -9.9447591548898),
    (0.0, 0.5, 1e-6, 10, -12.420202021991694),
    (0.0, 2.0, 1e-6, 3, -14.845100313686672),
    (4e-6, 2.0, 1e-6, 3, -20.500512799716077),
]
ORACLE_ERROR = 3e-12


def steps_of(pairs, direction="forward"):
    both = compose([PoissonSampledGaussian(sigma, rate) for sigma, rate, _ in pairs], [count for *_, count in pairs])
    return (both.forward_pairs if direction == "forward" else both.backward_pairs).dominating


def released(first, second, epsilon, direction):
    both = [PoissonSampledGaussian(1.0, rate, distance) for rate, distance in (first, second)]
    return compose(both).log_delta(epsilon, direction=direction)


@pytest.mark.parametrize(("first", "second", "epsilon", "direction", "truth"), TWO)
def test_two_releases(first, second, epsilon, direction, truth):
    found = released(first, second, epsilon, direction)
    assert "integral of the curve of one release" in found.method
    assert found.lower - 2e-15 * abs(truth) <= truth <= found.upper + 2e-15 * abs(truth)
    assert found.width < 1e-13 * max(4.0, abs(truth))


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second", "epsilon", "direction", "truth"), TWO)
def test_truth_of_two_releases(first, second, epsilon, direction, truth):
    digits = 100 if truth < -100.0 else 60 if truth < -50.0 else 40
    value = log(two_sampled_releases(first, second, epsilon, direction == "forward", digits))
    assert float(value) == pytest.approx(truth, rel=1e-14)


@pytest.mark.parametrize(("epsilon", "sigma", "rate", "count", "truth"), MANY)
def test_more_releases(epsilon, sigma, rate, count, truth):
    found = compose(PoissonSampledGaussian(sigma, rate), count).log_delta(epsilon, direction="forward")
    assert "turned contour" in found.method
    assert found.lower - ORACLE_ERROR <= truth <= found.upper + ORACLE_ERROR
    assert found.width < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "sigma", "rate", "count", "truth"), [row for row in MANY if row[3] == 3])
def test_truth_of_more_releases(epsilon, sigma, rate, count, truth):
    assert log_delta(epsilon, [(rate, 1.0 / sigma)] * count) == pytest.approx(truth, abs=ORACLE_ERROR)


def random_pair(rng):
    sigma, rate = 10.0 ** rng.uniform(-0.6, 0.7), 10.0 ** rng.uniform(-9.0, -3.0)
    if rng.random() < 0.3:
        return [(sigma, rate, 2)]
    return [(sigma, rate, 1), (sigma * 10.0 ** rng.uniform(-0.5, 0.5), rate * 10.0 ** rng.uniform(-1.0, 0.0), 1)]


def check_both_methods(seed, count):
    """The integral and the contour share no formula: their brackets overlap, also where delta is far below epsilon."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        pairs = random_pair(rng)
        largest = -sum(number * math.log1p(-rate) for _, rate, number in pairs)
        for direction in ("forward", "backward"):
            forward, backward = 10.0 ** rng.uniform(-2.0, 1.0, 2) * pairs[0][1], rng.random(2) * largest
            levels = forward if direction == "forward" else backward
            epsilon, steps = np.array([0.0, *levels]), steps_of(pairs, direction)
            one, other = few_release_bounds(steps, epsilon), small_rate_bounds(steps, epsilon)
            assert (one.lower <= other.upper).all(), (pairs, direction, epsilon)
            assert (other.lower <= one.upper).all(), (pairs, direction, epsilon)
            assert (one.upper[0] - one.lower[0]) < 1e-12
            assert (other.upper[0] - other.lower[0]) < 1e-11


@pytest.mark.slow
def test_two_releases_by_both_methods():
    check_both_methods(5, 4)


@pytest.mark.slow
def test_many_two_releases_by_both_methods():
    check_both_methods(1, 20)


@pytest.mark.parametrize(("sigma", "rate", "count"), [(1.0, 1e-3, 100), (3.0, 5e-4, 30)])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_other_contours_overlap(monkeypatch, sigma, rate, count, direction):
    monkeypatch.setattr(many_sampled_gaussians, "_MOST_PARTICIPATIONS", 1.0)
    steps, epsilon = steps_of([(sigma, rate, count)], direction), np.array([0.0, 0.5, 1.0]) * rate * count**0.5
    one, other = small_rate_bounds(steps, epsilon), contour_bounds(steps, epsilon)
    assert (one.upper - one.lower < 1e-8).all()
    assert (one.lower <= other.upper + 1e-9).all()  # of the weights as doubles
    assert (other.lower <= one.upper + 1e-9).all()


def test_other_steps_are_left_to_others():
    assert steps_of([(1.0, 0.01, 1)])[0].sampled_gaussian.rate == (0.01, 0.01)
    group = compose(PoissonSampledGaussian(1.0, 0.01, group_size=2)).forward_pairs.dominating[0]
    rounded = compose((GaussianMixture([0.9, 0.1 + 1e-16], [0.0, 1.0], 1.0), GaussianMixture.single(0.0, 1.0)))
    exact = compose((GaussianMixture([0.25, 0.75], [1.0, 0.0], 1.0), GaussianMixture.single(0.0, 1.0)))
    assert group.sampled_gaussian is None
    assert rounded.forward_pairs.dominating[0].sampled_gaussian is None
    assert exact.forward_pairs.dominating[0].sampled_gaussian.rate == (0.25, 0.25)
    mixed = (*steps_of([(1.0, 1e-4, 1)]), *steps_of([(1.0, 1e-4, 1)], "backward"))
    assert few_release_bounds(mixed, np.zeros(1)) is None
    assert small_rate_bounds(mixed, np.zeros(1)) is None
    assert small_rate_bounds(steps_of([(1.0, 0.01, 5)]), np.zeros(1)) is None


@pytest.mark.few(1)
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("pairs", [[(1.0, 1e-5, 2)], [(10.0, 1e-5, 40), (3.0, 1e-6, 2)]])
def test_bounds_do_not_depend_on_other_epsilons(pairs, direction):
    epsilon = np.array([0.0, 3e-6, 1e-5, 3.1e-6, 1.7e-5])
    together = engines.curve_bounds(compose_steps(pairs, direction), epsilon)
    for i, level in enumerate(epsilon):
        alone = engines.curve_bounds(compose_steps(pairs, direction), np.array([level]))
        assert (alone.lower[0], alone.upper[0]) == (together.lower[i], together.upper[i])


def compose_steps(pairs, direction):
    both = compose([PoissonSampledGaussian(sigma, rate) for sigma, rate, _ in pairs], [count for *_, count in pairs])
    return both.forward_pairs if direction == "forward" else both.backward_pairs


def test_negative_epsilons_and_the_largest_loss():
    both = compose(PoissonSampledGaussian(1.0, 1e-5), 2)
    least = 2.0 * math.log1p(-1e-5)
    found = both.log_delta([0.999 * least, 1.001 * least], direction="forward")
    assert found.upper[1] == pytest.approx(math.log(-math.expm1(1.001 * least)), rel=1e-14)
    assert found.lower[0] <= math.log(-math.expm1(0.999 * least)) + 1e-12  # delta is above 1 - e^epsilon by e^-300
    assert both.delta(-1.001 * least, direction="backward").upper == 0.0
    assert both.delta(-0.99 * least, direction="backward").upper < 1e-12


@pytest.mark.parametrize("kinds", [
    [(20.0, 1e-6, 10)], pytest.param([(20.0, 1e-6, 3), (8.0, 1e-5, 1)], marks=pytest.mark.slow),
])
@pytest.mark.slow
def test_lower_bounds_are_at_least_those_of_fewer_releases(kinds):
    """At this epsilon no sum reaches delta."""
    epsilon = 1e-4
    mechanisms, counts = [PoissonSampledGaussian(s, q) for s, q, _ in kinds], [count for *_, count in kinds]
    found = compose(mechanisms, counts).log_delta(epsilon)
    for (sigma, rate, count), mechanism in zip(kinds, mechanisms, strict=True):
        _, single, _ = special.sampled_gaussian_log_delta_remove(sigma, rate, epsilon)
        assert found.lower >= single - 1e-14 * abs(single)  # both are rounded outward
        assert count == 1 or found.lower >= compose(mechanism, 2).log_delta(epsilon).lower - 1e-9


def test_lower_bounds_of_other_kinds():
    far = (GaussianMixture([0.5, 0.5], [0.0, 1e6], 1.0), GaussianMixture.single(0.0, 1.0))
    noise = LaplaceMechanism(1.0, 1.0)
    found = compose([far, noise], [1, 1]).log_delta(0.25, direction="forward")
    assert found.lower >= max(compose(far).log_delta(0.25).lower, compose(noise).log_delta(0.25).lower)


def test_nodes_in_extended_precision():
    """They integrate the monomials of degree 47 at most, to rounding."""
    x, y, weights = gauss_legendre(24, True)
    assert x.dtype == np.longdouble
    unit = np.finfo(np.longdouble).eps
    assert abs(x + y - 1).max() <= unit
    for power in (0, 1, 5, 20, 47):
        assert abs((weights * x**power).sum() * (power + 1) - 1) < 60 * (power + 1) * unit


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize(
    ("sigma", "rate", "epsilon"), [(47.4, 5.9e-7, 4e-8), (64.0, 2.0**-20, 2e-7), (78.0, 1e-4, 0.0)]
)
def test_one_release_is_its_closed_form(sigma, rate, epsilon, direction):
    """Sums whose terms all underflow used to warn, and left bounds 1e-7 wide."""
    found = compose(PoissonSampledGaussian(sigma, rate)).log_delta(epsilon, direction=direction)
    curve = special.sampled_gaussian_log_delta_remove if direction == "forward" else (
        special.sampled_gaussian_log_delta_add)
    _, lower, upper = curve(sigma, rate, epsilon)
    assert lower - 1e-12 * abs(lower) <= found.lower <= found.upper <= upper + 1e-12 * abs(upper)


@pytest.mark.parametrize(("sigma", "count", "width"), [(64.0, 7, 1e-11), (300.0, 3, 1e-7), (3000.0, 20, 1e-5)])
def test_sums_that_underflow_leave_narrow_bounds_by_others(sigma, count, width):
    steps = compose(PoissonSampledGaussian(sigma, 1e-6), count)
    forward, backward = (steps.log_delta(0.0, direction=direction) for direction in ("forward", "backward"))
    assert max(forward.upper - forward.lower, backward.upper - backward.lower) < width
    assert max(forward.lower, backward.lower) <= min(forward.upper, backward.upper)  # total variation
