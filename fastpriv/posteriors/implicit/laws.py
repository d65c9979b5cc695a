"""A domain as groups of secrets that are alike: what a release does to beliefs, in closed form.

Notation: group g holds N_g secrets, each with prior a_g and log likelihood l_g; m_g = N_g a_g its prior mass, R the
log likelihood of one reference group, tau_g = l_g - R, E = sum m_g e^tau_g the evidence over e^R, and
y_g = tau_g - log E the log ratio of posterior to prior. The prior sums to 1, so E - 1 = sum m_g (e^tau_g - 1), in which
the default group, taken as reference, does not appear: what a few exceptions among 2^200 secrets do is known to full
precision.

    KL(post||prior) = sum m e^y kappa(-y),  kappa(x) = e^x - 1 - x,
    JS(post, prior) = sum m (1 + e^y) / 2 phi(y),  phi(y) = log 2 - (entropy of the odds e^y in nats),
    entropy = log S - sum N e^x x / S,  x_g = log a_g + l_g - its largest value,  S = sum N e^x,  vulnerability = 1 / S,

sums of terms that do not cancel. Everything is computed with balls, so that bounds include all rounding (see there).
"""

# bounds: proved - the rounding of log 2 and of an atom as radii of balls; the rest chooses between two enclosures

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._values import FloatArray
from ...errors import DomainError
from ...estimate import Estimate, Kind, Unit
from .balls import Ball, log_of_count, quotient, stacked

__all__ = ["Beliefs", "Groups", "enclosed", "given_groups", "uniform_groups", "weighted_groups"]

_LN2 = 0.6931471805599453
# bound: none - sums farther from 1 are refused
_SUM_TOLERANCE = 1e-9
_RANGE = 600.0
_NEAR = 0.5


@dataclass(frozen=True, slots=True)
class Groups:
    """Secrets with a positive prior, in groups that are alike.

    Parameters
    ----------
    counts : list of int
        N_g, Python integers of any size.
    log_count, log_atom, mass : Ball, shape (g,)
        log N_g, log a_g and m_g.
    log_likelihood : ndarray, shape (g,)
        l_g, exact; -inf where the release is impossible.
    gap : float
        How far the sum of the prior is from 1, where its entries do not round to a law; they are as unsure, relative.
    """

    counts: list[int]
    log_count: Ball
    log_atom: Ball
    mass: Ball
    log_likelihood: FloatArray
    gap: float = 0.0

    def beliefs(self, reference: int = 0) -> Beliefs:
        """All quantities, with the log likelihood of this group as reference where that serves."""
        live = np.flatnonzero(self.log_likelihood > -np.inf)
        if live.size == 0:
            raise DomainError(
                "likelihood must be positive for a secret with a positive prior; got -inf for all of them. "
                "Such a release cannot happen under this prior."
            )
        return Beliefs(self, live, reference)


class Beliefs:
    """Posterior of one law by groups; ``live`` are the groups whose secrets remain possible."""

    def __init__(self, groups: Groups, live: Any, reference: int) -> None:
        self.groups, self.live = groups, live
        self.mass, self.log_mass = groups.mass[live], (groups.log_count + groups.log_atom)[live]
        logs = groups.log_likelihood[live]
        dead = np.flatnonzero(groups.log_likelihood == -np.inf)
        self.dead = groups.mass[dead].sum() if dead.size else Ball(0.0)
        self.shift = float(groups.log_likelihood[reference])
        if not np.isfinite(self.shift) or np.max(self.log_mass.mid + logs - self.shift) > _RANGE:
            self.shift = float(logs[np.argmax(self.log_mass.mid + logs)])
        with np.errstate(over="ignore", under="ignore"):
            exact = Ball(logs)
            tilt = exact + Ball(-self.shift).like(exact)
            self.scale = self._scale(tilt)
            self.ratio = tilt - self.scale.like(tilt)
            power = (self.log_mass + self.ratio).exp()
            plain = self.mass * Ball(np.minimum(self.ratio.mid, 690.0), self.ratio.rad).exp()
            self.post = _better(plain, power, (self.mass.mid > 1e-290) & (self.ratio.mid < 690.0))

    def _scale(self, tilt: Ball) -> Ball:
        """log E: by log1p of the change where that is sharper."""
        power = self.log_mass + tilt
        direct, found = power.exp(), _log_sum(power)
        growth = Ball(np.minimum(tilt.mid, 690.0), tilt.rad).expm1()
        change = _better(self.mass * growth, direct - self.mass, (self.mass.mid > 1e-290) & (tilt.mid < 690.0))
        terms = stacked([change.sum(), -self.dead])
        other = terms.sum().log1p()
        return other if other.rad < found.rad else found

    @property
    def log_evidence(self) -> Ball:
        """log Z; a prior that misses 1 by g leaves it unknown to log(1 + g)."""
        return Ball(self.shift) + self.scale + self._unsure(1.0)

    @property
    def extremes(self) -> tuple[Ball, Ball]:
        """Largest and smallest log ratio."""
        logs = self.groups.log_likelihood[self.live]
        most, least = (self.ratio[int(at)] + self._unsure(1.0) for at in (np.argmax(logs), np.argmin(logs)))
        return most, Ball(-np.inf) if len(self.live) < len(self.groups.counts) else least

    @property
    def kl(self) -> Ball:
        """KL(posterior || prior)."""
        y = self.ratio
        near = np.abs(y.mid) < _NEAR
        small = self.post * Ball(np.where(near, -y.mid, 0.0), y.rad).kappa()
        large = self.post * y - self.post + self.mass
        return _better(small, large, near).sum() + self.dead

    @property
    def js(self) -> Ball:
        """Jensen-Shannon divergence of posterior and prior."""
        y, m, v = self.ratio, self.mass, self.post
        near, up = np.abs(y.mid) < _NEAR, y.mid > 0
        small = (m + v) * Ball(np.where(near, y.mid, 0.0), y.rad).phi()
        size = Ball(np.abs(y.mid), y.rad)
        part = Ball(_LN2, 2e-17) - (-size).exp().log1p()
        large, little = _better(v, m, up), _better(m, v, up)
        terms = _better(small, large * part + little * (part - size), near)
        return (terms.sum() + self.dead * Ball(_LN2, 2e-17)).times(0.5)

    @property
    def concentration(self) -> tuple[Ball, Ball, int]:
        """Entropy, log S = -log vulnerability, and how many secrets are as probable as the most probable one."""
        given = self.groups
        atom, count = given.log_atom[self.live], given.log_count[self.live]
        logs = Ball(given.log_likelihood[self.live])
        joint = self.log_joint[self.live]
        best = joint == joint.max()
        at = int(np.argmax(joint))
        step = _better(Ball(np.zeros(joint.shape)), atom - atom[at], atom.mid == atom.mid[at])
        x = (logs - logs[at]) + step
        ties = sum(given.counts[int(i)] for i in self.live[best])
        power = count + x
        top = float(power.mid.max())
        if top > _RANGE:
            scale = _log_sum(power)
        else:
            many = log_of_count(ties)
            excess = (count[best].exp() * x[best].expm1()).sum() + power[~best].exp().sum()
            scale = many + (excess * (-many).exp()).log1p()
        weight = (power - scale.like(power)).exp()
        return scale - (weight * x).sum(), scale, ties

    @property
    def log_joint(self) -> FloatArray:
        """Log prior plus log likelihood of one secret of each group, up to one constant; rounded."""
        atom = self.groups.log_atom.mid
        return np.asarray((atom - atom[0]) + self.groups.log_likelihood)

    @property
    def log_posterior(self) -> FloatArray:
        """Log posterior of one secret of each group."""
        found = np.full(len(self.groups.counts), -np.inf)
        found[self.live] = (self.groups.log_atom[self.live] + self.ratio).mid
        return found

    def _unsure(self, factor: float) -> Ball:
        return Ball(0.0, factor * self.groups.gap * (1 + 1e-8))


def uniform_groups(counts: list[int], log_likelihood: FloatArray, size: int) -> Groups:
    """Groups under the uniform law over this many secrets."""
    log_count, distinct, place = _counted(counts)
    mass = stacked([quotient(count, size) for count in distinct])[place]
    return Groups(counts, log_count, (-log_of_count(size)).like(mass), mass, log_likelihood)


def weighted_groups(counts: list[int], atom: FloatArray, log_likelihood: FloatArray) -> Groups:
    """Groups under a prior that is given by probabilities: the law that sums to 1 and rounds to these."""
    log_count, _, _ = _counted(counts)
    each = Ball(atom, 2.0**-52 * atom)
    return _summing(counts, log_count, each.log(), each * Ball([float(count) for count in counts]), log_likelihood)


def given_groups(counts: list[int], log_atom: FloatArray, log_likelihood: FloatArray) -> Groups:
    """Groups under a prior that is given by logarithms: the law that sums to 1 and rounds to these."""
    atom = Ball(log_atom, 2.0**-52 * (np.abs(log_atom) + 1))
    log_count, _, _ = _counted(counts)
    return _summing(counts, log_count, atom, (log_count + atom).exp(), log_likelihood)


def _summing(counts: list[int], log_count: Ball, log_atom: Ball, mass: Ball, log_likelihood: FloatArray) -> Groups:
    """A gap that rounding each entry does not explain is a relative slip of all, see ``_validate``."""
    total = mass.sum()
    gap = abs(float(total.mid) - 1.0)
    if not gap <= _SUM_TOLERANCE:
        raise DomainError(
            f"prior must sum to 1 within {_SUM_TOLERANCE}; got {float(total.mid)!r}. Normalise it; a DefaultLikelihood "
            "as a prior holds logarithms."
        )
    if gap <= 2 * float(total.rad):
        return Groups(counts, log_count, log_atom, mass, log_likelihood)
    slip = 1.1 * gap
    log_atom, mass = Ball(log_atom.mid, log_atom.rad + slip), Ball(mass.mid, mass.rad + slip * mass.mid)
    return Groups(counts, log_count, log_atom, mass, log_likelihood, gap)


def enclosed(ball: Ball, unit: Unit, method: str, *, low: float = -np.inf, high: float = np.inf,
             kind: Kind = "exact") -> Estimate:  # fmt: skip
    """An Estimate of a scalar ball, cut to the range that the quantity has."""
    value, lower, upper = (float(np.clip(x, low, high)) for x in (ball.mid, ball.lower, ball.upper))
    return Estimate(value, lower, upper, kind=kind, unit=unit, method=method)


def _counted(counts: list[int]) -> tuple[Ball, list[int], Any]:
    """Logarithms of the counts, the different ones among them, and which one each is."""
    distinct = sorted(set(counts))
    rank = {count: place for place, count in enumerate(distinct)}
    place = np.array([rank[count] for count in counts])
    return stacked([log_of_count(count) for count in distinct])[place], distinct, place


def _log_sum(power: Ball) -> Ball:
    top = float(power.mid.max())
    return Ball(top) + (power + Ball(-top).like(power)).exp().sum().log()


def _better(one: Ball, two: Ball, first: Any) -> Ball:
    """Entry by entry one or the other."""
    return Ball(np.where(first, one.mid, two.mid), np.where(first, one.rad, two.rad))
