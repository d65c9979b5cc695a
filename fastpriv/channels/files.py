"""Channels in files: .npy, .npz, CSV, Parquet, and JSON for those known by parameters; errors name file and row."""

# bounds: none - files whose entries differ by more are refused

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .. import _validate
from .._files import FileArray, atomic_write, read_npy_header, read_npz
from ..errors import BackendMissingError, DomainError
from .base import MOST_SECRETS, AnyChannel
from .dense import Channel
from .families.geometric import DiscreteLaplace, GeometricMechanism
from .families.products import ProductChannel
from .families.responses import DefaultChannel, ExponentialMechanism, RandomizedResponse
from .families.subsets import SubsetSelection, UnaryEncoding, unary
from .sparse import SparseChannel

__all__ = ["read_channel", "write_channel"]

_ENDINGS = (".npy", ".npz", ".csv", ".parquet", ".json")
_MAKE = "Write it with fastpriv.write_channel(path, channel)."
_BLOCK = 2**18  # cells written together
_LOG = "log_"  # what the names of columns start with where a table holds logarithms

_NAMED: dict[str, tuple[Any, tuple[str, ...]]] = {
    "RandomizedResponse": (RandomizedResponse, ("k", "epsilon")),
    "UnaryEncoding": (lambda **given: _unary(**given), ("k", "logit_p", "logit_q", "epsilon")),
    "SubsetSelection": (SubsetSelection, ("k", "epsilon", "size")),
    "GeometricMechanism": (GeometricMechanism, ("n", "epsilon")),
    "DiscreteLaplace": (DiscreteLaplace, ("n", "scale")),
    "ExponentialMechanism": (ExponentialMechanism, ("scores", "epsilon", "sensitivity")),
    "DefaultChannel": (DefaultChannel, ("inputs", "default", "indices", "rows")),
    "Channel": (lambda matrix, log: Channel(matrix, log=log), ("matrix", "log")),
    "ProductChannel": (ProductChannel, ("factors", "powers")),
}
_SPARSE = {"data", "indices", "indptr", "shape", "background"}
_OPTIONAL = {"size", "sensitivity", "log", "powers"}
_KINDS = ("float64", "float32")


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
        For another ending, a damaged file, or what makes no channel; the message names file and row.
    BackendMissingError
        For Parquet without pyarrow.
    MemoryError
        For more than the memory that is free.

    Examples
    --------
    >>> import os, tempfile
    >>> from fastpriv import read_channel
    >>> path = os.path.join(tempfile.mkdtemp(), "q.json")
    >>> with open(path, "w") as stream:
    ...     _ = stream.write('{"channel": "RandomizedResponse", "k": 1000000000, "epsilon": 1.0}')
    >>> read_channel(path)
    RandomizedResponse(1000000000, 1.0)
    """
    file = _validate.path("path", path)
    ending = _ending(file)
    if not file.is_file():
        fault = IsADirectoryError if file.is_dir() else FileNotFoundError
        raise fault(f"file must be an existing channel file; got {str(file)!r}. Check the path.")
    read = {".npy": _npy, ".npz": _npz, ".csv": _csv, ".parquet": _parquet, ".json": _json}[ending]
    try:
        return read(file)
    except (BackendMissingError, MemoryError):
        raise
    except (ValueError, TypeError, KeyError, OSError, EOFError, OverflowError, RecursionError) as fault:
        reason = " ".join(str(fault).split()).rstrip(".") or type(fault).__name__
        if "allow_pickle" in reason:
            reason = "it is pickled, which is never loaded"
        raise DomainError(f"file must hold a channel; got {str(file)!r}, in which {reason}. {_MAKE}") from None


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
    DomainError
        For another ending, or a channel that such a file does not hold.
    BackendMissingError
        For Parquet without pyarrow.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import os, tempfile
    >>> from fastpriv import UnaryEncoding, read_channel, write_channel
    >>> path = os.path.join(tempfile.mkdtemp(), "q.json")
    >>> q = UnaryEncoding.optimized(50, 1.0).power(200)
    >>> write_channel(path, q)
    >>> read_channel(path) == q
    True
    """
    _validate.instance("channel", channel, AnyChannel)
    ending = _ending(_validate.path("path", path))
    if ending == ".json":
        import json

        text = json.dumps(_described(channel), indent=1, allow_nan=True) + "\n"
        with atomic_write(path) as stream:
            stream.write(text.encode())
        return
    if ending == ".npz" and isinstance(channel, SparseChannel):
        arrays = {"data": channel.data, "indices": channel.indices, "indptr": channel.indptr,
                  "shape": np.array(channel.shape), "background": channel.background}  # fmt: skip
    elif isinstance(channel, Channel) and not (ending == ".npy" and channel.log):
        arrays = {"log_matrix" if channel.log else "matrix": channel._whole()} if ending == ".npz" else {}
    else:
        raise DomainError(
            f"channel must be one that a {ending} file can hold; got {_validate.shown(channel)}. Use .json for "
            "channels known by parameters, .npz for sparse ones and logarithms, or write Channel(channel.matrix())."
        )
    table = _table(channel) if ending == ".parquet" else None
    with atomic_write(path) as stream:
        save: Any = np.savez  # its stub takes the arrays for its own flag
        if ending == ".npz":
            save(stream, **arrays)
        elif ending == ".npy":
            head = {"descr": channel.cells.dtype.str, "fortran_order": False, "shape": channel.shape}  # type: ignore[union-attr]
            np.lib.format.write_array_header_1_0(stream, head)
            for rows in _blocks(channel):
                stream.write(np.ascontiguousarray(rows).data)
        elif ending == ".csv":
            lead = _LOG if channel.log else ""  # type: ignore[union-attr]
            stream.write((",".join(f"{lead}w{w}" for w in range(channel.outputs)) + "\n").encode())
            for rows in _blocks(channel):
                stream.writelines((",".join(map(repr, row)) + "\n").encode() for row in rows.tolist())
        else:
            import pyarrow.parquet as parquet

            parquet.write_table(table, stream)


def _blocks(channel: Any) -> Iterator[Any]:
    """The rows of a dense channel as they are stored, some at a time."""
    step = max(1, _BLOCK // channel.outputs)
    for start in range(0, channel.inputs, step):
        yield channel._stored(start, min(start + step, channel.inputs))


def _ending(file: Path) -> str:
    ending = file.suffix.lower()
    if ending not in _ENDINGS:
        raise DomainError(
            f"path must be a name that ends in {', '.join(_ENDINGS)}; got {str(file)!r}. Choose one of these."
        )
    return ending


def _npy(file: Path) -> AnyChannel:
    with open(file, "rb") as stream:
        head = read_npy_header(stream, os.fstat(stream.fileno()).st_size)
    if head.dtype not in (np.float64, np.float32) or head.fortran or not head.entries:
        _validate.memory("file", 2 * head.entries * head.dtype.itemsize, "Write it in rows of float64 or float32.")
        flat = FileArray("matrix", file, head.dtype, head.start, head.entries).take(0, head.entries)
        return Channel(flat.reshape(head.shape, order="F" if head.fortran else "C"))
    return Channel(np.memmap(file, head.dtype, "r", head.start, head.shape))


def _npz(file: Path) -> AnyChannel:
    found = read_npz(file, _keys, "Write it as .npy.")
    if found.keys() == _SPARSE:
        from scipy.sparse import csr_array

        shape = _validate.integers("shape", found["shape"], 1).tolist()
        if len(shape) != 2:
            raise DomainError(f"shape must be two integers; got {_validate.shown(shape)}")
        indices = _validate.integers("indices", found["indices"], 0, shape[1] - 1)
        indptr = _validate.integers("indptr", found["indptr"], 0, found["data"].size)
        if not indices.shape == found["data"].shape == (found["data"].size,) or indptr.shape != (shape[0] + 1,):
            raise DomainError(
                "data, indices and indptr must be those of a sparse matrix in rows; got shapes "
                f"{found['data'].shape}, {indices.shape} and {indptr.shape} for one of shape {tuple(shape)}"
            )
        return SparseChannel(csr_array((found["data"], indices, indptr), shape=tuple(shape)), found["background"])
    ((key, cells),) = found.items()
    cells.setflags(write=False)
    return Channel(cells, log=key == "log_matrix")


def _keys(names: list[str]) -> None:
    if len(set(names)) < len(names) or set(names) not in ({"matrix"}, {"log_matrix"}, _SPARSE):
        raise DomainError(
            f"the keys must be matrix or log_matrix, or data, indices, indptr, shape, background; got {sorted(names)}"
        )


def _csv(file: Path) -> AnyChannel:
    _validate.memory("file", 2 * file.stat().st_size, "Write it as .npy.")
    rows: list[np.ndarray[Any, Any]] = []
    log, names = False, ""
    with open(file, encoding="utf-8-sig") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            cells = [cell.strip().strip('"') for cell in line.split(",")]
            wrong = [cell for cell in cells if not _number(cell)]
            if not rows and not names and len(wrong) == len(cells):
                log, names = all(cell.startswith(_LOG) for cell in cells), line.strip()
                continue
            if wrong and not rows and not names:
                raise DomainError(
                    f"line {number} must be numbers throughout, or names and none of them a number; got {wrong[0]!r} "
                    "among numbers"
                )
            if wrong or (rows and len(cells) != len(rows[0])):
                fault = f"{wrong[0]!r}" if wrong else f"{len(cells)} cells where the rows before have {len(rows[0])}"
                names = " (leave out names of rows)" if wrong and wrong[0] == cells[0] else ""
                raise DomainError(f"line {number} must be numbers, as many as in the rows before; got {fault}{names}")
            rows.append(np.array(cells, dtype=np.float64))
    if not rows:
        after = f" after the names {_validate.shown(names)}" if names else ""
        raise DomainError(f"the table must have at least one row of numbers separated by commas; got none{after}")
    return Channel(np.stack(rows), log=log)


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise BackendMissingError(
            "pyarrow must be installed for Parquet; got none. Run: pip install 'fastpriv[table]'"
        ) from None
    return pyarrow


def _table(channel: Any) -> Any:
    lead = _LOG if channel.log else ""
    cells = channel._whole()
    return _arrow().table({f"{lead}{w}": cells[:, w] for w in range(channel.outputs)})


def _parquet(file: Path) -> AnyChannel:
    arrow = _arrow()
    import pyarrow.parquet as parquet

    try:
        table = parquet.read_table(file)
    except arrow.ArrowException as fault:
        raise DomainError(f"the Parquet file must be whole; got {str(fault).splitlines()[0]}") from None
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not (arrow.types.is_floating(column.type) or arrow.types.is_integer(column.type)) or column.null_count:
            raise DomainError(f"every column must be numbers without gaps; got {name!r} of type {column.type}")
    log = all(name.startswith(_LOG) for name in table.column_names)
    columns = [column.to_numpy() for column in table.columns]
    if not columns:
        raise DomainError("the table must have at least one column; got none")
    return Channel(np.stack(columns, axis=1), log=log)


def _json(file: Path) -> AnyChannel:
    import json

    _validate.memory("file", 6 * file.stat().st_size, "Write it as .npz.")
    return _built(json.loads(file.read_text(encoding="utf-8-sig")))


def _described(channel: AnyChannel) -> dict[str, Any]:
    name = type(channel).__name__
    if name not in _NAMED:
        raise DomainError(
            f"channel must be one that JSON can hold; got {_validate.shown(channel)}. Use .npz for a sparse one."
        )
    if isinstance(channel, ProductChannel):
        return {"channel": name, "factors": [_described(one) for one in channel.factors],
                "powers": list(channel.powers)}  # fmt: skip
    if isinstance(channel, Channel):
        return {"channel": name, "matrix": channel._whole().tolist(), "log": channel.log,
                "dtype": str(channel.cells.dtype)}  # fmt: skip
    values = channel.__reduce__()[1] if isinstance(channel, DefaultChannel) else (
        getattr(channel, field) for field in _NAMED[name][1])  # fmt: skip
    return {"channel": name} | {
        field: value.tolist() if isinstance(value, np.ndarray) else value
        for field, value in zip(_NAMED[name][1], values, strict=True)
    }


def _built(found: Any) -> AnyChannel:
    if not isinstance(found, dict) or str(found.get("channel")) not in _NAMED:
        raise DomainError(
            f"the object must have the key channel, one of {', '.join(_NAMED)}; got {_validate.shown(found)}"
        )
    make, fields = _NAMED[found["channel"]]
    given = {key: value for key, value in found.items() if key != "channel"}
    kind = given.pop("dtype", "float64") if found["channel"] == "Channel" else None
    if found["channel"] == "UnaryEncoding" and "k" in given and given.keys() <= {"k", "epsilon", "p", "q"}:
        made: AnyChannel = UnaryEncoding(given.pop("k"), **given)
        return made
    if kind not in (None, *_KINDS):
        raise DomainError(f"dtype must be one of {', '.join(_KINDS)}; got {_validate.shown(kind)}")
    if not set(fields) - _OPTIONAL <= given.keys() <= set(fields):
        raise DomainError(f"the keys of {found['channel']} must be {', '.join(fields)}; got {sorted(given)}")
    if kind is not None:
        given = {"log": False} | given | {
            "matrix": _validate.real("matrix", given["matrix"], "rows of numbers, all of one length").astype(kind)
        }
    if found["channel"] == "ProductChannel":
        if not isinstance(given["factors"], list):
            raise DomainError(f"factors must be a list of channels; got {_validate.shown(given['factors'])}")
        given["factors"] = [_built(one) for one in given["factors"]]
    made = make(**given)
    return made


def _unary(k: Any, logit_p: Any, logit_q: Any, epsilon: Any) -> UnaryEncoding:
    """An encoding by its logits, as it was written; checked, since a file may say anything."""
    own, other, level = (
        _validate.scalar(name, value, "a number", lambda x: x == x)
        for name, value in (("logit_p", logit_p), ("logit_q", logit_q), ("epsilon", epsilon))
    )
    difference = 0.0 if own == other else own - other
    if not (level == difference or abs(level - difference) <= 1e-9 * max(abs(own), abs(other), 1e-300)):
        raise DomainError(
            f"epsilon must be logit_p - logit_q, {difference!r}; got {level!r}. Give k and epsilon, or k, p and q."
        )
    return unary(_validate.count("k", k, maximum=MOST_SECRETS), own, other, level)
