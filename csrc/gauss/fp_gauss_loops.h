/* Loops of the Gaussian mechanism; no include guard: common/fp_variants.h includes this once per instruction set. */
#include "gauss/fp_gauss_solver.h"
#include "gauss/fp_subsampled_loops.h"

FP_LOOP_2(gaussian_delta, fp_gaussian_delta)
FP_LOOP_2(gaussian_log_delta, fp_gaussian_log_delta)

/* The curves with bounds for n settings: epsilon, sigma and span, each an array or one number for all.  Returns how
 * many settings are not plain. */
#define FP_GAUSS_BOUNDS(stem, scalar)                                                                                  \
    static ptrdiff_t FP_NAME(stem)(const double *const *known, const int *fixed, double *const *out, ptrdiff_t n)      \
    {                                                                                                                  \
        double staged[3][FP_BLOCK];                                                                                    \
        const double *in[3];                                                                                           \
        uint64_t others = 0;                                                                                           \
        for (int k = 0; k < 3; k++)                                                                                    \
            for (ptrdiff_t i = 0; i < FP_BLOCK && fixed[k]; i++)                                                       \
                staged[k][i] = *known[k];                                                                              \
        for (ptrdiff_t start = 0; start < n; start += FP_BLOCK) {                                                      \
            const ptrdiff_t m = n - start < FP_BLOCK ? n - start : FP_BLOCK;                                           \
            for (int k = 0; k < 3; k++)                                                                                \
                in[k] = fixed[k] ? staged[k] : known[k] + start;                                                       \
            const double *epsilon = in[0], *sigma = in[1], *span = in[2];                                              \
            double *value = out[0] + start, *lower = out[1] + start, *upper = out[2] + start;                          \
            _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < m; i++)                                                     \
            {                                                                                                          \
                const fp_gauss_bounded found = scalar(0.5 * (span[i] / sigma[i]), epsilon[i]);                         \
                value[i] = found.value;                                                                                \
                lower[i] = found.lower;                                                                                \
                upper[i] = found.upper;                                                                                \
                others += found.lower != found.lower ? 1 : 0;                                                          \
            }                                                                                                          \
        }                                                                                                              \
        return (ptrdiff_t)others;                                                                                      \
    }

FP_GAUSS_BOUNDS(gaussian_delta_bounds, fp_gaussian_delta_bounded)
FP_GAUSS_BOUNDS(gaussian_log_delta_bounds, fp_gaussian_log_delta_bounded)
