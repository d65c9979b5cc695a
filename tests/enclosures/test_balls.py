"""Numbers with a radius hold what they stand for, operation by operation, and are narrow."""

import numpy as np
import pytest
from mpmath import exp, expm1, log, log1p, mp, mpf, sinh

from fastpriv.posteriors.ball_arithmetic import Ball, log_of_count, quotient, stack
from fastpriv.posteriors.product_jensen_shannon import _sin_deficit, _sinh_excess

RNG = np.random.default_rng(11)
SIZE = 10.0 ** RNG.uniform(-12, 2, 400) * RNG.choice([-1.0, 1.0], 400)


def check_ball(ball, truths, width=1e-14):
    for i, truth in enumerate(truths):
        low, high = float(ball.lower[i]), float(ball.upper[i])
        assert low <= truth <= high, (i, low, high, mp.nstr(truth, 25))
        assert high - low <= width * abs(truth) + 1e-300, (i, low, high)


@pytest.mark.parametrize(("name", "exact", "given"), [
    ("exp", exp, SIZE), ("expm1", expm1, SIZE), ("log1p", log1p, np.abs(SIZE)), ("log", log, np.abs(SIZE) + 2),
    ("log1p", log1p, -np.abs(SIZE) / 200),
    ("expm1_minus_x", lambda x: exp(x) - 1 - x, SIZE / 200),
    ("entropy_deficit",
     lambda y: (log(2 * exp(y) / (1 + exp(y))) * exp(y) + log(2 / (1 + exp(y)))) / (1 + exp(y)), SIZE / 200),
])
def test_functions(name, exact, given):
    check_ball(getattr(Ball(given), name)(), [exact(mpf(float(x))) for x in given])
    wide = Ball(given, 1e-6 * np.abs(given))
    found = getattr(wide, name)()
    for end in (-1, 1):
        ends = given * (1 + 0.99e-6 * end)
        check_ball(found, [exact(mpf(float(x))) for x in ends], width=1e-3)


def test_sums_products_and_quotients():
    a, b = Ball(SIZE), Ball(SIZE[::-1].copy())
    exact = [(mpf(float(x)), mpf(float(y))) for x, y in zip(SIZE, SIZE[::-1], strict=True)]
    check_ball(a * b, [x * y for x, y in exact])
    check_ball(a / b, [x / y for x, y in exact])
    for found, truths in ((a + b, [x + y for x, y in exact]), (a - b, [x - y for x, y in exact])):
        for low, high, truth in zip(found.lower, found.upper, truths, strict=True):
            assert low <= truth <= high
    for many in (SIZE, RNG.normal(size=70_000)):
        found, truth = Ball(many).sum(), mp.fsum(mpf(float(x)) for x in many)
        assert found.lower <= truth <= found.upper
        assert found.rad <= 1e-14 * np.abs(many).sum()


def test_radii_carry_over():
    a, b = Ball(3.0, 0.5), Ball(-2.0, 0.25)
    assert (a + b).lower <= 0.25
    assert (a + b).upper >= 1.75
    assert (a * b).lower <= -3.5 * 2.25
    assert (a * b).upper >= -2.5 * 1.75
    assert (a / b).lower <= -3.5 / 1.75
    assert (a / b).upper >= -2.5 / 2.25
    assert np.isinf(Ball(-0.9, 0.2).log1p().rad)
    assert np.isinf(Ball(0.1, 0.2).log().rad)


@pytest.mark.parametrize("count", [1, 2, 10**12, 2**200, 2**5000 + 1, 7**3000])
def test_logarithms_of_counts(count):
    check_ball(stack([log_of_count(count)]), [log(mpf(count))])


def test_ratios_of_counts():
    for top, bottom in ((0, 5), (5, 5), (1, 3), (2**200 - 1, 2**200), (10**12, 3**300), (1, 2**5000)):
        ball = stack([quotient(top, bottom)])
        assert ball.lower[0] <= mpf(top) / bottom <= ball.upper[0]


def test_differences_of_sines():
    y = np.clip(SIZE, -1, 1)
    check_ball(_sinh_excess(Ball(y)), [2 * sinh(mpf(float(x)) / 2) - mpf(float(x)) for x in y], width=1e-13)
    for x, found in zip(y, _sin_deficit(y), strict=True):
        truth = mp.sin(mpf(float(x))) - mpf(float(x))
        assert abs(found - truth) <= 4e-16 * max(abs(truth), abs(x) if abs(x) >= 1 else 0) + 1e-300
