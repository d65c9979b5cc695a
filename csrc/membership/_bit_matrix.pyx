"""Products of matrices of packed bits; the mathematics is in csrc/membership/fp_bit_matrix.h."""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free

cdef extern from "stdlib.h":
    void *aligned_alloc(size_t, size_t) nogil

cdef extern from "membership/fp_bit_matrix.h":
    enum:
        FP_BIT_LANES, FP_BIT_ROWS, FP_BIT_BYTES, FP_BIT_COLUMNS, FP_BIT_RELEASES
    ctypedef struct fp_bit_products_memory:
        pass
    ctypedef struct fp_bit_counts_memory:
        pass
    ctypedef void fp_bit_products_kernel(
        ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, const uint8_t *, ptrdiff_t, const double *, ptrdiff_t, ptrdiff_t,
        double *, ptrdiff_t, fp_bit_products_memory *) noexcept nogil
    ctypedef void fp_bit_counts_kernel(
        ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, const uint8_t *, const uint8_t *, ptrdiff_t, int64_t *, ptrdiff_t,
        fp_bit_counts_memory *) noexcept nogil
    ctypedef void fp_bit_gram_kernel(
        ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, const uint8_t *, int64_t *) noexcept nogil
    fp_bit_products_kernel *fp_bit_products_select()
    fp_bit_counts_kernel *fp_bit_counts_select()
    fp_bit_gram_kernel *fp_bit_gram_select()

cdef fp_bit_products_kernel *products_kernel = fp_bit_products_select()
cdef fp_bit_counts_kernel *counts_kernel = fp_bit_counts_select()
cdef fp_bit_gram_kernel *gram_kernel = fp_bit_gram_select()
cdef double LOOKUPS = 1e8  # between two checks for Ctrl-C: about a tenth of a second


cdef int _fit(bint good, str what) except -1:
    if not good:
        raise ValueError(f"shapes must fit: {what}")
    return 0


def add_products(const uint8_t[:, ::1] d, ptrdiff_t attributes, const double[:, :] x, double[:, ::1] out,
                 ptrdiff_t first, ptrdiff_t last, ptrdiff_t left, ptrdiff_t right):
    """Add rows ``first`` to ``last`` - 1, columns ``left`` to ``right`` - 1 of D x, D (n, attributes), to ``out``."""
    _fit((attributes + 7) // 8 == d.shape[1] and x.shape[0] == attributes and 0 <= first and last <= d.shape[0]
         and last <= out.shape[0] and 0 <= left <= right and right <= x.shape[1] and right <= out.shape[1],
         "d (n, bytes of the attributes), x (attributes, columns), out (n, columns), and the block in out")
    cdef ptrdiff_t k, at, rows, bytes, columns = right - left, stride = d.shape[1]
    cdef ptrdiff_t x_row = x.strides[0] // <ptrdiff_t> sizeof(double)
    cdef ptrdiff_t x_column = x.strides[1] // <ptrdiff_t> sizeof(double)
    cdef double block = <double> FP_BIT_ROWS * FP_BIT_BYTES * (columns // FP_BIT_LANES + 1)
    cdef ptrdiff_t step = FP_BIT_BYTES * max(1, <ptrdiff_t> (LOOKUPS / block))
    cdef fp_bit_products_memory *memory = <fp_bit_products_memory *> aligned_alloc(
        128, sizeof(fp_bit_products_memory))
    if memory == NULL:
        raise MemoryError("not enough memory for the tables of a product; use fewer threads")
    try:
        for k in range(first, last, FP_BIT_ROWS):
            rows = min(<ptrdiff_t> FP_BIT_ROWS, last - k)
            for at in range(0, stride, step):
                bytes = min(step, stride - at)
                with nogil:
                    products_kernel(rows, bytes, attributes - 8 * at, columns, &d[k, at], stride,
                                    &x[8 * at, left], x_row, x_column, &out[k, left], out.shape[1], memory)
                PyErr_CheckSignals()
    finally:
        free(memory)


def counts(const uint8_t[:, ::1] b, const uint8_t[:, ::1] d, ptrdiff_t attributes, int64_t[:, ::1] out,
           ptrdiff_t left, ptrdiff_t right):
    """Columns ``left`` to ``right`` - 1 of b D into ``out``; ``left`` is a multiple of 8."""
    _fit((attributes + 7) // 8 == d.shape[1] and (d.shape[0] + 7) // 8 == b.shape[1] and out.shape[0] == b.shape[0]
         and out.shape[1] == attributes and left % 8 == 0 and 0 <= left and right <= attributes,
         "b (releases, bytes of the people), d (n, bytes of the attributes), out (releases, attributes), columns in out")
    cdef ptrdiff_t r, c, n = b.shape[0], groups = b.shape[1]
    cdef fp_bit_counts_memory *memory = <fp_bit_counts_memory *> aligned_alloc(
        128, sizeof(fp_bit_counts_memory))
    if memory == NULL:
        raise MemoryError("not enough memory for the tables of counts; use fewer threads")
    try:
        for r in range(0, n, FP_BIT_RELEASES):
            for c in range(left, right, FP_BIT_COLUMNS):
                with nogil:
                    counts_kernel(min(<ptrdiff_t> FP_BIT_RELEASES, n - r), groups, d.shape[0],
                                  min(<ptrdiff_t> FP_BIT_COLUMNS, right - c), &b[r, 0], &d[0, c // 8], d.shape[1],
                                  &out[r, c], out.shape[1], memory)
                PyErr_CheckSignals()
    finally:
        free(memory)


def add_gram(const uint8_t[:, ::1] d, int64_t[:, ::1] out, ptrdiff_t first, ptrdiff_t last):
    """Add the part up to the diagonal of rows ``first`` to ``last`` - 1 of D D' to ``out``."""
    _fit(0 <= first <= last <= d.shape[0] and out.shape[0] == out.shape[1] == d.shape[0],
         "d (n, bytes of the attributes), out (n, n), and the rows in out")
    if first == last or d.shape[1] == 0:
        return
    cdef ptrdiff_t k, step = max(1, <ptrdiff_t> (8 * LOOKUPS / (<double> last * d.shape[1])))
    for k in range(first, last, step):
        with nogil:
            gram_kernel(k, min(k + step, last), d.shape[0], d.shape[1], &d[0, 0], &out[0, 0])
        PyErr_CheckSignals()
