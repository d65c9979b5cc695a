"""Panels of attacks on membership: ROC curves with bands."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...base.numerics import rounded_down
from ...report import style

_PANEL = (5.4, 5.2)  # inches
_LEAST_RATE = 1e-3  # left end of the logarithmic axis of false-positive rates
_POINTS = 400  # of a drawn curve: steps finer than a line is wide
_WIDTHS = (3.2, 1.4)  # of the first and the last curve, in points: those under others stay visible


@style.panel
def roc_axes(curves: Any, title: str, ax: Any = None) -> Any:
    """Draw ROC curves, pairs of a name and a ``RocCurve``, over a logarithmic axis of the FPR.

    The curve of the largest area has its band; those of the others would cover one another. Where the band jumps, a
    note says why.
    """
    grid = np.geomspace(_LEAST_RATE, 1.0, _POINTS)
    ax.plot(grid, grid, color=style.FAINT, lw=1.0, ls=(0, (2, 2)), label="chance")
    areas = [np.trapezoid(roc.tpr.value, roc.fpr.value) for _, roc in curves]
    note = None
    best = int(np.argmax(areas)) if areas else 0
    for k, (name, roc) in enumerate(curves):
        colour = style.shade(k / max(len(curves) - 1, 1))
        x, y = np.asarray(roc.fpr.value), np.asarray(roc.tpr.value)
        height = y[np.searchsorted(x, grid, side="right") - 1]
        text, _ = style.label(name, 30)
        width = float(np.interp(k, (0, max(len(curves) - 1, 1)), _WIDTHS))
        ax.plot(grid, height, color=colour, lw=width, label=text, drawstyle="steps-post")
        if k == best:
            (low, high), (least, most) = ((np.asarray(x.lower), np.asarray(x.upper)) for x in (roc.fpr, roc.tpr))
            lower = np.array([least[high <= x].max(initial=0.0) for x in grid])  # by the bounds of both rates
            upper = np.maximum([most[low >= x].min(initial=1.0) for x in grid], lower)
            ax.fill_between(grid, lower, upper, color=colour, alpha=0.1, lw=0, label=f"band of {text}")
            unresolved = grid[(lower == 0.0) & (height > 0.0)].max(initial=0.0)
            if unresolved:
                note = f"The band begins at 0 up to FPR {rounded_down(unresolved, 2)}:\n"
                note += "too few non-members to certify lower rates"
    ax.set(xscale="log", xlim=(_LEAST_RATE, 1.0), ylim=(0.0, 1.01))
    ax.set(xlabel="false-positive rate", ylabel="true-positive rate")
    style.legend_below(ax, title=note)
    return style.label(title, 60)


def attack_figure(study: Any) -> Any:
    """One picture of the study: the ROC curves of each defence."""
    return style.figure_of_panels(
        [partial(roc_axes, roc_curves(study, defence), defence) for defence in study.defences()], _PANEL
    )


def roc_curves(study: Any, defence: str) -> list[tuple[str, Any]]:
    """Name and ROC curve of the attacks on one defence that apply."""
    return [
        (outcome.attack, outcome.roc)
        for outcome in study.outcomes
        if outcome.defence == defence and outcome.roc is not None
    ]
