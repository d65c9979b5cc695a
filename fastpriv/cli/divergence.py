"""``fastpriv divergence``: a divergence of two Gaussian mixtures in files, as a table with bounds and as files."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..base.errors import DomainError
from .shared_options import GRID_FORMS, print_text, warnings_on_one_line

if TYPE_CHECKING:
    from ..base.estimate import Estimate, Information
    from ..distributions import GaussianMixture

__all__ = ["COLUMNS", "QUANTITIES", "DivergenceTable", "add_options", "check_destination", "compute_table", "run"]

COLUMNS = (
    "quantity", "direction", "epsilon", "order", "value", "lower", "upper", "kind", "unit", "method", "confidence",
    "samples", "stopped",
)  # fmt: skip
_FLOAT_COLUMNS = ("epsilon", "order", "value", "lower", "upper", "confidence")  # columns that Parquet stores as doubles
_MAX_EPSILONS = 100_000  # points of a grid; a smooth curve needs no more, and each point costs an evaluation
_DIGITS = 12  # significant digits that are printed
# The reasons for which sampling stops, as sentences.
_STOP_REASONS = {
    "target": "the target was met", "max_samples": "the samples were spent", "max_seconds": "the time was spent",
    "interrupted": "it was interrupted", "constant": "all samples had one value",
}  # fmt: skip


_PANEL_SIZE = (5.6, 4.2)  # inches, of a picture on the page
_MAX_PAGE_ROWS = 200  # of the table on the page
_DENSITY_POINTS, _SIGMAS_SHOWN = 500, 5.0  # points of a density, over so many standard deviations
# Caption of the pictures on the page.
_CAPTION = "What is solid and dark is of P, or from P to Q; what is dashed, of Q, or from Q to P."
_TITLES = {
    "kl": "Kullback-Leibler divergence", "jensen-shannon": "Jensen-Shannon divergence",
    "total-variation": "Total variation distance", "hockey-stick": "Hockey-stick divergence",
    "log-hockey-stick": "Logarithm of the hockey-stick divergence", "renyi": "Renyi divergence", "entropy": "Entropy",
    "label-information": "Label information",
}  # fmt: skip
# One paragraph of the page for each quantity: what it is.
_MEANINGS = {
    "kl": "The Kullback-Leibler divergence is the expected logarithm of the ratio of the densities of P and Q, for a "
    "draw of P.",
    "jensen-shannon": "The Jensen-Shannon divergence is the information in a draw of P or Q, with even odds, about "
    "which of the two it came from; it is at most log 2 nats.",
    "total-variation": "The total variation distance is the largest difference of the probabilities of a set under P "
    "and Q; it is the hockey-stick divergence at epsilon = 0.",
    "hockey-stick": "The hockey-stick divergence at epsilon is the largest P(S) - e^epsilon Q(S) over all sets S. A "
    "mechanism whose outputs on two neighbouring inputs are P and Q is (epsilon, delta) private for this delta, if the "
    "same holds with P and Q exchanged.",
    "log-hockey-stick": "The natural logarithm of the hockey-stick divergence, for deltas below 1e-300.",
    "renyi": "The Renyi divergence of order A is log(E_Q[(dP/dQ)^A]) / (A - 1); it grows with A.",
    "entropy": "The differential entropy of P; it is negative where P is concentrated.",
    "label-information": "The mutual information of a draw and the component of P that it came from.",
}


@dataclass(frozen=True)
class DivergenceFunction:
    """The function of ``fastpriv.divergences`` that computes a quantity, and the arguments it takes besides P."""

    module: str
    name: str
    takes: tuple[str, ...]


# The function of ``fastpriv.divergences`` for each quantity of the command.
QUANTITIES: Mapping[str, DivergenceFunction] = {
    "kl": DivergenceFunction("kl_and_renyi", "kl_divergence", ("Q", "both", "certified", "unit")),
    "jensen-shannon": DivergenceFunction("kl_and_renyi", "jensen_shannon", ("Q", "certified", "unit")),
    "total-variation": DivergenceFunction("hockey_stick", "total_variation", ("Q",)),
    "hockey-stick": DivergenceFunction("hockey_stick", "hockey_stick_divergence", ("Q", "epsilon", "both")),
    "log-hockey-stick": DivergenceFunction("hockey_stick", "log_hockey_stick_divergence", ("Q", "epsilon", "both")),
    "renyi": DivergenceFunction("kl_and_renyi", "renyi_divergence", ("Q", "order", "certified", "unit")),
    "entropy": DivergenceFunction("information", "entropy", ("certified", "unit")),
    "label-information": DivergenceFunction("information", "label_information", ("certified", "unit")),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.description = (
        "Compute a divergence of two Gaussian mixtures, or the entropy or label information of one, with bounds: exact "
        "or certified where that can be, else sampled. The files are made by fastpriv.write_mixture(path, mixture), or "
        "hold weights, means and sigmas or covariances as JSON or .npz."
    )
    add = parser.add_argument
    add(
        "quantity", metavar="QUANTITY", help="kl, jensen-shannon, total-variation, hockey-stick, log-hockey-stick, "
        "renyi, entropy or label-information",
    )  # fmt: skip
    add("p", metavar="P", help="file of the first mixture")
    add("q", nargs="?", metavar="Q", help="file of the second mixture; none for entropy and label-information")
    add("--epsilon", metavar="GRID", help=f"of the hockey-sticks, in nats: {GRID_FORMS} (default: 0)")
    add("--order", metavar="A", type=float, help="of the Renyi divergence (default: 2)")
    add("--both", action="store_true", help="also the other direction, Q||P (kl and the hockey-sticks)")
    add("--unit", choices=("nats", "bits"), default="nats", help="of what is an amount of information (default: nats)")
    add("--certified", action="store_true", help="the proved enclosure or an error")
    add("--confidence", metavar="C", type=float, default=0.95, help="level of a sampled interval (default: 0.95)")
    add("--side", metavar="SIDE", default="both", help="both, or the bound of interest: lower or upper (default: both)")
    add("--rtol", metavar="R", type=float, default=1e-3, help="stop at this relative half width (default: 1e-3)")
    add("--atol", metavar="A", type=float, default=0.0, help="or at this absolute one (default: 0)")
    add("--max-samples", metavar="N", type=float, default=1e8, help="samples at most (default: 1e8)")
    add("--max-seconds", metavar="S", type=float, default=60.0, help="seconds at most (default: 60)")
    add("--method", metavar="WORDS", default="auto", help="auto, or what is forced, as 'direct sobol' (default: auto)")
    add("--interval", metavar="KIND", default="replicates", help="replicates or guaranteed (default: replicates)")
    add("--seed", metavar="N", type=int, help="the same seed gives the same samples")
    add("--n-jobs", metavar="N", type=int, default=-1, help="threads (default: all cores)")
    add(
        "--out", metavar="FILE", help="also write the table to this .csv or .parquet file, and a page (.html) "
        "beside it; a .html file is the page alone",
    )  # fmt: skip
    add("--json", action="store_true", help="print JSON instead of the table")
    add("--quiet", action="store_true", help="no progress bar; with --out no table")
    parser.epilog = "Example: fastpriv divergence hockey-stick p.json q.json --epsilon 0.1..10:5 --out deltas.csv"
    parser.set_defaults(
        run=run, interrupted="nothing was reached yet, and nothing written.",
        large="mixtures and samples must fit into memory; got less memory than they need. Take fewer components.",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Compute, print and write the table; return the exit code."""
    from ..distributions.files import read_mixture

    if args.quantity in QUANTITIES and ("Q" in QUANTITIES[args.quantity].takes) != (args.q is not None):
        got, constraint = ("none", "given") if args.q is None else (repr(args.q), "left out")
        raise DomainError(f"Q must be {constraint} for {args.quantity}; got {got}. See fastpriv divergence --help.")
    if args.seed is not None and args.seed < 0:
        raise DomainError(f"--seed must be a whole number of at least 0; got {args.seed}. Pass one, or leave it out.")
    if args.out is not None:  # before the work, not after it
        check_destination(args.out)
    mixtures = [(file, read_mixture(file)) for file in (args.p, args.q) if file is not None]
    sampling = {
        name: getattr(args, name) for name in (
            "confidence", "side", "rtol", "atol", "max_samples", "max_seconds", "method", "interval", "n_jobs",
        )
    }  # fmt: skip
    with warnings_on_one_line():
        code = 0
        try:
            table = compute_table(
                args.quantity, mixtures, epsilon=args.epsilon, order=args.order, both=args.both,
                certified=args.certified, unit=args.unit, rng=args.seed, progress=not args.quiet, **sampling,
            )  # fmt: skip
        except KeyboardInterrupt as error:
            if not hasattr(error, "best"):
                raise
            exec("")  # as in main
            table, code = error.best, 130
            print(f"fastpriv: warning: {error} The bounds are those of what was done.", file=sys.stderr)
    written = [] if args.out is None else table.save(args.out)
    if args.json:
        sys.stdout.write(table.json_text())
    elif args.out is None or not args.quiet:
        print_text(table.summary() + (f"\n\nWritten: {', '.join(map(str, written))}" if written else "") + "\n")
    return code


@dataclass(frozen=True, eq=False)
class DivergenceTable:
    """A quantity of one distribution or two, with its bounds, and the table it is written as.

    In CSV and Parquet cells that do not apply are empty or null; in JSON infinite numbers are ``"inf"`` and ``"-inf"``.
    """

    quantity: str
    names: tuple[str, ...]
    mixtures: tuple[GaussianMixture, ...]
    options: Mapping[str, Any]
    estimate: Estimate

    def rows(self) -> Iterator[dict[str, Any]]:
        """The table row by row: one for each direction and epsilon."""
        import numpy as np

        e = self.estimate
        epsilons = self.options["epsilon"].tolist() if "epsilon" in self.options else [None]
        directions = (None, None) if len(self.mixtures) == 1 else ("P||Q", "Q||P")
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
        """The table that a person reads; the bounds that it shows are rounded outward."""
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        table = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
        notes = (f"{name:<9}{text}" for name, text in self._notes().items())
        return "\n".join([self._heading(), "", *table, "", *notes])

    def page(self, files: Sequence[str] = ()) -> str:
        """The report page, one self-contained HTML file; ``files`` are the names of files beside it."""
        from ..report import html_page as html

        first, *rows = self._cells()
        caption = "Values with both bounds, rounded outward"
        if len(rows) > _MAX_PAGE_ROWS:
            step = -(-len(rows) // _MAX_PAGE_ROWS)
            rows, caption = rows[::step], f"{caption}; one row in {step} is shown, the file has all"
        numbers = html.table(first, rows, caption=caption, numeric=range(first[0] == "direction", len(first)))
        title = f"{_TITLES[self.quantity]} of {' and '.join(self.names)}"
        images = self._images() if html.can_draw() else []
        options = {name: str(self.options[name]) for name in ("order", "both", "certified") if name in self.options}
        return html.html_page(title, [
            html.section("The distributions", [html.definition_list(self._mixture_texts().items())]),
            html.section("The numbers", [numbers, html.definition_list(self._notes().items())]),
            *([html.section("Pictures", [html.picture_gallery(images, _CAPTION)])] if images else []),
            html.section("How to read it", [
                html.paragraph(_MEANINGS[self.quantity]),
                html.meanings_of_kinds([self.estimate.kind]),
                html.paragraph("A guarantee quotes the upper bound, an attack the lower one. Epsilons are in nats."),
            ]),
            html.section("What ran", [
                html.run_description({"quantity": self.quantity} | self._mixture_texts() | options),
                html.file_links(files),
            ]),
        ])  # fmt: skip

    def _cells(self) -> list[list[str]]:
        """Return the heading and the rows of the table that is shown."""
        from ..base.numerics import rounded_down, rounded_up

        rows = list(self.rows())
        shown = [name for name in ("direction", "epsilon", "order") if rows[0][name] is not None]
        if not self.options.get("both"):
            shown = [name for name in shown if name != "direction"]
        cells = [[*shown, "value", "lower", "upper"]]
        for row in rows:
            texts = [row[name] if name == "direction" else f"{row[name]:.6g}" for name in shown]
            bracket = (rounded_down(row["lower"], _DIGITS), rounded_up(row["upper"], _DIGITS))
            cells.append([*texts, f"{row['value']:.{_DIGITS}g}", *bracket])
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

    def _images(self) -> list[str]:
        """Return the pictures of the page: the curve over epsilon, and the densities of distributions on the line."""
        from ..report import html_page as html
        from ..report.privacy_profile import profile
        from ..report.style import new_figure

        images = []
        if "epsilon" in self.options and self.options["epsilon"].size > 1:
            figure = new_figure(_PANEL_SIZE)
            figure.set_layout_engine("constrained")
            curves = [self.estimate[0], self.estimate[1]] if self.options.get("both") else [self.estimate]
            labels = ["P||Q", "Q||P"][: len(curves)]
            title = _TITLES["hockey-stick"]
            profile(curves, self.options["epsilon"], labels=labels, title=title, ax=figure.add_subplot())
            images.append(html.svg_image(figure, "Curve of the hockey-stick divergence over epsilon, with its bounds"))
        if self.mixtures[0].dimension == 1:
            images.append(html.svg_image(self._density_figure(), "Densities of the distributions on the line"))
        return images

    def json_text(self) -> str:
        """Return the JSON document."""
        from ..base.files import json_safe

        mixtures = {
            which: {"file": name, "components": len(mixture), "dimension": mixture.dimension, "form": mixture.form}
            for which, name, mixture in zip("PQ", self.names, self.mixtures, strict=False)
        }
        table = [{key: json_safe(cell) for key, cell in row.items()} for row in self.rows()]
        cost = {key: json_safe(cell) for key, cell in self.estimate.cost.items()}
        document = {
            "fastpriv": __version__, "quantity": self.quantity, "distributions": mixtures, "cost": cost, "table": table,
        }  # fmt: skip
        return json.dumps(document, indent=1, default=str) + "\n"

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the table as CSV or Parquet, by the ending of the name, and the page beside it; return the paths.

        A name that ends in .html gets the page alone. Each file is written atomically.
        """
        from ..base.files import atomic_write, write_csv
        from ..base.table import pyarrow

        target = check_destination(path)
        page = target.with_suffix(".html")
        if target.suffix.lower() == ".csv":
            write_csv(target, COLUMNS, (row.values() for row in self.rows()))
        elif target.suffix.lower() == ".parquet":
            arrow, parquet = pyarrow("write Parquet")
            types = dict.fromkeys(COLUMNS, arrow.string()) | dict.fromkeys(_FLOAT_COLUMNS, arrow.float64())
            types["samples"] = arrow.int64()
            schema = arrow.schema(list(types.items()), metadata={"fastpriv": __version__})
            with atomic_write(target) as stream:
                parquet.write_table(arrow.Table.from_pylist(list(self.rows()), schema=schema), stream)
        paths = [target] if target != page else []
        text = self.page([path.name for path in paths])
        with atomic_write(page) as stream:
            stream.write(text.encode())
        return [*paths, page]

    def _density_figure(self) -> Any:
        """Draw the densities of P and Q on the line, over all points near a component."""
        import numpy as np

        from ..report.style import new_figure, shade, styled

        lower = min(float(np.min(mixture.means - _SIGMAS_SHOWN * mixture.sigmas)) for mixture in self.mixtures)
        upper = max(float(np.max(mixture.means + _SIGMAS_SHOWN * mixture.sigmas)) for mixture in self.mixtures)
        x = np.linspace(lower, upper, _DENSITY_POINTS)
        figure = new_figure(_PANEL_SIZE)
        figure.set_layout_engine("constrained")
        ax = figure.add_subplot()
        for k, mixture in enumerate(self.mixtures):
            density = np.exp(mixture.log_density(x))
            ax.plot(x, density, "-" if k == 0 else "--", color=shade(0.6 * k), lw=1.8, label="PQ"[k])
        ax.set(xlabel="x", ylabel="density", ylim=(0.0, None))
        ax.legend(frameon=False, fontsize=9.5)
        return styled(ax, "The distributions").get_figure()


def compute_table(
    quantity: str,
    mixtures: Sequence[tuple[str, GaussianMixture]],
    *,
    epsilon: str | None = None,
    order: float | None = None,
    both: bool = False,
    certified: bool = False,
    unit: Information = "nats",
    **sampling: Any,
) -> DivergenceTable:
    """Compute a quantity of the mixtures, each with the name that the answer shows; ``sampling`` is passed on.

    A KeyboardInterrupt carries the table of the bounds reached so far as ``best``, if there are any.
    """
    if quantity not in QUANTITIES:
        raise DomainError(f"quantity must be one of {', '.join(QUANTITIES)}; got {quantity!r}. Choose one of these.")
    entry = QUANTITIES[quantity]
    arguments = {
        "both": both or None, "certified": certified or None, "epsilon": epsilon, "order": order,
        "unit": None if unit == "nats" else unit,
    }  # fmt: skip
    for name, value in arguments.items():
        if value is not None and name not in entry.takes:
            owners = ", ".join(other_name for other_name, other in QUANTITIES.items() if name in other.takes)
            raise DomainError(f"--{name} must be left out for {quantity}; got it. It belongs to {owners}.")
    options: dict[str, Any] = {name: value for name, value in arguments.items() if value is not None and name != "unit"}
    if "epsilon" in entry.takes:
        options["epsilon"] = _epsilon_grid("0" if epsilon is None else epsilon)
    if "order" in entry.takes:
        options["order"] = 2.0 if order is None else order
    from ..base.estimate import Estimate

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
    from ..base.files import writable_directory
    from ..base.table import pyarrow

    target = Path(path)
    if target.suffix.lower() not in (".csv", ".parquet", ".html"):
        raise DomainError(
            f"--out must be a name that ends in .csv, .parquet or .html; got {str(path)!r}. Choose one of them."
        )
    if target.suffix.lower() == ".parquet":
        pyarrow("write Parquet")
    if target.is_dir():
        raise DomainError(f"--out must be the name of a file; got the directory {str(path)!r}. Name a file in it.")
    writable_directory(target.parent)
    return target


def _epsilon_grid(text: str) -> Any:
    from ..base.grids import parse_grid

    points = parse_grid(
        "epsilon", text, "at least 0 and finite", lambda x: (x >= 0) & (x < math.inf), "Epsilons are in nats."
    )
    if points.count > _MAX_EPSILONS:
        raise DomainError(
            f"epsilon must be a grid of at most {_MAX_EPSILONS:,} points; got {points.count:,}. Take fewer points: "
            "the curves are smooth."
        )
    return points.build()
