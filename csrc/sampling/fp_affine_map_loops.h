/* x = mean + spread z for columns sorted by component; part of fp_draw_loops.h.
 *
 * Row i of z and x holds coordinate i of n samples.  A run of columns of one component is worked row by row; columns
 * of short runs are gathered, FP_STRIP at a time, so that rows are vectors again.  A full factor multiplies blocks of
 * columns, four rows at a time; columns left over, and short runs, are worked one by one as inner products.  Rows go
 * from the last up, so that x may be z.  FMA by name and fixed lanes: the same bits on every instruction
 * set. */

/* Whether all components are in [0, k). */
static int FP_NAME(fp_components_in_range)(const int32_t *component, long n, long k)
{
    int32_t least = 0, most = 0;
    for (long t = 0; t < n; t++) {
        least = component[t] < least ? component[t] : least;
        most = component[t] > most ? component[t] : most;
    }
    return least >= 0 && most < k;
}

/* The end of the run of equal components that starts at t. */
FP_INLINE long FP_NAME(fp_run_end)(const int32_t *component, long t, long n)
{
    const int32_t c = component[t];
    for (; t + 16 <= n; t += 16) {
        int32_t differ = 0;
        for (int k = 0; k < 16; k++)
            differ |= component[t + k] ^ c;
        if (differ)
            break;
    }
    while (t < n && component[t] == c)
        t++;
    return t;
}

/* One row over the columns [start, stop) of one component. */
FP_INLINE void FP_NAME(fp_affine_map_row)(double mean, double spread, const double *z, double *x, long start, long stop)
{
#pragma GCC ivdep
    for (long t = start; t < stop; t++)
        x[t] = mean + spread * z[t];
}

/* The columns [start, stop), at most FP_STRIP, of any components. */
static void FP_NAME(fp_affine_map_strip)(const fp_affine_map *w, long start, long stop)
{
    double means[FP_STRIP], spreads[FP_STRIP];
    const double *mean_of[FP_STRIP], *spread_of[FP_STRIP];
    const int m = (int)(stop - start);
    const int32_t *c = w->component + start;
    for (int t = 0; t < m; t++) {
        mean_of[t] = w->means + c[t] * w->d;
        spread_of[t] = w->form == FP_DIAGONAL_SPREAD ? w->spreads + c[t] * w->d : NULL;
        spreads[t] = w->form == FP_ISOTROPIC_SPREAD ? w->spreads[c[t]] : 1.0;
    }
    for (long i = 0; i < w->d; i++) {
        for (int t = 0; t < m; t++)
            means[t] = mean_of[t][i];
        if (w->form == FP_DIAGONAL_SPREAD)
            for (int t = 0; t < m; t++)
                spreads[t] = spread_of[t][i];
        const double *z = w->z + i * w->n + start;
        double *x = w->x + i * w->n + start;
#pragma GCC ivdep
        for (int t = 0; t < m; t++)
            x[t] = means[t] + spreads[t] * z[t];
    }
}

static void FP_NAME(fp_affine_map_run)(const fp_affine_map *w, long start, long stop)
{
    const long c = w->component[start], d = w->d;
    const double alone = w->form == FP_ISOTROPIC_SPREAD ? w->spreads[c] : 1.0;
    for (long i = 0; i < d; i++)
        FP_NAME(fp_affine_map_row)(w->means[c * d + i], w->form == FP_DIAGONAL_SPREAD ? w->spreads[c * d + i] : alone,
                              w->z + i * w->n, w->x + i * w->n, start, stop);
}

static void FP_NAME(fp_affine_map_columns)(const fp_affine_map *w)
{
    long pending = 0; /* columns of short runs before the current one */
    for (long t = 0; t < w->n;) {
        const long stop = FP_NAME(fp_run_end)(w->component, t, w->n);
        if (stop - t >= FP_LONG_RUN) {
            if (pending)
                FP_NAME(fp_affine_map_strip)(w, t - pending, t);
            pending = 0;
            FP_NAME(fp_affine_map_run)(w, t, stop);
            t = stop;
        } else {
            pending++;
            t++;
            if (pending == FP_STRIP) {
                FP_NAME(fp_affine_map_strip)(w, t - pending, t);
                pending = 0;
            }
        }
    }
    if (pending)
        FP_NAME(fp_affine_map_strip)(w, w->n - pending, w->n);
}

/* Rows i to i + 3 of the factor times z, for `parts` vectors of columns. */
FP_INLINE void FP_NAME(fp_factor_tile)(const double *factor, long i, const double *z, long stride, const int parts,
                                       double *x, long n)
{
    FP_DOUBLES sum[4][FP_TILE_PARTS];
    const double *row[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
        row[r] = factor + (i + r) * (i + r + 1) / 2;
#pragma GCC unroll 4
        for (int p = 0; p < parts; p++)
            sum[r][p] = (FP_DOUBLES){0};
    }
    for (long j = 0; j <= i; j++) {
        FP_DOUBLES at[FP_TILE_PARTS];
#pragma GCC unroll 4
        for (int p = 0; p < parts; p++)
            memcpy(&at[p], z + j * stride + FP_WIDTH * p, sizeof at[p]);
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++)
#pragma GCC unroll 4
            for (int p = 0; p < parts; p++)
                sum[r][p] = FP_FMA((FP_DOUBLES){0} + row[r][j], at[p], sum[r][p]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++)
#pragma GCC unroll 4
        for (int p = 0; p < parts; p++) {
#pragma GCC unroll 4
            for (int j = 1; j <= r; j++) {
                FP_DOUBLES at;
                memcpy(&at, z + (i + j) * stride + FP_WIDTH * p, sizeof at);
                sum[r][p] = FP_FMA((FP_DOUBLES){0} + row[r][i + j], at, sum[r][p]);
            }
        }
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++)
#pragma GCC unroll 4
        for (int p = 0; p < parts; p++)
            memcpy(x + (i + r) * n + FP_WIDTH * p, &sum[r][p], sizeof sum[r][p]);
}

/* The factor times `parts` vectors of columns from start on. */
FP_INLINE void FP_NAME(fp_factor_block)(const fp_affine_map *w, const double *factor, long start, const int parts)
{
    const int m = parts * FP_WIDTH;
    const double *z = w->z + start;
    double *x = w->x + start, copied[FP_COPIED_ROWS * FP_TILE_PARTS * FP_WIDTH];
    long stride = w->n, i = w->d;
    if (w->d <= FP_COPIED_ROWS) { /* copied rows are adjacent and do not evict each other from the cache */
        for (long j = 0; j < w->d; j++)
            memcpy(copied + j * m, z + j * stride, sizeof(double) * (size_t)m);
        z = copied;
        stride = m;
    }
    for (; i >= 4; i -= 4)
        FP_NAME(fp_factor_tile)(factor, i - 4, z, stride, parts, x, w->n);
    while (i-- > 0) {
        const double *row = factor + i * (i + 1) / 2;
        for (int t = 0; t < m; t++) {
            double sum = 0.0;
            for (long j = 0; j <= i; j++)
                sum = __builtin_fma(row[j], z[j * stride + t], sum);
            x[i * w->n + t] = sum;
        }
    }
}

/* The factor times one column, by inner products of eight lanes. */
static void FP_NAME(fp_factor_column)(const fp_affine_map *w, const double *factor, long start)
{
    const long d = w->d;
    double copied[FP_COLUMN_ROWS];
    for (long j = 0; j < d && d <= FP_COLUMN_ROWS; j++)
        copied[j] = w->z[j * w->n + start];
    for (long i = d - 1; i >= 0; i--) {
        const double *row = factor + i * (i + 1) / 2;
        double sum = 0.0;
        long j = 0;
        if (d <= FP_COLUMN_ROWS) {
            if (i >= 7) {
                FP_DOUBLES lanes[FP_VECTORS] = {{0}};
                double part[FP_LANES];
                for (; j + FP_LANES <= i + 1; j += FP_LANES)
#pragma GCC unroll 4
                    for (int p = 0; p < FP_VECTORS; p++) {
                        FP_DOUBLES a, b;
                        memcpy(&a, row + j + FP_WIDTH * p, sizeof a);
                        memcpy(&b, copied + j + FP_WIDTH * p, sizeof b);
                        lanes[p] = FP_FMA(a, b, lanes[p]);
                    }
                memcpy(part, lanes, sizeof part);
                sum = fp_lane_sum(part);
            }
            for (; j <= i; j++)
                sum = __builtin_fma(row[j], copied[j], sum);
        } else {
            for (; j <= i; j++)
                sum = __builtin_fma(row[j], w->z[j * w->n + start], sum);
        }
        w->x[i * w->n + start] = sum;
    }
}

static void FP_NAME(fp_factor_columns)(const fp_affine_map *w, const double *factor, long start, long stop)
{
    for (; start + FP_TILE_PARTS * FP_WIDTH <= stop; start += FP_TILE_PARTS * FP_WIDTH)
        FP_NAME(fp_factor_block)(w, factor, start, FP_TILE_PARTS);
    for (; start + FP_LANES <= stop; start += FP_LANES)
        FP_NAME(fp_factor_block)(w, factor, start, FP_VECTORS);
    for (; start < stop; start++)
        FP_NAME(fp_factor_column)(w, factor, start);
}

static void FP_NAME(fp_affine_map_all)(fp_affine_map *w, long factors)
{
    if (w->form == FP_FACTOR_SPREAD) {
        const long size = w->d * (w->d + 1) / 2;
        for (long t = 0, stop; t < w->n; t = stop) {
            stop = factors == 1 ? w->n : FP_NAME(fp_run_end)(w->component, t, w->n);
            FP_NAME(fp_factor_columns)(w, w->spreads + (factors == 1 ? 0 : w->component[t] * size), t, stop);
        }
        w->z = w->x;
    }
    FP_NAME(fp_affine_map_columns)(w);
}
