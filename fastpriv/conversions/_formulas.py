"""What many conversions share, in NumPy, without cancellation; no checks here.

Notation: h is the binary entropy in nats, s(x) = 1/(1 + e^-x), phi(r) = r ln(2r/(1+r)) + ln(2/(1+r)), so that the
Jensen-Shannon divergence of P and R is E_R phi(P/R) / 2; T_x(b) = min(e^x b, 1 - e^-x (1 - b)).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LN2", "bernoulli_js", "bernoulli_js_root", "between", "entropy_excess", "log_excess", "mean_loss", "phi",
    "response_renyi", "retained", "subset_capacity", "tilted", "transfer",
]  # fmt: skip

FloatArray = NDArray[np.float64]
LN2 = float(np.log(2.0))
# bound: proved - below it the next term of the series is under half an ulp
_LEAST = 1e-8  # below it one term of a series is exact to the last bit
_ODD = 1.0 / np.arange(3.0, 33.0, 2.0)  # artanh z = z + z^3/3 + z^5/5 + ..., for |z| <= 0.2


def entropy_excess(y: FloatArray) -> FloatArray:
    """(1 + y) ln(1 + y) - y for y >= -1; about y^2/2."""
    near = (y >= -0.3) & (y <= 0.5)
    z, rest = _artanh_rest(np.where(near, y, 0.0))
    series = 2.0 * z * z * (1.0 + (1.0 + z) * z * rest) / (1.0 - z)
    far = np.where(near | (y == -1.0), 0.0, y)
    return np.asarray(np.where(near, series, np.where(y == -1.0, 1.0, (1.0 + far) * np.log1p(far) - far)))


def log_excess(y: FloatArray) -> FloatArray:
    """y - ln(1 + y) for y >= 0; about y^2/2."""
    near = y <= 0.5
    z, rest = _artanh_rest(np.where(near, y, 0.0))
    series = 2.0 * z * z * (1.0 / (1.0 - z) - z * rest)
    far = np.where(near | np.isinf(y), 0.0, y)
    return np.asarray(np.where(near | np.isinf(y), np.where(near, series, y), far - np.log1p(far)))


def phi(excess: FloatArray) -> FloatArray:
    """phi(1 + excess) for excess >= -1: ln 2 at -1, about excess^2/4 near 0."""
    near = excess <= 1.0
    inner = np.where(near, excess, 0.0)
    ratio = 1.0 + np.where(near, 1.0, excess)
    half = 0.5 + 0.5 * ratio
    return np.asarray(
        np.where(near, entropy_excess(inner) - 2.0 * entropy_excess(inner / 2.0),
                 ratio * np.log(ratio / half) - np.log(half))
    )  # fmt: skip


def bernoulli_js(x: FloatArray) -> FloatArray:
    """ln 2 - h(s(x)): the Jensen-Shannon divergence of Bernoulli s(x) and s(-x), the capacity of that channel."""
    u = 0.5 * x
    small = u < 1.0
    inner = np.where(small, u, 0.0)
    near = inner * np.tanh(inner) - np.log1p(2.0 * np.sinh(0.5 * inner) ** 2)
    far = np.where(small, 1.0, np.minimum(u, 400.0))
    faded = np.exp(-2.0 * far)
    return np.asarray(np.where(small, near, LN2 - np.log1p(faded) - 2.0 * far * faded / (1.0 + faded)))


def bernoulli_js_root(x: FloatArray) -> FloatArray:
    """The square root of ``bernoulli_js``, also where that is below the smallest double."""
    return np.asarray(np.where(x < _LEAST, x * np.sqrt(0.125), np.sqrt(bernoulli_js(np.maximum(x, _LEAST)))))


def mean_loss(x: FloatArray) -> FloatArray:
    """x tanh(x/2): the mean log ratio of Bernoulli s(x) and s(-x)."""
    return np.asarray(x * np.tanh(0.5 * x))


def tilted(x: FloatArray, share: FloatArray) -> FloatArray:
    """ln(share + (1 - share) e^x) for x >= 0 and share in [0, 1]."""
    with np.errstate(over="ignore", invalid="ignore"):
        small = x < 1.0
        near = np.log1p((1.0 - share) * np.expm1(np.where(small, x, 0.0)))
        far = x + np.log1p(share * np.expm1(-np.where(small, 1.0, x)))
    return np.asarray(np.where(small, near, np.where(share == 1.0, 0.0, far)))


def retained(x: FloatArray, share: FloatArray) -> FloatArray:
    """-ln(share + (1 - share) e^-x) for x >= 0 and share in [0, 1]."""
    drop = (1.0 - share) * -np.expm1(-x)
    near = drop < 0.5
    with np.errstate(divide="ignore"):
        far = -np.logaddexp(np.log(share), np.log1p(-share) - x)
    return np.asarray(np.where(near, -np.log1p(-np.where(near, drop, 0.0)), far))


def transfer(x: FloatArray, chance: FloatArray) -> FloatArray:
    """T_x(chance): the largest probability of an event under a law whose log ratios to the first are at most x."""
    with np.errstate(over="ignore", invalid="ignore"):
        root = np.exp(0.5 * x)
        grown = np.where(chance == 0.0, np.where(np.isinf(x), np.inf, 0.0), root * (root * chance))
    return np.asarray(np.minimum(grown, chance - (1.0 - chance) * np.expm1(-x)))


def between(epsilon: FloatArray, delta: FloatArray, at: FloatArray) -> FloatArray:
    """delta + (1 - delta) (e^epsilon - e^at)^+ / (1 + e^epsilon): the whole curve that one point bounds."""
    with np.errstate(invalid="ignore"):
        gap = np.where(epsilon > at, epsilon - at, 0.0)
        return np.asarray(delta + (1.0 - delta) * -np.expm1(-gap) / (1.0 + np.exp(-epsilon)))


def response_renyi(epsilon: FloatArray, order: FloatArray) -> FloatArray:
    """Renyi divergence of Bernoulli s(epsilon) from s(-epsilon): ln(cosh((a - 1/2) e) / cosh(e/2)) / (a - 1)."""
    epsilon, order = np.broadcast_arrays(epsilon, order)
    t = np.tanh(0.5 * epsilon)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        step = order - 1.0
        v = np.where(np.isinf(order) | np.isinf(epsilon), np.inf, step * epsilon)
        small = v < 1.0
        inner = np.where(small, v, 0.0)
        half = np.sinh(0.5 * inner)
        stretch = np.where(inner == 0.0, 1.0, half / (0.5 * inner))
        core = t * stretch * np.cosh(0.5 * inner) + half * stretch
        x = inner * core
        near = epsilon * core * np.where(x == 0.0, 1.0, np.log1p(x) / x)
        far = epsilon + np.log1p(np.expm1(-2.0 * v) / (1.0 + np.exp(epsilon))) / step
    return np.asarray(np.where(small, near, np.where(np.isinf(v), epsilon, far)))


def subset_capacity(epsilon: FloatArray) -> FloatArray:
    """s - 1 - ln s with s = e/(1 - exp(-e)): largest KL of Bernoulli laws whose log odds differ by epsilon."""
    small = epsilon < 1.0
    x = np.where(small, epsilon, 0.0)
    series = np.ones_like(x)
    for k in range(20, 2, -1):
        series = 1.0 - series * x / k
    chord = np.where(x == 0.0, 1.0, -np.expm1(-x) / np.where(x == 0.0, 1.0, x))
    y = np.where(small, 0.5 * x * series / chord, 0.0)
    far = np.where(small, 1.0, epsilon)
    with np.errstate(invalid="ignore"):
        faded = np.exp(-far)
        beyond = np.where(np.isinf(far), np.inf, (far - 1.0 + faded) / (1.0 - faded))
    return log_excess(np.where(small, y, beyond))


def _artanh_rest(y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """z = y/(2 + y), for which ln(1 + y) = 2 artanh z, and (artanh z - z) / z^3."""
    z = y / (2.0 + y)
    square = z * z
    rest = np.zeros_like(z)
    for coefficient in _ODD[::-1]:
        rest = rest * square + coefficient
    return z, rest
