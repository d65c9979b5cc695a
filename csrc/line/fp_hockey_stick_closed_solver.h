/* Hockey-stick curves in closed form where the pair allows it, else from monotone pieces; included once per
 * instruction set. */
/* bounds: none - below which the width of a bracket is not asked for */
#include "gauss/fp_two_points_loops.h"

/* One pair of mixtures. */
typedef struct {
    int np, nq;
    const double *w, *m, *s, *v, *n, *t;
} FP_NAME(fp_pair);

/* Whether all standard deviations are equal. */
static int FP_NAME(fp_has_one_sigma)(const FP_NAME(fp_pair) * pair)
{
    for (int i = 1; i < pair->np; ++i)
        if (pair->s[i] != pair->s[0])
            return 0;
    for (int j = 0; j < pair->nq; ++j)
        if (pair->t[j] != pair->s[0])
            return 0;
    return 1;
}

/* The pair as weights on two points with one sigma; 0 where it is none. A point that a mixture has twice is not
 * joined. */
static int FP_NAME(fp_two_points_from_pair)(const FP_NAME(fp_pair) * pair, fp_two_points *weights, fp_dd *r)
{
    double mean[2] = {pair->m[0], pair->m[0]}, weight[2][2] = {{0.0, 0.0}, {0.0, 0.0}};
    int points = 1, taken[2][2] = {{0, 0}, {0, 0}};
    if (pair->np > 2 || pair->nq > 2 || !FP_NAME(fp_has_one_sigma)(pair))
        return 0;
    for (int side = 0; side < 2; ++side)
        for (int i = 0; i < (side ? pair->nq : pair->np); ++i) {
            const double at = side ? pair->n[i] : pair->m[i];
            const int k = at == mean[0] ? 0 : 1;
            if (k == 1 && points == 1)
                mean[1] = at, points = 2;
            if (at != mean[k] || taken[side][k])
                return 0;
            taken[side][k] = 1;
            weight[side][k] = side ? pair->v[i] : pair->w[i];
        }
    *weights = fp_two_points_of(weight[0][0], weight[0][1], weight[1][0], weight[1][1]);
    *r = fp_two_points_ratio(fp_two_sum(mean[1], -mean[0]), pair->s[0]);
    return 1;
}

/* Whether both brackets are as narrow as sums in doubles have to be; 0 for NaN. */
static int FP_NAME(fp_bracket_is_narrow)(const fp_bracket *b, double target)
{
    const double size = b->log_value < -1.0 ? -b->log_value : 1.0;
    const int none = b->log_upper == -INFINITY;
    return (b->upper - b->lower <= target * b->value || b->upper < 1e-280)
           && (none || b->log_upper - b->log_lower <= target * size);
}

#include "line/fp_single_gaussians_solver.h"
#include "line/fp_one_sided_solver.h"

/* Terms of one pair of weights at several epsilons. */
static void FP_NAME(fp_two_points_terms_of)(FP_NAME(fp_two_points_block) * restrict b, ptrdiff_t n,
                                            const fp_two_points *weights, fp_dd r, const double *restrict epsilon)
{
    const fp_two_points w = *weights;
    double usual[FP_NAME(FP_TWO_POINTS_BLOCK)];
    const double least = FP_WEIGHT_SCALE * 0x1p-200;
    const int fits = n > 1 && w.first && w.p[0].hi >= least && w.p[1].hi >= least; /* p_k <= 2 */
    for (ptrdiff_t i = 0; fits && i < n; i++)
        usual[i] = fp_two_points_is_usual(epsilon[i]) ? epsilon[i] : 1.0;
    if (fits)
        _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++)
            FP_NAME(fp_two_points_put)(b, i, fp_two_points_usual(w.p[0], w.p[1].hi, w.excess[0], w.total, r, usual[i]));
    for (ptrdiff_t i = 0; i < n; i++)
        if (!fits || isnan(b->mass[i]) || !fp_two_points_is_usual(epsilon[i]))
            FP_NAME(fp_two_points_put)(b, i, fp_two_points_at(&w, r, epsilon[i]));
}

/* The logarithms of brackets from their numbers, which are above 1e-280 */
static void FP_NAME(fp_logs_of_values)(ptrdiff_t n, double results[6][FP_NAME(FP_TWO_POINTS_BLOCK)])
{
    _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++)
    {
        const double low = fp_log(results[1][i]), high = fp_log(results[2][i]), most = high + FP_ROUND * fabs(high);
        results[3][i] = fp_log(results[0][i]);
        results[4][i] = low - FP_ROUND * fabs(low);
        results[5][i] = most < 0.0 ? most : 0.0;
    }
}

/* Brackets of all epsilons; those that are not narrow get a NaN as value. */
static int FP_NAME(fp_two_points_curve)(const fp_two_points *weights, fp_dd r, const double *epsilon, ptrdiff_t count,
                                        double target, int logs, fp_stop_token *stop, fp_bracket *out)
{
    FP_NAME(fp_two_points_block) block;
    double results[6][FP_NAME(FP_TWO_POINTS_BLOCK)];
    for (ptrdiff_t start = 0; start < count; start += FP_NAME(FP_TWO_POINTS_BLOCK)) {
        const ptrdiff_t left = count - start;
        const ptrdiff_t n = left < FP_NAME(FP_TWO_POINTS_BLOCK) ? left : FP_NAME(FP_TWO_POINTS_BLOCK);
        if (fp_stop_requested(stop, 64 * n))
            return stop->status;
        FP_NAME(fp_two_points_terms_of)(&block, n, weights, r, epsilon + start);
        FP_NAME(fp_two_points_values)(&block, n, results[0], results[1], results[2]);
        int plain = !logs;
        for (ptrdiff_t i = 0; i < n; ++i)
            plain &= results[1][i] > 1e-280;
        if (plain)
            FP_NAME(fp_logs_of_values)(n, results);
        else
            FP_NAME(fp_two_points_logs)(&block, n, results[3], results[4], results[5]);
        for (ptrdiff_t i = 0; i < n; ++i) {
            fp_bracket *b = &out[start + i];
            *b = (fp_bracket){results[0][i], results[1][i], results[2][i], results[3][i], results[4][i], results[5][i]};
            if (!FP_NAME(fp_bracket_is_narrow)(b, target))
                b->value = NAN;
        }
    }
    return 0;
}

/* The rows whose value is NaN, from monotone pieces. */
static int FP_NAME(fp_remaining_curve)(const FP_NAME(fp_pair) * pair, const double *epsilon, ptrdiff_t count,
                                       double target, int logs, fp_interrupted interrupted, double deadline,
                                       fp_bracket *out, long *cost)
{
    ptrdiff_t left = 0, k = 0;
    for (ptrdiff_t i = 0; i < count; ++i)
        left += out[i].value != out[i].value;
    if (!left)
        return 0;
    double *grid = malloc((size_t)left * sizeof *grid);
    fp_bracket *rows = malloc((size_t)left * sizeof *rows);
    int status = grid && rows ? 0 : -1;
    for (ptrdiff_t i = 0; i < count && !status; ++i)
        if (out[i].value != out[i].value)
            grid[k++] = epsilon[i];
    if (!status)
        status = FP_NAME(fp_monotone_pieces_curve)(pair->np, pair->w, pair->m, pair->s, pair->nq, pair->v, pair->n,
                                                   pair->t, grid, left, target, logs, interrupted, deadline, rows,
                                                   cost);
    k = 0;
    for (ptrdiff_t i = 0; i < count && !status; ++i)
        if (out[i].value != out[i].value)
            out[i] = rows[k++];
    free(grid);
    free(rows);
    return status;
}

/* H of P from Q for every eps, as fp_monotone_pieces_curve; no pieces are counted where all is in closed form, but
 * the sums in double-doubles of single Gaussians are. */
static int FP_NAME(fp_hockey_stick_curve)(int np, const double *w, const double *m, const double *s, int nq,
                                          const double *v, const double *n, const double *t, const double *epsilon,
                                          ptrdiff_t count, double target, int logs, fp_interrupted interrupted,
                                          double deadline, fp_bracket *out, long *cost)
{
    const FP_NAME(fp_pair) pair = {np, nq, w, m, s, v, n, t};
    fp_two_points weights;
    FP_NAME(fp_single_gaussians) single;
    FP_NAME(fp_one_sided) one_sided;
    fp_dd r;
    int status = 0;
    long sums = 0;
    fp_stop_token stop = fp_stop_token_make(interrupted, INFINITY);
    if (FP_NAME(fp_two_points_from_pair)(&pair, &weights, &r)) {
        status = FP_NAME(fp_two_points_curve)(&weights, r, epsilon, count, target, logs, &stop, out);
    } else if (FP_NAME(fp_single_gaussians_from_pair)(&pair, &single)) {
        for (ptrdiff_t i = 0; i < count && !status; ++i) {
            sums += FP_NAME(fp_single_gaussians_bracket)(&single, epsilon[i], target, &out[i]);
            status = fp_stop_requested(&stop, 256);
        }
    } else if (FP_NAME(fp_one_sided_from_pair)(&pair, &one_sided)) {
        for (ptrdiff_t i = 0; i < count && !status; ++i) {
            FP_NAME(fp_one_sided_bracket)(&one_sided, epsilon[i], target, logs, &out[i]);
            status = fp_stop_requested(&stop, 16 * one_sided.n);
        }
    } else {
        return FP_NAME(fp_monotone_pieces_curve)(np, w, m, s, nq, v, n, t, epsilon, count, target, logs, interrupted,
                                                 deadline, out, cost);
    }
    cost[0] = cost[1] = cost[2] = cost[3] = cost[4] = cost[5] = 0;
    if (!status)
        status = FP_NAME(fp_remaining_curve)(&pair, epsilon, count, target, logs, interrupted, deadline, out, cost);
    cost[1] += sums;
    if (!status)
        cost[5] += FP_NAME(fp_close_curve)(np, w, m, s, nq, v, n, t, epsilon, count, out);
    return status;
}
