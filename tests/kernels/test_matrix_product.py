"""Products of matrices in a fixed order: every entry is the sum of its products from the first to the last."""

import numpy as np
import pytest

from fastpriv.kernels import _matrix_product


def in_order(a, b):
    found = np.zeros((len(a), len(b)))
    for k in range(a.shape[1]):
        found += np.multiply.outer(a[:, k], b[:, k])
    return found


@pytest.mark.parametrize(("n", "m", "k"), [(1, 1, 1), (4, 16, 256), (5, 17, 257), (3, 70, 513), (64, 33, 7)])
def test_every_entry_is_summed_in_order(n, m, k):
    rng = np.random.default_rng(n * m * k)
    a, b = (rng.standard_normal((rows, k)) * 10.0 ** rng.integers(-150, 150, (rows, k)) for rows in (n, m))
    expected = in_order(a, b)
    np.testing.assert_array_equal(_matrix_product.product(a, b), expected)
    np.testing.assert_array_equal(_matrix_product.product(np.asfortranarray(a), b[:, ::-1][:, ::-1]), expected)
    np.testing.assert_array_equal(_matrix_product.matrix_vector(a, b[0]), expected[:, 0])


@pytest.mark.slow
def test_many_rows_are_taken_in_pieces():
    a, b = np.arange(400_000.0).reshape(200_000, 2), np.arange(700.0).reshape(350, 2)
    found = _matrix_product.product(a, b)
    for row in (0, 1, 199_999):
        np.testing.assert_array_equal(found[row], in_order(a[row : row + 1], b)[0])


def test_nothing_gives_zeros_and_rows_of_two_lengths_are_refused():
    assert _matrix_product.product(np.ones((0, 3)), np.ones((2, 3))).shape == (0, 2)
    np.testing.assert_array_equal(_matrix_product.product(np.ones((2, 0)), np.ones((3, 0))), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="rows must have one length; got 3 and 2"):
        _matrix_product.product(np.ones((2, 3)), np.ones((2, 2)))
