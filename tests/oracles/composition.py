"""Compositions of privacy losses on a grid in exact integers, and their curve in high precision."""

from fractions import Fraction

from mpmath import exp, mp, mpf

__all__ = ["composed_masses", "delta_of_masses"]


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
