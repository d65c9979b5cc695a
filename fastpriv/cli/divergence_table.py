"""``DivergenceTable``: a divergence of Gaussian mixtures as a table, as files and as a page."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import DomainError
from ..base.estimate import Estimate, Information
from ..base.files import writable_directory, write_text
from ..base.table import CellType, Table, aligned, bracket_texts, pyarrow
from ..distributions import GaussianMixture
from ..report import Pictures, TextTable, kind_meanings, page, profile, style
from .shared_options import build_grid

__all__ = ["COLUMNS", "QUANTITIES", "DivergenceTable", "check_destination", "compute_table"]

COLUMNS = (
    "quantity", "direction", "epsilon", "order", "value", "lower", "upper", "kind", "unit", "method", "confidence",
    "samples", "stopped",
)  # fmt: skip
_NUMBERS = ("epsilon", "order", "value", "lower", "upper", "confidence")  # columns of numbers
_DIGITS = 12  # significant digits that are printed
# The reasons for which sampling stops, as sentences.
_STOP_REASONS = {
    "target": "the target was met", "max_samples": "the samples were spent", "max_seconds": "the time was spent",
    "interrupted": "it was interrupted", "constant": "all samples had one value",
}  # fmt: skip


_MAX_PAGE_ROWS = 200  # of the table on the page
_DENSITY_POINTS, _SIGMAS_SHOWN = 500, 5.0  # points of a density, over so many standard deviations
# Caption of the pictures on the page.
_CAPTION = "What is solid and dark is of P, or from P to Q; what is dashed, of Q, or from Q to P."


@dataclass(frozen=True)
class DivergenceFunction:
    """A quantity of the command: its function in ``fastpriv.divergences``, and what the page says of it.

    ``takes`` has the arguments besides P; ``title`` and ``meaning`` are the heading and one paragraph of the page.
    """

    module: str
    name: str
    takes: tuple[str, ...]
    title: str
    meaning: str


QUANTITIES: Mapping[str, DivergenceFunction] = {
    "kl": DivergenceFunction(
        "kl_and_renyi", "kl_divergence", ("Q", "both", "certified", "unit"), "Kullback-Leibler divergence",
        "The Kullback-Leibler divergence is the expected logarithm of the ratio of the densities of P and Q, for a "
        "draw of P."),
    "jensen-shannon": DivergenceFunction(
        "kl_and_renyi", "jensen_shannon", ("Q", "certified", "unit"), "Jensen-Shannon divergence",
        "The Jensen-Shannon divergence is the information in a draw of P or Q, with even odds, about which of the two "
        "it came from; it is at most log 2 nats."),
    "total-variation": DivergenceFunction(
        "hockey_stick", "total_variation", ("Q",), "Total variation distance",
        "The total variation distance is the largest difference of the probabilities of a set under P and Q; it is "
        "the hockey-stick divergence at epsilon = 0."),
    "hockey-stick": DivergenceFunction(
        "hockey_stick", "hockey_stick_divergence", ("Q", "epsilon", "both"), "Hockey-stick divergence",
        "The hockey-stick divergence at epsilon is the largest P(S) - e^epsilon Q(S) over all sets S. A mechanism "
        "whose outputs on two neighbouring inputs are P and Q is (epsilon, delta) private for this delta, if the same "
        "holds with P and Q exchanged."),
    "log-hockey-stick": DivergenceFunction(
        "hockey_stick", "log_hockey_stick_divergence", ("Q", "epsilon", "both"),
        "Logarithm of the hockey-stick divergence",
        "The natural logarithm of the hockey-stick divergence, for deltas below 1e-300."),
    "renyi": DivergenceFunction(
        "kl_and_renyi", "renyi_divergence", ("Q", "order", "certified", "unit"), "Renyi divergence",
        "The Renyi divergence of order A is log(E_Q[(dP/dQ)^A]) / (A - 1); it grows with A."),
    "entropy": DivergenceFunction(
        "information", "entropy", ("certified", "unit"), "Entropy",
        "The differential entropy of P; it is negative where P is concentrated."),
    "label-information": DivergenceFunction(
        "information", "label_information", ("certified", "unit"), "Label information",
        "The mutual information of a draw and the component of P that it came from."),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class DivergenceTable(Table):
    """A quantity of one distribution or two, with its bounds, and the table it is written as.

    In CSV and Parquet cells that do not apply are empty or null; in JSON infinite numbers are ``"inf"`` and ``"-inf"``.
    """

    quantity: str
    names: tuple[str, ...]
    mixtures: tuple[GaussianMixture, ...]
    options: Mapping[str, Any]
    estimate: Estimate

    def column_types(self) -> dict[str, CellType]:
        """The columns by name, in order, with the type of their cells."""
        types: dict[str, CellType] = dict.fromkeys(COLUMNS, "text")
        return types | dict.fromkeys(_NUMBERS, "number") | {"samples": "integer"}

    def metadata(self) -> dict[str, Any]:
        """Quantity, distributions, and what the computation took."""
        mixtures = {
            which: {"file": name, "components": len(mixture), "dimension": mixture.dimension, "form": mixture.form}
            for which, name, mixture in zip("PQ", self.names, self.mixtures, strict=False)
        }
        return {"quantity": self.quantity, "distributions": mixtures, "cost": dict(self.estimate.cost)}

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The table row by row: one for each direction and epsilon."""
        e = self.estimate
        epsilons = self.options["epsilon"].tolist() if "epsilon" in self.options else [None]
        directions = (None, None) if len(self.mixtures) == 1 else ("P||Q", "Q||P")
        shape = (2 if self.options.get("both") else 1, len(epsilons))
        value, lower, upper = (np.reshape(x, shape).tolist() for x in (e.value, e.lower, e.upper))
        for i in range(shape[0]):
            for j, epsilon in enumerate(epsilons):
                yield (
                    self.quantity, directions[i], epsilon, self.options.get("order"), value[i][j], lower[i][j],
                    upper[i][j], e.kind, e.unit, e.method, e.confidence, e.cost.get("samples"), e.cost.get("stopped"),
                )  # fmt: skip

    def summary(self) -> str:
        """The table that a person reads; the bounds that it shows are rounded outward."""
        notes = (f"{name:<9}{text}" for name, text in self._notes().items())
        return "\n".join([self._heading(), "", *aligned(self._cells(), left=0), "", *notes])

    def page(self, files: Sequence[str] = ()) -> str:
        """The report page, one self-contained HTML file; ``files`` are the names of files beside it."""
        first, *rows = self._cells()
        caption = "Values with both bounds, rounded outward"
        if len(rows) > _MAX_PAGE_ROWS:
            step = -(-len(rows) // _MAX_PAGE_ROWS)
            rows, caption = rows[::step], f"{caption}; one row in {step} is shown, the file has all"
        numbers = TextTable(first, rows, caption, numeric=range(first[0] == "direction", len(first)))
        images = self._images()
        options = {name: str(self.options[name]) for name in ("order", "both", "certified") if name in self.options}
        sections: dict[str, list[Any]] = {
            "The distributions": [self._mixture_texts()],
            "The numbers": [numbers, self._notes()],
            **({"Pictures": [Pictures(images, _CAPTION)]} if images else {}),
            "How to read it": [
                QUANTITIES[self.quantity].meaning,
                kind_meanings([self.estimate.kind]),
                "A guarantee quotes the upper bound, an attack the lower one. Epsilons are in nats.",
            ],
        }
        title = f"{QUANTITIES[self.quantity].title} of {' and '.join(self.names)}"
        return page(title, sections, ran={"quantity": self.quantity} | self._mixture_texts() | options, files=files)

    def _cells(self) -> list[list[str]]:
        """Return the heading and the rows of the table that is shown."""
        rows = list(self.named_rows())
        shown = [name for name in ("direction", "epsilon", "order") if rows[0][name] is not None]
        if not self.options.get("both"):
            shown = [name for name in shown if name != "direction"]
        cells = [[*shown, "value", "lower", "upper"]]
        for row in rows:
            texts = [row[name] if name == "direction" else f"{row[name]:.6g}" for name in shown]
            cells.append([*texts, *bracket_texts(row["value"], row["lower"], row["upper"], _DIGITS)])
        return cells

    def _notes(self) -> dict[str, str]:
        e = self.estimate
        kind = e.kind if e.confidence is None else f"{e.kind}, {100 * e.confidence:g} % confidence"
        notes = {"kind": kind, "unit": e.unit, "method": e.method}
        if "samples" in e.cost:
            notes["samples"] = f"{e.cost['samples']:,}"
            notes["stopped"] = "; ".join(_STOP_REASONS[stop] for stop in e.cost["stopped"].split("; "))
        return notes

    def _mixture_texts(self) -> dict[str, str]:
        return {
            which: f"{name} ({len(mixture)} component{'s' * (len(mixture) > 1)})"
            for which, name, mixture in zip("PQ", self.names, self.mixtures, strict=False)
        }

    def _heading(self) -> str:
        mixtures = ", ".join(f"{which} = {text}" for which, text in self._mixture_texts().items())
        d = self.mixtures[0].dimension
        return f"{self.quantity}: {mixtures}, {d} dimension{'s' * (d > 1)}"

    def _images(self) -> list[Any]:
        """Return the pictures of the page: the curve over epsilon, and the densities of distributions on the line."""
        images: list[Any] = []
        if "epsilon" in self.options and self.options["epsilon"].size > 1:
            curves = [self.estimate[0], self.estimate[1]] if self.options.get("both") else [self.estimate]
            labels = ["P||Q", "Q||P"][: len(curves)]
            draw = partial(
                profile, curves, self.options["epsilon"], labels=labels, title=QUANTITIES["hockey-stick"].title
            )
            images.append((draw, "Curve of the hockey-stick divergence over epsilon, with its bounds"))
        if self.mixtures[0].dimension == 1:
            images.append((partial(_draw_densities, self.mixtures), "Densities of the distributions on the line"))
        return images

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the table as CSV or Parquet, by the ending of the name, and the page beside it; return the paths.

        A name that ends in .html gets the page alone. Each file is written atomically.
        """
        target = check_destination(path)
        beside = target.with_suffix(".html")
        paths = [target] if target != beside else []
        if paths:
            (self.to_csv if target.suffix.lower() == ".csv" else self.to_parquet)(target)
        return [*paths, write_text(beside, self.page([path.name for path in paths]))]


def _draw_densities(mixtures: Sequence[GaussianMixture]) -> Any:
    """Draw the densities of P and Q on the line, over all points near a component."""
    lower = min(float(np.min(mixture.means - _SIGMAS_SHOWN * mixture.sigmas)) for mixture in mixtures)
    upper = max(float(np.max(mixture.means + _SIGMAS_SHOWN * mixture.sigmas)) for mixture in mixtures)
    x = np.linspace(lower, upper, _DENSITY_POINTS)
    ax = style.axes_or_new(None)
    for k, mixture in enumerate(mixtures):
        density = np.exp(mixture.log_density(x))
        ax.plot(x, density, "-" if k == 0 else "--", color=style.shade(0.6 * k), lw=1.8, label="PQ"[k])
    ax.set(xlabel="x", ylabel="density", ylim=(0.0, None))
    ax.legend(frameon=False, fontsize=9.5)
    return style.styled(ax, "The distributions")


def compute_table(
    quantity: str, mixtures: Sequence[tuple[str, GaussianMixture]], given: Mapping[str, Any], **sampling: Any
) -> DivergenceTable:
    """Compute a quantity of the mixtures, each with the name that the answer shows; ``sampling`` is passed on.

    ``given`` has the options epsilon, order, both, certified and unit; None or False stands for one that is left out.
    A KeyboardInterrupt carries the table of the bounds reached so far as ``best``, if there are any.
    """
    if quantity not in QUANTITIES:
        raise DomainError(f"quantity must be one of {', '.join(QUANTITIES)}; got {quantity!r}. Choose one of these.")
    entry = QUANTITIES[quantity]
    options = {name: value for name, value in given.items() if value is not None and value is not False}
    for name in options:
        if name not in entry.takes:
            owners = ", ".join(other_name for other_name, other in QUANTITIES.items() if name in other.takes)
            raise DomainError(f"--{name} must be left out for {quantity}; got it. It belongs to {owners}.")
    unit: Information = options.pop("unit", "nats")
    if "epsilon" in entry.takes:
        options["epsilon"] = build_grid(
            "epsilon", options.get("epsilon", "0"), "at least 0 and finite", lambda x: (x >= 0) & (x < math.inf),
            "Epsilons are in nats.",
        )  # fmt: skip
    if "order" in entry.takes:
        options.setdefault("order", 2.0)
    function = getattr(import_module(f"fastpriv.divergences.{entry.module}"), entry.name)
    names, distributions = zip(*mixtures, strict=True)

    def table(estimate: Estimate) -> DivergenceTable:
        in_unit = estimate.to(unit) if "unit" in entry.takes else estimate
        return DivergenceTable(quantity, names, distributions, options, in_unit)

    try:
        return table(function(*distributions, **options, **sampling))
    except KeyboardInterrupt as error:
        if isinstance(best := getattr(error, "best", None), Estimate):
            error.best = table(best)  # type: ignore[attr-defined]
        raise


def check_destination(path: str | os.PathLike[str]) -> Path:
    """Return the path of a table; raise before the work, not after it, if it cannot be written."""
    target = Path(path)
    if target.suffix.lower() not in (".csv", ".parquet", ".html"):
        raise DomainError(
            f"--out must be a name that ends in .csv, .parquet or .html; got {str(path)!r}. Choose one of them."
        )
    if target.suffix.lower() == ".parquet":
        pyarrow()
    if target.is_dir():
        raise DomainError(f"--out must be the name of a file; got the directory {str(path)!r}. Name a file in it.")
    writable_directory(target.parent)
    return target
