/* Quantities of a channel under a prior, from the statistics of its columns and of its rows.
 *
 * Notation of fp_channel_blocks.h: Q (n, m), prior pi, q = c + delta, r = Q/q, K_d = KL(Q_d || q); D bounds
 * sum pi |Q - c| of a column; u = 2^-53. Columns may be scaled, x = Q e^-scale in the place of Q; the extremes of cells
 * are given as they are stored, as logarithms where the channel holds logarithms.
 *
 *     LDP                    max over columns of log(largest / smallest cell)
 *     xi_plus, xi_minus      max log r and -min log r
 *     information            sum pi_d K_d, and the largest K_d
 *     vulnerability          after: sum over columns of max pi Q; before: max pi; leakage: log(after / before)
 *     maximal leakage        log of the sum of the largest cells, from their differences to one row
 *
 * Errors. q is right to 16 u (D + q) and x - q to 16 u (D + |x - c|): fastpriv/notions/discrete/dense_quantities.py. The
 * excess (high - low)/low of a column is right to 2 u, so that its log1p, right to 2.51 ulps, is right to 8 u of itself.
 * A row sum that misses 1 by g moves a log ratio of two cells by at most 2.1 g, and a prior that misses 1 by g' moves
 * log q by 1.1 g'. K_d is right to 200 u K + 64 u sqrt(K S), S = sum D^2 / q: docs/proofs/finite_capacity.md, theorems
 * 7.13 and 7.14.
 */
#ifndef FP_CHANNEL_QUANTITIES_H
#define FP_CHANNEL_QUANTITIES_H

#include "channel/fp_capacity.h"
#include "common/fp_constants.h"
#include "channel/fp_channel_blocks.h"

enum {
    FP_LDP_EPSILON, FP_LDP_ON_SUPPORT, FP_XI_PLUS, FP_XI_MINUS, FP_CD_LMIP, FP_POINTWISE_LMIP, FP_BAYES_VULNERABILITY,
    FP_PRIOR_VULNERABILITY, FP_MIN_ENTROPY_LEAKAGE, FP_MAXIMAL_LEAKAGE, FP_CHANNEL_QUANTITIES
};

#define FP_WANTS(wanted, quantity) (((wanted) >> (quantity)) & 1)
#define FP_NEEDS_ROWS ((1 << FP_CD_LMIP) | (1 << FP_POINTWISE_LMIP))
/* what depends on the extreme cells as they are stored, and on no product that may underflow */
#define FP_NEEDS_EXTREMES ((1 << FP_LDP_EPSILON) | (1 << FP_LDP_ON_SUPPORT) | (1 << FP_MAXIMAL_LEAKAGE))

/* bound: none - columns in which q is smaller are scaled, well above the smallest normal double */
#define FP_TINY_COLUMN 1e-300
/* bound: none - smaller positive prior probabilities are refused, since the ratios posterior / prior overflow */
#define FP_LEAST_PRIOR 1e-300
#define FP_SAMPLE_ROWS 64 /* rows from which the first centre is taken */

/* What the quantities of columns are made of; arrays of m numbers, scaled but for the extremes. */
typedef struct {
    ptrdiff_t m;
    const double *top, *low, *best, *centre, *delta, *q, *spread;
    const double *extremes[4];     /* largest and smallest cell on the support, then off it */
    const double *log_scale;       /* of cells that are logarithms; else NULL */
    const double *factor;          /* by which scaled columns are multiplied; NULL for 1 */
    const double *guess_row;       /* row of the likeliest secret, scaled */
    const double *guess_cells;     /* the same as it is stored */
    double before;                 /* prior probability of the likeliest secret */
    double row_gap, prior_gap;     /* what sums miss 1 by */
    double log_error;              /* of logarithms of cells that are made from parameters */
    double scaling, row_sum_error; /* relative error of factors; error of the sum of a row, beside row_gap */
} fp_channel_totals;

/* What the quantities of rows are made of. */
typedef struct {
    ptrdiff_t n;
    const double *prior, *divergence;
    double total, energy, row_gap, prior_gap, relative_error; /* total: sum of the prior; energy: S */
} fp_channel_row_totals;

/* The first pass through a channel in one block: its arrays, in the workspace. */
typedef struct {
    fp_channel_columns columns;
    double *centre, *delta, *q, *spread, *term, *inverse, *guess; /* m numbers each */
    double *divergence, *sums;                                    /* n numbers each */
    ptrdiff_t likeliest;                                          /* the secret of the largest prior probability */
    double total;                                                 /* sum of the prior */
} fp_channel_pass;

/* Numbers in the workspace of one channel. */
static inline size_t fp_channel_workspace(ptrdiff_t n, ptrdiff_t m)
{
    return (size_t)(15 * m + 3 * n);
}

static inline void fp_set_bracket(double *out, double value, double lower, double upper)
{
    out[0] = value;
    out[1] = lower < value ? (lower > 0.0 ? lower : 0.0) : value;
    out[2] = upper > value ? upper : value;
}

/* q of a column, and its spread D, from the difference of its largest and smallest cell. */
FP_INLINE double fp_channel_column_mass(double centre, double delta, double span, double *spread)
{
    const double mass = centre + delta, q = mass > 0.0 ? mass : 0.0;
    *spread = span < q + centre ? span : q + centre;
    return q;
}

/* D^2 / q */
FP_INLINE double fp_channel_column_energy(double q, double spread)
{
    const double relative = q > 0.0 ? spread / q : 0.0;
    return q * (relative * relative);
}

#define FP_SIDE_BY_SIDE_CELLS 64 /* cells of a channel that is computed beside others: all stay in the cache */
_Static_assert(FP_SIDE_BY_SIDE_CELLS <= FP_SAMPLE_ROWS, "all rows of such a channel give the first centre");

#define FP_LOOPS "channel/fp_channel_quantities_loops.h"
#include "common/fp_variants.h"
#define FP_LOOPS "channel/fp_channels_side_by_side_loops.h"
#include "common/fp_variants.h"

typedef struct {
    void (*of_columns)(const fp_channel_totals *totals, int wanted, double *out);
    void (*of_rows)(const fp_channel_row_totals *totals, double *out);
    int (*of_channel)(ptrdiff_t n, ptrdiff_t m, const void *cells, int single, const double *prior, double row_gap,
                      double prior_gap, int wanted, double *workspace, double *out);
    void (*maximal_leakage)(ptrdiff_t n, ptrdiff_t m, const double *cells, double row_gap, double *workspace, double *out);
    void (*ldp_curve)(ptrdiff_t n, ptrdiff_t m, const void *cells, int single, const double *prior, ptrdiff_t levels,
                      const double *excess, double *workspace, double *out);
    int (*lip_curve)(ptrdiff_t n, ptrdiff_t m, const void *cells, int single, const double *prior, ptrdiff_t levels,
                     const double *excess, double *workspace, double *over, double *under, double *sums);
    int (*columns)(ptrdiff_t n, ptrdiff_t m, const void *cells, int single, const double *prior, double *workspace,
                   double *out, ptrdiff_t *map_secret);
    void (*side_by_side)(ptrdiff_t n, ptrdiff_t m, ptrdiff_t count, const char *cells, ptrdiff_t step, int single,
                         const ptrdiff_t *channel, const double *row_gap, const double *priors, const ptrdiff_t *prior,
                         const double *prior_gap, double *out, ptrdiff_t out_step, signed char *status);
} fp_channel_quantities_kernels;

static inline fp_channel_quantities_kernels fp_channel_quantities_select(void)
{
    return (fp_channel_quantities_kernels){FP_SELECT(fp_channel_column_quantities), FP_SELECT(fp_channel_row_quantities),
                                           FP_SELECT(fp_channel_quantities_of_cells),
                                           FP_SELECT(fp_channel_maximal_leakage_of_cells),
                                           FP_SELECT(fp_channel_ldp_curve), FP_SELECT(fp_channel_lip_curve),
                                           FP_SELECT(fp_channel_columns_of_cells),
                                           FP_SELECT(fp_channels_side_by_side)};
}

/* |1 - sum| of priors, rounded up; below 0 if an entry is NaN, negative, or positive and too small. */
static inline void fp_prior_gaps(fp_channel_row_gaps_kernel gaps, ptrdiff_t count, ptrdiff_t n, const double *priors,
                                 double *gap)
{
    gaps(count, n, priors, gap);
    for (ptrdiff_t k = 0; k < count; k++)
        for (ptrdiff_t d = 0; d < n && gap[k] >= 0.0; d++)
            if (priors[k * n + d] > 0.0 && priors[k * n + d] < FP_LEAST_PRIOR)
                gap[k] = -3.0;
}

static inline double fp_prior_gap(fp_channel_row_gaps_kernel gaps, ptrdiff_t n, const double *prior)
{
    double gap;
    fp_prior_gaps(gaps, 1, n, prior, &gap);
    return gap;
}

#endif
