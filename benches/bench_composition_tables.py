"""Tables of composed Poisson-sampled Gaussians: epsilon and delta of grids of settings; dp_accounting and single calls
beside.

Run: pytest benches/bench_composition_tables.py. The peer discretises with an interval of 1e-3.
"""

import numpy as np
import pytest

from fastpriv import PoissonSampledGaussian, compose
from fastpriv.composition import composed_delta, composed_epsilon

DELTAS = np.array([1e-8, 1e-6, 1e-5])
AXES = [np.geomspace(0.6, 2.0, 6), np.geomspace(4e-3, 0.1, 6), np.geomspace(500, 1e5, 10).astype(int), DELTAS]
#: with rare losses: fewer participations, larger sigmas
RARE = [np.geomspace(0.6, 4.0, 5), np.geomspace(1e-3, 0.1, 4), np.geomspace(100, 1e5, 5).astype(int), DELTAS]
DELTA = 1e-5
SINGLE = [(0.8, 0.01, 1000), (1.2, 0.03, 5000), (2.0, 0.1, 20000)]


def cells(axes):
    return [axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")]


@pytest.mark.parametrize("axes", [AXES, RARE], ids=["DP-SGD", "with rare losses"])
@pytest.mark.parametrize("bounds", ["both", "upper"])
@pytest.mark.benchmark(group="epsilon of a table: 1080 cells of DP-SGD, or 300 with rare losses")
def test_epsilon(benchmark, axes, bounds):
    columns = cells(axes)
    result = benchmark.pedantic(composed_epsilon, columns, {"bounds": bounds}, rounds=2)
    assert (result.upper <= composed_epsilon(*columns, bounds="upper").upper).all()
    if bounds == "both":
        assert (result.upper - result.lower < 1e-8 * result.upper).all()


@pytest.mark.parametrize("bounds", ["both", "upper"])
@pytest.mark.benchmark(group="delta of a table: 1080 cells of DP-SGD")
def test_delta(benchmark, bounds):
    columns = cells(AXES)
    columns[3] = composed_epsilon(*columns, bounds="upper").upper
    result = benchmark.pedantic(composed_delta, columns, {"bounds": bounds}, rounds=2)
    assert (result.lower <= cells(AXES)[3]).all()


@pytest.mark.benchmark(group="epsilon of three settings")
def test_three_cells(benchmark):
    result = benchmark(composed_epsilon, *np.array(SINGLE).T, DELTA)
    assert (result.upper - result.lower < 1e-9).all()


@pytest.mark.benchmark(group="epsilon of three settings")
def test_three_single_calls(benchmark):
    def run():
        compositions = [compose(PoissonSampledGaussian(sigma, rate), count) for sigma, rate, count in SINGLE]
        return [composition.epsilon(DELTA).upper for composition in compositions]

    assert run() == pytest.approx(composed_epsilon(*np.array(SINGLE).T, DELTA).upper.tolist(), rel=1e-9)
    benchmark.pedantic(run, rounds=3)


@pytest.mark.benchmark(group="epsilon of three settings")
def test_three_settings_of_dp_accounting(benchmark):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")

    def run():
        return [
            pld.from_gaussian_mechanism(sigma, sampling_prob=rate, value_discretization_interval=1e-3,
                                        use_connect_dots=True).self_compose(count).get_epsilon_for_delta(DELTA)
            for sigma, rate, count in SINGLE
        ]

    assert run() == pytest.approx(composed_epsilon(*np.array(SINGLE).T, DELTA).value.tolist(), rel=1e-2)
    benchmark.pedantic(run, rounds=2)
