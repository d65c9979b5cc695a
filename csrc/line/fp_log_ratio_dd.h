/* log(p/q) of two mixtures in double-double arithmetic, from p - q.
 *
 * The components of p and of q with equal mean and sigma are merged first: v_i = w_i(p) - w_i(q) = hi + lo, exactly.
 * With x a node of the rule to 2^-106 h and a double S close to log q + log(2 pi) / 2,
 *     A = sum_i v_i / s_i e^(-t_i^2 / 2 - S),   B = the same sum over q,   log(p/q) = log1p(A / B).
 * Where |log(p/q)| < 1/2 the double value B = 1 is near enough: an error e of it changes A / B by the factor 1 + e
 * only. In units of 2^-106, by the bounds of common/fp_dd.h: t errs by 8, t^2 by 21, the exponent absolutely by 11.5
 * t^2 + 2 |S|, exp by 16, the weight and the product by 8, each of k additions by 3: (12 t^2 + 2.1 |S| + 25 + 3.1 k) of
 * a term.
 */
/* bounds: proved - errors in units of 2^-106, counted at the head, and of the quotient: docs/proofs/quadrature.md,
 * theorem 4.9 */
#ifndef FP_LOG_RATIO_DD_H
#define FP_LOG_RATIO_DD_H

#include "special/fp_dd_elementary.h"
#include "line/fp_integrand.h"

#define FP_NEAR 0.5
/* bound: none - where log(p/q) in doubles is taken */
#define FP_FARTHEST 12.0 /* beyond, log(p/q) in doubles is good enough */

typedef struct {
    int n;
    const double *hi, *lo, *m, *s;
} fp_component_terms;

typedef struct {
    fp_component_terms difference, q;
} fp_log_ratio_terms;

/* a point origin + x0 + h (d + tail), h a power of two */
typedef struct {
    double origin, x0, h, d, tail;
} fp_point;

/* sum of the terms at a point times e^-shift, and a bound of its error */
static inline fp_dd fp_terms_sum(const fp_component_terms *terms, const fp_point *at, double shift, double *error)
{
    const double up = 1.0 / at->h;
    fp_dd sum = {0.0, 0.0};
    double size = 0.0;
    for (int i = 0; i < terms->n; i++) {
        const double s = terms->s[i], rough = (((at->origin - terms->m[i]) + at->x0) + at->h * at->d) / s;
        if (!(-0.5 * rough * rough - shift - fp_log(s) >= -700.0))
            continue;
        const fp_dd standardised_gap = fp_dd_add_d(fp_two_sum(at->origin, -terms->m[i]), at->x0);
        const fp_dd offset =
            fp_dd_add(fp_dd_make(standardised_gap.hi * up, standardised_gap.lo * up), fp_dd_make(at->d, at->tail));
        const fp_dd t = fp_dd_div_d(offset, s * up), square = fp_dd_sqr(t);
        const fp_dd exponent = fp_dd_add_d(fp_dd_make(-0.5 * square.hi, -0.5 * square.lo), -shift);
        const fp_dd weight = fp_dd_div_d(fp_dd_make(terms->hi[i], terms->lo[i]), s);
        const fp_dd term = fp_dd_mul(weight, fp_dd_exp(exponent));
        sum = fp_dd_add(sum, term);
        size += fabs(term.hi) * (12.0 * square.hi + 2.1 * fabs(shift) + 25.0 + 3.1 * terms->n);
    }
    *error = size * 0x1p-106 + 1e-300 * terms->n;
    return sum;
}

/* log(p/q) at a point, where its double value l has size below FP_FARTHEST; dq bounds the error of lq and error
 * holds that of l, in which what moving x by 2^-53 d changes is contained */
static inline double fp_log_ratio_from_difference(const fp_log_ratio_terms *ratio, const fp_point *at, double l,
                                                  double lq, double dq, double *error)
{
    const double shift = lq + FP_LOG_SQRT_2PI, moved = 0x1p-50 * *error;
    double error_a, error_b;
    const fp_dd a = fp_terms_sum(&ratio->difference, at, shift, &error_a);
    if (fabs(l) < FP_NEAR) {
        const double better = fp_log1p(a.hi + a.lo);
        *error = 2.0 * error_a + fabs(better) * (2.0 * dq + 8.0 * FP_U) + moved;
        return better;
    }
    const fp_dd b = fp_terms_sum(&ratio->q, at, shift, &error_b), fraction = fp_dd_div(a, b);
    const double better = fp_dd_log1p(fraction).hi;
    /* d log1p(a / b) = (da - (a / b) db) / (a + b); a + b = e^l b, b = 1 nearly */
    *error = 2.0 * (error_a + fabs(fraction.hi) * (error_b + 0x1p-98)) * fp_exp(fp_max(0.0, -better))
             + 4.0 * FP_U * fabs(better) + moved;
    return better;
}

#endif
