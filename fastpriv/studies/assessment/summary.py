"""The summary of an assessment: a table of upper bounds, rounded up, and a sentence for what each number means.

The functions without ``_summary`` in their names return the parts of a summary, of which the report page is made too.
"""

# bounds: none - how numbers are printed

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.escaping import printable
from ...base.numerics import FloatArray, rounded_down, rounded_up
from ...base.table import aligned, html_table
from .quantities import QUANTITIES

_MAX_ROWS = 10  # of a grid that the table shows
_NAME_WIDTH, _LABEL_WIDTH = 60, 30  # columns of a terminal; longer names are shortened
_LINE_WIDTH, _TERM_WIDTH = 110, 13  # characters of a line, and of the terms that begin it
_TARGET_WIDTH = {"sigma": 32, "level": 33}  # characters for the text of a target, by the parameter of the mechanisms
_LOG_10 = math.log(10.0)  # turns natural logarithms into decimal exponents
# bound: none - taken off pure epsilons, relative, before they are rounded up, so that 0.5 is not shown as 0.501
_RATIO_SLACK = 1e-11
# Two lines of heading of each quantity of the table, and the form of its cells.
_TABLE_COLUMNS = {
    "noise_half_width": ("noise", "95 % within", "number"), "noise_share": ("noise share", "of variance", "number"),
    "dp_epsilon": ("DP epsilon", "at delta=1e-5", "number"),
    "dp_delta": ("DP delta", "at epsilon={epsilon:g}", "delta"),
    "mutual_information": ("information", "of {entropy:.3g} bits", "bits"), "capacity": ("capacity", "bits", "bits"),
    "lip_delta": ("LIP delta", "at epsilon={epsilon:g}", "delta"),
    "ldp_delta": ("LDP delta", "at epsilon={epsilon:g}", "delta"),
    "ldp_epsilon": ("LDP epsilon", "at delta=1e-5", "number"), "pure_ldp_epsilon": ("LDP epsilon", "", "ratio"),
    "mbp_xi": ("MBP", "xi", "ratio"), "abp_max": ("ABP", "worst value", "number"),
    "bayes_vulnerability": ("best guess", "before {prior:.3g}", "number"),
    "maximal_leakage": ("leakage", "maximal, bits", "bits"),
}
# The quantities of the table of Gaussian noise.
_GAUSSIAN_TABLE = ("mutual_information", "lip_delta", "ldp_delta", "ldp_epsilon", "abp_max")
# The quantities of the table of other mechanisms, and of comparisons.
_CHANNEL_TABLE = (
    "mutual_information", "capacity", "pure_ldp_epsilon", "mbp_xi", "abp_max", "bayes_vulnerability",
    "maximal_leakage",
)

# A term of the table and its meaning, as in the tuples below.
_INFORMATION = ("information", "what a release tells about the value on average (mutual information); 0 is nothing")
# 0.833 is sqrt(log 2), the largest ABP.
_ABP = ("ABP", "how far beliefs move on average about the worst value: 0 not at all, 0.833 certainty")
# Terms of the table of Gaussian noise, each with its meaning.
_GAUSSIAN_MEANINGS = (
    _INFORMATION,
    ("LIP delta", "for all sets of releases, knowing the value changes their probability by at most a factor "
     "e^epsilon, up to delta; people are taken to follow the distribution of this column"),
    ("LDP delta", "the same between any two values within the range; nothing is assumed about people"),
    ("LDP epsilon", "the factor e^epsilon between any two values that holds up to delta = 0.00001"),
    _ABP,
)
# Terms of the table for mechanisms given by a channel, and their meanings.
_CHANNEL_MEANINGS = (
    _INFORMATION,
    ("capacity", "the same for the prior that leaks most; nothing is assumed about people"),
    ("LDP epsilon", "any two values make a release likelier or less likely by at most a factor e^epsilon"),
    ("MBP xi", "no release changes the belief in any value by more than a factor e^xi"),
    _ABP,
    ("best guess", "chance that the likeliest value after a release is the true one"),
    ("leakage", "log of how many times likelier any guess about the value can get, for any prior"),
)
# The mark of a number that is only an upper bound.
_BOUND_ONLY_MEANING = ("*", "no more than a bound: there are more releases than can be gone through")


def assessment_summary(report: Any) -> str:
    """Return the summary of an ``Assessment``."""
    lines = [question(report), "", *(f"  {term:<9}  {text}" for term, text in facts(report))]
    lines += ["", *aligned(table(report), left=0, indent="  "), "", "How to read it", *_meaning_lines(meanings(report))]
    lines.append(_kinds_line(report))
    targets = requirements(report)
    if targets:
        heading = "Noise that a target needs" if report.parameter == "sigma" else "Level that meets a target"
        width = _TARGET_WIDTH[report.parameter]
        lines += ["", heading, *(f"  {target:<{width}}  {setting}" for target, setting in targets)]
    said = report.risk_statement()
    verdict = [line for text in (*said.sentences, *said.from_data) for line in textwrap.wrap(text, _LINE_WIDTH - 2)]
    lines += ["", "Verdict", *(f"  {line}" for line in verdict)]
    return "\n".join(lines)


def comparison_summary(comparison: Any) -> str:
    """Return the summary of a ``Comparison``: a table for each column, then what the numbers mean."""
    lines = [question(comparison), ""]
    for name in dict.fromkeys(assessment.name for assessment in comparison):
        assessments = [assessment for assessment in comparison if assessment.name == name]
        lines += [*(f"  {term:<9}  {text}" for term, text in column_facts(assessments)), ""]
        lines += [*aligned(comparison_table(assessments), left=1, indent="  "), ""]
    lines += ["How to read it", *_meaning_lines(meanings(*comparison)), _kinds_line(comparison.assessments[0])]
    return "\n".join(lines)


def question(report: Any) -> str:
    """Return the question that an ``Assessment`` or a ``Comparison`` answers."""
    if hasattr(report, "assessments"):
        names = dict.fromkeys(assessment.name for assessment in report)
        return f"What does one release of {', '.join(_quoted(name) for name in names)} leak?"
    if report.mechanism == "channel":
        return f"What does one release through {_quoted(report.name)} leak?"
    noisy = "noisy " if report.parameter == "sigma" else ""
    return f"What does one {noisy}release of {_quoted(report.name)} leak?"


def facts(report: Any) -> list[tuple[str, str]]:
    """Return what an ``Assessment`` is about: data, mechanism, rounding and grid."""
    grid = f"{_counted(len(report.grid), report.parameter)} x " if report.parameter else ""
    grid += f"{_counted(len(report.epsilon), 'epsilon')}; shown are upper bounds, rounded up"
    if report.statistic is not None:
        return [
            ("data", printable(report.source, _NAME_WIDTH)), ("statistic", report.statistic.description),
            ("value", f"which of two neighbours, {rounded_up(report.sensitivity, 6)} apart at most, at even odds"),
            ("mechanism", f"{report.mechanism}: {report.noise}"), ("grid", grid),
        ]
    x, p = report.unrounded.values, report.unrounded.probabilities
    records = f"{report.records:,} records, " if report.records else ""
    likeliest = int(np.argmax(p))
    if report.mechanism == "channel":
        values = f"{len(x):,} of {report.secret.inputs:,} inputs"
        if p.max() > p.min():
            values += f", input {x[likeliest]:g} the likeliest ({100 * p.max():.3g} %)"
    elif report.labels is None:
        spread = f"mean {float(np.sum(x * p)):.4g}, standard deviation {report.secret.deviation:.4g}"
        values = f"{len(x):,} values from {x[0]:g} to {x[-1]:g}, {spread}"
    else:
        label = printable(report.labels[likeliest], _LABEL_WIDTH)
        values = f"{len(x):,} categories, {label} the likeliest ({100 * p[likeliest]:.3g} %)"
    unit = f"; two values differ by at most {rounded_up(report.sensitivity, 6)}" if report.parameter == "sigma" else ""
    rounding = [] if report.bins is None else [("rounding", report.rounding)]
    return [
        ("data", f"{printable(report.source, _NAME_WIDTH)}: {records}{values}"),
        ("mechanism", f"{report.mechanism}: {report.noise}{unit}"),
        *_range_fact([report]),
        *rounding,
        ("grid", grid),
    ]


def column_facts(assessments: Sequence[Any]) -> list[tuple[str, str]]:
    """Return what the assessments of one column have in common: the data, and their range if a mechanism needs it."""
    return [facts(assessments[0])[0], *_range_fact(assessments)]


def _range_fact(assessments: Sequence[Any]) -> list[tuple[str, str]]:
    """Return the range that noise and LDP rest on, where it was computed from the data."""
    ranges = [assessment.sensitivity for assessment in assessments if assessment.sensitivity_source == "data"]
    text = "computed from the private data, no bound known beforehand; pass sensitivity to state one"
    return [("range", f"{rounded_up(max(ranges), 6)}, {text}")] if ranges else []


def table(report: Any) -> list[list[str]]:
    """Return the cells of the table of an ``Assessment``: two rows of headings, then at most ten rows of the grid."""
    if report.statistic is not None:
        return _cells(report, _statistic_table(report))
    return _cells(report, _GAUSSIAN_TABLE if report.mechanism == "gaussian" else _CHANNEL_TABLE)


def _statistic_table(report: Any) -> list[str]:
    """Return the quantities of the table of a statistic: Laplace noise has no information, sums no sampling error."""
    return [name for name in _TABLE_COLUMNS if name in report.quantities]


def comparison_table(assessments: Sequence[Any]) -> list[list[str]]:
    """Return the cells of the table of one column under several mechanisms, whose names stand in the first column."""
    rows: list[list[str]] = []
    for assessment in assessments:
        cells = _cells(assessment, _CHANNEL_TABLE, assessment.mechanism)
        rows += cells[2:] if rows else cells
    return rows


def notebook_table(report: Any) -> str:
    """Return the tables of an ``Assessment`` or a ``Comparison`` in HTML."""
    if not hasattr(report, "assessments"):
        return _html_table(table(report), question(report))
    columns: dict[str, list[Any]] = {}
    for assessment in report:
        columns.setdefault(assessment.name, []).append(assessment)
    return "".join(_html_table(comparison_table(assessments), name) for name, assessments in columns.items())


def _html_table(cells: list[list[str]], caption: str) -> str:
    header = [f"{heading} {below}".strip() for heading, below in zip(*cells[:2], strict=True)]
    return html_table(header, cells[2:], f"{caption} (upper bounds, rounded up)")


def meanings(*reports: Any) -> list[tuple[str, str]]:
    """Return the terms of the tables of some assessments, and what they mean."""
    terms: dict[tuple[str, str], None] = {}
    for report in reports:
        if report.statistic is not None:
            return [(_TABLE_COLUMNS[name][0], QUANTITIES[name].meaning) for name in _statistic_table(report)]
        terms |= dict.fromkeys(_GAUSSIAN_MEANINGS if report.mechanism == "gaussian" else _CHANNEL_MEANINGS)
        grids = report.quantities.values()
        if report.mechanism != "gaussian" and any(g.is_bound_only(i) for g in grids for i in range(len(report.grid))):
            terms[_BOUND_ONLY_MEANING] = None
    return list(terms)


def requirements(report: Any) -> list[tuple[str, str]]:
    """Return the usual targets, and the noise or the level that meets each."""
    rows = []
    for need in report.requirements:
        if report.statistic is not None:
            width = rounded_up(float(report.statistic.noise(report.mechanism, need.setting)[1].upper))
            rows.append((need.target, f"{report.parameter} = {rounded_up(need.setting, 4)}  (95 % within {width})"))
        elif report.parameter == "level":
            rows.append((need.target, f"level = {rounded_down(need.setting, 4)}"))
        else:
            ratio = need.setting / report.secret.deviation
            times = "" if math.isinf(need.setting) else f"  ({ratio:.3g} x standard deviation)"
            rows.append((need.target, f"sigma = {rounded_up(need.setting, 4)}{times}"))
    return rows


def shown_rows(report: Any) -> list[int]:
    """Return the rows of the grid that tables show: all, or ten at equal distances."""
    count = len(report.grid)
    return sorted({round(i) for i in np.linspace(0, count - 1, min(count, _MAX_ROWS))})


def _rounded_up_from_log(log_number: float) -> str:
    """Return two digits of exp(log_number), rounded up, also where no double holds it."""
    if log_number == -math.inf:
        return "0"
    power = math.floor(log_number / _LOG_10)
    leading = math.ceil(10.0 ** (log_number / _LOG_10 - power) * 10.0 * (1.0 + 1e-12)) / 10.0
    return f"{leading:.1f}e{power}" if leading < 10.0 else f"1.0e{power + 1}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + "s" * (count > 1)


def _quoted(name: str) -> str:
    return f"'{printable(name, _NAME_WIDTH)}'"


def _cells(report: Any, names: Sequence[str], mechanism: str = "") -> list[list[str]]:
    """Return two rows of headings and the rows that are shown, of these quantities; ``mechanism`` begins each row.

    A quantity that the mechanism does not have is a column without headings.
    """
    rows, epsilon = shown_rows(report), report.epsilon[index_nearest_to_one(report.epsilon)]
    prior = float(report.prior.probabilities.max())
    columns = [["mechanism", "", *(mechanism for _ in rows)]] if mechanism else []
    if report.parameter:
        columns.append([report.parameter, "", *(f"{report.grid[i]:.6g}" for i in rows)])
    if report.mechanism == "gaussian" and not mechanism and report.statistic is None:
        columns.append(["/ std", "", *(f"{report.grid[i] / report.secret.deviation:.3g}" for i in rows)])
    for name in names:
        if name in report.quantities:
            heading, below, _ = _TABLE_COLUMNS[name]
            below = below.format(entropy=report.secret.entropy_bits, prior=prior, epsilon=epsilon)
            columns.append([heading, below, *(_cell(report, name, i) for i in rows)])
        else:
            columns.append(["", "", *("-" for _ in rows)])
    return [list(line) for line in zip(*columns, strict=True)]


def _cell(report: Any, name: str, i: int) -> str:
    """Return the upper bound of a quantity in row i, with a star where no more than a bound is known."""
    grid, form = report.quantities[name], _TABLE_COLUMNS[name][2]
    if form == "ratio":
        return rounded_up(grid.upper[i] * (1.0 - _RATIO_SLACK))
    if form == "delta":
        index = index_nearest_to_one(report.epsilon)
        upper, log_grid = float(grid.upper[i][index]), report.quantities.get(f"log_{name}")
        if upper > 1e-290 or log_grid is None:
            return rounded_up(min(upper, 1.0))
        return _rounded_up_from_log(float(log_grid.upper[i][index]))
    upper = grid.upper[i] if form == "number" else report[name].to("bits").upper[i]
    return rounded_up(upper) + ("*" if grid.is_bound_only(i) else "")


def _meaning_lines(terms: Sequence[tuple[str, str]]) -> list[str]:
    lines = []
    for term, text in terms:
        first, *more = textwrap.wrap(text, _LINE_WIDTH - 2 - _TERM_WIDTH)
        lines += [f"  {term:<{_TERM_WIDTH}}{first}", *(" " * (2 + _TERM_WIDTH) + line for line in more)]
    return lines


def _kinds_line(report: Any) -> str:
    kinds = ", ".join(sorted({grid.weakest_kind for grid in report.quantities.values()}))
    return f"  Bounds here are {kinds}; every number with both its bounds and their kind is in the files."


def index_nearest_to_one(epsilon: FloatArray) -> int:
    """Return the index of the epsilon nearest to 1, in ratio, at which tables show a curve."""
    return int(np.argmin(np.abs(np.log(np.maximum(epsilon, 1e-300)))))
