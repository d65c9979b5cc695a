/* Bounds of products of two binomial tails over all rates, and of the rates that privacy claims allow.
 *
 * Notation: u0(x) = P(Bin(n0, x) <= fp), u1(p) = P(Bin(n1, p) >= tp), F concave and rising, g(x) = log u0(x) u1(F(x)), which
 * is concave. docs/proofs/roundings.md, 13.27. F and 1 - F come in pairs: F from below and 1 - F from above, then the other
 * way round. */
/* bounds: proved - docs/proofs/roundings.md, 13.27: roundings of a quantile and of F; where Newton's method ends */
#ifndef FP_PRODUCTS_OF_TAILS_H
#define FP_PRODUCTS_OF_TAILS_H

#include "sampling/fp_binomial_tail.h"
#include "special/fp_erfc.h"

/* bound: proved - docs/proofs/roundings.md, 13.27: roundings of F and of 1 - F, relative */
#define FP_RATE_ROUNDING (16.0 * FP_U)
/* bound: none - distances in standard deviations beside the largest product, at which the proof looks */
static const double fp_beside[7] = {1e-10, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2};
#define FP_PRODUCT_POINTS 16    /* twice these, and two */
#define FP_PRODUCT_SECTIONS 60  /* golden sections of the log odds: 1e-10 of them is left */
#define FP_LARGEST_ODDS 745.0   /* in size, of a rate that is searched, as a logarithm */
#define FP_QUANTILE_STEPS 30    /* of Newton's method; from the start of the tail far fewer are needed */

/* The kinds of claims: (epsilon, delta), mu-Gaussian, and lines above F. */
enum { FP_CLAIM_DP, FP_CLAIM_GAUSSIAN, FP_CLAIM_LINES };
typedef struct {
    int kind;
    double first, second; /* epsilon and delta, or mu */
    ptrdiff_t lines;
    const double *slopes, *deltas;
} fp_claim;

typedef struct {
    double tp, n1, fp, n0;
} fp_counts;

enum { FP_LEAST, FP_LEAST_OTHER, FP_MOST, FP_MOST_OTHER }; /* F and 1 - F of the lower end of F, of the upper one */

/* F(x) = min(delta + e^epsilon x, 1 - e^-epsilon (1 - delta - x)) */
FP_INLINE void fp_dp_ends(double x, double epsilon, double delta, double *ends)
{
    const double left = 1.0 - delta, lost = fp_sum_error(1.0, -delta, left);
    const double forward = x == 0.0 ? delta : delta + fp_exp(epsilon) * x;
    const double backward = -fp_expm1(-epsilon) + fp_exp(-epsilon) * (delta + x), rate = fmin(forward, backward);
    const double rest = fp_exp(-epsilon) * fmax((left - x) + lost, 0.0);
    for (int side = 0; side < 2; side++) {
        const double r = side ? FP_RATE_ROUNDING : -FP_RATE_ROUNDING;
        ends[2 * side] = fmin(rate * (1.0 + r), 1.0);
        ends[2 * side + 1] = fmax(fmax(1.0 - forward * (1.0 + r), rest * (1.0 - r)), 0.0);
    }
}

/* z = Phi^-1(x), 0 < x <= 1/2, and by how much it may be off */
FP_INLINE double fp_quantile(double x, double *error)
{
    const double aim = fp_log(x);
    double z = -sqrt(-2.0 * aim), slope = 1.0;
    for (int i = 0; i < FP_QUANTILE_STEPS; i++) { /* log Phi is concave, and the start is below */
        slope = FP_INV_SQRT_2PI * fp_exp(-0.5 * z * z - fp_log_ndtr(z));
        const double step = (aim - fp_log_ndtr(z)) / slope;
        z = fmin(z + step, 0.0);
        if (fabs(step) <= 0x1p-50 * (1.0 + fabs(z)))
            break;
    }
    *error = (fabs(fp_log_ndtr(z) - aim) + FP_U * (40.0 + 40.0 * fabs(aim))) / (0.79 * slope) + 4.0 * FP_U * fabs(z);
    return z;
}

/* F(x) = Phi(Phi^-1(x) + mu) */
FP_INLINE void fp_gaussian_ends(double x, double mu, double *ends)
{
    double size = 0.0, z = 0.0;
    if (!(x > 0.0) || !(x < 1.0)) {
        for (int i = 0; i < 4; i++)
            ends[i] = (i % 2 == 0) == (x > 0.0);
        return;
    }
    z = x <= 0.5 ? fp_quantile(x, &size) : -fp_quantile(1.0 - x, &size);
    size += FP_U * (fabs(z) + mu);
    const double rate = fp_ndtr(z + mu), rest = fp_ndtr(-z - mu);
    const double error = size * (1.0 + fmax(-z - mu, 0.0)) + FP_RATE_ROUNDING;
    const double other = size * (1.0 + fmax(z + mu, 0.0)) + FP_RATE_ROUNDING;
    ends[FP_LEAST] = rate * fmax(1.0 - error, 0.0), ends[FP_LEAST_OTHER] = fmin(rest * (1.0 + other), 1.0);
    ends[FP_MOST] = fmin(rate * (1.0 + error), 1.0), ends[FP_MOST_OTHER] = rest * fmax(1.0 - other, 0.0);
}

/* The least of lines delta + slope x, and 1 */
FP_INLINE void fp_line_ends(const fp_claim *claim, double x, double *ends)
{
    double rate = 1.0;
    for (ptrdiff_t i = 0; i < claim->lines; i++)
        rate = fmin(rate, claim->deltas[i] + claim->slopes[i] * x);
    ends[FP_LEAST] = rate * (1.0 - FP_RATE_ROUNDING), ends[FP_MOST] = fmin(rate * (1.0 + FP_RATE_ROUNDING), 1.0);
    ends[FP_LEAST_OTHER] = 1.0 - ends[FP_LEAST], ends[FP_MOST_OTHER] = 1.0 - ends[FP_MOST];
}

FP_INLINE void fp_ends(const fp_claim *claim, double x, double *ends)
{
    if (claim->kind == FP_CLAIM_DP)
        fp_dp_ends(x, claim->first, claim->second, ends);
    else if (claim->kind == FP_CLAIM_GAUSSIAN)
        fp_gaussian_ends(x, claim->first, ends);
    else
        fp_line_ends(claim, x, ends);
}

/* Bounds of P(Bin(n, rate) >= hits) */
static fp_tail fp_tail_of_counts(double hits, double n, double rate, double other)
{
    return fp_binomial_tail(hits, n, rate < 0.5 ? rate : 1.0 - other, rate < 0.5 ? 1.0 - rate : other);
}

/* log u0(x) from above; *high: log u1(F(x)) from above; *least: their sum from below */
static double fp_product_at(const fp_counts *counts, const fp_claim *claim, double x, double *high, double *least)
{
    double end[4];
    const fp_tail low = fp_tail_of_counts(counts->n0 - counts->fp, counts->n0, 1.0 - x, x);
    fp_ends(claim, x, end);
    *high = fp_log(fp_tail_of_counts(counts->tp, counts->n1, end[FP_MOST], end[FP_MOST_OTHER]).upper);
    if (least)
        *least = fp_log(low.lower)
                 + fp_log(fp_tail_of_counts(counts->tp, counts->n1, end[FP_LEAST], end[FP_LEAST_OTHER]).lower);
    return fp_log(low.upper);
}

/* An upper bound of g over [0, 1] from rising points */
static double fp_largest_product(const fp_counts *counts, const fp_claim *claim, const double *x)
{
    enum { m = FP_PRODUCT_POINTS };
    double low[m], high[m], most[m], least[m];
    for (int j = 0; j < m; j++) {
        low[j] = fp_product_at(counts, claim, x[j], &high[j], &least[j]);
        most[j] = low[j] + high[j];
    }
    double best = most[0] <= least[1] && least[1] > -INFINITY ? most[0] : high[0];
    best = fmax(best, most[m - 1] <= least[m - 2] && least[m - 2] > -INFINITY ? most[m - 1] : low[m - 1]);
    for (int j = 0; j < m - 1; j++) {
        double inner = low[j] + high[j + 1];
        for (int side = 0; side < 2; side++) { /* the line through both points before, and through both points after */
            const int near = side ? j + 1 : j, far = side ? j + 2 : j - 1;
            if (far < 0 || far == m)
                continue;
            const double rise = most[near] - least[far], part = (x[j + 1] - x[j]) / fabs(x[near] - x[far]);
            inner = fmin(inner, rise <= 0.0 ? most[near] : most[near] + rise * part); /* NaN is passed over */
        }
        best = fmax(best, inner);
    }
    return best;
}

FP_INLINE double fp_rate_of_odds(double s)
{
    return s < 0.0 ? fp_exp(s) / (1.0 + fp_exp(s)) : 1.0 / (1.0 + fp_exp(-s));
}

/* Where g is largest, by golden sections. */
static void fp_place_of_product(const fp_counts *counts, const fp_claim *claim, double *from, double *to)
{
    const double golden = 0.61803398874989485;
    double low = -FP_LARGEST_ODDS, high = 40.0, s[2] = {high - golden * (high - low), low + golden * (high - low)};
    double value[2], second[2];
    for (int i = 0; i < 2; i++)
        value[i] = fp_product_at(counts, claim, fp_rate_of_odds(s[i]), &second[i], NULL) + second[i];
    for (int i = 0; i < FP_PRODUCT_SECTIONS; i++) {
        const int neither = value[0] == -INFINITY && value[1] == -INFINITY;
        const int right = neither ? second[1] == -INFINITY : value[1] >= value[0]; /* it is flat where x is as good as 0 */
        double *const next = &s[right], *const next_value = &value[right];
        *(right ? &low : &high) = s[!right];
        s[!right] = s[right], value[!right] = value[right], second[!right] = second[right];
        *next = right ? low + golden * (high - low) : high - golden * (high - low);
        *next_value = fp_product_at(counts, claim, fp_rate_of_odds(*next), &second[right], NULL) + second[right];
    }
    *from = fp_rate_of_odds(low);
    *to = fp_rate_of_odds(high);
}

/* An upper bound of g, near its supremum if this is at about [from, to], or where both are 0 */
static double fp_greatest_product(const fp_counts *counts, const fp_claim *claim, double from, double to)
{
    double x[FP_PRODUCT_POINTS];
    if (to == 0.0)
        fp_place_of_product(counts, claim, &from, &to);
    for (int i = 0; i < FP_PRODUCT_POINTS / 2; i++) {
        const double step = i ? (to - from) + fp_beside[i - 1] * sqrt(to * (1.0 - to) / counts->n0) : 0.0;
        x[FP_PRODUCT_POINTS / 2 - 1 - i] = fmax(from - step, 0.0);
        x[FP_PRODUCT_POINTS / 2 + i] = fmin(to + step, 1.0);
    }
    return fp_largest_product(counts, claim, x);
}

#endif
