"""The capacity of nearly equal rows reaches rtol, or says that rows of another sum than 1 do not allow it."""

import numpy as np
import pytest
from mpmath import fsum, log, mp, mpf

from fastpriv import Channel, channel_capacity
from fastpriv.capacity.interior_point import nearly_equal_rows
from fastpriv.kernels import _channel_capacity

UNIT = 2.0**-53


@pytest.fixture(autouse=True)
def sixty_digits():
    with mp.workdps(60):
        yield


def exact_bracket(rows, p):
    """I(p) and the largest divergence from the output of p, which enclose the capacity, from exact cells."""
    cells = [[mpf(float(x)) for x in row] for row in rows]
    weights = [mpf(float(x)) for x in p]
    weights = [x / fsum(weights) for x in weights]
    q = [fsum(w * row[j] for w, row in zip(weights, cells, strict=True)) for j in range(len(cells[0]))]
    k = [fsum(a * log(a / b) for a, b in zip(row, q, strict=True) if a) for row in cells]
    return fsum(w * one for w, one in zip(weights, k, strict=True)), max(k)


def dyadic_rows(rng, n, m, bits):
    """Rows that sum to exactly 1 and differ by multiples of 2^-bits."""
    cells = rng.integers(2**7, 2**9, m).astype(float)
    cells[-1] += 2.0 ** np.ceil(np.log2(cells.sum())) - cells.sum()
    cells /= cells.sum()
    moves = rng.integers(-3, 4, (n, m)).astype(float)
    moves[:, 0] -= moves.sum(axis=1)
    rows = cells + moves * 2.0**-bits
    assert (_channel_capacity.row_gaps(np.ascontiguousarray(rows)) == 0.0).all()
    return rows


@pytest.mark.parametrize("bits", [24, 28, 33, 38, 43, 46])
@pytest.mark.parametrize(("n", "m"), [(2, 2), (2, 3), (3, 3), (5, 4), (4, 16), (16, 3), (20, 18), (40, 5)])
def test_rows_of_sum_one_reach_rtol(n, m, bits):
    rng = np.random.default_rng(n * 1000 + m * 50 + bits)
    rows = dyadic_rows(rng, n, m, bits)
    found = channel_capacity(rows)
    gaps = np.zeros(n)
    e, (low, high) = found.capacity, exact_bracket(rows, nearly_equal_rows(rows, gaps, 1e-12, 200, np.inf).p)
    assert (high - low) / high <= 1e-11
    assert found.converged
    assert e.lower <= high
    assert low <= e.upper
    assert abs(e.value / high - 1) <= 2e-9
    assert e.width <= 1e-9 * e.value, found.method
    stack = channel_capacity(np.stack([rows, rows]))
    assert stack.converged.all()
    assert (stack.capacity.width <= 1e-9 * stack.capacity.value).all()


@pytest.mark.parametrize("difference", [1e-12, 1e-13, 1e-14, 1e-15])
def test_two_rows_contain_the_capacity(difference):
    rows = np.array([[0.25, 0.5, 0.25], [0.25, 0.5, 0.25]])
    rows[1] += np.array([2.0, -1.0, -1.0]) * 2.0 ** round(np.log2(difference))
    best = channel_capacity(rows)
    low, high = exact_bracket(rows, best.input)
    assert best.capacity.lower <= high
    assert low <= best.capacity.upper
    assert best.capacity.width <= 1e-12 * best.capacity.value
    assert best.method.endswith("from centred rows")


def test_rows_of_another_sum_are_said_to_be_the_reason():
    first = np.array([0.3, 0.7])
    for difference in (1e-9, 1e-11, 1e-13):
        found = channel_capacity([first, first + np.array([difference, -difference])])
        relative = found.capacity.width / found.capacity.value
        assert relative > 1e-9
        assert "; wider than rtol, which rows do not allow that miss the sum 1 by up to" in found.method
        assert found.capacity.method == found.method
        stack = channel_capacity(np.array([[first, first + np.array([difference, -difference])], np.eye(2)]))
        assert "which rows do not allow" in stack.method
    wide = channel_capacity(np.array([[0.1, 0.9], [0.3, 0.7]], dtype=np.float32))
    assert "miss the sum 1 by up to" in wide.method
    assert "rtol" not in channel_capacity([[0.25, 0.75], [0.5, 0.5]]).method
    assert "rtol" not in channel_capacity(Channel([[0.25, 0.75], [0.5, 0.5]])).method


@pytest.mark.parametrize("seed", range(6))
def test_bounds_of_centred_rows_hold_for_any_cells(seed):
    """The bounds at the input that was found, against exact arithmetic on rows whose sums are 1 exactly."""
    rng = np.random.default_rng(seed)
    n, m, bits = int(rng.integers(2, 9)), int(rng.integers(2, 9)), int(rng.integers(22, 47))
    rows = dyadic_rows(rng, n, m, bits)
    if (rows == rows[0]).all():
        return
    found = nearly_equal_rows(rows, np.zeros(n), 1e-9, 200, np.inf)
    information, largest = exact_bracket(rows, found.p)
    assert mpf(found.lower) <= information * (1 + mpf(2) ** -60)
    assert largest <= mpf(found.upper)
    assert found.upper - found.lower <= 1e-9 * found.value
    for one, k in zip(rows, found.divergences, strict=True):
        exact = exact_bracket(np.array([one, *rows]), [0.0, *found.p])[1]
        assert k <= exact * (1 + 1e-12)


def test_what_is_not_nearly_equal_is_left_to_the_other_method():
    for rows in ([[0.5, 0.5], [0.4, 0.6]], [[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [1.0 - 1e-9, 1e-9]]):
        cells = np.array(rows)
        assert nearly_equal_rows(cells, np.zeros(2), 1e-9, 200, np.inf) is None
