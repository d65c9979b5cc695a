"""Bounds of binomial tails and ends of intervals for rates; the mathematics is in csrc/sampling/fp_binomial_tail.h."""

cdef extern from "sampling/fp_binomial_tail.h" nogil:
    ctypedef struct fp_tail:
        double upper, lower, share
    fp_tail fp_binomial_tail(double, double, double, double)
    double fp_least_rate(double, double, double, double)
    double fp_most_rate(double, double, double, double)


cdef int _fit(Py_ssize_t size, const double[::1] n, const double[::1] x, const double[::1] y) except -1:
    if n.shape[0] != size or x.shape[0] != size or y.shape[0] != size:
        raise ValueError("all arrays must have one length")
    return 0


def tails(const double[::1] k, const double[::1] n, const double[::1] x, const double[::1] y, double[:, ::1] out):
    """Bounds of P(X >= k) from above and below, and of it over k P(X = k) from above: (3, size)."""
    cdef Py_ssize_t i, size = k.shape[0]
    cdef fp_tail tail
    _fit(size, n, x, y)
    if out.shape[0] != 3 or out.shape[1] != size:
        raise ValueError("out must have three rows of that length")
    with nogil:
        for i in range(size):
            tail = fp_binomial_tail(k[i], n[i], x[i], y[i])
            out[0, i], out[1, i], out[2, i] = tail.upper, tail.lower, tail.share


def rates(bint upper, const double[::1] hits, const double[::1] n, const double[::1] error, double[::1] out):
    """Move the rates in ``out`` outward until they are proved to be ends: of hits < n if ``upper``, else hits > 0."""
    cdef Py_ssize_t i
    _fit(hits.shape[0], n, error, out)
    with nogil:
        for i in range(hits.shape[0]):
            if upper:
                out[i] = fp_most_rate(hits[i], n[i], error[i], out[i])
            else:
                out[i] = fp_least_rate(hits[i], n[i], error[i], out[i])
