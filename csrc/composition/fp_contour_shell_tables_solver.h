/* The choice of the shells of a composition, and bounds of delta(epsilon) by tables of shells or of one contour.
 *
 * Notation of fp_contour_shells_solver.h. Whatever the cuts are the parts add up: where they lie is a matter of time
 * alone. The least of F(t) e^(-epsilon t) / (t (t + 1)) over t is about log of a part. Where that of the whole is far
 * above those of what a cut would leave and take away, its contour would cancel, and the cut is made at once;
 * otherwise the whole is tried. A table of shells serves the epsilons of a cell of a grid that the composition and
 * the binary exponent of epsilon give: the result at an epsilon does not depend on the others.
 */
/* bounds: proved - rounding of sums of parts, docs/proofs/contour.md, theorem 2.17 */
#ifndef FP_CONTOUR_SHELL_TABLES_SOLVER_H
#define FP_CONTOUR_SHELL_TABLES_SOLVER_H

#include "composition/fp_contour_shells_solver.h"

/* bound: none - log of the ratio of the sum of a contour's terms to its value from which it is not tried */
#define FP_SHELL_HOPELESS 3.0
/* bound: none - minus log of a Chernoff bound from which shells, and all sums, are not tried: they have no digits there */
#define FP_SHELL_DEEPEST 1e6
#define FP_CONTOUR_DEEPEST 1e8
#define FP_CONTOUR_FAR_TILT 512.0 /* t of the latter */
#define FP_SHELLS_TABLES 64
/* bound: none - width of the epsilons that share a table, in units of the distance of the means */
#define FP_SHELL_CELL 1.0
/* bound: none - terms of one contour from which shells are tried first */
#define FP_SHELL_TERMS 1500.0
/* bound: none - relative width of the epsilons of a table of one epsilon */
#define FP_SHELL_SINGLE 1e-9
#define FP_SHELL_STRIDE 8 /* slots of the grid of t from one at which this is decided to the next */
/* bound: none - relative width aimed at */
#define FP_SHELL_WIDTH 1e-10

/* Whether a pair can be cut: Q one Gaussian, the means of P on one side of it, and more than one of them. */
static inline int fp_window_fits(const fp_contour_factor *factor)
{
    if (factor->kind != &fp_contour_one_sigma_kind)
        return 0;
    const fp_contour_one_sigma *pair = factor->pair;
    return pair->q_low == pair->q_high && (pair->p_low >= pair->q_low || pair->p_high <= pair->q_low)
           && pair->p_low < pair->p_high;
}

/* Cut `whole` at x: `inner` is what is left, `shell` what is cut off. */
static inline void fp_window_split(const fp_contour_window *whole, fp_contour_window *inner, fp_contour_window *shell,
                                   double cut)
{
    const double width = fp_min(2.0 / fp_max(cut, 3.0), 0.125 / whole->pair->range);
    fp_contour_window *parts[2] = {inner, shell};
    for (int i = 0; i < 2; i++) {
        memcpy(parts[i]->cut, whole->cut, sizeof whole->cut);
        memcpy(parts[i]->width, whole->width, sizeof whole->width);
        parts[i]->cut[whole->cuts] = cut, parts[i]->width[whole->cuts] = width;
        parts[i]->cuts = whole->cuts + !i, parts[i]->above = i;
        parts[i]->bend = whole->bend + 1.0 / (width * width), parts[i]->quick = 0;
    }
}

/* x at which the loss is `loss`, within [-4, 64] */
static inline double fp_window_point(const fp_contour_window *part, double loss)
{
    double low = -4.0, high = 64.0;
    for (int i = 0; i < 24; i++) {
        const double middle = 0.5 * (low + high);
        double slope;
        if (fp_window_loss(part, middle, &slope) < loss)
            low = middle;
        else
            high = middle;
    }
    return high;
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
    enum { WHOLE, INNER, SHELL, ROLES };
    fp_contour_factor *own = calloc(ROLES * (size_t)n, sizeof *own), **list = calloc(ROLES * (size_t)n, sizeof *list);
    fp_contour_window *parts = calloc(ROLES * (size_t)n, sizeof *parts);
    int status = own && list && parts ? 0 : -1, first = -1;
    double lowest = 0.0, next = 0.0, slope;
    if (!status) {
        fp_contour_factor **whole = list, **inner = list + n, **hollow = list + 2 * n;
        fp_shell shell = {.n = n};
        double value[FP_SHELL_PLACES], t_whole = 1.0, t_inner = 1.0, t_shell = 0.0;
        double least = INFINITY, least_inner = INFINITY, least_shell = INFINITY; /* at these t */
        fp_contour_answer known[FP_SHELL_PLACES];
        for (int e = 0; e < FP_SHELL_PLACES; e++)
            value[e] = -INFINITY, known[e] = (fp_contour_answer){-INFINITY, -INFINITY, -INFINITY};
        for (int i = 0; i < n; i++) {
            whole[i] = inner[i] = factors + i;
            if (!fp_window_fits(factors + i))
                continue;
            first = i;
            for (int k = 0; k < ROLES; k++) {
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
                list[k * n + i] = copy;
            }
        }
        shell.inner = whole, shell.shell = NULL;
        status = fp_shell_saddle(&shell, quantity, epsilon, &t_whole, &least) ? -1 : 1;
        for (int level = 0; level <= FP_SHELLS && status == 1; level++) {
            const int last = level == FP_SHELLS || shell.work > FP_SHELLS_WORK || first < 0 || (level && next < 0.5);
            fp_shell_table *part = table->part + table->parts;
            int hopeless = 0;
            if (!last) {
                if (!level) {
                    if (fp_shell_build(&shell, 1e-6, 0.0, FP_SHELL_SEARCH_AIM) < 0) {
                        status = -1;
                        break;
                    }
                    const double loss = fp_max(epsilon - shell.drift, 0.5 * epsilon);
                    double nearest = INFINITY;
                    for (int i = 0; i < n; i++)
                        if (hollow[i]) {
                            const double cut = fp_max(fp_window_point(hollow[i]->pair, loss), 1.5);
                            if (cut < nearest)
                                nearest = cut, first = i;
                        }
                    lowest = nearest - fp_min(0.7, 3.0 / nearest);
                    next = fp_max(lowest, fp_window_point(parts + first, 1.0));
                } else {
                    const fp_contour_window *part_of = parts + first;
                    const double loss = fp_window_loss(part_of, next, &slope);
                    const double apart = fp_min(0.7, 1.75 / part_of->pair->range);
                    const double quarter = next > lowest && loss > 0.0 ? fp_window_point(part_of, 0.25 * loss)
                                                                       : -INFINITY;
                    const double half = loss > 0.0 ? fp_window_point(part_of, 0.5 * loss) : -INFINITY;
                    next = next > lowest + apart ? fp_max(lowest, quarter) : fp_max(fp_min(half, next - apart), 0.4);
                }
                const double loss = fp_window_loss(parts + first, next, &slope);
                for (int i = 0; i < n; i++)
                    if (hollow[i])
                        fp_window_split((const fp_contour_window *)whole[i]->pair,
                                        (fp_contour_window *)inner[i]->pair, (fp_contour_window *)hollow[i]->pair,
                                        i == first ? next : fp_window_point(parts + i, loss));
                shell.inner = inner, shell.shell = NULL, t_inner = t_whole;
                if (fp_shell_saddle(&shell, quantity, epsilon, &t_inner, &least_inner)) {
                    status = -1;
                    break;
                }
                shell.shell = hollow, t_shell = t_shell > 0.0 ? t_shell : t_inner;
                if (fp_shell_saddle(&shell, quantity, epsilon, &t_shell, &least_shell)) {
                    status = -1;
                    break;
                }
                for (int e = 0; e < FP_SHELL_PLACES; e++) {
                    const double away = epsilon - at[e];
                    const double rest = fp_log_add(least_inner + t_inner * away, least_shell + t_shell * away);
                    hopeless |= least + t_whole * away > fp_log_add(known[e].value, rest) + FP_SHELL_HOPELESS;
                }
            }
            if (!hopeless) {
                shell.inner = whole, shell.shell = NULL;
                const int plain = fp_shell_sum(&shell, quantity, at, value, t_whole,
                                               last ? FP_SHELL_WORK : FP_SHELL_WORK / 32.0, part, terms, nodes, stop);
                if (plain < 0) {
                    status = plain;
                    break;
                }
                int enough = 1, narrow = 1;
                for (int e = 0; e < FP_SHELL_PLACES; e++) {
                    const fp_contour_answer rest = fp_shell_read(part, at[e]);
                    fp_contour_answer sum = known[e];
                    fp_shells_add(&sum, rest);
                    const double width = sum.upper - sum.lower;
                    enough &= width < FP_SHELL_WIDTH || rest.upper < sum.lower - FP_SHELL_ALIAS_AIM;
                    narrow &= width < 10.0 * FP_SHELL_WIDTH;
                    table->width = e == 1 ? width : table->width;
                }
                if (enough || last) {
                    table->parts++, table->plain = 1, status = !narrow;
                    break;
                }
                free(part->size);
                memset(part, 0, sizeof *part);
            }
            shell.inner = inner, shell.shell = hollow;
            const int done = fp_shell_sum(&shell, quantity, at, value, t_shell, FP_SHELL_WORK, part, terms, nodes,
                                          stop);
            if (done < 0) {
                status = done;
                break;
            }
            for (int e = 0; e < FP_SHELL_PLACES; e++) {
                fp_shells_add(known + e, fp_shell_read(part, at[e]));
                value[e] = known[e].value;
            }
            table->parts++;
            fp_contour_factor **former = whole;
            whole = inner, inner = former, t_whole = t_inner, least = least_inner;
        }
        table->spent = shell.work > FP_SHELLS_WORK;
    }
    for (int i = 0; i < ROLES * n && own; i++)
        fp_contour_factor_free(own + i);
    for (int i = 0; i < ROLES * n && parts; i++)
        free(parts[i].block), free(parts[i].quick_log_p);
    free(own), free(list), free(parts);
    return status;
}

/* Whether any pair can be cut */
static inline int fp_windows_fit(const fp_composition *c)
{
    for (int i = 0; i < c->n; i++)
        if (fp_window_fits(c->factors + i))
            return 1;
    return 0;
}

/* Whether shells are to be tried before a table of one contour: where F hardly falls over many standard deviations at
 * the saddle point. It depends on the composition and on epsilon alone. -1 without memory. */
static inline int fp_shells_first(fp_composition *c, double epsilon)
{
    double place, curvature;
    const fp_contour_slot *slot;
    if (!fp_windows_fit(c))
        return 0;
    if (fp_contour_saddle(c, epsilon, &place, &curvature))
        return -1;
    fp_contour_factor **list = malloc(sizeof *list * (size_t)c->n);
    if (!list)
        return -1;
    for (int i = 0; i < c->n; i++)
        list[i] = c->factors + i;
    fp_shell shell = {.n = c->n, .inner = list};
    int found = 0;
    for (int test = 0; test < 2 && !found; test++) {
        const int stride = test ? FP_SHELL_STRIDE : 1;
        int at = (int)(place / stride + 0.5) * stride;
        at = at < FP_SLOTS ? at : FP_SLOTS - 1;
        found = fp_contour_find(c, at, &slot);
        if (found)
            break;
        found = slot->known < 0;
        int *slow = &c->slots[at].slow[test]; /* kept: 1 more than the slowness */
        if (!found && !*slow)
            *slow = 1 + fp_shell_slowness(&shell, slot->t, test ? FP_SHELL_TERMS : 0.0);
        found = found ? found : *slow - 1;
    }
    free(list);
    return found == 2 ? 0 : found;
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
 * alone. 0; -1 without memory, or the reason to stop. */
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
    for (int level = c->single ? 2 : 0; level < 3; level++) {
        const double most = fp_min(FP_SHELL_CELL * range, epsilon) * (level ? 0.125 : 1.0);
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
        } else if (c->single) { /* the few epsilons of one cell */
            found = table->used && table->quantity == quantity && table->at[0] <= epsilon && epsilon <= table->at[2];
            at[0] *= 1.0 - FP_SHELL_SINGLE, at[2] *= 1.0 + FP_SHELL_SINGLE;
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
        if (width < fp_max(10.0 * FP_SHELL_WIDTH, fp_min(4.0 * table->width, 1e-6)) || table->spent
            || !(table->width < INFINITY)) /* where a cell has no bounds at its middle, finer cells have none */
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

/* log of Chernoff's bound of delta and of the tail at all epsilons within `slack`, by the tilt of a slot; infinity where
 * its moments are not known */
FP_INLINE double fp_contour_chernoff_at(const fp_contour_slot *slot, double epsilon, double slack)
{
    const double lost = slot->t * epsilon;
    return slot->known > 0 ? slot->value + slot->error - lost + slot->t * slack + 8.0 * FP_U * (fabs(slot->value) + lost)
                           : INFINITY;
}

/* Whether some moments are sums over nodes of a quadrature of densities */
static inline int fp_contour_has_nodes(const fp_composition *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->factors[i].kind == &fp_contour_one_sigma_kind || c->factors[i].kind == &fp_contour_several_kind)
            return 1;
    return 0;
}

/* Far beyond all losses no sum has digits: nothing is summed, and `upper` becomes Chernoff's bound. 2 where no sum is
 * tried, 1 where no shells are, 0; -1 without memory. */
static inline int fp_contour_is_far(fp_composition *c, double epsilon, double slack, double *upper)
{
    const fp_contour_slot *slot;
    double place, curvature, bound;
    if (c->side < 0 || !(c->largest_t > 0.0) || !fp_contour_has_nodes(c))
        return 0;
    if (epsilon > FP_CONTOUR_DEEPEST / FP_CONTOUR_FAR_TILT) {
        const int first = FP_SLOTS / 2 + (int)(FP_SLOTS_PER_OCTAVE * log2(FP_CONTOUR_FAR_TILT));
        double best = INFINITY;
        for (int i = 0; i < 4; i++) { /* t four times as large each */
            if (fp_contour_find(c, first + 2 * FP_SLOTS_PER_OCTAVE * i, &slot))
                return -1;
            bound = fp_contour_chernoff_at(slot, epsilon, slack);
            if (!(bound < best) || !(bound < -FP_CONTOUR_DEEPEST))
                break;
            best = bound;
        }
        *upper = best < *upper ? best : *upper;
        if (best < -FP_CONTOUR_DEEPEST)
            return 2;
    }
    if (fp_contour_saddle(c, epsilon, &place, &curvature) || fp_contour_find(c, (int)(place + 0.5), &slot))
        return -1;
    bound = fp_contour_chernoff_at(slot, epsilon, slack);
    if (!(bound < -FP_SHELL_DEEPEST))
        return 0;
    *upper = fp_min(*upper, bound);
    return 1;
}

/* Bounds at `count` epsilons >= 0, or any of the side -1, of which `done` were done; with a slack for all epsilons
 * within it, but none where shells would be tried. -1 without memory, or the reason to stop. */
static inline int fp_composition_bounds(fp_composition *c, int quantity, ptrdiff_t count, const double *epsilon,
                                        double slack, fp_contour_answer *out, fp_stop_token *stop, ptrdiff_t *done)
{
    for (*done = 0; *done < count; ++*done) {
        const double at = epsilon[*done];
        fp_contour_answer answer = {c->log_mass, -INFINITY, c->log_mass}, other;
        const int far = fp_contour_is_far(c, at, slack, &answer.upper);
        const int shells = c->side > 0 && !far ? fp_shells_first(c, at) : 0;
        int status = shells < 0 || far < 0 ? -1 : 0;
        answer.value = answer.upper;
        if (far == 2) {
            out[*done] = answer;
            continue;
        }
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
        if (!status && !shells && !far && slack == 0.0 && c->side > 0 && fp_windows_fit(c)
            && !(answer.upper - answer.lower < 10.0 * FP_SHELL_WIDTH)) {
            status = fp_shells_at(c, quantity, at, &other, stop);
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
