"""The panels of figures 1 to 4 of the paper on local mutual-information privacy: each takes and returns an ``ax``."""

# bounds: none - how figures are drawn

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base import validate
from ...base.numerics import rounded_down, rounded_up
from ...report.style import ALERT, FAINT, INK, axes_or_new, new_figure, positive, shade, styled
from .paper_data import PaperCurve, PaperFigure

__all__ = ["figure_of_panels", "panel_figures", "paper_panel"]

_DASHED, _DOTTED = (0, (5, 2)), (0, (1, 1.6))
_EPSILON_LABEL = r"$\varepsilon$ (nats)"  # label of an axis
_PANEL_SIZE = (6.4, 4.9)  # inches
# bound: none - numbers that are drawn are larger
_LEAST = 1e-30
_VARIANCE_LABEL = r"noise variance $\sigma^2$ (where $\Delta$ = 1)"  # label of an axis


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
    drawn = _PANELS[figure.name]
    return drawn[validate.count("panel", panel, 0, len(drawn) - 1)](figure, axes_or_new(ax))


def panel_figures(figure: PaperFigure) -> list[Any]:
    """Draw each panel in a figure of its own."""
    pictures = []
    for draw in _PANELS[figure.name]:
        pictures.append(new_figure(_PANEL_SIZE))
        draw(figure, _side_by_side_axes(pictures[-1], 1)[0])
    return pictures


def figure_of_panels(figure: PaperFigure) -> Any:
    """Draw all panels of a figure side by side."""
    drawn = _PANELS[figure.name]
    picture = new_figure((_PANEL_SIZE[0] * len(drawn), _PANEL_SIZE[1]))
    for ax, draw in zip(_side_by_side_axes(picture, len(drawn)), drawn, strict=True):
        draw(figure, ax)
    return picture


def _achievable_ldp(figure: PaperFigure, ax: Any) -> Any:
    levels = [curve.setting["mu_bits"] for curve in figure.curves if curve.name == "ldp_delta_achievable"]
    for position, mu in enumerate(levels):
        colour = shade(position / len(levels))
        guaranteed = figure.curve("ldp_delta_achievable", mu_bits=mu)
        _draw_curve(ax, guaranteed, color=colour, lw=2.2)
        _draw_curve(ax, figure.curve("ldp_delta_gaussian", mu_bits=mu), color=colour, lw=1.6, ls=_DASHED)
        limit = figure.curve("saturation", mu_bits=mu).estimate.value
        ax.axhline(limit, color=colour, lw=1.1, ls=_DOTTED)
        label = rf"$\mu$ = {mu:g} bit" if position == 0 else f"{mu:g} bit"
        ax.text(9.6, limit * 1.13, label, color=colour, fontsize=10, ha="right", va="bottom")
    _style_legend(ax, [
        ("guaranteed to every mechanism, eq. (10)", "-", 2.2), (r"its limit $\bar p_\mu$", _DOTTED, 1.1),
        ("what Gaussian noise does, eq. (9)", _DASHED, 1.6),
    ])  # fmt: skip
    ax.set(xlim=(0.01, 10.0), ylim=(1e-8, 2.0), xlabel=_EPSILON_LABEL, ylabel=r"LDP $\delta$ (probability)")
    return styled(ax, r"LDP of a mechanism that leaks $\mu$ bits at most")


def _information_from_ldp(figure: PaperFigure, ax: Any) -> Any:
    for position, dimension in enumerate((10, 1)):
        colour = shade(0.62 * position)
        for name, ls, lw in (("ci_lmip_from_ldp", "-", 2.2), ("ci_lmip_optimal", _DASHED, 1.8)):
            _draw_curve(ax, figure.curve(name, dimension=dimension), color=colour, ls=ls, lw=lw, over="sigma_squared")
        _draw_curve(ax, figure.curve("two_inputs", dimension=dimension), color=colour, ls=_DOTTED, lw=1.8,
              over="sigma_squared")  # fmt: skip
        bound = figure.curve("ci_lmip_from_ldp", dimension=dimension)
        _annotate_line(ax, bound, 0.35, rf"$d$ = {dimension}", colour)
    _style_legend(ax, [
        ("guaranteed by the LDP curve, eq. (12)", "-", 2.2), ("optimal, eq. (8)", _DASHED, 1.8),
        ("sharp form for two inputs", _DOTTED, 1.8),
    ])  # fmt: skip
    ax.set(xlim=(0.05, 200.0), xlabel=_VARIANCE_LABEL, ylabel=r"CI-LMIP $\mu$ (bits)")
    return styled(ax, "Information of Gaussian noise, worst input distribution")


def _ldp_ratio(figure: PaperFigure, ax: Any) -> Any:
    for position, dimension in enumerate((10, 1)):
        colour = shade(0.62 * position)
        ratio = figure.curve("ratio", dimension=dimension)
        _draw_curve(ax, ratio, color=colour, lw=2.0, over="sigma_squared")
        _annotate_line(ax, ratio, 0.16, rf"$d$ = {dimension}", colour, above=dimension == 1)
    ax.axhline(4.0, color=FAINT, lw=1.1, ls=_DOTTED)
    ax.text(180.0, 3.9, "limit 4", color=FAINT, fontsize=10, ha="right", va="top")
    _set_log_scales(ax)
    ax.set(xlim=(0.05, 200.0), ylim=(3.4, 40.0), xlabel=_VARIANCE_LABEL, ylabel="guaranteed / optimal")
    ax.set_yticks([4, 6, 10, 20, 40], ["4", "6", "10", "20", "40"])
    ax.set_yticks([], minor=True)
    return styled(ax, "The gap is a ratio, and tends to 4")


def _achievable_lip(mu: float) -> Callable[[PaperFigure, Any], Any]:
    def draw(figure: PaperFigure, ax: Any) -> Any:
        printed, exact, tight, pointwise = (
            figure.curve(f"lip_delta_{name}", mu_bits=mu) for name in ("as_published", "gaussian", "tight", "pointwise")
        )
        epsilon = printed.axes["epsilon_nats"]
        broken = exact.estimate.lower > printed.estimate.upper
        between = printed.estimate.value, exact.estimate.value
        ax.fill_between(epsilon, *between, where=broken, color=ALERT, alpha=0.22, lw=0)
        _draw_curve(ax, exact, color=shade(0.0), lw=2.2, label="Gaussian noise, exact, eq. (6)")
        worst = figure.curve("pointwise_lmip", mu_bits=mu).estimate.upper
        _draw_curve(ax, tight, color=shade(0.95), lw=2.2, label="tight for CD-LMIP, worst input")
        label = rf"(13) for the worst input, {rounded_up(float(worst))} bit: valid"
        _draw_curve(ax, pointwise, color=shade(0.66), lw=1.8, ls=(0, (6, 1.5, 1.2, 1.5)), label=label)
        _draw_curve(ax, printed, color=shade(0.34), lw=2.0, ls=_DASHED, label="(13) as printed: no guarantee")
        limit = figure.curve("saturation", mu_bits=mu).estimate.value
        ax.axhline(limit, color=shade(0.34), lw=1.0, ls=_DOTTED, label=r"its limit $1 - 2^{-\mu}$")
        crossing = figure.curve("crossing", mu_bits=mu).estimate.lower
        height = float(np.interp(crossing, epsilon, printed.estimate.value))
        ax.plot([crossing], [height], "o", ms=7, color=ALERT, mec="white", mew=1.0)
        ax.annotate(
            rf"(13) is broken for $\varepsilon$ < {rounded_down(float(crossing), 5)}", (crossing, height), (0.03, 0.53),
            textcoords=ax.transAxes, color=ALERT, fontsize=10,
            arrowprops={"arrowstyle": "-", "color": ALERT, "lw": 0.8, "shrinkB": 4},
        )  # fmt: skip
        _set_log_scales(ax)
        ax.legend(frameon=False, fontsize=9.5, loc="lower left")
        ax.set(xlim=(0.01, 10.0), ylim=(1e-8, 2.0), xlabel=_EPSILON_LABEL, ylabel=r"LIP $\delta$ (probability)")
        return styled(ax, rf"LIP of a mechanism that leaks $\mu$ = {mu:g} bit on average")

    return draw


def _information_from_lip(figure: PaperFigure, ax: Any) -> Any:
    for name, position, ls, label in (
        ("cd_lmip_from_lip", 0.62, "-", "guaranteed by the LIP curve, eq. (14)"),
        ("cd_lmip_both_directions", 0.32, _DASHED, "both directions kept apart"),
        ("cd_lmip_optimal", 0.0, "-", "optimal, I(X; G(X))"),
    ):
        _draw_curve(ax, figure.curve(name), color=shade(position), lw=2.1, ls=ls, over="sigma_squared", label=label)
    entropy = figure.curve("entropy").estimate.value
    ax.axhline(entropy, color=FAINT, lw=1.1, ls=_DOTTED)
    ax.text(190.0, entropy * 1.15, f"all there is: {entropy:.3g} bits", color=FAINT, fontsize=9.5, ha="right")
    _set_log_scales(ax)
    ax.legend(frameon=False, fontsize=9.5, loc="lower left")
    ax.set(xlim=(0.1, 200.0), ylim=(1e-4, 1e4), xlabel=_VARIANCE_LABEL, ylabel=r"CD-LMIP $\mu$ (bits)")
    return styled(ax, "Information of Gaussian noise, given input distribution")


def _lip_ratio(figure: PaperFigure, ax: Any) -> Any:
    for name, position, ls, label in (
        ("ratio", 0.62, "-", "eq. (14)"), ("ratio_both_directions", 0.32, _DASHED, "both directions kept apart"),
    ):  # fmt: skip
        _draw_curve(ax, figure.curve(name), color=shade(position), lw=2.1, ls=ls, over="sigma_squared", label=label)
    ax.axhline(1.0, color=FAINT, lw=1.1, ls=_DOTTED)
    mark = figure.curve("ratio_at_tenth")
    point = mark.setting["sigma"] ** 2, mark.estimate.value
    ax.plot(*point, "o", ms=7, color=ALERT, mec="white", mew=1.0)
    ax.annotate(rf"{point[1]:.3g} times at $\mu$ = 0.1 bit", point, (12, 14), textcoords="offset points", color=ALERT,
                fontsize=10)  # fmt: skip
    _set_log_scales(ax)
    ax.legend(frameon=False, fontsize=9.5, loc="upper right")
    ax.set(xlim=(0.1, 200.0), ylim=(0.7, 1e4), xlabel=_VARIANCE_LABEL, ylabel="guaranteed / optimal")
    return styled(ax, "How loose the guarantee is")


def _side_by_side_axes(picture: Any, count: int) -> Any:
    """Make axes side by side, each placed in its cell as in a figure of its own."""
    left, right = 0.12, 0.98
    grid = {"left": left / count, "right": 1.0 - (1.0 - right) / count, "wspace": (1.0 - right + left) / (right - left)}
    return picture.subplots(1, count, squeeze=False, gridspec_kw={**grid, "top": 0.925, "bottom": 0.11})[0]


def _draw_curve(ax: Any, curve: PaperCurve, over: str = "epsilon_nats", **look: Any) -> None:
    """Draw the value, and fill the space between its bounds."""
    x = curve.axes[over]
    value, lower, upper = curve.estimate.arrays()
    ax.fill_between(x, positive(lower, _LEAST), positive(upper, _LEAST), color=look["color"], alpha=0.25, lw=0)
    ax.plot(x, positive(value, _LEAST), **look)


def _annotate_line(ax: Any, curve: PaperCurve, variance: float, text: str, colour: Any, above: bool = True) -> None:
    """Write a text beside a falling curve: above it to the right, or below it to the left."""
    point = variance, float(np.interp(variance, curve.axes["sigma_squared"], curve.estimate.value))
    offset = {"xytext": (7, 7)} if above else {"xytext": (-7, -5), "ha": "right", "va": "top"}
    ax.annotate(text, point, textcoords="offset points", color=colour, fontsize=10.5, **offset)


def _style_legend(ax: Any, styles: list[tuple[str, Any, float]]) -> None:
    """Add a legend of line styles; the colours are named beside the lines."""
    _set_log_scales(ax)
    handles = [ax.plot([], [], color=INK, ls=ls, lw=lw)[0] for _, ls, lw in styles]
    ax.legend(handles, [text for text, _, _ in styles], frameon=False, fontsize=9.5, loc="lower left", handlelength=2.6)


def _set_log_scales(ax: Any) -> None:
    ax.set(xscale="log", yscale="log")


# The functions that draw the panels of each figure, from left to right.
_PANELS: dict[str, tuple[Callable[[PaperFigure, Any], Any], ...]] = {
    "figure1": (_achievable_ldp,),
    "figure2": (_information_from_ldp, _ldp_ratio),
    "figure3": (_achievable_lip(0.1), _achievable_lip(0.01)),
    "figure4": (_information_from_lip, _lip_ratio),
}
