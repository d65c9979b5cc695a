"""Affine images and marginals of mixtures: densities, moments and forms go with them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastpriv import GaussianMixture


def law(seed, form, k, d):
    rng = np.random.default_rng(seed)
    w, m = rng.dirichlet(np.ones(k)), rng.normal(0, 3, (k, d))
    if form == "full":
        a = rng.normal(size=(k, d, d))
        return GaussianMixture(w, m, covariances=a @ a.swapaxes(1, 2) + 0.1 * np.eye(d))
    if form == "shared":
        a = rng.normal(size=(d, d))
        return GaussianMixture(w, m, covariances=a @ a.T + 0.1 * np.eye(d))
    return GaussianMixture(w, m, rng.uniform(0.3, 3, {"isotropic": k, "diagonal": (k, d)}[form]))


laws = st.builds(
    law, st.integers(0, 10**6), st.sampled_from(["isotropic", "diagonal", "full", "shared"]), st.integers(1, 4),
    st.integers(2, 5),
)


def covariances(p):
    k, d = len(p), p.dimension
    if p.covariances is not None:
        return np.broadcast_to(p.covariances, (k, d, d))
    return np.broadcast_to(p.sigmas.reshape(k, -1), (k, d))[:, :, None] ** 2 * np.eye(d)


@given(laws, st.integers(0, 10**6))
def test_densities_go_with_invertible_maps(p, seed):
    rng = np.random.default_rng(seed)
    d = p.dimension
    x = p.sample(20, rng=seed)
    shift = rng.normal(size=d)
    square = rng.normal(size=(d, d)) + 3 * np.eye(d)
    for matrix in (square, np.diag(rng.uniform(0.5, 2, d)), rng.uniform(-2, -0.5, d), -3.0):
        full = np.diag(np.broadcast_to(matrix, (d,))) if np.ndim(matrix) < 2 else matrix
        q = p.affine(matrix, shift)
        want = p.log_density(x) - np.linalg.slogdet(full)[1]
        np.testing.assert_allclose(q.log_density(x @ full.T + shift), want, rtol=1e-9, atol=1e-9)
    assert p.affine(-3.0).form == p.form
    assert p.affine(1.0) == p


@given(laws, st.integers(0, 10**6))
def test_moments_go_with_maps_onto_fewer_dimensions(p, seed):
    rng = np.random.default_rng(seed)
    for rows in range(1, p.dimension + 1):
        matrix = rng.normal(size=(rows, p.dimension))
        q = p.affine(matrix, 2.0)
        assert q.dimension == rows
        np.testing.assert_allclose(q.means.reshape(len(q), rows), p.means @ matrix.T + 2.0, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(covariances(q), matrix @ covariances(p) @ matrix.T, rtol=1e-10, atol=1e-10)
        assert q.shared or not p.shared


@given(laws, st.data())
def test_marginals_are_images(p, data):
    index = data.draw(st.permutations(range(p.dimension)))[: data.draw(st.integers(1, p.dimension))]
    q, image = p.marginal(index), p.affine(np.eye(p.dimension)[index])
    assert q.dimension == len(index)
    assert q.means.tolist() == image.means.tolist()
    np.testing.assert_allclose(covariances(q), covariances(image), rtol=1e-12, atol=1e-12)
    x = q.sample(5, rng=1)
    np.testing.assert_allclose(q.log_density(x), image.log_density(x), rtol=1e-9, atol=1e-9)
    assert p.marginal(range(p.dimension)) == p
    assert p.marginal(index[0]).form == "univariate"


def test_images_at_the_ends_of_the_range():
    p = GaussianMixture([0.5, 0.5], [[0.0, 1e250], [1e-250, 0.0]], [[1e-250, 1e250]])
    q = p.affine([1e250, 1e-250])
    np.testing.assert_allclose(q.means, [[0.0, 1.0], [1.0, 0.0]], rtol=1e-15)
    np.testing.assert_allclose(q.sigmas.reshape(2, -1), 1.0, rtol=1e-15)
    line = p.affine([[1e300, 1e-200]])
    np.testing.assert_allclose(line.sigmas, 2**0.5 * 1e50, rtol=1e-15)
