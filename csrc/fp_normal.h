/* Uniforms and normals from 64 bits.
 *
 * The uniform of fp_uniform is the middle of one of 2^52 equal intervals, in [2^-53, 1 - 2^-53], exactly.  The normal
 * takes one bit more: z = Phi^-1(u), u the middle of one of 2^53 intervals, in [2^-54, 1 - 2^-54], never rounded.
 *
 * Quantile: w = 2 min(u, 1 - u) is a double, and |z| is where P(|Z| > |z|) = w.  For w >= 2^-8 a polynomial of m, where
 * w = 2^e m, gives |z| / (1 - w) on each half of an octave: 16 pieces, picked by four bits of w, which one AVX-512
 * permutation reads for eight lanes.  Below, one polynomial in r = 1 / sqrt(-log w) gives r |z|.  Relative error of z
 * at most 1e-14 (tests/kernels/test_draws.py), the cut of the series being 5.4e-15; z(~bits) = -z(bits) exactly.
 * No FMA: the same bits on every instruction set.
 */
#ifndef FP_NORMAL_H
#define FP_NORMAL_H

#include "fp_elementary.h"
#include "fp_normal_table.h"
#include "fp_stream.h"

#define FP_ONE_BITS 0x3ff0000000000000u
#define FP_FAR_ROOM 64
#define FP_SIGN_BIT 0x8000000000000000u
#define FP_PIECE_BITS 0x0007ffffffffffffu

/* 2 min(u, 1 - u), exactly */
FP_INLINE double fp_two_sided(uint64_t bits)
{
    return fp_double(((bits ^ -(bits >> 63)) >> 11) | FP_ONE_BITS) - (1.0 - 0x1p-53);
}

FP_INLINE double fp_uniform(uint64_t bits)
{
    return fp_double((bits >> 12) | FP_ONE_BITS) - (1.0 - 0x1p-53);
}

FP_INLINE double fp_normal_far(double w)
{
    const double s = sqrt(-fp_log(w));
    return s * fp_polynomial(1.0 / s - FP_TAIL_MIDDLE, fp_normal_tail, FP_TAIL_TERMS);
}

FP_INLINE double fp_normal_near(double w)
{
    const uint64_t bits = fp_bits(w), piece = (bits >> 51) & 15;
    const double x = fp_double((bits & FP_PIECE_BITS) | FP_ONE_BITS) - 1.25;
    double value = fp_normal_pieces[FP_NORMAL_TERMS - 1][piece];
#pragma GCC unroll 16
    for (int i = FP_NORMAL_TERMS - 2; i >= 0; i--)
        value = value * x + fp_normal_pieces[i][piece];
    return value * (1.0 - w);
}

FP_INLINE double fp_signed(double size, uint64_t bits)
{
    return fp_double((fp_bits(size) & ~FP_SIGN_BIT) | (~bits & FP_SIGN_BIT));
}

/* normals whose w is below FP_TAIL_START wait here until there are enough to fill vectors */
typedef struct {
    int n;
    double w[FP_FAR_ROOM];
    double *at[FP_FAR_ROOM]; /* where it goes; the sign is there already */
} fp_far;

#endif
