"""Estimate: what it accepts, converts, refuses; its pickles stay readable."""

import base64
import copy
import json
import math
import pickle

import numpy as np
import pytest

from fastpriv import DomainError, Estimate
from fastpriv.errors import ShapeError


def made(value=0.5, lower=0.25, upper=0.75, **words):
    return Estimate(value, lower, upper, **({"kind": "certified", "unit": "nats", "method": "test"} | words))


@pytest.mark.parametrize("kind", ["certified", "statistical"])
@pytest.mark.parametrize(
    ("value", "width"),
    [(0.0, 1.1e-6), (0.5, 2e-6), (-0.9, 1.2e-6), (1e6, 1.1), (-1e9, 2e3), (1.0, math.inf), (1e-9, 1e-3)],
)
def test_float_warns_where_it_hides_the_bounds(kind, value, width):
    level = {"confidence": 0.95} if kind == "statistical" else {}
    for wide in (made(value, value - width, value), made(value, value, value + width, kind=kind, **level)):
        with pytest.warns(UserWarning, match=r"float\(\) of this Estimate is its value, .* Take .upper for a") as told:
            assert float(wide) == value
        assert told[0].filename == __file__


@pytest.mark.parametrize("kind", ["certified", "statistical"])
@pytest.mark.parametrize(
    ("value", "width"),
    [(0.0, 0.0), (0.0, 9e-7), (0.5, 9e-7), (1e6, 0.9), (-1e9, 9e2), (math.inf, 0.0), (1e-300, 1e-301)],
)
def test_float_of_a_narrow_bracket_is_its_value(kind, value, width):
    level = {"confidence": 0.95} if kind == "statistical" else {}
    assert float(made(value, value, value + width, kind=kind, **level)) == value  # a warning would be an error


def test_float_of_other_kinds_is_the_value():
    assert float(made(0.5, 0.0, 1.0, kind="exact")) == float(made(0.5, 0.0, 1.0, kind="heuristic")) == 0.5


def test_scalars_are_floats_and_arrays_are_frozen():
    e = made()
    assert (type(e.value), e.shape, e.width) == (float, (), 0.5)
    array = np.array([1.0, 2.0])
    e = made(array, array - 1, array + 1)
    array[0] = 99.0
    assert e.value.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        e.value[0] = 3.0
    with pytest.raises(AttributeError):
        e.kind = "exact"
    with pytest.raises(TypeError):
        e.cost["evaluations"] = 1


def test_infinite_bounds_have_width_zero_when_equal():
    assert made(np.inf, np.inf, np.inf).width == 0.0
    assert made(1.0, -np.inf, np.inf).width == np.inf


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"kind": "sure"}, "kind must be one of exact, certified, statistical, heuristic; got 'sure'"),
        ({"unit": "dB"}, "unit must be one of nats, bits, .*; got 'dB'"),
        ({"kind": "statistical"}, "confidence must be given for a statistical estimate and for no other"),
        ({"confidence": 0.9}, "confidence must be given for a statistical estimate and for no other"),
        ({"value": 0.9}, r"value must be between lower and upper; got 0.9 outside \[0.25, 0.75\]. Pass"),
        ({"value": math.nan}, "value must be between lower and upper; got nan outside"),
    ],
)
def test_faults_are_named(words, message):
    with pytest.raises(DomainError, match=message):
        made(**words)


def test_faults_in_arrays_are_located():
    with pytest.raises(DomainError, match=r"got 5.0 outside \[0.0, 1.0\] at index 1 \(1 of 2 entries\)"):
        made([0.5, 5.0], [0.0, 0.0], [1.0, 1.0])
    with pytest.raises(DomainError, match=r"at index \(0, 1\)"):
        made([[0.5, 5.0]], [[0.0, 0.0]], [[1.0, 1.0]])
    with pytest.raises(ShapeError, match=r"value, lower and upper must be of one shape; got \(2,\), \(\) and \(\)"):
        made([0.5, 0.5], 0.0, 1.0)


def test_nats_and_bits_convert_outward_and_back():
    e = made(1.0, 1.0, 1.0)
    bits = e.to("bits")
    assert bits.lower < 1 / math.log(2) < bits.upper
    assert bits.upper - bits.lower <= 5 * math.ulp(1.5)
    back = bits.to("nats")
    assert back.lower < 1.0 < back.upper
    assert e.to("nats") is e
    assert made(0.0, 0.0, 0.0).to("bits").upper == 0.0


def test_probabilities_and_their_logarithms_convert_outward():
    e = made(math.log(0.3), math.log(0.3), math.log(0.3), unit="log probability").to("probability")
    assert e.lower < 0.3 < e.upper
    log = made(0.3, 0.3, 0.3, unit="probability").to("log probability")
    assert log.lower < math.log(0.3) < log.upper
    edge = made([0.0, 0.5, 1.0], [0.0, 0.5, 1.0], [0.0, 0.5, 1.0], unit="probability").to("log probability")
    assert edge.upper[0] == -np.inf
    assert edge.upper[2] == 0.0
    gone = made([-np.inf, -1e4], [-np.inf, -1e4], [-np.inf, -1e4], unit="log probability").to("probability")
    assert gone.upper[0] == 0.0
    assert 0.0 < gone.upper[1] < 1e-320
    with pytest.raises(DomainError, match="unit must be convertible from 'nats'; got 'probability'"):
        made().to("probability")


def test_no_silent_conversion_to_an_array():
    with pytest.raises(TypeError, match="an Estimate must not be used as an array"):
        np.asarray(made())
    with pytest.raises(TypeError):
        made() + made()


def test_indexing_keeps_bounds_and_words():
    e = made([1.0, 2.0], [0.0, 1.0], [2.0, 3.0], cost={"evaluations": 3})[1]
    assert (e.value, e.lower, e.upper, e.unit, dict(e.cost)) == (2.0, 1.0, 3.0, "nats", {"evaluations": 3})
    with pytest.raises(ShapeError, match="an Estimate must have an array value to be indexed; got a scalar"):
        made()[0]


def test_plain_types_and_text():
    e = made([1.0, 2.0], [0.0, 1.0], [2.0, 3.0])
    assert json.loads(json.dumps(e.to_dict()))["upper"] == [2.0, 3.0]
    said = "Estimate([1.0, 2.0], lower=[0.0, 1.0], upper=[2.0, 3.0], unit='nats', kind='certified', method='test')"
    assert repr(e) == said
    assert "confidence=0.999999999," in repr(made(kind="statistical", confidence=1 - 1e-9))
    assert repr(made(kind="statistical", confidence=0.95)) == (
        "Estimate(0.5, lower=0.25, upper=0.75, unit='nats', kind='statistical', confidence=0.95, method='test')"
    )


# made(0.5, 0.25, 0.75, kind="statistical", confidence=0.95, cost={"evaluations": 7}), pickled by version 0.1.0
OLD = (
    "gASVqQAAAAAAAACMEWZhc3Rwcml2LmVzdGltYXRllIwIX3JlYnVpbGSUk5QofZQojARraW5klIwLc3RhdGlzdGljYWyUjAR1bml0"
    "lIwEbmF0c5SMBm1ldGhvZJSMBHRlc3SUjApjb25maWRlbmNllEc/7mZmZmZmZowEY29zdJR9lIwLZXZhbHVhdGlvbnOUSwdzdUc/"
    "4AAAAAAAAEc/0AAAAAAAAEc/6AAAAAAAAHSUUpQu"
)


def test_old_pickles_load():
    e = pickle.loads(base64.b64decode(OLD))
    assert (e.value, e.lower, e.upper, e.kind, e.confidence, dict(e.cost)) == (
        0.5, 0.25, 0.75, "statistical", 0.95, {"evaluations": 7},
    )


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_and_copies_keep_every_bit(protocol):
    e = made([0.1, np.inf], [0.0, 1.0], [2.0, np.inf])
    for twin in (pickle.loads(pickle.dumps(e, protocol)), copy.deepcopy(e)):
        assert twin.value.tobytes() == e.value.tobytes()
        assert twin.upper.tobytes() == e.upper.tobytes()
        assert not twin.value.flags.writeable
        assert (twin.kind, twin.unit, twin.method) == (e.kind, e.unit, e.method)
