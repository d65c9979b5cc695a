"""Products of bets against sums of logarithms, and the same bits under every instruction set."""

import math

import numpy as np
import pytest

from fastpriv.kernels import _betting
from kernels.variants import check_same_lines, each_wider_variant

BETS = np.ldexp(1.0, np.arange(_betting.BETS) - 25)
SCRIPT = """
import numpy as np
from fastpriv.kernels import _betting
x = (np.arange(1, 2003) * 0.6180339887498949 % 1.0).reshape(-1, 2) ** 8
bets = np.ldexp(1.0, np.arange(_betting.BETS) - 25)
for smaller in (False, True):
    sums = np.zeros((2, _betting.BETS))
    _betting.add_log_wealth(x, smaller, 1.0 / (1.0 + bets) if smaller else bets, sums)
    print(" ".join(s.hex() for s in sums.ravel().tolist()))
"""


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 333])
@pytest.mark.parametrize("size", [1.0, 1e-9, 1e-300])
@pytest.mark.parametrize("smaller", [False, True])
def test_against_sums_of_logarithms(count, size, smaller):
    x = size * (np.arange(1, 3 * count + 1) * 0.6180339887498949 % 1.0).reshape(-1, 3) ** 4
    bets = 1.0 / (1.0 + BETS) if smaller else BETS
    sums = np.full((3, _betting.BETS), 0.25)
    _betting.add_log_wealth(x, smaller, bets, sums)
    for quantity, row in enumerate(sums):
        for bet, got in zip(bets.tolist(), row.tolist(), strict=True):
            factors = [(1.0 - v if smaller else 1.0) + v * bet for v in x[:, quantity].tolist()]
            want = 0.25 + math.fsum(math.log(factor) for factor in factors)
            assert abs(got - want) <= 2.0**-50 * (1.0 + 2.0 * count + abs(want)), (quantity, bet, got, want)


def test_factors_of_any_size_neither_overflow_nor_vanish():
    for value, smaller, bet in ((1e25, False, 2.0**30), (1.0, True, 2.0**-31)):
        sums = np.zeros((1, _betting.BETS))
        _betting.add_log_wealth(np.full((1000, 1), value), smaller, np.full(_betting.BETS, bet), sums)
        assert sums[0] == pytest.approx(1000.0 * math.log(value * bet), rel=1e-13)


@each_wider_variant
@pytest.mark.slow
def test_every_instruction_set_gives_the_same_bits(variant):
    check_same_lines(SCRIPT, 2, variant)


def test_arrays_that_do_not_fit_are_refused():
    for bets, sums in ((BETS[1:], np.zeros((2, _betting.BETS))), (BETS, np.zeros((1, _betting.BETS)))):
        with pytest.raises(ValueError, match="a row for each quantity and a column for each bet"):
            _betting.add_log_wealth(np.zeros((3, 2)), False, bets, sums)
