/* Tables of the least sigma of compositions of Poisson-sampled Gaussians, with proofs of both ends.
 *
 * Notation of fp_sampled_cells_solver.h. A cell is rate, count, epsilon, a target log delta and the width aimed at. Its
 * sigmas are e^(j spacing), j whole. The lower end is the largest such sigma at which bounds of one direction prove
 * that delta is above the target; the upper end the least at which bounds of both directions prove that it is not.
 * delta falls with sigma, so that both ends depend on the cell alone, wherever the search starts and whatever it
 * evaluates besides: neighbours give starting values without any effect on the result. A cell whose bounds of delta are
 * too wide for the spacing is left to the general search.
 *
 * Search. R(sigma) is log delta by the saddle point formula (Daniels 1954), which takes a few moments and no sum along
 * a contour. log delta - R hardly changes from cell to cell: R = target less that of the last cell has a root that errs
 * by some 1e-5. From there on secants of log(target / log delta) in log sigma, of the direction with the larger delta;
 * the last evaluations are those that prove the ends.
 */
/* bounds: none - the proofs are those of fp_sampled_cells_solver.h; what is here says where they are tried */
#ifndef FP_SAMPLED_SIGMA_SOLVER_H
#define FP_SAMPLED_SIGMA_SOLVER_H

#include "composition/fp_sampled_cells_solver.h"

/* bound: none - the least spacing of log sigma */
#define FP_SIGMA_LEAST_SPACING 1e-14
#define FP_SIGMA_ROUGH_STEPS 60
#define FP_SIGMA_STEPS 40 /* evaluations of one direction of a cell */
/* bound: none - error of the root of R, and the least step that a slope is taken from */
#define FP_SIGMA_ROUGH_ROOT 1e-6
#define FP_SIGMA_SLOPE_STEP 1e-5
/* bound: none - the largest step of log sigma, and the range that is searched: losses are vast below it */
#define FP_SIGMA_LARGEST_STEP 1.5
#define FP_SIGMA_LEAST -3.0
#define FP_SIGMA_MOST 25.0
/* bound: none - cells beyond are left to the general search: there moments need very many nodes */
#define FP_SIGMA_LEAST_RATE 1e-8
#define FP_SIGMA_LARGEST_EPSILON 200.0

typedef struct {
    double value, lower, upper, evaluations; /* value is NaN where nothing is proved */
} fp_sigma_answer;

typedef struct {
    fp_cell_side sides[2];
    double rate, count, epsilon, target, rounding;
    int only_upper, side; /* side: of the larger delta in the last cell */
    double log_sigma, correction[2], evaluations; /* of the last cell; correction: log delta - R */
    int slot[2]; /* of Chernoff's bound */
    fp_stop_token *stop;
} fp_sigma_search;

/* -1 without memory */
static inline int fp_sigma_side(fp_sigma_search *search, int k, double log_sigma)
{
    fp_cell_side *side = search->sides + k;
    const int start = side->sums.start;
    if (fp_cell_side_make(side, fp_exp(log_sigma), search->rate, k))
        return -1;
    side->sums.start = start, side->sums.single = 1;
    fp_cell_side_count(side, search->count);
    return 0;
}

/* Chernoff's bound of log delta at every FP_CELL_STRIDE-th slot. -1 without memory. */
static inline int fp_sigma_chernoff_at(fp_sigma_search *search, int k, int at, double *out)
{
    fp_cell_side *side = search->sides + k;
    const fp_contour_slot *slot;
    if (fp_contour_find(&side->sums, at * FP_CELL_STRIDE, &slot))
        return -1;
    const double t = slot->t, h = fp_cell_exponent(slot), lost = t * search->epsilon;
    const double bound = h - lost + 4.0 * FP_U * (fabs(h) + lost) + (1.0 + t) * side->slack;
    *out = bound < INFINITY ? bound + 4.0 * FP_U * fabs(bound) : INFINITY;
    return 0;
}

/* The least of them, which is convex in t: from the slot of the last cell in either direction, in steps that double. */
static inline int fp_sigma_chernoff(fp_sigma_search *search, int k, double *out)
{
    const int last = (FP_SLOTS - 1) / FP_CELL_STRIDE;
    int best = search->slot[k];
    if (fp_sigma_chernoff_at(search, k, best, out))
        return -1;
    while (!(*out < INFINITY) && best > 0) { /* t is too large */
        best = best > FP_SLOTS_PER_OCTAVE ? best - FP_SLOTS_PER_OCTAVE : 0;
        if (fp_sigma_chernoff_at(search, k, best, out))
            return -1;
    }
    for (int direction = 1, stays = 0; stays < 2; direction = -direction) {
        const int before = best;
        for (int step = 1; step;) {
            const int at = best + direction * step;
            double bound = INFINITY;
            if (at >= 0 && at <= last && fp_sigma_chernoff_at(search, k, at, &bound))
                return -1;
            if (bound < *out)
                *out = bound, best = at, step *= 2;
            else
                step /= 2;
        }
        stays = best == before ? stays + 1 : 0; /* steps may pass the least one */
    }
    search->slot[k] = best;
    *out = fp_min(*out, 0.0);
    return 0;
}

/* R at log sigma, or Chernoff's bound where no more is wanted; NaN where it is not known. -1 without memory. */
static inline int fp_sigma_rough(fp_sigma_search *search, int k, double log_sigma, double *out)
{
    *out = NAN;
    if (fp_sigma_side(search, k, log_sigma))
        return -1;
    if (search->only_upper)
        return fp_sigma_chernoff(search, k, out);
    fp_composition *c = &search->sides[k].sums;
    const double epsilon = search->epsilon;
    const fp_contour_slot *low, *high;
    double place, curvature;
    if (fp_contour_saddle(c, epsilon, &place, &curvature))
        return -1;
    const int at = place < FP_SLOTS - 2 ? (int)place : FP_SLOTS - 2;
    if (fp_contour_find(c, at, &low) || fp_contour_find(c, at + 1, &high))
        return -1;
    if (low->known < 0 || high->known < 0)
        return 0;
    /* the exponent between two slots by its values and derivatives there */
    const double gap = high->t - low->t, fall = fp_contour_epsilon(c, low) - epsilon;
    const double rise = fp_contour_epsilon(c, high) - epsilon, share = place - at, other = 1.0 - share;
    const double at_low = low->value - epsilon * low->t - fp_log(low->t) - fp_log1p(low->t);
    const double at_high = high->value - epsilon * high->t - fp_log(high->t) - fp_log1p(high->t);
    const double least = other * other * (1.0 + 2.0 * share) * at_low + share * share * (3.0 - 2.0 * share) * at_high
                         + gap * share * other * (other * fall - share * rise);
    *out = least - 0.5 * fp_log(2.0 * FP_PI * (other * fp_contour_curvature(c, low) + share * fp_contour_curvature(c, high)));
    return 0;
}

/* The root of R = goal < 0 in log sigma, and the derivative of R there; 1 where there is none, -1 without memory, or the
 * reason to stop. The secants are of log(goal / R), which has a slope of some -2. */
static inline int fp_sigma_rough_root(fp_sigma_search *search, int k, double goal, double *log_sigma, double *slope)
{
    double low = -INFINITY, high = INFINITY, at = *log_sigma, before = NAN, former = NAN, fall = -2.0;
    for (int step = 0; step < FP_SIGMA_ROUGH_STEPS && at > FP_SIGMA_LEAST && at < FP_SIGMA_MOST; step++) {
        double rough;
        if (fp_stop_requested(search->stop, 4096))
            return search->stop->status;
        if (fp_sigma_rough(search, k, at, &rough))
            return -1;
        const double residual = rough < 0.0 ? fp_log(goal / rough) : INFINITY;
        if (fabs(at - before) > FP_SIGMA_SLOPE_STEP && (residual - former) / (at - before) < -0.01)
            fall = (residual - former) / (at - before);
        if (fabs(residual) < FP_SIGMA_ROUGH_ROOT) {
            *log_sigma = at - residual / fall, *slope = -rough * fall;
            return 0;
        }
        low = residual > 0.0 ? at : low, high = residual > 0.0 ? high : at;
        before = at, former = residual;
        at -= fp_max(-FP_SIGMA_LARGEST_STEP, fp_min(residual / fall, FP_SIGMA_LARGEST_STEP));
        if (!(at > low && at < high))
            at = 0.5 * (low + high);
        if (high - low < FP_SIGMA_ROUGH_ROOT)
            break;
    }
    return 1;
}

/* Bounds of log delta of one direction. -1 without memory, or the reason to stop. */
static inline int fp_sigma_sum(fp_sigma_search *search, int k, double log_sigma, fp_contour_answer *out)
{
    search->evaluations += 1.0;
    if (fp_sigma_side(search, k, log_sigma))
        return -1;
    if (!search->only_upper)
        return fp_cell_log_delta(search->sides + k, search->epsilon, out, search->stop);
    double bound;
    const int status = fp_sigma_chernoff(search, k, &bound);
    *out = (fp_contour_answer){bound, bound, bound};
    return status;
}

/* Whether direction k is proved to meet the target at log sigma. Status: 0; -1 without memory, or the reason to stop. */
static inline int fp_sigma_meets(fp_sigma_search *search, int k, double log_sigma, int *meets)
{
    const double most = search->target - search->rounding;
    fp_contour_answer answer;
    double bound;
    if (fp_sigma_side(search, k, log_sigma))
        return -1;
    const fp_cell_side *side = search->sides + k;
    *meets = search->epsilon >= side->factor.count * side->largest + side->slack;
    if (*meets)
        return 0;
    if (fp_sigma_chernoff(search, k, &bound))
        return -1;
    *meets = bound <= most;
    if (*meets || search->only_upper)
        return 0;
    const int status = fp_sigma_sum(search, k, log_sigma, &answer);
    *meets = !status && answer.upper <= most;
    return status;
}

/* The search of one direction. Ends are whole multiples of the spacing, with log(target / log delta) at both. */
typedef struct {
    double spacing, low, high, at_low, at_high, unknown_low, unknown_high; /* between these nothing is proved */
} fp_sigma_ends;

/* The multiple whose proof is sought next, near `guess` */
static inline double fp_sigma_next(const fp_sigma_ends *ends, double guess)
{
    double next = floor(guess);
    if (!(next > ends->low))
        next = ends->low + 1.0;
    if (!(next < ends->high))
        next = ends->high - 1.0;
    if (next >= ends->unknown_low && next <= ends->unknown_high)
        next = ends->low < ends->unknown_low - 1.0 ? ends->unknown_low - 1.0 : ends->unknown_high + 1.0;
    return next;
}

static inline int fp_sigma_complete(const fp_sigma_ends *ends)
{
    return ends->high - ends->low == 1.0
           || (ends->low == ends->unknown_low - 1.0 && ends->high == ends->unknown_high + 1.0);
}

/* Both ends by direction k, from log sigma on; `proved` says whether there are any. Status as above. */
static inline int fp_sigma_search_ends(fp_sigma_search *search, int k, double width, double log_sigma,
                                       fp_sigma_ends *ends, int *proved)
{
    const double target = search->target, goal = fp_min(target - search->correction[k], 0.5 * target);
    double at = log_sigma, slope = NAN, place[2], residual[2];
    int points = 0;
    *proved = 0;
    *ends = (fp_sigma_ends){fp_max(exp2(floor(log2(0.9 * width))), FP_SIGMA_LEAST_SPACING), -INFINITY, INFINITY, 0.0,
                            0.0, INFINITY, -INFINITY};
    int status = fp_sigma_rough_root(search, k, goal, &at, &slope);
    if (status)
        return status < 0 ? status : 0;
    const double start = at;
    for (int step = 0; step < FP_SIGMA_STEPS; step++) {
        const double multiple = fp_sigma_next(ends, at / ends->spacing);
        fp_contour_answer answer;
        at = multiple * ends->spacing;
        status = fp_sigma_sum(search, k, at, &answer);
        const double uncertainty = (answer.upper - answer.lower) / fabs(slope);
        if (status || !(4.0 * uncertainty < ends->spacing && answer.value < 0.0))
            return status;
        const double from_root = fp_log(target / answer.value);
        if (answer.upper <= target - search->rounding)
            ends->high = multiple, ends->at_high = from_root;
        else if (answer.lower >= target + search->rounding)
            ends->low = multiple, ends->at_low = from_root;
        else
            ends->unknown_low = fp_min(ends->unknown_low, multiple),
            ends->unknown_high = fp_max(ends->unknown_high, multiple);
        *proved = fp_sigma_complete(ends);
        if (*proved)
            break;
        const int worst = points < 2 ? points++ : fabs(residual[1]) > fabs(residual[0]);
        place[worst] = at, residual[worst] = from_root;
        const int best = points == 2 && fabs(residual[1]) < fabs(residual[0]);
        double fall = points == 2 ? (residual[1] - residual[0]) / (place[1] - place[0]) : NAN;
        const int secant = fall < -0.01 && fall > -INFINITY;
        fall = secant ? fall : -slope / target;
        const double move = fp_max(-0.5, fp_min(-residual[best] / fall, 0.5));
        at = place[best] + move;
    }
    if (!search->only_upper)
        search->correction[k] = target - (goal + slope * (at - start));
    return 0;
}

/* One cell. Status as above. */
static inline int fp_sampled_sigma(fp_sigma_search *search, double width, fp_sigma_answer *out)
{
    double least = -INFINITY, start = search->log_sigma;
    search->evaluations = 0.0;
    *out = (fp_sigma_answer){NAN, 0.0, INFINITY, 0.0};
    if (search->rate < FP_SIGMA_LEAST_RATE || search->epsilon > FP_SIGMA_LARGEST_EPSILON)
        return 0;
    for (int attempt = 0; attempt < 2; attempt++) {
        fp_sigma_ends ends;
        int proved, meets;
        const int k = search->side;
        int status = fp_sigma_search_ends(search, k, width, start, &ends, &proved);
        if (status || !proved)
            return status;
        const double low = ends.low * ends.spacing, high = ends.high * ends.spacing;
        least = fp_max(least, low);
        if ((status = fp_sigma_meets(search, 1 - k, high, &meets)))
            return status;
        out->evaluations = search->evaluations;
        if (meets) {
            const double share = ends.at_low / (ends.at_low - ends.at_high);
            const double root = low + (high - low) * (share >= 0.0 && share <= 1.0 ? share : 0.5);
            out->upper = fp_exp(high), out->lower = search->only_upper ? 0.0 : fp_exp(least);
            out->value = search->only_upper ? out->upper : fp_max(out->lower, fp_min(fp_exp(root), out->upper));
            search->log_sigma = root;
            return fp_stop_requested(search->stop, 4096);
        }
        search->side = 1 - k, start = high;
    }
    return 0;
}

/* Cells of one rate and count are neighbours; 0 < rate < 1, count >= 1, epsilon >= 0, target < 0. */
static inline int fp_sampled_sigmas(ptrdiff_t n, const double *rate, const double *count, const double *epsilon,
                                    const double *target, const double *rounding, double width, int only_upper,
                                    fp_sigma_answer *out, fp_stop_token *stop)
{
    fp_sigma_search *search = calloc(1, sizeof *search);
    int status = search ? 0 : -1;
    double guess = 1.0;
    for (ptrdiff_t i = 0; i < n && !status; i++) {
        const double former = guess;
        guess = fp_max(0.5, rate[i] * sqrt(count[i]));
        search->log_sigma = i ? search->log_sigma + fp_log(guess / former) : fp_log(guess);
        search->rate = rate[i], search->count = count[i], search->epsilon = epsilon[i];
        search->target = target[i], search->rounding = rounding[i], search->only_upper = only_upper;
        search->stop = stop;
        for (int k = 0; k < 2 && !i; k++)
            search->slot[k] = FP_SLOTS / 2 / FP_CELL_STRIDE;
        status = fp_sampled_sigma(search, width, out + i);
    }
    for (int k = 0; k < 2 && search; k++)
        fp_cell_side_free(search->sides + k);
    free(search);
    return status;
}

#endif
