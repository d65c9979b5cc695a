/* The loops of fp_sphere.h; no include guard: common/fp_variants.h includes this once per instruction set. */
FP_INLINE void FP_NAME(fp_sphere_loop)(const fp_sphere *s, const double *x, double *log_g, double *scaled_log,
                                       double *slope, ptrdiff_t n, const int kind)
{
    const fp_sphere held = *s; /* a copy that no output can overlap */
#pragma GCC ivdep
    for (ptrdiff_t i = 0; i < n; i++)
        fp_sphere_log_of(&held, x[i], &log_g[i], &scaled_log[i], &slope[i], kind);
}

/* log G_d(x[i]), log G_d(x[i]) - x[i] and the slope; the outputs overlap neither one another nor x, except exactly */
static void FP_NAME(sphere_log)(const fp_sphere *s, const double *x, double *log_g, double *scaled_log, double *slope,
                                ptrdiff_t n)
{
    if (s->kind == FP_SPHERE_LINE)
        FP_NAME(fp_sphere_loop)(s, x, log_g, scaled_log, slope, n, FP_SPHERE_LINE);
    else if (s->kind == FP_SPHERE_LOW)
        FP_NAME(fp_sphere_loop)(s, x, log_g, scaled_log, slope, n, FP_SPHERE_LOW);
    else if (s->kind == FP_SPHERE_MIDDLE)
        FP_NAME(fp_sphere_loop)(s, x, log_g, scaled_log, slope, n, FP_SPHERE_MIDDLE);
    else if (s->kind == FP_SPHERE_HIGH)
        FP_NAME(fp_sphere_loop)(s, x, log_g, scaled_log, slope, n, FP_SPHERE_HIGH);
    else
        for (ptrdiff_t i = 0; i < n; i++)
            log_g[i] = scaled_log[i] = slope[i] = NAN;
}
