/* The subsampled Gaussian mechanism; no include guard: common/fp_variants.h includes this once per instruction set. */
/* bounds: none - which settings are computed side by side: the others, one by one, get the same formulas */
#include "gauss/fp_two_points_loops.h"
#include "gauss/fp_subsampled_inverse_solver.h"

/* Terms of the direction "remove" for usual settings. */
static void FP_NAME(fp_subsampled_block)(FP_NAME(fp_two_points_block) * restrict b, ptrdiff_t n,
                                         const double *restrict sigma, const double *restrict rate,
                                         const double *restrict epsilon)
{
    _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++)
    {
        const fp_dd other = fp_two_sum(1.0, -rate[i]), r = fp_dd_div_d(fp_dd_set(0.5), sigma[i]);
        const fp_dd p = {other.hi * FP_WEIGHT_SCALE, other.lo * FP_WEIGHT_SCALE};
        const double mass = rate[i] * FP_WEIGHT_SCALE;
        FP_NAME(fp_two_points_put)
        (b, i, fp_two_points_usual(p, mass, fp_dd_set(-mass), fp_dd_set(0.0), r, epsilon[i]));
    }
}

/* Settings of sigma, rate and epsilon, at the given strides in bytes; `adding` is the direction, `logs` asks for log
 * H.  Usual settings are computed side by side, the others one by one. */
FP_ONCE void FP_NAME(fp_subsampled)(char **args, ptrdiff_t count, const ptrdiff_t *steps, int adding, int logs)
{
    FP_NAME(fp_two_points_block) block;
    double results[3][FP_NAME(FP_TWO_POINTS_BLOCK)], given[3][FP_NAME(FP_TWO_POINTS_BLOCK)];
    char usual[FP_NAME(FP_TWO_POINTS_BLOCK)];
    for (ptrdiff_t start = 0; start < count; start += FP_NAME(FP_TWO_POINTS_BLOCK)) {
        const ptrdiff_t left = count - start;
        const ptrdiff_t n = left < FP_NAME(FP_TWO_POINTS_BLOCK) ? left : FP_NAME(FP_TWO_POINTS_BLOCK);
        for (ptrdiff_t i = 0; i < n; i++) {
            const double sigma = *(const double *)(args[0] + (start + i) * steps[0]);
            const double rate = *(const double *)(args[1] + (start + i) * steps[1]);
            const double epsilon = *(const double *)(args[2] + (start + i) * steps[2]);
            usual[i] = !adding & (sigma >= 1e-9) & (sigma <= 1e9) & (rate >= 0x1p-200) & (rate <= 1.0 - 0x1p-40)
                       & fp_two_points_is_usual(epsilon);
            given[0][i] = usual[i] ? sigma : 1.0;
            given[1][i] = usual[i] ? rate : 0.5;
            given[2][i] = usual[i] ? epsilon : 1.0;
        }
        if (!adding && n > 1)
            FP_NAME(fp_subsampled_block)(&block, n, given[0], given[1], given[2]);
        for (ptrdiff_t i = 0; i < n; i++) {
            if (usual[i] && n > 1 && block.mass[i] > 0.0)
                continue;
            const double sigma = *(const double *)(args[0] + (start + i) * steps[0]);
            const double rate = *(const double *)(args[1] + (start + i) * steps[1]);
            const fp_two_points weights = fp_two_points_subsampled(rate, adding);
            const fp_dd r = fp_two_points_ratio(fp_dd_set(1.0), sigma);
            FP_NAME(fp_two_points_put)
            (&block, i, fp_subsampled_terms(&weights, r, rate, sigma, *(const double *)(args[2] + (start + i) * steps[2])));
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
