/* The ufuncs of fp_sphere.h; no include guard: common/fp_variants.h includes this once per instruction set. */
#include "special/fp_sphere_loops.h"

/* a run of equal dimensions is prepared once */
FP_INLINE void FP_NAME(fp_sphere_runs)(const double *const *in, double *out, ptrdiff_t n, const int which)
{
    const double *dimension = in[0], *x = in[1];
    double results[3][FP_BLOCK];
    fp_sphere s;
    for (ptrdiff_t start = 0, m; start < n; start += m) {
        for (m = 1; m < FP_BLOCK && start + m < n && dimension[start + m] == dimension[start]; m++)
            ;
        if (start == 0 || dimension[start] != s.dimension)
            fp_sphere_prepare(&s, dimension[start]);
        FP_NAME(sphere_log)(&s, x + start, results[0], results[1], results[2], m);
        memcpy(out + start, results[which], m * sizeof *out);
    }
}

static void FP_NAME(sphere_log_mgf)(const double *const *in, double *out, ptrdiff_t n)
{
    FP_NAME(fp_sphere_runs)(in, out, n, 0);
}

static void FP_NAME(sphere_log_mgf_scaled)(const double *const *in, double *out, ptrdiff_t n)
{
    FP_NAME(fp_sphere_runs)(in, out, n, 1);
}

static void FP_NAME(sphere_mean)(const double *const *in, double *out, ptrdiff_t n)
{
    FP_NAME(fp_sphere_runs)(in, out, n, 2);
}
