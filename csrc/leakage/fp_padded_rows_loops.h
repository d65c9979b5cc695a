/* Loops of fp_padded_rows.h; no include guard, included once per instruction set. */

#define FP_ROW_WIDTH FP_CAT(FP_ROW_WIDTH, FP_ISA)
#define FP_ROW_VECTORS (FP_LANES / FP_ROW_WIDTH)
typedef double FP_NAME(fp_row_vector) __attribute__((vector_size(8 * FP_ROW_WIDTH), aligned(8), may_alias));

/* sum of a_k b_k; with `mask`, of mask_k a_k b_k */
FP_INLINE double FP_NAME(fp_row_sum)(ptrdiff_t width, const double *mask, const double *a, const double *b)
{
    typedef FP_NAME(fp_row_vector) v;
    v sum[FP_ROW_VECTORS];
    double lane[FP_LANES];
#pragma GCC unroll 4
    for (int i = 0; i < FP_ROW_VECTORS; i++)
        sum[i] = (v){0};
    for (ptrdiff_t d = 0; d < width; d += FP_LANES)
#pragma GCC unroll 4
        for (int i = 0; i < FP_ROW_VECTORS; i++) {
            const ptrdiff_t at = d + i * FP_ROW_WIDTH;
            v left = *(const v *)(a + at);
            if (mask)
                left *= *(const v *)(mask + at);
            sum[i] += left * *(const v *)(b + at);
        }
#pragma GCC unroll 4
    for (int i = 0; i < FP_ROW_VECTORS; i++)
        *(v *)(lane + i * FP_ROW_WIDTH) = sum[i];
    return fp_lane_sum(lane);
}

static double FP_NAME(fp_row_dot)(ptrdiff_t width, const double *a, const double *b)
{
    return FP_NAME(fp_row_sum)(width, NULL, a, b);
}

static double FP_NAME(fp_row_masked_dot)(ptrdiff_t width, const double *mask, const double *a, const double *b)
{
    return FP_NAME(fp_row_sum)(width, mask, a, b);
}

#undef FP_ROW_VECTORS
#undef FP_ROW_WIDTH
