"""What is wrong with likelihoods and priors over huge domains is said with its place and a remedy."""

import math

import numpy as np
import pytest

from fastpriv import DomainError, posterior
from fastpriv.channels import DefaultLikelihood, IndexLikelihood, ProductLikelihood, SubsetLikelihood
from fastpriv.errors import ShapeError

# Logarithms between 0 and 1 are rare outside of these tests, and warned of.
pytestmark = pytest.mark.filterwarnings("ignore:.*must hold natural logarithms:UserWarning")

DEFAULT = DefaultLikelihood(10**12, -1.0, [3], [0.0])


def check_error(kind, words, *arguments, **options):
    with pytest.raises(kind, match=words):
        posterior(*arguments, **options)


def test_releases_that_cannot_happen():
    nothing = DefaultLikelihood(10**12, -math.inf, [3], [-math.inf])
    check_error(DomainError, "positive for a secret with a positive prior; got -inf for all of them", nothing)
    check_error(DomainError, "with a positive prior; got -inf", ProductLikelihood([[0.0, 1.0], [-np.inf, -np.inf]]))


def test_priors_of_a_default():
    check_error(ShapeError, "one entry for each of the 1000000000000 secrets; got 5", DEFAULT,
            DefaultLikelihood(5, math.log(0.2), [], []))
    check_error(DomainError, r"prior must sum to 1 within 1e-09; got 0.5.*holds logarithms", DEFAULT,
            DefaultLikelihood(10**12, -math.inf, [3], [math.log(0.5)]))
    check_error(DomainError, "prior must be positive for a secret; got none", DEFAULT,
            DefaultLikelihood(10**12, -math.inf, [], []))


def test_factors_and_their_priors():
    two = ProductLikelihood([[0.0, 1.0], [0.0, 1.0, 2.0]], [1, 3])
    check_error(ShapeError, "prior for each of the 2 factors, or of the 4 coordinates; got", two, [None, None, None])
    check_error(ShapeError, "sequence with one prior for each", two, 0.5)
    check_error(ShapeError, "each of the 2 secrets of a factor; got 3", two, [[0.2, 0.3, 0.5], None])
    check_error(DomainError, "factors must have at most 16777216 secrets where they are written out; got 100000000",
            ProductLikelihood([IndexLikelihood(np.sin, 10**8)]))
    subsets = SubsetLikelihood(np.zeros(4), np.zeros((4, 4)), 2)
    check_error(DomainError, "or functions of an index; got a SubsetLikelihood", ProductLikelihood([subsets]))
    check_error(DomainError, "factors must be log likelihoods below infinity", ProductLikelihood([[0.0, np.inf]]))


def test_where_probabilities_are_written():
    two = ProductLikelihood([[0.0, 1.0]], [2])
    for likelihood in (DEFAULT, two, SubsetLikelihood(np.zeros(4), np.zeros((4, 4)), 2)):
        check_error(DomainError, "out must be None for likelihoods that are not written out; got 'all.npy' for",
                likelihood, out="all.npy")


def test_functions_that_fail_are_named_with_their_block():
    def failing(d):
        if d[-1] >= 600_000:
            raise ZeroDivisionError("no such secret")
        return 0.0 * d

    check_error(DomainError, r"function must return a log likelihood for every secret; got ZeroDivisionError: no such "
            r"secret in block 2, secrets 589824 to 606207", IndexLikelihood(failing, 10**6))
    check_error(DomainError, r"return one real number a secret; got float64 of shape \(\) for 10 secrets in block 0",
            IndexLikelihood(lambda d: 0.5, 10))
    check_error(DomainError, r"below infinity; got nan at index 300000, in block 1 \(1 of",
            IndexLikelihood(lambda d: np.where(d == 300_000, np.nan, 0.0), 10**6))
    check_error(DomainError, r"log likelihoods, numbers below infinity; got inf at index 7,",
            IndexLikelihood(lambda d: np.where(d == 7, np.inf, 0.0), 10))


def test_jitted_functions():
    numba = pytest.importorskip("numba")
    check_error(DomainError, "one real number; got .*, which returns .* for one index",
            IndexLikelihood(numba.njit(lambda d: (d, d)), 10))


def test_index_likelihoods():
    with pytest.raises(DomainError, match="function must be a function; got 3"):
        IndexLikelihood(3, 10)
    with pytest.raises(DomainError, match="size must be an integer of at least 1 and at most 28147497671065"):
        IndexLikelihood(np.sin, 2**70)
