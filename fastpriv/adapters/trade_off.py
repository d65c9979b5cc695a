"""Trade-off curves of hypothesis tests, from certified privacy curves.

Notation: a test tells P from Q; alpha is the probability that it says Q under P, beta that it says P under Q; x =
e^epsilon, delta(x) = sup_E Q(E) - x P(E). The least beta at alpha is the convex conjugate (Dong, Roth and Su 2022,
proposition 6)

    beta(alpha) = sup over x >= 0 of 1 - delta(x) - x alpha.

``privacy_loss`` encloses delta between two curves that are linear between the points of a grid. For such a curve the
supremum is attained at a point of the grid or at x = 0: the curve above delta yields a lower bound of beta, the one
below an upper bound.
"""

# bounds: none - range of the interval

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _validate
from ..estimate import Estimate, Result
from ..numerics import FloatArray, LongDoubleArray, next_above, next_below
from .privacy_loss import curve_on_grid, curves_of_pair

__all__ = ["TradeOffCurve", "trade_off_curve"]

_INTERVAL = 1e-3  # of the grid of losses, in nats: the width of beta is about its square
# bound: none - delta beyond the grid, which is part of the width of beta
_TAIL_MASS = 1e-18
# bound: proved - three roundings of numbers of at most 1 in long doubles, eight times as much as need be
_ROUNDING = 32 * float(np.finfo(np.longdouble).eps)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TradeOffCurve(Result):
    """The least error of the second kind for each error of the first kind, of a test that tells P from Q.

    Parameters
    ----------
    alpha : ndarray
        Probabilities that the test says Q under P.
    beta : Estimate
        Least probabilities that it says P under Q, of the shape of ``alpha``.
    advantage : Estimate
        The largest 1 - alpha - beta over all alpha: the total variation distance of P and Q.

    Notes
    -----
    **Accuracy** as ``trade_off_curve``, which makes it.

    Source: Dong, Roth and Su 2022, section 2.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, adapters
    >>> curve = adapters.trade_off_curve(GaussianMechanism(2.0, 1.0), None, 0.1)
    >>> print(f"{curve.beta:.3f}, {curve.advantage:.3f}")
    0.783 [0.782, 0.783], 0.197 [0.197, 0.198]
    """

    alpha: FloatArray
    beta: Estimate
    advantage: Estimate


def trade_off_curve(p: Any, q: Any = None, alpha: ArrayLike = 0.05, *, interval: float = _INTERVAL) -> TradeOffCurve:
    """The trade-off curve of a pair, as arrays alpha and beta, certified, and the advantage.

    Parameters
    ----------
    p, q
        As ``dp_accounting_pld``; of a channel the curve of the worst pairs of rows.
    alpha : array_like
        Between 0 and 1, any shape.
    interval : float, default 1e-3
        Distance of the losses at which the curve is touched, in nats: the width of beta falls with its square.

    Returns
    -------
    TradeOffCurve
        ``alpha``, ``beta`` and ``advantage``; a guarantee quotes ``beta.lower``.

    Raises
    ------
    DomainError, ShapeError
        As ``dp_accounting_pld``, and for alpha outside of [0, 1].

    Notes
    -----
    Of composed releases: pass functions of epsilon that call ``composed_hockey_stick_divergence``.

    **Accuracy** against the closed curve of normal distributions and against likelihood-ratio tests of mixtures by
    ``tests/enclosures/test_trade_off.py``.

    Source: Dong, Roth and Su 2022, proposition 6.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, adapters
    >>> curve = adapters.trade_off_curve(GaussianMechanism(1.0, 1.0), None, [0.01, 0.05, 0.5])
    >>> curve.beta.value.round(4)
    array([0.9076, 0.7405, 0.1587])
    >>> round(curve.advantage.value, 6)
    0.382925
    """
    forward, backward, _ = curves_of_pair(p, q)
    errors = _validate.real("alpha", alpha, "between 0 and 1", lambda a: (a >= 0) & (a <= 1))
    step = _validate.scalar("interval", interval, "from 1e-9 to 10", lambda x: (x >= 1e-9) & (x <= 10))
    flat = errors.reshape(-1)
    lower, upper = (
        _conjugate(*curve_on_grid(backward, forward, step, _TAIL_MASS, above), step, flat) for above in (True, False)
    )
    lower = np.clip(next_below((lower - _ROUNDING).astype(np.float64)), 0.0, 1.0)
    upper = np.minimum(np.clip(next_above((upper + _ROUNDING).astype(np.float64)), 0.0, 1.0), next_above(1.0 - flat))
    lower = np.minimum(lower, upper)
    numbers: Any = (x.reshape(errors.shape) for x in (lower + 0.5 * (upper - lower), lower, upper))
    beta = Estimate(*numbers, kind="certified", unit="probability", method="conjugate of the privacy curve")
    return TradeOffCurve(errors, beta, forward(np.asarray(0.0)))


def _conjugate(first: int, start: Any, heights: LongDoubleArray, interval: float, alpha: FloatArray) -> LongDoubleArray:
    """The supremum of 1 - v(x) - x alpha over x >= 0, at x = 0 or at a point of the grid."""
    with np.errstate(over="ignore"):
        x = np.exp((np.arange(len(heights)) + first) * np.longdouble(interval))
    best = [max(1 - start, (1 - heights - x * a).max()) for a in alpha]
    return np.array(best, dtype=np.longdouble)
