"""Average Bayesian privacy of a channel: how far the expected posterior lies from the attacker's belief.

Notation: f = E[posterior] = pi (1 + g), g_d = sum_w P(w) (r_d(w) - 1) for the law P of the release; b the attacker's
belief, a = (f - b)/(f + b). JS(f || b) = sum (f + b)/4 phi(a), phi(a) = (1+a) log(1+a) + (1-a) log(1-a).

g is formed from P - q and r - 1, both centred. With N^2 = sum (P - q)^2 / q, chi^2 = sum q (r - 1)^2 and S of
``table``, its error is at most u (m + 60) N chi + 40 u (N + chi) sqrt(S); the terms of JS fall and then rise in g, so
that the ends of its interval bound each of them. For one law, |r - 1| <= (top - low)/q gives
110 u sum (|P - q| + 0.3 D) (top - low)/q. Both are far too wide where a rare secret makes r huge; term by term the
error is u (m + 100) sum |P - q| |r - 1| + 40 u sum D |r - 1| + 40 u sum |P - q| D / q and u^2 S, at the cost of one
more product of matrices.
"""

# bounds: tested by enclosures/test_channel_notions - roundings, by the notes at the head, and of terms of
#    Jensen-Shannon

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _parallel, _validate
from ..._values import FloatArray
from ...capacity import structured
from ...channels import DefaultChannel, ProductChannel
from ...channels.families.membership import times
from ...errors import DomainError, ShapeError
from ...kernels import _product, _table
from . import classes, product_types
from .arguments import UNIT, Setting, rows_of, written
from .sets.bits import bits_of
from .sets.shifts import WIDEST, matrix
from .table import Columns, Table, rows
from .table import columns as first_pass

__all__ = ["Shifts", "alike", "shifts"]

_SECRETS = 128  # laws of the release in one task
_TYPES = 2**21
_CELLS = 2**19  # cells of the channel in one task
# bound: none - which of two formulas serves a law of the release
_SAME = 1e-12  # distance from q at which a law of the release is taken for it
_TERMS = 16
# bound: none - when errors are bounded term by term
_WIDE = 1e-11  # errors of an expected posterior from which they are bounded term by term


class Shifts(NamedTuple):
    """Root of JS for each law of the release with bounds, and the prior of each (None for one law)."""

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    weight: FloatArray | None
    method: str
    blur: float = 0.0  # relative error of the weights


def shifts(
    given: Setting, release: Any, secret: Any, belief: Any, n_jobs: int | None, progress: Any,
    passed: tuple[Table, Columns, FloatArray | None] | None = None,
) -> Shifts:  # fmt: skip
    """For the laws of the release that are asked for: one given law, the rows of some secrets, or of all with prior.

    ``passed`` is what passes through all rows of this channel have found: the first, and of the second the mean changes
    under the one law that is asked for, or None.
    """
    _checked(release, secret)
    if release is None and belief is None:
        parts = alike(given)
        if parts is not None:
            places = _places(given, secret)
            value, lower, upper = (np.full(places, part) for part in parts)
            return Shifts(value, lower, upper, np.full(places, 1.0 / places), "types of secrets")
        if paired(given):
            return _of_pairs(given, secret)
        types = product_types.expected_posteriors(given, secret)
        if types is not None:
            js = types.js
            ends = np.stack([js.mid, np.maximum(js.lower, 0.0), np.maximum(js.upper, 0.0)])
            return _rooted(ends, 0, types.weight)._replace(method="types of secrets", blur=types.blur)
    if passed is None:
        whole = written(given) if belief is None or not isinstance(given.channel, DefaultChannel) else rows_of(given)
        table = Table(whole)
        first = first_pass(table, n_jobs=n_jobs)
        mean_changes = None
    else:
        table, first, mean_changes = passed
    believed = table.prior if belief is None else _belief(belief, table.prior.size)
    weight = None
    if release is not None:
        laws: Any = _released(release, table, first)
        many = 1
    else:
        secrets = _rows(given, table, secret)
        weight = table.prior[secrets]
        laws, many = secrets, secrets.size
    return _compared(table, first, laws, many, believed, weight, mean_changes, n_jobs, progress)


def single_change(given: Setting, table: Table, first: Columns, release: Any, secret: Any) -> FloatArray | None:
    """P - q where one law P of the release is asked for, else None."""
    _checked(release, secret)
    if release is None and secret is None:
        return None
    laws: Any = _rows(given, table, secret) if release is None else _released(release, table, first)
    return _changes(table, first, laws, slice(0, 1))[0] if release is not None or laws.size == 1 else None


def _checked(release: Any, secret: Any) -> None:
    if release is not None and secret is not None:
        raise DomainError("release must be None where secret is given; got both. Pass the one law or the other.")


def _centred(table: Table, first: Columns, part: slice) -> FloatArray:
    return np.asarray((table.block(part) - first.centre) - first.delta)


def _changes(table: Table, first: Columns, laws: Any, some: slice) -> FloatArray:
    """P - q of some of the laws, a row each."""
    if isinstance(laws, tuple):
        return np.asarray(laws[0][None, :])
    chosen = laws[some]
    if np.array_equal(chosen, np.arange(chosen[0], chosen[0] + chosen.size)):
        return table.scaled(_centred(table, first, slice(int(chosen[0]), int(chosen[-1]) + 1)))
    return table.scaled(np.concatenate([_centred(table, first, slice(d, d + 1)) for d in chosen.tolist()]))


def _compared(
    table: Table, first: Columns, laws: Any, many: int, belief: FloatArray, weight: FloatArray | None,
    mean_changes: FloatArray | None, n_jobs: Any, progress: Any,
) -> Shifts:  # fmt: skip
    n, m = table.channel.shape
    inverse = np.divide(1.0, first.q, out=np.zeros_like(first.q), where=first.occurs)
    root = np.sqrt(first.q) * table.root_scale  # of q, where q itself may be too small for a double
    per_root = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    known, share = table.scaled(first.spread), first.spread * inverse
    energy = math.sqrt(_table.accurate_sum((root * share) ** 2))
    relative = UNIT * (m + 100) + 2 * first.relative
    gap = 2.1 * table.channel.mass_gap + 1.1 * table.gap + 2.1 * table.slack
    gap += 0.0 if belief is table.prior else 4 * UNIT  # each of both laws is rounded when it is divided by its sum

    if isinstance(laws, tuple):
        known = known + table.scaled(first.q)  # the law that was given less a rounded q

    if many == 1:  # in one walk through the rows
        change = _changes(table, first, laws, slice(0, 1))[0]
        with np.errstate(over="ignore"):
            reach = float(np.sum((np.abs(change) + 0.3 * known) * (first.reach * inverse)))
        error = (110 * UNIT + 2 * first.relative) * reach
        if error * float(table.prior.max()) <= _WIDE:
            g = mean_changes
            if g is None:
                g = rows(table, first, law=change, n_jobs=n_jobs, progress=progress, divergences=False).shifts
            parts = _enclosed(table.prior, belief, g, error + gap * (1 + np.abs(g)))
            return _rooted(np.array([[_table.accurate_sum(part)] for part in parts]), 0, weight)

    def one(task: tuple[slice, slice]) -> FloatArray:
        some, part = task
        changes = _changes(table, first, laws, some)
        held = (table.prior[part] > 0) | (belief[part] > 0)
        with np.errstate(over="ignore", invalid="ignore"):
            t = _centred(table, first, part) * inverse
        t[table.prior[part] == 0] = 0.0
        pi, own, t = table.prior[part][held], belief[part][held], t[held]
        g = _product.product(changes, t)
        size = np.sqrt(np.sum((changes * per_root) ** 2, axis=1))[:, None]
        chi = np.sqrt(np.sum((t * root) ** 2, axis=1))
        error = relative * size * chi + 40 * UNIT * (size + chi) * energy
        if not float(np.max(pi * error, initial=0.0)) <= _WIDE:
            far, off = np.abs(changes), np.abs(t)
            of_columns = _product.times(off, known) + _product.times(far, share)[:, None] + 40 * UNIT * energy**2
            error = np.fmin(error, relative * _product.product(far, off) + 40 * UNIT * of_columns)
        error = error + gap * (1 + np.abs(g))
        return np.stack([part.sum(axis=1) for part in _enclosed(pi, own, g, error)])

    step = max(1, _CELLS // m)
    tasks = [(some, part) for some in _parallel.blocks(many, _SECRETS) for part in _parallel.blocks(n, step)]
    found = np.zeros((3, many))
    results = _parallel.ordered_map(one, tasks, n_jobs=n_jobs, progress=progress, shared=True)
    for (some, _), result in zip(tasks, results, strict=True):
        found[:, some] += result
    return _rooted(found, len(tasks) + step, weight)


def _enclosed(pi: FloatArray, belief: FloatArray, g: FloatArray, error: FloatArray) -> tuple[FloatArray, ...]:
    """Terms of JS with their bounds: each falls and then rises in g."""
    middle = _terms(pi, belief, g)
    down, up = _terms(pi, belief, np.maximum(g - error, -1.0)), _terms(pi, belief, g + error)
    crossed = (pi * (g - error) + (pi - belief) < 0) & (pi * (g + error) + (pi - belief) > 0)
    low = np.where(crossed, 0.0, np.minimum(np.minimum(down, up), middle))
    return middle, low, np.maximum(np.maximum(down, up), middle)


def _rooted(found: FloatArray, added: int, weight: FloatArray | None) -> Shifts:
    """Roots of sums of so many terms in a row."""
    value, lower, upper = np.maximum(found, 0.0)
    relative, most = (added + 60) * UNIT, math.sqrt(math.log(2))
    value, lower = np.sqrt(value), np.sqrt(lower * (1 - relative))
    upper = np.sqrt(upper * (1 + relative) + 1e-300 * (upper > 0))
    return Shifts(np.minimum(value, most), np.minimum(lower, most), np.minimum(upper, np.nextafter(most, 1)), weight,
                  "expected posterior, centred")  # fmt: skip


def _terms(pi: FloatArray, belief: FloatArray, g: FloatArray) -> FloatArray:
    """Terms of JS(pi (1 + g) || belief)."""
    change = pi * g + (pi - belief)
    both = np.maximum(pi * (1.0 + g), 0.0) + belief
    a = np.clip(np.divide(change, both, out=np.zeros_like(change), where=both > 0), -1.0, 1.0)
    square = a * a
    series = np.zeros_like(a)
    for k in range(_TERMS, 0, -1):
        series = square * (1.0 / (k * (2 * k - 1)) + series)
    with np.errstate(divide="ignore", invalid="ignore"):
        full = np.where(a > -1, (1 + a) * np.log1p(a), 0.0) + np.where(a < 1, (1 - a) * np.log1p(-a), 0.0)
    return 0.25 * both * np.where(np.abs(a) < 0.3, series, full)


def alike(given: Setting) -> tuple[float, float, float] | None:
    """In closed form where all secrets are alike: 1 + g takes one value at the true secret, another elsewhere."""
    channel = given.channel
    if given.prior is not None and not (isinstance(given.prior, tuple) and all(one is None for one in given.prior)):
        return None
    factors = [(channel, 1)]
    if isinstance(channel, ProductChannel):
        factors = list(zip(channel.factors, channel.powers, strict=True))
    log_mass, logs = np.zeros(1), [np.zeros(1)] * 3  # log(1 + g): value, lower, upper
    for one, own in factors:
        profiles = classes.grouped(Setting(one, None)) if structured.alike(one) else None
        if profiles is None or (own + 1) * log_mass.size > _TYPES:
            return None
        k, hits = one.inputs, np.arange(own + 1)
        energy, relative = classes.energy(profiles)
        more, less = energy * (1 + relative), energy * (1 - relative)
        sums = (_both(hits, *ends, k) for ends in ((energy, energy), (less, more), (more, less)))
        logs = [np.add.outer(old, new).reshape(-1) for old, new in zip(logs, sums, strict=True)]
        ways = np.array([math.lgamma(own + 1) - math.lgamma(i + 1) - math.lgamma(own - i + 1) for i in hits.tolist()])
        others = times(own - hits, math.log1p(-(1 / k)) if k > 1 else -math.inf)
        log_mass = np.add.outer(log_mass, ways - hits * math.log(k) + others).reshape(-1)
    real = log_mass > -np.inf
    mass, (g, low_g, high_g) = np.exp(log_mass[real]), (np.expm1(log[real]) for log in logs)
    weight = UNIT * 16 * (8 + np.abs(log_mass[real])) + 40 * UNIT
    middle, down, up = (_terms(mass, mass, x) for x in (g, low_g - 4 * UNIT * np.abs(low_g), high_g * (1 + 4 * UNIT)))
    low = np.where((low_g < 0) & (high_g > 0), 0.0, np.minimum(np.minimum(down, up), middle)) * (1 - weight)
    high = np.maximum(np.maximum(down, up), middle) * (1 + weight)
    most = math.sqrt(math.log(2))
    value, lower, upper = (min(math.sqrt(max(0.0, math.fsum(part))), most) for part in (middle, low, high))
    return value, lower * (1 - 4 * UNIT), min(upper * (1 + 4 * UNIT), math.nextafter(most, 1.0))


def paired(given: Setting) -> bool:
    """Whether the expected posteriors are integrals for pairs of prior atoms."""
    bits = None if isinstance(given.channel, ProductChannel) else bits_of(given)
    return bits is not None and bits.size is None and bits.value.size <= WIDEST


def _of_pairs(given: Setting, secret: Any) -> Shifts:
    bits = bits_of(given)
    assert bits is not None
    off, doubt, same, own = matrix(bits)
    mass = bits.counts * bits.value - np.diag(bits.value)
    beside = _enclosed(mass, mass, off, doubt)
    at = _enclosed(bits.value, bits.value, same, own)
    found = np.stack([rest.sum(axis=1) + one for rest, one in zip(beside, at, strict=True)])
    found[1] *= 1 - 8 * bits.blur
    found[2] *= 1 + 8 * bits.blur
    weights = given.weights
    secrets = np.flatnonzero(weights > 0) if secret is None else _held(_asked(secret, weights.size), weights)
    held = np.unique(weights[weights > 0])[::-1]
    places = np.searchsorted(-held, -weights[secrets])
    return _rooted(found[:, places], bits.value.size, weights[secrets])


def _both(hits: NDArray[Any], at: float, beside: float, k: int) -> FloatArray:
    """log(1 + g) of each type, from the energies at true secrets and beside them; rounded towards the outer one."""
    near = math.log1p(at)
    share = min(beside / (k - 1), 1.0) if 1 < k < 2**1000 else 0.0
    far = math.log1p(-share) if share < 1 else -math.inf
    misses = hits[-1] - hits
    found = hits * near + times(misses, far)
    size = hits * near + times(misses, -far if far > -math.inf else 0.0)
    return np.asarray(found + 8 * UNIT * size * (0.0 if at == beside else 1.0 if at > beside else -1.0))


def _places(given: Setting, secret: Any) -> int:
    """How many answers are wanted where all are equal: one a secret that is asked for, one for all."""
    if secret is None:
        return 1
    return int(_asked(secret, given.channel.inputs).size)


def _asked(secret: Any, n: int) -> NDArray[Any]:
    asked = _validate.integers("secret", secret, 0, n - 1).reshape(-1)
    if asked.size == 0:
        raise ShapeError("secret must be at least one secret; got none. Leave it out for all of them.")
    return asked


def _rows(given: Setting, table: Table, secret: Any) -> NDArray[np.intp]:
    """Rows of the table that are laws of the release."""
    if secret is None:
        return np.flatnonzero(table.prior > 0)
    chosen = _asked(secret, given.channel.inputs)
    if isinstance(given.channel, DefaultChannel) and table.channel is given.channel.laws:
        listed = given.channel.indices
        place = np.searchsorted(listed, chosen)
        found = (place < listed.size) & (listed[np.minimum(place, listed.size - 1)] == chosen)
        chosen = np.where(found, place, listed.size)
    return _held(chosen, table.prior)


def _held(chosen: NDArray[np.intp], prior: FloatArray) -> NDArray[np.intp]:
    for one in chosen.tolist():
        if prior[one] == 0:
            raise DomainError(
                f"secret must be one that the prior gives mass; got {one}. The posterior is not defined at releases "
                "that the prior rules out."
            )
    return chosen


def _belief(belief: Any, n: int) -> FloatArray:
    given = _validate.probabilities("belief", getattr(belief, "probabilities", belief))
    if given.size != n:
        raise ShapeError(f"belief must have one entry for each of the {n} secrets; got {given.size}. Pass one vector.")
    return np.asarray(given / float(np.sum(given, dtype=np.longdouble)))


def _released(release: Any, table: Table, first: Columns) -> tuple[FloatArray]:
    """The law of the release less q."""
    m = first.q.size
    given = _validate.probabilities("release", release)
    if given.size != m:
        raise ShapeError(f"release must have one entry for each of the {m} releases; got {given.size}. Pass one law.")
    if (given[~first.occurs] > 0).any():
        place = int(np.argmax((given > 0) & ~first.occurs))
        raise DomainError(
            f"release must be 0 where the prior allows no release; got {float(given[place])!r} at index {place}. "
            "The posterior is not defined there."
        )
    change = given - table.scaled(first.q)
    differ = bool((first.top - first.low > 1e-9 * first.q).any())
    if differ and float(np.abs(change).sum()) <= _SAME:
        raise DomainError(
            "release must be a law other than that of the release under the prior; got prior @ channel, under which "
            "the expected posterior is the prior and ABP vanishes for every channel. Pass secret= for the true secret, "
            "or the law of the releases that are seen."
        )
    return (change,)
