"""Curves of delta over epsilon with their bounds: those of the caller, and a composition beside its accountants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.estimate import Estimate
from ..base.numerics import FloatArray, rounded_up
from .style import ALERT, INK, label, legend_below, panel, positive, shade

Pair = tuple[ArrayLike, Estimate]
_LABEL_WIDTH, _TITLE_WIDTH = 40, 60  # characters for which there is room
_MAX_DECADES = 16.0  # of delta that the axis shows: smaller deltas are below the rounding of a probability near 1
_DELTA_UNITS = ("probability", "log probability")  # units of an Estimate of delta
# Dashes of the curves in turn: solid, dashed, dotted, dash-dotted.
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 1.5, 1.2, 1.5)))
# Characters for which there is room on a panel of a composition: of the title, and of the name of an accountant.
_COMPOSED_TITLE_WIDTH, _ACCOUNTANT_WIDTH = 64, 34
_MARKERS = "os^vDP*Xh<>p"  # of the accountants in turn
_MAX_TICKS = 9  # of the axis of delta
# bound: none - an answer this far on the wrong side of the bounds, in nats of log delta, is more than rounding
_ROUNDING = 1e-9


@panel
def profile(
    curves: Estimate | Pair | Sequence[Estimate] | Sequence[Pair], epsilon: ArrayLike | None = None, *,
    labels: Sequence[str] | str | None = None, title: str = "Privacy profile", ax: Any = None,
) -> Any:
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
    for k, (epsilons, estimate) in enumerate(pairs):
        order = np.argsort(epsilons, kind="stable")
        x = epsilons[order]
        colour, dashes = shade(k / max(len(pairs) - 1, 1)), _DASHES[k % len(_DASHES)]
        value, lower, upper = (positive(_delta(estimate, end)[order], 0.0) for end in ("value", "lower", "upper"))
        look = {"color": colour, "ls": dashes, "lw": 1.9, "marker": "o" if x.size < 2 else "", "ms": 5}
        if names is not None:
            text, _ = label(names[k], _LABEL_WIDTH)
            # A label that begins with an underscore would be left out of the legend.
            look["label"] = "\u200b" + text if text.startswith("_") else text
        # Where the lower bound is 0, the space between the bounds reaches the end of the axis.
        least = np.where(np.isnan(lower), np.finfo(np.float64).tiny, lower)
        if x.size < 2:
            ax.errorbar(x, value, [value - np.fmin(least, value), np.fmax(upper, value) - value], capsize=3, **look)
        else:
            ax.fill_between(x, least, upper, color=colour, alpha=0.25, lw=0)
            ax.plot(x, value, **look)
    _scale_axes(ax, pairs)
    if names is not None:
        legend_below(ax, plain=True, handlelength=2.6)
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


@panel
def composed_profile(
    log_delta: Estimate, epsilon: ArrayLike, *, accountants: Sequence[tuple[str, str, ArrayLike]] = (),
    title: str = "Composition", ax: Any = None,
) -> Any:
    """Draw the delta of a composition with its bounds, on an axis of its logarithm without a floor.

    Parameters
    ----------
    log_delta : Estimate
        Natural logarithms of delta, as ``log_delta`` of a composition returns them, one for each epsilon.
    epsilon : array_like of shape (e,)
        The epsilons, at least two, in nats.
    accountants : sequence of (name, side, deltas), optional
        Answers of other accountants at these epsilons. ``side`` is what they state: "upper", "lower" or "estimate".
        A delta that is NaN is not drawn; one on the wrong side of the bounds has a red ring, at the foot of the axis
        where it is not positive.
    title : str
        The title, in any script.

    Returns
    -------
    matplotlib.axes.Axes
        The vertical axis is log10(delta), with ticks written as powers of ten. The legend says how far apart the bounds
        are.

    Raises
    ------
    DomainError
        For an Estimate that is no logarithm of delta, or another side.
    ShapeError
        For epsilons or answers of another shape than the Estimate.
    BackendMissingError
        When matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import GaussianMechanism, figures
    >>> epsilon = np.linspace(0.0, 30.0, 31)
    >>> ax = figures.composed_profile(GaussianMechanism(1.0, 1.0).log_delta(epsilon), epsilon)
    >>> ax.get_ylabel()
    'delta'
    """
    if not isinstance(log_delta, Estimate) or log_delta.unit != "log probability":
        raise DomainError(
            f"log_delta must be an Estimate of logarithms of delta; got {validate.shown(log_delta)}. Pass what "
            "log_delta(epsilon) returned."
        )
    x = validate.vector("epsilon", epsilon, "finite", np.isfinite)
    value, lower, upper = (np.asarray(getattr(log_delta, end)) for end in ("value", "lower", "upper"))
    if x.size < 2 or value.shape != x.shape:
        raise ShapeError(
            f"epsilon must be at least two numbers, one for each log delta; got {x.shape} and {value.shape}. Pass the "
            "epsilons of the curve."
        )
    validate.instance("title", title, str)
    answers = [_accountant(item, x) for item in validate.sequence("accountants", accountants, "(name, side, deltas)")]
    order = np.argsort(x, kind="stable")
    to_powers = 1.0 / math.log(10.0)
    finite = np.isfinite(value)
    least = float(value[finite].min()) * to_powers if finite.any() else -1.0
    floor = least - max(1.0, 0.06 * abs(least))
    band = [np.maximum(part[order] * to_powers, floor) for part in (lower, upper)]
    drawn = np.where(finite, value, np.nan)[order] * to_powers
    ax.fill_between(x[order], *band, color=shade(0.35), alpha=0.35, lw=0, zorder=3)
    ax.plot(x[order], drawn, color=INK, lw=1.8, zorder=4, label=f"certified, bounds {_gap(lower, upper)} apart")
    for k, answer in enumerate(answers):
        _draw_accountant(ax, (k, len(answers)), answer, (x, lower, upper), floor)
    ax.set(xlabel="epsilon (nats)", ylabel="delta", ylim=(floor, 0.0 + 0.02 * abs(floor)))
    _write_powers(ax, floor)
    legend_below(ax, plain=True)
    return label(title, _COMPOSED_TITLE_WIDTH)


def _accountant(accountant: Any, x: FloatArray) -> tuple[str, str, FloatArray]:
    """Name, side and deltas of what an accountant answers at these epsilons."""
    parts: Any = validate.sequence("accountants", accountant, "(name, side, deltas)")
    if len(parts) != 3 or not isinstance(parts[0], str):
        raise DomainError(
            f"accountants must be triples of name, side and deltas; got {validate.shown(accountant)}. Put a single one "
            "in a list."
        )
    name, side, deltas = parts[0], parts[1], np.asarray(parts[2], dtype=float)
    if deltas.shape != x.shape:
        raise ShapeError(
            f"accountants must have one delta for each epsilon; got {deltas.shape} of {name} for {x.shape}. Write NaN "
            "where there is no answer."
        )
    return name, validate.choice("side", side, ("upper", "lower", "estimate")), deltas


def _draw_accountant(
    ax: Any, index: tuple[int, int], answer: tuple[str, str, FloatArray], curve: tuple[FloatArray, ...], floor: float
) -> None:
    """Draw what one of several accountants answers, with rings where that is on the wrong side of the bounds."""
    (k, several), (name, side, deltas), (x, lower, upper) = index, answer, curve
    answered = ~np.isnan(deltas)
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.log10(np.where(deltas > 0.0, deltas, np.nan))  # NaN for what a logarithmic axis does not have
        logs = np.log(np.maximum(deltas, 0.0))
        wrong = (side == "upper") & (logs < lower - _ROUNDING) | (side == "lower") & (logs > upper + _ROUNDING)
    wrong = wrong & answered
    text = label(name, _ACCOUNTANT_WIDTH)[0] + f" ({side})" + (f", wrong side at {wrong.sum()}" if wrong.any() else "")
    colour, dashes = shade(0.1 + 0.9 * k / max(1, several - 1)), {"upper": "-", "lower": "--"}.get(side, ":")
    marker = _MARKERS[k % len(_MARKERS)]
    look = {"color": colour, "ls": dashes, "marker": marker, "ms": 4, "lw": 0.9, "alpha": 0.9, "zorder": 5}
    ax.plot(x[answered], powers[answered], label=text, **look)
    if wrong.any():
        rings = np.maximum(np.nan_to_num(powers[wrong], nan=floor), floor)
        ax.plot(x[wrong], rings, "o", mfc="none", mec=ALERT, ms=9, mew=1.5, zorder=6)


def _gap(lower: FloatArray, upper: FloatArray) -> str:
    """How far apart the bounds are at most, as a relative difference of deltas."""
    with np.errstate(invalid="ignore"):
        widths = (upper - lower)[np.isfinite(upper)]
    widest = float(np.max(widths, initial=0.0))
    if not math.isfinite(widest):
        return "reach 0: any factor"
    if widest < 1.0:
        return f"at most {rounded_up(math.expm1(widest), 1)}"
    return f"at most a factor of {rounded_up(math.exp(widest), 2)}"


def _write_powers(ax: Any, floor: float) -> None:
    """Ticks at whole powers of ten."""
    step = max(1, math.ceil(-floor / _MAX_TICKS))
    step = next(s * 10**e for e in range(9) for s in (1, 2, 5) if s * 10**e >= step)
    ticks = np.arange(0, math.floor(floor) - 1, -step)
    ticks = ticks[ticks >= floor]
    ax.set_yticks(ticks, [f"$10^{{{tick:d}}}$" if tick else "1" for tick in ticks])
