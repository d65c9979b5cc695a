/* The table of the ufuncs of the Gaussian mechanism, with every instruction set's loops. */
#ifndef FP_GAUSS_UFUNCS_H
#define FP_GAUSS_UFUNCS_H

#include "gauss/fp_gauss_inverse.h"
#include "gauss/fp_two_points.h"
#include "common/fp_ufunc.h"

#define FP_LOOPS "gauss/fp_gauss_loops.h"
#include "common/fp_variants.h"

#define FP_GAUSS_FUNCTIONS(F)                   \
    F(2, gaussian_delta)                        \
    F(2, gaussian_log_delta)                    \
    F(2, gaussian_epsilon)                      \
    F(2, gaussian_epsilon_from_log_delta)       \
    F(2, gaussian_epsilon_below)                \
    F(2, gaussian_epsilon_below_from_log_delta) \
    F(2, gaussian_noise)                        \
    F(2, gaussian_noise_from_log_delta)         \
    F(2, gaussian_noise_below)                  \
    F(2, gaussian_noise_below_from_log_delta)

FP_GAUSS_FUNCTIONS(FP_SCALAR)

typedef void fp_subsampled_kernel(char **args, ptrdiff_t count, const ptrdiff_t *steps);

/* Three inputs and three outputs, in chunks between which a signal is heard. */
static void fp_subsampled_loop(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps, void *kernel)
{
    const fp_flags held = fp_flags_save();
    char *part[6];
    for (ptrdiff_t start = 0; start < dimensions[0]; start += FP_UFUNC_CHUNK) {
        const ptrdiff_t left = dimensions[0] - start, n = left < FP_UFUNC_CHUNK ? left : FP_UFUNC_CHUNK;
        for (int k = 0; k < 6; k++)
            part[k] = args[k] + start * steps[k];
        if (fp_ufunc_stop_requested(n))
            break;
        ((fp_subsampled_kernel *)kernel)(part, n, steps);
    }
    fp_flags_restore(held);
}

/* The value alone, of single numbers. */
#define FP_SUBSAMPLED_SCALAR(stem)                                                                                     \
    static void *stem##_selected;                                                                                      \
    static double stem##_scalar(double rate, double sigma, double epsilon)                                             \
    {                                                                                                                  \
        static const ptrdiff_t steps[6] = {0};                                                                         \
        double found[3];                                                                                               \
        char *args[] = {(char *)&rate,  (char *)&sigma,     (char *)&epsilon,                                          \
                        (char *)found, (char *)(found + 1), (char *)(found + 2)};                                      \
        ((fp_subsampled_kernel *)stem##_selected)(args, 1, steps);                                                     \
        return found[0];                                                                                               \
    }
#define FP_SUBSAMPLED_UFUNC(stem)                                                                                      \
    {.name = #stem, .inputs = 3, .outputs = 3, .loop = fp_subsampled_loop, .variants = FP_VARIANTS(stem),              \
     .scalar = (void *)stem##_scalar, .selected = &stem##_selected},
#define FP_SUBSAMPLED_FUNCTIONS(F)          \
    F(subsampled_gaussian_delta_remove)     \
    F(subsampled_gaussian_delta_add)        \
    F(subsampled_gaussian_log_delta_remove) \
    F(subsampled_gaussian_log_delta_add)

FP_SUBSAMPLED_FUNCTIONS(FP_SUBSAMPLED_SCALAR)

static fp_ufunc fp_gauss_ufuncs[] = {
    FP_GAUSS_FUNCTIONS(FP_UFUNC)
    FP_SUBSAMPLED_FUNCTIONS(FP_SUBSAMPLED_UFUNC)
};

enum { FP_GAUSS_UFUNCS = sizeof fp_gauss_ufuncs / sizeof fp_gauss_ufuncs[0] };

typedef ptrdiff_t (*fp_gauss_bounds_kernel)(const double *const *known, const int *fixed, double *const *out,
                                            ptrdiff_t n);

/* The loop of the curve, or of its logarithm, for this machine. */
static inline fp_gauss_bounds_kernel fp_gauss_bounds_select(int logarithmic)
{
    return logarithmic ? FP_SELECT(gaussian_log_delta_bounds) : FP_SELECT(gaussian_delta_bounds);
}

#endif
