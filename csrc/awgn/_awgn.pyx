"""Capacity of the Gaussian channel under a peak-power constraint; the mathematics is in csrc/awgn/fp_awgn.h."""

import numpy as np

cdef extern from "awgn/fp_awgn.h":
    const double FP_AWGN_LATTICE_STEP, FP_AWGN_LATTICE_EXTENT, FP_AWGN_SHORT_INTERVAL
    ctypedef struct fp_awgn_result:
        double value, lower, upper, slope
        int count, status
        long evaluations
        double radius[1]
        double weight[1]
    ctypedef struct fp_awgn_kernels:
        int (*solve)(double, double, double, const fp_awgn_result *, fp_awgn_result *) noexcept nogil
        void (*one_sphere)(double, const double *, ptrdiff_t, double, double *) noexcept nogil
        int (*line)(double, double, fp_awgn_result *, long *) noexcept nogil
    fp_awgn_kernels fp_awgn_select()

cdef fp_awgn_kernels kernels = fp_awgn_select()


cdef class Solution:
    """One solved channel: bracket, slope, and the spheres of the input."""
    cdef fp_awgn_result result

    @property
    def numbers(self):
        r = &self.result
        return r.value, r.lower, r.upper, r.slope, r.status, r.evaluations

    @property
    def spheres(self):
        cdef int n = self.result.count
        return (np.array(<double[:n]>self.result.radius), np.array(<double[:n]>self.result.weight))


def solve(double dimension, double radius, double rtol, Solution start=None):
    """Capacity in nats for noise of variance 1 and ||X|| <= radius; ``start`` may be a solution nearby."""
    cdef Solution solution = Solution.__new__(Solution)
    cdef fp_awgn_result *out = &solution.result
    cdef const fp_awgn_result *initial = NULL
    if start is not None:
        initial = &start.result
    with nogil:
        kernels.solve(dimension, radius, rtol, initial, out)
    return solution


def long_interval(double radius, double rtol):
    """Dimension 1 and a long interval: the solution for a shorter interval, and the number of lattice steps to insert.

    The first ``1 + LATTICE_EXTENT / LATTICE_STEP`` points of the input are a lattice; ``extra`` more lattice steps go between them.
    """
    cdef Solution solution = Solution.__new__(Solution)
    cdef fp_awgn_result *out = &solution.result
    cdef long extra = 0
    with nogil:
        kernels.line(radius, rtol, out, &extra)
    return solution, extra


LATTICE_STEP, LATTICE_EXTENT, SHORT_INTERVAL = FP_AWGN_LATTICE_STEP, FP_AWGN_LATTICE_EXTENT, FP_AWGN_SHORT_INTERVAL


def one_sphere(double dimension, const double[::1] radius, double rtol):
    """Rows of value, lower, upper, slope and evaluations; lower is negative where one sphere is not enough."""
    rows = np.empty((radius.shape[0], 5))
    cdef double[:, ::1] out = rows
    if radius.shape[0]:
        with nogil:
            kernels.one_sphere(dimension, &radius[0], radius.shape[0], rtol, &out[0, 0])
    return rows
