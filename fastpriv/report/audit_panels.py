"""``audit``: draw what an audit excludes against its threshold, or its number of guesses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base import validate
from ..base.errors import DomainError
from .style import ALERT, FAINT, INK, label, legend_below, panel, shade

_OUTLYING = 20.0  # thresholds so many times as far apart as 90 % of them have a symmetric logarithmic axis


@panel
def audit(
    result: Any, *, truth: float | None = None, claim: float | None = None, title: str = "Audit", ax: Any = None
) -> Any:
    """Draw the bound of epsilon at every threshold or number of guesses, the audit's own bound, and truth or claim.

    Parameters
    ----------
    result : auditing.ScoreAudit
        Of one audit.
    truth : float, optional
        The epsilon that is proved or known, in nats.
    claim : float, optional
        The epsilon that is claimed, in nats; the legend says whether the bound refutes it.
    title : str
        The title, in any script.

    Returns
    -------
    matplotlib.axes.Axes
        The curve holds at each of its points alone; the horizontal line paid for the choice among them.

    Raises
    ------
    DomainError
        For another result, or one of several audits.
    BackendMissingError
        When matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import figures
    >>> from fastpriv.auditing import audit_scores
    >>> member = np.arange(2000) % 2 == 0
    >>> scores = np.random.default_rng(1).normal(size=2000) + member
    >>> ax = figures.audit(audit_scores(scores, member, delta=1e-2), truth=2.3178)
    >>> ax.get_xlabel(), len(ax.get_legend().get_texts())
    ('threshold', 3)
    """
    if getattr(result, "pointwise", None) is None:
        raise DomainError(
            f"result must be a ScoreAudit of one audit; got {validate.shown(result)}. Audit one row of scores."
        )
    validate.instance("title", title, str)
    bounds, one_run = np.asarray(result.pointwise.lower), result.design == "one_run"
    finite = np.isfinite(result.audited)
    low, high = np.quantile(result.audited[finite], (0.05, 0.95)) if finite.any() else (0.0, 0.0)
    if one_run:
        ax.set_xscale("log")
    elif np.ptp(result.audited[finite]) > _OUTLYING * (high - low) > 0.0:
        ax.set_xscale("symlog", linthresh=10.0 ** math.ceil(math.log10(max(abs(low), abs(high)))))
    ax.plot(
        result.audited[finite], bounds[finite], color=shade(0.4), lw=1.4, marker="o" if one_run else None, ms=4,
        label="lower bound at each alone",
    )
    false = result.epsilon.kind == "heuristic"
    ax.axhline(
        float(result.epsilon.lower), color=ALERT if false else INK, lw=1.6,
        label="best of all, FALSE as published" if false else f"lower bound, {result.selection}",
    )
    if truth is not None:
        number = validate.scalar("truth", truth, "at least 0", lambda x: x >= 0)
        ax.axhline(number, color=FAINT, lw=1.6, ls=(0, (4, 2)), label="truth")
    if claim is not None:
        verdict, refuted = result.verdict(claim), float(result.epsilon.lower) > claim
        ax.axhline(
            float(claim), color=ALERT if refuted else FAINT, lw=1.6, ls=(0, (1, 1)), label=verdict.replace(": ", ":\n")
        )
    ax.set(xlabel="guesses" if one_run else "threshold", ylabel=f"epsilon at delta = {result.delta:g}, nats")
    ax.set_ylim(bottom=0.0)
    legend_below(ax)
    return label(validate.text("title", title), 60)
