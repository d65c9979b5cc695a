/* exp, expm1, log and log1p: branch-free, so that a loop around them vectorises, and the same bits on every
 * instruction set (no FMA, no library call, no conversion between double and int64).
 *
 * Limits are applied to results, never to arguments: on clamped arguments the compiler folds the constant case apart,
 * and what is left no longer vectorises everywhere.  Beyond its limits a reduction yields garbage, and no trap.
 *
 * Notation: k integer, r = x - k log 2 in [-log(2)/2, log(2)/2]; m in [sqrt(1/2), sqrt(2)), f = m - 1, s = f / (2 + f).
 * Bounds in ulps of the true value, proved by tools/proofs: fp_exp 0.97 (subnormal results 0.99), fp_expm1 1.36,
 * fp_log 0.98, fp_log1p 2.51.  Tests find at most 0.85, 1, 0.85 and 0.95 (tests/kernels/test_special_accuracy.py).
 * Subnormal arguments and results are right, inf and NaN as in IEEE 754.
 * The tables are minimax fits by fit_coefficients.py.
 */
/* bounds: proved by proofs/elementary - ulps of exp, expm1, log and log1p, on which bounds elsewhere count */
#ifndef FP_ELEMENTARY_H
#define FP_ELEMENTARY_H

#include "common/fp_constants.h"
#include "common/fp_error_free.h"

#define FP_LOG2E 0x1.71547652b82fep+0
#define FP_LN2 0.69314718055994530942         /* log 2 */
#define FP_INV_SQRT_2PI 0.39894228040143267794 /* 1 / sqrt(2 pi) */
#define FP_LN2_HI 0x1.62e42feep-1 /* 32 bits: a multiple by an integer below 2^20 is exact */
/* bound: proved - log 2 less FP_LN2_HI, to 2^-85: what reductions lose is below the ulps that are tested */
#define FP_LN2_LO 0x1.a39ef35793c76p-33
#define FP_SHIFT 0x1.8p52 /* x + FP_SHIFT is x rounded to an integer, in the low bits */

/* sum of c[i] x^i, even and odd terms as two chains; n is a constant at every call */
FP_INLINE double fp_polynomial(double x, const double *c, const int n)
{
    const double square = x * x;
    double even = c[(n - 1) & ~1], odd = c[(n - 2) | 1];
#pragma GCC unroll 32
    for (int i = ((n - 1) & ~1) - 2; i >= 0; i -= 2)
        even = even * square + c[i];
#pragma GCC unroll 32
    for (int i = ((n - 2) | 1) - 2; i >= 1; i -= 2)
        odd = odd * square + c[i];
    return even + x * odd;
}

/* y 2^k, correctly rounded when y is exact: k = shifted - FP_SHIFT is an integer of size at most 2044 */
FP_INLINE double fp_scale(double y, double shifted)
{
    const uint64_t biased = fp_bits(shifted) - fp_bits(FP_SHIFT) + 2200, half = biased >> 1;
    return y * fp_double((half - 77) << 52) * fp_double((biased - half - 77) << 52);
}

/* 2^k of an integer k <= 1023; where k < -1000 it is 2^-1000, or less */
FP_INLINE double fp_power_of_two(double k)
{
    return fp_double((fp_bits((k > -1000.0 ? k : -1000.0) + FP_SHIFT) + 1023) << 52);
}

/* m in [1, 2) and the integer e of x = m 2^e; x > 0 and normal */
FP_INLINE double fp_mantissa(double x, double *e)
{
    *e = fp_double((fp_bits(x) >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0);
    return fp_double((fp_bits(x) & 0x000fffffffffffffu) | 0x3ff0000000000000u);
}

/* bound: proved by proofs/elementary - e^r less its first terms, to 6e-19 */
static const double fp_exp_tail[10] = {
    0x1.5555555555559p-3, 0x1.5555555555559p-5, 0x1.111111110f801p-7, 0x1.6c16c16c14b5ap-10,
    0x1.a01a01af6e486p-13, 0x1.a01a01af2d571p-16, 0x1.71ddf9644a296p-19, 0x1.27e4c81fa6f35p-22,
    0x1.af5d06ea02af8p-26, 0x1.1f925372b18c1p-29,
};

/* e^(x + low) = 2^k (1 + r + q), |x| <= 1500, |low| <= 2^-10; returns r, sets q and k + FP_SHIFT */
FP_INLINE double fp_exp_reduced(double x, double low, double *q, double *shifted)
{
    *shifted = x * FP_LOG2E + FP_SHIFT;
    const double k = *shifted - FP_SHIFT;
    const double high = x - k * FP_LN2_HI, rest = k * FP_LN2_LO - low;
    const double r = high - rest, square = r * r;
    *q = square * (0.5 + r * fp_polynomial(r, fp_exp_tail, 10)) + ((high - r) - rest);
    return r;
}

FP_INLINE double fp_exp(double x)
{
    double q, shifted;
    const double r = fp_exp_reduced(x, 0.0, &q, &shifted);
    const double value = fp_scale(1.0 + (r + q), shifted), most = x < -746.0 ? 0.0 : value;
    return x > 710.0 ? INFINITY : most;
}

/* e^x - 1 from what fp_exp_reduced gives; k >= -1000 */
FP_INLINE double fp_expm1_reduced(double r, double q, double shifted)
{
    const double sum = r + q, low = (r - sum) + q; /* 1 + sum + low = e^x 2^-k */
    const double inverse = fp_scale(1.0, 2.0 * FP_SHIFT - shifted); /* 2^-k */
    const double base = 1.0 - inverse, total = base + sum;
    return fp_scale(total + (((base - total) + sum) + (low + ((1.0 - base) - inverse))), shifted);
}

FP_INLINE double fp_expm1(double x)
{
    double q, shifted;
    const double r = fp_exp_reduced(x, 0.0, &q, &shifted);
    double value = fp_expm1_reduced(r, q, shifted);
    value = x < -60.0 ? -1.0 : value;
    value = x > 710.0 ? INFINITY : value;
    return x == 0.0 ? x : value;
}

/* bound: proved by proofs/elementary - the series of log less its first term, to 1e-18 */
static const double fp_log_tail[7] = {
    0x1.555555555558fp-1, 0x1.9999999980d27p-2, 0x1.249249413a999p-2, 0x1.c71c528aa0fefp-3,
    0x1.7466272c1a045p-3, 0x1.39a3e8f694c24p-3, 0x1.2ef1181165270p-3,
};

/* k of u = m 2^k, as 1024 + k; u > 0 and normal */
FP_INLINE uint64_t fp_log_exponent(double u)
{
    return (fp_bits(u) + (0x4000000000000000u - 0x3fe6a09e667f3bcdu)) >> 52;
}

/* log(m 2^k (1 + small)) + less log 2, from k biased by 1024 and f = m - 1 */
FP_INLINE double fp_log_assembled(uint64_t exponent, double less, double f, double small)
{
    const double k = (fp_double(exponent | 0x4330000000000000u) - (0x1p52 + 1024.0)) - less;
    const double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
    const double tail = z * fp_polynomial(z, fp_log_tail, 7);
    return k * FP_LN2_HI - ((half - (s * (half + tail) + (k * FP_LN2_LO + small))) - f);
}

FP_INLINE double fp_log(double x)
{
    const int tiny = x < 0x1p-1022;
    const double u = tiny ? x * 0x1p54 : x;
    const uint64_t exponent = fp_log_exponent(u);
    const double f = fp_double(fp_bits(u) - ((exponent - 1024) << 52)) - 1.0;
    double value = fp_log_assembled(exponent, tiny ? 54.0 : 0.0, f, 0.0);
    value = x == 0.0 ? -INFINITY : value;
    value = x < 0.0 ? NAN : value;
    return x < INFINITY ? value : x; /* inf and NaN are their own logarithm */
}

/* log((u + c) 2^-less) for normal u > 0 and |c| <= ulp(u)/2 */
FP_INLINE double fp_log_lifted(double u, double c, double less)
{
    const uint64_t exponent = fp_log_exponent(u);
    const double f = fp_double(fp_bits(u) - ((exponent - 1024) << 52)) - 1.0;
    const double scaled = u < 0x1p900 ? c * fp_double((2047 - exponent) << 52) : 0.0;
    return fp_log_assembled(exponent, less, f, scaled * (1.0 - f + f * f)); /* 1/(1+f), to an ulp of c / u */
}

/* log(u + c) */
FP_INLINE double fp_log_two(double u, double c)
{
    return fp_log_lifted(u, c, 0.0);
}

FP_INLINE double fp_log1p(double x)
{
    const double u = 1.0 + x, back = u - 1.0;
    double value = fp_log_two(u, (1.0 - (u - back)) + (x - back));
    value = x == 0.0 ? x : value;
    value = x == -1.0 ? -INFINITY : value;
    value = x < -1.0 ? NAN : value;
    return x < INFINITY ? value : x;
}

#endif
