"""Hockey-stick curves in closed form hold the truth and are close: one Gaussian against another of any sigma, and
against mixtures of its sigma to one side of it. Two points against two points: kernels/test_two_points.py.
"""

from math import comb

import numpy as np
import pytest
from flint import arb, ctx

from fastpriv import GaussianMixture, hockey_stick_divergence
from fastpriv.divergences import log_hockey_stick_divergence
from fastpriv.kernels import _hockey_stick_curves
from oracles.mixture import log_hockey_stick
from sizes import few_or_all

# How t is made from s: of the same order, equal but for some digits, far apart, and close.
RATIOS = {
    "ordinary": lambda rng: np.exp(rng.normal()),
    "almost one": lambda rng: 1 + 10 ** rng.uniform(-15, -2) * rng.choice([-1, 1]),
    "far apart": lambda rng: 10 ** rng.uniform(-8, 8),
    "close": lambda rng: np.exp(0.1 * rng.normal()),
}


def holds(row, truth, cost):
    """Whether the six numbers hold the truth, a ball of log H, and are as close as they have to be in closed form."""
    if truth >= 0:  # of a measure of more than 1
        return True
    ctx.prec = 200
    if truth == arb.neg_inf():
        return row[1] == 0 and row[4] == -np.inf
    size = truth.exp()
    good = not (arb(row[1]) > size or size > arb(row[2]) or arb(row[4]) > truth or truth > arb(row[5]))
    return good and (cost[2] > 0 or row[5] - row[4] <= 5e-13 * max(1.0, abs(row[3])))


@pytest.mark.slow
@few_or_all("count", 150, 3000)
@pytest.mark.parametrize("name", RATIOS)
def test_single_gaussians_contain_the_truth(name, count):
    rng = np.random.default_rng([11, len(name)])
    problems, closed = [], 0
    for _ in range(count):
        s = 10 ** rng.uniform(-6, 6)
        t = s * RATIOS[name](rng)
        m = rng.normal() * 10 ** rng.uniform(-2, 2)
        n = m + max(s, t) * 10 ** rng.uniform(-6, 1.5) * rng.choice([-1, 0, 1], p=[0.45, 0.1, 0.45])
        epsilon = rng.choice([0.0, 1e-12, 1e-6, 1e-3, 0.1, 1.0, 3.0, 10.0, 50.0, 300.0])
        w = 1 + rng.choice([0.0, 1e-10, -1e-10], p=[0.8, 0.1, 0.1])
        sides = [np.array([x], float) for x in (w, m, s, 1.0, n, t)]
        rows, cost = _hockey_stick_curves.pair_curve(*sides, np.array([epsilon]), 5e-13, True)
        closed += cost[2] == 0
        truth = log_hockey_stick(([w], [m], [s]), ([1.0], [n], [t]), float(epsilon))
        if not holds(rows[0], truth, cost):
            problems.append(f"N({m}, {s}) N({n}, {t}) {w=} {epsilon=}: {rows[0]}, true log {truth.str(20)}")
    assert not problems, "\n".join(problems[:8])
    assert closed > (0.5 if name == "almost one" else 0.8) * count


def group(rng, kind, n):
    """Weights and means of a mixture, the means to one side of 0."""
    if kind == "binomial":
        rate = 10 ** rng.uniform(-4, 0)
        return [comb(n, i) * rate**i * (1 - rate) ** (n - i) for i in range(n + 1)], np.arange(n + 1.0)
    w, m = rng.dirichlet(np.full(n, 10 ** rng.uniform(-1, 1))), np.abs(rng.normal(size=n)) * 10 ** rng.uniform(-2, 2)
    m[0] *= kind == "with zero"
    return np.maximum(w, 1e-40), m * rng.choice([-1, 1])


@pytest.mark.slow
@few_or_all("count", 100, 3000)
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("kind", ["binomial", "with zero", "without zero"])
def test_mixtures_to_one_side_contain_the_truth(kind, swapped, count):
    rng = np.random.default_rng([12, len(kind), swapped])
    problems, closed = [], 0
    for _ in range(count):
        w, m = group(rng, kind, rng.integers(2, 12))
        s, offset = 10 ** rng.uniform(-1.5, 2), rng.choice([0.0, rng.normal() * 10])
        epsilon = rng.choice([0.0, 1e-12, 1e-6, 1e-3, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 50.0])
        p = [np.array(w, float), np.array(m + offset, float), np.full(len(m), s)]
        q = [np.array([x], float) for x in (1.0, offset, s)]
        p, q = (q, p) if swapped else (p, q)
        logs = bool(rng.integers(2))
        rows, cost = _hockey_stick_curves.pair_curve(*p, *q, np.array([epsilon]), 5e-13, logs)
        closed += cost[2] == 0
        truth = log_hockey_stick([list(x) for x in p], [list(x) for x in q], float(epsilon))
        if not holds(rows[0], truth, cost):
            problems.append(f"{p} {q} {epsilon=}: {rows[0]}, true log {truth.str(20)}")
    assert not problems, "\n".join(problems[:8])
    assert closed > 0.4 * count


def test_groups_agree_with_the_monotone_pieces():
    """A component of no account on the other side takes the pair to the general path."""
    epsilon = np.linspace(0.0, 1.0, 30)
    w = np.array([comb(6, i) * 0.2**i * 0.8 ** (6 - i) for i in range(7)])
    for sigma in (0.7, 5.0):
        group_of_six, single = GaussianMixture(w, np.arange(7.0), sigma), GaussianMixture.single(0.0, sigma)
        halves = GaussianMixture([0.5, 0.5], [0.0, 0.0], sigma)
        for first, second, general in (
            (group_of_six, single, (group_of_six, halves)), (single, group_of_six, (halves, group_of_six))
        ):
            closed, pieces = hockey_stick_divergence(first, second, epsilon), hockey_stick_divergence(*general, epsilon)
            assert closed.method == "closed form"
            assert pieces.method.startswith("monotone pieces")
            assert (np.maximum(closed.lower, pieces.lower) <= np.minimum(closed.upper, pieces.upper)).all()


def test_agrees_with_the_monotone_pieces():
    """A Gaussian that is given as two equal halves takes the general path."""
    epsilon = np.linspace(0.0, 4.0, 50)
    for first, second in (((0.0, 1.0), (0.5, 1.3)), ((0.5, 1.3), (0.0, 1.0)), ((0.0, 1.0), (0.0, 2.0))):
        p, q = GaussianMixture.single(*first), GaussianMixture.single(*second)
        halves = GaussianMixture([0.5, 0.5], [first[0]] * 2, [first[1]] * 2)
        for function in (hockey_stick_divergence, log_hockey_stick_divergence):
            closed, pieces = function(p, q, epsilon), function(halves, q, epsilon)
            assert closed.method.startswith("closed form")
            assert pieces.method.startswith("monotone pieces")
            assert (np.maximum(closed.lower, pieces.lower) <= np.minimum(closed.upper, pieces.upper)).all()


def test_no_density_above_the_other_is_an_exact_zero():
    """sup p/q = 2 at the common mean, so H is 0 beyond log 2."""
    found = hockey_stick_divergence(GaussianMixture.single(0.0, 1.0), GaussianMixture.single(0.0, 2.0), [0.6, 0.7, 5.0])
    assert found.lower[0] > 0
    assert found.upper.tolist()[1:] == [0.0, 0.0]
