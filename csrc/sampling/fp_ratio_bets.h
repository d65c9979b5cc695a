/* Bets on the ratio of two means by a fixed number of observations, whose wealth is aimed at the size of the test.
 *
 * Notation: (h_i, m_i), i < n, independent pairs of one distribution with 0 <= h <= m <= 1; p a candidate;
 * y = h - p m >= -p; a the error.  If E h <= p E m, the wealth prod (1 + b_i y_i), with bets 0 <= b_i <= 1 / p that
 * follow from earlier pairs, is a nonnegative supermartingale that starts at 1, and reaches 1/a with probability at
 * most a (Ville 1939): the candidate is then refused.
 *
 * Any bets do.  These follow the wealth of an option that pays 1/a where the sum of y ends above the quantile of a:
 * with w = a times the wealth, k observations to go and s the standard deviation of y, w is about Phi(z), and the bet is
 * phi(z) / (Phi(z) s sqrt(k)).  A test by bets is hence about as sharp as one by normal approximation, though exact.
 * With L = -log w and r = sqrt(2 L), phi(z) / Phi(z) is 2 L / (r + 1 / (1.6 + 0.28 r)) within some hundredths.
 *
 * Source: Voracek and Orabona 2025 (bets whose target is recalculated); Waudby-Smith and Ramdas 2023.
 */
#ifndef FP_RATIO_BETS_H
#define FP_RATIO_BETS_H

#include <math.h>
#include <stddef.h>

#include "special/fp_elementary.h"

#define FP_LARGEST_SHARE 0.95  /* of the wealth that a bet may lose */
#define FP_PART_OF_TARGET 0.99 /* the option pays 1 / (0.99 a): near its pay the bets vanish, and never reach it */
/* bound: none - a test that has lost so much is given up, and refuses nothing */
#define FP_LEAST_WEALTH 1e-280
/* bound: proved - rounding of one factor of the wealth and of its product */
#define FP_FACTOR_ROUNDING 0x1p-50

/* Whether the candidate p > 0 is refused. */
static inline int fp_ratio_refused(ptrdiff_t n, const double *h, const double *m, double p, double error)
{
    const double most = FP_LARGEST_SHARE / p;
    const double refused = FP_PART_OF_TARGET * (1.0 + ((double)n + 4.0) * FP_FACTOR_ROUNDING);
    double w = FP_PART_OF_TARGET * error, sum = 0.0, squares = 0.0, total = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double y = h[i] - p * m[i], seen = (double)i, mean = i ? total / seen : 1.0;
        double variance = 0.25 * mean * mean + squares - (i ? sum * sum / seen : 0.0);
        variance = variance > 0.0 ? variance / (seen + 1.0) : 0.0;
        const double twice = -2.0 * fp_log(w), root = sqrt(twice);
        double bet = twice / ((root + 1.0 / (1.6 + 0.28 * root)) * sqrt(variance * (double)(n - i)));
        bet = bet < most ? bet : most; /* also where it is infinite */
        w *= 1.0 + bet * y;
        if (w >= refused)
            return 1;
        if (!(w >= FP_LEAST_WEALTH))
            return 0;
        sum += y;
        squares += y * y;
        total += m[i];
    }
    return 0;
}

#endif
