"""Expected posteriors under Gaussian noise, and their divergences from the prior; see csrc/posterior/fp_abp.h."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals

cdef extern from "posterior/fp_abp.h":
    ctypedef struct fp_abp_kernels:
        void (*posterior_ratios)(ptrdiff_t, ptrdiff_t, const double *, const double *, const double *, int, double *,
                                 double *, double *) noexcept nogil
        void (*true_value)(ptrdiff_t, ptrdiff_t, const double *, const double *, int, double, const double *,
                           const double *, double *) noexcept nogil
        void (*products)(ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, const double *, const double *,
                         double *) noexcept nogil
        void (*divergences)(ptrdiff_t, ptrdiff_t, const double *, const double *, const double *, double *,
                            double *) noexcept nogil
    fp_abp_kernels fp_abp_select()
    int FP_LANES, FP_POINTS, FP_ROWS, FP_ABP_LOCAL, FP_ABP_GLOBAL, FP_ABP_SMALL_TILTS

cdef fp_abp_kernels kernels = fp_abp_select()
LANES, POINTS = FP_LANES, FP_POINTS
FORMS = {"part": FP_ABP_LOCAL, "whole": FP_ABP_GLOBAL, "small": FP_ABP_SMALL_TILTS}
cdef ptrdiff_t PRODUCTS = 40_000_000  # between two checks for Ctrl-C: some hundredths of a second


def posterior_ratios(const double[::1] t, const double[::1] x, const double[::1] w, bint small):
    """(N_j / q - 1 at the nodes t, the largest exponents, the weighted means of their exponentials)."""
    cdef ptrdiff_t rows = t.shape[0], m = x.shape[0], first, count
    if w.shape[0] != m or m == 0 or m % FP_LANES or rows == 0:
        raise ValueError("atoms have a weight each and come in multiples of LANES; a rule has nodes")
    cdef double[:, ::1] ratio = np.empty((rows, m))
    cdef double[::1] top = np.empty(rows), mean = np.empty(rows)
    cdef ptrdiff_t step = 1 + PRODUCTS // 20 // m
    for first in range(0, rows, step):
        count = min(step, rows - first)
        with nogil:
            kernels.posterior_ratios(count, m, &t[first], &x[0], &w[0], small, &ratio[first, 0], &top[first],
                                    &mean[first])
        PyErr_CheckSignals()
    return np.asarray(ratio), np.asarray(top), np.asarray(mean)


def jensen_shannon_divergences(const double[::1] t, const double[::1] a, int form, double spacing, const double[:, ::1] ratio,
                const double[::1] top, const double[::1] mean, const double[::1] w):
    """Twice the divergences for the true values ``a``, by all nodes and by every other node; see ``posterior_ratios``."""
    cdef ptrdiff_t rows = t.shape[0], m = w.shape[0], p = a.shape[0], first, last, count, block
    if (p == 0 or p % FP_POINTS or ratio.shape[0] != rows or ratio.shape[1] != m or top.shape[0] != rows
            or mean.shape[0] != rows):
        raise ValueError("true values come in multiples of POINTS; changes have a row a node")
    cdef double[:, ::1] terms = np.empty((rows, p))
    cdef double[:, ::1] even = np.zeros((p, m)), odd = np.zeros((p, m))
    cdef double[::1] fine = np.empty(p), coarse = np.empty(p)
    block = max(2, PRODUCTS // (p * m) // 2 * 2)
    if block > FP_ROWS:
        block = block // FP_ROWS * FP_ROWS
    for first in range(0, rows, block):
        last = min(rows, first + block)
        with nogil:
            kernels.true_value(last - first, p, &t[first], &a[0], form, spacing, &top[first], &mean[first],
                              &terms[first, 0])
            kernels.products((last - first + 1) // 2, 2, p, m, &terms[first, 0], &ratio[first, 0], &even[0, 0])
            if last - first > 1:
                kernels.products((last - first) // 2, 2, p, m, &terms[first + 1, 0], &ratio[first + 1, 0], &odd[0, 0])
        PyErr_CheckSignals()
    with nogil:
        kernels.divergences(p, m, &even[0, 0], &odd[0, 0], &w[0], &fine[0], &coarse[0])
    PyErr_CheckSignals()
    return np.asarray(fine), np.asarray(coarse)
