"""Best responses of the defender to attackers by references, whose strategy is known and fixed.

Notation: b who is a member, f = f(b) their frequencies, delta in [-1/2, 1/2]^m the noise, r = f + delta in [0, 1]^m;
s_k(r) the score of person k and t the threshold above which the attacker claims. For each b the defender minimises

    sum_k [(1 - gamma) b_k - gamma (1 - b_k)] 1[s_k(r) > t] + price U,    U = mean_j kappa_j |delta_j|,

the gain of the claims (gamma-BWMA) plus the price of the utility loss, or the gain alone subject to U <= budget. The
step 1[.] is replaced by sigmoids 1 / (1 + exp(-(s_k - t) / T)) of falling T. Steps go down the gradient in the metric
f_j (1 - f_j), in which frequencies near 0 and 1 move little, and are followed by the exact minimum in that metric of
the utility term: a soft threshold, of height so chosen, where there is a budget, that the budget holds.

The problem is not convex. What is returned is the best by the gain of true claims, without the sigmoids, of what the
steps reach from three starts (f, the references' frequencies, those of the people who are no members), of these starts,
and of shares of all these noises.

Sources: Venkatesaramani, Wan, Malin and Vorobeychik 2023 (responses to likelihood ratio tests); Beck and Teboulle 2009
(proximal gradient steps).
"""

# bounds: none - noise is made here, and no bound

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...base import parallel, validate
from ...base.errors import DomainError
from ...base.inverse import bisect
from ...base.numerics import FloatArray
from .attackers import AdaptiveThresholdLRT, DworkScore, FixedThresholdLRT, unfitted
from .equilibrium import attribute_weights_over_count
from .noises import GENERATOR_RANGE, GeneratorNoise, Noise
from .panels import member_frequencies

_RELEASES = 64  # of one block
_TEMPERATURES = (3.0, 1.0, 0.3, 0.1, 0.03)  # of the sigmoids, in standard deviations of the scores within a release
_SHARES = np.linspace(1.0, 0.05, 20)  # of a noise: less of it may do when the claims are counted without sigmoids
_METRIC_FLOOR = 1e-3  # added to f (1 - f), so that attributes which no member has may move
_GROWTH, _SHRINKAGE = 1.5, 0.4  # of the step after one that goes down, and after one that does not
_BISECTIONS = 24  # for the height of the threshold: the budget is met from below within 1e-6 of it


def best_response(
    attacker: FixedThresholdLRT | AdaptiveThresholdLRT | DworkScore, *, price: float | None = None,
    utility_budget: float | None = None, threshold: float | None = None, gamma: float = 0.5,
    attribute_weights: ArrayLike | None = None, iterations: int = 160, dither: Noise | None = None,
) -> GeneratorNoise:
    """The defender's best response to an attacker whose scores and threshold are known: noise that depends on b.

    Parameters
    ----------
    attacker : FixedThresholdLRT, AdaptiveThresholdLRT or DworkScore
        Of the panel whose frequencies are released.
    price : float, optional
        What one unit of utility loss costs, in units of one claim; at least 0. Give this or ``utility_budget``.
    utility_budget : float, optional
        Largest utility loss of a release: mean over attributes of kappa_j |r_j - f_j|.
    threshold : float, optional
        Scores above it are claims; the attacker's own by default. A ``DworkScore`` has none, so give one.
    gamma : float, default 0.5
        A right claim costs the defender 1 - gamma, a false one gives it gamma; in [0, 1].
    attribute_weights : array_like, shape (m,), optional
        kappa_j >= 0, of which one is positive; 1 for all by default.
    iterations : int, default 160
        Gradient steps from each of three starts.
    dither : GaussianNoise, LaplaceNoise or LInfinityNoise, optional
        Noise that is added afterwards, as for ``GeneratorNoise``; the response does not foresee it.

    Returns
    -------
    GeneratorNoise
        For ``FrequencyRelease(attacker.panel, prior, noise)``. The noise is a function of the membership alone: its one
        seed is not used. Without dither it has no differential privacy, and an attacker who knows of the defence may
        find more than without it: attack it by ``attack_study``, with attacks that are trained on its releases.

    Raises
    ------
    DomainError, ShapeError
        For other attackers, one that was never fitted, numbers outside their range, and both or neither of price and
        budget.

    Notes
    -----
    Every release is at least as good, by the defender's own objective, as no noise, and as the references' frequencies,
    mixed with f until they meet the budget.

    **Accuracy** A local minimum. ``tests/membership/test_best_responses.py`` compares the gradients with differences,
    small cases with a search of a grid, and the objective with that of other noise.

    Source: Venkatesaramani et al. 2023.

    Examples
    --------
    >>> from fastpriv.membership import AdaptiveThresholdLRT, FixedSizeMembership, FrequencyRelease, Panel
    >>> from fastpriv.membership import best_response
    >>> attack = AdaptiveThresholdLRT(Panel([[1, 0, 1], [0, 1, 0]]), Panel([[0, 0, 0], [1, 1, 1], [1, 0, 0]]))
    >>> release = FrequencyRelease(attack.panel, FixedSizeMembership(1), best_response(attack, price=0.5))
    >>> attack.claims(release.frequencies([True, False])), attack.claims(release.release([True, False]))
    (array([ True, False]), array([False, False]))
    """
    kinds, remedy = (FixedThresholdLRT, DworkScore), "Pass one of fastpriv.membership."
    validate.instance("attacker", attacker, kinds, "a likelihood ratio test or a score", remedy)
    if (price is None) == (utility_budget is None):
        raise DomainError(
            "price must be given if utility_budget is not, and only then; got both or neither. Give one of them."
        )
    if threshold is None:
        if isinstance(attacker, DworkScore):
            raise DomainError(
                "threshold must be given for a score, which has none of its own; got None. Pass the score from which "
                "the attacker claims."
            )
        if attacker.threshold is None:
            raise unfitted(attacker)
        threshold = attacker.threshold
    level = validate.scalar("threshold", threshold, "a number", lambda x: ~np.isnan(x))
    finite = ("at least 0 and finite", lambda x: (x >= 0) & np.isfinite(x))
    cost = None if price is None else validate.scalar("price", price, *finite)
    budget = None if utility_budget is None else validate.scalar("utility_budget", utility_budget, *finite)
    response = _BestResponse(
        attacker, cost, budget, float(level),
        validate.scalar("gamma", gamma, "between 0 and 1", lambda x: (x >= 0) & (x <= 1)),
        attribute_weights_over_count(attribute_weights, attacker.panel.n_attributes),
        validate.count("iterations", iterations),
    )
    return GeneratorNoise(response, 1, dither)


class _ReleaseProblems(NamedTuple):
    """The problems of a block of releases."""

    gains: FloatArray  # (R, K): what a claim of each person gains
    frequencies: FloatArray  # (R, m)
    low: FloatArray  # (R, m): least and largest noise
    high: FloatArray
    metric: FloatArray  # (R, m)


@dataclass(frozen=True)
class _BestResponse:
    """The function of a ``GeneratorNoise``: memberships to noise."""

    attacker: Any
    price: float | None
    budget: float | None
    threshold: float
    gamma: float
    weights: FloatArray  # kappa_j / m
    iterations: int

    def __call__(self, membership: NDArray[np.bool_], _seeds: FloatArray) -> FloatArray:
        b = np.asarray(membership, dtype=np.bool_)
        answer = np.empty((len(b), self.attacker.panel.n_attributes))
        for part in parallel.blocks(len(b), _RELEASES):
            answer[part] = self._responses(b[part])
        return answer

    def _responses(self, b: NDArray[np.bool_]) -> FloatArray:
        panel = self.attacker.panel
        f = member_frequencies(panel, b)
        low, high = np.maximum(-f, -GENERATOR_RANGE), np.minimum(1.0 - f, GENERATOR_RANGE)
        gains = np.where(b, 1.0 - self.gamma, -self.gamma)
        problem = _ReleaseProblems(gains, f, low, high, f * (1.0 - f) + _METRIC_FLOOR)
        best = np.zeros_like(f)
        least = self.objective(problem, best)
        others = panel.counts(~b) / np.maximum((~b).sum(axis=1, keepdims=True), 1)
        wanted = (f, self.attacker.references.frequencies(), others)
        starts = [self._within_budget(np.clip(target - f, low, high)) for target in wanted]
        for candidate in (*starts[1:], *(self._descended(problem, start) for start in starts)):
            for share in _SHARES:
                value = self.objective(problem, share * candidate)
                better = value < least
                best, least = np.where(better[:, None], share * candidate, best), np.where(better, value, least)
        return np.asarray(best)

    def objective(self, problem: _ReleaseProblems, noise: FloatArray) -> FloatArray:
        """Gain of the true claims plus the price of the utility loss, for each release."""
        claims = self._excess(problem.frequencies + noise) > 0.0
        return np.asarray((problem.gains * claims).sum(axis=1) + self._priced(noise))

    def _excess(self, released: FloatArray) -> FloatArray:
        """Scores above the threshold; the adaptive test claims at its threshold, too."""
        excess: FloatArray = self.attacker.scores(released) - self.threshold
        if isinstance(self.attacker, AdaptiveThresholdLRT):
            excess = np.where(excess == 0.0, math.ulp(0.0), excess)
        return excess

    def _priced(self, noise: FloatArray) -> FloatArray:
        return np.asarray((self.price or 0.0) * (np.abs(noise) @ self.weights))

    def _descended(self, problem: _ReleaseProblems, start: FloatArray) -> FloatArray:
        """Where proximal gradient steps lead, each release with steps of its own."""
        noise = start.copy()
        spread = self.attacker.scores(problem.frequencies).std(axis=1, keepdims=True)
        spread = np.where(spread > 0.0, spread, 1.0)
        for temperature in _TEMPERATURES:
            width = temperature * spread
            step = np.asarray(width / np.maximum(np.abs(problem.gains).sum(axis=1, keepdims=True), 1.0))
            value, claims = self._smooth(problem, noise, width)
            for _ in range(-(-self.iterations // len(_TEMPERATURES))):
                slopes = problem.gains * claims * (1.0 - claims) / width
                gradient = self.attacker.gradient(problem.frequencies + noise, slopes)
                tried = self._proximal(problem, noise - step * problem.metric * gradient, step)
                value_there, claims_there = self._smooth(problem, tried, width)
                down = value_there < value
                noise = np.where(down[:, None], tried, noise)
                claims = np.where(down[:, None], claims_there, claims)
                value = np.where(down, value_there, value)
                step = step * np.where(down, _GROWTH, _SHRINKAGE)[:, None]
        return noise

    def _smooth(self, problem: _ReleaseProblems, noise: FloatArray, width: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The objective with sigmoids for claims, and the sigmoids."""
        claims = 0.5 * (1.0 + np.tanh(0.5 * self._excess(problem.frequencies + noise) / width))
        return np.asarray((problem.gains * claims).sum(axis=1) + self._priced(noise)), claims

    def _proximal(self, problem: _ReleaseProblems, noise: FloatArray, step: FloatArray) -> FloatArray:
        unit = problem.metric * self.weights

        def shrunk(height: FloatArray) -> FloatArray:
            small = np.sign(noise) * np.maximum(np.abs(noise) - height * unit, 0.0)
            return np.asarray(np.clip(small, problem.low, problem.high))

        if self.budget is None:
            return shrunk(step * (self.price or 0.0))
        inside = shrunk(np.zeros_like(step))
        if (np.abs(inside) @ self.weights <= self.budget).all():
            return inside
        ratios = np.abs(noise) / np.where(unit > 0.0, unit, math.inf)
        enough = 2.0 * np.max(ratios, axis=1, keepdims=True)  # nothing is left at that height, however it is rounded
        budget = self.budget
        _, enough = bisect(
            lambda height: (np.abs(shrunk(height)) @ self.weights <= budget)[:, None], np.zeros_like(enough), enough,
            _BISECTIONS,
        )
        met = np.abs(inside) @ self.weights <= self.budget
        return np.where(met[:, None], inside, shrunk(enough))

    def _within_budget(self, noise: FloatArray) -> FloatArray:
        if self.budget is None:
            return noise
        loss = np.abs(noise) @ self.weights
        share = np.minimum(self.budget / np.where(loss > 0.0, loss, 1.0), 1.0)
        return np.asarray(noise * np.where(loss > 0.0, share, 1.0)[:, None])
