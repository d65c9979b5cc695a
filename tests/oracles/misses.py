"""Probabilities that Gaussian noise leaves a ball or a cube, in mpmath."""

import mpmath as mp


def ball(k, length, radius, digits=60):
    """P(|s + Z|_2 > radius) with |s|_2 = length in k dimensions: the series over Poisson weights, by recurrences."""
    with mp.workdps(digits):
        half, x = mp.mpf(length) ** 2 / 2, mp.mpf(radius) ** 2 / 2
        top = int(max(half, mp.mpf(length) * min(radius, length + 42) / 2))
        width = int(60 * mp.sqrt(top + 1) + 200)
        j = max(0, top - width)
        a = mp.mpf(k) / 2 + j
        tail = mp.gammainc(a, x, regularized=True)
        weight = mp.mpf(j == 0) if half == 0 else mp.exp(-half + j * mp.log(half) - mp.loggamma(j + 1))
        step = mp.mpf(0) if x == 0 else mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))
        total = mp.mpf(0)
        for i in range(j, top + width):
            total += weight * tail
            weight *= half / (i + 1)
            tail += step
            a += 1
            step *= x / a
        return total


def line(shift, radius, digits=60):
    with mp.workdps(digits):
        return mp.ncdf(mp.mpf(shift) - radius) + mp.ncdf(-mp.mpf(shift) - radius)


def cube(shifts, radius, digits=400):
    with mp.workdps(digits):
        return 1 - mp.fprod(1 - line(shift, radius, digits) for shift in shifts)
