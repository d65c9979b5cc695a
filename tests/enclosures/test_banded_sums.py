"""Laws of banded sums on a grid of the noise, against quadrature in 40 digits and the exact curves of few bins."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fastpriv.composition import BandedMatrixMechanism
from fastpriv.pairs import banded_sums
from fastpriv.pairs.allocations import IMPROVED_DELTAS, AllocationPair
from fastpriv.pairs.banded_sums import banded_pair
from oracles import structured_sampling as oracle

EPSILON = (0.0, 0.5, 2.0, 8.0, 20.0)


def pair_of(column, sigma, bins, epochs, adds):
    one = BandedMatrixMechanism(column, sigma, bins, epochs=epochs)
    loads = [tuple((np.array(column) * math.sqrt(epochs) / sigma * (1 + side * 2.0**-50)).tolist()) for side in (-1, 1)]
    above = bins if epochs == 1 else bins - len(column) + 1
    ends = [AllocationPair(one.scale, t, False, IMPROVED_DELTAS, 1) for t in (bins // len(column), bins)]
    found = banded_pair(loads[0], bins, loads[1], above, *ends)
    return found.reversed() if adds else found


@pytest.mark.slow
@pytest.mark.parametrize(("column", "sigma", "bins", "epochs"), [
    *itertools.product(([1.0, 0.5], [1.0, 1.0], [0.3, 1.0]), (0.5, 1.0, 2.0, 5.0), (2, 3), (1, 2)),
    ([1.0, 0.5, 0.25], 2.0, 3, 1), ([1.0, 0.0, 0.5], 1.0, 4, 1), ([1.0, 0.1], 1.0, 4, 3)])
def test_few_bins(column, sigma, bins, epochs):
    """The curves of few bins share no code with these laws; their own truth is in ``test_few_bins``."""
    truth = BandedMatrixMechanism(column, sigma, bins, epochs=epochs)
    for adds in (False, True):
        exact = truth.delta(np.array(EPSILON), direction="backward" if adds else "forward")
        found = pair_of(column, sigma, bins, epochs, adds).curve(np.array(EPSILON))
        print(column, sigma, bins, epochs, adds, float((found.upper / np.maximum(found.lower, 1e-300)).max()))
        assert (found.lower <= exact.upper).all(), (found, exact)
        assert (exact.lower <= found.upper).all(), (found, exact)


@pytest.mark.few(1)
@pytest.mark.parametrize(("sigma", "epsilon"), [(2.0, 0.5), (1.0, 3.0), (2.0, 4.0)])
@pytest.mark.parametrize("adds", [False, True])
def test_two_bins_in_40_digits(sigma, epsilon, adds):
    truth = math.exp(oracle.bins_log_delta(oracle.toeplitz([1.0, 0.5], sigma, 2), epsilon, adds, 0.2, 12.0))
    found = pair_of([1.0, 0.5], sigma, 2, 1, adds).curve(np.array([epsilon]))
    assert found.lower[0] <= truth * (1 + 1e-12)
    assert truth * (1 - 1e-12) <= found.upper[0]
    assert found.upper[0] <= 1.15 * found.lower[0]


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "low", "high"), [(0.5, 4.5e-4, 4.8e-4), (1.0, 4.4e-8, 5.1e-8)])
def test_sixteen_bins(epsilon, low, high):
    """By sampling 4.65e-8 +- 0.04e-8 at epsilon 1."""
    found = BandedMatrixMechanism([1.0, 0.5], 2.0, 16).delta(epsilon, direction="forward")
    assert low < found.lower < found.upper < high


@pytest.mark.slow
def test_bounds_are_of_second_order(monkeypatch):
    widths = []
    for spacing in (1 / 2, 1 / 4, 1 / 8):
        monkeypatch.setattr(banded_sums, "_SPACINGS", (spacing,))
        found = banded_sums._bounds.__wrapped__(pair_of([1.0, 0.5], 1.0, 6, 1, False), 1.5, 20.0, True, (6, 6, 2))
        _, lower, upper = found.excesses(np.array([math.exp(1.5)]), False)
        widths.append(float(upper[0] / lower[0] - 1.0))
    assert widths[2] < 0.4 * widths[1] < 0.16 * widths[0]


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.slow
def test_many_levels_contain_few(adds):
    pair = pair_of([1.0, 0.5], 2.0, 8, 1, adds)
    levels = np.linspace(0.0, 3.0, 10)
    many = pair.curve(levels)
    for i in (0, 3):
        few = pair.curve(levels[i : i + 1])
        assert many.lower[i] <= few.upper[0] * (1 + 1e-9)
        assert few.lower[0] <= many.upper[i] * (1 + 1e-9)
    assert (np.diff(many.upper) <= 0.0).all()


@pytest.mark.parametrize("bands", [1, 2, 3])
def test_kernel_keeps_means_and_encloses_variances(bands):
    """All sequences of two points, one by one."""
    rng, bins, points = np.random.default_rng(1), 4, 2
    value, weights = rng.random((points ** (bands - 1), points)), np.array([0.25, 0.75])
    sums, masses = [], []
    for chosen in itertools.product(range(points), repeat=bins + bands - 1):
        places = (np.ravel_multi_index(chosen[i : i + bands], (points,) * bands) for i in range(bins))
        sums.append(sum(value.ravel()[i] for i in places))
        masses.append(math.prod(weights[list(chosen)]))
    mean, square = np.dot(sums, masses), np.dot(np.square(sums), masses)
    states = itertools.product((0, 1), repeat=bands - 1)
    start = np.array([math.prod(weights[list(state)]) for state in states])
    squares = []
    for above in (False, True):
        edges = np.linspace(0.0, 5.0, 21)
        mass, at = np.zeros((2, start.size, edges.size))
        mass[:, 0] = start
        work = np.empty(2 * mass.size)
        lost = banded_sums._banded_sums.banded_sum(value, weights, bins, edges, above, mass, at, work)
        assert lost == 0.0
        assert (mass.sum(), (mass * at).sum()) == pytest.approx((1.0, mean), rel=1e-13)
        squares.append((mass * at**2).sum())
    assert squares[0] <= square * (1 + 1e-12)
    assert square < squares[1]
    with pytest.raises(ValueError, match="one row a state"):
        banded_sums._banded_sums.banded_sum(value, weights[:1], bins, edges, True, mass, at, work)
