"""GaussianMechanism: bounds that hold, broadcasting, and every error it raises."""

import math
import pickle

import numpy as np
import pytest
from flint import arb, ctx

from fastpriv import DomainError, GaussianMixture, Pmf
from fastpriv.errors import ShapeError
from fastpriv.mechanisms.gaussian import GaussianMechanism
from oracles import gaussian_mechanism as oracle


def random_settings(n=1500):
    rng = np.random.default_rng(5)
    sigma, sensitivity = 10 ** rng.uniform(-20, 20, n), 10 ** rng.uniform(-20, 20, n)
    near = rng.random(n) < 0.7
    sensitivity = np.where(near, sigma * 10 ** rng.uniform(-3, 2, n), sensitivity)
    r = sensitivity / sigma / 2
    epsilon = np.maximum(2 * r * (r + rng.uniform(-8, 35, n)), 0)
    return sigma, sensitivity, epsilon


def log_truth(sigma, sensitivity, epsilon):
    """With r = sensitivity / (2 sigma) exactly."""
    return oracle.log_delta_of(lambda: arb(float(sensitivity)) / 2 / arb(float(sigma)), float(epsilon))


def test_bounds_contain_the_truth_with_the_rounding_of_r():
    sigma, sensitivity, epsilon = random_settings()
    mechanism = GaussianMechanism(sigma, sensitivity)
    delta, log_delta = mechanism.delta(epsilon), mechanism.log_delta(epsilon)
    assert delta.kind == log_delta.kind == "exact"
    assert (delta.unit, log_delta.unit) == ("probability", "log probability")
    for i in range(sigma.size):
        if epsilon[i] / sensitivity[i] * sigma[i] - sensitivity[i] / sigma[i] / 2 < -60:
            continue
        row = (float(sigma[i]), float(sensitivity[i]), float(epsilon[i]))
        truth = log_truth(*row)
        assert arb(float(log_delta.lower[i])) <= truth <= arb(float(log_delta.upper[i])), row
        ctx.prec = 200
        true = truth.exp()  # a ball: next to 1 it may touch 1
        assert not true < arb(float(delta.lower[i])), row
        assert not true > arb(float(delta.upper[i])), row


def test_epsilon_bounds_contain_the_inverse():
    sigma, sensitivity, _ = random_settings()
    delta = 10 ** np.random.default_rng(6).uniform(-20, -1e-3, sigma.size)
    epsilon = GaussianMechanism(sigma, sensitivity).epsilon(delta)
    assert epsilon.unit == "nats"
    assert ((epsilon.lower <= epsilon.value) & (epsilon.value <= epsilon.upper)).all()
    for i in range(sigma.size):
        row = (float(sigma[i]), float(sensitivity[i]), float(delta[i]))
        ctx.prec = 200
        goal = arb(float(delta[i])).log()
        if math.isfinite(epsilon.upper[i]):
            assert log_truth(sigma[i], sensitivity[i], epsilon.upper[i]) <= goal, row
        if epsilon.lower[i] > 0:
            assert log_truth(sigma[i], sensitivity[i], epsilon.lower[i]) >= goal, row


def test_calibrated_meets_its_target_and_is_the_least():
    rng = np.random.default_rng(7)
    n = 1000
    epsilon, sensitivity = 10 ** rng.uniform(-3, 2, n), 10 ** rng.uniform(-9, 9, n)
    delta = 10 ** rng.uniform(-100, -0.01, n)
    mechanism = GaussianMechanism.calibrated(epsilon, delta, sensitivity)
    logarithmic = GaussianMechanism.calibrated_from_log_delta(epsilon, np.log(delta), sensitivity)
    np.testing.assert_allclose(logarithmic.sigma, mechanism.sigma, rtol=1e-12)
    for i in range(n):
        row = (float(epsilon[i]), float(delta[i]), float(sensitivity[i]), float(mechanism.sigma[i]))
        ctx.prec = 200
        goal = arb(float(delta[i])).log()
        assert log_truth(mechanism.sigma[i], sensitivity[i], epsilon[i]) <= goal, row
        assert log_truth(mechanism.sigma[i] * (1 - 1e-13), sensitivity[i], epsilon[i]) > goal, row


def test_limits():
    still = GaussianMechanism(1.0, 0.0)
    assert still.delta([0.0, 1.0]).upper.tolist() == [0.0, 0.0]
    assert still.log_delta(1.0).upper == -math.inf
    assert still.epsilon(0.0).value == 0.0
    noisy = GaussianMechanism(1.0, 1.0)
    assert noisy.delta(math.inf).upper == 0.0
    assert noisy.log_delta(math.inf).upper == -math.inf
    assert noisy.epsilon(1.0).value == 0.0
    none = noisy.epsilon([0.0, 0.5])
    assert none.value.tolist() == [math.inf, 0.0]
    assert "no finite epsilon" in none.method
    assert "no finite epsilon" not in noisy.epsilon(0.5).method
    assert noisy.epsilon_from_log_delta(-math.inf).value == math.inf
    assert noisy.log_delta(1e200).lower == -math.inf
    assert noisy.log_delta(1e200).upper == -np.finfo(float).max
    assert GaussianMechanism(1e-300, 1e300).delta(1.0).value == 1.0


def test_scalars_arrays_and_broadcasting():
    scalar = GaussianMechanism(2.0, 1.0)
    assert isinstance(scalar.sigma, float)
    assert isinstance(scalar.delta(1.0).value, float)
    grid = GaussianMechanism(np.array([[1.0], [2.0]]), 1.0)
    assert grid.delta([0.1, 0.2, 0.3]).shape == (2, 3)
    assert grid.epsilon(np.full(3, 1e-6)).shape == (2, 3)
    assert grid.delta([0.1, 0.2, 0.3]).value[1, 2] == scalar.delta(0.3).value
    assert GaussianMechanism.calibrated([0.5, 1.0], [[1e-5], [1e-6]], 2.0).sigma.shape == (2, 2)


def test_value_object():
    mechanism = GaussianMechanism([1.0, 2.0], 1.0)
    with pytest.raises(AttributeError, match="GaussianMechanism is immutable; build a new one instead of"):
        mechanism.sigma = 3.0
    with pytest.raises(ValueError, match="read-only"):
        mechanism.sigma[0] = 3.0
    again = pickle.loads(pickle.dumps(mechanism))
    np.testing.assert_array_equal(again.sigma, mechanism.sigma)
    assert repr(GaussianMechanism(1.0)) == "GaussianMechanism(sigma=1.0, sensitivity=None)"


def test_laws_of_the_output():
    mechanism = GaussianMechanism(2.0)
    assert mechanism.conditional_distribution(3.0) == GaussianMixture.single(3.0, 2.0)
    prior = Pmf([0.0, 1.0], [0.25, 0.75])
    assert mechanism.output_distribution(prior) == prior.through_gaussian(2.0)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: GaussianMechanism(0.0, 1.0), DomainError, "sigma must be positive and finite; got 0.0. Pass"),
        (lambda: GaussianMechanism([1, -1], 1.0), DomainError, r"sigma must be .*; got -1.0 at index 1 \(1 of 2"),
        (lambda: GaussianMechanism(math.nan, 1.0), DomainError, "sigma must be positive and finite; got nan"),
        (lambda: GaussianMechanism("two", 1.0), DomainError, "sigma must be positive and finite; got 'two'"),
        (lambda: GaussianMechanism(1.0, -1.0), DomainError, "sensitivity must be at least 0 and finite; got -1.0"),
        (lambda: GaussianMechanism(1.0, math.inf), DomainError, "sensitivity must be at least 0 and finite; got inf"),
        (
            lambda: GaussianMechanism([1.0, 2.0], [1.0, 2.0, 3.0]), ShapeError,
            r"sigma must be of a shape that broadcasts with sensitivity; got \(2,\) and \(3,\). Add axes of length 1",
        ),
        (
            lambda: GaussianMechanism(1.0).delta(1.0), DomainError,
            r"sensitivity must be given for the privacy curve; got None. Pass GaussianMechanism\(sigma, sensitivity=",
        ),
        (lambda: GaussianMechanism(1.0, 1.0).delta(math.nan), DomainError, "epsilon must be a number; got nan"),
        (lambda: GaussianMechanism(1.0, 1.0).log_delta(math.nan), DomainError, "epsilon must be a number; got nan"),
        (
            lambda: GaussianMechanism([1.0, 2.0], 1.0).delta([1.0, 2.0, 3.0]), ShapeError,
            "epsilon must be of a shape that broadcasts with sigma and sensitivity",
        ),
        (lambda: GaussianMechanism(1.0, 1.0).epsilon(1.5), DomainError, "delta must be between 0 and 1; got 1.5"),
        (
            lambda: GaussianMechanism(1.0, 1.0).epsilon_from_log_delta(0.1), DomainError,
            "log_delta must be at most 0; got 0.1",
        ),
        (
            lambda: GaussianMechanism([1.0, 2.0], 1.0).epsilon([0.1, 0.2, 0.3]), ShapeError,
            "delta must be of a shape that broadcasts with sigma and sensitivity",
        ),
        (lambda: GaussianMechanism([1.0, 2.0]).conditional_distribution([0.0, 1.0, 2.0]), ShapeError,
         "x must be of a shape that broadcasts with sigma"),
        (
            lambda: GaussianMechanism.calibrated(1.0, 0.0, 1.0), DomainError,
            "delta must be strictly between 0 and 1; got 0.0. delta = 0 needs infinite noise",
        ),
        (lambda: GaussianMechanism.calibrated(1.0, 1.0, 1.0), DomainError, "delta must be strictly between 0 and 1"),
        (lambda: GaussianMechanism.calibrated(-1.0, 0.1, 1.0), DomainError, "epsilon must be at least 0 and finite"),
        (lambda: GaussianMechanism.calibrated(1.0, 0.1, 0.0), DomainError, "sensitivity must be positive and finite"),
        (
            lambda: GaussianMechanism.calibrated_from_log_delta(1.0, 0.0, 1.0), DomainError,
            "log_delta must be finite and below 0; got 0.0",
        ),
        (
            lambda: GaussianMechanism.calibrated_from_log_delta(0.0, -1e6, 1.0), DomainError,
            "epsilon must be large enough for a finite sigma; got 0.0. Raise epsilon or log_delta",
        ),
        (
            lambda: GaussianMechanism.calibrated([1.0, 2.0], [0.1, 0.2, 0.3], 1.0), ShapeError,
            "epsilon must be of a shape that broadcasts with delta",
        ),
        (
            lambda: GaussianMechanism.calibrated([1.0, 2.0], 0.1, [1.0, 2.0, 3.0]), ShapeError,
            "sensitivity must be of a shape that broadcasts with epsilon and delta",
        ),
    ],
)
def test_every_error(call, error, text):
    with pytest.raises(error, match=text):
        call()
