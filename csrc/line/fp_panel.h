/* A Gaussian mixture on a panel x0 + [-h, h]: the components that matter, and where its density has no zero.
 *
 * Notation: component i has log density e_i(x) = c_i - t_i^2 / 2, t_i = (x - m_i) / s_i, c_i = log(w_i / s_i) -
 * log(2 pi) / 2; r_i = e^(e_i(x0)) / p(x0) are the responsibilities at the centre, d = x - x0.
 *
 * theorem 4.2 of docs/proofs/quadrature.md. Let alpha = sum r_i e_i'(x0), beta = sum r_i / s_i^2 (any numbers would
 * do). For complex |d| <= R
 *     p(x0 + d) = p(x0) e^(alpha d - beta d^2 / 2) (1 + eps(d)),
 *     |eps(d)| <= kappa = sum r_i e^(g_i) - 1,   g_i = |e_i'(x0) - alpha| R + |1 / s_i^2 - beta| R^2 / 2,
 * because |e^z - 1| <= e^|z| - 1. If kappa < 1 the density has no zero in the disk, log p is analytic there and differs
 * from log p(x0) + alpha d - beta d^2 / 2 by at most lambda = -log(1 - kappa).
 *
 * A component is dropped on a panel where its largest value is below e^-FP_DROP_LEVEL of another's smallest, or its
 * ratio to that other one below e^-FP_DROP_LEVEL everywhere. For the mutual information the density of the component
 * itself must be that small, without its weight: an improbable input counts by its weight wherever N_i is not below q.
 *
 * Coordinates. A panel's centre is origin + x0, both doubles: origin is 0 until panels get too narrow for their
 * distance from it, then a mean (or a centre) near by, so that origin - m_i is exact for the means around the panel.
 * Distances and 1/s_i are gathered in units of h, a power of two: no square of them leaves the doubles before t_i^2
 * does.
 *
 * Far in the tails of all components t_i^2 is large and its rounding error with it; ratios of components are then taken
 * from e_i - e_r = c_i - c_r - (t_i - t_r)(t_i + t_r) / 2, t_i - t_r = (m_r - m_i) / s_i + (x - m_r)(s_r - s_i) / (s_i
 * s_r).
 */
/* bounds: proved - rounding of bounds of components on a panel, of their ratios and slopes: docs/proofs/quadrature.md,
 * theorems 4.11 and 4.15 */
#ifndef FP_PANEL_H
#define FP_PANEL_H

#include "common/fp_lanes.h"
#include "line/fp_integrand.h"

/* bound: proved - components dropped on a panel: docs/proofs/quadrature.md, theorem 4.14 */
#define FP_DROP_LEVEL 90.0
#define FP_TAIL_LEVEL -1e4 /* below this log density, ratios of components are computed from their differences */
#define FP_FAR_LEVEL -200.0 /* below this log density, components are dropped by their ratio */

/* e^x for x <= 700, as exact as fp_exp; e^-708 below -708 */
FP_INLINE double fp_exp_down(double x)
{
    double q, shifted;
    const double y = x > -708.0 ? x : -708.0, r = fp_exp_reduced(y, 0.0, &q, &shifted);
    return (1.0 + (r + q)) * fp_double((fp_bits(shifted) - fp_bits(FP_SHIFT) + 1023) << 52);
}

/* The whole mixture; ce bounds the error of c in units of u. Zeroed before its first use; the memory is used again. */
typedef struct {
    int n, capacity;
    double *w, *m, *s, *is, *c, *ce, largest_mean, largest_sigma, smallest_sigma;
} fp_gaussian_mixture;

/* One mixture on one panel; the arrays are padded to a multiple of eight with components of weight zero. */
typedef struct {
    int n, padded, reference, capacity;
    const int *index;
    double *dm, *is, *c, *ce, *r, *log_r, *slope, *curvature, *offset, *scratch;
    double base, top, l0, alpha, beta, kappa, lambda; /* base: log_r is relative to it */
    double square_error; /* of t^2 / 2 and the difference from c, in units of u t^2 */
    double slip;         /* error of log_r far in the tails; elsewhere it is below 1e-9 */
} fp_local_mixture;

/* x - m_i at the centre x = origin + x0 */
FP_INLINE double fp_distance(const fp_gaussian_mixture *law, int i, double origin, double x0)
{
    return (origin - law->m[i]) + x0;
}

/* t_i - t_r at the centre, for given t_r, in the one of two forms that rounds less; a few u times size bound the
 * error. */
FP_INLINE double fp_standardised_difference(const fp_gaussian_mixture *law, int i, int r, double origin, double x0,
                                            double t_r, double *size)
{
    const double t_i = fp_distance(law, i, origin, x0) * law->is[i],
                 standardised_gap = (law->m[r] - law->m[i]) * law->is[i];
    const double other = t_r * ((law->s[r] - law->s[i]) * law->is[i]);
    const double direct = fabs(t_i) + fabs(t_r), shifted = fabs(standardised_gap) + fabs(other);
    *size = direct < shifted ? direct : shifted;
    return direct < shifted ? t_i - t_r : standardised_gap + other;
}

/* Upper bound of log(component i / component r) on the panel. */
static inline double fp_component_ratio_bound(const fp_gaussian_mixture *law, int i, int r, double origin, double x0,
                                              double h)
{
    const double t = fp_distance(law, r, origin, x0) * law->is[r], step = h * law->is[r];
    double size_a;
    /* t_i - t_r = a + b y and t_i + t_r = s + v y at x0 + h y, |y| <= 1 */
    const double a = fp_standardised_difference(law, i, r, origin, x0, t, &size_a),
                 b = step * ((law->s[r] - law->s[i]) * law->is[i]);
    const double s = 2.0 * t + a, v = 2.0 * step + b, size_s = 2.0 * fabs(t) + size_a;
    const double linear = -0.5 * (a * v + b * s), square = -0.5 * b * v;
    double most = fabs(linear) + square;
    if (square < 0.0 && fabs(linear) < -2.0 * square)
        most = -0.25 * linear * linear / square;
    const double e = (law->c[i] - law->c[r]) - 0.5 * a * s + most;
    const double error = size_a * (size_s + fabs(v)) + fabs(b) * (size_s + fabs(v)) + fabs(law->c[i]) + fabs(law->c[r]);
    return e + 1e-14 * error;
}

/* The largest component at the centre, from a guess: ratios are accurate where the logarithms themselves are not. */
static inline int fp_largest_component(const fp_gaussian_mixture *law, const int *index, int n, int guess,
                                       double origin, double x0)
{
    for (int j = 0; j < n; j++)
        if (fp_component_ratio_bound(law, index[j], guess, origin, x0, 0.0) > 0.0)
            guess = index[j];
    return guess;
}

/* Gather the components listed in index, relative to the centre; up is 1 / h. */
static inline void fp_local_gather(fp_local_mixture *side, const fp_gaussian_mixture *law, const int *index, int n,
                                   double origin, double x0, double h)
{
    const double up = 1.0 / h;
    int reference = index[0];
    side->n = n;
    side->padded = (n + 7) / 8 * 8;
    side->index = index;
    side->top = -INFINITY, side->base = side->slip = 0.0;
    side->square_error = origin == 0.0 ? 5.0 : 6.0;
    for (int j = 0; j < side->padded; j++) {
        const int i = j < n ? index[j] : index[0];
        const double dm = fp_distance(law, i, origin, x0), t = dm * law->is[i];
        side->dm[j] = dm * up;
        side->is[j] = law->is[i] * h;
        side->c[j] = j < n ? law->c[i] : -1e300;
        side->ce[j] = j < n ? law->ce[i] : 0.0;
        const double e = side->c[j] - 0.5 * t * t;
        side->log_r[j] = e;
        reference = e > side->top ? i : reference;
        side->top = e > side->top ? e : side->top;
    }
    if (side->top > FP_TAIL_LEVEL)
        return;
    reference = fp_largest_component(law, index, n, reference, origin, x0);
    side->base = side->top, side->top = 0.0, side->reference = reference;
    const double dm = fp_distance(law, reference, origin, x0), t = dm * law->is[reference];
    double size;
    for (int j = 0; j < n; j++) {
        const int i = index[j];
        const double difference = fp_standardised_difference(law, i, reference, origin, x0, t, &size);
        const double sum = 2.0 * t + difference, sizes = fabs(sum) + fabs(difference);
        side->log_r[j] = (law->c[i] - law->c[reference]) - 0.5 * difference * sum;
        side->top = fp_max(side->top, side->log_r[j]);
        side->slip = fp_max(side->slip, 6.0 * FP_U * (size * sizes + fabs(difference) * (fabs(t) + fabs(sum))));
    }
}

/* After fp_local_centre: far in the tails, alpha and beta are replaced by those of the reference component, from
 * which the slopes of the others differ by amounts that are accurate whatever their size. */
static inline void fp_local_tail(fp_local_mixture *side, const fp_gaussian_mixture *law, double origin, double x0)
{
    const int r = side->reference;
    if (side->base == 0.0)
        return;
    side->l0 += side->base;
    const double t = fp_distance(law, r, origin, x0) * law->is[r];
    double is_r = 0.0, size;
    for (int j = 0; j < side->n; j++)
        is_r = side->index[j] == r ? side->is[j] : is_r;
    for (int j = 0; j < side->n; j++) {
        const int i = side->index[j];
        const double other = (law->s[r] - law->s[i]) * law->is[i];
        const double difference = fp_standardised_difference(law, i, r, origin, x0, t, &size);
        side->slope[j] = 1.000001 * (fabs(difference) * side->is[j] + fabs(t * other) * is_r);
        side->curvature[j] = 0.5 * fabs(other) * is_r * (side->is[j] + is_r);
    }
    side->alpha = -t * is_r;
    side->beta = is_r * is_r;
}

/* Keep the components of `from` that matter on the panel; upper and lower bound log p there; lost sums the dropped
 * weight. With `unweighted`, a component is compared without its weight. */
static inline int fp_select_components(const fp_gaussian_mixture *law, const int *from, int n, double origin, double x0,
                                       double h, int unweighted, int *kept, double *upper, double *lower, fp_accumulator *lost)
{
    double floor = -INFINITY, top = -INFINITY;
    int reference = -1, count = 0;
    for (int j = 0; j < n; j++) {
        const int i = from[j];
        const double far = (fabs(fp_distance(law, i, origin, x0)) + h) * law->is[i], e = law->c[i] - 0.5 * far * far;
        reference = e > floor ? i : reference;
        floor = e > floor ? e : floor;
    }
    const int tail = floor < FP_FAR_LEVEL && reference >= 0;
    if (floor < FP_TAIL_LEVEL && reference >= 0)
        reference = fp_largest_component(law, from, n, reference, origin, x0);
    const double level = floor > 10.0 * FP_TAIL_LEVEL ? floor - FP_DROP_LEVEL : -INFINITY;
    for (int j = 0; j < n; j++) {
        const int i = from[j];
        double near = fabs(fp_distance(law, i, origin, x0)) * (1.0 - 1e-15) - h;
        near = near > 0.0 ? near * law->is[i] : 0.0;
        const double e = law->c[i] - 0.5 * near * near, log_weight = unweighted ? fp_log(law->w[i]) : 0.0;
        if (e - log_weight >= level
            && !(tail && i != reference
                 && fp_component_ratio_bound(law, i, reference, origin, x0, h) - log_weight < -FP_DROP_LEVEL)) {
            kept[count++] = i;
            top = e > top ? e : top;
        } else {
            fp_accumulator_add(lost, law->w[i]);
        }
    }
    top = top > -1e300 ? top : -1e300;
    *upper = top + fp_log((double)count) + (1e-11 + 2e-14 * fabs(top));
    *lower = floor - (1e-11 + 2e-14 * fabs(floor));
    return count;
}

#endif
