"""The ufuncs as ufuncs: the same bits on every instruction set and layout, broadcasting, out=, threads."""

import doctest
import functools
import hashlib
import json
import re
import sys

import numpy as np
import pytest

import fastpriv.special as special
from fastpriv.kernels import _special
from fastpriv.kernels.instruction_sets import of_this_machine
from kernels.lock import lets_others_run
from kernels.variants import each_variant, each_wider_variant, printed
from sizes import few_or_all

# Functions of several results: kernels/test_two_points.py.
ELEMENTWISE = [
    name for name in special.__all__ if getattr(special, name).signature is None and getattr(special, name).nout == 1
]
UNARY = [name for name in ELEMENTWISE if getattr(special, name).nin == 1]
BINARY = [name for name in ELEMENTWISE if getattr(special, name).nin == 2]


def samples(thousands):
    """Ordinary numbers, every magnitude and sign, random bit patterns, and the special values."""
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2**64, 1000 * thousands, dtype=np.uint64).view(np.float64)
    sizes = 10.0 ** rng.uniform(-300, 300, 1000 * thousands) * rng.choice([-1.0, 1.0], 1000 * thousands)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.0**-1022, 1e308, -1e308, 1.0, -1.0])
    usual = rng.normal(0, 10, 3000 * thousands), rng.uniform(-1, 1, 1000 * thousands)
    return np.concatenate([*usual, sizes, bits, np.tile(edges, 11)])


def digests(thousands):
    """The variant in use and a digest of what every function gives, NaNs made alike."""
    x = samples(thousands)
    y = np.roll(x, 7)
    y[::3] = x[::3] + np.roll(x, 1)[::3] * 1e-3
    found = {}
    with np.errstate(all="ignore"):
        for name in ELEMENTWISE:
            function = getattr(special, name)
            value = function(*(x, y, y[::-1], x[::-1])[: function.nin])
            value[np.isnan(value)] = np.nan
            found[name] = hashlib.sha256(value.tobytes()).hexdigest()
    rows = np.where(np.isnan(x), 0.0, x)[: 5500 * thousands].reshape(100, -1)
    found["log_sum_exp"] = hashlib.sha256(special.log_sum_exp(rows).tobytes()).hexdigest()
    return {"variant": _special.ISA, **found}


@functools.cache
def digests_under(variant, thousands):
    code = f"import json; from kernels import test_special_ufuncs as t; print(json.dumps(t.digests({thousands})))"
    return json.loads(printed(code, variant))


@each_variant
def test_a_forced_instruction_set_is_used(variant):
    assert digests_under(variant, 3)["variant"] == variant


@pytest.mark.thread_unsafe  # a process that its threads would wait for together
def test_the_widest_instruction_set_is_used_where_none_is_forced():
    assert printed("from fastpriv.kernels import _special; print(_special.ISA)", "").decode().strip() == (
        of_this_machine()[-1]
    )


@few_or_all("thousands", 3, 20)
@each_wider_variant
def test_every_instruction_set_gives_the_same_bits(variant, thousands):
    plain, found = digests_under("baseline", thousands), digests_under(variant, thousands)
    differing = [name for name in plain if name != "variant" and plain[name] != found[name]]
    assert not differing, f"{variant} differs from baseline in {differing}"


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_every_layout_gives_the_same_bits(name):
    function = getattr(special, name)
    rng = np.random.default_rng(6)
    store = -rng.uniform(0.1, 0.9, (function.nin, 2, 1200))
    plain = [np.ascontiguousarray(row[0]) for row in store]
    want = function(*plain)
    scalars = [function(*(float(row[i]) for row in plain)) for i in range(0, 1200, 97)]
    np.testing.assert_array_equal(scalars, want[::97])
    assert all(type(value) is np.float64 for value in scalars)
    for step in (1, 2, 3, -1, -5):
        np.testing.assert_array_equal(function(*(row[::step] for row in plain)), want[::step])
        out = np.full((1200, 3), -7.0)
        view = out[: len(plain[0][::step]), 1]
        assert function(*(row[::step] for row in plain), out=view) is view
        np.testing.assert_array_equal(view, want[::step])
        assert (out[:, [0, 2]] == -7.0).all()
    single = np.float32(plain)
    np.testing.assert_array_equal(function(*single), function(*np.float64(single)))
    columns = np.asfortranarray(np.stack([plain[0], plain[0]]))
    if function.nin == 1:
        np.testing.assert_array_equal(function(columns)[1], want)
        np.testing.assert_array_equal(function(np.broadcast_to(plain[0][:1], (700,))), np.repeat(want[:1], 700))
    place = plain[0].copy()
    function(place, *plain[1:], out=place)
    np.testing.assert_array_equal(place, want)
    shifted = plain[0].copy()  # overlapping memory
    function(shifted[:-1], *(row[:-1] for row in plain[1:]), out=shifted[1:])
    np.testing.assert_array_equal(shifted[1:], want[:-1])


@pytest.mark.few(5)
@pytest.mark.parametrize("name", BINARY)
def test_broadcasting(name):
    function = getattr(special, name)
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(300, 1)), 5 + rng.normal(size=500)
    want = np.array([function(np.full(500, value), b) for value in a[:, 0]])
    np.testing.assert_array_equal(function(a, b), want)
    np.testing.assert_array_equal(function(a[:, 0], 5.0), [function(value, 5.0) for value in a[:, 0]])
    np.testing.assert_array_equal(function(-5.0, b), [function(-5.0, value) for value in b])
    assert function(a[:0], b).shape == (0, 500)


def test_log_sum_exp_axes_and_layouts():
    x = np.random.default_rng(8).normal(size=(3, 40, 700)) * 30
    want = np.array([[special.log_sum_exp(np.ascontiguousarray(row)) for row in block] for block in x])
    np.testing.assert_array_equal(special.log_sum_exp(x), want)
    np.testing.assert_array_equal(special.log_sum_exp(np.moveaxis(x, 2, 0), axis=0), want)
    np.testing.assert_array_equal(special.log_sum_exp(np.asfortranarray(x), keepdims=True), want[..., None])
    assert type(special.log_sum_exp([0.0, 1.0])) is np.float64
    assert special.log_sum_exp(np.zeros((2, 0))).tolist() == [-np.inf, -np.inf]


def test_no_floating_point_warning_and_none_of_the_callers_flags_lost():
    x = samples(20)
    for name in UNARY:
        getattr(special, name)(x)  # warnings are errors here
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.divide(1.0, special.log(np.ones(8)))


def test_wrong_types_are_refused():
    for bad in ("text", 1j, None):
        with pytest.raises(TypeError, match=r"not supported for the input types|could not be safely coerced|loop"):
            special.erfcx(bad)
    with pytest.raises(ValueError, match="broadcast"):
        special.logaddexp(np.zeros(2), np.zeros(3))


def test_the_interpreter_lock_is_released():
    x = np.random.default_rng(9).normal(size=100_000)
    out = np.empty_like(x)
    assert lets_others_run(lambda: special.log_ndtr(x, out=out), 10_000)
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    assert lets_others_run(lambda: sum(range(100_000)), 20) != has_lock


@pytest.mark.parametrize("name", special.__all__)
def test_examples_in_the_documentation(name):
    text = getattr(special, name).__doc__
    for heading in ("Parameters", "Returns", "Raises", "**Accuracy**", "Source:", "Examples"):
        assert heading in text
    assert re.search(r"asserted by tests/kernels/test_\w+\.py", text)
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
