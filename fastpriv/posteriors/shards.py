"""Posteriors of a ``ShardedLikelihood``: both passes of ``dense``, shard by shard, on threads, processes or a cluster.

A shard is a range of blocks. A worker reads them one after the other and returns the nodes of its blocks in the tree of
``block_tree``, and its most probable secrets: a few KiB, whatever the number of secrets. Blocks do not know of shards
and parts, so the result has the bits of ``dense``, for any number of shards and any workers of one instruction set.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np

from .. import __version__
from ..base import executors, parallel, validate
from ..base.errors import DomainError, WorkerDiedError
from ..base.files import atomic_write, check_writable_file
from ..base.numerics import FloatArray, IntArray
from ..base.store import ResultStore
from ..base.table import pyarrow
from ..channels.likelihoods import DenseLikelihood, IndexLikelihood, ShardedLikelihood
from ..channels.vector_sources import BLOCK, ConcatenatedSource, VectorSource, sources_of
from . import dense
from .block_tree import BlockTree, Node
from .blocks import LikelihoodAndPrior
from .index_functions import IndexSource
from .result import Options, Posterior, npy_stream

__all__ = ["posterior"]

_SHARDS_OF_ONE_PART = 64  # unless a number is given: enough for the workers of one machine to end together
_MAX_ATTEMPTS = 4  # of a shard whose worker dies: nodes of a cluster are taken away now and then
_FLOATS_OF_ROWS = 13, 6  # of a node of the first pass and of the second
_LONG_FIELD = re.compile(r"\d{4}|[{]")  # in the format of a number that may have thousands of characters
_INDEX_COLUMNS = slice(4, 7)  # of a row of the first pass that are numbers of secrets


@dataclass(frozen=True)
class _Pass:
    """The work on one shard in one of the passes, as other processes are sent it."""

    inputs: LikelihoodAndPrior
    top: int
    evidence: dense.Evidence | None  # None in the first pass
    out: str | None = None  # pattern of the files of the posterior

    def __call__(self, blocks: range) -> bytes:
        tree = dense.evidence_tree() if self.evidence is None else dense.divergence_tree()
        largest: tuple[FloatArray, IntArray] = np.empty(0), np.empty(0, dtype=np.int64)
        with _posterior_of_shard(self.out, blocks, self.inputs.length) as write:
            for number in blocks:
                block = self.inputs.read(number)
                if self.evidence is None:
                    row, weights, indices = dense.first_pass(self.inputs, block, min(self.top, BLOCK))
                    largest = dense.largest_of(self.top, largest, (weights, indices))
                else:
                    probabilities = None if write is None else np.empty(block.likelihood.size)
                    row = dense.second_pass(self.inputs, block, self.evidence, probabilities)
                    if write is not None:
                        write(probabilities)
                tree.add(Node(0, number, row))
        return _packed(tree, largest)


def posterior(likelihood: ShardedLikelihood, prior: Any, options: Options) -> Posterior:
    """The posterior; shards that are in the store are not computed again."""
    if options.resume is not None:
        raise DomainError(
            f"resume must be None for a ShardedLikelihood; got {validate.shown(options.resume)}. Pass store= instead."
        )
    out = None if options.out is None else _checked_pattern(options.out)
    name = "log_prior" if options.log_prior else "prior"
    likelihoods = concatenated("likelihood", likelihood.parts)
    parts = prior.parts if isinstance(prior, ShardedLikelihood) else (prior,)
    priors = None if prior is None else concatenated(name, parts)
    inputs = LikelihoodAndPrior(DenseLikelihood(likelihoods, log=likelihood.log), priors, options.log_prior)
    count, size = inputs.block_count, inputs.length
    assert count is not None
    assert size is not None
    inputs.inspect(inputs.read(0))
    shards = shard_ranges(count, likelihood.shards, len(likelihood.parts))
    where: dict[str, Any] = {"executor": options.executor, "n_jobs": options.n_jobs}
    with opened_store(options.store, _identity(inputs, len(shards), options.top, out)) as store:
        report, close = parallel.progress_reporter(options.progress, 2 * len(shards))
        try:
            payloads = run_pass(_Pass(inputs, options.top, None), shards, 0, store, report, **where)
            first, largest = dense.evidence_tree(), (np.empty(0), np.empty(0, dtype=np.int64))
            for payload in payloads:
                nodes, own = store.unpacked(payload, partial(_unpacked, stage=0))
                for node in nodes:
                    first.add(node)
                largest = dense.largest_of(options.top, largest, own)
            evidence = dense.evidence_of(dense.FirstPassSums(*first.total()), size, inputs)
            second = dense.divergence_tree()
            if out is not None:  # a file may be lost since its shard was finished
                where["usable"] = lambda index: Path(_part_path(out, shards[index])).is_file()
            for payload in run_pass(_Pass(inputs, 0, evidence, out), shards, 1, store, report, **where):
                for node in store.unpacked(payload, partial(_unpacked, stage=1))[0]:
                    second.add(node)
        finally:
            close()
    dense.check_same(second.total(), size, size)
    cost = {"secrets": size, "passes": 2, "shards": len(shards)}
    return dense.result_of(first.total(), second.total(), largest, evidence, inputs, cost)


def concatenated(name: str, parts: tuple[Any, ...]) -> ConcatenatedSource:
    """The parts of a ``ShardedLikelihood`` as one source."""
    sources: list[VectorSource] = []
    for part in parts:
        sources += [IndexSource(name, part)] if isinstance(part, IndexLikelihood) else sources_of(name, part)
    return ConcatenatedSource(name, sources)


def shard_ranges(blocks: int, number: int | None, parts: int) -> list[range]:
    """Ranges of blocks whose lengths differ by one at most: so many, one for each part, or those of one part."""
    number = min(number or (parts if parts > 1 else _SHARDS_OF_ONE_PART), blocks)
    ends = [blocks * i // number for i in range(number + 1)]
    return [range(start, stop) for start, stop in pairwise(ends)]


def run_pass(
    work: Callable[[range], bytes], shards: list[range], stage: int, store: ResultStore, report: Callable[[int], None],
    *, executor: executors.ExecutorLike, n_jobs: int | None, usable: Callable[[int], bool] = lambda index: True,
) -> list[bytes]:  # fmt: skip
    """What the shards return in this pass, in order; those in the store are not computed again where ``usable``."""
    offset = stage * len(shards)
    stored = ((key - offset, payload) for key, payload in store.items(offset, offset + len(shards) - 1))
    answer = {index: payload for index, payload in stored if usable(index)}
    report(offset + len(answer))
    missing = [index for index in range(len(shards)) if index not in answer]
    died: list[tuple[int, BaseException]] = []
    outcomes = executors.completed(
        work, (shards[index] for index in missing), executor=executor, n_jobs=n_jobs, max_attempts=_MAX_ATTEMPTS
    )
    try:
        for task, outcome in outcomes:
            index = missing[task]
            if isinstance(outcome.error, WorkerDiedError):
                died.append((index, outcome.error))
            elif outcome.error is not None:
                raise outcome.error
            else:
                store.put_many([(offset + index, outcome.result)])
                answer[index] = outcome.result
                report(offset + len(answer))
    finally:
        outcomes.close()
    if died:
        index, error = min(died, key=lambda pair: pair[0])
        raise WorkerDiedError(
            f"executor must run all shards; got {len(died)} of {len(shards)} whose workers died, the first one shard "
            f"{index}, blocks {shards[index].start} to {shards[index].stop - 1}: {error}"
        ) from error
    return [answer[index] for index in range(len(shards))]


def _checked_pattern(out: Any) -> str:
    """The pattern of the files of the posterior, whose field is the number of the first secret of a shard."""
    is_name = isinstance(out, (str, os.PathLike)) and validate.path("out", out)
    pattern = os.fspath(out) if is_name else ""
    try:
        # A width or a precision of many digits, or one within another, would make names of as many characters.
        short = not any(_LONG_FIELD.search(spec or "") for _, _, spec, _ in Formatter().parse(pattern))
        names = {pattern.format(first=number) for number in (0, BLOCK)} if short else set()
    except (IndexError, KeyError, ValueError):
        names = set()
    if len(names) != 2 or not pattern.endswith((".npy", ".parquet")):
        raise DomainError(
            "out must be a name with the field {first} that ends with .npy or .parquet, for a ShardedLikelihood; got "
            f"{validate.shown(out)}. Write for instance 'parts/{{first:015d}}.npy': the first secret of each file."
        )
    for name in names:
        check_writable_file(name)
    return pattern


def _part_path(pattern: str, blocks: range) -> str:
    return pattern.format(first=blocks.start * BLOCK)


@contextmanager
def _posterior_of_shard(
    pattern: str | None, blocks: range, length: int | None
) -> Iterator[Callable[[Any], Any] | None]:
    """Function that writes the next probabilities to the file of a shard, which takes its name when it is complete."""
    path = "" if pattern is None else _part_path(pattern, blocks)
    if pattern is None:
        yield None
    elif path.endswith(".npy"):
        assert length is not None
        with npy_stream(path, min(blocks.stop * BLOCK, length) - blocks.start * BLOCK) as stream:
            yield lambda probabilities: stream.write(probabilities.data)
    else:
        arrow, parquet = pyarrow("write Parquet")
        schema = arrow.schema([("posterior", arrow.float64())])
        with atomic_write(path) as stream, parquet.ParquetWriter(stream, schema) as writer:
            yield lambda probabilities: writer.write_table(arrow.table([probabilities], schema=schema))


def opened_store(path: Any, identity: dict[str, str]) -> ResultStore:
    """The store that is named, or one that ends with the call; its identity says what the sums depend on."""
    identity = {"version": __version__, **identity}
    return ResultStore.temporary(identity) if path is None else ResultStore.open(path, identity=identity)


def _identity(inputs: LikelihoodAndPrior, shards: int, top: int, out: str | None) -> dict[str, str]:
    return {
        "computation": "posterior of shards", "secrets": str(inputs.length), "number of shards": str(shards),
        "top": str(top), "out": str(out), "data": _fingerprint(inputs),
    }  # fmt: skip


def _fingerprint(inputs: LikelihoodAndPrior) -> str:
    """A digest of the first and the last block, of lengths and of how numbers are read: other data differ there."""
    assert inputs.block_count is not None
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((inputs.length, inputs.log, inputs.log_prior, inputs.prior is None)).encode())
    for number in sorted({0, inputs.block_count - 1}):
        block = inputs.read(number)
        for array in (block.likelihood, block.prior):
            if array is not None:
                digest.update(array.dtype.str.encode() + array.tobytes())
    return digest.hexdigest()


def _packed(tree: BlockTree, largest: tuple[FloatArray, IntArray]) -> bytes:
    """Nodes and the most probable secrets as bytes."""
    positions = np.array([node[:2] for node in tree.nodes], dtype="<i8")
    rows = np.array([node.sums for node in tree.nodes], dtype="<f8")
    weights, indices = largest
    parts = (positions, rows, weights.astype("<f8"), indices.astype("<i8"))
    return struct.pack("<qq", len(tree.nodes), weights.size) + b"".join(part.tobytes() for part in parts)


def _unpacked(payload: bytes, stage: int) -> tuple[list[Node], tuple[FloatArray, IntArray]]:
    """The inverse of ``_packed``."""
    count, selected = struct.unpack_from("<qq", payload)
    position = 16

    def next_array(dtype: str, *shape: int) -> Any:
        nonlocal position
        array = np.frombuffer(payload, dtype, int(np.prod(shape)), position).reshape(shape)
        position += array.nbytes
        return array

    indices, rows = next_array("<i8", count, 2).tolist(), next_array("<f8", count, _FLOATS_OF_ROWS[stage]).tolist()
    for row in rows if stage == 0 else ():
        row[_INDEX_COLUMNS] = map(int, row[_INDEX_COLUMNS])
    nodes = [Node(level, number, tuple(row)) for (level, number), row in zip(indices, rows, strict=True)]
    return nodes, (next_array("<f8", selected).astype(np.float64), next_array("<i8", selected).astype(np.int64))
