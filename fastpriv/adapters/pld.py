"""Privacy loss distributions of dp_accounting, out and in, and compositions with honest bounds."""

# bounds: none - ranges of the keywords

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _validate
from .._monotone import monotone
from ..composition.discretised_losses import PrivacyLoss, discretised
from ..composition.pairs import pair_of
from ..composition.tilted_transforms import composed_bounds
from ..errors import BackendMissingError, DomainError
from ..estimate import Estimate, NumberLike
from ..numerics import FloatArray

__all__ = ["PldCurve", "composed_delta", "composed_hockey_stick_divergence", "dp_accounting_pld"]

_INTERVAL = 1e-4  # of the grid of losses, in nats: the default of dp_accounting
# bound: none - what is beyond the grid is mass at infinity, with its bound
_TAIL_MASS = 1e-30  # delta beyond the grid: far below the deltas that people ask for, after 1e6 compositions too
_TAILS = (_TAIL_MASS, 1e-100, 1e-250)  # tried one after another until the tail does not count
# bound: none - part of delta that mass at infinity may have before a smaller tail is tried
_NEGLIGIBLE_TAIL = 1e-9
_MAX_STEPS = 10**7  # for more the rounding of a power has no useful bound


def dp_accounting_pld(
    p: Any, q: Any = None, *, interval: float = _INTERVAL, tail_mass: float = _TAIL_MASS, pessimistic: bool = True
) -> Any:
    """The privacy loss distribution of a pair, for dp_accounting, that provably dominates it or is dominated by it.

    Parameters
    ----------
    p, q : GaussianMixture; or p a GaussianMechanism, a channel, or a function, see below
        Any pair of mixtures with certified bounds, also with several components on both sides. A mechanism with
        one sensitivity, or a channel, whose worst pair of rows is taken, comes without q. Functions of an array
        epsilon >= 0 return an Estimate of its shape: p the curve of P against Q, q the one of Q against P, or None if
        they are the same.
    interval : float, default 1e-4
        Distance of the losses, in nats. What discretisation costs falls with its square.
    tail_mass : float, default 1e-30
        Delta that may be left beyond the largest loss; its bound becomes the mass at infinity.
    pessimistic : bool, default True
        True for a distribution whose delta, of any number of compositions, is at least that of the pair; False for one
        whose delta is at most that. The masses of the latter may add up to less than 1.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        ``remove`` is P against Q, ``add`` is Q against P.

    Raises
    ------
    DomainError
        For a pair without certified bounds, keywords out of range, an interval that needs more than 4e6 points, or
        ``pessimistic=False`` of a channel, whose worst curve belongs to no single pair.
    ShapeError
        For mixtures of different dimensions.
    BackendMissingError
        If dp_accounting is not installed.

    Notes
    -----
    Compositions by dp_accounting itself have rounding errors of about 1e-12 without a bound;
    ``composed_delta`` has the bound.

    **Accuracy** the curves of both distributions are compared with the certified curve of the pair by
    ``tests/enclosures/test_composition.py``.

    Source: Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022, algorithm 1, with bounds of delta rounded outward.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, adapters
    >>> p, q = GaussianMixture([0.9, 0.1], [0.0, 1.0], 0.8), GaussianMixture([0.8, 0.2], [0.0, -1.0], 0.8)
    >>> pld = adapters.dp_accounting_pld(p, q, interval=1e-3)  # doctest: +SKIP
    >>> pld.get_delta_for_epsilon(1.0)  # doctest: +SKIP
    0.04...
    """
    forward, backward, step, tail, pessimistic = _arguments(p, q, interval, tail_mass, pessimistic)
    try:
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution
    except ImportError:
        raise BackendMissingError(
            "dp_accounting_pld needs dp_accounting. Install it with: pip install dp-accounting"
        ) from None
    losses = [discretised(forward, backward, step, tail, pessimistic)]
    if forward != backward:
        losses.append(discretised(backward, forward, step, tail, pessimistic))
    pmfs = (pld_pmf.DensePLDPmf(step, one.first, one.masses, one.infinity_mass, pessimistic) for one in losses)
    return privacy_loss_distribution.PrivacyLossDistribution(*pmfs)


@monotone(falling="epsilon")
def composed_hockey_stick_divergence(
    p: Any, q: Any = None, epsilon: NumberLike = 0.0, *, steps: int = 1, interval: float = _INTERVAL,
    tail_mass: float | None = None,
) -> Estimate:  # fmt: skip
    """H_{e^epsilon}(P^T || Q^T), delta of T independent releases of a pair, certified.

    Parameters
    ----------
    p, q, interval, tail_mass
        As ``dp_accounting_pld``; by default the tail is chosen so that it does not count beside the
        answer. Of a channel the upper bound holds for the worst pairs of rows, step by step, and the lower bound is 0.
    epsilon : array_like or Estimate
        Non-negative, in nats, any shape.
    steps : int, default 1
        T, at least 1.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``epsilon``. The upper bound is that of the pessimistic distribution, the lower
        bound that of the optimistic one, both with the rounding of their composition.

    Raises
    ------
    DomainError, ShapeError
        As ``dp_accounting_pld``, and for a negative epsilon or steps out of range.

    Notes
    -----
    What discretisation costs is the width of the bracket: it shrinks with the square of ``interval``. Small deltas
    keep their relative accuracy, since the losses are tilted to ``epsilon`` before they are composed.

    **Accuracy** compared with the closed curve of composed Gaussian mechanisms, down to 1e-100, and with exact
    compositions of few losses by ``tests/enclosures/test_composition.py``.

    Source: as ``dp_accounting_pld``; bounds of the transform: head of ``fastpriv/composition/tilted_transforms.py``.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, adapters
    >>> p, q = GaussianMixture([0.99, 0.01], [0.0, 1.0], 0.8), GaussianMixture.single(0.0, 0.8)
    >>> e = adapters.composed_hockey_stick_divergence(p, q, [1.0, 2.0], steps=100, interval=1e-3)
    >>> print(f"{e:.1e}")
    [1.2e-04, 1.0e-06], lower=[1.1e-04, 1.0e-06], upper=[1.3e-04, 1.1e-06]
    """
    tails = _TAILS if tail_mass is None else (tail_mass,)
    forward, backward, step, _, _ = _arguments(p, q, interval, tails[0], True)
    grid = _validate.real("epsilon", epsilon, "at least 0", lambda e: e >= 0)
    number = _steps(steps)
    flat = grid.reshape(-1)
    for tail in tails:
        above = discretised(forward, backward, step, tail, True)
        _, upper, cost = composed_bounds(above, flat, number)
        if number * above.infinity_mass <= _NEGLIGIBLE_TAIL * float(upper.min(initial=1.0)):
            break
    lower = np.zeros(flat.size)
    if pair_of(p, q).of_one_pair:
        below = discretised(forward, backward, step, tail, False)
        lower = np.minimum(composed_bounds(below, flat, number)[0], upper)
    return _estimate(lower, upper, grid, cost | {"losses": len(above.masses)})


@monotone(falling="epsilon")
def composed_delta(pld: Any, epsilon: NumberLike = 0.0, *, steps: int = 1) -> Estimate:
    """Delta of T compositions of a privacy loss distribution of dp_accounting, with a bound of every rounding.

    Parameters
    ----------
    pld : PrivacyLossDistribution of dp_accounting
        Its masses count as they are, negative ones, which rounding can leave, as 0.
    epsilon : array_like or Estimate
        Non-negative, in nats, any shape.
    steps : int, default 1
        T, at least 1.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``epsilon``, the larger of both directions: what the distribution itself yields,
        without its rounding. ``upper`` of a pessimistic distribution and ``lower`` of an optimistic one bound the
        delta of the mechanism that it was made of.

    Raises
    ------
    DomainError
        For another object, a negative epsilon, or steps out of range.

    Notes
    -----
    dp_accounting composes by one transform in doubles, without a bound of its rounding: beside deltas below 1e-12 it
    is larger than they are, and its pessimistic answer can lie below the truth.

    **Accuracy** ``tests/enclosures/test_composition.py``, against exact rational compositions.

    Source: the head of ``fastpriv/composition/tilted_transforms.py``.

    Examples
    --------
    >>> from dp_accounting.pld import privacy_loss_distribution  # doctest: +SKIP
    >>> from fastpriv import adapters
    >>> pld = privacy_loss_distribution.from_gaussian_mechanism(10.0)  # doctest: +SKIP
    >>> print(f"{adapters.composed_delta(pld, 6.0, steps=100):.3e}")  # doctest: +SKIP
    1.93...e-08 [1.93...e-08, 1.93...e-08]
    """
    losses = _losses("pld", pld)
    grid = _validate.real("epsilon", epsilon, "at least 0", lambda e: e >= 0)
    number = _steps(steps)
    return _worst(losses, grid, number)


class PldCurve:
    """A privacy loss distribution of dp_accounting as a curve delta(epsilon) of this package.

    ``curve(epsilon)`` returns an Estimate, so that the curve can be discretised again, converted or drawn.

    Parameters
    ----------
    pld : PrivacyLossDistribution of dp_accounting
        As in ``composed_delta``.

    Raises
    ------
    DomainError
        For another object.

    Notes
    -----
    **Accuracy** as ``composed_delta`` with one step; the tail by ``tests/enclosures/test_composition.py``.

    Source: Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022, section 2.

    Examples
    --------
    >>> from dp_accounting.pld import privacy_loss_distribution  # doctest: +SKIP
    >>> from fastpriv import adapters
    >>> curve = adapters.PldCurve(privacy_loss_distribution.from_laplace_mechanism(1.0))  # doctest: +SKIP
    >>> curve([0.0, 0.5]).upper.round(4)  # doctest: +SKIP
    array([0.3935, 0.2212])
    """

    __slots__ = ("_losses",)

    def __init__(self, pld: Any) -> None:
        self._losses = _losses("pld", pld)

    @monotone(falling="epsilon")
    def __call__(self, epsilon: NumberLike) -> Estimate:
        """The curve at ``epsilon``, at least 0, any shape."""
        grid = _validate.real("epsilon", epsilon, "at least 0", lambda e: e >= 0)
        return _worst(self._losses, grid, 1)


def _arguments(p: Any, q: Any, interval: ArrayLike, tail_mass: ArrayLike, pessimistic: bool) -> tuple[Any, ...]:
    """Both curves and the checked keywords."""
    pair = pair_of(p, q)
    step = _validate.scalar("interval", interval, "from 1e-9 to 10", lambda x: (x >= 1e-9) & (x <= 10))
    tail = _validate.scalar("tail_mass", tail_mass, "from 1e-250 to 0.1", lambda x: (x >= 1e-250) & (x <= 0.1))
    pessimistic = _validate.flag("pessimistic", pessimistic)
    if not (pessimistic or pair.of_one_pair):
        raise DomainError(
            "pessimistic must be True for a channel; got False. Its worst pairs of rows have no curve of their own."
        )
    return pair.forward, pair.backward, step, tail, pessimistic


def _steps(steps: Any) -> int:
    return _validate.count("steps", steps, 1, _MAX_STEPS)


def _losses(name: str, pld: Any) -> list[PrivacyLoss]:
    """The privacy losses of the directions of a distribution of dp_accounting."""
    try:
        pmfs = [pld._pmf_remove] if pld._symmetric else [pld._pmf_remove, pld._pmf_add]
        dense = [pmf.to_dense_pmf() for pmf in pmfs]
        return [
            PrivacyLoss(int(one._lower_loss), float(one._discretization),
                        np.maximum(np.asarray(one._probs, dtype=np.float64), 0.0),
                        min(max(float(one._infinity_mass), 0.0), 1.0)) for one in dense
        ]  # fmt: skip
    except AttributeError:
        raise DomainError(
            f"{name} must be a PrivacyLossDistribution of dp_accounting; got {_validate.shown(pld)}. Make one by "
            "dp_accounting.pld.privacy_loss_distribution, or by dp_accounting_pld."
        ) from None


def _worst(losses: list[PrivacyLoss], grid: FloatArray, steps: int) -> Estimate:
    """The larger delta of the directions."""
    lower, upper, costs = zip(*(composed_bounds(one, grid.reshape(-1), steps) for one in losses), strict=True)
    return _estimate(np.maximum.reduce(lower), np.maximum.reduce(upper), grid, costs[0])


def _estimate(lower: FloatArray, upper: FloatArray, grid: FloatArray, cost: dict[str, Any]) -> Estimate:
    value = lower + 0.5 * (upper - lower)
    numbers = (x.reshape(grid.shape) for x in (value, lower, upper))
    return Estimate(*numbers, kind="certified", unit="probability", method="tilted transforms", cost=cost)
