"""Calibrated sigmas: both sides of the claim in ball arithmetic, on every scale, and every error."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from fastpriv import DomainError, GaussianMechanism, Pmf, awgn_capacity, calibration, mutual_information
from fastpriv.calibration.root_search import Evaluation, least_sigma
from fastpriv.capacity import average_power_capacity
from fastpriv.conversions import lip_delta_from_pointwise_lmip
from fastpriv.errors import NotConvergedError, ShapeError
from fastpriv.notions import lip_delta, log_lip_delta, pointwise_lmip
from oracles import gaussian_mechanism, mixture

WIDTH = 1e-12
POINTS = np.linspace(-1.0, 1.0, 21)
WEIGHTS = np.exp(-2.0 * POINTS**2)
FIGURE_3 = Pmf(POINTS, WEIGHTS / WEIGHTS.sum())
PRIORS = {
    "two": ([0.0, 1.0], [0.5, 0.5]),
    "skew": ([0.0, 1.0], [1 - 2.0**-33, 2.0**-33]),
    "three": ([-1.0, 0.5, 7.0], [0.25, 0.5, 0.25]),
    "far": ([0.0, 1.0, 1e4], [0.5, 0.5 - 2.0**-20, 2.0**-20]),
    "tiny": ([-1e-290, 3e-290], [0.25, 0.75]),
    "huge": ([-1e290, 3e290], [0.25, 0.75]),
}


def entropy(weights):
    return -math.fsum(w * math.log2(w) for w in weights)


def test_figure_3():
    targets = np.array([0.1, 0.01, 0.5, 0.001])
    wanted = np.array([1.16618639010826510130566, 3.80621415468606556514, 0.449239707196763174, 12.0739558778424990])
    got = calibration.sigma_from_cd_lmip(targets, FIGURE_3, unit="bits")
    np.testing.assert_allclose(got.value, wanted, rtol=WIDTH)
    assert (got.lower <= wanted * (1 + 1e-15)).all()
    assert (got.upper >= wanted * (1 - 1e-15)).all()
    assert got.unit == "1"
    assert got.kind == "certified"
    assert got.cost["evaluations"] <= 8 * 4


@pytest.mark.few(2)
@pytest.mark.parametrize("name", PRIORS)
def test_cd_lmip_encloses_the_least_sigma(name):
    points, weights = PRIORS[name]
    prior, most = Pmf(points, weights), entropy(weights)
    shares = (1e-9, 1e-4, 0.05, 0.5, 0.9, 0.999)
    if name == "huge":
        shares = shares[:-4:-1]
    for share in shares:
        mu = share * most
        got = calibration.sigma_from_cd_lmip(mu, prior, unit="bits")
        where = f"{name}, mu = {mu!r}: {got!r}"
        assert got.width <= (WIDTH if share < 0.999 else 1e-10) * got.upper, where
        assert got.cost["evaluations"] <= 24, where
        for certified in (True, False):
            assert mutual_information(prior, got.upper, certified=certified).to("bits").upper <= mu, where
            assert mutual_information(prior, got.lower, certified=certified).to("bits").lower >= mu, where
        if name in ("two", "three", "skew"):
            ctx.prec = 120
            bit = arb(2).log()
            assert mixture.mutual_information((points, weights), got.upper) / bit <= arb(mu), where
            assert mixture.mutual_information((points, weights), got.lower) / bit >= arb(mu), where


@pytest.mark.parametrize("mu", [1e-12, 1e-100, 1e-250, 1e-300])
def test_faint_targets(mu):
    for name in ("two", "three", "far", "tiny"):
        points, weights = PRIORS[name]
        prior = Pmf(points, weights)
        got = calibration.sigma_from_cd_lmip(mu, prior, unit="nats")
        assert mutual_information(prior, got.upper).upper <= mu, (name, got)
        assert mutual_information(prior, got.lower).lower >= mu, (name, got)
        assert got.width <= WIDTH * got.upper, (name, got)
        variance = np.dot(weights, (np.array(points) / points[1 if name == "two" else -1]) ** 2)
        mean = np.dot(weights, np.array(points) / points[1 if name == "two" else -1])
        scale = points[1 if name == "two" else -1]
        if name != "far":
            expansion = scale * math.sqrt(variance - mean**2) / math.sqrt(2 * mu)
            assert got.value == pytest.approx(expansion, rel=1e-5 if mu > 1e-50 else 1e-12), (name, got)


def test_targets_next_to_the_entropy():
    prior = Pmf([0.0, 1.0], [0.5, 0.5])
    for gap in (1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 2.0**-53):
        got = calibration.sigma_from_cd_lmip(1.0 - gap, prior, unit="bits")
        assert mutual_information(prior, got.upper).to("bits").upper <= 1.0 - gap, (gap, got)
        if got.lower > 0:
            assert mutual_information(prior, got.lower).to("bits").lower >= 1.0 - gap, (gap, got)
        else:
            assert gap < 1e-12, (gap, got)
        assert got.upper >= 1 / (2 * math.sqrt(2 * math.log(1 / gap))) / 1.2, (gap, got)
    none = calibration.sigma_from_cd_lmip([0.5, 1.0 + 1e-12, 7.0], prior, unit="bits")
    assert none.upper[1:].tolist() == none.lower[1:].tolist() == [0.0, 0.0]
    assert "at least the entropy" in none.method
    assert calibration.sigma_from_cd_lmip(1e-9, Pmf([3.0], [1.0]), unit="bits").upper == 0.0


@pytest.mark.parametrize("name", [*PRIORS, "figure 3"])
def test_pointwise_lmip_encloses_the_least_sigma(name):
    prior = FIGURE_3 if name == "figure 3" else Pmf(*PRIORS[name])
    most = -math.log2(prior.probabilities.min())
    for share in (1e-9, 1e-4, 0.05, 0.5, 0.9, 0.99):
        mu = share * most
        got = calibration.sigma_from_pointwise_lmip(mu, prior, unit="bits")
        where = f"{name}, mu = {mu!r}: {got!r}"
        assert got.kind == "certified"
        assert got.width <= (WIDTH if share < 0.99 else 1e-11) * got.upper, where
        for certified in (True, False):
            above, below = (
                pointwise_lmip(prior, GaussianMechanism(sigma), certified=certified).to("bits")
                for sigma in (got.upper, got.lower)
            )
            assert above.upper <= mu, where
            assert below.lower >= mu, where
        average = calibration.sigma_from_cd_lmip(mu, prior, unit="bits") if mu < entropy(prior.probabilities) else None
        assert average is None or average.lower <= got.upper, where  # the mean of what the supremum bounds


def test_pointwise_lmip_gives_the_lip_guarantee_that_the_mean_does_not():
    sigma = calibration.sigma_from_pointwise_lmip([0.01, 0.1], FIGURE_3, unit="bits")
    assert sigma.shape == (2,)
    for mu, upper in zip((0.01, 0.1), sigma.upper, strict=True):
        for epsilon in (0.0, 0.1, 1.0):
            truth = lip_delta(FIGURE_3, GaussianMechanism(float(upper)), epsilon)
            assert truth.upper <= lip_delta_from_pointwise_lmip(mu, epsilon, unit="bits").lower
    nats = calibration.sigma_from_pointwise_lmip(0.1 * math.log(2.0), FIGURE_3, unit="nats")
    assert nats.value == pytest.approx(sigma.value[1], rel=1e-12)
    none = calibration.sigma_from_pointwise_lmip([1.9, 2.1, math.inf], Pmf([0.0, 1.0], [0.25, 0.75]), unit="bits")
    assert none.upper[0] > 0
    assert none.upper[1:].tolist() == [0.0, 0.0]
    assert "-log min prior" in none.method
    assert calibration.sigma_from_pointwise_lmip(1e-9, Pmf([3.0], [1.0]), unit="bits").upper == 0.0
    assert calibration.sigma_from_pointwise_lmip(np.empty(0), FIGURE_3, unit="bits").shape == (0,)


@pytest.mark.parametrize("name", PRIORS)
def test_lip_encloses_the_least_sigma(name):
    points, weights = PRIORS[name]
    prior, most = Pmf(points, weights), 1 - min(weights)
    for epsilon in (0.0, 1e-3, 0.5, 5.0):
        for delta in (1e-300, 1e-40, 1e-6, 0.1 * most, 0.6 * most, 0.99 * most):
            if (epsilon == 0.0 and delta < 1e-9) or (name == "huge" and epsilon < 5.0):
                continue
            got = calibration.sigma_from_lip(epsilon, delta, prior)
            where = f"{name}, epsilon = {epsilon}, delta = {delta}: {got!r}"
            assert lip_delta(prior, GaussianMechanism(got.upper), epsilon).upper <= delta, where
            assert lip_delta(prior, GaussianMechanism(got.lower), epsilon).lower >= delta, where
            assert got.width <= (2 * WIDTH if delta < 0.9 * most else 1e-11) * got.upper, where
            if name == "three" and epsilon > 0 and delta > 1e-50:
                assert mixture.lip_delta((points, weights), got.upper, epsilon)[0] <= arb(delta), where
                assert mixture.lip_delta((points, weights), got.lower, epsilon)[0] >= arb(delta), where


@pytest.mark.slow
def test_scales_that_lie_far_apart():
    """Steps of the level at sigmas a factor 1e4 apart, and sigmas below which it cannot be computed."""
    points = np.array([7.6e-13, 2.0e-9, 3.5e-4, 4.8e-3, 0.52])
    prior = Pmf(points, np.array([310, 340, 1, 350, 23]) / 1024)
    most = entropy(prior.probabilities)
    for share in np.linspace(0.02, 0.98, 25):
        got = calibration.sigma_from_cd_lmip(share * most, prior, unit="bits")
        assert mutual_information(prior, got.upper).to("bits").upper <= share * most, (share, got)
        if got.lower > 0:
            assert mutual_information(prior, got.lower).to("bits").lower >= share * most, (share, got)
        if share < 0.6:
            assert got.width <= 1e-10 * got.upper, (share, got)
        delta = share * (1 - float(prior.probabilities.min()))
        got = calibration.sigma_from_lip(8.0, delta, prior)
        assert lip_delta(prior, GaussianMechanism(got.upper), 8.0).upper <= delta, (delta, got)
        if got.lower > 0:
            assert lip_delta(prior, GaussianMechanism(got.lower), 8.0).lower >= delta, (delta, got)


@pytest.mark.slow
def test_targets_at_the_limit_to_the_last_bit():
    """Neither side can be proved from rounded bounds; whatever the start, a safe sigma is found."""
    for points, weights in (([0.0, 1.0], [0.5, 0.5]), ([0.0, 1.0, 3.0, 4.0], [0.25] * 4)):
        prior, most = Pmf(points, weights), math.log2(len(points))
        for gap in (0.0, 1e-16, 1e-15, 1e-14, 1e-12):
            targets = np.full((2, 3), most * (1 - gap))
            average = calibration.sigma_from_cd_lmip(targets, prior, unit="bits")
            worst = calibration.sigma_from_pointwise_lmip(targets, prior, unit="bits")
            for sigma in np.unique(average.upper):
                assert sigma < 0.1
                assert mutual_information(prior, sigma).to("bits").upper <= targets[0, 0]
            for sigma in np.unique(worst.upper):
                assert sigma < 0.2
                assert pointwise_lmip(prior, GaussianMechanism(sigma)).to("bits").upper <= targets[0, 0]
            level = calibration.sigma_from_lip(1.0, (1 - 1 / len(points)) * (1 - gap) * np.ones(6), prior)
            assert (level.upper < 0.5).all()


def test_lip_from_logarithms():
    prior = Pmf(*PRIORS["three"])
    got = calibration.sigma_from_lip_log_delta([0.1, 1.0], [[-1.0], [-100.0], [-3e4], [-1e5]], prior)
    assert got.shape == (4, 2)
    for i, log_delta in enumerate((-1.0, -100.0, -3e4, -1e5)):
        for j, epsilon in enumerate((0.1, 1.0)):
            assert log_lip_delta(prior, GaussianMechanism(got.upper[i, j]), epsilon).upper <= log_delta
            assert log_lip_delta(prior, GaussianMechanism(got.lower[i, j]), epsilon).lower >= log_delta
    linear = calibration.sigma_from_lip(1.0, math.exp(-100.0), prior)
    assert linear.value == pytest.approx(got.value[1, 1], rel=1e-12)
    assert (got.width <= 2 * WIDTH * got.upper).all()


def test_lip_without_noise():
    got = calibration.sigma_from_lip(0.5, [0.5, 0.75, 0.8], Pmf([0.0, 1.0, 2.0], [0.25, 0.5, 0.25]))
    assert got.upper[0] > 0
    assert got.upper[1:].tolist() == [0.0, 0.0]
    assert "without noise" in got.method
    assert calibration.sigma_from_lip(0.0, 0.3, Pmf([1.0], [1.0])).upper == 0.0
    assert calibration.sigma_from_lip_log_delta(0.0, -0.1, Pmf([0.0, 1.0], [0.5, 0.5])).upper == 0.0


def test_ldp():
    rng = np.random.default_rng(1)
    epsilon, delta = 10 ** rng.uniform(-3, 2, 200), 10 ** rng.uniform(-30, -1e-3, 200)
    got = calibration.sigma_from_ldp(epsilon, delta, 3.0)
    logs = calibration.sigma_from_ldp_log_delta(epsilon, np.log(delta), 3.0)
    assert got.kind == "exact"
    assert (got.width <= 1.2e-13 * got.upper).all()
    np.testing.assert_allclose(logs.upper, got.upper, rtol=1e-12)
    for i in range(200):
        ctx.prec = 200
        goal = arb(float(delta[i])).log()
        for sigma, side in ((got.upper[i], 1), (got.lower[i], -1)):
            truth = gaussian_mechanism.log_delta_of(lambda s=sigma: arb(1.5) / arb(float(s)), float(epsilon[i]))
            assert truth <= goal if side > 0 else truth >= goal, (epsilon[i], delta[i], sigma)


def test_ci_lmip_encloses_the_least_sigma():
    mu, dimension = np.array([1e-6, 0.01, 0.5, 2.0])[:, None], np.array([1, 2, 8, 100])
    got = calibration.sigma_from_ci_lmip(mu, dimension, 3.0, unit="bits")
    for sigma, end in ((got.upper, "upper"), (got.lower, "lower")):
        capacity = awgn_capacity(dimension, 3.0, sigma).to("bits")
        met = capacity.upper <= mu if end == "upper" else capacity.lower >= mu
        assert met.all(), (end, sigma[~met], capacity[~met])
    assert (got.width <= 6e-9 * got.upper).all()
    average = average_power_capacity(dimension, 3.0, got.lower, unit="bits")
    assert (average.upper >= mu).all()
    point = calibration.sigma_from_ci_lmip(0.3, 1, 1.0, unit="bits")
    pair = Pmf([-1.0, 1.0], [0.5, 0.5])  # the best prior for little power
    two_points = calibration.sigma_from_cd_lmip(0.3, pair, unit="bits")
    assert point.lower <= two_points.upper * (1 + 1e-9)
    assert two_points.lower <= point.upper * (1 + 1e-9)
    with pytest.raises(DomainError, match="mu must be positive and finite"):
        calibration.sigma_from_ci_lmip(0.0, 1, 1.0, unit="bits")


@pytest.mark.slow
def test_grids_do_not_depend_on_threads_and_share_what_they_learn():
    prior = Pmf(*PRIORS["three"])
    grid = np.geomspace(1e-8, 1.4, 60).reshape(3, 20)
    one, two = (calibration.sigma_from_cd_lmip(grid, prior, n_jobs=n, unit="bits") for n in (1, 2))
    np.testing.assert_array_equal(one.value, two.value)
    np.testing.assert_array_equal(one.upper, two.upper)
    assert one.shape == (3, 20)
    assert (np.diff(one.value.ravel()) < 0).all()
    assert one.cost["evaluations"] <= 8 * 60, one.cost
    loose = calibration.sigma_from_cd_lmip(grid, prior, rtol=1e-3, unit="bits")
    assert loose.cost["evaluations"] < one.cost["evaluations"]
    assert ((loose.lower <= one.upper) & (one.lower <= loose.upper)).all()
    nats = calibration.sigma_from_cd_lmip(0.25 * math.log(2.0), prior, unit="nats")
    assert nats.value == pytest.approx(calibration.sigma_from_cd_lmip(0.25, prior, unit="bits").value, rel=1e-12)


def test_bad_targets():
    prior = Pmf([0.0, 1.0], [0.5, 0.5])
    with pytest.raises(DomainError, match=r"mu must be positive; got 0\.0 at index 1 \(1 of 2 entries\)"):
        calibration.sigma_from_cd_lmip([0.1, 0.0], prior, unit="bits")
    with pytest.raises(DomainError, match="mu must be positive; got nan"):
        calibration.sigma_from_cd_lmip(math.nan, prior, unit="bits")
    with pytest.raises(DomainError, match="unit must be one of"):
        calibration.sigma_from_cd_lmip(0.1, prior, unit="bytes")
    for function in (calibration.sigma_from_cd_lmip, calibration.sigma_from_pointwise_lmip):
        with pytest.raises(DomainError, match="prior must be a Pmf"):
            function(0.1, [0.5, 0.5])
        with pytest.raises(DomainError, match="mu must be positive; got -0.1"):
            function(-0.1, prior)
    with pytest.raises(DomainError, match="rtol must be at least 1e-15 and below 1"):
        calibration.sigma_from_cd_lmip(0.1, prior, rtol=0.0, unit="bits")
    with pytest.raises(DomainError, match="delta must be strictly between 0 and 1"):
        calibration.sigma_from_lip(0.5, 0.0, prior)
    with pytest.raises(DomainError, match="log_delta must be finite and below 0"):
        calibration.sigma_from_lip_log_delta(0.5, 0.0, prior)
    with pytest.raises(DomainError, match="epsilon must be at least 0 and finite"):
        calibration.sigma_from_lip(math.inf, 0.1, prior)
    with pytest.raises(DomainError, match="prior must be a Pmf"):
        calibration.sigma_from_lip(0.5, 0.1, None)
    with pytest.raises(ShapeError, match="broadcasts with delta"):
        calibration.sigma_from_lip([0.1, 0.2], [0.1, 0.2, 0.3], prior)
    with pytest.raises(DomainError, match="n_jobs must be"):
        calibration.sigma_from_cd_lmip(0.1, prior, n_jobs=0, unit="bits")
    with pytest.raises(DomainError, match="sensitivity must be positive"):
        calibration.sigma_from_ldp(1.0, 0.1, 0.0)


def test_targets_out_of_reach():
    with pytest.raises(DomainError, match="mu must be a level that some sigma from 1e-300 to"):
        calibration.sigma_from_cd_lmip(1e-30, Pmf([-1e299, 1e299], [0.5, 0.5]), unit="bits")

    def uncertain(sigma):  # a level whose bounds never prove anything
        return Evaluation(-math.log(sigma), 1.0, False, True, "heuristic")

    with pytest.raises(NotConvergedError, match="the bounds of the level are too wide") as caught:
        least_sigma(
            "mu", np.ones((1, 1)), np.zeros(1, bool), lambda task: uncertain, lambda task: 2.0, 1e-12, None, ""
        )
    assert caught.value.best is None


def test_an_epsilon_beyond_all_use_still_ends_on_the_safe_side():
    prior = Pmf([0.0, 1.0], [0.5, 0.5])
    for epsilon in (1e10, 1e100, 1e308):
        sigma = calibration.sigma_from_lip(epsilon, 0.1, prior).upper
        assert lip_delta(prior, GaussianMechanism(sigma), epsilon).upper <= 0.1


def test_subnormal_sigmas_have_a_bound_below():
    """A step of a subnormal sigma is more than the relative error of the formula."""
    span = 20 * 5e-324
    sigma = calibration.sigma_from_ldp(1.0, 1e-5, span)
    unit = calibration.sigma_from_ldp(1.0, 1e-5, 1.0)
    least, most = (Fraction(end) * Fraction(span) for end in (unit.lower, unit.upper))
    assert Fraction(sigma.lower) <= least
    assert most <= Fraction(sigma.upper)
