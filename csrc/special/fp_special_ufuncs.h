/* The table of the ufuncs of fastpriv.special, with every instruction set's loops. */
#ifndef FP_SPECIAL_UFUNCS_H
#define FP_SPECIAL_UFUNCS_H

#include "special/fp_math.h"
#include "common/fp_lanes.h"
#include "common/fp_ufunc.h"

typedef double fp_reduction(const char *x, ptrdiff_t n, ptrdiff_t stride);

/* FP_BLOCK terms; those past the end are -inf, which adds nothing to a sum of exponentials */
FP_INLINE void fp_load_padded(double *block, const char *x, ptrdiff_t left, ptrdiff_t stride)
{
    const ptrdiff_t m = left < FP_BLOCK ? left : FP_BLOCK;
    for (ptrdiff_t i = 0; i < m; i++)
        block[i] = *(const double *)(x + i * stride);
    for (ptrdiff_t i = m; i < FP_BLOCK; i++)
        block[i] = -INFINITY;
}

#define FP_SPECIAL_FUNCTIONS(F)                 \
    F(1, exp, fp_exp)                           \
    F(1, expm1, fp_expm1)                       \
    F(1, log, fp_log)                           \
    F(1, log1p, fp_log1p)                       \
    F(1, erfc, fp_erfc)                         \
    F(1, erfcx, fp_erfcx)                       \
    F(1, mills_ratio, fp_mills)                 \
    F(1, ndtr, fp_ndtr)                         \
    F(1, log_ndtr, fp_log_ndtr)                 \
    F(1, log1mexp, fp_log1mexp)                 \
    F(2, logaddexp, fp_logaddexp)               \
    F(2, ndtr_difference, fp_ndtr_diff)         \
    F(2, log_ndtr_difference, fp_log_ndtr_diff)

#define FP_LOOPS "special/fp_special_loops.h"
#include "common/fp_variants.h"

/* (n)->() */
static void fp_reduction_loop(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps, void *reduction)
{
    const fp_flags held = fp_flags_save();
    for (ptrdiff_t i = 0; i < dimensions[0]; i++)
        *(double *)(args[1] + i * steps[1]) =
            ((fp_reduction *)reduction)(args[0] + i * steps[0], dimensions[1], steps[2]);
    fp_flags_restore(held);
}

FP_SPECIAL_FUNCTIONS(FP_SCALAR)

static fp_ufunc fp_special_ufuncs[] = {
    FP_SPECIAL_FUNCTIONS(FP_UFUNC)
    FP_OWN_UFUNC(log_sum_exp, 1, 1, "(n)->()", fp_reduction_loop),
};

enum { FP_SPECIAL_UFUNCS = sizeof fp_special_ufuncs / sizeof fp_special_ufuncs[0] };

#endif
