"""Capacities of finite channels as objects: shapes, units, threads, instruction sets, and every fault of the input."""

import dataclasses
import pickle

import numpy as np
import pytest

from fastpriv import DomainError, channel_capacity
from fastpriv.capacity import ChannelCapacity, maximal_leakage
from fastpriv.errors import ShapeError
from fastpriv.kernels import _channel_capacity
from kernels.variants import check_same_lines, each_wider_variant

SCRIPT = """
import hashlib
import numpy as np
from fastpriv import channel_capacity
from fastpriv.kernels import _channel_capacity

digest = hashlib.sha256()
rng = np.random.default_rng(4)
for n, m in ((2, 2), (2, 3), (3, 3), (7, 5), (16, 16), (4, 13)):
    found = channel_capacity(rng.dirichlet(np.ones(m), (19, n)), rtol=1e-12)
    for part in (found.capacity.lower, found.capacity.upper, found.input, found.output, found.divergences):
        digest.update(part.tobytes())
rows, q = rng.dirichlet(np.ones(1500), 9), rng.dirichlet(np.ones(1500))
digest.update(_channel_capacity.divergences(rows, q).tobytes() + _channel_capacity.row_gaps(rows).tobytes())
print(digest.hexdigest())
"""
PARTS = ("input", "output", "divergences", "iterations", "converged")


@pytest.mark.few(1)
@each_wider_variant
def test_every_instruction_set_gives_the_same_bits(variant):
    check_same_lines(SCRIPT, 1, variant)


@pytest.mark.parametrize("shape", [(11, 3, 4), (10_001, 2, 2), (5, 20, 3)])
def test_a_stack_is_its_channels_and_threads_change_no_bit(shape):
    channels = np.random.default_rng(shape).dirichlet(np.ones(shape[2]), shape[:2])
    one, two = (channel_capacity(channels, n_jobs=n) for n in (1, 2))
    for name in PARTS:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    for index in (0, 4, shape[0] - 1):
        alone = channel_capacity(channels[index])
        assert alone.capacity.lower == one.capacity.lower[index]
        assert alone.capacity.upper == one.capacity.upper[index]
        for name in PARTS:
            np.testing.assert_array_equal(getattr(alone, name), getattr(one, name)[index])


def test_shapes_units_and_pickles():
    channels = np.random.default_rng(1).dirichlet(np.ones(3), (2, 5, 4))
    nats, bits = channel_capacity(channels), channel_capacity(channels, unit="bits")
    assert isinstance(nats, ChannelCapacity)
    assert nats.capacity.shape == nats.iterations.shape == nats.converged.shape == (2, 5)
    assert nats.input.shape == nats.divergences.shape == (2, 5, 4)
    assert nats.output.shape == (2, 5, 3)
    np.testing.assert_allclose(bits.capacity.value * np.log(2), nats.capacity.value, rtol=1e-15)
    np.testing.assert_allclose(bits.divergences * np.log(2), nats.divergences, rtol=1e-15)
    again = pickle.loads(pickle.dumps(nats))
    np.testing.assert_array_equal(again.capacity.upper, nats.capacity.upper)
    np.testing.assert_array_equal(again.input, nats.input)
    with pytest.raises(ValueError, match="read-only"):
        nats.input[0, 0, 0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        nats.method = "mine"
    none = channel_capacity(np.empty((0, 4, 3)))
    assert none.capacity.shape == (0,)
    assert none.input.shape == (0, 4)
    assert maximal_leakage(np.empty((0, 4, 3))).shape == (0,)


def test_what_counts_as_a_channel():
    class Held:
        def matrix(self):
            return np.array([[0.75, 0.25], [0.25, 0.75]])

    wanted = channel_capacity([[0.75, 0.25], [0.25, 0.75]]).capacity
    rows = Held().matrix()
    for channel in (Held(), np.asfortranarray(rows), rows.astype(">f8"), rows.astype(object), rows.tolist()):
        assert channel_capacity(channel).capacity.lower == wanted.lower
    locked = Held().matrix()
    locked.setflags(write=False)
    assert channel_capacity(locked).capacity.upper == wanted.upper
    assert channel_capacity(Held().matrix().astype(np.float32)).capacity.value == wanted.value
    assert channel_capacity(np.eye(3, dtype=int)).capacity.value == pytest.approx(np.log(3), rel=1e-15)
    assert maximal_leakage(Held()).value == pytest.approx(np.log(1.5), rel=1e-15)


FAULTS = [
    ([[0.5, 0.5], [0.5, 0.4]], DomainError, r"rows that sum to 1 within 1e-09; got a sum of 0.9 in row 1 \(1 of 2"),
    ([[2, 2], [1, 3]], DomainError, r"got a sum of 4.0 in row 0 \(2 of 2 rows\). Divide every row by its sum"),
    ([[0.5, 0.5], [1.5, -0.5]], DomainError, r"channel must have cells of at least 0; got -0.5 in row 1 \(1 of"),
    ([[0.5, 0.5], [np.nan, 1]], DomainError, r"cells of at least 0; got nan in row 1"),
    ([[[1, 0]], [[np.inf, 0]]], DomainError, r"got a sum of inf in row \(1, 0\)"),
    ([[0, 0], [0, 1]], DomainError, r"got a sum of 0.0 in row 0"),
    ([0.5, 0.5], ShapeError, r"channel must be of shape \(n, m\) or \(..., n, m\); got shape \(2,\)"),
    (np.empty((0, 3)), ShapeError, r"channel must have an input and an output at least; got shape \(0, 3\)"),
    (np.empty((3, 0)), ShapeError, r"channel must have an input and an output at least"),
    ("abc", DomainError, "channel must be rows of probabilities of one length; got 'abc'"),
    ([[1.0], [0.5, 0.5]], DomainError, "channel must be rows of probabilities of one length"),
    ([[1j, 0]], DomainError, "channel must be rows of probabilities of one length"),
]


@pytest.mark.parametrize(("channel", "error", "text"), FAULTS)
@pytest.mark.parametrize("function", [channel_capacity, maximal_leakage])
def test_faults_of_a_channel_name_the_row(function, channel, error, text):
    with pytest.raises(error, match=text):
        function(channel)


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"rtol": 0.0}, "rtol must be between 1e-14 and 1"),
        ({"rtol": 2.0}, "rtol must be between 1e-14 and 1"),
        ({"unit": "bans"}, "unit must be one of nats, bits"),
        ({"max_iterations": -1}, "max_iterations must be an integer of at least 0"),
        ({"max_seconds": 0}, "max_seconds must be positive"),
        ({"n_jobs": 0}, "n_jobs must be a non-zero integer"),
    ],
)
def test_faults_of_the_keywords(keywords, text):
    with pytest.raises(DomainError, match=text):
        channel_capacity(np.eye(2), **keywords)


def test_a_kernel_is_never_led_out_of_its_arrays():
    rows, q = np.eye(3), np.full(2, 0.5)
    with pytest.raises(ValueError, match="shapes must fit"):
        _channel_capacity.divergences(rows, q)
    with pytest.raises(ValueError, match="shapes must fit"):
        _channel_capacity.divergences(rows, np.full(3, 1 / 3), np.empty((3, 3)))
    with pytest.raises(ValueError, match="shapes must fit"):
        _channel_capacity.solve_small_channels(np.ones((1, 17, 1)), np.zeros((1, 17)), 1e-9, 10)
