"""Trade-off curves contain the errors of likelihood-ratio tests."""

import numpy as np
import pytest
from mpmath import erfc, erfinv, mpf, sqrt

from fastpriv import Channel, DomainError, GaussianMechanism, GaussianMixture, special, total_variation
from fastpriv.adapters import composed_hockey_stick_divergence, dp_accounting_pld, trade_off_curve

ALPHA = np.array([0.0, 1e-12, 1e-4, 0.05, 0.3, 0.5, 0.9, 0.9999, 1.0])


def normal_beta(alpha, mu):
    """Phi(Phi^-1(1 - alpha) - mu), exactly 1 and 0 at the ends."""
    if alpha in (0.0, 1.0):
        return mpf(1 - alpha)
    quantile = sqrt(mpf(2)) * erfinv(1 - 2 * mpf(alpha))
    return erfc((mu - quantile) / sqrt(mpf(2))) / 2


@pytest.mark.parametrize("mu", [1e-3, 0.5, 1.0, 4.0])
def test_normal_distributions(mu):
    curve = trade_off_curve(GaussianMechanism(1.0, mu), None, ALPHA)
    for a, low, high in zip(ALPHA, curve.beta.lower, curve.beta.upper, strict=True):
        assert low <= normal_beta(a, mu) <= high, (a, low, high)
        assert high - low <= (1e-3 if mu < 0.01 else 2e-6)  # losses of 1e-3 on a grid of that width
    assert curve.advantage == GaussianMechanism(1.0, mu).delta(0.0)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_subsampled_mechanism(swapped):
    """The likelihood ratio rises in the release, so that thresholds are the best tests."""
    p, q = GaussianMixture.single(0.0, 1.0), GaussianMixture([0.9, 0.1], [0.0, 2.0], 1.0)
    t = np.linspace(-3.0, 6.0, 40)
    mixed = 0.9 * special.ndtr(-t) + 0.1 * special.ndtr(2.0 - t)
    if swapped:
        alpha, beta, pair = 1 - mixed, special.ndtr(-t), (q, p)
    else:
        alpha, beta, pair = special.ndtr(-t), 1 - mixed, (p, q)
    curve = trade_off_curve(*pair, alpha)
    assert (curve.beta.lower <= beta + 1e-15).all()
    assert (curve.beta.upper >= beta - 1e-15).all()
    assert curve.beta.width.max() <= 5e-4
    assert curve.advantage.value == pytest.approx(total_variation(p, q).value, abs=1e-14)


def test_randomised_response():
    curve = trade_off_curve(Channel([[0.75, 0.25], [0.25, 0.75]]), None, [0.0, 0.1, 0.25, 0.5, 1.0], interval=1e-2)
    truth = np.array([1.0, 0.7, 0.25, 0.5 / 3, 0.0])
    assert ((curve.beta.lower <= truth + 1e-15) & (truth - 1e-15 <= curve.beta.upper)).all()
    assert curve.beta.width.max() <= 0.06


def test_composed_releases():
    mechanism, epsilon = GaussianMechanism(8.0, 1.0), [0.05, 0.5]
    composed = trade_off_curve(lambda e: composed_hockey_stick_divergence(mechanism, None, e, steps=16, interval=0.01),
                               None, epsilon, interval=0.05)  # fmt: skip
    for a, low, high in zip(epsilon, composed.beta.lower, composed.beta.upper, strict=True):
        assert low <= normal_beta(a, 0.5) <= high
        assert high - low < 0.01


def test_what_is_refused():
    with pytest.raises(DomainError, match="alpha must be between 0 and 1; got 2"):
        trade_off_curve(GaussianMechanism(1.0, 1.0), None, 2.0)
    with pytest.raises(DomainError, match="interval must be from 1e-9 to 10; got 0"):
        trade_off_curve(GaussianMechanism(1.0, 1.0), None, 0.5, interval=0.0)


def test_curves_of_riskcal():
    riskcal = pytest.importorskip("riskcal")
    p, q = GaussianMixture([0.9, 0.1], [0.0, 1.0], 0.7), GaussianMixture([0.8, 0.2], [0.0, -1.0], 0.7)
    alpha = np.array([0.01, 0.1])
    theirs = riskcal.analysis.get_beta_from_pld(dp_accounting_pld(p, q, interval=1e-3), alpha)
    assert np.allclose(theirs, trade_off_curve(q, p, alpha).beta.value, atol=1e-5)
