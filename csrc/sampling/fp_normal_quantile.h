/* Uniforms and normals from 64 bits.
 *
 * fp_uniform takes the upper 52 bits to the middle of one of 2^52 equal intervals, in [2^-53, 1 - 2^-53], exactly.
 *
 * A normal is made of a sign, bit 63 (set: negative), and of the lower 52 bits k: w = (k + 1/2) 2^-52, and |z| is where
 * P(|Z| > |z|) = w.  From 64 binary digits fp_folded and a change of sign make that, so that z = Phi^-1(u) with u the
 * middle of one of 2^53 equal intervals, in [2^-54, 1 - 2^-54]; it is linear over GF(2), so columns may be folded.
 *
 * For w >= 2^-8 a polynomial of m, where w = 2^e m, gives |z| / (1 - w) on each half of an octave: 16 pieces, picked
 * by four bits of w, which one AVX-512 permutation reads for eight lanes.  Below, a polynomial in r = 1 / sqrt(-log w)
 * gives r |z|.  Relative error of z at most 1e-14 (tests/kernels/test_draws.py), of which the polynomials lose 5.6e-15.
 * FMA is asked for by name, so that every instruction set gives the same bits; one that has none calls the
 * library. */
/* bounds: proved - an exact shift of uniforms to the middle of their interval */
#ifndef FP_NORMAL_QUANTILE_H
#define FP_NORMAL_QUANTILE_H

#include "special/fp_elementary.h"
#include "sampling/fp_normal_quantile_tables.h"
#include "sampling/fp_random_stream.h"

#define FP_ONE_BITS 0x3ff0000000000000u
#define FP_TAIL_QUEUE 64
#define FP_SIGN_BIT 0x8000000000000000u
#define FP_SIZE_BITS 0x000fffffffffffffu
#define FP_PIECE_BITS 0x0007ffffffffffffu

/* fp_normal_pieces with a row for each piece, term i in place i + 1: what a machine without a permutation of sixteen
 * numbers loads four by four; filled when the module is loaded */
static double fp_normal_rows[16][FP_NORMAL_TERMS + 3] __attribute__((aligned(64)));

/* binary digits to bits of -z: those below the first are reversed when it is 1, u being above 1/2 */
FP_INLINE uint64_t fp_folded(uint64_t digits)
{
    return (digits & FP_SIGN_BIT) | (((digits ^ -(digits >> 63)) >> 11) & FP_SIZE_BITS);
}

FP_INLINE double fp_uniform(uint64_t bits)
{
    return fp_double((bits >> 12) | FP_ONE_BITS) - (1.0 - 0x1p-53);
}

FP_INLINE double fp_normal_tail_quantile(double w)
{
    const double s = sqrt(-fp_log(w));
    return s * fp_polynomial(1.0 / s - FP_TAIL_MIDDLE, fp_normal_tail, FP_TAIL_TERMS);
}

/* Normals whose w is below FP_TAIL_START are queued here until there are enough to fill vectors. */
typedef struct {
    int n;
    double w[FP_TAIL_QUEUE];
    double *at[FP_TAIL_QUEUE]; /* the destination, which already holds the sign */
} fp_tail_queue;

#endif
