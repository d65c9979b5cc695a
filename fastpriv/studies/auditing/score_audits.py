"""Audits from scores and memberships: the threshold, or the number of guesses, is chosen and paid for.

Notation: n1 members and n0 non-members are scored, higher for members; a = 1 - confidence.

Repeated runs. ``simultaneous``: thresholds at ranks that are fixed before the scores are seen, the (k+1)-th largest of
the non-members and the (k+1)-th smallest of the members for k = 0, 1, 2, 4, 8, ...; the audit at each has error a / K,
K their number, and the best counts (proof at the head of ``repeated_runs``). ``split``: one half of the scores chooses
the threshold, the other is audited there with error a. A threshold that is passed has error a too. ``as_published``:
the best threshold of all with error a each, as is often done: **false**, the bound fails more often than a.

One run. The attack guesses "in" for the k1 largest scores and "out" for the k0 smallest, k1 - k0 being 0 or 1; ties are
in an order that does not depend on memberships. ``simultaneous``: n, n/2, n/4, ... guesses, down to 16, with error
a / K each. A number of guesses that is passed has error a. ``as_published``: the best number with error a: **false**.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ...base import random_streams, validate
from ...base.errors import DomainError, ShapeError, warned
from ...base.estimate import Estimate, Kind, Result, Unit
from ...base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray, IntArray, rounded_down
from ...base.values import distinct_rows
from ...composition import RiskStatement
from ...sampling.statistics.intervals import estimate_around, least_rates, most_rates
from ..membership.evaluation import auc, scores_and_membership
from .lower_bounds import HALVED, epsilon_bounds, mu_bounds

Design = Literal["repeated_runs", "one_run"]
Selection = Literal["simultaneous", "split", "as_published"]
_LEAST_GUESSES = 16  # of a list of numbers of guesses: all right, they show epsilon 1.6 at confidence 0.95
# bound: none - a membership as uneven as this comes from fair coins once in 1e9 runs, and is refused
_UNFAIR = 1e-9
_MOST_POINTS = 200  # thresholds whose own bounds a single audit gives: finer steps are not seen in a figure
_LARGEST_TABLE = 10_000  # trials for which all bounds of a rate are computed, and kept for the next audit of this size
_CLEARLY_LOWER = 3.7  # standard errors of an AUC below 1/2: once in 10,000 audits by chance
# bound: proved - an exponential and two products, relative to their result, and differences of numbers up to 1, of
# which a result above 0 is made
_SAMPLE_ROUNDING = 8 * UNIT_ROUNDOFF


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScoreAudit(Result):
    """What scores of an attack exclude; see ``audit_scores``.

    Parameters
    ----------
    epsilon : Estimate
        Lower bounds at ``delta``, in nats, one for each audit.
    mu : Estimate
        Lower bounds of mu-Gaussian differential privacy. Each of both holds at the confidence level, not both together.
    design, selection : str
        As asked; the selection is "fixed" for a threshold or a number of guesses that was passed.
    delta : float
        As asked.
    audited : ndarray
        Of a single audit the thresholds of repeated runs (claimed is what scores at least that; at most
        200 of them, even in rank), or the numbers of guesses of one run, in ascending order; empty for several audits.
    pointwise : Estimate or None
        The lower bound of epsilon at each of these, as if it alone had been fixed in advance.
    counts : ndarray of int, shape (4,) or (3,), or (A, 4) or (A, 3)
        What the bound of epsilon is computed from: members that are claimed, members, non-members that are claimed and
        non-members; of one run right guesses, guesses and canaries.

    Notes
    -----
    **Accuracy** as ``audit_scores``, which makes it.

    Source: the head of fastpriv/studies/auditing/score_audits.py.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.auditing import audit_scores
    >>> member = np.arange(2000) % 2 == 0
    >>> audit = audit_scores(np.random.default_rng(1).normal(size=2000) + member, member, delta=1e-2)
    >>> audit.selection, bool(audit.epsilon.lower < audit.pointwise.lower.max())
    ('simultaneous', True)
    >>> audit.verdict(2.0).partition(" (")[0]
    'claim epsilon = 2 at delta = 0.01 is not refuted at confidence 0.95'
    """

    epsilon: Estimate
    mu: Estimate
    design: str
    selection: str
    delta: float
    audited: FloatArray
    pointwise: Estimate | None
    counts: IntArray

    def risk_statement(self, prior: float | None = None, record: str = "record") -> RiskStatement:
        """What the audit excludes, in sentences; see ``risk.statement``, whose ``prior`` no audit needs."""
        text = self.verdict(0.0).partition(": ")[2]
        epsilon, mu = (rounded_down(float(item.lower), 3) for item in (self.epsilon, self.mu))
        texts = (
            f"Whoever claims an epsilon below {epsilon} at delta = {self.delta:g} is wrong{self._level()}: {text}.",
            f"Whoever claims mu-Gaussian privacy with a mu below {mu} is wrong{self._level()}.",
        )
        assumed = ("A stronger attack may exclude more: this is no promise of privacy.",
                   f"The threshold or number of guesses: {self.selection}.")
        return RiskStatement(texts, assumed, epsilon=self.epsilon, mu=self.mu)

    def _level(self) -> str:
        """At which confidence."""
        level = self.epsilon.confidence
        return " as published, which is FALSE" if level is None else f" at confidence {level:g}"

    def verdict(self, claim: float) -> str:
        """Whether the bound refutes that epsilon is at most ``claim``, and the counts, in one sentence.

        Raises
        ------
        DomainError
            For a claim below 0, and a result of several audits.
        """
        number = validate.scalar("claim", claim, "at least 0", lambda x: x >= 0)
        if self.pointwise is None:
            raise DomainError(
                f"claim must be judged by one audit; got {len(self.counts)} audits. Audit one row of scores."
            )
        lower = float(self.epsilon.lower)
        counts = "{} of {} members and {} of {} non-members claimed"
        if self.design == "one_run":
            counts = "{} right of {} guesses about {} canaries"
        return (
            f"claim epsilon = {number:g} at delta = {self.delta:g} is {'refuted' if lower > number else 'not refuted'} "
            f"{self._level()[1:]} (at least {rounded_down(lower, 4)}): {counts.format(*self.counts.tolist())}"
        )


def audit_scores(
    scores: ArrayLike, membership: ArrayLike, *, design: Design = "repeated_runs", delta: float = 0.0,
    confidence: float = 0.95, selection: Selection = "simultaneous", threshold: float | None = None,
    guesses: int | None = None,
) -> ScoreAudit:
    """Lower bounds on epsilon and on mu from the scores of an attack on membership, the choice of a threshold paid for.

    Parameters
    ----------
    scores : array_like, shape (n,) or (A, n)
        Scores, higher for members, of one audit or of A audits. No NaN; infinities are scores like others.
    membership : array_like of bool, shape of scores or (n,)
        Who was a member.
    design : {"repeated_runs", "one_run"}
        Whether each score is of an independent run of its own, or all are canaries of one run, each a member by the
        toss of a fair coin.
    delta : float
        Between 0 and 1.
    confidence : float
        Level of each bound.
    selection : {"simultaneous", "split", "as_published"}
        How the threshold or the number of guesses is chosen; ``split`` is for repeated runs. **as_published is false**:
        it takes the best without the price of the choice, and its estimates are ``heuristic``.
    threshold : float, optional
        Of repeated runs, chosen without these scores: claimed are scores of at least this.
    guesses : int, optional
        Of one run, chosen without these outcomes: half for the largest scores, half for the smallest.

    Returns
    -------
    ScoreAudit
        ``epsilon`` and ``mu``, each a lower bound with its value at confidence 1/2.

    Raises
    ------
    DomainError, ShapeError
        NaN, no members or no non-members, wrong shapes, numbers out of range, a threshold for one run or a number of
        guesses for repeated ones, and memberships in one run that no fair coins gave.

    Notes
    -----
    Canaries of one run are not independent runs: scores of one run audited as repeated ones give no bound. A warning
    comes where members score clearly lower than non-members.

    **Accuracy** ``tests/auditing/test_null_audits.py`` counts the misses in 5,000 null audits of each choice.

    Source: Jagielski, Ullman and Oprea 2020; Steinke, Nasr and Jagielski 2023; the head of
    fastpriv/studies/auditing/score_audits.py.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.auditing import audit_scores
    >>> member = np.arange(4000) % 2 == 0
    >>> scores = np.random.default_rng(1).normal(size=4000) + member  # mu = 1
    >>> audit = audit_scores(scores, member, delta=1e-2)
    >>> print(f"{audit.epsilon:.2f} {audit.mu:.2f}")
    1.62 [1.48, inf] 0.91 [0.86, inf]
    """
    x, b = _checked_scores(scores, membership)
    single = x.ndim == 1
    x, b = np.atleast_2d(x), np.atleast_2d(b)
    validate.choice("design", design, ("repeated_runs", "one_run"))
    validate.choice("selection", selection, ("simultaneous", "split", "as_published"))
    d = validate.scalar("delta", delta, "between 0 and 1", lambda p: (p >= 0) & (p <= 1))
    level = validate.open_probability("confidence", confidence)
    if design == "one_run":
        bounds, audited, pointwise, counts = _one_run(x, b, d, level, selection, threshold, guesses)
    else:
        bounds, audited, pointwise, counts = _repeated_runs(x, b, d, level, selection, threshold, guesses)
    _warn_of_sign(x, b)
    fixed = threshold is not None or guesses is not None
    kind: Kind = "heuristic" if selection == "as_published" and not fixed else "statistical"
    words = "fixed" if fixed else selection
    method = f"{design.replace('_', ' ')}, {'FALSE as published' if kind == 'heuristic' else words}"

    def estimate(lower: FloatArray, value: FloatArray, unit: Unit, of_kind: Kind, text: str) -> Estimate:
        return Estimate(
            np.maximum(lower, value), lower, np.full_like(lower, np.inf), kind=of_kind, unit=unit, method=text,
            confidence=level if of_kind == "statistical" else None,
        )

    (epsilon, at_half), (mu, mu_at_half) = bounds
    result = estimate(epsilon, at_half, "nats", kind, method), estimate(mu, mu_at_half, "1", kind, method)
    rows = counts.astype(np.int64)
    if not single:
        return ScoreAudit(*result, design, words, d, np.zeros(0), None, rows)
    order = np.argsort(audited, kind="stable")
    text = f"{design.replace('_', ' ')}, fixed"
    curve = estimate(pointwise[order], pointwise[order], "nats", "statistical", text)
    return ScoreAudit(result[0][0], result[1][0], design, words, d, audited[order], curve, rows[0])


def hockey_stick_of_samples(
    p: ArrayLike, q: ArrayLike, epsilon: ArrayLike = 0.0, *, confidence: float = 0.95,
    selection: Literal["simultaneous", "split"] = "simultaneous",
) -> Estimate:
    """A lower bound of D_e(p || q) = sup over S of p(S) - e^epsilon q(S) from samples of both; total variation at 0.

    Nothing is known from above: no number of samples bounds a divergence of unknown distributions. Sets S are the
    scores above a threshold, whose choice is paid for.

    Parameters
    ----------
    p, q : array_like, shape (n,), (m,)
        Independent samples of each; of vectors, a score of each that was chosen without these samples, higher where p
        is likelier. No NaN; infinities are scores like others.
    epsilon : array_like, default 0
        Nats, of any sign; each bound of several has this confidence for itself.
    confidence : float
        Level of each bound.
    selection : {"simultaneous", "split"}
        How the threshold is chosen, as in ``audit_scores``.

    Returns
    -------
    Estimate, shape of epsilon
        ``lower`` at this confidence, never below 0 or 1 - e^epsilon; ``value``, the same bound at confidence 1/2 if
        that is larger; ``upper`` is 1.

    Raises
    ------
    DomainError, ShapeError
        NaN, no samples, more than one dimension, numbers out of range.

    Notes
    -----
    **Accuracy** ``tests/auditing/test_samples.py`` counts the misses in 500 pairs of samples of each of five pairs.

    Source: binomial bounds of Clopper and Pearson 1934 at the thresholds of ``audit_scores``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.auditing import hockey_stick_of_samples
    >>> rng = np.random.default_rng(1)
    >>> print(f"{hockey_stick_of_samples(rng.normal(1.0, 1.0, 4000), rng.normal(0.0, 1.0, 4000)):.3f}")  # truth 0.383
    0.344 [0.332, 1.000]
    """
    samples = [validate.real(name, x, "numbers", answer=False) for name, x in (("p", p), ("q", q))]
    for name, x in zip("pq", samples, strict=True):
        if x.ndim != 1 or x.size == 0:
            raise ShapeError(f"{name} must be of shape (n,), n >= 1; got {x.shape}. Pass one number for each sample.")
    level = validate.open_probability("confidence", confidence)
    levels = validate.real("epsilon", epsilon, "numbers")
    with np.errstate(over="ignore"):
        factor = np.exp(levels) * (1.0 + _SAMPLE_ROUNDING)
    validate.choice("selection", selection, ("simultaneous", "split"))
    member = np.arange(samples[0].size + samples[1].size) < samples[0].size
    choosing, audited, tests = _candidates(np.concatenate(samples), member, selection, None)

    def bound(error: float) -> FloatArray:
        def differences(rows: FloatArray) -> FloatArray:
            least, most = least_rates(rows[:, 0], rows[:, 1], error), most_rates(rows[:, 2], rows[:, 3], error)
            return np.asarray(least - np.multiply.outer(factor, most) - _SAMPLE_ROUNDING)

        best = np.argmax(differences(choosing), axis=-1)[..., None]
        chosen = np.take_along_axis(differences(audited), best, axis=-1)[..., 0]
        return np.maximum(chosen, np.maximum(0.0, -np.expm1(np.minimum(levels, 0.0)) * (1.0 - _SAMPLE_ROUNDING))) + 0.0

    lower, value = bound((1.0 - level) / (2 * tests)), bound((1.0 - HALVED) / (2 * tests))
    method = f"thresholds of samples, {selection}"
    return estimate_around(value, lower, np.ones_like(lower), "probability", method, level)


def _warn_of_sign(x: FloatArray, b: BoolArray) -> None:
    """Warn where members score lower than chance explains: the bounds of such scores say nothing."""
    inside = b.sum(axis=1).astype(np.float64)
    pairs = inside * (x.shape[1] - inside)
    areas = np.atleast_1d(auc(x, b))
    excess = (areas - 0.5) / np.sqrt((x.shape[1] + 1.0) / (12.0 * pairs))  # in standard errors without ties
    if float(excess.sum()) < -_CLEARLY_LOWER * math.sqrt(len(x)):
        warned(
            f"scores must be higher for members, and here members score lower (AUC {areas.mean():.3f}), so that "
            "the bounds say nothing: pass -scores."
        )


def _repeated_runs(
    x: FloatArray, b: BoolArray, delta: float, level: float, selection: str, threshold: Any, guesses: Any
) -> tuple[list[list[FloatArray]], FloatArray, FloatArray, FloatArray]:
    """Bounds of epsilon and of mu at both levels, (A,) each, thresholds and their own bounds of one audit, counts."""
    if guesses is not None:
        raise DomainError(f"guesses must be left out for repeated runs; got {guesses!r}. Pass a threshold, or none.")
    fixed = None if threshold is None else validate.scalar("threshold", threshold)
    errors = (1.0 - level, 1.0 - HALVED)
    best, tests = [], np.empty(len(x))  # the rows of counts by audit, quantity and level, and among how many they are
    for k, (scores, member) in enumerate(zip(x, b, strict=True)):
        choosing, audited, tests[k] = _candidates(scores, member, selection, fixed)
        # The bound by two rates says at which threshold the other one is computed.
        best.append([[audited[_screened(choosing, quantity, delta, error / tests[k])] for error in errors]
                     for quantity in range(2)])
    chosen = np.array(best)
    form = "two_bounds" if selection == "as_published" and fixed is None else "product"
    bounds = [[np.empty(len(x)) for _ in errors] for _ in range(2)]
    for quantity in range(2):
        for k, error in enumerate(errors):
            for number in np.unique(tests):
                some = tests == number
                rows = chosen[some, quantity, k]
                bounds[quantity][k][some] = _bounds(rows, quantity, delta, form, float(error / number))
    thresholds = np.unique(x[0]) if fixed is None else np.array([fixed])
    thresholds = thresholds[np.unique(np.linspace(0, thresholds.size - 1, _MOST_POINTS).astype(np.intp))]
    rows = _counts_at(thresholds, np.sort(x[0][b[0]]), np.sort(x[0][~b[0]]))
    pointwise = _bounds(rows, 0, delta, "product", 1.0 - level) if len(x) == 1 else np.zeros(0)
    return bounds, thresholds, pointwise, chosen[:, 0, 0]


def _candidates(
    scores: FloatArray, member: BoolArray, selection: str, fixed: float | None
) -> tuple[FloatArray, FloatArray, int]:
    """Rows of counts that choose a threshold, those that are audited, and how many tests share the error."""
    inside, outside = np.sort(scores[member]), np.sort(scores[~member])
    if fixed is None and selection == "split":
        halves = _halves(inside), _halves(outside)
        thresholds = np.unique(np.r_[halves[0][0], halves[1][0]])
        first, second = (_counts_at(thresholds, *(np.sort(half[i]) for half in halves)) for i in (0, 1))
        return first, second, 1
    if fixed is None and selection == "simultaneous":
        rows = _counts_at_ranks(inside, outside)
        return rows, rows, len(rows)
    rows = _counts_at(np.unique(scores) if fixed is None else np.array([fixed]), inside, outside)
    return rows, rows, 1


def _one_run(
    x: FloatArray, b: BoolArray, delta: float, level: float, selection: str, threshold: Any, guesses: Any
) -> tuple[list[list[FloatArray]], FloatArray, FloatArray, FloatArray]:
    """As ``_repeated_runs``, of the canaries of one run each."""
    if threshold is not None:
        raise DomainError(f"threshold must be left out for one run; got {threshold!r}. Pass guesses, or none.")
    if selection == "split":
        raise DomainError("selection must be simultaneous or as_published for one run; got 'split'. Pass guesses.")
    m = x.shape[1]
    inside = b.sum(axis=1)
    rarest = int(np.argmax(np.abs(inside - 0.5 * m)))
    few = min(int(inside[rarest]), m - int(inside[rarest]))
    if 2.0 * special.bdtr(few, m, 0.5) < _UNFAIR:
        raise DomainError(
            f"membership must come from fair coins in one run; got {int(inside[rarest])} members of {m}. Toss a coin "
            "for each canary, or audit repeated runs."
        )
    if guesses is None:
        numbers = [m, *(m >> j for j in range(1, m.bit_length()) if m >> j >= _LEAST_GUESSES)]
    else:
        numbers = [validate.count("guesses", guesses, 1, m)]
    order = random_streams.generator(0).permutation(m)
    order = order[np.argsort(-x[:, order], axis=1, kind="stable")]  # (A, n) from the largest score on
    ranked = np.take_along_axis(b, order, axis=1)
    found_in = np.concatenate([np.zeros((len(x), 1)), np.cumsum(ranked, axis=1)], axis=1)
    rows = np.empty((len(x), len(numbers), 3))
    for k, r in enumerate(numbers):
        wrong_end = found_in[:, m] - found_in[:, m - r // 2]  # members among the smallest scores
        rows[:, k] = np.stack([found_in[:, -(-r // 2)] + r // 2 - wrong_end, *np.full((2, len(x)), r)], axis=1)
    rows[:, :, 2] = m
    share = 1 if selection == "as_published" else len(numbers)
    flat = rows.reshape(-1, 3)
    errors = (1.0 - level, 1.0 - HALVED)
    each = [[_bounds(flat, quantity, delta, "exact", error / share).reshape(rows.shape[:2]) for error in errors]
            for quantity in range(2)]
    bounds = [[number.max(axis=1) for number in numbers] for numbers in each]
    pointwise = _bounds(rows[0], 0, delta, "exact", 1.0 - level) if len(x) == 1 else np.zeros(0)
    return bounds, np.array(numbers, dtype=np.float64), pointwise, rows[np.arange(len(x)), each[0][0].argmax(axis=1)]


def _bounds(rows: FloatArray, quantity: int, delta: float, form: str, error: float) -> FloatArray:
    """Lower bounds of epsilon (quantity 0) or of mu (1) of each row of counts, each distinct one computed once."""
    distinct, index = distinct_rows(rows)
    if quantity == 1:
        return np.asarray(mu_bounds(distinct, form, error)[index])
    with_delta = np.c_[distinct, np.full(len(distinct), delta)]
    return np.asarray(epsilon_bounds(with_delta, form, error)[index])


def _counts_at(thresholds: FloatArray, inside: FloatArray, outside: FloatArray) -> FloatArray:
    """Rows (tp, n1, fp, n0) of claims of scores of at least each threshold, from sorted scores."""
    counts = [n.size - np.searchsorted(n, thresholds, side="left") for n in (inside, outside)]
    sizes = [np.full(thresholds.size, n.size) for n in (inside, outside)]
    return np.stack([counts[0], sizes[0], counts[1], sizes[1]], axis=1).astype(np.float64)


def _counts_at_ranks(inside: FloatArray, outside: FloatArray) -> FloatArray:
    """Rows of counts at the thresholds of fixed ranks, whose own count is the rank even where scores are tied."""
    rows = []
    for k in _ranks(outside.size):  # claimed is what exceeds the (k+1)-th largest non-member
        t = outside[outside.size - 1 - k]
        rows.append((inside.size - np.searchsorted(inside, t, side="right"), inside.size, k, outside.size))
    for k in _ranks(inside.size):  # claimed is what is at least the (k+1)-th smallest member
        false = outside.size - np.searchsorted(outside, inside[k], side="left")
        rows.append((inside.size - k, inside.size, false, outside.size))
    return np.array(rows, dtype=np.float64)


def _ranks(size: int) -> list[int]:
    """0, 1, 2, 4, ... up to half of the scores."""
    return [0, *(2**j for j in range(size.bit_length()) if 2 * 2**j <= size)]


def _screened(rows: FloatArray, quantity: int, delta: float, error: float) -> int:
    """The row whose bound by two rates is largest, or near it; all rows have the same totals."""
    lowest = _rates(rows[:, 0], float(rows[0, 1]), error / 2.0, False)
    highest = _rates(rows[:, 2], float(rows[0, 3]), error / 2.0, True)
    with np.errstate(divide="ignore", invalid="ignore"):
        if quantity == 1:
            result = special.ndtri(lowest) - special.ndtri(highest)
        else:
            result = np.fmax((lowest - delta) / highest, (1.0 - delta - highest) / (1.0 - lowest))
    return int(np.argmax(np.where(np.isnan(result), -np.inf, result)))


def _rates(hits: FloatArray, trials: float, error: float, upper: bool) -> FloatArray:
    """Bounds of a rate, from a table of all numbers of hits unless few of many are needed."""
    if trials > max(_LARGEST_TABLE, 8 * hits.size):
        return most_rates(hits, trials, error) if upper else least_rates(hits, trials, error)
    return _rate_table(trials, error, upper)[hits.astype(np.intp)]


@functools.lru_cache(maxsize=256)
def _rate_table(trials: float, error: float, upper: bool) -> FloatArray:
    """Bounds of a rate for every number of hits."""
    hits = np.arange(trials + 1.0)
    return most_rates(hits, trials, error) if upper else least_rates(hits, trials, error)


def _halves(ordered: FloatArray) -> tuple[FloatArray, FloatArray]:
    """One half of the scores and the other, drawn without regard to their order."""
    order = random_streams.generator(0).permutation(ordered.size)
    return ordered[order[: ordered.size // 2]], ordered[order[ordered.size // 2 :]]


def _checked_scores(scores: Any, membership: Any) -> tuple[FloatArray, BoolArray]:
    """Scores of one or two dimensions and membership of their shape, with both kinds in every audit."""
    x = validate.real("scores", scores, "numbers", answer=False)
    if x.ndim not in (1, 2) or x.size == 0:
        raise ShapeError(f"scores must be of shape (n,) or (A, n); got {x.shape}. Pass a row of scores for each audit.")
    x, b = scores_and_membership(x, membership)
    inside = b.sum(axis=-1)
    bad = np.argwhere(np.atleast_1d((inside == 0) | (inside == x.shape[-1])))
    if bad.size:
        row = int(bad[0, 0])
        kind = "non-members" if np.atleast_1d(inside)[row] else "members"
        index = f" in audit {row} ({len(bad)} of {len(x)} audits)" if x.ndim == 2 else ""
        raise DomainError(f"membership must have members and non-members; got no {kind}{index}. Score both kinds.")
    return x, b
