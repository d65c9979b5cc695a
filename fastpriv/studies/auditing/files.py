"""Files of scores and memberships: .npz, CSV and Parquet."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base import validate
from ...base.column_files import ColumnFile
from ...base.errors import DomainError
from ...base.files import read_npz
from ...base.numerics import BoolArray, FloatArray
from ...distributions import columns

# Words of a column of memberships, in lower case: those of members.
_IN = {"1", "1.0", "true", "t", "yes", "y", "in", "member"}
# Those of others.
_OUT = {"0", "0.0", "-1", "-1.0", "false", "f", "no", "n", "out", "non-member", "nonmember", "non_member"}


def read_scores(
    path: str | os.PathLike[str], *, score: str | None = None, member: str | None = None, **dialect: Any
) -> tuple[FloatArray, BoolArray]:
    """Read scores and memberships from a .npz, CSV or Parquet file.

    Parameters
    ----------
    path : path-like
        Columns, one row a score, in any file of ``fastpriv.read_column``; or a .npz with the arrays ``scores`` and
        ``membership``, of any shapes that ``audit_scores`` takes.
    score, member : str, optional
        Names of the columns; by default the first and the second of a file of two columns, else ``score`` and
        ``member``. Memberships are 1 and 0, True and False, in and out, member and non-member, or 1 and -1.
    **dialect
        ``sep``, ``decimal``, ``encoding``, ``header``, ``na`` and ``sheet``, as for ``fastpriv.read_column``.

    Returns
    -------
    scores : ndarray of float64
    membership : ndarray of bool

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    DomainError
        For a damaged file, unknown columns or arrays, cells that are no numbers or no memberships.

    Notes
    -----
    **Accuracy** numbers are the nearest doubles; ``tests/auditing/test_score_files.py``.

    Source: formats of CSV (RFC 4180), Parquet and NumPy.

    Examples
    --------
    >>> import os, tempfile
    >>> from fastpriv.auditing import read_scores
    >>> path = os.path.join(tempfile.mkdtemp(), "scores.csv")
    >>> with open(path, "w") as stream:
    ...     _ = stream.write("score,member\\n0.5,in\\n0.25,out\\n")
    >>> read_scores(path)
    (array([0.5 , 0.25]), array([ True, False]))
    """
    file = validate.path("path", path)
    for name, column in (("score", score), ("member", member)):
        if column is not None:
            validate.text(name, column)
    if file.suffix.lower() == ".npz":
        if unused := [name for name, value in dialect.items() if value is not None]:
            raise DomainError(f"{unused[0]} must be left out for an archive; got {dialect[unused[0]]!r}. Drop it.")
        return _from_archive(file, score or "scores", member or "membership")
    table = ColumnFile(file, **dialect)
    defaults = table.names if len(table.names) == 2 else ["score", "member"]
    names = [score or defaults[0], member or defaults[1]]
    for name in names:
        if name not in table.names:
            raise DomainError(
                f"path must be a file with a column {name!r}; got "
                f"{', '.join(map(validate.shortened, table.names[:10]))} in {str(file)!r}. Name the columns of "
                "scores and of memberships."
            )
    scores = columns.open_column(table, names[0], "error").numbers()
    words = columns.open_column(table, names[1], "error").texts()
    cells = np.array([word.strip().lower() for word in words])
    inside = np.isin(cells, list(_IN))
    wrong = ~inside & ~np.isin(cells, list(_OUT))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DomainError(
            f"path must have memberships 1 and 0; got {validate.shown(words[row])} at row {row + 1} of column "
            f"{names[1]!r} ({int(wrong.sum())} of {len(cells)} rows). Write 1 for members and 0 for others."
        )
    return scores, inside


def _from_archive(file: Any, score: str, member: str) -> tuple[FloatArray, BoolArray]:
    def check(keys: list[str]) -> None:
        for name in (score, member):
            if name not in keys:
                raise DomainError(
                    f"path must be an archive with the array {name!r}; got {', '.join(keys[:10])} in {str(file)!r}. "
                    "Write it with numpy.savez(path, scores=..., membership=...)."
                )

    if not file.is_file():
        raise FileNotFoundError(f"path must be a file; got {str(file)!r}, which does not exist.")
    arrays = validate.with_argument_name("the archive", "path", lambda: read_npz(file, check, "Take fewer scores."))
    result: NDArray[Any] = arrays[member]
    if result.dtype != np.bool_:
        result = np.where(result == -1, 0, result)
        result = validate.integers("membership", result, 0, 1, remedy="Write 1 for members and 0 for others.") == 1
    return validate.real("scores", arrays[score], "numbers", answer=False), np.asarray(result)
