/* log(p/q) of two mixtures that nearly agree, from p - q in double-double arithmetic.
 *
 * The components of p and of q with equal mean and sigma are merged first: v_i = w_i(p) - w_i(q) = hi + lo, exactly.
 * With x = x0 + d and S = log q + log(2 pi) / 2 in doubles,
 *     D = sum_i v_i / s_i e^(-t_i^2 / 2 - S) = (p - q) / q,   log(p/q) = log1p(D).
 * An error e of S changes D by the factor 1 + e only.  Each term is right to 2^-98 (1 + t_i^2 / 2 + |S|): the operations
 * of fp_dd.h on t, its square and the sum lose 2^-100 of each, and exp turns them into relative errors.
 */
#ifndef FP_NEAR_RATIO_H
#define FP_NEAR_RATIO_H

#include "fp_dd_elementary.h"
#include "fp_integrand.h"

typedef struct {
    int n;
    const double *hi, *lo, *m, *s;
} fp_near_ratio;

/* log(p/q) at x0 + d, where |log(p/q)| < 1; lq and its error bound dq; slope = (log p - log q)' */
static inline double fp_near_ratio_log(const fp_near_ratio *ratio, double x0, double d, double lq, double dq, double slope,
                                  double *error)
{
    const double shift = lq + 0.91893853320467274178;
    fp_dd sum = {0.0, 0.0};
    double size = 0.0;
    for (int i = 0; i < ratio->n; i++) {
        const double rough = ((x0 - ratio->m[i]) + d) / ratio->s[i];
        if (-0.5 * rough * rough - shift < -120.0 + fp_log(ratio->s[i]))
            continue;
        const fp_dd t = fp_dd_div_d(fp_dd_add_d(fp_two_sum(x0, -ratio->m[i]), d), ratio->s[i]), square = fp_dd_sqr(t);
        const fp_dd exponent = fp_dd_add_d(fp_dd_make(-0.5 * square.hi, -0.5 * square.lo), -shift);
        const fp_dd weight = fp_dd_div_d(fp_dd_make(ratio->hi[i], ratio->lo[i]), ratio->s[i]);
        const fp_dd term = fp_dd_mul(weight, fp_dd_exp(exponent));
        sum = fp_dd_add(sum, term);
        size += fabs(term.hi) * (4.0 + square.hi + fabs(shift) + 0.25 * i);
    }
    const double ratio_less_one = sum.hi + sum.lo, l = fp_log1p(ratio_less_one);
    *error = 4.0 * (size * 0x1p-98 + 1e-50) + fabs(l) * (2.0 * dq + 4.0 * FP_U) + FP_U * fabs(d) * (fabs(slope) + 1e-18);
    return l;
}

#endif
