"""What the best attack attains: its advantage, its probability of error, and its success at a reconstruction.

Notation: the best test of P against Q accepts Q where q / p is large; delta(x) = sup_E P(E) - x Q(E), x = e^epsilon.
With prior pi of P the least probability of error is

    integral of min(pi p, (1 - pi) q) = m (1 - delta(e^t)),   m = min(pi, 1 - pi),  t = |log(pi / (1 - pi))|,

delta being the curve of the likelier of the two against the other exchanged: of P against Q where pi <= 1/2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.estimate import Estimate
from ..base.numerics import FloatArray, next_above, next_below
from ..pairs.curve_pairs import PrivacyCurves
from ..pairs.log_bounds import certified
from .compositions import certified_curves
from .group_privacy import group_pair, group_size
from .trade_off import curve_of_pair

# bound: proved - rounding of 1 - pi, of a quotient and of a logarithm, relative to the logarithm of the odds or to 1
_LOGIT_ERROR = 1e-15


def advantage(p: Any, q: Any = None) -> Estimate:
    """The largest probability of a true alarm minus that of a false one: the total variation distance of a pair.

    Parameters
    ----------
    p, q
        As ``trade_off_curve``.

    Returns
    -------
    Estimate
        A probability, ``exact`` or ``certified``.

    Raises
    ------
    DomainError, ShapeError
        As ``trade_off_curve``.

    Notes
    -----
    **Accuracy** that of the privacy curve of the pair; ``tests/enclosures/test_risk.py``.

    Source: Yeom, Giacomelli, Fredrikson and Jha 2018, definition 4; lemma of Neyman and Pearson.

    Examples
    --------
    >>> from fastpriv import risk
    >>> risk.advantage([0.75, 0.25], [0.25, 0.75]).value
    0.5
    """
    return certified(certified_curves(p, q).forward, np.zeros(()))


def bayes_risk(p: Any, q: Any = None, prior: ArrayLike = 0.5) -> Estimate:
    """The least probability of error of who guesses whether a release came from P or from Q.

    Parameters
    ----------
    p, q
        As ``trade_off_curve``.
    prior : array_like
        Probability that it came from P, between 0 and 1, any shape.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``prior``, at most min(prior, 1 - prior). Of a channel the least risk over its
        ordered pairs of rows.

    Raises
    ------
    DomainError, ShapeError
        As ``trade_off_curve``, and for a prior outside of [0, 1].

    Notes
    -----
    **Accuracy** that of the privacy curve of the pair, of which one minus it counts; small risks of normal and discrete
    pairs and of compositions are relative to themselves. ``tests/enclosures/test_risk.py``.

    Source: Kaissis, Ziller, Kolek, Riess and Rueckert 2024, section 3.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, risk
    >>> risk.bayes_risk(GaussianMechanism(1.0, 1.0), None, [0.1, 0.5]).value.round(6)
    array([0.098664, 0.308538])
    """
    pair = certified_curves(p, q).worst()
    pi = validate.real("prior", prior, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
    least = np.minimum(pi, 1.0 - pi)
    with np.errstate(divide="ignore"):
        odds = np.where(pi <= 0.5, np.log1p(-pi) - np.log(pi), np.log(pi) - np.log1p(-pi))
    odds = np.where(pi == 0.5, 0.0, np.abs(odds))
    slack = np.where((pi == 0.5) | np.isinf(odds), 0.0, _LOGIT_ERROR * (1.0 + odds))
    value, lower, upper = (np.empty(pi.shape) for _ in range(3))
    for some, curve in ((pi <= 0.5, pair.forward), (pi > 0.5, pair.backward)):
        some = np.asarray(some)
        if some.any():
            high = certified(curve, np.maximum(odds[some] - slack[some], 0.0)).upper
            low = certified(curve, odds[some] + slack[some]).lower
            complement = next_below(1.0 - np.asarray(high)), next_above(1.0 - np.asarray(low))
            item = pair if curve is pair.forward else pair.swapped()
            sharp = _complement_bounds(item, np.maximum(odds[some] - slack[some], 0.0), odds[some] + slack[some])
            if sharp is not None:
                complement = np.maximum(complement[0], sharp[0]), np.minimum(complement[1], sharp[1])
            value[some] = least[some] * (0.5 * complement[0] + 0.5 * complement[1])
            lower[some] = next_below(least[some] * complement[0], 2)
            upper[some] = next_above(least[some] * complement[1], 2)
    lower = np.where(least == 0.0, 0.0, np.clip(lower, 0.0, least))
    upper = np.clip(upper, lower, least)
    return Estimate(
        np.clip(value, lower, upper), lower, upper, kind="certified", unit="probability",
        method="one minus the privacy curve at the prior odds",
    )


def _complement_bounds(
    pair: PrivacyCurves, below: FloatArray, above: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Bounds of 1 - delta between two epsilons >= 0, which rises, with digits of its own: integral of min(p, x q) is
    P(L <= epsilon) + x Q(L > epsilon). None where a pair is known by its curves alone.
    """
    if pair.orders is not None:
        item, other = (_complement_bounds(order, below, above) for order in pair.orders)
        return None if item is None or other is None else (np.minimum(item[0], other[0]), np.minimum(item[1], other[1]))
    if pair.discrete is not None:
        p, q = pair.discrete.p.astype(np.longdouble), pair.discrete.q.astype(np.longdouble)
        gap = 1.1 * max(pair.discrete.p_relative_error, pair.discrete.q_relative_error)
        gap += (p.size + 40) * float(np.finfo(np.longdouble).eps)
        sums = []
        for levels in (below, above):
            with np.errstate(over="ignore", invalid="ignore"):
                x = np.exp(levels.astype(np.longdouble))
                sums.append(np.array([np.minimum(p, np.where(q > 0, entry * q, 0)).sum() for entry in x]))
        low, high = (sums[0] * (1 - gap)).astype(np.float64), (sums[1] * (1 + gap)).astype(np.float64)
        return np.maximum(next_below(low, 2), 0.0), next_above(high, 2)
    if pair.tails is None:
        return None
    first, second = pair.tails[0](below), pair.tails[0](above)
    with np.errstate(over="ignore", invalid="ignore"):
        low = np.nan_to_num(first[2, 0] + next_below(next_below(np.exp(below), 2) * first[1, 0]))
        high = np.nan_to_num(second[2, 1] + next_above(next_above(np.exp(above), 2) * second[1, 1]), nan=1.0)
    return np.maximum(next_below(low, 2), 0.0), next_above(high, 2)


def reconstruction_robustness(p: Any, q: Any = None, baseline: ArrayLike = 0.01) -> Estimate:
    """The largest probability that a reconstruction succeeds whose success without the release has a given probability.

    It is the blow-up function sup{P(E): Q(E) <= baseline}, the infimum over real epsilon of e^epsilon baseline +
    delta(epsilon), and the true positive rate of the best test of Q against P.

    Parameters
    ----------
    p, q
        As ``trade_off_curve``: P with the record, Q without it.
    baseline : array_like
        The largest probability, between 0 and 1, that a fixed guess is near enough to a record drawn from the prior.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``baseline``; a guarantee quotes ``upper``.

    Raises
    ------
    DomainError, ShapeError
        As ``trade_off_curve``, and for a baseline outside of [0, 1].

    Notes
    -----
    The bound holds for a record whose release under each value is tested against one fixed Q, as with the removal of
    the record, and for every measure of error.

    **Accuracy** as ``true_positive_rate``; ``tests/enclosures/test_trade_off.py``.

    Source: Hayes, Mahloujifar and Balle 2023, theorem 2; Balle, Cherubin and Hayes 2022; Kaissis et al. 2023.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, risk
    >>> risk.reconstruction_robustness(GaussianMechanism(1.0, 1.0), None, [0.001, 0.1]).value.round(6)
    array([0.018298, 0.389144])
    """
    pair = certified_curves(p, q).worst()
    rates = validate.real("baseline", baseline, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
    return curve_of_pair(pair.swapped(), rates, power=True)


def privacy_profile(p: Any, q: Any = None, epsilon: ArrayLike = 0.0, *, group: ArrayLike = 1) -> Estimate:
    """The privacy profile: delta(epsilon) = sup over events E of P(E) - e^epsilon Q(E), at every real epsilon.

    At negative epsilon it is 1 - e^epsilon + e^epsilon times the curve of Q against P at -epsilon: one direction over
    all real epsilons says what both say over the positive ones.

    Parameters
    ----------
    p, q
        As ``trade_off_curve``.
    epsilon : array_like
        Real numbers in nats, any shape; infinities allowed.
    group : int, default 1
        Records that change, at most 1024, as in ``trade_off_curve``: exact where a mechanism has a sensitivity; of
        other pairs at least the profile of one record and at most that of the iterated trade-off curve.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``epsilon``, ``exact`` or ``certified``.

    Raises
    ------
    DomainError, ShapeError
        As ``trade_off_curve``, and for NaN.

    Notes
    -----
    **Accuracy** that of the curve of the pair; ``tests/enclosures/test_risk.py``.

    Source: Balle, Barthe and Gaboardi 2018, theorem 2; Zhu, Dong and Wang 2022, lemma 20; of groups Vadhan 2017,
    section 2.1.

    Examples
    --------
    >>> from fastpriv import risk
    >>> risk.privacy_profile([0.75, 0.25], [0.25, 0.75], [-1.0, 0.0, 0.5]).value.round(6)
    array([0.65803, 0.5    , 0.33782])
    """
    records = group_size(group)
    pair = group_pair(certified_curves(p, q), records)
    levels = validate.real("epsilon", epsilon)
    numbers: FloatArray = np.empty((3, *levels.shape))
    positive = np.asarray(levels >= 0)
    kind, method = "exact", "privacy curves of both directions"
    for some, curve in ((positive, pair.forward), (~positive, pair.backward)):
        if some.any():
            result = certified(curve, np.abs(levels[some]))
            method = f"privacy curves of both directions, {result.method}" if records > 1 else method
            kind = result.kind if result.kind != "exact" else kind
            numbers[:, some] = result.arrays()
    x = np.exp(np.where(positive, 0.0, levels))
    remainder = -np.expm1(np.where(positive, 0.0, levels))
    value, lower, upper = numbers
    lower = np.where(positive, lower, next_below(next_below(remainder, 2) + next_below(x * lower, 4)))
    upper = np.where(positive, upper, next_above(next_above(remainder, 2) + next_above(x * upper, 4)))
    lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    value = np.clip(np.where(positive, value, remainder + x * value), lower, upper)
    return Estimate(value, lower, upper, kind=kind, unit="probability", method=method)  # type: ignore[arg-type]
