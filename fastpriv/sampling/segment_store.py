"""``SegmentStore``: the sums of finished segments of a run in one file, so that a run which is killed goes on.

The key of a segment is a digest of all that its sums depend on: the version, the root of the random streams, the stage,
the place of the segment, and a few values of the integrand at points of that root, which other distributions change.
Segments of several runs may be in one file. Arrays are kept as they are, in the format of ``numpy.savez``.
"""

from __future__ import annotations

import hashlib
import io
from typing import Any

import numpy as np

from .. import __version__
from ..base.numerics import FloatArray
from ..base.store import ResultStore
from .options import Request
from .replicates import Segments, SegmentSum, batch_values, empty_sums

__all__ = ["SegmentStore"]

_PROBES = 16  # points whose values tell one problem from another
_COLLECTORS = "moments", "largest_values", "log_ratios"  # parts of a sum that are objects


class SegmentStore:
    """Sums by segment, of one stage; a context manager that closes the file."""

    def __init__(self, request: Request, work: Segments) -> None:
        self.store = ResultStore.open(request.store, identity={"computation": "sampling"})  # type: ignore[arg-type]
        self.work = work
        try:
            values = batch_values(work.problem, work.root, (11,), 1, _PROBES)
            parts = (
                __version__, work.root.entropy, work.root.spawn_key, work.key, work.points, work.replicates, work.n,
                work.side_by_side, work.size, work.collects_moments, work.problem.distribution,
                work.problem.integrand.size, values.tobytes(),
            )  # fmt: skip
            self.prefix = hashlib.blake2b(repr(parts).encode(), digest_size=32).digest()
            self.known = set(self.store.keys())
        except BaseException:
            self.store.close()
            raise

    def __enter__(self) -> SegmentStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.store.close()

    def missing(self) -> list[int]:
        """Numbers of the segments that are to be computed."""
        return [index for index in range(len(self.work)) if self._key(index) not in self.known]

    def get(self, index: int) -> SegmentSum | None:
        """The sums of a segment; None if they are not there, or damaged."""
        payload = self.store.get(self._key(index))
        return None if payload is None else self.store.unpacked(payload, self._unpacked)

    def put(self, index: int, sums: SegmentSum) -> None:
        """Keep the sums of a segment."""
        stream = io.BytesIO()
        arrays: dict[str, Any] = {"sums": sums.sums}
        for name in _COLLECTORS:
            collector = getattr(sums, name)
            for attribute, value in vars(collector).items() if collector else ():
                arrays[f"{name}.{attribute}"] = np.asarray(value)
        np.savez(stream, **arrays)
        self.store.put_many([(self._key(index), stream.getvalue())])

    def _unpacked(self, payload: bytes) -> SegmentSum:
        empty = empty_sums(self.work.problem, collects_moments=self.work.collects_moments)
        with np.load(io.BytesIO(payload), allow_pickle=False) as arrays:
            for name in _COLLECTORS:
                collector = getattr(empty, name)
                for attribute, value in vars(collector).items() if collector else ():
                    array: Any = arrays[f"{name}.{attribute}"]
                    restored = array if isinstance(value, np.ndarray) else type(value)(array.tolist())
                    setattr(collector, attribute, restored)
            sums: FloatArray = arrays["sums"]
        return SegmentSum(sums, empty.moments, empty.largest_values, empty.log_ratios)

    def _key(self, index: int) -> int:
        digest = hashlib.blake2b(index.to_bytes(8, "big"), key=self.prefix, digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)
