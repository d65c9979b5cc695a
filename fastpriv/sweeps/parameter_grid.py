"""The settings of a sweep: a product of axes, of which only the axes are in memory, whatever the number of cells.

A cell is one setting of all parameters. It has a key of 128 bits, made of the names and values of its parameters and of
nothing else: neither of its position nor of the other cells. Results and random streams belong to this key, so that
cells that are added later, or in another order, change nothing. Numbers that are equal, such as 1 and 1.0, are one
value.

Cells are counted in C order, as ``itertools.product`` does: the last axis varies fastest.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base import validate
from ..base.column_files import is_number, open_table
from ..base.errors import DomainError, ShapeError
from ..base.files import parse_toml
from ..base.grids import parse_grid
from ..base.numerics import WordArray

MAX_CELLS = 10**8  # of one run: their keys take 2.4 GB of memory, and their results 6 GB on the disk
BLOCK = 8192  # consecutive cells whose results are looked up together: 130 kB of keys, and one call of a stack
REPLICATE = "replicate"  # name of the axis that counts the repetitions of a cell
_TEXT_GRID = re.compile(r"^[\d\s.,:+\-eEinf]*:[\d\s.,:+\-eEinf]*$")  # text that is a grid and no word
_EXACT_INTEGERS = 2**62  # integers that are a double of at most this size have the key of the double
# Odd multipliers of the two lanes, from the fractional parts of the golden ratio and of sqrt(2), sqrt(3), sqrt(5).
_MULTIPLIERS = (
    (np.uint64(0x9E3779B97F4A7C15), np.uint64(0x6A09E667F3BCC909)),
    (np.uint64(0xBB67AE8584CAA73B), np.uint64(0x3C6EF372FE94F82B)),
)
_SHIFTS = (np.uint64(32), np.uint64(29))  # half of the word, and a little less, so that all bits reach all others
_SPEC_WORDS = ("quantity", "grid", "zip", "table", "replicates", "seed")  # what a specification may hold
_COLUMN_REMEDY = "Pass a list of numbers, or of texts."  # remedy for what is no column of values


@dataclass(frozen=True)
class Axis:
    """Parameters that vary together: columns of one length."""

    columns: Mapping[str, NDArray[Any]]

    @property
    def length(self) -> int:
        """Number of settings on the axis."""
        return len(next(iter(self.columns.values())))

    @cached_property
    def value_words(self) -> dict[str, WordArray]:
        """Two words for each value of each column, which stand for it in the keys of cells; shape (2, length)."""
        return {name: _value_words(values) for name, values in self.columns.items()}


@dataclass(frozen=True)
class ParameterGrid:
    """A product of axes, or the cells ``first`` to ``last - 1`` of it."""

    axes: tuple[Axis, ...]
    first: int
    last: int

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, in the order in which they were given."""
        return tuple(name for axis in self.axes for name in axis.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(axis.length for axis in self.axes)

    @property
    def count(self) -> int:
        """Number of cells."""
        return self.last - self.first

    def shard(self, index: int, shards: int) -> ParameterGrid:
        """Return the part ``index`` of 1 to ``shards``: consecutive cells, whole blocks if there are enough."""
        piece = BLOCK if self.count >= BLOCK * shards else 1
        pieces = -(-self.count // piece)
        first, last = (self.first + min(piece * (pieces * i // shards), self.count) for i in (index - 1, index))
        return replace(self, first=first, last=last)

    def blocks(self) -> int:
        """Return the number of blocks."""
        return -(-self.count // BLOCK)

    def block(self, index: int) -> range:
        """Return the cells of a block, counted from the first one of these settings."""
        return range(index * BLOCK, min((index + 1) * BLOCK, self.count))

    def columns(self, cells: range | NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return the values of each parameter in these cells."""
        result: dict[str, NDArray[Any]] = {}
        for axis, positions in zip(self.axes, self._positions(cells), strict=True):
            result |= {name: values[positions] for name, values in axis.columns.items()}
        return result

    def keys(self, cells: range | NDArray[np.int64]) -> WordArray:
        """Return the keys of these cells, shape (cells, 2)."""
        words: dict[str, WordArray] = {}
        for axis, positions in zip(self.axes, self._positions(cells), strict=True):
            words |= {name: pair[:, positions] for name, pair in axis.value_words.items()}
        if REPLICATE not in words:  # the first one
            words[REPLICATE] = np.repeat(_value_words(np.zeros(1, dtype=np.int64)), len(cells), axis=1)
        keys = np.zeros((2, len(cells)), dtype=np.uint64)
        for name in sorted(words):
            for lane, start, value in zip(range(2), _text_words(name), words[name], strict=True):
                keys[lane] = _mixed(keys[lane] ^ start, value, lane)
        return np.ascontiguousarray(keys.T)

    def _positions(self, cells: range | NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return the position on each axis."""
        left = np.arange(cells.start, cells.stop) if isinstance(cells, range) else np.asarray(cells)
        left = left + self.first
        positions = []
        for length in reversed(self.shape):
            left, position = np.divmod(left, length) if length > 1 else (left, np.zeros_like(left))
            positions.append(position)
        return positions[::-1]


def make_parameter_grid(
    table: Any = None, grid: Mapping[str, Any] | None = None, zip_: Mapping[str, Any] | None = None,
    replicates: int = 1, words: Mapping[str, bool] | None = None,
) -> ParameterGrid:
    """Build the settings: the product of the axes of ``grid``, the columns of ``zip_`` and the rows of ``table``.

    Parameters
    ----------
    table : path-like, data frame, or sequence of mappings, optional
        Rows of settings: a CSV or Parquet file, a data frame (pandas, polars, Arrow), or a list of dicts.
    grid : mapping of str to sequence, optional
        An axis for each parameter. A single number or word is an axis of one; text such as ``"0.5..5:100"`` a grid.
    zip_ : mapping of str to sequence, optional
        Parameters that vary together.
    replicates : int
        Repetitions of each cell.
    words : mapping of str to bool, optional
        Whether a parameter is a word; all others are then doubles. None for a function that is not known.
    """
    axes: list[Axis] = []
    if table is not None:
        axes.append(Axis(_table_columns(table, words)))
    if zip_ is not None and len(_mapping("zip", zip_)):
        axes.append(_zip_axis(_mapping("zip", zip_), words))
    for name, values in _mapping("grid", {} if grid is None else grid).items():
        axes.append(Axis({name: _column(f"grid[{name!r}]", values, _is_text(name, words))}))
    count = validate.count("replicates", replicates, maximum=MAX_CELLS)
    names = [name for axis in axes for name in axis.columns]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise DomainError(f"settings must name each parameter once; got {repeated[0]!r} twice. Drop one of them.")
    if REPLICATE in names:
        raise DomainError(
            f"settings must have no parameter called {REPLICATE!r}; got one. Rename it: replicates= counts repetitions."
        )
    if words is not None:
        axes = [
            Axis({k: v.astype(np.float64) if v.dtype.kind == "i" else v for k, v in axis.columns.items()})
            for axis in axes
        ]
    if count > 1:
        axes.append(Axis({REPLICATE: np.arange(count)}))
    return ParameterGrid(tuple(axes), 0, math.prod(axis.length for axis in axes))


def read_spec(spec: str | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Read a specification: a mapping, or a TOML file with the keys quantity, grid, zip, table, replicates and seed."""
    folder = Path()
    if not isinstance(spec, Mapping):
        path = validate.path("spec", spec)
        try:
            content = parse_toml(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise DomainError(f"spec must be a TOML file; got {str(path)!r}: {error}. Correct it.") from None
        spec, folder = content, path.parent
    for word in spec:
        if word not in _SPEC_WORDS:
            raise DomainError(
                f"spec must have the keys {', '.join(_SPEC_WORDS)}; got {validate.shown(word)}. Parameters stand "
                "under grid or zip."
            )
    if "quantity" not in spec:
        raise DomainError('spec must name a quantity; got none. Write quantity = "sampled_gaussian_delta".')
    result = dict(spec)
    if isinstance(result.get("table"), str):
        result["table"] = folder / result["table"]
    return result


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(word, str) and word for word in value):
        raise DomainError(
            f"{name} must be a mapping of parameters to values; got {validate.shown(value)}. Write "
            f"{name}={{'sigma': [1, 2], 'epsilon': [0.5, 1]}}."
        )
    return value


def _zip_axis(columns: Mapping[str, Any], words: Mapping[str, bool] | None) -> Axis:
    result = {name: _column(f"zip[{name!r}]", values, _is_text(name, words)) for name, values in columns.items()}
    length = max(len(values) for values in result.values())
    for name, values in result.items():
        if len(values) not in (1, length):
            raise ShapeError(
                f"zip must have columns of one length; got {len(values)} values of {name!r} beside {length}. Use grid "
                "for all combinations."
            )
    return Axis({name: np.broadcast_to(values, (length,)) for name, values in result.items()})


def _is_text(name: str, words: Mapping[str, bool] | None) -> bool | None:
    """Whether the values of a parameter are words; None where that is not known."""
    return None if words is None else words.get(name)


def _column(name: str, values: Any, text: bool | None = None) -> NDArray[Any]:
    """Return one column of values: doubles, integers, booleans, or an object array of texts."""
    if isinstance(values, str):
        if text or (text is None and not _TEXT_GRID.match(values)):
            values = [values]
        else:
            finite = parse_grid(name, values, "finite numbers", np.isfinite, "Pass finite numbers.")
            validate.grid(name, (finite.count,))
            return finite.build()
    if isinstance(values, (bool, int, float, np.number, np.bool_)):
        values = [values]
    if isinstance(values, (bytes, Mapping)) or not (isinstance(values, np.ndarray) or np.iterable(values)):
        raise DomainError(f"{name} must be a sequence of values; got {validate.shown(values)}. {_COLUMN_REMEDY}")
    if not isinstance(values, np.ndarray):
        values = list(values)
        if any(isinstance(value, str) for value in values):
            if not all(isinstance(value, str) for value in values):
                raise DomainError(f"{name} must be numbers alone or texts alone; got both. {_COLUMN_REMEDY}")
            if text is False:
                index = next((i for i, value in enumerate(values) if not is_number(value)), 0)
                raise DomainError(
                    f"{name} must be numbers; got {values[index]!r} at index {index}. Pass numbers, or a grid as one "
                    "text."
                )
            return np.array(values, dtype=object)
    array = validate.array(name, values)
    if array.ndim != 1:
        raise ShapeError(f"{name} must be one-dimensional; got shape {array.shape}. {_COLUMN_REMEDY}")
    if not array.size:
        raise ShapeError(f"{name} must have at least one value; got none. {_COLUMN_REMEDY}")
    kind = array.dtype.kind
    if text and kind in "biuf":
        raise DomainError(f"{name} must be words; got {array[0].item()!r}. Put the words in quotes.")
    if kind in "UT" or (kind == "O" and all(isinstance(value, str) for value in array)):
        return np.array(array.tolist(), dtype=object)
    if kind == "b":
        return array
    if kind in "iu" and int(array.max()) < 2**63:
        return array.astype(np.int64)
    return validate.vector(name, array, "numbers", lambda x: ~np.isnan(x), remedy="Leave cells without a number out.")


def _table_columns(table: Any, words: Mapping[str, bool] | None) -> dict[str, NDArray[Any]]:
    """Return the columns of a file, a data frame or a list of dicts."""
    if isinstance(table, (str, os.PathLike)):
        columns = _file_columns(validate.path("table", table))
    elif isinstance(table, Mapping):
        raise DomainError(
            f"table must be rows of settings; got {validate.shown(table)}. Pass a mapping as grid= for all "
            "combinations or as zip= for columns."
        )
    elif hasattr(table, "columns") or hasattr(table, "column_names"):  # Arrow, polars and pandas
        names = table.column_names if hasattr(table, "column_names") else list(table.columns)
        columns = {str(name): np.asarray(table[name]) for name in names}
    else:
        rows = validate.sequence("table", table, "dicts")
        if not all(isinstance(row, Mapping) for row in rows):
            raise DomainError(f"table must be a sequence of dicts; got {validate.shown(table)}. Pass one for a cell.")
        for index, row in enumerate(rows):
            if set(row) != set(rows[0]):
                raise DomainError(
                    f"table must have rows with the same parameters; got {', '.join(map(repr, row))} at index {index} "
                    f"after {', '.join(map(repr, rows[0]))}. Name all of them in each row."
                )
        columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    if not columns:
        raise ShapeError("table must have at least one row and one column; got none. Pass the settings, one a row.")
    return {
        name: _column(f"table[{name!r}]", values, _is_text(name, words))
        for name, values in _mapping("table", columns).items()
    }


def _file_columns(path: Path) -> dict[str, Any]:
    """Return the columns of a CSV or Parquet file."""
    file = open_table(path)
    for name, count in Counter(file.names).items():
        if count > 1:
            raise DomainError(
                f"table must have each column once; got {validate.shown(name)} twice in {str(path)!r}. Drop one."
            )
    rows = [row for row in file.rows() if row != [""]]
    columns = map(list, zip(*rows, strict=True))  # none where there are no rows
    return {name: cells if file.parquet else _numbers(cells) for name, cells in zip(file.names, columns, strict=False)}


def _numbers(cells: Sequence[str]) -> Any:
    """Return the column as integers or doubles where all cells are such, else as texts."""
    for number in (int, float):
        try:
            return [number(cell) for cell in cells]
        except ValueError:
            continue
    return list(cells)


def _value_words(values: NDArray[Any]) -> WordArray:
    """Return two words for each value; equal numbers have equal words."""
    if values.dtype.kind in "fi":
        doubles = values.astype(np.float64)
        words = (doubles + 0.0).view(np.uint64)  # -0.0 becomes 0.0
        if values.dtype.kind == "i":
            inexact = (np.abs(doubles) > _EXACT_INTEGERS) | (doubles.astype(np.int64) != values)
            words = np.where(inexact, values.view(np.uint64) ^ np.uint64(1), words)
        return np.stack([words, words])
    if values.dtype.kind == "b":
        return np.array([_text_words("false"), _text_words("true")], dtype=np.uint64).T[:, values.astype(np.intp)]
    known = {text: _text_words(f"text {text}") for text in dict.fromkeys(values.tolist())}
    return np.array([known[text] for text in values.tolist()], dtype=np.uint64).T


def _text_words(text: str) -> tuple[np.uint64, np.uint64]:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return tuple(np.frombuffer(digest, dtype="<u8").astype(np.uint64))


def _mixed(state: WordArray, value: WordArray, lane: int) -> WordArray:
    """Mix a value into a state, one-to-one in each: the finaliser of a 64-bit hash between two multiplications."""
    first, second = _MULTIPLIERS[lane]
    state = (state ^ value) * first
    state ^= state >> _SHIFTS[0]
    state *= second
    state ^= state >> _SHIFTS[1]
    state *= first
    state ^= state >> _SHIFTS[0]
    return state
