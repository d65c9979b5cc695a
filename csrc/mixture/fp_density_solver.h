/* Log densities of many samples, with the memory that a kernel of fp_density.h works in. */
#ifndef FP_DENSITY_SOLVER_H
#define FP_DENSITY_SOLVER_H

#include <stdlib.h>

#include "mixture/fp_density.h"

/* 0, or -1 without memory */
static inline int fp_density_run(fp_density_kernel call, fp_density *p, ptrdiff_t n, const double *x, double *out,
                                 double *info)
{
    const ptrdiff_t room = 3 * FP_MAX_BLOCK * p->d;
    const ptrdiff_t whitened = p->form == FP_FULL && p->row == 0 ? p->k * p->d : 0;
    const size_t bytes = (size_t)(room + whitened + 3 * p->k) * sizeof(double);
    double *work = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!work)
        return -1;
    fp_density_prepare(p, work + room + whitened);
    call(p, n, x, work, out, info);
    free(work);
    return 0;
}

#endif
