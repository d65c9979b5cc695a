"""The moment generating function of a uniform point on the unit sphere of R^d in ball arithmetic (python-flint).

G_d(x) is the sum of (x^2/4)^k / (k! (d/2)_k), a Bessel function I of order d/2 - 1 up to a power of x.
"""

from flint import arb, ctx

BITS = 300


def log_mgf(dimension, x):
    """log G_d(x), x >= 0."""
    ctx.prec = BITS
    d, z = arb(dimension), arb(float(x))
    if z < 1:
        return _excess(d, z).log1p()
    return log_mgf_scaled(dimension, x) + z


def log_mgf_scaled(dimension, x):
    """log G_d(x) - x."""
    ctx.prec = BITS
    d, z = arb(dimension), arb(float(x))
    if z < 1:
        return _excess(d, z).log1p() - z
    order = d / 2 - 1
    return z.bessel_i(order, scaled=True).log() + (d / 2).lgamma() + order * (2 / z).log()


def mean(dimension, x):
    """G_d'(x) / G_d(x) = (x/d) G_{d+2}(x) / G_d(x)."""
    ctx.prec = BITS
    d, z = arb(dimension), arb(float(x))
    if z < 1:
        return z / d * (1 + _excess(d + 2, z)) / (1 + _excess(d, z))
    return z.bessel_i(d / 2, scaled=True) / z.bessel_i(d / 2 - 1, scaled=True)


def _excess(d, z):
    """G_d(z) - 1 for z < 1 by its series; 60 terms leave less than 1e-180 of it."""
    term, total = arb(1), arb(0)
    for k in range(60):
        term = term * z * z / (4 * (k + 1) * (d / 2 + k))
        total += term
    return total
