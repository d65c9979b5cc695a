"""delta of the reversed Poisson sample just below its largest loss: plain trapezoidal sums in extended precision.

P = N(0, sigma^2), Q = (1 - rate) N(0, sigma^2) + rate N(1, sigma^2); lam = -log(1 + u), u = rate / (1 - rate)
e^(D x - D^2 / 2), D = 1 / sigma, is the loss less the largest one. Nothing is proved: the nodes are halved until m at
the largest frequency is the same with every second node.
"""

import mpmath
import numpy as np

EXTENDED = np.longdouble


def extended(x):
    high = float(x)
    return EXTENDED(high) + EXTENDED(float(x - mpmath.mpf(high)))


def log_delta(rate, sigma, count, epsilon, t, width=0.1):
    """log delta by the contour Re z = t; 18 digits of double extended precision."""
    with mpmath.workdps(40):
        other = mpmath.mpf(1 - rate)  # a double, as the library has it
        odds, gap = extended(mpmath.mpf(rate) / other), extended(-count * mpmath.log(other) - mpmath.mpf(epsilon))
    distance, width = EXTENDED(1) / EXTENDED(sigma), EXTENDED(width / max(1.0, 1.0 / sigma))
    x = np.arange(-60.0 / float(width), 40.0 / float(width)).astype(EXTENDED) * width
    lam = -np.log1p(odds * np.exp(distance * (x - distance / 2)))
    exponent = -x * x / 2 + t * lam
    kept = exponent > exponent.max() - 70
    lam, g = lam[kept], np.exp(exponent[kept])
    log_m = np.log(g.sum() * width) - np.log(2 * EXTENDED(np.pi)) / 2
    g, base = g / g.sum(), count * log_m + t * gap
    step = 2 * EXTENDED(np.pi) / max((80 - min(float(base), 0.0)) / t, 1.01 * float(gap))
    total, n, m = EXTENDED(0.5) / (EXTENDED(t) * (EXTENDED(t) + 1)), 1, 1.0
    while abs(m) ** count > 1e-25:
        w = n * step
        turned = g * np.exp(1j * w * lam)
        m = turned.sum()
        total += (m**count * np.exp(1j * w * gap) / ((t + 1j * w) * (t + 1j * w + 1))).real
        n += 1
    if abs(2 * turned[::2].sum() - m) * count > 1e-9 * abs(m):
        return log_delta(rate, sigma, count, epsilon, t, width=float(width) / 2 * max(1.0, 1.0 / sigma))
    return base + np.log(total * step / EXTENDED(np.pi))
