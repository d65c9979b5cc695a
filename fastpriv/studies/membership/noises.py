"""Noise that is added to the frequencies of the members, and the likelihood of what is released.

Notation: frequencies f in [0, 1]^m of n members, noise y in R^m, and r = f + y, or r = clip(f + y, 0, 1). A clipped
release is censored: an entry 0 says f + y <= 0, an entry 1 says f + y >= 1, others are as without clipping. The
likelihood is the density with respect to the Lebesgue measure, plus for clipped releases an atom at 0 and at 1 in each
entry. Scales may depend on n: an array holds those of n = 1, 2, ..., K.
"""

# bounds: proved - rounding of the few operations of a closed form, moved outward

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import special
from ...base import validate
from ...base.errors import DomainError, ShapeError
from ...base.estimate import Estimate, exact
from ...base.numerics import LOG_2, UNIT_ROUNDOFF, FloatArray, IntArray, doubles_around, next_above, next_below
from ...base.values import ValueObject
from ...mechanisms.gaussian import GaussianMechanism

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)  # log normaliser of the standard normal density
# bound: none - distance up to which a release without noise equals frequencies; those of different counts of up to K
#    members differ by at least 1 / K^2, and equal ones by the rounding of doubles
_SAME_FREQUENCY = 1e-12
# bound: none - the largest noise of a generator, which is part of its statement of privacy
GENERATOR_RANGE = 0.5  # the noise lies within +- this, as the release does not lie farther than 1 from any frequency


class Noise(ValueObject):
    """Base of the noises."""

    __slots__ = ()

    def draw(self, membership: NDArray[np.bool_], n_attributes: int, rng: Any) -> FloatArray:
        """Noise for memberships of shape (R, K), shape (R, m)."""
        raise NotImplementedError

    def log_likelihood(self, released: FloatArray, frequencies: FloatArray, sizes: IntArray, clip: bool) -> FloatArray:
        """Log likelihood of releases (..., m), given frequencies (..., m) of members of these sizes (...)."""
        raise NotImplementedError

    def has_likelihood(self, clip: bool) -> bool:
        """Whether the likelihood of releases, clipped or not, is known."""
        return True

    def epsilon(self, step: Estimate, n_attributes: int, size: int | None, delta: float) -> Estimate:
        """Privacy where the frequencies of neighbours differ by at most ``step`` in each entry, attained in all.

        ``size`` is that of both neighbours, None where it differs.
        """
        raise NotImplementedError

    def check_people(self, n_people: int) -> None:
        """Check that the noise is defined for all sizes up to that of the panel."""


class NoNoise(Noise):
    """No noise: the exact frequencies are released.

    Examples
    --------
    >>> from fastpriv.membership import BernoulliMembership, FrequencyRelease, NoNoise, Panel
    >>> release = FrequencyRelease(Panel([[1, 0], [1, 1]]), BernoulliMembership(0.5), NoNoise())
    >>> release.log_likelihood([1.0, 0.5], [[True, True], [True, False]])
    array([  0., -inf])
    """

    __slots__ = ()

    def draw(self, membership: NDArray[np.bool_], n_attributes: int, rng: Any) -> FloatArray:
        """Zeros."""
        return np.zeros((len(membership), n_attributes))

    def log_likelihood(self, released: FloatArray, frequencies: FloatArray, sizes: IntArray, clip: bool) -> FloatArray:
        """0 where the frequencies agree within 1e-12, -inf elsewhere: probabilities of points, not densities."""
        same = (np.abs(released - frequencies) <= _SAME_FREQUENCY).all(axis=-1)
        return np.where(same, 0.0, -np.inf)

    def epsilon(self, step: Estimate, n_attributes: int, size: int | None, delta: float) -> Estimate:
        """Infinite, unless no frequency changes."""
        return exact(math.inf if step.upper > 0 else 0.0, 0.0, unit="nats", method="no noise")

    def __repr__(self) -> str:
        return "NoNoise()"


class ScaledNoise(Noise):
    """Noise with one parameter, a number or one for each number of members."""

    __slots__ = ()

    @property
    def _parameter(self) -> float | FloatArray:
        return getattr(self, self._fields[0])  # type: ignore[no-any-return]

    def _set_parameter(self, value: ArrayLike) -> None:
        (name,) = self._fields
        result = validate.real(
            name, value, "positive and finite", lambda x: (x > 0) & (x < np.inf),
            remedy="Use NoNoise() for a release without noise.",
        )
        if result.ndim > 1 or result.size == 0:
            raise ShapeError(
                f"{name} must be one number, or one for each number of members; got shape {result.shape}. Pass a flat "
                "sequence."
            )
        self._set(**{name: float(result) if result.ndim == 0 else result})

    def scale_of(self, sizes: Any) -> FloatArray:
        """The parameter for these numbers of members, of their shape."""
        if isinstance(self._parameter, float):
            return np.full(np.shape(sizes), self._parameter)
        return np.asarray(self._parameter[np.asarray(sizes) - 1])

    def check_people(self, n_people: int) -> None:
        """Check that the noise is defined for all sizes up to that of the panel."""
        if isinstance(self._parameter, np.ndarray) and self._parameter.size != n_people:
            raise ShapeError(
                f"{self._fields[0]} must be one number, or one for each number of members from 1 to {n_people}; got "
                f"{self._parameter.size}. Pass as many as the panel has people."
            )

    def draw(self, membership: NDArray[np.bool_], n_attributes: int, rng: Any) -> FloatArray:
        """Standard noise times the scale."""
        scale = self.scale_of(membership.sum(axis=1))[:, None]
        return np.asarray(self._standard((len(membership), n_attributes), rng) * scale)

    def _standard(self, shape: tuple[int, int], rng: Any) -> FloatArray:
        raise NotImplementedError

    def _single(self, size: int | None) -> float:
        """The scale of two neighbours, of which a statement of privacy is proved."""
        if isinstance(self._parameter, float):
            return self._parameter
        if size is None:
            raise DomainError(
                f"{self._fields[0]} must be one number where neighbours differ in their number of members; got one for "
                "each number, and no privacy is proved then. Use FixedSizeMembership, or one number."
            )
        return float(self._parameter[size - 1])

    def __repr__(self) -> str:
        shown = self._parameter if isinstance(self._parameter, float) else f"<{self._parameter.size} scales>"
        return f"{type(self).__name__}({shown})"


class GaussianNoise(ScaledNoise):
    """Independent normal noise in each entry.

    Parameters
    ----------
    sigma : float or array_like, shape (K,)
        Standard deviation, positive; an array holds that of n = 1, ..., K members.

    Raises
    ------
    DomainError, ShapeError
        For what is not positive and finite, or not flat.

    Examples
    --------
    >>> from fastpriv.membership import GaussianNoise
    >>> GaussianNoise.from_epsilon_delta(1.0, 1e-5, n=100, n_attributes=64)
    GaussianNoise(0.29845...)
    """

    __slots__ = _fields = ("sigma",)

    sigma: float | FloatArray

    def __init__(self, sigma: ArrayLike) -> None:
        self._set_parameter(sigma)

    @classmethod
    def from_epsilon_delta(cls, epsilon: ArrayLike, delta: ArrayLike, n: ArrayLike, n_attributes: int) -> GaussianNoise:
        """The least noise that is (epsilon, delta)-private where one of n members is replaced.

        Parameters
        ----------
        epsilon, delta : float
            epsilon at least 0, in nats; delta strictly between 0 and 1.
        n : int or array_like of int, shape (K,)
            Number of members; an array gives noise that depends on it.
        n_attributes : int
            Number of attributes m; the l2 sensitivity is sqrt(m) / n.

        Notes
        -----
        **Accuracy**: delta at ``epsilon`` is at most ``delta``, with all roundings, and sigma exceeds the least one by
        at most 2e-13 of it; tests/membership/test_releases.py.
        """
        levels = validate.flat("epsilon", epsilon, "finite and at least 0", lambda x: (x >= 0) & np.isfinite(x))
        chances = validate.flat("delta", delta, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1))
        sensitivity = next_above(np.sqrt(np.float64(_attributes(n_attributes))) / _members(n), 2)
        return cls(GaussianMechanism.calibrated(levels, chances, sensitivity).sigma)

    def _standard(self, shape: tuple[int, int], rng: Any) -> FloatArray:
        return np.asarray(rng.standard_normal(shape))

    def log_likelihood(self, released: FloatArray, frequencies: FloatArray, sizes: IntArray, clip: bool) -> FloatArray:
        """Sum of log densities; of normal tail probabilities where an entry was clipped."""
        sigma = self.scale_of(sizes)[..., None]
        with np.errstate(over="ignore"):
            logs = -0.5 * np.square((released - frequencies) / sigma) - (np.log(sigma) + _HALF_LOG_2PI)
            if clip:
                censored, distance = _censored(released, frequencies)
                logs = np.where(censored, special.log_ndtr(-distance / sigma), logs)
            return np.asarray(logs.sum(axis=-1))

    def epsilon(self, step: Estimate, n_attributes: int, size: int | None, delta: float) -> Estimate:
        """By the exact curve of the Gaussian mechanism."""
        sigma = self._single(size)
        if step.upper == 0.0:
            return exact(0.0, 0.0, unit="nats", method="no frequency changes")
        if delta == 0.0:
            return exact(math.inf, 0.0, unit="nats", method="Gaussian noise has no pure privacy")
        root = math.sqrt(n_attributes)
        value, lower, upper = (
            GaussianMechanism(sigma, root * change).epsilon(delta)
            for change in (step.value, next_below(float(step.lower), 4), next_above(float(step.upper), 4))
        )
        return Estimate(value.value, lower.lower, upper.upper, kind="exact", unit="nats", method=value.method)


class _PureNoise(ScaledNoise):
    """Noise of pure privacy, whose loss is the change of the frequencies in one norm over the scale."""

    __slots__ = _fields = ("scale",)

    scale: float | FloatArray

    def __init__(self, scale: ArrayLike) -> None:
        self._set_parameter(scale)

    _adds_up: ClassVar[bool]  # whether the norm of the change of all frequencies is the sum of their changes

    @classmethod
    def from_epsilon(cls, epsilon: ArrayLike, n: ArrayLike, n_attributes: int) -> Self:
        """The least noise that is epsilon-private where one of n members is replaced.

        Parameters
        ----------
        epsilon : float
            Positive, in nats.
        n : int or array_like of int, shape (K,)
            Number of members; an array gives noise that depends on it.
        n_attributes : int
            Number of attributes m. The scale is m / (n epsilon) of Laplace noise, whose l1 sensitivity is m / n, and
            1 / (n epsilon) of l-infinity noise: the largest change of an entry is 1 / n.
        """
        attributes, members = _attributes(n_attributes), _members(n)
        levels = validate.flat("epsilon", epsilon, "positive and finite", lambda x: (x > 0) & (x < np.inf))
        return cls(_least_scale(attributes if cls._adds_up else 1, members, levels))

    def epsilon(self, step: Estimate, n_attributes: int, size: int | None, delta: float) -> Estimate:
        """Largest distance of the frequencies of neighbours over the scale."""
        scale = self._single(size)
        if delta > 0:
            raise DomainError(
                f"delta must be 0 for noise of pure privacy; got {delta!r}. Its epsilon holds for every delta."
            )
        value, lower, upper = ((n_attributes if self._adds_up else 1) * x / scale for x in step.floats())
        error = 4 * UNIT_ROUNDOFF * upper
        method = "largest distance of the frequencies of neighbours, over the scale"
        return Estimate(value, max(0.0, lower - error), upper + error, kind="exact", unit="nats", method=method)


class LaplaceNoise(_PureNoise):
    """Independent Laplace noise in each entry, of density exp(-|y| / scale) / (2 scale).

    Parameters
    ----------
    scale : float or array_like, shape (K,)
        Mean of |y|, positive; an array holds that of n = 1, ..., K members.

    Raises
    ------
    DomainError, ShapeError
        For what is not positive and finite, or not flat.

    Examples
    --------
    >>> from fastpriv.membership import LaplaceNoise
    >>> LaplaceNoise.from_epsilon(1.0, n=100, n_attributes=50)
    LaplaceNoise(0.5)
    """

    __slots__ = ()

    _adds_up = True

    def _standard(self, shape: tuple[int, int], rng: Any) -> FloatArray:
        return np.asarray(rng.laplace(size=shape))

    def log_likelihood(self, released: FloatArray, frequencies: FloatArray, sizes: IntArray, clip: bool) -> FloatArray:
        """Sum of log densities; an entry that was clipped lacks the factor 1 / scale."""
        scale = self.scale_of(sizes)[..., None]
        normaliser = np.log(scale)
        if clip:
            normaliser = np.where(_censored(released, frequencies)[0], 0.0, normaliser)
        with np.errstate(over="ignore"):  # to -inf
            return np.asarray((-np.abs(released - frequencies) / scale - LOG_2 - normaliser).sum(axis=-1))


class LInfinityNoise(_PureNoise):
    """Noise of density proportional to exp(-max |y_j| / scale): pure privacy with less noise than Laplace's.

    Parameters
    ----------
    scale : float or array_like, shape (K,)
        Positive; an array holds that of n = 1, ..., K members. The mean of max |y_j| is m times the scale.

    Raises
    ------
    DomainError, ShapeError
        For what is not positive and finite, or not flat.

    Notes
    -----
    Source: Steinke and Ullman, Between pure and approximate differential privacy, Journal of Privacy and
    Confidentiality 7(2), 2016, section 4: y = R U with R of the gamma distribution of shape m + 1 and U uniform on
    [-1, 1]^m. Its density is exp(-max |y_j| / c) / ((2 c)^m m!).

    Examples
    --------
    >>> from fastpriv.membership import LInfinityNoise
    >>> LInfinityNoise.from_epsilon(1.0, n=100, n_attributes=50)
    LInfinityNoise(0.01)
    """

    __slots__ = ()

    _adds_up = False

    def _standard(self, shape: tuple[int, int], rng: Any) -> FloatArray:
        radius = rng.standard_gamma(shape[1] + 1, size=(shape[0], 1))
        return np.asarray(radius * rng.uniform(-1.0, 1.0, size=shape))

    def has_likelihood(self, clip: bool) -> bool:
        """Not of clipped releases."""
        return not clip

    def log_likelihood(self, released: FloatArray, frequencies: FloatArray, sizes: IntArray, clip: bool) -> FloatArray:
        """The log density."""
        scale, m = self.scale_of(sizes), released.shape[-1]
        with np.errstate(over="ignore"):
            distance = np.abs(released - frequencies).max(axis=-1)
            return np.array(-distance / scale - (m * (np.log(scale) + LOG_2) + math.lgamma(m + 1)))


class GeneratorNoise(Noise):
    """Noise that a function makes of the membership and of uniform seeds, such as a trained network.

    Parameters
    ----------
    function : callable
        Takes booleans b (R, K) and seeds nu (R, n_seeds) in [0, 1), and returns noise (R, m) within +- 1/2.
    n_seeds : int
        Number of seeds of one release.
    dither : GaussianNoise, LaplaceNoise or LInfinityNoise, optional
        Noise of full dimension that is added. Without it the release lies on a surface of n_seeds dimensions that
        depends on b, and is not private in any sense of epsilon.

    Raises
    ------
    DomainError, ShapeError
        Where ``function`` is none, or returns something else.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, GeneratorNoise, Panel
    >>> noise = GeneratorNoise(lambda b, nu: np.repeat(nu - 0.5, 2, axis=1), 1)
    >>> release = FrequencyRelease(Panel([[1, 0], [1, 1]]), FixedSizeMembership(1), noise)
    >>> release.simulate(3, rng=1).released.shape
    (3, 2)
    """

    __slots__ = _fields = ("function", "n_seeds", "dither")

    function: Callable[[NDArray[np.bool_], FloatArray], Any]
    n_seeds: int
    dither: Noise | None

    def __init__(
        self, function: Callable[[NDArray[np.bool_], FloatArray], Any], n_seeds: int, dither: Noise | None = None
    ) -> None:
        if not callable(function):
            raise DomainError(
                f"function must be a function of memberships and seeds; got {validate.shown(function)}. It returns "
                "the noise of each release."
            )
        description, remedy = "Gaussian, Laplace or l-infinity noise, or None", "It has to have full dimension."
        validate.instance("dither", dither, (ScaledNoise, type(None)), description, remedy)
        self._set(function=function, n_seeds=validate.count("n_seeds", n_seeds), dither=dither)

    def check_people(self, n_people: int) -> None:
        """Check the dither."""
        if self.dither is not None:
            self.dither.check_people(n_people)

    def draw(self, membership: NDArray[np.bool_], n_attributes: int, rng: Any) -> FloatArray:
        """What the function returns for seeds that are drawn here, plus the dither."""
        seeds = rng.random((len(membership), self.n_seeds))
        noise = validate.real(
            "noise of the function", self.function(membership, seeds), "between -1/2 and 1/2",
            lambda x: np.abs(x) <= GENERATOR_RANGE, remedy="Subtract 1/2 from what a sigmoid gives.",
        )
        if noise.shape != (len(membership), n_attributes):
            raise ShapeError(
                f"function must return noise of shape {(len(membership), n_attributes)}; got shape {noise.shape}. One "
                "row a release, one column an attribute."
            )
        return noise if self.dither is None else noise + self.dither.draw(membership, n_attributes, rng)

    def has_likelihood(self, clip: bool) -> bool:
        """It would be an integral over the seeds."""
        return False

    def epsilon(self, step: Estimate, n_attributes: int, size: int | None, delta: float) -> Estimate:
        """What the dither proves, as the noise of the function moves an entry by at most 1 between neighbours."""
        if self.dither is None:
            raise DomainError(
                "noise must have full dimension for a statement of privacy; got a generator without dither, whose "
                "epsilon is infinite. Give it a dither."
            )
        most = next_above(float(step.upper) + 2 * GENERATOR_RANGE)
        widest = Estimate(most, most, most, kind="exact", unit="1", method="bound")
        result = self.dither.epsilon(widest, n_attributes, size, delta)
        method = f"dither, with the range of the generator: {result.method}"
        return Estimate(result.upper, 0.0, result.upper, kind="certified", unit="nats", method=method)

    def __repr__(self) -> str:
        return f"<GeneratorNoise of {self.n_seeds} seeds, dither {self.dither!r}>"


def _censored(released: FloatArray, frequencies: FloatArray) -> tuple[NDArray[np.bool_], FloatArray]:
    """Which entries were clipped, and how far the noise had to move them at least."""
    zero, item = released == 0.0, released == 1.0
    return zero | item, np.where(zero, frequencies, 1.0 - frequencies)


def _least_scale(sensitivity: int, n: FloatArray, epsilon: FloatArray) -> FloatArray:
    """sensitivity / (n epsilon), rounded up."""
    def scale(number: float, level: float) -> float:
        try:
            return doubles_around(sensitivity / (Fraction(number) * Fraction(level)))[1]
        except OverflowError:
            return math.inf

    return np.asarray(np.vectorize(scale, otypes=[float])(n, epsilon))


def _members(n: Any) -> FloatArray:
    return np.asarray(validate.integers("n", n, 1, remedy="There is at least one member.").astype(np.float64))


def _attributes(n_attributes: Any) -> int:
    return validate.count("n_attributes", n_attributes, 1, validate.MOST_ENTRIES)
