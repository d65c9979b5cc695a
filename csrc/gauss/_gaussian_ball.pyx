"""Normal noise outside a ball; the mathematics is in csrc/gauss/fp_gaussian_ball_loops.h."""

from cpython.exc cimport PyErr_CheckSignals

cdef extern from "gauss/fp_gaussian_ball.h":
    ctypedef ptrdiff_t (*fp_outside_ball_kernel)(
        ptrdiff_t, double, ptrdiff_t, const double *, double *, double *, double *) noexcept nogil
    fp_outside_ball_kernel fp_outside_ball_select()

cdef fp_outside_ball_kernel kernel = fp_outside_ball_select()
cdef ptrdiff_t AT_ONCE = 1024  # values of alpha between two looks at signals


def outside_ball(ptrdiff_t k, double sigma, const double[::1] alpha, double[:, ::1] out):
    """Fill ``out`` (3, n) with P(sigma |Z| > alpha) in k >= 2 dimensions, and its lower and upper bounds.

    Returns how many are NaN, where alpha is above 100 sigma.
    """
    cdef ptrdiff_t n = alpha.shape[0], start = 0, size, missing = 0
    if k < 2 or out.shape[0] != 3 or out.shape[1] != n:
        raise ValueError("there must be two dimensions or more, and three results for each alpha")
    while start < n:
        size = min(AT_ONCE, n - start)
        with nogil:
            missing += kernel(k, sigma, size, &alpha[start], &out[0, start], &out[1, start], &out[2, start])
        start += size
        PyErr_CheckSignals()
    return missing
