/* The table of the ufuncs of the Gaussian mechanism, with every instruction set's loops. */
#ifndef FP_GAUSS_UFUNCS_H
#define FP_GAUSS_UFUNCS_H

#include "gauss/fp_gauss_inverse.h"
#include "gauss/fp_two_points.h"
#include "common/fp_ufunc.h"

#define FP_LOOPS "gauss/fp_gauss_loops.h"
#include "common/fp_variants.h"

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

static fp_ufunc fp_gauss_ufuncs[] = {
    FP_UFUNC_2(gaussian_delta),
    FP_UFUNC_2(gaussian_log_delta),
    FP_UFUNC_2(gaussian_epsilon),
    FP_UFUNC_2(gaussian_epsilon_from_log_delta),
    FP_UFUNC_2(gaussian_epsilon_below),
    FP_UFUNC_2(gaussian_epsilon_below_from_log_delta),
    FP_UFUNC_2(gaussian_noise),
    FP_UFUNC_2(gaussian_noise_from_log_delta),
    FP_UFUNC_2(gaussian_noise_below),
    FP_UFUNC_2(gaussian_noise_below_from_log_delta),
    FP_OWN_UFUNC(subsampled_gaussian_delta_remove, 3, 3, NULL, fp_subsampled_loop),
    FP_OWN_UFUNC(subsampled_gaussian_delta_add, 3, 3, NULL, fp_subsampled_loop),
    FP_OWN_UFUNC(subsampled_gaussian_log_delta_remove, 3, 3, NULL, fp_subsampled_loop),
    FP_OWN_UFUNC(subsampled_gaussian_log_delta_add, 3, 3, NULL, fp_subsampled_loop),
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
