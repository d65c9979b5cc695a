/* The loops of fp_matrix_product.h for one instruction set; no include guard.  FP_PW is the number of lanes of a
 * vector. */

#define FP_PAIR (2 * FP_PW)
typedef double FP_NAME(fp_pv) __attribute__((vector_size(8 * FP_PW), aligned(8), may_alias));

/* four rows of out, in the columns of a panel: depth entries of each of FP_PAIR rows of b, side by side */
static void FP_NAME(fp_product_four)(ptrdiff_t depth, ptrdiff_t k, const double *restrict a,
                                     const double *restrict panel, double *restrict sums)
{
    typedef FP_NAME(fp_pv) v;
    v *s = (v *)sums;
    v s0 = s[0], t0 = s[1], s1 = s[2], t1 = s[3], s2 = s[4], t2 = s[5], s3 = s[6], t3 = s[7];
    for (ptrdiff_t i = 0; i < depth; i++) {
        const v b = *(const v *)(panel + i * FP_PAIR), c = *(const v *)(panel + i * FP_PAIR + FP_PW);
        s0 += a[i] * b;
        t0 += a[i] * c;
        s1 += a[k + i] * b;
        t1 += a[k + i] * c;
        s2 += a[2 * k + i] * b;
        t2 += a[2 * k + i] * c;
        s3 += a[3 * k + i] * b;
        t3 += a[3 * k + i] * c;
    }
    s[0] = s0, s[1] = t0, s[2] = s1, s[3] = t1, s[4] = s2, s[5] = t2, s[6] = s3, s[7] = t3;
}

static void FP_NAME(fp_product_one)(ptrdiff_t depth, const double *restrict a, const double *restrict panel,
                                    double *restrict sums)
{
    typedef FP_NAME(fp_pv) v;
    v *s = (v *)sums;
    v s0 = s[0], t0 = s[1];
    for (ptrdiff_t i = 0; i < depth; i++) {
        s0 += a[i] * *(const v *)(panel + i * FP_PAIR);
        t0 += a[i] * *(const v *)(panel + i * FP_PAIR + FP_PW);
    }
    s[0] = s0, s[1] = t0;
}

/* adds a b' to out */
static void FP_NAME(fp_product)(ptrdiff_t n, ptrdiff_t m, ptrdiff_t k, const double *a, const double *b, double *out)
{
    double panel[FP_PRODUCT_DEPTH * FP_PAIR], sums[FP_PRODUCT_ROWS * FP_PAIR];
    for (ptrdiff_t at = 0; at < k; at += FP_PRODUCT_DEPTH) {
        const ptrdiff_t depth = k - at < FP_PRODUCT_DEPTH ? k - at : FP_PRODUCT_DEPTH;
        for (ptrdiff_t j = 0; j < m; j += FP_PAIR) {
            const ptrdiff_t width = m - j < FP_PAIR ? m - j : FP_PAIR;
            for (ptrdiff_t l = 0; l < FP_PAIR; l++)
                for (ptrdiff_t i = 0; i < depth; i++)
                    panel[i * FP_PAIR + l] = l < width ? b[(j + l) * k + at + i] : 0.0;
            for (ptrdiff_t i = 0; i < n; i += FP_PRODUCT_ROWS) {
                const ptrdiff_t rows = n - i < FP_PRODUCT_ROWS ? n - i : FP_PRODUCT_ROWS;
                for (ptrdiff_t r = 0; r < rows; r++)
                    for (ptrdiff_t l = 0; l < FP_PAIR; l++)
                        sums[r * FP_PAIR + l] = l < width ? out[(i + r) * m + j + l] : 0.0;
                if (rows == FP_PRODUCT_ROWS)
                    FP_NAME(fp_product_four)(depth, k, a + i * k + at, panel, sums);
                else
                    for (ptrdiff_t r = 0; r < rows; r++)
                        FP_NAME(fp_product_one)(depth, a + (i + r) * k + at, panel, sums + r * FP_PAIR);
                for (ptrdiff_t r = 0; r < rows; r++)
                    for (ptrdiff_t l = 0; l < width; l++)
                        out[(i + r) * m + j + l] = sums[r * FP_PAIR + l];
            }
        }
    }
}

#undef FP_PAIR
