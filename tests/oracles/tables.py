"""Read and write the truth tables: ``truth/<table>.json`` holds rows of truths and the inputs that they belong to.

A file is ``{"inputs": {name: {...}}, "rows": [...]}``. Inputs are stored, and never made anew for a stored truth: the
last bits of ``np.exp``, of ``Generator.dirichlet`` and of BLAS sums differ between processors. An array is stored as
hexadecimal doubles, the last axis in one string, ``k*x`` for x repeated k times; of a symmetric matrix the lower
triangle is stored.
"""

from __future__ import annotations

import json
from functools import cache
from itertools import groupby
from pathlib import Path

import numpy as np

__all__ = [
    "FOLDER", "array_from_text", "array_to_text", "inputs", "matrix_from_text", "matrix_to_text", "rows", "write",
]

FOLDER = Path(__file__).parent / "truth"


def array_to_text(array):
    """The numbers of an array as hexadecimal doubles: one string for the last axis, lists for the others."""
    array = np.asarray(array, dtype=float)
    if array.ndim > 1:
        return [array_to_text(part) for part in array]
    runs = [(len(list(run)), text) for text, run in groupby(short_hex(x) for x in np.atleast_1d(array).tolist())]
    return " ".join(text if count == 1 else f"{count}*{text}" for count, text in runs)


def array_from_text(text):
    """The array behind ``array_to_text``."""
    if isinstance(text, list):
        return np.array([array_from_text(part) for part in text])
    out = []
    for word in text.split():
        count, _, number = word.rpartition("*")
        out += [float.fromhex(number)] * int(count or 1)
    return np.array(out)


def short_hex(x):
    """``float.hex`` without its trailing zeros."""
    digits, _, exponent = float(x).hex().partition("p")
    return digits.rstrip("0").rstrip(".") + "p" + exponent if "." in digits else digits


def matrix_to_text(matrices):
    """Symmetric matrices (k, d, d) as the rows of their lower triangles."""
    if not np.array_equal(matrices, np.swapaxes(matrices, 1, 2)):
        raise ValueError("the matrices must be symmetric to the last bit")
    return [[array_to_text(row[: i + 1]) for i, row in enumerate(matrix)] for matrix in matrices]


def matrix_from_text(text):
    """The matrices behind ``matrix_to_text``."""
    out = np.zeros((len(text), len(text[0]), len(text[0])))
    for k, triangle in enumerate(text):
        for i, row in enumerate(triangle):
            out[k, i, : i + 1] = out[k, : i + 1, i] = array_from_text(row)
    return out


@cache
def document(table):
    path = FOLDER / f"{table}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def rows(table):
    """The rows of a table as lists."""
    return document(table)["rows"]


def inputs(table):
    """The inputs of a table by name, as they were stored."""
    return document(table).get("inputs", {})


def write(table, rows, inputs):
    """Write a table; ``inputs`` maps a name to what JSON can hold."""
    kept = ",\n".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in inputs.items())
    lines = ",\n".join(json.dumps(row) for row in rows)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{table}.json").write_text(f'{{"inputs": {{\n{kept}\n}}, "rows": [\n{lines}\n]}}\n')
    document.cache_clear()
