"""The ball-arithmetic truth against closed forms, against mpmath, and against its own tables."""

import random

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

from oracles import mixture
from oracles.mixture_pairs import EPSILONS, dyadic, mix, pairs, priors
from oracles.tables import rows
from oracles.truth import INTEGRALS, bounds
from sizes import few_or_all


@pytest.fixture(autouse=True)
def _digits():
    before = mpmath.mp.dps, ctx.prec
    mpmath.mp.dps, ctx.prec = 40, 256
    yield
    mpmath.mp.dps, ctx.prec = before


def number(ball):
    return mpmath.mpf(ball.mid().str(45, radius=False))


def check_agreement(ball, want, tolerance=1e-24):
    got = number(ball)
    assert ball.is_finite()
    assert ball.rel_accuracy_bits() >= 83, ball
    assert abs(got - want) <= tolerance * abs(want), f"got {ball.str(35)}, want {mpmath.nstr(want, 35)}"


SINGLES = [
    (0.0, 1.0, 1.0, 1.0),
    (0.3, 1.1, -0.2, 1.1),
    (0.0, 1.0, 0.0, 2.0),
    (1.5, 0.25, -1.0, 3.0),
    (1e8, 1.0, 1e8 + 2, 1.5),
]


def gaussian(m, s):
    return [1.0], [m], [s]


@pytest.mark.parametrize(("m", "s", "n", "t"), SINGLES)
def test_two_gaussians_have_the_closed_forms(m, s, n, t):
    p, q = gaussian(m, s), gaussian(n, t)
    m, s, n, t = map(mpmath.mpf, (m, s, n, t))
    check_agreement(mixture.kl_divergence(p, q), mpmath.log(t / s) + (s**2 + (m - n) ** 2) / (2 * t**2) - 0.5)
    check_agreement(mixture.entropy(p), mpmath.log(2 * mpmath.pi * mpmath.e * s**2) / 2)
    for order in (0.5, 2.0, 3.5):
        variance = (1 - order) * s**2 + order * t**2
        if variance <= 0:
            assert mixture.renyi(p, q, order) == arb.pos_inf()
            continue
        want = (
            mpmath.log(t / s) + mpmath.log(t**2 / variance) / (2 * (order - 1)) + order * (m - n) ** 2 / (2 * variance)
        )
        check_agreement(mixture.renyi(p, q, order), want)


def cdf(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 0.1, 1.0, 10.0, 300.0])
@pytest.mark.parametrize("r", [1e-6, 0.1, 1.0, 4.0])
def test_shifted_gaussians_have_the_balle_wang_curve(r, epsilon):
    mpmath.mp.dps = 60
    c = mpmath.mpf(epsilon) / (2 * mpmath.mpf(r))
    want = cdf(r - c) - mpmath.exp(mpmath.mpf(epsilon)) * cdf(-r - c)
    got = mixture.hockey_stick(gaussian(2 * r, 1.0), gaussian(0.0, 1.0), epsilon)
    if abs(want) > mpmath.mpf("1e-20000"):
        check_agreement(got, want, mpmath.mpf("1e-23"))
    assert got > 0
    assert got.rel_accuracy_bits() > 80
    if epsilon == 0:
        distance = mixture.total_variation(gaussian(2 * r, 1.0), gaussian(0.0, 1.0))
        check_agreement(distance, mpmath.erf(r / mpmath.sqrt(2)))


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.69, 2.0])
def test_unequal_gaussians_follow_their_two_crossings(epsilon):
    # N(0, 1) against N(1/2, 4): log p/q = log 2 - x^2/2 + (x - 1/2)^2/8
    inside = mpmath.mpf(1) / 64 + mpmath.mpf(3) / 2 * (mpmath.log(2) - epsilon + mpmath.mpf(1) / 32)
    real = inside > 0
    low, high = ((-mpmath.mpf(1) / 8 + sign * mpmath.sqrt(inside)) * 4 / 3 for sign in (-1, 1))
    got = mixture.hockey_stick(gaussian(0.0, 1.0), gaussian(0.5, 2.0), epsilon)
    if not real:
        assert got.is_zero()
        return

    def mass(m, s):
        return cdf((high - m) / s) - cdf((low - m) / s)

    check_agreement(got, mass(0, 1) - mpmath.exp(epsilon) * mass(mpmath.mpf("0.5"), 2))
    found = mixture.crossings(gaussian(0.0, 1.0), gaussian(0.5, 2.0), epsilon)
    for ball, want in zip(found, (low, high), strict=True):
        assert abs(number(ball) - want) < mpmath.mpf("1e-30")


def density(m):
    rows = [tuple(map(mpmath.mpf, map(float, row))) for row in zip(*m, strict=True)]
    return lambda x: mpmath.fsum(w * mpmath.npdf(x, mean, s) for w, mean, s in rows)


def quadrature(f, *mixtures):
    points = {
        float(mean + k * s) for m in mixtures for _, mean, s in zip(*m, strict=True) for k in (-14, -5, -2, 0, 2, 5, 14)
    }
    with mpmath.workdps(25):
        return mpmath.quad(f, sorted(points))


MILD = (mix([0.25, 0.75], [0.0, 1.5], [1.0, 0.75]), mix([0.5, 0.5], [0.25, 1.0], [1.25, 1.5]))


@pytest.mark.slow
def test_mixtures_agree_with_mpmath():
    p, q = density(MILD[0]), density(MILD[1])
    close = mpmath.mpf("1e-18")
    check_agreement(mixture.kl_divergence(*MILD), quadrature(lambda x: p(x) * mpmath.log(p(x) / q(x)), *MILD), close)
    check_agreement(mixture.entropy(MILD[0]), -quadrature(lambda x: p(x) * mpmath.log(p(x)), *MILD), close)

    def js(x):
        a, b = p(x), q(x)
        return (a * mpmath.log(2 * a / (a + b)) + b * mpmath.log(2 * b / (a + b))) / 2

    check_agreement(mixture.js(*MILD), quadrature(js, *MILD), close)
    cubes = quadrature(lambda x: p(x) ** 3 / q(x) ** 2, *MILD)
    check_agreement(mixture.renyi(*MILD, 3.0), mpmath.log(cubes) / 2, close)
    a = mpmath.exp(mpmath.mpf("0.25"))
    cuts = [number(ball) for ball in mixture.crossings(*MILD, 0.25)]
    with mpmath.workdps(25):
        pieces = [
            mpmath.quad(lambda x: p(x) - a * q(x), piece) for piece in zip([-15, *cuts], [*cuts, 15], strict=True)
        ]
    check_agreement(mixture.hockey_stick(*MILD, 0.25), mpmath.fsum(max(piece, 0) for piece in pieces), close)


@pytest.mark.slow
def test_notions_agree_with_mpmath():
    x, w, sigma = [-1.0, 0.0, 2.0], [0.25, 0.5, 0.25], 1.5
    out = density((w, x, [sigma] * 3))
    singles = [density(gaussian(point, sigma)) for point in x]
    m = (w, x, [sigma] * 3)
    want = quadrature(
        lambda y: mpmath.fsum(a * f(y) * mpmath.log(f(y) / out(y)) for a, f in zip(w, singles, strict=True)), m
    )
    check_agreement(mixture.mutual_information((x, w), sigma), want, mpmath.mpf("1e-18"))
    shares = [quadrature(lambda y, f=f: singles[0](y) * f(y) / out(y), m) for f in singles]
    posterior = [a * share for a, share in zip(w, shares, strict=True)]
    assert abs(mpmath.fsum(posterior) - 1) < 1e-18
    js = (
        sum(
            a * mpmath.log(2 * a / (a + b)) + b * mpmath.log(2 * b / (a + b)) for a, b in zip(posterior, w, strict=True)
        )
        / 2
    )
    check_agreement(mixture.abp_at((x, w), sigma, 0), mpmath.sqrt(js), mpmath.mpf("1e-16"))
    best, (index, direction) = mixture.lip_delta((x, w), sigma, 0.5)
    by_hand = max(
        max(
            mixture.hockey_stick(m, gaussian(point, sigma), 0.5),
            mixture.hockey_stick(gaussian(point, sigma), m, 0.5) * arb(-0.5).exp(),
        )
        for point in x
    )
    assert best.overlaps(by_hand)
    assert (index, direction) == (2, "output||input")


def test_equal_measures_have_zero_divergence():
    for pair in pairs("equal"):
        for epsilon in EPSILONS:
            assert mixture.hockey_stick(pair.p, pair.q, epsilon).is_zero()
        assert mixture.kl_divergence(pair.p, pair.q).is_zero()
        assert mixture.js(pair.p, pair.q).is_zero()


@pytest.mark.slow
def test_a_double_root_is_enclosed():
    touching = next(pair for pair in pairs("symmetric") if pair.name == "symmetric-touching")
    at_maximum = mixture.hockey_stick(touching.p, touching.q, 0.5)
    assert at_maximum.contains(0)
    assert at_maximum < 1e-200
    assert mixture.hockey_stick(touching.p, touching.q, np.nextafter(0.5, 1)).is_zero()
    assert mixture.hockey_stick(touching.p, touching.q, np.nextafter(0.5, 0)) > 0


def test_one_equal_variance_component_gives_at_most_two_crossings():
    rng = np.random.default_rng(1)
    for _ in range(5):
        many = mix(dyadic(rng.dirichlet(np.ones(6))), rng.normal(0, 2, 6), 0.7)
        assert len(mixture.crossings(many, mix(1.0, 0.1, 0.7), float(rng.uniform(0, 1)))) <= 2


@few_or_all("count", 4, 24)
@pytest.mark.slow
def test_a_sample_of_the_tables_can_be_recomputed(count):
    draw = random.Random(20250102)
    by_name = {pair.name: pair for pair in pairs()}
    usual = [row for row in rows("hockey_stick") if "ulp" not in row[0]]
    for name, direction, epsilon, value, log in draw.sample(usual, 3 * count):
        pair = by_name[name]
        first, second = (pair.p, pair.q) if direction == "PQ" else (pair.q, pair.p)
        ball = mixture.hockey_stick(first, second, float.fromhex(epsilon))
        row = f"{name} {direction} {epsilon}: got {ball.str(30)}, want {value}, log {log}"
        if value == "0":
            assert ball.is_zero(), row
        elif not log.startswith(("<", ">")):
            low, high = (arb(str(x)) for x in bounds(log))
            assert ball.log().overlaps(low.union(high)), row
    for name, quantity, value in draw.sample([r for r in rows("integrals") if "near" not in r[0]], count):
        ball = INTEGRALS[quantity](mixture, by_name[name])
        if value == "inf":
            assert not ball.is_finite(), (name, quantity)
        else:
            low, high = (arb(str(x)) for x in bounds(value))
            assert ball.overlaps(low.union(high)), f"{name} {quantity}: got {ball.str(30)}, want {value}"
    for prior, quantity, sigma, epsilon, value, *_ in draw.sample(rows("notions"), 3):
        args = priors()[prior], float.fromhex(sigma)
        if quantity == "mutual_information":
            ball = mixture.mutual_information(*args)
        else:
            ball = mixture.lip_delta(*args, float.fromhex(epsilon))[0].log()
        if value != "-inf":
            low, high = (arb(str(x)) for x in bounds(value))
            assert ball.overlaps(low.union(high)), (
                f"{prior} {quantity} {sigma} {epsilon}: got {ball.str(30)}, want {value}"
            )
