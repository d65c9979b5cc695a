"""The gufuncs of pairs of mixtures: the bounds of the objects, invalid rows, layouts, threads, Ctrl-C."""

import subprocess
import sys
import textwrap
from decimal import Decimal

import numpy as np
import pytest

from fastpriv import GaussianMixture, hockey_stick_divergence, special
from fastpriv.divergences import log_hockey_stick_divergence
from fastpriv.kernels import _hockey_stick_curves
from kernels.lock import lets_others_run
from kernels.variants import check_same_lines, each_wider_variant
from oracles.mixture_pairs import pairs
from oracles.tables import rows
from oracles.truth import bounds

LINEAR, LOGARITHMIC = special.mixture_hockey_stick, special.mixture_log_hockey_stick
NAMES = ("weights", "means", "sigmas")


def arrays(pair):
    return [getattr(side, name) for side in (pair.p, pair.q) for name in NAMES]


@pytest.mark.few(1)
@pytest.mark.parametrize("direction", ["PQ", "QP"])
def test_bounds_contain_the_truth_of_the_table(direction):
    truth = {}
    for name, way, epsilon, value, log in rows("hockey_stick"):
        if way == direction:
            truth.setdefault(name, []).append((float.fromhex(epsilon), value, log))
    problems = []
    for pair in pairs():
        given = arrays(pair)
        given = given if direction == "PQ" else given[3:] + given[:3]
        epsilon = np.array([row[0] for row in truth[pair.name]])
        linear, logarithm = np.array(LINEAR(*given, epsilon)).T, np.array(LOGARITHMIC(*given, epsilon)).T
        for got, got_log, (e, want, want_log) in zip(linear, logarithm, truth[pair.name], strict=True):
            low, high = bounds(want_log)
            good = Decimal(float(got_log[1])) <= high and Decimal(float(got_log[2])) >= low
            if want != "tiny":
                low, high = bounds(want)
                good = good and Decimal(float(got[1])) <= high and Decimal(float(got[2])) >= low
            if not good or not got[1] <= got[0] <= got[2]:
                problems.append(f"{pair.name} epsilon={e!r}: {got}, {got_log}, true {want}, {want_log}")
    assert not problems, "\n".join(problems[:8])


def test_the_bounds_are_those_of_the_objects():
    """Bit for bit, unless closed bounds were needed or weights have a gap."""
    rng = np.random.default_rng(4)
    epsilon = np.array([0.0, 0.01, 0.5, 3.0])
    for k, j in ((2, 1), (1, 2), (3, 4), (1, 1)):
        w, v = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(j))
        m, s, n, t = rng.normal(size=k), rng.uniform(0.5, 1.5, k), rng.normal(size=j), rng.uniform(0.5, 1.5, j)
        p, q = GaussianMixture(w, m, s), GaussianMixture(v, n, t)
        for function, of_objects in ((LINEAR, hockey_stick_divergence), (LOGARITHMIC, log_hockey_stick_divergence)):
            want = of_objects(p, q, epsilon)
            got = function(w, m, s, v, n, t, epsilon)
            for mine, theirs in zip(got, (want.value, want.lower, want.upper), strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-14 if p.mass_gap or q.mass_gap else 0)


def test_gaps_of_the_weights_widen_the_bounds():
    sides = ([0.7 + 4e-10, 0.3], [0.0, 1.0], [1.0, 1.0], [1 - 3e-10], [0.0], [1.0])
    p, q = GaussianMixture(*sides[:3]), GaussianMixture(*sides[3:])
    epsilon = [0.0, 0.5, 100.0]
    for function, of_objects in ((LINEAR, hockey_stick_divergence), (LOGARITHMIC, log_hockey_stick_divergence)):
        want = of_objects(p, q, epsilon)
        _, lower, upper = function(*sides, epsilon)
        np.testing.assert_allclose(lower, want.lower, rtol=3e-14)
        np.testing.assert_allclose(upper, want.upper, rtol=3e-14)
        assert (upper[:2] - lower[:2] > 1e-11).all()


INVALID = {
    "negative weight": ([1.1, -0.1], [0, 1], [1, 1]), "NaN weight": ([np.nan, 1], [0, 1], [1, 1]),
    "sum too small": ([0.5, 0.5 - 2e-9], [0, 1], [1, 1]), "sum too large": ([0.5, 0.5 + 2e-9], [0, 1], [1, 1]),
    "no weight": ([0, 0], [0, 1], [1, 1]), "infinite mean": ([0.5, 0.5], [0, np.inf], [1, 1]),
    "NaN mean": ([0.5, 0.5], [0, np.nan], [1, 1]), "mean too large": ([0.5, 0.5], [0, 1e301], [1, 1]),
    "sigma zero": ([0.5, 0.5], [0, 1], [1, 0]), "negative sigma": ([0.5, 0.5], [0, 1], [1, -1]),
    "sigma too small": ([0.5, 0.5], [0, 1], [1, 1e-301]), "infinite sigma": ([0.5, 0.5], [0, 1], [1, np.inf]),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_rows_are_nan_and_others_are_not(name):
    good = ([0.5, 0.5], [0.0, 1.0], [1.0, 1.0])
    stacked = [np.array([a, b, a], float) for a, b in zip(good, INVALID[name], strict=True)]
    for function in (LINEAR, LOGARITHMIC):
        for given in ((*stacked, *good), (*good, *stacked)):
            found = np.array(function(*given, [0.0, 0.1]))
            assert np.isnan(found[:, 1]).all()
            np.testing.assert_array_equal(found[:, 0], np.array(function(*good, *good, [0.0, 0.1])))
            np.testing.assert_array_equal(found[:, 2], found[:, 0])


def test_invalid_epsilons_are_nan_and_others_are_not():
    given = ([0.5, 0.5], [0.0, 1.0], [1.0, 1.0], [1.0], [0.0], [1.0])
    for function in (LINEAR, LOGARITHMIC):
        found = np.array(function(*given, [0.1, -1e-300, np.nan, np.inf, 0.1, -np.inf]))
        assert np.isnan(found[:, [1, 2, 5]]).all()
        assert (found[:, 3] == (0.0 if function is LINEAR else -np.inf)).all()
        np.testing.assert_array_equal(found[:, [0, 4]], np.array(function(*given, [0.1, 0.1])))
        assert function(*given, [])[0].shape == (0,)
        assert np.isnan(function([], [], [], [1.0], [0.0], [1.0], [0.1])).all()


def test_layouts_padding_and_broadcasting():
    rng = np.random.default_rng(5)
    w = rng.dirichlet(np.ones(3), 6)
    m, s = rng.normal(size=(6, 3)), rng.uniform(0.5, 2, (6, 3))
    v, n, t = np.ones((6, 1)), rng.normal(size=(6, 1)), np.ones((6, 1))
    epsilon = rng.random((6, 5))
    want = np.array(LINEAR(w, m, s, v, n, t, epsilon))
    for i in range(6):
        np.testing.assert_array_equal(LINEAR(w[i], m[i], s[i], v[i], n[i], t[i], epsilon[i]), want[:, i])
    strided = [np.asfortranarray(x) for x in (w, m, s, v, n, t, epsilon)]
    np.testing.assert_array_equal(LINEAR(*strided), want)
    backward = np.array(LINEAR(*(x[::-1] for x in (w, m, s, v, n, t, epsilon))))
    np.testing.assert_array_equal(backward[:, ::-1], want)
    padded = [np.concatenate([x, np.full((6, 2), fill)], axis=1) for x, fill in ((w, 0.0), (m, 7.0), (s, 1.0))]
    np.testing.assert_array_equal(LINEAR(*padded, v, n, t, epsilon), want)
    out = tuple(np.full((6, 5, 2), -7.0)[:, :, 0] for _ in range(3))
    assert LINEAR(w, m, s, v, n, t, epsilon, out=out)[2] is out[2]
    np.testing.assert_array_equal(np.array(out), want)
    place = epsilon.copy()
    LINEAR(w, m, s, v, n, t, place, out=(None, None, place))
    np.testing.assert_array_equal(place, want[2])
    assert LINEAR(w[:, None], m[:, None], s[:, None], v[0], n[0], t[0], epsilon)[0].shape == (6, 6, 5)
    with pytest.raises(ValueError, match="mismatch in its core dimension"):
        LINEAR(w, m[:, :2], s, v, n, t, epsilon)


@pytest.mark.slow
def test_the_interpreter_lock_is_released():
    rng = np.random.default_rng(6)
    given = [np.full(40, 1 / 40), rng.normal(size=40), rng.uniform(0.5, 1, 40), [1.0], [0.0], [1.0]]
    assert lets_others_run(lambda: LINEAR(*given, rng.random((2000, 1))), 10_000)


@pytest.mark.slow
def test_ctrl_c_is_heard_after_the_call():
    program = """
        import signal, threading, time, os
        import numpy as np
        from fastpriv import special
        rng = np.random.default_rng(6)
        w, m, s = np.full(30, 1 / 30), rng.normal(size=(400, 30)), rng.uniform(0.5, 1, (400, 30))
        special.mixture_hockey_stick(w, m[0], s[0], [1.0], [0.0], [1.0], [0.1])
        threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        found = None
        try:
            found = special.mixture_hockey_stick(w, m, s, [1.0], [0.0], [1.0], rng.random((400, 20)))
            time.sleep(5)
        except KeyboardInterrupt:
            print("heard", found is None or np.isfinite(found).all())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "heard True"


def test_the_width_that_is_asked_for_is_that_of_the_objects():
    """A pair whose bracket in doubles is too wide is refined here as there."""
    p, q = ([0.5, 0.5], [0.0, 1e-9], [1.0, 1.0 + 1e-9]), ([1.0], [0.0], [1.0])
    want = _hockey_stick_curves.pair_curve(*map(np.array, (*p, *q)), np.array([1e-11]), 5e-13, False)[0]
    np.testing.assert_array_equal(np.array(LINEAR(*p, *q, [1e-11]))[:, 0], want[0, :3])


PROGRAM = """
import hashlib
import numpy as np
from fastpriv import special
rng = np.random.default_rng(3)
w, v = rng.integers(1, 9, (60, 3)) / 64.0, rng.integers(1, 9, (60, 2)) / 64.0
w[:, 0] = 1 - w[:, 1:].sum(axis=1)
v[:, 0] = 1 - v[:, 1]
m, n = rng.normal(size=(60, 3)), rng.normal(size=(60, 2))
for s, t in ((np.ones((60, 3)), np.ones((60, 2))), (rng.uniform(0.5, 2, (60, 3)), rng.uniform(0.5, 2, (60, 2)))):
    for a, b in ((3, 2), (2, 1), (1, 2), (1, 1), (3, 1), (1, 2)):
        for name in ("mixture_hockey_stick", "mixture_log_hockey_stick"):
            first = np.where(np.arange(3) < a, w, 0.0), m, s
            second = np.where(np.arange(2) < b, v, 0.0), n, t
            first[0][:, 0] = 1 - first[0][:, 1:].sum(axis=1)
            second[0][:, 0] = 1 - second[0][:, 1:].sum(axis=1)
            found = np.array(getattr(special, name)(*first, *second, rng.exponential(1.0, (60, 4))))
            assert np.isfinite(found[2]).mean() > 0.5
            print(name, a, b, hashlib.sha256(found.tobytes()).hexdigest())
"""


@each_wider_variant
@pytest.mark.slow
def test_every_instruction_set_gives_the_same_bits(variant):
    check_same_lines(PROGRAM, 24, variant)
