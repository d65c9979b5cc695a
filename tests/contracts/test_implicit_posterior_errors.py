"""What is wrong with likelihoods and priors over huge domains is said with its place and a remedy."""

import math

import numpy as np
import pytest

from fastpriv import (
    DefaultLikelihood,
    DomainError,
    IndexLikelihood,
    ProductLikelihood,
    ShapeError,
    SubsetLikelihood,
    posterior,
)  # fmt: skip

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
            DefaultLikelihood(5, math.log(0.2), [], []))  # fmt: skip
    check_error(DomainError, r"prior must sum to 1 within 1e-09; got 0.5.*holds logarithms", DEFAULT,
            DefaultLikelihood(10**12, -math.inf, [3], [math.log(0.5)]))  # fmt: skip
    check_error(DomainError, "prior must be positive for a secret; got none", DEFAULT,
            DefaultLikelihood(10**12, -math.inf, [], []))  # fmt: skip


def test_factors_and_their_priors():
    two = ProductLikelihood([[0.0, 1.0], [0.0, 1.0, 2.0]], [1, 3])
    check_error(ShapeError, "prior for each of the 2 factors, or of the 4 coordinates; got", two, [None, None, None])
    check_error(ShapeError, "sequence with one prior for each", two, 0.5)
    check_error(ShapeError, "each of the 2 secrets of a factor; got 3", two, [[0.2, 0.3, 0.5], None])
    check_error(DomainError, "factors must have at most 16777216 secrets where they are written out; got 100000000",
            ProductLikelihood([IndexLikelihood(np.sin, 10**8)]))  # fmt: skip
    subsets = SubsetLikelihood(np.zeros(4), np.zeros((4, 4)), 2)
    check_error(DomainError, "or functions of an index; got a SubsetLikelihood", ProductLikelihood([subsets]))
    check_error(DomainError, "factors must be log likelihoods below infinity", ProductLikelihood([[0.0, np.inf]]))


def test_where_probabilities_are_written():
    check_error(ShapeError, "one entry a secret, 1000000000000; got float64 of shape", DEFAULT, out=np.empty(5))
    vast = DefaultLikelihood(2**60, 0.0, [], [])
    check_error(DomainError, "file that can hold all secrets; got", vast, out="all.npy")
    check_error(DomainError, "must be an array, or the path of a file", DEFAULT, out=3)


def test_functions_that_fail_are_named_with_their_block():
    def failing(d):
        if d[-1] >= 600_000:
            raise ZeroDivisionError("no such secret")
        return 0.0 * d

    check_error(DomainError, r"function must return a log likelihood for every secret; got ZeroDivisionError: no such "
            r"secret in block 2, secrets 589824 to 606207", IndexLikelihood(failing, 10**6))  # fmt: skip
    check_error(DomainError, r"return one real number a secret; got float64 of shape \(\) for 10 secrets in block 0",
            IndexLikelihood(lambda d: 0.5, 10))  # fmt: skip
    check_error(DomainError, r"below infinity; got nan at index 300000 \(1 of \d+ entries\) in block 1",
            IndexLikelihood(lambda d: np.where(d == 300_000, np.nan, 0.0), 10**6))  # fmt: skip
    check_error(DomainError, r"log likelihoods below infinity; got inf at index 7 ",
            IndexLikelihood(lambda d: np.where(d == 7, np.inf, 0.0), 10))  # fmt: skip
    check_error(DomainError, "entries\\) in secrets between",
            IndexLikelihood(lambda d: np.nan * d, 10**15, lambda a, b: 0.0))  # fmt: skip


def test_an_error_keeps_what_was_computed():
    def failing(d):
        if broken and d[-1] >= 600_000:
            raise ZeroDivisionError
        return 1e-6 * d

    broken, likelihood = True, IndexLikelihood(failing, 10**6)
    with pytest.raises(DomainError, match="in block 2") as caught:
        posterior(likelihood)
    assert caught.value.best.blocks == 2
    broken = False
    again = posterior(likelihood, resume=caught.value.best)
    assert again.kl.value == posterior(likelihood).kl.value


def test_jitted_functions():
    numba = pytest.importorskip("numba")
    check_error(DomainError, "one real number; got .*, which returns .* for one index",
            IndexLikelihood(numba.njit(lambda d: (d, d)), 10))  # fmt: skip
    constant = IndexLikelihood(numba.njit(lambda d: 0.0), 2**70, lambda a, b: 0.0)
    check_error(DomainError, r"at most 2\*\*63 for a jitted function", constant)


def test_bounds_over_ranges():
    def search(bound):
        return IndexLikelihood(lambda d: 0.0 * d, 10**12, bound)

    check_error(DomainError, "lower and an upper bound, or the upper one; got TypeError", search(lambda a, b: None))
    check_error(DomainError, "below infinity, in order; got .* for secrets 0 to", search(lambda a, b: (1.0, 0.0)))
    check_error(DomainError, "below infinity, in order; got inf", search(lambda a, b: np.inf))
    wrong = search(lambda a, b: (0.5, 1.0))
    check_error(DomainError, r"bound must enclose the function; got \[0.5, 1.0\] for secrets", wrong)


def test_what_a_search_cannot_take():
    huge = IndexLikelihood(lambda d: 0.0 * d, 10**12)
    check_error(DomainError, r"prior must be None, and size at most 2\*\*1000.*Raise the budget", huge, lambda d: 1e-12)
    check_error(DomainError, "for more secrets than half the budget", IndexLikelihood(lambda d: 0.0 * d, 2**1001))
    check_error(DomainError, r"bound must be given for more secrets than half the budget; got None for 1000000000000 "
            r"secrets and a budget of 1073741824. Pass bounds", huge)  # fmt: skip


def test_index_likelihoods():
    with pytest.raises(DomainError, match="function must be a function; got 3"):
        IndexLikelihood(3, 10)
    with pytest.raises(DomainError, match="bound must be a function; got 3"):
        IndexLikelihood(np.sin, 10, 3)
    with pytest.raises(DomainError, match="budget must be"):
        IndexLikelihood(np.sin, 10, budget=0)
    with pytest.raises(DomainError, match="rtol must be between 0 and 1"):
        IndexLikelihood(np.sin, 10, rtol=2.0)
