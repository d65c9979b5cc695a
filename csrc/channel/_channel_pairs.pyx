"""The largest hockey-stick divergence of all pairs of rows; see csrc/channel/fp_channel_pairs.h."""

import numpy as np

cdef extern from "channel/fp_channel_pairs.h":
    int FP_PAIR_OUTPUTS
    ctypedef struct fp_pair_levels:
        ptrdiff_t groups
        const float *factor
        const ptrdiff_t *first
        const double *excess
    ctypedef ptrdiff_t (*fp_channel_pairs_kernel)(
        ptrdiff_t, ptrdiff_t, ptrdiff_t, const double *, const double *, int, const fp_pair_levels *, float *,
        double *) noexcept nogil
    fp_channel_pairs_kernel fp_channel_pairs_select()
    size_t fp_pair_workspace(ptrdiff_t, ptrdiff_t, ptrdiff_t) nogil
    float fp_pair_factor(double) nogil

cdef fp_channel_pairs_kernel kernel = fp_channel_pairs_select()

MOST_OUTPUTS = FP_PAIR_OUTPUTS


def raise_to_pairs(const double[:, ::1] one, other, const double[::1] excess, const ptrdiff_t[::1] first,
                   double[::1] largest):
    """Raise ``largest`` to the largest hockey-stick divergences of a row of one group from a row of the other.

    Both directions count; ``other`` is None for the pairs within the first group. ``excess`` is e^epsilon - 1 of the levels
    in increasing order; group g of levels, those from ``first[g]`` on, has levels that are equal but for rounding.
    Returns the number of pairs that were evaluated in doubles at some group of levels.
    """
    cdef const double[:, ::1] rows = one if other is None else other
    cdef ptrdiff_t n = one.shape[0], others = rows.shape[0], m = one.shape[1], levels = excess.shape[0], g
    cdef ptrdiff_t groups = first.shape[0] - 1, evaluated
    if not (n > 0 and others > 0 and 0 < m <= FP_PAIR_OUTPUTS and rows.shape[1] == m and levels > 0 and groups > 0
            and largest.shape[0] == levels and first[0] == 0 and first[groups] == levels):
        raise ValueError("shapes must fit: rows (n, m) and (k, m), excess and largest (levels,), first (groups + 1,)")
    factors = np.empty(groups, dtype=np.float32)
    cdef float[::1] factor = factors
    for g in range(groups):
        if not 0 <= first[g] < first[g + 1]:
            raise ValueError("shapes must fit: first must increase")
        factor[g] = fp_pair_factor(excess[first[g]])
    space = np.empty(fp_pair_workspace(n, others, m) + 32, dtype=np.float32)
    cdef float[::1] workspace = space
    cdef fp_pair_levels z
    z.groups, z.factor, z.first, z.excess = groups, &factor[0], &first[0], &excess[0]
    with nogil:
        evaluated = kernel(n, others, m, &one[0, 0], &rows[0, 0], other is None, &z, &workspace[0], &largest[0])
    return evaluated
