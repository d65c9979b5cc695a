"""Risks and weighted advantages against sums over all memberships and integrals in mpmath."""

import itertools

import numpy as np
import pytest
from mpmath import findroot, inf, log, mp, mpf, ncdf, npdf, quad

from fastpriv import DomainError, GaussianMixture
from fastpriv.composition import privacy_profile
from fastpriv.studies.membership import (
    BernoulliMembership,
    CombinedReleases,
    FixedSizeMembership,
    FrequencyRelease,
    GaussianNoise,
    LaplaceNoise,
    LInfinityNoise,
    NoNoise,
    Panel,
    bgp_risk,
    bwma,
    conditional_entropies,
)


class Truth:
    """Memberships, their probabilities and the distribution of a Gaussian release of one attribute, in 18 digits."""

    def __init__(self, column, prior, sigma):
        people = len(column)
        self.people, self.sigma = people, mpf(sigma)
        every = [b for b in itertools.product((0, 1), repeat=people) if any(b)]
        if isinstance(prior, FixedSizeMembership):
            every = [b for b in every if sum(b) == prior.n0]
            weights = [mpf(1)] * len(every)
        else:
            q = [mpf(float(x)) for x in np.broadcast_to(prior.q, people)]
            weights = [mp.fprod(x if one else 1 - x for x, one in zip(q, b, strict=True)) for b in every]
        total = mp.fsum(weights)
        groups = {}
        for b, w in zip(every, weights, strict=True):
            mean = mpf(sum(x * y for x, y in zip(b, column, strict=True))) / sum(b)
            group = groups.setdefault(mean, [mpf(0), [mpf(0)] * people, []])
            group[0] += w / total
            group[1] = [x + w / total * one for x, one in zip(group[1], b, strict=True)]
            group[2].append(w / total)
        self.means = list(groups)
        self.weights = [g[0] for g in groups.values()]
        self.member = [[g[1][k] / g[0] for g in groups.values()] for k in range(people)]  # P(b_k = 1 | class)
        self.given = mp.fsum(x * log(g[0] / x) for g in groups.values() for x in g[2])

    def density(self, r, i):
        return npdf(r, self.means[i], self.sigma)

    def joint(self, r):
        return [w * self.density(r, i) for i, w in enumerate(self.weights)]

    def edges(self):
        """Ends of panels, to 12 sigmas beyond the outer means."""
        return sorted({m + k * self.sigma for m in self.means for k in (-12, -4, 0, 4, 12)})

    def integral(self, function):
        return quad(lambda r: function(self.joint(r)), self.edges(), maxdegree=5)

    def joint_risk(self):
        return self.given + self.integral(lambda u: mp.fsum(x * log(mp.fsum(u) / x) for x in u if x > 0))

    def person_risk(self, k):
        def entropy(u):
            one = mp.fsum(x * p for x, p in zip(u, self.member[k], strict=True))
            none = mp.fsum(x * (1 - p) for x, p in zip(u, self.member[k], strict=True))
            return mp.fsum(x * log((one + none) / x) for x in (one, none) if x > 0)

        return self.integral(entropy)

    def gain(self, gamma):
        """sum_k E (pi_k - gamma)^+, with the roots of every person's integrand between the edges."""
        total = mpf(0)
        for k in range(self.people):
            a = [w * (p - gamma) for w, p in zip(self.weights, self.member[k], strict=True)]
            phi = lambda r, a=a: mp.fsum(x * self.density(r, i) for i, x in enumerate(a))
            edges = self.edges()
            pairs = itertools.pairwise(edges)
            fine = [low + (high - low) * (mpf(j) + 0.3) / 3 for low, high in pairs for j in range(3)]
            fine = [edges[0], *fine, edges[-1]]
            signs = [phi(r) for r in fine]
            roots = [
                findroot(phi, ends, solver="anderson", tol=1e-30, verify=False)
                for ends, x, y in zip(itertools.pairwise(fine), signs[:-1], signs[1:], strict=True) if x * y < 0
            ]  # fmt: skip
            for low, high in itertools.pairwise([-inf, *roots, inf]):
                mass = [ncdf((high - m) / self.sigma) - ncdf((low - m) / self.sigma) for m in self.means]
                total += max(mp.fsum(x * y for x, y in zip(a, mass, strict=True)), 0)
        return total


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(18):
        yield


def test_the_known_example():
    model = FrequencyRelease(Panel([[1], [0], [1], [0]]), BernoulliMembership(0.5), GaussianNoise(0.1))
    assert bgp_risk(model, kind="joint").value == pytest.approx(1.5989849732204446, abs=2e-15)
    assert bgp_risk(model).value == pytest.approx(1.9969119109344453, abs=2e-15)
    assert conditional_entropies(model).value[0] == pytest.approx(0.49922797773361133, abs=1e-15)
    assert bgp_risk(model, unit="bits").value == pytest.approx(1.9969119109344453 / np.log(2), abs=1e-14)


CASES = [
    ([1, 0, 1], BernoulliMembership(0.5), 0.1),
    ([1, 0, 0], BernoulliMembership(0.3), 1e-3),
    ([1, 0, 1], BernoulliMembership([0.1, 0.5, 0.9]), 0.05),
    ([1, 1, 0, 0], FixedSizeMembership(2), 100.0),
    ([1, 1, 0, 0], FixedSizeMembership(2), 0.5),
    ([1, 0, 0], BernoulliMembership(1e-6), 0.3),
    ([1, 0], BernoulliMembership(1 - 1e-9), 50.0),
]


@pytest.mark.few(2)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_one_attribute(case):
    column, prior, sigma = CASES[case]
    model = FrequencyRelease(Panel([[x] for x in column]), prior, GaussianNoise(sigma))
    truth = Truth(column, prior, sigma)
    joint, people, marginal = bgp_risk(model, kind="joint"), conditional_entropies(model), bgp_risk(model)
    assert joint.kind == people.kind == marginal.kind == "certified"
    known = truth.joint_risk()
    assert joint.lower <= known <= joint.upper
    assert joint.width <= 2e-11
    persons = [truth.person_risk(k) for k in range(len(column))]
    for k, one in enumerate(persons):
        assert people.lower[k] <= one <= people.upper[k]
        assert people.width[k] <= 1e-11
    assert marginal.lower <= mp.fsum(persons) <= marginal.upper
    gammas = [0.2, 0.5]
    gains = bwma(model, gammas)
    for i, gamma in enumerate(gammas):
        known = truth.gain(mpf(gamma))
        assert gains.lower[i] - 1e-20 <= known <= gains.upper[i] + 1e-20
        assert gains.width[i] <= 2e-11


def test_advantage_is_a_hockey_stick_divergence():
    """(1 - g) q_k H(P_k1 || P_k0) at e^epsilon = g (1 - q_k) / ((1 - g) q_k), by the divergence of mixtures."""
    column, sigma, gamma = [1, 0, 1, 0, 0], 0.2, 0.35
    prior = BernoulliMembership(0.4)
    truth = Truth(column, prior, sigma)
    weights, total = np.array(truth.weights, dtype=float), 0.0
    for k in range(5):
        member = np.array(truth.member[k], dtype=float)
        q = float(weights @ member)
        rows = [weights * member, weights * (1 - member)]
        mixtures = [GaussianMixture(row / row.sum(), [float(m) for m in truth.means], sigma) for row in rows]
        epsilon = np.log(gamma * (1 - q) / ((1 - gamma) * q))
        total += (1 - gamma) * q * privacy_profile(*mixtures, epsilon).value
    model = FrequencyRelease(Panel([[x] for x in column]), prior, GaussianNoise(sigma))
    assert bwma(model, gamma).value == pytest.approx(total, abs=1e-13)


def test_gaussian_releases_of_one_attribute_are_one():
    """Further Gaussian releases pool with weights 1 / sigma^2, and their certified risk is that of drawn releases."""
    panel, prior = Panel([[1], [0], [1], [0], [0]]), BernoulliMembership(0.3)
    both = CombinedReleases([FrequencyRelease(panel, prior, GaussianNoise(s)) for s in (0.1, 0.1 / np.sqrt(2))])
    alone, _ = both.pooled([[0.5], [0.5]])
    assert alone.noise.sigma == pytest.approx(0.1 / np.sqrt(3), rel=1e-15)
    for kind in ("joint", "marginal"):
        known, drawn = bgp_risk(alone, kind=kind), bgp_risk(both, kind=kind, samples=512, rng=1, confidence=0.999)
        assert (known.kind, drawn.kind) == ("certified", "statistical")
        assert drawn.lower <= known.value <= drawn.upper


def test_no_noise():
    panel = Panel([[1, 0], [0, 1], [1, 1]])
    model = FrequencyRelease(panel, BernoulliMembership(0.5), NoNoise())
    assert bgp_risk(model, kind="joint").upper <= 1e-11  # all frequencies differ
    assert bgp_risk(model).value == 0.0
    same = FrequencyRelease(Panel([[1], [1], [0]]), BernoulliMembership(0.5), NoNoise())
    # frequencies: 1 of {1}, {2}, {1, 2}; 0 of {3}; 1/2 of {1, 3}, {2, 3}; 2/3 of all
    assert bgp_risk(same, kind="joint").value == pytest.approx(3 / 7 * np.log(3) + 2 / 7 * np.log(2), abs=1e-15)
    binary = lambda p: -p * np.log(p) - (1 - p) * np.log(1 - p)
    assert bgp_risk(same).value == pytest.approx(2 * (3 / 7 * binary(2 / 3) + 2 / 7 * np.log(2)), abs=1e-15)
    assert bwma(same, 0.6).value == pytest.approx(
        2 * (3 / 7 * (2 / 3 - 0.6) + 1 / 7 * 0.4) + 1 / 7 * 0.4 + 2 / 7 * 0.4 + 1 / 7 * 0.4, abs=1e-15
    )


MODELS = [
    FrequencyRelease(Panel([[1, 0], [0, 1], [1, 1], [0, 0]]), BernoulliMembership(0.3), GaussianNoise(0.2)),
    FrequencyRelease(Panel([[1, 0], [0, 1], [1, 1], [0, 0]]), FixedSizeMembership(2), GaussianNoise(0.2), clip=True),
    FrequencyRelease(Panel([[1, 0], [0, 1], [1, 1], [0, 0]]), BernoulliMembership(0.3), LaplaceNoise(0.1), clip=True),
    FrequencyRelease(Panel([[1, 0, 1], [0, 1, 1], [1, 1, 0]]), BernoulliMembership(0.5), GaussianNoise(0.3), clip=True),
]


def test_a_type_whose_density_is_denormal():
    """Quotients of densities that overflow: two people of three have frequency 0, far from the others."""
    model = FrequencyRelease(Panel([[0], [1], [0]]), BernoulliMembership(0.5), GaussianNoise(0.02))
    found = conditional_entropies(model)
    assert found.kind == "certified"
    assert np.all(np.isfinite(found.upper))


@pytest.mark.parametrize("model", MODELS)
def test_several_attributes(model):
    """Releases are drawn; no risk exceeds that of one attribute alone, by the data-processing inequality."""
    alone = [FrequencyRelease(model.panel, model.prior, model.noise, clip=model.clip, attributes=[j])
             for j in range(model.n_attributes)]  # fmt: skip
    for kind in ("joint", "marginal"):
        found = bgp_risk(model, kind=kind, samples=128, rng=1, confidence=0.999)
        assert found.kind == "statistical"
        assert all(
            bgp_risk(one, kind=kind, samples=128, rng=2, confidence=0.999).upper >= found.lower for one in alone
        )
    gains = bwma(model, [0.3, 0.7], samples=128, rng=3, confidence=0.999)
    assert gains.kind == "statistical"
    for one in alone:
        assert (bwma(one, [0.3, 0.7], samples=128, rng=4, confidence=0.999).lower <= gains.upper).all()


@pytest.mark.slow
def test_intervals_hold_at_their_level():
    """Of 40 intervals at 0.9 at least 29 contain the certified risk: 1 in 1000 misses by chance."""
    model = FrequencyRelease(Panel([[1], [0], [1]]), BernoulliMembership(0.5), GaussianNoise(0.2))
    known = bgp_risk(model).value
    hits = 0
    for seed in range(40):
        found = bgp_risk(model, method="monte_carlo", samples=64, confidence=0.9, rng=seed)
        hits += found.lower <= known <= found.upper
    assert hits >= 29
    assert found.confidence == 0.9


def test_what_is_refused():
    panel, prior = Panel(np.eye(5, dtype=int)), BernoulliMembership(0.5)
    model = FrequencyRelease(panel, prior, GaussianNoise(0.5))
    with pytest.raises(DomainError, match="method must be 'monte_carlo' for this model; got 'exact'"):
        bgp_risk(model, method="exact")
    for noise, clip in ((LaplaceNoise(0.5), False), (LInfinityNoise(0.5), False), (GaussianNoise(0.5), True)):
        with pytest.raises(DomainError, match="method must be 'monte_carlo' for this model"):
            bgp_risk(FrequencyRelease(Panel([[1], [0]]), prior, noise, clip=clip), method="exact")
    many = FrequencyRelease(Panel(np.eye(25, dtype=int)), prior, GaussianNoise(0.5))
    with pytest.raises(DomainError, match="model must be of at most 24 people for posteriors of drawn"):
        bgp_risk(many)
    with pytest.raises(DomainError, match="kind must be one of"):
        bgp_risk(model, kind="both")
    with pytest.raises(DomainError, match="gamma must be strictly between 0 and 1; got 1"):
        bwma(model, 1.0)
    with pytest.raises(DomainError, match="samples must be an integer of at least 64"):
        bgp_risk(model, samples=10)
    with pytest.raises(DomainError, match="confidence must be strictly between 0 and 1; got 1"):
        bgp_risk(model, confidence=1.0)
