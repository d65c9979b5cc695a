"""The posterior of a membership given a release, and the attackers that follow from it.

Notation: K people, b in {0, 1}^K who is a member, r the release, pi_k = P(b_k = 1 | r). ``posterior_enumeration`` sums
over all b where K is at most 24, ``posterior_sampling`` draws from the posterior by Gibbs steps beyond.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ... import special
from ...base import parallel, random_streams, validate
from ...base.errors import DomainError, warned
from ...base.estimate import Estimate, Result
from ...base.numerics import SMALLEST_NORMAL, UNIT_ROUNDOFF, BoolArray, FloatArray, enclosure, next_above, next_below
from ...base.parallel import Progress
from ...base.random_streams import RNGLike
from ...sampling.statistics.chain_convergence import LEAST_SAMPLES, R_HAT_LIMIT
from .attackers import Attacker
from .likelihood_terms import LikelihoodTerm, checked_releases, releases_of, terms_of
from .posterior_enumeration import MAX_PEOPLE, Enumeration, enumerate_subsets
from .posterior_sampling import SampledPosterior, sample_posterior
from .priors import BernoulliMembership, MembershipPrior
from .releases import CombinedReleases, FrequencyRelease

_BRIEF = 2**18  # memberships in all that take less time than threads take to start
_MOST_CHAINS = 1024  # and temperatures of each
# bound: proved - docs/proofs/roundings.md, 13.4: error of a log prior beside the sizes of its terms, and of a logistic
_FEW_ROUNDINGS = 32 * UNIT_ROUNDOFF


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MembershipPosterior(Result):
    """Who is a member, given a release.

    Parameters
    ----------
    probabilities : Estimate, shape (..., K)
        P(b_k = 1 | r) of each person.
    log_odds : Estimate, shape (..., K)
        log P(b_k = 1 | r) - log P(b_k = 0 | r), in nats: finite where ``probabilities`` round to 0 or 1, and infinite
        where the release decides.
    mode : ndarray of bool, shape (..., K)
        The most probable membership; beyond enumeration the most probable one that was visited.
    log_evidence : Estimate or None, shape (...)
        log p(r); None beyond enumeration.
    entropy : Estimate or None, shape (...)
        Shannon entropy H(b | r = r) in nats; None beyond enumeration.
    mixed : bool or ndarray of bool, shape (...)
        Whether the chains agree; True where nothing was sampled.
    r_hat, effective_samples : ndarray, shape (..., K), or None
        Of chains: split R-hat and effective sample size of each person's membership.
    cost : mapping, optional
        What was spent.

    Examples
    --------
    >>> from fastpriv.membership import BernoulliMembership, FrequencyRelease, GaussianNoise, Panel
    >>> from fastpriv.membership import membership_posterior
    >>> model = FrequencyRelease(Panel([[1, 0], [1, 1]]), BernoulliMembership(0.5), GaussianNoise(0.5))
    >>> found = membership_posterior(model, [1.0, 1.0])
    >>> found.probabilities.value.round(3).tolist(), found.mode.tolist()
    ([0.426, 0.922], [False, True])
    """

    probabilities: Estimate
    log_odds: Estimate
    mode: BoolArray
    log_evidence: Estimate | None = None
    entropy: Estimate | None = None
    mixed: Any = True
    r_hat: FloatArray | None = None
    effective_samples: FloatArray | None = None
    cost: Mapping[str, Any] = field(default_factory=dict)


def membership_posterior(
    model: FrequencyRelease | CombinedReleases, released: Any, *, method: str = "auto", sweeps: int = 2000,
    chains: int = 4, temperatures: int = 1, confidence: float = 0.95, rng: RNGLike = None,
    n_jobs: int | None = None, progress: Progress = None,
) -> MembershipPosterior:
    """The posterior of the membership of each person given a release.

    Parameters
    ----------
    model : FrequencyRelease or CombinedReleases
        Prior and noise; its panel is known to the attacker.
    released : array_like, shape (..., m)
        Releases; of ``CombinedReleases`` a sequence with one array for each release.
    method : {"auto", "enumeration", "gibbs"}
        ``"enumeration"`` visits all memberships, of at most 24 people; ``"gibbs"`` samples. ``"auto"`` enumerates where
        it can.
    sweeps : int, default 2000
        Of each chain, of which the first quarter is dropped. A sweep offers every person a change.
    chains : int, default 4
        Chains with different starts: the linear estimate, a draw from the prior, everybody and a single person.
    temperatures : int, default 1
        Replicas of each chain, each at half the inverse temperature of the one before, that exchange their states
        (parallel tempering): for posteriors with several modes.
    confidence : float, default 0.95
        Level of the intervals of sampled probabilities.
    rng : int, Generator or None
        Source of random numbers of chains.
    n_jobs : int, optional
        Number of threads.
    progress : bool or callable, optional
        Whether to show the progress of chains, or what to tell it to.

    Returns
    -------
    MembershipPosterior

    Raises
    ------
    DomainError
        For noise of a generator, whose likelihood is not known, more people than the method takes, releases that no
        membership can have made, and scales of the noise below 1e-100. For sampling without noise.
    ShapeError
        For releases of another number of attributes.

    Warns
    -----
    SamplingWarning
        Where chains do not mix: their halves disagree, by R-hat above 1.05 of a person or of the posterior density, or
        a person has fewer than 100 effective samples. Intervals of people whose chains disagree span those of all
        chains. Flips and exchanges do not mix under small L-infinity noise, and hardly under any noise far below 1 / n.

    Notes
    -----
    **Accuracy**: enumeration has proved bounds of kind ``certified``, of about 1e-13 in ordinary cases;
    tests/membership/test_posterior.py compares with sums in 60 digits over all memberships. Sampled intervals are
    ``statistical``; tests/membership/test_posterior_sampling.py compares with enumeration.

    Examples
    --------
    >>> from fastpriv.membership import BernoulliMembership, FrequencyRelease, LaplaceNoise, Panel
    >>> from fastpriv.membership import membership_posterior
    >>> panel = Panel([[1, 0, 1], [0, 0, 1], [1, 1, 0]])
    >>> model = FrequencyRelease(panel, BernoulliMembership(0.25), LaplaceNoise(0.2))
    >>> print(f"{membership_posterior(model, [1.0, 0.4, 0.6]).probabilities:.4f}")
    [0.9232, 0.1302, 0.8851], lower=[0.9231, 0.1301, 0.8851], upper=[0.9232, 0.1302, 0.8852]
    """
    parts = releases_of(model)
    arrays, shape = checked_releases(model, released)
    validate.choice("method", method, ("auto", "enumeration", "gibbs"))
    parallel.checked(n_jobs, progress)
    random_streams.checked(rng)
    options: dict[str, Any] = {
        "sweeps": validate.count("sweeps", sweeps, 16), "chains": validate.count("chains", chains, 1, _MOST_CHAINS),
        "temperatures": validate.count("temperatures", temperatures, 1, _MOST_CHAINS),
        "rng": rng,
        "confidence": validate.open_probability("confidence", confidence),
    }
    people = model.n_people
    if method == "gibbs" or (method == "auto" and people > MAX_PEOPLE):
        return _sampled(parts, arrays, shape, options, n_jobs, progress)
    if people > MAX_PEOPLE:
        raise DomainError(
            f"model must be of at most {MAX_PEOPLE} people for enumeration; got {people}. Sample from the posterior "
            'with method="gibbs".'
        )
    return _enumerated(parts, arrays, shape, n_jobs)


class BayesAttacker(Attacker):
    """The attacker with the least loss: the posterior probability of each person.

    Parameters
    ----------
    model : FrequencyRelease or CombinedReleases
        What the attacker knows: people, prior and noise.
    **options
        Keywords of ``membership_posterior``.

    Examples
    --------
    >>> from fastpriv.membership import BayesAttacker, FixedSizeMembership, FrequencyRelease, GaussianNoise, Panel
    >>> attacker = BayesAttacker(FrequencyRelease(Panel([[1], [1], [0]]), FixedSizeMembership(1), GaussianNoise(0.5)))
    >>> attacker.predict_proba([[0.5], [1.0]]).round(3).tolist()
    [[0.333, 0.333, 0.333], [0.468, 0.468, 0.063]]
    """

    name = "Bayes"

    def __init__(self, model: FrequencyRelease | CombinedReleases, **options: Any) -> None:
        releases_of(model)
        self.model, self.options = model, options

    def posterior(self, released: Any) -> MembershipPosterior:
        """The posterior given releases, with its bounds."""
        return membership_posterior(self.model, released, **self.options)

    def scores(self, released: Any) -> FloatArray:
        """Posterior log odds, shape (..., K); higher for members."""
        return np.asarray(self.posterior(released).log_odds.value)

    def predict_proba(self, released: Any) -> FloatArray:
        """Posterior probabilities, shape (..., K)."""
        return np.asarray(self.posterior(released).probabilities.value)

    def claims(self, released: Any, gamma: ArrayLike = 0.5) -> BoolArray:
        """The claims of most expected gain, pi_k > gamma: a right one gains 1 - gamma, a wrong one costs gamma."""
        level = validate.real("gamma", gamma, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1))
        return np.asarray(self.scores(released) > np.log(level) - np.log1p(-level))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"


class OptimalLRT(BayesAttacker):
    """The most powerful test of each person: P(r | b_k = 1) / P(r | b_k = 0), by Neyman and Pearson.

    Its ROC curve is that of the Bayes attacker where all people have the same prior probability.

    Parameters
    ----------
    model : FrequencyRelease or CombinedReleases
        What the attacker knows: people, prior and noise.
    **options
        Keywords of ``membership_posterior``.

    Examples
    --------
    >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, GaussianNoise, OptimalLRT, Panel
    >>> attacker = OptimalLRT(FrequencyRelease(Panel([[1], [1], [0]]), FixedSizeMembership(1), GaussianNoise(0.5)))
    >>> attacker.scores([0.5]).tolist()
    [0.0, 0.0, 0.0]
    """

    name = "optimal LRT"

    def scores(self, released: Any) -> FloatArray:
        """Log likelihood ratio of each person, shape (..., K); 0 for people whose membership the prior decides."""
        result = np.asarray(self.posterior(released).log_odds.value)
        prior = _prior_log_odds(self.model.prior, self.model.n_people)
        decided = np.isinf(prior)
        return np.where(decided, 0.0, result - np.where(decided, 0.0, prior))


def _prior_log_odds(prior: MembershipPrior, n_people: int) -> FloatArray:
    """log P(b_k = 1) - log P(b_k = 0), shape (K,), infinite where the prior decides."""
    if not isinstance(prior, BernoulliMembership):
        chance = prior.marginals(n_people)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(chance) - np.log1p(-chance))
    q = np.broadcast_to(np.asarray(prior.q, dtype=np.float64), (n_people,))
    logs = np.log1p(-q)
    others = np.array([math.fsum(np.delete(logs, k).tolist()) for k in range(n_people)])
    with np.errstate(divide="ignore"):
        return np.asarray((np.log(q) - logs) - np.log(-np.expm1(others)))


def _enumerated(
    parts: Sequence[FrequencyRelease], arrays: Sequence[FloatArray], shape: tuple[int, ...], n_jobs: int | None
) -> MembershipPosterior:
    """The sums of a batch of releases; of a single one the threads share the sum."""
    people, count = parts[0].n_people, len(arrays[0])
    log_odds, size_weights = parts[0].prior.log_prior(people)
    largest = float(np.max(np.abs(size_weights[np.isfinite(size_weights)])))
    error = _FEW_ROUNDINGS * (float(np.sum(np.abs(log_odds) + 1.0)) + largest + 1.0)  # of a log prior: sums of logs
    matrices = [part.panel.to_array().astype(np.float64) for part in parts]

    def enumerated(index: int) -> Enumeration:
        terms: list[LikelihoodTerm] = []
        for part, matrix, array in zip(parts, matrices, arrays, strict=True):
            terms += terms_of(part, matrix, array[index])
        return enumerate_subsets(log_odds, size_weights, terms, prior_error=error, n_jobs=n_jobs if count == 1 else 1)

    brief = count * 2**people < _BRIEF
    each = list(parallel.ordered_map(enumerated, range(count), n_jobs=n_jobs, shared=True, brief=brief))
    whole = (*shape, people)
    odds, odds_error = (np.array([entry[i] for entry in each]).reshape(whole) for i in (0, 1))
    numbers = np.array([element[2:6] for element in each]).reshape(count, 4).T
    infinite = np.isinf(odds)
    lower, upper = (
        np.where(infinite, odds, end) for end in (next_below(odds - odds_error), next_above(odds + odds_error))
    )
    most = people * math.log(2.0) * (1 + _FEW_ROUNDINGS)
    words: Any = {"kind": "certified", "unit": "nats", "method": "enumeration"}
    evidence, entropy = (
        Estimate(*enclosure(value.reshape(shape), error.reshape(shape), *range_of), **words)
        for value, error, range_of in zip(numbers[::2], numbers[1::2], ((), (0.0, most)), strict=True)
    )
    return MembershipPosterior(
        probabilities=_of_log_odds(odds, lower, upper),
        log_odds=Estimate(odds, lower, upper, **words),
        mode=np.array([item.mode for item in each]).reshape(whole),
        log_evidence=evidence, entropy=entropy,
        mixed=True if shape == () else np.ones(shape, dtype=bool),
        cost={"memberships": count * 2**people},
    )


def _sampled(
    parts: Sequence[FrequencyRelease], arrays: Sequence[FloatArray], shape: tuple[int, ...],
    options: Mapping[str, Any], n_jobs: int | None, progress: Progress,
) -> MembershipPosterior:
    """The posteriors of a batch of releases by Gibbs sampling."""
    people, level = parts[0].n_people, options["confidence"]
    whole = (*shape, people)

    def result(posteriors: list[SampledPosterior]) -> MembershipPosterior:
        chance, odds, lower, upper, r_hat, effective = (
            np.array([getattr(posterior, name) for posterior in posteriors]).reshape(whole)
            for name in ("probabilities", "log_odds", "lower", "upper", "r_hat", "effective_samples")
        )
        mixed = np.array([posterior.mixed for posterior in posteriors]).reshape(shape)
        words: Any = {"kind": "statistical", "method": "Gibbs sampling", "confidence": level}
        with np.errstate(divide="ignore"):
            low, high = (np.log(end) - np.log1p(-end) for end in (lower, upper))
        return MembershipPosterior(
            probabilities=Estimate(chance, lower, upper, unit="probability", **words),
            log_odds=Estimate(odds, np.minimum(low, odds), np.maximum(high, odds), unit="nats", **words),
            mode=np.array([posterior.chains.mode for posterior in posteriors]).reshape(whole),
            mixed=bool(mixed) if shape == () else mixed,
            r_hat=r_hat, effective_samples=effective,
            cost={"sweeps": posteriors[0].chains.log_density[0].size, "chains": options["chains"]},
        )

    answer = sample_posterior(parts, arrays, n_jobs=n_jobs, progress=progress, result=result, **options)
    unmixed = sum(not posterior.mixed for posterior in answer)
    if unmixed:
        worst = max(max(float(np.max(posterior.r_hat)), posterior.log_density_r_hat) for posterior in answer)
        least = min(float(np.min(posterior.effective_samples)) for posterior in answer)
        warned(
            f"the chains did not mix for {unmixed} of {len(answer)} releases: R-hat reaches {worst:.3g} (at most "
            f"{R_HAT_LIMIT} where they mix), and the fewest effective samples are {least:.3g} (at least "
            f"{LEAST_SAMPLES:g}). Take more sweeps or temperatures, or enumerate at most {MAX_PEOPLE} people."
        )
    return result(answer)


def _of_log_odds(value: FloatArray, lower: FloatArray, upper: FloatArray) -> Estimate:
    """Probabilities 1 / (1 + e^-x) of log odds with bounds."""
    center, below, above = (_logistic(x) for x in (value, lower, upper))
    below = np.where(np.isposinf(lower), 1.0, below * (1 - _FEW_ROUNDINGS))
    # what lies below the normal doubles has no relative accuracy
    above = np.where(np.isneginf(upper), 0.0, np.minimum(above * (1 + _FEW_ROUNDINGS) + SMALLEST_NORMAL, 1.0))
    below = np.where(below < SMALLEST_NORMAL, 0.0, below)
    return Estimate(
        np.clip(center, below, above), below, above, kind="certified", unit="probability", method="enumeration"
    )


def _logistic(x: FloatArray) -> FloatArray:
    """1 / (1 + e^-x), with the relative accuracy of a few roundings also where it is tiny."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        small = special.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, small) / (1.0 + small))
