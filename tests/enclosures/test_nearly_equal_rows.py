"""The bracket of nearly equal rows holds, and says why it is wider than rtol."""

import numpy as np
import pytest
from mpmath import fsum, log, mp, mpf

from fastpriv import Channel, channel_capacity
from fastpriv.kernels import _channel_capacity


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


@pytest.mark.parametrize("bits", [15, 24, 33, 43])
@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 3), (4, 16), (20, 18)])
def test_brackets_of_rows_of_sum_one_hold(n, m, bits):
    rows = dyadic_rows(np.random.default_rng(n * 1000 + m * 50 + bits), n, m, bits)
    found = channel_capacity(rows)
    low, high = exact_bracket(rows, found.input)
    assert found.capacity.lower <= high
    assert low <= found.capacity.upper
    assert found.converged or found.method.endswith(("wider than rtol by rounding", "rtol 1e-09"))
    assert found.converged or bits > 15


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
