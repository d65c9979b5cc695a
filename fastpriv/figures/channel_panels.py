"""The panels of an assessment of a channel, and the page of a sweep; panels take a report and an ``ax``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .labels import PLAIN, drawable
from .style import FAINT, INK, axes, checked_report, page, shade, styled

__all__ = ["categories", "leakage", "levels", "sweep"]

_BAR = "#cfd6e4"
_SHOWN = 12  # categories that have a line of their own
_CURVES = 6
_FLOOR = 1e-5
_LABEL, _NAME, _SOURCE = 24, 16, 60  # characters that have room


def categories(report: Any, ax: Any = None) -> Any:
    """Draw how likely the values are, the likeliest first.

    Parameters
    ----------
    report : Assessment
        What to draw.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure of its own.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import fastpriv
    >>> report = fastpriv.assess(["nurse", "nurse", "clerk"], mechanism="rr", level=[1.0], epsilon=[1.0])
    >>> [text.get_text() for text in fastpriv.figures.categories(report).texts]
    ['nurse', 'clerk']
    """
    ax, report = axes(ax), checked_report(report)
    p = report.prior.probabilities
    lead = "input " if report.mechanism == "channel" else ""
    own = report.labels or (None if lead else report.secret.texts)
    labels = own or tuple(f"{lead}{repr(x).removesuffix('.0')}" for x in report.prior.values.tolist())
    order = np.argsort(-p, kind="stable")
    shown, rest = order[:_SHOWN], order[_SHOWN:]
    names = [drawable(labels[i], _LABEL) for i in shown]
    heights = p[shown].tolist()
    if rest.size:
        names.append(f"{rest.size} others")
        heights.append(float(p[rest].sum()))
    ax.barh(range(len(names)), heights, color=_BAR, height=0.8)
    for place, name in enumerate(names):
        ax.text(0.01 * max(heights), place, name, va="center", fontsize=8 if len(names) > 9 else 9, color=INK, **PLAIN)
    ax.invert_yaxis()
    ax.set(xlabel="share of the records" if report.records else "probability", xlim=(0, None), yticks=[])
    return styled(ax, f"The prior: {len(p):,} inputs" if lead else f"The column: {len(p):,} values")


def leakage(report: Any, ax: Any = None) -> Any:
    """Draw information, capacity and the leakage of guesses, in bits, over the level, or as bars for one channel.

    Parameters
    ----------
    report : Assessment
        What to draw.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure of its own.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import fastpriv
    >>> report = fastpriv.assess(["nurse", "nurse", "clerk"], mechanism="rr", level=[0.5, 1.0], epsilon=[1.0])
    >>> fastpriv.figures.leakage(report).get_yscale()
    'log'
    """
    ax, report = axes(ax), checked_report(report)
    lines = (
        ("maximal_leakage", "maximal leakage", "-", 0.85), ("capacity", "capacity", "-", 0.6),
        ("mutual_information", "mutual information", "-", 0.0),
        ("min_entropy_leakage", "min-entropy leakage", "--", 0.3),
    )  # fmt: skip
    if not report.parameter:
        bits = [float(report[name].to("bits").upper[0]) for name, *_ in lines]
        ax.barh(range(len(bits)), bits, color=_BAR, height=0.7)
        for at, ((_, label, *_), bit) in enumerate(zip(lines, bits, strict=True)):
            ax.text(0.01 * max(bits), at, f"{label}: {bit:.3g}", va="center", fontsize=9, color=INK)
        ax.set(xlabel="bits, upper bound", xlim=(0, None), yticks=[])
        return styled(ax, "What a release tells")
    for name, label, style, place in lines:
        upper = report[name].to("bits").upper
        drawn = np.where(upper > _FLOOR, upper, np.nan)
        ax.plot(report.grid, drawn, style, color=shade(place), lw=1.8, marker="o", ms=2.8, label=label)
    low = min(float(np.min(report[name].to("bits").upper)) for name in ("mutual_information", "capacity"))
    ax.set(xscale="log", yscale="log", xlabel=_level(report), ylabel="bits, upper bound")
    ax.set_ylim(bottom=max(0.5 * low, _FLOOR))
    ax.legend(frameon=False, fontsize=8.5, loc="lower right")
    return styled(ax, "What a release tells")


def levels(report: Any, ax: Any = None) -> Any:
    """Draw delta(epsilon) of LIP (solid) and LDP (dashed) for some levels.

    Parameters
    ----------
    report : Assessment
        What to draw.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure of its own.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import fastpriv
    >>> report = fastpriv.assess(["nurse", "nurse", "clerk"], mechanism="rr", level=[0.5, 1.0], epsilon="0.1..2:9")
    >>> fastpriv.figures.levels(report).get_xscale()
    'log'
    """
    ax, report = axes(ax), checked_report(report)
    positive = report.epsilon > 0
    epsilon = report.epsilon[positive]
    chosen = sorted({round(i) for i in np.linspace(0, len(report.grid) - 1, min(_CURVES, len(report.grid)))})
    handles = []
    for place, i in enumerate(chosen):
        colour = shade(place / max(len(chosen) - 1, 1))
        lip, ldp = (report.surfaces[name].upper[i][positive] for name in ("lip_delta", "ldp_delta"))
        lip, ldp = (np.maximum(curve, 1e-3 * _FLOOR) for curve in (lip, ldp))
        label = f"{report.grid[i]:g}" if report.parameter else ""
        handles += ax.plot(epsilon, lip, color=colour, lw=2.0, marker="o" if epsilon.size < 2 else "", label=label)
        ax.plot(epsilon, ldp, color=colour, lw=1.3, ls=(0, (4, 2)))
    ax.set(xscale="log", yscale="log", xlabel=r"$\varepsilon$ (nats)", ylabel=r"$\delta$ (probability), upper bound")
    least = float(np.min(report.surfaces["lip_delta"].upper[:, positive], initial=1.0))
    ax.set_ylim(max(_FLOOR, 10.0 ** (math.floor(math.log10(max(least, _FLOOR))) - 0.5)), 2.0)
    reach = float(np.max(report.surfaces["pure_ldp_epsilon"].upper))
    if epsilon.size > 1:
        ax.set_xlim(epsilon[0], min(epsilon[-1], max(2.0 * reach, 2.0 * float(epsilon[0]))))
    styles = [ax.plot([], [], color=INK, lw=lw, ls=ls)[0] for lw, ls in ((2.0, "-"), (1.3, (0, (4, 2))))]
    kinds = ax.legend(styles, ["LIP: one value against everyone", "LDP: any two values"], fontsize=9, edgecolor="none",
                      framealpha=0.9, loc="lower left")  # fmt: skip
    if report.parameter:
        ax.add_artist(kinds)
        legend = ax.legend(handles=handles, title="level", fontsize=9, title_fontsize=9.5, edgecolor="none",
                           framealpha=0.9, loc="lower left", bbox_to_anchor=(0.0, 0.11))  # fmt: skip
        legend._legend_box.align = "left"
    return styled(ax, r"Privacy curves: $\delta$ that remains at each $\varepsilon$")


def sweep(report: Any) -> Any:
    """Draw a sweep: for each column, what the mechanisms leak over the LDP epsilon that they give.

    Parameters
    ----------
    report : Sweep
        What to draw.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    BackendMissingError
        When matplotlib is not installed.

    Examples
    --------
    >>> import fastpriv
    >>> jobs = ["nurse", "nurse", "clerk", "judge"]
    >>> found = fastpriv.sweep({"job": jobs}, mechanism=["rr", "oue"], level="0.5..4:5", epsilon=[1])
    >>> len(fastpriv.figures.sweep(found).axes)
    3
    """
    columns = list(dict.fromkeys(one.name for one in checked_report(report, "sweep")))
    mechanisms = list(dict.fromkeys(one.mechanism for one in report))
    height = 1.25 + 2.75 * len(columns)
    figure = page((11.5, height))
    grid = figure.subplots(len(columns), 3, squeeze=False)
    figure.subplots_adjust(
        left=0.065, right=0.985, top=1 - 1.25 / height, bottom=0.55 / height, wspace=0.24, hspace=0.5
    )
    panels = (
        ("mutual_information", "bits", "information on average"), ("abp_max", "", "ABP, worst value"),
        ("bayes_vulnerability", "probability", "best guess is right"),
    )  # fmt: skip
    for row, name in zip(grid, columns, strict=True):
        own = [one for one in report if one.name == name]
        for ax, (quantity, unit, title) in zip(row, panels, strict=True):
            for one in own:
                if quantity in one.surfaces:
                    place = mechanisms.index(one.mechanism)
                    _line(ax, one, quantity, unit, shade(place / max(len(mechanisms) - 1, 1)), place)
            if quantity == "bayes_vulnerability":
                before = float(own[0].prior.probabilities.max())
                ax.axhline(before, color=FAINT, lw=1.0, ls=(0, (4, 3)))
                ax.text(0.99, before, "without a release", color=FAINT, fontsize=8, ha="right", va="top",
                        transform=ax.get_yaxis_transform())  # fmt: skip
                ax.margins(y=0.09)
            else:
                ax.set_yscale("log")
                _whole_powers(ax)
            ax.set(xscale="log", ylabel=unit)
            _plain_ticks(ax)
            styled(ax, f"{drawable(name, _NAME)}: {title}", **PLAIN)
    for ax in grid[-1]:
        ax.set_xlabel(r"LDP $\varepsilon$ at $\delta = 10^{-5}$ (nats)")
    drawn = dict(zip(*grid[0][0].get_legend_handles_labels()[::-1], strict=True))
    figure.legend(
        drawn.values(), drawn.keys(), loc="upper right", bbox_to_anchor=(0.985, 1 - 0.42 / height), ncols=len(drawn),
        frameon=False, fontsize=9.5,
    )  # fmt: skip
    figure.text(
        0.065, 1 - 0.42 / height, "What does one release leak?", fontsize=17, weight="bold", color=INK,
    )  # fmt: skip
    source = drawable(", ".join(dict.fromkeys(one.source for one in report)), _SOURCE)
    words = f"{source}; upper bounds, hollow where no more than a bound is known"
    figure.text(0.065, 1 - 0.7 / height, words, fontsize=10.5, color=INK, **PLAIN)
    return figure


def _line(ax: Any, one: Any, quantity: str, unit: str, colour: Any, place: int) -> None:
    x, found = one.surfaces["ldp_epsilon"].upper, one[quantity]
    y = (found.to("bits") if unit == "bits" else found).upper
    good = np.isfinite(x) & (x > 0) & np.isfinite(y) & (y > 0)
    order = np.argsort(x[good], kind="stable")
    marker = "os^Dv<>PX"[place % 9]
    ax.plot(x[good][order], y[good][order], color=colour, lw=1.6, marker=marker, ms=4.2, label=one.mechanism)
    alone = good & np.array([one.surfaces[quantity].bound_alone(i) for i in range(len(x))])
    ax.plot(x[alone], y[alone], color=colour, lw=0, marker=marker, ms=4.2, mfc="white")


def _plain_ticks(ax: Any) -> None:
    """0.1, 1, 10 where a power of ten is shown, else 0.5, 1, 2."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = ax.get_xlim()
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0,) if high > 30.0 * low else (1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _whole_powers(ax: Any) -> None:
    """An axis of values that reaches at least one power of ten on either side, and is labelled there alone."""
    from matplotlib.ticker import NullFormatter

    low, high = ax.get_ylim()
    if high < 100.0 * low:
        ax.set_ylim(10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high)))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _level(report: Any) -> str:
    return r"level $\varepsilon$ of the mechanism (nats)" if report.parameter else ""
