"""Ctrl-C reaches Python from within long kernels, and max_seconds ends what is computed on the line.

Whether it was heard within a kernel is told by the frame that raised, or by what it left undone, not by a clock.
"""

import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import fastpriv
from contracts.long_calls import CALLS, measured
from fastpriv import (
    GaussianMixture,
    Pmf,
    channel_capacity,
    entropy,
    hockey_stick_divergence,
    jensen_shannon,
    kl_divergence,
    renyi_divergence,
    special,
    total_variation,
)
from fastpriv.base import validate
from fastpriv.base.values import distinct_rows
from fastpriv.capacity import interior_point
from fastpriv.divergences import log_hockey_stick_divergence
from fastpriv.divergences.one_dimension import integrals, monotone_pieces
from fastpriv.divergences.one_dimension.quadrature import Deadline

SCRIPT = """
import os, signal, threading, traceback
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
from fastpriv import GaussianMixture, hockey_stick_divergence, kl_divergence, special

def frames(call):
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        call()
    except KeyboardInterrupt as error:
        return [each.name.rpartition(".")[2] for each in traceback.extract_tb(error.__traceback__)]

def law(k, seed):
    r = np.random.default_rng(seed)
    return GaussianMixture(np.full(k, 1 / k), r.normal(size=k) * k**0.5, r.uniform(0.5, 1.5, k))

p, q = law(20000, 1), law(20000, 2)
assert "pair_curve" in frames(lambda: hockey_stick_divergence(p, q, 0.1))
near = GaussianMixture(p.weights, p.means + 1e-7, p.sigmas)
assert "row_integral" in frames(lambda: kl_divergence(p, near))

out = np.full(10**7, -1.0)  # most of it is never reached
assert frames(lambda: special.cd_lmip_lip_delta(0.1, np.broadcast_to(1.0, out.shape), 0.5, out=out))
assert out[-1] == -1.0
assert (special.exp(np.zeros(10**5)) == 1.0).all()
"""


def test_interrupted_within_kernels():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_long_call_is_interrupted(name):
    ended, _, seconds = measured(*CALLS[name], 1.5)
    assert ended == "interrupted"
    assert seconds < 1.0


def law(k, seed):
    r = np.random.default_rng(seed)
    return GaussianMixture(np.full(k, 1 / k), r.normal(size=k) * k**0.5, r.uniform(0.5, 1.5, k))


P, Q = law(300, 1), law(300, 2)
LINE = {
    "hockey-stick": lambda **k: hockey_stick_divergence(P, Q, [0.0, 0.5, 3.0, np.inf], **k),
    "log hockey-stick": lambda **k: log_hockey_stick_divergence(P, Q, [0.0, 0.5, 3.0], **k),
    "total variation": lambda **k: total_variation(P, Q, **k),
    "kl, both": lambda **k: kl_divergence(P, Q, both=True, **k),
    "jensen-shannon": lambda **k: jensen_shannon(P, Q, certified=True, **k),
    "renyi above one": lambda **k: renyi_divergence(P, Q, 1.5, **k),
    "renyi below one": lambda **k: renyi_divergence(P, Q, 0.4, **k),
    "entropy": lambda **k: entropy(P, **k),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("name", LINE)
@pytest.mark.parametrize("seconds", [1e-9, 1e-3, 5e-3])
def test_max_seconds_on_the_line_leaves_true_brackets(name, seconds):
    exact, found = LINE[name](), LINE[name](max_seconds=seconds)
    assert np.all(np.asarray(found.lower) <= np.asarray(exact.upper))
    assert np.all(np.asarray(exact.lower) <= np.asarray(found.upper))
    assert np.all((np.asarray(found.lower) <= found.value) & (np.asarray(found.value) <= found.upper))
    if seconds == 1e-9:
        assert "time spent" in found.method
        assert found.cost["stopped"] == "max_seconds"
        assert found.cost["repeatable"] is False
        assert "stopped" not in exact.cost


def test_hockey_stick_at_the_deadline_is_summed_over_cells():
    exact, found = total_variation(P, Q), total_variation(P, Q, max_seconds=1e-9)
    assert 0.9 * exact.value < found.lower <= exact.upper
    assert found.value == pytest.approx(found.lower)


def test_deadline_in_the_future_changes_no_bit():
    later = Deadline(time.monotonic() + 1e6)
    for logs in (False, True):
        hockey_stick = partial(monotone_pieces.hockey_stick_divergence, P, Q, [0.1, 2.0], logs=logs)
        one, other = hockey_stick(), hockey_stick(deadline=later)
        assert np.array_equal(one.lower, other.lower)
        assert np.array_equal(one.upper, other.upper)


def test_information_at_the_deadline_is_between_0_and_the_entropy():
    prior = Pmf(np.arange(600.0), np.full(600, 1 / 600))
    found = integrals.mutual_information(prior, 3.0, deadline=Deadline(0.0))
    exact = integrals.mutual_information(prior, 3.0)
    assert found.lower <= exact.lower <= exact.upper <= found.upper
    assert found.upper <= np.log(600) * (1 + 1e-12)
    assert "time spent" in found.method


@pytest.mark.parametrize("shape", [(60, 90), (90, 60), (70, 70)])
def test_large_steps_in_panels_are_those_of_small_ones(shape, monkeypatch):
    rows = np.random.default_rng(5).random(shape) ** 4
    rows /= rows.sum(axis=1, keepdims=True)
    whole = channel_capacity(rows, rtol=1e-12).capacity
    monkeypatch.setattr(interior_point, "_MAX_MULTIPLICATIONS", 2000)
    monkeypatch.setattr(interior_point, "_PANEL", 16)
    parts = channel_capacity(rows, rtol=1e-12)
    assert parts.converged
    assert parts.capacity.value == pytest.approx(whole.value, rel=1e-11)


def test_large_step_is_given_up_at_the_deadline(monkeypatch):
    rows = np.random.default_rng(5).random((60, 60)) ** 4
    rows /= rows.sum(axis=1, keepdims=True)
    exact = channel_capacity(rows).capacity

    def late(deadline):
        raise TimeoutError

    monkeypatch.setattr(interior_point, "_MAX_MULTIPLICATIONS", 2000)
    monkeypatch.setattr(interior_point, "_check_deadline", late)
    found = channel_capacity(rows, max_seconds=100.0)
    assert not found.converged
    assert found.iterations == 0
    assert "not converged" in found.method
    assert found.capacity.lower <= exact.lower <= exact.upper <= found.capacity.upper


def test_large_arrays_are_copied_in_pieces(monkeypatch):
    a = np.arange(3000, dtype=np.float32).reshape(3, 100, 10)
    monkeypatch.setattr(validate, "_COPY_BLOCK", 64)
    for given in (a, a.T, a[:1], a[0], a[::2, ::3], np.asfortranarray(a), a.astype(int), a.astype(object)):
        for order in ("C", "K"):
            got = validate.copied(given, np.float64, order)
            assert got.dtype == np.float64
            assert np.array_equal(got, given)
            assert got.flags.c_contiguous or order == "K"
            assert got.flags.writeable


def test_pieces_of_a_ufunc_change_no_bit():
    x = np.linspace(-30.0, 30.0, 50_001)
    whole = special.log_ndtr(x)
    parts = np.concatenate([special.log_ndtr(part) for part in np.array_split(x, 7)])
    assert np.array_equal(whole, parts)
    assert np.array_equal(special.log_ndtr(x[::-1]), whole[::-1])
    table = special.logaddexp(x[:20_001, None], x[:3])
    assert np.array_equal(table[:, 1], special.logaddexp(x[:20_001], x[1]))


@pytest.mark.parametrize(("rows", "columns"), [(0, 2), (1, 1), (7, 1), (500, 2), (500, 3)])
def test_different_rows_are_those_of_numpy(rows, columns):
    given = np.random.default_rng(rows).integers(-3, 3, (rows, columns)) / 2.0
    distinct, which = distinct_rows(given)
    expected, place = np.unique(given, axis=0, return_inverse=True)
    assert np.array_equal(distinct, expected)
    assert np.array_equal(which, place.reshape(-1))


def test_no_comparison_of_numpy_turns_an_interruption_into_a_type_error():
    found = [file.name for file in Path(fastpriv.__file__).parent.rglob("*.py")
             if file.name != "values.py" and re.search(r"np\.unique\(.*axis=", file.read_text())]
    assert not found, "use fastpriv.base.values.distinct_rows"
