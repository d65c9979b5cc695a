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


def lip_curve(const double[::1] w, const double[::1] x, double sigma, const double[::1] epsilon, double target,
              bint logs):
    """The optimal LIP curve of a prior with weights w on increasing points x, for increasing epsilon.

    Returns rows of value, lower, upper and their logarithms, shape (len(epsilon), 6), and the cost: evaluations of a
    log-ratio, sums in double-doubles, tails, tails whose crossing could not be enclosed.
    """
    result = np.empty((epsilon.shape[0], 6))
    cdef double[:, ::1] out = result
    cdef long cost[4]
    cdef int status
    if epsilon.shape[0] == 0:
        return result, (0, 0, 0, 0)
    with nogil:
        status = kernels(<int>w.shape[0], &w[0], &x[0], sigma, &epsilon[0], epsilon.shape[0], target, logs, interrupted,
                        <fp_bracket *>&out[0, 0], cost)
    finished(status, "points")
    return result, (cost[0], cost[1], cost[2], cost[3])
