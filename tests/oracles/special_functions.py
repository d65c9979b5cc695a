"""Special functions in ball arithmetic of 300 bits and more (python-flint), and errors in ulps against them."""

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
    return _at(_within(x)).erfc()


def _within(x):
    """Beyond 100 the tail is below 1e-2000, so that any such argument stands for all."""
    return max(-100.0, min(100.0, x))


def erfcx(x):
    return _mills_ratio(_at(x) * arb(2).sqrt()) / (arb.pi() / 2).sqrt()


def mills_ratio(x):
    return _mills_ratio(_at(x))


def _mills_ratio(z):
    if z < 1e4:
        return (arb.pi() / 2).sqrt() * (z * z / 2).exp() * (z / arb(2).sqrt()).erfc()
    term = total = 1 / z
    for k in range(30):  # asymptotic, alternating: the error is below the last term
        term = -term * (2 * k + 1) / (z * z)
        total += term
    return total


def ndtr(x):
    return _ndtr(_at(_within(x)))


def _ndtr(z):
    return (-z / arb(2).sqrt()).erfc() / 2


def log_ndtr(x):
    z = _at(x)
    if x > 0:
        return (-_ndtr(-_at(_within(x)))).log1p()
    return -z * z / 2 + (_mills_ratio(-z) / (2 * arb.pi()).sqrt()).log()


def log1mexp(x):
    return (-_at(x).expm1()).log()


def logaddexp(a, b):
    high, low = max(a, b), min(a, b)
    return _at(high) + (_at(low) - _at(high)).exp().log1p()


def ndtr_difference(a, b):
    if a + b > 0:
        a, b = -b, -a
    return _ndtr(_at(b)) - _ndtr(_at(a))


def log_ndtr_difference(a, b):
    if b - a > 1:
        return (-_ndtr(_at(a)) - _ndtr(-_at(b))).log1p()
    return ndtr_difference(a, b).log()


def log_sum_exp(*x):
    top = max(x)
    return _at(top) + sum(((_at(term) - _at(top)).exp() for term in x), arb(0)).log()


def _true(function, arguments):
    """The ball, at a precision that leaves 100 bits of it."""
    bits = BITS
    while True:
        ctx.prec = bits
        true = function(*arguments)
        if true.rel_accuracy_bits() > 100 or bits > 20000:
            return true
        bits *= 4


def nearest(function, *arguments):
    """The true value as a double."""
    return float(_true(function, arguments).mid())


def difference(got, function, *arguments):
    """got - true."""
    true = _true(function, arguments)
    return (arb(float(got)) - true).mid()


def ulps(got, function, *arguments):
    """(got - true) / ulp(true); 0 when both are the same infinity, inf when only one is."""
    true = _true(function, arguments)
    rounded = float(true.mid())
    if math.isnan(got) or math.isinf(got) or math.isinf(rounded):
        return 0.0 if got == rounded else math.inf
    return float(((arb(float(got)) - true) / arb(math.ulp(rounded))).mid())
