/* The subsampled Gaussian mechanism; no include guard: common/fp_variants.h includes this once per instruction set. */
#include "gauss/fp_two_points_loops.h"
#include "gauss/fp_subsampled_inverse_solver.h"

/* Settings of sigma, rate and epsilon, at the given strides in bytes; `adding` is the direction, `logs` asks for log
 * H.  The weights are formed anew where the rate changes. */
FP_ONCE void FP_NAME(fp_subsampled)(char **args, ptrdiff_t count, const ptrdiff_t *steps, int adding, int logs)
{
    FP_NAME(fp_two_points_block) block;
    double results[3][FP_NAME(FP_TWO_POINTS_BLOCK)], rate = NAN, sigma = NAN;
    fp_two_points weights = {0};
    fp_dd r = {NAN, 0.0};
    for (ptrdiff_t start = 0; start < count; start += FP_NAME(FP_TWO_POINTS_BLOCK)) {
        const ptrdiff_t left = count - start;
        const ptrdiff_t n = left < FP_NAME(FP_TWO_POINTS_BLOCK) ? left : FP_NAME(FP_TWO_POINTS_BLOCK);
        for (ptrdiff_t i = 0; i < n; i++) {
            const ptrdiff_t at = start + i;
            const double new_sigma = *(const double *)(args[0] + at * steps[0]);
            const double new_rate = *(const double *)(args[1] + at * steps[1]);
            const double epsilon = *(const double *)(args[2] + at * steps[2]);
            if (new_rate != rate)
                weights = fp_two_points_subsampled(rate = new_rate, adding);
            if (new_sigma != sigma)
                r = fp_two_points_ratio(fp_dd_set(1.0), sigma = new_sigma);
            FP_NAME(fp_two_points_put)(&block, i, fp_subsampled_terms(&weights, r, rate, sigma, epsilon));
        }
        (logs ? FP_NAME(fp_two_points_logs) : FP_NAME(fp_two_points_values))(&block, n, results[0], results[1],
                                                                             results[2]);
        for (int k = 0; k < 3; k++)
            for (ptrdiff_t i = 0; i < n; i++)
                *(double *)(args[3 + k] + (start + i) * steps[3 + k]) = results[k][i];
    }
}

#define FP_SUBSAMPLED(stem, adding, logs)                                                                              \
    static void FP_NAME(stem)(char **args, ptrdiff_t count, const ptrdiff_t *steps)                                    \
    {                                                                                                                  \
        FP_NAME(fp_subsampled)(args, count, steps, adding, logs);                                                      \
    }

FP_SUBSAMPLED(sampled_gaussian_delta_remove, 0, 0)
FP_SUBSAMPLED(sampled_gaussian_delta_add, 1, 0)
FP_SUBSAMPLED(sampled_gaussian_log_delta_remove, 0, 1)
FP_SUBSAMPLED(sampled_gaussian_log_delta_add, 1, 1)

/* Settings of sigma, rate and delta, or of rate, epsilon and delta: `rate` is the position of the rate. */
#define FP_SUBSAMPLED_INVERSE(stem, rate, adding, unknown)                                                             \
    static void FP_NAME(stem)(char **args, ptrdiff_t count, const ptrdiff_t *steps)                                    \
    {                                                                                                                  \
        for (ptrdiff_t i = 0; i < count; i++) {                                                                        \
            const fp_gauss_bounded found = FP_NAME(fp_subsampled_inverse)(                                             \
                *(const double *)(args[rate] + i * steps[rate]),                                                       \
                *(const double *)(args[1 - rate] + i * steps[1 - rate]), *(const double *)(args[2] + i * steps[2]),    \
                adding, unknown);                                                                                      \
            *(double *)(args[3] + i * steps[3]) = found.value;                                                         \
            *(double *)(args[4] + i * steps[4]) = found.lower;                                                         \
            *(double *)(args[5] + i * steps[5]) = found.upper;                                                         \
        }                                                                                                              \
    }

FP_SUBSAMPLED_INVERSE(sampled_gaussian_epsilon_remove, 1, 0, FP_GAUSS_OF_EPSILON)
FP_SUBSAMPLED_INVERSE(sampled_gaussian_epsilon_add, 1, 1, FP_GAUSS_OF_EPSILON)
FP_SUBSAMPLED_INVERSE(sampled_gaussian_noise_remove, 0, 0, FP_GAUSS_OF_R)
FP_SUBSAMPLED_INVERSE(sampled_gaussian_noise_add, 0, 1, FP_GAUSS_OF_R)
