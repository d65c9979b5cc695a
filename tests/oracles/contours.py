"""delta of compositions in high precision: Gauss-Legendre panels along a contour, of moments by Gauss-Legendre panels.

Steps are ("mixtures", count, P, Q) with components (weight, mean, standard deviation) as exact doubles,
("laplace", count, scale, shift) or ("atoms", count, p, q). Nothing is proved: the digits are those on which two
contours with different panels agree.
"""

from functools import cache
from math import comb

from flint import acb, arb, ctx

from oracles.tables import array_from_text, array_to_text, inputs

__all__ = ["CASES", "contour_inputs", "contours", "stored_steps"]

BITS = 200


@cache
def rule(count):
    """Nodes and weights of Gauss and Legendre on [-1, 1]."""
    pairs = [arb.legendre_p_root(count, i, weight=True) for i in range(count)]
    return [(x.mid(), w.mid()) for x, w in pairs]


def panels(low, high, width, count):
    number = max(1, int(float(high - low) / width) + 1)
    half = (arb(high) - arb(low)) / (2 * number)
    for i in range(number):
        for x, w in rule(count):
            yield (arb(low) + half * (2 * i + 1 + x)).mid(), (half * w).mid()


def nodes_of(step, t, w):
    """Weights and losses of one step, for moments at t + i w."""
    kind, _, first, second = step
    if kind == "atoms":
        return [(arb(p), (arb(p) / arb(q)).log()) for p, q in zip(first, second, strict=True) if p]
    if kind == "laplace":
        r = arb(second) / arb(first)
        inner = [(weight * (-x).exp() / 2, r - 2 * x) for x, weight in panels(0, r, 10 / (1 + 2 * t + 2 * w), 40)]
        return [*inner, (arb(0.5), r), ((-r).exp() / 2, -r)]
    scale = min(s for _, _, s in [*first, *second])
    means = [m for _, m, _ in [*first, *second]]
    spread = max(means) - min(means)
    wide = max(s for _, _, s in first)
    t_limit = max(1.0, 1.0 / max(0.02, 1 - t * (wide**2 / min(s for _, _, s in second) ** 2 - 1)))
    reach = 26 * wide * t_limit + (t + 1) * spread * t_limit * (wide / scale) ** 2
    reach = min(reach, 26 * wide * t_limit + 40 * spread + 26 * scale)  # bounded tilts do not move the mass farther

    def density(components, x):
        return sum(
            (arb(weight) / arb(s) * (-(((x - arb(m)) / arb(s)) ** 2) / 2).exp() for weight, m, s in components), arb(0)
        )

    nodes = []
    for x, weight in panels(min(means) - reach, max(means) + reach, 0.75 * scale / (1 + w * spread / scale / 60), 30):
        p, q = density(first, x), density(second, x)
        loss = (p / q).log().mid()
        mass = (weight * p / (2 * arb.pi()).sqrt()).mid()
        if mass * (t * loss).exp() > arb(10) ** -110:
            nodes.append((mass, loss))
    return nodes


def log_moment(nodes, z):
    total = acb(0)
    for mass, loss in nodes:
        total += mass * (z * loss).exp()
    return total.log()


def log_delta_and_tail(sets, epsilons, t, largest, width):
    """log delta and log of e^epsilon Q(S > epsilon) at each epsilon, on Re z = t up to Im z = largest."""
    line = acb(t)
    base = sum((count * log_moment(nodes, line) for count, nodes in sets), acb(0)).real.mid()
    values = []
    low = 0.0
    while low < largest:  # the poles at 0 and -1 are at least t away
        high = min(low + min(width, 0.7 * (t + low)), largest)
        for w, weight in panels(low, high, 2 * (high - low), 24):
            z = acb(t, w)
            value = (sum((count * log_moment(nodes, z) for count, nodes in sets), acb(0)) - base).exp()
            values.append((z, weight, acb(value.real.mid(), value.imag.mid())))
        low = high
    out = []
    for epsilon in epsilons:
        delta = tail = arb(0)
        for z, weight, v in values:
            term = v * (-arb(epsilon) * (z - line)).exp() * weight / (z + 1)
            tail += term.real
            delta += (term / z).real
        out.append([(x.mid() / arb.pi()).log() + base - arb(epsilon) * arb(t) for x in (delta, tail)])
    return out


def exponent(sets, epsilon, t):
    """The exponent of the integrand at a real t, as a float."""
    value = sum((count * log_moment(nodes, acb(t)) for count, nodes in sets), acb(0)).real
    return float((value - arb(epsilon) * t - (arb(t) * (t + 1)).log()).mid())


def saddle(steps, epsilon):
    """Where the exponent is least, roughly."""
    ratio = 0.5 * (5**0.5 - 1)
    low, high = -7.0, 9.0
    found = {}

    def value(u):
        t = 2.0**u
        if u not in found:
            limits = [
                1 / (max(s for *_, s in p) ** 2 / min(s for *_, s in q) ** 2 - 1)
                for kind, _, p, q in steps
                if kind == "mixtures" and max(s for *_, s in p) > min(s for *_, s in q)
            ]
            sets = [(step[1], nodes_of(step, t, 0.0)) for step in steps] if t < min(limits, default=1e9) else None
            found[u] = exponent(sets, epsilon, t) if sets else 1e300
        return found[u]

    while high - low > 0.1:
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if value(a) < value(b) else (a, high)
    return 2.0 ** (0.5 * (low + high))


def subsampled(rate, sigma, group=1):
    """Components of a group of records on a Poisson sample, and of the noise alone."""
    w = [comb(group, j) * rate**j * (1 - rate) ** (group - j) for j in range(group + 1)]
    return tuple((x, float(j), sigma) for j, x in enumerate(w)), ((1.0, 0.0, sigma),)


def mixtures(count, p, q):
    return ("mixtures", count, p, q)


#: name -> steps and values of epsilon
CASES = {
    "remove": ([mixtures(3000, *subsampled(0.01, 2.0))], (0.0, 1.0, 2.0, 2.2, 4.0)),
    "add": ([mixtures(300, *subsampled(0.03, 0.8)[::-1])], (0.0, 1.0, 4.0, 6.0)),
    "small sigma": ([mixtures(40, *subsampled(0.3, 0.5))], (0.0, 20.0, 60.0, 150.0)),
    "wide": ([mixtures(100000, *subsampled(0.5, 100.0))], (0.0, 3.0, 20.0)),
    "million": ([mixtures(1000000, *subsampled(0.01, 2.0))], (1.0, 30.0, 60.0, 120.0, 200.0)),
    "rare": ([mixtures(1000000, *subsampled(1e-4, 1.0))], (0.0, 0.1, 0.5)),
    "group of four": ([mixtures(100, *subsampled(0.1, 1.5, 4))], (0.0, 5.0, 20.0)),
    "group of four, add": ([mixtures(100, *subsampled(0.1, 1.5, 4)[::-1])], (0.0, 5.0, 12.0)),
    "two sides": (
        [mixtures(200, ((0.05, -1.0, 1.0), (0.9, 0.0, 1.0), (0.05, 1.0, 1.0)), ((1.0, 0.0, 1.0),))],
        (0.0, 1.0, 3.0),
    ),
    "weights apart": ([mixtures(1000, ((0.3, 0.0, 2.0), (0.7000000004, 1.0, 2.0)), ((0.9999999995, 0.0, 2.0),))],
                      (10.0, 50.0, 120.0)),
    "two sigmas": ([mixtures(60, ((1.0, 0.3, 1.0),), ((1.0, 0.0, 1.25),))], (0.0, 4.0, 8.0)),
    "wider numerator": ([mixtures(60, ((1.0, 0.3, 1.25),), ((1.0, 0.0, 1.0),))], (0.0, 4.0, 20.0, 60.0)),
    "mixtures of sigmas": (
        [mixtures(50, ((0.9, 0.0, 1.0), (0.1, 1.0, 1.2)), ((0.8, 0.0, 1.0), (0.2, -0.5, 1.4)))], (0.0, 2.0, 5.0),
    ),
    "laplace": ([("laplace", 3000, 10.0, 1.0)], (0.0, 10.0, 20.0, 40.0)),
    "all kinds": (
        [mixtures(300, *subsampled(0.1, 2.0)), mixtures(50, *subsampled(0.05, 3.0, 2)),
         mixtures(5, ((1.0, 1.0, 8.0),), ((1.0, 0.0, 8.0),)), mixtures(10, ((1.0, 0.0, 4.0),), ((1.0, 0.0, 4.25),)),
         ("laplace", 4, 15.0, 1.0), ("atoms", 7, (0.5, 0.25, 0.25, 0.0), (0.375, 0.3125, 0.25, 0.0625))],
        (0.0, 2.0, 4.0, 10.0),
    ),
}


def contours():
    """Rows of name, epsilon, log delta and log tail with the digits on which two contours agree."""
    ctx.prec = BITS
    for name, (steps, epsilons) in CASES.items():
        for epsilon in epsilons:
            t = saddle(steps, epsilon)
            sets = [(step[1], nodes_of(step, t, 0.0)) for step in steps]
            base, largest = exponent(sets, epsilon, t), 1e-3
            small = 0
            while small < 3:  # frequencies at which the integrand is small
                largest *= 1.25
                sets = [(step[1], nodes_of(step, t, largest)) for step in steps]
                at = acb(t, largest)
                value = sum((count * log_moment(nodes, at) for count, nodes in sets), acb(0)).real.mid()
                size = float(value) - epsilon * t - float((arb(t) * (t + 1)).log()) - base
                small = small + 1 if size < -48.0 else 0
            first, second = (
                log_delta_and_tail(sets, [epsilon], share * t, largest, largest / parts)[0]
                for share, parts in ((0.93, 12), (0.85, 15))
            )
            for a, b in zip(first, second, strict=True):
                assert abs(float((a - b).mid())) < 1e-16, (name, epsilon, a, b)
            yield [name, epsilon, first[0].str(22, radius=False), first[1].str(22, radius=False)]


def contour_inputs():
    """The steps of every case as hexadecimal doubles, column by column; those that are stored stay."""
    return {name: [as_text(step) for step in steps] for name, (steps, _) in CASES.items()} | inputs("contours")


def as_text(step):
    kind, count, first, second = step
    columns = [*zip(*first, strict=True), *zip(*second, strict=True)] if kind == "mixtures" else [first, second]
    return {kind: [array_to_text(column) for column in ([count], *columns)]}


def stored_steps(name):
    """The steps of a stored case, as in ``CASES`` but with columns: (kind, count, columns)."""
    steps = []
    for entry in inputs("contours")[name]:
        ((kind, columns),) = entry.items()
        count, *rest = (array_from_text(column) for column in columns)
        steps.append((kind, int(count[0]), rest))
    return steps
