/* Bounds of a hockey-stick divergence that need neither crossings nor integrals, which close every computation of one.
 *
 * Notation (docs/proofs/monotone_pieces.md, theorem 3.7). a = e^eps; P = sum_i w_i N(m_i, s_i^2) and Q = sum_j v_j
 * N(n_j, t_j^2), of any mass.
 *
 * Lower bounds, by data processing: a divergence is at least that of the masses of cells that cover the line, H at
 * least the sum of (P(c) - a Q(c))^+. The cells end at m - 3 s and m + 3 s for the narrowest component (m, s) of both
 * mixtures. These ends are relative to its mean, so that no component is too narrow to be seen.
 *
 * Upper bound of H, by affinity: H = P(R) - integral of min(p, a q). By Cauchy's inequality, with B the integral of
 * sqrt(p q), a B^2 is at most that integral times that of max(p, a q), which is at most P(R) + a Q(R); and again by
 * Cauchy's inequality B is at least the sum of sqrt(w_i v_j) B_ij over disjoint pairs (i, j) of components. */
/* bounds: proved - rounding of masses of cells and of affinities: docs/proofs/monotone_pieces.md, theorem 3.17 */
#ifndef FP_ELEMENTARY_BOUNDS_H
#define FP_ELEMENTARY_BOUNDS_H

#include "line/fp_bracket.h"
#include "special/fp_math.h"

#define FP_CELLS 3      /* left of the narrowest component, at it, right of it */
#define FP_CELL_END 3.0 /* in its standard deviations */
/* bound: none - components of each mixture, up to which pairs are sought for the affinity */
#define FP_MAX_AFFINITY_COMPONENTS 4

/* Masses of an interval under both mixtures, with bounds of their absolute errors. */
typedef struct {
    double p, p_error, q, q_error;
} fp_interval_mass;

typedef struct {
    fp_interval_mass cell[FP_CELLS];
    double p, q;     /* upper bounds of the masses */
    double affinity; /* lower bound of B^2 */
} fp_elementary_bounds;

/* Masses of the cells around N(centre, sigma^2) under one mixture. An end z, in a component's sigmas, errs by
 * e = FP_ROUND (|away| + |step|) / s, and its tail Phi(-|z|) by at most e phi(|z| - e) <= e e^(e |z|) phi(z), where
 * phi(z) <= (1 + |z|) Phi(-|z|); where e is not small nothing is known of it, and beyond 40 it is below e^-800. */
static inline void fp_cell_masses(double centre, double sigma, int n, const double *w, const double *m,
                                  const double *s, double mass[FP_CELLS], double error[FP_CELLS])
{
    const double step = FP_CELL_END * sigma;
    for (int c = 0; c < FP_CELLS; ++c)
        mass[c] = error[c] = 0.0;
    for (int i = 0; i < n; ++i) {
        const double away = centre - m[i];
        double z[2], tail[2], off[2]; /* left of the first end, right of the second */
        for (int k = 0; k < 2; ++k) {
            const double at = (k ? -away - step : away - step) / s[i], e = FP_ROUND * ((fabs(away) + step) / s[i]);
            z[k] = at < -1e3 ? -1e3 : at > 1e3 ? 1e3 : at;
            const double near = e * (1.0 + fabs(z[k])), least = fp_ndtr(-fabs(z[k]));
            tail[k] = z[k] < 0.0 ? least : 1.0 - least;
            off[k] = fabs(at) - e > 40.0 ? 0.0 : near < 1.0 ? 3.0 * near * least : 1.0;
        }
        const double both = tail[0] + tail[1], part[FP_CELLS] = {
            tail[0], both < 0.5 ? 1.0 - both : fp_ndtr_diff(z[0], -z[1]), tail[1]};
        const double slip[FP_CELLS] = {off[0], off[0] + off[1], off[1]};
        for (int c = 0; c < FP_CELLS; ++c) {
            mass[c] += w[i] * part[c];
            error[c] += w[i] * (slip[c] < 1.0 ? slip[c] : 1.0) + 1e-300;
        }
    }
    for (int c = 0; c < FP_CELLS; ++c)
        error[c] += (FP_NDTR_DIFF_ERROR + 2.3e-16 * n) * mass[c];
}

static inline int fp_index_of_least(int n, const double *x)
{
    int best = 0;
    for (int i = 1; i < n; ++i)
        best = x[i] < x[best] ? i : best;
    return best;
}

/* The masses of the cells around N(centre, sigma^2) under P and Q. */
static inline void fp_cells_around(double centre, double sigma, int np, const double *w, const double *m,
                                   const double *s, int nq, const double *v, const double *n, const double *t,
                                   fp_interval_mass cell[FP_CELLS])
{
    double p[FP_CELLS], p_error[FP_CELLS], q[FP_CELLS], q_error[FP_CELLS];
    fp_cell_masses(centre, sigma, np, w, m, s, p, p_error);
    fp_cell_masses(centre, sigma, nq, v, n, t, q, q_error);
    for (int c = 0; c < FP_CELLS; ++c)
        cell[c] = (fp_interval_mass){p[c], p_error[c], q[c], q_error[c]};
}

static inline void fp_elementary_bounds_build(int np, const double *w, const double *m, const double *s, int nq,
                                              const double *v, const double *n, const double *t,
                                              fp_elementary_bounds *out)
{
    const int of_p = fp_index_of_least(np, s), of_q = fp_index_of_least(nq, t);
    const double centre = s[of_p] <= t[of_q] ? m[of_p] : n[of_q], sigma = s[of_p] <= t[of_q] ? s[of_p] : t[of_q];
    fp_cells_around(centre, sigma, np, w, m, s, nq, v, n, t, out->cell);
    out->p = out->q = 0.0;
    for (int i = 0; i < np; ++i)
        out->p += w[i];
    for (int j = 0; j < nq; ++j)
        out->q += v[j];
    out->p *= 1.0 + 2.3e-16 * np, out->q *= 1.0 + 2.3e-16 * nq;
    double sum = 0.0;
    uint32_t taken = 0;
    for (int i = 0; i < np && i < FP_MAX_AFFINITY_COMPONENTS; ++i) {
        double best = 0.0;
        int partner = -1;
        for (int j = 0; j < nq && j < FP_MAX_AFFINITY_COMPONENTS; ++j) {
            const double most = s[i] > t[j] ? s[i] : t[j], ratio = (s[i] > t[j] ? t[j] : s[i]) / most;
            const double away = (m[i] - n[j]) / most, both = 1.0 + ratio * ratio;
            const double size = 2.0 * ratio / both * w[i] * v[j] * fp_exp(-0.5 * away * away / both); /* squared */
            if (!(taken >> j & 1) && size > best)
                best = size, partner = j;
        }
        if (partner >= 0)
            taken |= (uint32_t)1 << partner, sum += sqrt(best);
    }
    out->affinity = sum * sum * (1.0 - 1e-12);
}

/* Lower bound of H for a cover of the line, or of a part of it, less its rounding; `sum` is without that. */
FP_INLINE double fp_lower_bound_from_cells(const fp_interval_mass *cell, int cells, double factor, double *sum)
{
    double error = 0.0;
    *sum = 0.0;
#pragma GCC unroll 3
    for (int k = 0; k < cells; ++k) {
        const double gain = cell[k].p - factor * cell[k].q;
        const double loss = cell[k].p_error + factor * cell[k].q_error + FP_ROUND * (cell[k].p + factor * cell[k].q);
        *sum += gain > 0.0 ? gain : 0.0;
        error += gain > 0.0 ? loss : 0.0;
    }
    return *sum * (1.0 - 2.3e-16 * (cells + 4)) - error * (1.0 + 1e-9);
}

/* Bounds of H at one epsilon; [0, infinity] from 600 on */
FP_INLINE void fp_elementary_bounds_at(const fp_elementary_bounds *known, double epsilon, double *lower, double *upper)
{
    const int none = !(epsilon < 600.0);
    const double factor = fp_exp(epsilon), scale = known->p / factor + known->q;
    const double most = known->p - known->affinity / scale * (1.0 - 1e-13) + 4.5e-16 * known->p;
    double sum;
    const double least = fp_lower_bound_from_cells(known->cell, FP_CELLS, factor, &sum);
    *lower = none || !(least > 0.0) ? 0.0 : least;
    *upper = none ? INFINITY : most;
}

/* Bring a bracket of H within these bounds. Where they contradict it, the bracket becomes the hull of both, and 1 is
 * returned. */
static inline int fp_close_bracket(double lower, double upper, fp_bracket *out)
{
    if (upper == INFINITY || (lower <= out->lower && upper >= out->upper)) /* the bracket says more, and agrees */
        return 0;
    if (!(lower <= out->upper && upper >= out->lower)) {
        const int above = !(lower <= out->upper);
        out->upper = above ? 1.0 : out->upper, out->log_upper = above ? 0.0 : out->log_upper;
        out->lower = above ? out->lower : 0.0, out->log_lower = above ? out->log_lower : -INFINITY;
        return 1;
    }
    if (lower > out->lower && lower > 1e-290) {
        const double log_lower = fp_log(lower) - 1e-14 * (1.0 + fabs(fp_log(lower)));
        out->lower = lower;
        out->log_lower = log_lower > out->log_lower ? log_lower : out->log_lower;
    }
    if (upper < out->upper && upper > 1e-290) {
        const double log_upper = fp_log(upper) + 1e-14 * (1.0 + fabs(fp_log(upper)));
        out->upper = upper;
        out->log_upper = log_upper < out->log_upper ? log_upper : out->log_upper;
    }
    out->value = out->value < out->lower ? out->lower : out->value > out->upper ? out->upper : out->value;
    out->log_value = out->log_value < out->log_lower   ? out->log_lower
                     : out->log_value > out->log_upper ? out->log_upper
                                                       : out->log_value;
    return 0;
}

#endif
