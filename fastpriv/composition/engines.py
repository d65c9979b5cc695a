"""The curve of a list of pairs by the engine that suits it, and what all engines have in common.

Notation: delta(epsilon) = P(S > epsilon) - e^epsilon Q(S > epsilon) with S the sum of all losses; its tail is
a(epsilon) = e^epsilon Q(S > epsilon) = -d delta / d epsilon, and the lower tail P(S <= epsilon), which few engines have
with digits of its own: it is also what delta + a leave of 1. Everything here is for epsilon >= 0.

Engines
* Only normal pairs of equal sigmas: the closed curve of one pair with mu^2 = sum k (m - m')^2 / sigma^2 (Dong, Roth and
  Su 2022, corollary 3.3). mu / 2 is enclosed by two doubles in rational arithmetic.
* Normal distributions of any covariances: sums along bent contours, whose terms are closed forms.
* One release of one pair: its certified hockey-stick divergence.
* Two releases of sampled Gaussians, by Poisson samples or of fixed size with a record replaced: integrals of the
  curve of one.
* Samples of fixed size with a record replaced: a sum along a contour without the outcomes of few losses.
* Sampled Gaussians at small rates: a sum along a turned contour, as far as delta is not far below epsilon.
* Discrete pairs alone: exact sums over types.
* Laplace noise alone, few releases: sums over the numbers of extreme losses.
* Pairs with labels that are told: a sum over the numbers of releases with each label (``labelled_sums``).
* All others: sums along a contour.
* Mixtures whose contours take too long, and what no grid reaches: bounds by single releases.
* Curves, and losses on grids, alone or with anything else, and whatever another engine gives up: losses on a common
  grid and their tilted transform, as far as it reaches.

Relative errors. A pair with errors g, h stands for all measures p', q' with densities within 1 +- g and 1 +- h of p and
q. Their losses are within log((1 + g) / (1 - h)) of L from above; with c = sum k log((1 + g) / (1 - h)), d = sum k
log((1 + h) / (1 - g)), f = sum k log(1 + g), f' = -sum k log(1 - g),
    delta'(epsilon) <= e^f delta(epsilon - c),    delta'(epsilon) >= e^-f' delta(epsilon + d).
Where epsilon < c, delta(epsilon - c) <= delta(0) + 1 - e^(epsilon - c). The lower tail is at most e^f times that at
epsilon + d, and at least e^-f' times that at epsilon - c.

Tails of curves. delta is convex in x = e^epsilon and a = -x d delta / dx, so that for any h > 0
    (L(epsilon) - U(epsilon + h)) / (e^h - 1) <= a(epsilon) <= (U(epsilon - h) - L(epsilon)) / (1 - e^-h)
with bounds L, U of delta; for epsilon < h, delta(epsilon - h) comes of the curve of the reversed pair. Of curves alone
no more can be said: at a kink every a between both slopes fits them.
"""

# bounds: proved - roundings of sums, quotients, exponentials and logarithms

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from .. import special
from ..base.errors import DomainError
from ..base.exact_linear_algebra import square_root_enclosure
from ..base.numerics import LARGEST_DOUBLE, UNIT_ROUNDOFF, BoolArray, FloatArray, next_above, next_below
from ..divergences.reductions.gaussian_sums import gaussian_sum_bounds
from ..pairs.log_bounds import LogBounds
from ..pairs.protocol import BoundingPairs, DominatingPair
from ..pairs.tilted_transforms import log_mass_at_infinity
from .atom_sums import atom_bounds
from .common_grids import grid_bounds
from .contour import contour_bounds, contour_tilts
from .fixed_size_samples import fixed_size_bounds
from .joint_bounds import joint_bounds
from .labelled_sums import labelled_bounds
from .laplace_sums import laplace_bounds
from .many_sampled_gaussians import small_rate_bounds
from .simple_bounds import simple_bounds
from .two_sampled_gaussians import few_release_bounds

Quantity: TypeAlias = Literal["delta", "tail", "lower"]
_LogErrors: TypeAlias = tuple[float, float, float, float]  # c, d, f and f' of the text at the head

# bound: proved - relative error of gaussian_log_delta: theorem 1.2 of docs/proofs/gaussian.md
_GAUSSIAN_ERROR = 9e-15
# bound: proved - relative error of log_ndtr, 17 ulps (tools/proofs), with the rounding of each end
_NORMAL_ERROR = 4e-15
# ``method`` of compositions of Gaussian mechanisms
_METHOD_GAUSSIAN = "closed form (Dong, Roth and Su 2022, corollary 3.3)"
# bound: none - roots that have all digits of extended precision, as the sum of two doubles
_ROOTS = (1e-140, 1e140)
# bound: none - steps of epsilon that give a difference quotient of the curve: the best of them counts
_QUOTIENT_STEPS = np.geomspace(3e-11, 0.3, 11)
# bound: none - widths of brackets of log delta from which on other sums, single releases and grids are tried
_NARROW, _WIDE, _WIDEST = 1e-9, 1e-8, 0.5
# bound: none - and of log tail, from which on the reversed pair is asked
_WIDE_TAIL = 1e-10
# bound: none - t of the saddle point of a tail from which on it is not asked
_LARGEST_TILT = 4.0
# bound: none - log delta of mixtures, and their releases, beyond which grids take long and reach less
_DEEPEST, _MOST_RELEASES = -100.0, 1e9
# bound: none - rates up to which two releases alone are tried as a lower bound
_SMALL_RATE = 1e-3
# bound: none - losses between the extremes of Laplace noise, on average, up to which they are counted first: the terms
#    along a contour stop falling at e to minus this number
_FEW_BETWEEN = 36.0


def curve_bounds(bounding: BoundingPairs, epsilon: FloatArray, quantity: Quantity = "delta") -> LogBounds:
    """Bounds of the logarithm of delta, or of a tail, at epsilon >= 0, a vector."""
    joint = joint_bounds(bounding.dominating, epsilon) if bounding.dominated and quantity == "delta" else None
    if not bounding.dominated:
        return _bounds_of_pairs(bounding.dominating, epsilon, quantity)
    if quantity == "lower":
        return _trivial_bounds(epsilon, quantity)
    if quantity == "tail":
        reversed_bounding = bounding.reversed()
        return _tail_of_curve(lambda levels: curve_bounds(bounding, levels),
                              lambda levels: curve_bounds(reversed_bounding, levels), epsilon)
    above = _bounds_of_pairs(bounding.dominating, epsilon, "delta") if joint is None else joint
    lower = np.full(epsilon.size, -np.inf) if joint is None else joint.lower.copy()
    for pairs in bounding.dominated:
        lower = np.maximum(lower, _bounds_of_pairs(pairs, epsilon, "delta").lower)
    lower = np.minimum(lower, above.upper)
    return LogBounds.of_bounds(lower, above.upper, above.cost, f"{above.method}, between two compositions")


def infinite_log_mass(pairs: Sequence[DominatingPair]) -> tuple[float, float]:
    """Bounds of the logarithm of P(S = inf), relative errors included."""
    low, high = ([(pair.infinite_mass()[side], pair.count) for pair in pairs] for side in (0, 1))
    return log_mass_at_infinity(low)[0], log_mass_at_infinity(high)[1]


def largest_loss(pairs: Sequence[DominatingPair]) -> tuple[float, float]:
    """Bounds of the largest sum of losses: the least epsilon with delta(epsilon) = P(S = inf) where that is 0."""
    low, high = 0.0, 0.0
    for pair in pairs:
        if pair.count and not pair.is_trivial:
            least, most = _largest_loss_of(pair)
            slack = _log_errors(pair)
            low += pair.count * (least - slack[1])
            high += pair.count * (most + slack[0])
    rounding = 4 * len(pairs) * UNIT_ROUNDOFF
    low = low - rounding * abs(low) if low < math.inf else low
    high = high + rounding * abs(high) if high < math.inf else high
    return max(0.0, low), max(0.0, high)


@lru_cache(maxsize=64)
def _largest_loss_of(pair: DominatingPair) -> tuple[float, float]:
    return pair.largest_loss()


def _bounds_of_pairs(pairs: Sequence[DominatingPair], epsilon: FloatArray, quantity: Quantity) -> LogBounds:
    """Pairs that tell something, their relative errors, and epsilons beyond all finite losses."""
    pairs = [pair for pair in pairs if pair.count and not pair.is_trivial]
    if not pairs or epsilon.size == 0:
        nothing = np.full(epsilon.size, 0.0 if quantity == "lower" else -np.inf)
        return LogBounds(nothing, nothing, nothing, {}, "no loss of privacy")
    curves = any(pair.is_known_by_curves for pair in pairs)  # whose end is not known without a search
    least, most = (math.inf, math.inf) if curves else largest_loss(pairs)
    finite = epsilon < most
    if not finite.all():
        low, high = (infinite_log_mass(pairs) if quantity == "delta" else (-math.inf, -math.inf) if quantity == "tail"
                     else (-math.inf, 0.0))
        if not finite.any():
            return LogBounds(np.full(epsilon.size, high), np.full(epsilon.size, low), np.full(epsilon.size, high), {},
                             "no larger finite loss")
        value, lower, upper = (np.full(epsilon.size, end) for end in (high, low, high))
        known = LogBounds(value, lower, upper, {}, "")
        return _replace_rows(known, finite, _bounds_of_pairs(pairs, epsilon[finite], quantity))
    at_end = (least <= epsilon) & (quantity == "delta" and most - least <= 1e-9 * most)
    if at_end.any() and infinite_log_mass(pairs)[1] == -math.inf:
        remainder = np.minimum(next_above(np.log(next_above(most - epsilon)), 4), 0.0)  # delta(x) <= 1 - e^(x - most)
        known = LogBounds(remainder, np.full(epsilon.size, -np.inf), remainder.copy(), {}, "")
        return _replace_rows(known, ~at_end, _bounds_of_pairs(pairs, epsilon[~at_end], quantity))
    if quantity != "delta":
        return _with_relative_errors(pairs, epsilon, quantity)
    # sampled Gaussians with weights of exactly 1 - rate and rate, of which none is rounded
    sampled = (few_release_bounds(pairs, epsilon) or small_rate_bounds(pairs, epsilon)
               or fixed_size_bounds(pairs, epsilon))
    if sampled is None:
        result = _with_relative_errors(pairs, epsilon, quantity)
    else:
        result, wide = sampled, _wide_points(sampled, _NARROW)
        if wide.any():
            result = _intersect_bounds(result, wide, _with_relative_errors(pairs, epsilon[wide], quantity))
    wide = _wide_points(result, _WIDE)
    return _at_least_of_fewer(pairs, epsilon, result, wide) if wide.any() else result


def _replace_rows(known: LogBounds, chosen: BoolArray, result: LogBounds) -> LogBounds:
    """Known numbers, and those of an engine in the chosen rows."""
    for row, numbers in zip(known.numbers, result.numbers, strict=True):
        row[chosen] = numbers
    return known._replace(cost=result.cost, method=result.method)


def _at_least_of_fewer(
    pairs: Sequence[DominatingPair], epsilon: FloatArray, bounds: LogBounds, wide: BoolArray
) -> LogBounds:
    """Lower bounds no less than those of one release alone, or of two at a small rate, where brackets are wide.

    It asks for measures of mass 1: of the relative errors, those of sampled Gaussians are no lack of mass.
    """
    if sum(pair.count for pair in pairs) == 1 or any(
        _log_errors(s) != (0.0,) * 4 and not s.sampled_gaussian for s in pairs
    ):
        return bounds
    lower = bounds.lower.copy()
    for pair in pairs:
        if not pair.is_discrete:
            sampled = pair.sampled_gaussian
            few = pair.repeated(2 if pair.count > 2 and sampled and sampled.rate[1] <= _SMALL_RATE else 1)
            lower[wide] = np.maximum(lower[wide], _bounds_of_pairs([few], epsilon[wide], "delta").lower)
    lower = np.minimum(lower, bounds.upper)
    return bounds._replace(value=np.maximum(bounds.value, lower), lower=lower)


def _with_relative_errors(pairs: Sequence[DominatingPair], epsilon: FloatArray, quantity: Quantity) -> LogBounds:
    """Bounds of the numbers of the pairs, made wider by their relative errors."""
    errors = [[pair.count * error for error in _log_errors(pair)] for pair in pairs]
    down, up, factor_up, factor_down = (math.fsum(column) * (1 + 1e-12) for column in zip(*errors, strict=True))
    if down == up == 0.0:
        return _by_engine(pairs, epsilon, quantity)
    return _evaluate_at_both_ends(pairs, epsilon, quantity, (down, up, factor_up, factor_down))


def _log_errors(pair: DominatingPair) -> _LogErrors:
    """c, d, f and f' of one release, by the text at the head."""
    g, h = pair.p_relative_error, pair.q_relative_error
    if g >= 0.5 or h >= 0.5:
        return math.inf, math.inf, math.inf, math.inf
    return math.log1p(g) - math.log1p(-h), math.log1p(h) - math.log1p(-g), math.log1p(g), -math.log1p(-g)


def _evaluate_at_both_ends(
    pairs: Sequence[DominatingPair], epsilon: FloatArray, quantity: Quantity, errors: _LogErrors
) -> LogBounds:
    down, up, factor_up, factor_down = errors
    lower_levels, upper_levels = next_below(epsilon - down), next_above(epsilon + up)
    low_end, n = lower_levels < 0.0, epsilon.size
    if quantity == "lower":
        result = _by_sums(pairs, np.concatenate([upper_levels, lower_levels]), quantity)
    else:
        result = _by_engine(pairs, np.concatenate([np.maximum(lower_levels, 0.0), upper_levels]), quantity)
    upper, lower = result.upper[:n].copy(), result.lower[n:].copy()
    if low_end.any() and quantity == "delta":
        with np.errstate(divide="ignore", under="ignore"):
            extra = np.log(-np.expm1(np.minimum(lower_levels[low_end], 0.0))) + 1e-15
            upper[low_end] = next_above(np.logaddexp(upper[low_end], extra), 4)
    if quantity == "tail":  # Q' has at most (1 + h)^k of the mass, e^epsilon is e^c times that at epsilon - c
        upper = upper + up + down
        if low_end.any():
            most = _most_above(pairs, -lower_levels[low_end]) + math.expm1(up)
            with np.errstate(divide="ignore"):
                upper[low_end] = next_above(epsilon[low_end] + np.log(most) + up + down, 4)
        lower = lower - up - down
        upper = np.minimum(upper, epsilon)
    else:
        upper, lower = np.minimum(upper + factor_up, 0.0), lower - factor_down
    with np.errstate(invalid="ignore"):
        outward = 4 * UNIT_ROUNDOFF * np.abs(upper)
        upper = np.where(np.isfinite(upper), np.minimum(upper + outward, np.maximum(upper, 0.0)), upper)
        lower = np.where(np.isfinite(lower), lower - 4 * UNIT_ROUNDOFF * np.abs(lower), lower)
        middle = 0.5 * result.value[:n] + 0.5 * result.value[n:]
    value = np.clip(np.where(np.isnan(middle), upper, middle), lower, upper)
    return LogBounds(value, lower, upper, result.cost, result.method)


def _most_above(pairs: Sequence[DominatingPair], level: FloatArray) -> FloatArray:
    """Upper bounds of Q(S > -level) for level >= 0, beside the error of the mass of Q: at most 1 - Q(-S > level)."""
    reversed_pairs = [pair.reversed() for pair in pairs]
    parts = [_by_engine(reversed_pairs, level, quantity).lower for quantity in ("delta", "tail")]
    with np.errstate(under="ignore"):
        reached = np.exp(parts[0]) + np.exp(parts[1])
        reached *= 1.0 - 1e-14
    return np.asarray(np.clip(1.0 - reached, 0.0, 1.0) + 4 * UNIT_ROUNDOFF)


def _by_engine(pairs: Sequence[DominatingPair], epsilon: FloatArray, quantity: Quantity) -> LogBounds:
    square = squared_gaussian_distance(pairs)
    if square is not None:
        return gaussian_bounds(square, epsilon, quantity)
    spectra = [(pair.spectrum, float(pair.count)) for pair in pairs]
    known = [(spectrum, count) for spectrum, count in spectra if spectrum is not None]
    if len(known) < len(spectra) or (len(pairs) == 1 and pairs[0].count == 1 and pairs[0].mixtures is not None):
        return _by_other_engines([part for pair in pairs for part in pair.coordinates], epsilon, quantity)
    result = LogBounds(*gaussian_sum_bounds(known, epsilon, quantity), {}, "sum along a bent contour")
    wide = _wide_points(result, _WIDEST)
    return _intersect_bounds(result, wide, _by_other_engines(pairs, epsilon[wide], quantity)) if wide.any() else result


def _by_other_engines(pairs: Sequence[DominatingPair], epsilon: FloatArray, quantity: Quantity) -> LogBounds:
    if quantity == "lower":
        return _by_sums(pairs, epsilon, quantity)
    if len(pairs) == 1 and pairs[0].count == 1 and not pairs[0].is_discrete:
        return _of_one_release(pairs[0], epsilon, quantity)
    result = atom_bounds(pairs, epsilon, quantity)
    if result is not None:
        return result
    if all(pair.has_moments for pair in pairs) and any(pair.infinite_mass()[1] > 0.0 for pair in pairs):
        return _with_infinite_losses(pairs, epsilon, quantity)
    if quantity == "delta":
        return _narrowed_by_fallbacks(pairs, epsilon)
    if all(pair.grid_losses is not None for pair in pairs):
        result = grid_bounds(pairs, epsilon, "tail")
        return _tail_of_fallbacks(pairs, epsilon) if result is None else result
    result = _by_sums(pairs, epsilon, "tail")
    wide = _wide_points(result, _WIDEST)
    return _intersect_bounds(result, wide, _tail_of_fallbacks(pairs, epsilon[wide])) if wide.any() else result


def _tail_of_fallbacks(pairs: Sequence[DominatingPair], epsilon: FloatArray) -> LogBounds:
    reversed_pairs = [pair.reversed() for pair in pairs]
    return _tail_of_curve(lambda levels: _narrowed_by_fallbacks(pairs, levels),
                          lambda levels: _narrowed_by_fallbacks(reversed_pairs, levels), epsilon)


def _narrowed_by_fallbacks(pairs: Sequence[DominatingPair], epsilon: FloatArray) -> LogBounds:
    """Bounds of delta by one engine after the other, as long as brackets are wide."""
    result = _by_sums(pairs, epsilon, "delta")
    mixtures = all(pair.mixtures is not None for pair in pairs)
    known_by_curves = all(pair.grid_losses is None for pair in pairs) and not mixtures
    last = ((simple_bounds, _WIDEST),) if known_by_curves else ()
    few = sum(pair.count for pair in pairs) <= _MOST_RELEASES
    second: tuple[Callable[..., LogBounds | None], float] = (laplace_bounds, _NARROW)
    if mixtures or any(pair.labels is not None for pair in pairs):
        second = (simple_bounds, _WIDE) if mixtures else (_of_labels, _NARROW)
    for engine, width in (second, (_on_grids, _WIDEST), *last):
        wide = _wide_points(result, width)
        if engine is _on_grids and any(pair.mixtures is not None for pair in pairs):
            wide &= (result.upper > _DEEPEST) & few
        other = engine(pairs, epsilon[wide]) if wide.any() else None
        if other is not None:
            result = _intersect_bounds(result, wide, other)
    return result


def _of_labels(pairs: Sequence[DominatingPair], epsilon: FloatArray) -> LogBounds | None:
    return labelled_bounds(pairs, epsilon, lambda some, levels: _bounds_of_pairs(some, levels, "delta"))


def _on_grids(pairs: Sequence[DominatingPair], epsilon: FloatArray) -> LogBounds | None:
    """Bounds by losses on a grid; None where no grid reaches the losses."""
    try:
        return grid_bounds(pairs, epsilon)
    except DomainError:
        return None


def _by_sums(pairs: Sequence[DominatingPair], epsilon: FloatArray, quantity: Quantity) -> LogBounds:
    """Sums over the extreme losses of Laplace noise, or along a contour where its terms fall; else no bounds."""
    laplace = [(*pair.laplace, pair.count) for pair in pairs if pair.laplace is not None]
    result = None
    between = math.fsum(-0.5 * count * math.expm1(-shift / scale) for scale, shift, count in laplace)
    if quantity != "lower" and between <= _FEW_BETWEEN:
        result = laplace_bounds(pairs, epsilon, quantity)
    if result is None and any(pair.has_moments and not pair.is_discrete for pair in pairs):
        result = _by_contour(pairs, epsilon, quantity)
    return _trivial_bounds(epsilon, quantity) if result is None else result


def _by_contour(pairs: Sequence[DominatingPair], epsilon: FloatArray, quantity: Quantity) -> LogBounds | None:
    """Bounds by a sum along a contour; of the tail also by the lower tail of the reversed pair, where that helps."""
    result = contour_bounds(pairs, epsilon, quantity)
    if result is None or quantity != "tail":
        return result
    wide = _wide_points(result, _WIDE_TAIL)
    tilts = contour_tilts(pairs, epsilon[wide]) if wide.any() else None
    if tilts is not None:  # far above the mean of S the lower tail of -S has no saddle point
        wide[wide] = (tilts < _LARGEST_TILT) | (result.upper[wide] >= 0.0)
    reversed_pairs = [pair.reversed() for pair in pairs]
    other = contour_bounds(reversed_pairs, -epsilon[wide], "lower") if wide.any() else None
    if other is None:
        return result
    value, lower, upper = (row + epsilon[wide] for row in other.numbers)
    with np.errstate(over="ignore"):
        outward = 2 * UNIT_ROUNDOFF * (np.abs(epsilon[wide]) + np.where(np.isfinite(upper), np.abs(upper), 0.0))
    return _intersect_bounds(result, wide, LogBounds(value, lower - outward, upper + outward, other.cost, other.method))


def _trivial_bounds(epsilon: FloatArray, quantity: Quantity) -> LogBounds:
    most = epsilon.copy() if quantity == "tail" else np.zeros(epsilon.size)
    return LogBounds(most, np.full(epsilon.size, -np.inf), most, {}, "")


def _wide_points(bounds: LogBounds, width: float) -> BoolArray:
    with np.errstate(invalid="ignore"):
        return np.asarray(~(bounds.upper - bounds.lower <= width) & (bounds.upper > -np.inf))


def _with_infinite_losses(pairs: Sequence[DominatingPair], epsilon: FloatArray, quantity: Quantity) -> LogBounds:
    """The probability of an infinite loss, and what the outcomes with finite losses add."""
    low, high = infinite_log_mass(pairs) if quantity == "delta" else (-math.inf, -math.inf)
    finite: list[DominatingPair] = []
    for pair in pairs:
        outcomes = pair.without_infinite_losses()
        if outcomes is None:
            ends = np.full(epsilon.size, high), np.full(epsilon.size, low), np.full(epsilon.size, high)
            return LogBounds(*ends, {}, "infinite losses")
        finite.append(outcomes)
    result = _by_engine(finite, epsilon, quantity)
    sums = [np.logaddexp(row, end) for row, end in zip(result.numbers, (high, low, high), strict=True)]
    with np.errstate(invalid="ignore"):
        outward = 4 * UNIT_ROUNDOFF * (1.0 + np.abs(sums[2]))
        lower = np.where(np.isneginf(sums[1]), sums[1], sums[1] - outward)
        upper = np.where(np.isneginf(sums[2]), sums[2], np.minimum(sums[2] + outward, np.maximum(epsilon, 0.0)))
    upper = np.minimum(upper, 0.0) if quantity == "delta" else upper
    return LogBounds(np.clip(sums[0], lower, upper), lower, upper, result.cost, f"{result.method}, and infinite losses")


def _intersect_bounds(bounds: LogBounds, wide: BoolArray, other: LogBounds) -> LogBounds:
    """The bounds of two engines, the second of them for some rows only."""
    value, lower, upper = (row.copy() for row in bounds.numbers)
    lower[wide], upper[wide] = np.maximum(lower[wide], other.lower), np.minimum(upper[wide], other.upper)
    value[wide] = np.clip(other.value, lower[wide], upper[wide])
    method = f"{bounds.method}, {other.method}" if bounds.method else other.method
    return LogBounds(value, lower, upper, {**bounds.cost, **other.cost}, method)


def squared_gaussian_distance(pairs: Sequence[DominatingPair]) -> Fraction | None:
    """mu^2, the sum of squares of distance / sigma, exactly; None where a pair is not of two equal normal laws."""
    total = Fraction(0)
    for pair in pairs:
        square = pair.squared_gaussian_distance
        if square is None:
            return None
        total += pair.count * square
    return total


def gaussian_bounds(square: Fraction, epsilon: FloatArray, quantity: Quantity = "delta") -> LogBounds:
    """The closed curve of normal distributions at the distance mu, by mu^2, at epsilon >= 0."""
    return _gaussian_bounds(*square_root_enclosure((square / 4, square / 4)), epsilon, quantity)


def extended_root(square: Fraction) -> Any:
    """The square root of a positive fraction to half a unit of extended precision; None if no double is near it."""
    low, high = square_root_enclosure((square, square))
    if not _ROOTS[0] < low <= high < _ROOTS[1]:
        return None
    remainder = (square - Fraction(low) ** 2) / (2 * Fraction(low))
    return np.longdouble(low) + np.longdouble(float(remainder))


def _gaussian_bounds(low: float, high: float, epsilon: FloatArray, quantity: Quantity) -> LogBounds:
    """The closed curve at both bounds of r = mu / 2; it rises with r."""
    rounding = 1.0 + 8 * UNIT_ROUNDOFF
    if quantity == "lower":  # Phi(epsilon / 2r - r), both terms of which are bounded
        with np.errstate(over="ignore", invalid="ignore"):
            least, largest = epsilon / (2.0 * high * rounding) - high, epsilon / (2.0 * low) * rounding - low
            shifted = 2 * UNIT_ROUNDOFF * (np.abs(least) + high)
            below, above = special.log_ndtr(least - shifted), special.log_ndtr(largest + shifted)
        lower, upper = below * (1 + _NORMAL_ERROR), np.minimum(above * (1 - _NORMAL_ERROR), 0.0)
        return LogBounds.of_bounds(lower, upper, {}, _METHOD_GAUSSIAN)
    if quantity == "delta":
        below, above = (np.asarray(special.gaussian_log_delta(r, epsilon)) for r in (low, high))
        error = _GAUSSIAN_ERROR
    else:
        with np.errstate(over="ignore"):
            # a = e^epsilon Phi(-r - epsilon / 2r) is not monotone in r: both arguments are bounded term by term
            largest, least = (low + 0.5 * epsilon / high) / rounding, (high + 0.5 * epsilon / low) * rounding
            below, above = epsilon + special.log_ndtr(-least), epsilon + special.log_ndtr(-largest)
        with np.errstate(over="ignore", invalid="ignore"):  # logarithms beyond all doubles are minus infinity
            slack = 4 * UNIT_ROUNDOFF * (epsilon + np.abs(below)) + _NORMAL_ERROR * np.abs(below - epsilon)
            lower, upper = next_below(below - slack), np.minimum(next_above(above + slack), epsilon)
            lower = np.where(np.isneginf(below), below, lower)
            upper = np.where(np.isneginf(above), -LARGEST_DOUBLE, np.where(np.isnan(upper), epsilon, upper))
        return LogBounds.of_bounds(lower, upper, {}, _METHOD_GAUSSIAN)
    with np.errstate(invalid="ignore", over="ignore"):
        lower, upper = next_below(below * (1 + error), 3), next_above(above * (1 - error), 3)
        lower = np.minimum(np.where(np.isneginf(below), below, lower), 0.0)
        upper = np.minimum(np.where(np.isneginf(above), -LARGEST_DOUBLE, upper), 0.0)
        value = 0.5 * below + 0.5 * above
    value = np.clip(np.where(np.isfinite(value), value, upper), lower, upper)
    return LogBounds(value, lower, upper, {}, _METHOD_GAUSSIAN)


def _of_one_release(pair: DominatingPair, epsilon: FloatArray, quantity: Quantity) -> LogBounds:
    if quantity == "delta":
        return pair.log_delta(epsilon)
    return _tail_of_curve(pair.log_delta, pair.reversed().log_delta, epsilon)


def _tail_of_curve(
    curve: Callable[[FloatArray], LogBounds], reversed_curve: Callable[[FloatArray], LogBounds], epsilon: FloatArray
) -> LogBounds:
    """Bounds of a from those of delta, by the text at the head; ``reversed_curve`` is that of the reversed pair."""
    result = curve(epsilon)
    wide = _wide_points(result, _WIDEST)  # one step to either side says about as much there as many
    # A step is several units in the last place of epsilon, so that the levels beside epsilon differ from it.
    steps = np.maximum(_QUOTIENT_STEPS[:, None], 8 * UNIT_ROUNDOFF * np.minimum(epsilon, LARGEST_DOUBLE))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        slow = np.fmin(np.maximum(-0.5 * epsilon / result.upper, steps[0]), steps[-1])  # log delta falls by about 1
        before = next_above(epsilon - np.where(wide, slow, steps))
        after = next_below(epsilon + np.where(wide, steps[-1], steps))
    after[:, np.isneginf(result.lower)] = epsilon[np.isneginf(result.lower)]
    sides = [side[side != epsilon] for side in (before, after)]
    levels, index = np.unique(np.concatenate(sides), return_inverse=True)
    ahead = levels >= 0.0
    high = np.empty(levels.size)
    high[ahead] = curve(levels[ahead]).upper
    if not ahead.all():
        below = levels[~ahead]
        other = np.minimum(reversed_curve(-below[::-1]).upper[::-1] + below, 0.0)
        with np.errstate(under="ignore"):
            start = np.log(-np.expm1(below))
            error = 8 * UNIT_ROUNDOFF * (1.0 + np.abs(start) + np.where(np.isfinite(other), np.abs(other), 0.0))
            high[~ahead] = np.logaddexp(start, other) + error
    logs = np.full((2, *before.shape), np.inf)
    logs[0, before != epsilon], logs[1, after != epsilon] = np.split(high[index], [sides[0].size])
    scale = np.where(np.isfinite(result.upper), result.upper, 0.0)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        least, most = result.lower - scale, logs - scale
        sizes = (np.where(np.isfinite(x), np.abs(x), 0.0) for x in (least, most))
        below_one, above_one = (4 * UNIT_ROUNDOFF * (1.0 + size) for size in sizes)
        low = np.exp(least) * (1.0 - below_one)
        high_before, high_after = np.exp(most) * (1.0 + above_one)
        quotients = (high_before - low) / -np.expm1(next_above(before - epsilon))
        upper = np.where(before < epsilon, quotients, np.inf).min(axis=0) * (1 + 1e-14)
        quotients = (low - high_after) / np.expm1(next_above(after - epsilon))
        lower = np.where(after > epsilon, quotients, -np.inf).max(axis=0) * (1 - 1e-14)
        upper, lower = (np.log(np.maximum(x, 0.0)) + scale for x in (upper, lower))
        outward = 4 * UNIT_ROUNDOFF * (np.abs(scale) + 1.0)
        upper, lower = upper + outward, lower - outward
        # Without the subtrahend, in logarithms: levels apart by many times the fall of delta would overflow.
        size = 4 * UNIT_ROUNDOFF * (1.0 + np.where(np.isfinite(logs[0]), np.abs(logs[0]), 0.0))
        direct = logs[0] - np.log(-np.expm1(next_above(before - epsilon))) + size
        upper = np.fmin(upper, np.where(before < epsilon, direct, np.inf).min(axis=0))
    upper = next_above(np.minimum(upper, epsilon), 2)
    lower = np.minimum(next_below(lower, 2), upper)
    return LogBounds.of_bounds(lower, upper, result.cost, f"{result.method}, difference quotients")
