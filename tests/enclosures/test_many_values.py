"""Average Bayesian privacy and mutual information of many values, against sums over all of them."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from fastpriv import GaussianMechanism, GaussianMixture, Pmf, kl_divergence, mutual_information, notions
from fastpriv.distributions.pmf import grouped_atoms
from fastpriv.divergences.one_dimension import integrals
from fastpriv.kernels import _lip
from fastpriv.notions import gaussian as gaussian_notions
from fastpriv.posteriors.gaussian import gaussian_abp
from oracles import lip as lip_oracle


def spread(n):
    """Values with a long tail and unequal probabilities, the same doubles on every machine."""
    i = np.arange(1, n + 1, dtype=np.float64)
    place = np.sort((i * 0.6180339887498949) % 1.0)
    weight = 1.0 + (i * i * 0.41421356237309503) % 1.0
    return Pmf(place + 2.0 * place**6 + 20.0 * place**40, weight / weight.sum())


def clusters(n):
    i = np.arange(1, n + 1, dtype=np.float64)
    part = (i * 0.6180339887498949) % 1.0
    place = np.sort(np.concatenate([1e-4 * part[: n // 2], 1.0 + 1e-2 * part[n // 2 :]]))
    return Pmf(place, np.full(n, 1.0 / n))


def shift_of_all_pairs(prior, sigma, index, density=16):
    """The square root of the divergence by one sum over all values and a long row of nodes, in doubles."""
    x, w = (prior.values - prior.values[index]) / sigma, prior.probabilities
    t = np.arange(-11 * density, 11 * density + 1) / density
    log_ratio = x * (t[:, None] - 0.5 * x)
    e = np.exp(log_ratio - log_ratio.max(axis=1, keepdims=True))
    e = e / (e * w).sum(axis=1, keepdims=True) - 1.0
    normal = np.exp(-0.5 * t * t) / (density * np.sqrt(2 * np.pi))
    e = (normal[:, None] * e).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(e > -1, (1 + e) * np.log1p(e), 0.0)
    return np.sqrt(0.5 * (w * (first - (2 + e) * np.log1p(0.5 * e))).sum())


def shift_to_many_digits(prior, sigma, index, density=4):
    with mp.workdps(60):
        x = [(mpf(v) - mpf(prior.values[index])) / mpf(sigma) for v in prior.values.tolist()]
        w = [mpf(v) for v in prior.probabilities.tolist()]
        w = [v / sum(w) for v in w]
        e = [mpf(0)] * len(x)
        for k in range(-13 * density, 13 * density + 1):
            t = mpf(k) / density
            row = [mp.exp(v * (t - v / 2)) for v in x]
            q = sum(a * b for a, b in zip(w, row, strict=True))
            normal = mp.npdf(t) / density
            for j, value in enumerate(row):
                e[j] += normal * (value / q - 1)
        total = mpf(0)
        for mass, v in zip(w, e, strict=True):
            total += mass * ((1 + v) * mp.log(1 + v) if v > -1 else 0) - mass * (2 + v) * mp.log(1 + v / 2)
        return mp.sqrt(total / 2)


@pytest.mark.parametrize("part", [0.003, 0.03, 0.3, 1.0])
@pytest.mark.parametrize("law", [spread, clusters])
def test_abp_of_two_thousand_values_is_that_of_all_pairs(law, part):
    prior = law(2000)
    sigma = part * float(np.ptp(prior.values))
    found = gaussian_abp(prior, sigma)
    for index in (0, 990, 1003, 1990):
        want = shift_of_all_pairs(prior, sigma, index)
        assert found.value[index] == pytest.approx(want, rel=1e-12, abs=1e-14), (index, want)
        assert found.lower[index] - 1e-14 <= want <= found.upper[index] + 1e-14
    assert np.all(found.upper - found.lower <= 3e-11 * found.value + 1e-14)


@pytest.mark.parametrize("sigma", [0.05, 5.0, 1e5])
def test_abp_of_grouped_values_holds_many_digits(sigma):
    i = np.arange(30, dtype=np.float64)
    prior = Pmf(np.concatenate([i / 2**9, [1.0]]), np.append(np.full(30, 1 / 32), 2 / 32))
    found = gaussian_abp(prior, sigma)
    for index in (13, 30):
        want = shift_to_many_digits(prior, sigma, index)
        assert found.lower[index] <= want <= found.upper[index], (found.value[index], want)
        assert abs(found.value[index] / want - 1) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("law", [spread, clusters])
@pytest.mark.parametrize("part", [0.02, 0.3, 2.0, 100.0, 1e6])
def test_abp_of_interpolated_values_holds_many_digits(law, part):
    prior = law(120)
    sigma = part * float(np.ptp(prior.values))
    found = gaussian_abp(prior, sigma)
    for index in (50, int(np.argmin(found.value))):
        want = shift_to_many_digits(prior, sigma, index, density=12)
        assert found.lower[index] <= want <= found.upper[index], (index, found.value[index], want)


@pytest.mark.parametrize(("values", "weights", "index"), [
    ([0.0, 31.5, 200.0], [0.5, 2.0**-900, 0.5], 1),
    ([0.0, 31.5, 200.0], [0.5, 2.0**-900, 0.5], 0),
    ([0.0, 3.0, 200.0], [1.0, 1e-310, 1e-310], 1),
    ([-200.0, 0.0, 0.5, 200.0], [2.0**-40, 0.5, 0.5 - 2.0**-39, 2.0**-40], 1),
])
def test_light_atoms_within_sight_of_heavy_ones(values, weights, index):
    prior = Pmf(values, weights)
    want = shift_to_many_digits(prior, 1.0, index, density=64)
    found = gaussian_abp(prior, 1.0)
    assert found.lower[index] <= want <= found.upper[index], (found, want)


def test_divergences_that_underflow_are_bounded():
    found = gaussian_abp(Pmf([0.0, 3.0], [1.0, 1e-310]), 1.0)
    assert found.lower[0] == 0.0
    assert 3.5e-311 < found.upper[0] < 1e-159


def test_atoms_alone_have_the_closed_form():
    prior = Pmf([0.0, 1e3, 2e3, 1e300], [0.25, 0.25, 0.125, 0.375])
    found = gaussian_abp(prior, 1e-3)
    w = prior.probabilities
    want = np.sqrt(np.log(2) + 0.5 * (w * np.log(w) - (1 + w) * np.log1p(w)))
    np.testing.assert_allclose(found.value, want, rtol=1e-14)
    assert np.all((found.lower <= want) & (want <= found.upper))


@pytest.mark.parametrize("values", [[0, 1], [-1e300, 1e300], [1e-320, 1], [1, 1 + 2.0**-52]])
@pytest.mark.parametrize("sigma", [1e-300, 1e-100, 1e-17])
def test_noise_below_the_last_digit_of_the_values_tells_them(values, sigma):
    found = notions.abp(Pmf(values, [0.5, 0.5]), GaussianMechanism(sigma))
    expected = math.sqrt(0.5 * math.log(4 / 3) + 0.25 * math.log(4 / 3))
    assert found.maximum.value == pytest.approx(expected, rel=1e-12)
    assert found.mean.lower <= expected <= found.mean.upper
    largest = notions.pointwise_lmip(Pmf(values, [0.5, 0.5]), GaussianMechanism(sigma))
    assert largest.lower <= math.log(2) <= largest.upper


def test_the_mean_is_a_sum_of_all_values_rounded_once():
    prior = spread(500)
    found = notions.abp(prior, GaussianMechanism(1.0))
    products = prior.probabilities * found.per_value.value
    with mp.workdps(40):
        assert found.mean.value == float(sum(map(mpf, products.tolist())))


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [1.0, 300.0])
def test_a_hundred_thousand_values(sigma):
    prior = spread(100_000)
    found = gaussian_abp(prior, sigma)
    for index in (0, 777, 50_000, 99_999):
        want = shift_of_all_pairs(prior, sigma, index, density=4)
        assert found.value[index] == pytest.approx(want, rel=1e-10, abs=1e-13)


def ungrouped_information(prior, sigma, certified, monkeypatch):
    with monkeypatch.context() as changed:
        changed.setattr(integrals, "MAX_UNGROUPED", len(prior))
        return mutual_information(prior, sigma, certified=certified)


def laws_of_many(n):
    plain, i = spread(n), np.arange(n)
    light = plain.probabilities * np.where(i % 3 == 0, 2.0**-900, np.where(i % 7 == 1, 2.0**-60, 1.0))
    heavy = np.where(i == n // 2, 1e9, plain.probabilities)
    return {
        "spread": plain, "clusters": clusters(n), "light": Pmf(plain.values, light / light.sum()),
        "heavy": Pmf(plain.values, heavy / heavy.sum()), "far": Pmf(1e5 + plain.values, plain.probabilities),
        "wide": Pmf(np.append(plain.values[:-1], 1e300), plain.probabilities),
    }


@pytest.mark.parametrize("name", ["spread", "clusters", "light", "heavy", "far"])
@pytest.mark.parametrize("part", [0.02, 0.3, 1e4])
def test_information_of_grouped_values_meets_that_of_all(name, part, monkeypatch):
    prior = laws_of_many(2100)[name]
    sigma = part * float(prior.values[1900] - prior.values[0])
    found = mutual_information(prior, sigma, certified=True)
    want = ungrouped_information(prior, sigma, True, monkeypatch)
    if name != "heavy" and part > 0.1:
        assert "nodes for 2100 points" in found.method
    assert found.kind == want.kind == "certified"
    assert found.lower <= want.upper
    assert want.lower <= found.upper
    assert found.value == pytest.approx(want.value, rel=1e-12, abs=1e-25)
    assert found.upper - found.lower <= max(2e-12 * found.upper, 1.01 * (want.upper - want.lower))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spread", "clusters", "light", "heavy", "far", "wide"])
@pytest.mark.parametrize("part", [1e-5, 1e-3, 0.02, 0.1, 1.0, 10.0, 100.0, 1e6])
def test_information_of_ten_thousand_values_meets_that_of_all(name, part, monkeypatch):
    prior = laws_of_many(10_000)[name]
    sigma = part * float(prior.values[9900] - prior.values[0])
    found = mutual_information(prior, sigma, certified=True)
    want = ungrouped_information(prior, sigma, True, monkeypatch)
    assert found.lower <= want.upper
    assert want.lower <= found.upper
    assert found.upper - found.lower <= max(2e-12 * found.upper, 1.01 * (want.upper - want.lower))


def test_grouping_counts_its_error(monkeypatch):
    """With a coarse grouping the bracket widens by what the two ways differ."""
    prior = spread(2100)
    want = ungrouped_information(prior, 0.5, True, monkeypatch)
    monkeypatch.setattr(integrals, "_GROUPING_TOLERANCE", 1e-6)
    monkeypatch.setattr(integrals, "_MAX_WIDENING", 1.0)
    found = mutual_information(prior, 0.5, certified=True)
    assert 1e-14 < found.upper - found.lower < 1e-5
    assert found.lower <= want.lower <= want.upper <= found.upper


@pytest.mark.parametrize("law", [spread, clusters])
@pytest.mark.parametrize("part", [1e-3, 0.1, 3.0])
def test_pointwise_information_is_the_largest_divergence(law, part):
    prior = law(40)
    sigma = part * float(np.ptp(prior.values))
    found = notions.pointwise_lmip(prior, GaussianMechanism(sigma), certified=True)
    release = prior.through_gaussian(sigma)
    each = [kl_divergence(GaussianMixture.single(x, sigma), release, certified=True) for x in prior.values.tolist()]
    assert found.lower <= max(e.upper for e in each)
    assert max(e.lower for e in each) <= found.upper
    assert found.upper - found.lower <= 2e-12 * found.upper


@pytest.mark.parametrize("part", [0.003, 0.1, 0.5])
@pytest.mark.slow
def test_pointwise_information_of_grouped_values(part):
    prior = spread(2100)
    sigma = part * float(np.ptp(prior.values))
    found = notions.pointwise_lmip(prior, GaussianMechanism(sigma), certified=True)
    release = prior.through_gaussian(sigma)
    away = (prior.values[:, None] - prior.values) / sigma
    rarest = prior.values[np.argsort((np.exp(-0.25 * away * away) * prior.probabilities).sum(axis=1))[:3]]
    each = [kl_divergence(GaussianMixture.single(x, sigma), release, certified=True) for x in rarest.tolist()]
    assert max(e.lower for e in each) <= found.upper
    assert found.lower <= max(e.upper for e in each)
    assert found.upper - found.lower <= 2e-12 * found.upper


def tight_clusters(centres, width, n):
    part = (np.arange(1, n + 1) * 0.6180339887498949) % 1.0
    points = np.unique(np.asarray(centres)[np.arange(n) % len(centres)] + width * np.sort(part))
    weights = 1.0 + (np.arange(points.size) ** 2 * 0.41421356237309503) % 1.0
    return Pmf(points, weights / weights.sum())


@pytest.mark.parametrize(("centres", "width", "sigma"), [
    ((0.0, 1.0), 1e-3, 0.5), ((0.0, 1.0), 1e-3, 0.51), ((0.0, 1.0), 1e-3, 3.0), ((0.0, 1.0), 1e-12, 0.3),
    ((0.0, 1.0), 0.1, 0.3), ((0.0, 10.0, 20.0), 0.1, 3.0), ((0.0, 1.0, 7.0), 1.0, 2.5), ((1e6, 1e6 + 1), 1e-6, 0.4),
    ((0.0,), 1.0, 0.05), ((0.0, 4e-200), 1e-203, 1e-200), ((0.0, 4e200), 1e199, 1e200),
])
@pytest.mark.parametrize("many", [2048, 20])
def test_pointwise_information_of_clusters_is_the_largest_of_all(centres, width, sigma, many, monkeypatch):
    """Neither convexity nor grouping loses the largest divergence; none of the comparison uses them."""
    monkeypatch.setattr(gaussian_notions, "_MANY_DIVERGENCES", many)
    prior = tight_clusters(centres, width, 90)
    found = notions.pointwise_lmip(prior, GaussianMechanism(sigma), certified=True)
    release = prior.through_gaussian(sigma)
    each = [kl_divergence(GaussianMixture.single(x, sigma), release, certified=True) for x in prior.values.tolist()]
    assert found.lower <= max(e.upper for e in each)
    assert max(e.lower for e in each) <= found.upper
    assert found.lower <= found.value <= found.upper <= found.lower + 2e-12 * found.upper


@pytest.mark.few(10)
@pytest.mark.parametrize("spread", [0.03, 0.3, 3.0, 300.0, 1e4])
@pytest.mark.parametrize("shape", ["uniform", "normal", "log-normal", "clusters"])
def test_lip_curves_of_grouped_values_meet_those_of_all_values(shape, spread):
    rng = np.random.default_rng([7, int(100 * spread)])
    points = {
        "uniform": lambda: rng.uniform(0, 1, 4000), "normal": lambda: rng.normal(0, 1, 4000),
        "log-normal": lambda: np.exp(rng.normal(0, 2, 4000)),
        "clusters": lambda: np.concatenate([rng.normal(0, 1e-3, 3000), rng.normal(5, 1e-2, 1000), [40.0]]),
    }[shape]()
    weights = rng.dirichlet(np.full(points.size, 1.0))
    order = np.argsort(points)
    prior = Pmf(points[order], weights[order] / math.fsum(weights))
    sigma = spread * float(np.subtract(*np.percentile(points, [95, 5])))
    epsilon = np.concatenate([[0.0], np.geomspace(1e-3, 20, 25)])
    curves = notions.lip_curves(prior, GaussianMechanism(sigma), epsilon)
    groups = gaussian_notions._groups_for_tails(prior, sigma, 20.0)
    saves_little = shape in ("log-normal", "clusters") or not 0.1 < spread < 1e3
    assert groups is not None or saves_little
    whole, _ = _lip.lip_curves(prior.probabilities, prior.values, np.array([sigma]), epsilon[None], 2e-12, True)
    for curve, column in zip(curves, (0, 3), strict=True):
        assert (np.asarray(curve.lower) <= whole[0, :, column + 2]).all()
        assert (np.asarray(curve.upper) >= whole[0, :, column + 1]).all()
        width, allowed = np.asarray(curve.upper) - curve.lower, whole[0, :, column + 2] - whole[0, :, column + 1]
        assert (np.nan_to_num(width) <= 2 * np.nan_to_num(allowed) + 1e-9 * np.abs(whole[0, :, column])).all()


@pytest.mark.parametrize(("sigma", "epsilon"), [(0.8, 1.0), (0.9, 0.0), (0.7, 30.0)])
@pytest.mark.parametrize("grouped", [False, True])
def test_the_logarithm_of_a_delta_near_1_keeps_its_digits(sigma, epsilon, grouped):
    """log delta to 2e-12 of itself where delta is nearly 1, from all atoms and from groups, against many digits.

    The last value lies far from all others, so that it has the largest divergence.
    """
    prior = Pmf(np.append(spread(250).values[:-1], 30.0), spread(250).probabilities)
    tools = grouped_atoms(prior.values, prior.probabilities, sigma, radius=40.0)
    assert tools.values.size < len(prior)
    groups = (tools.weights, tools.values, tools.error, tools.radius) if grouped else None
    rows, cost = _lip.lip_curves(
        prior.probabilities, prior.values, np.array([sigma]), np.array([[epsilon]]), 2e-12, True, groups
    )
    want = mp.log(lip_oracle.divergence_at(prior.values, prior.probabilities, sigma, epsilon, len(prior) - 1, 25))
    value, lower, upper = rows[0, 0, 3:]
    assert -0.05 < want < -1e-3
    assert lower <= want <= upper
    assert upper - lower <= 2e-12 * abs(value)
    assert cost[1] == 0, "sums in double-doubles"
