"""Special functions in 300-bit ball arithmetic (python-flint), and errors in ulps against them."""

import math

from flint import arb, ctx

BITS = 300


def _at(x):
    return arb(float(x))


def exp(x):
    return _at(x).exp()


def expm1(x):
    return _at(x).expm1()


def log(x):
    return _at(x).log()


def log1p(x):
    return _at(x).log1p()


def erfc(x):
    return _at(x).erfc()


def _erfcx(z):
    return (z * z).exp() * z.erfc()


def erfcx(x):
    return _erfcx(_at(x))


def mills_ratio(x):
    return (arb.pi() / 2).sqrt() * _erfcx(_at(x) / arb(2).sqrt())


def _ndtr(z):
    return (-z / arb(2).sqrt()).erfc() / 2


def ndtr(x):
    return _ndtr(_at(x))


def log_ndtr(x):
    z = _at(x)
    return (-(-z / arb(2).sqrt()).erfc() / 2 + 1).log() if x < -1e5 else _log_ndtr(z)


def _log_ndtr(z):
    if z > 0:
        return (-_ndtr(-z)).log1p()
    return _ndtr(z).log()


def log1mexp(x):
    return (-_at(x).expm1()).log()


def logaddexp(a, b):
    high, low = max(a, b), min(a, b)
    return _at(high) + (_at(low) - _at(high)).exp().log1p()


def ndtr_difference(a, b):
    return _ndtr(_at(b)) - _ndtr(_at(a))


def log_ndtr_difference(a, b):
    return ndtr_difference(a, b).log() if a <= 0 else (_ndtr(-_at(a)) - _ndtr(-_at(b))).log()


def ulps(got, function, *arguments):
    """(got - true) / ulp(true); 0 when both are the same infinity or NaN, inf when only one is."""
    bits = BITS
    while True:
        ctx.prec = bits
        true = function(*arguments)
        if true.rel_accuracy_bits() > 100 or bits > 40000:
            break
        bits *= 4
    nearest = float(true.mid())
    if math.isnan(got) or math.isinf(got) or math.isinf(nearest):
        return 0.0 if got == nearest else math.inf
    return float(((arb(float(got)) - true) / arb(math.ulp(nearest))).mid())
