"""A beacon that answers one attribute at a time, and an attacker who chooses what to ask next.

Notation: N members; p_j the frequency of attribute j among people at large, from references; d in {0, 1}^m the
attributes of a target, B = 1 if the target is one of the members. Answers are taken to be independent between
attributes given B, and so are the other members:

    presence    P(no | B = 0) = (1 - p_j)^N,  P(no | B = 1) = (1 - p_j)^(N-1) error^(d_j)
    frequency   normal, of mean p_j and variance p_j (1 - p_j) / N + sigma^2 for B = 0,
                of mean (d_j + (N - 1) p_j) / N and variance (N - 1) p_j (1 - p_j) / N^2 + sigma^2 for B = 1

where ``error`` is the probability that an attribute of a member is not seen. The statistic after some queries is the
sum of log P(a_j | B = 1) / P(a_j | B = 0). Attributes that go together in people break the assumption: the power that
``SequentialBeacon.power`` estimates is that on the panel as it is, by simulation.

Sources: Shringarpure and Bustamante 2015 (the likelihood ratio of a beacon); Raisaro et al. 2017 (rarest attributes
first); Lindley 1956 (the experiment with the largest expected information).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ...base import random_streams, validate
from ...base.errors import DomainError, ShapeError
from ...base.estimate import Estimate, Result
from ...base.numerics import BoolArray, FloatArray, IntArray
from ...base.random_streams import RNGLike
from .attackers import checked_references
from .evaluation import tpr_of_single_targets
from .panels import Panel, membership_array
from .priors import FixedSizeMembership

__all__ = ["BeaconPower", "BeaconRun", "SequentialBeacon"]

_Moments = tuple[FloatArray, FloatArray]  # mean and variance
# How the next query is chosen.
_ORDERS = ("information", "likelihood_ratio", "rarest", "listed", "random")
# Nodes and weights for means under normal distributions. Only the order of queries rests on them.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(6)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()  # normalised
_LEAST_LOG = -750.0  # of a probability, of what excludes a target: its worth is large and finite


class BeaconRun(NamedTuple):
    """What an attacker asked about n targets, was answered and concluded.

    Parameters
    ----------
    queried : ndarray of int, shape (n, T)
        The attributes, in the order in which they were asked.
    answers : ndarray, shape (n, T)
        0 or 1, or frequencies.
    log_ratios : ndarray, shape (n, T + 1)
        Log likelihood ratio of membership after 0, 1, ..., T answers.

    Examples
    --------
    >>> from fastpriv.membership import Panel, SequentialBeacon
    >>> attack = SequentialBeacon(Panel([[1, 0, 1], [1, 0, 0], [0, 1, 0], [1, 0, 0]]), n_members=2, order="rarest")
    >>> attack.run([[True, True, False]], [1, 0, 1], queries=1).queried
    array([[1]])
    """

    queried: IntArray
    answers: FloatArray
    log_ratios: FloatArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BeaconPower(Result):
    """Power of the attack on a beacon against the number of queries.

    Parameters
    ----------
    power : Estimate, shape (T + 1,)
        TPR after 0, 1, ..., T queries at the threshold of this FPR, each with an interval of its own level.
    queries : ndarray of int, shape (T + 1,)
        Numbers of queries.
    fpr : float
        False-positive rate.
    order : str
        How queries are chosen.

    Examples
    --------
    >>> from fastpriv.membership import Panel, SequentialBeacon
    >>> people = Panel([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])
    >>> attack = SequentialBeacon(Panel([[1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0]]), n_members=1)
    >>> attack.power(people, queries=2, count=100, fpr=0.2, rng=1).power.shape
    (3,)
    """

    power: Estimate
    queries: IntArray
    fpr: float
    order: str


class SequentialBeacon:
    """An attacker who asks a beacon about one attribute after the other.

    Parameters
    ----------
    references : Panel
        People at large, whose frequencies, cut to [e0, 1 - e0] with e0 = 1 / (2 n_ref), stand for those of all.
    n_members : int
        Number of members N that the beacon answers about.
    answers : {"presence", "frequency"}
        Whether it says if any member has the attribute, or the frequency among members.
    order : {"information", "likelihood_ratio", "rarest", "listed", "random"}
        The next query: with the largest mutual information of its answer and membership given the answers so far; with
        the largest expected shift of the log odds toward the truth; or, without regard to answers, the target's
        attributes from the rarest on, as listed, or at random.
    error : float
        Probability in (0, 1) that an attribute of a member is not seen, of presence.
    sigma : float
        Standard deviation of the noise, at least 0, of frequencies.
    prior : float
        Probability in (0, 1) that a target is a member.

    Raises
    ------
    DomainError, ShapeError
        For parameters outside their range, targets and answers of wrong shapes or values.

    Notes
    -----
    **Accuracy** ``tests/membership/test_beacons.py`` compares log ratios with products of probabilities by hand, and
    the choices with the mutual information by sums and quadrature.

    Source: see the head of this module.

    Examples
    --------
    >>> from fastpriv.membership import Panel, SequentialBeacon
    >>> references = Panel([[1, 0, 1], [1, 0, 0], [0, 1, 0], [1, 0, 0]])
    >>> run = SequentialBeacon(references, n_members=2).run([[True, True, False]], [1, 0, 1], queries=2)
    >>> run.queried, run.answers
    (array([[1, 2]]), array([[0., 1.]]))
    """

    def __init__(
        self, references: Panel, n_members: int, *, answers: str = "presence", order: str = "information",
        error: float = 1e-3, sigma: float = 0.0, prior: float = 0.5,
    ) -> None:  # fmt: skip
        validate.instance("references", references, Panel)
        self.references = references
        self.n_members = validate.count("n_members", n_members)
        self.answers = validate.choice("answers", answers, ("presence", "frequency"))
        self.order = validate.choice("order", order, _ORDERS)
        self.error = validate.scalar("error", error, "between 0 and 1, exclusive", lambda x: (x > 0) & (x < 1))
        self.sigma = validate.scalar("sigma", sigma, "at least 0 and finite", lambda x: (x >= 0) & np.isfinite(x))
        self.prior = validate.scalar("prior", prior, "between 0 and 1, exclusive", lambda x: (x > 0) & (x < 1))
        e0 = 0.5 / references.n_people
        self._frequencies = np.clip(references.frequencies(), e0, 1.0 - e0)

    def respond(self, panel: Panel, membership: ArrayLike, *, rng: RNGLike = None) -> FloatArray:
        """Answers of a beacon to all queries, shape (R, m), under the model of errors and noise.

        Parameters
        ----------
        panel : Panel
            The people among whom the members are.
        membership : array_like of bool, shape (R, K)
            Members, at least one in each row.
        rng : int, Generator or None
            Source of random numbers.

        Examples
        --------
        >>> from fastpriv.membership import Panel, SequentialBeacon
        >>> people = Panel([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])
        >>> SequentialBeacon(people, n_members=2, error=1e-9).respond(people, [[1, 0, 0, 1]], rng=1)
        array([[1., 1., 0.]])
        """
        validate.instance("panel", panel, Panel)
        b = np.atleast_2d(membership_array("membership", membership, panel.n_people))
        sizes = b.sum(axis=1)
        if not sizes.all():
            raise DomainError(
                f"membership must have at least one member in each row; got none in {int((sizes == 0).sum())} rows. A "
                "beacon without members has nothing to answer."
            )
        counts, random = panel.counts(b), random_streams.generator(rng)
        if self.answers == "frequency":
            return np.asarray(counts / sizes[:, None] + self.sigma * random.standard_normal(counts.shape))
        return np.asarray(random.random(counts.shape) >= self.error**counts, dtype=np.float64)

    def run(
        self, targets: ArrayLike, answers: ArrayLike | Callable[[int], float], *, queries: int, rng: RNGLike = None
    ) -> BeaconRun:
        """Ask about targets.

        Parameters
        ----------
        targets : array_like of bool, shape (n, m)
            Their attributes.
        answers : array_like, shape (m,) or (n, m), or callable
            The answers to all queries, of one beacon or of one for each target, of which the attacker looks at those
            that it asks; or a function that returns the answer about the attribute at a position.
        queries : int
            Number T of queries about each target, at most m.
        rng : int, Generator or None
            Source of the random order.
        """
        m = self.references.n_attributes
        d = _booleans("targets", targets)
        if d.ndim != 2 or d.shape[1] != m:
            raise ShapeError(
                f"targets must have one entry an attribute, here {m}, in each row; got shape {d.shape}. Put a single "
                "target in a list."
            )
        queries = validate.count("queries", queries, 1, m)
        replies = None if callable(answers) else self._checked_answers(answers, d.shape)
        random, index = random_streams.generator(rng), np.arange(len(d))
        open_queries = np.ones(d.shape, dtype=bool)
        ranks = self._fixed_ranks(d, random)
        queried = np.empty((len(d), queries), dtype=np.int64)
        answered = np.empty((len(d), queries))
        log_ratios = np.zeros((len(d), queries + 1))
        for step in range(queries):
            worth = self._gains(d, log_ratios[:, step]) if ranks is None else ranks
            chosen = np.where(open_queries, worth, -math.inf).argmax(axis=1)
            open_queries[index, chosen] = False
            if replies is None:
                assert callable(answers)
                reply = self._checked_answers(np.array([answers(int(j)) for j in chosen]), chosen.shape)
            else:
                reply = replies[index, chosen]
            queried[:, step], answered[:, step] = chosen, reply
            log_ratios[:, step + 1] = log_ratios[:, step] + self._log_ratio(chosen, d[index, chosen], reply)
        return BeaconRun(queried, answered, log_ratios)

    def power(
        self, panel: Panel, *, queries: int, count: int = 1000, fpr: float = 0.05, confidence: float = 0.95,
        rng: RNGLike = None,
    ) -> BeaconPower:  # fmt: skip
        """TPR at a given FPR against the number of queries, by simulation of beacons among the people of a panel.

        Parameters
        ----------
        panel : Panel
            People, none of them a reference, of whom N uniform ones are the members of each beacon.
        queries : int
            Largest number of queries T.
        count : int
            Number of beacons whose target is a member, and of those whose target is none.
        fpr : float
            False-positive rate in (0, 1).
        confidence : float
            Level of each interval.
        rng : int, Generator or None
            Source of random numbers.

        Examples
        --------
        >>> from fastpriv.membership import Panel, SequentialBeacon
        >>> people = Panel([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])
        >>> attack = SequentialBeacon(Panel([[1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0]]), n_members=1)
        >>> attack.power(people, queries=2, count=100, fpr=0.2, rng=1).queries
        array([0, 1, 2])
        """
        checked_references(panel, self.references)
        trials = validate.count("count", count, 1, validate.MOST_ENTRIES)
        if self.n_members >= panel.n_people:
            raise DomainError(
                f"n_members must be fewer than the {panel.n_people} people of the panel, so that there are targets who "
                f"are no members; got {self.n_members}. Take a larger panel."
            )
        random = random_streams.generator(rng)
        b = FixedSizeMembership(self.n_members).draw(2 * trials, panel.n_people, random)
        wanted = np.arange(2 * trials) < trials
        # a uniform person among the members of the first beacons, among the others of the rest
        target = np.where(b == wanted[:, None], random.random(b.shape), -1.0).argmax(axis=1)
        people = panel.to_array()[target]
        run = self.run(people, self.respond(panel, b, rng=random), queries=queries, rng=random)
        found = [tpr_of_single_targets(column, wanted, fpr, confidence) for column in run.log_ratios.T]
        power = Estimate(
            *(np.array([getattr(one, name) for one in found]) for name in ("value", "lower", "upper")),
            kind="statistical", unit="probability", method=f"simulated beacons, {self.order}", confidence=confidence,
        )  # fmt: skip
        return BeaconPower(power, np.arange(queries + 1), float(fpr), self.order)

    def log_ratio(self, attribute: ArrayLike, has: ArrayLike, answer: ArrayLike) -> FloatArray:
        """log P(answer | member) / P(answer | no member) of targets who have an attribute or not.

        Parameters
        ----------
        attribute : array_like of int
            Positions of attributes.
        has : array_like of bool
            Whether the target has it.
        answer : array_like
            The answers.

        Examples
        --------
        >>> from fastpriv.membership import Panel, SequentialBeacon
        >>> SequentialBeacon(Panel([[1, 0], [0, 0]]), n_members=3, error=0.01).log_ratio(0, True, [0, 1])
        array([-3.912...,  0.131...])
        """
        j = validate.integers("attribute", attribute, 0, self.references.n_attributes - 1)
        d = _booleans("has", has)
        a = validate.real("answer", answer, "finite numbers", np.isfinite)
        validate.broadcastable("has", d, "attribute", j)
        validate.broadcastable("answer", a, "attribute and has", np.broadcast_arrays(j, d)[0])
        return self._log_ratio(j, d, a)

    def _log_ratio(self, attribute: IntArray, d: BoolArray, a: FloatArray) -> FloatArray:
        p = self._frequencies[attribute]
        if self.answers == "presence":
            none, rest = self._no(p, d)
            return np.asarray(np.where(a > 0.5, _log_rest(rest) - _log_rest(none), rest - none))
        (mean, variance), (other, narrower) = self._moments(p, d)
        return 0.5 * np.asarray((a - mean) ** 2 / variance - (a - other) ** 2 / narrower + np.log(variance / narrower))

    def _no(self, p: FloatArray, d: BoolArray) -> tuple[FloatArray, FloatArray]:
        """log P(no | B = 0) and log P(no | B = 1)."""
        missing = np.log1p(-p)
        return self.n_members * missing, (self.n_members - 1) * missing + np.where(d, math.log(self.error), 0.0)

    def _moments(self, p: FloatArray, d: BoolArray) -> tuple[_Moments, _Moments]:
        """Means and variances of an answer, of targets who are no members and who are."""
        n, spread = self.n_members, p * (1.0 - p)
        least = np.spacing(1.0)  # one member without noise answers with its own attribute
        return (p, spread / n + self.sigma**2), (
            (d + (n - 1) * p) / n, np.maximum((n - 1) * spread / n**2 + self.sigma**2, least)
        )  # fmt: skip

    def _gains(self, d: BoolArray, log_ratios: FloatArray) -> FloatArray:
        """What each query is worth, shape (n, m), given the log ratios so far."""
        p = self._frequencies[None, :]
        log_odds = log_ratios[:, None] + math.log(self.prior / (1.0 - self.prior))
        member, stranger = special.expit(log_odds), special.expit(-log_odds)
        if self.answers == "presence":
            none, rest = self._no(p, d)
            pairs = ((none, rest), (_log_rest(none), _log_rest(rest)))  # log probabilities of no, and of yes
            total = np.zeros(d.shape)
            for one, two in pairs:
                if self.order == "information":
                    both = np.logaddexp(special.log_expit(-log_odds) + one, special.log_expit(log_odds) + two)
                    total += stranger * _times(one, one - both) + member * _times(two, two - both)
                else:
                    shift = np.maximum(two - one, _LEAST_LOG)
                    total += member * _times(two, two - one) - stranger * np.exp(one) * shift
            return total
        (mean, variance), (other, narrower) = self._moments(p, d)
        if self.order == "likelihood_ratio":
            squared = (mean - other) ** 2
            toward = 0.5 * ((narrower + squared) / variance - 1.0 - np.log(narrower / variance))
            away = 0.5 * ((variance + squared) / narrower - 1.0 - np.log(variance / narrower))
            return np.asarray(member * toward + stranger * away)
        total = np.zeros(d.shape)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            for chance, centre, scale, sign in ((stranger, mean, variance, 1.0), (member, other, narrower, -1.0)):
                a = centre + node * np.sqrt(scale)
                ratio = 0.5 * ((a - mean) ** 2 / variance - (a - other) ** 2 / narrower + np.log(variance / narrower))
                # log of the posterior of the truth over its prior
                total += weight * chance * (
                    -np.logaddexp(0.0, sign * (log_odds + ratio)) + np.logaddexp(0.0, sign * log_odds)
                )
        return total

    def _fixed_ranks(self, d: BoolArray, random: Any) -> FloatArray | None:
        """Worth of queries whose order does not follow the answers, shape (n, m); None where it does."""
        if self.order == "rarest":
            return np.asarray(np.where(d, 2.0, 0.0) - self._frequencies)
        if self.order == "listed":
            return np.broadcast_to(-np.arange(d.shape[1], dtype=np.float64), d.shape)
        return np.asarray(random.random(d.shape)) if self.order == "random" else None

    def _checked_answers(self, answers: Any, shape: tuple[int, ...]) -> FloatArray:
        found = validate.real("answers", answers, "finite numbers", np.isfinite)
        if self.answers == "presence" and not ((found == 0) | (found == 1)).all():
            worst = float(found[(found != 0) & (found != 1)].ravel()[0])
            raise DomainError(
                f"answers must be 0 or 1 of presence; got {worst!r}. Pass answers='frequency' for others."
            )
        if found.shape not in (shape, shape[1:]):
            raise ShapeError(
                f"answers must have one entry an attribute, of shape {shape[1:]} or {shape}; got {found.shape}. Pass "
                "those of one beacon, or a row for each target."
            )
        return np.broadcast_to(found, shape)

    def __repr__(self) -> str:
        return f"<SequentialBeacon of {self.n_members} members, {self.answers}, {self.order}>"


def _booleans(name: str, value: Any) -> BoolArray:
    d = validate.array(name, value)
    if d.dtype != np.bool_:
        d = validate.integers(name, d, 0, 1, constraint="0 or 1, or True or False") == 1
    return np.asarray(d)


def _times(log_probability: FloatArray, value: FloatArray) -> FloatArray:
    """exp(x) times a value, 0 where the probability is 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(np.isneginf(log_probability), 0.0, np.exp(log_probability) * value))


def _log_rest(log_probability: FloatArray) -> FloatArray:
    """log(1 - exp(x)) for x <= 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(-np.expm1(log_probability)))
