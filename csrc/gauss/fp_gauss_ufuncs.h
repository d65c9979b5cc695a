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

#define FP_SUBSAMPLED_FUNCTIONS(F)       \
    F(sampled_gaussian_delta_remove)     \
    F(sampled_gaussian_delta_add)        \
    F(sampled_gaussian_log_delta_remove) \
    F(sampled_gaussian_log_delta_add)    \
    F(sampled_gaussian_epsilon_remove)   \
    F(sampled_gaussian_epsilon_add)      \
    F(sampled_gaussian_noise_remove)     \
    F(sampled_gaussian_noise_add)

FP_SUBSAMPLED_FUNCTIONS(FP_BOUNDED_SCALAR)

static fp_ufunc fp_gauss_ufuncs[] = {
    FP_GAUSS_FUNCTIONS(FP_UFUNC)
    FP_SUBSAMPLED_FUNCTIONS(FP_BOUNDED_UFUNC)
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
