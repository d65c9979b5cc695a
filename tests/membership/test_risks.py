"""Risks and weighted advantages against sums over all memberships and integrals in mpmath."""

import itertools

import numpy as np
import pytest
from mpmath import exp, findroot, inf, log, mp, mpf, ncdf, npdf, quad

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
    """Memberships, their probabilities and the distribution of a release of one attribute, in 25 digits."""

    def __init__(self, column, prior, noise, clip):
        people = len(column)
        self.people, self.clip, self.joint_at = people, clip, {}
        self.normal = isinstance(noise, GaussianNoise)
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
            n = sum(b)
            mean = mpf(sum(x * y for x, y in zip(b, column, strict=True))) / n
            scale = mpf(float(noise.scale_of(np.array(n))))
            group = groups.setdefault((mean, scale), [mpf(0), [mpf(0)] * people, []])
            group[0] += w / total
            group[1] = [x + w / total * one for x, one in zip(group[1], b, strict=True)]
            group[2].append(w / total)
        self.means, self.scales = [m for m, _ in groups], [s for _, s in groups]
        self.weights = [g[0] for g in groups.values()]
        self.member = [[g[1][k] / g[0] for g in groups.values()] for k in range(people)]  # P(b_k = 1 | class)
        self.given = mp.fsum(x * log(g[0] / x) for g in groups.values() for x in g[2])

    def density(self, r, i):
        m, s = self.means[i], self.scales[i]
        return npdf(r, m, s) if self.normal else exp(-abs(r - m) / s) / (2 * s)

    def below(self, r, i):
        z = (r - self.means[i]) / self.scales[i]
        if self.normal:
            return ncdf(z)
        return exp(z) / 2 if z < 0 else 1 - exp(-z) / 2

    def joint(self, r):
        """Joint probabilities at a node; the integrals of the joint risk and of every person have the same nodes."""
        if r not in self.joint_at:
            self.joint_at[r] = [w * self.density(r, i) for i, w in enumerate(self.weights)]
        return self.joint_at[r]

    def atoms(self):
        """The vectors of joint probabilities of the atoms, if there are any."""
        low = [w * self.below(mpf(0), i) for i, w in enumerate(self.weights)]
        high = [w * self.below(2 * self.means[i] - 1, i) for i, w in enumerate(self.weights)]
        return [low, high] if self.clip else []

    def edges(self):
        ends = (mpf(0), mpf(1)) if self.clip else (-inf, inf)
        steps = (-12, -4, 0, 4, 12) if self.normal else (-60, -6, 0, 6, 60)
        cuts = {m + k * s for m, s in zip(self.means, self.scales, strict=True) for k in steps}
        return [ends[0], *sorted(c for c in cuts if ends[0] < c < ends[1]), ends[1]]

    def integral(self, function):
        edges = self.edges()
        if not self.clip:
            edges = edges[1:-1]  # 12 sigmas or 60 scales beyond the last mean
        return quad(lambda r: function(self.joint(r)), edges, maxdegree=6) + sum(map(function, self.atoms()))

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
            for u in self.atoms():
                total += max(mp.fsum(x * (p - gamma) for x, p in zip(u, self.member[k], strict=True)), 0)
            phi = lambda r, a=a: mp.fsum(x * self.density(r, i) for i, x in enumerate(a))
            cuts = self.edges()
            inner = cuts if self.clip else cuts[1:-1]
            pairs = itertools.pairwise(inner)
            fine = [low + (high - low) * (mpf(j) + 0.3) / 8 for low, high in pairs for j in range(8)]
            fine = [inner[0], *fine, inner[-1]]
            signs = [phi(r) for r in fine]
            roots = [
                findroot(phi, ends, solver="anderson", tol=1e-40, verify=False)
                for ends, x, y in zip(itertools.pairwise(fine), signs[:-1], signs[1:], strict=True) if x * y < 0
            ]
            for low, high in itertools.pairwise([cuts[0], *roots, cuts[-1]]):
                mass = [(self.below(high, i) if high != inf else 1) - (self.below(low, i) if low != -inf else 0)
                        for i in range(len(a))]
                total += max(mp.fsum(x * y for x, y in zip(a, mass, strict=True)), 0)
        return total


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(25):
        yield


def test_the_known_example():
    model = FrequencyRelease(Panel([[1], [0], [1], [0]]), BernoulliMembership(0.5), GaussianNoise(0.1))
    assert bgp_risk(model, kind="joint").value == pytest.approx(1.5989849732204446, abs=2e-15)
    assert bgp_risk(model).value == pytest.approx(1.9969119109344453, abs=2e-15)
    assert conditional_entropies(model).value[0] == pytest.approx(0.49922797773361133, abs=1e-15)
    assert bgp_risk(model, unit="bits").value == pytest.approx(1.9969119109344453 / np.log(2), abs=1e-14)


CASES = [
    ([1, 0, 1], BernoulliMembership(0.5), GaussianNoise(0.1), False),
    ([1, 0, 0], BernoulliMembership(0.3), GaussianNoise(1e-3), True),
    ([1, 0, 1], BernoulliMembership([0.1, 0.5, 0.9]), GaussianNoise(0.05), True),
    ([1, 1, 0, 0], FixedSizeMembership(2), GaussianNoise(100.0), True),
    ([1, 1, 0, 0], FixedSizeMembership(2), GaussianNoise(0.5), False),
    ([1, 0, 1, 1], BernoulliMembership(0.2), LaplaceNoise(0.1), True),
    ([1, 0, 1, 1], BernoulliMembership(0.2), LaplaceNoise(0.1), False),
    ([1, 0, 0], FixedSizeMembership(1), LaplaceNoise(1e-3), False),
    ([1, 0, 0], BernoulliMembership(0.6), LaplaceNoise([1.0, 0.3, 0.1]), False),
    ([1, 0, 0], BernoulliMembership(0.6), LaplaceNoise([1.0, 0.3, 0.1]), True),
    ([1, 0, 0], BernoulliMembership(0.6), GaussianNoise([1.0, 0.3, 0.1]), False),
    ([1, 0, 0], BernoulliMembership(1e-6), GaussianNoise([1.0, 0.3, 0.1]), True),
    ([1, 0], BernoulliMembership(1 - 1e-9), LaplaceNoise(50.0), True),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", range(len(CASES)))
def test_one_attribute(case):
    column, prior, noise, clip = CASES[case]
    model = FrequencyRelease(Panel([[x] for x in column]), prior, noise, clip=clip)
    truth = Truth(column, prior, noise, clip)
    joint, people, marginal = bgp_risk(model, kind="joint"), conditional_entropies(model), bgp_risk(model)
    assert joint.kind == people.kind == marginal.kind == "certified"
    known = truth.joint_risk()
    assert joint.lower <= known <= joint.upper
    assert joint.width <= max(1e-12 * joint.value, 1e-18)
    persons = [truth.person_risk(k) for k in range(len(column))]
    for k, one in enumerate(persons):
        assert people.lower[k] <= one <= people.upper[k]
        assert people.width[k] <= max(1e-12 * people.value[k], 1e-18)
    assert marginal.lower <= mp.fsum(persons) <= marginal.upper
    gammas = [0.2, 0.5]
    gains = bwma(model, gammas)
    for i, gamma in enumerate(gammas):
        known = truth.gain(mpf(gamma))
        assert gains.lower[i] - 1e-20 <= known <= gains.upper[i] + 1e-20
        assert gains.width[i] <= 5e-12


def test_risks_that_are_very_small():
    """Two people, one member, frequencies 0 and 1 twelve sigmas apart: the risk is of the size of e^-18."""
    model = FrequencyRelease(Panel([[1], [0]]), FixedSizeMembership(1), GaussianNoise(1 / 12))
    truth = Truth([1, 0], FixedSizeMembership(1), GaussianNoise(1 / 12), False)
    known = quad(lambda r: truth_entropy(truth.joint(r)), [-0.5, 0.0, 0.3, 0.45, 0.5, 0.55, 0.7, 1.0, 1.5])
    found = bgp_risk(model, kind="joint")
    assert known < 1e-7
    assert found.lower <= known <= found.upper
    assert found.width <= 1e-11 * float(known)


def truth_entropy(u):
    return mp.fsum(x * log(mp.fsum(u) / x) for x in u)


def test_advantage_is_a_hockey_stick_divergence():
    """(1 - g) q_k H(P_k1 || P_k0) at e^epsilon = g (1 - q_k) / ((1 - g) q_k), by the divergence of mixtures."""
    column, sigma, gamma = [1, 0, 1, 0, 0], 0.2, 0.35
    prior = BernoulliMembership(0.4)
    truth = Truth(column, prior, GaussianNoise(sigma), False)
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


def test_releases_that_reduce_to_one_number():
    """Copies and complements of a column, and further Gaussian releases, pool with weights 1 / sigma^2."""
    column = np.array([1, 0, 1, 0, 0])
    prior = BernoulliMembership(0.3)
    one = FrequencyRelease(Panel(column[:, None]), prior, GaussianNoise(0.1 / np.sqrt(3)))
    columns = np.stack([column, 1 - column, 0 * column + 1, column], axis=1)
    copies = FrequencyRelease(Panel(columns), prior, GaussianNoise(0.1))
    both = CombinedReleases([
        FrequencyRelease(Panel(column[:, None]), prior, GaussianNoise(s)) for s in (0.1, 0.1 / np.sqrt(2))
    ])
    for kind in ("joint", "marginal"):
        found = [bgp_risk(model, kind=kind) for model in (one, copies, both)]
        assert all(x.kind == "certified" for x in found)
        assert max(x.value for x in found) - min(x.value for x in found) <= 1e-13
    constant = FrequencyRelease(Panel(np.ones((4, 2), dtype=int)), prior, LaplaceNoise(0.1), clip=True)
    assert bgp_risk(constant, kind="joint").value == pytest.approx(prior.entropy(4).value, abs=1e-14)


def test_clipped_laplace_noise_tells_as_much():
    for scale in (1e-3, 0.1, 3.0):
        models = [FrequencyRelease(Panel([[1], [0], [1]]), BernoulliMembership(0.5), LaplaceNoise(scale), clip=clip)
                  for clip in (False, True)]
        for kind in ("joint", "marginal"):
            first, second = (bgp_risk(model, kind=kind).value for model in models)
            assert abs(first - second) <= 1e-15
    normal = [FrequencyRelease(Panel([[1], [0], [1]]), BernoulliMembership(0.5), GaussianNoise(0.3), clip=clip)
              for clip in (False, True)]
    assert bgp_risk(normal[1]).lower > bgp_risk(normal[0]).upper + 1e-3


def test_no_noise():
    panel = Panel([[1, 0], [0, 1], [1, 1]])
    model = FrequencyRelease(panel, BernoulliMembership(0.5), NoNoise())
    assert bgp_risk(model, kind="joint").value == 0.0  # all frequencies differ
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


def test_a_class_whose_density_is_denormal():
    """Quotients of densities that overflow: two people of three have frequency 0, far from the others."""
    model = FrequencyRelease(Panel([[0], [1], [0]]), BernoulliMembership(0.5), GaussianNoise(0.02))
    found = conditional_entropies(model)
    assert found.kind == "certified"
    assert np.all(np.isfinite(found.upper))


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_several_attributes(model):
    """Releases are drawn; no risk exceeds that of one attribute alone, by the data-processing inequality."""
    alone = [FrequencyRelease(model.panel, model.prior, model.noise, clip=model.clip, attributes=[j])
             for j in range(model.n_attributes)]
    for kind in ("joint", "marginal"):
        found = bgp_risk(model, kind=kind, samples=256, rng=1, confidence=0.999)
        assert found.kind == "statistical"
        assert all(bgp_risk(one, kind=kind).upper >= found.lower for one in alone)
    gains = bwma(model, [0.3, 0.7], samples=256, rng=2, confidence=0.999)
    assert gains.kind == "statistical"
    assert all((bwma(one, [0.3, 0.7]).lower <= gains.upper).all() for one in alone)


def test_quadrature_and_exact_are_one():
    model = FrequencyRelease(Panel([[1], [0], [1], [0]]), BernoulliMembership(0.5), GaussianNoise(0.1), clip=True)
    for kind in ("joint", "marginal"):
        assert bgp_risk(model, kind=kind, method="quadrature") == bgp_risk(model, kind=kind, method="exact")


@pytest.mark.slow
def test_drawn_releases_of_several_attributes_that_reduce_to_one_number():
    """Two copies of an attribute are one number: drawn releases agree with the certified integral."""
    for prior in (BernoulliMembership([0.2, 0.5, 0.7]), FixedSizeMembership(2)):
        model = FrequencyRelease(Panel([[1, 1, 0], [0, 0, 1], [1, 1, 0]]), prior, GaussianNoise(0.3))
        for kind in ("joint", "marginal"):
            known = bgp_risk(model, kind=kind)
            drawn = bgp_risk(model, kind=kind, method="monte_carlo", samples=128, rng=1, confidence=0.999)
            assert known.kind == "certified"
            assert drawn.lower <= known.value <= drawn.upper
        known = bwma(model, [0.3, 0.7])
        drawn = bwma(model, [0.3, 0.7], method="monte_carlo", samples=128, rng=2, confidence=0.999)
        assert ((drawn.lower <= known.value) & (known.value <= drawn.upper)).all()


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
    with pytest.raises(DomainError, match="method must be 'monte_carlo' for this model; got 'quadrature'"):
        bgp_risk(model, method="quadrature")
    with pytest.raises(DomainError, match="method must be 'monte_carlo' for this model"):
        bgp_risk(FrequencyRelease(Panel([[1, 0], [0, 1]]), prior, LInfinityNoise(0.5)), method="quadrature")
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
