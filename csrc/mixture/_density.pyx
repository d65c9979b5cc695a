"""Log densities of Gaussian mixtures; the mathematics is in csrc/mixture/fp_density.h."""

import numpy as np

cdef extern from "mixture/fp_density_solver.h":
    ctypedef struct fp_density:
        int form
        ptrdiff_t k, d, row
        const double *constants
        const double *log_weights
        const double *means
        const double *scales
    ctypedef void (*fp_density_kernel)(
        const fp_density *, ptrdiff_t, const double *, double *, double *, double *) noexcept nogil
    fp_density_kernel fp_density_select()
    int fp_density_run(fp_density_kernel, fp_density *, ptrdiff_t, const double *, double *, double *) noexcept nogil
    const char *fp_isa_name()

ISA = (<bytes>fp_isa_name()).decode()
cdef fp_density_kernel call = fp_density_select()


cdef int run(int form, const double[::1] constants, const double[::1] log_weights, const double[:, ::1] means,
             const double[::1] scales, const double[:, ::1] x, double[::1] out, double[::1] info) except -1:
    cdef fp_density p
    cdef ptrdiff_t k = means.shape[0], d = means.shape[1], n = x.shape[1]
    cdef ptrdiff_t row = 1 if form == 0 else d if form == 1 else d * (d + 1) // 2
    cdef double *about = NULL
    cdef int status
    if not (0 <= form <= 2 and k > 0 and d > 0 and constants.shape[0] == k and x.shape[0] == d and out.shape[0] == n
            and scales.shape[0] in (row, k * row) and (info is None or info.shape[0] == n)
            and (log_weights is None or log_weights.shape[0] == k)):
        raise ValueError("the arrays of a mixture and of its samples must have matching shapes")
    if n == 0:
        return 0
    p.form, p.k, p.d = form, k, d
    p.row = row if scales.shape[0] == k * row else 0
    p.constants, p.means, p.scales = &constants[0], &means[0, 0], &scales[0]
    p.log_weights = NULL
    if log_weights is not None:
        p.log_weights = &log_weights[0]
    if info is not None:
        about = &info[0]
    with nogil:
        status = fp_density_run(call, &p, n, &x[0, 0], &out[0], about)
    if status:
        raise MemoryError("not enough memory for a block of samples; use fewer dimensions")
    return 0


def log_density(int form, const double[::1] constants, const double[:, ::1] means, scales, const double[:, ::1] x,
                double[::1] out):
    """out[i] = log sum_c exp(constants[c] - |z_c|^2 / 2) at sample i, x of shape (d, n).

    form 0: scales (k,) or (1,), inverse sigmas; 1: (k, d) or (1, d); 2: (k, d(d+1)/2) or one row of it, the inverse
    of the lower Cholesky factor packed by rows.
    """
    run(form, constants, None, means, scales.reshape(-1), x, out, None)


def log_density_information(int form, const double[::1] constants, const double[::1] log_weights,
                            const double[:, ::1] means, scales, const double[:, ::1] x, double[::1] out,
                            double[::1] info):
    """As ``log_density``, and info[i] = sum_c post_c log(post_c / w_c) >= 0, post the posterior of the component."""
    run(form, constants, log_weights, means, scales.reshape(-1), x, out, info)
