"""Long public calls, and how long Ctrl-C takes in each: ``python tests/contracts/long_calls.py [word of a name]``.

A call runs in a process of its own, which is sent SIGINT after some seconds. What is measured is the time, of the clock
and of the processor, until KeyboardInterrupt reaches the line that made the call.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

_LAWS = """
def law(k, seed, spread=None, scale=1.0):
    r = np.random.default_rng(seed)
    w = r.uniform(0.5, 1.5, k)
    means = r.normal(size=k) * (k**0.5 if spread is None else spread)
    return GaussianMixture(w / w.sum(), means, r.uniform(0.5, 1.5, k) * scale)
"""
_ROWS = """
def rows(n, m, power=1):
    a = np.random.default_rng(0).random((n, m)) ** power
    a /= a.sum(axis=1, keepdims=True)
    return a
"""
_PAIR = _LAWS + "p, q = law(20000, 1), law(20000, 2)"
_NEAR = _LAWS + "p = law(60000, 1); q = GaussianMixture(p.weights, p.means + 1e-7, p.sigmas)"
_GRID = "a = np.linspace(1e-9, 1, 10**8)"

#: name -> set-up and call; each of them takes some seconds at least
CALLS = {
    "hockey_stick_divergence, 20,000 components": (_PAIR, "hockey_stick_divergence(p, q, [0.0, 0.1, 1.0])"),
    "log_hockey_stick_divergence, one sigma": (
        _LAWS + "p, q = (GaussianMixture(x.weights, x.means, 1.0) for x in (law(20000, 1), law(20000, 2)))",
        "log_hockey_stick_divergence(p, q, [0.5, 3.0])",
    ),
    "total_variation, 20,000 components": (_PAIR, "total_variation(p, q)"),
    "kl_divergence, near laws": (_NEAR, "kl_divergence(p, q, both=True)"),
    "jensen_shannon, near laws": (_NEAR, "jensen_shannon(p, q)"),
    "renyi_divergence, near laws": (_NEAR, "renyi_divergence(p, q, np.linspace(1.1, 3.0, 40))"),
    "entropy, 1e6 components": (_LAWS + "p = law(10**6, 1)", "entropy(p)"),
    "mutual_information, 1e6 atoms": (
        "prior = Pmf(np.sort(np.random.default_rng(0).normal(size=10**6)) * 1000, np.full(10**6, 1e-6))",
        "mutual_information(prior, 1.0)",
    ),
    "log_lip_delta, 1e6 atoms": (
        "prior = Pmf(np.sort(np.random.default_rng(0).normal(size=10**6)) * 1000, np.full(10**6, 1e-6))",
        "notions.log_lip_delta(prior, GaussianMechanism(300.0), np.linspace(0.1, 3, 3000))",
    ),
    "bac_capacity, 1e8 cells": ("a = np.linspace(0, 1, 10**4)", "bac_capacity(a[:, None], a)"),
    "special.bac_capacity, 1e8": (_GRID, "special.bac_capacity(a, 0.3)"),
    "special.gaussian_epsilon, 1e8": (_GRID, "special.gaussian_epsilon(a, 1e-5)"),
    "GaussianMechanism.epsilon, 1e8": (_GRID + "; m = GaussianMechanism(1.0, 1.0)", "m.epsilon(a)"),
    "dp_delta_from_ci_lmip, 5e7": (_GRID, "conversions.dp_delta_from_ci_lmip(a[::2], 1.0)"),
    "lip_delta_from_cd_lmip, 5e7": (_GRID, "conversions.lip_delta_from_cd_lmip(a[::2], 1.0, 0.5)"),
    "dp_epsilon_from_ci_lmip, 1e7": (_GRID, "conversions.dp_epsilon_from_ci_lmip(a[::10], 0.1)"),
    "sigma_from_ci_lmip, 2e5 targets": ("", "calibration.sigma_from_ci_lmip(np.linspace(0.1, 1.5, 200000), 3, 1.0)"),
    "sigma_from_cd_lmip, 200 targets": (
        "prior = Pmf(np.arange(1000.0), np.full(1000, 0.001))",
        "calibration.sigma_from_cd_lmip(np.linspace(0.1, 1.5, 200), prior)",
    ),
    "awgn_capacity, 20,000 radii": ("", "awgn_capacity(3, np.linspace(0.1, 20, 20000), sigma=1.0)"),
    "channel_capacity, 4,000 x 4,000": (_ROWS + "c = rows(4000, 4000, 4)", "channel_capacity(c, rtol=1e-13)"),
    "channel_capacity, 100,000 x 400": (_ROWS + "c = rows(100000, 400, 4)", "channel_capacity(c, rtol=1e-13)"),
    "channel_capacity, 3e6 small ones": (
        _ROWS + "c = rows(12 * 10**6, 4).reshape(-1, 4, 4)",
        "[channel_capacity(c) for _ in range(3)]",
    ),
    "Channel, 20,000 x 20,000": (_ROWS + "c = rows(20000, 20000)", "[Channel(c) for _ in range(20)]"),
    "ldp_delta, 6,000 x 3,000": (
        _ROWS + "c = Channel(rows(6000, 3000))",
        "notions.ldp_delta(None, c, [0.1, 0.2, 0.5])",
    ),
    "lip_delta, 20,000 x 5,000": (
        _ROWS + "c = Channel(rows(20000, 5000))",
        "notions.lip_delta(None, c, np.linspace(0.001, 0.5, 300))",
    ),
    "abp, 5,000 x 5,000": (_ROWS + "c = Channel(rows(5000, 5000))", "notions.abp(None, c)"),
    "posterior, 3e8 secrets": (
        "a = np.random.default_rng(0).standard_normal(3 * 10**8, dtype=np.float32)",
        "[posterior(a) for _ in range(9)]",
    ),
    "posterior of subsets": (
        "r = np.random.default_rng(0); a = r.normal(size=(3000, 3000)); s = SubsetLikelihood(a[0], a + a.T, 3)",
        "posterior(s)",
    ),
    "posterior of tuples": (
        "r = np.random.default_rng(0); f = ProductLikelihood([np.log(r.dirichlet(np.ones(50))) for _ in range(3000)])",
        "posterior(f)",
    ),
    **{
        f"audit_scores, 1e6, {selection}": (
            "from fastpriv import auditing; r = np.random.default_rng(0); m = r.random(10**6) < 0.5; "
            "s = r.normal(size=10**6) + m",
            f"[auditing.audit_scores(s, m, selection='{selection}') for _ in range(99)]",
        )
        for selection in ("simultaneous", "split", "as_published")
    },
    "read_channel, 4e6 cells": (
        _ROWS + "import os, tempfile; f = os.path.join(tempfile.mkdtemp(), 'c.csv'); "
        "write_channel(f, Channel(rows(2000, 2000)))",
        "[read_channel(f) for _ in range(9)]",
    ),
    "assess, 3,000 values": (
        "a = np.random.default_rng(0).normal(size=3000)",
        "[assess(a, sigma=np.geomspace(0.01, 10, 40)) for _ in range(9)]",
    ),
}

_CHILD = """
import json, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
from fastpriv import *
from fastpriv.capacity import *
from fastpriv.channels import *
from fastpriv.composition import *
from fastpriv.distributions import *
from fastpriv.divergences import *
from fastpriv.mechanisms import *
from fastpriv.posteriors import *
from fastpriv import calibration, notions, special
names = dict(globals())
exec(sys.argv[1], names)
call = compile(sys.argv[2], "call", "eval")
print("ready", flush=True)
ended = "finished"
try:
    eval(call, names)
except KeyboardInterrupt:
    ended = "interrupted"
print(json.dumps([ended, time.monotonic(), time.process_time()]), flush=True)
"""


def measured(setup, call, after):
    """How the call ended, and the seconds by the clock and of the processor between SIGINT and that."""
    with subprocess.Popen(
        [sys.executable, "-c", _CHILD, setup, call], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n", child.stderr.read()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(after)
        sent, spent = time.monotonic(), _spent(child.pid)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=300)
        assert out, err
        ended, at, cpu = json.loads(out.splitlines()[-1])
        return ended, at - sent, cpu - spent


def _spent(pid):
    """Seconds of processor time, user and system, of a process on Linux; 0 of one that is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    for title, parts in CALLS.items():
        if all(word in title for word in sys.argv[1:]):
            found = [measured(*parts, after) for after in (1.5, 3.0, 4.5)]
            print(f"{title:45s} {'/'.join(x[0] for x in found)}", end=" ")
            print(f"clock {max(x[1] for x in found):.2f} s, processor {max(x[2] for x in found):.2f} s", flush=True)
