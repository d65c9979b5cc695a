"""How many releases, each chosen by what the earlier ones told, a budget allows.

Notation: t = order - 1, K_i >= log E_P e^(t L_i) of release i in either order of the data sets, whatever was released
before, c(t) = t^t / (1 + t)^(1 + t). While sum K_i <= B, e^(t S) e^(-sum K_i) is a supermartingale under P, so that
E_P e^(t S) <= e^B at the time of stopping, and delta(epsilon) <= c(t) e^(B - t epsilon): B = log delta + t epsilon -
log c(t) meets the target. The time of stopping may depend on all that was released, the order may not.

Stopping when the composed CURVE of what was released crosses the target is no such filter: the curve of a list that was
fixed in advance says nothing of a list that depends on the releases.

Source: Feldman and Zrnic 2021, theorem 4.3; Lecuyer 2021; Canonne, Kamath and Steinke 2020, proposition 12.
"""

# bounds: proved - roundings of a sum and of logarithms

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.numerics import UNIT_ROUNDOFF
from .compositions import compose
from .joint_bounds import log_tilt_factor


def renyi_filter(pairs: Any, epsilon: ArrayLike, delta: ArrayLike, *, order: ArrayLike) -> int:
    """How many of these releases, from the first on, may be made for (epsilon, delta), if each may depend on the last.

    Parameters
    ----------
    pairs : list of pairs
        The releases in the order in which they are made, as ``compose`` takes them. Call it again with what is to be
        released next: a release is made only if it is among the first ones that fit.
    epsilon : float
        The target in nats, at least 0 and finite.
    delta : float
        Above 0 and at most 1.
    order : float
        Renyi order of the filter, above 1 and finite, the same for all calls and fixed before the first release.
        1 + 2 log(1/delta) / epsilon suits many releases.

    Returns
    -------
    int
        The number of first releases whose divergences fit the budget, 0 if none does.

    Raises
    ------
    DomainError
        For numbers out of range, or what is no pair.

    Notes
    -----
    The releases, their parameters and the time of stopping may depend on everything that was released. That is not so
    for ``compose``, which asks for a list that is fixed in advance, and whose curve is no filter.

    **Accuracy** divergences count by certified upper bounds; ``tests/enclosures/test_events.py``.

    Source: Feldman and Zrnic 2021, theorem 4.3; the head of ``fastpriv/composition/renyi_filters.py``.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism
    >>> from fastpriv.composition import renyi_filter
    >>> renyi_filter([GaussianMechanism(10.0, 1.0)] * 50, 2.0, 1e-6, order=14.0)
    17
    """
    level = validate.scalar("epsilon", epsilon, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf))
    target = validate.scalar("delta", delta, "above 0 and at most 1", lambda x: (x > 0) & (x <= 1))
    a = validate.scalar("order", order, "above 1 and finite", lambda x: (x > 1) & (x < np.inf))
    releases = validate.sequence("pairs", pairs, "pairs")
    t = a - 1.0
    budget = math.log(target) + t * level - log_tilt_factor(t)
    budget -= 8 * UNIT_ROUNDOFF * (1.0 + abs(math.log(target)) + t * level)
    moments: dict[int, float] = {}
    spent = 0.0
    for number, release in enumerate(releases):
        if id(release) not in moments:
            item = validate.with_argument_name("pairs", f"pairs[{number}]", partial(compose, release))
            result = float(item.renyi_divergence(a, direction="worst").upper)
            moments[id(release)] = t * result * (1.0 + 4 * UNIT_ROUNDOFF) if result else 0.0
        spent += moments[id(release)]
        if not spent * (1.0 + 2 * (number + 2) * UNIT_ROUNDOFF) <= budget:
            return number
    return len(releases)
