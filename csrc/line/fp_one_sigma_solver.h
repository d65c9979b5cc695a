/* Integrals of two mixtures of one standard deviation by the trapezoidal rule, with a proved error.
 *
 * Notation. Lengths are in standard deviations, from one of the components; c_i are the means, w_i and v_i the weights
 * of P and Q at c_i, d_i = w_i - v_i, R the range of the means, N_i the density of N(c_i, 1), p = sum w_i N_i, q
 * likewise. z = x + i y, theta = y R < pi, l = log(p/q), W = p/q - 1, order a, b = a - 1.
 *
 * The rule (docs/proofs/quadrature.md, theorem 4.4; nodes left out: 4.5). If f is analytic for |Im z| <= y and vanishes
 * at infinity there, then h sum f(k h) differs from the integral of f by at most 2 M / (e^(2 pi y / h) - 1), where M
 * bounds the integral of |f(x + i y)| over x on both edges of the strip (Trefethen and Weideman 2014, theorem 5.1).
 *
 * In the strip. N_i(z) = N_i(x) e^(y^2/2) e^(i (c_i - x) y). The phases of the components differ by theta at most, so
 * that for any weights >= 0, u the sum of weighted N_i,
 *     cos(theta/2) e^(y^2/2) u(x) <= |u(z)| <= e^(y^2/2) u(x):
 * p, q and their means have no zero, and log(p/q) at z differs from log(p/q) at x by at most
 * kappa = theta - log cos(theta/2). With V the value, Delta = p - q and G a bound of the integral of
 * (sum |d_i| N_i)^2 / q, the integral of |f| is at most e^(y^2/2) times
 *     KL             f = p l - p + q:  V + kappa + 2.75, since E_P |l| <= V + 2/e;
 *                    f = Delta^2 integral_0^1 (1-t) / (q + t Delta) dt:  G / cos(theta/2)
 *     JS             half the sum of two such forms with m = (p + q)/2 in the place of q:
 *                    sum d_i^2 / (2 (w_i + v_i)) / cos(theta/2), and, m >= q/2, G / 2 / cos(theta/2)
 *     Renyi          f = p^a q^(-b):  V cos(theta/2)^-max(b, 0)
 *     Renyi, small   f = (p^a q^(-b) + b q - a p) / b:  ((1 + |b| V) cos(theta/2)^-max(b, 0) + a + |b|) / |b|;
 *                    f = a q^(-b) Delta^2 integral_0^1 (1-t) (q + t Delta)^(a-2) dt, for a <= 2:
 *                    G cos(theta/2)^-3/2
 *     information    f = sum pi_i (N_i log(N_i / q) - N_i + q):  V + kappa + 2.75;
 *                    r the prior of all inputs but one, N_0, r <= 1/2: V + r (kappa + 2.75 + 3 / cos(theta/2)). The terms
 *                    of the others are as before, and with S the sum of theirs of q, and q - N_0 = D, that of N_0 is
 *                    pi_0 D^2 integral_0^1 t / (N_0 + t D) dt, where |D| <= e^(y^2/2) (S + r N_0) and |N_0 + t D| >=
 *                    cos(theta/2) e^(y^2/2) (pi_0 N_0 + t S), in all (2 S + 2 r^2 N_0) / cos(theta/2) at most
 * With g_i the least e^((c_i - c_j)^2) / v_j over j, N_i^2 / q <= g_i N(2 c_i - c_j, 1), so that by the inequality of
 * Cauchy and Schwarz G = (sum |d_i| sqrt(g_i))^2. y is at most sqrt(2 log(1/accuracy)) and theta = 7 pi / 8.
 *
 * Nodes left out. f >= 0 is bounded by functions that fall beyond the outermost nodes, so that the sum over what is
 * left out is at most their integral: with L the distance of the last node from the centres named and Phi(-L) <= phi(L)
 * / L,
 *     KL             Delta^2 / q: G Phi(-L), centres 2 c_i - c_j; or p max(l, 0) + q at a distance u from the means,
 *                    at most 2 phi(u) (1 - log v_r + R (u + R)), v_r the largest: 2 phi(L) ((1 - log v_r + R^2)/L + R)
 *     JS             the same with sum d_i^2 / (2 (w_i + v_i)) Phi(-L), centres c_i, or G / 2
 *     Renyi, a > 1   k^b sum w_i^a v_j^-b e^(a b (c_i - c_j)^2 / 2) Phi(-L), centres a c_i - b c_j
 *     Renyi, a < 1   Phi(-L), centres c_i, since p^a q^(1-a) <= a p + (1-a) q
 *     Renyi, small   as both, with b q more for a > 1 and twice for a < 1, divided by |b|; or, a <= 2, as KL by G
 *     information    sum pi_i log(1/pi_i) Phi(-L), centres c_i, where pi_0 log(1/pi_0) <= r
 * The information of a prior with a small r is computed in units of r, by a power of two.
 *
 * Cancellation. Delta is summed from d_i expm1(c_i (x - c_i / 2)): nothing cancels where one component is far heavier
 * than the other, which is Poisson subsampling, and where all means are close.
 *
 * Poisson subsampling. For whole orders a and P = (1 - r) N_0 + r N_1, Q = N_0 at a distance c (Mironov, Talwar, Zhang
 * 2019, section 3.3), with the terms k = 0 and 1 taken from the sum of weights 1,
 *     integral of p^a q^(1-a) = 1 + sum_{k=2}^a binomial(a, k) (1-r)^(a-k) r^k (e^(k (k-1) c^2 / 2) - 1). */
/* bounds: proved - rounding of means and of sums over nodes, theorem 4.13 of docs/proofs/quadrature.md; range of
 * settings of binomial sums: theorem 4.20 */
#ifndef FP_ONE_SIGMA_SOLVER_H
#define FP_ONE_SIGMA_SOLVER_H

#include "common/fp_dd.h"
#include "line/fp_modulus.h"
#include "line/fp_quadrature_engine.h"

#define FP_MAX_POINTS 32 /* distinct means */
#define FP_MAX_RANGE 20.0 /* of the means, in standard deviations: beyond, panels need fewer nodes */
#define FP_MAX_NODES 1200
#define FP_MAX_INFORMATION_NODES 400 /* of which each takes as long as three of another kind */
#define FP_NODES_AT_ONCE 64
#define FP_LARGEST_EXPONENT 600.0 /* of a ratio of components at a node */
#define FP_LARGEST_BINOMIAL 1024.0 /* order up to which a sum of that many terms is taken */
#define FP_BINOMIALS 64 /* settings of binomial sums at once, a multiple of FP_LANES */
/* bound: none - relative discretisation error aimed at */
#define FP_TRAPEZOID_AIM 1e-16
/* bound: none - the largest that is taken; it enters the bounds whatever it is */
#define FP_TRAPEZOID_ACCEPTED 4e-15
/* bound: proved - what may be lost where products underflow, in all nodes */
#define FP_TRAPEZOID_UNDERFLOW 1e-305

typedef struct {
    int n; /* means but the centre, which is 0 */
    double c[FP_MAX_POINTS], w[FP_MAX_POINTS], v[FP_MAX_POINTS], d[FP_MAX_POINTS];
    double w_centre, v_centre, d_centre, apart; /* apart: the sum of all d_i */
} fp_one_sigma;

#define FP_LOOPS "line/fp_one_sigma_loops.h"
#include "common/fp_variants.h"

typedef struct {
    void (*nodes)(const fp_one_sigma *, double, double, int, double *, double *, double *, double *, double *, double *);
    double (*top)(int, double, const double *, const double *);
    void (*add)(int, const double *, const double *, double *, double *, double *);
    void (*binomials)(int, const double *, const double *, const double *, const double *, const double *,
                      const double *, double *, double *);
} fp_one_sigma_kernels;

static fp_one_sigma_kernels fp_one_sigma_selected;

/* Must be called once, before any integral. */
static inline void fp_one_sigma_select(void)
{
    fp_one_sigma_selected = (fp_one_sigma_kernels){FP_SELECT(fp_one_sigma_nodes), FP_SELECT(fp_one_sigma_top),
                                                   FP_SELECT(fp_one_sigma_add), FP_SELECT(fp_binomial_logs)};
}

/* One integral: e^scale (sum +- (truncation + rounding)). */
typedef struct {
    int kind;
    double b;
    double unit, rare; /* of the information: what it is multiplied by, and the unit times r */
    fp_one_sigma g;
    double low, high;               /* the means */
    double least, most;             /* the centres of the bound of tails by G, or of the Renyi integrand */
    double log_g, log_tail;         /* logarithms of G, and of the sum of the Renyi bounds of tails */
    double simple, largest_v, shannon; /* of the bounds above: JS, v_r, sum of pi_i log(1/pi_i) */
    double scale, sum, truncation, rounding;
    long evaluations;
} fp_trapezoid;

/* Gather the distinct means; 0 where the pair is not of this form. */
static inline int fp_trapezoid_gather(fp_trapezoid *w, int np, const double *pw, const double *pm, const double *ps,
                                      int nq, const double *qw, const double *qm, const double *qs, double apart)
{
    double mean[FP_MAX_POINTS], wp[FP_MAX_POINTS], wq[FP_MAX_POINTS], d[FP_MAX_POINTS];
    const double sigma = nq ? qs[0] : ps[0];
    int n = 0, centre = 0;
    d[0] = 0.0;
    for (int i = 0; i < np + nq; i++) {
        const int first = i < np, k = first ? i : i - np;
        const double weight = first ? pw[k] : qw[k], at = first ? pm[k] : qm[k];
        if ((first ? ps[k] : qs[k]) != sigma)
            return 0;
        int j = 0;
        while (j < n && mean[j] != at)
            j++;
        if (j == FP_MAX_POINTS)
            return 0;
        if (j == n)
            mean[n] = at, wp[n] = wq[n] = 0.0, n++;
        double *into = first ? wp : wq;
        if (into[j] != 0.0)
            return 0; /* two equal components of one side */
        into[j] = weight;
    }
    for (int j = 0; j < n; j++) {
        d[j] = wp[j] - wq[j];
        centre = fabs(d[j]) > fabs(d[centre]) ? j : centre;
    }
    fp_one_sigma *g = &w->g;
    g->n = 0, g->apart = apart;
    g->w_centre = wp[centre], g->v_centre = wq[centre], g->d_centre = d[centre];
    w->low = w->high = 0.0;
    for (int j = 0; j < n; j++) {
        if (j == centre)
            continue;
        const double c = (mean[j] - mean[centre]) / sigma;
        g->c[g->n] = c, g->w[g->n] = wp[j], g->v[g->n] = wq[j], g->d[g->n] = d[j], g->n++;
        w->low = fp_min(w->low, c), w->high = fp_max(w->high, c);
    }
    const double range = w->high - w->low;
    return range > 1e-140 && range < 1e154;
}

/* Point i, the centre last */
FP_INLINE double fp_point_mean(const fp_one_sigma *g, int i) { return i < g->n ? g->c[i] : 0.0; }
FP_INLINE double fp_point_w(const fp_one_sigma *g, int i) { return i < g->n ? g->w[i] : g->w_centre; }
FP_INLINE double fp_point_v(const fp_one_sigma *g, int i) { return i < g->n ? g->v[i] : g->v_centre; }
FP_INLINE double fp_point_d(const fp_one_sigma *g, int i) { return i < g->n ? g->d[i] : g->d_centre; }

/* The constants of the bounds at the head */
static inline void fp_trapezoid_constants(fp_trapezoid *w)
{
    const fp_one_sigma *g = &w->g;
    const double a = 1.0 + w->b, b = w->b;
    const int kind = w->kind, renyi = (kind == FP_RENYI || kind == FP_RENYI_SMALL) && b > 0.0;
    double log_v[FP_MAX_POINTS], root = 0.0, top = -INFINITY, tails[FP_MAX_POINTS], parts[FP_MAX_POINTS];
    int count = 0;
    w->least = w->low, w->most = w->high, w->simple = w->largest_v = w->shannon = 0.0;
    w->log_g = w->log_tail = -INFINITY;
    for (int i = 0; i <= g->n; i++) {
        const double wi = fp_point_w(g, i), vi = fp_point_v(g, i), d = fp_point_d(g, i);
        w->simple += wi + vi > 0.0 ? 0.5 * d * (d / (wi + vi)) : 0.0;
        w->largest_v = fp_max(w->largest_v, vi);
        log_v[i] = vi > 0.0 ? fp_log(vi) : -INFINITY;
        w->shannon -= vi > 0.0 && !(w->unit > 1.0 && i == g->n) ? vi * w->unit * log_v[i] : 0.0;
        count += wi > 0.0;
    }
    w->shannon += w->unit > 1.0 ? 1.000001 * w->rare : 0.0;
    if (kind == FP_INFORMATION || (kind == FP_RENYI && b < 0.0))
        return;
    double top_part = -INFINITY;
    for (int i = 0; i <= g->n; i++) {
        const double ci = fp_point_mean(g, i), wi = fp_point_w(g, i);
        double best = INFINITY, best_tail = INFINITY, at = 0.0, tail_at = 0.0;
        for (int j = 0; j <= g->n; j++) {
            const double gap = ci - fp_point_mean(g, j), cost = gap * gap - log_v[j];
            const double tail = 0.5 * a * b * gap * gap - b * log_v[j];
            if (cost < best)
                best = cost, at = 2.0 * ci - fp_point_mean(g, j);
            if (renyi && tail < best_tail)
                best_tail = tail, tail_at = a * ci - b * fp_point_mean(g, j);
        }
        const double size = fabs(fp_point_d(g, i));
        parts[i] = size > 0.0 ? fp_log(size) + 0.5 * best : -INFINITY;
        top_part = fp_max(top_part, parts[i]);
        if (size > 0.0)
            w->least = fp_min(w->least, at), w->most = fp_max(w->most, at);
        tails[i] = renyi && wi > 0.0 ? a * fp_log(wi) + best_tail : -INFINITY;
        top = fp_max(top, tails[i]);
        if (renyi && wi > 0.0)
            w->least = fp_min(w->least, tail_at), w->most = fp_max(w->most, tail_at);
    }
    double sum = 0.0;
    for (int i = 0; i <= g->n; i++) {
        root += fp_exp(parts[i] - top_part);
        sum += renyi ? fp_exp(tails[i] - top) : 0.0;
    }
    w->log_g = 2.0 * (top_part + fp_log(root)) + 1e-9;
    const double range = w->high - w->low, largest = 0.5 * a * b * range * range + 750.0 * (a + b); /* of terms of log_tail */
    if (renyi)
        w->log_tail = top + fp_log(sum) + b * fp_log((double)count) + 1e-9 + 1e-14 * largest;
}

/* log of a bound of the integral of |f| on the edge of the strip, less y^2 / 2, for a value of e^log_v */
static inline double fp_trapezoid_edge(const fp_trapezoid *w, double theta, double value)
{
    const double loss = -fp_log(cos(0.5 * theta)), b = w->b, positive = fp_max(b, 0.0);
    const double plain = fp_log(value + theta + loss + 2.75);
    double whole;
    switch (w->kind) {
    case FP_KL:
        return fp_min(plain, w->log_g + loss);
    case FP_JS:
        return fp_min(fp_log(w->simple), w->log_g - FP_LN2) + loss;
    case FP_RENYI:
        return fp_log(value) + positive * loss;
    case FP_RENYI_SMALL:
        whole = fp_log((1.0 + fabs(b) * value) * fp_exp(positive * loss) + 1.0 + b + fabs(b)) - fp_log(fabs(b));
        return b <= 1.0 ? fp_min(whole, w->log_g + 1.5 * loss) : whole;
    default:
        return w->unit > 1.0 ? fp_log(value + w->rare * (theta + loss + 2.75 + 3.0 * fp_exp(loss))) : plain;
    }
}

/* A bound of Phi(-d), d > 0, as a logarithm */
FP_INLINE double fp_log_tail_mass(double d) { return -0.5 * d * d - 0.91 - fp_log(d); }

/* log of a bound of what lies beyond nodes at a distance d outside the means, and at a distance e outside of the
 * centres least and most */
static inline double fp_trapezoid_tail(const fp_trapezoid *w, double d, double e)
{
    const double range = w->high - w->low, b = w->b;
    double plain = INFINITY, square = INFINITY;
    if (!(d > 2.0))
        return INFINITY;
    switch (w->kind) {
    case FP_KL:
        plain = 0.694 - 0.5 * d * d - 0.91 + fp_log((1.0 - fp_log(w->largest_v) + range * range) / d + range);
        square = e > 1.0 ? w->log_g + fp_log_tail_mass(e) : INFINITY;
        return fp_min(plain, square);
    case FP_JS:
        square = e > 1.0 ? w->log_g - FP_LN2 + fp_log_tail_mass(e) : INFINITY;
        return fp_min(fp_log(w->simple) + fp_log_tail_mass(d), square);
    case FP_RENYI:
        if (b < 0.0)
            return fp_log_tail_mass(d);
        return e > 1.0 ? w->log_tail - w->scale + fp_log_tail_mass(e) : INFINITY;
    case FP_RENYI_SMALL:
        if (b < 0.0)
            plain = fp_log_tail_mass(d) + 0.7;
        else if (e > 1.0)
            plain = fp_log_sum(w->log_tail + fp_log_tail_mass(e), fp_log(b) + fp_log_tail_mass(d));
        if (b <= 1.0 && e > 1.0)
            square = w->log_g + fp_log_tail_mass(e);
        return fp_min(plain - fp_log(fabs(b)), square);
    default:
        return fp_log(w->shannon) + fp_log_tail_mass(d);
    }
}

/* The distance outside of an end from which the tail is below e^log_wanted; `extra` is that of the centres beyond it.
 */
static inline double fp_trapezoid_reach(const fp_trapezoid *w, double extra, double log_wanted)
{
    double low = 2.0, high = extra + 8.0;
    while (fp_trapezoid_tail(w, high, high - extra) > log_wanted && high < 400.0 + extra)
        low = high, high += 6.0;
    for (int i = 0; i < 5; i++) {
        const double middle = 0.5 * (low + high);
        if (fp_trapezoid_tail(w, middle, middle - extra) > log_wanted)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* The integrand of the mutual information at n nodes from `first` on, n a multiple of eight. */
static inline void fp_trapezoid_information(const fp_one_sigma *g, double unit, double first, double step, int n,
                                            double *f, double *err)
{
    double zero[FP_MAX_POINTS] = {0}, one[FP_MAX_POINTS], offset[FP_MAX_POINTS], prior[FP_MAX_POINTS];
    double scratch[FP_LANES * FP_MAX_POINTS], x[FP_LANES];
    for (int i = 0; i <= g->n; i++)
        one[i] = 1.0, offset[i] = fp_point_mean(g, i), prior[i] = fp_point_v(g, i);
    fp_local_mixture side = {.n = g->n + 1, .dm = zero, .is = one, .offset = offset, .scratch = scratch};
    for (int b = 0; b < n; b += FP_LANES) {
        double sum = 0.0; /* q / N of the centre, in the middle of the lanes */
        for (int k = 0; k < FP_LANES; k++)
            x[k] = (first + (double)(b + k)) * step;
        for (int i = 0; i <= g->n; i++)
            sum += prior[i] * fp_exp(offset[i] * (x[FP_LANES / 2] - 0.5 * offset[i]));
        fp_quadrature_kernels_in_use()->information(&side, prior, g->n, sum < 0.5, 0.0, unit, x, FP_LANES, f + b,
                                                    err + b);
    }
}

/* The sum over nodes first..last, and its rounding error, times step. */
static inline void fp_trapezoid_sum(fp_trapezoid *w, long first, long last, double step)
{
    const fp_quadrature_kernels *table = fp_quadrature_kernels_in_use();
    const fp_one_sigma_kernels *own = &fp_one_sigma_selected;
    double high[FP_LANES] = {0}, low[FP_LANES] = {0}, error[FP_LANES] = {0};
    double lp[FP_NODES_AT_ONCE], lq[FP_NODES_AT_ONCE], l[FP_NODES_AT_ONCE], dp[FP_NODES_AT_ONCE];
    double dq[FP_NODES_AT_ONCE], dl[FP_NODES_AT_ONCE], f[FP_NODES_AT_ONCE], err[FP_NODES_AT_ONCE];
    for (long k = first; k <= last; k += FP_NODES_AT_ONCE) {
        const long left = (last - k + FP_LANES) / FP_LANES * FP_LANES;
        const int n = left < FP_NODES_AT_ONCE ? (int)left : FP_NODES_AT_ONCE;
        if (w->kind == FP_INFORMATION) {
            fp_trapezoid_information(&w->g, w->unit, (double)k, step, n, f, err);
            own->add(n, f, err, high, low, error);
            continue;
        }
        own->nodes(&w->g, (double)k, step, n, lp, lq, l, dp, dq, dl);
        if (w->kind == FP_RENYI) { /* the scale follows the largest term */
            const double top = own->top(n, w->b, lp, l);
            if (top > w->scale) {
                const double factor = fp_exp(w->scale - top), off = factor > 0.0 ? 4.0 + (top - w->scale) : 0.0;
                for (int i = 0; i < FP_LANES; i++)
                    high[i] *= factor, low[i] *= factor, error[i] = error[i] * factor + off * FP_U * high[i];
                w->scale = top;
            }
        }
        table->integrand(w->kind, w->b, w->scale, n, lp, lq, l, dp, dq, dl, f, err);
        own->add(n, f, err, high, low, error);
    }
    fp_accumulator sum = {0.0, 0.0};
    double rounding = 0.0;
    const double unit = step * (w->kind == FP_INFORMATION ? 1.0 : FP_INV_SQRT_2PI);
    for (int i = 0; i < FP_LANES; i++) {
        fp_accumulator_add(&sum, high[i]);
        fp_accumulator_add(&sum, low[i]);
        rounding += error[i];
    }
    w->evaluations += last - first + 1;
    w->sum = fp_accumulator_value(&sum) * unit;
    w->rounding = 1.0001 * rounding * unit + 4.0 * FP_U * fabs(w->sum);
}

/* The integral of a gathered pair; 0 where the rule does not serve. */
static inline int fp_trapezoid_run(fp_trapezoid *w)
{
    const int renyi = w->kind == FP_RENYI;
    const double range = w->high - w->low;
    if (range > FP_MAX_RANGE)
        return 0;
    w->evaluations = 0;
    w->scale = renyi ? -INFINITY : 0.0;
    fp_trapezoid_constants(w);
    const double farthest = fp_max(w->most, -w->least) + 16.0;
    if (range * (farthest + range) > FP_LARGEST_EXPONENT)
        return 0;
    /* a first guess of the value; nothing is proved from it */
    const double coarse = fp_min(0.5, 1.5 / (1.0 + range));
    fp_trapezoid_sum(w, (long)floor((w->least - 6.0) / coarse), (long)ceil((w->most + 6.0) / coarse), coarse);
    for (int attempt = 0; attempt < 3; attempt++) {
        const double value = fabs(w->sum);
        if (!(value > 1e-290 && value < 1e290))
            return 0;
        const double wanted = fp_log(value) + fp_log(FP_TRAPEZOID_AIM);
        const double left = fp_trapezoid_reach(w, w->low - w->least, wanted);
        const double right = fp_trapezoid_reach(w, w->most - w->high, wanted);
        double best = 0.0, y = 0.0, edge = 0.0;
        for (int i = 0; i < 4; i++) {
            static const double angles[4] = {0.5 * FP_PI, 0.7 * FP_PI, 0.8 * FP_PI, 0.875 * FP_PI};
            const double log_m = fp_trapezoid_edge(w, angles[i], value), need = log_m - wanted + 0.7;
            const double at = fp_min(angles[i] / range, sqrt(2.0 * fp_max(need, 1.0)));
            const double step = 2.0 * FP_PI * at / fp_max(need + 0.5 * at * at, 1.0);
            if (step > best)
                best = step, y = at, edge = angles[i];
        }
        int exponent;
        const double digits = frexp(best, &exponent), step = ldexp(floor(digits * 512.0), exponent - 9);
        const double from = floor((w->low - left) / step), to = ceil((w->high + right) / step);
        const double allowed = w->kind == FP_INFORMATION ? FP_MAX_INFORMATION_NODES : FP_MAX_NODES;
        if (!(to - from < allowed) || range * (fp_max(-from, to) * step + range) > FP_LARGEST_EXPONENT)
            return 0;
        const long last = (long)from + ((long)to - (long)from + FP_LANES) / FP_LANES * FP_LANES - 1;
        if (renyi)
            w->scale = -INFINITY;
        fp_trapezoid_sum(w, (long)from, last, step);
        const double bound = fp_trapezoid_edge(w, edge, 1.01 * fabs(w->sum) + w->rounding) + 0.5 * y * y;
        const double rule = 2.05 * fp_exp(bound - 2.0 * FP_PI * y / step + 1e-9);
        const double below = w->low - from * step, above = (double)last * step - w->high;
        w->truncation = rule + FP_TRAPEZOID_UNDERFLOW
                        + 1.001 * (fp_exp(fp_trapezoid_tail(w, below, below - (w->low - w->least)))
                                   + fp_exp(fp_trapezoid_tail(w, above, above - (w->most - w->high))));
        if (w->truncation <= FP_TRAPEZOID_ACCEPTED * fabs(w->sum))
            return 1;
    }
    return 0;
}

/* Settings of `fp_binomial_logs`, and what they give */
typedef struct {
    int n;
    double order[FP_BINOMIALS], ratio[FP_BINOMIALS], lift[FP_BINOMIALS], falls[FP_BINOMIALS];
    double square[FP_BINOMIALS], low[FP_BINOMIALS], value[FP_BINOMIALS], error[FP_BINOMIALS];
} fp_binomials;

/* Add the setting of P = w_0 N(m_0, s_0^2) + w_1 N(m_1, s_1^2), of weights above 0, and Q = N(n, t^2); 0 where the
 * binomial sum does not serve. */
FP_INLINE int fp_binomials_add(fp_binomials *into, double order, const double *w, const double *m, const double *s,
                               double n, double t)
{
    const int first = m[0] == n, pair = (first != (m[1] == n)) & (s[0] == t) & (s[1] == t);
    if (!pair || order != floor(order) || !(order >= 2.0 && order <= FP_LARGEST_BINOMIAL))
        return 0;
    const int falls = w[first] > w[!first];
    const double less = falls ? w[!first] : w[first], more = falls ? w[first] : w[!first];
    const double lift = less < 1e-290 ? -100.0 : 0.0; /* no subnormal quotient */
    const double unit = fp_double((2046 - ((fp_bits(t) >> 52) & 2047)) << 52); /* lengths in units of it are not tiny */
    const fp_dd apart = fp_two_sum(m[first], -n);
    const fp_dd c = fp_dd_div_d((fp_dd){apart.hi * unit, apart.lo * unit}, t * unit), square = fp_dd_mul(c, c);
    if (!(square.hi >= 1e-280 && 0.5 * order * (order - 1.0) * square.hi <= 1e15))
        return 0;
    into->order[into->n] = order, into->ratio[into->n] = (lift < 0.0 ? less * 0x1p100 : less) / more;
    into->lift[into->n] = lift, into->falls[into->n] = falls;
    into->square[into->n] = square.hi, into->low[into->n] = square.lo;
    into->n++;
    return 1;
}

static inline void fp_binomials_run(fp_binomials *in)
{
    for (int i = in->n; i < fp_padded(in->n); i++)
        in->order[i] = 2.0, in->ratio[i] = in->square[i] = 1.0, in->lift[i] = in->falls[i] = in->low[i] = 0.0;
    fp_one_sigma_selected.binomials(in->n, in->order, in->ratio, in->lift, in->falls, in->square,
                                    in->low, in->value, in->error);
}

#endif
