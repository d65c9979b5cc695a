"""The kernel of written channels: NumPy's answers, the same bits on every instruction set and for any threads."""

import math

import numpy as np
import pytest

from fastpriv import Channel, notions
from fastpriv.kernels import _channel_blocks
from fastpriv.notions.discrete import dense_quantities
from kernels.variants import check_same_lines, each_wider_variant

SCRIPT = """
import hashlib
import numpy as np
from fastpriv.kernels import _channel_blocks

digest = hashlib.sha256()
rng = np.random.default_rng(4)
for n, m in ((1, 1), (7, 5), (8, 512), (9, 513), (40, 1030)):
    for kind in (np.float64, np.float32):
        rows = rng.dirichlet(np.full(m, 0.2), n).astype(kind)
        prior = rng.dirichlet(np.ones(n)) * (np.arange(n) % 5 != 3)
        centre = rows.min(axis=0).astype(float)
        numbers, places = _channel_blocks.column_statistics(rows, prior, centre, 3)
        digest.update(numbers.tobytes() + places.tobytes())
        delta = numbers[3] + numbers[4]
        q = centre + delta
        out = np.empty(rows.shape, kind)
        with np.errstate(divide="ignore"):
            inverse = np.where(q > 0, 1 / q, 0.0)
        told = _channel_blocks.row_statistics(rows, prior, centre, delta, inverse, q, q[::-1].copy(), out)
        digest.update(told.tobytes() + out.tobytes())
        one, two = np.zeros(6), np.zeros(6)
        plain = rows.astype(float)
        _channel_blocks.raise_hockey_sticks(plain, plain[0], np.expm1(np.linspace(0, 3, 6)), one, two)
        _channel_blocks.raise_hockey_sticks(plain, q, np.expm1(np.linspace(0, 3, 6)), one, two, centre, delta)
        digest.update(one.tobytes() + two.tobytes())
print(digest.hexdigest())
"""


@each_wider_variant
@pytest.mark.slow
def test_every_instruction_set_gives_the_same_bits(variant):
    check_same_lines(SCRIPT, 1, variant)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 3), (23, 700), (16, 1025)])
def test_the_passes_against_numpy(n, m, kind):
    rng = np.random.default_rng([n, m])
    rows = rng.dirichlet(np.full(m, 0.5), n).astype(kind)
    rows[:, rng.random(m) < 0.1] = 0.0
    prior = rng.dirichlet(np.ones(n)) * (np.arange(n) % 6 != 2)
    held = prior > 0
    centre = rng.random(m) / m
    numbers, places = _channel_blocks.column_statistics(rows, prior, centre, 100)
    joint = prior[:, None] * rows
    for got, want in (
        (numbers[0], rows[held].max(axis=0)), (numbers[1], rows[held].min(axis=0)), (numbers[2], joint.max(axis=0)),
        (numbers[5], rows[~held].max(axis=0, initial=-1.0)), (numbers[6], rows[~held].min(axis=0, initial=np.inf)),
    ):
        np.testing.assert_array_equal(got, want)
    first = np.where(joint.max(axis=0) > 0, joint.argmax(axis=0), np.argmax(held))
    np.testing.assert_array_equal(places, 100 + first)
    delta = prior @ (rows - centre)
    np.testing.assert_allclose(numbers[3] + numbers[4], delta, atol=1e-15)
    q = np.where(rows[held].max(axis=0) > 0, prior @ rows.astype(float), 0.0)
    inverse = np.divide(1.0, q, out=np.zeros(m), where=q > 0)
    law, out = rng.dirichlet(np.ones(m)), np.empty(rows.shape)
    k, total, shift = _channel_blocks.row_statistics(rows, prior, np.zeros(m), q, inverse, q, law, out)
    r = rows * inverse
    with np.errstate(divide="ignore", invalid="ignore"):
        psi = np.where(r > 0, r * np.log(np.where(r > 0, r, 1.0)), 0.0) - r + (q > 0)
    np.testing.assert_allclose(k, psi @ q, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(total, rows.sum(axis=1, dtype=float), rtol=1e-14)
    np.testing.assert_allclose(shift, (r - (q > 0)) @ law, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(out, prior[:, None] * r, rtol=1e-14)


def test_blocks_joined_are_one_block_to_rounding_and_places_stay_the_first():
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 4, (50, 30)) / 8.0
    prior = np.full(50, 0.02)
    whole, places = _channel_blocks.column_statistics(rows, prior, np.zeros(30), 0)
    found, where = _channel_blocks.column_statistics(rows[:17], prior[:17], np.zeros(30), 0)
    found, where = found.copy(), where.copy()
    _channel_blocks.merge_column_statistics(
        found, where, *_channel_blocks.column_statistics(rows[17:], prior[17:], np.zeros(30), 17)
    )
    np.testing.assert_array_equal(where, places)
    np.testing.assert_array_equal(where, (prior[:, None] * rows).argmax(axis=0))
    np.testing.assert_allclose(found, whole, rtol=1e-15, atol=1e-16)


def test_threads_change_no_bit(monkeypatch, tmp_path):
    monkeypatch.setattr(dense_quantities, "_BLOCK_CELLS", 2**10)
    rng = np.random.default_rng(9)
    rows, prior = rng.dirichlet(np.ones(40), 300), rng.dirichlet(np.ones(300))
    channel = Channel(rows)
    filled = [np.empty(rows.shape) for _ in range(2)]
    one, two = (notions.summary(prior, channel, posteriors=out, n_jobs=i + 1) for i, out in enumerate(filled))
    for name, got in one.estimates().items():
        assert got == two.estimates()[name], name
    np.testing.assert_array_equal(*filled)
    path = tmp_path / "posteriors.npy"
    assert notions.summary(prior, channel, posteriors=path, n_jobs=2).posteriors == path
    np.testing.assert_array_equal(np.load(path), filled[0])
    seen = []
    notions.mbp(prior, channel, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (12, 12)
    for curve in (notions.ldp_delta, notions.lip_delta):
        a, b = (curve(prior, channel, [0.1, 0.5], n_jobs=n) for n in (1, 2))
        np.testing.assert_array_equal(a.value, b.value)


def test_a_memory_mapped_channel_is_read_in_place(tmp_path):
    rows = np.random.default_rng(2).dirichlet(np.ones(30), 200)
    np.save(tmp_path / "channel.npy", rows)
    mapped = Channel(np.load(tmp_path / "channel.npy", mmap_mode="r"))
    assert notions.cd_lmip(None, mapped).value == notions.cd_lmip(None, rows).value


@pytest.mark.parametrize("call", [
    lambda z: _channel_blocks.column_statistics(np.ones((2, 3)), z(3), z(3), 0),
    lambda z: _channel_blocks.column_statistics(np.ones((2, 3)), z(2), z(2), 0),
    lambda z: _channel_blocks.merge_column_statistics(np.ones((7, 3)), np.zeros(3, np.intp), np.ones((7, 2)),
        np.zeros(2, np.intp)),
    lambda z: _channel_blocks.row_statistics(np.ones((2, 3)), z(2), z(3), z(3), z(3), z(2), None, None),
    lambda z: _channel_blocks.row_statistics(np.ones((2, 3)), z(2), z(3), z(3), z(3), z(3), None, np.ones((3, 2))),
    lambda z: _channel_blocks.raise_hockey_sticks(np.ones((2, 3)), z(2), z(1), z(1), z(1)),
    lambda z: _channel_blocks.raise_hockey_sticks(np.ones((2, 3)), z(3), z(1), z(1), z(1), z(3), None),
])
def test_shapes_are_checked_before_the_kernel_runs(call):
    with pytest.raises(ValueError, match="shapes must fit"):
        call(np.zeros)
    frozen = np.ones((2, 3))
    frozen.setflags(write=False)
    with pytest.raises(ValueError, match="can be written to"):
        _channel_blocks.row_statistics(np.ones((2, 3)), *(np.zeros(k) for k in (2, 3, 3, 3, 3)), None, frozen)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_pass_without_divergences_has_the_same_bits(kind):
    rng = np.random.default_rng(8)
    rows = (rng.random((9, 700)) / 350).astype(kind)
    prior, law = rng.random(9) / 9, rng.random(700) - 0.5
    centre = rows.min(axis=0).astype(float)
    delta = (prior[:, None] * (rows - centre)).sum(axis=0)
    inverse, one, two = 1 / (centre + delta), np.empty(rows.shape), np.empty(rows.shape)
    full = _channel_blocks.row_statistics(rows, prior, centre, delta, inverse, centre + delta, law, one)
    less = _channel_blocks.row_statistics(rows, prior, centre, delta, inverse, None, law, two)
    assert full[1:].tobytes() == less[1:].tobytes()
    assert one.tobytes() == two.tobytes()
    assert not less[0].any()


def test_accurate_sum():
    rng = np.random.default_rng(2)
    x = rng.standard_normal(10_001) * 10.0 ** rng.integers(-12, 12, 10_001)
    want = math.fsum(x)
    assert abs(_channel_blocks.accurate_sum(x) - want) <= math.ulp(want)
    assert _channel_blocks.accurate_sum(np.empty(0)) == 0.0
    assert _channel_blocks.accurate_sum(np.array([1.0, np.inf])) == np.inf
    assert _channel_blocks.accurate_sum([1.0, 1e100, 1.0, -1e100]) == 2.0


def test_abp_in_a_summary_is_that_of_abp():
    rng = np.random.default_rng(3)
    cells = rng.random((40, 30))
    channel, prior = Channel(cells / cells.sum(axis=1, keepdims=True)), np.full(40, 1 / 40)
    for asked in ({"secret": 3}, {"release": channel.matrix()[5]}, {"secret": [1, 7]}):
        one, two = notions.summary(prior, channel, **asked).abp, notions.abp(prior, channel, **asked)
        for end in ("value", "lower", "upper"):
            assert getattr(one.mean, end) == getattr(two.mean, end)
            np.testing.assert_array_equal(getattr(one.per_value, end), getattr(two.per_value, end))
