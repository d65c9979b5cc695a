"""The ufuncs of the Gaussian mechanism, and its curve with bounds; the mathematics is in csrc/gauss/fp_gauss.h."""

include "common/fp_ufunc.pxi"

cdef extern from "gauss/fp_gauss_ufuncs.h":
    fp_ufunc fp_gauss_ufuncs[1]
    const int FP_GAUSS_UFUNCS
    ctypedef ptrdiff_t (*fp_gauss_bounds_kernel)(
        const double *const *, const int *, double *const *, ptrdiff_t) noexcept nogil
    fp_gauss_bounds_kernel fp_gauss_bounds_select(int)

cdef fp_gauss_bounds_kernel delta_kernel = fp_gauss_bounds_select(0), log_delta_kernel = fp_gauss_bounds_select(1)


def ufuncs(dict documentation):
    """The ufuncs by name, each with its docstring from ``documentation``."""
    return registered(fp_gauss_ufuncs, FP_GAUSS_UFUNCS, documentation)


def delta_bounds(const double[::1] epsilon, const double[::1] sigma, const double[::1] span, double[::1] value,
           double[::1] lower, double[::1] upper, bint logarithmic):
    """Write the privacy curve with its bounds; return the number of irregular settings, whose ``lower`` is NaN.

    An argument of length 1 holds for all settings.
    """
    cdef ptrdiff_t n = value.shape[0], irregular
    cdef const double *arguments[3]
    cdef double *out[3]
    cdef int fixed[3]
    if n == 0:
        return 0
    if lower.shape[0] != n or upper.shape[0] != n:
        raise ValueError("the results must be of one length")
    for k, array in enumerate((epsilon, sigma, span)):
        if array.shape[0] != n and array.shape[0] != 1:
            raise ValueError("the arguments must be of the length of the results, or of length 1")
    arguments[0], arguments[1], arguments[2] = &epsilon[0], &sigma[0], &span[0]
    fixed[0], fixed[1], fixed[2] = epsilon.shape[0] != n, sigma.shape[0] != n, span.shape[0] != n
    out[0], out[1], out[2] = &value[0], &lower[0], &upper[0]
    with nogil:
        irregular = (log_delta_kernel if logarithmic else delta_kernel)(arguments, fixed, out, n)
    return irregular
