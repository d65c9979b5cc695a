"""Statistics of the columns and rows of a dense channel, block by block; see csrc/channel/fp_channel_blocks.h.

Every shape is checked before a kernel runs, so that no kernel reads or writes beyond its arrays.
"""

import numpy as np

cdef extern from "channel/fp_channel_blocks.h":
    ctypedef struct fp_channel_columns:
        double *top
        double *low
        double *best
        double *high
        double *rest
        double *other_top
        double *other_low
        ptrdiff_t *best_row
    ctypedef struct fp_channel_output:
        const double *centre
        const double *delta
        const double *inverse
        const double *weight
        const double *law
    ctypedef struct fp_channel_blocks_kernels:
        void (*columns)(ptrdiff_t, ptrdiff_t, const void *, int, const double *, const double *, ptrdiff_t,
                        fp_channel_columns *) noexcept nogil
        void (*join)(ptrdiff_t, fp_channel_columns *, const fp_channel_columns *) noexcept nogil
        void (*rows)(ptrdiff_t, ptrdiff_t, const void *, int, const double *, const fp_channel_output *, double *,
                     double *, double *, void *, int) noexcept nogil
        void (*sticks)(ptrdiff_t, ptrdiff_t, const double *, const double *, const double *, const double *, ptrdiff_t,
                       const double *, double *, double *) noexcept nogil
    fp_channel_blocks_kernels fp_channel_blocks_select()
    double fp_accurate_sum(ptrdiff_t, const double *) noexcept nogil

cdef fp_channel_blocks_kernels kernels = fp_channel_blocks_select()
cdef ptrdiff_t FEW_CELLS = 2**12  # 10 microseconds, which releasing the interpreter's lock would cost too


cdef int _fit(bint good, str what) except -1:
    if not good:
        raise ValueError(f"shapes must fit: {what}")
    return 0


cdef (const void *, int) _cells(block) except *:
    """Address of a contiguous block of rows and whether its numbers are float32."""
    cdef const float[:, ::1] singles
    cdef const double[:, ::1] doubles
    if block.dtype == "float32":
        singles = block
        return <const void *> &singles[0, 0], 1
    doubles = block
    return <const void *> &doubles[0, 0], 0


cdef fp_channel_columns _columns(double[:, ::1] numbers, ptrdiff_t[::1] place):
    cdef fp_channel_columns out
    out.top, out.low, out.best, out.high = &numbers[0, 0], &numbers[1, 0], &numbers[2, 0], &numbers[3, 0]
    out.rest, out.other_top, out.other_low = &numbers[4, 0], &numbers[5, 0], &numbers[6, 0]
    out.best_row = &place[0]
    return out


def column_statistics(block, const double[::1] prior, const double[::1] centre, ptrdiff_t first):
    """Column statistics (7, m) of a block of rows, and for each column the row of the largest prior times cell.

    The statistics are the largest and the smallest cell under positive prior, that largest product, the sum of
    prior times (cell - centre) in two parts, and the largest and the smallest cell where the prior is zero. The first
    row of the block has the index ``first``.
    """
    cdef ptrdiff_t n = block.shape[0], m = block.shape[1]
    _fit(n > 0 and m > 0 and prior.shape[0] == n and centre.shape[0] == m, "block (n, m), prior (n,), centre (m,)")
    numbers, places = np.empty((7, m)), np.empty(m, dtype=np.intp)
    cdef fp_channel_columns out = _columns(numbers, places)
    cdef int single
    cdef const void *cells
    cells, single = _cells(block)
    if n * m <= FEW_CELLS:
        kernels.columns(n, m, cells, single, &prior[0], &centre[0], first, &out)
    else:
        with nogil:
            kernels.columns(n, m, cells, single, &prior[0], &centre[0], first, &out)
    return numbers, places


def merge_column_statistics(double[:, ::1] numbers, ptrdiff_t[::1] places, double[:, ::1] others, ptrdiff_t[::1] theirs):
    """Merge the column statistics of a later block into those of the earlier blocks, in place."""
    cdef ptrdiff_t m = numbers.shape[1]
    _fit(m > 0 and numbers.shape[0] == 7 and others.shape[0] == 7 and others.shape[1] == m and places.shape[0] == m
         and theirs.shape[0] == m, "numbers (7, m), places (m,), twice")
    cdef fp_channel_columns all = _columns(numbers, places), one = _columns(others, theirs)
    with nogil:
        kernels.join(m, &all, &one)


def row_statistics(block, const double[::1] prior, const double[::1] centre, const double[::1] delta, const double[::1] inverse,
         const double[::1] weight, const double[::1] law, posterior):
    """(3, n): KL divergence of each row from the output distribution, its sum, and the mean of r - 1 under ``law``.

    ``weight`` is the output distribution; where it is None the divergences are 0, and where ``law`` is None the means.
    ``posterior`` is None or receives prior times r, in float32 or float64.
    """
    cdef ptrdiff_t n = block.shape[0], m = block.shape[1]
    _fit(n > 0 and m > 0 and prior.shape[0] == n and centre.shape[0] == m and delta.shape[0] == m
         and inverse.shape[0] == m and (weight is None or weight.shape[0] == m) and (law is None or law.shape[0] == m)
         and (posterior is None or posterior.shape == block.shape), "block (n, m), prior (n,), laws (m,)")
    found = np.zeros((3, n))
    cdef double[:, ::1] out = found
    cdef fp_channel_output laws
    cdef int single, other = 0
    cdef const void *cells
    cdef const void *to = NULL
    laws.centre, laws.delta, laws.inverse, laws.weight, laws.law = &centre[0], &delta[0], &inverse[0], NULL, NULL
    if weight is not None:
        laws.weight = &weight[0]
    if law is not None:
        laws.law = &law[0]
    cells, single = _cells(block)
    if posterior is not None:
        _fit(posterior.flags.writeable, "a posterior that can be written to")
        to, other = _cells(posterior)
    cdef double *divergences = &out[0, 0] if laws.weight else NULL
    cdef double *means = &out[2, 0] if laws.law else NULL
    if n * m <= FEW_CELLS:
        kernels.rows(n, m, cells, single, &prior[0], &laws, divergences, &out[1, 0], means, <void *> to, other)
    else:
        with nogil:
            kernels.rows(n, m, cells, single, &prior[0], &laws, divergences, &out[1, 0], means, <void *> to, other)
    return found


def accurate_sum(values):
    """Compensated sum: its error is at most one rounding and 2^-104 n times the sum of the magnitudes."""
    cdef const double[::1] x = np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
    return fp_accurate_sum(x.shape[0], &x[0]) if x.shape[0] else 0.0


def accurate_sums(values):
    """The same of each row of the last axis."""
    rows = np.ascontiguousarray(values, dtype=np.float64)
    *shape, length = rows.shape
    sums = np.zeros(shape)
    cdef ptrdiff_t m = length, k
    cdef const double[::1] x = rows.reshape(-1)
    cdef double[::1] out = sums.reshape(-1)
    if x.shape[0]:
        with nogil:
            for k in range(out.shape[0]):
                out[k] = fp_accurate_sum(m, &x[k * m])
    return sums


def raise_hockey_sticks(const double[:, ::1] block, const double[::1] other, const double[::1] excess, double[::1] forward,
           double[::1] backward, const double[::1] centre=None, const double[::1] delta=None):
    """Raise ``forward`` to the hockey-stick divergences of the rows from ``other``, ``backward`` to the reverse ones.

    ``excess`` is e^epsilon - 1 at each level. With ``centre`` and ``delta``, ``other`` is their rounded sum, and
    differences are taken from the two parts.
    """
    cdef ptrdiff_t n = block.shape[0], m = block.shape[1], levels = excess.shape[0]
    _fit(n > 0 and m > 0 and levels > 0 and other.shape[0] == m and forward.shape[0] == levels
         and backward.shape[0] == levels and (centre is None) == (delta is None)
         and (centre is None or (centre.shape[0] == m and delta.shape[0] == m)), "block (n, m), other (m,), levels")
    cdef const double *c = NULL
    cdef const double *d = NULL
    if centre is not None:
        c, d = &centre[0], &delta[0]
    with nogil:
        kernels.sticks(n, m, &block[0, 0], &other[0], c, d, levels, &excess[0], &forward[0], &backward[0])
