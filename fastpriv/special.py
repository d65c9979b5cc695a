"""Special functions as NumPy ufuncs: broadcasting, ``out=``, ``where=``, the GIL released.

Notation: phi and Phi are the density and the distribution function of the standard normal distribution, R(x) =
(1 - Phi(x)) / phi(x) is the Mills ratio. Arguments and results are float64, of any shapes that broadcast; scalars in
give scalars out. Outside its domain a function returns NaN, without a warning. Accuracy is stated in ulps, units in
the last place of the true value, and holds over the whole domain, subnormal numbers and far tails included. Every
instruction set gives the same bits; ``FASTPRIV_ISA=baseline|avx2|avx512`` in the environment forces one.

Compiled code calls the same functions on single numbers: see docs/back_end.md.

Results are bare numbers. ``fastpriv.mechanisms``, ``fastpriv.capacity`` and ``fastpriv.conversions`` check arguments
and return the same quantities with bounds. ``special.pyi`` lists the functions for type checkers.
"""

from __future__ import annotations

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
)  # fmt: skip


def _docstring(
    summary: str, example: str, accuracy: str, source: str, names: tuple[str, ...] = ("x",),
    domain: str = "Real numbers.", result: str = "", test: str = "test_special_accuracy.py",
) -> str:  # fmt: skip
    result = result or "The broadcast shape of the arguments; a scalar if they are scalars."
    return (
        f"{summary}\n\nParameters\n----------\n{', '.join(names)} : array_like of float64\n    {domain}\n\n"
        f"Returns\n-------\nfloat64 array or scalar\n    {result}\n    NaN outside the domain and for NaN.\n\n"
        "Raises\n------\nTypeError\n    If an argument cannot be cast safely to float64.\n\nNotes\n-----\n"
        f"**Accuracy**: {accuracy}, asserted by tests/kernels/{test}.\n\nSource: {source}\n\n"
        f"Examples\n--------\n>>> import fastpriv as fp\n{example}\n"
    )


# How the kernels of the error function compute it; part of their docstrings.
_ROUTE = "fit by exchange to x R(x) on the half-line, tools/fit_coefficients.py; DLMF 7.8.1 for the Mills ratio."

_ELEMENTARY = {
    "exp": _docstring(
        "e^x.", ">>> float(fp.special.exp(0.5))\n1.6487212707001282", "0.85 ulp",
        "Cody-Waite reduction; Muller et al., Handbook of Floating-Point Arithmetic, chapter 11.",
    ),
    "expm1": _docstring(
        "e^x - 1, without cancellation near 0.", ">>> float(fp.special.expm1(1e-20))\n1e-20", "1 ulp",
        "the reduction of `exp`, with 2^k - 1 taken before the tail is added.",
    ),
    "log": _docstring(
        "Natural logarithm.", ">>> float(fp.special.log(10.0))\n2.302585092994046", "0.85 ulp",
        "log((1 + s) / (1 - s)) = 2 artanh(s), DLMF 4.6.4.", domain="Numbers >= 0; log(0) = -inf.",
    ),
    "log1p": _docstring(
        "log(1 + x), without cancellation near 0.", ">>> float(fp.special.log1p(1e-20))\n1e-20", "0.95 ulp",
        "`log` of 1 + x with the rounding error of the sum carried on.", domain="Numbers >= -1; log1p(-1) = -inf.",
    ),
    "erfc": _docstring(
        "Complementary error function, 2 / sqrt(pi) times the integral of exp(-t^2) from x to infinity.",
        ">>> print(f'{fp.special.erfc(20.0):.12e}')\n5.395865611608e-176", "4.5 ulps", "DLMF 7.2.2; " + _ROUTE,
    ),
    "erfcx": _docstring(
        "Scaled complementary error function, exp(x^2) erfc(x); inf below -26.6.",
        ">>> round(float(fp.special.erfcx(1e100)) * 1e100, 12)\n0.564189583548", "3.5 ulps", "DLMF 7.2.3; " + _ROUTE,
    ),
    "mills_ratio": _docstring(
        "Mills ratio of the standard normal distribution, (1 - Phi(x)) / phi(x); inf below -37.7.",
        ">>> round(float(fp.special.mills_ratio(0.0)), 12)\n1.253314137316", "4.5 ulps", _ROUTE,
    ),
    "ndtr": _docstring(
        "Distribution function Phi of the standard normal distribution.", ">>> float(fp.special.ndtr(0.0))\n0.5",
        "4.5 ulps", "phi(x) R(x) with x^2 in two terms; " + _ROUTE,
    ),
    "log_ndtr": _docstring(
        "log Phi(x); finite down to x = -1.89e154.", ">>> float(fp.special.log_ndtr(-2e10))\n-2e+20", "6.5 ulps",
        "-x^2/2 + log(R(-x) / sqrt(2 pi)) left of 0, log1p(-Phi(-x)) right of it; " + _ROUTE,
    ),
    "log1mexp": _docstring(
        "log(1 - e^x).", ">>> round(float(fp.special.log1mexp(-1e-300)), 10)\n-690.7755278982", "2 ulps",
        "log(-expm1(x)) above -log 2, log1p(-e^x) below; Maechler (2012), equation (7).",
        domain="Numbers <= 0; log1mexp(0) = -inf.",
    ),
    "logaddexp": _docstring(
        "log(e^x + e^y).", ">>> float(fp.special.logaddexp(-1e5, -1e5))\n-99999.30685281944",
        "one ulp of the result and two ulps of its excess over max(x, y)", "max(x, y) + log1p(exp(-|x - y|)).",
        names=("x", "y"),
    ),
    "ndtr_difference": _docstring(
        "Phi(b) - Phi(a) without cancellation, in either tail, for ends however close; antisymmetric.",
        ">>> print(f'{fp.special.ndtr_difference(30.0, 30.0 + 2.0**-48):.12e}')\n5.235442781094e-211",
        "6 ulps, for a and b as they are given",
        "phi(m) sum of 2 He_2j(m) h^(2j+1) / (2j+1)! about the middle m, h = (b - a)/2 (DLMF 18.12.16), for close "
        "ends;\n    phi(a) R(a) - phi(b) R(b) or 1 - phi(a) R(-a) - phi(b) R(b) otherwise.",
        names=("a", "b"),
    ),
    "log_ndtr_difference": _docstring(
        "log(Phi(b) - Phi(a)), a < b; -inf for a = b.",
        ">>> float(fp.special.log_ndtr_difference(1e100, float('inf')))\n-5e+199",
        "6.5 ulps, for a and b as they are given", "the logarithm of what `ndtr_difference` computes, phi kept apart.",
        names=("a", "b"), domain="Real numbers, a <= b.",
    ),
    "log_sum_exp": _docstring(
        "log of the sum of e^x over an axis, the last by default; -inf for an empty axis.",
        ">>> float(fp.special.log_sum_exp([[-1e5, -1e5], [0.0, -800.0]], axis=1)[0])\n-99999.30685281944",
        "one ulp of the result and 2 + n/16 ulps of its excess over the maximum of n terms",
        "m + log1p(sum without the maximum m), in 8 lanes of fixed order.",
        domain="At least one-dimensional; ``axis=`` and ``keepdims=`` choose the axis and keep it.",
        result="The shape of x without the axis.",
    ),
}  # fmt: skip

# The privacy curve of the Gaussian mechanism.
_CURVE = (
    "delta = Phi(r - epsilon/(2r)) - e^epsilon Phi(-r - epsilon/(2r)), r = l2 sensitivity / (2 sigma); Balle and Wang "
    "(2018),\n    theorem 8."
)
_R, _OUT_OF_R = ("r", "epsilon"), "r >= 0 and epsilon >= 0, inf included."
_CURVE_TEST, _INVERSE_TEST = "test_gaussian_mechanism.py", "test_gaussian_inverse.py"
# Accuracy of the inverses in epsilon, as the docstrings state it.
_EPSILON_CLOSE = (
    "within a relative 1e-13 of the true inverse, or within what a relative change of 2e-14 in delta\n(above 1/2: in "
    "1 - delta) does, whichever is more; the latter rules where delta is close to the curve at epsilon = 0"
)
# The same where delta is passed as its logarithm.
_EPSILON_LOG_CLOSE = (
    "within a relative 1e-13 of the true inverse, or within what a change of 4e-14 + 4e-15 |log_delta| in\nlog_delta "
    "(above -log 2: in log(1 - delta)) does, whichever is more"
)
# Accuracy of the inverses in r, as the docstrings state it.
_NOISE_CLOSE = "within a relative 1e-13 of the true least ratio"
_NOISE_LOG_CLOSE = "within a relative 1e-13 + 4e-15 |log_delta| of the true least ratio"  # the same for log_delta

_SUBSAMPLED = ("rate", "sigma", "epsilon")  # arguments of the subsampled Gaussian mechanism
# Their domain in the docstrings.
_SUBSAMPLED_DOMAIN = (
    "Sampling rate in [0, 1]; sigma > 0, standard deviation over sensitivity; epsilon >= 0 in nats, inf included."
)
# Results of functions with bounds, in the docstrings.
_BOUNDED_RESULT = "Value, lower and upper bound: three arrays of the broadcast shape, or three scalars."
# Accuracy of the subsampled Gaussian mechanism, as the docstrings state it.
_SUBSAMPLED_CLOSE = (
    "the bounds contain the truth; for sigma from 1e-4 to 1e9 they are within 4e-14 (1 + |log delta|) of each\n"
    "other, relative to delta, where P's weight at the point that gains does not cancel (in the add direction:\n"
    "epsilon within 1e-10 of the largest one at which delta is positive)"
)
# Its formula and source.
_SUBSAMPLED_SOURCE = (
    "A delta(log(B / A)) with the curve of the Gaussian mechanism and the coefficients of the two normal\n"
    "    densities in p - e^epsilon q, csrc/gauss/fp_two_points.h; Balle, Barthe and Gaboardi (2018)."
)
# Accuracy of its inverses.
_SUBSAMPLED_INVERSE_CLOSE = (
    "the bounds contain the truth: at ``upper`` the true delta is at most the target, at ``lower`` it is above it\n"
    "(or ``lower`` is 0). For sigma from 1e-4 to 1e9 they are within a relative 1e-10 of each other, or, where delta\n"
    "hardly depends on epsilon, as near 0, delta at both differs by less than 1e-13 (1 + |log delta|) of itself"
)
# How the inverses are computed.
_SUBSAMPLED_INVERSE_SOURCE = (
    "the inverse of the Gaussian mechanism, and bounds of the curve on both sides of it,\n"
    "    csrc/gauss/fp_subsampled_inverse_solver.h; Balle, Barthe and Gaboardi (2018)."
)
_SUBSAMPLED_EPSILON = ("rate", "sigma", "delta")  # arguments of the least epsilon
# Their domain in the docstrings.
_SUBSAMPLED_EPSILON_DOMAIN = (
    "Sampling rate in [0, 1]; sigma > 0, standard deviation over sensitivity; delta in [0, 1]."
)
_SUBSAMPLED_NOISE = ("rate", "epsilon", "delta")  # arguments of the least noise
# Their domain in the docstrings.
_SUBSAMPLED_NOISE_DOMAIN = "Sampling rate in [0, 1]; epsilon >= 0 in nats, inf included; delta in [0, 1]."
# The two directions.
_REMOVE = "H_{e^epsilon}((1 - rate) N(0, sigma^2) + rate N(1, sigma^2) || N(0, sigma^2))"  # a record less
_ADD = "H_{e^epsilon}(N(0, sigma^2) || (1 - rate) N(0, sigma^2) + rate N(1, sigma^2))"  # a record more

_GAUSSIAN = {
    "gaussian_delta": _docstring(
        "Privacy curve delta(epsilon) of the Gaussian mechanism; 0 for r = 0 or epsilon = inf, 1 for r = inf.",
        ">>> round(float(fp.special.gaussian_delta(0.5, 1.0)), 12)\n0.126936737507",
        "relative error 4e-15 where delta is a normal number", _CURVE, _R, _OUT_OF_R, test=_CURVE_TEST,
    ),
    "gaussian_log_delta": _docstring(
        "Natural logarithm of the privacy curve; -inf only where delta = 0 or below the most negative double.",
        ">>> round(float(fp.special.gaussian_log_delta(0.5, 100.0)), 8)\n-4960.25455382",
        "relative error 4e-15 for r in [1e-300, 1e300] and epsilon in [0, 1e300]", _CURVE, _R, _OUT_OF_R,
        test=_CURVE_TEST,
    ),
    "gaussian_epsilon": _docstring(
        "Least epsilon for a target delta, on the safe side: the true delta of the result is at most the target.\n\n"
        "0 where epsilon = 0 meets delta, inf where delta = 0 and r > 0.",
        ">>> round(float(fp.special.gaussian_epsilon(0.25, 1e-5)), 10)\n1.9930914044",
        _EPSILON_CLOSE, _CURVE, ("r", "delta"), "r >= 0, 0 <= delta <= 1.", test=_INVERSE_TEST,
    ),
    "gaussian_epsilon_from_log_delta": _docstring(
        "`gaussian_epsilon` from the natural logarithm of delta.",
        ">>> round(float(fp.special.gaussian_epsilon_from_log_delta(0.125, -2302.585)), 9)\n16.956989164",
        _EPSILON_LOG_CLOSE, _CURVE, ("r", "log_delta"), "r >= 0, log_delta <= 0.", test=_INVERSE_TEST,
    ),
    "gaussian_epsilon_below": _docstring(
        "Lower bound of the least epsilon for a target delta: its true delta is at least the target, or it is 0.",
        ">>> round(float(fp.special.gaussian_epsilon_below(0.25, 1e-5)), 10)\n1.9930914044",
        _EPSILON_CLOSE, _CURVE, ("r", "delta"), "r >= 0, 0 <= delta <= 1.", test=_INVERSE_TEST,
    ),
    "gaussian_epsilon_below_from_log_delta": _docstring(
        "`gaussian_epsilon_below` from the natural logarithm of delta.",
        ">>> round(float(fp.special.gaussian_epsilon_below_from_log_delta(0.125, -2302.585)), 9)\n16.956989164",
        _EPSILON_LOG_CLOSE, _CURVE, ("r", "log_delta"), "r >= 0, log_delta <= 0.", test=_INVERSE_TEST,
    ),
    "gaussian_noise": _docstring(
        "Least sigma / sensitivity that gives (epsilon, delta) privacy, on the safe side.\n\n"
        "inf where delta = 0, 0 where delta = 1 or epsilon = inf.",
        ">>> round(float(fp.special.gaussian_noise(1.0, 1e-5)), 10)\n3.7306316348",
        _NOISE_CLOSE, _CURVE, ("epsilon", "delta"), "epsilon >= 0, 0 <= delta <= 1.", test=_INVERSE_TEST,
    ),
    "gaussian_noise_from_log_delta": _docstring(
        "`gaussian_noise` from the natural logarithm of delta; inf where the ratio exceeds the largest double.",
        ">>> round(float(fp.special.gaussian_noise_from_log_delta(1.0, -2302.585)), 8)\n67.66862658",
        _NOISE_LOG_CLOSE, _CURVE, ("epsilon", "log_delta"), "epsilon >= 0, log_delta <= 0.", test=_INVERSE_TEST,
    ),
    "gaussian_noise_below": _docstring(
        "Lower bound of the least sigma / sensitivity for (epsilon, delta): its true delta is at least the target.",
        ">>> round(float(fp.special.gaussian_noise_below(1.0, 1e-5)), 10)\n3.7306316348",
        _NOISE_CLOSE, _CURVE, ("epsilon", "delta"), "epsilon >= 0, 0 <= delta <= 1.", test=_INVERSE_TEST,
    ),
    "gaussian_noise_below_from_log_delta": _docstring(
        "`gaussian_noise_below` from the natural logarithm of delta.",
        ">>> round(float(fp.special.gaussian_noise_below_from_log_delta(1.0, -2302.585)), 8)\n67.66862658",
        _NOISE_LOG_CLOSE, _CURVE, ("epsilon", "log_delta"), "epsilon >= 0, log_delta <= 0.", test=_INVERSE_TEST,
    ),
    "subsampled_gaussian_delta_remove": _docstring(
        "Privacy curve of the Poisson-subsampled Gaussian mechanism when a record is removed:\n\n" + _REMOVE + ".",
        ">>> value, lower, upper = fp.special.subsampled_gaussian_delta_remove(0.01, 1.0, [0.0, 1.0])\n"
        ">>> print(f'{value[1]:.12e}')\n2.732009261546e-09",
        _SUBSAMPLED_CLOSE, _SUBSAMPLED_SOURCE, _SUBSAMPLED, _SUBSAMPLED_DOMAIN, _BOUNDED_RESULT,
        test="test_two_points.py",
    ),
    "subsampled_gaussian_delta_add": _docstring(
        "Privacy curve of the Poisson-subsampled Gaussian mechanism when a record is added:\n\n" + _ADD + ".",
        ">>> value, lower, upper = fp.special.subsampled_gaussian_delta_add(0.01, 1.0, [0.0, 0.005])\n"
        ">>> print(value.round(8))\n[0.00382925 0.00096314]",
        _SUBSAMPLED_CLOSE, _SUBSAMPLED_SOURCE, _SUBSAMPLED, _SUBSAMPLED_DOMAIN, _BOUNDED_RESULT,
        test="test_two_points.py",
    ),
    "subsampled_gaussian_log_delta_remove": _docstring(
        "Natural logarithm of `subsampled_gaussian_delta_remove`, far below 1e-300 too, with bounds.",
        ">>> value, lower, upper = fp.special.subsampled_gaussian_log_delta_remove(0.01, 1.0, 100.0)\n"
        ">>> round(float(value), 8)\n-5433.76797565",
        _SUBSAMPLED_CLOSE, _SUBSAMPLED_SOURCE, _SUBSAMPLED, _SUBSAMPLED_DOMAIN, _BOUNDED_RESULT,
        test="test_two_points.py",
    ),
    "subsampled_gaussian_log_delta_add": _docstring(
        "Natural logarithm of `subsampled_gaussian_delta_add`, far below 1e-300 too, with bounds.",
        ">>> value, lower, upper = fp.special.subsampled_gaussian_log_delta_add(0.5, 1.0, 0.69)\n"
        ">>> round(float(value), 8)\n-24.09168574",
        _SUBSAMPLED_CLOSE, _SUBSAMPLED_SOURCE, _SUBSAMPLED, _SUBSAMPLED_DOMAIN, _BOUNDED_RESULT,
        test="test_two_points.py",
    ),
    "subsampled_gaussian_epsilon_remove": _docstring(
        "Least epsilon of the Poisson-subsampled Gaussian mechanism for a target delta when a record is removed.\n\n"
        "0 where epsilon = 0 meets delta.",
        ">>> value, lower, upper = fp.special.subsampled_gaussian_epsilon_remove(0.01, 1.0, 1e-5)\n"
        ">>> round(float(value), 10)\n0.1994504478",
        _SUBSAMPLED_INVERSE_CLOSE, _SUBSAMPLED_INVERSE_SOURCE, _SUBSAMPLED_EPSILON, _SUBSAMPLED_EPSILON_DOMAIN,
        _BOUNDED_RESULT, test="test_subsampled_inverse.py",
    ),
    "subsampled_gaussian_epsilon_add": _docstring(
        "Least epsilon of the Poisson-subsampled Gaussian mechanism for a target delta when a record is added.\n\n"
        "0 where epsilon = 0 meets delta.",
        ">>> value, lower, upper = fp.special.subsampled_gaussian_epsilon_add(0.01, 1.0, 1e-5)\n"
        ">>> round(float(value), 10)\n0.0090541997",
        _SUBSAMPLED_INVERSE_CLOSE, _SUBSAMPLED_INVERSE_SOURCE, _SUBSAMPLED_EPSILON, _SUBSAMPLED_EPSILON_DOMAIN,
        _BOUNDED_RESULT, test="test_subsampled_inverse.py",
    ),
    "subsampled_gaussian_noise_remove": _docstring(
        "Least sigma / sensitivity that gives (epsilon, delta) privacy after Poisson subsampling, a record removed.\n\n"
        "0 where any noise does.",
        ">>> value, lower, upper = fp.special.subsampled_gaussian_noise_remove(0.01, 1.0, 1e-5)\n"
        ">>> round(float(value), 10)\n0.6737928925",
        _SUBSAMPLED_INVERSE_CLOSE, _SUBSAMPLED_INVERSE_SOURCE, _SUBSAMPLED_NOISE, _SUBSAMPLED_NOISE_DOMAIN,
        _BOUNDED_RESULT, test="test_subsampled_inverse.py",
    ),
    "subsampled_gaussian_noise_add": _docstring(
        "Least sigma / sensitivity that gives (epsilon, delta) privacy after Poisson subsampling, a record added.\n\n"
        "0 where any noise does.",
        ">>> value, lower, upper = fp.special.subsampled_gaussian_noise_add(0.01, 0.005, 1e-5)\n"
        ">>> round(float(value), 10)\n3.2195055809",
        _SUBSAMPLED_INVERSE_CLOSE, _SUBSAMPLED_INVERSE_SOURCE, _SUBSAMPLED_NOISE, _SUBSAMPLED_NOISE_DOMAIN,
        _BOUNDED_RESULT, test="test_subsampled_inverse.py",
    ),
}  # fmt: skip

# The capacity under a peak-power constraint.
_PEAK_POWER = {
    "awgn_capacity": _docstring(
        "Capacity in nats of Y = X + N(0, I_d) with ||X|| <= radius, with bounds.\n\n"
        "The radius is the amplitude over the standard deviation of the noise.",
        ">>> value, lower, upper = fp.special.awgn_capacity([1, 2, 4], 3.0, 1e-9)\n>>> print(value.round(6))\n"
        "[0.881361 1.50341  2.274542]",
        "the bounds contain the truth. Their relative width is at most rtol for radius up to 10 sqrt(dimension) (for\n"
        "dimension 1 up to 25), and grows beyond, as for ``fastpriv.awgn_capacity``,",
        "csrc/awgn/fp_awgn.h; Smith (1971), Shamai and Bar-David (1995).", ("dimension", "radius", "rtol"),
        "dimension a whole number from 1 to 1e6, radius >= 0 and finite, rtol from 1e-13 to 0.1.", _BOUNDED_RESULT,
        test="test_awgn_ufunc.py",
    ),
}  # fmt: skip

# Binary channels.
_UNIT, _CHANNEL_TEST = "Numbers in [0, 1].", "test_binary_channel.py"
# The formula and its source, for the docstrings.
_BAC = (
    "the maximum over the input weight of two divergences formed from 1 - a - b, csrc/channel/fp_binary_channel.h;\n"
    "    equation (11) of the mutual-information privacy paper without its 0/0."
)

_BINARY_CHANNEL = {
    "binary_entropy": _docstring(
        "Binary entropy -p log p - (1-p) log(1-p), in nats.",
        ">>> print(f'{fp.special.binary_entropy(1e-300):.12e}')\n6.917755278982e-298", "relative error 1e-15",
        "Shannon (1948), section 6.", ("p",), _UNIT, test=_CHANNEL_TEST,
    ),
    "binary_entropy_with_complement": _docstring(
        "Binary entropy in nats; complement is 1 - p, for p closer to 1 than doubles resolve.",
        ">>> print(f'{fp.special.binary_entropy_with_complement(1.0, 1e-300):.12e}')\n6.917755278982e-298",
        "relative error 1e-15", "Shannon (1948), section 6.", ("p", "complement"), _UNIT, test=_CHANNEL_TEST,
    ),
    "bac_capacity": _docstring(
        "Capacity in nats of the binary asymmetric channel, a = P(Y=1 | X=0), b = P(Y=0 | X=1); 0 where a + b = 1.",
        ">>> round(float(fp.special.bac_capacity(0.0, 0.5)), 12)\n0.223143551314",
        "relative error 4e-15 on the whole square", _BAC, ("a", "b"), _UNIT, test=_CHANNEL_TEST,
    ),
    "bac_capacity_with_complements": _docstring(
        "`bac_capacity` for crossover probabilities closer to 1 than doubles resolve, each with its complement.",
        ">>> print(f'{fp.special.bac_capacity_with_complements(1.0, 1e-20, 0.0, 1.0):.6e}')\n3.678794e-21",
        "relative error 4e-15", _BAC, ("a", "complement_a", "b", "complement_b"), _UNIT, test=_CHANNEL_TEST,
    ),
}  # fmt: skip

# The moment generating function of a uniform point on a sphere, of which the capacity of vector channels is made.
_SPHERE = (
    "G_d(x) = Gamma(d/2) (2/x)^(d/2-1) I_{d/2-1}(x), DLMF 10.32.2; Amos' (1974) bound of the mean, integrated, and a "
    "polynomial\n    for the rest, csrc/special/fp_sphere.h."
)
_SPHERE_NAMES = ("dimension", "x")  # arguments
_SPHERE_DOMAIN = "dimension a whole number from 1 to 1e9, x >= 0, inf included."  # domain in the docstrings
_SPHERE_TEST = "test_sphere.py"  # file with the test of the accuracy

_UNIFORM_SPHERE = {
    "sphere_log_mgf": _docstring(
        "Natural logarithm of G_d(x) = E exp(x U), U the first coordinate of a uniform point on the unit sphere of R^d."
        "\n\nG_1 = cosh x, G_2 = I_0(x), G_3 = sinh(x) / x; log G_d(x) is x^2 / (2 d) for small x.",
        ">>> print(f'{fp.special.sphere_log_mgf(3, 1e-10):.12e}')\n1.666666666667e-21",
        "relative error 6.5e-16 where the result is above 1e-290", _SPHERE, _SPHERE_NAMES, _SPHERE_DOMAIN,
        test=_SPHERE_TEST,
    ),
    "sphere_log_mgf_scaled": _docstring(
        "`sphere_log_mgf` less x, without cancellation for large x.",
        ">>> round(float(fp.special.sphere_log_mgf_scaled(1, 1e12)), 12)\n-0.69314718056",
        "absolute error 5e-16 (1 + |result|)", _SPHERE, _SPHERE_NAMES, _SPHERE_DOMAIN, test=_SPHERE_TEST,
    ),
    "sphere_mean": _docstring(
        "Mean of the first coordinate of a point on the unit sphere of R^d with density proportional to exp(x U).\n\n"
        "It is the derivative of `sphere_log_mgf`, the ratio I_{d/2}(x) / I_{d/2-1}(x) of Bessel functions.",
        ">>> round(float(fp.special.sphere_mean(3, 2.0)), 12)\n0.537314720728",
        "relative error 5e-16 where the result is a normal number", _SPHERE, _SPHERE_NAMES, _SPHERE_DOMAIN,
        test=_SPHERE_TEST,
    ),
}  # fmt: skip

# Mutual-information privacy.
_LMIP_TEST = "test_lmip_accuracy.py"
_LMIP = "mu >= 0 and epsilon >= 0 in nats, inf included."  # domain of the functions without pi_min
# Domain of the functions with pi_min.
_LMIP_PI_MIN = "mu >= 0 and epsilon >= 0 in nats, 0 <= pi_min <= 1; 0 stands for inputs without atoms."
_CORRECTED = "the corrected form of equation (13), csrc/lmip/fp_lmip_lip.h."  # source of the functions with pi_min
_PAPER = "Ngo, Oestman and Graell i Amat, On local mutual-information privacy, "  # source; the equation follows
# Accuracy of the extremal pairs.
_PAIR = "relative error 1e-6, absolute 1e-6 in a logarithm: a point of the flat top of the objective"
# Accuracy of the functions without pi_min.
_SHARP = "relative error 3e-15 for mu >= 1e-300, an upper bound for smaller mu > 0"

# Accuracy of the functions with pi_min, in the words of the docstrings.
_SHARP_PI_MIN = "relative error 3e-14 for mu >= 1e-300 and mu (1 - pi_min) >= 1e-305, an upper bound for smaller mu > 0"

_LOCAL_INFORMATION = {
    "ci_lmip_ldp_delta": _docstring(
        "Best delta(epsilon) of local differential privacy under mu nats of context-independent mutual information.",
        ">>> round(float(fp.special.ci_lmip_ldp_delta(0.1, 1.0)), 12)\n0.276403505708",
        _SHARP, _PAPER + "equation (10).", ("mu", "epsilon"), _LMIP, test=_LMIP_TEST,
    ),
    "ci_lmip_ldp_high": _docstring(
        "The larger probability p1 of the pair that attains `ci_lmip_ldp_delta`.",
        ">>> round(float(fp.special.ci_lmip_ldp_high(0.1, 1.0)), 6)\n0.342653",
        _PAIR, _PAPER + "equation (10).", ("mu", "epsilon"), _LMIP, test=_LMIP_TEST,
    ),
    "ci_lmip_ldp_log_low": _docstring(
        "Natural logarithm of the smaller probability p0 of the pair that attains `ci_lmip_ldp_delta`.",
        ">>> round(float(fp.special.ci_lmip_ldp_log_low(0.1, 10.0)), 1)\n-15636.0",
        _PAIR, _PAPER + "equation (10).", ("mu", "epsilon"), _LMIP, test=_LMIP_TEST,
    ),
    "ci_lmip_ldp_saturation": _docstring(
        "What `ci_lmip_ldp_delta` falls to as epsilon grows: the p with h(p) / p = -log(e^mu - 1).",
        ">>> round(float(fp.special.ci_lmip_ldp_saturation(0.1)), 12)\n0.24938626687",
        _SHARP, _PAPER + "below equation (12).", ("mu",), "mu >= 0 in nats.", test=_LMIP_TEST,
    ),
    "pointwise_lip_delta": _docstring(
        "Best delta(epsilon) of local information privacy under KL(P_x || P_M) <= mu nats for every x.",
        ">>> round(float(fp.special.pointwise_lip_delta(0.1, 1.0)), 12)\n0.100917736517",
        _SHARP, _PAPER + "equation (13).", ("mu", "epsilon"), _LMIP, test=_LMIP_TEST,
    ),
    "pointwise_lip_high": _docstring(
        "The larger probability p0 of the pair that attains `pointwise_lip_delta`.",
        ">>> round(float(fp.special.pointwise_lip_high(0.1, 1.0)), 6)\n0.121387",
        _PAIR, _PAPER + "equation (13).", ("mu", "epsilon"), _LMIP, test=_LMIP_TEST,
    ),
    "pointwise_lip_log_low": _docstring(
        "Natural logarithm of the smaller probability p1 of the pair that attains `pointwise_lip_delta`.",
        ">>> round(float(fp.special.pointwise_lip_log_low(0.1, 10.0)), 1)\n-24345.3",
        _PAIR, _PAPER + "equation (13).", ("mu", "epsilon"), _LMIP, test=_LMIP_TEST,
    ),
    "cd_lmip_lip_delta": _docstring(
        "Best delta(epsilon) of local information privacy, for an input of probability pi_min, under mu nats of\n"
        "context-dependent mutual information.",
        ">>> round(float(fp.special.cd_lmip_lip_delta(0.1, 1.0, 0.5)), 12)\n0.132229959924",
        _SHARP_PI_MIN, _CORRECTED, ("mu", "epsilon", "pi_min"), _LMIP_PI_MIN, test=_LMIP_TEST,
    ),
    "cd_lmip_lip_high": _docstring(
        "The probability of the event overall, in the mechanism that attains `cd_lmip_lip_delta`.",
        ">>> round(float(fp.special.cd_lmip_lip_high(0.1, 1.0, 0.5)), 6)\n0.142291",
        _PAIR, _CORRECTED, ("mu", "epsilon", "pi_min"), _LMIP_PI_MIN, test=_LMIP_TEST,
    ),
    "cd_lmip_lip_log_low": _docstring(
        "Natural logarithm of the probability of the event given that input, where `cd_lmip_lip_delta` is attained.",
        ">>> round(float(fp.special.cd_lmip_lip_log_low(0.1, 10.0, 0.5)), 1)\n-37677.2",
        _PAIR, _CORRECTED, ("mu", "epsilon", "pi_min"), _LMIP_PI_MIN, test=_LMIP_TEST,
    ),
    "cd_lmip_lip_saturation": _docstring(
        "What `cd_lmip_lip_delta` falls to as epsilon grows; 1 - pi_min once mu reaches the binary entropy of pi_min.",
        ">>> round(float(fp.special.cd_lmip_lip_saturation(0.1, 0.5)), 12)\n0.13016576907",
        _SHARP_PI_MIN, _CORRECTED, ("mu", "pi_min"),
        "mu >= 0 in nats, 0 <= pi_min <= 1.", test=_LMIP_TEST,
    ),
}  # fmt: skip

# Arguments of functions of two mixtures.
_PAIR_OF_MIXTURES = ("w", "m", "s", "v", "n", "t", "epsilon")
# Their domain in the docstrings.
_PAIR_DOMAIN = (
    "Weights, means and standard deviations of P, shape (..., k), and of Q, shape (..., j); epsilon in nats,\n"
    "    shape (..., e), inf included. Leading axes broadcast. Weights are >= 0, those of 0 are padding, and sum to 1\n"
    "    within 1e-9; means are at most 1e300 in size, standard deviations between 1e-300 and 1e300."
)
# Results of functions of two mixtures, in the docstrings.
_PAIR_RESULT = (
    "Value, lower and upper bound, shape (..., e). A row of an invalid mixture, or for which memory is\n"
    "    short, is NaN, and so is the entry of a negative epsilon. Ctrl-C is heard when the call has returned."
)
# Accuracy of functions of two mixtures, as the docstrings state it.
_PAIR_CLOSE = (
    "the bounds contain the truth, sums of weights that are not 1 included. They are those of\n"
    "`fastpriv.hockey_stick_divergence` where that took no closed bounds, wider elsewhere"
)

_MIXTURES = {
    "mixture_hockey_stick": _docstring(
        "Hockey-stick divergence H_{e^epsilon}(P||Q) of Gaussian mixtures on the line, with bounds.",
        ">>> value, lower, upper = fp.special.mixture_hockey_stick(\n"
        "...     [[0.99, 0.01], [0.9, 0.1]], [0.0, 1.0], [1.0, 1.0], [1.0], [0.0], [1.0], [0.0, 1.0])\n"
        ">>> print(upper.round(8))\n[[0.00382925 0.        ]\n [0.03829249 0.00020712]]",
        _PAIR_CLOSE, "csrc/line/fp_hockey_stick.h.", _PAIR_OF_MIXTURES, _PAIR_DOMAIN, _PAIR_RESULT,
        test="test_mixture_ufuncs.py",
    ),
    "mixture_log_hockey_stick": _docstring(
        "Natural logarithm of the hockey-stick divergence of Gaussian mixtures on the line, with bounds.",
        ">>> value, lower, upper = fp.special.mixture_log_hockey_stick([1], [1], [1], [1], [0], [1], [300.0])\n"
        ">>> round(float(value[0]), 4)\n-44862.4515",
        _PAIR_CLOSE, "csrc/line/fp_hockey_stick.h.", _PAIR_OF_MIXTURES, _PAIR_DOMAIN, _PAIR_RESULT,
        test="test_mixture_ufuncs.py",
    ),
    "mixture_total_variation": _docstring(
        "Total variation distance, the hockey-stick divergence at epsilon 0, of Gaussian mixtures on the line.",
        ">>> value, lower, upper = fp.special.mixture_total_variation([1], [0], [1], [1], [2], [1])\n"
        ">>> round(float(value), 12)\n0.682689492137",
        _PAIR_CLOSE, "csrc/line/fp_hockey_stick.h.", _PAIR_OF_MIXTURES[:-1],
        "As for ``mixture_hockey_stick``, without epsilon.",
        "Value, lower and upper bound, of the broadcast shape of the leading axes. A row of an invalid mixture is NaN.",
        test="test_rows_of_integrals.py",
    ),
}  # fmt: skip

# Quantities of Gaussian mixtures in one dimension, as generalised ufuncs.
_INTEGRAL_NAMES = ("w", "m", "s", "v", "n", "t")  # arguments
# Domain in the docstrings.
_INTEGRAL_DOMAIN = (
    "Weights, means and standard deviations of P on the last axis{other}, of any number of components\n    each. "
    "Weights are not negative and sum to 1 within 1e-9; those of zero are padding. All leading axes broadcast;\n    "
    "for one standard deviation, pass np.broadcast_to(sigma, w.shape).{more}"
)
_INTEGRAL_PAIR_DOMAIN = _INTEGRAL_DOMAIN.format(other=", and of Q", more="")  # of divergences
# The results.
_INTEGRAL_RESULT = (
    "value, lower and upper bound in nats: three arrays of the broadcast shape of the leading axes, or three "
    "scalars.\n    ``out=`` takes three arrays."
)
# Accuracy in the docstrings.
_INTEGRAL_ACCURACY = (
    "the bounds are proved, and their distance is at most 1e-12 of the value but for\ndivergences that rounding of the "
    "weights swamps, and components of as many scales as spend the budget,"
)
_INTEGRAL_TEST = "test_rows_of_integrals.py"  # file with the test of the accuracy
# How it is computed, and the source.
_INTEGRAL_SOURCE = (
    "trapezoidal rule for one standard deviation, csrc/line/fp_one_sigma_solver.h, or Gauss-Legendre rules on panels,\n"
    "    csrc/line/fp_quadrature_solver.h; {}."
)

_MIXTURE_INTEGRALS = {
    "mixture_kl": _docstring(
        "Kullback-Leibler divergences KL(P||Q) of Gaussian mixtures in one dimension, with bounds.",
        ">>> value, lower, upper = fp.special.mixture_kl([0.99, 0.01], [0, 1], [1, 1], [1.0], [0.0], [1.0])\n"
        ">>> print(f'{value:.12e}')\n8.381220765083e-05",
        _INTEGRAL_ACCURACY, _INTEGRAL_SOURCE.format("Kullback and Leibler 1951, equation (2.4)"), _INTEGRAL_NAMES,
        _INTEGRAL_PAIR_DOMAIN, _INTEGRAL_RESULT, test=_INTEGRAL_TEST,
    ),
    "mixture_jensen_shannon": _docstring(
        "Jensen-Shannon divergences of Gaussian mixtures in one dimension, with bounds.",
        ">>> value, lower, upper = fp.special.mixture_jensen_shannon([1.0], [-1.0], [1.0], [1.0], [1.0], [1.0])\n"
        ">>> round(float(value), 12)\n0.336830820347",
        _INTEGRAL_ACCURACY, _INTEGRAL_SOURCE.format("Lin 1991, equation (3.3)"), _INTEGRAL_NAMES, _INTEGRAL_PAIR_DOMAIN,
        _INTEGRAL_RESULT, test=_INTEGRAL_TEST,
    ),
    "mixture_renyi": _docstring(
        "Renyi divergences of positive orders of Gaussian mixtures in one dimension, with bounds.\n\n"
        "Infinite where the integral diverges; within [0, inf] where doubles do not decide that, for order infinity "
        "and beyond\n1e300.",
        ">>> value, lower, upper = fp.special.mixture_renyi(\n"
        "...     [0.99, 0.01], [0, 1], [1, 1], [1.0], [0.0], [1.0], [2.0, 8.0])\n"
        ">>> [f'{x:.8e}' for x in value]\n['1.71813422e-04', '8.93643908e-04']",
        _INTEGRAL_ACCURACY + "\nand orders at which a log p and (a - 1) log q cancel,",
        _INTEGRAL_SOURCE.format(
            "van Erven and Harremoes 2014, equation (9);\n    Mironov, Talwar and Zhang 2019, section 3.3"
        ),
        (*_INTEGRAL_NAMES, "order"),
        _INTEGRAL_DOMAIN.format(
            other=", and of Q",
            more=" order is a number, or its last axis holds orders\n    > 0 that the leading axes share.",
        ),
        _INTEGRAL_RESULT, test=_INTEGRAL_TEST,
    ),
    "mixture_entropy": _docstring(
        "Differential entropies of Gaussian mixtures in one dimension, with bounds.",
        ">>> value, lower, upper = fp.special.mixture_entropy([0.5, 0.5], [-3, 3], [0.5, 0.5])\n"
        ">>> round(float(value), 12)\n1.418938530199",
        "the bounds are proved, and their distance is at most 1e-12 (1 + |value|)",
        _INTEGRAL_SOURCE.format("Cover and Thomas 2006, section 8.1"), ("w", "m", "s"),
        _INTEGRAL_DOMAIN.format(other="", more=""), _INTEGRAL_RESULT, test=_INTEGRAL_TEST,
    ),
    "mixture_mutual_information": _docstring(
        "Mutual information of discrete inputs and inputs + N(0, sigma^2) noise, with bounds.",
        ">>> value, lower, upper = fp.special.mixture_mutual_information([0.5, 0.5], [0, 1], 0.5)\n"
        ">>> round(float(value), 12)\n0.336830820347",
        _INTEGRAL_ACCURACY, _INTEGRAL_SOURCE.format("Shannon 1948, section 12"), ("prior", "points", "sigma"),
        "Probabilities of the inputs and their values on the last axis, as the weights and means of a mixture are; "
        "leading\n    axes broadcast, with those of sigma, the standard deviation of the noise.",
        _INTEGRAL_RESULT, test=_INTEGRAL_TEST,
    ),
}  # fmt: skip

# The quantities of channels, with bounds.
_CHANNELS_ROUTE = "csrc/channel/fp_channel_quantities.h, the kernel of ``fastpriv.notions``"


def _channel_docstring(summary: str, example: str, accuracy: str, source: str, prior: bool = False) -> str:
    domain = (
        "channel has shape (..., i, o): rows of probabilities, P(output | input), whose sums are 1 within 1e-9."
        + ("\n    prior has shape (..., i): a distribution of the input, 0 or at least 1e-300." if prior else "")
    )
    result = (
        "Value, lower and upper bound, three arrays of the broadcast leading shape (scalars without one)."
    )
    names = ("prior", "channel") if prior else ("channel",)
    return _docstring(summary, example, accuracy, source, names, domain, result, "test_channel_ufuncs.py")


_CHANNELS = {
    "channel_capacity": _channel_docstring(
        "Capacity of channels in nats; generalised ufunc of signature (i,o)->(),(),().",
        ">>> import numpy as np\n>>> stack = [np.eye(2), np.eye(2) / 2 + 0.25]"
        "\n>>> value, lower, upper = fp.special.channel_capacity(stack)\n>>> value.round(6)"
        "\narray([0.693147, 0.130812])",
        "the bounds hold; their width is 1e-9 nats up to 16 inputs and outputs. Beyond, they are those that the\n    "
        "uniform input distribution proves, and ``fastpriv.channel_capacity`` is the sharp answer",
        "R. G. Gallager (1968), theorem 4.5.1; " + "csrc/channel/fp_capacity.h.",
    ),
    "channel_ldp_epsilon": _channel_docstring(
        "LDP level of channels in nats, the largest log ratio of two cells of a column; signature (i,o)->(),(),().",
        ">>> round(float(fp.special.channel_ldp_epsilon([[0.75, 0.25], [0.25, 0.75]])[0]), 12)\n1.098612288668",
        "the bounds hold; their width is 1e-15 relative", "Kasiviswanathan et al. (2011); " + _CHANNELS_ROUTE,
    ),
    "channel_maximal_leakage": _channel_docstring(
        "Maximal leakage of channels in nats, log of the sum of the largest cells of the columns; signature "
        "(i,o)->(),(),().",
        ">>> round(float(fp.special.channel_maximal_leakage([[0.75, 0.25], [0.25, 0.75]])[0]), 12)\n0.405465108108",
        "the bounds hold; their width is 1e-14 relative", "Issa, Wagner and Kamath (2020); " + _CHANNELS_ROUTE,
    ),
    "channel_mutual_information": _channel_docstring(
        "Mutual information of inputs and outputs in nats; signature (i),(i,o)->(),(),().",
        ">>> value, _, _ = fp.special.channel_mutual_information([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])"
        "\n>>> round(float(value), 12)\n0.130812035941",
        "the bounds hold; their width is about 1e-14 relative", "Shannon (1948); " + _CHANNELS_ROUTE, prior=True,
    ),
    "channel_bayes_vulnerability": _channel_docstring(
        "Chance of the best guess of the input after the output; signature (i),(i,o)->(),(),().",
        ">>> value, _, _ = fp.special.channel_bayes_vulnerability([0.2, 0.8], [[0.75, 0.25], [0.25, 0.75]])"
        "\n>>> round(float(value), 12)\n0.8",
        "the bounds hold; their width is 1e-15 relative", "G. Smith (2009); " + _CHANNELS_ROUTE, prior=True,
    ),
}  # fmt: skip

__all__: list[str] = []
#: The functions of single numbers for compiled code, by name: ``cimport`` (special.pxd), ``fastpriv.nb`` and
#: ``scipy.LowLevelCallable.from_cython`` look here. Their bits are those of the ufuncs. Of a ufunc with bounds the
#: function ``<name>`` returns the value, and ``<name>_bounds`` writes value, lower and upper bound.
__pyx_capi__: dict[str, object] = {}
for _kernel, _documentation in (
    (_special, _ELEMENTARY), (_gaussian_mechanism, _GAUSSIAN), (_awgn, _PEAK_POWER),
    (_binary_channel, _BINARY_CHANNEL), (_channel_quantities, _CHANNELS),
    (_sphere, _UNIFORM_SPHERE), (_lmip, _LOCAL_INFORMATION), (_hockey_stick_curves, _MIXTURES),
    (_quadrature, _MIXTURE_INTEGRALS),
):  # fmt: skip
    globals().update(_kernel.ufuncs(_documentation))
    __pyx_capi__ |= _kernel.capsules
    __all__ += _documentation


def __dir__() -> list[str]:
    return sorted(__all__)
