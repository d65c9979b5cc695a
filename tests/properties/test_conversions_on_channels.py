"""No conversion is violated by random channels and priors; what is called tight is attained; what is false fails."""

import numpy as np
import pytest

from fastpriv import conversions as c
from oracles import channel_quantities as on
from sizes import few_first

ROUNDING = 1e-9
SEEDS = few_first(range(100), 20)


def at_most(small, estimate):
    assert small <= estimate.upper * (1 + ROUNDING) + ROUNDING**2, (small, estimate)


def two_releases(ratio, pi, rare=1e-3):
    """A channel whose first release has posterior ratios ``ratio`` and probability ``rare``."""
    assert np.isclose(pi @ ratio, 1.0, rtol=1e-12)
    first = rare * np.asarray(ratio)
    return np.stack([first, 1 - first], axis=1)


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_bayesian_conversions_hold(seed):
    rng = np.random.default_rng(seed)
    q, pi = on.random_channel(rng)
    epsilon, (xi, plus, minus) = on.ldp(q), on.mbp(q, pi)
    least = pi.min()
    at_most(xi, c.mbp_from_ldp(epsilon, least))
    at_most(epsilon, c.ldp_from_mbp(xi, least))
    at_most(epsilon, c.ldp_from_mbp_sides(plus, minus, least))
    assert c.ldp_from_mbp_sides(plus, minus, least).value <= c.ldp_from_mbp(xi, least).value * (1 + 1e-12)
    for law in rng.dirichlet(np.full(q.shape[1], 0.3), size=5):
        at_most(on.abp(q, pi, law), c.abp_from_mbp(xi))
        at_most(on.abp(q, pi, law), c.abp_from_ldp(epsilon))
        belief = pi * np.exp(rng.uniform(-0.3, 0.3, size=len(pi)))
        belief /= belief.sum()
        gap = np.abs(np.log(belief / pi)).max()
        at_most(on.abp(q, pi, law, belief), c.abp_from_mbp(xi, gap))
        at_most(on.abp(q, pi, law, belief), c.abp_from_ldp(epsilon, gap))
    for row in q:
        at_most(on.abp(q, pi, row), c.abp_given_secret_from_mbp(xi))
    for mask in on.events(q.shape[1]):
        chances = q[:, mask].sum(axis=1)
        for beta in chances:
            at_most(chances.max(), c.robustness_from_mbp(xi, min(beta, 1.0), least))
            at_most(chances.max(), c.robustness_from_mbp(xi, min(beta, 1.0)))
            at_most(chances.max(), c.robustness_from_ldp(epsilon, min(beta, 1.0)))


@pytest.mark.parametrize("seed", SEEDS)
def test_information_and_guessing_hold(seed):
    rng = np.random.default_rng(1000 + seed)
    q, pi = on.random_channel(rng)
    epsilon, xi = on.ldp(q), on.mbp(q, pi)[0]
    n = len(q)
    at_most(on.pointwise(q, pi), c.pointwise_lmip_from_mbp(xi, unit="nats"))
    at_most(on.pointwise(q, pi), c.pointwise_lmip_from_ldp(epsilon, unit="nats"))
    at_most(on.information(q, pi), c.cd_lmip_from_pointwise_lmip(on.pointwise(q, pi), unit="nats"))
    best = on.capacity_below(q, 200)
    at_most(best, c.ci_lmip_from_ldp(epsilon, n, unit="nats"))
    at_most(best, c.ci_lmip_from_kl(max(on.kl(*pair) for pair in on.pairs(q)), unit="nats"))
    leakage = float(np.log(q.max(axis=0).sum()))
    at_most(leakage, c.maximal_leakage_from_ldp(epsilon, n))
    at_most(best, c.ci_lmip_from_maximal_leakage(max(leakage, 0.0), unit="nats"))
    mu = on.capacity_below(q[:2], 2000) * (1 + 1e-6)  # two inputs: the capacity, within the error of the iteration
    for e in (0.0, 0.3, 1.0):
        delta = max(on.hockey_stick(*pair, e) for pair in on.pairs(q[:2]))
        assert delta <= c.dp_delta_from_ci_lmip(mu, e, unit="nats").upper * (1 + 1e-5)
        at_most(mu / (1 + 1e-6), c.ci_lmip_from_dp(e, min(delta, 1.0), unit="nats"))


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_differential_conversions_hold(seed):
    rng = np.random.default_rng(2000 + seed)
    q, pi = on.random_channel(rng)
    epsilon = on.ldp(q)
    grid = np.array([0.0, 0.1, 0.5, 1.0, 3.0])
    rows = on.pairs(q)
    curve = np.array([max(on.hockey_stick(*pair, e) for pair in rows) for e in grid]).clip(0.0, 1.0)
    variation, divergence = curve[0], max(on.kl(*pair) for pair in rows)
    assert (curve <= c.dp_delta_from_ldp(epsilon, grid).upper + 1e-12).all()
    assert (curve <= c.dp_delta_from_dp(grid[:, None], curve[:, None], grid).upper + 1e-12).all()
    at_most(variation, c.total_variation_from_ldp(epsilon))
    assert (variation <= c.total_variation_from_dp(grid, curve).upper + 1e-12).all()
    assert (variation <= c.membership_advantage_from_dp(grid, curve).upper + 1e-12).all()
    at_most(variation, c.total_variation_from_kl(divergence))
    at_most(divergence, c.kl_from_ldp(epsilon))
    for delta in (0.0, 1e-3, 0.1):
        e = c.dp_epsilon_from_ldp(epsilon, delta).upper
        assert max(on.hockey_stick(*pair, e) for pair in rows) <= delta + 1e-12
    for order in (1.0, 1.01, 2.0, 7.0, 30.0):
        value = max(on.renyi(*pair, order) for pair in rows)
        at_most(value, c.rdp_from_ldp(epsilon, order))
        at_most(value / order, c.zcdp_from_ldp(epsilon))
        at_most(divergence, c.kl_from_rdp(value, order))
        assert (curve <= c.dp_delta_from_rdp(value, order, grid).upper + 1e-12).all()
        for delta in (1e-6, 1e-2, 0.3):
            e = c.dp_epsilon_from_rdp(value, order, delta).upper
            assert max(on.hockey_stick(*pair, e) for pair in rows) <= delta * (1 + 1e-9)
    rho = c.zcdp_from_ldp(epsilon).upper
    assert (curve <= c.dp_delta_from_zcdp(rho, grid).upper + 1e-12).all()
    assert (curve <= c.dp_delta_from_gdp(c.gdp_from_ldp(epsilon).upper, grid).upper + 1e-12).all()
    release = pi @ q
    for e, delta in zip(grid, curve, strict=True):  # LIP, equation (5)
        at_most(max(on.hockey_stick(row, release, e) for row in q), c.lip_delta_from_dp(e, delta))
        at_most(max(np.exp(-e) * on.hockey_stick(release, row, e) for row in q), c.lip_delta_from_dp(e, delta))
    for mask in on.events(q.shape[1]):
        alarm, miss = q[0][mask].sum(), q[1][~mask].sum()
        alarm = min(alarm, 1.0)
        assert miss >= c.tradeoff_from_ldp(epsilon, alarm).lower - 1e-12
        assert (miss >= c.tradeoff_from_dp(grid, curve, alarm).lower - 1e-12).all()
        assert miss >= c.tradeoff_from_gdp(c.gdp_from_ldp(epsilon).upper, alarm).lower - 1e-12


@pytest.mark.parametrize("seed", few_first(range(60), 15))
def test_groups_and_estimators_hold(seed):
    rng = np.random.default_rng(3000 + seed)
    chain = on.random_channel(rng, most=5)[0]
    steps = [pair for k in range(len(chain) - 1) for pair in ((chain[k], chain[k + 1]), (chain[k + 1], chain[k]))]
    for e in (0.0, 0.2, 1.0):
        delta = min(max(on.hockey_stick(*pair, e) for pair in steps), 1.0)
        group = len(chain) - 1
        at_most(on.hockey_stick(chain[0], chain[-1], group * e), c.group_dp_delta_from_dp(e, delta, group))
    q, pi = on.random_channel(rng)
    xi = on.mbp(q, pi)[0]
    open_law, closed_law = rng.dirichlet(np.full(q.shape[1], 0.5), size=2)
    distance = 0.5 * np.abs(open_law - closed_law).sum()
    c1, truth = on.abp(q, pi, open_law), on.abp(q, pi, closed_law)
    interval = c.abp_from_c1(c1, c.c2_from_mbp(xi).upper, distance)
    assert interval.lower - 1e-9 <= truth <= interval.upper + 1e-9
    kappa = (on.ratios(q, pi) * open_law).sum(axis=1) * pi
    for e in (0.01, 0.3, 0.9):
        estimate = kappa * (1 + e * rng.uniform(-1, 1, size=len(pi)))
        root = np.sqrt(max(measure_js(estimate, pi), 0.0))
        at_most(abs(root - np.sqrt(measure_js(kappa, pi))) - 1e-9, c.c1_error_from_frequency_error(e))


def measure_js(p, r):
    m = (p + r) / 2
    return float((p * np.log(p / m) + r * np.log(r / m)).sum() / 2)


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 4.0])
def test_what_is_tight_is_attained(epsilon):
    grow = np.exp(epsilon)
    for least in (1e-4, 0.1, 0.5):
        pi = np.array([least, 1 - least])
        low = 0.5 / (1 + grow)
        q = np.array([[low, 1 - low], [grow * low, 1 - grow * low]])
        assert np.isclose(on.ldp(q), epsilon)
        assert np.isclose(on.mbp(q, pi)[0], c.mbp_from_ldp(epsilon, least).value, rtol=1e-9)
    response = np.array([[grow, 1.0], [1.0, grow]]) / (1 + grow)
    assert np.isclose(on.information(response, np.full(2, 0.5)),
                      c.ci_lmip_from_ldp(epsilon, 2, unit="nats").value, rtol=1e-7)
    assert np.isclose(on.kl(*response), c.kl_from_ldp(epsilon).value)
    assert np.isclose(on.renyi(*response, 3.0), c.rdp_from_ldp(epsilon, 3.0).value)
    assert np.isclose(on.renyi(*response, 1 + 1e-6), c.zcdp_from_ldp(epsilon).value, rtol=1e-5)
    assert np.isclose(on.hockey_stick(*response, epsilon / 2), c.dp_delta_from_ldp(epsilon, epsilon / 2).value)
    at = c.dp_epsilon_from_ldp(epsilon, 0.01).value
    assert np.isclose(on.hockey_stick(*response, at), 0.01) or at == 0.0
    beta = response[1, 0]
    assert np.isclose(response[0, 0], c.robustness_from_ldp(epsilon, beta).value)
    corner = c.tradeoff_from_gdp(c.gdp_from_ldp(epsilon).value, beta).value
    assert np.isclose(corner, beta, rtol=1e-9)  # the curves touch at the corner of randomised response
    for n in (2, 5):
        many = np.full((n, n), 1.0) + (grow - 1) * np.eye(n)
        many /= many.sum(axis=1, keepdims=True)
        assert np.isclose(np.log(many.max(axis=0).sum()), c.maximal_leakage_from_ldp(epsilon, n).value)
    reveals = np.array([[0.1, 0.0, 0.9 * grow, 0.9], [0.0, 0.1, 0.9, 0.9 * grow]])
    reveals[:, 2:] /= 1 + grow
    assert np.isclose(on.hockey_stick(*reveals, epsilon), 0.1)
    assert np.isclose(on.hockey_stick(*reveals, 0.0), c.total_variation_from_dp(epsilon, 0.1).value)


@pytest.mark.parametrize("xi", [1e-3, 0.3, 1.0, 3.0])
def test_what_is_tight_in_bayesian_notions_is_attained(xi):
    share = 1 / (1 + np.exp(xi))
    pi = np.array([share, 1 - share])
    ratio = np.array([np.exp(xi), np.exp(-xi)])
    q = two_releases(ratio, pi, rare=1e-6)
    assert np.isclose(on.mbp(q, pi)[0], xi, rtol=1e-6)
    assert np.isclose(on.abp(q, pi, np.array([1.0, 0.0])), c.abp_from_mbp(xi).value, rtol=1e-5)
    assert np.isclose(xi * np.tanh(xi / 2), c.pointwise_lmip_from_mbp(xi, unit="nats").value)
    for least in (0.5 * share, share, min(0.5, 1.2 * share), 0.5):  # MBP to LDP
        others = np.array([least, 1 - 2 * least])
        if least < share:  # both ends are reached
            prior = np.array([least, *others])
            middle = (1 - least * (np.exp(xi) + np.exp(-xi))) / (1 - 2 * least)
            ratio = np.array([np.exp(xi), np.exp(-xi), middle])
        else:
            prior = np.array([least, 1 - least])
            ratio = np.array([(1 - (1 - least) * np.exp(-xi)) / least, np.exp(-xi)])
        q = two_releases(ratio, prior, rare=1e-7)
        assert on.mbp(q, prior)[0] <= xi * (1 + 1e-6)
        assert np.isclose(on.ldp(q), c.ldp_from_mbp(xi, least).value, rtol=1e-5)
    beta, rare = 0.01, 1e-9  # robustness: two rare secrets on the two sides of their mean
    mean = min(np.exp(xi) * beta, 1 - np.exp(-xi) * (1 - beta))
    far = min(np.exp(xi) * mean, 1 - np.exp(-xi) * (1 - mean))
    q = np.array([[beta, 1 - beta], [far, 1 - far], [mean, 1 - mean]])
    assert on.mbp(q, np.array([rare, rare, 1 - 2 * rare]))[0] <= xi * (1 + 1e-6) + 1e-7
    assert np.isclose(far, c.robustness_from_mbp(xi, beta).value)


@pytest.mark.parametrize("seed", range(30))
def test_mbp_to_ldp_is_the_optimum_of_its_linear_fractional_problem(seed):
    """Ratios r in [e^-minus, e^plus] of mean 1; every vertex of that polytope for the best prior of a grid."""
    rng = np.random.default_rng(4000 + seed)
    plus, minus = rng.uniform(0.01, 1.5, size=2)
    least = rng.choice([0.1, 0.25, 0.3, 0.36, 0.45, 0.49, 0.5])
    priors = [np.array([least, 1 - least]), np.array([1 - least, least])]
    priors += [np.array([least, p, 1 - least - p]) for p in np.linspace(least, 1 - 2 * least, 7) if least <= 1 / 3]
    priors += [prior[order] for prior in priors if len(prior) == 3 for order in ([1, 0, 2], [2, 1, 0], [0, 2, 1])]

    def best(most, fewest):
        ends, found = np.exp([-fewest, most]), 0.0
        for prior in priors:
            for free in range(len(prior)):
                for corner in np.ndindex(*(2,) * (len(prior) - 1)):
                    ratio = np.insert(ends[list(corner)], free, 0.0)
                    ratio[free] = (1 - prior @ ratio) / prior[free]
                    if ends[0] * (1 - 1e-12) <= ratio[free] <= ends[1] * (1 + 1e-12):
                        found = max(found, np.log(ratio.max() / ratio.min()))
        return found

    assert np.isclose(best(plus, minus), c.ldp_from_mbp_sides(plus, minus, least).value, rtol=1e-9)
    assert np.isclose(best(plus, plus), c.ldp_from_mbp(plus, least).value, rtol=1e-9)


def test_frequencies_of_shared_models_fail_more_often_than_printed():
    from math import comb

    for n, f in ((1, 0.5), (4, 0.5), (20, 0.1), (50, 0.75), (400, 0.3)):
        hits = np.arange(n + 1)
        law = np.array([comb(n, int(k)) * f**k * (1 - f) ** (n - k) for k in hits])
        for e in (0.0, 0.1, 1 / 3, 0.5, 1.0):
            exact = law[np.abs(hits / n - f) >= e * f * (1 - 1e-12)].sum()
            at_most(exact, c.frequency_failure_from_trials(e, f, n))
    fail = 1 - comb(4, 2) / 16  # four models that are hit always or never
    assert c.frequency_failure_from_trials(0.1, 0.5, 10**6, form="as_published").upper < 1e-300
    assert fail <= c.frequency_failure_from_trials(0.1, 0.5, 4).upper


def test_secrets_without_prior_mass_are_outside_of_mbp():
    q, pi = np.array([[0.5, 0.5], [0.4, 0.6], [1.0, 0.0]]), np.array([0.5, 0.5, 0.0])
    xi = on.mbp(q[:2], pi[:2])[0]
    at_most(on.ldp(q[:2]), c.ldp_from_mbp(xi, 0.5))
    assert on.ldp(q[:2]) < c.ldp_from_mbp(xi).upper < np.inf  # all three rows have no finite one
    assumed = c.convert("ldp", "mbp", xi=xi).assumptions
    assert any("otherwise it holds among those secrets only" in assumption.text for assumption in assumed)


def test_the_published_error_of_the_leakage_is_no_smaller_than_that_of_its_expression():
    e = np.linspace(1e-6, 0.999, 400)
    published = c.leakage_error_from_frequency_error(e, form="as_published")
    ratio = published.value / c.leakage_error_from_frequency_error(e).value
    assert ratio.min() > 3.4


def test_the_error_of_c1_is_attained():
    pi = np.array([0.2, 0.3, 0.5])
    for e in (0.01, 0.5, 0.99):
        assert np.isclose(np.sqrt(measure_js((1 - e) * pi, pi)), c.c1_error_from_frequency_error(e).value)


def test_subset_selection_attains_the_capacity_of_many_inputs():
    epsilon, n = 1.3, 100_000
    s = epsilon / (1 - np.exp(-epsilon))
    k = round(n * (s - 1) / np.expm1(epsilon))
    inside = np.exp(epsilon) / (k * np.exp(epsilon) + n - k)  # posterior of each member of the subset
    total = k * inside * np.log(n * inside) + (n - k) * inside / np.exp(epsilon) * np.log(n * inside / np.exp(epsilon))
    assert np.isclose(total, c.ci_lmip_from_ldp(epsilon, unit="nats").value, rtol=1e-9)
    q = np.full((4, 4), 1 / 12) + (3 / 4 - 1 / 12) * np.eye(4)  # MBP with e^xi = 3
    uniform = np.full(4, 0.25)
    assert np.isclose(on.mbp(q, uniform)[0], np.log(3))
    assert np.isclose(on.information(q, uniform), c.pointwise_lmip_from_mbp(np.log(3), unit="nats").value)


def test_published_forms_are_above_the_tight_ones_where_they_hold():
    grid = np.exp(np.linspace(-12, 5, 60))
    for name, extra in (
        ("mbp_from_ldp", ()), ("ldp_from_mbp", ()), ("abp_from_mbp", ()), ("zcdp_from_ldp", ()), ("kl_from_ldp", ()),
        ("rdp_from_ldp", (3.0,)), ("dp_epsilon_from_zcdp", (1e-6,)),
        ("dp_epsilon_from_rdp", (8.0, 1e-6)),
    ):
        published = getattr(c, name)(grid, *extra, form="as_published")
        assert (published.upper >= getattr(c, name)(grid, *extra).lower).all(), name
    share = np.linspace(0.0, 0.99, 50)
    published = c.c1_error_from_frequency_error(share, form="as_published").upper
    assert (published >= c.c1_error_from_frequency_error(share).value).all()
    assert published[np.searchsorted(share, 0.288)] > np.sqrt(np.log(2)) > c.c1_error_from_frequency_error(1.0).value
    least, most = c.abp_from_mbp([0.9193, 0.9195], form="as_published").value
    assert least < np.sqrt(np.log(2)) < most


def test_abp_from_ldp_is_attained_and_beats_the_way_over_mbp():
    epsilon = np.array([1e-3, 0.5, 2.0, 8.0])
    for e, value in zip(epsilon, c.abp_from_ldp(epsilon).value, strict=True):
        share = 1 / (1 + np.exp(e / 2))
        prior, posterior = np.array([share, 1 - share]), np.array([1 - share, share])
        q = two_releases(posterior / prior, prior)
        first = q[:, 0]
        assert np.isclose(np.log(first.max() / first.min()), e)
        assert np.isclose(np.sqrt(on.js(posterior, prior)), value, rtol=1e-6)
    assert (c.abp_from_ldp(epsilon).upper < c.abp_from_mbp(c.mbp_from_ldp(epsilon).upper).lower).all()


def test_what_is_false_fails():
    beta, rare = 0.001, 1e-9
    q = np.array([[beta, 1 - beta], [np.exp(2.0) * beta, 1 - np.exp(2.0) * beta], [np.exp(1.0) * beta, 0]])
    q[2, 1] = 1 - q[2, 0]
    assert on.mbp(q, np.array([rare, rare, 1 - 2 * rare]))[0] <= 1.0 + 1e-6
    assert q[1, 0] > c.robustness_from_mbp(1.0, beta, form="as_published").upper
    edge = 0.62822
    for xi, holds in ((edge - 1e-4, True), (edge + 1e-4, False)):
        tight, printed = c.robustness_from_mbp(xi, 1e-6), c.robustness_from_mbp(xi, 1e-6, form="as_published")
        assert (tight.upper <= printed.value) == holds
    # no leakage without protection, some with another law of the release: 2 C1 - C2 TV is no upper bound
    q, pi = np.array([[0.8, 0.2], [0.2, 0.8]]), np.array([0.5, 0.5])
    open_law, closed_law = pi @ q, np.array([1.0, 0.0])
    c1, truth = on.abp(q, pi, open_law), on.abp(q, pi, closed_law)
    c2, distance = c.c2_from_mbp(on.mbp(q, pi)[0]).value, 0.5 * np.abs(open_law - closed_law).sum()
    printed = c.abp_from_c1(c1, c2, distance, form="as_published")
    assert truth > 0.2 > printed.upper
    # and so its estimate, right to the last digit, is not within the published error of the leakage
    assert abs(printed.value - truth) > c.leakage_error_from_frequency_error(1e-6, form="as_published").upper
    with pytest.raises(ValueError, match="xi must be between 0 and 1; got 1.5. Use form 'tight' for a larger"):
        c.robustness_from_mbp(1.5, 0.1, form="as_published")
