"""Bounds of binomial tails, ends of intervals for rates, and products of tails; the mathematics is in the headers
csrc/sampling/fp_binomial_tail.h and fp_products_of_tails.h."""

cdef extern from "sampling/fp_binomial_tail.h" nogil:
    ctypedef struct fp_tail:
        double upper, lower, share
    fp_tail fp_binomial_tail(double, double, double, double)
    double fp_least_rate(double, double, double, double)
    double fp_most_rate(double, double, double, double)

cdef extern from "sampling/fp_products_of_tails.h" nogil:
    ctypedef struct fp_counts:
        double tp, n1, fp, n0
    ctypedef struct fp_claim:
        int kind
        double first, second
        ptrdiff_t lines
        const double *slopes
        const double *deltas
    double fp_greatest_product(const fp_counts *, const fp_claim *, double, double)
    int FP_CLAIM_DP, FP_CLAIM_GAUSSIAN, FP_CLAIM_LINES

DP, GAUSSIAN, LINES = FP_CLAIM_DP, FP_CLAIM_GAUSSIAN, FP_CLAIM_LINES


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
    """Move the rates in ``out`` outward until they are proved to be ends."""
    cdef Py_ssize_t i
    _fit(hits.shape[0], n, error, out)
    with nogil:
        for i in range(hits.shape[0]):
            if upper:
                out[i] = fp_most_rate(hits[i], n[i], error[i], out[i])
            else:
                out[i] = fp_least_rate(hits[i], n[i], error[i], out[i])


def greatest_products(const double[:, ::1] counts, int kind, const double[::1] first, const double[::1] second,
                      const double[:, ::1] around, double[::1] out):
    """Upper bounds of log u0(x) u1(F(x)) for all x: rows of (tp, n1, fp, n0, ...), the parameters of F of each.

    Of LINES ``first`` and ``second`` have slopes and heights at 0, which all rows share. ``around`` has the ends of an
    interval where it is largest, of each row, or zeros.
    """
    cdef Py_ssize_t i
    cdef fp_counts row
    cdef fp_claim claim
    cdef bint lines = kind == FP_CLAIM_LINES
    if counts.shape[1] < 4 or out.shape[0] != counts.shape[0] or around.shape[0] != counts.shape[0] or (
            around.shape[1] != 2 or first.shape[0] != second.shape[0]) or (
            first.shape[0] < 1 if lines else first.shape[0] != counts.shape[0]):
        raise ValueError("rows must have four counts and two parameters, or one or more lines")
    with nogil:
        for i in range(counts.shape[0]):
            row = fp_counts(counts[i, 0], counts[i, 1], counts[i, 2], counts[i, 3])
            claim = fp_claim(kind, first[0 if lines else i], second[0 if lines else i], first.shape[0], &first[0],
                             &second[0])
            out[i] = fp_greatest_product(&row, &claim, around[i, 0], around[i, 1])
