/* Sums over nodes of a tilted privacy loss, and over frequencies of a contour; no include guard, included once per
 * instruction set.
 *
 * Notation of fp_contour_factor_solver.h and fp_contour_solver.h. Eight lanes hold nodes, in blocks of
 * FP_CONTOUR_BLOCK whose sums are added, so that every instruction set gives the same bits.
 */

/* e^(2 i y) - 1 = -2 sin^2 y + 2 i sin y cos y, both of period pi in y; 0 where y is too large for fp_sin_cos_mod_pi */
FP_INLINE void FP_NAME(fp_turn_less_one)(double y, double *re, double *im)
{
    double s, c;
    fp_sin_cos_mod_pi(fabs(y) < FP_LARGEST_ANGLE ? y : 0.0, &s, &c);
    *re = -2.0 * (s * s), *im = 2.0 * (s * c);
}

/* sin x - x */
FP_INLINE double FP_NAME(fp_sine_excess)(double x, double sine)
{
    const double z = x * x;
    double c = -1.0 / 355687428096000.0;
    c = c * z + 1.0 / 1307674368000.0, c = c * z - 1.0 / 6227020800.0, c = c * z + 1.0 / 39916800.0;
    c = c * z - 1.0 / 362880.0, c = c * z + 1.0 / 5040.0, c = c * z - 1.0 / 120.0, c = c * z + 1.0 / 6.0;
    return z < 1.0 ? -x * z * c : sine - x;
}

/* m(w) - 1 = sum g_j (e^(i w l_j) - 1), and `excess` = sum g_j (sin w l_j - w l_j), for each of `count` <=
 * FP_CONTOUR_AT_ONCE frequencies (first + i) step; n is a multiple of eight. d = e^(i w l) - 1 becomes d + r + d r with
 * r = e^(i step l) - 1 at the next frequency, and is taken anew at every FP_CONTOUR_TURNS-th; b = Im d - w l becomes
 * b + (Im r - step l) + Im d r. */
static void FP_NAME(fp_contour_sums)(int n, const double *restrict g, const double *restrict l, double first,
                                     double step, int count, double *restrict re, double *restrict im,
                                     double *restrict excess)
{
    double total_re[FP_CONTOUR_AT_ONCE][FP_LANES], total_im[FP_CONTOUR_AT_ONCE][FP_LANES];
    double total_excess[FP_CONTOUR_AT_ONCE][FP_LANES];
    for (int i = 0; i < count; i++)
        FP_LANE_LOOP(k) total_re[i][k] = total_im[i][k] = total_excess[i][k] = 0.0;
    for (int start = 0; start < n; start += FP_CONTOUR_BLOCK) {
        const int size = start + FP_CONTOUR_BLOCK < n ? FP_CONTOUR_BLOCK : n - start;
        const double *weight = g + start, *loss = l + start;
        double d_re[FP_CONTOUR_BLOCK], d_im[FP_CONTOUR_BLOCK], r_re[FP_CONTOUR_BLOCK], r_im[FP_CONTOUR_BLOCK];
        double d_less[FP_CONTOUR_BLOCK], r_less[FP_CONTOUR_BLOCK];
        for (ptrdiff_t b = 0; b < size; b += FP_LANES)
            FP_LANE_LOOP(k) {
                FP_NAME(fp_turn_less_one)(0.5 * step * loss[b + k], &r_re[b + k], &r_im[b + k]);
                r_less[b + k] = FP_NAME(fp_sine_excess)(step * loss[b + k], r_im[b + k]);
            }
        for (int i = 0; i < count; i++) {
            if (i % FP_CONTOUR_TURNS == 0) {
                const double half = 0.5 * ((first + i) * step);
                for (ptrdiff_t b = 0; b < size; b += FP_LANES)
                    FP_LANE_LOOP(k) {
                        FP_NAME(fp_turn_less_one)(half * loss[b + k], &d_re[b + k], &d_im[b + k]);
                        d_less[b + k] = FP_NAME(fp_sine_excess)(2.0 * half * loss[b + k], d_im[b + k]);
                    }
            } else {
                for (ptrdiff_t b = 0; b < size; b += FP_LANES)
                    FP_LANE_LOOP(k) {
                        const double a = d_re[b + k], c = d_im[b + k], x = r_re[b + k], y = r_im[b + k];
                        const double cross = a * y + c * x;
                        d_re[b + k] = a + (x + (a * x - c * y)), d_im[b + k] = c + (y + cross);
                        d_less[b + k] += r_less[b + k] + cross;
                    }
            }
            double sum_re[FP_LANES], sum_im[FP_LANES], sum_less[FP_LANES];
            FP_LANE_LOOP(k) sum_re[k] = sum_im[k] = sum_less[k] = 0.0;
            for (ptrdiff_t b = 0; b < size; b += FP_LANES)
                FP_LANE_LOOP(k) {
                    sum_re[k] += weight[b + k] * d_re[b + k];
                    sum_im[k] += weight[b + k] * d_im[b + k];
                    sum_less[k] += weight[b + k] * d_less[b + k];
                }
            FP_LANE_LOOP(k) {
                total_re[i][k] += sum_re[k], total_im[i][k] += sum_im[k], total_excess[i][k] += sum_less[k];
            }
        }
    }
    for (int i = 0; i < count; i++)
        re[i] = fp_lane_sum(total_re[i]), im[i] = fp_lane_sum(total_im[i]), excess[i] = fp_lane_sum(total_excess[i]);
}

/* The sum over j < n of size_j cos(angle_j - base - j turn); n is a multiple of eight. */
static double FP_NAME(fp_contour_cosines)(int n, const double *restrict size, const double *restrict angle, double base,
                                          double turn)
{
    double sum[FP_LANES], place[FP_LANES]; /* not converted from integers, which few instruction sets do in lanes */
    FP_LANE_LOOP(k) sum[k] = 0.0, place[k] = (double)k;
    for (ptrdiff_t b = 0; b < n; b += FP_LANES)
        FP_LANE_LOOP(k) {
            double s, c;
            fp_sin_cos_mod_pi(0.5 * (angle[b + k] - base - place[k] * turn), &s, &c);
            sum[k] += size[b + k] * (1.0 - 2.0 * (s * s)), place[k] += FP_LANES;
        }
    return fp_lane_sum(sum);
}

