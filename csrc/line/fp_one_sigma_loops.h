/* Two mixtures of one standard deviation at equidistant nodes; no include guard, included once per instruction set.
 *
 * Notation of fp_one_sigma_solver.h: at a node x the densities are e^(-x^2/2) T and e^(-x^2/2) S, with
 * T = sum w_i e^(t_i), S = sum v_i e^(t_i), D = T - S = D_0 + sum d_i expm1(t_i), t_i = c_i (x - c_i / 2). Eight lanes
 * hold nodes, so that every instruction set gives the same bits. */
/* bounds: proved - errors of the logarithms at a node: docs/proofs/quadrature.md, theorem 4.8 */

/* log p, log q (but for log sqrt(2 pi)) and their difference with bounds of their errors at x = (first + i) step, i <
 * n, n a multiple of eight. The products are exact; c_i errs by 2 u of itself. */
static void FP_NAME(fp_one_sigma_nodes)(const fp_one_sigma *g, double first, double step, int n, double *restrict lp,
                                        double *restrict lq, double *restrict l, double *restrict dp,
                                        double *restrict dq, double *restrict dl)
{
    const double count = g->n + 5.0;
    for (int b = 0; b < n; b += FP_LANES) {
        double x[FP_LANES], d_sum[FP_LANES], s_sum[FP_LANES], t_sum[FP_LANES];
        double d_error[FP_LANES], s_error[FP_LANES], t_error[FP_LANES];
        FP_LANE_LOOP(k) {
            x[k] = (first + (double)(b + k)) * step;
            d_sum[k] = g->apart, s_sum[k] = g->v_centre, t_sum[k] = g->w_centre;
            d_error[k] = count * fabs(g->apart), s_error[k] = count * g->v_centre, t_error[k] = count * g->w_centre;
        }
        for (int i = 0; i < g->n; i++) {
            const double c = g->c[i], d = g->d[i], w = g->w[i], v = g->v[i], size = fabs(c), weight = fabs(d);
            FP_LANE_LOOP(k) {
                const double half = x[k] - 0.5 * c, t = c * half, e = fp_exp(t), m = fp_expm1(t);
                const double moved = 1.000001 * size * (4.0 * fabs(half) + size), most = e * (moved + count);
                d_sum[k] += d * m, s_sum[k] += v * e, t_sum[k] += w * e;
                d_error[k] += weight * (e * moved + count * fabs(m));
                s_error[k] += v * most, t_error[k] += w * most;
            }
        }
        FP_LANE_LOOP(k) {
            const double inverse = 1.0 / s_sum[k], excess = d_sum[k] * inverse, square = 0.5 * x[k] * x[k];
            const double log_s = fp_log(s_sum[k]), log_t = fp_log(t_sum[k]);
            const int near = fabs(excess) < 0.5;
            const double close = fp_log1p(near ? excess : 0.0), ratio = near ? close : log_t - log_s;
            const double q_error = s_error[k] * inverse + 2.0 * fabs(log_s);
            const double p_error = t_error[k] / t_sum[k] + 2.0 * fabs(log_t);
            const double close_error = 1.01 * (d_error[k] + fabs(excess) * (s_error[k] + 3.0 * s_sum[k])) * inverse
                                           / (1.0 + (near ? excess : 0.0)) + 6.0 * fabs(close);
            lq[b + k] = log_s - square, lp[b + k] = log_t - square, l[b + k] = ratio;
            dq[b + k] = FP_U * (q_error + square + fabs(log_s - square));
            dp[b + k] = FP_U * (p_error + square + fabs(log_t - square));
            dl[b + k] = FP_U * (near ? close_error : p_error + q_error + fabs(ratio));
        }
    }
}

/* The largest of lp + b l */
static double FP_NAME(fp_one_sigma_top)(int n, double b, const double *restrict lp, const double *restrict l)
{
    double top[FP_LANES];
    FP_LANE_LOOP(k)
        top[k] = -INFINITY;
    for (int i = 0; i < n; i += FP_LANES)
        FP_LANE_LOOP(k) {
            const double e = lp[i + k] + b * l[i + k];
            top[k] = e > top[k] ? e : top[k];
        }
    for (int k = 1; k < FP_LANES; k++)
        top[0] = top[k] > top[0] ? top[k] : top[0];
    return top[0];
}

/* Add values and errors of n nodes to lanes of compensated sums. */
static void FP_NAME(fp_one_sigma_add)(int n, const double *restrict f, const double *restrict err,
                                      double *restrict high, double *restrict low, double *restrict error)
{
    for (int b = 0; b < n; b += FP_LANES)
        FP_LANE_LOOP(k) {
            const double x = f[b + k], s = high[k] + x;
            low[k] += fp_sum_error(high[k], x, s);
            high[k] = s;
            error[k] += err[b + k];
        }
}

