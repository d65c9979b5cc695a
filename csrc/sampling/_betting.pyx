"""Bets on means: csrc/sampling/fp_betting.h for confidence sequences, fp_ratio_bets.h for fixed numbers of samples."""

cdef extern from "sampling/fp_betting.h":
    ctypedef void (*fp_betting_kernel)(
        ptrdiff_t, ptrdiff_t, const double *, int, const double *, double *) noexcept nogil
    fp_betting_kernel fp_betting_select()
    int FP_BETS

cdef extern from "sampling/fp_ratio_bets.h":
    int fp_ratio_refused(ptrdiff_t, const double *, const double *, double, double) noexcept nogil

BETS = FP_BETS
cdef fp_betting_kernel kernels = fp_betting_select()


def add_log_wealth(const double[:, ::1] x, bint smaller, const double[::1] bets, double[:, ::1] sums):
    """Add the log wealth of each bet: sums[q, l] += sum over i of log(1 + bets[l] x[i, q]).

    If ``smaller`` the factor of a bet is 1 - x[i, q] + bets[l] x[i, q].
    """
    if bets.shape[0] != BETS or sums.shape[0] != x.shape[1] or sums.shape[1] != BETS:
        raise ValueError("the sums must have a row for each quantity and a column for each bet")
    if x.shape[0] and x.shape[1]:
        with nogil:
            kernels(x.shape[0], x.shape[1], &x[0, 0], smaller, &bets[0], &sums[0, 0])


def leading_refused(const double[::1] h, const double[::1] m, const double[::1] candidates, double error):
    """The number of candidates for the ratio of the means of h and m that are refused before the first that is not."""
    cdef ptrdiff_t n = h.shape[0], count = candidates.shape[0], j = 0
    if m.shape[0] != n:
        raise ValueError("h and m must have the same length")
    if n:
        with nogil:
            while j < count and fp_ratio_refused(n, &h[0], &m[0], candidates[j], error):
                j += 1
    return j
