"""Memory views over products of matrices in a fixed order; the mathematics is in csrc/common/fp_matrix_product.h."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals

cdef extern from "common/fp_matrix_product.h":
    ctypedef void fp_product_engine(ptrdiff_t, ptrdiff_t, ptrdiff_t, const double *, const double *, double *) noexcept nogil
    fp_product_engine *fp_product_pick()

cdef fp_product_engine *engine = fp_product_pick()
cdef double SHARE = 1e8  # products between two looks for Ctrl-C, some hundredths of a second


def product(a, b):
    """``a @ b.T``, shape (n, m), of ``a`` (n, k) and ``b`` (m, k): each entry is summed from its first product to its
    last, so that the bits depend neither on threads nor on the machine."""
    cdef const double[:, ::1] x = np.ascontiguousarray(a, dtype=np.float64)
    cdef const double[:, ::1] y = np.ascontiguousarray(b, dtype=np.float64)
    cdef ptrdiff_t n = x.shape[0], m = y.shape[0], k = x.shape[1], step, begin, end
    if y.shape[1] != k:
        raise ValueError(f"rows must have one length; got {k} and {y.shape[1]}")
    found = np.zeros((n, m))
    cdef double[:, ::1] out = found
    if n == 0 or m == 0 or k == 0:
        return found
    step = max(4, <ptrdiff_t> min(SHARE / (<double> m * k), 1e9) // 4 * 4)
    begin = 0
    while begin < n:
        end = min(n, begin + step)
        with nogil:
            engine(end - begin, m, k, &x[begin, 0], &y[0, 0], &out[begin, 0])
        PyErr_CheckSignals()
        begin = end
    return found


def times(a, b):
    """``a @ b``, shape (n,), of ``a`` (n, k) and ``b`` (k,), summed like ``product``."""
    return product(a, np.reshape(b, (1, -1)))[:, 0]
