"""Quantities of stacks of channels under stacks of priors: one validation, then one kernel call a block of channels.

Notation: the leading axes of a stack and of its priors broadcast; a pair is a channel with a prior at one position.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ...base import parallel, validate
from ...base.errors import DomainError, ShapeError
from ...base.estimate import Estimate, Kind, Unit
from ...base.numerics import BoolArray, FloatArray, IndexArray, RealArray
from ...base.parallel import Progress
from ...base.values import Index, broadcast_positions, distinct_rows, with_position
from ...channels import Channel, ChannelStack
from ...distributions import Pmf, PmfStack
from ...kernels import _channel_quantities
from . import dense_quantities as dense
from .channel_with_prior import ChannelWithPrior, Mechanism, Prior, channel_with_prior, estimate
from .quantities import UNITS, brackets, check_relations

_CELLS_PER_TASK = 2**18  # cells of the channels in one task: about a millisecond
_PAIRS_PER_TASK = 4096  # pairs in one task at most: their results take 1 MB
_ZERO = np.zeros(1, dtype=np.intp)  # the position of the only channel and prior of a stack of one
_SUM_TOLERANCE = validate.sum_tolerance(np.float64)  # how far the sum of a prior may be from 1


class StackWithPriors(NamedTuple):
    """Channels (c, n, m) and checked priors (p, n), and which of them make each pair of the broadcast shape."""

    cells: RealArray  # (c, n, m)
    gaps: FloatArray  # (c,), what sums of rows miss 1 by
    priors: FloatArray | None  # (p, n); None for the uniform prior
    shape: tuple[int, ...]
    channel: IndexArray  # (s,)
    prior: IndexArray  # (s,)
    errors: Mapping[Index, str]  # of the pairs whose channel or prior is invalid

    @classmethod
    def of_one(cls, model: ChannelWithPrior) -> StackWithPriors:
        """The stack of one written channel with its prior."""
        channel: Any = model.channel
        priors = None if model.prior is None else model.prior[None]
        return cls(channel.cells[None], np.array([channel.mass_gap]), priors, (), _ZERO, _ZERO, {})

    @property
    def size(self) -> int:
        """Number of pairs."""
        return self.channel.size

    def pair(self, index: int) -> ChannelWithPrior:
        """The channel and the prior of one pair, by its position in the flat order; both are valid."""
        prior = None if self.priors is None else self.priors[self.prior[index]]
        return ChannelWithPrior(Channel(self.cells[self.channel[index]]), prior)

    @property
    def invalid(self) -> list[int]:
        """Flat positions of the pairs that have an error."""
        return [int(np.ravel_multi_index(index, self.shape)) if index else 0 for index in self.errors]

    @property
    def prior_gaps(self) -> FloatArray:
        """What the prior of each pair misses 1 by, shape (s,)."""
        gaps: FloatArray = np.zeros(1) if self.priors is None else _channel_quantities.prior_gaps(self.priors)
        return gaps[self.prior]

    def weights(self, chosen: IndexArray) -> FloatArray:
        """Prior probabilities of the secrets for the chosen pairs, by their flat positions."""
        n = self.cells.shape[1]
        return np.full((chosen.size, n), 1.0 / n) if self.priors is None else self.priors[self.prior[chosen]]

    def columns(self, part: slice) -> tuple[FloatArray, IndexArray, IndexArray]:
        """Statistics of the columns of a block of pairs, as the kernel has them; status 1 where it has none."""
        _, n, m = self.cells.shape
        if not dense.is_one_block(n * m):
            none = np.empty(0, dtype=np.intp)
            return np.empty(0), none, np.ones(part.stop - part.start, dtype=np.intp)
        result: tuple[FloatArray, IndexArray, IndexArray] = _channel_quantities.columns_of_channels(
            self.cells, self.priors, self.channel[part], self.prior[part]
        )
        return result

    def by_support(self, chosen: IndexArray) -> Iterator[tuple[IndexArray, BoolArray]]:
        """The chosen pairs in groups whose priors are positive for the same secrets (n,)."""
        patterns, group = distinct_rows(self.weights(chosen) > 0)
        for number, pattern in enumerate(patterns):
            yield chosen[group == number], pattern

    def blocks(self, operations: int = 1) -> list[slice]:
        """Blocks of pairs, each a task, for work of this many operations a cell."""
        cells = self.cells.shape[1] * self.cells.shape[2] * operations
        return parallel.blocks(self.size, max(1, min(_PAIRS_PER_TASK, _CELLS_PER_TASK // cells)))


def stack_with_priors(prior: Prior, stack: ChannelStack) -> StackWithPriors:
    """The pairs of a stack and its priors of shape (..., n), both checked."""
    cells = stack.cells.reshape(-1, stack.inputs, stack.outputs)
    gaps = np.ascontiguousarray(stack.mass_gaps).reshape(-1)
    if prior is None:
        zeros = np.zeros(stack.size, dtype=np.intp)
        return StackWithPriors(cells, gaps, None, stack.shape, np.arange(stack.size), zeros, stack.errors)
    values = prior.probabilities if isinstance(prior, (Pmf, PmfStack)) else validate.array("prior", prior)
    if values.dtype.kind not in "fiub":
        values = validate.real("prior", prior, "probabilities between 0 and 1", answer=False)
    if values.ndim == 0 or values.shape[-1] != stack.inputs:
        raise ShapeError(
            f"prior must have one entry for each of the {stack.inputs} secrets along its last axis; got shape "
            f"{values.shape}. Pass None for the uniform distribution."
        )
    leading = values.shape[:-1]
    try:
        shape = np.broadcast_shapes(stack.shape, leading)
    except ValueError:
        raise ShapeError(
            f"prior must have leading axes that broadcast with those of the stack; got {leading} and {stack.shape}. "
            "Add axes of length 1 for a grid."
        ) from None
    validate.grid("prior with the stack", shape)
    priors = np.ascontiguousarray(values, dtype=np.float64).reshape(-1, stack.inputs)
    prior_gaps = _channel_quantities.prior_gaps(priors)
    invalid = ~((prior_gaps >= 0) & (prior_gaps <= _SUM_TOLERANCE))
    channel, position = (
        broadcast_positions(source_shape, shape).reshape(-1) for source_shape in (stack.shape, leading)
    )
    errors: dict[Index, str] = {}
    if stack.errors or invalid.any():
        texts = _prior_errors(priors, invalid, leading, stack)
        of_channels = {int(np.ravel_multi_index(index, stack.shape)): text for index, text in stack.errors.items()}
        for flat in np.flatnonzero(np.isin(channel, list(of_channels)) | invalid[position]).tolist():
            text = of_channels.get(int(channel[flat])) or texts[int(position[flat])]
            errors[tuple(int(i) for i in np.unravel_index(flat, shape))] = text
        priors = np.where(invalid[:, None], 1.0 / stack.inputs, priors)
    return StackWithPriors(cells, gaps, priors, shape, channel, position, MappingProxyType(errors))


def _prior_errors(priors: FloatArray, invalid: Any, leading: tuple[int, ...], stack: ChannelStack) -> dict[int, str]:
    """The texts of invalid priors; raises the first of them unless the stack records errors."""
    texts: dict[int, str] = {}
    plain = Channel(np.ones((stack.inputs, 1)))
    for row in np.flatnonzero(invalid).tolist():
        try:
            channel_with_prior(priors[row], plain)
        except DomainError as error:
            if not stack.records:
                index = tuple(int(i) for i in np.unravel_index(row, leading))
                count = f" ({int(invalid.sum())} of {invalid.size} rows)"
                raise DomainError(with_position(str(error), "row", index, count)) from None
            texts[row] = str(error)
    return texts


def quantity(name: str, prior: Prior, mechanism: Mechanism, n_jobs: int | None, progress: Progress) -> Estimate:
    """The estimate of one quantity, from the arguments of a public function."""
    return quantities((name,), prior, mechanism, n_jobs, progress)[name]


def quantities(
    names: Collection[str], prior: Prior, mechanism: Mechanism, n_jobs: int | None, progress: Progress
) -> dict[str, Estimate]:
    """Estimates of several quantities of a channel, or of a stack of them."""
    parallel.checked(n_jobs, progress)
    if isinstance(mechanism, ChannelStack):
        return stack_quantities(prior, mechanism, names, n_jobs, progress)
    model = channel_with_prior(prior, mechanism)
    result = check_relations(brackets(model, names, n_jobs=n_jobs, progress=progress), model)
    return {name: estimate(result[name], UNITS[name]) for name in names}


def stack_quantities(
    prior: Prior, stack: ChannelStack, names: Collection[str], n_jobs: int | None, progress: Progress
) -> dict[str, Estimate]:
    """Estimates of the named quantities, of the broadcast shape of the stack and the priors."""
    pairs = stack_with_priors(prior, stack)
    validate.memory("the answers", 24 * len(names) * pairs.size, "Pass fewer channels at a time.")
    wanted = dense.wanted(names)
    rows = [dense.NAMES.index(name) for name in names]
    one_block = dense.is_one_block(stack.inputs * stack.outputs)

    def of_block(part: slice) -> FloatArray:
        count = part.stop - part.start
        out, status = np.empty((count, len(dense.NAMES), 3)), np.ones(count, dtype=np.int8)
        if one_block:
            _channel_quantities.of_channels(
                pairs.cells, pairs.priors, pairs.gaps, _SUM_TOLERANCE, wanted, pairs.channel[part], pairs.prior[part],
                out, status,
            )
        numbers = out[:, rows]
        for index in np.flatnonzero(status).tolist():  # a column has to be scaled, or there is more than one block
            result = brackets(pairs.pair(part.start + index), names)
            numbers[index] = [result[name][:3] for name in names]
        return numbers

    parts = list(parallel.ordered_map(of_block, pairs.blocks(), n_jobs=n_jobs, progress=progress, shared=True))
    numbers = np.concatenate([np.empty((0, len(rows), 3)), *parts])
    return {
        name: stack_estimate(pairs, numbers[:, column].T, *dense.KINDS[name], UNITS[name])
        for column, name in enumerate(names)
    }


def pairs_with_levels(pairs: StackWithPriors, levels: FloatArray) -> tuple[StackWithPriors, FloatArray]:
    """The pairs broadcast with the leading axes of ``levels``, and the levels (s, e) of each, its last axis."""
    rows = np.atleast_1d(levels)
    try:
        shape = np.broadcast_shapes(pairs.shape, rows.shape[:-1])
    except ValueError:
        raise ShapeError(
            f"epsilon must have leading axes that broadcast with those of the stack; got {rows.shape[:-1]} and "
            f"{pairs.shape}. Its last axis belongs to each channel: add axes of length 1 before it for a grid."
        ) from None
    validate.grid("epsilon with the stack", (*shape, rows.shape[-1]))
    if shape != pairs.shape:
        position = broadcast_positions(pairs.shape, shape)
        texts = dict(zip(pairs.invalid, pairs.errors.values(), strict=True))
        errors = {index: texts[int(flat)] for index, flat in np.ndenumerate(position) if int(flat) in texts}
        flat = position.reshape(-1)
        pairs = pairs._replace(shape=shape, channel=pairs.channel[flat], prior=pairs.prior[flat], errors=errors)
    spread = np.broadcast_to(rows, (*shape, rows.shape[-1]))
    return pairs, np.ascontiguousarray(spread).reshape(pairs.size, rows.shape[-1])


def estimates_of_pairs(
    pairs: StackWithPriors, levels: FloatArray, compute: Callable[[ChannelWithPrior, FloatArray], Estimate],
    epsilon: Any, n_jobs: int | None, progress: Progress,
) -> Estimate:
    """The estimates that ``compute`` gives of each pair at its levels, one task a pair; of the shape of epsilon."""
    invalid = set(pairs.invalid)

    def of_pair(index: int) -> Estimate | None:
        return None if index in invalid else compute(pairs.pair(index), levels[index])

    numbers = np.full((3, *levels.shape), np.nan)
    methods: dict[str, None] = {}
    kind: Kind = "exact"
    results = parallel.ordered_map(of_pair, range(pairs.size), n_jobs=n_jobs, progress=progress, shared=True)
    for index, result in enumerate(results):
        if result is not None:
            numbers[:, index] = result.arrays()
            methods[result.method] = None
            kind = "certified" if result.kind == "certified" else kind
    numbers = numbers if np.ndim(epsilon) else numbers[..., 0]
    return stack_estimate(pairs, numbers, kind, "; ".join(methods) or "no channel", "probability")


def stack_estimate(pairs: StackWithPriors, numbers: FloatArray, kind: Kind, method: str, unit: Unit) -> Estimate:
    """The estimate of value, lower and upper bound (3, s, ...): NaN for invalid pairs, whose texts are in ``cost``."""
    numbers = np.array(numbers.reshape(3, *pairs.shape, *numbers.shape[2:]), order="C")
    if pairs.errors:
        numbers[:, *np.array(list(pairs.errors), dtype=np.intp).T] = np.nan
    cost = {"errors": tuple(pairs.errors.items())} if pairs.errors else {}
    return Estimate._of_arrays(*numbers, kind=kind, unit=unit, method=method, cost=cost)
