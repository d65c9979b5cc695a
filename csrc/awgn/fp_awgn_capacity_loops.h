/* Loops over settings of the capacity; no include guard: common/fp_variants.h includes this once per instruction set. */
#include "awgn/fp_awgn_solver.h"

/* n radii in one dimension, as far as one sphere suffices: rows of value, lower, upper, slope, evaluations; the
 * lower bound is negative where more spheres are needed. */
static void FP_NAME(fp_awgn_one_sphere)(double dimension, const double *radius, ptrdiff_t n, double rtol, double *rows)
{
    fp_awgn_result out;
    fp_awgn a;
    for (ptrdiff_t k = 0; k < n; k++, rows += 5) {
        FP_NAME(fp_awgn_init)(&a, dimension, radius[k], rtol);
        const int enough = FP_NAME(fp_awgn_try_one_sphere)(&a, &out);
        rows[0] = out.value;
        rows[1] = enough ? out.lower : -1.0;
        rows[2] = out.upper;
        rows[3] = out.slope;
        rows[4] = (double)a.evaluations;
    }
}

/* Settings of dimension, radius and rtol, at the given strides in bytes */
static void FP_NAME(awgn_capacity)(char **args, ptrdiff_t count, const ptrdiff_t *steps)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        double found[3];
        FP_NAME(fp_awgn_bounds)(*(const double *)(args[0] + i * steps[0]), *(const double *)(args[1] + i * steps[1]),
                                *(const double *)(args[2] + i * steps[2]), found);
        for (int k = 0; k < 3; k++)
            *(double *)(args[3 + k] + i * steps[3 + k]) = found[k];
    }
}
