"""Log wealth of bets on a mean, for confidence sequences; the mathematics is in csrc/sampling/fp_betting.h."""

cdef extern from "sampling/fp_betting.h":
    ctypedef void (*fp_betting_kernel)(
        ptrdiff_t, ptrdiff_t, const double *, int, const double *, double *) noexcept nogil
    fp_betting_kernel fp_betting_select()
    int FP_BETS

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
