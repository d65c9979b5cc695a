"""Bounds of binomial tails, ends of intervals for rates, and products of tails; the mathematics is in the headers
csrc/sampling/fp_binomial_tail.h and fp_products_of_tails.h."""

cdef extern from "sampling/fp_binomial_tail.h" nogil:
    ctypedef struct fp_tail:
        double upper, lower, share
    fp_tail fp_binomial_tail(double, double, double, double)
    double fp_least_rate(double, double, double, double)
    double fp_most_rate(double, double, double, double)

cdef extern from "sampling/fp_products_of_tails.h" nogil:
    void fp_dp_ends(double, double, double, double *)
    void fp_gaussian_ends(double, double, double, double *)
    void fp_rounded_ends(double, double *)
    double fp_largest_product(double, double, double, double, int, const double *, const double *)
    int FP_MOST_POINTS


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


cdef int _fit_ends(Py_ssize_t rows, Py_ssize_t points, const double[:, :, ::1] ends, Py_ssize_t numbers) except -1:
    if ends.shape[0] != rows or ends.shape[1] != points or ends.shape[2] != 4 or numbers != rows:
        raise ValueError("points must have four ends each, and rows one number")
    return 0


def dp_ends(const double[:, ::1] x, const double[::1] epsilon, const double[::1] delta, double[:, :, ::1] ends):
    """Ends of F and 1 - F of (epsilon, delta) at the points x, (rows, points): (rows, points, 4)."""
    cdef Py_ssize_t i, j
    _fit_ends(x.shape[0], x.shape[1], ends, min(epsilon.shape[0], delta.shape[0]))
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            fp_dp_ends(x[i, j], epsilon[i], delta[i], &ends[i, j, 0])


def gaussian_ends(const double[:, ::1] x, const double[:, ::1] quantile, const double[::1] mu, double[:, :, ::1] ends):
    """Ends of F and 1 - F of mu-Gaussian differential privacy at the points x, which have these quantiles."""
    cdef Py_ssize_t i, j
    _fit_ends(x.shape[0], x.shape[1], ends, mu.shape[0])
    _fit_ends(quantile.shape[0], quantile.shape[1], ends, mu.shape[0])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            fp_gaussian_ends(x[i, j], quantile[i, j], mu[i], &ends[i, j, 0])


def rounded_ends(const double[:, ::1] rate, double[:, :, ::1] ends):
    """Ends of F and 1 - F where F is known but for some roundings."""
    cdef Py_ssize_t i, j
    _fit_ends(rate.shape[0], rate.shape[1], ends, rate.shape[0])
    for i in range(rate.shape[0]):
        for j in range(rate.shape[1]):
            fp_rounded_ends(rate[i, j], &ends[i, j, 0])


def largest_products(const double[:, ::1] counts, const double[:, ::1] x, const double[:, :, ::1] ends, double[::1] out):
    """Upper bounds of the log of u0(x) u1(F(x)) for all x, by rising points: rows of (tp, n1, fp, n0, ...)."""
    cdef Py_ssize_t i, size = counts.shape[0], points = x.shape[1]
    if counts.shape[1] < 4 or x.shape[0] != size or points < 2 or points > FP_MOST_POINTS:
        raise ValueError("rows must have four counts, and from two points to FP_MOST_POINTS")
    _fit_ends(size, points, ends, out.shape[0])
    with nogil:
        for i in range(size):
            out[i] = fp_largest_product(counts[i, 0], counts[i, 1], counts[i, 2], counts[i, 3], <int>points, &x[i, 0],
                                        &ends[i, 0, 0])
