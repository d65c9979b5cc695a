"""The one owner of threads: order, independence of the number of workers, progress, interruption, forks."""

import subprocess
import sys
import threading
import time
import warnings
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import joblib
import numpy as np
import pytest

from fastpriv import (
    DomainError,
    GaussianMechanism,
    GaussianMixture,
    Pmf,
    awgn_capacity,
    kl_divergence,
    notions,
)
from fastpriv.base import parallel
from fastpriv.base.parallel import blocks, ordered_map
from fastpriv.pairs import tilted_transforms

PRIOR, NOISE, CHANNEL = Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(1.0), [[0.75, 0.25], [0.25, 0.75]]
LAW = GaussianMixture.single(0.0, 1.0)


@pytest.mark.parametrize(("total", "size"), [(0, 3), (1, 3), (3, 3), (10, 3), (10, 1)])
def test_blocks_cover_the_range(total, size):
    assert [i for part in blocks(total, size) for i in range(total)[part]] == list(range(total))


@pytest.mark.parametrize("n_jobs", [None, 1, 2, np.int64(2), -1])
def test_results_come_in_order(n_jobs):
    def slower_first(task):
        time.sleep(0.02 / (1 + task))
        return task * task

    assert list(ordered_map(slower_first, range(8), n_jobs=n_jobs)) == [i * i for i in range(8)]
    assert list(ordered_map(slower_first, [], n_jobs=n_jobs)) == []


def test_none_means_what_joblib_is_told():
    seen, both = set(), threading.Event()

    def where(task):
        seen.add(threading.get_ident())
        if len(seen) > 1:
            both.set()
        both.wait(60)  # at once, unless one thread does it all

    with joblib.parallel_config(backend="threading", n_jobs=2):
        list(ordered_map(where, range(8)))
    assert len(seen) > 1


def test_more_workers_than_any_machine_has_are_refused():
    with pytest.raises(DomainError, match="n_jobs must be at most 65536 in size; got 1000000000. Pass -1"):
        parallel.checked(10**9)


@pytest.mark.parametrize(
    "call",
    [
        lambda **words: notions.lip_epsilon(PRIOR, NOISE, **words),
        lambda **words: notions.cd_lmip(PRIOR, NOISE, **words),
        lambda **words: notions.lip_delta(PRIOR, NOISE, 1.0, **words), lambda **words: awgn_capacity(1, 1, 1, **words),
        lambda **words: kl_divergence(LAW, LAW, **words), lambda **words: notions.ldp_epsilon(None, CHANNEL, **words),
        lambda **words: notions.bayes_vulnerability(None, CHANNEL, **words),
    ],
)
def test_brief_calls_check_n_jobs_and_progress_too(call):
    with pytest.raises(DomainError, match="n_jobs must be a non-zero integer or None; got 'all'"):
        call(n_jobs="all")
    with pytest.raises(DomainError, match="progress must be True or False, or a function; got 'yes'"):
        call(progress="yes")


@pytest.mark.parametrize("n_jobs", [0, 1.5, True, "2"])
def test_a_wrong_number_of_jobs_is_named(n_jobs):
    with pytest.raises(DomainError, match=r"n_jobs must be a non-zero integer or None; got .*\. Pass -1 for all cores"):
        list(ordered_map(abs, [1, 2], n_jobs=n_jobs))


def test_progress_is_reported_block_by_block():
    seen = []
    list(ordered_map(abs, range(3), progress=lambda done, total: seen.append((done, total))))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    with pytest.raises(DomainError, match="progress must be True or False, or a function; got 7"):
        list(ordered_map(abs, range(3), progress=7))


def test_the_bar_stays_away_from_files_and_short_runs(capfd):
    assert list(ordered_map(abs, range(3), progress=True)) == [0, 1, 2]
    assert capfd.readouterr().err == ""


def test_without_tqdm_there_is_no_failure(monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert list(ordered_map(abs, range(3), progress=True)) == [0, 1, 2]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_a_task_reaches_the_caller_after_the_results_before_it(n_jobs):
    def third_fails(task):
        if task == 3:
            raise KeyboardInterrupt
        return task

    seen = []
    with pytest.raises(KeyboardInterrupt):
        seen.extend(ordered_map(third_fails, range(6), n_jobs=n_jobs))
    assert seen == [0, 1, 2][: len(seen)]


@pytest.mark.slow
def test_a_fork_after_use_does_not_hang():
    code = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)
import fastpriv
import numpy as np
from fastpriv.base.parallel import ordered_map
prior = fastpriv.Pmf.from_data([1.0, 2.0, 4.0])
def work(sigma):
    p = prior.through_gaussian(sigma)
    q = fastpriv.GaussianMixture.single(2.0, sigma)
    return fastpriv.hockey_stick_divergence(p, q, np.linspace(0, 3, 50)).value.sum()
def total():
    return sum(ordered_map(work, [0.5, 1.0, 2.0, 4.0], n_jobs=2))
before = total()
child = os.fork()
if child == 0:
    os._exit(0 if sum(map(work, [0.5, 1.0, 2.0, 4.0])) == before else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=600, check=False).returncode == 0  # it hung


def test_an_error_of_a_thread_is_raised_at_once():
    def fails(task):
        if task == 3:
            raise ZeroDivisionError("three")
        return task

    with pytest.raises(ZeroDivisionError, match="three"):
        list(ordered_map(fails, range(200), n_jobs=2))


def test_brief_work_stays_on_its_thread():
    here = threading.get_ident()
    assert set(ordered_map(lambda task: threading.get_ident(), range(8), n_jobs=2, brief=True)) == {here}
    with pytest.raises(DomainError, match="n_jobs must be"):
        list(ordered_map(abs, range(3), n_jobs=0, brief=True))


def test_maps_in_several_threads_leave_the_filters_of_warnings_alone():
    """The filters belong to all threads: a map that set and restored them lost those of others, or left its own."""
    before, interval, errors = list(warnings.filters), sys.getswitchinterval(), []

    def maps():
        try:
            for _ in range(20):
                list(ordered_map(lambda task: task, range(6), n_jobs=2, shared=True))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=maps) for _ in range(4)]
    try:
        sys.setswitchinterval(1e-5)  # so that the threads meet at every line
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
        after = list(warnings.filters)
        warnings.filters[:] = before
    assert not errors
    assert after == before


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_a_map_that_another_thread_closes_says_nothing(backend):
    with joblib.parallel_config(backend, n_jobs=2):
        results = ordered_map(abs, range(50), n_jobs=2)
        assert next(results) == 0
    with ThreadPoolExecutor(1) as other:
        other.submit(results.close).result()  # warnings are errors here
    assert list(results) == []


def test_threads_share_the_cache_of_tilted_sums(monkeypatch):
    """Three threads fill a cache of 20 entries; to change it while another thread goes through it would raise."""
    monkeypatch.setattr(tilted_transforms, "_tilted_sums", lambda masses, theta: SimpleNamespace(values=np.zeros(1)))
    monkeypatch.setattr(tilted_transforms, "_KEPT_POINTS", 20)
    monkeypatch.setattr(tilted_transforms, "_sums_cache", OrderedDict())
    errors = []

    def fill(start):
        try:
            for theta in range(start, start + 600):
                tilted_transforms._kept_sums([], [], float(theta))
        except RuntimeError as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=fill, args=(1000 * index,)) for index in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []
    assert len(tilted_transforms._sums_cache) <= 20
