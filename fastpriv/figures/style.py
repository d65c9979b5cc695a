"""One look for every picture: ink, palette, axes. Nothing here touches pyplot or any global state.

The palette's lightness alone tells its colours apart, so that it survives colour blindness and a grey printer.
"""

from __future__ import annotations

from typing import Any

from .. import _validate
from ..errors import BackendMissingError, DomainError

__all__ = ["FAINT", "INK", "axes", "checked_axes", "checked_report", "page", "shade", "styled"]

INK, FAINT = "#1f2430", "#8a90a0"


def page(size: tuple[float, float]) -> Any:
    """An empty white page, in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise BackendMissingError(
            "matplotlib must be installed to draw; got none. Run: pip install 'fastpriv[figures]'"
        ) from None
    return Figure(figsize=size, facecolor="white")


def axes(ax: Any) -> Any:
    """The axes given, or new ones on a page of their own."""
    return page((6.4, 4.4)).add_subplot() if ax is None else checked_axes(ax)


def checked_axes(ax: Any) -> Any:
    """Axes of matplotlib."""
    if not hasattr(ax, "get_figure") or not hasattr(ax, "set_xscale"):
        raise DomainError(
            f"ax must be axes of matplotlib; got {_validate.shown(ax)}. Pass Figure().add_subplot(), or leave it out."
        )
    return ax


def checked_report(report: Any, function: str = "assess") -> Any:
    """What ``assess`` or ``sweep`` returned."""
    wanted = {"assess": "Assessment", "sweep": "Sweep"}[function]
    if wanted not in {kind.__name__ for kind in type(report).__mro__}:  # they are of a later layer
        raise DomainError(
            f"report must be what fastpriv.{function} returns; got {_validate.shown(report)}. "
            f"Pass fastpriv.{function}(...)."
        )
    return report


def shade(place: float) -> Any:
    """A colour by its place between 0 (dark) and 1 (light)."""
    import matplotlib

    return matplotlib.colormaps["viridis"](0.85 * place)


def styled(ax: Any, title: str, **text: Any) -> Any:
    """Title, grid and spines of a panel."""
    ax.set_title(title, loc="left", fontsize=11.5, color=INK, pad=8, **text)
    ax.grid(True, which="major", color="#e6e9f0", lw=0.7)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(FAINT)
    ax.tick_params(colors=INK, labelsize=9, which="both", width=0.6)
    ax.tick_params(which="minor", length=2, color=FAINT)
    return ax
