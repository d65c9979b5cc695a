/* Products of matrices in a fixed order: the library that NumPy calls for them orders its sums by the number of its
 * threads and by the processor.
 *
 * Notation: a (n, k), b (m, k), both by rows; out (n, m) takes a b', out_ij = ((a_i0 b_j0 + a_i1 b_j1) + ...) + a_ik
 * b_jk, one product after another, each rounded: |error| <= k u sum |a_il b_jl| to first order, u = 2^-53, and the same
 * bits on every machine.  Columns of `out` stand side by side in two vectors, four rows share what is read of
 * b. */
#ifndef FP_MATRIX_PRODUCT_H
#define FP_MATRIX_PRODUCT_H

#include <stddef.h>

/* bound: none - entries of a row that are taken together, and rows of a tile */
enum { FP_PRODUCT_DEPTH = 256, FP_PRODUCT_ROWS = 4 };

#define FP_PW_baseline 2
#define FP_PW_avx2 4
#define FP_PW_avx512 8
#define FP_PW FP_CAT(FP_PW, FP_ISA)

#define FP_LOOPS "common/fp_matrix_product_loops.h"
#include "common/fp_variants.h"

typedef void fp_product_kernel(ptrdiff_t n, ptrdiff_t m, ptrdiff_t k, const double *a, const double *b, double *out);

static inline fp_product_kernel *fp_product_select(void) { return FP_SELECT(fp_product); }

#endif
