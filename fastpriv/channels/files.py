"""Channels in files: .npy, .npz, CSV, Parquet, and JSON for those known by parameters.

The JSON of a channel names its class and the arguments of its constructor. Classes are looked up by their public names
in the package, so that this module does not import the mechanisms. Errors name file and row.
"""

# bounds: none - files whose entries differ by more are refused

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..base import parallel, validate
from ..base.column_files import open_table
from ..base.errors import BackendMissingError, DomainError
from ..base.files import FileArray, atomic_write, parse_json, read_npy_header, read_npz
from ..base.table import pyarrow
from .base import MAX_INPUTS, AnyChannel, Channel, ProductChannel
from .sparse_channels import DefaultChannel, SparseChannel

_ENDINGS = (".npy", ".npz", ".csv", ".parquet", ".json")  # of the files that are read and written
_BLOCK_CELLS = 2**18  # cells written together: 2 MiB of doubles
_LOG_PREFIX = "log_"  # starts the names of columns where a table holds logarithms
_SPARSE_KEYS = {"data", "indices", "indptr", "shape", "background"}  # of an .npz
_JSON_KEYS: dict[str, tuple[str, ...]] = {  # class -> arguments of its constructor, in order
    "RandomizedResponse": ("k", "epsilon"),
    "UnaryEncoding": ("k", "logit_p", "logit_q", "epsilon"),
    "SubsetSelection": ("k", "epsilon", "size"),
    "GeometricMechanism": ("n", "epsilon"),
    "DiscreteLaplace": ("n", "scale"),
    "ExponentialMechanism": ("scores", "epsilon", "sensitivity"),
    "DefaultChannel": ("inputs", "default", "indices", "rows"),
    "Channel": ("matrix", "log"),
    "ProductChannel": ("factors", "powers"),
}
_OPTIONAL_KEYS = {"size", "sensitivity", "log", "powers"}  # arguments with defaults, which JSON may leave out
_MATRIX_DTYPES = ("float64", "float32")  # of a dense channel in JSON


def read_channel(path: str | os.PathLike[str]) -> AnyChannel:
    """Read a channel from a file.

    Parameters
    ----------
    path : path-like
        ``.npy``: a matrix, one row a secret, mapped into memory and not copied. ``.npz``: the key ``matrix`` (or
        ``log_matrix``), or ``data``, ``indices``, ``indptr``, ``shape`` and ``background`` of a sparse one. ``.csv``
        and ``.parquet``: a table of numbers, one row a secret and one column a release, with logarithms if the names of
        all columns start with ``log_``; a CSV may do without names. ``.json``: an object with the key ``channel``, the
        name of the class, and its parameters.

    Returns
    -------
    AnyChannel
        Of the class that was written.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        When there is no such file.
    DomainError
        For another ending, a damaged file, or contents that are not a channel; the message names file and row.
    BackendMissingError, MemoryError
        For Parquet without pyarrow; for more than the memory that is free.

    Examples
    --------
    >>> import os, tempfile
    >>> from fastpriv.channels import read_channel
    >>> path = os.path.join(tempfile.mkdtemp(), "q.json")
    >>> with open(path, "w") as stream:
    ...     _ = stream.write('{"channel": "RandomizedResponse", "k": 1000000000, "epsilon": 1.0}')
    >>> read_channel(path)
    RandomizedResponse(1000000000, 1.0)
    """
    file = validate.path("path", path)
    read = {".npy": _read_npy, ".npz": _read_npz, ".csv": _read_csv, ".parquet": _read_parquet, ".json": _read_json}[
        _ending(file)
    ]
    validate.existing_file("file", file, "channel file")
    try:
        return read(file)
    except (BackendMissingError, MemoryError):
        raise
    except (ValueError, TypeError, KeyError, OSError, EOFError, OverflowError, RecursionError) as fault:
        reason = " ".join(str(fault).split()).rstrip(".") or type(fault).__name__
        if "allow_pickle" in reason:
            reason = "it is pickled, which is never loaded"
        raise DomainError(
            f"file must hold a channel; got {str(file)!r}, in which {reason}. "
            "Write it with fastpriv.channels.write_channel(path, channel)."
        ) from None


def write_channel(path: str | os.PathLike[str], channel: AnyChannel) -> None:
    """Write a channel so that ``read_channel`` reads an equal one.

    Parameters
    ----------
    path : path-like
        A name that ends in ``.npy`` (dense, no logarithms), ``.npz`` (dense or sparse), ``.csv``, ``.parquet`` (dense)
        or ``.json`` (dense, known by parameters, or products of these). The file appears whole or not at all.
    channel : AnyChannel
        The channel.

    Raises
    ------
    DomainError, BackendMissingError, OSError
        For another ending, or a channel that such a file does not hold; for Parquet without pyarrow; if the file cannot
        be written.

    Examples
    --------
    >>> import os, tempfile
    >>> from fastpriv.channels import read_channel, write_channel
    >>> from fastpriv.mechanisms import UnaryEncoding
    >>> path = os.path.join(tempfile.mkdtemp(), "q.json")
    >>> q = UnaryEncoding.optimized(50, 1.0).power(200)
    >>> write_channel(path, q)
    >>> read_channel(path) == q
    True
    """
    validate.instance("channel", channel, AnyChannel)
    ending = _ending(validate.path("path", path))
    if ending == ".json":
        text = json.dumps(_json_object(channel), indent=1, allow_nan=True) + "\n"
        with atomic_write(path) as stream:
            stream.write(text.encode())
    elif ending == ".npz" and isinstance(channel, SparseChannel):
        arrays = {"data": channel.data, "indices": channel.indices, "indptr": channel.indptr,
                  "shape": np.array(channel.shape), "background": channel.background}
        _write_npz(path, arrays)
    elif isinstance(channel, Channel) and not (ending == ".npy" and channel.log):
        _write_matrix(path, ending, channel)
    else:
        raise DomainError(
            f"channel must be one that a {ending} file can hold; got {validate.shown(channel)}. Use .json for "
            "channels known by parameters, .npz for sparse ones and logarithms, or write Channel(channel.matrix())."
        )


def _write_npz(path: str | os.PathLike[str], arrays: dict[str, Any]) -> None:
    with atomic_write(path) as stream:
        np.savez(stream, **arrays)


def _write_matrix(path: str | os.PathLike[str], ending: str, channel: Channel) -> None:
    prefix = _LOG_PREFIX if channel.log else ""
    if ending == ".npz":
        _write_npz(path, {f"{prefix}matrix": channel._stored_cells()})
        return
    if ending == ".parquet":
        arrow, parquet = pyarrow("write Parquet")
        cells = channel._stored_cells()
        table = arrow.table({f"{prefix}{w}": cells[:, w] for w in range(channel.outputs)})
    with atomic_write(path) as stream:
        if ending == ".npy":
            header = {"descr": channel.cells.dtype.str, "fortran_order": False, "shape": channel.shape}
            np.lib.format.write_array_header_1_0(stream, header)
            for rows in _row_blocks(channel):
                stream.write(np.ascontiguousarray(rows).data)
        elif ending == ".csv":
            stream.write((",".join(f"{prefix}w{w}" for w in range(channel.outputs)) + "\n").encode())
            for rows in _row_blocks(channel):
                stream.writelines((",".join(map(repr, row)) + "\n").encode() for row in rows.tolist())
        else:
            parquet.write_table(table, stream)


def _row_blocks(channel: Channel) -> Iterator[Any]:
    """The rows of a dense channel as they are stored, some at a time."""
    for part in parallel.blocks(channel.inputs, max(1, _BLOCK_CELLS // channel.outputs)):
        yield channel._stored_rows(part.start, part.stop)


def _ending(file: Path) -> str:
    ending = file.suffix.lower()
    if ending not in _ENDINGS:
        raise DomainError(
            f"path must be a name that ends in {', '.join(_ENDINGS)}; got {str(file)!r}. Choose one of these."
        )
    return ending


def _read_npy(file: Path) -> AnyChannel:
    with open(file, "rb") as stream:
        head = read_npy_header(stream, os.fstat(stream.fileno()).st_size)
    if head.dtype not in (np.float64, np.float32) or head.fortran or not head.entries:
        validate.memory("file", 2 * head.entries * head.dtype.itemsize, "Write it in rows of float64 or float32.")
        flat = FileArray("matrix", file, head.dtype, head.start, head.entries).take(0, head.entries)
        return Channel(flat.reshape(head.shape, order="F" if head.fortran else "C"))
    return Channel(np.memmap(file, head.dtype, "r", head.start, head.shape))


def _read_npz(file: Path) -> AnyChannel:
    arrays = read_npz(file, _check_npz_keys, "Write it as .npy.")
    if arrays.keys() == _SPARSE_KEYS:
        from scipy.sparse import csr_array

        shape = validate.integers("shape", arrays["shape"], 1).tolist()
        if len(shape) != 2:
            raise DomainError(f"shape must be two integers; got {validate.shown(shape)}")
        data = arrays["data"]
        indices = validate.integers("indices", arrays["indices"], 0, shape[1] - 1)
        indptr = validate.integers("indptr", arrays["indptr"], 0, data.size)
        if not indices.shape == data.shape == (data.size,) or indptr.shape != (shape[0] + 1,):
            raise DomainError(
                "data, indices and indptr must be those of a sparse matrix in rows; got shapes "
                f"{data.shape}, {indices.shape} and {indptr.shape} for one of shape {tuple(shape)}"
            )
        return SparseChannel(csr_array((data, indices, indptr), shape=tuple(shape)), arrays["background"])
    ((key, cells),) = arrays.items()
    cells.setflags(write=False)
    return Channel(cells, log=key == "log_matrix")


def _check_npz_keys(names: list[str]) -> None:
    if len(set(names)) < len(names) or set(names) not in ({"matrix"}, {"log_matrix"}, _SPARSE_KEYS):
        raise DomainError(
            f"the keys must be matrix or log_matrix, or data, indices, indptr, shape, background; got {sorted(names)}"
        )


def _read_csv(file: Path) -> AnyChannel:
    validate.memory("file", 2 * file.stat().st_size, "Write it as .npy.")
    rows: list[np.ndarray[Any, Any]] = []
    log, header = False, ""
    with open(file, encoding="utf-8-sig") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            cells = [cell.strip().strip('"') for cell in line.split(",")]
            wrong = [cell for cell in cells if not _is_number(cell)]
            first = not rows and not header
            if first and len(wrong) == len(cells):
                log, header = all(cell.startswith(_LOG_PREFIX) for cell in cells), line.strip()
                continue
            if first and wrong:
                raise DomainError(
                    f"line {number} must be numbers throughout, or names and none of them a number; got {wrong[0]!r} "
                    "among numbers"
                )
            if wrong or (rows and len(cells) != len(rows[0])):
                fault = f"{wrong[0]!r}" if wrong else f"{len(cells)} cells where the rows before have {len(rows[0])}"
                hint = " (leave out names of rows)" if wrong and wrong[0] == cells[0] else ""
                raise DomainError(f"line {number} must be numbers, as many as in the rows before; got {fault}{hint}")
            rows.append(np.array(cells, dtype=np.float64))
    if not rows:
        after = f" after the names {validate.shown(header)}" if header else ""
        raise DomainError(f"the table must have at least one row of numbers separated by commas; got none{after}")
    return Channel(np.stack(rows), log=log)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # which float() allows between digits


def _read_parquet(file: Path) -> AnyChannel:
    table = open_table(file)
    if not table.names:
        raise DomainError("the table must have at least one column; got none")
    cells, types = table.table(), pyarrow("read Parquet")[0].types
    for name, column in zip(table.names, cells.columns, strict=True):
        if not (types.is_floating(column.type) or types.is_integer(column.type)) or column.null_count:
            raise DomainError(f"every column must be numbers without gaps; got {name!r} of type {column.type}")
    log = all(name.startswith(_LOG_PREFIX) for name in table.names)
    return Channel(np.stack([column.to_numpy() for column in cells.columns], axis=1), log=log)


def _read_json(file: Path) -> AnyChannel:
    validate.memory("file", 6 * file.stat().st_size, "Write it as .npz.")
    return _channel_of_json(parse_json(file.read_text(encoding="utf-8-sig")))


def _json_object(channel: AnyChannel) -> dict[str, Any]:
    name = type(channel).__name__
    if name not in _JSON_KEYS:
        raise DomainError(
            f"channel must be one that JSON can hold; got {validate.shown(channel)}. Use .npz for a sparse one."
        )
    if isinstance(channel, ProductChannel):
        return {"channel": name, "factors": [_json_object(factor) for factor in channel.factors],
                "powers": list(channel.powers)}
    if isinstance(channel, Channel):
        return {"channel": name, "matrix": channel._stored_cells().tolist(), "log": channel.log,
                "dtype": str(channel.cells.dtype)}
    keys = _JSON_KEYS[name]
    arguments = channel.__reduce__()[1] if isinstance(channel, DefaultChannel) else [getattr(channel, x) for x in keys]
    return {"channel": name} | {
        key: value.tolist() if isinstance(value, np.ndarray) else value
        for key, value in zip(keys, arguments, strict=True)
    }


def _channel_of_json(parsed: Any) -> AnyChannel:
    if not isinstance(parsed, dict) or str(parsed.get("channel")) not in _JSON_KEYS:
        raise DomainError(
            f"the object must have the key channel, one of {', '.join(_JSON_KEYS)}; got {validate.shown(parsed)}"
        )
    name = parsed["channel"]
    keys = _JSON_KEYS[name]
    channels, mechanisms = import_module("fastpriv.channels"), import_module("fastpriv.mechanisms")
    constructor = getattr(channels, name, None) or getattr(mechanisms, name)
    arguments = {key: value for key, value in parsed.items() if key != "channel"}
    if name == "UnaryEncoding":
        if "k" in arguments and arguments.keys() <= {"k", "epsilon", "p", "q"}:
            keys = tuple(arguments)
        else:
            constructor = _unary_encoding_of_logits
    dtype = arguments.pop("dtype", "float64") if name == "Channel" else None
    if dtype not in (None, *_MATRIX_DTYPES):
        raise DomainError(f"dtype must be one of {', '.join(_MATRIX_DTYPES)}; got {validate.shown(dtype)}")
    if not set(keys) - _OPTIONAL_KEYS <= arguments.keys() <= set(keys):
        raise DomainError(f"the keys of {name} must be {', '.join(keys)}; got {sorted(arguments)}")
    if dtype is not None:
        matrix = validate.real("matrix", arguments["matrix"], "rows of numbers, all of one length").astype(dtype)
        arguments = {"log": False} | arguments | {"matrix": matrix}
    if name == "ProductChannel":
        if not isinstance(arguments["factors"], list):
            raise DomainError(f"factors must be a list of channels; got {validate.shown(arguments['factors'])}")
        arguments["factors"] = [_channel_of_json(factor) for factor in arguments["factors"]]
    channel: AnyChannel = constructor(**arguments)
    return channel


def _unary_encoding_of_logits(k: Any, logit_p: Any, logit_q: Any, epsilon: Any) -> AnyChannel:
    """Build an encoding from its logits in a file; all four are checked, since a file may hold any numbers."""
    yes, other, level = (
        validate.scalar(name, value, "a number", lambda x: x == x)
        for name, value in (("logit_p", logit_p), ("logit_q", logit_q), ("epsilon", epsilon))
    )
    difference = 0.0 if yes == other else yes - other
    if not (level == difference or abs(level - difference) <= 1e-9 * max(abs(yes), abs(other), 1e-300)):
        raise DomainError(
            f"epsilon must be logit_p - logit_q, {difference!r}; got {level!r}. Give k and epsilon, or k, p and q."
        )
    encoding = import_module("fastpriv.mechanisms").UnaryEncoding
    channel: AnyChannel = encoding._of_logits(validate.count("k", k, maximum=MAX_INPUTS), yes, other, level)
    return channel
