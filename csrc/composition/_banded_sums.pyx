"""Sums of products along a chain of independent points; the mathematics is in csrc/composition/fp_banded_sums.h."""

cdef extern from "composition/fp_banded_sums.h" nogil:
    double fp_banded_sum(ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, const double *, const double *,
                         const double *, int, double *, double *, double *)


def banded_sum(const double[:, ::1] value, const double[::1] weight, ptrdiff_t bins, const double[::1] edge,
               bint above, double[:, ::1] mass, double[:, ::1] at, double[::1] work):
    """The law of the sum of ``bins`` terms for each state, in ``mass`` and ``at``; returns the mass that is left out.

    ``value`` has a row for each state and a column for each point. The sums of all states are 0 on entry.
    """
    cdef ptrdiff_t points = weight.shape[0], states = value.shape[0]
    cdef double lost
    if (not points or not states or value.shape[1] != points or (states > 1 and states % points) or edge.shape[0] < 3
            or mass.shape[0] != states or at.shape[0] != states or mass.shape[1] != edge.shape[0]
            or at.shape[1] != edge.shape[0] or work.shape[0] < 2 * states * edge.shape[0]):
        raise ValueError("value must have one row a state, and masses, places and work one entry an edge of each")
    with nogil:
        lost = fp_banded_sum(points, states, states // points, bins, edge.shape[0], &value[0, 0], &weight[0], &edge[0],
                             above, &mass[0, 0], &at[0, 0], &work[0])
    return lost
