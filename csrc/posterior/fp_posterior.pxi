cdef extern from "posterior/fp_posterior.h":
    enum:
        FP_PRIOR_NONE
        FP_PRIOR_PLAIN
        FP_PRIOR_LOG
    ctypedef struct fp_accumulator:
        double high
        double low
    ctypedef struct fp_evidence_sums:
        double top
        double ties
        double most
        double least
        ptrdiff_t top_at
        ptrdiff_t most_at
        ptrdiff_t least_at
        fp_accumulator mass
        fp_accumulator rest
        fp_accumulator moment
    ctypedef struct fp_divergence_sums:
        fp_accumulator excess
        fp_accumulator kl
        fp_accumulator js
    ctypedef struct fp_largest_weights:
        ptrdiff_t capacity
        ptrdiff_t count
        double *t
        ptrdiff_t *at


cdef first_row(const fp_evidence_sums *sums, ptrdiff_t offset):
    """The sums of a first pass as thirteen numbers, places from ``offset`` on."""
    return (sums.top, sums.ties, sums.most, sums.least, sums.top_at + offset, sums.most_at + offset,
            sums.least_at + offset, sums.mass.high, sums.mass.low, sums.rest.high, sums.rest.low, sums.moment.high,
            sums.moment.low)


cdef second_row(const fp_divergence_sums *sums):
    """The sums of a second pass as pairs of doubles."""
    return ((sums.excess.high, sums.excess.low), (sums.kl.high, sums.kl.low), (sums.js.high, sums.js.low))


cdef fp_largest_weights best_of(double[::1] t, ptrdiff_t[::1] at) except *:
    """A heap in two arrays of one length, which may be none."""
    cdef fp_largest_weights best
    best.capacity, best.count, best.t, best.at = t.shape[0], 0, NULL, NULL
    if at.shape[0] != best.capacity:
        raise ValueError("the largest weights and their places must have one length")
    if best.capacity:
        best.t, best.at = &t[0], &at[0]
    return best
