/* The table of the ufuncs of the sphere, with every instruction set's loops. */
#ifndef FP_SPHERE_ROOM_H
#define FP_SPHERE_ROOM_H

#include "fp_sphere.h"
#include "fp_ufunc.h"

#define FP_LOOPS "fp_sphere_ufunc_loops.h"
#include "fp_variants.h"

static fp_ufunc fp_sphere_ufuncs[] = {
    FP_UFUNC_2(sphere_log_mgf),
    FP_UFUNC_2(sphere_log_mgf_scaled),
    FP_UFUNC_2(sphere_mean),
};

enum { FP_SPHERE_UFUNCS = sizeof fp_sphere_ufuncs / sizeof fp_sphere_ufuncs[0] };

#endif
