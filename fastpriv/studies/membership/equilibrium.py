"""The exact equilibrium of small games of membership: the defender's best noise against the best attacker.

Notation: membership b with prior theta, frequencies f(b), release r in [0, 1]^m with any distribution p(r | b), utility
loss E d with d(b, r) = mean_j kappa_j |r_j - f_j(b)|. An attacker who is scored by cross-entropy, and who answers the
release by the posterior, loses the joint risk H(b | R) = H(b) - I(b; R). With noise that may depend on b the
defender's problem

    minimise I(b; R) + s E d(b, R)   or   I(b; R) subject to E d <= D

is that of rate-distortion theory: both best responses hold at its solution, which has a dual certificate (Cover and
Thomas 2006, section 10.8; ``capacity.rate_distortion``).

The releases may be taken from a finite grid. The dual asks that c(r) = sum_b theta_b exp(-s d(b, r)) / Z_b be at most
1 for all r. In one coordinate, the others fixed, each term is convex between the frequencies f_j(b), so that c is, and
its largest value in an interval between two of them is attained at an end, or outside of them at the first or the last.
So the product of the frequencies of each attribute has a best set of releases, and its certificate holds for all r.
"""

# bounds: none - the bounds are those of capacity.rate_distortion

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...base import random_streams, validate
from ...base.errors import DomainError, ShapeError
from ...base.estimate import Estimate, Result
from ...base.numerics import UNIT_ROUNDOFF, FloatArray, IndexArray, enclosure, next_above, next_below
from ...base.random_streams import RNGLike
from ...base.values import distinct_rows
from ...capacity import rate_distortion
from ...channels import Channel
from .classes import MembershipClasses, membership_classes
from .panels import Panel, member_frequencies, released_array
from .priors import MembershipPrior
from .releases import SimulatedReleases

_MOST_PEOPLE = 20  # 2^20 memberships are grouped by their frequencies in seconds
# bound: proved - docs/proofs/roundings.md, 13.5: what the relative error of probabilities of memberships, and of their
#    sums over a type, changes of an information, beside 1 and itself
_PRIOR_ROUNDING = 2**15 * UNIT_ROUNDOFF
# bound: proved - relative error of a difference of logarithms, each at most 745, beside a logarithm of at most 2
_LOGARITHM_ROUNDING = 2048 * UNIT_ROUNDOFF


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MembershipEquilibrium(Result):
    """The defender's best strategy, and what the best attacker learns from it.

    Parameters
    ----------
    information : Estimate
        I(b; R), nats: the least for a defender with this utility loss.
    joint_risk : Estimate
        H(b | R), nats: the loss of the best attacker in cross-entropy.
    marginal_risk : Estimate
        sum_k H(b_k | R), nats: the loss of the best attacker who names a probability for each person.
    utility_loss : Estimate
        Mean over attributes of kappa_j E|r_j - f_j|.
    lagrangian : Estimate
        Least value of I + slope * utility loss, nats; its lower bound is the dual certificate.
    constant_loss : float
        Utility loss of the best release that says nothing.
    slope : float
        Nats that one unit of utility is worth.
    frequencies : ndarray, shape (types, m)
        The different f(b); memberships of equal f(b) are treated alike.
    releases : ndarray, shape (outputs, m)
        What is released.
    channel : Channel
        P(release | frequencies).
    panel, prior : Panel, MembershipPrior
        Of the game.

    Notes
    -----
    **Accuracy** as ``membership_equilibrium``, which makes it.

    Source: Cover and Thomas 2006, section 10.8.

    Examples
    --------
    >>> from fastpriv.membership import FixedSizeMembership, Panel, membership_equilibrium
    >>> game = membership_equilibrium(Panel([[1], [0], [1]]), FixedSizeMembership(2), slope=1e3)
    >>> game.releases.ravel(), round(float(game.utility_loss), 6)
    (array([0.5, 1. ]), 0.0)
    """

    information: Estimate
    joint_risk: Estimate
    marginal_risk: Estimate
    utility_loss: Estimate
    lagrangian: Estimate
    constant_loss: float
    slope: float
    frequencies: FloatArray
    releases: FloatArray
    channel: Channel
    panel: Panel
    prior: MembershipPrior

    def simulate(self, count: int, *, rng: RNGLike = None) -> SimulatedReleases:
        """Memberships drawn from the prior, and what the defender releases.

        Parameters
        ----------
        count : int
            Number of releases.
        rng : None, int, sequence of int, SeedSequence, Generator or BitGenerator, default None
            The seed.

        Examples
        --------
        >>> from fastpriv.membership import FixedSizeMembership, Panel, membership_equilibrium
        >>> game = membership_equilibrium(Panel([[1], [0], [1]]), FixedSizeMembership(2), slope=1e3)
        >>> game.simulate(4, rng=1).released.shape
        (4, 1)
        """
        generator = random_streams.generator(rng)
        membership = self.prior.draw(validate.count("count", count), self.panel.n_people, generator)
        types = _row_numbers(self.frequencies, member_frequencies(self.panel, membership))
        cumulative = np.cumsum(np.asarray(self.channel.matrix(), dtype=float)[types], axis=1)
        drawn = generator.random((len(cumulative), 1)) * cumulative[:, -1:]
        return SimulatedReleases(membership, self.releases[(cumulative < drawn).sum(axis=1)])

    def scores(self, released: ArrayLike) -> FloatArray:
        """P(b_k = 1 | r) for releases of this game, shape (..., K): the exact Bayes attacker.

        Parameters
        ----------
        released : array_like, shape (..., m)
            Rows of ``releases``.

        Examples
        --------
        >>> from fastpriv.membership import FixedSizeMembership, Panel, membership_equilibrium
        >>> game = membership_equilibrium(Panel([[1], [0], [1]]), FixedSizeMembership(2), slope=1e3)
        >>> game.scores([1.0]).round(6)
        array([1., 0., 1.])
        """
        r = released_array(released, self.panel.n_attributes)
        classes = _frequency_classes(self.panel, self.prior)
        cells = np.asarray(self.channel.matrix(), dtype=float)
        marginals = (cells.T @ classes.joint(classes.member)) / (classes.weights @ cells)[:, None]
        return np.asarray(marginals[_row_numbers(self.releases, r.reshape(-1, r.shape[-1]))].reshape(*r.shape[:-1], -1))


def membership_equilibrium(
    panel: Panel, prior: MembershipPrior, *, slope: float | None = None, utility_budget: float | None = None,
    attribute_weights: ArrayLike | None = None, atol: float = 1e-7,
) -> MembershipEquilibrium:
    """The defender's exact best strategy in a small game of membership, with its dual certificate.

    Parameters
    ----------
    panel : Panel
        K <= 20 people and few attributes: the releases are sought among the products of the frequencies of each one.
    prior : BernoulliMembership or FixedSizeMembership
        Who is a member.
    slope : float
        s >= 0: minimises I(b; R) + s E d, nats. Give this or ``utility_budget``.
    utility_budget : float
        Largest utility loss E d: minimises I(b; R).
    attribute_weights : array_like, shape (m,), optional
        kappa_j >= 0, of which one is positive; 1 for all by default.
    atol : float, default 1e-7
        Largest distance of the bounds of ``lagrangian``, nats.

    Returns
    -------
    MembershipEquilibrium

    Raises
    ------
    DomainError, ShapeError
        For more than 20 people, weights that are negative or all 0, both or neither of slope and utility budget.
    MemoryError
        For too many attributes.
    NotConvergedError
        If the bounds do not meet; see ``rate_distortion``.

    Notes
    -----
    No defender leaves the attacker more joint risk at this utility loss, whatever randomness it uses, and the release
    of a constant, whose utility loss is ``constant_loss``, leaves all of H(b).

    **Accuracy** Certified and within ``atol``; the certificate holds for all releases in [0, 1]^m, not only for those
    of the grid: ``tests/membership/test_equilibrium.py``, which also looks for better releases off the grid and for
    better defenders.

    Source: Cover and Thomas 2006, section 10.8.

    Examples
    --------
    >>> from fastpriv.membership import BernoulliMembership, Panel, membership_equilibrium
    >>> game = membership_equilibrium(Panel([[1], [0], [1], [0]]), BernoulliMembership(0.5), utility_budget=0.1)
    >>> print(f"{game.information.value:.4f} nats at {game.utility_loss.value:.4f}")
    0.5209 nats at 0.1000
    """
    validate.instance("panel", panel, Panel)
    validate.instance("prior", prior, MembershipPrior)
    if (slope is None) == (utility_budget is None):
        raise DomainError(
            "slope must be given if utility_budget is not, and only then; got both or neither. Give one of them."
        )
    weights = attribute_weights_over_count(attribute_weights, panel.n_attributes)
    classes = _frequency_classes(panel, prior)
    values = [np.unique(column) for column in classes.frequencies.T]
    cells = math.prod(len(column) for column in values)
    validate.memory(f"grid of {cells} releases", 8 * cells * (len(values) + 6), "Take fewer attributes or people.")
    grid = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, len(values))
    validate.memory(
        f"releases of {len(classes.weights)} x {len(grid)} cells", 60 * len(grid) * len(classes.weights),
        "Take fewer attributes or people.",
    )
    distortion = np.zeros((len(classes.weights), len(grid)))
    for column, weight in enumerate(weights):
        distortion += weight * np.abs(classes.frequencies[:, column, None] - grid[:, column])
    point = validate.with_argument_name(
        "level", "utility_budget",
        lambda: rate_distortion(classes.weights, distortion, slope=slope, level=utility_budget, atol=atol),
    )
    rounding = 8 * UNIT_ROUNDOFF * point.slope * float(weights.sum())  # of the frequencies and their differences
    rate, lagrangian = _widened(point.rate, rounding), _widened(point.lagrangian, rounding)
    value, lower, upper = (float(x) for x in (rate.value, rate.lower, rate.upper))
    h = prior.entropy(panel.n_people)
    risk = Estimate(
        max(float(h.value) - value, 0.0), max(next_below(float(h.lower) - upper), 0.0),
        max(next_above(float(h.upper) - lower), 0.0), kind="certified", unit="nats", method=rate.method,
    )
    constant = float((classes.weights @ distortion).min())
    return MembershipEquilibrium(
        rate, risk, _marginal_risk(classes, point.channel.matrix()), point.distortion, lagrangian, constant,
        point.slope, classes.frequencies, grid[point.reproductions], point.channel, panel, prior,
    )


def _frequency_classes(panel: Panel, prior: MembershipPrior) -> MembershipClasses:
    """The memberships grouped by their frequencies, in increasing order of these."""
    if panel.n_people > _MOST_PEOPLE:
        raise DomainError(
            f"panel must have at most {_MOST_PEOPLE} people for an exact equilibrium; got {panel.n_people}. Select "
            "some of them."
        )
    classes = membership_classes(panel, prior, False)
    assert classes is not None  # there are fewer memberships than classes that are listed
    order = np.argsort(distinct_rows(classes.frequencies)[1])
    return classes._replace(
        weights=classes.weights[order], frequencies=classes.frequencies[order], member=classes.member[:, order],
        other=classes.other[:, order],
    )


def _row_numbers(rows: Any, requested: Any) -> IndexArray:
    """The number of each requested row among ``rows``, equal to the bit."""
    number = {row.tobytes(): i for i, row in enumerate(np.ascontiguousarray(rows + 0.0))}
    try:
        return np.array([number[row.tobytes()] for row in np.ascontiguousarray(requested + 0.0)], dtype=np.intp)
    except KeyError:
        raise DomainError("released must be rows of releases; got another release. Pass what simulate gives.") from None


def attribute_weights_over_count(weights: ArrayLike | None, m: int) -> FloatArray:
    """kappa_j / m."""
    if weights is None:
        return np.full(m, 1.0 / m)
    values = validate.vector(
        "attribute_weights", weights, "finite numbers of at least 0 and at most 1e300",
        lambda x: (x >= 0) & (x <= 1e300),
    )
    if values.size != m:
        raise ShapeError(f"attribute_weights must have {m} entries; got {values.size}. Give one an attribute.")
    if not values.any():
        raise DomainError("attribute_weights must have a positive entry; got only zeros. Weigh what matters.")
    return values / m


def _marginal_risk(classes: MembershipClasses, cells: FloatArray) -> Estimate:
    """sum_k H(b_k | R) of a channel from the types, with sums of as many terms as there are releases.

    With J_1 and J_0, the larger and the smaller of P(r, b_k = 1) and P(r, b_k = 0), a term is
    (J_1 + J_0) log(1 + J_0/J_1) + J_0 (log J_1 - log J_0). All terms are nonnegative, and to first order an error of
    all J relative to themselves moves an entropy by as much of itself.
    """
    members, others = (cells.T @ classes.joint(side) for side in (classes.member, classes.other))
    larger, smaller = np.maximum(members, others), np.minimum(members, others)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = (larger + smaller) * np.log1p(smaller / larger) + smaller * (np.log(larger) - np.log(smaller))
    entropies = np.where(smaller > 0.0, terms, 0.0).sum(axis=0)
    errors = 2.0 * (_LOGARITHM_ROUNDING + len(members) * UNIT_ROUNDOFF + _PRIOR_ROUNDING) * entropies
    error = float(errors.sum()) + 2.0 * sum(cells.shape) * UNIT_ROUNDOFF * float(entropies.sum())
    value, lower, upper = enclosure(float(entropies.sum()), error, 0.0)
    return Estimate(value, lower, upper, kind="certified", unit="nats", method="sum over releases")


def _widened(estimate: Estimate, error: float) -> Estimate:
    """The estimate with bounds that also hold for what the probabilities and the distortions were before rounding."""
    value, lower, upper = estimate.floats()
    error += _PRIOR_ROUNDING * (1.0 + abs(value))
    lower, upper = max(next_below(lower - error), 0.0), next_above(upper + error)
    return replace(estimate, value=max(value, 0.0), lower=lower, upper=upper)
