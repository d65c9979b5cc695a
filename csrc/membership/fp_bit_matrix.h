/* Products of a matrix of bits that stays packed.
 *
 * Notation: D (n, m) is a matrix of bits; bit j of row k is bit j % 8 of byte j / 8 of the row, which has `stride` bytes,
 * and is 0 beyond m.  Sums of eight numbers are looked up: a table holds those of all 256 subsets (the method of the four
 * Russians: Arlazarov, Dinic, Kronrod and Faradzev 1970).
 *
 * D x for numbers x (m, R).  A table has the sums of eight rows of x in FP_BIT_LANES columns, and entry i is entry
 * i - 2^h, with 2^h the highest bit of i, plus row h.  The entries of four bytes are added in two pairs, and these to the
 * sum of the bytes before, whatever the instruction set: the error of a sum is at most (m / 32 + 10) u sum |x_j| over
 * its own attributes to first order, u = 2^-53.
 *
 * b D for bits b (R, n): the same with eight rows of D, whose entries are bytes.  FP_BIT_GROUPS groups of eight rows have
 * sums below 256; then they are added to integers of 32 bits, so n is below 2^31.
 *
 * D D': the numbers of bits that two rows share. */
#ifndef FP_BIT_MATRIX_H
#define FP_BIT_MATRIX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* bound: none - columns of x, and bytes of D, at a time: their tables fill 32 KB; rows and bytes of D that are copied so
 * that they lie side by side; columns of D and rows of b of a tile; rows and words of a tile of D D' */
enum {
    FP_BIT_LANES = 4, FP_BIT_TABLES = 4, FP_BIT_ROWS = 1024, FP_BIT_BYTES = 64, FP_BIT_COLUMNS = 64, FP_BIT_RELEASES = 512,
    FP_BIT_TILE = 16, FP_BIT_WORDS = 256
};
/* bound: proved - 31 sums of at most 8 fit into a byte */
enum { FP_BIT_GROUPS = 31 };

typedef double fp_bit_sums __attribute__((vector_size(8 * FP_BIT_LANES), aligned(8), may_alias));
typedef uint8_t fp_bit_bytes __attribute__((vector_size(FP_BIT_COLUMNS), aligned(1), may_alias));

/* Memory of one call, about 0.6 MB. */
typedef struct {
    _Alignas(128) double table[FP_BIT_TABLES][256 * FP_BIT_LANES];
    _Alignas(128) uint8_t bytes[FP_BIT_BYTES * FP_BIT_ROWS]; /* a block of D, transposed */
    _Alignas(128) double sums[FP_BIT_ROWS * FP_BIT_LANES];
} fp_bit_products_memory;

typedef struct {
    _Alignas(128) uint8_t table[256 * FP_BIT_COLUMNS];
    _Alignas(128) uint8_t small[FP_BIT_RELEASES * FP_BIT_COLUMNS];
    _Alignas(128) int32_t counts[FP_BIT_RELEASES * FP_BIT_COLUMNS];
} fp_bit_counts_memory;

#define FP_LOOPS "membership/fp_bit_matrix_loops.h"
#include "common/fp_variants.h"

/* adds D x to out (rows, columns), row by row with `out_stride`, for at most FP_BIT_ROWS rows and `bytes` bytes of D;
 * entry (j, r) of x is x[j * x_row + r * x_column], and rows of x from `attributes` on are not read */
typedef void fp_bit_products_kernel(ptrdiff_t rows, ptrdiff_t bytes, ptrdiff_t attributes, ptrdiff_t columns,
                                    const uint8_t *d, ptrdiff_t stride, const double *x, ptrdiff_t x_row,
                                    ptrdiff_t x_column, double *out, ptrdiff_t out_stride,
                                    fp_bit_products_memory *memory);
/* b D into out, for at most FP_BIT_RELEASES rows of b of `groups` bytes, and at most FP_BIT_COLUMNS columns of D from a
 * multiple of 8, which d points to */
typedef void fp_bit_counts_kernel(ptrdiff_t releases, ptrdiff_t groups, ptrdiff_t rows, ptrdiff_t columns,
                                  const uint8_t *b, const uint8_t *d, ptrdiff_t stride, int64_t *out,
                                  ptrdiff_t out_stride, fp_bit_counts_memory *memory);
/* rows from `first` to `last` - 1 of D D' up to the diagonal, of n rows in all, into out (n, n) */
typedef void fp_bit_gram_kernel(ptrdiff_t first, ptrdiff_t last, ptrdiff_t n, ptrdiff_t stride, const uint8_t *d,
                                int64_t *out);

static inline fp_bit_products_kernel *fp_bit_products_select(void) { return FP_SELECT(fp_bit_products); }
static inline fp_bit_counts_kernel *fp_bit_counts_select(void) { return FP_SELECT(fp_bit_counts); }
static inline fp_bit_gram_kernel *fp_bit_gram_select(void) { return FP_SELECT(fp_bit_gram); }

#endif
