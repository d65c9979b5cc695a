"""The largest number of releases and the least noise for a target are proved on both sides."""

import math

import numpy as np
import pytest

from fastpriv import (
    DomainError,
    GaussianMechanism,
    LaplaceMechanism,
    PoissonSampledGaussian,
    RandomizedResponse,
    compose,
)
from fastpriv.composition import largest_count, least_sigma
from fastpriv.errors import ShapeError


def test_counts_of_gaussians():
    found = largest_count(GaussianMechanism(10.0, 1.0), epsilon=[1.0, 3.0], delta=1e-5)
    for epsilon, value, low, high in zip((1.0, 3.0), found.value, found.lower, found.upper, strict=True):
        assert low == value == high
        assert GaussianMechanism(10.0, math.sqrt(value)).delta(epsilon).upper <= 1e-5
        assert GaussianMechanism(10.0, math.sqrt(value + 1)).delta(epsilon).lower > 1e-5


@pytest.mark.parametrize("pair", [PoissonSampledGaussian(1.0, 0.02), RandomizedResponse(2, 0.05)])
def test_one_more_release_misses_the_target(pair):
    found = largest_count(pair, epsilon=1.0, delta=1e-4)
    assert found.lower == found.value == found.upper
    count = int(found.value)
    assert compose(pair, count).delta(1.0).upper <= 1e-4
    assert compose(pair, count + 1).delta(1.0).lower > 1e-4


def test_ends_of_counts():
    assert largest_count(GaussianMechanism(1.0, 1.0), epsilon=0.1, delta=1e-9).upper == 0.0
    assert largest_count(GaussianMechanism(1.0, 0.0), epsilon=0.0, delta=0.0).lower == 10**9
    assert largest_count(GaussianMechanism(1e6, 1.0), epsilon=1.0, delta=1e-5, limit=50).value == 50.0
    assert largest_count(RandomizedResponse(2, 0.5), epsilon=1.75, delta=0.0).value == 3.0


def test_sigma_of_gaussians():
    truth = GaussianMechanism.calibrated(np.array([0.5, 2.0]), 1e-6, 1.0).sigma
    found = least_sigma(lambda s: GaussianMechanism(s, 1.0), epsilon=[0.5, 2.0], delta=1e-6, count=9)
    assert np.allclose(found.upper, 3.0 * truth, rtol=2e-9)
    assert (found.lower <= 3.0 * truth).all()
    assert (found.upper >= 3.0 * truth * (1 - 1e-12)).all()


def test_sigma_of_a_training():
    found = least_sigma(lambda s: PoissonSampledGaussian(s, 0.02), epsilon=2.0, delta=1e-5, count=500)
    assert found.upper - found.lower <= 1e-8 * found.upper
    for sigma, side in ((found.upper, "upper"), (found.lower, "lower")):
        delta = getattr(compose(PoissonSampledGaussian(sigma, 0.02), 500).delta(2.0), side)
        assert (delta <= 1e-5) if side == "upper" else (delta >= 1e-5)
    assert found.cost["evaluations"] < 20


def test_ends_of_sigma():
    assert least_sigma(lambda s: GaussianMechanism(s, 1.0), epsilon=1.0, delta=1e-5, count=0).upper == 0.0
    assert least_sigma(lambda s: GaussianMechanism(s, 1.0), epsilon=[1.0, math.inf], delta=1.0).upper.tolist() == [0, 0]
    assert least_sigma(LaplaceMechanism, epsilon=1.0, delta=0.0, count=2).upper == pytest.approx(2.0, rel=1e-8)
    for mechanism in (GaussianMechanism, lambda s, rate: PoissonSampledGaussian(s, 0.5 * rate)):
        with pytest.raises(DomainError, match=r"^delta must be positive where losses are unbounded, .*; got 0.0\."):
            least_sigma(lambda s, pair=mechanism: pair(s, 1.0), epsilon=1.0, delta=0.0, count=3)


def test_what_is_refused():
    pair = GaussianMechanism(1.0, 1.0)
    for call, text in (
        (lambda: least_sigma(pair, epsilon=1.0, delta=0.1), "pair_of_sigma must be a function of sigma; got"),
        (lambda: least_sigma(lambda s: pair, epsilon=1.0, delta=0.1, count=-1), "count must be an integer"),
        (lambda: least_sigma(lambda s: pair, epsilon=1.0, delta=0.1, rtol=2.0), "rtol must be"),
        (lambda: largest_count(pair, epsilon=-1.0, delta=0.1), "epsilon must be at least 0"),
        (lambda: largest_count(pair, epsilon=1.0, delta=2.0), "delta must be between 0 and 1"),
        (lambda: largest_count(pair, epsilon=1.0, delta=0.1, limit=0), "limit must be an integer of at least 1"),
        (lambda: largest_count(pair, epsilon=[1.0, 2.0], delta=[0.1] * 3), "epsilon"),
    ):
        with pytest.raises((DomainError, ShapeError), match=text):
            call()


@pytest.mark.filterwarnings("error")
def test_noise_so_small_that_losses_are_no_doubles():
    """Every loss of a sampled record is beyond epsilon: delta is the probability that one release at least samples."""
    for sigma, epsilon in ((1e-200, 1e308), (1e-160, 1e300)):
        found = compose(PoissonSampledGaussian(sigma, 0.01), 100).log_delta(epsilon)
        assert found.lower <= math.log(-math.expm1(100 * math.log1p(-0.01))) <= found.upper + 1e-14
        assert found.upper <= -0.4557
