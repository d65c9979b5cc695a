"""Truth for the capacity of Gaussian noise under a peak-power constraint, in ball arithmetic.

Y = X + N(0, I_d), ||X|| <= R, X uniform on spheres of radii r_j with probabilities p_j. The output has a density with
respect to volume, which depends on rho = ||y|| alone,

    q(rho) = sum_j p_j g(r_j, rho),   g(r, rho) = (2 pi)^(-d/2) exp(-(rho^2 + r^2)/2) 0F1(; d/2; (r rho)^2 / 4),

and i(r; P) = -(d/2) log(2 pi e) - integral of g(r, rho) log q(rho) over volume. In one dimension g is a pair of normal
densities and the integral runs over the line. I(P) = sum_j p_j i(r_j; P) <= C <= max_r i(r; P).

Panels of width one carry 32 Gauss-Legendre nodes; the window reaches 15 beyond the mean of rho, which deviates from
it no more than a normal variable does: 1e-48. The balls hold rounding; the quadrature is tested by changing it.

Where the capacity is large, radii below some r_0 need no care: an output law with weight eps of N(0, (1 + r_0^2/d) I)
in it bounds C by max(max_{r >= r_0} i(r; P), cover(r_0)) + eps.
"""

from __future__ import annotations

from functools import cache

from flint import arb, arb_mat, ctx

__all__ = [
    "COVER", "Shell", "centre", "certificate", "cover", "information", "information_density", "refined_capacity",
    "settled", "single_sphere_limit",
]

BITS = 200
REACH = 15
COVER = "1e-35"  # weight of the covering normal law


def exact(x):
    return x if isinstance(x, arb) else arb(x)


@cache
def legendre(order, bits):
    ctx.prec = bits
    return [arb.legendre_p_root(order, k, weight=True) for k in range(order)]


class Shell:
    """Quadrature over ||y|| that covers every sphere with radius from ``low`` to ``high``."""

    def __init__(self, dimension, low, high, order=32, bits=BITS):
        ctx.prec = bits
        self.dimension, self.bits = dimension, bits
        d = arb(dimension)
        # the mean of rho is between sqrt(r^2 + d - 1) and sqrt(r^2 + d)
        start = max(0.0, (float(low) ** 2 + dimension - 1) ** 0.5 - REACH)
        stop = (float(high) ** 2 + dimension) ** 0.5 + REACH
        panels = int(stop - start) + 1
        half = (arb(stop) - arb(start)) / (2 * panels)
        surface = 2 * arb.pi() ** (d / 2) / (d / 2).gamma()
        self.rho, self.volume = [], []
        for panel in range(panels):
            for root, weight in legendre(order, bits):
                rho = arb(start) + half * (2 * panel + 1 + root)
                self.rho.append(rho)
                self.volume.append(surface * half * weight * rho ** (dimension - 1))
        self.noise = d / 2 * (2 * arb.pi() * arb(1).exp()).log()
        self.unit = (2 * arb.pi()) ** (-d / 2)
        self.scale = (d / 2).gamma() * arb(2) ** (d / 2 - 1)

    def sphere(self, r):
        """g(r, rho) at every node."""
        ctx.prec = self.bits
        r = exact(r)
        if self.dimension == 1:
            return [(normal(y - r) + normal(y + r)) / 2 for y in self.rho]
        return [self.unit * (-(y * y + r * r) / 2).exp() * self.bessel(r * y) for y in self.rho]

    def sphere_and_slopes(self, r):
        """g and its first two derivatives in r, at every node."""
        ctx.prec = self.bits
        r, rows = exact(r), []
        if self.dimension == 1:
            for y in self.rho:
                left, right, a, b = normal(y + r), normal(y - r), y + r, y - r
                rows.append(
                    ((left + right) / 2, (b * right - a * left) / 2, ((a * a - 1) * left + (b * b - 1) * right) / 2)
                )
            return [list(row) for row in zip(*rows, strict=True)]
        d = self.dimension
        for y in self.rho:
            x, scale = r * y, self.unit * (-(y * y + r * r) / 2).exp()
            bessel, slope = self.bessel(x), x / d * self.bessel(x, 1)  # G and G'
            second = bessel - (arb(1) / d if r == 0 else slope / x) * (d - 1)
            rows.append(
                (scale * bessel, scale * (y * slope - r * bessel),
                 scale * ((r * r - 1) * bessel - 2 * r * y * slope + y * y * second))
            )
        return [list(row) for row in zip(*rows, strict=True)]

    def bessel(self, x, up=0):
        """0F1(; d/2 + up; x^2/4), by the Bessel function where the series of arb loses its digits."""
        order = arb(self.dimension) / 2 + up
        if self.dimension < 64 or x == 0:
            return (x * x / 4).hypgeom_0f1(order)
        value = self.scale * x.bessel_i(order - 1) / x ** (order - 1)
        return value * (2 * order - 2) if up else value

    def output(self, spheres, probabilities):
        """q at every node."""
        ctx.prec = self.bits
        return [sum((p * g for p, g in zip(probabilities, column, strict=True)), arb(0))
                for column in zip(*spheres, strict=True)]

    def density(self, sphere, log_output):
        """i(r; P) of one sphere."""
        ctx.prec = self.bits
        return -self.noise - sum(
            (v * g * log for v, g, log in zip(self.volume, sphere, log_output, strict=True)), arb(0)
        )


def normal(t):
    return (-t * t / 2).exp() / (2 * arb.pi()).sqrt()


def law(radii, probabilities, bits=BITS):
    """Radii and probabilities as balls; the probabilities are divided by their sum."""
    ctx.prec = bits
    weights = [exact(p) for p in probabilities]
    total = sum(weights, arb(0))
    return [exact(r) for r in radii], [p / total for p in weights]


def information_density(dimension, r, radii, probabilities, order=32):
    """i(r; P), or a list of them for a list of r."""
    many = isinstance(r, (list, tuple))
    points = [exact(x) for x in (r if many else [r])]
    radii, probabilities = law(radii, probabilities)
    ends = [float(x) for x in (*points, *radii)]
    shell = Shell(dimension, min(ends), max(ends), order)
    logs = [q.log() for q in shell.output([shell.sphere(x) for x in radii], probabilities)]
    values = [shell.density(shell.sphere(x), logs) for x in points]
    return values if many else values[0]


def information(dimension, radii, probabilities, order=32):
    """I(P)."""
    values = information_density(dimension, list(radii), radii, probabilities, order)
    return sum((p * i for p, i in zip(law(radii, probabilities)[1], values, strict=True)), arb(0))


def cover(dimension, r, weight=COVER):
    """sup of KL(P_x || Q) over ||x|| <= r when Q holds ``weight`` of the best normal law for that ball."""
    return -arb(weight).log() + arb(dimension) / 2 * (exact(r) ** 2 / dimension).log1p()


def refined_capacity(dimension, amplitude, radii, probabilities, digits=32, steps=40, bits=BITS):
    """Newton's method on the conditions of optimality from a start in doubles.

    i(r_j; P) = C at every sphere and i'(r_j; P) = 0 at those strictly between 0 and R; the unknowns are log p_j, these
    radii, and C. Returns C, the radii and the probabilities; fails if the residuals do not fall below 10^-digits.
    """
    shell = Shell(dimension, min(radii), amplitude, bits=bits)
    radii = [exact(r) for r in radii]
    assert radii[-1] == amplitude
    free = [j for j, r in enumerate(radii) if 0 < r < amplitude]
    weights = law(radii, probabilities, bits)[1]
    k, m = len(radii), len(radii) + len(free)
    capacity = None
    for _ in range(steps):
        rows = [shell.sphere_and_slopes(r) for r in radii]
        output = shell.output([row[0] for row in rows], weights)
        logs = [q.log() for q in output]
        values = [shell.density(row[0], logs) for row in rows]
        slopes = [shell.density(rows[j][1], logs) + shell.noise for j in free]
        bends = [shell.density(rows[j][2], logs) + shell.noise for j in free]
        information = sum((p * i for p, i in zip(weights, values, strict=True)), arb(0))
        if capacity is None:
            capacity = information
        residual = [i - capacity for i in values] + slopes + [sum(weights, arb(0)) - 1]
        worst = max(abs(float(x.mid())) for x in residual)
        if worst < 10.0**-digits:
            if not all(float(x) < 0 for x in bends):
                raise ArithmeticError(f"a sphere at a minimum of i: d={dimension}, R={amplitude}")
            return information, radii, weights
        tests = [row[0] for row in rows] + [rows[j][1] for j in free]
        moves = [[p * g for g in row[0]] for p, row in zip(weights, rows, strict=True)]
        moves += [[weights[j] * g for g in rows[j][1]] for j in free]
        left = arb_mat([[g * v / q for g, v, q in zip(row, shell.volume, output, strict=True)] for row in tests])
        product = left * arb_mat(moves).transpose()
        system = arb_mat(m + 1, m + 1)
        for a in range(m):
            for b in range(m):
                system[a, b] = -product[a, b].mid()
        for t, j in enumerate(free):
            system[j, k + t] += slopes[t].mid()
            system[k + t, k + t] += bends[t].mid()
        for j in range(k):
            system[j, m] = arb(-1)
            system[m, j] = weights[j].mid()
        step = system.solve(arb_mat(m + 1, 1, [-x.mid() for x in residual]), algorithm="approx")
        change = max([abs(float(step[j, 0])) for j in range(k)] + [4 * abs(float(step[j, 0])) for j in range(k, m)])
        damping = arb(min(1.0, 1.0 / change))
        weights = [(p * (damping * step[j, 0]).exp()).mid() for j, p in enumerate(weights)]
        for t, j in enumerate(free):
            radii[j] = abs(radii[j] + damping * step[k + t, 0]).mid()
        capacity = (capacity + damping * step[m, 0]).mid()
    raise ArithmeticError(f"no convergence at d={dimension}, R={amplitude}: residual {worst:.3g}")


def centre(dimension, radii, probabilities):
    """i(0; P) - I(P) and the second derivative of i at 0."""
    radii, weights = law(radii, probabilities)
    shell = Shell(dimension, 0, max(float(r) for r in radii))
    spheres = [shell.sphere(r) for r in radii]
    logs = [q.log() for q in shell.output(spheres, weights)]
    value = sum((p * shell.density(g, logs) for p, g in zip(weights, spheres, strict=True)), arb(0))
    middle, _, bend = shell.sphere_and_slopes(0)
    return shell.density(middle, logs) - value, shell.density(bend, logs) + shell.noise


def single_sphere_limit(dimension, below, above, digits=25):
    """The R where i(0; P) = i(R; P) for one sphere, between two doubles; secants."""

    def gap(radius):
        value = information_density(dimension, [0, radius], [radius], [1])
        return value[0] - value[1]

    last, here = arb(below), arb(above)
    at_last, at_here = gap(last), gap(here)
    assert at_last < 0 < at_here, (at_last, at_here)
    for _ in range(30):
        if abs(float(at_here)) < 10.0**-digits:
            return here
        slope = (at_here - at_last) / (here - last)
        last, at_last, here = here, at_here, (here - at_here / slope).mid()
        at_here = gap(here)
    raise ArithmeticError("no convergence")


def settled(dimension, value, weight):
    """The largest radius at which ``cover`` is below ``value``, rounded down a little; 0 if there is none."""
    room = (exact(value) + arb(weight).log()) * 2 / dimension
    return float((room.expm1() * dimension).sqrt()) * (1 - 1e-9) if room > 0 else 0.0


def certificate(dimension, amplitude, radii, probabilities, weight=COVER, spacing=0.25):
    """The largest i(r; P) - I(P) on a grid of the radii that ``cover`` does not settle, and where."""
    value = information(dimension, radii, probabilities)
    low = settled(dimension, value, weight)
    count = int((float(amplitude) - low) / spacing) + 8
    points = [low + (float(amplitude) - low) * j / count for j in range(count)]
    excess = [i - value for i in information_density(dimension, points, radii, probabilities)]
    return max(zip((float(x) for x in excess), points, strict=True))
