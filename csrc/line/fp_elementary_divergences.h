/* Bounds of KL, Jensen-Shannon and Renyi divergences that need no integral, which close every computation of one.
 *
 * docs/proofs/quadrature.md, theorem 4.6 has the derivations. Notation of fp_integrand.h and fp_elementary_bounds.h: P
 * and Q have mass 1, a is the order, b = a - 1 > -1, and b = 0 stands for KL. chi^2 = e^(D_2) - 1 and the Hellinger
 * affinity e^(-D_(1/2) / 2) are the orders 2 and 1/2.
 *
 * Lower bounds, by data processing: with S_c the integrand of fp_integrand.h for the masses p and q of a cell in the
 * place of densities, D >= log1p(b S) / b with S the sum of S_c >= 0 over cells (S itself for KL and JS), and for b < 0
 * D >= log(sum of p^a q^-b) / b over a cover of the line. S_c is convex and 0 where p = q, so that it is least where
 * errors of the masses bring p and q nearest to each other. The cells lie around the component of P that costs most
 * below, and around the narrowest component. Where q is below the doubles, its logarithm is bounded by the distances of
 * the means, and that cell alone gives KL >= p (log(p/q) - 1) and, for b > 0, D >= log(p/q) + log(p) / b.
 *
 * Upper bound, by a coupling: each component P_i is assigned a component Q_j, j = j(i); W_j is the sum of the w_i
 * assigned to it. Draw a label i and a point of P_i; against it, the label i with probability v_j w_i / W_j and a point
 * of Q_j (a component of Q without label is a label of its own, which P never draws). The points alone have the
 * densities p and q, so that by data processing (van Erven and Harremoes 2014, theorem 9)
 *     D_a(P||Q) <= log(sum w_i^a (v_j w_i / W_j)^(1-a) e^(b D_a(P_i||Q_j))) / b = log(sum w_i e^(b c_i)) / b,
 *     c_i = D_a(P_i||Q_j) + log(W_j / v_j),
 * for KL the sum of w_i c_i. The assignment is that of the least D_a(P_i||Q_j) - log v_j, or KL in the place of D_a.
 *
 * JS <= 1 - B, B = integral of sqrt(p q): phi(t) = sum of d_k t^(2k) and 1 - sqrt(1 - t^2) = sum of e_k t^(2k), d_1 =
 * e_1 = 1/2, d_(k+1) / d_k = 2k / (2k + 1) times e_(k+1) / e_k = (2k - 1) / (2k + 2); m sqrt(1 - t^2) = sqrt(p q). */
/* bounds: proved - rounding of bounds from cells and from couplings: docs/proofs/quadrature.md, theorem 4.10 */
#ifndef FP_ELEMENTARY_DIVERGENCES_H
#define FP_ELEMENTARY_DIVERGENCES_H

#include "line/fp_elementary_bounds.h"
#include "line/fp_integrand.h"

/* bound: none - pairs of components beyond which no coupling is sought, and up to which it is sought by D itself */
#define FP_MAX_COUPLED_PAIRS 1000000L
#define FP_FEW_COUPLED_PAIRS 256L
/* bound: proved - relative, of a few logarithms: 900 units of 2^-53, theorem 4.10 */
#define FP_FEW_ROUNDINGS 1e-13
/* bound: proved - of closed forms with terms that cancel to a twentieth, 2e-12: theorem 4.10 */
#define FP_COUPLING_ROUNDING 1e-9

/* One mixture; `gap` bounds the distance of the sum of its weights from 1. */
typedef struct {
    int n;
    const double *w, *m, *s;
    double gap;
} fp_mixture_columns;

/* x - log(1 + x) */
FP_INLINE double fp_excess(double x)
{
    if (fabs(x) > 0.25)
        return x - fp_log1p(x);
    const double y = x / (2.0 + x), square = y * y; /* log(1 + x) = 2 (y + y^3/3 + ...) and x - 2 y = x y */
    double tail = 0.0;
    for (int k = 25; k > 1; k -= 2)
        tail = tail * square + 2.0 / k;
    return x * y - y * square * tail;
}

/* D of two Gaussians by the formula at the head of fp_mixture_integrals_solver.h, b >= -1/2; square is z^2. */
FP_INLINE double fp_gaussian_divergence(double b, double s, double t, double square)
{
    if (s == t)
        return 0.5 * (1.0 + b) * square;
    const double gap = (s - t) / t, x = gap * ((s + t) / t), y = -b * x;
    const double log_ratio = gap < -0.5 ? fp_log(s / t) : fp_log1p(gap);
    const double excess = fabs(x) > 0.25 ? x - 2.0 * log_ratio : fp_excess(x);
    if (b == 0.0)
        return 0.5 * (excess + square);
    const double rest = fabs(x) <= 0.25 ? excess + fp_excess(y) / b
                                        : (fabs(y) < 1e-17 ? x : -fp_log1p(y) / b) - 2.0 * log_ratio;
    return (1.0 + b) * square / (2.0 * (1.0 + y)) + 0.5 * rest;
}

/* Lower bound of JS (`kind` FP_JS) or of D from the cells around N(centre, sigma^2). */
static inline double fp_divergence_of_cells(int kind, double b, double centre, double sigma,
                                            const fp_mixture_columns *p, const fp_mixture_columns *q)
{
    fp_interval_mass cell[FP_CELLS];
    double sum = 0.0, integral = 0.0, best = 0.0;
    fp_cells_around(centre, sigma, p->n, p->w, p->m, p->s, q->n, q->w, q->m, q->s, cell);
    for (int c = 0; c < FP_CELLS; ++c) {
        const double p_error = cell[c].p_error + 1.1 * p->gap * cell[c].p;
        const double q_error = cell[c].q_error + 1.1 * q->gap * cell[c].q;
        const double high_p = cell[c].p + p_error, high_q = cell[c].q + q_error;
        const int above = cell[c].p - p_error > high_q, below = high_p < cell[c].q - q_error;
        const double x = above ? cell[c].p - p_error : high_p, y = below ? cell[c].q - q_error : high_q;
        if (b < 0.0)
            integral += fp_exp((1.0 + b) * fp_log(high_p) - b * fp_log(high_q));
        if (!above && !below)
            continue;
        const double lx = fp_log(x), dx = 4.0 * FP_U * (1.0 + fabs(lx));
        const double ly = fp_log(y), dy = 4.0 * FP_U * (1.0 + fabs(ly));
        const int near = fabs(x - y) < 0.5 * y;
        const double l = near ? fp_log1p((x - y) / y) : lx - ly, dl = near ? 8.0 * FP_U * fabs(l) : dx + dy;
        double error;
        if (b * l + lx > 600.0) { /* p^a q^-b alone: e^(b l) may leave the range of doubles */
            best = fp_max(best, (l - dl) + (lx - dx) / b);
            continue;
        }
        const double term = kind == FP_JS ? fp_js_node(lx, ly, l, dx, dy, dl, &error)
            : b == 0.0                    ? fp_kl_node(lx, ly, l, dx, dy, dl, &error)
                                          : fp_renyi_small_node(lx, ly, l, b, dx, dy, dl, &error);
        sum += fp_max(term - error, 0.0);
    }
    if (b < 0.0 && integral < 0.5)
        best = fp_log(integral) / b;
    const double x = cell[1].p - cell[1].p_error - 1.1 * p->gap * cell[1].p;
    if (kind != FP_JS && b >= 0.0 && x > 0.0 && cell[1].q < 1e-290) {
        double top = -INFINITY; /* log Q of the cell from above, from the distances of the means */
        for (int j = 0; j < q->n; ++j) {
            const double away = fabs(centre - q->m[j]) * (1.0 - FP_FEW_ROUNDINGS) - FP_CELL_END * sigma;
            const double d = fp_max(away, 0.0) / q->s[j];
            top = fp_max(top, fp_log(q->w[j]) - 0.5 * d * d);
        }
        const double lx = fp_log(x), l = lx - top - fp_log((double)q->n) - 1e-9;
        best = fp_max(best, b == 0.0 ? x * (l - 1.0) : l + lx / b);
        best = fp_min(best, 1.7976931348623157e308);
    }
    sum *= 1.0 - FP_FEW_ROUNDINGS;
    const double y = b * sum;
    if (sum > 0.0 && y > -1.0)
        best = fp_max(best, fabs(y) < 1e-17 ? sum : fp_log1p(y) / b);
    return best * (1.0 - FP_FEW_ROUNDINGS);
}

/* Whether D of two Gaussians is finite, well away from the order at which it diverges; x = (s / t)^2 - 1. */
FP_INLINE int fp_has_order(double b, double x) { return 1.0 - b * x > 1e-3 * (1.0 + fabs(b * x)); }

/* Upper bound of D, infinite where nothing is known; of the components of P `costliest` takes most of it. `buffer` has
 * room for two numbers for each component. */
static inline double fp_divergence_of_coupling(double b, const fp_mixture_columns *p, const fp_mixture_columns *q,
                                               double *buffer, int *costliest)
{
    double *cost = buffer, *partner = cost + p->n, *log_ratio = partner + p->n, *scale = log_ratio + q->n;
    const long pairs = (long)p->n * q->n;
    const int by_kl = b == 0.0 || pairs > FP_FEW_COUPLED_PAIRS; /* any assignment gives a bound */
    *costliest = 0;
    if (pairs > FP_MAX_COUPLED_PAIRS)
        return INFINITY;
    for (int j = 0; j < q->n; ++j)
        log_ratio[j] = fp_log(q->s[j]) - fp_log(q->w[j]), scale[j] = 1.0 / q->s[j];
    for (int i = 0; i < p->n; ++i) {
        const double m = p->m[i], s = p->s[i];
        double least = INFINITY;
        int nearest = 0;
        for (int j = 0; j < q->n; ++j) {
            const double z = (m - q->m[j]) * scale[j], r = s * scale[j], x = (r - 1.0) * (r + 1.0);
            if (b > 0.0 && !fp_has_order(b, x))
                continue;
            const double score = by_kl ? 0.5 * (x + z * z) + log_ratio[j]
                                       : fp_gaussian_divergence(b, s, q->s[j], z * z) + log_ratio[j] - fp_log(q->s[j]);
            if (score < least) /* false for NaN */
                least = score, nearest = j;
        }
        partner[i] = nearest;
    }
    double *assigned = scale;
    for (int j = 0; j < q->n; ++j)
        assigned[j] = 0.0;
    for (int i = 0; i < p->n; ++i) {
        const int j = (int)partner[i];
        const double z = (p->m[i] - q->m[j]) / q->s[j], r = p->s[i] / q->s[j];
        const int finite = fp_has_order(b, (r - 1.0) * (r + 1.0));
        const double d = finite ? fp_gaussian_divergence(b, p->s[i], q->s[j], z * z) : INFINITY;
        cost[i] = d < INFINITY ? d : INFINITY; /* and for NaN */
        assigned[j] += p->w[i];
        *costliest = p->w[i] * cost[i] > p->w[*costliest] * cost[*costliest] ? i : *costliest;
    }
    double base = b > 0.0 ? -INFINITY : INFINITY, sum = 0.0, integral = 0.0;
    for (int i = 0; i < p->n; ++i) {
        const double mass = assigned[(int)partner[i]], v = q->w[(int)partner[i]];
        const int near = fabs(mass - v) < 0.5 * v;
        const double log_mass = fp_log(mass), log_v = fp_log(v), l = near ? fp_log1p((mass - v) / v) : log_mass - log_v;
        const double slack = FP_FEW_ROUNDINGS * fabs(l) + (near ? 0.0 : 4.0 * FP_U * (fabs(log_mass) + fabs(log_v)));
        cost[i] = cost[i] * (1.0 + FP_COUPLING_ROUNDING) + l + slack + 2.0 * (p->gap + q->gap + FP_U * p->n);
        base = b > 0.0 ? fp_max(base, cost[i]) : fp_min(base, cost[i]);
    }
    if (!(base < INFINITY))
        return INFINITY;
    for (int i = 0; i < p->n; ++i) { /* b (c_i - base) <= 0, and not above 0 for KL */
        const double above = cost[i] - base;
        if (b == 0.0)
            sum += p->w[i] * above;
        else if (above < INFINITY)
            sum += p->w[i] * fp_expm1_quotient(above, b), integral += p->w[i] * fp_exp(b * above);
        else
            sum -= p->w[i] / b;
    }
    const double slack = b > 0.0 ? -2.0 * p->gap : 2.0 * p->gap, y = b == 0.0 ? 0.0 : b * sum * (1.0 + slack);
    const double more = y > -0.5 ? (fabs(y) < 1e-17 ? sum * (1.0 + slack) : fp_log1p(y) / b)
                                 : fp_log(integral * (1.0 - slack)) / b;
    const double upper = base + more + (FP_FEW_ROUNDINGS + 8.0 * FP_U * p->n) * (fabs(base) + fabs(more));
    return upper < INFINITY ? fp_max(upper, 0.0) : INFINITY;
}

/* Bounds of JS (`kind` FP_JS) or of D, b >= -1/2. */
static inline void fp_elementary_divergence(int kind, double b, const fp_mixture_columns *p,
                                            const fp_mixture_columns *q, double *buffer, double *lower, double *upper)
{
    int costliest;
    const int of_p = fp_index_of_least(p->n, p->s), of_q = fp_index_of_least(q->n, q->s);
    const int in_p = p->s[of_p] <= q->s[of_q];
    *upper = fp_divergence_of_coupling(kind == FP_JS ? -0.5 : b, p, q, buffer, &costliest);
    if (kind == FP_JS)
        *upper = -fp_expm1(-0.5 * *upper) * (1.0 + FP_FEW_ROUNDINGS);
    *lower = fp_divergence_of_cells(kind, b, p->m[costliest], p->s[costliest], p, q);
    const double narrowest = in_p ? p->s[of_p] : q->s[of_q];
    if (narrowest < p->s[costliest])
        *lower = fp_max(*lower, fp_divergence_of_cells(kind, b, in_p ? p->m[of_p] : q->m[of_q], narrowest, p, q));
}

#endif
