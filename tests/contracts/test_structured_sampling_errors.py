"""Errors of mechanisms whose records take part in random steps."""

import pytest

from fastpriv import BallsInBins, BandedMatrixMechanism, RandomAllocation
from fastpriv.base.errors import DomainError


@pytest.mark.parametrize(("make", "text"), [
    (lambda: RandomAllocation(1.0, 10).epsilon(10**400), "delta must be between 0 and 1; got an integer of 1329 bits"),
    (lambda: RandomAllocation(1.0, 10).epsilon([1j, 0.5]), "delta must be between 0 and 1; got [1j, 0.5]"),
    (lambda: RandomAllocation(0.0, 10), "sigma must be positive and finite; got 0.0"),
    (lambda: RandomAllocation(1.0, 0), "steps must be an integer of at least 1 and at most 1000000000; got 0"),
    (lambda: RandomAllocation(1.0, 10, sensitivity=-1.0), "sensitivity must be at least 0 and finite; got -1.0"),
    (lambda: RandomAllocation(1.0, 10, epochs=0), "epochs must be an integer of at least 1; got 0"),
    (lambda: BallsInBins(1.0, 1.5), "bins must be an integer"),
    (lambda: BandedMatrixMechanism([1.0, -0.5], 1.0, 10), "coefficients must be at least 0 and finite; got -0.5"),
    (lambda: BandedMatrixMechanism([0.0, 0.5], 1.0, 10), "coefficients must have a positive first entry; got 0.0"),
    (lambda: BandedMatrixMechanism([1.0] * 5, 1.0, 4), "coefficients must be at most as many as bins, 4; got 5"),
    (lambda: BandedMatrixMechanism([1.0], 1.0, 4).sampled_delta(-1.0), "epsilon must be between 0 and 600; got -1.0"),
    (lambda: BandedMatrixMechanism([1.0], 1.0, 4).sampled_delta(1.0, confidence=1.0), "confidence must be between 0"),
    (lambda: BandedMatrixMechanism([1.0], 1.0, 4).sampled_delta(1.0, rtol=0.0), "rtol must be positive; got 0.0"),
    (lambda: BandedMatrixMechanism([1.0], 1.0, 4).sampled_delta(1.0, max_samples=0), "max_samples must be an integer"),
    (lambda: BandedMatrixMechanism([1.0], 1.0, 4).sampled_delta(1.0, n_jobs=0), "n_jobs must be a non-zero integer"),
    (lambda: RandomAllocation(1.0, 4).delta(1.0, direction="remove"), "direction must be one of"),
])  # fmt: skip
def test_texts(make, text):
    with pytest.raises(DomainError) as error:
        make()
    assert text in str(error.value)
