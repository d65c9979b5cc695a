"""Memory views over the terms that sampling averages; the mathematics and the table of codes are in csrc/fp_terms.h."""

cdef extern from "fp_terms.h":
    ctypedef void (*fp_terms_call)(
        int, ptrdiff_t, const double *, const double *, const double *, double, double *) noexcept nogil
    fp_terms_call fp_terms_pick()
    double fp_ordered_sum(ptrdiff_t, const double *) noexcept nogil
    void fp_term_sums(fp_terms_call, int, ptrdiff_t, const double *, const double *, const double *, ptrdiff_t,
                      const double *, double *) noexcept nogil

NAMES = (
    "kl_forward", "kl_balanced", "kl_reversed", "kl_proposal", "jensen_shannon", "total_variation",
    "hockey_stick_forward", "hockey_stick_balanced", "hockey_stick_proposal", "renyi_proposal", "renyi_balanced",
    "renyi_small_proposal", "renyi_small_balanced", "excess", "difference",
)
CODES = {name: code for code, name in enumerate(NAMES)}
cdef fp_terms_call call = fp_terms_pick()


cdef int checked(str name, const double[::1] lp, const double[::1] lq, const double[::1] lg) except -1:
    cdef int code = CODES[name]
    if not (lq.shape[0] == lp.shape[0] and (lg is None or lg.shape[0] == lp.shape[0])
            and (lg is not None or not name.endswith("_proposal"))):
        raise ValueError("the log densities of a term must have one length each")
    return code


def terms(str name, const double[::1] lp, const double[::1] lq, const double[::1] lg, const double[::1] parameters,
          double[:, ::1] out):
    """out[j, i]: the term of this name at sample i with parameters[j] (eps or order; not used where there is none).

    lg may be None but for the names that end in _proposal.
    """
    cdef ptrdiff_t n = lp.shape[0], j
    cdef int code = checked(name, lp, lq, lg)
    if out.shape[0] != parameters.shape[0] or out.shape[1] != n:
        raise ValueError("the terms must have a row for each parameter and a column for each sample")
    if lg is None:
        lg = lp
    if n == 0 or parameters.shape[0] == 0:
        return
    with nogil:
        for j in range(parameters.shape[0]):
            call(code, n, &lp[0], &lq[0], &lg[0], parameters[j], &out[j, 0])


def term_sums(str name, const double[::1] lp, const double[::1] lq, const double[::1] lg,
              const double[::1] parameters, double[::1] sums):
    """sums[j]: the sum of the terms over the samples, in a fixed order, without storing them."""
    cdef int code = checked(name, lp, lq, lg)
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
