"""ABP and LIP of products under product priors: brute force in many digits, and type classes at 2^100 and 2^200."""

import itertools
import math

import numpy as np
import pytest
from mpmath import binomial, exp, mp, mpf, sqrt
from scipy.sparse import csr_array

from fastpriv import Channel, DomainError, RandomizedResponse, notions
from fastpriv.channels import SparseChannel
from fastpriv.mechanisms import GeometricMechanism, UnaryEncoding
from oracles import channel_notions as truth

GRID = [0.0, 0.25, 1.0, 3.0, 12.0]


def check_holds(found, want, relative, absolute=0.0):
    for lower, value, upper, one in zip(*map(np.ravel, (found.lower, found.value, found.upper)), want, strict=True):
        assert lower <= one <= upper, (lower, upper, mp.nstr(one, 25))
        assert abs(value - one) <= relative * one + absolute, (value, mp.nstr(one, 25))
        assert upper - lower <= relative * one + absolute, (lower, upper, mp.nstr(one, 25))


def outer(columns):
    """Products over places of one entry of each, the first place changing slowest."""
    return [math.prod(entries) for entries in itertools.product(*columns)]


def drawn(rng):
    """A channel of dyadic cells with its rows, and a prior or none with its probabilities."""
    n, m = (int(x) for x in rng.integers(2, 4, 2))
    rows = []
    for _ in range(n):
        cuts = np.sort(rng.integers(0, 65, m - 1))
        rows.append((np.diff([0, *cuts, 64]) / 64).tolist())
    if rng.random() < 0.2:
        rows[-1] = rows[0][::-1]
    channel = Channel(rows) if rng.random() < 0.7 else SparseChannel(csr_array(np.array(rows)))
    if rng.random() < 0.25:
        return channel, rows, None, [mpf(1) / n] * n
    weights = rng.integers(0, 9, n)
    weights[int(rng.integers(n))] = 8 if rng.random() < 0.3 else 1000
    prior = weights / weights.sum()
    total = sum(mpf(x) for x in prior.tolist())
    return channel, rows, prior, [mpf(x) / total for x in prior.tolist()]


def whole(parts, powers):
    """Rows and prior of a product, written out."""
    places = [part for part, times in zip(parts, powers, strict=True) for _ in range(times)]
    rows = [outer(choice) for choice in itertools.product(*([[mpf(x) for x in row] for row in rows]
                                                            for _, rows, _, _ in places))]
    return rows, outer([prior for _, _, _, prior in places])


@pytest.mark.few(5)
@pytest.mark.parametrize("seed", range(25))
def test_small_products_against_their_definition(seed):
    rng = np.random.default_rng(seed)
    parts = [drawn(rng) for _ in range(2)]
    powers = [int(rng.integers(1, 3)), 1]
    rows, prior = whole(parts, powers)
    channel = parts[0][0].power(powers[0]).product(parts[1][0])
    given = tuple(part[2] for part in parts)
    held = [d for d, p in enumerate(prior) if p > 0]
    shifts = [truth.abp(rows, prior, rows[d]) for d in held]
    found = notions.abp(given, channel)
    assert found.maximum.method == "types of secrets"
    check_holds(found.per_value, shifts, 1e-12, 1e-15)
    check_holds(found.maximum, [max(shifts)], 1e-12, 1e-15)
    check_holds(found.mean, [sum(prior[d] * x for d, x in zip(held, shifts, strict=True))], 1e-12, 1e-15)
    some = held[:: max(1, len(held) // 3)]
    asked = notions.abp(given, channel, secret=some).per_value
    check_holds(asked, [x for d, x in zip(held, shifts, strict=True) if d in some], 1e-12, 1e-15)
    curve = notions.lip_delta(given, channel, GRID)
    assert "types" in curve.method
    check_holds(curve, [truth.lip_delta(rows, prior, epsilon) for epsilon in GRID], 1e-11, 2e-14)


def response(epsilon, n, share):
    """Randomised response for bits, and rows (hit, miss) with the law of the release, in many digits."""
    hit = 1 / (1 + exp(-mpf(epsilon)))
    pi = [mpf(share), 1 - mpf(share)]
    rows = [[hit, 1 - hit], [1 - hit, hit]]
    law = [sum(pi[d] * rows[d][w] for d in (0, 1)) for w in (0, 1)]
    return RandomizedResponse(2, epsilon).power(n), rows, pi, law


def abp_of_type(n, zeros, rows, pi, law):
    """JS of a product law and the prior, by how many places of each kind of true secret hold a 0."""
    posterior = [[pi[d] * sum(rows[true][w] * rows[d][w] / law[w] for w in (0, 1)) for d in (0, 1)] for true in (0, 1)]
    total = mpf(0)
    for i in range(zeros + 1):
        for j in range(n - zeros + 1):
            ways = binomial(zeros, i) * binomial(n - zeros, j)
            after = posterior[0][0] ** i * posterior[0][1] ** (zeros - i)
            after *= posterior[1][0] ** j * posterior[1][1] ** (n - zeros - j)
            before = pi[0] ** (i + j) * pi[1] ** (n - i - j)
            middle = (after + before) / 2
            total += ways * (after * mp.log(after / middle) + before * mp.log(before / middle)) / 2
    return sqrt(total)


@pytest.mark.parametrize(("epsilon", "n", "zeros"), [(0.5, 100, 0), (1e-4, 60, 60), (1.0, 40, 13), (3.0, 60, 59)])
def test_abp_at_true_secrets_of_many_bits(epsilon, n, zeros):
    channel, rows, pi, law = response(epsilon, n, 0.3125)
    secret = (1 << (n - zeros)) - 1
    with mp.workdps(40):
        want = abp_of_type(n, zeros, rows, pi, law)
    found = notions.abp(([0.3125, 0.6875],), channel, secret=secret).maximum
    check_holds(found, [want], 1e-12)
    every = notions.abp(([0.3125, 0.6875],), channel)
    assert every.per_value.shape == (n + 1,)
    assert (abs(every.per_value.value - float(want)) <= 1e-12 * float(want)).any()


def test_abp_of_all_secrets_of_two_hundred_bits():
    channel = RandomizedResponse(2, 0.1).power(200)
    found = notions.abp(([0.25, 0.75],), channel)
    types = notions.abp(([0.25, 0.75],), channel, secret=[(1 << k) - 1 for k in range(201)]).per_value
    np.testing.assert_allclose(np.sort(found.per_value.value), np.sort(types.value), rtol=1e-13)
    with mp.workdps(40):
        weight = [binomial(200, k) * mpf(0.75) ** k * mpf(0.25) ** (200 - k) for k in range(201)]
    check_holds(found.mean, [sum(w * x for w, x in zip(weight, types.value.tolist(), strict=True))], 1e-12)
    assert found.maximum.upper / found.maximum.lower < 1 + 1e-12
    summary = notions.summary(([0.25, 0.75],), channel)
    assert summary.abp.mean.value == found.mean.value
    uniform = notions.abp(([0.5, 0.5],), channel).maximum
    assert uniform.lower <= notions.abp(None, channel).maximum.value <= uniform.upper


@pytest.mark.parametrize(("epsilon", "n"), [(1.0, 200), (0.1, 200), (1e-3, 100), (4.0, 100)])
def test_lip_of_many_bits(epsilon, n):
    """The worst secret holds the rarer value everywhere."""
    channel, rows, _, law = response(epsilon, n, 0.3125)
    grid = [0.0, 0.01, 0.5, 5.0, 25.0]
    want = []
    with mp.workdps(60):
        for level in grid:
            both = [mpf(0), mpf(0)]
            for i in range(n + 1):
                row = binomial(n, i) * rows[0][0] ** (n - i) * rows[0][1] ** i
                release = binomial(n, i) * law[0] ** (n - i) * law[1] ** i
                both[0] += max(release - exp(mpf(level)) * row, 0)
                both[1] += max(row - exp(mpf(level)) * release, 0)
            want.append(max(both[0], exp(-mpf(level)) * both[1]))
    check_holds(notions.lip_delta(([0.3125, 0.6875],), channel, grid), want, 1e-11, 1e-13)
    xi = notions.lip_epsilon(([0.3125, 0.6875],), channel)
    check_holds(xi, [n * max(abs(mp.log(x / z)) for row in rows for x, z in zip(row, law, strict=True))], 1e-12)


@pytest.mark.slow
def test_lip_of_many_secrets_of_three_values():
    """Randomised response over three values: a secret that is nowhere but the rarest is not the worst."""
    prior, n, level = [0.5, 0.3125, 0.1875], 60, mpf(0.5)
    e = exp(mpf(0.1))
    row = [1 / (e + 2), 1 / (e + 2), e / (e + 2)]
    law = [(1 + mpf(p) * (e - 1)) / (e + 2) for p in prior]
    both = [mpf(0), mpf(0)]
    for i in range(n + 1):
        for j in range(n + 1 - i):
            ways, counts = binomial(n, i) * binomial(n - i, j), (i, j, n - i - j)
            one, two = (math.prod(x**k for x, k in zip(cells, counts, strict=True)) for cells in (row, law))
            both[0] += ways * max(two - exp(level) * one, 0)
            both[1] += ways * max(one - exp(level) * two, 0)
    channel = RandomizedResponse(3, 0.1).power(n)
    check_holds(notions.lip_delta((prior,), channel, 0.5), [max(both[0], exp(-level) * both[1])], 1e-11)


def test_uniform_products_have_one_type_of_secrets():
    channel = RandomizedResponse(2, 0.3).power(200)
    curve = notions.lip_delta(None, channel, [0.0, 2.0])
    hit = 1 / (1 + exp(-mpf(0.3)))
    want = []
    for level in (0, 2):
        ratios = [(binomial(200, i), hit ** (200 - i) * (1 - hit) ** i, mpf(2) ** -200) for i in range(201)]
        under = sum(ways * max(release - exp(mpf(level)) * row, 0) for ways, row, release in ratios)
        over = exp(-mpf(level)) * sum(ways * max(row - exp(mpf(level)) * release, 0) for ways, row, release in ratios)
        want.append(max(under, over))
    check_holds(curve, want, 1e-11)
    large = notions.lip_delta(None, RandomizedResponse(10**6, 1.0).power(20), 0.5)
    two = notions.lip_delta(None, RandomizedResponse(10**6, 1.0).power(2), 0.5)
    one = notions.lip_delta(None, RandomizedResponse(10**6, 1.0), 0.5)
    assert one.value < two.value < large.value < 1
    mixed = RandomizedResponse(10**6, 1.0).product(RandomizedResponse(2, 0.5))
    alone = notions.abp([0.25, 0.75], RandomizedResponse(2, 0.5)).maximum.value
    assert notions.abp((None, [0.25, 0.75]), mixed).maximum.value == pytest.approx(alone, rel=1e-3)


def test_structured_factors():
    channel = UnaryEncoding(3, 1.0).product(GeometricMechanism(3, 0.7))
    prior = (np.array([0.5, 0.25, 0.25]), np.array([0.125, 0.0, 0.875]))
    rows = channel.matrix()
    law = np.multiply.outer(*prior).ravel()
    shifts = [truth.abp(rows, law, rows[d]) for d in np.flatnonzero(law)]
    found = notions.abp(prior, channel)
    np.testing.assert_allclose(found.per_value.value, [float(x) for x in shifts], rtol=1e-11)
    assert (found.per_value.width <= 1e-11).all()
    curve = notions.lip_delta(prior, channel, GRID)
    np.testing.assert_allclose(curve.value, [float(truth.lip_delta(rows, law, e)) for e in GRID], rtol=0, atol=1e-13)
    assert (curve.width <= 1e-12).all()


def test_what_products_refuse():
    channel = RandomizedResponse(2, 1.0).power(200)
    with pytest.raises(DomainError, match="secret must be one that the prior gives mass; got 1. The posterior is not"):
        notions.abp(([1.0, 0.0],), channel, secret=1)
    with pytest.raises(DomainError, match="secret must be given for a product whose secrets are of more than 65536"):
        notions.abp(([0.1, 0.2, 0.3, 0.4],), RandomizedResponse(4, 1.0).power(200))
    assert notions.abp(([0.1, 0.2, 0.3, 0.4],), RandomizedResponse(4, 1.0).power(200), secret=5).per_value.shape == (1,)
