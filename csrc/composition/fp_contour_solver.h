/* delta(epsilon) of a composition of pairs of Gaussian mixtures of one standard deviation, by a sum along a contour.
 *
 * Notation. Pair i is composed count_i times; l = log(p/q) its loss, M(z) = E_P e^(z l), kappa(t) = log M(t); S the
 * sum of all losses under P. Lengths are in standard deviations of each pair, D is the range of its means. For t > 0,
 * with z_n = t + i n h and period = 2 pi / h,
 *     h/pi Re[ f(z_0)/2 + sum_{n >= 1} f(z_n) ] = sum over integers j of delta(epsilon + j period) e^(t j period),
 *     f(z) = e^(-epsilon z) prod M_i(z)^count_i / (z (z + 1)),
 * by Poisson summation of delta(x) e^(t x), whose transform is f (delta(x) = E[(1 - e^(x - S))^+]). All terms on the
 * right are >= 0, that of j = 0 is delta(epsilon): the sum is an upper bound. Terms j < 0 add at most
 * e^(-t period) / (1 - e^(-t period)), as delta <= 1; terms j > 0 are bounded by Chernoff's bound at some t' > t,
 *     delta(x) <= t'^t' / (1 + t')^(1 + t') prod M_i(t')^count_i e^(-t' x).
 *
 * Moments. M(z) is the trapezoidal sum of p e^(z l) at x = j step, which one set of nodes serves for every z = t + i w.
 * With theta = y D < pi the phases of the components at x + i y differ by theta at most, so that (fp_one_sigma_solver.h)
 *     |p(x + i y)| <= e^(y^2/2) p(x), |q(x + i y)| >= cos(theta/2) e^(y^2/2) q(x), |Im l(x + i y)| <= theta,
 * and the sum differs from M(z) by at most 2 e^E / (e^(2 pi y / step) - 1) M(t),
 *     E = y^2/2 - t log cos(theta/2) + |w| theta,
 * without the second term where Q has one component (Trefethen and Weideman 2014, theorem 5.1). Right of b, with E_q the
 * mean of Q's means under their weights at b, c_p the largest mean of P, p e^(t l) is at most its value at b times
 * e^(-u (x-b) - (x-b)^2/2), u = b - c_p - t max(0, c_p - E_q); left of it likewise.
 *
 * Rounding. Tilted weights g_j = p e^(t l) / M(t) and centred losses give m(w) = M(t + i w) / M(t) e^(- i w mean) as
 * 1 + sum g_j (e^(i w (l_j - mean)) - 1), whose error is relative to |m - 1|: count times it stays small.
 *
 * Cut of the contour. For a sign s and y > 0, x -> x + i s y moves the path of integration, and with 0 <= chi <= 1,
 *     |m(w)| <= 1 - sum g chi + integral of |p e^(t l) chi|(x + i s y) e^(-w Im l) dx / M(t),  chi = e^(-(x-x0)^2 / 2 v^2)
 * or 1. Where Im l >= 0 on the path the right side falls with w: at the last frequency W it bounds all further ones,
 * whose terms sum to at most prod |m|^count / W.
 */
/* bounds: tested by enclosures/test_contour - rounding of sums along the contour */
#ifndef FP_CONTOUR_SOLVER_H
#define FP_CONTOUR_SOLVER_H

#include "composition/fp_sin_cos.h"
#include "line/fp_one_sigma_solver.h"

#define FP_CONTOUR_BLOCK 64  /* nodes whose terms are summed before they are added to the total */
#define FP_CONTOUR_NODES (1 << 20) /* of one pair */
#define FP_CONTOUR_TERMS (1 << 17) /* frequencies */
#define FP_CONTOUR_AT_ONCE 32
/* bound: proved - exponents of the errors of quadrature and of truncation, e^-46 = 1e-20, which enter the bounds */
#define FP_CONTOUR_AIM 46.0

#define FP_LOOPS "composition/fp_contour_loops.h"
#include "common/fp_variants.h"

typedef void (*fp_contour_sums_kernel)(int, const double *, const double *, double, double, int, double *, double *);
static fp_contour_sums_kernel fp_contour_sums_selected;

/* Must be called once, before any composition. */
static inline void fp_contour_select(void)
{
    fp_one_sigma_select();
    fp_contour_sums_selected = FP_SELECT(fp_contour_sums);
}

typedef struct {
    fp_one_sigma g;
    double p_low, p_high, q_low, q_high, range, count;
    int part; /* 0: all of P; 1 or -1: P times Phi(part (x - centre) / width), the larger or the smaller losses */
    double centre, width;
} fp_contour_pair;

/* log of the factor of a part at x */
FP_INLINE double fp_contour_log_window(const fp_contour_pair *pair, double x)
{
    return pair->part ? fp_log_ndtr(pair->part * (x - pair->centre) / pair->width) : 0.0;
}

/* A pair under a tilt, at nodes (first + j) step, j < n; n is a multiple of eight. */
typedef struct {
    int n, capacity;
    double first, step, *lp, *lq, *l, *dp, *dq, *dl, *g, *block;
    double largest_frequency; /* for which the step was chosen */
    double kappa, kappa_error, mean, variance, spread; /* log M(t); of l under g; spread: sum of g |l - mean| */
    double loss_error, weight_error, weighted_error; /* sums of g dl, g e, g e |l - mean|, e the relative error of g */
    double quadrature;        /* error of m from the step and the ends, relative to M(t) */
    double log_top, log_total; /* of p e^(t l) sqrt(2 pi) at the nodes; of their sum times the step */
} fp_contour_tilt;

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
static inline double fp_contour_end(const fp_contour_pair *pair, double t, double x, int side, double *log_tail)
{
    const fp_one_sigma *g = &pair->g;
    double mean_p, mean_q;
    const double log_p = fp_log(fp_contour_weight_sum(g, g->w, g->w_centre, x, &mean_p)),
                 log_q = fp_log(fp_contour_weight_sum(g, g->v, g->v_centre, x, &mean_q));
    const double window = fp_contour_log_window(pair, x);
    const double value = log_p - 0.5 * x * x + t * (log_p - log_q) + window;
    const double extreme = side > 0 ? pair->p_high : pair->p_low;
    const double away = side > 0 ? extreme - mean_q : mean_q - extreme;
    const double u = side * (x - extreme) - t * fp_max(0.0, away);
    *log_tail = u >= 1.0 ? value - (side == pair->part ? window : 0.0) - fp_log(u) + 1e-9 : INFINITY;
    return value;
}

/* The end of the nodes: where the integral beyond is e^-FP_CONTOUR_AIM of the largest value met. */
static inline double fp_contour_find_end(const fp_contour_pair *pair, double t, int side, double *top, double *log_tail)
{
    double x = side > 0 ? pair->p_high + 2.0 : pair->p_low - 2.0, step = 1.0, inside = side > 0 ? pair->p_low : pair->p_high;
    double tail;
    for (int i = 0; i < 400; i++) {
        const double value = fp_contour_end(pair, t, x, side, &tail);
        *top = fp_max(*top, value);
        if (tail <= *top - FP_CONTOUR_AIM)
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
        if (tail <= *top - FP_CONTOUR_AIM)
            x = middle, *log_tail = tail;
        else
            inside = middle;
    }
    return x;
}

static inline void fp_contour_tilt_free(fp_contour_tilt *tilt) { free(tilt->block); }

static inline int fp_contour_tilt_reserve(fp_contour_tilt *tilt, int n)
{
    if (n > tilt->capacity) {
        free(tilt->block);
        tilt->capacity = n + n / 4;
        tilt->capacity = (tilt->capacity + 7) / 8 * 8;
        tilt->block = malloc(sizeof(double) * 7 * (size_t)tilt->capacity);
        if (!tilt->block) {
            tilt->capacity = 0;
            return -1;
        }
        double *cursor = tilt->block;
        double **arrays[7] = {&tilt->lp, &tilt->lq, &tilt->l, &tilt->dp, &tilt->dq, &tilt->dl, &tilt->g};
        for (int i = 0; i < 7; i++)
            *arrays[i] = fp_take(&cursor, tilt->capacity);
    }
    return 0;
}

/* The step for frequencies up to w, and the exponent E of its error */
static inline double fp_contour_step(const fp_contour_pair *pair, double t, double w, double aim, double *log_error)
{
    const double tau = pair->q_high > pair->q_low ? t : 0.0, d = pair->range;
    const double rate = pair->part ? 1.0 / pair->width : 0.0; /* |Phi(u + i v)| <= Phi(u) + v e^(v^2/2) phi(u) */
    double y = sqrt(aim / (0.5 + 0.5 * rate * rate + 0.125 * tau * d * d));
    y = fp_min(y, 2.6 / d);
    const double e = 0.5 * y * y * (1.0 + rate * rate) + fp_log1p(y * rate * (2.0 + 60.0 * rate)) - tau * fp_log(cos(0.5 * y * d)) + w * d * y;
    const double step = 2.0 * FP_PI * y / (e + aim + 1.0);
    *log_error = -aim;
    return step;
}

/* Tilt the pair; frequencies up to w. With `aim` small and w = 0 few nodes serve a search. Returns 0, -1 without
 * memory, 1 where there would be too many nodes. */
static inline int fp_contour_tilt_build(fp_contour_tilt *tilt, const fp_contour_pair *pair, double t, double w, double aim)
{
    double top = -INFINITY, left_tail, right_tail, log_error;
    const double right = fp_contour_find_end(pair, t, 1, &top, &right_tail);
    const double left = fp_contour_find_end(pair, t, -1, &top, &left_tail);
    const double step = fp_contour_step(pair, t, w, aim, &log_error);
    const double first = floor(left / step), nodes = ceil(right / step) - first + 1.0;
    if (!(nodes < FP_CONTOUR_NODES))
        return 1;
    const int n = (int)(nodes + 7.0) / 8 * 8;
    if (fp_contour_tilt_reserve(tilt, n))
        return -1;
    tilt->n = n, tilt->first = first, tilt->step = step, tilt->largest_frequency = w;
    fp_one_sigma_selected.nodes(&pair->g, first, step, n, tilt->lp, tilt->lq, tilt->l, tilt->dp, tilt->dq, tilt->dl);
    if (pair->part)
        for (int j = 0; j < n; j++) {
            tilt->dq[j] = fp_contour_log_window(pair, (first + j) * step);
            tilt->lp[j] += tilt->dq[j];
        }
    const double peak = fp_one_sigma_selected.top(n, t, tilt->lp, tilt->l);
    double total = 0.0, moment = 0.0, expm1_sum = 0.0, expm1_error = 0.0, error = 0.0;
    for (int j = 0; j < n; j++) {
        const double y = t * tilt->l[j], e = (tilt->lp[j] + y) - peak, g = fp_exp(e);
        const double relative = tilt->dp[j] + t * tilt->dl[j] + FP_U * (4.0 + fabs(tilt->lp[j]) + 3.0 * fabs(y) + 2.0 * fabs(peak));
        tilt->g[j] = g;
        tilt->dp[j] = relative;
        total += g, moment += g * tilt->l[j], error += g * relative;
    }
    const double scale = 1.0 / total;
    tilt->mean = moment * scale;
    double spread = 0.0, variance = 0.0, loss_error = 0.0, weighted = 0.0;
    for (int j = 0; j < n; j++) {
        const double window = pair->part ? tilt->dq[j] : 0.0, y = t * tilt->l[j], p = fp_exp(tilt->lp[j] - window);
        const double rest = pair->part ? fp_ndtr(-pair->part * ((first + j) * step - pair->centre) / pair->width) : 0.0;
        const double change = fabs(y) < 1.0 && rest < 0.5 ? p * (fp_expm1(y) - rest * fp_exp(y)) : fp_exp(tilt->lp[j] + y) - p;
        const double touched = fabs(y) < 1.0 && rest < 0.5 ? p * (fabs(fp_expm1(y)) + 3.0 * rest) : p + fabs(change);
        const double centred = tilt->l[j] - tilt->mean, size = fabs(centred), g = tilt->g[j] * scale;
        expm1_sum += change;
        expm1_error += touched * (tilt->dp[j] + 6.0 * FP_U) + (p + fabs(change)) * t * tilt->dl[j];
        tilt->g[j] = g, tilt->l[j] = centred;
        spread += g * size, variance += g * size * size;
        loss_error += g * (tilt->dl[j] + FP_U * (size + fabs(tilt->mean) * 0.0));
        weighted += g * size * tilt->dp[j];
    }
    const double norm = step * 0.39894228040143267794; /* 1 / sqrt(2 pi) */
    const double sum_error = FP_U * n; /* of plain sums of n numbers, relative to their sizes */
    tilt->log_top = peak;
    tilt->log_total = peak + fp_log(total * step);
    const double ends = fp_exp(left_tail - tilt->log_total) + fp_exp(right_tail - tilt->log_total);
    tilt->quadrature = 2.2 * fp_exp(log_error) + ends;
    tilt->weight_error = error * scale * 1.01, tilt->weighted_error = weighted * 1.01;
    tilt->spread = spread, tilt->variance = variance, tilt->loss_error = loss_error;
    const double excess = norm * expm1_sum;
    if (fabs(excess) < 0.5) {
        tilt->kappa = fp_log1p(excess);
        tilt->kappa_error = (norm * expm1_error * 1.01 + fabs(excess) * (4.0 * FP_U) + norm * sum_error * fabs(expm1_sum)
                             + 2.0 * tilt->quadrature) / (1.0 + excess) * 1.1 + 2.0 * FP_U * fabs(tilt->kappa);
    } else {
        tilt->kappa = peak + fp_log(total * norm);
        tilt->kappa_error = tilt->weight_error + sum_error + 4.0 * FP_U * (fabs(peak) + 2.0) + tilt->quadrature;
    }
    return 0;
}

#define FP_BUMPS 128
#define FP_BUMP_SPACING 0.75
/* bound: proved - the bumps e^(-(x - c)^2 / 2) spaced by 0.75 sum to 3.3422... (1 +- 2 e^(-2 pi^2 / 0.75^2)) */
#define FP_BUMP_HEIGHT 0.29920671030107 /* 0.75 / sqrt(2 pi), rounded down */
#define FP_SHIFTS 5

/* A bound of |m(w)| for all frequencies from w on. Bumps chi_i that sum to at most 1 divide the integral; of each part
 * the bound is its mass or, where less, that of the best shift of the path. Cells are so narrow that the integrand on each
 * is at most e^0.11 of an exponential through its middle: log |integrand| has a second derivative of at most
 * 1 + (1 + 2 t + 2 w) D^2 (sec(theta/2) + sec^2(theta/2)) / 4. */
static inline double fp_contour_decay(const fp_contour_pair *pair, const fp_contour_tilt *tilt, double t, double w)
{
    static const double angles[FP_SHIFTS] = {0.15, 0.4, 0.9, 1.5, 2.1};
    const fp_one_sigma *g = &pair->g;
    const int side = pair->p_low >= pair->q_high ? 1 : -1, several = pair->q_high > pair->q_low;
    if ((side > 0 ? pair->p_low - pair->q_high : pair->q_low - pair->p_high) < 0.0) /* the path would change sides */
        return 1.0;
    const double left = tilt->first * tilt->step, right = left + (tilt->n - 1) * tilt->step;
    const int bumps = (int)ceil((right - left) / FP_BUMP_SPACING) + 1;
    if (bumps > FP_BUMPS)
        return 1.0;
    double mass[FP_BUMPS], best[FP_BUMPS], total[FP_BUMPS], kept = 0.0;
    for (int i = 0; i < bumps; i++)
        mass[i] = 0.0;
    for (int j = 0; j < tilt->n; j++) {
        const double x = j * tilt->step;
        const int middle = (int)(x / FP_BUMP_SPACING), first = middle > 11 ? middle - 11 : 0, last = middle + 12 < bumps ? middle + 12 : bumps - 1;
        for (int i = first; i <= last; i++) {
            const double away = x - i * FP_BUMP_SPACING;
            mass[i] += FP_BUMP_HEIGHT * tilt->g[j] * fp_exp(-0.5 * away * away);
        }
    }
    for (int i = 0; i < bumps; i++)
        kept += mass[i] * (1.0 - 1e-12), best[i] = mass[i];
    double least_left = INFINITY;
    for (int shift = 0; shift < FP_SHIFTS; shift++) {
        const double y = fp_min(angles[shift] / pair->range, 5.0), theta = y * pair->range, sec = 1.0 / cos(0.5 * theta);
        const double rate = pair->part ? y / pair->width : 0.0, factor = 1.0 + 0.4 * rate * fp_exp(0.5 * rate * rate);
        const double curvature = 1.0 + (1.0 + 2.0 * t + 2.0 * w) * 0.25 * pair->range * pair->range * (sec + sec * sec);
        const double cells = ceil((right - left) * sqrt(curvature / 0.8)), width = (right - left) / cells;
        const double lost = factor * 1e-19 * fp_exp(y * y) * (several ? pow(sec, t) : 1.0); /* beyond the nodes */
        if (!(cells < 20000.0) || !(lost < 1e-3))
            continue;
        for (int i = 0; i < bumps; i++)
            total[i] = lost;
        for (int cell = 0; cell < (int)cells; cell++) {
            const double x = left + (cell + 0.5) * width;
            double t_re = g->w_centre, t_im = 0.0, s_re = g->v_centre, s_im = 0.0, t1_re = 0.0, t1_im = 0.0, s1_re = 0.0, s1_im = 0.0;
            for (int j = 0; j < g->n; j++) {
                const double e = fp_exp(g->c[j] * (x - 0.5 * g->c[j])), angle = g->c[j] * (side * y);
                const double re = e * cos(angle), im = e * sin(angle);
                t_re += g->w[j] * re, t_im += g->w[j] * im, s_re += g->v[j] * re, s_im += g->v[j] * im;
                t1_re += g->c[j] * g->w[j] * re, t1_im += g->c[j] * g->w[j] * im;
                s1_re += g->c[j] * g->v[j] * re, s1_im += g->c[j] * g->v[j] * im;
            }
            const double t2 = t_re * t_re + t_im * t_im, s2 = s_re * s_re + s_im * s_im;
            const double argument = atan2(t_im, t_re) - atan2(s_im, s_re);
            const double mt_re = (t1_re * t_re + t1_im * t_im) / t2, mt_im = (t1_im * t_re - t1_re * t_im) / t2;
            const double ms_re = (s1_re * s_re + s1_im * s_im) / s2, ms_im = (s1_im * s_re - s1_re * s_im) / s2;
            const double slope = -x + (1.0 + t) * mt_re - t * ms_re - w * (mt_im - ms_im);
            double e = -0.5 * x * x + y * y + (0.5 + 0.5 * t) * fp_log(t2) - 0.5 * t * fp_log(s2) - w * argument - tilt->log_total;
            if (pair->part) /* |Phi(u + i v)| <= Phi(u) + v e^(v^2/2) phi(u), and u at the end of the cell that is larger */
                e += fp_log(fp_ndtr((pair->part * (x - pair->centre) + 0.5 * width) / pair->width) + 0.4 * rate * fp_exp(0.5 * rate * rate - 0.5 * fp_max(0.0, fabs(x - pair->centre) - 0.5 * width) * fp_max(0.0, fabs(x - pair->centre) - 0.5 * width) / (pair->width * pair->width)));
            const double reach = 0.5 * fabs(slope) * width;
            const double integral = FP_BUMP_HEIGHT * width * fp_exp(e + 0.11) * (reach < 1e-3 ? 1.001 : sinh(reach) / reach);
            if (!(integral > 1e-40))
                continue;
            const double place = x - left;
            const int middle = (int)(place / FP_BUMP_SPACING), first = middle > 11 ? middle - 11 : 0, last = middle + 12 < bumps ? middle + 12 : bumps - 1;
            for (int i = 0; i < bumps; i++) {
                const double away = fp_max(0.0, fabs(place - i * FP_BUMP_SPACING) - 0.5 * width);
                total[i] += integral * (i < first || i > last ? 1e-15 : fp_exp(-0.5 * away * away));
            }
        }
        for (int i = 0; i < bumps; i++)
            best[i] = fp_min(best[i], total[i]);
        least_left = 0.0;
    }
    (void)least_left;
    double bound = fp_max(0.0, 1.0 - kept) + 1e-12;
    for (int i = 0; i < bumps; i++)
        bound += best[i];
    return fp_min(1.0, bound);
}

typedef struct {
    double log_scale, scale_error, value, lower, upper; /* delta = e^(log_scale +- scale_error) value */
    double t, period, frequency;
    int terms, nodes, status; /* status: 0, or 1 where a budget was spent; the bounds hold */
    double alias, tail, rounding;
} fp_contour_answer;

typedef struct {
    int n;
    const fp_contour_pair *pairs;
    fp_contour_tilt *tilts;
} fp_composition;

/* phi(t) = sum count kappa(t) - epsilon t - log t (t + 1), with coarse nodes, and its derivatives */
static inline int fp_contour_objective(const fp_composition *c, double t, double epsilon, double *value, double *slope,
                                       double *variance)
{
    *value = -epsilon * t - fp_log(t) - fp_log1p(t);
    *slope = -epsilon - 1.0 / t - 1.0 / (1.0 + t);
    *variance = 0.0;
    for (int i = 0; i < c->n; i++) {
        fp_contour_tilt *tilt = c->tilts + i;
        const int status = fp_contour_tilt_build(tilt, c->pairs + i, t, 0.0, 8.0);
        if (status)
            return status;
        *value += c->pairs[i].count * tilt->kappa;
        *slope += c->pairs[i].count * tilt->mean;
        *variance += c->pairs[i].count * tilt->variance;
    }
    return 0;
}

static inline int fp_contour_saddle(const fp_composition *c, double epsilon, double *t_out, double *variance)
{
    double low = 0.0, high = INFINITY, t = *t_out > 0.0 ? *t_out : 1.0, value, slope;
    for (int i = 0; i < 60; i++) {
        const int status = fp_contour_objective(c, t, epsilon, &value, &slope, variance);
        if (status == -1)
            return -1;
        if (status || slope > 0.0)
            high = t;
        else
            low = t;
        const double second = *variance + 1.0 / (t * t) + 1.0 / ((1.0 + t) * (1.0 + t));
        if (!status && fabs(slope) < 0.02 * sqrt(second))
            break;
        double next = status ? 0.5 * t : t - slope / second;
        next = fp_min(next, 4.0 * t), next = fp_max(next, 0.25 * t);
        if (!(next > low && next < high))
            next = high < INFINITY ? (low > 0.0 ? sqrt(low * high) : 0.5 * high) : 2.0 * low;
        if (fabs(next - t) < 1e-3 * t)
            break;
        t = next;
    }
    *t_out = t;
    return 0;
}

/* log of Chernoff's bound of the terms j > 0, by several t' */
static inline double fp_contour_alias(const fp_composition *c, double t, double epsilon, double period, double deviation)
{
    double best = INFINITY;
    for (int i = 0; i < 24; i++) {
        const double other = i < 12 ? t + (i + 1) / deviation : t * (1.0 + 0.25 * (i - 11));
        double value, slope, variance, log_value = other * fp_log(other) - (1.0 + other) * fp_log1p(other) - other * epsilon;
        if (fp_contour_objective(c, other, 0.0, &value, &slope, &variance))
            continue;
        for (int k = 0; k < c->n; k++)
            log_value += c->pairs[k].count * (c->tilts[k].kappa + 1e-3);
        const double gap = (other - t) * period;
        log_value += -gap - fp_log1p(-fp_exp(-gap));
        best = fp_min(best, log_value);
    }
    return best;
}

static inline int fp_contour_delta(const fp_composition *c, double epsilon, double t_start, fp_contour_answer *out)
{
    double t = t_start, variance = 0.0, value, slope;
    memset(out, 0, sizeof *out);
    if (fp_contour_saddle(c, epsilon, &t, &variance))
        return -1;
    if (fp_contour_objective(c, t, epsilon, &value, &slope, &variance))
        return -1;
    const double deviation = sqrt(variance), log_delta = value; /* to within a factor */
    double period = fp_max(8.5 * deviation, (34.0 - log_delta) / t), log_alias = INFINITY;
    for (int i = 0; i < 12; i++) {
        log_alias = fp_contour_alias(c, t, epsilon, period, deviation);
        if (log_alias < log_delta - 34.0)
            break;
        period *= 1.3;
    }
    const double h = 2.0 * FP_PI / period;
    double design = fp_max(12.0 / deviation, 4.0 * h);
    double sum = 0.0, error = 0.0, largest = 0.0;
    double scale = 0.0, scale_error = 0.0, drift = -epsilon, drift_error = 0.0;
    int n = 0, done = 0, started = 0;
    while (!done) {
        if (!started || (n + FP_CONTOUR_AT_ONCE) * h > design) {
            if (started)
                design *= 2.0;
            scale = -epsilon * t - fp_log(t) - fp_log1p(t), scale_error = 0.0, drift = -epsilon, drift_error = 0.0;
            out->nodes = 0;
            for (int i = 0; i < c->n; i++) {
                const int status = fp_contour_tilt_build(c->tilts + i, c->pairs + i, t, design + FP_CONTOUR_AT_ONCE * h, FP_CONTOUR_AIM);
                if (status)
                    return status;
                const double count = c->pairs[i].count;
                scale += count * c->tilts[i].kappa, scale_error += count * c->tilts[i].kappa_error + 2.0 * FP_U * fabs(count * c->tilts[i].kappa);
                drift += count * c->tilts[i].mean;
                drift_error += 2.0 * FP_U * fabs(count * c->tilts[i].mean);
                out->nodes += c->tilts[i].n;
            }
            drift_error += 2.0 * FP_U * fabs(epsilon);
            started = 1;
        }
        int vague[FP_CONTOUR_AT_ONCE] = {0}; /* where m is not known to a tenth */
        double re[FP_CONTOUR_AT_ONCE], im[FP_CONTOUR_AT_ONCE], log_size[FP_CONTOUR_AT_ONCE], phase[FP_CONTOUR_AT_ONCE],
            relative[FP_CONTOUR_AT_ONCE], log_above[FP_CONTOUR_AT_ONCE];
        for (int j = 0; j < FP_CONTOUR_AT_ONCE; j++)
            log_size[j] = log_above[j] = 0.0, phase[j] = (n + j) * h * drift, relative[j] = (n + j) * h * drift_error + 4.0 * FP_U * fabs(phase[j]);
        for (int i = 0; i < c->n; i++) {
            const fp_contour_tilt *tilt = c->tilts + i;
            const double count = c->pairs[i].count;
            fp_contour_sums_selected(tilt->n, tilt->g, tilt->l, n, h, FP_CONTOUR_AT_ONCE, re, im);
            for (int j = 0; j < FP_CONTOUR_AT_ONCE; j++) {
                const double w = (n + j) * h, x = 1.0 + re[j], excess = 2.0 * re[j] + (re[j] * re[j] + im[j] * im[j]);
                const double size2 = x * x + im[j] * im[j];
                const double log_m = 0.5 * (fabs(excess) < 0.5 ? fp_log1p(excess) : fp_log(size2)), size = sqrt(size2);
                const double change = fp_min(w * tilt->spread, 2.0);
                const double block = FP_U * (FP_CONTOUR_BLOCK / 8 + tilt->n / FP_CONTOUR_BLOCK + 12.0);
                const double wrong = change * block + w * (tilt->loss_error + 3.0 * FP_U * tilt->spread)
                                     + w * (tilt->weighted_error + tilt->weight_error * tilt->spread)
                                     + 2.0 * tilt->quadrature * (w > 0.0);
                log_size[j] += count * log_m, phase[j] += count * atan2(im[j], x);
                relative[j] += wrong < 0.1 * size ? -count * fp_log1p(-wrong / size) : 0.0;
                vague[j] |= !(wrong < 0.1 * size);
                log_above[j] += count * fp_log(size + wrong);
                relative[j] += 3.0 * FP_U * count * (fabs(log_m) + fabs(atan2(im[j], x)));
            }
        }
        for (int j = 0; j < FP_CONTOUR_AT_ONCE; j++) {
            const double w = (n + j) * h, a = t * (t + 1.0) - w * w, b = w * (2.0 * t + 1.0), norm = a * a + b * b;
            const double size = fp_exp(log_size[j]), payoff = t * (t + 1.0) / sqrt(norm), weight = n + j ? 1.0 : 0.5;
            const double angle = phase[j] - atan2(b, a), term = weight * size * payoff * cos(angle);
            sum += term;
            const double first_order = size * (relative[j] < 0.1 ? 1.06 * relative[j] : INFINITY);
            error += weight * payoff * fp_min(vague[j] ? INFINITY : first_order, size + fp_exp(log_above[j])) + 8.0 * FP_U * fabs(term);
            largest = size * payoff;
        }
        n += FP_CONTOUR_AT_ONCE;
        if (largest * n < 1e-16 * fabs(sum) || n >= FP_CONTOUR_TERMS) {
            const double w = (n - 1) * h;
            double log_tail = fp_log(t * (t + 1.0) / w / h);
            for (int i = 0; i < c->n && log_tail > fp_log(1e-15 * fabs(sum)); i++)
                log_tail += c->pairs[i].count * fp_log(fp_contour_decay(c->pairs + i, c->tilts + i, t, w));
            out->tail = fp_exp(log_tail);
            done = out->tail < 1e-13 * fabs(sum) || n >= FP_CONTOUR_TERMS;
            out->status = n >= FP_CONTOUR_TERMS;
        }
    }
    const double below = fp_exp(-t * period);
    const double alias = (fp_exp(log_alias - scale) + fp_exp(-t * period - scale) / (1.0 - below)) * (FP_PI / h);
    error += 4.0 * FP_U * n * fabs(sum) * 0.0;
    out->rounding = error, out->alias = alias;
    out->log_scale = scale + fp_log(h / FP_PI), out->scale_error = scale_error + 4.0 * FP_U * (fabs(scale) + t * fabs(epsilon));
    out->value = sum, out->lower = sum - error - out->tail - alias, out->upper = sum + error + out->tail;
    out->t = t, out->period = period, out->frequency = (n - 1) * h, out->terms = n;
    return 0;
}

#endif
