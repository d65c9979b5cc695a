"""The exact posterior of a membership by a sum over all subsets of at most 24 people.

Notation: K people, b in {0, 1}^K, n = |b|; r released, d_k the attributes of person k; the exponent of b is

    E(b) = size_weights[n] + sum_k b_k log_odds_k + sum over terms of the log likelihood,

E relative to a reference near its maximum M, Z = sum over b of e^(E - M), and p(b) = e^(E - M) / Z. The arithmetic of
a term is in csrc/membership/fp_membership_posterior.h; here are its arrays and the bounds.

Bounds, with u = 2^-53. The exponent of b is wrong by at most

    delta(b) = tau + rho |E(b) - reference|,

tau the sum of what the terms and the prior lose, each stated where its arrays are made, and rho 2.1 u plus what they
lose relative to their own size: none is above 0, so that they are at most the sizes of E, reference and prior. A side
of person k, all b with b_k = 1 or with b_k = 0, has the maximum M_s and the sum S_s of e^(E - M_s). With x = M_s - E,
the mean of x over the weights of a side is at most its entropy, K log 2, so that log S_s + M_s is wrong by at most

    tau + rho |M_s - reference| + 5 u (K log 2 + 1) + 200 u,

where 5 u pays for delta, for E - M_s and for its parts in the exponential, and 200 u for the roundings of sums: 35 in
a row, 8 and the products over rows; 64 in a column, and the factors of blocks of rows. Log odds are the difference of
two of these. The entropy H = log Z + mean x is wrong by at most 2 tau' H to first order, tau' = tau + rho |M -
reference|, as the derivative in delta(b) is -p(b) (log p(b) + H), by (5 u + rho) (mean of x^2 + (mean of x)^2), where
the mean of x^2 is at most (K log 2 + 2)^2, and by the roundings of the sums.
"""

# bounds: proved - docs/proofs/posteriors.md, 10.8: roundings counted at the head and at each term

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ... import special
from ...base import parallel
from ...base.errors import DomainError
from ...base.numerics import LOG_2, UNIT_ROUNDOFF, FloatArray
from ...kernels import matrix_product
from ..kernels import _membership_posterior
from .likelihood_terms import LikelihoodTerm

MAX_PEOPLE = 24  # people of which all subsets are visited: 0.1 s
# bound: none - the kernel has at least 2^3 low halves and groups of four rows; fewer people are filled up
_LEAST_PEOPLE = 6
_ROW_TERMS = 2**21  # operations of one task, about 2 ms
_TABLE_SIZE = 2**24  # numbers in a table of low halves and attributes: 128 MiB
_MOST_TASKS = 1024  # of one release
_NEVER = float(_membership_posterior.NEVER)  # the exponent of what is impossible
_IMPOSSIBLE = 0.25 * _NEVER  # below it lies no possible exponent
# bound: proved - relative mass of a side from which the columns of the kernel, without e^-700, may lack something
_FAR = 1e-200
_NEAR_REFERENCE = 100.0  # nats between reference and maximum that cost no more than 3e-14
# bound: proved - roundings of a sum, in units of u; counted at the head
_SUM_ROUNDINGS = 200.0
# bound: proved - roundings of an exponent, in units of u |E - reference|
_EXPONENT_ROUNDINGS = 2.1
# bound: proved - roundings of an exponential, in units of u |E - M|
_TERM_ROUNDINGS = 5.0
_SPLIT = 2.0**27 + 1  # Veltkamp's factor: halves of 26 bits


_Pair = tuple[Any, Any]  # an unevaluated sum of two doubles, or of arrays of them


class Enumeration(NamedTuple):
    """What the sum over all subsets says."""

    log_odds: FloatArray  # (K,): log P(b_k = 1 | r) / P(b_k = 0 | r)
    log_odds_error: FloatArray  # (K,)
    log_evidence: float
    log_evidence_error: float
    entropy: float
    entropy_error: float
    mode: Any  # (K,) bool: the most probable b, the first of equal ones


class _Built(NamedTuple):
    """A term as the kernel takes it, and the errors of its exponent."""

    arrays: dict[str, Any]
    error: float
    expected: float  # about where its exponent lies at the membership that made the release
    relative: float = 0.0  # a further error, relative to the exponent of the term


class _Sweep(NamedTuple):
    """The sums of one sweep over all rows; people in the order of the sweep."""

    most: float  # M, relative to the reference
    mass: float  # Z
    moment: float  # sum of e^(E - M) (E - M)
    sides: FloatArray  # (people, 2, 2): without and with a person, the maximum and the sum relative to it
    far: Any  # (people,): whether a side of a person may lack something
    mode: int


def enumerate_subsets(
    log_odds: FloatArray, size_weights: FloatArray, terms: Sequence[LikelihoodTerm], *, prior_error: float = 0.0,
    n_jobs: int | None = None,
) -> Enumeration:
    """Sum over all memberships; ``prior_error`` bounds the error of the log prior of each."""
    if len(terms) > _membership_posterior.MAX_TERMS:
        raise DomainError(
            f"model must be of at most {_membership_posterior.MAX_TERMS} likelihoods of releases for enumeration; got "
            f"{len(terms)}. Pool Gaussian releases by CombinedReleases.pooled."
        )
    people = log_odds.size
    padded = max(people, _LEAST_PEOPLE)
    odds = np.concatenate([log_odds, np.full(padded - people, _NEVER)])
    weights, constants, weights_error = _normalised(size_weights, terms)
    weights = np.concatenate([weights, np.full(padded - people, _NEVER)])
    order = np.arange(padded)
    low = _low(padded, terms)
    built = [_built(term, order, padded, low) for term in terms]
    reference = math.fsum(entry.expected for entry in built)
    tau = 1.01 * (prior_error + weights_error + math.fsum(element.error for element in built))
    sweep = _sweep(built, low, odds, weights, reference, n_jobs)
    if sweep.most < _IMPOSSIBLE:
        raise DomainError(
            "released must be possible under the model; got frequencies that no set of members has. Check the panel, "
            "the order of the attributes and the noise."
        )
    if abs(sweep.most) > _NEAR_REFERENCE:
        reference += sweep.most
        sweep = _sweep(built, low, odds, weights, reference, n_jobs)
    sides = sweep.sides
    if sweep.far[:people].any():  # with the halves exchanged every low person is a high one
        order = np.roll(order, -low)
        swapped = [_built(term, order, padded, low) for term in terms]
        other = _sweep(swapped, low, odds[order], weights, reference, n_jobs)
        sides = np.where(sweep.far[:, None, None], other.sides[np.argsort(order)], sides)
    sides = sides[:people]
    # what is relative to terms, none of which exceeds reference and exponent less the prior
    relative = 1.01 * max(item.relative for item in built) + 2.0**-77  # of second parts of products, beside all terms
    prior_size = float(np.sum(np.abs(log_odds)))
    prior_size += float(np.max(np.abs(weights), where=weights > _IMPOSSIBLE, initial=0.0))
    tau += relative * (abs(reference) + prior_size + people * LOG_2 + 1.0)
    relative += _EXPONENT_ROUNDINGS * UNIT_ROUNDOFF
    roundings = UNIT_ROUNDOFF * (_SUM_ROUNDINGS + _TERM_ROUNDINGS * (people * LOG_2 + 1.0))
    side_error = tau + relative * np.abs(sides[..., 0]) + roundings
    never = sides[..., 0] < _IMPOSSIBLE
    logs = np.where(never, -np.inf, sides[..., 0] + special.log(np.where(never, 1.0, sides[..., 1])))
    result = logs[:, 1] - logs[:, 0]
    with np.errstate(invalid="ignore"):
        error = 1.01 * side_error.sum(axis=1) + 4 * UNIT_ROUNDOFF * (np.abs(result) + np.abs(logs).sum(axis=1))
    error = np.where(never.any(axis=1), 0.0, error)
    log_mass = float(special.log(sweep.mass))
    mean = -sweep.moment / sweep.mass
    evidence = math.fsum([sweep.most, log_mass, reference, *constants])
    at_most = tau + relative * abs(sweep.most)
    evidence_error = 1.01 * (at_most + roundings) + 4 * UNIT_ROUNDOFF * (
        abs(evidence) + 4.0 * float(np.sum(np.abs(constants))) + abs(reference) + abs(sweep.most)
    )
    entropy = max(log_mass + mean, 0.0)
    most = people * LOG_2 * (1 + 4 * UNIT_ROUNDOFF)
    if at_most < 1e-3:
        entropy_error = 2.1 * at_most * (entropy + 4 * at_most) + UNIT_ROUNDOFF * _SUM_ROUNDINGS * (mean + 2.0)
        entropy_error += (relative + _TERM_ROUNDINGS * UNIT_ROUNDOFF) * ((people * LOG_2 + 2.0) ** 2 + mean**2)
    else:
        entropy_error = most
    mode = (sweep.mode >> np.arange(people)) & 1 == 1
    return Enumeration(result, error, evidence, evidence_error, min(entropy, most), entropy_error, mode)


def _low(people: int, terms: Sequence[LikelihoodTerm]) -> int:
    """How many people are in the low half, those of a row of the kernel: fewer where tables of attributes are long."""
    attributes = max((term.released.size for term in terms), default=1)
    low = min(int(_membership_posterior.LOW), people // 2)
    return max(min(low, (_TABLE_SIZE // attributes).bit_length() - 1), 3)


def _normalised(size_weights: FloatArray, terms: Sequence[LikelihoodTerm]) -> tuple[FloatArray, list[float], float]:
    """Weights of sizes with the normalisers of the noise, what is common to all sizes, and the error of the first."""
    people = size_weights.size - 1
    weights = np.where(np.isneginf(size_weights), _NEVER, size_weights)
    constants, error = [0.0], 0.0
    for term in terms:
        if term.kind not in ("gaussian", "laplace", "linfinity"):
            continue
        m = term.released.size
        each = {"gaussian": 0.5 * math.log(2 * math.pi), "laplace": LOG_2, "linfinity": LOG_2}[term.kind]
        common = m * each + (math.lgamma(m + 1) if term.kind == "linfinity" else 0.0)
        logs = term.densities * np.asarray(special.log(term.scale))
        constants += [-common, -float(logs[0])]
        weights[1:] -= logs - logs[0]
        size = common + float(np.max(np.abs(logs)))
        error += (8 + 2 * len(terms) if np.any(logs != logs[0]) else 0) * UNIT_ROUNDOFF * size
    finite = weights[weights > _IMPOSSIBLE]
    error += UNIT_ROUNDOFF * (len(terms) + 2) * float(np.max(np.abs(finite), initial=0.0))
    return weights[: people + 1], constants, error


def _built(term: LikelihoodTerm, order: Any, padded: int, low: int) -> _Built:
    """The arrays of a term, with the people in this order, of which those from K on do not exist."""
    scale = np.concatenate([term.scale, np.ones(padded - term.scale.size)])
    people = np.zeros((padded, term.released.size))
    people[: term.attributes.shape[0]] = term.attributes
    if term.kind == "gaussian":
        return _quadratic(term, people[order], scale, low)
    if term.kind == "censored":
        return _censored(people[order], scale, low)
    return _distances(term, people[order], scale, low)


def _quadratic(term: LikelihoodTerm, people: FloatArray, scale: FloatArray, low: int) -> _Built:
    """<r - d_k, r - d_l> for all pairs.

    With r = r1 + r2, r1 so short that all sums of it are exact, <r, r> by exact sums, and the number of attributes
    that k and l share, every entry is a sum in two doubles: relative to m (max |r| + 1)^2 it is wrong by at most
    (1 + m / 64) m 2^-98. The parts on the grid are exact in all sums; the rest, below half a unit of it in each entry,
    is summed with at most 2 K + 10 roundings.
    """
    padded, m = people.shape
    high1, high2 = _inner_products(people, term.released)
    error = m * m * (float(np.max(np.abs(term.released))) + 1.0) ** 2 * (1.0 + m / 64) * 2.0**-98
    total = float(np.sum(np.abs(high1))) * (1 + 1e-12) + 1e-290
    grid = 2.0 ** (math.frexp(total)[1] - 51)
    first = np.rint(high1 / grid) * grid
    remainder = (high1 - first) + high2
    n = np.arange(1, padded + 1)
    squares = [(Fraction(s) ** 2).as_integer_ratio() for s in scale.tolist()]
    factor = _factor([(-d, 2 * int(k) * int(k) * a) for k, (a, d) in zip(n, squares, strict=True)])
    bits = _bits(low)
    tables = [
        matrix_product.matrix_vector(matrix_product.product(bits, part[:low, :low].T) * bits, np.ones(low))
        for part in (first, remainder)
    ]
    highs = np.arange(low, padded)
    diagonals = first[highs, highs][:, None], remainder[highs, highs][:, None]
    vectors = np.concatenate([first[low:], diagonals[0], remainder[low:], diagonals[1]], axis=1)
    rounding = (2 * padded + 10) * UNIT_ROUNDOFF * 2 * float(np.sum(np.abs(remainder))) + padded**2 * error
    largest = float(np.max(np.abs(factor[0])))
    arrays = {"kind": "quadratic", "vectors": np.ascontiguousarray(vectors), "low": np.stack(tables),
              "factor": _by_size(factor, low, padded)}
    return _Built(arrays, 1.01 * rounding * largest, -0.5 * m)


def _inner_products(people: FloatArray, released: FloatArray) -> _Pair:
    """<r - d_k, r - d_l> for all pairs, in two doubles."""
    m = released.size
    grid = 2.0 ** (math.frexp(m * (float(np.max(np.abs(released), initial=0.0)) + 1e-280))[1] - 52)
    first = np.rint(released / grid) * grid
    remainder = released - first
    shared = matrix_product.product(people, people)
    sums = _sum(
        (matrix_product.matrix_vector(people, first), 0.0), (matrix_product.matrix_vector(people, remainder), 0.0)
    )
    halves = _upper(released)
    lower = released - halves
    squares = [*(halves * halves).tolist(), *(2 * halves * lower).tolist(), *(lower * lower).tolist()]
    norm = math.fsum(squares)
    norm_rest = math.fsum([*squares, -norm])
    minus = (-sums[0], -sums[1])
    result = _sum((shared, np.zeros_like(shared)), (np.full_like(shared, norm), np.full_like(shared, norm_rest)))
    result = _sum(result, (minus[0][:, None], minus[1][:, None]))
    return _sum(result, (minus[0][None, :], minus[1][None, :]))


def _distances(term: LikelihoodTerm, people: FloatArray, scale: FloatArray, low: int) -> _Built:
    """x_j = sum over members of (r_j - d_kj) for absolute values and maxima.

    r = r1 + r2 as the kernel needs it: sums over people and attributes of r1 - d are exact. Of x_j is lost one
    rounding of n r2_j, and of a sum of m of these m more; a maximum is rounded once.
    """
    padded, m = people.shape
    largest = float(np.max(np.abs(term.released), initial=0.0)) + 1.0
    grid = 2.0 ** (math.frexp(m * padded * largest)[1] - 52)
    first = np.rint(term.released / grid) * grid
    remainder = term.released - first
    vectors = first - people
    tables = np.zeros((1, m))
    for k in range(low):
        tables = np.concatenate([tables, tables + vectors[k]])
    n = np.arange(1, padded + 1)
    kind = {"laplace": "absolute", "linfinity": "maximum", "none": "consistent"}[term.kind]
    if kind == "consistent":
        limits = np.concatenate([[0.0], n * scale])
        factor = np.stack([limits, np.zeros_like(limits)])
        error, expected = 0.0, 0.0
    else:
        ratios = [float(s).as_integer_ratio() for s in scale]
        factor = _factor([(-d, int(k) * a) for k, (a, d) in zip(n, ratios, strict=True)])
        lost = padded * float(np.sum(np.abs(remainder))) * (m + 2.0) * UNIT_ROUNDOFF
        steepest = float(np.max(np.abs(factor[0])))
        expected = -float(m)
        error = lost * steepest
    arrays = {
        "kind": kind,
        "vectors": np.ascontiguousarray(vectors[low:]),
        "rest": remainder,
        "low": np.ascontiguousarray(tables.reshape(-1, 8, m).transpose(0, 2, 1)),
        "factor": _by_size(factor, low, padded),
    }
    return _Built(arrays, 1.01 * error, expected, UNIT_ROUNDOFF if kind == "maximum" else 0.0)


def _censored(people: FloatArray, scale: FloatArray, low: int) -> _Built:
    """log Phi(-f / s) of each attribute, from a table over n and the number of carriers."""
    padded, m = people.shape
    n, counts = np.arange(1, padded + 1)[:, None], np.arange(padded + 1)[None, :]
    table = np.zeros((padded + 1, padded + 1))
    table[1:] = np.minimum(special.log_ndtr(-np.minimum(counts / n, 1.0) / scale[:, None]), 0.0)
    bits = _bits(low)
    sizes = _sizes(low).astype(np.int32)
    carriers = matrix_product.product(people[:low].T, bits).astype(np.int32)
    index = np.ascontiguousarray(carriers + sizes * np.int32(padded + 1))
    arrays = {"kind": "censored", "vectors": np.ascontiguousarray(people[low:]), "table": table, "index": index}
    # Of t = log Phi(-z), z^2 <= 2 |t|, an argument wrong by 3 u costs 3 u (z^2 + z) <= 3 u (3 |t| + 1), the function
    # 17 u |t|; |t| is at least log 2. A sum of m has m more roundings.
    return _Built(arrays, 0.0, 0.0, (32.0 + m) * UNIT_ROUNDOFF)


def _sweep(
    built: Sequence[_Built], low: int, odds: FloatArray, weights: FloatArray, reference: float, n_jobs: int | None
) -> _Sweep:
    """Visit all rows, in tasks of a size that depends on the work alone, and merge their sums in order."""
    people = odds.size
    high = people - low
    limit = float(np.sum(np.abs(odds[odds > _IMPOSSIBLE])))
    limit += float(np.max(np.abs(weights[weights > _IMPOSSIBLE]), initial=0.0))
    grid = 2.0 ** (math.frexp(limit + 1.0)[1] - 51)
    odds1, weights1 = (
        np.where(x > _IMPOSSIBLE, np.rint(np.maximum(x, -limit) / grid) * grid, x) for x in (odds, weights)
    )
    odds2, weights2 = odds - odds1, weights - weights1
    sums = [matrix_product.matrix_vector(_bits(low), part[:low]) for part in (odds1, odds2)]
    prior = _by_size(np.stack([weights1, weights2]), low, people) + np.stack(sums)[:, None]
    model = _membership_posterior.Model(
        low, high, np.ascontiguousarray(prior), np.ascontiguousarray(np.stack([odds1[low:], odds2[low:]])),
        _sizes(low), reference, [item.arrays for item in built],
    )
    rows = 2**high
    each = sum(term.arrays["vectors"].shape[1] if term.arrays["kind"] != "quadratic" else 8 for term in built) + 8
    size = max(int(_ROW_TERMS // (2**low * each)), -(-rows // _MOST_TASKS), 1)
    size = min(2 ** (size - 1).bit_length(), rows)
    size = max(size, int(_membership_posterior.ROWS))

    def visited(part: slice) -> tuple[FloatArray, Any]:
        out = np.empty((3, part.stop - part.start))
        return out, model.rows(part.start, part.stop, out)

    tasks = parallel.blocks(rows, size)
    parts = list(parallel.ordered_map(visited, tasks, n_jobs=n_jobs, shared=True, brief=len(tasks) == 1))
    top, mass, moment = np.ascontiguousarray(np.concatenate([out for out, _ in parts], axis=1))
    most, total, moments = _membership_posterior.total(top, mass, moment)
    mode = next(int(summary[3]) for _, summary in parts if summary[2] == most)
    column_top = max(summary[1] for _, summary in parts)
    factors = [float(special.exp(entry[1] - column_top)) for _, entry in parts]
    columns, lost = np.zeros(2**low), np.zeros(2**low)
    for (_, element), factor in zip(parts, factors, strict=True):
        columns, lost = _sum((columns, lost), (element[0] * factor, 0.0))
    sides = np.empty((people, 2, 2))
    sides[:low, :, 0] = column_top
    far = np.zeros(people, dtype=bool)
    for k in range(low):
        split = columns.reshape(-1, 2, 2**k)
        sides[k, :, 1] = [math.fsum(split[:, side].ravel().tolist()) for side in (0, 1)]
        far[k] = not sides[k, :, 1].min() > _FAR * sides[k, :, 1].sum()
    sides[low:] = _membership_posterior.sides(top, mass, high)
    return _Sweep(most, total, moments, sides, far, mode)


@lru_cache(maxsize=16)
def _bits(low: int) -> FloatArray:
    """The bits of 0 ... 2^low - 1, shape (2^low, low)."""
    return ((np.arange(2**low)[:, None] >> np.arange(low)) & 1).astype(np.float64)


@lru_cache(maxsize=16)
def _sizes(low: int) -> FloatArray:
    return np.asarray(_bits(low).sum(axis=1))


def _by_size(values: FloatArray, low: int, people: int) -> FloatArray:
    """What stands at n = 0 ... K, by the number of high members and by low halves, (2, H + 1, 2^L)."""
    sizes = np.arange(people - low + 1)[:, None] + _sizes(low).astype(np.intp)
    return np.ascontiguousarray(values[:, sizes])


def _factor(ratios: Sequence[tuple[int, int]]) -> FloatArray:
    """Ratios of integers at n = 1 ... K as 26 bits and a double, (2, K + 1); 0 at n = 0."""
    return np.array([(0.0, 0.0), *(_two_doubles(a, b) for a, b in ratios)]).T


def _two_doubles(numerator: int, denominator: int) -> tuple[float, float]:
    """A ratio as 26 bits of it and a rest."""
    first = float(_upper(np.float64(numerator / denominator)))
    a, b = first.as_integer_ratio()
    return first, (numerator * b - a * denominator) / (denominator * b)


def _upper(x: Any) -> Any:
    """x rounded to 26 bits, by Veltkamp's splitting."""
    product = _SPLIT * x
    return product - (product - x)


def _sum(a: _Pair, b: _Pair) -> _Pair:
    """Sum of two numbers in two doubles each, to 2^-104 of their sizes."""
    s = a[0] + b[0]
    t = s - a[0]
    lost = (a[0] - (s - t)) + (b[0] - t) + (a[1] + b[1])
    total = s + lost
    return total, lost - (total - s)
