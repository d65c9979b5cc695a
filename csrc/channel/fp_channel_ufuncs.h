/* Generalised ufuncs of channels: arrays (..., i, o) of rows of probabilities, and of priors (..., i). */
#ifndef FP_CHANNEL_UFUNCS_H
#define FP_CHANNEL_UFUNCS_H

#include "channel/fp_channel_quantities.h"
#include "channel/fp_channel_ufunc_solver.h"
#include "common/fp_ufunc.h"

/* bound: none - sums farther from 1 are refused */
#define FP_SUM_TOLERANCE 1e-9
/* bound: none - width of the bracket at which the solver of capacities stops, as that of the function of this name */
#define FP_UFUNC_RTOL 1e-9
#define FP_UFUNC_STEPS 200 /* most steps of Newton's method, as those of that function */

#define FP_LOOPS "channel/fp_channel_ufunc_loops.h"
#include "common/fp_variants.h"

static void fp_channel_loop(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps, void *kernel)
{
    fp_channel_ufunc_loop(args, dimensions, steps, kernel, 1);
}

static void fp_channel_prior_loop(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps, void *kernel)
{
    fp_channel_ufunc_loop(args, dimensions, steps, kernel, 2);
}

static fp_ufunc fp_channel_ufuncs[] = {
    FP_OWN_UFUNC(channel_capacity, 1, 3, "(i,o)->(),(),()", fp_channel_loop),
    FP_OWN_UFUNC(channel_ldp_epsilon, 1, 3, "(i,o)->(),(),()", fp_channel_loop),
    FP_OWN_UFUNC(channel_maximal_leakage, 1, 3, "(i,o)->(),(),()", fp_channel_loop),
    FP_OWN_UFUNC(channel_mutual_information, 2, 3, "(i),(i,o)->(),(),()", fp_channel_prior_loop),
    FP_OWN_UFUNC(channel_bayes_vulnerability, 2, 3, "(i),(i,o)->(),(),()", fp_channel_prior_loop),
};

enum { FP_CHANNEL_UFUNCS = sizeof fp_channel_ufuncs / sizeof fp_channel_ufuncs[0] };

#endif
