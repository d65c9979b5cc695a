"""Mann-Whitney statistics of rows of scores; the mathematics is in csrc/membership/fp_concordance.h."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from "membership/fp_concordance.h":
    ctypedef struct fp_concordance_scratch:
        double *members
        double *others
        double *sorted
        int32_t *bucket
        int64_t *start
        ptrdiff_t buckets
    ctypedef int64_t fp_concordance_kernel(
        ptrdiff_t, const double *, const uint8_t *, const fp_concordance_scratch *, int64_t *) noexcept nogil
    fp_concordance_kernel *fp_concordance_select()
    int FP_FOUR, FP_SPLITTERS

cdef fp_concordance_kernel *kernel = fp_concordance_select()
cdef ptrdiff_t SCORES = 4_000_000  # between two checks for Ctrl-C: some hundredths of a second


def concordance(const double[:, ::1] scores, const uint8_t[:, ::1] membership, int64_t[::1] twice, int64_t[::1] members):
    """Write twice the number of pairs in which the member is higher plus the number of ties, and the number of members.

    Scores have no NaN; ``membership`` has as many rows, or one row for all.
    """
    cdef ptrdiff_t rows = scores.shape[0], n = scores.shape[1], row, step, first, last
    cdef ptrdiff_t stride = 0 if membership.shape[0] == 1 else n
    if membership.shape[1] != n or (stride and membership.shape[0] != rows):
        raise ValueError("membership must have a row for each row of scores, or one, of the same length")
    if twice.shape[0] != rows or members.shape[0] != rows:
        raise ValueError("the answers must have an entry for each row of scores")
    if rows == 0 or n == 0:
        return
    cdef double[::1] doubles = np.empty(3 * n + 2 * FP_FOUR)
    cdef int32_t[::1] bucket = np.empty(n, dtype=np.int32)
    cdef ptrdiff_t buckets = 2 * FP_SPLITTERS
    while buckets < n // 2 and buckets < 1 << 30:
        buckets *= 2
    cdef int64_t[::1] start = np.empty(buckets + 2, dtype=np.int64)
    cdef fp_concordance_scratch scratch
    scratch.members, scratch.others, scratch.sorted = &doubles[0], &doubles[n], &doubles[2 * n]
    scratch.bucket, scratch.start, scratch.buckets = &bucket[0], &start[0], buckets
    step = max(1, SCORES // n)
    for first in range(0, rows, step):
        last = min(rows, first + step)
        with nogil:
            for row in range(first, last):
                twice[row] = kernel(n, &scores[row, 0], &membership[0, 0] + row * stride, &scratch, &members[row])
        PyErr_CheckSignals()
