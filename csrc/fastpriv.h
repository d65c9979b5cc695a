/* Functions of fastpriv for C: static inline, branch-light, without allocation; NaN outside their domains.
 *
 * The directory of this header is fastpriv.get_include(). Compile with -ffp-contract=off for the bits of
 * fastpriv.special, whose documentation has domains and accuracy; link with -lm.  GCC or Clang, C11 or later.
 */
#ifndef FASTPRIV_H
#define FASTPRIV_H

#include "special/fp_math.h"
#include "gauss/fp_gauss.h"
#include "channel/fp_binary_channel.h"

#define FASTPRIV_1(name, scalar) static inline double fastpriv_##name(double a) { return scalar(a); }
#define FASTPRIV_2(name, scalar) static inline double fastpriv_##name(double a, double b) { return scalar(a, b); }
#define FASTPRIV_4(name, scalar)                                                                                       \
    static inline double fastpriv_##name(double a, double b, double c, double d) { return scalar(a, b, c, d); }

FASTPRIV_1(exp, fp_exp)
FASTPRIV_1(expm1, fp_expm1)
FASTPRIV_1(log, fp_log)
FASTPRIV_1(log1p, fp_log1p)
FASTPRIV_1(erfc, fp_erfc)
FASTPRIV_1(erfcx, fp_erfcx)
FASTPRIV_1(mills_ratio, fp_mills)
FASTPRIV_1(ndtr, fp_ndtr)
FASTPRIV_1(log_ndtr, fp_log_ndtr)
FASTPRIV_1(log1mexp, fp_log1mexp)
FASTPRIV_2(logaddexp, fp_logaddexp)
FASTPRIV_2(ndtr_difference, fp_ndtr_diff)
FASTPRIV_2(log_ndtr_difference, fp_log_ndtr_diff)
FASTPRIV_2(gaussian_delta, fp_gaussian_delta)         /* r = sensitivity / (2 sigma), epsilon */
FASTPRIV_2(gaussian_log_delta, fp_gaussian_log_delta) /* the same */
FASTPRIV_2(binary_entropy_with_complement, fp_binary_entropy)
FASTPRIV_4(bac_capacity_with_complements, fp_bac_capacity)

static inline double fastpriv_binary_entropy(double p) { return fp_binary_entropy(p, 1.0 - p); }
static inline double fastpriv_bac_capacity(double a, double b) { return fp_bac_capacity(a, 1.0 - a, b, 1.0 - b); }

#endif
