"""The report page of an assessment or a comparison: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...base.table import bracket_texts
from ...report import Details, Pictures, TextTable, kind_meanings, page, panels_of_assessment, panels_of_comparison
from . import summary
from .quantities import QUANTITIES

_DIGITS = 6  # significant digits of the bounds in the table of all quantities


def report_page(report: Any, files: Sequence[str] = (), ran: Mapping[str, str] | None = None) -> str:
    """Return the page of an ``Assessment`` or a ``Comparison``; ``files`` are beside it, ``ran`` is what made it."""
    is_comparison = hasattr(report, "assessments")
    assessments = report.assessments if is_comparison else (report,)
    settings = {
        "data": ", ".join(dict.fromkeys(element.source for element in assessments)),
        "mechanism": "; ".join(
            dict.fromkeys(f"{assessment.mechanism}: {assessment.noise}" for assessment in assessments)
        ),
        "grid": "; ".join(dict.fromkeys(dict(summary.facts(entry))["grid"].partition(";")[0] for entry in assessments)),
    }
    roundings = dict.fromkeys(assessment.rounding for assessment in assessments if assessment.rounding)
    if roundings:
        settings["rounding"] = "; ".join(roundings)
    sections = _comparison_sections(report) if is_comparison else _assessment_sections(report)
    sections["How to read it"] = [
        dict(summary.meanings(*assessments)),
        "A guarantee quotes an upper bound. Amounts of information are in bits in the table of upper bounds; epsilons "
        "and xi are in nats everywhere.",
        kind_meanings(grid.weakest_kind for item in assessments for grid in item.quantities.values()),
    ]
    return page(summary.question(report), sections, ran={**settings, **(ran or {})}, files=files)


def _assessment_sections(report: Any) -> dict[str, list[Any]]:
    images = [(partial(draw, report), text) for text, draw in panels_of_assessment(report)]
    said = report.risk_statement()
    sections: dict[str, list[Any]] = {
        "Verdict": [*said.sentences, dict.fromkeys(said.from_data, ""), *said.assumed],  # terms are in bold type
        "In short": [dict(summary.facts(report)), _upper_bounds(summary.table(report))],
        "Pictures": [Pictures(images, _caption(report))],
    }
    targets = summary.requirements(report)
    if targets:
        noise = report.parameter == "sigma"
        head = ("target", "least noise" if noise else "highest level")
        title = "Noise that a target needs" if noise else "Level that meets a target"
        sections[title] = [TextTable(head, targets, "The parameter at which the upper bound meets the target")]
    values = Details("Values with both bounds", [_quantities_table(report)])
    return {**sections, "All quantities": [values, _quantity_meanings(report)]}


def _comparison_sections(comparison: Any) -> dict[str, list[Any]]:
    sections = {}
    for name in dict.fromkeys(assessment.name for assessment in comparison):
        assessments = [assessment for assessment in comparison if assessment.name == name]
        sections[name] = [
            dict(summary.column_facts(assessments)),
            _upper_bounds(summary.comparison_table(assessments)),
            {item.mechanism: " ".join(item.risk_statement().sentences[:-1]) for item in assessments},
            Pictures([(draw, text) for text, draw in panels_of_comparison(comparison, name)], _SWEEP_CAPTION),
            *(Details(f"Values with both bounds: {item.mechanism}", [_quantities_table(item)]) for item in assessments),
            _quantity_meanings(*assessments),
        ]
    return sections


# Caption of the picture that compares the mechanisms of a comparison.
_SWEEP_CAPTION = (
    "Upper bounds of what a release tells, over the LDP epsilon at delta = 1e-5 that the mechanism gives; one line a "
    "mechanism, hollow markers where no more than a bound is known. Lower is more private."
)


def _caption(report: Any) -> str:
    if report.statistic is not None:
        return "; ".join(text for text, _ in panels_of_assessment(report)) + ". LIP is solid, DP dashed: upper bounds."
    first = "The column" if report.mechanism != "channel" else "The probabilities of the inputs"
    if report.parameter == "sigma":
        return (
            f"{first} before and after noise; the information in a release over the noise, between its bounds; and the "
            "curves delta(epsilon) of LIP (solid) and LDP (dashed). A level of noise has one colour in all pictures."
        )
    return (
        f"{first}; what a release tells, in bits, upper bounds; and the curves delta(epsilon) of LIP (solid) and LDP "
        "(dashed), upper bounds."
    )


def _upper_bounds(cells: list[list[str]]) -> TextTable:
    headings = [(top, below) for top, below in zip(*cells[:2], strict=True)]
    numeric = [j for j, heading in enumerate(headings) if heading[0] != "mechanism"]
    return TextTable(headings, cells[2:], "Upper bounds, rounded up", numeric)


def _quantities_table(report: Any) -> TextTable:
    """Return value and bounds of each quantity at the rows that the summary shows, of curves at one epsilon."""
    rows = []
    index = summary.index_nearest_to_one(report.epsilon)
    for name, grid in report.quantities.items():
        quantity = QUANTITIES[name]
        if quantity.unit == "log probability":  # the same deltas once more, in the files
            continue
        title = f"{name} at epsilon = {report.epsilon[index]:g}" if quantity.curve else name
        for i in summary.shown_rows(report):
            at = (i, index) if quantity.curve else i
            value, *bounds = bracket_texts(grid.value[at], grid.lower[at], grid.upper[at], _DIGITS)
            shown = "-" if grid.is_bound_only(i) else value
            parameter = [f"{report.grid[i]:.6g}"] if report.parameter else []
            rows.append([title, *parameter, shown, *bounds, quantity.unit, grid.kind[i]])
    parameter = [report.parameter] if report.parameter else []
    headings = ["quantity", *parameter, "value", "lower", "upper", "unit", "kind"]
    caption = "Values with both bounds, rounded outward; the files have every row of the grid and every epsilon"
    return TextTable(headings, rows, caption, range(1, len(headings) - 2))


def _quantity_meanings(*reports: Any) -> Details:
    names = dict.fromkeys(name for report in reports for name in report.quantities)
    return Details("Meanings of the quantities", [{name: QUANTITIES[name].meaning for name in names}])
