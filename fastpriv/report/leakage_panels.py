"""Panel of leakage: attacks and exact values over the noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..base import validate
from .style import ALERT, BAR, FAINT, INK, check_result, label, legend_below, panel, shade

_GAP = 0.45  # between the noise levels and other protections, and between these, in powers of ten
# What is drawn over the noise: title, axis, and whether attacks at random have a range of it.
_QUANTITIES = {
    "c1": ("Average Bayesian privacy", "C1 (0: nothing leaks)", True),
    "recovered": ("Records recovered", "fraction of the batch", False),
    "kappa_3": ("Maximum Bayesian privacy", "kappa_3, nats (0: nothing leaks)", True),
}


@panel
def estimates_against_noise(study: Any, ax: Any = None, *, quantity: str = "c1") -> Any:
    """Draw what attacks attain under each protection, and what the exact posterior says, over the noise.

    Parameters
    ----------
    study : LeakageStudy
        Protections with noise are drawn over its scale, one curve for each kind of noise and what else they do; those
        without noise stand beside.
    quantity : {"c1", "recovered", "kappa_3"}
        What is drawn: C1, the fraction of the batch that is recovered, or kappa_3, smoothed.

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
    outcomes = check_result("study", study, "LeakageStudy", "fastpriv.leakage.leakage_study returned").outcomes
    title, unit, null = _QUANTITIES[validate.choice("quantity", quantity, tuple(_QUANTITIES))]
    families = _families(outcomes)
    others = [outcome for outcome in outcomes if outcome.protection.noise == "none"]
    scales = [outcome.protection.scale for family in families.values() for outcome in family]
    ends = (np.log10(min(scales)), np.log10(max(scales))) if scales else (0.0, 0.0)
    first = ends[1] + 1.5 * _GAP if scales else 0.0
    indices = [(other, first + _GAP * k) for k, other in enumerate(others)]
    if null:
        null_estimate = getattr(outcomes[0].estimate, f"{quantity}_null")
        ax.axhspan(
            null_estimate.lower, null_estimate.upper, color=BAR, alpha=0.55, lw=0, label="random attributions", zorder=0
        )
        ax.axhline(null_estimate.value, color=FAINT, lw=1.0, ls=":", zorder=1)
    if scales and others:
        ax.axvline(ends[1] + _GAP, color=FAINT, lw=0.8)
    drawn = [(text, [(item, np.log10(item.protection.scale)) for item in family]) for text, family in families.items()]
    colours = {text: shade(k / max(len(drawn) - 1, 1) * 0.9) for k, (text, _) in enumerate(drawn)}
    for text, points in [*drawn, ("no noise", indices)]:
        if points:
            _draw_family(ax, points, quantity, text, colours.get(text, ALERT))
    ax.plot([], [], "o", mfc="none", mec=INK, ms=8, label="exact posterior")
    ticks = _noise_ticks(np.array(scales))
    names = [f"{10.0**tick:.3g}" for tick in ticks]
    texts = [label(entry.label, 26) for entry, _ in indices]
    ax.set_xticks(ticks + [index for _, index in indices], names + [text for text, _ in texts], rotation=38, ha="right")
    for tick, (_, font) in zip(ax.get_xticklabels()[len(ticks) :], texts, strict=True):
        tick.set(parse_math=font["parse_math"], fontfamily=font["fontfamily"])
    ax.set(
        xlabel="scale of the noise" + (" | other protections" if scales and others else "") if scales else "",
        ylabel=unit,
    )
    longest = max([*map(len, names), *(len(text) for text, _ in texts)])
    legend_below(ax, drop=40.0 + 3.5 * longest)
    return title


def _noise_ticks(scales: Any) -> list[float]:
    """Powers of ten within the range of the scales, as logarithms, or else the scales themselves."""
    logs = np.log10(np.unique(scales)).round(9)
    if not logs.size:
        return []
    decades = np.arange(np.ceil(logs[0]), np.floor(logs[-1]) + 1.0)
    return list(decades if decades.size > 1 else logs)


def _families(outcomes: Any) -> dict[str, list[Any]]:
    """Protections with noise by its kind and what else they do, in the order of the noise."""
    result: dict[str, list[Any]] = {}
    for outcome in outcomes:
        guard = outcome.protection
        if guard.noise != "none":
            remainder = replace(guard, noise="none", scale=0.0)
            name = {"gaussian": "Gaussian noise", "laplace": "Laplace noise"}[guard.noise]
            if guard.every_step:
                name = "DP-SGD" if guard.noise == "gaussian" and guard.clip_example else f"{name} in each step"
            result.setdefault(name + ("" if remainder.label == "none" else f", {remainder.label}"), []).append(outcome)
    return {name: sorted(family, key=lambda item: item.protection.scale) for name, family in result.items()}


def _draw_family(ax: Any, points: Any, quantity: str, text: str, colour: Any) -> None:
    """Estimates with intervals, and exact values as circles around them, of protections at their places."""
    indices = np.array([position for _, position in points])
    numbers = np.array([getattr(entry.estimate, quantity).floats() for entry, _ in points])
    top = numbers[:, 0].max()
    upper = np.where(np.isfinite(numbers[:, 2]), numbers[:, 2], np.maximum(numbers[:, 0], top))
    errors = [numbers[:, 0] - numbers[:, 1], upper - numbers[:, 0]]
    joined = text != "no noise"
    ax.errorbar(indices, numbers[:, 0], np.maximum(errors, 0.0), fmt="s", ms=4.0, color=colour, elinewidth=1.1,
                capsize=2.0, lw=1.5, ls="-" if joined else "none", label=f"attacks: {text}")
    name = "kappa_3_smoothed" if quantity == "kappa_3" else quantity
    known = [(index, getattr(item.exact, name).value) for item, index in points if item.exact is not None]
    if known:
        x, y = np.array(known).T
        ax.plot(x, y, "o", mfc="none", mec=colour, ms=8.0, mew=1.4, lw=1.2, ls=(0, (4, 2)) if joined else "none",
                color=colour)
