"""Capacities of finite channels: brackets contain the truth, and are as narrow as was asked for."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from fastpriv import bac_capacity, channel_capacity, notions
from fastpriv.capacity import maximal_leakage
from fastpriv.kernels import _channel_capacity
from oracles import discrete_capacity as oracle
from sizes import few_first

LN2 = math.log(2.0)


def entropy(*p):
    return -sum(x * math.log(x) for x in p if x > 0)


def symmetric(k, error):
    return np.full((k, k), error / (k - 1)) + (1 - error - error / (k - 1)) * np.eye(k)


def typewriter(k):
    return 0.5 * np.eye(k) + 0.5 * np.roll(np.eye(k), 1, axis=1)


CLOSED = {
    "bsc": ([[0.875, 0.125], [0.125, 0.875]], LN2 - entropy(0.125, 0.875)),
    "bec": ([[0.75, 0.25, 0], [0, 0.25, 0.75]], 0.75 * LN2),
    "z": ([[1, 0], [0.5, 0.5]], math.log(1.25)),
    "identity": (np.eye(40), math.log(40)),
    "permutation": (np.eye(23)[np.random.default_rng(0).permutation(23)], math.log(23)),
    "duplicates": (np.eye(7)[[0, 0, 1, 2, 3, 3, 3, 4, 6]], math.log(6)),
    "symmetric 5": (symmetric(5, 0.25), math.log(5) - entropy(0.75) - 4 * entropy(0.0625)),
    "symmetric 64": (symmetric(64, 0.5), math.log(64) - entropy(0.5) - 63 * entropy(0.5 / 63)),
    "typewriter 4": (typewriter(4), math.log(2)),
    "typewriter 26": (typewriter(26), math.log(13)),
    "unused input": ([[0.5, 0.5, 0], [0, 0.5, 0.5], [0.25, 0.5, 0.25]], LN2 / 2),
    "barely unused": ([[1, 0], [0, 1], [0.5, 0.5]], LN2),
    "zero columns": ([[0, 0.75, 0.25, 0, 0], [0, 0, 0.25, 0.75, 0]], 0.75 * LN2),
}


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("gap", [1e-3, 1e-9, 1e-13])
def test_closed_forms(name, gap):
    channel, truth = CLOSED[name]
    found = channel_capacity(channel, rtol=gap)
    near = 1e-15 * (1 + truth)  # rounding of the closed form
    assert found.capacity.lower <= truth + near
    assert truth - near <= found.capacity.upper
    assert found.capacity.width <= gap * max(1, truth) + 3e-14
    assert found.converged
    assert abs(found.input.sum() - 1) < 1e-14
    np.testing.assert_allclose(found.input @ np.asarray(channel), found.output, atol=1e-15)
    assert found.divergences.max() <= found.capacity.upper * (1 + 1e-12)


@pytest.mark.parametrize(
    "channel",
    [np.tile([0.2, 0.3, 0.5], (5, 1)), np.tile([0.1] * 10, (40, 1)), [[1.0]], [[0.25, 0.75]], np.ones((30, 1))],
    ids=["equal", "equal, many", "one cell", "one row", "one column"],
)
def test_useless_channels_have_capacity_zero(channel):
    found = channel_capacity(channel)
    assert (found.capacity.value, found.capacity.lower, found.converged) == (0.0, 0.0, True)
    assert found.capacity.upper <= 1e-30
    assert maximal_leakage(channel).lower == 0.0


def families(rng, n, m):
    yield rng.dirichlet(np.ones(m), n)
    yield rng.dirichlet(np.full(m, 0.1), n)
    yield rng.dirichlet(np.full(m, 1e5), n)
    wild = np.exp(40 * rng.normal(size=(n, m)))
    yield wild / wild.sum(axis=1, keepdims=True)
    holes = np.where(rng.random((n, m)) < 0.5, 0, rng.random((n, m)))
    holes[np.arange(n), rng.integers(0, m, n)] += 0.01
    yield holes / holes.sum(axis=1, keepdims=True)
    twins = rng.dirichlet(np.ones(m), n)
    twins[-1] = twins[0]
    yield twins
    leak = 10.0 ** -rng.uniform(1, 12, (n, 1))
    yield rng.dirichlet(np.ones(m), n) * (1 - leak) + leak * np.eye(m)[np.arange(n) % m]


@pytest.mark.few(1)
@pytest.mark.parametrize("shape", few_first([(2, 2), (2, 5), (3, 3), (4, 3), (5, 2)], 3))
def test_random_channels_against_high_precision(shape):
    rng = np.random.default_rng(shape)
    for number, channel in enumerate(families(rng, *shape)):
        low, high = oracle.capacity(channel)
        for gap in (1e-6, 1e-12):
            found = channel_capacity(channel, rtol=gap).capacity
            text = f"family {number}: {found!r}, truth {mp.nstr(low, 20)} to {mp.nstr(high, 20)}"
            assert mpf(found.lower) <= high, text
            assert low <= mpf(found.upper), text
            assert found.width <= gap * min(1, found.value) + 1e-13 * found.value + 1e-15 * found.value**0.5, text


@pytest.mark.parametrize("shape", [(17, 6), (6, 17), (20, 20), (60, 3)])
def test_the_bounds_are_those_of_the_laws(shape):
    rng = np.random.default_rng(shape)
    for channel in families(rng, *shape):
        found = channel_capacity(channel, rtol=1e-10)
        assert found.converged
        assert found.capacity.width <= 1e-10 * min(1, found.capacity.value) * 1.1 + 1e-13 * found.capacity.value + 1e-15
        assert mpf(found.capacity.lower) <= oracle.information(channel, found.input)
        with mp.workdps(40):
            q = [mpf(x) / mp.fsum(found.output) for x in found.output]
            assert max(oracle.divergences(oracle.rows_of(channel), q)) <= mpf(found.capacity.upper)


@pytest.mark.parametrize("most", [0, 1, 2, 4])
def test_a_run_that_is_cut_short_is_true_and_says_so(most):
    rng = np.random.default_rng(most)
    for n, m in ((3, 3), (20, 18)):
        channel = rng.dirichlet(np.ones(m), n)
        full, short = channel_capacity(channel, rtol=1e-12), channel_capacity(channel, max_iterations=most)
        assert short.capacity.lower <= full.capacity.upper
        assert full.capacity.lower <= short.capacity.upper
        assert short.iterations <= most
        assert short.converged == ("not converged" not in short.method)
        assert not short.converged or most == 4
    timed = channel_capacity(rng.dirichlet(np.ones(40), (3, 50)), max_seconds=1e-9)
    assert not timed.converged.any()
    assert "3 of 3 stopped" in timed.method


@pytest.mark.slow
def test_tiny_capacities_keep_their_digits():
    for size in (1e-3, 1e-6, 2.0**-26):
        truth = bac_capacity(0.5 - size, 0.5 - size).value
        two = channel_capacity([[0.5 + size, 0.5 - size], [0.5 - size, 0.5 + size]]).capacity
        assert two.lower <= truth * (1 + 4e-15)
        assert truth * (1 - 4e-15) <= two.upper
        rows = [[0.5 + size, 0.25 - size, 0.25], [0.5 - size, 0.25 + size, 0.25], [0.5, 0.25, 0.25]]
        three = channel_capacity(rows).capacity
        low, high = oracle.capacity(rows, 1e-12 * truth)
        assert mpf(three.lower) <= high
        assert low <= mpf(three.upper)
        assert three.width <= 1e-7 * three.value
    faint = channel_capacity([[1.0, 0.0], [1.0, 1e-200]]).capacity
    assert 0 < faint.lower <= 1e-200 / math.e <= faint.upper
    assert faint.width < 1e-13 * faint.value


def test_cells_and_columns_near_the_smallest_numbers():
    tiny = [[1.0, 1e-300, 5e-324], [0.5, 0.5, 0.0], [0.25, 0.75, 1e-310]]
    found = channel_capacity(tiny, rtol=1e-12).capacity
    plain = channel_capacity([[1, 0], [0.5, 0.5], [0.25, 0.75]], rtol=1e-12).capacity
    assert found.width < 2e-12
    assert abs(found.value - plain.value) < 2e-12
    wide = channel_capacity(np.hstack([np.eye(20), np.full((20, 20), 1e-305)]))
    assert wide.capacity.lower <= math.log(20) * (1 + 1e-15)
    assert math.log(20) * (1 - 1e-15) <= wide.capacity.upper


def test_inputs_whose_best_probability_is_below_every_number():
    base = np.full(30, 1.0 / 30)
    rows = np.vstack([np.eye(30), base])
    rows = np.hstack([rows * 0.999, 0.001 * np.eye(31)])
    found = channel_capacity(rows, rtol=1e-10)
    assert found.converged
    assert found.capacity.width < 2e-10 * found.capacity.value


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), [(20_000, 8), (8, 20_000), (3, 2000), (500, 300)])
def test_long_and_wide_channels(n, m):
    channel = np.random.default_rng((n, m)).dirichlet(np.ones(m), n)
    found = channel_capacity(channel)
    assert found.converged
    assert found.capacity.width <= 1.2e-9
    p = found.input / math.fsum(found.input)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(channel > 0, channel * np.log(channel / (p @ channel)), 0.0)
    assert abs(p @ terms.sum(axis=1) - found.capacity.lower) < 1e-12
    assert abs(terms.sum(axis=1).max() - found.capacity.upper) < 1e-12


@pytest.mark.slow
def test_rows_that_miss_one_widen_the_bounds():
    rng = np.random.default_rng(5)
    exact = rng.dirichlet(np.ones(4), 4)
    bent = exact * (1 + 9e-10 * rng.uniform(-1, 1, (4, 1)))
    found = channel_capacity(bent, rtol=1e-13)
    low, high = oracle.capacity(exact)
    assert mpf(found.capacity.lower) <= high
    assert low <= mpf(found.capacity.upper)
    assert 1e-10 < found.capacity.width < 1e-8
    assert found.converged
    single = channel_capacity(exact.astype(np.float32), rtol=1e-13)
    assert mpf(single.capacity.lower) <= high
    assert low <= mpf(single.capacity.upper)


def test_the_bound_on_divergences_holds():
    rng = np.random.default_rng(11)
    for scale in (1.0, 1e-4, 1e-8, 1e-12):
        m = 40
        q = rng.dirichlet(np.ones(m))
        rows = np.abs(q * (1 + scale * rng.normal(size=(5, m))))
        found = _channel_capacity.divergences(rows, q)
        for row, value in zip(rows, found, strict=True):
            with mp.workdps(60):
                truth = mp.fsum(
                    mpf(x) * mp.log(mpf(x) / mpf(t)) - mpf(x) + mpf(t) for x, t in zip(row, q, strict=True)
                )
                assert abs(mpf(value) - truth) <= mpf(_channel_capacity.divergence_relative_error(m)) * truth


def test_gaps_of_rows_are_rounded_up_and_exact_where_they_are_zero():
    rng = np.random.default_rng(2)
    rows = np.vstack([rng.dirichlet(np.ones(37), 20), np.eye(37)[:3], np.full((1, 37), 1 / 37)])
    for row, gap in zip(rows, _channel_capacity.row_gaps(rows), strict=True):
        with mp.workdps(60):
            truth = abs(mp.fsum(mpf(x) for x in row) - 1)
        assert truth <= mpf(gap) <= truth * (1 + mpf(2) ** -49) + mpf(2) ** -88
    assert (_channel_capacity.row_gaps(np.eye(9)) == 0).all()


@pytest.mark.parametrize("unit", ["nats", "bits"])
def test_maximal_leakage(unit):
    rng = np.random.default_rng(9)
    scale = LN2 if unit == "bits" else 1.0
    for m in (2, 5, 60):
        channel = rng.dirichlet(np.ones(m), 7)
        found = maximal_leakage(channel, unit=unit)
        with mp.workdps(40):
            truth = mp.log(mp.fsum(max(mpf(x) for x in column) for column in channel.T)) / mpf(scale)
        assert mpf(found.lower) <= truth <= mpf(found.upper)
        assert found.width < 1e-13
        assert channel_capacity(channel, unit=unit).capacity.lower <= found.upper
    tiny = maximal_leakage([[0.5 + 2.0**-50, 0.5 - 2.0**-50], [0.5, 0.5]])
    assert tiny.lower <= 2.0**-50 <= tiny.upper * (1 + 1e-15)
    assert tiny.width < 1e-13 * tiny.value
    assert maximal_leakage(np.eye(8)[None, :, :].repeat(3, axis=0)).shape == (3,)


def test_maximal_leakage_is_one_number():
    """The notion and the function of stacks agree to the last bit, also where rounding leaves rows beside 1."""
    rng = np.random.default_rng(11)
    for _ in range(100):
        n, m = rng.integers(2, 9, size=2)
        cells = rng.random((n, m)) ** 3
        cells /= cells.sum(axis=1, keepdims=True)
        stack, notion = maximal_leakage(cells), notions.maximal_leakage(None, cells)
        assert stack.value == notion.value
        exact = mp.log(mp.fsum(mp.mpf(float(x)) for x in cells.max(axis=0)))  # of the rows as they were given
        assert stack.lower <= exact <= stack.upper
