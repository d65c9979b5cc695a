/* The table of the ufuncs of mutual-information privacy, with every instruction set's loops. */
#ifndef FP_LMIP_UFUNCS_H
#define FP_LMIP_UFUNCS_H

#include "lmip/fp_lmip_ldp.h"
#include "lmip/fp_lmip_lip.h"
#include "common/fp_ufunc.h"

#define FP_LOOPS "lmip/fp_lmip_solver.h"
#include "common/fp_variants.h"

#define FP_LMIP_FUNCTIONS(F)     \
    F(2, ci_lmip_ldp_delta)      \
    F(2, ci_lmip_ldp_high)       \
    F(2, ci_lmip_ldp_log_low)    \
    F(1, ci_lmip_ldp_saturation) \
    F(2, pointwise_lip_delta)    \
    F(2, pointwise_lip_high)     \
    F(2, pointwise_lip_log_low)  \
    F(3, cd_lmip_lip_delta)      \
    F(3, cd_lmip_lip_high)       \
    F(3, cd_lmip_lip_log_low)    \
    F(2, cd_lmip_lip_saturation)

FP_LMIP_FUNCTIONS(FP_SCALAR)

static fp_ufunc fp_lmip_ufuncs[] = {
    FP_LMIP_FUNCTIONS(FP_UFUNC)
};

enum { FP_LMIP_UFUNCS = sizeof fp_lmip_ufuncs / sizeof fp_lmip_ufuncs[0] };

#endif
