/* Expected posteriors of a discrete secret behind Gaussian noise, and their Jensen-Shannon divergences from the prior.
 *
 * Notation, in units of the noise and from an origin near by: x_j the atoms, w_j their weights, q = sum w_j N(x_j, 1),
 * t the nodes of a rule with equal spacing, a the true values.  With tilt_j = x_j (t - x_j / 2) = log(N_j / N_0), one
 * row holds N_j / q - 1 = e^tilt_j / sum w e^tilt - 1.  From a row, spacing q (N_a / q - 1) times N_j / q - 1, summed
 * over rows, is e = A[a, j] / w_j - 1, A the expected posterior; where the nodes hold all of N_a but not all of q it is
 * spacing N_a in place of the former.  The divergence is half the sum of w_j times
 *
 *     (1 + e) log(1 + e) - (2 + e) log(1 + e/2) = (2 + e)/2 sum_k t^(2k) / (k (2k - 1)),   t = e / (2 + e).
 *
 * Sums run over rows in order and over atoms in eight lanes: the same bits on every instruction set.  m is a multiple
 * of FP_LANES, p one of FP_POINTS; atoms that fill up have weight 0.
 */
#ifndef FP_ABP_H
#define FP_ABP_H

#include <stddef.h>

#include "common/fp_lanes.h"
#include "special/fp_elementary.h"

#define FP_POINTS 4
#define FP_ROWS 512
/* bound: none - cap of 1 / w for weights so small that they contribute to no sum */
#define FP_LARGEST_RATIO 1e300

enum {
    FP_ABP_LOCAL,
    FP_ABP_GLOBAL,
    FP_ABP_SMALL_TILTS
}; /* SMALL_TILTS: all exponents are below 1/2 in size; then top is 0, and mean is reduced by 1 */

/* bound: proved - 1 / (k (2k - 1)), rounded; t^2 < 1/16 leaves 1e-19 of the first */
static const double fp_jensen_shannon_series[14] = {
    1.0, 1.0 / 6, 1.0 / 15, 1.0 / 28, 1.0 / 45, 1.0 / 66, 1.0 / 91, 1.0 / 120, 1.0 / 153, 1.0 / 190, 1.0 / 231,
    1.0 / 276, 1.0 / 325, 1.0 / 378,
};

FP_INLINE double fp_jensen_shannon_term(double given)
{
    const double e = given > -1.0 ? given : -1.0, t = e / (2.0 + e), square = t * t;
    const double series = (1.0 + 0.5 * e) * square * fp_polynomial(square, fp_jensen_shannon_series, 14);
    const double first = (1.0 + e) * fp_log1p(t), full = (e > -1.0 ? first : 0.0) - fp_log1p(0.5 * e);
    return square < 0.0625 ? series : full;
}

#define FP_LOOPS "posterior/fp_abp_loops.h"
#include "common/fp_variants.h"

typedef struct {
    void (*posterior_ratios)(ptrdiff_t, ptrdiff_t, const double *, const double *, const double *, int, double *,
                             double *, double *);
    void (*true_value)(ptrdiff_t, ptrdiff_t, const double *, const double *, int, double, const double *,
                       const double *, double *);
    void (*products)(ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, const double *, const double *, double *);
    void (*divergences)(ptrdiff_t, ptrdiff_t, const double *, const double *, const double *, double *, double *);
} fp_abp_kernels;

static inline fp_abp_kernels fp_abp_select(void)
{
    return (fp_abp_kernels){FP_SELECT(fp_abp_posterior_ratios), FP_SELECT(fp_abp_weights), FP_SELECT(fp_abp_products),
                           FP_SELECT(fp_abp_divergences)};
}

#endif
