"""Whether the probabilities of an attacker are calibrated: cross-entropy against entropy over simulated releases.

Notation: h_k the attacker's P(b_k = 1 | r). If h is the posterior of the model that made b and r, then
-E sum_k [b_k log h_k + (1 - b_k) log(1 - h_k)] = E sum_k H(h_k), H(h) = -h log h - (1 - h) log(1 - h).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base import validate
from ...base.errors import DomainError
from ...base.estimate import Estimate, Result
from ...base.random_streams import RNGLike
from .evaluation_by_release import mean_over_simulations
from .member_posteriors import BayesAttacker
from .releases import CombinedReleases, FrequencyRelease

__all__ = ["CalibrationCheck", "calibration_check"]

_FEWEST_RELEASES = 30  # of which a mean is taken as normal


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CalibrationCheck(Result):
    """Mean cross-entropy and mean entropy of an attacker's probabilities, in nats a release.

    Parameters
    ----------
    cross_entropy, entropy : Estimate
        -sum_k [b_k log h_k + (1 - b_k) log(1 - h_k)] and sum_k H(h_k), on average over releases.
    excess : Estimate
        Cross-entropy less entropy: above 0 the attacker is too sure, below 0 not sure enough.
    n_releases : int
        Number of simulated releases.

    Examples
    --------
    >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, GaussianNoise, Panel, calibration_check
    >>> model = FrequencyRelease(Panel([[1, 0], [0, 1], [1, 1]]), FixedSizeMembership(1), GaussianNoise(0.5))
    >>> calibration_check(model, 200, rng=1).calibrated
    True
    """

    cross_entropy: Estimate
    entropy: Estimate
    excess: Estimate
    n_releases: int

    @property
    def calibrated(self) -> bool:
        """Whether the interval of the excess contains 0."""
        return bool(self.excess.lower <= 0.0 <= self.excess.upper)


def calibration_check(
    model: FrequencyRelease | CombinedReleases, n_releases: int = 200, *, attacker: Any = None,
    confidence: float = 0.99, rng: RNGLike = None,
) -> CalibrationCheck:  # fmt: skip
    """Compare an attacker's cross-entropy with the entropy that its own probabilities claim.

    Parameters
    ----------
    model : FrequencyRelease or CombinedReleases
        From which memberships and releases are simulated.
    n_releases : int, default 200
        At least 30.
    attacker : object with ``predict_proba``, optional
        ``BayesAttacker(model)`` by default.
    confidence : float, default 0.99
        Level of the intervals, which take the mean over releases as normal.
    rng : int, Generator or None
        Source of random numbers.

    Returns
    -------
    CalibrationCheck

    Raises
    ------
    DomainError
        For an attacker that has no ``predict_proba``.

    Notes
    -----
    **Accuracy**: intervals are ``statistical``; tests/membership/test_calibration.py counts how often they fail.

    Examples
    --------
    >>> from fastpriv.membership import BayesAttacker, FixedSizeMembership, FrequencyRelease, GaussianNoise, Panel
    >>> from fastpriv.membership import calibration_check
    >>> panel = Panel([[1, 0], [0, 1], [1, 1]])
    >>> model = FrequencyRelease(panel, FixedSizeMembership(1), GaussianNoise(1.0))
    >>> too_sure = BayesAttacker(FrequencyRelease(panel, FixedSizeMembership(1), GaussianNoise(0.3)))
    >>> bool(calibration_check(model, 200, attacker=too_sure, rng=1).excess.lower > 0)
    True
    """
    attacker = BayesAttacker(model) if attacker is None else attacker
    if not callable(getattr(attacker, "predict_proba", None)):
        raise DomainError(
            f"attacker must have a method predict_proba; got {validate.shown(attacker)}. Calibrate its scores first."
        )
    count = validate.count("n_releases", n_releases, _FEWEST_RELEASES, validate.MOST_ENTRIES)
    level = validate.scalar("confidence", confidence, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1))
    simulated = model.simulate(count, rng=rng)
    chance = np.asarray(attacker.predict_proba(simulated.released), dtype=np.float64)
    with np.errstate(divide="ignore"):
        member, other = -np.log(chance), -np.log1p(-chance)
    with np.errstate(invalid="ignore"):
        loss = np.where(simulated.membership, member, other).sum(axis=1)
        claimed = np.where(chance > 0, chance * member, 0.0) + np.where(chance < 1, (1 - chance) * other, 0.0)
    entropy = claimed.sum(axis=1)
    excess = mean_over_simulations(loss - entropy, level, "nats", -math.inf)
    cross, claim = (mean_over_simulations(x, level, "nats") for x in (loss, entropy))
    return CalibrationCheck(cross, claim, excess, count)
