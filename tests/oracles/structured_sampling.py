"""Truth for allocations to at most three steps: integrals of smooth functions of normal variables.

E (Y - x)^+ of one log-normal variable has infinitely many derivatives in x, 0 included, so that the trapezoid rule over
the other variables converges faster than any power of its step, once the step moves x by less than Y varies.
"""

from __future__ import annotations

import mpmath
import numpy as np
from scipy import special


def one_step(scale: float, epsilon: float) -> float:
    """delta of one step: that of the Gaussian mechanism, in 40 digits."""
    with mpmath.workdps(40):
        a, e = mpmath.mpf(scale), mpmath.mpf(epsilon)
        return float(mpmath.ncdf(a / 2 - e / a) - mpmath.exp(e) * mpmath.ncdf(-a / 2 - e / a))


def allocation_deltas(scale: float, steps: int, epsilon: float) -> tuple[float, float]:
    """delta of removal and of addition for two steps, or for three of a moderate scale, to 10 digits."""
    step = 2.0**-13 if steps == 2 else 2.0**-5
    z = np.arange(-9.0, 9.0 + scale, step)
    y, mass = np.exp(scale * z - scale**2 / 2), np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * step
    others, weights = y, mass
    if steps == 3:
        others, weights = np.add.outer(y, y).ravel(), np.multiply.outer(mass, mass).ravel()
    found = []
    for level, sign in ((steps * np.exp(epsilon), 1.0), (steps * np.exp(-epsilon), -1.0)):
        x = level - others
        d = (scale**2 / 2 - np.log(np.maximum(x, 1e-300))) / scale
        over = special.ndtr(sign * d) - x * special.ndtr(sign * (d - scale))
        inside = np.where(x > 0.0, sign * over, np.maximum(sign * (1.0 - x), 0.0))
        found.append(float(weights @ inside) / steps)
    return found[0], found[1] * float(np.exp(epsilon))


def two_bins_delta(scale: float, correlation: float, epsilon: float) -> float:
    """delta of removal for two bins whose log ratios have this scale and correlation, given the first by a closed form.

    Given z_1, the second is log-normal with the mean e^(rho a z_1 - rho^2 a^2 / 2) and the scale a sqrt(1 - rho^2).
    """
    step = 2.0**-13
    z = np.arange(-9.0, 9.0 + scale, step)
    mass = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * step
    x = 2 * np.exp(epsilon) - np.exp(scale * z - scale**2 / 2)
    mean = np.exp(correlation * scale * z - (correlation * scale) ** 2 / 2)
    rest = scale * np.sqrt(1 - correlation**2)
    d = (rest**2 / 2 - np.log(np.maximum(x / mean, 1e-300))) / rest
    over = mean * special.ndtr(d) - x * special.ndtr(d - rest)
    return float(mass @ np.where(x > 0.0, over, mean - x)) / 2
