"""Panels of leakage: privacy against accuracy, of a grid of protections and of a statistic with noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _validate
from ..errors import DomainError
from ..numerics import SQRT_LOG_2
from .style import ALERT, FAINT, INK, axes_or_new, label, shade, styled

__all__ = ["accuracy_against_privacy", "misses_against_privacy"]

_LEAST_PROBABILITY = 1e-6  # the axis of probabilities ends here at the latest
_NAMED = 16  # protections that have room for their names
_ROOM = 0.05  # of the height of the panel, between two names


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


def _checked(name: str, found: Any, wanted: str, maker: str) -> Any:
    """What is drawn, which is of a class of a later layer."""
    if type(found).__name__ != wanted:
        raise DomainError(
            f"{name} must be what fastpriv.leakage.{maker} returned; got {_validate.shown(found)}. Pass its result."
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
        From ``fastpriv.leakage.accuracy_tradeoff``.
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
