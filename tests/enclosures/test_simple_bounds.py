"""Compositions that no other engine reaches: bounds by single releases hold, and tell something."""

import math

import numpy as np
import pytest
from scipy.special import log_ndtr

from fastpriv import (
    DomainError,
    GaussianMechanism,
    GaussianMixture,
    LaplaceMechanism,
    PoissonSampledGaussian,
    compose,
)
from fastpriv.composition.contour import contour_bounds
from fastpriv.composition.simple_bounds import simple_bounds
from fastpriv.pairs import ShuffledBatches

FAR = GaussianMixture([0.5, 0.5], [0.0, 1e6], 1.0)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("sigma", "rate", "count"), [(1.0, 0.01, 1000), (2.0, 0.3, 30), (5.0, 1e-3, 10**6), (0.7, 0.9, 2)]
)
@pytest.mark.parametrize("side", ["forward_pairs", "backward_pairs"])
def test_sums_along_contours_are_between(sigma, rate, count, side):
    steps = getattr(compose(PoissonSampledGaussian(sigma, rate), count), side).dominating
    epsilon = np.array([0.0, 0.03, 0.4, 1.3, 6.0])
    epsilon = epsilon[epsilon < 0.9 * -count * math.log1p(-rate)]
    exact, simple = contour_bounds(steps, epsilon), simple_bounds(steps, epsilon)
    assert (exact.upper - exact.lower < 1e-6).all()
    assert (simple.lower <= exact.upper).all()
    assert (simple.upper >= exact.lower).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("weights", [[0.5, 0.5], [0.5, 0.5 + 5e-10]])
def test_components_far_apart_are_counted(weights):
    far = compose((GaussianMixture(weights, [0.0, 1e6], 1.0), GaussianMixture.single(0.0, 1.0)), 5)
    found = far.log_delta([0.0, 10.0, 1e10])
    truth = math.log1p(-(0.5**5))  # some record is far away
    assert (found.lower <= truth).all()
    assert (found.upper >= truth).all()
    assert (found.upper - found.lower < (1e-11 if weights[1] == 0.5 else 1e-7)).all()


@pytest.mark.slow
def test_tiny_noise_shows_each_record_that_is_sampled():
    found = compose(PoissonSampledGaussian(1e-3, 0.01), 10).log_delta([0.0, 10.0, 1e5])
    truth = math.log(-math.expm1(10 * math.log1p(-0.01)))
    assert (found.lower <= truth).all()
    assert (found.upper >= truth).all()
    assert (found.upper - found.lower < 1e-11).all()


@pytest.mark.slow
def test_large_noise_less_often_than_far_apart():
    found = compose(PoissonSampledGaussian(1.0, 0.5, sensitivity=30.0), 3).log_delta([1.0], direction="forward")
    truth = np.log1p(-(0.5**3))
    assert np.allclose(found.lower, truth, rtol=0, atol=1e-10)
    assert np.allclose(found.upper, truth, rtol=0, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1e5])
def test_epsilons_far_beyond_all_others(epsilon):
    found = compose(PoissonSampledGaussian(1.0, 0.01), 1000).log_delta(epsilon)
    r, level = math.sqrt(1000.0) / 2, epsilon - 1000 * math.log(0.01)  # all records are sampled
    first, second = log_ndtr(r - level / (2 * r)), level + log_ndtr(-r - level / (2 * r))
    least = 1000 * math.log(0.01) + first + math.log(-math.expm1(min(second - first, -1e-9)))
    assert found.upper >= least - 1e-6 * abs(least)
    assert found.lower <= least + 1000 * math.log(1 / 0.01)
    assert found.upper - found.lower < 0.01 * abs(found.upper)


@pytest.mark.slow
def test_the_largest_epsilon():
    found = compose(PoissonSampledGaussian(1.0, 0.01), 1000).log_delta(1e308, direction="forward")
    assert -math.inf < found.upper < -1e300
    assert not math.isnan(found.value)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.01), (10.0, 1e-4)])
def test_very_many_releases(sigma, rate):
    found = compose(PoissonSampledGaussian(sigma, rate), 10**12).log_delta([0.0, 1.0, 5.0])
    assert (found.upper == 0.0).all()
    assert (found.lower > -1e-4).all()


@pytest.mark.parametrize("share", [0.99, 0.999, 0.9999])
def test_just_below_the_largest_loss(share):
    reversed_ = compose(PoissonSampledGaussian(1.0, 0.25), 10)
    end = -10 * math.log1p(-0.25)
    found = reversed_.log_delta(share * end, direction="backward")
    # S > epsilon needs losses of every record within end - epsilon of the largest, 1/10 of that for all suffices
    loss = [-math.log1p(-0.25) - (1 - share) * end * part for part in (1.0, 0.05)]
    points = [math.log((math.exp(-x) - 0.75) / 0.25) + 0.5 for x in loss]
    assert found.lower <= 10 * log_ndtr(points[0])
    assert found.upper >= 10 * log_ndtr(points[1]) + math.log(-math.expm1(-0.5 * (1 - share) * end))
    assert found.upper - found.lower < 0.15 * abs(found.upper)


def test_steps_of_any_kind_have_simple_bounds():
    """By the curves of single releases alone; a jump of one loss tells something where losses are vast."""
    steps, epsilon = compose(LaplaceMechanism(1.0), 3), np.array([0.0, 0.5, 2.5])
    simple, exact = simple_bounds(steps.forward_pairs.dominating, epsilon), steps.log_delta(epsilon)
    assert (simple.upper >= exact.lower).all()
    assert (simple.lower <= exact.upper).all()
    assert (simple.upper[:2] < 0.0).all()
    vast = compose(ShuffledBatches(GaussianMechanism(1e-3, 1.0), 10, 3)).log_delta([700.0, 1e6])
    assert (vast.lower > -1e-6).all()


@pytest.mark.parametrize("count", [3, 1000])
def test_at_the_largest_loss_delta_is_zero(count):
    found = compose(LaplaceMechanism(1.0), count).delta([float(count), count + 0.1])
    assert (found.lower == 0.0).all()
    assert found.upper[0] <= 1e-11
    assert found.upper[1] == 0.0


@pytest.mark.parametrize("other", [None, [0.5, 0.5]])
def test_a_distribution_on_the_line_needs_another(other):
    with pytest.raises(DomainError, match="^q must be a GaussianMixture or a Density, as p is; got "):
        compose((GaussianMixture.single(0.0, 1.0), other))
    if other:
        with pytest.raises(DomainError, match="^p must be a GaussianMixture or a Density, as q is; got "):
            compose((other, GaussianMixture.single(0.0, 1.0)))
