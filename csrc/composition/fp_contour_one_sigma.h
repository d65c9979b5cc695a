/* A pair of Gaussian mixtures of one standard deviation as a factor of a sum along a contour.
 *
 * Notation of fp_contour_factor_solver.h. Lengths are in standard deviations, D is the range of all means.
 *
 * Moments. M(z) is the trapezoidal sum of p e^(z l) at x = j step, which one set of nodes serves for every z = t + i w.
 * The error of the rule is theorem 2.9 of docs/proofs/contour.md: with theta = y D < pi at most 2 e^E / (e^(2 pi y /
 * step) - 1) M(t), E = y^2/2 - t log cos(theta/2) + |w| theta, without the second term where Q has one component, or -1
 * < t < 0. Right of b, with E_q the mean of Q's means under their weights at b, c_p the largest mean of P, p e^(t l) is
 * at most its value at b times e^(-u (x-b) - (x-b)^2/2), u = b - c_p - t max(0, c_p - E_q); left of it likewise. For t
 * < 0 it is a product of powers of p and q, and u = b - (1 + t) c_p + t c_q with the largest mean c_q of Q.
 *
 * Bounded losses. Let P be one component at the lowest mean of Q (or the highest, mirrored), at 0; log q - log of that
 * component is K(x) = l_max - l = log(1 + sum r_j e^(c_j x)), r_j constant, c_j > 0; mu = K', V = K'' are mean and
 * variance of the means of Q under their weights at x, mu <= D K. By theorem 2.10 of docs/proofs/contour.md, with beta
 * = -log(cos(theta/2)) theta^2 / sin^2(theta/2), |Im l| <= 2 tan(theta/2) K and, where a = beta + 2 (|w|/t)
 * tan(theta/2) <= 1,
 *     integral of |p e^(z l)|(x + i y) dx <= e^(y^2/2 + a t l_max) M((1 - a) t) <= e^(y^2/2 + a H(t)) M(t),
 * H(t) = t l_max - log M(t), concave with H(0) = 0 (P of mass 1). Either part of
 * a is replaced by the former bound where that is less. H(t) <= t K(x) - log P(X <= x) for every x, as K increases. For
 * large t it is far less than t D^2: nodes are as far apart as the Gaussian allows. Where rounding of t l would rule,
 * l - l_max = -K is summed, which has relative accuracy; l_max is in double-double.
 *
 * Decay (docs/proofs/contour.md, theorem 2.11). For a sign s and y > 0, x -> x + i s y moves the path of integration,
 * and with 0 <= chi <= 1,
 *     |m(w)| <= 1 - sum g chi + integral of |p e^(t l) chi|(x + i s y) e^(-w Im l) dx / M(t),
 * chi = e^(-(x-x0)^2 / 2 v^2) or 1. Where Im l >= 0 on the path the right side falls with w: it bounds |m| at all
 * larger frequencies. On a cell the log of the integrand has a second derivative of at most
 *     -1 + ((1 + t + w) V_p + (|t| + w) V_q) e^(D width) / cos^2(theta/2),
 * V_p and V_q the variances in the middle: a product of two weights at x changes by a factor of at most e^(2 D |dx|),
 * and the variance of means at x + i y, a sum of such products over |sum|^2, is at most V / cos^2(theta/2).
 *
 * Ends of paths. Besides the bound of the integrand by its value at y = 0, for theta <= pi/2: with a = mean of the
 * means of Q at x less the lowest, Re of the mean at x + i y less the lowest is between cos(theta) a and
 * a / cos^2(theta/2), likewise from the highest, and Re of the mean of those of P is within their range. This bounds
 * the slope of log |p e^(t l)|; a increases with x.
 */
/* bounds: proved - ends of nodes and cells of paths, docs/proofs/contour.md, theorem 2.19 */
#ifndef FP_CONTOUR_ONE_SIGMA_H
#define FP_CONTOUR_ONE_SIGMA_H

#include "composition/fp_contour_factor_solver.h"
#include "line/fp_one_sigma_solver.h"
#include "special/fp_dd_elementary.h"

#define FP_BUMPS 256
#define FP_BUMP_SPACING 0.75
/* bound: proved - the bumps e^(-(x - c)^2 / 2) spaced by 0.75 sum to 3.3422... (1 +- 2 e^(-2 pi^2 / 0.75^2)) */
#define FP_BUMP_HEIGHT 0.29920671030107 /* 0.75 / sqrt(2 pi), rounded down */
#define FP_BUMP_SPAN 12 /* bumps that reach a point on either side: e^-40 at 12 spacings, allowed for in the bounds */
#define FP_SHIFTS 5
/* bound: none - t times the largest loss, times the square of the range where that is more than 1, from which losses
 * are taken less the largest: their rounding would rule the error */
#define FP_CENTRED_EXPONENT 0.3
#define FP_PATH_CELLS 1e5
#define FP_PATH_BUMPS 384 /* distances of bumps on a path, which goes beyond the nodes where its tails need it */

static double fp_bump_falls[FP_BUMP_SPAN + 1]; /* e^(-i^2 spacing^2 / 2) */

/* `base`, 0 or 1, and components e^log_w e^(c (x - middle)) with phases at height y: cos(c y) and +- sin(c y) */
typedef struct {
    int n;
    double base, c[FP_MAX_POINTS], middle[FP_MAX_POINTS], log_w[FP_MAX_POINTS], cosine[FP_MAX_POINTS];
    double sine[FP_MAX_POINTS];
} fp_path_mixture;

/* Where the loss is bounded Q is relative to its component at P's mean, the base. lift: log of the factor of the
 * integrand; growth: of the variances of means on a cell and at height y; slip: relative rounding of relative losses */
typedef struct {
    fp_path_mixture p, q;
    double t, w, y, width, lift, growth, slip;
    double rounding; /* sizes of logarithms of components along the path, at least 8 */
} fp_path;

/* P = (weight e^log_w, mean c), and of the components of Q with other means: distances from c, middles between c and
 * them, ratios of their weights to that of Q at c, and sums of sizes of means. */
typedef struct {
    int n;
    double log_w, c, gap[FP_MAX_POINTS], middle[FP_MAX_POINTS], ratio[FP_MAX_POINTS], size[FP_MAX_POINTS];
} fp_bounded_loss;

#define FP_LOOPS "composition/fp_contour_path_loops.h"
#include "common/fp_variants.h"

typedef double (*fp_contour_path_kernel)(const fp_path *, double, int, const double *, double *);
static fp_contour_path_kernel fp_contour_path_selected;
typedef void (*fp_bounded_nodes_kernel)(const fp_bounded_loss *, double, double, int, double *, double *, double *,
                                        double *);
static fp_bounded_nodes_kernel fp_bounded_nodes_selected;
typedef void (*fp_far_nodes_kernel)(const fp_path *, double, double, int, double *, double *, double *, double *);
static fp_far_nodes_kernel fp_far_nodes_selected;

typedef struct {
    fp_one_sigma g;
    double p_low, p_high, q_low, q_high, range, mass; /* mass: of P, less 1 */
    int bounded; /* the loss is: P is one component at an end of Q's means */
    fp_dd largest; /* loss, where it is bounded */
    fp_bounded_loss others;
} fp_contour_one_sigma;

static inline void fp_contour_bounded_make(fp_contour_one_sigma *pair)
{
    fp_bounded_loss *others = &pair->others;
    const fp_one_sigma *g = &pair->g;
    double weight = 1.0, at = 1.0;
    others->n = 0, others->c = pair->p_low;
    for (int j = 0; j <= g->n; j++)
        if (fp_point_mean(g, j) == others->c)
            weight = fp_point_w(g, j), at = fp_point_v(g, j);
    others->log_w = fp_log(weight), pair->largest = fp_dd_log(fp_dd_div_d(fp_dd_set(weight), at));
    for (int j = 0; j <= g->n; j++) {
        const double c = fp_point_mean(g, j), v = fp_point_v(g, j);
        if (c == others->c || !(v > 0.0))
            continue;
        const int i = others->n++;
        others->gap[i] = c - others->c, others->middle[i] = 0.5 * (c + others->c), others->ratio[i] = v / at;
        others->size[i] = fabs(c) + fabs(others->c);
        if (others->size[i] > 8.0 * fabs(others->gap[i])) /* means far from the centre, so that their distances err */
            pair->bounded = 0;
    }
}

/* The pair of np and nq components of positive weights; 0 where it is not of this form. `excess` are the sums of the
 * weights less 1. */
static inline int fp_contour_one_sigma_make(fp_contour_one_sigma *pair, int np, const double *pw, const double *pm,
                                            const double *ps, int nq, const double *qw, const double *qm,
                                            const double *qs, const double excess[2])
{
    fp_trapezoid work;
    memset(&work, 0, sizeof work);
    memset(pair, 0, sizeof *pair);
    if (!fp_trapezoid_gather(&work, np, pw, pm, ps, nq, qw, qm, qs, excess[0] - excess[1])
        || work.high - work.low >= 1e140)
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
    pair->bounded = pair->p_low == pair->p_high && (pair->p_low == pair->q_low || pair->p_low == pair->q_high);
    if (pair->bounded)
        fp_contour_bounded_make(pair);
    return 1;
}

/* log of the sum of weights times e^(c (x - c / 2)), and the mean of the c under them */
FP_INLINE double fp_contour_weight_sum(const fp_one_sigma *g, const double *w, double centre, double x, double *mean)
{
    double top = centre > 0.0 ? 0.0 : -INFINITY, sum, moment = 0.0;
    for (int i = 0; i < g->n; i++)
        top = w[i] > 0.0 ? fp_max(top, g->c[i] * (x - 0.5 * g->c[i])) : top;
    sum = centre > 0.0 ? centre * fp_exp(-top) : 0.0;
    for (int i = 0; i < g->n; i++) {
        const double e = w[i] > 0.0 ? w[i] * fp_exp(g->c[i] * (x - 0.5 * g->c[i]) - top) : 0.0;
        sum += e, moment += g->c[i] * e;
    }
    *mean = moment / sum;
    return top + fp_log(sum);
}

/* log of p e^(t l) sqrt(2 pi) at x, and of a bound of its integral beyond x: to the right of it, or left (side -1). */
static inline double fp_contour_end(const fp_contour_one_sigma *pair, double t, double x, int side, double *log_tail)
{
    const fp_one_sigma *g = &pair->g;
    double mean_p, mean_q;
    const double log_p = fp_contour_weight_sum(g, g->w, g->w_centre, x, &mean_p),
                 log_q = fp_contour_weight_sum(g, g->v, g->v_centre, x, &mean_q);
    const double value = log_p - 0.5 * x * x + t * (log_p - log_q);
    const double extreme = side > 0 ? pair->p_high : pair->p_low, other = side > 0 ? pair->q_high : pair->q_low;
    const double away = side * (extreme - (t < 0.0 ? other : mean_q));
    const double size = pair->range * (fabs(x) + pair->range) + 700.0; /* of logarithms, at least 32 of the numbers */
    const double u = side * (x - extreme) - t * (t < 0.0 ? away : fp_max(0.0, away))
                     - 32.0 * FP_U * (fabs(x) + (1.0 + fabs(t)) * pair->range * size);
    *log_tail = u >= 1.0 ? value - fp_log(u) + 1e-9 + 32.0 * FP_U * ((1.0 + 2.0 * fabs(t)) * size + x * x) : INFINITY;
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

/* l_max - l at x */
static inline double fp_contour_below_ceiling(const fp_bounded_loss *others, double x)
{
    double sum = 0.0;
    for (int j = 0; j < others->n; j++)
        sum += others->ratio[j] * fp_exp(others->gap[j] * (x - others->middle[j]));
    return fp_log1p(sum) * (1.0 + 1e-12);
}

/* An upper bound of H(t) of a bounded loss, by the best x between the nodes */
static inline double fp_contour_depth(const fp_contour_one_sigma *pair, double t, double left, double right)
{
    const double c = pair->p_low, ratio = 0.61803398874989485, side = pair->q_high > c ? 1.0 : -1.0;
    double best = INFINITY, value[2] = {0.0, 0.0}, x[2] = {right - ratio * (right - left), left + ratio * (right - left)};
    for (int i = 0, next = 2; i < 24; i++) {
        for (int k = 0; k < 2; k++)
            if (next == 2 || next == k)
                value[k] = t * fp_contour_below_ceiling(&pair->others, x[k]) - fp_log_ndtr(side * (x[k] - c));
        best = fp_min(best, fp_min(value[0], value[1]));
        next = value[0] < value[1] ? 0 : 1;
        if (next)
            left = x[0], x[0] = x[1], value[0] = value[1], x[1] = left + ratio * (right - left);
        else
            right = x[1], x[1] = x[0], value[1] = value[0], x[0] = right - ratio * (right - left);
    }
    return best + 1e-9;
}

/* The step for frequencies up to w; `depth` is H(t), infinite where the loss has no bound. */
static inline double fp_contour_step(const fp_contour_one_sigma *pair, double t, double w, double aim, double depth)
{
    const double tau = pair->q_high > pair->q_low ? fp_max(t, 0.0) : 0.0, d = pair->range;
    double y = sqrt(aim / (0.5 + 0.125 * tau * d * d));
    y = fp_min(y, 2.6 / d);
    const double e = 0.5 * y * y - tau * fp_log(cos(0.5 * y * d)) + w * d * y;
    double step = 2.0 * FP_PI * y / (e + aim + 1.0);
    if (!(depth < INFINITY))
        return step;
    for (double theta = fp_min(1.2, 6.0 * d), best = 0.0;; theta *= 0.8) {
        const double s = sin(0.5 * theta), bend = -0.5 * fp_log1p(-s * s) / (s * s) * theta * theta;
        const double turn = 2.0 * tan(0.5 * theta), near = fp_min(w * theta, w / t * turn * depth);
        const double lost = bend + (near < w * theta ? w / t * turn : 0.0), shift = theta / d;
        const double found = lost < 1.0
            ? 2.0 * FP_PI * shift / (0.5 * shift * shift + bend * depth + near + aim + 1.0) : 0.0;
        if (found < best || theta < 1e-9)
            return fp_max(step, best);
        best = found;
    }
}

static inline void fp_path_add(fp_path_mixture *mixture, double weight, double c, double middle, double y, double side)
{
    const int i = mixture->n;
    if (!(weight > 0.0))
        return;
    mixture->n++;
    mixture->c[i] = c, mixture->middle[i] = middle, mixture->log_w[i] = fp_log(weight);
    mixture->cosine[i] = cos(c * y), mixture->sine[i] = side * sin(c * y);
}

/* `relative`: Q to its component at P's mean */
static inline void fp_path_fill(fp_path *path, const fp_contour_one_sigma *pair, double side, int relative)
{
    const fp_one_sigma *g = &pair->g;
    const fp_bounded_loss *others = &pair->others;
    const double y = path->y;
    path->p.n = path->q.n = 0, path->p.base = 0.0, path->q.base = relative;
    for (int j = 0; j <= g->n; j++) {
        const double c = fp_point_mean(g, j);
        fp_path_add(&path->p, fp_point_w(g, j), c, 0.5 * c, relative ? 0.0 : y, side);
        fp_path_add(&path->q, relative ? 0.0 : fp_point_v(g, j), c, 0.5 * c, y, side);
    }
    for (int j = 0; relative && j < others->n; j++)
        fp_path_add(&path->q, others->ratio[j], others->gap[j], others->middle[j], y, side);
}

/* log p (but for log sqrt(2 pi)), losses and their errors at n nodes; `nodes` holds the errors */
static inline void fp_contour_one_sigma_nodes(const fp_contour_one_sigma *pair, double first, double step, int n,
                                              fp_contour_nodes *nodes, double *log_p, double *loss)
{
    const double farthest = step * fp_max(-first, first + n);
    if (pair->range * (farthest + pair->range) < FP_LARGEST_EXPONENT) {
        fp_one_sigma_selected.nodes(&pair->g, first, step, n, log_p, nodes->rest, loss, nodes->log_p_error, nodes->g,
                                    nodes->loss_error);
        return;
    }
    fp_path path = {.y = 0.0};
    fp_path_fill(&path, pair, 1.0, 0);
    fp_far_nodes_selected(&path, first, step, n, log_p, loss, nodes->log_p_error, nodes->loss_error);
}

/* A step not above it of so few bits that nodes are exact */
FP_INLINE double fp_contour_short(double step)
{
    int exponent;
    const double digits = frexp(step, &exponent);
    return ldexp(floor(digits * 1024.0), exponent - 10);
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
    const double depth = pair->bounded && t * pair->range * pair->range > 32.0 ? fp_contour_depth(pair, t, left, right) : INFINITY;
    const double step = fp_contour_short(fp_contour_step(pair, t, w, aim, depth)), first = floor(left / step);
    const double count = ceil(right / step) - first + 1.0;
    if (!(count < FP_CONTOUR_NODES))
        return 1;
    const int n = (int)(count + 7.0) / 8 * 8;
    if (fp_contour_nodes_reserve(nodes, n))
        return -1;
    factor->first = first, factor->step = step, factor->state[0] = depth;
    int centred = pair->bounded && factor->centred
        && t * pair->largest.hi * fp_max(1.0, pair->range * pair->range) > FP_CENTRED_EXPONENT;
    if (centred && factor->count >= FP_CONTOUR_MANY) /* the second order needs losses as they are, if nearer to 0 */
        centred = (depth < INFINITY ? depth / t : fp_contour_below_ceiling(&pair->others, pair->p_low))
            < 0.5 * pair->largest.hi;
    factor->offset = centred ? pair->largest : fp_dd_set(0.0);
    if (centred)
        fp_bounded_nodes_selected(&pair->others, first, step, n, nodes->log_p, nodes->loss, nodes->log_p_error,
                                  nodes->loss_error);
    else
        fp_contour_one_sigma_nodes(pair, first, step, n, nodes, nodes->log_p, nodes->loss);
    const double log_weight = fp_log(step) - FP_LOG_SQRT_2PI;
    const double log_error = FP_U * (1.0 + 2.0 * fabs(fp_log(step)) + fabs(log_weight));
    for (int j = 0; j < n; j++) {
        nodes->log_p[j] += log_weight;
        nodes->log_p_error[j] += log_error + FP_U * fabs(nodes->log_p[j]);
    }
    nodes->spare[0] = 0.0; /* masses of bumps are not known yet */
    const double below = pair->p_low - first * step, above = (first + n - 1) * step - pair->p_high;
    const double log_left_out = -0.5 * fp_min(below, above) * fp_min(below, above);
    const double log_ends = fp_log_sum(left_tail, right_tail) - FP_LOG_SQRT_2PI - t * factor->offset.hi + 1e-3 + 1e-13 * t;
    fp_contour_nodes_tilt(factor, t, pair->mass, 2.2 * fp_exp(-aim), log_ends,
                          below > 1.0 && above > 1.0 ? log_left_out : 0.0, NULL);
    factor->kappa_error += centred ? t * 1e-30 * (1.0 + factor->offset.hi) : 0.0;
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

/* A bound of the error of the rule for the integrand at w = 0 times a sum of bumps, which grows by e^(y^2 / 2) at
 * height y, relative to M(t) */
static inline double fp_contour_bump_error(const fp_contour_factor *factor)
{
    const fp_contour_one_sigma *pair = factor->pair;
    const double tau = pair->q_high > pair->q_low ? fp_max(factor->t, 0.0) : 0.0, turn = 2.0 * FP_PI / factor->step;
    double y = fp_min(0.5 * turn, 2.6 / pair->range), best = INFINITY;
    for (int i = 0; i < 16; i++, y *= 0.8) {
        const double s = sin(0.5 * y * pair->range), theta = y * pair->range, loss = -0.5 * fp_log1p(-s * s);
        const double bend = loss / (s * s) * theta * theta;
        const double grown = bend < 1.0 ? fp_min(tau * loss, bend * factor->state[0]) : tau * loss;
        best = fp_min(best, y * y + grown - turn * y);
    }
    return best < 0.0 ? 2.0 * fp_exp(best) / -fp_expm1(best) : INFINITY; /* e^(-turn y) <= e^best */
}

/* log |sum| of the mixture at x + i y, and the mean of its means under the weights at x */
static inline double fp_path_log_size(const fp_path_mixture *mixture, double x, double *mean)
{
    double top = mixture->base > 0.0 ? 0.0 : -INFINITY, re = 0.0, im = 0.0, size = 0.0, moment = 0.0;
    for (int j = 0; j < mixture->n; j++)
        top = fp_max(top, mixture->log_w[j] + mixture->c[j] * (x - mixture->middle[j]));
    for (int j = 0; j < mixture->n; j++) {
        const double c = mixture->c[j], e = fp_exp(mixture->log_w[j] + c * (x - mixture->middle[j]) - top);
        re += e * mixture->cosine[j], im += e * mixture->sine[j], size += e, moment += c * e;
    }
    const double low = mixture->base * fp_exp(-top), small = 2.0 * re + (re * re + im * im);
    *mean = moment / (size + low);
    if (low == 1.0 && small > -0.5)
        return 0.5 * fp_log1p(small);
    return top + 0.5 * fp_log((re + low) * (re + low) + im * im);
}

/* log of a bound of the integral of a path beyond x, without weights of bumps */
static inline double fp_path_tail(const fp_contour_one_sigma *pair, const fp_path *path, double x, int side)
{
    const double t = path->t, theta = path->y * pair->range, sec = 1.0 / cos(0.5 * theta), sec2 = sec * sec;
    double mean_p, mean_q, tail;
    fp_contour_end(pair, t, x, side, &tail);
    tail += path->lift - (pair->bounded ? t * pair->largest.hi : 0.0) + 1e-13 * fabs(t)
            + (pair->q_high > pair->q_low ? fp_max(t, 0.0) * fp_log(sec) : 0.0);
    if (tail < -40.0 || theta > 0.5 * FP_PI || t < 0.0)
        return tail;
    const double log_p = fp_path_log_size(&path->p, x, &mean_p), log_q = fp_path_log_size(&path->q, x, &mean_q);
    mean_q += pair->bounded ? pair->p_low : 0.0;
    const double above = mean_q - pair->q_low, below = pair->q_high - mean_q, near = cos(theta);
    const double q_mean = side > 0 ? fp_max(pair->q_low + near * above, pair->q_high - sec2 * below)
                                   : fp_min(pair->q_high - near * below, pair->q_low + sec2 * above);
    const double extreme = side > 0 ? pair->p_high : pair->p_low;
    const double fall = side * (x - extreme + t * (q_mean - extreme))
                        - 64.0 * FP_U * (fabs(x) + t * pair->range * path->rounding);
    const double loss = pair->bounded ? -log_q : log_p - log_q;
    const double value = (log_p - 0.5 * x * x) + (t * loss + path->slip * t * (2.0 + fabs(loss))) + path->lift;
    return fall >= 1.0 ? fp_min(tail, value - fp_log(fall) + 1e-9) : tail;
}

/* A bound of |m(w)| for all frequencies from w on: of each bump the bound is its mass or, where less, that of the best
 * shift of the path. */
static inline double fp_contour_one_sigma_decay(const fp_contour_factor *factor, double w)
{
    static const double angles[FP_SHIFTS] = {0.15, 0.4, 0.9, 1.5, 2.1};
    const fp_contour_one_sigma *pair = factor->pair;
    const fp_contour_nodes *nodes = &factor->nodes;
    const double t = factor->t, tau = fp_max(t, 0.0), d = pair->range;
    const int side = pair->p_low >= pair->q_high ? 1 : -1;
    if ((side > 0 ? pair->p_low - pair->q_high : pair->q_low - pair->p_high) < 0.0) /* the path would change sides */
        return 1.0;
    const double left = factor->first * factor->step, right = left + (nodes->n - 1) * factor->step;
    if (!(right - left < (FP_BUMPS - 2) * FP_BUMP_SPACING))
        return 1.0;
    const int bumps = (int)ceil((right - left) / FP_BUMP_SPACING) + 1;
    const double *mass = fp_contour_bump_masses(factor, bumps);
    double best[FP_BUMPS], total[FP_PATH_BUMPS + 2 * FP_BUMP_SPAN + FP_LANES], kept = 0.0;
    for (int i = 0; i < bumps; i++)
        kept += mass[i + FP_BUMP_SPAN] * (1.0 - 1e-12), best[i] = mass[i + FP_BUMP_SPAN];
    const double least = fp_max(0.0, 1.0 - kept) + 1e-12 + 1.1 * (nodes->moved_weight + nodes->quadrature)
                         + 1.1 * fp_contour_bump_error(factor); /* of the masses */
    double bound = 1.0;
    fp_path path = {.t = t, .w = w};
    for (int shift = 0; shift < FP_SHIFTS; shift++) {
        if (shift && angles[shift - 1] / d >= 5.0) /* the same path */
            break;
        const double y = fp_min(angles[shift] / d, 5.0), sec = 1.0 / cos(0.5 * y * d);
        const double curvature = 1.0 + (1.0 + 2.0 * tau + 2.0 * w) * 0.25 * d * d * (sec + sec * sec);
        const double cells = ceil(FP_BUMP_SPACING * fp_min(sqrt(curvature / 0.8), fp_max(2.5, d / 0.3)));
        const double width = FP_BUMP_SPACING / cells, farthest = fp_max(-left, right) + FP_PATH_BUMPS;
        double fall[2 * FP_BUMP_SPAN + 1], lost, whole = 0.0;
        path.y = y, path.width = width;
        path.growth = sec * sec * fp_exp(d * width), path.lift = y * y - FP_LOG_SQRT_2PI - nodes->log_total;
        path.lift += pair->bounded ? t * (pair->largest.hi - factor->offset.hi) : 0.0;
        fp_path_fill(&path, pair, side, pair->bounded);
        double rounding = 8.0;
        for (int j = 0; j < path.p.n + path.q.n; j++) {
            const fp_path_mixture *of = j < path.p.n ? &path.p : &path.q;
            const int i = j < path.p.n ? j : j - path.p.n;
            rounding = fp_max(rounding, 8.0 + fabs(of->log_w[i]) + fabs(of->c[i]) * (farthest + fabs(of->c[i])));
        }
        path.rounding = rounding, path.slip = pair->bounded ? 1.6e-14 * rounding : 0.0;
        path.lift += 1e-3 + 1.6e-14 * (1.0 + (pair->bounded ? 0.0 : fabs(t) + w)) * rounding;
        int before = 0, after = 0; /* the path goes on where its ends are not small */
        while ((lost = fp_path_tail(pair, &path, left - before * FP_BUMP_SPACING, -1)) > -37.0
               && before + bumps < FP_PATH_BUMPS - FP_LANES)
            before += FP_LANES / 2;
        double lost_above;
        while ((lost_above = fp_path_tail(pair, &path, left + (bumps + after) * FP_BUMP_SPACING, 1)) > -37.0
               && before + bumps + after < FP_PATH_BUMPS - FP_LANES)
            after += FP_LANES / 2;
        lost = fp_exp(fp_min(lost, 690.0)) + fp_exp(fp_min(lost_above, 690.0));
        if (!(cells * (before + bumps + after) < FP_PATH_CELLS) || !(lost < 1e-3))
            continue;
        for (int i = 0; i < FP_PATH_BUMPS + 2 * FP_BUMP_SPAN + FP_LANES; i++)
            total[i] = 0.0;
        for (double cell = 0.5; cell < cells; cell += 1.0) {
            for (int i = 0; i <= 2 * FP_BUMP_SPAN; i++) { /* the largest values of bumps on the cell */
                const double away = fp_max(0.0, fabs(cell * width - (i - FP_BUMP_SPAN) * FP_BUMP_SPACING)
                                           - 0.5 * width);
                fall[i] = fp_exp(-0.5 * away * away);
            }
            whole += fp_contour_path_selected(&path, left - before * FP_BUMP_SPACING + cell * width,
                                              fp_padded(before + bumps + after), fall, total);
        }
        bound = least;
        for (int i = 0; i < bumps; i++) {
            best[i] = fp_min(best[i], total[i + before + FP_BUMP_SPAN] + lost + 4e-17 * whole);
            bound += best[i];
        }
        if (bound <= factor->enough)
            break;
    }
    return bound < 1.0 ? bound : 1.0;
}

static const fp_contour_kind fp_contour_one_sigma_kind = {fp_contour_one_sigma_build, fp_contour_nodes_moments,
                                                          fp_contour_one_sigma_decay};

/* Must be called once, before any factor. */
static inline void fp_contour_one_sigma_select(void)
{
    fp_one_sigma_select();
    fp_contour_path_selected = FP_SELECT(fp_contour_path);
    fp_bounded_nodes_selected = FP_SELECT(fp_bounded_nodes);
    fp_far_nodes_selected = FP_SELECT(fp_far_nodes);
    for (int i = 0; i <= FP_BUMP_SPAN; i++)
        fp_bump_falls[i] = fp_exp(-0.5 * FP_BUMP_SPACING * FP_BUMP_SPACING * i * i);
}

static inline void fp_contour_one_sigma_factor(fp_contour_factor *factor, const fp_contour_one_sigma *pair,
                                               double count)
{
    memset(factor, 0, sizeof *factor);
    factor->kind = &fp_contour_one_sigma_kind, factor->pair = pair, factor->count = count;
    factor->largest_t = INFINITY, factor->log_mass = fp_log1p(pair->mass), factor->both_sides = 1;
    factor->has_gap = 1, factor->gap = pair->g.apart;
    factor->low = fp_min(pair->p_low, pair->q_low), factor->high = fp_max(pair->p_high, pair->q_high);
}

#endif
