"""``SweepTable``: the results of a sweep, which stay in its store until they are asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..base import validate
from ..base.errors import DomainError, explain_missing_package
from ..base.files import atomic_write
from ..base.numerics import WordArray, rounded_outward
from ..base.store import ResultStore
from ..base.table import CellType, Table, html_table, pandas, pyarrow, write_table
from .cells import BatchResults
from .parameter_grid import ParameterGrid

if TYPE_CHECKING:
    import pandas as pd

_ROW_GROUP = 16  # blocks of one row group of a Parquet file: 131,072 cells, some megabytes
_SHOWN_ROWS = 20  # rows of a table that a notebook shows: the first and the last ten
_NUMBERS = ("value", "lower", "upper")  # columns of numbers of an output; with a name, "value" is the name alone
_TEXTS = ("kind", "unit")  # columns of texts of an output


class SweepTable(Table):
    """The results of a sweep, one row a cell, in the order of the cells.

    Columns are the settings, then ``value``, ``lower``, ``upper``, ``kind`` and ``unit``, then ``seconds`` and
    ``error``. A function that returns a dict has ``a``, ``a_lower``, ``a_upper``, ``a_kind`` and ``a_unit`` for each
    key ``a`` instead. Numbers that are not known are NaN, texts None. Only the rows that are asked for are in memory: a
    file is written from the store, part by part.

    Two tables are equal if all columns but ``seconds``, which are measured, are the same bit for bit.

    Parameters
    ----------
    quantity : str
        What was evaluated.
    settings : ParameterGrid
        The cells.
    seed : int or None
        The seed of a function with random numbers.

    Examples
    --------
    >>> import fastpriv
    >>> table = fastpriv.sweep("bac_capacity", grid={"a": [0.1, 0.2], "b": 0.25})
    >>> table
    <SweepTable of capacity.bac_capacity: 2 cells, a x b>
    >>> table["value"].round(6)
    array([0.238625, 0.160547])
    >>> table.names
    ('a', 'b', 'value', 'lower', 'upper', 'kind', 'unit', 'seconds', 'error')
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, quantity: str, settings: ParameterGrid, seed: int | None, store: ResultStore) -> None:
        self.quantity, self.settings, self.seed = quantity, settings, seed
        self._store: ResultStore | None = store
        self._path: Path | None = None
        self._index: CellIndex | None = None
        self._outputs: tuple[str, ...] | None = None

    def _reopen(self, path: Path) -> None:
        """Read from the file of the store, which its writer has closed, whenever rows are asked for."""
        self._store, self._path = None, path.absolute()

    @property
    def outputs(self) -> tuple[str, ...]:
        """The numbers of each cell: ``("",)`` for one, the keys of the dict for several."""
        if self._outputs is None:
            with self._open_store() as store:
                index = self._cell_index(store)
                keys = (self.settings.keys(self.settings.block(block)) for block in range(self.settings.blocks()))
                rows = (row for part in keys for row in index.rows(part))
                result = list(dict.fromkeys(index.outputs[row] for row in rows if index.outputs[row]))
            names = result[0] if len(result) == 1 else tuple(sorted({name for names in result for name in names}))
            self._outputs = names or ("",)
        return self._outputs

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        columns = [_column(name, word) for name in self.outputs for word in (*_NUMBERS, *_TEXTS)]
        return (*self.settings.names, *columns, "seconds", "error")

    @property
    def failed(self) -> int:
        """Number of cells with an error."""
        return sum(1 for _ in self.errors())

    def column_types(self) -> dict[str, CellType]:
        """The columns by name."""
        return dict.fromkeys(self.names, "")

    def columns(self) -> dict[str, NDArray[Any]]:
        """All columns as arrays; texts are arrays of objects, None where there is none."""
        blocks = list(self._blocks())
        return {name: np.concatenate([block[name] for block in blocks]) for name in self.names}

    def metadata(self) -> dict[str, Any]:
        """Version, quantity, seed and the lengths of the axes, in plain types."""
        axes = [{"parameters": list(axis.columns), "length": axis.length} for axis in self.settings.axes]
        return {"fastpriv": __version__, "quantity": self.quantity, "seed": self.seed, "cells": len(self), "axes": axes}

    def to_dict(self) -> dict[str, Any]:
        """Metadata and columns in plain types, for JSON; infinite numbers stay floats."""
        return self.metadata() | {"table": {name: values.tolist() for name, values in self.columns().items()}}

    def to_frame(self) -> pd.DataFrame:
        """The table as a ``pandas.DataFrame``; texts are categories."""
        frames = pandas("to_frame")
        frame: pd.DataFrame = frames.DataFrame(self.columns(), columns=list(self.names))
        texts = [name for name in self.names if name == "error" or name.endswith(_TEXTS)]
        return frame.astype({name: "category" for name in texts if name not in self.settings.names})

    def to_polars(self) -> Any:
        """The table as a ``polars.DataFrame``."""
        with explain_missing_package("to_polars", "polars", "polars"):
            import polars
        return polars.DataFrame(
            {name: values.tolist() if values.dtype == object else values for name, values in self.columns().items()}
        )

    def to_xarray(self) -> Any:
        """The table as an ``xarray.Dataset`` with a dimension for each axis.

        The values of a grid are the coordinates of its dimension. Parameters that vary together are coordinates of one
        dimension ``cell``.
        """
        with explain_missing_package("to_xarray", "xarray", "xarray"):
            import xarray
        if len(self) < np.prod(self.settings.shape):
            raise DomainError(
                f"to_xarray must be called on a whole sweep; got {len(self):,} cells of a shard. Merge the shards."
            )
        dimensions: list[str] = []
        coordinates: dict[str, Any] = {}
        for axis in self.settings.axes:
            name = next(iter(axis.columns)) if len(axis.columns) == 1 else "cell"
            name = name if name not in dimensions else f"{name}_{len(dimensions)}"
            dimensions.append(name)
            coordinates |= {parameter: ([name], values) for parameter, values in axis.columns.items()}
        results = {
            name: (dimensions, values.reshape(self.settings.shape))
            for name, values in self.columns().items()
            if name not in self.settings.names
        }
        attributes = {name: str(value) for name, value in self.metadata().items()}
        return xarray.Dataset(results, coordinates, attributes)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows, one a cell; texts that are not known are None."""
        for block in self._blocks():
            yield from zip(*(values.tolist() for values in block.values()), strict=True)

    def errors(self) -> Iterator[str]:
        """The texts of the errors, cell by cell."""
        for block in self._blocks():
            yield from filter(None, block["error"].tolist())

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the table as Parquet with the metadata in its schema, atomically."""
        target = validate.path("path", path)
        arrow, parquet = pyarrow()
        metadata = {"fastpriv": json.dumps(self.metadata())}
        with atomic_write(target) as stream:
            writer, tables = None, []
            for index, block in enumerate(self._blocks(), start=1):
                arrays = {name: _arrow_array(arrow, values) for name, values in block.items()}
                tables.append(arrow.table(arrays).replace_schema_metadata(metadata))
                if len(tables) == _ROW_GROUP or index == self.settings.blocks():
                    table = arrow.concat_tables(tables)
                    writer = writer or parquet.ParquetWriter(stream, table.schema)
                    writer.write_table(table.combine_chunks())
                    tables.clear()
            if writer is not None:
                writer.close()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the table to a file whose ending, ``.parquet`` or ``.csv``, gives the format; return its path."""
        return write_table(self, path)

    def plot(self, x: str, hue: str | None = None, **keywords: Any) -> Any:
        """Draw the numbers over a setting with their bounds, by ``figures.sweep``, which has the keywords too."""
        return import_module("fastpriv.report").sweep(self, x, hue, **keywords)  # which is built on this room

    def __len__(self) -> int:
        return self.settings.count

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.names:
            raise DomainError(f"column must be one of {', '.join(self.names)}; got {name!r}. Choose one of these.")
        return np.concatenate([block[name] for block in self._blocks()])

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, SweepTable):
            return NotImplemented
        if (self.quantity, len(self), self.names) != (other.quantity, len(other), other.names):
            return False
        return all(
            all(_same(block[name], two[name]) for name in self.names if name != "seconds")
            for block, two in zip(self._blocks(), other._blocks(), strict=True)
        )

    def __repr__(self) -> str:
        axes = " x ".join("+".join(axis.columns) for axis in self.settings.axes)
        return f"<SweepTable of {self.quantity}: {len(self):,} cells, {axes}>"

    def _repr_html_(self) -> str:
        """The first and last rows, for notebooks."""
        count, half = len(self), _SHOWN_ROWS // 2
        whole = count <= _SHOWN_ROWS
        ends = [np.arange(count)] if whole else [np.arange(half), np.arange(count - half, count)]
        rows: list[list[str]] = []
        with self._open_store() as store:
            for cells in ends:
                if rows:
                    rows.append(["\N{HORIZONTAL ELLIPSIS}"] * len(self.names))
                columns = self._columns_of(store, cells)
                values = zip(*(column.tolist() for column in columns.values()), strict=True)
                rows += [[_shown(name, value) for name, value in zip(columns, row, strict=True)] for row in values]
        return html_table(self.names, rows, repr(self)[1:-1])

    def __getstate__(self) -> dict[str, Any]:
        with self._open_store() as store:
            rows = [] if self._path else list(store.items())
            return {**self.__dict__, "_store": None, "_index": None, "_rows": rows, "_identity": store.identity}

    def __setstate__(self, state: dict[str, Any]) -> None:
        rows, identity = state.pop("_rows"), state.pop("_identity")
        self.__dict__.update(state)
        if self._path is None:
            self._store = ResultStore.temporary(identity)
            self._store.put_many(rows)

    def _open_store(self) -> Any:
        """A context with the store open."""
        return nullcontext(self._store) if self._store is not None else ResultStore.read(self._path or "")

    def _cell_index(self, store: ResultStore) -> CellIndex:
        if self._index is None:
            self._index = CellIndex(store)
        return self._index

    def _blocks(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield the columns block by block."""
        with self._open_store() as store:
            for block in range(self.settings.blocks()):
                yield self._columns_of(store, self.settings.block(block))

    def _columns_of(self, store: ResultStore, cells: range | NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """The columns of some cells."""
        keys, index, outputs = self.settings.keys(cells), self._cell_index(store), self.outputs
        numbers = {name: np.full((3, len(cells)), np.nan) for name in outputs}
        texts: dict[str, NDArray[Any]] = {
            column: np.full(len(cells), None, dtype=object)
            for column in ("error", *(_column(name, word) for name in outputs for word in _TEXTS))
        }
        seconds = np.full(len(cells), np.nan, dtype=np.float32)
        for row in index.rows(keys):
            if (payload := store.get(row)) is None:
                continue
            part = store.unpacked(payload, BatchResults.unpack)
            positions = positions_in(part.keys, keys)
            present = np.flatnonzero(positions >= 0)
            positions = positions[present]
            seconds[present] = part.seconds[positions]
            texts["error"][present] = _texts_of_codes(part.errors[positions], [*part.texts])
            for name, values in part.numbers.items():
                numbers[name][:, present] = values[:, positions]
                for k, word in enumerate(_TEXTS):
                    words = [pair[k] or None for pair in part.words]
                    texts[_column(name, word)][present] = _texts_of_codes(part.labels[name][positions], words)
        columns: dict[str, NDArray[Any]] = dict(self.settings.columns(cells))
        for name in outputs:
            columns |= {_column(name, word): row for word, row in zip(_NUMBERS, numbers[name], strict=True)}
            columns |= {_column(name, word): texts[_column(name, word)] for word in _TEXTS}
        return columns | {"seconds": seconds, "error": texts["error"]}


class CellIndex:
    """Which row of a store has the result of each cell; a key of a cell takes 24 bytes here.

    Attributes
    ----------
    outputs : dict of int to tuple of str
        The names of the numbers in each row.
    """

    def __init__(self, store: ResultStore) -> None:
        self.outputs: dict[int, tuple[str, ...]] = {}
        keys, rows, failed = [np.empty((0, 2), dtype=np.uint64)], [np.empty(0, dtype=np.int64)], [np.empty(0, bool)]
        for row, payload in store.items():
            results = store.unpacked(payload, BatchResults.unpack)
            self.outputs[row] = tuple(results.numbers)
            keys.append(results.keys)
            rows.append(np.full(len(results.keys), row))
            failed.append(results.errors >= 0)
        order = np.argsort(np.concatenate(keys)[:, 0], kind="stable")
        self._keys, self._rows, self._failed = (np.concatenate(x)[order] for x in (keys, rows, failed))

    def rows(self, keys: WordArray) -> list[int]:
        """The rows that have results of these cells."""
        positions = self._positions(keys)
        return sorted({*self._rows[positions[positions >= 0]].tolist()})

    def missing(self, keys: WordArray) -> tuple[NDArray[np.intp], int]:
        """The positions of the cells without results, and how many of the others have an error."""
        positions = self._positions(keys)
        return np.flatnonzero(positions < 0), int(self._failed[positions[positions >= 0]].sum())

    def _positions(self, keys: WordArray) -> NDArray[np.intp]:
        return positions_in(self._keys, keys, is_sorted=True)


def positions_in(keys: WordArray, wanted: WordArray, is_sorted: bool = False) -> NDArray[np.intp]:
    """Return the position of each wanted key among ``keys``, -1 for those that are not there.

    ``is_sorted`` says that the keys are in the order of their first word. Two different keys with the same first word
    have probability 2^-64 a pair; of these only the first is found.
    """
    if keys.shape == wanted.shape and np.array_equal(keys, wanted):
        return np.arange(len(keys))
    if not len(keys):
        return np.full(len(wanted), -1)
    order = np.arange(len(keys)) if is_sorted else np.argsort(keys[:, 0], kind="stable")
    index = np.minimum(np.searchsorted(keys[order, 0], wanted[:, 0]), len(keys) - 1)
    result = order[index]
    return np.where((keys[result] == wanted).all(axis=1), result, -1)


def _column(output: str, word: str) -> str:
    if not output:
        return word
    return output if word == "value" else f"{output}_{word}"


def _texts_of_codes(codes: NDArray[Any], words: Sequence[str | None]) -> NDArray[Any]:
    """Texts of their positions in a list; None of -1."""
    texts: NDArray[Any] = np.array([*words, None], dtype=object)
    return np.asarray(texts[codes])


def _same(first: NDArray[Any], second: NDArray[Any]) -> bool:
    if first.dtype.kind == "f" and second.dtype.kind == "f":
        return first.tobytes() == second.tobytes()
    return bool(np.array_equal(first, second))


def _shown(column: str, value: Any) -> str:
    if value is None or value != value:
        return ""
    end = column.rpartition("_")[2]
    if isinstance(value, float) and end in ("lower", "upper"):
        return rounded_outward(value, ".7g", below=end == "lower")
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _arrow_array(arrow: Any, values: NDArray[Any]) -> Any:
    return arrow.array(values, arrow.string()).dictionary_encode() if values.dtype == object else arrow.array(values)
