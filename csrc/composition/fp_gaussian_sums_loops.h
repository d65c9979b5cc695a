/* Loop of fp_gaussian_sums.h over a block of points; no include guard: included once per instruction set. */
static void FP_NAME(fp_add_coordinate)(ptrdiff_t points, const double *restrict re, const double *restrict im,
                                       const double *restrict sizes, double y, double w2, double n, double b,
                                       double error2, double e, double (*restrict out)[FP_GAUSSIAN_POINTS])
{
    const double move = (b + e * fabs(y)) / (1.0 - e), mass = 1.0 + y + b > 0.0 ? 1.0 + y + b : 0.0;
    _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < points; i++)
    {
        const double v_re = re[i] * y, v_im = im[i] * y, a = 1.0 - v_re, size = sizes[i], moved = size * fabs(y);
        const double of_a = fabs(a), of_im = fabs(v_im), large = of_a > of_im ? of_a : of_im;
        const double r = (of_a > of_im ? of_im : of_a) / large;
        const double log_h = 0.5 * fp_log1p(moved < 0.5 ? v_re * (v_re - 2.0) + v_im * v_im : r * r)
                             + (moved < 0.5 ? 0.0 : fp_log(large));
        const double far = 1.0 / (large * sqrt(1.0 + r * r)), far2 = far * far, along = moved * far;
        const double h_re = a * far2, h_im = v_im * far2; /* 1 / h = (a + i v_im) / |h|^2 */
        const double eta = size * far * move, part = (e + size * b) * far, ratio = 1.0 / (far * fabs(y));
        out[0][i] += n * log_h;
        out[2][i] += w2 * h_re, out[3][i] += w2 * h_im;
        out[4][i] += n * y * h_re, out[5][i] += n * y * h_im;
        out[6][i] += w2 * y * (h_re * h_re - h_im * h_im), out[7][i] += w2 * y * (2.0 * h_re * h_im);
        out[8][i] = ratio < out[8][i] ? ratio : out[8][i];
        out[9][i] += 2.0 * n * y * y * far2 + 8.0 * mass * w2 * far2 * far;
        out[10][i] += w2 * far, out[11][i] += n * eta / (1.0 - eta);
        out[12][i] = eta > out[12][i] ? eta : out[12][i], out[13][i] = part > out[13][i] ? part : out[13][i];
        out[14][i] += error2 * far;
        out[15][i] += n * (fabs(log_h) + along), out[16][i] += w2 * far * (1.0 + along);
    }
}
