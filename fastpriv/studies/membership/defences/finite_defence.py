"""Defences with finitely many releases: a table of probabilities, and the least epsilon that it has.

Notation: b who is a member, theta(b) its prior, P[b, r] the probability of release r; the rows of the table are divided
by their sums, which differ from 1 by rounding. With finitely many releases

    epsilon = max over r and neighbours b, b' of log P[b, r] - log P[b', r],

which is computed here for all of them, with the rounding of every term. J(b | r) / theta(b) = P[b, r] / P[r] are the
ratios of the condition on the joint posterior, with P[r] = sum_b theta(b) P[b, r]: if all lie within exp(+- a / 2),
then epsilon <= a for all pairs of memberships, neighbours or not.

A release of continuous noise becomes a table by rounding each frequency to a grid, and a generator by drawing its seeds
from a list that is published with the table. The table itself is then the defence, and no approximation of one.
"""

# bounds: tested by membership/test_finite_defence - rounding of logarithms, of sums of rows and of their differences

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ....base import random_streams, validate
from ....base.errors import DomainError, ShapeError
from ....base.estimate import Estimate, Result
from ....base.inverse import bisect
from ....base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray, IndexArray, next_above, next_below
from ....base.random_streams import RNGLike
from ....base.values import distinct_rows
from ..noises import GaussianNoise, GeneratorNoise, LaplaceNoise
from ..panels import Panel
from ..priors import FixedSizeMembership, MembershipPrior, all_memberships, prior_of
from ..releases import FrequencyRelease, SimulatedReleases

__all__ = ["FiniteDefence", "draw_columns", "memberships_of", "posterior_of_releases", "row_numbers"]

_MAX_PEOPLE = 12  # 4,095 memberships, each with a row of the table
_MAX_CELLS = 2**24  # of a table: 128 MiB
# bound: none - how far the sum of a row may be from 1 before it is an error of the caller, as everywhere in the package
_SUM_TOLERANCE = 1e-9
_HALVINGS = 50  # of the search for the weight of the mixture


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FiniteDefence(Result):
    """A defence with finitely many releases, as the table of their probabilities.

    Parameters
    ----------
    panel : Panel
        At most 12 people.
    prior : BernoulliMembership or FixedSizeMembership
        Who is a member.
    releases : ndarray, shape (outputs, m)
        What may be released, rows that differ.
    table : ndarray, shape (memberships, outputs)
        P[b, r] of all memberships of positive prior probability, ordered by sum_k b_k 2^k; rows are divided by their
        sums, which must be 1 within 1e-9.

    Raises
    ------
    DomainError, ShapeError
        For more people, tables of other shapes, entries that are no probabilities, and rows that do not sum to 1.

    Notes
    -----
    **Accuracy** ``epsilon`` and ``joint_posterior_epsilon`` are certified for the table as given:
    ``tests/membership/test_finite_defence.py`` compares with rational arithmetic.

    Source: the head of this module; Zhang et al. 2025, proposition 10, with the joint posterior in place of marginals.

    Examples
    --------
    >>> from fastpriv.membership import FiniteDefence, FixedSizeMembership, Panel
    >>> table = [[0.75, 0.25], [0.25, 0.75]]  # of memberships (1, 0) and (0, 1)
    >>> defence = FiniteDefence(Panel([[1], [0]]), FixedSizeMembership(1), [[0.0], [1.0]], table)
    >>> print(f"{defence.epsilon().value:.4f} {defence.joint_posterior_epsilon().value:.4f}")
    1.0986 1.3863
    """

    panel: Panel
    prior: MembershipPrior
    releases: FloatArray
    table: FloatArray

    def __post_init__(self) -> None:
        validate.instance("panel", self.panel, Panel)
        members = memberships_of(self.panel, self.prior)[0]
        r = validate.real("releases", self.releases, "finite numbers", np.isfinite)
        if r.ndim != 2 or r.shape[1] != self.panel.n_attributes or not len(r) or len(distinct_rows(r)[0]) != len(r):
            raise ShapeError(
                f"releases must be rows that differ, of {self.panel.n_attributes} entries; got shape {r.shape}. Give "
                "each release once."
            )
        p = validate.real("table", self.table, "probabilities", lambda x: (x >= 0) & (x <= 1))
        if p.shape != (len(members), len(r)):
            raise ShapeError(
                f"table must have a row for each of {len(members)} memberships and a column for each of {len(r)} "
                f"releases; got shape {p.shape}. Order memberships by sum_k b_k 2^k."
            )
        worst = float(np.abs(p.sum(axis=1) - 1.0).max())
        if worst > _SUM_TOLERANCE:
            raise DomainError(f"table must have rows that sum to 1; got one off by {worst:.3g}. Divide by the sums.")
        object.__setattr__(self, "releases", r)
        object.__setattr__(self, "table", p)

    @classmethod
    def of_release(
        cls, release: FrequencyRelease, levels: int, *, seeds: int = 256, rng: RNGLike = None
    ) -> FiniteDefence:
        """The defence that rounds a release to a grid on [0, 1], and takes seeds of a generator from a list.

        Parameters
        ----------
        release : FrequencyRelease
            Gaussian or Laplace noise, or a generator with such a dither.
        levels : int
            Values 0, ..., 1 of each attribute, at least 2; what lies outside of [0, 1] becomes 0 or 1.
        seeds : int, default 256
            Length of the list of seeds of a generator.
        rng : int, Generator or None
            Source of the list.

        Examples
        --------
        >>> from fastpriv.membership import FiniteDefence, FixedSizeMembership, FrequencyRelease, LaplaceNoise, Panel
        >>> release = FrequencyRelease(Panel([[1], [0]]), FixedSizeMembership(1), LaplaceNoise(0.5))
        >>> print(f"{FiniteDefence.of_release(release, 3).epsilon():.4f}")
        1.8318 [1.8317, 1.8318]
        """
        validate.instance("release", release, FrequencyRelease)
        noise: Any = release.noise
        dither = noise.dither if isinstance(noise, GeneratorNoise) else noise
        if not isinstance(dither, (GaussianNoise, LaplaceNoise)):
            raise DomainError(
                f"release must have Gaussian or Laplace noise, or a generator with such a dither; got {noise!r}. "
                "Without noise of full dimension epsilon is infinite."
            )
        count, m = validate.count("levels", levels, 2), release.n_attributes
        members, _ = memberships_of(release.panel, release.prior)
        if m * math.log(count) + math.log(len(members)) > math.log(_MAX_CELLS):
            raise DomainError(
                f"levels must leave at most {_MAX_CELLS} cells of the table; got {count} levels of {m} attributes of "
                f"{len(members)} memberships. Take fewer levels, attributes or people."
            )
        grid = np.linspace(0.0, 1.0, count)
        releases = np.stack(np.meshgrid(*[grid] * m, indexing="ij"), axis=-1).reshape(-1, m)
        edges = 0.5 * (grid[1:] + grid[:-1])
        number = validate.count("seeds", seeds, 1, validate.MOST_ENTRIES)
        draws = random_streams.generator(rng)
        nu = draws.random((number, noise.n_seeds)) if isinstance(noise, GeneratorNoise) else None
        table = np.empty((len(members), len(releases)))
        scales = dither.scale_of(members.sum(axis=1))
        for i, (b, f, scale) in enumerate(zip(members, release.frequencies(members), scales, strict=True)):
            means = f[None] if nu is None else f + noise.function(np.broadcast_to(b, (number, len(b))), nu)
            cells = _cells((edges - means[..., None]) / scale, isinstance(dither, GaussianNoise))
            whole = np.ones((len(cells), 1))
            for j in range(m):
                whole = (whole[:, :, None] * cells[:, None, j]).reshape(len(cells), -1)
            row = whole.mean(axis=0)
            table[i] = row / row.sum()
        return cls(release.panel, release.prior, releases, table)

    def epsilon(self) -> Estimate:
        """The least epsilon of pure differential privacy: for neighbours by swap or by adding a member, certified.

        A swap where the number of members is fixed, otherwise a member more or less; infinite where a release is
        possible for one of them only.
        """
        members, _ = memberships_of(self.panel, self.prior)
        logs, errors = self._logs()
        codes = members @ (1 << np.arange(members.shape[1]))
        differences = np.bitwise_count(codes[:, None] ^ codes)  # people in whom two memberships differ
        best = (0.0, 0.0, 0.0)
        for i, j in np.argwhere(differences == (2 if isinstance(self.prior, FixedSizeMembership) else 1)).tolist():
            best = _larger(best, _largest(logs[i], logs[j], errors[i] + errors[j]))
        return _certified(best, "largest log ratio of neighbours, all releases")

    def joint_posterior_epsilon(self) -> Estimate:
        """2 max |log J(b | r) - log theta(b)| over all releases and memberships: an epsilon of every pair."""
        _, prior = memberships_of(self.panel, self.prior)
        logs, errors = self._logs()
        with np.errstate(divide="ignore"):
            total = np.logaddexp.reduce(logs + prior[:, None], axis=0)
        shown = total > -np.inf
        error = errors.max(initial=0.0) + 16 * len(logs) * UNIT_ROUNDOFF + 4 * UNIT_ROUNDOFF * np.abs(prior).max()
        best = (0.0, 0.0, 0.0)
        for row, mine in zip(logs[:, shown], errors[:, shown], strict=True):
            for item, two in ((row, total[shown]), (total[shown], row)):
                best = _larger(best, _largest(item, two, mine + error))
        return _certified(tuple(2.0 * x for x in best), "largest log ratio of joint posterior and prior")

    def with_epsilon(self, epsilon: float) -> FiniteDefence:
        """The defence that releases according to the prior's mean row just often enough to have this epsilon.

        Parameters
        ----------
        epsilon : float
            Largest epsilon, positive; that of the result is proved to be at most this.

        Examples
        --------
        >>> from fastpriv.membership import FiniteDefence, FixedSizeMembership, Panel
        >>> table = [[1.0, 0.0], [0.0, 1.0]]
        >>> defence = FiniteDefence(Panel([[1], [0]]), FixedSizeMembership(1), [[0.0], [1.0]], table)
        >>> defence.with_epsilon(1.0).table.round(3).tolist()
        [[0.731, 0.269], [0.269, 0.731]]
        """
        target = validate.scalar("epsilon", epsilon, "positive", lambda x: x > 0)
        if self.epsilon().upper <= target:
            return self
        prior = np.exp(memberships_of(self.panel, self.prior)[1])
        mean = prior @ self.table / prior.sum()
        _, weight = bisect(lambda w: self._mixed(mean, w).epsilon().upper <= target, 0.0, 1.0, _HALVINGS)
        return self._mixed(mean, weight)

    def _mixed(self, mean: FloatArray, weight: float) -> FiniteDefence:
        table = (1.0 - weight) * self.table + weight * mean
        return FiniteDefence(self.panel, self.prior, self.releases, np.minimum(table, 1.0))

    def _logs(self) -> tuple[FloatArray, FloatArray]:
        """log of the table with rows divided by their sums, and bounds on the errors."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.table) - np.log(self.table.sum(axis=1, keepdims=True))
        finite = np.where(np.isfinite(logs), np.abs(logs), 0.0)
        return logs, UNIT_ROUNDOFF * (8.0 * finite + self.table.shape[1] + 16.0)

    def simulate(self, count: int, *, rng: RNGLike = None) -> SimulatedReleases:
        """Memberships drawn from the prior, and a release of each; as ``FrequencyRelease.simulate``."""
        random = random_streams.generator(rng)
        membership = self.prior.draw(validate.count("count", count), self.panel.n_people, random)
        members, _ = memberships_of(self.panel, self.prior)
        picked = draw_columns(self.table[row_numbers(members, membership)], random)
        return SimulatedReleases(membership, self.releases[picked])

    def scores(self, released: ArrayLike) -> FloatArray:
        """P(b_k = 1 | r) of rows of ``releases``, shape (..., K): the exact Bayes attacker.

        Parameters
        ----------
        released : array_like, shape (..., m)
            What ``simulate`` gives.
        """
        members, prior = memberships_of(self.panel, self.prior)
        joint = np.exp(prior)[:, None] * self.table
        with np.errstate(invalid="ignore"):
            posterior = (joint.T @ members) / joint.sum(axis=0)[:, None]
        return posterior_of_releases(self.releases, posterior, released)


def memberships_of(panel: Panel, prior: Any) -> tuple[BoolArray, FloatArray]:
    """All memberships of positive prior probability, ordered by sum_k b_k 2^k, and the logarithms of those."""
    people = panel.n_people
    if people > _MAX_PEOPLE:
        raise DomainError(
            f"panel must have at most {_MAX_PEOPLE} people for a table of memberships; got {people}. Select some."
        )
    return all_memberships(prior_of("prior", prior), people)


def row_numbers(rows: Any, wanted: Any) -> IndexArray:
    """The number of each wanted row among ``rows``, equal to the bit."""
    number = {row.tobytes(): i for i, row in enumerate(np.ascontiguousarray(rows + 0.0))}
    try:
        return np.array([number[row.tobytes()] for row in np.ascontiguousarray(wanted + 0.0)], dtype=np.intp)
    except KeyError:
        raise DomainError("released must be rows of releases; got another release. Pass what simulate gives.") from None


def draw_columns(table: FloatArray, random: Any) -> IndexArray:
    """Draw a column of each row of a table of probabilities."""
    cumulative = np.cumsum(table, axis=1)
    return np.asarray((cumulative < random.random((len(table), 1)) * cumulative[:, -1:]).sum(axis=1))


def posterior_of_releases(releases: FloatArray, posterior: FloatArray, released: ArrayLike) -> FloatArray:
    """Rows of ``posterior``, one for each row of ``releases``, of what was released, shape (..., K)."""
    r = validate.real("released", released, "finite numbers", np.isfinite)
    if r.shape[-1:] != releases.shape[1:]:
        raise ShapeError(
            f"released must have {releases.shape[1]} entries a release; got shape {r.shape}. Pass what simulate gives."
        )
    return np.asarray(posterior[row_numbers(releases, r.reshape(-1, r.shape[-1]))].reshape(*r.shape[:-1], -1))


def _cells(z: FloatArray, gaussian: bool) -> FloatArray:
    """Probabilities of the cells between standardised edges (..., levels - 1), without cancellation in the tails."""
    ends = np.concatenate([np.full((*z.shape[:-1], 1), -np.inf), z, np.full((*z.shape[:-1], 1), np.inf)], axis=-1)
    low, high = ends[..., :-1], ends[..., 1:]
    flipped = low > 0.0
    low, high = np.where(flipped, -high, low), np.where(flipped, -low, high)
    cdf = special.ndtr if gaussian else _laplace_cdf
    return np.asarray(cdf(high) - cdf(low))


def _laplace_cdf(x: FloatArray) -> FloatArray:
    tail = 0.5 * np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0.0, tail, 1.0 - tail))


def _largest(one: FloatArray, other: FloatArray, error: FloatArray) -> tuple[float, float, float]:
    """Largest difference of logarithms with its bounds; infinite where only the second is -inf."""
    possible = one > -np.inf
    if (possible & (other == -np.inf)).any():
        return math.inf, math.inf, math.inf
    if not possible.any():
        return 0.0, 0.0, 0.0
    away, error = (one[possible] - other[possible]), error[possible]
    return float(away.max()), float((away - error).max()), float((away + error).max())


def _larger(one: tuple[float, float, float], other: tuple[float, float, float]) -> tuple[float, float, float]:
    return max(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2])


def _certified(best: Any, method: str) -> Estimate:
    value, lower, upper = best
    lower = lower if math.isinf(lower) else max(next_below(lower), 0.0)
    return Estimate(value, lower, next_above(upper), kind="certified", unit="nats", method=method)
