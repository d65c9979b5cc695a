"""The panels of an assessment and of a comparison, and the figures that combine them.

A panel takes an ``Assessment`` and an ``ax`` and returns the ``ax``. A row of the grid has one colour in all panels.
"""

# bounds: none - how figures are drawn

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..base import parallel, validate
from ..base.numerics import FloatArray, rounded_outward, rounded_up
from .style import BAR, FAINT, INK, check_result, label, legend_below, new_figure, panel, positive, shade

_PAGE_WIDTH = 11.5  # inches
_MAX_CATEGORIES = 12  # that have a bar of their own; the others share one
_MAX_CURVES = 6  # rows of the grid that have a curve
# bound: none - the least numbers that logarithmic axes show
_DELTA_FLOOR, _CHANNEL_DELTA_FLOOR, _BITS_FLOOR = 1e-12, 1e-5, 1e-5
# Characters for which there is room: of a category, of a column in a title and in the question, of a source.
_CATEGORY_WIDTH, _TITLE_WIDTH, _QUESTION_WIDTH, _SOURCE_WIDTH, _SWEEP_SOURCE_WIDTH = 24, 16, 32, 48, 60
_DENSITY_POINTS = 600  # points at which a density is drawn: enough for a smooth line
# Values closer than this part of sigma are drawn as one point mass, so many at a time.
_SIGMAS_PER_CELL, _CELLS_PER_BATCH = 64, 4096
_SPIKE = 50.0  # bars this many times as high as half of them hide these on a linear axis
_DASHES, _LONG_DASHES = (0, (4, 2)), (0, (4, 3))
# Label, line width in points, dashes and filling of markers of each curve.
_CURVE_STYLES: Mapping[str, tuple[str, float, Any, str | None]] = {
    "lip_delta": ("LIP: one value against everyone", 2.0, "-", None),
    "ldp_delta": ("LDP: any two values", 1.3, _DASHES, "white"),
    "dp_delta": ("DP: any two neighbours", 1.3, _DASHES, "white"),
}
_MARKERS = "os^Dv<>PX"  # markers of the mechanisms of a comparison, repeated after the ninth
_LEAKAGE_LINES = (  # quantity, label, line style, position in the palette
    ("maximal_leakage", "maximal leakage", "-", 0.85),
    ("capacity", "capacity", "-", 0.6),
    ("mutual_information", "mutual information", "-", 0.0),
    ("min_entropy_leakage", "min-entropy leakage", "--", 0.3),
)
_SWEEP_QUANTITIES = (  # quantity, unit, title
    ("mutual_information", "bits", "information on average"),
    ("abp_max", "", "ABP, worst value"),
    ("bayes_vulnerability", "probability", "best guess is right"),
)


def assessment(report: Any) -> Any:
    """Draw column, information and curves of an assessment in one figure; of a statistic, its accuracy and curves.

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
    >>> figure = fastpriv.report.assessment(report)
    >>> len(figure.axes)
    3
    """
    report = _check_report(report)
    figure = new_figure((_PAGE_WIDTH, 7.8))
    figure.set_layout_engine("constrained", rect=(0.01, 0.01, 0.975, 0.87), hspace=0.06, wspace=0.04)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.0, 1.45))
    cells = (grid[0, 0], grid[1, 0], grid[:, 1]) if report.statistic is None else (grid[:, 0], grid[:, 1])
    for cell, (_, draw) in zip(cells, panels_of_assessment(report), strict=True):
        draw(report, figure.add_subplot(cell))
    noisy = report.parameter == "sigma"
    name, font = label(report.name, _QUESTION_WIDTH, "bold")
    release = "release through" if report.mechanism == "channel" else f"{'noisy ' if noisy else ''}release of"
    figure.text(0.016, 0.95, f"What does one {release} “{name}” leak?", fontsize=17, weight="bold", color=INK, **font)
    records = f"{report.records:,} records, " if report.records else ""
    rounding = "" if report.bins is None else f" rounded to {report.bins} bins"
    noise = report.noise
    if noisy:
        span = "data range" if report.sensitivity_source == "data" else "range"
        text = rounded_up(report.sensitivity, 6)
        noise = f"each released once as {noise.replace('sigma^2', 'σ²')}; {span} {text}"
    source, font = label(report.source, _SOURCE_WIDTH)
    about = f"{records}{len(report.unrounded):,} distinct values{rounding}"
    if report.statistic is not None:
        about, noise = report.statistic.description, report.mechanism
    text = f"{source}: {about}, {noise}"
    figure.text(0.016, 0.912, text, fontsize=10.5 if noisy else 9.5, color=INK, **font)
    return figure


def panels_of_assessment(report: Any) -> list[tuple[str, Callable[[Any, Any], Any]]]:
    """Return the three panels of an assessment, or the two of a statistic.

    Parameters
    ----------
    report : Assessment
        What to draw.

    Returns
    -------
    list of pair of str and function
        What each panel shows, in words, and the function of the assessment, and of axes or None, that draws it.

    Examples
    --------
    >>> import fastpriv
    >>> report = fastpriv.assess([31, 40, 40, 58], sigma="1..100:5", epsilon=[1])
    >>> [draw.__name__ for _, draw in fastpriv.report.panels_of_assessment(report)]
    ['column', 'information', 'curves']
    """
    report = _check_report(report)
    if report.statistic is not None:
        return [
            ("Half-width of the interval that holds 95 % of the noise, over the epsilon that it gives", accuracy),
            ("Curves of delta over epsilon, LIP and DP, for some levels of noise", curves),
        ]
    if report.labels is not None or report.mechanism == "channel":
        first = "Bar chart of the probability of each value", categories
    else:
        first = "Histogram of the column and of noisy releases of it", column
    if report.parameter == "sigma":
        second = "Mutual information of a release over the standard deviation of the noise", information
        third = "Curves of delta over epsilon, LIP and LDP, for some standard deviations of the noise", curves
    else:
        over = "over the level of the mechanism" if report.parameter else "of the channel"
        second = f"Mutual information, capacity and leakage {over}, in bits", leakage
        third = "Curves of delta over epsilon, LIP and LDP" + (", for some levels" if report.parameter else ""), curves
    return [first, second, third]


def _assessment_panel(draw: Callable[..., Any]) -> Callable[..., Any]:
    """Make a panel of a function of an assessment and axes, which checks that it is one."""

    @functools.wraps(draw)
    def checked(report: Any, ax: Any = None) -> Any:
        return draw(_check_report(report), ax)

    return panel(checked)


@_assessment_panel
def column(report: Any, ax: Any = None) -> Any:
    """Draw the histogram of the column, and what it looks like after noise.

    Parameters
    ----------
    report : Assessment
        What to draw.

    Examples
    --------
    >>> import fastpriv
    >>> report = fastpriv.assess([31, 40, 40, 58], sigma="1..100:5", epsilon=[1])
    >>> fastpriv.report.column(report).get_ylabel()
    'density'
    """
    x, p = report.unrounded.values, report.unrounded.probabilities
    span = float(x[-1] - x[0])
    heights, edges = _histogram(x, p)
    ax.stairs(heights, edges, fill=True, color=BAR, label="the column")
    noisy = report.parameter == "sigma"
    rows = _shown_rows(report) if noisy else []
    shown = [i for i in rows if report.sigma[i] <= 0.3 * span][-3:]
    widest = max((float(report.sigma[i]) for i in shown), default=0.0)
    y = np.linspace(x[0] - 2.5 * widest - 0.03 * span, x[-1] + 2.5 * widest + 0.03 * span, _DENSITY_POINTS)
    for i in shown:
        sigma = float(report.sigma[i])
        density = _density(y, report.prior, sigma)
        ax.plot(y, density, color=_row_colour(report, rows, i), lw=1.8, label=rf"released, $\sigma$ = {sigma:g}")
    ax.set(xlim=(min(y[0], edges[0]), max(y[-1], edges[-1])), ylim=(0, None), ylabel="density")
    name, font = label(report.name, _SOURCE_WIDTH)
    ax.set_xlabel(name, **font)
    ax.locator_params(nbins=4)
    bars = heights[heights > 0]
    if bars.max() > _SPIKE * np.median(bars):
        ax.set(yscale="log", ylim=(0.5 * bars.min(), 2.0 * bars.max()))
    if shown:
        legend_below(ax)
    return "The column, before and after noise" if noisy else "The column"


@_assessment_panel
def categories(report: Any, ax: Any = None) -> Any:
    """Draw how likely the values are, the likeliest first.

    Parameters
    ----------
    report : Assessment
        What to draw.

    Examples
    --------
    >>> import fastpriv
    >>> report = fastpriv.assess(["nurse", "nurse", "clerk"], mechanism="rr", level=[1.0], epsilon=[1.0])
    >>> [text.get_text() for text in fastpriv.report.categories(report).texts]
    ['nurse', 'clerk']
    """
    p = report.prior.probabilities
    prefix = "input " if report.mechanism == "channel" else ""
    names = report.labels or (None if prefix else report.secret.texts)
    names = names or tuple(f"{prefix}{repr(x).removesuffix('.0')}" for x in report.prior.values.tolist())
    order = np.argsort(-p, kind="stable")
    shown, remainder = order[:_MAX_CATEGORIES], order[_MAX_CATEGORIES:]
    labels = [label(names[i], _CATEGORY_WIDTH) for i in shown]
    heights = p[shown].tolist()
    if remainder.size:
        labels.append(label(f"{remainder.size} others"))
        heights.append(float(p[remainder].sum()))
    ax.barh(range(len(labels)), heights, color=BAR, height=0.8)
    size = 8 if len(labels) > 9 else 9
    for row, (name, font) in enumerate(labels):
        ax.text(0.01 * max(heights), row, name, va="center", fontsize=size, color=INK, **font)
    ax.invert_yaxis()
    ax.set(xlabel="share of the records" if report.records else "probability", xlim=(0, None), yticks=[])
    return f"The prior: {len(p):,} inputs" if prefix else f"The column: {len(p):,} values"


@_assessment_panel
def information(report: Any, ax: Any = None) -> Any:
    """Draw the mutual information of value and release over sigma, between its bounds, or as a bar at one sigma.

    Parameters
    ----------
    report : Assessment
        What to draw.

    Examples
    --------
    >>> import fastpriv
    >>> report = fastpriv.assess([31, 40, 40, 58], sigma="1..100:5", epsilon=[1])
    >>> fastpriv.report.information(report).get_yscale()
    'log'
    """
    bits = report["mutual_information"].to("bits")
    entropy = report.secret.entropy_bits
    if len(report.sigma) == 1:
        _draw_bars(ax, [("all there is", entropy), ("a release", float(bits.upper[0]))])
        return rf"Information in a release at $\sigma$ = {report.sigma[0]:g}"
    ax.axhline(entropy, color=FAINT, lw=1.0, ls=_LONG_DASHES)
    ax.text(
        report.sigma[-1], entropy * 1.12, f"all there is: {entropy:.3g} bits", ha="right", va="bottom", fontsize=8.5,
        color=FAINT,
    )
    ax.fill_between(report.sigma, bits.lower, bits.upper, color=FAINT, alpha=0.5, lw=0)
    ax.plot(report.sigma, bits.value, color=INK, lw=1.4, marker="o", ms=2.6)
    rows = _shown_rows(report)
    for i in rows:
        ax.plot(report.sigma[i], bits.value[i], "o", ms=7.5, color=_row_colour(report, rows, i), mec="white", mew=1.0)
    width = rounded_outward(float(np.max(bits.width / np.maximum(bits.value, 1e-300))), ".0e", below=False)
    ax.text(
        0.03, 0.05, f"bounds ({bits.kind}): within {width} of the value", fontsize=8, color=FAINT,
        transform=ax.transAxes,
    )
    least = float(np.min(bits.value[bits.value > 0], initial=entropy))
    ax.set(xscale="log", yscale="log", xlabel=r"noise $\sigma$, unit of the column", ylabel="bits")
    ax.set_ylim(least / 4.0, entropy * 3.0)
    return "Information in a release, on average"


@_assessment_panel
def accuracy(report: Any, ax: Any = None) -> Any:
    """Draw how far the noise moves a statistic in 95 % of its releases, over the epsilon that it gives.

    Parameters
    ----------
    report : Assessment
        Of a statistic.

    Examples
    --------
    >>> import fastpriv
    >>> report = fastpriv.assess([31, 40, 40, 58], statistic="count", sigma="1..100:5", epsilon=[1])
    >>> fastpriv.report.accuracy(report).get_xscale()
    'log'
    """
    epsilon, width = report["dp_epsilon"].upper, report["noise_half_width"].upper
    epsilon = np.where(epsilon > 0, epsilon, np.nan)  # an axis of logarithms has no 0
    ax.plot(epsilon, width, color=INK, lw=1.4, marker="o", ms=2.8)
    rows = _shown_rows(report)
    for i in rows:
        ax.plot(epsilon[i : i + 1], width[i : i + 1], "o", ms=7.5, color=_row_colour(report, rows, i), mec="white")
    ax.set(xscale="log", yscale="log", xlabel=r"DP $\varepsilon$ at $\delta = 10^{-5}$ (nats)")
    ax.set_ylabel("95 % of the noise within, unit of the answer")
    return "Accuracy and privacy"


@_assessment_panel
def leakage(report: Any, ax: Any = None) -> Any:
    """Draw information, capacity and the leakage of guesses, in bits, over the level, or as bars for one channel.

    Parameters
    ----------
    report : Assessment
        What to draw.

    Examples
    --------
    >>> import fastpriv
    >>> report = fastpriv.assess(["nurse", "nurse", "clerk"], mechanism="rr", level=[0.5, 1.0], epsilon=[1.0])
    >>> fastpriv.report.leakage(report).get_yscale()
    'log'
    """
    bits = {name: report[name].to("bits").upper for name, *_ in _LEAKAGE_LINES}
    if len(report.grid) == 1:
        _draw_bars(ax, [(text, float(bits[name][0])) for name, text, *_ in _LEAKAGE_LINES])
        at_level = rf" at level {report.grid[0]:g}" if report.parameter else ""
        return f"What a release tells{at_level}"
    for name, text, dashes, position in _LEAKAGE_LINES:
        drawn = positive(bits[name], _BITS_FLOOR)
        ax.plot(report.grid, drawn, dashes, color=shade(position), lw=1.8, marker="o", ms=2.8, label=text)
    least = min(float(np.min(bits[name])) for name in ("mutual_information", "capacity"))
    ax.set(xscale="log", yscale="log", ylabel="bits, upper bound")
    ax.set_xlabel(r"level $\varepsilon$ of the mechanism (nats)")
    ax.set_ylim(bottom=max(0.5 * least, _BITS_FLOOR))
    legend_below(ax)
    return "What a release tells"


@_assessment_panel
def curves(report: Any, ax: Any = None) -> Any:
    """Draw delta(epsilon) of LIP (solid) and LDP (dashed) for some noise levels or levels of the mechanism.

    Parameters
    ----------
    report : Assessment
        What to draw.

    Examples
    --------
    >>> import fastpriv
    >>> report = fastpriv.assess([31, 40, 40, 58], sigma="1..100:5", epsilon="0.1..10:21")
    >>> fastpriv.report.curves(report).get_xscale()
    'log'
    """
    noisy = report.parameter == "sigma"
    floor = _DELTA_FLOOR if noisy else _CHANNEL_DELTA_FLOOR
    epsilon = _draw_delta_curves(ax, report, floor, r"noise $\sigma$" if noisy else report.parameter)
    least, last = floor, epsilon[-1:]
    if not noisy:  # the axes end where curves do: above the pure LDP epsilon all are 0
        names = list(_curve_styles(report))
        smallest = float(np.min(report.quantities[names[0]].upper[:, report.epsilon > 0], initial=1.0))
        least = max(floor, 10.0 ** (math.floor(math.log10(max(smallest, floor))) - 0.5))
        largest = 2.0 * float(np.max(report.quantities[f"pure_{names[-1].replace('delta', 'epsilon')}"].upper))
        last = np.minimum(last, np.maximum(largest, 2.0 * epsilon[:1]))
    ax.set_ylim(least, 2.0)
    if epsilon.size > 1:
        ax.set_xlim(epsilon[0], last[0])
    return r"Privacy curves: $\delta$ that remains at each $\varepsilon$"


def comparison(report: Any) -> Any:
    """Draw a comparison: for each column, what the mechanisms leak over the LDP epsilon that they give.

    Parameters
    ----------
    report : Comparison
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
    >>> comparison = fastpriv.assess({"job": jobs}, mechanism=["rr", "oue"], level="0.5..4:5", epsilon=[1])
    >>> len(fastpriv.report.comparison(comparison).axes)
    3
    """
    names = list(dict.fromkeys(assessment.name for assessment in _check_report(report, "Comparison")))
    height = 1.25 + 2.75 * len(names)
    figure = new_figure((_PAGE_WIDTH, height))
    grid = figure.subplots(len(names), len(_SWEEP_QUANTITIES), squeeze=False)
    figure.set_layout_engine("constrained", rect=(0.01, 0.01, 0.975, 0.99 - 0.9 / height), hspace=0.08, wspace=0.06)
    for row, name in zip(grid, names, strict=True):
        for ax, (_, draw) in zip(row, panels_of_comparison(report, name), strict=True):
            draw(ax).set_xlabel("")
            if (legend := ax.get_legend()) is not None:  # the figure has one for all
                legend.remove()
    for ax in grid[-1]:
        ax.set_xlabel(r"LDP $\varepsilon$ at $\delta = 10^{-5}$ (nats)")
    handles = dict(zip(*grid[0][0].get_legend_handles_labels()[::-1], strict=True))
    figure.legend(
        handles.values(), handles.keys(), loc="upper right", bbox_to_anchor=(0.985, 1 - 0.42 / height),
        ncols=len(handles), frameon=False, fontsize=9.5,
    )
    figure.text(0.016, 1 - 0.42 / height, "What does one release leak?", fontsize=17, weight="bold", color=INK)
    source, font = label(", ".join(dict.fromkeys(assessment.source for assessment in report)), _SWEEP_SOURCE_WIDTH)
    text = f"{source}; upper bounds, hollow where no more than a bound is known"
    figure.text(0.016, 1 - 0.7 / height, text, fontsize=10.5, color=INK, **font)
    return figure


def panels_of_comparison(report: Any, column_name: str) -> list[tuple[str, Callable[..., Any]]]:
    """Return the three panels of one column of a comparison.

    Parameters
    ----------
    report : Comparison
        What to draw.
    column_name : str
        Name of the column.

    Returns
    -------
    list of pair of str and function
        What each panel shows, in words, and the function of axes or None that draws it.

    Examples
    --------
    >>> import fastpriv
    >>> found = fastpriv.assess({"job": ["nurse", "clerk", "judge"]}, mechanism=["rr", "oue"], level=[1.0], epsilon=[1])
    >>> len(fastpriv.report.panels_of_comparison(found, "job"))
    3
    """
    report = _check_report(report, "Comparison")
    validate.choice("column_name", column_name, tuple(dict.fromkeys(assessment.name for assessment in report)))
    mechanisms = list(dict.fromkeys(assessment.mechanism for assessment in report))
    assessments = [assessment for assessment in report if assessment.name == column_name]
    name, font = label(column_name, _TITLE_WIDTH)

    def panel_of(quantity: str, unit: str, title: str) -> tuple[str, Callable[..., Any]]:
        @panel
        def draw(ax: Any = None) -> Any:
            for assessment in assessments:
                if quantity in assessment.quantities:
                    index = mechanisms.index(assessment.mechanism)
                    _draw_comparison_line(ax, assessment, quantity, unit, index, len(mechanisms))
            if quantity == "bayes_vulnerability":
                prior_vulnerability = float(assessments[0].prior.probabilities.max())
                ax.axhline(prior_vulnerability, color=FAINT, lw=1.0, ls=_LONG_DASHES)
                ax.text(0.99, prior_vulnerability, "without a release", color=FAINT, fontsize=8, ha="right", va="top",
                        transform=ax.get_yaxis_transform())
                ax.margins(y=0.09)
            else:
                ax.set_yscale("log")
            ax.set(xscale="log", xlabel=r"LDP $\varepsilon$ at $\delta = 10^{-5}$ (nats)", ylabel=unit)
            if len(mechanisms) > 1:
                legend_below(ax)
            return f"{name}: {title}", font

        return f"{column_name}: {title} over the LDP epsilon at delta = 1e-5, one line a mechanism", draw

    return [panel_of(*quantity) for quantity in _SWEEP_QUANTITIES]


def _check_report(report: Any, wanted: str = "Assessment") -> Any:
    of = "one column and one mechanism" if wanted == "Assessment" else "several columns or mechanisms"
    return check_result("report", report, wanted, f"fastpriv.assess returns for {of}")


def _curve_styles(report: Any) -> dict[str, tuple[str, float, Any, str | None]]:
    """Return the curves of an assessment and their styles: LIP first where it is known, then LDP or DP."""
    return {name: style for name, style in _CURVE_STYLES.items() if name in report.quantities}


def _draw_delta_curves(ax: Any, report: Any, floor: float, legend_title: str) -> FloatArray:
    """Draw the curves of some rows with a legend; return the epsilons that a logarithmic axis shows.

    A curve that falls to 0 is drawn down to below the floor of the axis.
    """
    shown = report.epsilon > 0
    epsilon: FloatArray = report.epsilon[shown]
    marker = "o" if epsilon.size < 2 else ""
    rows, curve_styles = _shown_rows(report), _curve_styles(report)
    handles: list[Any] = []
    for i in rows:
        colour, text = _row_colour(report, rows, i), f"{report.grid[i]:g}" if report.parameter else ""
        for name, (_, lw, dashes, fill) in curve_styles.items():
            delta = np.maximum(report.quantities[name].upper[i][shown], 1e-3 * floor)
            lines = ax.plot(epsilon, delta, color=colour, lw=lw, ls=dashes, marker=marker, mfc=fill, label=text)
            handles += lines if name == next(iter(curve_styles)) else []
    ax.set(xscale="log", yscale="log", xlabel=r"$\varepsilon$ (nats)", ylabel=r"$\delta$ (probability), upper bound")
    styles = [
        ax.plot([], [], color=INK, lw=lw, ls=dashes, marker=marker, mfc=fill, label=text)[0]
        for text, lw, dashes, fill in curve_styles.values()
    ]
    if max(float(np.max(line.get_ydata(), initial=0.0)) for line in ax.lines) < floor:
        ax.text(0.5, 0.6, rf"$\delta$ is below {floor:g} at all of these $\varepsilon$", transform=ax.transAxes,
                ha="center", fontsize=10, color=FAINT)
    handles = [*handles, *styles] if legend_title else styles
    legend_below(ax, handles=handles, title=legend_title or None)
    return epsilon


def _draw_bars(ax: Any, bars: list[tuple[str, float]]) -> None:
    """Draw upper bounds of one release in bits, with their names and numbers."""
    heights = [number for _, number in bars]
    ax.barh(range(len(bars)), heights, color=BAR, height=0.7)
    for row, (text, number) in enumerate(bars):
        ax.text(0.01 * max(heights), row, f"{text}: {rounded_up(number)}", va="center", fontsize=9, color=INK)
    ax.set(xlabel="bits, upper bound", xlim=(0, None), yticks=[])


def _draw_comparison_line(ax: Any, assessment: Any, quantity: str, unit: str, index: int, count: int) -> None:
    """Draw the upper bound of a quantity under one mechanism; markers are hollow where only bounds are known."""
    x, estimate = assessment.quantities["ldp_epsilon"].upper, assessment[quantity]
    y = (estimate.to("bits") if unit == "bits" else estimate).upper
    shown = np.isfinite(x) & (x > 0) & np.isfinite(y) & (y > 0)
    order = np.argsort(x[shown], kind="stable")
    colour, marker = shade(index / max(count - 1, 1)), _MARKERS[index % len(_MARKERS)]
    ax.plot(x[shown][order], y[shown][order], color=colour, lw=1.6, marker=marker, ms=4.2, label=assessment.mechanism)
    bound_only = shown & np.array([assessment.quantities[quantity].is_bound_only(i) for i in range(len(x))])
    ax.plot(x[bound_only], y[bound_only], color=colour, lw=0, marker=marker, ms=4.2, mfc="white")


def _shown_rows(report: Any) -> list[int]:
    """Return the rows with a curve: of noise about equal ratios from 0.3 to 25 standard deviations of the column."""
    count, deviation = len(report.grid), report.secret.deviation
    if report.parameter != "sigma":
        return sorted({round(i) for i in np.linspace(0, count - 1, min(_MAX_CURVES, count))})
    logs = np.log(report.sigma)
    low, high = np.clip(np.log([0.3 * deviation, 25.0 * deviation]), logs[0], logs[-1])
    return sorted({int(np.argmin(np.abs(logs - target))) for target in np.linspace(low, high, _MAX_CURVES)})


def _row_colour(report: Any, rows: list[int], i: int) -> Any:
    """Return the colour of a row: the more noise, or the lower the level, the darker."""
    position = rows.index(i) / max(len(rows) - 1, 1)
    return shade(1.0 - position if report.parameter == "sigma" else position)


def _density(y: FloatArray, prior: Any, sigma: float) -> FloatArray:
    """Return the density of a release at ``y``, to the eye: values within a cell of sigma / 64 are drawn as one."""
    cell = np.floor((prior.values - prior.values[0]) / (sigma / _SIGMAS_PER_CELL))
    _, inverse = np.unique(cell, return_inverse=True)
    mass = np.bincount(inverse, prior.probabilities)
    centres = np.bincount(inverse, prior.probabilities * prior.values) / mass
    density = np.zeros(y.size)
    for batch in parallel.blocks(centres.size, _CELLS_PER_BATCH):
        density += np.exp(-0.5 * ((y[:, None] - centres[batch]) / sigma) ** 2) @ mass[batch]
    return np.asarray(density / (sigma * np.sqrt(2 * np.pi)))


def _histogram(x: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return heights and edges of a histogram, with one bar a value where the values lie on a lattice."""
    gaps = np.diff(x)
    bins: int | FloatArray = min(60, len(x))
    if len(x) <= 128 and np.allclose(gaps, np.round(gaps / gaps.min()) * gaps.min()):
        count = round(float(x[-1] - x[0]) / float(gaps.min())) + 1
        if count <= 256:
            bins = x[0] + (np.arange(count + 1) - 0.5) * gaps.min()
    heights, edges = np.histogram(x, bins=bins, weights=p, density=True)
    return heights, edges
