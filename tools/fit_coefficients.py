"""Fit the polynomials of the elementary functions, of erfc and of the posterior: minimax by exchange, in 60 digits.

Run ``python tools/fit_coefficients.py [name ...]``. It prints each table as C, and the largest error of the fit. The
tables stand in csrc/special/fp_elementary.h, csrc/special/fp_erfc.h, csrc/posterior/fp_posterior.h and
csrc/gauss/fp_gauss.h. It needs mpmath.
"""

import sys

from mpmath import cos, cosh, erfc, exp, log, lu_solve, matrix, mp, mpf, pi, sqrt, tanh

mp.dps = 60


def minimax(function, low, high, terms, weight=lambda x: mpf(1), grid=400, rounds=30):
    """Coefficients c of the polynomial that minimises max |weight (function - sum c_i x^i)| on [low, high]."""
    points = [(low + high) / 2 - (high - low) / 2 * cos(pi * (i + mpf(1) / 2) / (terms + 1)) for i in range(terms + 1)]
    fine = [(low + high) / 2 - (high - low) / 2 * cos(pi * (i + mpf(1) / 2) / grid) for i in range(grid)]
    values = [(x, function(x), weight(x)) for x in fine]
    for _ in range(rounds):
        system = matrix(terms + 1, terms + 1)
        right = matrix(terms + 1, 1)
        for row, x in enumerate(points):
            for column in range(terms):
                system[row, column] = x**column
            system[row, terms] = (-1) ** row / weight(x)
            right[row] = function(x)
        solution = lu_solve(system, right)
        c = [solution[i] for i in range(terms)]
        errors = [w * (f - horner(c, x)) for x, f, w in values]
        peaks, best = [], 0
        for i in range(1, grid):
            if errors[i] * errors[best] < 0:
                peaks.append(best)
                best = i
            elif abs(errors[i]) > abs(errors[best]):
                best = i
        peaks.append(best)
        level = abs(solution[terms])
        worst = max(abs(e) for e in errors)
        if len(peaks) < terms + 1 or worst < level * mpf("1.02"):
            break
        points = [fine[i] for i in peaks[: terms + 1]]
    return c, worst


def horner(c, x):
    """The polynomial with coefficients c, lowest first, at x."""
    value = mpf(0)
    for term in reversed(c):
        value = value * x + term
    return value


def exp_tail():
    """(e^r - 1 - r - r^2/2) / r^3 on |r| <= log(2)/2."""
    edge = mpf("0.34658")

    def tail(r):
        return sum(r**n / mp.factorial(n + 3) for n in range(40))

    return minimax(tail, -edge, edge, 10, lambda r: abs(r) ** 2 + mpf("1e-3"))


def log_tail():
    """(log((1 + s) / (1 - s)) - 2 s) / s^3 in z = s^2, |s| <= 3 - sqrt(8)."""
    edge = mpf("0.02944")
    return minimax(lambda z: sum(2 * z**n / (2 * n + 3) for n in range(60)), mpf(0), edge, 7, lambda z: z + mpf("1e-4"))


def erfcx(z):
    """exp(z^2) erfc(z)."""
    return exp(z * z) * erfc(z)


def mills_ratio(x):
    """(1 - Phi(x)) / phi(x)."""
    return sqrt(pi / 2) * erfcx(x / sqrt(2))


def half_line(function, limit, unit, terms=24, centre=4):
    """G of function(x) = (limit + G(t) / (x + centre)) / (x + centre), t = 1 - 2 centre / (x + centre), x >= 0.

    The coefficients come rounded to doubles, the last one shifted by some ulps of G so that in double arithmetic
    unit * function(0) is what it should be: erfcx(0) = 1 and Phi(0) = 1/2 exactly.
    """

    def shape(t):
        x = centre * (1 + t) / (1 - t)
        return (x + centre) * ((x + centre) * function(x) - limit)

    def weight(t):  # to an error relative to the function
        r = (1 - t) / (2 * mpf(centre))
        return r / (limit + r * shape(t))

    exact, worst = minimax(shape, mpf(-1), mpf(1), terms, weight)
    c = [float(term) for term in exact]
    goal, shifts = float(unit * function(mpf(0))), sorted(range(-40, 41), key=abs)
    for shift in shifts:
        tried = [*c[:-1], c[-1] + shift * 2.0**-52]
        if at_zero(tried, float(limit), float(unit), centre) == goal:
            return tried, worst
    raise ArithmeticError("no shift of the last coefficient gives the value at 0")


def mills_series(terms=27, nodes=64):
    """F of mills_ratio(x) = u F(t), u = 1 / (x + 9/2) and t = 1 - 8 u, for x >= -1/2, in powers of t.

    A Chebyshev series cut after ``terms``; the error is the sum of the sizes of those left out.
    """

    def shape(t):
        u = (1 - t) / 8
        return mills_ratio(1 / u - mpf(9) / 2) / u

    angles = [pi * (j + mpf(1) / 2) / nodes for j in range(nodes)]
    values = [shape(cos(angle)) for angle in angles]
    series = [2 * sum(v * cos(k * a) for v, a in zip(values, angles, strict=True)) / nodes for k in range(nodes)]
    series[0] /= 2
    powers, earlier, later = [mpf(0)] * terms, [mpf(1)], [mpf(0), mpf(1)]
    for size in series[:terms]:
        for i, term in enumerate(earlier):
            powers[i] += size * term
        doubled = [mpf(0), *(2 * term for term in later)]
        earlier, later = later, [term - (earlier[i] if i < len(earlier) else 0) for i, term in enumerate(doubled)]
    return powers, sum(abs(size) for size in series[terms:])


def at_zero(c, limit, unit, centre):
    """Unit * function(0) as csrc/special/fp_erfc.h computes it: t = -1, even and odd terms summed apart."""
    even, odd = c[-2], c[-1]
    for i in range(len(c) - 4, -1, -2):
        even, odd = even + c[i], odd + c[i + 1]
    return unit * ((limit + (even - odd) / centre) / centre)


def tanh_tail():
    """(tanh(y/2) - y/2) / y^3 in z = y^2, |y| <= 1/2."""
    edge = mpf(1) / 4

    def tail(z):
        y = sqrt(z)
        return (tanh(y / 2) - y / 2) / y**3

    return minimax(tail, mpf(0), edge, 7, lambda z: sqrt(z + mpf("1e-4")))


def atanh_tail():
    """(log((1 + q) / (1 - q)) - 2 q) / q^3 in z = q^2, where (1 + q) / (1 - q) = 1 + e^-y and y >= 1/2."""
    e = exp(-mpf(1) / 2)
    edge = (e / (2 + e)) ** 2
    return minimax(lambda z: sum(2 * z**n / (2 * n + 3) for n in range(60)), mpf(0), edge, 8, lambda z: z + mpf("1e-4"))


def divergence_tail():
    """(y/2 tanh(y/2) - log cosh(y/2)) / y^2 in z = y^2, |y| <= 1/2."""
    edge = mpf(1) / 4

    def tail(z):
        y = sqrt(z)
        return (y / 2 * tanh(y / 2) - log(cosh(y / 2))) / y**2

    return minimax(tail, mpf(0), edge, 8)


TABLES = {
    "exp_tail": exp_tail,
    "log_tail": log_tail,
    "erfcx_table": lambda: half_line(erfcx, 1 / sqrt(pi), mpf(1)),
    "tanh_tail": tanh_tail,
    "atanh_tail": atanh_tail,
    "divergence_tail": divergence_tail,
    "mills_series": mills_series,
    "mills_table": lambda: half_line(mills_ratio, mpf(1), 1 / sqrt(2 * pi)),
}


def main(names):
    """Print the tables of these names, or all."""
    for name in names or TABLES:
        c, worst = TABLES[name]()
        print(f"/* {name}: {mp.nstr(worst, 3)} */\nstatic const double fp_{name}[{len(c)}] = {{")
        for i in range(0, len(c), 4):
            print("    " + " ".join(f"{float(term).hex()}," for term in c[i : i + 4]))
        print("};")


if __name__ == "__main__":
    main(sys.argv[1:])
