"""The privacy curve of the Gaussian mechanism in ball arithmetic: slow, readable, and sure of its digits.

delta(epsilon) = Phi(r - epsilon / (2 r)) - e^epsilon Phi(-r - epsilon / (2 r)), r = l2 sensitivity / (2 sigma) (Balle
and Wang 2018, theorem 8). Every function raises the working precision until the ball is 25 digits wide.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb, ctx

DIGITS = 25
_PRECISIONS = (128, 256, 512, 1024, 2048, 4096, 8192)


def delta(r: float, epsilon: float) -> arb:
    """delta as a ball of relative width 1e-25; 0 below the reach of arb's exponents."""
    return _sharpened(lambda: log_parts(r, epsilon)[0].exp())


def log_delta(r: float, epsilon: float) -> arb:
    return _sharpened(lambda: log_parts(r, epsilon)[0])


def log_delta_of(radius: Callable[[], arb], epsilon: float) -> arb:
    """log delta for an r that is no double: ``radius`` computes it at the working precision."""
    return _sharpened(lambda: log_parts(radius(), epsilon)[0])


def log_missing(r: float, epsilon: float) -> arb:
    """log(1 - delta)."""
    return _sharpened(lambda: log_parts(r, epsilon)[1])


def log_parts(r: float | arb, epsilon: float) -> tuple[arb, arb]:
    """log delta and log(1 - delta), at the working precision of ``flint.ctx``."""
    radius, half = arb(r), arb(epsilon) / 2
    c = half / radius
    a, b = c - radius, c + radius
    log_phi = -a * a / 2 - (2 * arb.pi()).log() / 2
    if not a < 0:
        log_tail = log_phi + (mills(a) - mills(b)).log()
        return log_tail, (-log_tail.exp()).log1p()
    log_bulk = log_phi + (mills(-a) + mills(b)).log()
    return (-log_bulk.exp()).log1p(), log_bulk


def mills(x: arb) -> arb:
    """(1 - Phi(x)) / phi(x); for large x the asymptotic series between two of its partial sums."""
    if x > 1000:
        term, total, k = 1 / x, arb(0), 0
        bound = arb(2) ** (-ctx.prec - 20) / x
        while term > bound and k < 400_000:
            total += term if k % 2 == 0 else -term
            term = term * (2 * k + 1) / (x * x)
            k += 1
        return total + arb(0, 1) * term
    return (arb.pi() / 2).sqrt() * (x * x / 2).exp() * (x / arb(2).sqrt()).erfc()


def _sharpened(compute: Callable[[], arb]) -> arb:
    before = ctx.prec
    try:
        for precision in _PRECISIONS:
            ctx.prec = precision
            ball = compute()
            if ball.is_finite() and ball.rel_accuracy_bits() > DIGITS * 3.33:
                return ball
        raise ArithmeticError(f"no {DIGITS} digits with {_PRECISIONS[-1]} bits")
    finally:
        ctx.prec = before
