/* Parts of a pair cut by windows as factors of a sum along a contour.
 *
 * Notation and bounds of fp_contour_windows_solver.h. The trapezoidal sum of step h errs by at most
 * 2 N / (e^(2 pi y / h) - 1), N = N(w, 1), and |M(t + i w')| is at most N(w, -1) for all w' >= w, with
 *     N(w, s) = e^(y^2/2) times the integral of r f_t e^(s w phi) dx.
 * The latter also holds for f_t times a bump e^(-(x - x_0)^2 / 2 c^2), with (1 + 1/c^2) y^2 / 2 for y^2 / 2. Bumps at
 * distances of at most 0.75 c add up to a constant within 1e-15 of it: the integral is at most what they leave, and
 * for each bump the lesser of its share and of the best N(w, -1).
 */
/* bounds: proved - rounding of moments and of their bounds, docs/proofs/contour.md, theorem 2.18 */
#ifndef FP_CONTOUR_WINDOW_FACTOR_SOLVER_H
#define FP_CONTOUR_WINDOW_FACTOR_SOLVER_H

#include "composition/fp_contour_windows_solver.h"

#define FP_WINDOW_BUMP 0.5 /* standard deviation of a bump */
#define FP_WINDOW_NODES (1 << 16)

/* kappa, mean and variance by few nodes, for a search and for Chernoff's bounds: p has no zero where y times the range
 * of its means is below pi, and f_t grows by at most e^(bend y^2 / 2) */
static inline int fp_window_glance(fp_contour_factor *factor, double t, double aim)
{
    fp_contour_window *part = (fp_contour_window *)factor->pair;
    if (!part->quick || t > part->quick_t || (t < 0.125 * part->quick_t && !(part->quick_right < INFINITY))) {
        const double y = fp_min(sqrt(2.0 * aim / part->bend), 2.6 / part->pair->range);
        const double step = fp_upper(2.0 * FP_PI * y / (0.5 * part->bend * y * y + aim + 1.0));
        double farthest = 2.0 * t, left, right, unused;
        if (fp_window_range(part, farthest, 0.0, aim + 4.0, &unused, &right)) {
            farthest = t;
            if (fp_window_range(part, farthest, 0.0, aim + 4.0, &unused, &right))
                return 1;
        }
        if (fp_window_range(part, 0.0, 0.0, aim + 4.0, &left, &unused))
            return 1;
        right = fp_max(right, unused);
        const double start = part->centre + part->side * (part->side > 0.0 ? left : right);
        const double first = floor(start / step), count = ceil((right - left) / step) + 2.0;
        if (!(count < FP_WINDOW_NODES))
            return 1;
        const int n = fp_padded((int)count);
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
        double *x = nodes->rest, *window = nodes->g, *window_error = nodes->loss_error;
        fp_contour_one_sigma_nodes(part->pair, first, step, n, nodes, part->quick_log_p, part->quick_loss);
        for (int j = 0; j < n; j++)
            x[j] = part->side * ((first + j) * step - part->centre);
        part->quick_p_error = part->quick_loss_error = 0.0;
        for (int j = 0; j < n; j++)
            part->quick_loss_error = fp_max(part->quick_loss_error, nodes->loss_error[j]);
        fp_window_selected.logs(n, x, part->cuts + part->above, part->cuts, part->cut, part->width,
                                part->centre != 0.0, window, window_error);
        for (int j = 0; j < n; j++) {
            part->quick_log_p[j] += fp_log(step) - FP_LOG_SQRT_2PI + window[j];
            part->quick_p_error = fp_max(part->quick_p_error, nodes->log_p_error[j] + window_error[j]);
        }
        const int lowest = part->side > 0.0 ? 0 : n - 1, highest = n - 1 - lowest;
        part->quick = n, part->quick_t = farthest, part->quick_end = part->quick_loss[highest];
        part->quick_left = fp_window_falls(part, x[lowest]) ? part->quick_log_p[lowest] - fp_log(step) : INFINITY;
        part->quick_right = fp_window_beyond(part, farthest, fp_max(x[highest], 0.0), 0.0);
        part->quick_right = fp_log_add(part->quick_right, part->log_last);
    }
    const int n = part->quick;
    double out[4];
    fp_window_selected.tilted(n, part->quick_log_p, part->quick_loss, t, out);
    const double top = out[0], total = out[1], lowest = part->quick_loss[part->side > 0.0 ? 0 : n - 1];
    /* l increases: left of the nodes it is at most `lowest`, right of them at least quick_end */
    const double ends = fp_exp(part->quick_left + t * lowest - top + 1e-6)
                        + fp_exp(part->quick_right - (part->quick_t - t) * part->quick_end - top + 1e-6);
    factor->t = t, factor->kappa = top + fp_log(total), factor->mean = out[2] / total;
    factor->variance = fp_max(0.0, out[3] / total - factor->mean * factor->mean);
    const double farthest_loss = fp_max(fabs(lowest), fabs(part->quick_end));
    factor->kappa_error = (ends / total + 2.2 * fp_exp(-aim)) * 1.1
                          + 1.01 * (part->quick_p_error + t * part->quick_loss_error)
                          + FP_U * (n + 128.0 + 64.0 * fabs(top) + 16.0 * t * farthest_loss);
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
    for (int j = 0; j < part->points; j++)
        log_total = fp_max(log_total, part->log_value[j] + fp_log(part->size));
    for (int s = FP_WINDOW_SHIFTS - 1, worse = 0; s >= 0 && !worse; s--) {
        const double exponent = fp_max(fp_window_integral(part, s, w) - log_total, 0.0) + aim + 1.0;
        worse = 2.0 * FP_PI * part->shift[s] / exponent < 0.8 * step;
        step = fp_max(step, 2.0 * FP_PI * part->shift[s] / exponent);
    }
    step = fp_upper(fp_min(step, part->size));
    log_rule += log_total;
    int from = 0, to = part->points - 2;
    log_ends = fp_log_add(part->log_left, fp_log_add(part->log_tails, part->log_last));
    while (from < to && part->log_cell[from] < log_total - aim - 5.0)
        log_ends = fp_log_add(log_ends, part->log_cell[from]), from++;
    while (to > from && part->log_cell[to] < log_total - aim - 5.0)
        log_ends = fp_log_add(log_ends, part->log_cell[to]), to--;
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
    const int n = fp_padded((int)count);
    if (fp_contour_nodes_reserve(nodes, n))
        return -1;
    factor->first = first, factor->step = step;
    fp_contour_one_sigma_nodes(part->pair, first, step, n, nodes, nodes->log_p, nodes->loss);
    const double log_weight = fp_log(step) - FP_LOG_SQRT_2PI;
    double *x = nodes->rest, *window = nodes->spare, *window_error = nodes->g;
    if (windowed) {
        for (int j = 0; j < n; j++)
            x[j] = part->side * ((first + j) * step - part->centre);
        fp_window_selected.logs(n, x, part->cuts + part->above, part->cuts, part->cut, part->width,
                                part->centre != 0.0, window, window_error);
    }
    const double log_error = FP_U * (1.0 + 2.0 * fabs(fp_log(step)) + fabs(log_weight)); /* of log_weight */
    for (int j = 0; j < n; j++) {
        const double log_p = nodes->log_p[j] + log_weight;
        nodes->log_p[j] = log_p, nodes->log_p_error[j] += log_error + FP_U * fabs(log_p);
        if (windowed) {
            nodes->log_p[j] += window[j], nodes->log_p_error[j] += window_error[j] + FP_U * fabs(nodes->log_p[j]);
            nodes->rest[j] = part->above ? 1.0 : -fp_expm1(window[j]);
        }
        nodes->spare[j] = log_p;
    }
    const double least = fp_min(-left, right - part->pair->range);
    const double log_left_out = least > 1.0 ? -0.5 * least * least : 0.0;
    fp_contour_nodes_tilt(factor, t, part->pair->mass, 0.0, log_ends, log_left_out, windowed ? nodes->rest : NULL);
    /* the rule errs by e^-aim of what is integrated: of M(t), and of 1 where kappa is log1p */
    const double rule = 2.2 * fp_exp(log_rule - nodes->log_total);
    nodes->quadrature += rule;
    nodes->masses += 5.0 * fp_exp(-aim);
    factor->kappa_error += 1e-31 * (part->cuts + part->above); /* windows within 1e-19 of 1, to 4500 units of that */
    factor->kappa_error += 2.2 * rule + (part->above ? 0.0 : 5.0 * fp_exp(-aim) * (1.0 + nodes->second * t));
    return 0;
}

/* The shares of f_t in bumps, by the nodes of the last tilt. The rule errs by 4e-12 of M(t) for any sum of bumps, which
 * the decay allows for (docs/proofs/contour.md, theorem 2.18). */
static inline void fp_window_bumps(fp_contour_window *part, const fp_contour_factor *factor)
{
    const int stride = (int)(0.75 * FP_WINDOW_BUMP / part->size), least = part->points / (FP_WINDOW_BUMPS - 2) + 1;
    part->stride = stride > 1 ? stride : 1;
    const double spacing = part->stride * part->size;
    const double height = spacing / FP_WINDOW_BUMP / 2.5066282746310007 * (1.0 - 1e-12);
    part->bumps = part->stride >= least ? part->points / part->stride + 1 : -1;
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
    const int n = part->points, reach = (int)fp_min(ceil(8.0 * FP_WINDOW_BUMP / part->size), n);
    double whole_best = 1.0, best[FP_WINDOW_BUMPS], *cell = part->log_value; /* which no one needs any more */
    for (int i = 0; i < part->bumps; i++)
        best[i] = part->mass[i];
    double fall[2 * FP_WINDOW_CELLS]; /* of a bump, on `reach` cells on either side */
    for (int j = 0; j < reach; j++) {
        const double distance = j * (part->size / FP_WINDOW_BUMP);
        fall[reach + j] = fall[reach - 1 - j] = fp_exp(-0.5 * distance * distance);
    }
    const double log_right = fp_log_add(part->log_tails, part->log_last);
    for (int s = 0; s < FP_WINDOW_SHIFTS; s++) {
        const double y = part->shift[s], slower = w * (1.0 - 2e-12);
        const double cost = 0.5 * y * y / (FP_WINDOW_BUMP * FP_WINDOW_BUMP);
        const double whole = 0.5 * y * y + cost - factor->nodes.log_total + 1e-9;
        const double edge = 0.5 * (part->bend - 1.0) * y * y;
        const double all = fp_window_selected.path(n, part->log_cell, part->phi + s * part->capacity,
                                                   part->grown + s * part->capacity, slower, whole + fp_log(height),
                                                   cell);
        const double log_ends = fp_log_add(log_right + edge, part->log_left + fp_window_left_edge(part, s));
        const double lost = fp_exp(fp_min(log_ends + whole, 600.0)) + 1e-13 * all;
        whole_best = fp_min(whole_best, (all + lost) / height * fp_exp(-cost) * (1.0 + 1e-9));
        for (int i = 0; i < part->bumps; i++) {
            const int centre = i * part->stride, from = centre > reach ? centre - reach : 0;
            const int to = centre + reach < n ? centre + reach : n;
            if (from < to)
                best[i] = fp_min(best[i], lost + fp_window_selected.dot(to - from, cell + from,
                                                                        fall + from - (centre - reach)));
        }
    }
    double kept = 0.0;
    for (int i = 0; i < part->bumps; i++)
        kept += part->mass[i] - best[i];
    /* the error of masses, and of M(t) in what is less than them */
    const double masses = 3.0 * (factor->nodes.moved_weight + factor->nodes.quadrature);
    return fp_min(whole_best, fp_max(0.0, 1.0 - kept * (1.0 - 2e-12)) + 1e-11 + masses);
}

static const fp_contour_kind fp_contour_window_kind = {fp_window_build, fp_contour_nodes_moments, fp_window_decay};

#endif
