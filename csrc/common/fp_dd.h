/* Double-double arithmetic with proved relative error bounds.
 *
 * An fp_dd is the unevaluated sum hi + lo of two doubles, normalised: hi = RN(hi + lo), so |lo| <= u |hi| with
 * u = 2^-53.  Bounds are relative to the exact result of the operation on its exact operands and hold when no
 * intermediate overflows and the result is at least 2^-960 in magnitude (below, the low part is no longer a normal
 * number and carries an absolute error of at most 2^-1074 a step).  Sources:
 *   [JMP] M. Joldes, J.-M. Muller, V. Popescu, Tight and rigorous error bounds for basic building blocks of
 *         double-word arithmetic, ACM Trans. Math. Softw. 44(2), 2017.
 *   [LLMPR] V. Lefevre, N. Louvet, J.-M. Muller, J. Picot, L. Rideau, Accurate calculation of Euclidean norms using
 *         double-word arithmetic, ACM Trans. Math. Softw. 49(1), 2023.
 *
 * The error of a product is taken with one fused multiply-add.  The fma is correctly rounded whether it is an
 * instruction or a call into libm, so these functions return the same bits for every instruction set; this is the one
 * header of the house that may use it.
 *
 *   operation              bound        from
 *   fp_two_sum/prod        exact        Knuth 1969; exact product by fma
 *   fp_dd_add_d            2 u^2        [JMP] algorithm 4
 *   fp_dd_add, fp_dd_sub   3 u^2 + 13 u^3    [JMP] algorithm 6 (any signs)
 *   fp_dd_add_small        5 u^2        below; needs |b| <= |a| / 4
 *   fp_dd_mul_d            2 u^2        [JMP] algorithm 9
 *   fp_dd_mul, fp_dd_sqr   5 u^2        [JMP] algorithm 12
 *   fp_dd_div, fp_dd_div_d 15 u^2 + O(u^3)  [JMP] algorithm 17; 3 u^2 algorithm 15
 *   fp_dd_sqrt             25/8 u^2     [LLMPR] algorithm SQRTDWtoDW
 * u^2 = 2^-106.
 */
#ifndef FP_DD_H
#define FP_DD_H

#include "common/fp_error_free.h"

typedef struct {
    double hi, lo;
} fp_dd;

/* s + e = a + b exactly */
FP_INLINE fp_dd fp_two_sum(double a, double b)
{
    double s = a + b;
    fp_dd r = {s, fp_sum_error(a, b, s)};
    return r;
}

/* the same when a = 0 or |a| >= |b| (or the exponent of a is no less than that of b) */
FP_INLINE fp_dd fp_quick_two_sum(double a, double b)
{
    double s = a + b;
    fp_dd r = {s, b - (s - a)};
    return r;
}

/* p + e = a b exactly, unless the product is below 2^-968 */
FP_INLINE fp_dd fp_two_prod(double a, double b)
{
    double p = a * b;
    fp_dd r = {p, __builtin_fma(a, b, -p)};
    return r;
}

FP_INLINE fp_dd fp_dd_make(double hi, double lo)
{
    fp_dd r = {hi, lo};
    return r;
}

FP_INLINE fp_dd fp_dd_set(double d) { return fp_dd_make(d, 0.0); }
FP_INLINE double fp_dd_double(fp_dd a) { return a.hi + a.lo; }
FP_INLINE fp_dd fp_dd_neg(fp_dd a) { return fp_dd_make(-a.hi, -a.lo); }
FP_INLINE fp_dd fp_dd_abs(fp_dd a) { return a.hi < 0.0 || (a.hi == 0.0 && a.lo < 0.0) ? fp_dd_neg(a) : a; }

FP_INLINE int fp_dd_lt(fp_dd a, fp_dd b) { return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo); }
FP_INLINE int fp_dd_le(fp_dd a, fp_dd b) { return a.hi < b.hi || (a.hi == b.hi && a.lo <= b.lo); }
FP_INLINE int fp_dd_gt(fp_dd a, fp_dd b) { return fp_dd_lt(b, a); }
FP_INLINE int fp_dd_ge(fp_dd a, fp_dd b) { return fp_dd_le(b, a); }
FP_INLINE int fp_dd_eq(fp_dd a, fp_dd b) { return a.hi == b.hi && a.lo == b.lo; }

FP_INLINE fp_dd fp_dd_add_d(fp_dd a, double b)
{
    fp_dd s = fp_two_sum(a.hi, b);
    return fp_quick_two_sum(s.hi, a.lo + s.lo);
}

FP_INLINE fp_dd fp_dd_add(fp_dd a, fp_dd b)
{
    fp_dd s = fp_two_sum(a.hi, b.hi), t = fp_two_sum(a.lo, b.lo);
    fp_dd v = fp_quick_two_sum(s.hi, s.lo + t.hi);
    return fp_quick_two_sum(v.hi, t.lo + v.lo);
}

FP_INLINE fp_dd fp_dd_sub(fp_dd a, fp_dd b) { return fp_dd_add(a, fp_dd_neg(b)); }

/* a + b for |b| <= B |a|, B <= 1/4: a Horner step.  With A = |a|, the low parts add to at most u (1 + B) A, rounded
 * with error u^2 (1 + B) A; the first sum is exact with |s.lo| <= u (1 + B) A, so the second rounding loses at most
 * 2 u^2 (1 + B) A; the last sum is exact.  Relative to |a + b| >= (1 - B) A this is 3 u^2 (1 + B) / (1 - B): 5 u^2 for
 * B = 1/4, 3.4 u^2 for B = 1/16. */
FP_INLINE fp_dd fp_dd_add_small(fp_dd a, fp_dd b)
{
    fp_dd s = fp_quick_two_sum(a.hi, b.hi);
    return fp_quick_two_sum(s.hi, s.lo + (a.lo + b.lo));
}

FP_INLINE fp_dd fp_dd_mul_d(fp_dd a, double b)
{
    fp_dd p = fp_two_prod(a.hi, b);
    return fp_quick_two_sum(p.hi, __builtin_fma(a.lo, b, p.lo));
}

FP_INLINE fp_dd fp_dd_mul(fp_dd a, fp_dd b)
{
    fp_dd p = fp_two_prod(a.hi, b.hi);
    double cross = __builtin_fma(a.lo, b.hi, __builtin_fma(a.hi, b.lo, a.lo * b.lo));
    return fp_quick_two_sum(p.hi, p.lo + cross);
}

FP_INLINE fp_dd fp_dd_sqr(fp_dd a)
{
    fp_dd p = fp_two_prod(a.hi, a.hi);
    double cross = __builtin_fma(a.hi + a.hi, a.lo, a.lo * a.lo);
    return fp_quick_two_sum(p.hi, p.lo + cross);
}

FP_INLINE fp_dd fp_dd_div_d(fp_dd a, double b)
{
    double q = a.hi / b;
    fp_dd p = fp_two_prod(q, b);
    return fp_quick_two_sum(q, (((a.hi - p.hi) - p.lo) + a.lo) / b);
}

/* The remainder a - q b is at most 3 u |a|; its rounding errors (2 for the product, 2 + 3 for the two differences),
 * the division's own (3) and b.hi in the place of b (3) give 13 u^2 + O(u^3). */
FP_INLINE fp_dd fp_dd_div(fp_dd a, fp_dd b)
{
    double q = a.hi / b.hi;
    fp_dd p = fp_dd_mul_d(b, q);
    return fp_quick_two_sum(q, ((a.hi - p.hi) + (a.lo - p.lo)) / b.hi);
}

/* a >= 0 */
FP_INLINE fp_dd fp_dd_sqrt(fp_dd a)
{
    if (a.hi == 0.0)
        return a;
    double s = sqrt(a.hi);
    return fp_quick_two_sum(s, (a.lo + __builtin_fma(-s, s, a.hi)) / (s + s));
}

/* 2^k for -1022 <= k <= 1023 */
FP_INLINE double fp_pow2(int64_t k)
{
    uint64_t bits = (uint64_t)(k + 1023) << 52;
    double d;
    memcpy(&d, &bits, 8);
    return d;
}

/* a 2^k, exact while both parts stay normal; overflows to infinity and underflows to zero for any k */
FP_INLINE fp_dd fp_dd_ldexp(fp_dd a, int64_t k)
{
    if (k > 2200)
        k = 2200;
    if (k < -2200)
        k = -2200;
    int64_t part = k / 3, rest = k - 2 * part;
    double f = fp_pow2(part), g = fp_pow2(rest), hi = a.hi * f * f * g;
    return fp_dd_make(hi, isinf(hi) ? 0.0 : a.lo * f * f * g);
}

#endif
