"""The bounds stated in fp_dd.h, fp_dd_elementary.h and fp_dd_normal.h, against balls of several hundred bits."""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest
from flint import arb, ctx

from fastpriv.kernels import _double_double
from fastpriv.kernels.instruction_sets import INSTRUCTION_SETS
from kernels.variants import each_wider_variant
from oracles.double_double import FUNCTIONS, ball

U2 = 2.0**-106


@pytest.fixture(autouse=True)
def precision():
    before, ctx.prec = ctx.prec, 500
    yield
    ctx.prec = before


def pairs(hi, seed=1):
    """Double-doubles around ``hi``: random low parts, and now and then an extreme or an empty one."""
    hi = np.asarray(hi, float).ravel()
    rng = np.random.default_rng(seed)
    half = 0.5 * np.spacing(np.minimum(np.abs(hi), 1e308))
    lo = half * rng.uniform(-1, 1, hi.size)
    lo = np.where(rng.random(hi.size) < 0.15, half * rng.choice([-1, 0, 1], hi.size) * (1 - 2.0**-50), lo)
    return hi, np.where(hi + lo == hi, lo, 0.0)


def signed_logspace(low, high, n, seed=2):
    rng = np.random.default_rng(seed)
    return 10.0 ** rng.uniform(low, high, n) * rng.choice([-1, 1], n)


def check(operation, bound, a, b=None, scaled=False):
    """Assert |got - want| <= bound |want| on every row and that the results are normalised."""
    reference = FUNCTIONS[operation]
    hi, lo, k = _double_double.apply(operation + ("_scaled" if scaled else ""), *a, *(b or ()))
    worst, row = -1.0, ""
    for i in range(hi.size):
        arguments = [ball(a[0][i], a[1][i])] + ([ball(b[0][i], b[1][i])] if b else [])
        want, got = reference(*arguments), ball(hi[i], lo[i])
        if scaled:
            got = got * arb(2) ** int(k[i])
        error = float((got / want - 1).abs_upper()) if want != 0 else (0.0 if got == 0 else math.inf)
        error = math.inf if math.isnan(error) else error
        assert hi[i] + lo[i] == hi[i], f"{operation} is not normalised at {arguments}"
        if error > worst:
            worst, row = error, f"{operation}: input {arguments}, got {hi[i]!r} + {lo[i]!r} (2^{k[i]}), want {want}"
    size = math.log2(worst) if worst > 0 else -math.inf
    print(f"{operation}: worst 2^{size:.2f}, {worst / U2:.2f} u^2, {hi.size} rows")
    assert worst <= bound, f"2^{size:.2f} > 2^{math.log2(bound):.2f} at {row}"


def around(points, width=3):
    """Each point, its neighbours, and the points a small relative step away."""
    out = []
    for p in points:
        x = y = float(p)
        out.append(x)
        for _ in range(width):
            x, y = np.nextafter(x, np.inf), np.nextafter(y, -np.inf)
            out += [x, y]
        out += [p * (1 + 2.0**-30), p * (1 - 2.0**-30)]
    return np.array(out)


@pytest.fixture(params=[500, pytest.param(3000, marks=pytest.mark.slow)])
def n(request):
    """Random rows of each kind."""
    return request.param


@pytest.mark.parametrize(("operation", "bound"), [("add", 3.1), ("sub", 3.1), ("mul", 5), ("div", 15)])
def test_arithmetic_of_pairs(operation, bound, n):
    a, b = signed_logspace(-3, 3, n), signed_logspace(-3, 3, n, 3)
    b[::3] = -a[::3] * (1 + 2.0 ** np.random.default_rng(4).uniform(-55, -1, b[::3].size))
    check(operation, bound * U2, pairs(a), pairs(b, 5))


@pytest.mark.parametrize(("operation", "bound"), [("add_d", 2), ("mul_d", 2), ("div_d", 3)])
def test_arithmetic_with_a_double(operation, bound, n):
    a, b = signed_logspace(-3, 3, n), signed_logspace(-3, 3, n, 3)
    if operation == "add_d":
        b[::3] = -a[::3] * (1 + 2.0 ** np.random.default_rng(4).uniform(-55, -1, b[::3].size))
    check(operation, bound * U2, pairs(a), (b, np.zeros(n)))


def test_add_small(n):
    a = signed_logspace(-3, 3, n)
    ratio = np.random.default_rng(6).uniform(-0.25, 0.25, n)
    check("add_small", 5 * U2, pairs(a), pairs(0.999 * a * ratio, 7))


def test_square_and_root(n):
    check("sqr", 5 * U2, pairs(signed_logspace(-100, 100, n)))
    check("sqrt", 3.125 * U2, pairs(np.abs(signed_logspace(-250, 300, n))))


def test_exp(n):
    ln2 = math.log(2)
    x = [signed_logspace(-30, 2.8, n), np.random.default_rng(8).uniform(-660, 709, n)]
    x.append(around((np.arange(-2100, 2100, 7) + 0.5) * ln2 / 1024, 1))
    check("exp", 2.0**-102, pairs(np.concatenate(x)))
    x.append(signed_logspace(2, 15, n))
    x.append(around([2.0**40, -(2.0**40), 2.0**50 * (1 - 2.0**-29), 1e15, -1e15]))
    check("exp", 2.0**-102, pairs(np.concatenate(x)), scaled=True)


def test_expm1(n):
    x = [signed_logspace(-270, 2.8, n), np.random.default_rng(9).uniform(-1, 1, n)]
    x.append(around((np.arange(-2100, 2100, 7) + 0.5) * math.log(2) / 1024, 1))
    x.append(around([2.0**-110, -(2.0**-110), -80, 80, math.log(2) / 2, -math.log(2) / 2]))
    x = np.concatenate(x)
    check("expm1", 2.0**-101, pairs(x[x < 709]))


def test_log(n):
    rng = np.random.default_rng(10)
    x = [np.abs(signed_logspace(-307, 308, n)), rng.uniform(0.3, 3, n), 1 + signed_logspace(-16, -1, n)]
    x.append(around((np.arange(40, 100) + 0.5) / 64, 2))
    x.append(around(np.concatenate([1 + (np.arange(-30, 30) + 0.5) / 2048, [0.70703125, 1.4140625, 2.0**-900]])))
    x.append(np.array([5e-324, 2.0**-1030, np.finfo(float).max, 2.0**-1022]))
    hi, lo = pairs(np.concatenate(x))
    lo[hi < 1e-290] = 0
    check("log", 2.0**-100, (hi, lo))
    ctx.prec = 2000  # one plus less than an ulp: the logarithm of the low part
    check("log", 2.0**-100, (np.ones(50), signed_logspace(-200, -17, 50)))


def test_log_of_a_scaled_number(n):
    rng = np.random.default_rng(24)
    m = np.concatenate([2.0 ** rng.uniform(-1, 1, n), 2.0 ** rng.uniform(-200, 200, n)])
    k = np.round(signed_logspace(0, 15.3, 2 * n))
    k[:7] = [0, 1, -1, 500, 501, -500, -501]
    check("log_scaled", 2.0**-100, pairs(m), (k, np.zeros(2 * n)))


def test_log1p(n):
    x = [signed_logspace(-270, 5, n), np.random.default_rng(11).uniform(-0.999, 2, n), np.array([1e300, 2.0**120])]
    x.append(around((np.arange(45, 92) + 0.5) / 64 - 1, 2))
    x.append(around([-0.29, 0.41, 2.0**-110, -(2.0**-110)]))
    x.append(around((np.arange(-30, 30) + 0.5) / 2048, 2))
    x = np.concatenate(x)
    check("log1p", 2.0**-100, pairs(x[x > -1]))
    ctx.prec = 2000
    check("log1p", 2.0**-100, (-np.ones(40), 10.0 ** np.linspace(-290, -17, 40)))


def test_mills(n):
    rng = np.random.default_rng(12)
    edges = np.concatenate([np.arange(1, 16) / 16] + [2.0**e * (1 + np.arange(16) / 16) for e in range(6)])
    x = [np.abs(signed_logspace(-250, 288, n)), rng.uniform(0, 40, n), around(edges, 1), [0.0, 32.0, 1e288]]
    check("mills", 2.0**-101, pairs(np.concatenate(x)))


def test_phi(n):
    x = [signed_logspace(-30, 1.55, n), np.random.default_rng(13).uniform(-36, 36, n)]
    check("phi", 2.0**-102, pairs(np.concatenate(x)))
    x.append(signed_logspace(1, 7.5, n))
    check("phi", 2.0**-102, pairs(np.concatenate(x)), scaled=True)


def test_tail(n):
    x = [signed_logspace(-30, 1.55, n), np.random.default_rng(14).uniform(-36, 36, n), np.array([0.0])]
    check("ndtr_tail", 2.0**-100, pairs(np.concatenate(x)))
    x.append(np.abs(signed_logspace(1, 7.5, n)))
    x.append(around([1.0, -1.0, 32.0, 16.0]))
    check("ndtr_tail", 2.0**-100, pairs(np.concatenate(x)), scaled=True)


@pytest.mark.slow
def test_probability_of_an_interval(n):
    rng = np.random.default_rng(15)
    a = np.concatenate([rng.uniform(-36, 36, n), signed_logspace(-20, 1.5, n)])
    b = a + np.concatenate([signed_logspace(-30, 1, n), signed_logspace(-15, 0, n)])
    keep = (np.minimum(a, b) < 36) & (np.maximum(a, b) > -36) & (a != b)
    check("ndtr_diff", 2.0**-95, pairs(a[keep]), pairs(b[keep], 16), scaled=True)
    keep &= np.abs(a) < 33  # results of at least 2^-960
    check("ndtr_diff", 2.0**-95, pairs(a[keep]), pairs(b[keep], 16))
    # the switch from the series to the difference of tails, around 0 and in the tail
    for width in around([1 / 16], 1):
        centre = rng.uniform(-1.2, 1.2, 40)
        check("ndtr_diff", 2.0**-95, pairs(centre - width / 2), pairs(centre + width / 2, 17))
    a = np.concatenate([rng.uniform(1, 1000, n), np.abs(signed_logspace(0, 7.4, n))])
    width = 0.0625 / a * (1 + 10.0 ** rng.uniform(-16, 0, a.size) * rng.choice([-0.9, 1], a.size))
    check("ndtr_diff", 2.0**-95, pairs(a), pairs(a + width, 18), scaled=True)
    check("ndtr_diff", 2.0**-95, pairs(-a), pairs(-a - width, 19), scaled=True)


def test_interval_within_one_double():
    a = np.random.default_rng(20).uniform(-30, 30, 200)
    low = 2.0**-60 * np.abs(a)
    check("ndtr_diff", 2.0**-95, (a, -low), (a, low * 1.25), scaled=True)


def test_infinities_zeros_and_nan():
    inf, nan = math.inf, math.nan

    def value(operation, a, b=0.0):
        hi, lo, k = _double_double.apply(operation, np.array([a]), np.zeros(1), np.array([b]), np.zeros(1))
        return math.ldexp(hi[0] + lo[0], int(k[0]))

    cases = {
        ("exp", inf): inf, ("exp", -inf): 0.0, ("exp", 710.0): inf, ("exp", -1e300): 0.0, ("exp", 0.0): 1.0,
        ("expm1", -inf): -1.0, ("expm1", inf): inf, ("expm1", 0.0): 0.0, ("exp_scaled", -1e16): 0.0,
        ("log", 0.0): -inf, ("log", inf): inf, ("log", 1.0): 0.0, ("log1p", -1.0): -inf, ("log1p", inf): inf,
        ("mills", inf): 0.0, ("phi", inf): 0.0, ("phi", -1e8): 0.0, ("sqrt", 0.0): 0.0,
        ("ndtr_tail", -inf): 1.0, ("ndtr_tail", inf): 0.0, ("ndtr_tail", 0.0): 0.5, ("ndtr_tail", 1e9): 0.0,
    }
    for (operation, x), want in cases.items():
        assert value(operation, x) == want, (operation, x)
    intervals = {(-inf, inf): 1.0, (inf, -inf): -1.0, (0.0, inf): 0.5, (-inf, 0.0): 0.5, (2.0, 2.0): 0.0}
    for (a, b), want in intervals.items():
        assert value("ndtr_diff", a, b) == want, (a, b)
    for operation in ("exp", "expm1", "log", "log1p", "mills", "phi", "ndtr_tail", "ndtr_diff"):
        assert math.isnan(value(operation, nan)), operation
    assert math.isnan(value("log", -1.0))
    assert math.isnan(value("log1p", -2.0))
    assert math.isnan(value("mills", -1.0))


@each_wider_variant
def test_every_instruction_set_gives_the_same_bits(variant, n):
    a = pairs(np.concatenate([signed_logspace(-20, 3, n), signed_logspace(-2, 1.5, n)]))
    b = pairs(np.concatenate([signed_logspace(-20, 3, n, 21), signed_logspace(-2, 1.5, n, 22)]), 23)
    for operation in _double_double.OPERATIONS:
        plain, found = (
            _double_double.apply(operation, *a, *b, isa=isa) for isa in (0, INSTRUCTION_SETS.index(variant))
        )
        for x, y in zip(plain, found, strict=True):
            np.testing.assert_array_equal(x, y, err_msg=operation)


def test_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match="the four arrays must have one length"):
        _double_double.apply("add", np.ones(2), np.ones(3))


@pytest.mark.slow
def test_the_tables_are_what_their_script_writes():
    mpmath = pytest.importorskip("mpmath")
    before, source = mpmath.mp.prec, Path(__file__).parents[2]
    try:
        written = runpy.run_path(str(source / "tools/fit_dd_tables.py"))["header"]()
    finally:
        mpmath.mp.prec = before
    assert written == (source / "csrc/special/fp_dd_tables.h").read_text()
