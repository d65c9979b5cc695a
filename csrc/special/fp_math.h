/* The special functions of the kernels, under one roof:
 *
 *   fp_exp fp_expm1 fp_log fp_log1p                                          fp_elementary.h
 *   fp_erfc fp_erfcx fp_mills fp_ndtr fp_log_ndtr fp_ndtr_diff fp_log_ndtr_diff   fp_erfc.h
 *   fp_log1mexp fp_logaddexp                                                 here
 *
 * All are branch-free scalar functions that vectorise when inlined into a loop, with the same bits on every
 * instruction set.  Bounds in ulps, tested in tests/kernels/test_special_accuracy.py: fp_log1mexp 2; fp_logaddexp one
 * ulp of the result plus two ulps of its distance to max(a, b).
 */
#ifndef FP_MATH_H
#define FP_MATH_H

#include "special/fp_elementary.h"
#include "special/fp_erfc.h"

/* log(1 - e^x), x <= 0: log(-expm1(x)) above -log 2, log1p(-e^x) below */
FP_INLINE double fp_log1mexp(double x)
{
    double q, shifted;
    const double r = fp_exp_reduced(x, 0.0, &q, &shifted);
    const double power = fp_scale(1.0 + (r + q), shifted), rest = 1.0 - power;
    const double below = -fp_expm1_reduced(r, q, shifted);
    const int near = x > -FP_LN2;
    const double value = fp_log_lifted(near ? below * 0x1p60 : rest, near ? 0.0 : (1.0 - rest) - power,
                                       near ? 60.0 : 0.0); /* a subnormal argument is lifted */
    const double proper = x < -746.0 ? 0.0 : value, edge = x == 0.0 ? -INFINITY : NAN;
    return x < 0.0 ? proper : edge;
}

/* log(e^a + e^b) */
FP_INLINE double fp_logaddexp(double a, double b)
{
    const double gap = -fabs(a - b), high = a > b ? a : b, power = fp_exp(gap), sum = 1.0 + power;
    const double value = high + fp_log_two(sum, power - (sum - 1.0)), proper = gap == gap ? value : gap;
    return a == b ? a + FP_LN2 : proper; /* also for infinities of one sign */
}

#endif
