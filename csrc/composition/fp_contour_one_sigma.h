/* A pair of Gaussian mixtures of one standard deviation as a factor of a sum along a contour.
 *
 * Notation of fp_contour_factor.h. Lengths are in standard deviations, D is the range of all means.
 *
 * Moments. M(z) is the trapezoidal sum of p e^(z l) at x = j step, which one set of nodes serves for every z = t + i w.
 * With theta = y D < pi the phases of the components at x + i y differ by theta at most, so that
 * (fp_one_sigma_solver.h)
 *     |p(x + i y)| <= e^(y^2/2) p(x), |q(x + i y)| >= cos(theta/2) e^(y^2/2) q(x), |Im l(x + i y)| <= theta,
 * and the sum differs from M(z) by at most 2 e^E / (e^(2 pi y / step) - 1) M(t),
 *     E = y^2/2 - t log cos(theta/2) + |w| theta,
 * without the second term where Q has one component, or -1 < t < 0: |p e^(t l)| = |p|^(1 + t) |q|^-t (Trefethen and
 * Weideman 2014, theorem 5.1). Right of b, with E_q
 * the mean of Q's means under their weights at b, c_p the largest mean of P, p e^(t l) is at most its value at b times
 * e^(-u (x-b) - (x-b)^2/2), u = b - c_p - t max(0, c_p - E_q); left of it likewise. For t < 0 it is a product of powers
 * of p and q, and u = b - (1 + t) c_p + t c_q with the largest mean c_q of Q.
 *
 * Decay. For a sign s and y > 0, x -> x + i s y moves the path of integration, and with 0 <= chi <= 1,
 *     |m(w)| <= 1 - sum g chi + integral of |p e^(t l) chi|(x + i s y) e^(-w Im l) dx / M(t),
 * chi = e^(-(x-x0)^2 / 2 v^2) or 1. Where Im l >= 0 on the path the right side falls with w: it bounds |m| at all
 * larger frequencies.
 */
/* bounds: tested by enclosures/test_contour - ends of nodes and cells of paths */
#ifndef FP_CONTOUR_ONE_SIGMA_H
#define FP_CONTOUR_ONE_SIGMA_H

#include "composition/fp_contour_factor.h"
#include "line/fp_one_sigma_solver.h"

#define FP_BUMPS 128
#define FP_BUMP_SPACING 0.75
/* bound: proved - the bumps e^(-(x - c)^2 / 2) spaced by 0.75 sum to 3.3422... (1 +- 2 e^(-2 pi^2 / 0.75^2)) */
#define FP_BUMP_HEIGHT 0.29920671030107 /* 0.75 / sqrt(2 pi), rounded down */
#define FP_BUMP_SPAN 12 /* bumps that reach a point on either side: e^-40 at 12 spacings, allowed for in the bounds */
#define FP_SHIFTS 5
#define FP_PATH_CELLS 1e5
#define FP_HALF_LOG_TWO_PI 0.91893853320467274178 /* log(2 pi) / 2 */

static double fp_bump_falls[FP_BUMP_SPAN + 1]; /* e^(-i^2 spacing^2 / 2) */

#define FP_LOOPS "composition/fp_contour_path_loops.h"
#include "common/fp_variants.h"

typedef void (*fp_contour_path_kernel)(const fp_one_sigma *, double, double, const double *, const double *, double,
                                       double,
                                       double, int, const double *, double *);
static fp_contour_path_kernel fp_contour_path_selected;

typedef struct {
    fp_one_sigma g;
    double p_low, p_high, q_low, q_high, range, mass; /* mass: of P, less 1 */
} fp_contour_one_sigma;

/* The pair of np and nq components of positive weights; 0 where it is not of this form. `excess` are the sums of the
 * weights less 1. */
static inline int fp_contour_one_sigma_make(fp_contour_one_sigma *pair, int np, const double *pw, const double *pm,
                                            const double *ps, int nq, const double *qw, const double *qm,
                                            const double *qs, const double excess[2])
{
    fp_trapezoid work;
    memset(&work, 0, sizeof work);
    memset(pair, 0, sizeof *pair);
    if (!fp_trapezoid_gather(&work, np, pw, pm, ps, nq, qw, qm, qs, excess[0] - excess[1]))
        return 0;
    pair->g = work.g, pair->range = work.high - work.low, pair->mass = excess[0];
    pair->p_low = pair->q_low = INFINITY, pair->p_high = pair->q_high = -INFINITY;
    for (int i = 0; i <= pair->g.n; i++) {
        const double c = fp_point_mean(&pair->g, i);
        if (fp_point_w(&pair->g, i) > 0.0)
            pair->p_low = fp_min(pair->p_low, c), pair->p_high = fp_max(pair->p_high, c);
        if (fp_point_v(&pair->g, i) > 0.0)
            pair->q_low = fp_min(pair->q_low, c), pair->q_high = fp_max(pair->q_high, c);
    }
    return 1;
}

FP_INLINE double fp_contour_weight_sum(const fp_one_sigma *g, const double *w, double centre, double x, double *mean)
{
    double sum = centre, moment = 0.0;
    for (int i = 0; i < g->n; i++) {
        const double e = w[i] * fp_exp(g->c[i] * (x - 0.5 * g->c[i]));
        sum += e, moment += g->c[i] * e;
    }
    *mean = moment / sum;
    return sum;
}

/* log of p e^(t l) sqrt(2 pi) at x, and of a bound of its integral beyond x: to the right of it, or left (side -1). */
static inline double fp_contour_end(const fp_contour_one_sigma *pair, double t, double x, int side, double *log_tail)
{
    const fp_one_sigma *g = &pair->g;
    double mean_p, mean_q;
    const double log_p = fp_log(fp_contour_weight_sum(g, g->w, g->w_centre, x, &mean_p)),
                 log_q = fp_log(fp_contour_weight_sum(g, g->v, g->v_centre, x, &mean_q));
    const double value = log_p - 0.5 * x * x + t * (log_p - log_q);
    const double extreme = side > 0 ? pair->p_high : pair->p_low, other = side > 0 ? pair->q_high : pair->q_low;
    const double away = side * (extreme - (t < 0.0 ? other : mean_q));
    const double u = side * (x - extreme) - t * (t < 0.0 ? away : fp_max(0.0, away));
    *log_tail = u >= 1.0 ? value - fp_log(u) + 1e-9 : INFINITY;
    return value;
}

/* The end of the nodes: where the integral beyond is e^-aim of the largest value met. */
static inline double fp_contour_find_end(const fp_contour_one_sigma *pair, double t, int side, double aim,
                                         double *top, double *log_tail)
{
    double x = side > 0 ? pair->p_high + 2.0 : pair->p_low - 2.0, step = 1.0,
        inside = side > 0 ? pair->p_low : pair->p_high;
    double tail;
    for (int i = 0; i < 400; i++) {
        const double value = fp_contour_end(pair, t, x, side, &tail);
        *top = fp_max(*top, value);
        if (tail <= *top - aim)
            break;
        inside = x;
        x += side * step;
        step = fp_max(step, fabs(x) * 0.125);
    }
    *log_tail = tail;
    for (int i = 0; i < 60 && fabs(x - inside) > 0.5; i++) {
        const double middle = 0.5 * (x + inside);
        const double value = fp_contour_end(pair, t, middle, side, &tail);
        *top = fp_max(*top, value);
        if (tail <= *top - aim)
            x = middle, *log_tail = tail;
        else
            inside = middle;
    }
    return x;
}

/* The step for frequencies up to w */
static inline double fp_contour_step(const fp_contour_one_sigma *pair, double t, double w, double aim)
{
    const double tau = pair->q_high > pair->q_low ? fp_max(t, 0.0) : 0.0, d = pair->range;
    double y = sqrt(aim / (0.5 + 0.125 * tau * d * d));
    y = fp_min(y, 2.6 / d);
    const double e = 0.5 * y * y - tau * fp_log(cos(0.5 * y * d)) + w * d * y;
    const double step = 2.0 * FP_PI * y / (e + aim + 1.0);
    return step;
}


/* `build` of this kind */
static inline int fp_contour_one_sigma_build(fp_contour_factor *factor, double t, double w, double aim)
{
    const fp_contour_one_sigma *pair = factor->pair;
    fp_contour_nodes *nodes = &factor->nodes;
    double top = -INFINITY, left_tail, right_tail;
    const double beyond = sqrt(2.0 * aim); /* of the means of P, whose own mass kappa needs */
    const double right = fp_max(fp_contour_find_end(pair, t, 1, aim, &top, &right_tail), pair->p_high + beyond);
    const double left = fp_min(fp_contour_find_end(pair, t, -1, aim, &top, &left_tail), pair->p_low - beyond);
    const double step = fp_contour_step(pair, t, w, aim), first = floor(left / step);
    const double count = ceil(right / step) - first + 1.0;
    if (!(count < FP_CONTOUR_NODES) || pair->range * (fp_max(-left, right) + pair->range) > FP_LARGEST_EXPONENT)
        return 1;
    const int n = (int)(count + 7.0) / 8 * 8;
    if (fp_contour_nodes_reserve(nodes, n))
        return -1;
    factor->first = first, factor->step = step;
    fp_one_sigma_selected.nodes(&pair->g, first, step, n, nodes->log_p, nodes->rest, nodes->loss, nodes->log_p_error,
                                nodes->g, nodes->loss_error);
    const double log_weight = fp_log(step) - FP_HALF_LOG_TWO_PI;
    for (int j = 0; j < n; j++)
        nodes->log_p[j] += log_weight;
    nodes->spare[0] = 0.0; /* masses of bumps are not known yet */
    const double below = pair->p_low - first * step, above = (first + n - 1) * step - pair->p_high;
    const double log_left_out = -0.5 * fp_min(below, above) * fp_min(below, above);
    const double log_ends = fp_log_sum(left_tail, right_tail) - FP_HALF_LOG_TWO_PI + 1e-12;
    fp_contour_nodes_tilt(factor, t, pair->mass, 2.2 * fp_exp(-aim), log_ends,
                          below > 1.0 && above > 1.0 ? log_left_out : 0.0, NULL);
    return 0;
}

/* Bumps chi_i that sum to at most 1 divide the integral: their masses under the tilt, FP_BUMP_SPAN more on either side.
 * Those of the last tilt are kept, behind a mark. */
static inline const double *fp_contour_bump_masses(const fp_contour_factor *factor, int bumps)
{
    const fp_contour_nodes *nodes = &factor->nodes;
    double *mass = nodes->spare + 1;
    if (nodes->spare[0] > 0.0)
        return mass;
    nodes->spare[0] = 1.0;
    for (int i = 0; i < bumps + 2 * FP_BUMP_SPAN + FP_LANES; i++)
        mass[i] = 0.0;
    for (int j = 0; j < nodes->n; j++) {
        if (!(nodes->g[j] > 1e-30))
            continue;
        const double x = j * factor->step;
        const int middle = (int)(x / FP_BUMP_SPACING);
        /* e^(-(a - s d)^2/2) = e^(-a^2/2) (e^(a d))^s e^(-s^2 d^2/2), d the spacing */
        const double away = x - middle * FP_BUMP_SPACING, up = fp_exp(away * FP_BUMP_SPACING), down = 1.0 / up;
        const double centre = FP_BUMP_HEIGHT * nodes->g[j] * fp_exp(-0.5 * away * away);
        double rise = centre, fall = centre, *into = mass + FP_BUMP_SPAN + middle;
        into[0] += centre;
        for (int i = 1; i <= FP_BUMP_SPAN; i++) {
            rise *= up, fall *= down;
            into[i] += rise * fp_bump_falls[i], into[-i] += fall * fp_bump_falls[i];
        }
    }
    return mass;
}

/* A bound of |m(w)| for all frequencies from w on: of each bump the bound is its mass or, where less, that of the best
 * shift of the path. Cells are so narrow that the integrand on each is at most e^0.11 of an exponential through its
 * middle: log |integrand| has a second derivative of at most
 * 1 + (1 + 2 t + 2 w) D^2 (sec(theta/2) + sec^2(theta/2)) / 4. */
static inline double fp_contour_one_sigma_decay(const fp_contour_factor *factor, double w)
{
    static const double angles[FP_SHIFTS] = {0.15, 0.4, 0.9, 1.5, 2.1};
    const fp_contour_one_sigma *pair = factor->pair;
    const fp_contour_nodes *nodes = &factor->nodes;
    const fp_one_sigma *g = &pair->g;
    const double t = factor->t, tau = fp_max(t, 0.0), d = pair->range;
    const int side = pair->p_low >= pair->q_high ? 1 : -1, several = pair->q_high > pair->q_low;
    if ((side > 0 ? pair->p_low - pair->q_high : pair->q_low - pair->p_high) < 0.0) /* the path would change sides */
        return 1.0;
    const double left = factor->first * factor->step, right = left + (nodes->n - 1) * factor->step;
    if (!(right - left < (FP_BUMPS - 2) * FP_BUMP_SPACING))
        return 1.0;
    const int bumps = (int)ceil((right - left) / FP_BUMP_SPACING) + 1;
    const double *mass = fp_contour_bump_masses(factor, bumps);
    double best[FP_BUMPS], total[FP_BUMPS + 2 * FP_BUMP_SPAN + FP_LANES], kept = 0.0;
    for (int i = 0; i < bumps; i++)
        kept += mass[i + FP_BUMP_SPAN] * (1.0 - 1e-12), best[i] = mass[i + FP_BUMP_SPAN];
    for (int shift = 0; shift < FP_SHIFTS; shift++) {
        const double y = fp_min(angles[shift] / d, 5.0), sec = 1.0 / cos(0.5 * y * d);
        const double curvature = 1.0 + (1.0 + 2.0 * tau + 2.0 * w) * 0.25 * d * d * (sec + sec * sec);
        const double cells = ceil(FP_BUMP_SPACING * sqrt(curvature / 0.8)); /* from one bump to the next */
        const double lost = 1e-19 * fp_exp(y * y) * (several ? pow(sec, tau) : 1.0); /* beyond the nodes */
        if (!(cells * bumps < FP_PATH_CELLS) || !(lost < 1e-3))
            continue;
        const double width = FP_BUMP_SPACING / cells;
        double cosine[FP_MAX_POINTS], sine[FP_MAX_POINTS], fall[2 * FP_BUMP_SPAN + 1];
        for (int i = 0; i < bumps + 2 * FP_BUMP_SPAN + FP_LANES; i++)
            total[i] = 0.0;
        for (int j = 0; j < g->n; j++)
            cosine[j] = cos(g->c[j] * y), sine[j] = side * sin(g->c[j] * y);
        for (double cell = 0.5; cell < cells; cell += 1.0) {
            for (int i = 0; i <= 2 * FP_BUMP_SPAN; i++) { /* the largest values of bumps on the cell */
                const double away = fp_max(0.0, fabs(cell * width - (i - FP_BUMP_SPAN) * FP_BUMP_SPACING)
                                           - 0.5 * width);
                fall[i] = fp_exp(-0.5 * away * away);
            }
            fp_contour_path_selected(g, t, w, cosine, sine, y * y - FP_HALF_LOG_TWO_PI - nodes->log_total,
                                     left + cell * width, width, fp_padded(bumps), fall, total);
        }
        for (int i = 0; i < bumps; i++)
            best[i] = fp_min(best[i], total[i + FP_BUMP_SPAN] + lost + 1e-22 * cells * bumps);
    }
    double bound = fp_max(0.0, 1.0 - kept) + 1e-12;
    for (int i = 0; i < bumps; i++)
        bound += best[i];
    return bound < 1.0 ? bound : 1.0;
}

static const fp_contour_kind fp_contour_one_sigma_kind = {fp_contour_one_sigma_build, fp_contour_nodes_moments,
                                                          fp_contour_one_sigma_decay};

/* Must be called once, before any factor. */
static inline void fp_contour_one_sigma_select(void)
{
    fp_one_sigma_select();
    fp_contour_path_selected = FP_SELECT(fp_contour_path);
    for (int i = 0; i <= FP_BUMP_SPAN; i++)
        fp_bump_falls[i] = fp_exp(-0.5 * FP_BUMP_SPACING * FP_BUMP_SPACING * i * i);
}

static inline void fp_contour_one_sigma_factor(fp_contour_factor *factor, const fp_contour_one_sigma *pair,
                                               double count)
{
    memset(factor, 0, sizeof *factor);
    factor->kind = &fp_contour_one_sigma_kind, factor->pair = pair, factor->count = count;
    factor->largest_t = INFINITY, factor->log_mass = fp_log1p(pair->mass), factor->both_sides = 1;
}

#endif
