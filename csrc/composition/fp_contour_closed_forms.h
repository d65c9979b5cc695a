/* Pairs whose moments are known in closed form, Laplace noise and atoms, as factors of a sum along a contour.
 *
 * Notation of fp_contour_factor_solver.h; P and Q have masses e^a and e^b, which add a + z (a - b) to log M(z).
 *
 * One Gaussian against one, in standard deviations of P: p = N(0, 1), q = N(m, s^2), l = c + B x + A x^2 with
 *     A = (1/s^2 - 1)/2,  B = -m/s^2,  c = log s + m^2 / (2 s^2),
 *     log M(z) = z c - log(1 - 2 A z)/2 + z^2 B^2 / (2 (1 - 2 A z)),  Re z < 1/(2 A) where A > 0.
 * Under the tilt x is N(t B/D, 1/D), D = 1 - 2 A t, and l less its mean is beta u + alpha (u^2 - 1) for a standard
 * normal u, with alpha = A/D, beta = B/D^(3/2), so that
 *     log m(w) = -i w alpha - log(1 - 2 i w alpha)/2 - w^2 beta^2 / (2 (1 - 2 i w alpha)),
 *     log |m| = -log(1 + 4 alpha^2 w^2)/4 - w^2 beta^2 / (2 (1 + 4 alpha^2 w^2)),
 * which falls with w. A relative change e of D, A and B moves log m by at most e (2 |w alpha| + 2 w^2 beta^2/|1 - 2
 * i w alpha|) to first order, times 3.
 *
 * Laplace noise of scale 1 and a shift r: l = r for x < 0, r - 2 x up to r and -r beyond, of masses 1/2 and e^-r / 2
 * at the ends. The part between has nodes on panels so short that |1 + 2 z| times the length is at most 24: on the
 * ellipse of Bernstein with rho = 5 the integrand is at most e^31.2 times that in the middle, and 32 points of Gauss
 * and Legendre err by less than e^-70 of it. M(z) = ((1 + z) e^(z r) + z e^(-(1+z) r)) / (1 + 2 z), where
 * |1 + z| / |1 + 2 z| and |z| / |1 + 2 z| tend to 1/2 along the contour, from one side each: further on they are at
 * most the larger of their value and 1/2.
 *
 * Atoms are nodes themselves. Outcomes with p = 0 count nothing; those with q = 0 < p must be left out by the caller.
 */
/* bounds: proved - rounding of closed forms, docs/proofs/contour.md, theorem 2.15 */
#ifndef FP_CONTOUR_CLOSED_FORMS_H
#define FP_CONTOUR_CLOSED_FORMS_H

#include "composition/fp_contour_factor_solver.h"
#include "line/fp_gauss_legendre_tables.h"

typedef struct {
    double a, b, c, shift, relative, c_error; /* A, B, c + log mass of P - that of Q; relative error of A and B */
} fp_contour_gaussians;

/* `excess` are the masses of P and Q less 1. */
static inline void fp_contour_gaussians_make(fp_contour_gaussians *pair, double mean_p, double sigma_p, double mean_q,
                                             double sigma_q, const double excess[2])
{
    const double s = sigma_q / sigma_p, m = (mean_q - mean_p) / sigma_p, inverse = 1.0 / (s * s),
        away = sigma_q - sigma_p;
    const double log_s = fabs(away) < 0.5 * sigma_p ? fp_log1p(away / sigma_p) : fp_log(s);
    pair->a = -0.5 * (away / sigma_q) * ((sigma_q + sigma_p) / sigma_q);
    pair->b = -m * inverse, pair->c = log_s + 0.5 * m * m * inverse;
    const double log_p = fp_log1p(excess[0]), log_q = fp_log1p(excess[1]);
    pair->shift = log_p - log_q;
    pair->relative = 10.0 * FP_U;
    pair->c_error = FP_U * (8.0 * fabs(log_s) + 6.0 * m * m * inverse + (fabs(away) < 0.5 * sigma_p ? 0.0 : 4.0)
                            + 6.0 * (fabs(log_p) + fabs(log_q)) + 2.0 * fabs(pair->c));
}

static inline int fp_contour_gaussians_build(fp_contour_factor *factor, double t, double w, double aim)
{
    const fp_contour_gaussians *pair = factor->pair;
    const double a = pair->a, b = pair->b, d = 1.0 - 2.0 * a * t, slack = pair->relative + FP_U * 4.0;
    (void)w, (void)aim;
    /* of d; b, alpha and beta err by a few times as much */
    const double size = fabs(t), relative = (2.0 * fabs(a) * size * slack + 2.0 * FP_U) / d + slack;
    if (!(d > 0.0) || !(relative < 1e-6))
        return 1;
    const double square = b * b / d, log_d = fp_log1p(-2.0 * a * t), whole = pair->c + pair->shift;
    const double parts[3] = {t * whole, -0.5 * log_d, 0.5 * t * t * square};
    const double means[3] = {a / d, t * square, a * t * t * (square / d)};
    factor->t = t;
    factor->kappa = parts[0] + parts[1] + parts[2] + factor->log_mass;
    factor->kappa_error = size * pair->c_error
                          + FP_U * (6.0 * fabs(parts[0]) + 9.0 * fabs(parts[1]) + 4.0 * fabs(parts[2]) + 7.0 * fabs(factor->log_mass)) + fabs(a) * size / d * slack * 1.1
                              + fabs(parts[2]) * 4.0 * relative;
    factor->mean = whole + means[0] + means[1] + means[2];
    factor->variance = 2.0 * (a / d) * (a / d) + square / (d * d);
    factor->state[0] = a / d, factor->state[1] = square / (d * d); /* alpha, beta^2 */
    factor->state[2] = pair->c_error + 4.0 * FP_U * (fabs(whole) + fabs(factor->mean))
                       + 6.0 * relative * (fabs(means[0]) + fabs(means[1]) + fabs(means[2])); /* error of the mean */
    factor->state[3] = 8.0 * relative;
    return 0;
}

static inline void fp_contour_gaussians_moments(const fp_contour_factor *factor, double first, double step, int count,
                                                double *log_size, double *phase, double *wrong)
{
    const double alpha = factor->state[0], square = factor->state[1];
    for (int j = 0; alpha == 0.0 && j < count; j++) { /* equal variances */
        const double w = (first + j) * step, part = 0.5 * w * w * square;
        log_size[j] = -part, phase[j] = 0.0;
        wrong[j] = fp_exp(-part) * (w * factor->state[2] + 12.0 * factor->state[3] * part);
    }
    for (int j = 0; alpha != 0.0 && j < count; j++) {
        const double w = (first + j) * step, v = 2.0 * alpha * w, norm = 1.0 + v * v,
            part = 0.5 * w * w * square / norm;
        log_size[j] = -0.25 * fp_log1p(v * v) - part;
        phase[j] = 0.5 * (atan(v) - v) - v * part;
        wrong[j] = fp_exp(log_size[j]) * (w * factor->state[2] + 3.0 * factor->state[3] * (fabs(v)
                                                                                           + 4.0 * part * sqrt(norm))
                                          + 4.0 * FP_U * fabs(v) * (1.0 + part));
    }
}

static inline double fp_contour_gaussians_decay(const fp_contour_factor *factor, double w)
{
    const double v = 2.0 * factor->state[0] * w, log_size = -0.25 * fp_log1p(v * v)
        - 0.5 * w * w * factor->state[1] / (1.0 + v * v);
    return fp_min(1.0, fp_exp(log_size * (1.0 - 8.0 * factor->state[3])) * (1.0 + 1e-14));
}

static const fp_contour_kind fp_contour_gaussians_kind = {fp_contour_gaussians_build, fp_contour_gaussians_moments,
                                                          fp_contour_gaussians_decay};

static inline void fp_contour_gaussians_factor(fp_contour_factor *factor, const fp_contour_gaussians *pair,
                                               double excess, double count)
{
    memset(factor, 0, sizeof *factor);
    factor->kind = &fp_contour_gaussians_kind, factor->pair = pair, factor->count = count;
    factor->largest_t = pair->a > 0.0 ? 0.5 / pair->a * (1.0 - 1e-9) : INFINITY, factor->log_mass = fp_log1p(excess);
    factor->both_sides = 1;
}

#define FP_LAPLACE_NODES 264 /* eight panels: up to so many nodes count, beyond the closed form */

typedef struct {
    double shift, slack; /* in scales; its relative error */
} fp_contour_laplace;

static inline int fp_contour_laplace_build(fp_contour_factor *factor, double t, double w, double aim)
{
    const fp_contour_laplace *pair = factor->pair;
    fp_contour_nodes *nodes = &factor->nodes;
    const double r = pair->shift, still = ceil(fp_max(1.0, (1.0 + 2.0 * fabs(t)) * r / 24.0));
    const double all = ceil(fp_max(1.0, (1.0 + 2.0 * fabs(t) + 2.0 * w) * r / 24.0));
    const int closed = t >= 0.0 && 32.0 * all + 8.0 > FP_LAPLACE_NODES; /* nodes serve w = 0 only; 1 + 2 z is 0 at -1/2 */
    const double panels = closed ? still : all;
    factor->state[0] = closed;
    (void)aim;
    if (!(panels < FP_CONTOUR_NODES / 64))
        return 1;
    const int count = (int)panels, n = 32 * count + 8;
    if (fp_contour_nodes_reserve(nodes, n))
        return -1;
    const double half = 0.5 * r / count, error = r * pair->slack + FP_U * 2.0 * r;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < 32; j++) {
            const double x = half * (2.0 * i + 1.0 + fp_legendre_nodes_32[j]);
            const double log_p = nodes->log_p[32 * i + j] = fp_log(0.5 * half * fp_legendre_weights_32[j]) - x;
            nodes->loss[32 * i + j] = r - 2.0 * x;
            nodes->log_p_error[32 * i + j] = FP_U * (6.0 + 3.0 * fabs(log_p) + 8.0 * x) + 2.0 * error;
            nodes->loss_error[32 * i + j] = 3.0 * error + 4.0 * FP_U * r;
        }
    for (int i = n - 8; i < n; i++) { /* the atoms; the rest weighs nothing */
        const int second = i == n - 7;
        nodes->log_p[i] = i > n - 7 ? -1e30 : -FP_LN2 - (second ? r : 0.0), nodes->loss[i] = second ? -r : r;
        nodes->log_p_error[i] = i > n - 7 ? 0.0 : FP_U * (1.0 + 2.0 * r) + error, nodes->loss_error[i] = error;
    }
    fp_contour_nodes_tilt(factor, t, 0.0, fp_exp(-60.0), -INFINITY, -INFINITY, NULL);
    return 0;
}

/* Many nodes cost more than the two terms of M(z), A = (1 + z) e^(z r) / (1 + 2 z) and B = z e^(-(1+z) r) / (1 + 2 z),
 * whose errors are relative to each of them, not to m - 1. */
static inline void fp_contour_laplace_moments(const fp_contour_factor *factor, double first, double step, int count,
                                              double *log_size, double *phase, double *wrong)
{
    const fp_contour_laplace *pair = factor->pair;
    if (factor->state[0] == 0.0) {
        fp_contour_nodes_moments(factor, first, step, count, log_size, phase, wrong);
        return;
    }
    const double t = factor->t, r = pair->shift, mean = factor->mean;
    const double levels[2] = {t * r - factor->kappa, -(1.0 + t) * r - factor->kappa};
    for (int j = 0; j < count; j++) {
        const double w = (first + j) * step, c = 1.0 + 2.0 * t, square = c * c + 4.0 * w * w;
        const double away[2] = {r - mean, -r - mean};
        double re = 0.0, im = 0.0, error = 0.0;
        for (int k = 0; k < 2; k++) { /* (a + i w) (c - 2 i w) / square, c - 2 a = -1 or 1 */
            const double a = k ? t : 1.0 + t, u = (a * c + 2.0 * w * w) / square, v = (k ? w : -w) / square;
            const double angle = w * away[k], size = fp_exp(levels[k]), x = cos(angle), y = sin(angle);
            re += size * (u * x - v * y), im += size * (u * y + v * x);
            error += size * (fabs(u) + fabs(v))
                     * (1.1 * factor->kappa_error + FP_U * (24.0 + 6.0 * (1.0 + t) * r + 4.0 * fabs(factor->kappa))
                        + 2.0 * (1.0 + t) * r * pair->slack
                        + w * (2.0 * r * pair->slack + 4.0 * FP_U * (r + fabs(mean))));
        }
        log_size[j] = 0.5 * fp_log(re * re + im * im + 1e-300), phase[j] = atan2(im, re);
        wrong[j] = error + 1e-140;
    }
}

static inline double fp_contour_laplace_decay(const fp_contour_factor *factor, double w)
{
    const fp_contour_laplace *pair = factor->pair;
    const double t = factor->t, r = pair->shift, a = (1.0 + t) * (1.0 + t) + w * w,
        b = (1.0 + 2.0 * t) * (1.0 + 2.0 * t) + 4.0 * w * w;
    const double size = fp_max(0.5, sqrt(a / b)) * fp_exp(t * r - factor->kappa)
                        + fp_max(0.5, sqrt((t * t + w * w) / b)) * fp_exp(-(1.0 + t) * r - factor->kappa);
    return fp_min(1.0, size * (1.0 + 1e-13) * fp_exp(factor->kappa_error + 8.0 * FP_U * (1.0 + fabs(t)) * r));
}

static inline double fp_contour_laplace_distance(const fp_contour_factor *factor, double w)
{
    if (factor->state[0] == 0.0)
        return fp_contour_nodes_distance(factor, w);
    double log_size, phase, wrong;
    fp_contour_laplace_moments(factor, 1.0, w, 1, &log_size, &phase, &wrong);
    return -fp_expm1(2.0 * log_size) - 2.1 * wrong;
}

static const fp_contour_kind fp_contour_laplace_kind = {fp_contour_laplace_build, fp_contour_laplace_moments,
                                                        fp_contour_laplace_decay, fp_contour_laplace_distance};

/* shift and scale: two numbers of double precision, shift > 0 */
static inline void fp_contour_laplace_factor(fp_contour_factor *factor, fp_contour_laplace *pair, double scale,
                                             double shift, double count)
{
    memset(factor, 0, sizeof *factor);
    pair->shift = shift / scale, pair->slack = FP_U;
    factor->kind = &fp_contour_laplace_kind, factor->pair = pair, factor->count = count, factor->largest_t = INFINITY;
    factor->both_sides = 1;
}

typedef struct {
    int n;
    const double *p, *q;
    double mass; /* of P, less 1 */
} fp_contour_atoms;

static inline int fp_contour_atoms_build(fp_contour_factor *factor, double t, double w, double aim)
{
    const fp_contour_atoms *pair = factor->pair;
    fp_contour_nodes *nodes = &factor->nodes;
    const int n = fp_padded(pair->n);
    (void)w, (void)aim;
    if (fp_contour_nodes_reserve(nodes, n))
        return -1;
    for (int j = 0; j < n; j++) {
        const int real = j < pair->n;
        const double p = real ? pair->p[j] : 1.0, q = real ? pair->q[j] : 1.0, away = p - q;
        const int near = fabs(away) < 0.5 * q; /* the difference is exact */
        nodes->log_p[j] = real ? fp_log(p) : -1e30, nodes->log_p_error[j] = real ? 2.0 * FP_U * fabs(nodes->log_p[j])
            : 0.0;
        nodes->loss[j] = near ? fp_log1p(away / q) : fp_log(p) - fp_log(q);
        nodes->loss_error[j] = near ? 7.0 * FP_U * fabs(nodes->loss[j])
                                    : FP_U * (2.0 * fabs(fp_log(p)) + 2.0 * fabs(fp_log(q)) + fabs(nodes->loss[j]));
    }
    fp_contour_nodes_tilt(factor, t, pair->mass, 0.0, -INFINITY, -INFINITY, NULL);
    return 0;
}

static inline double fp_contour_no_decay(const fp_contour_factor *factor, double w)
{
    (void)factor, (void)w;
    return 1.0;
}

static const fp_contour_kind fp_contour_atoms_kind = {fp_contour_atoms_build, fp_contour_nodes_moments,
                                                      fp_contour_no_decay, fp_contour_nodes_distance};

/* Outcomes with p, q > 0 */
static inline void fp_contour_atoms_factor(fp_contour_factor *factor, const fp_contour_atoms *pair, double count)
{
    memset(factor, 0, sizeof *factor);
    factor->kind = &fp_contour_atoms_kind, factor->pair = pair, factor->count = count;
    factor->largest_t = INFINITY, factor->log_mass = fp_log1p(pair->mass), factor->both_sides = 1;
}

#endif
