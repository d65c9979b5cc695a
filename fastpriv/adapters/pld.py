"""Privacy loss distributions for dp_accounting; those of dp_accounting are pairs for ``compose``."""

# bounds: none - ranges of the keywords

from __future__ import annotations

from typing import Any

from ..base import validate
from ..base.errors import DomainError, explain_missing_package
from ..composition import certified_curves
from ..pairs.discretised_losses import discretised

_INTERVAL = 1e-4  # of the grid of losses, in nats: the default of dp_accounting
# bound: none - what is beyond the grid is mass at infinity, with its bound
_TAIL_MASS = 1e-30  # delta beyond the grid: far below the deltas that people ask for, after 1e6 compositions too


def dp_accounting_pld(
    p: Any, q: Any = None, *, interval: float = _INTERVAL, tail_mass: float = _TAIL_MASS, pessimistic: bool = True
) -> Any:
    """The privacy loss distribution of a pair, for dp_accounting, that provably dominates it or is dominated by it.

    Parameters
    ----------
    p, q : GaussianMixture; or p a Composition, a GaussianMechanism, a channel, or a function, see below
        Any pair of mixtures with certified bounds, also with several components on both sides. A composition, a
        mechanism with one sensitivity, or a channel, whose worst pair of rows is taken, comes without q. Functions of
        an array epsilon >= 0 return an Estimate of its shape: p the curve of P against Q, q the one of Q against P, or
        None if they are the same.
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
    Compositions by dp_accounting itself have rounding errors of about 1e-12 without a bound; ``fastpriv.compose`` takes
    the distribution, and has the bound.

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
    pair = certified_curves(p, q)
    step = validate.scalar("interval", interval, "from 1e-9 to 10", lambda x: (x >= 1e-9) & (x <= 10))
    tail = validate.scalar("tail_mass", tail_mass, "from 1e-250 to 0.1", lambda x: (x >= 1e-250) & (x <= 0.1))
    pessimistic = validate.flag("pessimistic", pessimistic)
    if not (pessimistic or pair.of_one_pair):
        raise DomainError(
            "pessimistic must be True for a channel; got False. Its worst pairs of rows have no curve of their own."
        )
    with explain_missing_package("dp_accounting_pld", "dp_accounting", "dp-accounting"):
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution
    losses = [discretised(pair.forward, pair.backward, step, tail, pessimistic)]
    if pair.forward != pair.backward:
        losses.append(discretised(pair.backward, pair.forward, step, tail, pessimistic))
    pmfs = (pld_pmf.DensePLDPmf(step, loss.first, loss.masses, loss.infinity_mass, pessimistic) for loss in losses)
    return privacy_loss_distribution.PrivacyLossDistribution(*pmfs)
