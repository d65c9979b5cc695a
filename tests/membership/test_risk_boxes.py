"""Certified risks in two and three dimensions: sums over all memberships by composite rules, closed forms, mpmath."""

import itertools

import numpy as np
import pytest
from mpmath import exp, inf, log, mp, mpf, ncdf, quad

from fastpriv.studies.membership import (
    BernoulliMembership,
    CombinedReleases,
    FixedSizeMembership,
    FrequencyRelease,
    GaussianNoise,
    LaplaceNoise,
    Panel,
    bgp_risk,
    bwma,
    conditional_entropies,
)
from fastpriv.studies.membership.risk_boxes import BoxModel
from fastpriv.studies.membership.risk_gains import box_gain
from fastpriv.studies.membership.risk_integrals import LineModel, positive_part


def memberships(model):
    """All b, their probabilities, frequencies and scales."""
    people, prior = model.n_people, model.prior
    fixed = isinstance(prior, FixedSizeMembership)
    every = [b for b in itertools.product((0, 1), repeat=people) if any(b) and (not fixed or sum(b) == prior.n0)]
    every = np.array(every)
    q = 0.5 if fixed else np.broadcast_to(prior.q, people)
    p = np.prod(np.where(every == 1, q, 1 - q), axis=1)
    sizes = every.sum(axis=1)
    return every, p / p.sum(), every @ model.panel.to_array() / sizes[:, None], np.array(model.noise.scale_of(sizes))


def nodes(model, mean, scale):
    """Weights and densities of one attribute: nine nodes on panels of a third of a scale."""
    normal = isinstance(model.noise, GaussianNoise)
    reach = 9 if normal else 40
    low, high = (mean - reach * scale).min(), (mean + reach * scale).max()
    if model.clip:
        low, high = max(low, 0.0), min(high, 1.0)
    ends = np.unique([*np.arange(low, high, scale.min() / (3 if normal else 1.5)), high, *np.clip(mean, low, high)])
    t, w = np.polynomial.legendre.leggauss(9)
    half = 0.5 * np.diff(ends)[:, None]
    x, weights = (0.5 * (ends[1:] + ends[:-1])[:, None] + half * t).ravel(), (half * w).ravel()
    z = (x[:, None] - mean) / scale
    density = np.exp(-0.5 * z * z) / (scale * np.sqrt(2 * np.pi)) if normal else np.exp(-np.abs(z)) / (2 * scale)
    if not model.clip:
        return weights, density
    below = lambda x: np.array([float(ncdf(-y)) if normal else float(exp(-y) / 2) for y in x / scale])
    return np.append(weights, [1, 1]), np.vstack([density, below(mean), below(1 - mean)])


def brute_force(model):
    """H(b | r) and H(b_k | r) for two attributes."""
    every, p, means, scales = memberships(model)
    (w, first), (v, second) = (nodes(model, means[:, j], scales) for j in (0, 1))
    weight = w[:, None] * v
    with np.errstate(divide="ignore", invalid="ignore"):
        u = [np.outer(p[g] * first[:, g], second[:, g]) for g in range(len(p))]
        total = sum(u)
        joint = sum(np.where(x > 0, x * np.log(total / x), 0.0) for x in u)
        people = []
        for k in range(model.n_people):
            one = sum(x for x, b in zip(u, every, strict=True) if b[k])
            none = sum((x for x, b in zip(u, every, strict=True) if not b[k]), np.zeros_like(total))
            people.append(sum(np.where(x > 0, x * np.log(total / x), 0.0) for x in (one, none)))
    return (weight * joint).sum(), [(weight * x).sum() for x in people]


PANEL = Panel([[1, 0], [0, 1], [1, 1]])
CASES = [
    FrequencyRelease(PANEL, BernoulliMembership(0.3), GaussianNoise(0.1)),
    FrequencyRelease(PANEL, BernoulliMembership([0.05, 0.5, 0.99]), GaussianNoise([0.5, 0.3, 0.2]), clip=True),
    FrequencyRelease(PANEL, FixedSizeMembership(2), GaussianNoise(3.0), clip=True),
    FrequencyRelease(PANEL, BernoulliMembership(1e-6), LaplaceNoise(0.1)),
    FrequencyRelease(PANEL, BernoulliMembership(0.6), LaplaceNoise([1.0, 0.5, 0.4]), clip=True),
    FrequencyRelease(PANEL, BernoulliMembership(0.6), LaplaceNoise([0.3, 0.2, 0.2])),
    # the distance of two complements tells the scale, which tells the number of members
    FrequencyRelease(Panel([[1, 0], [0, 1]]), BernoulliMembership(0.3), GaussianNoise([0.3, 0.1])),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_sums_over_all_memberships(case):
    model = CASES[case]
    joint, people = brute_force(model)
    found, each = bgp_risk(model, kind="joint"), conditional_entropies(model)
    assert found.kind == each.kind == "certified"
    error = 1e-12 + 1e-11 * joint  # of the composite rule
    assert found.lower - error <= joint <= found.upper + error
    assert found.width <= 1e-10 * found.value
    assert np.all((each.lower - error <= people) & (people <= each.upper + error))
    assert np.all(each.width <= 1e-10 * each.value)


@pytest.mark.parametrize("clip", [False, True])
def test_noise_that_is_small_against_the_distances(clip):
    """At 1e-3 and three attributes sets of equal frequencies alone are not told apart."""
    model = FrequencyRelease(
        Panel([[1, 0, 1], [0, 1, 1], [0, 1, 1]]), BernoulliMembership(0.5), GaussianNoise(1e-3), clip=clip
    )
    every, p, means, _ = memberships(model)
    groups = {}
    for b, chance, mean in zip(every, p, np.round(means, 9).tolist(), strict=True):
        groups.setdefault(tuple(mean), []).append((b, chance))
    joint, people = 0.0, np.zeros(3)
    for group in groups.values():
        total = sum(x for _, x in group)
        joint += sum(x * np.log(total / x) for _, x in group)
        for k in range(3):
            for one in (0, 1):
                part = sum(x for b, x in group if b[k] == one)
                people[k] += part * np.log(total / part) if part else 0.0
    found, each = bgp_risk(model, kind="joint"), conditional_entropies(model)
    assert found.kind == "certified"
    assert found.lower - 1e-14 <= joint <= found.upper + 1e-14
    assert np.all((each.lower - 1e-14 <= people) & (people <= each.upper + 1e-14))
    assert found.width <= 1e-9
    assert np.max(each.width) <= 1e-9


def test_a_few_people_and_many_attributes():
    """Three people, Gaussian noise: two dimensions, as a panel of two attributes that the rotation gives at once."""
    prior = BernoulliMembership([0.2, 0.5, 0.7])
    blocks = np.repeat([[1, 0], [0, 1], [1, 1]], 8, axis=1)  # eight copies of each of two attributes
    few = FrequencyRelease(PANEL, prior, GaussianNoise(0.1 / np.sqrt(8)))
    many = FrequencyRelease(Panel(blocks), prior, GaussianNoise(0.1))
    both = CombinedReleases([FrequencyRelease(Panel(blocks[:, ::2]), prior, GaussianNoise(0.1))] * 2)
    for kind in ("joint", "marginal"):
        one, *others = (bgp_risk(model, kind=kind) for model in (few, many, both))
        assert one.kind == others[0].kind == others[1].kind == "certified"
        for other in others:
            assert max(one.lower, other.lower) <= min(one.upper, other.upper)
            assert other.width <= 1e-10
    gains = [bwma(model, 0.4) for model in (few, many)]
    assert abs(gains[0].value - gains[1].value) <= gains[0].width + gains[1].width
    assert gains[1].width <= 1e-9


def column(normal, means, scales, weights, clip=False):
    rows = np.zeros((0, len(weights)))
    return LineModel(normal, np.array(means), np.array(scales), np.array(weights), rows, rows, clip)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.7])
def test_gain_between_two_normal_distributions(dimensions, gamma):
    """E(pi - gamma)^+ of N(0, S) against N(d, S), by distribution functions of the log ratio."""
    scales = np.array([0.3, 0.8, 0.5])[:dimensions]
    weights = np.array([0.25, 0.75])
    columns = tuple(column(True, [0.0, 1.0 / (j + 1)], [s, s], weights) for j, s in enumerate(scales))
    found, error = box_gain(BoxModel(columns, 0.0), np.array([-gamma, 1.0 - gamma]))
    distance = mp.sqrt(sum((1 / mpf(j + 1) / mpf(s)) ** 2 for j, s in enumerate(scales)))
    level = log(mpf(gamma) * 0.25 / ((1 - mpf(gamma)) * 0.75))
    known = (1 - mpf(gamma)) * 0.75 * ncdf(distance / 2 - level / distance)
    known -= mpf(gamma) * 0.25 * ncdf(-distance / 2 - level / distance)
    assert abs(found - known) <= error + 1e-17
    assert error <= (1e-11, 1e-11, 1e-7)[dimensions - 1]


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("normal", [False, True])
def test_gain_with_an_attribute_that_says_nothing(clip, normal):
    """Two dimensions, one of which has the same mean in all classes, give the certified integral of the other."""
    weights, means, scales = [0.2, 0.3, 0.5], [0.0, 0.4, 1.0], np.full(3, 0.15)
    line = column(normal, means, scales, weights, clip)
    none = column(normal, [0.3, 0.3, 0.3], scales, weights, clip)
    for gain in ([0.5, -0.5, 0.2], [-0.3, 0.6, -0.2]):
        known, slack, _ = positive_part(line, np.array(weights) * gain)
        for columns in ((line, none), (none, line), (line,)):
            found, error = box_gain(BoxModel(columns, 0.0), np.array(gain))
            assert abs(found - known) <= error + slack
            assert error <= 1e-10


def test_gain_between_two_laplace_distributions():
    """F = a p(x) p(y) - c p(1 - x) p(1 - y): the root in x for each y, and mpmath over y."""
    scale, a, c = mpf(1) / 4, mpf(0.3), mpf(0.45)
    density = lambda y: exp(-abs(y) / scale) / (2 * scale)
    below = lambda x: exp(x / scale) / 2 if x < 0 else 1 - exp(-x / scale) / 2

    def inner(y):
        p, q = a * density(y), c * density(y - 1)
        # p(x) / p(x - 1) falls from e^(1 / scale) to e^(-1 / scale) over [0, 1], as exp((1 - 2 x) / scale)
        root = (1 + scale * log(p / q)) / 2
        root = -inf if root < 0 else inf if root > 1 else root
        if root == -inf:
            return mpf(0)
        return p - q if root == inf else p * below(root) - q * below(root - 1)

    kinks = [(1 + scale * log(a / c) - shift) / 2 for shift in (1, -1)]  # where the root is 1 and 0
    points = sorted([mpf(0), mpf(1), mpf(1) / 2, *(y for y in kinks if 0 < y < 1)])
    known = quad(inner, [*points], maxdegree=8) + scale * (inner(mpf(0)) + inner(mpf(1)))
    weights = [float(a), float(c)]
    line = column(False, [0.0, 1.0], [0.25, 0.25], weights)
    found, error = box_gain(BoxModel((line, line), 0.0), np.array([1.0, -1.0]))
    assert abs(found - known) <= error + 1e-15
    assert error <= 1e-11
