"""Binary entropy and the capacity of the binary asymmetric channel against ball arithmetic, on the whole square."""

import math

import numpy as np
import pytest
from flint import arb, ctx

from fastpriv import special
from fastpriv.capacity import bac_capacity
from oracles import binary_channel as oracle

ENTROPY_RELATIVE, CAPACITY_RELATIVE = 1e-15, 2.5e-15  # as stated in fastpriv.special
SUBNORMAL = 4e-323  # absolute, where the result is below 1e-300


def chances(rng, n):
    k = n // 6
    near_half = 0.5 + rng.choice([-1, 1], k) * 10 ** rng.uniform(-17, -0.4, k)
    parts = [
        rng.random(k), 10 ** rng.uniform(-300, 0, k), 10 ** rng.uniform(-17, 0, k), near_half,
        1 - 10 ** rng.uniform(-16, 0, k), np.full(n - 5 * k, 1e-300),
    ]
    return rng.permutation(np.concatenate(parts))


def grid(name, n=5000):
    """a, complement of a, b, complement of b."""
    rng = np.random.default_rng(11)
    a, b = chances(rng, n), chances(rng, n)
    if name == "line":  # a + b = 1 up to the rounding of b
        b = 1 - a
    elif name == "near the line":
        b = np.clip((1 - a) * (1 + rng.choice([-1, 1], n) * 10 ** rng.uniform(-17, 0, n)), 0, 1)
    elif name == "edges":
        special_values = np.array([0.0, 5e-324, 1e-310, 1e-300, 1e-16, 0.25, 0.5, 0.75, 1 - 2.0**-53, 1.0])
        a, b = (x.ravel() for x in np.meshgrid(special_values, special_values))
    elif name == "series":  # psi's branch at |z| = 1/4: p/q = 5/3 or 3/5
        b = np.clip(1 - a * rng.choice([7 / 3, 3 / 7, 1.5, 2 / 3], n) * (1 + rng.uniform(-0.01, 0.01, n)), 0, 1)
    return a, 1 - a, b, 1 - b


def paired(name, n=5000):
    rng = np.random.default_rng(12)
    tiny = chances(rng, n)
    if name == "one certain":
        other = chances(rng, n)
        return 1 - tiny, tiny, other, 1 - other
    spread = rng.uniform(-1, 1, n) if name == "both tiny" else np.log10(1 + 10 ** rng.uniform(-15, 0, n))
    other = np.clip(tiny * 10**spread, 0, 1)  # b against 1 - a, both possibly 1e-300
    return 1 - tiny, tiny, other, 1 - other


def relative(got, want):
    ctx.prec = 200
    if want == 0:
        return 0.0 if got == 0 else math.inf
    if want < 1e-300:
        return 0.0 if abs(float(want) - got) <= SUBNORMAL + CAPACITY_RELATIVE * got else math.inf
    return abs(float((arb(float(got)) / want - 1).mid()))


def worst(rows):
    return max(rows, key=lambda row: row[0])


@pytest.mark.parametrize("name", ["square", "line", "near the line", "edges", "series"])
def test_capacity_against_ball_arithmetic(name):
    a, _, b, _ = grid(name)
    got = special.bac_capacity(a, b)
    found = worst(
        (relative(got[i], want := oracle.capacity(float(a[i]), float(b[i]))), float(a[i]), float(b[i]), got[i], want)
        for i in range(a.size)
    )
    print(name, found)
    assert found[0] <= CAPACITY_RELATIVE, found


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["one certain", "both tiny", "nearly equal"])
def test_capacity_with_complements_against_ball_arithmetic(name):
    a, ca, b, cb = paired(name)
    got = special.bac_capacity_with_complements(a, ca, b, cb)
    rows = []
    for i in range(a.size):
        want = oracle.capacity(float(a[i]), float(b[i]), float(ca[i]), float(cb[i]))
        rows.append((relative(got[i], want), float(a[i]), float(ca[i]), float(b[i]), float(cb[i]), got[i], want))
    print(name, worst(rows))
    assert worst(rows)[0] <= CAPACITY_RELATIVE, worst(rows)


@pytest.mark.slow
def test_entropy_against_ball_arithmetic():
    p = chances(np.random.default_rng(13), 12000)
    plain, split = special.binary_entropy(p), special.binary_entropy_with_complement(1 - p, p)
    found = worst(
        (relative(plain[i], want := oracle.entropy(float(p[i]))), float(p[i]), plain[i], want) for i in range(p.size)
    )
    assert found[0] <= ENTROPY_RELATIVE, found
    found = worst(
        (relative(split[i], want := oracle.entropy(float(1 - p[i]), float(p[i]))), float(p[i]), split[i], want)
        for i in range(p.size)
    )
    assert found[0] <= ENTROPY_RELATIVE, found


def test_the_counts_of_theorem_7_20():
    """What the theorem takes from values of T, in balls that cover [sqrt(1/8), 1]; errors in units of roundoff."""
    step = 2.0**-11
    rows = []
    for k in range(math.floor(math.sqrt(0.125) / step), 2048):
        t = arb(k * step).union(arb((k + 1) * step))
        high, low = 1 + t, arb(0).union(1 - t)
        if k < 2047:
            low = 1 - t
            lower, slope = -low * low.log(), low * (high / low).log()  # slope is 2 low artanh t
        else:  # both rise with low here
            lower, slope = arb(0).union(-step * arb(step).log()), arb(0).union(step * (2 / arb(step)).log())
        upper = high * high.log()
        s, b = upper - lower, 2 - (upper + lower) / t
        bend = low * abs((1 - t * t).log() + b) if k < 2047 else lower + 2 * slope
        rounding = 2.96 * (upper + lower) + (1 + high.log()) * (1.5 if k >= 1023 else 1.0)
        error = (6 * bend + rounding + upper + lower) / (2 * t) + (upper + lower) / t + b / 2
        gain = (b / 2).exp() - 1
        rows.append([(6 * slope + rounding + s) / s, error, 2 * gain / s, gain / t])
    most = np.array([[float(value.upper()) for value in row] for row in rows]).max(axis=0)
    assert (most <= [50.5, 9.5, 0.525, 0.36]).all(), most


def test_exact_values():
    assert special.bac_capacity([0, 1, 0, 1], [0, 1, 1, 0]).tolist() == [math.log(2), math.log(2), 0.0, 0.0]
    assert special.bac_capacity([0.25, 0.5, 0.875], [0.75, 0.5, 0.125]).tolist() == [0.0, 0.0, 0.0]
    assert special.binary_entropy([0.0, 1.0, 0.5]).tolist() == [0.0, 0.0, math.log(2)]
    # the Z channel with crossover 1/2 has capacity log(5/4)
    assert special.bac_capacity(0.0, 0.5) == pytest.approx(math.log(1.25), rel=1e-15)


@pytest.mark.parametrize("bad", [-1e-300, -1.0, np.nextafter(1, 2), math.inf, math.nan])
def test_outside_the_square_is_nan(bad):
    with np.errstate(all="raise"):
        values = [
            special.bac_capacity(bad, 0.5), special.bac_capacity(0.5, bad), special.binary_entropy(bad),
            special.binary_entropy_with_complement(bad, 0.5), special.binary_entropy_with_complement(0.5, bad),
            special.bac_capacity_with_complements(0.5, bad, 0.5, 0.5),
        ]
    assert np.isnan(values).all(), values


def test_scalars_in_scalars_out_and_broadcasting():
    assert isinstance(special.bac_capacity(0.1, 0.2), float)
    assert special.bac_capacity(np.zeros((3, 1)), np.zeros(4)).shape == (3, 4)


def test_a_capacity_that_rounds_to_zero_is_not_said_to_be_zero():
    """Rows that differ have a capacity above 0; with cells near 1e-318 it is below the least double."""
    got = bac_capacity(1e-318, 1.0, complement_b=1.001e-318)
    assert (got.value, got.lower) == (0.0, 0.0)
    assert got.upper > 0
    assert bac_capacity(1e-318, 1.0, complement_b=1e-318).upper < 1e-320
    assert bac_capacity(0.25, 0.75).upper == 0
    assert bac_capacity(0.6, 0.4, complement_a=0.4 + 2.0**-52).lower <= 2.0**-100
