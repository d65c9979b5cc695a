"""Privacy notions of a channel straight from their definitions, in many digits; slow and readable."""

from mpmath import exp, inf, log, mp, mpf, sqrt

from . import channels

mp.dps = 60
FINE = 150  # digits where differences of order 1e-60 count


def exact(rows, prior):
    """Cells as they are, the prior over its sum."""
    rows = [[mpf(x) for x in row] for row in rows]
    prior = [mpf(x) for x in prior]
    total = sum(prior)
    return rows, [p / total for p in prior]


def evidence(rows, prior):
    return [sum(p * x for p, x in zip(prior, column, strict=True)) for column in zip(*rows, strict=True)]


def divergence(row, q):
    """KL as the sum of positive terms, infinite where q is 0 and the row is not."""
    if any(x > 0 and z == 0 for x, z in zip(row, q, strict=True)):
        return inf
    return sum((x * log(x / z) if x > 0 else 0) - x + z for x, z in zip(row, q, strict=True) if z > 0)


def quantities(rows, prior):
    """All scalars by the names of the fields of a summary."""
    if min(min(x for x in row if x > 0) for row in [*rows, prior]) < 1e-200 and mp.dps < 700:
        with mp.workdps(700):
            return quantities(rows, prior)
    rows, prior = exact(rows, prior)
    information, vulnerability, ldp, support, plus, minus = channels.leakage(rows, prior)
    q = evidence(rows, prior)
    held = [row for p, row in zip(prior, rows, strict=True) if p > 0]
    return {
        "cd_lmip": information, "bayes_vulnerability": vulnerability, "ldp_epsilon": ldp, "ldp_on_support": support,
        "xi_plus": plus, "xi_minus": minus, "xi": max(plus, minus), "prior_vulnerability": max(prior),
        "min_entropy_leakage": max(log(vulnerability / max(prior)), mpf(0)),
        "pointwise_lmip": max(divergence(row, q) for row in held),
        "maximal_leakage": max(log(sum(max(column) for column in zip(*held, strict=True))), mpf(0)),
    }


def posteriors(rows, prior):
    rows, prior = exact(rows, prior)
    q = evidence(rows, prior)
    return [[p * x / z if z > 0 else mpf(0) for x, z in zip(row, q, strict=True)]
            for p, row in zip(prior, rows, strict=True)]


def js(f, b):
    total = mpf(0)
    for x, y in zip(f, b, strict=True):
        m = (x + y) / 2
        total += sum(z * log(z / m) for z in (x, y) if z > 0) / 2
    return max(total, mpf(0))


def abp(rows, prior, law, belief=None):
    with mp.workdps(FINE):
        after = posteriors(rows, prior)
        expected = [sum(mpf(p) * x for p, x in zip(law, row, strict=True)) for row in after]
        _, believed = exact(rows, prior if belief is None else belief)
        return sqrt(js(expected, believed))


def ldp_delta(rows, epsilon):
    rows = [[mpf(x) for x in row] for row in rows]
    if mpf(epsilon) == inf:
        return max(sum(x for x, y in zip(a, b, strict=True) if y == 0) for a in rows for b in rows)
    return max(channels.hockey_stick(a, b, epsilon) for a in rows for b in rows)


def lip_delta(rows, prior, epsilon):
    rows, prior = exact(rows, prior)
    q = evidence(rows, prior)
    held = [row for p, row in zip(prior, rows, strict=True) if p > 0]
    return max(
        max(channels.hockey_stick(q, row, epsilon), exp(-mpf(epsilon)) * channels.hockey_stick(row, q, epsilon))
        for row in held
    )
