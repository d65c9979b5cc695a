"""Sweeps beside the loops of NumPy and pandas: overhead of a cell, a million cells to Parquet, resumption.

Every bench asserts its table first. The loops keep nothing, and lose all when they are killed.
"""

import itertools

import numpy as np
import pytest

import fastpriv

SIGMA, EPSILON = np.geomspace(0.5, 5.0, 100), np.linspace(0.0, 5.0, 100)
AXES = {"sigma": SIGMA, "sensitivity": np.linspace(0.1, 2.0, 100), "epsilon": EPSILON}
SUBSAMPLED = {"sigma": SIGMA, "rate": np.geomspace(1e-4, 0.1, 100), "epsilon": EPSILON}
SQUARES = {"x": np.arange(1000.0), "y": np.arange(100.0)}
MILLION = {"x": np.arange(1000.0), "y": np.arange(1000.0)}


def product(x, y):
    return x * y


@pytest.mark.benchmark(group="overhead of a cell: 100,000 calls of a Python function")
def test_cells_in_a_store(benchmark, tmp_path):
    def run():
        return fastpriv.sweep(product, grid=SQUARES, store=tmp_path / "s", resume=False)

    assert run()["value"][-1] == 999.0 * 99.0
    benchmark.pedantic(run, rounds=3)


@pytest.mark.benchmark(group="overhead of a cell: 100,000 calls of a Python function")
def test_cells_in_a_loop(benchmark):
    def run():
        return [(x, y, product(x, y)) for x, y in itertools.product(SQUARES["x"].tolist(), SQUARES["y"].tolist())]

    assert run()[-1][-1] == 999.0 * 99.0
    benchmark.pedantic(run, rounds=3)


@pytest.mark.parametrize(("quantity", "axes"), [("gaussian_delta", AXES), ("sampled_gaussian_delta", SUBSAMPLED)])
@pytest.mark.parametrize("store", [False, True])
@pytest.mark.benchmark(group="1,000,000 cells that stack, to Parquet")
def test_a_million_stacked_cells(benchmark, tmp_path, quantity, axes, store):
    words = {"store": tmp_path / "s", "resume": False} if store else {}

    def run():
        return fastpriv.sweep(quantity, grid=axes, out=tmp_path / "t.parquet", **words)

    assert not run().failed
    benchmark.pedantic(run, rounds=3)


@pytest.mark.benchmark(group="1,000,000 cells that stack, to Parquet")
def test_a_million_cells_in_one_array_with_pandas(benchmark, tmp_path):
    pandas = pytest.importorskip("pandas")

    def run():
        columns = dict(zip(AXES, (axis.ravel() for axis in np.meshgrid(*AXES.values(), indexing="ij")), strict=True))
        found = fastpriv.GaussianMechanism(columns["sigma"], columns["sensitivity"]).delta(columns["epsilon"])
        frame = pandas.DataFrame(columns | {"value": found.value, "lower": found.lower, "upper": found.upper})
        frame.to_parquet(tmp_path / "t.parquet")
        return frame

    assert len(run()) == 10**6
    benchmark.pedantic(run, rounds=3)


@pytest.mark.benchmark(group="1,000,000 calls of a Python function, to Parquet")
def test_a_million_cells_of_python(benchmark, tmp_path):
    def run():
        return fastpriv.sweep(product, grid=MILLION, store=tmp_path / "s", resume=False, out=tmp_path / "t.parquet")

    assert run()["value"][-1] == 999.0**2
    benchmark.pedantic(run, rounds=2)


@pytest.mark.benchmark(group="a finished sweep of 1,000,000 cells")
def test_resumption(benchmark, tmp_path):
    table = fastpriv.sweep("gaussian_delta", grid=AXES, store=tmp_path / "s")

    def run():
        return fastpriv.sweep("gaussian_delta", grid=AXES, store=tmp_path / "s")

    assert run() == table
    benchmark.pedantic(run, rounds=3)
