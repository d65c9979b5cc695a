"""Proposals for the integral of p^a q^(1-a), and bounds on it from pairs of components.

Proofs: docs/proofs/domination.md, theorem 8.4 and 8.5. Orders above 1. Notation: a the order. The exponents of each
component of p sum to a - 1, so that N_i^a q^(1-a) <= B_i T_i with c_i = w_i^a B_i; for any parts pi_i of a proposal sum
pi_i T_i, by Hoelder's inequality, p^a q^(1-a) <= (sum_i (c_i / pi_i)^(1/(a-1)))^(a-1) sum_i pi_i T_i, least at pi_i ~
c_i^(1/a).

The integral is finite if for every component of p, with precision A, and every direction u, a u'Au > (a-1) u'C_j u for
some component of q with precision C_j, and infinite if for one of them some u has < for all j. A bounded proposal needs
shares mu of q with aA > (a-1) sum mu_j C_j. For diagonal matrices these are the two sides of one linear programme, so
the answer is complete but for equality; for full matrices and three or more components of q there can be a gap.

Orders below 1. Powers are subadditive and every component is below its mixture, so that with N_i of p and M_j of q

    max_ij w_i^a v_j^(1-a) N_i^a M_j^(1-a)  <=  p^a q^(1-a)  <=  sum_ij w_i^a v_j^(1-a) N_i^a M_j^(1-a).

Each term is B_ij times a normal T_ij: with r = (1-a) s^2 + a t^2 in every coordinate,

    log B = sum ((1-a) log s + a log t - log(r)/2 - a (1-a) (mu - nu)^2 / (2 r)),

mean mu + (1-a) s^2 (nu - mu) / r and variance s^2 t^2 / r. The sum dominates, and over its normals the ratio lies
between 1 over the number of pairs and 1: no integral is too small for it. Pairs of less than 1e-308 of the sum are left
out, and could add that much.

Source: van Erven and Harremoes 2014 (the Renyi divergence of normals).
"""

# bounds: proved - docs/proofs/domination.md, 8.7: rounding of the scale of a proposal, of log pair integrals and of
#    ratios; the rest keeps quotients by 0 away

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from ...base.numerics import MACHINE_EPSILON, UNIT_ROUNDOFF, FloatArray, IndexArray
from ...distributions import GaussianMixture
from ..options import never_expired
from .active_components import DiagonalTilting, leading_components
from .full_covariances import FullTilting
from .tilting import Proposal, tilted_mixture, tilting_of

# bound: proved - docs/proofs/domination.md, 8.8: margin by which an integral is held to be infinite
_MARGIN = 1e-9
_FAR = 1e95  # distance of means, in least standard deviations, whose squares leave the range of what is solved
_CUTTING_PLANES = 40  # of the search for shares of full precisions, at most
_MAX_PROGRAMME_ENTRIES = 2e7  # of all linear programmes together: some seconds
_TILE = 2**21  # doubles of an array that is held: 16 MB
_MAX_PAIR_ENTRIES = 4e6  # pairs times coordinates that bounds from pairs are worth
_MAX_PAIRS = 1024  # components of a proposal that is worth its cost
_UNCLEAR = 1e-3  # rounding of the exponents beyond which ratios have no range
FeasibleStart = tuple[IndexArray, FloatArray]


@np.errstate(all="ignore")  # what overflows is not finite, and not taken
def renyi_proposal(
    p: GaussianMixture, q: GaussianMixture, order: float, *, expired: Callable[[], bool] = never_expired
) -> Proposal:
    """A mixture that bounds p^order q^(1-order), for an order above 1.

    ``diverges`` says that the integral is infinite. Where neither is proved before the time has ``expired``, or means
    are so far apart that squares of their distances leave the range of what is solved, the proposal is P with
    ``bounded`` False and an infinite scale.
    """
    theta = order - 1.0
    if expired() or _distance(p, q) > _FAR:
        return Proposal(p, math.inf, False, np.full(len(p), math.inf), np.zeros(len(p)))
    pair = tilting_of(p, q, np.log(q.weights), theta, expired)
    feasible = _full_start(pair, order) if isinstance(pair, FullTilting) else _diagonal_start(pair, order)
    zeros = np.zeros(len(p))
    if not isinstance(feasible, tuple):
        return Proposal(p, math.inf, False, zeros + math.inf, zeros, feasible)
    pair.feasible_start = feasible
    log_shares = np.zeros((len(p), 1))
    tilts = pair.tilted(log_shares)
    if pair.has_remainder:
        rows = leading_components(order * np.log(p.weights) + tilts.log_bounds, len(q))
        pair.reselect(tilts, rows)
        second = pair.tilted(log_shares, None, rows)
        better = second.log_bounds < tilts.log_bounds[rows]
        tilts = tilts.replaced(rows[better], second.subset(better))
    if not np.isfinite(tilts.log_bounds).all():
        return Proposal(p, math.inf, False, tilts.log_bounds, zeros + theta)
    logs = order * np.log(p.weights) + tilts.log_bounds
    even, least = np.exp(logs - logs.max()), np.exp((logs - logs.max()) / order)
    parts = np.maximum(0.5 * even / math.fsum(even) + 0.5 * least / math.fsum(least), 1e-200)
    parts /= math.fsum(parts)
    terms = (logs - np.log(parts)) / theta
    scale = theta * (terms.max() + math.log(math.fsum(np.exp(terms - terms.max()))))
    sizes = np.abs(order * np.log(p.weights)) + np.abs(tilts.log_bounds) + np.abs(np.log(parts))
    scale += 2.0**-49 * (len(logs) + 4) * (1.0 + abs(scale) + theta + float(sizes.max()))
    mixture = tilted_mixture(p, parts, tilts, np.zeros(len(p), dtype=bool))
    return Proposal(mixture, scale, True, tilts.log_bounds, zeros + theta)


def _distance(p: GaussianMixture, q: GaussianMixture) -> float:
    """Upper bound of the distance of any two means, in least standard deviations."""
    means = np.concatenate([mixture.means.reshape(len(mixture), -1) for mixture in (p, q)])
    spreads = [side.sigmas if side.factors is None else np.einsum("kii->ki", side.factors) for side in (p, q)]
    least = min(float(np.min(spread)) for spread in spreads)
    return float(np.ptp(means, axis=0).max() / least)


def _diagonal_start(pair: DiagonalTilting, order: float) -> FeasibleStart | bool:
    """Shares of q that leave every precision positive; True for a proof of divergence, False for neither."""
    number, partners, size = len(pair.means), len(pair.q[0]), pair.means.shape[1]
    index, best = np.empty(number, dtype=np.intp), np.empty(number)
    rows = max(1, _TILE // (partners * size))
    for first in range(0, number, rows):
        if pair.expired():
            return False
        block = slice(first, first + rows)
        least = np.min(_margins(pair, block, order), axis=2)
        index[block], best[block] = least.argmax(axis=1), least.max(axis=1)
    open_rows = np.flatnonzero(best <= _MARGIN * order)
    if not open_rows.size:
        return index[:, None], np.ones((number, 1))
    if partners * size * open_rows.size > _MAX_PROGRAMME_ENTRIES:
        return False
    most = min(partners, size + 1, pair.active - 1 if pair.has_remainder else pair.active)

    def shares_of(row: int) -> FloatArray | bool:
        margins = _margins(pair, slice(row, row + 1), order)[0]
        shares, weights, value = _max_min_shares(margins, order)
        if shares is None:
            return value < 0 and weights is not None
        selected = _largest_shares(shares, most)
        return bool(np.min(selected @ margins) > 0) and selected

    support, parts = np.repeat(index[:, None], most, axis=1), np.zeros((number, most))
    parts[:, 0] = 1.0
    return _with_shares_of_rows(support, parts, open_rows, shares_of, pair.expired)


def _with_shares_of_rows(
    support: IndexArray, parts: FloatArray, rows: Iterable[int], shares_of: Callable[[int], FloatArray | bool],
    expired: Callable[[], bool],
) -> FeasibleStart | bool:
    """The start with the shares of these rows; True for a proof of divergence, False where a row has neither."""
    undecided = False
    for row in rows:
        shares = shares_of(row)
        if shares is True or expired():
            return shares is True
        if isinstance(shares, bool):
            undecided = True
        else:
            support[row] = np.argsort(-shares, kind="stable")[: support.shape[1]]
            parts[row] = shares[support[row]]
    return False if undecided else (support, parts)


def _largest_shares(shares: FloatArray, most: int) -> FloatArray:
    """The largest of the shares, as many as enter each by itself, divided by their sum."""
    selected, chosen = np.zeros_like(shares), np.argsort(-shares, kind="stable")[:most]
    selected[chosen] = shares[chosen] / shares[chosen].sum()
    return selected


def _margins(pair: DiagonalTilting, rows: slice, order: float) -> FloatArray:
    """order - (order - 1) s^2 / t^2 for each component of p, of q and each coordinate; at least -1e300."""
    with np.errstate(over="ignore"):
        ratio = pair.scales[rows][:, None, :] / pair.q[2][None]
        return np.maximum(order - (order - 1.0) * ratio * ratio, -1e300)


def _max_min_shares(margins: FloatArray, order: float) -> tuple[FloatArray | None, FloatArray | None, float]:
    """The value, up to a positive factor, of max over shares of the least coordinate: 0 where it is not certain."""
    from scipy.optimize import linprog

    partners, size = margins.shape
    sizes = np.maximum(np.max(np.abs(margins), axis=0), 1e-4 * order)  # theorem 8.8
    scaled = margins / sizes
    matrix = np.concatenate([-scaled.T, np.ones((size, 1))], axis=1)
    answer = linprog(
        np.append(np.zeros(partners), -1.0), A_ub=matrix, b_ub=np.zeros(size),
        A_eq=np.append(np.ones(partners), 0.0)[None], b_eq=[1.0], bounds=[(0, None)] * partners + [(None, None)],
    )
    if not answer.success:
        return None, None, 0.0
    shares = np.maximum(answer.x[:-1], 0.0)
    shares /= shares.sum()
    weights = np.maximum(-answer.ineqlin.marginals, 0.0)
    low = float(np.min(shares @ scaled))
    high = float(np.max(scaled @ weights)) / max(float(weights.sum()), 1e-300)
    if low > _MARGIN:
        return shares, None, low
    return None, weights / sizes, high if high < -_MARGIN else 0.0


def _full_start(pair: FullTilting, order: float) -> FeasibleStart | bool:
    """Shares of q as in ``_diagonal_start``, for full covariances."""
    number, partners = len(pair.means), len(pair.q[0])
    most = min(partners, pair.active - 1 if pair.has_remainder else pair.active)
    support, parts = np.tile(np.arange(most), (number, 1)), np.zeros((number, most))
    return _with_shares_of_rows(
        support, parts, range(number), lambda row: _full_shares(pair, row, order, most), pair.expired
    )


def _proved_uncovered(pair: FullTilting, factor: FloatArray, order: float, directions: FloatArray) -> bool:
    """Whether one of these is proved to be a direction that no component of q covers: theorem 8.8."""
    images, inverses, error = factor @ directions.T, pair.factors_q.inverse, pair.factors_q.error[:, None]
    sizes = np.linalg.norm(inverses @ images, axis=1)
    lost = np.linalg.norm(np.abs(inverses) @ (np.abs(factor) @ np.abs(directions.T)), axis=1)
    lost *= 4.0 * (len(factor) + 4) * UNIT_ROUNDOFF
    least = np.maximum(sizes - lost - error * (sizes + lost), 0.0).min(axis=0)
    length = np.sum(directions * directions, axis=1) * (1.0 + _MARGIN)
    return bool(np.any(order * length < (order - 1.0) * least * least))


def _full_shares(pair: FullTilting, row: int, order: float, most: int) -> FloatArray | bool:
    """One component of q that serves alone, else cutting planes: shares against directions."""
    factor = pair.scales[row if len(pair.scales) > 1 else 0]
    scaled_precisions = factor.T @ pair.precisions @ factor
    if len(scaled_precisions) == 1:
        scaled_precisions = np.broadcast_to(scaled_precisions, (len(pair.q[0]), *factor.shape))
    identity = order * np.eye(len(factor))
    for j in np.argsort(np.einsum("jkk->j", scaled_precisions), kind="stable")[:4]:
        if np.linalg.eigvalsh(identity - (order - 1.0) * scaled_precisions[j])[0] > _MARGIN * order:
            return np.asarray(np.arange(len(scaled_precisions)) == j, dtype=np.float64)
    shares = np.full(len(scaled_precisions), 1.0 / len(scaled_precisions))
    directions: list[FloatArray] = []
    for _ in range(_CUTTING_PLANES):
        values, vectors = np.linalg.eigh(identity - (order - 1.0) * np.tensordot(shares, scaled_precisions, 1))
        if values[0] > _MARGIN * order:
            break
        directions.append(vectors[:, 0])
        stack = np.array(directions)
        margins = order - (order - 1.0) * np.einsum("sk,jkl,sl->js", stack, scaled_precisions, stack, optimize=True)
        if _proved_uncovered(pair, factor, order, vectors[:, :1].T):
            return True
        better, weights, _ = _max_min_shares(margins, order)
        if better is None and weights is not None:  # some sum of the directions that bind, by trial
            draws = np.random.default_rng(0).standard_normal((512, len(weights)))
            return _proved_uncovered(pair, factor, order, (draws * np.sqrt(weights)) @ stack)
        if better is None:
            return False
        shares = better
    else:
        return False
    selected = _largest_shares(shares, most)
    least = np.linalg.eigvalsh(identity - (order - 1.0) * np.tensordot(selected, scaled_precisions, 1))[0]
    return bool(least > 0) and selected


class RenyiIntegralBounds(NamedTuple):
    """Proved bounds of the logarithm of the integral; the dominating mixture, where it serves, its log scale, the
    number of its pairs, and the log of what rounding may do to a ratio."""

    low: float
    high: float
    mixture: GaussianMixture | None
    log_scale: float
    pairs: int
    rounding_error: float


@np.errstate(over="ignore", invalid="ignore")  # what is not finite is no bound
def renyi_integral_bounds(p: GaussianMixture, q: GaussianMixture, order: float) -> RenyiIntegralBounds | None:
    """Bounds and proposal for an order below 1; None for full covariances and too many pairs."""
    if p.form == "full" or q.form == "full" or len(p) * len(q) * p.dimension > _MAX_PAIR_ENTRIES:
        return None
    mu, s, nu, t = (
        np.broadcast_to(x if x.ndim == 2 else x[:, None], (len(side), p.dimension))
        for side in (p, q)
        for x in (side.means, side.sigmas)
    )
    mu, s, nu, t = mu[:, None], s[:, None], nu[None], t[None]
    a, b = order, 1.0 - order
    r = b * s * s + a * t * t
    parts = (b * np.log(s), a * np.log(t), -0.5 * np.log(r), -0.5 * a * b * ((mu - nu) / r * (mu - nu)))
    weights = a * np.log(p.weights)[:, None] + b * np.log(q.weights)
    logs = weights + sum(part.sum(axis=2) for part in parts)
    size = np.abs(weights) + sum(np.abs(part).sum(axis=2) for part in parts)
    if not np.isfinite(logs).all() or r.min() < 1e-290:
        return None
    error = MACHINE_EPSILON * (16 + p.dimension + logs.size) * (1.0 + float(size.max()))
    top = float(logs.max())
    shares = np.exp(logs - top).ravel()
    log_scale = top + math.log(math.fsum(shares))
    if logs.size <= _MAX_PAIRS and error < _UNCLEAR:
        shape = (logs.size, p.dimension)
        means, deviations = (mu + b * s * s / r * (nu - mu)).reshape(shape), (s * t / np.sqrt(r)).reshape(shape)
        selected = shares > 0.0
        standardised_mean = float(np.max((np.abs(mu) + np.abs(nu)).reshape(shape) / deviations))
        if standardised_mean * MACHINE_EPSILON < _UNCLEAR / 512:  # of what a mean is rounded by
            mixture = GaussianMixture(shares[selected] / math.fsum(shares), means[selected], deviations[selected])
            error_of_ratio = 64.0 * error + 512.0 * MACHINE_EPSILON * standardised_mean + 1e-9
            return RenyiIntegralBounds(top - error, log_scale + error, mixture, log_scale, logs.size, error_of_ratio)
    return RenyiIntegralBounds(top - error, log_scale + error, None, log_scale, logs.size, math.inf)
