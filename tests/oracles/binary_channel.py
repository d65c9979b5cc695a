"""Binary entropy and the capacity of the binary asymmetric channel in ball arithmetic, in nats.

Row entropies h0, h1 and the inverse of the channel matrix give the capacity of an invertible two-by-two channel whose
best input is interior, which it always is for two inputs:

    C = log(e^(-g0) + e^(-g1)),  g0 = ((1 - e1) h0 - e0 h1) / D,  g1 = ((1 - e0) h1 - e1 h0) / D,  D = 1 - e0 - e1.

A crossover probability may be given with its complement; whichever is smaller is taken as exact.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb, ctx

DIGITS = 25
_PRECISIONS = (128, 256, 512, 1024, 2048, 4096, 8192)


def entropy(p: float, complement: float | None = None) -> arb:
    return _sharpened(lambda: _entropy(*_pair(p, complement)))


def capacity(e0: float, e1: float, c0: float | None = None, c1: float | None = None) -> arb:
    def compute() -> arb:
        (p, pc), (q, qc) = _pair(e0, c0), _pair(e1, c1)
        gap = pc - q
        h0, h1 = _entropy(p, pc), _entropy(q, qc)
        return ((-(qc * h0 - p * h1) / gap).exp() + (-(pc * h1 - q * h0) / gap).exp()).log()

    return arb(0) if _pair(e0, c0)[1] - _pair(e1, c1)[0] == 0 else _sharpened(compute)


def _pair(p: float, complement: float | None) -> tuple[arb, arb]:
    if complement is not None and complement < p:
        return 1 - arb(complement), arb(complement)
    return arb(p), 1 - arb(p)


def _entropy(p: arb, complement: arb) -> arb:
    return -_times_log(p) - _times_log(complement)


def _times_log(p: arb) -> arb:
    return arb(0) if p == 0 else p * p.log()


def _sharpened(compute: Callable[[], arb]) -> arb:
    before = ctx.prec
    try:
        for precision in _PRECISIONS:
            ctx.prec = precision
            ball = compute()
            if ball == 0 or (ball.is_finite() and ball.rel_accuracy_bits() > DIGITS * 3.33):
                return ball
        raise ArithmeticError(f"no {DIGITS} digits with {_PRECISIONS[-1]} bits")
    finally:
        ctx.prec = before
