"""What positions beside the line and weights beside a product may do to each quantity.

Notation: eta is the slack, D the diameter of all means, both in the metric K^-1 of the one covariance K; beta is twice
the blur (once more for scaling to mass 1); u = p/q; P~, Q~ the laws that are computed with.

Slack. The means move along m_i(t) = m~_i + t d_i, |d_i| <= eta, 0 <= t <= 1, from the line to where they are. Write
m_p(x) and d_p(x) for the posterior means of m_i and d_i given x under P, and likewise for Q. In units K = I the score
is grad log p = m_p(x) - x, so that grad log u = m_p - m_q, and partial integration gives for f convex

    d/dt of the integral of q f(u) = the integral of q u^2 f''(u) (d_p - d_q).(m_p - m_q),

where |d_p - d_q| <= 2 eta and |m_p - m_q| <= D. So the whole path changes

* KL (q u^2 f'' = p) by at most 2 eta E, E = E_P |m_p - m_q| <= D;
* JS (q u^2 f'' = pq / 2(p + q), of mass <= 1/4 and at most p/2) by at most eta min(D/2, E);
* D_a (f = u^a; d/dt log of the integral is a(a - 1) times a mean of the same product) by at most 2 a eta D;
* the entropy, whose derivative is -E_P d_p.(m_p - x) = -sum w_i d_i . E_i (m_p - m_i), by at most eta D, and so the
  mutual information of label and output, which differs from it by a constant.

For E: with c the centre of the line, E_P |m_p - m_q| is at most the integral of |sum w_i N_i (m_i - c) - sum v_i N_i
(m_i - c)| + (D/2) |p - q|; where components share a position of the line, up to 2 eta apart and so within 0.8 eta in
total variation, E <= D |w - v|_1 + (2 + 2 D) eta.

Blur. p = p~ e^a, q = q~ e^b with |a|, |b| <= beta everywhere, all of mass 1. Then

* KL - KL~ is the integral of p~ (e^a - 1) log u~ + p a - p b. E |log u~| <= KL~ + 2 TV~ <= KL~ + r, r = sqrt(2 KL~),
  by Pinsker; the integral of p a is a KL divergence of at most beta (e^beta - 1), and so is that of q b, and that of
  (p - q) b is at most beta 2 TV <= beta (r + 2 beta). Together (e^beta - 1)(KL~ + r) + beta r + 5 beta^2;
* JS is the mean of two such divergences from M: the same with JS in the place of KL, by concavity of the root;
* mutual information is KL of the joint law, within beta, from the product of its marginals, within 2 beta;
* D_a changes by at most (a + |1 - a|) beta / |a - 1|;
* entropy: (e^beta - 1) E~ |log p~| + beta, E~ |log p~| <= |h~| + 2 log^+ max p~.

Hockey-sticks. N_i and N~_i differ on {|z| <= X}, z the sample's normal coordinate along d_i, by a factor within
e^(+-(eta X + eta^2/2)), and each has at most tau = e^(-X^2/2) outside. With kappa = eta X + eta^2/2 + beta,
P(A) <= e^kappa P~(A) + tau and P(A) >= e^-kappa P~(A) - tau for every event A, likewise Q, and with a = e^epsilon

    e^-kappa H_{epsilon + 2 kappa}(P~||Q~) - (1 + a) tau <= H_epsilon(P||Q)
        <= e^kappa H_{epsilon - 2 kappa}(P~||Q~) + (1 + a) tau.

X is chosen for every epsilon such that (1 + a) tau is e^-40 of a first lower bound. At epsilon < 2 kappa the order is
cut at 0, and H_b - H_1 <= 1 - b for b < 1.
"""

# bounds: tested by enclosures/test_reductions, enclosures/test_reductions_to_factors - rounding of what is proved
#    at the head; underflow

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...distributions import GaussianMixture
from ...estimate import Estimate
from ..line.hockey_stick import hockey_stick_divergence, log_hockey_stick_divergence
from .lines import Line

__all__ = ["blurred", "curve", "mean_gap", "windowed"]

FloatArray = NDArray[np.float64]
# bound: proved - half a unit in the last place of a double, IEEE 754
_UNIT = 2.0**-53
_BELOW = 40.0  # logarithm of the part of a hockey-stick that its window may leave out
_NO_SIZE = 1e6  # the same where the hockey-stick itself is 0 or infinitely small


def mean_gap(line: Line) -> float:
    """The bound of E of the header; D where the laws lie on different lines."""
    if line.across:
        return line.extent
    p, q = line.narrow
    gap: dict[float, list[float]] = {}
    for law, sign in ((p, 1.0), (q, -1.0)):
        for x, w in zip(law.means.tolist(), law.weights.tolist(), strict=True):
            gap.setdefault(x, []).append(sign * w)
    total = math.fsum(abs(math.fsum(weights)) for weights in gap.values())
    return min(line.extent, line.extent * total + (2 + 2 * line.extent) * line.slack)


def blurred(divergence: float, blur: float) -> float:
    """Change of a KL or Jensen-Shannon divergence of this size (an upper bound of it) by a blur of both laws."""
    if blur == 0.0:
        return 0.0
    beta, root = 2 * blur, math.sqrt(2 * divergence)
    return 1.0001 * (math.expm1(beta) * (divergence + root) + beta * root + 5 * beta * beta)


def curve(laws: tuple[GaussianMixture, ...], epsilon: FloatArray, *, logs: bool, deadline: float) -> Estimate:
    """Hockey-sticks of two laws on the line, or their logarithms."""
    p, q = laws
    exact = log_hockey_stick_divergence if logs else hockey_stick_divergence
    return exact(p, q, epsilon, deadline=deadline)


def windowed(
    line: Line, epsilon: FloatArray, *, logs: bool, deadline: float
) -> tuple[FloatArray, FloatArray]:
    """Bounds of hockey-sticks, or of their logarithms, for all that slack and blur allow."""
    with np.errstate(all="ignore"):
        size = np.asarray(curve(line.wide, epsilon, logs=True, deadline=deadline).lower)
        growth = np.logaddexp(0.0, epsilon)  # log(1 + a)
        drop = np.where(np.isfinite(size) & np.isfinite(growth), growth - size, _NO_SIZE)
        window = np.sqrt(2 * (np.maximum(drop, 0.0) + _BELOW))
        kappa = 1.0001 * (line.slack * window + line.slack**2 / 2 + 2 * line.blur)
        kappa += 4 * _UNIT * np.where(np.isfinite(epsilon), epsilon, 0.0)
        tail = growth - window**2 / 2 + 1e-9 * (1 + window**2)  # log of (1 + a) tau
        tail = np.where(line.slack == 0.0, -np.inf, tail)
        missing = np.where(epsilon < 2 * kappa, 2 * kappa, 0.0)
        high = curve(line.narrow, np.maximum(epsilon - 2 * kappa, 0.0), logs=logs, deadline=deadline)
        low = curve(line.wide, epsilon + 2 * kappa, logs=logs, deadline=deadline)
        top, bottom = np.asarray(high.upper), np.asarray(low.lower)
        if logs:
            margin = 8 * _UNIT
            top = np.logaddexp(np.logaddexp(top + kappa, tail), np.log(missing))
            bottom = bottom - kappa
            bottom = np.where(tail < bottom, bottom + np.log(-np.expm1(np.minimum(tail - bottom, 0.0))), -np.inf)
            top, bottom = top + margin * (1 + np.abs(top)), bottom - margin * (1 + np.abs(bottom))
            top = np.minimum(np.where(np.isnan(top), -np.inf, top), 0.0)
            bottom = np.where(np.isnan(bottom), -np.inf, bottom)
        else:
            top = (top * np.exp(kappa) + np.exp(tail) + missing) * (1 + 8 * _UNIT)
            bottom = (bottom * np.exp(-kappa) - np.exp(tail)) * (1 - 8 * _UNIT)
            top, bottom = np.minimum(top + 1e-322, 1.0), np.maximum(bottom - 1e-322, 0.0)
    nothing = -np.inf if logs else 0.0
    none = np.isposinf(epsilon)
    return np.where(none, nothing, bottom), np.where(none, nothing, top)
