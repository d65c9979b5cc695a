/* The table of the ufuncs of mutual-information privacy, with every instruction set's loops. */
#ifndef FP_LMIP_UFUNCS_H
#define FP_LMIP_UFUNCS_H

#include "lmip/fp_lmip_ldp.h"
#include "lmip/fp_lmip_lip.h"
#include "common/fp_ufunc.h"

#define FP_LOOPS "lmip/fp_lmip_solver.h"
#include "common/fp_variants.h"

static fp_ufunc fp_lmip_ufuncs[] = {
    FP_UFUNC_2(ci_lmip_ldp_delta),
    FP_UFUNC_2(ci_lmip_ldp_high),
    FP_UFUNC_2(ci_lmip_ldp_log_low),
    FP_UFUNC_1(ci_lmip_ldp_saturation),
    FP_UFUNC_2(pointwise_lip_delta),
    FP_UFUNC_2(pointwise_lip_high),
    FP_UFUNC_2(pointwise_lip_log_low),
    FP_UFUNC_3(cd_lmip_lip_delta),
    FP_UFUNC_3(cd_lmip_lip_high),
    FP_UFUNC_3(cd_lmip_lip_log_low),
    FP_UFUNC_2(cd_lmip_lip_saturation),
};

enum { FP_LMIP_UFUNCS = sizeof fp_lmip_ufuncs / sizeof fp_lmip_ufuncs[0] };

#endif
