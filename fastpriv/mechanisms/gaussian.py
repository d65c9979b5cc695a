"""The Gaussian mechanism: value + N(0, sigma^2 I) noise.

Notation: ``s`` is the l2 sensitivity, the largest distance between the values of two neighbouring secrets (for
vectors of at most length sqrt(d) Delta it is 2 sqrt(d) Delta), and r = s / (2 sigma). With the standard normal
distribution function Phi, the mechanism is (epsilon, delta)-private exactly when

    delta >= Phi(r - epsilon/(2r)) - e^epsilon Phi(-r - epsilon/(2r)),          epsilon >= 0.

Source: B. Balle and Y.-X. Wang, Improving the Gaussian mechanism for differential privacy, ICML 2018, theorem 8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate, special
from .._estimates import monotone
from ..distributions import GaussianMixture, Pmf
from ..errors import DomainError
from ..estimate import Estimate, NumberLike, Unit
from ..kernels import _gauss

__all__ = ["GaussianMechanism"]

FloatArray = NDArray[np.float64]
_Careful = Callable[["GaussianMechanism", Any], tuple[FloatArray, FloatArray, FloatArray]]
# bound: tested by kernels/test_gaussian_mechanism, enclosures/test_gaussian_blocks - relative error of delta and
#    log delta
_RELATIVE = 4e-15  # of the ufuncs gaussian_delta and gaussian_log_delta
_CALL = 2**21  # settings of one call of the kernel
_NO_PURE = "; inf where delta = 0: normal noise has no finite epsilon there"


class GaussianMechanism:
    """Adds normal noise of standard deviation ``sigma`` to a value of l2 sensitivity ``sensitivity``.

    Parameters
    ----------
    sigma : array_like
        Standard deviation of the noise in every coordinate, positive and finite, in the unit of the value.
    sensitivity : array_like, optional
        l2 sensitivity in the same unit, at least 0 and finite. None for a mechanism that is only used with a prior
        (``law`` and ``release``); its privacy curve then raises.

    Both may be arrays; every method broadcasts them with its own argument.

    Raises
    ------
    DomainError
        For NaN, infinite, non-positive sigma, or negative sensitivity.
    ShapeError
        For shapes that do not broadcast.

    Examples
    --------
    >>> from fastpriv.mechanisms.gaussian import GaussianMechanism
    >>> mechanism = GaussianMechanism(sigma=2.0, sensitivity=1.0)
    >>> round(mechanism.delta(1.0).value, 12)
    0.006829594983
    >>> round(mechanism.epsilon(1e-5).value, 9)
    1.993091404
    """

    __slots__ = ("sensitivity", "sigma")

    sigma: Any
    sensitivity: Any

    def __init__(self, sigma: ArrayLike, sensitivity: ArrayLike | None = None) -> None:
        noise = _validate.real(
            "sigma", sigma, "positive and finite", lambda x: (x > 0) & (x < np.inf),
            remedy="Pass the standard deviation of the noise; without noise there is no privacy curve.",
        )  # fmt: skip
        object.__setattr__(self, "sigma", _frozen(noise))
        if sensitivity is None:
            object.__setattr__(self, "sensitivity", None)
            return
        span = _validate.real("sensitivity", sensitivity, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf))
        _validate.broadcastable("sigma", noise, "sensitivity", span)
        object.__setattr__(self, "sensitivity", _frozen(span))

    @classmethod
    @monotone(falling="epsilon delta", rising="sensitivity", safe=True)
    def calibrated(cls, epsilon: NumberLike, delta: NumberLike, sensitivity: NumberLike) -> GaussianMechanism:
        """The mechanism of least noise that is (epsilon, delta)-private, on the safe side of rounding.

        Parameters
        ----------
        epsilon : array_like or Estimate
            At least 0 and finite, in nats.
        delta : array_like or Estimate
            Strictly between 0 and 1.
        sensitivity : array_like or Estimate
            l2 sensitivity, positive and finite.

        Returns
        -------
        GaussianMechanism
            Its true delta at ``epsilon`` is at most ``delta``; its sigma exceeds the least one by at most a relative
            1e-13.

        Raises
        ------
        DomainError
            For arguments outside these sets, and where the noise needed is not a finite positive double.

        Notes
        -----
        **Accuracy**: tests/kernels/test_gaussian_inverse.py checks both sides of the claim in ball arithmetic.

        Examples
        --------
        >>> from fastpriv.mechanisms.gaussian import GaussianMechanism
        >>> mechanism = GaussianMechanism.calibrated(epsilon=1.0, delta=1e-5, sensitivity=1.0)
        >>> round(mechanism.sigma, 9)
        3.730631635
        """
        target = _validate.real(
            "delta", delta, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1),
            remedy="delta = 0 needs infinite noise, delta = 1 needs none.",
        )  # fmt: skip
        return cls._least(special.gaussian_noise, epsilon, "delta", target, sensitivity)

    @classmethod
    @monotone(falling="epsilon log_delta", rising="sensitivity", safe=True)
    def calibrated_from_log_delta(
        cls, epsilon: NumberLike, log_delta: NumberLike, sensitivity: NumberLike
    ) -> GaussianMechanism:
        """As ``calibrated``, from the natural logarithm of delta: a finite number below 0.

        sigma exceeds the least one by at most a relative 1e-13 + 4e-15 |log_delta|. Raises ``DomainError`` as
        ``calibrated`` does.

        Examples
        --------
        >>> from fastpriv.mechanisms.gaussian import GaussianMechanism
        >>> round(GaussianMechanism.calibrated_from_log_delta(1.0, -2302.585, 1.0).sigma, 6)
        67.668627
        """
        target = _validate.real(
            "log_delta", log_delta, "finite and below 0", lambda x: (x > -np.inf) & (x < 0),
            remedy="Pass the natural logarithm of a delta strictly between 0 and 1.",
        )  # fmt: skip
        return cls._least(special.gaussian_noise_from_log_delta, epsilon, "log_delta", target, sensitivity)

    @classmethod
    def _least(
        cls, noise: np.ufunc, epsilon: ArrayLike, name: str, target: FloatArray, sensitivity: ArrayLike
    ) -> GaussianMechanism:
        budget = _validate.real("epsilon", epsilon, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf))
        span = _validate.real("sensitivity", sensitivity, "positive and finite", lambda x: (x > 0) & (x < np.inf))
        _validate.broadcastable("epsilon", budget, name, target)
        ratio = np.asarray(noise(budget, target))
        _validate.broadcastable("sensitivity", span, "epsilon and " + name, ratio)
        with np.errstate(over="ignore"):
            sigma = np.nextafter(ratio * span, np.inf)
        _validate.real(
            "epsilon", np.where(np.isfinite(sigma), 0.0, np.broadcast_to(budget, sigma.shape)),
            "large enough for a finite sigma", lambda x: np.isfinite(sigma),
            remedy=f"Raise epsilon or {name}: the noise needed exceeds the largest double.",
        )  # fmt: skip
        return cls(sigma, span)

    @monotone(falling="epsilon")
    def delta(self, epsilon: NumberLike) -> Estimate:
        """Smallest delta for which the mechanism is (epsilon, delta)-private: the exact privacy curve.

        Parameters
        ----------
        epsilon : array_like or Estimate
            At least 0, in nats; inf is allowed and gives 0.

        Returns
        -------
        Estimate
            Kind ``exact``, unit ``probability``. The bounds hold the rounding of r = sensitivity / (2 sigma) and of
            the formula. A guarantee quotes ``upper``.

        Raises
        ------
        DomainError
            For NaN or negative epsilon, or a mechanism without sensitivity.
        ShapeError
            For shapes that do not broadcast.

        Notes
        -----
        **Accuracy**: 4e-15 relative for the formula (tests/kernels/test_gaussian_mechanism.py); below 1e-1000 use
        ``log_delta``.

        Examples
        --------
        >>> from fastpriv.mechanisms.gaussian import GaussianMechanism
        >>> e = GaussianMechanism(sigma=1.0, sensitivity=1.0).delta([0.0, 1.0])
        >>> e.value
        array([0.38292492, 0.12693674])
        """
        return self._bounded(epsilon, False, GaussianMechanism._delta, "probability")

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
        >>> from fastpriv.mechanisms.gaussian import GaussianMechanism
        >>> round(GaussianMechanism(sigma=1.0, sensitivity=1.0).log_delta(100.0).value, 9)
        -4960.254553817
        """
        return self._bounded(epsilon, True, GaussianMechanism._log_delta, "log probability")

    @monotone(falling="delta")
    def epsilon(self, delta: NumberLike) -> Estimate:
        """Smallest epsilon for which the mechanism is (epsilon, delta)-private.

        Parameters
        ----------
        delta : array_like or Estimate
            Between 0 and 1.

        Returns
        -------
        Estimate
            Kind ``exact``, unit ``nats``. The safe side is ``upper``, whose true delta is at most the given one;
            ``lower`` is an epsilon at or below the true inverse. 0 where epsilon = 0 meets
            ``delta``, inf where delta = 0 (and the sensitivity is not 0): normal noise has no finite epsilon there.

        Raises
        ------
        DomainError
            For delta outside [0, 1] or NaN, or a mechanism without sensitivity.
        ShapeError
            For shapes that do not broadcast.

        Notes
        -----
        **Accuracy**: the bounds differ by a relative 1e-13 or by what a change of 2e-14 in delta does (in 1 - delta
        above 1/2), plus the rounding of sensitivity / (2 sigma). Proved against ball arithmetic in
        tests/kernels/test_gaussian_inverse.py.

        Examples
        --------
        >>> from fastpriv.mechanisms.gaussian import GaussianMechanism
        >>> round(GaussianMechanism(sigma=4.0, sensitivity=1.0).epsilon(1e-6).value, 9)
        1.060701862
        """
        target = _validate.real("delta", delta, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
        return self._inverse("delta", target, special.gaussian_epsilon, special.gaussian_epsilon_below)

    @monotone(falling="log_delta")
    def epsilon_from_log_delta(self, log_delta: NumberLike) -> Estimate:
        """As ``epsilon``, from the natural logarithm of delta: at most 0, -inf allowed.

        Examples
        --------
        >>> from fastpriv.mechanisms.gaussian import GaussianMechanism
        >>> round(GaussianMechanism(sigma=4.0, sensitivity=1.0).epsilon_from_log_delta(-2302.585).value, 6)
        16.956989
        """
        target = _validate.real("log_delta", log_delta, "at most 0", lambda x: x <= 0)
        above, below = special.gaussian_epsilon_from_log_delta, special.gaussian_epsilon_below_from_log_delta
        return self._inverse("log_delta", target, above, below)

    def law(self, x: float) -> GaussianMixture:
        """Law of the output when the secret is ``x``: N(x, sigma^2); needs a single sigma."""
        return GaussianMixture.single(_validate.scalar("x", x), self._one_sigma())

    def release(self, prior: Pmf) -> GaussianMixture:
        """Law of the output when the secret is drawn from ``prior``; needs a single sigma."""
        _validate.instance("prior", prior, Pmf)
        return prior.through_gaussian(self._one_sigma())

    def _one_sigma(self) -> float:
        return _validate.scalar("sigma", self.sigma)

    def _both(self) -> FloatArray:
        """An array of the shape of sigma and sensitivity together, which must be given."""
        if self.sensitivity is None:
            raise DomainError(
                "sensitivity must be given for the privacy curve; got None. "
                "Pass GaussianMechanism(sigma, sensitivity=...)."
            )
        return np.broadcast_to(0.0, np.broadcast_shapes(np.shape(self.sigma), np.shape(self.sensitivity)))

    def _ratio(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """r = sensitivity / (2 sigma), rounded, and the doubles on either side of it."""
        self._both()
        with np.errstate(over="ignore", under="ignore"):  # halved last, for subnormal sensitivities
            r = np.asarray(0.5 * (np.asarray(self.sensitivity) / np.asarray(self.sigma)))
        none = np.asarray(self.sensitivity) == 0.0
        low, high = np.nextafter(r, -1), np.nextafter(r, np.inf)
        return r, np.where(none | (low < 0), 0.0, low), np.where(none, 0.0, high)

    def _delta(self, epsilon: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        value, low, high = self._curve(special.gaussian_delta, epsilon)
        down, up = _outward(low * (1 - _RELATIVE), -1), _outward(high * (1 + _RELATIVE), 1)
        exact = (high == 0.0) & (low == 0.0) & self._silent(epsilon)
        return value, np.clip(down, 0.0, 1.0), np.where(exact, 0.0, np.clip(up, 0.0, 1.0))

    def _log_delta(self, epsilon: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        value, low, high = self._curve(special.gaussian_log_delta, epsilon)
        with np.errstate(invalid="ignore", over="ignore"):
            down, up = _outward(low * (1 + _RELATIVE), -1), _outward(high * (1 - _RELATIVE), 1)
        least = np.where(self._silent(epsilon), -np.inf, -np.finfo(np.float64).max)
        lower, upper = np.where(np.isneginf(low), low, down), np.where(np.isneginf(high), least, np.minimum(up, 0.0))
        return value, np.minimum(lower, 0.0), upper

    def _bounded(self, epsilon: ArrayLike, logarithmic: bool, careful: _Careful, unit: Unit) -> Estimate:
        """The curve by one call of the kernel, and what is extreme by three, at r and at the doubles beside it."""
        budget = _validate.array("epsilon", epsilon)
        if budget.dtype != np.float64 or self.sensitivity is None:
            budget = _validate.real("epsilon", epsilon, "at least 0", lambda x: x >= 0)
        r = self._both()
        _validate.broadcastable("epsilon", budget, "sigma and sensitivity", r)
        shape = np.broadcast_shapes(budget.shape, r.shape)
        given = [_spread(part, shape) for part in (budget, np.asarray(self.sigma), np.asarray(self.sensitivity))]
        out = np.empty((3, math.prod(shape)))
        extreme = 0
        for start in range(0, out.shape[1], _CALL):
            part = slice(start, start + _CALL)
            extreme += _gauss.bounds(*(x if x.size == 1 else x[part] for x in given), *out[:, part], logarithmic)
        if extreme:
            _validate.real("epsilon", epsilon, "at least 0", lambda x: x >= 0)
            single = np.flatnonzero(np.isnan(out[1]))
            level, sigma, span = (x[0] if x.size == 1 else x[single] for x in given)
            for row, found in zip(out, careful(GaussianMechanism(sigma, span), level), strict=True):
                row[single] = found
        return Estimate._of_arrays(
            *(row.reshape(shape) for row in out), kind="exact", unit=unit,
            method="closed form (Balle and Wang 2018, theorem 8)",
        )  # fmt: skip

    def _curve(self, curve: np.ufunc, epsilon: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        budget = _validate.real("epsilon", epsilon, "at least 0", lambda x: x >= 0)
        r, low, high = self._ratio()
        _validate.broadcastable("epsilon", budget, "sigma and sensitivity", r)
        return np.asarray(curve(r, budget)), np.asarray(curve(low, budget)), np.asarray(curve(high, budget))

    def _silent(self, epsilon: ArrayLike) -> Any:
        """Where delta is exactly 0."""
        return (np.asarray(self.sensitivity) == 0.0) | np.isposinf(np.asarray(epsilon, dtype=np.float64))

    def _inverse(self, name: str, target: FloatArray, above: np.ufunc, below: np.ufunc) -> Estimate:
        r, low, high = self._ratio()
        _validate.broadcastable(name, target, "sigma and sensitivity", r)
        upper = np.asarray(above(high, target))
        method = "safeguarded Newton on the closed form" + (_NO_PURE if np.isposinf(upper).any() else "")
        lower = np.minimum(below(low, target), upper)
        with np.errstate(invalid="ignore"):
            value = np.where(np.isinf(upper), upper, np.clip(lower + 0.5 * (upper - lower), lower, upper))
        return _estimate(value, lower, upper, "nats", method)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"GaussianMechanism is immutable; build a new one instead of setting {name}.")

    def __reduce__(self) -> Any:
        return GaussianMechanism, (self.sigma, self.sensitivity)

    def __repr__(self) -> str:
        return f"GaussianMechanism(sigma={self.sigma!r}, sensitivity={self.sensitivity!r})"


def _spread(part: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """One number for all settings, or one each, in a row."""
    return np.ascontiguousarray((part if part.size == 1 else np.broadcast_to(part, shape)).reshape(-1))


def _frozen(array: FloatArray) -> Any:
    if array.ndim == 0:
        return float(array)
    own = np.array(array)
    own.setflags(write=False)
    return own


def _outward(bound: FloatArray, direction: float) -> FloatArray:
    """Three units in the last place, for subnormal results and the product above."""
    for _ in range(3):
        bound = np.nextafter(bound, direction * np.inf)
    return bound


def _estimate(value: Any, lower: Any, upper: Any, unit: Any, method: str) -> Estimate:
    return Estimate(value, lower, upper, kind="exact", unit=unit, method=f"{method} (Balle and Wang 2018, theorem 8)")
