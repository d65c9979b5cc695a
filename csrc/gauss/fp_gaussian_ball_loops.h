/* Normal noise outside a ball; no include guard: included once per instruction set.
 *
 * Notation: Z is standard normal in k >= 2 dimensions, r = alpha / sigma, x = r^2 / 2. For an even k (Abramowitz and
 * Stegun 1964, 26.4.4 and 26.4.5)
 *     P(|Z| > r) = e^-x sum over b < k/2 of x^b / b! = e^-x (1 + x/1 (1 + x/2 (1 + ...))),
 * and for an odd one erfc(r / sqrt 2) + sqrt(2 / pi) r e^-x (1 + x/1.5 (1 + x/2.5 (1 + ...))). Up to x = 700 e^-x is a
 * normal double; up to 5000 the sum is taken in extended precision. */
/* bounds: proved - roundings of the sum, and where it ends: docs/proofs/notions.md, 14.14 */

/* The sum within the first brackets, b = first + levels, ..., first + 1 */
static inline long double FP_NAME(fp_ball_sum)(double x, double first, double levels)
{
    long double sum = 1.0L;
    for (double j = levels < 4.0 * x + 120.0 ? levels : ceil(4.0 * x + 120.0); j >= 1.0; j -= 1.0)
        sum = 1.0L + x / (long double)(first + j) * sum;
    return sum;
}

/* P(sigma |Z| > alpha) with bounds for n values of alpha; returns how many are NaN, as x > 5000. */
static ptrdiff_t FP_NAME(fp_outside_ball)(ptrdiff_t k, double sigma, ptrdiff_t n, const double *alpha, double *value,
                                          double *lower, double *upper)
{
    const int odd = (int)(k % 2);
    const double first = 0.5 * odd, levels = (double)((k - 2 - odd) / 2), most = levels < 2920.0 ? levels : 2920.0;
    ptrdiff_t missing = 0;
    for (ptrdiff_t start = 0; start < n; start += FP_LANES) {
        double r[FP_LANES], x[FP_LANES], sum[FP_LANES], v[FP_LANES], low[FP_LANES], high[FP_LANES];
        const ptrdiff_t left = n - start < FP_LANES ? n - start : FP_LANES;
        for (ptrdiff_t i = 0; i < FP_LANES; i++)
            r[i] = alpha[start + (i < left ? i : 0)];
        FP_LANE_LOOP(i) {
            r[i] /= sigma;
            x[i] = 0.5 * (r[i] * r[i]);
            sum[i] = 1.0;
        }
        for (double j = most; j >= 1.0; j -= 1.0) {
            const double inverse = 1.0 / (first + j);
            FP_LANE_LOOP(i) sum[i] = 1.0 + x[i] * inverse * sum[i];
        }
        FP_LANE_LOOP(i) v[i] = fp_exp(-x[i]) * sum[i];
        if (odd)
            FP_LANE_LOOP(i) v[i] = v[i] * (r[i] * FP_SQRT_2_OVER_PI) + fp_erfc(r[i] * FP_SQRT_HALF);
        for (ptrdiff_t i = 0; i < left; i++)
            if (!(x[i] <= 700.0)) {
                const long double far = x[i] <= 5000.0 ? expl(-(long double)x[i]) * FP_NAME(fp_ball_sum)(x[i], first, levels) : NAN;
                v[i] = (double)(odd ? far * (r[i] * FP_SQRT_2_OVER_PI) : far) + (odd ? fp_erfc(r[i] * FP_SQRT_HALF) : 0.0);
                missing += v[i] != v[i];
            }
        FP_LANE_LOOP(i) {
            const double error = 1.01 * FP_U * (7.0 * x[i] + 16.0), below = v[i] - (v[i] * error + 1e-322);
            const double above = v[i] + (v[i] * error + 1e-322), answer = v[i] > 1.0 ? 1.0 : v[i];
            low[i] = below < 0.0 ? 0.0 : below < answer ? below : answer;
            high[i] = above > 1.0 ? 1.0 : above;
            v[i] = answer;
        }
        for (ptrdiff_t i = 0; i < left; i++)
            value[start + i] = v[i], lower[start + i] = low[i], upper[start + i] = high[i];
    }
    return missing;
}
