"""Releases of frequencies of the members: the model of a release given who is a member.

Notation: panel D (K, m), membership b in {0, 1}^K of n = |b| >= 1 members, f(b) = D^T b / n, and r = f(b) + noise, or
clip(f(b) + noise, 0, 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...base import random_streams, validate
from ...base.errors import DomainError, ShapeError
from ...base.estimate import Estimate, exact
from ...base.numerics import FloatArray
from ...base.random_streams import RNGLike
from ...base.values import ValueObject
from .noises import GaussianNoise, Noise, NoNoise
from .panels import Panel, membership_array, released_array
from .priors import FixedSizeMembership, MembershipPrior


class SimulatedReleases(NamedTuple):
    """Memberships drawn from the prior, and a release of each.

    Parameters
    ----------
    membership : ndarray of bool, shape (count, K)
        Who is a member.
    released : ndarray, shape (count, m), or list of them
        What is released; of ``CombinedReleases`` one array a release.

    Examples
    --------
    >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, Panel
    >>> simulated = FrequencyRelease(Panel([[1, 0], [1, 1]]), FixedSizeMembership(1)).simulate(5, rng=1)
    >>> simulated.membership.shape, simulated.released.shape
    ((5, 2), (5, 2))
    """

    membership: NDArray[np.bool_]
    released: Any


class FrequencyRelease(ValueObject):
    """The release of the frequencies of the members, with noise.

    Parameters
    ----------
    panel : Panel
        The people who may be members, and their attributes.
    prior : BernoulliMembership or FixedSizeMembership
        Who is a member.
    noise : NoNoise, GaussianNoise, LaplaceNoise, LInfinityNoise or GeneratorNoise, optional
        What is added to each frequency; none by default.
    clip : bool, default False
        Whether entries below 0 are released as 0, and above 1 as 1.
    attributes : sequence, optional
        The attributes whose frequencies are released, as for ``Panel.select``; None for all.

    Attributes
    ----------
    panel : Panel
        The people with the attributes that are released.
    n_people, n_attributes : int
        K and m.
    adjacency : str
        Which memberships are neighbours in statements of privacy: ``"swap"`` of one member for one who is none if the
        number of members is fixed, ``"add/remove"`` of a member otherwise.

    Raises
    ------
    DomainError, ShapeError
        For arguments of other types, a prior or a noise that does not fit the number of people, and what
        ``Panel.select`` raises.

    Notes
    -----
    **Accuracy**: likelihoods agree with those in 60 digits within 1e-12 of their size, also far in the tails;
    tests/membership/test_releases.py.

    Examples
    --------
    >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, LaplaceNoise, Panel
    >>> panel = Panel([[1, 0, 1], [0, 0, 1], [1, 1, 0]])
    >>> release = FrequencyRelease(panel, FixedSizeMembership(2), LaplaceNoise(0.5), clip=True)
    >>> release.frequencies([True, False, True])
    array([1. , 0.5, 0.5])
    >>> release.log_likelihood([1.0, 0.25, 0.0], [True, False, True])
    array(-2.88629436)
    """

    __slots__ = _fields = ("panel", "prior", "noise", "clip")

    panel: Panel
    prior: MembershipPrior
    noise: Noise
    clip: bool

    def __init__(
        self, panel: Panel, prior: MembershipPrior, noise: Noise | None = None, *, clip: bool = False,
        attributes: Any = None,
    ) -> None:
        validate.instance("panel", panel, Panel)
        remedy = "Build a BernoulliMembership or a FixedSizeMembership."
        validate.instance("prior", prior, MembershipPrior, "a prior of membership", remedy)
        prior.marginals(panel.n_people)
        noise = NoNoise() if noise is None else noise
        validate.instance(
            "noise", noise, Noise, "one of fastpriv.membership",
            "Build a GaussianNoise, LaplaceNoise, LInfinityNoise, GeneratorNoise or NoNoise.",
        )
        noise.check_people(panel.n_people)
        chosen = panel if attributes is None else panel.select(attributes=attributes)
        self._set(panel=chosen, prior=prior, noise=noise, clip=validate.flag("clip", clip))

    def __reduce__(self) -> Any:
        return partial(FrequencyRelease, clip=self.clip), (self.panel, self.prior, self.noise)

    @property
    def n_people(self) -> int:
        """Number of people K."""
        return self.panel.n_people

    @property
    def n_attributes(self) -> int:
        """Number of attributes m that are released."""
        return self.panel.n_attributes

    @property
    def adjacency(self) -> str:
        """Which memberships are neighbours: swap, or add/remove."""
        return "swap" if isinstance(self.prior, FixedSizeMembership) else "add/remove"

    def frequencies(self, b: ArrayLike) -> FloatArray:
        """f(b) = D^T b / |b|: the frequencies of the members, rounded to nearest.

        Parameters
        ----------
        b : array_like of bool, shape (..., K)
            Memberships with at least one member.

        Returns
        -------
        ndarray, shape (..., m)
        """
        return self._frequencies_and_sizes(b)[0]

    def _frequencies_and_sizes(self, b: ArrayLike) -> tuple[FloatArray, NDArray[np.int64]]:
        members = membership_array("b", b, self.n_people)
        sizes = members.sum(axis=-1, dtype=np.int64)
        if not np.all(sizes):
            raise DomainError(
                f"b must have at least one member; got none in {int(np.sum(sizes == 0))} of {sizes.size} memberships. "
                "There are no frequencies of nobody."
            )
        flat = members.reshape(-1, self.n_people)
        counts = self.panel.counts(flat).reshape(*members.shape[:-1], self.n_attributes)
        return np.asarray(counts / sizes[..., None]), sizes

    def simulate(self, count: int, *, rng: RNGLike = None) -> SimulatedReleases:
        """Draw memberships from the prior, and a release of each.

        Parameters
        ----------
        count : int
            Number of releases.
        rng : int, Generator or None
            Source of random numbers.

        Examples
        --------
        >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, Panel
        >>> simulated = FrequencyRelease(Panel([[1, 0], [1, 1]]), FixedSizeMembership(2)).simulate(1, rng=1)
        >>> simulated.released
        array([[1. , 0.5]])
        """
        random = random_streams.generator(rng)
        membership = self.prior.draw(count, self.n_people, random)
        return SimulatedReleases(membership, self.release(membership, rng=random))

    def release(self, b: ArrayLike, *, rng: RNGLike = None) -> FloatArray:
        """A release of each membership of shape (..., K), shape (..., m), with fresh noise.

        Examples
        --------
        >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, Panel
        >>> FrequencyRelease(Panel([[1, 0], [1, 1]]), FixedSizeMembership(1)).release([False, True])
        array([1., 1.])
        """
        frequencies, _ = self._frequencies_and_sizes(b)
        flat = membership_array("b", b, self.n_people).reshape(-1, self.n_people)
        noise = self.noise.draw(flat, self.n_attributes, random_streams.generator(rng)).reshape(frequencies.shape)
        noise += frequencies
        return np.clip(noise, 0.0, 1.0, out=noise) if self.clip else noise

    def log_likelihood(self, released: ArrayLike, b: ArrayLike) -> FloatArray:
        """Log likelihood of releases given memberships.

        Parameters
        ----------
        released : array_like, shape (..., m)
            Releases; in [0, 1] where the model clips.
        b : array_like of bool, shape (..., K)
            Memberships; the axes before the last broadcast with those of ``released``.

        Returns
        -------
        ndarray
            The log density, with atoms at 0 and 1 where the model clips; without noise 0 or -inf.

        Raises
        ------
        DomainError
            For a release that is not finite, or outside of [0, 1] where the model clips; for noise of a generator and
            clipped L-infinity noise, whose likelihoods are not known.
        """
        if not self.noise.has_likelihood(self.clip):
            raise DomainError(
                f"noise must have a likelihood that is known; got {self.noise!r}{', clipped' if self.clip else ''}. "
                "Train an attacker on simulated releases instead."
            )
        result = self.checked_release(released)
        frequencies, sizes = self._frequencies_and_sizes(b)
        validate.broadcastable("released", result, "b", frequencies)
        return self.noise.log_likelihood(result, frequencies, sizes, self.clip)

    def checked_release(self, released: ArrayLike, name: str = "released") -> FloatArray:
        """The array of releases, shape (..., m), after a check of numbers and shape.

        Examples
        --------
        >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, Panel
        >>> FrequencyRelease(Panel([[1, 0], [1, 1]]), FixedSizeMembership(1)).checked_release([0, 1])
        array([0., 1.])
        """
        return released_array(released, self.n_attributes, name, self.clip)

    def epsilon(self, delta: float = 0.0) -> Estimate:
        """Differential privacy of the membership: the least epsilon that is proved for all panels of this size.

        Parameters
        ----------
        delta : float, default 0.0
            From 0 to below 1; more than 0 only with Gaussian noise.

        Returns
        -------
        Estimate
            In nats, for neighbours by ``adjacency``; infinite where there is none.

        Raises
        ------
        DomainError
            Where nothing is proved: a generator without dither, and scales that depend on the number of members where
            neighbours differ in it.

        Notes
        -----
        An entry changes by at most 1 / n when one of n members is swapped, and by at most 1 / (n + 1) <= 1/2 when one
        is added to n >= 1. Clipping is done to the release and proves nothing more.

        Examples
        --------
        >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, LaplaceNoise, Panel
        >>> panel = Panel([[1, 0, 1], [0, 0, 1], [1, 1, 0]])
        >>> FrequencyRelease(panel, FixedSizeMembership(2), LaplaceNoise(0.5)).epsilon().value
        3.0
        """
        level = validate.scalar("delta", delta, "at least 0 and below 1", lambda x: (x >= 0) & (x < 1))
        if isinstance(self.prior, FixedSizeMembership):
            size: int | None = self.prior.n0
            step = 1.0 / self.prior.n0 if self.prior.n0 < self.n_people else 0.0
        else:
            size, step = None, 0.5 if self.n_people > 1 else 0.0
        change = exact(step, math.ulp(step) if step else 0.0, unit="1", method="largest change of a frequency")
        return self.noise.epsilon(change, self.n_attributes, size, level)

    def __repr__(self) -> str:
        clipped = ", clipped" if self.clip else ""
        size = f"{self.n_attributes} attributes of {self.n_people} people"
        return f"<FrequencyRelease of {size}, {self.noise!r}{clipped}>"


class CombinedReleases(ValueObject):
    """Several releases of frequencies of the same members, with independent noise.

    Parameters
    ----------
    releases : sequence of FrequencyRelease
        At least one; of the same people under the same prior, of the same or of different attributes.

    Raises
    ------
    DomainError
        For an empty sequence, other objects, and releases of different people or priors.

    Examples
    --------
    >>> from fastpriv.membership import CombinedReleases, FixedSizeMembership, FrequencyRelease, GaussianNoise, Panel
    >>> panel, prior = Panel([[1, 0, 1], [0, 0, 1], [1, 1, 0]]), FixedSizeMembership(2)
    >>> once, twice = (FrequencyRelease(panel, prior, GaussianNoise(sigma)) for sigma in (0.5, 1.0))
    >>> both = CombinedReleases([once, twice])
    >>> simulated = both.simulate(4, rng=1)
    >>> both.log_likelihood(simulated.released, simulated.membership).shape
    (4,)
    """

    __slots__ = _fields = ("releases",)

    releases: tuple[FrequencyRelease, ...]

    def __init__(self, releases: Sequence[FrequencyRelease]) -> None:
        result = validate.sequence("releases", releases, "FrequencyRelease objects")
        if not result:
            raise DomainError("releases must have at least one FrequencyRelease; got none. Put a single one in a list.")
        for i, item in enumerate(result):
            validate.instance(f"releases[{i}]", item, FrequencyRelease)
            first = result[0]
            same_names = (
                first.panel.people is None
                or item.panel.people is None
                or np.array_equal(first.panel.people, item.panel.people)
            )
            if item.n_people != first.n_people or item.prior != first.prior or not same_names:
                raise DomainError(
                    f"releases must be of the same people under the same prior; got {item!r} at index {i} after "
                    f"{first!r}. Select attributes, not people, for each release."
                )
        self._set(releases=result)

    @property
    def prior(self) -> MembershipPrior:
        """Who is a member."""
        return self.releases[0].prior

    @property
    def n_people(self) -> int:
        """Number of people K."""
        return self.releases[0].n_people

    def simulate(self, count: int, *, rng: RNGLike = None) -> SimulatedReleases:
        """Draw memberships, and of each one release of every kind; ``released`` is a list of arrays (count, m_i).

        Parameters are those of ``FrequencyRelease.simulate``.
        """
        random = random_streams.generator(rng)
        membership = self.prior.draw(count, self.n_people, random)
        return SimulatedReleases(membership, [item.release(membership, rng=random) for item in self.releases])

    def log_likelihood(self, released: Sequence[ArrayLike], b: ArrayLike) -> FloatArray:
        """Sum of the log likelihoods of the releases.

        Parameters
        ----------
        released : sequence of array_like, shapes (..., m_i)
            One array for each release.
        b : array_like of bool, shape (..., K)
            Memberships.
        """
        parts = self._one_for_each(released)
        logs = [release.log_likelihood(part, b) for release, part in zip(self.releases, parts, strict=True)]
        return np.asarray(sum(logs[1:], start=logs[0]))

    def pooled(self, released: Sequence[ArrayLike]) -> tuple[FrequencyRelease, FloatArray]:
        """One Gaussian release that tells as much as all: the mean with weights 1 / sigma^2.

        Parameters
        ----------
        released : sequence of array_like, shapes (..., m)
            One array for each release.

        Returns
        -------
        release, pooled : FrequencyRelease, ndarray of shape (..., m)
            The posterior of the membership given ``pooled`` is that given all of ``released``.

        Raises
        ------
        DomainError
            If not all releases are Gaussian, of the same attributes, with one sigma each, and without clipping.

        Examples
        --------
        >>> from fastpriv.membership import CombinedReleases, FixedSizeMembership, FrequencyRelease
        >>> from fastpriv.membership import GaussianNoise, Panel
        >>> one = FrequencyRelease(Panel([[1, 0], [1, 1]]), FixedSizeMembership(1), GaussianNoise(0.5))
        >>> release, pooled = CombinedReleases([one, one]).pooled([[0.5, 0.0], [1.0, 0.5]])
        >>> release.noise, pooled
        (GaussianNoise(0.35355...), array([0.75, 0.25]))
        """
        pairs = zip(self.releases, self._one_for_each(released), strict=True)
        parts = [item.checked_release(part) for item, part in pairs]
        first, sigmas = self.releases[0], []
        for release in self.releases:
            sigma = release.noise.sigma if isinstance(release.noise, GaussianNoise) else None
            if not isinstance(sigma, float) or release.clip or release.panel != first.panel:
                raise DomainError(
                    f"releases must all be Gaussian, of one sigma each, of the same attributes and without clipping; "
                    f"got {release!r}. Use the releases together, as log_likelihood does."
                )
            sigmas.append(sigma)
        least = min(sigmas)
        weights = [(least / sigma) ** 2 for sigma in sigmas]  # at most 1, so that nothing overflows
        total = math.fsum(weights)
        mean = sum(weight / total * part for weight, part in zip(weights, parts, strict=True))
        noise = GaussianNoise(least / math.sqrt(total))
        return FrequencyRelease(first.panel, first.prior, noise), np.asarray(mean)

    def _one_for_each(self, released: Any) -> tuple[Any, ...]:
        parts = validate.sequence("released", released, "arrays, one for each release")
        if len(parts) != len(self.releases):
            raise ShapeError(
                f"released must have one array for each of {len(self.releases)} releases; got {len(parts)}. Put them "
                "in a list."
            )
        return parts

    def __repr__(self) -> str:
        return f"CombinedReleases({list(self.releases)!r})"
