/* The bracket of a divergence and of its logarithm. */
#ifndef FP_BRACKET_H
#define FP_BRACKET_H

#include "special/fp_dd_normal.h"

typedef struct {
    double value, lower, upper, log_value, log_lower, log_upper;
} fp_hockey;

#endif
