"""Certified hockey-stick divergences of one-dimensional Gaussian mixtures; see csrc/line/fp_hockey_stick.h."""

import numpy as np

from libc.math cimport INFINITY

include "common/fp_interrupt.pxi"
include "common/fp_ufunc.pxi"

cdef extern from "line/fp_mixture_ufuncs.h":
    fp_ufunc fp_mixture_ufuncs[1]
    const int FP_MIXTURE_UFUNCS
    ctypedef struct fp_bracket:
        double value, lower, upper, log_value, log_lower, log_upper
    ctypedef int (*fp_hockey_stick_kernel)(
        int, const double *, const double *, const double *, int, const double *, const double *, const double *,
        const double *, ptrdiff_t, double, int, fp_interrupted, double, fp_bracket *, long *) noexcept nogil
    fp_hockey_stick_kernel fp_hockey_stick_select()

cdef fp_hockey_stick_kernel kernels = fp_hockey_stick_select()


def ufuncs(dict documentation):
    """The ufuncs by name, each with its docstring from ``documentation``."""
    return registered(fp_mixture_ufuncs, FP_MIXTURE_UFUNCS, documentation)


def pair_curve(const double[::1] w, const double[::1] m, const double[::1] s, const double[::1] v,
               const double[::1] n, const double[::1] t, const double[::1] epsilon, double target, bint logs,
               double deadline=INFINITY):
    """H_{e^eps}(P||Q) of mixtures P = (w, m, s) and Q = (v, n, t).

    Returns rows of value, lower, upper and their logarithms, shape (len(epsilon), 6), and the cost: evaluations of the
    log-ratio, sums in double-doubles, monotone pieces, intervals left undecided because a budget was spent or because
    the lengths are too far apart for doubles, and the number of ``epsilon`` that were not done at the ``deadline`` (by
    ``time.monotonic``), whose brackets are wide.
    """
    result = np.empty((epsilon.shape[0], 6))
    cdef double[:, ::1] out = result
    cdef long cost[5]
    cdef int status
    if epsilon.shape[0] == 0:
        return result, (0, 0, 0, 0, 0)
    with nogil:
        status = kernels(<int>w.shape[0], &w[0], &m[0], &s[0], <int>v.shape[0], &v[0], &n[0], &t[0], &epsilon[0],
                        epsilon.shape[0], target, logs, interrupted, deadline, <fp_bracket *>&out[0, 0],
                        cost)
    finished(status, "components")
    return result, (cost[0], cost[1], cost[2], cost[3], cost[4])
