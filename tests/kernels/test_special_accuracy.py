"""Every function of fastpriv.special against 300-bit balls: the stated bound in ulps, worst row shown on failure."""

import math

import numpy as np
import pytest

import fastpriv.special as special
from oracles import special_functions as oracle

HUGE, TINY = 1e300, 5e-324
LN2 = math.log(2)
POINTS = 1500


def neighbours(*points):
    """Each point and the three doubles on either side of it."""
    found = []
    for point in points:
        below = above = float(point)
        found.append(below)
        for _ in range(3):
            below, above = math.nextafter(below, -math.inf), math.nextafter(above, math.inf)
            found += [below, above]
    return np.array(found)


def spread(*ranges, seed=0):
    """Uniform points on each range."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.uniform(low, high, POINTS) for low, high in ranges])


def powers(low, high, sign=1.0, n=POINTS, seed=1):
    """Log-spaced points, between grid points at random."""
    rng = np.random.default_rng(seed)
    with np.errstate(under="ignore"):
        return sign * 10.0 ** (np.linspace(low, high, n) + rng.uniform(0, (high - low) / n, n))


SMALL = np.concatenate([powers(-323, -1), powers(-323, -1, -1.0), [TINY, -TINY, 2.0**-1022, -(2.0**-1022)]])
WHOLE = np.concatenate([SMALL, powers(-1, 300, n=600), powers(-1, 300, -1.0, n=600)])
HALVES = [(k + 0.5) * LN2 for k in (-1075, -1000, -53, -2, -1, 0, 1, 2, 53, 54, 1000, 1023)]
ROOTS = [math.sqrt(0.5) * 2.0**k for k in (-1000, -1, 0, 1, 2, 52, 53, 1000, 1023)]

# name: (bound, arguments); cut-offs of the code are straddled
UNARY = {
    "exp": (0.85, [spread((-746, -700), (-700, 710), (-1, 1)), SMALL,
                   neighbours(*HALVES, -746.0, -745.2, -708.4, 709.7, 709.782712893384)]),
    "expm1": (1.0, [spread((-61, 60), (60, 710), (-1.1, 1.1)), SMALL, neighbours(*HALVES, -60.0, -37.4, 709.7)]),
    "log": (0.85, [powers(-323, 308), spread((0.5, 2), (0.999, 1.001)), neighbours(*ROOTS, 1.0, 2.0**-1022, 1e-310)]),
    "log1p": (0.95, [spread((-1, 0), (0, 3)), SMALL, powers(-1, 308), -1 + powers(-16, 0),
                     neighbours(*(r - 1 for r in ROOTS[1:5]), 2.0**-53, -(2.0**-53), 2.0**52, 2.0**53, 2.0**900)]),
    "erfc": (4.5, [spread((-6, 6), (6, 27.3)), WHOLE, neighbours(0.5, 1.0, 26.5432, 27.2, 28.0, -28.0)]),
    "erfcx": (3.5, [spread((-26.6, 0), (-1, 1), (0, 30)), WHOLE, neighbours(1e4, -26.62, -26.65, -28.0, 4.0)]),
    "mills_ratio": (4.5, [spread((-37.7, 0), (-1, 1), (0, 40)), WHOLE, neighbours(1e4, -37.6, -37.7, -40.0, 4.0)]),
    "ndtr": (4.5, [spread((-38.6, -6), (-6, 9)), WHOLE, neighbours(-37.52, -38.4, -40.0, 40.0, 8.3, -1.0, 1.0)]),
    "log_ndtr": (6.5, [spread((-40, 0), (-1, 1), (0, 38.6)), SMALL, powers(-1, 4, -1.0), powers(4, 154.2, -1.0, n=200),
                       neighbours(-1.0, 1.0, 37.5, 38.5, 40.0, -1e4)]),
    "log1mexp": (2.0, [-powers(-323, 2.87), spread((-3, 0), (-745, -700)), neighbours(-LN2, -745.0, -37.5, -1.0)[1:]]),
}


def check(name, bound, *arguments):
    got = getattr(special, name)(*arguments)
    true = getattr(oracle, name)
    rows = list(zip(got, *arguments, strict=True))
    errors = [abs(oracle.ulps(row[0], true, *row[1:])) for row in rows]
    worst = int(np.argmax(errors))
    assert errors[worst] <= bound, f"{name}{tuple(map(float, rows[worst][1:]))!r}: got {float(rows[worst][0])!r}, " + (
        f"want {oracle.nearest(true, *rows[worst][1:])!r}, {errors[worst]:.3f} ulps off, bound {bound}"
    )


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    bound, grids = UNARY[name]
    check(name, bound, np.concatenate(grids))


def pairs():
    """Ends of intervals: any distance at any place, and both sides of every way the difference is computed."""
    rng = np.random.default_rng(2)
    n = 500
    near, tail = rng.uniform(-3, 3, n), rng.uniform(-37, 37, n)
    a = [near, near, tail, tail, -powers(-300, 1, n=n), powers(-300, 0, n=n)]
    gaps = [powers(-15, 0, n=n), rng.uniform(0, 3, n), powers(-14, 0, n=n), rng.uniform(0, 3, n), None, None]
    b = [x + gap for x, gap in zip(a, gaps, strict=True) if gap is not None]
    b += [powers(-300, 1, n=n, seed=4), 3 * a[5]]
    for left in (-1.7, -1.0, -0.75, -0.5, 0.0, -TINY, TINY, 0.3, 2.0, 20.0):  # gap 1, or gap * sum 2, or middle 0
        rights = neighbours(left + 1.0, math.sqrt(left * left + 2.0), abs(left))
        a.append(np.full(rights.size, left))
        b.append(rights)
    left, right = np.concatenate(a), np.concatenate(b)
    kept = left < right
    return left[kept], right[kept]


def test_ndtr_difference():
    a, b = pairs()
    check("ndtr_difference", 6.0, a, b)
    np.testing.assert_array_equal(special.ndtr_difference(b, a), -special.ndtr_difference(a, b))
    np.testing.assert_array_equal(special.ndtr_difference(-b, -a), special.ndtr_difference(a, b))


def test_log_ndtr_difference():
    a, b = pairs()
    check("log_ndtr_difference", 6.5, a, b)


def test_differences_far_out():
    a = np.array([1e100, 1e150, 1.3e154, 1e8, 1e8])
    b = np.array([np.inf, np.inf, np.inf, 1e8 + 2.0**-20, 2e8])
    np.testing.assert_allclose(special.log_ndtr_difference(a, b), -0.5 * a * a, rtol=1e-14)
    assert special.ndtr_difference(-np.inf, np.inf) == 1.0
    assert special.log_ndtr_difference(-np.inf, np.inf) == 0.0
    assert special.log_ndtr_difference(2e154, np.inf) == -np.inf


def test_logaddexp():
    rng = np.random.default_rng(3)
    a = np.concatenate([np.zeros(800), rng.uniform(-50, 50, 800), powers(-300, 2, n=400), -powers(-300, 0, n=400)])
    b = np.concatenate([-powers(-300, 2.87, n=800), rng.uniform(-50, 50, 800), np.zeros(800)])
    got = special.logaddexp(a, b)
    for x, y, value in zip(a, b, got, strict=True):
        error = abs(float(oracle.difference(value, oracle.logaddexp, x, y)))
        bound = math.ulp(value) + 2 * math.ulp(value - max(x, y))
        assert error <= bound, (x, y, value, oracle.nearest(oracle.logaddexp, x, y), error, bound)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 255, 256, 257, 2000])
def test_log_sum_exp(n):
    rng = np.random.default_rng(n)
    for x in (rng.normal(size=n), rng.uniform(-800, 800, n), np.zeros(n), np.r_[0.0, np.full(n - 1, -700.0)]):
        value = special.log_sum_exp(x)
        error = abs(float(oracle.difference(value, oracle.log_sum_exp, *x)))
        bound = math.ulp(value) + (2 + n / 16) * math.ulp(value - x.max())
        assert error <= bound, (n, x[:5], value, oracle.nearest(oracle.log_sum_exp, *x), error, bound)


INF, NAN = math.inf, math.nan
EXACT = {
    "exp": {0.0: 1.0, INF: INF, -INF: 0.0, 710.0: INF, -746.0: 0.0, 1e308: INF, -1e308: 0.0},
    "expm1": {0.0: 0.0, INF: INF, -INF: -1.0, 1e308: INF, -1e308: -1.0, TINY: TINY, -TINY: -TINY},
    "log": {0.0: -INF, 1.0: 0.0, INF: INF, -1.0: NAN, -TINY: NAN, -INF: NAN},
    "log1p": {0.0: 0.0, -1.0: -INF, INF: INF, -1.5: NAN, -INF: NAN, TINY: TINY},
    "erfc": {0.0: 1.0, INF: 0.0, -INF: 2.0, 28.0: 0.0, 1e308: 0.0, -1e308: 2.0},
    "erfcx": {0.0: 1.0, INF: 0.0, -INF: INF, -27.0: INF, -1e308: INF},
    "mills_ratio": {INF: 0.0, -INF: INF, -38.0: INF, -1e308: INF},
    "ndtr": {0.0: 0.5, INF: 1.0, -INF: 0.0, 1e308: 1.0, -1e308: 0.0, -39.0: 0.0},
    "log_ndtr": {INF: 0.0, -INF: -INF, 1e308: 0.0, -1e154: -5e307, -2e154: -INF, -1e308: -INF},
    "log1mexp": {0.0: -INF, -INF: 0.0, -1e308: 0.0, TINY: NAN, 1.0: NAN, INF: NAN},
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_values(name):
    x = np.array([*EXACT[name], NAN])
    want = np.array([*EXACT[name].values(), NAN])
    np.testing.assert_array_equal(getattr(special, name)(x), want)
    np.testing.assert_array_equal([getattr(special, name)(value) for value in x], want)


def test_signed_zero_survives():
    assert math.copysign(1, special.expm1(-0.0)) == -1
    assert math.copysign(1, special.log1p(-0.0)) == -1


def test_exact_values_of_two_arguments():
    ends = np.array([-INF, -1e308, -1.0, 0.0, 1.0, 1e308, INF])
    np.testing.assert_array_equal(special.ndtr_difference(ends, ends), 0.0)
    np.testing.assert_array_equal(special.log_ndtr_difference(ends, ends), -INF)
    assert math.isnan(special.log_ndtr_difference(1.0, 0.0))
    np.testing.assert_array_equal(special.logaddexp(-INF, ends), ends)
    np.testing.assert_array_equal(special.logaddexp(ends, INF), INF)
    for name in ("logaddexp", "ndtr_difference", "log_ndtr_difference"):
        function = getattr(special, name)
        assert np.isnan(function(ends, NAN)).all()
        assert np.isnan(function(NAN, ends)).all()
    assert special.log_sum_exp([]) == -INF
    assert special.log_sum_exp([-INF, -INF]) == -INF
    assert special.log_sum_exp([INF, 1.0]) == INF
    assert math.isnan(special.log_sum_exp([INF, NAN]))
