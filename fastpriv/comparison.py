"""Two laws compared once, as a table: what ``fastpriv divergence`` computes, prints and writes."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from . import __version__
from ._atomic import writable_directory, written_whole
from .assessment.inputs.grids import grid
from .distributions import GaussianMixture
from .errors import BackendMissingError, DomainError
from .estimate import Estimate

__all__ = ["COLUMNS", "QUANTITIES", "Comparison", "compare", "destination"]

COLUMNS = (
    "quantity", "direction", "epsilon", "order", "value", "lower", "upper", "kind", "unit", "method", "confidence",
    "samples", "stopped",
)  # fmt: skip
_NUMBERS = ("epsilon", "order", "value", "lower", "upper", "confidence")
_MOST_EPSILONS = 100_000
_DIGITS = 12
_STOPPED = {
    "target": "the target was met", "max_samples": "the samples were spent", "max_seconds": "the time was spent",
    "interrupted": "it was interrupted", "constant": "all samples had one value",
}  # fmt: skip


@dataclass(frozen=True)
class Quantity:
    """Where a quantity is computed, and what it takes besides the first law."""

    module: str
    name: str
    takes: tuple[str, ...]


QUANTITIES: Mapping[str, Quantity] = {
    "kl": Quantity("kl", "kl_divergence", ("Q", "both", "certified")),
    "jensen-shannon": Quantity("kl", "jensen_shannon", ("Q", "certified")),
    "total-variation": Quantity("hockey_stick", "total_variation", ("Q",)),
    "hockey-stick": Quantity("hockey_stick", "hockey_stick_divergence", ("Q", "epsilon", "both")),
    "log-hockey-stick": Quantity("hockey_stick", "log_hockey_stick_divergence", ("Q", "epsilon", "both")),
    "renyi": Quantity("renyi", "renyi_divergence", ("Q", "order", "certified")),
    "entropy": Quantity("information", "entropy", ("certified",)),
    "label-information": Quantity("information", "label_information", ("certified",)),
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """A quantity of one law or two, with its bounds, and the table it is written as.

    In CSV and Parquet cells that do not apply are empty or null; in JSON infinite numbers are ``"inf"`` and ``"-inf"``.
    """

    quantity: str
    names: tuple[str, ...]
    laws: tuple[GaussianMixture, ...]
    options: Mapping[str, Any]
    found: Estimate

    def rows(self) -> Iterator[dict[str, Any]]:
        """The table row by row: one for each direction and epsilon."""
        e = self.found
        epsilons = self.options["epsilon"].tolist() if "epsilon" in self.options else [None]
        directions = (None, None) if len(self.laws) == 1 else ("P||Q", "Q||P")
        shape = (2 if self.options.get("both") else 1, len(epsilons))
        value, lower, upper = (np.reshape(x, shape).tolist() for x in (e.value, e.lower, e.upper))
        for i in range(shape[0]):
            for j, epsilon in enumerate(epsilons):
                cells = (
                    self.quantity, directions[i], epsilon, self.options.get("order"), value[i][j], lower[i][j],
                    upper[i][j], e.kind, e.unit, e.method, e.confidence, e.cost.get("samples"), e.cost.get("stopped"),
                )  # fmt: skip
                yield dict(zip(COLUMNS, cells, strict=True))

    def summary(self) -> str:
        """The table a person reads; what is shown of the bounds is rounded outward."""
        e, rows = self.found, list(self.rows())
        shown = [name for name in ("direction", "epsilon", "order") if rows[0][name] is not None]
        if not self.options.get("both"):
            shown = [name for name in shown if name != "direction"]
        ways = {"lower": ROUND_FLOOR, "upper": ROUND_CEILING}
        cells = [[*shown, "value", "lower", "upper"]]
        for row in rows:
            said = [row[name] if name == "direction" else f"{row[name]:.6g}" for name in shown]
            said += [_rounded(row[name], ways.get(name, ROUND_HALF_EVEN)) for name in cells[0][len(shown) :]]
            cells.append(said)
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        table = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
        kind = e.kind if e.confidence is None else f"{e.kind}, {100 * e.confidence:g} % confidence"
        words = {"kind": kind, "unit": e.unit, "method": e.method}
        if "samples" in e.cost:
            words["samples"] = f"{e.cost['samples']:,}"
            words["stopped"] = "; ".join(_STOPPED[stop] for stop in e.cost["stopped"].split("; "))
        laws = (
            f"{which} = {name} ({len(law)} component{'s' * (len(law) > 1)})"
            for which, name, law in zip("PQ", self.names, self.laws, strict=False)
        )
        d = self.laws[0].dimension
        head = f"{self.quantity}: {', '.join(laws)}, {d} dimension{'s' * (d > 1)}"
        return "\n".join([head, "", *table, "", *(f"{name:<9}{text}" for name, text in words.items())])

    def json_text(self) -> str:
        """The JSON document."""
        laws = {
            which: {"file": name, "components": len(law), "dimension": law.dimension, "form": law.form}
            for which, name, law in zip("PQ", self.names, self.laws, strict=False)
        }
        table = [{key: _strict(cell) for key, cell in row.items()} for row in self.rows()]
        cost = {key: _strict(cell) for key, cell in self.found.cost.items()}
        document = {"fastpriv": __version__, "quantity": self.quantity, "laws": laws, "cost": cost, "table": table}
        return json.dumps(document, indent=1, default=str) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table as CSV or Parquet, as the ending of the name says; whole or not at all."""
        if destination(path).suffix.lower() == ".parquet":
            self._parquet(path)
            return
        with written_whole(path) as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
            writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows())
            text.flush()
            text.detach()

    def _parquet(self, path: str | os.PathLike[str]) -> None:
        import pyarrow as arrow
        import pyarrow.parquet as parquet

        types = dict.fromkeys(COLUMNS, arrow.string()) | dict.fromkeys(_NUMBERS, arrow.float64())
        types["samples"] = arrow.int64()
        schema = arrow.schema(list(types.items()), metadata={"fastpriv": __version__})
        with written_whole(path) as stream:
            parquet.write_table(arrow.Table.from_pylist(list(self.rows()), schema=schema), stream)


def compare(
    quantity: str,
    laws: Sequence[tuple[str, GaussianMixture]],
    *,
    epsilon: str | None = None,
    order: float | None = None,
    both: bool = False,
    certified: bool = False,
    **sampling: Any,
) -> Comparison:
    """Compute a quantity of the laws, each with the name that the answer shows; ``sampling`` goes on as it is.

    A KeyboardInterrupt carries the comparison that was reached as ``best``, if there was one.
    """
    if quantity not in QUANTITIES:
        raise DomainError(f"quantity must be one of {', '.join(QUANTITIES)}; got {quantity!r}. Choose one of these.")
    chosen = QUANTITIES[quantity]
    given = {"both": both or None, "certified": certified or None, "epsilon": epsilon, "order": order}
    for name, value in given.items():
        if value is not None and name not in chosen.takes:
            of = ", ".join(name_ for name_, other in QUANTITIES.items() if name in other.takes)
            raise DomainError(f"--{name} must be left out for {quantity}; got it. It belongs to {of}.")
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if "epsilon" in chosen.takes:
        options["epsilon"] = _epsilons("0" if epsilon is None else epsilon)
    if "order" in chosen.takes:
        options["order"] = 2.0 if order is None else order
    function = getattr(import_module(f".divergences.{chosen.module}", __package__), chosen.name)
    names, mixtures = zip(*laws, strict=True)
    try:
        found = function(*mixtures, **options, **sampling)
    except KeyboardInterrupt as error:
        if isinstance(best := getattr(error, "best", None), Estimate):
            error.best = Comparison(quantity, names, mixtures, options, best)  # type: ignore[attr-defined]
        raise
    return Comparison(quantity, names, mixtures, options, found)


def destination(path: str | os.PathLike[str]) -> Path:
    """The file of a table, refused before the work rather than after it."""
    goal = Path(path)
    if goal.suffix.lower() not in (".csv", ".parquet"):
        raise DomainError(f"--out must be a name that ends in .csv or .parquet; got {str(path)!r}. Choose one of them.")
    if goal.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        raise BackendMissingError(
            "pyarrow must be installed to write Parquet; got none. Run: pip install 'fastpriv[table]'"
        )
    if goal.is_dir():
        raise DomainError(f"--out must be the name of a file; got the directory {str(path)!r}. Name a file in it.")
    writable_directory(goal.parent)
    return goal


def _epsilons(text: str) -> Any:
    remedy = "Epsilons are in nats."
    points = grid("epsilon", text, "at least 0 and finite", lambda x: (x >= 0) & np.isfinite(x), remedy)
    if points.count > _MOST_EPSILONS:
        raise DomainError(
            f"epsilon must be a grid of at most {_MOST_EPSILONS:,} points; got {points.count:,}. Take fewer points: "
            "the curves are smooth."
        )
    return points.build()


def _rounded(number: float, way: str) -> str:
    if not math.isfinite(number):
        return str(number)
    short = Context(prec=_DIGITS, rounding=way).create_decimal_from_float(number)
    return f"{short.normalize():g}" if short else "0"


def _strict(item: Any) -> Any:
    """JSON has no infinities: they become strings."""
    return str(item) if isinstance(item, float) and not math.isfinite(item) else item
