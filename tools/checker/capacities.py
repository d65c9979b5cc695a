"""Capacities by a dual point: I(p, W) <= C <= max_x D(W_x || q) for every p and q."""

import math

from balls import between, distribution, most, normal, number, require
from flint import arb


def _divergence(row, output):
    """D(row || output) of two lists of balls."""
    require(all(y > 0 for x, y in zip(row, output, strict=True) if x > 0), "the hints must be positive where a row is")
    return sum((x * (x / y).log() for x, y in zip(row, output, strict=True) if x > 0), arb(0))


def channel_capacity(inputs, hints, tolerance, high):
    """The ball from the information of an input to the largest divergence from an output distribution."""
    output = distribution(hints["output"])
    pairs = list(zip(distribution(hints["input"]), map(distribution, inputs["rows"]), strict=True))
    mixed = [sum((p * row[j] for p, row in pairs), arb(0)) for j in range(len(output))]
    if len(pairs) == len(output) == 2:
        return _binary(pairs[0][1][1], pairs[1][1][0])
    information = sum((p * _divergence(row, mixed) for p, row in pairs if p > 0), arb(0))
    return information.union(most([_divergence(row, output) for _, row in pairs]))


def bac_capacity(inputs, hints, tolerance, high):
    """The binary asymmetric channel in closed form: log(e^-g + e^-k)."""
    a, b = number(inputs["a"]), number(inputs["b"])
    require(0 <= a <= 1 and 0 <= b <= 1, "a and b must be between 0 and 1")
    return _binary(a, b)


def _binary(a, b):
    entropy_a, entropy_b = (-sum((y * y.log() for y in (x, 1 - x) if y > 0), arb(0)) for x in (a, b))
    if 1 - a - b == 0:
        return arb(0)
    g = ((1 - b) * entropy_a - a * entropy_b) / (1 - a - b)
    k = ((1 - a) * entropy_b - b * entropy_a) / (1 - a - b)
    return ((-g).exp() + (-k).exp()).log()


def awgn_capacity(inputs, hints, tolerance, high):
    """Y = X + N(0, sigma^2) with |X| <= A: the ball from I(P) to a bound of i(x; P) on [0, R], R = A / sigma.

    P is symmetric: its points are the hints and their mirror images. With S(y) = sum p_j cosh(x_j y) e^(-x_j^2 / 2),

        i(x) = x^2/2 - integral of n(y - x) log S(y),

    and its derivatives those of n, by the trapezoidal rule with nodes eta apart. For |Im y| <= c <= 1/R each term of S
    has an angle of at most 1, so that |log S| <= R |y| + R^2/2 + 2; the error is at most 2 N / (e^(2 pi c / eta) - 1),
    N the integral of the modulus, and what lies beyond D from x. The third derivative of log S is a third central
    moment of X in [-R, R], so that of i is at most (2 R)^3 / (6 sqrt 3).
    """
    amplitude, sigma = number(inputs["amplitude"], positive=True), number(inputs["sigma"], positive=True)
    weights, radii, limit = distribution(hints["probabilities"]), list(map(number, hints["radii"])), amplitude / sigma
    require(all(r >= 0 and r <= amplitude for r in radii), "radii must be between 0 and the amplitude")
    radii = [r / sigma for r in radii]
    bits = 14 - math.log(float(tolerance)) + 3 * math.log(3 + float(limit))
    strip, reach = (1 / limit).min(arb(4)).lower(), arb((2 * bits) ** 0.5 + 1)
    eta = arb(2 * math.pi * float(strip) / (bits + float(strip) ** 2)).mid()
    norm = (strip * strip / 2).exp() * (3 + 2 * strip * strip) * (1.5 * limit * limit + 2 * limit + 2)
    end = reach - eta
    beyond = 4 * limit * (1 + 1.5 * limit) * (end * end + 2) * normal(end)
    error = arb(0, (2 * norm / ((2 * arb.pi() * strip / eta).exp() - 1) + beyond).upper())
    last = int(float((limit + reach) / eta)) + 2
    shifted = [(w * (-r * r / 2).exp(), r) for w, r in zip(weights, radii, strict=True)]
    logs = [sum((w * (r * (eta * j)).cosh() for w, r in shifted), arb(0)).log() for j in range(last + 1)]

    def derivatives(x):
        first, stop = (int(float((x + side * reach) / eta)) for side in (-1, 1))
        sums = [arb(0)] * 3
        for j in range(max(first - 1, -last), min(stop + 1, last) + 1):
            d = eta * j - x
            term = normal(d) * logs[abs(j)]
            sums = [sums[0] + term, sums[1] + d * term, sums[2] + (d * d - 1) * term]
        return [c - eta * s + error for c, s in zip((x * x / 2, x, arb(1)), sums, strict=True)]

    information = sum((w * derivatives(r)[0] for w, r in zip(weights, radii, strict=True)), arb(0))
    third, upper, pieces = (2 * limit) ** 3 / (6 * arb(3).sqrt()), information, [(arb(0), limit)]
    while pieces:
        left, right = pieces.pop()
        middle, half = ((left + right) / 2).mid(), ((right - left) / 2).upper()
        value, slope, bend = derivatives(middle)
        inner = bend + third * between(-half, half)
        top = value + abs(slope) * half + abs(bend) * half * half / 2 + third * half**3 / 6
        if inner < 0:  # i is concave, and the top of the parabola below which it lies is at slope^2 / (2 |inner|)
            top = top.min(value + slope * slope / (-2 * inner))
        if not top <= high and not value > high and half > 1e-5:
            pieces += [(middle, right), (left, middle)]
        else:
            upper = upper.max(top)
    return between(information.lower(), upper.upper())
