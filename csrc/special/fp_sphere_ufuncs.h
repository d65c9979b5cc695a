/* The table of the ufuncs of the sphere, with every instruction set's loops. */
#ifndef FP_SPHERE_UFUNCS_H
#define FP_SPHERE_UFUNCS_H

#include "special/fp_sphere.h"
#include "common/fp_ufunc.h"

#define FP_LOOPS "special/fp_sphere_ufunc_loops.h"
#include "common/fp_variants.h"

#define FP_SPHERE_FUNCTIONS(F)  \
    F(2, sphere_log_mgf)        \
    F(2, sphere_log_mgf_scaled) \
    F(2, sphere_mean)

FP_SPHERE_FUNCTIONS(FP_SCALAR)

static fp_ufunc fp_sphere_ufuncs[] = {
    FP_SPHERE_FUNCTIONS(FP_UFUNC)
};

enum { FP_SPHERE_UFUNCS = sizeof fp_sphere_ufuncs / sizeof fp_sphere_ufuncs[0] };

#endif
