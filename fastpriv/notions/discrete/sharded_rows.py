"""The rows of a ``ShardedChannel``: the passes of ``dense_quantities``, shard by shard.

A shard is a range of blocks, of the same rows as those of a written channel. A worker reads them one by one and
returns the states of its nodes in the tree of ``block_tree``: a few numbers for each release, whatever the number
of secrets. The first pass also adds up the prior and checks the sums of the rows.
"""

# bounds: tested by contracts/test_sharded_channels - rounding of the sum of a prior, as in ``validate.sum_gap``

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...base import parallel, validate
from ...base.errors import DomainError, ShapeError
from ...base.executors import ExecutorLike
from ...base.numerics import FloatArray, RealArray
from ...base.parallel import Progress
from ...channels import ShardedChannel, ShardedLikelihood
from ...channels.base import largest_gap
from ...channels.vector_sources import ConcatenatedSource, sources_of
from ...distributions import Pmf
from ...posteriors.block_tree import BlockTree, Node
from ...posteriors.shards import concatenated, opened_store, run_pass, shard_ranges
from .channel_with_prior import LEAST_PRIOR, ChannelWithPrior, channel_with_prior
from .dense_quantities import (
    SAMPLE_ROWS,
    PriorFacts,
    RowBlocks,
    State,
    has_logs,
    merged_facts,
    prior_facts,
    rows_of_block,
)

__all__ = ["ShardedRowBlocks", "is_sharded", "model_of_rows"]

_SEARCHED = 2**18  # entries of a prior that are read at a time in search of the first positive one


def is_sharded(mechanism: Any) -> bool:
    """Whether it is a channel in shards."""
    return isinstance(mechanism, ShardedChannel)


def model_of_rows(prior: Any, mechanism: Any) -> ChannelWithPrior:
    """``channel_with_prior`` for quantities that passes through the rows give, of channels in shards too."""
    return _sharded_model(prior, mechanism) if is_sharded(mechanism) else channel_with_prior(prior, mechanism)


def _sharded_model(prior: Any, channel: ShardedChannel) -> ChannelWithPrior:
    """The channel with its prior as a source; None is the uniform one."""
    if prior is None:
        return ChannelWithPrior(channel, None)  # type: ignore[arg-type]
    if isinstance(prior, ShardedLikelihood):
        if prior.log:
            raise DomainError(
                "prior must be made of probabilities; got a ShardedLikelihood of logarithms. Pass log=False with it."
            )
        source = concatenated("prior", prior.parts)
    else:
        values = prior.probabilities if isinstance(prior, Pmf) else prior
        source = ConcatenatedSource("prior", sources_of("prior", values))
    if source.length != channel.inputs:
        raise ShapeError(
            f"prior must have one entry for each of the {channel.inputs} secrets; got {source.length}. "
            "Pass None for the uniform distribution."
        )
    return ChannelWithPrior(channel, source)  # type: ignore[arg-type]


class ShardedRowBlocks(RowBlocks):
    """``RowBlocks`` of a channel in shards, with a stage of the store for each pass."""

    def __init__(
        self, model: ChannelWithPrior, n_jobs: int | None = None, progress: Progress = None, *,
        executor: ExecutorLike = None, store: Any = None,
    ) -> None:  # fmt: skip
        channel: Any = model.channel
        self.n_jobs, self.progress, self.executor = n_jobs, progress, executor
        self.channel, self.source = channel, model.prior
        self.log, self.log_scale = has_logs(channel), None
        self.size, self.step = channel.inputs, rows_of_block(channel.outputs)
        count = -(-self.size // self.step)
        self.shards = shard_ranges(count, channel.shards, channel.parts)
        self.stage = 0
        self.found: PriorFacts | None = None
        self.store = opened_store(store, self._identity(count))

    def __enter__(self) -> ShardedRowBlocks:
        return self

    def __exit__(self, *error: object) -> None:
        self.store.close()

    def __getstate__(self) -> dict[str, Any]:
        """What workers are sent: the store and the executor stay."""
        return {**self.__dict__, "store": None, "executor": None, "progress": None}

    def weights(self, part: slice) -> FloatArray:
        """Prior probabilities of the secrets of a block, checked."""
        if self.source is None:
            return np.full(part.stop - part.start, 1.0 / self.size)
        prior = np.asarray(self.source.take(part.start, part.stop), dtype=np.float64)
        bad = ~((prior >= LEAST_PRIOR) & (prior <= 2.0) | (prior == 0.0))
        if bad.any():
            index = int(np.argmax(bad))
            raise DomainError(
                f"prior must be probabilities, 0 or at least {LEAST_PRIOR:g} at every secret; got "
                f"{float(prior[index])!r} at index {part.start + index}. Set it to 0 to leave the secret out."
            )
        return prior

    def slice_of(self, block: int) -> slice:
        """The rows of a block."""
        return slice(block * self.step, min((block + 1) * self.step, self.size))

    @property
    def facts(self) -> PriorFacts:
        """What the first pass found; raises if the prior does not sum to 1."""
        assert self.found is not None
        return self.found

    @cached_property
    def sample(self) -> slice:
        """Rows from which the first centre is taken."""
        begin = 0
        if self.source is not None:
            for start in range(0, self.size, _SEARCHED):
                prior = self.source.take(start, min(start + _SEARCHED, self.size))
                if (prior > 0).any():
                    begin = start + int(np.argmax(prior > 0))
                    break
            else:
                raise DomainError("prior must sum to 1; got zeros alone. Divide by the sum if they are weights.")
        return slice(begin, min(begin + SAMPLE_ROWS, self.size))

    def merged(
        self, task: Callable[[RowBlocks, slice, RealArray], State], merge: Callable[[State, State], State],
        silent: bool = False,
    ) -> State:  # fmt: skip
        """The states of all blocks, merged by the tree; the first pass finds the facts too."""
        stage, self.stage = self.stage, self.stage + 1
        work = _ShardPass(self, task, merge, with_facts=stage == 0)
        report, close = parallel.progress_reporter(self.progress, len(self.shards))
        offset = stage * len(self.shards)
        try:
            payloads = run_pass(
                work, self.shards, stage, self.store, lambda done: report(done - offset),
                executor=self.executor, n_jobs=self.n_jobs,
            )  # fmt: skip
        finally:
            close()
        tree = BlockTree(work.merged)
        for payload in payloads:
            for node in self.store.unpacked(payload, _unpacked):
                tree.add(node)
        total = tree.total()
        if stage == 0:
            self._set_facts(total[-1])
            total = total[:-1]
        return total

    def _set_facts(self, facts: FloatArray) -> None:
        gap = 0.0
        if self.source is not None:  # by halves in a block, then by halves of all blocks, in two doubles
            distance = float(abs((facts[0] - 1.0) + facts[1]))
            gap = distance * (1 + 2.0**-50) + 256 * float(np.finfo(np.longdouble).eps)
        if gap > (tolerance := validate.sum_tolerance(np.float64)):
            raise DomainError(
                f"prior must sum to 1 within {tolerance:g}; got a sum of {float(facts[0])!r}. "
                "Divide by the sum if they are weights."
            )
        self.found = PriorFacts.of(facts, gap, float(facts[4]))

    def _identity(self, blocks: int) -> dict[str, str]:
        """What the sums depend on; the first and the last block stand for the data."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr((self.log, self.source is None)).encode())
        for block in sorted({0, blocks - 1}):
            part = self.slice_of(block)
            cells = self.read(part)
            for array in (cells, self.weights(part)):
                digest.update(array.dtype.str.encode() + array.tobytes())
        return {
            "computation": "channel of shards", "secrets": str(self.size), "releases": str(self.channel.outputs),
            "number of shards": str(len(self.shards)), "data": digest.hexdigest(),
        }  # fmt: skip


@dataclass(frozen=True)
class _ShardPass:
    """The work on one shard in one pass, as other processes are sent it."""

    rows: ShardedRowBlocks
    task: Callable[[RowBlocks, slice, RealArray], State]
    merge: Callable[[State, State], State]
    with_facts: bool

    def merged(self, one: State, other: State) -> State:
        """The states of two runs of blocks, the facts last."""
        if not self.with_facts:
            return self.merge(one, other)
        return (*self.merge(one[:-1], other[:-1]), *merged_facts(one[-1:], other[-1:]))

    def __call__(self, blocks: range) -> bytes:
        tree, rows = BlockTree(self.merged), self.rows
        for number in blocks:
            part = rows.slice_of(number)
            cells = rows.read(part)
            state: State = ()
            if self.with_facts:
                gap = largest_gap(cells, rows.log, part.start)
                state = (prior_facts(rows.weights(part), part.start, gap),)
            tree.add(Node(0, number, (*self.task(rows, part, cells), *state)))
        return _packed(tree)


def _packed(tree: BlockTree) -> bytes:
    """Nodes as bytes: how many, and of each its place and its arrays, whose integers become doubles."""
    parts: list[Any] = [np.int64(len(tree.nodes))]
    for level, number, state in tree.nodes:
        parts.append(np.array([level, number, len(state)], dtype="<i8"))
        for array in state:
            shape = (1, *array.shape)[-2:]
            parts.append(np.array([array.dtype.kind == "i", array.ndim, *shape], dtype="<i8"))
            parts.append(array.astype("<f8"))
    return b"".join(part.tobytes() for part in parts)


def _unpacked(payload: bytes) -> list[Node]:
    """The inverse of ``_packed``."""
    position = 0

    def next_array(dtype: str, count: int) -> Any:
        nonlocal position
        array = np.frombuffer(payload, dtype, count, position)
        position += array.nbytes
        return array

    nodes = []
    for _ in range(int(next_array("<i8", 1)[0])):
        level, number, arrays = next_array("<i8", 3).tolist()
        state = []
        for _ in range(arrays):
            integer, dimensions, rows, columns = next_array("<i8", 4).tolist()
            numbers = next_array("<f8", rows * columns).astype(np.intp if integer else np.float64)
            state.append(numbers if dimensions == 1 else numbers.reshape(rows, columns))
        nodes.append(Node(level, number, tuple(state)))
    return nodes
