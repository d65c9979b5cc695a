/* x = mean + spread z for columns sorted by component; no include guard, included once per instruction set.
 *
 * Row i of z and x holds coordinate i of n samples.  A run of columns of one component is worked row by row; columns
 * of short runs are gathered, FP_STRIP at a time, so that rows are vectors again.  x may be z.
 */
#if defined(__FMA__)
#define FP_MULTIPLY_ADD(a, b, c) __builtin_fma(a, b, c)
#else
#define FP_MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif

/* one row over the columns [start, stop) of one component */
FP_INLINE void FP_NAME(fp_place_row)(double mean, double spread, const double *z, double *x, long start, long stop)
{
#pragma GCC ivdep
    for (long t = start; t < stop; t++)
        x[t] = mean + spread * z[t];
}

/* columns [start, stop), at most FP_STRIP, of any components */
static void FP_NAME(fp_place_strip)(const fp_place *w, long start, long stop)
{
    double means[FP_STRIP], spreads[FP_STRIP];
    const int m = (int)(stop - start);
    const int32_t *c = w->component + start;
    for (int t = 0; t < m; t++)
        spreads[t] = w->by == FP_BY_COMPONENT ? w->spreads[c[t]] : 1.0;
    for (long i = 0; i < w->d; i++) {
        for (int t = 0; t < m; t++)
            means[t] = w->means[c[t] * w->d + i];
        if (w->by == FP_BY_COORDINATE)
            for (int t = 0; t < m; t++)
                spreads[t] = w->spreads[c[t] * w->d + i];
        const double *z = w->z + i * w->n + start;
        double *x = w->x + i * w->n + start;
#pragma GCC ivdep
        for (int t = 0; t < m; t++)
            x[t] = means[t] + spreads[t] * z[t];
    }
}

static void FP_NAME(fp_place_run)(const fp_place *w, long start, long stop)
{
    const long c = w->component[start], d = w->d;
    const double alone = w->by == FP_BY_COMPONENT ? w->spreads[c] : 1.0;
    for (long i = 0; i < d; i++)
        FP_NAME(fp_place_row)(w->means[c * d + i], w->by == FP_BY_COORDINATE ? w->spreads[c * d + i] : alone,
                              w->z + i * w->n, w->x + i * w->n, start, stop);
}

static void FP_NAME(fp_place_columns)(const fp_place *w)
{
    long waiting = 0; /* columns before the current one, of short runs */
    for (long t = 0; t < w->n;) {
        const long stop = fp_run_end(w->component, t, w->n);
        if (stop - t >= FP_LONG_RUN) {
            if (waiting)
                FP_NAME(fp_place_strip)(w, t - waiting, t);
            waiting = 0;
            FP_NAME(fp_place_run)(w, t, stop);
            t = stop;
        } else {
            waiting++;
            t++;
            if (waiting == FP_STRIP) {
                FP_NAME(fp_place_strip)(w, t - waiting, t);
                waiting = 0;
            }
        }
    }
    if (waiting)
        FP_NAME(fp_place_strip)(w, w->n - waiting, w->n);
}

/* columns [start, start + m) of the lower factor times z, from the last row up, so that x may be z; m <= FP_BLOCK */
FP_INLINE void FP_NAME(fp_factor_block)(const fp_place *w, const double *factor, long start, const int m)
{
    const long n = w->n;
    for (long i = w->d; i > 0;) {
        const int rows = i >= 4 ? 4 : (int)i;
        double sum[4][FP_BLOCK] = {{0}};
        i -= rows;
        for (int r = 0; r < rows; r++) {
            const double *row = factor + (i + r) * (i + r + 1) / 2;
            for (long j = 0; j <= i + r; j++)
                for (int t = 0; t < m; t++)
                    sum[r][t] = FP_MULTIPLY_ADD(row[j], w->z[j * n + start + t], sum[r][t]);
        }
        for (int r = 0; r < rows; r++)
            for (int t = 0; t < m; t++)
                w->x[(i + r) * n + start + t] = sum[r][t];
    }
}

static void FP_NAME(fp_factor_columns)(const fp_place *w, const double *factor, long start, long stop)
{
    for (; start + FP_BLOCK <= stop; start += FP_BLOCK)
        FP_NAME(fp_factor_block)(w, factor, start, FP_BLOCK);
    if (start < stop)
        FP_NAME(fp_factor_block)(w, factor, start, (int)(stop - start));
}
#undef FP_MULTIPLY_ADD
