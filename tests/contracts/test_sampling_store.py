"""One estimate by sampling in a store: killed and called again, it has the bits of a run without interruption."""

import math
import os
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from fastpriv import Density, DomainError, GaussianMixture, Sampling, kl_divergence
from fastpriv.base.store import ResultStore
from fastpriv.sampling import replicates, stopping

RNG = np.random.default_rng(3)
P = GaussianMixture(np.full(4, 0.25), RNG.integers(-8, 9, (4, 3)) / 4.0, 1.0)
Q = GaussianMixture(np.full(4, 0.25), RNG.integers(-8, 9, (4, 3)) / 4.0, 1.5)
OPTIONS = {"rng": 5, "max_seconds": math.inf, "rtol": 3e-3}


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr(stopping, "BRIEF_COST", 0.0)
    monkeypatch.setattr(replicates, "SEGMENT_COST", 2.0**22)


def numbers(estimate):
    return estimate.value, estimate.lower, estimate.upper, estimate.cost


@pytest.mark.few(1)
@pytest.mark.parametrize("how", [{}, {"n_jobs": 2}, {"executor": "processes", "n_jobs": 2}])
def test_what_is_in_the_store_is_not_sampled_again(tmp_path, monkeypatch, how):
    expected = kl_divergence(P, Q, **OPTIONS)
    store = tmp_path / "store"
    assert numbers(kl_divergence(P, Q, store=store, **OPTIONS, **how)) == numbers(expected)
    with ResultStore.open(store, identity={"computation": "sampling"}) as kept:
        pieces = len(kept.keys())
    assert pieces > 20
    monkeypatch.setattr(replicates, "segment_sum", None)  # nothing may be computed
    assert numbers(kl_divergence(P, Q, store=store, **OPTIONS)) == numbers(expected)


def test_damaged_and_other_pieces_are_computed(tmp_path):
    store = tmp_path / "store"
    expected = kl_divergence(P, Q, store=store, **OPTIONS)
    other = {**OPTIONS, "rng": 6}
    assert numbers(kl_divergence(P, Q, store=store, **other)) == numbers(kl_divergence(P, Q, **other))
    assert numbers(kl_divergence(Q, P, store=store, **OPTIONS)) == numbers(kl_divergence(Q, P, **OPTIONS))
    with sqlite3.connect(store) as connection:
        connection.execute("update results set payload = x'00' where rowid % 3 = 0")
    connection.close()
    assert numbers(kl_divergence(P, Q, store=store, **OPTIONS)) == numbers(expected)


def test_a_density_of_the_caller_keeps_its_statistics(tmp_path):
    def log_density(x):
        return -0.5 * np.sum((x - 1.0) ** 2, axis=-1) - 1.5 * math.log(2.0 * math.pi)

    density = Density(log_density, dimension=3, vectorized=True)
    expected = kl_divergence(P, density, **OPTIONS)
    for _ in range(2):
        assert numbers(kl_divergence(P, density, store=tmp_path / "store", **OPTIONS)) == numbers(expected)


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on(tmp_path):
    program = """
import os, sys, math, numpy as np
from fastpriv import GaussianMixture, kl_divergence
from fastpriv.sampling import replicates, stopping
stopping.BRIEF_COST, replicates.SEGMENT_COST = 0.0, 2.0**22
store, mark = sys.argv[1:]
rng = np.random.default_rng(3)
p = GaussianMixture(np.full(4, 0.25), rng.integers(-8, 9, (4, 3)) / 4.0, 1.0)
q = GaussianMixture(np.full(4, 0.25), rng.integers(-8, 9, (4, 3)) / 4.0, 1.5)
calls = 0
def kill(done, total):
    global calls
    calls += 1
    if calls == 25 and not os.path.exists(mark):
        open(mark, "w").close()
        os.kill(os.getpid(), 9)
found = kl_divergence(p, q, rng=5, max_seconds=math.inf, rtol=3e-3, store=store, progress=kill)
print((found.value, found.lower, found.upper, found.cost))
"""
    args = [sys.executable, "-c", program, str(tmp_path / "store"), str(tmp_path / "mark")]
    assert subprocess.run(args, capture_output=True).returncode == -signal.SIGKILL
    assert os.path.exists(tmp_path / "mark")
    done = subprocess.run(args, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{numbers(kl_divergence(P, Q, **OPTIONS))}\n"


@pytest.mark.parametrize("options", [{"store": "x"}, {"store": "x", "rng": 1, "interval": "guaranteed"}])
def test_a_store_needs_a_seed(options):
    with pytest.raises(DomainError, match="store must be None without rng, whose streams name the pieces, and"):
        Sampling(**options)
