"""Tasks on threads, processes and clusters: every outcome arrives once, whatever dies on the way."""

import contextlib
import itertools
import os
import subprocess
import sys
import threading
import time
import warnings

import joblib
import numpy as np
import pytest

from contracts.executor_tasks import DEADLY, Unreadable, dying, dying_once, slow_square, square, truth
from contracts.random_kills import killer
from fastpriv import DomainError, GaussianMixture, hockey_stick_divergence
from fastpriv.base import executors, parallel
from fastpriv.base.errors import WorkerDiedError
from fastpriv.base.executors import completed, ordered
from fastpriv.sampling import Sampling

COUNT = 40


def outcomes(results):
    """The outcomes by index, errors as their text; each index once."""
    found = {}
    for index, outcome in results:
        assert index not in found
        found[index] = outcome.result if outcome.error is None else str(outcome.error)
    return dict(sorted(found.items()))


def agree(found, expected):
    assert found.keys() == expected.keys()
    for index, want in expected.items():
        assert (want in found[index]) if isinstance(want, str) else found[index] == want, (index, found[index], want)


@pytest.mark.parametrize("how", [{}, {"n_jobs": 2}, {"executor": "processes", "n_jobs": 2}])
def test_every_outcome_arrives_once_with_errors_and_warnings(how):
    with pytest.warns(UserWarning, match="four"):
        agree(outcomes(completed(square, iter(range(COUNT)), **how)), truth(COUNT))


@pytest.mark.few(1)
@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_the_backend_that_joblib_is_told_runs_the_tasks(backend):
    with joblib.parallel_config(backend, n_jobs=2):
        found = dict(completed(lambda _: (os.getpid(), threading.get_ident()), range(8)))
    places = {outcome.result for outcome in found.values()}
    assert (os.getpid(), threading.get_ident()) not in places
    assert all((pid == os.getpid()) == (backend == "threading") for pid, _ in places)


@pytest.mark.slow
def test_a_task_that_ends_its_process_has_an_error_of_its_own():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = dict(completed(dying, range(COUNT), executor="processes", n_jobs=2, max_attempts=3))
    agree(outcomes(found.items()), truth(COUNT, DEADLY))
    for index in DEADLY:
        assert isinstance(found[index].error, WorkerDiedError)
        assert "in each of 3 attempts: SIGKILL(-9). Look for a lack" in str(found[index].error)


def test_a_task_that_dies_once_is_done_at_its_second_attempt(tmp_path):
    tasks = [(str(tmp_path), x) for x in range(COUNT)]
    found = outcomes(completed(dying_once, tasks, executor="processes", n_jobs=2))
    assert found == {x: x * x for x in range(COUNT)}


@pytest.mark.slow
def test_a_suspect_is_tried_again_when_nothing_else_runs(tmp_path):
    def during(item):
        """Names of the tasks that run at the end of this one."""
        name, seconds = item
        mark = tmp_path / name
        if name == "deadly" and not (tmp_path / "tried").exists():
            (tmp_path / "tried").touch()
            os._exit(1)
        mark.touch()
        time.sleep(seconds)
        running = sorted(path.name for path in tmp_path.iterdir())
        mark.unlink()
        return running

    tasks = [("deadly", 0.0), *((f"other {i}", 0.02) for i in range(20))]
    order = list(completed(during, tasks, executor="processes", n_jobs=3))
    assert order[-1] == (0, executors.Outcome(["deadly", "tried"]))


def test_tasks_are_taken_as_workers_become_free():
    for how in ({}, {"n_jobs": 3}, {"executor": "processes", "n_jobs": 3}):
        taken = itertools.count()
        results = completed(int, (next(taken) for _ in iter(int, 1)), **how)  # a generator without an end
        seen = {next(results)[0] for _ in range(200)}
        results.close()
        assert len(seen) == 200
        assert next(taken) <= 204


@pytest.mark.slow
def test_objects_of_main_and_lambdas_go_to_processes_and_back():
    program = """
from fastpriv.base.executors import completed
class Thing:
    def __init__(self, x): self.x = x
found = dict(completed(lambda thing: Thing(thing.x + 1), map(Thing, range(5)), executor="processes", n_jobs=2))
assert [found[i].result.x for i in range(5)] == [1, 2, 3, 4, 5]
assert all(type(outcome.result) is Thing for outcome in found.values())
print("once")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "once\n", done.stderr


def test_what_cannot_be_pickled_is_an_error_of_the_task():
    found = outcomes(completed(lambda x: threading.Lock() if x == 1 else 0, range(3), executor="processes", n_jobs=1))
    assert found[0] == found[2] == 0
    assert "function must return what can be pickled; got TypeError: cannot pickle '_thread.lock'" in found[1]
    found = outcomes(completed(bool, [1, threading.Lock(), 0], executor="processes", n_jobs=1))
    assert (found[0], found[2]) == (True, False)
    assert "cannot pickle" in found[1]


def test_a_function_that_no_process_can_read_ends_the_run():
    with pytest.raises(ImportError, match="nothing of this name on this machine"):
        list(completed(Unreadable(), range(3), executor="processes", n_jobs=2))


def test_processes_that_cannot_start_end_the_run(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(WorkerDiedError, match="executor must be able to start processes; got 3 that ended before they"):
        list(completed(square, range(3), executor="processes", n_jobs=1))


def test_a_worker_of_joblib_that_dies_is_said():
    def work(x):
        os._exit(x)

    with joblib.parallel_config("loky", n_jobs=2), pytest.raises(WorkerDiedError) as error:
        list(parallel.ordered_map(work, range(1, 4)))
    assert "joblib must have workers that outlive their tasks; got one that died: A worker process" in str(error.value)
    with joblib.parallel_config("loky", n_jobs=2):  # the next call has new workers
        assert list(parallel.ordered_map(abs, range(4))) == [0, 1, 2, 3]


@pytest.mark.slow
def test_closing_ends_processes_at_once_and_leaves_threads(tmp_path):
    for how in ({"n_jobs": 2}, {"executor": "processes", "n_jobs": 2}):
        results = completed(lambda x: (time.sleep(30.0 * x), os.getpid()), [0, 1, 1], **how)
        _, outcome = next(results)
        start = time.monotonic()
        results.close()
        assert time.monotonic() - start < 5.0  # closing waits for no task of 30 s
        if how.get("executor"):
            with pytest.raises(ProcessLookupError):
                os.kill(outcome.result[1], 0)


@pytest.mark.slow
def test_processes_end_with_their_parent(tmp_path):
    program = f"""
import os, time
from fastpriv.base.executors import completed
def wait(x):
    with open({str(tmp_path / "pid")!r} + str(x), "w") as stream: stream.write(str(os.getpid()))
    time.sleep(100)
next(completed(wait, range(2), executor="processes", n_jobs=2))
"""
    parent = subprocess.Popen([sys.executable, "-c", program])
    files = [tmp_path / "pid0", tmp_path / "pid1"]
    deadline = time.monotonic() + 60
    while not all(file.exists() and file.read_text() for file in files) and time.monotonic() < deadline:
        time.sleep(0.05)
    pids = [int(file.read_text()) for file in files]
    parent.kill()
    parent.wait()
    while any(os.path.exists(f"/proc/{pid}/stat") for pid in pids) and time.monotonic() < deadline:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        time.sleep(0.05)
    assert not any(os.path.exists(f"/proc/{pid}/stat") for pid in pids)


@pytest.mark.slow
def test_short_tasks_come_back_in_order(tmp_path):
    seen = []
    tasks = [(str(tmp_path), x) for x in range(100)]
    results = ordered(dying_once, tasks, executor="processes", n_jobs=2, progress=lambda *done: seen.append(done))
    assert list(results) == [x * x for x in range(100)]
    assert seen == [(done, 100) for done in range(1, 101)]
    results = ordered(square, range(8, 40), executor="processes", n_jobs=2)
    with pytest.raises(RuntimeError, match="Refused: 9: nine"):
        list(results)
    assert list(ordered(lambda x: -x, range(3), executor="processes", brief=True)) == [0, -1, -2]


@pytest.mark.slow
def test_an_estimate_by_sampling_has_the_same_bits_on_all_executors():
    rng = np.random.default_rng(0)
    p, q = (
        GaussianMixture(np.full(30, 1 / 30), rng.integers(-3, 4, (30, 12)) / 2.0, rng.integers(2, 5, (30, 12)) / 2.0)
        for _ in range(2)
    )
    options = {"rng": 1, "rtol": 0.0, "max_samples": 2e5, "max_seconds": np.inf, "method": "direct random"}
    for kind in ("replicates", "guaranteed"):
        expected = hockey_stick_divergence(p, q, 0.5, interval=kind, **options)
        found = hockey_stick_divergence(p, q, 0.5, interval=kind, executor="processes", n_jobs=2, **options)
        assert (found.value, found.lower, found.upper) == (expected.value, expected.lower, expected.upper)
        assert dict(found.cost) == dict(expected.cost)
    with pytest.raises(DomainError, match="executor must be None or 'processes'"):
        Sampling(executor="cluster")


@pytest.mark.parametrize("executor", ["process", 3, [], object()])
def test_what_is_no_executor_is_refused(executor):
    with pytest.raises(DomainError, match="executor must be None or 'processes'; got"):
        completed(square, [], executor=executor)


def test_other_arguments_are_checked():
    with pytest.raises(DomainError, match="max_attempts must be"):
        completed(square, [], max_attempts=0)
    with pytest.raises(DomainError, match="n_jobs must be a non-zero integer"):
        completed(square, [], n_jobs=0)


@pytest.mark.slow
def test_processes_killed_at_random_lose_nothing():
    taken = []

    def tasks():
        """As many as it takes for four deaths and some more: on a busy machine a process needs seconds to start."""
        for index in range(20_000):
            if len(kills) > 3 and index >= 400:
                return
            taken.append(index)
            yield index

    with killer(3) as kills, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = outcomes(completed(slow_square, tasks(), executor="processes", n_jobs=3, max_attempts=8))
    agree(found, truth(len(taken)))
    assert len(kills) > 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_dask_by_joblib():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    cluster = distributed.LocalCluster(processes=True, **options)
    with cluster, distributed.Client(cluster), joblib.parallel_config("dask"):
        agree(outcomes(completed(slow_square, iter(range(COUNT)))), truth(COUNT))
