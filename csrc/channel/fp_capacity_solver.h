/* Capacity of many small channels at once, and divergences of large ones; the mathematics is in fp_capacity.h. No
 * include guard: common/fp_variants.h includes this once per instruction set. */
/* bounds: proved - rounding of sums of rows and of the bounds: docs/proofs/finite_capacity.md, theorem 7.5; 1e-25 steers
 * the solver */

#define FP_EACH_LANE for (int l = 0; l < FP_LANES; l++)

/* Add a sum with its error to the sum of a row less 1: `spilt` is the sum of the sizes of all errors, with those in
 * `size`. */
FP_INLINE void FP_NAME(fp_row_sum_add)(double sum, double lost, double size, double *total, double *tail,
                                       double *spilt)
{
    const double sure = *total + sum, over = fp_sum_error(*total, sum, sure);
    *tail += over + lost;
    *spilt += fabs(over) + size;
    *total = sure;
}

/* |1 - sum| of a row of m cells, rounded up; -1 for a negative cell, -2 for NaN. */
FP_INLINE double FP_NAME(fp_row_sum_gap)(ptrdiff_t m, double total, double tail, double spilt, double least,
                                         double nan)
{
    const double miss = fabs(total + tail) * (1.0 + 0x1p-50) + (spilt > 0.0 ? (m + 16.0) * m * 0x1p-104 : 0.0);
    return nan > 0.0 ? -2.0 : least < 0.0 ? -1.0 : miss;
}

/* Cell i of FP_LANES rows, one row a lane. */
FP_INLINE void FP_NAME(fp_channel_gather)(const double *const *row, ptrdiff_t i, double *lane)
{
    *(fp_v8 *)lane = (fp_v8){row[0][i], row[1][i], row[2][i], row[3][i], row[4][i], row[5][i], row[6][i], row[7][i]};
}

/* The gaps of rows of at most FP_LANES cells, one row a lane: the bits of the loop below, where a lane has one cell. */
static void FP_NAME(fp_channel_gaps_of_short_rows)(ptrdiff_t n, ptrdiff_t m, const double *Q, double *gap)
{
    for (ptrdiff_t d = 0; d < n; d += FP_LANES) {
        const ptrdiff_t count = n - d < FP_LANES ? n - d : FP_LANES;
        const double *row[FP_LANES];
        fp_capacity_lanes cell, total, miss, tail = {0}, spilt = {0}, least = {0}, odd = {0};
        for (ptrdiff_t l = 0; l < FP_LANES; l++)
            row[l] = Q + (d + (l < count ? l : 0)) * m;
        FP_EACH_LANE total[l] = -1.0;
        for (ptrdiff_t w = 0; w < m; w++) {
            FP_NAME(fp_channel_gather)(row, w, cell);
            FP_EACH_LANE {
                const double x = cell[l];
                FP_NAME(fp_row_sum_add)(x, 0.0, 0.0, &total[l], &tail[l], &spilt[l]);
                least[l] = x < least[l] ? x : least[l];
                odd[l] = x == x ? odd[l] : 1.0;
            }
        }
        FP_EACH_LANE miss[l] = FP_NAME(fp_row_sum_gap)(m, total[l], tail[l], spilt[l], least[l], odd[l]);
        memcpy(gap + d, miss, (size_t)count * sizeof *gap);
    }
}

static void FP_NAME(fp_channel_row_gaps)(ptrdiff_t n, ptrdiff_t m, const double *Q, double *gap)
{
    if (m <= FP_LANES) {
        FP_NAME(fp_channel_gaps_of_short_rows)(n, m, Q, gap);
        return;
    }
    for (ptrdiff_t d = 0; d < n; d++) {
        const double *row = Q + d * m;
        fp_capacity_lanes sum = {0}, lost = {0}, size = {0}, least = {0}, odd = {0};
        for (ptrdiff_t w = 0; w < m; w += FP_LANES) {
            fp_capacity_lanes part = {0};
            const ptrdiff_t run = m - w < FP_LANES ? m - w : FP_LANES;
            if (run == FP_LANES)
                memcpy(part, row + w, sizeof part);
            else
                for (ptrdiff_t l = 0; l < run; l++)
                    part[l] = row[w + l];
            FP_EACH_LANE {
                const double x = part[l], total = sum[l] + x, over = fp_sum_error(sum[l], x, total);
                lost[l] += over;
                size[l] += fabs(over);
                sum[l] = total;
                least[l] = x < least[l] ? x : least[l];
                odd[l] = x == x ? odd[l] : 1.0;
            }
        }
        double total = -1.0, tail = 0.0, low = 0.0, nan = 0.0, spilt = 0.0;
        FP_EACH_LANE {
            FP_NAME(fp_row_sum_add)(sum[l], lost[l], size[l], &total, &tail, &spilt);
            low = least[l] < low ? least[l] : low;
            nan = odd[l] > nan ? odd[l] : nan;
        }
        gap[d] = FP_NAME(fp_row_sum_gap)(m, total, tail, spilt, low, nan);
    }
}

static void FP_NAME(fp_channel_divergences)(ptrdiff_t n, ptrdiff_t m, const double *Q, const double *q, double *K,
                                            double *B)
{
    for (ptrdiff_t d = 0; d < n; d++)
        K[d] = 0.0;
    for (ptrdiff_t from = 0; from < m; from += FP_CAPACITY_RUN) {
        const ptrdiff_t run = m - from < FP_CAPACITY_RUN ? m - from : FP_CAPACITY_RUN;
        const ptrdiff_t padded = (run + FP_LANES - 1) / FP_LANES * FP_LANES;
        double out[FP_CAPACITY_RUN] = {0}, over[FP_CAPACITY_RUN] = {0}, root[FP_CAPACITY_RUN] = {0};
        double row[FP_CAPACITY_RUN] = {0};
        memcpy(out, q + from, (size_t)run * sizeof *out);
        for (ptrdiff_t w = 0; w < padded; w++) {
            over[w] = out[w] > 0.0 ? 1.0 / out[w] : 0.0;
            root[w] = sqrt(over[w]);
        }
        for (ptrdiff_t d = 0; d < n; d++) {
            fp_capacity_lanes lane = {0};
            memcpy(row, Q + d * m + from, (size_t)run * sizeof *row);
            for (ptrdiff_t w = 0; w < padded; w += FP_LANES)
                FP_EACH_LANE {
                    const double t = out[w + l], x = row[w + l], inverse = over[w + l];
                    lane[l] += t * fp_channel_psi(x * inverse, (x - t) * inverse);
                }
            K[d] += fp_lane_sum(lane);
            if (B) {
                double *to = B + d * (m + 1) + from;
                for (ptrdiff_t w = 0; w < run; w++)
                    to[w] = (row[w] - out[w]) * root[w];
            }
        }
    }
}

/* The output distribution and the divergences of the current input distribution. */
static void FP_NAME(fp_capacity_evaluate)(fp_capacity_workspace *z)
{
    const int n = z->n, m = z->m;
    for (int w = 0; w < m; w++) {
        fp_capacity_lanes sum = {0};
        for (int d = 0; d < n; d++)
            FP_EACH_LANE sum[l] += z->p[d][l] * z->Q[d * m + w][l];
        FP_EACH_LANE {
            z->q[w][l] = sum[l];
            z->over[w][l] = sum[l] > 0.0 ? 1.0 / sum[l] : 0.0;
        }
    }
    FP_EACH_LANE {
        z->mean[l] = 0.0;
        z->most[l] = 0.0;
    }
    for (int d = 0; d < n; d++) {
        fp_capacity_lanes sum = {0};
        for (int w = 0; w < m; w++) {
            const double *x = z->Q[d * m + w], *t = z->q[w], *inverse = z->over[w];
            FP_EACH_LANE sum[l] += t[l] * fp_channel_psi(x[l] * inverse[l], (x[l] - t[l]) * inverse[l]);
        }
        FP_EACH_LANE {
            z->K[d][l] = sum[l];
            z->mean[l] += z->p[d][l] * sum[l];
            z->most[l] = sum[l] > z->most[l] ? sum[l] : z->most[l];
        }
    }
}

/* Keep the best iterate of each lane. A lane is finished at the target, or after ten rounds without a gain of a
 * tenth. */
static int FP_NAME(fp_capacity_keep_best)(fp_capacity_workspace *z, double target)
{
    fp_capacity_lanes better;
    int active = 0;
    FP_EACH_LANE {
        const double width = z->most[l] - z->mean[l], scale = z->mean[l] < 1.0 ? z->mean[l] : 1.0;
        better[l] = (width < z->best[l]) & (z->active[l] > 0.0) ? 1.0 : 0.0;
        z->rounds_without_gain[l] = width < 0.9 * z->best[l] ? 0.0 : z->rounds_without_gain[l] + 1.0;
        z->best[l] = better[l] > 0.0 ? width : z->best[l];
        z->active[l] = (width > 0.9 * target * scale) & (z->rounds_without_gain[l] < 10.0) ? z->active[l] : 0.0;
        active |= z->active[l] > 0.0;
    }
    for (int d = 0; d < z->n; d++)
        FP_EACH_LANE {
            z->best_p[d][l] = better[l] > 0.0 ? z->p[d][l] : z->best_p[d][l];
            z->best_K[d][l] = better[l] > 0.0 ? z->K[d][l] : z->best_K[d][l];
        }
    for (int w = 0; w < z->m; w++)
        FP_EACH_LANE z->best_q[w][l] = better[l] > 0.0 ? z->q[w][l] : z->best_q[w][l];
    return active;
}

/* L D L^T of B B^T + S/P, unit L below the diagonal of M */
static void FP_NAME(fp_capacity_factorise)(fp_capacity_workspace *z)
{
    const int n = z->n, m = z->m, wide = m + 1;
    fp_capacity_lanes size = {0};
    for (int d = 0; d < n; d++)
        for (int w = 0; w < m; w++)
            FP_EACH_LANE {
                const double cell = (z->Q[d * m + w][l] - z->q[w][l]) * sqrt(z->over[w][l]);
                z->B[d * wide + w][l] = cell;
                size[l] += z->p[d][l] * cell * cell;
            }
    for (int d = 0; d < n; d++)
        FP_EACH_LANE {
            z->B[d * wide + m][l] = sqrt(size[l]);
            z->inverse[d][l] = 1.0 / z->p[d][l];
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            fp_capacity_lanes sum = {0};
            for (int w = 0; w < wide; w++)
                FP_EACH_LANE sum[l] += z->B[i * wide + w][l] * z->B[j * wide + w][l];
            if (i == j)
                FP_EACH_LANE sum[l] += z->s[i][l] * z->inverse[i][l];
            FP_EACH_LANE z->M[i * n + j][l] = sum[l];
        }
    for (int j = 0; j < n; j++) {
        FP_EACH_LANE {
            const double pivot = z->M[j * n + j][l], least = z->s[j][l] * z->inverse[j][l];
            z->pivot[j][l] = 1.0 / (pivot > least ? pivot : least);
        }
        for (int i = j + 1; i < n; i++) {
            fp_capacity_lanes factor;
            FP_EACH_LANE factor[l] = z->M[i * n + j][l] * z->pivot[j][l];
            for (int k = j + 1; k <= i; k++)
                FP_EACH_LANE z->M[i * n + k][l] -= factor[l] * z->M[k * n + j][l];
        }
        for (int i = j + 1; i < n; i++)
            FP_EACH_LANE z->M[i * n + j][l] *= z->pivot[j][l];
    }
}

static void FP_NAME(fp_capacity_substitute)(const fp_capacity_workspace *z, fp_capacity_lanes *x)
{
    const int n = z->n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            FP_EACH_LANE x[i][l] -= z->M[i * n + j][l] * x[j][l];
    for (int i = n - 1; i >= 0; i--) {
        FP_EACH_LANE x[i][l] *= z->pivot[i][l];
        for (int j = i + 1; j < n; j++)
            FP_EACH_LANE x[i][l] -= z->M[j * n + i][l] * x[j][l];
    }
}

/* The step for the complementarity residuals in `rest`; `step` receives the longest step that keeps p and s
 * positive. */
static void FP_NAME(fp_capacity_direction)(fp_capacity_workspace *z)
{
    const int n = z->n;
    fp_capacity_lanes sum = {0}, ones = {0}, worst;
    FP_EACH_LANE worst[l] = 0x1p-900;
    for (int d = 0; d < n; d++)
        FP_EACH_LANE z->dp[d][l] = z->rest[d][l] * z->inverse[d][l] - (z->lambda[l] - z->K[d][l] - z->s[d][l]);
    FP_NAME(fp_capacity_substitute)(z, z->dp);
    for (int d = 0; d < n; d++)
        FP_EACH_LANE {
            sum[l] += z->dp[d][l];
            ones[l] += z->v[d][l];
        }
    FP_EACH_LANE z->move[l] = sum[l] / ones[l];
    for (int d = 0; d < n; d++)
        FP_EACH_LANE {
            const double dp = z->dp[d][l] - z->move[l] * z->v[d][l];
            const double ds = (z->rest[d][l] - z->s[d][l] * dp) * z->inverse[d][l];
            const double first = -dp * z->inverse[d][l], second = -ds / z->s[d][l];
            z->dp[d][l] = dp;
            z->ds[d][l] = ds;
            worst[l] = first > worst[l] ? first : worst[l];
            worst[l] = second > worst[l] ? second : worst[l];
        }
    FP_EACH_LANE z->step[l] = 1.0 / worst[l];
}

static void FP_NAME(fp_capacity_newton_step)(fp_capacity_workspace *z, double target)
{
    const int n = z->n;
    fp_capacity_lanes mu = {0}, after = {0}, total = {0}, length;
    FP_NAME(fp_capacity_factorise)(z);
    for (int d = 0; d < n; d++)
        FP_EACH_LANE z->v[d][l] = 1.0;
    FP_NAME(fp_capacity_substitute)(z, z->v);
    for (int d = 0; d < n; d++)
        FP_EACH_LANE {
            z->rest[d][l] = -z->p[d][l] * z->s[d][l];
            mu[l] -= z->rest[d][l];
        }
    FP_NAME(fp_capacity_direction)(z);
    FP_EACH_LANE length[l] = z->step[l] < 1.0 ? z->step[l] : 1.0;
    for (int d = 0; d < n; d++)
        FP_EACH_LANE after[l] += (z->p[d][l] + length[l] * z->dp[d][l]) * (z->s[d][l] + length[l] * z->ds[d][l]);
    for (int d = 0; d < n; d++)
        FP_EACH_LANE {
            const double ratio = after[l] / mu[l], aim = ratio * ratio * ratio * mu[l];
            const double low = FP_CAPACITY_CENTRING * target * (z->mean[l] < 1.0 ? z->mean[l] : 1.0);
            z->rest[d][l] += (aim > low ? aim : low) / n - z->dp[d][l] * z->ds[d][l];
        }
    FP_NAME(fp_capacity_direction)(z);
    FP_EACH_LANE {
        const double most = 0.995 * z->step[l], step = most < 1.0 ? most : 1.0;
        length[l] = (z->active[l] > 0.0) & (step == step) ? step : 0.0;
        z->active[l] = length[l] > 0.0 ? z->active[l] : 0.0;
        z->rounds[l] += z->active[l];
    }
    for (int d = 0; d < n; d++)
        FP_EACH_LANE {
            const double p = z->p[d][l] + length[l] * z->dp[d][l], s = z->s[d][l] + length[l] * z->ds[d][l];
            const double least = 1e-25 * z->most[l];
            const int on = length[l] > 0.0;
            z->p[d][l] = on ? (p > FP_CAPACITY_LEAST_PROBABILITY ? p : FP_CAPACITY_LEAST_PROBABILITY) : z->p[d][l];
            z->s[d][l] = on ? (s > least ? s : least) : z->s[d][l];
            total[l] += z->p[d][l];
        }
    FP_EACH_LANE {
        z->lambda[l] = length[l] > 0.0 ? z->lambda[l] + length[l] * z->move[l] : z->lambda[l];
        total[l] = length[l] > 0.0 ? total[l] : 1.0;
    }
    for (int d = 0; d < n; d++)
        FP_EACH_LANE z->p[d][l] /= total[l];
}

/* Load eight channels; columns that are negligible in every row are left out and counted for each lane. */
static void FP_NAME(fp_capacity_load)(fp_capacity_workspace *z, const double *Q, int have, fp_capacity_lanes negligible)
{
    const int n = z->n, m = z->m;
    for (int w = 0; w < m; w++) {
        fp_capacity_lanes most = {0};
        for (int d = 0; d < n; d++)
            FP_EACH_LANE {
                const double cell = Q[((l < have ? l : 0) * n + d) * m + w];
                z->Q[d * m + w][l] = cell;
                most[l] = cell > most[l] ? cell : most[l];
            }
        for (int d = 0; d < n; d++)
            FP_EACH_LANE z->Q[d * m + w][l] = most[l] < FP_NEGLIGIBLE_COLUMN ? 0.0 : z->Q[d * m + w][l];
        FP_EACH_LANE negligible[l] += (most[l] < FP_NEGLIGIBLE_COLUMN) & (most[l] > 0.0) ? 1.0 : 0.0;
    }
}

/* The bounds of lane l from its best distributions. */
FP_INLINE void FP_NAME(fp_capacity_bounds)(const fp_capacity_workspace *z, int l, const double *gap, double negligible,
                                          double *numbers)
{
    const int n = z->n;
    const double unit = 0x1p-53, relative = fp_divergence_relative_error(z->m);
    double mass = 0.0, mean = 0.0, low = 0.0, high = 0.0, worst = 0.0;
    for (int d = 0; d < n; d++) {
        const double k = z->best_K[d][l], p = z->best_p[d][l], spread = fp_divergence_gap_error(k, gap[d]);
        const double top = k * (1.0 + relative) + spread;
        mass += p;
        mean += p * k;
        low += p * (k * (1.0 - relative) - spread);
        high = top > high ? top : high;
        worst = gap[d] > worst ? gap[d] : worst;
    }
    const double off = fabs(mass - 1.0) + (2 * n + 8) * unit + worst, error = 1.01 * off * off;
    low = low / mass - (4 * n + 8) * unit * mean - (mean > 0.0 ? error : 0.0);
    high = high * (1.0 + 8 * unit) + negligible * 0x1p-899;
    numbers[0] = mean < high ? mean : high;
    numbers[1] = low < numbers[0] ? (low > 0.0 ? low : 0.0) : numbers[0];
    numbers[2] = high;
    numbers[3] = z->best[l];
    numbers[4] = z->rounds[l];
}

static void FP_NAME(fp_capacity_solve)(ptrdiff_t many, int n, int m, const double *Q, const double *gap, double target,
                                     int most, double *numbers, double *input, double *output, double *K)
{
    fp_capacity_workspace workspace, *z = &workspace;
    z->n = n;
    z->m = m;
    for (ptrdiff_t from = 0; from < many; from += FP_LANES) {
        const int have = many - from < FP_LANES ? (int)(many - from) : FP_LANES;
        fp_capacity_lanes negligible = {0};
        FP_NAME(fp_capacity_load)(z, Q + from * n * m, have, negligible);
        FP_EACH_LANE {
            z->active[l] = 1.0;
            z->best[l] = INFINITY;
            z->rounds_without_gain[l] = z->rounds[l] = 0.0;
        }
        for (int d = 0; d < n; d++)
            FP_EACH_LANE z->p[d][l] = 1.0 / n;
        FP_NAME(fp_capacity_evaluate)(z);
        FP_EACH_LANE z->lambda[l] = z->most[l] + 0.1 * (z->most[l] - z->mean[l]);
        for (int d = 0; d < n; d++)
            FP_EACH_LANE z->s[d][l] = z->lambda[l] - z->K[d][l];
        for (int round = 0; FP_NAME(fp_capacity_keep_best)(z, target) && round < most; round++) {
            FP_NAME(fp_capacity_newton_step)(z, target);
            FP_NAME(fp_capacity_evaluate)(z);
        }
        for (int l = 0; l < have; l++) {
            const ptrdiff_t at = from + l;
            for (int d = 0; d < n; d++) {
                input[at * n + d] = z->best_p[d][l];
                K[at * n + d] = z->best_K[d][l];
            }
            for (int w = 0; w < m; w++)
                output[at * m + w] = z->best_q[w][l];
            FP_NAME(fp_capacity_bounds)(z, l, gap + at * n, negligible[l], numbers + at * 5);
        }
    }
}

#undef FP_EACH_LANE
