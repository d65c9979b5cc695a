"""Capacity of finite channels; the mathematics is in csrc/channel/fp_capacity.h.

Every shape is checked before a kernel runs, so that no kernel reads or writes beyond its arrays.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals

cdef extern from "channel/fp_capacity.h":
    int FP_CAPACITY_SIZE
    double FP_NEGLIGIBLE_COLUMN, FP_CAPACITY_LEAST_PROBABILITY
    double fp_divergence_relative_error(double) nogil
    ctypedef struct fp_capacity_kernels:
        void (*rows)(ptrdiff_t, ptrdiff_t, const double *, double *) noexcept nogil
        void (*divergences)(ptrdiff_t, ptrdiff_t, const double *, const double *, double *, double *) noexcept nogil
        void (*small)(ptrdiff_t, int, int, const double *, const double *, double, int, double *, double *, double *,
                      double *) noexcept nogil
    fp_capacity_kernels fp_capacity_select()
    double FP_BINARY_RTOL
    void fp_capacity_set_equal_rows(ptrdiff_t, ptrdiff_t, const double *, double *, double *, double *, double *) nogil
    void fp_capacity_intersect_binary(const double *, const double *, double *) nogil

cdef fp_capacity_kernels kernels = fp_capacity_select()

cdef ptrdiff_t CELLS = 2**22  # in one piece of work, some 20 to 50 milliseconds

SMALL_SIZE, NEGLIGIBLE_COLUMN, LEAST_PROBABILITY = FP_CAPACITY_SIZE, FP_NEGLIGIBLE_COLUMN, FP_CAPACITY_LEAST_PROBABILITY


cdef int _fit(bint good, str what) except -1:
    if not good:
        raise ValueError(f"shapes must fit: {what}")
    return 0


def divergence_relative_error(double outputs):
    """Bound on the relative error of a KL divergence over this number of outputs."""
    return fp_divergence_relative_error(outputs)


def row_gaps(const double[:, ::1] channel):
    """|1 - sum| of every row, rounded up; -1 for a row with a negative cell, -2 for one with NaN."""
    gaps = np.empty(channel.shape[0])
    cdef double[::1] out = gaps
    cdef ptrdiff_t n = channel.shape[0], m = channel.shape[1], start, some, step = 1 + CELLS // max(m, 1)
    for start in range(0, n if m else 0, step):
        some = min(step, n - start)
        with nogil:
            kernels.rows(some, m, &channel[start, 0], &out[start])
        PyErr_CheckSignals()
    return gaps


def divergences(const double[:, ::1] channel, const double[::1] output, double[:, ::1] factor=None):
    """KL of every row from ``output``; fills all but the last column of ``factor`` with (row - output)/sqrt(output)."""
    cdef ptrdiff_t n = channel.shape[0], m = channel.shape[1]
    _fit(n > 0 and m > 0 and output.shape[0] == m, "channel (n, m), output (m,)")
    _fit(factor is None or (factor.shape[0] == n and factor.shape[1] == m + 1), "factor (n, m + 1)")
    values = np.empty(n)
    cdef double[::1] out = values
    cdef double *to = NULL
    cdef ptrdiff_t start, some, step = 1 + CELLS // m
    for start in range(0, n, step):
        some = min(step, n - start)
        if factor is not None:
            to = &factor[start, 0]
        with nogil:
            kernels.divergences(some, m, &channel[start, 0], &output[0], &out[start], to)
        PyErr_CheckSignals()
    return values


cdef void _solve(ptrdiff_t many, int n, int m, const double *Q, const double *gaps, double target, int most,
                 double *numbers, double *p, double *q, double *k) noexcept nogil:
    cdef ptrdiff_t i
    cdef bint binary = n == 2 and m == 2
    kernels.small(many, n, m, Q, gaps, min(target, FP_BINARY_RTOL) if binary else target, most, numbers, p, q, k)
    for i in range(many):
        fp_capacity_set_equal_rows(n, m, Q + i * n * m, numbers + 5 * i, p + i * n, q + i * m, k + i * n)
        if binary:
            fp_capacity_intersect_binary(Q + i * n * m, gaps + i * n, numbers + 5 * i)


def solve_small_channels(const double[:, :, ::1] channels, const double[:, ::1] gaps, double target, int most):
    """Solve channels of at most SMALL_SIZE inputs and outputs.

    Returns rows of value, lower, upper, width and iterations, then input laws, output laws and divergences.
    """
    cdef ptrdiff_t many = channels.shape[0], n = channels.shape[1], m = channels.shape[2]
    _fit(0 < n <= FP_CAPACITY_SIZE and 0 < m <= FP_CAPACITY_SIZE and gaps.shape[0] == many and gaps.shape[1] == n,
         "channels (many, n, m) with n and m from 1 to SMALL_SIZE, gaps (many, n)")
    numbers, outputs = np.empty((many, 5)), np.empty((many, m))
    inputs, values = np.empty((many, n)), np.empty((many, n))
    cdef double[:, ::1] a = numbers, b = inputs, c = outputs, d = values
    if many:
        with nogil:
            _solve(many, <int>n, <int>m, &channels[0, 0, 0], &gaps[0, 0], target, most, &a[0, 0], &b[0, 0], &c[0, 0],
                   &d[0, 0])
    return numbers, inputs, outputs, values


def solve_small_channel(const double[:, ::1] channel, double target, int most):
    """The same for one channel whose rows are known to be valid: value, lower, upper, width, iterations, and arrays."""
    cdef ptrdiff_t n = channel.shape[0], m = channel.shape[1]
    _fit(0 < n <= FP_CAPACITY_SIZE and 0 < m <= FP_CAPACITY_SIZE, "channel (n, m) with n and m from 1 to SMALL_SIZE")
    cdef double gaps[16]
    cdef double numbers[5]
    inputs, outputs, values = np.empty(n), np.empty(m), np.empty(n)
    cdef double[::1] b = inputs, c = outputs, d = values
    with nogil:
        kernels.rows(n, m, &channel[0, 0], gaps)
        _solve(1, <int>n, <int>m, &channel[0, 0], gaps, target, most, numbers, &b[0], &c[0], &d[0])
    return numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], inputs, outputs, values


def set_equal_rows(const double[:, ::1] channel, double[:, ::1] numbers, double[:, ::1] inputs, double[:, ::1] outputs,
                   double[:, ::1] values):
    """Set the capacity of one channel with equal rows to exactly 0, in what the solver of large channels returns."""
    cdef ptrdiff_t n = channel.shape[0], m = channel.shape[1]
    _fit(n > 0 and m > 0 and numbers.shape[0] == inputs.shape[0] == outputs.shape[0] == values.shape[0] == 1
         and numbers.shape[1] == 5 and inputs.shape[1] == n and outputs.shape[1] == m and values.shape[1] == n,
         "channel (n, m), numbers (1, 5), inputs (1, n), outputs (1, m), values (1, n)")
    with nogil:
        fp_capacity_set_equal_rows(n, m, &channel[0, 0], &numbers[0, 0], &inputs[0, 0], &outputs[0, 0], &values[0, 0])
