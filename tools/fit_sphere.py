"""Compute the tables of csrc/special/fp_sphere.h: interpolation at Chebyshev points, in 600-bit ball arithmetic.

Run ``python tools/fit_sphere.py > csrc/special/fp_sphere_tables.h``. It needs python-flint.
"""

from flint import arb, ctx

ctx.prec = 600

LOW, LOW_TERMS = (2, 3), 40
MIDDLE, MIDDLE_TERMS = tuple(range(4, 16)), 28
HIGH, HIGH_TERMS, ORDERS = 16, 28, 13
CUT = arb(5) / 16


def remainder(p, dimension):
    """Q = (log G - A) / (1 - p)^2 at p = b / sqrt(b^2 + x^2)."""
    d = arb(dimension)
    a, b, order = (d - 1) / 2, (d + 1) / 2, d / 2 - 1
    root = b / p
    x, v = (root * root - b * b).sqrt(), root - b
    log_g = x.bessel_i(order, scaled=True).log() + x + (d / 2).lgamma() + order * (2 / x).log()
    return (log_g - v + a * (v / d).log1p()) / (1 - p) ** 2


def interpolated(function, low, high, terms):
    """Coefficients c of the polynomial sum of c_i q^i that equals function(p) at the Chebyshev points, q = -1 .. 1 as
    p = low .. high."""
    angles = [arb.pi() * (2 * i + 1) / (2 * terms) for i in range(terms)]
    values = [function(low + (high - low) * (1 + angle.cos()) / 2) for angle in angles]
    total = [arb(0)] * terms
    before, last = [arb(0)] * terms, [arb(1)] + [arb(0)] * (terms - 1)  # T_{k-1} and T_k by powers of q
    for k in range(terms):
        weight = sum((values[i] * (k * angles[i]).cos() for i in range(terms)), arb(0)) * (2 if k else 1) / terms
        total = [c + weight * t for c, t in zip(total, last, strict=True)]
        shifted = [arb(0), *last[:-1]]
        after = [(2 if k else 1) * s - t for s, t in zip(shifted, before, strict=True)]
        before, last = last, after
    return total


def pieces(dimensions, terms):
    """Rows d: the coefficients for p in [0, CUT], then those for p in [CUT, 1]."""
    return [
        [float(c.mid()) for low, high in ((arb(0), CUT), (CUT, arb(1)))
         for c in interpolated(lambda p, d=d: remainder(p, d), low, high, terms)]
        for d in dimensions
    ]


def expansion():
    """Rows i: the coefficient of q^i for d >= HIGH, by powers of r = 2 (HIGH + 1) / (d + 1) - 1."""
    columns = []

    def by_power(share):
        """All coefficients at d = (HIGH + 1) / share - 1, kept in the order of the calls."""
        columns.append(interpolated(lambda p: remainder(p, (HIGH + 1) / share - 1), arb(0), arb(1), HIGH_TERMS))
        return arb(0)

    interpolated(by_power, arb(0), arb(1), ORDERS)
    rows = []
    for i in range(HIGH_TERMS):
        values = iter(column[i] for column in columns)
        powers = interpolated(lambda share, values=values: next(values), arb(0), arb(1), ORDERS)
        rows.append([float(c.mid()) for c in powers])
    return rows


TABLES = {
    "low": lambda: pieces(LOW, LOW_TERMS),
    "middle": lambda: pieces(MIDDLE, MIDDLE_TERMS),
    "high": expansion,
}


def main():
    """Print the header."""
    sizes = {"LOW_TERMS": LOW_TERMS, "MIDDLE_FROM": MIDDLE[0], "MIDDLE_TERMS": MIDDLE_TERMS, "HIGH_FROM": HIGH,
             "HIGH_TERMS": HIGH_TERMS, "ORDERS": ORDERS}
    print("/* Coefficients of fp_sphere.h, printed by fit_sphere.py. */")
    print("/* bounds: proved by proofs/sphere - log G and its slope, as the head of fp_sphere.h says */")
    print("#ifndef FP_SPHERE_TABLES_H\n#define FP_SPHERE_TABLES_H\n\nenum {")
    for name, size in sizes.items():
        print(f"    FP_SPHERE_{name} = {size},")
    print("};\n\n/* bound: none - where one piece of p follows another */")
    print(f"#define FP_SPHERE_CUT {float(CUT.mid())}")
    for name, table in TABLES.items():
        rows = table()
        print(f"\nstatic const double fp_sphere_{name}[{len(rows)}][{len(rows[0])}] = {{")
        for row in rows:
            for i in range(0, len(row), 4):
                start, end = "{" if i == 0 else " ", "}," if i + 4 >= len(row) else ","
                print("    " + start + ", ".join(c.hex() for c in row[i : i + 4]) + end)
        print("};")
    print("\n#endif")


if __name__ == "__main__":
    main()
