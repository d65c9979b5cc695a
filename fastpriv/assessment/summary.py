"""The text table of an assessment: upper bounds, rounded up, with one line for what each number means."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context
from typing import Any

import numpy as np

__all__ = ["rounded_up", "summary"]

_ROWS = 10
_LN10 = math.log(10.0)


def summary(report: Any) -> str:
    """The summary of an ``Assessment``."""
    return "\n".join([*_heading(report), "", *_table(report), "", *_meanings(report), "", *_noise(report)])


def rounded_up(number: float, digits: int = 3) -> str:
    """At most ``digits`` significant digits, never less than ``number``."""
    if not math.isfinite(number):
        return str(number)
    up = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(number)
    return f"{float(up):.{digits}g}"


def _delta(upper: Any, name: str, at: int) -> str:
    """A delta rounded up, from its logarithm where no double holds it."""
    if upper[name][at] > 1e-290:
        return rounded_up(min(float(upper[name][at]), 1.0))
    return _rounded_up_from_log(float(upper[f"log_{name}"][at]))


def _rounded_up_from_log(log_number: float) -> str:
    if log_number == -math.inf:
        return "0"
    power = math.floor(log_number / _LN10)
    leading = math.ceil(10.0 ** (log_number / _LN10 - power) * 10.0 * (1.0 + 1e-12)) / 10.0
    return f"{leading:.1f}e{power}" if leading < 10.0 else f"1.0e{power + 1}"


def _heading(report: Any) -> list[str]:
    x, p = report.prior.values, report.prior.probabilities
    mean = float(np.sum(x * p))
    records = f"{report.records:,} records, " if report.records else ""
    lines = [
        f"What does one noisy release of '{report.name}' leak?",
        "",
        f"  data       {report.source}: {records}{len(x):,} values from {x[0]:g} to {x[-1]:g}, mean {mean:.4g}, "
        f"standard deviation {_deviation(report):.4g}",
        f"  mechanism  {report.mechanism}: value + {report.noise}; two values differ by at most {report.sensitivity:g}",
    ]
    if report.bins is not None:
        lines.append(f"  rounding   values are rounded to the centres of {report.bins} bins before the noise is added")
    grid = f"{len(report.sigma)} sigmas x {len(report.epsilon)} epsilons"
    return [*lines, f"  grid       {grid}; shown are upper bounds, rounded up"]


def _table(report: Any) -> list[str]:
    at = _nearest_to_one(report.epsilon)
    epsilon = f"epsilon={report.epsilon[at]:g}"
    entropy = -float(np.sum(report.prior.probabilities * np.log2(report.prior.probabilities)))
    head = [
        ("sigma", ""), ("/ std", ""), ("information", f"bits of {entropy:.3g}"), ("LIP delta", f"at {epsilon}"),
        ("LDP delta", f"at {epsilon}"), ("LDP epsilon", "at delta=1e-5"), ("ABP", "worst value"),
    ]  # fmt: skip
    rows = [[top for top, _ in head], [below for _, below in head]]
    deviation = _deviation(report)
    for i in _shown_rows(len(report.sigma)):
        sigma = report.sigma[i]
        upper = {name: surface.upper[i] for name, surface in report.surfaces.items()}
        rows.append(
            [
                f"{sigma:.6g}", f"{sigma / deviation:.3g}", rounded_up(upper["mutual_information"]),
                _delta(upper, "lip_delta", at), _delta(upper, "ldp_delta", at),
                rounded_up(upper["ldp_epsilon"]), rounded_up(upper["abp_max"]),
            ]
        )  # fmt: skip
    widths = [max(len(row[j]) for row in rows) for j in range(len(head))]
    return ["  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def _meanings(report: Any) -> list[str]:
    kinds = ", ".join(sorted({surface.weakest_kind for surface in report.surfaces.values()}))
    return [
        "How to read it",
        f"  information  what a release tells about '{report.name}' on average (mutual information); 0 is nothing",
        "  LIP delta    for all sets of releases, knowing the value changes their probability by at most a factor",
        "               e^epsilon, up to delta; people are taken to follow the distribution of this column",
        "  LDP delta    the same between any two values within the range; nothing is assumed about people",
        "  LDP epsilon  the factor e^epsilon between any two values that holds up to delta = 0.00001",
        "  ABP          how far beliefs move on average about the worst value: 0 not at all, 0.833 certainty",
        f"  Bounds here are {kinds}; every number with both its bounds and their kind is in the files.",
    ]


def _noise(report: Any) -> list[str]:
    lines = ["Noise that a target needs"]
    deviation = _deviation(report)
    for need in report.requirements:
        times = "" if math.isinf(need.sigma) else f"  ({need.sigma / deviation:.3g} x standard deviation)"
        lines.append(f"  {need.target:<32}  sigma = {rounded_up(need.sigma, 4)}{times}")
    return lines


def _deviation(report: Any) -> float:
    x, p = report.prior.values, report.prior.probabilities
    return float(np.sqrt(np.sum(p * (x - np.sum(p * x)) ** 2)))


def _nearest_to_one(epsilon: Any) -> int:
    return int(np.argmin(np.abs(np.log(np.maximum(epsilon, 1e-300)))))


def _shown_rows(count: int) -> list[int]:
    return sorted({round(i) for i in np.linspace(0, count - 1, min(count, _ROWS))})
