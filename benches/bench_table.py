"""All quantities and all posteriors of a written channel, beside what one would write in NumPy, torch and jax.

``python benches/bench_table.py [secrets] [releases]`` prints core nanoseconds a cell (CPU time of all threads), the
smallest of a few repetitions, and one line a quantity on a small channel beside dit and qif where they are installed.
"""

import importlib.util
import sys
import time

import numpy as np
import pytest

from fastpriv import Channel, notions

SMALL = (64, 64)


def setting(n, m, seed=5):
    rng = np.random.default_rng(seed)
    cells = rng.random((n, m), dtype=np.float64)
    cells += 0.05
    cells /= cells.sum(axis=1, keepdims=True)
    cells.setflags(write=False)
    return rng.dirichlet(np.ones(n)), cells


def with_numpy(prior, cells):
    """LDP, MBP, information and all posteriors."""
    q = prior @ cells
    ldp = np.log(cells.max(axis=0) / cells.min(axis=0)).max()
    ratio = np.log(cells / q)
    information = (prior[:, None] * cells * ratio).sum()
    posterior = prior[:, None] * cells / q
    return ldp, np.abs(ratio).max(), information, posterior


def with_torch(prior, cells):
    import torch

    p, x = torch.from_numpy(prior), torch.from_numpy(cells.view())
    q = p @ x
    ldp = torch.log(x.amax(0) / x.amin(0)).max()
    ratio = torch.log(x / q)
    return ldp.item(), ratio.abs().max().item(), (p[:, None] * x * ratio).sum().item(), (p[:, None] * x / q).numpy()


def with_jax(prior, cells):
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def found(p, x):
        q = p @ x
        ratio = jnp.log(x / q)
        ldp = jnp.log(x.max(0) / x.min(0)).max()
        return ldp, jnp.abs(ratio).max(), (p[:, None] * x * ratio).sum(), p[:, None] * x / q

    p, x = jnp.asarray(prior), jnp.asarray(cells)
    jax.block_until_ready(found(p, x))
    return lambda: jax.block_until_ready(found(p, x))


def with_fastpriv(prior, channel, posteriors, n_jobs=1):
    found = notions.summary(prior, channel, posteriors=posteriors, secret=0, n_jobs=n_jobs)
    return found.ldp_epsilon.value, found.xi.value, found.cd_lmip.value, posteriors


def check(got, want):
    np.testing.assert_allclose(got[:3], want[:3], rtol=1e-11)
    np.testing.assert_allclose(got[3][:50], np.asarray(want[3])[:50], rtol=1e-12)


def nanoseconds(call, cells, times=3):
    best = np.inf
    for _ in range(times):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best / cells * 1e9


@pytest.mark.parametrize("who", ["fastpriv", "numpy"])
def test_table(benchmark, who):
    prior, cells = setting(2000, 500)
    channel, out = Channel(cells), np.empty(cells.shape)
    check(with_fastpriv(prior, channel, out), with_numpy(prior, cells))
    benchmark.group = "all quantities and posteriors of a 2000 x 500 channel"
    benchmark(lambda: with_fastpriv(prior, channel, out) if who == "fastpriv" else with_numpy(prior, cells))


@pytest.mark.parametrize("who", ["fastpriv", "numpy"])
def test_hockey_sticks(benchmark, who):
    _, cells = setting(200, 100)
    channel, grid = Channel(cells), np.array([0.0, 0.1, 0.2, 0.5])

    def plain():
        return [max(np.maximum(row - np.exp(e) * cells, 0).sum(axis=1).max() for row in cells) for e in grid]

    np.testing.assert_allclose(notions.ldp_delta(None, channel, grid).value, plain(), rtol=1e-11)
    benchmark.group = "hockey-sticks of all pairs of 200 rows of 100, at four levels"
    benchmark(plain if who == "numpy" else lambda: notions.ldp_delta(None, channel, grid))


def small():
    """Milliseconds for single quantities of a 64 x 64 channel."""
    prior, cells = setting(*SMALL)
    calls = {
        "information": lambda: notions.cd_lmip(prior, cells), "vulnerability": lambda: notions.bayes_vulnerability(
            prior, cells), "summary": lambda: notions.summary(prior, cells), "numpy, four of them": lambda: with_numpy(
            prior, cells)}
    if importlib.util.find_spec("qif"):
        import qif

        qif.set_default_type("double")
        assert abs(qif.measure.bayes_vuln.posterior(prior, cells)
                   - notions.bayes_vulnerability(prior, cells).value) < 1e-12
        calls["qif, information"] = lambda: qif.measure.shannon.add_leakage(prior, cells)
        calls["qif, vulnerability"] = lambda: qif.measure.bayes_vuln.posterior(prior, cells)
    if importlib.util.find_spec("dit"):
        import dit

        law = dit.Distribution.from_ndarray(prior[:, None] * cells)
        calls["dit, information"] = lambda: dit.shannon.mutual_information(law, [0], [1])
    for name, call in calls.items():
        try:
            print(f"{name:24} {nanoseconds(call, 1e6, 5):10.4f} ms")
        except Exception as error:
            print(f"{name:24} {type(error).__name__}: {error}")


def main(n=20_000, m=1000):
    prior, cells = setting(n, m)
    size = n * m
    channel, out = Channel(cells), np.empty(cells.shape)
    out[:] = 0.0
    want = with_numpy(prior, cells)
    check(with_fastpriv(prior, channel, out), want)
    del want
    whole = {
        "fastpriv, posteriors and ABP": lambda: with_fastpriv(prior, channel, out),
        "fastpriv, posteriors": lambda: (notions.summary(prior, channel, posteriors=out)),
        "fastpriv, no posteriors": lambda: notions.summary(prior, channel),
        "fastpriv, LDP and MBP alone": lambda: notions.mbp(prior, channel),
        "numpy": lambda: with_numpy(prior, cells),
    }
    if importlib.util.find_spec("torch"):
        whole["torch"] = lambda: with_torch(prior, cells)
    if importlib.util.find_spec("jax"):
        whole["jax"] = with_jax(prior, cells)
    for name, call in whole.items():
        print(f"{name:30} {nanoseconds(call, size):8.2f} core-ns a cell")
    small()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
