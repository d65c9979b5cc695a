"""What subsets of a pool are told when something is wrong, and that they are values."""

import copy
import math
import pickle

import numpy as np
import pytest

from fastpriv import DomainError, posterior
from fastpriv.channels import SubsetLikelihood, rank_of_subset, subset_of_rank
from fastpriv.errors import ShapeError
from fastpriv.mechanisms import BatchGradient

ZEROS = np.zeros((5, 5))
TABLE = np.ones((4, 2))


def of(linear=(0.0,) * 5, pairwise=ZEROS, size=2, **more):
    return SubsetLikelihood(linear, pairwise, size, **more)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: of(pairwise=np.zeros((5, 4))), ShapeError, "pairwise must be a square with one row a record, 5"),
        (lambda: of(pairwise=np.triu(np.ones((5, 5)))), DomainError, "pairwise must be symmetric; got"),
        (lambda: of(pairwise=np.full((5, 5), np.nan)), DomainError, "pairwise must be below 1e280 in size, or -inf"),
        (lambda: of([np.inf] * 5), DomainError, "linear must be below 1e280 in size, or -inf; got inf"),
        (lambda: of(size=6), DomainError, "members must be an integer of at least 1 and at most 5; got 6"),
        (lambda: of(error=-1.0), DomainError, "error must be at least 0 and finite; got -1.0"),
        (lambda: of(constant=np.inf), DomainError, "constant must be a finite number; got inf"),
        (lambda: of().log_likelihood([1, 2, 3]), ShapeError, "subset must have 2 members; got 3"),
        (lambda: of().log_likelihood([1, 1]), DomainError, "subset must be different records from 0 to 4; got"),
        (lambda: of().log_likelihood([1, 5]), DomainError, "subset must be different records from 0 to 4; got"),
        (lambda: of().log_likelihood(3), ShapeError, "subset must have members along its last axis; got"),
        (lambda: of().log_likelihood([0.5, 1]), DomainError, "subset must be different records from 0 to 4; got"),
        (lambda: of().log_likelihood([[1, 2], [1]]), ShapeError,
         r"subset must be an array with rows of one length; got \[\[1, 2\], \[1\]\]. Make them alike."),
        (lambda: subset_of_rank(10, 5, 2), DomainError, "rank must be an integer from 0 to 9; got 10"),
        (lambda: subset_of_rank([0.5], 5, 2), DomainError, "rank must be an integer from 0 to 9; got"),
        (lambda: rank_of_subset([], 5), ShapeError, "subset must have members along its last axis; got shape"),
        (lambda: rank_of_subset([1, 7], 5), DomainError, "Name each member once, by its index in the pool"),
    ],
)
def test_what_is_wrong_is_named(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: posterior(of(np.zeros(20), np.zeros((20, 20)), 13)), DomainError,
         "likelihood must be of subsets of at most 12 members; got 13"),
        (lambda: posterior(of(np.zeros(900), np.zeros((900, 900)), 9)), DomainError,
         r"likelihood must be of at most 1e\+13 subsets, since each of them is visited; got .* of 9 out of 900"),
        (lambda: posterior(of(), out=np.empty(10)), DomainError, "out must be None for likelihoods that are not"),
        (lambda: posterior(of([-np.inf] * 5)), DomainError,
         "likelihood must be positive for some subset; got -inf for all"),
        (lambda: posterior(of(), np.ones(5)), DomainError,
         "prior must be None for subsets, which are equally likely; got .*Add the log odds of records to the linear"),
    ],
)
def test_what_a_posterior_cannot_do_is_named(call, error, text):
    with pytest.raises(error, match=text):
        call()


def step(errors=TABLE, features=TABLE, size=2, sigma=1.0):
    return BatchGradient(errors, features, size, sigma)


def softmax(records=TABLE, labels=(0, 1, 0, 1), weights=((0.0, 1.0), (1.0, 0.0)), **more):
    return BatchGradient.softmax_regression(records, labels, weights, 2, 1.0, **more)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: step([1.0, 2.0]), ShapeError, "errors must be a table with at least one row and one column"),
        (lambda: step(np.ones((3, 2))), ShapeError, "features must have one row a record, 3; got 4"),
        (lambda: step(TABLE * np.nan), DomainError, "errors must be below 1e50 in size; got nan"),
        (lambda: step(sigma=0.0), DomainError, "sigma must be between 1e-50 and 1e50; got 0.0"),
        (lambda: step(size=5), DomainError, "size must be an integer of at least 1 and at most 4; got 5"),
        (lambda: softmax(weights=np.ones((2, 4))), ShapeError, "weights must have 2 columns, or one more for the"),
        (lambda: softmax(labels=[0, 1]), ShapeError, "labels must have one entry a record, 4; got shape"),
        (lambda: softmax(labels=[0, 1, 2, 0]), DomainError, "labels must be integers from 0 to 1; got"),
        (lambda: softmax(labels=[0.5, 1, 1, 0]), DomainError, "labels must be integers from 0 to 1; got"),
        (lambda: softmax(clip=0.0), DomainError, "clip must be positive and finite; got 0.0"),
        (lambda: step().gradient([1]), ShapeError, r"batch must be a list of 2 records; got shape \(1,\)"),
        (lambda: step().sample([1, 9]), DomainError, "batch must be different records from 0 to 3; got"),
        (lambda: step().column(np.ones(3)), ShapeError, "output must be of the shape of a gradient, .*; got shape"),
        (lambda: step().column(np.full((2, 2), np.inf)), DomainError, "output must be below 1e50 in size; got inf"),
        (lambda: step(1e49 * TABLE, 1e49 * TABLE, sigma=1e-50).column(np.ones((2, 2))), DomainError,
         "sigma must be large enough for log likelihoods below 1e250; got 1e-50"),
    ],
)
def test_what_is_wrong_with_a_batch_gradient_is_named(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("value", [of([0.0, 1, 2, 3, 4]), step()])
def test_they_are_values(value):
    assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value
    assert hash(pickle.loads(pickle.dumps(value))) == hash(value)
    with pytest.raises(AttributeError, match="is immutable"):
        value.size = 3
    mine = np.zeros(5)
    likelihood = of(mine)
    mine[0] = 7.0
    assert likelihood.linear[0] == 0.0
    assert not likelihood.pairwise.flags.writeable


def test_progress_tells_of_both_passes_and_an_interrupt_gets_through():
    seen = []
    posterior(of(), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        posterior(of(), progress=stop, n_jobs=2)


def test_a_posterior_over_subsets_goes_into_plain_types():
    plain = posterior(of([0.0, 1, 2, 3, 4]), top=2).to_dict()
    assert plain["map_index"] == [3, 4]
    assert plain["top"]["indices"] == [[3, 4], [2, 4]]
    assert len(plain["inclusion"]["value"]) == 5
    assert plain["size"] == math.comb(5, 2)


def test_no_subsets_are_listed_when_none_are_asked_for():
    found = posterior(of(), top=0)
    assert found.top.indices.shape == (0, 2)
    assert found.probabilities(3, 3).shape == (0,)
