"""The panels of figures 1 to 4 of the paper on local mutual-information privacy: each takes and returns an ``ax``.

A panel shows the curves of one unit, with their bounds as a band and single numbers as levels. What varies between
curves of one name, as mu does, has a colour each; names have dashes.
"""

# bounds: none - how figures are drawn

from __future__ import annotations

from functools import partial
from typing import Any

from ...base import validate
from ...base.numerics import rounded_down
from ...report import style
from .paper_data import PaperCurve, PaperFigure
from .texts import texts_of

# Dashes of the names of a panel in turn.
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.6)), (0, (6, 1.5, 1.2, 1.5)), (0, (3, 1)))
_PANEL_SIZE = (6.4, 4.9)  # inches
# bound: none - numbers that are drawn are larger
_LEAST = 1e-30
# Labels of the axis of parameters.
_X_LABELS = {
    "epsilon_nats": r"$\varepsilon$ (nats)", "sigma_squared": r"noise variance $\sigma^2$ (where $\Delta$ = 1)",
}
# Labels of the axis of numbers, by unit.
_Y_LABELS = {"probability": r"$\delta$ (probability)", "bits": r"$\mu$ (bits)", "1": "guaranteed / optimal"}


def paper_panel(figure: PaperFigure, panel: int = 0, ax: Any = None) -> Any:
    """Draw one panel of a figure of the paper.

    Parameters
    ----------
    figure : PaperFigure
        The numbers, of ``fastpriv.studies.papers.paper``.
    panel : int, default 0
        Which panel: 0 has the curves, and 1 of figures 2 and 4 their ratios.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure of its own.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    BackendMissingError
        When matplotlib is not installed.

    Examples
    --------
    >>> import fastpriv
    >>> (figure,) = fastpriv.studies.papers.paper("figure2")
    >>> fastpriv.studies.papers.paper_panel(figure, 1).get_xscale()
    'log'
    """
    validate.instance("figure", figure, PaperFigure)
    units = _units(figure)
    return _draw(figure, units[validate.count("panel", panel, 0, len(units) - 1)], style.axes_or_new(ax))


def figure_of_panels(figure: PaperFigure) -> Any:
    """Draw all panels of a figure side by side."""
    return style.figure_of_panels([partial(_draw, figure, unit) for unit in _units(figure)], _PANEL_SIZE)


def _units(figure: PaperFigure) -> list[str]:
    """The units of the curves of a figure, each of which has a panel."""
    return list(dict.fromkeys(curve.estimate.unit for curve in figure.curves if curve.axes))


def _draw(figure: PaperFigure, unit: str, ax: Any) -> Any:
    curves = [curve for curve in figure.curves if curve.estimate.unit == unit]
    names = list(dict.fromkeys(curve.name for curve in curves))
    settings = list(dict.fromkeys(_setting_text(curve) for curve in curves))
    for curve in curves:
        colour = style.shade(settings.index(_setting_text(curve)) / len(settings))
        look = {"color": colour, "ls": _DASHES[names.index(curve.name) % len(_DASHES)]}
        if not curve.axes:
            ax.axhline(curve.estimate.value, lw=1.1, **look)
            continue
        x = next(iter(curve.axes.values()))
        centre, lower, upper = (style.positive(array, _LEAST) for array in curve.estimate.arrays())
        ax.fill_between(x, lower, upper, color=colour, alpha=0.25, lw=0)
        ax.plot(x, centre, lw=2.0, **look)
        ax.set(xlabel=_X_LABELS[next(iter(curve.axes))], xlim=(x[0], x[-1]))
    meanings = figure.meanings()
    handles = [
        *(ax.plot([], [], color=style.INK, ls=_DASHES[i % len(_DASHES)], label=meanings[name])[0]
          for i, name in enumerate(names)),
        *(ax.plot([], [], color=style.shade(i / len(settings)), lw=2.0, label=setting)[0]
          for i, setting in enumerate(settings) if setting),
    ]
    for curve in figure.curves:
        if curve.name == "crossing":
            edge = float(curve.estimate.lower)
            text = rf"(13) is broken for $\varepsilon$ < {rounded_down(edge, 5)}"
            handles.append(ax.axvline(edge, color=style.ALERT, lw=1.1, label=text))
    ax.set(xscale="log", yscale="log", ylabel=_Y_LABELS[unit])
    if unit == "probability":
        ax.set_ylim(1e-8, 2.0)
    style.legend_below(ax, handles=handles)
    return style.styled(ax, texts_of("figures")[figure.name]["title"])


def _setting_text(curve: PaperCurve) -> str:
    """What tells curves of one name apart, as text."""
    symbols = {"mu_bits": r"$\mu$ = {:g} bit", "dimension": "$d$ = {:g}"}
    return next((text.format(curve.setting[name]) for name, text in symbols.items() if name in curve.setting), "")
