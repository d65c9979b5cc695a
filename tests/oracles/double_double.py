"""Exact values for the double-double functions: python-flint balls at high precision.

Every function takes lists of balls and returns one ball; the caller chooses the precision with ``ctx.prec``.
"""

from flint import arb


def ball(hi, lo):
    return arb(float(hi)) + arb(float(lo))


def mills(x):
    """R(x) = (1 - Phi(x)) / phi(x) = U(1/2, 1/2, x^2/2) / sqrt 2 for x > 0."""
    if x > 20:
        return (x * x / 2).hypgeom_u(arb(1) / 2, arb(1) / 2) / arb(2).sqrt()
    return (arb.pi() / 2).sqrt() * (x * x / 2).exp() * (x / arb(2).sqrt()).erfc()


def phi(x):
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def ndtr_tail(x):
    return phi(x) * mills(x) if x > 20 else (x / arb(2).sqrt()).erfc() / 2


def ndtr_diff(a, b):
    if a + b < 0:
        return ndtr_diff(-b, -a)
    return ndtr_tail(a) - ndtr_tail(b)


FUNCTIONS = {
    "add": lambda a, b: a + b,
    "add_d": lambda a, b: a + b,
    "add_small": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "mul_d": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "div_d": lambda a, b: a / b,
    "sqr": lambda a: a * a,
    "sqrt": lambda a: a.sqrt(),
    "exp": lambda a: a.exp(),
    "expm1": lambda a: a.expm1(),
    "log": lambda a: a.log(),
    "log_scaled": lambda m, k: m.log() + k * arb.const_log2(),
    "log1p": lambda a: a.log1p(),
    "mills": mills,
    "phi": phi,
    "ndtr_tail": ndtr_tail,
    "ndtr_diff": ndtr_diff,
}
