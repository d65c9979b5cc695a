/* Generalised ufuncs of channels: arrays (..., i, o) of rows of probabilities, and of priors (..., i). */
#ifndef FP_CHANNEL_UFUNCS_H
#define FP_CHANNEL_UFUNCS_H

#include "channel/fp_channel_quantities.h"
#include "common/fp_ufunc.h"

/* bound: none - sums farther from 1 are refused */
#define FP_SUM_TOLERANCE 1e-9
/* bound: none - width of the bracket at which the solver of capacities stops, as that of the function of this name */
#define FP_UFUNC_RTOL 1e-9
#define FP_UFUNC_STEPS 200 /* most steps of Newton's method, as those of that function */

#define FP_LOOPS "channel/fp_channel_ufunc_loops.h"
#include "common/fp_variants.h"

typedef void fp_channel_ufunc_kernel(ptrdiff_t n, ptrdiff_t m, double *cells, const double *prior, double *workspace,
                                     double *out);

static void fp_channel_copy(ptrdiff_t n, ptrdiff_t m, const char *from, ptrdiff_t row, ptrdiff_t column, double *to)
{
    for (ptrdiff_t d = 0; d < n; d++)
        for (ptrdiff_t w = 0; w < m; w++)
            to[d * m + w] = *(const double *)(from + d * row + w * column);
}

/* One channel after another. `inputs` is 1 for a channel alone, 2 for a prior before it. */
static void fp_channel_ufunc_loop(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps, void *kernel,
                                  int inputs)
{
    const ptrdiff_t n = dimensions[1], m = dimensions[2], *core = steps + inputs + 3;
    const fp_flags held = fp_flags_save();
    double *space = n && m ? malloc((fp_channel_workspace(n, m) + (size_t)(n * m + 6 * n + m)) * sizeof *space) : NULL;
    double *cells = space, *prior = cells + n * m, *workspace = prior + n, out[3];
    for (ptrdiff_t k = 0; k < dimensions[0]; k++) {
        out[0] = out[1] = out[2] = NAN;
        if (space) {
            if (inputs == 2)
                fp_channel_copy(1, n, args[0] + k * steps[0], 0, core[0], prior);
            fp_channel_copy(n, m, args[inputs - 1] + k * steps[inputs - 1], core[inputs - 1], core[inputs], cells);
            ((fp_channel_ufunc_kernel *)kernel)(n, m, cells, inputs == 2 ? prior : NULL, workspace, out);
        }
        for (int x = 0; x < 3; x++)
            *(double *)(args[inputs + x] + k * steps[inputs + x]) = out[x];
    }
    free(space);
    fp_flags_restore(held);
}

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
