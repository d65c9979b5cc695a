/* The solver: one sphere if that suffices, else Newton steps from a given or a coarse input to spheres with a
 * certificate; included once per instruction set. */
/* bounds: proved - docs/proofs/awgn.md, theorem 6.8: rounding of sums of i(r), of the variance for one sphere, of g(R)
 * and of the cover */
#include "common/fp_lanes_loops.h"
#include "special/fp_sphere_loops.h"
#include "awgn/fp_awgn_quadrature_loops.h"
#include "awgn/fp_awgn_quadrature_bounds_loops.h"
#include "awgn/fp_awgn_maximum_solver.h"
#include "awgn/fp_awgn_weights_solver.h"
#include "awgn/fp_awgn_input_solver.h"

/* Make the grid of the whole problem and allocate its tables; returns 0 when that needs too much memory. */
static int FP_NAME(fp_awgn_grid)(fp_awgn *a, int rows)
{
    const double bottom = fp_awgn_output_centre(a, a->least_radius) - a->window,
                 end = fp_awgn_output_centre(a, a->radius) + a->window;
    const double wanted = fp_awgn_node_index(a, end) - fp_awgn_node_index(a, bottom) + 2.0;
    if (!(wanted <= FP_AWGN_NODES && fp_awgn_node_index(a, end) < 0x1p28))
        return 0;
    const int capacity_of_buffer = (int)wanted;
    const int padded = (capacity_of_buffer + 2 * FP_LANES - 1) / FP_LANES * FP_LANES;
    const int width = rows + 2 * FP_AWGN_SPHERES + 8, spheres = FP_AWGN_SPHERES;
    a->cells = (int)ceil((a->radius - a->scan_start) / FP_AWGN_CELL) + (a->scan_start > a->least_radius);
    a->cell_stride = ((int)((2.0 * a->window + 2.0) / a->step) + (a->even ? (int)(40.0 / a->d / a->step) : 0) + 16)
        / FP_LANES * FP_LANES;
    const size_t points = (size_t)a->cells * FP_AWGN_CHEBYSHEV;
    const size_t of_ball = a->edge > 0.0 ? padded + 2 * (FP_AWGN_PANELS + spheres) : 0;
    const size_t doubles = (size_t)padded * (11 + rows + 2 * spheres) + (size_t)width * (width + 8)
        + points * (a->cell_stride + 2) + of_ball;
    free(a->memory);
    a->memory = calloc(doubles * sizeof(double) + 3 * points * sizeof(int) + 64, 1);
    if (!a->memory)
        return 0;
    double *at = a->memory;
    double **const each[] = {&a->rho, &a->log_measure, &a->l, &a->top, &a->c, &a->line[0], &a->line[1], &a->line[2],
                             &a->line[3], &a->line[4], &a->line[5]};
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++, at += padded)
        *each[i] = at;
    a->table = at;
    a->first = (at += (size_t)padded * rows);
    a->second = (at += (size_t)padded * spheres);
    a->gram = (at += (size_t)padded * spheres);
    a->cell_r = (at += (size_t)width * (width + 8));
    a->cell_value = (at += points);
    a->cell_weight = (at += points);
    a->ball = at + points * a->cell_stride;
    a->panel_radius = a->ball + padded;
    a->panel_weight = a->panel_radius + FP_AWGN_PANELS + spheres;
    a->cell_first = (int *)(a->ball + of_ball);
    a->cell_count = a->cell_first + points;
    a->cell_mid = a->cell_count + points;
    a->rows = rows;
    a->padded = padded;
    a->nodes = FP_NAME(fp_awgn_nodes)(a, bottom, end, a->rho, a->log_measure, capacity_of_buffer);
    for (int k = a->nodes; k < padded; k++) {
        a->rho[k] = a->rho[a->nodes - 1];
        a->log_measure[k] = -1e300;
    }
    return !(a->edge > 0.0) || FP_NAME(fp_awgn_ball_row)(a);
}

/* i(r) of one sphere of radius R on a grid of its own; V at rho is R^2 (log G)''(R rho), which falls with rho. */
static double FP_NAME(fp_awgn_one_sphere_information)(fp_awgn *a, double r, double *slope, double *error)
{
    enum { BUFFER = 4096 };
    double rho[BUFFER], measure[BUFFER], x[BUFFER], weight[BUFFER], relative[BUFFER], tilt[BUFFER], l[BUFFER], size,
        spread = 0.0;
    const double centre = fp_awgn_output_centre(a, r), d = a->d;
    const double low = centre - a->window, until = fp_awgn_node_index(a, centre) - fp_awgn_node_index(a, low);
    const int n = FP_NAME(fp_awgn_nodes)(a, low, centre + a->window, rho, measure, BUFFER);
    const int mid = until < n - 1 ? (int)until : n - 1;
    FP_NAME(fp_awgn_row)(a, a->radius, rho, n, x, weight, relative, tilt);
    FP_NAME(fp_awgn_one_sphere_log_ratio)(a, rho, weight, relative, l, n);
    const double t = tilt[0], first = x[0];
    const double bend = first > 1e-6 ? 1.0 - t * (t + (d - 1.0) / first) : 1.0 / d;
    double variance = a->radius * a->radius * ((bend > 0.0 ? bend : 0.0) * (1.0 + 1e-6) + 4e-15) + 1e-12 * a->power;
    variance = (variance > a->power) | (rho[0] < 1.0) ? a->power : variance;
    if (r != a->radius)
        FP_NAME(fp_awgn_row)(a, r, rho, n, x, weight, relative, tilt);
    for (int k = 0; k < n; k++)
        weight[k] = fp_exp(weight[k] + measure[k]);
    const double mean = FP_NAME(fp_awgn_mean)(weight, l, n, mid, &size);
    double derivative = 0.0;
    for (int k = 0; k < n; k++) {
        derivative += weight[k] * (rho[k] * tilt[k] - r) * (l[k] - l[mid]);
        spread = fabs(l[k] - l[mid]) > spread ? fabs(l[k] - l[mid]) : spread;
    }
    *slope = r * a->shrink - derivative;
    const double value = fp_awgn_gaussian_term(a, r) - mean;
    *error = n < BUFFER ? FP_NAME(fp_awgn_error)(a, r, value, variance, spread, size, rho[n - 1])
                        : INFINITY; /* the grid was truncated */
    return value;
}

/* Set r_low and the weight e of the Gaussian that covers smaller radii, for a capacity of at least `scan_bound`. */
static void FP_NAME(fp_awgn_set_least_radius)(fp_awgn *a, double scan_bound)
{
    a->scan_bound = scan_bound;
    a->cover = 0.1 * a->rtol * scan_bound;
    a->cover = a->cover < 0.1 ? a->cover : 0.1;
    const double capacity_of_buffer = (scan_bound - log(1.0 / a->cover)) * 2.0 / a->d;
    a->scan_start = capacity_of_buffer > 0.0 ? sqrt(a->d * fp_expm1(capacity_of_buffer)) * (1.0 - 1e-12) : 0.0;
    a->scan_start = a->scan_start < a->radius ? a->scan_start : a->radius;
    a->least_radius = a->scan_start > FP_AWGN_MARGIN ? a->scan_start - FP_AWGN_MARGIN : 0.0;
    if (a->scan_start == 0.0)
        a->cover = 0.0;
}

/* One sphere and its certificate; returns 1 if the bracket is narrow enough. */
static int FP_NAME(fp_awgn_try_one_sphere)(fp_awgn *a, fp_awgn_result *out)
{
    double slope, error, low_error, unused;
    const double window = fp_awgn_output_centre(a, a->radius) - a->window,
                 x = a->radius * (window > 1.0 ? window : 0.0);
    double log_g, scaled, t, variance = a->power;
    if (x > 1e-6) {
        fp_sphere_log(&a->law, x, &log_g, &scaled, &t);
        const double bend = 1.0 - t * (t + (a->d - 1.0) / x);
        variance = a->radius * a->radius * (bend > 0.0 ? bend : 0.0) + 1e-9 * a->power;
        variance = variance < a->power ? variance : a->power;
    }
    FP_NAME(fp_awgn_choose_step)(a, variance);
    const double value = FP_NAME(fp_awgn_one_sphere_information)(a, a->radius, &slope, &error);
    out->value = value;
    out->lower = value - error > 0.0 ? value - error : 0.0;
    out->slope = slope;
    out->count = 1;
    out->radius[0] = a->radius;
    out->weight[0] = 1.0;
    FP_NAME(fp_awgn_set_least_radius)(a, out->lower);
    FP_NAME(fp_awgn_choose_step)(a, a->scan_start > 0.0 ? variance : a->power);
    const double least_radius =
                     FP_NAME(fp_awgn_one_sphere_information)(a, a->scan_start, &unused, &low_error) + low_error,
                 high = value + error;
    out->upper = (least_radius > high ? least_radius : high) - fp_log1p(-a->cover);
    out->upper = out->upper < a->full ? out->upper : a->full * (1.0 + 1e-15);
    out->status = FP_AWGN_DONE;
    return out->upper - out->lower <= a->rtol * out->lower;
}

/* Move the weights p on radii r to the nearest local maxima of i; what lies below the searched range stays. */
static void FP_NAME(fp_awgn_move_to_maxima)(const fp_awgn *a, const FP_NAME(fp_awgn_maxima) *found, const double *r,
                                    const double *p, int m, FP_NAME(fp_awgn_input) *in)
{
    int count = found->count;
    for (int k = 0; k < count; k++) {
        in->radius[k] = found->maximum[k];
        in->weight[k] = 0.0;
    }
    for (int j = 0; j < m; j++) {
        int best = 0;
        for (int k = 1; k < found->count; k++)
            if (fabs(found->maximum[k] - r[j]) < fabs(found->maximum[best] - r[j]))
                best = k;
        if (r[j] < a->scan_start - FP_AWGN_MERGE_DISTANCE && count < FP_AWGN_SPHERES) {
            in->radius[count] = r[j];
            in->weight[count++] = p[j];
        } else {
            in->weight[best] += p[j];
        }
    }
    in->count = count;
    FP_NAME(fp_awgn_merge_spheres)(in, a->radius, FP_AWGN_MERGE_DISTANCE);
}

/* An initial input: the best weights on evenly spaced radii, moved to the local maxima of i. */
static int FP_NAME(fp_awgn_initial_input)(fp_awgn *a, FP_NAME(fp_awgn_input) *in)
{
    const int m = a->rows;
    const double from = fp_awgn_lowest(a);
    double *r = malloc(3 * m * sizeof *r), *p = r + m, *gauss = p + m;
    FP_NAME(fp_awgn_maxima) *found = malloc(sizeof *found);
    if (!r || !found) {
        free(r);
        free(found);
        return 0;
    }
    for (int j = 0; j < m; j++)
        r[j] = j ? a->radius - (a->radius - from) * (m - 1 - j) / (m - 1) : a->least_radius;
    FP_NAME(fp_awgn_gaussian_terms)(a, r, m, gauss);
    FP_NAME(fp_awgn_tabulate)(a, r, m, 0);
    const double information = FP_NAME(fp_awgn_weights)(a, gauss, m, p, 0.1 * a->rtol * a->full);
    FP_NAME(fp_awgn_maximise)(a, 2.5, 1.0, found);
    in->count = 0;
    if (isfinite(information))
        FP_NAME(fp_awgn_move_to_maxima)(a, found, r, p, m, in);
    free(r);
    free(found);
    return 1;
}

/* Add the local maxima that exceed `level`; returns 1 if the input changed. */
static int FP_NAME(fp_awgn_insert_maxima)(const fp_awgn *a, FP_NAME(fp_awgn_input) * in,
                                          const FP_NAME(fp_awgn_maxima) * found, double level)
{
    int changed = 0;
    const int had = in->count;
    for (int k = 0; k < found->count; k++) {
        if (found->value[k] <= level)
            continue;
        int near = 0;
        for (int j = 1; j < had; j++)
            if (fabs(in->radius[j] - found->maximum[k]) < fabs(in->radius[near] - found->maximum[k]))
                near = j;
        if (fabs(in->radius[near] - found->maximum[k]) < FP_AWGN_MERGE_DISTANCE) {
            in->radius[near] = found->maximum[k];
            changed = 1;
        } else if (in->count < FP_AWGN_SPHERES) {
            in->radius[in->count] = found->maximum[k];
            in->weight[in->count++] = 1e-3 * in->weight[near] + 1e-14;
            changed = 1;
        }
    }
    FP_NAME(fp_awgn_merge_spheres)(in, a->radius, 0.0);
    return changed;
}

/* The bracket that an input gives: sums of i below, the maximum above. Returns the bound of V that it uses. */
static double FP_NAME(fp_awgn_certify)(fp_awgn *a, const FP_NAME(fp_awgn_input) *in, fp_awgn_result *out,
                                       FP_NAME(fp_awgn_maxima) *found)
{
    double gauss[FP_AWGN_SPHERES], value[FP_AWGN_SPHERES], slope = 0.0, sum = 0.0, error = 0.0;
    const int m = in->count, n = a->padded;
    const int is_ball = a->edge > 0.0;
    double below = 0.0; /* bound of V for spheres below r_low */
    if (is_ball)
        FP_NAME(fp_awgn_ball_spheres)(a, in->radius, in->weight, m);
    FP_NAME(fp_awgn_tabulate)(a, in->radius, m, 1);
    FP_NAME(fp_awgn_mixture)(a, in->weight, m);
    FP_NAME(fp_awgn_gaussian_terms)(a, in->radius, m, gauss);
    FP_NAME(fp_awgn_values)(a, gauss, m, value);
    slope = in->radius[m - 1] * a->shrink - FP_NAME(fp_awgn_dot)(a->first + (size_t)(m - 1) * n, a->line[4], n);
    const double variance = FP_NAME(fp_awgn_variance)(
        a, is_ball ? a->panel_radius : in->radius, is_ball ? a->panel_weight : in->weight,
        is_ball ? a->panels + m - 1 : m, fp_awgn_output_centre(a, a->scan_start) - a->window, a->rho[a->nodes - 1]);
    if (in->radius[0] < a->scan_start && !is_ball)
        below = FP_NAME(fp_awgn_variance)(a, in->radius, in->weight, m, a->rho[0],
                                          fp_awgn_output_centre(a, a->scan_start) - a->window);
    below = below > variance ? below : variance;
    for (int j = 0; j < m; j++) {
        double spread = 0.0, size = 0.0, rest = 0.0;
        const int uniform = is_ball && j == 0;
        /* E l, to be corrected by E (l - E l); in a large ball l itself, which is 0 in the middle */
        const double centre = is_ball ? 0.0 : gauss[j] - value[j];
        const double middle = fp_awgn_output_centre(a, uniform ? a->edge : in->radius[j]);
        const double *row = a->table + (size_t)j * n;
        for (int k = 0; k < a->nodes; k++) {
            const double signed_away = a->l[k] - centre, away = fabs(signed_away);
            rest += row[k] * a->c[k] * signed_away;
            size += row[k] * a->c[k] * away;
            if (fabs(a->rho[k] - middle) <= a->window + a->step || (uniform && a->rho[k] < middle))
                spread = away > spread ? away : spread;
        }
        value[j] = gauss[j] + a->level - centre - rest; /* this removes the error of the sum of w */
        sum += in->weight[j] * value[j];
        const double slip = FP_NAME(fp_awgn_error)(a, in->radius[j], value[j],
                                                   in->radius[j] < a->scan_start ? below : variance, spread, size,
                                                   a->rho[a->nodes - 1]) + a->nodes * FP_U * size;
        error += in->weight[j] * (uniform ? 1.0 - a->deep : 1.0) * (slip < value[j] ? slip : value[j]); /* i >= 0 */
    }
    /* rounding of large balls, and sums of weights that miss 1 */
    const double slack = (is_ball ? FP_AWGN_CLOSED_ERROR * (sum + a->d) : 0.0) + (2 * m + 4) * FP_U * (1.0 + sum);
    FP_NAME(fp_awgn_maximise)(a, variance, 0.02 * a->rtol * sum, found);
    double upper = found->bound - fp_log1p(-a->cover) + 4e-16 * fabs(found->bound);
    const double scan_bound = is_ball ? a->full + a->level : a->scan_bound + 1e-13 * (1.0 + a->scan_bound);
    upper = (upper < scan_bound ? scan_bound : upper) + slack; /* below r_low */
    const double lower = sum - error - slack;
    if (!a->floored && upper - lower < out->upper - out->lower) {
        out->value = sum;
        out->lower = lower;
        out->upper = is_ball || upper < a->full ? upper : a->full * (1.0 + 1e-15);
        out->slope = in->weight[m - 1] * slope;
        out->count = m;
        memcpy(out->radius, in->radius, m * sizeof *out->radius);
        memcpy(out->weight, in->weight, m * sizeof *out->weight);
        out->method = is_ball ? FP_AWGN_BY_BALL : m > 1 ? FP_AWGN_BY_SPHERES : FP_AWGN_BY_ONE_SPHERE;
        if (is_ball)
            out->radius[0] = a->edge;
    }
    return variance;
}

/* Repeatedly add the local maxima as radii and find the best weights, while that narrows the gap; returns the gap.
 * It converges where Newton's method does not, but leaves spheres in close pairs. */
static double FP_NAME(fp_awgn_refine)(fp_awgn *a, FP_NAME(fp_awgn_input) * in, FP_NAME(fp_awgn_maxima) * found,
                                      double gap, double target_gap)
{
    for (int round = 0; round < 8 && gap > target_gap && a->work < FP_AWGN_WORK_LIMIT; round++) {
        int count = in->count;
        for (int k = 0; k < found->count && count < FP_AWGN_SPHERES; k++) {
            int known = 0;
            for (int j = 0; j < in->count; j++)
                known |= fabs(in->radius[j] - found->maximum[k]) < 1e-5;
            if (!known) {
                in->radius[count] = found->maximum[k];
                in->weight[count++] = 1e-9;
            }
        }
        in->count = count;
        FP_NAME(fp_awgn_merge_spheres)(in, a->radius, 0.0);
        FP_NAME(fp_awgn_tabulate)(a, in->radius, in->count, 0);
        double gauss[FP_AWGN_SPHERES], value[FP_AWGN_SPHERES], information = 0.0;
        FP_NAME(fp_awgn_gaussian_terms)(a, in->radius, in->count, gauss);
        FP_NAME(fp_awgn_weights)(a, gauss, in->count, in->weight, 0.1 * target_gap * a->full);
        FP_NAME(fp_awgn_merge_spheres)(in, a->radius, 0.0);
        FP_NAME(fp_awgn_tabulate)(a, in->radius, in->count, 0);
        FP_NAME(fp_awgn_mixture)(a, in->weight, in->count);
        FP_NAME(fp_awgn_gaussian_terms)(a, in->radius, in->count, gauss);
        FP_NAME(fp_awgn_values)(a, gauss, in->count, value);
        for (int j = 0; j < in->count; j++)
            information += in->weight[j] * value[j];
        FP_NAME(fp_awgn_maximise)(a, 2.5, 0.02 * a->rtol * information, found);
        const double now = (found->peak - information) / information;
        if (!(now < 0.5 * gap)) {
            gap = now;
            break;
        }
        gap = now;
    }
    return gap;
}

/* Merge the close pairs of a refined input; keep the result if it is as good, else restore the input. Returns the
 * gap. */
static double FP_NAME(fp_awgn_merge_pairs)(fp_awgn *a, FP_NAME(fp_awgn_input) *in, FP_NAME(fp_awgn_input) *spare,
                                    FP_NAME(fp_awgn_maxima) *found, double gap, double target_gap)
{
    *spare = *in;
    FP_NAME(fp_awgn_move_to_maxima)(a, found, spare->radius, spare->weight, spare->count, in);
    const double information = FP_NAME(fp_awgn_newton)(a, in, 0.05 * a->rtol * a->full, 40);
    FP_NAME(fp_awgn_maximise)(a, 2.5, 0.02 * a->rtol * information, found);
    const double now = (found->peak - information) / information;
    if (now <= target_gap)
        return now;
    *in = *spare;
    return gap;
}

static void FP_NAME(fp_awgn_solve_spheres)(fp_awgn *a, const fp_awgn_result *start, fp_awgn_result *out)
{
    FP_NAME(fp_awgn_input) *in = malloc(3 * sizeof *in), *spare = in + 1, *best = in + 2;
    FP_NAME(fp_awgn_maxima) *found = malloc(sizeof *found);
    const int rows = (int)ceil((a->radius - fp_awgn_lowest(a)) / FP_AWGN_SPACING) + 2;
    out->status = FP_AWGN_MEMORY;
    FP_NAME(fp_awgn_choose_step)(a, 2.6);
    if (!in || !found || !FP_NAME(fp_awgn_grid)(a, rows > FP_AWGN_SPHERES ? rows : FP_AWGN_SPHERES))
        goto done;
    a->rows = rows;
    FP_NAME(fp_awgn_maximise_prepare)(a);
    in->count = 0;
    if (start && start->count > 1) {
        const double shift = a->radius - start->radius[start->count - 1];
        in->count = start->count;
        for (int j = 0; j < start->count; j++) {
            const double r = start->radius[j] == 0.0 || (j == 0 && a->edge > 0.0) ? 0.0 : start->radius[j] + shift;
            in->radius[j] = j == start->count - 1 ? a->radius : r > a->least_radius ? r : a->least_radius;
            in->weight[j] = start->weight[j] * (j && a->edge > 0.0 ? 1.0 - shift / a->radius : 1.0);
        }
        FP_NAME(fp_awgn_merge_spheres)(in, a->radius, FP_AWGN_MERGE_DISTANCE);
    } else if (!FP_NAME(fp_awgn_initial_input)(a, in)) {
        goto done;
    }
    out->status = FP_AWGN_TOO_WIDE;
    if (!in->count)
        goto done;
    const double target_gap = 0.5 * a->rtol;
    int warm = start && start->count > 1;
    double scan_bound = INFINITY, narrowest = INFINITY;
    for (int round = 0, refined = 0; round < 10 && a->work < FP_AWGN_WORK_LIMIT; round++) {
        const double information = FP_NAME(fp_awgn_newton)(a, in, 0.05 * a->rtol * out->lower, 40);
        FP_NAME(fp_awgn_maximise)(a, 2.5, 0.02 * a->rtol * information, found);
        const double gap = (found->peak - information) / information;
        const int stuck = a->edge > 0.0 && !(gap < 0.9 * narrowest);
        if (gap < narrowest) {
            narrowest = gap;
            *best = *in;
        }
        if (warm && gap > 1e-7) { /* the given start was too far away */
            warm = 0;
            if (!FP_NAME(fp_awgn_initial_input)(a, in))
                goto done;
            continue;
        }
        if (stuck)
            break;
        double polished = gap;
        if (!(a->edge > 0.0) && gap > target_gap && gap > 0.1 * scan_bound) {
            polished = FP_NAME(fp_awgn_refine)(a, in, found, gap, target_gap);
            if (polished <= target_gap)
                polished = FP_NAME(fp_awgn_merge_pairs)(a, in, spare, found, polished, target_gap);
        }
        if (polished < narrowest) {
            narrowest = polished;
            *best = *in;
        }
        if (polished <= target_gap) {
            const double variance = FP_NAME(fp_awgn_certify)(a, in, out, found), had = a->step;
            if (out->upper - out->lower <= a->rtol * out->lower) {
                out->status = FP_AWGN_DONE;
                goto done;
            }
            if (refined++ == 3)
                goto done;
            FP_NAME(fp_awgn_choose_step)(a, variance); /* the variance was larger than the step was chosen for */
            a->step = a->step < had / 1.4 ? a->step : (float)(had / 1.4);
            if (!FP_NAME(fp_awgn_grid)(a, a->rows))
                goto done;
            FP_NAME(fp_awgn_maximise_prepare)(a);
            scan_bound = narrowest = INFINITY;
        } else if (polished < gap) {
            *spare = *in;
            FP_NAME(fp_awgn_move_to_maxima)(a, found, spare->radius, spare->weight, spare->count, in);
        } else {
            FP_NAME(fp_awgn_insert_maxima)(a, in, found, information * (1.0 + 0.3 * a->rtol));
        }
        scan_bound = gap < scan_bound ? gap : scan_bound;
    }
    if (narrowest < INFINITY)
        FP_NAME(fp_awgn_certify)(a, best, out, found);
done:
    free(in);
    free(found);
    free(a->memory);
    a->memory = NULL;
}

/* The best of what balls with layers of some widths give: where Newton's method stalls is a matter of chance. */
static void FP_NAME(fp_awgn_solve_ball)(fp_awgn *a, const fp_awgn_result *start, fp_awgn_result *out)
{
    const double layer[] = {21.0, 18.0, 24.0};
    if (start && !(start->method & FP_AWGN_BY_BALL))
        start = NULL;
    for (int k = 0; k < 3 && out->upper - out->lower > FP_AWGN_BALL_RTOL * out->lower && out->status != FP_AWGN_DONE;
         k++) {
        FP_NAME(fp_awgn_use_ball)(a, layer[k]);
        FP_NAME(fp_awgn_solve_spheres)(a, start, out);
        if (out->upper - out->lower <= a->rtol * out->lower)
            out->status = FP_AWGN_DONE;
    }
}

/* One attempt at C(d, R) to relative width rtol, with e chosen for `cover_rtol`; the work done so far is carried on. */
static int FP_NAME(fp_awgn_attempt)(double dimension, double radius, double rtol, double cover_rtol,
                                    const fp_awgn_result *start, fp_awgn_result *out, double *work)
{
    fp_awgn a;
    FP_NAME(fp_awgn_init)(&a, dimension, radius, rtol);
    a.work = *work;
    out->method = FP_AWGN_BY_ONE_SPHERE;
    if (!FP_NAME(fp_awgn_try_one_sphere)(&a, out)) {
        out->status = FP_AWGN_TOO_WIDE;
        a.rtol = cover_rtol;
        FP_NAME(fp_awgn_set_least_radius)(&a, out->lower);
        a.rtol = rtol;
        const double low = radius - FP_AWGN_BALL_DEPTH - 4.0 * fp_awgn_ball_window(&a);
        if (radius - a.least_radius > FP_AWGN_RANGE && low > a.d && low * low > 10.0 * a.d)
            FP_NAME(fp_awgn_solve_ball)(&a, start, out);
        else
            FP_NAME(fp_awgn_solve_spheres)(&a, start && start->method & FP_AWGN_BY_BALL ? NULL : start, out);
    }
    out->evaluations = a.evaluations;
    *work = a.work;
    return out->status;
}

/* C for dimension d and peak amplitude R to relative width rtol, from `start` (which may be NULL). Where that
 * fails, which is rare: try a smaller e, whose r_low lies further in, then start from a solution nearby. */
static int FP_NAME(fp_awgn_solve)(double dimension, double radius, double rtol, const fp_awgn_result *start,
                                  fp_awgn_result *out)
{
    double work = 0.0;
    fp_awgn_result *other = NULL;
    FP_NAME(fp_awgn_attempt)(dimension, radius, rtol, rtol, start, out, &work);
    if (out->method == FP_AWGN_BY_BALL)
        return out->status;
    for (int again = 0; out->status == FP_AWGN_TOO_WIDE && again < 6 && work < FP_AWGN_WORK_LIMIT; again++) {
        const double cover_rtol = again % 3 ? rtol : 0.1 * rtol, away = again < 3 ? 0.005 : 0.02;
        if (!other && !(other = malloc(2 * sizeof *other)))
            break;
        const fp_awgn_result *from = NULL;
        if (again % 3) {
            from = other + 1;
            if (FP_NAME(fp_awgn_attempt)(dimension, radius * (again % 3 == 1 ? 1.0 - away : 1.0 + away), rtol, rtol,
                                         NULL, other + 1, &work)
                != FP_AWGN_DONE)
                continue;
        } else if (again) {
            continue;
        }
        FP_NAME(fp_awgn_attempt)(dimension, radius, rtol, cover_rtol, from, other, &work);
        if (other->upper - other->lower < out->upper - out->lower)
            *out = *other;
    }
    free(other);
    return out->status;
}

#include "awgn/fp_awgn_capacity_solver.h"
