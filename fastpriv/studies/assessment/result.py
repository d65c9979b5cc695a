"""``Assessment`` and ``Comparison``: the frozen results, their tidy table, and the files that they are written to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from ... import report
from ...base import validate
from ...base.errors import DomainError
from ...base.estimate import Estimate, equal_fields
from ...base.files import PICTURES, writable_directory, write_picture, write_text
from ...base.numerics import FloatArray
from ...base.table import CellType, Table
from ...base.version import VERSION
from ...composition import RiskStatement
from ...distributions import Pmf
from .families import Parameter, Requirement
from .quantities import QUANTITIES, QuantityGrid
from .report_page import report_page
from .secret import SecretDistribution
from .statistics import Statistic
from .summary import assessment_summary, comparison_summary, notebook_table
from .verdict import value_risk

_NUMBERS = ("sigma", "level", "epsilon", "value", "lower", "upper")  # columns of numbers
# Columns of the tidy table, in order.
COLUMNS = ("column", "mechanism", "quantity", *_NUMBERS, "kind", "unit", "method")
Format = Literal["csv", "parquet", "json", "html"]
_FORMATS: tuple[Format, ...] = get_args(Format)  # file formats in which ``save`` writes a result
SensitivitySource = Literal["given", "data", "distribution", "none"]
# What JSON and Parquet say of each source.
_SENSITIVITY_TEXTS = {
    "given": "given by the caller",
    "distribution": "range of the distribution that was given",
    "data": "range computed from the private data, no bound known beforehand; pass sensitivity to state one",
}


class _Report(Table):
    """What an assessment and a comparison have in common: rows, equality by value, and the files that hold them."""

    def __eq__(self, other: object) -> Any:
        return equal_fields(self, other)

    def __hash__(self) -> int:
        return hash((type(self).__name__, repr(self)))

    def settings(self) -> dict[str, Any]:
        """Input, mechanisms, grid sizes, meanings and what targets need, in plain types."""
        return self.metadata()

    def plot(self) -> Any:
        """The figure, a ``matplotlib.figure.Figure``."""
        raise NotImplementedError

    def column_types(self) -> dict[str, CellType]:
        """The columns by name, in order, with the type of their cells."""
        return {name: "number" if name in _NUMBERS else "category" for name in COLUMNS}

    def columns(self) -> dict[str, list[Any]]:
        """The tidy table as columns."""
        return dict(zip(COLUMNS, map(list, zip(*self.rows(), strict=True)), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Settings and tidy table in plain types, as ``to_json`` writes them; infinite numbers stay floats."""
        return self.metadata() | {"table": list(self.named_rows())}

    def _repr_html_(self) -> str:
        """The table of the summary, for notebooks."""
        return notebook_table(self)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained HTML page with table, pictures, explanations and settings, atomically.

        The pictures are left out if matplotlib is not installed.
        """
        write_text(validate.path("path", path), report_page(self))

    def to_figure(self, path: str | os.PathLike[str], *, dpi: int = 160) -> None:
        """Write the figure atomically; the ending of the name (png, svg, pdf) gives the format."""
        target = validate.path("path", path)
        dots = validate.scalar("dpi", dpi, "between 10 and 10000", lambda x: (x >= 10) & (x <= 10_000))
        write_picture(target, self.plot(), dots)

    def save(
        self, directory: str | os.PathLike[str], *, formats: tuple[Format, ...] = _FORMATS,
        figure: Literal["png", "svg", "pdf"] | None = "png", ran: Mapping[str, str] | None = None,
    ) -> list[Path]:
        """Write ``assessment.<format>`` for each format, and the figure; return the paths.

        The HTML page is written last, and links to the other files; it says what ``ran``, by name.
        """
        for name in validate.sequence("formats", formats, "formats"):
            validate.choice("formats", name, _FORMATS)
        if figure is not None:
            validate.choice("figure", figure, PICTURES)
        validate.instance("ran", ran, (Mapping, type(None)), "a dict of texts", "Pass {'command': 'mine'}.")
        folder = writable_directory(validate.path("directory", directory))
        paths = []
        for kind in formats:
            if kind != "html":
                paths.append(folder / f"assessment.{kind}")
                getattr(self, f"to_{kind}")(paths[-1])
        if figure is not None:
            paths.append(folder / f"assessment.{figure}")
            self.to_figure(paths[-1])
        if "html" in formats:
            page = report_page(self, [path.name for path in paths], ran or {})
            paths.append(write_text(folder / "assessment.html", page))
        return paths


@dataclass(frozen=True, eq=False)
class Assessment(_Report):
    """What the release of a column leaks, over grids of a mechanism's parameter and of epsilon.

    Parameters
    ----------
    name, source : str
        What the column is called and where it comes from.
    secret : SecretDistribution
        The possible values and their distribution; ``records``, ``bins``, ``labels`` and ``prior`` are read from it.
    mechanism : str
        Name of the family of mechanisms.
    noise : str
        What it does, in words of its parameter.
    parameter : {"sigma", "level", ""}
        What the rows of the grid are: standard deviations of noise, levels of LDP, or nothing for a single mechanism.
    sensitivity : float
        Largest distance between two values, in the unit of the column; 1 for categories.
    grid : ndarray of float64, shape (s,)
        The parameter; ``sigma`` and ``level`` are other names for it.
    epsilon : ndarray of float64, shape (e,)
        Epsilons of the curves, in nats.
    quantities : mapping of str to QuantityGrid
        The quantities on the grid.
    requirements : tuple of Requirement
        The parameter that some usual targets need.
    sensitivity_source : {"given", "data", "distribution", "none"}
        Where the sensitivity comes from: the caller, the range of the data, which are private, so that it is no bound
        known beforehand, or the range of a distribution that was given instead of data; none where nothing rests on it.
    statistic : Statistic, optional
        The number about all records that is released; None where each value is. ``secret`` is then one bit: which of
        two neighbouring data sets.

    Notes
    -----
    ``assessment["lip_delta"]`` is an Estimate with arrays of shape (s, e) for a curve and (s,) for a number of each
    row. In CSV and Parquet ``sigma``, ``level`` and ``epsilon`` are empty or null where they do not apply; in JSON
    infinite numbers are the strings ``"inf"`` and ``"-inf"``. The mechanism with bins is ``gaussian, 256 bins``.

    Examples
    --------
    >>> import fastpriv
    >>> report = fastpriv.assess([31, 40, 40, 58], sigma=[10, 100], epsilon=[1])
    >>> report["lip_delta"].shape
    (2, 1)
    >>> print(",".join(report.columns()))
    column,mechanism,quantity,sigma,level,epsilon,value,lower,upper,kind,unit,method
    """

    name: str
    source: str
    secret: SecretDistribution
    mechanism: str
    noise: str
    parameter: Parameter
    sensitivity: float
    grid: FloatArray
    epsilon: FloatArray
    quantities: Mapping[str, QuantityGrid]
    requirements: tuple[Requirement, ...]
    sensitivity_source: SensitivitySource = "given"
    statistic: Statistic | None = None

    @property
    def records(self) -> int:
        """Number of records, 0 for a distribution that was given instead of data."""
        return self.secret.records

    @property
    def bins(self) -> int | None:
        """Number of bins to whose centres the release rounds values first; None where it takes them as they are."""
        return self.secret.bins

    @property
    def rounding(self) -> str | None:
        """What the release does first, in words; None where it takes values as they are."""
        if self.bins is None:
            return None
        bins = f"{len(self.prior):,} of {self.bins:,} bins" if len(self.prior) < self.bins else f"{self.bins:,} bins"
        return f"values are rounded to the centres of {bins} before the release"

    @property
    def prior(self) -> Pmf:
        """The distribution of what the mechanism is given: values, rounded with bins; of categories, their indices."""
        return self.secret.prior

    @property
    def unrounded(self) -> Pmf:
        """The distribution of the values as they are; ``prior`` unless there are bins."""
        return self.secret.unrounded

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of categories, in the order of ``prior.values``."""
        return self.secret.labels

    @property
    def sigma(self) -> FloatArray:
        """Standard deviations of the noise, in the unit of the column."""
        return self._grid_of("sigma")

    @property
    def level(self) -> FloatArray:
        """Levels of LDP, in nats, of a mechanism that has one as its parameter."""
        return self._grid_of("level")

    def _grid_of(self, parameter: str) -> FloatArray:
        if self.parameter != parameter:
            raise AttributeError(f"{self.mechanism} has no {parameter}; its grid holds: {self.parameter or 'nothing'}.")
        return self.grid

    def __getitem__(self, quantity: str) -> Estimate:
        grid = self.quantities[validate.choice("quantity", quantity, tuple(self.quantities))]
        kind: Any = grid.weakest_kind
        method = "; ".join(sorted(set(grid.method)))
        return Estimate(grid.value, grid.lower, grid.upper, kind=kind, unit=QUANTITIES[quantity].unit, method=method)

    def __repr__(self) -> str:
        grid = f"{len(self.grid)} {self.parameter}s x " if self.parameter else ""
        return f"<Assessment of {self.name}: {grid}{len(self.epsilon)} epsilons, {self.mechanism}>"

    def summary(self) -> str:
        """The table that a person reads: upper bounds, what they mean, and what usual targets need."""
        return assessment_summary(self)

    def risk_statement(self, prior: float | None = None, record: str = "record") -> RiskStatement:
        """The verdict: target, choice, what it means for a person; ``prior`` is the share of members, of statistics."""
        return value_risk(self, record, 0.01 if prior is None else prior)

    def plot(self) -> Any:
        """The figure, a ``matplotlib.figure.Figure``; single panels are in ``fastpriv.report``."""
        return report.assessment(self)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The tidy table row by row, in the order of ``COLUMNS``; None where a number does not apply."""
        mechanism = self.mechanism if self.bins is None else f"{self.mechanism}, {self.bins} bins"
        for quantity, grid in self.quantities.items():
            epsilons = self.epsilon.tolist() if QUANTITIES[quantity].curve else [None]
            unit = QUANTITIES[quantity].unit
            for i, parameter in enumerate(self.grid.tolist()):
                sigma = parameter if self.parameter == "sigma" else None
                level = parameter if self.parameter == "level" else None
                numbers = (np.atleast_1d(x[i]).tolist() for x in (grid.value, grid.lower, grid.upper))
                for cells in zip(epsilons, *numbers, strict=True):
                    yield (self.name, mechanism, quantity, sigma, level, *cells, grid.kind[i], unit, grid.method[i])

    def metadata(self) -> dict[str, Any]:
        """Input, mechanism, grid sizes, meanings and what targets need, in plain types."""
        data: dict[str, Any] = {
            "name": self.name, "source": self.source, "records": self.records, "bins": self.bins,
            "values": len(self.unrounded),
        }
        mechanism: dict[str, Any] = {"name": self.mechanism, "noise": self.noise}
        if self.statistic is not None:
            data = {"name": self.name, "source": self.source, "statistic": vars(self.statistic).copy()}
            if self.statistic.sampling_error is not None:
                data["statistic"]["sampling_error"] = float(self.statistic.sampling_error.value)
            mechanism["sensitivity"] = self.sensitivity
        elif self.labels is None:
            data |= {"smallest": float(self.unrounded.values[0]), "largest": float(self.unrounded.values[-1])}
            mechanism["sensitivity"] = self.sensitivity
            if self.sensitivity_source != "none":
                mechanism["sensitivity_source"] = _SENSITIVITY_TEXTS[self.sensitivity_source]
        else:
            data |= {"categories": list(self.labels), "probabilities": self.prior.probabilities.tolist()}
        if self.bins is not None:
            mechanism["rounding"] = self.rounding
        size = {self.parameter: len(self.grid)} if self.parameter else {}
        return {
            "fastpriv": VERSION,
            "data": data,
            "mechanism": mechanism,
            "grid": size | {"epsilon": len(self.epsilon)},
            "verdict": self.risk_statement().to_dict(),
            "quantities": {
                name: {"unit": QUANTITIES[name].unit, "meaning": QUANTITIES[name].meaning} for name in self.quantities
            },
            "required_noise": [
                {"target": r.target, self.parameter: r.setting, "kind": r.kind} for r in self.requirements
            ],
        }


@dataclass(frozen=True, eq=False)
class Comparison(_Report):
    """The assessments of every column under every mechanism: one table, one summary, one figure.

    Parameters
    ----------
    assessments : tuple of Assessment
        Column by column, within a column mechanism by mechanism.

    Examples
    --------
    >>> import fastpriv
    >>> jobs = ["nurse", "nurse", "clerk", "judge"]
    >>> comparison = fastpriv.assess({"job": jobs}, mechanism=["rr", "subset"], level=[0.5, 1.0], epsilon=[0.1])
    >>> comparison["job", "rr"]["mutual_information"].upper.round(4)
    array([0.0282, 0.1152])
    >>> [assessment.mechanism for assessment in comparison.assessments]
    ['rr', 'subset']
    """

    assessments: tuple[Assessment, ...]

    def __getitem__(self, key: tuple[str, str]) -> Assessment:
        for assessment in self.assessments:
            if (assessment.name, assessment.mechanism) == key:
                return assessment
        keys = ", ".join(repr((assessment.name, assessment.mechanism)) for assessment in self.assessments)
        raise DomainError(f"key must be a column and a mechanism, of {keys}; got {key!r}. Choose one of these.")

    def __iter__(self) -> Iterator[Assessment]:
        return iter(self.assessments)

    def __len__(self) -> int:
        return len(self.assessments)

    def __repr__(self) -> str:
        columns = dict.fromkeys(assessment.name for assessment in self)
        mechanisms = dict.fromkeys(assessment.mechanism for assessment in self)
        return f"<Comparison of {', '.join(columns)} under {', '.join(mechanisms)}>"

    def summary(self) -> str:
        """The summaries of all, the comparison of the mechanisms first."""
        return comparison_summary(self)

    def plot(self) -> Any:
        """The figure: what the mechanisms leak of each column, over the LDP epsilon that they give."""
        return report.comparison(self)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows of all assessments, one after the other."""
        for assessment in self.assessments:
            yield from assessment.rows()

    def metadata(self) -> dict[str, Any]:
        """The settings of each assessment, in plain types."""
        return {"fastpriv": VERSION, "assessments": [assessment.metadata() for assessment in self.assessments]}
