"""Memory views over the terms that sampling averages; the mathematics and the table of codes are in csrc/fp_terms.h."""

cdef extern from "fp_terms.h":
    int FP_TERMS
    ctypedef void (*fp_terms_call)(
        int, ptrdiff_t, const double *, const double *, const double *, double, double *) noexcept nogil
    fp_terms_call fp_terms_pick()
    double fp_ordered_sum(ptrdiff_t, const double *) noexcept nogil
    void fp_term_sums(fp_terms_call, int, ptrdiff_t, const double *, const double *, const double *, ptrdiff_t,
                      const double *, double *) noexcept nogil

(KL, KL_BALANCED, KL_REVERSED, KL_PROPOSAL, JENSEN_SHANNON, TOTAL_VARIATION, HOCKEY, HOCKEY_BALANCED, HOCKEY_PROPOSAL,
 RENYI, RENYI_BALANCED, RENYI_SMALL, RENYI_SMALL_BALANCED, EXCESS, DIFFERENCE) = range(FP_TERMS)
NEEDS_PROPOSAL = frozenset((KL_PROPOSAL, HOCKEY_PROPOSAL, RENYI, RENYI_SMALL))
cdef fp_terms_call call = fp_terms_pick()


cdef int check(int code, const double[::1] lp, const double[::1] lq, const double[::1] lg) except -1:
    if not (0 <= code < FP_TERMS and lq.shape[0] == lp.shape[0] and (lg is None or lg.shape[0] == lp.shape[0])
            and (lg is not None or code not in NEEDS_PROPOSAL)):
        raise ValueError("the log densities of a term must have one length each")
    return 0


def terms(int code, const double[::1] lp, const double[::1] lq, const double[::1] lg, const double[::1] parameters,
          double[:, ::1] out):
    """out[j, i]: the term at sample i with parameters[j] (eps or order; one row, unused, where there is none)."""
    cdef ptrdiff_t n = lp.shape[0], j
    check(code, lp, lq, lg)
    if out.shape[0] != parameters.shape[0] or out.shape[1] != n:
        raise ValueError("the terms must have a row for each parameter and a column for each sample")
    if lg is None:
        lg = lp
    if n == 0 or parameters.shape[0] == 0:
        return
    with nogil:
        for j in range(parameters.shape[0]):
            call(code, n, &lp[0], &lq[0], &lg[0], parameters[j], &out[j, 0])


def term_sums(int code, const double[::1] lp, const double[::1] lq, const double[::1] lg,
              const double[::1] parameters, double[::1] sums):
    """sums[j]: the sum of the terms over the samples, in a fixed order, without storing them."""
    check(code, lp, lq, lg)
    if sums.shape[0] != parameters.shape[0]:
        raise ValueError("the sums must have one entry for each parameter")
    if lg is None:
        lg = lp
    if parameters.shape[0] == 0:
        return
    if lp.shape[0] == 0:
        sums[:] = 0.0
        return
    with nogil:
        fp_term_sums(call, code, lp.shape[0], &lp[0], &lq[0], &lg[0], parameters.shape[0], &parameters[0], &sums[0])


def ordered_sums(const double[:, ::1] rows, double[::1] sums):
    """sums[j]: the sum of rows[j] in the order of ``term_sums``."""
    cdef ptrdiff_t n = rows.shape[1], j
    if sums.shape[0] != rows.shape[0]:
        raise ValueError("the sums must have one entry for each row")
    with nogil:
        for j in range(rows.shape[0]):
            sums[j] = fp_ordered_sum(n, &rows[j, 0]) if n else 0.0
