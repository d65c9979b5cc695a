"""LIP curves of discrete priors under Gaussian noise; the mathematics is in csrc/line/fp_lip.h."""

import numpy as np

include "common/fp_interrupt.pxi"

cdef extern from "line/fp_lip.h":
    ctypedef int (*fp_interrupted)() noexcept nogil
    ctypedef struct fp_bracket:
        double value, lower, upper, log_value, log_lower, log_upper
    ctypedef int (*fp_lip_kernel)(
        int, const double *, const double *, double, const double *, ptrdiff_t, double, int, fp_interrupted,
        fp_bracket *, long *) noexcept nogil
    fp_lip_kernel fp_lip_select()

cdef fp_lip_kernel kernels = fp_lip_select()


def lip_curves(const double[::1] w, const double[::1] x, const double[::1] sigma, const double[:, ::1] epsilon,
               double target, bint logs):
    """The optimal LIP curves of a prior with weights w on increasing points x, for increasing epsilon (s, e) of each sigma.

    Returns value, lower, upper and their logarithms, shape (s, e, 6), and the cost: evaluations of a log-ratio, sums in
    double-doubles, tails, tails whose crossing could not be enclosed.
    """
    cdef ptrdiff_t s = sigma.shape[0], levels = epsilon.shape[1], i
    if w.shape[0] == 0 or x.shape[0] != w.shape[0] or epsilon.shape[0] != s:
        raise ValueError("shapes must fit: w and x (n,), sigma (s,), epsilon (s, e)")
    result = np.empty((s, levels, 6))
    cdef double[:, :, ::1] out = result
    cdef long cost[4]
    cdef long total[4]
    cdef int status = 0
    total[:] = [0, 0, 0, 0]
    with nogil:
        for i in range(s if levels else 0):
            status = kernels(<int>w.shape[0], &w[0], &x[0], sigma[i], &epsilon[i, 0], levels, target, logs, interrupted,
                             <fp_bracket *>&out[i, 0, 0], cost)
            if status:
                break
            total[0] += cost[0]
            total[1] += cost[1]
            total[2] += cost[2]
            total[3] += cost[3]
    finished(status, "points")
    return result, (total[0], total[1], total[2], total[3])
