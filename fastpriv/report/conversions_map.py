"""The map of all conversions: a box for each notion, an arrow for each pair with a conversion."""

from __future__ import annotations

from typing import Any

from ..conversions.declaration import Conversion
from ..conversions.registry import CONVERSIONS
from ..conversions.vocabulary import NOTIONS
from .style import FAINT, INK, axes_or_new, new_figure

__all__ = ["conversions_diagram"]

_RED = "#c0392b"  # of statements that are false
_WIDTH, _HEIGHT = 15.0, 10.0  # of the page, in inches
_COLOUR = {"tight": INK, "bound": FAINT, "as_published": FAINT}  # the best form first
_DASHES, _DOTS = (0, (4, 2)), (0, (1, 1.5))  # lengths of strokes and gaps, in line widths

# positions of the notions, in inches; families stand together
_POSITIONS = {
    "ldp": (7.4, 5.2),
    "gdp": (9.8, 8.8), "zcdp": (9.9, 7.35), "rdp": (12.05, 7.15), "tradeoff": (13.2, 8.9), "dp": (12.6, 5.1),
    "dp_curve": (14.2, 6.8), "kl": (10.4, 4.45), "total_variation": (12.6, 3.2), "membership_advantage": (13.9, 1.9),
    "group_dp": (14.1, 4.2), "ci_lmip": (7.4, 1.9), "cd_lmip": (4.4, 0.9), "pointwise_lmip": (5.0, 2.9),
    "approximate_lip": (8.6, 0.5), "lip_curve": (2.0, 0.9),
    "maximal_leakage": (6.6, 3.5),
    "mbp": (3.9, 5.2), "lip": (2.6, 7.0), "robustness": (4.2, 8.9),
    "abp": (2.2, 3.6), "abp_given_secret": (1.3, 4.7), "c2": (1.3, 5.7), "c1": (1.0, 2.4),
    "frequency_error": (1.6, 9.4), "c1_error": (0.8, 8.0), "leakage_error": (2.4, 8.0),
    "trials": (1.1, 7.25), "frequency_failure": (1.1, 6.45),
}  # fmt: skip


def conversions_diagram(ax: Any = None) -> Any:
    """Draw every conversion: an arrow from a notion to what follows from it.

    Parameters
    ----------
    ax : matplotlib Axes, optional
        Where to draw; by default a page of its own, 15 by 10 inches.

    Returns
    -------
    matplotlib Axes
        Dark arrows are tight, grey ones are bounds, dotted ones are for special mechanisms only, dashed red ones are
        published statements that are false; the right form is drawn beside them.

    Raises
    ------
    BackendMissingError
        Without matplotlib.

    Notes
    -----
    **Accuracy**: every pair of notions with a conversion is drawn (tests/surfaces/test_convert_command.py).

    Source: ``fastpriv.conversions.CONVERSIONS``.

    Examples
    --------
    >>> from fastpriv import figures
    >>> ax = figures.conversions_diagram()
    >>> ax.get_title(loc="left")
    'Conversions between privacy notions'
    """
    ax = new_figure((_WIDTH, _HEIGHT)).add_axes((0.01, 0.02, 0.98, 0.94)) if ax is None else axes_or_new(ax)
    from matplotlib.lines import Line2D
    from matplotlib.patches import FancyArrowPatch

    ax.set_xlim(0.0, _WIDTH)
    ax.set_ylim(0.0, _HEIGHT)
    ax.axis("off")
    ax.set_title("Conversions between privacy notions", loc="left", fontsize=14, color=INK)
    boxes = {name: _box(ax, name) for name in NOTIONS}
    pairs = _pairs()
    for (source, target), rows in pairs.items():
        true = [row for row in rows if row.holds]
        strokes: list[tuple[str, Any, float]] = []  # colour, dashes, curvature
        if true:
            form = min((row.form for row in true), key=list(_COLOUR).index)
            special = [any(not assumption.chained for assumption in row.assumptions) for row in true]
            restricted = any(special) and all(s or row.published for s, row in zip(special, true, strict=True))
            strokes.append((_COLOUR[form], _DOTS if restricted else "-", 0.12 if (target, source) in pairs else 0.0))
        if len(true) < len(rows):
            strokes.append((_RED, _DASHES, 0.3))
        for colour, dashes, curvature in strokes:
            arrow = FancyArrowPatch(
                _POSITIONS[source], _POSITIONS[target], connectionstyle=f"arc3,rad={curvature}", arrowstyle="-|>",
                mutation_scale=11, lw=1.3, color=colour, linestyle=dashes, patchA=boxes[source], patchB=boxes[target],
                shrinkA=1, shrinkB=1, zorder=3,
            )  # fmt: skip
            arrow.set_gid(f"{source}->{target}")
            ax.add_patch(arrow)
    lines = [
        Line2D([], [], color=INK, lw=1.5, label="tight: no smaller number follows"),
        Line2D([], [], color=FAINT, lw=1.5, label="bound: true, not known to be attained"),
        Line2D([], [], color=INK, lw=1.5, ls=_DOTS, label="for special mechanisms only"),
        Line2D([], [], color=_RED, lw=1.5, ls=_DASHES, label="published and false"),
    ]
    ax.legend(handles=lines, loc="lower right", fontsize=10, frameon=False, labelcolor=INK)
    return ax


def _pairs() -> dict[tuple[str, str], list[Conversion]]:
    """The conversions by source and target."""
    pairs: dict[tuple[str, str], list[Conversion]] = {}
    for row in CONVERSIONS:
        if row.source != row.target:
            pairs.setdefault((row.source, row.target), []).append(row)
    return pairs


def _box(ax: Any, name: str) -> Any:
    """Write the title of a notion at its position; return the box around it."""
    text = ax.text(
        *_POSITIONS[name], NOTIONS[name].title, ha="center", va="center", fontsize=10.5, color=INK, zorder=2,
        bbox={"boxstyle": "round,pad=0.35", "facecolor": "#f4f6fa", "edgecolor": FAINT, "linewidth": 0.9},
    )  # fmt: skip
    return text.get_bbox_patch()
