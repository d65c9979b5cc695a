"""Certified hockey-stick divergences of one-dimensional Gaussian mixtures; see csrc/line/fp_hockey_stick.h."""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc

include "common/fp_interrupt.pxi"
include "common/fp_ufunc.pxi"

cdef extern from "common/fp_stop_token.h" nogil:
    double fp_seconds()

cdef extern from "line/fp_mixture_ufuncs.h":
    fp_ufunc fp_mixture_ufuncs[1]
    const int FP_MIXTURE_UFUNCS
    ctypedef struct fp_bracket:
        double value, lower, upper, log_value, log_lower, log_upper
    ctypedef int (*fp_hockey_stick_kernel)(
        int, const double *, const double *, const double *, int, const double *, const double *, const double *,
        const double *, ptrdiff_t, double, int, fp_interrupted, double, fp_bracket *, long *) noexcept nogil
    fp_hockey_stick_kernel fp_hockey_stick_select()
    ctypedef struct fp_pieces:
        int count
        long evaluations
    ctypedef struct fp_pair_analysis:
        fp_pieces pieces
    ctypedef int (*fp_pair_analysis_builder)(
        fp_pair_analysis *, int, const double *, const double *, const double *, int, const double *, const double *,
        const double *, fp_interrupted, double) noexcept nogil
    ctypedef int (*fp_pair_analysis_kernel)(
        const fp_pair_analysis *, const double *, ptrdiff_t, double, int, fp_interrupted, double, fp_bracket *,
        long *) noexcept nogil
    fp_pair_analysis_builder fp_pair_analysis_builder_select()
    fp_pair_analysis_kernel fp_pair_analysis_select()
    void fp_pair_analysis_free(fp_pair_analysis *) noexcept nogil

cdef extern from "line/fp_bracket.h" nogil:
    int fp_bracket_is_wide(const fp_bracket *, double)

cdef fp_hockey_stick_kernel kernels = fp_hockey_stick_select()
cdef fp_pair_analysis_builder builders = fp_pair_analysis_builder_select()
cdef fp_pair_analysis_kernel analysis_kernels = fp_pair_analysis_select()


def ufuncs(dict documentation):
    """The ufuncs by name, each with its docstring from ``documentation``."""
    return registered(fp_mixture_ufuncs, FP_MIXTURE_UFUNCS, documentation)


cdef int check_mixtures(const double[::1] w, const double[::1] m, const double[::1] s, const double[::1] v,
                        const double[::1] n, const double[::1] t) except -1:
    if not (0 < w.shape[0] == m.shape[0] == s.shape[0] and 0 < v.shape[0] == n.shape[0] == t.shape[0]):
        raise ValueError("a mixture must have a weight, a mean and a standard deviation for each component")
    return 0


def pair_curve(const double[::1] w, const double[::1] m, const double[::1] s, const double[::1] v,
               const double[::1] n, const double[::1] t, const double[::1] epsilon, double target, bint logs,
               double deadline=INFINITY):
    """H_{e^eps}(P||Q) of mixtures P = (w, m, s) and Q = (v, n, t).

    Returns rows of value, lower, upper and their logarithms, shape (len(epsilon), 6), and the cost: evaluations of the
    log-ratio, sums in double-doubles, monotone pieces, intervals left undecided because a budget was spent or because
    the lengths are too far apart for doubles, the number of ``epsilon`` that were not done at the ``deadline`` (by
    ``time.monotonic``), whose brackets are wide, and the number of brackets that elementary bounds contradicted.
    """
    result = np.empty((epsilon.shape[0], 6))
    cdef double[:, ::1] out = result
    cdef long cost[6]
    cdef int status
    check_mixtures(w, m, s, v, n, t)
    if epsilon.shape[0] == 0:
        return result, (0, 0, 0, 0, 0, 0)
    with nogil:
        status = kernels(<int>w.shape[0], &w[0], &m[0], &s[0], <int>v.shape[0], &v[0], &n[0], &t[0], &epsilon[0],
                        epsilon.shape[0], target, logs, interrupted, deadline, <fp_bracket *>&out[0, 0],
                        cost)
    finished(status, "components")
    return result, (cost[0], cost[1], cost[2], cost[3], cost[4], cost[5])


def wide_brackets(const double[:, ::1] rows, double width):
    """Which rows of ``pair_curve`` are far wider than rounding explains; None where none is."""
    cdef Py_ssize_t i
    cdef bint found = False
    cdef unsigned char[::1] mark
    if rows.shape[1] != 6:
        raise ValueError("rows must have the six numbers of a bracket")
    for i in range(rows.shape[0]):
        if fp_bracket_is_wide(<const fp_bracket *>&rows[i, 0], width):
            found = True
            break
    if not found:
        return None
    wide = np.zeros(rows.shape[0], dtype=np.bool_)
    mark = wide.view(np.uint8)
    for i in range(i, rows.shape[0]):
        mark[i] = fp_bracket_is_wide(<const fp_bracket *>&rows[i, 0], width)
    return wide


def may_rise(const double[:, :] rows, const double[:] epsilon):
    """Whether some bracket of ``pair_curve``, or of logarithms, is above that of a smaller epsilon, or these do not rise.
    """
    cdef Py_ssize_t i
    cdef double least = INFINITY, log_least = INFINITY
    if rows.shape[1] != 6 or rows.shape[0] != epsilon.shape[0]:
        raise ValueError("rows must have the six numbers of a bracket, one row for each epsilon")
    for i in range(rows.shape[0]):
        least, log_least = min(least, rows[i, 2]), min(log_least, rows[i, 5])
        if rows[i, 1] > least or rows[i, 4] > log_least or (i and epsilon[i] < epsilon[i - 1]):
            return True
    return False


cdef class PairAnalysis:
    """The monotone pieces of a pair of mixtures P = (w, m, s) and Q = (v, n, t), for curves on several threads."""

    cdef fp_pair_analysis analysis

    def __init__(self, const double[::1] w, const double[::1] m, const double[::1] s, const double[::1] v,
                 const double[::1] n, const double[::1] t, double deadline=INFINITY):
        cdef int status
        fp_pair_analysis_free(&self.analysis)
        check_mixtures(w, m, s, v, n, t)
        with nogil:
            status = builders(&self.analysis, <int>w.shape[0], &w[0], &m[0], &s[0], <int>v.shape[0], &v[0], &n[0],
                              &t[0], interrupted, deadline)
        finished(status, "components")

    def __dealloc__(self):
        fp_pair_analysis_free(&self.analysis)

    @property
    def evaluations(self):
        """Evaluations of the log-ratio that the analysis took."""
        return self.analysis.pieces.evaluations

    def curve(self, const double[::1] epsilon, double target, bint logs, double deadline=INFINITY):
        """As ``pair_curve``, but for the evaluations of the analysis; the bits of a row do not depend on the others."""
        result = np.empty((epsilon.shape[0], 6))
        cdef double[:, ::1] out = result
        cdef long cost[6]
        cdef int status
        if epsilon.shape[0] == 0:
            return result, (0, 0, 0, 0, 0, 0)
        with nogil:
            status = analysis_kernels(&self.analysis, &epsilon[0], epsilon.shape[0], target, logs, interrupted, deadline,
                                      <fp_bracket *>&out[0, 0], cost)
        finished(status, "components")
        return result, (cost[0], cost[1], cost[2], cost[3], cost[4], cost[5])


def stack_curves(tuple p, tuple q, const double[:, :] epsilon, const Py_ssize_t[::1] rows, tuple shape, double target,
                 bint logs, double deadline, double[:, :, ::1] out, long[:, ::1] cost):
    """``pair_curve`` of these ``rows`` of stacks with leading axes ``shape``, without the GIL.

    ``p`` and ``q`` hold weights, means and standard deviations of shape ``shape + (components,)`` with any strides;
    components of weight 0 are left out. ``epsilon`` of shape (len(rows), E) has a contiguous last axis. ``out`` of
    shape (len(rows), E, 6) and ``cost`` (len(rows), 6) are filled. Rows that begin after the ``deadline`` have the
    bracket [0, 1].
    """
    cdef int axes = len(shape), kp = p[0].shape[axes], kq = q[0].shape[axes], i, j, side, status = 0, np_, nq_
    cdef Py_ssize_t count = rows.shape[0], points = epsilon.shape[1], row, left, k, e
    cdef Py_ssize_t extent[32]
    cdef Py_ssize_t stride[6][33]
    cdef Py_ssize_t offset[6]
    cdef const char *data[6]
    cdef double *buffer
    cdef double *field[6]
    cdef fp_bracket *bracket
    cdef bint timed = deadline < INFINITY
    if axes > 32:
        raise ValueError("at most 32 leading axes")
    if any(a.dtype != "float64" or a.shape != (*shape, k) for side, k in ((p, kp), (q, kq)) for a in side):
        raise ValueError("p and q must hold weights, means and standard deviations of shape (*shape, components)")
    if not (epsilon.shape[0] == out.shape[0] == cost.shape[0] == count and out.shape[1] == points
            and out.shape[2] == 6 and cost.shape[1] == 6
            and (epsilon.strides[1] == sizeof(double) or points <= 1)):
        raise ValueError("shapes must fit: epsilon (rows, levels), contiguous, out (rows, levels, 6), cost (rows, 6)")
    if count == 0 or points == 0:
        return
    left = 1
    for i in range(axes):
        extent[i] = shape[i]
        left *= extent[i]
    for k in range(count):
        if not 0 <= rows[k] < left:
            raise ValueError("rows must be indices of the stacks")
    for side in range(2):
        for j in range(3):
            array = (q if side else p)[j]
            data[3 * side + j] = <const char *>cnp.PyArray_BYTES(<cnp.ndarray>array)
            for i in range(axes + 1):
                stride[3 * side + j][i] = array.strides[i]
    buffer = <double *>malloc(3 * (kp + kq) * sizeof(double))
    if buffer == NULL:
        raise MemoryError
    for j in range(3):
        field[j] = buffer + j * kp
        field[3 + j] = buffer + 3 * kp + j * kq
    with nogil:
        for k in range(count):
            if timed and fp_seconds() > deadline:
                for e in range(points):
                    bracket = <fp_bracket *>&out[k, e, 0]
                    bracket.value, bracket.lower, bracket.upper = 0.5, 0.0, 1.0
                    bracket.log_value, bracket.log_lower, bracket.log_upper = -0.6931471805599453, -INFINITY, 0.0
                cost[k, 0] = cost[k, 1] = cost[k, 2] = cost[k, 3] = cost[k, 5] = 0
                cost[k, 4] = points
                continue
            for j in range(6):
                offset[j] = 0
            left = rows[k]
            for i in range(axes - 1, -1, -1):
                row = left % extent[i]
                left = left // extent[i]
                for j in range(6):
                    offset[j] += row * stride[j][i]
            np_ = gather(kp, axes, data, stride, offset, field, 0)
            nq_ = gather(kq, axes, data, stride, offset, field, 3)
            status = kernels(np_, field[0], field[1], field[2], nq_, field[3], field[4], field[5], &epsilon[k, 0],
                             points, target, logs, interrupted, deadline, <fp_bracket *>&out[k, 0, 0], &cost[k, 0])
            if status:
                break
    free(buffer)
    finished(status, "components")


cdef int gather(int count, int axes, const char **data, Py_ssize_t[33] *stride, const Py_ssize_t *offset,
                double **field, int first) noexcept nogil:
    """Copy the components of positive weight of one row; return their number."""
    cdef int i, j, kept = 0
    for i in range(count):
        if (<const double *>(data[first] + offset[first] + i * stride[first][axes]))[0] > 0.0:
            for j in range(first, first + 3):
                field[j][kept] = (<const double *>(data[j] + offset[j] + i * stride[j][axes]))[0]
            kept += 1
    return kept
