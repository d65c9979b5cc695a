"""Allocations of any mechanism, against sums over all outcomes in exact fractions and against other engines."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from fastpriv import DomainError, GaussianMechanism, GaussianMixture, LaplaceMechanism, PoissonSampledGaussian, compose
from fastpriv.composition import RandomAllocation
from fastpriv.mechanisms import RandomizedResponse
from fastpriv.pairs import Allocation
from oracles import structured_sampling as oracle

DIRECTIONS = ("forward", "backward")
LAWS = (
    ("3/4 1/4", "1/4 3/4"), ("1/2 1/4 1/4 0", "1/8 1/2 1/4 1/8"), ("1/2 1/4 1/4", "0 1/2 1/2"),
    ("1/1048576 1048575/1048576", "1/2 1/2"), ("3/8 3/8 1/4", "1/4 3/8 3/8"), ("1/2 1/2", "1/1048576 1048575/1048576"),
)


def fractions(text):
    return [Fraction(x) for x in text.split()]


@pytest.mark.parametrize("laws", LAWS)
@pytest.mark.parametrize(("steps", "times"), [(1, 1), (2, 1), (3, 1), (5, 1), (4, 2), (5, 2), (3, 3), (2, 2)])
def test_discrete_laws_in_fractions(laws, steps, times):
    p, q = map(fractions, laws)
    one = Allocation(tuple(np.array([float(x) for x in law]) for law in (p, q)), steps, times)
    worst = 0.0
    for direction, x in itertools.product(DIRECTIONS, (Fraction(1), Fraction(9, 8), Fraction(3), Fraction(1000))):
        epsilon = math.log(x)
        ends = [oracle.allocation_of_atoms(p, q, steps, times, Fraction(math.exp(epsilon)) * (1 + slack),
                                           direction == "backward")
                for slack in (Fraction(-4, 2**52), Fraction(4, 2**52))]
        found = one.delta(epsilon, direction=direction)
        assert Fraction(float(found.lower)) <= ends[0] * (1 + Fraction(1, 2**48)), (direction, x, found)
        assert ends[1] * (1 - Fraction(1, 2**48)) <= Fraction(float(found.upper)), (direction, x, found)
        if times == 1:
            worst = max(worst, float(found.upper - found.lower))
    print(laws, steps, times, worst)
    assert worst < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "steps"), [
    (1.0, 2), pytest.param(1.0, 10, marks=pytest.mark.slow), (0.5, 40), (0.2, 10),
    pytest.param(3.0, 1000, marks=pytest.mark.slow),
])
def test_normal_noise_on_a_grid_of_losses_is_the_random_allocation(sigma, steps):
    pair = GaussianMixture.single(1.0, sigma), GaussianMixture.single(0.0, sigma)
    for direction in DIRECTIONS:
        exact = RandomAllocation(sigma, steps).delta([0.05, 0.3, 1.0], direction=direction)
        found = Allocation(pair, steps).delta([0.05, 0.3, 1.0], direction=direction)
        assert (found.lower <= exact.upper).all(), (found, exact)
        assert (exact.lower <= found.upper).all(), (found, exact)
        assert (found.upper <= 1.02 * found.lower + 1e-30).all()
        assert Allocation(GaussianMechanism(sigma, 1.0), steps).delta(0.3, direction=direction) == RandomAllocation(
            sigma, steps).delta(0.3, direction=direction)


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "epsilon"), [(1.0, 0.7), (5.0, 0.01)])
def test_two_steps_of_laplace_noise(scale, epsilon):
    """By quadrature over the loss of the first step: what is left is the curve of one step, at another level."""
    shift, x = 1.0 / scale, math.exp(epsilon)
    # losses under Q: atoms at both ends, e^(-(l + shift)/2)/4 between
    nodes, weights = np.polynomial.legendre.leggauss(4000)
    losses = np.concatenate([[shift, -shift], shift * nodes])
    density = shift * weights * np.exp(-0.5 * (shift * nodes + shift)) / 4
    masses = np.concatenate([[0.5 * math.exp(-shift), 0.5], density])
    r = np.exp(losses)
    truth = {}
    for direction in DIRECTIONS:
        sums = np.add.outer(r, r) / 2
        values = np.maximum(sums - x, 0.0) if direction == "forward" else np.maximum(1 - x * sums, 0.0)
        truth[direction] = float(masses @ values @ masses)
    for direction in DIRECTIONS:
        found = Allocation(LaplaceMechanism(scale=scale), 2).delta(epsilon, direction=direction)
        assert found.lower <= truth[direction] * (1 + 1e-5)
        assert truth[direction] * (1 - 1e-5) <= found.upper
        assert found.upper <= 1.001 * found.lower


def test_sampled_steps_by_sampling():
    rng, steps, samples, rate, epsilon = np.random.default_rng(2), 10, 200_000, 0.3, 0.3
    ratio = (1.0 - rate + rate * np.exp(rng.standard_normal((samples, steps)) - 0.5)).mean(axis=1)
    found = Allocation(PoissonSampledGaussian(1.0, rate), steps).delta(epsilon, direction="forward")
    values = np.maximum(ratio - math.exp(epsilon), 0.0)
    assert abs(values.mean() - found.value) < 5.0 * values.std() / math.sqrt(samples)
    assert found.upper < 1.01 * found.lower


def test_vast_losses_are_told_apart():
    for direction in ("forward", "backward"):
        found = compose(RandomAllocation(1e-3, 10)).log_delta([4e5, 6e5], direction=direction)
        assert found.lower[0] > -1e-9
        assert found.upper[1] < -600.0


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "steps", "epsilon"), [(0.02, 10, 1150.0), (0.02, 1000, 900.0)])
def test_vast_losses_in_both_directions(sigma, steps, epsilon):
    """Between the event that a sum of a step exceeds a threshold, and the Gaussian mechanism of one step."""
    made = compose(RandomAllocation(sigma, steps))
    found = {one: made.log_delta(epsilon, direction=one) for one in ("forward", "backward")}
    with mpmath.workdps(int(0.5 * epsilon) + 30):
        a, x, phi = 1 / mpmath.mpf(sigma), mpmath.mpf(epsilon), mpmath.ncdf
        for direction in found:
            events = []
            for i in range(-8, 9):  # all steps at most c, or some step above it
                c = (a / 2 - x / a if direction == "backward" else a / 2 + x / a) + mpmath.mpf(i) / 4
                below_q, below_p = steps * mpmath.log(phi(c)), (steps - 1) * mpmath.log(phi(c)) + mpmath.log(phi(c - a))
                if direction == "backward":
                    events.append(mpmath.exp(below_q) - mpmath.exp(x + below_p))
                else:
                    events.append(-mpmath.expm1(below_p) + mpmath.exp(x) * mpmath.expm1(below_q))
            least, most = max(events), phi(a / 2 - x / a) - mpmath.exp(x) * phi(-a / 2 - x / a)
            estimate = found[direction]
            assert estimate.upper >= float(mpmath.log(least))
            assert estimate.lower <= float(mpmath.log(most)) + 1e-12
            assert estimate.lower >= float(mpmath.log(least)) - (0.5 if direction == "forward" else 5.0)
            assert estimate.upper <= float(mpmath.log(most)) + 1e-11


@pytest.mark.parametrize("times", [2, 3, 6])
@pytest.mark.slow
def test_normal_noise_several_times(times):
    """The mean over all subsets by the trapezoidal rule is out of reach: samples, as a sanity."""
    rng, steps, samples, sigma, epsilon = np.random.default_rng(4), 6, 100_000, 1.5, 0.5
    logs = rng.standard_normal((samples, steps)) / sigma - 0.5 / sigma**2
    subsets = list(itertools.combinations(range(steps), times))
    ratio = np.mean([np.exp(logs[:, list(chosen)].sum(axis=1)) for chosen in subsets], axis=0)
    one = Allocation(GaussianMechanism(sigma, 1.0), steps, times)
    for direction, values in (("forward", np.maximum(ratio - math.exp(epsilon), 0.0)),
                              ("backward", np.maximum(1.0 - math.exp(epsilon) * ratio, 0.0))):
        found, spread = one.delta(epsilon, direction=direction), 5.0 * values.std() / math.sqrt(samples)
        print(times, direction, found, values.mean())
        assert found.lower <= values.mean() + spread
        assert values.mean() - spread <= found.upper
        assert found.lower > 0.2 * values.mean()


@pytest.mark.slow
def test_randomised_response_in_many_steps():
    found = Allocation(RandomizedResponse(2, 1.0), 1000).delta(0.05)
    assert found.upper < 1.0001 * found.lower
    assert compose(Allocation(RandomizedResponse(2, 1.0), 20), 3).delta(0.2).upper < 0.2


@pytest.mark.slow
def test_two_responses_in_each_step():
    """A composition as the base: all outcomes of both responses."""
    p, q = (np.array([[0.75, 0.25], [0.25, 0.75]])[[i, i]] for i in (0, 1))
    both = [np.multiply.outer(one[0], one[1]).ravel() for one in (p, q)]
    exact = Allocation(tuple(both), 3).delta(0.5, direction="forward")
    found = Allocation(compose(([0.75, 0.25], [0.25, 0.75]), 2), 3).delta(0.5, direction="forward")
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper <= 1.02 * exact.upper


def test_objects_and_errors():
    for one in (Allocation(([0.5, 0.5], [0.25, 0.75]), 4), Allocation(LaplaceMechanism(scale=1.0), 4, times=2)):
        again = pickle.loads(pickle.dumps(one))
        assert (again, hash(again), repr(again)) == (one, hash(one), repr(one))
    for arguments, word in (((LaplaceMechanism(scale=1.0), 0), "steps"), ((LaplaceMechanism(scale=1.0), 3, 4), "times"),
                            ((3.0, 3), "base"), ((math.nan, 3), "base"), ((GaussianMechanism(1.0), 3), "sensitivity"),
                            (([LaplaceMechanism(scale=1.0)], 3), "base")):
        with pytest.raises(DomainError, match=word):
            Allocation(*arguments)
