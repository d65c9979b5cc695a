/* Quantities of channels; the mathematics is in fp_channel_quantities.h. No include guard. */
/* bounds: proved - rounding of sums of rows, of log ratios, of divergences and of cells given as logarithms: theorems
 * 7.13 and 7.14 of docs/proofs/finite_capacity.md */

/* LDP: the largest excess of the largest cell of a column over its smallest, relative. */
static void FP_NAME(fp_channel_ldp)(const fp_channel_totals *z, int on_support, double *out)
{
    const double *top = z->extremes[0], *low = z->extremes[1], *more = z->extremes[2], *less = z->extremes[3];
    double value = 0.0, error;
    if (z->log_scale) {
        for (ptrdiff_t i = 0; i < z->m; i++) {
            const double high = on_support || top[i] > more[i] ? top[i] : more[i];
            const double small = on_support || low[i] < less[i] ? low[i] : less[i];
            const double drop = high > -INFINITY ? high - small : 0.0;
            value = drop > value ? drop : value;
        }
        error = 2.0 * FP_U * value + 2.0 * z->log_error;
    } else {
        double most = 0.0, vast = 0.0;
        for (ptrdiff_t i = 0; i < z->m; i++) {
            const double high = on_support || top[i] > more[i] ? top[i] : more[i];
            const double small = on_support || low[i] < less[i] ? low[i] : less[i];
            const double excess = high > 0.0 ? (high - small) / small : 0.0;
            if (excess == INFINITY && small > 0.0) { /* the quotient of the doubles overflows, their logarithm does not */
                const double ratio = fp_log(high) - fp_log(small);
                vast = ratio > vast ? ratio : vast;
            } else {
                most = excess > most ? excess : most;
            }
        }
        value = fp_log1p(most);
        value = vast > value ? vast : value;
        error = 8.0 * FP_U * value;
    }
    error += value > 0.0 ? 2.1 * z->row_gap : 0.0; /* equal rows are equal whatever their sum is */
    if (value == INFINITY)
        fp_set_bracket(out, value, value, value);
    else
        fp_set_bracket(out, value, value - error, value + error);
}

/* One side of MBP: max of sign log r over the extreme cells of the columns. */
static void FP_NAME(fp_channel_bayesian_side)(const fp_channel_totals *z, int lower_side, double *out)
{
    double side[FP_CHANNEL_TILE], under[FP_CHANNEL_TILE], over[FP_CHANNEL_TILE];
    double value = 0.0, lower = 0.0, upper = 0.0;
    const double sign = lower_side ? -1.0 : 1.0, gap = 2.1 * z->row_gap + 1.1 * z->prior_gap;
    for (ptrdiff_t at = 0; at < z->m; at += FP_CHANNEL_TILE) {
        const ptrdiff_t width = z->m - at < FP_CHANNEL_TILE ? z->m - at : FP_CHANNEL_TILE;
        const double *restrict x = (lower_side ? z->low : z->top) + at, *restrict c = z->centre + at;
        const double *restrict d = z->delta + at, *restrict q = z->q + at, *restrict spread = z->spread + at;
        const double *restrict stored = z->log_scale ? z->extremes[lower_side] + at : x;
        const double *restrict scale = z->log_scale ? z->log_scale + at : x;
        for (ptrdiff_t i = 0; i < width; i++) {
            const double mass = q[i] > 0.0 ? q[i] : 1.0, excess = ((x[i] - c[i]) - d[i]) / mass;
            const int near = fabs(excess) < 0.5;
            const double log_mass = fp_log(mass), log_excess = fp_log1p(near ? excess : 0.0);
            /* cells that are logarithms are used as stored: far below its column, the scaled cell is subnormal or 0 */
            const double log_cell = z->log_scale ? stored[i] - scale[i] : fp_log(x[i]);
            const double ratio = near ? log_excess : log_cell - log_mass;
            const double size = fabs(log_mass) + (ratio > -INFINITY ? fabs(ratio) : 0.0);
            const double close = 2.1 * (16.0 * FP_U * (spread[i] + fabs(x[i] - c[i])) / mass
                                        + 4.0 * FP_U * fabs(excess));
            const double far = 16.0 * FP_U * (spread[i] + mass) / mass + 6.0 * FP_U * (size + 8.0);
            const double error = near ? close : far, capped = error < 1e300 ? error : 1e300;
            side[i] = q[i] > 0.0 ? sign * ratio : -1.0;
            under[i] = side[i] - capped;
            over[i] = q[i] > 0.0 ? side[i] + capped : -1.0;
        }
        for (ptrdiff_t i = 0; i < width; i++) {
            value = side[i] > value ? side[i] : value;
            lower = under[i] > lower ? under[i] : lower;
            upper = over[i] > upper ? over[i] : upper;
        }
    }
    if (value == INFINITY)
        fp_set_bracket(out, value, value, value);
    else
        fp_set_bracket(out, value, value > 0.0 ? lower - gap : 0.0, upper + gap);
}

/* Chance of the best guess after the release, before it, and the log of their ratio: as if the row of the best guess
 * before it summed to 1. */
static void FP_NAME(fp_channel_vulnerability)(const fp_channel_totals *z, double *out)
{
    fp_accumulator sum = {0.0, 0.0}, gain = {0.0, 0.0}, changed = {0.0, 0.0};
    for (ptrdiff_t i = 0; i < z->m; i++) {
        const double factor = z->factor ? z->factor[i] : 1.0, first = z->before * z->guess_row[i];
        fp_accumulator_add(&sum, z->best[i] * factor);
        fp_accumulator_add(&gain, (z->best[i] - first) * factor);
        /* columns where the guess changes: two products are rounded */
        fp_accumulator_add(&changed, z->best[i] > first ? z->best[i] * factor : 0.0);
    }
    const double gap = 2.1 * z->row_gap + 1.1 * z->prior_gap, unit = FP_U;
    const double all = fp_accumulator_value(&sum), after = all < 1.0 ? all : 1.0;
    const double rise = fp_accumulator_value(&gain) / z->before, leakage = fp_log1p(rise > 0.0 ? rise : 0.0);
    double error = after * (4.0 * unit + z->scaling + z->row_sum_error + gap);
    fp_set_bracket(out, after, after - error, after + error < 1.0 ? after + error : 1.0);
    error = z->before * (2.0 * unit + gap);
    fp_set_bracket(out + 3, z->before, z->before - error, z->before + error < 1.0 ? z->before + error : 1.0);
    error = (10.0 * unit + z->scaling) * leakage + 2.0 * unit * fp_accumulator_value(&changed) / z->before
            + z->row_sum_error + gap;
    fp_set_bracket(out + 6, leakage, leakage - error, leakage + error);
}

/* log(1 + sum of the largest cells less those of one row): all rows sum to 1, so small leakages keep their digits. */
static void FP_NAME(fp_channel_maximal_leakage)(const fp_channel_totals *z, double *out)
{
    const double *top = z->extremes[0], *row = z->guess_cells;
    double scaling = 0.0, bits = 1.0;
    fp_accumulator sum = {0.0, 0.0};
    for (ptrdiff_t i = 0; i < z->m; i++) {
        double excess = top[i] - row[i];
        if (z->log_scale) {
            const int near = row[i] > -INFINITY && excess < 1.0;
            excess = near ? fp_exp(row[i]) * fp_expm1(excess) : fp_exp(top[i]) - fp_exp(row[i]);
            const double size = top[i] > -INFINITY ? fabs(top[i]) : 0.0;
            scaling = size > scaling ? size : scaling;
        }
        fp_accumulator_add(&sum, excess);
    }
    for (ptrdiff_t m = z->m; m > 1; m /= 2)
        bits += 1.0;
    const double value = fp_log1p(fp_accumulator_value(&sum));
    const double relative = (40.0 + bits) * FP_U + (z->log_scale ? 4.0 * FP_U * (8.0 + scaling) : 0.0);
    const double error = value * relative + 2.1 * z->row_gap + 2.0 * z->row_sum_error;
    fp_set_bracket(out, value, value - error, value + error);
}

/* Maximal leakage of a channel (n, m) of doubles, all of whose rows count; the workspace has m numbers. */
static void FP_NAME(fp_channel_maximal_leakage_of_cells)(ptrdiff_t n, ptrdiff_t m, const double *cells, double row_gap,
                                                         double *workspace, double *out)
{
    memcpy(workspace, cells, (size_t)m * sizeof *workspace);
    for (ptrdiff_t d = 1; d < n; d++)
        for (ptrdiff_t i = 0; i < m; i++)
            workspace[i] = FP_NAME(fp_larger)(cells[d * m + i], workspace[i]);
    const fp_channel_totals totals = {.m = m, .extremes = {workspace}, .guess_cells = cells, .row_gap = row_gap};
    FP_NAME(fp_channel_maximal_leakage)(&totals, out);
}

static void FP_NAME(fp_channel_column_quantities)(const fp_channel_totals *z, int wanted, double *out)
{
    if (FP_WANTS(wanted, FP_LDP_EPSILON))
        FP_NAME(fp_channel_ldp)(z, 0, out + 3 * FP_LDP_EPSILON);
    if (FP_WANTS(wanted, FP_LDP_ON_SUPPORT))
        FP_NAME(fp_channel_ldp)(z, 1, out + 3 * FP_LDP_ON_SUPPORT);
    if (FP_WANTS(wanted, FP_XI_PLUS))
        FP_NAME(fp_channel_bayesian_side)(z, 0, out + 3 * FP_XI_PLUS);
    if (FP_WANTS(wanted, FP_XI_MINUS))
        FP_NAME(fp_channel_bayesian_side)(z, 1, out + 3 * FP_XI_MINUS);
    if (FP_WANTS(wanted, FP_BAYES_VULNERABILITY) || FP_WANTS(wanted, FP_PRIOR_VULNERABILITY)
        || FP_WANTS(wanted, FP_MIN_ENTROPY_LEAKAGE))
        FP_NAME(fp_channel_vulnerability)(z, out + 3 * FP_BAYES_VULNERABILITY);
    if (FP_WANTS(wanted, FP_MAXIMAL_LEAKAGE))
        FP_NAME(fp_channel_maximal_leakage)(z, out + 3 * FP_MAXIMAL_LEAKAGE);
}

/* Error of a divergence by rounding and by row sums other than 1, of this row and of those that make up q. */
FP_INLINE double FP_NAME(fp_channel_divergence_error)(const fp_channel_row_totals *z, double k)
{
    return (200.0 * FP_U + 4.0 * z->relative_error) * k + 64.0 * FP_U * sqrt(k * z->energy)
           + (k > 0.0 ? 1e-300 : 0.0) + 2.0 * fp_divergence_gap_error(k, z->row_gap);
}

/* Mutual information from the sum of prior times divergence. */
FP_INLINE void FP_NAME(fp_channel_information)(const fp_channel_row_totals *z, double sum, double *out)
{
    const double mean = sum / z->total, error = FP_NAME(fp_channel_divergence_error)(z, mean);
    const double gap = 2.2 * z->prior_gap, sure = mean > error ? mean - error : 0.0, unit = FP_U;
    fp_set_bracket(out, mean, sure * (1.0 - gap - 4.0 * unit), (mean + error) * (1.0 + gap + 4.0 * unit) + gap * gap);
}

/* The largest divergence of a row, given its bounds for a prior of sum 1. */
FP_INLINE void FP_NAME(fp_channel_largest_divergence)(const fp_channel_row_totals *z, double largest, double low,
                                                      double high, double *out)
{
    fp_set_bracket(out, largest, low - 1.1 * z->prior_gap, high + 1.1 * z->prior_gap);
}

/* Mutual information, and the largest divergence of a row. */
static void FP_NAME(fp_channel_row_quantities)(const fp_channel_row_totals *z, double *out)
{
    fp_accumulator sum = {0.0, 0.0};
    double largest = 0.0, low = 0.0, high = 0.0;
    for (ptrdiff_t d = 0; d < z->n; d++) {
        const double k = z->divergence[d], error = FP_NAME(fp_channel_divergence_error)(z, k);
        fp_accumulator_add(&sum, z->prior[d] * k);
        largest = k > largest ? k : largest;
        low = k - error > low ? k - error : low;
        high = k + error > high ? k + error : high;
    }
    FP_NAME(fp_channel_information)(z, fp_accumulator_value(&sum), out);
    FP_NAME(fp_channel_largest_divergence)(z, largest, low, high, out + 3);
}

/* Column statistics about a centre; with them delta, q and the spread. */
static void FP_NAME(fp_channel_statistics_about)(ptrdiff_t n, ptrdiff_t m, const void *cells, int single,
                                                 const double *prior, double total, const double *centre,
                                                 fp_channel_columns *columns, double *delta, double *q, double *spread)
{
    FP_NAME(fp_channel_column_statistics)(n, m, cells, single, prior, centre, 0, columns);
    for (ptrdiff_t i = 0; i < m; i++) {
        const double span = columns->top[i] - columns->low[i];
        delta[i] = (columns->high[i] + columns->rest[i]) / total;
        q[i] = fp_channel_column_mass(centre[i], delta[i], span, &spread[i]);
    }
}

/* The first pass through a channel of plain cells in one block. Returns 1 where a column is so small that it has to be
 * scaled, unless only extremes are asked for; else 0. The arrays are those of the workspace. */
static int FP_NAME(fp_channel_first_pass)(ptrdiff_t n, ptrdiff_t m, const void *cells, int single, const double *prior,
                                          int extremes_only, double *workspace, fp_channel_pass *z)
{
    double *next = workspace;
    fp_channel_columns *columns = &z->columns;
    columns->top = next, columns->low = next += m, columns->best = next += m, columns->high = next += m;
    columns->rest = next += m, columns->other_top = next += m, columns->other_low = next += m;
    columns->best_row = (ptrdiff_t *)(next += m);
    z->centre = next += m, z->delta = next += m, z->q = next += m, z->spread = next += m, z->term = next += m;
    z->inverse = next += m, z->guess = next += m, z->divergence = next += m, z->sums = next += n;
    ptrdiff_t first = n;
    fp_accumulator mass = {0.0, 0.0};
    z->likeliest = 0;
    for (ptrdiff_t d = 0; d < n; d++) {
        fp_accumulator_add(&mass, prior[d]);
        first = first == n && prior[d] > 0.0 ? d : first;
        z->likeliest = prior[d] > prior[z->likeliest] ? d : z->likeliest;
    }
    z->total = fp_accumulator_value(&mass);
    for (ptrdiff_t i = 0; i < m; i++)
        z->centre[i] = INFINITY;
    for (ptrdiff_t d = first; d < n && d < first + FP_SAMPLE_ROWS; d++)
        if (prior[d] > 0.0)
            for (ptrdiff_t i = 0; i < m; i++) {
                const double x = FP_NAME(fp_channel_cell)(cells, single, d * m + i);
                z->centre[i] = x < z->centre[i] ? x : z->centre[i];
            }
    for (int round = 0; round < 2; round++) {
        int tiny = 0, far = 0;
        FP_NAME(fp_channel_statistics_about)(n, m, cells, single, prior, z->total, z->centre, columns, z->delta, z->q,
                                             z->spread);
        for (ptrdiff_t i = 0; i < m; i++) {
            tiny |= columns->top[i] > 0.0 && z->q[i] < FP_TINY_COLUMN;
            far |= z->centre[i] > 2.0 * z->q[i];
        }
        if (extremes_only || !(tiny || far))
            return 0;
        if (tiny)
            return 1;
        memcpy(z->centre, columns->low, (size_t)m * sizeof *z->centre); /* the sample rows gave a bad centre */
    }
    return 0;
}

/* The wanted quantities of a channel of plain cells in one block: rows of value, lower and upper bound.
 *
 * Returns 0, or 1 where a column has to be scaled; then nothing is written. */
static int FP_NAME(fp_channel_quantities_of_cells)(ptrdiff_t n, ptrdiff_t m, const void *cells, int single,
                                                   const double *prior, double row_gap, double prior_gap, int wanted,
                                                   double *workspace, double *out)
{
    fp_channel_pass z;
    if (FP_NAME(fp_channel_first_pass)(n, m, cells, single, prior, !(wanted & ~FP_NEEDS_EXTREMES), workspace, &z))
        return 1;
    for (ptrdiff_t i = 0; i < m; i++)
        z.guess[i] = FP_NAME(fp_channel_cell)(cells, single, z.likeliest * m + i);
    const fp_channel_columns *columns = &z.columns;
    const fp_channel_totals totals = {
        .m = m, .top = columns->top, .low = columns->low, .best = columns->best, .centre = z.centre, .delta = z.delta,
        .q = z.q, .spread = z.spread,
        .extremes = {columns->top, columns->low, columns->other_top, columns->other_low}, .guess_row = z.guess,
        .guess_cells = z.guess, .before = prior[z.likeliest], .row_gap = row_gap, .prior_gap = prior_gap,
    };
    FP_NAME(fp_channel_column_quantities)(&totals, wanted, out);
    if (wanted & FP_NEEDS_ROWS) {
        for (ptrdiff_t i = 0; i < m; i++) {
            z.inverse[i] = z.q[i] > 0.0 ? 1.0 / z.q[i] : 0.0;
            z.term[i] = fp_channel_column_energy(z.q[i], z.spread[i]);
        }
        const fp_channel_output output = {z.centre, z.delta, z.inverse, z.q, NULL};
        FP_NAME(fp_channel_row_divergences)(n, m, cells, single, prior, &output, z.divergence, z.sums, NULL, NULL, 0);
        for (ptrdiff_t d = 0; d < n; d++)
            z.divergence[d] = prior[d] > 0.0 && z.divergence[d] > 0.0 ? z.divergence[d] : 0.0;
        const fp_channel_row_totals rows = {n, prior, z.divergence, z.total, fp_accurate_sum(m, z.term), row_gap,
                                            prior_gap, 0.0};
        FP_NAME(fp_channel_row_quantities)(&rows, out + 3 * FP_CD_LMIP);
    }
    return 0;
}

/* The columns of a channel of plain cells in one block: centre, delta, q, spread and top - low, m numbers each, and the
 * likeliest secret after each release, -1 for one that never occurs. Returns 1 where a column has to be scaled. */
static int FP_NAME(fp_channel_columns_of_cells)(ptrdiff_t n, ptrdiff_t m, const void *cells, int single,
                                                const double *prior, double *workspace, double *out,
                                                ptrdiff_t *map_secret)
{
    fp_channel_pass z;
    if (FP_NAME(fp_channel_first_pass)(n, m, cells, single, prior, 0, workspace, &z))
        return 1;
    for (ptrdiff_t i = 0; i < m; i++) {
        out[i] = z.centre[i];
        out[m + i] = z.delta[i];
        out[2 * m + i] = z.q[i];
        out[3 * m + i] = z.spread[i];
        out[4 * m + i] = z.columns.top[i] - z.columns.low[i];
        map_secret[i] = z.q[i] > 0.0 ? z.columns.best_row[i] : -1;
    }
    return 0;
}

/* The rows of positive probability as doubles, one after another; returns their number. */
static ptrdiff_t FP_NAME(fp_channel_support_rows)(ptrdiff_t n, ptrdiff_t m, const void *cells, int single,
                                                  const double *prior, double *rows)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t d = 0; d < n; d++)
        if (!prior || prior[d] > 0.0) {
            for (ptrdiff_t i = 0; i < m; i++)
                rows[count * m + i] = FP_NAME(fp_channel_cell)(cells, single, d * m + i);
            count++;
        }
    return count;
}

/* The largest hockey-stick divergence of two rows at each level, over all rows or, with a prior, those on the support.
 * The workspace has n m + 2 levels numbers. */
static void FP_NAME(fp_channel_ldp_curve)(ptrdiff_t n, ptrdiff_t m, const void *cells, int single, const double *prior,
                                          ptrdiff_t levels, const double *excess, double *workspace, double *out)
{
    double *forward = workspace, *backward = workspace + levels, *rows = backward + levels;
    const ptrdiff_t count = FP_NAME(fp_channel_support_rows)(n, m, cells, single, prior, rows);
    memset(forward, 0, 2 * (size_t)levels * sizeof *forward);
    for (ptrdiff_t d = 1; d < count; d++)
        FP_NAME(fp_channel_hockey_sticks)(d, m, rows, rows + d * m, NULL, NULL, levels, excess, forward, backward);
    for (ptrdiff_t e = 0; e < levels; e++)
        out[e] = FP_NAME(fp_larger)(forward[e], backward[e]);
}

/* The largest hockey-stick divergences of a row on the support over q and of q over it; sums receives those of the spread
 * and of top - low. Returns 1 where a column has to be scaled. The workspace has n m numbers beside that of quantities. */
static int FP_NAME(fp_channel_lip_curve)(ptrdiff_t n, ptrdiff_t m, const void *cells, int single, const double *prior,
                                         ptrdiff_t levels, const double *excess, double *workspace, double *over,
                                         double *under, double *sums)
{
    fp_channel_pass z;
    double *rows = workspace + fp_channel_workspace(n, m);
    if (FP_NAME(fp_channel_first_pass)(n, m, cells, single, prior, 0, workspace, &z))
        return 1;
    const ptrdiff_t count = FP_NAME(fp_channel_support_rows)(n, m, cells, single, prior, rows);
    memset(over, 0, (size_t)levels * sizeof *over);
    memset(under, 0, (size_t)levels * sizeof *under);
    FP_NAME(fp_channel_hockey_sticks)(count, m, rows, z.q, z.centre, z.delta, levels, excess, over, under);
    for (ptrdiff_t i = 0; i < m; i++)
        z.term[i] = z.columns.top[i] - z.columns.low[i];
    sums[0] = fp_accurate_sum(m, z.spread);
    sums[1] = fp_accurate_sum(m, z.term);
    return 0;
}
