"""Cross-entropy and entropy of probabilities agree for the posterior, and for nothing else."""

import numpy as np
import pytest

from fastpriv.base.errors import DomainError
from fastpriv.studies.membership import (
    BayesAttacker,
    BernoulliMembership,
    CombinedReleases,
    FixedSizeMembership,
    FrequencyRelease,
    GaussianNoise,
    LaplaceNoise,
    Panel,
    calibration_check,
)

PANEL = Panel(np.random.default_rng(0).integers(0, 2, (8, 10)))


@pytest.mark.few(2)
@pytest.mark.parametrize("prior", [BernoulliMembership(0.4), FixedSizeMembership(3)], ids=repr)
@pytest.mark.parametrize("noise", [GaussianNoise(0.3), LaplaceNoise(0.3)], ids=repr)
@pytest.mark.parametrize("clip", [False, True])
def test_intervals_hold_as_often_as_they_say(prior, noise, clip):
    model = FrequencyRelease(PANEL, prior, noise, clip=clip)
    held = [calibration_check(model, 100, confidence=0.95, rng=seed).calibrated for seed in range(20)]
    assert sum(held) >= 15, sum(held)  # 19 of 20 expected; fewer than 15 in one of 3000 trials
    found = calibration_check(model, 400, rng=1)
    assert found.entropy.value == pytest.approx(found.cross_entropy.value, rel=0.1)
    assert found.n_releases == 400
    assert set(found.estimates()) == {"cross_entropy", "entropy", "excess"}


def test_too_sure_and_not_sure_enough():
    prior = FixedSizeMembership(3)
    model = CombinedReleases([FrequencyRelease(PANEL, prior, GaussianNoise(s)) for s in (0.5, 1.0)])
    for sigma, sign in ((0.2, 1), (3.0, -1)):
        wrong = CombinedReleases([FrequencyRelease(PANEL, prior, GaussianNoise(sigma * s)) for s in (0.5, 1.0)])
        excess = calibration_check(model, 300, attacker=BayesAttacker(wrong), rng=2).excess
        assert sign * excess.value > 0
        assert not excess.lower <= 0 <= excess.upper


def test_probabilities_of_0_and_1():
    class Certain:
        def predict_proba(self, released):
            return np.tile(np.arange(8) < 3.0, (len(released), 1))

    model = FrequencyRelease(PANEL, FixedSizeMembership(3), GaussianNoise(0.3))
    found = calibration_check(model, 50, attacker=Certain(), rng=1)
    assert found.cross_entropy.value == np.inf
    assert found.entropy.value == 0.0
    assert not found.calibrated


def test_arguments():
    model = FrequencyRelease(PANEL, FixedSizeMembership(3), GaussianNoise(0.3))
    with pytest.raises(DomainError, match="attacker must have a method predict_proba"):
        calibration_check(model, attacker=model)
    with pytest.raises(DomainError, match="n_releases must be an integer of at least 30"):
        calibration_check(model, 3)
