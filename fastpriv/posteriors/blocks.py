"""Blocks of a likelihood and a prior side by side, mapped by any number of threads, and the tree of their sums.

Blocks are those of ``channels.vector_sources``. Where both vectors can be read in any order, threads read their
own blocks; otherwise one thread at a time takes the next block of the streams, and none holds more than one block.

docs/proofs/posteriors.md, theorem 10.3: sums are merged by one fixed binary tree, whoever computed them. Node (k, i)
holds the sums of the blocks from 2^k i to 2^k (i + 1) - 1. It is the merger of nodes (k - 1, 2 i) and (k - 1, 2 i + 1),
so that the sums of all blocks have the same bits, however the blocks were cut into shards; a shard of n blocks is sent
as 2 log2(n) nodes at most. The last blocks, which fill no node, are merged from left to right.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from ..base import parallel, validate
from ..base.errors import DomainError, ShapeError
from ..base.files import check_writable_file, explain_write_errors
from ..base.numerics import BoolArray, FloatArray, RealArray
from ..channels.likelihoods import DenseLikelihood, IndexLikelihood, ShardedLikelihood
from ..channels.vector_sources import BLOCK, IndexSource, VectorSource, source_of
from .result import npy_stream

# bound: none - blocks in one round of tasks
_BLOCKS_PER_ROUND = 64  # of streams, whose end is not known in advance
_BLOCKS_PER_TASK = 8  # where a thread reads its own blocks, so that handing out tasks costs little
_INSPECTED = 4096  # secrets of the first block whose largest log likelihood becomes the shift


class Block(NamedTuple):
    """One block: its number, its first secret, log likelihoods, and prior or log prior."""

    number: int
    start: int
    likelihood: RealArray
    prior: RealArray | None


class LikelihoodAndPrior:
    """A likelihood and a prior of one length, read together in blocks."""

    def __init__(
        self, likelihood: DenseLikelihood | IndexLikelihood | ShardedLikelihood, prior: Any, log_prior: bool
    ) -> None:
        self.log, self.log_prior = likelihood.log, log_prior
        self.prior_name = "log_prior" if log_prior else "prior"
        self.likelihood = likelihood._source("likelihood")
        if prior is None:
            self.prior = None
        elif isinstance(prior, (DenseLikelihood, IndexLikelihood, ShardedLikelihood)):
            self.prior = prior._source(self.prior_name)
        elif isinstance(likelihood, IndexLikelihood) and callable(prior):
            self.prior = IndexSource(self.prior_name, prior, likelihood.size)
        else:
            self.prior = source_of(self.prior_name, prior)
        self.sources: list[VectorSource] = [self.likelihood] if self.prior is None else [self.likelihood, self.prior]
        self.random_access = all(source.random_access for source in self.sources)
        self.rereadable = all(source.rereadable for source in self.sources)
        lengths = {source.length for source in self.sources} - {None}
        if len(lengths) > 1:
            raise self._length_error(*(source.length for source in self.sources))
        self.length: int | None = lengths.pop() if lengths else None
        if self.length == 0:
            raise no_secrets()
        self.shift = 0.0  # near the largest log likelihood: joint weights are taken relative to it
        self.single_precision = False  # of the prior
        self.inspected = False

    @property
    def block_count(self) -> int | None:
        """The number of blocks; None for streams."""
        return None if self.length is None else -(-self.length // BLOCK)

    def _length_error(self, first: Any, second: Any) -> ShapeError:
        return ShapeError(
            f"{self.prior_name} must have one entry for each secret, {first}; got {second}. "
            "Pass None for the uniform prior."
        )

    def inspect(self, block: Block) -> None:
        """Take the shift and the precision of the prior from the first block."""
        if self.inspected:
            return
        self.inspected = True
        if block.prior is not None:
            self.single_precision = block.prior.dtype == np.float32
            logs = block.likelihood[:_INSPECTED]
            finite = logs[np.isfinite(logs)]
            self.shift = float(finite.max()) if finite.size else 0.0

    def read(self, number: int) -> Block:
        """One block of sources that can be read in any order."""
        assert self.length is not None
        start = number * BLOCK
        return self._block(number, *(s.take(start, min(start + BLOCK, self.length)) for s in self.sources))

    def _block(self, number: int, likelihood: RealArray, prior: RealArray | None = None) -> Block:
        if self.log:
            return Block(number, number * BLOCK, likelihood, prior)
        wide = np.asarray(likelihood, dtype=np.float64)
        bad = ~((wide >= 0) & (wide < np.inf))
        if bad.any():
            raise self._entry_error("likelihood", "likelihoods, not negative and finite", number, wide, bad)
        with np.errstate(divide="ignore"):
            return Block(number, number * BLOCK, np.log(wide), prior)

    def blocks(self) -> Iterator[Block]:
        """All blocks of sources that are read from start to end, in order."""
        readers = [source.blocks() for source in self.sources]
        end = object()
        for number in itertools.count():
            parts: list[Any] = [next(reader, end) for reader in readers]
            sizes = [0 if part is end else part.size for part in parts]
            if len(set(sizes)) > 1:
                raise self._length_error(*(number * BLOCK + size for size in sizes))
            if parts[0] is end:
                return
            yield self._block(number, *parts)

    def map_blocks(self, work: Callable[[Block], Any], n_jobs: int | None) -> Iterator[tuple[int, int, Any]]:
        """Number, size and result of ``work`` of every block, in order."""
        if not self.random_access:
            yield from self._map_streams(work, n_jobs)
            return
        assert self.block_count is not None
        count = self.block_count
        self.inspect(self.read(0))

        def work_from(first: int) -> list[tuple[int, int, Any]]:
            blocks = map(self.read, range(first, min(first + _BLOCKS_PER_TASK, count)))
            return [(block.number, block.likelihood.size, work(block)) for block in blocks]

        starts = range(0, count, _BLOCKS_PER_TASK)
        for results in parallel.ordered_map(work_from, starts, n_jobs=n_jobs, shared=True):
            yield from results

    def _map_streams(self, work: Callable[[Block], Any], n_jobs: int | None) -> Iterator[tuple[int, int, Any]]:
        lock, blocks = Lock(), self.blocks()

        def work_on_next(_: int) -> list[tuple[int, int, Any]]:
            with lock:
                block = next(blocks, None)
                if block is None:
                    return []
                self.inspect(block)
            return [(block.number, block.likelihood.size, work(block))]

        results: list[tuple[int, int, Any]] = [(0, 0, None)]
        while results:
            rounds = parallel.ordered_map(work_on_next, range(_BLOCKS_PER_ROUND), n_jobs=n_jobs, shared=True)
            results = sorted((result for part in rounds for result in part), key=lambda result: result[0])
            yield from results

    def invalid_block(self, block: Block) -> DomainError:
        """Build the error for a block that contains NaN, +inf or an invalid prior."""
        with np.errstate(invalid="ignore"):
            bad = ~(block.likelihood < np.inf)
            if bad.any():
                constraint = "log likelihoods, numbers below infinity"
                return self._entry_error("likelihood", constraint, block.number, block.likelihood, bad)
            prior = block.prior
            assert prior is not None
            bad = ~(prior <= 1.0) if self.log_prior else ~((prior >= 0.0) & (prior < np.inf))
        constraint = "logarithms of probabilities" if self.log_prior else "probabilities between 0 and 1"
        return self._entry_error(self.prior_name, constraint, block.number, prior, bad)

    def _entry_error(self, name: str, constraint: str, number: int, array: RealArray, bad: BoolArray) -> DomainError:
        first = int(np.argmax(bad))
        return DomainError(
            f"{name} must be {constraint}; got {float(array[first])!r} at index {number * BLOCK + first}, in block "
            f"{number} ({int(bad.sum())} of {array.size} entries there). Mend or leave out such secrets."
        )


def no_secrets() -> ShapeError:
    """Build the error for a likelihood without entries."""
    return ShapeError("likelihood must have at least one secret; got none. Pass one number for each secret.")


class PosteriorOutput:
    """``out=`` of ``posterior``: validated before anything is read, then filled block by block."""

    def __init__(self, out: Any, inputs: LikelihoodAndPrior) -> None:
        self.out = out
        self.descriptor: int | None = None  # of the file that is written
        self.offset = 0  # of its data
        if out is None:
            return
        if not inputs.rereadable:
            raise DomainError(
                "out must be None for what can be read only once; got an iterator, whose evidence is known at its end. "
                "Pass a function that returns a fresh iterator."
            )
        if isinstance(out, (str, os.PathLike)):
            if validate.path("out", out).suffix.lower() != ".npy":
                raise DomainError(f"out must be a .npy file; got {os.fspath(out)!r}. Name it so, or pass an array.")
            check_writable_file(out)
            return
        plain = isinstance(out, np.ndarray) and out.dtype == np.float64 and out.flags.c_contiguous
        if not plain or not out.flags.writeable:
            raise DomainError(
                f"out must be a contiguous array of float64 that can be written to; got {validate.shown(out)}. "
                "Pass numpy.empty(size), or the path of a .npy file."
            )
        if any(np.may_share_memory(out, getattr(s, "values", None)) or s.is_file_of(out) for s in inputs.sources):
            raise DomainError(
                "out must be memory of its own; got that of the likelihood or prior. Pass numpy.empty(size)."
            )
        if inputs.length is not None:
            self._check_size(inputs.length)

    def _check_size(self, size: int) -> None:
        if isinstance(self.out, np.ndarray) and self.out.shape != (size,):
            raise ShapeError(f"out must be of shape ({size},); got {self.out.shape}. Pass numpy.empty({size}).")

    @contextmanager
    def opened(self, size: int) -> Iterator[None]:
        """While it is open, blocks can be written; a file takes its name when it is complete."""
        self._check_size(size)
        if self.out is None or isinstance(self.out, np.ndarray):
            yield
            return
        with npy_stream(self.out, size) as stream:
            stream.flush()
            self.descriptor, self.offset = stream.fileno(), stream.tell()
            yield

    def memory(self, block: Block) -> FloatArray | None:
        """The array in which to compute the posterior of a block; None where nothing is written."""
        size = block.likelihood.size
        if isinstance(self.out, np.ndarray):
            return self.out[block.start : block.start + size]
        return None if self.out is None else np.empty(size)

    def write(self, block: Block, posterior: FloatArray | None) -> None:
        """Write what was computed in ``memory(block)`` to the file, if there is one."""
        if self.descriptor is None or posterior is None:
            return
        remaining, position = memoryview(posterior.view(np.uint8).data), self.offset + 8 * block.start
        with explain_write_errors(self.out):
            while len(remaining):
                count = os.pwrite(self.descriptor, remaining, position)
                remaining, position = remaining[count:], position + count


class Node(NamedTuple):
    """The merged sums of ``2**level`` blocks."""

    level: int
    number: int  # of its first block, over 2**level
    sums: tuple[Any, ...]


class BlockTree:
    """The nodes of consecutive blocks, as few as there can be."""

    def __init__(self, merge: Callable[[Any, Any], tuple[Any, ...]], nodes: Iterable[Node] = ()) -> None:
        self.merge = merge
        self.nodes: list[Node] = []
        for node in nodes:
            self.add(node)

    def add(self, node: Node) -> None:
        """Add the node right of all others."""
        nodes = self.nodes
        while node.number % 2 and nodes and nodes[-1][:2] == (node.level, node.number - 1):
            node = Node(node.level + 1, node.number // 2, self.merge(nodes.pop().sums, node.sums))
        nodes.append(node)

    def total(self) -> tuple[Any, ...]:
        """The merged sums of all blocks; empty where there are none."""
        sums = [node.sums for node in self.nodes]
        return reduce(self.merge, sums) if sums else ()
