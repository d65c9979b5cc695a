"""Sums along a contour bound compositions: truths from other contours, closed forms, curves of one step, and laws."""

import math

import mpmath
import numpy as np
import pytest

from fastpriv import GaussianMixture
from fastpriv.composition.contour import contour_bounds
from fastpriv.divergences import log_hockey_stick_divergence
from fastpriv.kernels import _contour
from fastpriv.pairs.discrete_pairs import DiscretePair
from fastpriv.pairs.laplace_pairs import LaplacePair
from fastpriv.pairs.mixture_pairs import MixturePair
from oracles.contours import stored_steps
from oracles.largest_losses import log_delta
from oracles.tables import rows

ONE = GaussianMixture.single(0.0, 1.0)
#: relative width that each stored case must meet; where rare large losses rule delta the sums are wider
WIDTHS = {"rare": 1e-3, "all kinds": 1e-6, "million": 1e-9}


def steps_of(name):
    made = []
    for kind, count, columns in stored_steps(name):
        if kind == "mixtures":
            made.append(MixturePair(GaussianMixture(*columns[:3]), GaussianMixture(*columns[3:]), count))
        elif kind == "laplace":
            made.append(LaplacePair(*(float(column[0]) for column in columns), count))
        else:
            made.append(DiscretePair(*columns, count))
    return made


def subsampled(rate, sigma, count):
    return MixturePair(GaussianMixture([1 - rate, rate], [0.0, 1.0], sigma), GaussianMixture.single(0.0, sigma), count)


@pytest.mark.parametrize("quantity", ["delta", "tail"])
def test_stored_truths_lie_within_narrow_bounds(quantity):
    for name, epsilon, stored_delta, stored_tail in rows("contours"):
        truth = float(stored_delta if quantity == "delta" else stored_tail)
        bounds = contour_bounds(steps_of(name), np.array([epsilon]), quantity)
        slack = 3e-16 * (1.0 + abs(truth))  # the rounding of the stored number
        case = (name, epsilon, truth, bounds)
        assert bounds.lower[0] - slack <= truth <= bounds.upper[0] + slack, case
        assert bounds.lower[0] <= bounds.value[0] <= bounds.upper[0], case
        if quantity == "delta" or float(stored_delta) < -0.01:  # else the tail is far smaller than delta
            assert bounds.upper[0] - bounds.lower[0] < WIDTHS.get(name, 1e-9), case


# rate, sigma, count, whether reversed, epsilon, log delta by contours and panels of tests/oracles/contours.py
MANY = [
    (0.1, 100.0, 10**9, True, 731.668379047639, -29.9714241923319166),
    (0.1, 100.0, 10**9, False, 1268.168625650105, -299.690986004566324),
    (0.001, 1e4, 10**9, False, 0.019786748229547117, -29.9794354383987654),
    (0.01, 2.0, 10**9, False, 15396.285670068019, -29.9779673143536241),
    (0.1, 100.0, 10**12, False, 544622.8958964362, -999.409197546773211),
    (0.5, 1e8, 10**12, True, 0.11985783033867826, -299.834245986471381),
]


@pytest.mark.parametrize(("rate", "sigma", "count", "backward", "epsilon", "truth"), MANY)
def test_errors_do_not_grow_with_the_count(rate, sigma, count, backward, epsilon, truth):
    step = subsampled(rate, sigma, count)
    bounds = contour_bounds([step.reversed() if backward else step], np.array([epsilon]))
    assert bounds.lower[0] <= truth <= bounds.upper[0]
    assert bounds.upper[0] - bounds.lower[0] <= 1e-9


def gaussian_log_delta(mu, epsilon):
    """log delta and log of e^epsilon Q(S > epsilon) of one Gaussian against another at a distance mu."""
    with mpmath.workdps(60):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        tail = mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2)
        return mpmath.log(mpmath.ncdf(mu / 2 - epsilon / mu) - tail), mpmath.log(tail)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 100.0, 1e6])
@pytest.mark.parametrize("count", [1, 7, 1000, 10**6])
def test_gaussians_against_their_closed_form(sigma, count):
    steps = [MixturePair(GaussianMixture.single(1.0, sigma), GaussianMixture.single(0.0, sigma), count)]
    with mpmath.workdps(60):
        mu = mpmath.sqrt(count) / mpmath.mpf(sigma)
    centre, spread = float(mu) ** 2 / 2, float(mu)
    epsilon = np.array([max(0.0, centre + z * spread) for z in (-30.0, -3.0, 0.0, 2.0, 10.0, 43.0, 60.0)])
    for index, quantity in enumerate(("delta", "tail")):
        bounds = contour_bounds(steps, epsilon, quantity)
        for e, lower, upper in zip(epsilon, bounds.lower, bounds.upper, strict=True):
            truth = gaussian_log_delta(mu, e)[index]
            assert lower <= truth <= upper, (quantity, e, lower, truth, upper)
            if quantity == "delta" or e >= centre:  # below, the tail is far smaller than delta
                assert upper - lower < 1e-9, (quantity, e, lower, upper)


def test_components_that_change_nothing():
    """A mixture whose components are all the same density is that density: nodes must agree with the closed form."""
    for count in (3, 1000):
        twice = [MixturePair(GaussianMixture([0.5, 0.5], [1.0, 1.0], 2.0), GaussianMixture.single(0.0, 2.0), count)]
        tiny = [
            MixturePair(GaussianMixture([1.0, 1e-300], [1.0, 3.0], 2.0), GaussianMixture.single(0.0, 2.0), count),
            MixturePair(GaussianMixture([1.0, 5e-324], [1.0, 0.5], 2.0), GaussianMixture.single(0.0, 2.0), count),
        ]
        with mpmath.workdps(60):
            mu = mpmath.sqrt(count) / 2
        three = GaussianMixture([0.1, 0.2, 0.7], [1.0, 1.0, 1.0], 2.0)  # a sum of weights less than 1 by 3e-17
        apart = [MixturePair(three, GaussianMixture.single(0.0, 2.0), count)]
        for steps in (twice, tiny[:1], tiny[1:], apart):
            for epsilon in (0.0, 0.3, float(mu) ** 2):
                bounds = contour_bounds(steps, np.array([epsilon]))
                truth = gaussian_log_delta(mu, epsilon)[0]
                assert bounds.lower[0] <= truth <= bounds.upper[0] + count * 1e-16, (count, epsilon, truth, bounds)
                assert bounds.upper[0] - bounds.lower[0] < 1e-9


@pytest.mark.few(1)
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("rate", "sigma"), [(0.5, 2.0), (0.9, 30.0), (1e-3, 20.0)])
def test_one_step_has_its_own_curve(rate, sigma, direction):
    step = subsampled(rate, sigma, 1)
    step = step if direction == "remove" else step.reversed()
    epsilon = np.array([0.0, 0.3, 1.0]) * rate / sigma
    curve = log_hockey_stick_divergence(step.p, step.q, epsilon)
    bounds = contour_bounds([step], epsilon)
    assert np.all(bounds.lower <= curve.upper)
    assert np.all(bounds.upper >= curve.lower)


def test_steps_of_one_kind_are_one_step_with_their_count():
    one = [subsampled(0.01, 2.0, 500)]
    several = [subsampled(0.01, 2.0, 100), subsampled(0.01, 2.0, 150), subsampled(0.01, 2.0, 250)]
    epsilon = np.array([0.0, 0.5, 2.0])
    first, second = (contour_bounds(steps, epsilon) for steps in (one, several))
    assert np.all(first.lower <= second.upper)
    assert np.all(second.lower <= first.upper)
    none = contour_bounds([*one, subsampled(0.3, 1.0, 0), MixturePair(ONE, ONE, 5), LaplacePair(1.0, 0.0, 3)], epsilon)
    assert np.array_equal(none.value, first.value)


def test_a_result_does_not_depend_on_the_other_epsilons():
    steps = [subsampled(0.02, 1.5, 800)]
    epsilon = np.linspace(0.0, 8.0, 101)
    together = contour_bounds(steps, epsilon)
    for k in (100, 3, 50, 0):
        alone = contour_bounds([subsampled(0.02, 1.5, 800)], epsilon[k : k + 1])
        assert [column[0] for column in alone[:3]] == [column[k] for column in together[:3]]
    assert np.all(np.diff(together.upper) < 0.0)
    assert np.all(together.upper - together.lower < 1e-9)
    tail = contour_bounds(steps, epsilon, "tail")
    # minus the derivative of delta: of a convex function, between its slopes
    slopes = -np.diff(np.exp(together.value)) / np.diff(epsilon)
    assert np.all(slopes < np.exp(tail.upper[:-1]))
    assert np.all(slopes > np.exp(tail.lower[1:]))


def test_more_steps_leak_more():
    epsilon = np.array([0.0, 1.0, 3.0])
    before = contour_bounds([subsampled(0.05, 2.0, 10)], epsilon)
    for count in (20, 100, 1000, 10000):
        after = contour_bounds([subsampled(0.05, 2.0, count)], epsilon)
        assert np.all(after.upper > before.lower)
        assert np.all(after.lower > before.value - 1e-9)
        before = after


def test_far_below_double_precision():
    """log delta near -2000: the bounds narrow and ordered."""
    epsilon = np.array([4.6, 4.7, 4.774])
    bounds = contour_bounds([subsampled(0.010000000000000009, 1.0, 500).reversed()], epsilon)
    assert np.all(bounds.upper - bounds.lower < 1e-8)
    assert bounds.lower[2] <= -1888.83899461515 <= bounds.upper[2]
    assert np.all(np.diff(bounds.value) < -100.0)


@pytest.mark.parametrize(
    ("rate", "sigma", "count", "missing"),
    [
        (0.01, 2.0, 100, 0.2), (0.01, 2.0, 100, 0.02), (0.00227, 2.438, 10, 0.12), (0.25, 1.0, 10, 1e-3),
        (1e-6, 1.0, 10, 1e-4), (1e-6, 0.5, 100, 1e-4), (0.5, 0.5, 30, 1e-3), (0.1, 10.0, 5, 0.05),
        (0.01, 2.0, 10000, 0.8), (1e-3, 0.3, 10000, 0.1),
    ],
)
def test_just_below_the_largest_loss(rate, sigma, count, missing):
    epsilon = (1.0 - missing) * -count * math.log1p(-rate)
    step = subsampled(rate, sigma, count).reversed()
    bounds = contour_bounds([step], np.array([epsilon]))
    further = contour_bounds([step], np.array([epsilon * (1.0 + 1e-3 * missing)]))
    t = -0.9 * (further.value[0] - bounds.value[0]) / (1e-3 * missing * epsilon)
    truth = log_delta(rate, sigma, count, epsilon, t)
    assert bounds.lower[0] <= truth <= bounds.upper[0]
    assert bounds.upper[0] - bounds.lower[0] < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "sigma", "t"), [(0.3, 0.4, 3.0), (0.3, 0.4, 1e4), (0.3, 3.0, 1e4), (1e-5, 3.0, 1e9), (1e-5, 0.4, 1e10)]
)
def test_moments_of_bounded_losses(rate, sigma, t):
    """By trapezoidal sums of 40 digits; |m| stays below the bound of all larger frequencies."""
    step = subsampled(rate, sigma, 1).reversed()
    composition = _contour.ContourSums(1)
    sides = [(side.weights, side.means, side.sigmas) for side in (step.p, step.q)]
    composition.add_mixtures(1.0, *sides[0], *sides[1], 0.0, math.fsum([*step.q.weights, -1.0]))
    frequencies = np.array([0.1, 1.0, 2.0]) * t
    with mpmath.workdps(40):
        other, d = mpmath.mpf(1 - rate), 1 / mpmath.mpf(sigma)
        width = min(mpmath.mpf(1), 1 / d) / 64
        x = np.arange(int(-65 / width), int(14 / width)) * float(width)
        exponent = -x * x / 2 - t * np.log1p(rate / (1 - rate) * np.exp((x - 0.5 / sigma) / sigma))
        nodes = []
        for j in np.arange(int(-65 / width), int(14 / width))[exponent > exponent.max() - 62]:
            at = int(j) * width
            loss = -mpmath.log(other + mpmath.mpf(rate) * mpmath.exp(d * at - d * d / 2))
            nodes.append((mpmath.exp(-at * at / 2 + t * loss) * width / mpmath.sqrt(2 * mpmath.pi), loss))
        size = mpmath.fsum(g for g, _ in nodes)
        sizes = []
        for w in frequencies:
            kappa, kappa_error, mean, rows = composition.moments(0, t, np.array([w]))
            log_size, phase, wrong, above = rows[0]
            assert abs(mpmath.log(size) - kappa) <= kappa_error
            m = mpmath.fsum(g * mpmath.expj(w * (loss - mpmath.mpf(mean))) for g, loss in nodes) / size
            # the mean is rounded, and the phase is about the mean that is not
            away = wrong + 1e-15 * (4 + abs(log_size)) + 2.3e-16 * w * abs(mean)
            assert abs(m - mpmath.exp(mpmath.mpc(log_size, phase))) <= away
            sizes.append((abs(m), above))
    for i, (_, above) in enumerate(sizes):
        assert max(size for size, _ in sizes[i:]) <= above
    assert t == 3.0 or sizes[-1][1] < 0.95


@pytest.mark.parametrize(("distance", "count", "epsilon"), [(20.0, 3, 700.0), (30.0, 3, 1543.0), (30.0, 30, 10000.0),
                                                           (50.0, 2, 2900.0)])
def test_far_components(distance, count, epsilon):
    """Of j samples in the far component and the others in the near one S is normal, but for e^(-distance^2 / 8)."""
    p = GaussianMixture([0.5, 0.5], [0.0, distance], 1.0)
    bounds = contour_bounds([MixturePair(p, ONE, count)], np.array([epsilon]))
    with mpmath.workdps(60):
        d, delta = mpmath.mpf(distance), mpmath.mpf(0)
        for j in range(1, count + 1):
            mean, deviation = count * mpmath.log(0.5) + j * d * d / 2, d * mpmath.sqrt(j)
            u = (mean - epsilon) / deviation
            part = mpmath.ncdf(u) - mpmath.exp(epsilon - mean + deviation**2 / 2) * mpmath.ncdf(u - deviation)
            delta += math.comb(count, j) * mpmath.mpf(2) ** -count * part
        truth = mpmath.log(delta)
    assert bounds.lower[0] <= truth <= bounds.upper[0]
    assert bounds.upper[0] - bounds.lower[0] < 1e-9


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("step", "epsilon"),
    [
        (subsampled(1e-300, 1.0, 10), 0.1),
        (subsampled(1e-6, 0.3, 1000), 1.0),
        (subsampled(0.5, 1e-3, 2), 5.0),
        (subsampled(0.5, 1e8, 10), 1e-9),
        (subsampled(0.5, 1.0, 10**12), 1.0),
        (MixturePair(GaussianMixture.single(1e5, 1.0), ONE, 3), 2.0),
        (MixturePair(GaussianMixture.single(0.0, 1.0), GaussianMixture.single(0.0, 1.0 + 1e-15), 10), 0.0),
        (LaplacePair(1.0, 1e-300, 5), 0.0),
        (DiscretePair(np.array([0.5, 0.5]), np.array([0.25, 0.75]), 5), 0.5),
    ],
)
def test_extremes_end_with_bounds(step, epsilon):
    bounds = contour_bounds([step], np.array([epsilon, 1e3]))
    for quantity in (bounds, contour_bounds([step], np.array([epsilon]), "tail")):
        assert not np.any(np.isnan(quantity.lower) | np.isnan(quantity.upper) | np.isnan(quantity.value))
        assert np.all(quantity.lower <= quantity.value)
        assert np.all(quantity.value <= quantity.upper)
        assert np.all(quantity.upper < 1e-9)


@pytest.mark.parametrize(("scale", "shift"), [(10.0, 1.0), (0.3, 1.0), (100.0, 0.7)])
@pytest.mark.parametrize("t", [1e-3, 1.7, 300.0])
def test_moments_of_laplace_noise(scale, shift, t):
    """M(z) = ((1 + z) e^(z r) + z e^(-(1 + z) r)) / (1 + 2 z), by nodes and, at large frequencies, by its two terms."""
    composition = _contour.ContourSums(1)
    composition.add_laplace(1.0, scale, shift)
    frequencies = np.array([0.1, 3.0, 40.0, 200.0, 1e3, 1e5]) * scale / shift
    with mpmath.workdps(50):
        r = mpmath.mpf(shift) / mpmath.mpf(scale)

        def moment(z):
            return ((1 + z) * mpmath.exp(z * r) + z * mpmath.exp(-(1 + z) * r)) / (1 + 2 * z)

        size = moment(mpmath.mpf(t))
        for w in frequencies:
            kappa, kappa_error, mean, rows = composition.moments(0, t, np.array([w]))
            log_size, phase, wrong, above = rows[0]
            assert abs(mpmath.log(size) - kappa) <= kappa_error
            truth = moment(mpmath.mpc(t, w)) / size * mpmath.exp(-1j * mpmath.mpf(w) * mpmath.mpf(mean))
            assert abs(truth - mpmath.exp(mpmath.mpc(log_size, phase))) <= wrong + 1e-15 * (4 + abs(log_size))
            assert wrong < 1e-6 * abs(truth)
            assert abs(truth) <= above


@pytest.mark.slow
def test_atoms_alone_enclose_the_exact_sum():
    p, q, count, epsilon = 0.625, 0.375, 16, 2.737
    truth = sum(
        math.comb(count, j) * p**j * q ** (count - j) * -math.expm1(epsilon - (2 * j - count) * math.log(p / q))
        for j in range(count + 1) if (2 * j - count) * math.log(p / q) > epsilon
    )
    bounds = contour_bounds([DiscretePair(np.array([p, q]), np.array([q, p]), count)], np.array([epsilon]))
    assert bounds.lower[0] <= math.log(truth) <= bounds.upper[0]


def test_infinite_losses_are_left_to_others():
    assert contour_bounds([DiscretePair(np.array([0.5, 0.5]), np.array([0.0, 1.0]), 2)], np.array([1.0])) is None


@pytest.mark.parametrize("quantity", ["delta", "tail", "lower"])
def test_infinite_levels(quantity):
    # the largest double becomes infinite where levels are widened
    step = MixturePair(GaussianMixture.single(1.0, 1.0), GaussianMixture([0.5, 0.5], [0.0, 1.0], 1.0), 10)
    bounds = contour_bounds([step], np.array([np.inf]), quantity)
    assert bounds.lower[0] <= (0.0 if quantity == "lower" else -1e6)
    assert bounds.upper[0] >= bounds.lower[0]
