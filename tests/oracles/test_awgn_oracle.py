"""The truth of the peak-power capacity against mpmath, known values, its own table and other quadratures."""

import random

import mpmath
import numpy as np
import pytest
from flint import arb

from oracles import awgn, awgn_start
from oracles.tables import array_from_text, rows

LIMITS = {1: "1.665925641", 2: "2.453389958", 4: "3.579645910", 8: "5.157672496", 64: "14.848587712"}
CAPACITIES = {
    (1, 1.0): 0.33683082034683176,
    (1, 2.0): 0.6528688117804552,
    (2, 2**0.5): 0.6799028874421635,
    (10, 10**0.5): 3.448071225333596,
    (64, 16.0): 51.310930382817375,
}


@pytest.fixture(autouse=True)
def _digits():
    before = mpmath.mp.dps
    mpmath.mp.dps = 30
    yield
    mpmath.mp.dps = before


def mixture_information_density(x, points, weights):
    """KL(N(x, 1) || sum of weights N(points, 1)) on the line."""
    law = [(mpmath.mpf(float(w)), mpmath.mpf(float(m))) for w, m in zip(weights, points, strict=True)]

    def integrand(y):
        own = mpmath.npdf(y, x, 1)
        return own * mpmath.log(own / mpmath.fsum(w * mpmath.npdf(y, m, 1) for w, m in law))

    return mpmath.quad(integrand, [x - 13, x - 4, x, x + 4, x + 13])


def number(ball):
    return mpmath.mpf(ball.str(40, radius=False))


@pytest.mark.slow
def test_one_dimension_is_the_divergence_on_the_line():
    points, weights = [-2.0, 0.0, 2.0], [0.375, 0.25, 0.375]
    for x in (0.0, 0.75, 2.0):
        want = mixture_information_density(x, points, weights)
        got = awgn.information_density(1, x, [0.0, 2.0], [0.25, 0.75])
        assert abs(number(got) - want) < mpmath.mpf("1e-22"), (x, got, want)


def test_three_dimensions_have_elementary_shells():
    # G_3(x) = sinh(x)/x, so rho given r has density (rho/r) (normal(rho - r) - normal(rho + r))
    r, radius = mpmath.mpf("0.75"), mpmath.mpf(2)

    def sphere(s, rho):
        return mpmath.sinh(rho * s) / (rho * s) * mpmath.exp(-s * s / 2)

    def integrand(rho):
        law = rho / r * (mpmath.npdf(rho, r, 1) - mpmath.npdf(rho, -r, 1))
        return law * mpmath.log((sphere(radius, rho) + sphere(mpmath.mpf("0.5"), rho)) / 2)

    want = r * r / 2 - mpmath.quad(integrand, [0, 1, 2, 3, 5, 8, 14])
    got = awgn.information_density(3, 0.75, [0.5, 2.0], [0.5, 0.5])
    assert abs(number(got) - want) < mpmath.mpf("1e-22"), (got, want)


@pytest.mark.few(3)
@pytest.mark.parametrize("case", [(1, 3.0), (2, 2.0), (7, 1e-3), (64, 9.0)])
def test_other_nodes_give_the_same_digits(case):
    d, r = case
    radii, p = [0.0, r], [0.25, 0.75]
    few, many = (awgn.information_density(d, [0.0, r / 2, r], radii, p, order) for order in (32, 41))
    for a, b in zip(few, many, strict=True):
        assert abs(float(a - b)) < 1e-32 * max(1.0, abs(float(a))), (d, r, a, b)


def test_both_forms_of_the_bessel_function_agree():
    shell = awgn.Shell(64, 0, 1)
    for x in (1e-3, 1.0, 80.0, 700.0):
        for up in (0, 1):
            plain = (arb(x) ** 2 / 4).hypgeom_0f1(32 + up)
            assert abs(float(shell.bessel(arb(x), up) / plain - 1)) < 1e-40


@pytest.mark.parametrize(("d", "r"), [(1, 1.25), (4, 1.5), (64, 3.0), (4, 0.0)])
def test_slopes_are_derivatives(d, r):
    shell, h = awgn.Shell(d, 0, r), arb(2) ** -40
    middle, slope, bend = (row[200] for row in shell.sphere_and_slopes(r))
    up, down = shell.sphere(arb(r) + h)[200], shell.sphere(arb(r) - h)[200]
    assert abs(float(middle / shell.sphere(r)[200] - 1)) < 1e-40
    assert abs(float((up - down) / (2 * h) - slope)) <= 1e-20 * float(middle)
    assert abs(float((up + down - 2 * middle) / (h * h) - bend)) <= 1e-18 * float(middle)


@pytest.mark.few(1)
@pytest.mark.parametrize("d", [1, 2, 4, 8, pytest.param(64, marks=pytest.mark.slow)])
def test_single_sphere_limits(d):
    known = float(LIMITS[d])
    limit = awgn.single_sphere_limit(d, known * 0.99, known * 1.01)
    assert abs(float(limit) - known) < 6e-10, (d, limit)
    assert abs(float(limit) / d**0.5 - 1.860935682) < 0.3 / d**0.5


@pytest.mark.few(3)
@pytest.mark.parametrize("case", [*list(CAPACITIES)[:-1], pytest.param((64, 16.0), marks=pytest.mark.slow)])
def test_known_capacities(case):
    d, amplitude = case
    radii, p, rough = awgn_start.start(d, amplitude)
    value, radii, p = awgn.refined_capacity(d, amplitude, list(map(float, radii)), list(map(float, p)))
    want = CAPACITIES[case]
    assert abs(float(value) - want) <= 3e-15 * want, (case, value)
    assert abs(rough - want) < 1e-10 * want
    assert awgn.certificate(d, amplitude, radii, p, spacing=2.0)[0] < 1e-28


@pytest.mark.slow
def test_three_points_become_four():
    bends = []
    for amplitude in (2.907464, 2.907465):
        _, radii, p = awgn.refined_capacity(1, amplitude, [0.0, amplitude], [0.3, 0.7])
        bends.append(float(awgn.centre(1, radii, p)[1]))
    assert bends[0] < 0 < bends[1]
    assert abs(2.907464 - bends[0] * 1e-6 / (bends[1] - bends[0]) - 2.90746407) < 1e-8


def test_the_table_is_whole_and_ordered():
    table = rows("awgn_capacity")
    assert len(table) >= 60
    for d, amplitude, lower, upper, radii, p in table:
        amplitude, radii, p = float.fromhex(amplitude), array_from_text(radii), array_from_text(p)
        assert arb(lower) < arb(upper), (d, amplitude)
        assert float(arb(upper) - arb(lower)) <= 1.1e-12 * min(1.0, float(arb(lower)) * 1e-8 + 1e-12 * (d > 999))
        assert radii[-1] == amplitude
        assert np.all(np.diff(radii) > 0)
        assert abs(sum(p) - 1) < 1e-12


@pytest.mark.slow
def test_a_sample_of_the_table_can_be_recomputed():
    draw = random.Random(5)
    for d, amplitude, lower, upper, radii, p in draw.sample([r for r in rows("awgn_capacity") if r[0] < 100], 12):
        radii, p = array_from_text(radii).tolist(), array_from_text(p).tolist()
        value = awgn.refined_capacity(d, float.fromhex(amplitude), radii, p)[0]
        assert arb(lower) <= value <= arb(upper), (d, amplitude, value.str(30))
