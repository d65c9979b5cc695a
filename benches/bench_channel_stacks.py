"""Single calls of channels, stacks of channels, gufuncs, and curves of all pairs of rows, beside NumPy and qif."""

import numpy as np
import pytest

from fastpriv import Channel, GaussianMechanism, Pmf, channel_capacity, notions, special
from fastpriv.channels import ChannelStack

RNG = np.random.default_rng(5)
BINARY = np.array([[0.75, 0.25], [0.1, 0.9]])
SQUARE = RNG.dirichlet(np.ones(64), 64)
STACK = RNG.dirichlet(np.ones(8), (20_000, 8))
BINARIES = RNG.dirichlet(np.ones(2), (100_000, 2))
PRIOR = RNG.dirichlet(np.ones(8))
ROWS, EPSILON = RNG.dirichlet(np.ones(100), 1500), np.linspace(0.0, 2.0, 4)


def blahut_arimoto(rows, steps=300):
    p = np.full(rows.shape[0], 1 / rows.shape[0])
    for _ in range(steps):
        k = (rows * np.log(rows / (p @ rows))).sum(axis=1)
        p = p * np.exp(k)
        p /= p.sum()
    return p @ k


def information(prior, rows):
    q = prior @ rows
    return (prior[..., :, None] * rows * np.log(rows / q[..., None, :])).sum(axis=(-1, -2))


@pytest.mark.benchmark(group="capacity of a 2 x 2 channel, one call")
@pytest.mark.parametrize("way", ["fastpriv", "numpy", "qif"])
def test_binary_capacity(benchmark, way):
    channel, want = Channel(BINARY), float(special.bac_capacity(0.25, 0.1))
    if way == "fastpriv":
        assert benchmark(lambda: channel_capacity(channel).capacity.value) == pytest.approx(want, rel=1e-12)
    elif way == "numpy":
        assert benchmark(blahut_arimoto, BINARY) == pytest.approx(want, rel=1e-6)
    else:
        qif = pytest.importorskip("qif")
        found, _ = benchmark(qif.measure.shannon.capacity, BINARY)
        assert found == pytest.approx(want / np.log(2), rel=1e-3)


@pytest.mark.benchmark(group="building a channel, one call")
@pytest.mark.parametrize("size", [2, 64])
def test_building(benchmark, size):
    assert benchmark(Channel, BINARY if size == 2 else SQUARE).inputs == size


@pytest.mark.benchmark(group="one quantity of a 64 x 64 channel, one call")
@pytest.mark.parametrize("name", ["ldp_epsilon", "lip_epsilon", "cd_lmip", "bayes_vulnerability", "maximal_leakage"])
def test_one_quantity(benchmark, name):
    channel = Channel(SQUARE)
    assert benchmark(getattr(notions, name), None, channel).lower > 0


@pytest.mark.benchmark(group="one quantity of a 64 x 64 channel, one call")
@pytest.mark.parametrize("name", ["ldp_epsilon", "cd_lmip", "bayes_vulnerability"])
def test_one_quantity_numpy(benchmark, name):
    uniform = np.full(64, 1 / 64)
    lines = {
        "ldp_epsilon": lambda: np.log(SQUARE.max(axis=0) / SQUARE.min(axis=0)).max(),
        "cd_lmip": lambda: information(uniform, SQUARE),
        "bayes_vulnerability": lambda: (uniform[:, None] * SQUARE).max(axis=0).sum(),
    }
    want = getattr(notions, name)(None, Channel(SQUARE)).value
    assert benchmark(lines[name]) == pytest.approx(want, rel=1e-12)


@pytest.mark.benchmark(group="one quantity of a 64 x 64 channel, one call")
@pytest.mark.parametrize("name", ["bayes_vulnerability", "cd_lmip"])
def test_one_quantity_qif(benchmark, name):
    qif = pytest.importorskip("qif")
    uniform = np.full(64, 1 / 64)
    call = {"bayes_vulnerability": qif.measure.bayes_vuln.posterior, "cd_lmip": qif.measure.shannon.leakage}[name]
    want = getattr(notions, name)(None, Channel(SQUARE)).value
    assert benchmark(call, uniform, SQUARE) == pytest.approx(want if name[0] == "b" else want / np.log(2), rel=1e-9)


@pytest.mark.benchmark(group="mutual information of 20,000 channels of 8 x 8")
@pytest.mark.parametrize("way", ["stack", "stack, 2 threads", "building the stack", "gufunc", "numpy", "loop of 200"])
def test_information_of_a_stack(benchmark, way):
    stack = ChannelStack(STACK)
    want = information(PRIOR, STACK)
    calls = {
        "stack": lambda: notions.cd_lmip(PRIOR, stack).value,
        "stack, 2 threads": lambda: notions.cd_lmip(PRIOR, stack, n_jobs=2).value,
        "building the stack": lambda: notions.cd_lmip(PRIOR, ChannelStack(STACK)[:1]).value,
        "gufunc": lambda: special.channel_mutual_information(PRIOR, STACK)[0],
        "numpy": lambda: information(PRIOR, STACK),
        "loop of 200": lambda: np.array([notions.cd_lmip(PRIOR, Channel(rows)).value for rows in STACK[:200]]),
    }
    found = benchmark(calls[way])
    np.testing.assert_allclose(found, want[: len(found)], rtol=1e-10)


@pytest.mark.benchmark(group="capacity of 100,000 channels of 2 x 2")
@pytest.mark.parametrize("way", ["stack", "gufunc"])
def test_capacity_of_a_stack(benchmark, way):
    stack = ChannelStack(BINARIES)
    by_stack = way == "stack"
    found = benchmark(channel_capacity if by_stack else special.channel_capacity, stack if by_stack else BINARIES)
    want = special.bac_capacity(BINARIES[:, 0, 1], BINARIES[:, 1, 0])
    np.testing.assert_allclose(found.capacity.value if by_stack else found[0], want, rtol=1e-9, atol=1e-15)


@pytest.mark.benchmark(group="LDP and LIP curves of 20,000 channels of 8 x 8, 3 levels")
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("curve", ["ldp_delta", "lip_delta"])
def test_curves_of_a_stack(benchmark, curve, n_jobs):
    stack = ChannelStack(STACK)
    found = benchmark.pedantic(getattr(notions, curve), (None, stack, [0.1, 0.5, 1.0]), {"n_jobs": n_jobs}, rounds=3)
    assert found.value[7].tolist() == getattr(notions, curve)(None, Channel(STACK[7]), [0.1, 0.5, 1.0]).value.tolist()


@pytest.mark.benchmark(group="LIP curve of 100 points, 5,000 levels")
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("settings", ["one sigma", "many sigmas"])
def test_lip_of_gaussian_noise(benchmark, settings, n_jobs):
    rng = np.random.default_rng(0)
    prior = Pmf(rng.normal(size=100), rng.dirichlet(np.ones(100)))
    one = settings == "one sigma"
    mechanism = GaussianMechanism(1.0 if one else np.geomspace(0.1, 10, 2500))
    epsilon = np.linspace(0.01, 5, 5000) if one else [0.5, 1.0]
    found = benchmark.pedantic(notions.lip_delta, (prior, mechanism, epsilon), {"n_jobs": n_jobs}, rounds=3)
    assert (found.width <= 1e-12).all()


@pytest.mark.benchmark(group="LDP curve of 1,500 rows of 100, 4 levels")
@pytest.mark.parametrize("way", ["screened", "all pairs", "numpy, 1 level, 200 rows"])
def test_pairs_of_rows(benchmark, way, monkeypatch):
    from fastpriv.notions.discrete import delta_curves

    def by_hand():
        factor = np.exp(EPSILON[1])
        return max(np.maximum(ROWS[:200] - factor * row, 0.0).sum(axis=1).max() for row in ROWS[:200])

    channel, few = Channel(ROWS), Channel(ROWS[:200])
    if way.startswith("numpy"):
        want = notions.ldp_delta(None, few, EPSILON[1]).value
        assert benchmark.pedantic(by_hand, rounds=3) == pytest.approx(want, rel=1e-12)
        return
    if way == "all pairs":
        monkeypatch.setattr(delta_curves, "_SCREENED_WORK", float("inf"))
    found = benchmark.pedantic(notions.ldp_delta, (None, channel, EPSILON), rounds=3)
    assert (found.width <= 1e-13).all()
