/* Parts of delta(epsilon) of a composition in which one rare large loss competes with many small ones.
 *
 * Notation of fp_contour_solver.h. One tilt serves all ways to exceed epsilon only where the tilted law of S has one
 * hump. Where large losses are rare, a sum along one contour cancels, or does not decay: it is split by the largest
 * loss. Row that needs it: 10 x sigma 2, q 0.01 at epsilon = 0.5 of benches/bench_accountants.py, whose bracket is
 * 2e-11 of delta with shells and 1e-4 without them, where the inverse takes 20 s in place of 0.02 s.
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
 */
/* bounds: proved - rounding of sums along several contours, docs/proofs/contour.md, theorem 2.17 */
#ifndef FP_CONTOUR_SHELLS_SOLVER_H
#define FP_CONTOUR_SHELLS_SOLVER_H

#include "composition/fp_contour_window_factor_solver.h"

#define FP_SHELL_WORK 4e7 /* nodes times frequencies of a contour, roughly nanoseconds */
#define FP_SHELLS_WORK 2e8 /* of all shells */
#define FP_SHELL_NODE_WORK 100.0 /* of making a node, or a twentieth of a glance at it */
#define FP_SHELL_PLACES 3 /* the ends and the middle of the epsilons of a table */
#define FP_SHELL_TILTS 28 /* of Chernoff's bounds */
/* bound: none - where log |F| at this many standard deviations is above the fall shells are tried first */
#define FP_SHELL_FREQUENCY 32.0
#define FP_SHELL_FALL -4.0
/* bound: none - t times the square of the range of means from which a pair that is not cut is not tried: it is slow */
#define FP_SHELL_UNCUT 8.0
/* bound: proved - exponent of the errors of quadrature, but for the count of a pair; they enter the bounds */
#define FP_SHELL_AIM 36.0
/* bound: none - exponents of the errors aimed at by the search of t, and by aliases relative to the total */
#define FP_SHELL_SEARCH_AIM 20.0
#define FP_SHELL_ALIAS_AIM 30.0

/* One shell: of each pair A_i, `inner`, and H, `shell`; NULL where the pair is not cut. Without any H the whole of
 * `inner`. */
typedef struct {
    int n;
    fp_contour_factor **inner, **shell; /* shell: NULL where there is none */
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
        fp_contour_factor *a = shell->inner[i], *h = shell->shell ? shell->shell[i] : NULL;
        const double more = fp_contour_more(a, t + w);
        int status = a->kind->build(a, t, w, aim + (w > 0.0 ? fp_max(fp_log(fp_max(a->count, 1.0)), more) : more));
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
    if (shell->shell) { /* X = sum count log1p(r), r = H / A, in units of e^top where e^top is tiny */
        const int tiny = top < -40.0;
        const double raise = tiny ? -60.0 - top : 0.0;
        double x = 0.0, x_error = 0.0, x_slope = 0.0;
        for (int i = 0; i < shell->n; i++) {
            const fp_contour_factor *a = shell->inner[i], *h = shell->shell ? shell->shell[i] : NULL;
            if (!h)
                continue;
            const double r = fp_exp(h->kappa - a->kappa + raise), vague = h->kappa_error + a->kappa_error;
            const double rounding = FP_U * (10.0 * (fabs(h->kappa) + fabs(a->kappa) + fabs(raise) + 2.0) + shell->n);
            x += a->count * fp_log1p(r), x_slope += a->count * r / (1.0 + r) * (h->mean - a->mean);
            x_error += a->count * r / (1.0 + r) * (vague < 0.05 ? vague + rounding : INFINITY) * 1.1;
            x_error += tiny ? 2.0 * shell->n * a->count * a->count * fp_exp(fp_max(top, -60.0)) * r : 0.0; /* squares */
        }
        const double grown = fp_expm1(x);
        shell->log_f += (x < 700.0 ? fp_log(grown) : x) - raise;
        error += 1.01 * x_error * (x < 700.0 ? 1.0 + 1.0 / grown : 1.0);
        error += 8.0 * FP_U * (1.0 + fabs(raise) + fabs(shell->log_f));
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
    return t * fp_log(t) - (1.0 + t) * fp_log1p(t) + 12.0 * FP_U * (1.0 + t) * (1.0 + fp_log1p(t) + fabs(fp_log(t)));
}

FP_INLINE double fp_log_payoff(int quantity, double t)
{
    return quantity == FP_CONTOUR_DELTA ? -fp_log(t) - fp_log1p(t) : -fp_log1p(t);
}

/* The t of the least of F(t) e^(-epsilon t) / (t (t + 1)), roughly, and log of the least of the values met */
static inline int fp_shell_saddle(fp_shell *shell, int quantity, double epsilon, double *t_out, double *value)
{
    double low = 0.0, high = INFINITY, t = *t_out > 0.0 ? *t_out : 1.0, factor = 2.0;
    *value = INFINITY;
    for (int i = 0; i < 60; i++) {
        const int status = fp_shell_build(shell, t, 0.0, FP_SHELL_SEARCH_AIM);
        if (status == -1)
            return -1;
        const double slope = status ? INFINITY : shell->slope - epsilon - 1.0 / t - 1.0 / (1.0 + t);
        if (!status)
            *value = fp_min(*value, shell->log_f - epsilon * t + fp_log_payoff(quantity, t));
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
        const double whole = shell->chernoff[k] - other * epsilon - gap - (gap < 40.0 ? fp_log1p(-fp_exp(-gap)) : 0.0);
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
    double product = 0.0, sum = -INFINITY, rounding = 0.0;
    for (int pass = 0; pass < 2; pass++) {
        product = rounding = 0.0, sum = -INFINITY;
        for (int i = 0; i < shell->n; i++) {
            const fp_contour_factor *a = shell->inner[i], *h = shell->shell ? shell->shell[i] : NULL;
            const double rho = pass || !shell->shell ? a->kind->decay(a, w) : 1.0;
            double size = a->kappa + fp_log(fp_max(rho, 1e-300));
            if (h) {
                const double part = h->kappa + fp_log(fp_max(h->kind->decay(h, w), 1e-300));
                size = fp_log_sum(size, part);
                sum = fp_log_sum(sum, fp_log(a->count) + part - size);
            }
            product += a->count * size;
            rounding += FP_U * (a->count * (8.0 + 8.0 * fabs(size) + 8.0 * fabs(a->kappa)) + fabs(product));
        }
        if (!shell->shell || product + sum < enough)
            break;
    }
    return (shell->shell ? product + fp_min(sum, 0.7) : product) + shell->error + 1.01 * rounding + 1e-9;
}

/* log of the whole |F| of inner parts at frequency w and t, or of a bound below e^fall, in `log_size`. 0; -1 without
 * memory, 1 where it cannot be computed. */
static inline int fp_shell_size(fp_shell *shell, double t, double w, double fall, double *log_size)
{
    *log_size = 0.0;
    for (int i = 0; i < shell->n && *log_size > fall; i++) {
        fp_contour_factor *a = shell->inner[i];
        double log_m, angle, wrong;
        const int status = a->kind->build(a, t, w, FP_SHELL_SEARCH_AIM);
        if (status)
            return status;
        a->kind->moments(a, 1.0, w, 1, &log_m, &angle, &wrong);
        shell->work += 20.0 * FP_SHELL_NODE_WORK + FP_SHELL_NODE_WORK * a->nodes.n;
        *log_size += a->count * log_m;
    }
    return 0;
}

/* Whether |F| hardly falls over many standard deviations of S at t or, given a number of terms of a sum, over these; 2
 * where it is negligible by then. */
static inline int fp_shell_slowness(fp_shell *shell, double t, double terms)
{
    double variance = 0.0, log_size;
    for (int i = 0; i < shell->n; i++) {
        fp_contour_factor *a = shell->inner[i];
        const fp_contour_window *part = a->kind == &fp_contour_window_kind ? a->pair : NULL;
        if (part && part->bend == 1.0 && t * part->pair->range * part->pair->range > FP_SHELL_UNCUT)
            return 1;
        if (a->kind->build(a, t, 0.0, FP_SHELL_SEARCH_AIM))
            return 1;
        variance += a->count * a->variance;
    }
    const double deviation = sqrt(variance), period = fp_max(8.0 * deviation, FP_SHELL_AIM / t);
    const double w = terms > 0.0 ? 2.0 * FP_PI * terms / period : FP_SHELL_FREQUENCY / deviation;
    const double fall = terms > 0.0 ? -FP_SHELL_AIM : FP_SHELL_FALL;
    const int status = fp_shell_size(shell, t, w, -FP_SHELL_AIM, &log_size);
    return status ? status : log_size < -FP_SHELL_AIM ? 2 : !(log_size < fall);
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
        const double moved = table->tilt[k] * epsilon, rounding = 8.0 * FP_U * (fabs(table->chernoff[k]) + fabs(moved));
        const double alias = table->alias[k] - moved + rounding;
        out.upper = fp_min(out.upper, table->chernoff[k] - moved + rounding + 1e-12);
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
    const double sum = fp_contour_selected.cosines(table->terms, table->size, table->angle, 0.0,
                                                   table->h * (epsilon - table->centre));
    const double error = table->error + table->moment * away;
    const double alias = fp_exp(fp_min(fp_log_sum(above, below) + 1e-9 - (log_scale - moved), 690.0));
    const double lowest = sum - error - table->tail - alias, highest = sum + error + table->tail;
    if (!(error < INFINITY) || !(fabs(sum) < INFINITY)) /* Chernoff's bound holds */
        return out;
    out.value = sum > 0.0 ? log_scale + fp_log(sum) : -INFINITY;
    const double log_lowest = fp_log(lowest), log_highest = fp_log(highest);
    out.lower = lowest > 0.0 ? log_scale - moved + log_lowest - 4.0 * FP_U * fabs(log_lowest) : -INFINITY;
    if (highest > 0.0)
        out.upper = fp_min(out.upper, log_scale + moved + log_highest + 4.0 * FP_U * fabs(log_highest));
    return out;
}

/* The table of one shell for epsilons between at[0] and at[2], with at[1] in the middle. `log_total` is log of what is
 * known of the whole at these, or -INFINITY; `saddle` is the shell's t of the least. Returns 0, -1 without memory, 1
 * where a budget was spent; what the table gives holds in either case. */
static inline int fp_shell_sum(fp_shell *shell, int quantity, const double at[FP_SHELL_PLACES],
                               const double log_total[FP_SHELL_PLACES], double saddle, double budget,
                               fp_shell_table *table, long *terms, long *nodes, fp_stop_token *stop)
{
    const double epsilon = at[1];
    double best[FP_SHELL_PLACES], target[FP_SHELL_PLACES], value[FP_SHELL_TILTS];
    for (int e = 0; e < FP_SHELL_PLACES; e++)
        best[e] = INFINITY;
    for (int k = 0; k < FP_SHELL_TILTS; k++) {
        static const double steps[FP_SHELL_TILTS] = {
            1e-3, 0.05,  0.1,   0.17, 0.25,  0.35,  0.45, 0.57, 0.7, 0.82, 0.9, 0.95, 0.98, 1.0,
            1.003, 1.006, 1.01, 1.015, 1.025, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0,
        };
        const double t = saddle * steps[k];
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
        double low = 0.0, high = period < INFINITY ? 0.97 * period : 40.0 / shell->chernoff_t[k];
        int below = fp_shell_aliases_below(shell, shell->chernoff_t[k], at, high, target);
        if (!below && period < INFINITY)
            continue;
        for (int i = 0; i < 40 && !below; i++) {
            low = high, high *= 1.5;
            below = fp_shell_aliases_below(shell, shell->chernoff_t[k], at, high, target);
        }
        for (int i = 0; i < 6 && high > 1.05 * low; i++) {
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
        const int slow = fp_shell_slowness(shell, t, 0.0);
        if (slow == 1 || slow < 0)
            return slow;
    }
    const double h = 2.0 * FP_PI / period;
    const double log_best = fp_log_payoff(quantity, t), log_h = fp_log(h / FP_PI), constant = log_best + log_h;
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
        const int tiny = shell->shell && shell->log_ratio < -40.0;
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
            const fp_contour_factor *a = shell->inner[i], *hollow = shell->shell ? shell->shell[i] : NULL;
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
                               + FP_U * count * (8.0 * fabs(log_a[j]) + 4.0 * fabs(angle_a[j]))
                               + FP_U * (fabs(size[j]) + fabs(phase[j])); /* of the sums over factors */
                double bound = a->kappa + fp_log(length + wrong_a[j] + 1e-300);
                if (hollow) {
                    const double apart = hollow->mean - a->mean, angle = angle_h[j] - angle_a[j] + w * apart;
                    const double level = hollow->kappa - a->kappa + raise - log_a[j];
                    const double scale = fp_exp(level), r = scale * fp_exp(log_h[j]);
                    const double re = r * cos(angle), im = r * sin(angle);
                    const double rounding = hollow->kappa_error + a->kappa_error
                        + FP_U * (48.0 + 4.0 * (fabs(hollow->kappa - a->kappa) + fabs(raise) + fabs(w * apart))
                                  + 9.0 * fabs(log_a[j]) + 6.0 * fabs(log_h[j]));
                    const double wrong = 1.15 * scale * wrong_h[j] + 1.15 * r * (share + rounding);
                    const double excess = 2.0 * re + (re * re + im * im), whole = (1.0 + re) * (1.0 + re) + im * im;
                    const double log_whole = fabs(excess) < 0.5 ? fp_log1p(excess) : fp_log(fp_max(whole, 1e-300));
                    const double away = sqrt(fp_max(whole, 0.0));
                    vague[j] |= !(wrong < 0.1 * away);
                    x_re[j] += count * (tiny ? re : 0.5 * log_whole);
                    x_im[j] += count * (tiny ? im : atan2(im, 1.0 + re));
                    x_wrong[j] += count * (1.2 * wrong / away + FP_U * (32.0 * r + fabs(log_whole)))
                                  + FP_U * (fabs(x_re[j]) + fabs(x_im[j]))
                                  + (tiny ? 2.0 * shell->n * count * count * r * r * fp_exp(-raise) : 0.0);
                    const double log_part = hollow->kappa + fp_log(fp_exp(log_h[j]) + wrong_h[j] + 1e-300);
                    bound = fp_log_sum(bound, log_part);
                    part[j] = fp_log_sum(part[j], fp_log(count) + log_part - bound
                                         + 8.0 * FP_U * (1.0 + fabs(log_part) + fabs(bound)));
                }
                above[j] += count * (bound + 16.0 * FP_U * (1.0 + fabs(bound) + fabs(a->kappa)));
            }
        }
        const double base = shell->log_inner - shell->log_f;
        for (int j = 0; j < FP_CONTOUR_AT_ONCE; j++) {
            const double w = (n + j) * h, weight = n + j ? 1.0 : 0.5;
            double a = t + 1.0, b = w, best = t + 1.0;
            if (quantity == FP_CONTOUR_DELTA)
                a = t * (t + 1.0) - w * w, b = w * (2.0 * t + 1.0), best = t * (t + 1.0);
            const double payoff = best / sqrt(a * a + b * b);
            const double share = shell->shell ? fp_min(part[j], 0.7) : 0.0, wrong = relative[j];
            const double most = fp_exp(above[j] + share - shell->log_f + shell->error + 1e-9
                                       + 8.0 * FP_U * (fabs(above[j]) + fabs(shell->log_f)));
            double length = fp_exp(size[j] + base), turn = phase[j] - atan2(b, a);
            if (shell->shell) { /* times expm1(x); where e^x is large, e^lift (e^(x - lift) - e^-lift) */
                const double lift = !tiny && x_re[j] > 40.0 ? x_re[j] : 0.0, half = sin(0.5 * x_im[j]);
                const double near = lift > 0.0 ? 1.0 - fp_exp(-lift) : fp_expm1(x_re[j]);
                const double grown = fp_exp(x_re[j] - lift);
                const double re = tiny ? x_re[j] : near - 2.0 * grown * half * half;
                const double im = tiny ? x_im[j] : grown * sin(x_im[j]);
                const double modulus = sqrt(re * re + im * im);
                const double change = x_wrong[j] < 1.0 ? fp_expm1(x_wrong[j]) * (1.0 + 1e-9) : INFINITY;
                const double moved = tiny ? x_wrong[j] : grown * change;
                const double unit = fp_exp(size[j] + ((base - raise) + lift));
                length = unit * modulus, turn += atan2(im, re);
                error += weight * payoff * (vague[j] ? 0.0 : fp_min(unit * moved * (1.0 + 1.1 * wrong), most + length));
            }
            const double rounding = FP_U * (72.0 + 2.0 * fabs(size[j]) + 4.0 * (fabs(base) + fabs(raise))
                                            + 4.0 * fp_max(0.0, x_re[j]));
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
                + FP_U * (72.0 + 6.0 * fabs(turn)) * part_size;
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
        if ((n >= check && largest * n < fp_max(1e-14 * known, 0.1 * error)) || spent) {
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
    table->moved = shell->error + 8.0 * FP_U * (fabs(shell->log_f) + fabs(log_best) + fabs(log_h)
                                                + fabs(table->log_scale) + 8.0);
    for (int k = 0; k < table->tilts; k++) {
        const double gap = fabs(table->tilt[k] - t) * period * (1.0 - 1e-13);
        table->alias[k] = gap > 1e-3 ? table->chernoff[k] - gap - fp_log1p(-fp_exp(-gap)) : INFINITY;
    }
    return spent;
}

#endif
