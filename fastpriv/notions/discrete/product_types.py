"""Products of channels under product priors, by how many places of each factor hold which kind of secret.

Notation: of one factor, Q (n, m), prior pi, q = pi Q, x_d = Q_d/q - 1 = sum_h pi_h (Q_d - Q_h) / q, y_d = log(1 + x_d).
Posteriors of a product are products, and so is their mean under a row: that of true secret (d_1 .. d_t) has the factors
pi (1 + g), 1 + g_d = sum_w Q_d1 Q_d / q, g_d = sum_w q x_d1 x_d. JS of two products is the integral of
``posteriors.product_jensen_shannon``. Rows and q of a product are products too: log ratios add up, and releases of
equal log
ratio count together. Both depend on a tuple of secrets through its type alone, the number of places with each kind.

Of two pairs (Q_d, q), one may have the larger hockey-stick divergence at every level. It is then the more informative
experiment, and stays so beside any other place (Blackwell 1953): secrets of the other kind are never the worst ones.
Computed curves count as ordered where they differ by 1e-9 of themselves and of their slopes, far beyond rounding.

Everything is computed with balls, for a prior divided by its sum. Rows that miss 1 by g move 1 + g_d by at most 3.1 g
of itself. A prior of a product that misses 1 by h is a slip of the whole vector, of which the posterior knows nothing:
JS of the prior as it was given is off by at most 1.1 h JS + h^2.
"""

# bounds: tested by enclosures/test_product_notions - roundings of cells, of sums of few terms and of masses of types

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ..._values import FloatArray, distinct_rows
from ...capacity import structured
from ...channels import AnyChannel, Channel, ProductChannel, RandomizedResponse, RowPair, SparseChannel
from ...channels.families.products import compositions, digits, joint_pairs, log_ways
from ...errors import DomainError
from ...posteriors.ball_arithmetic import Ball
from ...posteriors.product_jensen_shannon import product_type_jensen_shannon
from . import classes
from .arguments import UNIT, Setting

__all__ = ["expected_posteriors", "few_types", "product_prior_gap", "release_pairs"]

_CELLS = 2**20  # n^2 m of a factor
_TYPES = 2**16  # types of secrets of a product
_FEW = 2**12  # of them that are gone through unasked
_LISTED = 2**16  # secrets of a product that are answered one by one
# bound: tested by enclosures/test_product_notions - by how much curves have to differ to count as ordered
_MARGIN = 1e-9


class _Ratios(NamedTuple):
    """Of one factor: secrets with prior against releases that occur."""

    secrets: NDArray[np.intp]
    mass: Ball  # (n,)
    log_mass: Ball
    logs: Ball  # log Q, (n, m)
    log_law: Ball  # log q, (m,)
    change: Ball  # x, (n, m)
    ratio: Ball  # y, (n, m)


class _ExpectedPosterior(NamedTuple):
    """The mean posterior of one place beside its prior, as ``overlaps`` takes them."""

    ratio: Ball
    mass: Ball
    log_mass: Ball
    post: Ball
    dead: Ball


class _Kinds(NamedTuple):
    """Secrets of one factor by what their rows tell; ``kind`` is -1 without prior, and None where all are alike."""

    posteriors: list[_ExpectedPosterior]
    log_mass: NDArray[np.longdouble]
    kind: NDArray[np.intp] | None


class TypeShifts(NamedTuple):
    """JS of mean posterior and prior, with the mass of the secrets of each entry and a relative bound on its error."""

    js: Ball
    weight: FloatArray
    blur: float


def expected_posteriors(given: Setting, secret: Any) -> TypeShifts | None:
    """For the true secrets that are asked for; None for other channels, priors and factors too large."""
    parts = _parts(given)
    if parts is None:
        return None
    found = _all_kinds(parts)
    if found is None:
        return None
    powers = [own for _, own, _ in parts]
    if secret is not None:
        asked = _validate.integers("secret", secret, 0, given.channel.inputs - 1).reshape(-1).tolist()
        counts, weight, error = _of_secrets(given.channel, parts, found, asked)
    elif given.channel.inputs <= _LISTED:
        counts, weight, error = _of_all_secrets(parts, found)
    elif (number := _number_of_types(found, powers)) <= _TYPES:
        counts, weight, error = _of_types(found, powers)
    else:
        raise DomainError(
            f"secret must be given for a product whose secrets are of more than {_TYPES} types; got None for "
            f"{_validate.shown(number)} types. Pass the true secrets of interest."
        )
    many, place = distinct_rows(counts)
    js = product_type_jensen_shannon([one for kinds in found for one in kinds.posteriors], many)
    gap = product_prior_gap(given)
    js = Ball(js.mid, js.rad + 1.1 * gap * js.mid + gap * gap)[place]
    return TypeShifts(js, weight, error)


def few_types(given: Setting) -> bool:
    """Whether ``expected_posteriors`` answers for all secrets at little cost."""
    parts = _parts(given)
    kinds = None if parts is None else _all_kinds(parts)
    return kinds is not None and parts is not None and _number_of_types(kinds, [own for _, own, _ in parts]) <= _FEW


def release_pairs(given: Setting) -> tuple[RowPair, ...] | None:
    """A row beside the law of the release for each type of secrets that may be the worst; None as above."""
    parts = _parts(given)
    if parts is None:
        return None
    found = []
    for one, own, prior in parts:
        pairs = _pairs(one, prior)
        if pairs is None:
            return None
        found.append((pairs, own))
    return joint_pairs(found)


def _all_kinds(parts: list[tuple[AnyChannel, int, Any]]) -> list[_Kinds] | None:
    found = []
    for one, _, prior in parts:
        kinds = _kinds(one, prior)
        if kinds is None:
            return None
        found.append(kinds)
    return found


def _number_of_types(kinds: list[_Kinds], powers: list[int]) -> int:
    """How many types of secrets there are."""
    return math.prod(math.comb(own + len(one.posteriors) - 1, own) for one, own in zip(kinds, powers, strict=True))


def product_prior_gap(given: Setting) -> float:
    """How far the sum of a product prior is from 1."""
    parts = _parts(given) or []
    return math.expm1(math.fsum(own * math.log1p(Setting(one, prior).gap) for one, own, prior in parts))


def _parts(given: Setting) -> list[tuple[AnyChannel, int, Any]] | None:
    """Factors with their powers and priors."""
    channel, prior = given
    if not isinstance(channel, ProductChannel) or not (prior is None or isinstance(prior, tuple)):
        return None
    priors = (None,) * len(channel.factors) if prior is None else prior
    return list(zip(channel.factors, channel.powers, priors, strict=True))


def _of_secrets(
    channel: Any, parts: list[tuple[AnyChannel, int, Any]], kinds: list[_Kinds], asked: list[Any]
) -> tuple[NDArray[np.int64], FloatArray, float]:  # fmt: skip
    """How many places of each kind these secrets have, and their prior."""
    places = [(i, one.inputs) for i, (one, own, _) in enumerate(parts) for _ in range(own)]
    logs = [_log_mass(prior, one.inputs) for one, _, prior in parts]
    first = np.cumsum([0, *(len(one.posteriors) for one in kinds)])
    counts, weight = np.zeros((len(asked), first[-1]), dtype=np.int64), np.zeros(len(asked), dtype=np.longdouble)
    for row, number in enumerate(asked):
        for (i, _), digit in zip(places, digits(number, [size for _, size in places]), strict=True):
            kind = kinds[i].kind
            weight[row] += logs[i] if parts[i][2] is None else logs[i][digit]
            counts[row, first[i] + (0 if kind is None else int(kind[digit]))] += 1
        if weight[row] == -np.inf:
            raise DomainError(
                f"secret must be one that the prior gives mass; got {_validate.shown(number)}. The posterior is not "
                "defined at releases that the prior rules out."
            )
    return counts, np.asarray(np.exp(weight - weight.max()), dtype=np.float64), _mass_rounding(weight, len(places))


def _of_all_secrets(
    parts: list[tuple[AnyChannel, int, Any]], kinds: list[_Kinds]
) -> tuple[NDArray[np.int64], FloatArray, float]:  # fmt: skip
    """The same of all secrets with prior, in their order."""
    first = np.cumsum([0, *(len(one.posteriors) for one in kinds)])
    counts, weight = np.zeros((1, first[-1]), dtype=np.int64), np.zeros(1, dtype=np.longdouble)
    for i, (one, own, prior) in enumerate(parts):
        kind = np.zeros(one.inputs, dtype=np.intp) if (known := kinds[i].kind) is None else known
        held = np.flatnonzero(kind >= 0)
        single = np.zeros((held.size, first[-1]), dtype=np.int64)
        single[np.arange(held.size), first[i] + kind[held]] = 1
        logs = np.broadcast_to(_log_mass(prior, one.inputs), one.inputs)[held]
        for _ in range(own):
            counts = (counts[:, None, :] + single).reshape(-1, first[-1])
            weight = np.add.outer(weight, logs).reshape(-1)
    return counts, np.asarray(np.exp(weight), dtype=np.float64), _mass_rounding(weight, sum(own for _, own, _ in parts))


def _of_types(kinds: list[_Kinds], powers: list[int]) -> tuple[NDArray[np.int64], FloatArray, float]:
    """All types of secrets, and their mass."""
    counts, log_mass = np.zeros((1, 0), dtype=np.int64), np.zeros(1, dtype=np.longdouble)
    for one, own in zip(kinds, powers, strict=True):
        many = compositions(own, len(one.posteriors))
        ways, _ = log_ways(own, many)
        held = ways + sum(many[:, i] * one.log_mass[i] for i in range(many.shape[1]))
        counts = np.concatenate([np.repeat(counts, len(many), axis=0), np.tile(many, (len(counts), 1))], axis=1)
        log_mass = np.add.outer(log_mass, held).reshape(-1)
    return counts, np.asarray(np.exp(log_mass), dtype=np.float64), _mass_rounding(log_mass, sum(powers))


def _mass_rounding(logs: NDArray[np.longdouble], places: int) -> float:
    """Relative error of masses whose logs are sums in extended precision, of coefficients of at most n log n."""
    size = float(np.max(np.abs(logs))) + places * (1 + math.log(places))
    return 4 * UNIT + 64 * float(np.finfo(np.longdouble).eps) * (places + size)


def _log_mass(prior: Any, size: int) -> Any:
    """Log of the prior of each secret, or of any where it is uniform."""
    if prior is None:
        return -np.log(np.longdouble(size)) if size < 2**1000 else np.longdouble(-math.log(size))
    wide = np.asarray(prior).astype(np.longdouble)
    with np.errstate(divide="ignore"):
        return np.log(wide / wide.sum())


def _kinds(one: AnyChannel, prior: Any) -> _Kinds | None:
    """Secrets whose expected posteriors are alike but for the order of the secrets."""
    found = _ratios(one, prior)
    if found is None:
        alike = classes.grouped(Setting(one, None)) if prior is None and structured.alike(one) else None
        if alike is None:
            return None
        return _Kinds([_posterior_alike(alike, one.inputs)], np.zeros(1, dtype=np.longdouble), None)
    law = found.log_law.exp()
    slip = 3.1 * one.mass_gap
    places: dict[bytes, int] = {}
    posteriors: list[_ExpectedPosterior] = []
    kind = np.full(one.inputs, -1)
    masses: list[Any] = []
    logs = _log_mass(prior, one.inputs)
    for i, d in enumerate(found.secrets.tolist()):
        change = _summed(_row(law * found.change[i]) * found.change)
        growth = _summed(_row(found.logs[i].exp()) * found.ratio.exp())
        order = np.lexsort((change.rad, change.mid, found.mass.mid))
        key = b"".join(x[order].tobytes() for x in (found.mass.mid, change.mid, change.rad, growth.mid))
        if key not in places:
            places[key] = len(posteriors)
            posteriors.append(_posterior(found, change, growth, slip))
            masses.append(np.longdouble(0))
        kind[d] = places[key]
        masses[kind[d]] += np.exp(logs if prior is None else logs[d])
    return _Kinds(posteriors, np.log(np.array(masses)), kind)


def _posterior(found: _Ratios, change: Ball, growth: Ball, slip: float) -> _ExpectedPosterior:
    """From g, and from 1 + g."""
    live = growth.mid > 0
    change, growth, mass, log_mass = (x[live] for x in (change, growth, found.mass, found.log_mass))
    near, far = change.log1p(), growth.log()
    ratio = _sharper(near, far)
    ratio = Ball(ratio.mid, ratio.rad + slip)
    growth = _sharper(growth, Ball(1 + change.mid, change.rad + UNIT * (1 + np.abs(change.mid))))
    growth = Ball(growth.mid, growth.rad + slip * growth.mid)
    dead = found.mass[~live].sum() if (~live).any() else Ball(0.0)
    return _ExpectedPosterior(ratio, mass, log_mass, mass * growth, dead)


def _posterior_alike(profiles: Any, k: int) -> _ExpectedPosterior:
    """All secrets alike: 1 + g takes one value at the true secret, another elsewhere."""
    energy, relative = classes.energy(profiles)
    at = Ball(energy, relative * energy)
    change = Ball([energy, -float(at.mid) / (k - 1)], [float(at.rad), float(at.rad) / (k - 1) + 2 * UNIT * energy / k])
    mass = Ball([1.0 / k, (k - 1) / k], [UNIT / k, UNIT])
    growth = Ball(1 + change.mid, change.rad + UNIT * (1 + np.abs(change.mid)))
    return _ExpectedPosterior(change.log1p(), mass, mass.log(), mass * growth, Ball(0.0))


def _pairs(one: AnyChannel, prior: Any) -> tuple[RowPair, ...] | None:
    """Rows of a factor beside the law of its release, those that are alike once, without those that are never worst."""
    found = _ratios(one, prior)
    if found is None:
        profiles = classes.grouped(Setting(one, None)) if prior is None and structured.alike(one) else None
        return None if profiles is None else (_pair_alike(profiles),)
    kept: dict[bytes, tuple[RowPair, RowPair]] = {}
    for i in range(len(found.secrets)):
        pair = _merged(found.logs[i], found.log_law, found.ratio[i])
        whole = RowPair(found.logs[i].mid, found.log_law.mid, found.ratio[i].mid)
        key = b"".join(getattr(pair, name).tobytes() for name in ("log_p", "log_q", "log_ratio"))
        kept.setdefault(key, (whole, pair))
    worst: list[tuple[RowPair, RowPair]] = []
    for one_kind in kept.values():
        if not any(_above(other, one_kind[0]) for other, _ in worst):
            worst = [other for other in worst if not _above(one_kind[0], other[0])] + [one_kind]
    return tuple(pair for _, pair in worst)


def _pair_alike(profiles: Any) -> RowPair:
    """Every secret's row against the law of the release, by group of secrets in each class."""
    held = profiles.log_mass + profiles.log_weight[profiles.classes]
    real = held > -np.inf
    joint, ratio = held[real], profiles.log_ratio[real]
    size = np.abs(joint) + np.abs(np.where(np.isfinite(ratio), ratio, 0.0))
    moved = 4e-14 * np.abs(np.where(np.isfinite(ratio), ratio, 0.0)) + 4 * profiles.error
    return RowPair(joint + ratio, joint, ratio, 32 * UNIT * (8 + size) + moved, moved)


def _merged(row: Ball, law: Ball, ratio: Ball) -> RowPair:
    """Releases of one log ratio together."""
    order = np.lexsort((row.mid, ratio.mid))
    row, law, ratio = row[order], law[order], ratio[order]
    start = np.flatnonzero(np.concatenate([[True], ratio.mid[1:] != ratio.mid[:-1]]))
    many = np.diff(np.append(start, len(order)))
    log_p, log_q = (np.logaddexp.reduceat(x.mid, start) for x in (row, law))
    size = np.maximum.reduceat(np.maximum(_size(row.mid), _size(law.mid)), start)
    error = np.maximum.reduceat(np.maximum(row.rad, law.rad), start) + 4 * UNIT * (many - 1) * (2 + size)
    return RowPair(log_p, log_q, ratio.mid[start], error, np.maximum.reduceat(ratio.rad, start))


def _above(one: RowPair, two: RowPair) -> bool:
    """Whether the hockey-stick divergence of ``one`` from the law of the release is larger at every level.

    Releases of one probability in both rows add the same to both, and are left out.
    """
    differ = one.log_p != two.log_p
    for sign in (1.0, -1.0):  # (Q - c q)^+ for c >= 1, and (c q - Q)^+ for c <= 1
        own, other = (sign * pair.log_ratio[differ] for pair in (one, two))
        if not np.isfinite(np.concatenate([own, other])).all():
            return False
        end = float(np.max(other, initial=0.0))
        levels = np.concatenate([[0.0], own[own > 0], other[(other > 0) & (other < end)]])
        for level in levels[levels < end + _MARGIN * (1 + end)].tolist():
            (large, edge), (small, beside) = (_excess(pair, differ, sign, level) for pair in (one, two))
            if not large > small * (1 + _MARGIN) + _MARGIN * (edge + beside):
                return False
    return True


def _excess(pair: RowPair, differ: NDArray[np.bool_], sign: float, level: float) -> tuple[float, float]:
    """What these releases add to the divergence, and how fast that changes with the level."""
    ratio = sign * pair.log_ratio
    over = differ & (ratio > level - _MARGIN * (1 + level))
    lead, gap = np.exp(pair.log_p if sign > 0 else pair.log_q)[over], np.minimum(level - ratio[over], 0.0)
    return math.fsum(-lead * np.expm1(gap)), math.fsum(lead * np.exp(gap))


def _ratios(one: AnyChannel, prior: Any) -> _Ratios | None:
    """Cells against the law of the release; None where they are too many to be compared."""
    n, m = one.shape
    if n * n * m > _CELLS:
        return None
    weights = Setting(one, prior).weights
    secrets = np.flatnonzero(weights > 0)
    mass = Ball(weights[secrets], 0.0 if prior is not None else UNIT * weights)
    if prior is not None:
        mass = mass / mass.sum().broadcast_like(mass)
    cells, tilt, logs, apart = _scaled_cells(one, secrets)
    occurs = np.flatnonzero(cells.mid.max(axis=0) > 0)
    cells, tilt, logs = (x[:, occurs] for x in (cells, tilt, logs))
    held = Ball(mass.mid[:, None], mass.rad[:, None]) * cells
    evidence = _summed(Ball(held.mid.T, held.rad.T))  # q, scaled as the cells are
    rest = apart[:, :, occurs] * Ball(mass.mid[None, :, None], mass.rad[None, :, None])
    change = _summed(Ball(rest.mid.swapaxes(1, 2), rest.rad.swapaxes(1, 2))) / _row(evidence)
    log_evidence = evidence.log()
    real = tilt.mid > -np.inf
    ratio = _sharper(change.log1p(), Ball(np.where(real, tilt.mid, 0.0), tilt.rad) - _row(log_evidence))
    ratio = Ball(np.where(real, ratio.mid, -np.inf), np.where(real, ratio.rad, 0.0))
    place = tilt.mid.argmax(axis=0), np.arange(len(occurs))
    log_law = log_evidence + (logs[place] - tilt[place])
    return _Ratios(secrets, mass, mass.log(), logs, log_law, change, ratio)


def _scaled_cells(one: AnyChannel, secrets: NDArray[np.intp]) -> tuple[Ball, Ball, Ball, Ball]:
    """Cells over the largest of their column or about, logs of these, logs of the cells, and differences by pairs."""
    if isinstance(one, (Channel, SparseChannel)) and not getattr(one, "log", False):
        plain = np.asarray(one._rows(0, one.inputs, False), dtype=np.float64)[secrets]
        cells = Ball(np.ldexp(plain, -np.frexp(plain.max(axis=0))[1]))
        apart = cells.mid[:, None, :] - cells.mid[None, :, :]
        with np.errstate(divide="ignore"):
            tilt, logs = (Ball(np.log(x), 8 * UNIT * _size(np.log(x))) for x in (cells.mid, plain))
        return cells, tilt, logs, Ball(apart, UNIT * np.abs(apart))
    exact = isinstance(one, Channel)
    given = np.asarray(one._log_rows(0, one.inputs), dtype=np.float64)[secrets]
    logs = Ball(given, np.zeros_like(given) if exact else 8 * UNIT * (1 + _size(given)))
    if isinstance(one, RandomizedResponse):
        tilt = Ball(np.where(secrets[:, None] == np.arange(one.outputs), 0.0, -one.epsilon))
    else:
        top = given.max(axis=0)
        below = given - np.where(top > -np.inf, top, 0.0)
        tilt = Ball(below, 0.0 if exact else 2 * np.maximum(logs.rad, logs.rad[given.argmax(axis=0), range(len(top))]))
        tilt = Ball(tilt.mid, np.where(tilt.mid > -np.inf, tilt.rad + UNIT * _size(below), 0.0))
    first, second = tilt.mid[:, None, :], tilt.mid[None, :, :]
    with np.errstate(invalid="ignore"):
        far = np.where(first == second, 0.0, np.abs(first - second))
    unsure = np.where(np.isfinite(far), tilt.rad[:, None, :] + tilt.rad[None, :, :] + UNIT * far, 0.0)
    larger = np.where(first >= second, tilt.rad[:, None, :], tilt.rad[None, :, :])
    apart = Ball(np.maximum(first, second), larger).exp() * -Ball(-far, unsure).expm1()
    impossible = (first == -np.inf) & (second == -np.inf)
    apart = Ball(np.where(first < second, -apart.mid, apart.mid), np.where(impossible, 0.0, apart.rad))
    return tilt.exp(), tilt, logs, apart


def _summed(terms: Ball) -> Ball:
    """Over the last axis, the same for any order of the terms."""
    mid, rad = np.sort(terms.mid, axis=-1), np.sort(terms.rad, axis=-1)
    lost = (26 + math.log2(mid.shape[-1])) * UNIT
    return Ball(mid.sum(axis=-1), (rad.sum(axis=-1) + lost * np.abs(mid).sum(axis=-1)) * (1 + 1e-9))


def _sharper(one: Ball, two: Ball) -> Ball:
    first = one.rad <= two.rad
    return Ball(np.where(first, one.mid, two.mid), np.where(first, one.rad, two.rad))


def _row(ball: Ball) -> Ball:
    """One entry a column."""
    return Ball(ball.mid[None, :], ball.rad[None, :])


def _size(logs: FloatArray) -> FloatArray:
    return np.where(np.isfinite(logs), np.abs(logs), 0.0)
