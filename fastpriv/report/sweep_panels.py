"""Curves of a table of settings with their bounds: one setting on the axis, another in the colours."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import validate
from ..base.errors import DomainError
from ..base.numerics import FloatArray
from ..sweeps import SweepTable
from .style import label, legend_below, panel, shade

_MOST_NAMED = 12  # curves that the legend names: more are told apart by the order of their colours
_NAME_WIDTH = 40  # characters of a setting for which the legend has room
# bound: none - an axis is logarithmic where positive numbers span more than this factor: alone, and beside zeros
_WIDE, _WIDE_BESIDE_ZEROS = 10.0, 1e6


@panel
def sweep(table: SweepTable, x: str, hue: str | None = None, *, output: str | None = None, ax: Any = None) -> Any:
    """Draw a table of settings: a curve over ``x`` with the space between its bounds, for each value of ``hue``.

    Parameters
    ----------
    table : SweepTable
        What ``fastpriv.sweep`` returned.
    x : str
        The setting on the horizontal axis, of numbers.
    hue : str, optional
        The setting that tells the curves apart, of numbers or texts.
    output : str, optional
        Which number, for functions that return several; by default the first.

    Returns
    -------
    matplotlib.axes.Axes
        An axis is logarithmic where its numbers are positive and span more than a factor of ten, or 1e6 beside zeros,
        which are not drawn then. Cells without a number are not drawn, and counted in the title. Of more than 12 curves
        the legend names 12.

    Raises
    ------
    DomainError
        For a name that is no setting of the table, a setting of texts on the axis, or settings that ``x`` and ``hue``
        leave open.
    BackendMissingError
        When matplotlib is not installed.

    Examples
    --------
    >>> import fastpriv
    >>> table = fastpriv.sweep("bac_capacity", grid={"a": [0.1, 0.2], "b": "0:0.5:6"})
    >>> ax = fastpriv.figures.sweep(table, "b", "a")
    >>> ax.get_xlabel(), ax.get_ylabel(), len(ax.get_lines())
    ('b', 'bac_capacity (nats)', 2)
    """
    validate.instance("table", table, SweepTable)
    columns, settings = table.columns(), table.settings.names
    validate.choice("x", x, settings)
    word = table.outputs[0] if output is None else validate.choice("output", output, table.outputs)
    if hue is not None:
        validate.choice("hue", hue, settings)
    if columns[x].dtype.kind not in "fiub":
        raise DomainError(f"x must be a setting of numbers; got {x!r}, whose values are texts. Pass it as hue.")
    for name in settings:
        if name not in (x, hue) and (columns[name] != columns[name][0]).any():
            raise DomainError(
                f"x and hue must tell the cells apart; got several values of {name!r} beside them. Sweep a single one, "
                "or pass it as hue."
            )
    before = f"{word}_" if word else ""
    ends = [word or "value", f"{before}lower", f"{before}upper"]
    known = np.isfinite(columns[ends[0]])
    ordinate = np.concatenate([columns[end][known] for end in ends])
    scales = ["log" if _is_wide(numbers) else "linear" for numbers in (columns[x], ordinate[np.isfinite(ordinate)])]
    ax.set(xscale=scales[0], yscale=scales[1])
    groups = [None] if hue is None else sorted(set(columns[hue].tolist()))
    named = set(np.linspace(0, len(groups) - 1, min(len(groups), _MOST_NAMED)).astype(int).tolist())
    for k, group in enumerate(groups):
        chosen = np.flatnonzero(known if hue is None else known & (columns[hue] == group))
        chosen = chosen[np.argsort(columns[x][chosen], kind="stable")]
        value, lower, upper = (columns[end][chosen] for end in ends)
        look = {"color": shade(k / max(len(groups) - 1, 1)), "lw": 1.7, "marker": "o" if chosen.size < 2 else ""}
        if hue is not None and k in named:
            text = f"{group:g}" if isinstance(group, float) else str(group)
            look["label"] = label(f"{hue} = {text}", _NAME_WIDTH)[0]
        ax.plot(columns[x][chosen], value, **look)
        ax.fill_between(columns[x][chosen], lower, upper, color=look["color"], alpha=0.25, lw=0)
    if hue is not None:
        text = f"{len(named)} of {len(groups)} values of {label(hue, _NAME_WIDTH)[0]}"
        legend_below(ax, plain=True, title=text if len(named) < len(groups) else None)
    units = {unit for unit in columns[f"{before}unit"] if unit and unit != "1"}
    quantity = word or table.quantity.rpartition(".")[2]
    ax.set_xlabel(x, **label("")[1])
    ax.set_ylabel(f"{quantity} ({units.pop()})" if len(units) == 1 else quantity, **label("")[1])
    missing = int(known.size - known.sum())
    return label(quantity + (f", {missing} of {known.size} cells without a number" if missing else ""))


def _is_wide(numbers: FloatArray) -> bool:
    above = numbers[numbers > 0.0]
    factor = _WIDE if above.size == numbers.size else _WIDE_BESIDE_ZEROS
    return bool(above.size and numbers.min() >= 0.0 and above.max() > factor * above.min())
