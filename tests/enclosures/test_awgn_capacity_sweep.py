"""Random settings of the peak-power capacity: every bracket closes, and brackets of two tolerances overlap."""

import numpy as np
import pytest

from fastpriv import awgn_capacity

DIMENSIONS = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 40, 64, 96, 128, 200, 300, 512, 1000, 4000, 100000]


def settings(count, seed):
    rng = np.random.default_rng(seed)
    d = rng.choice(DIMENSIONS, count)
    per_root = np.where(rng.random(count) < 0.3, 10.0 ** rng.uniform(-6, 0.2, count), rng.uniform(1.5, 10.0, count))
    return d, np.where(d == 1, 2.5, 1.0) * per_root * np.sqrt(d)


def closed_and_consistent(count, seed):
    d, amplitude = settings(count, seed)
    loose, tight = (awgn_capacity(d, amplitude, rtol=rtol) for rtol in (1e-9, 1e-12))
    for found, rtol in ((loose, 1e-9), (tight, 1.01e-12)):
        relative = found.width / found.value
        worst = int(np.argmax(relative))
        assert relative[worst] <= rtol, (d[worst], amplitude[worst], relative[worst])
    apart = np.maximum(loose.lower - tight.upper, tight.lower - loose.upper)
    worst = int(np.argmax(apart))
    assert apart[worst] <= 0, (d[worst], amplitude[worst], loose[worst], tight[worst])


def test_random_settings_close():
    closed_and_consistent(120, seed=20)


@pytest.mark.slow
def test_many_random_settings_close():
    for seed in range(10):
        closed_and_consistent(1000, seed)
