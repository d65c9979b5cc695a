/* The table of the ufuncs of fastpriv.special, with every instruction set's loops. */
#ifndef FP_SPECIAL_H
#define FP_SPECIAL_H

#include "fp_math.h"
#include "fp_ufunc.h"

#define FP_LOOPS "fp_special_loops.h"
#include "fp_variants.h"

static fp_ufunc fp_special_table[] = {
    FP_UFUNC_1(exp),         FP_UFUNC_1(expm1),     FP_UFUNC_1(log),
    FP_UFUNC_1(log1p),       FP_UFUNC_1(erfc),      FP_UFUNC_1(erfcx),
    FP_UFUNC_1(mills_ratio), FP_UFUNC_1(ndtr),      FP_UFUNC_1(log_ndtr),
    FP_UFUNC_1(log1mexp),    FP_UFUNC_2(logaddexp), FP_UFUNC_2(ndtr_difference),
};

enum { FP_SPECIAL_SIZE = sizeof fp_special_table / sizeof fp_special_table[0] };

#endif
