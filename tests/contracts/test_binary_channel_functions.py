"""bac_capacity and binary_entropy: bounds that hold, units, broadcasting, and every error."""

import math

import numpy as np
import pytest
from flint import arb

from fastpriv import DomainError
from fastpriv.capacity.bac import bac_capacity, binary_entropy
from fastpriv.errors import ShapeError
from oracles import binary_channel as oracle


def test_bounds_contain_the_truth():
    rng = np.random.default_rng(21)
    a, b = rng.random(1000), np.where(rng.random(1000) < 0.5, rng.random(1000), 10 ** rng.uniform(-300, 0, 1000))
    capacity, entropy = bac_capacity(a, b), binary_entropy(b)
    assert capacity.kind == entropy.kind == "exact"
    for i in range(a.size):
        truth = oracle.capacity(float(a[i]), float(b[i]))
        assert arb(float(capacity.lower[i])) <= truth <= arb(float(capacity.upper[i])), (a[i], b[i])
        truth = oracle.entropy(float(b[i]))
        assert arb(float(entropy.lower[i])) <= truth <= arb(float(entropy.upper[i])), b[i]
    bits = bac_capacity(a, b, unit="bits")
    np.testing.assert_allclose(bits.value * math.log(2), capacity.value, rtol=1e-15)
    assert bits.unit == "bits"


def test_the_line_is_exactly_zero():
    line = bac_capacity([0.0, 0.25, 0.5, 1.0], [1.0, 0.75, 0.5, 0.0])
    assert line.value.tolist() == line.lower.tolist() == line.upper.tolist() == [0.0] * 4


def test_complements_carry_what_doubles_lose():
    lost, kept = bac_capacity(1.0, 0.0), bac_capacity(1.0, 0.0, complement_a=1e-20)
    assert lost.value == 0.0
    assert kept.value == pytest.approx(float(oracle.capacity(1.0, 0.0, 1e-20, 1.0)), rel=4e-15)
    assert bac_capacity(0.0, 1.0, complement_b=1e-20).value == pytest.approx(kept.value, rel=4e-15)
    assert binary_entropy(1.0, complement=1e-20).value == binary_entropy(1e-20).value
    assert bac_capacity(0.25, [0.5, 1.0], complement_b=[0.5, 1e-30]).shape == (2,)


def test_scalars_and_broadcasting():
    assert isinstance(bac_capacity(0.1, 0.2).value, float)
    assert isinstance(binary_entropy(0.1).value, float)
    assert bac_capacity(np.full((3, 1), 0.1), np.full(4, 0.2)).shape == (3, 4)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: bac_capacity(-0.1, 0.5), DomainError, "a must be between 0 and 1; got -0.1"),
        (lambda: bac_capacity(0.5, [0.1, 1.1]), DomainError, r"b must be between 0 and 1; got 1.1 at index 1 \(1 of 2"),
        (lambda: bac_capacity(math.nan, 0.5), DomainError, "a must be between 0 and 1; got nan"),
        (lambda: bac_capacity(0.5, 0.5, unit="dits"), DomainError, "unit must be one of nats, bits; got 'dits'"),
        (lambda: bac_capacity([0.1, 0.2], [0.1, 0.2, 0.3]), ShapeError, "a must be of a shape that broadcasts with b"),
        (
            lambda: bac_capacity(0.5, 0.5, complement_a=0.4), DomainError,
            "complement_a must be 1 - a to rounding; got 0.4. Leave complement_a out unless a is closer to 1",
        ),
        (
            lambda: bac_capacity(0.5, 0.5, complement_b=[0.5, 0.6]), DomainError,
            r"complement_b must be 1 - b to rounding; got 0.6 at index 1 \(1 of 2 entries\)",
        ),
        (
            lambda: bac_capacity(0.5, [0.5, 0.5], complement_b=np.full(3, 0.5)), ShapeError,
            "b must be of a shape that broadcasts with complement_b",
        ),
        (
            lambda: bac_capacity(0.5, np.full(3, 0.5), complement_a=[0.5, 0.5]), ShapeError,
            "a and complement_a must be of a shape that broadcasts with b and complement_b",
        ),
        (lambda: binary_entropy(1.5), DomainError, "p must be between 0 and 1; got 1.5"),
        (lambda: binary_entropy(0.5, unit=1), DomainError, "unit must be one of nats, bits; got 1"),
        (lambda: binary_entropy(0.5, complement=2.0), DomainError, "complement must be between 0 and 1; got 2.0"),
        (lambda: binary_entropy(0.9, complement=0.2), DomainError, "complement must be 1 - p to rounding; got 0.2"),
        (
            lambda: binary_entropy([0.5, 0.5], complement=[0.5] * 3), ShapeError,
            "p must be of a shape that broadcasts with complement",
        ),
    ],
)
def test_every_error(call, error, text):
    with pytest.raises(error, match=text):
        call()
