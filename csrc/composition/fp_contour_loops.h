/* Sums over nodes of a tilted privacy loss along a contour; no include guard, included once per instruction set.
 *
 * Notation of fp_contour_solver.h. Eight lanes hold nodes, in blocks of FP_CONTOUR_BLOCK whose sums are added, so that
 * every instruction set gives the same bits.
 */
/* bounds: tested by enclosures/test_contour - errors of sines and of sums over nodes */
#define FP_LANE_LOOP(k) _Pragma("GCC unroll 1") for (int k = 0; k < FP_LANES; k++)

/* m(w) - 1 = sum g_j (e^(i w l_j) - 1) for each of `count` frequencies (first + i) step; n is a multiple of eight.
 * With y = w l / 2 the terms are -2 g sin^2 y + 2 i g sin y cos y, both of period pi in y. */
static void FP_NAME(fp_contour_sums)(int n, const double *restrict g, const double *restrict l, double first,
                                     double step, int count, double *restrict re, double *restrict im)
{
    for (int i = 0; i < count; i++) {
        const double half = 0.5 * ((first + i) * step);
        double total_re[FP_LANES], total_im[FP_LANES];
        FP_LANE_LOOP(k) total_re[k] = total_im[k] = 0.0;
        for (int start = 0; start < n; start += FP_CONTOUR_BLOCK) {
            const int stop = start + FP_CONTOUR_BLOCK < n ? start + FP_CONTOUR_BLOCK : n;
            double sum_re[FP_LANES], sum_im[FP_LANES];
            FP_LANE_LOOP(k) sum_re[k] = sum_im[k] = 0.0;
            for (int b = start; b < stop; b += FP_LANES)
                FP_LANE_LOOP(k) {
                    double s, c;
                    fp_sin_cos_mod_pi(half * l[b + k], &s, &c);
                    const double weighted = g[b + k] * s;
                    sum_re[k] += weighted * s, sum_im[k] += weighted * c;
                }
            FP_LANE_LOOP(k) total_re[k] += sum_re[k], total_im[k] += sum_im[k];
        }
        re[i] = -2.0 * fp_lane_sum(total_re), im[i] = 2.0 * fp_lane_sum(total_im);
    }
}

#undef FP_LANE_LOOP
