"""Both passes over the subsets of a pool; the mathematics is in csrc/fp_subsets.h."""

from libc.stdlib cimport free, malloc

include "fp_beliefs.pxi"

cdef extern from "fp_subsets.h":
    const int FP_SUBSETS_SIZE
    ctypedef struct fp_subsets:
        ptrdiff_t pool
        int size
        const double *linear
        const double *pairwise
        double *reach
        double *inclusion
        double weight
        double high
        double low
        ptrdiff_t rank
        fp_first first
        fp_best best
        fp_second second
    ctypedef void (*fp_subsets_call)(fp_subsets *, ptrdiff_t, ptrdiff_t, int) noexcept nogil
    fp_subsets_call fp_subsets_pick()

MOST = FP_SUBSETS_SIZE
cdef fp_subsets_call walk = fp_subsets_pick()


cdef fp_subsets *opened(const double[::1] linear, const double[:, ::1] pairwise, int size, double[:, ::1] reach,
                        ptrdiff_t start, ptrdiff_t stop, ptrdiff_t rank) except NULL:
    cdef ptrdiff_t pool = linear.shape[0]
    cdef fp_subsets *s
    if not (pairwise.shape[0] == pairwise.shape[1] == reach.shape[1] == pool and reach.shape[0] >= size
            and 1 <= size <= FP_SUBSETS_SIZE and 0 <= start < stop <= pool - size + 1):
        raise ValueError("the arrays of the subsets must fit together, and the range must be one of first members")
    s = <fp_subsets *> malloc(sizeof(fp_subsets))
    if s is NULL:
        raise MemoryError
    s.pool, s.size, s.rank = pool, size, rank
    s.linear, s.pairwise, s.reach, s.inclusion = &linear[0], &pairwise[0, 0], &reach[0, 0], NULL
    return s


def first_pass(const double[::1] linear, const double[:, ::1] pairwise, int size, double[:, ::1] reach,
               ptrdiff_t start, ptrdiff_t stop, ptrdiff_t rank, double[::1] best, ptrdiff_t[::1] places):
    """As ``_beliefs.first_pass``, over the subsets with a first member in [start, stop), the first of them of this rank."""
    cdef fp_best largest = best_of(best, places)
    cdef fp_subsets *s = opened(linear, pairwise, size, reach, start, stop, rank)
    s.best = largest
    try:
        with nogil:
            walk(s, start, stop, 1)
        return first_row(&s.first, 0), s.best.count
    finally:
        free(s)


def second_pass(const double[::1] linear, const double[:, ::1] pairwise, int size, double[:, ::1] reach,
                ptrdiff_t start, ptrdiff_t stop, double weight, double high, double low, double[::1] inclusion):
    """The sums of ``_beliefs.second_pass`` over these subsets; adds to the posterior mass of each member."""
    cdef fp_subsets *s
    if inclusion.shape[0] != linear.shape[0]:
        raise ValueError("there must be a mass for each member of the pool")
    s = opened(linear, pairwise, size, reach, start, stop, 0)
    s.weight, s.high, s.low, s.inclusion = weight, high, low, &inclusion[0]
    try:
        with nogil:
            walk(s, start, stop, 2)
        return second_row(&s.second)
    finally:
        free(s)
