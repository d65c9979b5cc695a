"""Special functions as NumPy ufuncs: broadcasting, ``out=``, ``where=``, the GIL released.

Notation: phi and Phi are the density and the distribution function of the standard normal distribution, R(x) =
(1 - Phi(x)) / phi(x) is the Mills ratio. Arguments and results are float64, of any shapes that broadcast; scalars in
give scalars out. Outside its domain a function returns NaN, without a warning. Accuracy is stated in ulps, units in
the last place of the true value, and holds over the whole domain, subnormal numbers and far tails included. Every
instruction set gives the same bits; ``FASTPRIV_ISA=baseline|avx2|avx512`` in the environment forces one.

Compiled code calls the same functions on single numbers: see docs/back_end.md.

Results are bare numbers. ``fastpriv.mechanisms``, ``fastpriv.capacity`` and ``fastpriv.conversions`` check arguments
and return the same quantities with bounds. ``special.pyi`` lists the functions for type checkers.

A function here is the name and the documentation of a ufunc: when the module has been read, the ufuncs of the kernels
take the place of the functions.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any

from .kernels import (
    _awgn,
    _binary_channel,
    _channel_quantities,
    _gaussian_mechanism,
    _hockey_stick_curves,
    _lmip,
    _quadrature,
    _special,
    _sphere,
)

#: Names of the ufuncs.
__all__: list[str] = []
#: The functions of single numbers for compiled code, by name: ``cimport`` (special.pxd), ``fastpriv.nb`` and
#: ``scipy.LowLevelCallable.from_cython`` look here. Their bits are those of the ufuncs. Of a ufunc with bounds the
#: function ``<name>`` returns the value, and ``<name>_bounds`` writes value, lower and upper bound.
__pyx_capi__: dict[str, object] = {}

# The section on errors, which all ufuncs share; it is put in front of the notes of a docstring.
_RAISES = """\
Raises
------
TypeError
    If an argument cannot be cast safely to float64.

"""
# The section on results of a docstring that has none.
_RETURNS = """\
Returns
-------
float64 array or scalar
    The broadcast shape of the arguments; a scalar if they are scalars.
    NaN outside the domain and for NaN.

"""


def _with_usual_sections(documentation: str) -> str:
    """The docstring of a ufunc, from that of the function that stands for it."""
    text = inspect.cleandoc(documentation)
    sections = _RAISES if "\nReturns\n" in text else _RETURNS + _RAISES
    return text.replace("Notes\n-----\n", sections + "Notes\n-----\n", 1)


# Elementary functions and normal tails.


def exp(x, /):
    """e^x.

    Parameters
    ----------
    x : array_like of float64
        Real numbers.

    Notes
    -----
    **Accuracy**: 0.85 ulp, asserted by tests/kernels/test_special_accuracy.py.

    Source: Cody-Waite reduction; Muller et al., Handbook of Floating-Point Arithmetic, chapter 11.

    Examples
    --------
    >>> import fastpriv as fp
    >>> float(fp.special.exp(0.5))
    1.6487212707001282
    """


def expm1(x, /):
    """e^x - 1, without cancellation near 0.

    Parameters
    ----------
    x : array_like of float64
        Real numbers.

    Notes
    -----
    **Accuracy**: 1 ulp, asserted by tests/kernels/test_special_accuracy.py.

    Source: the reduction of `exp`, with 2^k - 1 taken before the tail is added.

    Examples
    --------
    >>> import fastpriv as fp
    >>> float(fp.special.expm1(1e-20))
    1e-20
    """


def log(x, /):
    """Natural logarithm.

    Parameters
    ----------
    x : array_like of float64
        Numbers >= 0; log(0) = -inf.

    Notes
    -----
    **Accuracy**: 0.85 ulp, asserted by tests/kernels/test_special_accuracy.py.

    Source: log((1 + s) / (1 - s)) = 2 artanh(s), DLMF 4.6.4.

    Examples
    --------
    >>> import fastpriv as fp
    >>> float(fp.special.log(10.0))
    2.302585092994046
    """


def log1p(x, /):
    """log(1 + x), without cancellation near 0.

    Parameters
    ----------
    x : array_like of float64
        Numbers >= -1; log1p(-1) = -inf.

    Notes
    -----
    **Accuracy**: 0.95 ulp, asserted by tests/kernels/test_special_accuracy.py.

    Source: `log` of 1 + x with the rounding error of the sum carried on.

    Examples
    --------
    >>> import fastpriv as fp
    >>> float(fp.special.log1p(1e-20))
    1e-20
    """


def erfc(x, /):
    """Complementary error function, 2 / sqrt(pi) times the integral of exp(-t^2) from x to infinity.

    Parameters
    ----------
    x : array_like of float64
        Real numbers.

    Notes
    -----
    **Accuracy**: 4.5 ulps, asserted by tests/kernels/test_special_accuracy.py.

    Source: DLMF 7.2.2; fit by exchange to x R(x) on the half-line, tools/fit_coefficients.py; DLMF 7.8.1 for the Mills
    ratio.

    Examples
    --------
    >>> import fastpriv as fp
    >>> print(f'{fp.special.erfc(20.0):.12e}')
    5.395865611608e-176
    """


def erfcx(x, /):
    """Scaled complementary error function, exp(x^2) erfc(x); inf below -26.6.

    Parameters
    ----------
    x : array_like of float64
        Real numbers.

    Notes
    -----
    **Accuracy**: 3.5 ulps, asserted by tests/kernels/test_special_accuracy.py.

    Source: DLMF 7.2.3; fit by exchange to x R(x) on the half-line, tools/fit_coefficients.py; DLMF 7.8.1 for the Mills
    ratio.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.erfcx(1e100)) * 1e100, 12)
    0.564189583548
    """


def mills_ratio(x, /):
    """Mills ratio of the standard normal distribution, (1 - Phi(x)) / phi(x); inf below -37.7.

    Parameters
    ----------
    x : array_like of float64
        Real numbers.

    Notes
    -----
    **Accuracy**: 4.5 ulps, asserted by tests/kernels/test_special_accuracy.py.

    Source: fit by exchange to x R(x) on the half-line, tools/fit_coefficients.py; DLMF 7.8.1 for the Mills ratio.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.mills_ratio(0.0)), 12)
    1.253314137316
    """


def ndtr(x, /):
    """Distribution function Phi of the standard normal distribution.

    Parameters
    ----------
    x : array_like of float64
        Real numbers.

    Notes
    -----
    **Accuracy**: 4.5 ulps, asserted by tests/kernels/test_special_accuracy.py.

    Source: phi(x) R(x) with x^2 in two terms; fit by exchange to x R(x) on the half-line, tools/fit_coefficients.py;
    DLMF 7.8.1 for the Mills ratio.

    Examples
    --------
    >>> import fastpriv as fp
    >>> float(fp.special.ndtr(0.0))
    0.5
    """


def log_ndtr(x, /):
    """log Phi(x); finite down to x = -1.89e154.

    Parameters
    ----------
    x : array_like of float64
        Real numbers.

    Notes
    -----
    **Accuracy**: 6.5 ulps, asserted by tests/kernels/test_special_accuracy.py.

    Source: -x^2/2 + log(R(-x) / sqrt(2 pi)) left of 0, log1p(-Phi(-x)) right of it; fit by exchange to x R(x) on the
    half-line, tools/fit_coefficients.py; DLMF 7.8.1 for the Mills ratio.

    Examples
    --------
    >>> import fastpriv as fp
    >>> float(fp.special.log_ndtr(-2e10))
    -2e+20
    """


def log1mexp(x, /):
    """log(1 - e^x).

    Parameters
    ----------
    x : array_like of float64
        Numbers <= 0; log1mexp(0) = -inf.

    Notes
    -----
    **Accuracy**: 2 ulps, asserted by tests/kernels/test_special_accuracy.py.

    Source: log(-expm1(x)) above -log 2, log1p(-e^x) below; Maechler (2012), equation (7).

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.log1mexp(-1e-300)), 10)
    -690.7755278982
    """


def logaddexp(x, y, /):
    """log(e^x + e^y).

    Parameters
    ----------
    x, y : array_like of float64
        Real numbers.

    Notes
    -----
    **Accuracy**: one ulp of the result and two ulps of its excess over max(x, y),
    asserted by tests/kernels/test_special_accuracy.py.

    Source: max(x, y) + log1p(exp(-|x - y|)).

    Examples
    --------
    >>> import fastpriv as fp
    >>> float(fp.special.logaddexp(-1e5, -1e5))
    -99999.30685281944
    """


def ndtr_difference(a, b, /):
    """Phi(b) - Phi(a) without cancellation, in either tail, for ends however close; antisymmetric.

    Parameters
    ----------
    a, b : array_like of float64
        Real numbers.

    Notes
    -----
    **Accuracy**: 6 ulps, for a and b as they are given, asserted by tests/kernels/test_special_accuracy.py.

    Source: phi(m) sum of 2 He_2j(m) h^(2j+1) / (2j+1)! about the middle m, h = (b - a)/2 (DLMF 18.12.16), for close
        ends; phi(a) R(a) - phi(b) R(b) or 1 - phi(a) R(-a) - phi(b) R(b) otherwise.

    Examples
    --------
    >>> import fastpriv as fp
    >>> print(f'{fp.special.ndtr_difference(30.0, 30.0 + 2.0**-48):.12e}')
    5.235442781094e-211
    """


def log_ndtr_difference(a, b, /):
    """log(Phi(b) - Phi(a)), a < b; -inf for a = b.

    Parameters
    ----------
    a, b : array_like of float64
        Real numbers, a <= b.

    Notes
    -----
    **Accuracy**: 6.5 ulps, for a and b as they are given, asserted by tests/kernels/test_special_accuracy.py.

    Source: the logarithm of what `ndtr_difference` computes, phi kept apart.

    Examples
    --------
    >>> import fastpriv as fp
    >>> float(fp.special.log_ndtr_difference(1e100, float('inf')))
    -5e+199
    """


def log_sum_exp(x, /):
    """log of the sum of e^x over an axis, the last by default; -inf for an empty axis.

    Parameters
    ----------
    x : array_like of float64
        At least one-dimensional; ``axis=`` and ``keepdims=`` choose the axis and keep it.

    Returns
    -------
    float64 array or scalar
        The shape of x without the axis.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: one ulp of the result and 2 + n/16 ulps of its excess over the maximum of n terms,
    asserted by tests/kernels/test_special_accuracy.py.

    Source: m + log1p(sum without the maximum m), in 8 lanes of fixed order.

    Examples
    --------
    >>> import fastpriv as fp
    >>> float(fp.special.log_sum_exp([[-1e5, -1e5], [0.0, -800.0]], axis=1)[0])
    -99999.30685281944
    """


# The privacy curves of the Gaussian mechanism and of the subsampled one, and their inverses.


def gaussian_delta(r, epsilon, /):
    """Privacy curve delta(epsilon) of the Gaussian mechanism; 0 for r = 0 or epsilon = inf, 1 for r = inf.

    Parameters
    ----------
    r, epsilon : array_like of float64
        r >= 0 and epsilon >= 0, inf included.

    Notes
    -----
    **Accuracy**: relative error 4e-15 where delta is a normal number,
    asserted by tests/kernels/test_gaussian_mechanism.py.

    Source: delta = Phi(r - epsilon/(2r)) - e^epsilon Phi(-r - epsilon/(2r)), r = l2 sensitivity / (2 sigma); Balle and
        Wang (2018), theorem 8.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.gaussian_delta(0.5, 1.0)), 12)
    0.126936737507
    """


def gaussian_log_delta(r, epsilon, /):
    """Natural logarithm of the privacy curve; -inf only where delta = 0 or below the most negative double.

    Parameters
    ----------
    r, epsilon : array_like of float64
        r >= 0 and epsilon >= 0, inf included.

    Notes
    -----
    **Accuracy**: relative error 4e-15 for r in [1e-300, 1e300] and epsilon in [0, 1e300],
    asserted by tests/kernels/test_gaussian_mechanism.py.

    Source: delta = Phi(r - epsilon/(2r)) - e^epsilon Phi(-r - epsilon/(2r)), r = l2 sensitivity / (2 sigma); Balle and
        Wang (2018), theorem 8.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.gaussian_log_delta(0.5, 100.0)), 8)
    -4960.25455382
    """


def gaussian_epsilon(r, delta, /):
    """Least epsilon for a target delta, on the safe side: the true delta of the result is at most the target.

    0 where epsilon = 0 meets delta, inf where delta = 0 and r > 0.

    Parameters
    ----------
    r, delta : array_like of float64
        r >= 0, 0 <= delta <= 1.

    Notes
    -----
    **Accuracy**: within a relative 1e-13 of the true inverse, or within what a relative change of 8e-14 in delta (above
    1/2: in 1 - delta) does, whichever is more; the latter rules where delta is close to the curve at epsilon = 0,
    asserted by tests/kernels/test_gaussian_inverse.py.

    Source: delta = Phi(r - epsilon/(2r)) - e^epsilon Phi(-r - epsilon/(2r)), r = l2 sensitivity / (2 sigma); Balle and
        Wang (2018), theorem 8.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.gaussian_epsilon(0.25, 1e-5)), 10)
    1.9930914044
    """


def gaussian_epsilon_from_log_delta(r, log_delta, /):
    """`gaussian_epsilon` from the natural logarithm of delta.

    Parameters
    ----------
    r, log_delta : array_like of float64
        r >= 0, log_delta <= 0.

    Notes
    -----
    **Accuracy**: within a relative 1e-13 of the true inverse, or within what a change of 8e-14 + 5e-15 |log_delta| in
    log_delta (above -log 2: in log(1 - delta)) does, whichever is more,
    asserted by tests/kernels/test_gaussian_inverse.py.

    Source: delta = Phi(r - epsilon/(2r)) - e^epsilon Phi(-r - epsilon/(2r)), r = l2 sensitivity / (2 sigma); Balle and
        Wang (2018), theorem 8.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.gaussian_epsilon_from_log_delta(0.125, -2302.585)), 9)
    16.956989164
    """


def gaussian_epsilon_below(r, delta, /):
    """Lower bound of the least epsilon for a target delta: its true delta is at least the target, or it is 0.

    Parameters
    ----------
    r, delta : array_like of float64
        r >= 0, 0 <= delta <= 1.

    Notes
    -----
    **Accuracy**: within a relative 1e-13 of the true inverse, or within what a relative change of 8e-14 in delta (above
    1/2: in 1 - delta) does, whichever is more; the latter rules where delta is close to the curve at epsilon = 0,
    asserted by tests/kernels/test_gaussian_inverse.py.

    Source: delta = Phi(r - epsilon/(2r)) - e^epsilon Phi(-r - epsilon/(2r)), r = l2 sensitivity / (2 sigma); Balle and
        Wang (2018), theorem 8.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.gaussian_epsilon_below(0.25, 1e-5)), 10)
    1.9930914044
    """


def gaussian_epsilon_below_from_log_delta(r, log_delta, /):
    """`gaussian_epsilon_below` from the natural logarithm of delta.

    Parameters
    ----------
    r, log_delta : array_like of float64
        r >= 0, log_delta <= 0.

    Notes
    -----
    **Accuracy**: within a relative 1e-13 of the true inverse, or within what a change of 8e-14 + 5e-15 |log_delta| in
    log_delta (above -log 2: in log(1 - delta)) does, whichever is more,
    asserted by tests/kernels/test_gaussian_inverse.py.

    Source: delta = Phi(r - epsilon/(2r)) - e^epsilon Phi(-r - epsilon/(2r)), r = l2 sensitivity / (2 sigma); Balle and
        Wang (2018), theorem 8.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.gaussian_epsilon_below_from_log_delta(0.125, -2302.585)), 9)
    16.956989164
    """


def gaussian_noise(epsilon, delta, /):
    """Least sigma / sensitivity that gives (epsilon, delta) privacy, on the safe side.

    inf where delta = 0, 0 where delta = 1 or epsilon = inf.

    Parameters
    ----------
    epsilon, delta : array_like of float64
        epsilon >= 0, 0 <= delta <= 1.

    Notes
    -----
    **Accuracy**: within a relative 1e-13 of the true least ratio, asserted by tests/kernels/test_gaussian_inverse.py.

    Source: delta = Phi(r - epsilon/(2r)) - e^epsilon Phi(-r - epsilon/(2r)), r = l2 sensitivity / (2 sigma); Balle and
        Wang (2018), theorem 8.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.gaussian_noise(1.0, 1e-5)), 10)
    3.7306316348
    """


def gaussian_noise_from_log_delta(epsilon, log_delta, /):
    """`gaussian_noise` from the natural logarithm of delta; inf where the ratio exceeds the largest double.

    Parameters
    ----------
    epsilon, log_delta : array_like of float64
        epsilon >= 0, log_delta <= 0.

    Notes
    -----
    **Accuracy**: within a relative 1e-13 + 4e-15 |log_delta| of the true least ratio,
    asserted by tests/kernels/test_gaussian_inverse.py.

    Source: delta = Phi(r - epsilon/(2r)) - e^epsilon Phi(-r - epsilon/(2r)), r = l2 sensitivity / (2 sigma); Balle and
        Wang (2018), theorem 8.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.gaussian_noise_from_log_delta(1.0, -2302.585)), 8)
    67.66862658
    """


def gaussian_noise_below(epsilon, delta, /):
    """Lower bound of the least sigma / sensitivity for (epsilon, delta): its true delta is at least the target.

    Parameters
    ----------
    epsilon, delta : array_like of float64
        epsilon >= 0, 0 <= delta <= 1.

    Notes
    -----
    **Accuracy**: within a relative 1e-13 of the true least ratio, asserted by tests/kernels/test_gaussian_inverse.py.

    Source: delta = Phi(r - epsilon/(2r)) - e^epsilon Phi(-r - epsilon/(2r)), r = l2 sensitivity / (2 sigma); Balle and
        Wang (2018), theorem 8.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.gaussian_noise_below(1.0, 1e-5)), 10)
    3.7306316348
    """


def gaussian_noise_below_from_log_delta(epsilon, log_delta, /):
    """`gaussian_noise_below` from the natural logarithm of delta.

    Parameters
    ----------
    epsilon, log_delta : array_like of float64
        epsilon >= 0, log_delta <= 0.

    Notes
    -----
    **Accuracy**: within a relative 1e-13 + 4e-15 |log_delta| of the true least ratio,
    asserted by tests/kernels/test_gaussian_inverse.py.

    Source: delta = Phi(r - epsilon/(2r)) - e^epsilon Phi(-r - epsilon/(2r)), r = l2 sensitivity / (2 sigma); Balle and
        Wang (2018), theorem 8.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.gaussian_noise_below_from_log_delta(1.0, -2302.585)), 8)
    67.66862658
    """


def sampled_gaussian_delta_remove(sigma, rate, epsilon, /):
    """Privacy curve of the Poisson-subsampled Gaussian mechanism when a record is removed:

    H_{e^epsilon}((1 - rate) N(0, sigma^2) + rate N(1, sigma^2) || N(0, sigma^2)).

    Parameters
    ----------
    sigma, rate, epsilon : array_like of float64
        sigma > 0, standard deviation over sensitivity; sampling rate in [0, 1]; epsilon >= 0 in nats, inf included.

    Returns
    -------
    float64 array or scalar
        Value, lower and upper bound: three arrays of the broadcast shape, or three scalars.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds contain the truth; for sigma from 1e-4 to 1e9 they are within 4e-14 (1 + |log delta|) of
    each other, relative to delta, where P's weight at the point that gains does not cancel (in the add direction:
    epsilon within 1e-10 of the largest one at which delta is positive), asserted by tests/kernels/test_two_points.py.

    Source: A delta(log(B / A)) with the curve of the Gaussian mechanism and the coefficients of the two normal
        densities in p - e^epsilon q, csrc/gauss/fp_two_points.h; Balle, Barthe and Gaboardi (2018).

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, lower, upper = fp.special.sampled_gaussian_delta_remove(1.0, 0.01, [0.0, 1.0])
    >>> print(f'{value[1]:.12e}')
    2.732009261546e-09
    """


def sampled_gaussian_delta_add(sigma, rate, epsilon, /):
    """Privacy curve of the Poisson-subsampled Gaussian mechanism when a record is added:

    H_{e^epsilon}(N(0, sigma^2) || (1 - rate) N(0, sigma^2) + rate N(1, sigma^2)).

    Parameters
    ----------
    sigma, rate, epsilon : array_like of float64
        sigma > 0, standard deviation over sensitivity; sampling rate in [0, 1]; epsilon >= 0 in nats, inf included.

    Returns
    -------
    float64 array or scalar
        Value, lower and upper bound: three arrays of the broadcast shape, or three scalars.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds contain the truth; for sigma from 1e-4 to 1e9 they are within 4e-14 (1 + |log delta|) of
    each other, relative to delta, where P's weight at the point that gains does not cancel (in the add direction:
    epsilon within 1e-10 of the largest one at which delta is positive), asserted by tests/kernels/test_two_points.py.

    Source: A delta(log(B / A)) with the curve of the Gaussian mechanism and the coefficients of the two normal
        densities in p - e^epsilon q, csrc/gauss/fp_two_points.h; Balle, Barthe and Gaboardi (2018).

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, lower, upper = fp.special.sampled_gaussian_delta_add(1.0, 0.01, [0.0, 0.005])
    >>> print(value.round(8))
    [0.00382925 0.00096314]
    """


def sampled_gaussian_log_delta_remove(sigma, rate, epsilon, /):
    """Natural logarithm of `sampled_gaussian_delta_remove`, far below 1e-300 too, with bounds.

    Parameters
    ----------
    sigma, rate, epsilon : array_like of float64
        sigma > 0, standard deviation over sensitivity; sampling rate in [0, 1]; epsilon >= 0 in nats, inf included.

    Returns
    -------
    float64 array or scalar
        Value, lower and upper bound: three arrays of the broadcast shape, or three scalars.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds contain the truth; for sigma from 1e-4 to 1e9 they are within 4e-14 (1 + |log delta|) of
    each other, relative to delta, where P's weight at the point that gains does not cancel (in the add direction:
    epsilon within 1e-10 of the largest one at which delta is positive), asserted by tests/kernels/test_two_points.py.

    Source: A delta(log(B / A)) with the curve of the Gaussian mechanism and the coefficients of the two normal
        densities in p - e^epsilon q, csrc/gauss/fp_two_points.h; Balle, Barthe and Gaboardi (2018).

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, lower, upper = fp.special.sampled_gaussian_log_delta_remove(1.0, 0.01, 100.0)
    >>> round(float(value), 8)
    -5433.76797565
    """


def sampled_gaussian_log_delta_add(sigma, rate, epsilon, /):
    """Natural logarithm of `sampled_gaussian_delta_add`, far below 1e-300 too, with bounds.

    Parameters
    ----------
    sigma, rate, epsilon : array_like of float64
        sigma > 0, standard deviation over sensitivity; sampling rate in [0, 1]; epsilon >= 0 in nats, inf included.

    Returns
    -------
    float64 array or scalar
        Value, lower and upper bound: three arrays of the broadcast shape, or three scalars.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds contain the truth; for sigma from 1e-4 to 1e9 they are within 4e-14 (1 + |log delta|) of
    each other, relative to delta, where P's weight at the point that gains does not cancel (in the add direction:
    epsilon within 1e-10 of the largest one at which delta is positive), asserted by tests/kernels/test_two_points.py.

    Source: A delta(log(B / A)) with the curve of the Gaussian mechanism and the coefficients of the two normal
        densities in p - e^epsilon q, csrc/gauss/fp_two_points.h; Balle, Barthe and Gaboardi (2018).

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, lower, upper = fp.special.sampled_gaussian_log_delta_add(1.0, 0.5, 0.69)
    >>> round(float(value), 8)
    -24.09168574
    """


def sampled_gaussian_epsilon_remove(sigma, rate, delta, /):
    """Least epsilon of the Poisson-subsampled Gaussian mechanism for a target delta when a record is removed.

    0 where epsilon = 0 meets delta.

    Parameters
    ----------
    sigma, rate, delta : array_like of float64
        sigma > 0, standard deviation over sensitivity; sampling rate in [0, 1]; delta in [0, 1].

    Returns
    -------
    float64 array or scalar
        Value, lower and upper bound: three arrays of the broadcast shape, or three scalars.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds contain the truth: at ``upper`` the true delta is at most the target, at ``lower`` it is
    above it (or ``lower`` is 0). For sigma from 1e-4 to 1e9 they are within a relative 1e-10 of each other, or, where
    delta hardly depends on epsilon, as near 0, delta at both differs by less than 1e-13 (1 + |log delta|) of itself,
    asserted by tests/kernels/test_subsampled_inverse.py.

    Source: the inverse of the Gaussian mechanism, and bounds of the curve on both sides of it,
        csrc/gauss/fp_subsampled_inverse_solver.h; Balle, Barthe and Gaboardi (2018).

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, lower, upper = fp.special.sampled_gaussian_epsilon_remove(1.0, 0.01, 1e-5)
    >>> round(float(value), 10)
    0.1994504478
    """


def sampled_gaussian_epsilon_add(sigma, rate, delta, /):
    """Least epsilon of the Poisson-subsampled Gaussian mechanism for a target delta when a record is added.

    0 where epsilon = 0 meets delta.

    Parameters
    ----------
    sigma, rate, delta : array_like of float64
        sigma > 0, standard deviation over sensitivity; sampling rate in [0, 1]; delta in [0, 1].

    Returns
    -------
    float64 array or scalar
        Value, lower and upper bound: three arrays of the broadcast shape, or three scalars.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds contain the truth: at ``upper`` the true delta is at most the target, at ``lower`` it is
    above it (or ``lower`` is 0). For sigma from 1e-4 to 1e9 they are within a relative 1e-10 of each other, or, where
    delta hardly depends on epsilon, as near 0, delta at both differs by less than 1e-13 (1 + |log delta|) of itself,
    asserted by tests/kernels/test_subsampled_inverse.py.

    Source: the inverse of the Gaussian mechanism, and bounds of the curve on both sides of it,
        csrc/gauss/fp_subsampled_inverse_solver.h; Balle, Barthe and Gaboardi (2018).

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, lower, upper = fp.special.sampled_gaussian_epsilon_add(1.0, 0.01, 1e-5)
    >>> round(float(value), 10)
    0.0090541997
    """


def sampled_gaussian_noise_remove(rate, epsilon, delta, /):
    """Least sigma / sensitivity that gives (epsilon, delta) privacy after Poisson subsampling, a record removed.

    0 where any noise does.

    Parameters
    ----------
    rate, epsilon, delta : array_like of float64
        Sampling rate in [0, 1]; epsilon >= 0 in nats, inf included; delta in [0, 1].

    Returns
    -------
    float64 array or scalar
        Value, lower and upper bound: three arrays of the broadcast shape, or three scalars.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds contain the truth: at ``upper`` the true delta is at most the target, at ``lower`` it is
    above it (or ``lower`` is 0). For sigma from 1e-4 to 1e9 they are within a relative 1e-10 of each other, or, where
    delta hardly depends on epsilon, as near 0, delta at both differs by less than 1e-13 (1 + |log delta|) of itself,
    asserted by tests/kernels/test_subsampled_inverse.py.

    Source: the inverse of the Gaussian mechanism, and bounds of the curve on both sides of it,
        csrc/gauss/fp_subsampled_inverse_solver.h; Balle, Barthe and Gaboardi (2018).

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, lower, upper = fp.special.sampled_gaussian_noise_remove(0.01, 1.0, 1e-5)
    >>> round(float(value), 10)
    0.6737928925
    """


def sampled_gaussian_noise_add(rate, epsilon, delta, /):
    """Least sigma / sensitivity that gives (epsilon, delta) privacy after Poisson subsampling, a record added.

    0 where any noise does.

    Parameters
    ----------
    rate, epsilon, delta : array_like of float64
        Sampling rate in [0, 1]; epsilon >= 0 in nats, inf included; delta in [0, 1].

    Returns
    -------
    float64 array or scalar
        Value, lower and upper bound: three arrays of the broadcast shape, or three scalars.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds contain the truth: at ``upper`` the true delta is at most the target, at ``lower`` it is
    above it (or ``lower`` is 0). For sigma from 1e-4 to 1e9 they are within a relative 1e-10 of each other, or, where
    delta hardly depends on epsilon, as near 0, delta at both differs by less than 1e-13 (1 + |log delta|) of itself,
    asserted by tests/kernels/test_subsampled_inverse.py.

    Source: the inverse of the Gaussian mechanism, and bounds of the curve on both sides of it,
        csrc/gauss/fp_subsampled_inverse_solver.h; Balle, Barthe and Gaboardi (2018).

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, lower, upper = fp.special.sampled_gaussian_noise_add(0.01, 0.005, 1e-5)
    >>> round(float(value), 10)
    3.2195055809
    """


# The capacity under a peak-power constraint.


def awgn_capacity(dimension, radius, rtol, /):
    """Capacity in nats of Y = X + N(0, I_d) with ||X|| <= radius, with bounds.

    The radius is the amplitude over the standard deviation of the noise.

    Parameters
    ----------
    dimension, radius, rtol : array_like of float64
        dimension a whole number from 1 to 1e6, radius >= 0 and finite, rtol from 1e-13 to 0.1.

    Returns
    -------
    float64 array or scalar
        Value, lower and upper bound: three arrays of the broadcast shape, or three scalars.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds contain the truth. Their relative width is at most rtol for radius up to 10 sqrt(dimension)
    (for dimension 1 up to 25), and grows beyond, as for ``fastpriv.awgn_capacity``,
    asserted by tests/kernels/test_awgn_ufunc.py.

    Source: csrc/awgn/fp_awgn.h; Smith (1971), Shamai and Bar-David (1995).

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, lower, upper = fp.special.awgn_capacity([1, 2, 4], 3.0, 1e-9)
    >>> print(value.round(6))
    [0.881361 1.50341  2.274542]
    """


# Binary channels.


def binary_entropy(p, /):
    """Binary entropy -p log p - (1-p) log(1-p), in nats.

    Parameters
    ----------
    p : array_like of float64
        Numbers in [0, 1].

    Notes
    -----
    **Accuracy**: relative error 1e-15, asserted by tests/kernels/test_binary_channel.py.

    Source: Shannon (1948), section 6.

    Examples
    --------
    >>> import fastpriv as fp
    >>> print(f'{fp.special.binary_entropy(1e-300):.12e}')
    6.917755278982e-298
    """


def binary_entropy_with_complement(p, complement, /):
    """Binary entropy in nats; complement is 1 - p, for p closer to 1 than doubles resolve.

    Parameters
    ----------
    p, complement : array_like of float64
        Numbers in [0, 1].

    Notes
    -----
    **Accuracy**: relative error 1e-15, asserted by tests/kernels/test_binary_channel.py.

    Source: Shannon (1948), section 6.

    Examples
    --------
    >>> import fastpriv as fp
    >>> print(f'{fp.special.binary_entropy_with_complement(1.0, 1e-300):.12e}')
    6.917755278982e-298
    """


def bac_capacity(a, b, /):
    """Capacity in nats of the binary asymmetric channel, a = P(Y=1 | X=0), b = P(Y=0 | X=1); 0 where a + b = 1.

    Parameters
    ----------
    a, b : array_like of float64
        Numbers in [0, 1].

    Notes
    -----
    **Accuracy**: relative error 2.5e-15 on the whole square, asserted by tests/kernels/test_binary_channel.py.

    Source: the information of the uniform input and what the best one gains, formed from 1 - a - b,
        csrc/channel/fp_binary_channel.h; equation (11) of the mutual-information privacy paper without its 0/0.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.bac_capacity(0.0, 0.5)), 12)
    0.223143551314
    """


def bac_capacity_with_complements(a, complement_a, b, complement_b, /):
    """`bac_capacity` for crossover probabilities closer to 1 than doubles resolve, each with its complement.

    Parameters
    ----------
    a, complement_a, b, complement_b : array_like of float64
        Numbers in [0, 1].

    Notes
    -----
    **Accuracy**: relative error 2.5e-15, asserted by tests/kernels/test_binary_channel.py.

    Source: the information of the uniform input and what the best one gains, formed from 1 - a - b,
        csrc/channel/fp_binary_channel.h; equation (11) of the mutual-information privacy paper without its 0/0.

    Examples
    --------
    >>> import fastpriv as fp
    >>> print(f'{fp.special.bac_capacity_with_complements(1.0, 1e-20, 0.0, 1.0):.6e}')
    3.678794e-21
    """


# The moment generating function of a uniform point on a sphere, of which the capacity of vector channels is made.


def sphere_log_mgf(dimension, x, /):
    """Natural logarithm of G_d(x) = E exp(x U), U the first coordinate of a uniform point on the unit sphere of R^d.

    G_1 = cosh x, G_2 = I_0(x), G_3 = sinh(x) / x; log G_d(x) is x^2 / (2 d) for small x.

    Parameters
    ----------
    dimension, x : array_like of float64
        dimension a whole number from 1 to 1e9, x >= 0, inf included.

    Notes
    -----
    **Accuracy**: relative error 2.3e-15, proved (theorem 6.6 of docs/proofs), where the result is above 1e-290;
    6.5e-16 is asserted by tests/kernels/test_sphere.py.

    Source: G_d(x) = Gamma(d/2) (2/x)^(d/2-1) I_{d/2-1}(x), DLMF 10.32.2; Amos' (1974) bound of the mean, integrated,
        and a polynomial for the rest, csrc/special/fp_sphere.h.

    Examples
    --------
    >>> import fastpriv as fp
    >>> print(f'{fp.special.sphere_log_mgf(3, 1e-10):.12e}')
    1.666666666667e-21
    """


def sphere_log_mgf_scaled(dimension, x, /):
    """`sphere_log_mgf` less x, without cancellation for large x.

    Parameters
    ----------
    dimension, x : array_like of float64
        dimension a whole number from 1 to 1e9, x >= 0, inf included.

    Notes
    -----
    **Accuracy**: absolute error 2.3e-15 (1 + |result|), proved (theorem 6.6 of docs/proofs);
    5e-16 (1 + |result|) is asserted by tests/kernels/test_sphere.py.

    Source: G_d(x) = Gamma(d/2) (2/x)^(d/2-1) I_{d/2-1}(x), DLMF 10.32.2; Amos' (1974) bound of the mean, integrated,
        and a polynomial for the rest, csrc/special/fp_sphere.h.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.sphere_log_mgf_scaled(1, 1e12)), 12)
    -0.69314718056
    """


def sphere_mean(dimension, x, /):
    """Mean of the first coordinate of a point on the unit sphere of R^d with density proportional to exp(x U).

    It is the derivative of `sphere_log_mgf`, the ratio I_{d/2}(x) / I_{d/2-1}(x) of Bessel functions.

    Parameters
    ----------
    dimension, x : array_like of float64
        dimension a whole number from 1 to 1e9, x >= 0, inf included.

    Notes
    -----
    **Accuracy**: relative error 1.5e-15, proved (theorem 6.6 of docs/proofs), where the result is a normal number;
    5e-16 is asserted by tests/kernels/test_sphere.py.

    Source: G_d(x) = Gamma(d/2) (2/x)^(d/2-1) I_{d/2-1}(x), DLMF 10.32.2; Amos' (1974) bound of the mean, integrated,
        and a polynomial for the rest, csrc/special/fp_sphere.h.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.sphere_mean(3, 2.0)), 12)
    0.537314720728
    """


# Mutual-information privacy.


def ci_lmip_ldp_delta(mu, epsilon, /):
    """Best delta(epsilon) of local differential privacy under mu nats of context-independent mutual information.

    Parameters
    ----------
    mu, epsilon : array_like of float64
        mu >= 0 and epsilon >= 0 in nats, inf included.

    Notes
    -----
    **Accuracy**: relative error 3e-15 for mu >= 1e-300, an upper bound for smaller mu > 0,
    asserted by tests/kernels/test_lmip_accuracy.py.

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, equation (10).

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.ci_lmip_ldp_delta(0.1, 1.0)), 12)
    0.276403505708
    """


def ci_lmip_ldp_high(mu, epsilon, /):
    """The larger probability p1 of the pair that attains `ci_lmip_ldp_delta`.

    Parameters
    ----------
    mu, epsilon : array_like of float64
        mu >= 0 and epsilon >= 0 in nats, inf included.

    Notes
    -----
    **Accuracy**: relative error 1e-6, absolute 1e-6 in a logarithm: a point of the flat top of the objective,
    asserted by tests/kernels/test_lmip_accuracy.py.

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, equation (10).

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.ci_lmip_ldp_high(0.1, 1.0)), 6)
    0.342653
    """


def ci_lmip_ldp_log_low(mu, epsilon, /):
    """Natural logarithm of the smaller probability p0 of the pair that attains `ci_lmip_ldp_delta`.

    Parameters
    ----------
    mu, epsilon : array_like of float64
        mu >= 0 and epsilon >= 0 in nats, inf included.

    Notes
    -----
    **Accuracy**: relative error 1e-6, absolute 1e-6 in a logarithm: a point of the flat top of the objective,
    asserted by tests/kernels/test_lmip_accuracy.py.

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, equation (10).

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.ci_lmip_ldp_log_low(0.1, 10.0)), 1)
    -15636.0
    """


def ci_lmip_ldp_saturation(mu, /):
    """What `ci_lmip_ldp_delta` falls to as epsilon grows: the p with h(p) / p = -log(e^mu - 1).

    Parameters
    ----------
    mu : array_like of float64
        mu >= 0 in nats.

    Notes
    -----
    **Accuracy**: relative error 3e-15 for mu >= 1e-300, an upper bound for smaller mu > 0,
    asserted by tests/kernels/test_lmip_accuracy.py.

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, below equation (12).

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.ci_lmip_ldp_saturation(0.1)), 12)
    0.24938626687
    """


def pointwise_lip_delta(mu, epsilon, /):
    """Best delta(epsilon) of local information privacy under KL(P_x || P_M) <= mu nats for every x.

    Parameters
    ----------
    mu, epsilon : array_like of float64
        mu >= 0 and epsilon >= 0 in nats, inf included.

    Notes
    -----
    **Accuracy**: relative error 3e-15 for mu >= 1e-300, an upper bound for smaller mu > 0,
    asserted by tests/kernels/test_lmip_accuracy.py.

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, equation (13).

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.pointwise_lip_delta(0.1, 1.0)), 12)
    0.100917736517
    """


def pointwise_lip_high(mu, epsilon, /):
    """The larger probability p0 of the pair that attains `pointwise_lip_delta`.

    Parameters
    ----------
    mu, epsilon : array_like of float64
        mu >= 0 and epsilon >= 0 in nats, inf included.

    Notes
    -----
    **Accuracy**: relative error 1e-6, absolute 1e-6 in a logarithm: a point of the flat top of the objective,
    asserted by tests/kernels/test_lmip_accuracy.py.

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, equation (13).

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.pointwise_lip_high(0.1, 1.0)), 6)
    0.121387
    """


def pointwise_lip_log_low(mu, epsilon, /):
    """Natural logarithm of the smaller probability p1 of the pair that attains `pointwise_lip_delta`.

    Parameters
    ----------
    mu, epsilon : array_like of float64
        mu >= 0 and epsilon >= 0 in nats, inf included.

    Notes
    -----
    **Accuracy**: relative error 1e-6, absolute 1e-6 in a logarithm: a point of the flat top of the objective,
    asserted by tests/kernels/test_lmip_accuracy.py.

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, equation (13).

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.pointwise_lip_log_low(0.1, 10.0)), 1)
    -24345.3
    """


def cd_lmip_lip_delta(mu, epsilon, pi_min, /):
    """Best delta(epsilon) of local information privacy, for an input of probability pi_min, under mu nats of
    context-dependent mutual information.

    Parameters
    ----------
    mu, epsilon, pi_min : array_like of float64
        mu >= 0 and epsilon >= 0 in nats, 0 <= pi_min <= 1; 0 stands for inputs without atoms.

    Notes
    -----
    **Accuracy**: relative error 3e-14 for mu >= 1e-300 and mu (1 - pi_min) >= 1e-305, an upper bound for smaller mu >
    0, asserted by tests/kernels/test_lmip_accuracy.py.

    Source: the corrected form of equation (13), csrc/lmip/fp_lmip_lip.h.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.cd_lmip_lip_delta(0.1, 1.0, 0.5)), 12)
    0.132229959924
    """


def cd_lmip_lip_high(mu, epsilon, pi_min, /):
    """The probability of the event overall, in the mechanism that attains `cd_lmip_lip_delta`.

    Parameters
    ----------
    mu, epsilon, pi_min : array_like of float64
        mu >= 0 and epsilon >= 0 in nats, 0 <= pi_min <= 1; 0 stands for inputs without atoms.

    Notes
    -----
    **Accuracy**: relative error 1e-6, absolute 1e-6 in a logarithm: a point of the flat top of the objective,
    asserted by tests/kernels/test_lmip_accuracy.py.

    Source: the corrected form of equation (13), csrc/lmip/fp_lmip_lip.h.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.cd_lmip_lip_high(0.1, 1.0, 0.5)), 6)
    0.142291
    """


def cd_lmip_lip_log_low(mu, epsilon, pi_min, /):
    """Natural logarithm of the probability of the event given that input, where `cd_lmip_lip_delta` is attained.

    Parameters
    ----------
    mu, epsilon, pi_min : array_like of float64
        mu >= 0 and epsilon >= 0 in nats, 0 <= pi_min <= 1; 0 stands for inputs without atoms.

    Notes
    -----
    **Accuracy**: relative error 1e-6, absolute 1e-6 in a logarithm: a point of the flat top of the objective,
    asserted by tests/kernels/test_lmip_accuracy.py.

    Source: the corrected form of equation (13), csrc/lmip/fp_lmip_lip.h.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.cd_lmip_lip_log_low(0.1, 10.0, 0.5)), 1)
    -37677.2
    """


def cd_lmip_lip_saturation(mu, pi_min, /):
    """What `cd_lmip_lip_delta` falls to as epsilon grows; 1 - pi_min once mu reaches the binary entropy of pi_min.

    Parameters
    ----------
    mu, pi_min : array_like of float64
        mu >= 0 in nats, 0 <= pi_min <= 1.

    Notes
    -----
    **Accuracy**: relative error 3e-14 for mu >= 1e-300 and mu (1 - pi_min) >= 1e-305, an upper bound for smaller mu >
    0, asserted by tests/kernels/test_lmip_accuracy.py.

    Source: the corrected form of equation (13), csrc/lmip/fp_lmip_lip.h.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.cd_lmip_lip_saturation(0.1, 0.5)), 12)
    0.13016576907
    """


# Hockey-stick divergences of Gaussian mixtures in one dimension.


def mixture_hockey_stick(w, m, s, v, n, t, epsilon, /):
    """Hockey-stick divergence H_{e^epsilon}(P||Q) of Gaussian mixtures on the line, with bounds.

    Parameters
    ----------
    w, m, s, v, n, t, epsilon : array_like of float64
        Weights, means and standard deviations of P, shape (..., k), and of Q, shape (..., j); epsilon in nats,
        shape (..., e), inf included. Leading axes broadcast. Weights are >= 0, those of 0 are padding, and sum to 1
        within 1e-9; means are at most 1e300 in size, standard deviations between 1e-300 and 1e300.

    Returns
    -------
    float64 array or scalar
        Value, lower and upper bound, shape (..., e). A row of an invalid mixture, or for which memory is
        short, is NaN, and so is the entry of a negative epsilon. Ctrl-C is heard when the call has returned.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds contain the truth, sums of weights that are not 1 included. They are those of
    `fastpriv.hockey_stick_divergence` where that took no closed bounds, wider elsewhere,
    asserted by tests/kernels/test_mixture_ufuncs.py.

    Source: csrc/line/fp_hockey_stick.h.

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, lower, upper = fp.special.mixture_hockey_stick(
    ...     [[0.99, 0.01], [0.9, 0.1]], [0.0, 1.0], [1.0, 1.0], [1.0], [0.0], [1.0], [0.0, 1.0])
    >>> print(upper.round(8))
    [[0.00382925 0.        ]
     [0.03829249 0.00020712]]
    """


def mixture_log_hockey_stick(w, m, s, v, n, t, epsilon, /):
    """Natural logarithm of the hockey-stick divergence of Gaussian mixtures on the line, with bounds.

    Parameters
    ----------
    w, m, s, v, n, t, epsilon : array_like of float64
        Weights, means and standard deviations of P, shape (..., k), and of Q, shape (..., j); epsilon in nats,
        shape (..., e), inf included. Leading axes broadcast. Weights are >= 0, those of 0 are padding, and sum to 1
        within 1e-9; means are at most 1e300 in size, standard deviations between 1e-300 and 1e300.

    Returns
    -------
    float64 array or scalar
        Value, lower and upper bound, shape (..., e). A row of an invalid mixture, or for which memory is
        short, is NaN, and so is the entry of a negative epsilon. Ctrl-C is heard when the call has returned.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds contain the truth, sums of weights that are not 1 included. They are those of
    `fastpriv.hockey_stick_divergence` where that took no closed bounds, wider elsewhere,
    asserted by tests/kernels/test_mixture_ufuncs.py.

    Source: csrc/line/fp_hockey_stick.h.

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, lower, upper = fp.special.mixture_log_hockey_stick([1], [1], [1], [1], [0], [1], [300.0])
    >>> round(float(value[0]), 4)
    -44862.4515
    """


def mixture_total_variation(w, m, s, v, n, t, /):
    """Total variation distance, the hockey-stick divergence at epsilon 0, of Gaussian mixtures on the line.

    Parameters
    ----------
    w, m, s, v, n, t : array_like of float64
        As for ``mixture_hockey_stick``, without epsilon.

    Returns
    -------
    float64 array or scalar
        Value, lower and upper bound, of the broadcast shape of the leading axes. A row of an invalid mixture is NaN.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds contain the truth, sums of weights that are not 1 included. They are those of
    `fastpriv.hockey_stick_divergence` where that took no closed bounds, wider elsewhere,
    asserted by tests/kernels/test_rows_of_integrals.py.

    Source: csrc/line/fp_hockey_stick.h.

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, lower, upper = fp.special.mixture_total_variation([1], [0], [1], [1], [2], [1])
    >>> round(float(value), 12)
    0.682689492137
    """


# Other quantities of Gaussian mixtures in one dimension, as generalised ufuncs.


def mixture_kl(w, m, s, v, n, t, /):
    """Kullback-Leibler divergences KL(P||Q) of Gaussian mixtures in one dimension, with bounds.

    Parameters
    ----------
    w, m, s, v, n, t : array_like of float64
        Weights, means and standard deviations of P on the last axis, and of Q, of any number of components
        each. Weights are not negative and sum to 1 within 1e-9; those of zero are padding. All leading axes broadcast;
        for one standard deviation, pass np.broadcast_to(sigma, w.shape).

    Returns
    -------
    float64 array or scalar
        value, lower and upper bound in nats: three arrays of the broadcast shape of the leading axes, or three scalars.
        ``out=`` takes three arrays.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds are proved, and their distance is at most 1e-12 of the value but for divergences that
    rounding of the weights swamps, and components of as many scales as spend the budget,
    asserted by tests/kernels/test_rows_of_integrals.py.

    Source: trapezoidal rule for one standard deviation, csrc/line/fp_one_sigma_solver.h, or Gauss-Legendre rules on
        panels, csrc/line/fp_quadrature_solver.h; Kullback and Leibler 1951, equation (2.4).

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, lower, upper = fp.special.mixture_kl([0.99, 0.01], [0, 1], [1, 1], [1.0], [0.0], [1.0])
    >>> print(f'{value:.12e}')
    8.381220765083e-05
    """


def mixture_jensen_shannon(w, m, s, v, n, t, /):
    """Jensen-Shannon divergences of Gaussian mixtures in one dimension, with bounds.

    Parameters
    ----------
    w, m, s, v, n, t : array_like of float64
        Weights, means and standard deviations of P on the last axis, and of Q, of any number of components
        each. Weights are not negative and sum to 1 within 1e-9; those of zero are padding. All leading axes broadcast;
        for one standard deviation, pass np.broadcast_to(sigma, w.shape).

    Returns
    -------
    float64 array or scalar
        value, lower and upper bound in nats: three arrays of the broadcast shape of the leading axes, or three scalars.
        ``out=`` takes three arrays.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds are proved, and their distance is at most 1e-12 of the value but for divergences that
    rounding of the weights swamps, and components of as many scales as spend the budget,
    asserted by tests/kernels/test_rows_of_integrals.py.

    Source: trapezoidal rule for one standard deviation, csrc/line/fp_one_sigma_solver.h, or Gauss-Legendre rules on
        panels, csrc/line/fp_quadrature_solver.h; Lin 1991, equation (3.3).

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, lower, upper = fp.special.mixture_jensen_shannon([1.0], [-1.0], [1.0], [1.0], [1.0], [1.0])
    >>> round(float(value), 12)
    0.336830820347
    """


def mixture_renyi(w, m, s, v, n, t, order, /):
    """Renyi divergences of positive orders of Gaussian mixtures in one dimension, with bounds.

    Infinite where the integral diverges; within [0, inf] where doubles do not decide that, for order infinity and
    beyond 1e300.

    Parameters
    ----------
    w, m, s, v, n, t, order : array_like of float64
        Weights, means and standard deviations of P on the last axis, and of Q, of any number of components each.
        Weights are not negative and sum to 1 within 1e-9; those of zero are padding. All leading axes broadcast; for
        one standard deviation, pass np.broadcast_to(sigma, w.shape). order is a number, or its last axis holds orders >
        0 that the leading axes share.

    Returns
    -------
    float64 array or scalar
        value, lower and upper bound in nats: three arrays of the broadcast shape of the leading axes, or three scalars.
        ``out=`` takes three arrays.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds are proved, and their distance is at most 1e-12 of the value but for
    divergences that rounding of the weights swamps, and components of as many scales as spend the budget,
    and orders at which a log p and (a - 1) log q cancel, asserted by tests/kernels/test_rows_of_integrals.py.

    Source: trapezoidal rule for one standard deviation, csrc/line/fp_one_sigma_solver.h, or Gauss-Legendre rules on
        panels, csrc/line/fp_quadrature_solver.h; van Erven and Harremoes 2014, equation (9); Mironov, Talwar and Zhang
        2019, section 3.3.

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, lower, upper = fp.special.mixture_renyi(
    ...     [0.99, 0.01], [0, 1], [1, 1], [1.0], [0.0], [1.0], [2.0, 8.0])
    >>> [f'{x:.8e}' for x in value]
    ['1.71813422e-04', '8.93643908e-04']
    """


def mixture_entropy(w, m, s, /):
    """Differential entropies of Gaussian mixtures in one dimension, with bounds.

    Parameters
    ----------
    w, m, s : array_like of float64
        Weights, means and standard deviations of P on the last axis, of any number of components
        each. Weights are not negative and sum to 1 within 1e-9; those of zero are padding. All leading axes broadcast;
        for one standard deviation, pass np.broadcast_to(sigma, w.shape).

    Returns
    -------
    float64 array or scalar
        value, lower and upper bound in nats: three arrays of the broadcast shape of the leading axes, or three scalars.
        ``out=`` takes three arrays.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds are proved, and their distance is at most 1e-12 (1 + |value|),
    asserted by tests/kernels/test_rows_of_integrals.py.

    Source: trapezoidal rule for one standard deviation, csrc/line/fp_one_sigma_solver.h, or Gauss-Legendre rules on
        panels, csrc/line/fp_quadrature_solver.h; Cover and Thomas 2006, section 8.1.

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, lower, upper = fp.special.mixture_entropy([0.5, 0.5], [-3, 3], [0.5, 0.5])
    >>> round(float(value), 12)
    1.418938530199
    """


def mixture_mutual_information(prior, points, sigma, /):
    """Mutual information of discrete inputs and inputs + N(0, sigma^2) noise, with bounds.

    Parameters
    ----------
    prior, points, sigma : array_like of float64
        Probabilities of the inputs and their values on the last axis, as the weights and means of a mixture are;
        leading axes broadcast, with those of sigma, the standard deviation of the noise.

    Returns
    -------
    float64 array or scalar
        value, lower and upper bound in nats: three arrays of the broadcast shape of the leading axes, or three scalars.
        ``out=`` takes three arrays.
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds are proved, and their distance is at most 1e-12 of the value but for divergences that
    rounding of the weights swamps, and components of as many scales as spend the budget,
    asserted by tests/kernels/test_rows_of_integrals.py.

    Source: trapezoidal rule for one standard deviation, csrc/line/fp_one_sigma_solver.h, or Gauss-Legendre rules on
        panels, csrc/line/fp_quadrature_solver.h; Shannon 1948, section 12.

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, lower, upper = fp.special.mixture_mutual_information([0.5, 0.5], [0, 1], 0.5)
    >>> round(float(value), 12)
    0.336830820347
    """


# The quantities of channels, with bounds.


def channel_capacity(channel, /):
    """Capacity of channels in nats; generalised ufunc of signature (i,o)->(),(),().

    Parameters
    ----------
    channel : array_like of float64
        channel has shape (..., i, o): rows of probabilities, P(output | input), whose sums are 1 within 1e-9.

    Returns
    -------
    float64 array or scalar
        Value, lower and upper bound, three arrays of the broadcast leading shape (scalars without one).
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds hold; their width is 1e-9 nats up to 16 inputs and outputs. Beyond, they are those that the
        uniform input distribution proves, and ``fastpriv.channel_capacity`` is the sharp answer,
        asserted by tests/kernels/test_channel_ufuncs.py.

    Source: R. G. Gallager (1968), theorem 4.5.1; csrc/channel/fp_capacity.h.

    Examples
    --------
    >>> import fastpriv as fp
    >>> import numpy as np
    >>> stack = [np.eye(2), np.eye(2) / 2 + 0.25]
    >>> value, lower, upper = fp.special.channel_capacity(stack)
    >>> value.round(6)
    array([0.693147, 0.130812])
    """


def channel_ldp_epsilon(channel, /):
    """LDP level of channels in nats, the largest log ratio of two cells of a column; signature (i,o)->(),(),().

    Parameters
    ----------
    channel : array_like of float64
        channel has shape (..., i, o): rows of probabilities, P(output | input), whose sums are 1 within 1e-9.

    Returns
    -------
    float64 array or scalar
        Value, lower and upper bound, three arrays of the broadcast leading shape (scalars without one).
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds hold; their width is 1e-15 relative, asserted by tests/kernels/test_channel_ufuncs.py.

    Source: Kasiviswanathan et al. (2011); csrc/channel/fp_channel_quantities.h, the kernel of ``fastpriv.notions``

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.channel_ldp_epsilon([[0.75, 0.25], [0.25, 0.75]])[0]), 12)
    1.098612288668
    """


def channel_maximal_leakage(channel, /):
    """Maximal leakage of channels in nats, log of the sum of the largest cells of the columns.

    It is a generalised ufunc of signature (i,o)->(),(),().

    Parameters
    ----------
    channel : array_like of float64
        channel has shape (..., i, o): rows of probabilities, P(output | input), whose sums are 1 within 1e-9.

    Returns
    -------
    float64 array or scalar
        Value, lower and upper bound, three arrays of the broadcast leading shape (scalars without one).
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds hold; their width is 1e-14 relative, asserted by tests/kernels/test_channel_ufuncs.py.

    Source: Issa, Wagner and Kamath (2020); csrc/channel/fp_channel_quantities.h, the kernel of ``fastpriv.notions``

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(float(fp.special.channel_maximal_leakage([[0.75, 0.25], [0.25, 0.75]])[0]), 12)
    0.405465108108
    """


def channel_mutual_information(prior, channel, /):
    """Mutual information of inputs and outputs in nats; signature (i),(i,o)->(),(),().

    Parameters
    ----------
    prior, channel : array_like of float64
        channel has shape (..., i, o): rows of probabilities, P(output | input), whose sums are 1 within 1e-9.
        prior has shape (..., i): a distribution of the input, 0 or at least 1e-300.

    Returns
    -------
    float64 array or scalar
        Value, lower and upper bound, three arrays of the broadcast leading shape (scalars without one).
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds hold; their width is about 1e-14 relative,
    asserted by tests/kernels/test_channel_ufuncs.py.

    Source: Shannon (1948); csrc/channel/fp_channel_quantities.h, the kernel of ``fastpriv.notions``

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, _, _ = fp.special.channel_mutual_information([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    >>> round(float(value), 12)
    0.130812035941
    """


def channel_bayes_vulnerability(prior, channel, /):
    """Chance of the best guess of the input after the output; signature (i),(i,o)->(),(),().

    Parameters
    ----------
    prior, channel : array_like of float64
        channel has shape (..., i, o): rows of probabilities, P(output | input), whose sums are 1 within 1e-9.
        prior has shape (..., i): a distribution of the input, 0 or at least 1e-300.

    Returns
    -------
    float64 array or scalar
        Value, lower and upper bound, three arrays of the broadcast leading shape (scalars without one).
        NaN outside the domain and for NaN.

    Notes
    -----
    **Accuracy**: the bounds hold; their width is 1e-15 relative, asserted by tests/kernels/test_channel_ufuncs.py.

    Source: G. Smith (2009); csrc/channel/fp_channel_quantities.h, the kernel of ``fastpriv.notions``

    Examples
    --------
    >>> import fastpriv as fp
    >>> value, _, _ = fp.special.channel_bayes_vulnerability([0.2, 0.8], [[0.75, 0.25], [0.25, 0.75]])
    >>> round(float(value), 12)
    0.8
    """


# The compiled modules that have the ufuncs.
_KERNELS = (
    _special, _gaussian_mechanism, _awgn, _binary_channel, _channel_quantities, _sphere, _lmip, _hockey_stick_curves,
    _quadrature,
)
_documentation = {
    name: _with_usual_sections(function.__doc__ or "")
    for name, function in list(globals().items())
    if isinstance(function, FunctionType) and not name.startswith("_")
}
__all__ += _documentation
for _kernel in _KERNELS:
    globals().update(_kernel.ufuncs(_documentation))
    __pyx_capi__ |= _kernel.capsules


def __getattr__(name: str) -> Callable[..., Any]:
    """Functions of the sampled Gaussian by their names before 1.0, whose rate stood before sigma, until 2.0."""
    new = name.removeprefix("sub")
    if not name.startswith("subsampled_gaussian_") or new not in __all__:
        raise AttributeError(f"module 'fastpriv.special' has no attribute {name!r}")
    text = f"fastpriv.special.{name} is {new}, with sigma before rate; the old name ends with version 2.0."
    warnings.warn(text, DeprecationWarning, 2)
    function: Callable[..., Any] = globals()[new]
    if "_noise_" in new:  # of rate, epsilon and delta in both
        return function
    return lambda rate, sigma, level, /, *args, **kwargs: function(sigma, rate, level, *args, **kwargs)


def __dir__() -> list[str]:
    return sorted(__all__)
