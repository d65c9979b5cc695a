"""Privacy losses with masses at given places, as somebody measured them: in this package's form or dp_accounting's.

Notation: P has mass m_j at the loss l_j = log P/Q and mass m at infinity, where Q has none; then Q has m_j e^(-l_j)
there, and the rest of Q lies where P has none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.numerics import FloatArray, LongDoubleArray, next_above, next_below
from ..base.values import ValueObject
from .discrete_pairs import bounding_atoms
from .discretised_losses import PrivacyLoss, on_another_grid
from .protocol import BoundingPairs, Bounds, DominatingPair, renyi_of_sum

# bound: none - what is refused
_SUM_TOLERANCE = 1e-9  # of probabilities: as everywhere in this package
# bound: none - losses that are multiples of one interval to this relative error are tried as a grid: it must be exact
_GRID_TOLERANCE = 1e-9
_LARGEST_GRID = 2**22  # points of a grid
_MOST_ATOMS = 8  # losses that are taken one by one, as atoms, even where they lie on a grid
# bound: proved - relative error of the masses of Q, of an exponential and a product in extended precision; losses up to
#    2^14 in size have these, others have no mass
_MASS_ERROR = 16 * float(np.finfo(np.longdouble).eps)
# bound: proved - relative rounding of e^-l in extended precision for |l| < 2^14, and of its product, as doubles
_REVERSAL_ERROR = 2.0**-52


@dataclass(frozen=True, slots=True, eq=False)
class LossPair(DominatingPair):
    """The loss of the pair lies on a grid: the engine of these takes one release too, and no curve is needed.

    Where ``rho`` is finite both orders have one curve, which the pair bounds, and a Renyi divergence of order a that is
    at most a ``rho``.
    """

    losses: PrivacyLoss
    count: int
    p_relative_error: float = 0.0
    q_relative_error: float = 0.0
    rho: float = math.inf

    @property
    def grid_losses(self) -> PrivacyLoss:
        """The loss."""
        return self.losses

    def reversed(self) -> LossPair:
        """Mass m at the loss l of P against Q is mass m e^-l at -l of Q against P; the rest of Q is infinite there."""
        if self.rho < math.inf:
            return self
        loss = self.losses
        positions = np.arange(loss.first, loss.first + len(loss.masses))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            factors = np.exp(-(positions * np.longdouble(loss.interval)))
            masses = np.where(loss.masses == 0.0, np.longdouble(0.0), loss.masses * factors)
        remainder = max(0.0, float(1.0 - masses.sum()))
        reverse = PrivacyLoss(-int(positions[-1]), loss.interval, masses[::-1].astype(np.float64), remainder)
        return LossPair(reverse, self.count, self.q_relative_error + _REVERSAL_ERROR, self.p_relative_error)

    def infinite_mass(self) -> Bounds:
        """The mass beyond the grid."""
        mass = self.losses.infinity_mass
        return mass * (1.0 - self.p_relative_error), min(1.0, mass * (1.0 + self.p_relative_error))

    def largest_loss(self) -> Bounds:
        """The last point of the grid that has a mass."""
        if self.losses.infinity_mass > 0.0:
            return math.inf, math.inf
        positions = np.flatnonzero(self.losses.masses)
        top = (self.losses.first + int(positions[-1])) * self.losses.interval if positions.size else -math.inf
        return next_below(top), next_above(top)

    def renyi_divergence(self, order: float) -> Bounds:
        """Sum over the grid, and the closed bound."""
        loss, most = self.losses, next_above(order * self.rho, 2)
        if loss.infinity_mass > 0.0:
            return 0.0 if most < math.inf else math.inf, most
        losses = (loss.first + np.flatnonzero(loss.masses)) * np.longdouble(loss.interval)
        masses = loss.masses[loss.masses > 0.0].astype(np.longdouble)
        low, high = renyi_of_sum(masses, losses, np.abs(losses), order)
        return min(low, most), min(high, most)

    def privacy_loss(self, interval: float, tail: float, dominating: bool) -> PrivacyLoss:
        """The loss on another grid."""
        return on_another_grid(self.losses, interval, dominating)


class PrivacyLossDistribution(ValueObject):
    """A privacy loss with masses at given losses, on a grid or not, and possibly at infinity.

    Parameters
    ----------
    losses : array_like, shape (n,)
        Values of log P/Q in nats, finite, in any order.
    masses : array_like, shape (n,)
        Probabilities of these losses under P.
    infinite_mass : float, default 0
        Probability under P of outcomes that Q does not have: what delta stays above at every epsilon.

    Raises
    ------
    DomainError
        For numbers out of range, masses that with the infinite one do not sum to 1 within 1e-9, or masses of Q,
        ``masses * exp(-losses)``, whose sum exceeds 1 by more than that.
    ShapeError
        For masses and losses of different lengths.

    Notes
    -----
    ``compose`` takes it as an ordered pair, P against Q. Distributions of dp_accounting are taken by ``compose`` as
    they are, in both of their directions.

    **Accuracy** the curves are compared with exact rational sums by ``tests/enclosures/test_compose.py``.

    Source: Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022, section 2.

    Examples
    --------
    >>> from fastpriv import compose
    >>> from fastpriv.composition import PrivacyLossDistribution
    >>> loss = PrivacyLossDistribution([1.0, -1.0], [0.7310585786300049, 0.2689414213699951])
    >>> print(f"{compose(loss, 2).delta(1.0):.4f}")
    0.3378 [0.3378, 0.3379]
    """

    __slots__ = _fields = ("losses", "masses", "infinite_mass")

    losses: FloatArray
    masses: FloatArray
    infinite_mass: float

    def __init__(self, losses: ArrayLike, masses: ArrayLike, infinite_mass: ArrayLike = 0.0) -> None:
        values = validate.vector("losses", losses, "finite", lambda x: np.isfinite(x))
        weights = validate.vector("masses", masses, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf))
        beyond = validate.scalar("infinite_mass", infinite_mass, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
        if values.shape != weights.shape:
            raise ShapeError(
                f"masses must have one entry for each of the {values.size} losses; got {weights.size}. Pass one each."
            )
        validate.with_argument_name(
            "weights", "masses with infinite_mass", lambda: validate.probabilities("weights", [*weights, beyond])
        )
        order = np.argsort(values, kind="stable")
        values, weights = values[order], weights[order]
        excess = float(_masses_of_q(values, weights).sum()) - 1.0
        if excess > _SUM_TOLERANCE:
            raise DomainError(
                f"masses must be those of log P/Q under P, so that masses * exp(-losses) sums to at most 1; got "
                f"{1.0 + excess!r}. Pass the losses of P against Q in nats, with their probabilities under P."
            )
        self._set(losses=values, masses=weights, infinite_mass=beyond)

    def _bounding_pairs(self) -> BoundingPairs:
        """On a grid where the losses are one exactly, else atoms."""
        used = self.masses > 0.0
        grid = _grid_of(self.losses[used])
        if grid is not None:
            interval, positions = grid
            first = int(positions[0])
            masses = np.zeros(int(positions[-1]) - first + 1)
            np.add.at(masses, positions - first, self.masses[used])
            return BoundingPairs((LossPair(PrivacyLoss(first, interval, masses, self.infinite_mass), 1),))
        q = _masses_of_q(self.losses[used], self.masses[used])
        remainder = max(0.0, 1.0 - float(q.sum()))
        p = np.append(self.masses[used].astype(np.longdouble), [self.infinite_mass, 0.0])
        q = np.append(q, [0.0, remainder if remainder > _SUM_TOLERANCE else 0.0])
        finite = np.append(np.ones(p.size - 2, dtype=bool), [False, False])
        return bounding_atoms(p, q, finite, 0.0, _MASS_ERROR)


def is_dp_accounting_pld(pld: Any) -> bool:
    """Whether this looks like a PrivacyLossDistribution of dp_accounting."""
    return hasattr(pld, "_pmf_remove") and hasattr(pld, "_symmetric")


def losses_of_dp_accounting(name: str, pld: Any) -> list[PrivacyLoss]:
    """The privacy losses of the directions of a distribution of dp_accounting: the removal, and the addition if it
    has another one.
    """
    try:
        pmfs = [pld._pmf_remove] if pld._symmetric else [pld._pmf_remove, pld._pmf_add]
        dense = [pmf.to_dense_pmf() for pmf in pmfs]
        return [
            PrivacyLoss(int(item._lower_loss), float(item._discretization),
                        np.maximum(np.asarray(item._probs, dtype=np.float64), 0.0),
                        min(max(float(item._infinity_mass), 0.0), 1.0)) for item in dense
        ]
    except AttributeError:
        raise DomainError(
            f"{name} must be a PrivacyLossDistribution of dp_accounting; got {validate.shown(pld)}. Make one by "
            "dp_accounting.pld.privacy_loss_distribution, or by dp_accounting_pld."
        ) from None


def _masses_of_q(losses: FloatArray, masses: FloatArray) -> LongDoubleArray:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        products = np.exp(-losses.astype(np.longdouble)) * masses
    return np.asarray(np.where(masses == 0.0, 0.0, products))


def _grid_of(losses: FloatArray) -> tuple[float, Any] | None:
    """The interval and the multiples of it that the losses are exactly, if there are such and not too many."""
    if losses.size <= _MOST_ATOMS:
        return None
    differences = np.diff(losses)
    positive = differences[differences > 0.0]
    if positive.size == 0:
        return None
    interval = float(positive.min())
    positions = np.round(losses / interval)
    if positions[-1] - positions[0] >= _LARGEST_GRID or np.abs(positions).max() >= 2**53:
        return None
    if positions[-1] != 0.0 and abs(losses[-1] / positions[-1] - interval) < _GRID_TOLERANCE * interval:
        interval = float(losses[-1] / positions[-1])
    exact = positions.astype(np.longdouble) * np.longdouble(interval) == losses
    return (interval, positions.astype(np.int64)) if bool(exact.all()) else None
