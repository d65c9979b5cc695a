"""The number in a cell is that of the quantity, whatever else is in the sweep and however it ran."""

import itertools
import json
import pickle

import numpy as np
import pytest

import fastpriv
from contracts.test_estimates_handed_on import INSIDE
from fastpriv import sweep
from fastpriv.sweeps.parameter_grid import BLOCK, make_parameter_grid
from fastpriv.sweeps.quantities import find_quantity, quantity_names
from sweeps import functions

NUMBERS = ("value", "lower", "upper")
GRID = {"sigma": [0.5, 1.0, 30.0], "sensitivity": [0.1, 1.0], "epsilon": "0:5:11"}


def rows(table):
    columns = table.columns()
    columns.pop("seconds")
    return list(zip(*(map(repr, values.tolist()) for values in columns.values()), strict=True))


@pytest.mark.slow
def test_cells_are_the_product_in_its_order():
    table = sweep("gaussian_delta", grid=GRID)
    cells = list(itertools.product(GRID["sigma"], GRID["sensitivity"], np.linspace(0, 5, 11).tolist()))
    assert list(zip(*(table[name].tolist() for name in GRID), strict=True)) == cells
    for i, (sigma, sensitivity, epsilon) in enumerate(cells):
        one = fastpriv.GaussianMechanism(sigma, sensitivity).delta(epsilon)
        assert (table["value"][i], table["lower"][i], table["upper"][i]) == one.floats()
        assert (table["kind"][i], table["unit"][i], table["error"][i]) == (one.kind, one.unit, None)


# Settings inside of the domain of each quantity, and some beyond it.
VALUES = {name: values if isinstance(values, list) else [values] for name, values in INSIDE.items()}
MORE = {
    "sigma": [0.3, 1.0, 40.0], "q": [0.0, 1e-9, 0.01, 0.5, 1.0, 2.0], "order": [1.5, 2.0, 30.0],
    "epsilon": [0.0, 0.5, 3.0, 50.0], "delta": [0.0, 1e-9, 0.1, 1.0], "log_delta": [-700.0, -3.0, 0.0],
    "sensitivity": [1.0, 0.01], "direction": ["add", "remove"], "dimension": [1.0, 2.0, 64.0], "amplitude": [0.5, 3.0],
    "r": [0.0, 0.1, 2.0], "x": [-30.0, 0.3, 2.0, -1.0], "y": [0.0, -5.0], "a": [0.0, 0.2, 1.0, 1.5],
    "b": [0.0, 0.25, 1.0], "p": [0.0, 1e-300, 0.5, 1.0], "mu": [0.0, 1e-9, 0.1, 2.0], "pi_min": [0.0, 0.3, 0.5],
    "unit": ["nats", "bits"], "rate": [0.0, 0.01, 0.3], "count": [0.0, 2.5, 40.0, 1000.0],
}
STACKED = [name for name in quantity_names() if find_quantity(name).together is not None]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", STACKED)
def test_a_stack_of_cells_has_the_bits_of_single_calls(name):
    quantity = find_quantity(name)
    optional = [word for word in quantity.optional if word in ("pi_min", "direction", "epsilon")]
    axes = {word: MORE.get(word) or VALUES.get(word, [0.2, 0.3]) for word in (*quantity.required, *optional)}
    table = sweep(name, grid=axes)
    assert set(axes) < set(table.names)
    found = rows(table)
    for row in range(0, len(table), max(1, len(table) // 20)):
        setting = {word: table[word][row] for word in axes}
        single = sweep(name, grid={word: [value] for word, value in setting.items()})
        assert rows(single) == [found[row]], setting
    assert np.isfinite(table["value"]).any() or np.isinf(table["value"]).any()


@pytest.mark.parametrize("name", ["awgn_capacity", "gaussian_game", "least_sigma", "sigma_from_ci_lmip"])
def test_quantities_taken_cell_by_cell(name):
    quantity = find_quantity(name)
    axes = {
        "dimension": [1, 2], "amplitude": [1.0, 2.0], "signal_power": [1.0], "noise_power": [2.0], "mu": [0.1, 0.2],
        "rate": [0.1], "count": [10, 20], "epsilon": [1.0], "delta": [1e-5],
    }
    table = sweep(name, grid={word: axes[word] for word in quantity.required})
    assert not table.failed
    assert (table[table.names[len(quantity.required)]] > 0).all()


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_the_subsampled_pair_is_that_of_two_mixtures(direction):
    cells = {"sigma": [0.7, 3.0], "rate": [0.0, 1e-3, 0.3, 1.0], "epsilon": [0.0, 0.1, 2.0], "direction": direction}
    table = sweep("sampled_gaussian_delta", grid=cells)
    for row in range(len(table)):
        sigma, q, epsilon = (float(table[name][row]) for name in ("sigma", "rate", "epsilon"))
        mixed = fastpriv.GaussianMixture([1 - q, q], [0.0, 1.0], [sigma, sigma])
        pair = (mixed, fastpriv.GaussianMixture.single(0.0, sigma))[:: 1 if direction == "remove" else -1]
        one = fastpriv.hockey_stick_divergence(*pair, epsilon)
        assert table["lower"][row] <= one.upper
        assert one.lower <= table["upper"][row]
    cells["q"] = cells.pop("rate")
    assert np.array_equal(sweep("subsampled_gaussian_delta", grid=cells)["value"].reshape(2, 3, 4),
                          np.moveaxis(table["value"].reshape(2, 4, 3), 1, 2))  # the former name


def test_cells_added_later_change_no_bit(tmp_path):
    small = sweep(functions.drawn, grid={"n": [3, 1, 2]}, seed=5, store=tmp_path / "s")
    small_rows = rows(small)
    seen = []
    large = sweep(functions.drawn, grid={"n": range(6)}, replicates=2, seed=5, store=tmp_path / "s",
                  progress=lambda done, total: seen.append(done))
    fresh = sweep(functions.drawn, grid={"n": range(6)}, replicates=2, seed=5)
    assert large == fresh
    assert large.names[:2] == ("n", "replicate")
    assert seen[0] == 3  # taken from the store
    found = {(row[0], row[1]): row[2] for row in rows(large)}
    assert [found[n, "0"] for n in "312"] == [row[1] for row in small_rows]
    assert rows(sweep(functions.drawn, grid={"n": [3, 1, 2]}, seed=5, store=tmp_path / "s")) == small_rows
    assert len({row[2] for row in rows(large) if row[0] != "0"}) == 10


def test_streams_depend_on_seed_and_setting_alone():
    one = sweep(functions.drawn, grid={"n": [5, 7]}, seed=1)["value"]
    assert one[0] == sweep(functions.drawn, [{"n": 5.0}], seed=1)["value"][0]
    assert one[0] != sweep(functions.drawn, grid={"n": [5]}, seed=2)["value"][0]
    assert sweep(functions.drawn, grid={"n": [5]})["value"][0] != sweep(functions.drawn, grid={"n": [5]})["value"][0]


def test_a_store_keeps_the_seed(tmp_path):
    first = sweep(functions.drawn, grid={"n": [5, 7]}, store=tmp_path / "s")
    again = sweep(functions.drawn, grid={"n": [7, 5, 9]}, store=tmp_path / "s")
    assert first["value"].tolist() == again["value"][[1, 0]].tolist()


def test_keys_are_those_of_the_setting():
    def key(**grid):
        return make_parameter_grid(grid=grid).keys(range(1)).tobytes()

    assert key(a=1, b=2) == key(b=2.0, a=1.0) == key(a=[1], b=[2])
    assert key(a=0.0) == key(a=-0.0) == key(a=0)
    different = [key(a=1, b=2), key(a=2, b=1), key(a=1), key(b=1), key(a="1"), key(a=True), key(a="true"), key(a=1.5),
                 key(a=2**53 + 1), key(a=2.0**53), key(a=5e-324), key(ab=1), key(a=np.inf)]
    assert len(set(different)) == len(different)


@pytest.mark.slow
def test_keys_do_not_collide_in_a_grid():
    settings = make_parameter_grid(grid={"a": np.arange(300), "b": np.arange(300) / 7, "c": ["x", "y"]})
    keys = np.concatenate([settings.keys(settings.block(block)) for block in range(settings.blocks())])
    assert settings.count == 180_000
    for lane in (0, 1):
        assert len(np.unique(keys[:, lane])) == settings.count
    some = np.array([179_999, 5, BLOCK, BLOCK - 1])
    assert np.array_equal(settings.keys(some), keys[some])


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_shards_make_the_same_table(tmp_path, shards):
    words = {"grid": {"x": np.arange(7) + 1, "y": [0.5, 2.0, 3.0]}}
    whole = sweep(functions.product, **words)
    stores = [tmp_path / f"s{i}" for i in range(1, shards + 1)]
    sizes = [
        len(sweep(functions.product, **words, shard=(i, shards), store=store))
        for i, store in enumerate(stores, start=1)
    ]
    assert sum(sizes) == 21
    assert max(sizes) - min(sizes) <= 1
    assert sweep(functions.product, **words, merge=stores, store=tmp_path / "all") == whole
    assert sweep(functions.product, **words, merge=stores) == whole


@pytest.mark.slow
def test_shards_of_many_cells_are_whole_blocks(tmp_path):
    words = {"grid": {"a": "0:1:200", "b": "0:1:150"}}
    whole = sweep("bac_capacity", **words)
    stores = [tmp_path / f"s{i}" for i in (1, 2, 3)]
    sizes = [len(sweep("bac_capacity", **words, shard=(i, 3), store=store)) for i, store in enumerate(stores, start=1)]
    assert sum(sizes) == 30_000
    assert all(size % BLOCK == 0 for size in sizes[:-1])
    assert sweep("bac_capacity", **words, merge=stores[::-1]) == whole


def test_rows_of_a_block_in_any_pieces(tmp_path):
    """A store that holds single cells of a grid, in another order."""
    cells = [{"x": x, "y": y} for x in range(40) for y in range(40)]
    draws = np.random.default_rng(3)
    for size in (1, 30, 700):
        chosen = draws.choice(len(cells), size, replace=False)
        sweep(functions.product, [cells[i] for i in chosen], store=tmp_path / "s")
    calls = []

    whole = sweep(functions.product, grid={"x": range(40), "y": range(40)}, store=tmp_path / "s",
                  progress=lambda done, total: calls.append(done))
    assert 700 <= calls[0] < 1600
    assert whole == sweep(functions.product, grid={"x": range(40), "y": range(40)})


def test_a_cell_that_is_listed_twice_is_computed_once():
    seen = []

    def count(x):
        seen.append(x)
        return x

    assert sweep(count, [{"x": 1}, {"x": 2}, {"x": 1}, {"x": 1.0}])["value"].tolist() == [1, 2, 1, 1]
    assert len(seen) == 2


def test_outputs_of_functions():
    table = sweep(functions.parts, grid={"x": [4.0, 9.0]})
    assert table.names == ("x", "half", "half_lower", "half_upper", "half_kind", "half_unit", "root", "root_lower",
                           "root_upper", "root_kind", "root_unit", "seconds", "error")
    assert table["half"].tolist() == [2.0, 4.5]
    assert np.isnan(table["half_lower"]).all()
    assert table["root_upper"].tolist() == [2.0 + 1e-9, 3.0 + 1e-9]
    assert table["root_kind"].tolist() == ["heuristic"] * 2
    assert sweep(lambda x: np.float32(x), grid={"x": 0.5})["value"][0] == 0.5
    assert sweep(lambda x: x, grid={"x": 3})["value"].tolist() == [3.0]
    assert sweep(lambda x: {"a": x} if x else {"b": 1.0}, grid={"x": [1, 0]}).names[1:7:5] == ("a", "b")
    assert sweep(lambda **words: len(words), grid={"p": 1, "q": 2})["value"].tolist() == [2.0]


def test_an_error_is_a_row():
    table = sweep(functions.fragile, grid={"x": range(1, 8)})
    assert table.failed == 2
    assert list(table.errors()) == [table["error"][2], table["error"][4]]
    assert table["error"][2] == "ValueError: three is no number"
    assert table["error"][4] == "value must be a number; got nan from fragile. Check that the setting is in its domain."
    assert np.isnan(table["value"]).tolist() == [False, False, True, False, True, False, False]
    table = sweep("gaussian_delta", grid={"sigma": [1.0, -1.0, 2.0], "epsilon": [1.0, -1.0]})
    assert table.failed == 2
    assert "sigma must be" in table["error"][2]
    assert "sigma must be" in table["error"][3]
    assert np.isfinite(table["value"][[0, 1, 4, 5]]).all()
    assert sweep(functions.leaving, grid={"x": [3, 4, 5]})["error"].tolist() == [None, "SystemExit: no more", None]
    table = sweep("special.log1p", grid={"x": [-2.0, 0.0]})
    assert table["error"].tolist()[1] is None
    assert "value must be a number; got nan from special.log1p" in table["error"][0]


def test_replicates_are_counted_also_of_stacks():
    table = sweep("bac_capacity", grid={"a": [0.1, 0.2], "b": 0.1}, replicates=3)
    assert table["replicate"].tolist() == [0, 1, 2] * 2
    assert len(np.unique(table["value"])) == 2


def test_settings_from_files_and_frames(tmp_path):
    import pandas

    frame = pandas.DataFrame({"a": [0.1, 0.2], "b": [0.3, 0.25]})
    want = sweep("bac_capacity", zip={"a": [0.1, 0.2], "b": [0.3, 0.25]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "spec.toml").write_text('quantity = "bac_capacity"\ntable = "t.csv"\n')
    (tmp_path / "excel.csv").write_text("\ufeffa, b\r\n0.1, 0.3\r\n\r\n0.2, 0.25\r\n\r\n", newline="")
    assert sweep("bac_capacity", tmp_path / "excel.csv") == want
    for table in (frame, str(tmp_path / "t.csv"), tmp_path / "t.parquet", frame.to_dict("records")):
        assert sweep("bac_capacity", table) == want
    assert sweep(str(tmp_path / "spec.toml")) == want
    assert sweep({"quantity": "bac_capacity", "zip": {"a": [0.1, 0.2], "b": [0.3, 0.25]}}) == want
    words = sweep(lambda name, k: len(name) * k, zip={"name": ["ab", "c"]}, grid={"k": [1, 2]})
    assert words["value"].tolist() == [2, 4, 1, 2]
    assert words["name"].tolist() == ["ab", "ab", "c", "c"]


@pytest.mark.slow
def test_the_same_bits_for_any_number_of_workers():
    want = sweep(functions.drawn, grid={"n": range(300)}, seed=3)
    for n_jobs in (2, 3):
        assert sweep(functions.drawn, grid={"n": range(300)}, seed=3, n_jobs=n_jobs) == want
    grid = {"sigma": "0.5..5:100", "epsilon": "0:5:200"}
    assert sweep("gaussian_delta", grid=grid, n_jobs=2) == sweep("gaussian_delta", grid=grid)


def test_the_table_in_all_its_forms(tmp_path):
    import pandas
    import pyarrow.parquet as parquet

    table = sweep(functions.fragile, grid={"x": range(1, 8)}, store=tmp_path / "s")
    for one in (table, sweep(functions.fragile, grid={"x": range(1, 8)})):
        copy = pickle.loads(pickle.dumps(one))
        assert copy == table
        assert copy.metadata() == table.metadata()
    assert table != sweep(functions.fragile, grid={"x": range(1, 7)})
    assert table != sweep(functions.product, grid={"x": range(1, 8)})
    assert table != 3
    assert repr(table) == "<SweepTable of fragile: 7 cells, x>"
    assert "three is no number" in table._repr_html_()
    frame = table.to_frame()
    assert list(frame) == list(table.names)
    assert frame["value"][0] == 1.0
    table.to_csv(tmp_path / "t.csv")
    assert pandas.read_csv(tmp_path / "t.csv")["error"][2] == "ValueError: three is no number"
    assert table.save(tmp_path / "t.parquet") == tmp_path / "t.parquet"
    found = parquet.read_table(tmp_path / "t.parquet")
    assert found["error"].to_pylist() == table["error"].tolist()
    assert np.array_equal(found["value"].to_numpy(), table["value"], equal_nan=True)
    assert json.loads(found.schema.metadata[b"fastpriv"])["quantity"] == "fragile"
    assert json.dumps(table.to_dict())


@pytest.mark.slow
def test_large_tables_in_parts(tmp_path):
    import pyarrow.parquet as parquet

    table = sweep("gaussian_delta", grid={"sigma": "0.5..5:300", "sensitivity": [1.0, -1.0], "epsilon": "0:5:250"},
                  store=tmp_path / "s", out=tmp_path / "t.parquet")
    assert len(table) == 150_000
    assert table.failed == 75_000
    found = parquet.read_table(tmp_path / "t.parquet")
    for name in ("sigma", *NUMBERS):
        assert np.array_equal(found[name].to_numpy(), table[name], equal_nan=True)
    assert found["kind"].to_pylist() == table["kind"].tolist()
    assert found["error"].to_pylist() == table["error"].tolist()
    assert "\N{HORIZONTAL ELLIPSIS}" in table._repr_html_()


def test_polars_and_xarray():
    table = sweep("gaussian_delta", grid={"sigma": [0.5, 1.0], "epsilon": [0.0, 1.0, 2.0]})
    polars = pytest.importorskip("polars")
    assert isinstance(table.to_polars(), polars.DataFrame)
    assert table.to_polars().columns == list(table.names)
    pytest.importorskip("xarray")
    cube = table.to_xarray()
    assert cube["value"].dims == ("sigma", "epsilon")
    assert float(cube["value"].sel(sigma=1.0, epsilon=2.0)) == table["value"][5]
    mixed = sweep("gaussian_delta", zip={"sigma": [0.5, 1.0], "sensitivity": [1.0, 2.0]}, grid={"epsilon": [0.0, 1.0]})
    assert mixed.to_xarray()["value"].dims == ("cell", "epsilon")


def test_the_settings_of_many_cells_are_not_built():
    axes = {"sigma": "0.5..5:1000", "sensitivity": "0.5..5:1000", "epsilon": "0:5:1000"}
    settings = make_parameter_grid(grid=axes, words={})
    assert settings.count == 10**9
    last = settings.columns(settings.block(settings.blocks() - 1))
    assert (last["sigma"][-1], last["epsilon"][-1]) == (5.0, 5.0)
