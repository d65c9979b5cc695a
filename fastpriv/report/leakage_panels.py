"""Panels of leakage: attacks and exact values over the noise, privacy against accuracy, recovered pictures."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import numpy as np

from ..base import validate
from ..base.errors import DomainError
from ..base.numerics import SQRT_LOG_2
from .style import ALERT, BAR, FAINT, INK, axes_or_new, check_axes, label, new_figure, shade, styled

__all__ = ["accuracy_against_privacy", "estimates_against_noise", "leakage_figure", "misses_against_privacy",
           "reconstruction_figure", "scoreboard_figure"]  # fmt: skip

_LEAST_PROBABILITY = 1e-6  # the axis of probabilities ends here at the latest
_NAMED = 16  # protections that have room for their names
_ROOM = 0.05  # of the height of the panel, between two names
_PANEL = (6.6, 4.9)  # inches, of one with protections along its axis
_GAP = 0.45  # between the noise levels and other protections, and between these, in powers of ten
# What is drawn over the noise: title, axis, and whether attacks at random have a range of it.
_QUANTITIES = {
    "c1": ("Average Bayesian privacy", "C1 (0: nothing leaks)", True),
    "recovered": ("Records recovered", "fraction of the batch", False),
    "kappa_3": ("Maximum Bayesian privacy", "kappa_3, nats (0: nothing leaks)", True),
}
_PICTURE = 0.78  # inches, side of a reconstructed picture
_PICTURES = 14  # of a row, the true one first
_TITLE = 0.62  # inches, of the names above pictures
_TITLE_WIDTH = 13  # characters of a line of them


def accuracy_against_privacy(study: Any, ax: Any = None) -> Any:
    """Draw the accuracy of models under each protection over the average Bayesian privacy: attacks and exact values.

    Parameters
    ----------
    study : LeakageStudy
        With ``utility_rounds``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure of its own.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DomainError
        For anything else, or a study without accuracies.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import figures
    >>> from fastpriv.leakage import Protection, SoftmaxRegression, leakage_study
    >>> records, labels = np.random.default_rng(1).random((60, 6)), np.arange(60) % 3
    >>> study = leakage_study(SoftmaxRegression(6, 3), records, labels, [Protection()], pool=20, batch=1, n_models=2,
    ...                       n_attacks=1, utility_rounds=3, rng=1)
    >>> figures.accuracy_against_privacy(study).get_ylabel()
    'accuracy on held-out records'
    """
    outcomes = _checked("study", study, "LeakageStudy", "leakage_study").outcomes
    if outcomes[0].accuracy is None:
        raise DomainError("study must have accuracies; got none. Pass utility_rounds to leakage_study.")
    ax = axes_or_new(ax)
    series = (
        ("exact posterior", [one.exact and one.exact.c1 for one in outcomes], INK, "o"),
        ("attacks", [one.estimate.c1 for one in outcomes], ALERT, "s"),
    )
    for text, values, colour, marker in series:
        chosen = [(value, one.accuracy) for value, one in zip(values, outcomes, strict=True) if value is not None]
        if not chosen:
            continue
        x, y = (np.array([[*pair[k].floats()] for pair in chosen]) for k in (0, 1))
        errors = [np.abs(z[:, 1:].T - z[:, 0]) for z in (x, y)]
        size, inside = (6.0, "white") if marker == "o" else (4.5, colour)
        ax.errorbar(x[:, 0], y[:, 0], errors[1], errors[0], fmt=marker, ms=size, color=colour, mfc=inside, lw=0.0,
                    elinewidth=0.9, ecolor=FAINT, label=text)  # fmt: skip
    for one in outcomes:
        if one.exact is not None:  # what attacks do not find
            ends = one.estimate.c1.value, one.exact.c1.value
            ax.plot(ends, [one.accuracy.value] * 2, color=FAINT, lw=0.9, ls=":", zorder=0)
    if len(outcomes) <= _NAMED:
        _name_points(ax, outcomes)
    null = max(one.estimate.c1_null.value for one in outcomes)
    ax.axvspan(0.0, null, color=FAINT, alpha=0.18, lw=0, label="random attributions")
    ax.set(xlim=(-0.02, 1.04 * SQRT_LOG_2), xlabel="average Bayesian privacy (0: nothing leaks)",
           ylabel="accuracy on held-out records")  # fmt: skip
    ax.legend(frameon=False, fontsize=8.5, loc="lower right")
    return styled(ax, "Privacy against accuracy")


def estimates_against_noise(study: Any, ax: Any = None, *, quantity: str = "c1") -> Any:
    """Draw what attacks attain under each protection, and what the exact posterior says, over the noise.

    Parameters
    ----------
    study : LeakageStudy
        Protections with noise are drawn over its scale, one curve for each kind of noise and what else they do; those
        without noise stand beside.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure of its own.
    quantity : {"c1", "recovered", "kappa_3"}
        What is drawn: C1, the fraction of the batch that is recovered, or kappa_3, smoothed.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DomainError
        For anything but a study, or another quantity.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import figures
    >>> from fastpriv.leakage import Protection, SoftmaxRegression, leakage_study
    >>> records, labels = np.random.default_rng(1).random((60, 6)), np.arange(60) % 3
    >>> grid = [Protection(), *(Protection(noise="gaussian", scale=scale) for scale in (0.01, 0.1))]
    >>> study = leakage_study(SoftmaxRegression(6, 3), records, labels, grid, pool=20, batch=1, n_models=2,
    ...                       n_attacks=1, rng=1)
    >>> figures.estimates_against_noise(study).get_ylabel()
    'C1 (0: nothing leaks)'
    """
    outcomes = _checked("study", study, "LeakageStudy", "leakage_study").outcomes
    title, unit, null = _QUANTITIES[validate.choice("quantity", quantity, tuple(_QUANTITIES))]
    ax = new_figure(_PANEL).add_subplot() if ax is None else check_axes(ax)
    families = _families(outcomes)
    others = [one for one in outcomes if one.protection.noise == "none"]
    scales = [one.protection.scale for family in families.values() for one in family]
    ends = (np.log10(min(scales)), np.log10(max(scales))) if scales else (0.0, 0.0)
    places = [(one, ends[1] + _GAP * (k + 1.5)) for k, one in enumerate(others)] if scales else [
        (one, _GAP * k) for k, one in enumerate(others)]  # fmt: skip
    if null:
        one = getattr(outcomes[0].estimate, f"{quantity}_null")
        ax.axhspan(one.lower, one.upper, color=BAR, alpha=0.55, lw=0, label="random attributions", zorder=0)
        ax.axhline(one.value, color=FAINT, lw=1.0, ls=":", zorder=1)
    if scales and others:
        ax.axvline(ends[1] + _GAP, color=FAINT, lw=0.8)
    drawn = [(text, [(one, np.log10(one.protection.scale)) for one in family]) for text, family in families.items()]
    colours = {text: shade(k / max(len(drawn) - 1, 1) * 0.9) for k, (text, _) in enumerate(drawn)}
    for text, points in [*drawn, ("no noise", places)]:
        if points:
            _draw_family(ax, points, quantity, text, colours.get(text, ALERT))
    ax.plot([], [], "o", mfc="none", mec=INK, ms=8, label="exact posterior")
    ticks = _noise_ticks(np.array(scales))
    names = [f"{10.0**tick:.3g}" for tick in ticks]
    texts = [label(one.label, 26) for one, _ in places]
    ax.set_xticks(ticks + [place for _, place in places], names + [text for text, _ in texts], rotation=38, ha="right")
    for tick, (_, font) in zip(ax.get_xticklabels()[len(ticks) :], texts, strict=True):
        tick.set(parse_math=font["parse_math"], fontfamily=font["fontfamily"])
    ax.set(xlabel="scale of the noise" + (" | other protections" if scales and others else "") if scales else "",
           ylabel=unit)  # fmt: skip
    ax.legend(frameon=False, fontsize=8.5, loc="upper center", bbox_to_anchor=(0.5, -0.32), ncols=2)
    return styled(ax, title)


def _noise_ticks(scales: Any) -> list[float]:
    """Powers of ten within the range of the scales, as logarithms, or else the scales themselves."""
    logs = np.log10(np.unique(scales)).round(9)
    if not logs.size:
        return []
    decades = np.arange(np.ceil(logs[0]), np.floor(logs[-1]) + 1.0)
    return list(decades if decades.size > 1 else logs)


def _families(outcomes: Any) -> dict[str, list[Any]]:
    """Protections with noise by its kind and what else they do, in the order of the noise."""
    found: dict[str, list[Any]] = {}
    for one in outcomes:
        guard = one.protection
        if guard.noise != "none":
            rest = type(guard)(clip_example=guard.clip_example, clip_batch=guard.clip_batch, levels=guard.levels,
                               keep_fraction=guard.keep_fraction, every_step=guard.every_step)  # fmt: skip
            name = {"gaussian": "Gaussian noise", "laplace": "Laplace noise"}[guard.noise]
            if guard.every_step:
                name = "DP-SGD" if guard.noise == "gaussian" and guard.clip_example else f"{name} in each step"
            found.setdefault(name + ("" if rest.label == "none" else f", {rest.label}"), []).append(one)
    return {name: sorted(family, key=lambda one: one.protection.scale) for name, family in found.items()}


def _draw_family(ax: Any, points: Any, quantity: str, text: str, colour: Any) -> None:
    """Estimates with intervals, and exact values as circles around them, of protections at their places."""
    places = np.array([place for _, place in points])
    numbers = np.array([getattr(one.estimate, quantity).floats() for one, _ in points])
    top = numbers[:, 0].max()
    upper = np.where(np.isfinite(numbers[:, 2]), numbers[:, 2], np.maximum(numbers[:, 0], top))
    errors = [numbers[:, 0] - numbers[:, 1], upper - numbers[:, 0]]
    joined = text != "no noise"
    ax.errorbar(places, numbers[:, 0], np.maximum(errors, 0.0), fmt="s", ms=4.0, color=colour, elinewidth=1.1,
                capsize=2.0, lw=1.5, ls="-" if joined else "none", label=f"attacks: {text}")  # fmt: skip
    name = "kappa_3_smoothed" if quantity == "kappa_3" else quantity
    known = [(place, getattr(one.exact, name).value) for one, place in points if one.exact is not None]
    if known:
        x, y = np.array(known).T
        ax.plot(x, y, "o", mfc="none", mec=colour, ms=8.0, mew=1.4, lw=1.2, ls=(0, (4, 2)) if joined else "none",
                color=colour)  # fmt: skip


def leakage_figure(study: Any) -> Any:
    """C1 and records recovered, side by side, and accuracy where the study has it."""
    with_accuracy = study.outcomes[0].accuracy is not None
    columns = 3 if with_accuracy else 2
    figure = new_figure((_PANEL[0] * columns, _PANEL[1] + 0.4))
    for k, quantity in enumerate(("c1", "recovered")):
        estimates_against_noise(study, figure.add_subplot(1, columns, k + 1), quantity=quantity)
    if with_accuracy:
        accuracy_against_privacy(study, figure.add_subplot(1, columns, 3))
    figure.tight_layout()
    return figure


def reconstruction_figure(study: Any, truth: Any, shape: tuple[int, ...]) -> Any:
    """Pictures of the batch, one a row, each followed by its reconstruction under every protection.

    ``truth`` has the records of the batch, values from 0 to 1, and ``shape`` is that of a picture.
    """
    size, names = len(truth), [one.label for one in study.examples]
    wide = min(len(names) + 1, _PICTURES)
    groups = [study.examples[k : k + wide - 1] for k in range(0, len(names), wide - 1)]
    height = _PICTURE * size + _TITLE
    figure = new_figure((_PICTURE * wide + 0.2, len(groups) * height))
    for g, group in enumerate(groups):
        top = 1.0 - (g * height + _TITLE) / (len(groups) * height)
        grid = figure.add_gridspec(size, wide, wspace=0.12, hspace=0.12, left=0.01, right=0.99, top=top,
                                   bottom=top - (_PICTURE * size - 0.05) / (len(groups) * height))  # fmt: skip
        columns = [("true record", truth, np.zeros(size, dtype=bool)),
                   *((one.label, one.records, one.recovered) for one in group)]  # fmt: skip
        for j, (name, records, recovered) in enumerate(columns):
            for i in range(size):
                ax = figure.add_subplot(grid[i, j])
                picture = np.clip(np.nan_to_num(np.asarray(records[i]), nan=0.5), 0.0, 1.0).reshape(shape)
                ax.imshow(picture, cmap="gray_r", vmin=0.0, vmax=1.0, interpolation="nearest")
                ax.set(xticks=[], yticks=[])
                for spine in ax.spines.values():
                    spine.set(color=INK if recovered[i] else BAR, lw=2.4 if recovered[i] else 0.8)
                if not i:
                    text, font = label(name, 3 * _TITLE_WIDTH)
                    lines = [line for piece in text.split(", ") for line in wrap(piece, _TITLE_WIDTH)]
                    ax.set_title("\n".join(lines), fontsize=7.5, color=INK, pad=5, **font)
    return figure


def scoreboard_figure(board: Any) -> Any:
    """Fractions of the exact optimum, task by task, with their bands: of success, and of AUC where it was scored."""
    kinds = [("success", "Whole batch named")]
    if any(one.auc_band is not None for one in board.scores):
        kinds.append(("auc", "Members above others (AUC)"))
    figure = new_figure((4.6 * len(kinds) + 1.6, 0.27 * len(board.scores) + 1.3))
    axes = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    rows = np.arange(len(board.scores))[::-1]
    for ax, (kind, title) in zip(axes, kinds, strict=True):
        for row, one in zip(rows, board.scores, strict=True):
            band = getattr(one, f"{kind}_band")
            if band is not None:
                value, low, high = band.floats()
                ax.plot([max(low, 0.0), high], [row, row], color=BAR, lw=5.0, solid_capstyle="butt")
                ax.plot(value, row, "o", color=ALERT, ms=5.0)
        ax.axvline(1.0, color=INK, lw=1.0)
        ax.set(xlim=(-0.02, 1.04), xlabel="fraction of the best possible", ylim=(-0.7, len(rows) - 0.3))
        styled(ax, title)
    axes[0].set_yticks(rows, [one.task for one in board.scores], fontsize=8.5)
    figure.tight_layout()
    return figure


def _checked(name: str, found: Any, wanted: str, maker: str) -> Any:
    """What is drawn, which is of a class of a later layer."""
    if type(found).__name__ != wanted:
        raise DomainError(
            f"{name} must be what fastpriv.leakage.{maker} returned; got {validate.shown(found)}. Pass its result."
        )
    return found


def _name_points(ax: Any, outcomes: Any) -> None:
    """Write the names of protections beside their points, each place once."""
    width, (low, high) = SQRT_LOG_2, ax.get_ylim()
    taken: list[tuple[float, float]] = []
    for one in outcomes:
        x = (one.exact.c1 if one.exact is not None else one.estimate.c1).value / width
        y = one.accuracy.value
        if any(abs(x - a) < 0.2 and abs(y - b) < _ROOM * (high - low) for a, b in taken):
            continue
        taken.append((x, y))
        text, font = label(one.label, 24)
        right = x > 0.7
        ax.annotate(text, (x * width, y), (-6 if right else 6, 5), textcoords="offset points", fontsize=7.5, color=INK,
                    ha="right" if right else "left", **font)  # fmt: skip


def misses_against_privacy(tradeoff: Any, ax: Any = None) -> Any:
    """Draw how often a private statistic misses its target over its maximum Bayesian privacy, with what theorems say.

    Parameters
    ----------
    tradeoff : AccuracyTradeoff
        From ``fastpriv.studies.leakage.accuracy_tradeoff``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure of its own.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DomainError
        For anything else.

    Examples
    --------
    >>> from fastpriv import figures, leakage
    >>> found = leakage.accuracy_tradeoff([[0.0], [0.1]], [0.05, 0.1, 1.0], alpha=0.5)
    >>> figures.misses_against_privacy(found).get_xlabel()
    'maximum Bayesian privacy (nats)'
    """
    found = _checked("tradeoff", tradeoff, "AccuracyTradeoff", "accuracy_tradeoff")
    ax = axes_or_new(ax)
    xi = np.asarray(found.xi.value)
    order = np.argsort(xi)
    lines = (
        (found.beta, "true data", shade(0.15), "-", 2.0),
        (found.gamma, "worst of its neighbours", shade(0.6), "-", 2.0),
        (found.gamma_bound, "bound: corrected theorem", INK, "--", 1.4),
    )  # fmt: skip
    for one, text, colour, style, width in lines:
        value, low, high = (np.asarray(part)[order] for part in one.arrays())
        ax.plot(xi[order], value, style, color=colour, lw=width, label=text)
        ax.fill_between(xi[order], low, high, color=colour, alpha=0.2, lw=0)
    claimed = order[xi[order] <= 1.0]
    if claimed.size:
        ax.plot(xi[claimed], np.asarray(found.gamma_as_published.value)[claimed], ":", color=ALERT, lw=1.6,
                label="as published: (1 + 4 xi) beta, false above 0.628")  # fmt: skip
    least = max(_LEAST_PROBABILITY, 0.5 * float(np.min(found.beta.value)))
    ax.set(xscale="log", yscale="log", ylim=(least, 1.6), xlabel="maximum Bayesian privacy (nats)",
           ylabel="probability of a miss")  # fmt: skip
    ax.legend(frameon=False, fontsize=8.5)
    return styled(ax, "Accuracy and robustness")
