/* Hockey-stick curves of rows of mixtures: the loop of the generalised ufuncs of fp_mixture_ufuncs.h.
 *
 * Rows are checked as GaussianMixture checks its arguments, and the gaps of sums of weights widen the bounds as
 * `with_mass_gaps` does (fastpriv/divergences/one_dimension/monotone_pieces.py): (1 + g) p - a (1 - h) q = (1 + g) (p -
 * a' q), so H changes by a factor 1 +- g at most and by a shift of epsilon by log((1 + g) / (1 - h)).  A row that is
 * invalid, or for which memory is short, is NaN.  A generalised ufunc cannot raise, so no signal is asked for. */
/* bounds: proved - outward roundings of factors and shifts, a few units of 2^-53 each */
#ifndef FP_MIXTURE_CURVES_SOLVER_H
#define FP_MIXTURE_CURVES_SOLVER_H

#include <limits.h>
#include <stdlib.h>

#include "line/fp_hockey_stick.h"

/* bound: none - as MAX_DOUBLE_WIDTH in monotone_pieces.py */
#define FP_MAX_DOUBLE_WIDTH 5e-13
/* bound: none - means and standard deviations are at most this in size, and the latter at least its inverse */
#define FP_MAX_MAGNITUDE 1e300
/* bound: none - how far sums of weights may be from 1 */
#define FP_MAX_MASS_GAP 1e-9

/* One mixture, with the components of positive weight; `gap` is 0 where the sum of weights rounds to 1. */
typedef struct {
    int n;
    double *weight, *mean, *sigma, gap;
} fp_mixture_row;

/* Copy one row of the three arrays; 0 where it is no mixture. */
static inline int fp_mixture_row_read(char *const *from, ptrdiff_t n, const ptrdiff_t *steps, fp_mixture_row *out)
{
    fp_dd sum = {-1.0, 0.0};
    out->n = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double w = *(const double *)(from[0] + i * steps[0]), m = *(const double *)(from[1] + i * steps[1]);
        const double s = *(const double *)(from[2] + i * steps[2]);
        if (!(w >= 0.0 && w <= 1.0 + FP_MAX_MASS_GAP && fabs(m) <= FP_MAX_MAGNITUDE && s >= 1.0 / FP_MAX_MAGNITUDE
              && s <= FP_MAX_MAGNITUDE))
            return 0;
        if (w > 0.0) {
            out->weight[out->n] = w;
            out->mean[out->n] = m;
            out->sigma[out->n++] = s;
            sum = fp_dd_add_d(sum, w);
        }
    }
    const double rounding = 0x1p-104 * (double)n, gap = fabs(sum.hi) * (1.0 + 0x1p-50) + (sum.hi != 0.0) * rounding;
    out->gap = gap > 0x1p-54 * (1.0 + 0x1p-49) + 2.0 * rounding ? gap : 0.0;
    return out->n > 0 && gap <= FP_MAX_MASS_GAP * (1.0 + 0x1p-40);
}

/* The bracket of the curve for weights with gaps, from the brackets at epsilon and at those that `fp_gap_shifts`
 * gives. */
static inline fp_bracket fp_bracket_with_gaps(fp_bracket here, const fp_bracket *above, const fp_bracket *below,
                                              double gap)
{
    const double out = 4.0 * 0x1p-53;
    double lower = below->lower * (1.0 - gap) * (1.0 - out), upper = above->upper * (1.0 + gap) * (1.0 + out);
    double log_lower = below->log_lower + log1p(-gap) * (1.0 + out);
    double log_upper = above->log_upper + log1p(gap) * (1.0 + out);
    log_lower -= log_lower > -INFINITY ? out * fabs(log_lower) : 0.0;
    log_upper += log_upper > -INFINITY ? out * fabs(log_upper) : 0.0;
    here.lower = lower < here.lower ? lower : here.lower;
    here.upper = upper > here.upper ? upper : here.upper;
    here.upper = here.upper < 1.0 ? here.upper : 1.0;
    here.log_lower = log_lower < here.log_lower ? log_lower : here.log_lower;
    here.log_upper = log_upper > here.log_upper ? log_upper : here.log_upper;
    here.log_upper = here.log_upper < 0.0 ? here.log_upper : 0.0;
    return here;
}

/* The epsilons, at most and at least, between which the curve of the true measures lies. */
static inline void fp_gap_shifts(double epsilon, double p_gap, double q_gap, double *most, double *least)
{
    const double out = 1.0 + 8.0 * 0x1p-53;
    const double down = (log1p(p_gap) - log1p(-q_gap)) * out, up = (log1p(q_gap) - log1p(-p_gap)) * out;
    *most = nextafter(epsilon - down, -INFINITY);
    *least = nextafter(epsilon + up, INFINITY);
}

/* Curve of one pair with gaps; `grid` and `rows` have three times as many entries as there are epsilons. Returns 0, or
 * -1 when memory is short. */
static int fp_curve_with_gaps(fp_hockey_stick_kernel kernel, const fp_mixture_row *p, const fp_mixture_row *q,
                              double *grid, ptrdiff_t count, int logs, fp_bracket *rows)
{
    long cost[6];
    const int gaps = p->gap > 0.0 || q->gap > 0.0;
    for (ptrdiff_t i = 0; i < count && gaps; i++)
        fp_gap_shifts(grid[i], p->gap, q->gap, &grid[count + i], &grid[2 * count + i]);
    const int status = kernel(p->n, p->weight, p->mean, p->sigma, q->n, q->weight, q->mean, q->sigma, grid,
                              gaps ? 3 * count : count, FP_MAX_DOUBLE_WIDTH, logs, NULL, INFINITY, rows, cost);
    for (ptrdiff_t i = 0; i < count && gaps && !status; i++)
        rows[i] = fp_bracket_with_gaps(rows[i], &rows[count + i], &rows[2 * count + i], p->gap);
    return status;
}

/* dimensions: loops, k, j, e; steps: of 10 operands, then of their 10 core dimensions */
static void fp_mixture_loop(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps,
                            fp_hockey_stick_kernel kernel, int logs)
{
    const ptrdiff_t k = dimensions[1], j = dimensions[2], e = dimensions[3], *core = steps + 10;
    double *storage = malloc((size_t)(3 * (k + j + e) + 1) * sizeof *storage), *grid = storage + 3 * (k + j);
    fp_bracket *rows = malloc((size_t)(3 * e + 1) * sizeof *rows);
    for (ptrdiff_t loop = 0; loop < dimensions[0]; loop++) {
        fp_mixture_row p = {0, storage, storage + k, storage + 2 * k, 0.0};
        fp_mixture_row q = {0, storage + 3 * k, storage + 3 * k + j, storage + 3 * k + 2 * j, 0.0};
        char *at[10];
        for (int a = 0; a < 10; a++)
            at[a] = args[a] + loop * steps[a];
        int valid = storage && rows && k <= INT_MAX && j <= INT_MAX && fp_mixture_row_read(at, k, core, &p)
                    && fp_mixture_row_read(at + 3, j, core + 3, &q);
        for (ptrdiff_t i = 0; i < e && valid; i++) { /* an invalid epsilon is computed as infinity */
            const double epsilon = *(const double *)(at[6] + i * core[6]);
            grid[i] = epsilon >= 0.0 ? epsilon : INFINITY;
        }
        valid = valid && !fp_curve_with_gaps(kernel, &p, &q, grid, e, logs, rows);
        for (ptrdiff_t i = 0; i < e; i++) {
            const int known = valid && *(const double *)(at[6] + i * core[6]) >= 0.0;
            const double *row = logs ? &rows[i].log_value : &rows[i].value;
            for (int a = 0; a < 3; a++)
                *(double *)(at[7 + a] + i * core[7 + a]) = known ? row[a] : (double)NAN;
        }
    }
    free(storage);
    free(rows);
}

#endif
