/* A dense channel, block by block: statistics of its columns and rows, and hockey-stick divergences of its rows.
 *
 * Notation: Q (n, m) rows of probabilities, pi prior weights, q = sum pi_d Q_d, r_d = Q_d / q, t_d = r_d - 1,
 * psi(1 + t) = (1 + t) log(1 + t) - t >= 0, K_d = KL(Q_d || q) = sum over w of q psi(r_d).
 *
 * Columns (one pass): largest and smallest cell of the rows with pi > 0, and of the others apart; the largest pi Q with
 * its first row; delta = sum pi (Q - c) for any centre c, so that nearly equal rows keep the digits of q - c and with
 * them those of Q - q = (Q - c) - delta.  Eight rows are summed as a tree, their sums in two doubles: delta is right to
 * 12 u sum pi |Q - c|, u = 2^-53.
 *
 * Rows (second pass): K_d, sum of the row, sum over w of law t_d for one law of the release, and the posterior pi r_d.
 * psi takes one reduction of r: r = 2^k (1 + f), s = f/(2 + f), log r = k log 2 + 2 s + s T(s^2).  With k = 0 and f =
 * t, (1 + t) 2 s - t = t s exactly, so nothing cancels:  psi = t s + r s T;  else  psi = r (k log 2 + 2 s) - t + r s T.
 * Error of psi at most 20 u of itself, and what t brings.
 *
 * Hockey-sticks: with a = e^epsilon - 1, the term of P over R is (P - R) - a R where positive; it is as right as P - R.
 *
 * Sums run in eight lanes over tiles of FP_CHANNEL_TILE columns and in two doubles from tile to tile, whatever the
 * instruction set: its choice changes no bit.
 */
#ifndef FP_CHANNEL_BLOCKS_H
#define FP_CHANNEL_BLOCKS_H

#include <stddef.h>

#include "common/fp_lanes.h"
#include "special/fp_elementary.h"

#define FP_CHANNEL_TILE 512
#define FP_CHANNEL_PART                                                                                                \
    128 /* columns whose psi is computed in two steps: one long chain of operations would wait for itself */
#define FP_CHANNEL_ROWS 8  /* rows processed together */
#define FP_CHANNEL_LEVELS 4 /* epsilons processed together */

/* psi(r) = base + r s T, r = 1 + t, both given; r >= 0; returns base */
FP_INLINE double fp_channel_psi_base(double r, double t, double *s)
{
    const uint64_t exponent = fp_log_exponent(r);
    const double k = fp_double(exponent | 0x4330000000000000u) - (0x1p52 + 1024.0);
    /* 0 or all ones: a choice between t and m that the compiler cannot turn into a division for each of them */
    const uint64_t near = -(uint64_t)(exponent == 1024);
    const double m = fp_double(fp_bits(r) - ((exponent - 1024) << 52)) - 1.0;
    const double f = fp_double((fp_bits(t) & near) | (fp_bits(m) & ~near));
    *s = f / (2.0 + f);
    const double far = r * (k * (FP_LN2_HI + FP_LN2_LO) + 2.0 * *s) - t;
    return near ? t * *s : far;
}

FP_INLINE double fp_channel_psi_rest(double r, double s)
{
    const double z = s * s;
    return r * (s * (z * fp_polynomial(z, fp_log_tail, 7)));
}

/* Compensated sum, rounded once at the end. */
static inline double fp_accurate_sum(ptrdiff_t n, const double *x)
{
    fp_accumulator sum = {0.0, 0.0};
    for (ptrdiff_t i = 0; i < n; i++)
        fp_accumulator_add(&sum, x[i]);
    return isfinite(sum.high) ? fp_accumulator_value(&sum) : sum.high;
}

/* Column statistics of a block: arrays of m numbers each. */
typedef struct {
    double *top, *low, *best, *high, *rest; /* pi > 0; delta = high + rest */
    double *other_top, *other_low;          /* pi = 0 */
    ptrdiff_t *best_row;
} fp_channel_columns;

/* The output distribution as the second pass uses it, m numbers each; law may be NULL. */
typedef struct {
    const double *centre, *delta, *inverse, *weight, *law;
} fp_channel_output;

#define FP_LOOPS "channel/fp_channel_blocks_loops.h"
#include "common/fp_variants.h"

typedef struct {
    void (*columns)(ptrdiff_t n, ptrdiff_t m, const void *cells, int single, const double *prior, const double *centre,
                    ptrdiff_t first, fp_channel_columns *out);
    void (*join)(ptrdiff_t m, fp_channel_columns *all, const fp_channel_columns *one);
    void (*rows)(ptrdiff_t n, ptrdiff_t m, const void *cells, int single, const double *prior,
                 const fp_channel_output *output_law, double *divergence, double *sum, double *shift, void *posterior,
                 int posterior_single);
    void (*sticks)(ptrdiff_t n, ptrdiff_t m, const double *one, const double *other, const double *centre,
                   const double *delta, ptrdiff_t levels, const double *excess, double *forward, double *backward);
} fp_channel_blocks_kernels;

static inline fp_channel_blocks_kernels fp_channel_blocks_select(void)
{
    return (fp_channel_blocks_kernels){FP_SELECT(fp_channel_column_statistics), FP_SELECT(fp_channel_merge_columns),
                                       FP_SELECT(fp_channel_row_divergences), FP_SELECT(fp_channel_hockey_sticks)};
}

#endif
