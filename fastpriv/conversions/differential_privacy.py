"""(epsilon, delta) privacy and its relatives: total variation, membership advantage, GDP, trade-off functions, groups.

Notation: H_a(P||Q) = sup_E P(E) - a Q(E). (epsilon, delta): H at e^epsilon is at most delta, for P, Q and for Q, P.
Under local privacy any two inputs are such a pair, under differential privacy the neighbours are.

One point of the curve bounds the whole of it: every (epsilon, delta) pair is randomised response that reveals the input
with probability delta, processed further (Kairouz, Oh and Viswanath), hence H at e^t is at most
delta + (1 - delta) (e^epsilon - e^t)^+ / (1 + e^epsilon), attained; t = 0 is total variation.

Gaussian differential privacy (GDP): no easier to tell apart than N(0, 1) and N(separation, 1). ``separation`` is the mu
of mu-GDP; delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2) is the curve of the Gaussian
mechanism with sensitivity / sigma = mu. Pure privacy to GDP: the trade-off function of randomised response is a line
from (0, 1) to its corner (c, c), c = 1/(1 + e^epsilon), and a line from there to (1, 0). That of normal distributions
is convex, so it lies below both lines once it lies below the corner: Phi(-mu/2) <= c.

Trade-off functions (f-DP): x = type_one is the probability of a false alarm, f(x) that of a miss, for the best test
between two neighbours. The guarantee is a LOWER bound: quote ``lower``. (epsilon, delta) either way round means
f(x) >= max(0, 1 - delta - e^epsilon x, e^-epsilon (1 - delta - x)), and nothing for an infinite epsilon; a whole curve
means the largest of these over it, and back, delta(epsilon) is the largest of 1 - f(x) - e^epsilon x over x, with the
roles exchanged too.

Groups: what holds when ``group`` records change at once, by as many steps from neighbour to neighbour.
"""

# bounds: tested by enclosures/test_conversions_values - rounding of exponents (up to 2000 for groups), of the ends of
#    an inverse, and of a line's slope and height

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .. import special
from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate, Information, NumberLike, Unit
from ..base.numerics import FloatArray
from ._closed_forms import (
    bounded,
    dominating_delta,
    dominating_epsilon,
    gaussian_trade_off,
    points_and_values,
    same_number,
    validated,
)
from .declaration import Formula, conversion
from .vocabulary import BALLE_WANG, BUN_STEINKE, DONG_ROTH_SU, EVERY_PAIR, HUMPHRIES, KAIROUZ, PROVED, Assumption

# ``method``: the curve of the dominating mechanism at target epsilon t.
_CURVE = "delta + (1 - delta) (e^epsilon - e^t)^+ / (1 + e^epsilon)"
# bound: tested by kernels/test_gaussian_mechanism, enclosures/test_conversions_values - relative error of
#    gaussian_delta
_GAUSSIAN_DELTA_ERROR = 4e-15  # relative error of the kernel gaussian_delta
_ERFINV_BELOW = 1.0  # epsilon below which the inverse error function is taken, above it the inverse of log Phi
# bound: tested by enclosures/test_conversions_values - absolute rounding of the height of a line
_LINE_ERROR = 1e-15  # a few units in the last place of a probability
_GAUSSIAN = Assumption("the mechanism is Gaussian")  # of the conversion from DP to GDP
# Of the conversion of points of a trade-off function.
_PIECEWISE_LINEAR = Assumption("the function is straight between the points")


@conversion("dp", "dp", Formula("tight", KAIROUZ, rising="epsilon delta", falling="target_epsilon"))
def dp_delta_from_dp(epsilon: NumberLike, delta: NumberLike, target_epsilon: NumberLike) -> Estimate:
    """Least delta at another epsilon that follows from one (epsilon, delta): the curve of the dominating pair.

    >>> conversions.dp_delta_from_dp(1.0, 1e-6, [0.0, 0.5, 2.0]).value
    array([4.62117695e-01, 2.87649849e-01, 1.00000000e-06])
    """
    epsilon, delta, target = validated(epsilon=epsilon, delta=delta, target_epsilon=target_epsilon)
    return bounded(dominating_delta(epsilon, delta, target), "probability", _CURVE, ceiling=1.0)


@conversion("ldp", "dp", Formula("tight", KAIROUZ, rising="epsilon", falling="target_epsilon"))
def dp_delta_from_ldp(epsilon: NumberLike, target_epsilon: NumberLike) -> Estimate:
    """Least delta at a smaller epsilon that follows from pure privacy: the curve of randomised response.

    >>> conversions.dp_delta_from_ldp(1.0, [0.0, 0.5, 1.0]).value
    array([0.46211716, 0.28764..., 0.        ])
    """
    epsilon, target = validated(epsilon=epsilon, target_epsilon=target_epsilon)
    disjoint = np.isinf(epsilon)  # the two distributions may be on disjoint sets
    value = np.where(disjoint, 1.0, dominating_delta(epsilon, np.zeros_like(epsilon), target))
    return bounded(value, "probability", _CURVE, ceiling=1.0, unrounded=disjoint | (epsilon <= target))


@conversion("ldp", "dp", Formula("tight", KAIROUZ, rising="epsilon", falling="delta"))
def dp_epsilon_from_ldp(epsilon: NumberLike, delta: NumberLike) -> Estimate:
    """Least epsilon at ``delta`` that follows from pure privacy: epsilon + ln(1 - delta (1 + e^-epsilon)), at least 0.

    >>> conversions.dp_epsilon_from_ldp(1.0, [0.0, 0.1, 0.5]).value
    array([1.        , 0.85..., 0.        ])
    """
    epsilon, delta = validated(epsilon=epsilon, delta=delta)
    value, error = dominating_epsilon(epsilon, delta * (1.0 + np.exp(-epsilon)))
    return bounded(
        value, "nats", "epsilon + ln(1 - delta (1 + e^-epsilon))", error=error,
        unrounded=(delta == 0.0) | (epsilon == 0.0) | np.isinf(epsilon),
    )  # fmt: skip


@conversion("total_variation", "dp", Formula(
    "tight", "the definitions", rising="total_variation", domain="at every epsilon",
))  # fmt: skip
def dp_delta_from_total_variation(total_variation: NumberLike) -> Estimate:
    """Least delta at any epsilon that follows from total variation: that number itself, at epsilon = 0 and beyond.

    >>> conversions.dp_delta_from_total_variation(0.25).value
    0.25
    """
    return same_number("probability", total_variation=total_variation)


@conversion("dp", "total_variation", Formula("tight", KAIROUZ, rising="epsilon delta"))
def total_variation_from_dp(epsilon: NumberLike, delta: NumberLike = 0.0) -> Estimate:
    """Largest total variation under (epsilon, delta): (e^epsilon - 1 + 2 delta) / (e^epsilon + 1).

    >>> conversions.total_variation_from_dp(1.0, [0.0, 0.1]).value
    array([0.46211716, 0.51590544])
    """
    epsilon, delta = validated(epsilon=epsilon, delta=delta)
    return _total_variation(epsilon, delta)


@conversion("ldp", "total_variation", Formula("tight", KAIROUZ, rising="epsilon"))
def total_variation_from_ldp(epsilon: NumberLike) -> Estimate:
    """Largest total variation under pure privacy: tanh(epsilon / 2).

    >>> conversions.total_variation_from_ldp(1.0).value
    0.46211715...
    """
    (epsilon,) = validated(epsilon=epsilon)
    return _total_variation(epsilon, np.zeros_like(epsilon))


@conversion("kl", "total_variation", Formula(
    "bound", "Pinsker's inequality; Bretagnolle and Huber (1979)", rising="kl",
))  # fmt: skip
def total_variation_from_kl(kl: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Bound of total variation from a divergence: the smaller of Pinsker's and of Bretagnolle and Huber's.

    min(sqrt(kl / 2), sqrt(1 - e^-kl)).

    >>> conversions.total_variation_from_kl([0.02, 1.0, 5.0]).value
    array([0.1       , 0.70710678, 0.99662533])
    """
    (kl,) = validated(kl=kl, unit=unit)
    value = np.minimum(np.sqrt(0.5) * np.sqrt(kl), np.sqrt(-np.expm1(-kl)))
    return bounded(value, "probability", "min(sqrt(kl / 2), sqrt(1 - e^-kl))", ceiling=1.0, unrounded=kl == 0.0)


@conversion("dp", "membership_advantage", Formula("tight", f"{HUMPHRIES}; {KAIROUZ}", rising="epsilon delta"))
def membership_advantage_from_dp(epsilon: NumberLike, delta: NumberLike = 0.0) -> Estimate:
    """Largest true positive minus false positive rate of any attack: (e^epsilon - 1 + 2 delta) / (e^epsilon + 1).

    >>> conversions.membership_advantage_from_dp(1.0, 1e-5).value
    0.46212253...
    """
    return total_variation_from_dp(epsilon, delta)


@conversion("ldp", "membership_advantage", Formula("tight", HUMPHRIES, rising="epsilon"))
def membership_advantage_from_ldp(epsilon: NumberLike) -> Estimate:
    """Largest membership advantage under pure privacy: tanh(epsilon / 2).

    >>> conversions.membership_advantage_from_ldp(1.0).value
    0.46211715...
    """
    return total_variation_from_ldp(epsilon)


@conversion("total_variation", "membership_advantage", Formula(
    "tight", "lemma of Neyman and Pearson", rising="total_variation",
))  # fmt: skip
def membership_advantage_from_total_variation(total_variation: NumberLike) -> Estimate:
    """The best attack guesses by the likelihood ratio; its advantage is the total variation.

    >>> conversions.membership_advantage_from_total_variation(0.25).value
    0.25
    """
    return same_number("probability", total_variation=total_variation)


@conversion("dp", "approximate_lip", Formula(
    "bound", "convexity of the hockey-stick divergence", rising="epsilon delta", assumptions=(EVERY_PAIR,),
))  # fmt: skip
def lip_delta_from_dp(epsilon: NumberLike, delta: NumberLike) -> Estimate:
    """The same delta: (epsilon, delta)-LDP is (epsilon, delta)-LIP under every prior, the release being a mean of rows.

    >>> conversions.lip_delta_from_dp(1.0, 0.01).value
    0.01
    """
    epsilon, delta = validated(epsilon=epsilon, delta=delta)
    return bounded(delta, "probability", "the same number", unrounded=True)


def _total_variation(epsilon: FloatArray, delta: FloatArray) -> Estimate:
    value = delta + (1.0 - delta) * np.tanh(0.5 * epsilon)
    return bounded(
        value, "probability", "(e^epsilon - 1 + 2 delta) / (e^epsilon + 1)", ceiling=1.0,
        unrounded=(epsilon == 0.0) & (delta == 0.0),
    )  # fmt: skip


@conversion("gdp", "dp", Formula(
    "tight", f"{DONG_ROTH_SU}, corollary 1; {BALLE_WANG}", rising="separation", falling="epsilon",
))  # fmt: skip
def dp_delta_from_gdp(separation: NumberLike, epsilon: NumberLike) -> Estimate:
    """Least delta at ``epsilon`` that follows from Gaussian privacy: the exact curve of two unit normal distributions.

    >>> conversions.dp_delta_from_gdp(1.0, [0.0, 1.0]).value
    array([0.38292492, 0.12693674])
    """
    separation, epsilon = validated(separation=separation, epsilon=epsilon)
    value = np.asarray(special.gaussian_delta(0.5 * separation, epsilon))
    limits = (separation == 0.0) | (np.isinf(epsilon) & np.isfinite(separation))
    error = _GAUSSIAN_DELTA_ERROR * value
    return bounded(value, "probability", "closed form", error=error, ceiling=1.0, unrounded=limits)


@conversion("gdp", "dp", Formula(
    "tight", f"{DONG_ROTH_SU}, corollary 1; {BALLE_WANG}", rising="separation", falling="delta",
))  # fmt: skip
def dp_epsilon_from_gdp(separation: NumberLike, delta: NumberLike) -> Estimate:
    """Least epsilon at ``delta`` that follows from Gaussian privacy: the inverse of the exact curve.

    >>> conversions.dp_epsilon_from_gdp(1.0, 1e-6).value
    4.8865541...
    """
    separation, delta = validated(separation=separation, delta=delta)
    upper = np.asarray(special.gaussian_epsilon(0.5 * separation, delta))
    lower = np.minimum(np.asarray(special.gaussian_epsilon_below(0.5 * separation, delta)), upper)
    with np.errstate(invalid="ignore"):
        value = np.where(np.isinf(upper), upper, np.clip(lower + 0.5 * (upper - lower), lower, upper))
    return Estimate(value, lower, upper, kind="exact", unit="nats", method="inverse of the closed form")


@conversion("gdp", "total_variation", Formula("tight", f"{DONG_ROTH_SU}, corollary 1", rising="separation"))
def total_variation_from_gdp(separation: NumberLike) -> Estimate:
    """Largest total variation under Gaussian privacy: 2 Phi(separation / 2) - 1.

    >>> conversions.total_variation_from_gdp(1.0).value
    0.38292492...
    """
    (separation,) = validated(separation=separation)
    return dp_delta_from_gdp(separation, 0.0)


@conversion("ldp", "gdp", Formula("tight", PROVED, rising="epsilon"))
def gdp_from_ldp(epsilon: NumberLike) -> Estimate:
    """Least separation such that pure privacy gives Gaussian privacy: -2 Phi^-1(1 / (1 + e^epsilon)).

    About sqrt(pi/2) epsilon for small epsilon and sqrt(8 epsilon) for large ones.

    >>> conversions.gdp_from_ldp([0.01, 1.0, 100.0]).value
    array([1.25331190e-02, 1.23203539e+00, 2.77769521e+01])
    """
    from scipy.special import erfinv, ndtri_exp

    (epsilon,) = validated(epsilon=epsilon)
    small = epsilon < _ERFINV_BELOW
    with np.errstate(over="ignore"):
        near = np.sqrt(8.0) * erfinv(np.tanh(0.5 * np.where(small, epsilon, 0.0)))
        tail = np.where(small | np.isinf(epsilon), 1.0, epsilon)
        far = -2.0 * ndtri_exp(-tail - np.log1p(np.exp(-tail)))
    value = np.where(small, near, np.where(np.isinf(epsilon), np.inf, far))
    return bounded(value, "1", "-2 Phi^-1(1 / (1 + e^epsilon))", unrounded=(epsilon == 0.0) | np.isinf(epsilon))


@conversion("dp", "gdp", Formula(
    "tight", f"{DONG_ROTH_SU}, corollary 1, inverted", rising="epsilon delta", assumptions=(_GAUSSIAN,),
))  # fmt: skip
def gdp_from_dp(epsilon: NumberLike, delta: NumberLike) -> Estimate:
    """Separation of the normal distributions that meet (epsilon, delta): for a mechanism KNOWN to be Gaussian.

    No Gaussian privacy follows from one (epsilon, delta) with delta > 0 in general: the secret may be revealed with
    probability delta.

    >>> round(conversions.gdp_from_dp(1.0, 0.12693673750664397).value, 12)
    1.0
    """
    epsilon, delta = validated(epsilon=epsilon, delta=delta)
    with np.errstate(divide="ignore"):
        low = 1.0 / np.asarray(special.gaussian_noise(epsilon, delta))
        high = 1.0 / np.asarray(special.gaussian_noise_below(epsilon, delta))
    lower, upper = np.minimum(low, high) * (1.0 - 4e-16), np.maximum(low, high) * (1.0 + 4e-16)
    return Estimate(
        np.clip(low, lower, upper), lower, upper, kind="exact", unit="1", method="inverse of the closed form"
    )


@conversion("ldp", "tradeoff", Formula(
    "tight", f"{DONG_ROTH_SU}, the trade-off of (epsilon, delta)", falling="epsilon type_one",
    note="the guarantee is the lower bound",
))  # fmt: skip
def tradeoff_from_ldp(epsilon: NumberLike, type_one: NumberLike) -> Estimate:
    """Least probability of a miss under pure privacy: that of randomised response, two straight lines.

    >>> conversions.tradeoff_from_ldp(1.0, [0.0, 0.25, 0.5, 1.0]).value
    array([1.        , 0.32042954, 0.18393972, 0.        ])
    """
    epsilon, type_one = validated(epsilon=epsilon, type_one=type_one)
    return _randomized_response_tradeoff(epsilon, np.zeros_like(epsilon), type_one)


@conversion("dp", "tradeoff", Formula(
    "tight", f"{DONG_ROTH_SU}, the trade-off of (epsilon, delta)", falling="epsilon delta type_one",
    note="the guarantee is the lower bound",
))  # fmt: skip
def tradeoff_from_dp(epsilon: NumberLike, delta: NumberLike, type_one: NumberLike) -> Estimate:
    """Least probability of a miss under (epsilon, delta): max(0, 1 - delta - e^epsilon x, e^-epsilon (1 - delta - x)).

    >>> conversions.tradeoff_from_dp(1.0, 0.1, [0.0, 0.25]).value
    array([0.9       , 0.23912...])
    """
    epsilon, delta, type_one = validated(epsilon=epsilon, delta=delta, type_one=type_one)
    return _randomized_response_tradeoff(epsilon, delta, type_one)


@conversion("dp_curve", "tradeoff", Formula(
    "tight", f"{DONG_ROTH_SU}, from (epsilon, delta) to a trade-off", falling="epsilon delta type_one",
    joint="delta", note="the guarantee is the lower bound; at the points given",
))  # fmt: skip
def tradeoff_from_dp_curve(epsilon: NumberLike, delta: NumberLike, type_one: NumberLike) -> Estimate:
    """Least probability of a miss under a whole curve; ``epsilon`` is one-dimensional, the last axis of ``delta``.

    ``type_one`` broadcasts with the other axes of ``delta``. Tight at the points given.

    >>> import numpy as np
    >>> epsilon = np.linspace(0.0, 5.0, 101)
    >>> delta = conversions.dp_delta_from_gdp(1.0, epsilon).value
    >>> conversions.tradeoff_from_dp_curve(epsilon, delta, 0.1).value
    0.61...
    """
    grid, levels = points_and_values("epsilon", epsilon, "delta", delta)
    (false_alarm,) = validated(type_one=type_one)
    validate.broadcastable("type_one", false_alarm, "delta without its last axis", levels[..., 0])
    best = _highest_line(grid[0], levels[..., 0], false_alarm)
    for k in range(1, grid.size):
        best = np.maximum(best, _highest_line(grid[k], levels[..., k], false_alarm))
    return bounded(best, "probability", f"highest of {grid.size} pairs of lines", error=_LINE_ERROR, ceiling=1.0)


@conversion("gdp", "tradeoff", Formula(
    "tight", f"{DONG_ROTH_SU}, the definition of Gaussian privacy", falling="separation type_one",
    note="the guarantee is the lower bound",
))  # fmt: skip
def tradeoff_from_gdp(separation: NumberLike, type_one: NumberLike) -> Estimate:
    """Least probability of a miss under Gaussian privacy: Phi(Phi^-1(1 - x) - separation).

    >>> conversions.tradeoff_from_gdp(1.0, [0.05, 0.5]).value
    array([0.74048898, 0.15865525])
    """
    separation, type_one = validated(separation=separation, type_one=type_one)
    value, error = gaussian_trade_off(separation, 1.0, type_one)
    ends = (type_one == 1.0) | (type_one == 0.0)
    return bounded(value, "probability", "Phi(Phi^-1(1 - x) - separation)", error=error, ceiling=1.0, unrounded=ends)


@conversion("tradeoff", "dp", Formula(
    "tight", f"{DONG_ROTH_SU}, from a trade-off to (epsilon, delta)", falling="type_two epsilon", joint="type_two",
    assumptions=(_PIECEWISE_LINEAR,), domain="type_one increasing from 0 to 1",
))  # fmt: skip
def dp_delta_from_tradeoff(type_one: ArrayLike, type_two: NumberLike, epsilon: NumberLike) -> Estimate:
    """Delta at ``epsilon`` from a trade-off function that is straight between the points (type_one, type_two).

    ``type_one`` is one-dimensional, increasing from 0 to 1, the last axis of ``type_two``; both ways round are taken.
    Samples of a strictly convex function lie on chords above it, so that for one of those the answer is too small.

    >>> corner = 1 / (1 + 2.718281828459045)
    >>> conversions.dp_delta_from_tradeoff([0, corner, 1], [1, corner, 0], [0.0, 0.5]).value
    array([0.46211716, 0.28764...])
    """
    alarms, misses = points_and_values("type_one", type_one, "type_two", type_two)
    if alarms[0] != 0.0 or alarms[-1] != 1.0 or np.any(np.diff(alarms) < 0.0):
        raise DomainError(
            f"type_one must be increasing from 0 to 1; got {alarms[0]!r} to {alarms[-1]!r} over {alarms.size} points. "
            "Sort the points and add the ends."
        )
    (target,) = validated(epsilon=epsilon)
    validate.broadcastable("epsilon", target, "type_two without its last axis", misses[..., 0])
    best = np.zeros(np.broadcast_shapes(target.shape, misses.shape[:-1]))
    with np.errstate(over="ignore", invalid="ignore"):
        slope = np.exp(target)
        for k in range(alarms.size):
            for first, second in ((alarms[k], misses[..., k]), (misses[..., k], alarms[k])):
                best = np.maximum(best, 1.0 - first - np.where(np.equal(second, 0.0), 0.0, slope * second))
    return bounded(best, "probability", f"highest of {alarms.size} corners", error=_LINE_ERROR, ceiling=1.0)


def _highest_line(epsilon: FloatArray, delta: FloatArray, x: FloatArray) -> FloatArray:
    """max(0, 1 - delta - e^epsilon x, e^-epsilon (1 - delta - x))."""
    with np.errstate(over="ignore", invalid="ignore"):
        steep = 1.0 - delta - np.where(x == 0.0, 0.0, np.exp(epsilon) * x)
        flat = np.exp(-epsilon) * (1.0 - delta - x)
    return np.where(np.isinf(epsilon), 0.0, np.maximum(0.0, np.maximum(steep, flat)))


def _randomized_response_tradeoff(epsilon: FloatArray, delta: FloatArray, x: FloatArray) -> Estimate:
    value = _highest_line(epsilon, delta, x)
    return bounded(value, "probability", "the higher of two lines", error=_LINE_ERROR, ceiling=1.0, unrounded=x == 1.0)


@conversion("ldp", "group_ldp", Formula(
    "tight", "Dwork and Roth, Algorithmic foundations (2014), group privacy", rising="epsilon group",
))  # fmt: skip
def group_ldp_from_ldp(epsilon: NumberLike, group: NumberLike) -> Estimate:
    """Epsilon of pure privacy for a group: group times epsilon, which a geometric mechanism attains.

    >>> conversions.group_ldp_from_ldp(0.5, 4).value
    2.0
    """
    epsilon, group = validated(epsilon=epsilon, group=group)
    return _scaled(epsilon, group, "nats", "group epsilon")


@conversion("dp", "group_dp", Formula(
    "bound", "Vadhan, The complexity of differential privacy (2017), section 2.1, its sum kept",
    rising="epsilon delta group", note="at group times epsilon",
))  # fmt: skip
def group_dp_delta_from_dp(epsilon: NumberLike, delta: NumberLike, group: NumberLike) -> Estimate:
    """Delta of a group at ``group * epsilon``: delta (e^(group epsilon) - 1) / (e^epsilon - 1), at most 1.

    >>> conversions.group_dp_delta_from_dp(1.0, 1e-6, [1, 2, 3]).value
    array([1.00000000e-06, 3.71828183e-06, 1.11073379e-05])
    """
    epsilon, delta, group = validated(epsilon=epsilon, delta=delta, group=group)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # e^((k-1) epsilon) (1 - e^(-k epsilon)) / (1 - e^-epsilon), its power by halves against overflow
        shrunk = np.where(epsilon == 0.0, group, np.expm1(-group * epsilon) / np.expm1(-epsilon))
        power = np.where(group == 1.0, 0.0, (group - 1.0) * epsilon)
        root = np.exp(0.5 * power)
        value = np.where((delta == 0.0) & (power < np.inf), 0.0, root * (root * (delta * shrunk)))
        value = np.minimum(np.where(np.isnan(value), 1.0, value), 1.0)
        error = (1e-14 + 4e-16 * np.minimum(power, 2000.0)) * value
    return bounded(
        value, "probability", "delta expm1(group epsilon) / expm1(epsilon)", error=error, ceiling=1.0,
        unrounded=(group == 1.0) | (delta == 0.0),
    )  # fmt: skip


@conversion("zcdp", "group_zcdp", Formula(
    "tight", f"{BUN_STEINKE}, group privacy", rising="rho group",
))  # fmt: skip
def group_zcdp_from_zcdp(rho: NumberLike, group: NumberLike) -> Estimate:
    """Concentrated privacy of a group: group^2 rho, which the Gaussian mechanism attains.

    >>> conversions.group_zcdp_from_zcdp(0.5, 4).value
    8.0
    """
    rho, group = validated(rho=rho, group=group)
    with np.errstate(over="ignore"):
        square = group * group
    return _scaled(rho, square, "nats", "group^2 rho")


@conversion("gdp", "group_gdp", Formula(
    "tight", f"{DONG_ROTH_SU}, group privacy", rising="separation group",
))  # fmt: skip
def group_gdp_from_gdp(separation: NumberLike, group: NumberLike) -> Estimate:
    """Separation of Gaussian privacy for a group: group times as much, which the Gaussian mechanism attains.

    >>> conversions.group_gdp_from_gdp(0.5, 4).value
    2.0
    """
    separation, group = validated(separation=separation, group=group)
    return _scaled(separation, group, "1", "group separation")


def _scaled(value: FloatArray, factor: FloatArray, unit: Unit, method: str) -> Estimate:
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.where(value == 0.0, 0.0, value * factor)
    return bounded(product, unit, method, unrounded=(factor == 1.0) | (value == 0.0))
