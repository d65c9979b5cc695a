/* Loops over double-double functions, the test face of common/fp_dd.h.  No include guard: see common/fp_dispatch.h. */

static void FP_NAME(fp_dd_map_v)(int op, const double *ah, const double *al, const double *bh, const double *bl,
                                 double *rh, double *rl, int64_t *k, ptrdiff_t n)
{
#define FP_DD_LOOP(code, expression)                                        \
    case code:                                                              \
        for (ptrdiff_t i = 0; i < n; i++) {                                 \
            fp_dd a = {ah[i], al[i]}, b = {bh[i], bl[i]}, r = (expression); \
            (void)b;                                                        \
            rh[i] = r.hi;                                                   \
            rl[i] = r.lo;                                                   \
        }                                                                   \
        break;
    switch (op) {
        FP_DD_LOOP(FP_DD_ADD, fp_dd_add(a, b))
        FP_DD_LOOP(FP_DD_ADD_D, fp_dd_add_d(a, b.hi))
        FP_DD_LOOP(FP_DD_ADD_SMALL, fp_dd_add_small(a, b))
        FP_DD_LOOP(FP_DD_SUB, fp_dd_sub(a, b))
        FP_DD_LOOP(FP_DD_MUL, fp_dd_mul(a, b))
        FP_DD_LOOP(FP_DD_MUL_D, fp_dd_mul_d(a, b.hi))
        FP_DD_LOOP(FP_DD_DIV, fp_dd_div(a, b))
        FP_DD_LOOP(FP_DD_DIV_D, fp_dd_div_d(a, b.hi))
        FP_DD_LOOP(FP_DD_SQR, fp_dd_sqr(a))
        FP_DD_LOOP(FP_DD_SQRT, fp_dd_sqrt(a))
        FP_DD_LOOP(FP_DD_EXP, fp_dd_exp(a))
        FP_DD_LOOP(FP_DD_EXPM1, fp_dd_expm1(a))
        FP_DD_LOOP(FP_DD_LOG, fp_dd_log(a))
        FP_DD_LOOP(FP_DD_LOG_SCALED, fp_dd_log_scaled(a, (int64_t)b.hi))
        FP_DD_LOOP(FP_DD_LOG1P, fp_dd_log1p(a))
        FP_DD_LOOP(FP_DD_MILLS_RATIO, fp_dd_mills(a))
        FP_DD_LOOP(FP_DD_PHI, fp_dd_phi(a))
        FP_DD_LOOP(FP_DD_TAIL, fp_dd_ndtr_tail(a))
        FP_DD_LOOP(FP_DD_DIFF, fp_dd_ndtr_diff(a, b))
        FP_DD_LOOP(FP_DD_EXP_SCALED, fp_dd_exp_scaled(a, k + i))
        FP_DD_LOOP(FP_DD_PHI_SCALED, fp_dd_phi_scaled(a, k + i))
        FP_DD_LOOP(FP_DD_TAIL_SCALED, fp_dd_ndtr_tail_scaled(a, k + i))
        FP_DD_LOOP(FP_DD_DIFF_SCALED, fp_dd_ndtr_diff_scaled(a, b, k + i))
    }
#undef FP_DD_LOOP
}
