"""``Assessment``: the frozen result, its tidy table, and the files it is written to."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__, figures
from .._atomic import writable_directory, written_whole
from ..distributions import Pmf
from ..errors import BackendMissingError, DomainError
from ..estimate import Estimate
from .noise import Requirement
from .quantities import QUANTITIES, Surface
from .summary import summary

__all__ = ["COLUMNS", "FORMATS", "Assessment"]

FloatArray = NDArray[np.float64]
COLUMNS = ("quantity", "sigma", "epsilon", "value", "lower", "upper", "kind", "unit", "method")
FORMATS = ("csv", "parquet", "json")


@dataclass(frozen=True, eq=False)
class Assessment:
    """What the noisy release of a column leaks, over grids of sigma and epsilon.

    Parameters
    ----------
    name, source : str
        What the column is called and where it comes from.
    records : int
        Number of records, 0 for a law that was given instead of data.
    bins : int, optional
        Number of bins whose centres the values were rounded to before the noise; None for exact values.
    prior : Pmf
        The law of the values.
    mechanism : str
        Name of the family of mechanisms.
    noise : str
        The law of the noise, in words of its parameter.
    sensitivity : float
        Largest distance between two values, in the unit of the column.
    sigma : ndarray of float64, shape (s,)
        Standard deviations of the noise, in the unit of the column.
    epsilon : ndarray of float64, shape (e,)
        Epsilons, in nats.
    surfaces : mapping of str to Surface
        The quantities on the grid.
    requirements : tuple of Requirement
        The noise that some usual targets need.

    Notes
    -----
    ``assessment["lip_delta"]`` is an Estimate with arrays of shape (s, e) for a curve and (s,) for a number of each
    sigma. In CSV and Parquet a quantity without epsilon has an empty or null cell there; in JSON infinite numbers are
    the strings ``"inf"`` and ``"-inf"``.

    Examples
    --------
    >>> import fastpriv
    >>> report = fastpriv.assess([31, 40, 40, 58], sigma=[10, 100], epsilon=[1])
    >>> report["lip_delta"].shape
    (2, 1)
    >>> print(",".join(report.columns()))
    quantity,sigma,epsilon,value,lower,upper,kind,unit,method
    """

    name: str
    source: str
    records: int
    bins: int | None
    prior: Pmf
    mechanism: str
    noise: str
    sensitivity: float
    sigma: FloatArray
    epsilon: FloatArray
    surfaces: Mapping[str, Surface]
    requirements: tuple[Requirement, ...]

    def __getitem__(self, quantity: str) -> Estimate:
        if quantity not in self.surfaces:
            raise DomainError(f"quantity must be one of {', '.join(self.surfaces)}; got {quantity!r}. Choose one.")
        found = self.surfaces[quantity]
        kind: Any = found.weakest_kind
        unit: Any = QUANTITIES[quantity].unit
        return Estimate(
            found.value, found.lower, found.upper, kind=kind, unit=unit, method="; ".join(sorted(set(found.method)))
        )

    def __repr__(self) -> str:
        return f"<Assessment of {self.name}: {len(self.sigma)} sigmas x {len(self.epsilon)} epsilons, {self.mechanism}>"

    def summary(self) -> str:
        """The table a person reads: upper bounds, what they mean, and the noise that usual targets need."""
        return summary(self)

    def plot(self) -> Any:
        """The figure, a ``matplotlib.figure.Figure``; single panels are in ``fastpriv.figures``."""
        return figures.assessment(self)

    def rows(self) -> Iterator[tuple[str, float, float | None, float, float, float, str, str, str]]:
        """The tidy table row by row, in the order of ``COLUMNS``; epsilon is None where there is none."""
        epsilons: list[float | None] = list(self.epsilon.tolist())
        for quantity, found in self.surfaces.items():
            of = epsilons if QUANTITIES[quantity].curve else [None]
            unit = QUANTITIES[quantity].unit
            for i, sigma in enumerate(self.sigma.tolist()):
                kind, method = found.kind[i], found.method[i]
                numbers = (np.atleast_1d(x[i]).tolist() for x in (found.value, found.lower, found.upper))
                for epsilon, value, lower, upper in zip(of, *numbers, strict=True):
                    yield quantity, sigma, epsilon, value, lower, upper, kind, unit, method

    def columns(self) -> dict[str, list[Any]]:
        """The tidy table as columns."""
        return dict(zip(COLUMNS, map(list, zip(*self.rows(), strict=True)), strict=True))

    def to_pandas(self) -> Any:
        """The tidy table as a ``pandas.DataFrame``; epsilon is NaN where there is none."""
        try:
            import pandas
        except ImportError:
            raise BackendMissingError(
                "pandas must be installed for to_pandas; got none. Run: pip install 'fastpriv[table]'"
            ) from None
        frame = pandas.DataFrame(self.columns(), columns=list(COLUMNS))
        frame["epsilon"] = frame["epsilon"].astype("float64")
        return frame

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the tidy table as CSV in UTF-8; the file appears whole or not at all."""
        with written_whole(path) as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(self.rows())
            text.flush()
            text.detach()

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write input, settings, meanings, required noise and table as JSON; whole or not at all."""
        with written_whole(path) as stream:
            for piece in self.json_pieces():
                stream.write(piece.encode())

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the tidy table as Parquet, the settings in its metadata; whole or not at all."""
        try:
            import pyarrow as arrow
            import pyarrow.parquet as parquet
        except ImportError:
            raise BackendMissingError(
                "pyarrow must be installed to write Parquet; got none. Run: pip install 'fastpriv[table]'"
            ) from None
        words = ("quantity", "kind", "unit", "method")
        arrays = {
            name: arrow.array(cells, arrow.string()).dictionary_encode() if name in words
            else arrow.array(cells, arrow.float64())
            for name, cells in self.columns().items()
        }  # fmt: skip
        table = arrow.table(arrays).replace_schema_metadata({"fastpriv": json.dumps(_strict(self.settings()))})
        with written_whole(path) as stream:
            parquet.write_table(table, stream)

    def to_figure(self, path: str | os.PathLike[str], *, dpi: int = 160) -> None:
        """Write the figure; the ending of the name (png, svg, pdf) says how. Whole or not at all."""
        picture = self.plot()
        with written_whole(path) as stream:
            picture.savefig(stream, format=Path(path).suffix.lstrip(".").lower() or "png", dpi=dpi)

    def save(
        self, directory: str | os.PathLike[str], *, formats: tuple[str, ...] = FORMATS, figure: str | None = "png"
    ) -> list[Path]:
        """Write ``assessment.<format>`` for each format, and the figure; return the paths."""
        unknown = [f for f in formats if f not in FORMATS]
        if unknown:
            raise DomainError(f"formats must be among {', '.join(FORMATS)}; got {unknown[0]!r}. Choose among these.")
        folder = writable_directory(directory)
        paths = [folder / f"assessment.{format_}" for format_ in formats]
        for format_, path in zip(formats, paths, strict=True):
            getattr(self, f"to_{format_}")(path)
        if figure is not None:
            paths.append(folder / f"assessment.{figure}")
            self.to_figure(paths[-1])
        return paths

    def settings(self) -> dict[str, Any]:
        """Input, mechanism, grid sizes, meanings and required noise, in plain types."""
        return {
            "fastpriv": __version__,
            "data": {
                "name": self.name, "source": self.source, "records": self.records, "bins": self.bins,
                "values": len(self.prior), "smallest": float(self.prior.values[0]),
                "largest": float(self.prior.values[-1]),
            },
            "mechanism": {"name": self.mechanism, "noise": self.noise, "sensitivity": self.sensitivity},
            "grid": {"sigma": len(self.sigma), "epsilon": len(self.epsilon)},
            "quantities": {
                name: {"unit": QUANTITIES[name].unit, "meaning": QUANTITIES[name].meaning} for name in self.surfaces
            },
            "required_noise": [{"target": r.target, "sigma": r.sigma, "kind": r.kind} for r in self.requirements],
        }  # fmt: skip

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
