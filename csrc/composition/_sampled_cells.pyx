"""Tables of compositions of Poisson-sampled Gaussians; see csrc/composition/fp_sampled_cells_solver.h."""

import numpy as np

from libc.math cimport INFINITY

include "common/fp_interrupt.pxi"

cdef extern from "common/fp_stop_token.h":
    ctypedef int (*fp_interrupted)() noexcept nogil
    ctypedef struct fp_stop_token:
        pass
    fp_stop_token fp_stop_token_make(fp_interrupted, double) nogil

cdef extern from "composition/fp_sampled_cells_solver.h":
    ctypedef struct fp_contour_answer:
        double value, lower, upper
    void fp_contour_windows_select() nogil
    int fp_sampled_cells(ptrdiff_t, const double *, const double *, const double *, const double *, const double *, int,
                         int, fp_contour_answer *, fp_stop_token *) nogil

cdef extern from "composition/fp_sampled_sigma_solver.h":
    ctypedef struct fp_sigma_answer:
        double value, lower, upper, evaluations
    int fp_sampled_sigmas(ptrdiff_t, const double *, const double *, const double *, const double *, const double *,
                          double, int, fp_sigma_answer *, fp_stop_token *) nogil

fp_contour_windows_select()


def cells(const double[::1] sigma, const double[::1] rate, const double[::1] count, const double[::1] target,
          const double[::1] rounding, int quantity, bint only_upper):
    """Value, lower and upper bound of each cell, shape (n, 3): of log delta at epsilon (``quantity`` 0), or of epsilon
    at a log delta that errs by ``rounding`` (1); in the larger of both directions.
    """
    cdef ptrdiff_t n = sigma.shape[0]
    result = np.empty((n, 3))
    cdef double[:, ::1] out = result
    cdef fp_stop_token stop
    cdef int status = 0
    if not rate.shape[0] == count.shape[0] == target.shape[0] == rounding.shape[0] == n:
        raise ValueError("columns must have one length")
    if n:
        with nogil:
            stop = fp_stop_token_make(interrupted, INFINITY)
            status = fp_sampled_cells(n, &sigma[0], &rate[0], &count[0], &target[0], &rounding[0], quantity, only_upper,
                                      <fp_contour_answer *>&out[0, 0], &stop)
        finished(status, "cells")
    return result


def sigmas(const double[::1] rate, const double[::1] count, const double[::1] epsilon, const double[::1] target,
           const double[::1] rounding, double width, bint only_upper):
    """Least sigma of each cell, shape (n, 4): value, NaN where nothing is proved, lower and upper end, a relative
    ``width`` apart, and how often delta was bounded; ``target`` is a log delta that errs by ``rounding``.
    """
    cdef ptrdiff_t n = rate.shape[0]
    result = np.empty((n, 4))
    cdef double[:, ::1] out = result
    cdef fp_stop_token stop
    cdef int status = 0
    if not count.shape[0] == epsilon.shape[0] == target.shape[0] == rounding.shape[0] == n:
        raise ValueError("columns must have one length")
    if n:
        with nogil:
            stop = fp_stop_token_make(interrupted, INFINITY)
            status = fp_sampled_sigmas(n, &rate[0], &count[0], &epsilon[0], &target[0], &rounding[0], width, only_upper,
                                       <fp_sigma_answer *>&out[0, 0], &stop)
        finished(status, "sigmas")
    return result
