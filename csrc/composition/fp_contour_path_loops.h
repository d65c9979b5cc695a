/* Bounds of moments on shifted paths, for a pair of one standard deviation; no include guard, included once per
 * instruction set.
 *
 * Notation of fp_contour_one_sigma.h. Eight lanes hold points, so that every instruction set gives the same bits.
 */
/* bounds: proved - bounds of angles, and what a cell adds to the value in its middle: theorem 2.19 of
 * docs/proofs/contour.md */

/* Of the mixture at x + i y but for a factor: log |sum|, the sum but for a positive factor, its mean of means, and the
 * variance of the means under the weights at x, rounded up, and `share`, that of the sum of sizes but for the base. */
FP_INLINE void FP_NAME(fp_contour_path_sums)(const fp_path_mixture *mixture, const double *restrict x,
                                             double *restrict log_size, double *restrict re, double *restrict im,
                                             double *restrict mean_re, double *restrict mean_im,
                                             double *restrict variance, double *restrict share)
{
    const double base = mixture->base;
    if (mixture->n == 1 && base == 0.0) {
        const double c = mixture->c[0], u = mixture->cosine[0], v = mixture->sine[0], log_w = mixture->log_w[0];
        FP_LANE_LOOP(k) {
            log_size[k] = log_w + c * (x[k] - mixture->middle[0]), re[k] = u, im[k] = v;
            mean_re[k] = c, mean_im[k] = variance[k] = 0.0, share[k] = 1.0;
        }
        return;
    }
    double top[FP_LANES], one_re[FP_LANES], one_im[FP_LANES], size[FP_LANES], moment[FP_LANES], square[FP_LANES];
    FP_LANE_LOOP(k) {
        top[k] = base > 0.0 ? 0.0 : -INFINITY;
        re[k] = im[k] = one_re[k] = one_im[k] = size[k] = moment[k] = square[k] = 0.0;
    }
    for (int j = 0; j < mixture->n; j++)
        FP_LANE_LOOP(k) {
            const double e = mixture->log_w[j] + mixture->c[j] * (x[k] - mixture->middle[j]);
            top[k] = e > top[k] ? e : top[k];
        }
    for (int j = 0; j < mixture->n; j++) {
        const double c = mixture->c[j], middle = mixture->middle[j], log_w = mixture->log_w[j];
        const double u = mixture->cosine[j], v = mixture->sine[j];
        FP_LANE_LOOP(k) {
            const double e = fp_exp(log_w + c * (x[k] - middle) - top[k]), a = e * u, b = e * v, f = c * e;
            re[k] += a, im[k] += b, one_re[k] += c * a, one_im[k] += c * b;
            size[k] += e, moment[k] += f, square[k] += c * f;
        }
    }
    FP_LANE_LOOP(k) {
        const double low = base * fp_exp(-top[k]), small = 2.0 * re[k] + (re[k] * re[k] + im[k] * im[k]);
        const double sum = re[k] + low, length = sum * sum + im[k] * im[k], inverse = 1.0 / length;
        const int near = low == 1.0 && small > -0.5;
        log_size[k] = near ? 0.5 * fp_log1p(near ? small : 0.0) : top[k] + 0.5 * fp_log(length);
        const double mean = moment[k] / (size[k] + low);
        mean_re[k] = (one_re[k] * sum + one_im[k] * im[k]) * inverse;
        mean_im[k] = (one_im[k] * sum - one_re[k] * im[k]) * inverse;
        variance[k] = square[k] / (size[k] + low) * (1.0 + 1e-13) - mean * mean;
        re[k] = sum, share[k] = size[k] / (size[k] + low);
    }
}

/* Add to total[b + i] the bound of the integral over the cell at x = first + b FP_BUMP_SPACING, b < n, times fall[i],
 * i < 2 FP_BUMP_SPAN + 1; return the sum of the bounds. With R = T conj(S), T = p, S = q at the cell but for a
 * positive factor, Im l = arg R is four times the arctangent of v = tan(arg R / 4), which is more than 3 v / (1 + 2
 * sqrt(1 + v^2)) (Shafer 1966); sinh(r) / r <= e^(r^2/6). */
static double FP_NAME(fp_contour_path)(const fp_path *path, double first, int n, const double *restrict fall,
                                       double *restrict total)
{
    const double t = path->t, w = path->w, width = path->width, slip = path->slip;
    const double p_growth = path->growth * (1.0 + t + w), q_growth = path->growth * (fabs(t) + w);
    const double relative = path->q.base > 0.0 ? 0.0 : 1.0; /* of q's means and log size to those of p */
    double whole = 0.0;
    for (ptrdiff_t b = 0; b < n; b += FP_LANES) {
        double x[FP_LANES], log_p[FP_LANES], log_q[FP_LANES], t_re[FP_LANES], t_im[FP_LANES], s_re[FP_LANES];
        double s_im[FP_LANES], p_re[FP_LANES], p_im[FP_LANES], q_re[FP_LANES], q_im[FP_LANES], p_spread[FP_LANES];
        double q_spread[FP_LANES], integral[FP_LANES], p_share[FP_LANES], q_share[FP_LANES];
        FP_LANE_LOOP(k)
            x[k] = first + (double)(b + k) * FP_BUMP_SPACING;
        FP_NAME(fp_contour_path_sums)(&path->p, x, log_p, t_re, t_im, p_re, p_im, p_spread, p_share);
        FP_NAME(fp_contour_path_sums)(&path->q, x, log_q, s_re, s_im, q_re, q_im, q_spread, q_share);
        FP_LANE_LOOP(k) {
            const double loss = relative * log_p[k] - log_q[k];
            const double rounding = slip * (fabs(t * loss) + 2.0 * (fabs(t) + w) * q_share[k]);
            const double size = (log_p[k] - 0.5 * x[k] * x[k]) + path->lift + (t * loss + rounding);
            const double re = t_re[k] * s_re[k] + t_im[k] * s_im[k], im = t_im[k] * s_re[k] - t_re[k] * s_im[k];
            const double half = fp_max(0.0, im) / (sqrt(re * re + im * im) + re),
                v = half / (1.0 + sqrt(1.0 + half * half));
            const double argument = 12.0 * v / (1.0 + 2.0 * sqrt(1.0 + v * v)) * (1.0 - 1e-14 - slip);
            const double slope = -x[k] + p_re[k] + t * (relative * p_re[k] - q_re[k]) - w * (p_im[k] - q_im[k]);
            const double reach = 0.5 * fabs(slope) * width, grown = reach < 6.0 ? reach * reach * (1.0 / 6.0) : reach;
            const double bend = p_growth * p_spread[k] + q_growth * q_spread[k] - 1.0;
            const double bent = fp_max(0.0, bend) * (0.125 * width * width);
            integral[k] = FP_BUMP_HEIGHT * width * fp_exp(fp_min(700.0, size - w * argument + grown + bent));
        }
        for (int k = 0; k < FP_LANES; k++) {
            whole += integral[k];
            for (ptrdiff_t i = 0; i <= 2 * FP_BUMP_SPAN; i++)
                total[b + k + i] += integral[k] * fall[i];
        }
    }
    return whole;
}

/* log p (but for log sqrt(2 pi)) and the loss less its maximum, -log(1 + sum), with bounds of their errors at x =
 * (first + i) step, i < n, n a multiple of eight. The products are exact; means err by 2 u of themselves. */
static void FP_NAME(fp_bounded_nodes)(const fp_bounded_loss *others, double first, double step, int n,
                                      double *restrict log_p, double *restrict loss, double *restrict log_p_error,
                                      double *restrict loss_error)
{
    const double count = others->n + 5.0;
    for (ptrdiff_t b = 0; b < n; b += FP_LANES) {
        double x[FP_LANES], top[FP_LANES], sum[FP_LANES], error[FP_LANES];
        FP_LANE_LOOP(k)
            x[k] = (first + (double)(b + k)) * step, top[k] = sum[k] = error[k] = 0.0;
        for (int j = 0; j < others->n; j++)
            FP_LANE_LOOP(k) {
                const double e = others->gap[j] * (x[k] - others->middle[j]) - FP_LARGEST_EXPONENT;
                top[k] = e > top[k] ? e : top[k];
            }
        for (int j = 0; j < others->n; j++) {
            const double gap = others->gap[j], middle = others->middle[j], ratio = others->ratio[j], size = others->size[j];
            FP_LANE_LOOP(k) {
                const double away = x[k] - middle, e = ratio * fp_exp(gap * away - top[k]);
                sum[k] += e, error[k] += e * (size * (6.0 * fabs(away) + 2.0 * size) + count);
            }
        }
        FP_LANE_LOOP(k) {
            const double away = x[k] - others->c, square = 0.5 * away * away, beyond = sum[k] + fp_exp(-top[k]);
            const int far = top[k] > 0.0;
            const double near = fp_log1p(sum[k]), value = far ? top[k] + fp_log(far ? beyond : 1.0) : near;
            const double relative = error[k] / (far ? beyond : 1.0 + sum[k]);
            log_p[b + k] = others->log_w - square, loss[b + k] = -value;
            log_p_error[b + k] = FP_U * (3.0 * fabs(others->log_w) + 5.0 * square + 4.0 * fabs(others->c * away));
            loss_error[b + k] = FP_U * (1.01 * relative + 6.0 * value);
        }
    }
}

/* log |sum| of a mixture at x, without base and at height 0, and a bound of its error */
FP_INLINE void FP_NAME(fp_far_log_sum)(const fp_path_mixture *mixture, const double *restrict x,
                                       double *restrict log_sum, double *restrict wrong)
{
    const double count = mixture->n + 3.0;
    double top[FP_LANES], sum[FP_LANES], error[FP_LANES];
    FP_LANE_LOOP(k)
        top[k] = -INFINITY, sum[k] = error[k] = 0.0;
    for (int j = 0; j < mixture->n; j++)
        FP_LANE_LOOP(k) {
            const double e = mixture->log_w[j] + mixture->c[j] * (x[k] - mixture->middle[j]);
            top[k] = e > top[k] ? e : top[k];
        }
    for (int j = 0; j < mixture->n; j++) {
        const double c = mixture->c[j], size = fabs(c), log_w = mixture->log_w[j];
        FP_LANE_LOOP(k) {
            const double away = x[k] - mixture->middle[j], part = log_w + c * away, e = fp_exp(part - top[k]);
            sum[k] += e;
            error[k] += e * (count + 2.0 * fabs(log_w) + size * (5.0 * fabs(away) + 2.0 * size) + fabs(part)
                             + fabs(part - top[k]));
        }
    }
    FP_LANE_LOOP(k) {
        log_sum[k] = top[k] + fp_log(sum[k]);
        wrong[k] = 1.01 * (error[k] / sum[k] + 3.0 * fabs(top[k]) + 3.0 * fabs(log_sum[k]));
    }
}

/* As fp_one_sigma_nodes, where ratios of components may not be numbers of double precision: log p and the loss */
static void FP_NAME(fp_far_nodes)(const fp_path *path, double first, double step, int n, double *restrict log_p,
                                  double *restrict loss, double *restrict log_p_error, double *restrict loss_error)
{
    for (ptrdiff_t b = 0; b < n; b += FP_LANES) {
        double x[FP_LANES], p[FP_LANES], q[FP_LANES], p_wrong[FP_LANES], q_wrong[FP_LANES];
        FP_LANE_LOOP(k)
            x[k] = (first + (double)(b + k)) * step;
        FP_NAME(fp_far_log_sum)(&path->p, x, p, p_wrong);
        FP_NAME(fp_far_log_sum)(&path->q, x, q, q_wrong);
        FP_LANE_LOOP(k) {
            const double square = 0.5 * x[k] * x[k];
            log_p[b + k] = p[k] - square, loss[b + k] = p[k] - q[k];
            log_p_error[b + k] = FP_U * (p_wrong[k] + 2.0 * square + fabs(log_p[b + k]));
            loss_error[b + k] = FP_U * (p_wrong[k] + q_wrong[k] + fabs(loss[b + k]));
        }
    }
}

