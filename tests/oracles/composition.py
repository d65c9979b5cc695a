"""Compositions of privacy losses in exact rational numbers, and their curves in high precision."""

from fractions import Fraction

from mpmath import exp, log, loggamma, mp, mpf

__all__ = ["binomial_log_delta", "composed_masses", "delta_of_atoms", "delta_of_masses"]


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
