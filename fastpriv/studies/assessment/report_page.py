"""The report page of an assessment or a comparison: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ...base.numerics import rounded_down, rounded_up
from ...report.assessment_panels import assessment_panels, comparison_panels
from ...report.html_page import (
    can_draw,
    definition_list,
    details,
    file_links,
    html_page,
    meanings_of_kinds,
    paragraph,
    picture_gallery,
    run_description,
    section,
    svg_image,
    table,
)
from ...report.style import new_figure
from . import summary
from .quantities import QUANTITIES

__all__ = ["report_page"]

_PANEL_SIZE = (5.6, 4.2)  # inches
_DIGITS = 6  # significant digits of the bounds in the table of all quantities
# Text in place of the pictures where matplotlib is missing.
_NOT_DRAWN = "There are no pictures: matplotlib is not installed. Run: pip install 'fastpriv[figures]'"


def report_page(report: Any, files: Sequence[str] = ()) -> str:
    """Return the page of an ``Assessment`` or a ``Comparison``; ``files`` are the names of files beside it."""
    is_comparison = hasattr(report, "assessments")
    assessments = report.assessments if is_comparison else (report,)
    parts = _comparison_parts(report) if is_comparison else _assessment_parts(report)
    sources = dict.fromkeys(assessment.source for assessment in assessments)
    mechanisms = dict.fromkeys(f"{assessment.mechanism}: {assessment.noise}" for assessment in assessments)
    grids = dict.fromkeys(dict(summary.facts(assessment))["grid"].partition(";")[0] for assessment in assessments)
    settings = {"data": ", ".join(sources), "mechanism": "; ".join(mechanisms), "grid": "; ".join(grids)}
    roundings = dict.fromkeys(assessment.rounding for assessment in assessments if assessment.rounding)
    if roundings:
        settings["rounding"] = "; ".join(roundings)
    parts += [
        section("How to read it", [
            definition_list(summary.meanings(*assessments)),
            paragraph(
                "A guarantee quotes an upper bound. Amounts of information are in bits in the table of upper bounds; "
                "epsilons and xi are in nats everywhere."
            ),
            meanings_of_kinds({
                grid.weakest_kind for assessment in assessments for grid in assessment.quantities.values()
            }),
        ]),
        section("What ran", [run_description(settings), file_links(files)]),
    ]  # fmt: skip
    return html_page(summary.question(report), parts)


def _assessment_parts(report: Any) -> list[str]:
    parts = [section("In short", [definition_list(summary.facts(report)), _upper_bounds(summary.table(report))])]
    if can_draw():
        images = [_panel_image(partial(draw, report), text) for text, draw in assessment_panels(report)]
        parts.append(section("Pictures", [picture_gallery(images, _caption(report))]))
    else:
        parts.append(section("Pictures", [paragraph(_NOT_DRAWN, faint=True)]))
    targets = summary.requirements(report)
    if targets:
        noise = report.parameter == "sigma"
        title = "Noise that a target needs" if noise else "Level that meets a target"
        head = ("target", "least noise" if noise else "highest level")
        caption = "The parameter at which the upper bound meets the target"
        parts.append(section(title, [table(head, targets, caption=caption)]))
    values = details("Values with both bounds", _quantities_table(report))
    meanings = details("Meanings of the quantities", _quantity_meanings(report))
    return [*parts, section("All quantities", [values, meanings])]


def _comparison_parts(comparison: Any) -> list[str]:
    parts = []
    for name in dict.fromkeys(assessment.name for assessment in comparison):
        assessments = [assessment for assessment in comparison if assessment.name == name]
        table = _upper_bounds(summary.comparison_table(assessments))
        content = [definition_list(summary.column_facts(assessments)), table]
        if can_draw():
            images = [_panel_image(draw, text, legend=True) for text, draw in comparison_panels(comparison, name)]
            content.append(picture_gallery(images, _SWEEP_CAPTION))
        else:
            content.append(paragraph(_NOT_DRAWN, faint=True))
        content += [
            details(f"Values with both bounds: {assessment.mechanism}", _quantities_table(assessment))
            for assessment in assessments
        ]
        content.append(details("Meanings of the quantities", _quantity_meanings(*assessments)))
        parts.append(section(name, content))
    return parts


# Caption of the picture that compares the mechanisms of a comparison.
_SWEEP_CAPTION = (
    "Upper bounds of what a release tells, over the LDP epsilon at delta = 1e-5 that the mechanism gives; one line a "
    "mechanism, hollow markers where no more than a bound is known. Lower is more private."
)


def _caption(report: Any) -> str:
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


def _panel_image(draw: Any, alternative: str, legend: bool = False) -> str:
    figure = new_figure(_PANEL_SIZE)
    figure.set_layout_engine("constrained")
    ax = draw(figure.add_subplot())
    if legend and len(ax.get_legend_handles_labels()[0]) > 1:
        ax.legend(frameon=False, fontsize=9)
    return svg_image(figure, alternative)


def _upper_bounds(cells: list[list[str]]) -> str:
    headings = [(top, below) for top, below in zip(*cells[:2], strict=True)]
    numeric = [j for j, heading in enumerate(headings) if heading[0] != "mechanism"]
    return table(headings, cells[2:], caption="Upper bounds, rounded up", numeric=numeric)


def _quantities_table(report: Any) -> str:
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
            value, lower, upper = float(grid.value[at]), float(grid.lower[at]), float(grid.upper[at])
            parameter = [f"{report.grid[i]:.6g}"] if report.parameter else []
            rows.append(
                [title, *parameter, "-" if grid.is_bound_only(i) else f"{value:.{_DIGITS}g}",
                 rounded_down(lower, _DIGITS), rounded_up(upper, _DIGITS), quantity.unit, grid.kind[i]]
            )  # fmt: skip
    parameter = [report.parameter] if report.parameter else []
    headings = ["quantity", *parameter, "value", "lower", "upper", "unit", "kind"]
    caption = "Values with both bounds, rounded outward; the files have every row of the grid and every epsilon"
    return table(headings, rows, caption=caption, numeric=range(1, len(headings) - 2))


def _quantity_meanings(*reports: Any) -> str:
    names = dict.fromkeys(name for report in reports for name in report.quantities)
    return definition_list([(name, QUANTITIES[name].meaning) for name in names])
