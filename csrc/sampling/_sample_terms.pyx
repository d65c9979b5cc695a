"""The terms that Monte Carlo averages; formulas and codes are in csrc/sampling/fp_sample_terms.h."""

cdef extern from "sampling/fp_sample_terms.h":
    ctypedef void (*fp_sample_terms_kernel)(int, ptrdiff_t, const double *, const double *, const double *, ptrdiff_t,
                                   const double *, double *, double *) noexcept nogil
    ctypedef void (*fp_ordered_sums_kernel)(ptrdiff_t, ptrdiff_t, const double *, double *) noexcept nogil
    ctypedef struct fp_sample_terms_kernels:
        fp_sample_terms_kernel terms
        fp_ordered_sums_kernel sums
    fp_sample_terms_kernels fp_sample_terms_select()

NAMES = (
    "kl_forward", "kl_balanced", "kl_reversed", "kl_proposal", "jensen_shannon", "total_variation",
    "hockey_stick_forward", "hockey_stick_balanced", "hockey_stick_proposal", "renyi_proposal", "renyi_balanced",
    "renyi_small_proposal", "renyi_small_balanced", "excess", "difference",
)
CODES = {name: code for code, name in enumerate(NAMES)}
cdef fp_sample_terms_kernels kernels = fp_sample_terms_select()


cdef int checked(str name, const double[::1] lp, const double[::1] lq, const double[::1] lg) except -1:
    cdef int code = CODES[name]
    if not (lq.shape[0] == lp.shape[0] and (lg is None or lg.shape[0] == lp.shape[0])
            and (lg is not None or not name.endswith("_proposal"))):
        raise ValueError("the log densities of a term must have one length each")
    return code


def terms(str name, const double[::1] lp, const double[::1] lq, const double[::1] lg, const double[::1] parameters,
          double[:, ::1] out):
    """out[j, i]: the term of this name at sample i with parameters[j], an epsilon or an order (not used by some names).

    ``lg`` may be None except for the names that end in _proposal.
    """
    cdef ptrdiff_t n = lp.shape[0], many = parameters.shape[0]
    cdef int code = checked(name, lp, lq, lg)
    if out.shape[0] != many or out.shape[1] != n:
        raise ValueError("the terms must have a row for each parameter and a column for each sample")
    if n == 0 or many == 0:
        return
    if lg is None:
        lg = lp
    with nogil:
        kernels.terms(code, n, &lp[0], &lq[0], &lg[0], many, &parameters[0], &out[0, 0], NULL)


def term_sums(str name, const double[::1] lp, const double[::1] lq, const double[::1] lg,
              const double[::1] parameters, double[::1] sums):
    """sums[j]: the sum of the terms over the samples, in a fixed order, without storing them."""
    cdef ptrdiff_t n = lp.shape[0], many = parameters.shape[0]
    cdef int code = checked(name, lp, lq, lg)
    if sums.shape[0] != many:
        raise ValueError("the sums must have one entry for each parameter")
    if lg is None:
        lg = lp
    if n == 0:
        sums[:] = 0.0
    elif many:
        with nogil:
            kernels.terms(code, n, &lp[0], &lq[0], &lg[0], many, &parameters[0], NULL, &sums[0])


def ordered_sums(const double[:, ::1] rows, double[::1] sums):
    """sums[j]: the sum of rows[j] in the order of ``term_sums``."""
    cdef ptrdiff_t n = rows.shape[1], many = rows.shape[0]
    if sums.shape[0] != many:
        raise ValueError("the sums must have one entry for each row")
    if n == 0:
        sums[:] = 0.0
    elif many:
        with nogil:
            kernels.sums(many, n, &rows[0, 0], &sums[0])
