"""Memory views over the peak-power capacity solver; the mathematics is in csrc/fp_awgn.h."""

import numpy as np

cdef extern from "fp_awgn.h":
    const int FP_AWGN_SPHERES
    ctypedef struct fp_awgn_result:
        double value, lower, upper, slope, at, peak
        int count, status
        long evaluations, rounds
        double radius[1]
        double weight[1]
    ctypedef struct fp_awgn_engine:
        int (*solve)(double, double, double, const fp_awgn_result *, fp_awgn_result *) noexcept nogil
        void (*one_sphere)(double, const double *, ptrdiff_t, double, double *) noexcept nogil
    fp_awgn_engine fp_awgn_pick()

cdef fp_awgn_engine engine = fp_awgn_pick()


cdef class Solution:
    """One solved channel: bracket, slope, and the spheres of the input."""
    cdef fp_awgn_result result

    @property
    def numbers(self):
        r = &self.result
        return r.value, r.lower, r.upper, r.slope, r.status, r.evaluations, r.rounds

    @property
    def spheres(self):
        cdef int n = self.result.count
        return (np.array(<double[:n]>self.result.radius), np.array(<double[:n]>self.result.weight))


def solve(double dimension, double radius, double rtol, Solution start=None):
    """Capacity in nats for noise of variance 1 and ||X|| <= radius; ``start`` may be a solution nearby."""
    cdef Solution made = Solution.__new__(Solution)
    cdef fp_awgn_result *out = &made.result
    cdef const fp_awgn_result *given = NULL
    if start is not None:
        given = &start.result
    with nogil:
        engine.solve(dimension, radius, rtol, given, out)
    return made


def one_sphere(double dimension, const double[::1] radius, double rtol):
    """Rows of value, lower, upper, slope and evaluations; lower is negative where one sphere is not enough."""
    rows = np.empty((radius.shape[0], 5))
    cdef double[:, ::1] out = rows
    if radius.shape[0]:
        with nogil:
            engine.one_sphere(dimension, &radius[0], radius.shape[0], rtol, &out[0, 0])
    return rows
