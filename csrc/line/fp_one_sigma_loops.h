/* Two mixtures of one standard deviation at equidistant nodes; no include guard, included once per instruction set.
 *
 * Notation of fp_one_sigma_solver.h: at a node x the densities are e^(-x^2/2) T and e^(-x^2/2) S, with
 * T = sum w_i e^(t_i), S = sum v_i e^(t_i), D = T - S = D_0 + sum d_i expm1(t_i), t_i = c_i (x - c_i / 2). Eight lanes
 * hold nodes, so that every instruction set gives the same bits. */
/* bounds: proved - errors of the logarithms at a node, theorem 4.8 of docs/proofs/quadrature.md; of binomial sums,
 * theorem 4.20 */

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


/* x = sum over k from 2 to a of binomial(a, k) (1-r)^(a-k) r^k expm1(k (k-1) c^2 / 2), every term positive, for n
 * settings of a whole order a and of c^2 = square + low; log(1 + x) with a bound of its error. Columns are padded to whole lanes.
 *
 * ratio 2^lift <= 1 is r / (1-r), and k counts upward from 0, or its inverse, and k counts downward from a: `falls`. A
 * term is M T 2^e: M = 2^-j expm1(y) with the j of fp_exp_reduced, 1 <= T < 2; sums are kept in units of 2^unit, the
 * largest e so far. */
static void FP_NAME(fp_binomial_logs)(int n, const double *restrict order, const double *restrict ratio,
                                      const double *restrict lift, const double *restrict falls,
                                      const double *restrict square, const double *restrict low,
                                      double *restrict value, double *restrict error)
{
    for (int b = 0; b < n; b += FP_LANES) {
        const double *const a = order + b, *const rho = ratio + b, *const down = falls + b;
        double upper[FP_LANES], rest[FP_LANES]; /* of c^2; products of the upper part are exact */
        double term[FP_LANES], exponent[FP_LANES], loss[FP_LANES], sum[FP_LANES], slip[FP_LANES], unit[FP_LANES];
        double most = 0.0, first = 2.0;
        for (int i = 0; i < FP_LANES; i++)
            most = a[i] > most ? a[i] : most, first = down[i] > 0.0 ? 0.0 : first;
        FP_LANE_LOOP(i) {
            double q, shifted, e, moved;
            loss[i] = a[i] * fp_log1p(rho[i] * fp_power_of_two(lift[b + i]));
            const double r = fp_exp_reduced(-loss[i], 0.0, &q, &shifted), start = fp_mantissa(1.0 + (r + q), &e);
            const double next = fp_mantissa(start * (rho[i] * a[i]), &moved);
            exponent[i] = shifted - FP_SHIFT + e + (first > 0.0 ? moved + lift[b + i] : 0.0);
            term[i] = first > 0.0 ? next : start;
            sum[i] = slip[i] = 0.0, unit[i] = -0x1p40;
            upper[i] = fp_double(fp_bits(square[b + i]) & 0xfffffffff8000000u);
            rest[i] = (square[b + i] - upper[i]) + low[b + i];
        }
        for (double step = first; step <= most; step += 1.0) {
            const double inverse = step > 0.0 ? 1.0 / step : 0.0;
            FP_LANE_LOOP(i) {
                const double k = down[i] > 0.0 ? a[i] - step : step, pairs = 0.5 * k * (k - 1.0);
                const double most_y = pairs * upper[i], rest_y = pairs * rest[i], y = most_y + rest_y;
                const int active = (step <= a[i]) & (k >= 2.0), moves = (step > 0.0) & (step <= a[i]);
                const double raised = rho[i] * ((a[i] - (step - 1.0)) * inverse);
                double q, shifted, moved;
                const double r = fp_exp_reduced(y, (most_y - y) + rest_y, &q, &shifted), j = shifted - FP_SHIFT;
                const double inner = r + q, lost = (r - inner) + q; /* as in fp_expm1_reduced */
                const double one = fp_power_of_two(-j), base = 1.0 - one, total = base + inner;
                const double growth = total + (((base - total) + inner) + (lost + ((1.0 - base) - one)));
                term[i] = fp_mantissa(term[i] * (moves ? raised : 1.0), &moved);
                exponent[i] += moved + (moves ? lift[b + i] : 0.0);
                const double e = exponent[i] + j, top = active && e > unit[i] ? e : unit[i];
                const double part = (active ? fp_power_of_two(e - top) : 0.0) * (growth * term[i]);
                const double factor = fp_power_of_two(unit[i] - top);
                sum[i] = sum[i] * factor + part;
                slip[i] = slip[i] * factor + part * ((y > 7e5 ? 1.5 * y : 0.0) + 4.0 * step);
                unit[i] = top;
            }
        }
        FP_LANE_LOOP(i) {
            const double least = unit[i] > -2044.0 ? unit[i] : -2044.0, shift = least < 900.0 ? least : 900.0;
            const double x = fp_scale(sum[i], shift + FP_SHIFT), far = fp_log(sum[i]);
            const int is_far = unit[i] > 900.0;
            const double near = fp_log1p(x), logarithm = is_far ? far + unit[i] * FP_LN2 : near;
            const double mean = slip[i] / sum[i], largest = 0.75 * a[i] * (a[i] - 1.0) * square[b + i] + 4.0 * a[i];
            const double relative = 1.01 * FP_U * ((mean < 1e12 ? mean : largest) + (10.0 + a[i] + 9.0 * loss[i]));
            const double of_log = 6.0 * logarithm + (is_far ? 2.0 * fabs(far) : 0.0);
            value[b + i] = logarithm;
            error[b + i] = relative * (is_far ? 1.0 : x / (1.0 + x)) + FP_U * of_log;
        }
    }
}
