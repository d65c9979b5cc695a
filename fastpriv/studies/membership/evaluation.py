"""How well an attack finds members: ROC curves, AUC, TPR at a small FPR, membership advantage, gamma-BWMA.

Notation: R releases of K people each; s_rk the score of person k at release r, higher for members; b_rk in {0, 1} the
membership; TPR(t) = E sum_k b_rk 1[s_rk >= t] / E sum_k b_rk and FPR(t) the same with 1 - b_rk, over all releases
(pooled). AUC is the probability that a member of one release scores higher than a non-member of another, ties counted
1/2. a = 1 - confidence.

Independence. Releases are independent, the people of one release are not: they share its noise, and its size. So the
unit of every interval is the release. Where a release has one target (K = 1) the units are single outcomes, and
intervals of rates are those of Clopper and Pearson. Otherwise a rate is a ratio of means, E H / E N with 0 <= H <= N <=
K in each release, and the candidate p is refused by bets on H - p N. The level is exact for any number of releases and
any dependence within one. Bets are of two kinds. Those of ``fixed_samples`` are nearly as sharp as a normal
approximation; they test the candidates one after another, and serve for single bounds. Those of
``confidence_sequences`` have factors 1 + c (H - p N) that decrease in p, so that the candidates that are left are an
interval, found by bisection; they serve for many thresholds at once. An AUC is the mean of the AUCs of disjoint groups.

Thresholds. A level is not paid for by looking at fixed thresholds: the threshold t* at which the population's FPR is
``fpr``, or at which the population's advantage is largest, is one number, however unknown. An upper bound over all t of
bounds that hold at one t each therefore holds for the best t. A lower bound is that of one threshold which other
releases have chosen. Where both ends of a rate are bounded at a few thresholds, those between follow, as rates fall in
t.

Sources: Mann and Whitney 1947; Clopper and Pearson 1934; Waudby-Smith and Ramdas 2023 (bets); Hoeffding 1963 (disjoint
groups); Thompson 1936 (intervals
of quantiles); Yeom et al. 2018 (membership advantage).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ...base import random_streams, validate
from ...base.errors import DomainError, ShapeError
from ...base.estimate import Estimate, Result
from ...base.inverse import bisect
from ...base.numerics import BoolArray, FloatArray, IntArray, next_above
from ...composition import RiskStatement
from ...sampling.statistics.confidence_sequences import BoundedMean
from ...sampling.statistics.fixed_samples import bounded_mean_interval, ratio_lower_bound
from ...sampling.statistics.intervals import binomial_interval, estimate_around
from ..kernels import _concordance
from .attackers import empirical_threshold
from .panels import membership_array

_HALVINGS = 16  # of the bisection for a ratio: the bound is within 2^-16 of the estimate of the best one
# Groups that the bets on an AUC need, and releases of one group.
_GROUPS, _LARGEST_GROUP = 400, 16
# Targets of a kind in one group, over the fourth root of all: larger groups waste fewer pairs, more groups allow bolder
# bets.
_TARGETS_PER_ROOT = 0.8
# Columns and releases up to which the sharper bets serve, which test their candidates one after another.
_SHARP_COLUMNS, _SHARP_RELEASES = 4, 20_000
# Levels of FPR and of TPR at whose thresholds a band is computed: even ones, and small ones for the ends.
_BAND_LEVELS = np.concatenate([np.linspace(0.0, 1.0, 41), np.geomspace(1e-4, 0.03, 6)])
_FINE_LEVELS = np.concatenate([np.linspace(0.0, 1.0, 401), np.geomspace(1e-4, 0.03, 20)])  # of single targets
# Why a bound is trivial.
_FEW_PEOPLE = "{} releases are too few: people of one release may be claimed all at once"
_FEW_OUTCOMES = "{} non-members are too few: at least {} are needed"  # to prove the FPR of any threshold


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RocCurve(Result):
    """An empirical ROC curve: ``claim a member where score >= threshold``, with a band.

    Parameters
    ----------
    fpr, tpr : Estimate, shape (n + 1,)
        Rates at each threshold, ascending from (0, 0) to (1, 1). The bounds hold for the rates of the population at all
        thresholds and of both kinds together.
    thresholds : ndarray, shape (n + 1,)
        ``inf`` and then the n distinct scores, descending.

    Examples
    --------
    >>> from fastpriv.membership import roc_curve
    >>> roc_curve([0.1, 0.4, 0.35, 0.8], [False, False, True, True]).thresholds.tolist()
    [inf, 0.8, 0.4, 0.35, 0.1]
    """

    fpr: Estimate
    tpr: Estimate
    thresholds: FloatArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttackEvaluation(Result):
    """What an attack attains, each number with an interval of its own level; see ``evaluate_attack``.

    Parameters
    ----------
    auc : Estimate
        Area under the ROC curve.
    tpr_at_fpr : Estimate
        Largest TPR of a threshold whose FPR is at most ``fpr``.
    advantage : Estimate
        Membership advantage: the largest TPR - FPR of one threshold.
    bwma : Estimate
        The sum over k of (1 - gamma) P(claim k, b_k = 1) - gamma P(claim k, b_k = 0), of the best threshold or of
        posteriors above gamma; an entry for each gamma.
    fpr, gamma, confidence : float, float or ndarray, float
        As asked.
    releases, members, non_members : int
        Independent releases, and outcomes of both kinds.
    remarks : tuple of str
        Which bounds are trivial, and why.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.membership import evaluate_attack
    >>> membership = np.arange(4000) % 2 == 0
    >>> scores = np.random.default_rng(1).normal(size=4000) + membership
    >>> print(f"{evaluate_attack(scores, membership).auc:.3f}")
    0.758 [0.736, 0.771]
    """

    auc: Estimate
    tpr_at_fpr: Estimate
    advantage: Estimate
    bwma: Estimate
    fpr: float
    gamma: float | FloatArray
    confidence: float
    releases: int
    members: int
    non_members: int
    remarks: tuple[str, ...] = ()

    def risk_statement(self, prior: float = 0.01, record: str = "record") -> RiskStatement:
        """What this attack attains, in sentences: less than what the best attack does; see ``risk.statement``."""
        sample = f"{self.members:,} members and {self.non_members:,} non-members of {self.releases:,} releases."
        return RiskStatement.of_attack(self.tpr_at_fpr, self.fpr, self.advantage, prior, record, sample)


def auc(scores: ArrayLike, membership: ArrayLike) -> float | FloatArray:
    """Area under the empirical ROC curve of each row of scores: the Mann-Whitney statistic, ties counted 1/2.

    Parameters
    ----------
    scores : array_like, shape (..., n)
        Scores, higher for members; infinities are scores like others.
    membership : array_like of bool, shape (..., n) or (n,)
        Who is a member, for each row or for all.

    Returns
    -------
    float or ndarray, shape (...)
        (pairs with the member higher + ties / 2) / (members x non-members).

    Raises
    ------
    DomainError, ShapeError
        NaN; a row without members, or without non-members; shapes that differ.

    Notes
    -----
    **Accuracy** Pairs are counted in whole numbers; the one division is rounded.
    ``tests/membership/test_evaluation.py`` compares with all pairs, one by one.

    Source: Mann and Whitney 1947.

    Examples
    --------
    >>> auc([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    0.75
    """
    x, b = scores_and_membership(scores, membership)
    twice, members = _counted(x.reshape(-1, x.shape[-1]), b.reshape(-1, x.shape[-1]))
    pairs = members * (x.shape[-1] - members)
    if not pairs.all():
        row = int(np.argmin(pairs > 0))
        kind = "non-members" if members[row] else "members"
        raise DomainError(
            f"membership must have members and non-members in each row; got no {kind} in row {row} "
            f"({int((pairs == 0).sum())} of {len(pairs)} rows). Leave such rows out."
        )
    answer = twice / (2.0 * pairs)
    return float(answer[0]) if x.ndim == 1 else answer.reshape(x.shape[:-1])


def roc_curve(scores: ArrayLike, membership: ArrayLike, *, confidence: float = 0.95) -> RocCurve:
    """Empirical ROC curve, pooled over releases, with a simultaneous band.

    Parameters
    ----------
    scores : array_like, shape (R, K) or (n,)
        Scores of K people at each of R independent releases, or of n independent targets.
    membership : array_like of bool, shape (R, K), (K,) or (n,)
        Who is a member.
    confidence : float
        Level of the band: the chance that both rates of the population lie in their bounds at all thresholds.

    Returns
    -------
    RocCurve

    Raises
    ------
    DomainError, ShapeError
        NaN; no members or no non-members; wrong shapes; a level outside (0, 1).

    Notes
    -----
    One half of the releases chooses about 60 thresholds, the other half gives the bounds there (union bound over all);
    between them the bounds are steps. One release gives no bounds but 0 and 1.

    **Accuracy** ``tests/membership/test_evaluation_coverage.py`` counts the misses.

    Source: see the head of this module.

    Examples
    --------
    >>> curve = roc_curve([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    >>> curve.fpr.value.tolist(), curve.tpr.value.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """
    x, b = _of_releases(scores, membership)
    level = validate.open_probability("confidence", confidence)
    flat, member = x.ravel(), b.ravel()
    order = np.argsort(-flat, kind="stable")
    ordered = flat[order]
    last = np.flatnonzero(np.r_[ordered[1:] != ordered[:-1], True])
    thresholds = np.r_[math.inf, ordered[last]]
    rates = [np.r_[0, np.cumsum(kind[order])[last]] / kind.sum() for kind in (~member, member)]
    choosing, judging = _Outcomes(x, b).halves()
    grid = _band_thresholds(choosing.scores, choosing.membership)
    after = np.searchsorted(grid, thresholds)  # the first of the grid that is not below
    until = np.searchsorted(grid, thresholds, side="right") - 1  # the last one that is not above
    bands = []
    for kind, rate in enumerate(rates):
        lower, upper = judging.rate_bounds(kind, grid, (1.0 - level) / (4.0 * max(grid.size, 1)))
        lower, upper = np.r_[lower, 0.0][after], np.r_[upper, 1.0][until]
        upper[0] = 0.0 if np.isfinite(flat).all() else upper[0]  # no finite score is claimed at the threshold inf
        # rates rise along the curve
        lower, upper = np.maximum.accumulate(lower), np.minimum.accumulate(upper[::-1])[::-1]
        method = "counts, band of bets on half the releases"
        bands.append(estimate_around(rate, lower, upper, "probability", method, level))
    return RocCurve(bands[0], bands[1], thresholds)


def evaluate_attack(
    scores: ArrayLike, membership: ArrayLike, *, gamma: ArrayLike = 0.5, fpr: float = 1e-3,
    confidence: float = 0.95, posterior: bool = False,
) -> AttackEvaluation:
    """AUC, TPR at a small FPR, membership advantage and gamma-BWMA of an attack, with intervals.

    Parameters
    ----------
    scores : array_like, shape (R, K) or (n,)
        Scores of K people at each of R independent releases, or of n independent targets, one at a release of its own.
    membership : array_like of bool, shape (R, K), (K,) or (n,)
        Who is a member.
    gamma : array_like
        Weight in (0, 1) of false claims against missed members, of the gamma-BWMA.
    fpr : float
        False-positive rate in (0, 1) at which the TPR is evaluated.
    confidence : float
        Level of each interval; they do not hold at this level all together.
    posterior : bool
        Whether scores are posterior probabilities: then the BWMA is that of the claims ``score > gamma``. Otherwise it
        is that of the best threshold for each gamma, and the interval pays for the choice.

    Returns
    -------
    AttackEvaluation
        ``remarks`` says where outcomes are too few for a bound.

    Raises
    ------
    DomainError, ShapeError
        NaN; no members or no non-members; wrong shapes; parameters outside (0, 1); posteriors outside [0, 1].

    Notes
    -----
    One threshold serves all releases, as an attacker has it who sees one. The mean AUC of single releases, at which
    thresholds that are common to a release do not count, is ``auc(scores, membership).mean()``.

    Releases are the independent units, whatever happens within one: see the head of this module. Of single targets
    intervals of rates are exact. At FPR 1e-3 a lower bound needs some 4,400 single non-members, or 15,000 releases of
    many people; with fewer it is 0 and a remark says so.

    **Accuracy** ``tests/membership/test_evaluation_coverage.py`` counts the misses of all four over many seeds.

    Source: see the head of this module; advantage: Yeom et al. 2018, def. 4.

    Examples
    --------
    >>> import numpy as np
    >>> membership = np.arange(4000) % 2 == 0
    >>> scores = np.random.default_rng(1).normal(size=4000) + membership
    >>> found = evaluate_attack(scores, membership, fpr=0.1)
    >>> print(f"{found.tpr_at_fpr:.3f} {found.advantage:.3f}")
    0.370 [0.318, 0.434] 0.375 [0.332, 0.429]
    """
    x, b = _of_releases(scores, membership)
    level = validate.open_probability("confidence", confidence)
    posterior = validate.flag("posterior", posterior)
    rate = validate.open_probability("fpr", fpr)
    weights = validate.real("gamma", gamma, "between 0 and 1, exclusive", lambda p: (p > 0) & (p < 1))
    if posterior and not ((x >= 0.0) & (x <= 1.0)).all():
        worst = float(x[(x < 0.0) | (x > 1.0)][0])
        raise DomainError(
            f"scores must be probabilities between 0 and 1 where posterior=True; got {worst!r}. Leave posterior out "
            "for scores of other kinds."
        )
    outcomes = _Outcomes(x, b)
    result, remark = _tpr_at_fpr(outcomes, rate, level)
    advantage = _best_threshold(outcomes, np.ones(1), np.ones(1), level, joint=False, name="advantage")[0]
    if posterior:
        gains = _bwma_of_posteriors(x, b, weights.ravel(), level)
    else:
        gains = _best_threshold(outcomes, 1.0 - weights.ravel(), weights.ravel(), level, joint=True, name="BWMA")
    bwma = gains[np.arange(weights.size).reshape(weights.shape)]
    return AttackEvaluation(
        _pooled_auc(outcomes, level), result, advantage, bwma, rate, float(weights) if weights.ndim == 0 else weights,
        level, len(x), int(b.sum()), int((~b).sum()), (remark,) if remark else (),
    )


def _bwma_of_posteriors(x: FloatArray, b: BoolArray, gamma: FloatArray, level: float) -> Estimate:
    """BWMA of the claims ``score > gamma``, for each gamma."""
    numbers = []
    for g in gamma.tolist():
        gains = ((x > g) * np.where(b, 1.0 - g, -g)).mean(axis=1)
        result = bounded_mean_interval(gains, level, low=-g, high=1.0 - g, outcomes=x.size)
        numbers.append(np.array(result) * x.shape[1])
    value, lower, upper = np.array(numbers).reshape(-1, 3).T
    return estimate_around(value, lower, upper, "1", "BWMA of posteriors above gamma, bets on releases", level)


def mean_over_simulations(values: FloatArray, level: float, method: str = "simulated releases") -> Estimate:
    """The mean of nonnegative numbers with Student's interval; infinite with bounds that are infinite."""
    mean, half = float(values.mean()), 0.0
    if math.isfinite(mean) and values.size > 1:
        quantile = float(special.stdtrit(values.size - 1, 0.5 + 0.5 * level))
        half = quantile * float(values.std(ddof=1)) / math.sqrt(values.size)
    return estimate_around(mean, max(mean - half, 0.0), mean + half, "1", method, level)


class _Outcomes:
    """Scores and membership of R releases of K people, and bounds for rates among them."""

    def __init__(self, scores: FloatArray, membership: BoolArray) -> None:
        self.scores, self.membership = scores, membership
        self.people = scores.shape[1]
        self.totals = [(~membership).sum(axis=1), membership.sum(axis=1)]  # of kind 0, non-members, and 1, members

    def halves(self) -> tuple[_Outcomes, _Outcomes]:
        """The outcomes of one half of the releases and of the other, the larger one."""
        order, middle = _order(len(self.scores)), len(self.scores) // 2
        item, other = (_Outcomes(self.scores[i], self.membership[i]) for i in (order[:middle], order[middle:]))
        return item, other

    def claimed(self, kind: int, thresholds: FloatArray) -> IntArray:
        """How many of a kind score at least each threshold, for each release, shape (R, e)."""
        of_kind = self.membership == bool(kind)
        columns = [((self.scores >= t) & of_kind).sum(axis=1) for t in thresholds]
        return np.stack(columns, axis=1) if columns else np.zeros((len(self.scores), 0), dtype=np.int64)

    def groups_of_targets(self, per_root: float) -> list[FloatArray]:
        """Return scores of members and of non-members in disjoint groups, (groups, members) and (groups, others).

        A group has so many of the rarer kind over the fourth root of all of it, at least one.
        """
        order = _order(len(self.scores))
        kinds = [self.scores[order, 0][self.membership[order, 0] == kind] for kind in (True, False)]
        fewest = min(map(len, kinds))
        groups = fewest // max(1, round(per_root * fewest**0.25))
        return [kind[: len(kind) // groups * groups].reshape(groups, -1) for kind in kinds]

    def gains(self, thresholds: FloatArray, reward: FloatArray, price: FloatArray, *, joint: bool) -> list[FloatArray]:
        """Return independent numbers whose mean is reward x rate of members - price x rate of others, per threshold.

        They are means over the people of a release (``joint``), or over groups of targets.
        """
        if joint:
            worth = [np.where(self.membership, r, -p) for r, p in zip(reward.tolist(), price.tolist(), strict=True)]
            return [((self.scores >= t) * w).mean(axis=1) for t, w in zip(thresholds, worth, strict=True)]
        members, others = self.groups_of_targets(0.0)
        return [
            r * (members >= t).mean(axis=1) - p * (others >= t).mean(axis=1)
            for t, r, p in zip(thresholds, reward, price, strict=True)
        ]

    def rate_bounds(
        self, kind: int, thresholds: FloatArray, error: float, *, joint: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """A lower and an upper bound at each threshold, each failing with probability ``error`` at most.

        They are of the rate among those of the kind, or (``joint``) of the probability to be of the kind and claimed.
        """
        if self.people == 1:
            scores = np.sort(self.scores[self.membership == bool(kind)])
            claimed = scores.size - np.searchsorted(scores, thresholds)
            total = len(self.scores) if joint else scores.size
            if total == 0:
                return np.zeros(claimed.shape), np.ones(claimed.shape)
            lower = binomial_interval(claimed, total, 1.0 - error, "lower").lower
            return np.asarray(lower), np.asarray(binomial_interval(claimed, total, 1.0 - error, "upper").upper)
        hits = self.claimed(kind, thresholds)
        totals = np.full(len(hits), self.people) if joint else self.totals[kind]
        return lower_ratio(hits, totals, self.people, error), 1.0 - lower_ratio(
            totals[:, None] - hits, totals, self.people, error
        )


def lower_ratio(hits: IntArray, totals: IntArray, most: int, error: float) -> FloatArray:
    """Lower bounds, shape (e,), for the ratios E hits / E totals; ``hits`` (R, e), ``totals`` (R,) <= ``most``."""
    total = int(totals.sum())
    if total == 0 or not hits.size:
        return np.zeros(hits.shape[1])
    if hits.shape[1] <= _SHARP_COLUMNS and len(hits) <= _SHARP_RELEASES:
        outcomes = len(hits) * most
        return np.array([ratio_lower_bound(row, totals, most, error, outcomes=outcomes) for row in hits.T])
    accepted = hits.sum(axis=0) / total
    refused, _ = bisect(
        lambda ratio: ~ratio_exceeds(hits, totals, most, ratio, error), np.zeros_like(accepted), accepted, _HALVINGS
    )
    return np.asarray(refused)


def ratio_exceeds(hits: IntArray, totals: IntArray, most: int, ratio: Any, error: float) -> BoolArray:
    """Whether bets prove that E hits / E totals exceeds ``ratio``, each wrongly with probability ``error`` at most."""
    if most == 1:
        bound = binomial_interval(hits.sum(axis=0), max(int(totals.sum()), 1), 1.0 - error, "lower").lower
        return np.asarray(bound > ratio)
    mean = BoundedMean(hits.shape[1], high=math.inf)
    mean.update(np.maximum((hits - ratio * totals[:, None]) / most + ratio, 0.0))
    return mean.exceeds(np.broadcast_to(ratio, hits.shape[1:]), error)


def _pooled_auc(outcomes: _Outcomes, level: float) -> Estimate:
    """The AUC of all pairs; bounds by bets on disjoint groups, of targets or of releases."""
    x, b = outcomes.scores, outcomes.membership
    value, lower, upper = float(auc(x.ravel(), b.ravel())), 0.0, 1.0
    order = _order(len(x))
    if outcomes.people == 1:
        rows = outcomes.groups_of_targets(_TARGETS_PER_ROOT)
        areas = auc(np.hstack(rows), np.arange(rows[0].shape[1] + rows[1].shape[1]) < rows[0].shape[1])
        _, lower, upper = bounded_mean_interval(areas, level, outcomes=rows[0].size)
        return estimate_around(value, lower, upper, "probability", "Mann-Whitney, bets on groups of targets", level)
    size = min(max(2, len(x) // _GROUPS), _LARGEST_GROUP)
    groups = len(x) // size
    if groups:
        order = order[: groups * size]
        twice, members = (number.reshape(groups, size) for number in _counted(x[order], b[order]))
        others = outcomes.people - members
        across = _counted(x[order].reshape(groups, -1), b[order].reshape(groups, -1))[0] - twice.sum(axis=1)
        totals = 2 * (members.sum(axis=1) * others.sum(axis=1) - (members * others).sum(axis=1))
        most = (size * outcomes.people) ** 2 // 2
        error = (1.0 - level) / 2.0
        lower, remainder = (
            ratio_lower_bound(hits, totals, most, error, outcomes=x.size) for hits in (across, totals - across)
        )
        upper = 1.0 - remainder
    return estimate_around(value, lower, upper, "probability", "Mann-Whitney, bets on groups of releases", level)


def _tpr_at_fpr(outcomes: _Outcomes, fpr: float, level: float) -> tuple[Estimate, str]:
    """TPR at the threshold t* of the population's FPR: P(s >= t*) >= fpr >= P(s > t*) for non-members."""
    error = (1.0 - level) / 4.0
    others = np.sort(outcomes.scores[~outcomes.membership])
    distinct, totals = np.unique(others), outcomes.totals[0]
    above = _next_threshold(distinct)

    def exceeded(threshold: Any) -> bool:  # proof that P(s >= threshold) > fpr
        return bool(ratio_exceeds(outcomes.claimed(0, np.array([threshold])), totals, outcomes.people, fpr, error)[0])

    def missed(threshold: Any) -> bool:  # proof that P(s >= threshold) < fpr
        remainder = totals[:, None] - outcomes.claimed(0, np.array([threshold]))
        return bool(ratio_exceeds(remainder, totals, outcomes.people, 1.0 - fpr, error)[0])

    # the lowest and the highest candidate for t* that are not refused
    bounded = missed(math.nan)
    least = -math.inf
    if exceeded(distinct[0]):
        least = above[bisect_left(range(len(distinct)), True, key=lambda i: not exceeded(above[i]))]
    upper = outcomes.rate_bounds(1, np.array([least]), error)[1][0]
    lower = 0.0
    if bounded:
        highest = above[bisect_left(range(len(distinct)), True, key=lambda i: missed(distinct[i])) - 1]
        lower = outcomes.rate_bounds(1, np.array([highest]), error)[0][0]
    value = np.mean(outcomes.scores[outcomes.membership] > empirical_threshold(others, fpr))
    remark = ""
    if not bounded:
        needed = math.ceil(math.log(error) / math.log1p(-fpr))
        few = _FEW_OUTCOMES.format(len(others), needed) if outcomes.people == 1 else _FEW_PEOPLE.format(len(totals))
        remark = f"no threshold is proved to have an FPR of at most {fpr:g}: {few}; the lower bound of the TPR is 0"
    method = "quantile of non-members by tests at each threshold" + (f"; {remark}" if remark else "")
    return estimate_around(float(value), lower, upper, "probability", method, level), remark


def _next_threshold(scores: FloatArray) -> FloatArray:
    """Thresholds above each score and not above any higher one; NaN, which no score reaches, above infinity."""
    return np.where(np.isposinf(scores), math.nan, next_above(scores))


def _best_threshold(
    outcomes: _Outcomes, reward: FloatArray, price: FloatArray, level: float, *, joint: bool, name: str
) -> Estimate:
    """The largest reward x rate of members - price x rate of non-members over thresholds, of each entry of both.

    The rates are probabilities among each kind, or (``joint``) joint ones summed over the people of a release.
    """
    error = (1.0 - level) / 4.0
    scale = float(outcomes.people) if joint else 1.0
    choosing, judging = outcomes.halves()
    value, lower = np.zeros(len(reward)), np.zeros(len(reward))
    levels = _FINE_LEVELS if outcomes.people == 1 else _BAND_LEVELS
    grid = np.union1d(-math.inf, _band_thresholds(outcomes.scores, outcomes.membership, levels))
    # every threshold is -inf or between a grid point and the next, which it may equal, or above all of them
    most_true = outcomes.rate_bounds(1, np.r_[-math.inf, _next_threshold(grid)], error, joint=joint)[1]
    least_false = np.r_[outcomes.rate_bounds(0, grid, error, joint=joint)[0], 0.0]
    upper = np.max(reward[:, None] * most_true - price[:, None] * least_false, axis=1)
    if len(choosing.scores) and judging.membership.any() and not judging.membership.all():
        flat, member = choosing.scores.ravel(), choosing.membership.ravel()
        order = np.argsort(-flat, kind="stable")
        ends = np.r_[flat[order][1:] != flat[order][:-1], True]
        true, false = (
            np.cumsum(kind[order]) / (len(flat) if joint else max(kind.sum(), 1)) for kind in (member, ~member)
        )
        gains = np.where(ends, reward[:, None] * true - price[:, None] * false, -math.inf)
        best = gains.argmax(axis=1)
        chosen = np.where(gains.max(axis=1) > 0.0, flat[order][best], math.nan)  # no score reaches NaN
        hits = [judging.claimed(kind, chosen).sum(axis=0) for kind in (0, 1)]
        sizes = [judging.scores.size if joint else int(total.sum()) for total in judging.totals]
        value = np.where(np.isnan(chosen), 0.0, reward * hits[1] / sizes[1] - price * hits[0] / sizes[0])
        if joint or outcomes.people == 1:
            gains_of_units = judging.gains(chosen, reward, price, joint=joint)
            bounds = [
                bounded_mean_interval(row, 1.0 - 2.0 * error, "lower", low=-p, high=r, outcomes=judging.scores.size)
                for row, p, r in zip(gains_of_units, price.tolist(), reward.tolist(), strict=True)
            ]
            lower = np.maximum([bound.lower for bound in bounds], 0.0)  # no claim at all has advantage 0
        else:
            lowest = judging.rate_bounds(1, chosen, error)[0]
            highest = judging.rate_bounds(0, chosen, error)[1]
            lower = np.maximum(reward * lowest - price * highest, 0.0)
    value = np.clip(value, 0.0, reward)
    method = f"{name} of the best threshold: chosen by half the releases, judged by the others; band above"
    return estimate_around(value * scale, lower * scale, np.minimum(upper, reward) * scale, "1", method, level)


def _band_thresholds(scores: FloatArray, membership: BoolArray, levels: FloatArray = _BAND_LEVELS) -> FloatArray:
    """Distinct scores, ascending, near the levels of FPR and TPR where a band is computed."""
    groups = (scores[membership], scores[~membership])
    quantiles = [np.quantile(group, 1.0 - levels, method="nearest") for group in groups if group.size]
    return np.unique(np.concatenate([np.zeros(0), *quantiles]))


def _order(count: int) -> IntArray:
    """A fixed shuffling, so that no order of the rows, such as by membership, enters the halves and groups."""
    return np.asarray(random_streams.generator(0).permutation(count))


def _counted(x: FloatArray, b: BoolArray) -> tuple[IntArray, IntArray]:
    """Twice the Mann-Whitney statistic and the number of members of each row."""
    twice, members = np.empty(len(x), dtype=np.int64), np.empty(len(x), dtype=np.int64)
    _concordance.concordance(np.ascontiguousarray(x), np.ascontiguousarray(b).view(np.uint8), twice, members)
    return twice, members


def scores_and_membership(scores: Any, membership: Any) -> tuple[FloatArray, BoolArray]:
    """Scores of at least one dimension without NaN, and membership of their shape."""
    x = validate.real("scores", scores, "numbers", answer=False)
    if x.ndim == 0 or x.size == 0:
        raise ShapeError(f"scores must have one or more entries; got shape {x.shape}. Pass a row of scores.")
    b = membership_array("membership", membership, x.shape[-1])
    if b.shape not in (x.shape, x.shape[-1:]):
        raise ShapeError(
            f"membership must be of the shape of scores, {x.shape}, or of one row of them; got {b.shape}. Pass an "
            "entry for each score."
        )
    return x, np.broadcast_to(b, x.shape)


def _of_releases(scores: Any, membership: Any) -> tuple[FloatArray, BoolArray]:
    """Scores and membership of shape (R, K), with both kinds present; n single targets are n releases of one."""
    x, b = scores_and_membership(scores, membership)
    if x.ndim > 2:
        raise ShapeError(
            f"scores must be of shape (n,) for single targets or (R, K) for releases; got {x.shape}. Reshape them."
        )
    if b.all() or not b.any():
        kind = "non-members" if b.all() else "members"
        raise DomainError(
            f"membership must have members and non-members; got no {kind} among {b.size}. Simulate more releases."
        )
    return (x[:, None], b[:, None]) if x.ndim == 1 else (x, b)
