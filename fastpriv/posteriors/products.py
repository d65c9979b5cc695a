"""Posteriors of independent coordinates: secrets are tuples, often too many to enumerate.

Notation: a secret is (d_1 .. d_t), its log likelihood the sum of those of its coordinates, its prior their product; as
integers, tuples are numbered with the first coordinate changing slowest. Evidence, entropy, KL, largest and smallest
log ratio and log vulnerability are sums over coordinates. JS is not: ``product_jensen_shannon`` has its integral.

The most probable tuples are those of the first coordinates joined with each next coordinate: of two ordered lists, the
pair (i, j) has at least (i + 1)(j + 1) - 1 pairs before it, so few pairs need to be examined. Joint weights are
compared as exact sums of the doubles of each coordinate, so that ties are found.
"""

# bounds: none - sums farther from 1 are refused

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.numerics import FloatArray
from ..channels import likelihoods
from ..channels.likelihoods import Likelihood, ProductLikelihood
from .ball_arithmetic import Ball, stack
from .groups import GroupedDomain, GroupPosterior, closed_form_posterior, default_domain, dense_domain
from .product_jensen_shannon import PosteriorMasses, product_jensen_shannon
from .result import Options, Posterior, Top, index_array

_FIXED_POINT_BITS = 1080  # a double is a multiple of 2^-1074
_DENSE_LIMIT = 2**24  # secrets; a coordinate with more is not expanded into an array (128 MiB)


class _Coordinate(NamedTuple):
    """The data that all coordinates with the same likelihood and prior share."""

    domain: GroupedDomain
    posterior: GroupPosterior
    log_sum: Ball
    ties: int


def posterior(likelihood: ProductLikelihood, prior: Any, options: Options) -> Posterior:
    """The posterior over tuples from those of their coordinates."""
    coordinates = _coordinates(likelihood, prior)
    numbers: dict[tuple[int, int], int] = {}  # index of each kind of coordinate, by likelihood and prior
    order = [numbers.setdefault((id(part), id(part_prior)), len(numbers)) for part, part_prior in coordinates]
    first_of_kind = dict(zip(reversed(order), reversed(coordinates), strict=True))
    domains = [_domain(*first_of_kind[kind], log_prior=options.log_prior) for kind in range(len(numbers))]
    distinct: dict[Any, GroupPosterior] = {}
    parts = [_coordinate(domain, distinct) for domain in domains]
    multiplicity = Counter(id(parts[kind].posterior) for kind in order)
    factors = [(factor, multiplicity[id(factor)]) for factor in distinct.values()]
    masses = [
        (PosteriorMasses(x.ratio, x.mass, x.log_mass, x.posterior_mass, x.ruled_out_mass), times)
        for x, times in factors
    ]
    size = math.prod(domains[kind].size for kind in order)
    indices, top_probabilities = _most_probable(parts, order, max(1, options.top))
    probabilities = _probability_function(parts, order)

    def total(quantity: Callable[[GroupPosterior], Ball]) -> Ball:
        return _sum([(quantity(factor), times) for factor, times in factors])

    return closed_form_posterior(
        size, "product", log_evidence=total(lambda factor: factor.log_evidence), kl=total(lambda factor: factor.kl),
        entropy=total(lambda factor: factor.concentration[0]),
        extremes=(total(lambda factor: factor.extremes[0]), total(lambda factor: factor.extremes[1])),
        log_sum=_sum([(parts[kind].log_sum, 1) for kind in order]), js=product_jensen_shannon(masses),
        js_kind="certified", map_index=indices[0], ties=math.prod(parts[kind].ties for kind in order),
        top=Top(index_array(indices[: options.top], size), np.array(top_probabilities[: options.top])),
        cost={"coordinates": len(coordinates), "distributions": len(factors)}, _probabilities=probabilities,
    )


def _coordinates(likelihood: Likelihood, prior: Any) -> list[tuple[Likelihood, Any]]:
    """Every coordinate with its prior, in order; products inside products are expanded."""
    if not isinstance(likelihood, ProductLikelihood):
        return [(likelihood, prior)]

    def repeated(items: Sequence[Any]) -> list[Any]:
        return [item for item, times in zip(items, likelihood.powers, strict=True) for _ in range(times)]

    count, total = len(likelihood.factors), sum(likelihood.powers)
    priors: list[Any] = [None] * total
    if prior is not None:
        several = isinstance(prior, Sequence) and not isinstance(prior, (str, bytes))
        if not several or len(prior) not in (count, total):
            raise ShapeError(
                f"prior must be a sequence with one prior for each of the {count} factors, or of the {total} "
                f"coordinates; got {validate.shown(prior)}. Pass a list; None among them is uniform."
            )
        priors = repeated(prior) if len(prior) == count else list(prior)
    pairs = zip(repeated(likelihood.factors), priors, strict=True)
    return [coordinate for factor, factor_prior in pairs for coordinate in _coordinates(factor, factor_prior)]


def _domain(likelihood: Likelihood, prior: Any, *, log_prior: bool) -> GroupedDomain:
    """The secrets of one coordinate in groups."""
    domain = default_domain(likelihood, prior) if isinstance(likelihood, likelihoods.DefaultLikelihood) else None
    if domain is not None:
        return domain
    logs = _log_likelihoods(likelihood)
    return dense_domain(logs, _dense_prior(prior, len(logs), log_prior), log_prior)


def _coordinate(domain: GroupedDomain, distinct: dict[Any, GroupPosterior]) -> _Coordinate:
    """Coordinates with equal groups share one posterior, whichever secrets the groups hold."""
    groups = domain.groups
    numbers = (groups.log_likelihood, groups.log_prior.mid, groups.log_prior.rad)
    key = (domain.reference, domain.size, *groups.counts, *(np.asarray(x).tobytes() for x in numbers))
    if key not in distinct:
        distinct[key] = GroupPosterior(groups, domain.reference)
    _, log_sum, ties = distinct[key].concentration
    return _Coordinate(domain, distinct[key], log_sum, ties)


def _log_likelihoods(likelihood: Likelihood) -> FloatArray:
    """All log likelihoods of one coordinate as an array."""
    kinds = likelihoods.DefaultLikelihood, likelihoods.DenseLikelihood, likelihoods.IndexLikelihood
    if not isinstance(likelihood, kinds):
        raise DomainError(
            f"factors must be dense, default and exceptions, or functions of an index; got a "
            f"{type(likelihood).__name__}. Write its log likelihoods out as an array."
        )
    if not isinstance(likelihood, likelihoods.DenseLikelihood) and likelihood.size > _DENSE_LIMIT:
        raise DomainError(
            f"factors must have at most {_DENSE_LIMIT} secrets where they are written out; got "
            f"{validate.shown(likelihood.size)}. Use a DefaultLikelihood with a DefaultLikelihood as prior, or more "
            "factors with fewer secrets each."
        )
    if isinstance(likelihood, likelihoods.DefaultLikelihood):
        return likelihood._written_out()
    valid = (lambda x: x < np.inf) if likelihood.log else (lambda x: (x >= 0) & (x < np.inf))
    words = "log likelihoods below infinity" if likelihood.log else "finite likelihoods of at least 0"
    blocks = likelihood._source("factors").blocks()
    values = validate.vector("factors", np.concatenate([np.empty(0), *blocks]), words, valid)
    with np.errstate(divide="ignore"):
        return values if likelihood.log else np.log(values)


def _dense_prior(prior: Any, size: int, log_prior: bool) -> FloatArray | None:
    if prior is None:
        return None
    if log_prior:
        values = validate.vector("log_prior", prior, "logarithms of probabilities", lambda x: x <= 1e-9)
    else:
        values = validate.probabilities("prior", prior)
    if values.size != size:
        raise ShapeError(
            f"prior must have one entry for each of the {size} secrets of a factor; got {values.size}. Match them."
        )
    return values


def _sum(terms: list[tuple[Ball, int]]) -> Ball:
    """The sum of terms with their multiplicities."""
    if any(np.isneginf(ball.mid) for ball, _ in terms):
        return Ball(-np.inf)
    return stack([ball.times(float(times)) for ball, times in terms]).sum()


def _most_probable(parts: list[_Coordinate], order: list[int], count: int) -> tuple[list[int], list[float]]:
    """The most probable tuples by their numbers, the lowest first on ties, and their probabilities."""
    candidates = []  # of each kind of coordinate: (exact weight as a multiple of 2^-1080, secret, group)
    for part in parts:
        joint = part.posterior.log_joint
        secrets, groups = part.domain.most_probable(joint, count)
        ratios = [weight.as_integer_ratio() for weight in joint[groups].tolist()]
        weights = [top * ((1 << _FIXED_POINT_BITS) // bottom) for top, bottom in ratios]
        candidates.append(list(zip(weights, secrets, groups, strict=True)))
    # Entries are (exact weight, number of the tuple, where it came from: entry before, kind and group).
    best: list[tuple[int, int, tuple[int, int, int] | None]] = [(0, 0, None)]
    history = []
    for kind in order:
        size = parts[kind].domain.size
        pairs = [
            (weight + own_weight, number * size + secret, (i, kind, group))
            for i, (weight, number, _) in enumerate(best)
            for own_weight, secret, group in candidates[kind][: count // (i + 1)]
        ]
        pairs.sort(key=lambda entry: (-entry[0], entry[1]))
        best = [(weight, number, source) for weight, number, source in pairs[:count]]
        history.append(best)
    logs = [part.posterior.log_posterior for part in parts]
    probabilities = []
    for index in range(len(best)):
        terms, before = [], index
        for entries in reversed(history):
            before, kind, group = entries[before][2]  # type: ignore[misc]
            terms.append(float(logs[kind][group]))
        probabilities.append(math.exp(math.fsum(terms)))
    return [number for _, number, _ in best], probabilities


def _probability_function(parts: list[_Coordinate], order: list[int]) -> Callable[[int, int], FloatArray]:
    """The function that returns the posterior of a range of tuples."""
    logs = [np.append(part.posterior.log_posterior, -np.inf) for part in parts]

    def probabilities(start: int, stop: int) -> FloatArray:
        validate.memory("probabilities", 40 * (stop - start), "Ask for fewer at a time.")
        total, offsets, first = np.zeros(stop - start), np.arange(stop - start), start
        for kind in reversed(order):  # tuple numbers first + offsets, of which the last coordinate is taken off
            domain = parts[kind].domain
            numbers: NDArray[Any] = offsets if domain.size < 2**62 else offsets.astype(object)
            numbers = numbers + first % domain.size
            total += logs[kind][domain.groups_of((numbers % domain.size).astype(domain.exceptions.dtype))]
            offsets, first = (numbers // domain.size).astype(np.int64), first // domain.size
        return np.asarray(np.exp(total))

    return probabilities
