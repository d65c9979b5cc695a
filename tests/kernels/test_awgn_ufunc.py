"""The ufunc of the capacity under a peak-power constraint: the numbers of ``awgn_capacity``, and its domain."""

import numpy as np
import pytest

from fastpriv import awgn_capacity, special


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [1, 2, 10, 1000])
def test_numbers_and_bounds_are_those_of_the_object(dimension):
    """The bounds of the object are a little wider, for the rounding of amplitude over sigma."""
    for radius in (0.0, 1e-200, 1e-9, 0.7, 2.5, 9.0, 70.0, 3e5, 1e8, 1e300):
        for rtol in (1e-9, 1e-4):
            whole = awgn_capacity(dimension, radius, rtol=rtol)
            value, lower, upper = special.awgn_capacity(dimension, radius, rtol)
            assert lower <= value <= upper
            assert max(lower, whole.lower) <= min(upper, whole.upper)
            assert abs(value - whole.value) <= max(whole.upper - whole.lower, upper - lower)
            if radius <= 10 * dimension**0.5:
                assert upper - lower <= rtol * lower + 5e-324


def test_it_broadcasts_and_takes_the_same_bits_one_by_one():
    dimension, radius = np.array([[1.0], [3.0]]), np.linspace(0.5, 6.0, 5)
    found = special.awgn_capacity(dimension, radius, 1e-8)
    assert found[0].shape == (2, 5)
    single = [special.awgn_capacity(d, r, 1e-8) for d in (1.0, 3.0) for r in radius]
    assert np.array_equal(np.reshape(single, (2, 5, 3)), np.moveaxis(found, 0, -1))


@pytest.mark.parametrize("wrong", [
    (0.0, 1.0, 1e-9), (1.5, 1.0, 1e-9), (2e6, 1.0, 1e-9), (np.nan, 1.0, 1e-9), (2.0, -1.0, 1e-9), (2.0, np.inf, 1e-9),
    (2.0, np.nan, 1e-9), (2.0, 1.0, 1e-14), (2.0, 1.0, 0.2), (2.0, 1.0, np.nan),
])
def test_outside_the_domain_it_is_nan(wrong):
    assert np.isnan(special.awgn_capacity(*wrong)).all()
