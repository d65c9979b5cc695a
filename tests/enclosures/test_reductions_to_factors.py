"""Mixtures with independent coordinates, many components, fewer dimensions: bounds contain the truth."""

import math

import mpmath as mp
import numpy as np
import pytest

from enclosures.reduced import EPSILON, V, W, X, check_encloses, covariance
from fastpriv import (
    GaussianMixture,
    hockey_stick_divergence,
    jensen_shannon,
    kl_divergence,
    renyi_divergence,
)
from fastpriv.divergences.reductions import factored_quantities as reductions
from fastpriv.divergences.reductions.independent_factors import independent_factors
from fastpriv.divergences.reductions.subspaces import subspace
from oracles import gaussian_geometry as geometry


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(40):
        yield


# coordinates


def test_one_coordinate_with_deviations_of_its_own():
    rng = np.random.default_rng(8)
    d = 50
    means, sigmas = np.tile(rng.normal(size=d), (3, 1)), np.tile(rng.uniform(0.5, 3, d), (3, 1))
    means[:, 17], sigmas[:, 17] = X, [0.5, 1.0, 2.0]
    p, q = GaussianMixture(W, means, sigmas), GaussianMixture(V, means, sigmas)
    one, two = GaussianMixture(W, X, [0.5, 1.0, 2.0]), GaussianMixture(V, X, [0.5, 1.0, 2.0])
    for found, want in (
        (reductions.renyi_divergence(p, q), kl_divergence(one, two)),
        (reductions.renyi_divergence(p, q, 1.5), renyi_divergence(one, two, 1.5)),
        (reductions.jensen_shannon(p, q), jensen_shannon(one, two)),
        (reductions.hockey_stick_divergence(p, q, EPSILON), hockey_stick_divergence(one, two, EPSILON)),
    ):
        assert np.allclose(found.value, want.value, rtol=1e-12)
        assert (found.lower <= np.asarray(want.upper)).all()
        assert (found.upper >= np.asarray(want.lower)).all()
    rest = np.delete(sigmas[0], 17)
    noise = mp.fsum(mp.log(2 * mp.pi * mp.e * mp.mpf(s) ** 2) / 2 for s in rest.tolist())
    with mp.workdps(40):
        base = geometry.entropy(([*map(mp.mpf, W)], [*map(mp.mpf, X.tolist())], [*map(mp.mpf, (0.5, 1.0, 2.0))]))
        check_encloses(reductions.entropy(p), base + noise, 1e-12)
        inner = mp.fsum(w * mp.log(2 * mp.pi * mp.e * mp.mpf(s) ** 2) / 2 for w, s in zip(W, (0.5, 1, 2), strict=True))
        check_encloses(reductions.mutual_information(p), base - inner, 1e-11)


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
    found = reductions.renyi_divergence(p, q)
    assert "3 independent one-dimensional factors" in found.method
    check_encloses(found, math.fsum(parts), 1e-12, slack=1e-14)
    assert reductions.jensen_shannon(p, q) is None
    assert reductions.hockey_stick_divergence(p, q, 1.0).kind == "certified"
    assert reductions.hockey_stick_divergence(p, q, 1.0, logs=True).kind == "certified"
    assert reductions.hockey_stick_divergence(p, q, 0.0).kind == "certified"


@pytest.mark.slow
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
    check_encloses(reductions.renyi_divergence(p, q), truth, 1e-13)
    assert reductions.renyi_divergence(p, q, 100.0).value == math.inf
    assert reductions.renyi_divergence(p, q, 100.0).kind == "exact"


# many components, many dimensions


@pytest.mark.slow
def test_two_thousand_components_in_a_thousand_dimensions():
    rng = np.random.default_rng(4)
    size, d = 2000, 1000
    step = np.zeros(d)
    step[rng.permutation(d)[:900]] = rng.choice([-1.0, 1.0], 900)
    x = rng.integers(-40, 40, size) / 8.0
    w, v = rng.dirichlet(np.ones(size), 2)
    p, q = (GaussianMixture(part, x[:, None] * step, 30.0) for part in (w, v))
    one, two = GaussianMixture(w, x, 1.0), GaussianMixture(v, x, 1.0)
    (found,) = independent_factors(p, q)
    assert 0.0 < found.displacement < 1e-14
    want = kl_divergence(one, two)
    check_encloses(reductions.renyi_divergence(p, q), want.value, 1e-9, slack=1e-12)
    sticks = hockey_stick_divergence(one, two, [0.0, 0.1])
    check_encloses(reductions.hockey_stick_divergence(p, q, [0.0, 0.1]), sticks.value.tolist(), 1e-9, slack=1e-12)


@pytest.mark.parametrize("form", ["isotropic", "diagonal", "full", "deviations"])
def test_general_pairs_are_not_reduced(form):
    rng = np.random.default_rng(6)
    size, d = 40, 5
    means = rng.normal(size=(size, d))
    kwargs = {
        "isotropic": {"sigmas": 1.0}, "diagonal": {"sigmas": rng.uniform(1, 2, (size, d))},
        "full": {"covariances": covariance(d, 3)}, "deviations": {"sigmas": rng.uniform(1, 2, size)},
    }[form]
    p = GaussianMixture(np.full(size, 1 / size), means, **kwargs)
    q = GaussianMixture(np.full(size, 1 / size), means + 0.1, **kwargs)
    assert reductions.renyi_divergence(p, q) is None
    assert reductions.renyi_divergence(p, q, 2.0) is None
    assert reductions.jensen_shannon(p, q) is None
    assert reductions.hockey_stick_divergence(p, q, 0.5) is None
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
        divergences = (
            reductions.renyi_divergence(p, q), reductions.renyi_divergence(p, q, 3.0), reductions.jensen_shannon(p, q),
        )
        for found in divergences:
            assert (found.value, found.upper, found.kind, found.method) == (0.0, 0.0, "exact", "equal distributions")
        assert reductions.hockey_stick_divergence(p, q, [0.0, 1.0]).upper.tolist() == [0.0, 0.0]
        assert reductions.hockey_stick_divergence(p, q, [0.0, 1.0], logs=True).upper.tolist() == [-math.inf] * 2
        assert reductions.hockey_stick_divergence(p, q, 0.0).upper == 0.0
        changed = GaussianMixture(np.roll(w, 1), means, **kwargs)
        assert reductions.renyi_divergence(p, changed) is None


@pytest.mark.parametrize("form", ["isotropic", "diagonal", "full"])
def test_few_components_span_few_dimensions(form):
    rng = np.random.default_rng(21)
    d = 30
    kwargs = {
        "isotropic": {"sigmas": 2.0}, "diagonal": {"sigmas": rng.uniform(1, 2, (1, d))},
        "full": {"covariances": covariance(d, 6)},
    }[form]
    p = GaussianMixture([0.25, 0.25, 0.5], rng.normal(size=(3, d)), **kwargs)
    q = GaussianMixture([0.5, 0.5], rng.normal(size=(2, d)), **kwargs)
    (one, two), gap = subspace(p, q)
    assert (one.dimension, two.dimension, one.form) == (4, 4, "isotropic")
    x = p.sample(50, rng=1)
    directions = np.vstack([p.means[1:], q.means]) - p.means[0]
    k = p.covariances[0] if form == "full" else np.diag(np.broadcast_to(p.sigmas[0], (d,)) ** 2)
    # the log-ratio of the same point: a point of the small space has the same distances from all means
    y = np.linalg.solve(np.array([*one.means[1:], *two.means]), directions @ np.linalg.solve(k, (x - p.means[0]).T)).T
    want = p.log_density(x) - q.log_density(x)
    assert np.allclose(one.log_density(y) - two.log_density(y), want, rtol=1e-9, atol=1e-9)
    single = GaussianMixture.single(p.means[0], **({"covariance": k} if form == "full" else {"sigma": p.sigmas[0]}))
    other = subspace(single, q)
    line = math.log(2 * math.pi * math.e) / 2
    assert abs(reductions.entropy(single).value - other.entropy - other.mixtures[0].dimension * line) < 1e-8
    assert gap != 0.0


def test_coordinates_that_agree_drop_out_before_sampling():
    rng = np.random.default_rng(22)
    means, sigmas = rng.normal(size=(40, 6)), rng.uniform(1, 2, (40, 6))
    means[:, [1, 4]], sigmas[:, [1, 4]] = 3.0, 0.5
    p = GaussianMixture(np.full(40, 0.025), means, sigmas)
    q = GaussianMixture(np.full(40, 0.025), means + np.array([1, 0, 0, 0, 0, 0]), sigmas)
    (one, two), gap = subspace(p, q)
    assert one == p.marginal([0, 2, 3, 5])
    assert two == q.marginal([0, 2, 3, 5])
    assert abs(gap - math.log(2 * math.pi * math.e * 0.25)) < 1e-14
    assert subspace(one, two) is None
    assert subspace(p, p.affine(np.eye(6) + 0.1)) is None
    line = GaussianMixture.single(0.0, 1.0)
    assert subspace(line, line) is None
