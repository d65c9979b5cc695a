/* The bracket of a divergence and of its logarithm. */
#ifndef FP_BRACKET_H
#define FP_BRACKET_H

#include "special/fp_dd_normal.h"

/* bound: proved - nine units of 2^-53, for the few roundings of each elementary term: docs/proofs/monotone_pieces.md,
 * theorems 3.8 to 3.14 count them */
#define FP_ROUND 1.0e-15
/* bound: proved - relative error of Phi(b) - Phi(a) in doubles, 24 units of 2^-53: docs/proofs/gaussian.md, theorem 1.5 */
#define FP_NDTR_DIFF_ERROR 4.0e-15

typedef struct {
    double value, lower, upper, log_value, log_lower, log_upper;
} fp_bracket;

/* bounds: none - which brackets are tried to be narrowed */
/* Whether a bracket is far wider than rounding explains: wider than `width` times its upper bound, or, for a divergence
 * below 1e-300, whether nothing is known of its logarithm from below. */
static inline int fp_bracket_is_wide(const fp_bracket *b, double width)
{
    if (b->upper <= 1e-300)
        return b->log_upper > -INFINITY && b->log_lower == -INFINITY;
    return b->upper - b->lower > width * b->upper;
}

#endif
