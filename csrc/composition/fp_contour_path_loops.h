/* Bounds of moments on shifted paths, for a pair of one standard deviation; no include guard, included once per
 * instruction set.
 *
 * Notation of fp_contour_one_sigma.h. Eight lanes hold points, so that every instruction set gives the same bits.
 */
/* bounds: tested by enclosures/test_contour - bounds of angles, and what a cell adds to the value in its middle */
#define FP_LANE_LOOP(k) _Pragma("GCC unroll 1") for (ptrdiff_t k = 0; k < FP_LANES; k++)

/* Add to total[b + i] the bound of the integral over the cell at x = first + b FP_BUMP_SPACING, b < n, times fall[i],
 * i < 2 FP_BUMP_SPAN + 1. With R = T conj(S), T = p, S = q at the cell but for a common factor, Im l = arg R is four
 * times
 * the arctangent of v = tan(arg R / 4), which is more than 3 v / (1 + 2 sqrt(1 + v^2)) (Shafer 1966); sinh(r) / r <=
 * e^(r^2/6). */
static void FP_NAME(fp_contour_path)(const fp_one_sigma *g, double t, double w, const double *restrict cosine,
                                     const double *restrict sine, double lift, double first, double width, int n,
                                     const double *restrict fall, double *restrict total)
{
    for (ptrdiff_t b = 0; b < n; b += FP_LANES) {
        double x[FP_LANES], top[FP_LANES], t_re[FP_LANES], t_im[FP_LANES], s_re[FP_LANES], s_im[FP_LANES];
        double t1_re[FP_LANES], t1_im[FP_LANES], s1_re[FP_LANES], s1_im[FP_LANES], integral[FP_LANES];
        FP_LANE_LOOP(k) {
            x[k] = first + (double)(b + k) * FP_BUMP_SPACING, top[k] = 0.0;
        }
        for (int j = 0; j < g->n; j++)
            FP_LANE_LOOP(k) {
                const double e = g->c[j] * (x[k] - 0.5 * g->c[j]);
                top[k] = e > top[k] ? e : top[k];
            }
        FP_LANE_LOOP(k) {
            const double e = fp_exp(-top[k]);
            t_re[k] = g->w_centre * e, s_re[k] = g->v_centre * e, t_im[k] = s_im[k] = 0.0;
            t1_re[k] = t1_im[k] = s1_re[k] = s1_im[k] = 0.0;
        }
        for (int j = 0; j < g->n; j++) {
            const double c = g->c[j], p = g->w[j], q = g->v[j], u = cosine[j], v = sine[j];
            FP_LANE_LOOP(k) {
                const double e = fp_exp(c * (x[k] - 0.5 * c) - top[k]), re = e * u, im = e * v;
                t_re[k] += p * re, t_im[k] += p * im, s_re[k] += q * re, s_im[k] += q * im;
                t1_re[k] += c * p * re, t1_im[k] += c * p * im, s1_re[k] += c * q * re, s1_im[k] += c * q * im;
            }
        }
        FP_LANE_LOOP(k) {
            const double t2 = t_re[k] * t_re[k] + t_im[k] * t_im[k], s2 = s_re[k] * s_re[k] + s_im[k] * s_im[k];
            const double size = (top[k] - 0.5 * x[k] * x[k]) + lift + (0.5 + 0.5 * t) * fp_log(t2)
                - 0.5 * t * fp_log(s2);
            const double re = t_re[k] * s_re[k] + t_im[k] * s_im[k], im = t_im[k] * s_re[k] - t_re[k] * s_im[k];
            const double half = fp_max(0.0, im) / (sqrt(re * re + im * im) + re),
                v = half / (1.0 + sqrt(1.0 + half * half));
            const double argument = 12.0 * v / (1.0 + 2.0 * sqrt(1.0 + v * v)) * (1.0 - 1e-14);
            const double mt_re = (t1_re[k] * t_re[k] + t1_im[k] * t_im[k]) / t2,
                mt_im = (t1_im[k] * t_re[k] - t1_re[k] * t_im[k]) / t2;
            const double ms_re = (s1_re[k] * s_re[k] + s1_im[k] * s_im[k]) / s2,
                ms_im = (s1_im[k] * s_re[k] - s1_re[k] * s_im[k]) / s2;
            const double slope = -x[k] + (1.0 + t) * mt_re - t * ms_re - w * (mt_im - ms_im);
            const double reach = 0.5 * fabs(slope) * width, grown = reach < 6.0 ? reach * reach * (1.0 / 6.0) : reach;
            integral[k] = FP_BUMP_HEIGHT * width * fp_exp(fp_min(700.0, size - w * argument + 0.11 + grown));
        }
        for (int k = 0; k < FP_LANES; k++)
            for (ptrdiff_t i = 0; i <= 2 * FP_BUMP_SPAN; i++)
                total[b + k + i] += integral[k] * fall[i];
    }
}

#undef FP_LANE_LOOP
