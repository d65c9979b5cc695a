"""Bounds of few releases with Laplace noise contain the truth."""

import math

import numpy as np
import pytest
from mpmath import exp, log, mp, mpf, quad

from fastpriv.base.quadrature_rules import gauss_legendre
from fastpriv.composition.contour import contour_bounds
from fastpriv.composition.laplace_sums import laplace_bounds
from fastpriv.pairs.laplace_pairs import LaplacePair


def one_release(a, epsilon):
    """Delta of one release at any epsilon."""
    if epsilon < 0:
        return 1 - exp(epsilon) + exp(epsilon) * one_release(a, -epsilon)
    return 1 - exp((epsilon - a) / 2) if epsilon < a else mpf(0)


def releases(a, count, epsilon):
    """Delta by integrals over the loss of one release after the other, split where the integrand has kinks."""
    if count == 1:
        return one_release(a, epsilon)
    rest = lambda level: releases(a, count - 1, level)
    places = ((a * (n + 1) - epsilon) / (2 * a) for n in range(-count, count + 1))
    kinks = sorted({mpf(0), mpf(1), *(x for x in places if 0 < x < 1)})
    between = quad(lambda v: a / 2 * exp(-a * v) * rest(epsilon - a + 2 * a * v), kinks)
    return rest(epsilon - a) / 2 + exp(-a) / 2 * rest(epsilon + a) + between


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("scale", "shift", "count", "digits"),
    [(1.0, 1.0, 1, 30), (3.0, 1.0, 2, 20), (0.125, 1.0, 2, 20), (1.0, 1e-5, 2, 20), (2.0, 3.0, 3, 12)],
)
def test_integrals_over_one_release_after_the_other(scale, shift, count, digits):
    a = shift / scale
    epsilon = a * count * (np.array([0.0, 0.123, 0.5, 0.77, 0.99]) if count < 3 else np.array([0.123, 0.77]))
    with mp.workdps(digits):
        truths = [log(releases(mpf(shift) / mpf(scale), count, mpf(e))) for e in epsilon]
    found = laplace_bounds([LaplacePair(scale, shift, count)], epsilon)
    slack = 0.0 if count < 3 else 1e-9
    for truth, low, high in zip(truths, found.lower, found.upper, strict=True):
        assert low - slack <= truth <= high + slack
        assert high - low <= 2e-12


def test_the_largest_loss_ends_the_curve():
    found = laplace_bounds([LaplacePair(2.0, 1.0, 4)], np.array([1.999, 2.0 + 1e-12, 7.0]))
    assert found.lower[0] > -math.inf
    assert (found.upper[1:] == -math.inf).all()


def test_twenty_releases():
    """Values of an independent computation with 28 digits."""
    epsilon = np.array([0.06, 0.3, 0.8, 1.5, 1.9])
    truth = np.array([-1.889044453167465751640, -2.588216045384530361295, -4.832360804058712745774,
                      -10.21850291960613557466, -15.75438000063546744308])
    found = laplace_bounds([LaplacePair(10.0, 1.0, 20)], epsilon)
    assert (found.lower <= truth).all()
    assert (truth <= found.upper).all()
    assert (found.upper - found.lower <= 5e-13).all()
    parts = laplace_bounds([LaplacePair(10.0, 1.0, 13), LaplacePair(10.0, 1.0, 7)], epsilon)
    assert (parts.value == found.value).all()


@pytest.mark.few(4)
@pytest.mark.parametrize("quantity", ["delta", "tail"])
@pytest.mark.parametrize(("scale", "count", "epsilon"), [
    (100.0, 7000, [0.5, 6.0, 14.0]), (10.0, 1000, [4.0, 9.0, 16.0]), (1.0, 200, [43.0, 74.0, 110.0]),
])
def test_many_releases_agree_with_sums_along_a_contour(scale, count, epsilon, quantity):
    steps, epsilon = [LaplacePair(scale, 1.0, count)], np.array(epsilon)
    found, other = laplace_bounds(steps, epsilon, quantity), contour_bounds(steps, epsilon, quantity)
    assert (found.lower <= other.upper).all()
    assert (other.lower <= found.upper).all()
    assert (found.upper - found.lower <= (5e-12 if quantity == "delta" else 2e-11)).all()
    assert (other.upper - other.lower <= 1e-7).all()


@pytest.mark.parametrize("count", [1, 2, 17, 97])
def test_nodes_of_gauss_and_legendre(count):
    with mp.workdps(40):
        for x, y, w in list(zip(*gauss_legendre(count), strict=True))[:: max(1, count // 12)]:
            node = mp.findroot(lambda u: mp.legendre(count, u), mpf(float(x)) - mpf(float(y)))
            slope = count * mp.legendre(count - 1, node) / (1 - node**2)
            for found, truth in ((x, (1 + node) / 2), (y, (1 - node) / 2), (w, 1 / ((1 - node**2) * slope**2))):
                assert abs(mpf(float(found)) / truth - 1) <= 3e-16


def test_the_tail_is_the_derivative():
    step, h = LaplacePair(1.0, 0.75, 9), 1e-5
    epsilon = np.array([0.4, 1.1, 3.3, 5.9])
    ahead, behind = (np.exp(laplace_bounds([step], epsilon + e).value) for e in (h, -h))
    tail = laplace_bounds([step], epsilon, "tail")
    assert np.exp(tail.value) == pytest.approx((behind - ahead) / (2 * h), rel=1e-6)
    assert (tail.upper - tail.lower <= 1e-10).all()


def test_what_is_left_to_others():
    epsilon = np.array([1.0])
    assert laplace_bounds([LaplacePair(1.0, 1.0, 4001)], epsilon) is None
    assert laplace_bounds([LaplacePair(1e9, 1.0, 10**14)], epsilon) is None
    assert laplace_bounds([LaplacePair(1.0, 1.0, 0)], epsilon) is None
    assert laplace_bounds([LaplacePair(1.0, 1.0, 1), LaplacePair(1.0, 2.0, 1)], epsilon) is None
    assert laplace_bounds([LaplacePair(1.0, 40.0, 2)], epsilon) is None
    assert laplace_bounds([LaplacePair(1.0, 5.0, 300)], np.array([100.0])) is None


@pytest.mark.parametrize("few", [1, 50])
def test_scales_that_hardly_differ_lie_between_those_of_one(few):
    """Sums along a contour whose terms do not fall, beside the sums over extreme losses of both ends."""
    epsilon, scale, larger = np.array([0.5]), 20.0, 20.0 * (1.0 + 1e-9)
    mixed = contour_bounds([LaplacePair(scale, 1.0, 100 - few), LaplacePair(larger, 1.0, few)], epsilon)
    most, least = (laplace_bounds([LaplacePair(s, 1.0, 100)], epsilon) for s in (scale, larger))
    assert (mixed.upper >= least.lower).all()
    assert (mixed.lower <= most.upper).all()
    assert (mixed.upper - mixed.lower <= 1e-4).all()
