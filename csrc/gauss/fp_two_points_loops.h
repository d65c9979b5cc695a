/* Loops of fp_two_points.h; no include guard: included once per instruction set.
 *
 * What needs double-doubles is formed first for a block of settings, by a loop of its own where these are usual. */

enum { FP_NAME(FP_TWO_POINTS_BLOCK) = 128 };

typedef struct {
    double r[FP_NAME(FP_TWO_POINTS_BLOCK)], r_low[FP_NAME(FP_TWO_POINTS_BLOCK)];
    double mass[FP_NAME(FP_TWO_POINTS_BLOCK)], mass_low[FP_NAME(FP_TWO_POINTS_BLOCK)];
    double mass_error[FP_NAME(FP_TWO_POINTS_BLOCK)];
    double u[FP_NAME(FP_TWO_POINTS_BLOCK)], u_low[FP_NAME(FP_TWO_POINTS_BLOCK)];
    double u_error[FP_NAME(FP_TWO_POINTS_BLOCK)];
} FP_NAME(fp_two_points_block);

FP_INLINE void FP_NAME(fp_two_points_put)(FP_NAME(fp_two_points_block) * b, ptrdiff_t i, fp_two_points_terms terms)
{
    b->r[i] = terms.r;
    b->r_low[i] = terms.r_low;
    b->mass[i] = terms.mass;
    b->mass_low[i] = terms.mass_low;
    b->mass_error[i] = terms.mass_error;
    b->u[i] = terms.u;
    b->u_low[i] = terms.u_low;
    b->u_error[i] = terms.u_error;
}

static void FP_NAME(fp_two_points_values)(const FP_NAME(fp_two_points_block) * restrict b, ptrdiff_t n,
                                          double *restrict value, double *restrict lower, double *restrict upper)
{
    _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++)
    {
        const fp_two_points_parts h =
            fp_two_points_evaluate(b->r[i], b->r_low[i], b->u[i], b->u_low[i], b->u_error[i]);
        const fp_gauss_bounded found = fp_two_points_value(&h, b->mass[i], b->mass_error[i]);
        value[i] = found.value;
        lower[i] = found.lower;
        upper[i] = found.upper;
    }
}

static void FP_NAME(fp_two_points_logs)(const FP_NAME(fp_two_points_block) * restrict b, ptrdiff_t n,
                                        double *restrict value, double *restrict lower, double *restrict upper)
{
    _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++)
    {
        const fp_two_points_parts h =
            fp_two_points_evaluate(b->r[i], b->r_low[i], b->u[i], b->u_low[i], b->u_error[i]);
        const fp_gauss_bounded found = fp_two_points_log(&h, b->mass[i], b->mass_low[i], b->mass_error[i]);
        value[i] = found.value;
        lower[i] = found.lower;
        upper[i] = found.upper;
    }
}
