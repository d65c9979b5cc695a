/* Any pair of Gaussian mixtures on the line as a factor of a sum along a contour: several sigmas, or one sigma and a
 * loss that is not monotone.
 *
 * Notation of fp_contour_factor_solver.h and fp_log_ratio.h (whose unit and origin are used); x + i y is a point of
 * the plane, d a complex distance from a centre, f_z = p e^(z l), phi = log p + t l, z = t + i w.
 *
 * Discs (docs/proofs/contour.md, theorem 2.13). Let r_i be the complex responsibilities N_i w_i / p at a centre, g_i
 * and t_i score and precision of component i, a = sum r_i g_i, b = sum r_i t_i. With u_i = (g_i - a) d - (t_i - b) d^2
 * / 2, sum r_i u_i = 0, so that for |d| <= R
 *     p(d) = p e^(a d - b d^2 / 2) (1 + eps),  |eps| <= kappa = sum |r_i| k_i^2 e^(k_i) / 2,
 *     k_i = |g_i - a| R + |t_i - b| R^2 / 2.
 * Where kappa < 1 the density has no zero on the disc, and log p differs from the quadratic by at most
 * B = -log(1 - kappa). Hence l differs from the difference of two quadratics by at most B_p + B_q; and where p and q
 * share components, |l| <= -log(1 - U), U a bound of |p - q| / |q| by the coupled form of p - q, whose terms are
 * treated alike. By Cauchy's estimates the Taylor coefficients of l of orders n >= 3 are at most B_l / R^n, with B_l
 * the smaller of the two bounds: beyond order two, l adds at most B_l eta^3 / (1 - eta) and its derivative at most
 * B_l (3 eta^2 - 2 eta^3) / (1 - eta)^2 / R at |d| = eta R.
 *
 * Moments. Gauss-Legendre panels x0 + [-h, h]: on the ellipse with foci x0 +- h and semi-axes X, Y = h (rho +-
 * 1/rho) / 2 |f_z| is at most
 *     exp(phi + max Re((1 + t) (a_p d - b_p d^2 / 2) - t (a_q d - b_q d^2 / 2)) + (1 + t) B_p + t B_q + |w| I),
 *     I = min(|a_p - a_q| Y + |b_p - b_q| X Y / 2 + B_p + B_q, -log(1 - U)) >= |Im l|,
 * and the rule of N nodes errs by (64/15) h |f_z| rho^(-2N) / (1 - rho^-2) (fp_quadrature_solver.h). A panel is taken
 * once a rule meets the target, else it is halved; all ends of panels are dyadic. One set of nodes serves all
 * |w| up to the largest.
 *
 * Ends. Let N_I be P's component of the largest sigma, of the largest mean among those, v_J N_J that of Q. To the
 * right of a point where all N_i / N_I fall, p <= p(b) N_I / N_I(b) and q >= v_J N_J, so that f_t is at most e^G
 * there, with G quadratic: its integral is at most e^G(b) / -G'(b) where G' < 0 >= G''. Left of the nodes likewise.
 * M(t) is finite where (1 + t) / s_I^2 > t / s_J^2: for all t unless P has the larger sigma.
 *
 * Decay. The path x + i y(x), y piecewise linear, 0 at the ends and with the sign of l'(x), gives
 *     |m(w)| M(t) <= integral of |f_t| e^(-w Im l) |dz|,
 * wherever p and q have no zero between the line and the path; where Im l >= 0 along all of the path, the right
 * side falls with w: it bounds |m| at all larger frequencies. Each cell of the line carries a column of discs up to the
 * path, on all of which sign Re l' >= 0 is verified: Im l, the integral of Re l' over y, is then >= 0 below the path
 * and at its height Y at least sum (Re l'(centre) - rest) Y / K over K discs, for the linear term of l' vanishes by
 * symmetry. On the path |f_t| e^(-w Im l) is e^quadratic by the expansion at a disc on it. Where l' = 0 the path
 * comes back to the line, at up to 45 degrees, which is the path of steepest descent there.
 *     Small frequencies: |m|^2 has a derivative of at most min(2 w variance, 2 |m| E|l - mean|), so that values at a
 * few frequencies bound it up to one from which on the path bounds it.
 */
/* bounds: proved - sums over panels and cells, in logarithms to 1e-9: docs/proofs/contour.md, theorem 2.20 */
#ifndef FP_CONTOUR_SEVERAL_SIGMAS_SOLVER_H
#define FP_CONTOUR_SEVERAL_SIGMAS_SOLVER_H

#include "composition/fp_contour_factor_solver.h"
#include "line/fp_gauss_legendre_tables.h"
#include "line/fp_log_ratio_solver.h"
#include "line/fp_modulus.h"

#define FP_SEVERAL_MOST 64 /* components of a mixture */
#define FP_SEVERAL_PANELS 8192
#define FP_SEVERAL_CELLS 4096
#define FP_SEVERAL_ELLIPSES 5
#define FP_SEVERAL_ROUNDS 14 /* in which a path is lowered and its cells are halved */
#define FP_SEVERAL_REACH 14 /* frequencies, each 1.5 times the last, at which a path is tried */
#define FP_SEVERAL_STEPS 600 /* frequencies at which moments are taken to bound those between */
#define FP_SEVERAL_WORK 600000 /* discs times components that are analysed for one bound of m */
#define FP_SEVERAL_LEVELS 16 /* discs between the line and the path */

/* One side at eight centres; c is the second derivative of log p, b the mean precision. */
typedef struct {
    double log[FP_LANES], peak[FP_LANES], inverse[FP_LANES], spread[FP_LANES], turned[FP_LANES];
    double a_re[FP_LANES], a_im[FP_LANES], b_re[FP_LANES], b_im[FP_LANES], c_re[FP_LANES], c_im[FP_LANES];
    double kappa[FP_LANES], bound[FP_LANES], slack[FP_LANES];
    double part_re[FP_LANES * FP_SEVERAL_MOST], part_im[FP_LANES * FP_SEVERAL_MOST], size[FP_LANES * FP_SEVERAL_MOST];
    double below[FP_LANES * FP_SEVERAL_MOST]; /* logarithms of `size`, relative to the largest */
} fp_disc_side;

typedef struct {
    fp_disc_side p, q;
    double near[FP_LANES];
} fp_discs;

#define FP_LOOPS "composition/fp_contour_several_loops.h"
#include "common/fp_variants.h"

typedef struct {
    void (*nodes)(const fp_log_ratio *, int, const double *, double *, double *, double *, double *);
    void (*discs)(const fp_log_ratio *, const double *, const double *, int, int, double *, fp_discs *);
} fp_several_kernels;

static fp_several_kernels fp_several_selected;

static inline void fp_contour_several_select(void)
{
    fp_several_selected = (fp_several_kernels){FP_SELECT(fp_several_nodes), FP_SELECT(fp_several_discs)};
}

typedef struct {
    fp_log_ratio r;
    fp_stop_token stop;
    double mass; /* of P, less 1 */
    double largest_t;
} fp_contour_several;

static inline void fp_contour_several_free(fp_contour_several *pair) { fp_log_ratio_free(&pair->r); }

/* The component of the largest sigma that is farthest to one side */
static inline int fp_several_widest(int n, const double *m, const double *s, int side)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        best = s[i] > s[best] || (s[i] == s[best] && side * (m[i] - m[best]) > 0.0) ? i : best;
    return best;
}

/* The pair; `excess` are the sums of the weights less 1. 0; -1 without memory; 1 where the lengths or the number of
 * components are beyond what is treated. */
static inline int fp_contour_several_make(fp_contour_several *pair, int np, const double *pw, const double *pm,
                                          const double *ps, int nq, const double *qw, const double *qm,
                                              const double *qs,
                                          const double excess[2])
{
    memset(pair, 0, sizeof *pair);
    if (np > FP_SEVERAL_MOST || nq > FP_SEVERAL_MOST)
        return 1;
    pair->stop = fp_stop_token_make(NULL, INFINITY);
    pair->r.stop = &pair->stop;
    if (fp_log_ratio_build(&pair->r, np, pw, pm, ps, nq, qw, qm, qs))
        return -1;
    pair->mass = excess[0];
    const fp_log_ratio *r = &pair->r;
    if (r->unresolved || r->underflowed)
        return 1;
    const double sp = r->s[fp_several_widest(np, r->m, r->s, 1)], sq = r->t[fp_several_widest(nq, r->n, r->t, 1)];
    pair->largest_t = sp > sq ? sq / (sp - sq) * (sq / (sp + sq)) * (1.0 - 1e-14) : INFINITY;
    return 0;
}

FP_INLINE double fp_several_log_component(double w, double m, double s, double x)
{
    const double z = (x - m) / s;
    return fp_log(w) - fp_log(s) - 0.5 * z * z;
}

/* log of a bound of the integral of p e^(t l) sqrt(2 pi) beyond x on one side; `value` is log p e^(t l) there */
static inline double fp_several_tail(const fp_log_ratio *r, double t, double x, int side, double *value)
{
    const int i = fp_several_widest(r->np, r->m, r->s, side), j = fp_several_widest(r->nq, r->n, r->t, side);
    double top_p = -INFINITY, top_q = -INFINITY, sum_p = 0.0, sum_q = 0.0;
    int falls = 1;
    for (int k = 0; k < r->np; k++) {
        top_p = fp_max(top_p, fp_several_log_component(r->w[k], r->m[k], r->s[k], x));
        falls = falls && side * ((x - r->m[k]) / r->s[k] / r->s[k] - (x - r->m[i]) / r->s[i] / r->s[i]) >= 0.0;
    }
    for (int k = 0; k < r->nq; k++)
        top_q = fp_max(top_q, fp_several_log_component(r->v[k], r->n[k], r->t[k], x));
    for (int k = 0; k < r->np; k++)
        sum_p += fp_exp(fp_several_log_component(r->w[k], r->m[k], r->s[k], x) - top_p);
    for (int k = 0; k < r->nq; k++)
        sum_q += fp_exp(fp_several_log_component(r->v[k], r->n[k], r->t[k], x) - top_q);
    const double log_p = top_p + fp_log(sum_p), log_q = top_q + fp_log(sum_q);
    const double least_q = fp_several_log_component(r->v[j], r->n[j], r->t[j], x);
    *value = log_p + t * (log_p - log_q);
    const double q_fall = t * ((x - r->n[j]) / r->t[j] / r->t[j]);
    const double p_fall = (1.0 + t) * ((x - r->m[i]) / r->s[i] / r->s[i]);
    const double slope = side * (q_fall - p_fall) + 16.0 * FP_U * (fabs(q_fall) + fabs(p_fall));
    const double curve = t / r->t[j] / r->t[j] - (1.0 + t) / r->s[i] / r->s[i];
    const double slack = 1e-9 + 1e-14 * ((1000.0 + fabs(log_p)) * (1.0 + t) + t * (1000.0 + fabs(least_q)));
    if (!falls || !(slope < 0.0) || !(curve <= 0.0))
        return INFINITY;
    return log_p + t * (log_p - least_q) - fp_log(-slope) + slack;
}

/* The point beyond which the integral is below e^(top - aim), top the largest value met; NaN if there is none. */
static inline double fp_several_end(const fp_log_ratio *r, double t, int side, double aim, double *top,
                                    double *log_tail)
{
    const int i = fp_several_widest(r->np, r->m, r->s, side);
    double inside = side > 0 ? r->m[0] : r->m[r->np - 1], step = r->s[i], narrow = r->s[i], value, tail = INFINITY;
    for (int k = 0; k < r->np; k++)
        narrow = fp_min(narrow, r->s[k]);
    double x = r->m[i] + side * 2.0 * step;
    const double end = side > 0 ? r->m[r->np - 1] : r->m[0];
    x = side > 0 ? fp_max(x, end) : fp_min(x, end);
    for (int k = 0; k < r->np; k++) {
        fp_several_tail(r, t, r->m[k], side, &value);
        *top = fp_max(*top, value + fp_log(narrow));
    }
    for (int k = 0; k < 400; k++) {
        tail = fp_several_tail(r, t, x, side, &value);
        *top = fp_max(*top, value + fp_log(narrow));
        if (tail <= *top - aim)
            break;
        inside = x;
        x += side * step;
        step *= 1.25;
    }
    *log_tail = tail;
    if (!(tail <= *top - aim))
        return NAN;
    for (int k = 0; k < 8; k++) {
        const double middle = 0.5 * (x + inside);
        tail = fp_several_tail(r, t, middle, side, &value);
        *top = fp_max(*top, value + fp_log(narrow));
        if (tail <= *top - aim)
            x = middle, *log_tail = tail;
        else
            inside = middle;
    }
    return x;
}

typedef struct {
    double x, h, slope_p, slope_l;
    int rule; /* -1: not yet */
} fp_several_panel;

static const double fp_several_rho[FP_SEVERAL_ELLIPSES] = {2.0, 3.0, 4.5, 7.0, 12.0};
static const double fp_several_log_rho[FP_SEVERAL_ELLIPSES] = {0.69314718055994, 1.09861228866810, 1.50407739677627,
                                                               1.94591014905531, 2.48490664978800}; /* rounded down */

/* Take or refuse panels `first` to first + 7: the rule, and logarithms of its errors for p e^(z l) and for p. */
static inline void fp_several_decide(const fp_log_ratio *r, double t, double w, fp_several_panel *panel, int count,
                                     double log_wanted, double log_wanted_mass, double *log_error,
                                         double *log_mass_error,
                                     double *estimate, fp_discs *discs)
{
    double x[FP_LANES], y[FP_LANES] = {0.0}, radius[FP_LANES];
    for (int k = 0; k < FP_LANES; k++)
        x[k] = panel[k < count ? k : count - 1].x;
    for (int k = 0; k < count; k++)
        panel[k].rule = -1, log_error[k] = log_mass_error[k] = INFINITY;
    for (int i = 0; i < FP_SEVERAL_ELLIPSES; i++) {
        const double rho = fp_several_rho[i], wide = 0.5 * (rho + 1.0 / rho), high = 0.5 * (rho - 1.0 / rho);
        int open = 0;
        for (int k = 0; k < FP_LANES; k++)
            radius[k] = wide * panel[k < count ? k : count - 1].h;
        fp_several_selected.discs(r, x, y, 0, i > 0, radius, discs);
        for (int k = 0; k < count; k++) {
            const fp_disc_side *p = &discs->p, *q = &discs->q;
            const double h = panel[k].h, loss = p->log[k] - q->log[k], b_p = p->bound[k] + p->slack[k],
                b_q = q->bound[k] + q->slack[k];
            const double tilted = p->log[k] + t * loss, slope = p->a_re[k] - q->a_re[k],
                curve = p->b_re[k] - q->b_re[k];
            if (i == 0) {
                const double bend = fabs((1.0 + t) * p->c_re[k] - t * q->c_re[k]);
                estimate[k] = tilted + fp_log(fp_min(2.0 * h, 2.5 / sqrt(bend + 1e-300)));
                const double of_p = 20.0 * p->bound[k] + 2.0 * p->slack[k], least = fp_min(p->bound[k] + q->bound[k],
                                                                                           discs->near[k]);
                panel[k].slope_p = fabs(p->a_re[k]) + fabs(p->b_re[k]) * h + of_p / h;
                panel[k].slope_l = fabs(slope) + fabs(curve) * h
                                   + (20.0 * least + 2.0 * (p->slack[k] + q->slack[k])) / h;
            }
            if (!(b_p < INFINITY && b_q < INFINITY))
                continue;
            open = 1;
            const double turn = fp_min(fabs(slope) * high * h + 0.5 * fabs(curve) * wide * high * h * h + b_p + b_q,
                                       discs->near[k]);
            const double growth = fp_quadratic_maximum((1.0 + t) * p->a_re[k] - t * q->a_re[k],
                                                       (1.0 + t) * p->b_re[k] - t * q->b_re[k], wide * h, high * h);
            const double front = fp_log(h) + 1.45098 - fp_log1p(-1.0 / (rho * rho)) + 1e-9; /* log(64/15) */
            const double log_f = tilted + growth + (1.0 + t) * b_p + t * b_q + w * turn
                + 1e-14 * (fabs(tilted) + t * fabs(loss) + fabs(growth) + w * turn);
            const double log_p = p->log[k] + 1e-14 * fabs(p->log[k]) + b_p
                                 + fp_quadratic_maximum(p->a_re[k], p->b_re[k], wide * h, high * h);
            for (int rule = 0; rule < 4; rule++) {
                const double gain = 16.0 * (rule + 1) * fp_several_log_rho[i];
                const double error = front + log_f - gain, mass_error = front + log_p - gain;
                if (!(error <= log_wanted && mass_error <= log_wanted_mass))
                    continue;
                if (panel[k].rule < 0 || rule < panel[k].rule)
                    panel[k].rule = rule, log_error[k] = error, log_mass_error[k] = mass_error;
                break;
            }
        }
        if (!open)
            break;
    }
}

/* `build` of this kind */
static inline int fp_contour_several_build(fp_contour_factor *factor, double t, double w, double aim)
{
    const fp_contour_several *pair = factor->pair;
    const fp_log_ratio *r = &pair->r;
    fp_contour_nodes *nodes = &factor->nodes;
    double top = -INFINITY, top_mass = -INFINITY, ends[2], tails[2], mass_tails[2];
    if (!(t < pair->largest_t))
        return 1;
    for (int pass = 0; pass < 2; pass++) /* the second knows the largest value met by the first */
        for (int side = 0; side < 2; side++) {
            ends[side] = fp_several_end(r, t, side ? 1 : -1, aim, &top, &tails[side]);
            if (isnan(ends[side]))
                return 1;
        }
    const int near = top < 3.0; /* M(t) may be near 1 */
    if (near)
        for (int side = 0; side < 2; side++) {
            const double end = fp_several_end(r, 0.0, side ? 1 : -1, aim, &top_mass, &mass_tails[side]);
            ends[side] = side ? fp_max(ends[side], end) : fp_min(ends[side], end);
        }
    int exponent;
    frexp(ends[1] - ends[0], &exponent);
    const double unit = ldexp(1.0, exponent - 3); /* 4 to 9 panels of this width */
    const double first = floor(ends[0] / unit), last = ceil(ends[1] / unit);
    if (!(fabs(first) < 0x1p30 && fabs(last) < 0x1p30))
        return 1;
    fp_several_panel *panels = malloc(sizeof *panels * (FP_SEVERAL_PANELS + FP_LANES));
    fp_discs *discs = malloc(sizeof *discs);
    double log_wanted = top - aim - 5.0, log_total = top, log_rule = INFINITY, log_mass_rule = INFINITY;
    int status = panels && discs ? 0 : -1, done = 0;
    for (int attempt = 0; attempt < 3 && !status; attempt++) {
        int count = 0, n = 0;
        double log_error = -INFINITY, log_mass_error = -INFINITY;
        done = 0;
        for (double at = first; at < last; at += 1.0)
            panels[count++] = (fp_several_panel){(at + 0.5) * unit, 0.5 * unit, 0.0, 0.0, -1};
        while (done < count && !status) {
            double error[FP_LANES], mass_error[FP_LANES], estimate[FP_LANES];
            const int some = count - done < FP_LANES ? count - done : FP_LANES;
            fp_several_decide(r, t, w, panels + done, some, log_wanted, near ? -aim - 5.0 + 0.9189 : INFINITY, error,
                              mass_error,
                              estimate, discs);
            int kept = done;
            fp_several_panel open[FP_LANES];
            int opened = 0;
            for (int k = 0; k < some; k++) {
                const fp_several_panel panel = panels[done + k];
                if (!attempt)
                    log_total = fp_max(log_total, estimate[k]);
                if (panel.rule >= 0) {
                    log_error = fp_log_sum(log_error, error[k]), log_mass_error = fp_log_sum(log_mass_error,
                                                                                             mass_error[k]);
                    n += 8 * (panel.rule + 1);
                    panels[kept++] = panel;
                } else {
                    open[opened++] = panel;
                }
            }
            /* those refused are halved and go to the end, in the places of the panels moved there */
            if (count + opened > FP_SEVERAL_PANELS || n > FP_CONTOUR_NODES / 8) {
                status = 1;
                break;
            }
            const int rest = count - done - some;
            memmove(panels + kept + 2 * opened, panels + done + some, sizeof *panels * (size_t)rest);
            for (int k = 0; k < opened; k++) {
                const double half = 0.5 * open[k].h;
                if (!(half > 0x1p-44 * fabs(open[k].x)) || !(half > 1e-150))
                    status = 1;
                panels[kept + 2 * k] = (fp_several_panel){open[k].x - half, half, 0.0, 0.0, -1};
                panels[kept + 2 * k + 1] = (fp_several_panel){open[k].x + half, half, 0.0, 0.0, -1};
            }
            done = kept;
            count += opened;
            log_wanted = fp_max(log_wanted, log_total - aim - 5.0);
        }
        if (status)
            break;
        if (fp_contour_nodes_reserve(nodes, n)) {
            status = -1;
            break;
        }
        double *x = nodes->rest, *log_weight = nodes->g;
        int at = 0;
        for (int i = 0; i < done; i++) {
            const fp_several_panel panel = panels[i];
            for (int k = 0; k < 8 * (panel.rule + 1); k++, at++) {
                x[at] = panel.x + panel.h * fp_legendre_nodes[panel.rule][k];
                log_weight[at] = fp_log(panel.h * fp_legendre_weights[panel.rule][k]) - FP_LOG_SQRT_2PI;
            }
        }
        fp_several_selected.nodes(r, n, x, nodes->log_p, nodes->loss, nodes->log_p_error, nodes->loss_error);
        at = 0;
        for (int i = 0; i < done; i++)
            for (int k = 0; k < 8 * (panels[i].rule + 1); k++, at++) {
                const double moved = FP_U * (fabs(x[at]) + 2.0 * panels[i].h);
                nodes->log_p[at] += log_weight[at];
                nodes->log_p_error[at] += panels[i].slope_p * moved + FP_U * (6.0 + 3.0 * fabs(log_weight[at])
                                                                              + fabs(nodes->log_p[at]));
                nodes->loss_error[at] += panels[i].slope_l * moved;
            }
        double peak = -INFINITY, total = 0.0;
        for (int j = 0; j < n; j++)
            peak = fp_max(peak, nodes->log_p[j] + t * nodes->loss[j]);
        for (int j = 0; j < n; j++)
            total += fp_exp(nodes->log_p[j] + t * nodes->loss[j] - peak);
        log_rule = log_error - FP_LOG_SQRT_2PI - (peak + fp_log(total)) + 1e-9 + 1e-14 * (fabs(log_error) + fabs(peak));
        log_mass_rule = log_mass_error - FP_LOG_SQRT_2PI + 1e-9;
        log_total = peak + fp_log(total) + FP_LOG_SQRT_2PI, log_wanted = log_total - aim - 5.0;
        if (log_rule <= -aim + 2.0)
            break;
    }
    free(panels), free(discs);
    if (status)
        return status;
    const double log_ends = fp_log_sum(tails[0], tails[1]) - FP_LOG_SQRT_2PI + 1e-9;
    const double log_left_out = near ? fp_log_sum(mass_tails[0], mass_tails[1]) - FP_LOG_SQRT_2PI + 1e-9 : 0.0;
    const double rule = fp_exp(log_rule), mass_rule = near ? fp_exp(log_mass_rule) : 1.0;
    fp_contour_nodes_tilt(factor, t, pair->mass, rule, log_ends, fp_log_sum(log_left_out, fp_log(mass_rule)), NULL);
    factor->state[0] = first * unit, factor->state[1] = last * unit;
    factor->state[2] = fp_exp(log_ends - nodes->log_total) * 1.01;
    factor->state[3] = w;
    return 0;
}

/* A cell x + [-h, h] of the path, which is at the heights y[0] and y[1] at its ends; l' and l'' at x, the radius of the
 * disc there, and the curvature -phi''. `cap` is the height that was not refuted; flat: l' may vanish. */
typedef struct {
    double x, h, y[2], slope, curve, radius, phi, bend, cap, rest;
    double b; /* the bound of l on the disc at x */
    double levels; /* factor of the number of discs below the path */
    double at[2]; /* heights for which `integral` holds */
    double integral, loose; /* of its part of the path; the factor lost by bounding */
    int flat, known, refused, valued;
} fp_several_cell;

/* One disc of a column, or the one on the path */
typedef struct {
    double x, y, radius; /* in: the largest radius wanted */
    double phi, phi1_re, phi1_im, phi2_re, phi2_im, l1_re, l1_im, l2_re, l2_im, b_phi, b_l, slack_phi, slack_l;
} fp_several_disc;

typedef struct {
    fp_several_cell *cells, *spare;
    fp_several_disc *discs;
    fp_discs *work;
    long analysed; /* discs times components */
} fp_several_room;

static inline void fp_several_analyse(const fp_log_ratio *r, double t, fp_several_disc *disc, int count,
                                      fp_several_room *room)
{
    fp_discs *work = room->work;
    room->analysed += (long)count * (r->np + r->nq);
    for (int b = 0; b < count; b += FP_LANES) {
        double x[FP_LANES], y[FP_LANES], radius[FP_LANES];
        for (int k = 0; k < FP_LANES; k++) {
            const fp_several_disc *at = disc + (b + k < count ? b + k : count - 1);
            x[k] = at->x, y[k] = at->y, radius[k] = at->radius;
        }
        fp_several_selected.discs(r, x, y, 1, 0, radius, work);
        for (int k = 0; k < FP_LANES && b + k < count; k++) {
            fp_several_disc *at = disc + b + k;
            const fp_disc_side *p = &work->p, *q = &work->q;
            at->radius = radius[k];
            at->l1_re = p->a_re[k] - q->a_re[k], at->l1_im = p->a_im[k] - q->a_im[k];
            at->l2_re = p->c_re[k] - q->c_re[k], at->l2_im = p->c_im[k] - q->c_im[k];
            at->phi = p->log[k] + t * (p->log[k] - q->log[k]);
            at->phi1_re = p->a_re[k] + t * at->l1_re, at->phi1_im = p->a_im[k] + t * at->l1_im;
            at->phi2_re = p->c_re[k] + t * at->l2_re, at->phi2_im = p->c_im[k] + t * at->l2_im;
            at->b_l = fp_min(p->bound[k] + q->bound[k], work->near[k]);
            at->b_phi = p->bound[k] + t * at->b_l;
            at->slack_l = p->slack[k] + q->slack[k], at->slack_phi = p->slack[k] + t * at->slack_l;
        }
    }
}

/* What a function with Taylor coefficients of at most 1 / R^n adds beyond order two at |d| = eta R, and R times what it
 * adds to the derivative there */
FP_INLINE double fp_several_rest(double eta) { return eta < 0.9 ? eta * eta * eta / (1.0 - eta) : INFINITY; }
FP_INLINE double fp_several_rest_slope(double eta)
{
    return eta < 0.9 ? (3.0 * eta * eta - 2.0 * eta * eta * eta) / ((1.0 - eta) * (1.0 - eta)) : INFINITY;
}
FP_INLINE double fp_several_times(double a, double b) { return a == 0.0 || b == 0.0 ? 0.0 : a * b; }

/* |d| / R on which l' keeps most of its size */
FP_INLINE double fp_several_eta(const fp_several_cell *cell)
{
    return fp_min(0.4, sqrt(0.1 * fabs(cell->slope) * cell->radius / (cell->b + 1e-300)));
}

/* Analyse the cells that are not known, and halve them until the expansion of phi and of l' holds on each; returns
 * their number, 0 where there would be too many. */
static inline int fp_several_cells(const fp_log_ratio *r, double t, double w, double log_total, int count,
                                   fp_several_room *room)
{
    fp_several_cell *cells = room->cells, *spare = room->spare;
    fp_several_disc *discs = room->discs;
    double least = INFINITY; /* radius wanted */
    for (int i = 0; i < r->np; i++)
        least = fp_min(least, 3.0 * r->s[i]);
    for (int i = 0; i < r->nq; i++)
        least = fp_min(least, 3.0 * r->t[i]);
    for (int pass = 0; pass < 40; pass++) {
        int jobs = 0, at = 0, halved = 0;
        for (int i = 0; i < count; i++)
            if (!cells[i].known)
                discs[jobs++] = (fp_several_disc){.x = cells[i].x, .y = 0.0, .radius = fp_max(8.0 * cells[i].h, least)};
        if (!jobs)
            return count;
        if (room->analysed > FP_SEVERAL_WORK)
            return 0;
        fp_several_analyse(r, t, discs, jobs, room);
        jobs = 0;
        for (int i = 0; i < count; i++) {
            fp_several_cell cell = cells[i];
            int halve = 0;
            if (!cell.known) {
                const fp_several_disc *d = discs + jobs++;
                const double eta = cell.h / d->radius, bend = fabs(d->phi2_re), curve = fabs(d->l2_re),
                    h2 = cell.h * cell.h;
                cell.slope = d->l1_re, cell.curve = d->l2_re, cell.radius = d->radius, cell.phi = d->phi,
                    cell.bend = -d->phi2_re;
                cell.cap = INFINITY, cell.known = 1, cell.levels = 1.0, cell.b = d->b_l;
                const double mass = d->phi - log_total + fp_log(2.0 * cell.h) + fabs(d->phi1_re) * cell.h;
                const double steep = fp_min(1.0, w * curve / (bend + 1e-300));
                const double rounding = 2.0 * d->slack_l / d->radius;
                cell.rest = fp_several_times(d->b_l, fp_several_rest_slope(1.5 * eta)) / d->radius + rounding;
                cell.flat = !(fabs(cell.slope) > 2.0 * (1.5 * curve * cell.h + cell.rest));
                halve = !(eta < 0.6);
                if (mass > -42.0)
                    halve = !(eta < 0.3) || bend * h2 > 0.4 || w * curve * h2 * steep > 2.0
                        || d->b_phi * fp_several_rest(eta) > 0.2
                            || (!cell.flat && cell.h > 0.6 * cell.radius * fp_several_eta(&cell))
                            || (cell.flat && w * (curve * h2 + (cell.rest - rounding) * cell.h) > 0.003);
            }
            if (at + 2 > FP_SEVERAL_CELLS)
                return 0;
            if (halve) {
                const double half = 0.5 * cell.h;
                spare[at++] = (fp_several_cell){.x = cell.x - half, .h = half};
                spare[at++] = (fp_several_cell){.x = cell.x + half, .h = half};
                halved = 1;
            } else {
                spare[at++] = cell;
            }
        }
        memcpy(cells, spare, sizeof *cells * (size_t)at);
        count = at;
        if (!halved)
            return count;
    }
    return 0;
}

/* The heights of the path at the ends of the cells, of the sign of l' */
static inline void fp_several_heights(double w, fp_several_cell *cells, int count)
{
    double before = 0.0; /* wanted in the cell before */
    for (int i = 0; i < count; i++) {
        const fp_several_cell *cell = cells + i;
        const double bend = fp_max(cell->bend, 1e-6 / (cell->radius * cell->radius));
        const double size = cell->flat ? 0.0 : fp_min(fp_min(w * fabs(cell->slope) / bend, cell->cap),
                                                      3.0 * cell->radius);
        const double wanted = cell->slope < 0.0 ? -size : size;
        cells[i].y[0] = before * wanted > 0.0 ? (fabs(before) < fabs(wanted) ? before : wanted) : 0.0;
        before = wanted;
    }
    for (int i = 0; i < count; i++) {
        const double next = i + 1 < count ? cells[i + 1].y[0] : 0.0, most = fabs(cells[i].y[0]) + 2.0 * cells[i].h;
        cells[i].y[1] = fabs(next) > most ? (next > 0.0 ? most : -most) : next;
        if (i + 1 < count)
            cells[i + 1].y[0] = cells[i].y[1];
    }
    for (int i = count - 1; i >= 0; i--) {
        const double most = fabs(cells[i].y[1]) + 2.0 * cells[i].h;
        if (fabs(cells[i].y[0]) > most)
            cells[i].y[0] = cells[i].y[0] > 0.0 ? most : -most;
        if (i > 0)
            cells[i - 1].y[1] = cells[i].y[0];
    }
}

/* The part of one cell of the integral along the path relative to e^log_total, given its column of `levels` discs and
 * the disc on the path after them; 0 where a condition fails. */
static inline int fp_several_cell_bound(double t, double w, double log_total, fp_several_cell *cell,
                                        const fp_several_disc *column, int levels)
{
    const double y0 = fabs(cell->y[0]), y1 = fabs(cell->y[1]), y = 0.5 * (y0 + y1), h = cell->h,
        rise = 0.5 * (y1 - y0) / h;
    const double sign = cell->slope < 0.0 ? -1.0 : 1.0, delta = levels ? y / levels : 0.0,
        along = sqrt(1.0 + rise * rise);
    const fp_several_disc *top = column + levels;
    double height = 0.0;
    for (int i = 0; i < levels; i++) {
        const fp_several_disc *d = column + i;
        const double far = sqrt(h * h + 0.25 * delta * delta) / d->radius, low = 0.5 * delta / d->radius;
        const double wrong = 4.0 * d->slack_l / d->radius;
        const double least = sign * d->l1_re - fabs(d->l2_re) * h - 0.5 * fabs(d->l2_im) * delta
                             - fp_several_times(d->b_l, fp_several_rest_slope(far)) / d->radius - wrong;
        if (!(least >= 0.0))
            return 0;
        height += delta * (sign * d->l1_re - fp_several_times(d->b_l, fp_several_rest_slope(low)) / d->radius - wrong);
    }
    const double eta = h * along / top->radius;
    double w_here = w;
    if (levels) {
        const double least = sign * top->l1_re - (fabs(top->l2_re) + fabs(top->l2_im)) * h * along
                             - fp_several_times(top->b_l, fp_several_rest_slope(eta)) / top->radius
                                 - 4.0 * top->slack_l / top->radius;
        if (!(least >= 0.0))
            return 0;
    } else {
        w_here = 0.0;
    }
    if (!(eta < 0.9))
        return 0;
    const double turn = w_here * sign;
    /* d = s (1 + i rise), |s| <= h; real parts of phi and of i turn l */
    const double e0 = top->phi - w_here * height - log_total;
    const double e1 = top->phi1_re - rise * top->phi1_im - turn * (top->l1_im + rise * top->l1_re);
    const double sq = 1.0 - rise * rise;
    const double e2 = 0.5 * (top->phi2_re * sq - 2.0 * rise * top->phi2_im)
        - 0.5 * turn * (top->l2_im * sq + 2.0 * rise * top->l2_re);
    const double rest = fp_several_times(top->b_phi + w_here * top->b_l, fp_several_rest(eta))
        + 2.0 * (top->slack_phi + w_here * top->slack_l);
    const double reach = fabs(e1) * h, lost = rest + fp_max(e2, 0.0) * h * h;
    const double spread = reach < 1e-3 ? 1.0 + reach * reach : -fp_expm1(-2.0 * reach) / (2.0 * reach);
    (void)t;
    cell->loose = lost + fp_max(-e2, 0.0) * h * h * 0.3;
    const double rounding = 1e-9 + 8.0 * FP_U * (fabs(top->phi) + w_here * fabs(height) + fabs(log_total));
    cell->integral = 2.0 * h * along * fp_exp(e0 + (reach < 1e-3 ? 0.0 : reach) + lost + rounding) * spread;
    return cell->integral < INFINITY;
}

/* A bound of |m(w')| for all w' >= w by one path */
static inline double fp_several_path(const fp_contour_factor *factor, double w, fp_several_room *room)
{
    const fp_contour_several *pair = factor->pair;
    const fp_log_ratio *r = &pair->r;
    const double t = factor->t, left = factor->state[0], right = factor->state[1];
    const double log_total = factor->kappa - factor->kappa_error + FP_LOG_SQRT_2PI;
    fp_several_cell *cells = room->cells;
    int count = 32;
    for (int i = 0; i < count; i++)
        cells[i] = (fp_several_cell){.x = left + (i + 0.5) * ((right - left) / count),
                                     .h = 0.5 * (right - left) / count};
    double best = 1.0;
    for (int round = 0; round < FP_SEVERAL_ROUNDS; round++) {
        count = fp_several_cells(r, t, w, log_total, count, room);
        if (!count)
            return best;
        fp_several_heights(w, cells, count);
        double total = factor->state[2];
        int refused = 0, loose = 0;
        for (int start = 0, stop; start < count; start = stop) {
            int jobs = 0, levels[FP_SEVERAL_CELLS / (FP_SEVERAL_LEVELS + 1)];
            for (stop = start; stop < count && stop - start < FP_SEVERAL_CELLS / (FP_SEVERAL_LEVELS + 1); stop++) {
                const fp_several_cell *cell = cells + stop;
                const double y = 0.5 * (fabs(cell->y[0]) + fabs(cell->y[1]));
                const double wanted = ceil(cell->levels * y / (1.6 * cell->radius * fp_several_eta(cell)));
                const int some = y > 0.0 ? (wanted < FP_SEVERAL_LEVELS ? (wanted > 1.0 ? (int)wanted : 1)
                                            : FP_SEVERAL_LEVELS) : 0;
                levels[stop - start] = some;
                if (cell->valued && cell->at[0] == cell->y[0] && cell->at[1] == cell->y[1])
                    continue;
                for (int k = 0; k < some; k++)
                    room->discs[jobs++] = (fp_several_disc){.x = cell->x, .y = (k + 0.5) * (y / some),
                                                            .radius = fp_max(4.0 * cell->h, cell->radius)};
                room->discs[jobs++] = (fp_several_disc){.x = cell->x, .y = y,
                                                        .radius = fp_max(4.0 * cell->h, cell->radius)};
            }
            if (room->analysed > FP_SEVERAL_WORK)
                return best;
            fp_several_analyse(r, t, room->discs, jobs, room);
            jobs = 0;
            for (int i = start; i < stop; i++) {
                fp_several_cell *cell = cells + i;
                if (cell->valued && cell->at[0] == cell->y[0] && cell->at[1] == cell->y[1]) {
                    total += cell->integral;
                    continue;
                }
                cell->valued = 1, cell->at[0] = cell->y[0], cell->at[1] = cell->y[1];
                if (!fp_several_cell_bound(t, w, log_total, cell, room->discs + jobs, levels[i - start])) {
                    const double y = fp_max(fabs(cell->y[0]), fabs(cell->y[1]));
                    cell->cap = round + 3 < FP_SEVERAL_ROUNDS ? (cell->refused % 2 ? 0.75 : 0.95) * y : 0.0;
                    cell->levels *= cell->refused++ % 2 ? 1.0 : 1.6;
                    cell->integral = INFINITY, cell->valued = 0;
                    refused++;
                }
                total += cell->integral;
                jobs += levels[i - start] + 1;
            }
        }
        if (!refused && total < best)
            best = total;
        if (!refused)
            for (int i = 0; i < count; i++)
                if (cells[i].loose > 0.02 && cells[i].loose * cells[i].integral > 3e-4 * total
                    && count + loose < FP_SEVERAL_CELLS / 2)
                    cells[i].known = 0, loose++;
        if (!refused && !loose)
            break;
        if (loose) { /* halve them */
            int at = 0;
            for (int i = 0; i < count; i++) {
                const fp_several_cell cell = cells[i];
                const double half = 0.5 * cell.h;
                if (cell.known) {
                    room->spare[at++] = cell;
                } else {
                    room->spare[at++] = (fp_several_cell){.x = cell.x - half, .h = half};
                    room->spare[at++] = (fp_several_cell){.x = cell.x + half, .h = half};
                }
            }
            memcpy(cells, room->spare, sizeof *cells * (size_t)at);
            count = at;
        }
    }
    return fp_min(best, 1.0);
}

/* A bound of the variance of l under the tilt of `factor`: with c its mean, E (l - c)^2 <= E (2 cosh(d (l - c)) - 2) /
 * d^2. Infinite where the moments at t - d and t + d are not known. `work` is for their nodes. */
static inline double fp_several_variance(const fp_contour_factor *factor, fp_contour_factor *work)
{
    const double t = factor->t, room = fp_min(t, factor->largest_t - t);
    const double d = fp_min(0.3 / sqrt(factor->variance), 0.5 * room);
    double sum = -2.0;
    for (int side = -1; side <= 1; side += 2) {
        if (!(d > 0.0) || factor->kind->build(work, t + side * d, 0.0, FP_CONTOUR_AIM))
            return INFINITY;
        const double moved = work->t - t, kappa = work->kappa - factor->kappa - moved * factor->mean;
        const double error = work->kappa_error + factor->kappa_error
                             + 8.0 * FP_U * (1.0 + fabs(work->kappa) + fabs(factor->kappa)
                                             + fabs(moved * factor->mean));
        sum += fp_exp(kappa + error);
    }
    /* both distances are d but for a rounding, which leaves a part of E (l - c): 1e-4 of the sum, or the last bound */
    const double least = d - 4.0 * FP_U * (t + d), lost = 1e5 * FP_U * (t + d) / least;
    const double most = fp_max((sum + 16.0 * FP_U * (sum + 2.0)) * (1.0 + 1e-4), lost * lost);
    return least > 0.0 ? most / (least * least) : INFINITY;
}

/* `decay` of this kind */
static inline double fp_contour_several_decay(const fp_contour_factor *factor, double w)
{
    fp_several_room room = {malloc(sizeof(fp_several_cell) * (FP_SEVERAL_CELLS + 2)),
                            malloc(sizeof(fp_several_cell) * (FP_SEVERAL_CELLS + 2)),
                            malloc(sizeof(fp_several_disc) * (2 * FP_SEVERAL_CELLS)), malloc(sizeof(fp_discs)), 0};
    double bound = 1.0;
    if (room.cells && room.spare && room.discs && room.work && w > 0.0) {
        double log_size, phase, wrong;
        factor->kind->moments(factor, 1.0, w, 1, &log_size, &phase, &wrong);
        const double here = fp_min(1.0, fp_exp(log_size) + wrong), aim = here + 0.25 * (1.0 - here);
        double far = w, beyond = bound = fp_several_path(factor, w, &room);
        for (int i = 0; i < FP_SEVERAL_REACH && beyond > aim && here > 0.05; i++) {
            far *= 1.5;
            beyond = fp_several_path(factor, far, &room);
        }
        if (beyond < bound) { /* values of m from w to far bound it between them */
            fp_contour_factor own = *factor;
            memset(&own.nodes, 0, sizeof own.nodes);
            double most = fp_max(beyond, aim), at = w;
            const double variance = fp_several_variance(factor, &own);
            int status = !(variance < INFINITY) ? 1 : factor->kind->build(&own, factor->t, far, 16.0);
            for (int step = 0; at < far && !status; step++) {
                factor->kind->moments(&own, 1.0, at, 1, &log_size, &phase, &wrong);
                const double size = fp_exp(log_size) + wrong + 1e-14;
                if (size >= 1.0 || step == FP_SEVERAL_STEPS) {
                    status = 1;
                    break;
                }
                const double margin = 1.0 - size;
                most = fp_max(most, size + fp_min(0.1, 0.25 * margin));
                const double rise = (most - size) * (most + size) * (1.0 - 1e-12);
                const double slow = 1.001 * variance + 1e-300, fast = 2.0 * most * sqrt(slow);
                at += fp_max(rise / fast, rise / (at * slow + sqrt(at * at * slow * slow + 2.0 * rise * slow)));
                at *= 1.0 - 4.0 * FP_U;
            }
            if (!status)
                bound = fp_min(bound, most);
            free(own.nodes.block);
        }
    }
    free(room.cells), free(room.spare), free(room.discs), free(room.work);
    return fp_min(bound, 1.0);
}

static const fp_contour_kind fp_contour_several_kind = {fp_contour_several_build, fp_contour_nodes_moments,
                                                        fp_contour_several_decay};

static inline void fp_contour_several_factor(fp_contour_factor *factor, const fp_contour_several *pair, double count)
{
    memset(factor, 0, sizeof *factor);
    factor->kind = &fp_contour_several_kind, factor->pair = pair, factor->count = count;
    factor->largest_t = pair->largest_t, factor->log_mass = fp_log1p(pair->mass);
}

#endif
