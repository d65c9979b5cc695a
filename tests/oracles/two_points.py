"""Hockey-stick divergences of two points against two points with one sigma, in ball arithmetic.

P = p_0 N(m_0, s^2) + p_1 N(m_1, s^2) and Q = q_0 N(m_0, s^2) + q_1 N(m_1, s^2), weights as exact numbers. p - a q has
one sign change at most, at the x with log(N(m_1, s^2) / N(m_0, s^2)) = log(-c_0 / c_1), c_k = p_k - a q_k; H is the
sum of c_k times the normal probabilities of the side where p > a q, as two tails whose logarithms are kept apart.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb, ctx, fmpq

from oracles.gaussian_mechanism import mills

__all__ = ["log_hockey_stick", "subsampled"]

DIGITS = 25


def exact(x) -> arb:
    x = Fraction(x)
    return arb(fmpq(x.numerator, x.denominator))


def log_hockey_stick(p, q, distance, sigma, epsilon) -> arb:
    """Natural logarithm of H; -inf where it is 0. All arguments are doubles or fractions, and exact."""
    for bits in (256, 512, 1024, 2048, 4096, 8192, 16384, 65536):
        ctx.prec = bits
        value = _log(p, q, distance, sigma, epsilon)
        if value is not None and (value.is_finite() or value == arb.neg_inf()) and value.rel_accuracy_bits() > 3.33 * DIGITS:
            return value
        if value is not None and value == arb.neg_inf():
            return value
    raise ArithmeticError(f"no accuracy for {p}, {q}, {distance}, {sigma}, {epsilon}")


def subsampled(rate, sigma, epsilon, direction) -> arb:
    rate = Fraction(rate)
    p, q = ((1 - rate, rate), (1, 0)) if direction == "remove" else ((1, 0), (1 - rate, rate))
    return log_hockey_stick(p, q, 1, sigma, epsilon)


def _log(p, q, distance, sigma, epsilon):
    a = exact(epsilon).exp()
    c = [exact(p[k]) - a * exact(q[k]) if q[k] else exact(p[k]) for k in (0, 1)]
    if any(x.contains(0) and not x.is_zero() for x in c):
        return None  # the sign is not known at this precision
    if not (c[0] > 0 or c[1] > 0):
        return arb.neg_inf()
    if not (c[0] < 0 or c[1] < 0):
        return (c[0] + c[1]).log()
    gain, loss = (c[0], -c[1]) if c[0] > 0 else (c[1], -c[0])
    r = exact(distance).__abs__() / (2 * exact(sigma))
    if r.is_zero():
        value = gain - loss
        if value.contains(0) and not value.is_zero():
            return None
        return value.log() if value > 0 else arb.neg_inf()
    shift = (loss / gain).log() / (2 * r)  # the side x > shift + r, in sigmas from the point of the gain, mirrored
    log_phi = lambda x: -x * x / 2 - (2 * arb.pi()).log() / 2  # noqa: E731
    a1, b1 = shift - r, shift + r  # H = gain Q(a1) - loss Q(b1), loss phi(b1) = gain phi(a1)
    if a1 > 0:
        return gain.log() + log_phi(a1) + (mills(a1) - mills(b1)).log()
    if b1 > 0:  # gain - gain Q(-a1) - loss Q(b1)
        return gain.log() + (-log_phi(a1).exp() * (mills(-a1) + mills(b1))).log1p()
    return (gain - loss + gain * log_phi(a1).exp() * (mills(-b1) - mills(-a1))).log()
