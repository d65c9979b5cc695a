"""Posteriors of independent parts: secrets are tuples, and there may be 2^200 of them.

Notation: a secret is (d_1 .. d_t), its log likelihood the sum of those of its places, its prior their product; as
integers, tuples are numbered with the first place changing slowest. Evidence, entropy, KL, largest and smallest log
ratio and log vulnerability are sums over places. JS is not: ``implicit/overlaps.py`` has the integral that gives it.

The most probable tuples are those of the first places joined with each next place: of two lists in order, the pair
(i, j) has at least (i + 1)(j + 1) - 1 pairs before it, so few pairs need to be looked at. Joint weights are compared as
exact sums of the doubles of each place, so that ties are ties.
"""

# bounds: none - sums farther from 1 are refused

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ..._values import FloatArray
from ...channels.base import Exceptions
from ...channels.likelihoods.kinds import (
    DefaultLikelihood,
    DenseLikelihood,
    IndexLikelihood,
    Likelihood,
    ProductLikelihood,
)
from ...channels.likelihoods.sources import source_of
from ...errors import DomainError, ShapeError
from ..result import Options, Posterior, Top
from .balls import Ball, stacked
from .defaults import Listed, as_indices, listed, written_out
from .functions import evaluated
from .laws import Beliefs, enclosed
from .output import written
from .overlaps import jensen_shannon

__all__ = ["posterior"]

_METHOD = "product"
_BITS = 1080  # a double is a multiple of 2^-1074
_WRITTEN = 2**24  # secrets of one place that are written out


class _Part(NamedTuple):
    """What the places of one likelihood and one prior have in common."""

    law: Listed
    beliefs: Beliefs
    scale: Ball
    ties: int


def posterior(likelihood: ProductLikelihood, prior: Any, options: Options) -> Posterior:
    """The posterior over tuples from those of their places."""
    places = _places(likelihood, prior)
    kinds: dict[tuple[int, int], int] = {}
    order = [kinds.setdefault((id(one), id(belief)), len(kinds)) for one, belief in places]
    chosen = dict(zip(reversed(order), reversed(places), strict=True))
    laws = [_law(chosen[kind], options) for kind in range(len(kinds))]
    known: dict[Any, Beliefs] = {}
    parts = [_part(law, known) for law in laws]
    often = Counter(id(parts[kind].beliefs) for kind in order)
    each = [(beliefs, often[id(beliefs)]) for beliefs in known.values()]
    size = math.prod(laws[kind].size for kind in order)
    most, least = (_sum([(beliefs.extremes[side], times) for beliefs, times in each]) for side in (0, 1))
    scale = _sum([(parts[kind].scale, 1) for kind in order])
    indices, chances = _best(parts, order, max(1, options.top))
    chance = _probabilities(parts, order)
    written(options.out, size, chance)
    return Posterior(
        size, enclosed(_sum([(beliefs.log_evidence, times) for beliefs, times in each]), "nats", _METHOD),
        enclosed(_sum([(beliefs.concentration[0], times) for beliefs, times in each]), "nats", _METHOD, low=0.0),
        enclosed(_sum([(beliefs.kl, times) for beliefs, times in each]), "nats", _METHOD, low=0.0),
        enclosed(most, "nats", _METHOD), enclosed(least, "nats", _METHOD),
        enclosed((-scale).exp(), "probability", _METHOD, low=0.0, high=1.0), indices[0],
        math.prod(parts[kind].ties for kind in order),
        Top(as_indices(indices[: options.top], size), np.array(chances[: options.top])),
        js=enclosed(jensen_shannon(each), "nats", _METHOD, low=0.0, high=0.6931471805599454, kind="certified"),
        cost={"places": len(places), "laws": len(each)}, _law=chance,
    )  # fmt: skip


def _places(likelihood: Likelihood, prior: Any) -> list[tuple[Likelihood, Any]]:
    """Every place with its prior, in order; products inside products are taken apart."""
    if not isinstance(likelihood, ProductLikelihood):
        return [(likelihood, prior)]
    count, total = len(likelihood.factors), sum(likelihood.powers)
    if prior is None:
        priors: list[Any] = [None] * total
    else:
        several = isinstance(prior, Sequence) and not isinstance(prior, (str, bytes, Exceptions))
        if not several or len(prior) not in (count, total):
            raise ShapeError(
                f"prior must be a sequence with one prior for each of the {count} factors, or of the {total} places; "
                f"got {_validate.shown(prior)}. Pass a list; None among them is uniform."
            )
        of_factors = len(prior) == count
        priors = [one for one, times in zip(prior, likelihood.powers, strict=True) for _ in range(times)] \
            if of_factors else list(prior)
    factors = [one for one, times in zip(likelihood.factors, likelihood.powers, strict=True) for _ in range(times)]
    return [place for one, belief in zip(factors, priors, strict=True) for place in _places(one, belief)]


def _law(place: tuple[Likelihood, Any], options: Options) -> Listed:
    """Groups of the secrets of one place."""
    likelihood, prior = place
    law = listed(likelihood, prior) if isinstance(likelihood, DefaultLikelihood) else None
    if law is not None:
        return law
    logs = _written(likelihood)
    return written_out(logs, _weights(prior, len(logs), options.log_prior), options.log_prior)


def _part(law: Listed, known: dict[Any, Beliefs]) -> _Part:
    """Places whose groups are alike have the same beliefs, whichever secrets these hold."""
    groups = law.groups
    held = law.default if 0 <= law.default < len(groups.counts) else 0
    numbers = (groups.log_likelihood, groups.log_atom.mid, groups.log_atom.rad)
    key = (held, law.size, *groups.counts, *(np.asarray(x).tobytes() for x in numbers))
    if key not in known:
        known[key] = groups.beliefs(held)
    beliefs = known[key]
    _, scale, ties = beliefs.concentration
    return _Part(law, beliefs, scale, ties)


def _written(likelihood: Likelihood) -> FloatArray:
    """All log likelihoods of one place."""
    if isinstance(likelihood, DenseLikelihood):
        below = (lambda x: x < np.inf) if likelihood.log else (lambda x: (x >= 0) & (x < np.inf))
        words = "log likelihoods below infinity" if likelihood.log else "finite likelihoods of at least 0"
        source = source_of("factors", likelihood.values)
        blocks = [source.take(0, source.known_length())] if source.direct else list(source.blocks())
        values = _validate.vector("factors", np.concatenate(blocks), words, below)
        with np.errstate(divide="ignore"):
            return values if likelihood.log else np.log(values)
    if not isinstance(likelihood, (DefaultLikelihood, IndexLikelihood)):
        raise DomainError(
            f"factors must be dense, default and exceptions, or functions of an index; got a "
            f"{type(likelihood).__name__}. Write its log likelihoods out as an array."
        )
    size = likelihood.size
    if size > _WRITTEN:
        raise DomainError(
            f"factors must have at most {_WRITTEN} secrets where they are written out; got {_validate.shown(size)}. "
            "Use a DefaultLikelihood with a DefaultLikelihood as prior, or more factors with fewer secrets each."
        )
    if isinstance(likelihood, IndexLikelihood):
        return evaluated(likelihood)(0, size)
    logs = np.full(size, likelihood.default)
    logs[likelihood.indices.astype(np.int64)] = likelihood.values
    return logs


def _weights(prior: Any, size: int, log_prior: bool) -> FloatArray | None:
    if prior is None:
        return None
    if log_prior:
        found = _validate.vector("log_prior", prior, "logarithms of probabilities", lambda x: x <= 1e-9)
    else:
        found = _validate.probabilities("prior", prior)
    if found.size != size:
        raise ShapeError(
            f"prior must have one entry for each of the {size} secrets of a factor; got {found.size}. Match them."
        )
    return found


def _sum(terms: list[tuple[Ball, int]]) -> Ball:
    """Over all places."""
    if any(np.isneginf(ball.mid) for ball, _ in terms):
        return Ball(-np.inf)
    return stacked([ball.times(float(times)) for ball, times in terms]).sum()


def _best(parts: list[_Part], order: list[int], count: int) -> tuple[list[int], list[float]]:
    """The most probable tuples by their numbers, the lowest first where they are equal, and their probabilities."""
    lists, logs = [], []
    for part in parts:
        joint = part.beliefs.log_joint
        secrets, groups = part.law.best(joint, count)
        weights = joint[groups]
        lists.append([(_whole(weight), secret, group) for weight, secret, group in
                      zip(weights.tolist(), secrets, groups, strict=True)])  # fmt: skip
        logs.append(part.beliefs.log_posterior)
    found: list[tuple[int, int, tuple[int, int, int] | None]] = [(0, 0, None)]
    trail = []
    for kind in order:
        own, size = lists[kind], parts[kind].law.size
        pairs = [
            (weight + more, number * size + secret, (i, kind, group))
            for i, (weight, number, _) in enumerate(found)
            for more, secret, group in own[: count // (i + 1)]
        ]
        pairs.sort(key=_rank)
        found = [(weight, number, source) for weight, number, source in pairs[:count]]
        trail.append(found)
    chances = []
    for place in range(len(found)):
        terms, at = [], place
        for step in reversed(trail):
            at, kind, group = step[at][2]  # type: ignore[misc]
            terms.append(float(logs[kind][group]))
        chances.append(math.exp(math.fsum(terms)))
    return [number for _, number, _ in found], chances


def _rank(entry: tuple[int, int, Any]) -> tuple[int, int]:
    return -entry[0], entry[1]


def _whole(weight: float) -> int:
    """A double as a multiple of 2^-1080."""
    top, bottom = weight.as_integer_ratio()
    return top * ((1 << _BITS) // bottom)


def _probabilities(parts: list[_Part], order: list[int]) -> Callable[[int, int], FloatArray]:
    """Posterior of a range of tuples."""
    logs = [np.append(part.beliefs.log_posterior, -np.inf) for part in parts]

    def chance(start: int, stop: int) -> FloatArray:
        _validate.memory("probabilities", 40 * (stop - start), "Ask for fewer at a time.")
        total, rest, first = np.zeros(stop - start), np.arange(stop - start), start
        for kind in reversed(order):
            size = parts[kind].law.size
            here: NDArray[Any] = rest if size < 2**62 else rest.astype(object)
            here = here + first % size
            total += logs[kind][parts[kind].law.groups_of((here % size).astype(parts[kind].law.places.dtype))]
            rest, first = (here // size).astype(np.int64), first // size
        return np.asarray(np.exp(total))

    return chance
