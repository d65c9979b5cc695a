/* Integrals over the line of the integrands of fp_integrand.h, with a proved bound of the discretisation error.
 *
 * Panels x0 + [-h, h] with dyadic x0 and h (so that neighbours share their ends exactly) come from halving a root
 * that holds all but e^-750 of the mass.  They wait in a heap, ordered by an upper bound of what they hold; the loop
 * ends when all that is left is negligible.  A panel too narrow for its distance from the origin gets an origin of its
 * own (fp_panel.h); where one of p and q is below e^-FP_NEGLECTED of the other on all of a panel, the other alone is
 * integrated, the integrand's limit.  A panel is analysed at its centre: fp_panel.h bounds p, q and log(p/q)
 * on the ellipse with foci x0 +- h and semi-axes h (rho +- 1/rho) / 2, hence the modulus M of the integrand.  The
 * N-point Gauss-Legendre rule then errs by at most (64/15) M h rho^(-2N) / (1 - rho^-2): docs/proofs/quadrature.md,
 * theorem 4.1. The smallest of
 * four rules that meets the target is used; a panel that none serves is halved.
 */
/* bounds: proved - rounding of panels' sums and of bounds in logarithms: docs/proofs/quadrature.md, theorem 4.17 */
#ifndef FP_QUADRATURE_SOLVER_H
#define FP_QUADRATURE_SOLVER_H

#include <stdlib.h>

#include "line/fp_gauss_legendre_tables.h"
#include "line/fp_modulus.h"
#include "line/fp_quadrature_engine.h"
#include "line/fp_log_ratio_dd.h"
#include "common/fp_stop_token.h"

/* bound: proved - a normal law has less than e^-840 beyond 41 standard deviations; _TAIL in line/quadrature.py is
 * added */
#define FP_TAIL_SIGMAS 41.0
/* bound: proved - panels whose bound is below it are not halved; their bound counts in full */
#define FP_NEGLIGIBLE 1e-100 /* absolute error below which no panel is halved */
#define FP_NEGLECTED 80.0
/* bound: none - when panels get a new origin */
#define FP_NEAR_ORIGIN 0x1p-40 /* a panel narrower than this fraction of its distance from the origin gets a new one */
/* bound: none - the narrowest panel that is halved; what is left counts in full */
#define FP_LEAST_PANEL 0x1p-1010
#define FP_BOUND_PANELS 4096 /* number of panels from which bounds of an order-alpha integral are made */
#define FP_FAR_RATIO 600.0 /* beyond this log density the ratio is not computed in double-doubles */
#define FP_ELLIPSES 6
#define FP_RULES 4

/* rho; its logarithm; log(64/15) - log(1 - rho^-2), rounded up by 4e-4 */
static const double fp_ellipse_parameters[FP_ELLIPSES] = {1.9, 2.5, 3.6, 6.0, 12.0, 40.0};
/* bound: proved - to 2e-16, against a margin of 1e-6 in what they enter */
static const double fp_ellipse_logs[FP_ELLIPSES] = {
    0.6418538861723947, 0.9162907318741551, 1.2809338454620642, 1.791759469228055, 2.4849066497880004,
    3.6888794541139363};
/* bound: proved - the same */
static const double fp_ellipse_fronts[FP_ELLIPSES] = {
    1.7756575510101875, 1.6256533871447778, 1.5315999424016429, 1.4794708769666962, 1.4582686693160933,
    1.4519251953939183};

static inline int fp_gaussian_mixture_build(fp_gaussian_mixture *law, int n, const double *w, const double *m,
                                            const double *s)
{
    if (n > law->capacity || !law->w) {
        free(law->w);
        law->w = malloc(sizeof(double) * 6 * (size_t)(n > 0 ? n : 1));
        law->capacity = law->w ? n : 0;
    }
    double *block = law->w;
    law->n = n;
    law->largest_mean = law->largest_sigma = 0.0;
    law->smallest_sigma = INFINITY;
    if (!block)
        return -1;
    law->m = block + n, law->is = block + 2 * n, law->c = block + 3 * n, law->ce = block + 4 * n;
    law->s = block + 5 * n;
    for (int i = 0; i < n; i++) {
        const double log_w = fp_log(w[i]), log_s = fp_log(s[i]);
        law->w[i] = w[i];
        law->m[i] = m[i];
        law->s[i] = s[i];
        law->is[i] = 1.0 / s[i];
        law->c[i] = (log_w - log_s) - FP_LOG_SQRT_2PI;
        law->ce[i] = 2.0 + 3.0 * (fabs(log_w) + fabs(log_s)) + 2.0 * fabs(law->c[i]);
        law->largest_mean = fp_max(law->largest_mean, fabs(m[i]));
        law->largest_sigma = fp_max(law->largest_sigma, s[i]);
        law->smallest_sigma = s[i] < law->smallest_sigma ? s[i] : law->smallest_sigma;
    }
    return 0;
}

static inline int fp_local_build(fp_local_mixture *side, int n)
{
    const size_t padded = ((size_t)n + 7) / 8 * 8;
    double *block = side->dm;
    int capacity = side->capacity;
    if ((int)padded > capacity || !block) {
        free(block);
        block = malloc(sizeof(double) * 17 * (padded ? padded : 1));
        capacity = block ? (int)padded : 0;
    }
    memset(side, 0, sizeof *side);
    side->dm = block;
    side->capacity = capacity;
    if (!block)
        return -1;
    side->is = block + padded, side->c = block + 2 * padded, side->ce = block + 3 * padded;
    side->r = block + 4 * padded;
    side->log_r = block + 5 * padded, side->slope = block + 6 * padded, side->curvature = block + 7 * padded;
    side->offset = block + 8 * padded, side->scratch = block + 9 * padded;
    return 0;
}

typedef struct {
    double bound, origin, x0, h, lower_p, lower_q, upper_p, upper_q;
    fp_accumulator lost;
    int start_p, n_p, start_q, n_q;
} fp_panel;

/* Zeroed before its first use; the memory is used again by the next integral. */
typedef struct {
    int kind;
    double b, reach; /* order minus one; half-width that the root must have at least */
    double unit;     /* of the information: its integrand is multiplied by it (fp_information_nodes); 0 stands for 1 */
    double target;   /* relative discretisation error to aim at */
    fp_gaussian_mixture p, q;
    const fp_log_ratio_terms *ratio; /* NULL: log(p/q) in doubles */
    long max_panels, max_work;
    fp_stop_token stop;
    /* results: integral = e^scale (sum +- (truncation + rounding)) */
    double scale, log_width, mass, truncation, rounding;
    fp_accumulator sum;
    long panels, evaluations, work; /* work: exponentials, about */
    /* state */
    fp_local_mixture side_p, side_q;
    fp_panel *heap;
    int *arena;
    double *prior;
    long waiting, heap_capacity, arena_used, arena_capacity, prior_capacity;
} fp_integral;

static inline int fp_heap_push(fp_integral *w, fp_panel panel)
{
    if (w->waiting == w->heap_capacity) {
        const long room = 2 * w->heap_capacity + 64;
        fp_panel *heap = realloc(w->heap, sizeof(fp_panel) * (size_t)room);
        if (!heap)
            return -1;
        w->heap = heap;
        w->heap_capacity = room;
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

/* log x, or a bound of it where t^2 / 2 has overflowed: |x - m| / s <= 1e601. */
static inline double fp_log_size(double x) { return x < 1e300 ? fp_log(x) : 2800.0; }

/* log of an upper bound of the integral of |integrand| over a panel on which up and uq bound log p and log q from
 * above, lower_p and lower_q from below */
static inline double fp_mass_bound(const fp_integral *w, double up, double uq, const fp_panel *panel)
{
    const double a = 1.0 + w->b, width = fp_log(2.0 * panel->h);
    const double far_q = w->b > 0.0 ? panel->lower_q : uq;
    const double phi = a * up - w->b * far_q + 1e-15 * (fabs(a * up) + fabs(w->b * far_q));
    switch (w->kind) {
    case FP_KL:
        return width + fp_log_sum(up + fp_log_size(fp_max(up - panel->lower_q, 1e-300)), uq);
    case FP_JS:
        return width + fp_log_sum(up, uq);
    case FP_ENTROPY:
        return width + up + fp_log_size(fp_max(fabs(up), fabs(panel->lower_p)) + 1e-300);
    case FP_RENYI:
        return width + phi;
    case FP_RENYI_SMALL:
        return width + fp_log_renyi_small(up, uq, phi, w->b, up - panel->lower_q);
    default:
        return width + uq + 7.0; /* log(1 / prior) is below 745 */
    }
}

/* Give a panel that is narrow for its distance from the origin a new origin by an exact translation; 0 if there is
 * none. */
static inline int fp_panel_move(const fp_integral *w, fp_panel *panel)
{
    const double centre = panel->origin + panel->x0, distance = fabs(panel->x0);
    double best = INFINITY, origin = 0.0;
    for (int side = 0; side < 2; side++) {
        const fp_gaussian_mixture *law = side ? &w->q : &w->p;
        const int *index = w->arena + (side ? panel->start_q : panel->start_p), n = side ? panel->n_q : panel->n_p;
        for (int j = 0; j < n; j++) {
            const double away = fabs(fp_distance(law, index[j], panel->origin, panel->x0));
            if (away < best)
                best = away, origin = law->m[index[j]];
        }
    }
    if (best > panel->h) { /* no mean inside */
        if (centre - panel->origin != panel->x0 || centre - panel->x0 != panel->origin)
            return 0;
        origin = centre;
    }
    const double shift = origin - panel->origin, moved = panel->x0 - shift;
    const fp_dd first = fp_two_sum(origin, -panel->origin), second = fp_two_sum(panel->x0, -shift);
    if (first.lo != 0.0 || second.lo != 0.0 || fabs(moved) > 2.0 * panel->h || !(fabs(moved) < distance))
        return 0;
    panel->origin = origin;
    panel->x0 = moved;
    return 1;
}

/* Add the panel at (x0, h), with components selected from those of its parent. */
static inline int fp_panel_add(fp_integral *w, const fp_panel *parent, double x0, double h)
{
    fp_panel panel = *parent;
    const long need = w->arena_used + parent->n_p + parent->n_q;
    if (need > w->arena_capacity) {
        int *arena = realloc(w->arena, sizeof(int) * (size_t)(2 * need));
        if (!arena)
            return -1;
        w->arena = arena;
        w->arena_capacity = 2 * need;
    }
    double up = 0.0, uq = 0.0;
    fp_accumulator unused = {0.0, 0.0};
    w->work += 1 + (parent->n_p + parent->n_q) / 2;
    panel.x0 = x0;
    panel.h = h;
    panel.start_p = (int)w->arena_used;
    if (w->p.n)
        panel.n_p = fp_select_components(&w->p, w->arena + parent->start_p, parent->n_p, panel.origin, x0, h,
                                  0, w->arena + w->arena_used, &up, &panel.lower_p, &unused);
    w->arena_used += panel.n_p;
    panel.start_q = (int)w->arena_used;
    if (w->q.n)
        panel.n_q = fp_select_components(&w->q, w->arena + parent->start_q, parent->n_q, panel.origin, x0, h,
                                  w->kind == FP_INFORMATION, w->arena + w->arena_used, &uq, &panel.lower_q,
                                  &panel.lost);
    w->arena_used += panel.n_q;
    panel.upper_p = up;
    panel.upper_q = uq;
    panel.bound = fp_mass_bound(w, up, uq, &panel);
    panel.bound = panel.bound < -1e305 ? -1e305 : isnan(panel.bound) ? INFINITY : panel.bound;
    if (!(panel.bound - w->scale > fp_log(w->mass) - 60.0)) {
        w->truncation += fp_exp(panel.bound - w->scale);
        w->arena_used = panel.start_p;
        return 0;
    }
    return fp_heap_push(w, panel);
}

/* Where one input r has nearly all of the prior and of q, delta = (q - N_r) / N_r is at most D = sum over the others of
 * pi_j (|N_j / N_r| + 1) on the ellipse, and its term |pi_r N_r (delta - log(1 + delta))| at most D^2 |q| / (2 (1 -
 * D)^2), 2 D^2 |q| for D <= 1/2: the integrand is as small as the prior of the others. */
static inline double fp_log_modulus_information(fp_integral *w, double log_q, double radius, double lost, double slip)
{
    const fp_local_mixture *side = &w->side_q;
    double sum = 1.0, small = 0.0, others = 2.0 * lost, distance = lost;
    int tiny = w->side_q.n == w->q.n, largest = 0;
    if (w->unit > 1.0) {
        for (int j = 1; j < side->n; j++)
            largest = side->r[j] > side->r[largest] ? j : largest;
        const double g_r = (side->slope[largest] + side->curvature[largest] * radius) * radius;
        for (int j = 0; j < side->n; j++) {
            if (j == largest)
                continue;
            const double g = (side->slope[j] + side->curvature[j] * radius) * radius;
            const double log_rho = side->log_r[j] - fp_log(w->prior[j]);
            const double size = fabs(log_rho) + g + side->lambda + slip, weight = fp_exp(side->log_r[j] + g);
            distance += fp_exp(side->log_r[j] - side->log_r[largest] + g + g_r) + w->prior[j];
            others += weight * (size + 1.0) + 2.0 * w->prior[j];
        }
        others += 4.0 * distance * distance;
        if (distance <= 0.5) /* subnormal sums err by a unit of each term */
            return log_q + fp_log(1.000001 * others + 1e-323 * side->n);
    }
    for (int j = 0; j < side->n; j++) {
        const double g = (side->slope[j] + side->curvature[j] * radius) * radius;
        const double log_rho = side->log_r[j] - fp_log(w->prior[j]);
        const double size = fabs(log_rho) + g + side->lambda + slip, weight = fp_exp(side->log_r[j] + g);
        sum += weight * (size + 1.0);
        small += w->prior[j] * size * size * fp_exp(2.0 * (size < 1.0 ? size : 1.0));
        tiny &= size < 1.0;
    }
    return log_q + fp_log(tiny && 0.5 * small < sum ? 0.5 * small : sum);
}

/* log of a bound of the modulus of the integrand on the ellipse of parameter rho, infinity where none is known; b
 * is the order minus one, or the factor of a mass; lost is the prior of the inputs that were dropped. */
static inline double fp_log_modulus(fp_integral *w, int kind, double b, double rho, double lost)
{
    const double x = 0.5 * (rho + 1.0 / rho), y = 0.5 * (rho - 1.0 / rho);
    fp_local_mixture *sides[2] = {&w->side_p, &w->side_q};
    double log_m[2] = {0.0, 0.0}, rounding[2] = {0.0, 0.0};
    for (int k = 0; k < 2; k++) {
        fp_local_mixture *s = sides[k];
        if (!s->n)
            continue;
        s->kappa = fp_quadrature_kernels_in_use()->kappa(s, x);
        if (s->slip >= 1e-3 && !(kind == FP_KL && k == 1)) { /* q of KL: fp_panel_integrate */
            double most = 0.0; /* kappa is at most e^g - 1 for the largest g, whatever the shares are */
            for (int j = 0; j < s->n; j++)
                most = fp_max(most, (s->slope[j] + s->curvature[j] * x) * x);
            s->kappa = fp_min(s->kappa * fp_exp(2.0 * s->slip), 1.001 * fp_expm1(most) + 1e-9);
        }
        if (!(s->kappa < 0.97))
            return INFINITY;
        s->lambda = fp_log_loss(s->kappa);
        const double change = (fabs(s->alpha) + fabs(s->beta) * x) * x; /* of log p, to a factor of two */
        if (!(change < 1e300 && s->l0 > -INFINITY)) /* the maximum below would be NaN, which fp_max may drop */
            return INFINITY;
        double of_c = 0.0;
        for (int j = 0; j < s->n; j++)
            of_c = fp_max(of_c, s->ce[j]);
        rounding[k] = 4e-15 * (fabs(s->l0) + change) + 20.0 * FP_U * of_c;
        log_m[k] = s->l0 + fp_quadratic_maximum(s->alpha, s->beta, x, y) + s->kappa + rounding[k]; /* log1p(x) <= x */
    }
    const fp_local_mixture *p = &w->side_p, *q = &w->side_q;
    if (kind == FP_MASS_P || kind == FP_MASS_Q)
        return log_m[kind == FP_MASS_Q] + fp_log(fabs(b));
    const double slope = p->alpha - q->alpha, curvature = p->beta - q->beta, l0 = p->l0 - q->l0, a = 1.0 + b;
    const double slip = 1e-14 + rounding[0] + rounding[1];
    const double size = fabs(l0) + (fabs(slope) + 0.5 * fabs(curvature) * x) * x + p->lambda + q->lambda + slip;
    if (kind == FP_KL)
        return fp_log_modulus_kl(log_m[0], log_m[1], size);
    if (kind == FP_ENTROPY)
        return log_m[0] + fp_log(fabs(p->l0) + (fabs(p->alpha) + 0.5 * p->beta * x) * x + p->lambda);
    if (kind == FP_INFORMATION)
        return fp_log_modulus_information(w, q->l0 + fp_quadratic_maximum(q->alpha, q->beta, x, y), x, lost, slip);
    if (kind == FP_JS)
        return fp_log_modulus_js(p, q, log_m[0], log_m[1], (fabs(slope) + 0.5 * fabs(curvature) * x) * x, slip);
    const double phi = p->l0 + b * l0 + fp_quadratic_maximum(p->alpha + b * slope, p->beta + b * curvature, x, y)
                       + a * fp_log1p(p->kappa) + (b > 0.0 ? b * q->lambda : -b * fp_log1p(q->kappa))
                       + a * rounding[0] + fabs(b) * rounding[1];
    if (kind == FP_RENYI)
        return phi;
    const double plain = fp_log_renyi_small(log_m[0], log_m[1], phi, b, size), y_size = fabs(b) * size;
    const double tight = size < 1.0 && y_size < 1.0
        ? log_m[0] - 0.69 + 2.0 * fp_log(size) + fp_log(fabs(b) * fp_exp(y_size) + fp_exp(size))
        : INFINITY;
    return plain < tight ? plain : tight;
}

typedef struct {
    double value, mass, rounding;
} fp_panel_sum;

/* The N-point rule on the current panel; the result must not be used when it was stopped. */
static inline fp_panel_sum fp_panel_rule(fp_integral *w, const fp_panel *panel, int kind, double b, int rule)
{
    const int n = 8 * (rule + 1);
    const double *d = fp_legendre_nodes[rule], *weights = fp_legendre_weights[rule];
    double lp[32], lq[32], l[32], dp[32], dq[32], dl[32], f[32], err[32], unit = panel->h;
    const fp_quadrature_kernels *table = fp_quadrature_kernels_in_use();
    for (int k = 0; k < n; k++)
        lp[k] = lq[k] = dp[k] = dq[k] = 0.0;
    w->work += (long)n * (w->side_p.n + w->side_q.n);
    if (kind == FP_INFORMATION) {
        fp_local_mixture *side = &w->side_q;
        int reference = 0;
        unit = 1.0;
        for (int j = 1; j < side->n; j++)
            reference = side->r[j] > side->r[reference] ? j : reference;
        for (int j = 0; j < side->n; j++)
            side->offset[j] = (w->q.m[side->index[j]] - w->q.m[side->index[reference]])
                              * w->q.is[side->index[reference]];
        const int direct = w->prior[reference] < 0.5 * side->r[reference]; /* q < N_reference / 2 at the centre */
        table->information(side, w->prior, reference, direct, fp_accumulator_value(&panel->lost), w->unit, d, n, f, err);
    } else {
        if (w->side_p.n)
            table->nodes(&w->side_p, d, n, lp, dp);
        if (w->side_q.n)
            table->nodes(&w->side_q, d, n, lq, dq);
        for (int k = 0; k < n && !w->stop.status; k++) {
            l[k] = lp[k] - lq[k];
            dl[k] = dp[k] + dq[k];
            if (w->ratio && (kind == FP_KL || kind == FP_JS || kind == FP_RENYI_SMALL) && fabs(l[k]) < FP_FARTHEST
                && fabs(lq[k]) < FP_FAR_RATIO) {
                const fp_point at = {panel->origin, panel->x0, panel->h, d[k], fp_legendre_tails[rule][k]};
                l[k] = fp_log_ratio_from_difference(w->ratio, &at, l[k], lq[k], dq[k], dl + k);
                w->work += 30 * (w->ratio->difference.n + w->ratio->q.n);
                fp_stop_requested(&w->stop, 30 * (w->ratio->difference.n + w->ratio->q.n));
            }
        }
        if (kind != FP_ENTROPY && !(panel->h < 0x1p200 && panel->h > 0x1p-200)) {
            const double log_h = fp_log(panel->h);
            unit = 1.0; /* densities are scaled by the panel, lest they overflow or underflow */
            for (int k = 0; k < n; k++) {
                lp[k] += log_h, lq[k] += log_h; /* l does not change: the integrands are homogeneous */
                dp[k] += 4.0 * FP_U * (fabs(lp[k]) + fabs(log_h));
                dq[k] += 4.0 * FP_U * (fabs(lq[k]) + fabs(log_h));
            }
        }
        if (w->stop.status)
            return (fp_panel_sum){0.0, 0.0, 0.0};
        table->integrand(kind, b, w->scale, n, lp, lq, l, dp, dq, dl, f, err);
    }
    w->evaluations += n;
    fp_panel_sum s = {0.0, 0.0, 0.0};
    for (int k = 0; k < n; k++) {
        s.value += weights[k] * f[k];
        s.mass += weights[k] * fabs(f[k]);
        s.rounding += weights[k] * err[k];
    }
    s.value *= unit, s.mass *= unit;
    s.rounding = unit * s.rounding + 40.0 * FP_U * s.mass;
    return s;
}

static inline void fp_integral_add(fp_integral *w, fp_panel_sum s, double truncation)
{
    fp_accumulator_add(&w->sum, s.value);
    w->mass += s.mass;
    w->rounding += s.rounding;
    w->truncation += truncation;
    w->panels++;
}

/* The scale follows the largest integrand at a centre times the width over which it stays (order-alpha integrals
 * only). */
static inline void fp_integral_rescale(fp_integral *w, double log_h)
{
    if (w->kind != FP_RENYI)
        return;
    const fp_local_mixture *p = &w->side_p, *q = &w->side_q;
    const double slope = p->alpha + w->b * (p->alpha - q->alpha), curvature = p->beta + w->b * (p->beta - q->beta);
    const double width = log_h - fp_log(1.0 + fabs(slope) + sqrt(fabs(curvature)));
    const double phi = p->l0 + w->b * (p->l0 - q->l0) + width;
    if (!(phi > w->scale))
        return;
    const double fall = fp_min(phi - w->scale, 800.0), factor = fp_exp(-fall);
    w->sum.high *= factor, w->sum.low *= factor, w->mass *= factor, w->truncation *= factor, w->rounding *= factor;
    w->rounding += 4.0 * FP_U * w->mass * (1.0 + fabs(phi) + fall);
    w->scale = phi;
    w->log_width = width;
}

/* The integrand on a panel where p or q is negligible: r log(1/r) + r <= 82 e^-80 of the other, r their ratio; or,
 * Renyi of order a >= 1/2, r^a log(1/r) + r <= 162 e^-80. */
static inline int fp_panel_kind(const fp_integral *w, const fp_panel *panel, double *b)
{
    const int kind = w->kind;
    const double a = 1.0 + w->b;
    *b = w->b;
    if (kind != FP_KL && kind != FP_JS && kind != FP_RENYI_SMALL)
        return kind;
    const double no_p = panel->lower_q - panel->upper_p, no_q = panel->lower_p - panel->upper_q;
    if (no_p > FP_NEGLECTED && (kind != FP_RENYI_SMALL || fp_min(a, 1.0) * no_p > FP_NEGLECTED)) {
        *b = kind == FP_JS ? 0.34657359027997265 : 1.0;
        return FP_MASS_Q;
    }
    if (kind == FP_JS && no_q > FP_NEGLECTED) {
        *b = 0.34657359027997265;
        return FP_MASS_P;
    }
    if (kind == FP_RENYI_SMALL && w->b < 0.0 && -w->b * no_q > FP_NEGLECTED) {
        *b = -a / w->b;
        return FP_MASS_P;
    }
    return kind;
}

/* 1: the panel is done; 0: it must be halved. */
static inline int fp_panel_integrate(fp_integral *w, const fp_panel *panel)
{
    const fp_quadrature_kernels *table = fp_quadrature_kernels_in_use();
    double b;
    const int kind = fp_panel_kind(w, panel, &b);
    w->side_p.n = w->side_q.n = 0;
    if (panel->n_p && kind != FP_MASS_Q) {
        fp_local_gather(&w->side_p, &w->p, w->arena + panel->start_p, panel->n_p, panel->origin, panel->x0, panel->h);
        table->centre(&w->side_p);
        fp_local_tail(&w->side_p, &w->p, panel->origin, panel->x0);
    }
    if (panel->n_q && kind != FP_MASS_P) {
        fp_local_gather(&w->side_q, &w->q, w->arena + panel->start_q, panel->n_q, panel->origin, panel->x0, panel->h);
        table->centre(&w->side_q);
        fp_local_tail(&w->side_q, &w->q, panel->origin, panel->x0);
    }
    if (kind == FP_INFORMATION)
        for (int j = 0; j < panel->n_q; j++)
            w->prior[j] = w->q.w[w->side_q.index[j]];
    double best[FP_RULES] = {INFINITY, INFINITY, INFINITY, INFINITY}, wanted = 0.0, floor = 0.0, log_floor = 0.0;
    const double log_h = fp_log(panel->h);
    double peak = fp_max(w->side_p.n ? w->side_p.l0 : -1e300, w->side_q.n ? w->side_q.l0 : -1e300);
    if (kind == FP_KL)
        peak = fp_max(peak, w->side_p.l0 + fp_log1p(fabs(w->side_p.l0 - w->side_q.l0)));
    for (int i = 0; i < FP_ELLIPSES; i++) {
        const double rho = fp_ellipse_parameters[i], log_m = fp_log_modulus(w, kind, b, rho, fp_accumulator_value(&panel->lost));
        w->work += w->side_p.n + w->side_q.n;
        if (!(log_m < INFINITY))
            break;
        if (i == 0) {
            fp_integral_rescale(w, log_h);
            floor = 0.05 * w->target * w->mass + FP_NEGLIGIBLE;
            log_floor = fp_log(floor);
            /* a first guess of the accuracy that suffices, from the size of p and q */
            wanted = fp_max(fp_log(w->target) + log_h + (w->kind == FP_RENYI ? -w->log_width : peak - 3.0),
                            log_floor);
            if (log_m + log_h + 0.7 - w->scale < fp_log(1e-4 * w->target * w->mass + FP_NEGLIGIBLE)) {
                w->truncation += fp_exp(log_m + log_h + 0.7 - w->scale);
                w->panels++;
                return 1;
            }
        }
        const double front = log_m + log_h + fp_ellipse_fronts[i] - w->scale + 1e-6;
        for (int r = 0; r < FP_RULES; r++) {
            const double log_bound = front - 16.0 * (r + 1) * fp_ellipse_logs[i];
            best[r] = log_bound < best[r] ? log_bound : best[r];
        }
        if (best[0] <= log_floor) /* certain to be accepted */
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
        s = fp_panel_rule(w, panel, kind, b, rule);
        if (w->stop.status)
            return 0;
        const double allowed = w->target * s.mass + floor + 0.02 * s.rounding;
        const int before = rule;
        while (rule < FP_RULES - 1 && fp_exp(best[rule]) > allowed)
            rule++;
        if (!(fp_exp(best[rule]) <= allowed))
            return 0;
        if (rule == before)
            break;
    }
    if (kind != w->kind)
        s.rounding += 1e-31 * s.mass;
    if (kind == FP_KL && w->side_q.slip >= 1e-3) /* q was taken for a mixture of weights that are off by e^slip */
        s.rounding += 4.0 * w->side_q.slip * (fp_exp(panel->upper_p + log_h)
                                              + fp_exp(panel->upper_q + log_h + w->side_q.slip));
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

/* Returns 0, or -1 when memory is short. p and q are already built. */
static inline int fp_integral_start(fp_integral *w)
{
    const int n = w->p.n + w->q.n;
    w->unit = w->unit > 0.0 ? w->unit : 1.0;
    w->scale = w->kind == FP_RENYI ? -INFINITY : w->unit == 1.0 ? 0.0 : -fp_log(w->unit);
    w->log_width = 0.0;
    w->sum = (fp_accumulator){0.0, 0.0};
    w->mass = w->truncation = w->rounding = 0.0;
    w->panels = w->evaluations = w->work = w->waiting = w->arena_used = 0;
    if (w->arena_capacity < 16 * (long)n + 1024) {
        free(w->arena);
        w->arena = malloc(sizeof(int) * (16 * (size_t)n + 1024));
        w->arena_capacity = w->arena ? 16 * (long)n + 1024 : 0;
    }
    if (w->prior_capacity < n + 8) {
        free(w->prior);
        w->prior = malloc(sizeof(double) * (size_t)(n + 8));
        w->prior_capacity = w->prior ? n + 8 : 0;
    }
    const int failed = fp_local_build(&w->side_p, w->p.n) | fp_local_build(&w->side_q, w->q.n);
    if (failed || !w->arena || !w->prior)
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
    return fp_panel_add(w, &root, 0.0, ldexp(1.0, exponent < 1020 ? exponent : 1020));
}

/* Bounds of the logarithm of the integral of p^a q^(1 - a) over a panel.  With r and s the largest components of p and
 * q at its centre, a log p - b log q is a e_r - b e_s, a quadratic, up to what the other components can add. */
static inline void fp_renyi_panel(const fp_integral *w, const fp_panel *panel, double *lower, double *upper)
{
    const double a = 1.0 + w->b, factors[2] = {a, -w->b};
    double value = 0.0, linear = 0.0, square = 0.0, error = 0.0, more[2];
    for (int side = 0; side < 2; side++) {
        const fp_gaussian_mixture *law = side ? &w->q : &w->p;
        const int *index = w->arena + (side ? panel->start_q : panel->start_p), n = side ? panel->n_q : panel->n_p;
        const int reference = fp_largest_component(law, index, n, index[0], panel->origin, panel->x0);
        double most = 0.0;
        for (int j = 0; j < n; j++) { /* NaN where squares have overflowed: then nothing is known */
            const double ratio =
                fp_component_ratio_bound(law, index[j], reference, panel->origin, panel->x0, panel->h);
            most = ratio == ratio ? fp_max(most, ratio) : INFINITY;
        }
        more[side] = factors[side] * (most + (n > 1 ? fp_log((double)n) : 0.0)) * 1.000001;
        const double t = fp_distance(law, reference, panel->origin, panel->x0) * law->is[reference];
        const double step = panel->h * law->is[reference], size = fabs(t) + step;
        value += factors[side] * (law->c[reference] - 0.5 * t * t);
        linear -= factors[side] * t * step;
        square -= 0.5 * factors[side] * step * step;
        error += fabs(factors[side]) * (size * size + fabs(law->c[reference]) + 1e3);
    }
    const double width = fp_log(2.0 * panel->h), ends = square - fabs(linear);
    const int inside = fabs(linear) < 2.0 * fabs(square);
    const double vertex = inside ? -0.25 * linear * linear / square : 0.0;
    const double most = fp_max(fabs(linear) + square, inside && square < 0.0 ? vertex : 0.0);
    const double least = fp_min(ends, inside && square > 0.0 ? vertex : 0.0);
    error *= 4e-15;
    *upper = width + value + most + fp_max(more[0], 0.0) + fp_max(more[1], 0.0) + error;
    *lower = width + value + least + fp_min(more[0], 0.0) + fp_min(more[1], 0.0) - error;
}

/* Bounds of the logarithm of an integral of order a from bounds of p^a q^(1 - a) on panels alone, for mixtures so
 * far apart that the rounding of log p leaves no digit of the integral but all relevant digits of its logarithm.
 * The integral must be started, of kind FP_RENYI; returns 0, or -1 when memory is short. The part outside the root
 * is not included. When stopped, the bounds are wide. */
static inline int fp_renyi_bounds(fp_integral *w, double *lower, double *upper)
{
    double least = -INFINITY;
    for (long step = 0; w->waiting && step < FP_BOUND_PANELS; step++) {
        if (fp_stop_requested(&w->stop, 8 * (w->heap[0].n_p + w->heap[0].n_q)))
            break;
        if (least > -INFINITY && w->heap[0].bound + fp_log((double)w->waiting) - least <= 1e-15 * fabs(least))
            break;
        fp_panel panel = fp_heap_pop(w);
        const double half = 0.5 * panel.h;
        double inside, bound;
        fp_renyi_panel(w, &panel, &inside, &bound);
        least = inside > least ? inside : least;
        if (bound < panel.bound) { /* tighter than when it was added: put it back */
            panel.bound = bound;
            if (fp_heap_push(w, panel))
                return -1;
            continue;
        }
        if (panel.h < FP_NEAR_ORIGIN * fabs(panel.x0))
            fp_panel_move(w, &panel);
        if (half < 0x1p-51 * fabs(panel.x0) || half < FP_LEAST_PANEL) {
            if (fp_heap_push(w, panel))
                return -1;
            break;
        }
        w->panels++;
        if (fp_panel_add(w, &panel, panel.x0 - half, half) || fp_panel_add(w, &panel, panel.x0 + half, half))
            return -1;
    }
    double sum = 0.0; /* in units of the largest bound, that of the first */
    for (long i = 0; i < w->waiting; i++)
        sum += fp_exp(w->heap[i].bound - w->heap[0].bound);
    *lower = least;
    *upper = sum >= 1.0 ? w->heap[0].bound + fp_log(sum) : w->waiting ? INFINITY : -INFINITY;
    *upper += 1e-12 + 1e-15 * fabs(*upper);
    return 0;
}

/* 0: done; 1: budget spent, or FP_EXPIRED (the bounds are valid but wide); -1: memory is short; FP_INTERRUPTED. */
static inline int fp_integral_run(fp_integral *w)
{
    long before = w->work;
    while (w->waiting) {
        fp_stop_requested(&w->stop, w->work - before);
        before = w->work;
        const double most = fp_exp(w->heap[0].bound - w->scale) * (double)w->waiting;
        if (most <= 0.01 * w->target * w->mass + FP_NEGLIGIBLE) {
            w->truncation += most;
            return 0;
        }
        if (w->panels + w->waiting > w->max_panels || w->work > w->max_work || w->stop.status) {
            for (long i = 0; i < w->waiting; i++)
                w->truncation += fp_exp(w->heap[i].bound - w->scale);
            return w->stop.status ? w->stop.status : 1;
        }
        fp_panel panel = fp_heap_pop(w);
        const double half = 0.5 * panel.h;
        if (panel.h < FP_NEAR_ORIGIN * fabs(panel.x0))
            fp_panel_move(w, &panel);
        if (half < 0x1p-51 * fabs(panel.x0) || half < FP_LEAST_PANEL) {
            w->truncation += fp_exp(panel.bound - w->scale);
            w->panels++;
            continue;
        }
        if (fp_panel_integrate(w, &panel))
            continue;
        if (w->stop.status) { /* stopped halfway: put it back */
            if (fp_heap_push(w, panel))
                return -1;
            continue;
        }
        if (fp_panel_add(w, &panel, panel.x0 - half, half) || fp_panel_add(w, &panel, panel.x0 + half, half))
            return -1;
    }
    return 0;
}

#endif
