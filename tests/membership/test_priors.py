"""Priors of membership against sums over all memberships, and their draws."""

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from fastpriv import DomainError
from fastpriv.errors import ShapeError
from fastpriv.studies.membership import BernoulliMembership, FixedSizeMembership
from oracles.membership import memberships, prior_weights

PROBABILITIES = [
    [0.5], [1e-300], [1 - 2.0**-53], [5e-324, 5e-324], [0.5, 0.25, 0.75], [1e-300, 1e-9, 0.5], [1e-12] * 6,
    [1 - 1e-12] * 5, [0.1, 0.9, 1e-17, 0.3, 1 - 1e-15, 0.5, 1e-8],
]
PRIORS = [(BernoulliMembership(q), len(q), {"q": q}) for q in PROBABILITIES]
PRIORS += [(BernoulliMembership(0.3), 5, {"q": [0.3] * 5})]
PRIORS += [(FixedSizeMembership(n), k, {"members": n}) for n, k in ((1, 1), (1, 4), (4, 4), (3, 8))]


@pytest.mark.parametrize(("prior", "people", "words"), PRIORS)
def test_weights_marginals_and_entropy(prior, people, words):
    weights = prior_weights(people, **words)
    b = np.array(memberships(people), dtype=bool)
    found = prior.log_probability(b)
    marginals = prior.marginals(people)
    with mpmath.workdps(60):
        for row, log in zip(b, found, strict=True):
            truth = weights[tuple(int(x) for x in row)]
            if truth == 0:
                assert log == -np.inf
            else:
                scale = mpmath.fsum(abs(mpmath.log(w)) for w in weights.values() if w)
                assert abs(mpmath.mpf(float(log)) - mpmath.log(truth)) <= 1e-14 * scale + mpmath.mpf(1e-14), row
        for k in range(people):
            truth = mpmath.fsum(w for one, w in weights.items() if one[k])
            assert abs(mpmath.mpf(float(marginals[k])) / truth - 1) < 4e-15 or abs(float(marginals[k]) - truth) < 5e-324
        truth = -mpmath.fsum(w * mpmath.log(w) for w in weights.values() if w)
        entropy = prior.entropy(people)
        assert entropy.lower <= truth <= entropy.upper
        least = min(min(words.get("q", [1])), *(1 - x for x in words.get("q", [0])))
        assert entropy.upper - entropy.lower < 1e-13 * people * (1 - np.log(least))
    assert prior.log_probability(np.zeros(people, dtype=bool)) == -np.inf


@pytest.mark.parametrize(("people", "members"), [(800, 400), (16384, 5000), (16385, 5000), (10**6, 3), (10**6, 1001),
                                                 (10**6, 499_999), (10**9, 10**8), (249_712_111, 56_121),
                                                 (57_490, 1001), (8_655_710_399, 9684)])
def test_entropy_of_many_people(people, members):
    with mpmath.workdps(60):
        truth = mpmath.loggamma(people + 1) - mpmath.loggamma(members + 1) - mpmath.loggamma(people - members + 1)
        found = FixedSizeMembership(members).entropy(people)
        assert found.lower <= truth <= found.upper
        assert found.upper - found.lower < 4.5e-15 * people + 1e-15 * float(truth)


def test_entropy_of_many_probabilities():
    q = np.random.default_rng(0).uniform(1e-6, 1 - 1e-6, 3000)
    with mpmath.workdps(60):
        exact = [mpmath.mpf(float(x)) for x in q]
        none = mpmath.fprod(1 - x for x in exact)
        full = -mpmath.fsum(x * mpmath.log(x) + (1 - x) * mpmath.log(1 - x) for x in exact)
        split = -none * mpmath.log(none) - (1 - none) * mpmath.log(1 - none)
        found = BernoulliMembership(q).entropy(3000)
        assert found.lower <= (full - split) / (1 - none) <= found.upper


@pytest.mark.parametrize(("prior", "people", "words"), [
    (BernoulliMembership(0.3), 3, {"q": [0.3] * 3}),
    (BernoulliMembership([1e-9, 3e-9, 2e-9]), 3, {"q": [1e-9, 3e-9, 2e-9]}),
    (BernoulliMembership([0.9, 0.5, 0.1, 0.2]), 4, {"q": [0.9, 0.5, 0.1, 0.2]}),
    (FixedSizeMembership(2), 5, {"members": 2}),
])
def test_draws_have_the_probabilities(prior, people, words):
    weights = prior_weights(people, **words)
    drawn = prior.draw(60_000, people, rng=7)
    assert drawn.dtype == bool
    codes = drawn @ (1 << np.arange(people))
    counts = np.bincount(codes, minlength=1 << people)
    statistic, cells = 0.0, 0
    for b, w in weights.items():
        expected = 60_000 * float(w)
        count = counts[int(np.dot(b, 1 << np.arange(people)))]
        if expected < 5:
            assert count <= 20
        else:
            statistic, cells = statistic + (count - expected) ** 2 / expected, cells + 1
    assert counts[0] == 0
    assert chi2.sf(statistic, cells - 1) > 1e-4, statistic
    np.testing.assert_array_equal(drawn, prior.draw(60_000, people, rng=7))


def test_draws_of_few_and_none():
    assert BernoulliMembership(1e-300).draw(5, 3, rng=1).sum(axis=1).tolist() == [1] * 5
    assert BernoulliMembership(1 - 1e-16).draw(5, 3, rng=1).all()
    assert FixedSizeMembership(3).draw(0, 3, rng=1).shape == (0, 3)
    assert FixedSizeMembership(3).draw(2, 3, rng=1).all()


def test_priors_that_are_refused():
    for q in (0.0, 1.0, -0.5, [0.5, 0.0], np.nan):
        with pytest.raises(DomainError, match="q must be strictly between 0 and 1; got"):
            BernoulliMembership(q)
    with pytest.raises(ShapeError, match=r"q must be one number or one a person; got shape \(1, 2\)"):
        BernoulliMembership([[0.5, 0.5]])
    with pytest.raises(ShapeError, match="q must have one entry for each of 3 people; got 2"):
        BernoulliMembership([0.5, 0.5]).marginals(3)
    for n0 in (0, -1):
        with pytest.raises(DomainError, match="n0 must be an integer of at least 1.*; got"):
            FixedSizeMembership(n0)
    with pytest.raises(DomainError, match="n0 must be at most the number of people, 3; got 4"):
        FixedSizeMembership(4).draw(1, 3)
    with pytest.raises(DomainError, match="count must be an integer of at least 0.*; got -1"):
        FixedSizeMembership(1).draw(-1, 3)


def test_size_weights_are_zero_where_sizes_are_impossible():
    terms = FixedSizeMembership(2).log_prior(4)
    assert np.flatnonzero(np.isfinite(terms.log_size_weights)).tolist() == [2]
    assert terms.log_size_weights[2] == -math.log(6)
    assert BernoulliMembership(0.5).log_prior(3).log_size_weights[0] == -np.inf
