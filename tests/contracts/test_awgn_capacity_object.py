"""The peak-power capacity as an object: units, indices, pickles, threads, instruction sets, mixed settings."""

import pickle

import numpy as np
import pytest

from fastpriv import awgn_capacity
from fastpriv.calibration import sigma_from_ci_lmip
from fastpriv.capacity import AwgnCapacity
from fastpriv.kernels import _awgn
from kernels.variants import check_same_lines, each_wider_variant

SCRIPT = """
import hashlib
import numpy as np
from fastpriv import awgn_capacity

digest = hashlib.sha256()
settings = (1, 1e-9), (1, 1.2), (1, 4.0), (1, 22.0), (2, 9.0), (3, 5.0), (16, 30.0), (64, 80.0), (1000, 300.0)
for d, amplitude in settings:
    found = awgn_capacity(d, amplitude, rtol=1e-12)
    for part in (found.value, found.lower, found.upper, found.slope, found.radii, found.probabilities):
        digest.update(np.asarray(part).tobytes())
print(digest.hexdigest())
"""


def same(one, other):
    names = ("value", "lower", "upper", "slope")
    numbers = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)
    inputs = all(
        np.array_equal(a, b)
        for name in ("radii", "probabilities")
        for a, b in zip(np.ravel(getattr(one, name)), np.ravel(getattr(other, name)), strict=True)
    )
    return numbers and inputs and one.method == other.method and one.unit == other.unit


@pytest.mark.few(1)
@each_wider_variant
def test_every_instruction_set_gives_the_same_bits(variant):
    check_same_lines(SCRIPT, 1, variant)


def test_threads_change_no_bit():
    rng = np.random.default_rng(3)
    d = rng.choice([1, 2, 5, 64], 300)
    amplitude = np.sqrt(d) * 10.0 ** rng.uniform(-2, 0.7, 300)
    one, two = (awgn_capacity(d, amplitude, n_jobs=n) for n in (1, 2))
    assert same(one, two)
    inverse = [sigma_from_ci_lmip(np.linspace(0.1, 2.0, 70), 2, 1.0, n_jobs=n, unit="bits") for n in (1, 2)]
    assert np.array_equal(inverse[0].upper, inverse[1].upper)


def test_units_indices_and_pickles():
    found = awgn_capacity([1, 2], [[1.0], [3.0]], 0.5)
    assert isinstance(found, AwgnCapacity)
    assert found.shape == found.radii.shape == (2, 2)
    assert same(pickle.loads(pickle.dumps(found)), found)
    bits = found.to("bits")
    assert isinstance(bits, AwgnCapacity)
    assert bits.unit == "bits"
    assert bits.to("bits") is bits
    np.testing.assert_allclose(bits.slope, np.asarray(found.slope) / np.log(2), rtol=1e-15)
    one = found[1, 0]
    assert isinstance(one, AwgnCapacity)
    assert one.value == found.value[1, 0]
    assert one.slope == found.slope[1, 0]
    np.testing.assert_array_equal(one.radii, found.radii[1, 0])
    assert one.radii[-1] == 3.0
    assert abs(one.probabilities.sum() - 1) < 1e-14
    with pytest.raises(ValueError, match="read-only"):
        found.slope[0, 0] = 1.0


def test_settings_beyond_every_range_in_one_call():
    amplitude = np.array([0.0, 1e-300, 1e-140, 1.0, 1e5, 1e8, 1e300])
    found = awgn_capacity(1, amplitude, np.array([1.0, 1.0, 1.0, np.inf, 1.0, 1.0, 1e-300]))
    assert np.all(found.lower <= found.value)
    assert np.all(found.value <= found.upper)
    assert found.value[0] == found.upper[0] == 0
    assert found.value[3] == 0
    np.testing.assert_allclose(found.value[2], 0.5e-280, rtol=1e-14)
    np.testing.assert_allclose(found.value[-1], 600 * np.log(10) + 0.5 * np.log(2 / (np.pi * np.e)), rtol=1e-12)
    assert np.all(np.diff(found.value[4:]) > 0)
    assert awgn_capacity(np.ones(0, dtype=int), 1.0).shape == (0,)


def test_equal_settings_are_solved_once():
    many, one = awgn_capacity(2, np.full(1000, 9.0)), awgn_capacity(2, [9.0])
    assert np.unique(many.value).size == 1
    assert many.value[0] == one.value[0]


@pytest.mark.slow
def test_bounds_in_closed_form_hold_where_the_solver_works():
    for d in (1, 2, 3, 10, 64):
        for radius in np.sqrt(d) * np.array([1e-9, 0.01, 0.5, 1.0, 3.0, 9.0, 14.0]):
            found = awgn_capacity(d, float(radius))
            _, low, high, *_ = _awgn.closed_form(d, radius, np.log(radius)).numbers
            assert low <= found.upper, (d, radius, low, found)
            assert found.lower <= high, (d, radius, found, high)


def test_progress_is_reported():
    seen = []
    awgn_capacity(2, np.linspace(3.0, 5.0, 100), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] == len(seen) >= 4
