"""Registers the ufuncs of the Gaussian mechanism; the mathematics is in csrc/gauss/fp_gauss.h."""

include "common/fp_ufunc.pxi"

cdef extern from "gauss/fp_gauss_ufuncs.h":
    fp_ufunc fp_gauss_table[1]
    const int FP_GAUSS_SIZE
    ctypedef ptrdiff_t (*fp_gauss_call)(const double *const *, const int *, double *const *, ptrdiff_t) noexcept nogil
    fp_gauss_call fp_gauss_bounds_pick(int)

cdef fp_gauss_call delta_bounds = fp_gauss_bounds_pick(0), log_delta_bounds = fp_gauss_bounds_pick(1)


def ufuncs(dict documentation):
    """The ufuncs by name, each with its docstring from ``documentation``."""
    return registered(fp_gauss_table, FP_GAUSS_SIZE, documentation)


def bounds(const double[::1] epsilon, const double[::1] sigma, const double[::1] span, double[::1] value,
           double[::1] lower, double[::1] upper, bint logarithmic):
    """The curve with its bounds, inputs of length 1 for all settings; how many are not plain, where ``lower`` is NaN."""
    cdef ptrdiff_t n = value.shape[0], others
    cdef const double *given[3]
    cdef double *out[3]
    cdef int fixed[3]
    if n == 0:
        return 0
    if lower.shape[0] != n or upper.shape[0] != n:
        raise ValueError("the results must be of one length")
    for k, array in enumerate((epsilon, sigma, span)):
        if array.shape[0] != n and array.shape[0] != 1:
            raise ValueError("the arguments must be of the length of the results, or of length 1")
    given[0], given[1], given[2] = &epsilon[0], &sigma[0], &span[0]
    fixed[0], fixed[1], fixed[2] = epsilon.shape[0] != n, sigma.shape[0] != n, span.shape[0] != n
    out[0], out[1], out[2] = &value[0], &lower[0], &upper[0]
    with nogil:
        others = (log_delta_bounds if logarithmic else delta_bounds)(given, fixed, out, n)
    return others
