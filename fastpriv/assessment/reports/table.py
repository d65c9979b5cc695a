"""The tidy table that every report makes, and the files it is written to."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ... import _validate
from ..._files import atomic_write, writable_directory
from ...errors import BackendMissingError, DomainError

__all__ = ["COLUMNS", "FORMATS", "Report"]

WORDS = ("column", "mechanism", "quantity", "kind", "unit", "method")
NUMBERS = ("sigma", "level", "epsilon", "value", "lower", "upper")
COLUMNS = ("column", "mechanism", "quantity", *NUMBERS, "kind", "unit", "method")
FORMATS = ("csv", "parquet", "json")
PICTURES = ("png", "svg", "pdf")
_INSTALL = "Run: pip install 'fastpriv[table]'"


class Report:
    """What an assessment and a sweep have in common: rows, and the files that hold them."""

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The tidy table row by row, in the order of ``COLUMNS``; None where a number has no place."""
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        """Input, mechanisms, grid sizes and meanings, in plain types."""
        raise NotImplementedError

    def summary(self) -> str:
        """The table a person reads."""
        raise NotImplementedError

    def plot(self) -> Any:
        """The figure, a ``matplotlib.figure.Figure``."""
        raise NotImplementedError

    def columns(self) -> dict[str, list[Any]]:
        """The tidy table as columns."""
        return dict(zip(COLUMNS, map(list, zip(*self.rows(), strict=True)), strict=True))

    def to_pandas(self) -> Any:
        """The tidy table as a ``pandas.DataFrame``; NaN where a number has no place."""
        try:
            import pandas
        except ImportError:
            raise BackendMissingError(f"pandas must be installed for to_pandas; got none. {_INSTALL}") from None
        return pandas.DataFrame(self.columns(), columns=list(COLUMNS)).astype(dict.fromkeys(NUMBERS, "float64"))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the tidy table as CSV in UTF-8; the file appears whole or not at all."""
        with atomic_write(_validate.path("path", path)) as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(self.rows())
            text.flush()
            text.detach()

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write input, settings, meanings, what targets need and table as JSON; whole or not at all."""
        with atomic_write(_validate.path("path", path)) as stream:
            for piece in self.json_pieces():
                stream.write(piece.encode())

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the tidy table as Parquet, the settings in its metadata; whole or not at all."""
        goal = _validate.path("path", path)
        try:
            import pyarrow as arrow
            import pyarrow.parquet as parquet
        except ImportError:
            raise BackendMissingError(f"pyarrow must be installed to write Parquet; got none. {_INSTALL}") from None
        arrays = {
            name: arrow.array(cells, arrow.string()).dictionary_encode() if name in WORDS
            else arrow.array(cells, arrow.float64())
            for name, cells in self.columns().items()
        }  # fmt: skip
        table = arrow.table(arrays).replace_schema_metadata({"fastpriv": json.dumps(_strict(self.settings()))})
        with atomic_write(goal) as stream:
            parquet.write_table(table, stream)

    def to_figure(self, path: str | os.PathLike[str], *, dpi: int = 160) -> None:
        """Write the figure; the ending of the name (png, svg, pdf) says how. Whole or not at all."""
        goal = _validate.path("path", path)
        kind = goal.suffix.lstrip(".").lower() or "png"
        if kind not in PICTURES:
            raise DomainError(
                f"path must be a name that ends in .png, .svg or .pdf; got {str(goal)!r}. Choose one of these endings."
            )
        dots = _validate.scalar("dpi", dpi, "between 10 and 10000", lambda x: (x >= 10) & (x <= 10_000))
        picture = self.plot()
        with atomic_write(goal) as stream:
            picture.savefig(stream, format=kind, dpi=dots)

    def save(
        self, directory: str | os.PathLike[str], *, formats: tuple[str, ...] = FORMATS, figure: str | None = "png"
    ) -> list[Path]:
        """Write ``assessment.<format>`` for each format, and the figure; return the paths."""
        for one in _validate.sequence("formats", formats, "formats"):
            if not isinstance(one, str) or one not in FORMATS:
                raise DomainError(
                    f"formats must be among {', '.join(FORMATS)}; got {_validate.shown(one)}. Choose among these."
                )
        if figure is not None:
            _validate.choice("figure", figure, PICTURES)
        folder = writable_directory(_validate.path("directory", directory))
        paths = [folder / f"assessment.{format_}" for format_ in formats]
        for format_, path in zip(formats, paths, strict=True):
            getattr(self, f"to_{format_}")(path)
        if figure is not None:
            paths.append(folder / f"assessment.{figure}")
            self.to_figure(paths[-1])
        return paths

    def json_pieces(self) -> Iterator[str]:
        """The JSON document in pieces, so that a long table is never in memory as text."""
        yield json.dumps(_strict(self.settings()), indent=1)[:-2] + ',\n "table": ['
        for i, row in enumerate(self.rows()):
            yield (",\n  " if i else "\n  ") + json.dumps(_strict(dict(zip(COLUMNS, row, strict=True))))
        yield "\n ]\n}\n"


def _strict(item: Any) -> Any:
    """JSON has no infinities: they become strings."""
    if isinstance(item, float) and not math.isfinite(item):
        return str(item)
    if isinstance(item, dict):
        return {key: _strict(value) for key, value in item.items()}
    if isinstance(item, list):
        return [_strict(value) for value in item]
    return item
