"""Average Bayesian privacy of independent bits: the matrix of expected posteriors, one integral for each pair of atoms.

Notation: ``bits``; r_d = c_d / S, E the mean under the law of the release. The posterior of d expected under d0 is
pi_d (1 + g), and since E_0 c_d = 1, g = E (r_d0 - 1)(r_d - 1) = integral over t > 0 of K(t) dt,
K(t) = E_0[(c_d0 - S)(c_d - S) e^(-tS)]. Under the law with density proportional to e^(-tS) the bits are independent, 1
with probability q - u_j, of variance v_j; with ubar = sum pi u, V = sum pi^2 v and T = E_0 e^(-tS),

    K = T D^2 [(u_d0 - ubar)(u_d - ubar) - pi_d0 v_d0 - pi_d v_d + V + (v_d where d = d0)]:

one product of matrices for all pairs. At an angle y of t the integral of |K| is at most sqrt(g_d0d0 g_dd) / cos y by
Cauchy and Schwarz, which bounds the error of the trapezoidal rule in log t (``information``). K_dd falls in t, K is at
most sqrt(K_d0d0 K_dd): the terms before t_0 sum to at most h t_0 / (e^h - 1) times that at 0; and c_d differs from S
only where some bit is 1 and S >= b + D min pi = l: those beyond t_1 >= 1 / l sum to at most D^2 e^(-l t_1) / l.
"""

# bounds: tested by enclosures/test_sets_notions - rounding of transforms, products of matrices and nodes

from __future__ import annotations

import math

import numpy as np

from ...._values import FloatArray
from ....kernels import _product, _table
from ..arguments import UNIT
from . import transforms
from .bits import Bits
from .information import STEP, TRAPEZOID

__all__ = ["WIDEST", "matrix"]

WIDEST = 2048  # atoms of which all pairs are held
_DIGITS = 44.0


def matrix(bits: Bits) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """g between unlike secrets of all pairs of atoms with its error, shape (v, v); the same of d = d0, shape (v,)."""
    value, counts = bits.value, bits.counts
    start = bits.rise**2 * bits.inside * bits.outside * (1 - 2 * value + bits.energy)  # K_dd(0)
    scale = math.log(bits.inside * bits.outside) + 2 * math.log(bits.rise / bits.high)
    least = bits.low + bits.rise * float(value[-1])
    first = -_DIGITS - math.log(bits.high)
    last = math.log(_DIGITS - scale + 2 * max(0.0, -math.log(least))) - math.log(least)
    nodes = STEP * np.arange(math.floor(first / STEP), math.ceil(last / STEP) + 1)
    t = np.exp(nodes)
    log, error = transforms.logs(bits, t)
    x = np.multiply.outer(t * bits.rise, value)
    with np.errstate(under="ignore"):
        weight = STEP * t * np.exp(log) * bits.rise**2
        tilted = bits.inside * np.exp(-x)
        below = bits.outside + tilted
        u = bits.inside * bits.outside * -np.expm1(-x) / below
        v = bits.outside * tilted / below / below
    relative = 2 * error + 8 * UNIT * (1 + np.abs(nodes)) * (4 + np.abs(log)) + 8 * bits.blur + 64 * UNIT
    own_blur = 8 * bits.blur + 16 * UNIT
    spread = relative[:, None] + own_blur * (2 + x * tilted / below)  # of u; of v, e^-x is as unsure as x
    wider = spread + own_blur * x
    mean = (counts * value * u).sum(axis=1)[:, None]
    away = u - mean
    unsure = (u + mean) * (spread + (16 + math.log2(value.size)) * UNIT)
    own = value * v
    both = (counts * value * own).sum(axis=1)
    noisy = (counts * value * own * (wider + 24 * UNIT)).sum(axis=1)
    root = np.sqrt(weight)[:, None]
    far = root * np.abs(away)
    lost = (t.size + 8) * UNIT
    apart, blurred = (root * away).T, (root * unsure).T
    alpha, beta = _product.times(own.T, weight), _table.accurate_sum(weight * both)
    near = _product.times(v.T, weight)
    doubt_own = _product.times((own * wider).T, weight) + lost * alpha
    doubt_both = _table.accurate_sum(weight * noisy) + _table.accurate_sum(weight * (relative * both)) + lost * beta
    doubt = _product.product(far.T, (root * (unsure + spread * np.abs(away))).T)
    doubt += doubt.T + _product.product(blurred, blurred) + lost * _product.product(far.T, far.T)
    doubt += doubt_own[:, None] + doubt_own + doubt_both
    off = _product.product(apart, apart) - alpha[:, None] - alpha + beta
    same = np.diagonal(off) + near
    size = np.sqrt(np.maximum(same, 0.0) + 1e-300)
    edge = np.sqrt(start)
    share = STEP / math.expm1(STEP) * float(t[0])
    beyond = bits.rise**2 * math.exp(-least * float(t[-1]) * (1 - 1e-9)) / least
    rest = 1.01 * TRAPEZOID * np.multiply.outer(size, size) + 1.01 * share * np.multiply.outer(edge, edge)
    doubt = (doubt + rest + beyond) * (1 + 1e-6)
    return off, doubt, same, np.diagonal(doubt) + (_product.times((v * wider).T, weight) + lost * near) * (1 + 1e-6)
