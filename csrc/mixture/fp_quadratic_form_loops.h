/* Binary exponents of the components at a block of samples; the mathematics and its reasons are in fp_density.h.
 *
 * x is a block: (d, FP_BLOCK), aligned.  e is (count, FP_BLOCK): e[c] = constant_c + factor_c |z_c|^2.  top grows to
 * the largest.  FP_REGISTER_ROWS components are done together, so that what is loaded of a sample serves all of
 * them. */

#undef FP_BLOCK
#define FP_BLOCK (FP_SAMPLE_VECTORS * FP_W)

FP_INLINE void FP_NAME(fp_exponent)(const fp_density *p, ptrdiff_t c, const fp_v *restrict sum, double *restrict e,
                                    fp_v *restrict top)
{
    const fp_v factor = FP_NAME(fp_broadcast)(p->factors[c]), constant = FP_NAME(fp_broadcast)(p->binary[c]);
#pragma GCC unroll 4
    for (int s = 0; s < FP_SAMPLE_VECTORS; s++) {
        const fp_v y = FP_FMA(sum[s], factor, constant);
        *(fp_v *)(e + s * FP_W) = y;
        top[s] = FP_MAX(y, top[s]);
    }
}

/* components c .. c + many - 1: |x - m|^2, with `scaled` |(x - m) r|^2; axis: entries of r from one coordinate on */
FP_INLINE void FP_NAME(fp_axes)(const int many, const int scaled, const int axis, ptrdiff_t d, const fp_density *p,
                                ptrdiff_t c, const double *restrict x, double *restrict e, fp_v *restrict top)
{
    const ptrdiff_t row = p->row;
    const double *m = p->means + c * d, *r = p->scales + c * row;
    fp_v sum[FP_REGISTER_ROWS][FP_SAMPLE_VECTORS], largest[FP_SAMPLE_VECTORS];
#pragma GCC unroll 4
    for (int b = 0; b < many; b++)
#pragma GCC unroll 4
        for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
            sum[b][s] = (fp_v){0};
    for (ptrdiff_t j = 0; j < d; j++) {
        fp_v at[FP_SAMPLE_VECTORS];
#pragma GCC unroll 4
        for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
            at[s] = *(const fp_v *)(x + j * FP_BLOCK + s * FP_W);
#pragma GCC unroll 4
        for (int b = 0; b < many; b++) {
            const fp_v mean = FP_NAME(fp_broadcast)(m[b * d + j]);
            const fp_v scale = FP_NAME(fp_broadcast)(scaled ? r[b * row + j * axis] : 1.0);
#pragma GCC unroll 4
            for (int s = 0; s < FP_SAMPLE_VECTORS; s++) {
                fp_v t = at[s] - mean;
                if (scaled)
                    t = t * scale;
                sum[b][s] = FP_FMA(t, t, sum[b][s]);
            }
        }
    }
#pragma GCC unroll 4
    for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
        largest[s] = top[s];
#pragma GCC unroll 4
    for (int b = 0; b < many; b++)
        FP_NAME(fp_exponent)(p, c + b, sum[b], e + b * FP_BLOCK, largest);
#pragma GCC unroll 4
    for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
        top[s] = largest[s];
}

FP_INLINE void FP_NAME(fp_axes_chunk)(const int scaled, const int axis, ptrdiff_t d, const fp_density *p,
                                      ptrdiff_t first, int count, const double *x, double *e, fp_v *top)
{
    int c = 0;
    for (; c + FP_REGISTER_ROWS <= count; c += FP_REGISTER_ROWS)
        FP_NAME(fp_axes)(FP_REGISTER_ROWS, scaled, axis, d, p, first + c, x, e + c * FP_BLOCK, top);
    for (; c < count; c++)
        FP_NAME(fp_axes)(1, scaled, axis, d, p, first + c, x, e + c * FP_BLOCK, top);
}

/* rows i .. i + many - 1 of z = L t, L packed by rows; their squares onto sum, or with `kept` z into it */
FP_INLINE void FP_NAME(fp_rows)(const int many, const int kept, ptrdiff_t i, const double *restrict rows,
                                const double *restrict t, fp_v *restrict sum)
{
    const double *row[FP_REGISTER_ROWS];
    fp_v z[FP_REGISTER_ROWS][FP_SAMPLE_VECTORS];
#pragma GCC unroll 4
    for (int b = 0; b < many; b++) {
        row[b] = rows + (i + b) * (i + b + 1) / 2;
#pragma GCC unroll 4
        for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
            z[b][s] = (fp_v){0};
    }
    for (ptrdiff_t j = 0; j <= i; j++)
#pragma GCC unroll 4
        for (int b = 0; b < many; b++) {
            const fp_v entry = FP_NAME(fp_broadcast)(row[b][j]);
#pragma GCC unroll 4
            for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
                z[b][s] = FP_FMA(entry, *(const fp_v *)(t + j * FP_BLOCK + s * FP_W), z[b][s]);
        }
#pragma GCC unroll 4
    for (int b = 0; b < many; b++) {
#pragma GCC unroll 4
        for (int j = 1; j <= b; j++) {
            const fp_v entry = FP_NAME(fp_broadcast)(row[b][i + j]);
#pragma GCC unroll 4
            for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
                z[b][s] = FP_FMA(entry, *(const fp_v *)(t + (i + j) * FP_BLOCK + s * FP_W), z[b][s]);
        }
#pragma GCC unroll 4
        for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
            if (kept)
                sum[b * FP_SAMPLE_VECTORS + s] = z[b][s];
            else
                sum[s] = FP_FMA(z[b][s], z[b][s], sum[s]);
    }
}

/* to = x - m */
FP_INLINE void FP_NAME(fp_away)(ptrdiff_t d, const double *m, const double *x, double *to)
{
    for (ptrdiff_t j = 0; j < d; j++)
#pragma GCC unroll 4
        for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
            *(fp_v *)(to + j * FP_BLOCK + s * FP_W) = *(const fp_v *)(x + j * FP_BLOCK + s * FP_W) - m[j];
}

FP_INLINE void FP_NAME(fp_full_chunk)(const fp_density *p, ptrdiff_t first, int count, const double *x, double *t,
                                      double *e, fp_v *top)
{
    const ptrdiff_t d = p->d;
    for (int c = 0; c < count; c++) {
        const double *rows = p->scales + (first + c) * p->row;
        fp_v sum[FP_SAMPLE_VECTORS] = {{0}};
        ptrdiff_t i = 0;
        FP_NAME(fp_away)(d, p->means + (first + c) * d, x, t);
        for (; i + FP_REGISTER_ROWS <= d; i += FP_REGISTER_ROWS)
            FP_NAME(fp_rows)(FP_REGISTER_ROWS, 0, i, rows, t, sum);
        for (; i < d; i++)
            FP_NAME(fp_rows)(1, 0, i, rows, t, sum);
        FP_NAME(fp_exponent)(p, first + c, sum, e + c * FP_BLOCK, top);
    }
}

/* to = L (x - m), by the one factor that all components share and the mean of the first; t is room for a block */
static void FP_NAME(fp_whiten_block)(const fp_density *p, const double *x, double *t, double *to)
{
    ptrdiff_t i = 0;
    FP_NAME(fp_away)(p->d, p->centre, x, t);
    for (; i + FP_REGISTER_ROWS <= p->d; i += FP_REGISTER_ROWS)
        FP_NAME(fp_rows)(FP_REGISTER_ROWS, 1, i, p->factor, t, (fp_v *)(to + i * FP_BLOCK));
    for (; i < p->d; i++)
        FP_NAME(fp_rows)(1, 1, i, p->factor, t, (fp_v *)(to + i * FP_BLOCK));
}

/* exponents of components first .. first + count - 1; t is room for a block */
static void FP_NAME(fp_exponents)(const fp_density *p, ptrdiff_t first, int count, const double *x, double *t,
                                  double *e, fp_v *top)
{
    if (p->form == FP_FULL)
        FP_NAME(fp_full_chunk)(p, first, count, x, t, e, top);
    else if (p->form == FP_DIAGONAL)
        FP_NAME(fp_axes_chunk)(1, 1, p->d, p, first, count, x, e, top);
    else if (p->plain && p->d == 1)
        FP_NAME(fp_axes_chunk)(0, 0, 1, p, first, count, x, e, top);
    else if (p->plain)
        FP_NAME(fp_axes_chunk)(0, 0, p->d, p, first, count, x, e, top);
    else
        FP_NAME(fp_axes_chunk)(1, 0, p->d, p, first, count, x, e, top);
}
