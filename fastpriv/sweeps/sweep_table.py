"""``SweepTable`` and ``SweepPlan``: the results of a sweep, which stay in its store until they are asked for."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..base import validate
from ..base.errors import BackendMissingError, DomainError
from ..base.files import atomic_write
from ..base.numerics import WordArray, rounded_outward
from ..base.store import ResultStore
from ..base.table import CellType, Table, html_table, pandas, pyarrow
from .cells import NO_LABEL, BatchResults, unpack
from .parameter_grid import BLOCK, ParameterGrid

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ROWS", "SweepPlan", "SweepTable", "block_key", "checked_target", "first_positions", "positions_in"]

ROWS = 2**20  # keys of a block in the store: more than its cells, each of which may be a row
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
        self._outputs: tuple[str, ...] | None = None

    def _reopen(self, path: Path) -> None:
        """Read from the file of the store, which its writer has closed, whenever rows are asked for."""
        self._store, self._path = None, path.absolute()

    @property
    def outputs(self) -> tuple[str, ...]:
        """The numbers of each cell: ``("",)`` for one, the keys of the dict for several."""
        if self._outputs is None:
            result: list[tuple[str, ...]] = []
            with self._open_store() as store:
                for block in range(self.settings.blocks()):
                    for part in self._parts(store, self.settings.keys(self.settings.block(block))):
                        if part.numbers and tuple(part.numbers) not in result:
                            result.append(tuple(part.numbers))
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
        return sum(int((block["error"].codes >= 0).sum()) for block in self._blocks())

    def column_types(self) -> dict[str, CellType]:
        """The columns by name."""
        return dict.fromkeys(self.names, "")

    def columns(self) -> dict[str, NDArray[Any]]:
        """All columns as arrays; texts are arrays of objects, None where there is none."""
        parts = [{name: _dense(values) for name, values in block.items()} for block in self._blocks()]
        return {name: np.concatenate([part[name] for part in parts]) for name in self.names}

    def metadata(self) -> dict[str, Any]:
        """Version, quantity, seed and the lengths of the axes, in plain types."""
        axes = [{"parameters": list(axis.columns), "length": axis.length} for axis in self.settings.axes]
        return {
            "fastpriv": __version__, "quantity": self.quantity, "seed": self.seed, "cells": len(self), "axes": axes,
        }  # fmt: skip

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
        try:
            import polars
        except ImportError:
            raise BackendMissingError("to_polars needs polars. Install it with: pip install polars") from None
        return polars.DataFrame(
            {name: values.tolist() if values.dtype == object else values for name, values in self.columns().items()}
        )

    def to_xarray(self) -> Any:
        """The table as an ``xarray.Dataset`` with a dimension for each axis.

        The values of a grid are the coordinates of its dimension. Parameters that vary together are coordinates of one
        dimension ``cell``.
        """
        try:
            import xarray
        except ImportError:
            raise BackendMissingError("to_xarray needs xarray. Install it with: pip install xarray") from None
        if not self.settings.is_whole:
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
            yield from zip(*(_dense(values).tolist() for values in block.values()), strict=True)

    def errors(self) -> Iterator[str]:
        """The texts of the errors, cell by cell."""
        for block in self._blocks():
            for code in block["error"].codes[block["error"].codes >= 0].tolist():
                yield block["error"].words[code]

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
        target = checked_target("path", path)
        (self.to_parquet if target.suffix.lower() == ".parquet" else self.to_csv)(target)
        return target

    def __len__(self) -> int:
        return self.settings.count

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.names:
            raise DomainError(f"column must be one of {', '.join(self.names)}; got {name!r}. Choose one of these.")
        return np.concatenate([_dense(block[name]) for block in self._blocks()])

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, SweepTable):
            return NotImplemented
        if (self.quantity, len(self), self.names) != (other.quantity, len(other), other.names):
            return False
        return all(
            all(_same(_dense(block[name]), _dense(two[name])) for name in self.names if name != "seconds")
            for block, two in zip(self._blocks(), other._blocks(), strict=True)
        )

    def __repr__(self) -> str:
        axes = " x ".join("+".join(axis.columns) for axis in self.settings.axes)
        return f"<SweepTable of {self.quantity}: {len(self):,} cells, {axes}>"

    def _repr_html_(self) -> str:
        """The first and last rows, for notebooks."""
        count, half = len(self), _SHOWN_ROWS // 2
        shown = [range(count)] if count <= _SHOWN_ROWS else [range(half), range(count - half, count)]
        rows: list[list[str]] = []
        for cells in shown:
            if rows:
                rows.append(["\N{HORIZONTAL ELLIPSIS}"] * len(self.names))
            wanted = {cell // BLOCK for cell in cells}
            for block in sorted(wanted):
                start = block * BLOCK
                columns = {name: _dense(values).tolist() for name, values in self._block(block).items()}
                for cell in cells:
                    if cell // BLOCK == block:
                        rows.append([_shown(name, values[cell - start]) for name, values in columns.items()])
        return html_table(self.names, rows, repr(self)[1:-1])

    def __getstate__(self) -> dict[str, Any]:
        with self._open_store() as store:
            rows = [] if self._path else list(store.items())
            return {**self.__dict__, "_store": None, "_rows": rows, "_identity": store.identity}

    def __setstate__(self, state: dict[str, Any]) -> None:
        rows, identity = state.pop("_rows"), state.pop("_identity")
        self.__dict__.update(state)
        if self._path is None:
            self._store = ResultStore.temporary(identity)
            self._store.put_many(rows)

    def _open_store(self) -> Any:
        """A context with the store open."""
        return nullcontext(self._store) if self._store is not None else ResultStore.read(self._path or "")

    def _blocks(self) -> Iterator[dict[str, Any]]:
        """Yield the columns block by block; texts as codes."""
        outputs = self.outputs
        with self._open_store() as store:
            for block in range(self.settings.blocks()):
                yield self._columns_of(store, block, outputs)

    def _block(self, block: int) -> dict[str, Any]:
        outputs = self.outputs
        with self._open_store() as store:
            return self._columns_of(store, block, outputs)

    def _parts(self, store: ResultStore, keys: WordArray) -> list[BatchResults]:
        base = block_key(keys)
        return [store.unpacked(payload, unpack) for _, payload in store.items(base, base + ROWS - 1)]

    def _columns_of(self, store: ResultStore, block: int, outputs: tuple[str, ...]) -> dict[str, Any]:
        cells = self.settings.block(block)
        keys = self.settings.keys(cells)
        columns: dict[str, Any] = dict(self.settings.columns(cells))
        numbers = {name: np.full((3, len(cells)), np.nan) for name in outputs}
        codes = {(name, word): np.full(len(cells), -1, dtype=np.int32) for name in outputs for word in _TEXTS}
        words: dict[str, int] = {}
        seconds = np.full(len(cells), np.nan, dtype=np.float32)
        errors = np.full(len(cells), -1, dtype=np.int32)
        for part in self._parts(store, keys):
            result = positions_in(part.keys, keys)
            there = np.flatnonzero(result >= 0)
            rows = result[there]
            seconds[there] = part.seconds[rows]
            errors[there] = _recoded(part.errors[rows], part.texts, words)
            for name, values in part.numbers.items():
                numbers[name][:, there] = values[:, rows]
                labels = part.labels[name][rows].astype(np.int32)
                labels[labels == NO_LABEL] = -1
                for position, word in enumerate(_TEXTS):
                    texts = [pair[position] for pair in part.words]
                    codes[name, word][there] = _recoded(labels, texts, words)
        texts_of_codes = list(words)
        for name in outputs:
            columns |= {_column(name, word): row for word, row in zip(_NUMBERS, numbers[name], strict=True)}
            columns |= {_column(name, word): _Texts(codes[name, word], texts_of_codes) for word in _TEXTS}
        columns |= {"seconds": seconds, "error": _Texts(errors, texts_of_codes)}
        return columns


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep will take, predicted from a few of its cells.

    Parameters
    ----------
    quantity : str
        What is to be evaluated.
    cells : int
        Number of cells.
    pilot : int
        Cells that were evaluated for the prediction.
    failed : int
        Those among them with an error.
    error : str
        The first error among them.
    seconds_per_cell, seconds : float
        Of one cell, and of all with the workers that were asked for.
    store_bytes, output_bytes : int
        Size of the store and of a Parquet file.

    Examples
    --------
    >>> import fastpriv
    >>> plan = fastpriv.sweep("bac_capacity", grid={"a": "0:1:1000", "b": "0:1:1000"}, dry_run=True)
    >>> plan.cells, plan.failed
    (1000000, 0)
    """

    quantity: str
    cells: int
    pilot: int
    failed: int
    error: str
    seconds_per_cell: float
    seconds: float
    store_bytes: int
    output_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Plain types, for JSON."""
        return dict(vars(self))

    def summary(self) -> str:
        """The prediction in words."""
        failed = f"; {self.failed} of them failed: {self.error}" if self.failed else ""
        return (
            f"{self.cells:,} cells of {self.quantity}: about {self.seconds:.3g} s ({self.seconds_per_cell:.2g} s a "
            f"cell in a pilot of {self.pilot}{failed}), {self.store_bytes / 1e6:,.3g} MB in a store, "
            f"{self.output_bytes / 1e6:,.3g} MB as Parquet"
        )


def checked_target(name: str, path: str | os.PathLike[str]) -> Path:
    """Return the path of a file whose ending, ``.parquet`` or ``.csv``, gives its format."""
    target = validate.path(name, path)
    if target.suffix.lower() not in (".parquet", ".csv"):
        raise DomainError(f"{name} must end in .parquet or .csv; got {str(target)!r}. Choose one of these endings.")
    return target


def block_key(keys: WordArray) -> int:
    """Return the first of the keys in the store under which the results of a block with these cells are."""
    digest = hashlib.blake2b(np.ascontiguousarray(keys, dtype="<u8").data, digest_size=8).digest()
    return int.from_bytes(digest, "little") % (2**63 // ROWS) * ROWS


def first_positions(keys: WordArray) -> NDArray[np.intp]:
    """Return the positions of the keys that do not stand before, in order."""
    first = np.unique(keys[:, 0], return_index=True)[1]
    return np.arange(len(keys)) if len(first) == len(keys) else np.sort(first)


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


@dataclass(frozen=True)
class _Texts:
    """A column of texts as positions in a list, -1 where there is none."""

    codes: NDArray[np.int32]
    words: list[str]


def _column(output: str, word: str) -> str:
    if not output:
        return word
    return output if word == "value" else f"{output}_{word}"


def _recoded(codes: NDArray[np.int32], texts: Any, words: dict[str, int]) -> NDArray[np.int32]:
    """Return codes of one list of texts as codes of another, to which they are added; empty texts are none."""
    new = np.array([words.setdefault(text, len(words)) if text else -1 for text in texts] + [-1], dtype=np.int32)
    return new[codes]


def _dense(values: Any) -> NDArray[Any]:
    if not isinstance(values, _Texts):
        return np.asarray(values)
    return np.array([*values.words, None], dtype=object)[values.codes]


def _same(one: NDArray[Any], two: NDArray[Any]) -> bool:
    if one.dtype.kind == "f" and two.dtype.kind == "f":
        return one.tobytes() == two.tobytes()
    return bool(np.array_equal(one, two))


def _shown(column: str, value: Any) -> str:
    if value is None or value != value:
        return ""
    end = column.rpartition("_")[2]
    if isinstance(value, float) and end in ("lower", "upper"):
        return rounded_outward(value, ".7g", below=end == "lower")
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _arrow_array(arrow: Any, values: Any) -> Any:
    if isinstance(values, _Texts):
        codes = arrow.array(values.codes, mask=values.codes < 0)
        return arrow.DictionaryArray.from_arrays(codes, arrow.array(values.words, arrow.string()))
    if values.dtype == object:
        return arrow.array(values, arrow.string()).dictionary_encode()
    return arrow.array(values)
