/* The special functions of the kernels, under one roof:
 *
 *   fp_exp fp_expm1 fp_log fp_log1p                                          fp_elementary.h
 *   fp_erfc fp_erfcx fp_mills fp_ndtr fp_log_ndtr fp_ndtr_diff fp_log_ndtr_diff   fp_erfc.h
 *   fp_log1mexp fp_logaddexp                                                 here
 *
 * All are branch-free scalar functions that vectorise when inlined into a loop, with the same bits on every
 * instruction set.  Bounds in ulps, tested in tests/kernels/test_special_accuracy.py: fp_log1mexp 3; fp_logaddexp one
 * ulp of the result plus two ulps of its distance to max(a, b).
 */
#ifndef FP_MATH_H
#define FP_MATH_H

#include "fp_elementary.h"
#include "fp_erfc.h"

/* log(1 - e^x), x <= 0: log(-expm1(x)) above -log 2, log1p(-e^x) below */
FP_INLINE double fp_log1mexp(double x)
{
    double q, shifted;
    const double r = fp_exp_reduced(x < -746.0 ? -746.0 : x, 0.0, &q, &shifted);
    const double power = fp_scale(1.0 + (r + q), shifted), rest = 1.0 - power;
    const int near = x > -0.6931471805599453;
    const double value = fp_log_two(near ? -fp_expm1_reduced(r, q, shifted) : rest, near ? 0.0 : (1.0 - rest) - power);
    return x < 0.0 ? value : x == 0.0 ? -INFINITY : NAN;
}

/* log(e^a + e^b) */
FP_INLINE double fp_logaddexp(double a, double b)
{
    const double high = a > b ? a : b, low = a > b ? b : a;
    const double gap = low == high ? 0.0 : low - high; /* infinities of one sign are at distance 0 */
    const double power = fp_exp(gap), sum = 1.0 + power;
    const double value = high + fp_log_two(sum, power - (sum - 1.0));
    return gap == gap ? value : gap;
}

#endif
