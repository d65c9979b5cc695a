/* Bounds of the tails of binomial distributions, and ends of intervals for a rate that they prove.
 *
 * Notation: X has n trials of rate x, y = 1 - x; the smaller of x and y is exact, the other one its complement, rounded.
 * b(k) = P(X = k), a = k, b = n + 1 - k, d = k - (n + 1) x, B = P(X >= k), G = k b(k) y. docs/proofs/roundings.md, 13.26:
 *
 * (a) For d >= 0, B / G = 1 / (beta_1 + alpha_2 / (beta_2 + ...)) with beta_1 = a (d + 1) / (a + 1) and, for i >= 1,
 *     alpha_(i + 1) = (a + i - 1) (n + i) i (b - i) x^2 / (a + 2 i - 1)^2,
 *     beta_(i + 1) = i + i (b - i) x / (a + 2 i - 1) + (a + i) (d + 1 + i (1 + y)) / (a + 2 i + 1),
 * all positive until alpha_(b + 1) = 0: the convergents are above and below in turn. For d < 0 it is 1 - P(X < k), and
 * P(X < k) is the tail from b on at the rate y.
 *
 * (b) log b(k) by Stirling's formula and two deviances; fp_tail_error says what is lost.
 *
 * (c) With 2^52 and more trials sums of counts are not exact: B <= e^-(both deviances) for d >= 0 (Chernoff 1952).
 *
 * Source: DiDonato and Morris 1992, section 2 (the continued fraction). */
/* bounds: proved - docs/proofs/roundings.md, 13.26 to 13.28: limits of formulas, outward roundings of results */
#ifndef FP_BINOMIAL_TAIL_H
#define FP_BINOMIAL_TAIL_H

#include "special/fp_elementary.h"

#define FP_TAIL_STEPS 2000 /* of the fraction, at most: the bounds hold wherever it ends */
/* bound: none - how near each other the convergents are when the fraction ends */
#define FP_TAIL_NEAR 0x1p-46
/* bound: none - by how much a quantile is moved outward, of itself, before its tail is bounded, and then again */
#define FP_TAIL_STEP 1e-12
/* bound: proved - log n! less Stirling's formula, n = 1 to 15, rounded (tests/kernels/test_binomial_tail.py) */
static const double fp_stirling_remainders[16] = {
    0.0, 0x1.4c071bcda0a5bp-4, 0x1.52a9b923ea649p-5, 0x1.c579a268d80b3p-6, 0x1.54a2662fd78a9p-6, 0x1.10b4e513fcbedp-6,
    0x1.c6b167bebdf36p-7, 0x1.85d4d612e4a86p-7, 0x1.552805e7b3076p-7, 0x1.2f4871b12ab64p-7, 0x1.10f9d4c0743a7p-7,
    0x1.f0593088014f8p-8, 0x1.c7018733aa9c6p-8, 0x1.a40514700f36cp-8, 0x1.86076c002d4a7p-8, 0x1.6c08f6f194a10p-8,
};

typedef struct {
    double upper, lower; /* of B */
    double share;        /* an upper bound of B / (k b(k)) */
} fp_tail;

/* log n! less log(sqrt(2 pi n) (n / e)^n), n >= 1 */
FP_INLINE double fp_stirling_remainder(double n)
{
    const double r = 1.0 / n, z = r * r;
    if (n < 16.0)
        return fp_stirling_remainders[(int)n];
    return r * (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188 - z * (691.0 / 360360))))));
}

/* m log(m / mean) - gap, gap = m - mean */
FP_INLINE double fp_deviance(double m, double mean, double gap)
{
    const double v = gap / mean;
    return m * (fabs(v) < 0.5 ? fp_log1p(v) : fp_log(m / mean)) - gap;
}

/* Of an exponent: parts for |k - n x|, for deviances and for each step of the fraction. */
FP_INLINE double fp_tail_error(double gap, double deviances, double steps)
{
    /* bound: proved - docs/proofs/roundings.md, 13.26: roundings of the exponent and of the fraction */
    return FP_U * (64.0 * gap + 10.0 * deviances + 24.0 * steps + 96.0);
}

/* factor e^exponent from above; 0, as a rounded number, where it is below 1e-331 */
FP_INLINE double fp_exponential_above(double factor, double exponent)
{
    if (exponent > -690.0)
        return factor * fp_exp(exponent);
    const double total = exponent + fp_log(factor) + 0x1p-40;
    return total < -762.0 ? 0.0 : fp_exp(total) + 0x1p-1074;
}

/* Bounds for k <= n */
FP_ONCE fp_tail fp_binomial_tail(double k, double n, double x, double y)
{
    if (k <= 0.0)
        return (fp_tail){1.0, 1.0, INFINITY};
    if (x < 1e-300) /* B <= n x, and the fraction ends with beta_1 */
        return (fp_tail){n * x * (1.0 + 4.0 * FP_U) + (x > 0.0 ? 0x1p-1074 : 0.0), 0.0,
                         n < 0x1p52 ? (1.0 + 0x1p-40) / k : INFINITY};
    if (!(y >= 1e-300))
        return (fp_tail){1.0, 0.0, INFINITY};
    const double least = x <= y ? x : y, end = x <= y ? k : n + 1.0 - k;
    const double product = (n + 1.0) * least, sum = end - product;
    const double low = sum + (fp_sum_error(end, -product, sum) - fp_product_error(n + 1.0, least, product));
    const int other = x <= y ? low < 0.0 : low > 0.0; /* d < 0 */
    const double a = other ? n + 1.0 - k : k, b = other ? k : n + 1.0 - k, p = other ? y : x, q = other ? x : y;
    const double d = fabs(low), gap = d + p;
    double exponent, factor, deviances;
    if (a == n) {
        exponent = n * (p < 0.5 ? fp_log(p) : fp_log1p(-q));
        deviances = -exponent;
        factor = n;
    } else {
        deviances = fp_deviance(a, n * p, gap) + fp_deviance(n - a, n * q, -gap);
        exponent = fp_stirling_remainder(n) - fp_stirling_remainder(a) - fp_stirling_remainder(n - a) - deviances;
        factor = sqrt(n * a / (n - a) * (0.5 / FP_PI));
    }
    if (!(n < 0x1p52)) {
        const double error = fp_tail_error(gap, deviances, 0.0) + n * 0x1p-100;
        const double most = other || deviances < 1.0 ? 1.0 : fp_exponential_above(1.0, error - deviances);
        return (fp_tail){fmin(most, 1.0), 0.0, INFINITY};
    }
    double above[2] = {0.0, 1.0}, below[2] = {1.0, a / (a + 1.0) * (d + 1.0)}; /* of the last two convergents */
    double bounds[2] = {0.0, above[1] / below[1]}, steps = 1.0;               /* from even convergents, from odd ones */
    int odd = 1;
    for (; steps < b && steps < FP_TAIL_STEPS && bounds[0] < bounds[1] * (1.0 - FP_TAIL_NEAR); steps += 1.0) {
        const double i = steps, t = p / (a + 2.0 * i - 1.0), left = i * (b - i);
        const double alpha = (a + i - 1.0) * t * ((n + i) * t) * left;
        const double beta = i + left * t + (a + i) / (a + 2.0 * i + 1.0) * (d + 1.0 + i * (1.0 + q));
        const double over = beta * above[1] + alpha * above[0], under = beta * below[1] + alpha * below[0];
        const double scale = under > 0x1p500 ? 0x1p-500 : 1.0;
        above[0] = above[1] * scale, above[1] = over * scale;
        below[0] = below[1] * scale, below[1] = under * scale;
        odd = !odd;
        bounds[odd] = above[1] / below[1];
    }
    if (steps == b)
        bounds[!odd] = bounds[odd]; /* the last convergent */
    const double error = fp_tail_error(gap, deviances, steps);
    const double most = fmin(fp_exponential_above(factor * q * bounds[1], exponent + error), 1.0);
    const double one = exponent > -690.0 ? fp_exp(exponent - error) * factor : 0.0; /* at most G / q */
    const double least_tail = one * q * bounds[0] > 1e-290 ? one * q * bounds[0] : 0.0;
    if (!other)
        return (fp_tail){most, least_tail, q * bounds[1] * (1.0 + error)};
    const double rest = fmin((1.0 - least_tail) * (1.0 + 4.0 * FP_U), 1.0);
    return (fp_tail){rest, fmax(1.0 - most, 0.0) * (1.0 - 4.0 * FP_U), rest * y / (one * q)};
}

/* The rate `guess`, or one farther down, at which the tail of k <= n is proved to be at most `error` */
static double fp_least_rate(double k, double n, double error, double guess)
{
    double rate = guess * (1.0 - FP_TAIL_STEP), step = FP_TAIL_STEP;
    if (!(guess > 0.0) || k <= 0.0)
        return 0.0;
    for (; rate > 0.0 && !(fp_binomial_tail(k, n, rate, 1.0 - rate).upper <= error); step = fmin(2.0 * step, 0.5))
        rate *= 1.0 - step;
    return rate;
}

/* The rate `guess`, or one farther up, at which P(X <= hits), hits <= n, is proved to be at most `error` */
static double fp_most_rate(double hits, double n, double error, double guess)
{
    double rate = guess * (1.0 + FP_TAIL_STEP), step = FP_TAIL_STEP;
    if (!(guess > 0.0) || hits >= n)
        return error >= 1.0 && hits < n ? 0.0 : 1.0;
    for (; rate < 1.0 && !(fp_binomial_tail(n - hits, n, 1.0 - rate, rate).upper <= error); step = fmin(2.0 * step, 0.5))
        rate *= 1.0 + step;
    return fmin(rate, 1.0);
}

#endif
