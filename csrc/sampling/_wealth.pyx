"""Memory views over the products of bets; the mathematics is in csrc/sampling/fp_betting.h."""

cdef extern from "sampling/fp_betting.h":
    ctypedef void (*fp_wealth_call)(ptrdiff_t, ptrdiff_t, const double *, int, const double *, double *) noexcept nogil
    fp_wealth_call fp_wealth_pick()
    int FP_BETS

BETS = FP_BETS
cdef fp_wealth_call engine = fp_wealth_pick()


def log_products(const double[:, ::1] x, bint smaller, const double[::1] bets, double[:, ::1] sums):
    """sums[q, l] += the sum over i of log(1 + bets[l] x[i, q]), or log(1 - x[i, q] + bets[l] x[i, q]) if ``smaller``."""
    if bets.shape[0] != BETS or sums.shape[0] != x.shape[1] or sums.shape[1] != BETS:
        raise ValueError("the sums must have a row for each quantity and a column for each bet")
    if x.shape[0] and x.shape[1]:
        with nogil:
            engine(x.shape[0], x.shape[1], &x[0, 0], smaller, &bets[0], &sums[0, 0])
