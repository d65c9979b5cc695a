"""Compositions of privacy losses in exact rational numbers, and their curves in high precision."""

import math
from fractions import Fraction

import numpy as np
from mpmath import erfc, exp, log, loggamma, mp, mpf, pi, quad, sqrt

__all__ = [
    "binomial_log_delta",
    "composed_masses",
    "delta_of_atoms",
    "delta_of_masses",
    "log_delta_of_mixtures",
    "tilted_nodes",
    "two_sampled_releases",
]


def composed_masses(masses, steps):
    """The masses of the sum of ``steps`` losses, exact fractions; ``masses`` are doubles."""
    fractions = [Fraction(float(m)) for m in masses]
    scale = max(f.denominator for f in fractions)
    base = [int(f * scale) for f in fractions]
    total = [1]
    for _ in range(steps):
        product = [0] * (len(total) + len(base) - 1)
        for i, a in enumerate(total):
            for j, b in enumerate(base):
                product[i + j] += a * b
        total = product
    return total, scale**steps


def delta_of_masses(first, interval, masses, infinity_mass, steps, epsilons):
    """Delta of the composition at each epsilon, to the digits of mpmath."""
    numbers, scale = composed_masses(masses, steps)
    deltas = []
    with mp.workdps(80):
        for epsilon in epsilons:
            total = 1 - (1 - mpf(infinity_mass)) ** steps
            for index, number in enumerate(numbers):
                loss = mpf(interval) * (steps * first + index)
                if number and loss > epsilon:
                    total += mpf(number) / scale * (1 - exp(mpf(epsilon) - loss))
            deltas.append(total)
    return deltas


def delta_of_atoms(steps, epsilons, quantity="delta"):
    """Delta, or e^epsilon Q(S > epsilon), of steps (p, q, count), probabilities of the same outcomes as doubles."""
    total, finite = {Fraction(1): Fraction(1)}, Fraction(1)
    for p, q, count in steps:
        one = {}
        for a, b in zip(p, q, strict=True):
            if a > 0 and b > 0:
                ratio = Fraction(float(a)) / Fraction(float(b))
                one[ratio] = one.get(ratio, 0) + Fraction(float(a))
        finite *= (1 - sum((Fraction(float(a)) for a, b in zip(p, q, strict=True) if b == 0), Fraction(0))) ** count
        for _ in range(count):
            new = {}
            for ratio, mass in total.items():
                for factor, more in one.items():
                    new[ratio * factor] = new.get(ratio * factor, 0) + mass * more
            total = new
    with mp.workdps(60):
        rational = lambda x: mpf(x.numerator) / x.denominator
        masses = [(rational(ratio), rational(mass)) for ratio, mass in total.items()]
        found = []
        for epsilon in epsilons:
            x = exp(mpf(float(epsilon)))
            terms = [m * (1 - x / r) if quantity == "delta" else m * x / r for r, m in masses if r > x]
            found.append(sum(terms, rational(1 - finite) if quantity == "delta" else mpf(0)))
    return found


def binomial_log_delta(p, q, count, epsilon, digits=60):
    """Log delta of ``count`` draws from two outcomes, by all terms whose loss is above epsilon."""
    with mp.workdps(digits):
        p, q, k, total = [mpf(float(x)) for x in p], [mpf(float(x)) for x in q], count, mpf(0)
        losses = [log(a / b) for a, b in zip(p, q, strict=True)]
        first = max(0, int((epsilon - k * losses[1]) / (losses[0] - losses[1])) - 2)
        for n in range(first, k + 1):
            loss = n * losses[0] + (k - n) * losses[1]
            if loss <= epsilon:
                continue
            if total == 0 or n % 64 == 0:
                ways = loggamma(k + 1) - loggamma(n + 1) - loggamma(k - n + 1)
                mass = exp(ways + n * log(p[0]) + (k - n) * log(p[1]))
            else:
                mass *= (k - n + 1) * p[0] / (n * p[1])
            term = mass * (1 - exp(epsilon - loss))
            total += term
            if term < total * mpf(10) ** -30 and mass * n < total:
                break
        return log(total)


def tilted_nodes(p, q, t, w):
    """Weights of p e^(t L) and losses L of a pair of mixtures (rows of weight, mean, sigma) at equidistant points, for
    sums over e^(i v L) with |v| <= w, in extended precision: sums over them are spectrally accurate.
    """
    narrow, means = min(s for *_, s in (*p, *q)), [m for _, m, _ in (*p, *q)]
    widest_p, widest_q = max(s for *_, s in p), max(s for *_, s in q)
    precision = (1 + t) / widest_p**2 - t / widest_q**2
    shift = (1 + t) * (max(means) - min(means)) / widest_p**2 / precision
    reach = 14 / math.sqrt(min(precision, 1 / widest_p**2)) + min(shift, 100 * widest_p)

    def log_density(components, x):
        logs = [
            np.log(np.longdouble(weight) / np.longdouble(s)) - ((x - np.longdouble(m)) / np.longdouble(s)) ** 2 / 2
            for weight, m, s in components
        ]
        top = np.max(logs, axis=0)
        return top + np.log(np.sum(np.exp(logs - top), axis=0))

    def at(step):
        n = np.arange(math.floor((min(means) - reach) / step), math.ceil((max(means) + reach) / step) + 1)
        x = n * np.longdouble(step)
        log_p = log_density(p, x)
        loss = log_p - log_density(q, x)
        logs = log_p + t * loss + np.log(np.longdouble(step)) - np.log(2 * np.longdouble(np.pi)) / 2
        kept = logs > np.max(logs) - 50
        return logs[kept], loss[kept]

    _, loss = at(narrow / 12)
    steepest = float(np.max(np.abs(np.diff(loss)))) / (narrow / 12)
    return at(1 / (12 / narrow + (5 + w / 3) * steepest))  # zeros of p and q are pi / (2 steepest) away, or more


def log_delta_of_mixtures(p, q, count, epsilon, t, period, frequencies):
    """log delta of ``count`` copies of a pair by the trapezoidal rule on Re z = t with ``frequencies`` terms, whose
    aliases are delta(epsilon + j period) e^(t j period): the caller sees by other arguments that they do not matter.
    """
    h = 2 * np.longdouble(np.pi) / np.longdouble(period)
    logs, loss = tilted_nodes(p, q, t, float(h) * frequencies)
    top = np.max(logs)
    log_total = top + np.log(np.sum(np.exp(logs - top)))
    weights, mean = np.exp(logs - log_total), np.sum(np.exp(logs - log_total) * loss)
    total = np.longdouble(0.0)
    for n in range(frequencies):
        w = n * h
        angle = w * (loss - mean)
        m = np.sum(weights * np.cos(angle)) + 1j * np.sum(weights * np.sin(angle))
        if abs(m) == 0.0:
            continue
        z = np.longdouble(t) + 1j * w
        term = np.exp(count * np.log(m) + 1j * w * (count * mean - np.longdouble(epsilon))) / (z * (z + 1))
        total += term.real * (np.longdouble(0.5) if n == 0 else 1)
    return float(np.log(total * h / np.longdouble(np.pi)) + count * log_total - np.longdouble(epsilon) * t)


def two_sampled_releases(first, second, epsilon, removes=True, digits=30):
    """Delta of two releases (rate, distance over sigma), the mixture against the noise if ``removes``: the integral
    over the first release of the best test of the second. The digits are absolute: deep tails ask for more.
    """
    with mp.workdps(digits):
        (q, a), (r, b) = (tuple(mpf(x) for x in one) for one in (first, second))
        level = exp(mpf(epsilon))

        def above(x):
            return erfc(x / sqrt(2)) / 2

        def best(x):
            d = 1 - q + q * exp(a * x - a * a / 2)
            odds = 1 + ((level / d if removes else 1 / (level * d)) - 1) / r
            y = log(odds) / b + b / 2 if odds > 0 else -mp.inf
            if removes:
                gained = d * ((1 - r) * above(y) + r * above(y - b)) - level * above(y) if odds > 0 else d - level
            else:
                gained = above(-y) - level * d * ((1 - r) * above(-y) + r * above(b - y)) if odds > 0 else 0
            return exp(-x * x / 2) / sqrt(2 * pi) * gained

        odds = 1 + ((level if removes else 1 / level) / (1 - r) - 1) / q
        points = [mpf(x) for x in range(-20, 21)]
        if odds > 0:  # beyond this end the second release can only gain, or only lose
            end = log(odds) / a + a / 2
            points += [end + side * mpf(2) ** -j for j in range(0, 24, 2) for side in (-1, 1)] + [end, end + 8]
        return quad(best, sorted(set(points)))
