"""What a grid of epsilons has to do with an epsilon: nothing, whatever its order, its length, the threads; against
mpmath along the way, near extrema of the log-ratio, where crossings are hardest to find."""

import mpmath as mp
import numpy as np
import pytest

from fastpriv import GaussianMixture, hockey_stick_divergence
from fastpriv.divergences import log_hockey_stick_divergence
from fastpriv.kernels import _hockey_stick_curves

WIDTH = 5e-13


def random_pair(seed, p_size=8, q_size=8):
    rng = np.random.default_rng(seed)
    pair = []
    for size in (p_size, q_size):
        pair += [rng.dirichlet(np.ones(size)), rng.normal(0, 1, size), rng.uniform(0.5, 2, size)]
    return pair


def pairs():
    one = np.ones(1)
    wide = random_pair(5)
    near = [*wide[:3], wide[0], wide[1] + 1e-6, wide[2] * (1 + 1e-7)]
    return {
        "8 + 8": random_pair(0), "8 + 3": random_pair(1, 8, 3), "40 + 25": random_pair(2, 40, 25),
        "nearly equal": near, "one sigma": [*wide[:2], np.ones(8), *wide[3:5], np.ones(8)],
        "one each": [one, one * 0.3, one * 1.5, one, one * 0.0, one],
        "needles": [one / 2 * np.ones(2), np.array([-3.0, 3.0]), 1e-3 * np.ones(2), np.array([0.25, 0.75]),
                    np.array([-3.0, 3.0]), np.array([1.1e-3, 1e3])],
    }


PAIRS = pairs()
GRID = np.concatenate([np.linspace(0, 3, 600), 10.0 ** np.linspace(-9, 2.5, 60), [0.0, np.inf, 1e13]])


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("logs", [False, True])
def test_a_row_does_not_depend_on_the_others(name, logs):
    pair = PAIRS[name]
    rows, _ = _hockey_stick_curves.pair_curve(*pair, GRID, WIDTH, logs)
    order = np.random.default_rng(0).permutation(GRID.size)
    assert _hockey_stick_curves.pair_curve(*pair, GRID[order], WIDTH, logs)[0].tobytes() == rows[order].tobytes()
    for k in (0, 7, 333, 655, GRID.size - 2):
        alone = _hockey_stick_curves.pair_curve(*pair, GRID[k : k + 1], WIDTH, logs)[0]
        assert alone.tobytes() == rows[k : k + 1].tobytes(), GRID[k]
    if name == "one each":  # in closed form, without an analysis
        return
    shared = _hockey_stick_curves.PairAnalysis(*pair)
    parts = [shared.curve(GRID[part], WIDTH, logs)[0] for part in (slice(100, None), slice(0, 100))]
    assert parts[1].tobytes() == rows[:100].tobytes()
    assert parts[0].tobytes() == rows[100:].tobytes()


@pytest.mark.parametrize("function", [hockey_stick_divergence, log_hockey_stick_divergence])
@pytest.mark.parametrize("name", ["8 + 8", "40 + 25", "nearly equal"])
def test_threads_give_the_same_bits(function, name):
    w, m, s, v, n, t = PAIRS[name]
    p, q = GaussianMixture(w, m, s), GaussianMixture(v, n, t)
    grid = np.linspace(0, 2, 1700)
    first = function(p, q, grid, n_jobs=1)
    for n_jobs in (2, 3, -1):
        other = function(p, q, grid, n_jobs=n_jobs)
        for field in ("value", "lower", "upper"):
            assert getattr(other, field).tobytes() == getattr(first, field).tobytes()
        assert other.cost == first.cost
    few = function(p, q, grid[::17])
    assert few.upper.tobytes() == first.upper[::17].tobytes()


def log_ratio(pair, x):
    w, m, s, v, n, t = pair
    density = []
    for side in ((w, m, s), (v, n, t)):
        terms = zip(*(field.tolist() for field in side), strict=True)
        density.append(mp.fsum(mp.mpf(a) / c * mp.exp(-(((x - b) / c) ** 2) / 2) for a, b, c in terms))
    return mp.log(density[0] / density[1])


def divergence(pair, epsilon, extrema):
    """H by the crossings between points of a grid that is finer at extrema, and normal distributions, in 60 digits."""
    w, m, s, v, n, t = (x.tolist() for x in pair)
    fine = [y + mp.mpf(k) / 5000 for y in extrema for k in range(-150, 151)]
    x = sorted({*fine, *(mp.mpf(k) / 20 for k in range(-600, 601))})
    above = [log_ratio(pair, y) > epsilon for y in x]
    ends = [mp.ninf] if above[0] else []
    for k in np.flatnonzero(np.diff(above)).tolist():
        ends.append(mp.findroot(lambda y: log_ratio(pair, y) - epsilon, (x[k], x[k + 1]), solver="anderson", tol=1e-80))
    ends += [mp.inf] if above[-1] else []
    total = mp.mpf(0)
    for a, b in zip(ends[::2], ends[1::2], strict=True):
        for sign, side in ((1, (w, m, s)), (-mp.exp(epsilon), (v, n, t))):
            for weight, mean, sigma in zip(*side, strict=True):
                z = [(y - mp.mpf(mean)) / mp.mpf(sigma) if mp.isfinite(y) else y for y in (a, b)]
                total += sign * mp.mpf(weight) * (mp.ncdf(z[1]) - mp.ncdf(z[0]))
    return total


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_bounds_near_an_extremum_contain_the_truth(seed):
    pair = random_pair(seed, 3, 3)
    with mp.workdps(60):
        x = np.linspace(-4, 4, 400)
        ratio = np.array([float(log_ratio(pair, mp.mpf(y))) for y in x.tolist()])
        tops = np.flatnonzero((ratio[1:-1] > ratio[:-2]) & (ratio[1:-1] > ratio[2:])) + 1
        middle = float(ratio[tops[0]]) if tops.size else 0.3
        for epsilon in [abs(middle) * (1 + shift) for shift in (-1e-2, -1e-4, 1e-3, 0.3)]:
            _, lower, upper = _hockey_stick_curves.pair_curve(*pair, np.array([epsilon]), WIDTH, False)[0][0, :3]
            want = divergence(pair, mp.mpf(epsilon), x[tops].tolist())  # of the weights as they are
            assert lower <= want <= upper, (epsilon, lower, want, upper)
            assert upper - lower <= 1e-12 * upper


def test_needles_of_very_different_widths():
    pair = [
        [0.6666666666666666, 0.3333333333333333], [-4.64810731777098e299, -7.401440604649329e298],
        [2.948612701871556e291, 9.290918206192457e298], [0.4, 0.2, 0.4],
        [-1.2169461896884914e299, 3.9188839186368843e298, 4.339777560170536e299],
        [1.361002641987288e294, 6.687237653965316e281, 6.365072057667237e286],
    ]
    rows = _hockey_stick_curves.pair_curve(*map(np.array, pair), np.array([0.0, 0.5]), WIDTH, False)[0]
    truth = ["0.99998297379963257648", "0.99998263417798115678"]  # bisection around each needle
    with mp.workdps(40):
        for (_, lower, upper), want in zip(rows[:, :3].tolist(), truth, strict=True):
            assert lower <= mp.mpf(want) <= upper, (lower, want, upper)
            assert upper - lower <= 1e-12
