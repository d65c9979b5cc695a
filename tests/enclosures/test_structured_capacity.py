"""Capacities of channel objects: closed forms against many digits, all others against the rows written out."""

import numpy as np
import pytest
from mpmath import mp, mpf

from fastpriv import Channel, DomainError, RandomizedResponse, channel_capacity
from fastpriv.capacity import maximal_leakage
from fastpriv.channels import DefaultChannel
from fastpriv.mechanisms import ExponentialMechanism, GeometricMechanism, SubsetSelection, UnaryEncoding
from oracles import discrete_capacity as oracle

CLOSED = [
    *((RandomizedResponse(k, e), oracle.alike_response, (k, e)) for k in (2, 3, 10**12, 2**200)
      for e in (1e-20, 1e-3, 3.0, 40.0, 1e4)),
    *((SubsetSelection(k, e, s), oracle.alike_subsets, (k, e, s)) for k, s in ((5, 2), (10**9, 10**8))
      for e in (1e-12, 0.1, 40.0)),
    *((UnaryEncoding(k, e), oracle.alike_bits, (k, e, None)) for k in (2, 7, 300) for e in (1e-8, 0.1, 10.0)),
    (UnaryEncoding(2000, 2.0), oracle.alike_bits, (2000, 2.0, None)),
    *((UnaryEncoding(k, p=p, q=q), oracle.alike_bits, (k, p, q)) for k, p, q in
      ((3, 0.3, 0.8), (50, 1.0, 0.125), (50, 0.0, 0.125), (9, 0.25, 1e-9), (4, 0.5, 0.5))),
]
SMALL = [
    RandomizedResponse(5, 1.3), RandomizedResponse(4, np.inf), RandomizedResponse(1, 2.0), UnaryEncoding(1, 1.0),
    UnaryEncoding(6, 1.5), UnaryEncoding.optimized(5, 0.7), UnaryEncoding.rappor(4, 0.5, p=0.25, q=0.75),
    UnaryEncoding.rappor(3, 0.0), UnaryEncoding(4, p=0.25, q=0.0), SubsetSelection(7, 1.0, 3),
    GeometricMechanism(9, 0.4), ExponentialMechanism([[1.0, 0.0, 2.0], [0.0, 1.0, 0.5]], 2.0),
    DefaultChannel(9, [0.5, 0.5], [2, 4], [[0.9, 0.1], [0.2, 0.8]]),
    RandomizedResponse(2, 1.0).product(UnaryEncoding(3, 1.0)), GeometricMechanism(3, 1.0).power(3),
    Channel([[0.25, 0.75], [0.5, 0.5]]), Channel(np.log([[0.25, 0.75], [0.5, 0.5]]), log=True),
]


@pytest.mark.parametrize(("channel", "truth", "numbers"), CLOSED, ids=lambda x: getattr(x, "__name__", repr(x)[:40]))
def test_closed_forms(channel, truth, numbers):
    found = channel_capacity(channel)
    with mp.workdps(300):
        if truth is oracle.alike_bits and numbers[2] is None:
            p = mp.exp(mpf(numbers[1]) / 2) / (1 + mp.exp(mpf(numbers[1]) / 2))
            want = truth(numbers[0], p, 1 - p)
        else:
            want = truth(numbers[0], *map(mpf, numbers[1:]))
        assert mpf(found.capacity.lower) <= want <= mpf(found.capacity.upper)
        assert abs(mpf(found.capacity.value) - want) <= mpf(1e-13) * want
    assert found.capacity.width <= 1e-10 * found.capacity.value
    assert found.converged
    assert found.method == "all inputs alike: the uniform distribution"


@pytest.mark.parametrize("channel", SMALL, ids=lambda x: repr(x)[:40])
def test_structure_and_rows_agree(channel):
    found, written = channel_capacity(channel, rtol=1e-12), channel_capacity(channel.matrix(), rtol=1e-12)
    assert found.capacity.lower <= written.capacity.upper
    assert written.capacity.lower <= found.capacity.upper
    assert found.capacity.width < 1e-11
    assert found.converged
    rows, p, q = channel.matrix(), found.input, found.output
    assert p.shape == found.divergences.shape == (channel.inputs,)
    np.testing.assert_allclose(p.sum(), 1.0, rtol=1e-14)
    np.testing.assert_allclose(p @ rows, q, atol=1e-14)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(rows > 0, rows * np.log(rows / q), 0.0).sum(axis=1)
    np.testing.assert_allclose(found.divergences, far, atol=1e-12)
    bits = channel_capacity(channel, rtol=1e-12, unit="bits")
    np.testing.assert_allclose(bits.capacity.value * np.log(2), found.capacity.value, rtol=1e-12, atol=1e-300)
    assert not bits.divergences.flags.writeable
    assert maximal_leakage(channel).upper >= found.capacity.lower


def test_what_is_too_large_is_not_written_out():
    many = RandomizedResponse(10**12, 30.0)
    assert channel_capacity(many).input is None
    hundred = channel_capacity(many.power(100))
    assert hundred.capacity.value == pytest.approx(100 * channel_capacity(many).capacity.value, rel=1e-14)
    assert hundred.output is hundred.divergences is None
    assert hundred.method == "sum over factors: all inputs alike: the uniform distribution"
    few = DefaultChannel(10**12, [0.5, 0.5], [2, 4], [[0.9, 0.1], [0.2, 0.8]])
    found, rows = channel_capacity(few), channel_capacity([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]])
    assert found.capacity.lower <= rows.capacity.upper
    assert found.input is None
    np.testing.assert_allclose(found.output, rows.output, atol=1e-6)
    assert not channel_capacity(RandomizedResponse(2**2000, 1e4), rtol=1e-12).converged
    cut = channel_capacity(Channel(GeometricMechanism(20, 1.0).matrix()).power(2), max_iterations=1)
    assert not cut.converged
    assert "not converged" in cut.method
    with pytest.raises(MemoryError, match="matrix must"):
        channel_capacity(GeometricMechanism(10**9, 1.0))


@pytest.mark.slow
def test_single_precision_has_one_rule():
    rng = np.random.default_rng(3)
    rows = rng.dirichlet(np.ones(5), 4)
    for factor in (1.0, 1 + 1.5e-6, 1 - 1.5e-6):
        single = (rows * factor).astype(np.float32)
        low, high = oracle.capacity(rows)
        for given in (single, Channel(single), Channel(np.log(single), log=True)):
            found = channel_capacity(given).capacity
            assert found.lower <= high
            assert low <= found.upper
    off = (rows * (1 + 3e-6)).astype(np.float32)
    with pytest.raises(DomainError, match=r"rows that sum to 1 within 2e-06; got a sum of 1.00000\d+ in row 0"):
        channel_capacity(off)
    with pytest.raises(DomainError, match=r"each row of matrix must sum to 1 within 2e-06; got a sum of 1.00000\d+ at"):
        Channel(off)


@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 0.5, 1.0, 4.0, 50.0])
@pytest.mark.parametrize("n", [17, 60])
def test_geometric_mechanisms_by_structure_agree_with_their_cells(n, epsilon):
    mechanism = GeometricMechanism(n, epsilon)
    found, cells = channel_capacity(mechanism), channel_capacity(mechanism.matrix())
    assert found.converged
    assert found.iterations <= 3  # of full matrices; the start came by structure
    assert "by structure" in found.method
    assert found.capacity.lower <= cells.capacity.upper
    assert cells.capacity.lower <= found.capacity.upper
    assert found.capacity.upper - found.capacity.lower <= 1e-9 * min(1.0, found.capacity.value) * 1.01 + 1e-14
    assert found.divergences.max() <= found.capacity.upper


def test_a_geometric_mechanism_outside_of_the_structured_way_is_solved_all_the_same():
    for epsilon in (1e-5, 710.0, np.inf):
        assert channel_capacity(GeometricMechanism(20, epsilon), rtol=1e-8).converged
    found, stopped = (channel_capacity(GeometricMechanism(40, 0.3), max_iterations=k) for k in (200, 0))
    assert stopped.capacity.lower <= found.capacity.upper <= stopped.capacity.upper


@pytest.mark.slow
def test_three_thousand_geometric_inputs():
    for epsilon in (0.01, 0.1, 1.0):
        found = channel_capacity(GeometricMechanism(3000, epsilon))
        assert found.converged
        assert found.iterations <= 1
