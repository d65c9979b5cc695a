"""Scrambled Sobol sequences of up to 2**40 points, in natural order.

Point k of a sequence has, in every coordinate, the 64 binary digits

    shift ^ column[b_1] ^ column[b_2] ^ ...,    k = 2**b_1 + 2**b_2 + ...,

so that every aligned block of 2**m points is a digital net. The generators are those of ``scipy.stats.qmc.Sobol``
(Joe and Kuo 2008), asked for through its points; SciPy walks the same sequence in the order of Gray codes. Digits that
are out of its reach follow from the recurrence that all of them obey: for a coordinate with a primitive polynomial of
degree s and coefficients a_1 ... a_(s-1), and integers m_j = column[j] read with 2**-(j+1) as unit,

    m_j = 2 a_1 m_(j-1) ^ 4 a_2 m_(j-2) ^ ... ^ 2**(s-1) a_(s-1) m_(j-s+1) ^ 2**s m_(j-s) ^ m_(j-s).

Scrambling is Matousek's: a random linear map of the digits of every coordinate and a random shift (Matousek 1998,
"On the L2-discrepancy for anchored boxes"). A scrambled point is uniform on the grid of its digits, so that means over
scrambled points are unbiased.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.random import SeedSequence

from ..base import random_streams
from ..base.numerics import IndexArray, WordArray
from ..kernels import _draw

__all__ = ["COLUMNS", "DIMENSIONS", "generators", "scrambled"]

COLUMNS = 40  # binary digits of an index
DIMENSIONS = 21201  # coordinates that SciPy has generators for


def scrambled(dimension: int, root: SeedSequence, key: tuple[int, ...], count: int = 1) -> tuple[WordArray, WordArray]:
    """Columns (dimension * count, COLUMNS) and shifts (dimension * count,) of ``count`` scrambled sequences with this
    key, side by side in every coordinate."""
    columns = np.empty((dimension * count, COLUMNS), dtype=np.uint64)
    shifts = np.empty(dimension * count, dtype=np.uint64)
    plain = generators(dimension) if count == 1 else np.repeat(generators(dimension), count, axis=0)
    _draw.scramble(random_streams.stream_words(root, key, _draw.SEED_WORDS), plain, columns, shifts)
    return columns, shifts


@lru_cache(maxsize=8)
def generators(dimension: int) -> WordArray:
    """Columns (dimension, COLUMNS) of the sequence before scrambling; the leading digit is bit 63. Not writeable."""
    degrees = _degrees(dimension)
    known = min(int(degrees[-1]) + 1, COLUMNS)
    m = np.zeros((COLUMNS, dimension), dtype=np.uint64)
    m[:known] = _first(dimension, known)
    m[:, 0] = 1
    for degree in sorted({int(s) for s in degrees[1:]}):
        of = np.flatnonzero(degrees == degree)
        _extend(m, of, degree, known)
    bit_positions = np.uint64(63) - np.arange(COLUMNS, dtype=np.uint64)
    columns = np.ascontiguousarray((m << bit_positions[:, None]).T)
    columns.flags.writeable = False
    return columns


def _first(dimension: int, known: int) -> WordArray:
    """m_0 ... m_(known-1) of every coordinate, from the points of SciPy's sequence whose index is a power of two."""
    from scipy.stats import qmc

    sequence = qmc.Sobol(dimension, scramble=False, bits=known + 1)
    m = np.zeros((known, dimension), dtype=np.uint64)
    column = np.zeros(dimension, dtype=np.uint64)
    for b in range(known):  # the Gray code of 2**b has bits b and b - 1
        sequence.fast_forward(2**b - sequence.num_generated)
        point = (sequence.random(1)[0] * 2.0**known).astype(np.uint64)
        column = point ^ column
        m[b] = column >> np.uint64(known - 1 - b)
    return m


def _extend(m: WordArray, of: IndexArray, degree: int, known: int) -> None:
    """Fill m[known:, of] by the recurrence, its coefficients read off m[degree]: all m are odd."""
    lowest_bit = np.uint64(1)
    s = np.uint64(degree)
    rest = m[degree, of] ^ m[0, of] ^ (m[0, of] << s)
    terms = []  # masks of all ones where a_i is 1
    for i in range(1, degree):
        shift = np.uint64(i)
        mask = np.uint64(0) - (rest >> shift & lowest_bit)
        rest = rest ^ (m[degree - i, of] << shift & mask)
        terms.append((i, shift, mask))
    for j in range(known, len(m)):
        value = m[j - degree, of] ^ (m[j - degree, of] << s)
        for i, shift, mask in terms:
            value = value ^ (m[j - i, of] << shift & mask)
        m[j, of] = value


def _degrees(dimension: int) -> IndexArray:
    """The degree of the polynomial of every coordinate: none for the first, then all primitive ones by degree.

    There are phi(2**s - 1) / s of degree s, phi being Euler's function.
    """
    degrees = [0]
    s = 0
    while len(degrees) < dimension:
        s += 1
        degrees += [s] * (_totient(2**s - 1) // s)
    return np.array(degrees[:dimension])


def _totient(n: int) -> int:
    result, factor = n, 2
    while factor * factor <= n:
        if n % factor == 0:
            result -= result // factor
            while n % factor == 0:
                n //= factor
        factor += 1
    return result - result // n if n > 1 else result
