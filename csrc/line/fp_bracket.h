/* The bracket of a divergence and of its logarithm. */
#ifndef FP_BRACKET_H
#define FP_BRACKET_H

#include "special/fp_dd_normal.h"

/* bound: tested by enclosures/test_hockey_stick - the few roundings of each elementary term, nine units of 2^-53 */
#define FP_ROUND 1.0e-15

typedef struct {
    double value, lower, upper, log_value, log_lower, log_upper;
} fp_bracket;

#endif
