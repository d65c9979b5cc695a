"""Likelihood ratios of releases as weights of attributes; the mathematics is in csrc/membership/fp_likelihood_ratio.h."""

import numpy as np

cdef extern from "membership/fp_likelihood_ratio.h":
    ctypedef double fp_weights_kernel(
        ptrdiff_t, const double *, const double *, const double *, double, double *) noexcept nogil
    fp_weights_kernel *fp_weights_select()

cdef fp_weights_kernel *kernel = fp_weights_select()


def ratio_weights(const double[:, ::1] released, const double[::1] log_odds, const double[::1] log_rest, double e):
    """Weights of the attributes, shape (R, m), and constants, shape (R,), of releases that are cut to [e, 1 - e]."""
    cdef ptrdiff_t rows = released.shape[0], m = released.shape[1], row
    if log_odds.shape[0] != m or log_rest.shape[0] != m:
        raise ValueError("the logarithms of the references must have an entry for each attribute")
    cdef double[:, ::1] weights = np.empty((rows, m))
    cdef double[::1] constants = np.zeros(rows)
    if m:
        with nogil:
            for row in range(rows):
                constants[row] = kernel(m, &released[row, 0], &log_odds[0], &log_rest[0], e, &weights[row, 0])
    return np.asarray(weights), np.asarray(constants)
