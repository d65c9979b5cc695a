/* delta(epsilon) of a composition in which one rare large loss competes with many small ones, by several contours.
 *
 * Notation of fp_contour_solver.h. One tilt serves all ways to exceed epsilon only where the tilted law of S has one
 * hump. Where large losses are rare, a sum along one contour cancels, or does not decay: it is split by the largest
 * loss.
 *
 * Shells. Functions 0 <= chi_m <= ... <= chi_1 <= chi_0 = 1 of the outcome cut a pair into parts; with A_i(z) the
 * moment E_P[chi_i e^(z l)], and products over all pairs with their counts,
 *     prod A_0 = prod A_m + sum over i of (prod A_(i-1) - prod A_i),
 * where each difference is the transform of a measure >= 0: of the outcomes all within chi_(i-1), not all within
 * chi_i. The steps of fp_contour_solver.h hold for each of them, with a t and a period of its own: aliases of either
 * sign are bounded by Chernoff's bound at a t' on the same side of t,
 *     delta(x) <= c(t') F(t') e^(-t' x),  c(t) = t^t / (1 + t)^(1 + t),  F(t') = prod A_(i-1)(t') - prod A_i(t').
 * With H = A_(i-1) - A_i of each pair F(z) = prod A_i expm1(sum count log1p(H / A_i)): nothing cancels. |F(t + i w)|
 * is at most prod (|A_i| + |H|) min(2, sum count |H| / (|A_i| + |H|)). prod A_m is bounded by Chernoff where it is
 * negligible, or summed along one contour where that falls.
 *
 * Windows. For a pair with one Gaussian Q = N(0, 1) and all means of P in [0, D] (mirrored where they are in [-D, 0])
 * l(x) increases, and chi_i is the product of Phi((b_j - x) / v_j), j <= i, so that H is p chi_(i-1) Phi((x - b_i) /
 * v_i). As Phi is an integral of Gaussian densities, |Phi(u + i e)| <= e^(e^2/2) Phi(u), and, as Phi' = phi, |Phi(u +
 * i e)| <= Phi(u) + e e^(e^2/2) phi(u), which for u >= d >= 0 is at most (1 + 0.8 e e^((e^2 - d^2)/2)) Phi(u). With
 * r(x, y) the product of the lesser of these factors, theta = y D < pi, z = t + i w, f_t = p chi e^(t l),
 *     |(p chi e^(z l))(x + i y)| <= e^(y^2/2) r(x, y) f_t(x) e^(-w phi(x)),
 * phi(x) = Im l(x + i y) = arg of a sum of weights >= 0 with phases in [0, theta]: phi >= 0, and phi increases with x,
 * as Im of (log sum u_j)' is the sum over pairs of |u_i| |u_j| (c_i - c_j) sin((c_i - c_j) y) / |sum u_j|^2. Thus the
 * trapezoidal sum of step h errs by at most 2 N / (e^(2 pi y / h) - 1), N = N(w, 1), and |M(t + i w')| is at most N(w,
 * -1) for all w' >= w, with
 *     N(w, s) = e^(y^2/2) times the integral of r f_t e^(s w phi) dx.
 * The latter also holds for f_t times a bump e^(-(x - x_0)^2 / 2 c^2), with (1 + 1/c^2) y^2 / 2 for y^2 / 2. Bumps at
 * distances of at most 0.75 c add up to a constant within 1e-15 of it: the integral is at most what they leave, and
 * for each bump the lesser of its share and of the best N(w, -1).
 *
 * Cells. The integrals are bounded on cells between equidistant points, on each of which log f_t has a slope of at
 * most
 *     s = max(|x|, (1 + t) l'(x)), or their sum where x < 0, plus for each window the mean of a Gaussian beyond u,
 * with l' = mean of P's means under their weights at x, which increases; that mean is at most u + 0.8 for u >= 0 and
 * 0.8 e^(-u^2/2) for u < 0, over v. So f_t is at most e^(s width / 2) times the larger of its values at the ends.
 * Right of the last point log f_t falls at least at the rate x - (1 + t) D + sum of max(0, x - b_j)/v_j^2, left of the
 * first one at the rate -x + max(0, b - x)/v^2, with the window that cuts below; both grow outwards, and are at least
 * 1.
 */
/* bounds: tested by enclosures/test_rare_losses - rounding of sums along several contours */
#ifndef FP_CONTOUR_WINDOWS_H
#define FP_CONTOUR_WINDOWS_H

#include "composition/fp_contour_solver.h"

#define FP_WINDOW_SHIFTS 8
#define FP_WINDOW_BUMPS 256
#define FP_WINDOW_BUMP 0.5 /* standard deviation of a bump */
#define FP_WINDOW_CELLS (1 << 13)
#define FP_WINDOW_NODES (1 << 16)
#define FP_SHELL_WORK 4e7 /* nodes times frequencies of a contour, roughly nanoseconds */
#define FP_SHELLS_WORK 2e8 /* of all shells */
#define FP_SHELL_NODE_WORK 100.0 /* of making a node, or a twentieth of a glance at it */
#define FP_SHELLS 20
#define FP_SHELLS_TABLES 64
/* bound: none - width of the epsilons that share a table, in units of the distance of the means */
#define FP_SHELL_CELL 1.0
#define FP_SHELL_PLACES 3 /* the ends and the middle of the epsilons of a table */
#define FP_SHELL_TILTS 28 /* of Chernoff's bounds */
/* bound: none - where log |F| at this many standard deviations is above the fall shells are tried first */
#define FP_SHELL_FREQUENCY 32.0
#define FP_SHELL_FALL -4.0
/* bound: none - exponents of the errors aimed at by the search of t, and by aliases and tails relative to the total */
#define FP_SHELL_WIDTH 1e-10 /* relative, of the whole */
/* bound: proved - exponent of the errors of quadrature, but for the count of a pair; they enter the bounds */
#define FP_SHELL_AIM 36.0
#define FP_SHELL_SEARCH_AIM 20.0
#define FP_SHELL_ALIAS_AIM 30.0

/* p times the product of Phi((cut_i - x) / width_i), i < cuts; with `above` also times Phi((x - cut) / width) of the
 * next. */
typedef struct {
    const fp_contour_one_sigma *pair;
    double side, centre; /* x = side (point - centre), centre the mean of Q */
    int means;
    double mean[FP_MAX_POINTS], weight[FP_MAX_POINTS], log_q; /* of P, by x; log of the weight of Q */
    int cuts, above;
    double cut[FP_SHELLS + 1], width[FP_SHELLS + 1], bend; /* bend: 1 + sum of 1 / width^2 */
    /* Cells of f_t, of equal size from `left` on; logarithms of bounds of its integral on a cell, of its values, and of
     * the integrals beyond either end; of each shift phi, and log of |window(x + i y)| / window(x) on a cell. */
    int cells, capacity, bumps, stride; /* bumps: 0 before their masses are known; stride: cells from one to the next */
    double left, size, shift[FP_WINDOW_SHIFTS], *log_cell, *log_value, *phi, *grown, log_ends[2], mass[FP_WINDOW_BUMPS];
    /* Few nodes for all t up to quick_t: log of p, the window and the step, and losses. */
    int quick, quick_capacity, quick_falls;
    double quick_t, quick_step, *quick_log_p, *quick_loss;
} fp_contour_window;

/* log of the window at x, and its relative error in `error` */
FP_INLINE double fp_window_log(const fp_contour_window *part, double x, double *error)
{
    double value = 0.0, wrong = 0.0;
    for (int i = 0; i < part->cuts + part->above; i++) {
        const double u = (i < part->cuts ? part->cut[i] - x : x - part->cut[i]) / part->width[i];
        const double log_part = u < 9.0 ? fp_log_ndtr(u) : 0.0;
        value += log_part, wrong += 2.0 + 8.0 * fabs(log_part) + 4.0 * (u < 9.0 ? u * u : 0.0);
    }
    return *error = FP_U * wrong, value;
}

/* Points beyond which f_t is at most e^-exponent of its largest value, roughly */
FP_INLINE void fp_window_range(const fp_contour_window *part, double t, double exponent, double *left, double *right)
{
    const double reach = sqrt(2.0 * exponent), pull = (1.0 + t) * part->pair->range;
    double bend = 1.0, moment = pull;
    *left = -reach, *right = pull + reach;
    if (part->above) {
        const double low = part->cut[part->cuts], v = part->width[part->cuts];
        *left = fp_max(*left, fp_min(low, low / (1.0 + v * v)) - v * reach);
        *right = fp_max(*right, low + reach);
    }
    for (int i = part->cuts - 1; i >= 0; i--) {
        const double weight = 1.0 / (part->width[i] * part->width[i]);
        bend += weight, moment += weight * part->cut[i];
        *right = fp_min(*right, moment / bend + reach / sqrt(bend));
    }
    *left -= 1.0, *right += 1.0;
}

/* Whether f_t falls at a rate >= 1 left of the one point and right of the other, as far as is proved */
FP_INLINE int fp_window_falls(const fp_contour_window *part, double t, double left, double right)
{
    double outwards = 0.0, beyond = 0.0;
    if (part->above)
        outwards = fp_max(0.0, part->cut[part->cuts] - left) / (part->width[part->cuts] * part->width[part->cuts]);
    for (int i = 0; i < part->cuts; i++)
        beyond += fp_max(0.0, right - part->cut[i]) / (part->width[i] * part->width[i]);
    return outwards - left >= 1.0 && right - (1.0 + t) * part->pair->range + beyond >= 1.0;
}

/* Cells of f_t, with phi at their ends. Returns 0, -1 without memory, 1 where there would be too many. */
static inline int fp_window_cells(fp_contour_window *part, double t, double w, double aim)
{
    const double d = part->pair->range, scale = 1.0 / sqrt(part->bend);
    const double longest = fp_min(4.5, 2.6 / d), shortest = fp_min(0.3 * scale, 0.25 * longest);
    double left, right;
    for (int s = 0; s < FP_WINDOW_SHIFTS; s++)
        part->shift[s] = shortest * pow(longest / shortest, s / (FP_WINDOW_SHIFTS - 1.0));
    fp_window_range(part, t, aim + 10.0 + fp_min(w * d * longest, 400.0), &left, &right);
    const double cells = ceil((right - left) / (0.35 * scale));
    if (!(cells < FP_WINDOW_CELLS))
        return 1;
    const int n = (int)cells;
    if (n + 1 > part->capacity) {
        free(part->log_value);
        part->capacity = n + n / 4 + 1;
        part->log_value = malloc(sizeof(double) * (2 + 2 * FP_WINDOW_SHIFTS) * (size_t)part->capacity);
        if (!part->log_value)
            return part->capacity = 0, -1;
        part->log_cell = part->log_value + part->capacity, part->phi = part->log_cell + part->capacity;
        part->grown = part->phi + FP_WINDOW_SHIFTS * part->capacity;
    }
    part->cells = n;
    const double step = (right - left) / n;
    double before = 0.0, turn_re[FP_WINDOW_SHIFTS][FP_MAX_POINTS], turn_im[FP_WINDOW_SHIFTS][FP_MAX_POINTS];
    for (int s = 0; s < FP_WINDOW_SHIFTS; s++)
        for (int i = 0; i < part->means; i++) {
            const double angle = part->mean[i] * part->shift[s];
            turn_re[s][i] = cos(angle), turn_im[s][i] = sin(angle);
        }
    for (int j = 0; j <= n; j++) {
        const double x = left + j * step;
        double e[FP_MAX_POINTS], sum = 0.0, moment = 0.0, error;
        for (int i = 0; i < part->means; i++) {
            const double m = part->mean[i];
            e[i] = part->weight[i] * fp_exp(m * (x - 0.5 * m));
            sum += e[i], moment += m * e[i];
        }
        const double log_p = fp_log(sum), slope = moment / sum;
        part->log_value[j] = log_p - 0.5 * x * x + t * (log_p - part->log_q) + fp_window_log(part, x, &error)
                             - 0.91893853320467274178;
        if (j) {
            double window = 0.0;
            for (int i = 0; i < part->cuts + part->above; i++) {
                const double outside = (i < part->cuts ? x - part->cut[i] : part->cut[i] - (x - step)) / part->width[i];
                window += (outside > 0.0 ? 0.8 + outside : 0.8 * fp_exp(-0.5 * outside * outside)) / part->width[i];
            }
            const double size = fp_max(fabs(x), fabs(x - step)), pull = (1.0 + t) * slope;
            const double most = (x - step < 0.0 ? size + pull : fp_max(size, pull)) + window;
            part->log_cell[j - 1] = fp_max(part->log_value[j], before) + 0.5 * most * step + fp_log(step) + 1e-9;
        }
        before = part->log_value[j];
        for (int s = 0; s < FP_WINDOW_SHIFTS; s++) {
            double re = 0.0, im = 0.0;
            for (int i = 0; i < part->means; i++)
                re += e[i] * turn_re[s][i], im += e[i] * turn_im[s][i];
            part->phi[s * part->capacity + j] = atan2(im, re);
            double grown = 0.0;
            for (int i = 0; i < part->cuts + part->above && j; i++) {
                const double inside = (i < part->cuts ? part->cut[i] - x : x - step - part->cut[i]) / part->width[i];
                const double eta = part->shift[s] / part->width[i], most = 0.5 * eta * eta;
                const double near = most - 0.5 * inside * inside;
                if (!(inside > 0.0 && near < 0.5 * most))
                    grown += most;
                else if (near > -50.0)
                    grown += fp_min(most, fp_log1p(0.8 * eta * fp_exp(near)));
                else
                    grown += 1e-20;
            }
            if (j)
                part->grown[s * part->capacity + j - 1] = grown;
        }
    }
    part->log_ends[0] = fp_window_falls(part, t, left, right) ? part->log_value[0] : INFINITY;
    part->log_ends[1] = part->log_ends[0] < INFINITY ? part->log_value[n] : INFINITY;
    part->left = left, part->size = step, part->bumps = 0;
    return 0;
}

/* log of a bound of the integral of |f(x + i y)| for z = t - i w, w >= 0, for one shift */
static inline double fp_window_integral(const fp_contour_window *part, int shift, double w)
{
    const double *phi = part->phi + shift * part->capacity + 1, *grown = part->grown + shift * part->capacity;
    const double y = part->shift[shift], whole = 0.5 * y * y, edge = 0.5 * part->bend * y * y;
    const double faster = w * (1.0 + 1e-13);
    const int n = part->cells;
    double top = -INFINITY, sum = 0.0;
    for (int j = 0; j < n; j++)
        top = fp_max(top, part->log_cell[j] + faster * phi[j] + grown[j]);
    for (int j = 0; j < n; j++)
        sum += fp_exp(part->log_cell[j] + faster * phi[j] + grown[j] - top);
    const double ends = fp_log_sum(part->log_ends[0] + faster * phi[-1], part->log_ends[1] + w * part->pair->range * y);
    return fp_log_sum(top + fp_log(sum) + whole + 1e-9, ends + edge);
}

/* kappa, mean and variance by few nodes, for a search */
static inline int fp_window_glance(fp_contour_factor *factor, double t, double aim)
{
    fp_contour_window *part = (fp_contour_window *)factor->pair;
    double left, right;
    if (!part->quick || t > part->quick_t) {
        const double y = sqrt(2.0 * aim / part->bend), step = 2.0 * FP_PI * y / (2.0 * aim + 1.0);
        part->quick_t = 2.0 * t;
        fp_window_range(part, part->quick_t, aim + 2.0, &left, &right);
        const double start = part->centre + part->side * (part->side > 0.0 ? left : right);
        const double first = floor(start / step), count = ceil((right - left) / step) + 2.0;
        if (!(count < FP_WINDOW_NODES))
            return part->quick = 0, 1;
        const int n = (int)(count + 7.0) / 8 * 8;
        if (n > part->quick_capacity) {
            free(part->quick_log_p);
            part->quick_capacity = n + n / 4;
            part->quick_log_p = malloc(sizeof(double) * 2 * (size_t)part->quick_capacity);
            if (!part->quick_log_p)
                return part->quick = part->quick_capacity = 0, -1;
            part->quick_loss = part->quick_log_p + part->quick_capacity;
        }
        if (fp_contour_nodes_reserve(&factor->nodes, n))
            return -1;
        fp_contour_nodes *nodes = &factor->nodes;
        fp_one_sigma_selected.nodes(&part->pair->g, first, step, n, part->quick_log_p, nodes->rest, part->quick_loss,
                                    nodes->log_p_error, nodes->g, nodes->loss_error);
        for (int j = 0; j < n; j++) {
            double error;
            part->quick_log_p[j] += fp_log(step) - 0.91893853320467274178
                                    + fp_window_log(part, part->side * ((first + j) * step - part->centre), &error);
        }
        part->quick = n, part->quick_step = step;
        part->quick_falls = fp_window_falls(part, part->quick_t, left, right);
    }
    const int n = part->quick;
    double top = -INFINITY, total = 0.0, moment = 0.0, square = 0.0;
    for (int j = 0; j < n; j++)
        top = fp_max(top, part->quick_log_p[j] + t * part->quick_loss[j]);
    for (int j = 0; j < n; j++) {
        const double l = part->quick_loss[j], g = fp_exp(part->quick_log_p[j] + t * l - top);
        total += g, moment += g * l, square += g * (l * l);
    }
    const double first_end = part->quick_log_p[0] + t * part->quick_loss[0];
    const double last_end = part->quick_log_p[n - 1] + t * part->quick_loss[n - 1];
    const double both_ends = fp_exp(fp_log_sum(first_end, last_end) - top);
    const double ends = part->quick_falls ? both_ends * 4.0 / fp_min(part->quick_step, 1.0) : INFINITY;
    factor->t = t, factor->kappa = top + fp_log(total), factor->mean = moment / total;
    factor->variance = fp_max(0.0, square / total - factor->mean * factor->mean);
    factor->kappa_error = (ends / total + 2.2 * fp_exp(-aim)) * 1.1 + FP_U * (n + 16.0 + 64.0 * fabs(top));
    return factor->kappa < INFINITY && factor->kappa_error < 1.0 ? 0 : 1;
}

static inline int fp_window_build(fp_contour_factor *factor, double t, double w, double aim)
{
    fp_contour_window *part = (fp_contour_window *)factor->pair;
    fp_contour_nodes *nodes = &factor->nodes;
    const int windowed = part->bend > 1.0;
    if (!(w > 0.0))
        return fp_window_glance(factor, t, aim);
    double left, right, step = 0.0, log_total = -INFINITY, log_rule = -aim, log_ends;
    const int status = fp_window_cells(part, t, w, aim);
    if (status)
        return status;
    for (int j = 0; j < part->cells; j++)
        log_total = fp_max(log_total, part->log_value[j] + fp_log(part->size));
    for (int s = FP_WINDOW_SHIFTS - 1, worse = 0; s >= 0 && !worse; s--) {
        const double exponent = fp_max(fp_window_integral(part, s, w) - log_total, 0.0) + aim + 1.0;
        worse = 2.0 * FP_PI * part->shift[s] / exponent < 0.8 * step;
        step = fp_max(step, 2.0 * FP_PI * part->shift[s] / exponent);
    }
    step = fp_min(step, part->size);
    log_rule += log_total;
    int from = 0, to = part->cells - 1;
    log_ends = fp_log_sum(part->log_ends[0], part->log_ends[1]);
    while (from < to && part->log_cell[from] < log_total - aim - 5.0)
        log_ends = fp_log_sum(log_ends, part->log_cell[from]), from++;
    while (to > from && part->log_cell[to] < log_total - aim - 5.0)
        log_ends = fp_log_sum(log_ends, part->log_cell[to]), to--;
    log_ends += 0.6931471805599454;
    left = part->left + from * part->size, right = part->left + (to + 1) * part->size;
    if (!part->above) { /* log M is small: p itself is needed */
        const double beyond = sqrt(2.0 * aim);
        left = fp_min(left, -beyond), right = fp_max(right, part->pair->range + beyond);
    }
    const double start = part->centre + part->side * (part->side > 0.0 ? left : right);
    const double first = floor(start / step), count = ceil((right - left) / step) + 2.0;
    if (!(count < FP_WINDOW_NODES))
        return 1;
    const int n = (int)(count + 7.0) / 8 * 8;
    if (fp_contour_nodes_reserve(nodes, n))
        return -1;
    factor->first = first, factor->step = step;
    fp_one_sigma_selected.nodes(&part->pair->g, first, step, n, nodes->log_p, nodes->rest, nodes->loss,
                                nodes->log_p_error, nodes->g, nodes->loss_error);
    const double log_weight = fp_log(step) - 0.91893853320467274178;
    for (int j = 0; j < n; j++) {
        const double x = part->side * ((first + j) * step - part->centre);
        nodes->log_p[j] += log_weight;
        nodes->spare[j] = nodes->log_p[j];
        if (windowed) {
            double error;
            const double log_window = fp_window_log(part, x, &error);
            nodes->log_p[j] += log_window, nodes->log_p_error[j] += error;
            nodes->rest[j] = part->above ? 1.0 : -fp_expm1(log_window);
        }
    }
    const double least = fp_min(-left, right - part->pair->range);
    const double log_left_out = least > 1.0 ? -0.5 * least * least : 0.0;
    fp_contour_nodes_tilt(factor, t, part->pair->mass, 0.0, log_ends, log_left_out, windowed ? nodes->rest : NULL);
    /* the rule errs by e^-aim of what is integrated: of M(t), and of 1 where kappa is log1p */
    const double rule = 2.2 * fp_exp(log_rule - nodes->log_total);
    nodes->quadrature += rule;
    factor->kappa_error += 2.2 * rule + (part->above ? 0.0 : 5.0 * fp_exp(-aim));
    return 0;
}

/* The shares of f_t in bumps, by the nodes of the last tilt. Nodes are at most 0.35 / sqrt(bend) apart: the sums
 * err by at most 2 e^-32 of the share, which the decay allows for. */
static inline void fp_window_bumps(fp_contour_window *part, const fp_contour_factor *factor)
{
    const int stride = (int)(0.75 * FP_WINDOW_BUMP / part->size), least = part->cells / (FP_WINDOW_BUMPS - 2) + 1;
    part->stride = stride > 1 ? stride : 1;
    const double spacing = part->stride * part->size;
    const double height = spacing / FP_WINDOW_BUMP / 2.5066282746310007 * (1.0 - 1e-12);
    part->bumps = part->stride >= least ? part->cells / part->stride + 1 : -1;
    const double unit = spacing / FP_WINDOW_BUMP, fall = fp_exp(-unit * unit);
    for (int i = 0; i < part->bumps; i++)
        part->mass[i] = 0.0;
    for (int j = 0; j < factor->nodes.n && part->bumps > 0; j++) {
        const double x = part->side * ((factor->first + j) * factor->step - part->centre);
        const double place = (x - part->left) / spacing;
        const int reach = (int)(8.0 * FP_WINDOW_BUMP / spacing), end = part->bumps - 1;
        const int middle = (int)fp_max(0.0, fp_min(place, end));
        const int from = middle > reach ? middle - reach : 0, to = middle + reach < end ? middle + reach : end;
        const double away = (from - place) * unit;
        double bump = height * fp_exp(-0.5 * away * away), ratio = fp_exp(-away * unit - 0.5 * unit * unit);
        for (int i = from; i <= to; i++)
            part->mass[i] += factor->nodes.g[j] * bump, bump *= ratio, ratio *= fall;
    }
}

/* A bound of |m(w')| for all w' >= w, by the cells of the last tilt with frequencies */
static inline double fp_window_decay(const fp_contour_factor *factor, double w)
{
    fp_contour_window *part = (fp_contour_window *)factor->pair;
    if (!part->bumps)
        fp_window_bumps(part, factor);
    if (part->bumps < 0)
        return 1.0;
    const double spacing = part->stride * part->size, height = spacing / FP_WINDOW_BUMP / 2.5066282746310007;
    const int n = part->cells, reach = (int)ceil(8.0 * FP_WINDOW_BUMP / part->size);
    double whole_best = 1.0, best[FP_WINDOW_BUMPS], *cell = part->log_value; /* which no one needs any more */
    for (int i = 0; i < part->bumps; i++)
        best[i] = part->mass[i];
    double fall[FP_WINDOW_CELLS]; /* of a bump */
    for (int j = 0; j < reach && j < n; j++) {
        const double distance = j * (part->size / FP_WINDOW_BUMP);
        fall[j] = fp_exp(-0.5 * distance * distance);
    }
    for (int s = 0; s < FP_WINDOW_SHIFTS; s++) {
        const double y = part->shift[s], slower = w * (1.0 - 1e-13);
        const double cost = 0.5 * y * y / (FP_WINDOW_BUMP * FP_WINDOW_BUMP);
        const double whole = 0.5 * y * y + cost - factor->nodes.log_total + 1e-9;
        const double *phi = part->phi + s * part->capacity, *grown = part->grown + s * part->capacity;
        const double edge = 0.5 * (part->bend - 1.0) * y * y;
        double all = 0.0; /* without the bumps, too */
        for (int j = 0; j < n; j++) {
            cell[j] = height * fp_exp(fp_min(part->log_cell[j] + grown[j] - slower * phi[j] + whole, 600.0));
            all += cell[j];
        }
        const double ends = fp_log_sum(part->log_ends[0], part->log_ends[1]) + edge + whole;
        const double lost = fp_exp(fp_min(ends, 600.0)) + 1e-13 * all;
        whole_best = fp_min(whole_best, (all + lost) / height * fp_exp(-cost) * (1.0 + 1e-9));
        for (int i = 0; i < part->bumps; i++) {
            const int centre = i * part->stride, from = centre > reach ? centre - reach : 0;
            const int to = centre + reach < n ? centre + reach : n;
            double sum = lost;
            for (int j = from; j < to && sum < best[i]; j++)
                sum += cell[j] * fall[j >= centre ? j - centre : centre - j - 1];
            best[i] = fp_min(best[i], sum);
        }
    }
    double kept = 0.0;
    for (int i = 0; i < part->bumps; i++)
        kept += part->mass[i] - best[i];
    return fp_min(whole_best, fp_max(0.0, 1.0 - kept * (1.0 - 1e-12)) + 1e-13);
}

static const fp_contour_kind fp_contour_window_kind = {fp_window_build, fp_contour_nodes_moments, fp_window_decay};

/* One shell: of each pair A_i, `inner`, and H, `shell`; NULL where the pair is not cut. Without any H the whole of
 * `inner`. */
typedef struct {
    int n, hollow; /* hollow: some shell is not NULL */
    fp_contour_factor **inner, **shell;
    double log_f, error, slope; /* log F(t) with its error, and its derivative */
    double log_inner, log_ratio; /* sum count kappa of the inner parts; the largest log of H / A */
    double drift, drift_size;    /* sum of count mean of the inner parts, and of its sizes */
    double work; /* all that was spent */
    double chernoff_t[FP_SHELL_TILTS], chernoff[FP_SHELL_TILTS]; /* log of c F at each of these t */
} fp_shell;

/* Tilt all parts. Returns 0, -1 without memory, 1 where F(t) cannot be computed. */
static inline int fp_shell_build(fp_shell *shell, double t, double w, double aim)
{
    double log_inner = 0.0, error = 0.0, slope = 0.0, size = 0.0, top = -INFINITY;
    for (int i = 0; i < shell->n; i++) {
        fp_contour_factor *a = shell->inner[i], *h = shell->shell[i];
        int status = a->kind->build(a, t, w, w > 0.0 ? aim + fp_log(fp_max(a->count, 1.0)) : aim);
        if (!status && h)
            status = h->kind->build(h, t, w, aim);
        shell->work += FP_SHELL_NODE_WORK * (w > 0.0 ? 1.0 : 0.05) * (a->nodes.n + (h ? h->nodes.n : 0) + 100.0);
        if (status)
            return status;
        const double part = a->count * a->kappa;
        log_inner += part, error += a->count * a->kappa_error + 4.0 * FP_U * (fabs(part) + fabs(log_inner));
        slope += a->count * a->mean, size += fabs(a->count * a->mean);
        if (h)
            top = fp_max(top, h->kappa - a->kappa);
    }
    shell->drift = slope, shell->drift_size = size;
    shell->log_inner = shell->log_f = log_inner, shell->log_ratio = top;
    if (shell->hollow) { /* X = sum count log1p(r), r = H / A, in units of e^top where e^top is tiny */
        const int tiny = top < -40.0;
        const double raise = tiny ? -60.0 - top : 0.0;
        double x = 0.0, x_error = 0.0, x_slope = 0.0;
        for (int i = 0; i < shell->n; i++) {
            const fp_contour_factor *a = shell->inner[i], *h = shell->shell[i];
            if (!h)
                continue;
            const double r = fp_exp(h->kappa - a->kappa + raise);
            const double rounding = 4.0 * FP_U * (fabs(h->kappa) + fabs(a->kappa) + fabs(raise) + 2.0);
            x += a->count * fp_log1p(r), x_slope += a->count * r / (1.0 + r) * (h->mean - a->mean);
            x_error += a->count * r / (1.0 + r) * (h->kappa_error + a->kappa_error + rounding) * 1.1;
            x_error += tiny ? shell->n * a->count * a->count * fp_exp(top) * r : 0.0; /* of second order */
        }
        const double grown = fp_expm1(x);
        shell->log_f += (x < 700.0 ? fp_log(grown) : x) - raise;
        error += 1.01 * x_error * (x < 700.0 ? 1.0 + 1.0 / grown : 1.0);
        error += 8.0 * FP_U * (fabs(raise) + fabs(shell->log_f));
        slope += x < 700.0 ? x_slope * (1.0 + 1.0 / grown) : x_slope;
    }
    shell->error = error, shell->slope = slope;
    return shell->log_f < INFINITY && error < INFINITY ? 0 : 1;
}

/* log c(t) of Chernoff's bound */
FP_INLINE double fp_chernoff_constant(int quantity, double t)
{
    if (quantity != FP_CONTOUR_DELTA)
        return 0.0;
    return t * fp_log(t) - (1.0 + t) * fp_log1p(t) + 4.0 * FP_U * (1.0 + t) * (1.0 + fp_log1p(t) + fabs(fp_log(t)));
}

FP_INLINE double fp_log_payoff(int quantity, double t)
{
    return quantity == FP_CONTOUR_DELTA ? -fp_log(t) - fp_log1p(t) : -fp_log1p(t);
}

/* The t of the least of F(t) e^(-epsilon t) / (t (t + 1)), roughly */
static inline int fp_shell_saddle(fp_shell *shell, double epsilon, double *t_out)
{
    double low = 0.0, high = INFINITY, t = *t_out > 0.0 ? *t_out : 1.0, factor = 2.0;
    for (int i = 0; i < 60; i++) {
        const int status = fp_shell_build(shell, t, 0.0, FP_SHELL_SEARCH_AIM);
        if (status == -1)
            return -1;
        const double slope = status ? INFINITY
                                    : shell->slope - epsilon - 1.0 / t - 1.0 / (1.0 + t);
        if (slope > 0.0)
            high = t;
        else
            low = t;
        if (low > 0.0 && high < 1.15 * low)
            break;
        t = high == INFINITY ? t * factor : low == 0.0 ? t / factor : sqrt(low * high);
        factor *= high == INFINITY || low == 0.0 ? 1.5 : 1.0;
        if (!(t > 1e-12 && t < 1e12))
            break;
    }
    *t_out = low > 0.0 ? low : high;
    return 0;
}

/* log of the bound of the aliases of period P at t */
static inline double fp_shell_aliases(const fp_shell *shell, double t, double epsilon, double period)
{
    double above = INFINITY, below = INFINITY;
    for (int k = 0; k < FP_SHELL_TILTS; k++) {
        const double other = shell->chernoff_t[k], gap = fabs(other - t) * period * (1.0 - 1e-13);
        if (!(gap > 1e-3))
            continue;
        const double whole = shell->chernoff[k] - other * epsilon - gap - fp_log1p(-fp_exp(-gap));
        if (other > t)
            above = fp_min(above, whole);
        else
            below = fp_min(below, whole);
    }
    return fp_log_sum(above, below) + 1e-9;
}

/* Whether they are below the targets at all places. */
static inline int fp_shell_aliases_below(const fp_shell *shell, double t, const double *at, double period,
                                         const double *target)
{
    for (int e = 0; e < FP_SHELL_PLACES; e++)
        if (!(fp_shell_aliases(shell, t, at[e], period) < target[e]))
            return 0;
    return 1;
}

/* log of a bound of |F(t + i w')| for all w' from w on */
static inline double fp_shell_decay(const fp_shell *shell, double w, double enough)
{
    double product = 0.0, sum = -INFINITY;
    for (int pass = 0; pass < 2; pass++) {
        product = 0.0, sum = -INFINITY;
        for (int i = 0; i < shell->n; i++) {
            const fp_contour_factor *a = shell->inner[i], *h = shell->shell[i];
            const double rho = pass || !shell->hollow ? a->kind->decay(a, w) : 1.0;
            double size = a->kappa + fp_log(fp_max(rho, 1e-300));
            if (h) {
                const double part = h->kappa + fp_log(fp_max(h->kind->decay(h, w), 1e-300));
                size = fp_log_sum(size, part);
                sum = fp_log_sum(sum, fp_log(a->count) + part - size);
            }
            product += a->count * size;
        }
        if (!shell->hollow || product + sum < enough)
            break;
    }
    return (shell->hollow ? product + fp_min(sum, 0.7) : product) + shell->error + 1e-9;
}

/* Whether |F| hardly falls over many standard deviations of S at t; -1 without memory. No shell is hollow. */
static inline int fp_shell_is_slow(fp_shell *shell, double t)
{
    double variance = 0.0, log_size = 0.0;
    for (int i = 0; i < shell->n; i++) {
        fp_contour_factor *a = shell->inner[i];
        if (a->kind->build(a, t, 0.0, FP_SHELL_SEARCH_AIM))
            return 1;
        variance += a->count * a->variance;
    }
    const double w = FP_SHELL_FREQUENCY / sqrt(variance);
    for (int i = 0; i < shell->n && log_size > FP_SHELL_FALL; i++) {
        fp_contour_factor *a = shell->inner[i];
        double log_m, angle, wrong;
        const int status = a->kind->build(a, t, w, FP_SHELL_SEARCH_AIM);
        if (status)
            return status;
        a->kind->moments(a, 1.0, w, 1, &log_m, &angle, &wrong);
        shell->work += 20.0 * FP_SHELL_NODE_WORK + FP_SHELL_NODE_WORK * a->nodes.n;
        log_size += a->count * log_m;
    }
    return !(log_size < FP_SHELL_FALL);
}

/* The terms of one shell at its t, and what bounds it at an epsilon. */
typedef struct {
    int terms, tilts;
    double t, h, centre; /* epsilon at which the angles are given */
    double log_scale, moved, error, moment, tail, frequency;
    double *size, *angle; /* of the terms; angle lies behind size in one block */
    double tilt[FP_SHELL_TILTS], chernoff[FP_SHELL_TILTS], alias[FP_SHELL_TILTS]; /* without -tilt epsilon */
} fp_shell_table;

static inline int fp_shell_reserve(fp_shell_table *table, int capacity)
{
    double *block = malloc(sizeof(double) * 2 * (size_t)capacity);
    if (!block)
        return -1;
    if (table->terms) {
        memcpy(block, table->size, sizeof(double) * (size_t)table->terms);
        memcpy(block + capacity, table->angle, sizeof(double) * (size_t)table->terms);
    }
    free(table->size);
    table->size = block, table->angle = block + capacity;
    return 0;
}

/* delta of one shell at epsilon */
static inline fp_contour_answer fp_shell_read(const fp_shell_table *table, double epsilon)
{
    fp_contour_answer out = {-INFINITY, -INFINITY, INFINITY};
    double above = INFINITY, below = INFINITY;
    for (int k = 0; k < table->tilts; k++) {
        const double moved = table->tilt[k] * epsilon, alias = table->alias[k] - moved;
        out.upper = fp_min(out.upper, table->chernoff[k] - moved + 4.0 * FP_U * moved + 1e-12);
        if (table->tilt[k] > table->t)
            above = fp_min(above, alias);
        else
            below = fp_min(below, alias);
    }
    const double away = fabs(epsilon - table->centre);
    if (!table->terms || !(table->frequency * away < 0.5 * FP_LARGEST_ANGLE))
        return out;
    const double log_scale = table->log_scale - epsilon * table->t;
    const double moved = table->moved + 8.0 * FP_U * (fabs(epsilon * table->t) + fabs(log_scale));
    const double sum = fp_contour_selected.cosines(table->terms, table->size, table->angle,
                                                   table->h * (epsilon - table->centre));
    const double error = table->error + table->moment * away;
    const double alias = fp_exp(fp_min(fp_log_sum(above, below) + 1e-9 - log_scale, 690.0));
    const double lowest = sum - error - table->tail - alias, highest = sum + error + table->tail;
    if (!(error < INFINITY) || !(fabs(sum) < INFINITY)) /* Chernoff's bound holds */
        return out;
    out.value = sum > 0.0 ? log_scale + fp_log(sum) : -INFINITY;
    out.lower = lowest > 0.0 ? log_scale - moved + fp_log(lowest) - 1e-15 : -INFINITY;
    out.upper = highest > 0.0 ? fp_min(out.upper, log_scale + moved + fp_log(highest) + 1e-15) : out.upper;
    return out;
}

/* The table of one shell for epsilons between at[0] and at[2], with at[1] in the middle. `log_total` is log of what is
 * known of the whole at these, or -INFINITY. Returns 0, -1 without memory, 1 where a budget was spent; what the table
 * gives holds in either case. */
static inline int fp_shell_sum(fp_shell *shell, int quantity, const double at[FP_SHELL_PLACES],
                               const double log_total[FP_SHELL_PLACES], double *t_guess, double budget,
                               fp_shell_table *table, long *terms, long *nodes, fp_stop_token *stop)
{
    const double epsilon = at[1];
    if (fp_shell_saddle(shell, epsilon, t_guess))
        return -1;
    double best[FP_SHELL_PLACES], target[FP_SHELL_PLACES], value[FP_SHELL_TILTS];
    for (int e = 0; e < FP_SHELL_PLACES; e++)
        best[e] = INFINITY;
    for (int k = 0; k < FP_SHELL_TILTS; k++) {
        static const double steps[FP_SHELL_TILTS] = {
            1e-3, 0.05,  0.1,   0.17, 0.25,  0.35,  0.45, 0.57, 0.7, 0.82, 0.9, 0.95, 0.98, 1.0,
            1.003, 1.006, 1.01, 1.015, 1.025, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0,
        };
        const double t = *t_guess * steps[k];
        shell->chernoff_t[k] = t, shell->chernoff[k] = value[k] = INFINITY;
        const int status = fp_shell_build(shell, t, 0.0, FP_SHELL_SEARCH_AIM);
        if (status == -1)
            return -1;
        if (status)
            continue;
        shell->chernoff[k] = shell->log_f + shell->error + fp_chernoff_constant(quantity, t);
        value[k] = shell->log_f - epsilon * t + fp_log_payoff(quantity, t);
        table->tilt[table->tilts] = t, table->alias[table->tilts] = INFINITY;
        table->chernoff[table->tilts++] = shell->chernoff[k];
        for (int e = 0; e < FP_SHELL_PLACES; e++)
            best[e] = fp_min(best[e], value[k] + t * (epsilon - at[e]));
    }
    if (!(best[1] < INFINITY))
        return 1;
    int negligible = 1;
    for (int e = 0; e < FP_SHELL_PLACES; e++) {
        negligible &= fp_shell_read(table, at[e]).upper < log_total[e] - FP_SHELL_ALIAS_AIM;
        target[e] = fp_max(log_total[e], best[e] - 6.0) - FP_SHELL_ALIAS_AIM;
    }
    if (negligible)
        return 0;
    double t = 0.0, period = INFINITY;
    for (int k = 0; k < FP_SHELL_TILTS; k++) {
        int fits = 1;
        for (int e = 0; e < FP_SHELL_PLACES; e++)
            fits &= value[k] + shell->chernoff_t[k] * (epsilon - at[e]) < best[e] + 5.0;
        if (!fits)
            continue;
        double low = 0.0, high = 40.0 / shell->chernoff_t[k];
        for (int i = 0; i < 40 && !fp_shell_aliases_below(shell, shell->chernoff_t[k], at, high, target); i++)
            low = high, high *= 1.5;
        for (int i = 0; i < 6; i++) {
            const double middle = 0.5 * (low + high);
            if (fp_shell_aliases_below(shell, shell->chernoff_t[k], at, middle, target))
                high = middle;
            else
                low = middle;
        }
        if (high < period)
            period = high, t = shell->chernoff_t[k];
    }
    if (!(period < INFINITY))
        return 1;
    if (budget < FP_SHELL_WORK) { /* an attempt */
        const int slow = fp_shell_is_slow(shell, t);
        if (slow)
            return slow;
    }
    const double h = 2.0 * FP_PI / period;
    const double constant = fp_log_payoff(quantity, t) + fp_log(h / FP_PI);
    double design = 0.0, sum[FP_SHELL_PLACES] = {0.0}, error = 0.0, largest = 0.0, log_tail = INFINITY, sizes = 0.0;
    int n = 0, done = 0, spent = 0, check = 0, capacity = 128;
    if (fp_shell_reserve(table, capacity))
        return -1;
    table->moment = 0.0;
    double work = 0.0, before = 0.0;
    while (!done) {
        if ((n + FP_CONTOUR_AT_ONCE) * h > design) {
            design = n ? 2.0 * design : 128.0 * h;
            const int status = fp_shell_build(shell, t, design, FP_SHELL_AIM);
            if (status) { /* Chernoff's bound holds */
                table->terms = 0;
                return status;
            }
        }
        if (n + FP_CONTOUR_AT_ONCE > capacity) {
            capacity *= 2;
            if (fp_shell_reserve(table, capacity))
                return -1;
        }
        const int tiny = shell->hollow && shell->log_ratio < -40.0;
        const double raise = tiny ? -60.0 - shell->log_ratio : 0.0; /* r is multiplied by e^raise */
        double log_a[FP_CONTOUR_AT_ONCE], angle_a[FP_CONTOUR_AT_ONCE], wrong_a[FP_CONTOUR_AT_ONCE];
        double log_h[FP_CONTOUR_AT_ONCE], angle_h[FP_CONTOUR_AT_ONCE], wrong_h[FP_CONTOUR_AT_ONCE];
        double size[FP_CONTOUR_AT_ONCE], phase[FP_CONTOUR_AT_ONCE], relative[FP_CONTOUR_AT_ONCE];
        double x_re[FP_CONTOUR_AT_ONCE], x_im[FP_CONTOUR_AT_ONCE], x_wrong[FP_CONTOUR_AT_ONCE];
        double above[FP_CONTOUR_AT_ONCE], part[FP_CONTOUR_AT_ONCE];
        int vague[FP_CONTOUR_AT_ONCE] = {0}; /* where an inner moment is not known to a tenth */
        for (int j = 0; j < FP_CONTOUR_AT_ONCE; j++) {
            const double w = (n + j) * h;
            size[j] = x_re[j] = x_im[j] = x_wrong[j] = above[j] = 0.0, part[j] = -INFINITY;
            phase[j] = w * (shell->drift - epsilon);
            relative[j] = 4.0 * FP_U * w * (shell->n * shell->drift_size + fabs(shell->drift - epsilon) + epsilon);
        }
        for (int i = 0; i < shell->n; i++) {
            const fp_contour_factor *a = shell->inner[i], *hollow = shell->shell[i];
            const double count = a->count;
            a->kind->moments(a, n, h, FP_CONTOUR_AT_ONCE, log_a, angle_a, wrong_a);
            if (hollow)
                hollow->kind->moments(hollow, n, h, FP_CONTOUR_AT_ONCE, log_h, angle_h, wrong_h);
            work += (a->nodes.n + (hollow ? hollow->nodes.n : 0) + 32.0) * FP_CONTOUR_AT_ONCE;
            if (!n)
                *nodes += a->nodes.n + (hollow ? hollow->nodes.n : 0);
            for (int j = 0; j < FP_CONTOUR_AT_ONCE; j++) {
                const double w = (n + j) * h, length = fp_exp(log_a[j]), share = wrong_a[j] / length;
                size[j] += count * log_a[j], phase[j] += count * angle_a[j];
                vague[j] |= !(share < 0.1);
                relative[j] += (share < 0.1 ? -count * fp_log1p(-share) : 0.0)
                               + FP_U * count * (4.0 * fabs(log_a[j]) + 4.0 * fabs(angle_a[j]));
                double bound = a->kappa + fp_log(length + wrong_a[j] + 1e-300);
                if (hollow) {
                    const double apart = hollow->mean - a->mean, angle = angle_h[j] - angle_a[j] + w * apart;
                    const double level = hollow->kappa - a->kappa + raise - log_a[j];
                    const double scale = fp_exp(level), r = scale * fp_exp(log_h[j]);
                    const double re = r * cos(angle), im = r * sin(angle);
                    const double rounding = FP_U * (20.0 + 4.0 * fabs(level) + 4.0 * fabs(w * apart));
                    const double wrong = 1.15 * scale * wrong_h[j] + 1.15 * r * (share + rounding);
                    const double excess = 2.0 * re + (re * re + im * im), whole = 1.0 + excess;
                    const double log_whole = fabs(excess) < 0.5 ? fp_log1p(excess) : fp_log(fp_max(whole, 1e-300));
                    const double away = sqrt(fp_max(whole, 0.0));
                    vague[j] |= !(wrong < 0.1 * away);
                    x_re[j] += count * (tiny ? re : 0.5 * log_whole);
                    x_im[j] += count * (tiny ? im : atan2(im, 1.0 + re));
                    x_wrong[j] += count * (1.2 * wrong / away + 8.0 * FP_U * r)
                                  + (tiny ? shell->n * count * count * r * r * fp_exp(-raise) : 0.0);
                    const double log_part = hollow->kappa + fp_log(fp_exp(log_h[j]) + wrong_h[j] + 1e-300);
                    bound = fp_log_sum(bound, log_part);
                    part[j] = fp_log_sum(part[j], fp_log(count) + log_part - bound);
                }
                above[j] += count * bound;
            }
        }
        const double log_f = shell->log_f + raise;
        for (int j = 0; j < FP_CONTOUR_AT_ONCE; j++) {
            const double w = (n + j) * h, weight = n + j ? 1.0 : 0.5;
            double a = t + 1.0, b = w, best = t + 1.0;
            if (quantity == FP_CONTOUR_DELTA)
                a = t * (t + 1.0) - w * w, b = w * (2.0 * t + 1.0), best = t * (t + 1.0);
            const double payoff = best / sqrt(a * a + b * b);
            const double share = shell->hollow ? fp_min(part[j], 0.7) : 0.0, wrong = relative[j];
            const double most = fp_exp(above[j] + share - shell->log_f + shell->error + 1e-9);
            double length = fp_exp(size[j] + shell->log_inner - shell->log_f), turn = phase[j] - atan2(b, a);
            if (shell->hollow) { /* times expm1(x); where e^x is large, e^lift (e^(x - lift) - e^-lift) */
                const double lift = !tiny && x_re[j] > 40.0 ? x_re[j] : 0.0, half = sin(0.5 * x_im[j]);
                const double near = lift > 0.0 ? 1.0 - fp_exp(-lift) : fp_expm1(x_re[j]);
                const double grown = fp_exp(x_re[j] - lift);
                const double re = tiny ? x_re[j] : near - 2.0 * grown * half * half;
                const double im = tiny ? x_im[j] : grown * sin(x_im[j]);
                const double modulus = sqrt(re * re + im * im);
                const double moved = tiny ? x_wrong[j] : grown * fp_expm1(fp_min(x_wrong[j], 1.0)) * (1.0 + 1e-9);
                const double unit = fp_exp(size[j] + shell->log_inner + lift - log_f);
                length = unit * modulus, turn += atan2(im, re);
                error += weight * payoff * (vague[j] ? 0.0 : fp_min(unit * moved * (1.0 + wrong), most + length));
            }
            const double rounding = FP_U * (24.0 + fabs(size[j]) + fabs(log_f - shell->log_inner));
            const double first_order = wrong < 0.1 ? length * (1.06 * wrong + rounding) : INFINITY;
            largest = payoff * fp_min(length, most);
            error += quantity == FP_CONTOUR_TAIL ? 1.01 * FP_CONTOUR_SMOOTHING * fp_min(length, most) : 0.0;
            table->size[n + j] = table->angle[n + j] = 0.0;
            if (vague[j]) {
                error += weight * payoff * most;
                continue;
            }
            const double part_size = weight * payoff * length;
            table->size[n + j] = part_size, table->angle[n + j] = remainder(turn, 2.0 * FP_PI);
            for (int e = 0; e < FP_SHELL_PLACES; e++)
                sum[e] += part_size * cos(table->angle[n + j] - w * (at[e] - epsilon));
            error += weight * payoff * fp_min(first_order, most + length)
                + FP_U * (24.0 + 6.0 * fabs(turn)) * part_size;
            sizes += part_size, table->moment += 6.0 * FP_U * part_size * w;
        }
        table->terms = n += FP_CONTOUR_AT_ONCE;
        double known = INFINITY;
        for (int e = 0; e < FP_SHELL_PLACES; e++) {
            const double unit = shell->log_f - at[e] * t + constant;
            known = fp_min(known, fp_max(fabs(sum[e]), fp_exp(fp_min(log_total[e] - unit, 690.0))));
        }
        spent = work > budget || shell->work + work > FP_SHELLS_WORK;
        if (fp_stop_requested(stop, (ptrdiff_t)(work - before)))
            return stop->status;
        before = work;
        if ((n >= check && largest * n < 1e-14 * known) || spent) {
            check = n + n / 4; /* the bound beyond takes as long as many frequencies */
            const double w = (n - 1) * h, s = FP_CONTOUR_SMOOTHING / (t + 1.0);
            const double whole = quantity == FP_CONTOUR_DELTA
                                     ? t * (t + 1.0) / w
                                     : (t + 1.0) * (1.0 + fp_max(0.0, fp_log(2.1 / (s * w))) + 2.1 / (s * w));
            log_tail = fp_log(whole / h) - shell->log_f;
            const double enough = fp_log(1e-13 * known) - log_tail;
            log_tail += fp_shell_decay(shell, w, enough);
            done = log_tail < fp_log(1e-12 * known) || spent;
        }
    }
    *terms += n, shell->work += work;
    table->t = t, table->h = h, table->centre = epsilon, table->frequency = n * h;
    table->tail = fp_exp(fp_min(log_tail, 690.0)), table->error = error + FP_U * (n / 8 + 4.0) * sizes;
    table->log_scale = shell->log_f + constant;
    table->moved = shell->error + 8.0 * FP_U * (fabs(shell->log_f) + fabs(constant) + fabs(table->log_scale) + 8.0);
    for (int k = 0; k < table->tilts; k++) {
        const double gap = fabs(table->tilt[k] - t) * period * (1.0 - 1e-13);
        table->alias[k] = gap > 1e-3 ? table->chernoff[k] - gap - fp_log1p(-fp_exp(-gap)) : INFINITY;
    }
    return spent;
}

/* Whether a pair can be cut: Q one Gaussian, the means of P on one side of it, and more than one of them. */
static inline int fp_window_fits(const fp_contour_factor *factor)
{
    if (factor->kind != &fp_contour_one_sigma_kind)
        return 0;
    const fp_contour_one_sigma *pair = factor->pair;
    return pair->q_low == pair->q_high && (pair->p_low >= pair->q_low || pair->p_high <= pair->q_low)
           && pair->p_low < pair->p_high;
}

/* Cut `inner` at x, and make `shell` what is cut off. */
static inline void fp_window_split(fp_contour_window *inner, fp_contour_window *shell, double cut)
{
    const double width = fp_min(2.0 / fp_max(cut, 3.0), 0.125 / inner->pair->range);
    inner->cut[inner->cuts] = cut, inner->width[inner->cuts] = width, inner->bend += 1.0 / (width * width);
    memcpy(shell->cut, inner->cut, sizeof inner->cut), memcpy(shell->width, inner->width, sizeof inner->width);
    shell->cuts = inner->cuts, shell->above = 1, shell->bend = inner->bend;
    inner->cuts++, inner->quick = shell->quick = 0;
}

static inline double fp_window_loss(const fp_contour_window *part, double x)
{
    double sum = 0.0;
    for (int i = 0; i < part->means; i++)
        sum += part->weight[i] * fp_exp(part->mean[i] * (x - 0.5 * part->mean[i]));
    return fp_log(sum) - part->log_q;
}

/* x at which the loss is `loss`, within [-4, 64] */
static inline double fp_window_point(const fp_contour_window *part, double loss)
{
    double low = -4.0, high = 64.0;
    for (int i = 0; i < 40; i++) {
        const double middle = 0.5 * (low + high);
        if (fp_window_loss(part, middle) < loss)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* log(e^a + e^b); its rounding is at most FP_LOG_ADD of it */
#define FP_LOG_ADD(x) (4.0 * FP_U * (1.0 + fabs(x)))
FP_INLINE double fp_log_add(double a, double b)
{
    return a == -INFINITY ? b : b == -INFINITY ? a : fp_log_sum(a, b);
}

/* All shells for epsilons between the places. */
typedef struct {
    double at[FP_SHELL_PLACES];
    int quantity, parts, plain, spent; /* plain: of the last part nothing is cut off */
    double width; /* at the middle */
    unsigned long used;
    fp_shell_table part[FP_SHELLS + 2];
} fp_shells_table;

static inline void fp_shells_clear(fp_shells_table *table)
{
    for (int i = 0; i < FP_SHELLS + 2; i++)
        free(table->part[i].size);
    memset(table, 0, sizeof *table);
}

static inline void fp_shells_add(fp_contour_answer *sum, fp_contour_answer part)
{
    sum->value = fp_log_add(sum->value, part.value);
    sum->lower = fp_log_add(sum->lower, part.lower), sum->upper = fp_log_add(sum->upper, part.upper);
    sum->lower -= sum->lower > -INFINITY ? FP_LOG_ADD(sum->lower) : 0.0;
    sum->upper += fabs(sum->upper) < INFINITY ? FP_LOG_ADD(sum->upper) : 0.0;
}

/* delta(epsilon), or e^epsilon Q(S > epsilon) */
static inline fp_contour_answer fp_shells_read(const fp_shells_table *table, double epsilon)
{
    fp_contour_answer sum = {-INFINITY, -INFINITY, -INFINITY};
    for (int i = 0; i < table->parts; i++)
        fp_shells_add(&sum, fp_shell_read(table->part + i, epsilon));
    return table->plain ? sum : (fp_contour_answer){-INFINITY, -INFINITY, INFINITY};
}

/* Fill `table` for the epsilons about `at`. Returns 0; -1 without memory, or the reason to stop; 1 where a budget was
 * spent before the width was FP_SHELL_WIDTH: what the table gives holds nevertheless. */
static inline int fp_shells(int n, fp_contour_factor *factors, int quantity, const double at[FP_SHELL_PLACES],
                            fp_shells_table *table, long *terms, long *nodes, fp_stop_token *stop)
{
    const double epsilon = at[1];
    fp_shells_clear(table);
    memcpy(table->at, at, sizeof table->at), table->quantity = quantity;
    fp_contour_factor *own = calloc(2 * (size_t)n, sizeof *own), **list = calloc(2 * (size_t)n, sizeof *list);
    fp_contour_window *parts = calloc(2 * (size_t)n, sizeof *parts);
    double *cuts = malloc(sizeof(double) * (size_t)n);
    int status = own && list && parts && cuts ? 0 : -1, first = -1;
    double lowest = 0.0, next = 0.0;
    if (!status) {
        fp_shell shell = {.n = n, .inner = list, .shell = list + n};
        fp_contour_factor **hollow = list + n;
        double value[FP_SHELL_PLACES], t_inner = 1.0, t_shell = 0.0;
        fp_contour_answer known[FP_SHELL_PLACES];
        for (int e = 0; e < FP_SHELL_PLACES; e++)
            value[e] = -INFINITY, known[e] = (fp_contour_answer){-INFINITY, -INFINITY, -INFINITY};
        for (int i = 0; i < n; i++) {
            list[i] = factors + i;
            if (!fp_window_fits(factors + i))
                continue;
            first = i;
            for (int k = 0; k < 2; k++) {
                fp_contour_factor *copy = own + k * n + i;
                fp_contour_window *part = parts + k * n + i;
                part->pair = factors[i].pair;
                part->centre = part->pair->q_low, part->side = part->pair->p_low >= part->pair->q_low ? 1.0 : -1.0;
                const fp_one_sigma *g = &part->pair->g;
                for (int j = 0; j <= g->n; j++) {
                    if (fp_point_w(g, j) > 0.0) {
                        part->mean[part->means] = part->side * (fp_point_mean(g, j) - part->centre);
                        part->weight[part->means++] = fp_point_w(g, j);
                    }
                    if (fp_point_v(g, j) > 0.0)
                        part->log_q = fp_log(fp_point_v(g, j));
                }
                part->bend = 1.0;
                *copy = factors[i];
                memset(&copy->nodes, 0, sizeof copy->nodes);
                copy->kind = &fp_contour_window_kind, copy->pair = part;
            }
            list[i] = own + i;
        }
        status = 1;
        for (int level = 0; level <= FP_SHELLS && status == 1; level++) {
            const int last = level == FP_SHELLS || shell.work > FP_SHELLS_WORK || first < 0 || (level && next < 0.5);
            fp_shell_table *part = table->part + table->parts;
            shell.hollow = 0;
            const int plain = fp_shell_sum(&shell, quantity, at, value, &t_inner,
                                           last ? FP_SHELL_WORK : FP_SHELL_WORK / 32.0, part, terms, nodes, stop);
            if (plain < 0) {
                status = plain;
                break;
            }
            int enough = 1, narrow = 1;
            for (int e = 0; e < FP_SHELL_PLACES; e++) {
                const fp_contour_answer inner = fp_shell_read(part, at[e]);
                fp_contour_answer whole = known[e];
                fp_shells_add(&whole, inner);
                const double width = whole.upper - whole.lower;
                enough &= width < FP_SHELL_WIDTH || inner.upper < whole.lower - FP_SHELL_ALIAS_AIM;
                narrow &= width < 10.0 * FP_SHELL_WIDTH;
                table->width = e == 1 ? width : table->width;
            }
            if (enough || last) {
                table->parts++, table->plain = 1, status = !narrow;
                break;
            }
            free(part->size);
            memset(part, 0, sizeof *part);
            if (!level) {
                if (fp_shell_build(&shell, 1e-6, 0.0, FP_SHELL_SEARCH_AIM) < 0) {
                    status = -1;
                    break;
                }
                const double loss = fp_max(epsilon - shell.drift, 0.5 * epsilon);
                double nearest = INFINITY;
                for (int i = 0; i < n; i++)
                    if (list[i] == own + i) {
                        cuts[i] = fp_max(fp_window_point(parts + i, loss), 1.5);
                        if (cuts[i] < nearest)
                            nearest = cuts[i], first = i;
                    }
                lowest = nearest - fp_min(0.7, 3.0 / nearest);
                next = fp_max(lowest, fp_window_point(parts + first, 1.0));
            } else {
                const fp_contour_window *part_of = parts + first;
                const double loss = fp_window_loss(part_of, next), apart = fp_min(0.7, 1.75 / part_of->pair->range);
                const double quarter = next > lowest && loss > 0.0 ? fp_window_point(part_of, 0.25 * loss) : -INFINITY;
                const double half = loss > 0.0 ? fp_window_point(part_of, 0.5 * loss) : -INFINITY;
                next = next > lowest + apart ? fp_max(lowest, quarter) : fp_max(fp_min(half, next - apart), 0.4);
            }
            const double loss = fp_window_loss(parts + first, next);
            for (int i = 0; i < n; i++)
                if (list[i] == own + i) {
                    fp_window_split(parts + i, parts + n + i, i == first ? next : fp_window_point(parts + i, loss));
                    hollow[i] = own + n + i;
                }
            shell.hollow = 1;
            const int done = fp_shell_sum(&shell, quantity, at, value, &t_shell, FP_SHELL_WORK, part, terms, nodes,
                                          stop);
            if (done < 0) {
                status = done;
                break;
            }
            for (int i = 0; i < n; i++)
                hollow[i] = NULL;
            for (int e = 0; e < FP_SHELL_PLACES; e++) {
                fp_shells_add(known + e, fp_shell_read(part, at[e]));
                value[e] = known[e].value;
            }
            table->parts++;
        }
        table->spent = shell.work > FP_SHELLS_WORK;
    }
    for (int i = 0; i < 2 * n && own; i++)
        fp_contour_factor_free(own + i);
    for (int i = 0; i < 2 * n && parts; i++)
        free(parts[i].log_value), free(parts[i].quick_log_p);
    free(own), free(list), free(parts), free(cuts);
    return status;
}

/* Whether shells are to be tried before a table of one contour: where F hardly falls over many standard deviations at
 * the saddle point. It depends on the composition and on epsilon alone. -1 without memory. */
static inline int fp_shells_first(fp_composition *c, double epsilon)
{
    double place, curvature;
    const fp_contour_slot *slot;
    int fits = 0;
    for (int i = 0; i < c->n; i++)
        fits |= fp_window_fits(c->factors + i);
    if (!fits)
        return 0;
    if (fp_contour_saddle(c, epsilon, &place, &curvature) || fp_contour_find(c, (int)(place + 0.5), &slot))
        return -1;
    if (slot->known < 0)
        return 1;
    int *slow = &c->slots[(int)(place + 0.5)].slow; /* kept: 1 where it is not, 2 where it is */
    if (*slow)
        return *slow - 1;
    fp_contour_factor **list = malloc(sizeof *list * (size_t)c->n);
    if (!list)
        return -1;
    for (int i = 0; i < c->n; i++)
        list[i] = c->factors + i;
    fp_shell shell = {.n = c->n, .inner = list};
    const int found = fp_shell_is_slow(&shell, slot->t);
    free(list);
    *slow = found < 0 ? 0 : found + 1;
    return found;
}

/* Both bounds hold. */
FP_INLINE fp_contour_answer fp_contour_both(fp_contour_answer a, fp_contour_answer b)
{
    fp_contour_answer both = a.upper - a.lower <= b.upper - b.lower ? a : b;
    both.lower = fp_max(a.lower, b.lower), both.upper = fp_max(both.lower, fp_min(a.upper, b.upper));
    both.value = fp_max(both.lower, fp_min(both.value, both.upper));
    return both;
}

/* Bounds at one epsilon by shells. Those of neighbouring epsilons share a table, of a cell of a grid that the
 * composition and the binary exponent of epsilon give; where it is wide those of a finer cell, and at last of epsilon
 * alone. 0; -1
 * without memory, or the reason to stop. */
static inline int fp_shells_at(fp_composition *c, int quantity, double epsilon, fp_contour_answer *out,
                               fp_stop_token *stop)
{
    double range = 0.0;
    for (int i = 0; i < c->n; i++)
        if (fp_window_fits(c->factors + i))
            range = fp_max(range, ((const fp_contour_one_sigma *)c->factors[i].pair)->range);
    if (!c->shells) {
        c->shells = calloc(FP_SHELLS_TABLES + 1, sizeof(fp_shells_table));
        if (!c->shells)
            return -1;
    }
    fp_shells_table *tables = c->shells;
    *out = (fp_contour_answer){-INFINITY, -INFINITY, INFINITY};
    for (int level = 0; level < 3; level++) {
        const double most = fp_min(FP_SHELL_CELL * range, 0.5 * epsilon) * (level ? 0.125 : 1.0);
        double at[FP_SHELL_PLACES] = {epsilon, epsilon, epsilon};
        fp_shells_table *table = tables + FP_SHELLS_TABLES; /* of epsilon alone */
        int found = 0;
        if (level < 2) {
            const double step = most > 1e-200 ? exp2(floor(log2(most))) : 0.0;
            at[0] = step > 0.0 ? floor(epsilon / step) * step : epsilon;
            at[1] = at[0] + 0.5 * step, at[2] = at[0] + step;
            table = tables;
            for (int k = 0; k < FP_SHELLS_TABLES && !found; k++) {
                fp_shells_table *other = tables + k;
                found = other->used && other->quantity == quantity && other->at[0] == at[0] && other->at[2] == at[2];
                table = found || other->used < table->used ? other : table;
            }
        }
        if (!found) {
            const int status = fp_shells(c->n, c->factors, quantity, at, table, &c->terms, &c->nodes, stop);
            if (status < 0) {
                fp_shells_clear(table);
                return status;
            }
            c->made++;
        }
        table->used = ++c->clock;
        const fp_contour_answer answer = fp_shells_read(table, epsilon);
        if (answer.lower <= answer.upper)
            *out = fp_contour_both(answer, *out);
        const double width = out->upper - out->lower;
        if (width < fp_max(10.0 * FP_SHELL_WIDTH, fp_min(4.0 * table->width, 1e-6)) || table->spent)
            break;
    }
    return 0;
}

static inline void fp_composition_close(fp_composition *c)
{
    fp_shells_table *tables = c->shells;
    for (int k = 0; k <= FP_SHELLS_TABLES && tables; k++)
        fp_shells_clear(tables + k);
    free(tables);
    fp_composition_free(c);
}

/* Bounds at `count` epsilons >= 0, or any of the side -1, of which `done` were done; with a slack for all epsilons
 * within it, but none where shells would be tried. -1 without memory, or the reason to stop. */
static inline int fp_composition_bounds(fp_composition *c, int quantity, ptrdiff_t count, const double *epsilon,
                                        double slack, fp_contour_answer *out, fp_stop_token *stop, ptrdiff_t *done)
{
    for (*done = 0; *done < count; ++*done) {
        const double at = epsilon[*done];
        fp_contour_answer answer = {c->log_mass, -INFINITY, c->log_mass}, other;
        const int shells = c->side > 0 ? fp_shells_first(c, at) : 0;
        int status = shells < 0 ? -1 : 0;
        if (!status && shells && slack == 0.0) {
            status = fp_shells_at(c, quantity, at, &other, stop);
            if (!status)
                answer = fp_contour_both(other, answer);
        }
        if (!status && !(shells && slack > 0.0) && !(answer.upper - answer.lower < 10.0 * FP_SHELL_WIDTH)) {
            status = fp_contour_at(c, quantity, at, slack, &other, stop);
            if (!status)
                answer = fp_contour_both(other, answer);
        }
        out[*done] = answer;
        status = status ? status : fp_stop_requested(stop, 128);
        if (status)
            return status;
    }
    return 0;
}

#endif
