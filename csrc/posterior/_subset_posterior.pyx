"""Both passes over the subsets of a pool; the mathematics is in csrc/posterior/fp_subset_posterior.h."""

from libc.stdlib cimport free, malloc

include "posterior/fp_posterior.pxi"

cdef extern from "posterior/fp_subset_posterior.h":
    const int FP_SUBSET_SIZE
    ctypedef struct fp_subset_enumeration:
        ptrdiff_t pool
        int size
        const double *linear_terms
        const double *pair_terms
        double *next_terms
        double *recent_mass
        double *high
        double *low
        double weight
        double evidence
        double rest
        ptrdiff_t rank
        ptrdiff_t increases
        fp_evidence_sums first
        fp_largest_weights best
        fp_divergence_sums second
    ctypedef void (*fp_subset_posterior_kernel)(
        fp_subset_enumeration *, int, const ptrdiff_t *, ptrdiff_t, ptrdiff_t, int) noexcept nogil
    fp_subset_posterior_kernel fp_subset_posterior_select()

MAX_SIZE = FP_SUBSET_SIZE
cdef fp_subset_posterior_kernel enumerate_subsets = fp_subset_posterior_select()


cdef class SubsetPool:
    """Records with their terms of a log likelihood, and the size of the subsets.

    A part of all subsets is described by the members that they begin with and the range [start, stop) of the next one.
    """

    cdef const double[::1] linear
    cdef const double[:, ::1] pairwise
    cdef int size

    def __init__(self, const double[::1] linear, const double[:, ::1] pairwise, int size):
        self.linear, self.pairwise, self.size = linear, pairwise, size
        if not (pairwise.shape[0] == pairwise.shape[1] == (linear.shape[0] if size > 1 or pairwise.shape[0] else 0)
                and 1 <= size <= FP_SUBSET_SIZE):
            raise ValueError("the arrays of the pool must fit together, and the size be one that can be enumerated")

    cdef fp_subset_enumeration *enumeration(self, double[:, ::1] workspace, const ptrdiff_t[::1] prefix,
                                            ptrdiff_t start, ptrdiff_t stop) except NULL:
        cdef ptrdiff_t pool = self.linear.shape[0], least = -1
        cdef int depth = prefix.shape[0]
        cdef fp_subset_enumeration *s
        for member in prefix:
            if not least < member < pool:
                raise ValueError("the members of a prefix must ascend")
            least = member
        if not (depth <= max(self.size - 2, 0) and least < start < stop <= pool - (self.size - depth - 1)):
            raise ValueError("the range must be one of next members")
        if workspace.shape[0] != self.size + 3 or workspace.shape[1] != pool:
            raise ValueError("the workspace must have a row for each member and three more")
        s = <fp_subset_enumeration *> malloc(sizeof(fp_subset_enumeration))
        if s is NULL:
            raise MemoryError
        s.pool, s.size, s.rank = pool, self.size, 0
        s.linear_terms, s.pair_terms = &self.linear[0], NULL
        if self.pairwise.shape[0]:
            s.pair_terms = &self.pairwise[0, 0]
        s.next_terms, s.recent_mass = &workspace[0, 0], &workspace[self.size, 0]
        s.high, s.low = &workspace[self.size + 1, 0], &workspace[self.size + 2, 0]
        return s

    def evidence_sums(self, double[:, ::1] workspace, const ptrdiff_t[::1] prefix, ptrdiff_t start, ptrdiff_t stop,
                   ptrdiff_t rank, double[::1] best, ptrdiff_t[::1] places):
        """The sums of ``_posterior.evidence_sums``, the number in ``best``, and how often the largest weight increased.

        ``rank`` is that of the first subset of this part; ``workspace`` has a row for each member and three more.
        """
        cdef fp_largest_weights largest = best_of(best, places)
        cdef fp_subset_enumeration *s = self.enumeration(workspace, prefix, start, stop)
        cdef const ptrdiff_t *members = &prefix[0] if prefix.shape[0] else NULL
        cdef int depth = prefix.shape[0]
        s.best, s.rank = largest, rank
        try:
            with nogil:
                enumerate_subsets(s, depth, members, start, stop, 1)
            return first_row(&s.first, 0), s.best.count, s.increases
        finally:
            free(s)

    def divergence_sums(self, double[:, ::1] workspace, const ptrdiff_t[::1] prefix, ptrdiff_t start, ptrdiff_t stop,
                    double weight, double high, double low):
        """The sums of ``_posterior.divergence_sums``; the last two rows of the workspace receive each member's mass.

        ``weight`` is the prior of a subset; the log evidence is ``high + low``.
        """
        cdef fp_subset_enumeration *s
        cdef const ptrdiff_t *members = &prefix[0] if prefix.shape[0] else NULL
        cdef int depth = prefix.shape[0]
        workspace[self.size:, :] = 0.0
        s = self.enumeration(workspace, prefix, start, stop)
        s.weight, s.evidence, s.rest = weight, high, low
        try:
            with nogil:
                enumerate_subsets(s, depth, members, start, stop, 2)
            return second_row(&s.second)
        finally:
            free(s)
