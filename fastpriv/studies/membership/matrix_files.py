"""Matrices of numbers of copies, or of bits, in .npy, .npz and CSV."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base import validate
from ...base.errors import DomainError
from ...base.files import lines_of, read_npy_header, read_npz
from .genotype_blocks import ABSENT, BLOCK_ATTRIBUTES, GenotypeBlock, damaged_file
from .panels import Panel

__all__ = ["matrix_blocks", "read_matrix_file"]

_LONGEST_LINE = 2**26  # characters of a CSV: tens of millions of attributes
_MISSING_CELLS = {"", "na", "nan", ".", "-9"}  # of a CSV, in lower case


def read_matrix_file(
    file: Path, bitorder: str | None
) -> Panel | tuple[NDArray[Any], list[str] | None, list[str] | None]:
    """A panel, of packed bits, or the numbers of a matrix with the names of people and attributes, if there are any."""
    name = file.name.lower()
    if name.endswith(".npy"):
        return _read_npy(file), None, None
    return _read_npz(file, bitorder) if name.endswith(".npz") else _read_csv(file)


def _read_npy(file: Path) -> NDArray[Any]:
    try:
        with open(file, "rb") as stream:
            header = read_npy_header(stream, file.stat().st_size)
            validate.memory("path", header.entries * header.dtype.itemsize, "Pack the bits in blocks.")
            return header.array(bytearray(stream.read(header.entries * header.dtype.itemsize)))
    except DomainError as fault:
        raise damaged_file(file, fault) from None


def _read_npz(file: Path, bitorder: str | None) -> Any:
    def check_keys(keys: list[str]) -> None:
        if not ({"values"} <= set(keys) or ({"packed"} <= set(keys) and {"shape", "n_attributes"} & set(keys))):
            raise DomainError(
                f"path must be an archive with values, or with packed and n_attributes or shape; got {str(file)!r} "
                f"with {', '.join(keys)}. Write it with fastpriv.studies.membership.write_panel."
            )

    try:
        arrays = read_npz(file, check_keys, "Read it on a machine with more memory.")
    except DomainError as fault:
        raise fault if str(fault).startswith("path must") else damaged_file(file, fault) from None
    people, names = (arrays[key].tolist() if key in arrays else None for key in ("people", "attributes"))
    if "values" in arrays:
        return arrays["values"], people, names
    packed = arrays["packed"]
    size = arrays["n_attributes"] if "n_attributes" in arrays else arrays["shape"][-1:]
    count = int(size.ravel()[0])
    order = str(arrays["bitorder"]) if "bitorder" in arrays else bitorder
    if order is None:
        raise DomainError(
            f"bitorder must be given for a file that does not say it; got None for {str(file)!r}. numpy.packbits packs "
            "'big' unless told otherwise."
        )
    if validate.choice("bitorder", order, ("little", "big")) == "big" and packed.dtype == np.uint8:
        packed = np.packbits(np.unpackbits(packed, axis=1, count=count), axis=1, bitorder="little")
    packed.setflags(write=False)
    return Panel.from_packed(packed, count, people=people, attributes=names)


def _read_csv(file: Path) -> tuple[NDArray[Any], list[str] | None, list[str] | None]:
    """The numbers of a table, with NaN for missing ones, and the names in it."""
    people: list[str] = []
    rows: list[NDArray[np.float32]] = []
    names: list[str] | None = None
    with gzip.open(file, "rt", encoding="utf-8-sig", newline="") if file.name.lower().endswith(".gz") else open(
        file, encoding="utf-8-sig", newline=""
    ) as stream:
        try:
            reader = csv.reader(lines_of(stream, file, _LONGEST_LINE, "path"), strict=True)
            first = next(reader, [])
            with_people = bool(first) and first[0].strip().lower() == "person"
            if not all(_is_number(cell) for cell in first) or with_people:
                names = [cell.strip() for cell in first[with_people:]]
                lines: Iterator[list[str]] = reader
            else:
                lines = chain([first], reader)
            for cells in lines:
                if not cells:
                    continue
                row = cells[with_people:]
                if len(row) != len(first) - with_people:
                    raise DomainError(
                        f"path must be a table with rows of one length; got {len(cells)} cells in line "
                        f"{reader.line_num} of {str(file)!r} after {len(first)} in the first. Write it anew."
                    )
                people += cells[:with_people]
                rows.append(np.array([_number(file, cell, reader.line_num, j, names) for j, cell in enumerate(row)],
                                     dtype=np.float32))  # fmt: skip
        except (csv.Error, UnicodeDecodeError, EOFError, OSError, zlib.error) as fault:
            raise damaged_file(file, fault) from None
    if not rows or not rows[0].size:
        raise DomainError(f"path must be a table with people and attributes; got {str(file)!r} without any. Fill it.")
    return np.stack(rows), people if with_people else None, names


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell.strip().lower() in _MISSING_CELLS
    return True


def _number(file: Path, cell: str, line: int, column: int, names: list[str] | None) -> float:
    if cell.strip().lower() in _MISSING_CELLS:
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        name = str(column) if names is None else names[column]
        raise DomainError(
            f"path must be a table of numbers; got {validate.shown(cell)} in line {line} of {str(file)!r} at "
            f"attribute {validate.shown(name)}. Replace it by 0, 1 or 2."
        ) from None


def matrix_blocks(
    file: Path, values: NDArray[Any], people: list[str] | None, names: list[str] | None, coding: str
) -> Iterator[GenotypeBlock]:
    """Blocks of a matrix of numbers of copies."""
    if values.ndim != 2:
        raise DomainError(f"path must hold a matrix; got shape {values.shape} in {str(file)!r}. One row a person.")
    if values.dtype.kind not in "biuf":
        raise DomainError(f"path must hold numbers; got {values.dtype} in {str(file)!r}. Convert them.")
    most = 1 if coding == "binary" else 2
    labels_of_all = [str(j) for j in range(values.shape[1])] if names is None else names
    for start in range(0, values.shape[1], BLOCK_ATTRIBUTES):
        part = values[:, start : start + BLOCK_ATTRIBUTES]
        labels = labels_of_all[start : start + part.shape[1]]
        absent = np.isnan(part) if part.dtype.kind == "f" else np.zeros(part.shape, dtype=np.bool_)
        with np.errstate(invalid="ignore"):
            copies = np.where(absent, ABSENT, part).astype(np.int8)
        wrong = (copies != part) & ~absent | (copies > most) | ((copies < 0) & ~absent)
        if wrong.any():
            k, j = (int(i) for i in np.argwhere(wrong)[0])
            person = str(k) if people is None else people[k]
            raise DomainError(
                f"path must be a file of {'0 and 1' if most == 1 else '0, 1 and 2'}; got {part[k, j].item()!r} for "
                f"person {person!r} at attribute {labels[j]!r} of {str(file)!r}. "
                + ("Choose coding='carrier' or 'homozygous' for genotypes." if most == 1 else "Correct the file.")
            )
        none = [""] * part.shape[1]
        yield GenotypeBlock(copies, copies == 2, labels, none, none, np.full(part.shape[1], np.nan))
