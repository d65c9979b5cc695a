"""Gaussian mixtures in files: NumPy archives (.npz) and JSON, with errors that name the file and the key."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..base import validate
from ..base.errors import DomainError
from ..base.files import atomic_write, parse_json, read_npz
from .mixtures import GaussianMixture

_KEYS = ("weights", "means", "sigmas", "covariances")  # keys of an archive: the first two, and one of the others
_ARCHIVE_MAGIC = b"PK"  # first bytes of every zip file, and so of a NumPy archive
_REMEDY = "Write it with fastpriv.distributions.write_mixture(path, mixture)."  # remedy for a file that is no mixture
_BYTES_A_CHARACTER = 6  # of memory, that parsing a character of JSON takes


def read_mixture(path: str | os.PathLike[str]) -> GaussianMixture:
    """Read a Gaussian mixture from a NumPy archive or a JSON file.

    Parameters
    ----------
    path : path-like
        An archive made by ``write_mixture`` or ``numpy.savez(path, weights=..., means=..., sigmas=...)``, or a JSON
        object with the same keys; ``covariances`` may stand in place of ``sigmas``. Shapes are those that
        ``GaussianMixture`` takes. Content decides, not the ending of the name.

    Returns
    -------
    GaussianMixture
        In one or in d dimensions.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        When there is no such file.
    DomainError
        For a file that is damaged or neither of both, missing, repeated or unknown keys, pickled arrays (they are never
        loaded), or entries that make no mixture; the message names the file and the key.
    MemoryError
        For more than the memory that is free.

    Examples
    --------
    >>> import os, tempfile
    >>> from fastpriv.distributions import read_mixture
    >>> path = os.path.join(tempfile.mkdtemp(), "p.json")
    >>> with open(path, "w") as stream:
    ...     _ = stream.write('{"weights": [0.5, 0.5], "means": [0, 3], "sigmas": [1, 2]}')
    >>> read_mixture(path)
    GaussianMixture([0.5, 0.5], [0.0, 3.0], [1.0, 2.0])
    """
    file = validate.path("path", path)
    validate.existing_file("file", file, ".npz or .json file")
    with open(file, "rb") as stream:
        is_archive = stream.read(2) == _ARCHIVE_MAGIC
    arrays = _read_archive(file) if is_archive else _read_json(file)
    missing = [key for key in _KEYS[:2] if key not in arrays]
    if not missing and not arrays.keys() & set(_KEYS[2:]):
        missing = ["sigmas or covariances"]
    if missing:
        keys = "the keys " + ", ".join(arrays) if arrays else "no keys"
        raise DomainError(f"file must hold the key {missing[0]}; got {str(file)!r} with {keys}. {_REMEDY}")
    try:
        return GaussianMixture(
            arrays["weights"], arrays["means"], arrays.get("sigmas"), covariances=arrays.get("covariances")
        )
    except ValueError as fault:
        raise DomainError(f"file must hold a Gaussian mixture; got {str(file)!r}, in which {fault}") from None


def write_mixture(path: str | os.PathLike[str], mixture: GaussianMixture) -> None:
    """Write a Gaussian mixture so that ``read_mixture`` and the command line read the same one, bit by bit.

    Parameters
    ----------
    path : path-like
        A name that ends in ``.npz`` (NumPy archive) or ``.json``. The file appears whole or not at all.
    mixture : GaussianMixture
        In one or in d dimensions.

    Raises
    ------
    DomainError
        For another ending, or what is no mixture.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import os, tempfile
    >>> from fastpriv import GaussianMixture
    >>> from fastpriv.distributions import read_mixture, write_mixture
    >>> path = os.path.join(tempfile.mkdtemp(), "p.npz")
    >>> p = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 2.0]], 1.0)
    >>> write_mixture(path, p)
    >>> read_mixture(path) == p
    True
    """
    validate.instance("mixture", mixture, GaussianMixture)
    ending = validate.path("path", path).suffix.lower()
    if ending not in (".npz", ".json"):
        raise DomainError(f"path must be a name that ends in .npz or .json; got {str(path)!r}. Choose one of these.")
    arrays = {"weights": mixture.weights, "means": mixture.means}
    if mixture.covariances is None:
        arrays["sigmas"] = mixture.sigmas
    else:
        arrays["covariances"] = mixture.covariances[0] if mixture.shared else mixture.covariances
    with atomic_write(path) as stream:
        if ending == ".npz":
            import numpy

            save: Any = numpy.savez  # its stub takes the arrays for its own flag
            save(stream, **arrays)
        else:
            import json

            stream.write(json.dumps({key: array.tolist() for key, array in arrays.items()}).encode() + b"\n")


def _read_archive(file: Path) -> dict[str, Any]:
    try:
        return read_npz(
            file, lambda names: _check_keys(file, names), "Take fewer components, or one covariance for all of them."
        )
    except DomainError as fault:
        if str(fault).startswith("file must"):
            raise
        raise DomainError(
            f"file must be a whole NumPy archive of numbers; got {str(file)!r}, in which {fault}. {_REMEDY}"
        ) from None


def _read_json(file: Path) -> dict[str, Any]:
    def checked(items: list[tuple[str, Any]]) -> dict[str, Any]:
        _check_keys(file, [key for key, _ in items])
        return dict(items)

    validate.memory("file", _BYTES_A_CHARACTER * file.stat().st_size, "Write it as .npz.")
    try:
        content = parse_json(file.read_text(encoding="utf-8-sig"), checked)
    except DomainError:
        raise
    except ValueError as fault:
        raise DomainError(
            f"file must be a NumPy archive or JSON in UTF-8; got {str(file)!r}, which is neither: {fault}. {_REMEDY}"
        ) from None
    if not isinstance(content, dict):
        raise DomainError(
            f"file must hold an object with the keys {', '.join(_KEYS[:3])}; got {str(file)!r} with "
            f"{validate.shown(content)}. {_REMEDY}"
        )
    return content


def _check_keys(file: Path, keys: list[str]) -> None:
    """Raise for a key that is misspelt, which must not be ignored, or occurs twice."""
    for i, key in enumerate(keys):
        if key not in _KEYS or key in keys[:i]:
            fault = "the key " + validate.shown(key) + (" twice" if key in keys[:i] else "")
            raise DomainError(
                f"file must hold no keys but {', '.join(_KEYS)}, each once; got {str(file)!r} with {fault}. "
                "Rename or remove it."
            )
