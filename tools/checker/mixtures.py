"""Divergences of Gaussian mixtures on the line: integrals of analytic functions, and pieces between proved signs."""

from balls import RefusedError, between, distribution, number, require, tail
from flint import acb, arb


class Mixture:
    """Components (weight, mean, sigma), with the log density a z^2 + b z + c - log sqrt(2 pi) of each."""

    def __init__(self, parts):
        self.parts = [part for part in parts if part[0] > 0]
        self.logs = [(-1 / (2 * s * s), m / (s * s), (w / s).log() - m * m / (2 * s * s)) for w, m, s in self.parts]

    @classmethod
    def read(cls, value, divided=True):
        """The mixture of {"weights", "means", "sigmas"}, with its weights divided by their sum or as they are."""
        means, sigmas = map(number, value["means"]), (number(text, positive=True) for text in value["sigmas"])
        return cls(zip(distribution(value["weights"], divided), means, sigmas, strict=True))

    def mirrored(self, centre):
        """The mixture of 2 centre - x."""
        return Mixture([(w, 2 * centre - m, s) for w, m, s in self.parts])

    def _terms(self, z):
        """The component that is the largest about the middle of a ball, and the quotients of all by it."""
        x = float(z.real.mid())
        a, b, c = max(self.logs, key=lambda log: (float(log[0]) * x + float(log[1])) * x + float(log[2]))
        return (a * z + b) * z + c, [(((d - a) * z + (e - b)) * z + (f - c)).exp() for d, e, f in self.logs]

    def log_density(self, z, analytic=False):
        """The logarithm of the density at a complex ball; not finite where it may not be analytic."""
        largest, terms = self._terms(z)
        return largest + sum(terms, acb(0)).log(analytic=analytic) - (2 * arb.pi()).log() / 2

    def slope(self, z):
        """The derivative of the log density."""
        terms = self._terms(z)[1]
        lines = (term * (2 * a * z + b) for term, (a, b, _) in zip(terms, self.logs, strict=True))
        return (sum(lines, acb(0)) / sum(terms, acb(0))).real

    def above(self, x):
        """The probability beyond x."""
        return sum((w * tail((x - m) / s) for w, m, s in self.parts), arb(0))

    def widest(self):
        """The component with the largest sigma."""
        return max(self.parts, key=lambda part: (float(part[2]), float(part[0])))


def power_beyond(p, q, order, x):
    """A bound of the integral of p^a q^(1-a) beyond x: for a < 1 that of the mean a p + (1 - a) q; else by convexity
    the sum over the components w N of p of w N^a, times the power of the widest component of q.
    """
    if order < 1:
        return order * p.above(x) + (1 - order) * q.above(x)
    total, root, (q_weight, *other) = arb(0), (2 * arb.pi()).sqrt(), q.widest()
    for w, *part in p.parts:
        factors = [(order, 1 / (part[1] * root), *part), (1 - order, q_weight / (other[1] * root), *other)]
        a = sum((power / (s * s) for power, _, _, s in factors), arb(0))
        b = sum((power * m / (s * s) for power, _, m, s in factors), arb(0))
        c = sum((power * (f.log() - m * m / (2 * s * s)) for power, f, m, s in factors), arb(0))
        require(a > 0, "the integral of p^a q^(1-a) must converge")
        total += w * (c + b * b / (2 * a)).exp() * root / a.sqrt() * tail((x - b / a) * a.sqrt())
    return total


def cut(p, q, beyond, tolerance):
    """Two ends, and a bound of what lies outside by beyond(p, q, x), a bound of what lies above x."""
    parts = [*p.parts, *q.parts]
    centre = arb(sum(float(m) for _, m, _ in parts) / len(parts))
    spread, scale = max(abs(float(m - centre)) for _, m, _ in parts), max(float(s) for *_, s in parts)
    for factor in (4, 6, 8, 10, 12, 15, 20, 30, 50, 80, 120, 200, 400):
        x = centre + arb(spread + factor * scale)
        outside = beyond(p, q, x) + beyond(p.mirrored(centre), q.mirrored(centre), x)
        if outside < tolerance:
            return (2 * centre - x).mid(), x.mid(), outside.upper()
    raise RefusedError("the tails of the mixtures are too heavy for this checker")


def _integral(integrand, p, q, beyond, tolerance):
    low, high, outside = cut(p, q, beyond, tolerance / 8)
    value = acb.integral(integrand, low, high, rel_tol=arb(2) ** -2000, abs_tol=tolerance / 8).real
    return value + between(-outside, outside)


def kl_divergence(p, q, tolerance):
    """Integral of p log(p/q); outside |log(p/q)| <= ((p/q)^s + (q/p)^s) / (e s)."""
    def integrand(z, analytic):
        log_p = p.log_density(z, analytic)
        return log_p.exp() * (log_p - q.log_density(z, analytic))

    def beyond(p, q, x):
        return (power_beyond(p, q, 1 + s, x) + power_beyond(p, q, 1 - s, x)) / (s * arb(1).exp())

    s = (0.5 * (q.widest()[2] / p.widest()[2]) ** 2).min(arb(0.5)).mid()
    return _integral(integrand, p, q, beyond, tolerance)


def jensen_shannon(p, q, tolerance):
    """Half of KL(P||M) and of KL(Q||M), M = (P + Q)/2."""
    middle = Mixture([(w / 2, m, s) for w, m, s in [*p.parts, *q.parts]])
    return (kl_divergence(p, middle, tolerance) + kl_divergence(q, middle, tolerance)) / 2


def renyi_divergence(p, q, order, tolerance, size):
    """log of the integral of p^a q^(1-a), over a - 1; ``size`` is about the answer."""
    def integrand(z, analytic):
        return (order * p.log_density(z, analytic) + (1 - order) * q.log_density(z, analytic)).exp()

    if order == 1:
        return kl_divergence(p, q, tolerance)
    limit = (tolerance * abs(order - 1) * ((order - 1) * size).exp()).mid()
    return _integral(integrand, p, q, lambda p, q, x: power_beyond(p, q, order, x), limit).log() / (order - 1)


def hockey_stick(p, q, epsilon, tolerance):
    """Integral of p - e^epsilon q over the pieces where log p - log q - epsilon, the loss, is positive.

    Beyond x it is at most the mass of p, and 0 where the quotients of all components of p by one of q fall from x on,
    and their sum is below e^epsilon.
    """
    def beyond(p, q, x):
        v, n, t = max(q.parts, key=lambda part: (float(part[2]), float(part[1])))
        fall = all(s <= t and (x - n) * s * s <= (x - m) * t * t for _, m, s in p.parts)
        quotients = (w * t / (v * s) * (((x - n) / t) ** 2 / 2 - ((x - m) / s) ** 2 / 2).exp() for w, m, s in p.parts)
        return arb(0) if fall and sum(quotients, arb(0)) < epsilon.exp() else p.above(x)

    low, high, outside = cut(p, q, beyond, tolerance / 8)
    limit, total, pieces, start = (tolerance / (high - low)).mid(), between(0, outside), [(low, high)], None

    def excess(left, right):
        return p.above(left) - p.above(right) - epsilon.exp() * (q.above(left) - q.above(right))

    while pieces:
        left, right = pieces.pop()
        middle, piece = ((left + right) / 2).mid(), acb(left.union(right))
        value = (p.log_density(acb(middle)) - q.log_density(acb(middle))).real - epsilon
        loss = value + (p.slope(piece) - q.slope(piece)) * (piece.real - middle)
        decided = loss > 0 or loss < 0
        if not decided and right - left > limit:
            pieces += [(middle, right), (left, middle)]
        elif loss > 0:
            start = left if start is None else start
        else:  # the end of a positive stretch, perhaps
            total, start = total + (arb(0) if start is None else excess(start, left)), None
            if not decided:  # its part is between 0 and P(left < X < right)
                total += between(0, p.above(left) - p.above(right))
    return total if start is None else total + excess(start, high)
