"""P(S <= epsilon) where it is small, against integrals in mpmath: S is the loss of one pair and of Gaussian noise.

Given the loss l of the pair, S is normal about l + mu^2 / 2 with the standard deviation mu: P(S <= epsilon) is the mean
of Phi((epsilon - l) / mu - mu / 2).
"""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mp

from fastpriv import GaussianMechanism, GaussianMixture, LaplaceMechanism, PoissonSampledGaussian, compose, risk
from fastpriv.composition import compositions

MU = 6.0
ONE = GaussianMixture.single(0.0, 1.0)
LEVELS = [0.0, 7.0]


def normal_cdf(epsilon, loss):
    return mpmath.ncdf((epsilon - loss) / mp.mpf(MU) - mp.mpf(MU) / 2)


def of_mixtures(p, q):
    def mean(epsilon):
        def density(one, x):
            rows = zip(one.weights.tolist(), one.means.tolist(), one.sigmas.tolist(), strict=True)
            return sum(w * mpmath.npdf(x, m, s) for w, m, s in rows)

        def integrand(x):
            first = density(p, x)
            return first * normal_cdf(epsilon, mpmath.log(first / density(q, x)))

        return mpmath.quad(integrand, [-14, -4, 0, 4, 14])

    return mean


def of_laplace(scale):
    def mean(epsilon):
        r, least = 1 / mp.mpf(scale), mpmath.exp(-1 / mp.mpf(scale)) / 2
        inside = mpmath.quad(lambda x: mpmath.exp(-x) / 2 * normal_cdf(epsilon, r - 2 * x), [0, r])
        return inside + normal_cdf(epsilon, r) / 2 + least * normal_cdf(epsilon, -r)

    return mean


def of_atoms(p, q):
    return lambda epsilon: sum(mp.mpf(a) * normal_cdf(epsilon, mpmath.log(mp.mpf(a) / mp.mpf(b)))
                               for a, b in zip(p, q, strict=True))


MIXTURE = GaussianMixture([0.75, 0.25], [0.0, 2.0], 1.0)
CASES = [
    ((MIXTURE, ONE), of_mixtures(MIXTURE, ONE)),
    ((ONE, MIXTURE), of_mixtures(ONE, MIXTURE)),
    ((MIXTURE, GaussianMixture([0.5, 0.5], [-1.0, -3.0], 1.0)),
     of_mixtures(MIXTURE, GaussianMixture([0.5, 0.5], [-1.0, -3.0], 1.0))),
    ((ONE, GaussianMixture.single(1.0, 1.5)), of_mixtures(ONE, GaussianMixture.single(1.0, 1.5))),
    ((GaussianMixture.single(1.0, 1.5), ONE), of_mixtures(GaussianMixture.single(1.0, 1.5), ONE)),
    (LaplaceMechanism(0.5), of_laplace(0.5)),
    (([0.75, 0.25], [0.25, 0.75]), of_atoms([0.75, 0.25], [0.25, 0.75])),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(("pair", "mean"), CASES)
def test_sums_with_normal_noise(pair, mean):
    composition = compose([GaussianMechanism(1.0, MU), pair])
    found = composition.lower_tail_probabilities(LEVELS)[0]
    with mp.workdps(18):
        for i, epsilon in enumerate(LEVELS):
            assert found.lower[i] <= mean(epsilon) <= found.upper[i], epsilon
    assert (found.width <= 1e-10 * found.value).all()
    assert (found.upper < 0.15).all()


def test_normal_noise_alone():
    levels = np.array([0.0, 1e-300, 3.0, 150.0, 700.0])
    found = compose(GaussianMechanism(1.0, 1.0), 1600).lower_tail_probabilities(levels)[0]
    with mp.workdps(40):
        for i, epsilon in enumerate(levels.tolist()):
            truth = mpmath.ncdf(mp.mpf(epsilon) / 40 - 20)
            assert found.lower[i] <= truth <= found.upper[i]
    assert (found.width <= 5e-12 * found.value).all()


@pytest.mark.slow
def test_complements_of_the_upper_tails():
    composition = compose((MIXTURE, ONE), 8)
    levels = np.array([-3.0, -0.5, 0.0, 0.5, 3.0])
    for direction in ("forward", "backward"):
        upper = composition.tail_probabilities(levels, direction=direction)
        lower = composition.lower_tail_probabilities(levels, direction=direction)
        for one, rest in zip(upper, lower, strict=True):
            assert (one.lower + rest.lower <= 1 + 1e-15).all()
            assert (one.upper + rest.upper >= 1 - 1e-15).all()
    ahead = composition.lower_tail_probabilities(levels)
    behind = composition.tail_probabilities(-levels, direction="backward")  # no loss has an atom
    assert np.allclose(ahead[0].value, behind[1].value, rtol=1e-9)
    assert np.allclose(ahead[1].value, behind[0].value, rtol=1e-9)


def test_small_errors_of_the_second_kind_keep_their_digits():
    """By tests that are nearly perfect: both errors small at once."""
    composition = compose((MIXTURE, GaussianMixture([0.5, 0.5], [-1.0, -3.0], 1.0)), 60)
    level = np.array([1e-30, 1e-20, 1e-13, 1e-9])
    beta = risk.trade_off_curve(composition, None, level).beta
    assert (beta.upper < [1e-4, 1e-8, 1e-13, 1e-17]).all()
    assert (beta.width <= 1e-10 * beta.value).all()
    inverse = risk.trade_off_curve(composition.reversed, None, beta.value).beta
    assert np.allclose(inverse.value, level, rtol=1e-8)


def test_levels_next_to_the_largest_loss():
    """Truths by a sum along a contour in mpmath, at epsilon = 0.97, 0.99 and 0.9 of the largest loss."""
    cases = [
        (0.25, 1.0, 10, 1.2141904347662778e-27, 1.9828233e-26), (0.25, 1.0, 10, 5.937042864385408e-46, 1.0250428e-44),
        (0.1, 2.0, 5, 7.37986109629177e-25, 1.1869739e-24),
    ]
    for rate, sigma, count, level, truth in cases:
        mixture = GaussianMixture([1 - rate, rate], [0.0, 1.0], sigma)
        composition = compose((mixture, GaussianMixture.single(0.0, sigma)), count)
        power = risk.true_positive_rate(composition, None, level)
        assert power.value == pytest.approx(truth, rel=1e-7)
        assert power.width <= 1e-9 * power.value


@pytest.mark.parametrize("level", [-1e308, -1e10, 1e10, 1e300, 1e308])
def test_tails_beyond_all_losses_are_numbers(level):
    """Far out nothing is divided or multiplied by what overflows, whatever the width of the bounds."""
    both = compose(GaussianMechanism(1.0, 1.0), 10)
    for above, below in zip(both.tail_probabilities(level), both.lower_tail_probabilities(level), strict=True):
        truth = float(level < 0)
        assert above.lower <= truth <= above.upper
        assert below.lower <= 1.0 - truth <= below.upper


@pytest.mark.parametrize("sigma", [1e-3, 1e-4, 1e-5, 1e-7])
@pytest.mark.parametrize("rate", [0.5, 0.01])
def test_levels_among_large_losses(sigma, rate):
    """One release, whose losses are near 1 / (2 sigma^2): a unit in the last place of the level is no longer small."""
    composition = compose(PoissonSampledGaussian(sigma, rate))
    levels = 0.5 / sigma**2 + np.array([-12.0, -8.0, -4.0, 0.0, 4.0]) / sigma
    found = composition.tail_probabilities(levels, direction="forward")[0]
    with mp.workdps(60):
        s, q = mp.mpf(sigma), mp.mpf(rate)
        for i, level in enumerate(levels.tolist()):
            x = mp.log((mp.exp(mp.mpf(level)) - 1 + q) / q) * s**2 + mp.mpf(1) / 2
            truth = (1 - q) * mpmath.ncdf(-x / s) + q * mpmath.ncdf((1 - x) / s)
            assert found.lower[i] <= truth <= found.upper[i], level
    assert (found.width <= 1e-4 * found.value).all()


FAR = [PoissonSampledGaussian(1.0, 0.01), PoissonSampledGaussian(0.1, 0.5), LaplaceMechanism(1e-3),
       (GaussianMixture.single(0.0, 1.0), GaussianMixture.single(1.0, 1.5))]


@pytest.mark.few(1)
@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize("level", [2e5, 1e10, 1e300])
@pytest.mark.parametrize("pair", FAR)
def test_tails_far_beyond_all_losses(pair, level, count):
    """Chernoff's bound of both tails is far below 1e-300 at such a level, and at minus it."""
    composition = compose(pair, count)
    for direction in ("forward", "backward"):
        for sign in (1.0, -1.0):
            above, below = (one(sign * level, direction=direction)
                            for one in (composition.tail_probabilities, composition.lower_tail_probabilities))
            rare, certain = (above, below) if sign > 0 else (below, above)
            for one in rare:
                assert one.lower == 0.0
                assert one.upper < 1e-300
            for one in certain:
                assert one.lower >= 1.0 - 1e-14
                assert one.upper == 1.0


def test_tails_that_underflow_are_not_nothing():
    """log P(S > 100) is near -1044: no double but 0 is below it, and 0 is no upper bound of it."""
    composition = compose(PoissonSampledGaussian(1.0, 0.01), 10)
    for one in composition.tail_probabilities([100.0, 1e4]):
        assert (one.lower == 0.0).all()
        assert ((one.upper > 0.0) & (one.upper < 1e-320)).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("count", [1, 2, 10])
@pytest.mark.parametrize("epsilon", [2e3, 2e4, 3e5, 1e7, 1e10])
def test_log_delta_far_beyond_all_losses(count, epsilon):
    """Between that of all records sampled, times rate^count, and Chernoff's bound at a whole order, in mpmath."""
    rate, rows = 0.01, compose(PoissonSampledGaussian(1.0, 0.01), count).log_delta(epsilon)
    with mp.workdps(60):
        q, mu, level = mp.mpf(rate), mp.sqrt(count), mp.mpf(epsilon) - count * mp.log(mp.mpf(rate))
        x = level / mu - mu / 2  # delta = phi(x) (r(x) - r(x + mu)) with Mills' ratio r, 1/x - 1/x^3 < r(x) < 1/x
        least = -x * x / 2 - mp.log(2 * mp.pi) / 2 + mp.log(1 / x - 1 / x**3 - 1 / (x + mu)) + count * mp.log(q)
        order = min(int(epsilon / count + 1), 400)
        moment = sum(math.comb(order, k) * (1 - q) ** (order - k) * q**k * mp.exp(mp.mpf(k) * (k - 1) / 2)
                     for k in range(order + 1))
        most = count * mp.log(moment) - (order - 1) * mp.mpf(epsilon)
        assert rows.lower <= most
        assert rows.upper >= least
    assert rows.upper < 0.9 * float(most)


def test_tails_that_contradict_themselves_claim_nothing(monkeypatch):
    both = compose(GaussianMechanism(1.0, 1.0), 10)
    for false in ([1.0, 0.0], [math.nan, 0.5], [-math.inf, 0.0]):
        numbers = np.array([false, [0.25, 0.25], [1.0, 1.0], [0.75, 0.75]])[..., None]
        monkeypatch.setattr(compositions, "_tails", lambda steps, levels, numbers=numbers: numbers.copy())
        above, below = both.tail_probabilities(1.0)[0], both.lower_tail_probabilities(1.0)[0]
        assert (above.lower, above.upper, below.lower, below.upper) == (0.0, 1.0, 0.0, 1.0)
        assert above.method.endswith("bounds that cross left out")
        assert both.tail_probabilities(1.0)[1].value == 0.25
