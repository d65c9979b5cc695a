/* A Gaussian mixture on a panel x0 + [-h, h]: the components that matter, and where its density has no zero.
 *
 * Notation: component i has log density e_i(x) = c_i - t_i^2 / 2, t_i = (x - m_i) / s_i, c_i = log(w_i / s_i) -
 * log(2 pi) / 2; r_i = e^(e_i(x0)) / p(x0) are the responsibilities at the centre, d = x - x0.
 *
 * Let alpha = sum r_i e_i'(x0), beta = sum r_i / s_i^2 (any numbers would do). For complex |d| <= R
 *     p(x0 + d) = p(x0) e^(alpha d - beta d^2 / 2) (1 + eps(d)),
 *     |eps(d)| <= kappa = sum r_i e^(g_i) - 1,   g_i = |e_i'(x0) - alpha| R + |1 / s_i^2 - beta| R^2 / 2,
 * because |e^z - 1| <= e^|z| - 1. If kappa < 1 the density has no zero in the disk, log p is analytic there and differs
 * from log p(x0) + alpha d - beta d^2 / 2 by at most lambda = -log(1 - kappa).
 *
 * A component is dropped on a panel where its largest value is below e^-FP_DROP of another's smallest.
 */
#ifndef FP_MIXTURE_H
#define FP_MIXTURE_H

#include <stdlib.h>

#include "fp_integrand.h"

#define FP_DROP 90.0
#define FP_HALF_LOG_2PI 0.91893853320467274178

/* e^x for x <= 700, 0.8 ulp; e^-708 below -708 */
FP_INLINE double fp_exp_down(double x)
{
    double q, shifted;
    const double y = x > -708.0 ? x : -708.0, r = fp_exp_reduced(y, 0.0, &q, &shifted);
    return (1.0 + (r + q)) * fp_double((fp_bits(shifted) - fp_bits(FP_SHIFT) + 1023) << 52);
}

/* the whole mixture; ce bounds the error of c in units of u */
typedef struct {
    int n;
    double *w, *m, *is, *c, *ce, largest_mean, largest_sigma, smallest_sigma;
} fp_law;

/* one mixture on one panel; arrays padded to a multiple of eight with components of no weight */
typedef struct {
    int n, padded;
    const int *index;
    double *dm, *is, *c, *ce, *r, *log_r, *slope, *bend, *offset, *scratch;
    double top, l0, alpha, beta, kappa, lambda;
} fp_local;

static inline int fp_law_build(fp_law *law, int n, const double *w, const double *m, const double *s)
{
    double *block = malloc(sizeof(double) * 5 * (size_t)(n > 0 ? n : 1));
    law->n = n;
    law->w = block;
    law->largest_mean = law->largest_sigma = 0.0;
    law->smallest_sigma = INFINITY;
    if (!block)
        return -1;
    law->m = block + n, law->is = block + 2 * n, law->c = block + 3 * n, law->ce = block + 4 * n;
    for (int i = 0; i < n; i++) {
        const double log_w = fp_log(w[i]), log_s = fp_log(s[i]);
        law->w[i] = w[i];
        law->m[i] = m[i];
        law->is[i] = 1.0 / s[i];
        law->c[i] = (log_w - log_s) - FP_HALF_LOG_2PI;
        law->ce[i] = 2.0 + 3.0 * (fabs(log_w) + fabs(log_s)) + fabs(law->c[i]);
        law->largest_mean = fp_max(law->largest_mean, fabs(m[i]));
        law->largest_sigma = fp_max(law->largest_sigma, s[i]);
        law->smallest_sigma = s[i] < law->smallest_sigma ? s[i] : law->smallest_sigma;
    }
    return 0;
}

static inline int fp_local_build(fp_local *side, int n)
{
    const size_t padded = ((size_t)n + 7) / 8 * 8;
    double *block = malloc(sizeof(double) * 17 * (padded ? padded : 1));
    memset(side, 0, sizeof *side);
    side->dm = block;
    if (!block)
        return -1;
    side->is = block + padded, side->c = block + 2 * padded, side->ce = block + 3 * padded;
    side->r = block + 4 * padded;
    side->log_r = block + 5 * padded, side->slope = block + 6 * padded, side->bend = block + 7 * padded;
    side->offset = block + 8 * padded, side->scratch = block + 9 * padded;
    return 0;
}

/* the components listed in index, relative to the centre x0; x0 - m_i is formed first so that a far origin costs
 * nothing */
static inline void fp_local_gather(fp_local *side, const fp_law *law, const int *index, int n, double x0)
{
    side->n = n;
    side->padded = (n + 7) / 8 * 8;
    side->index = index;
    side->top = -INFINITY;
    for (int j = 0; j < side->padded; j++) {
        const int i = j < n ? index[j] : index[0];
        side->dm[j] = x0 - law->m[i];
        side->is[j] = law->is[i];
        side->c[j] = j < n ? law->c[i] : -1e300;
        side->ce[j] = j < n ? law->ce[i] : 0.0;
        const double t = side->dm[j] * side->is[j], e = side->c[j] - 0.5 * t * t;
        side->log_r[j] = e;
        side->top = e > side->top ? e : side->top;
    }
}

/* keeps of `from` what matters on x0 + [-h, h]; upper and lower bound log p there; lost gathers the dropped weight */
static inline int fp_law_select(const fp_law *law, const int *from, int n, double x0, double h, int *kept,
                                double *upper, double *lower, double *lost)
{
    double floor = -INFINITY, top = -INFINITY;
    for (int j = 0; j < n; j++) {
        const int i = from[j];
        const double far = (fabs(x0 - law->m[i]) + h) * law->is[i], e = law->c[i] - 0.5 * far * far;
        floor = e > floor ? e : floor;
    }
    int count = 0;
    for (int j = 0; j < n; j++) {
        const int i = from[j];
        double near = fabs(x0 - law->m[i]) - h;
        near = near > 0.0 ? near * law->is[i] : 0.0;
        const double e = law->c[i] - 0.5 * near * near;
        if (e >= floor - FP_DROP) {
            kept[count++] = i;
            top = e > top ? e : top;
        } else {
            *lost += law->w[i];
        }
    }
    *upper = top + fp_log((double)count) + 1e-9 * (1.0 + fabs(top));
    *lower = floor - 1e-9 * (1.0 + fabs(floor));
    return count;
}

#endif
