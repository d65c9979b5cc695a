/* Loops of fp_abp.h; no include guard, included once per instruction set. */

static void FP_NAME(fp_abp_posterior_ratios)(ptrdiff_t rows, ptrdiff_t m, const double *t, const double *x,
                                             const double *w, int small, double *ratio_less_one, double *top,
                                             double *mean)
{
    for (ptrdiff_t r = 0; r < rows; r++) {
        double *e = ratio_less_one + r * m, most = -INFINITY, lane[FP_LANES], largest[FP_LANES];
        for (int l = 0; l < FP_LANES; l++)
            lane[l] = 0.0, largest[l] = -INFINITY;
        for (ptrdiff_t j = 0; j < m; j += FP_LANES)
            for (int l = 0; l < FP_LANES; l++) {
                const double tilt = x[j + l] * (t[r] - 0.5 * x[j + l]);
                e[j + l] = tilt;
                largest[l] = tilt > largest[l] ? tilt : largest[l];
            }
        for (int l = 0; l < FP_LANES; l++)
            most = largest[l] > most ? largest[l] : most;
        if (small) {
            for (ptrdiff_t j = 0; j < m; j += FP_LANES)
                for (int l = 0; l < FP_LANES; l++) {
                    e[j + l] = fp_expm1(e[j + l]);
                    lane[l] += w[j + l] * e[j + l];
                }
            const double sum = fp_lane_sum(lane), up = 1.0 / (1.0 + sum);
            for (ptrdiff_t j = 0; j < m; j++)
                e[j] = (e[j] - sum) * up;
            top[r] = 0.0, mean[r] = sum;
        } else {
            for (ptrdiff_t j = 0; j < m; j += FP_LANES)
                for (int l = 0; l < FP_LANES; l++) {
                    e[j + l] = fp_exp(e[j + l] - most);
                    lane[l] += w[j + l] * e[j + l];
                }
            const double sum = fp_lane_sum(lane);
            for (ptrdiff_t j = 0; j < m; j++) {
                const double ratio = e[j] / sum - 1.0;
                e[j] = ratio < FP_LARGEST_RATIO ? ratio : FP_LARGEST_RATIO;
            }
            top[r] = most, mean[r] = sum;
        }
    }
}

static void FP_NAME(fp_abp_weights)(ptrdiff_t rows, ptrdiff_t p, const double *t, const double *a, int form,
                                    double spacing, const double *top, const double *mean, double *true_value)
{
    const double unit = spacing * FP_INV_SQRT_2PI;
    for (ptrdiff_t r = 0; r < rows; r++) {
        double *e = true_value + r * p;
        const double square = 0.5 * t[r] * t[r], shift = form == FP_ABP_GLOBAL ? top[r] : 0.0;
        if (form == FP_ABP_LOCAL) {
            for (ptrdiff_t i = 0; i < p; i++)
                e[i] = fp_exp(-0.5 * (t[r] - a[i]) * (t[r] - a[i])) * unit;
        } else if (form == FP_ABP_SMALL_TILTS) {
            const double factor = fp_exp(-square) * unit;
            for (ptrdiff_t i = 0; i < p; i++)
                e[i] = (fp_expm1(a[i] * (t[r] - 0.5 * a[i])) - mean[r]) * factor;
        } else {
            const double factor = fp_exp(shift - square) * unit;
            for (ptrdiff_t i = 0; i < p; i++)
                e[i] = (fp_exp(a[i] * (t[r] - 0.5 * a[i]) - shift) - mean[r]) * factor;
        }
    }
}

/* sums[i m + j] += sum over r of own[r p + i] change[r m + j], r in order */
static void FP_NAME(fp_abp_products)(ptrdiff_t rows, ptrdiff_t stride, ptrdiff_t p, ptrdiff_t m,
                                     const double *true_value, const double *ratio_less_one, double *sums)
{
    fp_v8 panel[FP_ROWS];
    for (ptrdiff_t first = 0; first < rows; first += FP_ROWS) {
        const ptrdiff_t count = rows - first < FP_ROWS ? rows - first : FP_ROWS;
        for (ptrdiff_t j = 0; j < m; j += FP_LANES) {
            for (ptrdiff_t r = 0; r < count; r++)
                panel[r] = *(const fp_v8 *)(ratio_less_one + (first + r) * stride * m + j);
            for (ptrdiff_t i = 0; i < p; i += FP_POINTS) {
                fp_v8 sum[FP_POINTS];
                for (int k = 0; k < FP_POINTS; k++)
                    sum[k] = *(const fp_v8 *)(sums + (i + k) * m + j);
                for (ptrdiff_t r = 0; r < count; r++) {
                    const double *a = true_value + (first + r) * stride * p + i;
#pragma GCC unroll 8
                    for (int k = 0; k < FP_POINTS; k++)
                        sum[k] += a[k] * panel[r];
                }
                for (int k = 0; k < FP_POINTS; k++)
                    *(fp_v8 *)(sums + (i + k) * m + j) = sum[k];
            }
        }
    }
}

static void FP_NAME(fp_abp_divergences)(ptrdiff_t p, ptrdiff_t m, const double *even, const double *odd,
                                        const double *w, double *fine, double *coarse)
{
    for (ptrdiff_t i = 0; i < p; i++) {
        double first[FP_LANES], second[FP_LANES];
        for (int l = 0; l < FP_LANES; l++)
            first[l] = second[l] = 0.0;
        for (ptrdiff_t j = 0; j < m; j += FP_LANES)
            for (int l = 0; l < FP_LANES; l++) {
                const double half = even[i * m + j + l];
                first[l] += w[j + l] * fp_jensen_shannon_term(half + odd[i * m + j + l]);
                second[l] += w[j + l] * fp_jensen_shannon_term(2.0 * half);
            }
        fine[i] = fp_lane_sum(first);
        coarse[i] = fp_lane_sum(second);
    }
}
