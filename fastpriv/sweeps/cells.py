"""Batches of cells: their evaluation, and the packed form in which their results are stored.

A batch is evaluated in one call where the quantity is elementwise, else cell by cell until the time of a batch is over;
what is left is for a later batch. An error of a cell is its result. The bits of a result depend on its cell alone.
"""

from __future__ import annotations

import itertools
import json
import math
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base import validate
from ..base.errors import BackendMissingError, DomainError, NotConvergedError, ShapeError
from ..base.estimate import Estimate, Result
from ..base.numerics import FloatArray, WordArray
from .parameter_grid import REPLICATE
from .quantities import SweepQuantity

__all__ = ["NO_LABEL", "Batch", "BatchOutcome", "BatchResults", "evaluate", "failed_cells", "pack", "unpack"]

_BATCH_SECONDS = 0.25  # after which a batch of single cells ends: what a kill may cost, and the delay of Ctrl-C
_TEXT_LENGTH = 300  # characters of an error that are kept
_OWN_ERRORS = (DomainError, ShapeError, NotConvergedError, BackendMissingError)  # whose text is a whole sentence
NO_LABEL = 2**16 - 1  # of a cell without this number
_HEAD = struct.Struct("<I")  # length of the head of a packed batch


@dataclass(frozen=True)
class Batch:
    """Cells to evaluate: their settings, as columns, and their keys."""

    columns: Mapping[str, NDArray[Any]]
    keys: WordArray

    def select(self, cells: slice | NDArray[np.intp] | NDArray[np.bool_]) -> Batch:
        """Return some of the cells."""
        return Batch({name: values[cells] for name, values in self.columns.items()}, self.keys[cells])


@dataclass(frozen=True)
class BatchResults:
    """Results of cells in plain arrays.

    ``numbers`` has value, lower and upper bound of each output, shape (3, cells); ``labels`` its kind and unit as
    positions in ``words``; ``errors`` are positions in ``texts``, -1 where there is none.
    """

    keys: WordArray
    seconds: NDArray[np.float32]
    errors: NDArray[np.int32]
    texts: tuple[str, ...]
    numbers: Mapping[str, FloatArray]
    labels: Mapping[str, NDArray[np.uint16]]
    words: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class BatchOutcome:
    """The packed results of the first ``done`` cells of a batch; ``fatal`` ends the sweep."""

    payload: bytes
    done: int
    failed: int
    seconds: float
    fatal: str = ""


class _Results:
    """The results of a batch while it is evaluated."""

    def __init__(self, batch: Batch) -> None:
        self.keys, count = batch.keys, len(batch.keys)
        self.seconds = np.zeros(count, dtype=np.float32)
        self.errors = np.full(count, -1, dtype=np.int32)
        self.texts: dict[str, int] = {}
        self.numbers: dict[str, FloatArray] = {}
        self.labels: dict[str, NDArray[np.uint16]] = {}
        self.words: dict[tuple[str, str], int] = {}

    def put(self, cells: Any, outputs: list[tuple[str, Any, Any, Any, str, str]]) -> None:
        """Set the numbers of some cells."""
        for name, value, lower, upper, kind, unit in outputs:
            if name not in self.numbers:
                self.numbers[name] = np.full((3, len(self.keys)), np.nan)
                self.labels[name] = np.full(len(self.keys), NO_LABEL, dtype=np.uint16)
            numbers = self.numbers[name]
            numbers[0, cells], numbers[1, cells], numbers[2, cells] = value, lower, upper
            self.labels[name][cells] = self.words.setdefault((kind, unit), len(self.words))

    def fail(self, cells: Any, text: str) -> None:
        """Set the error of some cells."""
        self.errors[cells] = self.texts.setdefault(text, len(self.texts))

    def packed(self, done: int, fatal: str = "") -> BatchOutcome:
        """Pack the first ``done`` cells."""
        result = BatchResults(
            self.keys, self.seconds, self.errors, tuple(self.texts), self.numbers, self.labels, tuple(self.words)
        )
        failed = int((self.errors[:done] >= 0).sum())
        seconds = float(self.seconds[:done].sum(dtype=np.float64))
        return BatchOutcome(pack(result, slice(done)), done, failed, seconds, fatal)


def evaluate(quantity: SweepQuantity, seed: int, batch: Batch) -> BatchOutcome:
    """Evaluate the cells of a batch, or the first ones of it as far as its time reaches."""
    return _stack(quantity, batch) if quantity.together is not None else _one_by_one(quantity, seed, batch)


def failed_cells(batch: Batch, text: str) -> BatchOutcome:
    """Return the outcome of cells that ended their process, or were never evaluated."""
    results = _Results(batch)
    results.fail(slice(None), text[:_TEXT_LENGTH])
    return results.packed(len(batch.keys))


def pack(found: BatchResults, cells: Any) -> bytes:
    """Pack the results of some of the cells."""
    keys = found.keys[cells]
    head = {"cells": len(keys), "texts": found.texts, "words": found.words, "names": list(found.numbers)}
    text = json.dumps(head).encode()
    pieces = [_HEAD.pack(len(text)), text, keys.astype("<u8").tobytes()]
    pieces += [found.seconds[cells].astype("<f4").tobytes(), found.errors[cells].astype("<i4").tobytes()]
    for name, numbers in found.numbers.items():
        pieces += [numbers[:, cells].astype("<f8").tobytes(), found.labels[name][cells].astype("<u2").tobytes()]
    return b"".join(pieces)


def unpack(payload: bytes) -> BatchResults:
    """Return the results of a packed batch; ``ValueError`` or ``LookupError`` if it is none."""
    (length,) = _HEAD.unpack_from(payload)
    head = json.loads(payload[_HEAD.size : _HEAD.size + length])
    count, position = int(head["cells"]), _HEAD.size + length

    def take(kind: str, size: int) -> NDArray[Any]:
        nonlocal position
        array = np.frombuffer(payload, dtype=kind, count=size, offset=position)
        position += array.nbytes
        return array

    keys = take("<u8", 2 * count).reshape(count, 2).astype(np.uint64, copy=False)
    seconds, errors = take("<f4", count), take("<i4", count)
    numbers, labels = {}, {}
    for name in head["names"]:
        numbers[name] = take("<f8", 3 * count).reshape(3, count)
        labels[name] = take("<u2", count)
    words, texts = tuple((kind, unit) for kind, unit in head["words"]), tuple(head["texts"])
    if not all(isinstance(word, str) for word in (*texts, *numbers, *itertools.chain(*words))):
        raise ValueError("names, texts and units must be texts")
    codes = [(errors, -1, len(texts)), *((label[label != NO_LABEL], 0, len(words)) for label in labels.values())]
    if any(((code < least) | (code >= count)).any() for code, least, count in codes):
        raise ValueError("codes must be those of texts and units in the head")
    return BatchResults(keys, seconds, errors, texts, numbers, labels, words)


def _stack(quantity: SweepQuantity, batch: Batch) -> BatchOutcome:
    """Call an elementwise quantity once for all cells, or once for each value of what it takes singly."""
    start, results, count = time.perf_counter(), _Results(batch), len(batch.keys)
    columns = {name: values for name, values in batch.columns.items() if name != REPLICATE}
    single = [name for name, values in columns.items() if name in (quantity.together or ()) or values.dtype == object]
    for cells in _groups([columns[name] for name in single], count):
        fixed = {name: _plain(columns[name][cells[0]]) for name in single}
        _call(quantity, results, {k: v for k, v in columns.items() if k not in fixed}, fixed, cells)
    results.seconds[:] = (time.perf_counter() - start) / max(count, 1)
    return results.packed(count)


def _groups(columns: list[NDArray[Any]], count: int) -> list[NDArray[np.intp]]:
    """Return the cells that agree in these columns, group by group."""
    if not columns:
        return [np.arange(count)]
    codes = np.zeros(count, dtype=np.int64)
    for values in columns:
        distinct, code = np.unique(values, return_inverse=True)
        codes = np.unique(codes * len(distinct) + code, return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def _call(
    quantity: SweepQuantity, results: _Results, columns: Mapping[str, NDArray[Any]], fixed: Mapping[str, Any],
    cells: NDArray[np.intp],
) -> None:  # fmt: skip
    """Evaluate some cells by one call; if it fails, by two calls of a half each: one bad cell spoils no other."""
    try:
        result = quantity.function(**{name: values[cells] for name, values in columns.items()}, **fixed)
        outputs = _outputs(quantity, result, len(cells))
    except Exception as error:  # whatever the quantity raises is the result of its cells
        if len(cells) == 1:
            results.fail(cells, _error_text(error))
            return
        for half in (cells[: len(cells) // 2], cells[len(cells) // 2 :]):
            _call(quantity, results, columns, fixed, half)
        return
    results.put(cells, outputs)
    for name, value, *_ in outputs:
        invalid = np.isnan(value) & (results.errors[cells] < 0)
        if invalid.any():
            results.fail(cells[np.broadcast_to(invalid, cells.shape)], _nan_text(quantity, name))


def _one_by_one(quantity: SweepQuantity, seed: int, batch: Batch) -> BatchOutcome:
    """Call the quantity for one cell after the other, for the time of a batch."""
    results, fatal = _Results(batch), ""
    columns = {name: values.tolist() for name, values in batch.columns.items() if name != REPLICATE}
    names, function, takes_rng = tuple(columns), quantity.function, quantity.takes_rng
    rows = zip(*columns.values(), strict=True) if columns else iter([()] * len(batch.keys))
    cells: list[int] = []  # those whose result is a bare number, which are set together
    values: list[float] = []
    times: list[float] = []
    begin = now = time.perf_counter()
    for done, row in enumerate(rows):
        settings = dict(zip(names, row, strict=True))
        if takes_rng:
            settings["rng"] = _generator(seed, batch.keys[done])
        try:
            result = function(**settings)
            if type(result) is float:
                cells.append(done)
                values.append(result)
            else:
                outputs = _outputs(quantity, result, 0)
                results.put(done, outputs)
                for name, value, *_ in outputs:
                    if math.isnan(value):
                        results.fail(done, _nan_text(quantity, name))
        except _NoNumber as error:
            shown = ", ".join(f"{name}={value!r}" for name, value in zip(names, row, strict=True))
            fatal = f"{error} The cell was {shown or 'one without settings'}."
            break
        except (Exception, SystemExit) as error:  # whatever the function raises is the result of this cell
            results.fail(done, _error_text(error))
        before, now = now, time.perf_counter()
        times.append(now - before)
        if now - begin > _BATCH_SECONDS:
            break
    if cells:
        numbers = np.array(values)
        results.put(cells, [("", numbers, np.nan, np.nan, "", "")])
        invalid = np.flatnonzero(np.isnan(numbers))
        if invalid.size:
            results.fail(np.array(cells)[invalid], _nan_text(quantity, ""))
    results.seconds[: len(times)] = times
    return results.packed(len(times), fatal)


def _generator(seed: int, key: WordArray) -> np.random.Generator:
    """Return the random generator of a cell: its stream depends on the seed and on the key of the cell alone."""
    words = [word for half in key.tolist() for word in (half & 0xFFFFFFFF, half >> 32)]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=words))


class _NoNumber(DomainError):
    """A function returned neither a number nor an Estimate: an error of the function, not of a cell."""


def _outputs(quantity: SweepQuantity, found: Any, count: int) -> list[tuple[str, Any, Any, Any, str, str]]:
    """Return name, value, lower, upper, kind and unit of each number of a result, for 0 (a single) or more cells."""
    if isinstance(found, Estimate):
        return [("", *_shaped(found._numbers(), count, quantity), found.kind, found.unit)]
    if isinstance(found, Result):
        found = found.estimates()
    if isinstance(found, Mapping):
        outputs = []
        for name, content in found.items():
            if not isinstance(name, str) or isinstance(content, Mapping):
                raise _no_number(quantity, found)
            outputs += [(name, *remainder) for _, *remainder in _outputs(quantity, content, count)]
        if not outputs:
            raise _no_number(quantity, found)
        return outputs
    if isinstance(found, (str, bytes)) or found is None:
        raise _no_number(quantity, found)
    try:
        value = float(found) if count == 0 else np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):
        raise _no_number(quantity, found) from None
    return [("", *_shaped((value, np.nan, np.nan), count, quantity), "", "")]


def _shaped(numbers: tuple[Any, ...], count: int, quantity: SweepQuantity) -> tuple[Any, ...]:
    shape = np.shape(numbers[0])
    if shape not in (((),) if count == 0 else ((), (count,))):
        raise _NoNumber(
            f"quantity must return one number for a cell; got an array of shape {shape} from {quantity.name}. Return a "
            "dict for several numbers."
        )
    return numbers


def _no_number(quantity: SweepQuantity, found: Any) -> _NoNumber:
    return _NoNumber(
        f"quantity must return a number, an Estimate or a dict of these; got {validate.shown(found)} from "
        f"{quantity.name}. What was finished before is kept in the store."
    )


def _nan_text(quantity: SweepQuantity, name: str) -> str:
    return f"{name or 'value'} must be a number; got nan from {quantity.name}. Check that the setting is in its domain."


def _error_text(error: BaseException) -> str:
    text = " ".join(str(error).split())
    text = text if isinstance(error, _OWN_ERRORS) else f"{type(error).__name__}: {text}"
    return text if len(text) <= _TEXT_LENGTH else text[: _TEXT_LENGTH - 3] + "..."


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
