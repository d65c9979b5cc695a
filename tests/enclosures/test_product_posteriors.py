"""Posteriors of products: brute force over tuples, type classes at 2^200, and the integral of Jensen-Shannon."""

import math

import numpy as np
import pytest
from mpmath import binomial, mp, mpf

from enclosures.test_default_posteriors import enclosed
from fastpriv import Channel, RandomizedResponse, posterior
from fastpriv.channels import DefaultLikelihood, DenseLikelihood, IndexLikelihood, ProductLikelihood
from fastpriv.posteriors.groups import GroupPosterior, uniform_groups
from fastpriv.posteriors.product_jensen_shannon import product_jensen_shannon
from oracles.grouped_posteriors import DIGITS as MPMATH_DIGITS  # noqa: F401 -- the digits of these tests too
from oracles.grouped_posteriors import of_groups, product, quantities


def factor(rng, scale):
    """A factor, its prior or None, and both in many digits."""
    n = int(rng.integers(1, 5))
    logs = scale * rng.normal(size=n)
    if rng.random() < 0.3:
        logs = np.round(2 * logs / scale) * scale / 2
    if rng.random() < 0.3 and n > 1:
        logs[rng.integers(n)] = -np.inf
    prior = exact = None
    if rng.random() < 0.4:
        weights = rng.integers(rng.random() < 0.7, 9, n).astype(float)
        weights[np.argmax(logs)] = 3
        prior = weights / weights.sum()
        exact = [mpf(x) / sum(mpf(y) for y in prior.tolist()) for x in prior.tolist()]
    given = logs
    if prior is None and rng.random() < 0.5:
        count = int(rng.integers(0, n))
        if logs[-1] > -np.inf:
            logs[count:] = logs[-1]
            given = DefaultLikelihood(n, float(logs[-1]), np.arange(count), logs[:count])
    return given, prior, (logs.tolist(), exact)


@pytest.mark.parametrize("seed", range(40))
def test_brute_force(seed):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-7, 2)
    parts = [factor(rng, scale) for _ in range(rng.integers(1, 4))]
    powers = [int(rng.integers(1, 3)) for _ in parts]
    given = ProductLikelihood([one for one, _, _ in parts], powers)
    found = posterior(given, [prior for _, prior, _ in parts])
    logs, weights = product(*(exact for (_, _, exact), times in zip(parts, powers, strict=True) for _ in range(times)))
    enclosed(found, quantities(logs, weights), width=1e-10)
    joint = [x + mp.log(w) if x > -math.inf and w > 0 else None for x, w in zip(logs, weights, strict=True)]
    ranked = sorted((-mpf(mp.nstr(x, 25)), i) for i, x in enumerate(joint) if x is not None)
    assert found.top.indices.tolist() == [i for _, i in ranked[:10]]
    assert found.map_index == ranked[0][1]
    assert found.ties == sum(x == ranked[0][0] for x, _ in ranked)
    law = np.array([0.0 if x is None else float(mp.exp(x + ranked[0][0])) for x in joint])
    np.testing.assert_allclose(found.probabilities(), law / law.sum(), rtol=1e-10, atol=0)
    np.testing.assert_allclose(found.top.probabilities, found.probabilities()[found.top.indices], rtol=1e-12)
    middle = found.size // 2
    np.testing.assert_array_equal(found.probabilities(middle), found.probabilities()[middle:])


@pytest.mark.few(3)
@pytest.mark.parametrize("epsilon", [20.0, 1.0, 0.1, 1e-3, 1e-6])
def test_two_hundred_answers_by_type_classes(epsilon):
    release = [1, 0] * 100
    channel = RandomizedResponse(2, epsilon).power(200)
    found = posterior(channel.column(release))
    column = RandomizedResponse(2, epsilon).column(1)
    hit, miss = mpf(float(column.values[0])), mpf(column.default)
    truth = of_groups([(binomial(200, k), mpf(2) ** -200, k * hit + (200 - k) * miss) for k in range(201)])
    enclosed(found, truth, width=5e-12)
    assert found.size == 2**200
    assert found.map_index == int("10" * 100, 2)
    assert found.ties == 1
    assert found.top.indices[1:4].tolist() == sorted(found.map_index ^ 1 << i for i in range(200))[:3]
    assert found.probabilities(found.map_index, found.map_index + 1)[0] == pytest.approx(
        found.vulnerability.value, rel=1e-12
    )


@pytest.mark.slow
def test_a_mixed_product_by_type_classes():
    """40 coordinates with one distribution of three values, and 30 with another."""
    a, b = np.array([0.3, -1.0, 0.1]), np.array([0.0, 0.7])
    found = posterior(ProductLikelihood([a, b], [40, 30]))
    groups = []
    for i in range(41):
        for j in range(41 - i):
            ways = math.factorial(40) // (math.factorial(i) * math.factorial(j) * math.factorial(40 - i - j))
            part = i * mpf(0.3) + j * mpf(-1.0) + (40 - i - j) * mpf(0.1)
            groups += [(ways * math.comb(30, k), part + k * mpf(0.7)) for k in range(31)]
    share = mpf(1) / (3**40 * 2**30)
    with mp.workdps(60):
        evidence = sum(n * share * mp.exp(x) for n, x in groups)
        ratios = [(n * share, mp.exp(x) / evidence) for n, x in groups]
        js = sum(m * (r * mp.log(2 * r / (1 + r)) + mp.log(2 / (1 + r))) for m, r in ratios) / 2
        kl = sum(m * r * mp.log(r) for m, r in ratios)
    enclosed(found, {"js": js, "kl": kl, "log_evidence": mp.log(evidence)}, width=1e-11)


def test_the_integral_of_one_part_is_its_sum():
    rng = np.random.default_rng(9)
    for scale in (1e-8, 1e-3, 1.0, 30.0, 500.0):
        logs = np.sort(scale * rng.normal(size=50))
        part = GroupPosterior(uniform_groups([1] * 50, logs, 50))
        by_sum, by_integral = part.js, product_jensen_shannon([(part, 1)])
        assert by_integral.lower <= by_sum.upper
        assert by_sum.lower <= by_integral.upper
        assert by_integral.rad <= 1e-11 * by_integral.mid


def test_priors_of_factors_and_of_coordinates():
    logs = np.array([0.0, 1.5])
    one, two = np.array([0.25, 0.75]), np.array([0.5, 0.5])
    of_factors = posterior(ProductLikelihood([logs], [3]), [one])
    of_coordinates = posterior(ProductLikelihood([logs], [3]), [one, one, one])
    assert of_factors.js.value == of_coordinates.js.value
    mixed = posterior(ProductLikelihood([logs], [3]), log_prior=[np.log(one), None, np.log(two)])
    by_hand = posterior(ProductLikelihood([logs, logs, logs]), [one, two, two])
    assert mixed.kl.value == pytest.approx(by_hand.kl.value, rel=1e-13)
    default = DefaultLikelihood(10**6, -1.0, [7], [2.0])
    spread = DefaultLikelihood(10**6, math.log(0.5 / (10**6 - 1)), [7], [math.log(0.5)])
    found = posterior(ProductLikelihood([default], [50]), [spread])
    assert found.size == 10**300
    assert found.map_index == sum(7 * 10 ** (6 * i) for i in range(50))
    assert found.top.indices[1] > 0


def test_products_inside_products_and_other_factors():
    inner = ProductLikelihood([[0.0, 1.5], DefaultLikelihood(3, 0.0, [2], [0.5])])
    outer = ProductLikelihood([inner, IndexLikelihood(lambda d: 0.1 * d, 4), DenseLikelihood([0.5, 0.25], log=False)],
                              [2, 1, 1])
    found = posterior(outer)
    flat = [np.array(x) for x in ([0.0, 1.5], [0.0, 0.0, 0.5], [0.0, 1.5], [0.0, 0.0, 0.5], [0.0, 0.1, 0.2, 0.1 * 3])]
    logs = np.zeros(1)
    for part in [*flat, np.log([0.5, 0.25])]:
        logs = (logs[:, None] + part).reshape(-1)
    dense = posterior(logs)
    assert found.size == dense.size == 288
    for name in ("log_evidence", "entropy", "kl", "js", "max_log_ratio", "min_log_ratio", "vulnerability"):
        assert getattr(found, name).value == pytest.approx(getattr(dense, name).value, rel=1e-12), name
    assert found.map_index == dense.map_index


def test_a_product_channel_of_matrices():
    channel = Channel([[0.9, 0.1], [0.2, 0.8]]).product(RandomizedResponse(3, 1.0))
    found, dense = posterior(channel.column([1, 2])), posterior(np.log(channel.matrix()[:, 5]))
    assert found.js.value == pytest.approx(dense.js.value, rel=1e-12)
    assert found.map_index == dense.map_index == 5


def test_a_release_that_says_nothing():
    found = posterior(ProductLikelihood([np.zeros(2)], [200]))
    assert found.js.value == 0.0
    assert found.js.upper < 1e-300
    assert found.kl.value == 0.0
    assert found.ties == 2**200
    assert found.top.indices.tolist() == list(range(10))


def test_many_tuples_of_equal_weight_come_in_order():
    found = posterior(ProductLikelihood([[0.0, 0.0, -1.0], [0.0, -1.0]], [3, 2]), top=60)
    sums = np.zeros(1)
    for part in [[0.0, 0.0, -1.0]] * 3 + [[0.0, -1.0]] * 2:
        sums = (sums[:, None] + np.array(part)).reshape(-1)
    assert found.top.indices.tolist() == np.lexsort((np.arange(108), -sums))[:60].tolist()
    assert found.ties == 8
