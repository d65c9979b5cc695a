"""Generalised ufuncs of channels: the numbers of the functions of notions and capacity, NaN for what is no channel."""

import flint
import numpy as np
import pytest

from fastpriv import Channel, channel_capacity, notions, special
from fastpriv.kernels import _channel_quantities
from kernels.variants import check_same_lines, each_wider_variant

SCRIPT = """
import hashlib
import numpy as np
from fastpriv import special

digest = hashlib.sha256()
rng = np.random.default_rng(4)
for n, m in ((1, 1), (2, 2), (3, 5), (20, 7)):
    rows, prior = (np.round(rng.dirichlet(np.full(k, 0.4), (6, n)[:j]) * 2**40) / 2**40 for k, j in ((m, 2), (n, 1)))
    rows[..., 0] += 1 - rows.sum(axis=-1)
    prior[..., 0] += 1 - prior.sum(axis=-1)
    for name in ("capacity", "ldp_epsilon", "maximal_leakage"):
        digest.update(np.array(getattr(special, "channel_" + name)(rows)).tobytes())
    for name in ("mutual_information", "bayes_vulnerability"):
        digest.update(np.array(getattr(special, "channel_" + name)(prior, rows)).tobytes())
print(digest.hexdigest())
"""
WITHOUT = {
    "channel_ldp_epsilon": lambda q: notions.ldp_epsilon(None, q),
    "channel_maximal_leakage": lambda q: notions.maximal_leakage(None, q),
    "channel_capacity": lambda q: channel_capacity(q).capacity,
}
WITH = {"channel_mutual_information": notions.cd_lmip, "channel_bayes_vulnerability": notions.bayes_vulnerability}


@each_wider_variant
@pytest.mark.slow
def test_every_instruction_set_gives_the_same_bits(variant):
    check_same_lines(SCRIPT, 1, variant)


def rows_of(n, m):
    rng = np.random.default_rng([n, m])
    rows = rng.dirichlet(np.full(m, 0.4), (6, n))
    rows[1] = rows[1, 0]
    if m > 1:
        rows[2][rng.random((n, m)) < 0.5] = 0.0
        rows[2, :, 0] += 1.0 - rows[2].sum(axis=1)
        rows[3, :, -1] = 1e-300 * (1 + np.arange(n))
        rows[4, :, -1] = 5e-324 * (1 + np.arange(n))
        rows[3:5, :, 0] += 1.0 - rows[3:5].sum(axis=-1)
    return rows


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (2, 2), (5, 4), (16, 16)])
def test_the_bits_of_the_functions(shape):
    rows = rows_of(*shape)
    prior = np.random.default_rng(1).dirichlet(np.ones(shape[0]), 6)
    calls = [(name, function, (rows,)) for name, function in WITHOUT.items()]
    calls += [(name, function, (prior, rows)) for name, function in WITH.items()]
    for name, function, arrays in calls:
        found = getattr(special, name)(*arrays)
        for k in range(6):
            one = function(*(array[k] if array is prior else Channel(array[k]) for array in arrays))
            if name in WITH and k in (3, 4) and shape[1] > 1:  # a column that the functions scale
                assert found[1][k] <= one.upper
                assert one.lower <= found[2][k]
                assert found[2][k] - found[1][k] <= 1e-13 * (1 + one.value)
            else:
                assert tuple(number[k] for number in found) == one.floats()


def hostile(rng, c, n, m):
    """Rows that repeat or nearly do or are certain, zeros, subnormals, and columns that have to be scaled."""
    rows = rng.dirichlet(np.full(m, 0.4), (c, n))
    kinds, last = np.arange(c) % 8, rows[..., -1]
    rows[kinds == 1] = rows[kinds == 1][:, :1]
    rows[kinds == 2] *= 1 + 1e-13 * rng.standard_normal((n, m))
    rows[kinds == 3] = np.eye(m)[rng.integers(0, m, n)]
    rows[kinds == 4] *= rng.random((n, m)) < 0.5
    last[kinds == 5] = 10.0 ** rng.uniform(-324, -290, n)
    last[kinds == 6] = -0.0
    rows[kinds == 7] *= 10.0 ** rng.uniform(-300, 0, (n, m))
    rows[..., 0] = np.maximum(rows[..., 0] + 1 - rows.sum(axis=-1), 0.0)
    priors = rng.dirichlet(np.full(n, 0.5), c)
    priors[::3] *= rng.random((n,)) < 0.5
    priors[1::3, -1] = 1e-299
    priors[..., 0] += 1 - priors.sum(axis=-1)
    return rows, priors


@pytest.mark.parametrize("shape", [(1, 1), (1, 64), (64, 1), (2, 2), (4, 4), (9, 7), (20, 3), (3, 20), (8, 8)])
def test_channels_side_by_side_have_the_bits_of_one(shape):
    """Whatever their number, their order, and who is beside them; an invalid one changes no other."""
    rows, priors = hostile(np.random.default_rng(shape), 43, *shape)
    wanted = 1 << _channel_quantities.NAMES.index("cd_lmip") | 1 << _channel_quantities.NAMES.index("pointwise_lmip")
    order = np.random.default_rng(1).permutation(43)
    for cells in (rows, rows.astype(np.float32)):
        for some in (None, priors):
            out, status = np.ones((43, 10, 3)), np.ones(43, dtype=np.int8)
            index = order if some is not None else 0 * order
            _channel_quantities.of_channels(cells, some, np.full(43, 1e-15), 1e-9, wanted, order, index, out, status)
            for k, c in enumerate(order):
                prior = None if some is None else some[c]
                one = _channel_quantities.of_channel(cells[c], prior, 1e-15, 1e-9, wanted)
                assert (one is None) == (status[k] != 0)
                np.testing.assert_array_equal(out[k].ravel(), one or np.zeros(30))
    whole = np.array(special.channel_mutual_information(priors, rows))
    for k in range(43):
        np.testing.assert_array_equal(special.channel_mutual_information(priors[k], rows[k]), whole[:, k])
        assert whole[1, k] <= whole[0, k] <= whole[2, k]
    rows[5] = np.nan
    priors[6, 0] = np.inf
    for arrays in ((priors, rows), (priors[::-1], rows[::-1])):
        np.testing.assert_array_equal(
            np.isnan(special.channel_mutual_information(*arrays)[0][:: 1 if arrays[1] is rows else -1]),
            np.isin(np.arange(43), (5, 6)),
        )


def test_information_side_by_side_against_balls():
    rows, priors = hostile(np.random.default_rng(3), 64, 4, 4)
    value, lower, upper = special.channel_mutual_information(priors, rows)
    with flint.ctx.workprec(400):
        for k in range(64):
            rows_k = [[flint.arb(float(x)) for x in row] for row in rows[k]]
            rows_k = [[x / sum(row) for x in row] for row in rows_k]
            prior = [flint.arb(float(x)) for x in priors[k]]
            prior = [x / sum(prior) for x in prior]
            mixed = [sum(p * row[w] for p, row in zip(prior, rows_k, strict=True)) for w in range(4)]
            truth = sum(p * x * (x / q).log() for p, row in zip(prior, rows_k, strict=True)
                        for x, q in zip(row, mixed, strict=True) if p > 0 and x > 0)
            assert lower[k] <= truth + 1e-60
            assert truth <= upper[k] + 1e-60
            assert upper[k] - lower[k] <= 1e-12 * (1e-3 + value[k])


def test_large_channels_have_a_wide_bracket_of_the_capacity():
    rows = np.random.default_rng(2).dirichlet(np.ones(9), (3, 30))
    value, lower, upper = special.channel_capacity(rows)
    for k in range(3):
        sharp = channel_capacity(rows[k]).capacity
        assert lower[k] <= value[k] <= upper[k]
        assert lower[k] <= sharp.lower <= sharp.upper <= upper[k]
        assert lower[k] > 0.5 * sharp.value


def test_arguments_of_a_ufunc():
    rows, prior = rows_of(3, 4), np.array([0.2, 0.3, 0.5])
    value, lower, upper = special.channel_mutual_information(prior, rows)
    assert value.shape == (6,)
    strided = np.asfortranarray(rows.transpose(2, 0, 1)).transpose(1, 2, 0)
    assert not strided.flags.c_contiguous
    np.testing.assert_array_equal(special.channel_mutual_information(prior, strided)[1], lower)
    priors = np.stack([prior, prior[::-1]])[:, None]
    assert special.channel_bayes_vulnerability(priors, rows)[0].shape == (2, 6)
    out = np.empty(6), np.empty(6), np.empty(6)
    assert special.channel_mutual_information(prior, rows, out=out)[2] is out[2]
    np.testing.assert_array_equal(out[2], upper)
    assert all(np.ndim(number) == 0 for number in special.channel_capacity(rows[0]))
    assert special.channel_capacity(np.empty((0, 2, 2)))[0].shape == (0,)
    assert special.channel_capacity(rows.astype(np.float32).round(1).astype(float))[0].shape == (6,)


@pytest.mark.filterwarnings("error")
def test_what_is_no_channel_is_nan():
    rows = np.tile([[0.5, 0.5], [0.2, 0.8]], (7, 1, 1))
    rows[0, 0, 0] = np.nan
    rows[1, 1] = [-0.2, 1.2]
    rows[2, 0] = [0.5, 0.500001]
    rows[3, 0] = [np.inf, 0.0]
    rows[4, 0] = 0.0
    rows[5, 1] = [-np.inf, np.inf]
    for name in WITHOUT:
        for number in getattr(special, name)(rows):
            assert np.isnan(number[:6]).all()
            assert number[6] > 0
    priors = np.array([[0.5, 0.6], [np.nan, 1.0], [1.5, -0.5], [1.0, 1e-305], [np.inf, 0.0], [1.0, 0.0]])
    for name in WITH:
        for number in getattr(special, name)(priors, rows[6]):
            assert np.isnan(number[:5]).all()
            assert not np.isnan(number[5])
        assert np.isnan(getattr(special, name)([0.5, 0.5], rows[:6])).all()
    for number in special.channel_ldp_epsilon(np.empty((2, 0, 3))):
        assert np.isnan(number).all()
    for number in special.channel_ldp_epsilon(np.empty((2, 3, 0))):
        assert np.isnan(number).all()
    with pytest.raises(ValueError, match="core dimension"):
        special.channel_mutual_information([0.5, 0.25, 0.25], rows[6])
