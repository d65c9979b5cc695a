"""Records with labels in files: .npz, CSV and Parquet; pictures are records whose shape is known."""

from __future__ import annotations

import functools
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...base import validate
from ...base.column_files import ColumnFile
from ...base.errors import DomainError
from ...base.files import read_npz
from ...base.numerics import FloatArray, IntArray

_MOST_CLASSES = 1000  # more different labels than this are numbers, not classes
_KEYS = ("records", "labels")  # of an .npz file
_CHANNELS = 3  # of pictures in colour


@dataclass(frozen=True, slots=True, eq=False)
class LabelledRecords:
    """Records, scaled to [0, 1], and the classes that they belong to.

    Attributes
    ----------
    records : ndarray, shape (N, D)
        Pictures, pixel by pixel, are scaled all alike; other records feature by feature, constant ones to 0.
    labels : ndarray of int, shape (N,)
        Classes, from 0.
    classes : tuple of str
        What the file calls each class.
    shape : tuple of int or None
        (height, width) of pictures, or (height, width, 3).
    source : str
        Where they come from.
    """

    records: FloatArray
    labels: IntArray
    classes: tuple[str, ...]
    shape: tuple[int, ...] | None
    source: str


def read_records(
    path: str | os.PathLike[str], *, label: str | None = None, shape: tuple[int, ...] | None = None,
    **dialect: Any,
) -> LabelledRecords:
    """Read records with labels.

    Parameters
    ----------
    path : path-like
        ``.npz``: arrays ``records``, one row or one picture a record, and ``labels``. CSV, also packed, and
        Parquet: a column a feature, and one of labels.
    label : str, optional
        The column of labels of CSV and Parquet; by default the one named ``label``, or else the last one.
    shape : tuple of int, optional
        Of pictures whose pixels are the features; known for an ``.npz`` with pictures.
    **dialect
        As ``ColumnFile``.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        When there is no such file.
    DomainError
        For damaged files, cells that are no finite numbers, labels of one class or of more than 1,000, a shape that
        does not fit.
    """
    file = validate.path("path", path)
    validate.existing_file("path", file)
    if file.suffix != ".npz":
        records, labels = _table(ColumnFile(file, **dialect), label)
    elif label is not None or any(item is not None for item in dialect.values()):
        raise DomainError(
            f"label and the options of CSV files must be left out for .npz; got {str(file)!r}, which names its labels."
        )
    else:
        arrays = read_npz(file, functools.partial(_check_keys, file), "Take fewer records.")
        records, labels = arrays["records"], arrays["labels"]
    return labelled_records(records, labels, shape=shape, source=file.name)


def labelled_records(
    records: Any, labels: Any, *, shape: tuple[int, ...] | None = None, source: str
) -> LabelledRecords:
    """Scale records, and number the classes of their labels."""
    table = validate.real("records", records, "finite numbers", np.isfinite)
    if table.ndim not in (2, 3, 4) or 0 in table.shape or (table.ndim == 4 and table.shape[3] != _CHANNELS):
        raise DomainError(
            f"records must be rows of numbers, or pictures (N, height, width) or (N, height, width, {_CHANNELS}); got "
            f"shape {table.shape}. Reshape them."
        )
    if table.ndim > 2:
        shape = table.shape[1:] if shape is None else shape
        table = table.reshape(len(table), -1)
    if shape is not None and math.prod(shape) != table.shape[1]:
        raise DomainError(
            f"shape must have as many pixels as a record has numbers, {table.shape[1]}; got "
            f"{'x'.join(map(str, shape))}. Write 8x8, say."
        )
    names = np.asarray(labels)
    if names.shape != (len(table),):
        raise DomainError(
            f"labels must have one entry a record, {len(table)}; got shape {names.shape}. Pass a flat list."
        )
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise DomainError("labels must be classes; got NaN or infinity. Leave out records without a class.")
    if names.dtype.kind not in "biufU":
        raise DomainError(f"labels must be numbers or texts; got {names.dtype} entries. Name the classes.")
    classes, numbers = np.unique(names, return_inverse=True)
    if not 2 <= classes.size <= _MOST_CLASSES:
        raise DomainError(
            f"labels must name from 2 to {_MOST_CLASSES} classes; got {classes.size} different ones. Choose the column "
            "of classes with --label."
        )
    low, high = (table.min(), table.max()) if shape is not None else (table.min(axis=0), table.max(axis=0))
    width = np.where(high > low, high - low, 1.0)
    if not np.isfinite(width).all():
        raise DomainError("records must have differences that a double holds; got larger ones. Divide them by 1e10.")
    scaled = np.ascontiguousarray((table - low) / width)
    texts = tuple(f"{class_:g}" if names.dtype.kind == "f" else str(class_) for class_ in classes)
    return LabelledRecords(scaled, numbers.astype(np.int64).reshape(-1), texts, shape, source)


def _check_keys(file: Path, keys: list[str]) -> None:
    if not set(_KEYS) <= set(keys):
        raise DomainError(
            f"path must be an .npz with arrays records and labels; got {', '.join(keys) or 'none'} in {str(file)!r}. "
            "Save it by np.savez(path, records=..., labels=...)."
        )


def _table(file: ColumnFile, label: str | None) -> tuple[Any, Any]:
    """Features and labels of a file of columns."""
    if len(file.names) < 2:
        raise DomainError(
            f"path must have a column of labels beside features; got {validate.shown(file.names)} alone. Add it."
        )
    index = len(file.names) - 1
    if label is not None or file.names.count("label") == 1:
        index = file.column_index("label" if label is None else label)
    features = [j for j in range(len(file.names)) if j != index]
    rows = list(file.rows())
    values = np.array([[_number(row[j], file.decimal) for j in features] for row in rows])
    if not np.isfinite(values).all():
        i, k = np.argwhere(~np.isfinite(values))[0].tolist()
        raise DomainError(
            f"path must have finite numbers in the columns of features; got {validate.shown(rows[i][features[k]])} in "
            f"column {file.names[features[k]]!r} of record {i + 1}. Name the column of labels with --label, and leave "
            "out texts."
        )
    return values, np.array([str(row[index]).strip() for row in rows])


def _number(cell: Any, decimal: str | None) -> float:
    """The number of a cell, NaN where it has none; commas are decimal ones unless decimals follow a point."""
    try:
        return float(cell.replace(",", ".") if decimal != "." and isinstance(cell, str) else cell)
    except (TypeError, ValueError):
        return math.nan
