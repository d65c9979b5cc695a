"""Lower bounds on privacy parameters, and p-values of privacy claims, from outcomes of attacks.

Every bound inverts a test: a parameter is excluded where each mechanism that has it produces outcomes like these with
probability at most 1 - confidence. The tests and their proofs are at the heads of ``repeated_runs`` and ``one_run``.
The largest parameter that is excluded is the ``lower`` of an Estimate; its ``value`` is the same bound at confidence
1/2, and nothing is known from above.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from ... import special
from ...base import validate
from ...base.errors import DomainError, ShapeError
from ...base.estimate import Estimate, Unit
from ...base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray
from ...base.values import distinct_rows
from ...composition import certified_curves
from ...kernels import tail_products
from ...sampling.statistics.intervals import estimate_around, most_rates
from . import one_run, repeated_runs
from .audit_outcomes import OneRun, Outcomes, RepeatedRuns

Form = Literal["product", "two_bounds", "exact", "as_published"]
FORMS = {RepeatedRuns: ("product", "two_bounds"), OneRun: ("exact", "as_published")}  # the first is the default
_METHODS = {  # ``method`` of the Estimate
    "product": "repeated runs, product of two p-values",
    "two_bounds": "repeated runs, Clopper-Pearson bounds",
    "exact": "one run, least p-value of the claim",
    "as_published": "one run, Steinke-Nasr-Jagielski p-value",
}
# bound: proved - docs/proofs/roundings.md, 13.7: rounding of a parameter of rates, relative to it and to 1
_ROUNDING = 1e-11
_LARGEST_MU = 40.0  # Phi(Phi^-1(x) - 40) is below 1e-300 for all x that counts can tell from 1
HALVED = 0.5  # the confidence of ``value``
_LEVELS = np.r_[0.0, np.geomspace(1e-3, 100.0, 400)]  # epsilons of the lines above a curve: its slopes change by 3 %
# bound: proved - an exponential, a product and two differences of numbers up to 1
_LINE_ERROR = 8 * UNIT_ROUNDOFF
_MOST_KINKS = 1000  # ratios of probabilities of a discrete pair that get lines of their own


def audit_epsilon(
    outcomes: Outcomes, *, delta: ArrayLike = 0.0, confidence: float = 0.95, form: Form | None = None
) -> Estimate:
    """The epsilon that outcomes of an attack show, whose ``lower`` is what an audit claims: smaller ones are excluded.

    Parameters
    ----------
    outcomes : RepeatedRuns or OneRun
        Counts; arrays are one audit an entry.
    delta : array_like
        Between 0 and 1, of a shape that broadcasts with the counts.
    confidence : float
        Level of each bound, between 0 and 1.
    form : {"product", "two_bounds", "exact", "as_published"}, optional
        Of repeated runs ``product`` (the default) or ``two_bounds`` (Clopper and Pearson, the usual way, which is
        lower); of one run ``exact`` (the default) or ``as_published`` (Steinke et al., lower where delta > 0).

    Returns
    -------
    Estimate
        In nats, ``statistical``: ``lower`` is at most the true epsilon with probability at least ``confidence``,
        ``value`` the same bound at confidence 1/2, which exceeds the true epsilon in up to half of all audits, and
        ``upper`` infinite.

    Raises
    ------
    DomainError, ShapeError
        For other outcomes, a delta or a confidence out of range, a form of the other kind of outcomes.

    Notes
    -----
    Both directions of the definition are used, and no price is paid for the second. The bound of one run is the least
    that holds for all (epsilon, delta) mechanisms.

    **Accuracy** 1e-9 below the exact bound at most; ``tests/auditing/test_lower_bounds.py`` compares with linear
    programs and brute force, ``tests/auditing/test_null_audits.py`` counts misses in 5,000 null audits of each form.

    Source: the heads of fastpriv/studies/auditing/repeated_runs.py and one_run.py, with proofs.

    Examples
    --------
    >>> from fastpriv.auditing import OneRun, RepeatedRuns, audit_epsilon
    >>> print(f"{audit_epsilon(RepeatedRuns(430, 1000, 40, 1000), delta=1e-5):.3f}")
    2.278 [2.050, inf]
    >>> print(f"{audit_epsilon(OneRun(180, 200, 1000), delta=1e-5):.3f}")
    2.162 [1.798, inf]
    """
    numbers = validate.real("delta", delta, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
    chosen, level = _form(outcomes, form), validate.open_probability("confidence", confidence)
    validate.broadcastable("delta", numbers, "the counts", getattr(outcomes, outcomes._fields[0]))
    return _lower_bounds(_rows(outcomes, numbers), epsilon_bounds, chosen, level, "nats")


def audit_gaussian_dp(outcomes: Outcomes, *, confidence: float = 0.95, form: Form | None = None) -> Estimate:
    """The largest mu that outcomes of an attack exclude: no mu-Gaussian differential privacy has a smaller one.

    Parameters
    ----------
    outcomes : RepeatedRuns or OneRun
        Counts; arrays are one audit an entry.
    confidence : float
        Level of each bound, between 0 and 1.
    form : {"product", "two_bounds"}, optional
        Of repeated runs, as for ``audit_epsilon``.

    Returns
    -------
    Estimate
        mu, the sensitivity over sigma, ``statistical`` and from below as in ``audit_epsilon``.

    Raises
    ------
    DomainError, ShapeError
        As ``audit_epsilon``.

    Notes
    -----
    It speaks of mechanisms whose trade-off curve is a Gaussian one, or lies above one. ``dp_epsilon_from_gdp`` of
    ``fastpriv.conversions`` makes (epsilon, delta) of it.

    **Accuracy** as ``audit_epsilon``; of one run the bound uses the sets of largest counts alone and is up to 7 %
    of a standard error lower than the best.

    Source: the heads of fastpriv/studies/auditing/repeated_runs.py and one_run.py, with proofs.

    Examples
    --------
    >>> from fastpriv.auditing import OneRun, RepeatedRuns, audit_gaussian_dp
    >>> print(f"{audit_gaussian_dp(RepeatedRuns(430, 1000, 40, 1000)):.3f}")
    1.541 [1.412, inf]
    >>> print(f"{audit_gaussian_dp(OneRun(120, 128, 1000)):.3f}")
    1.077 [0.774, inf]
    """
    chosen, level = _form(outcomes, form), validate.open_probability("confidence", confidence)
    if chosen == "as_published":
        raise DomainError("form must be exact for a Gaussian audit of one run; got 'as_published'. Leave it out.")
    return _lower_bounds(_rows(outcomes), mu_bounds, chosen, level, "1")


def audit_delta(
    outcomes: Outcomes, epsilon: ArrayLike, *, confidence: float = 0.95, form: Form | None = None
) -> Estimate:
    """The largest delta that outcomes of an attack exclude at this epsilon.

    Parameters
    ----------
    outcomes : RepeatedRuns or OneRun
        Counts; arrays are one audit an entry.
    epsilon : array_like
        At least 0, in nats, finite, of a shape that broadcasts with the counts.
    confidence, form
        As for ``audit_epsilon``, without the form as published.

    Returns
    -------
    Estimate
        Probabilities, ``statistical`` and from below as in ``audit_epsilon``.

    Raises
    ------
    DomainError, ShapeError
        As ``audit_epsilon``, for an epsilon out of range.

    Notes
    -----
    **Accuracy** as ``audit_epsilon``.

    Source: the heads of fastpriv/studies/auditing/repeated_runs.py and one_run.py, with proofs.

    Examples
    --------
    >>> from fastpriv.auditing import RepeatedRuns, audit_delta
    >>> print(f"{audit_delta(RepeatedRuns(430, 1000, 40, 1000), 1.0):.3f}")
    0.313 [0.274, 1.000]
    """
    levels = validate.real("epsilon", epsilon, "finite and at least 0", lambda x: (x >= 0) & np.isfinite(x))
    chosen, level = _form(outcomes, form), validate.open_probability("confidence", confidence)
    if chosen == "as_published":
        raise DomainError("form must be exact for delta of one run; got 'as_published'. Leave it out.")
    validate.broadcastable("epsilon", levels, "the counts", getattr(outcomes, outcomes._fields[0]))
    return _lower_bounds(_rows(outcomes, levels), _delta_bounds, chosen, level, "probability")


def audit_p_value(
    outcomes: Outcomes, p: Any = None, q: Any = None, *, epsilon: ArrayLike | None = None, delta: ArrayLike = 0.0
) -> float | FloatArray:
    """The p-value of a privacy claim: how likely outcomes like these are at most if the claim is true.

    Parameters
    ----------
    outcomes : RepeatedRuns or OneRun
        Counts; arrays are one audit an entry.
    p, q
        The mechanism that is claimed, as for ``risk.trade_off_curve``: outputs without and with the target, or p alone
        a GaussianMechanism, a channel or a privacy curve.
    epsilon, delta : array_like
        Or the (epsilon, delta) that is claimed, of shapes that broadcast with the counts.

    Returns
    -------
    float or ndarray
        Upper bounds of the p-values: small ones contradict the claim.

    Raises
    ------
    DomainError, ShapeError
        For numbers out of range, both kinds of claims or none, and pairs without certified bounds.

    Notes
    -----
    A pair is replaced by 801 lines above its curve F, and those along the edges of a discrete one, so that its p-value
    is never too small. One run uses the larger curve of both directions.

    **Accuracy** ``tests/auditing/test_lower_bounds.py``: never below brute force, and near it.

    Source: the heads of fastpriv/studies/auditing/repeated_runs.py and one_run.py, with proofs.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism
    >>> from fastpriv.auditing import RepeatedRuns, audit_p_value
    >>> outcomes = RepeatedRuns(430, 1000, 40, 1000)
    >>> round(audit_p_value(outcomes, epsilon=2.2, delta=1e-5), 4), audit_p_value(outcomes, epsilon=4.0)
    (0.2887, 1.0)
    >>> audit_p_value(outcomes, GaussianMechanism(sigma=1.0, sensitivity=1.0)) < 1e-9
    True
    """
    _form(outcomes, None)
    if (p is None) == (epsilon is None):
        raise DomainError(
            f"epsilon must be given, or p and q, and not both; got p={validate.shown(p)}, epsilon={epsilon!r}. State "
            "one claim."
        )
    if p is not None:
        rows, index, shape = _rows(outcomes)
        answer = _line_p_values(rows, *_lines_above(p, q, isinstance(outcomes, OneRun)))[index].reshape(shape)
        return float(answer) if shape == () else answer
    levels = validate.real("epsilon", epsilon, "at least 0", lambda x: x >= 0)
    numbers = validate.real("delta", delta, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
    validate.broadcastable("delta", numbers, "epsilon", levels)
    both = np.broadcast_arrays(levels, numbers)
    validate.broadcastable("epsilon", both[0], "the counts", getattr(outcomes, outcomes._fields[0]))
    rows, index, shape = _rows(outcomes, *both)
    e, d = rows[:, -2], rows[:, -1]
    if isinstance(outcomes, OneRun):
        result = np.where(np.isinf(e), 1.0, one_run.p_value(rows, np.where(np.isinf(e), 0.0, e), d))
    else:
        result = repeated_runs.product_p_value(rows, (tail_products.DP, e, d))
    answer = result[index].reshape(shape)
    return float(answer) if shape == () else answer


def epsilon_bounds(rows: FloatArray, form: str, error: float) -> FloatArray:
    """The largest epsilon that is excluded, of each row of counts and delta."""
    if form in ("product", "two_bounds"):
        return _by_rates(form, rows, _epsilon_of_rates, lambda e, some: (tail_products.DP, e, some[:, 4]), error)
    v, r, delta = rows[:, 0], rows[:, 1], rows[:, 3]
    wrong = most_rates(r - v, r, error)
    with np.errstate(divide="ignore"):
        pure = np.maximum(np.log1p(-wrong) - np.log(wrong), 0.0)  # of delta = 0
    answer = np.zeros(len(rows))
    done = delta == 0.0
    answer[done] = pure[done]
    remainder = rows[~done]
    if len(remainder):
        tested = one_run.p_value if form == "exact" else one_run.published_p_value
        answer[~done] = one_run.greatest_excluded(lambda e: tested(remainder, e, remainder[:, 3]) <= error, pure[~done])
    return np.maximum(answer - _ROUNDING * (1.0 + answer), 0.0)


def _delta_bounds(rows: FloatArray, form: str, error: float) -> FloatArray:
    """The largest delta that is excluded, of each row of counts and epsilon."""
    if form == "exact":
        return one_run.delta_of_level(rows, rows[:, 3], error)
    return _by_rates(form, rows, _delta_of_rates, lambda d, some: (tail_products.DP, some[:, 4], d), error)


def mu_bounds(rows: FloatArray, form: str, error: float) -> FloatArray:
    """The largest mu that is excluded, of each row of counts."""
    if form in ("product", "two_bounds"):
        return _by_rates(form, rows, _mu_of_rates, lambda mu, _: (tail_products.GAUSSIAN, mu, mu), error)

    def excluded(mu: FloatArray) -> BoolArray:
        return one_run.exceeds_level(rows, error, lambda x: special.ndtr(scipy.special.ndtri(x) - mu))

    greatest = one_run.greatest_excluded(excluded, np.full(len(rows), _LARGEST_MU))
    return np.maximum(greatest - _ROUNDING * (1.0 + greatest), 0.0)


def _by_rates(form: str, rows: FloatArray, parameter: Any, claim: Any, error: float) -> FloatArray:
    """The bounds of repeated runs; those of two bounds are moved outward by the rounding of the parameter."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if form == "product":
            return repeated_runs.excluded_by_product(rows, parameter, claim, error)
        result = repeated_runs.excluded_by_two_bounds(rows, parameter, error)
    return np.maximum(result - _ROUNDING * (1.0 + np.abs(result)), 0.0)


def _epsilon_of_rates(x: FloatArray, claimed: FloatArray, missed: FloatArray, rows: FloatArray) -> FloatArray:
    """The epsilon at which F(x) = claimed = 1 - missed; rows end with delta."""
    delta = rows[:, 4]
    forward = np.log(np.maximum(claimed - delta, 0.0)) - np.log(x)
    backward = np.log(np.maximum(1.0 - delta - x, 0.0)) - np.log(missed)
    result = np.maximum(forward, backward)
    return np.where(result > 0.0, result, 0.0)


def _delta_of_rates(x: FloatArray, claimed: FloatArray, missed: FloatArray, rows: FloatArray) -> FloatArray:
    """The delta at which F(x) = claimed = 1 - missed; rows end with epsilon."""
    with np.errstate(over="ignore", invalid="ignore"):
        factor = np.exp(rows[:, 4])
        taken, left = (np.where(rate == 0.0, 0.0, factor * rate) for rate in (x, missed))
    return np.maximum(np.maximum(claimed - taken, 1.0 - x - left), 0.0)


def _mu_of_rates(x: FloatArray, claimed: FloatArray, missed: FloatArray, rows: FloatArray) -> FloatArray:
    """The mu at which F(x) = claimed = 1 - missed."""
    result = np.where(missed < 0.5, -scipy.special.ndtri(missed), scipy.special.ndtri(claimed)) - scipy.special.ndtri(x)
    return np.where(result > 0.0, result, 0.0)


def _lines_above(p: Any, q: Any, both_directions: bool) -> tuple[FloatArray, FloatArray]:
    """Epsilon and delta of lines e^epsilon x + delta above F of the pair (without, with the target).

    They are of the worse direction each if it has to serve both.
    """
    pair = certified_curves(p, q)
    levels = _LEVELS
    if pair.discrete is not None:  # its curve is straight between the ratios of probabilities
        with np.errstate(divide="ignore"):
            kinks = np.abs(np.log(pair.discrete.p) - np.log(pair.discrete.q))
        levels = np.union1d(levels, kinks[kinks < levels[-1]][:_MOST_KINKS])
    without, with_target = (np.asarray(result.upper) for result in pair.both(levels))
    if both_directions:
        with_target = without = np.maximum(with_target, without)
    below = 1.0 - np.exp(-levels[1:]) * (1.0 - without[1:]) + _LINE_ERROR  # at -epsilon
    return np.r_[levels, -levels[1:]], np.r_[with_target, np.minimum(below, 1.0)]


def _line_p_values(rows: FloatArray, epsilon: FloatArray, delta: FloatArray) -> FloatArray:
    """p-values of the claim that F is below all lines, of each row of counts."""
    slopes = np.exp(epsilon)
    if rows.shape[1] == 4:
        return repeated_runs.product_p_value(rows, (tail_products.LINES, slopes, delta))

    def inverse(x: FloatArray) -> FloatArray:  # the rate of false guesses that each rate of true ones needs at least
        return np.asarray(np.maximum(((x[:, None] - delta) / slopes).max(axis=1), 0.0))

    answer = np.empty(len(rows))
    for k in range(len(rows)):
        row = rows[k : k + 1]
        single_lines = one_run.p_value(np.repeat(row, delta.size, axis=0), epsilon, delta)
        answer[k] = min(single_lines.min(), one_run.level_p_value(row, inverse))
    return answer


def _form(outcomes: Any, form: str | None) -> str:
    """The form, which must be one of these outcomes."""
    if type(outcomes) not in FORMS:
        raise DomainError(
            f"outcomes must be RepeatedRuns or OneRun; got {validate.shown(outcomes)}. Build one of the counts."
        )
    options = FORMS[type(outcomes)]
    return options[0] if form is None else validate.choice("form", form, options)


def _rows(outcomes: Outcomes, *more: FloatArray) -> tuple[FloatArray, Any, tuple[int, ...]]:
    """Distinct rows of counts and further numbers, which row each audit has, and the shape of the audits."""
    columns = np.broadcast_arrays(*outcomes._arrays(), *more)
    shape = columns[0].shape
    if columns[0].size == 0:
        raise ShapeError(
            f"outcomes must have one or more audits; got shape {shape} with epsilon or delta. Pass numbers in them."
        )
    return *distinct_rows(np.stack([column.ravel() for column in columns], axis=1)), shape


def _lower_bounds(
    distinct: tuple[FloatArray, Any, tuple[int, ...]], bounds: Callable[[FloatArray, str, float], FloatArray],
    form: str, level: float, unit: Unit,
) -> Estimate:
    """The bounds of each audit at this level, and at confidence 1/2, of what ``_rows`` returned."""
    rows, index, shape = distinct
    lower, halved = (bounds(rows, form, 1.0 - side)[index].reshape(shape) for side in (level, HALVED))
    upper = np.full_like(lower, 1.0 if unit == "probability" else np.inf)
    return estimate_around(np.maximum(lower, halved), lower, upper, unit, _METHODS[form], level)
