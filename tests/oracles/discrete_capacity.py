"""Capacity of a small channel in high precision: a path of logarithmic barriers, followed by Newton's method in mpmath.

The rows are divided by their exact sums. The answer is a bracket, I(p) <= C <= max_d KL(Q_d || pQ), so narrow that it
passes for a number.
"""

from mpmath import mp, mpf

DIGITS = 50


def rows_of(channel):
    exact = [[mpf(float(cell)) for cell in row] for row in channel]
    return [[cell / mp.fsum(row) for cell in row] for row in exact]


def divergences(rows, q):
    return [mp.fsum(x * mp.log(x / t) for x, t in zip(row, q, strict=True) if x) for row in rows]


def output_of(rows, p):
    return [mp.fsum(a * row[w] for a, row in zip(p, rows, strict=True)) for w in range(len(rows[0]))]


def information(channel, law):
    """I(p, Q) for any weights p, divided by their sum."""
    with mp.workdps(DIGITS):
        rows, p = rows_of(channel), [mpf(float(a)) for a in law]
        p = [a / mp.fsum(p) for a in p]
        return mp.fsum(a * k for a, k in zip(p, divergences(rows, output_of(rows, p)), strict=True))


def capacity(channel, width="1e-35"):
    """Lower and upper bound, apart by less than ``width``."""
    with mp.workdps(DIGITS):
        rows = rows_of(channel)
        n = len(rows)
        p = [mpf(1) / n] * n
        mu = mpf(1) / 10
        while True:
            p = centred(rows, p, mu)
            k = divergences(rows, output_of(rows, p))
            lower, upper = mp.fsum(a * b for a, b in zip(p, k, strict=True)), max(k)
            if upper - lower < mpf(width) or mu < mpf(10) ** -(DIGITS - 4):
                return lower, upper
            mu /= 10


def centred(rows, p, mu):
    """The maximum of I(p) + mu sum log p, by Newton's method that stays inside."""
    n = len(rows)
    for _ in range(60):
        q = output_of(rows, p)
        k = divergences(rows, q)
        system = mp.matrix(n + 1, n + 1)
        right = mp.matrix(n + 1, 1)
        for i in range(n):
            for j in range(n):
                system[i, j] = mp.fsum(a * b / t for a, b, t in zip(rows[i], rows[j], q, strict=True) if t)
            system[i, i] += mu / p[i] ** 2
            system[i, n] = system[n, i] = 1
            right[i] = k[i] + mu / p[i]
        step = mp.lu_solve(system, right)
        longest = max(-step[i] / p[i] for i in range(n))
        length = 1 if longest < mpf("0.9") else mpf("0.9") / longest
        p = [a + length * step[i] for i, a in enumerate(p)]
        if length == 1 and max(abs(step[i]) / p[i] for i in range(n)) < mpf("1e-20"):
            break
    return p


def alike_response(k, epsilon):
    """Randomised response: the divergence of a row from the uniform law."""
    grown = mp.exp(mpf(epsilon))
    truth, lie = grown / (grown + k - 1), 1 / (grown + k - 1)
    return truth * mp.log(k * truth) + (k - 1) * lie * mp.log(k * lie)


def alike_subsets(k, epsilon, size):
    """Subset selection, in the same way."""
    share = mpf(size) / k
    inside = 1 / (share + (1 - share) * mp.exp(-mpf(epsilon)))
    outside = inside * mp.exp(-mpf(epsilon))
    return share * inside * mp.log(inside) + (1 - share) * outside * mp.log(outside)


def alike_bits(k, p, q):
    """Unary encoding, 0 < q < 1: by how many of the other bits are 1, and by the own bit."""
    total, chance = mpf(0), (1 - q) ** (k - 1)
    inside, outside = p * (1 - q), (1 - p) * q
    for others in range(k):
        for bit in (0, 1):
            own = chance * (p if bit else 1 - p)
            ones = others + bit
            if own:
                total += own * mp.log(k * (inside if bit else outside) / (ones * inside + (k - ones) * outside))
        chance *= (k - 1 - others) / mpf(others + 1) * q / (1 - q)
    return total
