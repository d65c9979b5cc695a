/* Mean shortfalls E (t - Y)^+ of Y ~ Bin(N, 1/2) at rising levels t <= N/2 + 1, and weighted sums of them.
 *
 * Notation: b(y) = P(Y = y); y the largest integer <= t; r = P(Y <= y) / b(y), s = E (y - Y)^+ / b(y). Then
 *     E (t - Y)^+ = b(y) (s + (t - y) r),
 * and with ratio = b(y - 1) / b(y) = y / (N - y + 1)
 *     r(y) = 1 + ratio r(y - 1),      s(y) = ratio (s(y - 1) + r(y - 1)),
 * in which all terms are positive: nothing cancels and nothing underflows. b itself is known up to a factor at one
 * place and follows by the same ratios.
 *
 * Start of the recurrence.  It begins ``warmup`` places below the first level with r = 1 and s = 0, which leaves out
 * the y below, or at y = 0, which is exact.  The caller bounds what is left out.
 *
 * Rounding.  A step has three roundings in r and s, and two in b: a sum of positive terms is off by at most
 * (4 steps + 8) u, u = 2^-53.  A level t is a double-double: its own error moves the result by at most that error times
 * P(Y <= y + 1), which is summed beside. */
#ifndef FP_BINOMIAL_SHORTFALLS_H
#define FP_BINOMIAL_SHORTFALLS_H

#include <math.h>
#include <stddef.h>
#include "common/fp_error_free.h"

/* Partial sums of one binomial distribution, relative to b(y); ``scale`` is b(y) times a factor of the caller. */
typedef struct {
    double n, y, scale, r, s;
} fp_shortfall;

/* The sums at y, without the terms more than ``warmup`` places below. */
FP_INLINE fp_shortfall fp_shortfall_at(double n, double y, double scale, double warmup)
{
    fp_shortfall sums = {n, y, scale, 1.0, 0.0};
    for (double x = fmax(0.0, y - warmup) + 1.0; x <= y; x += 1.0) {
        const double ratio = x / (n - x + 1.0);
        sums.s = ratio * (sums.s + sums.r);
        sums.r = 1.0 + ratio * sums.r;
    }
    return sums;
}

/* Adds the weighted shortfall at the level hi + lo, and the weighted probability up to the next integer. */
FP_INLINE void fp_shortfall_add(fp_shortfall *sums, double hi, double lo, double *shortfall, double *probability)
{
    double last = floor(hi);
    if (last == hi && lo < 0.0)
        last -= 1.0;
    if (last < 0.0)
        return;
    while (sums->y < last) {
        sums->y += 1.0;
        const double ratio = sums->y / (sums->n - sums->y + 1.0);
        sums->s = ratio * (sums->s + sums->r);
        sums->r = 1.0 + ratio * sums->r;
        sums->scale /= ratio;
    }
    const double part = fmax(0.0, (hi - sums->y) + lo);
    *shortfall += sums->scale * (sums->s + part * sums->r);
    *probability += sums->scale * (sums->r + (sums->n - sums->y) / (sums->y + 1.0));
}

/* Adds the shortfalls at the levels n (hi + lo) for each of them; start = the y of ``scale``, at most n hi[0] - 1. */
static void fp_shortfalls_at_shares(double n, double start, double scale, double warmup, ptrdiff_t levels,
                                    const double *hi, const double *lo, double weight, double *shortfall,
                                    double *probability)
{
    fp_shortfall sums = fp_shortfall_at(n, start, scale, warmup);
    for (ptrdiff_t i = 0; i < levels; i++) {
        double value = 0.0, error = 0.0;
        const double high = n * hi[i], low = fp_product_error(n, hi[i], high);
        fp_shortfall_add(&sums, high, low + n * lo[i], &value, &error);
        shortfall[i] += weight * value;
        probability[i] += n * weight * error;
    }
}

/* Adds the shortfalls at hi + lo - m (step_hi + step_lo) for m = last, last - 1, .. first, with weights proportional to
 * the binomial distribution of ``trials`` and the odds 1 / inverse_odds, that of ``last`` being in ``scale``. */
static void fp_shortfalls_of_mixture(double n, double start, double scale, double warmup, double hi, double lo,
                                     double step_hi, double step_lo, double first, double last, double trials,
                                     double inverse_odds, double *shortfall, double *probability)
{
    fp_shortfall sums = fp_shortfall_at(n, start, scale, warmup);
    double value = 0.0, error = 0.0;
    for (double m = last; m >= first; m -= 1.0) {
        const double product = m * step_hi, low = fp_product_error(m, step_hi, product);
        const double high = hi - product, rest = fp_sum_error(hi, -product, high);
        fp_shortfall_add(&sums, high, rest + ((lo - low) - m * step_lo), &value, &error);
        sums.scale *= m * inverse_odds / (trials - m + 1.0);
    }
    *shortfall += value;
    *probability += n * error;
}

/* Adds, for one N, the masses of y <= n / 2 between the levels n c_i > n c_(i+1) to mass[i], and their shortfalls below
 * n c_i, over n, to shortfall[i]; i = 0 .. levels - 2, c_0 = 1/2. ``scale`` is the mass of y = floor(n / 2), which
 * counts half where it is n / 2. All y below the last level add their mass to ``beyond``. A y closer than ``error`` n
 * to the level n c_i between its cell and the one before adds its mass to doubtful[i] alone. */
static void fp_binomial_cells(double n, double scale, ptrdiff_t levels, const double *hi, const double *lo, double error,
                              double *mass, double *shortfall, double *doubtful, double *beyond)
{
    double y = floor(0.5 * n), high = 0.5 * n, low = 0.0, part = 0.0, first = 0.0;
    double next = n * hi[1], next_low = fp_product_error(n, hi[1], next) + n * lo[1];
    ptrdiff_t i = 0;
    double weight = y == high ? 0.5 * scale : scale;
    for (;;) {
        int near = 0;
        while (i < levels - 1 && (next - y) + next_low > -error * n) { /* y is not above the next level */
            near = (next - y) + next_low < error * n;
            mass[i] += part;
            shortfall[i] += first / n;
            part = first = 0.0;
            high = next;
            low = next_low;
            if (++i == levels - 1)
                break;
            next = n * hi[i + 1];
            next_low = fp_product_error(n, hi[i + 1], next) + n * lo[i + 1];
        }
        if (i == levels - 1)
            break;
        if (near) {
            doubtful[i] += weight;
        } else {
            part += weight;
            first += weight * ((high - y) + low);
        }
        if (y == 0.0 || scale == 0.0)
            break;
        scale *= y / (n - y + 1.0);
        weight = scale;
        y -= 1.0;
    }
    mass[i < levels - 1 ? i : levels - 2] += part;
    shortfall[i < levels - 1 ? i : levels - 2] += first / n;
    if (i == levels - 1) /* ratios fall with y: a geometric series */
        *beyond += weight * (n - y + 1.0) / (n - 2.0 * y + 1.0);
}

#endif
