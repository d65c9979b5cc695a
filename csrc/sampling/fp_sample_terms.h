/* The terms that sampling averages: functions of log densities at a sample, each written once.
 *
 * Notation: lp = log p, lq = log q at the sample, l = lp - lq; lg = log density of the law the sample was drawn from;
 * s(l) = 1 / (1 + e^-l); M = (P + Q) / 2, under which p / m = 2 s(l); kappa(x) = e^x - 1 - x; b = order - 1.
 *
 *   code                    drawn from   term                                     its mean
 *   KL                      P            l                                        KL(P||Q)
 *   KL_BALANCED             M            2 s(l) (l + e^-l - 1)                    KL(P||Q)
 *   KL_REVERSED             M            2 s(-l) (e^l - 1 - l)                    KL(Q||P)
 *   KL_PROPOSAL             g            p/g (l + e^-l - 1)                       KL(P||Q)
 *   JENSEN_SHANNON          M            t atanh t + log1p(-t^2)/2, t = tanh(l/2) JS(P, Q)
 *   TOTAL_VARIATION         M            |tanh(l/2)|                              TV(P, Q)
 *   HOCKEY                  P            (1 - e^(eps - l))^+                      H_{e^eps}(P||Q)
 *   HOCKEY_BALANCED         M            2 s(l) (1 - e^(eps - l))^+               the same
 *   HOCKEY_PROPOSAL         g            p/g (1 - e^(eps - l))^+                  the same
 *   RENYI                   g            p^order q^(1 - order) / g                integral of p^order q^(1 - order)
 *   RENYI_BALANCED          M            the same with g = m                      the same
 *   RENYI_SMALL             g            p/g (kappa(b l) + b kappa(-l))           the same, less 1
 *   RENYI_SMALL_BALANCED    M            the same with g = m                      the same
 *   EXCESS                  P            e^-l - 1                                 0 (when Q << P)
 *   DIFFERENCE              M            2 tanh(l/2)                              0
 *
 * A hockey-stick at many eps takes what does not depend on eps once.
 * Where p = 0 or q = 0 a term is its limit, infinite if need be; where both are 0 it is 0.  No term but KL, EXCESS and
 * DIFFERENCE changes sign, and every one keeps its relative accuracy as l goes to 0; NaN gives NaN.
 */
#ifndef FP_SAMPLE_TERMS_H
#define FP_SAMPLE_TERMS_H

#include <stddef.h>

#include "common/fp_lanes.h"
#include "line/fp_integrand.h"

enum {
    FP_TERM_KL, FP_TERM_KL_BALANCED, FP_TERM_KL_REVERSED, FP_TERM_KL_PROPOSAL, FP_TERM_JENSEN_SHANNON,
    FP_TERM_TOTAL_VARIATION, FP_TERM_HOCKEY, FP_TERM_HOCKEY_BALANCED, FP_TERM_HOCKEY_PROPOSAL, FP_TERM_RENYI,
    FP_TERM_RENYI_BALANCED, FP_TERM_RENYI_SMALL, FP_TERM_RENYI_SMALL_BALANCED, FP_TERM_EXCESS, FP_TERM_DIFFERENCE,
    FP_TERMS
};


/* An infinite l as a finite number, so that products with 0 vanish. */
FP_INLINE double fp_finite(double l)
{
    const double low = l < -0x1.fp1023 ? -0x1.fp1023 : l;
    return low > 0x1.fp1023 ? 0x1.fp1023 : low;
}

/* 2 s(l) */
FP_INLINE double fp_twice_logistic(double l)
{
    const double e = fp_exp(-fabs(l)), twice = l < 0.0 ? 2.0 * e : 2.0;
    return twice / (1.0 + e);
}

/* log(2 s(l)) */
FP_INLINE double fp_log_twice_logistic(double l)
{
    const double below = l < 0.0 ? l : 0.0;
    return below + (FP_LN2 - fp_log1p(fp_exp(-fabs(l))));
}

/* 2 s(l) (l + e^-l - 1) */
FP_INLINE double fp_kl_balanced(double l)
{
    const double a = fabs(l), e = fp_exp(-a), size = a < 800.0 ? a : 800.0, total = 1.0 + e;
    const double near = fp_kappa_series(-fp_clamp1(l)) * ((l < 0.0 ? e : 1.0) / total);
    const double right = (l + (e - 1.0)) / total, left = (1.0 - e * (1.0 + size)) / total;
    const double tail = l > 0.0 ? right : left;
    return 2.0 * (a < 1.0 ? near : tail);
}

/* t atanh t + log1p(-t^2)/2, t = tanh(l/2) */
FP_INLINE double fp_js_balanced(double l)
{
    const double size = fabs(l), a = size < 800.0 ? size : 800.0, e = fp_exp(-a);
    const double t = -fp_expm1(-a) / (1.0 + e), s = t < 0.8 ? t : 0.8;
    const double near = 0.5 * (t * a) + 0.5 * fp_log1p(-(s * s));
    const double tail = FP_LN2 - e * a / (1.0 + e) - fp_log1p(e);
    return a < 2.0 ? near : tail;
}

FP_INLINE double fp_half_tanh(double l) /* tanh(l/2) */
{
    const double e = fp_exp(-fabs(l)), t = -fp_expm1(-fabs(l)) / (1.0 + e);
    return l < 0.0 ? -t : t;
}

/* p/g (l + e^-l - 1) from lr = log p/g and lo = log q/g */
FP_INLINE double fp_kl_proposal(double l, double lr, double lo)
{
    const double r = fp_exp(lr), o = fp_exp(lo), near = r * fp_kappa_series(-fp_clamp1(l));
    const double right = r * (l + fp_expm1(-l)), left = r * (fp_finite(l) - 1.0) + o;
    const double all = l > 0.0 ? right : left, tail = l > 0x1.fp1023 ? l : all; /* q = 0 < p, however small p/g */
    return fabs(l) < 1.0 ? near : tail;
}

/* What a hockey-stick term needs of a sample, for any eps: exp_minus = e^-l, one_less_exp = 1 - e^-l, and the
 * weight. */
typedef struct {
    double l, exp_minus, one_less_exp, weight;
} fp_hockey_sample;

FP_INLINE fp_hockey_sample fp_hockey_sample_of(const int code, double lp, double lq, double lg)
{
    const int both_zero = lp == -INFINITY && lq == -INFINITY;
    fp_hockey_sample sample;
    sample.l = both_zero ? -INFINITY : lp - lq;
    sample.exp_minus = fp_exp(-sample.l);
    sample.one_less_exp = -fp_expm1(-sample.l);
    sample.weight = code == FP_TERM_HOCKEY ? 1.0
                   : code == FP_TERM_HOCKEY_BALANCED ? fp_twice_logistic(sample.l) : fp_exp(lp - lg);
    return sample;
}

/* weight (1 - e^(eps - l))^+, as exact as l is: for small eps from differences to 1, which are small there too, for eps
 * beyond the reach of powers from eps - l; power = e^eps, less = e^eps - 1, and kind is a constant at every call */
enum { FP_EPS_SMALL, FP_EPS_LARGE, FP_EPS_EXTREME };

FP_INLINE int fp_epsilon_range(double eps)
{
    return fabs(eps) < 0.5 ? FP_EPS_SMALL : fabs(eps) < 300.0 ? FP_EPS_LARGE : FP_EPS_EXTREME;
}

FP_INLINE double fp_hockey_term(const int kind, double l, double exp_minus, double one_less_exp, double weight,
                                double eps, double power, double less)
{
    const double part = kind == FP_EPS_SMALL ? power * one_less_exp - less
                        : kind == FP_EPS_LARGE ? 1.0 - power * exp_minus : -fp_expm1(eps - l);
    const double value = weight * part, copied = part < 0.0 ? 0.0 : value;
    return l <= eps ? 0.0 : copied;
}

/* p^order q^(1 - order) / g from lr = log p/g, b = order - 1 */
FP_INLINE double fp_renyi_term(double l, double lr, double b)
{
    return fp_exp(b * fp_finite(l) + lr);
}

/* p/g (kappa(b l) + b kappa(-l)), from lo = log q/g too; the same with p and q, order and 1 - order exchanged, which is
 * the side where the two parts do not cancel */
FP_INLINE double fp_renyi_small_term(double given, double lp, double lq, double order)
{
    const int other = order < 0.5;
    const double b = other ? -order : order - 1.0, l = other ? -given : given;
    const double lr = other ? lq : lp, lo = other ? lp : lq;
    const double r = fp_exp(lr), o = fp_exp(lo), y = b * fp_finite(l), shifted = fp_exp(lr + y);
    const double near = r * (fp_kappa_series(fp_clamp1(y)) + b * fp_kappa_series(-fp_clamp1(l)));
    const double up = shifted - r, down = r * fp_expm1(y), first = y > 1.0 ? up : down, tail = first + b * (o - r);
    const double size = fabs(l) > fabs(y) ? fabs(l) : fabs(y);
    return size < 1.0 ? near : tail;
}

/* code is a constant at every call; parameter: eps or order */
FP_INLINE double fp_term(const int code, double lp, double lq, double lg, double parameter)
{
    const double l = lp - lq, b = parameter - 1.0;
    double f;
    switch (code) {
    case FP_TERM_KL: f = lp == -INFINITY ? 0.0 : l; break;
    case FP_TERM_KL_BALANCED: f = fp_kl_balanced(l); break;
    case FP_TERM_KL_REVERSED: f = fp_kl_balanced(-l); break;
    case FP_TERM_KL_PROPOSAL: f = fp_kl_proposal(l, lp - lg, lq - lg); break;
    case FP_TERM_JENSEN_SHANNON: f = fp_js_balanced(l); break;
    case FP_TERM_TOTAL_VARIATION: f = fabs(fp_half_tanh(l)); break;
    case FP_TERM_RENYI: f = fp_renyi_term(l, lp - lg, b); break;
    case FP_TERM_RENYI_BALANCED: f = fp_renyi_term(l, fp_log_twice_logistic(l), b); break;
    case FP_TERM_RENYI_SMALL: f = fp_renyi_small_term(l, lp - lg, lq - lg, parameter); break;
    case FP_TERM_RENYI_SMALL_BALANCED:
        f = fp_renyi_small_term(l, fp_log_twice_logistic(l), fp_log_twice_logistic(-l), parameter);
        break;
    case FP_TERM_EXCESS: f = fp_expm1(-l); break;
    default: f = 2.0 * fp_half_tanh(l); break;
    }
    f = isnan(l) ? l : f;
    return lp == -INFINITY && lq == -INFINITY ? 0.0 : f;
}

/* Sums have a fixed order: eight lanes within FP_TERMS_BLOCK terms, then the partial sums one after another. */
#define FP_TERMS_BLOCK 512

#define FP_LOOPS "sampling/fp_sample_terms_loops.h"
#include "common/fp_variants.h"

/* out[j n + i]: the term of sample i with parameter j, unless out is NULL; sums[j]: their sums, unless sums is NULL */
typedef void (*fp_sample_terms_kernel)(int code, ptrdiff_t n, const double *lp, const double *lq, const double *lg,
                              ptrdiff_t many, const double *parameters, double *out, double *sums);

/* the same sums of rows of terms (rows, n) */
typedef void (*fp_ordered_sums_kernel)(ptrdiff_t rows, ptrdiff_t n, const double *f, double *sums);

typedef struct {
    fp_sample_terms_kernel terms;
    fp_ordered_sums_kernel sums;
} fp_sample_terms_kernels;

static inline fp_sample_terms_kernels fp_sample_terms_select(void)
{
    return (fp_sample_terms_kernels){FP_SELECT(fp_sample_terms), FP_SELECT(fp_ordered_sums)};
}

#endif
