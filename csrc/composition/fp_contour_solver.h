/* delta(epsilon) of a composition, by a sum along a contour over a product of factors.
 *
 * Notation. Pair i is composed count_i times; l = log(p/q) its loss, M(z) = E_P e^(z l), kappa(t) = log M(t); S the
 * sum of all losses under P. For t > 0,
 * with z_n = t + i n h and period = 2 pi / h,
 *     h/pi Re[ f(z_0)/2 + sum_{n >= 1} f(z_n) ] = sum over integers j of delta(epsilon + j period) e^(t j period),
 *     f(z) = e^(-epsilon z) prod M_i(z)^count_i / (z (z + 1)),
 * by Poisson summation of delta(x) e^(t x), whose transform is f (delta(x) = E[(1 - e^(x - S))^+]). All terms on the
 * right are >= 0, that of j = 0 is delta(epsilon): the sum is an upper bound. Terms j < 0 add at most
 * e^(-t period) / (1 - e^(-t period)), as delta <= 1; terms j > 0 are bounded by Chernoff's bound at some t' > t,
 *     delta(x) <= t'^t' / (1 + t')^(1 + t') prod M_i(t')^count_i e^(-t' x).
 *
 * Cut of the contour. Terms beyond the last frequency W sum to at most prod |m|^count / W, with the bounds of |m| for all
 * frequencies >= W that the factors offer.
 */
/* bounds: tested by enclosures/test_contour - rounding of sums along the contour */
#ifndef FP_CONTOUR_SOLVER_H
#define FP_CONTOUR_SOLVER_H

#include "composition/fp_contour_one_sigma.h"
#include "composition/fp_contour_several_sigmas.h"

#define FP_CONTOUR_TERMS (1 << 17) /* frequencies */
/* bound: none - exponent of the error aimed at by the search of t and by Chernoff's bound, which adds what it errs by */
#define FP_CONTOUR_SEARCH_AIM 20.0

/* Must be called once, before any composition. */
static inline void fp_contour_select(void)
{
    fp_one_sigma_select();
    fp_contour_several_select();
    fp_contour_sums_selected = FP_SELECT(fp_contour_sums);
}

typedef struct {
    double log_scale, scale_error, value, lower, upper; /* delta = e^(log_scale +- scale_error) value */
    double t, period, frequency;
    int terms, nodes, status; /* status: 0, or 1 where a budget was spent; the bounds hold */
    double alias, tail, rounding;
} fp_contour_answer;

typedef struct {
    int n;
    fp_contour_factor *factors;
} fp_composition;

/* phi(t) = sum count kappa(t) - epsilon t - log t (t + 1), with coarse nodes, and its derivatives */
static inline int fp_contour_objective(const fp_composition *c, double t, double epsilon, double *value, double *slope,
                                       double *variance)
{
    *value = -epsilon * t - fp_log(t) - fp_log1p(t);
    *slope = -epsilon - 1.0 / t - 1.0 / (1.0 + t);
    *variance = 0.0;
    for (int i = 0; i < c->n; i++) {
        fp_contour_factor *factor = c->factors + i;
        const int status = factor->kind->build(factor, t, 0.0, FP_CONTOUR_SEARCH_AIM);
        if (status)
            return status;
        *value += factor->count * factor->kappa;
        *slope += factor->count * factor->mean;
        *variance += factor->count * factor->variance;
    }
    return 0;
}

static inline int fp_contour_saddle(const fp_composition *c, double epsilon, double *t_out, double *variance)
{
    double low = 0.0, high = INFINITY, t = *t_out > 0.0 ? *t_out : 1.0, value, slope;
    for (int i = 0; i < 60; i++) {
        const int status = fp_contour_objective(c, t, epsilon, &value, &slope, variance);
        if (status == -1)
            return -1;
        if (status || slope > 0.0)
            high = t;
        else
            low = t;
        const double second = *variance + 1.0 / (t * t) + 1.0 / ((1.0 + t) * (1.0 + t));
        if (!status && fabs(slope) < 0.02 * sqrt(second))
            break;
        double next = status ? 0.5 * t : t - slope / second;
        next = fp_min(next, 4.0 * t), next = fp_max(next, 0.25 * t);
        if (!(next > low && next < high))
            next = high < INFINITY ? (low > 0.0 ? sqrt(low * high) : 0.5 * high) : 2.0 * low;
        if (fabs(next - t) < 1e-3 * t)
            break;
        t = next;
    }
    *t_out = t;
    return 0;
}

/* log of Chernoff's bound of the terms j > 0, by several t' */
static inline double fp_contour_alias(const fp_composition *c, double t, double epsilon, double period, double deviation)
{
    double best = INFINITY;
    for (int i = 0; i < 24; i++) {
        const double other = i < 12 ? t + (i + 1) / deviation : t * (1.0 + 0.25 * (i - 11));
        double value, slope, variance, log_value = other * fp_log(other) - (1.0 + other) * fp_log1p(other) - other * epsilon;
        if (fp_contour_objective(c, other, 0.0, &value, &slope, &variance))
            continue;
        log_value += value + fp_log(other) + fp_log1p(other);
        for (int k = 0; k < c->n; k++)
            log_value += c->factors[k].count * c->factors[k].kappa_error;
        const double gap = (other - t) * period;
        log_value += -gap - fp_log1p(-fp_exp(-gap));
        best = fp_min(best, log_value);
    }
    return best;
}

static inline int fp_contour_delta(const fp_composition *c, double epsilon, double t_start, fp_contour_answer *out)
{
    double t = t_start, variance = 0.0, value, slope;
    memset(out, 0, sizeof *out);
    if (fp_contour_saddle(c, epsilon, &t, &variance))
        return -1;
    if (fp_contour_objective(c, t, epsilon, &value, &slope, &variance))
        return -1;
    const double deviation = sqrt(variance), log_delta = value; /* to within a factor */
    double period = fp_max(8.5 * deviation, (34.0 - log_delta) / t), log_alias = INFINITY;
    for (int i = 0; i < 12; i++) {
        log_alias = fp_contour_alias(c, t, epsilon, period, deviation);
        if (log_alias < log_delta - 34.0)
            break;
        period *= 1.3;
    }
    const double h = 2.0 * FP_PI / period;
    double design = fp_max(12.0 / deviation, 4.0 * h);
    double sum = 0.0, error = 0.0, largest = 0.0;
    double scale = 0.0, scale_error = 0.0, drift = -epsilon, drift_error = 0.0;
    int n = 0, done = 0, started = 0;
    while (!done) {
        if (!started || (n + FP_CONTOUR_AT_ONCE) * h > design) {
            if (started)
                design *= 2.0;
            scale = -epsilon * t - fp_log(t) - fp_log1p(t), scale_error = 0.0, drift = -epsilon, drift_error = 0.0;
            out->nodes = 0;
            for (int i = 0; i < c->n; i++) {
                fp_contour_factor *factor = c->factors + i;
                const int status = factor->kind->build(factor, t, design + FP_CONTOUR_AT_ONCE * h, FP_CONTOUR_AIM);
                if (status)
                    return status;
                const double count = factor->count;
                scale += count * factor->kappa, scale_error += count * factor->kappa_error + 2.0 * FP_U * fabs(count * factor->kappa);
                drift += count * factor->mean;
                drift_error += 2.0 * FP_U * fabs(count * factor->mean);
                out->nodes += factor->nodes.n;
            }
            drift_error += 2.0 * FP_U * fabs(epsilon);
            started = 1;
        }
        int vague[FP_CONTOUR_AT_ONCE] = {0}; /* where m is not known to a tenth */
        double log_m[FP_CONTOUR_AT_ONCE], angle_m[FP_CONTOUR_AT_ONCE], wrong[FP_CONTOUR_AT_ONCE], log_size[FP_CONTOUR_AT_ONCE], phase[FP_CONTOUR_AT_ONCE],
            relative[FP_CONTOUR_AT_ONCE], log_above[FP_CONTOUR_AT_ONCE];
        for (int j = 0; j < FP_CONTOUR_AT_ONCE; j++)
            log_size[j] = log_above[j] = 0.0, phase[j] = (n + j) * h * drift, relative[j] = (n + j) * h * drift_error + 4.0 * FP_U * fabs(phase[j]);
        for (int i = 0; i < c->n; i++) {
            const fp_contour_factor *factor = c->factors + i;
            const double count = factor->count;
            factor->kind->moments(factor, n, h, FP_CONTOUR_AT_ONCE, log_m, angle_m, wrong);
            for (int j = 0; j < FP_CONTOUR_AT_ONCE; j++) {
                const double size = fp_exp(log_m[j]);
                log_size[j] += count * log_m[j], phase[j] += count * angle_m[j];
                relative[j] += wrong[j] < 0.1 * size ? -count * fp_log1p(-wrong[j] / size) : 0.0;
                vague[j] |= !(wrong[j] < 0.1 * size);
                log_above[j] += count * fp_log(size + wrong[j] + 1e-300);
                relative[j] += 3.0 * FP_U * count * (fabs(log_m[j]) + fabs(angle_m[j]));
            }
        }
        for (int j = 0; j < FP_CONTOUR_AT_ONCE; j++) {
            const double w = (n + j) * h, a = t * (t + 1.0) - w * w, b = w * (2.0 * t + 1.0), norm = a * a + b * b;
            const double size = fp_exp(log_size[j]), payoff = t * (t + 1.0) / sqrt(norm), weight = n + j ? 1.0 : 0.5;
            const double angle = phase[j] - atan2(b, a), term = weight * size * payoff * cos(angle);
            sum += term;
            const double first_order = size * (relative[j] < 0.1 ? 1.06 * relative[j] : INFINITY);
            error += weight * payoff * fp_min(vague[j] ? INFINITY : first_order, size + fp_exp(log_above[j])) + 8.0 * FP_U * fabs(term);
            largest = size * payoff;
        }
        n += FP_CONTOUR_AT_ONCE;
        if (largest * n < 1e-16 * fabs(sum) || n >= FP_CONTOUR_TERMS) {
            const double w = (n - 1) * h;
            double log_tail = fp_log(t * (t + 1.0) / w / h);
            for (int i = 0; i < c->n && log_tail > fp_log(1e-15 * fabs(sum)); i++)
                log_tail += c->factors[i].count * fp_log(c->factors[i].kind->decay(c->factors + i, w));
            out->tail = fp_exp(log_tail);
            done = out->tail < 1e-13 * fabs(sum) || n >= FP_CONTOUR_TERMS;
            out->status = n >= FP_CONTOUR_TERMS;
        }
    }
    const double below = fp_exp(-t * period);
    const double alias = (fp_exp(log_alias - scale) + fp_exp(-t * period - scale) / (1.0 - below)) * (FP_PI / h);
    error += 4.0 * FP_U * n * fabs(sum) * 0.0;
    out->rounding = error, out->alias = alias;
    out->log_scale = scale + fp_log(h / FP_PI), out->scale_error = scale_error + 4.0 * FP_U * (fabs(scale) + t * fabs(epsilon));
    out->value = sum, out->lower = sum - error - out->tail - alias, out->upper = sum + error + out->tail;
    out->t = t, out->period = period, out->frequency = (n - 1) * h, out->terms = n;
    return 0;
}

#endif
