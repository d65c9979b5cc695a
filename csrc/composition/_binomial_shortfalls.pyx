"""Weighted mean shortfalls of fair coins; the mathematics is in csrc/composition/fp_binomial_shortfalls.h."""

cdef extern from "composition/fp_binomial_shortfalls.h" nogil:
    void fp_shortfalls_at_shares(double, double, double, double, ptrdiff_t, const double *, const double *, double,
                                 double *, double *)
    void fp_shortfalls_of_mixture(double, double, double, double, double, double, double, double, double, double,
                                  double, double, double *, double *)
    void fp_binomial_cells(double, double, ptrdiff_t, const double *, const double *, double, double *, double *,
                           double *, double *)


def shortfalls_at_shares(const double[::1] n, const double[::1] start, const double[::1] scale,
                         const double[::1] warmup, const ptrdiff_t[::1] first, const ptrdiff_t[::1] last,
                         const double[::1] hi, const double[::1] lo, const double[:, ::1] weights,
                         double[:, :, ::1] found):
    """Add to ``found[w]`` the shortfalls and probabilities at the levels n (hi + lo), times each row of weights.

    Row i takes the levels first[i] to last[i] - 1; hi + lo rise and are at most 1/2.
    """
    cdef ptrdiff_t i, w, rows = n.shape[0], levels = hi.shape[0]
    if (start.shape[0] != rows or scale.shape[0] != rows or warmup.shape[0] != rows or first.shape[0] != rows
            or last.shape[0] != rows or lo.shape[0] != levels or weights.shape[1] != rows
            or found.shape[0] != weights.shape[0] or found.shape[1] != 2 or found.shape[2] != levels):
        raise ValueError("rows and levels must have one entry each in all arrays")
    with nogil:
        for i in range(rows):
            if first[i] < 0 or last[i] > levels or first[i] >= last[i]:
                continue
            for w in range(weights.shape[0]):
                fp_shortfalls_at_shares(n[i], start[i], scale[i], warmup[i], last[i] - first[i], &hi[first[i]],
                                        &lo[first[i]], weights[w, i], &found[w, 0, first[i]], &found[w, 1, first[i]])


def shortfalls_of_mixtures(const double[::1] n, const double[::1] start, const double[::1] scale,
                           const double[::1] warmup, const double[::1] hi, const double[::1] lo, double step_hi,
                           double step_lo, const double[::1] first, const double[::1] last, double trials,
                           double inverse_odds):
    """Sums over rows i and m = first[i] .. last[i] of shortfalls and probabilities at hi + lo - m step.

    m is binomial of trials - n[i] draws.
    """
    cdef ptrdiff_t i, rows = n.shape[0]
    cdef double shortfall = 0.0, probability = 0.0
    if (start.shape[0] != rows or scale.shape[0] != rows or warmup.shape[0] != rows or hi.shape[0] != rows
            or lo.shape[0] != rows or first.shape[0] != rows or last.shape[0] != rows):
        raise ValueError("rows must have one entry in all arrays")
    with nogil:
        for i in range(rows):
            fp_shortfalls_of_mixture(n[i], start[i], scale[i], warmup[i], hi[i], lo[i], step_hi, step_lo, first[i],
                                     last[i], trials - n[i], inverse_odds, &shortfall, &probability)
    return shortfall, probability


def binomial_cells(const double[::1] n, const double[::1] scale, const double[::1] hi, const double[::1] lo,
                   double error, double[:, ::1] found):
    """Add to the rows of ``found`` masses, shortfalls and doubtful masses of cells; the mass beyond them.

    The levels n (hi + lo) fall from n / 2.
    """
    cdef ptrdiff_t i, levels = hi.shape[0]
    cdef double beyond = 0.0
    if scale.shape[0] != n.shape[0] or lo.shape[0] != levels or levels < 2 or found.shape[0] != 3 or \
            found.shape[1] != levels - 1:
        raise ValueError("rows and levels must have one entry each in all arrays")
    with nogil:
        for i in range(n.shape[0]):
            fp_binomial_cells(n[i], scale[i], levels, &hi[0], &lo[0], error, &found[0, 0], &found[1, 0], &found[2, 0],
                              &beyond)
    return beyond
