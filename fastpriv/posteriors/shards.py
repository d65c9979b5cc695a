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
from typing import Any

import numpy as np

from .. import __version__
from ..base import executors, parallel, validate
from ..base.errors import DomainError, WorkerDiedError
from ..base.files import atomic_write, check_writable_file
from ..base.numerics import FloatArray, IntArray
from ..base.store import ResultStore
from ..base.table import pyarrow
from ..channels.likelihoods import ShardedLikelihood
from ..channels.vector_sources import BLOCK
from .blocks import LikelihoodAndPrior, Node
from .dense import Pass, PassSums, two_passes
from .result import Options, Posterior, npy_stream

_SHARDS_OF_ONE_PART = 64  # unless a number is given: enough for the workers of one machine to end together
_MAX_ATTEMPTS = 4  # of a shard whose worker dies: nodes of a cluster are taken away now and then
_FLOATS_OF_ROWS = 13, 6  # of a node of the first pass and of the second
# Name of the files of the posterior, with the first secret of each.
_PATTERN = re.compile(r"[^{}]*\{first(:0?\d{1,3}d)?\}[^{}]*\.(npy|parquet)", re.DOTALL)
_INDEX_COLUMNS = slice(4, 7)  # of a row of the first pass that are numbers of secrets


@dataclass(frozen=True)
class _ShardPass:
    """The work on one shard in one of the passes, as other processes are sent it."""

    work: Pass
    out: str | None  # pattern of the files of the posterior

    def __call__(self, blocks: range) -> bytes:
        sums, inputs = PassSums(self.work), self.work.inputs
        out = None if self.work.evidence is None else self.out
        with _posterior_of_shard(out, blocks, inputs.length) as write:
            for number in blocks:
                block = inputs.read(number)
                probabilities = None if write is None else np.empty(block.likelihood.size)
                row, weights, indices = self.work.sums(block, probabilities)
                sums.add(Node(0, number, row), weights, indices)
                if write is not None:
                    write(probabilities)
        return _packed(sums)


def posterior(likelihood: ShardedLikelihood, prior: Any, options: Options) -> Posterior:
    """The posterior; shards that are in the store are not computed again."""
    out = None if options.out is None else _checked_pattern(options.out)
    if prior is not None and not isinstance(prior, ShardedLikelihood):
        prior = ShardedLikelihood([prior])
    inputs = LikelihoodAndPrior(likelihood, prior, options.log_prior)
    assert inputs.block_count is not None
    assert inputs.length is not None
    length = inputs.length
    inputs.inspect(inputs.read(0))
    parts = len(likelihood.parts)
    number = min(likelihood.shards or (parts if parts > 1 else _SHARDS_OF_ONE_PART), inputs.block_count)
    shards = [range(*ends) for ends in pairwise(inputs.block_count * i // number for i in range(number + 1))]
    identity = {  # what the sums depend on
        "version": __version__, "computation": "posterior of shards", "secrets": str(length),
        "number of shards": str(len(shards)), "top": str(options.top), "out": str(out), "data": _fingerprint(inputs),
    }
    path = options.store
    with ResultStore.open(path, identity=identity) if path is not None else ResultStore.temporary(identity) as store:
        report, close = parallel.progress_reporter(options.progress, 2 * len(shards))

        def run(work: Pass) -> PassSums:
            stage = 0 if work.evidence is None else 1
            sums = PassSums(work)
            for payload in _run_pass(_ShardPass(work, out), shards, stage, store, report, options):
                for node, weights, indices in store.unpacked(payload, partial(_unpacked, stage=stage)):
                    sums.add(node, weights, indices)
            sums.secrets = length
            return sums

        try:
            return two_passes(inputs, run, options.top, {"shards": len(shards)})
        finally:
            close()


def _run_pass(
    work: _ShardPass, shards: list[range], stage: int, store: ResultStore, report: Callable[[int], None],
    options: Options,
) -> list[bytes]:
    """What the shards return in this pass, in order; those in the store are not computed again."""
    offset = stage * len(shards)
    stored = ((key - offset, payload) for key, payload in store.items(offset, offset + len(shards) - 1))
    written = stage == 1 and work.out is not None  # a file may be lost since its shard was finished
    answer = {
        index: payload
        for index, payload in stored
        if not written or Path(_part_path(str(work.out), shards[index])).is_file()
    }
    report(offset + len(answer))
    missing = [index for index in range(len(shards)) if index not in answer]
    died: list[tuple[int, BaseException]] = []
    outcomes = executors.completed(
        work, (shards[index] for index in missing), executor=options.executor, n_jobs=options.n_jobs,
        max_attempts=_MAX_ATTEMPTS,
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
    if not _PATTERN.fullmatch(pattern):
        raise DomainError(
            "out must be a name with the field {first} that ends with .npy or .parquet, for a ShardedLikelihood; got "
            f"{validate.shown(out)}. Write for instance 'parts/{{first:015d}}.npy': the first secret of each file."
        )
    check_writable_file(pattern.format(first=0))
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


def _packed(sums: PassSums) -> bytes:
    """Nodes and the most probable secrets as bytes; numbers of secrets are exact as doubles."""
    nodes = np.array([(node.level, node.number, *node.sums) for node in sums.tree.nodes], dtype="<f8")
    largest = np.array([sums.weights, sums.indices], dtype="<f8")
    return struct.pack("<q", len(nodes)) + nodes.tobytes() + largest.tobytes()


def _unpacked(payload: bytes, stage: int) -> list[tuple[Node, FloatArray, IntArray]]:
    """The inverse of ``_packed``: arguments of ``PassSums.add``, the most probable secrets with the last node."""
    (count,) = struct.unpack_from("<q", payload)
    rows = np.frombuffer(payload, "<f8", count * (2 + _FLOATS_OF_ROWS[stage]), 8).reshape(count, -1)
    weights, indices = np.frombuffer(payload, "<f8", offset=8 + rows.nbytes).reshape(2, -1)
    entries: list[tuple[Node, FloatArray, IntArray]] = []
    for level, number, *row in rows.tolist():
        if stage == 0:
            row[_INDEX_COLUMNS] = map(int, row[_INDEX_COLUMNS])
        entries.append((Node(int(level), int(number), tuple(row)), np.empty(0), np.empty(0, dtype=np.int64)))
    entries[-1] = entries[-1][0], weights.astype(np.float64), indices.astype(np.int64)
    return entries
