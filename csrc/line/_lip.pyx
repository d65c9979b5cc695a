"""LIP curves of discrete priors under Gaussian noise; the mathematics is in csrc/line/fp_lip.h."""

import numpy as np

include "common/fp_interrupt.pxi"

cdef extern from "line/fp_lip.h":
    ctypedef int (*fp_interrupted)() noexcept nogil
    ctypedef struct fp_bracket:
        double value, lower, upper, log_value, log_lower, log_upper
    ctypedef struct fp_lip_groups:
        int n
        const double *weight
        const double *x
        double error, radius
    ctypedef int (*fp_lip_kernel)(
        int, const double *, const double *, double, const fp_lip_groups *, const double *, ptrdiff_t, double, int,
        fp_interrupted, fp_bracket *, long *) noexcept nogil
    fp_lip_kernel fp_lip_select()

cdef fp_lip_kernel kernels = fp_lip_select()


def lip_curves(const double[::1] w, const double[::1] x, const double[::1] sigma, const double[:, ::1] epsilon,
               double target, bint logs, groups=None):
    """The optimal LIP curves of a prior with weights w on increasing points x, for increasing epsilon (s, e) of each sigma.

    For a single sigma, groups are weights, points, error and radius of fewer atoms with nearly the same density.

    Returns value, lower, upper and their logarithms, shape (s, e, 6), and the cost: evaluations of a log-ratio, sums in
    double-doubles, tails, tails whose crossing could not be enclosed.
    """
    cdef ptrdiff_t s = sigma.shape[0], levels = epsilon.shape[1], i
    if w.shape[0] == 0 or x.shape[0] != w.shape[0] or epsilon.shape[0] != s:
        raise ValueError("shapes must fit: w and x (n,), sigma (s,), epsilon (s, e)")
    cdef const double[::1] group_weight = w, group_x = x
    cdef fp_lip_groups grouped = fp_lip_groups(0, NULL, NULL, 0.0, 0.0)
    if groups is not None:
        group_weight, group_x, grouped.error, grouped.radius = groups
        if s != 1 or group_weight.shape[0] == 0 or group_x.shape[0] != group_weight.shape[0]:
            raise ValueError("shapes must fit: sigma (1,) with groups, weights and points of groups (m,)")
        grouped.n = <int>group_weight.shape[0]
        grouped.weight, grouped.x = &group_weight[0], &group_x[0]
    result = np.empty((s, levels, 6))
    cdef double[:, :, ::1] out = result
    cdef long cost[4]
    cdef long total[4]
    cdef int status = 0
    total[:] = [0, 0, 0, 0]
    with nogil:
        for i in range(s if levels else 0):
            status = kernels(<int>w.shape[0], &w[0], &x[0], sigma[i], &grouped, &epsilon[i, 0], levels, target, logs, interrupted,
                             <fp_bracket *>&out[i, 0, 0], cost)
            if status:
                break
            total[0] += cost[0]
            total[1] += cost[1]
            total[2] += cost[2]
            total[3] += cost[3]
    finished(status, "points")
    return result, (total[0], total[1], total[2], total[3])
