/* The capacity under a peak-power constraint: the choice of instruction set, and the table of its ufunc. */
#ifndef FP_AWGN_UFUNCS_H
#define FP_AWGN_UFUNCS_H

#include "awgn/fp_awgn.h"
#include "common/fp_ufunc.h"

#define FP_LOOPS "awgn/fp_awgn_capacity_loops.h"
#include "common/fp_variants.h"

typedef void fp_awgn_capacity_kernel(double, double, double, const fp_awgn_result *, fp_awgn_result *);
typedef void fp_awgn_closed_form_kernel(double, double, double, fp_awgn_result *);
typedef void fp_awgn_one_sphere_kernel(double, const double *, ptrdiff_t, double, double *);

typedef struct {
    fp_awgn_capacity_kernel *capacity;
    fp_awgn_closed_form_kernel *closed_form;
    fp_awgn_one_sphere_kernel *one_sphere;
} fp_awgn_kernels;

static inline fp_awgn_kernels fp_awgn_select(void)
{
    return (fp_awgn_kernels){FP_SELECT(fp_awgn_capacity), FP_SELECT(fp_awgn_closed_form),
                             FP_SELECT(fp_awgn_one_sphere)};
}

FP_BOUNDED_SCALAR(awgn_capacity)

static fp_ufunc fp_awgn_ufuncs[] = {FP_BOUNDED_SLOW_UFUNC(awgn_capacity)};

enum { FP_AWGN_UFUNCS = sizeof fp_awgn_ufuncs / sizeof fp_awgn_ufuncs[0] };

#endif
