"""Sums of independent positive variables with atoms; the mathematics is in csrc/composition/fp_positive_sums.h."""

import numpy as np

cdef extern from "composition/fp_positive_sums.h" nogil:
    void fp_sums_in_cells(ptrdiff_t, const double *, const double *, ptrdiff_t, const double *, const double *, int,
                          ptrdiff_t, const double *, double *, double *)
    void fp_sum_excesses(ptrdiff_t, const double *, const double *, ptrdiff_t, const double *, const double *,
                         const double *, const double *, const double *, ptrdiff_t, const double *, double *, double *)

cdef extern from "composition/fp_convex_points.h":
    ptrdiff_t fp_convex_points(ptrdiff_t, long double, const long double *, long double, ptrdiff_t, const long double *,
                               ptrdiff_t *) noexcept nogil


def sums_in_cells(const double[::1] a, const double[::1] a_mass, const double[::1] b, const double[::1] b_mass,
                  bint same, const double[::1] edge, double[::1] mass, double[::1] moment):
    """Add to ``mass`` and ``moment`` of each cell those of all sums of an atom of a and an atom of b.

    If ``same``, b is a. Atoms and edges rise; the first edge is below every sum, the last may be infinite.
    """
    if (a_mass.shape[0] != a.shape[0] or b_mass.shape[0] != b.shape[0] or not a.shape[0] or not b.shape[0]
            or mass.shape[0] != moment.shape[0] or edge.shape[0] != mass.shape[0] + 1 or not mass.shape[0]
            or (same and a.shape[0] != b.shape[0])):
        raise ValueError("each law must have one mass an atom, and the cells one edge more than masses and moments")
    with nogil:
        fp_sums_in_cells(a.shape[0], &a[0], &a_mass[0], b.shape[0], &b[0], &b_mass[0], same, mass.shape[0], &edge[0],
                         &mass[0], &moment[0])


def sum_excesses(const double[::1] a, const double[::1] a_mass, const double[::1] b, const double[:, ::1] tails,
                 const double[::1] level, double[:, ::1] found):
    """E (a + b - level)^+ and E (level - a - b)^+ as the two rows of ``found``.

    The rows of ``tails`` are the mass above, the excess, the mass below and the deficit of each atom of b.
    """
    if (a_mass.shape[0] != a.shape[0] or not a.shape[0] or not b.shape[0] or tails.shape[0] != 4
            or tails.shape[1] != b.shape[0] or found.shape[0] != 2 or found.shape[1] != level.shape[0]):
        raise ValueError("each law must have one mass an atom, and the answer two rows with one entry a level")
    if level.shape[0]:
        with nogil:
            fp_sum_excesses(a.shape[0], &a[0], &a_mass[0], b.shape[0], &b[0], &tails[0, 0], &tails[1, 0], &tails[2, 0],
                            &tails[3, 0], level.shape[0], &level[0], &found[0, 0], &found[1, 0])


def convex_points(start, const long double[::1] heights, interval):
    """Indices of the heights, at the points e^(i interval), that the greatest convex function below them and below
    ``start`` at 0 has.
    """
    cdef ptrdiff_t n = heights.shape[0], count = 0
    cdef long double first = start, h = interval
    cdef const long double[::1] table = np.expm1(np.arange(4096) * np.longdouble(interval))
    kept = np.empty(n, dtype=np.intp)
    cdef ptrdiff_t[::1] out = kept
    if n:
        with nogil:
            count = fp_convex_points(n, first, &heights[0], h, table.shape[0], &table[0], &out[0])
    return kept[:count]
