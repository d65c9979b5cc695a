"""Integrals of privacy curves over epsilon in 40-digit arithmetic, by mpmath's own quadrature on explicit curves."""

from __future__ import annotations

from collections.abc import Callable

from mpmath import mp

DIGITS = 40


def gaussian_delta(r, epsilon):
    """Balle and Wang 2018, theorem 8, with r = sensitivity / (2 sigma)."""
    r, epsilon = mp.mpf(r), mp.mpf(epsilon)
    return mp.ncdf(r - epsilon / (2 * r)) - mp.exp(epsilon) * mp.ncdf(-r - epsilon / (2 * r))


def integral(integrand: Callable, breaks) -> mp.mpf:
    """Over the consecutive pieces between ``breaks``."""
    with mp.workdps(DIGITS):
        return mp.quad(integrand, [mp.mpf(b) for b in breaks])


def gaussian_published(r) -> mp.mpf:
    return _gaussian(r, lambda e: 1 + mp.exp(-e))


def gaussian_two_inputs(r) -> mp.mpf:
    return _gaussian(r, lambda e: 1 / (1 + mp.exp(e)))


def _gaussian(r, weight) -> mp.mpf:
    with mp.workdps(DIGITS):
        r = mp.mpf(r)
        end = 2 * r * (r + 15)
        return integral(lambda e: weight(e) * gaussian_delta(r, e), [end * k / 40 for k in range(41)])


def lip_of_two_points(r, epsilon):
    """LIP curve of a fair coin at distance 2 r sigma: both branches are the Gaussian curve at another ratio.

    p_M - a p_x = (p_y - (2a - 1) p_x) / 2, and (p_x - a p_M) / a = ((2 - a) p_x - a p_y) / (2a).
    """
    a = mp.exp(epsilon)
    released = gaussian_delta(r, mp.log(2 * a - 1)) / 2
    if a >= 2:
        return released
    return max(released, (2 - a) / (2 * a) * gaussian_delta(r, mp.log(a / (2 - a))))


def published_lip_of_two_points(r) -> mp.mpf:
    """Equation (14) in nats, cut at the kink where the branches cross, and at log 2."""
    with mp.workdps(DIGITS):
        r = mp.mpf(r)
        end = 2 * r * (3 * r + 20) + 5
        breaks = [mp.mpf(0), *sorted([mp.log(2), *_crossings(r)]), *(1 + (end - 1) * k / 40 for k in range(41))]
        return integral(lambda e: (mp.exp(e) + mp.exp(-e)) * lip_of_two_points(r, e), breaks)


def _crossings(r):
    def difference(e):
        a = mp.exp(e)
        single = (2 - a) / (2 * a) * gaussian_delta(r, mp.log(a / (2 - a)))
        return gaussian_delta(r, mp.log(2 * a - 1)) / 2 - single

    grid = [mp.log(2) * k / 64 for k in range(1, 64)]
    values = [difference(e) for e in grid]
    return [
        mp.findroot(difference, (grid[i], grid[i + 1]), solver="anderson", tol=mp.mpf(10) ** -60)
        for i in range(62) if values[i] * values[i + 1] < 0
    ]


def binary_kl(p1, p0) -> mp.mpf:
    """KL(Ber(p1) || Ber(p0)) of exact doubles."""
    with mp.workdps(DIGITS):
        p1, p0 = mp.mpf(p1), mp.mpf(p0)
        pairs = ((p1, p0), (1 - p1, 1 - p0))
        return mp.fsum(x * mp.log(x / y) for x, y in pairs if x > 0)


def straight_line(rates, start, h, left, right) -> mp.mpf:
    """Of the line in a = e^epsilon with these end values against e^(rate epsilon), or 1/(1 + a) for no rate."""
    with mp.workdps(600):
        start, h, left, right = (mp.mpf(float(x)) for x in (start, h, left, right))
        a, b = mp.exp(start), mp.exp(start + h)
        slope = (right - left) / (b - a)
        constant = left - slope * a
        moments = {
            (0,): (h, b - a), (-1,): (1 / a - 1 / b, h), (1,): (b - a, (b * b - a * a) / 2),
            (): (h - mp.log((1 + b) / (1 + a)), mp.log((1 + b) / (1 + a))),
        }[tuple(rates)]
        return constant * moments[0] + slope * moments[1]
