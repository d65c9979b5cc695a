"""Products of matrices, summed in a fixed order; the mathematics is in csrc/common/fp_matrix_product.h."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals

cdef extern from "common/fp_matrix_product.h":
    ctypedef void fp_product_kernel(
        ptrdiff_t, ptrdiff_t, ptrdiff_t, const double *, const double *, double *) noexcept nogil
    fp_product_kernel *fp_product_select()

cdef fp_product_kernel *kernels = fp_product_select()
cdef double PRODUCTS = 1e8  # between two checks for Ctrl-C: some hundredths of a second


def product(a, b):
    """``a @ b.T``, shape (n, m), of ``a`` (n, k) and ``b`` (m, k), or of each two of stacks (s, n, k) and (s, m, k): each
    entry is summed from its first product to its last, so that the bits depend neither on threads nor on the machine."""
    one = np.ndim(a) == 2
    cdef const double[:, :, ::1] x = np.ascontiguousarray(a[None] if one else a, dtype=np.float64)
    cdef const double[:, :, ::1] y = np.ascontiguousarray(b[None] if one else b, dtype=np.float64)
    cdef ptrdiff_t n = x.shape[1], m = y.shape[1], k = x.shape[2], step, begin, end, i
    if y.shape[2] != k or y.shape[0] != x.shape[0]:
        raise ValueError(f"rows must have one length; got {k} and {y.shape[2]}")
    sums = np.zeros((x.shape[0], n, m))
    cdef double[:, :, ::1] out = sums
    step = max(4, <ptrdiff_t> min(PRODUCTS / (1.0 + <double> m * k), 1e9) // 4 * 4)
    for i in range(x.shape[0] if n and m and k else 0):
        begin = 0
        while begin < n:
            end = min(n, begin + step)
            with nogil:
                kernels(end - begin, m, k, &x[i, begin, 0], &y[i, 0, 0], &out[i, begin, 0])
            PyErr_CheckSignals()
            begin = end
    return sums[0] if one else sums


def matrix_vector(a, b):
    """``a @ b``, shape (n,), of ``a`` (n, k) and ``b`` (k,), summed like ``product``."""
    return product(a, np.reshape(b, (1, -1)))[:, 0]
