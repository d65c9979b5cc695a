"""Comparisons of Gram matrices, against exact curves where these are known and quadrature for few patterns."""

from __future__ import annotations

import math
import pickle

import mpmath
import numpy as np
import pytest

from fastpriv import DomainError, GaussianMechanism, compose
from fastpriv.composition import BandedMatrixMechanism, RandomAllocation
from fastpriv.errors import ShapeError
from fastpriv.pairs import MatrixMechanism
from oracles import structured_sampling as oracle

DIRECTIONS = ("forward", "backward")


def toeplitz(column, bins):
    matrix = np.zeros((bins + len(column) - 1, bins))
    for i in range(bins):
        matrix[i : i + len(column), i] = column
    return matrix


@pytest.mark.slow
@pytest.mark.parametrize(("bins", "sigma", "epsilon"), [(3, 1.0, 0.5), (4, 2.0, 0.3), (16, 2.0, 1.0)])
def test_banded_matrices(bins, sigma, epsilon):
    for direction in DIRECTIONS:
        truth = BandedMatrixMechanism([1.0, 0.5], sigma, bins).delta(epsilon, direction=direction)
        found = MatrixMechanism(toeplitz([1.0, 0.5], bins), sigma, np.eye(bins)).delta(epsilon, direction=direction)
        print(bins, direction, found)
        assert found.lower <= truth.upper
        assert truth.lower <= found.upper
        assert found.upper <= 1.5 * found.lower


@pytest.mark.slow
def test_entries_that_are_all_alike_are_exact():
    """All patterns share a step: the Gaussian mechanism of that step, and an allocation of the others."""
    patterns = np.hstack([np.ones((8, 1)), np.eye(8)])
    for direction in DIRECTIONS:
        exact = compose([GaussianMechanism(2.0, 1.0), RandomAllocation(2.0, 8)]).delta(0.5, direction=direction)
        found = MatrixMechanism(np.eye(9), 2.0, patterns).delta(0.5, direction=direction)
        assert found.lower <= exact.upper
        assert exact.lower <= found.upper <= 1.01 * exact.upper
        assert found.lower >= 0.99 * exact.lower


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_random_matrices_by_quadrature(seed):
    rng = np.random.default_rng(seed)
    n = 2 + seed % 2
    matrix, patterns = rng.random((5, 4)), (rng.random((n, 4)) < 0.6) * 1.0 + np.eye(n, 4)
    means = patterns @ matrix.T / 3.0
    gram = [[mpmath.mpf(float(x)) for x in row] for row in means @ means.T]
    one = MatrixMechanism(matrix, 3.0, patterns)
    for direction in DIRECTIONS:
        truth = oracle.bins_delta(gram, 0.4, direction == "backward", 0.1, 10.0)
        found = one.delta(0.4, direction=direction)
        print(seed, direction, found, truth)
        assert found.lower <= truth * (1 + 1e-6)
        assert truth * (1 - 1e-6) <= found.upper


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("seed", [1, 2])
def test_unequal_patterns_by_sampling(seed):
    rng, samples, epsilon = np.random.default_rng(seed), 100_000, 0.7
    matrix, patterns = np.tril(rng.random((12, 12)) ** 4), np.vstack([np.eye(12)[::2] + np.eye(12)[1::2], np.eye(12)])
    weights = rng.dirichlet(np.ones(18))
    means = patterns @ matrix.T
    noise = rng.standard_normal((samples, 12))
    ratio, own = (np.exp(x @ means.T - 0.5 * (means**2).sum(axis=1)) @ weights
                  for x in (noise, noise + means[rng.choice(18, samples, p=weights)]))
    one = MatrixMechanism(matrix, 1.0, patterns, weights)
    for direction, values in (("forward", np.maximum(1.0 - math.exp(epsilon) / own, 0.0)),
                              ("backward", np.maximum(1.0 - math.exp(epsilon) * ratio, 0.0))):
        found, spread = one.delta(epsilon, direction=direction), 5.0 * values.std() / math.sqrt(samples)
        print(seed, direction, found, values.mean())
        assert found.lower <= values.mean() + spread
        assert values.mean() - spread <= found.upper


def test_objects_and_errors():
    one = MatrixMechanism(np.eye(3), 1.0, np.eye(3), [0.5, 0.25, 0.25])
    again = pickle.loads(pickle.dumps(one))
    assert (again, hash(again)) == (one, hash(one))
    for arguments, error, word in (
        ((-np.eye(3), 1.0, np.eye(3)), DomainError, "matrix"), ((np.eye(3), 0.0, np.eye(3)), DomainError, "sigma"),
        ((np.eye(3), 5e-324, np.eye(3)), DomainError,
         "the largest entries of matrix and patterns, times sensitivity over sigma must be below 1e100; got inf"),
        ((np.eye(3), 1.0, np.eye(2)), ShapeError, "patterns"), ((np.eye(3), 1.0, np.ones(3)), ShapeError, "patterns"),
        ((np.eye(3), 1.0, np.eye(3), [0.5, 0.5]), ShapeError, "probabilities"),
        ((np.eye(3), 1.0, np.eye(3), [0.5, 0.5, 0.5]), DomainError, "probabilities"),
        ((np.eye(3), 1.0, np.eye(3), None, math.inf), DomainError, "sensitivity"),
        ((np.eye(3) * np.nan, 1.0, np.eye(3)), DomainError, "matrix"),
    ):
        with pytest.raises(error, match=word):
            MatrixMechanism(*arguments)
