"""Stacks of channels: the bits of single calls for every notion, broadcasting, threads, errors and recorded errors."""

import math
import pickle

import numpy as np
import pytest

from fastpriv import Channel, DomainError, Pmf, channel_capacity, notions
from fastpriv.capacity import maximal_leakage
from fastpriv.channels import ChannelStack
from fastpriv.errors import ShapeError

QUANTITIES = ("ldp_epsilon", "lip_epsilon", "cd_lmip", "pointwise_lmip", "bayes_vulnerability", "min_entropy_leakage",
              "maximal_leakage")
EPSILON = [0.0, 1e-9, 0.3, 2.0, 40.0, 708.0, 720.0, math.inf]


def cells(rng, n, m, kind):
    """Rows of one of many kinds, degenerate and extreme ones among them."""
    rows = rng.dirichlet(np.full(m, 0.4), n)
    if kind == "zeros" and m > 1:
        rows[rng.random((n, m)) < 0.5] = 0.0
        rows[:, 0] += 1.0 - rows.sum(axis=1)
    if kind == "equal":
        rows[:] = rows[0]
    if kind == "nearly equal" and m > 1:
        rows[:] = rows[0]
        rows[:, 0] += 1e-12 * rows[:, 1] * np.arange(n) / n
        rows[:, 1] -= 1e-12 * rows[:, 1] * np.arange(n) / n
    if kind == "tiny" and m > 1:
        rows[:, -1] = 1e-300 * (1 + np.arange(n))
        rows[:, 0] += 1.0 - rows.sum(axis=1)
    if kind == "subnormal" and m > 1:
        rows[:, -1] = 5e-324 * (1 + np.arange(n))
        rows[:, 0] += 1.0 - rows.sum(axis=1)
    if kind == "identity":
        rows = np.eye(n, m)
        rows[m:, 0] = 1.0
    return rows


KINDS = ("plain", "zeros", "equal", "nearly equal", "tiny", "subnormal", "identity")


def stack_of(n, m, seed=0, count=2):
    rng = np.random.default_rng([seed, n, m])
    return np.array([[cells(rng, n, m, kind) for kind in KINDS] for _ in range(count)])


def priors_of(n, seed=0, count=2):
    rng = np.random.default_rng([seed, n])
    priors = rng.dirichlet(np.ones(n), (count, 1))
    if n > 2:
        priors[0, 0, 1] = 0.0
        priors[0, 0, 0] += 1.0 - priors[0, 0].sum()
    return priors


def same(one, many, index):
    assert (one.kind, one.unit) == (many.kind, many.unit)
    for a, b in zip(one.arrays(), many.arrays(), strict=True):
        np.testing.assert_array_equal(a, b[index], strict=True)


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (4, 1), (2, 2), (3, 5), (17, 9), (40, 70)])
@pytest.mark.parametrize("given", [False, True])
def test_every_quantity_of_a_stack_is_that_of_its_channels_bit_for_bit(shape, given):
    rows = stack_of(*shape)
    prior = priors_of(shape[0]) if given else None
    stack = ChannelStack(rows)
    for name in QUANTITIES:
        function = getattr(notions, name)
        found = function(prior, stack)
        assert found.shape == (2, 7)
        for index in np.ndindex(2, 7):
            same(function(None if prior is None else prior[index[0], 0], Channel(rows[index])), found, index)
    sides = notions.mbp(prior, stack)
    for index in np.ndindex(2, 7):
        one = notions.mbp(None if prior is None else prior[index[0], 0], Channel(rows[index]))
        for side in ("xi", "plus", "minus"):
            same(getattr(one, side), getattr(sides, side), index)


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (4, 1), (2, 2), (3, 5), (17, 9)])
@pytest.mark.parametrize("given", [False, True])
def test_curves_of_a_stack_are_those_of_its_channels_bit_for_bit(shape, given):
    rows = stack_of(*shape)
    prior = priors_of(shape[0]) if given else None
    stack = ChannelStack(rows)
    found = {
        "ldp": notions.ldp_delta(prior, stack, EPSILON), "lip": notions.lip_delta(prior, stack, EPSILON),
        "support": notions.ldp_delta(prior, stack, EPSILON, on_support=True),
    }
    for index in np.ndindex(2, 7):
        own, channel = (None if prior is None else prior[index[0], 0]), Channel(rows[index])
        for which, one in (
            ("ldp", notions.ldp_delta(own, channel, EPSILON)),
            ("support", notions.ldp_delta(own, channel, EPSILON, on_support=True)),
            ("lip", notions.lip_delta(own, channel, EPSILON)),
        ):
            same(one, found[which], index)


def test_single_numbers_and_rows_of_epsilon():
    rows = stack_of(3, 4)
    stack = ChannelStack(rows)
    for function in (notions.ldp_delta, notions.lip_delta, notions.log_lip_delta):
        at_one = function(None, stack, 0.3)
        assert at_one.shape == (2, 7)
        np.testing.assert_array_equal(at_one.value, function(None, stack, [0.3]).value[..., 0])
        own = function(None, stack, np.array([[[0.1, 0.3]], [[0.3, 0.5]]]))
        assert own.shape == (2, 7, 2)
        np.testing.assert_array_equal(own.value[0, :, 1], at_one.value[0])
        np.testing.assert_array_equal(own.value[1, :, 0], at_one.value[1])
        wide = function(None, stack, np.array([0.3, 0.1]).reshape(2, 1, 1, 1))
        assert wide.shape == (2, 2, 7, 1)
        np.testing.assert_array_equal(wide.value[0, ..., 0], at_one.value)
        assert function(None, stack, np.empty(0)).shape == (2, 7, 0)
    delta, log_delta = notions.lip_curves(None, stack, [0.1, 0.2])
    assert delta.shape == log_delta.shape == (2, 7, 2)


def test_priors_broadcast_with_the_stack():
    rows = stack_of(4, 3)
    stack, prior = ChannelStack(rows), np.array([0.1, 0.2, 0.3, 0.4])
    many = notions.cd_lmip(np.broadcast_to(prior, (5, 1, 7, 4)), stack)
    assert many.shape == (5, 2, 7)
    one = notions.cd_lmip(prior, stack)
    assert one.shape == (2, 7)
    np.testing.assert_array_equal(many.value[3], one.value)
    np.testing.assert_array_equal(notions.cd_lmip(Pmf(range(4), prior), stack).upper, one.upper)
    alone = notions.cd_lmip(prior, ChannelStack(rows[0, 0]))
    assert alone.shape == ()
    assert alone.value == one.value[0, 0]
    priors = np.random.default_rng(2).dirichlet(np.ones(4), 6)
    spread = notions.bayes_vulnerability(priors, ChannelStack(rows[1, 0]))
    assert spread.value.tolist() == [notions.bayes_vulnerability(p, Channel(rows[1, 0])).value for p in priors]


def test_threads_and_blocks_change_no_bit():
    rows = np.random.default_rng(5).dirichlet(np.ones(6), (9001, 3))
    stack = ChannelStack(rows)

    def lip(prior, channel, n_jobs):
        return notions.lip_delta(prior, channel, 0.2, n_jobs=n_jobs)

    def ldp(prior, channel, n_jobs):
        return notions.ldp_delta(prior, channel, 0.2, n_jobs=n_jobs)

    for function in (notions.cd_lmip, notions.maximal_leakage, lip, ldp):
        one, two = (function(None, stack, n_jobs=n) for n in (1, 2))
        for a, b in zip(one.arrays(), two.arrays(), strict=True):
            np.testing.assert_array_equal(a, b)
        same(function(None, Channel(rows[9000]), n_jobs=1), one, 9000)
    steps = []
    notions.cd_lmip(None, stack, progress=lambda done, total: steps.append((done, total)))
    assert steps[-1] == (3, 3)


def test_single_precision_and_other_notions():
    rows = np.random.default_rng(6).dirichlet(np.ones(4), (5, 3))
    single = (rows.astype(np.float32)).astype(np.float32)
    stack = ChannelStack(single)
    assert stack.cells.dtype == np.float32
    for name in QUANTITIES:
        for k in range(5):
            same(getattr(notions, name)(None, Channel(single[k])), getattr(notions, name)(None, stack), k)
    for k in range(5):
        same(notions.lip_delta(None, Channel(single[k]), [0.1, 1.0]), notions.lip_delta(None, stack, [0.1, 1.0]), k)
    stack, prior = ChannelStack(rows), np.array([0.5, 0.0, 0.5])
    shifts, best = notions.abp(prior, stack), notions.map_secrets(prior, stack)
    assert shifts.per_value.shape == (5, 3)
    assert np.isnan(shifts.per_value.value[:, 1]).all()
    whole = notions.summary(prior, stack)
    for k in range(5):
        channel = Channel(rows[k])
        alone = notions.abp(prior, channel)
        np.testing.assert_array_equal(shifts.per_value.value[k, [0, 2]], alone.per_value.value)
        same(alone.mean, shifts.mean, k)
        same(alone.maximum, shifts.maximum, k)
        np.testing.assert_array_equal(notions.map_secrets(prior, channel), best[k])
        same(notions.min_entropy_leakage(prior, channel), whole.min_entropy_leakage, k)


@pytest.mark.parametrize(("n", "m"), [(1, 4), (2, 1), (2, 2), (5, 9), (17, 33), (130, 3)])
@pytest.mark.parametrize("single", [False, True])
def test_posteriors_of_a_stack(n, m, single):
    """Each kind of rows; priors without zeros, with the same ones and with their own; many blocks of pairs."""
    rows = stack_of(n, m)[0]
    if single:
        rows = rows.astype(np.float32)
    own = np.random.default_rng(n).dirichlet(np.full(n, 0.3), len(KINDS))
    own[1::2, : n // 2] = 0.0
    own /= own.sum(axis=1, keepdims=True)
    for prior in (None, own[0], own[1], own):
        stack = ChannelStack(rows)
        found, best = notions.abp(prior, stack), notions.map_secrets(prior, stack, n_jobs=2)
        for k in range(len(KINDS)):
            one, channel = prior if prior is None or prior.ndim == 1 else prior[k], Channel(rows[k])
            alone = notions.abp(one, channel)
            support = np.ones(n, dtype=bool) if one is None else one > 0
            for a, b in zip(found.per_value.arrays(), alone.per_value.arrays(), strict=True):
                np.testing.assert_array_equal(a[k, support], b)
                assert np.isnan(a[k, ~support]).all()
            same(alone.mean, found.mean, k)
            same(alone.maximum, found.maximum, k)
            np.testing.assert_array_equal(notions.map_secrets(one, channel), best[k])


def test_capacity_of_a_stack():
    for n, m in ((2, 2), (3, 5), (18, 3)):
        rows = stack_of(n, m)
        found, leak = channel_capacity(ChannelStack(rows)), maximal_leakage(ChannelStack(rows))
        assert notions.ci_lmip(ChannelStack(rows)).shape == (2, 7)
        for index in np.ndindex(2, 7):
            one = channel_capacity(Channel(rows[index]))
            same(one.capacity, found.capacity, index)
            for part in ("input", "output", "divergences", "iterations", "converged"):
                np.testing.assert_array_equal(getattr(one, part), getattr(found, part)[index])
            same(maximal_leakage(Channel(rows[index])), leak, index)


def test_large_channels_of_a_stack_are_taken_one_by_one(monkeypatch):
    from fastpriv.notions.discrete import delta_curves, dense_quantities

    rows = stack_of(5, 7)
    one = [function(None, ChannelStack(rows)) for function in (notions.cd_lmip, notions.mbp)]
    curves = [function(None, ChannelStack(rows), [0.2, 3.0]) for function in (notions.ldp_delta, notions.lip_delta)]
    monkeypatch.setattr(dense_quantities, "_BLOCK_CELLS", 30)
    monkeypatch.setattr(delta_curves, "_MOST_STACKED", 10)
    two = [function(None, ChannelStack(rows)) for function in (notions.cd_lmip, notions.mbp)]
    again = [function(None, ChannelStack(rows), [0.2, 3.0]) for function in (notions.ldp_delta, notions.lip_delta)]
    for a, b in ((one[0], two[0]), (one[1].xi, two[1].xi), *zip(curves, again, strict=True)):
        np.testing.assert_allclose(a.value, b.value, rtol=1e-13, atol=1e-14)
        assert (np.maximum(a.lower, b.lower) <= np.minimum(a.upper, b.upper)).all()


BAD = [
    (lambda c: c[1, 2].__setitem__((0, 0), -0.5),
     r"matrices must be made of probabilities .* at channel \(1, 2\) \(1 of 14 channels\); got -0.5 at row 0"),
    (lambda c: c[1, 2].__setitem__((1, 1), np.nan), r"at channel \(1, 2\) .* got nan at row 1, column 1"),
    (lambda c: c[0, 3].__setitem__(1, 0.3), r"each row of matrices must sum to 1 within 1e-09 at channel \(0, 3\)"),
]


@pytest.mark.parametrize(("spoil", "text"), BAD)
def test_a_bad_channel_is_named_or_recorded(spoil, text):
    rows = stack_of(3, 4)
    good = notions.cd_lmip(None, ChannelStack(rows))
    spoil(rows)
    with pytest.raises(DomainError, match=text):
        ChannelStack(rows)
    stack = ChannelStack(rows, errors="record")
    (index,) = stack.errors
    with pytest.raises(DomainError, match="matrix"):
        stack[index]
    assert stack[0, 0] != stack[0, 1]
    smaller = stack[index[0]]
    assert list(smaller.errors) == [(index[1],)]
    assert pickle.loads(pickle.dumps(stack)) == stack
    assert "1 of them invalid" in repr(stack)
    others = np.ones((2, 7), dtype=bool)
    others[index] = False
    for function in (notions.cd_lmip, notions.lip_epsilon, channel_capacity, maximal_leakage, notions.ldp_delta,
                     notions.lip_delta):
        if function in (channel_capacity, maximal_leakage):
            found = function(stack) if function is maximal_leakage else function(stack).capacity
        elif function in (notions.cd_lmip, notions.lip_epsilon):
            found = function(None, stack)
        else:
            found = function(None, stack, 0.5)
        for number in found.arrays():
            assert np.isnan(number[index])
            assert not np.isnan(number[others]).any()
        assert dict(found.cost["errors"]) == stack.errors
    found = notions.cd_lmip(None, stack, unit="bits")
    assert np.isnan(found.value[index])
    np.testing.assert_array_equal(notions.cd_lmip(None, stack).value[others], good.value[others])
    assert np.isnan(notions.abp(None, stack).mean.value[index])
    assert (notions.map_secrets(None, stack)[index] == -1).all()
    wide = notions.ldp_delta(None, stack, np.full((3, 1, 1, 2), 0.1))
    assert wide.shape == (3, 2, 7, 2)
    assert sorted(dict(wide.cost["errors"])) == [(k, *index) for k in range(3)]


def test_a_bad_prior_is_named_or_recorded():
    rows = stack_of(3, 4)
    for bad, text in (
        ([0.5, 0.5, 0.5], "prior must sum to 1 within 1e-09 at row \\(1, 0\\) \\(1 of 2 rows\\); got a sum of 1.5"),
        ([0.5, 0.75, -0.25], "prior must be probabilities between 0 and 1 at row \\(1, 0\\)"),
        ([0.5, np.nan, 0.5], "prior must be .* at row \\(1, 0\\)"),
        ([0.5, 0.5, 1e-305], "prior must be 0 or at least 1e-300 at every secret at row \\(1, 0\\)"),
    ):
        priors = np.array([[0.25, 0.25, 0.5], bad])
        with pytest.raises(DomainError, match=text):
            notions.cd_lmip(priors[:, None], ChannelStack(rows))
        found = notions.cd_lmip(priors[:, None], ChannelStack(rows, errors="record"))
        assert np.isnan(found.value[1]).all()
        np.testing.assert_array_equal(found.value[0], notions.cd_lmip(priors[0], ChannelStack(rows[0])).value)
        assert set(dict(found.cost["errors"])) == {(1, k) for k in range(7)}


def test_shapes_and_arguments_that_do_not_fit():
    stack = ChannelStack(stack_of(3, 4))
    for call, text in (
        (lambda: ChannelStack([0.5, 0.5]), r"matrices must have one row a secret and .*; got shape \(2,\)"),
        (lambda: ChannelStack(np.empty((2, 0, 3))), r"matrices must have one row a secret and one column a release"),
        (lambda: notions.cd_lmip([0.5, 0.5], stack), r"prior must have one entry for each of the 3 secrets along"),
        (lambda: notions.cd_lmip(np.full((3, 1, 3), 1 / 3), stack[0]), ""),
        (lambda: notions.cd_lmip(np.full((3, 3), 1 / 3), stack), r"prior must have leading axes that broadcast"),
        (lambda: notions.ldp_delta(None, stack, np.ones((3, 2))), r"epsilon must have leading axes that broadcast"),
    ):
        if text:
            with pytest.raises(ShapeError, match=text):
                call()
        else:
            assert call().shape == (3, 7)
    with pytest.raises(DomainError, match="matrices must be rows of probabilities of one length"):
        ChannelStack([[1.0], [0.5, 0.5]])
    with pytest.raises(DomainError, match="errors must be one of raise, record"):
        ChannelStack(np.eye(2), errors="ignore")
    with pytest.raises(DomainError, match="prior must be probabilities between 0 and 1; got"):
        notions.cd_lmip("abc", stack)
    with pytest.raises(DomainError, match="release, secret and belief must be None for a stack"):
        notions.abp(None, stack, secret=0)
    with pytest.raises(DomainError, match="posteriors, release, secret and belief must be None for a stack"):
        notions.summary(None, stack, secret=0)
    with pytest.raises(TypeError, match="without leading axes has no length"):
        len(ChannelStack(np.eye(2)))


def test_the_object():
    rows = stack_of(3, 4)
    rows.setflags(write=False)
    stack = ChannelStack(rows)
    assert np.shares_memory(stack.cells, rows)
    assert (stack.shape, stack.size, stack.inputs, stack.outputs, len(stack)) == ((2, 7), 14, 3, 4, 2)
    assert stack[1, 2] == Channel(rows[1, 2])
    assert stack[:, 3].shape == (2,)
    assert [one.shape for one in stack] == [(7,), (7,)]
    assert stack[np.array([[True] * 7, [False] * 7])].shape == (7,)
    assert pickle.loads(pickle.dumps(stack)) == stack
    assert hash(stack) == hash(ChannelStack(rows.copy()))
    assert stack.mass_gaps[1, 2] == Channel(rows[1, 2]).mass_gap
    assert repr(stack) == "<ChannelStack of shape (2, 7): 3 secrets, 4 releases, float64>"
    with pytest.raises(AttributeError, match="immutable"):
        stack.cells = rows
    empty = ChannelStack(np.empty((0, 3, 4)))
    for name in QUANTITIES:
        assert getattr(notions, name)(None, empty).shape == (0,)
    for curve in (notions.ldp_delta, notions.lip_delta):
        assert curve(None, empty, [0.1, 0.2]).shape == (0, 2)
    assert channel_capacity(empty).capacity.shape == maximal_leakage(empty).shape == (0,)
    assert notions.abp(None, empty).per_value.shape == (0, 3)
    assert notions.map_secrets(None, empty).shape == (0, 4)
