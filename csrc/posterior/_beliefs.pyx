"""Memory views over blocks of log likelihoods and priors; the mathematics is in csrc/posterior/fp_posterior.h."""

include "posterior/fp_posterior.pxi"

cdef extern from "posterior/fp_posterior.h":
    ctypedef struct fp_beliefs_engine:
        void (*first)(ptrdiff_t, const void *, int, int, const void *, int, double, int, fp_first *,
                      fp_best *) noexcept nogil
        void (*second)(ptrdiff_t, const void *, int, int, const void *, int, double, double, double, fp_second *,
                       double *) noexcept nogil
        void (*join)(fp_first *, const fp_first *) noexcept nogil
    fp_beliefs_engine fp_beliefs_pick()

cdef fp_beliefs_engine engine = fp_beliefs_pick()

cdef int kind_of(bint given, bint logs):
    return FP_PRIOR_NONE if not given else FP_PRIOR_LOG if logs else FP_PRIOR_PLAIN


cdef (const void *, int) located(source, Py_ssize_t length) except *:
    """Address of a contiguous block and whether its numbers are float32."""
    cdef const float[::1] singles
    cdef const double[::1] doubles
    if source.shape[0] != length:
        raise ValueError("likelihoods and prior of a block must have one length")
    if source.dtype == "float32":
        singles = source
        return <const void *> &singles[0], 1
    doubles = source
    return <const void *> &doubles[0], 0


def first_pass(likelihood, prior, bint logs, double shift, bint sums, ptrdiff_t offset, double[::1] best,
               ptrdiff_t[::1] places):
    """Sums of one block as a tuple of thirteen numbers, places from ``offset`` on, and how many of the best there are.

    ``likelihood`` holds log likelihoods, contiguous float32 or float64; ``prior`` is None where it is uniform, else
    probabilities, or their logarithms if ``logs``; joint weights are then relative to ``shift``. The largest are left
    in ``best``, in no order, with their places in the block in ``places``. Without ``sums`` they, the largest and the
    smallest are all. The mass is NaN where a number is none, or is infinite, or a prior is negative or above 1.
    """
    cdef ptrdiff_t n = likelihood.shape[0]
    cdef fp_first total
    cdef fp_best largest = best_of(best, places)
    cdef int kind = kind_of(prior is not None, logs), l_single, prior_single = 0
    cdef const void *l
    cdef const void *w = NULL
    if n == 0:
        raise ValueError("a block must have entries")
    l, l_single = located(likelihood, n)
    if prior is not None:
        w, prior_single = located(prior, n)
    with nogil:
        engine.first(n, l, l_single, kind, w, prior_single, shift, sums, &total, &largest)
    return first_row(&total, offset), largest.count


def joined(rows):
    """The sums of consecutive blocks as those of one block, joined in order."""
    cdef fp_first total, one
    cdef bint started = False
    for row in rows:
        (one.top, one.ties, one.most, one.least, one.top_at, one.most_at, one.least_at, one.mass.high, one.mass.low,
         one.rest.high, one.rest.low, one.moment.high, one.moment.low) = row
        if started:
            engine.join(&total, &one)
        else:
            total, started = one, True
    if not started:
        raise ValueError("there must be a block to join")
    return first_row(&total, 0)


def second_pass(likelihood, prior, bint logs, double weight, double high, double low, double[::1] posterior):
    """(excess, kl, js) of one block, each as a pair of doubles; writes the posterior unless it is None.

    ``weight`` is the prior of each secret where it is uniform, else what the prior is multiplied by; the log evidence is
    ``high + low``.
    """
    cdef ptrdiff_t n = likelihood.shape[0]
    cdef fp_second sums
    cdef int kind = kind_of(prior is not None, logs), l_single, prior_single = 0
    cdef const void *l
    cdef const void *w = NULL
    cdef double *out = NULL
    if n == 0:
        raise ValueError("a block must have entries")
    l, l_single = located(likelihood, n)
    if prior is not None:
        w, prior_single = located(prior, n)
    if posterior is not None:
        if posterior.shape[0] != n:
            raise ValueError("the posterior must have the length of the block")
        out = &posterior[0]
    with nogil:
        engine.second(n, l, l_single, kind, w, prior_single, weight, high, low, &sums, out)
    return second_row(&sums)
