"""Log densities and draws of mixtures in d dimensions: against 80 digits, over harsh weights, scales and distances."""

import math
import tracemalloc

import mpmath
import numpy as np
import pytest

from fastpriv import GaussianMixture
from oracles import mixture_points as oracle

ULPS = 2  # of the largest logarithm met on the way, times the condition number in the full form


def spread(rng, k, low, high):
    """Numbers over decades, the ends among them."""
    return 10.0 ** np.concatenate([[low, high], rng.uniform(low, high, k)])[:k]


def correlations(rng, k, d, least):
    """Matrices of ones on the diagonal with a least eigenvalue of about ``least``."""
    out = np.empty((k, d, d))
    for i in range(k):
        turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
        matrix = (turn * np.geomspace(1.0, least, d)) @ turn.T
        root = np.sqrt(np.diag(matrix))
        out[i] = matrix / root / root[:, None]
    return (out + out.swapaxes(1, 2)) / 2


def weights(rng, k, low):
    w = spread(rng, k, low, -1)
    w[-1] = 0.0
    w[-1] = 1.0 - w.sum()
    return w


def families():
    rng = np.random.default_rng(20)
    for k, d in ((1, 2), (4, 1), (3, 2), (5, 3), (4, 6)):
        w = rng.dirichlet(np.ones(k))
        yield f"plain {k} {d}", w, rng.normal(0, 3, (k, d)), rng.uniform(0.5, 2, (k, d)), 1e-3
        rare = weights(rng, k, -300) if k > 1 else w
        yield f"rare {k} {d}", rare, rng.normal(0, 3, (k, d)), rng.uniform(0.5, 2, (k, d)), 1e-6
        far = 1e8 * rng.permutation(k)[:, None] + rng.normal(size=(k, d))
        yield f"far {k} {d}", w, far, rng.uniform(0.5, 2, (k, d)), 1e-3
        scales = spread(rng, k * d, -149, 149).reshape(k, d)
        yield f"scales {k} {d}", w, scales * rng.normal(size=(k, d)), scales, 1e-2
        yield f"singular {k} {d}", w, rng.normal(size=(k, d)), rng.uniform(0.5, 2, (k, d)), 1e-12


CASES = list(families())


def points(rng, means, sigmas):
    k, d = means.shape
    near = means[rng.integers(k, size=6)] + sigmas[rng.integers(k, size=6)] * rng.normal(size=(6, d))
    return np.concatenate([means[:2], near, [np.zeros(d), np.full(d, 1e10), np.full(d, -1e160)]])


def check(law, x, mean_rows, matrices, condition):
    got = law.log_density(x)
    worst = (0.0, None)
    for place, value in zip(x, got, strict=True):
        want = oracle.log_density(law.weights, mean_rows, matrices, place)
        if want < -mpmath.mpf(10) ** 306:
            assert value == -math.inf or value < -1e306, (place, value, want)
            continue
        with mpmath.workdps(30):
            scales = max(abs(oracle.term(w, m, k, m)) for w, m, k in zip(law.weights, mean_rows, matrices, strict=True))
            size = float(abs(want) + scales + 1)
            error = float(abs(want - mpmath.mpf(float(value)))) / size
        if error > worst[0]:
            worst = error, (place, value, want)
    bound = ULPS * 2.0**-52 * condition
    assert worst[0] <= bound, worst


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "w", "m", "s", "least"), CASES, ids=[case[0] for case in CASES])
def test_log_densities(name, w, m, s, least):
    rng = np.random.default_rng(len(name))
    x = points(rng, m, s)
    d = m.shape[1]
    for sigmas in (s, s[:, 0], s[:, :1], s[:1], float(s[0, 0])):
        law = GaussianMixture(w, m, sigmas)
        rows = np.broadcast_to(np.reshape(sigmas, (-1, 1)) if np.ndim(sigmas) < 2 else sigmas, (len(w), d))
        check(law, x, m, [oracle.diagonal(row) for row in rows], 1.0)
    if d == 1:
        return
    matrices = correlations(rng, len(w), d, least) * s[:, :, None] * s[:, None, :]
    matrices = (matrices + matrices.swapaxes(1, 2)) / 2
    for given in (matrices, matrices[0]):
        law = GaussianMixture(w, m, covariances=given)
        assert law.form == "full"
        check(law, x, m, np.broadcast_to(given, (len(w), d, d)), 1 / least)


def test_sigmas_at_both_ends_of_the_range():
    law = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1e300, -1e300]], [[1e-300, 1e300], [1e300, 1e-300]])
    x = np.array([[0.0, 0.0], [1e-300, 1e300], [1e300, -1e300], [-1e300, -1e300], [1e-310, 0.0]])
    check(law, x, law.means, [oracle.diagonal(row) for row in law.sigmas], 1.0)


def test_points_out_of_reach_have_density_zero():
    line = GaussianMixture([1e-300, 1.0], [0.0, 1.0], 1e-200)
    assert line.log_density([1e10, -1e300, 1.7e308]).tolist() == [-math.inf] * 3
    full = GaussianMixture.single([0.0, 0.0], covariance=[[1e-300, 0.5], [0.5, 1e300]])
    assert full.log_density([[1e200, 1e300], [1e10, -1e10], [1e308, -1e308]]).tolist() == [-math.inf] * 3


@pytest.mark.parametrize(("k", "d"), [(1, 1), (3000, 1), (700, 40), (40, 70), (2, 300)])
def test_blocks_do_not_show(k, d):
    rng = np.random.default_rng(k + d)
    m, s = rng.normal(size=(k, d)), rng.uniform(0.8, 1.2, (k, d))
    x = rng.normal(size=(300, d))
    laws = [GaussianMixture(np.full(k, 1 / k), m, s)]
    if d > 1:
        some = min(k, 20)
        shift = 0.3 * rng.normal(size=(some, d, 1))
        stack = np.eye(d) + shift * shift.swapaxes(1, 2)
        laws.append(GaussianMixture(np.full(some, 1 / some), m[:some], covariances=stack))
    for law in laws:
        at_once = law.log_density(x)
        one_by_one = [law.log_density(place.reshape(1, d))[0] for place in x[::30]]
        np.testing.assert_array_equal(at_once[::30], one_by_one)


def test_threads_and_blocks_change_no_bit(monkeypatch):
    rng = np.random.default_rng(30)
    law = GaussianMixture(np.full(5, 0.2), rng.normal(size=(5, 7)), rng.uniform(0.5, 2.0, (5, 7)))
    x = rng.normal(size=(5000, 7))
    want = law.log_density(x)
    monkeypatch.setattr("fastpriv.distributions.packed._THREAD_NUMBERS", 1000)
    monkeypatch.setattr("fastpriv.distributions.packed._BLOCK_NUMBERS", 300)
    for n_jobs in (1, 2, None):
        np.testing.assert_array_equal(law.log_density(x, n_jobs=n_jobs), want)


def test_memory_does_not_grow_with_the_points():
    law = GaussianMixture(np.full(50, 0.02), np.random.default_rng(31).normal(size=(50, 4)), 1.0)
    x = np.zeros((500_000, 4))
    law.log_density(x[:10])
    tracemalloc.start()
    law.log_density(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < x.nbytes + len(x) * 8 + 3 * 2**20  # the checked points, the answer and one block


def forms():
    rng = np.random.default_rng(5)
    w = [0.2, 0.5, 0.3]
    m = np.array([[0.0, 1.0, -1.0], [3.0, 0.0, 2.0], [-2.0, 4.0, 0.5]])
    s = rng.uniform(0.5, 2, (3, 3))
    a = rng.normal(size=(3, 3, 3))
    stack = a @ a.swapaxes(1, 2) + 0.1 * np.eye(3)
    yield GaussianMixture(w, m[:, 0], s[:, 0])
    yield GaussianMixture(w, m, s[:, 0])
    yield GaussianMixture(w, m, s[:1])
    yield GaussianMixture(w, m, s)
    yield GaussianMixture(w, m, covariances=stack)
    yield GaussianMixture(w, m, covariances=stack[0])
    yield GaussianMixture(w, m * 1e100, s * [1e100, 1e-100, 1.0])
    yield GaussianMixture([1e-300, 1.0], [[0.0, 0.0], [1e8, 1e8]], 1.0)


@pytest.mark.parametrize("law", list(forms()), ids=lambda law: law.form)
def test_draws_have_the_moments_of_the_law(law):
    """Means, variances and products within 5 standard errors, in coordinates of unit variance."""
    n, k, d = 200_000, len(law), law.dimension
    x = law.sample(n, rng=7).reshape(n, d)
    m = law.means.reshape(k, d)
    if law.covariances is None:
        square = np.broadcast_to(law.sigmas.reshape(k, -1) ** 2, (k, d))
        each = square[:, :, None] * np.eye(d)
    else:
        each = np.broadcast_to(law.covariances, (k, d, d))
    centre = law.weights @ m
    off = m - centre
    with np.errstate(under="ignore"):
        total = np.einsum("k,kij->ij", law.weights, each + off[:, :, None] * off[:, None, :])
    unit = np.sqrt(np.diag(total))
    z = (x - centre) / unit
    assert np.abs(z.mean(axis=0)).max() < 5 / math.sqrt(n)
    products = z[:, :, None] * z[:, None, :]
    error = np.abs(products.mean(axis=0) - total / unit / unit[:, None])
    assert (error < 5 * products.std(axis=0) / math.sqrt(n) + 1e-12).all()


def test_draws_repeat_and_follow_their_source():
    law = next(law for law in forms() if law.form == "full")
    first = law.sample(1000, rng=3)
    assert first.tobytes() == law.sample(1000, rng=3).tobytes()
    assert first.tobytes() == law.sample(1000, rng=np.random.SeedSequence(3)).tobytes()
    assert first.tobytes() == law.sample(1000, rng=np.random.default_rng(3)).tobytes()
    source = np.random.default_rng(3)
    assert law.sample(1000, rng=source).tobytes() != law.sample(1000, rng=source).tobytes()
    assert law.sample(5).shape == (5, 3)
    assert law.sample(0, rng=1).shape == (0, 3)
    assert GaussianMixture.single(0.0, 1.0).sample(4, rng=1).shape == (4,)


def test_draws_fall_on_the_density():
    """The mean of q(x)/p(x) over draws of p is 1: both methods speak of one law."""
    rng = np.random.default_rng(8)
    a = rng.normal(size=(4, 5, 5))
    p = GaussianMixture([0.1, 0.2, 0.3, 0.4], rng.normal(size=(4, 5)), covariances=a @ a.swapaxes(1, 2) + np.eye(5))
    q = GaussianMixture(p.weights[::-1], p.means, covariances=p.covariances)
    x = p.sample(100_000, rng=9)
    ratio = np.exp(q.log_density(x) - p.log_density(x))
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / math.sqrt(len(ratio))
