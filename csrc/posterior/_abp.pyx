"""Memory views over expected posteriors behind Gaussian noise; the mathematics is in csrc/posterior/fp_abp.h."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals

cdef extern from "posterior/fp_abp.h":
    ctypedef struct fp_abp_engine:
        void (*changes)(ptrdiff_t, ptrdiff_t, const double *, const double *, const double *, int, double *, double *,
                        double *) noexcept nogil
        void (*own)(ptrdiff_t, ptrdiff_t, const double *, const double *, int, double, const double *, const double *,
                    double *) noexcept nogil
        void (*products)(ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, const double *, const double *,
                         double *) noexcept nogil
        void (*divergences)(ptrdiff_t, ptrdiff_t, const double *, const double *, const double *, double *,
                            double *) noexcept nogil
    fp_abp_engine fp_abp_pick()
    int FP_LANES, FP_POINTS, FP_ROWS, FP_ABP_PART, FP_ABP_WHOLE, FP_ABP_SMALL

cdef fp_abp_engine engine = fp_abp_pick()
LANES, POINTS = FP_LANES, FP_POINTS
FORMS = {"part": FP_ABP_PART, "whole": FP_ABP_WHOLE, "small": FP_ABP_SMALL}
cdef ptrdiff_t SHARE = 40_000_000  # multiplications between two looks for Ctrl-C, some hundredths of a second


def changes(const double[::1] t, const double[::1] x, const double[::1] w, bint small):
    """(N_j / q - 1 at the nodes t, the largest tilts, their weighted means)."""
    cdef ptrdiff_t rows = t.shape[0], m = x.shape[0], first, count
    if w.shape[0] != m or m == 0 or m % FP_LANES or rows == 0:
        raise ValueError("atoms have a weight each and come in multiples of LANES; a rule has nodes")
    cdef double[:, ::1] change = np.empty((rows, m))
    cdef double[::1] top = np.empty(rows), mean = np.empty(rows)
    cdef ptrdiff_t step = 1 + SHARE // 20 // m
    for first in range(0, rows, step):
        count = min(step, rows - first)
        with nogil:
            engine.changes(count, m, &t[first], &x[0], &w[0], small, &change[first, 0], &top[first], &mean[first])
        PyErr_CheckSignals()
    return np.asarray(change), np.asarray(top), np.asarray(mean)


def divergences(const double[::1] t, const double[::1] a, int form, double spacing, const double[:, ::1] change,
                const double[::1] top, const double[::1] mean, const double[::1] w):
    """Twice the divergences of the true values ``a``, by all nodes and by every other node; see ``changes``."""
    cdef ptrdiff_t rows = t.shape[0], m = w.shape[0], p = a.shape[0], first, last, count, share
    if (p == 0 or p % FP_POINTS or change.shape[0] != rows or change.shape[1] != m or top.shape[0] != rows
            or mean.shape[0] != rows):
        raise ValueError("true values come in multiples of POINTS; changes have a row a node")
    cdef double[:, ::1] own = np.empty((rows, p))
    cdef double[:, ::1] even = np.zeros((p, m)), odd = np.zeros((p, m))
    cdef double[::1] fine = np.empty(p), coarse = np.empty(p)
    share = max(2, SHARE // (p * m) // 2 * 2)
    if share > FP_ROWS:
        share = share // FP_ROWS * FP_ROWS
    for first in range(0, rows, share):
        last = min(rows, first + share)
        with nogil:
            engine.own(last - first, p, &t[first], &a[0], form, spacing, &top[first], &mean[first], &own[first, 0])
            engine.products((last - first + 1) // 2, 2, p, m, &own[first, 0], &change[first, 0], &even[0, 0])
            if last - first > 1:
                engine.products((last - first) // 2, 2, p, m, &own[first + 1, 0], &change[first + 1, 0], &odd[0, 0])
        PyErr_CheckSignals()
    with nogil:
        engine.divergences(p, m, &even[0, 0], &odd[0, 0], &w[0], &fine[0], &coarse[0])
    PyErr_CheckSignals()
    return np.asarray(fine), np.asarray(coarse)
