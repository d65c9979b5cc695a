/* What one pair contributes to a sum along a contour: the moments M(t + i w) of its privacy loss.
 *
 * Notation. l = log(p/q) is the loss of a pair, M(z) = E_P e^(z l), kappa(t) = log M(t), and mean and variance are
 * those of l under the tilted weights p e^(t l) / M(t). `mean` is a number of double precision, whatever it errs by:
 *     m(w) = M(t + i w) / M(t) e^(-i w mean).
 * P and Q need not have mass 1 exactly: log_mass is log of P's.
 *
 * Factors are of several kinds, one file a kind; fp_contour_kind says what each of them offers. Several kinds hold
 * nodes: points of a quadrature with logarithms of p times the weight of the quadrature, and with losses.
 *
 * Turns. Two neighbouring frequencies differ by the factor 1 + r = e^(i step l), and d = e^(i w l) - 1 becomes
 * d' = d + (r + d r), which adds an error of at most u (|d'| + 5.5 |r|); d from sines and r err by 13 u of
 * min(w |l|, 2). Between two frequencies at which d is taken from sines are less than FP_CONTOUR_TURNS others.
 *
 * Rounding of nodes. The error of m(w) by tilted weights and centred losses is relative to |m - 1|: the count of a pair
 * times it stays small (docs/proofs/contour.md, theorems 2.8 and 2.14). kappa is log1p(mass - 1 + sum p_j (e^(t l_j) -
 * 1)) where M is near 1.
 *
 * Second order. Where the masses of P and Q are known, their difference `gap` being E_P[1 - e^(-l)], with g(u) = e^u -
 * 1 - u >= 0
 *     M(z) = E_P[g(z l) + z g(-l)] + mass + z gap,     M'(t) = E_P[l (e^(t l) - 1) + g(-l)] + gap:
 * all terms are of second order in l, so that errors are relative to the variance of the loss, and count times them is
 * as large as log delta at most. With mu = M'(t)/M(t), c = l - mu and tilted weights g_j that sum to 1 but for e,
 *     m(w) = 1 + sum g_j (e^(i w c_j) - 1 - i w c_j) + r,  |r| <= e ((w mu)^2/2 + w |mu|^2 w) + ...
 * (subtract from M(t + i w) its tangent at w = 0; what is left is sum p_j e^(t l_j) (e^(i w l_j) - 1 - i w l_j)). A
 * window chi of the outcome adds -E_P[(1 - chi) (1 + z l)] and takes chi g(z l) for g(z l). The rule and the ends err
 * for P's mass and for Q's: (1 + t + w) times their errors in all.
 */
/* bounds: proved - rounding of moments by nodes, docs/proofs/contour.md, theorem 2.14 */
#ifndef FP_CONTOUR_FACTOR_SOLVER_H
#define FP_CONTOUR_FACTOR_SOLVER_H

#include "common/fp_dd.h"
#include "common/fp_lanes.h"
#include "common/fp_stop_token.h"
#include "composition/fp_sin_cos.h"
#include "line/fp_integrand.h"

#define FP_CONTOUR_BLOCK 64  /* nodes whose terms are summed before they are added to the total */
#define FP_CONTOUR_NODES (1 << 20) /* of one pair */
#define FP_CONTOUR_AT_ONCE 32 /* frequencies whose moments are taken together */
/* bound: none - count of a pair from which moments are taken to the second order */
#define FP_CONTOUR_MANY 1e5
#define FP_CONTOUR_TURNS 8 /* frequencies from one sine to the next */
/* bound: proved - exponents of the errors of quadrature and of truncation, e^-46 = 1e-20, which enter the bounds */
#define FP_CONTOUR_AIM 46.0

#define FP_LOOPS "composition/fp_contour_loops.h"
#include "common/fp_variants.h"

typedef struct {
    void (*sums)(int, const double *, const double *, double, double, int, double *, double *, double *);
    double (*cosines)(int, const double *, const double *, double, double);
} fp_contour_kernels;

static fp_contour_kernels fp_contour_selected;

typedef struct fp_contour_factor fp_contour_factor;

typedef struct {
    /* Tilt the pair, t > 0, or t > -1 where both_sides is set: kappa, kappa_error, mean, variance, and what `moments` needs for frequencies up to w. e^-aim is
     * the error of quadrature and truncation aimed at; it enters kappa_error whatever it is. With w = 0 and a small
     * aim a
     * few nodes serve a search. 0; -1 without memory; 1 where M(t) cannot be computed. */
    int (*build)(fp_contour_factor *, double t, double w, double aim);
    /* log |m|, arg m and a bound of |error of m| at each of the `count` frequencies (first + i) step; relative errors
     * of a few units in the last place of log |m| and arg m come on top. */
    void (*moments)(const fp_contour_factor *, double first, double step, int count, double *log_size, double *phase,
                    double *wrong);
    /* A bound of |m(w')| for all w' >= w; 1 where none is known. */
    double (*decay)(const fp_contour_factor *, double w);
    /* A lower bound of 1 - |m(w)|^2, of kinds whose |m| returns to near 1 and whose variance is known to 1e-6; NULL of
     * others. */
    double (*distance)(const fp_contour_factor *, double w);
} fp_contour_kind;

/* Nodes of a quadrature. The first three arrays and the errors are the input of fp_contour_nodes_tilt. */
typedef struct {
    int n, capacity; /* n is a multiple of eight */
    double *log_p, *loss, *log_p_error, *loss_error, *rest, *spare, *g, *block; /* spare: 256 at least, of the kind */
    double spread, reach; /* sum of g |l - mean|; the largest |l - mean| */
    double moved_loss, moved_weight, weighted_error; /* sums of g dl, g e, g e |l - mean|, e the relative error of g */
    double quadrature;          /* error of m from the rule and the ends, relative to M(t) */
    double log_top, log_total;  /* of p_j e^(t l_j) at the nodes; of their sum */
    /* Of second order: whether known; sums of g c^2, g |c| dl, g e c^2 / 2; errors of the mean, and of the masses */
    int second;
    double square, moved_square, weighted_square, mean_error, masses;
} fp_contour_nodes;

struct fp_contour_factor {
    const fp_contour_kind *kind;
    const void *pair; /* of the kind */
    double count, largest_t, log_mass;
    int both_sides; /* whether the kind also serves -1 < t < 0 */
    int centred; /* whether `build` may take losses less their maximum */
    fp_dd offset; /* what the losses of the last tilt are less: kappa is less t offset, and mean less offset */
    double t, kappa, kappa_error, mean, variance; /* of the last tilt */
    double first, step;                           /* of equidistant nodes */
    double enough;                                /* the bound of |m| that `decay` need not improve */
    double state[8];                              /* of kinds in closed form */
    int has_gap; /* whether mass of P less mass of Q, and the least and the largest mean of either, are known */
    double gap, low, high;
    fp_contour_nodes nodes;
};

static inline void fp_contour_factor_free(fp_contour_factor *factor) { free(factor->nodes.block); }

static inline int fp_contour_nodes_reserve(fp_contour_nodes *nodes, int n)
{
    if (n > nodes->capacity) {
        free(nodes->block);
        nodes->capacity = 256 + (n + n / 4 + 7) / 8 * 8;
        nodes->block = malloc(sizeof(double) * 7 * (size_t)nodes->capacity);
        if (!nodes->block) {
            nodes->capacity = 0;
            return -1;
        }
        double *cursor = nodes->block;
        double **arrays[7] = {&nodes->log_p, &nodes->spare, &nodes->loss, &nodes->log_p_error, &nodes->rest,
                              &nodes->loss_error, &nodes->g};
        for (int i = 0; i < 7; i++)
            *arrays[i] = fp_take(&cursor, nodes->capacity);
    }
    nodes->n = n;
    return 0;
}

/* e^u - 1 - u >= 0, to 13 units of 2^-53; from 1/2 on the part left out of the series would be more */
FP_INLINE double fp_exp_excess(double u)
{
    double c = 1.0 / 87178291200.0;
    c = c * u + 1.0 / 6227020800.0, c = c * u + 1.0 / 479001600.0, c = c * u + 1.0 / 39916800.0;
    c = c * u + 1.0 / 3628800.0, c = c * u + 1.0 / 362880.0, c = c * u + 1.0 / 40320.0, c = c * u + 1.0 / 5040.0;
    c = c * u + 1.0 / 720.0, c = c * u + 1.0 / 120.0, c = c * u + 1.0 / 24.0, c = c * u + 1.0 / 6.0;
    return fabs(u) < 0.5 ? u * u * (c * u + 0.5) : fp_expm1(u) - u;
}

/* A bound of what the sums of p and of q at the nodes miss of their integrals */
static inline double fp_contour_nodes_masses(const fp_contour_factor *factor, double rule, double log_left_out)
{
    const double left = factor->low - factor->first * factor->step;
    const double right = (factor->first + factor->nodes.n - 1) * factor->step - factor->high;
    const double away = fp_min(left, right);
    return away > 1.0 ? 2.0 * rule + fp_exp(log_left_out) + fp_exp(-0.5 * away * away) : INFINITY;
}

/* Tilted weights and centred losses, kappa, mean and variance. log_p and its absolute error hold log of density times
 * weight; `rest` is 1 less the share of P that a window leaves there (NULL without one); `mass` is the mass of P
 * less 1. `rule` bounds the error of the rule relative to M(t) and to the mass, e^log_ends what lies beyond the
 * nodes of p e^(t l), e^log_left_out what lies there of p. */
static inline void fp_contour_nodes_tilt(fp_contour_factor *factor, double t, double mass, double rule, double log_ends,
                                         double log_left_out, const double *rest)
{
    fp_contour_nodes *nodes = &factor->nodes;
    const int n = nodes->n;
    const double tilt = fabs(t);
    double peak = -INFINITY, moment = 0.0, error = 0.0;
    fp_accumulator sum = {0.0, 0.0}, changes = {0.0, 0.0};
    for (int j = 0; j < n; j++)
        peak = fp_max(peak, nodes->log_p[j] + t * nodes->loss[j]);
    for (int j = 0; j < n; j++) {
        const double y = t * nodes->loss[j], g = fp_exp((nodes->log_p[j] + y) - peak);
        const double e = nodes->log_p[j] + y, relative = nodes->log_p_error[j] + tilt * nodes->loss_error[j]
                                                         + FP_U * (3.0 + fabs(y) + fabs(e) + fabs(e - peak));
        nodes->g[j] = g;
        nodes->log_p_error[j] = relative;
        fp_accumulator_add(&sum, g);
        moment += g * nodes->loss[j], error += g * relative;
    }
    const double total = fp_accumulator_value(&sum), scale = 1.0 / total;
    double mean = moment * scale, second = 0.0, second_error = INFINITY, known_mean_error = INFINITY;
    const int many = factor->has_gap && factor->count >= FP_CONTOUR_MANY && factor->offset.hi == 0.0
                     && t >= 0.0;
    const double masses = many ? fp_contour_nodes_masses(factor, rule, log_left_out) : INFINITY;
    if (many && masses * (1.0 + t) < 1e-3) {
        const double known = mass + t * factor->gap;
        double size = 0.0, wrong = 0.0, slope = factor->gap, slope_size = 0.0, slope_wrong = 0.0;
        for (int j = 0; j < n; j++) {
            const double l = nodes->loss[j], y = t * l, left = rest ? rest[j] : 0.0;
            const double p = fp_exp(rest ? nodes->spare[j] : nodes->log_p[j]), dl = nodes->loss_error[j];
            const double e = nodes->log_p_error[j] + 20.0 * FP_U, rise = fp_expm1(y), fall = fp_exp_excess(-l);
            const double inner = (1.0 - left) * fp_exp_excess(y), lost = left * (1.0 + fabs(y));
            second += p * (inner + t * fall - left * (1.0 + y)), size += p * (inner + t * fall + lost);
            wrong += p * ((inner + t * fall + 3.0 * lost) * e
                          + t * dl * (fabs(rise) + fabs(fp_expm1(-l)) + (1.0 + t) * dl + left));
            slope += p * ((1.0 - left) * l * rise + fall - left * l);
            slope_size += p * ((1.0 - left) * l * rise + fall + left * fabs(l));
            slope_wrong += p * (((1.0 - left) * l * rise + fall + 3.0 * left * fabs(l)) * e
                                + dl * (fabs(rise) + fabs(y) * fp_exp(y) + fabs(fp_expm1(-l)) + (1.0 + t) * dl + left));
        }
        second += known;
        second_error = (wrong * 1.01 + FP_U * (n * size + 4.0 * (fabs(second) + fabs(mass) + 2.0 * fabs(known)))
                        + 1e-300 + (1.0 + t) * masses + rule
                        + fp_exp(log_ends - (peak + fp_log(total))) * (1.0 + second))
                       / (1.0 + second) * 1.1;
        const double found = slope / (1.0 + second);
        known_mean_error = (slope_wrong * 1.01 + FP_U * (n * slope_size + 4.0 * (fabs(slope) + fabs(factor->gap)))
                            + masses) / (1.0 + second) * 1.1 + 1.1 * fabs(found) * (second_error + 2.0 * FP_U);
        if (second > -0.5 && second_error < 1e-3 && known_mean_error < INFINITY)
            mean = found;
        else
            second_error = INFINITY;
    }
    nodes->second = second_error < INFINITY, nodes->masses = masses, nodes->mean_error = known_mean_error;
    double square = 0.0, moved_square = 0.0, weighted_square = 0.0;
    double spread = 0.0, reach = 0.0, variance = 0.0, moved = 0.0, weighted = 0.0, change_size = 0.0,
        change_error = 0.0;
    for (int j = 0; j < n; j++) {
        const double y = t * nodes->loss[j], left = rest ? rest[j] : 0.0, log_p = nodes->log_p[j];
        const double p = fp_exp(rest ? nodes->spare[j] : log_p);
        const int near = fabs(y) < 1.0 && left < 0.5;
        const double change = near ? p * (fp_expm1(y) - left * fp_exp(y)) : fp_exp(log_p + y) - p;
        const double touched = near ? p * (fabs(fp_expm1(y)) + 3.0 * left) : p + fabs(change);
        fp_accumulator_add(&changes, change);
        change_size += fabs(change);
        change_error += touched * (nodes->log_p_error[j] + 6.0 * FP_U) + (p + fabs(change)) * tilt * nodes->loss_error[j];
        const double centred = nodes->loss[j] - mean, size = fabs(centred), g = nodes->g[j] * scale;
        const double change_of_loss = nodes->loss_error[j] + FP_U * size;
        nodes->g[j] = g, nodes->loss[j] = centred;
        spread += g * size, variance += g * size * size, reach = fp_max(reach, size);
        moved += g * change_of_loss;
        weighted += g * size * nodes->log_p_error[j];
        square += g * size * size, weighted_square += 0.5 * g * size * size * nodes->log_p_error[j];
        moved_square += g * (size + change_of_loss) * change_of_loss;
    }
    nodes->square = square, nodes->moved_square = moved_square * 1.01;
    nodes->weighted_square = (weighted_square + 0.5 * error * scale * square) * 1.01;
    const double sum_error = FP_U * FP_U * n * n; /* of compensated sums of n numbers, relative to their sizes */
    nodes->log_top = peak, nodes->log_total = peak + fp_log(total);
    nodes->quadrature = rule + fp_exp(log_ends - nodes->log_total);
    nodes->moved_weight = error * scale * 1.01, nodes->weighted_error = weighted * 1.01;
    nodes->spread = spread, nodes->reach = reach, nodes->moved_loss = moved * 1.01;
    factor->t = t, factor->mean = mean, factor->variance = variance;
    const double excess = fp_accumulator_value(&changes) + mass;
    const double near_error = (change_error * 1.01 + sum_error * change_size
                               + 6.0 * FP_U * (fabs(excess) + fabs(mass)) + 1e-300 + rule + fp_exp(log_left_out)) / (1.0 + excess) * 1.1 + nodes->quadrature * 1.1;
    const double far_error = nodes->moved_weight + sum_error + 4.0 * FP_U * (fabs(peak) + 3.0) + nodes->quadrature;
    if (fabs(excess) < 0.5 && near_error < far_error) {
        factor->kappa = fp_log1p(excess);
        factor->kappa_error = near_error + 6.0 * FP_U * fabs(factor->kappa);
    } else {
        factor->kappa = nodes->log_total;
        factor->kappa_error = far_error + 6.0 * FP_U * fabs(factor->kappa);
    }
    if (nodes->second && second_error < factor->kappa_error) {
        factor->kappa = fp_log1p(second);
        factor->kappa_error = second_error + 6.0 * FP_U * fabs(factor->kappa);
    }
}

/* Rounding of a sum over the nodes, relative to the sum of min(w |l|, 2): sines 13, turns 7, the sum 4 and those of
 * lanes and blocks, weights 2, re^2 + im^2 + 2 re 5 */
FP_INLINE double fp_contour_nodes_sums(const fp_contour_nodes *nodes)
{
    return FP_U * (FP_CONTOUR_BLOCK / 8 + nodes->n / FP_CONTOUR_BLOCK + 24.0 + FP_CONTOUR_TURNS);
}

/* Twice the weight of nodes whose angles are too large for sines, which stand still: by Chebyshev's inequality */
FP_INLINE double fp_contour_nodes_beyond(const fp_contour_nodes *nodes, double w)
{
    const double turns = w * (0.5 / FP_LARGEST_ANGLE);
    return turns * nodes->reach < 0.999 ? 0.0 : 2.02 * turns * turns * nodes->square;
}

/* Bound of the error of m(w) by nodes, at frequencies of distance `step` */
FP_INLINE double fp_contour_nodes_error(const fp_contour_nodes *nodes, double w, double step)
{
    const double sums = fp_contour_nodes_sums(nodes);
    const double turns = fp_min(step * nodes->spread, 2.0) * FP_U * 17.0 * FP_CONTOUR_TURNS;
    const double weights = nodes->weighted_error + nodes->moved_weight * nodes->spread;
    return fp_min(w * nodes->spread, 2.0) * sums + w * (nodes->moved_loss + 6.0 * FP_U * nodes->spread)
           + fp_min(w * weights, 4.0 * nodes->moved_weight) + (turns + 2.0 * nodes->quadrature) * (w > 0.0)
           + fp_contour_nodes_beyond(nodes, w);
}

/* `moments` of kinds with nodes */
static inline void fp_contour_nodes_moments(const fp_contour_factor *factor, double first, double step, int count,
                                            double *log_size, double *phase, double *wrong)
{
    const fp_contour_nodes *nodes = &factor->nodes;
    const double sums = fp_contour_nodes_sums(nodes);
    for (int done = 0; done < count; done += FP_CONTOUR_AT_ONCE) {
        const int some = count - done < FP_CONTOUR_AT_ONCE ? count - done : FP_CONTOUR_AT_ONCE;
        double re[FP_CONTOUR_AT_ONCE], im[FP_CONTOUR_AT_ONCE], less[FP_CONTOUR_AT_ONCE];
        fp_contour_selected.sums(nodes->n, nodes->g, nodes->loss, first + done, step, some, re, im, less);
        for (int j = 0; j < some; j++) {
            const double w = (first + done + j) * step, x = 1.0 + re[j], moved_mean = w * factor->mean;
            double error = fp_contour_nodes_error(nodes, w, step);
            if (nodes->second && w * w * nodes->square < 1.0) { /* 100 units for e^(i w c) - 1 - i w c and its turns */
                const double second = w * w * ((sums + 100.0 * FP_U) * nodes->square + nodes->moved_square
                                               + nodes->weighted_square)
                                      + w * nodes->mean_error
                                      + 4.0 * (sums + nodes->moved_weight) * moved_mean * moved_mean
                                      + (2.0 * nodes->quadrature + (1.0 + factor->t + w) * nodes->masses) * (w > 0.0)
                                      + fp_contour_nodes_beyond(nodes, w);
                im[j] = second < error ? less[j] : im[j];
                error = fp_min(error, second);
            }
            const double excess = 2.0 * re[j] + (re[j] * re[j] + im[j] * im[j]);
            const double near = fabs(excess) < 0.5 ? fp_log1p(excess) : fp_log(x * x + im[j] * im[j]);
            log_size[done + j] = 0.5 * near, phase[done + j] = atan2(im[j], x), wrong[done + j] = error;
        }
    }
}

/* `distance` of kinds with nodes */
static inline double fp_contour_nodes_distance(const fp_contour_factor *factor, double w)
{
    const fp_contour_nodes *nodes = &factor->nodes;
    double re, im, less;
    fp_contour_selected.sums(nodes->n, nodes->g, nodes->loss, 1.0, w, 1, &re, &im, &less);
    return -(2.0 * re + (re * re + im * im)) - 2.1 * fp_contour_nodes_error(nodes, w, 0.0);
}

/* `build`, with losses less their maximum where that is known */
static inline int fp_contour_build(fp_contour_factor *factor, double t, double w, double aim)
{
    factor->centred = 1;
    const int status = factor->kind->build(factor, t, w, aim);
    factor->centred = 0;
    return status;
}

/* Row i at frequency w_i: log |m|, arg m, the bound of its error, and the bound for all larger frequencies. `build`'s
 * status. */
static inline int fp_contour_moments_at(fp_contour_factor *factor, double t, ptrdiff_t count, const double *w,
                                        double *out)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        const int status = fp_contour_build(factor, t, w[i], FP_CONTOUR_AIM);
        if (status)
            return status;
        factor->kind->moments(factor, 1.0, w[i], 1, out + 4 * i, out + 4 * i + 1, out + 4 * i + 2);
        out[4 * i + 3] = factor->kind->decay(factor, w[i]);
    }
    const double whole = fp_dd_double(fp_dd_add_d(fp_dd_mul_d(factor->offset, t), factor->kappa));
    factor->kappa_error += 2.0 * FP_U * fabs(whole);
    factor->kappa = whole, factor->mean = fp_dd_double(fp_dd_add_d(factor->offset, factor->mean));
    return 0;
}

#endif
