"""Channels as values: what they take and refuse, equality, pickles, cascades, products, samples."""

import copy
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array

from fastpriv import Channel, DomainError, RandomizedResponse
from fastpriv.channels import AnyChannel, DefaultChannel, DefaultLikelihood, ProductChannel, SparseChannel
from fastpriv.errors import ShapeError
from fastpriv.mechanisms import (
    DiscreteLaplace,
    ExponentialMechanism,
    GeometricMechanism,
    SubsetSelection,
    UnaryEncoding,
)

RNG = np.random.default_rng(5)
ROWS = RNG.dirichlet(np.ones(4), 5)
EYE = csr_array(np.eye(3) * 0.75)
ALL = [
    Channel(ROWS), Channel(ROWS.astype(np.float32)), Channel(np.log(ROWS), log=True),
    SparseChannel(EYE, 0.125), SparseChannel(diags_array([0.5, 0.6, 0.7]), [[0.25], [0.2], [0.15]]),
    DefaultChannel(5, [0.5, 0.5], [3], [[0.1, 0.9]]), ExponentialMechanism(np.eye(3), 1.0), RandomizedResponse(4, 1.0),
    UnaryEncoding(3, 1.0), UnaryEncoding.optimized(3, 1.0), UnaryEncoding(3, p=0.7, q=0.1),
    UnaryEncoding.rappor(3, 0.5), SubsetSelection(5, 1.0, 2), GeometricMechanism(5, 0.5), DiscreteLaplace(5, 2.0),
    RandomizedResponse(2, 1.0).product(Channel(ROWS)), RandomizedResponse(2, 1.0).power(3),
]


@pytest.mark.parametrize("channel", ALL, ids=lambda c: repr(c)[:40])
def test_every_channel_is_a_value(channel):
    again = pickle.loads(pickle.dumps(channel))
    assert again == channel
    assert hash(again) == hash(channel)
    assert copy.copy(channel) is copy.deepcopy(channel) is channel
    assert isinstance(channel, AnyChannel)
    assert channel.shape == channel.matrix().shape == (channel.inputs, channel.outputs)
    assert np.allclose(channel.matrix().sum(axis=1), 1, atol=1e-6)
    with np.errstate(divide="ignore"):
        assert np.allclose(np.exp(channel.log_matrix()), channel.matrix())
    assert np.array_equal(channel.rows(1, 3), channel.matrix()[1:3])
    assert np.allclose(np.exp(channel.rows(1, 2, log=True)), channel.matrix()[1:2])
    assert channel.mass_gap <= 1e-6
    assert type(channel).__name__ in repr(channel)
    with pytest.raises(AttributeError, match="is immutable"):
        channel.anything = 3


def test_different_channels_differ():
    assert len(set(ALL)) == len(ALL)
    assert all(a != b for i, a in enumerate(ALL) for b in ALL[:i])
    assert RandomizedResponse(3, 1) != 3


@pytest.mark.parametrize("channel", [c for c in ALL if type(c.column(0)) in (np.ndarray, DefaultLikelihood)], ids=repr)
def test_columns_of_stored_channels(channel):
    if isinstance(channel, DiscreteLaplace):
        return
    for w in range(channel.outputs):
        found = channel.column(w)
        if isinstance(found, DefaultLikelihood):
            full = np.full(found.size, found.default)
            full[found.indices] = found.values
            found = full
        assert np.allclose(np.exp(found), channel.matrix()[:, w], rtol=1e-6)
    for wrong in (-1, channel.outputs, 0.5):
        with pytest.raises(DomainError, match="output must be an integer"):
            channel.column(wrong)


def test_dense_arrays_are_kept_or_copied(tmp_path):
    given = ROWS.copy()
    copied = Channel(given)
    given[0] = 0
    assert copied.cells[0].sum() == pytest.approx(1)
    kept = ROWS.copy()
    kept.setflags(write=False)
    assert np.shares_memory(Channel(kept).cells, kept)
    np.save(tmp_path / "q.npy", ROWS.astype(np.float32))
    mapped = np.load(tmp_path / "q.npy", mmap_mode="r")
    channel = Channel(mapped)
    assert np.shares_memory(channel.cells, mapped)
    assert channel.cells.dtype == np.float32
    assert Channel(np.asfortranarray(ROWS)).cells.flags.c_contiguous
    assert Channel([[1, 0], [0, 1]]).cells.dtype == np.float64


def test_dense_refusals_name_the_row():
    bad = np.tile(ROWS, (3, 1))
    bad[7, 2] += 1e-7
    with pytest.raises(DomainError, match=r"each row of matrix must sum to 1 within 1e-09; got a sum of .* at row 7"):
        Channel(bad)
    assert 0 < Channel(np.array([[0.5, 0.5 + 5e-10]])).mass_gap < 1e-9
    Channel(bad.astype(np.float32))
    for value in (np.nan, -0.5, 1.5, np.inf):
        wrong = ROWS.copy()
        wrong[3, 1] = value
        with pytest.raises(DomainError, match="probabilities between 0 and 1; got .* at row 3, column 1"):
            Channel(wrong)
    logs = np.log(ROWS)
    logs[2, 0] = 3.0
    with pytest.raises(DomainError, match="log probabilities, at most 0; got 3.0 at row 2, column 0"):
        Channel(logs, log=True)
    for wrong in ([0.5, 0.5], [[]], np.ones((2, 2, 2))):
        with pytest.raises(ShapeError, match="matrix must have one row a secret and one column a release"):
            Channel(wrong)
    with pytest.raises(DomainError, match="matrix must be numbers"):
        Channel([["a", "b"]])
    with pytest.raises(DomainError, match="log must be True or False"):
        Channel(ROWS, log=1)


def test_zero_columns_and_zero_priors():
    channel = Channel([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    got = channel.extreme_log_ratios([1.0, 0.0])
    assert (got.ldp_epsilon, got.ldp_on_support, got.xi_plus, got.xi_minus) == (np.inf, 0.0, 0.0, 0.0)
    assert channel.type_classes([0.5, 0.5]).log_total[2] == -np.inf
    with pytest.raises(ShapeError, match="prior must have one entry for each of the 2 secrets; got 3"):
        channel.type_classes([0.5, 0.25, 0.25])
    with pytest.raises(DomainError, match="prior must sum to 1"):
        channel.type_classes([0.5, 0.25])


def test_sparse_channels_are_dense_ones():
    cells = np.where(RNG.random((6, 6)) < 0.3, RNG.random((6, 6)) / 12, 0)
    for base in (np.full((1, 6), 0.1), RNG.random((1, 6)) / 10):
        full = np.where(cells > 0, cells, base)
        full[:, 5] = 1 - full[:, :5].sum(axis=1)
        stored = np.where(cells > 0, cells, 0)
        stored[:, 5] = full[:, 5]
        sparse, dense = SparseChannel(csr_array(stored), base), Channel(full)
        assert np.allclose(sparse.matrix(), full)
        for prior in (None, RNG.dirichlet(np.ones(6)), [0, 0.5, 0.25, 0.25, 0, 0]):
            one, two = sparse.extreme_log_ratios(prior), dense.extreme_log_ratios(prior)
            assert (one.ldp_epsilon, one.xi_plus, one.xi_minus) == pytest.approx(
                (two.ldp_epsilon, two.xi_plus, two.xi_minus), rel=1e-12)
            assert np.allclose(sparse.type_classes(prior).log_weight, dense.type_classes(prior).log_weight)
    with pytest.raises(DomainError, match=r"with its background; got a sum of .* at row 1"):
        SparseChannel(csr_array(np.diag([0.75, 0.5, 0.75])), 0.125)
    with pytest.raises(DomainError, match="exceptions must be probabilities between 0 and 1; got -0.5 at row 0"):
        SparseChannel(csr_array([[-0.5, 0.0]]), 0.5)
    with pytest.raises(ShapeError, match="exceptions must be a SciPy sparse matrix"):
        SparseChannel(np.eye(2))
    with pytest.raises(ShapeError, match="background must be a number, of shape"):
        SparseChannel(EYE, np.ones(2) / 2)


def test_cascades():
    first, second = Channel(ROWS), Channel(RNG.dirichlet(np.ones(3), 4))
    assert np.allclose(first.then(second).matrix(), ROWS @ second.matrix())
    assert first.then(second.matrix()) == first.then(second)
    merged = first.then([2, 0, 2, 0]).matrix()
    assert np.allclose(merged, np.stack([ROWS[:, 1] + ROWS[:, 3], 0 * ROWS[:, 0], ROWS[:, 0] + ROWS[:, 2]], axis=1))
    same = RandomizedResponse(4, 1.0).then(RandomizedResponse(4, 2.0))
    assert isinstance(same, RandomizedResponse)
    both = Channel(RandomizedResponse(4, 1.0).matrix()).then(RandomizedResponse(4, 2.0))
    assert np.allclose(same.matrix(), both.matrix())
    pair = RandomizedResponse(2, 1.0).power(100)
    assert pair.then(pair).factors[0] == RandomizedResponse(2, 1.0).then(RandomizedResponse(2, 1.0))
    assert DefaultChannel(9, [0.5, 0.5], [], []).then([0, 0]).outputs == 1
    with pytest.raises(ShapeError, match="post must take the 4 releases of the channel before it; got one of 3"):
        first.then(RandomizedResponse(3, 1.0))
    with pytest.raises(ShapeError, match="post must have one label for each of the 4 releases"):
        first.then([0, 1])
    for wrong in ([0, 1, -1, 0], [0.5, 0.0, 0.0, 0.0]):
        with pytest.raises(DomainError, match="labels of post must be integers of at least 0"):
            first.then(wrong)


def test_products():
    one, two = RandomizedResponse(2, 1.0), Channel(ROWS)
    both = one.product(two)
    assert np.allclose(both.matrix(), np.kron(one.matrix(), ROWS))
    assert both.product(one).power(2).powers == (1, 1, 1) * 2
    assert one.power(2).power(100) == one.power(200)
    assert one.power(1) is one
    assert both.extreme_log_ratios((None, None)) == both.extreme_log_ratios()
    dense = Channel(both.matrix()).extreme_log_ratios()
    assert both.extreme_log_ratios().ldp_epsilon == pytest.approx(dense.ldp_epsilon)
    assert both.extreme_log_ratios(np.full(10, 0.1)).xi_plus == pytest.approx(dense.xi_plus)
    assert both.column((1, 2)).factors[1].size == 5
    with pytest.raises(ShapeError, match="output must have one entry for each of the 2 coordinates"):
        both.column((1,))
    with pytest.raises(ShapeError, match="prior must be a tuple with one entry for each of the 2 factors"):
        both.extreme_log_ratios((None,))
    with pytest.raises(ShapeError, match="factors must have at least one entry; got none"):
        ProductChannel([])
    with pytest.raises(DomainError, match="factors must be a AnyChannel"):
        one.product(3)
    with pytest.raises(DomainError, match="exponent must be an integer of at least 1"):
        one.power(0)


SAMPLED = [c for c in ALL if not isinstance(c, (ProductChannel, DiscreteLaplace, UnaryEncoding, SubsetSelection))]


@pytest.mark.parametrize("channel", SAMPLED, ids=lambda c: repr(c)[:40])
def test_samples_follow_the_rows(channel):
    secrets = np.repeat(np.arange(channel.inputs), 4000)
    drawn = channel.sample(secrets, rng=7)
    assert np.array_equal(drawn, channel.sample(secrets, rng=7))
    seen = np.zeros(channel.shape)
    np.add.at(seen, (secrets, drawn), 1 / 4000)
    assert np.abs(seen - channel.matrix()).max() < 5 * 0.5 / 4000**0.5


def test_samples_of_sets_bits_tuples_and_integers():
    bits = UnaryEncoding(3, 2.0)
    drawn = bits.sample([1] * 4000, rng=1)
    assert np.abs(drawn.mean(axis=0) - [bits.q, bits.p, bits.q]).max() < 0.04
    sets = SubsetSelection(5, 1.0, 2)
    drawn = sets.sample([3] * 4000, rng=1)
    assert drawn.shape == (4000, 2)
    assert np.all(drawn[:, 0] < drawn[:, 1])
    held = np.exp(sets.log_inside) * 2 / 5
    assert abs((drawn == 3).any(axis=1).mean() - held) < 0.04
    pair = RandomizedResponse(2, 1.0).product(GeometricMechanism(5, 1.0)).sample([[0, 4], [1, 2]], rng=3)
    assert pair.shape == (2, 2)
    assert isinstance(RandomizedResponse(2, 1.0).product(bits).sample([[0, 2]], rng=3), tuple)
    noise = DiscreteLaplace(3, 2.0).sample([0] * 4000, rng=1)
    assert noise.min() < -3
    assert abs(noise.mean()) < 0.3
    huge = RandomizedResponse(2**200, 1.0).sample([0, 2**199], rng=1)
    assert all(0 <= one < 2**200 for one in huge.tolist())
    assert GeometricMechanism(5, 0.0).sample([2, 2, 2], rng=1).tolist() != [2, 2, 2]
    with pytest.raises(ShapeError, match="secrets must be tuples of 200 along the last axis"):
        RandomizedResponse(2, 1.0).power(200).sample([0, 1])
    for wrong in ([5], [-1]):
        with pytest.raises(DomainError, match="secrets must be integers from 0 to 4; got (5|-1) at index 0 "):
            sets.sample(wrong)
    for wrong in ([0.5], ["a"], [True]):
        with pytest.raises(DomainError, match="secrets must be integers from 0 to .*; got"):
            RandomizedResponse(2**200, 1.0).sample(wrong)


def test_releases_that_are_sets_or_bits():
    bits = UnaryEncoding(4, 1.0)
    one, two = bits.column(6), bits.column(np.array([False, True, True, False]))
    assert np.array_equal(one.indices, two.indices)
    assert one.default == two.default
    sets = SubsetSelection(6, 1.0, 2)
    assert sets.column([4, 1]).indices.tolist() == [1, 4]
    assert [tuple(sets.column(w).indices) for w in range(4)] == [(0, 1), (0, 2), (1, 2), (0, 3)]
    with pytest.raises(DomainError, match="output must hold 2 different secrets"):
        sets.column([1, 1])


def test_rappor():
    assert UnaryEncoding.rappor(10, 0.5).epsilon == pytest.approx(2 * np.log(3))
    report = UnaryEncoding.rappor(10, 0.5, p=0.5, q=0.75)
    assert (report.p, report.q) == pytest.approx((0.6875, 0.5625))
    assert UnaryEncoding.rappor(3, 0.0).q == 0.0


def test_arguments_of_structured_channels():
    for make in (RandomizedResponse, UnaryEncoding, SubsetSelection, GeometricMechanism):
        with pytest.raises(DomainError, match="epsilon must be at least 0"):
            make(3, -1.0)
        with pytest.raises(DomainError, match="must be an integer of at least 1"):
            make(0, 1.0)
    with pytest.raises(DomainError, match="epsilon must be given, or else both p and q"):
        UnaryEncoding(3)
    with pytest.raises(DomainError, match="scale must be positive and finite"):
        DiscreteLaplace(3, 0.0)
    with pytest.raises(ShapeError, match="scores must have one row a secret and one column a release"):
        ExponentialMechanism([1.0, 2.0], 1.0)
    with pytest.raises(ShapeError, match="rows must have one row for each of the 1 indices"):
        DefaultChannel(5, [0.5, 0.5], [3], [[0.1, 0.2, 0.7]])
    with pytest.raises(DomainError, match="indices must be distinct integers from 0 to 4"):
        DefaultChannel(5, [0.5, 0.5], [3, 3], [[0.1, 0.9], [0.1, 0.9]])
    with pytest.raises(DomainError, match="indices must be fewer than the 1 inputs"):
        DefaultChannel(1, [0.5, 0.5], [0], [[0.1, 0.9]])


def test_what_does_not_fit_is_refused():
    huge = RandomizedResponse(2**200, 1.0)
    for ask in (huge.matrix, huge.log_matrix, huge.rows, GeometricMechanism(10**12, 1.0).matrix):
        with pytest.raises(MemoryError, match="must fit in memory"):
            ask()
    with pytest.raises(MemoryError, match="cascade must fit in memory"):
        RandomizedResponse(10**7, 1.0).then(GeometricMechanism(10**7, 1.0))
    with pytest.raises(MemoryError, match="column must fit in memory"):
        GeometricMechanism(10**13, 1.0).column(0)
    assert GeometricMechanism(10**12, 1.0).type_classes() is None
    assert huge.column(7).indices.tolist() == [7]
    with pytest.raises(DomainError, match="stop must be an integer"):
        huge.rows(3, 2)


def test_ends_of_the_range_of_epsilon():
    for make in (RandomizedResponse, UnaryEncoding, UnaryEncoding.optimized, GeometricMechanism):
        for k in (1, 2, 3):
            for e in (0.0, 1e-300, 1e3, np.inf):
                channel = make(k, e)
                assert np.allclose(channel.matrix().sum(axis=1), 1)
                steps = k - 1 if make is GeometricMechanism else 1
                assert channel.extreme_log_ratios().ldp_epsilon == (0.0 if k == 1 else e * steps)
                assert channel.dominating_pairs() is not None
                assert channel.type_classes() is not None
