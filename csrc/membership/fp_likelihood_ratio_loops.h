/* Loops of fp_likelihood_ratio.h; no include guard, included once per instruction set. */

static double FP_NAME(fp_ratio_weights)(ptrdiff_t m, const double *restrict r, const double *restrict log_odds,
                                        const double *restrict log_rest, double e, double *restrict weights)
{
    double lane[FP_LANES] = {0.0};
    ptrdiff_t j = 0;
    for (; j + FP_LANES <= m; j += FP_LANES)
        for (int l = 0; l < FP_LANES; l++) {
            double x = r[j + l], rest = 1.0 - x; /* both are cut, so that a cut near 1 keeps its digits */
            x = x < e ? e : x;
            x = x > 1.0 - e ? 1.0 - e : x;
            rest = rest < e ? e : rest;
            rest = fp_log(rest > 1.0 - e ? 1.0 - e : rest);
            weights[j + l] = log_odds[j + l] - fp_log(x) + rest;
            lane[l] += log_rest[j + l] - rest;
        }
    for (int l = 0; j < m; j++, l++) {
        double x = r[j], rest = 1.0 - x;
        x = x < e ? e : x;
        x = x > 1.0 - e ? 1.0 - e : x;
        rest = rest < e ? e : rest;
        rest = fp_log(rest > 1.0 - e ? 1.0 - e : rest);
        weights[j] = log_odds[j] - fp_log(x) + rest;
        lane[l] += log_rest[j] - rest;
    }
    return fp_lane_sum(lane);
}
