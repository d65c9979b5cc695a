/* Log densities of mixtures over a tile of samples; the mathematics and its reasons are in fp_density.h. */

#define FP_S 4 /* vectors of samples in registers */
#define FP_BLOCK (FP_S * FP_W)

/* 2^y for -1000 <= y <= 0, 2 ulp */
FP_INLINE fp_v FP_NAME(fp_exp2)(fp_v y)
{
    const fp_v shifted = y + FP_SHIFT, f = y - (shifted - FP_SHIFT);
    fp_v p = FP_NAME(fp_all)(fp_exp2_series[11]);
#pragma GCC unroll 11
    for (int i = 10; i >= 0; i--)
        p = FP_FMA(p, f, FP_NAME(fp_all)(fp_exp2_series[i]));
    return (fp_v)((fp_vi)p + ((fp_vi)shifted << 52));
}

/* e[b] = sum_j ((x_j - m_bj) r_bj)^2, or without r, of `many` components: x is (d, FP_BLOCK) */
FP_INLINE void FP_NAME(fp_squares)(const int many, const int scaled, ptrdiff_t d, const double *restrict m,
                                   const double *restrict r, ptrdiff_t row, ptrdiff_t axis,
                                   const double *restrict x, double *restrict e)
{
    fp_v sum[4][FP_S];
#pragma GCC unroll 4
    for (int b = 0; b < many; b++)
#pragma GCC unroll 4
        for (int s = 0; s < FP_S; s++)
            sum[b][s] = (fp_v){0};
    for (ptrdiff_t j = 0; j < d; j++) {
        fp_v y[FP_S];
#pragma GCC unroll 4
        for (int s = 0; s < FP_S; s++)
            y[s] = *(const fp_v *)(x + j * FP_BLOCK + s * FP_W);
#pragma GCC unroll 4
        for (int b = 0; b < many; b++) {
            const fp_v mean = FP_NAME(fp_all)(m[b * d + j]);
            const fp_v scale = FP_NAME(fp_all)(scaled ? r[b * row + j * axis] : 1.0);
#pragma GCC unroll 4
            for (int s = 0; s < FP_S; s++) {
                fp_v t = y[s] - mean;
                if (scaled)
                    t = t * scale;
                sum[b][s] = FP_FMA(t, t, sum[b][s]);
            }
        }
    }
#pragma GCC unroll 4
    for (int b = 0; b < many; b++)
#pragma GCC unroll 4
        for (int s = 0; s < FP_S; s++)
            *(fp_v *)(e + b * FP_BLOCK + s * FP_W) = sum[b][s];
}

static void FP_NAME(fp_squares_chunk)(const fp_density *p, ptrdiff_t first, int count, const double *x, double *e)
{
    const ptrdiff_t d = p->d, row = p->row, axis = p->form == FP_DIAGONAL;
    const double *m = p->means + first * d, *r = p->scales + first * row;
    int c = 0;
    if (p->plain) {
        for (; c + 4 <= count; c += 4)
            FP_NAME(fp_squares)(4, 0, d, m + c * d, r, 0, 0, x, e + c * FP_BLOCK);
        for (; c < count; c++)
            FP_NAME(fp_squares)(1, 0, d, m + c * d, r, 0, 0, x, e + c * FP_BLOCK);
    } else {
        for (; c + 4 <= count; c += 4)
            FP_NAME(fp_squares)(4, 1, d, m + c * d, r + c * row, row, axis, x, e + c * FP_BLOCK);
        for (; c < count; c++)
            FP_NAME(fp_squares)(1, 1, d, m + c * d, r + c * row, row, axis, x, e + c * FP_BLOCK);
    }
}

/* rows i .. i + many - 1 of z = L t, and their squares onto the sum; L packed by rows */
FP_INLINE void FP_NAME(fp_rows)(const int many, ptrdiff_t i, const double *restrict rows, const double *restrict t,
                                fp_v *restrict sum)
{
    const double *row[4];
    fp_v z[4][FP_S];
#pragma GCC unroll 4
    for (int b = 0; b < many; b++) {
        row[b] = rows + (i + b) * (i + b + 1) / 2;
#pragma GCC unroll 4
        for (int s = 0; s < FP_S; s++)
            z[b][s] = (fp_v){0};
    }
    for (ptrdiff_t j = 0; j <= i; j++)
#pragma GCC unroll 4
        for (int b = 0; b < many; b++) {
            const fp_v entry = FP_NAME(fp_all)(row[b][j]);
#pragma GCC unroll 4
            for (int s = 0; s < FP_S; s++)
                z[b][s] = FP_FMA(entry, *(const fp_v *)(t + j * FP_BLOCK + s * FP_W), z[b][s]);
        }
#pragma GCC unroll 4
    for (int b = 0; b < many; b++) {
        for (ptrdiff_t j = i + 1; j <= i + b; j++) {
            const fp_v entry = FP_NAME(fp_all)(row[b][j]);
#pragma GCC unroll 4
            for (int s = 0; s < FP_S; s++)
                z[b][s] = FP_FMA(entry, *(const fp_v *)(t + j * FP_BLOCK + s * FP_W), z[b][s]);
        }
#pragma GCC unroll 4
        for (int s = 0; s < FP_S; s++)
            sum[s] = FP_FMA(z[b][s], z[b][s], sum[s]);
    }
}

static void FP_NAME(fp_squares_full)(const fp_density *p, ptrdiff_t first, int count, const double *x, double *t,
                                     double *e)
{
    const ptrdiff_t d = p->d;
    for (int c = 0; c < count; c++) {
        const double *m = p->means + (first + c) * d, *rows = p->scales + (first + c) * p->row;
        fp_v sum[FP_S] = {{0}};
        for (ptrdiff_t j = 0; j < d; j++)
            for (int s = 0; s < FP_S; s++)
                *(fp_v *)(t + j * FP_BLOCK + s * FP_W) = *(const fp_v *)(x + j * FP_BLOCK + s * FP_W) - m[j];
        ptrdiff_t i = 0;
        for (; i + 4 <= d; i += 4)
            FP_NAME(fp_rows)(4, i, rows, t, sum);
        for (; i < d; i++)
            FP_NAME(fp_rows)(1, i, rows, t, sum);
        for (int s = 0; s < FP_S; s++)
            *(fp_v *)(e + c * FP_BLOCK + s * FP_W) = sum[s];
    }
}

/* e: binary exponents without the weights */
static void FP_NAME(fp_exponents)(const fp_density *p, ptrdiff_t first, int count, const double *x, double *t,
                                  double *e)
{
    if (p->form == FP_FULL)
        FP_NAME(fp_squares_full)(p, first, count, x, t, e);
    else
        FP_NAME(fp_squares_chunk)(p, first, count, x, e);
}

/* the sum of count exponentials, e squares on entry: top and sum are the running largest binary exponent and the sum
 * of 2^(exponent - top) */
static void FP_NAME(fp_gather)(const fp_density *p, ptrdiff_t first, int count, double *restrict e, fp_v *top,
                               fp_v *sum)
{
    fp_v new_top[FP_S], part[FP_S];
    const fp_v low = FP_NAME(fp_all)(-p->cut);
    for (int s = 0; s < FP_S; s++) {
        new_top[s] = top[s];
        part[s] = (fp_v){0};
    }
    for (int c = 0; c < count; c++) {
        const double r = p->plain ? p->scales[(first + c) * p->row] : 1.0;
        const fp_v factor = FP_NAME(fp_all)(-0.5 * FP_LOG2E * (r * r));
        const fp_v constant = FP_NAME(fp_all)(p->constants[first + c] * FP_LOG2E);
#pragma GCC unroll 4
        for (int s = 0; s < FP_S; s++) {
            fp_v *at = (fp_v *)(e + c * FP_BLOCK + s * FP_W);
            const fp_v y = FP_FMA(*at, factor, constant);
            *at = y;
            new_top[s] = FP_MAX(y, new_top[s]);
        }
    }
    for (int c = 0; c < count; c++) {
        fp_v y[FP_S];
#pragma GCC unroll 4
        for (int s = 0; s < FP_S; s++)
            y[s] = *(const fp_v *)(e + c * FP_BLOCK + s * FP_W) - new_top[s];
        if (FP_ANY_FROM(FP_MAX(FP_MAX(y[0], y[1]), FP_MAX(y[2], y[3])), low))
#pragma GCC unroll 4
            for (int s = 0; s < FP_S; s++)
                part[s] = part[s] + FP_FROM(y[s], low, FP_NAME(fp_exp2)(y[s]));
    }
#pragma GCC unroll 4
    for (int s = 0; s < FP_S; s++) {
        const fp_v y = top[s] - new_top[s];
        sum[s] = FP_FMA(sum[s], FP_FROM(y, low, FP_NAME(fp_exp2)(y)), part[s]);
        top[s] = new_top[s];
    }
}

/* copies samples first .. first + FP_BLOCK - 1 of x (d, n) side by side; past the end the last one is repeated */
static void FP_NAME(fp_block)(ptrdiff_t d, ptrdiff_t n, ptrdiff_t first, const double *restrict x, double *restrict to)
{
    const ptrdiff_t have = n - first < FP_BLOCK ? n - first : FP_BLOCK;
    for (ptrdiff_t j = 0; j < d; j++) {
        const double *from = x + j * n + first;
        if (have == FP_BLOCK)
            for (int s = 0; s < FP_S; s++)
                *(fp_v *)(to + j * FP_BLOCK + s * FP_W) = FP_NAME(fp_load)(from + s * FP_W);
        else
            for (ptrdiff_t i = 0; i < FP_BLOCK; i++)
                to[j * FP_BLOCK + i] = from[i < have ? i : have - 1];
    }
}

/* out = log density; with log_weights also info = sum_c post_c log(post_c / w_c) */
static void FP_NAME(fp_density_tile)(const fp_density *p, ptrdiff_t n, const double *x, double *work, double *out,
                                     double *info)
{
    double *block = work, *t = work + p->d * FP_BLOCK;
    double e[FP_CHUNK * FP_BLOCK] __attribute__((aligned(64)));
    for (ptrdiff_t first = 0; first < n; first += FP_BLOCK) {
        const int have = n - first < FP_BLOCK ? (int)(n - first) : FP_BLOCK;
        double value[FP_BLOCK] __attribute__((aligned(64))), most[FP_BLOCK] __attribute__((aligned(64)));
        fp_v top[FP_S], sum[FP_S];
        FP_NAME(fp_block)(p->d, n, first, x, block);
        for (int s = 0; s < FP_S; s++) {
            top[s] = FP_NAME(fp_all)(-0x1.fp1023);
            sum[s] = (fp_v){0};
        }
        for (ptrdiff_t c = 0; c < p->k; c += FP_CHUNK) {
            const int count = p->k - c < FP_CHUNK ? (int)(p->k - c) : FP_CHUNK;
            FP_NAME(fp_exponents)(p, c, count, block, t, e);
            FP_NAME(fp_gather)(p, c, count, e, top, sum);
        }
        for (int s = 0; s < FP_S; s++) {
            *(fp_v *)(most + s * FP_W) = top[s];
            *(fp_v *)(value + s * FP_W) = sum[s];
        }
        for (int i = 0; i < FP_BLOCK; i++)
            value[i] = most[i] * FP_LN2 + fp_log(value[i]);
        for (int i = 0; i < have; i++)
            out[first + i] = value[i] > FP_RESCUE ? value[i] : fp_density_far(p, n, x + first + i);
        if (info)
            for (int i = 0; i < have; i++)
                info[first + i] = fp_density_information(p, n, x + first + i, out[first + i]);
    }
}
