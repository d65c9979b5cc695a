"""Bounds of the peak-power capacity in closed form, for settings that the solver leaves to them.

Notation as in ``fastpriv.capacity.awgn.ball``: C(d, R) is the capacity of Y = X + N(0, I_d), ||X|| <= R; V_d(R) is the
volume of the ball of radius R. All are in nats.

* average power: C <= (d/2) log(1 + R^2/d), and C <= R^2 / 2;
* one sphere at low power: C >= (R^2/2) (1 - R^2);
* entropy power, X uniform in the ball: C >= (d/2) log(1 + V_d(R)^(2/d) / (2 pi e));
* an output law that is flat in the ball, with density e^(-(rho - R)^2/2) times that outside (d = 1: McKellips 2004,
  C <= log(1 + 2 R / sqrt(2 pi e))): since rho <= R + Z_1 + |Z|^2 / (2R) given ||X|| = R, the worst case,

      C <= log V_d(R) - (d/2) log(2 pi e) + log(1 + (d/R) sqrt(2 pi) e^(a^2/2) Phi(a))
           + 1/4 + (d+1) / (2 R sqrt(2 pi)) + d (d+2) / (8 R^2),   a = (d-1)/R.
"""

# bounds: tested by kernels/test_bound_constants - rounding of R^2 / 2 and of the logarithm of the volume

from __future__ import annotations

import math

__all__ = ["LARGEST", "METHOD", "asymptotic", "lower", "radius_below", "upper"]

# bound: none - from where closed bounds take the place of the solver
LARGEST = 1e7
METHOD = "average-power, volume and entropy-power bounds"
# bound: tested by enclosures/test_awgn_capacity - the value for long intervals on the line, fitted; lower and
#    upper do without it
_EMPIRICAL = 3.98160794705  # fitted to the solver's capacities for d = 1, not proved
_LOG_2_PI_E = math.log(2.0 * math.pi * math.e)
# bound: tested by kernels/test_bound_constants - rounding of the closed bounds, relative to them and to d
_SAFE = 1e-13


def upper(d: float, radius: float, log_radius: float) -> float:
    """The least of the upper bounds; the logarithm stands in for a radius that overflows."""
    if radius < 1e-7:
        return math.nextafter(0.5 * radius * radius * (1 + 1e-15), math.inf) if radius > 0 else 0.0
    bounds = [_average_power(d, radius, log_radius)]
    if d == 1:
        bounds.append(_log1pexp(math.log(2.0) + log_radius - 0.5 * _LOG_2_PI_E))
    elif radius > d:
        a = (d - 1.0) / radius
        skirt = d / radius * math.sqrt(2.0 * math.pi) * math.exp(0.5 * a * a) * 0.5 * math.erfc(-a / math.sqrt(2.0))
        beyond = (d + 1.0) / (2.0 * radius * math.sqrt(2.0 * math.pi)) + d * (d + 2.0) / (8.0 * radius * radius)
        bounds.append(_log_volume(d, log_radius) - 0.5 * d * _LOG_2_PI_E + math.log1p(skirt) + 0.25 + beyond)
    best = min(bounds)
    return best + _SAFE * (abs(best) + d)


def lower(d: float, radius: float, log_radius: float) -> float:
    """The greatest of the lower bounds."""
    if radius < 1e-7:
        return max(0.5 * radius * radius * (1 - radius * radius - 1e-15) - 5e-324, 0.0)
    best = 0.5 * d * _log1pexp(2.0 / d * _log_volume(d, log_radius) - _LOG_2_PI_E)
    return max(best - _SAFE * (abs(best) + d), 0.0)


def asymptotic(d: float, log_radius: float) -> float:
    """What C tends to for large R: for d = 1 with an empirical constant, else the volume term alone."""
    if d == 1:
        return _log1pexp(math.log(2.0 / _EMPIRICAL) + log_radius) + math.log(_EMPIRICAL) - 0.5 * _LOG_2_PI_E
    return _log_volume(d, log_radius) - 0.5 * d * _LOG_2_PI_E


def radius_below(d: float, capacity: float) -> float:
    """R at which an upper bound is ``capacity``: C(R) is at most that."""
    exponent = 2.0 * capacity / d
    root = math.sqrt(math.expm1(exponent)) if exponent < 600.0 else math.exp(0.5 * min(exponent, 1400.0))
    power = math.sqrt(d) * root
    if d == 1 and capacity < 600.0:
        return max(power, 0.5 * math.expm1(capacity) * math.exp(0.5 * _LOG_2_PI_E))
    return power


def _average_power(d: float, radius: float, log_radius: float) -> float:
    if radius > 1e150:
        return 0.5 * d * (2.0 * log_radius - math.log(d) + 1e-15)
    return 0.5 * d * math.log1p(radius * radius / d)


def _log_volume(d: float, log_radius: float) -> float:
    return 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d + 1.0) + d * log_radius


def _log1pexp(x: float) -> float:
    return math.log1p(math.exp(x)) if x < 700.0 else x
