/* The loop of a generalised ufunc of channels: a few channels are copied side by side and given to a kernel. */
#ifndef FP_CHANNEL_UFUNC_SOLVER_H
#define FP_CHANNEL_UFUNC_SOLVER_H

#include <stdlib.h>

#include "channel/fp_channel_quantities.h"
#include "common/fp_ufunc.h"

#define FP_UFUNC_CHANNELS 64 /* small channels that are copied and computed together */
#define FP_UFUNC_CELLS 8192 /* their cells, at most: they stay in the cache */

typedef void fp_channel_ufunc_kernel(ptrdiff_t count, ptrdiff_t n, ptrdiff_t m, double *cells, const double *priors,
                                     double *workspace, double *out);

static void fp_channel_copy(ptrdiff_t n, ptrdiff_t m, const char *from, ptrdiff_t row, ptrdiff_t column, double *to)
{
    const ptrdiff_t width = sizeof(double);
    if (column == width && (n == 1 || row == m * width)) {
        memcpy(to, from, (size_t)(n * m) * sizeof(double));
        return;
    }
    for (ptrdiff_t d = 0; d < n; d++)
        for (ptrdiff_t w = 0; w < m; w++)
            to[d * m + w] = *(const double *)(from + d * row + w * column);
}

/* A few channels after another. `inputs` is 1 for a channel alone, 2 for a prior before it. */
static void fp_channel_ufunc_loop(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps, void *kernel,
                                  int inputs)
{
    const ptrdiff_t n = dimensions[1], m = dimensions[2], *core = steps + inputs + 3;
    const fp_flags held = fp_flags_save();
    ptrdiff_t most = n && m ? FP_UFUNC_CELLS / (n * m) : 1;
    most = most < 1 ? 1 : most > FP_UFUNC_CHANNELS ? FP_UFUNC_CHANNELS : most;
    const size_t size = fp_channel_workspace(n, m) + (size_t)(2 * n + most * (n * m + 4 * n + m + 5));
    double *space = n && m ? malloc(size * sizeof *space) : NULL;
    double *cells = space, *priors = cells + most * n * m, *workspace = priors + most * n;
    double out[3 * FP_UFUNC_CHANNELS];
    for (ptrdiff_t start = 0; start < dimensions[0]; start += most) {
        const ptrdiff_t count = dimensions[0] - start < most ? dimensions[0] - start : most;
        for (ptrdiff_t k = 0; k < count; k++) {
            const ptrdiff_t at = start + k;
            out[3 * k] = out[3 * k + 1] = out[3 * k + 2] = NAN;
            if (space && inputs == 2)
                fp_channel_copy(1, n, args[0] + at * steps[0], 0, core[0], priors + k * n);
            if (space)
                fp_channel_copy(n, m, args[inputs - 1] + at * steps[inputs - 1], core[inputs - 1], core[inputs],
                                cells + k * n * m);
        }
        if (space)
            ((fp_channel_ufunc_kernel *)kernel)(count, n, m, cells, inputs == 2 ? priors : NULL, workspace, out);
        for (ptrdiff_t k = 0; k < count; k++)
            for (int x = 0; x < 3; x++)
                *(double *)(args[inputs + x] + (start + k) * steps[inputs + x]) = out[3 * k + x];
    }
    free(space);
    fp_flags_restore(held);
}

#endif
