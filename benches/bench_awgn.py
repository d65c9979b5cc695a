"""Peak-power capacity beside what one writes in NumPy and SciPy: Blahut-Arimoto on radii, quadrature of noncentral chi.

The peers' answers are good to a few digits only; every bench asserts its own first. Warm means after an equal call,
cold in a new process; the time of a cold row is that of the whole process, import included, and its extra_info holds
the seconds of the call alone.
"""

import math
import subprocess
import sys

import numpy as np
import pytest
from comparison.capacities import one_sphere_by_scipy, spheres_by_blahut_arimoto
from scipy.optimize import brentq

from fastpriv import awgn_capacity
from fastpriv.calibration import sigma_from_ci_lmip

ONE_SPHERE = {"d=1 R=1": (1, 1.0), "d=64 R=8": (64, 8.0), "d=1e5 R=316": (100_000, 316.0)}
MANY = {
    "d=1 R=4": (1, 4.0, 1.064485234860999316),
    "d=8 R=10": (8, 10.0, 9.876652309391196011),
    "d=2 R=10": (2, 10.0, 3.272905036161569285),
    "d=8 R=20": (8, 20.0, 14.75946436341797534),
}
DIMENSIONS = (1, 2, 3, 4, 5, 8, 10, 16, 32, 64, 1000, 100_000)


def one_sphere_by_debye(d, r):
    """The same where the Bessel function underflows: its leading uniform expansion and normal quantiles of rho."""
    node, weight = np.polynomial.hermite_e.hermegauss(40)
    spread = math.sqrt((2 * r * r + d) / (2 * (r * r + d)))
    rho = math.sqrt(r * r + d - spread**2) + spread * node
    nu = d / 2 - 1
    z = r * rho / nu
    root = np.sqrt(1 + z * z)
    log = nu * (root - 1 - np.log((1 + root) / 2)) - np.log(root) / 2
    return r * r - weight @ log / weight.sum()


@pytest.mark.parametrize("side", ["fastpriv", "scipy"])
@pytest.mark.parametrize("name", ONE_SPHERE)
def test_one_sphere(benchmark, name, side):
    d, r = ONE_SPHERE[name]
    want = awgn_capacity(d, r)
    assert want.width <= 1e-9 * want.value
    if side == "fastpriv":
        call, tolerance = lambda: awgn_capacity(d, r).value, 1e-15
    else:
        peer = one_sphere_by_scipy if d < 100 else one_sphere_by_debye
        call, tolerance = lambda: peer(d, r), 1e-8 if d < 100 else 1e-4
    assert call() == pytest.approx(want.value, rel=tolerance)
    benchmark.group = f"peak-power capacity, one sphere: {name}"
    benchmark(call)


@pytest.mark.parametrize("side", ["fastpriv", "blahut-arimoto 2000 steps"])
@pytest.mark.parametrize("name", MANY)
def test_several_spheres_warm(benchmark, name, side):
    d, r, want = MANY[name]
    benchmark.group = f"peak-power capacity, several spheres: {name}"
    if side == "fastpriv":
        got = awgn_capacity(d, r)
        assert got.lower <= want * (1 + 1e-15)
        assert got.upper >= want * (1 - 1e-15)
        assert got.width <= 1e-9 * want
        benchmark(awgn_capacity, d, r)
        return
    lower, _ = spheres_by_blahut_arimoto(d, r, 2000)
    assert lower <= want * (1 + 1e-6)
    assert lower >= want * (1 - 1e-2)
    benchmark.pedantic(spheres_by_blahut_arimoto, args=(d, r, 2000), rounds=2)


@pytest.mark.parametrize("name", MANY)
def test_several_spheres_cold(benchmark, name):
    d, r, want = MANY[name]
    code = (
        "import time; from fastpriv import awgn_capacity; awgn_capacity(1, 0.5); start = time.perf_counter();"
        f"got = awgn_capacity({d}, {r}); print(time.perf_counter() - start, got.lower, got.upper)"
    )

    def cold():
        return [float(x) for x in subprocess.check_output([sys.executable, "-c", code], text=True).split()]

    runs = [cold() for _ in range(3)]
    for _, lower, upper in runs:
        assert lower <= want * (1 + 1e-15)
        assert upper >= want * (1 - 1e-15)
    benchmark.group = f"peak-power capacity, several spheres: {name}"
    benchmark.extra_info["seconds inside the process"] = min(run[0] for run in runs)
    benchmark.pedantic(cold, rounds=1)


@pytest.mark.benchmark(group="peak-power capacity, sweep of 1000 points over 12 dimensions")
def test_sweep_fastpriv(benchmark):
    d = np.array(DIMENSIONS)[:, None]
    amplitude = np.sqrt(d) * np.geomspace(0.01, 3.0, 84)
    got = awgn_capacity(d, amplitude)
    assert got.value.size == 1008
    assert np.all(got.width <= 1e-9 * got.upper)
    assert np.all(got.lower <= d / 2 * np.log1p(amplitude**2 / d))
    benchmark.pedantic(awgn_capacity, args=(d, amplitude), rounds=2)


@pytest.mark.benchmark(group="peak-power capacity, sweep of 1000 points over 12 dimensions")
def test_sweep_blahut_arimoto(benchmark):
    """Eight of the dimensions, seven points each, 200 steps: 5% of the sweep, to three digits."""

    def sweep():
        return [
            spheres_by_blahut_arimoto(d, a * math.sqrt(d), 200, spacing=max(0.02, a * math.sqrt(d) / 40))
            for d in DIMENSIONS[1:9]
            for a in np.geomspace(0.1, 3.0, 7)
        ]

    some = sweep()
    for (lower, upper), (d, a) in zip(some, ((d, a) for d in DIMENSIONS[1:9] for a in np.geomspace(0.1, 3.0, 7)),
                                      strict=True):
        got = awgn_capacity(d, a * math.sqrt(d))
        assert lower <= got.upper * (1 + 1e-6)
        assert upper >= got.lower * (1 - 1e-2)
    benchmark.pedantic(sweep, rounds=1)


INVERSES = {"d=1 0.4 bit": (0.4, 1), "d=64 20 bit": (20.0, 64), "d=1 1.5 bit": (1.5, 1), "d=8 14 bit": (14.0, 8)}


@pytest.mark.parametrize("side", ["fastpriv", "fastpriv, one solve", "brentq on the capacity"])
@pytest.mark.parametrize("name", INVERSES)
def test_inverse(benchmark, name, side):
    bits, d = INVERSES[name]
    got = sigma_from_ci_lmip(bits, d, 1.0, unit="bits")
    assert awgn_capacity(d, 1.0, got.upper, unit="bits").lower <= bits
    assert awgn_capacity(d, 1.0, got.lower, unit="bits").upper >= bits
    benchmark.group = f"peak-power capacity, inverse: {name}"
    if side == "fastpriv":
        benchmark(sigma_from_ci_lmip, bits, d, 1.0, unit="bits")
    elif side == "fastpriv, one solve":
        benchmark(awgn_capacity, d, 1.0, got.value)
    else:

        def search():
            return brentq(lambda s: awgn_capacity(d, 1.0, s, unit="bits").value - bits, got.value / 2, got.value * 2)

        assert search() == pytest.approx(got.value, rel=1e-8)
        benchmark(search)
