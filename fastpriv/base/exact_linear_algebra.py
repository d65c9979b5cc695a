"""Linear algebra on matrices of doubles, exact or with enclosures: roots, quadratic forms and determinants.

Every double is a whole number times a power of two, so a matrix of doubles is a matrix of whole numbers times such a
power. Bareiss's elimination (1968) stays within whole numbers: its divisions leave no remainder, and its last pivot is
the determinant.

Notation: K is a symmetric positive definite d x d matrix, S the diagonal matrix of powers of two for which A = S K S
has its diagonal in [1/4, 1), u a vector.

* u' K^-1 u. With any y and r = u - K y it equals u'y + r'y + r' K^-1 r, the last term between 0 and
  |S r|^2 / lambda, where lambda > 0 bounds the spectrum of A from below. y is a computed solution refined once; r and
  the first two terms are formed in whole numbers. What remains is of second order in a residual of about 2^-100.
* lambda. If the Cholesky factorisation of A - m I runs through in doubles, A - m I is at least
  -(d + 3) 2^-52 trace(A) (Rump 2006, theorem 2.3, with room to spare), so lambda = m minus that.
* log det K. Up to 20 dimensions by elimination in whole numbers; otherwise from a triangular G near the inverse
  Cholesky factor of A, taken as it comes: det A = det(I + E) / det(G)^2 with E = G A G' - I, and
  |log det(I + E) - tr E| <= e^2 / (2 (1 - e)) for e = |E| < 1 (Frobenius; the rounding of E is added entry by entry).
"""

# bounds: proved - Rump 2006, theorem 2.3, and (2 d + 4) u for a product of three matrices; underflow

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from operator import mul

import numpy as np

from .numerics import LARGEST_DOUBLE, LOG_2, UNIT_ROUNDOFF, FloatArray, IntArray, next_above, next_below

__all__ = [
    "Enclosure", "exact_difference", "integer_determinant", "inverse_quadratic_form",
    "least_eigenvalue_bound", "log_determinant", "scaled_integers", "square_root_enclosure", "unit_diagonal_scaling",
]

Enclosure = tuple[Fraction, Fraction]  # lower and upper bound
_MAX_EXACT_DIMENSION = 20  # up to which determinants are computed in whole numbers; their digits grow with it
_SUM_BITS = 200  # significant bits kept of a sum of quotients without a common denominator
_ROOT_BITS = 160  # of a rational number before its square root is taken, so that 80 bits of the root are right


def scaled_integers(x: FloatArray) -> tuple[list[int], int]:
    """Whole numbers n and an exponent e with x_i = n_i 2^e."""
    mantissas, exponents = np.frexp(np.asarray(x, dtype=np.float64).ravel())
    powers = (exponents.astype(np.int64) - 53).tolist()
    digits = np.ldexp(mantissas, 53).astype(np.int64).tolist()
    least = min((e for n, e in zip(digits, powers, strict=True) if n), default=0)
    return [n << (e - least) if n else 0 for n, e in zip(digits, powers, strict=True)], least


def integer_determinant(k: list[list[int]]) -> int | None:
    """Determinant of a matrix of whole numbers; None if a leading minor is not positive. Overwrites its rows."""
    last = 1
    for i, pivot in enumerate(k):
        head = pivot[i]
        if head <= 0:
            return None
        for row in k[i + 1 :]:
            factor = row[i]
            row[i + 1 :] = [(head * a - factor * b) // last for a, b in zip(row[i + 1 :], pivot[i + 1 :], strict=True)]
        last = head
    return last


def exact_difference(x: FloatArray, y: FloatArray) -> list[Fraction]:
    """x - y without rounding."""
    numbers, e = scaled_integers(np.concatenate([x, y]))
    d = len(numbers) // 2
    return [_scaled(a - b, e) for a, b in zip(numbers[:d], numbers[d:], strict=True)]


def square_root_enclosure(square: Enclosure) -> tuple[float, float]:
    """Doubles that enclose the root of a positive enclosure; equal to it where it is a double."""
    return _rounded_root(square[0], up=False), _rounded_root(square[1], up=True)


def inverse_quadratic_form(u: Sequence[Fraction], k: FloatArray) -> Enclosure | None:
    """u' K^-1 u, K a covariance matrix, or diag(k^2) for standard deviations k of shape (d,).

    None where a matrix K cannot be proved positive definite in doubles.
    """
    if k.ndim == 1:
        return _diagonal_quadratic_form(u, k)
    s, a = unit_diagonal_scaling(k)
    least = least_eigenvalue_bound(a)
    if least <= 0.0:
        return None
    d = len(u)
    size = max(abs(x) for x in u)
    power = size.numerator.bit_length() - size.denominator.bit_length() + int(s.max()) + 1
    right = np.array([float(_scaled(x, int(e) - power)) for x, e in zip(u, s, strict=True)])
    # K as whole numbers times 2^e: the residual u - K y is formed without rounding
    numbers, e = scaled_integers(k)
    rows = [numbers[i * d : (i + 1) * d] for i in range(d)]
    y = [Fraction(0)] * d
    residual = list(u)
    for _ in range(2):
        step = np.linalg.solve(a, right)
        y = [x + _scaled(Fraction(t), int(f) + power) for x, t, f in zip(y, step.tolist(), s, strict=True)]
        common = _common_exponent(y)
        scaled = [int(_scaled(x, -common)) for x in y]
        residual = [x - _scaled(sum(map(mul, row, scaled)), e + common) for x, row in zip(u, rows, strict=True)]
        right = np.array([float(_scaled(x, int(f) - power)) for x, f in zip(residual, s, strict=True)])
    value = sum((x * t for x, t in zip(u, y, strict=True)), Fraction(0))
    value += sum((x * t for x, t in zip(residual, y, strict=True)), Fraction(0))
    remainder = _sum_of_squares([_scaled(x, int(f)) for x, f in zip(residual, s, strict=True)]) / Fraction(least)
    return value, value + remainder


def _diagonal_quadratic_form(u: Sequence[Fraction], sigmas: FloatArray) -> Enclosure:
    """The sum of (u_i / sigma_i)^2; exact for one sigma and for one u_i other than 0."""
    if np.all(sigmas == sigmas[0]):
        total = _sum_of_squares(u) / Fraction(float(sigmas[0])) ** 2
        return total, total
    terms = [(a / Fraction(s)) ** 2 for a, s in zip(u, sigmas.tolist(), strict=True) if a]
    if len(terms) == 1:
        return terms[0], terms[0]
    largest = max(terms)
    shift = _SUM_BITS - (largest.numerator.bit_length() - largest.denominator.bit_length())
    total = Fraction(sum((_scaled(t, shift).__floor__() for t in terms), 0))
    return _scaled(total, -shift), _scaled(total + len(terms), -shift)


def unit_diagonal_scaling(k: FloatArray) -> tuple[IntArray, FloatArray]:
    """Exponents s and A_ij = K_ij 2^(s_i + s_j), the diagonal of A in [1/4, 1)."""
    exponent = np.frexp(np.diagonal(k))[1].astype(np.int64)
    s = (-exponent) // 2
    return s, np.asarray(np.ldexp(np.ldexp(k, s[:, None].astype(np.int32)), s[None, :].astype(np.int32)))


def least_eigenvalue_bound(a: FloatArray) -> float:
    """A lower bound of the spectrum of a matrix with entries of at most 1; 0 when none above 0 can be proved."""
    d = len(a)
    guess = 0.5 * float(np.linalg.eigvalsh(a)[0])
    if guess <= 0.0:
        return 0.0
    try:
        np.linalg.cholesky(a - guess * np.eye(d))
    except np.linalg.LinAlgError:
        return 0.0
    return max(0.0, guess - 1.1 * (d + 3) * 2 * UNIT_ROUNDOFF * float(np.trace(a)) - d * 1e-300)


def log_determinant(k: FloatArray) -> tuple[float, float]:
    """log det K and a bound of its error, infinite where K cannot be proved positive definite."""
    d = len(k)
    s, a = unit_diagonal_scaling(k)
    power = -2 * int(s.sum())  # det K = 2^power det A
    if d <= _MAX_EXACT_DIMENSION:
        numbers, exponent = scaled_integers(a)
        exact = integer_determinant([numbers[i * d : (i + 1) * d] for i in range(d)])
        if exact is None:
            return math.nan, math.inf
        bits = exact.bit_length()
        terms = math.log(exact / (1 << bits)), (bits + d * exponent + power) * LOG_2
        return math.fsum(terms), 4 * UNIT_ROUNDOFF * (abs(terms[0]) + abs(terms[1]))
    try:
        g = np.tril(np.linalg.inv(np.linalg.cholesky(a)))
    except np.linalg.LinAlgError:
        return math.nan, math.inf
    e = g @ a @ g.T - np.eye(d)
    displacement = 1.01 * (2 * d + 4) * UNIT_ROUNDOFF * (np.abs(g) @ np.abs(a) @ np.abs(g.T)) + 1e-290
    size = 1.01 * float(np.linalg.norm(np.abs(e) + displacement))
    if not size < 0.5:
        return math.nan, math.inf
    logs = np.log(np.abs(np.diagonal(g)))
    trace = np.diagonal(e)
    value = math.fsum([*(-2.0 * logs).tolist(), *trace.tolist(), power * LOG_2])
    rounding = 4 * UNIT_ROUNDOFF * (2 * float(np.abs(logs).sum()) + abs(power) + abs(value) + d)
    return value, 1.01 * (float(np.trace(displacement)) + size**2 / (2 * (1 - size))) + rounding


def _scaled(x: Fraction | int, power: int) -> Fraction:
    return Fraction(x) * (1 << power) if power >= 0 else Fraction(x) / (1 << -power)


def _common_exponent(numbers: Sequence[Fraction]) -> int:
    """The exponent of a power of two of which all these numbers are multiples; their denominators are such powers."""
    return -max(x.denominator.bit_length() - 1 for x in numbers)


def _sum_of_squares(u: Sequence[Fraction]) -> Fraction:
    common = _common_exponent(u)
    return _scaled(sum(int(_scaled(x, -common)) ** 2 for x in u), 2 * common)


def _rounded_root(square: Fraction, *, up: bool) -> float:
    """A double on the requested side of the square root, from an integer root of at least 80 bits."""
    power = max(0, _ROOT_BITS - (square.numerator.bit_length() - square.denominator.bit_length())) // 2 + 1
    scaled = square * (1 << 2 * power)
    floor = math.isqrt(scaled.numerator // scaled.denominator)
    if up and floor * floor != scaled:
        floor += 1
    root = Fraction(floor, 1 << power)
    try:
        nearest = float(root)
    except OverflowError:
        return math.inf if up else LARGEST_DOUBLE
    if up:
        return nearest if Fraction(nearest) >= root else next_above(nearest)
    return nearest if Fraction(nearest) <= root else next_below(nearest)
