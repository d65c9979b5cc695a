/* Random and Sobol normals and the samples they become: the entry points, for the instruction set of the machine.
 *
 * Layout: row i of a (d, n) array holds coordinate i of n samples.  Everything is the same on every instruction
 * set. */
#ifndef FP_DRAW_H
#define FP_DRAW_H

#include "sampling/fp_normal_quantile.h"
#if FP_HAVE_VARIANTS
#include <immintrin.h>
#endif

#define FP_STRIP 64
#define FP_LONG_RUN 16
#define FP_COPIED_ROWS 256    /* a block with at most this many rows is copied: 48 KiB */
#define FP_COLUMN_ROWS 1024 /* a column with at most this many rows is copied: 8 KiB */

enum { FP_ISOTROPIC_SPREAD, FP_DIAGONAL_SPREAD, FP_FACTOR_SPREAD }; /* the forms 0, 1, 2 */

typedef struct {
    long d, n;
    int form;
    const double *means, *spreads, *z;
    double *x;
    const int32_t *component;
} fp_affine_map;

#define FP_LOOPS "sampling/fp_draw_loops.h"
#include "common/fp_variants.h"

static int fp_draw_isa;

/* Must be called once, before all others. */
static inline void fp_draw_choose(void)
{
    fp_draw_isa = fp_isa();
    for (int piece = 0; piece < 16; piece++)
        for (int i = 0; i < FP_NORMAL_TERMS; i++)
            fp_normal_rows[piece][i + 1] = fp_normal_pieces[i][piece];
}

static inline void fp_draw_bits(const uint64_t *words, long n, uint64_t *out)
{
    fp_stream s;
    fp_stream_seed(&s, words);
    FP_VARIANT(fp_draw_isa, fp_stream_bits)(&s, n, out);
}

static inline void fp_draw_uniforms(const uint64_t *words, long n, double *out)
{
    fp_stream s;
    fp_stream_seed(&s, words);
    FP_VARIANT(fp_draw_isa, fp_stream_uniforms)(&s, n, out);
}

/* If antithetic, n is even and column 2 j + 1 is minus column 2 j. */
static inline void fp_draw_normals(const uint64_t *words, int antithetic, long d, long n, double *out)
{
    fp_stream s;
    fp_stream_seed(&s, words);
    if (antithetic)
        FP_VARIANT(fp_draw_isa, fp_stream_pairs)(&s, d, n, out);
    else
        FP_VARIANT(fp_draw_isa, fp_stream_normals)(&s, d, n, out);
}

static inline void fp_draw_sobol_bits(const uint64_t *columns, int bits, const uint64_t *shifts, uint64_t first, long d,
                                      long n, uint64_t *out)
{
    for (long i = 0; i < d; i++)
        FP_VARIANT(fp_draw_isa, fp_sobol_bits)(columns + i * bits, bits, shifts[i], first, n, out + i * n);
}

static inline void fp_draw_sobol_normals(const uint64_t *columns, int bits, const uint64_t *shifts, uint64_t first,
                                         long d, long n, double *out)
{
    FP_VARIANT(fp_draw_isa, fp_sobol_normals)(columns, bits, shifts, first, d, n, out);
}

/* Matousek's random linear scramble: column b becomes L column b for a random lower triangular L of GF(2) with unit
 * diagonal, whose column i (digit 63 - i and below) is word i of what the stream gives this coordinate; the last of
 * its bits + 1 words is the digital shift */
static inline void fp_draw_scramble(const uint64_t *words, const uint64_t *generators, int bits, long d,
                                    uint64_t *columns, uint64_t *shifts)
{
    fp_stream s;
    uint64_t lower[72];
    fp_stream_seed(&s, words);
    for (long k = 0; k < d; k++) {
        const uint64_t *from = generators + k * bits;
        uint64_t *to = columns + k * bits;
        FP_VARIANT(fp_draw_isa, fp_stream_bits)(&s, bits + 1, lower);
        for (int i = 0; i < bits; i++)
            lower[i] = lower[i] >> i | 0x8000000000000000u >> i;
        for (int b = 0; b < bits; b++) {
            uint64_t value = 0;
            for (int i = 0; i <= b; i++)
                value ^= lower[i] & -(from[b] >> (63 - i) & 1);
            to[b] = value;
        }
        shifts[k] = lower[bits];
    }
}

/* The component of samples first to first + n - 1: the number of bounds, which increase, up to the sample. */
static inline void fp_draw_runs(const int64_t *bounds, long k, int64_t first, long n, int32_t *component)
{
    long c = 0, above = k - 1; /* the last bound lies beyond all samples */
    while (c < above) {
        const long middle = c + (above - c) / 2;
        if (bounds[middle] <= first)
            c = middle + 1;
        else
            above = middle;
    }
    for (long t = 0; t < n; c++) {
        const int64_t to = c < k - 1 ? bounds[c] - first : n, stop = to < n ? to : n;
        for (; t < stop; t++)
            component[t] = (int32_t)c;
    }
}

static inline int fp_draw_components_in_range(const int32_t *component, long n, long k)
{
    return FP_VARIANT(fp_draw_isa, fp_components_in_range)(component, n, k);
}

/* spreads[c], spreads[c][i], or lower factors packed by rows: one for all when factors is 1 */
static inline void fp_draw_affine_map(fp_affine_map *w, long factors)
{
    FP_VARIANT(fp_draw_isa, fp_affine_map_all)(w, factors);
}

#endif
