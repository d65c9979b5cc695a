"""Mutual information, closed forms, limits and failures of the integrals of mixtures."""

import math

import mpmath
import numpy as np
import pytest
from flint import arb

from fastpriv import (
    DomainError,
    GaussianMechanism,
    GaussianMixture,
    Pmf,
    entropy,
    jensen_shannon,
    kl_divergence,
    mutual_information,
    notions,
    renyi_divergence,
    special,
)
from fastpriv.distributions import PmfStack
from fastpriv.divergences import label_information
from fastpriv.divergences.one_dimension import quadrature
from kernels.variants import check_same_lines, each_wider_variant
from oracles import mixture as oracle

PRIORS = {
    "two": ([0.0, 1.0], [0.5, 0.5]),
    "skew": ([0.0, 1.0], [1 - 2.0**-33, 2.0**-33]),
    "three": ([-1.0, 0.5, 7.0], [0.25, 0.5, 0.25]),
    "far": ([0.0, 1.0, 1e4], [0.5, 0.5 - 2.0**-20, 2.0**-20]),
}
SIGMAS = (1e-3, 0.05, 0.3, 1.0, 5.0, 100.0, 1e4, 1e8)
STANDARD = GaussianMixture.single(0.0, 1.0)
TWO_SIGMAS = GaussianMixture([0.5, 0.5], [0.0, 3.0], [1.0, 1.25]), GaussianMixture([0.5, 0.5], [1.0, 2.0], 1.0)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", PRIORS)
def test_mutual_information_contains_the_truth(name):
    points, weights = PRIORS[name]
    for sigma in SIGMAS:
        want = oracle.mutual_information((points, weights), sigma)
        got = mutual_information(Pmf(points, weights), sigma, certified=True)
        where = f"{name} sigma={sigma:g}: got {got!r}, want {want}"
        assert got.kind == "certified", where
        assert arb(got.lower) <= want <= arb(got.upper), where
        assert got.width <= 1e-12 * got.value, where


def every_form(points, weights, sigma):
    """The information from each of its entries: an object, a stack, a mixture, a ufunc and a privacy notion."""
    prior = Pmf(points, weights)
    scalar = mutual_information(prior, sigma, certified=True)
    stack = mutual_information(PmfStack([points] * 2, [weights] * 2), sigma, certified=True)
    notion = notions.cd_lmip(prior, GaussianMechanism(sigma, 1.0), certified=True)
    label = label_information(prior.through_gaussian(sigma), certified=True)
    ufunc = special.mixture_mutual_information(weights, points, sigma)
    yield from ((e.lower, e.value, e.upper) for e in (scalar, notion, label))
    yield stack.lower[1], stack.value[1], stack.upper[1]
    yield ufunc[1], ufunc[0], ufunc[2]


def check_rare(points, weights, sigma):
    want = oracle.information_of_rare_inputs(points, weights, sigma)
    slack = abs(want) * arb(2) ** -70
    for lower, value, upper in every_form(points, weights, sigma):
        where = f"{points} {weights} sigma={sigma:g}: got {lower!r}, {value!r}, {upper!r}, want {want}"
        assert arb(float(lower)) - slack <= want <= arb(float(upper)) + slack, where
        assert lower <= value <= upper, where
        assert upper - lower <= 1e-11 * value + 4e-321, where  # subnormal informations err by units


@pytest.mark.few(1)
@pytest.mark.parametrize("rare", [1e-20, 1e-38, 1e-42, 1e-45, 1e-50, 1e-60, 1e-100, 1e-200, 1e-300, 1e-310, 5e-324])
def test_information_of_a_rare_input_is_accurate_relative_to_itself(rare):
    for sigma in (0.04, 0.1, 1.0, 30.0, 1e9):
        check_rare([0.0, 1.0], [1.0 - rare, rare], sigma)
    check_rare([0.0, 1.0, 2.5], [rare, 1.0 - 2.0**-53, 2 * rare], 0.3)  # the sum misses 1 by more than the answer
    check_rare([-8.0, 0.0, 1e-3, 8.0], [rare, 0.5, 0.5, rare], 1.0)


def random_rare_prior(rng):
    n, sigma = int(rng.integers(2, 7)), float(10.0 ** rng.uniform(-3, 3))
    size = 10.0 ** (rng.uniform(-8, -2) if rng.random() < 0.15 else rng.uniform(-2.4, 1.2))
    points = np.sort(np.unique(rng.normal(0, size, n) * sigma))
    weights = 10.0 ** -rng.uniform(0, 3, len(points))
    rare = int(rng.integers(1, len(points)))
    weights[:rare] = 10.0 ** -rng.uniform(2, rng.choice([20, 50, 100, 300]), rare)
    if rng.random() < 0.1:
        weights[0] = 1e-320
    weights = rng.permutation(weights / weights.sum())
    return points.tolist(), weights.tolist(), sigma


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.slow
def test_information_of_random_rare_inputs_contains_the_truth(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        check_rare(*random_rare_prior(rng))


def test_information_lies_within_bounds_that_need_no_integral():
    tiny = 2.0**-170  # prior times KL from above, and the entropy where the points are far apart
    assert mutual_information(Pmf([0.0, 1.0], [1.0, tiny]), 0.1).upper <= 50.0 * tiny * (1 + 1e-8)
    far = mutual_information(Pmf([0.0, 1.0], [1.0, tiny]), 1e-3)
    assert far.lower <= tiny * (170 * math.log(2.0) + 1) <= far.upper * (1 + 1e-8)
    assert far.width <= 1e-11 * far.value


def random_normal(rng):
    return [float(rng.normal(0, 3))], [float(np.exp(rng.normal(0, 1.5)))]


@pytest.mark.parametrize("seed", range(3, 7))
@pytest.mark.slow
def test_closed_forms_of_two_normal_laws_contain_the_truth(seed):
    rng = np.random.default_rng(seed)
    for i in range(12 if seed > 3 else 6):
        first, second = random_normal(rng), random_normal(rng)
        if i % 4 == 0:  # nearly equal
            second = [first[0][0] + 1e-9], [first[1][0] * (1 + 1e-9)]
        p, q = ([1.0], *first), ([1.0], *second)
        cases = [(kl_divergence(GaussianMixture(*p), GaussianMixture(*q)), oracle.kl_divergence(p, q))]
        for order in (0.1, 0.5, 0.9, 1.5, 3.0):
            got = renyi_divergence(GaussianMixture(*p), GaussianMixture(*q), order)
            if math.isinf(got.value):
                assert order * q[2][0] ** 2 <= (order - 1) * p[2][0] ** 2
                continue
            cases.append((got, oracle.renyi(p, q, order)))
        for got, want in cases:
            assert got.kind == "exact"
            assert arb(got.lower) <= want <= arb(got.upper), f"{p} {q}: got {got!r}, want {want}"
            assert got.width <= 1e-12 * got.value


def test_renyi_on_the_edge_of_divergence_is_bounded_from_below():
    p, q = GaussianMixture.single(0.0, 5.0), GaussianMixture([0.5, 0.5], [-1.0, 1.0], 3.0)
    edge = renyi_divergence(p, q, 1.5625)  # 1.5625 / 25 = 0.5625 / 9: the squares cancel, and e^-|x|/16 is left

    def term(x):
        mixed = (mpmath.npdf(x, -1, 3) + mpmath.npdf(x, 1, 3)) / 2
        return mpmath.npdf(x, 0, 5) ** mpmath.mpf(1.5625) * mixed ** mpmath.mpf(-0.5625)

    with mpmath.workdps(30):
        whole = 2 * mpmath.quad(term, [0, 5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560])
        truth = mpmath.log(whole) / mpmath.mpf(0.5625)
    assert edge.lower <= truth <= edge.upper == math.inf
    assert edge.value == pytest.approx(float(truth), rel=1e-12)
    for touching in (GaussianMixture([0.5, 0.5], [-1.0, 0.0], 3.0), GaussianMixture.single(1.0, 3.0)):
        assert renyi_divergence(p, touching, 1.5625).lower == math.inf


def test_renyi_is_infinite_exactly_where_the_integral_diverges():
    p, q = GaussianMixture([0.5, 0.5], [0.0, 1.0], [1.0, 2.0]), GaussianMixture([0.5, 0.5], [0.0, 3.0], [1.0, 1.0])
    edge = 4.0 / 3.0  # a / 4 = a - 1, which 4/3 in doubles misses by a hair, from below
    assert renyi_divergence(p, q, 2.0).value == math.inf
    assert renyi_divergence(p, q, math.nextafter(edge, 2.0)).value == math.inf
    assert math.isfinite(renyi_divergence(p, q, 1.3).value)
    wide = GaussianMixture([0.5, 0.5], [0.0, 1.0], [1.0, 2.0**0.5])
    assert math.isfinite(renyi_divergence(wide, q, 1.9).value)
    assert renyi_divergence(p, GaussianMixture([0.5, 0.5], [0.0, 1.0], [1.0, 2.0]), 50.0).value == 0.0


def test_renyi_of_order_one_is_kl():
    p = GaussianMixture([0.25, 0.75], [0.0, 1.0], 1.0)
    assert renyi_divergence(p, STANDARD, 1.0).value == kl_divergence(p, STANDARD).value


def test_thousands_of_components():
    rng = np.random.default_rng(0)
    n = 1500
    p, q = (
        GaussianMixture(rng.dirichlet(np.ones(n)), rng.normal(0, 100, n), np.exp(rng.normal(0, 0.5, n)))
        for _ in range(2)
    )
    for got in (kl_divergence(p, q), jensen_shannon(p, q), renyi_divergence(p, q, 0.5), entropy(p)):
        assert got.width <= 1e-12 * got.value, got


def test_the_estimate_of_rounding_covers_the_certified_value():
    rng = np.random.default_rng(5)
    w, m = rng.dirichlet(np.ones(6)), rng.normal(0, 2, 6)
    p, q = GaussianMixture(w, m, 1.0), GaussianMixture(w, m + 1e-3, 1.0)
    for function in (kl_divergence, jensen_shannon):
        fast, proved = function(p, q), function(p, q, certified=True)
        assert proved.kind == "certified"
        assert fast.lower <= proved.upper
        assert proved.lower <= fast.upper


@each_wider_variant
def test_every_instruction_set_gives_the_same_bits(variant):
    code = (
        "from fastpriv import GaussianMixture,Pmf,kl_divergence,jensen_shannon,renyi_divergence;"
        "from fastpriv import mutual_information,entropy;p=GaussianMixture([.25,.75],[0,1],[1,2]);"
        "q=GaussianMixture([.5,.5],[0,1.5],[2,2]);"
        "print([f(p,q).value.hex() for f in (kl_divergence,jensen_shannon)],renyi_divergence(p,q,1.5).value.hex(),"
        "mutual_information(Pmf([0,1,3],[.25,.25,.5]),.7).value.hex(),entropy(p).value.hex())"
    )
    check_same_lines(code, 1, variant)


def test_bad_input():
    with pytest.raises(DomainError, match=r"p must be a GaussianMixture or a Density; got 1\.0"):
        kl_divergence(1.0, STANDARD)
    with pytest.raises(DomainError, match=r"prior must be a Pmf; got \[0"):
        mutual_information([0.5, 0.5], 1.0)
    with pytest.raises(DomainError, match=r"sigma must be positive and finite; got 0\.0"):
        mutual_information(Pmf([0.0, 1.0], [0.5, 0.5]), 0.0)
    with pytest.raises(DomainError, match=r"order must be positive; got -1\.0"):
        renyi_divergence(STANDARD, STANDARD, -1.0)
    with pytest.raises(DomainError, match=r"certified must be True or False"):
        jensen_shannon(STANDARD, STANDARD, certified=1)


@pytest.mark.parametrize("panels", [1, 3, 6])
def test_running_out_of_panels_says_so(panels):
    p, q = TWO_SIGMAS
    found, _ = quadrature.quantity_and_status("kl", p, q, certified=True, max_panels=panels)
    assert found.kind == "certified"
    assert found.method.endswith("budget spent")
    assert found.lower <= kl_divergence(p, q).value <= found.upper


def test_a_spent_budget_leaves_true_bounds(monkeypatch):
    p, q = TWO_SIGMAS
    for function in (kl_divergence, jensen_shannon, lambda p, q: renyi_divergence(p, q, 2.0), lambda p, _: entropy(p)):
        full = function(p, q)
        for work in (1, 100, 1000):
            monkeypatch.setattr(quadrature, "MAX_EXPONENTIALS", work)
            rough = function(p, q)
            assert rough.lower <= full.lower <= full.value <= full.upper <= rough.upper, (full, rough)
            assert rough.lower < rough.value < rough.upper, rough
        monkeypatch.undo()
