"""``profile``: draw the caller's curves delta(epsilon) with their bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.estimate import Estimate
from ..base.numerics import FloatArray
from .style import label, panel, positive, shade

__all__ = ["profile"]

Pair = tuple[ArrayLike, Estimate]
_LABEL_WIDTH, _TITLE_WIDTH = 40, 60  # characters for which there is room
_MAX_DECADES = 16.0  # of delta that the axis shows: smaller deltas are below the rounding of a probability near 1
_DELTA_UNITS = ("probability", "log probability")  # units of an Estimate of delta
# Dashes of the curves in turn: solid, dashed, dotted, dash-dotted.
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 1.5, 1.2, 1.5)))


@panel
def profile(
    curves: Estimate | Pair | Sequence[Estimate] | Sequence[Pair], epsilon: ArrayLike | None = None, *,
    labels: Sequence[str] | str | None = None, title: str = "Privacy profile", ax: Any = None,
) -> Any:  # fmt: skip
    r"""Draw privacy profiles: curves of delta over epsilon, each with the space between its bounds.

    Parameters
    ----------
    curves : Estimate, pair (epsilon, Estimate), or a sequence of either
        Deltas, as probabilities or as their natural logarithms, of the shape of their epsilons. A pair brings its own
        epsilons, in nats.
    epsilon : array_like of shape (e,), optional
        The epsilons of all curves that are not pairs, in nats, in any order. A single number makes a point.
    labels : sequence of str, or str, optional
        A name for each curve, in any script; without it there is no legend.
    title : str
        The title, in any script; a dollar sign is a dollar sign.

    Returns
    -------
    matplotlib.axes.Axes
        Delta on a logarithmic axis; epsilon on a logarithmic axis where all epsilons are positive and span more than
        a factor of ten, else on a linear one. A delta of 0 is not drawn.

    Raises
    ------
    DomainError
        For curves that are no Estimates of deltas, no curve, or epsilons that are negative or not finite.
    ShapeError
        For epsilons of another shape than a curve, or another number of labels than of curves.
    BackendMissingError
        When matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import GaussianMechanism, figures
    >>> epsilon = np.linspace(0.0, 4.0, 41)
    >>> deltas = [GaussianMechanism(sigma, 1.0).delta(epsilon) for sigma in (1.0, 2.0)]
    >>> ax = figures.profile(deltas, epsilon, labels=["sigma = 1", "sigma = 2"])
    >>> ax.get_yscale(), len(ax.get_legend().get_texts())
    ('log', 2)
    """
    pairs = _pairs(curves, epsilon)
    names = [labels] if isinstance(labels, str) else labels
    if names is not None:
        names = list(validate.sequence("labels", names, "texts"))
        if len(names) != len(pairs) or not all(isinstance(name, str) for name in names):
            raise ShapeError(
                f"labels must be one text for each of the {len(pairs)} curves; got {len(names)}. Pass a name for each."
            )
    validate.instance("title", title, str)
    families: list[str] = []
    for k, (epsilons, estimate) in enumerate(pairs):
        order = np.argsort(epsilons, kind="stable")
        x = epsilons[order]
        colour, dashes = shade(k / max(len(pairs) - 1, 1)), _DASHES[k % len(_DASHES)]
        value, lower, upper = (positive(_delta(estimate, end)[order], 0.0) for end in ("value", "lower", "upper"))
        look = {"color": colour, "ls": dashes, "lw": 1.9, "marker": "o" if x.size < 2 else "", "ms": 5}
        if names is not None:
            text, font = label(names[k], _LABEL_WIDTH)
            # A label that begins with an underscore would be left out of the legend.
            look["label"] = "\u200b" + text if text.startswith("_") else text
            families += [family for family in font["fontfamily"] if family not in families]
        # Where the lower bound is 0, the space between the bounds reaches the end of the axis.
        least = np.where(np.isnan(lower), np.finfo(np.float64).tiny, lower)
        if x.size < 2:
            ax.errorbar(x, value, [value - np.fmin(least, value), np.fmax(upper, value) - value], capsize=3, **look)
        else:
            ax.fill_between(x, least, upper, color=colour, alpha=0.25, lw=0)
            ax.plot(x, value, **look)
    _scale_axes(ax, pairs)
    if names is not None:
        legend = ax.legend(frameon=False, fontsize=9.5, handlelength=2.6)
        for text in legend.get_texts():
            text.set(parse_math=False, usetex=False, fontfamily=families)
    ax.set(xlabel=r"$\varepsilon$ (nats)", ylabel=r"$\delta$ (probability)")
    return label(title, _TITLE_WIDTH)


def _pairs(curves: Any, epsilon: Any) -> list[tuple[FloatArray, Estimate]]:
    """Return the curves as pairs of epsilons and Estimates of one shape."""
    if isinstance(curves, Estimate) or (
        isinstance(curves, tuple) and len(curves) == 2 and not isinstance(curves[0], (Estimate, tuple))
    ):
        curves = [curves]
    items = list(validate.sequence("curves", curves, "Estimates"))
    if not items:
        raise DomainError("curves must have at least one Estimate; got none. Pass what delta(epsilon) returned.")
    pairs = []
    for item in items:
        x, estimate = item if isinstance(item, tuple) and len(item) == 2 else (epsilon, item)
        if not isinstance(estimate, Estimate) or estimate.unit not in _DELTA_UNITS:
            shown = f"unit {estimate.unit!r}" if isinstance(estimate, Estimate) else validate.shown(estimate)
            raise DomainError(
                f"curves must be Estimates of deltas, probabilities or their logarithms; got {shown}. Pass what "
                "delta(epsilon) returned."
            )
        if x is None:
            raise DomainError("epsilon must be given for a curve without its own; got None. Pass the curve's epsilons.")
        x = np.atleast_1d(validate.real("epsilon", x, "at least 0 and finite", lambda e: (e >= 0) & np.isfinite(e)))
        if x.ndim != 1 or x.shape != np.atleast_1d(estimate.value).shape:
            raise ShapeError(
                f"epsilon must be of the shape of its curve, with one dimension; got {x.shape} and "
                f"{np.shape(estimate.value)}. Pass the epsilons at which the curve was computed."
            )
        pairs.append((x, estimate))
    return pairs


def _scale_axes(ax: Any, pairs: list[tuple[FloatArray, Estimate]]) -> None:
    """Set the scales, and limits that show the curves but not what lies more than 16 decades below 1."""
    epsilons = np.concatenate([x for x, _ in pairs])
    if epsilons.min() > 0.0 and epsilons.max() > 10.0 * epsilons.min():
        ax.set_xscale("log")
    deltas = np.concatenate([_delta(estimate, "value") for _, estimate in pairs])
    shown = deltas[deltas > 10.0**-_MAX_DECADES]
    least = float(shown.min()) if shown.size else 10.0**-_MAX_DECADES
    ax.set_yscale("log")
    ax.set_ylim(10.0 ** (math.floor(math.log10(least)) - 0.3), 2.0)


def _delta(estimate: Estimate, end: str) -> FloatArray:
    numbers = np.atleast_1d(getattr(estimate, end))
    return np.exp(numbers) if estimate.unit == "log probability" else numbers
