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
f(x) >= max(0, 1 - delta - e^epsilon x, e^-epsilon (1 - delta - x)), and nothing for an infinite epsilon.

Groups: what holds when ``group`` records change at once, by as many steps from neighbour to neighbour.
"""

# bounds: proved - docs/proofs/roundings.md, 13.11: rounding of exponents up to 2000, and a scale against underflow

from __future__ import annotations

import numpy as np

from .. import special
from ..base.estimate import Estimate, Information, NumberLike
from . import _closed_forms as forms
from .declaration import Formula, conversion
from .vocabulary import BALLE_WANG, DONG_ROTH_SU, EVERY_PAIR, HUMPHRIES, KAIROUZ, PROVED

# ``method``: the curve of the dominating mechanism at target epsilon t.
_CURVE = "delta + (1 - delta) (e^epsilon - e^t)^+ / (1 + e^epsilon)"
# bound: proved - relative error of gaussian_delta (theorem 1.2 of docs/proofs/gaussian.md); below r = 1e-280 products
#    that underflow add less than 5e-323, which ABSOLUTE_ERROR covers
_GAUSSIAN_DELTA_ERROR = 4e-15  # relative error of the kernel gaussian_delta
_ERFINV_BELOW = 1.0  # epsilon below which the inverse error function is taken, above it the inverse of log Phi
# bound: proved - absolute rounding of the height of a line: 1.94 units of 2^-53 of the exponential, a product and two
#    differences of numbers that are at most 1 where the height is positive
_LINE_ERROR = 1e-15  # a few units in the last place of a probability


@conversion("dp", "dp", Formula("tight", KAIROUZ, rising="epsilon delta", falling="target_epsilon"))
def dp_delta_from_dp(epsilon: NumberLike, delta: NumberLike, target_epsilon: NumberLike) -> Estimate:
    """Least delta at another epsilon that follows from one (epsilon, delta): the curve of the dominating pair.

    >>> conversions.dp_delta_from_dp(1.0, 1e-6, [0.0, 0.5, 2.0]).value
    array([4.62117695e-01, 2.87649849e-01, 1.00000000e-06])
    """
    epsilon, delta, target = forms.validated(epsilon=epsilon, delta=delta, target_epsilon=target_epsilon)
    return forms.bounded(forms.dominating_delta(epsilon, delta, target), "probability", _CURVE, ceiling=1.0)


@conversion("ldp", "dp", Formula("tight", KAIROUZ, rising="epsilon", falling="target_epsilon"))
def dp_delta_from_ldp(epsilon: NumberLike, target_epsilon: NumberLike) -> Estimate:
    """Least delta at a smaller epsilon that follows from pure privacy: the curve of randomised response.

    >>> conversions.dp_delta_from_ldp(1.0, [0.0, 0.5, 1.0]).value
    array([0.46211716, 0.28764..., 0.        ])
    """
    epsilon, target = forms.validated(epsilon=epsilon, target_epsilon=target_epsilon)
    disjoint = np.isinf(epsilon)  # the two distributions may be on disjoint sets
    value = np.where(disjoint, 1.0, forms.dominating_delta(epsilon, np.zeros_like(epsilon), target))
    return forms.bounded(value, "probability", _CURVE, ceiling=1.0, unrounded=disjoint | (epsilon <= target))


@conversion("ldp", "dp", Formula("tight", KAIROUZ, rising="epsilon", falling="delta"))
def dp_epsilon_from_ldp(epsilon: NumberLike, delta: NumberLike) -> Estimate:
    """Least epsilon at ``delta`` that follows from pure privacy: epsilon + ln(1 - delta (1 + e^-epsilon)), at least 0.

    >>> conversions.dp_epsilon_from_ldp(1.0, [0.0, 0.1, 0.5]).value
    array([1.        , 0.85..., 0.        ])
    """
    epsilon, delta = forms.validated(epsilon=epsilon, delta=delta)
    value, error = forms.dominating_epsilon(epsilon, delta * (1.0 + np.exp(-epsilon)))
    return forms.bounded(
        value, "nats", "epsilon + ln(1 - delta (1 + e^-epsilon))", error=error,
        unrounded=(delta == 0.0) | (epsilon == 0.0) | np.isinf(epsilon),
    )


@conversion("total_variation", "dp", Formula(
    "tight", "the definitions", rising="total_variation", domain="at every epsilon",
))
def dp_delta_from_total_variation(total_variation: NumberLike) -> Estimate:
    """Least delta at any epsilon that follows from total variation: that number itself, at epsilon = 0 and beyond.

    >>> conversions.dp_delta_from_total_variation(0.25).value
    0.25
    """
    return forms.same_number("probability", total_variation=total_variation)


@conversion("dp", "total_variation", Formula("tight", KAIROUZ, rising="epsilon delta"))
def total_variation_from_dp(epsilon: NumberLike, delta: NumberLike = 0.0) -> Estimate:
    """Largest total variation under (epsilon, delta): (e^epsilon - 1 + 2 delta) / (e^epsilon + 1).

    >>> conversions.total_variation_from_dp(1.0, [0.0, 0.1]).value
    array([0.46211716, 0.51590544])
    """
    epsilon, delta = forms.validated(epsilon=epsilon, delta=delta)
    value = delta + (1.0 - delta) * np.tanh(0.5 * epsilon)
    return forms.bounded(
        value, "probability", "(e^epsilon - 1 + 2 delta) / (e^epsilon + 1)", ceiling=1.0,
        unrounded=(epsilon == 0.0) & (delta == 0.0),
    )


@conversion("ldp", "total_variation", Formula("tight", KAIROUZ, rising="epsilon"))
def total_variation_from_ldp(epsilon: NumberLike) -> Estimate:
    """Largest total variation under pure privacy: tanh(epsilon / 2).

    >>> conversions.total_variation_from_ldp(1.0).value
    0.46211715...
    """
    return total_variation_from_dp(epsilon)


@conversion("kl", "total_variation", Formula(
    "bound", "Pinsker's inequality; Bretagnolle and Huber (1979)", rising="kl",
))
def total_variation_from_kl(kl: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Bound of total variation from a divergence: the smaller of Pinsker's and of Bretagnolle and Huber's.

    min(sqrt(kl / 2), sqrt(1 - e^-kl)).

    >>> conversions.total_variation_from_kl([0.02, 1.0, 5.0]).value
    array([0.1       , 0.70710678, 0.99662533])
    """
    (kl,) = forms.validated(kl=kl, unit=unit)
    value = np.minimum(np.sqrt(0.5) * np.sqrt(kl), np.sqrt(-np.expm1(-kl)))
    return forms.bounded(value, "probability", "min(sqrt(kl / 2), sqrt(1 - e^-kl))", ceiling=1.0, unrounded=kl == 0.0)


@conversion("dp", "membership_advantage", Formula("tight", f"{HUMPHRIES}; {KAIROUZ}", rising="epsilon delta"))
def membership_advantage_from_dp(epsilon: NumberLike, delta: NumberLike = 0.0) -> Estimate:
    """Largest true positive minus false positive rate of any attack: (e^epsilon - 1 + 2 delta) / (e^epsilon + 1).

    >>> conversions.membership_advantage_from_dp(1.0, 1e-5).value
    0.46212253...
    """
    return total_variation_from_dp(epsilon, delta)


@conversion("total_variation", "membership_advantage", Formula(
    "tight", "lemma of Neyman and Pearson", rising="total_variation",
))
def membership_advantage_from_total_variation(total_variation: NumberLike) -> Estimate:
    """The best attack guesses by the likelihood ratio; its advantage is the total variation.

    >>> conversions.membership_advantage_from_total_variation(0.25).value
    0.25
    """
    return forms.same_number("probability", total_variation=total_variation)


@conversion("dp", "approximate_lip", Formula(
    "bound", "convexity of the hockey-stick divergence", rising="epsilon delta", assumptions=(EVERY_PAIR,),
))
def lip_delta_from_dp(epsilon: NumberLike, delta: NumberLike) -> Estimate:
    """The same delta: (epsilon, delta)-LDP is (epsilon, delta)-LIP under every prior, the release being a mean of rows.

    >>> conversions.lip_delta_from_dp(1.0, 0.01).value
    0.01
    """
    epsilon, delta = forms.validated(epsilon=epsilon, delta=delta)
    return forms.bounded(delta, "probability", "the same number", unrounded=True)


@conversion("gdp", "dp", Formula(
    "tight", f"{DONG_ROTH_SU}, corollary 1; {BALLE_WANG}", rising="separation", falling="epsilon",
))
def dp_delta_from_gdp(separation: NumberLike, epsilon: NumberLike) -> Estimate:
    """Least delta at ``epsilon`` that follows from Gaussian privacy: the exact curve of two unit normal distributions.

    >>> conversions.dp_delta_from_gdp(1.0, [0.0, 1.0]).value
    array([0.38292492, 0.12693674])
    """
    separation, epsilon = forms.validated(separation=separation, epsilon=epsilon)
    value = np.asarray(special.gaussian_delta(0.5 * separation, epsilon))
    limits = (separation == 0.0) | (np.isinf(epsilon) & np.isfinite(separation))
    error = _GAUSSIAN_DELTA_ERROR * value
    return forms.bounded(value, "probability", "closed form", error=error, ceiling=1.0, unrounded=limits)


@conversion("gdp", "dp", Formula(
    "tight", f"{DONG_ROTH_SU}, corollary 1; {BALLE_WANG}", rising="separation", falling="delta",
))
def dp_epsilon_from_gdp(separation: NumberLike, delta: NumberLike) -> Estimate:
    """Least epsilon at ``delta`` that follows from Gaussian privacy: the inverse of the exact curve.

    >>> conversions.dp_epsilon_from_gdp(1.0, 1e-6).value
    4.8865541...
    """
    separation, delta = forms.validated(separation=separation, delta=delta)
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
    return dp_delta_from_gdp(separation, 0.0)


@conversion("ldp", "gdp", Formula("tight", PROVED, rising="epsilon"))
def gdp_from_ldp(epsilon: NumberLike) -> Estimate:
    """Least separation such that pure privacy gives Gaussian privacy: -2 Phi^-1(1 / (1 + e^epsilon)).

    About sqrt(pi/2) epsilon for small epsilon and sqrt(8 epsilon) for large ones.

    >>> conversions.gdp_from_ldp([0.01, 1.0, 100.0]).value
    array([1.25331190e-02, 1.23203539e+00, 2.77769521e+01])
    """
    from scipy.special import erfinv, ndtri_exp

    (epsilon,) = forms.validated(epsilon=epsilon)
    small = epsilon < _ERFINV_BELOW
    with np.errstate(over="ignore"):
        near = np.sqrt(8.0) * erfinv(np.tanh(0.5 * np.where(small, epsilon, 0.0)))
        tail = np.where(small | np.isinf(epsilon), 1.0, epsilon)
        far = -2.0 * ndtri_exp(-tail - np.log1p(np.exp(-tail)))
    value = np.where(small, near, np.where(np.isinf(epsilon), np.inf, far))
    return forms.bounded(value, "1", "-2 Phi^-1(1 / (1 + e^epsilon))", unrounded=(epsilon == 0.0) | np.isinf(epsilon))


@conversion("ldp", "tradeoff", Formula(
    "tight", f"{DONG_ROTH_SU}, the trade-off of (epsilon, delta)", falling="epsilon type_one",
    note="the guarantee is the lower bound",
))
def tradeoff_from_ldp(epsilon: NumberLike, type_one: NumberLike) -> Estimate:
    """Least probability of a miss under pure privacy: that of randomised response, two straight lines.

    >>> conversions.tradeoff_from_ldp(1.0, [0.0, 0.25, 0.5, 1.0]).value
    array([1.        , 0.32042954, 0.18393972, 0.        ])
    """
    return tradeoff_from_dp(epsilon, 0.0, type_one)


@conversion("dp", "tradeoff", Formula(
    "tight", f"{DONG_ROTH_SU}, the trade-off of (epsilon, delta)", falling="epsilon delta type_one",
    note="the guarantee is the lower bound",
))
def tradeoff_from_dp(epsilon: NumberLike, delta: NumberLike, type_one: NumberLike) -> Estimate:
    """Least probability of a miss under (epsilon, delta): max(0, 1 - delta - e^epsilon x, e^-epsilon (1 - delta - x)).

    >>> conversions.tradeoff_from_dp(1.0, 0.1, [0.0, 0.25]).value
    array([0.9       , 0.23912...])
    """
    epsilon, delta, x = forms.validated(epsilon=epsilon, delta=delta, type_one=type_one)
    with np.errstate(over="ignore", invalid="ignore"):
        steep = 1.0 - delta - np.where(x == 0.0, 0.0, special.exp(epsilon) * x)
        flat = special.exp(-epsilon) * (1.0 - delta - x)
    value = np.where(np.isinf(epsilon), 0.0, np.maximum(0.0, np.maximum(steep, flat)))
    method = "the higher of two lines"
    return forms.bounded(value, "probability", method, error=_LINE_ERROR, ceiling=1.0, unrounded=x == 1.0)


@conversion("gdp", "tradeoff", Formula(
    "tight", f"{DONG_ROTH_SU}, the definition of Gaussian privacy", falling="separation type_one",
    note="the guarantee is the lower bound",
))
def tradeoff_from_gdp(separation: NumberLike, type_one: NumberLike) -> Estimate:
    """Least probability of a miss under Gaussian privacy: Phi(Phi^-1(1 - x) - separation).

    >>> conversions.tradeoff_from_gdp(1.0, [0.05, 0.5]).value
    array([0.74048898, 0.15865525])
    """
    separation, type_one = forms.validated(separation=separation, type_one=type_one)
    value, error = forms.gaussian_trade_off(separation, 1.0, type_one)
    ends = (type_one == 1.0) | (type_one == 0.0)
    method = "Phi(Phi^-1(1 - x) - separation)"
    return forms.bounded(value, "probability", method, error=error, ceiling=1.0, unrounded=ends)


@conversion("dp", "group_dp", Formula(
    "bound", "Vadhan, The complexity of differential privacy (2017), section 2.1, its sum kept",
    rising="epsilon delta group", note="at group times epsilon",
))
def group_dp_delta_from_dp(epsilon: NumberLike, delta: NumberLike, group: NumberLike) -> Estimate:
    """Delta of a group at ``group * epsilon``: delta (e^(group epsilon) - 1) / (e^epsilon - 1), at most 1.

    >>> conversions.group_dp_delta_from_dp(1.0, 1e-6, [1, 2, 3]).value
    array([1.00000000e-06, 3.71828183e-06, 1.11073379e-05])
    """
    epsilon, delta, group = forms.validated(epsilon=epsilon, delta=delta, group=group)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # e^((k-1) epsilon) (1 - e^(-k epsilon)) / (1 - e^-epsilon), its power by halves against overflow, and delta
        # times 2^200, so that no factor is subnormal that the power makes large again
        shrunk = np.where(epsilon == 0.0, group, np.expm1(-group * epsilon) / np.expm1(-epsilon))
        power = np.where(group == 1.0, 0.0, (group - 1.0) * epsilon)
        root = np.exp(0.5 * power)
        product = root * (root * (delta * 2.0**200 * shrunk)) * 2.0**-200
        value = np.where((delta == 0.0) & (power < np.inf), 0.0, product)
        value = np.minimum(np.where(np.isnan(value), 1.0, value), 1.0)
        error = (1e-14 + 4e-16 * np.minimum(power, 2000.0)) * value
    return forms.bounded(
        value, "probability", "delta expm1(group epsilon) / expm1(epsilon)", error=error, ceiling=1.0,
        unrounded=(group == 1.0) | (delta == 0.0),
    )
