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
#define FP_STICK_LOOP(code)                                                                                            \
    case code:                                                                                                         \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                            \
            const fp_stick stick = fp_stick_of(code, lp[i], lq[i], lg[i]);                                             \
            l[i] = stick.l;                                                                                            \
            fall[i] = stick.fall;                                                                                      \
            rise[i] = stick.rise;                                                                                      \
            weight[i] = stick.weight;                                                                                  \
        }                                                                                                              \
        break;

static void FP_NAME(fp_sticks)(int code, ptrdiff_t n, const double *restrict lp, const double *restrict lq,
                               const double *restrict lg, double *restrict l, double *restrict fall,
                               double *restrict rise, double *restrict weight)
{
    switch (code) {
        FP_STICK_LOOP(FP_TERM_HOCKEY)
        FP_STICK_LOOP(FP_TERM_HOCKEY_BALANCED)
        FP_STICK_LOOP(FP_TERM_HOCKEY_PROPOSAL)
    }
}

#undef FP_STICK_LOOP

#define FP_STICK_LOOP(kind)                                                                                            \
    case kind:                                                                                                         \
        for (ptrdiff_t i = 0; i < n; i++)                                                                              \
            out[i] = fp_stick_term(kind, l[i], fall[i], rise[i], weight[i], eps, power, less);                         \
        break;

static void FP_NAME(fp_stick_row)(ptrdiff_t n, const double *restrict l, const double *restrict fall,
                                  const double *restrict rise, const double *restrict weight, double eps,
                                  double *restrict out)
{
    const double power = fp_exp(eps), less = fp_expm1(eps);
    switch (fp_stick_kind(eps)) {
        FP_STICK_LOOP(FP_EPS_SMALL)
        FP_STICK_LOOP(FP_EPS_LARGE)
        FP_STICK_LOOP(FP_EPS_EXTREME)
    }
}

#undef FP_STICK_LOOP

static void FP_NAME(fp_terms)(int code, ptrdiff_t n, const double *lp, const double *lq, const double *lg,
                              ptrdiff_t many, const double *parameters, double *out, double *sums)
{
    const int stick = code == FP_TERM_HOCKEY || code == FP_TERM_HOCKEY_BALANCED || code == FP_TERM_HOCKEY_PROPOSAL;
    double l[FP_RUN], fall[FP_RUN], rise[FP_RUN], weight[FP_RUN], f[FP_RUN];
    for (ptrdiff_t j = 0; sums && j < many; j++)
        sums[j] = 0.0;
    for (ptrdiff_t i = 0; i < n; i += FP_RUN) {
        const ptrdiff_t run = n - i < FP_RUN ? n - i : FP_RUN;
        if (stick)
            FP_NAME(fp_sticks)(code, run, lp + i, lq + i, lg + i, l, fall, rise, weight);
        for (ptrdiff_t j = 0; j < many; j++) {
            double *to = out ? out + j * n + i : f;
            if (stick)
                FP_NAME(fp_stick_row)(run, l, fall, rise, weight, parameters[j], to);
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
        for (ptrdiff_t i = 0; i < n; i += FP_RUN)
            sums[j] += FP_NAME(fp_ordered_sum)(n - i < FP_RUN ? n - i : FP_RUN, f + j * n + i);
    }
}
