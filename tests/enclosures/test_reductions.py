"""Collinear mixtures in d dimensions, exactly or up to rounding: bounds contain the truth from the exact input."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy.linalg import hadamard

from enclosures.reduced import (
    EPSILON,
    V,
    W,
    X,
    check_all_enclosed,
    check_encloses,
    check_in_the_plane,
    covariance,
    line,
)
from fastpriv import (
    GaussianMixture,
    Pmf,
    entropy,
    hockey_stick_divergence,
    jensen_shannon,
    kl_divergence,
    mutual_information,
    renyi_divergence,
    total_variation,
)
from fastpriv.base import exact_linear_algebra
from fastpriv.divergences.reductions import factored_quantities as reductions
from fastpriv.divergences.reductions.independent_factors import independent_factors
from oracles import gaussian_geometry as geometry
from sizes import few_first


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(40):
        yield


# exactly collinear means


@pytest.mark.slow
@pytest.mark.parametrize("sigma", few_first([0.7, 1.0], 1))
def test_collinear_isotropic_means(sigma):
    step = np.array([1.0, -2.0, 2.0, 4.0])
    p, q = (GaussianMixture(w, X[:, None] * step + 7.0, sigma) for w in (W, V))
    square = geometry.mahalanobis(step, 0 * step, np.full(4, sigma))
    assert independent_factors(p, q)[0].displacement == 0.0
    check_all_enclosed(p, q, line(W, X, square), line(V, X, square))


@pytest.mark.slow
def test_collinear_diagonal_and_full_covariances():
    step = np.array([1.0, -2.0, 0.5])
    for kwargs, k in (
        ({"sigmas": [[0.3, 2.0, 5.0]]}, np.array([0.3, 2.0, 5.0])),
        ({"covariances": covariance(3, 1)}, covariance(3, 1)),
    ):
        p, q = (GaussianMixture(w, X[:, None] * step, **kwargs) for w in (W, V))
        square = geometry.mahalanobis(step, 0 * step, k)
        check_all_enclosed(p, q, line(W, X, square), line(V, X, square))


@pytest.mark.parametrize("power", [-500, -37, 400])
def test_scales_do_not_matter(power):
    scale = 2.0**power
    rows = X[:, None] * np.array([3.0, 4.0]) * scale
    p, q = (GaussianMixture(w, rows, 5.0 * scale) for w in (W, V))
    one, two = (GaussianMixture(w, X, 1.0) for w in (W, V))
    for found, want in (
        (reductions.renyi_divergence(p, q), kl_divergence(one, two)),
        (reductions.jensen_shannon(p, q), jensen_shannon(one, two)),
        (reductions.hockey_stick_divergence(p, q, 1.0), hockey_stick_divergence(one, two, 1.0)),
        (reductions.hockey_stick_divergence(p, q, 0.0), total_variation(one, two)),
        (reductions.renyi_divergence(p, q, 2.0), renyi_divergence(one, two, 2.0)),
    ):
        check_encloses(found, want.value, 1e-11, slack=1e-14)
    mixed = np.array([2.0**power, 2.0**-power])
    p, q = (GaussianMixture(w, X[:, None] * [3.0, 4.0] * mixed, mixed[None, :] * 5.0) for w in (W, V))
    check_encloses(reductions.renyi_divergence(p, q), kl_divergence(one, two).value, 1e-11, slack=1e-14)


@pytest.mark.slow
def test_two_points_in_any_position_are_exact():
    rng = np.random.default_rng(3)
    for d in (7, 40):
        m, n = rng.normal(size=(2, d))
        k = covariance(d, d)
        p = GaussianMixture([0.75, 0.25], [m, n], covariances=k)
        q = GaussianMixture.single(m, covariance=k)
        (found,) = independent_factors(p, q)
        assert found.displacement == 0.0
        square = geometry.mahalanobis(m, n, k) if d < 40 else None
        if square is not None:
            check_all_enclosed(p, q, line([0.75, 0.25], [0, 1], square), line([1.0], [0], square))
        assert reductions.renyi_divergence(p, q).width < 1e-11


def test_correlated_release_of_two_statistics():
    """The joint release of correlated Gaussians leaks the Mahalanobis distance, not the sum of the parts."""
    k = np.array([[1.0, 0.9], [0.9, 1.0]])
    same, opposite = np.array([1.0, 1.0]), np.array([1.0, -1.0])
    origin = GaussianMixture.single([0.0, 0.0], covariance=k)
    for shift, near in ((same, 2 / 1.9), (opposite, 20.0)):
        p = GaussianMixture.single(shift, covariance=k)
        square = geometry.mahalanobis(shift, 0 * shift, k)
        assert abs(float(square) - near) < 1e-9
        check_encloses(reductions.renyi_divergence(p, origin), geometry.number(square) / 2, 1e-13)
        check_encloses(reductions.renyi_divergence(p, origin, 3.0), 3 * geometry.number(square) / 2, 1e-13)
        sticks = [geometry.gaussian_delta(square, e) for e in EPSILON.tolist()]
        check_encloses(reductions.hockey_stick_divergence(p, origin, EPSILON), sticks, 1e-12)
        check_encloses(reductions.entropy(p), mp.log(2 * mp.pi * mp.e) + geometry.log_determinant(k) / 2, 1e-13)


def test_normal_laws_of_one_covariance_from_tiny_to_huge_distances():
    rng = np.random.default_rng(5)
    for size in (1e-150, 1e-12, 1e-3, 1.0, 30.0):
        d = 12
        m, n, s = rng.normal(size=d) * size, rng.normal(size=d) * size, rng.uniform(0.5, 2.0, d)
        p, q = GaussianMixture.single(m, s), GaussianMixture.single(n, s)
        square = geometry.mahalanobis(m, n, s)
        with mp.workdps(40):
            check_encloses(reductions.renyi_divergence(p, q), geometry.number(square) / 2, 1e-13)
            width = 1e-12 if size >= 1e-3 else None
            truth = mp.erf(mp.sqrt(geometry.number(square) / 8))
            check_encloses(reductions.hockey_stick_divergence(p, q, 0.0), truth, width)
        if size >= 1e-3:
            grid = [0.0, 1.0, 20.0, 300.0]
            truth = [mp.log(geometry.gaussian_delta(square, e)) for e in grid]
            check_encloses(reductions.hockey_stick_divergence(p, q, grid, logs=True), truth, 1e-11)


@pytest.mark.parametrize("seed", range(4))
def test_coordinates_in_units_from_1e_minus_140_to_1e140(seed):
    rng = np.random.default_rng(seed)
    d = 6
    units = 10.0 ** rng.uniform(-140, 140, d)
    m, n = rng.normal(size=(2, d)) * units
    k = covariance(d, seed) * units[:, None] * units
    k = np.tril(k) + np.tril(k, -1).T
    s = units * rng.uniform(0.5, 2.0, d)
    for kwargs, law in (({"covariance": k}, k), ({"sigma": s}, s)):
        p, q = GaussianMixture.single(m, **kwargs), GaussianMixture.single(n, **kwargs)
        square = geometry.mahalanobis(m, n, law)
        check_encloses(reductions.renyi_divergence(p, q), geometry.number(square) / 2, 1e-13)
        check_encloses(reductions.renyi_divergence(p, q, 7.0), 3.5 * geometry.number(square), 1e-13)
        sticks = [geometry.gaussian_delta(square, e) for e in EPSILON.tolist()]
        check_encloses(reductions.hockey_stick_divergence(p, q, EPSILON), sticks, 1e-11)
        if law.ndim == 2:
            noise = d * mp.log(2 * mp.pi * mp.e) / 2 + geometry.log_determinant(law) / 2
            check_encloses(reductions.entropy(p), noise)
            assert reductions.entropy(p).width < 1e-11


# means that miss the line by rounding, or by more


@pytest.mark.parametrize("d", [2, 16, 300])
def test_rotated_means_are_reduced(d):
    rng = np.random.default_rng(d)
    u = rng.normal(size=d)
    u /= np.linalg.norm(u)
    p, q = (GaussianMixture(w, X[:, None] * u + 0.3, 1.0) for w in (W, V))
    (found,) = independent_factors(p, q)
    assert 0.0 < found.displacement < 1e-14
    one, two = line(W, X, Fraction(1)), line(V, X, Fraction(1))
    with mp.workdps(40):
        check_encloses(reductions.renyi_divergence(p, q), geometry.kl(one, two), 1e-12, slack=1e-14)
        sticks = [geometry.hockey_stick(one, two, e) for e in (0.0, 0.5)]
        check_encloses(reductions.hockey_stick_divergence(p, q, [0.0, 0.5]), sticks, 1e-11, slack=1e-14)


def test_rotated_tails_keep_their_digits():
    u = np.array([0.6, 0.8, 0.0])
    p = GaussianMixture(W, (X / 3.0)[:, None] * u, 1.0)
    q = GaussianMixture.single(p.means[1], 1.0)
    assert independent_factors(p, q)[0].displacement > 0.0
    one, two = line(W, X / 3.0, Fraction(1)), line([1.0], [0.0], Fraction(1))
    grid = [2.0, 10.0, 30.0]
    truth = [geometry.hockey_stick(one, two, e) for e in grid]
    assert truth[1] < 1e-25
    assert truth[2] < 1e-200
    check_encloses(reductions.hockey_stick_divergence(p, q, grid), truth, 1e-10, slack=1e-12)
    logs = reductions.hockey_stick_divergence(p, q, grid, logs=True)
    check_encloses(logs, [mp.log(x) for x in truth], 1e-11, slack=1e-13)
    far = reductions.hockey_stick_divergence(p, q, 1000.0, logs=True)
    assert far.lower > -1e7
    assert far.width < 1e-9 * abs(far.value)


@pytest.mark.parametrize(("gap", "reduced"), [(1e-13, True), (1e-7, False), (1e-3, False), (1.0, False)])
def test_means_beside_the_line(gap, reduced):
    rows = X[:, None] * np.array([1.0, 2.0, 2.0])
    rows[1] += np.array([0.0, gap, -gap])
    p, q = (GaussianMixture(w, rows, 3.0) for w in (W, V))
    assert (reductions.renyi_divergence(p, q) is not None) == reduced
    assert (reductions.hockey_stick_divergence(p, q, 1.0) is not None) == reduced


def test_a_cloud_smaller_than_the_noise_is_no_line():
    rows = np.random.default_rng(2).normal(size=(5, 3)) * 1e-12
    p = GaussianMixture(np.full(5, 0.2), rows, 1.0)
    assert reductions.renyi_divergence(p, GaussianMixture.single(rows[0], 1.0)) is None


@pytest.mark.slow
def test_slack_bounds_hold_for_slack_that_matters(monkeypatch):
    """With 0.03 standard deviations allowed beside the line, the bounds still contain every quantity."""
    monkeypatch.setattr(reductions, "_MAX_WIDTH", math.inf)
    monkeypatch.setattr("fastpriv.divergences.reductions.independent_factors._MAX_DISPLACEMENT", 0.05)
    monkeypatch.setattr("fastpriv.divergences.reductions.independent_factors._MAX_RELATIVE_DISPLACEMENT", 1.0)
    rng = np.random.default_rng(11)
    checked = 0
    for _ in range(40):
        size = int(rng.integers(2, 5))
        rows = np.stack([rng.normal(size=size) * rng.choice([0.1, 0.5, 1.0]), np.zeros(size)], axis=1)
        rows += rng.uniform(-1, 1, (size, 2)) * 0.02
        w, v = rng.dirichlet(np.ones(size), 2)
        p, q = GaussianMixture(w, rows, 1.0), GaussianMixture(v, rows + rng.uniform(-1, 1, (size, 2)) * 0.01, 1.0)
        if rng.random() < 0.4:  # a parallel line
            q = q.affine(1.0, [0.0, 0.8])
        found = independent_factors(p, q)
        if found is None or not found[0].displacement:
            continue
        checked += 1
        check_in_the_plane(p, q, 1e-13)
    assert checked >= 10


@pytest.mark.parametrize("distance", [1e4, 1e18, 1e100])
def test_components_any_distance_apart_are_reduced(distance):
    rows = np.array([[0.0, 0.0], [3.0, 4.0]]) * distance
    p, q = (GaussianMixture([w, 1 - w], rows, 1.0) for w in (0.5, 0.25))
    truth = {
        "renyi_divergence": math.log(4 / 3) / 2, "jensen_shannon": 0.033822075568605225,
        "entropy": math.log(4 * math.pi * math.e), "mutual_information": math.log(2.0),
    }
    for name, value in truth.items():
        laws = (p,) if name in ("entropy", "mutual_information") else (p, q)
        check_encloses(getattr(reductions, name)(*laws), value, 1e-11, slack=1e-14)
    total_variation = reductions.hockey_stick_divergence(p, q, 0.0)
    if total_variation is not None:
        check_encloses(total_variation, 0.25, 1e-11, slack=1e-14)
    check_encloses(reductions.renyi_divergence(p, q, 2.0), math.log(4 / 3), 1e-11, slack=1e-14)


# entropy and information


@pytest.mark.slow
def test_entropy_and_information_of_collinear_inputs():
    step = np.array([1.0, 2.0, 2.0])
    for kwargs, k in (({"sigmas": 2.0}, np.full(3, 2.0)), ({"covariances": covariance(3, 5)}, covariance(3, 5))):
        p = GaussianMixture(W, X[:, None] * step, **kwargs)
        with mp.workdps(40):
            law = line(W, X, geometry.mahalanobis(step, 0 * step, k))
            info = geometry.information(law)
            matrix = np.diag(k**2) if k.ndim == 1 else k
            noise = (3 * mp.log(2 * mp.pi * mp.e) + geometry.log_determinant(matrix)) / 2
            check_encloses(reductions.mutual_information(p), info, 1e-12)
            check_encloses(reductions.entropy(p), info + noise, 1e-12)
    tiny = GaussianMixture(W, X[:, None] * step * 1e-9, 3.0)
    want = mutual_information(Pmf(X, W), 1e9)
    check_encloses(reductions.mutual_information(tiny), want.value, 1e-12, slack=1e-13)
    single = GaussianMixture.single([1.0, 2.0], covariance=covariance(2, 1))
    assert reductions.mutual_information(single).upper == 0.0


def test_law_on_the_line_agrees_with_the_line():
    p, q = GaussianMixture(W, X, [1.0, 2.0, 3.0]), GaussianMixture(V, X, [1.0, 2.0, 3.0])
    assert reductions.renyi_divergence(p, q).value == kl_divergence(p, q).value
    check_encloses(reductions.entropy(p), entropy(p).value, 1e-12)


# two normal laws with different covariances


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("d", [2, 5])
def test_two_normal_laws(d, near):
    s, t = covariance(d, 1, 2.0), covariance(d, 2, 2.0)
    m, n = np.random.default_rng(d).normal(size=(2, d))
    if near:
        t, n = s + 1e-7 * t, m + 1e-7 * n
    p = GaussianMixture.single(m, covariance=s)
    for q, k in (
        (GaussianMixture.single(n, covariance=t), t),
        (GaussianMixture([0.5, 0.5], [n, n], covariances=t), t),
        (GaussianMixture.single(n, 2.0), 4.0 * np.eye(d)),
    ):
        for law, other, a, b, x, y in ((p, q, s, k, m, n), (q, p, k, s, n, m)):
            check_encloses(reductions.renyi_divergence(law, other), geometry.gaussian_kl(x, a, y, b), 1e-9)
            for order in (0.01, 0.5, 0.875, 1.125, 2.0, 40.0):
                found, want = reductions.renyi_divergence(law, other, order), geometry.gaussian_renyi(x, a, y, b, order)
                if want == mp.inf:
                    assert (found.value, found.lower, found.kind) == (math.inf, math.inf, "exact")
                else:
                    check_encloses(found, want, 1e-7)
        assert reductions.hockey_stick_divergence(p, q, 1.0).kind == "certified"


def test_the_edge_of_an_infinite_renyi_divergence_is_held():
    """a T + (1 - a) S is singular for a = 2 and S = 2 T; beside this edge the upper bound is infinite."""
    t = np.array([[2.0, 1.0], [1.0, 3.0]])
    q = GaussianMixture.single([0.0, 0.0], covariance=t)
    for s, infinite in ((2 * t, None), (np.nextafter(2 * t, 0.0), None), (1.999 * t, False), (2.001 * t, True)):
        found = reductions.renyi_divergence(GaussianMixture.single([0.0, 0.0], covariance=s), q, 2.0)
        assert (found.lower == math.inf) == (infinite is True)
        assert (found.upper == math.inf) == (infinite is not False)


def test_weights_split_with_an_inexact_sum_still_make_one_law():
    k = covariance(3, 4)
    p = GaussianMixture(np.full(10, 0.1), np.ones((10, 3)), covariances=k)
    q = GaussianMixture.single(np.zeros(3), covariance=k)
    want = geometry.number(geometry.mahalanobis(np.ones(3), np.zeros(3), k)) / 2
    check_encloses(reductions.renyi_divergence(p, q), want, 1e-13)


# the linear algebra


def test_roots_are_enclosed_to_a_rounding():
    for x in (Fraction(2), Fraction(1, 3), Fraction(10) ** 400, Fraction(1, 10**500), Fraction(3**50, 7**40)):
        low, high = exact_linear_algebra.square_root_enclosure((x, x))
        assert Fraction(low) ** 2 <= x <= Fraction(high) ** 2
        assert high <= math.nextafter(low, math.inf)
    assert exact_linear_algebra.square_root_enclosure((Fraction(25, 16), Fraction(25, 16))) == (1.25, 1.25)


@pytest.mark.few(2)
@pytest.mark.parametrize("d", [3, 12, 30])
def test_forms_and_determinants_contain_the_rational_truth(d):
    k = covariance(d, d, 6.0)
    scales = np.ldexp(1.0, np.arange(d) * 3 - 20)
    k = k * scales[:, None] * scales
    u = np.random.default_rng(d).normal(size=d)
    low, high = exact_linear_algebra.inverse_quadratic_form([Fraction(x) for x in u.tolist()], k)
    truth = geometry.mahalanobis(u, 0 * u, k)
    assert low <= truth <= high
    assert high - low < truth * Fraction(1, 10**20)
    value, error = exact_linear_algebra.log_determinant(k)
    with mp.workdps(40):
        assert abs(geometry.log_determinant(k) - value) <= error < 1e-7
    s = np.exp(u)
    low, high = exact_linear_algebra.inverse_quadratic_form([Fraction(x) for x in u.tolist()], s)
    assert low <= geometry.mahalanobis(u, 0 * u, s) <= high
    assert high - low < low * Fraction(1, 10**40)


def test_what_cannot_be_proved_definite_is_not_reduced():
    d = 32
    k = 1.0 / (np.add.outer(np.arange(d), np.arange(d)) + 1.0)
    assert exact_linear_algebra.least_eigenvalue_bound(k) == 0.0
    assert exact_linear_algebra.inverse_quadratic_form([Fraction(1)] * d, k) is None
    assert exact_linear_algebra.log_determinant(k)[1] == math.inf
    assert exact_linear_algebra.log_determinant(-np.eye(2))[1] == math.inf
    assert exact_linear_algebra.least_eigenvalue_bound(hadamard(4) / 2.0) == 0.0
