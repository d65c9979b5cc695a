"""What a caller passes to ``compose``, read as dominating pairs: distributions, mechanisms, channels, measured losses.

Notation: forward is P against Q, backward Q against P. A mechanism or a channel has two neighbouring secrets in no
particular order; where its two curves differ, forward is what ``forward`` of its documentation says.

Channels. If one ordered pair of rows has the largest hockey-stick divergence of all ordered pairs at every epsilon, it
is the pair. Let A be its curve, x = e^epsilon, and B that of another pair. A is linear in x between its kinks, the
ratios p_i / q_i, and beyond the last; B is convex: B <= A everywhere if it is at these kinks. B is computed with x
raised by a relative ``_DOMINATION_SLACK``, or more for losses beyond 32, whose logarithms as doubles are less precise,
and A raised by that, which become gaps of the step. Otherwise the step from above is the curve that is the larger of
all pairs at each epsilon, and those from below are single pairs of rows.
"""

# bounds: proved - roundings, and the least weight that is computed

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..base import validate
from ..base.errors import DomainError
from ..base.numerics import FloatArray, doubles_around, next_above, next_below
from ..base.values import distinct_rows
from ..channels import AnyChannel, Channel, RowPair
from ..distributions import GaussianMixture
from ..divergences.reductions.gaussian_spectra import equal_covariances, gaussian_spectrum
from ..divergences.reductions.independent_factors import is_single_gaussian, product_factors
from ..mechanisms.categorical import RandomizedResponse
from ..mechanisms.gaussian import GaussianMechanism
from ..mechanisms.laplace import LaplaceMechanism
from ..mechanisms.subsampled_gaussian import PoissonSampledGaussian
from .curve_pairs import CurvePair, PairObject, PrivacyCurves, WorstPairCurve, normal_noise, pair_of_curves
from .discrete_pairs import DiscretePair, bounding_atoms
from .laplace_pairs import LaplacePair
from .log_bounds import certified
from .measured_losses import LossPair, PrivacyLossDistribution, is_dp_accounting_pld, losses_of_dp_accounting
from .mixture_pairs import GaussianPair, MixturePair
from .protocol import BoundingPairs, DominatingPair

# bound: proved - relative errors of p and q between a dominating pair of rows and what stands for it; the roundings of
#    both curves in extended precision are far below it
_DOMINATION_SLACK = 2.0**-46
_LONGEST_TEXT = 80  # characters of a pair in the text of a composition
_MAX_COMPARED_ROWS = 64  # rows of a channel whose pairs are compared in full
_MAX_COMPARED_TERMS = 2**22  # pairs times kinks times releases that are compared: 0.1 s
_MOST_CANDIDATES = 3  # single pairs of rows whose compositions bound from below
_MOST_COORDINATES = 64  # independent ones of two normal distributions that are pairs by themselves
_CANDIDATE_EPSILONS = np.array([0.0, 0.5, 1.0, 2.0, 4.0])  # at which they are chosen
# bound: proved - relative error of 1 / (1 + (k - 1) e^-epsilon), or of an exponential, in extended precision
_EXTENDED_ERROR = 16 * float(np.finfo(np.longdouble).eps)


class ReadPair(NamedTuple):
    """The pairs of one release in both directions, and whether the caller passed P and Q in an order."""

    forward: BoundingPairs
    backward: BoundingPairs
    ordered: bool


def read_pair(name: str, pair: Any) -> ReadPair:
    """What a caller passes as one pair, named ``name`` in errors; each has the count 1."""
    for kind, reader in _READERS:
        if isinstance(pair, kind):
            return reader(pair)
    if is_dp_accounting_pld(pair):
        removal, *addition = (BoundingPairs((LossPair(x, 1),)) for x in losses_of_dp_accounting(name, pair))
        return ReadPair(removal, addition[0] if addition else removal, ordered=False)
    if isinstance(pair, tuple) and len(pair) == 2:
        return _read_two(name, *pair)
    if callable(pair) and not isinstance(pair, type):
        read: ReadPair = validate.with_argument_name(
            "p must", f"{name} must", lambda: _of_curves(pair_of_curves(pair, None), ordered=False)
        )
        return read
    raise DomainError(
        f"{name} must be a tuple (p, q) of two distributions, a mechanism, a channel, a PrivacyLossDistribution, a "
        f"Composition or a certified curve; got {validate.shown(pair)}. Pass several pairs as a list."
    )


def hashable_pair(pair: Any) -> Any:
    """The same pair with vectors of probabilities as tuples."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        return pair
    return tuple(tuple(np.asarray(x).tolist()) if isinstance(x, (list, tuple, np.ndarray)) else x for x in pair)


def has_groups(pair: Any) -> bool:
    """Whether ``read_group`` takes this: a mechanism that is known by the sensitivity of its noise."""
    return isinstance(pair, _MechanismWithGroups)


def read_group(mechanism: _MechanismWithGroups, group: int) -> ReadPair:
    """The pairs of one release where ``group`` records change at once, by as much and in the same direction each.

    Noise is added to a sum whose records may all contribute in the same direction, so that data sets attain ``group``
    times the sensitivity; log-concave noise makes the pair of this distance dominate all smaller ones.
    """
    if isinstance(mechanism, PoissonSampledGaussian):
        s = mechanism
        return _read_subsampled(PoissonSampledGaussian(s.sigma, s.rate, s.sensitivity, s.group_size * group))
    if isinstance(mechanism, LaplaceMechanism):
        return _read_laplace(mechanism, group)
    return _read_gaussian(mechanism, group)


def pair_text(pair: Any) -> str:
    """A pair in the text of a composition: the mechanism with its parameters, or what kind of pair it is."""
    if isinstance(pair, tuple):
        texts = [validate.shown(item) for item in pair]
        if max(map(len, texts)) > _LONGEST_TEXT:
            texts = [type(entry).__name__ for entry in pair]
        return f"pair ({', '.join(texts)})"
    if isinstance(pair, AnyChannel) and len(repr(pair)) > _LONGEST_TEXT:
        return f"{type(pair).__name__} of {pair.inputs} inputs"
    text = repr(pair) if isinstance(pair, (PairObject, *_MechanismWithGroups.__args__, AnyChannel)) else ""
    return text if text and len(text) <= _LONGEST_TEXT else type(pair).__name__


def _symmetric(pairs: BoundingPairs, ordered: bool = False) -> ReadPair:
    """A pair whose two curves are the same."""
    return ReadPair(pairs, pairs, ordered)


def _both_directions(pairs: BoundingPairs, ordered: bool = False) -> ReadPair:
    return ReadPair(pairs, pairs.reversed(), ordered)


def _ordered(pairs: BoundingPairs) -> ReadPair:
    return _both_directions(pairs, ordered=True)


def _read_gaussian(mechanism: GaussianMechanism, group: int = 1) -> ReadPair:
    sigma, span = normal_noise(mechanism)
    q = GaussianMixture.single(0.0, sigma)
    return _at_distance(span, group, lambda distance: MixturePair(GaussianMixture.single(distance, sigma), q, 1))


def _read_laplace(mechanism: LaplaceMechanism, group: int = 1) -> ReadPair:
    return _at_distance(mechanism.sensitivity, group, lambda distance: LaplacePair(mechanism.scale, distance, 1))


def _at_distance(span: float, group: int, make: Callable[[float], DominatingPair]) -> ReadPair:
    """A pair of two equal laws at ``group`` times this distance, between two doubles where it is none."""
    validate.scalar("group times sensitivity", group * span, "finite", np.isfinite)
    low, high = doubles_around(Fraction(span) * group)
    return _symmetric(BoundingPairs((make(high),), ((make(low),),) if low < high else ()))


def _read_subsampled(mechanism: PoissonSampledGaussian) -> ReadPair:
    """The mixture; larger means dominate smaller ones, which brackets those that are no doubles."""
    weights, gap = mechanism._weights()
    counts = np.arange(mechanism.group_size + 1)
    means = np.asarray(counts * mechanism.sensitivity, dtype=np.float64)
    exact = counts * np.longdouble(mechanism.sensitivity) == means

    def pair(centres: FloatArray) -> tuple[DominatingPair, ...]:
        p, q = GaussianMixture(weights, centres, mechanism.sigma), GaussianMixture.single(0.0, mechanism.sigma)
        return (MixturePair(p, q, 1, gap, 0.0, mechanism.rate if mechanism.group_size == 1 else 0.0),)

    if bool(exact.all()):
        pairs = BoundingPairs(pair(means))
    else:
        larger, smaller = (np.where(exact, means, move(means)) for move in (next_above, next_below))
        pairs = BoundingPairs(pair(larger), (pair(smaller),))
    return _both_directions(pairs)


def _read_response(channel: RandomizedResponse) -> ReadPair:
    """The truth, one lie, and all others, which tell nothing."""
    a = np.exp(-np.longdouble(channel.epsilon))
    if channel.k > 2**60 or channel.k == 1 or (a < 1e-290 and channel.epsilon < math.inf):
        return _read_channel(channel)
    total = 1 + (channel.k - 1) * a
    p = np.array([1, a, (channel.k - 2) * a], dtype=np.longdouble) / total
    q = p[[1, 0, 2]]
    error = _EXTENDED_ERROR if a > 0.0 else 0.0
    return _symmetric(bounding_atoms(p, q, (p > 0.0) & (q > 0.0), error, error))


def _read_channel(channel: AnyChannel) -> ReadPair:
    rows = channel.dominating_pairs()
    gap = channel.mass_gap
    if rows is not None:
        candidates = [_atoms_of_rows(row, gap) for row in rows]
    else:
        candidates = _pairs_of_matrix(channel)
    if len(candidates) == 1:
        return _symmetric(candidates[0])
    if channel.inputs == 2 and len(candidates) == 2:
        return _both_directions(candidates[0])
    dominating = _dominating(candidates)
    if dominating is not None:
        return _symmetric(dominating)
    worst = WorstPairCurve(channel)
    dominated = tuple(best_candidate.alternatives[0] for best_candidate in _best_candidates(candidates))
    return _symmetric(BoundingPairs((CurvePair(worst, worst, 1),), dominated or ((),)))


def _atoms_of_rows(pair: RowPair, gap: float) -> BoundingPairs:
    """The atoms of two rows, whose logarithms have errors; q from p and their more precise ratio."""
    p, q = (np.exp(logs.astype(np.longdouble)) for logs in (pair.log_p, pair.log_q))
    finite = np.isfinite(pair.log_p) & np.isfinite(pair.log_q)
    with np.errstate(invalid="ignore", over="ignore"):
        q = np.where(finite & np.isfinite(pair.log_ratio), p * np.exp(-pair.log_ratio.astype(np.longdouble)), q)
    p_error = math.expm1(float(pair.log_error.max(initial=0.0))) + _EXTENDED_ERROR
    q_error = math.expm1(float((pair.log_error + pair.ratio_error).max(initial=0.0))) + _EXTENDED_ERROR
    return bounding_atoms(p, q, finite, 1.01 * p_error + gap, 1.01 * q_error + gap)


def _pairs_of_matrix(channel: AnyChannel) -> list[BoundingPairs]:
    """All ordered pairs of different rows of a small channel that is written out, without equal ones; else none."""
    if channel.inputs > _MAX_COMPARED_ROWS or channel.inputs**2 * channel.outputs > _MAX_COMPARED_TERMS:
        return []
    stored = isinstance(channel, Channel) and not channel.log
    matrix, _ = distinct_rows(np.asarray(channel.matrix(), dtype=np.float64))
    error = 0.0 if stored else 64 * float(np.finfo(np.float64).eps)  # exponentials of logarithms
    result: dict[bytes, BoundingPairs] = {}
    for i, p in enumerate(matrix):
        for j, q in enumerate(matrix):
            if i != j:
                atoms = np.stack([p, q])[:, (p > 0.0) | (q > 0.0)]
                atoms = atoms[:, np.lexsort(atoms)]
                gap = channel.mass_gap + error
                wide = atoms.astype(np.longdouble)
                candidate = bounding_atoms(wide[0], wide[1], (wide[0] > 0.0) & (wide[1] > 0.0), gap, gap)
                result.setdefault(atoms.tobytes(), candidate)
    if not result:
        return [BoundingPairs((DiscretePair(np.ones(1), np.ones(1), 1),))]
    return list(result.values())


def _heights(candidate: BoundingPairs, epsilon: FloatArray) -> FloatArray:
    """The curve of a pair of rows."""
    return np.asarray(candidate.dominating[0].curve(epsilon).value)


def _dominating(candidates: list[BoundingPairs]) -> BoundingPairs | None:
    """The candidate whose curve is nowhere below that of another, with the gaps of the comparison."""
    if not candidates:
        return None
    first = int(np.argmax([_heights(candidate, _CANDIDATE_EPSILONS).sum() for candidate in candidates]))
    pair = candidates[first].dominating[0]
    assert isinstance(pair, DiscretePair)
    finite = (pair.p > 0.0) & (pair.q > 0.0)
    p, q = (x[finite].astype(np.longdouble) for x in (pair.p, pair.q))
    kinks = np.append(0.0, (np.log(p) - np.log(q)).astype(np.float64))
    slack = _DOMINATION_SLACK * max(1.0, float(np.abs(kinks).max()) / 32)
    largest = _heights(candidates[first], kinks) * (1 + slack)
    if any((_heights(item, kinks + slack) > largest).any() for item in candidates):
        return None
    errors = {name: getattr(pair, name) + slack for name in ("p_relative_error", "q_relative_error")}
    wider = replace(pair, **errors)
    return BoundingPairs((wider,), candidates[first].alternatives)


def _best_candidates(candidates: list[BoundingPairs]) -> list[BoundingPairs]:
    """A few pairs of rows, those with the largest curves at a few epsilons."""
    if not candidates:
        return []
    table = np.array([_heights(candidate, _CANDIDATE_EPSILONS) for candidate in candidates])
    return [candidates[i] for i in dict.fromkeys(table.argmax(axis=0).tolist())][:_MOST_CANDIDATES]


def _read_two(name: str, p: Any, q: Any) -> ReadPair:
    """Two distributions, vectors of probabilities, or curves."""
    for side in (p, q):
        if isinstance(side, (PairObject, *(kind for kind, _ in _READERS))):
            raise DomainError(
                f"{name} must be a list if it has several pairs; got a tuple with {validate.shown(side)}, which is a "
                "pair already. Write [first, second]."
            )
    if isinstance(p, GaussianMixture) and isinstance(q, GaussianMixture):
        if p.dimension == q.dimension > 1:
            return _reduced(p, q)
        if p.dimension == q.dimension:
            gaps = validate.sum_gap(p.weights), validate.sum_gap(q.weights)
            pairs = BoundingPairs((MixturePair(p, q, 1, *gaps),))
            symmetric = len(p) == len(q) == 1 and p.sigmas[0] == q.sigmas[0] and gaps == (0.0, 0.0)
            return _symmetric(pairs, ordered=True) if symmetric else _ordered(pairs)
    pair = pair_of_curves(p, q)
    if pair.discrete is not None:
        return _ordered(BoundingPairs((pair.discrete,)))
    return _of_curves(pair, ordered=q is not None)


def _of_curves(pair: PrivacyCurves, *, ordered: bool) -> ReadPair:
    for curve in (pair.forward, pair.backward):
        certified(curve, np.zeros(1))  # raises here rather than in a search
    return _ordered(BoundingPairs((CurvePair(pair.forward, pair.backward, 1),)))._replace(ordered=ordered)


def _reduced(p: GaussianMixture, q: GaussianMixture) -> ReadPair:
    """Mixtures in several dimensions that are a composition of mixtures on lines, or two normal distributions."""
    few = "full" not in (p.form, q.form) and p.dimension <= _MOST_COORDINATES
    single = is_single_gaussian(p) and is_single_gaussian(q) and not few and not equal_covariances(p, q)
    if single and gaussian_spectrum(p, q) is not None:
        return _ordered(BoundingPairs((GaussianPair(p, q, 1),)))
    product = product_factors(p, q)
    if product is None:
        raise DomainError(
            f"p and q must be single Gaussians, or mixtures whose means lie on a line, or that have independent "
            f"coordinates, in more than one dimension; got dimension {p.dimension}. Pass what the pair is "
            "dominated by, or a certified curve."
        )
    factors, errors = product
    gaps = [validate.sum_gap(side.weights) for side in (p, q)]
    dominating: list[DominatingPair] = []
    dominated: list[DominatingPair] = []
    for factor in factors:
        for pairs, mixtures in ((dominating, factor.narrow), (dominated, factor.wide)):
            of_weights = errors if factor is factors[0] else (0.0, 0.0)
            relative_errors = [gap + 2.0**-52 + 1.01 * error for gap, error in zip(gaps, of_weights, strict=True)]
            pairs.append(MixturePair(mixtures[0], mixtures[1], 1, *relative_errors))
    exact = all(factor.exact for factor in factors)
    return _ordered(BoundingPairs(tuple(dominating), () if exact else (tuple(dominated),)))


_MechanismWithGroups: TypeAlias = GaussianMechanism | LaplaceMechanism | PoissonSampledGaussian

# Who reads what: the first class that fits
_READERS: tuple[tuple[type, Callable[[Any], ReadPair]], ...] = (
    (GaussianMechanism, _read_gaussian),
    (LaplaceMechanism, _read_laplace),
    (PoissonSampledGaussian, _read_subsampled),
    (RandomizedResponse, _read_response),
    (AnyChannel, _read_channel),
    (PrivacyLossDistribution, lambda loss: _ordered(loss._bounding_pairs())),
    (PairObject, lambda mechanism: _both_directions(mechanism._bounding_pairs())),
)
