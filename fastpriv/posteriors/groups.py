"""Posteriors of domains whose secrets fall into groups of equal likelihood and prior, in closed form.

k-RR, unary encoding and subset selection have one log likelihood for all secrets but a few. The secrets that likelihood
or prior list are the exceptions; all others form the default group. With e exceptions the work is O(e log e), whatever
the number of secrets.

Notation: group g holds N_g secrets, each with prior a_g and log likelihood l_g; m_g = N_g a_g its prior mass, R the
log likelihood of one reference group, tau_g = l_g - R, E = sum m_g e^tau_g the evidence over e^R, and
y_g = tau_g - log E the log ratio of posterior to prior. The prior sums to 1, so E - 1 = sum m_g (e^tau_g - 1), in which
the default group, taken as reference, does not appear: the effect of a few exceptions among 2^200 secrets is known to
full precision.

    KL(post||prior) = sum m e^y kappa(-y),  kappa(x) = e^x - 1 - x,
    JS(post, prior) = sum m (1 + e^y) / 2 phi(y),  phi(y) = log 2 - (entropy of the odds e^y in nats),
    entropy = log S - sum N e^x x / S,  x_g = log a_g + l_g - its largest value,  S = sum N e^x,  vulnerability = 1 / S.

The terms of these sums do not cancel. Everything is computed with balls, so that bounds include all rounding.
"""

# bounds: proved - the rounding of log 2 and of a prior as radii of balls; the rest chooses between two enclosures

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.estimate import Estimate, Kind, Unit
from ..base.numerics import LOG_2, LOG_2_ABOVE, MACHINE_EPSILON, FloatArray, IntArray
from ..base.values import distinct_rows
from ..channels.likelihoods import DefaultLikelihood, DenseLikelihood
from . import dense
from .ball_arithmetic import Ball, log_of_count, quotient, select, stack
from .result import Options, Posterior, Top, index_array

# bound: none - sums farther from 1 are refused
_SUM_TOLERANCE = 1e-9
_EXPONENT_LIMIT = 600.0  # nats; exponents below it are far from overflow at 709
_OVERFLOW = 690.0  # nats; larger exponents are cut off where another enclosure is used
_SERIES_LIMIT = 0.5  # |y| below which the series of kappa and phi are used


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of secrets with a positive prior that are equal in likelihood and prior.

    Parameters
    ----------
    counts : list of int
        N_g, Python integers of any size.
    log_count, log_prior, mass : Ball, shape (g,)
        log N_g, log a_g and m_g.
    log_likelihood : ndarray, shape (g,)
        l_g, exact; -inf where the release is impossible.
    gap : float
        |sum of the prior - 1| where rounding of its entries does not explain it: a relative error of all entries.
    """

    counts: list[int]
    log_count: Ball
    log_prior: Ball
    mass: Ball
    log_likelihood: FloatArray
    gap: float = 0.0


class GroupPosterior:
    """The posterior of ``Groups``; ``live`` are the groups whose secrets remain possible."""

    def __init__(self, groups: Groups, reference: int = 0) -> None:
        self.groups = groups
        self.live = live = np.flatnonzero(groups.log_likelihood > -np.inf)
        if live.size == 0:
            raise DomainError(
                "likelihood must be positive for a secret with a positive prior; got -inf for all of them. "
                "Such a release cannot happen under this prior."
            )
        self.mass, self.log_mass = groups.mass[live], (groups.log_count + groups.log_prior)[live]
        logs = groups.log_likelihood[live]
        ruled_out = np.flatnonzero(groups.log_likelihood == -np.inf)
        self.ruled_out_mass = groups.mass[ruled_out].sum() if ruled_out.size else Ball(0.0)
        self.shift = float(groups.log_likelihood[reference])  # R
        if not np.isfinite(self.shift) or np.max(self.log_mass.mid + logs - self.shift) > _EXPONENT_LIMIT:
            self.shift = float(logs[np.argmax(self.log_mass.mid + logs)])
        with np.errstate(over="ignore", under="ignore"):
            log_likelihood = Ball(logs)
            tau = log_likelihood + Ball(-self.shift).broadcast_like(log_likelihood)
            self.log_scale = self._log_scale(tau)  # log E
            self.ratio = tau - self.log_scale.broadcast_like(tau)  # y
            in_logs = (self.log_mass + self.ratio).exp()
            product = self.mass * Ball(np.minimum(self.ratio.mid, _OVERFLOW), self.ratio.rad).exp()
            self.posterior_mass = select((self.mass.mid > 1e-290) & (self.ratio.mid < _OVERFLOW), product, in_logs)

    def _log_scale(self, tau: Ball) -> Ball:
        """log E, by log1p of E - 1 where its radius is smaller."""
        exponent = self.log_mass + tau
        power, direct = exponent.exp(), _log_sum_exp(exponent)
        growth = Ball(np.minimum(tau.mid, _OVERFLOW), tau.rad).expm1()
        change = select((self.mass.mid > 1e-290) & (tau.mid < _OVERFLOW), self.mass * growth, power - self.mass)
        by_change = stack([change.sum(), -self.ruled_out_mass]).sum().log1p()
        return by_change if by_change.rad < direct.rad else direct

    @property
    def log_evidence(self) -> Ball:
        """log Z; a prior that misses the sum 1 by g leaves it uncertain by log(1 + g)."""
        return Ball(self.shift) + self.log_scale + self._gap

    @property
    def extremes(self) -> tuple[Ball, Ball]:
        """Largest and smallest log ratio."""
        logs = self.groups.log_likelihood[self.live]
        most, least = (self.ratio[int(index)] + self._gap for index in (np.argmax(logs), np.argmin(logs)))
        return most, Ball(-np.inf) if len(self.live) < len(self.groups.counts) else least

    @property
    def kl(self) -> Ball:
        """KL(posterior || prior)."""
        y = self.ratio
        near = np.abs(y.mid) < _SERIES_LIMIT
        series = self.posterior_mass * Ball(np.where(near, -y.mid, 0.0), y.rad).expm1_minus_x()
        direct = self.posterior_mass * y - self.posterior_mass + self.mass
        return select(near, series, direct).sum() + self.ruled_out_mass

    @property
    def js(self) -> Ball:
        """Jensen-Shannon divergence of posterior and prior."""
        y, m, v = self.ratio, self.mass, self.posterior_mass
        near, rising = np.abs(y.mid) < _SERIES_LIMIT, y.mid > 0
        series = (m + v) * Ball(np.where(near, y.mid, 0.0), y.rad).entropy_deficit()
        size, ln2 = Ball(np.abs(y.mid), y.rad), Ball(LOG_2, 2e-17)
        deficit = ln2 - (-size).exp().log1p()
        larger, smaller = select(rising, v, m), select(rising, m, v)
        terms = select(near, series, larger * deficit + smaller * (deficit - size))
        return (terms.sum() + self.ruled_out_mass * ln2).times(0.5)

    @property
    def concentration(self) -> tuple[Ball, Ball, int]:
        """Entropy, log S = -log vulnerability, and the number of secrets as probable as the most probable one."""
        groups = self.groups
        log_prior, log_count = groups.log_prior[self.live], groups.log_count[self.live]
        logs = Ball(groups.log_likelihood[self.live])
        joint = self.log_joint[self.live]
        best = joint == joint.max()
        top = int(np.argmax(joint))
        equal = log_prior.mid == log_prior.mid[top]
        x = (logs - logs[top]) + select(equal, Ball(np.zeros(joint.shape)), log_prior - log_prior[top])
        ties = sum(groups.counts[int(i)] for i in self.live[best])
        exponent = log_count + x
        if float(exponent.mid.max()) > _EXPONENT_LIMIT:
            log_sum = _log_sum_exp(exponent)
        else:
            log_ties = log_of_count(ties)
            excess = (log_count[best].exp() * x[best].expm1()).sum() + exponent[~best].exp().sum()
            log_sum = log_ties + (excess * (-log_ties).exp()).log1p()
        weight = (exponent - log_sum.broadcast_like(exponent)).exp()
        return log_sum - (weight * x).sum(), log_sum, ties

    @property
    def log_joint(self) -> FloatArray:
        """Log prior plus log likelihood of one secret of each group, up to one constant; rounded."""
        log_prior = self.groups.log_prior.mid
        return np.asarray((log_prior - log_prior[0]) + self.groups.log_likelihood)

    @property
    def log_posterior(self) -> FloatArray:
        """Log posterior of one secret of each group."""
        logs = np.full(len(self.groups.counts), -np.inf)
        logs[self.live] = (self.groups.log_prior[self.live] + self.ratio).mid
        return logs

    @property
    def _gap(self) -> Ball:
        return Ball(0.0, self.groups.gap * (1 + 1e-8))


class GroupedDomain(NamedTuple):
    """Groups of secrets, and which secrets belong to which group."""

    size: int
    exceptions: NDArray[Any]  # the listed secrets in increasing order
    member: IntArray  # the group of each of them
    default: int  # the group of all others; -1 where there are none
    groups: Groups

    @property
    def reference(self) -> int:
        """The reference group: the default group, or the first one if that is empty."""
        return self.default if 0 <= self.default < len(self.groups.counts) else 0

    def groups_of(self, secrets: NDArray[Any]) -> IntArray:
        """The group of each of these secrets; one past the last group for those without a prior."""
        if len(self.exceptions) == 0:
            return np.full(secrets.shape, self.default)
        nearest = np.minimum(np.searchsorted(self.exceptions, secrets), len(self.exceptions) - 1)
        listed = np.asarray(self.exceptions[nearest] == secrets, dtype=bool)
        return np.where(listed, self.member[nearest], self.default)

    def lowest_defaults(self, count: int) -> NDArray[Any]:
        """The lowest secrets that are no exceptions, at most ``count`` of them."""
        available = min(count, self.size - len(self.exceptions))
        defaults_below = self.exceptions - np.arange(len(self.exceptions))
        ranks = np.arange(available).astype(self.exceptions.dtype)
        return np.asarray(ranks + np.searchsorted(defaults_below, ranks, side="right"))

    def most_probable(self, log_joint: FloatArray, count: int) -> tuple[list[int], list[int]]:
        """The possible secrets of largest ``log_joint``, the lower index first on ties, and their groups."""
        joint = np.append(log_joint, -np.inf)  # the last entry is for secrets without a prior
        order = np.argsort(-joint[self.member], kind="stable")[:count]
        entries = [(-float(joint[self.member[i]]), int(self.exceptions[i]), int(self.member[i])) for i in order]
        if self.default >= 0:
            entries += [(-float(joint[self.default]), int(i), self.default) for i in self.lowest_defaults(count)]
        ranked = sorted(entry for entry in entries if entry[0] < np.inf)[:count]
        return [index for _, index, _ in ranked], [group for _, _, group in ranked]


def posterior(likelihood: DefaultLikelihood, prior: Any, options: Options) -> Posterior:
    """The posterior in closed form; a prior with an entry for every secret makes the problem a dense one."""
    domain = default_domain(likelihood, prior)
    if domain is None:
        validate.memory("likelihood", 8 * likelihood.size, "Give the prior as a DefaultLikelihood.")
        return dense.posterior(DenseLikelihood(likelihood._written_out()), prior, options)
    result = GroupPosterior(domain.groups, domain.reference)
    joint, log_posterior = result.log_joint, result.log_posterior
    entropy, log_sum, ties = result.concentration
    indices, groups = domain.most_probable(joint, options.top)
    probabilities = _probability_function(domain, np.exp(log_posterior))
    return closed_form_posterior(
        domain.size, "default and exceptions", log_evidence=result.log_evidence, entropy=entropy, kl=result.kl,
        extremes=result.extremes, log_sum=log_sum, js=result.js, map_index=domain.most_probable(joint, 1)[0][0],
        ties=ties, top=Top(index_array(indices, domain.size), np.exp(log_posterior[groups])),
        cost={"groups": len(domain.groups.counts)}, _probabilities=probabilities,
    )


def default_domain(likelihood: DefaultLikelihood, prior: Any) -> GroupedDomain | None:
    """Group the secrets by the exceptions of likelihood and prior; None for a prior that has no default."""
    if prior is not None and not isinstance(prior, DefaultLikelihood):
        return None
    log_priors = None
    if prior is None:
        exceptions = likelihood.indices
        logs, member = np.unique(np.append(likelihood.values, likelihood.default), return_inverse=True)
    else:
        if prior.size != likelihood.size:
            raise ShapeError(
                f"prior must have one entry for each of the {validate.shown(likelihood.size)} secrets; got "
                f"{validate.shown(prior.size)}. Pass one of the same size, or None for the uniform prior."
            )
        exceptions = np.union1d(likelihood.indices, prior.indices)
        columns = np.stack([_values_with_default(source, exceptions) for source in (likelihood, prior)], axis=1)
        distinct, member = distinct_rows(columns)
        logs, log_priors = distinct.T
    member = member.reshape(-1)
    counts: list[int] = np.bincount(member[:-1], minlength=len(logs)).tolist()
    counts[member[-1]] += likelihood.size - len(exceptions)
    default = int(member[-1]) if likelihood.size > len(exceptions) else -1
    return _domain(likelihood.size, exceptions, member[:-1], default, counts, logs, log_priors)


def dense_domain(logs: FloatArray, prior: FloatArray | None, log_prior: bool) -> GroupedDomain:
    """Group secrets whose log likelihoods, and priors if any, are given one by one."""
    if prior is None:
        (values, member), priors = np.unique(logs, return_inverse=True), None
    else:
        distinct, member = distinct_rows(np.stack([logs, prior], axis=1))
        values, priors = distinct.T
    member = member.reshape(-1)
    counts: list[int] = np.bincount(member, minlength=len(values)).tolist()
    return _domain(len(logs), np.arange(len(logs)), member, -1, counts, values, priors, log_prior)


def _domain(
    size: int, exceptions: NDArray[Any], member: NDArray[Any], default: int, counts: list[int], logs: FloatArray,
    priors: FloatArray | None, log_prior: bool = True,
) -> GroupedDomain:
    """Drop groups that are empty or without a prior; one past the last group stands for them."""
    selected = np.array([count > 0 for count in counts])
    if priors is not None:
        selected &= priors > (-np.inf if log_prior else 0.0)
        if not selected.any():
            raise DomainError("prior must be positive for a secret; got none. Pass a prior that sums to 1.")
    rank = np.where(selected, np.cumsum(selected) - 1, int(selected.sum()))
    kept_counts = [count for count, keep in zip(counts, selected.tolist(), strict=True) if keep]
    if priors is None:
        groups = uniform_groups(kept_counts, logs[selected], size)
    else:
        groups = _prior_groups(kept_counts, priors[selected], logs[selected], log_prior=log_prior)
    return GroupedDomain(size, exceptions, rank[member], -1 if default < 0 else int(rank[default]), groups)


def _values_with_default(source: DefaultLikelihood, secrets: NDArray[Any]) -> FloatArray:
    """Logarithms of these secrets, and the default as the last entry."""
    logs = np.full(len(secrets) + 1, source.default)
    logs[np.searchsorted(secrets, source.indices)] = source.values
    return logs


def _probability_function(domain: GroupedDomain, of_group: FloatArray) -> Callable[[int, int], FloatArray]:
    """The function that returns the posterior of a range of secrets."""
    of_group = np.append(of_group, 0.0)

    def probabilities(start: int, stop: int) -> FloatArray:
        validate.memory("probabilities", 8 * (stop - start), "Ask for fewer at a time.")
        result = np.full(stop - start, of_group[domain.default])
        first, last = (int(np.searchsorted(domain.exceptions, end)) for end in (start, stop))
        result[(domain.exceptions[first:last] - start).astype(np.int64)] = of_group[domain.member[first:last]]
        return result

    return probabilities


def uniform_groups(counts: list[int], log_likelihood: FloatArray, size: int) -> Groups:
    """Groups under the uniform prior over ``size`` secrets."""
    log_count, distinct, rank = _log_counts(counts)
    mass = stack([quotient(count, size) for count in distinct])[rank]
    return Groups(counts, log_count, (-log_of_count(size)).broadcast_like(mass), mass, log_likelihood)


def _prior_groups(counts: list[int], prior: FloatArray, log_likelihood: FloatArray, *, log_prior: bool) -> Groups:
    """Groups under a prior given by probabilities or logarithms: the distribution of sum 1 that rounds to them.

    A gap of the sum that rounding does not explain is one relative error of all entries, see ``base.validate``.
    """
    log_count, _, _ = _log_counts(counts)
    if log_prior:
        logs = Ball(prior, MACHINE_EPSILON * (np.abs(prior) + 1))
        mass = (log_count + logs).exp()
    else:
        each = Ball(prior, MACHINE_EPSILON * prior)
        logs, mass = each.log(), each * Ball([float(count) for count in counts])
    total = mass.sum()
    gap = abs(float(total.mid) - 1.0)
    if not gap <= _SUM_TOLERANCE:
        raise DomainError(
            f"prior must sum to 1 within {_SUM_TOLERANCE}; got {float(total.mid)!r}. Normalise it; a DefaultLikelihood "
            "as a prior holds logarithms."
        )
    if gap <= 2 * float(total.rad):
        return Groups(counts, log_count, logs, mass, log_likelihood)
    error = 1.1 * gap
    logs, mass = Ball(logs.mid, logs.rad + error), Ball(mass.mid, mass.rad + error * mass.mid)
    return Groups(counts, log_count, logs, mass, log_likelihood, gap)


def closed_form_posterior(
    size: int, method: str, *, log_evidence: Ball, entropy: Ball, kl: Ball, extremes: tuple[Ball, Ball], log_sum: Ball,
    js: Ball, js_kind: Kind = "exact", **others: Any,
) -> Posterior:
    """A Posterior whose estimates are balls, clipped to the ranges of the quantities."""

    def estimate(
        ball: Ball, low: float = -np.inf, high: float = np.inf, unit: Unit = "nats", kind: Kind = "exact"
    ) -> Estimate:
        value, lower, upper = (float(np.clip(x, low, high)) for x in (ball.mid, ball.lower, ball.upper))
        return Estimate(value, lower, upper, kind=kind, unit=unit, method=method)

    return Posterior(
        size, log_evidence=estimate(log_evidence), entropy=estimate(entropy, 0.0), kl=estimate(kl, 0.0),
        max_log_ratio=estimate(extremes[0]), min_log_ratio=estimate(extremes[1]),
        vulnerability=estimate((-log_sum).exp(), 0.0, 1.0, "probability"),
        js=estimate(js, 0.0, LOG_2_ABOVE, kind=js_kind), **others,
    )


def _log_counts(counts: list[int]) -> tuple[Ball, list[int], Any]:
    """Logarithms of the counts, the distinct counts, and the rank of each count among them."""
    distinct = sorted(set(counts))
    ranks = {count: rank for rank, count in enumerate(distinct)}
    rank = np.array([ranks[count] for count in counts])
    return stack([log_of_count(count) for count in distinct])[rank], distinct, rank


def _log_sum_exp(exponent: Ball) -> Ball:
    top = float(exponent.mid.max())
    return Ball(top) + (exponent + Ball(-top).broadcast_like(exponent)).exp().sum().log()
