"""LIP curves of a discrete law behind Gaussian noise, for many atoms: all of them in doubles, or one in mpmath."""

import mpmath as mp
import numpy as np
from scipy.special import logsumexp, ndtr

__all__ = ["all_divergences", "divergence_at"]


def all_divergences(points, weights, sigma, epsilon):
    """(H(M||N_a), e^-epsilon H(N_a||M)) for every atom a, M the law of the release; crossings by bisection."""
    d = (points[None, :] - points[:, None]) / sigma  # row: the atom a

    def log_ratio(t):
        return logsumexp(np.log(weights) + d * (t[:, None] - d / 2), axis=1)

    def crossing(level, inner, outer):
        """Where the log-ratio passes the level between points where it is below and above it."""
        for _ in range(64):
            middle = (inner + outer) / 2
            below = log_ratio(middle) < level
            inner, outer = np.where(below, middle, inner), np.where(below, outer, middle)
        return inner

    def tails(left, right, factor):
        outside = ndtr(left[:, None] - d) @ weights + ndtr(d - right[:, None]) @ weights
        return outside - factor * (ndtr(left) + ndtr(-right)), 1 - outside, ndtr(right) - ndtr(left)

    n, far = len(points), 1e9
    with np.errstate(over="ignore"):
        right = crossing(epsilon, np.zeros(n), np.where(np.arange(n) < n - 1, far, 0.0))
        left = crossing(epsilon, np.zeros(n), np.where(np.arange(n) > 0, -far, 0.0))
        right[-1], left[0] = np.inf, -np.inf
        first = tails(left, right, np.exp(epsilon))[0]
        low, high = np.full(n, -50.0), np.full(n, 50.0)
        for _ in range(90):  # the least log-ratio, by thirds
            a, b = (2 * low + high) / 3, (low + 2 * high) / 3
            falls = log_ratio(a) > log_ratio(b)
            low, high = np.where(falls, a, low), np.where(falls, high, b)
        least = (low + high) / 2
        some = log_ratio(least) < -epsilon
        right = crossing(-epsilon, least, np.full(n, far))
        left = crossing(-epsilon, least, np.full(n, -far))
        right, left = np.where(right < far / 2, right, np.inf), np.where(left > -far / 2, left, -np.inf)
        _, inside, own = tails(left, right, 0.0)
        second = np.where(some, np.exp(-epsilon) * own - inside, 0.0)
    return first, second


def divergence_at(points, weights, sigma, epsilon, index, digits=40):
    """H_{e^epsilon}(M||N_a) for one atom a, as a number of so many digits."""
    with mp.workdps(digits + 15):
        e, w = mp.mpf(float(epsilon)), [mp.mpf(float(v)) for v in weights]
        d = [(mp.mpf(float(x)) - mp.mpf(float(points[index]))) / mp.mpf(float(sigma)) for x in points]
        total = mp.mpf(0)
        for sign in (1, -1):
            beyond = [(u, sign * v) for u, v in zip(w, d, strict=True) if sign * v > 0]
            if not beyond:
                continue
            t = sign * min((e - mp.log(u)) / v + v / 2 for u, v in beyond)
            for _ in range(200):  # Newton from outside, for the log-ratio is convex
                terms = [u * mp.exp(v * (t - v / 2)) for u, v in zip(w, d, strict=True)]
                mass = mp.fsum(terms)
                step = (mp.log(mass) - e) * mass / mp.fsum(v * u for u, v in zip(terms, d, strict=True))
                t -= step
                if abs(step) < mp.mpf(10) ** (-digits) * abs(t):
                    break
            total += mp.fsum(u * mp.ncdf(sign * (v - t)) for u, v in zip(w, d, strict=True))
            total -= mp.exp(e) * mp.ncdf(-sign * t)
        return +total
