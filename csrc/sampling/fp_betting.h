/* Logarithms of products over observations, one for each bet: the state of the bounds that hold at every moment.
 *
 * Notation: x >= 0 an observation, b a bet.  The factor is 1 + b x for a bet that the mean is larger, and
 * (1 - x) + b x, b <= 1, for one that it is smaller.
 *
 * Factors are multiplied, FP_FACTORS_BETWEEN_SCALINGS at a time, onto a number in [1, 2) whose exponent is then taken
 * off and summed as an integer: one logarithm a bet, however many observations.  Each factor is off by 2^-51 relative
 * at most.  Lanes are bets, so that no sum depends on the instruction set.  Factors lie between 2^-32 and
 * 2^120. */
#ifndef FP_BETTING_H
#define FP_BETTING_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "special/fp_elementary.h"

#define FP_BETS 56
#define FP_FACTORS_BETWEEN_SCALINGS 8

#define FP_LOOPS "sampling/fp_betting_loops.h"
#include "common/fp_variants.h"

/* sums[q FP_BETS + l] += sum over i of the log factor of x[i e + q] and bets[l], for n observations of e quantities */
typedef void (*fp_betting_kernel)(ptrdiff_t n, ptrdiff_t e, const double *x, int smaller, const double *bets,
                               double *sums);

static inline fp_betting_kernel fp_betting_select(void) { return FP_SELECT(fp_log_wealth); }

#endif
