"""Epsilon of trainings against Gaussian mechanisms and against sampled losses of small compositions."""

import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from fastpriv import DomainError, GaussianMechanism
from fastpriv.studies.leakage import Protection, SoftmaxRegression, Training
from fastpriv.studies.leakage.training_privacy import epsilon_of_training

MODEL = SoftmaxRegression(4, 2)


def training(multiplier=2.0, rounds=3, rate=0.1, n=100, **words):
    guard = Protection.dp_sgd(0.5, multiplier, rate * n)
    return Training(MODEL, **{"rounds": rounds, "learning_rate": 0.1, "batch": "poisson", "sampling_rate": rate,
                              "protection": guard} | words)  # fmt: skip


def one_round(mu, rate, delta):
    """Least epsilon of one round, by numerical integration of both orders of the pair."""

    x = np.linspace(-12.0, 12.0 + mu, 200_001)
    q = stats.norm.pdf(x)
    p = (1 - rate) * q + rate * stats.norm.pdf(x, mu)

    def curve(epsilon, swapped):
        above = q - math.exp(epsilon) * p if swapped else p - math.exp(epsilon) * q
        return integrate.trapezoid(np.maximum(above, 0.0), x)

    def inverse(swapped):
        return optimize.brentq(lambda e: curve(e, swapped) - delta, 0.0, 20.0) if curve(0.0, swapped) > delta else 0.0

    return max(inverse(False), inverse(True))


@pytest.mark.parametrize(("mu", "rate", "delta"), [(0.5, 0.1, 1e-3), (2.0, 0.3, 1e-2), (1.0, 0.9, 1e-4)])
def test_one_round(mu, rate, delta):
    found = epsilon_of_training(mu, rate, 1, delta)
    truth = one_round(mu, rate, delta)
    assert found.lower - 1e-7 <= truth <= found.upper + 1e-7
    assert found.upper - found.lower < 1e-9 * truth


def test_full_batches_are_a_gaussian_mechanism():
    guard = Protection.dp_sgd(0.5, 3.0, 100)
    run = training(rounds=9, batch="full", sampling_rate=None, protection=guard, local_steps=4)
    expected = GaussianMechanism(3.0, math.sqrt(9 * 4)).epsilon(1e-5)
    assert run.epsilon(1e-5, 100).value == pytest.approx(expected.value, rel=1e-12)
    near = epsilon_of_training(2.0, 1.0 - 1e-9, 2, 1e-5)
    assert near.lower - 1e-6 <= GaussianMechanism(1.0, 2.0 * math.sqrt(2)).epsilon(1e-5).value <= near.upper + 1e-6


def test_several_rounds_by_sampled_losses():
    """Delta at the found epsilon, estimated from losses of composed rounds: a count with its own error."""
    run = training(multiplier=1.0, rounds=5, rate=0.2)
    found = run.epsilon(0.01, 100)
    rng, count = np.random.default_rng(1), 400_000
    x = rng.standard_normal((count, 5)) + (rng.random((count, 5)) < 0.2)
    loss = np.log1p(0.2 * np.expm1(x - 0.5)).sum(axis=1)
    terms = np.maximum(0.0, -np.expm1(found.value - loss))
    assert abs(terms.mean() - 0.01) < 6 * terms.std() / math.sqrt(count) + 0.01 * (found.upper - found.lower)


def test_local_steps_of_a_batch_count_as_one_gaussian():
    several = training(multiplier=4.0, local_steps=4).epsilon(1e-5, 100)
    single = training(multiplier=2.0).epsilon(1e-5, 100)
    assert several.value == pytest.approx(single.value, rel=1e-9)


@pytest.mark.slow
def test_ends():
    assert epsilon_of_training(8.0, 0.5, 3, 1e-5).upper == pytest.approx(145.345198169, rel=1e-9)
    assert epsilon_of_training(0.1, 0.1, 1, 0.5).upper == 0.0
    assert epsilon_of_training(0.1, 0.1, 1, 0.0).lower == math.inf
    assert epsilon_of_training(1e-6, 0.01, 1, 1e-5).upper == 0.0


def test_what_is_not_known_is_refused():
    text = "protection must clip examples and add normal noise to every step, in Poisson or full batches; got"
    for wrong in (
        training(protection=Protection()), training(batch="fixed", batch_size=3, sampling_rate=None),
        training(protection=Protection(clip_example=1.0, noise="laplace", scale=1.0)), training(
            protection=Protection(noise="gaussian", scale=1.0)),
        training(protection=Protection(clip_example=1.0, noise="gaussian", scale=1.0), local_steps=2),
    ):  # fmt: skip
        with pytest.raises(DomainError, match=text):
            wrong.epsilon(1e-5, 100)
