"""GaussianMixture and Pmf: immutable values that refuse what they cannot be."""

import copy
import math
import pickle

import numpy as np
import pytest

from fastpriv import DomainError, GaussianMixture, Pmf
from fastpriv.errors import ShapeError


def test_a_mixture_keeps_what_it_was_given():
    p = GaussianMixture([0.25, 0.0, 0.75], [0.0, 9.0, 3.0], 2)
    assert (p.weights.tolist(), p.means.tolist(), p.sigmas.tolist()) == ([0.25, 0.75], [0.0, 3.0], [2.0, 2.0])
    assert GaussianMixture.single(1.0, 2.0) == GaussianMixture([1.0], [1.0], [2.0])
    assert repr(p) == "GaussianMixture([0.25, 0.75], [0.0, 3.0], [2.0, 2.0])"
    assert repr(GaussianMixture([0.2] * 5, range(5), 1.0)) == "<GaussianMixture of 5 components>"
    assert GaussianMixture([0.25] * 4, range(4), 1.0).mass_gap == 0.0
    assert GaussianMixture([0.1] * 10, range(10), 1.0).mass_gap == 0.0
    assert GaussianMixture([1.0, 2.0**-53], [0, 1], 1.0).mass_gap == pytest.approx(2.0**-53)
    assert GaussianMixture([0.5, 0.5 + 5e-10], [0, 1], 1.0).mass_gap == pytest.approx(5e-10, rel=1e-6)


def test_a_law_is_sorted_and_counts_data():
    law = Pmf([3.0, 1.0, 2.0], [0.5, 0.5, 0.0])
    assert (law.values.tolist(), law.probabilities.tolist()) == ([1.0, 3.0], [0.5, 0.5])
    assert repr(law) == "Pmf([1.0, 3.0], [0.5, 0.5])"
    assert repr(Pmf.from_data(np.arange(10))) == "<Pmf on 10 points of [0, 9]>"
    assert Pmf.from_data([1, 2, 2, 5]) == Pmf([1, 2, 5], [0.25, 0.5, 0.25])
    binned = Pmf.from_data([0.0, 0.9, 1.1, 4.0], bins=2)
    assert (binned.values.tolist(), binned.probabilities.tolist()) == ([1.0, 3.0], [0.75, 0.25])
    assert Pmf.from_data([7.0, 7.0], bins=3) == Pmf([7.0], [1.0])
    assert Pmf([0.0, 1.0], [0.5, 0.5]).through_gaussian(2.0) == GaussianMixture([0.5, 0.5], [0.0, 1.0], 2.0)


@pytest.mark.parametrize("thing", [GaussianMixture([0.5, 0.5], [0, 1], [1, 2]), Pmf([0, 1], [0.5, 0.5])])
def test_values_are_immutable_hashable_and_picklable(thing):
    name = thing.__slots__[0]
    with pytest.raises(AttributeError, match=f"is immutable; build a new one instead of setting {name}"):
        setattr(thing, name, 1)
    with pytest.raises(AttributeError, match=f"is immutable; build a new one instead of deleting {name}"):
        delattr(thing, name)
    with pytest.raises(ValueError, match="read-only"):
        getattr(thing, name)[0] = 9.0
    for twin in (pickle.loads(pickle.dumps(thing)), copy.deepcopy(thing)):
        assert twin == thing
        assert hash(twin) == hash(thing)
    assert thing != 3
    assert len(thing) == 2


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([0.5, 0.4], [0, 1], 1), DomainError, "weights must sum to 1 within 1e-09; got a sum of 0.9"),
        (([-0.5, 1.5], [0, 1], 1), DomainError, "weights must be probabilities between 0 and 1; got -0.5 at index 0"),
        (([0.5, 0.5], [0, math.nan], 1), DomainError, "means must be finite and at most 1e300 in size; got nan"),
        (([1.0], [math.inf], 1), DomainError, "means must be finite and at most 1e300 in size; got inf"),
        (([1.0], [0], 0), DomainError, "sigmas must be positive and between 1e-300 and 1e300; got 0.0"),
        (([1.0], [0], -1), DomainError, "a point mass has no density"),
        (([0.5, 0.5], [0], 1), ShapeError, "weights, means and sigmas must have equal lengths; got 2, 1 and 2"),
        (([], [], 1), ShapeError, "weights must have at least one entry"),
    ],
)
def test_faults_of_a_mixture_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        GaussianMixture(*arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([0, 0], [0.5, 0.5]), DomainError, r"values must be distinct; got 0.0 more than once \(1 repeats among 2"),
        (([0, math.inf], [0.5, 0.5]), DomainError, "values must be finite and at most 1e300 in size; got inf"),
        (([0], [0.5, 0.5]), ShapeError, "values and probabilities must have equal lengths; got 1 and 2"),
        (([0, 1], [0.5, 0.6]), DomainError, "probabilities must sum to 1 within 1e-09"),
    ],
)
def test_faults_of_a_law_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        Pmf(*arguments)
    with pytest.raises(DomainError, match="bins must be an integer of at least 1; got 0"):
        Pmf.from_data([1.0, 2.0], bins=0)
    with pytest.raises(ShapeError, match="column must have at least one entry"):
        Pmf.from_data([])
