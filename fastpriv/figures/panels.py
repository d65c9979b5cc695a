"""The panels of an assessment: each takes an ``Assessment`` and an ``ax`` and returns the ``ax``.

A noise level has one colour in all panels.
"""

# bounds: none - how figures are drawn

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .channel_panels import categories, leakage, levels
from .labels import PLAIN, drawable
from .style import FAINT, INK, axes, checked_report, page, shade, styled

__all__ = ["assessment", "column", "curves", "information"]

_BAR = "#cfd6e4"
# bound: none - how figures are drawn
_FLOOR = 1e-12
_CURVES = 6
_NAME, _SOURCE = 32, 48  # characters that have room
_GRAINS, _AT_ONCE = 64, 4096


def assessment(report: Any) -> Any:
    """Draw column, information and curves of an assessment on one page.

    Parameters
    ----------
    report : Assessment
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
    >>> report = fastpriv.assess([31, 40, 40, 58], sigma="1..100:5", epsilon="0.1..10:21", name="age")
    >>> figure = fastpriv.figures.assessment(report)
    >>> len(figure.axes)
    3
    """
    report = checked_report(report)
    figure = page((11.5, 7.4))
    grid = figure.add_gridspec(
        2, 2, width_ratios=(1.0, 1.45), left=0.068, right=0.975, top=0.83, bottom=0.085, wspace=0.2, hspace=0.42
    )
    noisy = report.parameter == "sigma"
    top = categories if report.labels is not None or report.mechanism == "channel" else column
    (column if noisy else top)(report, figure.add_subplot(grid[0, 0]))
    (information if noisy else leakage)(report, figure.add_subplot(grid[1, 0]))
    (curves if noisy else levels)(report, figure.add_subplot(grid[:, 1]))
    figure.text(
        0.068, 0.95, question(report), fontsize=17, weight="bold", color=INK, **PLAIN,
    )  # fmt: skip
    records = f"{report.records:,} records, " if report.records else ""
    rounding = "" if report.bins is None else f" rounded to {report.bins} bins"
    how = report.noise
    if noisy:
        how = f"each released once as {_mathematical(how)}; range {report.sensitivity:g}"
    figure.text(
        0.068, 0.912,
        f"{drawable(report.source, _SOURCE)}: {records}{len(report.unrounded):,} distinct values{rounding}, {how}",
        fontsize=10.5 if noisy else 9.5, color=INK, **PLAIN,
    )  # fmt: skip
    return figure


def question(report: Any) -> str:
    """The title of a report."""
    name = drawable(report.name, _NAME, weight="bold")
    if report.mechanism == "channel":
        return f"What does one release through “{name}” leak?"
    return f"What does one {'noisy ' if report.parameter == 'sigma' else ''}release of “{name}” leak?"


def column(report: Any, ax: Any = None) -> Any:
    """Draw the histogram of the column, and what it looks like after noise.

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
    >>> report = fastpriv.assess([31, 40, 40, 58], sigma="1..100:5", epsilon=[1])
    >>> fastpriv.figures.column(report).get_ylabel()
    'density'
    """
    ax, report = axes(ax), checked_report(report)
    x, p = report.unrounded.values, report.unrounded.probabilities
    span = float(x[-1] - x[0])
    heights, edges = _histogram(x, p)
    ax.stairs(heights, edges, fill=True, color=_BAR, label="the column")
    noisy = report.parameter == "sigma"
    near = [i for i in _chosen(report) if report.sigma[i] <= 0.3 * span][-3:] if noisy else []
    widest = max((float(report.sigma[i]) for i in near), default=0.0)
    y = np.linspace(x[0] - 2.5 * widest - 0.03 * span, x[-1] + 2.5 * widest + 0.03 * span, 600)
    for i in near:
        sigma = float(report.sigma[i])
        density = _density(y, report.prior, sigma)
        ax.plot(y, density, color=_colour(report, i), lw=1.8, label=rf"released, $\sigma$ = {sigma:g}")
    ax.set(xlim=(y[0], y[-1]), ylim=(0, None), ylabel="density")
    ax.set_xlabel(drawable(report.name, _SOURCE), **PLAIN)
    ax.locator_params(axis="y", nbins=4)
    ax.legend(frameon=False, fontsize=8.5, handlelength=1.4)
    return styled(ax, "The column, before and after noise" if noisy else "The column")


def information(report: Any, ax: Any = None) -> Any:
    """Draw the mutual information of value and release over sigma, between its bounds.

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
    >>> report = fastpriv.assess([31, 40, 40, 58], sigma="1..100:5", epsilon=[1])
    >>> fastpriv.figures.information(report).get_yscale()
    'log'
    """
    ax, report = axes(ax), checked_report(report)
    found = report["mutual_information"].to("bits")
    entropy = report.secret.entropy_bits
    ax.axhline(entropy, color=FAINT, lw=1.0, ls=(0, (4, 3)))
    ax.text(
        report.sigma[-1], entropy * 1.12, f"all there is: {entropy:.3g} bits", ha="right", va="bottom", fontsize=8.5,
        color=FAINT,
    )  # fmt: skip
    ax.fill_between(report.sigma, found.lower, found.upper, color=FAINT, alpha=0.5, lw=0)
    ax.plot(report.sigma, found.value, color=INK, lw=1.4, marker="o", ms=2.6)
    for i in _chosen(report):
        ax.plot(report.sigma[i], found.value[i], "o", ms=7.5, color=_colour(report, i), mec="white", mew=1.0)
    width = float(np.max((found.upper - found.lower) / np.maximum(found.value, 1e-300)))
    ax.text(
        0.03, 0.05, f"bounds ({found.kind}): within {width:.0e} of the value", fontsize=8,
        color=FAINT, transform=ax.transAxes,
    )  # fmt: skip
    low = float(np.min(found.value[found.value > 0], initial=entropy))
    ax.set(xscale="log", yscale="log", xlabel=r"noise $\sigma$, unit of the column", ylabel="bits")
    ax.set_ylim(low / 4.0, entropy * 3.0)
    return styled(ax, "Information in a release, on average")


def curves(report: Any, ax: Any = None) -> Any:
    """Draw delta(epsilon) of LIP (solid) and LDP (dashed) for some noise levels.

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
    >>> report = fastpriv.assess([31, 40, 40, 58], sigma="1..100:5", epsilon="0.1..10:21")
    >>> fastpriv.figures.curves(report).get_xscale()
    'log'
    """
    ax, report = axes(ax), checked_report(report)
    positive = report.epsilon > 0
    epsilon = report.epsilon[positive]
    marker = "o" if epsilon.size < 2 else ""
    levels = []
    for i in _chosen(report):
        colour = _colour(report, i)
        lip, ldp = (report.surfaces[name].upper[i][positive] for name in ("lip_delta", "ldp_delta"))
        levels += ax.plot(epsilon, _drawable(lip), color=colour, lw=2.0, marker=marker, label=f"{report.sigma[i]:g}")
        ax.plot(epsilon, _drawable(ldp), color=colour, lw=1.3, ls=(0, (4, 2)), marker=marker)
    ax.set(xscale="log", yscale="log", xlabel=r"$\varepsilon$ (nats)", ylabel=r"$\delta$ (probability), upper bound")
    ax.set_ylim(_FLOOR, 2.0)
    if epsilon.size > 1:
        ax.set_xlim(epsilon[0], epsilon[-1])
    legend = ax.legend(
        handles=levels, title=r"noise $\sigma$", frameon=False, fontsize=9, title_fontsize=9.5, loc="lower left",
        bbox_to_anchor=(0.0, 0.11),
    )  # fmt: skip
    legend._legend_box.align = "left"
    ax.add_artist(legend)
    styles = [ax.plot([], [], color=INK, lw=lw, ls=ls)[0] for lw, ls in ((2.0, "-"), (1.3, (0, (4, 2))))]
    ax.legend(
        styles, ["LIP: one value against everyone", "LDP: any two values"], frameon=False, fontsize=9, loc="lower left"
    )
    return styled(ax, r"Privacy curves: $\delta$ that remains at each $\varepsilon$")


def _chosen(report: Any) -> list[int]:
    """Noise levels worth a curve: about evenly spaced ratios from 0.3 to 25 standard deviations of the column."""
    deviation = report.secret.deviation
    logs = np.log(report.sigma)
    low, high = np.clip(np.log([0.3 * deviation, 25.0 * deviation]), logs[0], logs[-1])
    return sorted({int(np.argmin(np.abs(logs - goal))) for goal in np.linspace(low, high, _CURVES)})


def _colour(report: Any, index: int) -> Any:
    chosen = _chosen(report)
    return shade(1.0 - chosen.index(index) / max(len(chosen) - 1, 1))


def _density(y: NDArray[np.float64], prior: Any, sigma: float) -> NDArray[np.float64]:
    """Density of a release at ``y``, to the eye: values closer than sigma / 64 are drawn as one."""
    cell = np.floor((prior.values - prior.values[0]) / (sigma / _GRAINS))
    _, of = np.unique(cell, return_inverse=True)
    mass = np.bincount(of, prior.probabilities)
    at = np.bincount(of, prior.probabilities * prior.values) / mass
    found = np.zeros(y.size)
    for i in range(0, at.size, _AT_ONCE):
        part = slice(i, i + _AT_ONCE)
        found += np.exp(-0.5 * ((y[:, None] - at[part]) / sigma) ** 2) @ mass[part]
    return np.asarray(found / (sigma * np.sqrt(2 * np.pi)))


def _drawable(delta: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(delta > _FLOOR * 1e-6, delta, np.nan)


def _histogram(x: NDArray[np.float64], p: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    gaps = np.diff(x)
    if len(x) <= 128 and np.allclose(gaps, np.round(gaps / gaps.min()) * gaps.min()):  # one bar a value on a lattice
        count = round(float(x[-1] - x[0]) / float(gaps.min())) + 1
        if count <= 256:
            edges = x[0] + (np.arange(count + 1) - 0.5) * gaps.min()
            return np.histogram(x, bins=edges, weights=p, density=True)
    return np.histogram(x, bins=min(60, len(x)), weights=p, density=True)


def _mathematical(noise: str) -> str:
    return noise.replace("sigma^2", "σ²")
