"""Both passes over blocks of log likelihoods and priors; the mathematics is in csrc/posterior/fp_posterior.h."""

include "posterior/fp_posterior.pxi"

cdef extern from "posterior/fp_posterior.h":
    ctypedef struct fp_posterior_kernels:
        void (*first)(ptrdiff_t, const void *, int, int, const void *, int, double, int, fp_evidence_sums *,
                      fp_largest_weights *) noexcept nogil
        void (*second)(ptrdiff_t, const void *, int, int, const void *, int, double, double, double,
                       fp_divergence_sums *, double *) noexcept nogil
        void (*join)(fp_evidence_sums *, const fp_evidence_sums *) noexcept nogil
    fp_posterior_kernels fp_posterior_select()

cdef fp_posterior_kernels kernels = fp_posterior_select()

cdef int prior_kind(bint has_prior, bint logs):
    return FP_PRIOR_NONE if not has_prior else FP_PRIOR_LOG if logs else FP_PRIOR_PLAIN


cdef (const void *, int) address_of(source, Py_ssize_t length) except *:
    """The address of a contiguous block, and whether its numbers are float32."""
    cdef const float[::1] singles
    cdef const double[::1] doubles
    if source.shape[0] != length:
        raise ValueError("likelihoods and prior of a block must have one length")
    if source.dtype == "float32":
        singles = source
        return <const void *> &singles[0], 1
    doubles = source
    return <const void *> &doubles[0], 0


def evidence_sums(likelihood, prior, bint logs, double shift, bint sums, ptrdiff_t offset, double[::1] best,
               ptrdiff_t[::1] places):
    """Evidence sums of one block, thirteen numbers, with indices counted from ``offset``; how many ``best`` holds.

    ``likelihood`` holds log likelihoods, contiguous float32 or float64; ``prior`` is None where it is uniform, else
    probabilities, or their logarithms if ``logs``; joint weights are then relative to ``shift``. The largest joint
    weights go to ``best``, in no order, with their indices in the block in ``places``. Without ``sums`` they, the
    largest and the smallest are all that is computed. The mass is NaN where a number is NaN or infinite, or where a
    prior is negative or above 1.
    """
    cdef ptrdiff_t n = likelihood.shape[0]
    cdef fp_evidence_sums total
    cdef fp_largest_weights largest = best_of(best, places)
    cdef int kind = prior_kind(prior is not None, logs), l_single, prior_single = 0
    cdef const void *l
    cdef const void *w = NULL
    if n == 0:
        raise ValueError("a block must have entries")
    l, l_single = address_of(likelihood, n)
    if prior is not None:
        w, prior_single = address_of(prior, n)
    with nogil:
        kernels.first(n, l, l_single, kind, w, prior_single, shift, sums, &total, &largest)
    return first_row(&total, offset), largest.count


def merge_evidence_sums(rows):
    """The evidence sums of consecutive blocks merged, in order, into those of one block."""
    cdef fp_evidence_sums total, one
    cdef bint started = False
    for row in rows:
        (one.top, one.ties, one.most, one.least, one.top_at, one.most_at, one.least_at, one.mass.high, one.mass.low,
         one.rest.high, one.rest.low, one.moment.high, one.moment.low) = row
        if started:
            kernels.join(&total, &one)
        else:
            total, started = one, True
    if not started:
        raise ValueError("there must be a block to join")
    return first_row(&total, 0)


def divergence_sums(likelihood, prior, bint logs, double weight, double high, double low, double[::1] posterior):
    """(excess, KL, JS) of one block, each as a pair of doubles; writes the posterior unless it is None.

    ``weight`` is the prior of each secret where the prior is uniform, else the factor of the prior; the log evidence is
    ``high + low``.
    """
    cdef ptrdiff_t n = likelihood.shape[0]
    cdef fp_divergence_sums sums
    cdef int kind = prior_kind(prior is not None, logs), l_single, prior_single = 0
    cdef const void *l
    cdef const void *w = NULL
    cdef double *out = NULL
    if n == 0:
        raise ValueError("a block must have entries")
    l, l_single = address_of(likelihood, n)
    if prior is not None:
        w, prior_single = address_of(prior, n)
    if posterior is not None:
        if posterior.shape[0] != n:
            raise ValueError("the posterior must have the length of the block")
        out = &posterior[0]
    with nogil:
        kernels.second(n, l, l_single, kind, w, prior_single, weight, high, low, &sums, out)
    return second_row(&sums)
