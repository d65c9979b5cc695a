"""Quantities of channels under a prior; see csrc/channel/fp_channel_quantities.h.

Every shape is checked before a kernel runs, so that no kernel reads or writes beyond its arrays.
"""

import numpy as np

include "common/fp_ufunc.pxi"

from cpython.exc cimport PyErr_CheckSignals
from libc.stdlib cimport free, malloc

cdef extern from "channel/fp_channel_quantities.h":
    int FP_CHANNEL_QUANTITIES, FP_CD_LMIP, FP_NEEDS_ROWS, FP_SIDE_BY_SIDE_CELLS
    double FP_LEAST_PRIOR
    ctypedef struct fp_channel_totals:
        ptrdiff_t m
        const double *top
        const double *low
        const double *best
        const double *centre
        const double *delta
        const double *q
        const double *spread
        const double *extremes[4]
        const double *log_scale
        const double *factor
        const double *guess_row
        const double *guess_cells
        double before, row_gap, prior_gap, log_error, scaling, row_sum_error
    ctypedef struct fp_channel_row_totals:
        ptrdiff_t n
        const double *prior
        const double *divergence
        double total, energy, row_gap, prior_gap, relative_error
    ctypedef struct fp_channel_quantities_kernels:
        void (*of_columns)(const fp_channel_totals *, int, double *) noexcept nogil
        void (*of_rows)(const fp_channel_row_totals *, double *) noexcept nogil
        int (*of_channel)(ptrdiff_t, ptrdiff_t, const void *, int, const double *, double, double, int, double *,
                          double *) noexcept nogil
        void (*maximal_leakage)(ptrdiff_t, ptrdiff_t, const double *, double, double *, double *) noexcept nogil
        void (*ldp_curve)(ptrdiff_t, ptrdiff_t, const void *, int, const double *, ptrdiff_t, const double *, double *,
                          double *) noexcept nogil
        int (*lip_curve)(ptrdiff_t, ptrdiff_t, const void *, int, const double *, ptrdiff_t, const double *, double *,
                         double *, double *, double *) noexcept nogil
        int (*columns)(ptrdiff_t, ptrdiff_t, const void *, int, const double *, double *, double *,
                       ptrdiff_t *) noexcept nogil
        void (*side_by_side)(ptrdiff_t, ptrdiff_t, ptrdiff_t, const char *, ptrdiff_t, int, const ptrdiff_t *,
                             const double *, const double *, const ptrdiff_t *, const double *, double *, ptrdiff_t,
                             signed char *) noexcept nogil
    fp_channel_quantities_kernels fp_channel_quantities_select()
    size_t fp_channel_workspace(ptrdiff_t, ptrdiff_t) nogil
    ctypedef struct fp_capacity_kernels:
        void (*rows)(ptrdiff_t, ptrdiff_t, const double *, double *) noexcept nogil
    fp_capacity_kernels fp_capacity_select()
    ctypedef void (*fp_channel_row_gaps_kernel)(ptrdiff_t, ptrdiff_t, const double *, double *) noexcept nogil
    double fp_prior_gap(fp_channel_row_gaps_kernel, ptrdiff_t, const double *) nogil

cdef extern from "channel/fp_channel_ufuncs.h":
    fp_ufunc fp_channel_ufuncs[1]
    const int FP_CHANNEL_UFUNCS

cdef fp_channel_quantities_kernels kernels = fp_channel_quantities_select()
cdef fp_channel_row_gaps_kernel row_gaps = fp_capacity_select().rows

cdef ptrdiff_t FEW_CELLS = 2**12  # 15 microseconds, which releasing the interpreter's lock would cost too
cdef ptrdiff_t CELLS = 2**24  # in one piece of work, some 20 milliseconds

# The quantities in the order of the kernel: bit k of ``wanted`` asks for the k-th.
NAMES = ("ldp_epsilon", "ldp_on_support", "xi_plus", "xi_minus", "cd_lmip", "pointwise_lmip", "bayes_vulnerability",
         "prior_vulnerability", "min_entropy_leakage", "maximal_leakage")
assert len(NAMES) == FP_CHANNEL_QUANTITIES
LEAST_PRIOR = FP_LEAST_PRIOR


def ufuncs(dict documentation):
    """The generalised ufuncs by name, each with its docstring from ``documentation``."""
    return registered(fp_channel_ufuncs, FP_CHANNEL_UFUNCS, documentation)


cdef int _fit(bint good, str what) except -1:
    if not good:
        raise ValueError(f"shapes must fit: {what}")
    return 0


def prior_gap(const double[::1] prior):
    """|1 - sum| of a prior, rounded up; below 0 if an entry is NaN, negative, or positive and too small."""
    return fp_prior_gap(row_gaps, prior.shape[0], &prior[0]) if prior.shape[0] else -1.0


def prior_gaps(const double[:, ::1] priors):
    """The same of each row."""
    gaps = np.empty(priors.shape[0])
    cdef double[::1] out = gaps
    cdef ptrdiff_t k
    for k in range(priors.shape[0] if priors.shape[1] else 0):
        out[k] = fp_prior_gap(row_gaps, priors.shape[1], &priors[k, 0])
    return gaps


cdef struct channel_stack:
    const char *start  # the first cell; the array keeps the memory
    ptrdiff_t c, n, m, step  # channels, rows, columns, and bytes from one channel to the next
    int single


cdef channel_stack _stack(cells) except *:
    """Channels (c, n, m) of float64 or float32."""
    cdef const double[:, :, ::1] doubles
    cdef const float[:, :, ::1] singles
    cdef channel_stack out
    out.single = cells.dtype == "float32"
    if out.single:
        singles = cells
        out.c, out.n, out.m = singles.shape[0], singles.shape[1], singles.shape[2]
        out.start = <const char *> &singles[0, 0, 0]
    else:
        doubles = cells
        out.c, out.n, out.m = doubles.shape[0], doubles.shape[1], doubles.shape[2]
        out.start = <const char *> &doubles[0, 0, 0]
    out.step = out.n * out.m * (4 if out.single else 8)
    return out


def of_channel(cells, const double[::1] prior, double row_gap, double tolerance, int wanted):
    """The wanted quantities of one channel (n, m) of float64 or float32 under one prior, None for the uniform one.

    A list of value, lower and upper bound of every quantity, 0 for those that are not wanted; None for a prior whose sum
    misses 1 by more than ``tolerance`` or that is refused otherwise, and for a channel with columns to be scaled.
    """
    cdef channel_stack s = _stack(cells[None])
    _fit(s.n > 0 and s.m > 0 and (prior is None or prior.shape[0] == s.n), "cells (n, m), prior (n,)")
    cdef double out[3 * 10]
    cdef const double *weights = NULL
    if prior is not None:
        weights = &prior[0]
    cdef int status
    if s.n * s.m <= FEW_CELLS:
        status = _of_one(s.n, s.m, s.start, s.single, weights, row_gap, tolerance, wanted, out)
    else:
        with nogil:
            status = _of_one(s.n, s.m, s.start, s.single, weights, row_gap, tolerance, wanted, out)
    if status == 3:
        raise MemoryError("a channel must fit in memory together with 18 numbers for each row and column.")
    return None if status else [out[k] for k in range(30)]


def of_channels(cells, const double[:, ::1] priors, const double[::1] gaps, double tolerance, int wanted,
                const ptrdiff_t[::1] channel, const ptrdiff_t[::1] prior, double[:, :, ::1] out, signed char[::1] status):
    """``of_channel`` of channels (c, n, m) under priors (p, n): fills ``out`` (s, 10, 3) for s pairs of them.

    Pair k takes the channel ``channel[k]`` and the prior ``prior[k]``; priors are None for the uniform one. ``status`` is
    0 where the numbers are whole, 1 where a column has to be scaled, and 2 where the prior is refused.
    """
    cdef channel_stack s = _stack(cells)
    cdef ptrdiff_t k, count = channel.shape[0], p = 0
    if priors is not None:
        p = priors.shape[0]
    _fit(s.n > 0 and s.m > 0 and gaps.shape[0] == s.c and status.shape[0] == count and prior.shape[0] == count
         and out.shape[0] == count and out.shape[1] == FP_CHANNEL_QUANTITIES and out.shape[2] == 3
         and (priors is None or priors.shape[1] == s.n),
         "cells (c, n, m), priors (p, n), gaps (c,), pairs (s,), out (s, 10, 3), status (s,)")
    for k in range(count):
        _fit(0 <= channel[k] < s.c and (priors is None or 0 <= prior[k] < p), "indices of channels and priors")
    if count and not wanted & ~FP_NEEDS_ROWS and s.n * s.m <= FP_SIDE_BY_SIDE_CELLS:
        _of_rows(s, priors, gaps, tolerance, channel, prior, out, status)
        return
    cdef const double *weights = NULL
    cdef bint whole = True
    with nogil:
        for k in range(count):
            if priors is not None:
                weights = &priors[prior[k], 0]
            status[k] = _of_one(s.n, s.m, s.start + channel[k] * s.step, s.single, weights, gaps[channel[k]], tolerance,
                                wanted, &out[k, 0, 0])
            whole = whole and status[k] != 3
    if not whole:
        raise MemoryError("a channel must fit in memory together with 18 numbers for each row and column.")


cdef _of_rows(channel_stack s, const double[:, ::1] priors, const double[::1] gaps, double tolerance,
              const ptrdiff_t[::1] channel, const ptrdiff_t[::1] prior, double[:, :, ::1] out, signed char[::1] status):
    """``of_channels`` of small channels, for the quantities of rows."""
    cdef ptrdiff_t k, count = channel.shape[0]
    cdef double[::1] prior_gaps = np.zeros(count)
    cdef const double *weights = NULL
    out[:] = 0.0
    with nogil:
        if priors is not None:
            weights = &priors[0, 0]
            for k in range(count):
                prior_gaps[k] = fp_prior_gap(row_gaps, s.n, &priors[prior[k], 0])
        kernels.side_by_side(s.n, s.m, count, s.start, s.step, s.single, &channel[0], &gaps[0], weights, &prior[0],
                             &prior_gaps[0], &out[0, FP_CD_LMIP, 0], 3 * FP_CHANNEL_QUANTITIES, &status[0])
        for k in range(count):
            if not 0.0 <= prior_gaps[k] <= tolerance:
                status[k] = 2
                out[k] = 0.0


cdef int _of_one(ptrdiff_t n, ptrdiff_t m, const void *cells, int single, const double *prior, double row_gap,
                 double tolerance, int wanted, double *out) noexcept nogil:
    cdef double gap = 0.0
    cdef ptrdiff_t d
    for d in range(3 * FP_CHANNEL_QUANTITIES):
        out[d] = 0.0
    if prior != NULL:
        gap = fp_prior_gap(row_gaps, n, prior)
        if not (0.0 <= gap <= tolerance):
            return 2
    cdef double *workspace = <double *> malloc(fp_channel_workspace(n, m) * sizeof(double))
    if workspace == NULL:
        return 3
    cdef double *uniform = workspace + fp_channel_workspace(n, m) - n
    if prior == NULL:
        for d in range(n):
            uniform[d] = 1.0 / n
        prior = uniform
    cdef int status = kernels.of_channel(n, m, cells, single, prior, row_gap, gap, wanted, workspace, out)
    free(workspace)
    return status


def curves_of_channels(cells, const double[:, ::1] priors, const ptrdiff_t[::1] channel, const ptrdiff_t[::1] prior,
                       const double[:, ::1] excess, bint lip):
    """Largest hockey-stick divergences of channels (c, n, m) at the levels of each of s pairs, given by e^epsilon - 1.

    The divergences (2, s, levels) are, with ``lip``, those of a row over the distribution of the release and of the latter
    over a row; sums (s, 2) of the spread and of the largest less the smallest cell follow, and a status, 1 where a column
    has to be scaled. Otherwise the first are those of two rows, all of them or those on the support of a prior.
    """
    cdef channel_stack s = _stack(cells)
    cdef ptrdiff_t k, d, count = channel.shape[0], p = 0, levels = excess.shape[1]
    if priors is not None:
        p = priors.shape[0]
    _fit(s.n > 0 and s.m > 0 and prior.shape[0] == count and excess.shape[0] == count
         and (priors is None or priors.shape[1] == s.n), "cells (c, n, m), priors (p, n), pairs (s,), excess (s, levels)")
    for k in range(count):
        _fit(0 <= channel[k] < s.c and (priors is None or 0 <= prior[k] < p), "indices of channels and priors")
    out, sums, status = np.zeros((2, count, levels)), np.zeros((count, 2)), np.zeros(count, dtype=np.int8)
    cdef double[:, :, ::1] curve = out
    cdef double[:, ::1] totals = sums
    cdef signed char[::1] scaled = status
    if count == 0 or levels == 0:
        return out, sums, status
    space = np.empty(fp_channel_workspace(s.n, s.m) + s.n * s.m + s.n + 2 * levels)
    cdef double[::1] workspace = space
    cdef const double *weights = NULL
    cdef double *uniform = &workspace[fp_channel_workspace(s.n, s.m) + s.n * s.m]
    with nogil:
        for d in range(s.n):
            uniform[d] = 1.0 / s.n
        for k in range(count):
            if priors is not None:
                weights = &priors[prior[k], 0]
            elif lip:
                weights = uniform
            if lip:
                scaled[k] = kernels.lip_curve(s.n, s.m, s.start + channel[k] * s.step, s.single, weights, levels, &excess[k, 0],
                                              &workspace[0], &curve[0, k, 0], &curve[1, k, 0], &totals[k, 0])
            else:
                kernels.ldp_curve(s.n, s.m, s.start + channel[k] * s.step, s.single, weights, levels, &excess[k, 0],
                                  &workspace[0], &curve[0, k, 0])
    return out, sums, status


def columns_of_channels(cells, const double[:, ::1] priors, const ptrdiff_t[::1] channel, const ptrdiff_t[::1] prior):
    """Statistics of the columns of channels (c, n, m) under priors (p, n), for s pairs of them as in ``of_channels``.

    Centre, delta, q, spread and span (s, 5, m); the likeliest secret after each release (s, m), -1 where it never occurs;
    and a status (s,), 1 where a column has to be scaled and nothing is written.
    """
    cdef channel_stack s = _stack(cells)
    cdef ptrdiff_t k, d, count = channel.shape[0], p = 0
    if priors is not None:
        p = priors.shape[0]
    _fit(s.n > 0 and s.m > 0 and prior.shape[0] == count and (priors is None or priors.shape[1] == s.n),
         "cells (c, n, m), priors (p, n), pairs (s,)")
    for k in range(count):
        _fit(0 <= channel[k] < s.c and (priors is None or 0 <= prior[k] < p), "indices of channels and priors")
    numbers, secrets = np.zeros((count, 5, s.m)), np.full((count, s.m), -1, dtype=np.intp)
    statuses, space = np.zeros(count, dtype=np.int8), np.empty(fp_channel_workspace(s.n, s.m) + s.n)
    cdef double[:, :, ::1] out = numbers
    cdef ptrdiff_t[:, ::1] best = secrets
    cdef signed char[::1] status = statuses
    cdef double[::1] workspace = space
    cdef double *uniform = &workspace[fp_channel_workspace(s.n, s.m)]
    cdef const double *weights = uniform
    with nogil:
        for d in range(s.n):
            uniform[d] = 1.0 / s.n
        for k in range(count):
            if priors is not None:
                weights = &priors[prior[k], 0]
            status[k] = kernels.columns(s.n, s.m, s.start + channel[k] * s.step, s.single, weights, &workspace[0],
                                        &out[k, 0, 0], &best[k, 0])
    return numbers, secrets, statuses


def maximal_leakages(const double[:, :, ::1] channels, const double[::1] gaps):
    """Value, lower and upper bound of the maximal leakage of channels (s, n, m) with these gaps of their rows, (s, 3)."""
    cdef ptrdiff_t s = channels.shape[0], n = channels.shape[1], m = channels.shape[2], k, start, step
    _fit(n > 0 and m > 0 and gaps.shape[0] == s, "channels (s, n, m), gaps (s,)")
    step = 1 + CELLS // (n * m)
    found, workspace = np.empty((s, 3)), np.empty(m)
    cdef double[:, ::1] out = found
    cdef double[::1] largest = workspace
    for start in range(0, s, step):
        with nogil:
            for k in range(start, min(start + step, s)):
                kernels.maximal_leakage(n, m, &channels[k, 0, 0], gaps[k], &largest[0], &out[k, 0])
        PyErr_CheckSignals()
    return found


def of_columns(columns, extremes, log_scale, factor, const double[::1] guess_row, const double[::1] guess_cells,
               double before, gaps, int wanted):
    """The wanted quantities that depend on columns only, as an array (10, 3).

    ``columns`` are top, low, best, centre, delta, q and spread, ``extremes`` the largest and smallest cell on the support
    and off it as they are stored; ``gaps`` are row_gap, prior_gap, log_error, scaling and row_sum_error of the header.
    """
    cdef fp_channel_totals z
    cdef const double[:, ::1] c = np.array(columns, dtype=np.float64, ndmin=2)
    cdef const double[:, ::1] e = np.array(extremes, dtype=np.float64, ndmin=2)
    cdef const double[::1] s, f
    cdef int k
    z.m = c.shape[1]
    _fit(c.shape[0] == 7 and e.shape[0] == 4 and z.m > 0 and e.shape[1] == z.m and guess_row.shape[0] == z.m
         and guess_cells.shape[0] == z.m, "columns (7, m), extremes (4, m), rows (m,)")
    z.top, z.low, z.best, z.centre = &c[0, 0], &c[1, 0], &c[2, 0], &c[3, 0]
    z.delta, z.q, z.spread = &c[4, 0], &c[5, 0], &c[6, 0]
    for k in range(4):
        z.extremes[k] = &e[k, 0]
    z.log_scale, z.factor = NULL, NULL
    if log_scale is not None:
        s = log_scale
        _fit(s.shape[0] == z.m, "log_scale (m,)")
        z.log_scale = &s[0]
    if factor is not None:
        f = factor
        _fit(f.shape[0] == z.m, "factor (m,)")
        z.factor = &f[0]
    z.guess_row, z.guess_cells, z.before = &guess_row[0], &guess_cells[0], before
    z.row_gap, z.prior_gap, z.log_error, z.scaling, z.row_sum_error = gaps
    found = np.zeros((FP_CHANNEL_QUANTITIES, 3))
    cdef double[:, ::1] out = found
    with nogil:
        kernels.of_columns(&z, wanted, &out[0, 0])
    return found


def of_rows(const double[::1] prior, const double[::1] divergence, double total, double energy, double row_gap,
            double prior_gap, double relative_error):
    """Mutual information and the largest divergence of a row, as an array (2, 3)."""
    _fit(prior.shape[0] > 0 and divergence.shape[0] == prior.shape[0], "prior (n,), divergence (n,)")
    cdef fp_channel_row_totals z
    z.n, z.prior, z.divergence = prior.shape[0], &prior[0], &divergence[0]
    z.total, z.energy, z.row_gap, z.prior_gap, z.relative_error = total, energy, row_gap, prior_gap, relative_error
    found = np.zeros((2, 3))
    cdef double[:, ::1] out = found
    with nogil:
        kernels.of_rows(&z, &out[0, 0])
    return found
