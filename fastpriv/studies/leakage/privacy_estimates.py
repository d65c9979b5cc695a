"""Bayesian privacy, estimated from attacks: how often each record of a batch was recovered.

Notation: a batch of S records out of a pool with prior pi; M releases w_m of that batch, T attacks on each. k_md counts
the attacks on w_m that recover record d of the batch: that match one of their S reconstructions to d. A reconstruction
matched to a record outside of the batch, or to none, is a miss, and returns to the prior. With h_m = sum of k_md,

    f_m(d) = k_md / (S T) + (1 - h_m / (S T)) pi(d),    kappa_1 = mean of f_m,    C1 = sqrt(JS(kappa_1 || pi)),
    kappa_3 = max over m and d of |ln(f~_m(d) / pi(d))|,  f~ = (S T f + a pi) / (S T + a), C2 = (e^(2 kappa_3) - 1) / 2.

Published is f = k/(S T) over the batch alone, a rate of success and no distribution, by which perfect reconstruction
has a C1 of nearly 0. C1 of protected releases estimates their average Bayesian privacy, kappa_3 their maximum one.

Intervals over releases. The T attacks on one release share it, so that only the M releases are independent. A mean over
them is a sum with random weights W of Dirichlet's distribution (1, ..., 1) over M + 1 releases: the last one is, for
the lower bound, a release that leaks nothing (f = pi), and for the upper bound one that leaks the whole batch
(f = 1/S on it). For counts of releases that leak all or nothing this is the interval of Clopper and Pearson. Resampling
the M releases alone (percentiles, or with corrections for bias and acceleration) covers 0.41 to 0.96 where 0.95 is
asked for, if M = 8, and says that the error is 0 if all releases agree.

kappa_3: given its release, attacks are independent. The bounds are those of Clopper and Pearson, of the rates of
recovery and of the rate of attacks with any miss, lower ones at once for all pairs of release and record.

The null value is what attacks attain that name S records at random, the same ones in all T attacks on a release.

Source: J. Zhang and K. Chen, Bridging Privacy and Robustness, appendices D to I, with these changes; weights of
intervals: N. Gaffke, Three test statistics for a nonparametric one-sided hypothesis on the mean (2005).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...base import random_streams, validate
from ...base.errors import DomainError, ShapeError
from ...base.estimate import Estimate, Result
from ...base.numerics import BoolArray, FloatArray, IntArray, jensen_shannon_generator
from ...base.random_streams import RNGLike
from ...conversions import c2_from_mbp
from ...kernels import matrix_product
from ...sampling.statistics.intervals import binomial_interval, estimate_around

_METHOD = "attacks on releases"  # of all estimates but those of random attributions
_FARTHEST = 1e150  # a distance whose square is a double; what is farther away is no match
_WEIGHTINGS = 2000  # of the releases: the ends of an interval of 0.95 are the 50th of them, within a tenth of its width
_NULL_DRAWS = 200  # studies with random attributions: five of them beyond each end of their range
_BLOCK_CELLS = 2**20  # numbers of a block of weightings, or of keys of records: 8 MiB
_RARE_COLLISION = 64  # S records of a pool of more than 64 S^2 are different in 99 of 100 draws without more ado


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BayesianPrivacyEstimate(Result):
    """What attacks on M releases of one batch say about its privacy.

    Parameters
    ----------
    kappa_1 : Estimate, shape (N,)
        Belief about each record of the pool, averaged over releases; intervals hold at ``confidence`` each.
    c1 : Estimate
        Root of the Jensen-Shannon divergence of ``kappa_1`` and the prior: the average Bayesian privacy of these
        releases, as far as this attack shows it.
    kappa_3 : Estimate
        Largest |ln| of a belief against the prior, over these M releases and all records, in nats: a lower bound of
        the maximum Bayesian privacy over all releases. The value is smoothed, its bounds are not; the upper bound is
        infinite where every attack on a release recovered all of the batch.
    c2 : Estimate
        (e^(2 kappa_3) - 1) / 2.
    recovered : Estimate
        Fraction of the reconstructions that are matched to records of the batch.
    whole_batch : Estimate
        Fraction of the attacks that recover the whole batch.
    c1_null, kappa_3_null : Estimate
        What attacks attain that name records at random: mean, and the range of ``confidence`` of them.
    smoothing : float
        Weight a / (S T + a) that the prior has in the beliefs of which ``kappa_3`` is the largest.
    releases, attacks, batch_size : int
        M, T and S.

    Notes
    -----
    What the papers conclude from it takes numbers of it: ``conversions.abp_from_c1(c1, c2, total_variation)`` under a
    further protection, and ``frequency_failure_from_trials``, ``c1_error_from_frequency_error`` and
    ``leakage_error_from_frequency_error`` for the errors of the estimate, as published and as corrected.

    **Accuracy** coverage of all intervals is measured in ``tests/leakage/test_estimate_coverage.py``.

    Examples
    --------
    >>> from fastpriv import leakage
    >>> found = leakage.bayesian_privacy_estimate([[[3, 7], [3, 1]], [[3, 7], [7, 3]]], 100, batch=[3, 7], rng=1)
    >>> round(found.recovered.value, 3), round(found.c1.value, 2), found.smoothing
    (0.875, 0.67, 0.2)
    """

    kappa_1: Estimate
    c1: Estimate
    kappa_3: Estimate
    c2: Estimate
    recovered: Estimate
    whole_batch: Estimate
    c1_null: Estimate
    kappa_3_null: Estimate
    smoothing: float
    releases: int
    attacks: int
    batch_size: int


def match_to_pool(reconstructions: ArrayLike, pool: ArrayLike, *, threshold: float = math.inf) -> IntArray:
    """Match the reconstructions of each attack to different records of a pool.

    Parameters
    ----------
    reconstructions : array_like, shape (..., S, D)
        S records a attack. One with NaN or infinite numbers, of an attack that diverged, is a miss.
    pool : array_like, shape (N, D)
        Candidate records, N at least S.
    threshold : float
        Largest Euclidean distance of a match; by default there is none.

    Returns
    -------
    ndarray of int, shape (..., S)
        Indices of records of the pool, -1 for a miss.

    Raises
    ------
    DomainError, ShapeError
        For a pool that is not finite, or smaller than a batch; for a negative threshold; for arrays that do not fit.

    Notes
    -----
    The reconstructions of one attack are matched to different records such that the sum of squared distances is least:
    the Hungarian assignment. A distance above the threshold counts as the threshold, and is a miss.

    **Accuracy** the assignment of least sum, by SciPy; ``tests/leakage/test_pool_matching.py`` tries all assignments.
    Source: H. Kuhn, The Hungarian method for the assignment problem (1955).

    Examples
    --------
    >>> from fastpriv import leakage
    >>> pool = [[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]]
    >>> leakage.match_to_pool([[0.1, 0.1], [0.4, 0.0]], pool)
    array([0, 1])
    >>> leakage.match_to_pool([[0.1, 0.1], [3.0, 0.0]], pool, threshold=1.0)
    array([ 0, -1])
    """
    candidates = validate.real("pool", pool, "finite numbers", np.isfinite)
    if candidates.ndim != 2 or 0 in candidates.shape:
        raise ShapeError(
            f"pool must be a table of at least one record and feature; got shape {candidates.shape}. Pass one row a "
            "record."
        )
    attacks = validate.array("reconstructions", reconstructions)
    if attacks.dtype.kind not in "fiu":
        raise DomainError(
            f"reconstructions must be numbers; got {validate.shown(reconstructions)}. Pass what the attack returned."
        )
    attacks = attacks.astype(np.float64)
    if attacks.ndim < 2 or attacks.shape[-1] != candidates.shape[1] or attacks.shape[-2] == 0:
        raise ShapeError(
            f"reconstructions must be of shape (..., S, {candidates.shape[1]}); got {attacks.shape}. Pass records with "
            "the features of the pool."
        )
    if attacks.shape[-2] > len(candidates):
        raise DomainError(
            f"pool must have at least as many records as a batch, {attacks.shape[-2]}; got {len(candidates)}. Pass "
            "more candidates."
        )
    farthest = validate.scalar("threshold", threshold, "at least 0", lambda x: x >= 0)
    square = min(farthest, _FARTHEST) ** 2
    flat = attacks.reshape(-1, *attacks.shape[-2:])
    matched = np.array([_matched(item, candidates, square) for item in flat], dtype=np.int64)
    return matched.reshape(attacks.shape[:-1])


def bayesian_privacy_estimate(
    attributions: ArrayLike, pool: ArrayLike, *, batch: ArrayLike, pseudo_count: float = 1.0, confidence: float = 0.95,
    rng: RNGLike = None,
) -> BayesianPrivacyEstimate:
    """Estimate the Bayesian privacy of a batch from attacks on releases of it.

    Parameters
    ----------
    attributions : array_like of int, shape (M, T, S)
        Which records of the pool attack t on release m names, from ``match_to_pool``; -1 is none. The records of one
        attack are different.
    pool : int or array_like, shape (N,)
        Number of candidate records, or their prior probabilities, which are positive.
    batch : array_like of int, shape (S,)
        The records that the releases were computed from, all of them different.
    pseudo_count : float
        a of the smoothing: as many attributions as the prior is given; positive.
    confidence : float
        Level of the intervals, each for itself.
    rng : int, Generator or None
        Source of the weights of releases and of random attributions.

    Returns
    -------
    BayesianPrivacyEstimate

    Raises
    ------
    DomainError, ShapeError
        For records that do not exist, repeat within an attack, or have no prior; for a batch of another size than the
        attacks; for arrays that are not of these shapes.

    Notes
    -----
    All releases are of one batch: averaged over batches that are drawn from the prior the belief is the prior, and C1
    would be 0 whatever an attack finds. Compare C1 with ``c1_null`` before anything is concluded from it.

    **Accuracy** the intervals are statistical; coverage at 8 and 20 releases is in
    ``tests/leakage/test_estimate_coverage.py``. Source: the head of this module.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import leakage
    >>> rng = np.random.default_rng(1)
    >>> found = np.where(rng.random((8, 10, 1)) < 0.5, [4, 17, 30], -1)  # half of the attacks recover everything
    >>> estimate = leakage.bayesian_privacy_estimate(found, 100, batch=[4, 17, 30], rng=1)
    >>> round(estimate.c1.value, 2), estimate.c1.value > estimate.c1_null.upper
    (0.37, True)
    """
    named = validate.integers("attributions", attributions, -1, remedy="Pass what match_to_pool returned.")
    if named.ndim != 3 or 0 in named.shape:
        raise ShapeError(
            f"attributions must be of shape (M, T, S), each at least 1; got {named.shape}. Pass the records that each "
            "attack names, by release and attack."
        )
    prior = _prior(pool)
    _check_named(named, prior.size)
    members = validate.integers("batch", batch, 0, prior.size - 1, remedy="Name records of the pool.")
    if members.shape != named.shape[2:] or np.unique(members).size != members.size:
        raise ShapeError(
            f"batch must name {named.shape[2]} different records, as many as an attack; got {validate.shown(batch)}. "
            "Pass the records that the releases were computed from."
        )
    smoothing = validate.positive("pseudo_count", pseudo_count)
    level = validate.open_probability("confidence", confidence)
    generator = random_streams.generator(rng)
    hits = (named[..., None, :] == members[:, None]).any(axis=-1)
    others = math.fsum(np.delete(prior, members).tolist())
    counts = _Counts(hits.sum(axis=1), (~hits.all(axis=2)).sum(axis=1), named.shape[1], prior[members], others)
    weights = generator.standard_exponential((_WEIGHTINGS, len(named) + 1))  # Dirichlet, of the releases and one more
    weights /= weights.sum(axis=1, keepdims=True)
    kappa_3 = _largest_log_ratio(counts, smoothing, level)
    nulls = _null_values(counts, members, prior, smoothing, generator)
    total = named.shape[1] * named.shape[2]
    return BayesianPrivacyEstimate(
        kappa_1=_beliefs(counts, weights, members, prior, level), c1=_c1(counts, weights, level),
        kappa_3=kappa_3, c2=c2_from_mbp(kappa_3),
        recovered=_mean_over_releases(counts.hits.sum(axis=1) / total, weights, level),
        whole_batch=_mean_over_releases(1.0 - counts.incomplete / named.shape[1], weights, level),
        c1_null=_range(nulls[0], "1", level), kappa_3_null=_range(nulls[1], "nats", level),
        smoothing=smoothing / (total + smoothing),
        releases=named.shape[0], attacks=named.shape[1], batch_size=named.shape[2],
    )


def average_bayesian_privacy(excess: FloatArray, prior: FloatArray) -> FloatArray:
    """sqrt(JS(f || pi)) of beliefs f = pi (1 + excess), for excess of shape (..., K) and the prior of shape (K,)."""
    terms = jensen_shannon_generator(np.maximum(excess, -1.0))
    sums = matrix_product.product(terms.reshape(-1, prior.size), prior[None]).reshape(excess.shape[:-1])
    return np.asarray(np.sqrt(np.maximum(0.5 * sums, 0.0)))


class _Counts(NamedTuple):
    """How often attacks recovered each record of the batch."""

    hits: IntArray  # (..., S): attacks on a release that recover the record
    incomplete: IntArray  # (...): attacks on a release that miss at least one record
    attacks: int
    prior: FloatArray  # (S,), of the records
    others: float  # prior of the rest of the pool

    @property
    def total(self) -> int:
        """S T."""
        return int(self.attacks * self.hits.shape[-1])

    def missed(self) -> FloatArray:
        """The part of the belief that returns to the prior, shape (...)."""
        return np.asarray((self.total - self.hits.sum(axis=-1)) / self.total)

    def excess(self) -> FloatArray:
        """f / pi - 1 of the records of the batch and, last, of all others, shape (..., S + 1)."""
        missed = self.missed()[..., None]
        return np.concatenate([self.hits / (self.total * self.prior) + (missed - 1.0), missed - 1.0], axis=-1)

    def cells(self) -> FloatArray:
        """The prior of the records and of all others together, shape (S + 1,)."""
        return np.append(self.prior, self.others)

    def largest_log_ratios(self, pseudo_count: float) -> FloatArray:
        """max over releases and records of |ln(f~ / pi)|, the releases on the last axis but one."""
        ratio = 1.0 + self.total * self.excess() / (self.total + pseudo_count)
        used = ratio[..., self.cells() > 0.0]
        return np.asarray(np.abs(np.log(used)).max(axis=(-2, -1)))


def _prior(pool: Any) -> FloatArray:
    if isinstance(pool, (int, np.integer)) and not isinstance(pool, bool):
        size = validate.count("pool", pool, 1, validate.MOST_ENTRIES)
        return np.full(size, 1.0 / size)
    prior = validate.probabilities("pool", pool)
    if not np.all(prior > 0.0):
        index = int(np.argmin(prior))
        raise DomainError(
            f"pool must give every record a positive probability; got {prior[index]!r} at index {index}. Leave out "
            "records that cannot be in the batch."
        )
    return prior


def _check_named(named: IntArray, size: int) -> None:
    if named.max(initial=-1) >= size:
        raise DomainError(
            f"attributions must name records of the pool, below {size}; got {int(named.max())}. Match to this pool."
        )
    ordered = np.sort(named, axis=-1)
    twice = ((ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] >= 0)).any(axis=-1)
    if twice.any():
        m, t = (int(i) for i in np.argwhere(twice)[0])
        raise DomainError(
            f"attributions must name different records within an attack; got {named[m, t].tolist()} for attack {t} on "
            f"release {m} ({int(twice.sum())} of {twice.size} attacks). Use match_to_pool."
        )


def _ends(samples: FloatArray, level: float, side: str) -> FloatArray:
    """The quantile that bounds from below or above, of samples of the shape (B, ...)."""
    error = 0.5 * (1.0 - level)
    quantile, method = (error, "lower") if side == "lower" else (1.0 - error, "higher")
    return np.asarray(np.quantile(samples, quantile, axis=0, method=method))  # type: ignore[call-overload]


def _c1(counts: _Counts, weights: FloatArray, level: float) -> Estimate:
    """C1, by the weights of releases and of one that leaks nothing, or everything."""
    excess, cells = counts.excess(), counts.cells()
    value = float(average_bayesian_privacy(excess.mean(axis=0), cells))
    everything = np.append(1.0 / (counts.prior.size * counts.prior) - 1.0, -1.0)
    seen = matrix_product.product(weights[:, :-1], excess.T)
    low = float(_ends(average_bayesian_privacy(seen, cells), level, "lower"))
    high = float(_ends(average_bayesian_privacy(seen + weights[:, -1:] * everything, cells), level, "upper"))
    return estimate_around(value, low, high, "1", _METHOD, level)


def _beliefs(counts: _Counts, weights: FloatArray, members: IntArray, prior: FloatArray, level: float) -> Estimate:
    """kappa_1 of each record of the pool."""
    missed = _mean_over_releases(counts.missed(), weights, level)
    value, lower, upper = (number * prior for number in missed.floats())
    size = counts.prior.size
    belief = (1.0 + counts.excess()[:, :-1]) * counts.prior  # (M, S)
    value[members] = belief.mean(axis=0)
    seen = matrix_product.product(weights[:, :-1], belief.T)
    most = 1.0 / size + (size - 1) / size * counts.prior
    lower[members] = _ends(seen, level, "lower")
    upper[members] = _ends(seen + weights[:, -1:] * most, level, "upper")
    return estimate_around(value, lower, upper, "probability", _METHOD, level)


def _mean_over_releases(rates: FloatArray, weights: FloatArray, level: float) -> Estimate:
    """Mean of numbers in [0, 1], one a release."""
    seen = matrix_product.product(weights[:, :-1], rates[None])[:, 0]
    low, high = _ends(seen, level, "lower"), _ends(seen + weights[:, -1], level, "upper")
    return estimate_around(float(rates.mean()), float(low), min(float(high), 1.0), "probability", _METHOD, level)


def _largest_log_ratio(counts: _Counts, pseudo_count: float, level: float) -> Estimate:
    """kappa_3: the smoothed value, and bounds that hold for the rates of the M releases."""
    size, error = counts.prior.size, 0.5 * (1.0 - level)
    value = float(counts.largest_log_ratios(pseudo_count))
    # upper: of the pair that attains the maximum, a rate of recovery and one of misses may fail, error / 2 each
    rate = np.asarray(binomial_interval(counts.hits, counts.attacks, 1.0 - 0.5 * error, "upper").upper)
    misses = np.asarray(binomial_interval(counts.incomplete, counts.attacks, 1.0 - 0.5 * error, "upper").upper)
    complete = np.asarray(binomial_interval(counts.incomplete, counts.attacks, 1.0 - 0.5 * error, "lower").lower)
    above = float(np.log(rate / (size * counts.prior) + misses[:, None]).max())
    with np.errstate(divide="ignore"):
        below = float(-np.log(complete / size).min()) if counts.others > 0.0 else math.inf
    # lower: at once for all pairs and for the misses of all releases
    each = 1.0 - error / (counts.hits.size + counts.incomplete.size)
    rate = np.asarray(binomial_interval(counts.hits, counts.attacks, each, "lower").lower)
    misses = np.asarray(binomial_interval(counts.incomplete, counts.attacks, each, "upper").upper)
    with np.errstate(divide="ignore"):
        least = float(np.log(rate / (size * counts.prior)).max())
    if counts.others > 0.0:
        least = max(least, float(-np.log(misses).min()))
    return estimate_around(value, min(max(least, 0.0), value), max(above, below, value), "nats", _METHOD, level)


def _null_values(
    counts: _Counts, members: IntArray, prior: FloatArray, pseudo_count: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """C1 and kappa_3 of studies whose attacks name records at random, the same ones for a release."""
    releases, size = counts.hits.shape
    block = max(1, _BLOCK_CELLS // (releases * (prior.size if prior.size <= _RARE_COLLISION * size * size else size)))
    result = []
    for start in range(0, _NULL_DRAWS, block):
        named = _random_records((min(block, _NULL_DRAWS - start), releases), size, prior, rng)
        hits: BoolArray = (named[..., None, :] == members[:, None]).any(axis=-1)
        missed: BoolArray = np.asarray(~hits.all(axis=-1))
        drawn = counts._replace(
            hits=counts.attacks * hits.astype(np.int64), incomplete=counts.attacks * missed.astype(np.int64)
        )
        c1 = average_bayesian_privacy(drawn.excess().mean(axis=1), drawn.cells())
        result.append((c1, drawn.largest_log_ratios(pseudo_count)))
    return np.concatenate([c1 for c1, _ in result]), np.concatenate([kappa for _, kappa in result])


def _random_records(shape: tuple[int, int], size: int, prior: FloatArray, rng: np.random.Generator) -> IntArray:
    """Records by the prior: different ones, but out of a vast pool, where they hardly ever coincide."""
    if prior.size > _RARE_COLLISION * size * size:
        return np.searchsorted(np.cumsum(prior)[:-1], rng.random((*shape, size)), side="right")
    keys = rng.standard_exponential((*shape, prior.size)) / prior
    if size == prior.size:
        return np.broadcast_to(np.arange(size), keys.shape)
    return np.asarray(np.argpartition(keys, size, axis=-1)[..., :size])


def _range(samples: FloatArray, unit: Any, level: float) -> Estimate:
    lower, upper = (float(_ends(samples, level, side)) for side in ("lower", "upper"))
    return estimate_around(float(samples.mean()), lower, upper, unit, "random attributions", level)


def _matched(records: FloatArray, pool: FloatArray, largest: float) -> IntArray:
    """The match of one attack."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    result = np.full(len(records), -1, dtype=np.int64)
    usable = np.flatnonzero(np.isfinite(records).all(axis=1))
    if not usable.size:
        return result
    squares = cdist(records[usable], pool, "sqeuclidean")
    rows, columns = linear_sum_assignment(np.minimum(squares, largest))
    close = squares[rows, columns] <= largest
    result[usable[rows[close]]] = columns[close]
    return result
