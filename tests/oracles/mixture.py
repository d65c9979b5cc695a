"""Independent truth for one-dimensional Gaussian mixtures and the privacy notions on them, in ball arithmetic.

A mixture is three sequences (weights, means, sigmas) of doubles, taken as exactly those binary numbers: the measure is
sum_k w_k N(m_k, s_k^2), never renormalised. Every function returns a python-flint ``arb`` that contains the true
value, with a proved radius of at most 1e-25 of it. Nothing here is fast, and nothing comes from the package under
test.

Conventions. epsilon is a double, e^epsilon is exact. H(P||Q) = integral of max(p - e^epsilon q, 0). The KL divergence
is the integral of p (l + expm1(-l)), l = log(p/q), that is KL + Q(R) - P(R): the two agree for probability measures,
and only this form stays non-negative when the weights sum to 1 up to rounding. Natural logarithms throughout.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb

from oracles.crossings import exact, positive_part, sign_changes, square, working_precision
from oracles.integrals import Density, cut_points, gaussian_tail, proved_integral, reach, split, to_accuracy

__all__ = [
    "abp", "abp_at", "crossings", "entropy", "hockey_stick", "information_of_rare_inputs", "js", "kl_divergence",
    "lip_delta", "log_hockey_stick", "mass", "measure", "mutual_information", "renyi", "total_variation",
]

ACCURACY = 84  # bits, 5e-26


def measure(mixture):
    """Map (mean, sigma) -> exact weight; equal components are joined, zero weights dropped."""
    out = {}
    weights, means, sigmas = (list(map(float, part)) for part in mixture)
    for w, m, s in zip(weights, means, sigmas, strict=True):
        if w:  # a zero weight is no component
            out[m + 0.0, s] = out.get((m + 0.0, s), Fraction(0)) + Fraction(w)
    return out


def mass(mixture):
    """The exact total weight."""
    return sum(measure(mixture).values(), Fraction(0))


# hockey-stick divergences


def hockey_stick(p, q, epsilon, bits=ACCURACY):
    """Integral of max(p - e^epsilon q, 0); an exact zero when p <= e^epsilon q everywhere."""
    return positive_part(measure(p), measure(q), float(epsilon), bits)


def log_hockey_stick(p, q, epsilon):
    """Natural logarithm of ``hockey_stick``; -inf when that is an exact zero."""
    value = hockey_stick(p, q, epsilon)
    return arb.neg_inf() if value.is_zero() else value.log()


def crossings(p, q, epsilon):
    """Balls of all sign changes of p - e^epsilon q."""
    return sign_changes(measure(p), measure(q), float(epsilon))


def total_variation(p, q):
    """Half the integral of |p - q|."""
    return (hockey_stick(p, q, 0.0) + hockey_stick(q, p, 0.0)) / 2


# integrals


def kl_divergence(p, q, bits=ACCURACY):
    """Integral of p (l + expm1(-l)) = KL(P||Q) + Q(R) - P(R)."""
    first, second = measure(p), measure(q)
    if first == second:
        return arb(0)

    def compute(asked, k):
        dp, dq = Density.of(first), Density.of(second)

        def integrand(z, analytic):
            x0, h, wide = split(z)
            (a, s), (b, t) = dp.at(x0, h, wide), dq.at(x0, h, wide)
            log_ratio = a - b + s.log(analytic) - t.log(analytic)
            return a.exp() * s * (log_ratio - 1) + b.exp() * t

        left, right = reach([(m, s) for _, m, s, _, _ in dp.rows], k)
        tail, outside = arb(0), arb(0)
        for edge, side in ((left, -1), (right, 1)):
            outside += sum((gaussian_tail(row, edge, side) for row in dq.rows), arb(0))
            outside -= sum((gaussian_tail(row, edge, side) for row in dp.rows), arb(0))
            tail += _log_tail(dp, dq, edge, side)
        return proved_integral(integrand, cut_points([dp, dq], left, right), asked, tail, outside)

    return to_accuracy(compute, bits)


def js(p, q, bits=ACCURACY):
    """Jensen-Shannon divergence with weights 1/2, 1/2."""
    first, second = measure(p), measure(q)
    if first == second:
        return arb(0)

    def compute(asked, k):
        dp, dq = Density.of(first), Density.of(second)

        def integrand(z, analytic):
            x0, h, wide = split(z)
            (a, s), (b, t) = dp.at(x0, h, wide), dq.at(x0, h, wide)
            if a.real.mid() >= b.real.mid():
                c, u = a, (s + t * (b - a).exp()) / 2
            else:
                c, u = b, (t + s * (a - b).exp()) / 2
            ls, lt, lu = s.log(analytic), t.log(analytic), u.log(analytic)
            return (a.exp() * s * (a - c + ls - lu) + b.exp() * t * (b - c + lt - lu)) / 2

        left, right = reach([(m, s) for d in (dp, dq) for _, m, s, _, _ in d.rows], k)
        outside = (
            gaussian_tail(row, x, side) for d in (dp, dq) for row in d.rows for x, side in ((left, -1), (right, 1))
        )
        tail = sum(outside, arb(0)) * arb(2).log() / 2
        return proved_integral(integrand, cut_points([dp, dq], left, right), asked, tail)

    return to_accuracy(compute, bits)


def entropy(p, bits=ACCURACY):
    """Differential entropy, - integral of p log p; relative accuracy of the integral of |p log p| near a zero."""
    first = measure(p)

    def compute(asked, k):
        dp = Density.of(first)
        log_top = dp.top().log()

        def integrand(z, analytic):  # p (log top - log p) >= 0
            x0, h, wide = split(z)
            a, s = dp.at(x0, h, wide)
            return a.exp() * s * (log_top - a - s.log(analytic))

        left, right = reach([(m, s) for _, m, s, _, _ in dp.rows], k)
        edges = ((left, -1), (right, 1))
        tail = sum((_log_tail(dp, dp, edge, side) for edge, side in edges), arb(0))
        inside = proved_integral(integrand, cut_points([dp], left, right), asked, tail)
        missing = sum((gaussian_tail(row, edge, side) for row in dp.rows for edge, side in edges), arb(0))
        return inside - log_top * (sum((row[0] for row in dp.rows), arb(0)) - missing)

    return to_accuracy(compute, bits)


def mutual_information(prior, sigma, bits=ACCURACY):
    """I(X; X + N(0, sigma^2)), prior = (points, weights): sum of w_x KL(N(x, sigma^2) || sum w N)."""
    points, weights = (list(map(float, part)) for part in prior)
    mixture = (weights, points, [float(sigma)] * len(points))
    if len(measure(mixture)) < 2:
        return arb(0)

    def compute(asked, k):
        output = Density.of(measure(mixture))
        singles = [Density([row]) for row in output.rows]

        def integrand(z, analytic):  # sum of w_x n_x log(n_x / output), from exponents alone
            x0, h, wide = split(z)
            a, s = output.at(x0, h, wide)
            low = s.log(analytic)
            total = -a.exp() * s * low
            for single, row in zip(singles, output.rows, strict=True):
                b, _ = single.at(x0, h, wide)
                total += b.exp() * (b - a - row[0].log())
            return total

        left, right = reach([(m, s) for _, m, s, _, _ in output.rows], k)
        tail = arb(0)
        for edge, side in ((left, -1), (right, 1)):
            for single, row in zip(singles, output.rows, strict=True):
                spread = _log_tail(single, output, edge, side)
                tail += spread + abs(row[0].log()) * gaussian_tail(row, edge, side)
        return proved_integral(integrand, cut_points([output], left, right), asked, tail)

    return to_accuracy(compute, bits)


def information_of_rare_inputs(points, weights, sigma):
    """I(X; X + N(0, sigma^2)) of the weights divided by their sum, by the trapezoidal rule in balls of many digits.

    The integrand is analytic at a distance below pi / range from the line: the step leaves out less than e^-70 of it.
    """
    total = sum(map(Fraction, weights))
    prior = [Fraction(w) / total for w in weights]
    offsets = [(Fraction(x) - Fraction(points[0])) / Fraction(sigma) for x in points]
    low, high = float(min(offsets)), float(max(offsets))
    digits = max(p.denominator.bit_length() - p.numerator.bit_length() for p in prior)
    with working_precision(300 + 3 * digits):
        step = exact(min(0.25, 0.27 / max(high - low, 0.5)))
        pi, c = [exact(p) for p in prior], [exact(x) for x in offsets]
        result = arb(0)
        for k in range(math.floor((low - 13) / float(step.mid())), math.ceil((high + 13) / float(step.mid())) + 1):
            y = step * k
            logs = [a * (y - a / 2) for a in c]
            terms = [p * v.exp() for p, v in zip(pi, logs, strict=True)]
            log_q = sum(terms, arb(0)).log()
            result += sum((e * (v - log_q) for e, v in zip(terms, logs, strict=True)), arb(0)) * (-y * y / 2).exp()
        return result * step / (2 * arb.pi()).sqrt()


def renyi(p, q, order, bits=ACCURACY):
    """log(integral of p^a q^(1-a)) / (a - 1), a = order; +inf when the integral diverges."""
    first, second = measure(p), measure(q)
    a = Fraction(float(order))
    if a <= 0 or a == 1:
        raise ValueError("order must be positive and not 1")
    if first == second:
        total = sum(first.values())
        return arb(0) if total == 1 else exact(total).log() / exact(a - 1)
    wide_p, wide_q = (max(Fraction(s) for _, s in side) for side in (first, second))
    curvature = a / wide_p**2 + (1 - a) / wide_q**2
    if curvature < 0:
        return arb.pos_inf()
    if curvature == 0:
        raise ValueError("the order lies exactly on the edge of convergence")

    def compute(asked, k):
        dp, dq = Density.of(first), Density.of(second)
        power, rest = exact(a), exact(1 - a)

        def integrand(z, analytic):
            x0, h, wide = split(z)
            (u, s), (v, t) = dp.at(x0, h, wide), dq.at(x0, h, wide)
            return (power * (u + s.log(analytic)) + rest * (v + t.log(analytic))).exp()

        peaks = []
        for _, m, s, _, _ in dp.rows:
            for _, n, t, _, _ in dq.rows:
                rate = power / s**2 + rest / t**2
                if rate > 0:
                    peaks.append(((power * m / s**2 + rest * n / t**2) / rate, 1 / rate.sqrt()))
        if a < 1:
            peaks += [(m, s) for d in (dp, dq) for _, m, s, _, _ in d.rows]
        left, right = reach(peaks, k)
        extra = [(m + side * 4 * s).mid() for m, s in peaks for side in (-1, 0, 1)]
        tail = sum((_power_tail(dp, dq, power, rest, a < 1, x, side) for x, side in ((left, -1), (right, 1))), arb(0))
        return proved_integral(integrand, cut_points([dp, dq], left, right, (0, 4), extra), asked, tail).log() / (
            power - 1
        )

    return to_accuracy(compute, bits)


def _log_tail(dp, dq, edge, side):
    """Bound of the integral of p |log(p/q)| beyond an edge; with dq = dp, of p |log p|."""
    _, m, s, c, _ = dp.widest()
    _, n, t, d, _ = dq.widest()
    constant = abs(dp.top().log()) + abs(dq.top().log()) + abs(c) + abs(d)
    total = arb(0)
    for row in dp.rows:
        _, mean, sigma, _, _ = row
        shift = square((mean - m) / s) + square((mean - n) / t)
        growth = square(sigma / s) + square(sigma / t)
        total += gaussian_tail(row, edge, side, constant + shift, growth)
    return total


def _power_tail(dp, dq, power, rest, concave, edge, side):
    """Bound of the integral of p^a q^(1-a) beyond an edge.

    For a < 1, p^a <= sum (w_i N_i)^a and likewise for q. For a > 1, p^a <= n^(a-1) sum (w_i N_i)^a and q >= its
    widest term.
    """
    factor = arb(1) if concave else arb(len(dp.rows)) ** (power - 1)
    total = arb(0)
    for _, m, s, c, _ in dp.rows:
        for _, n, t, d, _ in dq.rows if concave else [dq.widest()]:
            rate = power / s**2 + rest / t**2
            centre = (power * m / s**2 + rest * n / t**2) / rate
            height = power * (c - square((centre - m) / s) / 2) + rest * (d - square((centre - n) / t) / 2)
            u = side * (edge - centre) * rate.sqrt()
            total += height.exp() * (2 * arb.pi() / rate).sqrt() * (u / arb(2).sqrt()).erfc() / 2
    return factor * total


# notions: a prior (points, weights) through Gaussian noise


def lip_delta(prior, sigma, epsilon, bits=ACCURACY):
    """max over x of H(P_M || P_x) and e^-epsilon H(P_x || P_M), and the pair (x index, direction) that attains it."""
    points, weights = (list(map(float, part)) for part in prior)
    output = (weights, points, [float(sigma)] * len(points))
    best, where = arb(-1), None
    for i, x in enumerate(points):
        single = ([1.0], [x], [float(sigma)])
        forth, back = hockey_stick(output, single, epsilon, bits), hockey_stick(single, output, epsilon, bits)
        with working_precision(bits + 64):
            values = forth, back * (-arb(float(epsilon))).exp()
        for direction, value in zip(("output||input", "input||output"), values, strict=True):
            if value.mid() > best.mid():
                best, where = value, (i, direction)
    return best, where


def abp_at(prior, sigma, index, bits=ACCURACY):
    """sqrt(JS(f^A || prior)) when the release is drawn from N(points[index], sigma^2); f^A is the mean posterior."""
    points, weights = (list(map(float, part)) for part in prior)
    if len(points) < 2:
        return arb(0)

    def compute(asked, k):
        output = Density.of(measure((weights, points, [float(sigma)] * len(points))))
        inputs = [Density.of({(x, float(sigma)): Fraction(1)}) for x in points]
        source = inputs[index]
        left, right = reach([(m, s) for _, m, s, _, _ in source.rows], k)
        tail = sum((gaussian_tail(source.rows[0], x, side) for x, side in ((left, -1), (right, 1))), arb(0))
        divergence = arb(0)
        for target, w in zip(inputs, weights, strict=True):

            def integrand(z, analytic, target=target):
                x0, h, wide = split(z)
                (a, _), (b, _), (c, s) = source.at(x0, h, wide), target.at(x0, h, wide), output.at(x0, h, wide)
                return (a + b - c).exp() / s

            share = proved_integral(integrand, cut_points([source], left, right), asked, tail / w)
            prior_weight, posterior = exact(w), exact(w) * share
            middle = (prior_weight + posterior) / 2
            divergence += posterior * (posterior / middle).log() + prior_weight * (prior_weight / middle).log()
        return (divergence / 2).sqrt()

    return to_accuracy(compute, bits)


def abp(prior, sigma):
    """``abp_at`` for every point of the prior."""
    return [abp_at(prior, sigma, i) for i in range(len(prior[0]))]
