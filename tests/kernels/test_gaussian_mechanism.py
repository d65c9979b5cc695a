"""delta and log delta of the Gaussian mechanism against ball arithmetic: accuracy, edges, shapes."""

import math

import numpy as np
import pytest
from flint import arb, ctx

from fastpriv import special
from oracles import gaussian_mechanism as oracle
from sizes import few_or_all

DELTA_RELATIVE = LOG_RELATIVE = 4e-15  # as stated in fastpriv.special
NORMAL = 2.2250738585072014e-308


def grid(name, n):
    rng = np.random.default_rng(20260611)
    if name == "everywhere":
        r, epsilon = 10 ** rng.uniform(-300, 300, n), 10 ** rng.uniform(-300, 300, n)
    elif name == "curve":  # where delta is neither 0 nor 1, for every r
        r = 10 ** rng.uniform(-300, 140, n)
        epsilon = 2 * r * (r + np.where(rng.random(n) < 0.5, rng.uniform(-9, 40, n), 10 ** rng.uniform(-3, 6, n)))
    elif name == "practice":
        r, epsilon = 10 ** rng.uniform(-3, 1.5, n), 10 ** rng.uniform(-6, 3, n)
    elif name == "far tail":  # delta = 1e-1000 and far beyond
        r = 10 ** rng.uniform(-6, 6, n)
        epsilon = 2 * r * (r + 10 ** rng.uniform(1, 120, n))
    elif name == "cut":  # a = c - r on both sides of -1/2, to the last digit
        r = 10 ** rng.uniform(-0.3, 4, n)
        epsilon = 2 * r * (r - 0.5) * (1 + rng.integers(-6, 7, n) * 2.0**-53)
    elif name == "equal":  # c and r agree in every digit: a is all remainder
        r = 10 ** rng.uniform(5, 145, n)
        epsilon = 2 * r * r * (1 + rng.integers(-3, 4, n) * 2.0**-52)
    elif name == "scale":  # around 2^-400, where r is rescaled
        r = 2.0**-400 * (1 + rng.integers(-4, 5, n) * 2.0**-30)
        epsilon = 2 * r * 10 ** rng.uniform(-20, 3, n)
    else:  # epsilon 0 or vanishing
        r = 10 ** rng.uniform(-300, 3, n)
        epsilon = np.where(rng.random(n) < 0.5, 0.0, r * r * 10 ** rng.uniform(-20, -5, n))
    kept = (epsilon >= 0) & (epsilon < 1e300)
    return r[kept], epsilon[kept]


GRIDS = ["everywhere", "curve", "practice", "far tail", "cut", "equal", "scale", "zero"]


def relative(got, want):
    ctx.prec = 200
    return abs(float((arb(float(got)) / want - 1).mid()))


@pytest.mark.few(4)
@few_or_all("count", 1000, 6000)
@pytest.mark.parametrize("name", GRIDS)
def test_relative_error_against_ball_arithmetic(name, count):
    r, epsilon = grid(name, count)
    assert r.size > count / 3
    delta, log_delta = special.gaussian_delta(r, epsilon), special.gaussian_log_delta(r, epsilon)
    worst = {"delta": (0.0, ""), "log delta": (0.0, "")}
    for i in range(r.size):
        c = arb(float(epsilon[i])) / 2 / arb(float(r[i]))
        if c - arb(float(r[i])) < -60:
            assert delta[i] == 1.0
            assert log_delta[i] == 0.0
            continue
        if c > 1e154:
            assert delta[i] == 0.0
            assert log_delta[i] < -1e307
            continue
        want = oracle.log_delta(float(r[i]), float(epsilon[i]))
        row = f"r={float(r[i])!r} epsilon={float(epsilon[i])!r}"
        if want > -1.797e308 and want < -1e-300:
            error = relative(log_delta[i], want)
            worst["log delta"] = max(worst["log delta"], (error, f"{row} got={log_delta[i]!r} want={want.str(20)}"))
        elif want > -1e-300:
            assert -2e-300 < log_delta[i] <= 0.0, row
        ctx.prec = 200
        true = want.exp()
        if true > NORMAL:
            error = relative(delta[i], true)
            worst["delta"] = max(worst["delta"], (error, f"{row} got={delta[i]!r} want={true.str(20)}"))
        else:
            assert abs(float(true) - delta[i]) <= 2e-323 + 1e-15 * delta[i], row
    print(name, worst)
    assert worst["delta"][0] <= DELTA_RELATIVE, worst["delta"]
    assert worst["log delta"][0] <= LOG_RELATIVE, worst["log delta"]


def test_delta_of_1e_minus_1000_through_its_logarithm():
    epsilon = 2 * 0.5 * (0.5 + 67.8)
    want = oracle.log_delta(0.5, epsilon)
    assert want < -2302
    assert relative(special.gaussian_log_delta(0.5, epsilon), want) <= LOG_RELATIVE
    assert special.gaussian_delta(0.5, epsilon) == 0.0


@pytest.mark.parametrize(
    ("r", "epsilon", "delta"),
    [
        (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, math.inf, 0.0), (1.0, math.inf, 0.0), (math.inf, 0.0, 1.0),
        (math.inf, 1e300, 1.0), (math.inf, math.inf, 1.0), (1e300, 1e300, 1.0), (1e-300, 1e300, 0.0),
        (-1.0, 1.0, math.nan), (1.0, -1e-300, math.nan), (math.nan, 1.0, math.nan), (1.0, math.nan, math.nan),
    ],
)
def test_edges(r, epsilon, delta):
    with np.errstate(all="raise"):
        got, logarithm = special.gaussian_delta(r, epsilon), special.gaussian_log_delta(r, epsilon)
    np.testing.assert_equal(float(got), delta)
    np.testing.assert_equal(float(logarithm), math.nan if math.isnan(delta) else (0.0 if delta else -math.inf))


def test_epsilon_zero_is_the_error_function():
    r = np.geomspace(1e-300, 8, 500)
    want = [math.erf(x / math.sqrt(2)) for x in r]
    np.testing.assert_allclose(special.gaussian_delta(r, 0.0), want, rtol=1e-15)


def test_scalars_in_scalars_out_and_broadcasting():
    assert isinstance(special.gaussian_delta(1.0, 1.0), float)
    grid = special.gaussian_log_delta(np.array([[0.5], [1.0], [2.0]]), np.array([0.0, 1.0]))
    assert grid.shape == (3, 2)
    out = np.empty((3, 2))
    strided = np.repeat(np.array([[0.5], [1.0], [2.0]]), 4, axis=0)[::4]
    assert special.gaussian_log_delta(strided, np.array([0.0, 9.0, 1.0])[::2], out=out) is out
    np.testing.assert_array_equal(out, grid)


def test_the_step_of_theorem_1_6_on_every_piece():
    """X <= 3.05 by the products of monotone factors on the pieces, and by rational bounds beyond 5/4."""
    def mills(x):
        return (x * x / 2).exp() * (x / arb(2).sqrt()).erfc() * (arb.pi() / 2).sqrt()

    most, factors = arb(33) / 16, []
    for piece in range(25):
        left, right = arb(piece) / 20, arb(piece + 1) / 20
        slopes = (1 - left * mills(left)) / (1 - most * right * mills(most * right))
        factors.append(most * mills(most * left) * slopes)
    assert all(factor < 2.94 for factor in factors)
    c = arb(5) / 4
    assert (most**2 * c * c + 3) / (c * (c * c + 1)) < 3.02
