"""Capacity of the Gaussian channel under a peak-power constraint; the mathematics is in csrc/awgn/fp_awgn.h."""

import numpy as np

include "common/fp_ufunc.pxi"

cdef extern from "awgn/fp_awgn_ufuncs.h":
    fp_ufunc fp_awgn_ufuncs[1]
    const int FP_AWGN_UFUNCS
    const double FP_AWGN_SMALLEST_RADIUS, FP_AWGN_LARGEST_RADIUS
    const int FP_AWGN_BY_ONE_SPHERE, FP_AWGN_BY_SPHERES, FP_AWGN_BY_BALL, FP_AWGN_BY_CLOSED_FORM
    ctypedef struct fp_awgn_result:
        double value, lower, upper, slope
        int count, status, method
        long evaluations
        double radius[1]
        double weight[1]
    ctypedef struct fp_awgn_kernels:
        void (*capacity)(double, double, double, const fp_awgn_result *, fp_awgn_result *) noexcept nogil
        void (*closed_form)(double, double, double, fp_awgn_result *) noexcept nogil
        void (*one_sphere)(double, const double *, ptrdiff_t, double, double *) noexcept nogil
    fp_awgn_kernels fp_awgn_select()

cdef fp_awgn_kernels kernels = fp_awgn_select()

#: How a capacity was found; bits.
ONE_SPHERE, SPHERES = FP_AWGN_BY_ONE_SPHERE, FP_AWGN_BY_SPHERES
BALL, CLOSED_FORM = FP_AWGN_BY_BALL, FP_AWGN_BY_CLOSED_FORM
#: Radii between which a solver is tried.
SMALLEST_RADIUS, LARGEST_RADIUS = FP_AWGN_SMALLEST_RADIUS, FP_AWGN_LARGEST_RADIUS


def ufuncs(dict documentation):
    """The ufuncs by name, each with its docstring from ``documentation``."""
    return registered(fp_awgn_ufuncs, FP_AWGN_UFUNCS, documentation)


cdef class Solution:
    """One solved channel: bracket, slope, and the spheres of the input."""
    cdef fp_awgn_result result

    @property
    def numbers(self):
        r = &self.result
        return r.value, r.lower, r.upper, r.slope, r.method, r.evaluations

    @property
    def spheres(self):
        """Radii and weights of the input.

        Where ``method`` is BALL the first stands for a ball with a ramp, where it is CLOSED_FORM for a ball.
        """
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
        kernels.capacity(dimension, radius, rtol, initial, out)
    return solution


def closed_form(double dimension, double radius, double log_radius):
    """The solution whose bounds are in closed form; the logarithm stands in for a radius that overflows."""
    cdef Solution solution = Solution.__new__(Solution)
    kernels.closed_form(dimension, radius, log_radius, &solution.result)
    return solution


def one_sphere(double dimension, const double[::1] radius, double rtol):
    """Rows of value, lower, upper, slope and evaluations; lower is negative where one sphere is not enough."""
    rows = np.empty((radius.shape[0], 5))
    cdef double[:, ::1] out = rows
    if radius.shape[0]:
        with nogil:
            kernels.one_sphere(dimension, &radius[0], radius.shape[0], rtol, &out[0, 0])
    return rows
