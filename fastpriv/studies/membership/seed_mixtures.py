"""The posterior of a membership given the release of a generator with dither: a mixture over its seeds.

Notation: r = f(b) + g(b, nu) + y with seeds nu uniform on [0, 1)^S and dither y of density phi. Then

    p(r | b) = E_nu phi(r - f(b) - g(b, nu)),

an integral that is estimated by the mean over N seeds nu_1 ... nu_N, the same for all b. Two attackers follow. One
draws the seeds and takes the mean for the likelihood: whatever it attains, the Bayes attacker attains at least. The
other is told a list of N seeds with one among them that made the release. The list says nothing of b, and given it
p(r | b) is the mean over the list without any error, so that this attacker is the exact Bayes attacker of somebody who
knows more: nobody who knows less attains more. Both meet as N grows.

Source: this package; the second attacker has the side information W of H(b | R, W) <= H(b | R).
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ...base import parallel, random_streams, validate
from ...base.errors import DomainError
from ...base.estimate import Estimate
from ...base.numerics import BoolArray, FloatArray
from ...base.random_streams import RNGLike
from ...sampling.statistics.confidence_sequences import BoundedMean
from .member_posteriors import BayesAttacker, MembershipPosterior
from .noises import GaussianNoise, GeneratorNoise
from .panels import membership_array
from .priors import all_memberships
from .releases import FrequencyRelease, SimulatedReleases

__all__ = ["SeedMixtureAttacker", "simulate_with_seeds", "why_no_mixture"]

_MAX_PEOPLE = 16  # 65,535 memberships, each with a likelihood for every seed and release
_GROUPS = 8  # of seeds, whose posteriors differ as the error bars say
_CELLS = 2**21  # densities at a time: 16 MiB
# bound: none - standard deviations from which on squares of distances may be expanded, rounding 1e-9 of a log density
_LEAST_SIGMA = 1e-3


class SeedMixtureAttacker(BayesAttacker):
    """The Bayes attacker of a generator with dither, whose likelihood is a mean over seeds.

    Parameters
    ----------
    model : FrequencyRelease
        Of at most 16 people, with ``GeneratorNoise`` that has a dither: Gaussian where the release is clipped.
    seeds : int, default 256
        Number of seeds of the mixture, at least 8.
    confidence : float, default 0.95
        Level of the intervals.
    rng : int, Generator or None
        Source of the seeds, which are drawn once.

    Raises
    ------
    DomainError, ShapeError
        For other noise, more people, numbers outside their range, and what the release refuses.

    Notes
    -----
    The posterior has the kind ``heuristic``: Student's interval of 8 groups of seeds around the posterior of all of
    them, whose bias, of the order of 1 / seeds, it does not hold. Where the dither is far less than the noise varies
    with the seeds, few seeds are near the one that was used: then the intervals are wide, and more seeds are needed.

    **Accuracy** ``tests/membership/test_seed_mixtures.py`` compares with a generator whose integral has a closed form,
    and counts misses of the intervals of ``log_likelihood``.

    Source: the head of this module.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, GaussianNoise, GeneratorNoise, Panel
    >>> from fastpriv.membership import SeedMixtureAttacker
    >>> noise = GeneratorNoise(lambda b, nu: nu - 0.5, 1, GaussianNoise(0.2))
    >>> model = FrequencyRelease(Panel([[1], [1], [0]]), FixedSizeMembership(1), noise)
    >>> SeedMixtureAttacker(model, seeds=4096, rng=1).predict_proba([[0.5], [1.0]]).round(2).tolist()
    [[0.33, 0.33, 0.33], [0.5, 0.5, 0.0]]
    """

    name = "Bayes by a mixture of seeds"
    model: FrequencyRelease

    def __init__(
        self, model: FrequencyRelease, *, seeds: int = 256, confidence: float = 0.95, rng: RNGLike = None
    ) -> None:
        remark = why_no_mixture(model)
        if remark:
            raise DomainError(f"model must be a generator with dither, of few people; got {model!r}, but {remark}.")
        self.model, self.options = model, {}
        self.confidence = validate.scalar(
            "confidence", confidence, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1)
        )
        count = validate.count("seeds", seeds, _GROUPS, validate.MOST_ENTRIES)
        noise: Any = model.noise
        self.seeds = random_streams.generator(rng).random((count, noise.n_seeds))

    def posterior(self, released: Any) -> MembershipPosterior:
        """The posterior given releases, of kind ``heuristic``; without the entropy.

        Parameters
        ----------
        released : array_like, shape (..., m)
            Releases.
        """
        r = self.model.checked_release(released)
        shape = r.shape[:-1]
        members, prior = all_memberships(self.model.prior, self.model.n_people)
        groups = np.array_split(self.seeds, _GROUPS)
        each = _log_likelihoods(self.model, r.reshape(-1, r.shape[-1]), members, groups) + prior
        sizes = np.log([len(group) / len(self.seeds) for group in groups])
        whole = np.logaddexp.reduce(each + sizes[:, None, None], axis=0)
        odds = _log_odds_of_members(whole, members)
        groups_odds = np.array([_log_odds_of_members(one, members) for one in each])
        half = _half_width(groups_odds.reshape(_GROUPS, -1), self.confidence).reshape(odds.shape)
        log_odds = _heuristic(odds, odds - half, odds + half, shape, "nats")
        value, lower, upper = (special.expit(x) for x in log_odds.arrays())
        return MembershipPosterior(
            _heuristic(value, lower, upper, shape, "probability"), log_odds,
            members[whole.argmax(axis=1)].reshape(*shape, -1),
            cost={"memberships": whole.size, "seeds": len(self.seeds)},
        )  # fmt: skip

    def log_likelihood(self, released: ArrayLike, b: ArrayLike) -> Estimate:
        """log p(r | b), with an interval that holds at its level for any number of seeds.

        The mean over seeds of a density that is bounded: a lower end of -inf says that the seeds may have missed those
        that matter.

        Parameters
        ----------
        released : array_like, shape (m,)
            One release.
        b : array_like of bool, shape (K,)
            One membership.

        Examples
        --------
        >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, GaussianNoise, GeneratorNoise, Panel
        >>> from fastpriv.membership import SeedMixtureAttacker
        >>> noise = GeneratorNoise(lambda b, nu: nu - 0.5, 1, GaussianNoise(0.2))
        >>> model = FrequencyRelease(Panel([[1], [1], [0]]), FixedSizeMembership(1), noise)
        >>> found = SeedMixtureAttacker(model, seeds=4096, rng=1).log_likelihood([0.5], [False, False, True])
        >>> found.kind, round(found.value, 1), found.lower < found.value < found.upper
        ('statistical', -0.7, True)
        """
        r = self.model.checked_release(released).reshape(1, -1)
        member = membership_array("b", b, self.model.n_people).reshape(1, -1)
        logs = _seed_logs(self.model, r, member[0], self.seeds)[0]
        noise: Any = self.model.noise
        # the dither is densest at its centre, and a clipped entry has at most probability 1
        size = np.array([int(member.sum())])
        inside = r if not self.model.clip else r[:, (r[0] > 0.0) & (r[0] < 1.0)]
        most = float(noise.dither.log_likelihood(inside, inside, size, False)[0]) if inside.size else 0.0
        mean = BoundedMean()
        mean.update(np.exp(np.minimum(logs - most, 0.0)))
        _, lower, upper = mean.interval(self.confidence)
        value = float(np.logaddexp.reduce(logs) - math.log(len(logs)))
        ends = (math.log(x) + most if x > 0 else -math.inf for x in (float(lower), float(upper)))
        low, high = ends
        return Estimate(
            value, min(low, value), max(high, value), kind="statistical", unit="nats", method="mean over seeds, bets",
            confidence=self.confidence,
        )  # fmt: skip

    def scores_of_known_seeds(self, released: FloatArray, used: FloatArray) -> FloatArray:
        """Posterior log odds of the attacker who is told a list of seeds, with the one that was used among them.

        Parameters
        ----------
        released : array_like, shape (n, m)
            Releases.
        used : array_like, shape (n, S)
            The seeds that made them; the others of each list are those of this object.
        """
        r = self.model.checked_release(released)
        members, prior = all_memberships(self.model.prior, self.model.n_people)
        logs = _log_likelihoods(self.model, r, members, [self.seeds[1:]])[0] + math.log(len(self.seeds) - 1)
        noise: Any = self.model.noise
        frequencies, sizes = self.model.frequencies(members), members.sum(axis=1)
        for i, member in enumerate(members):
            means = frequencies[i] + noise.function(np.broadcast_to(member, (len(r), len(member))), used)
            each = noise.dither.log_likelihood(r, means, np.full(len(r), sizes[i]), self.model.clip)
            logs[:, i] = np.logaddexp(logs[:, i], each)
        return _log_odds_of_members(logs + prior, members)


def why_no_mixture(model: Any) -> str:
    """Why the posterior of a release is no mixture over seeds that can be enumerated; empty if it is."""
    validate.instance("model", model, FrequencyRelease)
    if not isinstance(model.noise, GeneratorNoise):
        return "the noise is not that of a generator"
    if model.noise.dither is None:
        return "a generator without dither has no likelihood, and no differential privacy"
    if model.clip and not isinstance(model.noise.dither, GaussianNoise):
        return "no mixture of seeds where the dither is clipped and not Gaussian"
    if model.n_people > _MAX_PEOPLE:
        return f"a mixture of seeds over {model.n_people} people takes too long"
    return ""


def simulate_with_seeds(model: FrequencyRelease, count: int, rng: Any) -> tuple[SimulatedReleases, FloatArray]:
    """What ``model.simulate`` gives, of a generator, and the seeds that made each release."""
    noise: Any = model.noise
    state = copy.deepcopy(rng)
    simulated = model.simulate(count, rng=rng)
    model.prior.draw(count, model.n_people, state)
    return simulated, np.asarray(state.random((count, noise.n_seeds)))


def _log_likelihoods(
    model: FrequencyRelease, r: FloatArray, members: BoolArray, groups: list[FloatArray]
) -> FloatArray:
    """log of the mean density over each group of seeds, shape (groups, releases, memberships)."""
    found = np.empty((len(groups), len(r), len(members)))
    seeds = np.concatenate(groups)
    ends = np.cumsum([len(group) for group in groups])
    for i, member in enumerate(members):
        for rows in parallel.blocks(len(r), max(1, _CELLS // len(seeds))):
            logs = _seed_logs(model, r[rows], member, seeds)
            for g, (group, end) in enumerate(zip(groups, ends.tolist(), strict=True)):
                part = logs[:, end - len(group) : end]
                top = part.max(axis=1)
                with np.errstate(divide="ignore", invalid="ignore"):
                    total = np.log(np.exp(part - top[:, None]).sum(axis=1)) + (top - math.log(len(group)))
                found[g, rows, i] = np.where(np.isneginf(top), -np.inf, total)
    return found


def _log_odds_of_members(logs: FloatArray, members: BoolArray) -> FloatArray:
    """log P(b_k = 1 | r) - log P(b_k = 0 | r) of the log weights of memberships, shape (releases, K)."""
    found = np.empty((len(logs), members.shape[1]))
    for k, member in enumerate(members.T):
        yes, no = (np.logaddexp.reduce(logs[:, chosen], axis=1) for chosen in (member, ~member))
        found[:, k] = np.where(np.isneginf(yes) & np.isneginf(no), 0.0, yes - no)
    return found


def _seed_logs(model: FrequencyRelease, r: FloatArray, member: BoolArray, seeds: FloatArray) -> FloatArray:
    """log densities of releases (R, m) given one membership and each of the seeds, shape (R, seeds)."""
    noise: Any = model.noise
    f, size = model.frequencies(member), int(member.sum())
    shift = np.asarray(noise.function(np.broadcast_to(member, (len(seeds), len(member))), seeds))
    sigma = float(noise.dither.scale_of(np.array([size]))[0])
    if isinstance(noise.dither, GaussianNoise) and not model.clip and sigma >= _LEAST_SIGMA:
        away = r - f
        squares = np.square(away).sum(axis=1)[:, None] + np.square(shift).sum(axis=1)
        constant = r.shape[1] * (math.log(sigma) + 0.5 * math.log(2.0 * math.pi))
        return np.asarray((away @ shift.T - 0.5 * squares) / sigma**2 - constant)
    return np.asarray(noise.dither.log_likelihood(r[:, None, :], f + shift, np.full(len(seeds), size), model.clip))


def _half_width(groups: FloatArray, level: float) -> FloatArray:
    """Half of Student's interval of the groups; infinite where some exclude what others do not."""
    with np.errstate(invalid="ignore"):
        half = special.stdtrit(_GROUPS - 1, 0.5 + 0.5 * level) * groups.std(axis=0, ddof=1) / math.sqrt(_GROUPS)
    same = (groups == groups[0]).all(axis=0)
    return np.asarray(np.where(same, 0.0, np.where(np.isfinite(groups).all(axis=0), half, np.inf)))


def _heuristic(value: Any, lower: Any, upper: Any, shape: tuple[int, ...], unit: Any) -> Estimate:
    whole = (*shape, np.shape(value)[-1])
    value, lower, upper = (np.asarray(x).reshape(whole) for x in (value, lower, upper))
    with np.errstate(invalid="ignore"):
        lower, upper = np.where(np.isnan(lower), value, lower), np.where(np.isnan(upper), value, upper)
    return Estimate(value, lower, upper, kind="heuristic", unit=unit, method="mixture over seeds")
