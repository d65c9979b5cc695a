"""The panels of figures 1 to 4 of the paper on local mutual-information privacy: each takes and returns an ``ax``.

A panel is a table of lines, and one function draws every panel. Bounds are shown as a band around each line.
"""

# bounds: none - how figures are drawn

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...base import validate
from ...base.numerics import rounded_down
from ...report import style
from .paper_data import PaperFigure

__all__ = ["figure_of_panels", "panel_figures", "paper_panel"]

_SOLID, _DASHED, _DOTTED = "-", (0, (5, 2)), (0, (1, 1.6))
_PANEL_SIZE = (6.4, 4.9)  # inches
# bound: none - numbers that are drawn are larger
_LEAST = 1e-30
# Label and limits of the axis of each parameter.
_X_AXES = {
    "epsilon_nats": (r"$\varepsilon$ (nats)", (0.01, 10.0)),
    "sigma_squared": (r"noise variance $\sigma^2$ (where $\Delta$ = 1)", (0.05, 200.0)),
}
_SYMBOLS = {"mu_bits": (r"$\mu$ =", "bit"), "dimension": ("$d$ =", "")}  # of a parameter, before and after its value


class _PanelLine(NamedTuple):
    """A curve of a figure, or a single number of it as a level."""

    curve: str
    label: str
    style: Any = _SOLID


class _PanelPlan(NamedTuple):
    """What a panel shows; ``setting`` picks the curves of this panel."""

    title: str
    x: str  # parameter along the axis
    y: str  # label of the axis
    limits: tuple[float, float] | None  # of the axis of y
    lines: tuple[_PanelLine, ...]
    by: str = ""  # parameter whose values have a colour each; otherwise every line has one
    setting: Mapping[str, float] = {}
    level: float | None = None  # drawn as a faint line


def paper_panel(figure: PaperFigure, panel: int = 0, ax: Any = None) -> Any:
    """Draw one panel of a figure of the paper.

    Parameters
    ----------
    figure : PaperFigure
        The numbers, of ``fastpriv.studies.papers.paper``.
    panel : int, default 0
        Which panel, from the left: figure 1 has one, the others have two.
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
    panels = _PANELS[figure.name]
    return _draw(figure, panels[validate.count("panel", panel, 0, len(panels) - 1)], style.axes_or_new(ax))


def panel_figures(figure: PaperFigure) -> list[Any]:
    """Draw each panel in a figure of its own."""
    return [_side_by_side(figure, (panel,)) for panel in _PANELS[figure.name]]


def figure_of_panels(figure: PaperFigure) -> Any:
    """Draw all panels of a figure side by side."""
    return _side_by_side(figure, _PANELS[figure.name])


def _side_by_side(figure: PaperFigure, panels: tuple[_PanelPlan, ...]) -> Any:
    """Draw panels side by side, each placed in its cell as in a figure of its own."""
    count, (width, height) = len(panels), _PANEL_SIZE
    left, right = 0.12, 0.98
    grid = {"left": left / count, "right": 1.0 - (1.0 - right) / count, "wspace": (1.0 - right + left) / (right - left)}
    picture = style.new_figure((width * count, height))
    axes = picture.subplots(1, count, squeeze=False, gridspec_kw={**grid, "top": 0.925, "bottom": 0.11})[0]
    for ax, panel in zip(axes, panels, strict=True):
        _draw(figure, panel, ax)
    return picture


def _draw(figure: PaperFigure, panel: _PanelPlan, ax: Any) -> Any:
    """Draw one panel: its lines with their bounds, levels, the number that is marked, and the legend."""
    values: list[Any] = [None]
    if panel.by:
        values = list(dict.fromkeys(curve.setting[panel.by] for curve in figure.curves))
    handles = (
        []
        if not panel.by
        else [ax.plot([], [], color=style.INK, ls=line.style, label=line.label)[0] for line in panel.lines]
    )
    for i, value in enumerate(values):
        setting = panel.setting if value is None else {panel.by: value}
        for j, line in enumerate(panel.lines):
            curve = figure.curve(line.curve, **setting)
            colour = style.shade(i / len(values) if panel.by else j / len(panel.lines))
            numbers, look = curve.estimate, {"color": colour, "ls": line.style}
            if not curve.axes:
                drawn = ax.axhline(numbers.value, **look, lw=1.1, label=line.label)
            else:
                x = curve.axes[panel.x]
                centre, lower, upper = (style.positive(array, _LEAST) for array in numbers.arrays())
                ax.fill_between(x, lower, upper, color=colour, alpha=0.25, lw=0)
                (drawn,) = ax.plot(x, centre, **look, lw=2.0, label=line.label)
            if not panel.by:
                handles.append(drawn)
        if panel.by:
            before, after = _SYMBOLS[panel.by]
            handles += ax.plot([], [], color=colour, lw=2.0, label=f"{before} {value:g} {after}".rstrip())
    if panel.level is not None:
        ax.axhline(panel.level, color=style.FAINT, lw=1.1, ls=_DOTTED)
    handles += _marked(figure, panel, ax)
    label, limits = _X_AXES[panel.x]
    ax.set(xscale="log", yscale="log", xlabel=label, ylabel=panel.y, xlim=limits, ylim=panel.limits)
    ax.legend(handles=handles, frameon=False, fontsize=9.5, loc="upper right" if panel.level else "lower left")
    return style.styled(ax, panel.title)


def _marked(figure: PaperFigure, panel: _PanelPlan, ax: Any) -> list[Any]:
    """Mark where a statement of the paper breaks, or how far it is off, if this panel shows it."""
    if figure.name == "figure3":
        x = float(figure.curve("crossing", **panel.setting).estimate.lower)
        text = rf"(13) is broken for $\varepsilon$ < {rounded_down(x, 5)}"
        return [ax.axvline(x, color=style.ALERT, lw=1.1, label=text)]
    if panel.level == 1.0:
        mark = figure.curve("ratio_at_tenth")
        text = rf"{mark.estimate.value:.3g} times at $\mu$ = 0.1 bit"
        return list(ax.plot(mark.setting["sigma"] ** 2, mark.estimate.value, "o", color=style.ALERT, label=text))
    return []


def _lip_panel(mu: float) -> _PanelPlan:
    return _PanelPlan(
        rf"LIP of a mechanism that leaks $\mu$ = {mu:g} bit on average", "epsilon_nats", r"LIP $\delta$ (probability)",
        (1e-8, 2.0), (
            _PanelLine("lip_delta_gaussian", "Gaussian noise, exact, eq. (6)"),
            _PanelLine("lip_delta_as_published", "(13) as printed: no guarantee", _DASHED),
            _PanelLine("saturation", r"its limit $1 - 2^{-\mu}$", _DOTTED),
            _PanelLine("lip_delta_pointwise", "(13) for the worst input: valid", (0, (6, 1.5, 1.2, 1.5))),
            _PanelLine("lip_delta_tight", "tight for CD-LMIP, worst input"),
        ), setting={"mu_bits": mu},
    )  # fmt: skip


# The panels of each figure, from left to right.
_PANELS: dict[str, tuple[_PanelPlan, ...]] = {
    "figure1": (
        _PanelPlan(r"LDP of a mechanism that leaks $\mu$ bits at most", "epsilon_nats", r"LDP $\delta$ (probability)",
               (1e-8, 2.0), (
            _PanelLine("ldp_delta_achievable", "guaranteed to every mechanism, eq. (10)"),
            _PanelLine("saturation", r"its limit $\bar p_\mu$", _DOTTED),
            _PanelLine("ldp_delta_gaussian", "what Gaussian noise does, eq. (9)", _DASHED),
        ), by="mu_bits"),
    ),
    "figure2": (
        _PanelPlan("Information of Gaussian noise, worst input distribution", "sigma_squared", r"CI-LMIP $\mu$ (bits)",
               None, (
            _PanelLine("ci_lmip_from_ldp", "guaranteed by the LDP curve, eq. (12)"),
            _PanelLine("ci_lmip_optimal", "optimal, eq. (8)", _DASHED),
            _PanelLine("two_inputs", "sharp form for two inputs", _DOTTED),
        ), by="dimension"),
        _PanelPlan("The gap is a ratio, and tends to 4", "sigma_squared", "guaranteed / optimal", (3.4, 40.0),
               (_PanelLine("ratio", "eq. (12)"),), by="dimension", level=4.0),
    ),
    "figure3": (_lip_panel(0.1), _lip_panel(0.01)),
    "figure4": (
        _PanelPlan("Information of Gaussian noise, given input distribution", "sigma_squared", r"CD-LMIP $\mu$ (bits)",
               (1e-4, 1e4), (
            _PanelLine("cd_lmip_optimal", "optimal, I(X; G(X))"),
            _PanelLine("cd_lmip_both_directions", "both directions kept apart", _DASHED),
            _PanelLine("cd_lmip_from_lip", "guaranteed by the LIP curve, eq. (14)"),
            _PanelLine("entropy", "entropy of the input: all there is", _DOTTED),
        )),
        _PanelPlan("How loose the guarantee is", "sigma_squared", "guaranteed / optimal", (0.7, 1e4), (
            _PanelLine("ratio", "eq. (14)"),
            _PanelLine("ratio_both_directions", "both directions kept apart", _DASHED),
        ), level=1.0),
    ),
}  # fmt: skip
