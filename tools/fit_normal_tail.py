"""Writes ``csrc/special/fp_normal_tail_table.h``: the tail of the normal distribution and its density on a grid.

Run ``python tools/fit_normal_tail.py`` from the root of the repository; it needs mpmath.
"""

from pathlib import Path

import mpmath as mp

STEPS, LAST = 32, 12  # points to a unit, and the last one
BITS = 26  # of the leading part of the density: its products with 26 bits of another number are exact


def row(z):
    """The tail as a double-double, the density as 26 bits and a double."""
    tail, density = mp.erfc(z / mp.sqrt(2)) / 2, mp.npdf(z)
    high = float(tail)
    mantissa, exponent = mp.frexp(density)
    leading = float(mp.ldexp(mp.nint(mp.ldexp(mantissa, BITS)), int(exponent) - BITS))
    return [high, float(tail - mp.mpf(high)), leading, float(density - mp.mpf(leading))]


def text():
    lines = [
        "/* Q(z) = 1 - Phi(z) as a double-double and phi(z) as 26 bits and a double, z = k / 32; written by "
        "tools/fit_normal_tail.py. */",
        "#ifndef FP_NORMAL_TAIL_TABLE_H",
        "#define FP_NORMAL_TAIL_TABLE_H",
        "",
        "/* bound: proved by proofs/tables - Q to 1.2325951644078310e-32 of itself, phi to 2^26 times that */",
        f"static const double fp_normal_tail_table[{STEPS * LAST + 1}][4] = {{",
    ]
    with mp.workprec(400):
        lines += ["    {" + ", ".join(x.hex() for x in row(mp.mpf(k) / STEPS)) + "}," for k in range(STEPS * LAST + 1)]
    return "\n".join([*lines, "};", "", "#endif", ""])


if __name__ == "__main__":
    Path("csrc/special/fp_normal_tail_table.h").write_text(text(), encoding="utf-8")
