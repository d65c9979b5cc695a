"""Narrow normals beside a dominating law: the same mean, a bounded integrand, and less variance."""

import math

import numpy as np
import pytest
from numpy.random import SeedSequence

from fastpriv import GaussianMixture, hockey_stick_divergence
from fastpriv.divergences import log_hockey_stick_divergence, monte_carlo
from fastpriv.sampling.problem import DOMINATING_SHARE, Term
from fastpriv.sampling.proposals.local_normal_proposals import local_normals
from fastpriv.sampling.proposals.tilting import hockey_stick_proposal, hockey_stick_proposals
from fastpriv.sampling.replicates import batch_values


def law(rng, k, d, form):
    weights, means = rng.dirichlet(np.full(k, 2.0)), rng.normal(0, 1.0 if form != "one" else 0.5, (k, d))
    if form == "full":
        root = rng.normal(size=(k, d, 3 * d)) / math.sqrt(3 * d)
        return GaussianMixture(weights, means, covariances=root @ root.transpose(0, 2, 1))
    if form == "line":
        return GaussianMixture(weights, means[:, 0], rng.uniform(0.7, 1.4, k))
    return GaussianMixture(weights, means, 1.0 if form == "one" else rng.uniform(0.7, 1.4, (k, d)))


def problems(p, q, epsilon, monkeypatch):
    """The tilted law alone, and with its corners however little these may bring."""
    monkeypatch.setattr(monte_carlo, "_WORTHWHILE", 0.0)
    ((proposal, _),) = hockey_stick_proposals(p, q, [epsilon])
    term = Term("hockey_stick_proposal", np.array([epsilon]))
    return proposal, list(monte_carlo._tilted_candidates(p, q, proposal, term))


CASES = [(1, 1, 1, "line", 30.0), (4, 5, 3, "one", 30.0), (8, 8, 16, "one", 20.0), (3, 3, 4, "diagonal", 40.0),
         (3, 3, 4, "full", 40.0), (1, 3, 2, "diagonal", 5.0)]


@pytest.mark.parametrize(("k", "j", "d", "form", "epsilon"), CASES)
def test_the_mean_is_the_same_and_the_integrand_stays_bounded(k, j, d, form, epsilon, monkeypatch):
    rng = np.random.default_rng([k, j, d])
    p, q = law(rng, k, d, form), law(rng, j, d, form)
    _, (alone, beside) = problems(p, q, epsilon, monkeypatch)
    assert beside.integrand.high == alone.integrand.high / DOMINATING_SHARE
    assert min(source.share for source in beside.sources) == DOMINATING_SHARE
    found = []
    for problem in (alone, beside):
        means = batch_values(problem, SeedSequence(3), (1,), 2000, 16)[0].mean(axis=0)
        found.append((means.mean(), means.std() / math.sqrt(len(means))))
        for source in problem.sources:
            mixture = source.distribution
            x = mixture.means[:, :, None] + rng.normal(0.0, 3.0, (len(mixture), problem.dimension, 200))
            x = np.ascontiguousarray(x.transpose(1, 0, 2).reshape(problem.dimension, -1))
            values = problem.values(problem.densities(x, mixture), None)
            assert np.all((values >= 0.0) & (values <= problem.integrand.high * (1.0 + 1e-9)))
    (first, error), (second, other) = found
    assert abs(first - second) < 5.0 * math.hypot(error, other)


@pytest.mark.parametrize("epsilon", [20.0, 60.0])
def test_variances_fall_where_covariances_are_equal(epsilon, monkeypatch):
    rng = np.random.default_rng(7)
    p, q = law(rng, 8, 16, "one"), law(rng, 8, 16, "one")
    proposal, (alone, beside) = problems(p, q, epsilon, monkeypatch)
    assert local_normals(p, q, proposal.dominant).gain > 3.0
    ratio = [batch_values(x, SeedSequence(1), (1,), 4000, 16)[0].mean(axis=0).var() for x in (alone, beside)]
    assert ratio[1] < 0.4 * ratio[0]


def test_a_region_on_both_sides_has_a_normal_on_each():
    p = GaussianMixture([1.0], [[0.0, 0.0]], [[2.0, 1.0]])
    q = GaussianMixture([1.0], [[0.0, 0.0]], [[1.0, 1.0]])
    proposal = hockey_stick_proposal(p, q, 20.0)
    found = local_normals(p, q, proposal.dominant)
    places = np.sort(found.mixture.means[:, 0])
    assert len(places) == 2
    assert places[0] == pytest.approx(-places[1], rel=1e-3)
    narrow = found.mixture
    sigma = narrow.sigmas[0, 0] if narrow.sigmas is not None else math.sqrt(narrow.covariances[0, 0, 0])
    assert sigma < 0.5 * proposal.mixture.sigmas.reshape(-1)[0]


def test_equal_laws_and_many_components_have_none_or_finite_ones():
    p = law(np.random.default_rng(0), 3, 2, "diagonal")
    proposal = hockey_stick_proposal(p, p, 1.0)
    found = None if proposal.dominant is None else local_normals(p, p, proposal.dominant)
    assert found is None or np.isfinite(found.mixture.means).all()


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [10.0, 40.0])
def test_estimates_agree_with_the_certified_line(epsilon):
    """Means on a line and one covariance: the truth is that of the projection; the run is told to sample."""
    rng = np.random.default_rng(5)
    weights, places = rng.dirichlet(np.ones(6), 2), rng.normal(size=(2, 6))
    p, q = (GaussianMixture(w, x, 1.0) for w, x in zip(weights, places, strict=True))
    truth = log_hockey_stick_divergence(p, q, epsilon)
    for points in ("antithetic", "sobol"):
        found = log_hockey_stick_divergence(p, q, epsilon, method=f"tilted {points}", rtol=1e-3, rng=3)
        assert found.lower <= truth.upper
        assert truth.lower <= found.upper
    assert hockey_stick_divergence(p, q, epsilon, method="tilted", rtol=1e-2, rng=3).lower <= math.exp(truth.upper)


def test_covariances_that_rounding_leaves_indefinite_are_not_used():
    """No component of p exceeds e^15 q anywhere: the exponents grow without end."""
    mixtures = []
    for seed, k, sigma in ((20, 3, 1.0), (21, 4, 1.2)):
        rng = np.random.default_rng(seed)
        weights = rng.dirichlet(np.ones(k))
        mixtures.append(GaussianMixture(weights / weights.sum(), rng.normal(size=(k, 5)), sigma))
    words = {"interval": "guaranteed", "max_samples": 20_000, "rtol": 0.1, "side": "upper", "rng": 1}
    assert hockey_stick_divergence(*mixtures, 15.0, **words).upper < 1e-300
    assert log_hockey_stick_divergence(*mixtures, [1.0, 15.0], **words).upper[1] < -700.0


@pytest.mark.slow
def test_a_divergence_that_all_but_vanishes_is_sampled_without_local_normals():
    """Exponents near 1e15 leave a singular matrix."""
    laws = []
    for seed, shift in ((105, 0.0), (1105, 0.5)):
        rng = np.random.default_rng([seed, 3, 2])
        weights, means = rng.dirichlet(np.full(3, 5.0)), rng.normal(0, 1.0, (3, 2)) + shift
        laws.append(GaussianMixture(weights, means, np.exp(rng.normal(0, 0.2, (3, 2)))))
    found = log_hockey_stick_divergence(*laws, [0.5, 2.0, 6.0, 15.0], rtol=0.1, rng=0)
    assert found.value[3] <= found.upper[3] < -1e12
