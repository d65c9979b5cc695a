"""Special functions as NumPy ufuncs: broadcasting, ``out=``, scalars in and scalars out, the GIL released.

Notation: phi and Phi are the density and the distribution function of the standard normal law, R(x) =
(1 - Phi(x)) / phi(x) is the Mills ratio. Arguments and results are float64. Outside its domain a function returns
NaN, without a warning. Every instruction set gives the same bits.
"""

from __future__ import annotations

import numpy as np

from .kernels import _channel, _gauss, _special

__all__ = [
    "erfc", "erfcx", "exp", "expm1", "log", "log1mexp", "log1p", "log_ndtr", "logaddexp", "mills_ratio", "ndtr",
    "ndtr_difference",
]  # fmt: skip

_TEXT = dict.fromkeys([*__all__, "log_ndtr_difference"], "")
_made: dict[str, np.ufunc] = _special.ufuncs(_TEXT)

exp: np.ufunc = _made["exp"]

# The Gaussian mechanism and the binary channel. Results are bare numbers; fastpriv.mechanisms.gaussian and
# fastpriv.capacity.bac wrap them with bounds and check the arguments.

__all__ += [
    "bac_capacity", "bac_capacity_with_complements", "binary_entropy", "binary_entropy_with_complement",
    "gaussian_delta", "gaussian_epsilon", "gaussian_epsilon_below", "gaussian_epsilon_below_from_log_delta",
    "gaussian_epsilon_from_log_delta", "gaussian_log_delta", "gaussian_noise", "gaussian_noise_below",
    "gaussian_noise_below_from_log_delta", "gaussian_noise_from_log_delta",
]  # fmt: skip

_GAUSS_SOURCE = """

Balle and Wang 2018, theorem 8: delta = Phi(r - epsilon/(2r)) - e^epsilon Phi(-r - epsilon/(2r)). NaN outside r >= 0,
epsilon >= 0, 0 <= delta <= 1. Accuracy proved in tests/kernels/test_gaussian_mechanism.py."""

_GAUSS_TEXT = {
    "gaussian_delta": """gaussian_delta(r, epsilon): privacy curve of the Gaussian mechanism.

r is the l2 sensitivity over 2 sigma. Within 4e-15 of the true delta relatively where that is a normal number; 0 for
r = 0 or epsilon = inf, 1 for r = inf.""",
    "gaussian_log_delta": """gaussian_log_delta(r, epsilon): natural logarithm of the privacy curve.

Within 4e-15 relatively for r in [1e-300, 1e300] and epsilon in [0, 1e300]; -inf only for r = 0, epsilon = inf, and
where the truth lies below the most negative double.""",
    "gaussian_epsilon": """gaussian_epsilon(r, delta): an epsilon whose true delta is at most the given one.

The safe side of the inverse: it exceeds the smallest such epsilon by at most a relative 1e-13, or by what a relative
change of 2e-14 in delta (for delta > 1/2: in 1 - delta) does, whichever is more; the second matters where delta is
close to the curve's value at 0. 0 when epsilon = 0 meets delta, inf when delta = 0 and r > 0.""",
    "gaussian_epsilon_from_log_delta": """gaussian_epsilon_from_log_delta(r, log_delta): as gaussian_epsilon.

The change of delta that is allowed for grows to 4e-14 + 4e-15 |log delta|.""",
    "gaussian_epsilon_below": """gaussian_epsilon_below(r, delta): an epsilon whose true delta is at least the target.

A lower bound of the inverse, as close as gaussian_epsilon from above; 0 where the bound is trivial.""",
    "gaussian_epsilon_below_from_log_delta": """gaussian_epsilon_below_from_log_delta(r, log_delta): lower bound.

As gaussian_epsilon_below, from a natural logarithm.""",
    "gaussian_noise": """gaussian_noise(epsilon, delta): a sigma / sensitivity that gives (epsilon, delta) privacy.

The safe side: true delta at most the given one; at most a relative 1e-13 above the least such ratio. inf when
delta = 0, 0 when delta = 1 or epsilon = inf.""",
    "gaussian_noise_from_log_delta": """gaussian_noise_from_log_delta(epsilon, log_delta): as gaussian_noise.

At most a relative 1e-13 + 4e-15 |log delta| above the least ratio; inf where that exceeds the largest double.""",
    "gaussian_noise_below": """gaussian_noise_below(epsilon, delta): a sigma / sensitivity whose delta is too large.

A lower bound of the least ratio, as close as gaussian_noise from above.""",
    "gaussian_noise_below_from_log_delta": """gaussian_noise_below_from_log_delta(epsilon, log_delta): lower bound.

As gaussian_noise_below, from a natural logarithm.""",
}

_CHANNEL_TEXT = {
    "binary_entropy": """binary_entropy(p): -p log p - (1-p) log(1-p), in nats.

Within 1e-15 relatively, down to p = 1e-300; NaN outside [0, 1].""",
    "binary_entropy_with_complement": """binary_entropy_with_complement(p, complement): binary entropy, in nats.

``complement`` is 1 - p, for p closer to 1 than doubles resolve. Within 1e-15 relatively.""",
    "bac_capacity": """bac_capacity(a, b): capacity of the binary asymmetric channel, in nats.

a = P(Y=1 | X=0) and b = P(Y=0 | X=1). Within 4e-15 relatively on the whole square, 0 where a + b = 1; NaN outside.
Equation (11) of the mutual-information privacy paper in a stable form; tests/kernels/test_binary_channel.py.""",
    "bac_capacity_with_complements": """bac_capacity_with_complements(a, complement_a, b, complement_b): in nats.

As bac_capacity, for crossover probabilities closer to 1 than doubles resolve.""",
}

_gauss_made: dict[str, np.ufunc] = _gauss.ufuncs({name: text + _GAUSS_SOURCE for name, text in _GAUSS_TEXT.items()})
_channel_made: dict[str, np.ufunc] = _channel.ufuncs(_CHANNEL_TEXT)

gaussian_delta: np.ufunc = _gauss_made["gaussian_delta"]
gaussian_log_delta: np.ufunc = _gauss_made["gaussian_log_delta"]
gaussian_epsilon: np.ufunc = _gauss_made["gaussian_epsilon"]
gaussian_epsilon_from_log_delta: np.ufunc = _gauss_made["gaussian_epsilon_from_log_delta"]
gaussian_epsilon_below: np.ufunc = _gauss_made["gaussian_epsilon_below"]
gaussian_epsilon_below_from_log_delta: np.ufunc = _gauss_made["gaussian_epsilon_below_from_log_delta"]
gaussian_noise: np.ufunc = _gauss_made["gaussian_noise"]
gaussian_noise_from_log_delta: np.ufunc = _gauss_made["gaussian_noise_from_log_delta"]
gaussian_noise_below: np.ufunc = _gauss_made["gaussian_noise_below"]
gaussian_noise_below_from_log_delta: np.ufunc = _gauss_made["gaussian_noise_below_from_log_delta"]
binary_entropy: np.ufunc = _channel_made["binary_entropy"]
binary_entropy_with_complement: np.ufunc = _channel_made["binary_entropy_with_complement"]
bac_capacity: np.ufunc = _channel_made["bac_capacity"]
bac_capacity_with_complements: np.ufunc = _channel_made["bac_capacity_with_complements"]
