"""Posteriors where one log likelihood serves all secrets but a few: k-RR, unary encoding, subset selection.

Notation: the secrets that likelihood or prior list are the exceptions; all others, the default group, are alike. With e
exceptions the work is O(e log e), whatever the number of secrets; equations in ``implicit/laws.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ..._values import FloatArray, distinct_rows
from ...channels.base import Exceptions
from ...channels.likelihoods.kinds import DefaultLikelihood, DenseLikelihood, as_likelihood
from ...errors import DomainError, ShapeError
from ..result import Options, Posterior, Top
from .laws import Groups, enclosed, given_groups, uniform_groups, weighted_groups
from .output import written

__all__ = ["Listed", "as_indices", "listed", "posterior", "written_out"]

_METHOD = "default and exceptions"


class Listed(NamedTuple):
    """Groups of secrets, and which secrets they are."""

    size: int
    places: NDArray[Any]  # the exceptions in increasing order
    member: NDArray[np.int64]  # the group of each of them
    default: int  # the group of all others; -1 where there are none
    groups: Groups

    def groups_of(self, secrets: NDArray[Any]) -> NDArray[np.int64]:
        """The group of each of these secrets; one past the last group for those without a prior."""
        if len(self.places) == 0:
            return np.full(secrets.shape, self.default)
        at = np.minimum(np.searchsorted(self.places, secrets), len(self.places) - 1)
        return np.where(np.asarray(self.places[at] == secrets, dtype=bool), self.member[at], self.default)

    def missing(self, count: int) -> NDArray[Any]:
        """The lowest secrets that are no exceptions, at most this many."""
        many = min(count, self.size - len(self.places))
        below = self.places - np.arange(len(self.places))  # how many are missing below each exception
        ranks = np.arange(many).astype(self.places.dtype)
        return np.asarray(ranks + np.searchsorted(below, ranks, side="right"))

    def best(self, log_joint: FloatArray, count: int) -> tuple[list[int], list[int]]:
        """The most probable secrets and their groups: the larger ``log_joint`` first, of equal ones the lower index.

        Secrets that are ruled out are left out.
        """
        joint = np.append(log_joint, -np.inf)  # of secrets without a prior
        order = np.argsort(-joint[self.member], kind="stable")[:count]
        found = [(-float(joint[self.member[i]]), int(self.places[i]), int(self.member[i])) for i in order]
        if self.default >= 0:
            found += [(-float(joint[self.default]), int(i), self.default) for i in self.missing(count)]
        found = sorted(entry for entry in found if entry[0] < np.inf)
        return [index for _, index, _ in found[:count]], [group for _, _, group in found[:count]]


def posterior(likelihood: DefaultLikelihood, prior: Any, options: Options) -> Posterior:
    """The posterior in closed form; a prior in full makes it a dense one."""
    law = listed(likelihood, prior)
    if law is None:
        from ..dense import streams

        _validate.memory("likelihood", 8 * likelihood.size, "Give the prior as a DefaultLikelihood.")
        values = np.full(likelihood.size, likelihood.default)
        values[likelihood.indices] = likelihood.values
        return streams.posterior(DenseLikelihood(values), prior, options)
    beliefs = law.groups.beliefs(law.default if 0 <= law.default < len(law.groups.counts) else 0)
    joint, log_post = beliefs.log_joint, beliefs.log_posterior
    entropy, scale, ties = beliefs.concentration
    most, least = beliefs.extremes
    indices, groups = law.best(joint, options.top)
    chance = _probabilities(law, np.exp(log_post))
    written(options.out, law.size, chance)
    return Posterior(
        law.size, enclosed(beliefs.log_evidence, "nats", _METHOD), enclosed(entropy, "nats", _METHOD, low=0.0),
        enclosed(beliefs.kl, "nats", _METHOD, low=0.0), enclosed(most, "nats", _METHOD),
        enclosed(least, "nats", _METHOD), enclosed((-scale).exp(), "probability", _METHOD, low=0.0, high=1.0),
        law.best(joint, 1)[0][0], ties, Top(as_indices(indices, law.size), np.exp(log_post[groups])),
        js=enclosed(beliefs.js, "nats", _METHOD, low=0.0, high=0.6931471805599454),
        cost={"groups": len(law.groups.counts)}, _law=chance,
    )  # fmt: skip


def listed(likelihood: DefaultLikelihood, prior: Any) -> Listed | None:
    """Groups of secrets with one log likelihood and one prior; None for a prior in full."""
    if isinstance(prior, Exceptions):
        prior = as_likelihood(prior)
    if prior is not None and not isinstance(prior, DefaultLikelihood):
        return None
    if prior is None:
        places, logs = likelihood.indices, likelihood.values
        values, member = np.unique(np.append(logs, likelihood.default), return_inverse=True)
        atoms = None
    else:
        if prior.size != likelihood.size:
            raise ShapeError(
                f"prior must have one entry for each of the {_validate.shown(likelihood.size)} secrets; got "
                f"{_validate.shown(prior.size)}. Pass one of the same size, or None for the uniform law."
            )
        places = np.union1d(likelihood.indices, prior.indices)
        distinct, member = distinct_rows(np.stack([_spread(one, places) for one in (likelihood, prior)], axis=1))
        values, atoms = distinct.T
    member = member.reshape(-1)
    counts: list[int] = np.bincount(member[:-1], minlength=len(values)).tolist()
    counts[member[-1]] += likelihood.size - len(places)
    plain = int(member[-1]) if likelihood.size > len(places) else -1
    return _held(likelihood.size, places, member[:-1], plain, counts, values, atoms)


def written_out(logs: FloatArray, prior: FloatArray | None, log_prior: bool) -> Listed:
    """Secrets that are all listed, with a prior in full."""
    if prior is None:
        (values, member), atoms = np.unique(logs, return_inverse=True), None
    else:
        distinct, member = distinct_rows(np.stack([logs, prior], axis=1))
        values, atoms = distinct.T
    member = member.reshape(-1)
    counts: list[int] = np.bincount(member, minlength=len(values)).tolist()
    return _held(len(logs), np.arange(len(logs)), member, -1, counts, values, atoms, log_prior)


def _held(size: int, places: NDArray[Any], member: NDArray[Any], default: int, counts: list[int], values: FloatArray,
          atoms: FloatArray | None, log_prior: bool = True) -> Listed:  # fmt: skip
    """The groups that are not empty and have a positive prior; one past the last stands for the others."""
    keep = np.array([count > 0 for count in counts])
    if atoms is not None:
        keep &= atoms > (-np.inf if log_prior else 0.0)
        if not keep.any():
            raise DomainError("prior must be positive for a secret; got none. Pass a prior that sums to 1.")
    rank = np.where(keep, np.cumsum(keep) - 1, int(keep.sum()))
    kept = [count for count, held in zip(counts, keep.tolist(), strict=True) if held]
    logs = values[keep]
    if atoms is None:
        groups = uniform_groups(kept, logs, size)
    else:
        groups = (given_groups if log_prior else weighted_groups)(kept, atoms[keep], logs)
    return Listed(size, places, rank[member], -1 if default < 0 else int(rank[default]), groups)


def as_indices(indices: list[int], size: int) -> NDArray[Any]:
    """Secrets as integers of 64 bits where these can hold them all, else as Python integers."""
    return np.array(indices, dtype=np.int64 if size <= 2**63 else object)


def _spread(one: DefaultLikelihood, places: NDArray[Any]) -> FloatArray:
    """Logarithms at these places, and the default as the last."""
    found = np.full(len(places) + 1, one.default)
    found[np.searchsorted(places, one.indices)] = one.values
    return found


def _probabilities(law: Listed, share: FloatArray) -> Callable[[int, int], FloatArray]:
    """Posterior of a range of secrets."""
    shares = np.append(share, 0.0)

    def chance(start: int, stop: int) -> FloatArray:
        _validate.memory("probabilities", 8 * (stop - start), "Ask for fewer at a time.")
        found = np.full(stop - start, shares[law.default])
        first, last = (int(np.searchsorted(law.places, end)) for end in (start, stop))
        found[(law.places[first:last] - start).astype(np.int64)] = shares[law.member[first:last]]
        return found

    return chance
