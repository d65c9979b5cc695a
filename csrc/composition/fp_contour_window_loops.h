/* Points, cells and tilts of parts of a pair cut by windows; no include guard, included once per instruction set.
 *
 * Notation of fp_contour_windows_solver.h. Eight lanes hold points, so that every instruction set gives the same
 * bits; n is a multiple of eight.
 */
/* bounds: proved - rounding of windows, of angles and of sums over cells, docs/proofs/contour.md, theorem 2.18 */

/* log of the product of Phi((cut_i - x) / width_i), i < below, and of Phi((x - cut_i) / width_i), below <= i < m, with
 * its error. `inexact`: 1 where x is a rounded difference. */
static void FP_NAME(fp_window_logs)(int n, const double *restrict x, int m, int below, const double *cut,
                                    const double *width, double inexact, double *restrict value,
                                    double *restrict error)
{
    for (ptrdiff_t b = 0; b < n; b += FP_LANES) {
        double sum[FP_LANES], wrong[FP_LANES];
        FP_LANE_LOOP(k) sum[k] = wrong[k] = 0.0;
        for (int i = 0; i < m; i++) {
            const double sign = i < below ? 1.0 : -1.0, at = cut[i], inverse = 1.0 / width[i];
            FP_LANE_LOOP(k) {
                const double u = sign * (at - x[b + k]) * inverse, inside = fp_log_ndtr(u);
                const double square = u < 9.0 ? u * u : 0.0, near = -36.0 * inside, far = 22.0 - 4.0 * inside;
                sum[k] += inside;
                wrong[k] += 2.0 + (near < far ? near : far) + 6.0 * square - sum[k]
                            + inexact * (u < 9.0 ? 2.0 * fabs(x[b + k]) * inverse * (fabs(u) + 1.0) : 0.0);
            }
        }
        FP_LANE_LOOP(k) value[b + k] = sum[k], error[b + k] = FP_U * wrong[k];
    }
}

/* l'(x), and for each shift y_s the phase of sum weight_i e^(m_i (x + i y_s - m_i / 2)), given the cosines and sines of
 * m_i y_s; phases of shift s from phi + s stride on. With a = tan(phase / 2) = im / (|sum| + re), b = tan(phase / 4) =
 * a / (1 + sqrt(1 + a^2)) and c = tan(phase / 8) <= tan(2.6 / 8) likewise, the phase is 8 arctan c, a series of which
 * 15 terms leave 2e-16 of it. */
static void FP_NAME(fp_window_angles)(int n, const double *restrict x, int means, const double *mean,
                                      const double *weight, int shifts, const double *cosine, const double *sine,
                                      int stride, double *restrict slope, double *restrict phi)
{
    for (ptrdiff_t b = 0; b < n; b += FP_LANES) {
        double e[FP_MAX_POINTS][FP_LANES], sum[FP_LANES], moment[FP_LANES];
        FP_LANE_LOOP(k) sum[k] = moment[k] = 0.0;
        for (int i = 0; i < means; i++) {
            const double m = mean[i], w = weight[i];
            FP_LANE_LOOP(k) {
                const double part = w * fp_exp(m * (x[b + k] - 0.5 * m));
                e[i][k] = part, sum[k] += part, moment[k] += m * part;
            }
        }
        FP_LANE_LOOP(k) slope[b + k] = moment[k] / sum[k];
        for (int s = 0; s < shifts; s++) {
            double re[FP_LANES], im[FP_LANES];
            FP_LANE_LOOP(k) re[k] = im[k] = 0.0;
            for (int i = 0; i < means; i++) {
                const double u = cosine[s * FP_MAX_POINTS + i], v = sine[s * FP_MAX_POINTS + i];
                FP_LANE_LOOP(k) re[k] += e[i][k] * u, im[k] += e[i][k] * v;
            }
            FP_LANE_LOOP(k) {
                const double tangent = im[k] / (sqrt(re[k] * re[k] + im[k] * im[k]) + re[k]);
                const double half = tangent / (1.0 + sqrt(1.0 + tangent * tangent));
                const double c = half / (1.0 + sqrt(1.0 + half * half)), z = -(c * c);
                double series = 1.0 / 29.0;
                series = series * z + 1.0 / 27.0, series = series * z + 1.0 / 25.0;
                series = series * z + 1.0 / 23.0, series = series * z + 1.0 / 21.0;
                series = series * z + 1.0 / 19.0, series = series * z + 1.0 / 17.0;
                series = series * z + 1.0 / 15.0, series = series * z + 1.0 / 13.0;
                series = series * z + 1.0 / 11.0, series = series * z + 1.0 / 9.0;
                series = series * z + 1.0 / 7.0, series = series * z + 1.0 / 5.0;
                series = series * z + 1.0 / 3.0, series = series * z + 1.0;
                phi[s * stride + b + k] = 8.0 * c * series;
            }
        }
    }
}

/* Add to `grown` log of the lesser bound of |Phi(u + i y / width)| / Phi(u) on cells [x_j, x_j + size]. */
static void FP_NAME(fp_window_growth)(int n, const double *restrict x, double size, int m, int below,
                                      const double *cut, const double *width, double y, double *restrict grown)
{
    for (ptrdiff_t b = 0; b < n; b += FP_LANES) {
        double sum[FP_LANES];
        FP_LANE_LOOP(k) sum[k] = 0.0;
        for (int i = 0; i < m; i++) {
            const double sign = i < below ? 1.0 : -1.0, at = i < below ? cut[i] - size : cut[i];
            const double inverse = 1.0 / width[i], eta = y * inverse, most = 0.5 * eta * eta;
            FP_LANE_LOOP(k) {
                const double inside = sign * (at - x[b + k]) * inverse, near = most - 0.5 * inside * inside;
                const double small = 0.8 * eta * fp_exp(near) + 1e-20;
                sum[k] += inside > 0.0 && small < most ? small : most;
            }
        }
        FP_LANE_LOOP(k) grown[b + k] = sum[k];
    }
}

/* log of the sum of e^(cell_j + factor phi_j + grown_j) */
static double FP_NAME(fp_window_log_sum)(int n, const double *restrict cell, const double *restrict phi,
                                         const double *restrict grown, double factor)
{
    double top[FP_LANES], sum[FP_LANES], most = -1e300;
    FP_LANE_LOOP(k) top[k] = -1e300, sum[k] = 0.0;
    for (ptrdiff_t b = 0; b < n; b += FP_LANES)
        FP_LANE_LOOP(k) {
            const double e = cell[b + k] + factor * phi[b + k] + grown[b + k];
            top[k] = e > top[k] ? e : top[k];
        }
    for (int k = 0; k < FP_LANES; k++)
        most = fp_max(most, top[k]);
    for (ptrdiff_t b = 0; b < n; b += FP_LANES)
        FP_LANE_LOOP(k) sum[k] += fp_exp(cell[b + k] + factor * phi[b + k] + grown[b + k] - most);
    return most + fp_log(fp_lane_sum(sum));
}

/* out_j = e^min(cell_j + grown_j - factor phi_j + lift, 600); their sum is returned. */
static double FP_NAME(fp_window_path)(int n, const double *restrict cell, const double *restrict phi,
                                      const double *restrict grown, double factor, double lift, double *restrict out)
{
    double sum[FP_LANES];
    FP_LANE_LOOP(k) sum[k] = 0.0;
    for (ptrdiff_t b = 0; b < n; b += FP_LANES)
        FP_LANE_LOOP(k) {
            const double e = cell[b + k] + grown[b + k] - factor * phi[b + k] + lift;
            out[b + k] = fp_exp(e < 600.0 ? e : 600.0), sum[k] += out[b + k];
        }
    return fp_lane_sum(sum);
}

/* The sum of a_j b_j over any number of j */
static double FP_NAME(fp_window_dot)(int n, const double *restrict a, const double *restrict b)
{
    double sum[FP_LANES], rest = 0.0;
    const ptrdiff_t whole = n / FP_LANES * FP_LANES;
    FP_LANE_LOOP(k) sum[k] = 0.0;
    for (ptrdiff_t j = 0; j < whole; j += FP_LANES)
        FP_LANE_LOOP(k) sum[k] += a[j + k] * b[j + k];
    for (ptrdiff_t j = whole; j < n; j++)
        rest += a[j] * b[j];
    return fp_lane_sum(sum) + rest;
}

/* out: the largest log_p + t loss; and with e^(that of j - largest) as weights the sums of 1, loss and loss^2 */
static void FP_NAME(fp_window_tilted)(int n, const double *restrict log_p, const double *restrict loss, double t,
                                      double *restrict out)
{
    double top[FP_LANES], total[FP_LANES], moment[FP_LANES], square[FP_LANES], most = -INFINITY;
    FP_LANE_LOOP(k) top[k] = -INFINITY, total[k] = moment[k] = square[k] = 0.0;
    for (ptrdiff_t b = 0; b < n; b += FP_LANES)
        FP_LANE_LOOP(k) {
            const double e = log_p[b + k] + t * loss[b + k];
            top[k] = e > top[k] ? e : top[k];
        }
    for (int k = 0; k < FP_LANES; k++)
        most = fp_max(most, top[k]);
    for (ptrdiff_t b = 0; b < n; b += FP_LANES)
        FP_LANE_LOOP(k) {
            const double l = loss[b + k], g = fp_exp(log_p[b + k] + t * l - most);
            total[k] += g, moment[k] += g * l, square[k] += g * (l * l);
        }
    out[0] = most, out[1] = fp_lane_sum(total), out[2] = fp_lane_sum(moment), out[3] = fp_lane_sum(square);
}

