/* The normal law in double-doubles: Mills ratio, density, tail, and probability of an interval.
 *
 * Q(x) = 1 - Phi(x), phi(x) = exp(-x^2/2) / sqrt(2 pi), R(x) = Q(x) / phi(x).  u = 2^-53; U = u^2 = 2^-106.
 *
 *   function                    bound     domain (x, a, b exact double-doubles; infinities allowed)
 *   fp_dd_mills                 2^-101    0 <= x <= 2^960
 *   fp_dd_phi_scaled            2^-102    |x| <= 2^25; result m 2^k
 *   fp_dd_ndtr_tail_scaled      2^-100    x <= 2^25 (x < 0 too)
 *   fp_dd_ndtr_diff_scaled      2^-95     |a|, |b| <= 2^25, any order, any distance
 *   fp_dd_phi, fp_dd_ndtr_tail, fp_dd_ndtr_diff: the same, while the result is at least 2^-960
 *
 * R on [0, 32): 96 rows, 16 of width 1/16 on [0, 1) and 16 on every octave above, each a polynomial of degree 17 about
 * its centre; fit_dd_tables.py proves the truncation below 2^-107 of R.  Between neighbouring powers the terms shrink
 * by 1/31 at least (|R^(n)(x)| <= n! R(x) / x^n, the density exp(-t^2/2) being decreasing), so coefficients from the
 * tenth on, below 2^-50 of R, may be doubles: their rounding and the first sum reach 2^-102.4, that is 12 U.  A Horner
 * step loses 3.4 U + (5 + 1 + what is inside) U / 31 <= 4 U; the argument x - centre 2 U / 31; rounding and truncation
 * of the table 2 U: 19 U < 2^-101.7.
 * R beyond 32: (1/x) sum_{n <= 16} (-1)^n (2n - 1)!! x^-2n.  The series is alternating and enveloping, so the
 * truncation is below 33!! 32^-34 = 2^-107.6; terms from the eighth on, below 2^-59, are doubles.  1/x loses 13 U, the
 * product 5 U, the sum 4 U: 22 U < 2^-101.
 */
/* bounds: proved - errors of the Mills ratio, density, tail and interval, derived at the head */
#ifndef FP_DD_NORMAL_H
#define FP_DD_NORMAL_H

#include "special/fp_dd_elementary.h"

FP_INLINE fp_dd fp_dd_mills_far(fp_dd x)
{
    if (isinf(x.hi))
        return fp_dd_set(0.0);
    static const double pairs[7] = {-1.0, 3.0, -15.0, 105.0, -945.0, 10395.0, -135135.0};
    static const double doubles[9] = {2027025.0,          -34459425.0,         654729075.0,
                                      -13749310575.0,     316234143225.0,      -7905853580625.0,
                                      213458046676875.0,  -6190283353629375.0, 191898783962510625.0};
    fp_dd y = fp_dd_div(fp_dd_set(1.0), x), t = fp_dd_sqr(y);
    double tail = doubles[8];
    for (int n = 7; n >= 0; n--)
        tail = doubles[n] + t.hi * tail;
    fp_dd s = fp_dd_set(tail);
    for (int n = 6; n >= 0; n--)
        s = fp_dd_add_small(fp_dd_set(pairs[n]), fp_dd_mul(t, s));
    return fp_dd_add_small(y, fp_dd_mul(y, fp_dd_mul(t, s)));
}

/* R(x), x >= 0; NaN below */
FP_INLINE fp_dd fp_dd_mills(fp_dd x)
{
    if (!(x.hi >= 0.0))
        return fp_dd_set((double)NAN);
    if (x.hi >= 32.0)
        return fp_dd_mills_far(x);
    int row;
    double centre;
    if (x.hi < 1.0) {
        row = (int)(x.hi * 16.0);
        centre = (row + 0.5) * 0.0625;
    } else {
        uint64_t bits;
        memcpy(&bits, &x.hi, 8);
        row = (int)(bits >> 48) - (0x3ff0 - 16);
        bits = (bits >> 48 << 48) | (UINT64_C(1) << 47);
        memcpy(&centre, &bits, 8);
    }
    const double *c = FP_DD_MILLS[row], *high = c + FP_DD_MILLS_PAIRS;
    fp_dd a = fp_dd_add_d(x, -centre);
    double tail = high[FP_DD_MILLS_DEGREE];
    for (int n = FP_DD_MILLS_DEGREE - 1; n >= FP_DD_MILLS_PAIRS; n--)
        tail = high[n] + a.hi * tail;
    fp_dd s = fp_dd_set(tail);
    for (int n = FP_DD_MILLS_PAIRS - 1; n >= 0; n--)
        s = fp_dd_add_small(fp_dd_make(c[2 * n], c[2 * n + 1]), fp_dd_mul(a, s));
    return s;
}

/* phi(x) = m 2^k.  x^2 is kept in three doubles, so that the bound does not grow with x: 5 U for exp, 6 for the
 * constant and the product, x^2 2^-156 for the third double: 12 U < 2^-102. */
FP_INLINE fp_dd fp_dd_phi_scaled(fp_dd x, int64_t *k)
{
    const fp_dd scale = {FP_DD_INV_SQRT_2PI[0], FP_DD_INV_SQRT_2PI[1]};
    if (!(fabs(x.hi) <= 0x1p25)) {
        *k = 0;
        return fp_dd_set(x.hi != x.hi ? x.hi : 0.0);
    }
    fp_dd square = fp_two_prod(x.hi, x.hi), cross = fp_two_prod(2.0 * x.hi, x.lo);
    fp_dd mid = fp_two_sum(square.lo, cross.hi), top = fp_quick_two_sum(square.hi, mid.hi);
    double third = mid.lo + (cross.lo + x.lo * x.lo);
    fp_dd f = fp_dd_exp_core(-0.5 * top.hi, -0.5 * top.lo, -0.5 * third, k);
    return fp_dd_mul(scale, fp_dd_add_d(f, 1.0));
}

/* Q(x) = m 2^k: phi R for x >= 0, 12 + 22 + 5 = 39 U; 1 - Q(-x) below, no more, since Q(-x) <= 1/2. */
FP_INLINE fp_dd fp_dd_ndtr_tail_scaled(fp_dd x, int64_t *k)
{
    int left = x.hi < 0.0;
    fp_dd y = left ? fp_dd_neg(x) : x;
    if (isinf(y.hi)) {
        *k = 0;
        return fp_dd_set(left ? 1.0 : 0.0);
    }
    fp_dd q = fp_dd_mul(fp_dd_phi_scaled(y, k), fp_dd_mills(y));
    if (!left)
        return q;
    q = fp_dd_add_d(fp_dd_neg(fp_dd_ldexp(q, *k)), 1.0);
    *k = 0;
    return q;
}

/* Phi(b) - Phi(a) for a < b, h = (b - a) / 2 <= 2^-5 and |m h| <= 2^-5, m = (a + b) / 2:
 *     2 h phi(m) sum_n G_2n / (2n + 1)!,   G_n = h^n He_n(m),   G_(n+1) = m h G_n - n h^2 G_(n-1),
 * phi(m) = phi(a) exp(-h (a + h / 2)).  |G_2n| <= 2^-10n I(2n), I = 1, 2, 10, 76, 764, ... the involution numbers: from
 * n = 9 on the sum is below 2^-115, and the terms n = 4 .. 8, below 2^-48, are formed in doubles (2^-98.8 with their
 * recurrence).  phi 12, exp and its argument 6, h 3, three products 15, sum 2^-98.8 and 4: below 2^-98. */
FP_INLINE fp_dd fp_dd_ndtr_diff_near(fp_dd a, fp_dd h, int64_t *k)
{

    fp_dd mh = fp_dd_mul(h, fp_dd_add(a, h)), hh = fp_dd_sqr(h);
    fp_dd g2 = fp_dd_sub(fp_dd_sqr(mh), hh);
    fp_dd g3 = fp_dd_sub(fp_dd_mul(mh, g2), fp_dd_mul(fp_dd_mul_d(hh, 2.0), mh));
    fp_dd g4 = fp_dd_sub(fp_dd_mul(mh, g3), fp_dd_mul(fp_dd_mul_d(hh, 3.0), g2));
    fp_dd g5 = fp_dd_sub(fp_dd_mul(mh, g4), fp_dd_mul(fp_dd_mul_d(hh, 4.0), g3));
    fp_dd g6 = fp_dd_sub(fp_dd_mul(mh, g5), fp_dd_mul(fp_dd_mul_d(hh, 5.0), g4));
    double before = g5.hi, now = g6.hi, weight = 1.0 / 5040, tail = 0.0;
    for (int n = 6; n < 16; n++) {
        double next = mh.hi * now - n * hh.hi * before;
        before = now;
        now = next;
        if (n & 1) {
            weight /= (double)((n + 1) * (n + 2));
            tail += weight * now;
        }
    }
    fp_dd sum = fp_dd_add_d(fp_dd_div_d(g6, 5040.0), tail);
    sum = fp_dd_add(fp_dd_div_d(g4, 120.0), sum);
    sum = fp_dd_add(fp_dd_div_d(g2, 6.0), sum);
    sum = fp_dd_add_d(sum, 1.0);
    fp_dd shift = fp_dd_mul(h, fp_dd_add(a, fp_dd_make(0.5 * h.hi, 0.5 * h.lo)));
    fp_dd density = fp_dd_mul(fp_dd_phi_scaled(a, k), fp_dd_exp(fp_dd_neg(shift)));
    return fp_dd_mul(fp_dd_make(2.0 * h.hi, 2.0 * h.lo), fp_dd_mul(density, sum));
}

/* Phi(b) - Phi(a) = m 2^k, negative for b < a.  The pair is mirrored to a + b >= 0.  Unless the case above applies,
 * Q(a) - Q(b) or 1 - Q(-a) - Q(b) cancels little: either b - a > 1/16, and the sum of the two tails is at most 41 times
 * their difference (the worst is the interval next to 0), or (a + b) (b - a) / 2 > 1/16, and since the hazard rate at t
 * is at least t, log(Q(a) / Q(b)) > 1/16 and the factor is coth(1/32) < 33.  39 * 41 + 6 <= 1605 U < 2^-95.3. */
FP_INLINE fp_dd fp_dd_ndtr_diff_scaled(fp_dd a, fp_dd b, int64_t *k)
{
    int swapped = fp_dd_gt(a, b);
    if (swapped) {
        fp_dd t = a;
        a = b;
        b = t;
    }
    if (fp_dd_eq(a, b)) {
        *k = 0;
        return fp_dd_set(0.0);
    }
    if (a.hi + b.hi < 0.0) {
        fp_dd t = fp_dd_neg(a);
        a = fp_dd_neg(b);
        b = t;
    }
    fp_dd h = fp_dd_sub(b, a), d;
    h = fp_dd_make(0.5 * h.hi, 0.5 * h.lo);
    if (h.hi <= 0x1p-5 && h.hi * (a.hi + h.hi) <= 0x1p-5) {
        d = fp_dd_ndtr_diff_near(a, h, k);
    } else {
        int64_t ka, kb;
        fp_dd qb = fp_dd_ndtr_tail_scaled(b, &kb);
        if (a.hi >= 0.0) {
            fp_dd qa = fp_dd_ndtr_tail_scaled(a, &ka);
            d = fp_dd_sub(qa, fp_dd_ldexp(qb, kb - ka));
            *k = ka;
        } else {
            fp_dd qa = fp_dd_ndtr_tail_scaled(fp_dd_neg(a), &ka);
            d = fp_dd_add(fp_dd_ldexp(qa, ka), fp_dd_ldexp(qb, kb));
            d = fp_dd_add_d(fp_dd_neg(d), 1.0);
            *k = 0;
        }
    }
    return swapped ? fp_dd_neg(d) : d;
}

FP_INLINE fp_dd fp_dd_phi(fp_dd x)
{
    int64_t k;
    fp_dd m = fp_dd_phi_scaled(x, &k);
    return fp_dd_ldexp(m, k);
}

FP_INLINE fp_dd fp_dd_ndtr_tail(fp_dd x)
{
    int64_t k;
    fp_dd m = fp_dd_ndtr_tail_scaled(x, &k);
    return fp_dd_ldexp(m, k);
}

FP_INLINE fp_dd fp_dd_ndtr_diff(fp_dd a, fp_dd b)
{
    int64_t k;
    fp_dd m = fp_dd_ndtr_diff_scaled(a, b, &k);
    return fp_dd_ldexp(m, k);
}

#endif
