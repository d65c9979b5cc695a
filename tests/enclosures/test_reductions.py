"""Mixtures in d dimensions that are one-dimensional in disguise: bounds contain the truth from the exact input."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy.linalg import hadamard

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
)  # fmt: skip
from fastpriv.divergences import reductions
from fastpriv.divergences.reductions import rationals
from fastpriv.divergences.reductions.recognition import factors
from oracles import gaussian_geometry as geometry

EPSILON = np.array([0.0, 0.3, 1.0, 2.5])
W, V = [0.25, 0.5, 0.25], [0.125, 0.375, 0.5]
X = np.array([-2.0, 0.0, 3.0])


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(40):
        yield


def held(estimate, truth, width=None, slack=0.0):
    """Whether the bounds contain the truth and are narrow."""
    assert estimate is not None, "not reduced"
    low, high = np.ravel(estimate.lower), np.ravel(estimate.upper)
    for i, value in enumerate(truth if isinstance(truth, list) else [truth]):
        room = mp.mpf(slack) * abs(mp.mpf(value)) if slack else 0
        assert low[i] - room <= value <= high[i] + room, (i, mp.nstr(value, 20), low[i], high[i], estimate.method)
        if width is not None and value and mp.isfinite(value):
            assert high[i] - low[i] <= width * abs(value), (i, mp.nstr(value, 20), low[i], high[i], estimate.method)


def all_held(p, q, line_p, line_q, width=1e-11):
    """Every quantity of a pair whose truth is that of two laws on the line."""
    held(reductions.kl(p, q, certified=True), geometry.kl(line_p, line_q), width)
    held(reductions.jensen_shannon(p, q, certified=True), geometry.js(line_p, line_q), width)
    for order in (0.25, 3.0):
        found = reductions.renyi(p, q, order, certified=True)
        held(found, geometry.renyi(line_p, line_q, order), width)
    sticks = [geometry.hockey_stick(line_p, line_q, e) for e in EPSILON.tolist()]
    held(reductions.hockey_stick(p, q, EPSILON), sticks, width)
    held(reductions.log_hockey_stick(p, q, EPSILON), [mp.log(x) for x in sticks], width)
    held(reductions.total_variation(p, q), sticks[0], width)


def covariance(d, seed, spread=3.0):
    rng = np.random.default_rng(seed)
    a = np.linalg.qr(rng.normal(size=(d, d)))[0]
    k = a @ np.diag(10 ** rng.uniform(-spread / 2, spread / 2, d)) @ a.T
    return np.tril(k) + np.tril(k, -1).T


def line(weights, positions, square):
    """A law on the line in mpmath; ``square`` is u' K^-1 u for unit steps."""
    with mp.workdps(40):
        s = 1 / mp.sqrt(geometry.number(square))
        return [mp.mpf(w) for w in weights], [mp.mpf(float(x)) for x in positions], [s] * len(weights)


# exactly collinear means


@pytest.mark.parametrize("sigma", [1.0, 0.7])
def test_collinear_isotropic_means(sigma):
    step = np.array([1.0, -2.0, 2.0, 4.0])
    p, q = (GaussianMixture(w, X[:, None] * step + 7.0, sigma) for w in (W, V))
    square = geometry.mahalanobis(step, 0 * step, np.full(4, sigma))
    assert factors(p, q)[0].slack == 0.0
    all_held(p, q, line(W, X, square), line(V, X, square))


def test_collinear_diagonal_and_full_covariances():
    step = np.array([1.0, -2.0, 0.5])
    for kwargs, k in (
        ({"sigmas": [[0.3, 2.0, 5.0]]}, np.array([0.3, 2.0, 5.0])),
        ({"covariances": covariance(3, 1)}, covariance(3, 1)),
    ):
        p, q = (GaussianMixture(w, X[:, None] * step, **kwargs) for w in (W, V))
        square = geometry.mahalanobis(step, 0 * step, k)
        all_held(p, q, line(W, X, square), line(V, X, square))


@pytest.mark.parametrize("power", [-500, -37, 400])
def test_scales_do_not_matter(power):
    scale = 2.0**power
    rows = X[:, None] * np.array([3.0, 4.0]) * scale
    p, q = (GaussianMixture(w, rows, 5.0 * scale) for w in (W, V))
    one, two = (GaussianMixture(w, X, 1.0) for w in (W, V))
    for found, want in (
        (reductions.kl(p, q), kl_divergence(one, two)),
        (reductions.jensen_shannon(p, q), jensen_shannon(one, two)),
        (reductions.hockey_stick(p, q, 1.0), hockey_stick_divergence(one, two, 1.0)),
        (reductions.total_variation(p, q), total_variation(one, two)),
        (reductions.renyi(p, q, 2.0), renyi_divergence(one, two, 2.0)),
    ):
        held(found, want.value, 1e-11, slack=1e-14)
    mixed = np.array([2.0**power, 2.0**-power])
    p, q = (GaussianMixture(w, X[:, None] * [3.0, 4.0] * mixed, mixed[None, :] * 5.0) for w in (W, V))
    held(reductions.kl(p, q), kl_divergence(one, two).value, 1e-11, slack=1e-14)


def test_two_points_in_any_position_are_exact():
    rng = np.random.default_rng(3)
    for d in (2, 7, 40):
        m, n = rng.normal(size=(2, d))
        k = covariance(d, d)
        p = GaussianMixture([0.75, 0.25], [m, n], covariances=k)
        q = GaussianMixture.single(m, covariance=k)
        (found,) = factors(p, q)
        assert found.slack == 0.0
        square = geometry.mahalanobis(m, n, k) if d < 40 else None
        if square is not None:
            all_held(p, q, line([0.75, 0.25], [0, 1], square), line([1.0], [0], square))
        assert reductions.kl(p, q).width < 1e-11


def test_correlated_release_of_two_statistics():
    """The joint release of correlated Gaussians leaks the Mahalanobis distance, not the sum of the parts."""
    k = np.array([[1.0, 0.9], [0.9, 1.0]])
    same, opposite = np.array([1.0, 1.0]), np.array([1.0, -1.0])
    origin = GaussianMixture.single([0.0, 0.0], covariance=k)
    for shift, near in ((same, 2 / 1.9), (opposite, 20.0)):
        p = GaussianMixture.single(shift, covariance=k)
        square = geometry.mahalanobis(shift, 0 * shift, k)
        assert abs(float(square) - near) < 1e-9
        held(reductions.kl(p, origin), geometry.number(square) / 2, 1e-13)
        held(reductions.renyi(p, origin, 3.0), 3 * geometry.number(square) / 2, 1e-13)
        sticks = [geometry.gaussian_delta(square, e) for e in EPSILON.tolist()]
        held(reductions.hockey_stick(p, origin, EPSILON), sticks, 1e-12)
        held(reductions.entropy(p), mp.log(2 * mp.pi * mp.e) + geometry.log_determinant(k) / 2, 1e-13)


def test_normal_laws_of_one_covariance_from_tiny_to_huge_distances():
    rng = np.random.default_rng(5)
    for size in (1e-150, 1e-12, 1e-3, 1.0, 30.0):
        d = 12
        m, n, s = rng.normal(size=d) * size, rng.normal(size=d) * size, rng.uniform(0.5, 2.0, d)
        p, q = GaussianMixture.single(m, s), GaussianMixture.single(n, s)
        square = geometry.mahalanobis(m, n, s)
        with mp.workdps(40):
            held(reductions.kl(p, q), geometry.number(square) / 2, 1e-13)
            width = 1e-12 if size >= 1e-3 else None
            held(reductions.total_variation(p, q), mp.erf(mp.sqrt(geometry.number(square) / 8)), width)
        if size >= 1e-3:
            grid = [0.0, 1.0, 20.0, 300.0]
            truth = [mp.log(geometry.gaussian_delta(square, e)) for e in grid]
            held(reductions.log_hockey_stick(p, q, grid), truth, 1e-11)


# means that miss the line by rounding, or by more


@pytest.mark.parametrize("d", [2, 16, 300])
def test_rotated_means_are_reduced(d):
    rng = np.random.default_rng(d)
    u = rng.normal(size=d)
    u /= np.linalg.norm(u)
    p, q = (GaussianMixture(w, X[:, None] * u + 0.3, 1.0) for w in (W, V))
    (found,) = factors(p, q)
    assert 0.0 < found.slack < 1e-14
    one, two = line(W, X, Fraction(1)), line(V, X, Fraction(1))
    with mp.workdps(40):
        held(reductions.kl(p, q), geometry.kl(one, two), 1e-12, slack=1e-14)
        sticks = [geometry.hockey_stick(one, two, e) for e in (0.0, 0.5)]
        held(reductions.hockey_stick(p, q, [0.0, 0.5]), sticks, 1e-11, slack=1e-14)


def test_rotated_tails_keep_their_digits():
    u = np.array([0.6, 0.8, 0.0])
    p = GaussianMixture(W, (X / 3.0)[:, None] * u, 1.0)
    q = GaussianMixture.single(p.means[1], 1.0)
    assert factors(p, q)[0].slack > 0.0
    one, two = line(W, X / 3.0, Fraction(1)), line([1.0], [0.0], Fraction(1))
    grid = [2.0, 10.0, 30.0]
    truth = [geometry.hockey_stick(one, two, e) for e in grid]
    assert truth[1] < 1e-25
    assert truth[2] < 1e-200
    held(reductions.hockey_stick(p, q, grid), truth, 1e-10, slack=1e-12)
    held(reductions.log_hockey_stick(p, q, grid), [mp.log(x) for x in truth], 1e-11, slack=1e-13)
    far = reductions.log_hockey_stick(p, q, 1000.0)
    assert far.lower > -1e7
    assert far.width < 1e-9 * abs(far.value)


@pytest.mark.parametrize(("gap", "reduced"), [(1e-13, True), (1e-7, False), (1e-3, False), (1.0, False)])
def test_means_beside_the_line(gap, reduced):
    rows = X[:, None] * np.array([1.0, 2.0, 2.0])
    rows[1] += np.array([0.0, gap, -gap])
    p, q = (GaussianMixture(w, rows, 3.0) for w in (W, V))
    assert (reductions.kl(p, q) is not None) == reduced
    assert (reductions.hockey_stick(p, q, 1.0) is not None) == reduced


def test_a_cloud_smaller_than_the_noise_is_no_line():
    rows = np.random.default_rng(2).normal(size=(5, 3)) * 1e-12
    p = GaussianMixture(np.full(5, 0.2), rows, 1.0)
    assert reductions.kl(p, GaussianMixture.single(rows[0], 1.0)) is None


def test_slack_bounds_hold_for_slack_that_matters(monkeypatch):
    """With 0.03 standard deviations allowed beside the line, the bounds still contain every quantity."""
    monkeypatch.setattr("fastpriv.divergences.reductions.lines._SLACK", 0.05)
    monkeypatch.setattr("fastpriv.divergences.reductions.lines._SHARE", 1.0)
    rng = np.random.default_rng(11)
    nodes, mass = np.polynomial.hermite_e.hermegauss(80)
    z = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    mass = np.outer(mass, mass).ravel() / mass.sum() ** 2
    checked = 0
    for _ in range(40):
        size = int(rng.integers(2, 5))
        rows = np.stack([rng.normal(size=size) * rng.choice([0.1, 0.5, 1.0]), np.zeros(size)], axis=1)
        rows += rng.uniform(-1, 1, (size, 2)) * 0.02
        w, v = rng.dirichlet(np.ones(size), 2)
        p, q = GaussianMixture(w, rows, 1.0), GaussianMixture(v, rows + rng.uniform(-1, 1, (size, 2)) * 0.01, 1.0)
        if rng.random() < 0.4:  # a parallel line
            q = q.affine(1.0, [0.0, 0.8])
        found = factors(p, q)
        if found is None or not found[0].slack:
            continue
        checked += 1
        x = (rows[:, None, :] + z).reshape(-1, 2)
        y = (q.means[:, None, :] + z).reshape(-1, 2)
        wp, wq = np.outer(w, mass).ravel(), np.outer(v, mass).ravel()
        lp, lq = p.log_density(x), q.log_density(x)
        middle = [np.logaddexp(law.log_density(t), other.log_density(t)) - math.log(2.0) for law, other, t in
                  ((p, q, x), (q, p, y))]  # fmt: skip
        numbers = [
            (reductions.kl(p, q), wp @ (lp - lq + np.expm1(lq - lp))),
            (reductions.renyi(p, q, 2.5), math.log(wp @ np.exp(1.5 * (lp - lq))) / 1.5),
            (reductions.entropy(p), -wp @ lp),
            (reductions.mutual_information(p), -wp @ lp - math.log(2 * math.pi * math.e)),
        ]
        if len(found) == 1:
            middle_of_both = (wp @ (lp - middle[0]) + wq @ (q.log_density(y) - middle[1])) / 2
            numbers.append((reductions.jensen_shannon(p, q), middle_of_both))
        for estimate, truth in numbers:
            held(estimate, truth, slack=1e-13 / abs(truth))
        if len(found) > 1:
            continue
        sticks = [wp @ np.maximum(0.0, -np.expm1(e + lq - lp)) for e in (0.05, 0.3)]
        held(reductions.hockey_stick(p, q, [0.05, 0.3]), sticks, slack=0.02)
    assert checked >= 10


@pytest.mark.parametrize("form", ["isotropic", "diagonal", "full"])
def test_parallel_lines_add_what_lies_across(form):
    d = 4
    kwargs, k = {
        "isotropic": ({"sigmas": 1.5}, np.full(d, 1.5)),
        "diagonal": ({"sigmas": [[0.5, 1.0, 1.5, 3.0]]}, np.array([0.5, 1.0, 1.5, 3.0])),
        "full": ({"covariances": covariance(d, 9, 1.0)}, covariance(d, 9, 1.0)),
    }[form]
    u, v, zero = np.array([1.0, -0.5, 0.25, 2.0]), np.array([0.5, 1.0, -1.0, 0.25]), np.zeros(d)
    x, y = np.array([0.0, 0.5, 1.0]), np.array([-0.5, 1.0])
    p = GaussianMixture(W, x[:, None] * u + 3.0, **kwargs)
    q = GaussianMixture([0.25, 0.75], y[:, None] * u + v + 3.0, **kwargs)
    single = GaussianMixture([1.0], [v + 3.0], **kwargs)
    along = geometry.mahalanobis(u, zero, k)
    dot = (geometry.mahalanobis(u + v, zero, k) - along - geometry.mahalanobis(v, zero, k)) / 2
    across = geometry.number(geometry.mahalanobis(v, zero, k) - dot**2 / along)
    shift, deviation = geometry.number(dot / along), 1 / mp.sqrt(geometry.number(along))

    def law(weights, positions):
        return [mp.mpf(w) for w in weights], positions, [deviation] * len(weights)

    laws = {
        p: law(W, [mp.mpf(t) for t in x.tolist()]), q: law([0.25, 0.75], [t + shift for t in y.tolist()]),
        single: law([1.0], [shift]),
    }  # fmt: skip
    for one, two in ((p, q), (q, p), (p, single), (single, q), (single, p)):
        if {one, two} == {single, q}:  # on one line
            assert len(factors(one, two)) == 1
            continue
        held(reductions.kl(one, two), geometry.kl(laws[one], laws[two]) + across / 2, 1e-12)
        held(reductions.renyi(one, two, 1.5), geometry.renyi(laws[one], laws[two], 1.5) + 1.5 * across / 2, 1e-12)
        assert reductions.hockey_stick(one, two, 1.0) is None


# coordinates


def test_one_coordinate_with_deviations_of_its_own():
    rng = np.random.default_rng(8)
    d = 50
    means, sigmas = np.tile(rng.normal(size=d), (3, 1)), np.tile(rng.uniform(0.5, 3, d), (3, 1))
    means[:, 17], sigmas[:, 17] = X, [0.5, 1.0, 2.0]
    p, q = GaussianMixture(W, means, sigmas), GaussianMixture(V, means, sigmas)
    one, two = GaussianMixture(W, X, [0.5, 1.0, 2.0]), GaussianMixture(V, X, [0.5, 1.0, 2.0])
    for found, want in (
        (reductions.kl(p, q), kl_divergence(one, two)),
        (reductions.renyi(p, q, 1.5), renyi_divergence(one, two, 1.5)),
        (reductions.jensen_shannon(p, q), jensen_shannon(one, two)),
        (reductions.hockey_stick(p, q, EPSILON), hockey_stick_divergence(one, two, EPSILON)),
    ):
        assert np.allclose(found.value, want.value, rtol=1e-12)
        assert (found.lower <= np.asarray(want.upper)).all()
        assert (found.upper >= np.asarray(want.lower)).all()
    rest = np.delete(sigmas[0], 17)
    noise = mp.fsum(mp.log(2 * mp.pi * mp.e * mp.mpf(s) ** 2) / 2 for s in rest.tolist())
    with mp.workdps(40):
        base = geometry.entropy(([*map(mp.mpf, W)], [*map(mp.mpf, X.tolist())], [*map(mp.mpf, (0.5, 1.0, 2.0))]))
        held(reductions.entropy(p), base + noise, 1e-12)
        inner = mp.fsum(w * mp.log(2 * mp.pi * mp.e * mp.mpf(s) ** 2) / 2 for w, s in zip(W, (0.5, 1, 2), strict=True))
        held(reductions.mutual_information(p), base - inner, 1e-11)


def test_independent_coordinates_add():
    d = 6
    means = np.zeros((3, d))
    means[:, 2] = X
    p = GaussianMixture(W, means, np.full((1, d), 1.5))
    other, wide = means.copy(), np.full((3, d), 1.5)
    other[:, 0], other[:, 4], wide[:, 4] = 1.0, -0.5, 2.0
    q = GaussianMixture(V, other, wide)
    parts = [
        kl_divergence(GaussianMixture(W, X, 1.5), GaussianMixture(V, X, 1.5)).value,
        kl_divergence(GaussianMixture.single(0.0, 1.5), GaussianMixture.single(1.0, 1.5)).value,
        kl_divergence(GaussianMixture.single(0.0, 1.5), GaussianMixture.single(-0.5, 2.0)).value,
    ]
    found = reductions.kl(p, q)
    assert "3 independent factors" in found.method
    held(found, math.fsum(parts), 1e-12, slack=1e-14)
    assert reductions.jensen_shannon(p, q) is None
    assert reductions.hockey_stick(p, q, 1.0) is None
    assert reductions.log_hockey_stick(p, q, 1.0) is None
    assert reductions.total_variation(p, q) is None


def test_diagonal_normal_laws_in_a_thousand_dimensions():
    rng = np.random.default_rng(9)
    d = 1000
    m, n, s, t = rng.normal(size=d), rng.normal(size=d), rng.uniform(1, 2, d), rng.uniform(1, 2, d)
    p, q = GaussianMixture.single(m, s), GaussianMixture.single(n, t)
    with mp.workdps(40):
        columns = [[mp.mpf(x) for x in row] for row in (m.tolist(), s.tolist(), n.tolist(), t.tolist())]
        truth = mp.fsum(
            (a * a / (b * b) - 1 + ((x - y) / b) ** 2 + 2 * mp.log(b / a)) / 2
            for x, a, y, b in zip(*columns, strict=True)
        )
    held(reductions.kl(p, q), truth, 1e-13)
    assert reductions.renyi(p, q, 100.0).value == math.inf
    assert reductions.renyi(p, q, 100.0).kind == "exact"


def product(*laws, seed=0):
    """The d-dimensional law with these independent coordinates or blocks, its components shuffled."""
    shape = [len(law) for law in laws]
    index = [i.ravel() for i in np.indices(shape)]
    w = math.prod(law.weights[i] for law, i in zip(laws, index, strict=True))
    means = [law.means.reshape(len(law), -1)[i] for law, i in zip(laws, index, strict=True)]
    sigmas = [np.broadcast_to(law.sigmas.reshape(len(law), -1), (len(law), law.dimension))[i]
              for law, i in zip(laws, index, strict=True)]  # fmt: skip
    order = np.random.default_rng(seed).permutation(len(w))
    return GaussianMixture(w[order], np.hstack(means)[order], np.hstack(sigmas)[order])


def test_products_add():
    a = GaussianMixture([0.3, 0.7], [0.0, 1.0], 1.0), GaussianMixture([0.6, 0.4], [0.0, 1.5], 1.0)
    b = GaussianMixture([0.1, 0.2, 0.7], [0.0, 1.0, 5.0], [1.0, 2.0, 0.5]), GaussianMixture.single(0.5, 2.0)
    # two coordinates that vary together on a line
    u = np.array([3.0, 4.0])
    c = tuple(GaussianMixture(w, X[:, None] * u, 5.0) for w in (W, V))
    straight = tuple(GaussianMixture(w, X, 1.0) for w in (W, V))
    p, q = (product(*parts) for parts in zip(a, b, c, strict=True))
    for name, line in (("kl", kl_divergence), ("renyi", lambda x, y: renyi_divergence(x, y, 1.5))):
        want = math.fsum(line(*pair).value for pair in (a, b, straight))
        found = reductions.kl(p, q) if name == "kl" else reductions.renyi(p, q, 1.5)
        held(found, want, 1e-11, slack=1e-13)
        assert "3 independent factors" in found.method
    assert reductions.hockey_stick(p, q, 0.1) is None
    assert reductions.jensen_shannon(p, q) is None
    noise = math.log(2 * math.pi * math.e * 25.0) / 2  # of the direction across the line
    want = entropy(a[0]).value + entropy(b[0]).value + entropy(straight[0]).value + math.log(5.0) + noise
    held(reductions.entropy(p), want, 1e-11, slack=1e-13)
    inner = b[0].weights @ (np.log(2 * math.pi * math.e * b[0].sigmas**2) / 2)
    want = (
        mutual_information(Pmf([0.0, 1.0], [0.3, 0.7]), 1.0).value + entropy(b[0]).value - inner
        + mutual_information(Pmf(X, W), 1.0).value
    )  # fmt: skip
    held(reductions.mutual_information(p), want, 1e-11, slack=1e-13)


def test_only_the_factor_that_differs_counts():
    same = GaussianMixture([0.1, 0.2, 0.7], [0.0, 1.0, 5.0], [1.0, 2.0, 0.5])
    one, two = GaussianMixture([0.3, 0.7], [0.0, 1.0], 1.0), GaussianMixture([0.6, 0.4], [0.0, 1.5], 1.0)
    p, q = product(one, same, seed=1), product(two, same, seed=2)
    grid = [0.0, 0.2, 0.5]
    held(reductions.hockey_stick(p, q, grid), hockey_stick_divergence(one, two, grid).value.tolist(), 1e-9, slack=1e-13)
    held(reductions.jensen_shannon(p, q), jensen_shannon(one, two).value, 1e-11, slack=1e-13)
    held(reductions.total_variation(p, q), total_variation(one, two).value, 1e-11, slack=1e-13)
    shuffled = product(one, same, seed=3)
    assert reductions.kl(p, shuffled).upper == 0.0
    weights = p.weights * (1 + 1e-5 * np.sin(np.arange(6)))
    dependent = GaussianMixture(weights / weights.sum(), p.means, p.sigmas)
    assert reductions.kl(dependent, q) is None


@pytest.mark.parametrize("blur", [1e-3, 0.05])
def test_blur_bounds_hold_for_weights_that_matter(blur, monkeypatch):
    """Weights off a product by a few per cent: the bounds still contain every quantity."""
    monkeypatch.setattr("fastpriv.divergences.reductions.recognition._MISS", blur)
    rng = np.random.default_rng(12)
    nodes, mass = np.polynomial.hermite_e.hermegauss(80)
    z = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    mass = np.outer(mass, mass).ravel() / mass.sum() ** 2
    checked = 0
    for _ in range(12):
        one, two, three = (GaussianMixture(rng.dirichlet([5, 5]), rng.normal(size=2), 1.0) for _ in range(3))
        p, q = product(one, three), product(two, three)
        w, v = (law.weights * np.exp(rng.uniform(-1, 1, 4) * blur / 2) for law in (p, q))
        p, q = GaussianMixture(w / w.sum(), p.means, 1.0), GaussianMixture(v / v.sum(), q.means, 1.0)
        found = factors(p, q)
        if found is None or not found[0].blur > blur / 100:
            continue
        checked += 1
        x, y = ((law.means[:, None, :] + z).reshape(-1, 2) for law in (p, q))
        wp, wq = (np.outer(law.weights, mass).ravel() for law in (p, q))
        lp, lq = p.log_density(x), q.log_density(x)
        mx = np.logaddexp(lp, lq) - math.log(2.0)
        my = np.logaddexp(p.log_density(y), q.log_density(y)) - math.log(2.0)
        sticks = [wp @ np.maximum(0.0, -np.expm1(e + lq - lp)) for e in (0.05, 0.3)]
        held(reductions.kl(p, q), wp @ (lp - lq))
        held(reductions.renyi(p, q, 2.5), math.log(wp @ np.exp(1.5 * (lp - lq))) / 1.5)
        held(reductions.entropy(p), -wp @ lp)
        held(reductions.mutual_information(p), -wp @ lp - math.log(2 * math.pi * math.e))
        if len(found) == 1:
            held(reductions.jensen_shannon(p, q), (wp @ (lp - mx) + wq @ (q.log_density(y) - my)) / 2)
            held(reductions.hockey_stick(p, q, [0.05, 0.3]), sticks, slack=0.02)
    assert checked >= 6


# many components, many dimensions


def test_two_thousand_components_in_a_thousand_dimensions():
    rng = np.random.default_rng(4)
    size, d = 2000, 1000
    step = np.zeros(d)
    step[rng.permutation(d)[:900]] = rng.choice([-1.0, 1.0], 900)
    x = rng.integers(-40, 40, size) / 8.0
    w, v = rng.dirichlet(np.ones(size), 2)
    p, q = (GaussianMixture(part, x[:, None] * step, 30.0) for part in (w, v))
    one, two = GaussianMixture(w, x, 1.0), GaussianMixture(v, x, 1.0)
    (found,) = factors(p, q)
    assert 0.0 < found.slack < 1e-14
    want = kl_divergence(one, two)
    held(reductions.kl(p, q), want.value, 1e-9, slack=1e-12)
    sticks = hockey_stick_divergence(one, two, [0.0, 0.1])
    held(reductions.hockey_stick(p, q, [0.0, 0.1]), sticks.value.tolist(), 1e-9, slack=1e-12)


@pytest.mark.parametrize("form", ["isotropic", "diagonal", "full", "deviations"])
def test_general_pairs_are_not_reduced(form):
    rng = np.random.default_rng(6)
    size, d = 40, 5
    means = rng.normal(size=(size, d))
    kwargs = {
        "isotropic": {"sigmas": 1.0}, "diagonal": {"sigmas": rng.uniform(1, 2, (size, d))},
        "full": {"covariances": covariance(d, 3)}, "deviations": {"sigmas": rng.uniform(1, 2, size)},
    }[form]  # fmt: skip
    p = GaussianMixture(np.full(size, 1 / size), means, **kwargs)
    q = GaussianMixture(np.full(size, 1 / size), means + 0.1, **kwargs)
    assert reductions.kl(p, q) is None
    assert reductions.renyi(p, q, 2.0) is None
    assert reductions.jensen_shannon(p, q) is None
    assert reductions.hockey_stick(p, q, 0.5) is None
    assert reductions.entropy(p) is None
    assert reductions.mutual_information(p) is None


def test_equal_laws_in_another_order_and_split():
    rng = np.random.default_rng(7)
    means = rng.normal(size=(6, 4))
    order = [3, 1, 0, 2, 5, 4, 4]
    w = np.array([8, 16, 8, 16, 8, 8]) / 64
    v = w[order].copy()
    v[-2:] = w[4] / 2
    for kwargs in ({"sigmas": 2.0}, {"covariances": covariance(4, 2)}):
        p, q = GaussianMixture(w, means, **kwargs), GaussianMixture(v, means[order], **kwargs)
        for found in (reductions.kl(p, q), reductions.renyi(p, q, 3.0), reductions.jensen_shannon(p, q)):
            assert (found.value, found.upper, found.kind, found.method) == (0.0, 0.0, "exact", "equal laws")
        assert reductions.hockey_stick(p, q, [0.0, 1.0]).upper.tolist() == [0.0, 0.0]
        assert reductions.log_hockey_stick(p, q, [0.0, 1.0]).upper.tolist() == [-math.inf] * 2
        assert reductions.total_variation(p, q).upper == 0.0
        changed = GaussianMixture(np.roll(w, 1), means, **kwargs)
        assert reductions.kl(p, changed) is None


@pytest.mark.parametrize("form", ["isotropic", "diagonal", "full"])
def test_few_components_span_few_dimensions(form):
    rng = np.random.default_rng(21)
    d = 30
    kwargs = {
        "isotropic": {"sigmas": 2.0}, "diagonal": {"sigmas": rng.uniform(1, 2, (1, d))},
        "full": {"covariances": covariance(d, 6)},
    }[form]  # fmt: skip
    p = GaussianMixture([0.25, 0.25, 0.5], rng.normal(size=(3, d)), **kwargs)
    q = GaussianMixture([0.5, 0.5], rng.normal(size=(2, d)), **kwargs)
    (one, two), gap = reductions.subspace(p, q)
    assert (one.dimension, two.dimension, one.form) == (4, 4, "isotropic")
    x = p.sample(50, rng=1)
    directions = np.vstack([p.means[1:], q.means]) - p.means[0]
    k = p.covariances[0] if form == "full" else np.diag(np.broadcast_to(p.sigmas[0], (d,)) ** 2)
    # the log-ratio of the same point: a point of the small space has the same distances from all means
    y = np.linalg.solve(np.array([*one.means[1:], *two.means]), directions @ np.linalg.solve(k, (x - p.means[0]).T)).T
    want = p.log_density(x) - q.log_density(x)
    assert np.allclose(one.log_density(y) - two.log_density(y), want, rtol=1e-9, atol=1e-9)
    single = GaussianMixture.single(p.means[0], **({"covariance": k} if form == "full" else {"sigma": p.sigmas[0]}))
    other = reductions.subspace(single, q)
    line = math.log(2 * math.pi * math.e) / 2
    assert abs(reductions.entropy(single).value - other.entropy - other.laws[0].dimension * line) < 1e-8
    assert gap != 0.0


def test_coordinates_that_agree_drop_out_before_sampling():
    rng = np.random.default_rng(22)
    means, sigmas = rng.normal(size=(40, 6)), rng.uniform(1, 2, (40, 6))
    means[:, [1, 4]], sigmas[:, [1, 4]] = 3.0, 0.5
    p = GaussianMixture(np.full(40, 0.025), means, sigmas)
    q = GaussianMixture(np.full(40, 0.025), means + np.array([1, 0, 0, 0, 0, 0]), sigmas)
    (one, two), gap = reductions.subspace(p, q)
    assert one == p.marginal([0, 2, 3, 5])
    assert two == q.marginal([0, 2, 3, 5])
    assert abs(gap - math.log(2 * math.pi * math.e * 0.25)) < 1e-14
    assert reductions.subspace(one, two) is None
    assert reductions.subspace(p, p.affine(np.eye(6) + 0.1)) is None
    line = GaussianMixture.single(0.0, 1.0)
    assert reductions.subspace(line, line) is None


# entropy and information


def test_entropy_and_information_of_collinear_inputs():
    step = np.array([1.0, 2.0, 2.0])
    for kwargs, k in (({"sigmas": 2.0}, np.full(3, 2.0)), ({"covariances": covariance(3, 5)}, covariance(3, 5))):
        p = GaussianMixture(W, X[:, None] * step, **kwargs)
        with mp.workdps(40):
            law = line(W, X, geometry.mahalanobis(step, 0 * step, k))
            info = geometry.information(law)
            matrix = np.diag(k**2) if k.ndim == 1 else k
            noise = (3 * mp.log(2 * mp.pi * mp.e) + geometry.log_determinant(matrix)) / 2
            held(reductions.mutual_information(p), info, 1e-12)
            held(reductions.entropy(p), info + noise, 1e-12)
    tiny = GaussianMixture(W, X[:, None] * step * 1e-9, 3.0)
    want = mutual_information(Pmf(X, W), 1e9)
    held(reductions.mutual_information(tiny), want.value, 1e-12, slack=1e-13)
    single = GaussianMixture.single([1.0, 2.0], covariance=covariance(2, 1))
    assert reductions.mutual_information(single).upper == 0.0


def test_law_on_the_line_agrees_with_the_line():
    p, q = GaussianMixture(W, X, [1.0, 2.0, 3.0]), GaussianMixture(V, X, [1.0, 2.0, 3.0])
    assert reductions.kl(p, q).value == kl_divergence(p, q).value
    held(reductions.entropy(p), entropy(p).value, 1e-12)


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
            held(reductions.kl(law, other), geometry.gaussian_kl(x, a, y, b), 1e-9)
            for order in (0.01, 0.5, 0.875, 1.125, 2.0, 40.0):
                found, want = reductions.renyi(law, other, order), geometry.gaussian_renyi(x, a, y, b, order)
                if want == mp.inf:
                    assert (found.value, found.lower, found.kind) == (math.inf, math.inf, "exact")
                else:
                    held(found, want, 1e-7)
        assert reductions.hockey_stick(p, q, 1.0) is None


def test_the_edge_of_an_infinite_renyi_divergence_is_exact():
    """a T + (1 - a) S is singular for a = 2 and S = 2 T: a rank decided in whole numbers."""
    t = np.array([[2.0, 1.0], [1.0, 3.0]])
    q = GaussianMixture.single([0.0, 0.0], covariance=t)
    for s, infinite in ((2 * t, True), (np.nextafter(2 * t, 0.0), False), (np.nextafter(2 * t, 9.0), True)):
        found = reductions.renyi(GaussianMixture.single([0.0, 0.0], covariance=s), q, 2.0)
        assert (found.lower == math.inf) == infinite


def test_weights_split_with_an_inexact_sum_still_make_one_law():
    k = covariance(3, 4)
    p = GaussianMixture(np.full(10, 0.1), np.ones((10, 3)), covariances=k)
    q = GaussianMixture.single(np.zeros(3), covariance=k)
    want = geometry.number(geometry.mahalanobis(np.ones(3), np.zeros(3), k)) / 2
    held(reductions.kl(p, q), want, 1e-13)


# the linear algebra


def test_roots_are_enclosed_to_a_rounding():
    for x in (Fraction(2), Fraction(1, 3), Fraction(10) ** 400, Fraction(1, 10**500), Fraction(3**50, 7**40)):
        low, high = rationals.root((x, x))
        assert Fraction(low) ** 2 <= x <= Fraction(high) ** 2
        assert high <= math.nextafter(low, math.inf)
    assert rationals.root((Fraction(25, 16), Fraction(25, 16))) == (1.25, 1.25)


@pytest.mark.parametrize("d", [3, 12, 30])
def test_forms_and_determinants_contain_the_rational_truth(d):
    k = covariance(d, d, 6.0)
    scales = np.ldexp(1.0, np.arange(d) * 3 - 20)
    k = k * scales[:, None] * scales
    u = np.random.default_rng(d).normal(size=d)
    low, high = rationals.matrix_form([Fraction(x) for x in u.tolist()], k)
    truth = geometry.mahalanobis(u, 0 * u, k)
    assert low <= truth <= high
    assert high - low < truth * Fraction(1, 10**20)
    value, error = rationals.log_determinant(k)
    with mp.workdps(40):
        assert abs(geometry.log_determinant(k) - value) <= error < 1e-7
    s = np.exp(u)
    low, high = rationals.diagonal_form([Fraction(x) for x in u.tolist()], s)
    assert low <= geometry.mahalanobis(u, 0 * u, s) <= high
    assert high - low < low * Fraction(1, 10**40)


def test_what_cannot_be_proved_definite_is_not_reduced():
    d = 32
    k = 1.0 / (np.add.outer(np.arange(d), np.arange(d)) + 1.0)
    assert rationals.least_eigenvalue(k) == 0.0
    assert rationals.matrix_form([Fraction(1)] * d, k) is None
    assert rationals.log_determinant(k)[1] == math.inf
    assert rationals.log_determinant(-np.eye(2))[1] == math.inf
    assert rationals.least_eigenvalue(hadamard(4) / 2.0) == 0.0
