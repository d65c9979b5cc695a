"""The Gaussian mechanism: value + N(0, sigma^2 I) noise.

Notation: ``s`` is the l2 sensitivity, the largest distance between the values of two neighbouring secrets (for
vectors of at most length sqrt(d) Delta it is 2 sqrt(d) Delta), and r = s / (2 sigma). With the standard normal
distribution function Phi, the mechanism is (epsilon, delta)-private exactly when

    delta >= Phi(r - epsilon/(2r)) - e^epsilon Phi(-r - epsilon/(2r)),          epsilon >= 0.

Source: B. Balle and Y.-X. Wang, Improving the Gaussian mechanism for differential privacy, ICML 2018, theorem 8.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .. import special
from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate, NumberLike, Unit, with_negative_levels
from ..base.monotone import monotone
from ..base.numerics import LARGEST_DOUBLE, FloatArray, next_above, next_below
from ..base.values import ValueObject
from ..distributions import GaussianMixture, MixtureStack, Pmf, PmfStack
from ..kernels import _gaussian_mechanism

# bound: proved - relative error of delta and log delta where r or epsilon is extreme: theorem 1.6 of
#    docs/proofs/gaussian.md
_EXTREME_ERROR = 9e-15  # of the ufuncs gaussian_delta and gaussian_log_delta
_KERNEL_CALL_SIZE = 2**21  # settings of one call of the kernel, which then lasts less than 0.2 s
_SOURCE = "(Balle and Wang 2018, theorem 8)"  # the end of ``method`` of all estimates here


class GaussianMechanism(ValueObject):
    """Adds normal noise of standard deviation ``sigma`` to a value of l2 sensitivity ``sensitivity``.

    Parameters
    ----------
    sigma : array_like
        Standard deviation of the noise in every coordinate, positive and finite, in the unit of the value.
    sensitivity : array_like, optional
        l2 sensitivity in the same unit, at least 0 and finite. None for a mechanism that is only used with a prior
        (``conditional_distribution`` and ``output_distribution``); its privacy curve then raises.

    Both may be arrays; every method broadcasts them with its own argument.

    Raises
    ------
    DomainError, ShapeError
        For NaN, infinite, non-positive sigma, or negative sensitivity; for shapes that do not broadcast.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism
    >>> mechanism = GaussianMechanism(sigma=2.0, sensitivity=1.0)
    >>> round(mechanism.delta(1.0).value, 12)
    0.006829594983
    >>> round(mechanism.epsilon(1e-5).value, 9)
    1.993091404
    """

    __slots__ = ("sensitivity", "sigma")
    _fields = ("sigma", "sensitivity")

    sigma: float | FloatArray
    sensitivity: float | FloatArray | None

    def __init__(self, sigma: ArrayLike, sensitivity: ArrayLike | None = None) -> None:
        noise = validate.real(
            "sigma", sigma, "positive and finite", lambda x: (x > 0) & (x < np.inf),
            remedy="Pass the standard deviation of the noise; without noise there is no privacy curve.",
        )
        span = None
        if sensitivity is not None:
            at_least_0 = "at least 0 and finite"
            span = validate.real("sensitivity", sensitivity, at_least_0, lambda x: (x >= 0) & (x < np.inf))
            validate.broadcastable("sigma", noise, "sensitivity", span)
        self._set(sigma=_float_or_copy(noise), sensitivity=None if span is None else _float_or_copy(span))

    @classmethod
    @monotone(falling="epsilon delta", rising="sensitivity", safe=True)
    def calibrated(cls, epsilon: NumberLike, delta: NumberLike, sensitivity: NumberLike) -> GaussianMechanism:
        """The mechanism of least noise that is (epsilon, delta)-private, on the safe side of rounding.

        Parameters
        ----------
        epsilon, delta, sensitivity : array_like or Estimate
            epsilon at least 0 and finite, in nats; delta strictly between 0 and 1; l2 sensitivity positive and finite.
            Others, and a noise that is not a finite positive double, raise ``DomainError``.

        Notes
        -----
        **Accuracy**: the true delta at ``epsilon`` is at most ``delta``, and sigma exceeds the least one by at most a
        relative 1e-13; tests/kernels/test_gaussian_inverse.py checks both in ball arithmetic.

        Examples
        --------
        >>> from fastpriv import GaussianMechanism
        >>> round(GaussianMechanism.calibrated(epsilon=1.0, delta=1e-5, sensitivity=1.0).sigma, 9)
        3.730631635
        """
        target = validate.real(
            "delta", delta, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1),
            remedy="delta = 0 needs infinite noise, delta = 1 needs none.",
        )
        return cls._of_least_noise(special.gaussian_noise, epsilon, "delta", target, sensitivity)

    @classmethod
    @monotone(falling="epsilon log_delta", rising="sensitivity", safe=True)
    def calibrated_from_log_delta(
        cls, epsilon: NumberLike, log_delta: NumberLike, sensitivity: NumberLike
    ) -> GaussianMechanism:
        """As ``calibrated``, from the natural logarithm of delta: a finite number below 0.

        sigma exceeds the least one by at most a relative 1e-13 + 5e-15 |log_delta|.

        Examples
        --------
        >>> from fastpriv import GaussianMechanism
        >>> round(GaussianMechanism.calibrated_from_log_delta(1.0, -2302.585, 1.0).sigma, 6)
        67.668627
        """
        target = validate.real(
            "log_delta", log_delta, "finite and below 0", lambda x: (x > -np.inf) & (x < 0),
            remedy="Pass the natural logarithm of a delta strictly between 0 and 1.",
        )
        return cls._of_least_noise(special.gaussian_noise_from_log_delta, epsilon, "log_delta", target, sensitivity)

    @classmethod
    def _of_least_noise(
        cls, noise: np.ufunc, epsilon: ArrayLike, name: str, target: FloatArray, sensitivity: ArrayLike
    ) -> GaussianMechanism:
        level = validate.real("epsilon", epsilon, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf))
        span = validate.real("sensitivity", sensitivity, "positive and finite", lambda x: (x > 0) & (x < np.inf))
        validate.broadcastable("epsilon", level, name, target)
        ratio = np.asarray(noise(level, target))
        validate.broadcastable("sensitivity", span, "epsilon and " + name, ratio)
        with np.errstate(over="ignore"):
            sigma = np.nextafter(ratio * span, np.inf)  # the product may have been rounded down
        validate.real(
            "epsilon", np.where(np.isfinite(sigma), 0.0, np.broadcast_to(level, sigma.shape)),
            "large enough for a finite sigma", lambda x: np.isfinite(sigma),
            remedy=f"Raise epsilon or {name}: the noise needed exceeds the largest double.",
        )
        return cls(sigma, span)

    @monotone(falling="epsilon")
    def delta(self, epsilon: NumberLike) -> Estimate:
        """Smallest delta for which the mechanism is (epsilon, delta)-private: the exact privacy curve.

        Parameters
        ----------
        epsilon : array_like or Estimate
            In nats, of either sign; inf is allowed and gives 0. NaN and a mechanism without sensitivity raise
            ``DomainError``, shapes that do not broadcast ``ShapeError``.

        Returns
        -------
        Estimate
            Kind ``exact``, unit ``probability``. The bounds hold the rounding of r = sensitivity / (2 sigma) and of
            the formula. A guarantee quotes ``upper``.

        Notes
        -----
        **Accuracy**: 4e-15 relative for the formula (tests/kernels/test_gaussian_mechanism.py); below 1e-1000 use
        ``log_delta``.

        Examples
        --------
        >>> from fastpriv import GaussianMechanism
        >>> e = GaussianMechanism(sigma=1.0, sensitivity=1.0).delta([0.0, 1.0])
        >>> e.value
        array([0.38292492, 0.12693674])
        """
        return self._privacy_curve(epsilon, False, "probability")

    @monotone(falling="epsilon")
    def log_delta(self, epsilon: NumberLike) -> Estimate:
        """Natural logarithm of ``delta(epsilon)``, far below the smallest double.

        Parameters, errors and bounds as in ``delta``; the unit is ``log probability``. -inf where delta is 0 or its
        logarithm is below the most negative double.

        Notes
        -----
        **Accuracy**: 4e-15 relative for the formula (tests/kernels/test_gaussian_mechanism.py).

        Examples
        --------
        >>> from fastpriv import GaussianMechanism
        >>> round(GaussianMechanism(sigma=1.0, sensitivity=1.0).log_delta(100.0).value, 9)
        -4960.254553817
        """
        return self._privacy_curve(epsilon, True, "log probability")

    @monotone(falling="delta")
    def epsilon(self, delta: NumberLike) -> Estimate:
        """Smallest epsilon for which the mechanism is (epsilon, delta)-private.

        Parameters
        ----------
        delta : array_like or Estimate
            Between 0 and 1; errors as in ``delta``.

        Returns
        -------
        Estimate
            Kind ``exact``, unit ``nats``. The safe side is ``upper``, whose true delta is at most the given one;
            ``lower`` is an epsilon at or below the true inverse. 0 where epsilon = 0 meets
            ``delta``, inf where delta = 0 (and the sensitivity is not 0): normal noise has no finite epsilon there.

        Notes
        -----
        **Accuracy**: the bounds differ by a relative 1e-13 or by what a change of 8e-14 in delta does (in 1 - delta
        above 1/2), plus the rounding of sensitivity / (2 sigma). Proved against ball arithmetic in
        tests/kernels/test_gaussian_inverse.py.

        Examples
        --------
        >>> from fastpriv import GaussianMechanism
        >>> round(GaussianMechanism(sigma=4.0, sensitivity=1.0).epsilon(1e-6).value, 9)
        1.060701862
        """
        target = validate.real("delta", delta, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
        return self._inverse("delta", target, special.gaussian_epsilon, special.gaussian_epsilon_below)

    @monotone(falling="log_delta")
    def epsilon_from_log_delta(self, log_delta: NumberLike) -> Estimate:
        """As ``epsilon``, from the natural logarithm of delta: at most 0, -inf allowed.

        Examples
        --------
        >>> from fastpriv import GaussianMechanism
        >>> round(GaussianMechanism(sigma=4.0, sensitivity=1.0).epsilon_from_log_delta(-2302.585).value, 6)
        16.956989
        """
        target = validate.real("log_delta", log_delta, "at most 0", lambda x: x <= 0)
        above, below = special.gaussian_epsilon_from_log_delta, special.gaussian_epsilon_below_from_log_delta
        return self._inverse("log_delta", target, above, below)

    def conditional_distribution(self, x: ArrayLike) -> GaussianMixture | MixtureStack:
        """Distribution of the output when the secret is ``x``: N(x, sigma^2); a stack for arrays, which broadcast."""
        centre = validate.real("x", x, "at most 1e300 in size", lambda x: np.abs(x) <= 1e300)
        if centre.ndim == 0 and np.ndim(self.sigma) == 0:
            return GaussianMixture.single(float(centre), float(self.sigma))
        validate.broadcastable("x", centre, "sigma", np.asarray(self.sigma))
        return MixtureStack([1.0], centre[..., None], np.asarray(self.sigma)[..., None])

    def output_distribution(self, prior: Pmf | PmfStack) -> GaussianMixture | MixtureStack:
        """Distribution of the output when the secret is drawn from ``prior``; a stack for a stack or several sigmas."""
        if not isinstance(prior, PmfStack):
            validate.instance("prior", prior, Pmf)
            if np.ndim(self.sigma) == 0:
                return prior.through_gaussian(float(self.sigma))
            prior = PmfStack(prior.values, prior.probabilities)
        return prior.through_gaussian(self.sigma)

    def _arrays_of_curve(self) -> tuple[FloatArray, FloatArray, tuple[int, ...]]:
        """sigma, the sensitivity, which must be given, and the shape of both together."""
        if self.sensitivity is None:
            raise DomainError(
                "sensitivity must be given for the privacy curve; got None. "
                "Pass GaussianMechanism(sigma, sensitivity=...)."
            )
        sigma, span = np.asarray(self.sigma), np.asarray(self.sensitivity)
        return sigma, span, np.broadcast_shapes(sigma.shape, span.shape)

    def _ratio(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """r = sensitivity / (2 sigma), rounded, and doubles on either side of it."""
        sigma, span, _ = self._arrays_of_curve()
        with np.errstate(over="ignore", under="ignore"):  # halved last, for subnormal sensitivities
            r = np.asarray(0.5 * (span / sigma))
        # bound: proved - where products of r and c underflow: theorem 1.6 of docs/proofs/gaussian.md
        low, high = next_below(r - 8e-323), next_above(r + 8e-323)
        return r, np.where((span == 0.0) | (low < 8e-323), 0.0, low), np.where(span == 0.0, 0.0, high)

    def _privacy_curve(self, epsilon: ArrayLike, log: bool, unit: Unit) -> Estimate:
        """The curve by one call of the kernel; what it marks as extreme is computed again by ``_extreme_curve``.

        Exchanging both distributions changes nothing, so that one curve serves negative levels too.
        """
        level = validate.array("epsilon", epsilon)
        if level.dtype != np.float64 or self.sensitivity is None:
            level = validate.real("epsilon", epsilon, "a number", lambda x: x == x)
        sigma, span, own_shape = self._arrays_of_curve()
        validate.broadcastable("epsilon", level, "sigma and sensitivity", np.broadcast_to(0.0, own_shape))
        shape = np.broadcast_shapes(level.shape, own_shape)
        arrays = [x if x.size == 1 else np.broadcast_to(x, shape) for x in (level, sigma, span)]
        columns = [np.ascontiguousarray(x.reshape(-1)) for x in arrays]  # one number for all settings, or one each
        out = np.empty((3, math.prod(shape)))
        extreme = 0
        for start in range(0, out.shape[1], _KERNEL_CALL_SIZE):
            part = slice(start, start + _KERNEL_CALL_SIZE)
            extreme += _gaussian_mechanism.delta_bounds(
                *(x if x.size == 1 else x[part] for x in columns), *out[:, part], log
            )
        if extreme:
            whole = validate.real("epsilon", epsilon, "a number", lambda x: x == x)
            if (whole < 0.0).any():
                return with_negative_levels(whole, *2 * (lambda x: self._privacy_curve(x, log, unit),), log=log)
            marked = np.flatnonzero(np.isnan(out[1]))
            level, sigma, span = (x[0] if x.size == 1 else x[marked] for x in columns)
            for row, numbers in zip(out, GaussianMechanism(sigma, span)._extreme_curve(level, log), strict=True):
                row[marked] = numbers
        return Estimate._of_arrays(
            *(row.reshape(shape) for row in out), kind="exact", unit=unit, method=f"closed form {_SOURCE}"
        )

    def _extreme_curve(self, epsilon: ArrayLike, log: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Value and bounds of delta or its log, from the formula at r and at doubles beside it.

        Bounds are moved outward by the relative error of the formula and by three steps, for subnormal results and for
        the rounding of that product.
        """
        level = validate.real("epsilon", epsilon, "a number", lambda x: x == x)
        curve = special.gaussian_log_delta if log else special.gaussian_delta
        value, low, high = (np.asarray(curve(r, level)) for r in self._ratio())
        zero = np.asarray((np.asarray(self.sensitivity) == 0.0) | np.isposinf(level))  # where delta is exactly 0
        if not log:
            down, up = next_below(low * (1 - _EXTREME_ERROR), 3), next_above(high * (1 + _EXTREME_ERROR), 3)
            exact = (high == 0.0) & (low == 0.0) & zero
            return value, np.clip(down, 0.0, 1.0), np.where(exact, 0.0, np.clip(up, 0.0, 1.0))
        with np.errstate(invalid="ignore", over="ignore"):
            down, up = next_below(low * (1 + _EXTREME_ERROR), 3), next_above(high * (1 - _EXTREME_ERROR), 3)
        upper = np.where(np.isneginf(high), np.where(zero, -np.inf, -LARGEST_DOUBLE), np.minimum(up, 0.0))
        return value, np.minimum(np.where(np.isneginf(low), low, down), 0.0), upper

    def _inverse(self, name: str, target: FloatArray, above: np.ufunc, below: np.ufunc) -> Estimate:
        r, low, high = self._ratio()
        validate.broadcastable(name, target, "sigma and sensitivity", r)
        upper = np.asarray(above(high, target))
        infinite = "; inf where delta = 0: normal noise has no finite epsilon there" if np.isposinf(upper).any() else ""
        lower = np.minimum(below(low, target), upper)
        with np.errstate(invalid="ignore"):
            value = np.where(np.isinf(upper), upper, np.clip(lower + 0.5 * (upper - lower), lower, upper))
        method = f"safeguarded Newton on the closed form{infinite} {_SOURCE}"
        return Estimate(value, lower, upper, kind="exact", unit="nats", method=method)

    def __repr__(self) -> str:
        return f"GaussianMechanism(sigma={self.sigma!r}, sensitivity={self.sensitivity!r})"


def _float_or_copy(array: FloatArray) -> float | FloatArray:
    return float(array) if array.ndim == 0 else np.array(array)
