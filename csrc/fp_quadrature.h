/* Integrals over the line of the integrands of fp_integrand.h, with a proved bound of the discretisation error.
 *
 * Panels x0 + [-h, h] with dyadic x0 and h (so that neighbours share their ends exactly) come from halving a root
 * that holds all but e^-750 of the mass.  They wait in a heap, ordered by an upper bound of what they hold; the loop
 * ends when all that is left is negligible.  A panel is analysed at its centre: fp_mixture.h bounds p, q and log(p/q)
 * on the ellipse with foci x0 +- h and semi-axes h (rho +- 1/rho) / 2, hence the modulus M of the integrand.  The
 * N-point Gauss-Legendre rule then errs by at most (64/15) M h rho^(-2N) / (1 - rho^-2): it is exact for T_k, k < 2N,
 * and zero for odd k; it errs by at most 2 + 2/(k^2 - 1) <= 32/15 on T_k; the Chebyshev coefficients are at most 2 M
 * rho^-k (Rabinowitz 1969; Trefethen, Approximation Theory and Practice, theorems 8.1 and 19.3).  The smallest of
 * four rules that meets the target is used; a panel that none serves is halved.
 */
#ifndef FP_QUADRATURE_H
#define FP_QUADRATURE_H

#include "fp_gauss_legendre.h"
#include "fp_modulus.h"
#include "fp_quadrature_table.h"
#include "fp_near_ratio.h"

#define FP_TAIL_SIGMAS 41.0
#define FP_NEGLIGIBLE 1e-100 /* absolute error that no panel is halved for */
#define FP_RHOS 6
#define FP_RULES 4

static const double fp_rhos[FP_RHOS] = {1.9, 2.5, 3.6, 6.0, 12.0, 40.0};

typedef struct {
    double bound, x0, h, lost, lower_p, lower_q;
    int start_p, n_p, start_q, n_q;
} fp_panel;

typedef struct {
    int kind;
    double b, reach; /* order minus one; half-width that the root must have at least */
    double target;   /* relative discretisation error to aim at */
    fp_law p, q;
    const fp_near_ratio *ratio; /* NULL: log(p/q) in doubles */
    long max_panels;
    /* results: integral = e^scale (sum +- (truncation + rounding)) */
    double scale, sum, rest, mass, truncation, rounding;
    long panels, evaluations;
    /* state */
    fp_local side_p, side_q;
    fp_panel *heap;
    int *arena;
    double *prior;
    long waiting, heap_room, arena_used, arena_room;
} fp_integral;

static inline int fp_heap_push(fp_integral *w, fp_panel panel)
{
    if (w->waiting == w->heap_room) {
        const long room = 2 * w->heap_room + 64;
        fp_panel *heap = realloc(w->heap, sizeof(fp_panel) * (size_t)room);
        if (!heap)
            return -1;
        w->heap = heap;
        w->heap_room = room;
    }
    long i = w->waiting++;
    for (; i > 0 && w->heap[(i - 1) / 2].bound < panel.bound; i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = panel;
    return 0;
}

static inline fp_panel fp_heap_pop(fp_integral *w)
{
    const fp_panel top = w->heap[0], last = w->heap[--w->waiting];
    long i = 0;
    for (long child = 1; child < w->waiting; child = 2 * i + 1) {
        if (child + 1 < w->waiting && w->heap[child + 1].bound > w->heap[child].bound)
            child++;
        if (w->heap[child].bound <= last.bound)
            break;
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = last;
    return top;
}

/* log of an upper bound of the integral of |integrand| over a panel on which up and uq bound log p and log q from
 * above, lower_p and lower_q from below */
static inline double fp_mass_bound(const fp_integral *w, double up, double uq, const fp_panel *panel)
{
    const double a = 1.0 + w->b, width = fp_log(2.0 * panel->h);
    const double phi = w->b > 0.0 ? a * up - w->b * panel->lower_q : a * up - w->b * uq;
    switch (w->kind) {
    case FP_KL:
        return width + fp_log_sum(up + fp_log(fp_max(up - panel->lower_q, 1e-300)), uq);
    case FP_JS:
        return width + fp_log_sum(up, uq);
    case FP_ENTROPY:
        return width + up + fp_log(fp_max(fabs(up), fabs(panel->lower_p)) + 1e-300);
    case FP_RENYI:
        return width + phi;
    case FP_RENYI_SMALL:
        return width + fp_log_sum(phi, fp_log_sum(uq + fp_log(fabs(w->b)), up + fp_log(a)));
    default:
        return width + uq + 7.0; /* log(1 / prior) is below 745 */
    }
}

/* adds the panel at (x0, h), its components chosen among those of its parent */
static inline int fp_panel_add(fp_integral *w, const fp_panel *parent, double x0, double h)
{
    fp_panel panel = *parent;
    const long need = w->arena_used + parent->n_p + parent->n_q;
    if (need > w->arena_room) {
        int *arena = realloc(w->arena, sizeof(int) * (size_t)(2 * need));
        if (!arena)
            return -1;
        w->arena = arena;
        w->arena_room = 2 * need;
    }
    double up = 0.0, uq = 0.0, unused = 0.0;
    panel.x0 = x0;
    panel.h = h;
    panel.start_p = (int)w->arena_used;
    if (w->p.n)
        panel.n_p = fp_law_select(&w->p, w->arena + parent->start_p, parent->n_p, x0, h, w->arena + w->arena_used, &up,
                                  &panel.lower_p, &unused);
    w->arena_used += panel.n_p;
    panel.start_q = (int)w->arena_used;
    if (w->q.n)
        panel.n_q = fp_law_select(&w->q, w->arena + parent->start_q, parent->n_q, x0, h, w->arena + w->arena_used, &uq,
                                  &panel.lower_q, &panel.lost);
    w->arena_used += panel.n_q;
    panel.bound = fp_mass_bound(w, up, uq, &panel);
    if (!(panel.bound - w->scale > fp_log(w->mass) - 60.0)) {
        w->truncation += fp_exp(panel.bound - w->scale);
        w->arena_used = panel.start_p;
        return 0;
    }
    return fp_heap_push(w, panel);
}

static inline double fp_log_modulus_information(fp_integral *w, double log_q, double radius)
{
    const fp_local *side = &w->side_q;
    double sum = 1.0, small = 0.0;
    int tiny = w->side_q.n == w->q.n;
    for (int j = 0; j < side->n; j++) {
        const double g = (side->slope[j] + side->bend[j] * radius) * radius;
        const double log_rho = side->log_r[j] - fp_log(w->prior[j]);
        const double size = fabs(log_rho) + g + side->lambda + 1e-14, weight = fp_exp(side->log_r[j] + g);
        sum += weight * (size + 1.0);
        small += w->prior[j] * size * size * fp_exp(2.0 * (size < 1.0 ? size : 1.0));
        tiny &= size < 1.0;
    }
    return log_q + fp_log(tiny && 0.5 * small < sum ? 0.5 * small : sum);
}

/* log of a bound of the modulus of the integrand on the ellipse of parameter rho; infinity where none is known */
static inline double fp_log_modulus(fp_integral *w, double h, double rho)
{
    const double x = 0.5 * h * (rho + 1.0 / rho), y = 0.5 * h * (rho - 1.0 / rho);
    fp_local *sides[2] = {&w->side_p, &w->side_q};
    double log_m[2] = {0.0, 0.0};
    for (int k = 0; k < 2; k++) {
        fp_local *s = sides[k];
        if (!s->n)
            continue;
        s->kappa = fp_quadrature_table()->kappa(s, x);
        if (!(s->kappa < 0.97))
            return INFINITY;
        s->lambda = -fp_log1p(-s->kappa);
        log_m[k] = s->l0 + fp_growth(s->alpha, s->beta, x, y) + fp_log1p(s->kappa);
    }
    const fp_local *p = &w->side_p, *q = &w->side_q;
    const double slope = p->alpha - q->alpha, bend = p->beta - q->beta, l0 = p->l0 - q->l0, a = 1.0 + w->b;
    const double size = fabs(l0) + (fabs(slope) + 0.5 * fabs(bend) * x) * x + p->lambda + q->lambda + 1e-14;
    if (w->kind == FP_KL)
        return fp_log_modulus_kl(log_m[0], log_m[1], size);
    if (w->kind == FP_ENTROPY)
        return log_m[0] + fp_log(fabs(p->l0) + (fabs(p->alpha) + 0.5 * p->beta * x) * x + p->lambda);
    if (w->kind == FP_INFORMATION)
        return fp_log_modulus_information(w, q->l0 + fp_growth(q->alpha, q->beta, x, y), x);
    if (w->kind == FP_JS)
        return fp_log_modulus_js(p, q, log_m[0], log_m[1], (fabs(slope) + 0.5 * fabs(bend) * x) * x);
    const double phi = p->l0 + w->b * l0 + fp_growth(p->alpha + w->b * slope, p->beta + w->b * bend, x, y)
                       + a * fp_log1p(p->kappa) + (w->b > 0.0 ? w->b * q->lambda : -w->b * fp_log1p(q->kappa));
    if (w->kind == FP_RENYI)
        return phi;
    const double plain = fp_log_sum(phi, fp_log_sum(log_m[1] + fp_log(fabs(w->b)), log_m[0] + fp_log(a)));
    const double y_size = fabs(w->b) * size;
    const double tight = size < 1.0 && y_size < 1.0
        ? log_m[0] - 0.69 + 2.0 * fp_log(size) + fp_log(w->b * w->b * fp_exp(y_size) + fabs(w->b) * fp_exp(size))
        : INFINITY;
    return plain < tight ? plain : tight;
}

typedef struct {
    double value, mass, rounding;
} fp_panel_sum;

/* the N-point rule on the panel at hand */
static inline fp_panel_sum fp_panel_rule(fp_integral *w, const fp_panel *panel, int rule)
{
    const int n = 8 * (rule + 1);
    const double *nodes = fp_legendre_nodes[rule], *weights = fp_legendre_weights[rule];
    double d[32], lp[32], lq[32], l[32], dp[32], dq[32], dl[32], f[32], err[32];
    const fp_quadrature_functions *table = fp_quadrature_table();
    for (int k = 0; k < n; k++) {
        d[k] = panel->h * nodes[k];
        lp[k] = lq[k] = dp[k] = dq[k] = 0.0;
    }
    if (w->kind == FP_INFORMATION) {
        fp_local *side = &w->side_q;
        int reference = 0;
        for (int j = 1; j < side->n; j++)
            reference = side->r[j] > side->r[reference] ? j : reference;
        for (int j = 0; j < side->n; j++)
            side->offset[j] = (w->q.m[side->index[j]] - w->q.m[side->index[reference]]) * side->is[reference];
        const int direct = w->prior[reference] < 0.5 * side->r[reference]; /* q < N_reference / 2 at the centre */
        table->information(side, w->prior, reference, direct, panel->lost, d, n, f, err);
    } else {
        if (w->side_p.n)
            table->nodes(&w->side_p, d, panel->h, n, lp, dp);
        if (w->side_q.n)
            table->nodes(&w->side_q, d, panel->h, n, lq, dq);
        for (int k = 0; k < n; k++) {
            l[k] = lp[k] - lq[k];
            dl[k] = dp[k] + dq[k];
            if (w->ratio && fabs(l[k]) < FP_FARTHEST)
                l[k] = fp_near_ratio_log(w->ratio, panel->x0, d[k], panel->h * fp_legendre_tails[rule][k], l[k], lq[k],
                                         dq[k], dl + k);
        }
        table->integrand(w->kind, w->b, w->scale, n, lp, lq, l, dp, dq, dl, f, err);
    }
    w->evaluations += n;
    fp_panel_sum s = {0.0, 0.0, 0.0};
    for (int k = 0; k < n; k++) {
        s.value += weights[k] * f[k];
        s.mass += weights[k] * fabs(f[k]);
        s.rounding += weights[k] * err[k];
    }
    s.value *= panel->h, s.mass *= panel->h;
    s.rounding = panel->h * s.rounding + 40.0 * FP_U * s.mass;
    return s;
}

static inline void fp_integral_add(fp_integral *w, fp_panel_sum s, double truncation)
{
    const double sum = w->sum + s.value, back = sum - w->sum;
    w->rest += (w->sum - (sum - back)) + (s.value - back);
    w->sum = sum;
    w->mass += s.mass;
    w->rounding += s.rounding;
    w->truncation += truncation;
    w->panels++;
}

/* the scale follows the largest exponent seen at a centre (order-alpha integrals only) */
static inline void fp_integral_rescale(fp_integral *w)
{
    if (w->kind != FP_RENYI)
        return;
    const double phi = w->side_p.l0 + w->b * (w->side_p.l0 - w->side_q.l0);
    if (phi <= w->scale)
        return;
    const double factor = fp_exp(w->scale - phi);
    w->sum *= factor, w->rest *= factor, w->mass *= factor, w->truncation *= factor, w->rounding *= factor;
    w->rounding += 4.0 * FP_U * w->mass * (1.0 + fabs(phi));
    w->scale = phi;
}

/* 1: the panel is done; 0: halve it */
static inline int fp_panel_try(fp_integral *w, const fp_panel *panel)
{
    const fp_quadrature_functions *table = fp_quadrature_table();
    w->side_p.n = w->side_q.n = 0;
    if (panel->n_p) {
        fp_local_gather(&w->side_p, &w->p, w->arena + panel->start_p, panel->n_p, panel->x0);
        table->centre(&w->side_p);
    }
    if (panel->n_q) {
        fp_local_gather(&w->side_q, &w->q, w->arena + panel->start_q, panel->n_q, panel->x0);
        table->centre(&w->side_q);
    }
    if (w->kind == FP_INFORMATION)
        for (int j = 0; j < panel->n_q; j++)
            w->prior[j] = w->q.w[w->side_q.index[j]];
    double best[FP_RULES] = {INFINITY, INFINITY, INFINITY, INFINITY}, wanted = 0.0, floor = 0.0, log_floor = 0.0;
    const double log_h = fp_log(panel->h);
    const double peak = fp_max(panel->n_p ? w->side_p.l0 : -1e300, panel->n_q ? w->side_q.l0 : -1e300);
    for (int i = 0; i < FP_RHOS; i++) {
        const double rho = fp_rhos[i], log_m = fp_log_modulus(w, panel->h, rho);
        if (!(log_m < INFINITY))
            break;
        if (i == 0) {
            fp_integral_rescale(w);
            floor = 0.05 * w->target * w->mass + FP_NEGLIGIBLE;
            log_floor = fp_log(floor);
            /* a first guess of what will do, from the size of p and q */
            wanted = fp_max(fp_log(w->target) + log_h + (w->kind == FP_RENYI ? 0.0 : peak - 3.0), log_floor);
            if (log_m + log_h + 0.7 - w->scale < fp_log(1e-4 * w->target * w->mass + FP_NEGLIGIBLE)) {
                w->truncation += fp_exp(log_m + log_h + 0.7 - w->scale);
                return 1;
            }
        }
        const double front = log_m + log_h + 1.4513 - fp_log1p(-1.0 / (rho * rho)) - w->scale + 1e-6;
        for (int r = 0; r < FP_RULES; r++) {
            const double log_bound = front - 16.0 * (r + 1) * fp_log(rho);
            best[r] = log_bound < best[r] ? log_bound : best[r];
        }
        if (best[0] <= log_floor) /* sure to be accepted */
            break;
    }
    if (!(best[FP_RULES - 1] < INFINITY))
        return 0;
    fp_panel_sum s = {0.0, 0.0, 0.0};
    int rule = 0;
    while (rule < FP_RULES - 1 && best[rule] > wanted)
        rule++;
    if (best[rule] > wanted + 12.0)
        return 0;
    for (;;) {
        s = fp_panel_rule(w, panel, rule);
        const double allowed = w->target * s.mass + floor + 0.02 * s.rounding;
        const int before = rule;
        while (rule < FP_RULES - 1 && fp_exp(best[rule]) > allowed)
            rule++;
        if (fp_exp(best[rule]) > allowed)
            return 0;
        if (rule == before)
            break;
    }
    fp_integral_add(w, s, fp_exp(best[rule]));
    return 1;
}

static inline void fp_integral_free(fp_integral *w)
{
    free(w->p.w);
    free(w->q.w);
    free(w->side_p.dm);
    free(w->side_q.dm);
    free(w->heap);
    free(w->arena);
    free(w->prior);
}

/* 0: done; 1: out of panels (the bounds are true, and wide); -1: out of memory.  p and q are laws already built. */
static inline int fp_integral_run(fp_integral *w)
{
    const int n = w->p.n + w->q.n;
    w->scale = w->kind == FP_RENYI ? -INFINITY : 0.0;
    w->sum = w->rest = w->mass = w->truncation = w->rounding = 0.0;
    w->panels = w->evaluations = w->waiting = w->heap_room = w->arena_used = 0;
    w->heap = NULL;
    w->arena_room = 16 * (long)n + 1024;
    w->arena = malloc(sizeof(int) * (size_t)w->arena_room);
    w->prior = malloc(sizeof(double) * (size_t)(n + 8));
    if (fp_local_build(&w->side_p, w->p.n) || fp_local_build(&w->side_q, w->q.n) || !w->arena || !w->prior)
        return -1;
    fp_panel root = {0};
    root.n_p = w->p.n, root.n_q = w->q.n, root.start_q = w->p.n;
    for (int i = 0; i < n; i++)
        w->arena[i] = i < w->p.n ? i : i - w->p.n;
    w->arena_used = n;
    int exponent;
    const double sigma = fp_max(w->p.largest_sigma, w->q.largest_sigma);
    frexp(fp_max(w->reach, fp_max(w->p.largest_mean, w->q.largest_mean) + FP_TAIL_SIGMAS * sigma), &exponent);
    root.bound = INFINITY;
    if (fp_panel_add(w, &root, 0.0, ldexp(1.0, exponent)))
        return -1;
    while (w->waiting) {
        if (fp_exp(w->heap[0].bound - w->scale) * (double)w->waiting <= 0.01 * w->target * w->mass + FP_NEGLIGIBLE) {
            w->truncation += fp_exp(w->heap[0].bound - w->scale) * (double)w->waiting;
            return 0;
        }
        const fp_panel panel = fp_heap_pop(w);
        const double half = 0.5 * panel.h;
        if (w->panels + w->waiting > w->max_panels || half < 0x1p-51 * fabs(panel.x0) || half < 1e-290) {
            w->truncation += fp_exp(panel.bound - w->scale);
            for (long i = 0; w->panels + w->waiting > w->max_panels && i < w->waiting; i++)
                w->truncation += fp_exp(w->heap[i].bound - w->scale);
            if (w->panels + w->waiting > w->max_panels)
                return 1;
            continue;
        }
        if (fp_panel_try(w, &panel))
            continue;
        if (fp_panel_add(w, &panel, panel.x0 - half, half) || fp_panel_add(w, &panel, panel.x0 + half, half))
            return -1;
    }
    return 0;
}

#endif
