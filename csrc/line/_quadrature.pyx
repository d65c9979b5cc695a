"""Integrals of divergences in one dimension; the mathematics is in csrc/line/fp_quadrature_solver.h."""

# bounds: none - the discretisation error aimed at

from libc.math cimport INFINITY

include "common/fp_interrupt.pxi"

cdef extern from "common/fp_stop_token.h" nogil:
    ctypedef struct fp_stop_token:
        int status
    fp_stop_token fp_stop_token_make(int (*)() noexcept nogil, double)
    int FP_INTERRUPTED, FP_EXPIRED

cdef extern from "common/fp_lanes.h" nogil:
    ctypedef struct fp_accumulator:
        pass
    double fp_accumulator_value(const fp_accumulator *)

cdef extern from "line/fp_quadrature_solver.h" nogil:
    ctypedef struct fp_gaussian_mixture:
        double *w
    ctypedef struct fp_component_terms:
        int n
        const double *hi
        const double *lo
        const double *m
        const double *s
    ctypedef struct fp_log_ratio_terms:
        fp_component_terms difference, q
    ctypedef struct fp_integral:
        int kind
        double b, reach, target
        fp_gaussian_mixture p, q
        const fp_log_ratio_terms *ratio
        long max_panels, max_work, panels, evaluations, work
        fp_stop_token stop
        double scale, truncation, rounding
        fp_accumulator sum
    void fp_quadrature_select()
    int fp_gaussian_mixture_build(fp_gaussian_mixture *, int, const double *, const double *, const double *)
    int fp_integral_start(fp_integral *)
    int fp_integral_run(fp_integral *)
    int fp_renyi_bounds(fp_integral *, double *, double *)
    void fp_integral_free(fp_integral *)
    int FP_KL, FP_JS, FP_ENTROPY, FP_RENYI, FP_RENYI_SMALL, FP_INFORMATION

fp_quadrature_select()

#: statuses of `integral`: the budget, or the time, was spent
BUDGET_SPENT, TIME_SPENT = 1, FP_EXPIRED

KINDS = {
    "kl": FP_KL, "js": FP_JS, "entropy": FP_ENTROPY, "renyi": FP_RENYI, "renyi small": FP_RENYI_SMALL,
    "information": FP_INFORMATION,
}


cdef int _build(fp_gaussian_mixture *law, tuple mixture) except? -2:
    cdef const double[::1] w, m, s
    if mixture is None:
        return fp_gaussian_mixture_build(law, 0, NULL, NULL, NULL)
    w, m, s = mixture
    return fp_gaussian_mixture_build(law, <int>w.shape[0], &w[0], &m[0], &s[0])


cdef int _terms(fp_component_terms *terms, tuple columns) except -1:
    cdef const double[::1] hi, lo, m, s
    hi, lo, m, s = columns
    terms.n = <int>hi.shape[0]
    terms.hi, terms.lo, terms.m, terms.s = &hi[0], &lo[0], &m[0], &s[0]
    return 0


def integral(int kind, tuple p, tuple q, tuple ratio, double b, double reach, double target, long max_panels,
             long max_work, double deadline=INFINITY):
    """(status, scale, sum, truncation, rounding, panels, evaluations) of one integral; status 0 means that it is done.

    Where the panels, the work or the time (``deadline``, by ``time.monotonic``) are spent, the truncation is large.
    ``p`` and ``q`` are (weights, means, sigmas) or None; ``ratio`` is None or a pair, for p - q and for q, of
    (hi, lo, means, sigmas).
    """
    cdef fp_integral work
    cdef fp_log_ratio_terms merged
    cdef int status
    work.kind = kind
    work.b = b
    work.reach = reach
    work.target = target
    work.max_panels = max_panels
    work.max_work = max_work
    work.stop = fp_stop_token_make(interrupted, deadline)
    work.ratio = NULL
    if ratio is not None:
        _terms(&merged.difference, ratio[0])
        _terms(&merged.q, ratio[1])
        work.ratio = &merged
    if _build(&work.p, p) or _build(&work.q, q):
        raise MemoryError
    try:
        with nogil:
            status = fp_integral_start(&work)
            if status == 0:
                status = fp_integral_run(&work)
        if status < 0 and status != FP_EXPIRED:
            finished(status, "components")
    finally:
        fp_integral_free(&work)
    return (status, work.scale, fp_accumulator_value(&work.sum), work.truncation, work.rounding, work.panels,
            work.evaluations)


def renyi_bounds(tuple p, tuple q, double b, double reach, double deadline=INFINITY):
    """(lower, upper, panels): bounds of the logarithm of the integral of p^(1 + b) q^(-b), from bounds on panels.

    They are wide where the ``deadline`` comes first.
    """
    cdef fp_integral work
    cdef int status
    cdef double lower = 0.0, upper = 0.0
    work.kind = FP_RENYI
    work.b = b
    work.reach = reach
    work.target = 1e-14
    work.max_panels = work.max_work = 0
    work.stop = fp_stop_token_make(interrupted, deadline)
    work.ratio = NULL
    if _build(&work.p, p) or _build(&work.q, q):
        raise MemoryError
    with nogil:
        status = fp_integral_start(&work)
        if status == 0:
            status = fp_renyi_bounds(&work, &lower, &upper)
        fp_integral_free(&work)
    if status < 0 or work.stop.status == FP_INTERRUPTED:
        finished(status if status < 0 else FP_INTERRUPTED, "components")
    return lower, upper, work.panels
