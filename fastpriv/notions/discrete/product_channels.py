"""Products of channels under product priors, by the type of the secret: how many factors hold which kind of secret.

Notation: of one factor, Q (n, m), prior pi, q = pi Q, x_d = Q_d/q - 1 = sum_h pi_h (Q_d - Q_h) / q, y_d = log(1 + x_d).
Posteriors of a product are products, and so is their mean under a row: that of true secret (d_1 .. d_t) has the factors
pi (1 + g), 1 + g_d = sum_w Q_d1 Q_d / q, g_d = sum_w q x_d1 x_d. JS of two products is the integral of
``product_type_jensen_shannon``. Rows and q of a product are products too: log ratios add up, and releases of equal log
ratio count together. Both depend on a tuple of secrets through its type alone, the number of factors with each kind
(the method of types).

Of two pairs (Q_d, q), one may have the larger hockey-stick divergence at every level. It is then the more informative
experiment, and stays so beside any other factor (Blackwell 1953): secrets of the other kind are never the worst ones.
Computed curves count as ordered if they differ by more than their errors.

All numbers are balls, for a prior divided by its sum. Rows that miss 1 by g move 1 + g_d by at most 3.1 g of itself. A
prior of a product that misses 1 by h is scaled as a whole, which the posterior does not see: JS of the prior as it was
passed is off by at most 1.1 h JS + h^2.
"""

# bounds: proved - docs/proofs/notions.md, 14.3 and 14.8: roundings of cells, sums of few terms and masses of types

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...base import validate
from ...base.errors import DomainError, TooLargeError
from ...base.numerics import UNIT_ROUNDOFF as U
from ...base.numerics import BoolArray, FloatArray, IndexArray, IntArray, LongDoubleArray
from ...base.values import distinct_rows
from ...capacity import structured
from ...channels import AnyChannel, Channel, RowPair, SparseChannel, TypeClasses
from ...channels.base import mixed_radix_digits
from ...channels.type_classes import compositions, largest_size, log_multinomials, product_pairs
from ...mechanisms import RandomizedResponse
from ...posteriors.ball_arithmetic import Ball
from ...posteriors.product_jensen_shannon import PosteriorMasses, product_type_jensen_shannon
from .channel_with_prior import ChannelWithPrior
from .type_class_quantities import chi_square_information, type_classes

Part = TypeVar("Part")

_MOST_FACTOR_CELLS = 2**20  # n^2 m of a factor: 8 MiB of differences of cells
_MOST_TYPES = 2**16  # types of secrets of a product, for each of which one integral is taken
_AUTOMATIC_TYPES = 2**12  # types up to which ``summary`` takes these integrals
_MOST_LISTED_SECRETS = 2**16  # secrets of a product that are answered one by one
# bound: proved - docs/proofs/notions.md, 14.8: twice what log ratios may be off by where curves are ordered, relative
#    to 1 and the level
_ORDER_MARGIN = 1e-9


class _FactorRatios(NamedTuple):
    """Of one factor: secrets of positive prior probability against releases that occur."""

    secrets: IndexArray
    mass: Ball  # pi, (n,)
    log_mass: Ball
    logs: Ball  # log Q, (n, m)
    log_q: Ball  # (m,)
    change: Ball  # x, (n, m)
    log_ratio: Ball  # y, (n, m)


class _SecretKinds(NamedTuple):
    """Kinds of secrets of one factor; ``kind`` of a secret is -1 without prior, and None if all are of one kind."""

    posteriors: list[PosteriorMasses]
    log_mass: LongDoubleArray
    kind: IndexArray | None


class TypeDivergences(NamedTuple):
    """JS of mean posterior and prior, with the mass of the secrets of each entry and a bound on its relative error."""

    js: Ball
    mass: FloatArray
    mass_error: float


_Counts = tuple[IntArray, FloatArray, float]  # numbers of each kind; masses of the types; their relative error


def expected_posteriors(model: ChannelWithPrior, secret: Any) -> TypeDivergences | None:
    """For the requested true secrets; None for other channels, other priors and factors that are too large."""
    kinds = _of_each_factor(model, _secret_kinds)
    if kinds is None or model.factors is None:
        return None
    if secret is not None:
        requested = validate.integers("secret", secret, 0, model.channel.inputs - 1).reshape(-1).tolist()
        counts, mass, error = _types_of_secrets(model, kinds, requested)
    elif model.channel.inputs <= _MOST_LISTED_SECRETS:
        counts, mass, error = _types_of_all_secrets(model, kinds)
    elif (number := _number_of_types(model, kinds)) <= _MOST_TYPES:
        counts, mass, error = _all_types(model, kinds)
    else:
        raise TooLargeError(
            f"secret must be given for a product whose secrets are of more than {_MOST_TYPES} types; got None for "
            f"{validate.shown(number)} types. Pass the true secrets of interest."
        )
    distinct, index = distinct_rows(counts)
    js = product_type_jensen_shannon([posterior for of_factor in kinds for posterior in of_factor.posteriors], distinct)
    gap = model.gap
    return TypeDivergences(Ball(js.mid, js.rad + 1.1 * gap * js.mid + gap * gap)[index], mass, error)


def has_few_types(model: ChannelWithPrior) -> bool:
    """Whether ``expected_posteriors`` answers for all secrets at little cost."""
    kinds = _of_each_factor(model, _secret_kinds)
    return kinds is not None and _number_of_types(model, kinds) <= _AUTOMATIC_TYPES


def release_pairs(model: ChannelWithPrior) -> tuple[RowPair, ...] | None:
    """A row beside the distribution of the release for each type of secrets that may be the worst; None as above."""
    pairs = _of_each_factor(model, _worst_pairs)
    if pairs is None:
        return None
    return product_pairs(list(zip(pairs, (power for _, power, _ in model.factors or ()), strict=True)))


def _of_each_factor(model: ChannelWithPrior, function: Callable[[AnyChannel, Any], Part | None]) -> list[Part] | None:
    """The function of each factor and its prior; None for other models, and if it is None for some factor."""
    if model.factors is None:
        return None
    results: list[Part] = []
    for factor, _, prior in model.factors:
        if (result := function(factor, prior)) is None:
            return None
        results.append(result)
    return results


def _number_of_types(model: ChannelWithPrior, kinds: list[_SecretKinds]) -> int:
    sizes = zip(kinds, (power for _, power, _ in model.factors or ()), strict=True)
    return math.prod(math.comb(power + len(of_factor.posteriors) - 1, power) for of_factor, power in sizes)


def _types_of_secrets(model: ChannelWithPrior, kinds: list[_SecretKinds], secrets: list[Any]) -> _Counts:
    """How many factors of each kind these secrets have, and their prior."""
    factors = model.factors or []
    positions = [(i, factor.inputs) for i, (factor, power, _) in enumerate(factors) for _ in range(power)]
    logs = [_log_mass(prior, factor.inputs) for factor, _, prior in factors]
    first = np.cumsum([0, *(len(of_factor.posteriors) for of_factor in kinds)])
    counts = np.zeros((len(secrets), first[-1]), dtype=np.int64)
    log_mass = np.zeros(len(secrets), dtype=np.longdouble)
    for row, secret in enumerate(secrets):
        for (i, _), digit in zip(positions, mixed_radix_digits(secret, [size for _, size in positions]), strict=True):
            kind = kinds[i].kind
            log_mass[row] += logs[i] if factors[i][2] is None else logs[i][digit]
            counts[row, first[i] + (0 if kind is None else int(kind[digit]))] += 1
        if log_mass[row] == -np.inf:
            raise DomainError(
                f"secret must be one that the prior gives mass; got {validate.shown(secret)}. The posterior is not "
                "defined at releases that the prior rules out."
            )
    mass = np.asarray(np.exp(log_mass - log_mass.max()), dtype=np.float64)
    return counts, mass, _mass_rounding(log_mass, len(positions))


def _types_of_all_secrets(model: ChannelWithPrior, kinds: list[_SecretKinds]) -> _Counts:
    """The same for all secrets of positive prior probability, in their order."""
    factors, first = model.factors or [], np.cumsum([0, *(len(of_factor.posteriors) for of_factor in kinds)])
    counts, log_mass = np.zeros((1, first[-1]), dtype=np.int64), np.zeros(1, dtype=np.longdouble)
    for i, (factor, power, prior) in enumerate(factors):
        kind = np.zeros(factor.inputs, dtype=np.intp) if (known := kinds[i].kind) is None else known
        positive = np.flatnonzero(kind >= 0)
        single = np.zeros((positive.size, first[-1]), dtype=np.int64)
        single[np.arange(positive.size), first[i] + kind[positive]] = 1
        logs = np.broadcast_to(_log_mass(prior, factor.inputs), factor.inputs)[positive]
        for _ in range(power):
            counts = (counts[:, None, :] + single).reshape(-1, first[-1])
            log_mass = np.add.outer(log_mass, logs).reshape(-1)
    mass = np.asarray(np.exp(log_mass), dtype=np.float64)
    return counts, mass, _mass_rounding(log_mass, sum(power for _, power, _ in factors))


def _all_types(model: ChannelWithPrior, kinds: list[_SecretKinds]) -> _Counts:
    """All types of secrets, and their mass."""
    powers = [power for _, power, _ in model.factors or ()]
    counts, log_mass = np.zeros((1, 0), dtype=np.int64), np.zeros(1, dtype=np.longdouble)
    for of_factor, power in zip(kinds, powers, strict=True):
        types = compositions(power, len(of_factor.posteriors))
        log_masses = sum(types[:, i] * of_factor.log_mass[i] for i in range(types.shape[1]))
        logs = log_multinomials(power, types)[0] + log_masses
        counts = np.concatenate([np.repeat(counts, len(types), axis=0), np.tile(types, (len(counts), 1))], axis=1)
        log_mass = np.add.outer(log_mass, logs).reshape(-1)
    return counts, np.asarray(np.exp(log_mass), dtype=np.float64), _mass_rounding(log_mass, sum(powers))


def _mass_rounding(logs: LongDoubleArray, factors: int) -> float:
    """Relative error of masses whose logs are sums in extended precision, of coefficients of at most n log n."""
    size = float(np.max(np.abs(logs))) + factors * (1 + math.log(factors))
    return 4 * U + 400 * float(np.finfo(np.longdouble).eps) * (factors + size)


def _log_mass(prior: Any, size: int) -> Any:
    """Log prior of each secret, or of any of them if the prior is uniform."""
    if prior is None:
        return -np.log(np.longdouble(size)) if size < 2**1000 else np.longdouble(-math.log(size))
    wide = np.asarray(prior).astype(np.longdouble)
    with np.errstate(divide="ignore"):
        return np.log(wide / wide.sum())


def _symmetric_classes(factor: AnyChannel, prior: Any) -> TypeClasses | None:
    """Classes of equal releases, if the prior is uniform and the channel is symmetric in its secrets."""
    return type_classes(ChannelWithPrior(factor, None)) if prior is None and structured.is_symmetric(factor) else None


def _secret_kinds(factor: AnyChannel, prior: Any) -> _SecretKinds | None:
    """Secrets whose expected posteriors are equal but for the order of the secrets are of one kind."""
    ratios = _factor_ratios(factor, prior)
    if ratios is None:
        classes = _symmetric_classes(factor, prior)
        if classes is None:
            return None
        posterior = _expected_posterior_if_symmetric(classes, factor)
        return _SecretKinds([posterior], np.zeros(1, dtype=np.longdouble), None)
    q, row_error = ratios.log_q.exp(), 3.1 * factor.mass_gap
    index: dict[bytes, int] = {}
    posteriors: list[PosteriorMasses] = []
    kind = np.full(factor.inputs, -1)
    masses: list[Any] = []
    logs = _log_mass(prior, factor.inputs)
    for i, secret in enumerate(ratios.secrets.tolist()):
        change = _sum(_as_row(q * ratios.change[i]) * ratios.change)
        growth = _sum(_as_row(ratios.logs[i].exp()) * ratios.log_ratio.exp())
        order = np.lexsort((change.rad, change.mid, ratios.mass.mid))
        key = b"".join(x[order].tobytes() for x in (ratios.mass.mid, change.mid, change.rad, growth.mid))
        if key not in index:
            index[key] = len(posteriors)
            posteriors.append(_expected_posterior(ratios, change, growth, row_error))
            masses.append(np.longdouble(0))
        kind[secret] = index[key]
        masses[kind[secret]] += np.exp(logs if prior is None else logs[secret])
    return _SecretKinds(posteriors, np.log(np.array(masses)), kind)


def _expected_posterior(ratios: _FactorRatios, change: Ball, growth: Ball, row_error: float) -> PosteriorMasses:
    """From g, and from 1 + g, whichever is narrower."""
    live = growth.mid > 0
    change, growth, mass, log_mass = (x[live] for x in (change, growth, ratios.mass, ratios.log_mass))
    ratio = _narrower(change.log1p(), growth.log())
    ratio = Ball(ratio.mid, ratio.rad + row_error)
    growth = _narrower(growth, Ball(1 + change.mid, change.rad + U * (1 + np.abs(change.mid))))
    growth = Ball(growth.mid, growth.rad + row_error * growth.mid)
    dead = ratios.mass[~live].sum() if (~live).any() else Ball(0.0)
    return PosteriorMasses(ratio, mass, log_mass, mass * growth, dead)


def _expected_posterior_if_symmetric(classes: TypeClasses, factor: AnyChannel) -> PosteriorMasses:
    """For a channel symmetric in its secrets: 1 + g takes one value at the true secret, another elsewhere."""
    k, (energy, relative) = factor.inputs, chi_square_information(classes, factor)
    at_true_secret = Ball(energy, relative * energy)
    mid, radius = float(at_true_secret.mid), float(at_true_secret.rad)
    change = Ball([energy, -mid / (k - 1)], [radius, radius / (k - 1) + 2 * U * energy / k])
    mass = Ball([1.0 / k, (k - 1) / k], [U / k, U])
    growth = Ball(1 + change.mid, change.rad + U * (1 + np.abs(change.mid)))
    return PosteriorMasses(change.log1p(), mass, mass.log(), mass * growth, Ball(0.0))


def _worst_pairs(factor: AnyChannel, prior: Any) -> tuple[RowPair, ...] | None:
    """Rows of a factor beside the distribution of its release: equal ones once, those that are never the worst left
    out."""
    ratios = _factor_ratios(factor, prior)
    if ratios is None:
        classes = _symmetric_classes(factor, prior)
        return None if classes is None else (pair_if_symmetric(classes),)
    distinct: dict[bytes, tuple[RowPair, RowPair]] = {}
    for i in range(len(ratios.secrets)):
        pair = _merged(ratios.logs[i], ratios.log_q, ratios.log_ratio[i])
        error = np.maximum(ratios.logs[i].rad, ratios.log_q.rad)
        whole = RowPair(ratios.logs[i].mid, ratios.log_q.mid, ratios.log_ratio[i].mid, error, ratios.log_ratio[i].rad)
        key = b"".join(getattr(pair, name).tobytes() for name in ("log_p", "log_q", "log_ratio"))
        distinct.setdefault(key, (whole, pair))
    worst: list[tuple[RowPair, RowPair]] = []
    for candidate in distinct.values():
        if not any(_dominates(other, candidate[0]) for other, _ in worst):
            worst = [other for other in worst if not _dominates(candidate[0], other[0])] + [candidate]
    return tuple(pair for _, pair in worst)


def pair_if_symmetric(classes: TypeClasses) -> RowPair:
    """Every secret's row against the distribution of the release, by group of secrets in each class."""
    log_joint = classes.log_mass + classes.log_weight[classes.classes]
    possible = log_joint > -np.inf
    joint, ratio = log_joint[possible], classes.log_ratio[possible]
    ratio_size = _finite_size(ratio)
    of_log_mass = 8 * U * min(largest_size(classes.log_mass), largest_size(classes.log_relative))
    ratio_error = 4e-14 * ratio_size + np.where(ratio_size > 0.4, of_log_mass, 0.0) + 4 * classes.error
    log_error = 160 * U * (8 + (np.abs(joint) + ratio_size)) + ratio_error
    return RowPair(joint + ratio, joint, ratio, log_error, ratio_error)


def _merged(row: Ball, q: Ball, ratio: Ball) -> RowPair:
    """The pair with releases of equal log ratio merged."""
    order = np.lexsort((row.mid, ratio.mid))
    row, q, ratio = row[order], q[order], ratio[order]
    start = np.flatnonzero(np.concatenate([[True], ratio.mid[1:] != ratio.mid[:-1]]))
    counts = np.diff(np.append(start, len(order)))
    log_p, log_q = (np.logaddexp.reduceat(x.mid, start) for x in (row, q))
    size = np.maximum.reduceat(np.maximum(_finite_size(row.mid), _finite_size(q.mid)), start)
    error = np.maximum.reduceat(np.maximum(row.rad, q.rad), start) + 4 * U * (counts - 1) * (2 + size)
    return RowPair(log_p, log_q, ratio.mid[start], error, np.maximum.reduceat(ratio.rad, start))


def _dominates(pair: RowPair, other: RowPair) -> bool:
    """Whether the hockey-stick divergence of ``pair`` from the distribution of the release is larger at every level.

    Releases of equal entries add the same to both, but for their errors.
    """
    differ = (pair.log_p != other.log_p) | (pair.log_ratio != other.log_ratio)
    for sign in (1.0, -1.0):  # (Q - c q)^+ for c >= 1, and (c q - Q)^+ for c <= 1
        ratio, other_ratio = (sign * rows.log_ratio[differ] for rows in (pair, other))
        if not np.isfinite(np.concatenate([ratio, other_ratio])).all():
            return False
        end = float(np.max(other_ratio, initial=0.0))
        end += _ORDER_MARGIN * (1 + end)
        levels = np.concatenate([[0.0, end], ratio[ratio > 0], other_ratio[other_ratio > 0]])
        for level in levels[levels <= end].tolist():
            (large, error), (small, other_error) = (_divergence(rows, differ, sign, level) for rows in (pair, other))
            if not large - small > error + other_error:
                return False
    return True


def _divergence(pair: RowPair, differ: BoolArray, sign: float, level: float) -> tuple[float, float]:
    """The part of the divergence due to these releases, and the error of the whole; infinite where that is large."""
    ratio = sign * pair.log_ratio
    over = ratio > level - _ORDER_MARGIN * (1 + level)
    log_mass, gap = (pair.log_p if sign > 0 else pair.log_q)[over], np.minimum(level - ratio[over], 0.0)
    terms, slopes = -np.exp(log_mass) * np.expm1(gap), np.exp(log_mass + gap)
    ratio_error = pair.ratio_error[over] + 4 * U * (level + _finite_size(ratio[over]))
    error = terms * (pair.log_error[over] + 16 * U) + 2 * slopes * ratio_error
    large = float(np.max(ratio_error, initial=0.0)) > 0.5 * _ORDER_MARGIN * (1 + level)
    return math.fsum(terms[differ[over]]), math.inf if large else math.fsum(1.01 * error)


def _factor_ratios(factor: AnyChannel, prior: Any) -> _FactorRatios | None:
    """Cells against the distribution of the release; None if they are too many to be compared."""
    n, m = factor.shape
    if n * n * m > _MOST_FACTOR_CELLS:
        return None
    weights = ChannelWithPrior(factor, prior).weights
    secrets = np.flatnonzero(weights > 0)
    mass = Ball(weights[secrets], 0.0 if prior is not None else U * weights)
    if prior is not None:
        mass = mass / mass.sum().broadcast_like(mass)
    cells, scaled_log, logs, differences = _scaled_cells(factor, secrets)
    occurs = np.flatnonzero(cells.mid.max(axis=0) > 0)
    cells, scaled_log, logs = (x[:, occurs] for x in (cells, scaled_log, logs))
    joint = Ball(mass.mid[:, None], mass.rad[:, None]) * cells
    scaled_q = _sum(Ball(joint.mid.T, joint.rad.T))  # q, scaled as the cells are
    weighted = differences[:, :, occurs] * Ball(mass.mid[None, :, None], mass.rad[None, :, None])
    change = _sum(Ball(weighted.mid.swapaxes(1, 2), weighted.rad.swapaxes(1, 2))) / _as_row(scaled_q)
    log_scaled_q, finite = scaled_q.log(), scaled_log.mid > -np.inf
    finite_log = Ball(np.where(finite, scaled_log.mid, 0.0), scaled_log.rad)
    ratio = _narrower(change.log1p(), finite_log - _as_row(log_scaled_q))
    ratio = Ball(np.where(finite, ratio.mid, -np.inf), np.where(finite, ratio.rad, 0.0))
    largest = scaled_log.mid.argmax(axis=0), np.arange(len(occurs))
    log_q = log_scaled_q + (logs[largest] - scaled_log[largest])
    return _FactorRatios(secrets, mass, mass.log(), logs, log_q, change, ratio)


def _scaled_cells(factor: AnyChannel, secrets: IndexArray) -> tuple[Ball, Ball, Ball, Ball]:
    """Cells over about the largest of their column, logs of these, logs of the cells, and differences by pairs."""
    if isinstance(factor, (Channel, SparseChannel)) and not getattr(factor, "log", False):
        stored = np.asarray(factor._rows(0, factor.inputs, False), dtype=np.float64)[secrets]
        cells = Ball(np.ldexp(stored, -np.frexp(stored.max(axis=0))[1]))
        differences = cells.mid[:, None, :] - cells.mid[None, :, :]
        with np.errstate(divide="ignore"):
            scaled_log, logs = (Ball(np.log(x), 8 * U * _finite_size(np.log(x))) for x in (cells.mid, stored))
        return cells, scaled_log, logs, Ball(differences, U * np.abs(differences))
    exact = isinstance(factor, Channel)
    stored = np.asarray(factor._log_rows(0, factor.inputs), dtype=np.float64)[secrets]
    size = math.log(factor.outputs) + _finite_size(stored)
    logs = Ball(stored, np.zeros_like(stored) if exact else factor._log_error(size))
    if isinstance(factor, RandomizedResponse):
        scaled_log = Ball(np.where(secrets[:, None] == np.arange(factor.outputs), 0.0, -factor.epsilon))
    else:
        top = stored.max(axis=0)
        below = stored - np.where(top > -np.inf, top, 0.0)
        top_error = logs.rad[stored.argmax(axis=0), range(len(top))]
        error = (0.0 if exact else 2 * np.maximum(logs.rad, top_error)) + U * _finite_size(below)
        scaled_log = Ball(below, np.where(below > -np.inf, error, 0.0))
    first, second = scaled_log.mid[:, None, :], scaled_log.mid[None, :, :]
    with np.errstate(invalid="ignore"):
        distance = np.where(first == second, 0.0, np.abs(first - second))
    first_error, second_error = scaled_log.rad[:, None, :], scaled_log.rad[None, :, :]
    distance_error = np.where(np.isfinite(distance), first_error + second_error + U * distance, 0.0)
    larger = np.where(first >= second, first_error, second_error)
    differences = Ball(np.maximum(first, second), larger).exp() * -Ball(-distance, distance_error).expm1()
    impossible = (first == -np.inf) & (second == -np.inf)
    signed = np.where(first < second, -differences.mid, differences.mid)
    differences = Ball(signed, np.where(impossible, 0.0, differences.rad))
    return scaled_log.exp(), scaled_log, logs, differences


def _sum(terms: Ball) -> Ball:
    """Sum over the last axis, the same for any order of the terms."""
    mid, rad = np.sort(terms.mid, axis=-1), np.sort(terms.rad, axis=-1)
    summation = (26 + math.log2(mid.shape[-1])) * U
    return Ball(mid.sum(axis=-1), (rad.sum(axis=-1) + summation * np.abs(mid).sum(axis=-1)) * (1 + 1e-9))


def _narrower(first: Ball, second: Ball) -> Ball:
    first_is_narrower = first.rad <= second.rad
    return Ball(np.where(first_is_narrower, first.mid, second.mid), np.where(first_is_narrower, first.rad, second.rad))


def _as_row(ball: Ball) -> Ball:
    """One entry a column."""
    return Ball(ball.mid[None, :], ball.rad[None, :])


def _finite_size(logs: FloatArray) -> FloatArray:
    return np.where(np.isfinite(logs), np.abs(logs), 0.0)
