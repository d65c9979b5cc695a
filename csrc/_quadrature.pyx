"""Runs the quadrature engine on contiguous arrays; the mathematics is in csrc/fp_quadrature.h."""

cdef extern from "fp_quadrature.h" nogil:
    ctypedef struct fp_law:
        double *w
    ctypedef struct fp_terms:
        int n
        const double *hi
        const double *lo
        const double *m
        const double *s
    ctypedef struct fp_near_ratio:
        fp_terms difference, q
    ctypedef struct fp_integral:
        int kind
        double b, reach, target
        fp_law p, q
        const fp_near_ratio *ratio
        long max_panels, panels, evaluations
        double scale, sum, rest, truncation, rounding
    void fp_quadrature_choose()
    int fp_law_build(fp_law *, int, const double *, const double *, const double *)
    int fp_integral_run(fp_integral *)
    void fp_integral_free(fp_integral *)
    int FP_KL, FP_JS, FP_ENTROPY, FP_RENYI, FP_RENYI_SMALL, FP_INFORMATION

fp_quadrature_choose()

KINDS = {
    "kl": FP_KL, "js": FP_JS, "entropy": FP_ENTROPY, "renyi": FP_RENYI, "renyi small": FP_RENYI_SMALL,
    "information": FP_INFORMATION,
}


cdef int _build(fp_law *law, tuple mixture) except? -2:
    cdef const double[::1] w, m, s
    if mixture is None:
        return fp_law_build(law, 0, NULL, NULL, NULL)
    w, m, s = mixture
    return fp_law_build(law, <int>w.shape[0], &w[0], &m[0], &s[0])


cdef int _terms(fp_terms *terms, tuple columns) except -1:
    cdef const double[::1] hi, lo, m, s
    hi, lo, m, s = columns
    terms.n = <int>hi.shape[0]
    terms.hi, terms.lo, terms.m, terms.s = &hi[0], &lo[0], &m[0], &s[0]
    return 0


def integral(int kind, tuple p, tuple q, tuple ratio, double b, double reach, double target, long max_panels):
    """(status, scale, sum, truncation, rounding, panels, evaluations) of one integral.

    ``p`` and ``q`` are (weights, means, sigmas) or None; ``ratio`` is None or, for p - q and for q, (hi, lo,
    means, sigmas).
    """
    cdef fp_integral work
    cdef fp_near_ratio merged
    cdef int status
    work.kind = kind
    work.b = b
    work.reach = reach
    work.target = target
    work.max_panels = max_panels
    work.ratio = NULL
    if ratio is not None:
        _terms(&merged.difference, ratio[0])
        _terms(&merged.q, ratio[1])
        work.ratio = &merged
    if _build(&work.p, p) or _build(&work.q, q):
        raise MemoryError
    with nogil:
        status = fp_integral_run(&work)
        fp_integral_free(&work)
    if status < 0:
        raise MemoryError
    return status, work.scale, work.sum + work.rest, work.truncation, work.rounding, work.panels, work.evaluations
