/* One loop a term; the mathematics is in fp_terms.h. */

#define FP_TERM_LOOP(code)                                                                                             \
    case code:                                                                                                         \
        for (ptrdiff_t i = 0; i < n; i++)                                                                              \
            out[i] = fp_term(code, lp[i], lq[i], lg[i], parameter);                                                    \
        break;

static void FP_NAME(fp_terms)(int code, ptrdiff_t n, const double *restrict lp, const double *restrict lq,
                              const double *restrict lg, double parameter, double *restrict out)
{
    switch (code) {
        FP_TERM_LOOP(FP_TERM_KL)
        FP_TERM_LOOP(FP_TERM_KL_BALANCED)
        FP_TERM_LOOP(FP_TERM_KL_REVERSED)
        FP_TERM_LOOP(FP_TERM_KL_PROPOSAL)
        FP_TERM_LOOP(FP_TERM_JENSEN_SHANNON)
        FP_TERM_LOOP(FP_TERM_TOTAL_VARIATION)
        FP_TERM_LOOP(FP_TERM_HOCKEY)
        FP_TERM_LOOP(FP_TERM_HOCKEY_BALANCED)
        FP_TERM_LOOP(FP_TERM_HOCKEY_PROPOSAL)
        FP_TERM_LOOP(FP_TERM_RENYI)
        FP_TERM_LOOP(FP_TERM_RENYI_BALANCED)
        FP_TERM_LOOP(FP_TERM_RENYI_SMALL)
        FP_TERM_LOOP(FP_TERM_RENYI_SMALL_BALANCED)
        FP_TERM_LOOP(FP_TERM_EXCESS)
        FP_TERM_LOOP(FP_TERM_DIFFERENCE)
    }
}

#undef FP_TERM_LOOP
