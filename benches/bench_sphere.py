"""The moment generating function on the sphere beside SciPy's scaled Bessel function, over 100,000 radii."""

import numpy as np
import pytest
import scipy.special

import fastpriv.special as special

N = 100_000
DIMENSIONS = (1, 2, 3, 10, 64, 100_000)


def radii(dimension):
    return dimension * np.random.default_rng(0).uniform(1e-3, 4, N)


def scipy_log_mgf_scaled(dimension, x):
    order = dimension / 2 - 1
    log_bessel = np.log(scipy.special.ive(order, x))
    return log_bessel + scipy.special.gammaln(dimension / 2) + order * np.log(2 / x)


def scipy_mean(dimension, x):
    order = dimension / 2 - 1
    return scipy.special.ive(order + 1, x) / scipy.special.ive(order, x)


CASES = {
    "sphere_log_mgf_scaled": (special.sphere_log_mgf_scaled, scipy_log_mgf_scaled),
    "sphere_mean": (special.sphere_mean, scipy_mean),
}


@pytest.mark.parametrize("side", ["fastpriv", "scipy"])
@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("name", CASES)
def test_sphere(benchmark, name, dimension, side):
    ours, peer = CASES[name]
    x = radii(dimension)
    with np.errstate(all="ignore"):
        got, want = ours(dimension, x), peer(dimension, x)
        held = np.isfinite(want)  # SciPy's function underflows in high dimensions
        np.testing.assert_allclose(got[held], want[held], rtol=1e-9, atol=1e-9)
        benchmark.group = f"sphere: {name}, dimension {dimension}, {N} radii"
        benchmark(ours if side == "fastpriv" else peer, dimension, x)
