/* The log-likelihood ratio of two one-dimensional Gaussian mixtures: types and set-up.
 *
 * Notation.  P = sum_i w_i N(m_i, s_i^2), Q likewise; p, q their densities; L = log p - log q.  For one side and a
 * point x:  h_i = log(w_i / s_i) - z_i^2 / 2 with z_i = (x - m_i) / s_i, responsibilities r_i = e^{h_i} / sum e^{h_j},
 * scores g_i = -z_i / s_i, precisions t_i = 1 / s_i^2, a = E_r g, b = E_r t.  The normalising sqrt(2 pi) is left out
 * of both sides.
 *
 * Two forms of L.  `separate`: log p and log q by log-sum-exp.  `coupled`: with weights pi_k that couple the
 * components of P and Q, L = log(1 + u), u = sum_k rho_k expm1(D_k), where rho_k = pi_k N_j / q and D_k is the log
 * ratio of the coupled components, a quadratic known without cancellation.  The coupled form keeps its relative
 * accuracy when P and Q are nearly equal.
 */
#ifndef FP_RATIO_H
#define FP_RATIO_H

#include "fp_dispatch.h"
#include "fp_dd.h"
#include "fp_math.h"
#include <math.h>
#include <stddef.h>

#define FP_LANES 8
#define FP_ROUND 1.0e-15 /* nine units of 2^-53: covers the few roundings of each elementary term below */

typedef double fp_v8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef long long fp_v8i __attribute__((vector_size(64), aligned(8), may_alias));

/* One mixture, padded with weightless components to whole lanes. `load_i` = |log w_i| + |log s_i|. */
typedef struct {
    int n, padded;
    double *mean, *inverse, *precision, *log_weight, *load;
} fp_side;

/* Coupled components; the arrays continue those of Q's component j: weight pi_k at mean_j, s_j. */
typedef struct {
    int n, padded;
    double *mean, *inverse, *precision, *log_weight, *load;
    double *shift, *stretch, *log_scale, *inverse_p, *bend;
} fp_coupling;

/* One side a single component N(m_0, s^2), the other of the same s throughout: L = sign log sum_i e^{h_i} with
 * h_i = log(w_i / w_0) + b_i (x - m_0 - (m_i - m_0) / 2), b_i = (m_i - m_0) / s^2, free of cancellation at any x. */
typedef struct {
    int sign, padded; /* sign 0: not of this form */
    double centre;
    double *gap, *rate, *log_weight;
} fp_tilt;

typedef struct {
    fp_side p, q;
    fp_coupling pairs;
    fp_tilt tilt;
    int coupled;             /* whether P and Q are close enough for the coupled form to be worth trying */
    double coupling_defect;  /* what the coupled weights miss, an absolute error of u */
    double *w, *m, *s, *v, *n, *t; /* P = (w, m, s) and Q = (v, n, t), each sorted by mean and sigma */
    int np, nq;
    double *scratch;         /* 4 * (padded p + padded q + padded pairs) doubles */
    void *storage;
} fp_ratio;

/* L and its derivatives at a point with proved absolute errors, and the largest disc analysed. */
typedef struct {
    double value, error;
    double slope, slope_error;
    double curve, curve_error;
    double radius, bound; /* |sum_{n>=2} of the non-quadratic part| <= bound on |delta| <= radius */
} fp_taylor;

static inline int fp_padded(int n) { return (n + FP_LANES - 1) / FP_LANES * FP_LANES; }

static inline double *fp_take(double **cursor, int n)
{
    double *start = *cursor;
    *cursor += n;
    return start;
}

static inline void fp_side_fill(fp_side *side, int n, const double *w, const double *m, const double *s, double **cursor)
{
    int padded = fp_padded(n);
    side->n = n;
    side->padded = padded;
    side->mean = fp_take(cursor, padded);
    side->inverse = fp_take(cursor, padded);
    side->precision = fp_take(cursor, padded);
    side->log_weight = fp_take(cursor, padded);
    side->load = fp_take(cursor, padded);
    for (int i = 0; i < padded; ++i) {
        int real = i < n;
        side->mean[i] = real ? m[i] : m[0];
        side->inverse[i] = real ? 1.0 / s[i] : 1.0 / s[0];
        side->precision[i] = side->inverse[i] * side->inverse[i];
        side->log_weight[i] = real ? log(w[i]) - log(s[i]) : -INFINITY;
        side->load[i] = real ? fabs(log(w[i])) + fabs(log(s[i])) : 0.0;
    }
}

/* Couple sorted components greedily by weight, at most np + nq - 1 pairs.  The pairs of a component add up to its
 * weight but for roundings and the mismatch of the totals, which the last component of the other side absorbs; `defect`
 * bounds the sum of these errors relative to the weights. */
static inline int fp_couple(const fp_ratio *r, int *from_p, int *from_q, double *weight, double *defect)
{
    int i = 0, j = 0, k = 0;
    double left_p = r->w[0], left_q = r->v[0];
    *defect = 0.0;
    for (;;) {
        int last_p = i == r->np - 1, last_q = j == r->nq - 1;
        int take_p = last_q ? !last_p || left_p <= left_q : !last_p && left_p <= left_q;
        double mass = last_p && last_q ? (left_p > left_q ? left_p : left_q) : take_p ? left_p : left_q;
        from_p[k] = i;
        from_q[k] = j;
        weight[k++] = mass > 0.0 ? mass : 0.0;
        fp_dd rest_p = fp_two_sum(left_p, -mass), rest_q = fp_two_sum(left_q, -mass);
        if (last_p && last_q) {
            *defect += fabs(rest_p.hi) / r->w[i] + fabs(rest_q.hi) / r->v[j];
            return k;
        }
        if (take_p) {
            int both = rest_q.hi == 0.0 && !last_q && !last_p;
            left_q = rest_q.hi;
            *defect += fabs(rest_q.lo) / r->v[j];
            left_p = r->w[++i];
            if (both)
                left_q = r->v[++j];
        } else {
            left_p = rest_p.hi;
            *defect += fabs(rest_p.lo) / r->w[i];
            left_q = r->v[++j];
        }
    }
}

static inline void fp_coupling_fill(fp_ratio *r, int n, const int *from_p, const int *from_q, const double *weight,
                                    double **cursor)
{
    fp_coupling *c = &r->pairs;
    int padded = fp_padded(n);
    double distance = 0.0;
    c->n = n;
    c->padded = padded;
    double **fields[] = {&c->mean,  &c->inverse, &c->precision, &c->log_weight, &c->load, &c->shift,
                         &c->stretch, &c->log_scale, &c->inverse_p, &c->bend};
    for (size_t f = 0; f < sizeof fields / sizeof *fields; ++f)
        *fields[f] = fp_take(cursor, padded);
    for (int k = 0; k < padded; ++k) {
        int real = k < n && weight[k] > 0.0, i = real ? from_p[k] : 0, j = real ? from_q[k] : 0;
        double sp = r->s[i], sq = r->t[j];
        c->mean[k] = r->n[j];
        c->inverse[k] = 1.0 / sq;
        c->precision[k] = c->inverse[k] * c->inverse[k];
        c->log_weight[k] = real ? log(weight[k]) - log(sq) : -INFINITY;
        c->load[k] = real ? fabs(log(weight[k])) + fabs(log(sq)) : 0.0;
        c->inverse_p[k] = 1.0 / sp;
        c->shift[k] = real ? (r->m[i] - r->n[j]) / sp : 0.0;
        c->stretch[k] = real ? (sp - sq) / sp / sq : 0.0;
        c->log_scale[k] = real ? log1p((sq - sp) / sp) : 0.0;
        c->bend[k] = real ? c->stretch[k] * (c->inverse[k] + c->inverse_p[k]) : 0.0;
        if (real) {
            double far = fabs(c->shift[k]) + fabs(c->stretch[k]) * sq;
            distance += weight[k] * (far < 1.0 ? far : 1.0);
        }
    }
    r->coupled = distance < 0.05 && r->coupling_defect < 1e-12;
    r->coupling_defect *= 2.0; /* sum of rho_k (1 + |E_k|) is at most 2 where |u| < 1/2 */
}

static inline void fp_tilt_fill(fp_ratio *r, double **cursor)
{
    fp_tilt *tilt = &r->tilt;
    int many = r->nq == 1 ? r->np : r->nq, padded = fp_padded(many);
    const double *w = r->nq == 1 ? r->w : r->v, *m = r->nq == 1 ? r->m : r->n;
    const double *w0 = r->nq == 1 ? r->v : r->w, *m0 = r->nq == 1 ? r->n : r->m;
    double s = r->s[0];
    tilt->sign = r->nq == 1 ? 1 : r->np == 1 ? -1 : 0;
    for (int i = 0; i < r->np; ++i)
        tilt->sign = r->s[i] == s ? tilt->sign : 0;
    for (int j = 0; j < r->nq; ++j)
        tilt->sign = r->t[j] == s ? tilt->sign : 0;
    if (!tilt->sign)
        return;
    tilt->padded = padded;
    tilt->centre = m0[0];
    tilt->gap = fp_take(cursor, padded);
    tilt->rate = fp_take(cursor, padded);
    tilt->log_weight = fp_take(cursor, padded);
    for (int i = 0; i < padded; ++i) {
        tilt->gap[i] = i < many ? m[i] - m0[0] : 0.0;
        tilt->rate[i] = tilt->gap[i] / s / s;
        tilt->log_weight[i] = i < many ? log(w[i]) - log(w0[0]) : -INFINITY;
    }
}

typedef struct {
    double mean, sigma, weight;
} fp_component;

static int fp_component_order(const void *left, const void *right)
{
    const fp_component *a = left, *b = right;
    if (a->mean != b->mean)
        return a->mean < b->mean ? -1 : 1;
    return (a->sigma > b->sigma) - (a->sigma < b->sigma);
}

/* An exact change of origin and unit: a shift that loses no bit of any mean (0 when there is none), and a power of two
 * that brings the largest sigma near 1. */
typedef struct {
    double shift, scale;
} fp_frame;

static inline fp_frame fp_frame_of(int np, const double *m, const double *s, int nq, const double *n, const double *t)
{
    double widest = 0.0, farthest = 0.0, centre = m[np / 2];
    int exact = 1, exponent;
    for (int i = 0; i < np + nq; ++i) {
        double mean = i < np ? m[i] : n[i - np], sigma = i < np ? s[i] : t[i - np];
        widest = sigma > widest ? sigma : widest;
        farthest = fabs(mean) > farthest ? fabs(mean) : farthest;
        exact = exact && fp_two_sum(mean, -centre).lo == 0.0;
    }
    frexp(widest, &exponent);
    fp_frame frame = {0.0, ldexp(1.0, exponent > 1000 ? -1000 : exponent < -1000 ? 1000 : -exponent)};
    if (exact && farthest > 32.0 * widest)
        frame.shift = centre;
    return frame;
}

static inline void fp_sorted(int n, const double *w, const double *m, const double *s, fp_frame frame,
                             fp_component *work, double **out_w, double **out_m, double **out_s, double **cursor)
{
    *out_w = fp_take(cursor, n);
    *out_m = fp_take(cursor, n);
    *out_s = fp_take(cursor, n);
    for (int i = 0; i < n; ++i)
        work[i] = (fp_component){(m[i] - frame.shift) * frame.scale, s[i] * frame.scale, w[i]};
    qsort(work, (size_t)n, sizeof *work, fp_component_order);
    for (int i = 0; i < n; ++i) {
        (*out_w)[i] = work[i].weight;
        (*out_m)[i] = work[i].mean;
        (*out_s)[i] = work[i].sigma;
    }
}

/* Returns 0, or -1 when memory is short. Weights are positive; release with fp_ratio_free. */
static inline int fp_ratio_set(fp_ratio *r, int np, const double *w, const double *m, const double *s, int nq,
                               const double *v, const double *n, const double *t)
{
    int pairs = np + nq, big = np > nq ? np : nq;
    size_t padded = (size_t)fp_padded(np) + (size_t)fp_padded(nq) + (size_t)fp_padded(pairs);
    size_t doubles = 3 * (size_t)(np + nq) + 10 * padded + 3 * (size_t)fp_padded(big) + 4 * padded + 64;
    char *block = malloc(doubles * sizeof(double) + (size_t)big * sizeof(fp_component)
                         + (size_t)pairs * (2 * sizeof(int) + sizeof(double)));
    if (!block)
        return -1;
    double *cursor = (double *)block, *weight;
    fp_component *work = (fp_component *)(block + doubles * sizeof(double));
    int *from_p, *from_q;
    r->storage = block;
    r->np = np;
    r->nq = nq;
    fp_frame frame = fp_frame_of(np, m, s, nq, n, t);
    fp_sorted(np, w, m, s, frame, work, &r->w, &r->m, &r->s, &cursor);
    fp_sorted(nq, v, n, t, frame, work, &r->v, &r->n, &r->t, &cursor);
    weight = (double *)(work + big);
    from_p = (int *)(weight + pairs);
    from_q = from_p + pairs;
    int used = fp_couple(r, from_p, from_q, weight, &r->coupling_defect);
    fp_side_fill(&r->p, np, r->w, r->m, r->s, &cursor);
    fp_side_fill(&r->q, nq, r->v, r->n, r->t, &cursor);
    fp_coupling_fill(r, used, from_p, from_q, weight, &cursor);
    fp_tilt_fill(r, &cursor);
    r->scratch = cursor;
    return 0;
}

static inline void fp_ratio_free(fp_ratio *r) { free(r->storage); }

/* A stretch of the line.  FP_SLOPE: L is monotone with direction `sign`, `low` and `high` its values at the left and
 * right end (the limits for an infinite end), `error` bounding their error.  FP_FLAT: low <= L <= high, no more known.
 * FP_CURVE, while the line is being cut: L'' has the sign `sign`.  `guess` is the last crossing found here. */
enum { FP_SLOPE, FP_CURVE, FP_FLAT };

typedef struct {
    double left, right;
    int settled, sign;
    double low, high, error, guess;
} fp_piece;

typedef struct {
    fp_piece *piece;
    int count, capacity;
    long evaluations;
    double limit[2];
} fp_pieces;

static inline int fp_pieces_room(fp_pieces *out)
{
    if (out->count < out->capacity)
        return 0;
    int capacity = out->capacity ? 2 * out->capacity : 64;
    fp_piece *grown = realloc(out->piece, (size_t)capacity * sizeof *grown);
    if (!grown)
        return -1;
    out->piece = grown;
    out->capacity = capacity;
    return 0;
}

static inline void fp_pieces_free(fp_pieces *out) { free(out->piece); }

#endif
