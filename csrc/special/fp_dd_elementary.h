/* exp, expm1, log and log1p of double-doubles.  u = 2^-53; U = u^2 = 2^-106.
 *
 *   function              bound     domain
 *   fp_dd_exp_scaled      2^-102    |a| <= 2^50, result m 2^k with |m| in [0.5, 2)
 *   fp_dd_exp             2^-102    results in [2^-960, 2^1023.9]
 *   fp_dd_expm1           2^-101    |a| >= 2^-900 or 0
 *   fp_dd_log             2^-100    every positive a, subnormal ones included, except |log a| < 2^-900
 *   fp_dd_log_scaled      2^-100    log(m 2^k), 2^-200 <= m <= 2^200, |k| <= 2^51
 *   fp_dd_log1p           2^-100    a > -1, |a| >= 2^-900 or 0
 * The bounds are relative to the exact function of the exact argument hi + lo: an argument that is itself off by a
 * relative error e moves exp by |a| e besides.
 *
 * exp and expm1.  a = (1024 q + 32 j + i) L + r with L = log 2 / 1024, |i|, |j| <= 16, |r| <= L / 2.  The tables hold
 * 2^(j/32) - 1 and 2^(i/1024) - 1 to U, so with p = expm1(r)
 *     E = fine + p (1 + fine),   F = coarse + E (1 + coarse),   e^a = 2^q (1 + F),
 * every sum but the last being of numbers that cancel to no less than a third: |fine| >= 2 |p| and
 * |coarse| >= 1.9 |E| unless fine = 0, coarse = 0.
 *   p: the truncated series loses 2^-110, its dd Horner steps 3.4 U + 2^-11 (...) <= 4 U, r itself 1 U: 5 U.
 *   E: (1 |fine| + 5 |p| + 5 |p fine|) / |E| + 3 <= 2 + 5 + 3 + 0.1, at most 11 U.
 *   F: (1 |coarse| + 11 |E| + 6 |E coarse|) / |F| + 3 <= 19 U near zero, and at most 1.9 U absolutely.
 *   1 + F >= 0.69: 1.9 / 0.69 + 2 <= 5 U = 2^-103.6 for exp; 2^q (1 + F) - 1 cancels to no less than 0.29: 19 U for
 *   expm1.
 * Reduction.  k L is formed from three doubles of log 2, whose products with k are split exactly; the difference of the
 * leading parts and the sums of the second parts are exact, and what is rounded is below 2^-104 |a| and loses
 * 2^-155 |a|.  For |a| > 2^40 a first pass removes whole multiples of log 2, since k must stay an exact
 * double. */
/* bounds: proved - errors of exp, expm1, log, log1p in units of 2^-106, derived at the head */
#ifndef FP_DD_ELEMENTARY_H
#define FP_DD_ELEMENTARY_H

#include "common/fp_dd.h"
#include "special/fp_dd_tables.h"

#define FP_DD_INV_LN2 0x1.71547652b82fep0 /* 1 / log 2, to choose k */

/* nearest integer of |x| <= 2^51 */
FP_INLINE double fp_dd_nearest(double x)
{
    const double shift = 0x1.8p52;
    return (x + shift) - shift;
}

/* hi + lo + tail - k scale log 2, scale a power of two; |lo| <= u |hi|, |tail| <= u^2 |hi|, |k| <= 2^51 */
FP_INLINE fp_dd fp_dd_minus_log2(double hi, double lo, double tail, double k, double scale)
{
    fp_dd first = fp_two_prod(k, FP_DD_LN2[0] * scale), second = fp_two_prod(k, FP_DD_LN2[1] * scale);
    fp_dd lead = fp_two_sum(hi, -first.hi), low = fp_two_sum(lo, -first.lo), mid = fp_two_sum(low.hi, -second.hi);
    double rest = tail + (lead.lo + low.lo + mid.lo - second.lo - k * (FP_DD_LN2[2] * scale));
    fp_dd sum = fp_two_sum(lead.hi, mid.hi);
    return fp_quick_two_sum(sum.hi, sum.lo + rest);
}

/* expm1 on |r| <= log 2 / 2048 (1 + 2^-30) */
FP_INLINE fp_dd fp_dd_expm1_series(fp_dd r)
{
    const fp_dd half = {0.5, 0.0}, sixth = {0x1.5555555555555p-3, 0x1.5555555555555p-57},
                twentyfourth = {0x1.5555555555555p-5, 0x1.5555555555555p-59};
    double x = r.hi, tail = x * (1.0 / 120 + x * (1.0 / 720 + x * (1.0 / 5040 + x * (1.0 / 40320))));
    fp_dd s = fp_dd_add_small(twentyfourth, fp_dd_set(tail));
    s = fp_dd_add_small(sixth, fp_dd_mul(r, s));
    s = fp_dd_add_small(half, fp_dd_mul(r, s));
    return fp_dd_add_small(r, fp_dd_mul(fp_dd_sqr(r), s));
}

/* F from r, i and j of the header */
FP_INLINE fp_dd fp_dd_exp_join(fp_dd r, int64_t i, int64_t j)
{
    fp_dd f = fp_dd_make(FP_DD_EXP_FINE[i + 16][0], FP_DD_EXP_FINE[i + 16][1]), p = fp_dd_expm1_series(r);
    fp_dd c = fp_dd_make(FP_DD_EXP_COARSE[j + 16][0], FP_DD_EXP_COARSE[j + 16][1]);
    fp_dd e = fp_dd_add(f, fp_dd_add_small(p, fp_dd_mul(p, f)));
    return fp_dd_add(c, fp_dd_add(e, fp_dd_mul(e, c)));
}

/* F and q of the header for the argument hi + lo + tail; |hi| <= 2^50 */
FP_INLINE fp_dd fp_dd_exp_core(double hi, double lo, double tail, int64_t *exponent)
{
    int64_t q = 0;
    if (fabs(hi) > 0x1p40) {
        double whole = fp_dd_nearest(hi * FP_DD_INV_LN2);
        fp_dd r = fp_dd_minus_log2(hi, lo, tail, whole, 1.0);
        hi = r.hi;
        lo = r.lo;
        tail = 0.0;
        q = (int64_t)whole;
    }
    double k = fp_dd_nearest(hi * (1024.0 * FP_DD_INV_LN2));
    int64_t n = (int64_t)k, part = (n + 512) >> 10, rest = n - part * 1024;
    int j = (int)((rest + 16) >> 5), i = (int)(rest - 32 * j);
    *exponent = q + part;
    return fp_dd_exp_join(fp_dd_minus_log2(hi, lo, tail, k, 0x1p-10), i, j);
}

/* e^a = m 2^k with 2^-1/2 (1 - 2^-10) < m < 2^1/2 (1 + 2^-10).  For |a| > 2^50 the answer saturates: m = 0, k = 0
 * below, m = infinity above.  NaN gives NaN. */
FP_INLINE fp_dd fp_dd_exp_scaled(fp_dd a, int64_t *k)
{
    if (!(fabs(a.hi) <= 0x1p50)) {
        *k = 0;
        return fp_dd_set(a.hi > 0.0 ? (double)INFINITY : a.hi < 0.0 ? 0.0 : a.hi);
    }
    return fp_dd_add_d(fp_dd_exp_core(a.hi, a.lo, 0.0, k), 1.0);
}

FP_INLINE fp_dd fp_dd_exp(fp_dd a)
{
    int64_t k;
    fp_dd m = fp_dd_exp_scaled(a, &k);
    return fp_dd_ldexp(m, k);
}

FP_INLINE fp_dd fp_dd_expm1(fp_dd a)
{
    if (fabs(a.hi) < 0x1p-110) /* relative error |a| / 2 */
        return a;
    if (a.hi < -80.0)
        return fp_dd_make(-1.0, fp_dd_exp(a).hi);
    if (!(a.hi < 80.0))
        return fp_dd_exp(a);
    int64_t q;
    fp_dd f = fp_dd_exp_core(a.hi, a.lo, 0.0, &q);
    if (q == 0)
        return f;
    return fp_dd_add_d(fp_dd_ldexp(fp_dd_add_d(f, 1.0), q), -1.0);
}

/* The same bits for -80 < a < 0, |a| >= 2^-110, without branches: loops of it are vectorised. */
FP_INLINE fp_dd fp_dd_expm1_falling(double a)
{
    const double k = fp_dd_nearest(a * (1024.0 * FP_DD_INV_LN2));
    const int n = (int)k, part = (n + 512) >> 10, rest = n - part * 1024, j = (rest + 16) >> 5;
    const fp_dd f = fp_dd_exp_join(fp_dd_minus_log2(a, 0.0, 0.0, k, 0x1p-10), rest - 32 * j, j);
    const fp_dd power = fp_dd_add_d(f, 1.0);
    const double scale = fp_pow2(part);
    const fp_dd scaled = fp_dd_add_d(fp_dd_make(power.hi * scale, power.lo * scale), -1.0);
    return fp_dd_make(part == 0 ? f.hi : scaled.hi, part == 0 ? f.lo : scaled.lo);
}

/* log1p for -0.3 <= a <= 0.4375.  (1 + a) c = 1 + z and (1 + z) d = 1 + w with few-bit c, d from the tables, so that
 * log(1 + a) = -log c - log d + log1p(w), |w| < 2^-11.9, and log1p(w) = 2 atanh(w / (2 + w)).  z = a c + (c - 1) is
 * exact up to 2 U |a c| + 2 U |z| since c - 1 is a double; likewise w.  The quotient loses 17 U, the series 4 U: 22 U.
 * |log1p(w)| <= 0.51 |log d| or log d = 0, likewise one level up.  Lower level, with 2 U |z d| + 2 U |w| of w:
 * (1 + 22 * 0.51) / 0.49 + 3 + 6 <= 34 U; upper level: (1 + 34 * 0.51) / 0.49 + 3 + 6 <= 47 U = 2^-100.4. */
FP_INLINE fp_dd fp_dd_log1p_core(fp_dd a)
{
    const fp_dd third = {0x1.5555555555555p-2, 0x1.5555555555555p-56};
    const int64_t i = (int)((1.0 + a.hi) * 64.0 + 0.5) - 44;
    fp_dd z = fp_dd_add_d(fp_dd_mul_d(a, FP_DD_LOG_COARSE[i][0]), FP_DD_LOG_COARSE[i][1]);
    const int64_t j = (int)(z.hi * 2048.0 + 26.5);
    fp_dd w = fp_dd_add_d(fp_dd_mul_d(z, FP_DD_LOG_FINE[j][0]), FP_DD_LOG_FINE[j][1]);
    fp_dd s = fp_dd_div(w, fp_dd_add_d(w, 2.0)), t = fp_dd_sqr(s);
    double x = t.hi, tail = x * (1.0 / 5 + x * (1.0 / 7 + x * (1.0 / 9)));
    fp_dd series = fp_dd_mul(t, fp_dd_add_small(third, fp_dd_set(tail)));
    fp_dd twice = fp_dd_make(s.hi + s.hi, s.lo + s.lo);
    fp_dd low = fp_dd_add(fp_dd_make(FP_DD_LOG_FINE[j][2], FP_DD_LOG_FINE[j][3]), fp_dd_add_small(twice, fp_dd_mul(twice, series)));
    return fp_dd_add(fp_dd_make(FP_DD_LOG_COARSE[i][2], FP_DD_LOG_COARSE[i][3]), low);
}

/* a = 2^q (1 + b), 0.70 < 1 + b < 1.42, b exact.  q log 2 (3 U) and |log1p(b)| <= 0.35 (by the terms above, 4 U
 * absolutely) cancel to no less than 0.34: 3 * 2 + 4 / 0.34 + 3 <= 21 U.  q = 0: the core's 47 U. */
FP_INLINE fp_dd fp_dd_log(fp_dd a)
{
    if (!(a.hi > 0.0) || a.hi > 0x1.fffffffffffffp1023) {
        if (a.hi == 0.0)
            return fp_dd_set(-(double)INFINITY);
        return fp_dd_set(a.hi > 0.0 ? a.hi : (double)NAN);
    }
    int64_t q = 0;
    if (a.hi < 0x1p-900) {
        a = fp_dd_make(a.hi * 0x1p200, a.lo * 0x1p200);
        q = -200;
    }
    uint64_t bits;
    memcpy(&bits, &a.hi, 8);
    int64_t shift = (int64_t)(bits - 0x3fe6a00000000000u) >> 52, half = shift / 2; /* cut near sqrt(1/2) */
    q += shift;
    double f = fp_pow2(-half), g = fp_pow2(half - shift);
    a = fp_dd_make(a.hi * f * g, a.lo * f * g);
    fp_dd y = fp_dd_log1p_core(fp_two_sum(a.hi - 1.0, a.lo));
    if (q == 0)
        return y;
    return fp_dd_add(fp_dd_mul_d(fp_dd_make(FP_DD_LN2[0], FP_DD_LN2[1]), (double)q), y);
}

/* log1p(z) where that is `near`, else log(z), the same bits for 0 < z < 0.51 and 1.4 < z < 2^900, |z| >= 2^-110, without
 * branches: loops of it are vectorised. */
FP_INLINE fp_dd fp_dd_log1p_or_log(fp_dd z, int near)
{
    const fp_dd rise = fp_dd_add_d(z, 1.0);
    const double hi = near ? rise.hi : z.hi, lo = near ? rise.lo : z.lo;
    const int small = near & (z.hi < 0.41), shift = (int)((fp_bits(hi) - 0x3fe6a00000000000u) >> 52);
    const double scale = fp_pow2(-(int64_t)shift);
    const fp_dd cut = fp_two_sum(hi * scale - 1.0, lo * scale);
    const fp_dd y = fp_dd_log1p_core(fp_dd_make(small ? z.hi : cut.hi, small ? z.lo : cut.lo));
    const fp_dd all = fp_dd_add(fp_dd_mul_d(fp_dd_make(FP_DD_LN2[0], FP_DD_LN2[1]), (double)shift), y);
    const int whole = small | (shift == 0);
    return fp_dd_make(whole ? y.hi : all.hi, whole ? y.lo : all.lo);
}

/* log(m 2^k).  Beyond |k| = 500, where m 2^k might not fit, |log m| <= 0.4 |k| log 2: the sum (3 U of k log 2,
 * 47 U of log m) cancels to no less than 0.6: (3 + 47 * 0.4) / 0.6 + 3 <= 40 U. */
FP_INLINE fp_dd fp_dd_log_scaled(fp_dd m, int64_t k)
{
    if (k >= -500 && k <= 500)
        return fp_dd_log(fp_dd_ldexp(m, k));
    return fp_dd_add(fp_dd_mul_d(fp_dd_make(FP_DD_LN2[0], FP_DD_LN2[1]), (double)k), fp_dd_log(m));
}

/* Outside [-0.29, 0.41] the sum 1 + a loses 2 U, which the logarithm divides by at least 0.34. */
FP_INLINE fp_dd fp_dd_log1p(fp_dd a)
{
    if (fabs(a.hi) < 0x1p-110) /* relative error |a| / 2 */
        return a;
    if (a.hi > -0.29 && a.hi < 0.41)
        return fp_dd_log1p_core(a);
    if (!(a.hi < 0x1p120)) /* relative error below 1 / a */
        return fp_dd_log(a);
    return fp_dd_log(fp_dd_add_d(a, 1.0));
}

#endif
