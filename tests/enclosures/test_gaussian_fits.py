"""The least mu of Gaussian privacy is between its bounds, in every range of delta."""

import numpy as np
import pytest
from mpmath import erfc, erfinv, exp, log, mp, mpf, sqrt

from fastpriv import (
    Channel,
    DomainError,
    GaussianMechanism,
    GaussianMixture,
    LaplaceMechanism,
    PoissonSampledGaussian,
    RandomizedResponse,
    compose,
)
from fastpriv.composition import gaussian_dp_fit


def phi(x):
    return erfc(-x / sqrt(mpf(2))) / 2


def normal_delta(mu, epsilon):
    return phi(mu / 2 - epsilon / mu) - exp(epsilon) * phi(-mu / 2 - epsilon / mu)


def asked_by(delta, epsilon):
    """The mu whose curve goes through a point."""
    low, high = mpf("1e-3"), mpf(30)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if normal_delta(middle, epsilon) < delta else (low, middle)
    return low


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 6.0])
def test_randomised_response(epsilon):
    """-2 Phi^-1(1 / (1 + e^epsilon)), asked for at epsilon = 0."""
    found = gaussian_dp_fit(RandomizedResponse(2, epsilon))
    with mp.workdps(50):
        truth = -2 * sqrt(mpf(2)) * erfinv(2 / (1 + exp(mpf(epsilon))) - 1)
        assert found.lower <= truth <= found.upper
        assert found.upper - found.lower <= 2e-9 * truth + 1e-12


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.slow
def test_discrete_pairs(count):
    """Delta is straight in x between its kinks: a fine grid and the kinks of the losses find the largest mu."""
    p, q = np.array([0.5, 0.375, 0.125]), np.array([0.25, 0.375, 0.375])
    pair = compose((p, q), count)
    found = gaussian_dp_fit(pair)
    with mp.workdps(40):
        masses = {0: (mpf(1), mpf(1))}
        for _ in range(count):  # all sequences: three to the count
            masses = {(key, i): (a * mpf(p[i]), b * mpf(q[i])) for key, (a, b) in masses.items() for i in range(3)}
        cells = list(masses.values())
        asked = []
        for side in cells, [(b, a) for a, b in cells]:
            for level in np.linspace(0.0, 0.98 * count * np.log(3.0), 25).tolist():
                delta = mp.fsum(max(a - exp(mpf(level)) * b, 0) for a, b in side)
                if delta > 0:
                    asked.append(asked_by(delta, mpf(level)))
        assert max(asked) <= found.upper
        assert found.lower <= max(asked) * (1 + mpf("1e-3"))
        assert found.upper - found.lower <= 1e-8


@pytest.mark.slow
def test_ranges_of_a_subsampled_mechanism():
    """Over all tests mu is that of a record that is always sampled; over those that matter it is far smaller."""
    step = PoissonSampledGaussian(sigma=2.0, rate=0.015625)
    whole = gaussian_dp_fit(compose(step, 16))
    assert whole.lower <= 2.0 <= whole.upper
    assert whole.upper - whole.lower <= 1e-12
    p, q = GaussianMixture([0.75, 0.25], [0.0, 1.0], 1.0), GaussianMixture.single(0.0, 1.0)
    found = gaussian_dp_fit(p, q, least_delta=1e-4)
    assert found.upper - found.lower <= 1e-8
    with mp.workdps(30):
        asked = []
        for epsilon in np.linspace(0.0, 3.0, 61).tolist():
            threshold = log((exp(mpf(epsilon)) - mpf("0.75")) * 4) + mpf("0.5")
            delta = (3 * phi(-threshold) + phi(1 - threshold)) / 4 - exp(mpf(epsilon)) * phi(-threshold)
            if delta >= 1e-4:
                asked.append(asked_by(delta, mpf(epsilon)))
        assert 10 < len(asked) < 61
        assert max(asked) <= found.upper
        assert found.lower <= max(asked) * (1 + mpf("0.05"))


def test_pairs_without_a_mu_and_closed_forms():
    wide = gaussian_dp_fit(GaussianMixture.single(0.0, 1.0), GaussianMixture.single(0.0, 1.25))
    assert (wide.lower, wide.method) == (np.inf, "losses with exponential tails: the largest sigmas differ")
    lost = gaussian_dp_fit([0.5, 0.5, 0.0], [0.25, 0.5, 0.25])
    assert lost.lower == np.inf
    assert "infinite losses" in lost.method
    unknown = gaussian_dp_fit(GaussianMechanism(1.0, 1.0).delta)
    assert unknown.upper == np.inf
    assert "nothing is known" in unknown.method
    assert unknown.lower == pytest.approx(1.0, rel=1e-12)
    assert gaussian_dp_fit(GaussianMechanism(2.0, 1.0)).value == 0.5
    assert gaussian_dp_fit([0.5, 0.5], [0.5, 0.5]).upper <= 1e-12
    channel = gaussian_dp_fit(Channel([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]))
    assert 0.0 < channel.lower <= channel.upper < channel.lower * (1 + 1e-8)
    many = gaussian_dp_fit(compose([GaussianMechanism(4.0, 1.0), GaussianMechanism(2.0, 1.0)], [16, 4]))
    assert many.lower <= np.sqrt(2.0) <= many.upper
    assert many.upper - many.lower <= 1e-14


def test_laplace_noise():
    """delta(epsilon) = 1 - e^((epsilon - 1/2) / 2) up to the largest loss, 1/2."""
    found = gaussian_dp_fit(LaplaceMechanism(2.0), least_delta=1e-9)
    with mp.workdps(40):
        asked = [asked_by(1 - exp((mpf(e) - mpf("0.5")) / 2), mpf(e)) for e in np.linspace(0.0, 0.49, 30).tolist()]
        assert max(asked) <= found.upper
        assert found.lower <= max(asked) * (1 + mpf("1e-3"))


def test_what_is_refused():
    with pytest.raises(DomainError, match="least_delta must be between 0 and 1; got 2"):
        gaussian_dp_fit(GaussianMechanism(1.0, 1.0), least_delta=2.0)
