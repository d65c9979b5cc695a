"""fastpriv.special beside the NumPy or SciPy line a user would write, over 100,000 points; answers asserted first."""

import numpy as np
import pytest
import scipy.special
from comparison.posteriors import log1mexp_by_numpy

import fastpriv.special as special

N = 100_000
RNG = np.random.default_rng(0)
WIDE = RNG.uniform(-5, 5, N)
POSITIVE = RNG.uniform(0.01, 20, N)
NEGATIVE = -RNG.uniform(1e-3, 20, N)
RIGHT = WIDE + RNG.uniform(0.5, 2, N)


CASES = {
    "exp": ((WIDE,), np.exp),
    "expm1": ((WIDE,), np.expm1),
    "log": ((POSITIVE,), np.log),
    "log1p": ((POSITIVE,), np.log1p),
    "erfc": ((WIDE,), scipy.special.erfc),
    "erfcx": ((WIDE,), scipy.special.erfcx),
    "mills_ratio": ((WIDE,), lambda x: np.sqrt(np.pi / 2) * scipy.special.erfcx(x / np.sqrt(2))),
    "ndtr": ((WIDE,), scipy.special.ndtr),
    "log_ndtr": ((WIDE,), scipy.special.log_ndtr),
    "log1mexp": ((NEGATIVE,), log1mexp_by_numpy),
    "logaddexp": ((WIDE, RIGHT), np.logaddexp),
    "ndtr_difference": ((WIDE, RIGHT), lambda a, b: scipy.special.ndtr(b) - scipy.special.ndtr(a)),
    "log_ndtr_difference": ((WIDE, RIGHT), lambda a, b: np.log(scipy.special.ndtr(b) - scipy.special.ndtr(a))),
    "log_sum_exp": ((WIDE,), scipy.special.logsumexp),
}
CASES_BY_SIDE = [(name, side) for name in CASES for side in ("fastpriv", "numpy or scipy")]


@pytest.mark.parametrize(("name", "side"), CASES_BY_SIDE)
def test_special(benchmark, name, side):
    arguments, peer = CASES[name]
    function = getattr(special, name)
    np.testing.assert_allclose(function(*arguments), peer(*arguments), rtol=1e-7, atol=1e-300)
    benchmark.group = f"special: {name}, {N} points"
    benchmark(function if side == "fastpriv" else peer, *arguments)
