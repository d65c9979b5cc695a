"""A sweep that is killed, interrupted, out of space or without its workers goes on, and ends with the same table."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import joblib
import numpy as np
import pytest

import fastpriv
from fastpriv import sweep
from fastpriv.base.store import ResultStore
from fastpriv.sweeps.parameter_grid import BLOCK
from sweeps import functions

PLACES = [str(Path(fastpriv.__file__).parents[1]), str(Path(__file__).parents[1])]
HERE = os.environ | {"PYTHONPATH": os.pathsep.join([*PLACES, os.environ.get("PYTHONPATH", "")])}
RUN = """
import sys
import fastpriv
from sweeps import functions
store, side, n_jobs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
fastpriv.sweep(functions.slow, grid={"x": range(side), "y": range(side)}, seed=7, store=store, n_jobs=n_jobs)
"""


def started(*words, code=RUN, stderr=None):
    return subprocess.Popen([sys.executable, "-c", code, *map(str, words)], env=HERE, stderr=stderr)


def finished_cells(store):
    """None where the process was killed before it made the store, or between making the file and the tables."""
    if not store.exists():
        return 0
    with closing(sqlite3.connect(store)) as connection:
        if connection.execute("select count(*) from sqlite_master").fetchone() == (0,):
            return 0
    with ResultStore.read(store) as found:
        return int(found.notes().get("done", 0))


def test_a_sweep_goes_on_from_a_file_without_tables(tmp_path):
    (tmp_path / "s").touch()
    assert finished_cells(tmp_path / "s") == 0
    found = sweep(functions.drawn, grid={"n": range(5)}, seed=7, store=tmp_path / "s")
    assert found == sweep(functions.drawn, grid={"n": range(5)}, seed=7)


@pytest.mark.parametrize(("times", "side", "n_jobs"), [(8, 80, 1), (8, 80, 2)])
@pytest.mark.slow
def test_a_sweep_killed_at_random_moments_ends_with_the_same_table(tmp_path, times, side, n_jobs):
    """The moments are counted in finished cells, since a machine under load takes any time to begin."""
    draws, store, words = random.Random(times), tmp_path / "store", {"grid": {"x": range(side), "y": range(side)}}
    words["seed"] = 7
    assert started(tmp_path / "whole", side, n_jobs).wait() == 0
    progress, ended = [], 0
    while len(progress) < times:
        goal = finished_cells(store) + draws.randrange(2 * side * side // times)
        process = started(store, side, n_jobs)
        while process.poll() is None and finished_cells(store) < goal:
            time.sleep(0.02)
        with suppress(subprocess.TimeoutExpired):
            process.wait(draws.uniform(0.0, 0.1))
        if process.poll() is None:
            process.kill()
            process.wait()
            progress.append(finished_cells(store))
        else:  # it was quicker: from the beginning
            assert process.returncode == 0
            ended += 1
            assert sweep(functions.slow, **words, store=store) == sweep(
                functions.slow, **words, store=tmp_path / "whole"
            )
            store.unlink()
    assert started(store, side, n_jobs).wait() == 0
    calls = []
    found = sweep(functions.slow, **words, store=store, progress=lambda finished, total: calls.append(finished))
    assert calls == [*range(BLOCK, side * side, BLOCK), side * side]  # block by block from the store
    assert found == sweep(functions.slow, **words, store=tmp_path / "whole")
    assert not found.failed
    assert times < 10 or sum(0 < cells < side * side for cells in progress) > times // 3, (progress, ended)


FULL = """
import resource, sys
import fastpriv
from sweeps import functions
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
try:
    fastpriv.sweep(functions.drawn, grid={"n": range(6_000)}, seed=7, store=sys.argv[1])
except OSError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_full_disk_loses_no_finished_cell(tmp_path):
    ended = subprocess.run([sys.executable, "-c", FULL, str(tmp_path / "s")], env=HERE, capture_output=True, text=True)
    assert "store must be on a disk with space for the results; got" in ended.stdout, ended
    done = finished_cells(tmp_path / "s")
    assert 0 < done < 6_000
    calls = []
    words = {"grid": {"n": range(6_000)}, "seed": 7}
    found = sweep(functions.drawn, **words, store=tmp_path / "s", progress=lambda count, total: calls.append(count))
    assert calls[0] > 0
    assert found == sweep(functions.drawn, **words)


INTERRUPTED = """
import sys
from fastpriv.cli import main
words = ["--grid", "x=1:9:9", "--store", sys.argv[1], "--n-jobs", sys.argv[2]]
sys.exit(main(["sweep", "sweeps.functions:endless", *words]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_ends_a_sweep_whose_cells_never_end(tmp_path, n_jobs):
    process = started(tmp_path / "s", n_jobs, code=INTERRUPTED, stderr=subprocess.PIPE)
    while not (tmp_path / "s").exists():
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)  # of a cell that takes 60 s
    assert process.returncode == 130, errors
    assert errors.decode().endswith(
        "interrupted; finished cells are kept in the store, if there is one. Run the same command to go on.\n"
    )
    ResultStore.read(tmp_path / "s").close()


def test_an_interrupted_sweep_keeps_what_is_finished(tmp_path):
    def stop(done, total):
        if done >= 16:
            raise KeyboardInterrupt

    words = {"grid": {"x": range(40), "y": range(40)}, "seed": 7, "store": tmp_path / "s"}
    with pytest.raises(KeyboardInterrupt):
        sweep(functions.slow, **words, progress=stop)
    calls = []
    found = sweep(functions.slow, **words, progress=lambda done, total: calls.append(done))
    assert calls[0] >= 16
    assert found == sweep(functions.slow, **words | {"store": None})


@pytest.mark.slow
def test_a_cell_that_kills_its_process_is_a_row_with_its_error(tmp_path):
    words = {"grid": {"x": range(24)}, "store": tmp_path / "s"}
    found = sweep(functions.deadly, **words, executor="processes", n_jobs=2)
    assert np.flatnonzero(np.isnan(found["value"])).tolist() == [3, 17]
    assert found["error"][3] == found["error"][17]
    assert found["error"][3].startswith(
        "WorkerDiedError: the worker process must survive the cell; got its end each time that it was tried. Look for"
    )
    assert np.nansum(found["value"]) == 2 * (sum(range(24)) - 20)
    calls = []
    assert sweep(functions.deadly, **words, progress=lambda done, total: calls.append(done)) == found
    assert calls == [24]


DEADLY = """
import sys
import fastpriv
from sweeps import functions
words = {"n_jobs": 1} if sys.argv[3] == "one" else {}
fastpriv.sweep(functions.noted, grid={"x": range(24), "folder": sys.argv[2]}, store=sys.argv[1], **words)
"""


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["one", "default"])
@pytest.mark.slow
def test_a_cell_that_kills_the_process_of_the_sweep_becomes_a_row(tmp_path, kind):
    (tmp_path / "traces").mkdir()
    words = (tmp_path / "s", tmp_path / "traces", kind)
    assert started(*words, code=DEADLY).wait() == -signal.SIGKILL  # the first run ends with the cell
    assert started(*words, code=DEADLY).wait() == 0
    traces = [(tmp_path / "traces" / f"{x}").stat().st_size for x in range(24)]
    assert max(traces) <= 20  # a batch of it, its halves, and the cell alone four times
    assert max(traces[18:]) == 1  # cells of later batches are computed once
    grid = {"x": range(24), "folder": str(tmp_path / "traces")}
    found = sweep(functions.noted, grid=grid, store=tmp_path / "s")
    assert np.flatnonzero(np.isnan(found["value"])).tolist() == [3, 17]
    assert found["error"][3].startswith("WorkerDiedError: the worker process must survive the cell; got its end each")
    assert found["value"][23] == 46.0


def test_a_run_that_ends_by_itself_suspects_no_cell(tmp_path):
    def stop(done, total):
        if done >= 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(functions.product, grid={"x": range(40)}, store=tmp_path / "s", progress=stop)
    with ResultStore.read(tmp_path / "s") as store:
        assert [text for name, text in store.notes().items() if name.startswith("running")] == [""]


@pytest.mark.slow
def test_the_same_table_in_processes():
    words = {"grid": {"x": range(12), "y": range(12)}, "seed": 3}
    assert sweep(functions.slow, **words, executor="processes", n_jobs=2) == sweep(functions.slow, **words)
    grid = {"sigma": "0.5..5:40", "epsilon": "0:5:300"}
    assert sweep("gaussian_delta", grid=grid, executor="processes") == sweep("gaussian_delta", grid=grid)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_the_same_table_on_dask():
    distributed = pytest.importorskip("distributed")
    words = {"grid": {"x": range(12), "y": range(12)}, "seed": 3}
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        with joblib.parallel_config("dask"):
            found = sweep(functions.slow, **words)
        assert found == sweep(functions.slow, **words)


CELLS = {"grid": {"x": range(40), "y": range(40)}, "seed": 3}
