"""Tilted proposals: what they bound they bound everywhere, and they estimate without bias."""

import math

import numpy as np
import pytest
from scipy import optimize

from fastpriv import GaussianMixture
from fastpriv.divergences import log_hockey_stick_divergence
from fastpriv.sampling.proposals import exponents
from fastpriv.sampling.proposals.active_components import DiagonalTilting
from fastpriv.sampling.proposals.tilting import (
    hockey_stick_proposal,
    hockey_stick_proposals,
)

UNIT = 2.0**-53


def law(rng, k, d, form, spread=1.0):
    weights, means = rng.dirichlet(np.full(k, 2.0)), rng.normal(0, spread, (k, d))
    if form == "line":
        return GaussianMixture(weights, means[:, 0], rng.uniform(0.5, 1.5, k))
    if form == "isotropic":
        return GaussianMixture(weights, means, rng.uniform(0.5, 1.5, k))
    if form == "one sigma":
        return GaussianMixture(weights, means, 1.0)
    if form == "diagonal":
        return GaussianMixture(weights, means, rng.uniform(0.5, 1.5, (k, d)))
    number = 1 if form == "shared" else k
    root = rng.normal(size=(number, d, 2 * d + 4))
    matrices = root @ root.transpose(0, 2, 1) / (2 * d + 4)
    return GaussianMixture(weights, means, covariances=matrices[0] if form == "shared" else matrices)


def log_density(mixture, x):
    parts = np.array_split(x, max(1, len(x) * len(mixture) * mixture.dimension // 2_000_000))
    return np.concatenate([mixture.log_density(subset) for subset in parts])


def log_ratio(p, q, epsilon, proposal, x):
    """log of (p - e^epsilon q)^+ / (Z g), and the rounding it may carry."""
    a, b, g = (log_density(m, x) for m in (p, q, proposal.mixture))
    gap = a - b - epsilon
    with np.errstate(all="ignore"):
        found = np.where(gap > 0, a + np.log(-np.expm1(-gap)) - g - proposal.log_scale, -np.inf)
    found = np.where(np.isneginf(a), -np.inf, found)
    return found, 64 * UNIT * p.dimension * (np.abs(a) + np.abs(g) + abs(proposal.log_scale) + 1.0)


def points(rng, laws, n):
    """Draws of all laws, of all stretched, and far points in all directions."""
    found = []
    for mixture in laws:
        x = np.reshape(mixture.sample(n, rng=rng), (n, -1))
        centre = np.median(x, axis=0)
        found += [x, centre + 3.0 * (x - centre), centre + 10.0 ** rng.uniform(-3, 3, (n, 1)) * (x - centre)]
        lone = np.zeros_like(x)
        lone[np.arange(n), rng.integers(0, x.shape[1], n)] = 10.0 ** rng.uniform(-2, 4, n) * rng.choice([-1.0, 1.0], n)
        found.append(centre + lone)
    return np.concatenate(found)


PAIRS = [
    (1, 1, 1, "line", "line"), (8, 8, 1, "line", "line"), (3, 2, 2, "isotropic", "isotropic"),
    (8, 8, 2, "diagonal", "diagonal"), (8, 5, 16, "diagonal", "isotropic"), (5, 8, 16, "one sigma", "one sigma"),
    (80, 100, 3, "isotropic", "diagonal"), (4, 4, 3, "shared", "shared"), (4, 4, 3, "shared", "one sigma"),
    (4, 6, 3, "full", "full"), (4, 20, 3, "full", "shared"), (3, 3, 3, "diagonal", "full"), (2, 2, 100, "full", "full"),
]


@pytest.mark.few(13)
@pytest.mark.parametrize(("k", "j", "d", "form", "other"), PAIRS)
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 3.0, 30.0, 700.0])
def test_the_proposal_dominates_everywhere(k, j, d, form, other, epsilon):
    rng = np.random.default_rng([k, j, d, int(10 * epsilon)])
    p, q = law(rng, k, d, form), law(rng, j, d, other)
    proposal = hockey_stick_proposal(p, q, epsilon)
    assert proposal.bounded
    assert math.fsum(proposal.mixture.weights) == pytest.approx(1.0, abs=1e-14)
    x = points(rng, (p, q, proposal.mixture), 400 if d == 100 else 4000)
    found, slack = log_ratio(p, q, epsilon, proposal, x)
    assert np.all(np.isfinite(found) | np.isneginf(found))
    worst = np.argmax(found - slack)
    assert found[worst] <= slack[worst], f"x = {x[worst].tolist()}: log rho = {found[worst]!r}"


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0, 50.0])
def test_the_same_components_in_both_laws_dominate_too(epsilon):
    rng = np.random.default_rng(5)
    p = law(rng, 6, 4, "diagonal")
    q = GaussianMixture(rng.dirichlet(np.ones(6)), p.means, p.sigmas)
    proposal = hockey_stick_proposal(p, q, epsilon)
    x = points(rng, (p, q), 20_000)
    found, slack = log_ratio(p, q, epsilon, proposal, x)
    assert np.all(found <= slack)


@pytest.mark.parametrize("epsilon", [0.5, 10.0, 700.0])
@pytest.mark.parametrize("form", ["line", "diagonal", "full", "shared"])
def test_equal_laws_have_a_valid_proposal_and_a_vanishing_bound(epsilon, form):
    p = law(np.random.default_rng(2), 4, 1 if form == "line" else 3, form)
    proposal = hockey_stick_proposal(p, p, epsilon)
    assert proposal.log_scale < -1e4
    assert np.all(np.isfinite(proposal.mixture.sample(100, rng=0)))


def test_at_epsilon_zero_equal_laws_cost_nothing_to_bound():
    p = law(np.random.default_rng(2), 4, 3, "diagonal")
    assert hockey_stick_proposal(p, p, 0.0).log_scale < -3.0


def counted_proposal(p, q, epsilon):
    """A proposal, and how many steps the search for it took: it asks before each whether it is late."""
    steps = []
    ((proposal, _),) = hockey_stick_proposals(p, q, [epsilon], expired=lambda: steps.append(1) is not None)
    return proposal, len(steps)


EXTREME = {
    "weights": lambda: (GaussianMixture([1e-300, 1.0], [[9.0, 9.0], [0.0, 0.0]], 1.0),
                        GaussianMixture([1.0], [[0.0, 1.0]], 1.0)),
    "wide p": lambda: (GaussianMixture([1.0], [[0.0, 0.0]], 1e6), GaussianMixture([1.0], [[0.0, 1.0]], 1.0)),
    "wide q": lambda: (GaussianMixture([1.0], [[0.0, 0.0]], 1.0), GaussianMixture([1.0], [[0.0, 1.0]], 1e6)),
    "thin": lambda: (GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 1.0]], [[1e-6, 1.0]]),
                     GaussianMixture([0.5, 0.5], [[0.0, 0.5], [1.0, 1.5]], [[1.0, 1e-6]])),
    "far": lambda: (GaussianMixture([1.0], [[1e10, 0.0]], 1.0), GaussianMixture([1.0], [[-1e10, 0.0]], 1.0)),
    "off centre": lambda: (GaussianMixture([1.0], [[1e8 + 1, 0.0]], 1.0), GaussianMixture([1.0], [[1e8, 0.0]], 1.0)),
    "tiny": lambda: (GaussianMixture([1.0], [[1e-290, 0.0]], 1e-290), GaussianMixture([1.0], [[0.0, 0.0]], 1e-290)),
    "huge": lambda: (GaussianMixture([1.0], [[1e290, 0.0]], 1e290), GaussianMixture([1.0], [[0.0, 0.0]], 1e290)),
    "both": lambda: (GaussianMixture([1.0], [[0.0, 0.0]], 1e300), GaussianMixture([1.0], [[0.0, 0.0]], 1e-300)),
    "turned": lambda: (GaussianMixture([1.0], [[0.0, 0.0]], 1e-300), GaussianMixture([1.0], [[0.0, 0.0]], 1e300)),
    "nearly flat": lambda: (GaussianMixture([1.0], [[0.0, 0.0]], covariances=[[1.0, 1 - 1e-9], [1 - 1e-9, 1.0]]),
                            GaussianMixture([1.0], [[0.1, 0.1]], covariances=[[1.0, 1e-9 - 1], [1e-9 - 1, 1.0]])),
}


@pytest.mark.parametrize("name", EXTREME)
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 700.0])
def test_extreme_parameters_are_answered_and_dominated(name, epsilon):
    p, q = EXTREME[name]()
    proposal, steps = counted_proposal(p, q, epsilon)
    assert steps < 300
    assert proposal.log_scale <= 1e-9
    rng = np.random.default_rng(0)
    x = np.concatenate([m.sample(5000, rng=rng) for m in (p, q, proposal.mixture)])
    found, slack = log_ratio(p, q, epsilon, proposal, x)
    assert np.all(found <= slack + (1e-4 if name == "nearly flat" else 0.0)), found.max()


@pytest.mark.parametrize("seed", range(6))
def test_the_solver_finds_the_least_bound(seed):
    rng = np.random.default_rng(seed)
    k, d, epsilon = int(rng.integers(1, 5)), int(rng.integers(1, 4)), float(rng.uniform(0, 20))
    p, q = law(rng, 1, d, "diagonal", 2.0), law(rng, k, d, "diagonal", 2.0)
    means, sigmas = (x.reshape(1, d) for x in (p.means, p.sigmas))
    parts = np.log(q.weights) + epsilon, q.means.reshape(k, d), np.broadcast_to(q.sigmas.reshape(k, -1), (k, d))
    pair = DiagonalTilting((means, np.broadcast_to(sigmas, (1, d))), parts)
    problem, _ = pair._problem(np.array([0]), np.zeros((1, k)))
    mine = exponents.objective(problem, exponents.solve(problem), None)[0]

    def f(logs):
        found = exponents.objective(problem, np.exp(np.clip(logs, -60, 25))[None], None)[0]
        return found if np.isfinite(found) else 1e6

    best = min(
        optimize.minimize(f, start, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-9, "fatol": 1e-9}).fun
        for start in (np.full(k, -3.0), np.full(k, -8.0), rng.normal(-2, 2, k))
    )
    assert mine <= best + 2e-3
    # the function itself, from the densities: e^F T N^-1 at random points is at least (1 - Q/N)^+
    tau = exponents.solve(problem)
    log_bound, mean, sigma = exponents.diagonal_solution(problem, tau, None, np.zeros((1, d)))
    x = rng.normal(size=(2000, d)) * sigma + mean
    own = GaussianMixture([1.0], means + sigmas * mean, sigmas * sigma)
    y = means + sigmas * x
    gap = p.log_density(y) - q.log_density(y) - epsilon
    left = np.where(gap > 0, p.log_density(y) + np.log(-np.expm1(-np.maximum(gap, 1e-300))), -np.inf)
    assert np.all(left <= log_bound[0] + own.log_density(y) + 1e-11)


def log_mean(logs):
    top = logs.max()
    scaled = np.exp(logs - top)
    return top + math.log(scaled.mean()), scaled.std() / scaled.mean() / math.sqrt(len(logs))


TRUTHS = [
    (1, 1.0, "line", 0.5), (1, 1.0, "line", 40.0), (8, 1.0, "line", 0.1), (8, 3.0, "line", 1.0), (16, 0.3, "line", 0.2),
    (1, 1.0, "one sigma", 2.0), (8, 1.0, "one sigma", 5.0), (8, 1.0, "one sigma", 40.0), (64, 1.0, "one sigma", 10.0),
    (64, 1.0, "one sigma", 300.0), (3, 1.0, "one sigma", 700.0),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("k", "spread", "form", "epsilon"), TRUTHS)
def test_estimates_agree_with_certified_divergences_on_the_line(k, spread, form, epsilon):
    for seed in range(3):
        rng = np.random.default_rng([seed, k, int(epsilon)])
        p, q = (law(rng, k, 1, form, spread) for _ in range(2))
        truth = log_hockey_stick_divergence(p, q, epsilon)
        proposal = hockey_stick_proposal(p, q, epsilon)
        assert proposal.log_scale >= truth.lower
        if truth.value < -1e9:
            continue
        x = proposal.mixture.sample(40_000, rng=rng)[:, None]
        found, error = log_mean(log_ratio(p, q, epsilon, proposal, x)[0])
        assert error < 0.2
        assert abs(found + proposal.log_scale - truth.value) < 6 * error + 1e-12 * abs(truth.value)


def test_the_bound_stays_above_certified_divergences_from_one_half_to_beyond_doubles():
    rng = np.random.default_rng(11)
    for _ in range(60):
        k, j = rng.integers(1, 9, 2)
        p, q = law(rng, k, 1, "line", 2.0), law(rng, j, 1, "line", 2.0)
        epsilon = float(10 ** rng.uniform(-3, 2.8))
        truth = log_hockey_stick_divergence(p, q, epsilon)
        assert hockey_stick_proposal(p, q, epsilon).log_scale >= truth.lower


def test_one_gaussian_pair_is_within_the_known_factor():
    """Equal covariances: H is the Gaussian curve, and Z / H is of the order of theta sqrt(2 pi) times the shift."""
    for shift in (0.1, 1.0, 5.0):
        for epsilon in (0.1, 1.0, 20.0, 200.0):
            p, q = GaussianMixture([1.0], [[shift, 0.0]], 1.0), GaussianMixture([1.0], [[0.0, 0.0]], 1.0)
            line = [GaussianMixture.single(m, 1.0) for m in (shift, 0.0)]
            truth = log_hockey_stick_divergence(*line, epsilon).value
            theta = max(epsilon / shift**2, 1.0)
            bound = hockey_stick_proposal(p, q, epsilon).log_scale
            assert truth <= bound <= truth + math.log(8.0 * (1.0 + theta * shift))


def test_estimates_in_many_dimensions_agree_with_the_line():
    """Equal covariances and collinear means: the divergence is that of the projection."""
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(12, 30))
    matrix = matrix @ matrix.T / 30
    direction = rng.normal(size=12)
    scale = math.sqrt(direction @ np.linalg.solve(matrix, direction))
    weights, places = rng.dirichlet(np.ones(5), 2), rng.normal(size=(2, 5))
    for epsilon in (0.5, 5.0, 25.0):
        p, q = (GaussianMixture(w, m[:, None] * direction, covariances=matrix)
                for w, m in zip(weights, places, strict=True))
        line = [GaussianMixture(w, m * scale, 1.0) for w, m in zip(weights, places, strict=True)]
        truth = log_hockey_stick_divergence(*line, epsilon).value
        proposal = hockey_stick_proposal(p, q, epsilon)
        x = proposal.mixture.sample(40_000, rng=rng)
        found, error = log_mean(log_ratio(p, q, epsilon, proposal, x)[0])
        assert error < 0.2
        assert abs(found + proposal.log_scale - truth) < 6 * error


@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_forms_of_one_law_have_one_bound(form):
    """The same matrices, written as full ones by a rotation, give the same Z."""
    rng = np.random.default_rng(8)
    p, q = law(rng, 3, 4, "diagonal"), law(rng, 4, 4, "diagonal")
    turn, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    turned = [
        GaussianMixture(m.weights, m.means @ turn.T, covariances=(turn * m.sigmas[:, None, :] ** 2) @ turn.T)
        for m in (p, q)
    ]
    if form == "diagonal":
        turned[0] = p.affine(np.eye(4))
        turned[1] = q
    for epsilon in (0.5, 10.0, 200.0):
        bounds = [hockey_stick_proposal(*pair, epsilon).log_scale for pair in ((p, q), turned)]
        assert bounds[0] == pytest.approx(bounds[1], abs=0.1)


@pytest.mark.slow
def test_many_epsilons_are_served_once_each_by_few_proposals():
    rng = np.random.default_rng(4)
    p, q = law(rng, 4, 3, "diagonal"), law(rng, 4, 3, "diagonal")
    epsilons = rng.permutation(np.linspace(0.0, 150.0, 400))
    groups = hockey_stick_proposals(p, q, epsilons)
    served = np.concatenate([index for _, index in groups])
    assert sorted(served.tolist()) == list(range(400))
    scales = [proposal.log_scale for proposal, _ in groups]
    assert scales == sorted(scales, reverse=True)
    assert scales[-1] < -20.0
    assert len(groups) <= 4 - scales[-1]
    for proposal, index in groups[:: max(1, len(groups) // 8)]:
        x = points(rng, (p, proposal.mixture), 2000)
        for epsilon in (epsilons[index].min(), epsilons[index].max()):
            found, slack = log_ratio(p, q, float(epsilon), proposal, x)
            assert np.all(found <= slack)


def test_one_epsilon_and_repeated_ones_are_served():
    p, q = GaussianMixture.single([0.0, 1.0], 1.0), GaussianMixture.single([0.0, 0.0], 1.0)
    ((proposal, index),) = hockey_stick_proposals(p, q, [2.0, 2.0, 2.0])
    assert index.tolist() == [0, 1, 2]
    assert proposal.log_scale == hockey_stick_proposal(p, q, 2.0).log_scale


@pytest.mark.slow
def test_a_thousand_components_take_few_steps():
    rng = np.random.default_rng(1)
    p, q = law(rng, 1000, 16, "isotropic"), law(rng, 1000, 16, "isotropic")
    proposal, steps = counted_proposal(p, q, 10.0)
    assert steps < 300
    x = points(rng, (p, proposal.mixture), 200)
    found, slack = log_ratio(p, q, 10.0, proposal, x)
    assert np.all(found <= slack)
    assert len(proposal.mixture) == 1000
