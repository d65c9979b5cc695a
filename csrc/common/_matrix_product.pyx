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
    """``a @ b.T``, shape (n, m), of ``a`` (n, k) and ``b`` (m, k): each entry is summed from its first product to its
    last, so that the bits depend neither on threads nor on the machine."""
    cdef const double[:, ::1] x = np.ascontiguousarray(a, dtype=np.float64)
    cdef const double[:, ::1] y = np.ascontiguousarray(b, dtype=np.float64)
    cdef ptrdiff_t n = x.shape[0], m = y.shape[0], k = x.shape[1], step, begin, end
    if y.shape[1] != k:
        raise ValueError(f"rows must have one length; got {k} and {y.shape[1]}")
    sums = np.zeros((n, m))
    cdef double[:, ::1] out = sums
    if n == 0 or m == 0 or k == 0:
        return sums
    step = max(4, <ptrdiff_t> min(PRODUCTS / (<double> m * k), 1e9) // 4 * 4)
    begin = 0
    while begin < n:
        end = min(n, begin + step)
        with nogil:
            kernels(end - begin, m, k, &x[begin, 0], &y[0, 0], &out[begin, 0])
        PyErr_CheckSignals()
        begin = end
    return sums


def matrix_vector(a, b):
    """``a @ b``, shape (n,), of ``a`` (n, k) and ``b`` (k,), summed like ``product``."""
    return product(a, np.reshape(b, (1, -1)))[:, 0]
