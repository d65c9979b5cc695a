"""Channels made of channels: products (independent, side by side) and cascades (one behind the other).

Notation: the secret of a product is a tuple (d_1 .. d_t), the release (w_1 .. w_t), and Q the product of the
Q_i[d_i, w_i]; there are t coordinates. As integers, tuples are numbered with the first coordinate changing slowest.
LDP, MBP, information and log vulnerability add up. A cascade is Q[d, w] = sum_v A[d, v] B[v, w].
"""

# bounds: tested by enclosures/test_channels, enclosures/test_channel_notions - rounding of products, beside those
#    of the factors

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base import random_streams, validate
from ..base.errors import DomainError, ShapeError
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, IntArray, LongDoubleArray
from ..kernels import _matrix_product
from .base import COPIES_REMEDY, MAX_COPIES, AnyChannel, ProductColumn, check_countable, validated_powers
from .matrix_channels import Channel
from .type_classes import ExtremeLogRatios, RowPair, TypeClasses, ordered_pairs, validated_prior

__all__ = ["ProductChannel", "cascade", "compositions", "log_multinomials", "mixed_radix_digits",
           "product_pairs", "weighted_sums"]  # fmt: skip

_MAX_GROUPS = 2**21  # groups of secrets, or entries of row pairs, up to which they are listed: 16 MiB an array
_MAX_CLASSES = 2**14  # type classes of a power up to which they are listed; releases of a factor with listed pairs
_MAX_COUNT_BITS = 2**23  # bits of a number of secrets or releases that is computed (0.8 s)
_MAX_COORDINATES = 2**22  # coordinates up to which lists of one factor each are made
_MAX_DIGITS = 2**16  # coordinates up to which a release given as one number is split (time grows with the square)
_MAX_PAIRED_ROWS = 4  # rows of a factor of unknown structure up to which all its ordered pairs are used
_MAX_PAIRS = 2**12  # pairs of rows of the whole product up to which they are listed
_BLOCK_CELLS = 2**20  # cells of the first channel of a cascade that are computed at a time
_EXTENDED_EPSILON = float(np.finfo(np.longdouble).eps)  # twice the unit roundoff of extended precision
_STIRLING = tuple(np.longdouble(a) / b for a, b in ((1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188),
                                                    (-691, 360360), (1, 156)))  # fmt: skip  # of log n!
_HALF_LOG_2PI = np.log(2 * np.arccos(np.longdouble(-1))) / 2  # in extended precision


def cascade(first: AnyChannel, post: AnyChannel | ArrayLike) -> AnyChannel:
    """``first`` and then ``post``: a channel, a row-stochastic matrix or new labels."""
    if isinstance(post, AnyChannel):
        second: AnyChannel = post
    else:
        step = validate.array("post", post)
        if step.ndim == 1:
            return _relabelled(first, step)
        second = validate.with_argument_name("matrix", "post", lambda: Channel(step))
    if second.inputs != first.outputs:
        raise ShapeError(
            f"post must take the {validate.shown(first.outputs)} releases of the channel before it; got one of "
            f"{validate.shown(second.inputs)} secrets. Pass one row a release."
        )
    closed = first._closed_cascade(second)
    if closed is not None:
        return closed
    cells = _empty_cells(first.inputs, second.outputs, second.inputs)
    transposed = np.ascontiguousarray(np.asarray(second.matrix(), dtype=np.float64).T)
    for start, stop in _row_blocks(first):
        cells[start:stop] = _matrix_product.product(first.rows(start, stop), transposed)
    cells.setflags(write=False)
    return Channel(cells)


def _relabelled(first: AnyChannel, labels: NDArray[Any]) -> Channel:
    remedy = "Pass one natural number a release, or a matrix of two dimensions."
    if labels.size != first.outputs:
        raise ShapeError(
            f"post must have one label for each of the {validate.shown(first.outputs)} releases; got {labels.size}. "
            f"{remedy}"
        )
    labels = validate.integers("labels of post", labels, constraint="integers of at least 0", remedy=remedy)
    cells = _empty_cells(first.inputs, int(labels.max()) + 1, 0)
    cells[:] = 0.0
    order = np.argsort(labels, kind="stable")
    used, starts = np.unique(labels[order], return_index=True)
    for start, stop in _row_blocks(first):
        block = first.rows(start, stop)
        cells[start:stop, used] = np.add.reduceat(block[:, order], starts, axis=1, dtype=np.float64)
    cells.setflags(write=False)
    return Channel(cells)


def _row_blocks(channel: AnyChannel) -> Iterable[tuple[int, int]]:
    step = max(1, _BLOCK_CELLS // channel.outputs)
    return ((start, min(start + step, channel.inputs)) for start in range(0, channel.inputs, step))


def _empty_cells(inputs: int, outputs: int, further_rows: int) -> FloatArray:
    """A matrix for a cascade, if it fits in memory together with a second step of so many rows."""
    validate.memory("cascade", min((inputs + further_rows) * outputs * 8, 2**1000),
                     "Merge releases of the second step, or take fewer secrets.")  # fmt: skip
    return np.empty((inputs, outputs))


class ProductChannel(AnyChannel):
    """Independent channels side by side, each of them any number of times.

    Parameters
    ----------
    factors : sequence of AnyChannel
        The channels in order; products among them are flattened.
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
    >>> q.inputs == 2**200, round(q.extreme_log_ratios().ldp_epsilon, 9)
    (True, 20.0)
    >>> q.type_classes()
    <TypeClasses: 1 classes of releases, 201 groups of secrets>
    """

    __slots__ = _fields = ("factors", "powers")

    factors: tuple[AnyChannel, ...]
    powers: tuple[int, ...]

    def __init__(self, factors: Sequence[AnyChannel], powers: ArrayLike | None = None) -> None:
        channels = validate.sequence("factors", factors, "channels")
        for factor in channels:
            validate.instance("factors", factor, AnyChannel)
        if not channels:
            raise ShapeError("factors must have at least one entry; got none. Pass one channel for each part.")
        copies = validated_powers(powers, len(channels), MAX_COPIES)
        flat: list[tuple[AnyChannel, int]] = []
        for factor, power in zip(channels, copies, strict=True):
            if not isinstance(factor, ProductChannel):
                flat.append((factor, power))
            elif power == 1 or len(factor.factors) == 1:
                _check_listable(len(flat) + len(factor.factors))
                flat += [
                    (inner_factor, validate.count("powers", inner * power, 1, MAX_COPIES, remedy=COPIES_REMEDY))
                    for inner_factor, inner in factor._factors_with_powers()
                ]
            else:
                _check_listable(len(flat) + len(factor.factors) * power)
                flat += list(factor._factors_with_powers()) * power
        self._set(factors=tuple(inner_factor for inner_factor, _ in flat), powers=tuple(power for _, power in flat))

    def _input_count(self) -> int:
        check_countable("inputs", self._log2_shape()[0], _MAX_COUNT_BITS, self)
        return math.prod(factor.inputs**power for factor, power in self._factors_with_powers())

    def _output_count(self) -> int:
        check_countable("outputs", self._log2_shape()[1], _MAX_COUNT_BITS, self)
        return math.prod(factor.outputs**power for factor, power in self._factors_with_powers())

    @property
    def mass_gap(self) -> float:
        """Largest distance of the sum of a row from 1."""
        return math.expm1(sum(power * math.log1p(factor.mass_gap) for factor, power in self._factors_with_powers()))

    def _log2_shape(self) -> tuple[float, float]:
        logs = [(factor._log2_shape(), float(power)) for factor, power in self._factors_with_powers()]
        inputs, outputs = (sum(power * pair[side] for pair, power in logs) for side in (0, 1))
        return inputs, outputs

    def _factors_with_powers(self) -> Iterable[tuple[AnyChannel, int]]:
        return zip(self.factors, self.powers, strict=True)

    def _factor_of_coordinates(self) -> list[AnyChannel]:
        """The factor of each coordinate."""
        coordinates = sum(self.powers)
        if coordinates > _MAX_COORDINATES:
            raise DomainError(
                f"powers must be at most {_MAX_COORDINATES} copies where coordinates are enumerated; got "
                f"{validate.shown(coordinates)}. Ask for quantities, which count equal copies together."
            )
        return [factor for factor, power in self._factors_with_powers() for _ in range(power)]

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        factors = self._factor_of_coordinates()
        logs = np.empty((stop - start, self.outputs))
        for row in range(start, stop):
            joint = np.zeros(1)
            for factor, digit in zip(factors, mixed_radix_digits(row, [f.inputs for f in factors]), strict=True):
                logs_of_factor = np.asarray(factor._rows(digit, digit + 1, True), dtype=np.float64)
                joint = (joint[:, None] + logs_of_factor).reshape(-1)
            logs[row - start] = joint
        return logs

    def column(self, output: ArrayLike) -> ProductColumn:
        """Log likelihoods of one release: the sums of one column for each coordinate.

        Parameters
        ----------
        output : int or sequence
            The release, as its number or with one release a coordinate.
        """
        factors = self._factor_of_coordinates()
        if isinstance(output, (int, np.integer)) and not isinstance(output, bool):
            if len(factors) > _MAX_DIGITS:
                raise DomainError(
                    f"output must hold one release for each of the {len(factors)} coordinates where they exceed "
                    f"{_MAX_DIGITS}; got {validate.shown(output)}. Pass a sequence instead of a number."
                )
            releases: list[Any] = mixed_radix_digits(self._output_index(output), [factor.outputs for factor in factors])
        else:
            releases = list(validate.sequence("output", output, "releases"))
            if len(releases) != len(factors):
                raise ShapeError(
                    f"output must have one entry for each of the {len(factors)} coordinates; got {len(releases)}. "
                    "Pass one release a coordinate."
                )
        return ProductColumn(tuple(factor.column(release) for factor, release in zip(factors, releases, strict=True)))

    def sample(self, secrets: ArrayLike, *, rng: random_streams.RNGLike = None) -> Any:
        """One release for each tuple of secrets along the last axis, shape (..., coordinates).

        Returns an array of the same shape, or a tuple of arrays where some releases are sets or bits.
        """
        t = len(self._factor_of_coordinates())
        tuples: NDArray[Any] = validate.array("secrets", secrets)
        if tuples.size == 0 and tuples.shape[-1:] == (0,):
            tuples = np.empty((0, t), dtype=np.int64)
        if tuples.ndim == 0 or tuples.shape[-1] != t:
            raise ShapeError(
                f"secrets must be tuples of {t} along the last axis; got shape {tuples.shape}. "
                "Pass one secret a coordinate."
            )
        generator = random_streams.generator(rng)
        releases: list[NDArray[Any]] = []
        for factor, power in self._factors_with_powers():
            part = factor.sample(tuples[..., len(releases) : len(releases) + power], rng=generator)
            releases += [part[(slice(None),) * (tuples.ndim - 1) + (i,)] for i in range(power)]
        integers = all(array.shape == tuples.shape[:-1] for array in releases)
        return np.stack(releases, axis=-1) if integers else tuple(releases)

    def _closed_cascade(self, step: AnyChannel) -> AnyChannel | None:
        if not isinstance(step, ProductChannel) or step.powers != self.powers:
            return None
        pairs = list(zip(self.factors, step.factors, strict=True))
        if any(factor.outputs != next_factor.inputs for factor, next_factor in pairs):
            return None
        return ProductChannel([factor.then(next_factor) for factor, next_factor in pairs], self.powers)

    def _validated_prior(self, prior: Any) -> Any:
        if isinstance(prior, tuple):
            if len(prior) != len(self.factors):
                raise ShapeError(
                    f"prior must be a tuple with one entry for each of the {len(self.factors)} factors; got "
                    f"{len(prior)}. Pass one prior a factor, or None."
                )
            return tuple(factor._validated_prior(part) for factor, part in zip(self.factors, prior, strict=True))
        return None if prior is None else validated_prior(prior, self.inputs)

    def _factors_with_priors(self, prior: Any) -> list[tuple[AnyChannel, int, Any]] | None:
        """Factors, powers and their priors; None for a prior that is not a product."""
        if prior is not None and not isinstance(prior, tuple):
            return None
        return list(zip(self.factors, self.powers, prior or (None,) * len(self.factors), strict=True))

    def _type_classes(self, prior: Any) -> TypeClasses | None:
        factors = self._factors_with_priors(prior)
        if factors is None:
            return super()._type_classes(prior)
        joint: TypeClasses | None = None
        for factor, power, factor_prior in factors:
            classes = factor._type_classes(factor_prior)
            classes = None if classes is None else _classes_of_power(classes, power)
            if classes is None:
                return None
            joint = classes if joint is None else _classes_of_product(joint, classes)
            if joint is None:
                return None
        return joint

    def _extreme_log_ratios(self, prior: Any) -> ExtremeLogRatios | None:
        factors = self._factors_with_priors(prior)
        if factors is None:
            return super()._extreme_log_ratios(prior)
        extremes = []
        for factor, power, factor_prior in factors:
            extreme = factor._extreme_log_ratios(factor_prior)
            if extreme is None:
                return None
            extremes.append((extreme, power))
        ldp, support, plus, minus, error = (
            _sum_or_infinity([power * getattr(extreme, name) for extreme, power in extremes])
            for name in ("ldp_epsilon", "ldp_on_support", "xi_plus", "xi_minus", "error")
        )
        rounding = max(extreme.rounding for extreme, _ in extremes) + 2e-15
        return ExtremeLogRatios(ldp, support, plus, minus, rounding, error)

    def dominating_pairs(self) -> tuple[RowPair, ...] | None:
        """One pair of every factor at each of its coordinates, in all combinations.

        Equal rows are easier to tell apart nowhere, so factors with few rows contribute all their ordered pairs.
        """
        factors = []
        for factor, power in self._factors_with_powers():
            pairs = factor.dominating_pairs() or _all_ordered_pairs(factor)
            if pairs is None:
                return None
            factors.append((pairs, power))
        return product_pairs(factors)

    def __repr__(self) -> str:
        parts = [f"{factor!r}" + (f" ** {power}" if power > 1 else "") for factor, power in self._factors_with_powers()]
        return f"<ProductChannel: {' x '.join(parts)}>"


def _sum_or_infinity(terms: list[float]) -> float:
    """The sum, infinite where it exceeds the largest double."""
    try:
        return math.fsum(terms)
    except OverflowError:
        return math.inf


def _check_listable(factors: int) -> None:
    """Refuse a product with too many factors to list."""
    if factors > _MAX_COORDINATES:
        raise DomainError(
            f"factors must be at most {_MAX_COORDINATES}, with all products flattened; got "
            f"{validate.shown(factors)}. Put equal factors together with powers, as in q.power(1000)."
        )


def mixed_radix_digits(number: int, bases: list[int]) -> list[int]:
    """Digits of a number in mixed bases, the most significant first."""
    digits = []
    for base in reversed(bases):
        number, digit = divmod(number, base)
        digits.append(digit)
    return digits[::-1]


def _count_compositions(total: int, parts: int) -> int:
    return math.comb(total + parts - 1, parts - 1)


def compositions(total: int, parts: int) -> IntArray:
    """All weak compositions of a total into this many natural numbers, shape (compositions, parts)."""
    if parts == 1:
        return np.array([[total]])
    if parts == 2:
        first_of_two = np.arange(total + 1)
        return np.stack([first_of_two, total - first_of_two], axis=1)
    blocks = []
    for first in range(total + 1):
        rest = compositions(total - first, parts - 1)
        blocks.append(np.concatenate([np.full((len(rest), 1), first), rest], axis=1))
    return np.concatenate(blocks)


def log_multinomials(total: int, counts: IntArray) -> tuple[LongDoubleArray, float]:
    """Logs of the multinomial coefficients of rows of counts, in extended precision, and a bound on their errors."""
    table = _log_factorials(total)
    error = 16 * _EXTENDED_EPSILON * (2.0 * float(table[total]) + 3.0 * counts.shape[1])
    return table[total] - table[counts].sum(axis=1), error


def _log_factorials(largest: int) -> LongDoubleArray:
    """Logs of 0! to ``largest``!, within 12 roundings of themselves: logs of integers, then Stirling's series."""
    logs = np.arange(largest + 1).astype(np.longdouble)
    tabulated = min(largest + 1, 16)
    logs[:tabulated] = np.log(np.array([math.factorial(i) for i in range(tabulated)], dtype=np.longdouble))
    n = logs[tabulated:]
    inverse, series = 1 / n, np.zeros_like(n)
    for coefficient in _STIRLING[::-1]:
        series = series * inverse * inverse + coefficient
    logs[tabulated:] = (n + 0.5) * np.log(n) - n + _HALF_LOG_2PI + series * inverse
    return np.asarray(logs)


def weighted_sums(counts: IntArray, logs: FloatArray) -> LongDoubleArray:
    """Sums of counts times logs in extended precision, where a count of 0 times -inf is 0."""
    finite = np.where(np.isfinite(logs), logs, 0.0).astype(np.longdouble)
    sums = np.zeros(len(counts), dtype=np.longdouble)
    for log, count in zip(finite, counts.T, strict=True):
        sums += log * count
    with np.errstate(invalid="ignore"):
        for log, count in zip(logs, counts.T, strict=True):
            if not np.isfinite(log):
                sums = sums + np.where(count > 0, log, 0.0)
    return np.asarray(np.where(np.isnan(sums), 0.0, sums))


def product_pairs(factors: Sequence[tuple[Sequence[RowPair], int]]) -> tuple[RowPair, ...] | None:
    """One of the pairs of rows of each factor at each of its coordinates; None for too many combinations or classes."""
    joint = [RowPair.trivial()]
    for pairs, power in factors:
        powers = _pairs_of_power([_possible(pair) for pair in pairs], power)
        if powers is None or len(powers) * len(joint) > _MAX_PAIRS:
            return None
        if math.prod(sum(pair.log_p.size for pair in listed) for listed in (powers, joint)) > _MAX_GROUPS:
            return None
        joint = [_product_pair(pair, other) for other in powers for pair in joint]
    return tuple(joint)


def _all_ordered_pairs(channel: AnyChannel) -> tuple[RowPair, ...] | None:
    """All ordered pairs of rows of a channel with few rows; None if there are too many."""
    if channel.inputs > _MAX_PAIRED_ROWS or channel.outputs > _MAX_CLASSES:
        return None
    rows = channel._log_rows(0, channel.inputs)
    return ordered_pairs(rows) if len(rows) > 1 else (RowPair.trivial(),)


def _pairs_of_power(pairs: Sequence[RowPair], copies: int) -> list[RowPair] | None:
    """Every assignment of the pairs to ``copies`` coordinates; None for too many assignments or classes."""
    if _count_compositions(copies, len(pairs)) > _MAX_PAIRS:
        return None
    powers: list[RowPair] = []
    size = 0
    for counts in compositions(copies, len(pairs)).tolist():
        size += math.prod(_count_compositions(n, pair.log_p.size) for pair, n in zip(pairs, counts, strict=True))
        if size > _MAX_GROUPS:
            return None
        pair = RowPair.trivial()
        for row_pair, count in zip(pairs, counts, strict=True):
            if count:
                pair = _product_pair(pair, _pair_power(row_pair, count))
        powers.append(pair)
    return powers


def _possible(pair: RowPair) -> RowPair:
    """The pair without the releases of probability 0 in both rows."""
    occurs = (pair.log_p > -np.inf) | (pair.log_q > -np.inf)
    return pair if occurs.all() else RowPair(*(getattr(pair, name)[occurs] for name in RowPair._fields))


def _pair_power(pair: RowPair, copies: int) -> RowPair:
    """The pair of rows of ``copies`` coordinates; classes are by the numbers of coordinates in each class."""
    counts = compositions(copies, pair.log_p.size)
    multinomials, error = log_multinomials(copies, counts)
    p, q, ratio = (weighted_sums(counts, logs) for logs in (pair.log_p, pair.log_q, pair.log_ratio))
    # sums in extended precision; each log is rounded once more
    log_p, log_q = (np.asarray(logs + multinomials, dtype=np.float64) for logs in (p, q))
    size = [np.abs(np.where(np.isfinite(x), x, 0)).astype(np.float64) for x in (log_p, log_q, p, q, ratio)]
    log_error = _matrix_product.matrix_vector(counts, pair.log_error) + error
    log_error += UNIT_ROUNDOFF * (size[0] + size[1]) + 8 * _EXTENDED_EPSILON * (size[2] + size[3])
    finite_ratio = np.where(np.isfinite(pair.log_ratio), pair.log_ratio, 0.0)
    magnitude = _matrix_product.matrix_vector(counts, np.abs(finite_ratio))
    ratio_error = _matrix_product.matrix_vector(counts, pair.ratio_error) + 2 * UNIT_ROUNDOFF * size[4]
    ratio_error += 8 * _EXTENDED_EPSILON * magnitude
    return RowPair(log_p, log_q, ratio, log_error, ratio_error)


def _product_pair(first: RowPair, second: RowPair) -> RowPair:
    """The pair of rows of the product of two channels."""
    with np.errstate(invalid="ignore"):
        p, q, ratio, log_error, ratio_error = (
            np.add.outer(getattr(first, name), getattr(second, name)).reshape(-1) for name in RowPair._fields
        )
    ratio = np.where(np.isnan(ratio), 0.0, ratio)
    sizes = [np.where(np.isfinite(logs), np.abs(logs), 0.0) for logs in (p, q, ratio)]
    log_error = log_error + UNIT_ROUNDOFF * (sizes[0] + sizes[1])
    return RowPair(p, q, ratio, log_error, ratio_error + UNIT_ROUNDOFF * sizes[2])


def _classes_of_power(factor: TypeClasses, copies: int) -> TypeClasses | None:
    """Type classes of ``copies`` copies, by the number of copies in each class and of secrets in each group."""
    if copies == 1:
        return factor
    classes = len(factor.log_total)
    sizes = np.diff(factor.starts).tolist()
    if _count_compositions(copies, classes) > _MAX_CLASSES:
        return None
    types = compositions(copies, classes)
    widths = [math.prod(map(_count_compositions, counts, sizes)) for counts in types.tolist()]
    if sum(widths) > _MAX_GROUPS:
        return None
    multinomials, _ = log_multinomials(copies, types)
    columns: list[list[Any]] = [[], [], [], []]
    cache: dict[tuple[int, int], tuple[Any, ...]] = {}
    for counts in types.tolist():
        sums: tuple[Any, ...] = (np.zeros(1),) * 4
        for key in enumerate(counts):
            if key not in cache:
                cache[key] = _groups_of_power(factor, slice(factor.starts[key[0]], factor.starts[key[0] + 1]), key[1])
            sums = tuple(np.add.outer(a, b).reshape(-1) for a, b in zip(sums, cache[key], strict=True))
        for column, part in zip(columns, sums, strict=True):
            column.append(part)
    relative, log_mass, largest, smallest = (np.asarray(np.concatenate(column), dtype=np.float64) for column in columns)
    return TypeClasses(
        weighted_sums(types, factor.log_outputs) + multinomials,
        weighted_sums(types, factor.log_total) + multinomials,
        np.concatenate([[0], np.cumsum(widths)]), relative, np.exp(log_mass), log_mass, largest, smallest,
        omitted_mass=min(1.0, copies * factor.omitted_mass), gap=math.expm1(copies * math.log1p(factor.gap)),
        error=copies * factor.error,
    )  # fmt: skip


def _groups_of_power(factor: TypeClasses, groups: slice, count: int) -> tuple[LongDoubleArray, ...]:
    """Log relative likelihood, log mass, largest and smallest of ``count`` secrets in the groups of one class."""
    counts = compositions(count, groups.stop - groups.start)
    multinomials, _ = log_multinomials(count, counts)
    relative, log_mass, largest, smallest = (
        weighted_sums(counts, logs[groups])
        for logs in (factor.log_relative, factor.log_mass, factor.log_largest, factor.log_smallest)
    )
    return relative, log_mass + multinomials, largest, smallest


def _classes_of_product(first: TypeClasses, second: TypeClasses) -> TypeClasses | None:
    """Type classes of a product: every class of ``first`` with every class of ``second``."""
    if len(first.mass) * len(second.mass) > _MAX_GROUPS or len(first.log_total) * len(second.log_total) > _MAX_GROUPS:
        return None
    sizes = np.multiply.outer(np.diff(first.starts), np.diff(second.starts)).reshape(-1)
    left, right = [], []
    for a, b in zip(first.starts[:-1], first.starts[1:], strict=True):
        for c, d in zip(second.starts[:-1], second.starts[1:], strict=True):
            left.append(np.repeat(np.arange(a, b), d - c))
            right.append(np.tile(np.arange(c, d), b - a))
    i, j = np.concatenate(left), np.concatenate(right)
    return TypeClasses(
        np.add.outer(first.log_outputs, second.log_outputs).reshape(-1),
        np.add.outer(first.log_total, second.log_total).reshape(-1), np.concatenate([[0], np.cumsum(sizes)]),
        first.log_relative[i] + second.log_relative[j], first.mass[i] * second.mass[j],
        first.log_mass[i] + second.log_mass[j], first.log_largest[i] + second.log_largest[j],
        first.log_smallest[i] + second.log_smallest[j],
        omitted_mass=min(1.0, first.omitted_mass + second.omitted_mass),
        gap=first.gap + second.gap + first.gap * second.gap, error=first.error + second.error,
    )  # fmt: skip
