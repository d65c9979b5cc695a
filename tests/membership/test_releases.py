"""Likelihoods of releases against 60 digits and against the total probability, simulation, pooling, privacy."""

import itertools
import pickle

import mpmath
import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.stats import gamma, kstest, laplace, norm, uniform

from fastpriv import DomainError, GaussianMechanism
from fastpriv.errors import ShapeError
from fastpriv.studies.membership import (
    BernoulliMembership,
    CombinedReleases,
    FixedSizeMembership,
    FrequencyRelease,
    GaussianNoise,
    GeneratorNoise,
    LaplaceNoise,
    LInfinityNoise,
    NoNoise,
    Panel,
)
from oracles.membership import gaussian_delta, log_likelihood

NOISES = {"gauss": GaussianNoise, "laplace": LaplaceNoise, "infinity": LInfinityNoise}
LIKELIHOODS = [("gauss", False), ("gauss", True), ("laplace", False), ("laplace", True), ("infinity", False)]
PANEL = Panel([[1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 0]])
MEMBERS = [[1, 0, 1, 0, 1], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1]]


def model(kind, scale, clip=False, panel=PANEL, prior=None):
    return FrequencyRelease(panel, prior or BernoulliMembership(0.5), NOISES[kind](scale), clip=clip)


RELEASED = [[0.3, 0.7, 0.2, 0.9], [1.0, 0.5, 0.25, 0.75], [0.0, 0.5, 0.9, 0.1], [0.0, 0.5, 1.0, 0.1],
            [1e-300, 0.3, 0.5, 1 - 2**-53]]


@pytest.mark.parametrize("scale", [1e-150, 1e-9, 0.01, 0.3, 5.0, 1e9])
@pytest.mark.parametrize(("kind", "clip"), LIKELIHOODS)
def test_likelihoods(kind, scale, clip):
    release = model(kind, scale, clip)
    found = release.log_likelihood(np.array(RELEASED)[:, None], np.array(MEMBERS, dtype=bool))
    frequencies = release.frequencies(MEMBERS)
    for i, j in itertools.product(range(len(RELEASED)), range(len(MEMBERS))):
        truth = log_likelihood(kind, RELEASED[i], frequencies[j], scale, clip)
        size = abs(truth) + abs(4 * mpmath.log(scale)) + 1  # what the sum is made of
        assert abs(mpmath.mpf(float(found[i, j])) - truth) <= 1e-12 * size or abs(truth) > 1e290, (i, j, truth)


@pytest.mark.parametrize("kind", ["gauss", "laplace"])
def test_tails(kind):
    """Entries clipped at 30 to 1e150 standard deviations keep the digits of their log probability."""
    panel = Panel([[1], [1], [0]])
    for scale in (1 / 30, 1e-3, 1e-100, 1e-150):
        found = model(kind, scale, True, panel).log_likelihood([[0.0], [1.0]], [[1, 1, 0], [0, 0, 1]])
        for i, (r, f) in enumerate([(0.0, 1.0), (1.0, 0.0)]):
            truth = log_likelihood(kind, [r], [f], scale, True)
            assert abs(mpmath.mpf(float(found[i])) / truth - 1) < 1e-13


@pytest.mark.parametrize(("kind", "clip"), LIKELIHOODS)
def test_scales_at_the_ends_of_the_doubles(kind, clip):
    for scale in (5e-324, 1e-308, 1e308):
        logs = model(kind, scale, clip).log_likelihood(RELEASED, MEMBERS[0])
        assert not np.isnan(logs).any()
        if scale == 1e308:
            truth = [log_likelihood(kind, r, model(kind, 1.0).frequencies(MEMBERS[0]), scale, clip) for r in RELEASED]
            np.testing.assert_allclose(logs, np.array(truth, dtype=float), rtol=1e-12)
        else:
            assert (logs[:1] < -1e300).all()


def test_clipped_infinity_noise_has_no_likelihood():
    with pytest.raises(DomainError, match=r"noise must have a likelihood that is known; got LInfinityNoise.*clipped"):
        model("infinity", 0.25, True).log_likelihood([0.0, 1.0, 1.0, 0.5], MEMBERS[0])


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.1, 0.7])
@pytest.mark.parametrize("kind", ["gauss", "laplace"])
def test_clipped_releases_have_total_probability_one(kind, scale):
    """Two entries: four corners, four edges and the square."""
    release = model(kind, scale, True, Panel([[1, 0], [0, 0], [1, 1]]))
    b = [True, True, True]
    inner = [2 / 3, 1 / 3]

    def density(x, y):
        return float(np.exp(release.log_likelihood([x, y], b)))

    total = sum(density(x, y) for x in (0.0, 1.0) for y in (0.0, 1.0))
    for end in (0.0, 1.0):
        total += quad(lambda y, x=end: density(x, y), 0, 1, points=inner, epsabs=1e-9)[0]
        total += quad(lambda x, y=end: density(x, y), 0, 1, points=inner, epsabs=1e-9)[0]
    cuts = [0.0, 1 / 3, 2 / 3, 1.0]
    for (left, right), (low, high) in itertools.product(itertools.pairwise(cuts), repeat=2):
        total += dblquad(lambda y, x: density(x, y), left, right, low, high, epsabs=1e-6)[0]
    assert abs(total - 1) < 2e-5


@pytest.mark.few(2)
@pytest.mark.parametrize(("kind", "clip"), LIKELIHOODS)
def test_simulated_releases_have_the_likelihood(kind, clip):
    """Under the law of one membership the ratio of its likelihood to the mean of two averages to one."""
    panel = Panel([[1, 0, 1], [0, 0, 1], [1, 1, 0]])
    release = model(kind, {"gauss": 0.4, "laplace": 0.4, "infinity": 0.2}[kind], clip, panel)
    one, two = [True, True, False], [False, True, True]
    released = release.release(np.tile(one, (40_000, 1)), rng=3)
    p, q = np.exp(release.log_likelihood(released, one)), np.exp(release.log_likelihood(released, two))
    ratio = 2 * q / (p + q)  # mean 1 - triangular discrimination under p, and its mirror under q
    other = release.release(np.tile(two, (40_000, 1)), rng=4)
    p, q = np.exp(release.log_likelihood(other, one)), np.exp(release.log_likelihood(other, two))
    total = (ratio.mean() + (2 * q / (p + q)).mean()) / 2
    assert abs(total - 1) < 4 * np.sqrt((ratio.var() + (2 * q / (p + q)).var()) / 40_000) / 2
    assert ratio.mean() < 0.99


def test_draws_of_the_noises():
    b, m, n = np.ones((3000, 2), dtype=bool), 4, 3000
    for noise, law in ((GaussianNoise(0.5), norm(0, 0.5)), (LaplaceNoise(0.25), laplace(0, 0.25))):
        drawn = noise.draw(b, m, np.random.default_rng(1))
        assert drawn.shape == (n, m)
        assert kstest(drawn.ravel(), law.cdf).pvalue > 1e-3
        assert np.abs(np.corrcoef(drawn.T) - np.eye(m)).max() < 0.1
    drawn = LInfinityNoise(0.1).draw(b, m, np.random.default_rng(1))
    largest = np.abs(drawn).max(axis=1)
    assert kstest(largest, gamma(m, scale=0.1).cdf).pvalue > 1e-3
    assert kstest((drawn / largest[:, None])[np.abs(drawn) < largest[:, None]], uniform(-1, 2).cdf).pvalue > 1e-3
    assert not NoNoise().draw(b, m, np.random.default_rng(1)).any()


def test_scales_that_depend_on_the_number_of_members():
    noise = GaussianNoise([0.1, 0.2, 0.3, 0.4, 0.5])
    release = FrequencyRelease(PANEL, BernoulliMembership(0.5), noise)
    for b in MEMBERS:
        fixed = model("gauss", [0.1, 0.2, 0.3, 0.4, 0.5][sum(b) - 1])
        assert release.log_likelihood(RELEASED[0], b) == fixed.log_likelihood(RELEASED[0], b)
    drawn = release.release(np.tile([True] * 5, (4000, 1)), rng=1) - release.frequencies([True] * 5)
    assert abs(drawn.std() / 0.5 - 1) < 0.03
    with pytest.raises(ShapeError, match="sigma must be one number, or one for each number of members from 1 to 5; go"):
        FrequencyRelease(PANEL, BernoulliMembership(0.5), GaussianNoise([1.0, 2.0]))


def test_without_noise_only_the_right_frequencies_have_a_likelihood():
    release = FrequencyRelease(PANEL, BernoulliMembership(0.5))
    b = np.array(list(itertools.product([0, 1], repeat=5))[1:], dtype=bool)
    simulated = release.simulate(50, rng=1)
    logs = release.log_likelihood(simulated.released[:, None], b)
    same = (release.frequencies(b)[None] == simulated.released[:, None]).all(axis=2)
    np.testing.assert_array_equal(logs, np.where(same, 0.0, -np.inf))
    np.testing.assert_array_equal(np.exp(logs), release.log_likelihood(simulated.released[:, None] + 1e-15, b) == 0)


def test_clipping_laplace_noise_changes_no_ratio_of_likelihoods():
    plain, clipped = model("laplace", 0.3), model("laplace", 0.3, True)
    released = plain.simulate(200, rng=1).released
    ratios = [np.diff(release.log_likelihood(r[:, None], np.array(MEMBERS, dtype=bool)), axis=1)
              for release, r in ((plain, released), (clipped, np.clip(released, 0, 1)))]
    np.testing.assert_allclose(*ratios, rtol=0, atol=1e-12)
    plain, clipped = model("gauss", 0.3), model("gauss", 0.3, True)
    released = plain.simulate(200, rng=1).released
    ratios = [np.diff(release.log_likelihood(r[:, None], np.array(MEMBERS, dtype=bool)), axis=1)
              for release, r in ((plain, released), (clipped, np.clip(released, 0, 1)))]
    assert np.abs(ratios[0] - ratios[1]).max() > 0.1, "clipping Gaussian noise does"


def test_simulation_is_repeatable_and_of_the_model():
    release = model("laplace", 0.2, True, prior=FixedSizeMembership(2))
    one, two = release.simulate(500, rng=5), release.simulate(500, rng=5)
    np.testing.assert_array_equal(one.membership, two.membership)
    np.testing.assert_array_equal(one.released, two.released)
    assert set(one.membership.sum(axis=1)) == {2}
    assert one.released.min() == 0.0
    assert one.released.max() == 1.0
    assert release.release(MEMBERS[0], rng=1).shape == (4,)
    assert release.release(np.array(MEMBERS)[:, None], rng=1).shape == (3, 1, 4)


def test_subsets_of_attributes():
    release = FrequencyRelease(PANEL, BernoulliMembership(0.5), GaussianNoise(0.1), attributes=[2, 0])
    assert release.n_attributes == 2
    np.testing.assert_array_equal(release.frequencies(MEMBERS[0]), model("gauss", 0.1).frequencies(MEMBERS[0])[[2, 0]])


def test_pooled_gaussian_releases_tell_the_same():
    sigmas = [0.1, 0.35, 2.0]
    combined = CombinedReleases([model("gauss", sigma) for sigma in sigmas])
    b = np.array(list(itertools.product([0, 1], repeat=5))[1:], dtype=bool)
    simulated = combined.simulate(20, rng=2)
    release, pooled = combined.pooled(simulated.released)
    assert abs(release.noise.sigma - sum(s**-2 for s in sigmas) ** -0.5) < 1e-16
    apart = combined.log_likelihood([r[:, None] for r in simulated.released], b)
    together = release.log_likelihood(pooled[:, None], b)
    np.testing.assert_allclose(apart - apart[:, :1], together - together[:, :1], rtol=0, atol=1e-11)
    tiny = CombinedReleases([model("gauss", 1e-200), model("gauss", 1e-200)])
    assert abs(tiny.pooled([RELEASED[0]] * 2)[0].noise.sigma / 1e-200 - 0.5**0.5) < 1e-15


def test_combined_releases_add_up():
    parts = [model("gauss", 0.1), FrequencyRelease(PANEL, BernoulliMembership(0.5), LaplaceNoise(0.2), attributes=[1])]
    combined = CombinedReleases(parts)
    simulated = combined.simulate(7, rng=1)
    assert [r.shape for r in simulated.released] == [(7, 4), (7, 1)]
    pairs = zip(parts, simulated.released, strict=True)
    expected = sum(one.log_likelihood(r, simulated.membership) for one, r in pairs)
    np.testing.assert_array_equal(combined.log_likelihood(simulated.released, simulated.membership), expected)
    assert pickle.loads(pickle.dumps(combined)) == combined


@pytest.mark.parametrize(("members", "people"), [(1, 3), (2, 3), (5, 8)])
@pytest.mark.parametrize("kind", ["laplace", "infinity"])
def test_pure_privacy_is_attained(kind, members, people):
    """The largest log ratio of likelihoods between neighbours, over panels with a person of all attributes."""
    values = np.zeros((people, 3), dtype=bool)
    values[0] = True
    release = model(kind, 0.25, panel=Panel(values), prior=FixedSizeMembership(members))
    claimed = release.epsilon()
    one, two = np.zeros(people, dtype=bool), np.zeros(people, dtype=bool)
    one[:members], two[1 : members + 1] = True, True
    ratio = float(release.log_likelihood([2.0] * 3, one) - release.log_likelihood([2.0] * 3, two))
    assert claimed.lower - 1e-12 <= ratio <= claimed.upper + 1e-12
    assert claimed.kind == "exact"
    free = model(kind, 0.25, panel=Panel(values))
    pair = np.zeros((2, people), dtype=bool)
    pair[0, 1], pair[1, :2] = True, True
    ratio = float(np.diff(free.log_likelihood([2.0] * 3, pair))[0])
    assert abs(free.epsilon().value - ratio) < 1e-12
    assert (release.adjacency, free.adjacency) == ("swap", "add/remove")


@pytest.mark.parametrize(("epsilon", "delta", "n", "m"), [
    (1.0, 1e-5, 100, 64), (0.01, 1e-12, 7, 5000), (5.0, 0.3, 1, 1), (0.0, 1e-6, 400, 6000), (30.0, 1e-300, 400, 3),
])
def test_calibrated_gaussian_noise(epsilon, delta, n, m):
    noise = GaussianNoise.from_epsilon_delta(epsilon, delta, n, m)
    assert gaussian_delta(epsilon, noise.sigma, m, n) <= delta
    assert gaussian_delta(epsilon, noise.sigma * (1 - 2e-13), m, n) > delta
    sensitivity = np.nextafter(np.sqrt(m) / n, 1)
    certified = GaussianMechanism(noise.sigma, sensitivity).delta(epsilon)
    assert certified.lower <= delta * (1 + 1e-9)
    panel = Panel(np.random.default_rng(0).random((n + 1, m)) < 0.5)
    if epsilon:
        stated = FrequencyRelease(panel, FixedSizeMembership(n), noise).epsilon(delta)
        assert stated.lower <= epsilon <= stated.upper * (1 + 1e-9)


def test_calibrated_laplace_and_infinity_noise():
    for epsilon, n, m in ((1.0, 100, 50), (0.1, 3, 7), (1e-300, 10, 3), (1 / 3, 49, 5)):
        for noise, sensitivity in ((LaplaceNoise, m), (LInfinityNoise, 1)):
            scale = noise.from_epsilon(epsilon, n, m).scale
            with mpmath.workdps(60):
                least = mpmath.mpf(sensitivity) / n / mpmath.mpf(epsilon)
                assert least * (1 - mpmath.mpf(2) ** -200) <= mpmath.mpf(scale) <= least * (1 + mpmath.mpf(2) ** -50)
    sizes = np.arange(1, 6)
    np.testing.assert_allclose(LaplaceNoise.from_epsilon(1.0, sizes, 4).scale, 4 / sizes, rtol=3e-16)
    for wrong in (0.0, -1.0, np.inf):
        with pytest.raises(DomainError, match="epsilon must be positive and finite; got"):
            LaplaceNoise.from_epsilon(wrong, 3, 4)
    with pytest.raises(DomainError, match="n must be integers from 1 to .*; got 0. There is at least one member"):
        LInfinityNoise.from_epsilon(1.0, 0, 4)
    with pytest.raises(DomainError, match="n_attributes must be an integer of at least 1.*; got 0"):
        GaussianNoise.from_epsilon_delta(1.0, 1e-5, 3, 0)


def test_statements_of_privacy_that_are_refused_or_infinite():
    fixed = FixedSizeMembership(2)
    assert FrequencyRelease(PANEL, fixed).epsilon().value == np.inf
    assert FrequencyRelease(PANEL, fixed, GaussianNoise(1.0)).epsilon().value == np.inf
    assert FrequencyRelease(PANEL, FixedSizeMembership(5), GaussianNoise(1.0)).epsilon(0.1).value == 0.0
    assert FrequencyRelease(PANEL, FixedSizeMembership(5), LaplaceNoise(1.0)).epsilon().value == 0.0
    assert FrequencyRelease(PANEL, FixedSizeMembership(5)).epsilon().value == 0.0
    with pytest.raises(DomainError, match="delta must be 0 for noise of pure privacy; got 0.1"):
        FrequencyRelease(PANEL, fixed, LaplaceNoise(1.0)).epsilon(0.1)
    with pytest.raises(DomainError, match="delta must be at least 0 and below 1; got 1.0"):
        FrequencyRelease(PANEL, fixed, LaplaceNoise(1.0)).epsilon(1.0)
    scales = LaplaceNoise([1.0] * 5)
    assert FrequencyRelease(PANEL, fixed, scales).epsilon().value == 2.0
    with pytest.raises(DomainError, match="scale must be one number where neighbours differ in their number of member"):
        FrequencyRelease(PANEL, BernoulliMembership(0.5), scales).epsilon()


def generator(b, nu):
    return np.repeat(nu[:, :1] - 0.5, 4, axis=1)


def test_generators():
    plain = FrequencyRelease(PANEL, FixedSizeMembership(2), GeneratorNoise(generator, 2))
    simulated = plain.simulate(1000, rng=1)
    noise = simulated.released - plain.frequencies(simulated.membership)
    assert kstest(noise[:, 0], uniform(-0.5, 1).cdf).pvalue > 1e-3
    np.testing.assert_allclose(noise[:, 1], noise[:, 0], rtol=0, atol=1e-15)
    with pytest.raises(DomainError, match="noise must have full dimension for a statement of privacy; got a generator"):
        plain.epsilon()
    with pytest.raises(DomainError, match="noise must have a likelihood that is known; got <GeneratorNoise of 2 seeds"):
        plain.log_likelihood(simulated.released, simulated.membership)
    dithered = FrequencyRelease(PANEL, FixedSizeMembership(2), GeneratorNoise(generator, 2, LInfinityNoise(0.5)))
    claimed = dithered.epsilon()
    assert claimed.kind == "certified"
    assert claimed.lower == 0.0
    assert abs(claimed.upper - 1.5 / 0.5) < 1e-12
    assert np.abs(dithered.simulate(100, rng=1).released - dithered.release(np.ones((100, 5)), rng=1)).max() > 0.1
    for function, said in (
        (lambda b, nu: nu[:, :1] + np.ones(4), "noise of the function must be between -1/2 and 1/2; got"),
        (lambda b, nu: nu[:, :1] - 0.5, r"function must return noise of shape \(3, 4\); got shape \(3, 1\)"),
    ):
        with pytest.raises((DomainError, ShapeError), match=said):
            FrequencyRelease(PANEL, FixedSizeMembership(2), GeneratorNoise(function, 1)).simulate(3, rng=1)
    with pytest.raises(DomainError, match="function must be a function of memberships and seeds; got 3"):
        GeneratorNoise(3, 1)
    with pytest.raises(DomainError, match="dither must be Gaussian, Laplace or l-infinity noise, or None; got NoNoise"):
        GeneratorNoise(generator, 1, NoNoise())
    with pytest.raises(ShapeError, match="sigma must be one number, or one for each number of members from 1 to 5; go"):
        FrequencyRelease(PANEL, FixedSizeMembership(2), GeneratorNoise(generator, 1, GaussianNoise([1.0, 2.0])))


def test_what_is_refused():
    prior = FixedSizeMembership(2)
    with pytest.raises(DomainError, match="panel must be a Panel; got"):
        FrequencyRelease([[1, 0]], prior)
    with pytest.raises(DomainError, match="prior must be a prior of membership; got 0.5"):
        FrequencyRelease(PANEL, 0.5)
    with pytest.raises(DomainError, match="n0 must be at most the number of people, 5; got 6"):
        FrequencyRelease(PANEL, FixedSizeMembership(6))
    with pytest.raises(DomainError, match="noise must be one of fastpriv.membership; got 0.5"):
        FrequencyRelease(PANEL, prior, 0.5)
    with pytest.raises(DomainError, match="clip must be True or False; got 1"):
        FrequencyRelease(PANEL, prior, clip=1)
    release = model("gauss", 1.0)
    with pytest.raises(DomainError, match="b must have at least one member; got none in 1 of 2 memberships"):
        release.frequencies([[0] * 5, [1] * 5])
    with pytest.raises(ShapeError, match=r"released must have one entry an attribute, here 4; got shape \(5,\)"):
        release.log_likelihood([0.5] * 5, [1] * 5)
    with pytest.raises(DomainError, match="released must be finite numbers; got inf"):
        release.log_likelihood([np.inf, 0, 0, 0], [1] * 5)
    with pytest.raises(DomainError, match="released must be between 0 and 1, as the model clips; got 1.5"):
        model("gauss", 1.0, True).log_likelihood([1.5, 0, 0, 0], [1] * 5)
    for noise in NOISES.values():
        for wrong in (0.0, -1.0, np.nan, np.inf):
            with pytest.raises(DomainError, match="must be positive and finite; got .*Use NoNoise"):
                noise(wrong)
        with pytest.raises(ShapeError, match=r"must be one number, or one for each number of members; got shape \(1, "):
            noise([[1.0, 2.0]])
    with pytest.raises(DomainError, match="releases must have at least one FrequencyRelease; got none"):
        CombinedReleases([])
    with pytest.raises(DomainError, match="releases must be of the same people under the same prior; got .* at index "):
        CombinedReleases([release, model("gauss", 1.0, prior=prior)])
    named, others = (
        Panel(PANEL.to_array(), people=[f"{letter}{k}" for k in range(5)]) for letter in "ab"
    )
    for panels in ([PANEL, named], [named, PANEL], [named, named]):  # names are compared where both panels have some
        CombinedReleases([model("gauss", 1.0, panel=panel) for panel in panels])
    with pytest.raises(DomainError, match="releases must be of the same people under the same prior; got .* at index "):
        CombinedReleases([model("gauss", 1.0, panel=panel) for panel in (named, others)])
    both = CombinedReleases([release, model("laplace", 1.0)])
    with pytest.raises(ShapeError, match="released must have one array for each of 2 releases; got 1"):
        both.log_likelihood([[0.5] * 4], [1] * 5)
    with pytest.raises(DomainError, match="releases must all be Gaussian, of one sigma each, of the same attributes a"):
        both.pooled([[0.5] * 4] * 2)
