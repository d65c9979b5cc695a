"""``DivergenceTable``: a divergence of Gaussian mixtures as a table and as a file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import divergences
from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate, Information
from ..base.table import CellType, Table, aligned, bracket_texts
from ..distributions import GaussianMixture
from .shared_options import build_grid

# The columns of the table, in the order in which files have them.
COLUMNS = (
    "quantity", "direction", "epsilon", "order", "value", "lower", "upper", "kind", "unit", "method", "confidence",
    "samples", "stopped",
)
_NUMBERS = ("epsilon", "order", "value", "lower", "upper", "confidence")  # columns of numbers
_DIGITS = 12  # significant digits that are printed
# The reasons for which sampling stops, as sentences.
_STOP_REASONS = {
    "target": "the target was met", "max_samples": "the samples were spent", "max_seconds": "the time was spent",
    "interrupted": "it was interrupted", "constant": "all samples had one value",
}

# The function of each quantity in ``fastpriv.divergences``, and the options that it takes besides P.
QUANTITIES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "kl": ("kl_divergence", ("Q", "both", "certified", "unit")),
    "jensen-shannon": ("jensen_shannon", ("Q", "certified", "unit")),
    "total-variation": ("total_variation", ("Q",)),
    "hockey-stick": ("hockey_stick_divergence", ("Q", "epsilon", "both")),
    "log-hockey-stick": ("log_hockey_stick_divergence", ("Q", "epsilon", "both")),
    "renyi": ("renyi_divergence", ("Q", "order", "certified", "unit")),
    "entropy": ("entropy", ("certified", "unit")),
    "label-information": ("label_information", ("certified", "unit")),
}


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
                )

    def summary(self) -> str:
        """The table that a person reads; the bounds that it shows are rounded outward."""
        notes = (f"{name:<9}{text}" for name, text in self._notes().items())
        return "\n".join([self._heading(), "", *aligned(self._cells(), left=0), "", *notes])

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

    def _heading(self) -> str:
        mixtures = (
            f"{which} = {name} ({len(mixture)} component{'s' * (len(mixture) > 1)})"
            for which, name, mixture in zip("PQ", self.names, self.mixtures, strict=False)
        )
        d = self.mixtures[0].dimension
        return f"{self.quantity}: {', '.join(mixtures)}, {d} dimension{'s' * (d > 1)}"


def compute_table(
    quantity: str, mixtures: Sequence[tuple[str, GaussianMixture]], requested: Mapping[str, Any], **sampling: Any
) -> DivergenceTable:
    """Compute a quantity of the mixtures, each with the name that the answer shows; ``sampling`` is passed on.

    ``requested`` has the options epsilon, order, both, certified and unit; None or False stands for one that is left
    out.
    A KeyboardInterrupt carries the table of the bounds reached so far as ``best``, if there are any.
    """
    function, takes = QUANTITIES[validate.choice("quantity", quantity, tuple(QUANTITIES))]
    options = {name: value for name, value in requested.items() if value is not None and value is not False}
    for name in options:
        if name not in takes:
            owners = ", ".join(other for other, (_, options_of) in QUANTITIES.items() if name in options_of)
            raise DomainError(f"--{name} must be left out for {quantity}; got it. It belongs to {owners}.")
    unit: Information = options.pop("unit", "nats")
    if "epsilon" in takes:
        options["epsilon"] = build_grid(
            "epsilon", options.get("epsilon", "0"), "at least 0 and finite", lambda x: (x >= 0) & (x < math.inf),
            "Epsilons are in nats.",
        )
    if "order" in takes:
        options.setdefault("order", 2.0)
    names, distributions = zip(*mixtures, strict=True)

    def table(estimate: Estimate) -> DivergenceTable:
        in_unit = estimate.to(unit) if "unit" in takes else estimate
        return DivergenceTable(quantity, names, distributions, options, in_unit)

    try:
        return table(getattr(divergences, function)(*distributions, **options, **sampling))
    except KeyboardInterrupt as error:
        if isinstance(best := getattr(error, "best", None), Estimate):
            error.best = table(best)  # type: ignore[attr-defined]
        raise
