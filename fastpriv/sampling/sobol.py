"""Scrambled Sobol sequences of up to 2**40 points, in natural order.

Point k of a sequence has, in every coordinate, the 64 binary digits

    shift ^ column[b_1] ^ column[b_2] ^ ...,    k = 2**b_1 + 2**b_2 + ...,

so that every aligned block of 2**m points is a digital net. The generators are those of ``scipy.stats.qmc.Sobol``
(Joe and Kuo 2008), asked for through its points; SciPy walks the same sequence in the order of Gray codes.

Scrambling is Matousek's: a random linear map of the digits of every coordinate and a random shift (Matousek 1998,
"On the L2-discrepancy for anchored boxes"). A scrambled point is uniform on the grid of its digits, so that means over
scrambled points are unbiased.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.random import SeedSequence

from ..base import random_streams
from ..base.numerics import FloatArray, WordArray
from ..kernels import _draw

COLUMNS = 40  # binary digits of an index
DIMENSIONS = 21201  # coordinates that SciPy has generators for


def scrambled(dimension: int, root: SeedSequence, key: tuple[int, ...], count: int = 1) -> tuple[WordArray, WordArray]:
    """Columns (dimension * count, COLUMNS) and shifts (dimension * count,) of ``count`` scrambled sequences with this
    key, side by side in every coordinate."""
    plain = np.repeat(generators(dimension), count, axis=0)
    columns, shifts = np.empty_like(plain), np.empty(len(plain), dtype=np.uint64)
    _draw.scramble(random_streams.stream_words(root, key, _draw.SEED_WORDS), plain, columns, shifts)
    return columns, shifts


@lru_cache(maxsize=8)
def generators(dimension: int) -> WordArray:
    """Columns (dimension, COLUMNS) of the sequence before scrambling; the leading digit is bit 63. Not writeable."""
    from scipy.stats import qmc

    sequence = qmc.Sobol(dimension, scramble=False, bits=COLUMNS)
    columns = np.empty((dimension, COLUMNS), dtype=np.uint64)
    before = _digits(sequence.random(1))  # point 0
    for b in range(COLUMNS):  # in the order of Gray codes the point after 2**b - 1 others differs by column b
        sequence.num_generated = 2**b
        after = _digits(sequence.random(1))
        columns[:, b] = before ^ after
        before = after
    columns.flags.writeable = False
    return columns


def _digits(points: FloatArray) -> WordArray:
    """The binary digits of one point, the leading one as bit 63."""
    return np.asarray(np.ldexp(points[0], COLUMNS).astype(np.uint64) << np.uint64(64 - COLUMNS))
