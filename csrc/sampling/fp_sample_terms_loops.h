/* Loops of the terms over samples; the mathematics is in fp_sample_terms.h. */

#include "common/fp_lanes_loops.h"

#define FP_TERM_LOOP(code)                                                                                             \
    case code:                                                                                                         \
        for (ptrdiff_t i = 0; i < n; i++)                                                                              \
            out[i] = fp_term(code, lp[i], lq[i], lg[i], parameter);                                                    \
        break;

static void FP_NAME(fp_term_row)(int code, ptrdiff_t n, const double *restrict lp, const double *restrict lq,
                                 const double *restrict lg, double parameter, double *restrict out)
{
    switch (code) {
        FP_TERM_LOOP(FP_TERM_KL)
        FP_TERM_LOOP(FP_TERM_KL_BALANCED)
        FP_TERM_LOOP(FP_TERM_KL_REVERSED)
        FP_TERM_LOOP(FP_TERM_KL_PROPOSAL)
        FP_TERM_LOOP(FP_TERM_JENSEN_SHANNON)
        FP_TERM_LOOP(FP_TERM_TOTAL_VARIATION)
        FP_TERM_LOOP(FP_TERM_RENYI)
        FP_TERM_LOOP(FP_TERM_RENYI_BALANCED)
        FP_TERM_LOOP(FP_TERM_RENYI_SMALL)
        FP_TERM_LOOP(FP_TERM_RENYI_SMALL_BALANCED)
        FP_TERM_LOOP(FP_TERM_EXCESS)
        FP_TERM_LOOP(FP_TERM_DIFFERENCE)
    }
}

#undef FP_TERM_LOOP

/* the parts of hockey-sticks that do not depend on eps, one after another: l, fall, rise, weight */
#define FP_HOCKEY_LOOP(code)                                                                                           \
    case code:                                                                                                         \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                            \
            const fp_hockey_sample sample = fp_hockey_sample_of(code, lp[i], lq[i], lg[i]);                            \
            l[i] = sample.l;                                                                                           \
            exp_minus[i] = sample.exp_minus;                                                                           \
            one_less_exp[i] = sample.one_less_exp;                                                                     \
            weight[i] = sample.weight;                                                                                 \
        }                                                                                                              \
        break;

static void FP_NAME(fp_hockey_samples)(int code, ptrdiff_t n, const double *restrict lp, const double *restrict lq,
                               const double *restrict lg, double *restrict l, double *restrict exp_minus,
                               double *restrict one_less_exp, double *restrict weight)
{
    switch (code) {
        FP_HOCKEY_LOOP(FP_TERM_HOCKEY)
        FP_HOCKEY_LOOP(FP_TERM_HOCKEY_BALANCED)
        FP_HOCKEY_LOOP(FP_TERM_HOCKEY_PROPOSAL)
    }
}

#undef FP_HOCKEY_LOOP

#define FP_HOCKEY_LOOP(kind)                                                                                           \
    case kind:                                                                                                         \
        for (ptrdiff_t i = 0; i < n; i++)                                                                              \
            out[i] = fp_hockey_term(kind, l[i], exp_minus[i], one_less_exp[i], weight[i], eps, power, less);           \
        break;

static void FP_NAME(fp_hockey_row)(ptrdiff_t n, const double *restrict l, const double *restrict exp_minus,
                                  const double *restrict one_less_exp, const double *restrict weight, double eps,
                                  double *restrict out)
{
    const double power = fp_exp(eps), less = fp_expm1(eps);
    switch (fp_epsilon_range(eps)) {
        FP_HOCKEY_LOOP(FP_EPS_SMALL)
        FP_HOCKEY_LOOP(FP_EPS_LARGE)
        FP_HOCKEY_LOOP(FP_EPS_EXTREME)
    }
}

#undef FP_HOCKEY_LOOP

static void FP_NAME(fp_sample_terms)(int code, ptrdiff_t n, const double *lp, const double *lq, const double *lg,
                              ptrdiff_t many, const double *parameters, double *out, double *sums)
{
    const int sample = code == FP_TERM_HOCKEY || code == FP_TERM_HOCKEY_BALANCED || code == FP_TERM_HOCKEY_PROPOSAL;
    double l[FP_TERMS_BLOCK], exp_minus[FP_TERMS_BLOCK], one_less_exp[FP_TERMS_BLOCK], weight[FP_TERMS_BLOCK],
        f[FP_TERMS_BLOCK];
    for (ptrdiff_t j = 0; sums && j < many; j++)
        sums[j] = 0.0;
    for (ptrdiff_t i = 0; i < n; i += FP_TERMS_BLOCK) {
        const ptrdiff_t run = n - i < FP_TERMS_BLOCK ? n - i : FP_TERMS_BLOCK;
        if (sample)
            FP_NAME(fp_hockey_samples)(code, run, lp + i, lq + i, lg + i, l, exp_minus, one_less_exp, weight);
        for (ptrdiff_t j = 0; j < many; j++) {
            double *to = out ? out + j * n + i : f;
            if (sample)
                FP_NAME(fp_hockey_row)(run, l, exp_minus, one_less_exp, weight, parameters[j], to);
            else
                FP_NAME(fp_term_row)(code, run, lp + i, lq + i, lg + i, parameters[j], to);
            if (sums)
                sums[j] += FP_NAME(fp_ordered_sum)(run, to);
        }
    }
}

static void FP_NAME(fp_ordered_sums)(ptrdiff_t rows, ptrdiff_t n, const double *f, double *sums)
{
    for (ptrdiff_t j = 0; j < rows; j++) {
        sums[j] = 0.0;
        for (ptrdiff_t i = 0; i < n; i += FP_TERMS_BLOCK)
            sums[j] += FP_NAME(fp_ordered_sum)(n - i < FP_TERMS_BLOCK ? n - i : FP_TERMS_BLOCK, f + j * n + i);
    }
}
