"""Two normal distributions of any covariances: certified curves against closed forms and integrals of mpmath."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from fastpriv import GaussianMixture, compose, hockey_stick_divergence, renyi_divergence, total_variation
from fastpriv.divergences import log_hockey_stick_divergence
from fastpriv.divergences.reductions.gaussian_spectra import GaussianSpectrum, gaussian_spectrum
from fastpriv.divergences.reductions.gaussian_sums import gaussian_sum_bounds
from oracles import gaussian_pairs as oracle

EPSILONS = [0.0, 1e-9, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0, 600.0]


def gaussian(mean, covariance=None, sigmas=None):
    if sigmas is not None:
        return GaussianMixture([1.0], [mean], [sigmas])
    return GaussianMixture([1.0], [mean], covariances=covariance)


def worst_width(label, p, q, truth, epsilons=EPSILONS, width=1e-9):
    """Check that the bounds of the logarithm contain log of the truth; print the widest above e^-2000, by 1 + size."""
    found = log_hockey_stick_divergence(p, q, epsilons)
    assert found.kind == "certified"
    widest = (0.0, None)
    for eps, low, high in zip(epsilons, found.lower, found.upper, strict=True):
        exact = truth(mpf(float(eps)))
        if exact <= 0:
            assert low == -np.inf, (label, eps, low)
            continue
        log = mp.log(exact)
        assert mpf(float(low)) <= log <= mpf(float(high)), (label, eps, mp.nstr(log, 20), low, high)
        if log > -2000:
            widest = max(widest, ((high - low) / (1 + abs(float(log))), eps))
    print(f"{label}: widest {widest[0]:.1e} at epsilon {widest[1]}")
    assert widest[0] <= width, (label, widest)
    return found


def integer_congruence(d, seed):
    """A matrix of small whole numbers of determinant 1."""
    rng = np.random.default_rng(seed)
    low, high = np.tril(rng.integers(-2, 3, (d, d)), -1), np.triu(rng.integers(-2, 3, (d, d)), 1)
    return (low + np.eye(d)) @ (high + np.eye(d))


PAIRS = {
    "wider": [0.5, 0.25], "narrower": [-0.5, -0.25], "both": [1.0, -0.5, 0.125], "many": [2.0, 1.0, 0.5, -0.25, -0.75],
    "nearly equal": [2.0**-27, -(2.0**-28)],
    "far apart": [2.0**20, -1 + 2.0**-20], "slight": [2.0**-10, 2.0**-12, -(2.0**-11)],
}


CASES = [*((name, False) for name in PAIRS), *((name, True) for name in PAIRS if name not in ("many", "far apart"))]


@pytest.mark.parametrize(("name", "mixed"), CASES)
def test_pairs_of_coordinates(name, mixed):
    """Hypoexponential sums, down to the ends of the loss; matrices of doubles that are exactly V D V' and V V'."""
    ys = PAIRS[name]
    d = 2 * len(ys)
    with mp.workdps(2000):
        values = np.repeat(1 + np.array(ys), 2)
        v = integer_congruence(d, d) if mixed else np.eye(d)
        s, t = v @ np.diag(values) @ v.T, v @ v.T
        exact = np.abs(v) @ np.diag(values * 2.0**20) @ np.abs(v).T < 2.0**50 if mixed else np.array(True)
        assert exact.all()  # the products are doubles
        p, q = gaussian(np.zeros(d), s), gaussian(np.zeros(d), t)
        levels = list(EPSILONS)
        most = -float(sum(mp.log(1 + mpf(y)) for y in ys))  # the largest loss where all y < 0
        if max(ys) < 0:
            levels = [most * x for x in (0.0, 1e-3, 0.1, 0.5, 0.9, 0.99, 0.9999, 1.0001, 2.0)]
        worst_width(
            f"{name}, {'mixed' if mixed else 'independent'}",
            p,
            q,
            lambda e: oracle.pairs_of_coordinates([mpf(y) for y in ys], e),
            levels,
            1e-6 if name == "nearly equal" else 1e-8,
        )


ONES = [
    (0.5, 0.0), (0.5, 3.0), (-0.5, 0.1), (-0.9, 5.0), (1e6, 0.0), (1e-8, 1e-4), (1e-8, 1.0), (-1e-8, 0.5), (1e-3, -2.0),
]


@pytest.mark.parametrize(("y", "w"), ONES)
def test_one_coordinate(y, w):
    """One coordinate by itself, from the roots of a quadratic; its tails too."""
    columns = (np.array([x]) for x in (y, w, 1.0, 0.0, 0.0))
    spectrum = GaussianSpectrum(*columns, 0.0, -0.5 * float(np.log1p(y)), 1e-15 * abs(y))
    levels = np.array(EPSILONS)
    _, lower, upper = gaussian_sum_bounds([(spectrum, 1.0)], levels)
    with mp.workdps(700):
        for eps, low, high in zip(levels, lower, upper, strict=True):
            exact = oracle.one_coordinate(mpf(y), mpf(w), mpf(float(eps)))
            if exact <= 0:
                assert low == -np.inf
                continue
            log = mp.log(exact)
            assert low <= log <= high, (eps, mp.nstr(log, 20), low, high)
            assert high - low <= 1e-9 * (1 + abs(log)), (eps, low, high)


TWOS = [
    ([1.0, 0.0], [[1.0, 0.25], [0.25, 1.0]], [0.0, 0.0], [[1.5, 0.0], [0.0, 1.0]]),
    ([0.5, -1.0], [[2.0, 0.5], [0.5, 1.0]], [0.0, 0.25], [[1.0, -0.25], [-0.25, 0.75]]),
    ([0.125, 0.0], [[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0], [[1.0, 0.125], [0.125, 1.25]]),
    ([0.1, 0.2], [[1.1, 0.3], [0.3, 0.7]], [0.0, 0.0], [[1.3, 0.2], [0.2, 0.9]]),
    ([1.0, 1.0], [[1.0, 0.99999999], [0.99999999, 1.0]], [1.0, 1.0001], [[1.0, 0.9999999], [0.9999999, 1.0]]),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", range(len(TWOS)))
def test_two_dimensions(case):
    """An integral over one coordinate of the closed curve of the other, in both directions."""
    mean_p, cov_p, mean_q, cov_q = TWOS[case]
    with mp.workdps(40):
        for order in ((mean_p, cov_p, mean_q, cov_q), (mean_q, cov_q, mean_p, cov_p)):
            first, second = sorted(oracle.coordinates(*order), key=lambda one: abs(one[0]) + abs(one[1]))
            p, q = gaussian(*order[:2]), gaussian(*order[2:])
            worst_width(
                f"two dimensions {case}",
                p,
                q,
                lambda e: oracle.two_coordinates(first, second, e),  # noqa: B023
                [0.0, 0.25, 1.0, 3.0][: 2 if case == 4 else 4],
                1e-9,
            )


def test_a_stated_value():
    p, q = gaussian(*TWOS[0][:2]), gaussian(*TWOS[0][2:])
    truth = mpf("0.257918383911355710528616817")
    for found in (hockey_stick_divergence(p, q, 0.25), compose((p, q)).delta(0.25, direction="forward")):
        assert float(found.lower) <= truth <= float(found.upper)
        assert found.width < 1e-12


@pytest.mark.parametrize("d", [2, 3, 100, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("y", [0.5625, -0.4375, 2.0**-12])
def test_scaled_identities(d, y):
    """S = (1 + y) T: chi-square of d degrees of freedom."""
    sigma = float(np.sqrt(1 + y)) if y != 2.0**-12 else 1 + 2.0**-12
    with mp.workdps(60):
        exact = mpf(sigma) ** 2 - 1
        p, q = gaussian(np.zeros(d), sigmas=np.full(d, sigma)), gaussian(np.zeros(d), sigmas=np.ones(d))
        levels = [0.0, 0.1, 1.0, 3.0, 20.0]
        worst_width(f"d = {d}, y = {y}", p, q, lambda e: oracle.scaled_identity(d, exact, e), levels, 1e-9)


def test_the_product_of_curves_of_lines_and_their_composition_agree():
    rng = np.random.default_rng(5)
    d = 6
    means, s, t = rng.normal(size=d), rng.uniform(0.5, 2.0, d), rng.uniform(0.5, 2.0, d)
    p, q = gaussian(means, sigmas=s), gaussian(np.zeros(d), sigmas=t)
    lines = [
        (GaussianMixture.single(a, b), GaussianMixture.single(0.0, c)) for a, b, c in zip(means, s, t, strict=True)
    ]
    together, apart = compose((p, q)), compose(lines)
    levels = [0.0, 0.5, 2.0, 10.0]
    for direction in ("forward", "backward"):
        one, other = (c.delta(levels, direction=direction) for c in (together, apart))
        assert (np.maximum(one.lower, other.lower) <= np.minimum(one.upper, other.upper)).all()
        assert (one.width <= 1e-9 * one.value).all()


def test_directions_are_dual():
    """delta_QP(-eps) = 1 - e^-eps + e^-eps delta_PQ(eps); both total variation distances are one number."""
    p, q = gaussian(*TWOS[1][:2]), gaussian(*TWOS[1][2:])
    for eps in (0.25, 2.0):
        turned, straight = hockey_stick_divergence(q, p, -eps), hockey_stick_divergence(p, q, eps)
        low, high = (1 - np.exp(-eps) * (1 - x) for x in (float(straight.lower), float(straight.upper)))
        assert turned.lower <= high + 1e-15
        assert low - 1e-15 <= turned.upper
    one, other = total_variation(p, q), total_variation(q, p)
    assert max(one.lower, other.lower) <= min(one.upper, other.upper)


def test_rotations_and_permutations_change_nothing():
    rng = np.random.default_rng(3)
    d = 5
    a = rng.integers(-4, 5, (d, d)) / 4.0
    s, t, m = a @ a.T + np.eye(d), np.diag(rng.integers(4, 12, d) / 4.0), rng.integers(-4, 5, d) / 4.0
    order, signs = rng.permutation(d), rng.choice([-1.0, 1.0], d)
    first = hockey_stick_divergence(gaussian(m, s), gaussian(np.zeros(d), t), [0.0, 1.0, 5.0])
    turned = [k[np.ix_(order, order)] * np.outer(signs, signs) for k in (s, t)]
    zero, levels = np.zeros(d), [0.0, 1.0, 5.0]
    second = hockey_stick_divergence(gaussian(m[order] * signs, turned[0]), gaussian(zero, turned[1]), levels)
    v = integer_congruence(d, 1)
    third = hockey_stick_divergence(gaussian(v @ m, v @ s @ v.T), gaussian(zero, v @ t @ v.T), levels)
    for other in (second, third):
        assert (np.maximum(first.lower, other.lower) <= np.minimum(first.upper, other.upper)).all()
        assert (other.width <= 1e-9 * other.value).all()


@pytest.mark.slow
def test_trade_off_and_repeated_releases_of_two_gaussians():
    """Tails and lower tails along the same paths: 40 releases of coordinates are a sum over 40 times as many."""
    p, q = gaussian(*TWOS[2][:2]), gaussian(*TWOS[2][2:])
    many = compose((p, q), 40)
    blocks = [np.kron(np.eye(40), np.array(k)) for k in (TWOS[2][1], TWOS[2][3])]
    large = compose((gaussian(np.tile(TWOS[2][0], 40), blocks[0]), gaussian(np.zeros(80), blocks[1])))
    for level in (0.0, 1.0, 4.0):
        one, other = (c.delta(level, direction="forward") for c in (many, large))
        assert max(one.lower, other.lower) <= min(one.upper, other.upper)
        assert one.width < 1e-9 * one.value
    spectrum = gaussian_spectrum(p, q)
    levels = np.array([0.25, 1.0, 3.0])
    parts = [gaussian_sum_bounds([(spectrum, 1.0)], levels, quantity) for quantity in ("delta", "tail", "lower")]
    total = sum(np.exp(part[0]) for part in parts)  # delta + tail is P(S > eps), lower is P(S <= eps)
    assert np.abs(total - 1).max() < 1e-12


def test_a_matrix_that_is_singular_to_working_precision_is_an_error_of_the_mixture():
    with pytest.raises(ValueError, match=r"covariances must be"):
        gaussian([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]])


@pytest.mark.parametrize("power", [4, 6, 8])
def test_condition_numbers(power):
    """Matrices of a large condition number keep nine digits: y are exact, twice each."""
    ys = [0.5, -0.25]
    x = 2.0 ** round(power * np.log2(10) / 4)
    v = np.array([[1.0, 0, 0, 0], [x, 1.0, 0, 0], [1.0, 2.0, 1.0, 0], [3.0, 0, 1.0, 1.0]])
    values = np.repeat(1 + np.array(ys), 2)
    s, t = v @ np.diag(values) @ v.T, v @ v.T
    scale = 1 / np.sqrt(np.diagonal(t))
    print(f"condition numbers {np.linalg.cond(t):.1e}, {np.linalg.cond(t * np.outer(scale, scale)):.1e} scaled")
    with mp.workdps(400):
        worst_width(
            f"condition 1e{power}",
            gaussian(np.zeros(4), s),
            gaussian(np.zeros(4), t),
            lambda e: oracle.pairs_of_coordinates([mpf(y) for y in ys], e),
            [0.0, 0.1, 1.0, 5.0, 100.0],
            1e-9,
        )


@pytest.mark.parametrize(("sigma", "order"), [
    (1.1254600816236753, 0.5068504249798055), (math.sqrt(1.27), 0.5), (math.sqrt(0.72), 0.5),
])
def test_a_renyi_divergence_of_nearly_equal_scales_whose_two_logarithms_cancel(sigma, order):
    """Beyond the series of 1 + 1/4 the difference of two logarithms, an eighteenth of each, was off by 99 units."""
    found = renyi_divergence(GaussianMixture.single(0.0, sigma), GaussianMixture.single(0.0, 1.0), order)
    with mp.workdps(40):
        x, b = mpf(sigma) ** 2 - 1, mpf(order) - 1
        truth = -(mp.log1p(x) + mp.log1p(-b * x) / b) / 2
    assert found.lower <= truth <= found.upper
    assert abs(found.value / truth - 1) < 4e-15
