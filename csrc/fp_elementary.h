/* exp, expm1, log and log1p: branch-free, so that a loop around them vectorises, and the same bits on every
 * instruction set (no FMA, no library call, no conversion between double and int64).
 *
 * Notation: k integer, r = x - k log 2 in [-log(2)/2, log(2)/2]; m in [sqrt(1/2), sqrt(2)), f = m - 1, s = f / (2 + f).
 * Bounds in ulps of the true value, tested in tests/kernels/test_special_accuracy.py: fp_exp 0.85, fp_expm1 0.95,
 * fp_log 0.85, fp_log1p 0.95.  Subnormal arguments and results are right, inf and NaN as in IEEE 754.
 * The tables are minimax fits by fit_coefficients.py.
 */
#ifndef FP_ELEMENTARY_H
#define FP_ELEMENTARY_H

#include <math.h>
#include <stdint.h>

#include "fp_dispatch.h"

#define FP_LOG2E 0x1.71547652b82fep+0
#define FP_LN2_HI 0x1.62e42feep-1 /* 32 bits: a multiple by an integer below 2^20 is exact */
#define FP_LN2_LO 0x1.a39ef35793c76p-33
#define FP_SHIFT 0x1.8p52 /* x + FP_SHIFT is x rounded to an integer, in the low bits */

FP_INLINE uint64_t fp_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

FP_INLINE double fp_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

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

/* y 2^k, correctly rounded when y is exact: k = shifted - FP_SHIFT is an integer of size at most 2100 */
FP_INLINE double fp_scale(double y, double shifted)
{
    const uint64_t biased = fp_bits(shifted) - fp_bits(FP_SHIFT) + 2200, half = biased >> 1;
    return y * fp_double((half - 77) << 52) * fp_double((biased - half - 77) << 52);
}

static const double fp_exp_tail[10] = {
    0x1.5555555555559p-3, 0x1.5555555555559p-5, 0x1.111111110f800p-7, 0x1.6c16c16c14b04p-10,
    0x1.a01a01af6f1ddp-13, 0x1.a01a01af4615cp-16, 0x1.71ddf96187de9p-19, 0x1.27e4c7f35280dp-22,
    0x1.af5d0c387bf52p-26, 0x1.1f9289ec0cfd2p-29,
};

/* e^(x + low) = 2^k (1 + r + q): |low| <= 2^-10, |x| <= 1500; returns r, sets q and k + FP_SHIFT */
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
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    const double r = fp_exp_reduced(x, 0.0, &q, &shifted);
    return fp_scale(1.0 + (r + q), shifted);
}

FP_INLINE double fp_expm1(double x)
{
    double q, shifted, y = x;
    y = y > 710.0 ? 710.0 : y;
    y = y < -60.0 ? -60.0 : y;
    const double r = fp_exp_reduced(y, 0.0, &q, &shifted);
    const double sum = r + q;
    double low = (r - sum) + q; /* 1 + sum + low = e^y 2^-k */
    const double capped = shifted > FP_SHIFT + 60.0 ? FP_SHIFT + 60.0 : shifted;
    const double inverse = fp_double((1023 + fp_bits(FP_SHIFT) - fp_bits(capped)) << 52); /* 2^-k */
    const double base = 1.0 - inverse, total = base + sum;
    low += (1.0 - base) - inverse;
    const double value = fp_scale(total + (((base - total) + sum) + low), shifted);
    return x == 0.0 ? x : value;
}

static const double fp_log_tail[7] = {
    0x1.555555555558fp-1, 0x1.9999999980d70p-2, 0x1.2492494136fb1p-2, 0x1.c71c528d303e9p-3,
    0x1.746626b96e3a2p-3, 0x1.39a3f2a9c83dbp-3, 0x1.2ef0c74ac6159p-3,
};

/* k of u = m 2^k, as 1024 + k; u > 0 and normal */
FP_INLINE uint64_t fp_log_exponent(double u)
{
    return (fp_bits(u) + (0x4000000000000000u - 0x3fe6a09e667f3bcdu)) >> 52;
}

/* log(m 2^k (1 + small)) + k_less log 2, from k biased by 1024 and f = m - 1 */
FP_INLINE double fp_log_assembled(uint64_t exponent, double k_less, double f, double small)
{
    const double k = (fp_double(exponent | 0x4330000000000000u) - (0x1p52 + 1024.0)) - k_less;
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

/* log(u + c) for normal u > 0 and |c| <= ulp(u)/2 */
FP_INLINE double fp_log_two(double u, double c)
{
    const uint64_t exponent = fp_log_exponent(u);
    const double f = fp_double(fp_bits(u) - ((exponent - 1024) << 52)) - 1.0;
    const double scaled = exponent < 2000 ? c * fp_double((2047 - exponent) << 52) : 0.0;
    return fp_log_assembled(exponent, 0.0, f, scaled * (1.0 - f + f * f)); /* 1/(1 + f), good enough for an ulp */
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
