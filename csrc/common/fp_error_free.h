/* Errors of one sum and of one product, in plain double arithmetic: no FMA, so every instruction set gives the same
 * bits, and no scaling factor, so nothing overflows that the product itself does not. */
#ifndef FP_ERROR_FREE_H
#define FP_ERROR_FREE_H

#include "common/fp_dispatch.h"

/* A double as its 64 bits, and back. */
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

/* s = fl(a + b); returns a + b - s exactly (Knuth) */
FP_INLINE double fp_sum_error(double a, double b, double s)
{
    const double t = s - a;
    return (a - (s - t)) + (b - t);
}

/* x rounded to 26 bits; the rest fits in 26 bits and a sign */
FP_INLINE double fp_upper_half(double x)
{
    return fp_double((fp_bits(x) + 0x4000000) & ~(uint64_t)0x7ffffff);
}

/* p = fl(a b); returns a b - p exactly, where it does not underflow (Dekker) */
FP_INLINE double fp_product_error(double a, double b, double p)
{
    const double ah = fp_upper_half(a), al = a - ah, bh = fp_upper_half(b), bl = b - bh;
    return (((ah * bh - p) + ah * bl) + al * bh) + al * bl;
}

#endif
