"""Events of dp_accounting and histories of Opacus are the compositions that they stand for."""

import math
from fractions import Fraction
from types import SimpleNamespace

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
from fastpriv.adapters import composition_from_dp_events, composition_from_opacus, opacus_history
from fastpriv.composition import RandomAllocation
from fastpriv.pairs import (
    ApproximateDP,
    BoundedRange,
    DiscreteGaussianMechanism,
    NegativeBinomial,
    PermuteAndFlip,
    Poisson,
    Selected,
    TreeAggregation,
    ZeroConcentratedDP,
)

LEVELS = np.array([0.0, 0.3, 1.0, 2.5])


def event(name, **fields):
    return {"class_name": name, **fields}


def composed(*events):
    return event("ComposedDpEvent", events=list(events))


def several(one, count):
    return event("SelfComposedDpEvent", event=one, count=count)


GAUSSIAN = event("GaussianDpEvent", noise_multiplier=2.0)
SAMPLED = event("PoissonSampledDpEvent", sampling_probability=0.25, event=GAUSSIAN)
EXPECTED = {
    "gaussians": (several(GAUSSIAN, 9), [(GaussianMechanism(2.0, 1.0), 9)]),
    "laplace": (event("LaplaceDpEvent", noise_multiplier=2.0), [(LaplaceMechanism(2.0, 1.0), 1)]),
    "discrete laplace": (event("DiscreteLaplaceDpEvent", noise_parameter=1.0, sensitivity=1),
                         [(RandomizedResponse(2, 1.0), 1)]),
    "sampled": (several(SAMPLED, 30), [(PoissonSampledGaussian(2.0, 0.25), 30)]),
    "nested": (several(composed(GAUSSIAN, several(SAMPLED, 3), event("NoOpDpEvent")), 2),
               [(GaussianMechanism(2.0, 1.0), 2), (PoissonSampledGaussian(2.0, 0.25), 6)]),
    "several on one sample": (event("PoissonSampledDpEvent", sampling_probability=0.25,
                                    event=composed(several(GAUSSIAN, 3), event("GaussianDpEvent", noise_multiplier=4.0),
                                                   event("GaussianDpEvent", noise_multiplier=0.5))),
                              [(PoissonSampledGaussian(1.0, 0.25, math.sqrt(3 / 4 + 1 / 16 + 4)), 1)]),
    "nothing on a sample": (event("PoissonSampledDpEvent", sampling_probability=0.25, event=event("NoOpDpEvent")), []),
    "mixture": (event("MixtureOfGaussiansDpEvent", standard_deviation=2.0, sensitivities=[0.0, 1.0],
                      sampling_probs=[0.75, 0.25]), [(PoissonSampledGaussian(2.0, 0.25), 1)]),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_events_are_their_compositions(name):
    given, parts = EXPECTED[name]
    found = composition_from_dp_events(given)
    wanted = compose([pair for pair, _ in parts], [count for _, count in parts])
    assert found.count == wanted.count
    a, b = found.log_delta(LEVELS, direction="worst"), wanted.log_delta(LEVELS, direction="worst")
    assert ((a.lower <= b.upper) & (b.lower <= a.upper)).all()
    assert np.allclose(np.exp(a.value), np.exp(b.value), rtol=1e-9, atol=1e-12)  # rounding, at the largest loss


def test_randomised_response_replaces_a_record():
    found = composition_from_dp_events(event("RandomizedResponseDpEvent", noise_parameter=0.75, num_buckets=3),
                                       relation="replace_one")
    wanted = compose(RandomizedResponse(3, math.log(2.0)))  # the truth 1/2, each lie 1/4
    assert np.allclose(found.delta(LEVELS).value, wanted.delta(LEVELS).value, rtol=1e-12, atol=1e-300)
    nothing = event("RandomizedResponseDpEvent", noise_parameter=0.0, num_buckets=3)
    assert composition_from_dp_events(nothing, relation="replace_one").delta(9.0).value == 1.0
    single = event("RandomizedResponseDpEvent", noise_parameter=0.5, num_buckets=1)
    assert composition_from_dp_events(single, relation="replace_one").delta(0.0).value == 0.0


@pytest.mark.parametrize(
    ("one", "wanted"),
    [(GAUSSIAN, GaussianMechanism(1.0, 1.0)), (event("LaplaceDpEvent", noise_multiplier=2.0), LaplaceMechanism(1.0)),
     (event("DiscreteLaplaceDpEvent", noise_parameter=0.5, sensitivity=1),
      composition_from_dp_events(event("DiscreteLaplaceDpEvent", noise_parameter=0.5, sensitivity=2)))],
)
def test_replaced_records_move_sums_twice_as_far(one, wanted):
    """A record of norm at most C for another one: the sums differ by up to 2 C, so that the noise counts half."""
    found = composition_from_dp_events(several(one, 3), relation="replace_one")
    a, b = found.log_delta(LEVELS), compose(wanted, 3).log_delta(LEVELS)
    assert ((a.lower <= b.upper) & (b.lower <= a.upper)).all()
    assert (found.delta(LEVELS[1:3]).lower > composition_from_dp_events(several(one, 3)).delta(LEVELS[1:3]).upper).all()


@pytest.mark.parametrize(
    "one",
    [event("NonPrivateDpEvent"), event("GaussianDpEvent", noise_multiplier=0.0), event("LaplaceDpEvent",
     noise_multiplier=0.0), event("MixtureOfGaussiansDpEvent", standard_deviation=0.0, sensitivities=[1.0],
     sampling_probs=[1.0])],
)
def test_without_noise_every_epsilon_is_infinite(one):
    found = composition_from_dp_events(composed(one, GAUSSIAN))
    assert found.delta(30.0).lower > 1.0 - 1e-14
    assert found.epsilon(0.5).lower == math.inf


GUARANTEES = {
    "EpsilonDelta": (event("EpsilonDeltaDpEvent", epsilon=0.5, delta=1e-6), ApproximateDP(0.5, 1e-6)),
    "exponential": (event("ExponentialMechanismDpEvent", epsilon=0.5), BoundedRange(0.5)),
    "permute": (event("PermuteAndFlipDpEvent", epsilon=0.5), PermuteAndFlip(0.5)),
    "zcdp": (event("ZCDpEvent", rho=0.125), ZeroConcentratedDP(0.125)),
    "zcdp with xi": (event("ZCDpEvent", rho=0.125, xi=0.5), ZeroConcentratedDP(0.125, 0.5)),
    "discrete gaussian": (event("DiscreteGaussianDpEvent", sigma=2.0, sensitivity=1.0, dimension=1),
                          DiscreteGaussianMechanism(2.0)),
    "of many dimensions": (event("DiscreteGaussianDpEvent", sigma=2.0), ZeroConcentratedDP(np.nextafter(0.125, 1.0))),
    "tree": (event("SingleEpochTreeAggregationDpEvent", noise_multiplier=2.0, step_counts=[3, 9]),
             TreeAggregation([3, 9], 2.0)),
    "allocation": (event("RandomAllocationDpEvent", noise_multiplier=1.0, num_steps=4), RandomAllocation(1.0, 4)),
}


@pytest.mark.parametrize("name", GUARANTEES)
def test_guarantees_and_noises(name):
    given, wanted = GUARANTEES[name]
    for one in (given, SimpleNamespace(**given)):  # the tuples of dp_accounting have the name as an attribute
        assert composition_from_dp_events(several(composed(one, GAUSSIAN), 2)) == compose(
            [wanted, GaussianMechanism(2.0, 1.0)], 2
        )


def test_replaced_records_change_a_leaf_by_twice_the_norm():
    given, _ = GUARANTEES["tree"]
    found = composition_from_dp_events(given, relation="replace_one")
    assert found == compose(TreeAggregation([3, 9], 2.0, 2.0))


@pytest.mark.parametrize(("mean", "shape", "runs"), [
    (8.0, 1.0, NegativeBinomial(1.0, 0.125)), (8.0, math.inf, Poisson(8.0)), (NegativeBinomial(0.0, 0.25).mean, 0.0,
     NegativeBinomial(0.0, 0.25)), (NegativeBinomial(2.5, 0.5).mean, 2.5, NegativeBinomial(2.5, 0.5)),
])
def test_the_best_of_random_runs(mean, shape, runs):
    given = event("RepeatAndSelectDpEvent", event=several(GAUSSIAN, 2), mean=mean, shape=shape)
    found = composition_from_dp_events(given).delta([2.0, 3.5])
    wanted = compose(Selected(compose(GaussianMechanism(2.0, 1.0), 2), runs)).delta([2.0, 3.5])
    assert (found.lower == 0.0).all()
    assert (found.upper >= wanted.upper * (1 - 1e-12)).all()
    assert (found.upper <= wanted.upper * (1 + 1e-9)).all()
    single = event("RepeatAndSelectDpEvent", event=GAUSSIAN, mean=1.0, shape=shape)
    if shape < math.inf:
        assert composition_from_dp_events(single) == compose(GaussianMechanism(2.0, 1.0))


@pytest.mark.slow
def test_samples_are_read():
    for given in (
        event("SampledWithoutReplacementDpEvent", source_dataset_size=64, sample_size=8, event=GAUSSIAN),
        event("SampledWithReplacementDpEvent", source_dataset_size=64, sample_size=8, event=GAUSSIAN),
        event("TruncatedSubsampledGaussianDpEvent", dataset_size=64, sampling_probability=0.125,
              truncated_batch_size=12, noise_multiplier=2.0),
        event("PoissonSampledDpEvent", sampling_probability=0.25, event=event("LaplaceDpEvent", noise_multiplier=2.0)),
    ):
        assert 0.0 < composition_from_dp_events(given).delta(0.1).upper < 1.0


def test_without_noise_on_a_sample():
    found = composition_from_opacus([(0.0, 0.25, 2)])
    assert found.delta(5.0).value == pytest.approx(1 - 0.75**2, rel=1e-12)


@pytest.mark.parametrize("relation", ["add_or_remove", "replace_one", "zero_out"])
def test_a_sample_without_noise_tells_who_was_drawn(relation):
    """As calibrations ask of noise 0."""
    silent = event("PoissonSampledDpEvent", sampling_probability=0.25,
                   event=event("GaussianDpEvent", noise_multiplier=0.0))
    found = composition_from_dp_events(silent, relation=relation)
    for direction in ("forward", "backward"):
        assert found.delta(0.0, direction=direction).value == pytest.approx(0.25, rel=1e-12)
    assert found.delta(5.0).value == pytest.approx(0.25, rel=1e-12)


def test_histories_of_opacus():
    class Accountant:
        history = [(1.0, 0.25, 20), (2.0, 0.25, 10)]  # noqa: RUF012

    wanted = compose([PoissonSampledGaussian(1.0, 0.25), PoissonSampledGaussian(2.0, 0.25)], [20, 10])
    for given in (Accountant.history, Accountant(), {"history": Accountant.history, "mechanism": "rdp"}):
        assert composition_from_opacus(given) == wanted


def test_histories_for_opacus():
    steps = compose([PoissonSampledGaussian(1.0, 0.25), PoissonSampledGaussian(2.0, 0.25)], [20, 10])
    assert opacus_history(steps) == [(1.0, 0.25, 20), (2.0, 0.25, 10)]
    assert composition_from_opacus(opacus_history(steps)) == steps
    assert opacus_history(compose([])) == []
    ((multiplier, rate, count),) = opacus_history(compose(PoissonSampledGaussian(1.0, 0.5, 0.3), 7))
    assert (rate, count) == (0.5, 7)
    assert Fraction(multiplier) * Fraction(0.3) <= 1 < Fraction(math.nextafter(multiplier, 4.0)) * Fraction(0.3)


@pytest.mark.parametrize("other", [GaussianMechanism(1.0, 1.0), PoissonSampledGaussian(1.0, 0.5, 0.0),
                                   PoissonSampledGaussian(1.0, 0.5, group_size=2)])
def test_what_opacus_does_not_record(other):
    with pytest.raises(DomainError, match="composition must consist of PoissonSampledGaussian, of one record"):
        opacus_history(compose([PoissonSampledGaussian(1.0, 0.25), other]))
    steps = compose(PoissonSampledGaussian(1.0, 0.25), 3)
    unnamed = type(steps)(steps.forward_pairs, steps.backward_pairs, steps.count, steps.ordered)
    with pytest.raises(DomainError, match="composition must name its releases; got .*Make it by compose"):
        opacus_history(unnamed)


def test_events_of_dp_accounting_itself():
    events = pytest.importorskip("dp_accounting.dp_event")
    one = events.SelfComposedDpEvent(events.PoissonSampledDpEvent(0.25, events.GaussianDpEvent(2.0)), 30)
    assert composition_from_dp_events(one) == composition_from_dp_events(several(SAMPLED, 30))


REFUSED = [
    ("event must be a NoOp, NonPrivate, Gaussian", event("UnsupportedDpEvent"), {}),
    ("event must be a NoOp, NonPrivate, Gaussian", 3, {}),
    ("event must be a NoOp, .* got array\\(", np.array(["a", "b"]), {}),
    ("event must have noise_multiplier in a GaussianDpEvent", event("GaussianDpEvent"), {}),
    ("noise_multiplier must be at least 0 and finite; got -1", event("GaussianDpEvent", noise_multiplier=-1.0), {}),
    ("event must be Gaussian, Laplace or discrete Laplace noise, .* inside a sample",
     event("PoissonSampledDpEvent", sampling_probability=0.5, event=event("ZCDpEvent", rho=1.0)), {}),
    ("relation must be 'add_or_remove' for a RandomAllocationDpEvent",
     event("RandomAllocationDpEvent", noise_multiplier=1.0, num_steps=4), {"relation": "replace_one"}),
    ("mean must be from 1 to 1e15; got 0.5",
     event("RepeatAndSelectDpEvent", event=GAUSSIAN, mean=0.5, shape=1.0), {}),
    ("shape must be at least 0; got -1", event("RepeatAndSelectDpEvent", event=GAUSSIAN, mean=2.0, shape=-1.0), {}),
    ("relation must be 'replace_one' for a RandomizedResponseDpEvent",
     event("RandomizedResponseDpEvent", noise_parameter=0.5, num_buckets=2), {}),
    ("relation must be one of add_or_remove, replace_one", GAUSSIAN, {"relation": "add"}),
]


@pytest.mark.parametrize("case", REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused(case):
    text, given, words = case
    with pytest.raises(DomainError, match=text):
        composition_from_dp_events(given, **words)


def test_events_without_end():
    endless = several(GAUSSIAN, 1)
    for _ in range(101):
        endless = several(endless, 1)
    with pytest.raises(DomainError, match="event must have at most 100 events within each other; got more"):
        composition_from_dp_events(endless)


@pytest.mark.parametrize("history", [3, [(1.0, 0.1)], "abc", {"mechanism": "rdp"}])
def test_histories_of_another_form(history):
    with pytest.raises(DomainError, match="history must be a list of"):
        composition_from_opacus(history)
