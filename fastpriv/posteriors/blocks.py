"""Blocks of a likelihood and a prior side by side, mapped by any number of threads; and the posterior written back.

Blocks are those of ``channels.vector_sources``. Where both vectors can be read in any order, threads read their
own blocks; otherwise one thread at a time takes the next block of the streams, and none holds more than one block.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from ..base import parallel, validate
from ..base.errors import DomainError, ShapeError
from ..base.files import check_writable_file, explain_write_errors
from ..base.numerics import BoolArray, FloatArray, RealArray
from ..channels.likelihoods import DenseLikelihood
from ..channels.vector_sources import BLOCK, VectorSource, source_of
from .result import npy_stream

__all__ = ["Block", "LikelihoodAndPrior", "PosteriorOutput", "no_secrets"]

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

    def __init__(self, likelihood: DenseLikelihood, prior: Any, log_prior: bool) -> None:
        self.log, self.log_prior = likelihood.log, log_prior
        self.prior_name = "log_prior" if log_prior else "prior"
        self.likelihood = source_of("likelihood", likelihood.values)
        self.prior = None if prior is None else source_of(self.prior_name, prior)
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

    def blocks(self, skip: int = 0) -> Iterator[Block]:
        """All blocks of any sources, in order, without the first ``skip`` ones."""
        if self.random_access:
            assert self.block_count is not None
            yield from map(self.read, range(skip, self.block_count))
            return
        readers = [self._blocks_of(source) for source in self.sources]
        number = 0 if self.rereadable else skip  # an iterator continues where it stopped
        end = object()
        while True:
            parts: list[Any] = [next(reader, end) for reader in readers]
            sizes = [0 if part is end else part.size for part in parts]
            if len(set(sizes)) > 1:
                raise self._length_error(*(number * BLOCK + size for size in sizes))
            if parts[0] is end:
                return
            if number >= skip:
                yield self._block(number, *parts)
            number += 1

    def _blocks_of(self, source: VectorSource) -> Iterator[RealArray]:
        if not source.random_access:
            yield from source.blocks()
            return
        assert source.length is not None
        for start in range(0, source.length, BLOCK):
            yield source.take(start, min(start + BLOCK, source.length))

    def map_blocks(self, work: Callable[[Block], Any], skip: int, n_jobs: int | None) -> Iterator[tuple[int, Any]]:
        """Number of secrets and result of ``work`` for every block from block ``skip`` on, in order."""
        if not self.random_access:
            yield from self._map_streams(work, skip, n_jobs)
            return
        assert self.block_count is not None
        if skip < self.block_count:
            self.inspect(self.read(0))

        def work_on(numbers: range) -> tuple[list[tuple[int, Any]], BaseException | None]:
            results: list[tuple[int, Any]] = []
            try:
                for number in numbers:
                    block = self.read(number)
                    results.append((block.likelihood.size, work(block)))
            except BaseException as error:  # the results of earlier blocks are kept
                return results, error
            return results, None

        starts = range(skip, self.block_count, _BLOCKS_PER_TASK)
        tasks = [range(i, min(i + _BLOCKS_PER_TASK, self.block_count)) for i in starts]
        for results, failure in parallel.ordered_map(work_on, tasks, n_jobs=n_jobs, shared=True):
            yield from results
            if failure is not None:
                raise failure

    def _map_streams(self, work: Callable[[Block], Any], skip: int, n_jobs: int | None) -> Iterator[tuple[int, Any]]:
        lock, blocks, done = Lock(), self.blocks(skip), {}
        exhausted = False

        def work_on_next(_: int) -> BaseException | None:
            nonlocal exhausted
            try:
                with lock:
                    block = None if exhausted else next(blocks, None)
                    exhausted = block is None
                    if block is not None:
                        self.inspect(block)
                if block is not None:
                    done[block.number] = block.likelihood.size, work(block)
            except BaseException as error:  # raised after the threads of earlier blocks have finished
                exhausted = True
                return error
            return None

        number = skip
        while not exhausted:
            failure: BaseException | None = None
            try:
                rounds = parallel.ordered_map(work_on_next, range(_BLOCKS_PER_ROUND), n_jobs=n_jobs, shared=True)
                failure = next((error for error in list(rounds) if error is not None), None)
            except BaseException as error:
                failure = error
            while number in done:
                yield done.pop(number)
                number += 1
            if failure is not None:
                raise failure

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
