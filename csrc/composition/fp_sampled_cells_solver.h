/* Tables of compositions of Poisson-sampled Gaussians: delta at epsilon, and epsilon at delta, of many cells.
 *
 * Notation of fp_contour_solver.h. A cell is sigma, rate, count and a target; its pair is P = (1 - q) N(0, sigma^2) + q
 * N(1, sigma^2) against Q = N(0, sigma^2), the removal of a record, and Q against P, its addition; delta is the larger
 * of both. Cells of one pair are neighbours: they share the moments of one release, and those of one count share
 * tables.
 *
 * Weights. The double w next to 1 - q has the relative error g = |w + q - 1| / (1 - q), whose numerator is a double.
 * With s = count g (1 + 1e-3), by the head of fastpriv/composition/engines.py,
 *     e^-s delta'(epsilon + s) <= delta(epsilon) <= e^s delta'(epsilon - s),
 * delta' that of the doubles; below 0 delta'(-x) <= delta'(0) + x.
 *
 * Upper bounds (docs/proofs/sampled_tables.md, theorem 11.2). Chernoff's bound of delta, delta(x) <= t^t / (1 + t)^(1 +
 * t) M(t)^count e^(-t x), holds for every t > 0 and real x. Its logarithm is h(t) - t x with a convex h, so that the
 * best t is where h'(t) = x; the x at which it is a target d is (h(t) - d) / t, least where h'(t) = x.
 *
 * Epsilon of the worse direction is the larger of both epsilons. A direction whose Chernoff bound is below the other's
 * lower bound is not summed.
 */
/* bounds: proved - rounding of levels and of exponents, docs/proofs/sampled_tables.md, theorems 11.1 and 11.2 */
#ifndef FP_SAMPLED_CELLS_SOLVER_H
#define FP_SAMPLED_CELLS_SOLVER_H

#include "composition/fp_contour_shell_tables_solver.h"

/* bound: none - nodes times frequencies of a table, some 10 ms, beyond which a cell is left to other engines */
#define FP_CELL_WORK 4e6
/* bound: none - log delta below which nothing is summed: it is no double */
#define FP_CELL_DEEPEST -746.0
/* bound: none - width of log delta from which on a search of epsilon ends without digits */
#define FP_CELL_WIDE 0.5
/* bound: none - slots between two values of t of Chernoff's bound: it is within 0.5 % of the least one in delta */
#define FP_CELL_STRIDE 4
#define FP_CELL_STEPS 40 /* of a search of epsilon */

enum { FP_CELL_DELTA = 0, FP_CELL_EPSILON = 1 };

/* One direction of one pair */
typedef struct {
    fp_contour_factor factor;
    fp_contour_any pair;
    fp_composition sums;
    double gap, largest; /* g; the largest loss of one release, infinite where there is none */
    double slack;        /* s of the count */
    int first_release, last_release; /* of the moments that are known, of all counts but the last */
} fp_cell_side;

static inline void fp_cell_side_free(fp_cell_side *side)
{
    for (int k = 0; k < FP_CONTOUR_TILTS && side->sums.tilts; k++)
        fp_contour_factor_free(&side->sums.tilts[k].factor);
    free(side->sums.releases), free(side->sums.tilts);
    fp_composition_close(&side->sums);
    fp_contour_any_free(&side->factor, &side->pair);
}

/* Forget all that was computed for the pair, but keep the memory: a cell touches few of many slots. */
static inline void fp_cell_side_forget(fp_cell_side *side, int releases_too)
{
    fp_composition *c = &side->sums;
    for (int i = 0; i < c->n_tables; i++) {
        free(c->tables[i]->block);
        free(c->tables[i]);
    }
    if (c->last_slot >= 0) {
        memset(c->slots + c->first_slot, 0, sizeof *c->slots * (size_t)(c->last_slot - c->first_slot + 1));
        side->first_release = c->first_slot < side->first_release ? c->first_slot : side->first_release;
        side->last_release = c->last_slot > side->last_release ? c->last_slot : side->last_release;
    }
    for (int k = 0; k <= FP_SHELLS_TABLES && c->shells; k++)
        fp_shells_clear((fp_shells_table *)c->shells + k);
    c->first_slot = FP_SLOTS, c->last_slot = -1, c->n_tables = 0, c->saddle[0] = NAN;
    if (!releases_too)
        return;
    if (side->last_release >= 0)
        memset(c->releases + side->first_release, 0,
               sizeof *c->releases * (size_t)(side->last_release - side->first_release + 1));
    side->first_release = FP_SLOTS, side->last_release = -1;
    for (int k = 0; k < FP_CONTOUR_TILTS; k++)
        c->tilts[k].slot = 0;
}

/* 0 < rate < 1; `side` is zero, or was made before. -1 without memory. */
static inline int fp_cell_side_make(fp_cell_side *side, double sigma, double rate, int adds)
{
    const double weights[2] = {1.0 - rate, rate}, means[2] = {0.0, 1.0}, sigmas[2] = {sigma, sigma}, one = 1.0;
    const double lost = (weights[0] - 1.0) + rate, of_p[2] = {lost, 0.0}, of_q[2] = {0.0, lost};
    fp_composition *c = &side->sums;
    fp_contour_nodes nodes = {0}; /* their memory stays */
    if (c->releases) {
        fp_cell_side_forget(side, 1);
        if (side->factor.kind == &fp_contour_one_sigma_kind)
            nodes = side->factor.nodes, side->factor.nodes.block = NULL;
        fp_contour_any_free(&side->factor, &side->pair);
    }
    memset(&side->factor, 0, sizeof side->factor);
    side->gap = fabs(lost) / (1.0 - rate) * (1.0 + 1e-3);
    side->largest = adds ? -fp_log1p(-rate) * (1.0 + 1e-14) : INFINITY;
    const int status = adds ? fp_contour_any_mixtures(&side->factor, &side->pair, 1.0, 1, &one, means, sigmas, 2, weights,
                                                      means, sigmas, of_q)
                            : fp_contour_any_mixtures(&side->factor, &side->pair, 1.0, 2, weights, means, sigmas, 1, &one,
                                                      means, sigmas, of_p);
    if (status > 0 && side->factor.kind == &fp_contour_one_sigma_kind)
        side->factor.nodes = nodes;
    else
        free(nodes.block);
    if (status <= 0)
        return -1;
    if (c->releases) {
        c->largest_t = fp_min(INFINITY, side->factor.largest_t);
        return 0;
    }
    if (fp_composition_make(c, 1, &side->factor, 1, 1e-14))
        return -1;
    side->first_release = FP_SLOTS, side->last_release = -1;
    c->releases = calloc(FP_SLOTS, sizeof *c->releases), c->tilts = calloc(FP_CONTOUR_TILTS, sizeof *c->tilts);
    c->work = FP_CELL_WORK;
    return c->releases && c->tilts ? 0 : -1;
}

/* The same pair with another count: the moments of one release stay. */
static inline void fp_cell_side_count(fp_cell_side *side, double count)
{
    fp_composition *c = &side->sums;
    side->slack = count * side->gap;
    if (side->factor.count == count && c->last_slot >= 0)
        return;
    fp_cell_side_forget(side, 0);
    side->factor.count = count;
    c->log_mass = count * side->factor.log_mass;
    c->log_mass += 1e-15 * fabs(c->log_mass);
}

/* h(t) rounded up */
FP_INLINE double fp_cell_exponent(const fp_contour_slot *slot)
{
    return slot->known > 0 ? slot->value + slot->error + 4.0 * FP_U * fabs(slot->value)
                                 + fp_chernoff_constant(FP_CONTOUR_DELTA, slot->t)
                           : INFINITY;
}

/* Chernoff's bound of log delta at epsilon, or of epsilon at log delta, by the best slot. -1 without memory. */
static inline int fp_cell_chernoff(fp_cell_side *side, int quantity, double target, double *out)
{
    fp_composition *c = &side->sums;
    int low = -1, high = FP_SLOTS, step = 2 * FP_SLOTS_PER_OCTAVE, i = FP_SLOTS / 2;
    double best = INFINITY;
    while (high - low > FP_CELL_STRIDE) {
        const fp_contour_slot *slot;
        if (fp_contour_find(c, i, &slot))
            return -1;
        int above = 1;
        if (slot->known > 0) {
            const double t = slot->t, h = fp_cell_exponent(slot);
            const double epsilon = quantity == FP_CELL_EPSILON ? (h - target) / t : target;
            const double bound = quantity == FP_CELL_EPSILON ? epsilon + 4.0 * FP_U * (fabs(h) + fabs(target)) / t
                                                             : h - t * epsilon + 4.0 * FP_U * (fabs(h) + t * epsilon);
            best = fp_min(best, quantity == FP_CELL_EPSILON ? bound + (1.0 / t + 1.0) * side->slack
                                                            : bound + (1.0 + t) * side->slack);
            above = slot->slope + fp_log(t) - fp_log1p(t) > epsilon;
        }
        if (above)
            high = i;
        else
            low = i;
        i = low < 0 ? high - step : high == FP_SLOTS ? low + step : (low + high) / 2;
        if (i < 0 || i >= FP_SLOTS)
            break;
    }
    *out = best + 4.0 * FP_U * fabs(best);
    return 0;
}

/* Bounds of log delta of the doubles' pair at epsilon >= 0. -1 without memory, or the reason to stop. */
static inline int fp_cell_sum(fp_cell_side *side, double epsilon, fp_contour_answer *out, fp_stop_token *stop)
{
    fp_composition *c = &side->sums;
    fp_contour_answer answer;
    *out = (fp_contour_answer){c->log_mass, -INFINITY, c->log_mass};
    const int far = fp_contour_is_far(c, epsilon, 0.0, &out->upper);
    if (far < 0)
        return -1;
    const fp_contour_slot *slot;
    double place, curvature;
    if (fp_contour_saddle(c, epsilon, &place, &curvature) || fp_contour_find(c, (int)(place + 0.5), &slot))
        return -1;
    out->value = out->upper = fp_min(out->upper, fp_contour_chernoff_at(slot, epsilon, 0.0));
    if (far == 2 || out->upper < FP_CELL_DEEPEST)
        return 0;
    ptrdiff_t done;
    const int status = fp_composition_bounds(c, FP_CONTOUR_DELTA, 1, &epsilon, 0.0, &answer, stop, &done);
    *out = status ? *out : fp_contour_both(answer, *out);
    return status;
}

/* Bounds of log delta of the pair at epsilon >= 0 */
static inline int fp_cell_log_delta(fp_cell_side *side, double epsilon, fp_contour_answer *out, fp_stop_token *stop)
{
    const double s = side->slack, rounding = 2.0 * FP_U * epsilon;
    const double most = side->factor.count * side->largest + s;
    fp_contour_answer above;
    int status = 0;
    if (epsilon >= most) {
        *out = (fp_contour_answer){-INFINITY, -INFINITY, -INFINITY};
        return 0;
    }
    if (s == 0.0) {
        status = fp_cell_sum(side, epsilon, out, stop);
        out->upper = fp_min(out->upper, 0.0);
        return status;
    }
    const double before = epsilon - (s + rounding);
    if ((status = fp_cell_sum(side, fp_max(before, 0.0), &above, stop))
        || (status = fp_cell_sum(side, epsilon + (s + rounding), out, stop)))
        return status;
    if (before < 0.0)
        above.upper = fp_log(fp_exp(fp_min(above.upper, 0.0)) - before) + 8.0 * FP_U * (1.0 + fabs(above.upper));
    out->lower -= s + 4.0 * FP_U * fabs(out->lower);
    out->upper = fp_min(above.upper + s + 4.0 * FP_U * fabs(above.upper), 0.0);
    out->lower = fp_min(out->lower, out->upper);
    out->value = fp_max(out->lower, fp_min(0.5 * above.value + 0.5 * out->value, out->upper));
    return 0;
}

/* The epsilon of a log delta, by the saddle point formula, and the t there */
static inline int fp_cell_guess(fp_cell_side *side, double target, double *epsilon, double *t)
{
    fp_composition *c = &side->sums;
    int low = -1, high = FP_SLOTS, i = FP_SLOTS / 2;
    double at_low = 0.0, at_high = 0.0, log_low = 0.0, log_high = 0.0;
    *epsilon = 0.0, *t = 1.0;
    while (high - low > FP_CELL_STRIDE && i >= 0 && i < FP_SLOTS) {
        const fp_contour_slot *slot;
        if (fp_contour_find(c, i, &slot))
            return -1;
        const double level = slot->known > 0 ? fp_contour_epsilon(c, slot) : INFINITY;
        const double rough = slot->known > 0 ? fp_contour_rough(c, slot, level) : -INFINITY;
        *t = slot->known > 0 ? slot->t : *t;
        if (rough > target)
            low = i, at_low = level, log_low = rough;
        else
            high = i, at_high = level, log_high = rough;
        i = low < 0 ? high - 2 * FP_SLOTS_PER_OCTAVE : high == FP_SLOTS ? low + 2 * FP_SLOTS_PER_OCTAVE : (low + high) / 2;
    }
    if (low >= 0)
        *epsilon = high < FP_SLOTS && at_high < INFINITY
            ? at_low + (at_high - at_low) * (log_low - target) / (log_low - log_high) : at_low;
    *epsilon = fp_max(0.0, fp_min(*epsilon, side->factor.count * side->largest));
    return 0;
}

/* The least epsilon >= 0 whose log delta is at most `target`, which errs by `rounding`: by secants of log delta between
 * two epsilons, every third one a bisection, then by steps to both sides until bounds prove both ends. */
static inline int fp_cell_epsilon(fp_cell_side *side, double target, double rounding, fp_contour_answer *out,
                                  fp_stop_token *stop)
{
    const double unit = FP_U * fabs(target), low = target - (rounding + unit), high = target + (rounding + unit);
    const double end = (side->factor.count * side->largest + side->slack) * (1.0 + 4.0 * FP_U);
    double epsilon, slope, most, former = NAN, before = NAN, reach = 0.0;
    fp_contour_answer answer;
    if (fp_cell_chernoff(side, FP_CELL_EPSILON, low, &most) || fp_cell_guess(side, target, &epsilon, &slope))
        return -1;
    *out = (fp_contour_answer){0.0, 0.0, fp_max(0.0, fp_min(most, end))};
    double left = 0.0, right = out->upper; /* log delta is above the target at `left`, and below it at `right` */
    epsilon = fp_min(epsilon, right);
    for (int step = 1; step <= FP_CELL_STEPS; step++) {
        const int status = fp_cell_log_delta(side, epsilon, &answer, stop);
        if (status)
            return status;
        if (answer.upper <= low)
            out->upper = fp_min(out->upper, epsilon);
        if (answer.lower >= high)
            out->lower = fp_max(out->lower, epsilon);
        const double width = answer.upper - answer.lower, residual = answer.value - target;
        if (reach == 0.0) {
            if (!(width < FP_CELL_WIDE) && answer.upper > low) /* bounds without digits */
                break;
            left = residual > 0.0 ? epsilon : left, right = residual > 0.0 ? right : epsilon;
            const double fall = (former - residual) / (epsilon - before);
            slope = fall > 0.0 ? fall : slope;
            before = epsilon, former = residual;
            out->value = epsilon + (fabs(residual) < INFINITY ? residual / slope : 0.0);
            if (!(fabs(residual) <= 4.0 * width + 1e-9) && right > left) { /* not there yet */
                const int between = out->value > left && out->value < right && step % 3;
                epsilon = step == 1 && out->value <= 0.0 ? 0.0 : between ? out->value : 0.5 * (left + right);
                continue;
            }
            out->value = fp_max(0.0, out->value);
            reach = (width + 0.02 * fabs(residual) + 2.0 * rounding + side->slack) / slope
                    + 8.0 * FP_U * (out->value + side->slack);
        } else if (epsilon > out->value ? answer.upper > low : answer.lower < high) {
            reach *= 8.0;
        }
        if (out->upper > out->value + 1.001 * reach)
            epsilon = out->value + reach;
        else if (out->lower < out->value - 1.001 * reach && out->value > reach)
            epsilon = out->value - reach;
        else
            break;
    }
    out->value = fp_max(out->lower, fp_min(out->value, out->upper));
    return 0;
}

/* The larger one of two directions */
FP_INLINE fp_contour_answer fp_cell_larger(fp_contour_answer a, fp_contour_answer b)
{
    return (fp_contour_answer){fp_max(a.value, b.value), fp_max(a.lower, b.lower), fp_max(a.upper, b.upper)};
}

/* One cell, of the target epsilon or log delta. -1 without memory, or the reason to stop. */
static inline int fp_sampled_cell(fp_cell_side sides[2], int quantity, double target, double rounding, int only_upper,
                                  fp_contour_answer *out, fp_stop_token *stop)
{
    const double least = quantity == FP_CELL_DELTA ? -INFINITY : 0.0, most = quantity == FP_CELL_DELTA ? 0.0 : INFINITY;
    fp_contour_answer answers[2];
    for (int k = 0; k < 2; k++) {
        fp_cell_side *side = sides + k;
        double bound;
        const double end = side->factor.count * side->largest + side->slack;
        if (quantity == FP_CELL_DELTA && target >= end)
            bound = -INFINITY;
        else if (fp_cell_chernoff(side, quantity, target - rounding, &bound))
            return -1;
        bound = fp_max(least, fp_min(bound, quantity == FP_CELL_DELTA ? most : end * (1.0 + 4.0 * FP_U)));
        answers[k] = (fp_contour_answer){bound, least, bound};
        if (only_upper || (k && bound <= answers[0].lower))
            continue;
        const int status = quantity == FP_CELL_DELTA ? fp_cell_log_delta(side, target, answers + k, stop)
                                                     : fp_cell_epsilon(side, target, rounding, answers + k, stop);
        if (status)
            return status;
        answers[k].upper = fp_max(answers[k].lower, fp_min(answers[k].upper, bound));
        answers[k].value = fp_min(answers[k].value, answers[k].upper);
    }
    *out = fp_cell_larger(answers[0], answers[1]);
    return fp_stop_requested(stop, 4096);
}

/* Cells of one sigma, rate and count are neighbours; 0 < rate < 1, 0 < sigma < infinity, count >= 1. `done` of them
 * were done before. */
static inline int fp_sampled_cells(ptrdiff_t n, const double *sigma, const double *rate, const double *count,
                                   const double *target, const double *rounding, int quantity, int only_upper,
                                   fp_contour_answer *out, fp_stop_token *stop)
{
    fp_cell_side *sides = calloc(2, sizeof *sides);
    int status = sides ? 0 : -1;
    for (ptrdiff_t i = 0; i < n && !status; i++) {
        if (i == 0 || sigma[i] != sigma[i - 1] || rate[i] != rate[i - 1]) {
            for (int k = 0; k < 2 && !status; k++)
                status = fp_cell_side_make(sides + k, sigma[i], rate[i], k);
            if (status)
                break;
        }
        for (int k = 0; k < 2; k++)
            fp_cell_side_count(sides + k, count[i]);
        status = fp_sampled_cell(sides, quantity, target[i], rounding[i], only_upper, out + i, stop);
    }
    for (int k = 0; k < 2 && sides; k++)
        fp_cell_side_free(sides + k);
    free(sides);
    return status;
}

#endif
