"""Risks of releases of frequencies under the best attack: entropies of the membership, and weighted advantages.

Notation: b in {0, 1}^K who is a member, r the release, pi_k = P(b_k = 1 | r). The Bayes generative privacy (BGP) risk
is the least cross-entropy loss of an attacker who names a probability for each person. There are two:

    marginal: sum_k H(b_k | r), which the vector of the pi_k attains;
    joint: H(b | r), which needs a distribution over all memberships; marginal - joint is the expected total
    correlation of b given r, never negative.

The largest gamma-weighted membership advantage (BWMA) is sum_k E (pi_k - gamma)^+.

How they are computed. A release depends on b through the type g of its frequencies (``frequency_types``). Without noise
the risks are sums over types. A Gaussian release of one attribute is a mixture with a component for each type, and

    H(b | R) = H(b) - I(g; R),
    H(b_k | R) = h(q_k) - I(g; R) + q_k I(g; R | b_k = 1) + (1 - q_k) I(g; R | b_k = 0),

h the binary entropy, q_k = P(b_k = 1), and every I the label information of a mixture. To first order an error of the
probabilities of types relative to themselves moves H(b_k | R) by as much of itself, and I(g; R) by as much of 1 +
I(g; R). Otherwise releases are drawn, and each posterior is computed exactly: its entropy has less variance than the
log of the probability of the true membership.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...base import random_streams, validate
from ...base.errors import DomainError
from ...base.estimate import Estimate, Information
from ...base.monotone import in_unit
from ...base.numerics import LOG_2, UNIT_ROUNDOFF, BoolArray, FloatArray, IntArray, enclosure
from ...base.random_streams import RNGLike
from ...base.values import distinct_rows
from ...distributions import GaussianMixture
from ...divergences import hockey_stick_divergence, label_information
from ...sampling.statistics.intervals import replicate_interval
from .frequency_types import MAX_TYPED_PEOPLE, PRIOR_ROUNDING, FrequencyTypes, person_entropies
from .likelihood_terms import releases_of
from .member_posteriors import membership_posterior
from .noises import GaussianNoise, NoNoise
from .panels import Panel
from .posterior_enumeration import MAX_PEOPLE
from .priors import FixedSizeMembership, all_memberships
from .releases import CombinedReleases, FrequencyRelease

__all__ = ["bgp_risk", "bwma", "conditional_entropies"]

_METHODS = ("auto", "exact", "monte_carlo")  # of all functions here
_REPLICATES = 32  # of the releases that are drawn: Student's factor is then 4 % above the normal quantile
_SAMPLES = 4096  # releases that are drawn by default
_STRATIFIED_PEOPLE = 12  # people up to which memberships are drawn in proportion to their probabilities
# bound: proved - a few roundings of logarithms, of weights and of sums of at most 20 people, relative to these terms
_FEW_ROUNDINGS = 64 * UNIT_ROUNDOFF


@in_unit
def bgp_risk(
    model: FrequencyRelease | CombinedReleases, *, kind: str = "marginal", method: str = "auto",
    samples: int = _SAMPLES, confidence: float = 0.95, rng: RNGLike = None, unit: Information = "nats",
) -> Estimate:  # fmt: skip
    """The least cross-entropy loss of any attacker: sum_k H(b_k | r), or H(b | r).

    Parameters
    ----------
    model : FrequencyRelease or CombinedReleases
        Panel, prior and noise, all known to the attacker.
    kind : {"marginal", "joint"}
        ``"marginal"`` is what an attacker attains who names one probability a person, ``"joint"`` the entropy of the
        whole membership, which is at most that.
    method : {"auto", "exact", "monte_carlo"}
        ``"exact"``: certified, of at most 20 people, for releases without noise, or of one attribute with Gaussian
        noise of one sigma and without clipping. ``"monte_carlo"``: drawn releases with exact posteriors, of at most 24
        people. ``"auto"``: the first that applies.
    samples : int, default 4096
        Releases that are drawn, at least 64.
    confidence : float, default 0.95
        Level of the interval of drawn releases.
    rng : int, Generator or None
        Source of random numbers.
    unit : {"nats", "bits"}
        Unit of the answer.

    Returns
    -------
    Estimate
        ``certified`` by ``"exact"``, else ``statistical``.

    Raises
    ------
    DomainError
        For a method that does not apply, a generator without a likelihood, or keywords out of range.

    Notes
    -----
    **Accuracy** certified ones have an absolute width of about 1e-11 at scales from 1e-3 to 1e2.
    ``tests/membership/test_risks.py`` compares with mpmath and sums over all memberships, and counts that intervals
    hold at their level. Several Gaussian releases of one attribute are one: ``CombinedReleases.pooled``.

    Source: Zhang, Venkatesaramani, De, Malin and Vorobeychik 2024, definition 4 and lemma 3, with the value of the
    lemma corrected to the sum of marginal entropies.

    Examples
    --------
    >>> from fastpriv.membership import BernoulliMembership, FrequencyRelease, GaussianNoise, Panel, bgp_risk
    >>> model = FrequencyRelease(Panel([[1], [0], [1], [0]]), BernoulliMembership(0.5), GaussianNoise(0.1))
    >>> print(f"{bgp_risk(model):.6f}, {bgp_risk(model, kind='joint'):.6f}")
    1.996912 [1.996911, 1.996912], 1.598985 [1.598984, 1.598985]
    """
    validate.choice("kind", kind, ("marginal", "joint"))
    result = _entropies(model, method, samples, confidence, rng)
    return result.joint if kind == "joint" else result.marginal


@in_unit
def conditional_entropies(
    model: FrequencyRelease | CombinedReleases, *, method: str = "auto", samples: int = _SAMPLES,
    confidence: float = 0.95, rng: RNGLike = None, unit: Information = "nats",
) -> Estimate:  # fmt: skip
    """H(b_k | r) of each person, whose sum is the marginal risk.

    Parameters
    ----------
    model, method, samples, confidence, rng, unit
        As ``bgp_risk``.

    Returns
    -------
    Estimate, shape (K,)
        As ``bgp_risk``; each interval holds by itself.

    Raises
    ------
    DomainError
        As ``bgp_risk``.

    Notes
    -----
    **Accuracy** as ``bgp_risk``; ``tests/membership/test_risks.py``.

    Source: as ``bgp_risk``.

    Examples
    --------
    >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, GaussianNoise, Panel
    >>> from fastpriv.membership import conditional_entropies
    >>> model = FrequencyRelease(Panel([[1], [0], [0]]), FixedSizeMembership(1), GaussianNoise(0.5))
    >>> conditional_entropies(model).value.round(6)
    array([0.330707, 0.555261, 0.555261])
    """
    return _entropies(model, method, samples, confidence, rng).people


def bwma(
    model: FrequencyRelease | CombinedReleases, gamma: ArrayLike, *, method: str = "auto", samples: int = _SAMPLES,
    confidence: float = 0.95, rng: RNGLike = None,
) -> Estimate:  # fmt: skip
    """The largest gamma-weighted membership advantage of any attacker, sum_k E (pi_k - gamma)^+.

    It is what claims gain where a right one counts 1 - gamma and a wrong one -gamma:
    sum_k (1 - gamma) P(s_k = 1, b_k = 1) - gamma P(s_k = 1, b_k = 0), with joint probabilities. Of each person it is
    (1 - gamma) q_k H_{e^epsilon}(P_k1 || P_k0), e^epsilon = gamma (1 - q_k) / ((1 - gamma) q_k): a hockey-stick
    divergence of the release with and without the person.

    Parameters
    ----------
    model, method, samples, confidence, rng
        As ``bgp_risk``.
    gamma : array_like
        Strictly between 0 and 1, any shape.

    Returns
    -------
    Estimate
        Of the shape of ``gamma``, without a unit: expected gains over all people, at most their expected number among
        the members. Kinds as of ``bgp_risk``; intervals hold for each gamma by itself.

    Raises
    ------
    DomainError
        As ``bgp_risk``, and for gamma out of range.

    Notes
    -----
    **Accuracy** certified ones have an absolute width of about 1e-11, by ``tests/membership/test_risks.py`` against
    mpmath.

    Source: Zhang et al. 2024, definition 3 and proposition 1, with joint probabilities.

    Examples
    --------
    >>> from fastpriv.membership import BernoulliMembership, FrequencyRelease, GaussianNoise, Panel, bwma
    >>> model = FrequencyRelease(Panel([[1], [0], [1], [0]]), BernoulliMembership(0.5), GaussianNoise(0.1))
    >>> bwma(model, [0.2, 0.5, 0.8]).value.round(7)
    array([1.4778175, 0.53051  , 0.0327801])
    """
    weights = validate.real("gamma", gamma, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1))
    parts, chosen = _checked(model, method, samples, confidence)
    flat = weights.reshape(-1)
    game = None if chosen == "monte_carlo" else _certified_game(parts)
    if game is not None:
        value, error = _certified_gains(game, flat)
        return _certified(value.reshape(weights.shape), error.reshape(weights.shape), "1", game.method)
    _refuse(chosen, parts)

    def gains(released: Any) -> FloatArray:
        pi = np.asarray(membership_posterior(model, released).probabilities.value)
        return np.stack([np.maximum(pi - item, 0.0).sum(axis=1) for item in flat], axis=1)

    drawn = _mean_over_releases(model, gains, samples, confidence, rng, high=float(model.n_people))
    numbers = tuple(x.reshape(weights.shape) for x in drawn)
    return _statistical(numbers, "1", confidence, samples)


class _Entropies(NamedTuple):
    joint: Estimate
    marginal: Estimate
    people: Estimate


class _CertifiedGame(NamedTuple):
    """Types of the memberships, and what is released of them; people of one kind are alike."""

    types: FrequencyTypes
    sigma: float | None  # of the noise, None where the frequencies themselves are released
    kind_of: IntArray  # (K,)
    entropy: Estimate  # H(b)
    method: str

    def people(self) -> list[int]:
        """One person of each kind."""
        return np.unique(self.kind_of, return_index=True)[1].tolist()  # type: ignore[no-any-return]

    def mixture(self, weights: FloatArray) -> GaussianMixture:
        """The distribution of the release where the types have these weights."""
        positive = weights > 0.0
        part = weights[positive]
        return GaussianMixture(part / part.sum(), self.types.frequencies[positive, 0], self.sigma)


def _checked(model: Any, method: str, samples: Any, confidence: Any) -> tuple[tuple[FrequencyRelease, ...], str]:
    parts = releases_of(model)
    validate.choice("method", method, _METHODS)
    validate.count("samples", samples, 2 * _REPLICATES, validate.MOST_ENTRIES)
    validate.scalar("confidence", confidence, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1))
    return parts, method


def _refuse(method: str, parts: tuple[FrequencyRelease, ...]) -> None:
    """An error for a method that does not apply."""
    if method == "exact":
        raise DomainError(
            f"method must be 'monte_carlo' for this model; got {method!r} of {list(parts)!r}. Certified risks are of "
            f"at most {MAX_TYPED_PEOPLE} people and of releases without noise, or of one attribute with Gaussian noise "
            "and without clipping."
        )
    if parts[0].n_people > MAX_PEOPLE:
        raise DomainError(
            f"model must be of at most {MAX_PEOPLE} people for posteriors of drawn releases; got {parts[0].n_people}. "
            "Select fewer people."
        )


def _entropies(model: Any, method: str, samples: int, confidence: float, rng: RNGLike) -> _Entropies:
    parts, chosen = _checked(model, method, samples, confidence)
    game = None if chosen == "monte_carlo" else _certified_game(parts)
    if game is not None:
        return _certified_entropies(game)
    _refuse(chosen, parts)

    def entropies(released: Any) -> FloatArray:
        answer = membership_posterior(model, released)
        pi, odds = np.asarray(answer.probabilities.value), np.abs(np.asarray(answer.log_odds.value))
        with np.errstate(over="ignore", invalid="ignore"):  # h(pi) from the log odds, without cancellation
            each = np.log1p(np.exp(-odds)) + np.where(np.isinf(odds), 0.0, odds / (1.0 + np.exp(odds)))
        joint = np.asarray(answer.entropy.value if answer.entropy is not None else 0.0 * pi[:, 0])
        return np.concatenate([joint[:, None], each.sum(axis=1, keepdims=True), each], axis=1)

    result = _mean_over_releases(model, entropies, samples, confidence, rng, high=model.n_people * LOG_2)
    parts_of = [tuple(x[index] for x in result) for index in (0, 1, slice(2, None))]
    return _Entropies(*(_statistical(item, "nats", confidence, samples) for item in parts_of))


def _certified_game(parts: tuple[FrequencyRelease, ...]) -> _CertifiedGame | None:
    """What certified risks are computed from, if they are known for this model."""
    first, *further = parts
    prior, people = first.prior, first.n_people
    if people > MAX_TYPED_PEOPLE:
        return None
    sigma, method = None, "sum over types of memberships"
    if all(isinstance(part.noise, NoNoise) for part in parts):
        bits = np.concatenate([part.panel.to_array() for part in parts], axis=1)
    else:
        if further or first.clip or first.n_attributes > 1 or not isinstance(first.noise, GaussianNoise):
            return None
        sizes = [prior.n0] if isinstance(prior, FixedSizeMembership) else range(1, people + 1)
        sigmas = first.noise.scale_of(np.asarray(sizes))
        if np.ptp(sigmas) > 0.0:
            return None
        bits, sigma, method = first.panel.to_array(), float(sigmas[0]), "label information of mixtures"
    keys = np.concatenate([bits, np.asarray(prior.log_prior(people).log_odds)[:, None]], axis=1)
    kind_of = distinct_rows(keys)[1]
    return _CertifiedGame(FrequencyTypes.of(Panel(bits), prior), sigma, kind_of, prior.entropy(people), method)


def _certified_entropies(game: _CertifiedGame) -> _Entropies:
    """Entropies of the membership and of each person."""
    types = game.types
    if game.sigma is None:
        people, errors = person_entropies(types.members, types.others)
        logs = -np.log(types.probabilities)
        information = math.fsum((types.probabilities * logs).tolist())
        error = (PRIOR_ROUNDING + _FEW_ROUNDINGS) * (1.0 + information)
    else:
        whole = label_information(game.mixture(types.probabilities), certified=True)
        information, error = float(whole.value), float(whole.width) + 2.0 * PRIOR_ROUNDING * (1.0 + float(whole.upper))
        people, errors = np.zeros((2, len(game.kind_of)))
        for person in game.people():
            alike = game.kind_of == game.kind_of[person]
            people[alike], errors[alike] = _person_entropy(game, person, whole)
    joint, rounding = float(game.entropy.value) - information, _FEW_ROUNDINGS * (1.0 + float(game.entropy.value))
    marginal = math.fsum(people.tolist())
    numbers = (
        (joint, error + game.entropy.width + rounding),
        (marginal, math.fsum(errors.tolist()) + _FEW_ROUNDINGS * marginal),
        (people, errors),
    )
    return _Entropies(*(_certified(np.asarray(x), np.asarray(e), "nats", game.method) for x, e in numbers))


def _person_entropy(game: _CertifiedGame, person: int, whole: Estimate) -> tuple[float, float]:
    """H(b_k | R) of a Gaussian release, and its error; ``whole`` is I(g; R)."""
    sides = [side[:, person] for side in (game.types.members, game.types.others)]
    chances = [float(side.sum()) for side in sides]
    if not min(chances) > 0.0:
        return 0.0, 0.0
    parts = [label_information(game.mixture(side), certified=True) for side in sides]
    terms = [-float(whole.value)]
    # the sums of both sides may differ from the probabilities of the types by as much as these err
    error = float(whole.width) + (2.0 * PRIOR_ROUNDING + _FEW_ROUNDINGS) * (2.0 + float(whole.upper))
    for chance, other, part in zip(chances, reversed(chances), parts, strict=True):
        log = math.log(chance) if chance < 0.5 else math.log1p(-other)
        terms += [-chance * log, chance * float(part.value)]
        error += chance * float(part.width)
    value = math.fsum(terms)
    return value, error + 2.0 * PRIOR_ROUNDING * (abs(value) + error)


def _certified_gains(game: _CertifiedGame, gamma: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The sum over people of (1 - gamma) q_k H(P_k1 || P_k0) for each gamma, with its error."""
    total, error = np.zeros((2, gamma.size))
    counts = np.bincount(game.kind_of)
    for person in game.people():
        count = counts[game.kind_of[person]]
        sides = [side[:, person] for side in (game.types.members, game.types.others)]
        inside, outside = (float(side.sum()) for side in sides)
        if game.sigma is None or not min(inside, outside) > 0.0:
            differences = np.outer(1.0 - gamma, sides[0]) - np.outer(gamma, sides[1])
            value, width = np.maximum(differences, 0.0).sum(axis=1), np.zeros(gamma.size)
        else:
            logs = np.array(
                [np.log(gamma), -np.log1p(-gamma), 0 * gamma + math.log(outside), 0 * gamma - math.log(inside)]
            )
            curve = hockey_stick_divergence(game.mixture(sides[0]), game.mixture(sides[1]), logs.sum(axis=0))
            value, width = ((1.0 - gamma) * inside * np.asarray(x) for x in (curve.value, curve.width))
            width = width + _FEW_ROUNDINGS * gamma * outside * np.abs(logs).sum(axis=0)
        rounding = (2.0 * PRIOR_ROUNDING + _FEW_ROUNDINGS) * ((1.0 - gamma) * inside + gamma * outside)
        total, error = total + count * value, error + count * (width + rounding)
    return total, error


def _mean_over_releases(
    model: Any, function: Any, samples: int, confidence: float, rng: RNGLike, high: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Student's interval over replicates of the mean of a function of releases, one column a quantity."""
    root = random_streams.root(rng)
    each = -(-int(samples) // _REPLICATES)
    means = []
    for stream in root.spawn(_REPLICATES):
        random = np.random.default_rng(stream)
        members = _memberships(model, each, random)
        released = [part.release(members, rng=random) for part in releases_of(model)]
        means.append(function(released[0] if isinstance(model, FrequencyRelease) else released).mean(axis=0))
    result = replicate_interval(np.stack(means), confidence, low=0.0, high=high, points=each)
    return tuple(np.asarray(x) for x in (result.value, result.lower, result.upper))  # type: ignore[return-value]


def _memberships(model: Any, count: int, random: Any) -> BoolArray:
    """Memberships from the prior; of few people in proportion to their probabilities, by a common shift."""
    people, prior = model.n_people, model.prior
    if people > _STRATIFIED_PEOPLE:
        return np.asarray(prior.draw(count, people, random))
    every, logs = all_memberships(prior, people)
    p = np.exp(logs)
    indices = (np.arange(count) + random.random()) / count
    return np.asarray(every[np.minimum(np.searchsorted(np.cumsum(p) / p.sum(), indices), len(p) - 1)])


def _certified(value: FloatArray, error: FloatArray, unit: Any, method: str) -> Estimate:
    return Estimate(*enclosure(value, error, 0.0), kind="certified", unit=unit, method=method)


def _statistical(numbers: Any, unit: Any, confidence: float, samples: int) -> Estimate:
    """The estimate of numbers with bounds that come from drawn releases."""
    return Estimate(
        *numbers, kind="statistical", unit=unit, confidence=confidence, method="posteriors of drawn releases",
        cost={"samples": int(samples)},
    )  # fmt: skip
