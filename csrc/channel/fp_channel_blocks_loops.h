/* Loops over blocks of rows; the mathematics is in fp_channel_blocks.h. */

#include "common/fp_lanes_loops.h"

#define FP_CHANNEL_WIDTH 1024 /* number of columns whose accumulators stay in the cache */

FP_INLINE double FP_NAME(fp_larger)(double a, double b)
{
    return a > b ? a : b;
}

FP_INLINE double FP_NAME(fp_smaller)(double a, double b)
{
    return a < b ? a : b;
}

FP_INLINE double FP_NAME(fp_plus)(double a, double b)
{
    return a + b;
}

/* Add eight rows of m columns to the accumulators; group is the index of the first row. best_row holds the group;
 * the row within the group is found at the end of a block. */
#define FP_CHANNEL_EIGHT_ROWS(name, cell)                                                                              \
    static void FP_NAME(name)(ptrdiff_t m, const cell *const *x, const double *w, const double *restrict centre,       \
                              ptrdiff_t group, double *restrict top, double *restrict low, double *restrict best,      \
                              double *restrict high, double *restrict rest, ptrdiff_t *restrict best_row)              \
    {                                                                                                                  \
        const cell *restrict x0 = x[0], *restrict x1 = x[1], *restrict x2 = x[2], *restrict x3 = x[3];                 \
        const cell *restrict x4 = x[4], *restrict x5 = x[5], *restrict x6 = x[6], *restrict x7 = x[7];                 \
        const double w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3], w4 = w[4], w5 = w[5], w6 = w[6], w7 = w[7];           \
        for (ptrdiff_t i = 0; i < m; i++) {                                                                            \
            const double a0 = x0[i], a1 = x1[i], a2 = x2[i], a3 = x3[i];                                               \
            const double a4 = x4[i], a5 = x5[i], a6 = x6[i], a7 = x7[i], c = centre[i];                                \
            const double most = FP_TREE_OF_EIGHT(fp_larger, a0, a1, a2, a3, a4, a5, a6, a7);                        \
            const double least = FP_TREE_OF_EIGHT(fp_smaller, a0, a1, a2, a3, a4, a5, a6, a7);                      \
            const double joint = FP_TREE_OF_EIGHT(fp_larger, w0 * a0, w1 * a1, w2 * a2, w3 * a3, w4 * a4, w5 * a5,  \
                                               w6 * a6, w7 * a7);                                                      \
            const double sum = FP_TREE_OF_EIGHT(fp_plus, w0 * (a0 - c), w1 * (a1 - c), w2 * (a2 - c), w3 * (a3 - c),   \
                                                w4 * (a4 - c), w5 * (a5 - c), w6 * (a6 - c), w7 * (a7 - c));           \
            const double total = high[i] + sum;                                                                        \
            rest[i] += fp_sum_error(high[i], sum, total);                                                              \
            high[i] = total;                                                                                           \
            top[i] = FP_NAME(fp_larger)(most, top[i]);                                                           \
            low[i] = FP_NAME(fp_smaller)(least, low[i]);                                                         \
            best_row[i] = joint > best[i] ? group : best_row[i];                                                       \
            best[i] = FP_NAME(fp_larger)(joint, best[i]);                                                        \
        }                                                                                                              \
    }

#define FP_TREE_OF_EIGHT(f, a, b, c, d, e, g, h, i)                                                                    \
    FP_NAME(f)(FP_NAME(f)(FP_NAME(f)(a, b), FP_NAME(f)(c, d)), FP_NAME(f)(FP_NAME(f)(e, g), FP_NAME(f)(h, i)))

FP_CHANNEL_EIGHT_ROWS(fp_channel_eight_rows_of_doubles, double)
FP_CHANNEL_EIGHT_ROWS(fp_channel_eight_rows_of_floats, float)

FP_INLINE double FP_NAME(fp_channel_cell)(const void *cells, int single, ptrdiff_t at)
{
    return single ? (double)((const float *)cells)[at] : ((const double *)cells)[at];
}

/* One row with pi = 0: only its extremes count. */
static void FP_NAME(fp_channel_extremes)(ptrdiff_t m, const void *cells, int single, ptrdiff_t at, double *restrict top,
                                    double *restrict low)
{
    for (ptrdiff_t i = 0; i < m; i++) {
        const double x = FP_NAME(fp_channel_cell)(cells, single, at + i);
        top[i] = FP_NAME(fp_larger)(x, top[i]);
        low[i] = FP_NAME(fp_smaller)(x, low[i]);
    }
}

static void FP_NAME(fp_channel_column_statistics)(ptrdiff_t n, ptrdiff_t m, const void *cells, int single,
                                                  const double *prior, const double *centre, ptrdiff_t first,
                                                  fp_channel_columns *out)
{
    for (ptrdiff_t i = 0; i < m; i++) {
        out->top[i] = out->other_top[i] = out->best[i] = -1.0;
        out->low[i] = out->other_low[i] = INFINITY;
        out->high[i] = out->rest[i] = 0.0;
        out->best_row[i] = -1;
    }
    for (ptrdiff_t at = 0; at < m; at += FP_CHANNEL_WIDTH) {
        const ptrdiff_t width = m - at < FP_CHANNEL_WIDTH ? m - at : FP_CHANNEL_WIDTH;
        ptrdiff_t d = 0;
        while (d < n) {
            const void *x[FP_CHANNEL_ROWS];
            double w[FP_CHANNEL_ROWS];
            const ptrdiff_t group = d;
            int held = 0;
            for (; d < n && held < FP_CHANNEL_ROWS; d++) {
                const ptrdiff_t start = d * m + at;
                if (prior[d] > 0.0) {
                    x[held] = single ? (const void *)((const float *)cells + start)
                                     : (const void *)((const double *)cells + start);
                    w[held++] = prior[d];
                } else {
                    FP_NAME(fp_channel_extremes)(width, cells, single, start, out->other_top + at, out->other_low + at);
                }
            }
            if (held == 0)
                break;
            for (int k = held; k < FP_CHANNEL_ROWS; k++) { /* repeat the last row with weight 0 */
                x[k] = x[held - 1];
                w[k] = 0.0;
            }
            if (single)
                FP_NAME(fp_channel_eight_rows_of_floats)(width, (const float *const *)x, w, centre + at, group,
                                                         out->top + at, out->low + at, out->best + at, out->high + at,
                                                         out->rest + at, out->best_row + at);
            else
                FP_NAME(fp_channel_eight_rows_of_doubles)(width, (const double *const *)x, w, centre + at, group,
                                                          out->top + at, out->low + at, out->best + at, out->high + at,
                                                          out->rest + at, out->best_row + at);
        }
    }
    for (ptrdiff_t i = 0; i < m; i++) {
        ptrdiff_t d = out->best_row[i];
        if (d < 0)
            continue;
        while (d < n - 1
               && !(prior[d] > 0.0 && prior[d] * FP_NAME(fp_channel_cell)(cells, single, d * m + i) == out->best[i]))
            d++;
        out->best_row[i] = first + d;
    }
}

/* Merge consecutive blocks, the earlier one first. */
static void FP_NAME(fp_channel_merge_columns)(ptrdiff_t m, fp_channel_columns *all, const fp_channel_columns *one)
{
    for (ptrdiff_t i = 0; i < m; i++) {
        all->top[i] = FP_NAME(fp_larger)(one->top[i], all->top[i]);
        all->low[i] = FP_NAME(fp_smaller)(one->low[i], all->low[i]);
        all->other_top[i] = FP_NAME(fp_larger)(one->other_top[i], all->other_top[i]);
        all->other_low[i] = FP_NAME(fp_smaller)(one->other_low[i], all->other_low[i]);
        all->best_row[i] = one->best[i] > all->best[i] ? one->best_row[i] : all->best_row[i];
        all->best[i] = FP_NAME(fp_larger)(one->best[i], all->best[i]);
        const double high = all->high[i], sum = one->high[i], total = high + sum;
        all->rest[i] += fp_sum_error(high, sum, total) + one->rest[i];
        all->high[i] = total;
    }
}

/* n columns of one row: the terms of its divergence, and the posterior. */
FP_INLINE void FP_NAME(fp_channel_divergence_terms)(ptrdiff_t n, const double *restrict x, double prior,
                                                    const double *restrict centre, const double *restrict delta,
                                                    const double *restrict inverse, const double *restrict weight,
                                                    double *restrict term, double *restrict after)
{
    double base[FP_CHANNEL_PART], ratio[FP_CHANNEL_PART], part[FP_CHANNEL_PART];
    for (ptrdiff_t at = 0; at < n; at += FP_CHANNEL_PART) {
        const ptrdiff_t m = n - at < FP_CHANNEL_PART ? n - at : FP_CHANNEL_PART;
        const double *restrict cell = x + at, *restrict c = centre + at, *restrict d = delta + at;
        const double *restrict q = inverse + at, *restrict w = weight + at;
        double *restrict to = term + at, *restrict own = after + at;
        for (ptrdiff_t i = 0; i < m; i++) {
            const double r = cell[i] * q[i], t = ((cell[i] - c[i]) - d[i]) * q[i];
            ratio[i] = r;
            own[i] = prior * r;
            base[i] = fp_channel_psi_base(r, t, &part[i]);
        }
        for (ptrdiff_t i = 0; i < m; i++)
            to[i] = w[i] * (base[i] + fp_channel_psi_rest(ratio[i], part[i]));
    }
}

/* The posterior without the divergence. */
static void FP_NAME(fp_channel_posterior)(ptrdiff_t n, const double *restrict x, double prior,
                                          const double *restrict inverse, double *restrict after)
{
    for (ptrdiff_t i = 0; i < n; i++)
        after[i] = prior * (x[i] * inverse[i]);
}

/* Of divergence, shift and posterior, those that are NULL are not computed. */
static void FP_NAME(fp_channel_row_divergences)(ptrdiff_t n, ptrdiff_t m, const void *cells, int single,
                                                const double *prior, const fp_channel_output *output_law,
                                                double *divergence, double *sum, double *shift, void *posterior,
                                                int posterior_single)
{
    double loaded[FP_CHANNEL_TILE], term[FP_CHANNEL_TILE], after[FP_CHANNEL_TILE];
    for (ptrdiff_t d = 0; d < n; d++) {
        fp_accumulator k = {0.0, 0.0}, mass = {0.0, 0.0}, moved = {0.0, 0.0};
        for (ptrdiff_t at = 0; at < m; at += FP_CHANNEL_TILE) {
            const ptrdiff_t width = m - at < FP_CHANNEL_TILE ? m - at : FP_CHANNEL_TILE, start = d * m + at;
            const double *x = (const double *)cells + start;
            double *to = posterior && !posterior_single ? (double *)posterior + start : after;
            if (single) {
                const float *restrict f = (const float *)cells + start;
                for (ptrdiff_t i = 0; i < width; i++)
                    loaded[i] = f[i];
                x = loaded;
            }
            if (divergence) {
                FP_NAME(fp_channel_divergence_terms)(width, x, prior[d], output_law->centre + at,
                                                     output_law->delta + at, output_law->inverse + at,
                                                     output_law->weight + at, term, to);
                fp_accumulator_add(&k, FP_NAME(fp_ordered_sum)(width, term));
            } else if (posterior) {
                FP_NAME(fp_channel_posterior)(width, x, prior[d], output_law->inverse + at, to);
            }
            fp_accumulator_add(&mass, FP_NAME(fp_ordered_sum)(width, x));
            if (posterior && posterior_single) {
                float *restrict out = (float *)posterior + start;
                for (ptrdiff_t i = 0; i < width; i++)
                    out[i] = (float)after[i];
            }
            if (shift) {
                for (ptrdiff_t i = 0; i < width; i++)
                    term[i] = output_law->law[at + i]
                              * (((x[i] - output_law->centre[at + i]) - output_law->delta[at + i])
                                 * output_law->inverse[at + i]);
                fp_accumulator_add(&moved, FP_NAME(fp_ordered_sum)(width, term));
            }
        }
        if (divergence)
            divergence[d] = fp_accumulator_value(&k);
        sum[d] = fp_accumulator_value(&mass);
        if (shift)
            shift[d] = fp_accumulator_value(&moved);
    }
}

/* Hockey-sticks of each of n rows over the row `other`, and of it over them, at some levels.  With a centre, `other` is
 * centre + delta, whose sum is rounded, and differences are taken from the parts. */
static void FP_NAME(fp_channel_row_hockey_sticks)(ptrdiff_t m, const double *restrict x, const double *restrict other,
                                   const double *restrict centre, const double *restrict delta, const double *excess,
                                   double *forward, double *backward)
{
    double gap[FP_CHANNEL_TILE], over[FP_CHANNEL_TILE], under[FP_CHANNEL_TILE];
    fp_accumulator sums[2 * FP_CHANNEL_LEVELS] = {{0.0, 0.0}};
    for (ptrdiff_t at = 0; at < m; at += FP_CHANNEL_TILE) {
        const ptrdiff_t width = m - at < FP_CHANNEL_TILE ? m - at : FP_CHANNEL_TILE;
        const double *restrict p = x + at, *restrict r = other + at;
        if (centre)
            for (ptrdiff_t i = 0; i < width; i++)
                gap[i] = (p[i] - centre[at + i]) - delta[at + i];
        else
            for (ptrdiff_t i = 0; i < width; i++)
                gap[i] = p[i] - r[i];
        for (int e = 0; e < FP_CHANNEL_LEVELS; e++) {
            const double a = excess[e];
            for (ptrdiff_t i = 0; i < width; i++) {
                const double f = gap[i] - a * r[i], b = -gap[i] - a * p[i];
                over[i] = f > 0.0 ? f : 0.0;
                under[i] = b > 0.0 ? b : 0.0;
            }
            fp_accumulator_add(&sums[2 * e], FP_NAME(fp_ordered_sum)(width, over));
            fp_accumulator_add(&sums[2 * e + 1], FP_NAME(fp_ordered_sum)(width, under));
        }
    }
    for (int e = 0; e < FP_CHANNEL_LEVELS; e++) {
        forward[e] = fp_accumulator_value(&sums[2 * e]);
        backward[e] = fp_accumulator_value(&sums[2 * e + 1]);
    }
}

/* Keep the largest divergence in both directions at each level. */
static void FP_NAME(fp_channel_hockey_sticks)(ptrdiff_t n, ptrdiff_t m, const double *one, const double *other,
                                     const double *centre, const double *delta, ptrdiff_t levels, const double *excess,
                                     double *forward, double *backward)
{
    double a[FP_CHANNEL_LEVELS], f[FP_CHANNEL_LEVELS], b[FP_CHANNEL_LEVELS];
    for (ptrdiff_t d = 0; d < n; d++)
        for (ptrdiff_t at = 0; at < levels; at += FP_CHANNEL_LEVELS) {
            const ptrdiff_t many = levels - at < FP_CHANNEL_LEVELS ? levels - at : FP_CHANNEL_LEVELS;
            for (ptrdiff_t e = 0; e < FP_CHANNEL_LEVELS; e++)
                a[e] = excess[at + (e < many ? e : 0)];
            FP_NAME(fp_channel_row_hockey_sticks)(m, one + d * m, other, centre, delta, a, f, b);
            for (ptrdiff_t e = 0; e < many; e++) {
                forward[at + e] = FP_NAME(fp_larger)(f[e], forward[at + e]);
                backward[at + e] = FP_NAME(fp_larger)(b[e], backward[at + e]);
            }
        }
}

#undef FP_CHANNEL_EIGHT_ROWS
#undef FP_CHANNEL_WIDTH
