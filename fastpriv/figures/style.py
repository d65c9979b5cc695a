"""One look for every picture: ink, palette, axes. Nothing here touches pyplot or any global state.

The palette's lightness alone tells its colours apart, so that it survives colour blindness and a grey printer.
"""

from __future__ import annotations

from typing import Any

from ..errors import BackendMissingError

__all__ = ["FAINT", "INK", "axes", "page", "shade", "styled"]

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
    return page((6.4, 4.4)).add_subplot() if ax is None else ax


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
