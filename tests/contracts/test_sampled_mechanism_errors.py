"""Errors of mechanisms on samples: one sentence with the argument, its value and what to do."""

import pytest

from fastpriv import Channel, GaussianMechanism, LaplaceMechanism, RandomizedResponse
from fastpriv.base.errors import DomainError
from fastpriv.mechanisms import GeometricMechanism
from fastpriv.pairs import FixedSizeSampled, PoissonSampled, TruncatedPoissonSampled, ZeroConcentratedDP

NOISE = GaussianMechanism(1.0, 1.0)


@pytest.mark.parametrize(("make", "text"), [
    (lambda: PoissonSampled(NOISE, 1.5), "rate must be between 0 and 1; got 1.5"),
    (lambda: PoissonSampled(NOISE, float("nan")), "rate must be between 0 and 1; got nan"),
    (lambda: PoissonSampled(NOISE, "half"), "rate must be"),
    (lambda: PoissonSampled(NOISE, 0.5, "replace"), "relation must be one of add_or_remove, replace_one, zero_out"),
    (lambda: PoissonSampled(NOISE, 0.5, None), "relation must be one of"),
    (lambda: PoissonSampled(GaussianMechanism(1.0), 0.5), "sensitivity"),
    (lambda: PoissonSampled(RandomizedResponse(2, 1.0), 0.5, "replace_one"), "base must have noise on the line"),
    (lambda: PoissonSampled([], 0.5), "base must have at least one release; got an empty list"),
    (lambda: PoissonSampled([NOISE, LaplaceMechanism(1.0)], 0.5), "base must be releases of one kind in a list"),
    (lambda: PoissonSampled(Channel([[0.9, 0.1], [0.5, 0.5]]), 0.5), "base must tell which secret has the record"),
    (lambda: PoissonSampled(3.0, 0.5), "base must be"),
    (lambda: PoissonSampled(ZeroConcentratedDP(1.0), 0.5), "base must be a pair of distributions or curves"),
    (lambda: PoissonSampled(GeometricMechanism(2, float("inf")), 0.5), "base must have noise; got GeometricMechanism"),
    (lambda: PoissonSampled(GeometricMechanism(2**28, 1.0), 0.5), "base must have means at most 1048576 apart; got"),
    (lambda: FixedSizeSampled(NOISE, 10, 11), "sample must be an integer of at least 0 and at most 9; got 11"),
    (lambda: FixedSizeSampled(NOISE, 10, 11, relation="replace_one"), "at most 10; got 11"),
    (lambda: FixedSizeSampled(NOISE, 0, 0), "size must be an integer of at least 1"),
    (lambda: FixedSizeSampled(NOISE, 1, 0), "size must be at least 2"),
    (lambda: FixedSizeSampled(NOISE, 10, 2, 1), "replacement must be True or False; got 1"),
    (lambda: FixedSizeSampled(NOISE, 10, 2000, True), "sample must be an integer of at least 0 and at most 1000"),
    (lambda: FixedSizeSampled(([0.5, 0.5], [0.25, 0.75]), 10, 2), "base must have noise on the line"),
    (lambda: TruncatedPoissonSampled(NOISE, 10, 0.5, 11), "cap must be an integer of at least 1 and at most 10"),
    (lambda: TruncatedPoissonSampled(NOISE, 10, -0.5, 5), "rate must be between 0 and 1; got -0.5"),
    (lambda: TruncatedPoissonSampled(NOISE, 10, 0.5, 0), "cap must be an integer of at least 1"),
])
def test_errors(make, text):
    with pytest.raises(DomainError) as caught:
        make()
    message = str(caught.value)
    assert text in message, message
    assert message[-1] in ".?", message
