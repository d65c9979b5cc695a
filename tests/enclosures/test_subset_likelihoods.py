"""Likelihoods over subsets: noisy batch gradients, and means known by inner products, beside densities in mpmath."""

import math

import numpy as np
import pytest
from mpmath import mp

from fastpriv import BatchGradient, SubsetLikelihood, posterior
from fastpriv.mechanisms.batch_gradient import _rounding_count, _row_products
from oracles.subsets import DIGITS, gaussian_exponents, products


def pool(records=9, width=4, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(records, width)), rng.integers(0, classes, records), rng.normal(size=(classes, width + 1))


def logs_of(likelihood):
    """Exact sums of what it stores, in lexicographic order."""
    from oracles.subsets import exponents

    with mp.workdps(DIGITS):
        return [mp.mpf(likelihood.constant) + x
                for _, x in exponents(likelihood.linear, likelihood.pairwise, likelihood.members)]  # fmt: skip


@pytest.mark.parametrize("sigma", [1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("size", [1, 3, 5])
def test_batch_gradients_have_the_likelihood_of_their_density(size, sigma):
    step = BatchGradient.softmax_regression(*pool(), size, sigma)
    release = step.sample(range(size), rng=7)
    likelihood = step.column(release)
    truth = list(gaussian_exponents(products(step.errors, step.features), release.ravel().tolist(), size, sigma))
    assert max(abs(x - y) for x, y in zip(logs_of(likelihood), truth, strict=True)) <= likelihood.error
    assert likelihood.error <= 1e-13 * (1 + max(abs(np.array(likelihood.linear))) + abs(likelihood.constant))
    found = posterior(likelihood)
    with mp.workdps(DIGITS):
        evidence = mp.log(mp.fsum(mp.exp(x) for x in truth) / len(truth))
        assert found.log_evidence.lower <= evidence <= found.log_evidence.upper
    flat = step.column(release.ravel())
    assert flat == likelihood


@pytest.mark.parametrize("scale", [1e-40, 1e-3, 1.0, 1e40])
@pytest.mark.parametrize("width", [1, 2, 65, 3000])
def test_inner_products_are_right_to_few_roundings(width, scale):
    rng = np.random.default_rng(width)
    a = scale * rng.normal(size=(4, width)) * 10.0 ** rng.uniform(-9, 0, (4, width))
    b = rng.normal(size=(3, width))
    b[0], a[1] = 1.0, 0.0
    a[2, ::2] = -a[2, 1::2] if width % 2 == 0 else a[2, ::2]  # sums that cancel
    found = _row_products(a, b)
    with mp.workdps(DIGITS):
        truth = [[mp.fdot(x.tolist(), y.tolist()) for y in b] for x in a]
    wrong = np.array([[abs(f - t) for f, t in zip(*rows, strict=True)] for rows in zip(found, truth, strict=True)])
    assert (wrong <= 2.0**-53 * _rounding_count(width) * np.outer(*(np.linalg.norm(x, axis=1) for x in (a, b)))).all()


def test_the_gradients_are_those_of_the_loss():
    records, labels, weights = pool()
    step = BatchGradient.softmax_regression(records, labels, weights, 2, 1.0)

    def loss(w):
        scores = np.concatenate([records, np.ones((9, 1))], axis=1)[[3, 6]] @ w.T
        return np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[[0, 1], labels[[3, 6]]])

    slope = np.zeros_like(weights)
    for place in np.ndindex(weights.shape):
        change = np.zeros_like(weights)
        change[place] = 1e-5
        slope[place] = (loss(weights + change) - loss(weights - change)) / 2e-5
    np.testing.assert_allclose(step.gradient([3, 6]), slope, atol=1e-9)
    np.testing.assert_allclose(step.gradient([6, 3]), step.gradient([3, 6]))


def test_a_sure_record_has_a_small_error_and_not_zero():
    step = BatchGradient.softmax_regression([[1.0]], [0], [[40.0], [0.0]], 1, 1.0)
    assert step.errors[0, 0] == -step.errors[0, 1] == pytest.approx(-math.exp(-40.0))


def test_clipped_gradients_are_no_longer_than_that():
    records, labels, weights = pool()
    plain = BatchGradient.softmax_regression(records, labels, weights[:, :4], 1, 1.0)
    clipped = BatchGradient.softmax_regression(records, labels, weights[:, :4], 1, 1.0, clip=0.5)
    for i in range(9):
        length = np.linalg.norm(plain.gradient([i]))
        np.testing.assert_allclose(clipped.gradient([i]), plain.gradient([i]) * min(1.0, 0.5 / length), rtol=1e-14)
    assert np.sqrt(np.diagonal(clipped.gram())).max() <= 0.5 * (1 + 1e-14)


def test_three_ways_to_one_likelihood():
    rng = np.random.default_rng(4)
    gradients = rng.normal(size=(8, 6))
    step = BatchGradient.from_gradients(gradients, 3, 0.4)
    release = step.sample([0, 4, 5], rng=1)
    column = step.column(release)
    gram = SubsetLikelihood.from_gram(gradients @ release.ravel(), gradients @ gradients.T, 3, sigma=0.4)
    np.testing.assert_allclose(gram.linear, column.linear, rtol=1e-12)
    np.testing.assert_allclose(np.triu(gram.pairwise, 1), np.triu(column.pairwise, 1), rtol=1e-12)
    assert 0 < gram.error < 1e-12
    one, two = posterior(column), posterior(gram)
    assert one.map_index == two.map_index
    assert float(one.entropy) == pytest.approx(float(two.entropy), rel=1e-11)


def test_samples_have_the_mean_and_the_noise():
    step = BatchGradient.softmax_regression(*pool(), 2, 0.25)
    noise = np.array([step.sample([1, 8], rng=i) for i in range(400)]) - step.gradient([1, 8])
    assert abs(noise.mean()) < 5 * 0.25 / math.sqrt(noise.size)
    assert noise.std() == pytest.approx(0.25, rel=0.05)
    np.testing.assert_array_equal(step.sample([1, 8], rng=3), step.sample([8, 1], rng=3))


def test_the_true_batch_stands_out_as_the_noise_falls():
    records, labels, weights = pool(30)
    bits = []
    for sigma in (10.0, 0.3, 0.01):
        step = BatchGradient.softmax_regression(records, labels, weights, 3, sigma)
        found = posterior(step.column(step.sample([2, 11, 23], rng=5)))
        bits.append(float(found.entropy.to("bits")))
    assert bits == sorted(bits, reverse=True)
    assert found.map_index == (2, 11, 23)
    assert bits[0] == pytest.approx(math.log2(math.comb(30, 3)), rel=1e-2)
