"""Batches of cells: their evaluation, and the packed form in which their results are stored.

A batch is evaluated in one call where the quantity is elementwise, else cell by cell until the time of a batch is over;
what is left is for a later batch. An error of a cell is its result. The bits of a result depend on its cell alone.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base import store, validate
from ..base.errors import BackendMissingError, DomainError, NotConvergedError, ShapeError
from ..base.estimate import Estimate, Result
from ..base.numerics import FloatArray, WordArray
from .parameter_grid import REPLICATE
from .quantities import SweepQuantity

_BATCH_SECONDS = 0.25  # after which a batch of single cells ends: what a kill may cost, and the delay of Ctrl-C
_TEXT_LENGTH = 300  # characters of an error that are kept
_OWN_ERRORS = (DomainError, ShapeError, NotConvergedError, BackendMissingError)  # whose text is a whole sentence


class Batch(NamedTuple):
    """Cells to evaluate: their settings, as columns, and their keys."""

    columns: Mapping[str, NDArray[Any]]
    keys: WordArray

    def select(self, cells: slice | NDArray[np.intp] | NDArray[np.bool_]) -> Batch:
        """Return some of the cells."""
        return Batch({name: values[cells] for name, values in self.columns.items()}, self.keys[cells])


class BatchOutcome(NamedTuple):
    """The packed results of the first ``done`` cells of a batch; ``fatal`` ends the sweep."""

    payload: bytes
    done: int
    failed: int
    fatal: str = ""


class BatchResults:
    """Results of cells in plain arrays.

    ``numbers`` has value, lower and upper bound of each output, shape (3, cells); ``labels`` its kind and unit as
    positions in ``words``; ``errors`` are positions in ``texts``; -1 where there is none.
    """

    def __init__(self, keys: WordArray) -> None:
        self.keys, count = keys, len(keys)
        self.seconds: NDArray[np.float32] = np.zeros(count, dtype=np.float32)
        self.errors: NDArray[np.int32] = np.full(count, -1, dtype=np.int32)
        self.texts: dict[str, int] = {}
        self.numbers: dict[str, FloatArray] = {}
        self.labels: dict[str, NDArray[np.int16]] = {}
        self.words: dict[tuple[str, str], int] = {}

    @classmethod
    def unpack(cls, payload: bytes) -> BatchResults:
        """Return the results of a packed batch; an error of any class if it is none."""
        head, arrays = store.unpack(payload)
        result = cls(arrays["keys"].astype(np.uint64, copy=False))
        result.seconds, result.errors = arrays["seconds"], arrays["errors"]
        result.numbers = {name: arrays[f"numbers {name}"] for name in head["names"]}
        result.labels = {name: arrays[f"labels {name}"] for name in head["names"]}
        result.texts = {text: code for code, text in enumerate(head["texts"])}
        result.words = {(kind, unit): code for code, (kind, unit) in enumerate(head["words"])}
        if not all(isinstance(word, str) for word in (*result.texts, *result.numbers, *itertools.chain(*result.words))):
            raise ValueError("names, texts and units must be texts")
        count = len(result.keys)
        codes: list[tuple[NDArray[Any], int]] = [(result.errors, len(result.texts))]
        codes += [(labels, len(result.words)) for labels in result.labels.values()]
        if any(((code < -1) | (code >= limit)).any() or code.shape != (count,) for code, limit in codes):
            raise ValueError("codes must be those of texts and units in the head")
        if result.keys.shape != (count, 2) or any(numbers.shape != (3, count) for numbers in result.numbers.values()):
            raise ValueError("arrays must have an entry for each cell")
        return result

    def put(self, cells: Any, outputs: list[tuple[str, Any, Any, Any, str, str]]) -> None:
        """Set the numbers of some cells."""
        for name, value, lower, upper, kind, unit in outputs:
            if name not in self.numbers:
                self.numbers[name] = np.full((3, len(self.keys)), np.nan)
                self.labels[name] = np.full(len(self.keys), -1, dtype=np.int16)
            numbers = self.numbers[name]
            numbers[0, cells], numbers[1, cells], numbers[2, cells] = value, lower, upper
            self.labels[name][cells] = self.words.setdefault((kind, unit), len(self.words))

    def fail(self, cells: Any, text: str) -> None:
        """Set the error of some cells."""
        self.errors[cells] = self.texts.setdefault(text[:_TEXT_LENGTH], len(self.texts))

    def outcome(self, done: int, fatal: str = "") -> BatchOutcome:
        """Pack the first ``done`` cells."""
        errors = self.errors[:done]
        arrays: dict[str, NDArray[Any]] = {"keys": self.keys[:done], "seconds": self.seconds[:done], "errors": errors}
        arrays |= {f"numbers {name}": numbers[:, :done] for name, numbers in self.numbers.items()}
        arrays |= {f"labels {name}": labels[:done] for name, labels in self.labels.items()}
        payload = store.pack({"texts": [*self.texts], "words": [*self.words], "names": [*self.numbers]}, arrays)
        return BatchOutcome(payload, done, int((errors >= 0).sum()), fatal)


def evaluate(quantity: SweepQuantity, seed: int, batch: Batch) -> BatchOutcome:
    """Evaluate the cells of a batch, or the first ones of it as far as its time reaches."""
    return _stack(quantity, batch) if quantity.together is not None else _one_by_one(quantity, seed, batch)


def _stack(quantity: SweepQuantity, batch: Batch) -> BatchOutcome:
    """Call an elementwise quantity once for all cells, or once for each value of what it takes singly."""
    start, results, count = time.perf_counter(), BatchResults(batch.keys), len(batch.keys)
    columns = {name: values for name, values in batch.columns.items() if name != REPLICATE}
    single = [name for name, values in columns.items() if name in (quantity.together or ()) or values.dtype == object]
    for cells in _groups([columns[name] for name in single], count):
        fixed = {name: columns[name][cells[:1]].tolist()[0] for name in single}
        _call(quantity, results, {k: v for k, v in columns.items() if k not in fixed}, fixed, cells)
    results.seconds[:] = (time.perf_counter() - start) / max(count, 1)
    return results.outcome(count)


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
    quantity: SweepQuantity, results: BatchResults, columns: Mapping[str, NDArray[Any]], fixed: Mapping[str, Any],
    cells: NDArray[np.intp],
) -> None:
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
    results, fatal, done = BatchResults(batch.keys), "", 0
    columns = {name: values.tolist() for name, values in batch.columns.items() if name != REPLICATE}
    begin = now = time.perf_counter()
    while done < len(batch.keys) and now - begin <= _BATCH_SECONDS:
        settings = {name: values[done] for name, values in columns.items()}
        more = {"rng": _generator(seed, batch.keys[done])} if quantity.takes_rng else {}
        try:
            outputs = _outputs(quantity, quantity.function(**settings, **more), 0)
            results.put(done, outputs)
            for name, value, *_ in outputs:
                if math.isnan(value):
                    results.fail(done, _nan_text(quantity, name))
        except _NoNumber as error:
            shown = ", ".join(f"{name}={value!r}" for name, value in settings.items())
            fatal = f"{error} The cell was {shown or 'one without settings'}."
            break
        except (Exception, SystemExit) as error:  # whatever the function raises is the result of this cell
            results.fail(done, _error_text(error))
        before, now = now, time.perf_counter()
        results.seconds[done] = now - before
        done += 1
    return results.outcome(done, fatal)


def _generator(seed: int, key: WordArray) -> np.random.Generator:
    """Return the random generator of a cell: its stream depends on the seed and on the key of the cell alone."""
    words = [word for half in key.tolist() for word in (half & 0xFFFFFFFF, half >> 32)]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=words))


class _NoNumber(DomainError):
    """A function returned neither a number nor an Estimate: an error of the function, not of a cell."""


def _outputs(quantity: SweepQuantity, result: Any, count: int) -> list[tuple[str, Any, Any, Any, str, str]]:
    """Return name, value, lower, upper, kind and unit of each number of a result, for 0 (a single) or more cells."""
    if isinstance(result, Estimate):
        return [("", *_shaped(result._numbers(), count, quantity), result.kind, result.unit)]
    if isinstance(result, Result):
        result = result.estimates()
    if isinstance(result, Mapping):
        outputs = []
        for name, content in result.items():
            if not isinstance(name, str) or isinstance(content, Mapping):
                raise _no_number(quantity, result)
            outputs += [(name, *remainder) for _, *remainder in _outputs(quantity, content, count)]
        if not outputs:
            raise _no_number(quantity, result)
        return outputs
    if isinstance(result, (str, bytes)) or result is None:
        raise _no_number(quantity, result)
    try:
        value = float(result) if count == 0 else np.asarray(result, dtype=np.float64)
    except (TypeError, ValueError):
        raise _no_number(quantity, result) from None
    return [("", *_shaped((value, np.nan, np.nan), count, quantity), "", "")]


def _shaped(numbers: tuple[Any, ...], count: int, quantity: SweepQuantity) -> tuple[Any, ...]:
    shape = np.shape(numbers[0])
    if shape not in (((),) if count == 0 else ((), (count,))):
        raise _NoNumber(
            f"quantity must return one number for a cell; got an array of shape {shape} from {quantity.name}. Return a "
            "dict for several numbers."
        )
    return numbers


def _no_number(quantity: SweepQuantity, result: Any) -> _NoNumber:
    return _NoNumber(
        f"quantity must return a number, an Estimate or a dict of these; got {validate.shown(result)} from "
        f"{quantity.name}. What was finished before is kept in the store."
    )


def _nan_text(quantity: SweepQuantity, name: str) -> str:
    return f"{name or 'value'} must be a number; got nan from {quantity.name}. Check that the setting is in its domain."


def _error_text(error: BaseException) -> str:
    text = " ".join(str(error).split())
    text = text if isinstance(error, _OWN_ERRORS) else f"{type(error).__name__}: {text}"
    return text if len(text) <= _TEXT_LENGTH else text[: _TEXT_LENGTH - 3] + "..."
