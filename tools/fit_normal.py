"""Compute the Chebyshev series of the normal quantile, in 40 digits.

Run ``python tools/fit_normal.py > csrc/sampling/fp_normal_quantile_tables.h``. It needs mpmath. The truncated series is
within a factor of two of the minimax polynomial; the comments in the header bound the relative truncation error.
"""

from mpmath import cos, erfc, exp, fsum, log, mp, mpf, pi, sqrt

mp.dps = 40
NODES = 48
OCTAVES, CENTRAL, TAIL = 8, 13, 18


def quantile(w):
    """The z >= 0 with P(|Z| > z) = w, by Halley's iteration."""
    if w == 1:
        return mpf(0)
    z = sqrt(2 * log(1 / w)) if w < 0.5 else (1 - w) * mpf("1.25")
    for _ in range(60):
        step = (erfc(z / sqrt(2)) - w) / (sqrt(2 / pi) * exp(-z * z / 2))
        step = step / (1 - z * step / 2) if abs(z * step) < 1 else step
        z += step
        if abs(step) < mpf(10) ** -34 * z:
            break
    return z


def series(function, low, high, terms):
    """Coefficients c of sum c_i (x - (low + high)/2)^i, a cut Chebyshev series, and a bound of the relative cut."""
    middle, half = (low + high) / 2, (high - low) / 2
    angles = [pi * (k + mpf(1) / 2) / NODES for k in range(NODES)]
    values = [function(middle + half * cos(angle)) for angle in angles]
    chebyshev = [2 * fsum(v * cos(j * a) for v, a in zip(values, angles, strict=True)) / NODES for j in range(NODES)]
    chebyshev[0] /= 2
    power = [[mpf(1)], [mpf(0), mpf(1)]]
    while len(power) < terms:
        one, two = power[-1], power[-2]
        power.append([2 * (one[i - 1] if i else 0) - (two[i] if i < len(two) else 0) for i in range(len(one) + 1)])
    c = [fsum(chebyshev[j] * power[j][i] for j in range(i, terms)) / half**i for i in range(terms)]
    return c, fsum(abs(term) for term in chebyshev[terms:]) / min(abs(v) for v in values)


def central():
    """Quantile(w) / (1 - w) on halves of octaves, w = 2^e m, as a series in m - 1.25 or m - 1.75."""
    pieces = [None] * (2 * OCTAVES)
    for e in range(-OCTAVES, 0):
        for half in (0, 1):
            scale, low = mpf(2) ** e, 1 + mpf(half) / 2
            pieces[2 * ((1023 + e) % OCTAVES) + half] = series(
                lambda m, s=scale: quantile(s * m) / (1 - s * m) if s * m < 1 else sqrt(pi / 2),
                low, low + mpf(1) / 2, CENTRAL,
            )
    return [c for c, _ in pieces], max(cut for _, cut in pieces)


def tail():
    """Quantile(w) r as a series in r - FP_TAIL_MIDDLE, r = 1 / sqrt(-log w), 2^-53 <= w <= 2^-OCTAVES."""
    low, high = 1 / sqrt(53 * log(mpf(2))), 1 / sqrt(OCTAVES * log(mpf(2)))
    low, high = mpf(int(low * 1024)) / 1024, mpf(int(high * 1024) + 1) / 1024
    return *series(lambda r: quantile(exp(-1 / (r * r))) * r, low, high, TAIL), (low + high) / 2


def rows(numbers):
    """C text of doubles, four a line."""
    return ["    " + " ".join(f"{float(x).hex()}," for x in numbers[i : i + 4]) for i in range(0, len(numbers), 4)]


def main():
    """Print the header."""
    pieces, central_cut = central()
    ends, tail_cut, middle = tail()
    print("/* The normal quantile in pieces: written by fit_normal.py, read by fp_normal_quantile.h. */")
    print("/* bounds: proved by proofs/tables - the normal quantile on halves of octaves, to 5.6e-15 of it; the tail "
          "of w\n * below 2^-8, to 1.1e-15 */")
    print("#ifndef FP_NORMAL_QUANTILE_TABLES_H\n#define FP_NORMAL_QUANTILE_TABLES_H\n")
    print(f"#define FP_NORMAL_TERMS {CENTRAL}\n#define FP_TAIL_TERMS {TAIL}")
    print(f"#define FP_TAIL_START 0x1p-{OCTAVES}\n#define FP_TAIL_MIDDLE {float(middle).hex()}\n")
    print(f"/* [term][piece], piece = bits 51 to 54 of w; cut {mp.nstr(central_cut, 2)} */")
    print(f"static const double fp_normal_pieces[{CENTRAL}][16] __attribute__((aligned(64))) = {{")
    for i in range(CENTRAL):
        print("\n".join(["    {", *("    " + line for line in rows([c[i] for c in pieces])), "    },"]))
    print(f"}};\n\n/* cut {mp.nstr(tail_cut, 2)} */\nstatic const double fp_normal_tail[{TAIL}] = {{")
    print("\n".join([*rows(ends), "};\n\n#endif"]))


if __name__ == "__main__":
    main()
