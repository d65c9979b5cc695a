/* Log likelihood ratios of people without membership, as weights of attributes.
 *
 * Notation: x the released frequency of an attribute and p that of references, both in [e, 1 - e] with 0 < e <= 1/2; d in
 * {0, 1} the attribute of a person.  Then d log(p / x) + (1 - d) log((1 - p) / (1 - x)) = d w + c with
 * w = log p - log(1 - p) - log x + log(1 - x) and c = log(1 - p) - log(1 - x): a sum over attributes for each person is
 * a product with bits, and a constant. */
#ifndef FP_LIKELIHOOD_RATIO_H
#define FP_LIKELIHOOD_RATIO_H

#include "common/fp_lanes.h"
#include "special/fp_elementary.h"

#define FP_LOOPS "membership/fp_likelihood_ratio_loops.h"
#include "common/fp_variants.h"

/* The weights of m attributes and the sum of their constants, of one release r that is cut to [e, 1 - e]; `log_odds` and
 * `log_rest` are log(p / (1 - p)) and log(1 - p). */
typedef double fp_weights_kernel(ptrdiff_t m, const double *r, const double *log_odds, const double *log_rest, double e,
                                 double *weights);

static inline fp_weights_kernel *fp_weights_select(void) { return FP_SELECT(fp_ratio_weights); }

#endif
