/* The test face of the double-doubles: every function over arrays, in every variant (see common/fp_dispatch.h). */
#ifndef FP_DD_FUNCTIONS_H
#define FP_DD_FUNCTIONS_H

#include "special/fp_dd_normal.h"
#include <stddef.h>

enum {
    FP_DD_ADD,
    FP_DD_ADD_D,
    FP_DD_ADD_SMALL,
    FP_DD_SUB,
    FP_DD_MUL,
    FP_DD_MUL_D,
    FP_DD_DIV,
    FP_DD_DIV_D,
    FP_DD_SQR,
    FP_DD_SQRT,
    FP_DD_EXP,
    FP_DD_EXPM1,
    FP_DD_LOG,
    FP_DD_LOG_SCALED,
    FP_DD_LOG1P,
    FP_DD_MILLS_RATIO,
    FP_DD_PHI,
    FP_DD_TAIL,
    FP_DD_DIFF,
    FP_DD_EXP_SCALED,
    FP_DD_PHI_SCALED,
    FP_DD_TAIL_SCALED,
    FP_DD_DIFF_SCALED
};

#define FP_LOOPS "special/fp_dd_loops.h"
#include "common/fp_variants.h"

typedef void (*fp_dd_map)(int, const double *, const double *, const double *, const double *, double *, double *,
                          int64_t *, ptrdiff_t);

static inline fp_dd_map fp_dd_map_for(int isa) { return FP_VARIANT(isa, fp_dd_map_v); }

#endif
