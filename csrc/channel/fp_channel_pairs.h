/* The largest hockey-stick divergence of all ordered pairs of rows, by a screen in single precision.
 *
 * Notation: rows P and R of m probabilities, c = e^epsilon, H = sum (P - c R)^+; v = 2^-24.
 *
 * The screen. up is P rounded up to single precision, down is R rounded down, and c' is c (1 - 2^-22) rounded down, or
 * the largest single where c is beyond. The product of c' and down, rounded to nearest, is below c down, so that every
 * term t = (up - c' down)^+ of singles is at least (P - c R)^+ (1 - v), but for products that underflow, by 2^-149 each.
 * A sum of m nonnegative singles in any order is too small by at most a factor 1 - m v. Hence
 *
 *     H  <=  (1 + (m + 8) 2^-23) sum of t + m 2^-148.
 *
 * It also bounds what the kernel of doubles returns for H: its roundings move P and c R by at most 8 2^-53 of them, which
 * the difference of c and c' covers where c R > P / 2, and the factor above elsewhere. A pair whose screen is at most
 * the largest value so far is left out, and changes no bit of the maximum.
 *
 * Envelopes. The largest up and the smallest down of each column of a group of rows make the same sum for the group: it
 * bounds all pairs of two groups. Levels that differ by a few roundings share a screen, that of the smallest.
 */
#ifndef FP_CHANNEL_PAIRS_H
#define FP_CHANNEL_PAIRS_H

#include <float.h>
#include <stdint.h>
#include <string.h>

#include "channel/fp_channel_blocks.h"

#define FP_PAIR_LANES 16  /* rows side by side, one a lane */
#define FP_PAIR_LEVELS 4  /* levels screened together */
#define FP_PAIR_OUTPUTS (1 << 20) /* most releases, beyond which the screen says little */

/* The levels of a screen: excess is e^epsilon - 1 of all levels in increasing order, group g those from first[g] on. */
typedef struct {
    ptrdiff_t groups;
    const float *factor;    /* c' of the smallest level of each group */
    const ptrdiff_t *first; /* groups + 1 of them */
    const double *excess;
} fp_pair_levels;

/* The next single above a nonnegative one (steps = 1), or below a positive one (steps = -1). */
FP_INLINE float fp_single_beside(float x, int32_t steps)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits += steps;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* x >= 0 rounded up, and down */
FP_INLINE float fp_single_above(double x)
{
    const float y = (float)x;
    return fp_single_beside(y, (double)y < x);
}

FP_INLINE float fp_single_below(double x)
{
    const float y = x < FLT_MAX ? (float)x : FLT_MAX;
    return fp_single_beside(y, -((double)y > x));
}

/* c' of e^epsilon - 1 */
/* bound: proved - 2^-22 is four roundings of a single, of which the product of c' and a cell takes one */
static inline float fp_pair_factor(double excess)
{
    return fp_single_below((1.0 + excess) * (1.0 - 0x1p-22));
}

/* Floats in the workspace for two groups of rows. */
static inline size_t fp_pair_workspace(ptrdiff_t n, ptrdiff_t others, ptrdiff_t m)
{
    const size_t padded = (size_t)(n + FP_PAIR_LANES - 1) / FP_PAIR_LANES, more = (size_t)(others + FP_PAIR_LANES - 1)
                                                                                   / FP_PAIR_LANES;
    return 2 * (size_t)m * (FP_PAIR_LANES * (padded + more) + padded + more) + FP_PAIR_LANES;
}

#define FP_LOOPS "channel/fp_channel_pairs_loops.h"
#include "common/fp_variants.h"

/* Raise `largest`, at each level, to the largest divergence of a row of one group from a row of the other, in both
 * directions; returns the number of pairs that were evaluated in doubles. */
typedef ptrdiff_t (*fp_channel_pairs_kernel)(ptrdiff_t n, ptrdiff_t others, ptrdiff_t m, const double *one,
                                             const double *other, int same, const fp_pair_levels *levels,
                                             float *workspace, double *largest);

static inline fp_channel_pairs_kernel fp_channel_pairs_select(void)
{
    return FP_SELECT(fp_channel_screened_pairs);
}

#endif
