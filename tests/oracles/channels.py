"""Channels from their definitions, and what they leak, in many digits; slow and readable."""

import itertools

from mpmath import exp, inf, log, mp, mpf

mp.dps = 60


def randomized_response(k, epsilon):
    e = exp(mpf(epsilon))
    return [[(e if d == w else 1) / (e + k - 1) for w in range(k)] for d in range(k)]


def unary(k, p, q):
    rows = []
    for d in range(k):
        row = []
        for number in range(2**k):
            cell = mpf(1)
            for bit in range(k):
                one = p if bit == d else q
                cell *= one if number >> bit & 1 else 1 - one
            row.append(cell)
        rows.append(row)
    return rows


def symmetric_unary(k, epsilon):
    p = exp(mpf(epsilon) / 2) / (1 + exp(mpf(epsilon) / 2))
    return unary(k, p, 1 - p)


def optimized_unary(k, epsilon):
    return unary(k, mpf(1) / 2, 1 / (1 + exp(mpf(epsilon))))


def subset(k, epsilon, size):
    sets = sorted(itertools.combinations(range(k), size), key=lambda one: one[::-1])
    weights = [[exp(mpf(epsilon)) if d in one else mpf(1) for one in sets] for d in range(k)]
    return [[w / sum(row) for w in row] for row in weights]


def geometric(n, epsilon):
    a = exp(-mpf(epsilon))

    def noise(z):
        return (1 - a) / (1 + a) * a ** abs(z)

    def beyond(z):  # P(noise >= z), z >= 0
        return a**z / (1 + a) if z > 0 else 1 / (1 + a)
    if n == 1:
        return [[mpf(1)]]
    return [[beyond(d) if w == 0 else beyond(n - 1 - d) if w == n - 1 else noise(w - d) for w in range(n)]
            for d in range(n)]


def exponential(scores, epsilon, sensitivity):
    weights = [[exp(mpf(epsilon) * mpf(s) / (2 * mpf(sensitivity))) for s in row] for row in scores]
    return [[w / sum(row) for w in row] for row in weights]


def kron(one, two):
    return [[x * y for x in a for y in b] for a in one for b in two]


def leakage(rows, prior):
    """Information, Bayes vulnerability, LDP over all rows and over the support, and both sides of MBP."""
    prior = [mpf(x) for x in prior]
    information = vulnerability = mpf(0)
    ldp = support = plus = minus = mpf(0)
    for column in zip(*rows, strict=True):
        q = sum(p * x for p, x in zip(prior, column, strict=True))
        held = [x for p, x in zip(prior, column, strict=True) if p > 0]
        if max(column) > 0:
            ldp = max(ldp, log(max(column) / min(column)) if min(column) > 0 else inf)
        if q == 0:
            continue
        support = max(support, log(max(held) / min(held)) if min(held) > 0 else inf)
        plus = max(plus, log(max(held) / q))
        minus = max(minus, -log(min(held) / q) if min(held) > 0 else inf)
        vulnerability += max(p * x for p, x in zip(prior, column, strict=True))
        information += sum(p * x * log(x / q) for p, x in zip(prior, column, strict=True) if p * x > 0)
    return information, vulnerability, ldp, support, plus, minus


def hockey_stick(p, q, epsilon):
    return sum(max(x - exp(mpf(epsilon)) * y, mpf(0)) for x, y in zip(p, q, strict=True))
