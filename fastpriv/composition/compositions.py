"""``compose``: releases of pairs, mechanisms and channels as one object, with its certified privacy curve.

Notation: P is the distribution of all releases under one of two neighbouring secrets, Q under the other; L_i the loss
log dP/dQ of release i, and S = sum L_i. With the positive part,

    delta(epsilon) = E_P (1 - e^(epsilon - S))^+ = P(S > epsilon) - e^epsilon Q(S > epsilon)

for every real epsilon. The curve of Q against P, delta', gives delta(-epsilon) = 1 - e^-epsilon + e^-epsilon
delta'(epsilon), by which negative epsilons are computed.

Source: Dwork and Rothblum 2016; Kairouz, Oh and Viswanath 2017; Sommer, Meiser and Mohammadi 2019; Zhu, Dong and Wang
2022, theorem 10.
"""

# bounds: proved - roundings of exponentials, logarithms and sums

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import DomainError, ShapeError, warned
from ..base.estimate import Estimate, NumberLike
from ..base.monotone import monotone
from ..base.numerics import (
    SMALLEST_NORMAL,
    SMALLEST_SUBNORMAL,
    UNIT_ROUNDOFF,
    FloatArray,
    next_below,
    rounded_down,
    rounded_up,
)
from ..mechanisms.laplace import LaplaceMechanism
from ..mechanisms.subsampled_gaussian import PoissonSampledGaussian
from ..pairs.curve_pairs import PairObject, PrivacyCurves, pair_of_curves, refuse_second
from ..pairs.log_bounds import LogBounds
from ..pairs.protocol import BoundingPairs, DominatingPair
from ..pairs.readers import ReadPair, has_groups, pair_text, read_group, read_pair
from . import engines, epsilon_search
from .closing_checks import WIDENED, checked, reconciled
from .joint_bounds import renyi_bounds

Direction: TypeAlias = Literal["forward", "backward", "worst"]

# bound: none - probabilities below which the lower tail is computed by itself, not as what the upper leaves of 1
_SMALL = 0.05
# bound: none - width of a bracket of log delta from which on single releases bound it from below
_WIDE = 1e-3
# bound: none - log delta below which a text has the logarithm
_DEEP = -600.0
# bound: none - epsilons from which on e^-epsilon is not a factor of its own
_FAR = 600.0
# bound: none - signs
_OUTWARD = np.array([[-1.0], [1.0]])  # signs of what a lower and an upper bound are moved by
_MAX_COUNT = 2**62  # releases of one composition
_MOST_SHOWN = 4  # releases in the text of a composition
_MOST_ALTERNATIVES = 8  # compositions that bound from below


def compose(pairs: Any, counts: Any = 1) -> Composition:
    """Many releases of one secret as one: any pairs, mechanisms and channels, each as often as ``counts`` says.

    Parameters
    ----------
    pairs : a pair, or a list of pairs
        A pair is one of these. A tuple ``(p, q)`` of two GaussianMixtures, two Pmfs, two vectors of probabilities of
        the same outcomes, or the curve of P against Q and that of Q against P (functions of an array epsilon >= 0 that
        return a certified Estimate). A mechanism: GaussianMechanism, LaplaceMechanism, PoissonSampledGaussian, or any
        channel, such as RandomizedResponse, over its worst pair of secrets. A privacy loss distribution, of
        ``fastpriv.composition`` or of dp_accounting. Another Composition.
    counts : int or list of int, default 1
        How often each pair is released, at least 0; one number for all of them, or one for each.

    Returns
    -------
    Composition
        Its methods ``delta``, ``log_delta`` and ``epsilon`` have the privacy curve and its inverse.

    Raises
    ------
    DomainError
        For what is no pair, for counts that are no integers or out of range, or mixtures in several dimensions that do
        not reduce to lines.
    ShapeError
        For another number of counts than of pairs.

    Notes
    -----
    A later release may depend on earlier ones, as long as each one's pair is dominated by the one given here.

    A tuple ``(p, q)`` means itself, in this order: by default ``delta`` is that of p against q, the removal of a record
    where p is the distribution with it. Its addition, q against p, can lose more from two releases on; of two data sets
    either may be p, so pass ``direction="worst"`` there. Mechanisms have no order and answer for both.

    Of a channel, the pair is that of the two secrets that are the easiest to tell apart, if these are the same at every
    epsilon; if not, upper bounds hold for the worst secrets release by release, and lower bounds for some fixed two.

    **Accuracy** every bound contains the truth; how far they are apart is for each kind of pairs in
    ``tests/enclosures/test_compose.py``.

    Source: Zhu, Dong and Wang 2022, theorem 10; the heads of the modules in ``fastpriv/composition``.

    Examples
    --------
    >>> import fastpriv
    >>> step = fastpriv.PoissonSampledGaussian(sigma=1.0, rate=0.01)
    >>> training = fastpriv.compose(step, 1000)
    >>> print(f"{training.delta(2.0):.3e}")
    2.666e-06 [2.665e-06, 2.666e-06]
    >>> print(f"{training.epsilon(1e-5):.4f}")
    1.8282 [1.8282, 1.8283]
    """
    several = isinstance(pairs, list) or (isinstance(pairs, tuple) and len(pairs) != 2)
    values = list(pairs) if several else [pairs]
    numbers = _counts(counts, len(values))
    names = [f"pairs[{i}]" for i in range(len(values))] if several else ["pairs"]
    read: dict[int, Composition] = {}
    for name, pair in zip(names, values, strict=True):
        if id(pair) not in read:
            read[id(pair)] = pair if isinstance(pair, Composition) else _of_one_pair(read_pair(name, pair), pair)
    return _joined([read[id(pair)] for pair in values], numbers)


class Composition(PairObject):
    """Many releases as one, with their privacy curve; made by ``compose``.

    Parameters
    ----------
    forward_pairs, backward_pairs : BoundingPairs
        The pairs of P against Q, and of Q against P, as ``fastpriv/composition/pairs.py`` has them.
    count : int
        Number of releases.
    ordered : bool
        Whether every pair came with an order of its two distributions. If not, ``direction=None`` means ``"worst"``.
    releases : tuple of Release, optional
        What was composed, for texts and for groups of records; no part of equality.

    Notes
    -----
    Compositions are immutable, equal when their pairs are, hashable and picklable. They are pairs themselves: for
    ``compose``, ``fastpriv.composition`` and ``fastpriv.adapters``.

    ``composition * count`` and ``count * composition`` release all of it ``count`` times; ``a + b`` releases both.

    ``direction`` of the methods is ``"forward"``, P against Q, ``"backward"``, Q against P in every release, or
    ``"worst"``, the larger of both. Forward is the removal of a record where a mechanism has such an order. ``method``
    of an answer names the direction. Where all pairs are ordered, the default is forward, and a warning says if
    backward is larger; ``direction="forward"`` is silent.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, LaplaceMechanism, compose
    >>> both = compose([GaussianMechanism(2.0, 1.0), LaplaceMechanism(4.0)], [3, 2])
    >>> both
    <Composition of 5 releases: 3 x GaussianMechanism(sigma=2.0, sensitivity=1.0), 2 x ...; both directions alike>
    >>> both.epsilon(0.0).upper
    inf
    >>> both == 3 * compose(GaussianMechanism(2.0, 1.0)) + compose(LaplaceMechanism(4.0)) * 2
    True
    """

    __slots__ = ("backward_pairs", "count", "forward_pairs", "ordered", "releases")
    _fields = ("forward_pairs", "backward_pairs", "count", "ordered")

    forward_pairs: BoundingPairs
    backward_pairs: BoundingPairs
    count: int
    ordered: bool
    releases: tuple[Release, ...]

    def __init__(
        self, forward_pairs: BoundingPairs, backward_pairs: BoundingPairs, count: int, ordered: bool,
        releases: tuple[Release, ...] = (),
    ) -> None:
        self._set(forward_pairs=forward_pairs, backward_pairs=backward_pairs, count=count, ordered=ordered,
                  releases=releases)

    def __reduce__(self) -> Any:
        return type(self), (*self._arrays(), self.releases)

    def __mul__(self, count: Any) -> Composition:
        return compose(self, validate.count("count", count, 0, _MAX_COUNT))

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Composition:
        return compose([self, other]) if isinstance(other, Composition) else NotImplemented

    @property
    def reversed(self) -> Composition:
        """The same releases with P and Q exchanged.

        Examples
        --------
        >>> from fastpriv import compose
        >>> c = compose(([0.5, 0.5], [0.25, 0.75]), 2)
        >>> c.reversed.delta(0.5).value == c.delta(0.5, direction="backward").value
        True
        """
        releases = tuple(release.reversed() for release in self.releases)
        return Composition(self.backward_pairs, self.forward_pairs, self.count, self.ordered, releases)

    @property
    def infinite_loss(self) -> Estimate:
        """Probability that some loss is infinite, in the worse direction unless all pairs are ordered.

        ``delta`` is at least that at every epsilon, and no epsilon meets a smaller one.

        Examples
        --------
        >>> from fastpriv import compose
        >>> compose(([0.75, 0.25], [1.0, 0.0]), 2).infinite_loss.value
        0.4375
        """
        ends = [np.array(_infinite_log_mass(pairs)) for pairs in self._directions(None)]
        low, high = np.maximum.reduce(ends)
        value = high if low == high else low + 0.5 * (high - low) if low > -math.inf else high
        logs = Estimate(float(value), float(low), float(high), kind="certified", unit="log probability",
                        method="product over all releases")
        return logs.to("probability")

    @monotone(falling="epsilon")
    def delta(self, epsilon: NumberLike, *, direction: Direction | None = None) -> Estimate:
        """Smallest delta for which the releases are (epsilon, delta)-private.

        Parameters
        ----------
        epsilon : array_like or Estimate
            Any real numbers, in nats, and infinity; any shape. For negative ones see the head of this module.
        direction : {"forward", "backward", "worst"}, optional
            By default forward where all pairs are ordered, else the worst.

        Returns
        -------
        Estimate
            Probabilities of the shape of ``epsilon``, with certified bounds. Below 1e-300 use ``log_delta``.

        Raises
        ------
        DomainError
            For NaN, or another direction.

        Notes
        -----
        **Accuracy** for each kind of pairs in ``tests/enclosures/test_compose.py``.

        Examples
        --------
        >>> from fastpriv import GaussianMechanism, compose
        >>> print(f"{compose(GaussianMechanism(10.0, 1.0), 100).delta([0.0, 1.0]):.6f}")
        [0.382925, 0.126937], lower=[0.382924, 0.126936], upper=[0.382925, 0.126937]
        """
        return self._log_delta(epsilon, direction).to("probability")

    @monotone(falling="epsilon")
    def log_delta(self, epsilon: NumberLike, *, direction: Direction | None = None) -> Estimate:
        """Natural logarithm of ``delta(epsilon)``, far below the smallest double; -inf where delta is 0.

        Parameters, errors and bounds as ``delta``.

        Notes
        -----
        **Accuracy** as ``delta``.

        Examples
        --------
        >>> from fastpriv import GaussianMechanism, compose
        >>> compose(GaussianMechanism(10.0, 1.0), 100).log_delta(100.0).value
        -4960.2545538...
        """
        return self._log_delta(epsilon, direction)

    @monotone(falling="delta log_delta")
    def epsilon(
        self, delta: NumberLike | None = None, *, log_delta: NumberLike | None = None,
        direction: Direction | None = None,
    ) -> Estimate:
        """Smallest epsilon >= 0 for which the releases are (epsilon, delta)-private.

        Parameters
        ----------
        delta : array_like or Estimate
            Between 0 and 1, any shape.
        log_delta : array_like or Estimate, optional
            Its natural logarithm instead, at most 0.
        direction : {"forward", "backward", "worst"}, optional
            As in ``delta``.

        Returns
        -------
        Estimate
            In nats. At ``upper`` the true delta is at most the given one; ``lower`` is at or below the true inverse. 0
            where epsilon = 0 meets delta; inf below the probability of an infinite loss, and for delta = 0 where the
            losses are unbounded, as ``method`` says.

        Raises
        ------
        DomainError
            For numbers out of range, both or neither of delta and log_delta, or another direction.

        Notes
        -----
        A safeguarded secant search in sqrt(-log delta), nearly straight in epsilon, which ends when certified bounds of
        the curve prove both ends; all deltas share its evaluations.

        **Accuracy** the ends are proved; ``tests/enclosures/test_compose.py``.

        Examples
        --------
        >>> from fastpriv import GaussianMechanism, compose
        >>> round(compose(GaussianMechanism(4.0, 1.0), 16).epsilon(1e-5).upper, 9)
        4.3771780...
        """
        if (delta is None) == (log_delta is None):
            raise DomainError(
                f"delta or log_delta must be given, and not both; got {'neither' if delta is None else 'both'}. Pass "
                "the one that is known."
            )
        if delta is not None:
            target = validate.real("delta", delta, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
            with np.errstate(divide="ignore"):
                logs = np.log(target)
            rounding = np.where(np.isfinite(logs), 2 * UNIT_ROUNDOFF * np.abs(logs), 0.0)
        else:
            logs = validate.real("log_delta", log_delta, "at most 0", lambda x: x <= 0)
            rounding = np.zeros(logs.shape)
        directions = self._directions(direction)
        result = epsilon_search.least_epsilon(
            lambda levels: _worst([_curve(pairs, levels) for pairs in directions], levels),
            logs.ravel(), rounding.ravel(),
            np.maximum.reduce([np.array(_infinite_log_mass(pairs)) for pairs in directions]),
            lambda: tuple(map(max, zip(*map(largest_loss_of, directions), strict=True))),
        )
        if direction is None:
            self._warn_of_backward(result.rows[2], logs.ravel() + rounding.ravel())
        value, lower, upper = (row.reshape(logs.shape) for row in result.rows)
        text = ", the larger of both directions" if directions[1:] else self._direction_text(direction)
        return Estimate(
            value, lower, upper, kind="certified", unit="nats", method=result.method + text, cost=result.cost
        )

    @monotone(falling="epsilon")
    def tail_probabilities(
        self, epsilon: NumberLike, *, direction: Literal["forward", "backward"] = "forward"
    ) -> tuple[Estimate, Estimate]:
        """P(S > epsilon) and Q(S > epsilon), the power and the level of the likelihood ratio test at epsilon.

        Parameters
        ----------
        epsilon : array_like or Estimate
            Any real numbers, in nats; any shape.
        direction : {"forward", "backward"}, default "forward"
            Backward exchanges P and Q, and the sign of S.

        Returns
        -------
        tuple of Estimate
            Probabilities of the shape of ``epsilon``, with certified bounds.

        Raises
        ------
        DomainError
            For NaN or another direction.

        Notes
        -----
        **Accuracy** as ``delta``; where only the curve is known, difference quotients of it bound the tails, and are
        wider. ``tests/enclosures/test_compose.py``.

        Examples
        --------
        >>> from fastpriv import GaussianMechanism, compose
        >>> power, level = compose(GaussianMechanism(10.0, 1.0), 100).tail_probabilities(0.0)
        >>> print(f"{power:.4f}, {level:.4f}")
        0.6915 [0.6914, 0.6915], 0.3085 [0.3085, 0.3086]
        """
        return self._tail_estimates(epsilon, direction)[:2]

    @monotone(rising="epsilon")
    def lower_tail_probabilities(
        self, epsilon: NumberLike, *, direction: Literal["forward", "backward"] = "forward"
    ) -> tuple[Estimate, Estimate]:
        """P(S <= epsilon) and Q(S <= epsilon), with digits of their own where they are small.

        Parameters, errors and bounds as ``tail_probabilities``, whose complements these are.

        Notes
        -----
        **Accuracy** where they are small, relative for Gaussian, Laplace and discrete noise of releases that compose
        along a contour; elsewhere what the upper tails leave of 1. ``tests/enclosures/test_lower_tails.py``.

        Examples
        --------
        >>> from fastpriv import GaussianMechanism, compose
        >>> print(f"{compose(GaussianMechanism(1.0, 1.0), 400).lower_tail_probabilities(0.0)[0]:.4e}")
        7.6199e-24 [7.6198e-24, 7.6199e-24]
        """
        return self._tail_estimates(epsilon, direction)[2:]

    def renyi_divergence(self, order: ArrayLike = 2.0, *, direction: Direction | None = None) -> Estimate:
        """Renyi divergence of the releases, the sum of those of each release, in nats.

        Parameters
        ----------
        order : array_like
            At least 1, any shape, 2 by default: 1 is the Kullback-Leibler divergence, infinity the largest loss.
        direction : {"forward", "backward", "worst"}, optional
            As in ``delta``.

        Returns
        -------
        Estimate
            In nats, with certified bounds, of the shape of ``order``. Infinite where a loss is, or where the tails of
            mixtures of different sigmas ask for it; ``upper`` infinite for pairs of which only curves are known.

        Raises
        ------
        DomainError
            For orders below 1 and NaN, or another direction.

        Notes
        -----
        **Accuracy** that of ``fastpriv.renyi_divergence`` for mixtures, 1e-15 relative for Laplace noise, and 1e-15
        absolute for a release of outcomes or of losses on a grid; ``tests/enclosures/test_composed_renyi.py``.

        Source: van Erven and Harremoes 2014, theorem 28; Mironov 2017, propositions 1 and 6.

        Examples
        --------
        >>> from fastpriv import GaussianMechanism, LaplaceMechanism, compose
        >>> round(compose([GaussianMechanism(2.0, 1.0), LaplaceMechanism(4.0)], [8, 2]).renyi_divergence(2.0).value, 9)
        2.113127044
        """
        orders = validate.real("order", order, "at least 1", lambda x: x >= 1)
        directions = self._directions(direction)
        rows, method = np.empty((2, orders.size)), ""
        for i, item in enumerate(orders.ravel().tolist()):
            if item == math.inf:
                result = [(*largest_loss_of(pairs), "largest losses") for pairs in directions]
            else:
                result = [renyi_bounds(pairs, item) for pairs in directions]
            rows[:, i] = [max(bounds[k] for bounds in result) for k in (0, 1)]
            method = result[0][2]
        low, high = (row.reshape(orders.shape) for row in rows)
        with np.errstate(invalid="ignore"):
            value = np.where(np.isfinite(high), low + 0.5 * (high - low), high)
        return Estimate(value, low, high, kind="certified", unit="nats", method=method)

    def _privacy_curves(self) -> PrivacyCurves:
        def curve(pairs: BoundingPairs) -> Callable[[FloatArray], Estimate]:
            return lambda epsilon: self._estimate([pairs], np.asarray(epsilon, dtype=np.float64)).to("probability")

        forward = curve(self.forward_pairs)
        backward = forward if self.forward_pairs == self.backward_pairs else curve(self.backward_pairs)
        exact = not (self.forward_pairs.dominated or self.backward_pairs.dominated)
        square: Fraction | None = None
        distance: Any = None
        pairs = self.forward_pairs.dominating
        if exact and pairs and not any(pair.p_relative_error or pair.q_relative_error for pair in pairs):
            square = engines.squared_gaussian_distance(pairs)
            distance = engines.extended_root(square) if square else 0.0 if square == 0 else None
        return PrivacyCurves(
            forward, backward, of_one_pair=exact, ordered=self.ordered or forward is backward,
            gaussian=None if distance is None else (distance, 1.0), squared_distance=square,
            tails=(lambda e: _tails(self.forward_pairs, e), lambda e: _tails(self.backward_pairs, e)),
            group=self._pair_of_group if self.releases and all(part.mechanism for part in self.releases) else None,
        )

    def _pair_of_group(self, group: int) -> PrivacyCurves:
        """The releases where this number of records changes at once; every release is of a mechanism with groups."""
        parts = [item.of_group(group) for item in self.releases]
        return _joined(parts, [release.times for release in self.releases])._privacy_curves()

    def _directions(self, direction: Any) -> list[BoundingPairs]:
        """The pairs of the directions of which the larger delta is meant."""
        if direction is None:
            direction = "forward" if self.ordered else "worst"
        validate.choice("direction", direction, ("forward", "backward", "worst"))
        if direction == "forward":
            return [self.forward_pairs]
        if direction == "backward":
            return [self.backward_pairs]
        both = [self.forward_pairs, self.backward_pairs]
        return both[:1] if both[0] == both[1] else both

    def _direction_text(self, direction: Any) -> str:
        """The end of ``method``: of which direction the answer is, where both differ."""
        if self.forward_pairs == self.backward_pairs:
            return ""
        meant = "forward" if direction is None and self.ordered else direction
        return {"forward": ", forward: P against Q", "backward": ", backward: Q against P"}.get(meant, "")

    def _log_delta(self, epsilon: Any, direction: Any, *, quiet: bool = False) -> Estimate:
        directions = self._directions(direction)
        grid = validate.real("epsilon", epsilon)
        result = self._estimate(directions, grid, self._direction_text(direction))
        if direction is None and not quiet:
            self._warn_of_backward(grid.ravel(), np.asarray(result.upper).ravel())
        return result

    def _warn_of_backward(self, epsilon: FloatArray, upper: FloatArray) -> None:
        """Warn where Q against P is proved to be larger than these bounds, at a few epsilons of pairs in an order."""
        requested = np.flatnonzero((epsilon >= 0.0) & np.isfinite(epsilon) & (upper < 0.0))
        if not self.ordered or self.forward_pairs == self.backward_pairs or requested.size == 0:
            return
        requested = np.unique(requested[[0, requested.size // 2, -1]])
        lower = _curve(self.backward_pairs, epsilon[requested]).lower
        larger = np.flatnonzero(lower > upper[requested])
        if larger.size:
            k = larger[0]
            logs = float(upper[requested[k]]), float(lower[k])
            name, ends = ("delta", [math.exp(x) for x in logs]) if logs[0] > _DEEP else ("log delta", logs)
            warned(
                "the answer is that of p against q as passed, direction 'forward', and that of q against p is larger: "
                f"at epsilon = {float(epsilon[requested[k]])!r} {name} is at most {rounded_up(ends[0], 6)} forward and "
                f"at least {rounded_down(ends[1], 6)} backward. Pass direction='worst' for neighbours of which either "
                "may be p, and direction='forward' for this order alone.", UserWarning,
            )

    def _estimate(self, directions: list[BoundingPairs], grid: FloatArray, text: str = "") -> Estimate:
        flat = np.ascontiguousarray(grid).reshape(-1)
        result = _worst([_curve(pairs, flat) for pairs in directions], flat)
        rows = (row.reshape(grid.shape) for row in result.numbers)
        return Estimate(*rows, kind="certified", unit="log probability", method=result.method + text, cost=result.cost)

    def _tail_estimates(self, epsilon: Any, direction: str) -> tuple[Estimate, Estimate, Estimate, Estimate]:
        """P(S > epsilon), Q(S > epsilon), P(S <= epsilon) and Q(S <= epsilon)."""
        grid = validate.real("epsilon", epsilon)
        validate.choice("direction", direction, ("forward", "backward"))
        pairs = self.forward_pairs if direction == "forward" else self.backward_pairs
        flat = np.ascontiguousarray(grid).reshape(-1)
        numbers = np.empty((4, 2, flat.size))
        ahead = flat >= 0.0
        numbers[..., ahead] = _tails(pairs, flat[ahead])
        if not ahead.all():  # S > e is -S < -e, and -S has the roles of P and Q exchanged
            levels = -flat[~ahead]
            behind = _tails(pairs.reversed(), np.concatenate([levels, np.maximum(next_below(levels), 0.0)]))
            at, before = behind[..., : levels.size], behind[..., levels.size :]
            strict, loose = (np.stack([a[:, 0], b[:, 1]], 1) for a, b in ((before, at), (at, before)))  # of -S < -e, <=
            numbers[..., ~ahead] = np.stack([strict[3], strict[2], loose[1], loose[0]])
        # Bounds that cross or are no probabilities are left out with those of the complement: nothing is claimed there.
        crossed = ~((numbers[:, 0] <= numbers[:, 1]) & (numbers[:, 0] >= 0.0) & (numbers[:, 1] <= 1.0))
        crossed |= crossed[[2, 3, 0, 1]]
        numbers[:, 0][crossed], numbers[:, 1][crossed] = 0.0, 1.0
        estimates = []
        method = "tail of the sum of losses" + (", bounds that cross left out" if crossed.any() else "")
        for lower, upper in numbers:
            rows = (x.reshape(grid.shape) for x in (lower + 0.5 * (upper - lower), lower, upper))
            estimates.append(Estimate(*rows, kind="certified", unit="probability", method=method))
        return estimates[0], estimates[1], estimates[2], estimates[3]

    def __repr__(self) -> str:
        parts = [f"{release.times:,} x {release.text}" for release in self.releases[:_MOST_SHOWN]]
        more = len(self.releases) - len(parts)
        parts += [f"{more} more"] if more else []
        what = f": {', '.join(parts)}" if parts else f" of {len(self.forward_pairs.dominating)} pairs"
        return f"<Composition of {self.count:,} release{'s' * (self.count != 1)}{what}; {self.default_direction}>"

    @property
    def default_direction(self) -> str:
        """What ``delta`` answers for where no direction is passed, in words.

        Examples
        --------
        >>> from fastpriv import PoissonSampledGaussian, compose
        >>> compose(PoissonSampledGaussian(1.0, 0.01)).default_direction
        'worst direction'
        """
        if self.forward_pairs == self.backward_pairs:
            return "both directions alike"
        return "direction forward, p against q" if self.ordered else "worst direction"


def certified_curves(p: Any, q: Any = None) -> PrivacyCurves:
    """The two certified privacy curves of a pair, and what else is known of it.

    Parameters
    ----------
    p, q : a pair
        Two distributions, vectors or functions; or p one object that is a pair, and q None: a mechanism, a channel, a
        Composition, or a function that is the curve of both directions.

    Returns
    -------
    PrivacyCurves
        ``forward``, the curve of P against Q, and ``backward``, that of Q against P: functions of an array epsilon >= 0
        that return an Estimate.

    Raises
    ------
    DomainError
        For what is no pair.
    ShapeError
        For vectors of different lengths.

    Notes
    -----
    **Accuracy** that of the curves; ``tests/enclosures/test_composition.py``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.composition import certified_curves
    >>> certified_curves([0.5, 0.5], [0.25, 0.75]).forward(np.array([0.0])).value
    array([0.25])
    """
    composed = isinstance(p, PairObject) and type(p)._privacy_curves is PairObject._privacy_curves
    if composed or isinstance(p, (LaplaceMechanism, PoissonSampledGaussian)):
        refuse_second(f"a {type(p).__name__}", q)
        return compose(p)._privacy_curves()
    pair = pair_of_curves(p, q)
    if pair.gaussian is not None:
        return replace(pair, tails=compose(p if q is None else (p, q))._privacy_curves().tails)
    return pair


def _counts(counts: Any, pairs: int) -> list[int]:
    """One count for each pair."""
    if not isinstance(counts, (list, tuple)) and np.ndim(counts) == 0:
        return [validate.count("counts", counts, 0, _MAX_COUNT)] * pairs
    each = validate.sequence("counts", counts, "numbers of releases")
    numbers = [validate.count(f"counts[{i}]", number, 0, _MAX_COUNT) for i, number in enumerate(each)]
    if len(numbers) != pairs:
        raise ShapeError(
            f"counts must have one entry for each of the {pairs} pairs; got {len(numbers)}. Pass one each."
        )
    return numbers


class Release(NamedTuple):
    """What is released so many times: its text, and the mechanism where it is one with a sensitivity."""

    text: str
    times: int
    mechanism: Any = None
    is_reversed: bool = False

    def of_group(self, group: int) -> Composition:
        """One release where this number of records changes at once."""
        item = _of_one_pair(read_group(self.mechanism, group), self.mechanism)
        return item.reversed if self.is_reversed else item

    def reversed(self) -> Release:
        """The same with P and Q exchanged."""
        text = self.text.removeprefix("reversed ") if self.is_reversed else f"reversed {self.text}"
        return self._replace(text=text, is_reversed=not self.is_reversed)


def _of_one_pair(pair: ReadPair, source: Any) -> Composition:
    release = Release(pair_text(source), 1, source if has_groups(source) else None)
    return Composition(pair.forward, pair.backward, 1, pair.ordered, (release,))


def _joined(compositions: list[Composition], counts: list[int]) -> Composition:
    """All pairs, like ones as one; a count of 0 leaves a pair out."""
    used = [
        (composition, count)
        for composition, count in zip(compositions, counts, strict=True)
        if count and composition.count
    ]
    total = sum(composition.count * count for composition, count in used)
    if total > _MAX_COUNT:
        raise DomainError(f"counts must add up to at most {_MAX_COUNT}; got {total}. Pass smaller counts.")
    ordered = all(composition.ordered for composition in compositions)
    releases = _joined_releases(used)
    forward = _joined_pairs([(composition.forward_pairs, count) for composition, count in used])
    if all(composition.forward_pairs == composition.backward_pairs for composition, _ in used):
        return Composition(forward, forward, total, ordered, releases)
    backward = _joined_pairs([(composition.backward_pairs, count) for composition, count in used])
    return Composition(forward, backward, total, ordered, releases)


def _joined_releases(parts: list[tuple[Composition, int]]) -> tuple[Release, ...]:
    """Each different release once, with the sum of its counts; none where some composition does not name its own."""
    totals: dict[Release, int] = {}
    for part, times in parts:
        for release in part.releases:
            single = release._replace(times=1)
            totals[single] = totals.get(single, 0) + release.times * times
    if any(not part.releases for part, _ in parts):
        return ()
    return tuple(release._replace(times=count) for release, count in totals.items())


def _joined_pairs(parts: list[tuple[BoundingPairs, int]]) -> BoundingPairs:
    dominating = _merged([(pair, count) for part, count in parts for pair in part.dominating])
    alternatives = min(max((len(part.dominated) for part, _ in parts), default=0), _MOST_ALTERNATIVES)
    dominated = []
    for index in range(alternatives):
        chosen = [
            (part.dominated[min(index, len(part.dominated) - 1)] if part.dominated else part.dominating, n)
            for part, n in parts
        ]
        dominated.append(_merged([(pair, count) for pairs, count in chosen for pair in pairs]))
    return BoundingPairs(dominating, tuple(dominated))


def _merged(pairs: list[tuple[DominatingPair, int]]) -> tuple[DominatingPair, ...]:
    """Each different step once, with the sum of its counts."""
    totals: dict[DominatingPair, int] = {}
    for pair, times in pairs:
        single = pair.repeated(1)
        totals[single] = totals.get(single, 0) + pair.count * times
    return tuple(pair.repeated(count) for pair, count in totals.items())


def _infinite_log_mass(pairs: BoundingPairs) -> tuple[float, float]:
    low, high = pairs.bounds(engines.infinite_log_mass)
    return min(low, high), high


def largest_loss_of(pairs: BoundingPairs) -> tuple[float, float]:
    """Bounds of the largest loss; infinite where that is."""
    low, high = pairs.bounds(engines.largest_loss)
    if _infinite_log_mass(pairs)[1] > -math.inf:
        high = math.inf
    return min(low, high), high


def _worst(bounds: list[LogBounds], epsilon: FloatArray) -> LogBounds:
    """The larger curve of one or both directions, at each epsilon; at 0 both have the same."""
    if len(bounds) == 1:
        return bounds[0]
    first, other = bounds
    method = f"{first.method}, the larger of both directions"
    if WIDENED in other.method and WIDENED not in method:
        method = f"{method}, {WIDENED}"
    rows = [np.maximum(a, b) for a, b in zip(first.numbers, other.numbers, strict=True)]
    result = LogBounds(rows[0], rows[1], rows[2], first.cost, method)
    same = epsilon == 0.0
    if not same.any():
        return result
    return reconciled(result, np.where(same, np.minimum(first.lower, other.lower), -np.inf),
                      np.where(same, np.minimum(first.upper, other.upper), 0.0))


def _checked_curve(pairs: BoundingPairs, epsilon: FloatArray) -> LogBounds:
    """Bounds of log delta at epsilon >= 0, that meet the elementary ones, and at wide ones those of single releases."""
    result = checked(pairs, epsilon, engines.curve_bounds(pairs, epsilon))
    with np.errstate(invalid="ignore"):
        wide = ~(result.upper - result.lower <= _WIDE) & (result.upper > -np.inf)
    if WIDENED in result.method or not wide.any():
        return result
    lower = np.full(epsilon.size, -np.inf)
    for pair in {pair for part in pairs.alternatives for pair in part}:
        if pair.has_moments and pair.count > 1:
            item = engines.curve_bounds(BoundingPairs((pair.repeated(1),)), epsilon[wide])
            lower[wide] = np.maximum(lower[wide], item.lower)
    return reconciled(result, lower, np.zeros(epsilon.size))


def _curve(pairs: BoundingPairs, epsilon: FloatArray) -> LogBounds:
    """Bounds of log delta at any epsilon."""
    ahead = epsilon >= 0.0
    if ahead.all():
        return _checked_curve(pairs, epsilon)
    forward = _checked_curve(pairs, epsilon[ahead])
    behind = _checked_curve(pairs.reversed(), -epsilon[~ahead])
    rows = np.empty((3, epsilon.size))
    level = epsilon[~ahead]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        start = np.log(-np.expm1(level))  # of 1 - e^epsilon
        for row, number, above, outward in zip(rows, forward.numbers, behind.numbers, (0.0, -1.0, 1.0), strict=True):
            row[ahead] = number
            item = np.isneginf(level) | (above == 0.0)  # delta = 1
            exponent = level + np.log(-np.expm1(above))  # of 1 - delta, which keeps its digits where delta is near 1
            near_one = exponent < -0.5
            logs = np.where(near_one, np.log1p(-np.exp(exponent)), np.logaddexp(start, level + above))
            error = 16 * UNIT_ROUNDOFF * np.where(near_one, np.abs(logs) * (2.0 - exponent), 1.0 + np.abs(logs))
            row[~ahead] = np.where(item, 0.0, np.clip(logs + outward * (error + 2.0**-1000), -np.inf, 0.0))
    value, lower, upper = rows
    return LogBounds(np.clip(value, lower, upper), lower, upper, forward.cost, behind.method)


def _tails(pairs: BoundingPairs, epsilon: FloatArray) -> FloatArray:
    """Lower and upper bounds of P(S > epsilon), Q(S > epsilon), P(S <= epsilon) and Q(S <= epsilon), for epsilon >= 0,
    shape (4, 2, n).
    """
    delta, tail = (np.stack(engines.curve_bounds(pairs, epsilon, side).numbers[1:]) for side in ("delta", "tail"))
    np.minimum(tail[1], 0.0, out=tail[1])  # a(epsilon) <= P(S > epsilon) <= 1
    finite = np.where(np.isfinite(epsilon), epsilon, 0.0)
    rows = np.empty((4, 2, epsilon.size))
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        power = np.exp(tail)
        np.multiply(power, np.exp(-finite), out=rows[1])
        rows[1] *= 1.0 + _OUTWARD * (_exp_error(tail) + 2.0 * _exp_error(finite))
        rows[0] = np.exp(delta) * (1.0 + _OUTWARD * _exp_error(delta)) + power * (1.0 + _OUTWARD * _exp_error(tail))
        far = ~(epsilon < _FAR)
        if far.any():  # e^-epsilon underflows
            level = tail[:, far] - finite[far]
            rows[1][:, far] = np.exp(level) * (1.0 + _OUTWARD * (_exp_error(tail[:, far]) + _exp_error(finite[far])))
    _subnormal_outward(rows[0], np.maximum(delta[1], tail[1]))
    _subnormal_outward(rows[1], tail[1])
    np.minimum(rows[:2], 1.0, out=rows[:2])
    rows[2:] = 1.0 - rows[:2, ::-1] + _OUTWARD * UNIT_ROUNDOFF
    np.clip(rows[2:], 0.0, 1.0, out=rows[2:])
    small = rows[2, 1] < _SMALL
    if small.any():
        result = np.stack(engines.curve_bounds(pairs, epsilon[small], "lower").numbers[1:])
        with np.errstate(under="ignore"):
            below = np.exp(result) * (1.0 + _OUTWARD * _exp_error(result))
        _subnormal_outward(below, result[1])
        low = np.maximum(rows[2, 0, small], below[0])
        rows[2, :, small] = np.stack([low, np.maximum(np.minimum(rows[2, 1, small], below[1]), low)], axis=-1)
    return rows


def _subnormal_outward(bounds: FloatArray, log_upper: FloatArray) -> None:
    """Round exponentials below the normal numbers outward; 0 remains the bound of what is 0."""
    small = bounds < SMALLEST_NORMAL
    np.add(bounds, 8.0 * SMALLEST_SUBNORMAL * _OUTWARD, out=bounds, where=small & (log_upper > -np.inf))
    np.maximum(bounds[0], 0.0, out=bounds[0], where=small[0])


def _exp_error(logs: FloatArray) -> FloatArray:
    """Relative error of an exponential, of its rounded argument, and of a sum after it."""
    size = np.abs(logs)
    size[size == np.inf] = 0.0
    return np.asarray(4 * UNIT_ROUNDOFF * (1.0 + size))
