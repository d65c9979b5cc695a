"""The exact posterior of a membership against sums over all memberships in 60 digits, and identities."""

import itertools
import pickle

import numpy as np
import pytest
from mpmath import mp, mpf

from fastpriv.base.errors import DomainError, ShapeError
from fastpriv.studies.membership import (
    BayesAttacker,
    BernoulliMembership,
    CombinedReleases,
    FixedSizeMembership,
    FrequencyRelease,
    GaussianNoise,
    GeneratorNoise,
    LaplaceNoise,
    LInfinityNoise,
    NoNoise,
    OptimalLRT,
    Panel,
    membership_posterior,
)
from oracles import membership_posterior as oracle

NOISES = {"gaussian": GaussianNoise, "laplace": LaplaceNoise, "linfinity": LInfinityNoise}


def inside(estimate, truth, label):
    value, lower, upper = (float(x) for x in (estimate.value, estimate.lower, estimate.upper))
    assert mpf(lower) <= truth <= mpf(upper), (label, value, lower, upper, mp.nstr(truth, 20))


def compared(people, prior, releases, model, released, label, narrow=1e-12):
    """The answer lies within its bounds, and these within ``narrow``; returns it."""
    found = membership_posterior(model, released)
    log_odds, evidence, entropy, _, best = oracle.belief(people, prior, releases)
    for k, truth in enumerate(log_odds):
        inside(found.log_odds[k], truth, (label, "log odds", k))
        with mp.workdps(60):
            chance = mpf(1) if truth == mp.inf else mpf(0) if truth == -mp.inf else 1 / (1 + mp.exp(-truth))
            inside(found.probabilities[k], chance, (label, "probability", k))
            assert abs(mpf(float(found.probabilities.value[k])) - chance) <= narrow * max(chance, 1e-300), (label, k)
    inside(found.log_evidence, evidence, (label, "evidence"))
    inside(found.entropy, entropy, (label, "entropy"))
    assert abs(mpf(float(found.entropy)) - entropy) <= 1e-12, label
    assert sum(1 << k for k in range(people) if found.mode[k]) in best, label
    return found


def released_by(rng, kind, attributes, scale, members):
    m = attributes.shape[1]
    noise = {
        "gaussian": rng.standard_normal(m), "laplace": rng.laplace(size=m),
        "linfinity": rng.standard_gamma(m + 1) * rng.uniform(-1, 1, m),
    }[kind]
    size = scale if isinstance(scale, float) else scale[len(members) - 1]
    return attributes[members].mean(axis=0) + size * noise


CASES = list(itertools.product(range(8), NOISES))


@pytest.mark.parametrize(("seed", "kind"), CASES)
def test_against_all_memberships(seed, kind):
    rng = np.random.default_rng([seed, *map(ord, kind)])
    people, m = int(rng.integers(1, 9)), int(rng.integers(1, 7))
    attributes = rng.integers(0, 2, (people, m))
    if seed % 4 == 1:
        attributes[:] = attributes[0]  # nobody can be told from anybody
    if seed % 4 == 2:
        attributes[:, 0] = 0
    scale = float(10 ** rng.uniform(-3, 3))
    if seed % 3 == 0:
        scale = scale / np.arange(1, people + 1)
    members = np.flatnonzero(rng.random(people) < 0.5)
    members = members if members.size else np.array([0])
    if seed % 2:
        prior, law = ("size", members.size), FixedSizeMembership(members.size)
    else:
        q = rng.uniform(0.05, 0.95, people)
        prior, law = ("bernoulli", q), BernoulliMembership(q)
    released = released_by(rng, kind, attributes, scale, members)
    model = FrequencyRelease(Panel(attributes), law, NOISES[kind](scale))
    compared(people, prior, [(kind, attributes, released, scale)], model, released, (seed, kind, scale))


@pytest.mark.parametrize("sigma", [1e-6, 1e-3, 1.0, 1e3, 1e8])
@pytest.mark.parametrize("kind", NOISES)
def test_a_release_that_no_membership_explains(kind, sigma):
    attributes = np.array([[1, 0, 1], [1, 0, 1], [0, 0, 1], [1, 0, 0], [0, 0, 0]])
    released = np.array([0.3, -0.7, 1.9])
    q = np.full(5, 0.5)
    model = FrequencyRelease(Panel(attributes), BernoulliMembership(q), NOISES[kind](sigma))
    found = membership_posterior(model, released)
    log_odds, evidence, entropy, *_ = oracle.belief(5, ("bernoulli", q), [(kind, attributes, released, sigma)])
    for k, truth in enumerate(log_odds):
        inside(found.log_odds[k], truth, (kind, sigma, k))
    inside(found.log_evidence, evidence, (kind, sigma))
    inside(found.entropy, entropy, (kind, sigma))


@pytest.mark.parametrize("q", [[1e-300, 0.5, 0.5, 0.2], [1e-300] * 4, [1 - 1e-16, 0.5, 1e-9, 1e-300]])
def test_extreme_weights(q):
    attributes = np.array([[1, 0], [1, 1], [0, 1], [0, 0]])
    released = np.array([0.5, 0.25])
    model = FrequencyRelease(Panel(attributes), BernoulliMembership(q), GaussianNoise(0.2))
    compared(4, ("bernoulli", q), [("gaussian", attributes, released, 0.2)], model, released, q, narrow=1e-11)


@pytest.mark.parametrize(("kind", "sigma"), [("gaussian", x) for x in (0.05, 0.4, 50.0)] + [("laplace", 0.1)])
@pytest.mark.parametrize("size", [None, 3])
def test_clipped(kind, sigma, size):
    rng = np.random.default_rng(7)
    attributes = rng.integers(0, 2, (6, 5))
    q = rng.uniform(0.2, 0.8, 6)
    prior, law = ("bernoulli", q), BernoulliMembership(q)
    if size:
        prior, law = ("size", size), FixedSizeMembership(size)
    for scale in (sigma, sigma / np.arange(1, 7) ** 0.5):
        for released in ([0.0, 1.0, 0.3, 0.0, 0.75], [0.0, 0.0, 1.0, 1.0, 0.0], [0.1, 0.2, 0.3, 0.4, 0.5]):
            model = FrequencyRelease(Panel(attributes), law, NOISES[kind](scale), clip=True)
            parts = [(kind, attributes, released, scale, True)]
            compared(6, prior, parts, model, released, (kind, sigma, size, released), narrow=1e-11)


def test_clipped_laplace_noise_has_the_posterior_of_the_unclipped():
    rng = np.random.default_rng(3)
    panel = Panel(rng.integers(0, 2, (12, 9)))
    models = [FrequencyRelease(panel, BernoulliMembership(0.4), LaplaceNoise(0.5), clip=clip) for clip in (True, False)]
    released = np.clip(rng.normal(0.5, 1.0, (5, 9)), 0.0, 1.0)
    clipped, plain = (membership_posterior(model, released) for model in models)
    assert np.max(np.abs(clipped.probabilities.value - plain.probabilities.value)) <= 1e-12
    assert np.max(np.abs(clipped.entropy.value - plain.entropy.value)) <= 1e-12
    assert np.all(clipped.log_evidence.value != plain.log_evidence.value)


def test_l_infinity_noise_by_its_likelihood():
    rng = np.random.default_rng(5)
    panel = Panel(rng.integers(0, 2, (7, 4)))
    model = FrequencyRelease(panel, BernoulliMembership(0.3), LInfinityNoise(0.1))
    released = np.array([-0.1, 1.2, 0.4, 0.7])
    found = membership_posterior(model, released)
    members = (np.arange(1, 128)[:, None] >> np.arange(7)) & 1 == 1
    logs = model.log_likelihood(released, members) + model.prior.log_probability(members)
    weights = np.exp(logs - logs.max())
    assert np.allclose(found.probabilities.value, weights @ members / weights.sum(), rtol=0, atol=1e-11)


def test_several_releases_and_their_pool():
    rng = np.random.default_rng(11)
    attributes = rng.integers(0, 2, (9, 6))
    prior = BernoulliMembership(rng.uniform(0.1, 0.9, 9))
    sigmas = [0.05, 0.3, 7.0]
    model = CombinedReleases([FrequencyRelease(Panel(attributes), prior, GaussianNoise(s)) for s in sigmas])
    released = model.simulate(4, rng=rng).released
    together = membership_posterior(model, released)
    pooled = membership_posterior(*model.pooled(released))
    assert np.max(np.abs(together.probabilities.value - pooled.probabilities.value)) <= 1e-12
    assert np.max(np.abs(together.entropy.value - pooled.entropy.value)) <= 1e-12


def test_different_noises_together():
    rng = np.random.default_rng(12)
    first, second = rng.integers(0, 2, (6, 4)), rng.integers(0, 2, (6, 3))
    prior = FixedSizeMembership(3)
    scale = 0.3 / np.arange(1, 7)
    noises = [GaussianNoise(scale), LaplaceNoise(0.1), LInfinityNoise(0.2), GaussianNoise(2.0), GaussianNoise(1.0)]
    panels = [Panel(one) for one in (first, second, first, second, first)]
    model = CombinedReleases([FrequencyRelease(*one) for one in zip(panels, [prior] * 5, noises, strict=True)])
    released = [one[0] for one in model.simulate(1, rng=4).released]
    parts = [
        ("gaussian", first, released[0], scale), ("laplace", second, released[1], 0.1),
        ("linfinity", first, released[2], 0.2), ("gaussian", second, released[3], 2.0),
        ("gaussian", first, released[4], 1.0),
    ]
    compared(6, ("size", 3), parts, model, released, "five releases")


def test_exact_frequencies_leave_the_consistent_memberships():
    rng = np.random.default_rng(2)
    attributes = rng.integers(0, 2, (10, 3))
    model = FrequencyRelease(Panel(attributes), BernoulliMembership(0.5), NoNoise())
    members = np.array([1, 1, 0, 0, 1, 0, 0, 1, 0, 0], dtype=bool)
    released = model.frequencies(members)
    found = membership_posterior(model, released)
    every = (np.arange(1, 1024)[:, None] >> np.arange(10)) & 1 == 1
    consistent = every[np.all(model.frequencies(every) == released, axis=1)]
    assert 1 < len(consistent) < 1023
    assert np.allclose(found.probabilities.value, consistent.mean(axis=0), rtol=0, atol=1e-13)
    assert abs(found.entropy.value - np.log(len(consistent))) <= 1e-12
    with pytest.raises(DomainError, match="released must be possible under the model"):
        membership_posterior(model, [0.123, 0.5, 0.5])


def test_log_odds_beyond_doubles_of_probabilities():
    attributes = np.eye(20, dtype=int)
    members = np.arange(20) < 7
    model = FrequencyRelease(Panel(attributes), BernoulliMembership(0.5), GaussianNoise(1e-4))
    found = membership_posterior(model, members / 7)
    assert np.array_equal(found.mode, members)
    assert np.all(np.isfinite(found.log_odds.value))
    # without person 0: six members with a frequency of 1/6 in the place of 1/7, and one with 0
    expected = (6 * (1 / 6 - 1 / 7) ** 2 + (1 / 7) ** 2) / (2 * 1e-8)
    assert np.allclose(found.log_odds.value[:7], expected, rtol=1e-6)
    assert np.all(found.log_odds.value[7:] < -1e4)
    assert np.array_equal(found.probabilities.value, members.astype(float))
    scores = OptimalLRT(model).scores(members / 7)
    assert np.all(np.isfinite(scores))
    assert np.all((scores > 0) == members)


@pytest.mark.few(12)
@pytest.mark.parametrize("people", range(1, 26))
def test_every_number_of_people(people):
    """A release of each person alone factors the posterior, but for the number of members."""
    model = FrequencyRelease(Panel(np.ones((people, 1), dtype=int)), FixedSizeMembership(1), GaussianNoise(1.0))
    if people == 25:
        with pytest.raises(DomainError, match='at most 24 people for enumeration; got 25.*method="gibbs"'):
            membership_posterior(model, [1.0], method="enumeration")
        return
    if people > 18:
        model = FrequencyRelease(Panel(np.eye(people, dtype=int)), FixedSizeMembership(1), LaplaceNoise(0.5))
        released = np.linspace(0, 1, people)
        logs = np.array([model.log_likelihood(released, row == 1) for row in np.eye(people)])
        truth = np.exp(logs - logs.max())
        assert np.allclose(membership_posterior(model, released).probabilities.value, truth / truth.sum(), atol=1e-13)
    found = membership_posterior(model, np.ones(model.n_attributes))
    assert np.allclose(found.probabilities.value, 1 / people, rtol=1e-13)
    assert abs(found.entropy.value - np.log(people)) <= 1e-12


def test_the_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(8)
    panel = Panel(rng.integers(0, 2, (21, 12)))
    for noise in (GaussianNoise(0.1), LaplaceNoise(0.1)):
        model = FrequencyRelease(panel, BernoulliMembership(0.5), noise)
        released = model.simulate(1, rng=1).released[0]
        one, many = (membership_posterior(model, released, n_jobs=n_jobs) for n_jobs in (1, 4))
        assert one == many


@pytest.mark.slow
def test_many_attributes_in_shorter_tables():
    """Each attribute many times, under noise that many times as wide."""
    rng = np.random.default_rng(6)
    attributes = rng.integers(0, 2, (9, 4))
    released = np.array([0.2, 0.5, 0.9, 0.4])
    copies = 2**18
    many = Panel(np.repeat(attributes, copies, axis=1))
    for noise, other in (
        (LaplaceNoise(0.5 * copies), LaplaceNoise(0.5)), (GaussianNoise(512.0), GaussianNoise(1.0)),
    ):
        long = FrequencyRelease(many, BernoulliMembership(0.4), noise)
        short = FrequencyRelease(Panel(attributes), BernoulliMembership(0.4), other)
        found = membership_posterior(long, np.repeat(released, copies)).probabilities
        truth = membership_posterior(short, released).probabilities
        assert np.all(found.lower <= truth.upper), noise
        assert np.all(truth.lower <= found.upper), noise
        assert np.max(np.abs(found.value - truth.value)) <= 1e-10, noise


def test_a_batch_is_its_releases_one_by_one():
    rng = np.random.default_rng(9)
    model = FrequencyRelease(Panel(rng.integers(0, 2, (7, 5))), BernoulliMembership(0.5), GaussianNoise(0.3))
    released = model.simulate(6, rng=1).released.reshape(2, 3, 5)
    found = membership_posterior(model, released, n_jobs=2)
    assert found.probabilities.shape == (2, 3, 7)
    assert found.entropy.shape == (2, 3)
    assert found.mixed.all()
    single = membership_posterior(model, released[1, 2])
    assert np.array_equal(found.log_odds.value[1, 2], single.log_odds.value)
    assert found.entropy.value[1, 2] == single.entropy.value
    assert np.array_equal(found.mode[1, 2], single.mode)


def test_attackers():
    rng = np.random.default_rng(10)
    q = rng.uniform(0.1, 0.9, 6)
    model = FrequencyRelease(Panel(rng.integers(0, 2, (6, 5))), BernoulliMembership(q), GaussianNoise(0.3))
    released = model.simulate(3, rng=1).released
    bayes, test = BayesAttacker(model), OptimalLRT(model)
    chance = bayes.predict_proba(released)
    assert np.array_equal(chance, membership_posterior(model, released).probabilities.value)
    assert np.array_equal(bayes.claims(released, 0.7), chance > 0.7)
    assert np.allclose(bayes.scores(released), np.log(chance) - np.log1p(-chance), atol=1e-9)
    prior = model.prior.marginals(6)
    assert np.allclose(test.scores(released), bayes.scores(released) - np.log(prior / (1 - prior)), atol=1e-12)
    assert np.array_equal(bayes.decision_function(released), bayes.scores(released))
    assert np.array_equal(test.decision_function(released), test.scores(released))
    assert repr(bayes).startswith("BayesAttacker(<FrequencyRelease")
    assert test.name == "optimal LRT"
    everybody = FrequencyRelease(Panel([[1], [0]]), FixedSizeMembership(2), GaussianNoise(0.3))
    assert np.array_equal(OptimalLRT(everybody).scores([0.5]), [0.0, 0.0])
    assert np.array_equal(BayesAttacker(everybody).scores([0.5]), [np.inf, np.inf])
    alone = FrequencyRelease(Panel([[1]]), BernoulliMembership(0.5), GaussianNoise(0.3))
    assert np.array_equal(OptimalLRT(alone).scores([0.5]), [0.0])


def test_arguments():
    panel = Panel(np.eye(3, dtype=int))
    model = FrequencyRelease(panel, BernoulliMembership(0.5), GaussianNoise(0.3))
    for wrong, fault, text in [
        (lambda: membership_posterior(panel, [0.1] * 3), DomainError, "model must be a FrequencyRelease or Combined"),
        (lambda: membership_posterior(model, [0.1] * 2), ShapeError, "released must have one entry an attribute"),
        (lambda: membership_posterior(model, [0.1] * 3, method="exact"), DomainError, "method must be one of"),
        (lambda: membership_posterior(model, [0.1] * 3, n_jobs=0), DomainError, "n_jobs must be"),
        (lambda: membership_posterior(model, [0.1] * 3, sweeps=3), DomainError, "sweeps must be an integer of at"),
        (lambda: BayesAttacker(model).claims([0.1] * 3, 1.5), DomainError, "gamma must be strictly between 0 and 1"),
        (lambda: BayesAttacker(FrequencyRelease(panel, BernoulliMembership(0.5), GaussianNoise(1e-120))),
         DomainError, "model must have noise of a scale of at least 1e-100"),
        (lambda: BayesAttacker(FrequencyRelease(panel, BernoulliMembership(0.5), GaussianNoise(1e50))),
         DomainError, "model must have noise of a scale of at most 1e\\+45"),
        (lambda: membership_posterior(model, [0.1, -1e50, 0.1]), DomainError, "released must be within 1e\\+45 of 0"),
        (lambda: BayesAttacker(FrequencyRelease(panel, BernoulliMembership(0.5), GeneratorNoise(lambda b, nu: nu, 3))),
         DomainError, "model must have noise of a known likelihood"),
        (lambda: membership_posterior(FrequencyRelease(
            Panel(np.eye(17, dtype=int)), BernoulliMembership(0.5), LInfinityNoise(0.1), clip=True), [0.0] * 17),
         DomainError, "model must have noise of a known likelihood"),
    ]:
        with pytest.raises(fault, match=text):
            wrong()
    again = pickle.loads(pickle.dumps(BayesAttacker(model)))
    assert np.array_equal(again.scores([0.1] * 3), BayesAttacker(model).scores([0.1] * 3))
