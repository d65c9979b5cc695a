/* The log-likelihood ratio of two one-dimensional Gaussian mixtures: types and set-up.
 *
 * Notation.  P = sum_i w_i N(m_i, s_i^2), Q likewise; p, q their densities; L = log p - log q.  For one side and a
 * point x:  h_i = log(w_i / s_i) - z_i^2 / 2 with z_i = (x - m_i) / s_i, responsibilities r_i = e^{h_i} / sum e^{h_j},
 * scores g_i = -z_i / s_i, precisions t_i = 1 / s_i^2, a = E_r g, b = E_r t.  The normalising sqrt(2 pi) is left out
 * of both sides.
 *
 * Two forms of L.  `separate`: log p and log q by log-sum-exp.  `coupled`: L = log(1 + u), u = (p - q) / q, with
 * p - q as in fp_coupling, free of cancellation.  It keeps its relative accuracy when P and Q are nearly
 * equal. */
/* bounds: none - thresholds for choosing the coupled form */
#ifndef FP_LOG_RATIO_H
#define FP_LOG_RATIO_H

#include "common/fp_dispatch.h"
#include "common/fp_dd.h"
#include "common/fp_lanes.h"
#include "line/fp_bracket.h"
#include "special/fp_math.h"
#include "special/fp_normal_tail.h"
#include "common/fp_stop_token.h"
#include <math.h>
#include <stddef.h>

/* One mixture, padded with components of weight zero to whole lanes. `load_i` = |log w_i| + |log s_i|. Weights and
 * 1 / sigma are also given as sums of 26 bits and a double, and `before` has the total weights of the components before
 * each one, in double-doubles (n + 1 of them). */
typedef struct {
    int n, padded;
    double *mean, *inverse, *precision, *log_weight, *load;
    double *weight_high, *weight_low, *inverse_high, *inverse_low, *before;
    double steepest; /* the largest 1 / sigma */
} fp_mixture;

/* P written on the components of Q. Component i of P is matched with its nearest component j of Q, or it is
 * unmatched: p - q = sum_j excess_j v_j N_j + sum_{i matched} w_i N_j expm1(D_i) + sum_{i unmatched} w_i N_i, where
 * v_j (1 + excess_j) is the total weight of the components of P matched with j, and D_i is the log ratio of i and
 * its match, a quadratic. What P and Q share cancels exactly, and equal components contribute nothing to the second
 * sum. */
typedef struct {
    int n, padded; /* matched components of P that differ from their match; the arrays below are theirs */
    double *mean, *inverse, *precision, *log_weight, *load; /* weight w_i at the mean and sigma of the match */
    double *shift, *stretch, *log_scale, *inverse_p, *curvature;
    fp_mixture unmatched;  /* components of P without a match */
    double *excess; /* of the components of Q, padded */
    double defect;  /* bound of the absolute error of the excesses */
} fp_coupling;

/* One side is a single component N(m_0, s^2) and the other has the same s throughout: L = sign log sum_i e^{h_i}
 * with h_i = log(w_i / w_0) + b_i (x - m_0 - (m_i - m_0) / 2), b_i = (m_i - m_0) / s^2, free of cancellation at any
 * x. */
typedef struct {
    int sign, n, padded; /* sign 0: not of this form */
    double centre, steepest, widest; /* the largest |b_i| and |m_i - m_0| */
    double *gap, *rate, *log_weight;
} fp_tilt;

typedef struct {
    fp_mixture p, q;
    fp_coupling pairs;
    fp_tilt tilt;
    int coupled; /* 0: the coupled form is not worth trying; 1: parts are shared; 2: all components are close */
    int underflowed;             /* whether a mean underflowed in the new unit */
    int unresolved;          /* the lengths are too far apart for doubles: nothing is computed at any point */
    double *w, *m, *s, *v, *n, *t; /* P = (w, m, s) and Q = (v, n, t), each sorted by mean and sigma */
    int np, nq;
    fp_stop_token *stop;           /* set by the caller before anything else */
    size_t scratch_size;
    double *scratch;         /* 20 (padded p + padded q + padded coupling) + padded q doubles */
    void *storage;
} fp_log_ratio;

/* L and its derivatives at a point with proved absolute errors, and the largest disc that was analysed. */
typedef struct {
    double value, error;
    double slope, slope_error;
    double curve, curve_error;
    double radius, bound; /* |sum_{n>=2} of the non-quadratic part| <= bound on |delta| <= radius */
} fp_taylor;

static inline void fp_mixture_fill(fp_mixture *side, int n, const double *w, const double *m, const double *s,
                                   double **cursor)
{
    int padded = fp_padded(n);
    side->n = n;
    side->padded = padded;
    side->steepest = 0.0;
    side->mean = fp_take(cursor, padded);
    side->inverse = fp_take(cursor, padded);
    side->precision = fp_take(cursor, padded);
    side->log_weight = fp_take(cursor, padded);
    side->load = fp_take(cursor, padded);
    side->weight_high = fp_take(cursor, padded);
    side->weight_low = fp_take(cursor, padded);
    side->inverse_high = fp_take(cursor, padded);
    side->inverse_low = fp_take(cursor, padded);
    side->before = fp_take(cursor, 2 * (n + 1));
    fp_dd total = {0.0, 0.0};
    for (int i = 0; i <= n; ++i) {
        side->before[2 * i] = total.hi, side->before[2 * i + 1] = total.lo;
        total = i < n ? fp_dd_add_d(total, w[i]) : total;
    }
    for (int i = 0; i < padded; ++i) {
        int real = i < n;
        double width = real ? s[i] : s[0], lead = fp_upper(1.0 / width);
        side->weight_high[i] = real ? fp_upper(w[i]) : 0.0;
        side->weight_low[i] = real ? w[i] - side->weight_high[i] : 0.0;
        side->inverse_high[i] = lead;
        side->inverse_low[i] = __builtin_fma(-lead, width, 1.0) / width; /* to 2^-77 of 1 / sigma */
        side->mean[i] = real ? m[i] : m[0];
        side->inverse[i] = real ? 1.0 / s[i] : 1.0 / s[0];
        side->precision[i] = side->inverse[i] * side->inverse[i];
        side->steepest = side->inverse[i] > side->steepest ? side->inverse[i] : side->steepest;
        side->log_weight[i] = real ? log(w[i]) - log(s[i]) : -INFINITY;
        side->load[i] = real ? fabs(log(w[i])) + fabs(log(s[i])) : 0.0;
    }
}

/* The distance of component i of P from component j of Q, in units of the sigma of i. */
static inline double fp_component_distance(const fp_log_ratio *r, int i, int j)
{
    return fabs(r->m[i] - r->n[j]) / r->s[i] + fabs(r->s[i] - r->t[j]) / r->s[i];
}

/* The component of Q nearest to component i of P; -1 when all are at least FP_MATCH_DISTANCE away. `first` is the
 * first component of Q whose mean is not below that of i. */
#define FP_MATCH_DISTANCE 0.5
static inline int fp_nearest_component(const fp_log_ratio *r, int i, int first)
{
    double best = FP_MATCH_DISTANCE;
    int partner = -1, looked = 1;
    for (int j = first; j < r->nq && (r->n[j] - r->m[i]) / r->s[i] < best; ++j, ++looked)
        if (fp_component_distance(r, i, j) < best)
            best = fp_component_distance(r, i, j), partner = j;
    for (int j = first - 1; j >= 0 && (r->m[i] - r->n[j]) / r->s[i] < best; --j, ++looked)
        if (fp_component_distance(r, i, j) < best)
            best = fp_component_distance(r, i, j), partner = j;
    fp_stop_requested(r->stop, looked);
    return partner;
}

/* Workspace: `partner` has one entry and `unmatched` three for a component of P; `matched` and `total` have one for
 * a component of Q. */
static inline void fp_coupling_fill(fp_log_ratio *r, int *partner, int *matched, double *unmatched, fp_dd *total,
                                    double **cursor)
{
    fp_coupling *c = &r->pairs;
    int near = 0, left = 0, first = 0;
    double distance = 0.0, shared = 0.0; /* weights: moved, and almost equal */
    for (int j = 0; j < r->nq; ++j)
        total[j] = fp_dd_set(-r->v[j]), matched[j] = 0;
    for (int i = 0; i < r->np; ++i) {
        while (first < r->nq && r->n[first] < r->m[i])
            ++first;
        int j = partner[i] = r->stop->status ? -1 : fp_nearest_component(r, i, first);
        if (j < 0) {
            unmatched[left] = r->w[i], unmatched[r->np + left] = r->m[i], unmatched[2 * r->np + left] = r->s[i];
            ++left;
            distance += r->w[i];
            continue;
        }
        total[j] = fp_dd_add_d(total[j], r->w[i]);
        matched[j]++;
        double far = fp_component_distance(r, i, j);
        distance += r->w[i] * (far < 1.0 ? far : 1.0);
        near += far > 0.0;
        shared += far < 1e-6 ? (r->w[i] < r->v[j] ? r->w[i] : r->v[j]) : 0.0;
    }
    int padded = fp_padded(near), at = 0;
    c->n = near;
    c->padded = padded;
    c->excess = fp_take(cursor, r->q.padded);
    c->defect = 0.0;
    for (int j = 0; j < r->q.padded; ++j) {
        c->excess[j] = j < r->nq ? fp_dd_div_d(total[j], r->v[j]).hi : 0.0;
        if (j < r->nq) {
            double off = matched[j] > 1 ? matched[j] * 0x1p-102 * (2.0 + fabs(c->excess[j])) : 0.0; /* w - v is exact */
            c->defect = off > c->defect ? off : c->defect;
            distance += 0.5 * fabs(total[j].hi);
        }
    }
    double **fields[] = {&c->mean,  &c->inverse, &c->precision, &c->log_weight, &c->load, &c->shift,
                         &c->stretch, &c->log_scale, &c->inverse_p, &c->curvature};
    for (size_t f = 0; f < sizeof fields / sizeof *fields; ++f)
        *fields[f] = fp_take(cursor, padded);
    for (int k = 0, i = 0; k < padded; ++k, ++i) {
        while (i < r->np && (partner[i] < 0 || fp_component_distance(r, i, partner[i]) == 0.0))
            ++i;
        int real = i < r->np, j = real ? partner[i] : 0;
        at = real ? i : 0;
        double sp = r->s[at], sq = r->t[j];
        c->mean[k] = r->n[j];
        c->inverse[k] = 1.0 / sq;
        c->precision[k] = c->inverse[k] * c->inverse[k];
        c->log_weight[k] = real ? log(r->w[at]) - log(sq) : -INFINITY;
        c->load[k] = real ? fabs(log(r->w[at])) + fabs(log(sq)) : 0.0;
        c->inverse_p[k] = real ? 1.0 / sp : 0.0;
        c->shift[k] = real ? (r->m[at] - r->n[j]) / sp : 0.0;
        c->stretch[k] = real ? (sp - sq) / sp / sq : 0.0;
        c->log_scale[k] = real ? log1p((sq - sp) / sp) : 0.0;
        c->curvature[k] = real ? c->stretch[k] * (c->inverse[k] + c->inverse_p[k]) : 0.0;
    }
    if (left)
        fp_mixture_fill(&c->unmatched, left, unmatched, unmatched + r->np, unmatched + 2 * r->np, cursor);
    else
        c->unmatched = (fp_mixture){0};
    r->coupled = distance < 0.05 ? 2 : shared > 0.02;
}

/* log(v / w), to 6 units of 2^-53 of itself and 6 more where |log(v / w)| > 690. */
static inline double fp_log_quotient(double v, double w)
{
    const double more = v - w, ratio = v / w; /* the first is exact where it is small */
    int up, down;
    if (fabs(more) < 0.5 * w)
        return log1p(more / w);
    if (ratio > 1e-300 && ratio < 1e300)
        return log(ratio);
    const double above = frexp(v, &up), below = frexp(w, &down);
    return log(above / below) + (up - down) * FP_LN2;
}

static inline void fp_tilt_fill(fp_log_ratio *r, double **cursor)
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
    tilt->n = many;
    tilt->padded = padded;
    tilt->centre = m0[0];
    tilt->steepest = tilt->widest = 0.0;
    tilt->gap = fp_take(cursor, padded);
    tilt->rate = fp_take(cursor, padded);
    tilt->log_weight = fp_take(cursor, padded);
    for (int i = 0; i < padded; ++i) {
        tilt->gap[i] = i < many ? m[i] - m0[0] : 0.0;
        tilt->rate[i] = tilt->gap[i] / s / s;
        tilt->log_weight[i] = i < many ? fp_log_quotient(w[i], w0[0]) : -INFINITY;
        tilt->steepest = fabs(tilt->rate[i]) > tilt->steepest ? fabs(tilt->rate[i]) : tilt->steepest;
        tilt->widest = fabs(tilt->gap[i]) > tilt->widest ? fabs(tilt->gap[i]) : tilt->widest;
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

/* An exact change of origin and unit: a shift that loses no bit of any mean (0 when there is none), and a power of
 * two that brings the largest sigma near 1, or for very unequal sigmas the geometric mean of the extremes. */
typedef struct {
    double shift, scale;
} fp_frame;

static inline fp_frame fp_frame_of(int np, const double *m, const double *s, int nq, const double *n, const double *t)
{
    double widest = 0.0, narrowest = INFINITY, farthest = 0.0, centre = m[np / 2];
    int exact = 1, exponent, least;
    for (int i = 0; i < np + nq; ++i) {
        double mean = i < np ? m[i] : n[i - np], sigma = i < np ? s[i] : t[i - np];
        widest = sigma > widest ? sigma : widest;
        narrowest = sigma < narrowest ? sigma : narrowest;
        farthest = fabs(mean) > farthest ? fabs(mean) : farthest;
        exact = exact && fp_two_sum(mean, -centre).lo == 0.0;
    }
    frexp(widest, &exponent);
    frexp(narrowest, &least);
    exponent = exponent - least > 100 ? (exponent + least) / 2 : exponent;
    fp_frame frame = {0.0, ldexp(1.0, exponent > 1000 ? -1000 : exponent < -1000 ? 1000 : -exponent)};
    if (exact && farthest > 32.0 * widest)
        frame.shift = centre;
    return frame;
}

static inline int fp_sorted(int n, const double *w, const double *m, const double *s, fp_frame frame,
                             fp_component *work, double **out_w, double **out_m, double **out_s, double **cursor)
{
    *out_w = fp_take(cursor, n);
    *out_m = fp_take(cursor, n);
    *out_s = fp_take(cursor, n);
    int underflowed = 0;
    for (int i = 0; i < n; ++i) {
        work[i] = (fp_component){(m[i] - frame.shift) * frame.scale, s[i] * frame.scale, w[i]};
        underflowed = underflowed || (m[i] != frame.shift && fabs(work[i].mean) < 0x1p-1022);
    }
    qsort(work, (size_t)n, sizeof *work, fp_component_order);
    for (int i = 0; i < n; ++i) {
        (*out_w)[i] = work[i].weight;
        (*out_m)[i] = work[i].mean;
        (*out_s)[i] = work[i].sigma;
    }
    return underflowed;
}

/* Whether what is formed at the points that are examined stays within the range of doubles. With x the largest distance,
 * 3000 of the largest lengths or a little more, z = x / s and g = x / s^2, the largest product is z^2 g^2 = x^4 / s^6, in
 * the error of L''. */
static inline int fp_resolved(const fp_log_ratio *r)
{
    double least = INFINITY, most = 0.0;
    for (int i = 0; i < r->np + r->nq; ++i) {
        double mean = i < r->np ? r->m[i] : r->n[i - r->np], sigma = i < r->np ? r->s[i] : r->t[i - r->np];
        least = sigma < least ? sigma : least;
        most = sigma > most ? sigma : most;
        most = fabs(mean) > most ? fabs(mean) : most;
    }
    double longest = 0x1p13 * most / least; /* of z */
    double product = longest * (longest / least); /* of z and g */
    return least > 0x1p-110 && most < 0x1p220 && longest < 0x1p250 && product < 0x1p500;
}

/* An interval of the line. FP_MONOTONE: L is monotone with direction `sign`; `low` and `high` are its values at the
 * left and the right end (the limits for an infinite end), with errors at most `low_error` and `high_error`.
 * FP_ENCLOSED: low <= L <= high, and nothing more is known. FP_CURVED, during the subdivision: L'' has the sign
 * `sign`; FP_OPEN, not decided. `knots` points of the piece, from `knot` on, are known with L and L'. */
enum { FP_MONOTONE, FP_CURVED, FP_ENCLOSED, FP_OPEN };
/* Phases of the search for an extremum of L. */
enum { FP_AT_LEFT_END, FP_AT_RIGHT_END, FP_AT_ZERO, FP_AT_LEFT_SIDE, FP_AT_RIGHT_SIDE };

typedef struct {
    double left, right;
    int kind_of_piece, sign;
    double low, high, low_error, high_error;
    int knots;
    ptrdiff_t knot;
} fp_piece;

typedef struct {
    double x, value, slope;
} fp_knot;

typedef struct {
    fp_piece *piece;
    fp_knot *knot;
    int count, capacity;
    long evaluations, undecided; /* intervals left undecided when their budget was spent */
    int expired;             /* whether some were left because the time was spent */
    double limit[2];
    double sharpest; /* the largest 1 / sigma^2, rounded up */
} fp_pieces;

#endif
