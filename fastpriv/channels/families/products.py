"""Independent channels side by side.

Notation: the secret is a tuple (d_1 .. d_t), the release (w_1 .. w_t), Q the product of the Q_i[d_i, w_i]. As integers,
tuples are numbered with the first place changing slowest. LDP, MBP, information and log vulnerability add up.
"""

# bounds: tested by enclosures/test_channels, enclosures/test_channel_notions - rounding of products, beside those
#    of the factors

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import _random, _validate
from ..._values import FloatArray
from ...errors import DomainError, ShapeError
from ...kernels import _product
from ..base import COPIES, MOST_COPIES, AnyChannel, Factors, countable
from ..priors import checked_prior
from ..profiles import Extremes, Profiles, RowPair, ordered_pairs

__all__ = ["ProductChannel", "compositions", "digits", "joint_pairs", "log_ways"]

_GROUPS = 2**21
_TYPES = 2**14
_NUMBER = 2**23  # bits of the number of secrets or releases: 0.8 s
_MOST_PLACES = 2**22
_MOST_DIGITS = 2**16
_FEW = 4  # rows of a factor that lends all its ordered pairs
_MIXED = 2**12  # ways to use these pairs
# bound: proved - half a unit in the last place of a double, IEEE 754
_UNIT = 2.0**-53
_EXTENDED = float(np.finfo(np.longdouble).eps)
_STIRLING = tuple(np.longdouble(a) / b for a, b in ((1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188),
                                                    (-691, 360360), (1, 156)))  # fmt: skip
_HALF_LOG_2PI = np.log(2 * np.arccos(np.longdouble(-1))) / 2


class ProductChannel(AnyChannel):
    """Independent channels side by side, each of them any number of times.

    Parameters
    ----------
    factors : sequence of AnyChannel
        The channels in order; products among them are taken apart.
    powers : sequence of int, optional
        How many copies of each. Default 1.

    Notes
    -----
    A prior is None (uniform), a tuple with one prior a factor (None among them allowed, shared by its copies), or, for
    small products, one probability a secret. ``sample`` takes and gives tuples along the last axis.

    **Accuracy** as the factors; ``tests/enclosures/test_channels.py``.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse
    >>> q = RandomizedResponse(2, 0.1).power(200)
    >>> q.inputs == 2**200, round(q.extremes().ldp_epsilon, 9)
    (True, 20.0)
    >>> q.profiles()
    <Profiles: 1 classes of releases, 201 groups of secrets>
    """

    __slots__ = _fields = ("factors", "powers")

    factors: tuple[AnyChannel, ...]
    powers: tuple[int, ...]

    def __init__(self, factors: Any, powers: Any = None) -> None:
        given = _validate.sequence("factors", factors, "channels")
        for factor in given:
            _validate.instance("factors", factor, AnyChannel)
        times = [1] * len(given) if powers is None else np.atleast_1d(
            _validate.integers("powers", powers, 1, MOST_COPIES, remedy=COPIES)
        ).tolist()
        if not given or len(times) != len(given):
            raise ShapeError(
                f"powers must have one entry for each of at least one factor; got {len(times)} for {len(given)}. "
                "Pass one power a factor."
            )
        flat: list[tuple[AnyChannel, int]] = []
        for factor, power in zip(given, times, strict=True):
            if isinstance(factor, ProductChannel) and (power == 1 or len(factor.factors) == 1):
                _listed(len(flat) + len(factor.factors))
                flat += [
                    (one, _validate.count("powers", own * power, 1, MOST_COPIES, remedy=COPIES))
                    for one, own in zip(factor.factors, factor.powers, strict=True)
                ]
            elif isinstance(factor, ProductChannel):
                _listed(len(flat) + len(factor.factors) * power)
                flat += list(zip(factor.factors, factor.powers, strict=True)) * power
            else:
                flat.append((factor, power))
        self._set(factors=tuple(one for one, _ in flat), powers=tuple(own for _, own in flat))

    @property
    def inputs(self) -> int:
        """Number of secrets."""
        countable("inputs", self._log2_shape()[0], _NUMBER, self)
        return math.prod(one.inputs**own for one, own in self._parts())

    @property
    def outputs(self) -> int:
        """Number of releases."""
        countable("outputs", self._log2_shape()[1], _NUMBER, self)
        return math.prod(one.outputs**own for one, own in self._parts())

    @property
    def mass_gap(self) -> float:
        """How far the sum of a row is from 1, at most."""
        return math.expm1(sum(own * math.log1p(one.mass_gap) for one, own in self._parts()))

    def _log2_shape(self) -> tuple[float, float]:
        found = [(one._log2_shape(), own) for one, own in self._parts()]
        secrets, releases = (sum(float(own) * logs[side] for logs, own in found) for side in (0, 1))
        return secrets, releases

    def _parts(self) -> Any:
        return zip(self.factors, self.powers, strict=True)

    def _places(self) -> list[AnyChannel]:
        places = sum(self.powers)
        if places > _MOST_PLACES:
            raise DomainError(
                f"powers must be at most {_MOST_PLACES} copies where places are gone through one by one; got "
                f"{_validate.shown(places)}. Ask for quantities, which count equal copies together."
            )
        return [one for one, own in self._parts() for _ in range(own)]

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        places = self._places()
        found = np.empty((stop - start, self.outputs))
        for row in range(start, stop):
            line = np.zeros(1)
            for one, digit in zip(places, digits(row, [p.inputs for p in places]), strict=True):
                line = (line[:, None] + np.asarray(one._rows(digit, digit + 1, True), dtype=np.float64)).reshape(-1)
            found[row - start] = line
        return found

    def column(self, output: Any) -> Factors:
        """Log likelihoods of one release: one column a place, whose sums they are.

        Parameters
        ----------
        output : int or sequence
            The release, as its number or with one release a place.
        """
        places = self._places()
        if isinstance(output, (int, np.integer)) and not isinstance(output, bool):
            if len(places) > _MOST_DIGITS:
                raise DomainError(
                    f"output must hold one release for each of the {len(places)} places where there are more than "
                    f"{_MOST_DIGITS}; got {_validate.shown(output)}. Pass a sequence instead of a number."
                )
            parts: list[Any] = digits(self._output(output), [one.outputs for one in places])
        else:
            parts = list(_validate.sequence("output", output, "releases"))
            if len(parts) != len(places):
                raise ShapeError(
                    f"output must have one entry for each of the {len(places)} places; got {len(parts)}. "
                    "Pass one release a place."
                )
        return Factors(tuple(one.column(part) for one, part in zip(places, parts, strict=True)))

    def sample(self, secrets: ArrayLike, *, rng: Any = None) -> Any:
        """One release for each secret.

        Parameters
        ----------
        secrets : array_like of int, shape (..., places)
            Tuples of secrets.
        rng : None, int, sequence of int, SeedSequence, BitGenerator or Generator, optional
            Where the randomness comes from.

        Returns
        -------
        ndarray of int, shape (..., places), or tuple of ndarray
            One release a place; a tuple of arrays where some of them are sets or bits.
        """
        places, given = self._places(), _validate.array("secrets", secrets)
        if given.size == 0 and given.shape[-1:] == (0,):
            given = np.empty((0, len(places)), dtype=np.int64)
        if given.ndim == 0 or given.shape[-1] != len(places):
            raise ShapeError(
                f"secrets must be tuples of {len(places)} along the last axis; got shape {given.shape}. "
                "Pass one secret a place."
            )
        generator = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(_random.root(rng))
        drawn = []
        at = 0
        for one, own in self._parts():
            found = one.sample(given[..., at : at + own], rng=generator)
            drawn += [found[(slice(None),) * (given.ndim - 1) + (i,)] for i in range(own)]
            at += own
        plain = all(found.shape == given.shape[:-1] for found in drawn)
        return np.stack(drawn, axis=-1) if plain else tuple(drawn)

    def _then(self, step: AnyChannel) -> AnyChannel | None:
        if not isinstance(step, ProductChannel) or step.powers != self.powers:
            return None
        both = list(zip(self.factors, step.factors, strict=True))
        if any(one.outputs != two.inputs for one, two in both):
            return None
        return ProductChannel([one.then(two) for one, two in both], self.powers)

    def _prior(self, prior: Any) -> Any:
        if isinstance(prior, tuple):
            if len(prior) != len(self.factors):
                raise ShapeError(
                    f"prior must be a tuple with one entry for each of the {len(self.factors)} factors; got "
                    f"{len(prior)}. Pass one prior a factor, or None."
                )
            return tuple(one._prior(own) for one, own in zip(self.factors, prior, strict=True))
        return None if prior is None else checked_prior(prior, self.inputs)

    def _split(self, prior: Any) -> list[tuple[AnyChannel, int, Any]] | None:
        """Factors, powers and their priors; None for a prior that is not a product."""
        if prior is not None and not isinstance(prior, tuple):
            return None
        priors = (None,) * len(self.factors) if prior is None else prior
        return [(one, own, pi) for (one, own), pi in zip(self._parts(), priors, strict=True)]

    def _profiles(self, prior: Any) -> Profiles | None:
        parts = self._split(prior)
        if parts is None:
            return super()._profiles(prior)
        found: Profiles | None = None
        for one, own, pi in parts:
            part = one._profiles(pi)
            part = None if part is None else _power(part, own)
            if part is None:
                return None
            found = part if found is None else _joined(found, part)
            if found is None:
                return None
        return found

    def _extremes(self, prior: Any) -> Extremes | None:
        parts = self._split(prior)
        if parts is None:
            return super()._extremes(prior)
        found = [(one._extremes(pi), own) for one, own, pi in parts]
        if any(one is None for one, _ in found):
            return None
        known = [(one, own) for one, own in found if one is not None]
        sums = [_total([own * getattr(one, name) for one, own in known]) for name in
                ("ldp_epsilon", "support_epsilon", "xi_plus", "xi_minus", "error")]  # fmt: skip
        rounding = max(one.rounding for one, _ in known) + 2e-15
        return Extremes(sums[0], sums[1], sums[2], sums[3], rounding, sums[4])

    def pairs(self) -> tuple[RowPair, ...] | None:
        """One pair of every factor at each of its places, in all ways, by how many places show which.

        Equal rows are easier to tell apart nowhere, so factors with few rows lend all their ordered pairs.
        """
        parts = [(one.pairs() or _ordered_pairs(one), own) for one, own in self._parts()]
        return None if any(known is None for known, _ in parts) else joint_pairs(parts)

    def __repr__(self) -> str:
        parts = [f"{one!r}" + (f" ** {own}" if own > 1 else "") for one, own in self._parts()]
        return f"<ProductChannel: {' x '.join(parts)}>"


def _total(terms: list[float]) -> float:
    """The sum, infinite where no double holds it."""
    try:
        return math.fsum(terms)
    except OverflowError:
        return math.inf


def _listed(factors: int) -> None:
    """Refuse a product with more factors than can be listed."""
    if factors > _MOST_PLACES:
        raise DomainError(
            f"factors must be at most {_MOST_PLACES}, with all products taken apart; got {_validate.shown(factors)}. "
            "Put equal factors together with powers, as in q.power(1000)."
        )


def joint_pairs(parts: list[tuple[Any, int]]) -> tuple[RowPair, ...] | None:
    """One of these pairs of rows at each of so many places, in all ways; None for too many ways or classes."""
    found = [RowPair([0.0], [0.0])]
    for known, own in parts:
        mixed = _mixed(tuple(map(_possible, known)), own)
        if mixed is None or len(mixed) * len(found) > _MIXED:
            return None
        sizes = [sum(pair.log_p.size for pair in pairs) for pairs in (mixed, found)]
        if math.prod(sizes) > _GROUPS:
            return None
        found = [_beside(pair, part) for part in mixed for pair in found]
    return tuple(found)


def digits(number: int, bases: list[int]) -> list[int]:
    """A number of mixed bases, the first place changing slowest."""
    found = []
    for base in reversed(bases):
        number, digit = divmod(number, base)
        found.append(digit)
    return found[::-1]


def _compositions_count(total: int, parts: int) -> int:
    return math.comb(total + parts - 1, parts - 1)


def compositions(total: int, parts: int) -> NDArray[np.int64]:
    """All ways to write a total as a sum of this many natural numbers, shape (ways, parts)."""
    if parts == 1:
        return np.array([[total]])
    blocks = []
    for first in range(total + 1):
        rest = compositions(total - first, parts - 1)
        blocks.append(np.concatenate([np.full((len(rest), 1), first), rest], axis=1))
    return np.concatenate(blocks)


def _ordered_pairs(one: AnyChannel) -> tuple[RowPair, ...] | None:
    """All ordered pairs of rows of a channel with few."""
    if one.inputs > _FEW or one.outputs > _TYPES:
        return None
    rows = one._log_rows(0, one.inputs)
    if len(rows) == 1:
        return (RowPair([0.0], [0.0]),)
    return ordered_pairs(rows)


def _mixed(known: tuple[RowPair, ...], times: int) -> list[RowPair] | None:
    """Every way to use the pairs at so many places; None for too many ways or classes."""
    if _compositions_count(times, len(known)) > _MIXED:
        return None
    found: list[RowPair] = []
    size = 0
    for counts in compositions(times, len(known)).tolist():
        size += math.prod(_compositions_count(count, one.log_p.size) for one, count in zip(known, counts, strict=True))
        if size > _GROUPS:
            return None
        pair = RowPair([0.0], [0.0])
        for one, count in zip(known, counts, strict=True):
            if count:
                pair = _beside(pair, _repeated(one, count))
        found.append(pair)
    return found


def _possible(pair: RowPair) -> RowPair:
    """Without releases that neither row has."""
    real = (pair.log_p > -np.inf) | (pair.log_q > -np.inf)
    return pair if real.all() else RowPair(*(getattr(pair, name)[real] for name in RowPair._fields))


def _repeated(one: RowPair, times: int) -> RowPair:
    """A pair of rows at so many places, by how many of them show each class."""
    many = compositions(times, one.log_p.size)
    ways, error = log_ways(times, many)
    p, q, ratio = (_weighted(many, logs) for logs in (one.log_p, one.log_q, one.log_ratio))
    # sums in extended precision; each log is rounded once more
    log_p, log_q = (np.asarray(logs + ways, dtype=np.float64) for logs in (p, q))
    size = [np.abs(np.where(np.isfinite(x), x, 0)).astype(np.float64) for x in (log_p, log_q, p, q, ratio)]
    log_error = _product.times(many, one.log_error) + error
    log_error += _UNIT * (size[0] + size[1]) + 8 * _EXTENDED * (size[2] + size[3])
    spread = _product.times(many, np.abs(np.where(np.isfinite(one.log_ratio), one.log_ratio, 0.0)))
    ratio_error = _product.times(many, one.ratio_error) + 2 * _UNIT * size[4] + 8 * _EXTENDED * spread
    return RowPair(log_p, log_q, ratio, log_error, ratio_error)


def log_ways(times: int, many: NDArray[np.int64]) -> tuple[NDArray[np.longdouble], float]:
    """Logs of the multinomial coefficients of rows of counts, in extended precision, and a bound on their errors."""
    table = _log_factorials(times)
    return table[times] - table[many].sum(axis=1), 16 * _EXTENDED * (2.0 * float(table[times]) + 3.0 * many.shape[1])


def _log_factorials(largest: int) -> NDArray[np.longdouble]:
    """Logs of 0! to ``largest``!, right to 12 roundings of themselves: exact before the log, then Stirling's series."""
    x = np.arange(largest + 1).astype(np.longdouble)
    few = min(largest + 1, 16)
    x[:few] = np.log(np.array([math.factorial(i) for i in range(few)], dtype=np.longdouble))
    n = x[few:]
    inverse, series = 1 / n, np.zeros_like(n)
    for coefficient in _STIRLING[::-1]:
        series = series * inverse * inverse + coefficient
    x[few:] = (n + 0.5) * np.log(n) - n + _HALF_LOG_2PI + series * inverse
    return np.asarray(x)


def _beside(one: RowPair, two: RowPair) -> RowPair:
    """One pair of rows and another at a place of its own."""
    with np.errstate(invalid="ignore"):
        p, q, ratio, log_error, ratio_error = (
            np.add.outer(getattr(one, name), getattr(two, name)).reshape(-1) for name in RowPair._fields
        )
    ratio = np.where(np.isnan(ratio), 0.0, ratio)
    sizes = [np.where(np.isfinite(logs), np.abs(logs), 0.0) for logs in (p, q, ratio)]
    return RowPair(p, q, ratio, log_error + _UNIT * (sizes[0] + sizes[1]), ratio_error + _UNIT * sizes[2])


def _weighted(many: NDArray[np.int64], logs: FloatArray) -> NDArray[np.longdouble]:
    """Sums of counts times logs in extended precision, where no count of a -inf is 0."""
    finite = np.where(np.isfinite(logs), logs, 0.0).astype(np.longdouble)
    found = np.zeros(len(many), dtype=np.longdouble)
    for log, count in zip(finite, many.T, strict=True):
        found += log * count
    with np.errstate(invalid="ignore"):
        for log, count in zip(logs, many.T, strict=True):
            if not np.isfinite(log):
                found = found + np.where(count > 0, log, 0.0)
    return np.asarray(np.where(np.isnan(found), 0.0, found))


def _power(one: Profiles, times: int) -> Profiles | None:
    """Profiles of this many copies by type classes: how many copies show each class, how many secrets of each group."""
    if times == 1:
        return one
    classes = len(one.log_total)
    sizes = np.diff(one.starts).tolist()
    if _compositions_count(times, classes) > _TYPES:
        return None
    types = compositions(times, classes)
    widths = [math.prod(map(_compositions_count, kind, sizes)) for kind in types.tolist()]
    if sum(widths) > _GROUPS:
        return None
    ways, _ = log_ways(times, types)
    columns: list[list[Any]] = [[], [], [], []]
    kept: dict[tuple[int, int], tuple[Any, ...]] = {}
    for kind in types.tolist():
        sums: tuple[Any, ...] = (np.zeros(1),) * 4
        for place, count in enumerate(kind):
            if (place, count) not in kept:
                kept[place, count] = _copies(one, slice(one.starts[place], one.starts[place + 1]), count)
            sums = tuple(np.add.outer(a, b).reshape(-1) for a, b in zip(sums, kept[place, count], strict=True))
        for column, found in zip(columns, sums, strict=True):
            column.append(found)
    tilt, log_mass, largest, smallest = (np.asarray(np.concatenate(column), dtype=np.float64) for column in columns)
    return Profiles(
        _weighted(types, one.log_outputs) + ways, _weighted(types, one.log_total) + ways,
        np.concatenate([[0], np.cumsum(widths)]), tilt, np.exp(log_mass), log_mass, largest, smallest,
        min(1.0, times * one.missing), math.expm1(times * math.log1p(one.gap)), times * one.error,
    )  # fmt: skip


def _copies(one: Profiles, groups: slice, count: int) -> tuple[NDArray[np.longdouble], ...]:
    """Tilt, log mass, largest and smallest of this many secrets that each lie in one of the groups of a class."""
    many = compositions(count, groups.stop - groups.start)
    ways, _ = log_ways(count, many)
    return (_weighted(many, one.tilt[groups]), _weighted(many, one.log_mass[groups]) + ways,
            _weighted(many, one.log_largest[groups]), _weighted(many, one.log_smallest[groups]))  # fmt: skip


def _joined(one: Profiles, two: Profiles) -> Profiles | None:
    """Every class of one with every class of two."""
    if len(one.tilt) * len(two.tilt) > _GROUPS or len(one.log_total) * len(two.log_total) > _GROUPS:
        return None
    sizes = np.multiply.outer(np.diff(one.starts), np.diff(two.starts)).reshape(-1)
    left, right = [], []
    for a, b in zip(one.starts[:-1], one.starts[1:], strict=True):
        for c, d in zip(two.starts[:-1], two.starts[1:], strict=True):
            left.append(np.repeat(np.arange(a, b), d - c))
            right.append(np.tile(np.arange(c, d), b - a))
    i, j = np.concatenate(left), np.concatenate(right)
    return Profiles(
        np.add.outer(one.log_outputs, two.log_outputs).reshape(-1),
        np.add.outer(one.log_total, two.log_total).reshape(-1), np.concatenate([[0], np.cumsum(sizes)]),
        one.tilt[i] + two.tilt[j], one.mass[i] * two.mass[j], one.log_mass[i] + two.log_mass[j],
        one.log_largest[i] + two.log_largest[j], one.log_smallest[i] + two.log_smallest[j],
        min(1.0, one.missing + two.missing), one.gap + two.gap + one.gap * two.gap, one.error + two.error,
    )  # fmt: skip


