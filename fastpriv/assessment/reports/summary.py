"""The text table of an assessment: upper bounds, rounded up, with one line for what each number means."""

# bounds: none - how numbers are printed

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Context
from typing import Any

import numpy as np

from ...figures.labels import printable

__all__ = ["compared", "rounded_up", "summary"]

_ROWS = 10
_NAME, _LABEL = 60, 30  # characters that have room
_LN10 = math.log(10.0)
_Column = tuple[str, str, Callable[[int], str]]


def summary(report: Any) -> str:
    """The summary of an ``Assessment``."""
    return "\n".join([*_heading(report), "", *_table(report), "", *_meanings(report), *_needs(report)])


def compared(sweep: Any) -> str:
    """The summary of a ``Sweep``: a table of all, then what the numbers mean."""
    columns = dict.fromkeys(one.name for one in sweep)
    lines = [f"What does one release of {', '.join(_quoted(name) for name in columns)} leak?", ""]
    for name in columns:
        own = [one for one in sweep if one.name == name]
        lines += [*_heading(own[0])[2:3], ""]
        rows: list[list[str]] = []
        for one in own:
            head, *body = _cells(one, (_mechanism(one), *_columns(one, brief=True)))
            second, *body = body
            rows += ([head, second] if not rows else []) + body
        lines += [*_aligned(rows, left=1), ""]
    seen: dict[str, None] = {}
    for one in sweep:
        seen |= dict.fromkeys(_meanings(one)[1:-1])
    return "\n".join([*lines, "How to read it", *seen, _meanings(sweep.assessments[0])[-1]])


def rounded_up(number: float, digits: int = 3) -> str:
    """At most ``digits`` significant digits, never less than ``number``."""
    if not math.isfinite(number):
        return str(number)
    up = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(number)
    return f"{float(up):.{digits}g}"


def _delta(upper: Any, name: str, at: int) -> str:
    """A delta rounded up, from its logarithm where no double holds it."""
    if upper[name][at] > 1e-290 or f"log_{name}" not in upper:
        return rounded_up(min(float(upper[name][at]), 1.0))
    return _rounded_up_from_log(float(upper[f"log_{name}"][at]))


def _rounded_up_from_log(log_number: float) -> str:
    if log_number == -math.inf:
        return "0"
    power = math.floor(log_number / _LN10)
    leading = math.ceil(10.0 ** (log_number / _LN10 - power) * 10.0 * (1.0 + 1e-12)) / 10.0
    return f"{leading:.1f}e{power}" if leading < 10.0 else f"1.0e{power + 1}"


def _heading(report: Any) -> list[str]:
    x, p = report.unrounded.values, report.unrounded.probabilities
    records = f"{report.records:,} records, " if report.records else ""
    if report.mechanism == "channel":
        values = f"{len(x):,} of {report.secret.inputs:,} inputs"
        if p.max() > p.min():
            values += f", input {x[int(np.argmax(p))]:g} the likeliest ({100 * p.max():.3g} %)"
    elif report.labels is None:
        spread = f"mean {float(np.sum(x * p)):.4g}, standard deviation {report.secret.deviation:.4g}"
        values = f"{len(x):,} values from {x[0]:g} to {x[-1]:g}, {spread}"
    else:
        top = int(np.argmax(p))
        values = f"{len(x):,} categories, {printable(report.labels[top], _LABEL)} the likeliest ({100 * p[top]:.3g} %)"
    unit = f"; two values differ by at most {report.sensitivity:g}" if report.parameter == "sigma" else ""
    noisy = "noisy release of" if report.parameter == "sigma" else "release of"
    noisy = "release through" if report.mechanism == "channel" else noisy
    lines = [
        f"What does one {noisy} {_quoted(report.name)} leak?",
        "",
        f"  data       {printable(report.source, _NAME)}: {records}{values}",
        f"  mechanism  {report.mechanism}: {report.noise}{unit}",
    ]
    if report.bins is not None:
        lines.append(f"  rounding   {report.rounding}")
    rows = f"{len(report.grid)} {report.parameter}s x " if report.parameter else ""
    return [*lines, f"  grid       {rows}{len(report.epsilon)} epsilons; shown are upper bounds, rounded up"]


def _quoted(name: str) -> str:
    return f"'{printable(name, _NAME)}'"


def _columns(report: Any, brief: bool = False) -> list[_Column]:
    """The columns of the table: two lines of heading, and the cell of row i."""
    at = _nearest_to_one(report.epsilon)
    epsilon = f"at epsilon={report.epsilon[at]:g}"

    def number(name: str) -> Callable[[int], str]:
        found = report.surfaces[name]
        return lambda i: rounded_up(found.upper[i]) + ("*" if found.bound_alone(i) else "")

    def ratio(name: str) -> Callable[[int], str]:
        """Without the last bits of a bound, which would show 0.5 as 0.501."""
        return lambda i: rounded_up(report.surfaces[name].upper[i] * (1.0 - 1e-11))

    def delta(name: str) -> Callable[[int], str]:
        return lambda i: _delta({key: found.upper[i] for key, found in report.surfaces.items()}, name, at)

    def bits(name: str) -> Callable[[int], str]:
        upper, found = report[name].to("bits").upper, report.surfaces[name]
        return lambda i: rounded_up(upper[i]) + ("*" if found.bound_alone(i) else "")

    information = ("information", f"bits of {report.secret.entropy_bits:.3g}", bits("mutual_information"))
    grid = [(report.parameter, "", lambda i: f"{report.grid[i]:.6g}")] if report.parameter else []
    if report.mechanism == "gaussian":
        if brief:
            none = ("", "", lambda i: "-")
            return [
                *grid, information, none, ("LDP epsilon", "", number("pure_ldp_epsilon")),
                ("MBP", "xi", number("mbp_xi")), ("ABP", "worst value", number("abp_max")), none, none,
            ]  # fmt: skip
        deviation = report.secret.deviation
        return [
            *grid, ("/ std", "", lambda i: f"{report.grid[i] / deviation:.3g}"), information,
            ("LIP delta", epsilon, delta("lip_delta")), ("LDP delta", epsilon, delta("ldp_delta")),
            ("LDP epsilon", "at delta=1e-5", number("ldp_epsilon")), ("ABP", "worst value", number("abp_max")),
        ]  # fmt: skip
    before = float(report.prior.probabilities.max())
    return [
        *grid, information, ("capacity", "bits", bits("capacity")),
        ("LDP epsilon", "", ratio("pure_ldp_epsilon")), ("MBP", "xi", ratio("mbp_xi")),
        ("ABP", "worst value", number("abp_max")),
        ("best guess", f"before {before:.3g}", number("bayes_vulnerability")),
        ("leakage", "maximal, bits", bits("maximal_leakage")),
    ]  # fmt: skip


def _mechanism(report: Any) -> _Column:
    return "mechanism", "", lambda i: report.mechanism


def _cells(report: Any, columns: Sequence[_Column]) -> list[list[str]]:
    rows = [[cell(i) for _, _, cell in columns] for i in _shown_rows(len(report.grid))]
    return [[top for top, _, _ in columns], [below for _, below, _ in columns], *rows]


def _table(report: Any) -> list[str]:
    return _aligned(_cells(report, _columns(report)))


def _aligned(rows: list[list[str]], left: int = 0) -> list[str]:
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    return [
        "  " + "  ".join(
            cell.ljust(width) if j < left else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ) for row in rows
    ]  # fmt: skip


def _meanings(report: Any) -> list[str]:
    kinds = ", ".join(sorted({surface.weakest_kind for surface in report.surfaces.values()}))
    information = "  information  what a release tells about the value on average (mutual information); 0 is nothing"
    abp = "  ABP          how far beliefs move on average about the worst value: 0 not at all, 0.833 certainty"
    last = f"  Bounds here are {kinds}; every number with both its bounds and their kind is in the files."
    if report.mechanism == "gaussian":
        return [
            "How to read it",
            information,
            "  LIP delta    for all sets of releases, knowing the value changes their probability by at most a factor",
            "               e^epsilon, up to delta; people are taken to follow the distribution of this column",
            "  LDP delta    the same between any two values within the range; nothing is assumed about people",
            "  LDP epsilon  the factor e^epsilon between any two values that holds up to delta = 0.00001",
            abp,
            last,
        ]
    return [
        "How to read it",
        information,
        "  capacity     the same for the law of values that leaks most; nothing is assumed about people",
        "  LDP epsilon  any two values make a release likelier or less likely by at most a factor e^epsilon",
        "  MBP xi       no release changes the belief in any value by more than a factor e^xi",
        abp,
        "  best guess   chance that the likeliest value after a release is the true one",
        "  leakage      log of how many times likelier any guess about the value can get, for any law of values",
        *_starred(report),
        last,
    ]


def _starred(report: Any) -> list[str]:
    alone = any(found.bound_alone(i) for found in report.surfaces.values() for i in range(len(report.grid)))
    return ["  *            no more than a bound: there are more releases than can be gone through"] if alone else []


def _needs(report: Any) -> list[str]:
    if not report.requirements:
        return []
    if report.parameter == "level":
        rows = [f"  {need.target:<33}  level = {_rounded_down(need.setting)}" for need in report.requirements]
        return ["", "Level that meets a target", *rows]
    lines = ["", "Noise that a target needs"]
    deviation = report.secret.deviation
    for need in report.requirements:
        times = "" if math.isinf(need.setting) else f"  ({need.setting / deviation:.3g} x standard deviation)"
        lines.append(f"  {need.target:<32}  sigma = {rounded_up(need.setting, 4)}{times}")
    return lines


def _rounded_down(number: float) -> str:
    return rounded_up(-number, 4).removeprefix("-") if number else "0"


def _nearest_to_one(epsilon: Any) -> int:
    return int(np.argmin(np.abs(np.log(np.maximum(epsilon, 1e-300)))))


def _shown_rows(count: int) -> list[int]:
    return sorted({round(i) for i in np.linspace(0, count - 1, min(count, _ROWS))})
