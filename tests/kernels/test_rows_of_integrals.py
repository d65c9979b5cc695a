"""Rows of divergences, entropies and information of mixtures: against ball arithmetic, each other, and as ufuncs."""

import hashlib
import json
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from flint import arb

import fastpriv.special as special
from fastpriv import GaussianMixture, Pmf, entropy, jensen_shannon, kl_divergence, mutual_information, renyi_divergence
from fastpriv.kernels import _quadrature
from kernels.variants import each_wider_variant, printed
from oracles import mixture as oracle
from oracles.crossings import exact, working_precision

RATES = (1e-17, 1e-12, 2.0**-30, 0.01, 0.5, 1 - 2.0**-10, 1 - 1e-16)
SIGMAS = (1e-3, 0.04, 0.11, 0.3, 1.0, 30.0, 1e6)
ORDERS = (0.3, 1.5, 8.0)
WIDTH = 1e-12


def row(quantity, p, q=None, order=0.0):
    columns = [np.array(column, dtype=float) for column in (*p, *(() if q is None else q))]
    return _quadrature.row_integral(_quadrature.KINDS[quantity], *columns, order=order, certified=True)


def log_mass(p):
    with working_precision(300):
        return exact(sum(map(Fraction, p[0]))).log()


def truth(quantity, p, q=None, order=0.0):
    """In ball arithmetic; Renyi divergences and informations are those of the weights divided by their sums."""
    if quantity == "kl":
        return oracle.kl_divergence(p, q)
    if quantity == "js":
        return oracle.js(p, q)
    if quantity == "entropy":
        return oracle.entropy(p)
    if quantity == "information":
        value = oracle.mutual_information((p[1], p[0]), p[2][0], bits=160)  # of which the mass takes some
        with working_precision(300):
            mass = exact(sum(map(Fraction, p[0])))
            return value / mass + mass.log()
    value = oracle.renyi(p, q, order, bits=160)  # the same
    with working_precision(300):
        a = exact(order)
        return value - (a * log_mass(p) + (1 - a) * log_mass(q)) / (a - 1)


def binomial_renyi(rate, sigma, order):
    """Renyi divergence of a whole order of (1 - rate) N(0, sigma^2) + rate N(1, sigma^2) from N(0, sigma^2), scaled."""
    with working_precision(3000):
        zero, one = exact(1 - rate), exact(rate)
        total, square, order = zero + one, 1 / exact(sigma) ** 2, int(order)
        terms = (
            arb(comb(order, k)) * (zero / total) ** (order - k) * (one / total) ** k * (square * k * (k - 1) / 2).exp()
            for k in range(order + 1)
        )
        return sum(terms, arb(0)).log() / (order - 1)


def gap(*mixtures):
    """What the weights may be off 1 by: such a change of all weights is within the bounds, too."""
    return max(abs(float(sum(map(Fraction, p[0])) - 1)) for p in mixtures)


def check(quantity, p, q=None, order=0.0, sharp=True, want=None):
    value, lower, upper, status, method, _, evaluations = row(quantity, p, q, order)
    want = truth(quantity, p, q, order) if want is None else want
    where = f"{quantity} order={order:g} of {p} and {q}: [{lower!r}, {upper!r}], want {want}, bits {method}"
    off = gap(*((p,) if q is None else (p, q)))
    sharp = sharp and off * off < 1e-14 * abs(value)  # else rounding of the weights swamps the digits
    assert status == _quadrature.SETTLED or not sharp, where
    assert lower <= value <= upper, where
    with working_precision(3000):
        assert want.rel_accuracy_bits() > 60, where
        assert arb(lower) <= want, where
        assert want <= arb(upper), where
    if sharp:
        assert upper - lower <= (WIDTH + 40 * off) * (abs(value) + (1.0 if quantity == "entropy" else 0.0)), where
    return method, evaluations


def subsampled(rate, sigma):
    return ([1 - rate, rate], [0.0, 1.0], [sigma, sigma]), ([1.0], [0.0], [sigma])


# every case costs the oracle some tenths of a second; each rate and each sigma stands in some of the fast ones
POISSON = [
    pytest.param(rate, sigma, marks=() if (i + 3 * j) % 7 == 0 else pytest.mark.slow, id=f"{rate:g}-{sigma:g}")
    for (i, rate), (j, sigma) in product(enumerate(RATES), enumerate(SIGMAS))
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("rate", "sigma"), POISSON)
def test_two_points_against_one_contain_the_truth(rate, sigma):
    p, q = subsampled(rate, sigma)
    for first, second in ((p, q), (q, p)):
        check("kl", first, second, sharp=rate >= 1e-12)
        for order in ORDERS if sigma > 0.1 and rate >= 1e-12 else ():
            check("renyi", first, second, order, sharp=rate >= 1e-12 and sigma > 0.01)
    if sigma > 0.1:  # where the oracle can
        check("js", p, q, sharp=rate >= 1e-12)
    check("entropy", p)
    check("information", p, sharp=rate >= 1e-12)


@pytest.mark.few(16)
@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("rate", [1e-300, 1e-160, 1e-100, 1e-30, *RATES])
def test_renyi_divergences_of_whole_orders_are_binomial_sums(rate, sigma):
    p, q = subsampled(rate, sigma)
    for order in (2, 3, 8, 33, 200):
        want = binomial_renyi(rate, sigma, order)
        method, _ = check("renyi", p, q, float(order), want=want, sharp=rate >= 1e-100 and sigma > 0.01)
        assert method == _quadrature.BINOMIAL_SUM or sigma < 0.05


def hostile_setting(rng, i):
    """Weights, the two means and sigma, and a whole order of a sampled Gaussian."""
    rate = (10 ** rng.uniform(-300, 0), rng.uniform(), 1 - 10 ** rng.uniform(-15.9, 0), 1 - 2.0**-53,
            5e-324 * rng.integers(1, 100), 10 ** rng.uniform(-5, -1))[i % 6]
    sigma = 10 ** (rng.uniform(-3, 8) if i % 2 else rng.uniform(-1, 1))
    base, mean = float(rng.choice([0.0, 1e-9, -2.7])), float(rng.choice([1.0, -3.3, 1e-8, 7.1]))
    order = 1024 if i % 10 == 9 else int(2 ** rng.uniform(1, 10))
    if i % 7 == 6:  # the ratio of these weights is no double
        return (5e-324, 1.0), (base, mean), sigma, order
    return (1 - rate, rate), (base, mean), sigma, order


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 12))])
def test_hostile_settings_of_binomial_sums(seed):
    rng = np.random.default_rng(seed)
    settings = [hostile_setting(rng, i) for i in range(84)]
    w, m, sigma, order = (np.array(column) for column in zip(*settings, strict=True))
    n, t, one = m[:, :1], np.stack([sigma] * 2, axis=1), np.ones(1)
    bounds = np.array(special.mixture_renyi(w, m, t, one, n, sigma[:, None], order[:, None].astype(float)))[..., 0]
    for i, ((first, rate), (base, mean), length, whole) in enumerate(settings):
        alone = row("renyi", (w[i], m[i], t[i]), (one, n[i], sigma[i : i + 1]), float(whole))
        assert alone[:3] == tuple(bounds[:, i]), settings[i]
        assert alone[4] == _quadrature.BINOMIAL_SUM
        with working_precision(240):
            odds, square = exact(rate) / exact(first), ((exact(mean) - exact(base)) / exact(length)) ** 2
            term, growth, step, x = (1 + odds) ** -whole, arb(1), square.exp(), arb(0)
            for k in range(1, whole + 1):
                term *= odds * (whole - k + 1) / k
                x += term * (growth - 1 if k > 1 and growth > 2 else (square * (k * (k - 1)) / 2).expm1())
                growth *= step**k
            want = x.log1p() / (whole - 1)
            value, lower, upper = bounds[:, i].tolist()
            assert arb(lower) <= want <= arb(upper), (settings[i], lower, upper, want)
        assert upper - lower <= 4e-12 * value + 1e-322


@pytest.mark.parametrize("sigma", [1e-3, 1.0, 1e8])
def test_orders_of_a_pair_are_those_of_single_calls(sigma):
    p, q = GaussianMixture([0.99, 0.01], [0.0, 1.0], sigma), GaussianMixture.single(0.0, sigma)
    orders = [[2.0, 3.0, 1024.0, 0.5], [1.0, 1.5, np.inf, 64.0]]
    found = renyi_divergence(p, q, orders)
    for position, order in np.ndenumerate(np.array(orders)):
        alone = renyi_divergence(p, q, float(order))
        assert (found[position].value, found[position].lower, found[position].upper) == (
            alone.value, alone.lower, alone.upper)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 30.0, 1e6])
@pytest.mark.parametrize("rate", [1e-300, 1e-160, 1e-100, 1e-60])
def test_tiny_rates_leave_the_first_term_of_the_series(rate, sigma):
    p, q = subsampled(rate, sigma)
    with working_precision(300):
        square = (exact(rate) ** 2 * (1 / exact(sigma) ** 2).expm1()) * (1 + arb(0, 1e-40))
        wants = {"kl": square / 2, "js": square / 8}
    for quantity, want in wants.items():
        for pair in ((p, q), (q, p)):
            check(quantity, *pair, want=want, sharp=False)


@pytest.mark.slow
def test_subsampled_gaussians_need_few_nodes():
    for rate, sigma in product((1e-10, 1e-3, 0.5), (0.5, 1.0, 4.0, 100.0)):
        p, q = subsampled(rate, sigma)
        for first, second in ((p, q), (q, p)):
            method, evaluations = check("kl", first, second)
            assert method == _quadrature.TRAPEZOID
            assert evaluations <= 170


def mixture_of(rng, n, spread, sigma):
    return rng.dirichlet(np.full(n, 0.5)).tolist(), (spread * sigma * rng.normal(size=n)).tolist(), [sigma] * n


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [3, 0, 1, 2, 4, 5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 60))]
)
def test_one_sigma_contains_the_truth(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 7)), int(rng.integers(2, 7))
    spread, sigma = float(np.exp(rng.uniform(-12, 1.2))), float(2.0 ** rng.integers(-30, 30))
    p, q = mixture_of(rng, n, spread, sigma), mixture_of(rng, m, spread, sigma)
    if seed % 3 == 0:  # means in common, and weights that differ little
        means = [*q[1], *(spread * sigma * rng.normal(size=n)).tolist()]
        w = np.concatenate([0.9 * np.array(q[0]), 0.1 * rng.dirichlet(np.ones(n))])
        p = (w / w.sum()).tolist(), means, [sigma] * len(means)
    check("kl", p, q)
    check("js", p, q)
    for order in (0.2, 0.7, 1.3, 2.0, 5.0):
        check("renyi", p, q, order)
    check("entropy", p)
    check("information", q)


def test_trapezoidal_rule_and_panels_agree():
    rng = np.random.default_rng(3)
    served = 0
    for _ in range(60):
        sigma = 1.0
        p, q = (mixture_of(rng, int(rng.integers(2, 9)), float(rng.uniform(0.2, 2.5)), sigma) for _ in range(2))
        near = (*p[:2], [1.0] * (len(p[0]) - 1) + [1.0 + 2.0**-52])  # an ulp away, which the rule does not take
        for quantity, order in (("kl", 0.0), ("js", 0.0), ("renyi", 0.4), ("renyi", 3.0), ("entropy", 0.0)):
            pair = (p, None) if quantity == "entropy" else (p, q)
            found, other = row(quantity, *pair, order), row(quantity, near, pair[1], order)
            assert other[4] & _quadrature.PANELS
            served += found[4] == _quadrature.TRAPEZOID
            assert found[0] == pytest.approx(other[0], rel=1e-11, abs=1e-12)
    assert served > 200


def of_two_gaussians(p, q, order):
    """KL (order 1) or Renyi divergence of two Gaussians in ball arithmetic; None where it is infinite."""
    with working_precision(600):
        (m, s), (n, t), a = map(exact, (p[1][0], p[2][0])), map(exact, (q[1][0], q[2][0])), exact(order)
        if order == 1.0:
            return ((s / t) ** 2 - 1 - 2 * (s / t).log() + ((m - n) / t) ** 2) / 2
        mixed = a * t * t + (1 - a) * s * s
        if not mixed > 0:
            return None
        logs = (mixed.log() - 2 * (1 - a) * s.log() - 2 * a * t.log()) / (2 * (1 - a))
        return a * (m - n) ** 2 / (2 * mixed) + logs


@pytest.mark.slow
def test_two_gaussians_contain_the_truth():
    rng = np.random.default_rng(1)
    closed = 0
    for _ in range(600):
        s, t = np.exp(rng.normal(0, 10.0 ** rng.uniform(-4, 1), 2)).tolist()
        p, q = ([1.0], [float(rng.normal())], [s]), ([1.0], [float(rng.normal())], [t])
        if rng.random() < 0.5:
            q = [1.0], [p[1][0] + 1e-9 * float(rng.normal())], [s * (1 + 10.0 ** rng.uniform(-15, -1))]
        for order in (1.0, 0.4, 0.7, 1.01, 2.0, 40.0):
            want = of_two_gaussians(p, q, order)
            if want is None:
                assert row("renyi", p, q, order)[2] == np.inf
                continue
            method, _ = check("kl" if order == 1.0 else "renyi", p, q, order, sharp=False, want=want)
            closed += method == _quadrature.CLOSED_FORM
            if method == _quadrature.CLOSED_FORM:
                _, lower, upper, *_ = row("kl" if order == 1.0 else "renyi", p, q, order)
                assert upper - lower <= 1e-13 * upper
    assert closed > 1500


# the ufuncs

COLUMNS = {"mixture_kl": 6, "mixture_jensen_shannon": 6, "mixture_renyi": 7, "mixture_entropy": 3,
           "mixture_mutual_information": 3}


def stack(rng, shape, k, one_sigma):
    w = rng.dirichlet(np.ones(k), shape)
    s = np.exp(rng.normal(0, 0.4, (*shape, 1 if one_sigma else k)))
    return w, rng.normal(0, 1.5, (*shape, k)), np.ascontiguousarray(np.broadcast_to(s, (*shape, k)))


def arguments(name, rng, shape=(5,), one_sigma=False):
    first = stack(rng, shape, 3, one_sigma)
    if name == "mixture_mutual_information":
        return first[0], first[1], first[2][..., 0]
    if name == "mixture_entropy":
        return first
    second = stack(rng, shape, 4, one_sigma)
    if one_sigma:
        second = (*second[:2], np.ascontiguousarray(np.broadcast_to(first[2][..., :1], (*shape, 4))))
    return (*first, *second, *((np.array([0.3, 1.0, 2.0]),) if name == "mixture_renyi" else ()))


@pytest.mark.parametrize("one_sigma", [False, True])
@pytest.mark.parametrize("name", COLUMNS)
def test_ufuncs_are_the_functions_of_single_mixtures(name, one_sigma):
    values = arguments(name, np.random.default_rng(1), one_sigma=one_sigma)
    found = getattr(special, name)(*values)
    for i in range(5):
        p = GaussianMixture(*(c[i] for c in values[:3])) if name != "mixture_mutual_information" else None
        q = GaussianMixture(*(c[i] for c in values[3:6])) if len(values) > 5 else None
        if name == "mixture_renyi":
            wants = [renyi_divergence(p, q, order, certified=True) for order in values[6]]
        elif name == "mixture_mutual_information":
            order = np.argsort(values[1][i])
            wants = [mutual_information(Pmf(values[1][i][order], values[0][i][order]), values[2][i], certified=True)]
        elif name == "mixture_entropy":
            wants = [entropy(p, certified=True)]
        else:
            function = kl_divergence if name == "mixture_kl" else jensen_shannon
            wants = [function(p, q, certified=True)]
        for j, want in enumerate(wants):
            got = [out[i, j] if out.ndim == 2 else out[i] for out in found]
            if np.isinf(got[2]) and not np.isinf(want.upper):  # not decided in doubles
                assert got[1] <= want.lower
            elif name == "mixture_mutual_information":  # the order of the points may differ
                assert got == pytest.approx([want.value, want.lower, want.upper], rel=1e-13)
            else:
                assert got == [want.value, want.lower, want.upper], (name, i)


@pytest.mark.parametrize("name", COLUMNS)
def test_ufuncs_broadcast_and_take_any_layout(name):
    function, rng = getattr(special, name), np.random.default_rng(2)
    values = arguments(name, rng, (2, 3))
    want = function(*values)
    assert want[0].shape == ((2, 3, 3) if name == "mixture_renyi" else (2, 3))
    strided = [np.asfortranarray(np.repeat(value, 2, axis=0))[::2] for value in values[: COLUMNS[name]]]
    if name == "mixture_renyi":
        strided[6] = values[6]
    out = tuple(np.full(want[0].shape[::-1], 5.0).T for _ in range(3))
    got = function(*strided, out=out)
    for one, other, given in zip(want, got, out, strict=True):
        np.testing.assert_array_equal(one, other)
        assert other is given
    single = function(*(value[1, 2] for value in values[:6]), *values[6:])
    for one, other in zip(want, single, strict=True):
        np.testing.assert_array_equal(one[1, 2], other)
    if len(values) > 3 and name != "mixture_renyi":
        first = [value[0, 0] for value in values[:3]]
        grid = function(*first, *values[3:])
        np.testing.assert_array_equal(grid[0][0, 0], want[0][0, 0])


def test_total_variation_is_the_hockey_stick_divergence_at_0():
    rng = np.random.default_rng(6)
    for one_sigma in (False, True):
        values = arguments("mixture_kl", rng, (4, 3), one_sigma)
        values[0][1, 1] = 2.0
        out = tuple(np.full((3, 4), 5.0).T for _ in range(3))
        found = special.mixture_total_variation(*values, out=out)
        want = special.mixture_hockey_stick(*values, [0.0])
        for one, other, given in zip(found, want, out, strict=True):
            np.testing.assert_array_equal(one, other[..., 0])
            assert one is given
        assert np.isnan(found[0][1, 1])
        first = [value[0, 0] for value in values]
        value, lower, upper = special.mixture_total_variation(*first)
        truth = oracle.total_variation(first[:3], first[3:])
        off = gap(first[:3], first[3:])
        assert arb(lower) <= truth + 2 * off
        assert truth - 2 * off <= arb(upper)
        assert lower <= value <= upper
        assert upper - lower <= 1e-11 * value


def test_orders_are_a_number_or_the_last_axis():
    p, q = subsampled(0.01, 1.0)
    one = special.mixture_renyi(*p, *q, 2.0)
    many = special.mixture_renyi(*p, *q, [[2.0, 3.0], [1.0, 0.5]])
    assert np.shape(one[0]) == ()
    assert many[0].shape == (2, 2)
    assert one[0] == many[0][0, 0]
    assert many[0][1, 0] == special.mixture_kl(*p, *q)[0]


def test_padding_and_equal_pairs():
    p, q = subsampled(0.01, 1.0)
    padded = [0.0, *p[0], 0.0], [7.0, *p[1], -5.0], [1.0, *p[2], 3.0]
    for name in ("mixture_kl", "mixture_jensen_shannon"):
        assert getattr(special, name)(*padded, *q) == getattr(special, name)(*p, *q)
        assert getattr(special, name)(*padded, *p) == (0.0, 0.0, 0.0)
    assert special.mixture_entropy(*padded) == special.mixture_entropy(*p)
    # the same measure in another order, and split into parts
    turned = p[0][::-1], p[1][::-1], p[2]
    value, lower, upper = special.mixture_kl(*p, *turned)
    assert 0.0 == lower <= value <= upper < 1e-30
    value, lower, upper = special.mixture_kl([0.25, 0.25, 0.5], [0, 0, 1], [1, 1, 1], [0.5, 0.5], [0, 1], [1, 1])
    assert 0.0 == lower <= value <= upper < 1e-30
    assert special.mixture_mutual_information([1.0, 0.0], [3.0, 4.0], 1.0) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("bad", [
    ([0.5, 0.6], [0, 1], [1, 1]), ([-0.5, 1.5], [0, 1], [1, 1]), ([0.5, np.nan], [0, 1], [1, 1]),
    ([0.5, 0.5], [0, np.inf], [1, 1]), ([0.5, 0.5], [0, 1], [1, 0.0]), ([0.5, 0.5], [0, 1], [1, -1]),
    ([0.5, 0.5], [0, 1], [1, np.inf]), ([0.0, 0.0], [0, 1], [1, 1]),
])
def test_an_invalid_row_is_nan_and_others_are_not(bad):
    good = [0.25, 0.75], [0.0, 1.0], [1.0, 2.0]
    both = [np.array(pair, dtype=float) for pair in zip(bad, good, strict=True)]
    single = [1.0], [0.0], [1.0]
    for outs in (
        special.mixture_kl(*both, *single), special.mixture_kl(*single, *both), special.mixture_entropy(*both),
        special.mixture_jensen_shannon(*both, *single), special.mixture_renyi(*both, *single, 0.5),
    ):
        for out in outs:
            assert np.isnan(out).tolist() == [True, False]
    assert all(np.isnan(out) for out in special.mixture_renyi(*good, *single, [-1.0, 0.0, np.nan])[0])


def test_tails_of_renyi():
    p, q = ([0.5, 0.5], [0.0, 1.0], [1.0, 2.0]), ([1.0], [0.0], [1.0])
    assert special.mixture_renyi(*p, *q, 2.0) == (np.inf, np.inf, np.inf)
    value, lower, upper = special.mixture_renyi(*p, *q, 4 / 3)  # a hair from the edge
    assert lower == 0.0
    assert upper == np.inf
    assert lower <= value <= upper
    assert np.isfinite(special.mixture_renyi(*p, *q, 1.25)[2])
    assert np.array(special.mixture_renyi(*p, *q, [np.inf, 1e301]))[1:].tolist() == [[0.0, np.inf], [np.inf, np.inf]]


def digest(thousands):
    """Digest of all ufuncs on rows of many kinds."""
    rng, out = np.random.default_rng(5), {}
    for name, one_sigma in product(COLUMNS, (False, True)):
        with np.errstate(all="raise"):
            found = getattr(special, name)(*arguments(name, rng, (thousands,), one_sigma))
        out[f"{name} {one_sigma}"] = hashlib.sha256(np.array(found).tobytes()).hexdigest()
    rates, sigmas = 10.0 ** rng.uniform(-20, 0, thousands), 10.0 ** rng.uniform(-2, 3, thousands)
    p = np.stack([1 - rates, rates], axis=1), np.array([0.0, 1.0]), np.stack([sigmas, sigmas], axis=1)
    q = np.array([1.0]), np.array([0.0]), sigmas[:, None]
    for name, pair in (("kl", (*p, *q)), ("lk", (*q, *p)), ("js", (*p, *q))):
        function = special.mixture_jensen_shannon if name == "js" else special.mixture_kl
        out[name] = hashlib.sha256(np.array(function(*pair)).tobytes()).hexdigest()
    settings = zip(*(hostile_setting(rng, i) for i in range(150)), strict=True)
    w, m, sigma, order = (np.array(column) for column in settings)
    sums = special.mixture_renyi(w, m, np.stack([sigma] * 2, axis=1), np.ones(1), m[:, :1], sigma[:, None],
                                 order[:, None].astype(float))
    out["binomial"] = hashlib.sha256(np.array(sums).tobytes()).hexdigest()
    out["renyi"] = hashlib.sha256(np.array(special.mixture_renyi(*q, *p, 4.5)).tobytes()).hexdigest()
    return out


@pytest.mark.slow
@each_wider_variant
def test_every_instruction_set_gives_the_same_bits(variant):
    code = "import json; from kernels import test_rows_of_integrals as t; print(json.dumps(t.digest(150)))"
    plain, found = (json.loads(printed(code, name)) for name in ("baseline", variant))
    assert plain == found


def test_rows_of_a_stack():
    rng = np.random.default_rng(8)
    values = arguments("mixture_kl", rng, (40,))
    w, m, s, v, n, t = values
    w[7, 0] = 2.0
    value, lower, upper = (np.empty(40) for _ in range(3))
    status, method = np.empty(40, dtype=np.intc), np.empty(40, dtype=np.intc)
    one = np.broadcast_to(v[:1], v.shape), np.broadcast_to(n[:1], n.shape), np.broadcast_to(t[:1, :1], (40, 1))
    _quadrature.stack_integrals(
        _quadrature.KINDS["kl"], w, m, s, *one, None, value, lower, upper, status, method, certified=True
    )
    want = special.mixture_kl(w, m, s, v[0], n[0], np.broadcast_to(t[0, 0], 4))
    for got, other in zip((value, lower, upper), want, strict=True):
        np.testing.assert_array_equal(got, other)
    assert status[7] == _quadrature.INVALID
    assert np.isnan(value[7])
    assert set(np.delete(status, 7)) == {_quadrature.SETTLED}
    rough = value.copy()
    _quadrature.stack_integrals(
        _quadrature.KINDS["kl"], w, m, s, *one, None, rough, lower, upper, status, method, max_work=100
    )
    good = np.arange(40) != 7
    assert ((lower <= value) & (value <= upper))[good].all()
    assert (method[good] & _quadrature.BUDGET_SPENT).all()


def test_the_unit_of_length_does_not_matter():
    p, q = ([0.25, 0.75], [0.0, 1.0], [1.0, 2.0]), ([0.5, 0.5], [-1.0, 3.0], [2.0, 2.0])
    for scale in (2.0**-900, 2.0**-30, 2.0**40, 2.0**900):
        scaled = [([*w], [scale * x for x in m], [scale * x for x in s]) for w, m, s in (p, q)]
        for quantity, order in (("kl", 0.0), ("js", 0.0), ("renyi", 0.5), ("renyi", 1.2)):
            want, got = row(quantity, p, q, order), row(quantity, *scaled, order)
            assert got[0] == pytest.approx(want[0], rel=1e-13)
        shift = row("entropy", scaled[0])[0] - row("entropy", p)[0]
        assert shift == pytest.approx(np.log2(scale) * np.log(2), rel=1e-13)
