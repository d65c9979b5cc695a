"""The common style of all pictures: ink, palette, axes, legends, and texts in any script.

Figures are pyplot's, current and shown by it, in a notebook and wherever the caller has imported pyplot; elsewhere
pyplot is not loaded, and nothing global changes.

The lightness of the palette's colours alone distinguishes them, so that it survives colour blindness and a grey
printer.

Names of columns and categories are shown as they are. A character that no available font has, or that has no shape (a
control character), is written as Python writes it (``\\n``, ``\\x07``, ``\\u5317``). Fonts are those of
``matplotlib.rcParams["font.family"]``: name one there that has your script.

Examples
--------
>>> from fastpriv.report import style
>>> @style.panel
... def line(numbers, ax=None):
...     "Draw numbers."
...     ax.plot(numbers, color=style.INK)
...     return "A line"
>>> line([1.0, 2.0]).get_title(loc="left")
'A line'
"""

from __future__ import annotations

import functools
import inspect
import math
import re
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..base import validate
from ..base.errors import BackendMissingError, DomainError
from ..base.escaping import escaped, has_shape, shortened
from ..base.numerics import FloatArray

# Colours: of text and lines, of what is in the background, of bars, of what is false or broken.
INK, FAINT, BAR, ALERT = "#1f2430", "#8a90a0", "#cfd6e4", "#c8553d"
_PANEL_SIZE = (6.4, 4.4)  # inches
# What the docstring of every panel says of its axes.
_AX_TEXT = (
    "ax : matplotlib.axes.Axes, optional\n    Where to draw; by default a new figure of its own. A legend is below the "
    "axes: figures of\n    ``layout=\"constrained\"`` leave it the space.\n"
)
# What the docstring of every panel says of its result.
_RETURNS_TEXT = "\nReturns\n-------\nmatplotlib.axes.Axes\n"
_PALETTE_END = 0.85  # of viridis, whose last colours are too light on white
# Size of the texts of a legend, and width of what is beside a text and of a character, in points.
_LEGEND_FONT, _LEGEND_WIDTHS = 8.5, (43.0, 5.0)
# bound: none - decades of a logarithmic axis with linear ticks, with ticks 1, 2 and 5; its ends with plain numbers
_LINEAR_DECADES, _DENSE_DECADES, _LEAST_PLAIN, _LARGEST_PLAIN = 0.6, 1.5, 0.9e-3, 1.1e5


def new_figure(size: tuple[float, float], panel: bool = False) -> Any:
    """Make an empty white figure of this size in inches, which is pyplot's current one where pyplot is in use.

    A notebook shows what is returned to it if that is a figure, and pyplot's figures if it is axes, as of a ``panel``.
    """
    is_notebook = "ipykernel" in sys.modules
    try:
        if is_notebook or "matplotlib.pyplot" in sys.modules:
            from matplotlib import pyplot

            figure = pyplot.figure(figsize=size, facecolor="white")
            if is_notebook and not panel:
                pyplot.close(figure)
            return figure
        from matplotlib.figure import Figure
    except ImportError:
        raise BackendMissingError(
            "matplotlib must be installed to draw; got none. Run: pip install 'fastpriv[figures]'"
        ) from None
    return Figure(figsize=size, facecolor="white")


def figure_of_panels(draws: Sequence[Callable[[Any], Any]], size: tuple[float, float]) -> Any:
    """Draw panels, functions of axes, in one figure, two side by side; ``size`` is that of each in inches."""
    columns = min(2, len(draws))
    rows = -(-len(draws) // columns)
    figure = new_figure((size[0] * columns, size[1] * rows))
    figure.set_layout_engine("constrained")
    for k, draw in enumerate(draws, start=1):
        draw(figure.add_subplot(rows, columns, k))
    return figure


def panel(draw: Callable[..., Any]) -> Callable[..., Any]:
    """Make a panel of a function that draws on its argument ``ax`` and returns the title.

    The panel takes axes, or makes new ones in a figure of their own, and returns them, with the title and in the common
    style. Its docstring describes them too. A title with keywords of its text is a pair, as ``label`` returns it.
    """
    signature = inspect.signature(draw)

    @functools.wraps(draw)
    def drawn(*args: Any, **keywords: Any) -> Any:
        bound = signature.bind(*args, **keywords)
        bound.apply_defaults()
        ax = bound.arguments["ax"] = axes_or_new(bound.arguments["ax"])
        title = draw(*bound.args, **bound.kwargs)
        text, font = (title, {}) if isinstance(title, str) else title
        return styled(ax, text, **font)

    text = inspect.cleandoc(draw.__doc__ or "")
    inserted = _AX_TEXT if "\nReturns\n" in text else _AX_TEXT + _RETURNS_TEXT
    drawn.__doc__ = re.sub(r"\n(?=\n(Returns|Raises|Examples)\n---)", "\n" + inserted, text, count=1)
    return drawn


def axes_or_new(ax: Any) -> Any:
    """Return ``ax`` if it is axes of matplotlib, or new ones in a figure of their own for None."""
    if ax is None:
        figure = new_figure(_PANEL_SIZE, panel=True)
        figure.set_layout_engine("constrained")
        return figure.add_subplot()
    if not hasattr(ax, "get_figure") or not hasattr(ax, "set_xscale"):
        raise DomainError(
            f"ax must be axes of matplotlib; got {validate.shown(ax)}. Pass Figure().add_subplot(), or leave it out."
        )
    return ax


def check_result(name: str, result: Any, wanted: str, maker: str) -> Any:
    """Return ``result`` if it is of the class of this name, which is of a later layer; ``maker`` is who makes it."""
    if wanted not in {kind.__name__ for kind in type(result).__mro__}:
        raise DomainError(f"{name} must be what {maker}; got {validate.shown(result)}. Pass its result.")
    return result


def shade(position: float) -> Any:
    """Return a colour by its position in the palette, from 0 (dark) to 1 (light)."""
    import matplotlib

    return matplotlib.colormaps["viridis"](_PALETTE_END * position)


def styled(ax: Any, title: str, **text: Any) -> Any:
    """Set title, grid, spines and the ticks of logarithmic axes of a panel; return its axes."""
    ax.set_title(title, loc="left", fontsize=11.5, color=INK, pad=8, **text)
    ax.grid(True, which="major", color="#e6e9f0", lw=0.7)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(FAINT)
    ax.tick_params(colors=INK, labelsize=9, which="both", width=0.6)
    ax.tick_params(which="minor", length=2, color=FAINT)
    for axis in (ax.xaxis, ax.yaxis):
        if axis.get_scale() == "log":
            _label_logarithmic(axis)
    return ax


def legend_below(ax: Any, drop: float = 36.0, plain: bool = False, **keywords: Any) -> None:
    """Draw the legend below the axes, where no curve is, in as many columns as fit.

    ``drop`` is its distance from the axes, with room for the labels of ticks and axis, in points; in ``plain`` texts a
    dollar sign is a dollar sign.
    """
    from matplotlib.transforms import ScaledTranslation

    handles = keywords.get("handles") or ax.get_legend_handles_labels()[0]
    texts = [re.sub(r"\\\w+|\$", "", handle.get_label()).split("\n") for handle in handles]
    widths = [_LEGEND_WIDTHS[0] + _LEGEND_WIDTHS[1] * max(map(len, lines)) for lines in texts]
    figure = ax.get_figure()
    room = 72.0 * ax.bbox.width / figure.dpi
    fitting = (n for n in range(len(widths), 1, -1) if sum(map(max, np.array_split(widths, n))) <= room)
    below = ax.transAxes + ScaledTranslation(0.0, -drop / 72.0, figure.dpi_scale_trans)
    legend = ax.legend(
        loc="upper left", bbox_to_anchor=(0.0, 0.0), bbox_transform=below, borderaxespad=0.0, ncols=next(fitting, 1),
        frameon=False, fontsize=_LEGEND_FONT, title_fontsize=_LEGEND_FONT, alignment="left", **keywords,
    )
    for text in legend.get_texts() if plain else ():
        text.set(**label("")[1])


def _label_logarithmic(axis: Any) -> None:
    """Label a logarithmic axis 0.5, 1, 2, or 0.01, 0.1, 1, or by powers of ten where numbers would be long.

    Axes that show hardly more than one number are widened.
    """
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator, StrMethodFormatter

    low, high = sorted(getattr(axis.axes, f"get_{axis.axis_name}lim")())
    if high < 1.5 * low:
        low, high = 0.4 * math.sqrt(low * high), 2.5 * math.sqrt(low * high)
        axis.axes.set(**{f"{axis.axis_name}lim": (low, high)})
    decades = math.log10(high) - math.log10(low)
    axis.set_minor_formatter(NullFormatter())
    if decades <= _LINEAR_DECADES:
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        axis.set_minor_locator(NullLocator())
    elif decades <= _DENSE_DECADES:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    if decades <= _DENSE_DECADES or (low > _LEAST_PLAIN and high < _LARGEST_PLAIN):
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))


def positive(numbers: FloatArray, least: float) -> FloatArray:
    """Replace numbers that a logarithmic axis does not show, those of at most ``least``, by NaN."""
    return np.where(numbers > least, numbers, np.nan)


def label(text: str, width: int | None = None, weight: str = "normal") -> tuple[str, dict[str, Any]]:
    """Return a text that can be drawn as it is, and the keywords for ``ax.text`` that draw it.

    Characters that the fonts do not have are escaped too. A dollar sign is a dollar sign.
    """
    from matplotlib import rcParams

    families = list(rcParams["font.family"])
    codepoints = [_codepoints(path) for path in _font_paths(tuple(families), weight)]
    tokens = [c if has_shape(c) and any(ord(c) in known for known in codepoints) else escaped(c) for c in text]
    return shortened(tokens, width), {"parse_math": False, "usetex": False, "fontfamily": families}


@lru_cache(maxsize=8)
def _font_paths(families: tuple[str, ...], weight: str) -> tuple[str, ...]:
    """Return the files of the families that are installed."""
    from matplotlib.font_manager import FontProperties, findfont

    paths = []
    for family in families:
        try:
            paths.append(findfont(FontProperties(family=[family], weight=weight), fallback_to_default=False))
        except ValueError:  # not installed
            continue
    return tuple(paths or [findfont(FontProperties(family=["DejaVu Sans"], weight=weight))])


@lru_cache(maxsize=1024)
def _codepoints(path: str) -> frozenset[int]:
    """Return the characters of a font."""
    from matplotlib.font_manager import get_font

    return frozenset(get_font(path).get_charmap())
