"""Likelihoods over subsets: noisy batch gradients beside densities in mpmath."""

import math

import numpy as np
import pytest
from mpmath import mp

from fastpriv import DomainError, posterior
from fastpriv.channels import SubsetLikelihood, subset_of_rank
from fastpriv.errors import ShapeError
from fastpriv.mechanisms import BatchGradient
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
                for _, x in exponents(likelihood.linear, likelihood.pairwise, likelihood.members)]


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


@pytest.mark.parametrize("size", [1, 3])
def test_releases_of_one_batch_add(size):
    records, labels, weights = pool()
    steps = [BatchGradient.softmax_regression(records, labels, f * weights, size, 0.3 * f) for f in (0.1, 1.0, 2.0)]
    releases = [step.sample(range(size), rng=i) for i, step in enumerate(steps)]
    parts = [step.column(release) for step, release in zip(steps, releases, strict=True)]
    both = SubsetLikelihood.combined(parts)
    truth = [sum(one) for one in zip(*(
        gaussian_exponents(products(step.errors, step.features), release.ravel().tolist(), size, step.sigma)
        for step, release in zip(steps, releases, strict=True)
    ), strict=True)]
    found = posterior(both)
    with mp.workdps(DIGITS):
        evidence = mp.log(mp.fsum(mp.exp(x) for x in truth) / len(truth))
        assert found.log_evidence.lower <= evidence <= found.log_evidence.upper
    for subset, true in zip(range(both.size), truth, strict=True):
        members = subset_of_rank(subset, 9, size)
        assert abs(both.log_likelihood(members) - true) <= 1.01 * both.summation_error + 1e-15 * abs(true)
    assert sum(one.error for one in parts) < both.error < 1.5 * sum(one.error for one in parts) + 1e-13
    assert SubsetLikelihood.combined(parts[:1]).error >= parts[0].error
    for wrong, error, text in [
        ([], DomainError, "likelihoods must be SubsetLikelihoods, at least one; got"),
        ([1.0], DomainError, "likelihoods must be SubsetLikelihoods, at least one; got"),
        ([parts[0], SubsetLikelihood([0.0], None, 1)], ShapeError, "likelihoods must be of one pool and number of"),
    ]:
        with pytest.raises(error, match=text):
            SubsetLikelihood.combined(wrong)


def test_single_records_need_no_pairs_and_are_as_with_them():
    rng = np.random.default_rng(8)
    errors, features = rng.normal(size=(40, 3)), rng.normal(size=(40, 5)) * 10.0 ** rng.uniform(-5, 5, (40, 1))
    step = BatchGradient(errors, features, 1, 0.7)
    release = step.sample([3], rng=1)
    likelihood = step.column(release)
    assert likelihood.pairwise.size == 0
    truth = list(gaussian_exponents(products(errors, features), release.ravel().tolist(), 1, 0.7))
    assert max(abs(x - y) for x, y in zip(likelihood.log_likelihood(np.arange(40)[:, None]), truth, strict=True)) <= (
        1.01 * likelihood.error)
    with_pairs = posterior(SubsetLikelihood(likelihood.linear, np.zeros((40, 40)), 1, likelihood.constant))
    alone = posterior(SubsetLikelihood(likelihood.linear, None, 1, likelihood.constant))
    assert alone.to_dict() == with_pairs.to_dict()
    twice = SubsetLikelihood.combined([likelihood, SubsetLikelihood(likelihood.linear, np.zeros((40, 40)), 1)])
    np.testing.assert_array_equal(twice.linear, 2 * likelihood.linear)


def test_a_million_single_records():
    rng = np.random.default_rng(2)
    size = 10**6
    likelihood = SubsetLikelihood(rng.normal(size=size), None, 1)
    found = posterior(likelihood)
    law = np.exp(likelihood.linear)
    law /= law.sum()
    assert found.map_index == (int(np.argmax(law)),)
    assert float(found.vulnerability) == pytest.approx(law.max(), rel=1e-12)
    assert float(found.entropy) == pytest.approx(-np.sum(law * np.log(law)), rel=1e-12)
    np.testing.assert_allclose(found.inclusion.value, law, rtol=1e-11)
