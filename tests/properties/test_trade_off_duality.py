"""The best tests of a composition by tail probabilities, and the convex conjugate of its privacy curve, overlap."""

import numpy as np
import pytest

from fastpriv import GaussianMixture, compose, risk

NOISE = GaussianMixture.single(0.0, 1.0)
ALPHA = np.array([1e-9, 0.01, 0.3, 0.7, 0.99])


def sampled(rate, shift):
    return GaussianMixture([1 - rate, rate], [0.0, shift], 1.0), NOISE


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "composition",
    [
        pytest.param(compose(sampled(0.01, 0.5), 1000), marks=pytest.mark.slow),
        compose([sampled(0.125, 1.0), (GaussianMixture.single(0.5, 1.0), NOISE)], [3, 2]),
        compose(([0.7, 0.2, 0.1], [0.1, 0.3, 0.6]), 3),
    ],
)
def test_tests_and_conjugates_overlap(composition):
    curves = [lambda e, d=d: composition.delta(e, direction=d) for d in ("forward", "backward")]
    by_tests, conjugate = risk.trade_off_curve(composition, None, ALPHA).beta, risk.trade_off_curve(*curves, ALPHA).beta
    assert "tail probabilities" in by_tests.method
    assert "conjugate" in conjugate.method
    assert (by_tests.lower <= conjugate.upper).all()
    assert (conjugate.lower <= by_tests.upper).all()
    powers = risk.true_positive_rate(composition, None, ALPHA), risk.true_positive_rate(*curves, ALPHA)
    assert (powers[0].lower <= powers[1].upper).all()
    assert (powers[1].lower <= powers[0].upper).all()
