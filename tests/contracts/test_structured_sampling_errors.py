"""Errors of mechanisms whose records take part in random steps."""

import pytest

from fastpriv import Channel
from fastpriv.base.errors import DomainError, ShapeError
from fastpriv.composition import BallsInBins, BandedMatrixMechanism, RandomAllocation
from fastpriv.pairs import Allocation, CyclicPoissonSampled, MatrixMechanism, SeparatedSampled


@pytest.mark.parametrize(("make", "text"), [
    (lambda: RandomAllocation(1.0, 10).epsilon(10**400), "delta must be between 0 and 1; got an integer of 1329 bits"),
    (lambda: RandomAllocation(1.0, 10).epsilon([1j, 0.5]), "delta must be between 0 and 1; got [1j, 0.5]"),
    (lambda: RandomAllocation(0.0, 10), "sigma must be positive and finite; got 0.0"),
    (lambda: RandomAllocation(1.0, 10, 1.0, 10**30), "epochs must be an integer of at least 1 and at most 100"),
    (lambda: BandedMatrixMechanism([1.0], 1.0, 10, 1.0, 10**400), "epochs must be an integer of at least 1"),
    (lambda: RandomAllocation(1.0, 0), "steps must be an integer of at least 1 and at most 1000000000; got 0"),
    (lambda: RandomAllocation(1.0, 10, sensitivity=-1.0), "sensitivity must be at least 0 and finite; got -1.0"),
    (lambda: RandomAllocation(1.0, 10, epochs=0), "epochs must be an integer of at least 1 and at most 1000000000"),
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
    (lambda: Allocation(Channel([[0.5, 0.5], [0.25, 0.75]]), 4), "base must say which of its laws is that"),
    (lambda: Allocation([None, None], 4), "base must be a tuple"),
    (lambda: CyclicPoissonSampled([1.0, 0.5], 1.0, 10, 0.5, 1), "coefficients must be at most as many as separation"),
    (lambda: CyclicPoissonSampled([1.0], 1.0, 10, 1.5, 1), "rate must be between 0 and 1; got 1.5"),
    (lambda: CyclicPoissonSampled([1.0], 1.0, 10, 0.5, 2, relation="both"), "relation must be one of"),
    (lambda: SeparatedSampled([-1.0], 1.0, 10, 0.5, 2), "coefficients must be at least 0 and finite; got -1.0"),
    (lambda: SeparatedSampled([1.0], 1.0, 0, 0.5, 2), "steps must be an integer of at least 1"),
    (lambda: SeparatedSampled([1.0], 1.0, 10, float("nan"), 2), "rate must be between 0 and 1; got nan"),
    (lambda: SeparatedSampled([1.0], 1.0, 10, 0.5, 5000), "separation must be an integer of at least 1"),
    (lambda: SeparatedSampled([1e200], 1.0, 10, 0.5, 2, 1e200), "sensitivity times the sum of the coefficients"),
    (lambda: MatrixMechanism([1.0, 2.0], 1.0, [[1.0]]), "matrix must have two axes of 1 to 4096 entries"),
    (lambda: MatrixMechanism([[1.0, 2.0]], 1.0, [[1.0]]), "patterns must have one column for each of the 2"),
])
def test_texts(make, text):
    with pytest.raises((DomainError, ShapeError)) as error:
        make()
    assert text in str(error.value)
