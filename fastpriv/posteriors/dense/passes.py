"""Passes over a likelihood and a prior, side by side in blocks, by any number of threads.

Blocks are those of ``channels.sources``. Where both can be read anywhere, threads read their own blocks; else one of
them at a time takes the next block from the streams, and at most one block a thread is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _parallel
from ...channels.likelihoods.kinds import DenseLikelihood
from ...channels.likelihoods.sources import BLOCK, Source, source_of
from ...errors import DomainError, ShapeError

__all__ = ["Block", "Pair"]

Numbers = NDArray[np.floating[Any]]
# bound: none - blocks in one round of tasks
_ROUND = 64  # blocks asked for at a time of streams, whose end nobody knows
_TOGETHER = 8  # blocks a thread takes at a time where it can read them itself
_LOOK = 4096  # secrets whose log likelihoods say where these are


class Block(NamedTuple):
    """One block: its number, the secret it starts at, log likelihoods, and prior or its logs."""

    number: int
    start: int
    likelihood: Numbers
    prior: Numbers | None


class Pair:
    """A likelihood and a prior of one length."""

    def __init__(self, likelihood: DenseLikelihood, prior: Any, log_prior: bool) -> None:
        self.log, self.log_prior = likelihood.log, log_prior
        self.prior_name = "log_prior" if log_prior else "prior"
        self.likelihood = source_of("likelihood", likelihood.values)
        self.prior = None if prior is None else source_of(self.prior_name, prior)
        self.sources: list[Source] = [self.likelihood] if self.prior is None else [self.likelihood, self.prior]
        self.direct = all(source.direct for source in self.sources)
        self.again = all(source.again for source in self.sources)
        lengths = {source.length for source in self.sources} - {None}
        if len(lengths) > 1:
            raise self._lengths(*(source.length for source in self.sources))
        self.length: int | None = lengths.pop() if lengths else None
        if self.length == 0:
            raise ShapeError("likelihood must have at least one secret; got none. Pass one number for each secret.")
        self.shift = 0.0  # near the largest log likelihood: joint weights are taken relative to it
        self.single = False  # whether the prior is in single precision
        self.seen = False

    def _lengths(self, first: Any, second: Any) -> ShapeError:
        return ShapeError(
            f"{self.prior_name} must have one entry for each secret, {first}; got {second}. "
            "Pass None for the uniform law."
        )

    def look(self, block: Block) -> None:
        """Learns from the first block what all others need to know."""
        if self.seen:
            return
        self.seen = True
        if block.prior is not None:
            self.single = block.prior.dtype == np.float32
            seen = block.likelihood[:_LOOK]
            finite = seen[np.isfinite(seen)]
            self.shift = float(finite.max()) if finite.size else 0.0

    def read(self, number: int) -> Block:
        """One block of sources that can be read anywhere."""
        assert self.length is not None
        start = number * BLOCK
        return self._block(number, *(s.take(start, min(start + BLOCK, self.length)) for s in self.sources))

    def _block(self, number: int, likelihood: Numbers, prior: Numbers | None = None) -> Block:
        logs = likelihood if self.log else self._logarithms(number, likelihood)
        return Block(number, number * BLOCK, logs, prior)

    def _logarithms(self, number: int, likelihood: Numbers) -> Numbers:
        wide = np.asarray(likelihood, dtype=np.float64)
        bad = ~((wide >= 0) & (wide < np.inf))
        if bad.any():
            raise self._fault("likelihood", "likelihoods, not negative and finite", number, wide, bad)
        with np.errstate(divide="ignore"):
            return np.log(wide)

    def streams(self, skip: int = 0) -> Iterator[Block]:
        """All blocks in order, of any sources, without the first ones."""
        if self.direct:
            assert self.length is not None
            for number in range(skip, -(-self.length // BLOCK)):
                yield self.read(number)
            return
        readers = [self._in_order(source) for source in self.sources]
        number = 0 if self.again else skip
        end = object()
        while True:
            parts: list[Any] = [next(reader, end) for reader in readers]
            sizes = [0 if part is end else part.size for part in parts]
            if len(set(sizes)) > 1:
                raise self._lengths(*(number * BLOCK + size for size in sizes))
            if parts[0] is end:
                return
            if number >= skip:
                yield self._block(number, *parts)
            number += 1

    def _in_order(self, source: Source) -> Iterator[Numbers]:
        if not source.direct:
            yield from source.blocks()
            return
        assert source.length is not None
        for start in range(0, source.length, BLOCK):
            yield source.take(start, min(start + BLOCK, source.length))

    def run(self, work: Callable[[Block], Any], skip: int, n_jobs: int | None) -> Iterator[tuple[int, Any]]:
        """``work`` on every block from block ``skip`` on; number of secrets and result, in order."""
        if self.direct:
            assert self.length is not None
            if skip * BLOCK < self.length:
                self.look(self.read(0))
            yield from self._run_anywhere(work, skip, n_jobs)
            return
        yield from self._run_streams(work, skip, n_jobs)

    def _run_anywhere(self, work: Callable[[Block], Any], skip: int, n_jobs: int | None) -> Iterator[tuple[int, Any]]:
        assert self.length is not None

        def several(numbers: range) -> tuple[list[tuple[int, Any]], BaseException | None]:
            found: list[tuple[int, Any]] = []
            try:
                for number in numbers:
                    block = self.read(number)
                    found.append((block.likelihood.size, work(block)))
            except BaseException as error:
                return found, error
            return found, None

        count = -(-self.length // BLOCK)
        tasks = [range(i, min(i + _TOGETHER, count)) for i in range(skip, count, _TOGETHER)]
        for found, failure in _parallel.ordered_map(several, tasks, n_jobs=n_jobs, shared=True):
            yield from found
            if failure is not None:
                raise failure

    def _run_streams(self, work: Callable[[Block], Any], skip: int, n_jobs: int | None) -> Iterator[tuple[int, Any]]:
        lock, blocks, done = Lock(), self.streams(skip), {}
        ended = False

        def one(_: int) -> BaseException | None:
            nonlocal ended
            try:
                with lock:
                    block = None if ended else next(blocks, None)
                    ended = block is None
                    if block is not None:
                        self.look(block)
                if block is not None:
                    done[block.number] = block.likelihood.size, work(block)
            except BaseException as error:  # raised when the others, at earlier blocks, have come to their end
                ended = True
                return error
            return None

        number = skip
        while not ended:
            failure: BaseException | None = None
            try:
                failures = list(_parallel.ordered_map(one, range(_ROUND), n_jobs=n_jobs, shared=True))
                failure = next((error for error in failures if error is not None), None)
            except BaseException as error:
                failure = error
            while number in done:
                yield done.pop(number)
                number += 1
            if failure is not None:
                raise failure

    def fault(self, block: Block) -> DomainError:
        """What is wrong with the numbers of a block whose sums are none."""
        with np.errstate(invalid="ignore"):
            bad = ~(block.likelihood < np.inf)
            if bad.any():
                wanted = "log likelihoods, numbers below infinity"
                return self._fault("likelihood", wanted, block.number, block.likelihood, bad)
            prior = block.prior
            assert prior is not None
            bad = ~(prior <= 1.0) if self.log_prior else ~((prior >= 0.0) & (prior < np.inf))
        wanted = "logarithms of probabilities" if self.log_prior else "probabilities between 0 and 1"
        return self._fault(self.prior_name, wanted, block.number, prior, bad)

    def _fault(self, name: str, wanted: str, number: int, array: Numbers, bad: NDArray[np.bool_]) -> DomainError:
        first = int(np.argmax(bad))
        return DomainError(
            f"{name} must be {wanted}; got {float(array[first])!r} at index {number * BLOCK + first}, in block "
            f"{number} ({int(bad.sum())} of {array.size} entries there). Mend or leave out such secrets."
        )
