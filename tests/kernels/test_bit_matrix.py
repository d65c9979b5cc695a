"""Products of matrices of bits: integers exactly, sums of doubles within their bound, the same bits anywhere."""

import mpmath
import numpy as np
import pytest

from fastpriv.studies.membership import Panel
from kernels.variants import check_same_lines, each_wider_variant

SIZES = [(1, 1, 1), (2, 7, 3), (3, 8, 4), (5, 9, 5), (8, 33, 1), (9, 64, 8), (17, 65, 2), (40, 513, 130),
         (250, 100, 3), (1025, 523, 6), (300, 2100, 4)]


def bits(people, attributes, seed=0):
    return np.random.default_rng(seed).random((people, attributes)) < 0.4


@pytest.mark.few(3)
@pytest.mark.parametrize(("people", "attributes", "columns"), SIZES)
def test_counts_and_gram_are_exact(people, attributes, columns):
    values = bits(people, attributes)
    panel, members = Panel(values), np.random.default_rng(1).random((columns, people)) < 0.6
    expected = members.astype(np.int64) @ values.astype(np.int64)
    for n_jobs in (1, 2):
        np.testing.assert_array_equal(panel.counts(members, n_jobs=n_jobs), expected)
        np.testing.assert_array_equal(panel.gram(n_jobs=n_jobs), values.astype(np.int64) @ values.astype(np.int64).T)
    np.testing.assert_array_equal(panel.counts(members[0]), expected[0])


def test_counts_of_many_people_and_releases():
    """More than 31 groups of eight people, whose sums leave a byte, and more releases than one tile holds."""
    values = np.ones((2100, 70), dtype=bool)
    members = np.random.default_rng(1).random((1030, 2100)) < 0.97
    np.testing.assert_array_equal(Panel(values).counts(members), np.repeat(members.sum(axis=1)[:, None], 70, axis=1))


@pytest.mark.parametrize(("people", "attributes", "columns"), SIZES)
def test_products_are_within_their_bound(people, attributes, columns):
    rng = np.random.default_rng(people)
    values = bits(people, attributes)
    x = rng.standard_normal((attributes, columns)) * 10.0 ** rng.integers(-8, 8, (attributes, columns))
    found = Panel(values).products(x)
    bound = (attributes / 32 + 10) * 2.0**-53 * (values.astype(float) @ np.abs(x))
    for k in {0, people // 2, people - 1}:
        for r in {0, columns // 2, columns - 1}:
            exact = mpmath.fsum(mpmath.mpf(float(one)) for one in x[values[k], r])
            assert abs(exact - mpmath.mpf(float(found[k, r]))) <= bound[k, r], (k, r)
    np.testing.assert_array_less(np.abs(found - values.astype(float) @ x), bound * (attributes + 10) + 1e-300)


@pytest.mark.parametrize(("people", "attributes", "columns"), SIZES)
def test_products_have_the_same_bits_for_every_layout_and_number_of_threads(people, attributes, columns):
    panel = Panel(bits(people, attributes))
    x = np.random.default_rng(3).standard_normal((attributes, columns))
    found = panel.products(x)
    padded = np.zeros((2 * attributes, 3 * columns))
    padded[::2, ::3] = x
    for other in (np.asfortranarray(x), padded[::2, ::3], x[:, ::-1][:, ::-1]):
        for n_jobs in (1, 2):
            np.testing.assert_array_equal(panel.products(other, n_jobs=n_jobs), found)
    for r in {0, columns - 1}:
        np.testing.assert_array_equal(panel.products(x[:, r]), found[:, r])


def test_products_of_large_and_small_numbers():
    panel = Panel([[1, 1, 1, 0], [1, 0, 0, 1], [0, 0, 0, 0]])
    np.testing.assert_array_equal(panel.products([1e300, -1e300, 1e-300, 5e-324]), [1e-300, 1e300, 0.0])
    np.testing.assert_array_equal(panel.products([1e308, 1e308, 0.0, 0.0]), [np.inf, 1e308, 0.0])


PROGRAM = """
import hashlib
import numpy as np
from fastpriv.studies.membership import Panel
from kernels.test_bit_matrix import SIZES, bits
for people, attributes, columns in SIZES:
    panel = Panel(bits(people, attributes))
    rng = np.random.default_rng(1)
    x, b = rng.standard_normal((attributes, columns)), rng.random((columns, people)) < 0.5
    for found in (panel.products(x), panel.counts(b), panel.gram()):
        print(hashlib.sha256(found.tobytes()).hexdigest())
"""


@pytest.mark.slow
@each_wider_variant
def test_the_same_bits_on_every_instruction_set(variant):
    check_same_lines(PROGRAM, 3 * len(SIZES), variant)
