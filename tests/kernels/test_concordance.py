"""Mann-Whitney statistics in whole numbers, beside all pairs one by one."""

import numpy as np
import pytest

from fastpriv.studies.kernels import _concordance
from kernels.variants import check_same_lines, each_wider_variant

SCRIPT = """
import numpy as np
from fastpriv.studies.kernels import _concordance
x = (np.arange(1, 6001) * 0.6180339887498949 % 1.0).reshape(6, -1)
x[1] = np.tan(3.14 * (x[1] - 0.5)) ** 9
x[2] = np.floor(x[2] * 7)
x[3] = np.ldexp(1.0, (x[3] * 2000 - 1000).astype(int))
x[4] = 1e6 + np.tan(3.14 * (x[4] - 0.5))
x[5] = -np.exp(9 * np.tan(2.9 * (x[5] - 0.5)))
b = (np.arange(6000) * 0.41421356 % 1.0 < 0.3).reshape(6, -1).view(np.uint8)
twice, members = np.empty(6, np.int64), np.empty(6, np.int64)
_concordance.concordance(x, b, twice, members)
print(*twice, *members)
"""
ROWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy tails": lambda rng, n: rng.standard_cauchy(n) ** 9,
    "log-uniform": lambda rng, n: np.exp(rng.uniform(-740, 709, n)),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "shifted Cauchy": lambda rng, n: 1e6 - rng.standard_cauchy(n),
    "rounded Cauchy": lambda rng, n: np.round(rng.standard_cauchy(n), 1),
    "Cauchy and infinite": lambda rng, n: rng.standard_cauchy(n) * rng.choice([1.0, 2.0, np.inf], n),
    "Cauchy of the largest": lambda rng, n: np.clip(rng.standard_cauchy(n), -1.7, 1.7) * 1e308,
    "negative log-uniform": lambda rng, n: -np.exp(rng.uniform(-740, 709, n)),
    "log and zeros": lambda rng, n: np.exp(rng.uniform(-740, 709, n)) * rng.choice([1, 1, 1, 1, 1, 0.0, -0.0], n),
    "powers and neighbours": lambda rng, n: np.exp2(rng.integers(-30, 30, n)) + rng.integers(0, 3, n) * 2.0**-80,
    "ties": lambda rng, n: rng.integers(0, 4, n) * 1.0,
    "equal": lambda rng, n: np.zeros(n),
    "signed zeros": lambda rng, n: rng.choice([0.0, -0.0], n),
    "ends": lambda rng, n: rng.choice([np.inf, -np.inf, 1.7e308, -1.7e308, 5e-324, -5e-324, 0.0], n),
    "subnormal": lambda rng, n: rng.integers(-3, 4, n) * 5e-324,
    "infinite": lambda rng, n: rng.choice([np.inf, -np.inf], n),
    "neighbours": lambda rng, n: 1.0 + rng.integers(0, 40, n) * 2.0**-52,
    "one far": lambda rng, n: np.r_[rng.normal(size=n)[1:], 1e300][:n],
    "sorted": lambda rng, n: np.arange(n) * 1.0,
}


def counted(x, b):
    twice, members = np.empty(len(x), dtype=np.int64), np.empty(len(x), dtype=np.int64)
    _concordance.concordance(x, b.view(np.uint8), twice, members)
    return twice, members


@pytest.mark.parametrize("n", [1, 2, 3, 17, 64, 129, 700])
@pytest.mark.parametrize("law", ROWS)
def test_all_pairs_one_by_one(law, n):
    rng = np.random.default_rng([n, 1])
    for rate in (0.5, 0.02, 0.98):
        x = np.array([ROWS[law](rng, n) for _ in range(5)])
        b = rng.random((5, n)) < rate
        twice, members = counted(x, b)
        for row in range(5):
            one, other = x[row][b[row]][:, None], x[row][~b[row]]
            assert twice[row] == 2 * (one > other).sum() + (one == other).sum(), (law, n, rate, row)
            assert members[row] == b[row].sum()


def test_one_row_of_membership_for_all():
    x, b = np.random.default_rng(1).normal(size=(4, 50)), np.arange(50) % 3 == 0
    assert np.array_equal(counted(x, b[None])[0], counted(x, np.tile(b, (4, 1)))[0])


def test_a_count_beyond_32_bits():
    n = 400_001
    twice, members = counted(np.arange(n)[None] * 1.0, (np.arange(n) >= n // 2)[None])
    assert twice[0] == 2 * (n // 2) * int(members[0]) > 2**36


def test_nothing_to_count():
    assert counted(np.zeros((0, 3)), np.zeros((0, 3), dtype=bool))[0].size == 0


@each_wider_variant
@pytest.mark.slow
def test_every_instruction_set_gives_the_same_counts(variant):
    check_same_lines(SCRIPT, 1, variant)


def test_arrays_that_do_not_fit_are_refused():
    answers = np.empty(2, dtype=np.int64), np.empty(2, dtype=np.int64)
    for b in (np.zeros((2, 4), dtype=np.uint8), np.zeros((3, 5), dtype=np.uint8)):
        with pytest.raises(ValueError, match="membership must have a row for each row of scores"):
            _concordance.concordance(np.zeros((2, 5)), b, *answers)
    with pytest.raises(ValueError, match="the answers must have an entry for each row"):
        _concordance.concordance(np.zeros((3, 5)), np.zeros((3, 5), dtype=np.uint8), *answers)
