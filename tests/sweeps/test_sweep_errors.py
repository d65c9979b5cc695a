"""Bad input of a sweep is one clear error, and what was finished before it is kept."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fastpriv
from fastpriv import DomainError, sweep
from fastpriv.base.store import ResultStore
from fastpriv.cli import main
from fastpriv.errors import BackendMissingError, ShapeError
from fastpriv.sweeps.cells import BatchResults
from sweeps import functions

GRID = {"x": [1.0, 2.0]}
BAC = {"a": [0.1, 0.2], "b": 0.1}
MANY = "0:1:1000000"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda p: sweep("bac_capicity", grid=BAC), DomainError,
         "quantity must be one that sweeps know; got 'bac_capicity'. Write one of bac_capacity"),
        (lambda p: sweep("zzzz", grid=BAC), DomainError, "got 'zzzz'. See fastpriv sweep --list"),
        (lambda p: sweep(3, grid=BAC), DomainError, "quantity must be a name or a function; got 3. fastpriv sweep --l"),
        (lambda p: sweep("no_module_here:f", grid=BAC), DomainError,
         "quantity must be the place of a function, module:name or file.py:name; got 'no_module_here:f': No module"),
        (lambda p: sweep("sweeps.functions:no", grid=BAC), DomainError, "has no attribute 'no'. Check both"),
        (lambda p: sweep(str(p / "broken.py") + ":f", grid=BAC), DomainError,
         "quantity must be the place of a function that can be imported; got .*: SyntaxError: .*Correct the module"),
        (lambda p: sweep("sweeps.functions:os", grid=BAC), DomainError, "quantity must be the place of a function; go"),
        (lambda p: sweep(str(p / "no.py") + ":f", grid=BAC), DomainError, "No such file"),
        (lambda p: sweep(divmod, grid=BAC), DomainError,
         "quantity must take its parameters by name; got 'x' by position alone in divmod. Wrap it in a function"),
        (lambda p: sweep("bac_capacity", grid=BAC | {"c": 1}), DomainError,
         "settings must name parameters of capacity.bac_capacity; got 'c'. It has: a, b, complement_a"),
        (lambda p: sweep("bac_capacity", grid={"a": 0.1}), DomainError,
         "settings must give all parameters of capacity.bac_capacity; got none for b. Add it to the grid"),
        (lambda p: sweep(functions.product, grid={"x": 1, "z": 2}), DomainError, "parameters of product; got 'z'. It "),
        (lambda p: sweep(functions.Unpicklable(), grid={"x": [1, 2]}, n_jobs=2), DomainError,
         "quantity must be a function that other processes can be sent; got Unpicklable: TypeError: .*. Pass n_jobs=1"),
        (lambda p: sweep("bac_capacity"), DomainError, "settings must give all parameters .*; got none for a, b"),
        (lambda p: sweep("bac_capacity", grid={"a": MANY, "b": MANY}), DomainError,
         "settings must make at most 100,000,000 cells in one run; got 1,000,000,000,000. Take fewer values, or run "
         "10,000 shards or more"),
        (lambda p: sweep("bac_capacity", grid=[1, 2]), DomainError,
         r"grid must be a mapping of parameters to values; got \[1, 2\]. Write grid="),
        (lambda p: sweep("bac_capacity", grid={3: [1]}), DomainError, "grid must be a mapping of parameters to values"),
        (lambda p: sweep("bac_capacity", grid={"a": [], "b": 1}), ShapeError,
         r"grid\['a'\] must have at least one value; got none"),
        (lambda p: sweep("bac_capacity", grid={"a": [[1.0]], "b": 1}), ShapeError, r"must be one-dimensional; got sha"),
        (lambda p: sweep("bac_capacity", grid={"a": [0.1, np.nan], "b": 1}), DomainError, "must be numbers; got nan a"),
        (lambda p: sweep("bac_capacity", grid={"a": ["x", 1], "b": 1}), DomainError,
         r"grid\['a'\] must be numbers alone or texts alone; got both"),
        (lambda p: sweep("bac_capacity", grid={"a": b"x", "b": 1}), DomainError, r"must be a sequence of values; got "),
        (lambda p: sweep("bac_capacity", grid={"a": None, "b": 1}), DomainError, "must be a sequence of values; got N"),
        (lambda p: sweep("bac_capacity", grid={"a": "1:2:x", "b": 1}), DomainError, "must have a whole number of p"),
        (lambda p: sweep("bac_capacity", grid={"a": 1}, zip={"a": 1, "b": 2}), DomainError,
         "settings must name each parameter once; got 'a' twice. Drop one"),
        (lambda p: sweep("bac_capacity", zip={"a": [1, 0], "b": [1, 0, 1]}), ShapeError,
         "zip must have columns of one length; got 2 values of 'a' beside 3. Use grid"),
        (lambda p: sweep(functions.product, grid={"x": 1, "replicate": 2}), DomainError,
         "settings must have no parameter called 'replicate'; got one. Rename it"),
        (lambda p: sweep("bac_capacity", {"a": [1]}), DomainError,
         "table must be rows of settings; got .*Pass a mapping as grid= for all combinations"),
        (lambda p: sweep("bac_capacity", [1, 2]), DomainError, "table must be a sequence of dicts; got .*one for a ce"),
        (lambda p: sweep("bac_capacity", [{"a": 1}, {"b": 1}]), DomainError,
         "table must have rows with the same parameters; got 'b' at index 1 after 'a'. Name all"),
        (lambda p: sweep("bac_capacity", []), ShapeError, "table must have at least one row and one column; got none"),
        (lambda p: sweep("bac_capacity", p / "uneven.csv"), DomainError,
         "line 3 must be of 2 cells like the first line; got 1. Correct that line"),
        (lambda p: sweep("bac_capacity", p / "empty.csv"), DomainError, "file must have at least one record; got the"),
        (lambda p: sweep("bac_capacity", p / "twice.csv"), DomainError,
         "table must have each column once; got 'a' twice in .*twice.csv'. Drop one"),
        (lambda p: sweep("bac_capacity", p / "gap.csv"), DomainError,
         r"table\['b'\] must be numbers; got '' at index 1. Pass numbers, or a grid as one text"),
        (lambda p: sweep("bac_capacity", p / "packed.csv"), DomainError,
         r"file must be CSV, packed by gzip or not, Parquet, or a workbook \(.xlsx\); got .*packed.csv', anoth"),
        (lambda p: sweep("bac_capacity", p / "text.parquet"), DomainError,
         "file must be a whole Parquet file; got .*text.parquet', which does not begin as one. Write it again"),
        (lambda p: sweep("sampled_gaussian_delta", grid={"sigma": 1, "rate": 0.1, "epsilon": 1, "direction": 3}),
         DomainError, r"grid\['direction'\] must be words; got 3. Put the words in quotes"),
        (lambda p: sweep("bac_capacity", p / "none.csv"), FileNotFoundError, "none.csv"),
        (lambda p: sweep("bac_capacity", grid=BAC, replicates=0), DomainError, "replicates must be an integer of at l"),
        (lambda p: sweep("bac_capacity", grid=BAC, seed=-1), DomainError, "seed must be an integer of at least 0; got"),
        (lambda p: sweep("bac_capacity", grid=BAC, resume=2), DomainError, "resume must be True or False; got 2"),
        (lambda p: sweep("bac_capacity", grid=BAC, n_jobs=0), DomainError, "n_jobs must be a non-zero integer"),
        (lambda p: sweep("bac_capacity", grid=BAC, executor="cloud"), DomainError, "executor must be"),
        (lambda p: sweep("bac_capacity", grid=BAC, shard=3), DomainError, "shard must be a sequence of two numbers; g"),
        (lambda p: sweep("bac_capacity", grid=BAC, shard=(1, 2, 3)), DomainError,
         r"shard must be two numbers \(i, n\); got \(1, 2, 3\). Pass \(1, 10\)"),
        (lambda p: sweep("bac_capacity", grid=BAC, shard=(3, 2)), DomainError, "shard must be an integer of at least "),
        (lambda p: sweep("bac_capacity", grid=BAC, out=p / "t.xlsx"), DomainError,
         "out must end in .parquet or .csv; got .*t.xlsx'. Choose one of these endings"),
        (lambda p: sweep("bac_capacity", grid=BAC, out=p / "no" / "t.csv"), OSError, "Make its directory first"),
        (lambda p: sweep("bac_capacity", grid=BAC).save(p / "t.xlsx"), DomainError, "path must end in .parquet or .cs"),
        (lambda p: sweep("bac_capacity", grid=BAC)["val"], DomainError,
         "column must be one of a, b, value, lower, .*; got 'val'. Choose one of these"),
        (lambda p: sweep({"grid": BAC}), DomainError, "spec must name a quantity; got none. Write quantity ="),
        (lambda p: sweep({"quantity": "bac_capacity", "sigma": 1}), DomainError,
         "spec must have the keys quantity, grid, zip, table, replicates, seed; got 'sigma'. Parameters stand under g"),
        (lambda p: sweep({"quantity": "bac_capacity", "grid": BAC}, grid=BAC), DomainError,
         "grid must be given once; got it in the specification and beside it. Drop one"),
        (lambda p: sweep(p / "bad.toml"), DomainError, "spec must be a TOML file; got .*bad.toml'"),
    ],
)
def test_faults_are_named(tmp_path, call, error, message):
    (tmp_path / "uneven.csv").write_text("a,b\n1,2\n3\n")
    (tmp_path / "bad.toml").write_text("quantity = \n")
    (tmp_path / "broken.py").write_text("def f(x) return")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "twice.csv").write_text("a,b, a\n1,2,3\n")
    (tmp_path / "gap.csv").write_text("a,b\n0.1,0.2\n0.3,\n")
    (tmp_path / "packed.csv").write_bytes(b"BZh91AY&SY\xff\xfe")
    (tmp_path / "text.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(error, match=message):
        call(tmp_path)


@pytest.mark.few(1)
@pytest.mark.parametrize(("function", "message"), [
    (functions.nothing, "quantity must return a number, an Estimate or a dict of these; got None from nothing"),
    (functions.word, "quantity must return a number, an Estimate or a dict of these; got 'a word' from word"),
    (functions.several, r"quantity must return a number, an Estimate or a dict of these; got \[4.0, 4.0\] from severa"),
    (lambda x: np.array([x, x]), "quantity must return a number|quantity must return one number for a cell; got an ar"),
    (lambda x: {}, "quantity must return a number, an Estimate or a dict of these; got {} from"),
    (lambda x: {1: x}, "quantity must return a number, an Estimate or a dict of these; got {1: "),
    (lambda x: fastpriv.capacity.binary_entropy([0.1, 0.2]), r"must return one number for a cell; got an array of sha"),
])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_function_that_returns_no_number_ends_the_sweep_and_loses_nothing(tmp_path, function, message, n_jobs):
    grid = {"x": [float(x) for x in range(9)]}
    with pytest.raises(DomainError, match=message + ".*The cell was x="):
        sweep(function, grid=grid, store=tmp_path / "s", n_jobs=n_jobs)
    with ResultStore.read(tmp_path / "s") as store:
        done = int(store.notes()["done"])
        assert done == sum(len(BatchResults.unpack(payload).keys) for _, payload in store.items())
    assert done == (4 if function.__name__ in ("nothing", "word", "several") else 0) or (n_jobs == 2 and done < 9)


def test_a_store_of_another_sweep_is_refused_and_not_harmed(tmp_path, monkeypatch):
    store = tmp_path / "s"
    first = sweep(functions.drawn, grid={"n": [1, 2]}, seed=1, store=store)
    message = "store must be one of the same {}; got .*or pass resume=False to empty it"
    with pytest.raises(DomainError, match=message.format("seed")):
        sweep(functions.drawn, grid={"n": [1, 2]}, seed=2, store=store)
    with pytest.raises(DomainError, match=message.format("quantity")):
        sweep(functions.product, grid=GRID, store=store)

    def drawn(n, rng):
        return rng.normal() + n

    drawn.__qualname__ = "drawn"
    with pytest.raises(DomainError, match=message.format("source")):
        sweep(drawn, grid={"n": [1, 2]}, seed=1, store=store)
    with monkeypatch.context() as patch:
        patch.setattr("fastpriv.sweeps.runs.__version__", "0.0.1")
        with pytest.raises(DomainError, match=message.format("version")):
            sweep(functions.drawn, grid={"n": [1, 2]}, seed=1, store=store)
    assert sweep(functions.drawn, grid={"n": [1, 2]}, seed=1, store=store) == first
    other = sweep(functions.product, grid=GRID, store=store, resume=False)
    assert other["value"].tolist() == [1.0, 2.0]


def test_enclosed_values_and_defaults_belong_to_a_function(tmp_path):
    def shifted(by, default=0.0):
        def f(x, y=default):
            return x + by + y

        return f

    sweep(shifted(1.0), grid=GRID, store=tmp_path / "s")
    sweep(shifted(1.0), grid=GRID, store=tmp_path / "s")
    for other in (shifted(2.0), shifted(1.0, 3.0)):
        with pytest.raises(DomainError, match="store must be one of the same source"):
            sweep(other, grid=GRID, store=tmp_path / "s")


def test_two_writers_on_one_store(tmp_path):
    with ResultStore.open(tmp_path / "s", identity={}) as store:
        with pytest.raises(DomainError, match="store must have one writer; got .*which another run is writing"):
            sweep("bac_capacity", grid=BAC, store=tmp_path / "s")
        store.put_many([])


def test_merges_of_other_sweeps_and_of_too_few_shards(tmp_path):
    sweep(functions.product, grid=GRID, shard=(1, 2), store=tmp_path / "one")
    sweep("bac_capacity", grid=BAC, store=tmp_path / "other")
    with pytest.raises(DomainError, match="merge must be the stores of all shards; got 1 of 2 cells. Run the missing"):
        sweep(functions.product, grid=GRID, merge=[tmp_path / "one"], store=tmp_path / "all")
    with pytest.raises(DomainError, match="merge must be stores of the same quantity; got .*Leave it out"):
        sweep(functions.product, grid=GRID, merge=[tmp_path / "other"])
    with pytest.raises(FileNotFoundError, match="merge must be a file that fastpriv made; got none"):
        sweep(functions.product, grid=GRID, merge=[tmp_path / "none"])
    assert sweep(functions.product, grid=GRID, store=tmp_path / "all")["value"].tolist() == [1.0, 2.0]


def test_missing_extras_name_the_command_that_installs_them(monkeypatch, tmp_path):
    table = sweep("bac_capacity", grid=BAC)
    for module in ("polars", "xarray", "pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BackendMissingError, match="to_polars needs polars. Install it with: pip install polars"):
        table.to_polars()
    with pytest.raises(BackendMissingError, match="to_xarray needs xarray. Install it with: pip install xarray"):
        table.to_xarray()
    with pytest.raises(BackendMissingError, match="pyarrow must be installed to write Parquet; got none. Run: pip ins"):
        table.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(BackendMissingError, match="pyarrow must be installed to read Parquet; got none. Run: pip inst"):
        sweep("bac_capacity", tmp_path / "t.parquet")


def test_a_shard_has_no_cube():
    pytest.importorskip("xarray")
    with pytest.raises(DomainError, match="to_xarray must be called on a whole sweep; got 1 cells of a shard. Merge"):
        sweep("bac_capacity", grid=BAC, shard=(1, 2)).to_xarray()


@pytest.mark.slow
def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["sweep", "bac_capacity", "--grid", "a=0.1,0.2", "--grid", "b=0:0.5:3", "--n-jobs", "1"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "a,b,value,lower,upper,kind,unit,seconds,error"
    assert len(lines) == 7
    assert main([*words, "--store", "s", "--out", "t.csv"]) == 0
    assert capsys.readouterr().out == "6 cells, 0 failed. Written: s, t.csv\n"
    assert main(["sweep", "--status", "s"]) == 0
    assert capsys.readouterr().out.startswith("capacity.bac_capacity: 6 of 6 cells done (100.0%), 0 failed, ")
    assert main(["sweep", "--status", "s", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"] == 6
    for i in "12":
        assert main([*words, "--shard", f"{i}/2", "--store", f"s{i}", "--quiet"]) == 0
    assert main([*words, "--merge", "s1", "s2", "--out", "m.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"] == 6
    whole, merged = (Path(name).read_text().splitlines() for name in ("t.csv", "m.csv"))
    assert [line.split(",")[:7] for line in whole] == [line.split(",")[:7] for line in merged]
    assert main(["sweep", "bac_capacity", "--table", "t.csv", "--store", "other"]) == 2
    assert "settings must name parameters of capacity.bac_capacity; got 'value'" in capsys.readouterr().err
    place = ["sweep", "sweeps.functions:drawn", "--grid", "n=3", "--seed", "4", "--replicates", "2", "--store", "r"]
    assert main([*place, "--n-jobs", "1"]) == 0
    assert capsys.readouterr().out == "2 cells, 0 failed. Written: r\n"
    assert main(["sweep", "sweeps.functions:product", "--grid", "x=3", "--store", "r"]) == 2
    assert "store must be one of the same quantity" in capsys.readouterr().err
    assert main(["sweep", "sweeps.functions:product", "--grid", "x=3", "--store", "r", "--fresh", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["store"] == "r"
    assert main(["sweep", "--list"]) == 0
    assert "sampled_gaussian_delta" in capsys.readouterr().out
    (tmp_path / "spec.toml").write_text('quantity = "bac_capacity"\n[grid]\na = [0.1, 2.0]\nb = "0:0.5:3"\n')
    assert main(["sweep", "spec.toml", "--out", "t.parquet", "--n-jobs", "1"]) == 0
    assert "3 of 6 cells failed, the first with: a must be" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--grid", "a=1"], "SPEC must be given; got none. Pass a TOML file or a quantity; --list names all."),
        (["f", "--grid", "a=1", "--grid", "a=2"], "--grid must name each parameter once; got 'a' twice. Write all val"),
        (["f", "--grid", "a"], "--grid must be NAME=VALUES; got 'a'. Write --grid sigma=1,2,5."),
        (["bac_capacity", "--shard", "2"], "--shard must be I/N, two whole numbers; got '2'. Write 1/10 for the first"),
        (["--status", "none"], "store must be a file that fastpriv made; got none at 'none'"),
        (["--status", "empty"], "store must be one of a sweep; got none of its remarks. Name the store of a sweep."),
        (["bac_capacity", "--grid", "a=x,y", "--grid", "b=1"],
         "grid['a'] must be numbers; got 'x' at index 0. Pass numbers, or "),
    ],
)
def test_faults_of_the_command_are_one_line(tmp_path, capsys, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    ResultStore.open("empty", identity={}).close()
    assert main(["sweep", *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith("fastpriv: error: ")
    assert said.count("\n") == 1
    assert message in said


FROM_A_DIRECTORY = """
import sys
from fastpriv.cli import main
from fastpriv.sweeps.cells import BatchResults
sys.exit(main(["sweep", "cells:double", "--grid", "x=1,2", "--n-jobs", sys.argv[1], "--quiet"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", ["1", "2"])
def test_the_directory_of_a_function_stands_in_for_no_module(tmp_path, n_jobs):
    (tmp_path / "cells.py").write_text("import helper\n\ndef double(x):\n    return helper.two() * x\n")
    (tmp_path / "helper.py").write_text("def two():\n    return 2.0\n")
    for name in ("cloudpickle", "json", "joblib", "random", "pickle", "struct", "numba", "sqlite3", "_queue", "pandas"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'loaded')!r}, 'a').write('{name} ')\n")
    home = str(Path(fastpriv.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-P", "-c", FROM_A_DIRECTORY, n_jobs], cwd=tmp_path, env=os.environ | {"PYTHONPATH": home},
        capture_output=True, text=True, timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert [line.split(",")[1] for line in done.stdout.splitlines()] == ["value", "2.0", "4.0"]
    assert not (tmp_path / "loaded").exists(), (tmp_path / "loaded").read_text()
