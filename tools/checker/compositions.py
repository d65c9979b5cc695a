"""delta(epsilon) of compositions: sums over types of outcomes with residues, or a proved sum along a line.

With M(z) = E_P e^(z S) of the sum S of all losses, for every t > 0,

    delta(epsilon) = 1/(2 pi i) integral over Re z = t of M(z) e^(-epsilon z) / (z (z + 1)).

By Poisson's formula the sum with the step h is the sum of e^(t m A) delta(epsilon + m A) over all integers m, with the
period A = 2 pi / h. It exceeds delta(epsilon) by at most e^(-t A) / (1 - e^(-t A)), from m < 0 and delta <= 1, and, for
every b > 0, M(t + b) e^(-(t + b) epsilon) e^(-b A) / (1 - e^(-b A)), from m > 0 and Chernoff. What lies beyond the
height Y is at most e^(-t epsilon) / (pi Y) times a bound of |M|.
"""

import math

from balls import between, decide, distribution, log_float, most, normal, number, require, tail
from flint import acb, acb_mat, arb, arb_series, ctx
from mixtures import Mixture, hockey_stick

MOST_TYPES = 20000


class Sampled:
    """Releases of n(u) R(u) against n(u), or the reverse, with R(u) = 1 - r + r e^(a u - a^2 / 2), r the rate, a > 0.

    For 0 <= c <= pi / (2 a) real and imaginary part of R(u + ic) are positive and rise with u, and so does its angle.
    """

    def __init__(self, p, q, count):
        self.removes, self.count = len(q.parts) == 1, count
        base, mixture = (q, p) if self.removes else (p, q)
        (_, mean, sigma), parts = base.parts[0], mixture.parts
        others = [(w, abs(m - mean) / sigma) for w, m, s in parts if s == sigma and m != mean]
        is_sample = len(base.parts) == len(others) == 1 and len(parts) == 2 and any(m == mean for _, m, _ in parts)
        require(is_sample, "releases of mixtures must be samples of a normal distribution, if there are several")
        self.rate, self.a = others[0]

    def ratio(self, u, c=0):
        """R(u + ic), as real and imaginary part."""
        size = self.rate * (self.a * u - self.a * self.a / 2).exp()
        return 1 - self.rate + size * (self.a * c).cos(), size * (self.a * c).sin()

    def outside(self, low, high, t):
        """A bound of the integral of n R^(1+t), by the convexity of the power, or n R^(-t), outside of [low, high]."""
        if not self.removes:
            return (1 - self.rate) ** -t * (tail(-low) + tail(high))
        mean, size = (1 + t) * self.a, self.rate * (t * (1 + t) * self.a * self.a / 2).exp()
        return (1 - self.rate) * (tail(-low) + tail(high)) + size * (tail(mean - low) + tail(high - mean))

    def prepare(self, t, height, bits):
        """Nodes for M(t + iy), |y| <= height, and the error of the trapezoidal rule, whose strip is |Im u| <= c.

        There the integrand is at most ``growth`` times as large as on the real line.
        """
        c = (1 / self.a).min(arb(5)).lower()
        growth = (c * c / 2 + height * self.a * c).exp() * (1 if self.removes else (self.a * c).cos() ** -t)
        eta = arb(2 * math.pi * float(c) / (log_float(growth) + 0.7 * bits)).mid()
        reach = (1.4 * bits) ** 0.5
        last_mean = float((1 + t) * self.a if self.removes else 0)
        first, last = int(-reach / float(eta)), int((reach + last_mean) / float(eta))
        self.nodes, total, cut = [], arb(0), self.outside(eta * first, eta * last, t)
        for j in range(first - 1, last + 2):
            log = self.ratio(eta * j)[0].log()
            weight = eta * normal(eta * j) * ((1 + t if self.removes else -t) * log).exp()
            if weight > arb(2) ** (-bits - 40):
                self.nodes.append((weight, log if self.removes else -log))
                total += weight
            else:
                cut += weight
        share = 2 * growth / ((2 * arb.pi() * c / eta).exp() - 1)
        self.error = (share * (total + cut) / (1 - share) + cut).upper() if share < 0.5 else arb("inf")
        return total + between(-self.error, self.error)

    def moments(self, step, count):
        """M(t + i k step) of all releases for k = 0, 1, ...; e^(i k step L) is a product of two, as more of them would
        widen the balls.
        """
        side, size = math.isqrt(count) + 1, len(self.nodes)
        giant = [weight * acb(0, step * (g * side) * log).exp() for g in range(side) for weight, log in self.nodes]
        baby = [acb(0, step * k * log).exp() for _, log in self.nodes for k in range(side)]
        error = acb(between(-self.error, self.error), between(-self.error, self.error))
        return [(x + error) ** self.count for x in (acb_mat(side, size, giant) * acb_mat(size, side, baby)).entries()]

    def bound_beyond(self, t, height):
        """A bound of |M(t + iy)| for all |y| >= height: the integral of the modulus on the line Im u = c or -c."""
        best, low, step = arb("inf"), arb(-10), arb(0.125)
        for part in (0.2, 0.5, 0.95):
            c = (part * arb.pi() / (2 * self.a)).min(arb(3)).lower()
            ends = [low + step * j for j in range(160 + int(float(8 * (1 + t) * self.a) if self.removes else 0))]
            ratios = [self.ratio(u, c) for u in ends]
            sizes = [(x * x + y * y).sqrt() ** (1 + t) if self.removes else x ** -t for x, y in ratios]
            total = self.outside(arb(-60), ends[-1], t)
            total += tail(-low) * (sizes[0] if self.removes else (1 - self.rate) ** -t)
            for j, (u, (x, y)) in enumerate(zip(ends[:-1], ratios, strict=False)):
                nearest = u.max(-u - step).max(arb(0))
                size = sizes[j + 1] if self.removes else sizes[j]
                total += step * normal(nearest) * size * (-height * (y / x).atan()).exp()
            best = best.min(((c * c / 2).exp() * total).upper())
        return best


def _types(atoms):
    """Masses and losses of all types of outcomes with finite losses."""
    states = [(arb(1), arb(0))]
    for outcomes, count in atoms:
        size = len(states) * math.comb(count + len(outcomes) - 1, count)
        require(size <= MOST_TYPES, f"a composition of outcomes may have at most {MOST_TYPES} types for this checker")
        partial = [(mass * arb(count).fac(), loss, count) for mass, loss in states]
        for i, (p, loss) in enumerate(outcomes):
            partial = [
                (mass * p**k / arb(k).fac(), total + k * loss, left - k)
                for mass, total, left in partial
                for k in ([left] if i == len(outcomes) - 1 else range(left + 1))
            ]
        states = [(mass, total) for mass, total, _ in partial]
    return states


def _laplace_delta(laplace, epsilon):
    """Residues of e^(a z) z^(i - 1) (1 + z)^(N - i - 1) / (2 z + 1)^N at 0, -1 and -1/2 for every a > 0, where

    M(z) = ((1 + z) e^(r z) + z e^(-r (1 + z))) / (2 z + 1) of each release is expanded by the binomial theorem.
    """
    order, total, terms = sum(n for _, n in laplace), arb(0), [(arb(1), -epsilon, 0)]
    for r, n in laplace:
        pairs = [(term, i) for term in terms for i in range(n + 1)]
        terms = [(c * math.comb(n, i) * (-r * i).exp(), a + r * (n - 2 * i), j + i) for (c, a, j), i in pairs]
    ctx.cap = order
    minus, plus = arb_series([1, -2]).log(), arb_series([1, 2]).log()
    for coefficient, a, i in terms:
        if not a <= 0:
            series = ((i - 1) * minus + (order - i - 1) * plus + arb_series([0, a])).exp()
            value = (-a / 2).exp() * series[order - 1] * arb(4) ** (1 - order) * (-1) ** (i - 1)
            value += 1 if i == 0 else -(-a).exp() if i == order else 0
            total += coefficient * (value if a > 0 else value.union(arb(0)))
    return total


def _mixtures(item):
    """P and Q of one release; one of a sampled Gaussian is (1 - rate) N(0, sigma^2) + rate N(distance, sigma^2)."""
    if item["kind"] == "mixtures":
        return Mixture.read(item["p"]), Mixture.read(item["q"])
    rate, sigma = number(item["rate"], positive=True), number(item["sigma"], positive=True)
    require(rate < 1 and isinstance(item["removes"], bool), "a rate must be between 0 and 1, removes true or false")
    mixture = Mixture([(1 - rate, arb(0), sigma), (rate, number(item["distance"]), sigma)])
    base = Mixture([(arb(1), arb(0), sigma)])
    return (mixture, base) if item["removes"] else (base, mixture)


def delta(items, epsilon, tolerance):
    """delta(epsilon) of all items."""
    sampled, square, laplace, atoms, finite = [], arb(0), [], [], arb(1)
    for item in items:
        kind, count = item["kind"], item["count"]
        require(type(count) is int and 1 <= count <= 10**7, f"counts must be from 1 to 10,000,000; got {count!r}")
        if kind in ("mixtures", "sampled_gaussian"):
            p, q = _mixtures(item)
            if len(items) == count == 1:
                return hockey_stick(p, q, epsilon, tolerance)
            (_, mean, sigma), (_, other_mean, other_sigma) = p.parts[0], q.parts[0]
            if len(p.parts) == len(q.parts) == 1 and sigma == other_sigma:
                square += count * ((mean - other_mean) / sigma) ** 2
            else:
                sampled.append(Sampled(p, q, count))
        elif kind == "laplace":
            laplace.append((number(item["shift"], positive=True) / number(item["scale"], positive=True), count))
        elif kind == "atoms":
            pairs = list(zip(distribution(item["p"]), distribution(item["q"]), strict=True))
            atoms.append(([(x, (x / y).log()) for x, y in pairs if x > 0 and y > 0], count))
            finite *= (1 - sum((x for x, y in pairs if y == 0), arb(0))) ** count
        else:
            require(False, f"the kind of a release must be known; got {kind!r}")
    if sampled or square > 0:
        return 1 - finite + _line_sum(sampled, square, laplace, atoms, epsilon, tolerance)
    total = 1 - finite
    for mass, loss in _types(atoms):
        level = epsilon - loss
        total += mass * (_laplace_delta(laplace, level) if laplace else (1 - level.exp()).nonnegative_part())
    return total


def _line_sum(sampled, square, laplace, atoms, epsilon, tolerance):
    """The sum along the line. Its place t, its period A and its height are chosen in floats, their errors are balls."""
    def other_moment(z):
        value = (square * z * (z + 1) / 2).exp()
        for r, n in laplace:
            value *= (((1 + z) * (r * z).exp() + z * (-r * (1 + z)).exp()) / (2 * z + 1)) ** n
        for outcomes, n in atoms:
            value *= sum((p * (z * loss).exp() for p, loss in outcomes), acb(0)) ** n
        return value

    def chernoff(t, bits):
        """M(t) e^(-t epsilon)."""
        value = other_moment(acb(t)).real * (-t * epsilon).exp()
        return math.prod((item.prepare(t, 0, bits) ** item.count for item in sampled), start=value)

    def exponent(t):
        return log_float(chernoff(arb(t), 24))

    low, high, goal = -4.0, 8.0, log_float(tolerance) - 4
    for _ in range(20):
        first, second = low + (high - low) * 0.38, low + (high - low) * 0.62
        values = [exponent(math.exp(x)) - x - math.log1p(math.exp(x)) for x in (first, second)]
        low, high = (low, second) if values[0] < values[1] else (first, high)
    place = math.exp((low + high) / 2)
    further = [(exponent(place + b), b) for b in (place * 2.0**k for k in range(-2, 6))]
    period, b = min((max(-goal / place, (value - goal) / b) + 0.1, b) for value, b in further)
    t, b, step = arb(place), arb(b), (2 * arb.pi() / arb(period)).mid()
    period, bits = 2 * arb.pi() / step, int((max(exponent(place), 0.0) - goal) / 0.69) + 24
    count, other = 8, other_moment(acb(t)).real * (-t * epsilon).exp()
    while True:
        height = step * count
        bounds = [item.bound_beyond(t, height) ** item.count for item in sampled]
        beyond = math.prod(bounds, start=other * (-square * height * height / 2).exp()) / (arb.pi() * (height - step))
        if beyond < tolerance / 8:
            break
        count += count // 4
        require(count < 10**5, "the characteristic function falls too slowly for this checker")
    fall, later_fall = (-t * period).exp(), (-b * period).exp()
    excess = fall / (1 - fall) + chernoff(t + b, bits) * later_fall / (1 - later_fall)
    for item in sampled:
        item.prepare(t, height, bits)
    rows, total = [item.moments(step, count) for item in sampled], arb(0)
    for k in range(count):
        z = acb(t, step * k)
        value = other_moment(z) * (-epsilon * z).exp() / (z * (z + 1))
        total += math.prod((row[k] for row in rows), start=value).real / (1 if k else 2)
    return step / arb.pi() * total + between(-beyond, beyond) - between(0, excess)


def largest_delta(inputs, epsilon, tolerance):
    """The larger delta of one or two directions."""
    return most([delta(items, epsilon, tolerance) for items in inputs["directions"]])


def decide_epsilon(inputs, low, high):
    """Prove that delta is at most that of the inputs at the upper bound, and at least that at the lower one."""
    target, share = number(inputs["delta"]), ((high - low) / 8).min(arb(1)).max(arb(2) ** -60)
    decide("epsilon, upper bound", lambda width: largest_delta(inputs, high, width * share), arb(0), target)
    if not low <= 0:
        decide("epsilon, lower bound", lambda width: largest_delta(inputs, low, width * share), target, arb(1))
