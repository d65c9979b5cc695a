/* Bounds of products of two binomial tails over all rates, and of the rates that privacy claims allow.
 *
 * Notation: u0(x) = P(Bin(n0, x) <= fp), u1(p) = P(Bin(n1, p) >= tp), F concave and rising, g(x) = log u0(x) u1(F(x)), which
 * is concave. docs/proofs/roundings.md, 13.27. F and 1 - F come in pairs: F from below and 1 - F from above, then the other
 * way round. */
#ifndef FP_PRODUCTS_OF_TAILS_H
#define FP_PRODUCTS_OF_TAILS_H

#include "sampling/fp_binomial_tail.h"
#include "special/fp_erfc.h"

/* bound: proved - docs/proofs/roundings.md, 13.27: roundings of F and of 1 - F, relative */
#define FP_RATE_ROUNDING (16.0 * FP_U)
/* bound: proved - docs/proofs/roundings.md, 13.27: of a quantile of the normal law and its sum with mu, over 1 + its size */
#define FP_QUANTILE_ERROR 2e-13

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

/* F(x) = Phi(z + mu), z = Phi^-1(x) */
FP_INLINE void fp_gaussian_ends(double x, double quantile, double mu, double *ends)
{
    const double z = fmin(fmax(quantile, -40.0), 40.0), size = FP_QUANTILE_ERROR * (1.0 + fabs(z));
    const double rate = x > 0.0 ? fp_ndtr(z + mu) : 0.0, rest = x > 0.0 ? fp_ndtr(-z - mu) : 1.0;
    const double error = size * (1.0 + fmax(-z - mu, 0.0)) + FP_RATE_ROUNDING;
    const double other = size * (1.0 + fmax(z + mu, 0.0)) + FP_RATE_ROUNDING;
    ends[FP_LEAST] = rate * (1.0 - error), ends[FP_LEAST_OTHER] = fmin(rest * (1.0 + other), 1.0);
    ends[FP_MOST] = fmin(rate * (1.0 + error), 1.0), ends[FP_MOST_OTHER] = rest * (1.0 - other);
}

/* F known to FP_RATE_ROUNDING of itself */
FP_INLINE void fp_rounded_ends(double rate, double *ends)
{
    ends[FP_LEAST] = rate * (1.0 - FP_RATE_ROUNDING), ends[FP_MOST] = fmin(rate * (1.0 + FP_RATE_ROUNDING), 1.0);
    ends[FP_LEAST_OTHER] = 1.0 - ends[FP_LEAST], ends[FP_MOST_OTHER] = 1.0 - ends[FP_MOST];
}

/* Bounds of P(Bin(n, rate) >= hits), which is 1 for no hits */
static fp_tail fp_tail_of_counts(double hits, double n, double rate, double other)
{
    return hits > 0.0 ? fp_binomial_tail(hits, n, rate < 0.5 ? rate : 1.0 - other, rate < 0.5 ? 1.0 - rate : other)
                      : (fp_tail){1.0, 1.0, INFINITY};
}

#define FP_MOST_POINTS 32

/* An upper bound of g over [0, 1] from m rising points x, at most FP_MOST_POINTS, and the four ends of F at each. */
static double fp_largest_product(double tp, double n1, double fp, double n0, int m, const double *x, const double *ends)
{
    double low[FP_MOST_POINTS], high[FP_MOST_POINTS], most[FP_MOST_POINTS], least[FP_MOST_POINTS];
    for (int j = 0; j < m; j++) {
        const double *const end = ends + 4 * j;
        const fp_tail of_x = fp_tail_of_counts(n0 - fp, n0, 1.0 - x[j], x[j]);
        low[j] = fp_log(of_x.upper);
        high[j] = fp_log(fp_tail_of_counts(tp, n1, end[FP_MOST], end[FP_MOST_OTHER]).upper);
        most[j] = low[j] + high[j];
        least[j] = fp_log(of_x.lower) + fp_log(fp_tail_of_counts(tp, n1, end[FP_LEAST], end[FP_LEAST_OTHER]).lower);
    }
    double best = most[0] <= least[1] && least[1] > -INFINITY ? most[0] : high[0];
    best = fmax(best, most[m - 1] <= least[m - 2] && least[m - 2] > -INFINITY ? most[m - 1] : low[m - 1]);
    for (int j = 0; j < m - 1; j++) {
        const double width = x[j + 1] - x[j];
        double inner = low[j] + high[j + 1];
        for (int side = 0; side < 2; side++) { /* the line through both points before, and through both points after */
            const int near = side ? j + 1 : j, far = side ? j + 2 : j - 1;
            if (far < 0 || far == m)
                continue;
            const double rise = most[near] - least[far];
            inner = fmin(inner, rise <= 0.0 ? most[near] : most[near] + rise * (width / fabs(x[near] - x[far])));
        }
        best = fmax(best, inner);
    }
    return best;
}

#endif
