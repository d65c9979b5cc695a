"""Independent truth for mixtures in d dimensions that are one-dimensional in disguise, from the exact input.

Distances are rational: Mahalanobis squares by Gaussian elimination on fractions. Everything after that is mpmath at 30
digits. A law on the line is (weights, positions, deviations) in numbers mpmath understands; nothing is proved here,
but quadrature and bisection are carried far beyond double precision. Nothing comes from the package under test.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import mpmath as mp
import numpy as np

__all__ = [
    "entropy", "gaussian_delta", "gaussian_kl", "gaussian_renyi", "hockey_stick", "information", "js", "kl",
    "log_determinant", "mahalanobis", "number", "renyi",
]

DIGITS = 30


def number(x):
    """A fraction in mpmath at the working precision."""
    return mp.mpf(x.numerator) / x.denominator


def eliminated(k, columns):
    """Exact solution of k x = columns and the determinant of k, all entries fractions."""
    d = len(k)
    rows = [list(map(Fraction, row)) + list(map(Fraction, right)) for row, right in zip(k, columns, strict=True)]
    determinant = Fraction(1)
    for i in range(d):
        pivot = next(j for j in range(i, d) if rows[j][i])
        if pivot != i:
            rows[i], rows[pivot], determinant = rows[pivot], rows[i], -determinant
        determinant *= rows[i][i]
        for j in range(d):
            if j != i and rows[j][i]:
                factor = rows[j][i] / rows[i][i]
                rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [[x / rows[i][i] for x in rows[i][d:]] for i in range(d)], determinant


def mahalanobis(m, n, k):
    """The exact (m - n)' K^-1 (m - n); k a matrix or a vector of standard deviations."""
    z = [Fraction(float(a)) - Fraction(float(b)) for a, b in zip(m, n, strict=True)]
    if np.ndim(k) == 1:
        return sum(((a / Fraction(float(s))) ** 2 for a, s in zip(z, k, strict=True)), Fraction(0))
    solved, _ = eliminated(np.asarray(k).tolist(), [[a] for a in z])
    return sum((a * x[0] for a, x in zip(z, solved, strict=True)), Fraction(0))


def log_determinant(k):
    with mp.workdps(DIGITS):
        return mp.log(number(eliminated(np.asarray(k).tolist(), [[0]] * len(k))[1]))


def gaussian_delta(square, epsilon):
    """Hockey-stick divergence of two normal laws at the given Mahalanobis square, and its logarithm's argument."""
    with mp.workdps(DIGITS + int(epsilon) + 400):
        r, e = mp.sqrt(number(square)), mp.mpf(epsilon)
        return +(_tail(e / r - r / 2) - mp.exp(e) * _tail(e / r + r / 2))


def gaussian_kl(m, s, n, t):
    """KL of N(m, s) and N(n, t), covariances exact."""
    trace, distance, ratio = _moments(m, s, n, t)
    with mp.workdps(DIGITS):
        return (number(trace - len(m) + distance) - mp.log(number(ratio))) / 2


def gaussian_renyi(m, s, n, t, order):
    """Renyi divergence of N(m, s) and N(n, t); infinite where a t + (1 - a) s is not positive definite."""
    a = Fraction(order)
    s, t = ([[Fraction(float(x)) for x in row] for row in k] for k in (s, t))
    d = len(m)
    h = [[a * t[i][j] + (1 - a) * s[i][j] for j in range(d)] for i in range(d)]
    minors = [eliminated([row[:i] for row in h[:i]], [[0]] * i)[1] if i else Fraction(1) for i in range(d + 1)]
    if min(minors) <= 0:
        return mp.inf
    z = [Fraction(float(x)) - Fraction(float(y)) for x, y in zip(m, n, strict=True)]
    solved, top = eliminated(h, [[x] for x in z])
    form = sum((x * y[0] for x, y in zip(z, solved, strict=True)), Fraction(0))
    (_, one), (_, two) = (eliminated(k, [[0]] * d) for k in (s, t))
    with mp.workdps(DIGITS):
        b = number(1 - a)
        logs = mp.log(number(top)) - b * mp.log(number(one)) - (1 - b) * mp.log(number(two))
        return number(a * form) / 2 + logs / (2 * b)


def kl(p, q):
    return _integral([p, q], lambda a, b: a * (mp.log(a / b) + b / a - 1), [p])


def js(p, q):
    def integrand(a, b):
        middle = (a + b) / 2
        return (a * mp.log(a / middle) + b * mp.log(b / middle)) / 2

    return _integral([p, q], integrand, [p, q])


def renyi(p, q, order):
    """All deviations equal: w N(m) to the a times v N(n) to the 1 - a then peaks at a m + (1 - a) n."""
    a = mp.mpf(order)
    peaks = [a * m + (1 - a) * n for m in p[1] for n in q[1]]
    centres = [p, q, (peaks, peaks, [p[2][0]] * len(peaks))]
    return mp.log(_integral([p, q], lambda x, y: mp.exp(a * mp.log(x) + (1 - a) * mp.log(y)), centres)) / (a - 1)


def entropy(p):
    return _integral([p], lambda a: -a * mp.log(a), [p])


def information(p):
    """Mutual information of the component and the sample, all deviations equal."""
    with mp.workdps(DIGITS):
        return entropy(p) - mp.log(2 * mp.pi * mp.e * mp.mpf(p[2][0]) ** 2) / 2


def hockey_stick(p, q, epsilon):
    """H_{e^epsilon}(P||Q) from the sign changes of p - e^epsilon q on a fine grid."""
    with mp.workdps(DIGITS + 40):
        level = mp.mpf(epsilon)

        def gap(x):
            return mp.log(_density(p, x)) - mp.log(_density(q, x)) - level

        low, high = _ends([p, q], 60)
        grid = np.linspace(float(low), float(high), 20001)
        above = _log_density(p, grid) - _log_density(q, grid) > epsilon
        cuts = [-mp.inf]
        for i in np.flatnonzero(above[1:] != above[:-1]).tolist():
            ends = mp.mpf(grid[max(i - 1, 0)]), mp.mpf(grid[min(i + 2, 20000)])
            cuts.append(mp.findroot(gap, ends, solver="anderson", tol=mp.mpf(10) ** -70, verify=False))
        cuts.append(mp.inf)
        total = mp.mpf(0)
        for x, y in pairwise(cuts):
            inside = low if x == -mp.inf else x
            if gap((inside + (high if y == mp.inf else y)) / 2) > 0:
                total += _mass(p, x, y) - mp.exp(level) * _mass(q, x, y)
        return +total


def _moments(m, s, n, t):
    solved, two = eliminated(np.asarray(t).tolist(), np.asarray(s).tolist())
    one = eliminated(np.asarray(s).tolist(), [[0]] * len(m))[1]
    return sum(row[i] for i, row in enumerate(solved)), mahalanobis(m, n, np.asarray(t)), one / two


def _tail(x):
    return mp.erfc(x / mp.sqrt(2)) / 2


def _mass(law, x, y):
    total = mp.mpf(0)
    for w, m, s in zip(*law, strict=True):
        a, b = (x - mp.mpf(m)) / s, (y - mp.mpf(m)) / s
        total += w * (_tail(a) - _tail(b) if a + b > 0 else _tail(-b) - _tail(-a))
    return total


def _density(law, x):
    return mp.fsum(w * mp.exp(-(((x - m) / s) ** 2) / 2) / s for w, m, s in zip(*law, strict=True)) / mp.sqrt(2 * mp.pi)


def _log_density(law, x):
    """Of a float array, to find where signs change."""
    w, m, s = (np.array(list(map(float, column)))[:, None] for column in law)
    parts = np.log(w / s) - ((x - m) / s) ** 2 / 2
    top = parts.max(axis=0)
    return top + np.log(np.exp(parts - top).sum(axis=0))


def _ends(laws, reach):
    return (
        min(mp.mpf(m) - reach * s for law in laws for _, m, s in zip(*law, strict=True)),
        max(mp.mpf(m) + reach * s for law in laws for _, m, s in zip(*law, strict=True)),
    )


def _integral(laws, integrand, centres):
    with mp.workdps(DIGITS):
        cuts = set()
        for law in centres:
            for _, m, s in zip(*law, strict=True):
                cuts |= {mp.mpf(m) + k * s for k in (-13, -8, -4, 0, 4, 8, 13)}
        kept = []
        for x in sorted(cuts):
            if not kept or x - kept[-1] > mp.mpf(laws[0][2][0]) / 4:
                kept.append(x)
        return mp.quad(lambda x: integrand(*(_density(law, x) for law in laws)), kept, method="gauss-legendre")
