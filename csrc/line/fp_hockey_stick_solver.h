/* Hockey-stick curves of a pair of mixtures; included once per instruction set. */
/* bounds: proved - rounding of logarithms of ceilings, and of results that are subnormal:
 * docs/proofs/monotone_pieces.md, theorem 3.16 */
#include "common/fp_lanes_loops.h"
#include "line/fp_log_ratio_loops.h"
#include "line/fp_points_loops.h"
#include "line/fp_crossings_solver.h"
#include "line/fp_monotone_pieces_solver.h"
#include "line/fp_hockey_stick_set_solver.h"
#include "line/fp_scaled_sum_loops.h"
#include "line/fp_hockey_stick_sum_loops.h"

/* Compute the masses until the time is spent; -1 when memory is short. */
static int FP_NAME(fp_interval_masses_build)(const fp_log_ratio *r, const fp_pieces *pieces,
                                             FP_NAME(fp_interval_masses) * out)
{
    int i = 0, j = 0, p_step = 1 + r->np / FP_DEADLINE_INTERVALS, q_step = 1 + r->nq / FP_DEADLINE_INTERVALS, last = 0;
    double left = -INFINITY;
    out->cells = out->pieces = 0;
    out->cell = malloc((size_t)(2 * FP_DEADLINE_INTERVALS + 3 + pieces->count) * sizeof *out->cell);
    if (!out->cell)
        return -1;
    fp_interval_mass whole = FP_NAME(fp_interval_mass_of)(r, -INFINITY, INFINITY);
    out->all = whole.p + whole.p_error;
    while (!last && !fp_stop_requested(r->stop, 4 * (r->np + r->nq))) {
        double right = INFINITY;
        last = i >= r->np && j >= r->nq;
        if (!last && (j >= r->nq || (i < r->np && r->m[i] <= r->n[j])))
            right = r->m[i], i += p_step;
        else if (!last)
            right = r->n[j], j += q_step;
        if (left < right)
            out->cell[out->cells++] = FP_NAME(fp_interval_mass_of)(r, left, right);
        left = right;
    }
    out->piece = out->cell + out->cells;
    while (out->pieces < pieces->count && !fp_stop_requested(r->stop, 4 * (r->np + r->nq))) {
        const fp_piece *piece = &pieces->piece[out->pieces];
        out->piece[out->pieces++] = FP_NAME(fp_interval_mass_of)(r, piece->left, piece->right);
    }
    return 0;
}

static void FP_NAME(fp_optimal_sets_free)(fp_optimal_sets *sets)
{
    for (int i = 0; i < FP_EPSILON_BLOCK; ++i) {
        free(sets->set[i].interval);
        free(sets->set[i].crossing);
    }
    free(sets->crossing);
}

/* log of an upper bound of H, from P(E) alone and what E may lack; not to be used when it was stopped. */
static double FP_NAME(fp_hockey_stick_upper_bound)(const fp_log_ratio *r, const fp_optimal_set *set)
{
    double top = set->loss_count ? set->loss_log + log(set->loss_sum) + 1e-8 : -INFINITY;
    for (int i = 0; i < set->count && !fp_stop_requested(r->stop, 2 * r->np); ++i) {
        double left = set->interval[2 * i].hi, right = set->interval[2 * i + 1].hi;
        double mass = FP_NAME(fp_mass_upper_bound)(&r->p, left, right, right - left) + 1e-9;
        top = (top > mass ? top : mass) + (top > -INFINITY ? 0.6931471806 : 0.0);
    }
    return top > -INFINITY ? top + 1e-15 * (set->count + 10.0) * fabs(top) : top;
}

/* Widen a bracket for means that underflowed: each is off by less than 2^-1022, and sigmas are above 2^-110. */
static void FP_NAME(fp_widen_for_underflow)(double epsilon, fp_bracket *out)
{
    double slack = 1e-270 * exp(epsilon > 0.0 ? epsilon : 0.0);
    out->lower = out->lower > slack ? nextafter(out->lower - slack, 0.0) : 0.0;
    out->upper = out->upper + slack < 1.0 ? nextafter(out->upper + slack, 1.0) : 1.0;
    out->log_lower = out->lower > 0.0 ? fmin(log(out->lower), out->log_lower) - 1e-12 : -INFINITY;
    out->log_upper = log(out->upper) + 1e-12 < 0.0 ? log(out->upper) + 1e-12 : 0.0;
}

/* Whether there is a set E to be found for an eps. */
static int FP_NAME(fp_hockey_stick_needs_set)(const fp_log_ratio *r, double epsilon)
{
    return epsilon < INFINITY && !r->unresolved;
}

/* The sets E of `count` eps, and their P(E) and Q(E). Nothing is valid when it was stopped. */
static int FP_NAME(fp_optimal_sets_build)(const fp_log_ratio *r, const fp_pieces *pieces, const double *epsilon,
                                          int count, double scale, fp_optimal_sets *sets)
{
    ptrdiff_t many = 0;
    int status = 0;
    for (int e = 0; e < count && !status; ++e) {
        fp_optimal_set *set = &sets->set[e];
        set->count = set->crossings = 0;
        if (FP_NAME(fp_hockey_stick_needs_set)(r, epsilon[e]))
            status = FP_NAME(fp_optimal_set_build)(r, pieces, epsilon[e], set);
        if (many + set->crossings > sets->capacity) {
            ptrdiff_t capacity = 2 * (many + set->crossings) + 64;
            fp_crossing **grown = realloc(sets->crossing, (size_t)capacity * sizeof *grown);
            if (!grown)
                return -1;
            sets->crossing = grown;
            sets->capacity = capacity;
        }
        for (int i = 0; i < set->crossings; ++i)
            sets->crossing[many++] = &set->crossing[i];
    }
    if (status)
        return status;
    FP_NAME(fp_crossings_find)(r, pieces, sets->crossing, many, &sets->set[0].evaluations);
    for (int e = 0; e < count && !status; ++e)
        status = FP_NAME(fp_optimal_set_fill)(r, scale, &sets->set[e]);
    if (!status)
        FP_NAME(fp_optimal_sets_sum)(r, sets->set, count);
    return status ? status : r->stop->status;
}

/* H for one eps from its set E, without the widening for underflow. */
static int FP_NAME(fp_hockey_stick_evaluate)(const fp_log_ratio *r, const fp_pieces *pieces, double epsilon,
                                             double scale, double target, int logs, fp_optimal_set *set,
                                             fp_bracket *out, long *extended)
{
    if (epsilon == INFINITY) {
        *out = (fp_bracket){0.0, 0.0, 0.0, -INFINITY, -INFINITY, -INFINITY};
        return 0;
    }
    if (r->unresolved) {
        *out = (fp_bracket){0.5, 0.0, 1.0, -FP_LN2, -INFINITY, 0.0};
        return 0;
    }
    if (epsilon > FP_EPSILON_SUMMED) { /* H <= P(E) and what E may lack */
        double top = FP_NAME(fp_hockey_stick_upper_bound)(r, set), sum = 0.0, *part = r->scratch,
               *slip = part + r->p.padded;
        for (int i = 0; i < set->count && !fp_stop_requested(r->stop, 2 * r->np); ++i) {
            double mass, error;
            FP_NAME(fp_mixture_mass)(&r->p, r->w, set->interval[2 * i].hi, set->interval[2 * i + 1].hi, part, slip,
                                     &mass, &error);
            sum += mass;
        }
        *out = (fp_bracket){
            sum,       0.0, top > -INFINITY ? nextafter(exp(top) * (1.0 + FP_ROUND), INFINITY) : 0.0, sum > 1e-280 ? log(sum) : top,
            -INFINITY, top};
        FP_NAME(fp_bracket_round_outward)(out);
        return r->stop->status;
    }
    int narrow = FP_NAME(fp_hockey_stick_from_tails)(r, epsilon, set, target, logs, out);
    if (!narrow && !(set->p.hi > FP_FAR_OUT)) /* tails end with the table, doubles have their relative accuracy */
        narrow = FP_NAME(fp_hockey_stick_in_doubles)(r, epsilon, set, target, logs, out);
    if (r->stop->status)
        return r->stop->status;
    if (!narrow) {
        FP_NAME(fp_hockey_stick_in_double_doubles)(r, epsilon, set, out);
        if (r->stop->status)
            return r->stop->status;
        if (!(out->log_upper - out->log_lower <= 0.25 * target) && set->loss_count) {
            set->extended_precision = 1; /* the errors of the crossings were the limit */
            int status = FP_NAME(fp_optimal_set_build)(r, pieces, epsilon, set);
            status = status ? status : FP_NAME(fp_optimal_set_fill)(r, scale, set);
            set->extended_precision = 0;
            if (status)
                return status;
            FP_NAME(fp_hockey_stick_in_double_doubles)(r, epsilon, set, out);
            if (r->stop->status)
                return r->stop->status;
        }
        ++*extended;
    }
    FP_NAME(fp_bracket_round_outward)(out);
    return 0;
}

static int FP_NAME(fp_hockey_stick_at)(const fp_log_ratio *r, const fp_pieces *pieces, double epsilon, double scale,
                                       double target, int logs, fp_optimal_set *set, fp_bracket *out, long *extended)
{
    int status = FP_NAME(fp_hockey_stick_evaluate)(r, pieces, epsilon, scale, target, logs, set, out, extended);
    if (!status && r->underflowed && epsilon < INFINITY)
        FP_NAME(fp_widen_for_underflow)(epsilon, out);
    return status;
}

static double FP_NAME(fp_largest_sigma)(const fp_log_ratio *r)
{
    double scale = 0.0;
    for (int i = 0; i < r->np; ++i)
        scale = r->s[i] > scale ? r->s[i] : scale;
    for (int j = 0; j < r->nq; ++j)
        scale = r->t[j] > scale ? r->t[j] : scale;
    return scale;
}

/* The analysis of a pair; returns -1 when memory is short, FP_INTERRUPTED when the caller stopped it. At the deadline
 * the pieces are those found by then. */
static int FP_NAME(fp_pair_analysis_build)(fp_pair_analysis *analysis, int np, const double *w, const double *m,
                                           const double *s, int nq, const double *v, const double *n, const double *t,
                                           fp_interrupted interrupted, double deadline)
{
    fp_stop_token stop = fp_stop_token_make(interrupted, deadline);
    *analysis = (fp_pair_analysis){.r.stop = &stop};
    if (fp_log_ratio_build(&analysis->r, np, w, m, s, nq, v, n, t))
        return -1;
    int status = analysis->r.unresolved ? 0 : FP_NAME(fp_pieces_build)(&analysis->r, &analysis->pieces);
    analysis->scale = FP_NAME(fp_largest_sigma)(&analysis->r);
    analysis->pieces.expired = analysis->pieces.expired || stop.status == FP_EXPIRED;
    analysis->r.stop = NULL;
    return status == FP_EXPIRED ? 0 : status;
}

/* Close the brackets of every eps by bounds of another kind; returns how many of them these contradicted. */
static long FP_NAME(fp_close_curve)(int np, const double *w, const double *m, const double *s, int nq, const double *v,
                                    const double *n, const double *t, const double *epsilon, ptrdiff_t count,
                                    fp_bracket *out)
{
    fp_elementary_bounds known;
    long contradicted = 0;
    fp_elementary_bounds_build(np, w, m, s, nq, v, n, t, &known);
    for (ptrdiff_t start = 0; start < count; start += FP_EPSILON_BLOCK) {
        const ptrdiff_t n = count - start < FP_EPSILON_BLOCK ? count - start : FP_EPSILON_BLOCK;
        double lower[FP_EPSILON_BLOCK], upper[FP_EPSILON_BLOCK];
        _Pragma("GCC ivdep") for (ptrdiff_t k = 0; k < n; ++k)
            fp_elementary_bounds_at(&known, epsilon[start + k], &lower[k], &upper[k]);
        for (ptrdiff_t k = 0; k < n; ++k)
            contradicted += fp_close_bracket(lower[k], upper[k], &out[start + k]);
    }
    return contradicted;
}

/* H for every eps, with the stop token and the workspace of `r`; returns and cost as fp_pair_analysis_curve. */
static int FP_NAME(fp_curve_from_pieces)(const fp_log_ratio *r, const fp_pieces *pieces, double scale,
                                         const double *epsilon, ptrdiff_t count, double target, int logs,
                                         fp_interrupted interrupted, double deadline, fp_bracket *out, long *cost)
{
    fp_stop_token *stop = r->stop;
    fp_optimal_sets sets = {0};
    ptrdiff_t done = 0;
    int status = 0;
    cost[0] = cost[1] = cost[4] = cost[5] = 0;
    cost[2] = pieces->count;
    cost[3] = pieces->undecided + r->unresolved;
    while (done < count && !status && (r->unresolved || (!stop->status && !pieces->expired))) {
        int most = r->np + r->nq > FP_MANY_COMPONENTS ? FP_EPSILON_BLOCK_OF_MANY : FP_EPSILON_BLOCK,
            block = count - done < most ? (int)(count - done) : most;
        status = FP_NAME(fp_optimal_sets_build)(r, pieces, epsilon + done, block, scale, &sets);
        for (int e = 0; e < block && !status; ++e, done += !status)
            status = FP_NAME(fp_hockey_stick_at)(r, pieces, epsilon[done], scale, target, logs, &sets.set[e],
                                                 &out[done], &cost[1]);
    }
    if (done < count && status != -1 && (stop->status == FP_EXPIRED || (pieces->expired && !stop->status))) {
        FP_NAME(fp_interval_masses) known;
        *stop = fp_stop_token_make(interrupted, deadline + FP_DEADLINE_GRACE_SECONDS);
        status = FP_NAME(fp_interval_masses_build)(r, pieces, &known);
        cost[4] = (long)(count - done);
        for (; done < count && !status; ++done) {
            FP_NAME(fp_hockey_stick_from_masses)(pieces, &known, epsilon[done], &out[done]);
            if (r->underflowed && epsilon[done] < INFINITY)
                FP_NAME(fp_widen_for_underflow)(epsilon[done], &out[done]);
        }
        free(known.cell);
    }
    status = status == FP_EXPIRED ? 0 : status ? status : stop->status == FP_INTERRUPTED ? FP_INTERRUPTED : 0;
    for (int e = 0; e < FP_EPSILON_BLOCK; ++e)
        cost[0] += sets.set[e].evaluations;
    FP_NAME(fp_optimal_sets_free)(&sets);
    return status;
}

/* H of P from Q for every eps; returns -1 when memory is short, FP_INTERRUPTED when the caller stopped it. cost:
 * evaluations of L (those of the analysis not included), sums in double-doubles, pieces, intervals of the line whose
 * budget was spent or which could not be resolved, and the number of eps that were not done at the deadline: their
 * brackets are valid but wide; and the number of brackets that elementary bounds contradicted and widened. */
static int FP_NAME(fp_pair_analysis_curve)(const fp_pair_analysis *analysis, const double *epsilon, ptrdiff_t count,
                                           double target, int logs, fp_interrupted interrupted, double deadline,
                                           fp_bracket *out, long *cost)
{
    fp_stop_token stop = fp_stop_token_make(interrupted, deadline);
    fp_log_ratio r = analysis->r;
    r.stop = &stop;
    r.scratch = malloc(r.scratch_size * sizeof *r.scratch);
    int status = r.scratch ? FP_NAME(fp_curve_from_pieces)(&r, &analysis->pieces, analysis->scale, epsilon, count,
                                                           target, logs, interrupted, deadline, out, cost)
                           : -1;
    if (!status && !r.underflowed)
        cost[5] = FP_NAME(fp_close_curve)(r.np, r.w, r.m, r.s, r.nq, r.v, r.n, r.t, epsilon, count, out);
    free(r.scratch);
    return status;
}

/* Analysis and curve; cost[0] counts both. */
static int FP_NAME(fp_monotone_pieces_curve)(int np, const double *w, const double *m, const double *s, int nq,
                                             const double *v, const double *n, const double *t, const double *epsilon,
                                             ptrdiff_t count, double target, int logs, fp_interrupted interrupted,
                                             double deadline, fp_bracket *out, long *cost)
{
    fp_pair_analysis analysis;
    fp_stop_token stop = fp_stop_token_make(interrupted, deadline);
    int status =
        FP_NAME(fp_pair_analysis_build)(&analysis, np, w, m, s, nq, v, n, t, interrupted, deadline);
    analysis.r.stop = &stop;
    if (!status)
        status = FP_NAME(fp_curve_from_pieces)(&analysis.r, &analysis.pieces, analysis.scale, epsilon, count, target,
                                               logs, interrupted, deadline, out, cost);
    cost[0] += analysis.pieces.evaluations;
    if (!status)
        cost[5] = FP_NAME(fp_close_curve)(np, w, m, s, nq, v, n, t, epsilon, count, out);
    fp_pair_analysis_free(&analysis);
    return status;
}

