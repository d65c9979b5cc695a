"""Risks of releases of frequencies under the best attack: entropies of the membership, and weighted advantages.

Notation: b in {0, 1}^K who is a member, r the release, pi_k = P(b_k = 1 | r). The Bayes generative privacy (BGP) risk
is the least cross-entropy loss of an attacker who names a probability for each person. There are two:

    marginal: sum_k H(b_k | r), which the vector of the pi_k attains;
    joint: H(b | r), which needs a distribution over all memberships; marginal - joint is the expected total
    correlation of b given r, never negative.

The largest gamma-weighted membership advantage (BWMA) is sum_k E (pi_k - gamma)^+.

How they are computed. Without noise: sums over classes of memberships (``classes``). Releases that depend on b through
one number have certified integrals (``risk_integrals``): one attribute; or several Gaussian releases, not clipped, of
one attribute or its complement, whose mean with weights 1 / sigma^2 says all. Otherwise releases are drawn, and each
posterior is computed exactly: its entropy has less variance than the log of the probability of the true membership.
"""

# bounds: proved - four roundings of a logarithm and its sum

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...base import random_streams, validate
from ...base.errors import DomainError
from ...base.estimate import Estimate, Information
from ...base.monotone import in_unit
from ...base.numerics import LOG_2, UNIT_ROUNDOFF, BoolArray, FloatArray, enclosure
from ...base.random_streams import RNGLike
from ...base.values import distinct_rows
from ...sampling.statistics.intervals import replicate_interval
from .classes import MembershipClasses, membership_classes
from .likelihood_terms import releases_of
from .member_posteriors import membership_posterior
from .noises import GaussianNoise, LInfinityNoise, NoNoise
from .panels import Panel
from .posterior_enumeration import MAX_PEOPLE
from .priors import FixedSizeMembership, all_memberships
from .releases import CombinedReleases, FrequencyRelease
from .risk_integrals import LineModel, entropy_integrals, positive_part

_METHODS = ("auto", "exact", "quadrature", "monte_carlo")  # of all functions here
_REPLICATES = 32  # of the releases that are drawn: Student's factor is then 4 % above the normal quantile
_SAMPLES = 4096  # releases that are drawn by default
_STRATIFIED_PEOPLE = 12  # people up to which memberships are drawn in proportion to their probabilities
_MAX_LINE_CLASSES = 2**13  # classes of one dimension that are integrated: about a minute
# bound: proved - sums over classes of terms that are rounded a few times, relative
_CLASS_ERROR = 64 * UNIT_ROUNDOFF


@in_unit
def bgp_risk(
    model: FrequencyRelease | CombinedReleases, *, kind: str = "marginal", method: str = "auto",
    samples: int = _SAMPLES, confidence: float = 0.95, rng: RNGLike = None, unit: Information = "nats",
) -> Estimate:
    """The least cross-entropy loss of any attacker: sum_k H(b_k | r), or H(b | r).

    Parameters
    ----------
    model : FrequencyRelease or CombinedReleases
        Panel, prior and noise, all known to the attacker.
    kind : {"marginal", "joint"}
        ``"marginal"`` is what an attacker attains who names one probability a person, ``"joint"`` the entropy of the
        whole membership, which is at most that.
    method : {"auto", "exact", "quadrature", "monte_carlo"}
        ``"exact"`` or ``"quadrature"``: certified, for releases without noise or of one number: one attribute, or
        Gaussian releases, not clipped, of one attribute and its complement. ``"monte_carlo"``: drawn releases with
        exact posteriors, of at most 24 people. ``"auto"``: the first that applies.
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
        ``certified`` by ``"exact"`` and ``"quadrature"``, else ``statistical``.

    Raises
    ------
    DomainError
        For a method that does not apply, a generator without a likelihood, or keywords out of range.

    Notes
    -----
    **Accuracy** certified ones have a relative width of about 1e-13 at scales from 1e-3 to 1e2, clipped or not; with
    many classes of memberships the work is limited and they are wider. ``tests/membership/test_risks.py`` compares with
    mpmath and sums over all memberships, and counts that intervals hold at their level.

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
    return _entropies(model, method, samples, confidence, rng)[("joint", "marginal").index(kind)]


@in_unit
def conditional_entropies(
    model: FrequencyRelease | CombinedReleases, *, method: str = "auto", samples: int = _SAMPLES,
    confidence: float = 0.95, rng: RNGLike = None, unit: Information = "nats",
) -> Estimate:
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
    >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, LaplaceNoise, Panel
    >>> from fastpriv.membership import conditional_entropies
    >>> model = FrequencyRelease(Panel([[1], [0], [0]]), FixedSizeMembership(1), LaplaceNoise(0.5))
    >>> conditional_entropies(model).value.round(6)
    array([0.41366 , 0.578806, 0.578806])
    """
    return _entropies(model, method, samples, confidence, rng)[2]


def bwma(
    model: FrequencyRelease | CombinedReleases, gamma: ArrayLike, *, method: str = "auto", samples: int = _SAMPLES,
    confidence: float = 0.95, rng: RNGLike = None,
) -> Estimate:
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
    **Accuracy** certified ones have an absolute width of about 1e-13, by ``tests/membership/test_risks.py`` against
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
    flat = weights.reshape(-1)
    line = _line_if_it_serves(model, method, samples, confidence)
    if line is not None:
        bounds = np.array([_line_bwma(line, gamma) for gamma in flat.tolist()]).reshape(-1, 2).T
        value, error = (x.reshape(weights.shape) for x in bounds)
        return _certified(value, error, "1", line.method)

    def gains(released: Any) -> FloatArray:
        pi = np.asarray(membership_posterior(model, released).probabilities.value)
        return np.stack([np.maximum(pi - item, 0.0).sum(axis=1) for item in flat], axis=1)

    drawn = _mean_over_releases(model, gains, samples, confidence, rng, high=float(model.n_people))
    numbers = tuple(x.reshape(weights.shape) for x in drawn)
    return _statistical(numbers, "1", confidence, samples)


class _OneDimensionalClasses(NamedTuple):
    """Classes of a release that says no more than one number; ``model`` is None where that number has no noise."""

    classes: MembershipClasses
    model: LineModel | None
    method: str


def _line_if_it_serves(model: Any, method: str, samples: Any, confidence: Any) -> _OneDimensionalClasses | None:
    """Check the arguments; return what certified integrals take, or None where releases are to be drawn."""
    parts = releases_of(model)
    validate.choice("method", method, _METHODS)
    validate.count("samples", samples, 2 * _REPLICATES, validate.MOST_ENTRIES)
    validate.scalar("confidence", confidence, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1))
    line = None if method == "monte_carlo" else _line(parts)
    if line is not None:
        return line
    if method in ("exact", "quadrature"):
        raise DomainError(
            f"method must be 'monte_carlo' for this model; got {method!r} of {list(parts)!r}. Certified risks are of "
            "releases without noise, or of one number: one attribute, or Gaussian releases without clipping of one "
            "attribute and its complement."
        )
    if parts[0].n_people > MAX_PEOPLE:
        raise DomainError(
            f"model must be of at most {MAX_PEOPLE} people for posteriors of drawn releases; got {parts[0].n_people}. "
            "Select fewer people."
        )
    return None


def _entropies(model: Any, method: str, samples: int, confidence: float, rng: RNGLike) -> tuple[Estimate, ...]:
    """H(b | r), the sum over people of H(b_k | r), and these numbers."""
    line = _line_if_it_serves(model, method, samples, confidence)
    if line is not None:
        return _line_entropies(line)

    def entropies(released: Any) -> FloatArray:
        answer = membership_posterior(model, released)
        pi, odds = np.asarray(answer.probabilities.value), np.abs(np.asarray(answer.log_odds.value))
        with np.errstate(over="ignore", invalid="ignore"):  # h(pi) from the log odds, without cancellation
            each = np.log1p(np.exp(-odds)) + np.where(np.isinf(odds), 0.0, odds / (1.0 + np.exp(odds)))
        joint = np.asarray(answer.entropy.value if answer.entropy is not None else 0.0 * pi[:, 0])
        return np.concatenate([joint[:, None], each.sum(axis=1, keepdims=True), each], axis=1)

    result = _mean_over_releases(model, entropies, samples, confidence, rng, high=model.n_people * LOG_2)
    parts_of = [tuple(x[index] for x in result) for index in (0, 1, slice(2, None))]
    return tuple(_statistical(item, "nats", confidence, samples) for item in parts_of)


def _line(parts: tuple[FrequencyRelease, ...]) -> _OneDimensionalClasses | None:
    """The classes of what the releases depend on, if it is one number or known without noise."""
    prior, people = parts[0].prior, parts[0].n_people
    if all(isinstance(part.noise, NoNoise) for part in parts):
        bits = np.concatenate([part.panel.to_array() for part in parts], axis=1)
        classes = membership_classes(Panel(distinct_rows(bits.T)[0].T), prior, False)
        return None if classes is None else _OneDimensionalClasses(classes, None, "sum over classes of memberships")
    sizes = np.arange(1, people + 1)
    by_size = not isinstance(prior, FixedSizeMembership) and any(
        isinstance(part.noise, NoNoise) or np.ptp(_scale(part, sizes)) > 0 for part in parts
    )
    columns, precision = [], np.zeros(people)
    for part in parts:
        if isinstance(part.noise, NoNoise) or (isinstance(part.noise, LInfinityNoise) and part.n_attributes > 1):
            return None
        bits = part.panel.to_array()
        varying = bits.any(axis=0) & ~bits.all(axis=0)
        if by_size and not varying.all():
            return None  # frequencies that are known still tell the size
        columns += [(column, part) for column in bits.T[varying]]
        if varying.any() and isinstance(part.noise, GaussianNoise):
            precision += int(varying.sum()) / np.square(_scale(part, sizes))
    if not columns:
        classes = membership_classes(Panel(np.ones((people, 1), dtype=bool)), prior, False)
        return None if classes is None else _OneDimensionalClasses(classes, None, "no attribute varies")
    first, part = columns[0]
    scale = _scale(part, sizes)
    if len(columns) > 1:
        same = all(np.array_equal(item, first) or np.array_equal(item, ~first.astype(bool)) for item, _ in columns)
        if not same or any(p.clip or not isinstance(p.noise, GaussianNoise) for _, p in columns):
            return None
        if any(np.ptp(_scale(p, sizes)) > 0 for _, p in columns) and by_size:
            return None  # how far they lie apart tells the scale, and so the size
        scale = 1.0 / np.sqrt(precision)
    classes = membership_classes(Panel(first[:, None]), prior, by_size)
    if classes is None or len(classes.weights) > _MAX_LINE_CLASSES:
        return None
    line = LineModel(
        isinstance(part.noise, GaussianNoise), classes.frequencies[:, 0], scale[classes.sizes - 1], classes.weights,
        classes.member, classes.other, part.clip,
    )
    return _OneDimensionalClasses(classes, line, "certified integrals over one number")


def _scale(part: FrequencyRelease, sizes: Any) -> FloatArray:
    """The scale of the noise at numbers of members."""
    noise: Any = part.noise
    return np.asarray(noise.scale_of(sizes), dtype=np.float64)


def _line_entropies(line: _OneDimensionalClasses) -> tuple[Estimate, ...]:
    """Certified entropies of the membership and of each person: those of the classes plus H(b | class)."""
    classes = line.classes
    if line.model is None:
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = [np.where(x > 0, -x * np.log(x), 0.0) for x in (classes.member, classes.other)]
        value = np.concatenate([[0.0], (terms[0] + terms[1]) @ classes.weights])
        error = 4 * UNIT_ROUNDOFF * np.concatenate([[0.0], np.minimum(classes.member, classes.other) @ classes.weights])
    else:
        value, error = entropy_integrals(line.model)
    values = math.fsum(classes.entropies.tolist())
    value[0] += values
    error = error + _CLASS_ERROR * value
    error[1:] = np.where(classes.member.any(axis=1) & classes.other.any(axis=1), error[1:], 0.0)
    if len(classes.weights) == 1 and values == 0.0:
        error[0] = 0.0
    people, people_errors = value[1:][classes.type_of], error[1:][classes.type_of]
    marginal = math.fsum(people.tolist())
    marginal_error = math.fsum(people_errors.tolist()) + _CLASS_ERROR * marginal
    numbers = ((value[0], error[0]), (marginal, marginal_error), (people, people_errors))
    return tuple(_certified(np.asarray(x), np.asarray(e), "nats", line.method) for x, e in numbers)


def _line_bwma(line: _OneDimensionalClasses, gamma: float) -> tuple[float, float]:
    """The sum over people of integrals of positive parts, with its error."""
    values, errors = [], []
    classes = line.classes
    counts = np.bincount(classes.type_of)
    for count, member, other in zip(counts.tolist(), classes.member, classes.other, strict=True):
        right, wrong = (1.0 - gamma) * member, gamma * other
        coefficients = classes.weights * (right - wrong)
        if line.model is None:
            value, error = math.fsum(np.maximum(coefficients, 0.0).tolist()), 0.0
        else:
            value, error = positive_part(line.model, coefficients)
        values.append(count * value)
        errors.append(count * (error + _CLASS_ERROR * math.fsum((classes.weights * (right + wrong)).tolist())))
    return math.fsum(values), math.fsum(errors)


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
    )
