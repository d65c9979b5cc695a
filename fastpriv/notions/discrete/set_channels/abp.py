"""Average Bayesian privacy of independent bits: the matrix of expected posteriors, one integral for each pair of atoms.

Notation: ``parameters``; r_d = c_d / S, E the mean under the distribution of the release. The posterior of d expected
under d0 is pi_d (1 + g), and since E_0 c_d = 1, g = E (r_d0 - 1)(r_d - 1) = integral over t > 0 of K(t) dt,
K(t) = E_0[(c_d0 - S)(c_d - S) e^(-tS)]. Under the density proportional to e^(-tS) the bits are independent, 1 with
probability q - u_j, of variance v_j; with ubar = sum pi u, V = sum pi^2 v and T = E_0 e^(-tS),

    K = T D^2 [(u_d0 - ubar)(u_d - ubar) - pi_d0 v_d0 - pi_d v_d + V + (v_d where d = d0)]:

one product of matrices for all pairs. At an angle y of t the integral of |K| is at most sqrt(g_d0d0 g_dd) / cos y by
Cauchy and Schwarz, which bounds the error of the trapezoidal rule in log t (``mutual_information``). K_dd falls in t, K
is at most sqrt(K_d0d0 K_dd): the terms before t_0 sum to at most h t_0 / (e^h - 1) times that at 0; and c_d differs
from S only where some bit is 1 and S >= b + D min pi = l: those beyond t_1 >= 1 / l sum to at most D^2 e^(-l t_1) / l.
"""

# bounds: tested by enclosures/test_sets_notions - rounding of transforms, products of matrices and nodes

from __future__ import annotations

import math

import numpy as np

from ....base.numerics import UNIT_ROUNDOFF as U
from ....base.numerics import FloatArray
from ....kernels import _channel_blocks, _matrix_product
from .mutual_information import STEP, TRAPEZOID, log_transform
from .parameters import SetParameters

__all__ = ["MOST_DISTINCT", "expected_changes"]

MOST_DISTINCT = 2048  # distinct prior probabilities, all pairs of which are held: 32 MiB a matrix
_LAST_EXPONENT = 44.0  # what lies before the first and beyond the last node is about e^-44, or 1e-19, of the answer


def expected_changes(sets: SetParameters) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """g of two secrets for all pairs of prior probabilities, shape (v, v), and its error; the same for d = d0, (v,)."""
    value, counts = sets.prior, sets.counts
    start = sets.difference**2 * sets.inside * sets.outside * (1 - 2 * value + sets.prior_square_sum)  # K_dd(0)
    scale = math.log(sets.inside * sets.outside) + 2 * math.log(sets.difference / sets.high)
    least_s = sets.low + sets.difference * float(value[-1])
    first = -_LAST_EXPONENT - math.log(sets.high)
    last = math.log(_LAST_EXPONENT - scale + 2 * max(0.0, -math.log(least_s))) - math.log(least_s)
    nodes = STEP * np.arange(math.floor(first / STEP), math.ceil(last / STEP) + 1)
    t = np.exp(nodes)
    log, log_error = log_transform(sets, t)
    x = np.multiply.outer(t * sets.difference, value)
    with np.errstate(under="ignore"):
        weight = STEP * t * np.exp(log) * sets.difference**2
        tilted = sets.inside * np.exp(-x)
        denominator = sets.outside + tilted
        u = sets.inside * sets.outside * -np.expm1(-x) / denominator
        v = sets.outside * tilted / denominator / denominator
    weight_error = 2 * log_error + 8 * U * (1 + np.abs(nodes)) * (4 + np.abs(log))
    weight_error = weight_error + 8 * sets.relative_error + 64 * U
    q_error = 8 * sets.relative_error + 16 * U
    u_error = weight_error[:, None] + q_error * (2 + x * tilted / denominator)  # of u; in v, e^-x has the error of x
    v_error = u_error + q_error * x
    mean = (counts * value * u).sum(axis=1)[:, None]
    deviation = u - mean
    deviation_error = (u + mean) * (u_error + (16 + math.log2(value.size)) * U)
    prior_v = value * v
    v_total = (counts * value * prior_v).sum(axis=1)
    v_total_error = (counts * value * prior_v * (v_error + 24 * U)).sum(axis=1)
    root = np.sqrt(weight)[:, None]
    scaled_size = root * np.abs(deviation)
    summation = (t.size + 8) * U
    scaled, scaled_error = (root * deviation).T, (root * deviation_error).T
    alpha, beta = _matrix_product.matrix_vector(prior_v.T, weight), _channel_blocks.accurate_sum(weight * v_total)
    near = _matrix_product.matrix_vector(v.T, weight)
    alpha_error = _matrix_product.matrix_vector((prior_v * v_error).T, weight) + summation * alpha
    beta_error = _channel_blocks.accurate_sum(weight * v_total_error) + _channel_blocks.accurate_sum(
        weight * (weight_error * v_total)
    )
    beta_error += summation * beta
    error = _matrix_product.product(scaled_size.T, (root * (deviation_error + u_error * np.abs(deviation))).T)
    squares = _matrix_product.product(scaled_error, scaled_error)
    error += error.T + squares + summation * _matrix_product.product(scaled_size.T, scaled_size.T)
    error += alpha_error[:, None] + alpha_error + beta_error
    off_diagonal = _matrix_product.product(scaled, scaled) - alpha[:, None] - alpha + beta
    diagonal = np.diagonal(off_diagonal) + near
    root_diagonal = np.sqrt(np.maximum(diagonal, 0.0) + 1e-300)
    root_start = np.sqrt(start)
    first_share = STEP / math.expm1(STEP) * float(t[0])
    beyond = sets.difference**2 * math.exp(-least_s * float(t[-1]) * (1 - 1e-9)) / least_s
    rule_error = 1.01 * TRAPEZOID * np.multiply.outer(root_diagonal, root_diagonal)
    rule_error += 1.01 * first_share * np.multiply.outer(root_start, root_start)
    error = (error + rule_error + beyond) * (1 + 1e-6)
    near_error = (_matrix_product.matrix_vector((v * v_error).T, weight) + summation * near) * (1 + 1e-6)
    return off_diagonal, error, diagonal, np.diagonal(error) + near_error
