/* The log-likelihood ratio and the two distribution functions at eight points at once, one to a lane; included once per
 * instruction set. What a lane holds does not depend on the others. */
/* bounds: tested by enclosures/test_hockey_stick - errors of L and of the tails, counted to first order in the
 * roundings */

/* bound: proved - relative error of a score E_r g in terms of max |g|: twice the relative error of a term that does not
 * underflow, FP_ROUND (4 + 2 (746 + |peak| + load) + load + |peak|), for loads up to 900 and |peak| below 1e5 */
#define FP_SCORE_ERROR 1.2e-9

/* L, its error, L', log q (without sqrt(2 pi)), and the largest |g_i| of both sides, at eight points. */
typedef struct {
    double value[FP_LANES], error[FP_LANES], slope[FP_LANES], slope_error[FP_LANES], log_q[FP_LANES],
        steepest[FP_LANES];
} FP_NAME(fp_ratios);

/* Log density of one side, its error and its score at eight points; `h` is a workspace of 8 n doubles. */
static void FP_NAME(fp_log_density_at_points)(const fp_mixture *side, const double *restrict x, double *restrict h,
                                              double *restrict log_density, double *restrict error,
                                              double *restrict score, double *restrict steepest)
{
    double peak[FP_LANES], mass[FP_LANES], load[FP_LANES], moment[FP_LANES];
    for (int k = 0; k < FP_LANES; ++k)
        peak[k] = -INFINITY, mass[k] = load[k] = moment[k] = 0.0;
    for (int i = 0; i < side->n; ++i) {
        const double mean = side->mean[i], inverse = side->inverse[i], weight = side->log_weight[i];
        double *restrict row = h + (ptrdiff_t)FP_LANES * i;
        for (int k = 0; k < FP_LANES; ++k) {
            const double z = (x[k] - mean) * inverse, value = weight - 0.5 * z * z;
            row[k] = value;
            peak[k] = value > peak[k] ? value : peak[k];
        }
    }
    for (int i = 0; i < side->n; ++i) {
        const double mean = side->mean[i], inverse = side->inverse[i], size = side->load[i];
        const double *restrict row = h + (ptrdiff_t)FP_LANES * i;
        for (int k = 0; k < FP_LANES; ++k) {
            const double z = (x[k] - mean) * inverse, g = -z * inverse, e = fp_exp(row[k] - peak[k]), wide = fabs(g);
            mass[k] += e;
            moment[k] += e * g;
            load[k] += e * (z * z + size);
            steepest[k] = wide > steepest[k] ? wide : steepest[k];
        }
    }
    for (int k = 0; k < FP_LANES; ++k) {
        log_density[k] = peak[k] + fp_log(mass[k]);
        score[k] = moment[k] / mass[k];
        error[k] = FP_ROUND * (4.0 + load[k] / mass[k] + fabs(peak[k])) + 2.3e-16 * side->n;
    }
}

/* L at eight points. */
static void FP_NAME(fp_log_ratio_at_points)(const fp_log_ratio *r, const double *x, FP_NAME(fp_ratios) * out)
{
    double log_p[FP_LANES], error_p[FP_LANES], score_p[FP_LANES], error_q[FP_LANES], score_q[FP_LANES];
    fp_stop_requested(r->stop, FP_LANES * (r->np + r->nq));
    for (int k = 0; k < FP_LANES; ++k)
        out->steepest[k] = 0.0;
    FP_NAME(fp_log_density_at_points)(&r->q, x, r->scratch, out->log_q, error_q, score_q, out->steepest);
    if (r->coupled || r->tilt.sign) {
        for (int k = 0; k < FP_LANES; ++k) {
            fp_taylor at;
            if (k && x[k] == x[k - 1]) {
                out->value[k] = out->value[k - 1], out->error[k] = out->error[k - 1];
                out->slope[k] = out->slope[k - 1], out->slope_error[k] = out->slope_error[k - 1];
                out->steepest[k] = out->steepest[k - 1];
                continue;
            }
            FP_NAME(fp_log_ratio_at)(r, x[k], &at);
            out->value[k] = at.value, out->error[k] = at.error;
            out->slope[k] = at.slope, out->slope_error[k] = at.slope_error;
            for (int i = 0; i < r->np; ++i) {
                double wide = fabs(x[k] - r->m[i]) * r->p.precision[i];
                out->steepest[k] = wide > out->steepest[k] ? wide : out->steepest[k];
            }
        }
        return;
    }
    FP_NAME(fp_log_density_at_points)(&r->p, x, r->scratch, log_p, error_p, score_p, out->steepest);
    for (int k = 0; k < FP_LANES; ++k) {
        out->value[k] = log_p[k] - out->log_q[k];
        out->error[k] = error_p[k] + error_q[k];
        out->slope[k] = score_p[k] - score_q[k];
        out->slope_error[k] = 2.0 * FP_SCORE_ERROR * out->steepest[k];
    }
}

/* F(x) = sum of w_i Phi((x - m_i) / s_i) at eight points, as the total weight of the `count` components that begin left
 * of x plus `high` + `low`, sums of tails alone; `error` bounds the error of the latter. */
typedef struct {
    double high[FP_LANES], low[FP_LANES], error[FP_LANES], count[FP_LANES];
} FP_NAME(fp_tail_sums);

static void FP_NAME(fp_tails_at_points)(const fp_mixture *side, const double *restrict x, FP_NAME(fp_tail_sums) * out)
{
    const double beyond = FP_NORMAL_TAIL_LEAST / FP_NORMAL_TAIL_ERROR;
    double high[FP_LANES], low[FP_LANES], error[FP_LANES], count[FP_LANES];
    for (int k = 0; k < FP_LANES; ++k)
        high[k] = low[k] = error[k] = count[k] = 0.0;
    for (int i = 0; i < side->n; ++i) {
        const double mean = side->mean[i], inverse_high = side->inverse_high[i], inverse_low = side->inverse_low[i];
        const double weight_high = side->weight_high[i], weight_low = side->weight_low[i];
        for (int k = 0; k < FP_LANES; ++k) {
            const fp_unevaluated z = fp_standard_score(x[k], mean, inverse_high, inverse_low),
                                 tail = fp_normal_tail(z.high, z.low);
            const double lead = fp_upper(tail.high), sign = x[k] > mean ? -1.0 : 1.0, size = fabs(z.high);
            const double near = size < FP_NORMAL_TAIL_LAST ? size : FP_NORMAL_TAIL_LAST;
            const double term = sign * (weight_high * lead), sum = high[k] + term;
            low[k] += fp_sum_error(high[k], term, sum)
                      + sign * (weight_high * ((tail.high - lead) + tail.low) + weight_low * (tail.high + tail.low));
            high[k] = sum;
            error[k] += (weight_high + weight_low)
                        * (tail.high * (1.0 + near * near) + (size < FP_NORMAL_TAIL_LAST ? 0.0 : beyond));
            count[k] += x[k] > mean ? 1.0 : 0.0;
        }
    }
    for (int k = 0; k < FP_LANES; ++k) {
        out->high[k] = high[k];
        out->low[k] = low[k];
        out->error[k] = error[k] * (FP_NORMAL_TAIL_ERROR * 1.01);
        out->count[k] = count[k];
    }
}
