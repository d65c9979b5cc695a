/* The vector loops of the quadrature engine; no include guard, included once per instruction set.
 *
 * Eight lanes everywhere, summed in one fixed order, so that every instruction set gives the same bits.  In the
 * analysis of a panel the lanes are components, in the evaluation they are nodes.
 */
/* bounds: proved - rounding of kappa, and of posterior terms at a node: docs/proofs/quadrature.md, theorems 4.15 and 4.16 */

/* log p(x0), responsibilities, alpha, beta */
static void FP_NAME(fp_local_centre)(fp_local_mixture *side)
{
    const int n = side->padded;
    const double *restrict dm = side->dm, *restrict is = side->is;
    double *restrict log_r = side->log_r, *restrict r = side->r;
    double *restrict slope = side->slope, *restrict curvature = side->curvature;
    const double top = side->top;
    double sums[FP_LANES] = {0}, slopes[FP_LANES] = {0}, bends[FP_LANES] = {0};
    for (int j = 0; j < n; j++)
        r[j] = fp_exp_down(log_r[j] - top);
    for (int j = 0; j < n; j += FP_LANES)
        FP_LANE_LOOP(k) {
            const double square = r[j + k] * is[j + k] * is[j + k];
            sums[k] += r[j + k];
            slopes[k] -= square * dm[j + k];
            bends[k] += square;
        }
    const double total = fp_lane_sum(sums), inverse = 1.0 / total, l0 = top + fp_log(total);
    const double alpha = fp_lane_sum(slopes) / total, beta = fp_lane_sum(bends) / total;
    for (int j = 0; j < n; j++) {
        const double square = is[j] * is[j];
        log_r[j] -= l0;
        r[j] *= inverse;
        slope[j] = fabs(-dm[j] * square - alpha) + 8.0 * FP_U * fabs(dm[j] * square);
        curvature[j] = 0.5 * fabs(square - beta) + 2.0 * FP_U * square;
    }
    side->l0 = l0;
    side->alpha = alpha;
    side->beta = beta;
}

/* kappa of the disk |d| <= radius, rounded up but for a slip of log_r of 1e-3 and more */
static double FP_NAME(fp_local_kappa)(const fp_local_mixture *side, double radius)
{
    const double *restrict log_r = side->log_r, *restrict slope = side->slope, *restrict curvature = side->curvature;
    double sum[FP_LANES] = {0};
    for (int j = 0; j < side->padded; j += FP_LANES)
        FP_LANE_LOOP(k)
            sum[k] += fp_exp((1.0 - 1e-14) * log_r[j + k]
                             + (1.0 + 1e-14) * ((slope[j + k] + curvature[j + k] * radius) * radius));
    const double kappa = (fp_lane_sum(sum) * (1.0 + 1e-9) - 1.0) * (side->slip < 1e-3 ? fp_exp(2.0 * side->slip) : 1.0);
    return kappa < 1e-9 ? 1e-9 : kappa;
}

/* log p and a bound of its error at x0 + d[0..n), n a multiple of eight and |d| <= 1, in units of h; what rounding d
 * changes is in it.  By the analysis of the panel p stays within a factor 0.03 to 1.97 of p(x0) e^(alpha d - beta d^2 /
 * 2). */
static void FP_NAME(fp_local_nodes)(const fp_local_mixture *side, const double *restrict d, int n, double *restrict lp,
                                    double *restrict dp)
{
    const double *restrict dm = side->dm, *restrict scale = side->is, *restrict c = side->c, *restrict ce = side->ce;
    const double l0 = side->l0, square_error = side->square_error, alpha = side->alpha, half_beta = 0.5 * side->beta;
    const int far = side->base != 0.0;
    /* bound: proved - the roundings at a node: docs/proofs/quadrature.md, theorem 4.8 */
    const double node_error = square_error > 5.0 ? 4.0 : 2.0;
    const double fixed = 13.0 + (side->n < 32 ? side->n : 32 + side->n / 32) + 3.0 * fp_log((double)side->n);
    for (int b = 0; b < n; b += FP_LANES) {
        double guess[FP_LANES], sum[FP_LANES] = {0}, error[FP_LANES] = {0};
        FP_LANE_LOOP(k)
            guess[k] = far ? -INFINITY : l0 + d[b + k] * (alpha - half_beta * d[b + k]);
        for (int j = 0; j < side->n && far; j++) /* the rounding may be large, and is the same here and below */
            FP_LANE_LOOP(k) {
                const double t = fabs(dm[j] + d[b + k]) * scale[j], e = c[j] - 0.5 * t * t;
                guess[k] = e > guess[k] ? e : guess[k];
            }
        for (int start = 0; start < side->n; start += 32) {
            const int stop = start + 32 < side->n ? start + 32 : side->n;
            double part[FP_LANES] = {0};
            for (int j = start; j < stop; j++)
                FP_LANE_LOOP(k) {
                    const double t = fabs(dm[j] + d[b + k]) * scale[j];
                    const double x = fp_exp_down((c[j] - 0.5 * t * t) - guess[k]);
                    part[k] += x;
                    error[k] += x * ((square_error * t + node_error * scale[j]) * t + ce[j]);
                }
            FP_LANE_LOOP(k)
                sum[k] += part[k];
        }
        FP_LANE_LOOP(k) {
            const double l = guess[k] + fp_log(sum[k]);
            lp[b + k] = l;
            dp[b + k] = FP_U * (error[k] / sum[k] + fixed + fabs(l));
        }
    }
}

/* the integrand and the bound of its rounding error at n nodes */
static void FP_NAME(fp_integrand_nodes)(int kind, double b, double shift, int n, const double *restrict lp,
                                        const double *restrict lq, const double *restrict l, const double *restrict dp,
                                        const double *restrict dq, const double *restrict dl, double *restrict f,
                                        double *restrict err)
{
    switch (kind) {
    case FP_KL:
        for (int k = 0; k < n; k++)
            f[k] = fp_kl_node(lp[k], lq[k], l[k], dp[k], dq[k], dl[k], err + k);
        break;
    case FP_JS:
        for (int k = 0; k < n; k++)
            f[k] = fp_js_node(lp[k], lq[k], l[k], dp[k], dq[k], dl[k], err + k);
        break;
    case FP_MASS_P:
        for (int k = 0; k < n; k++)
            f[k] = fp_mass_node(lp[k], b, dp[k], err + k);
        break;
    case FP_MASS_Q:
        for (int k = 0; k < n; k++)
            f[k] = fp_mass_node(lq[k], b, dq[k], err + k);
        break;
    case FP_ENTROPY:
        for (int k = 0; k < n; k++)
            f[k] = fp_entropy_node(lp[k], dp[k], err + k);
        break;
    case FP_RENYI:
        for (int k = 0; k < n; k++)
            f[k] = fp_renyi_node(lp[k], l[k], b, shift, dp[k], dl[k], err + k);
        break;
    default:
        for (int k = 0; k < n; k++)
            f[k] = fp_renyi_small_node(lp[k], lq[k], l[k], b, dp[k], dq[k], dl[k], err + k);
    }
}

/* q sum_i pi_i psi(rho_i), psi(rho) = rho log rho - rho + 1, rho_i = N(x; m_i, s^2) / q(x): the integrand of the
 * mutual information of a discrete input through Gaussian noise.  All densities are relative to that of one input,
 * `reference`, so that v_i = log(N_i / N_reference) = a_i (y - a_i / 2), a_i = (m_i - m_reference) / s
 * (side->offset), y = (x - m_reference) / s, has no cancellation; lost is the prior weight of the inputs that were
 * dropped; d is in units of h, and f the integrand times h.  With T = q / N_reference, log T = log1p(sum pi_i
 * expm1(v_i) - lost), or, if `direct`, log(sum pi_i e^(v_i)): the first where T is near 1, the second where it is
 * small.
 * f and err are those of the integrand times unit, a power of two of the size of 1 / (1 - the largest pi_i) where that
 * is large, so that nothing leaves the normal doubles: if `direct`, T and q are multiplied by it and rho_i divided; else
 * the sum over i is multiplied. */
static void FP_NAME(fp_information_nodes)(const fp_local_mixture *side, const double *restrict prior, int reference,
                                          int direct, double lost, double unit, const double *restrict d, int n,
                                          double *restrict f, double *restrict err)
{
    const double *restrict offset = side->offset;
    double *restrict e = side->scratch;
    const double is = side->is[reference], origin = side->dm[reference], log_scale = fp_log(is) - FP_LOG_SQRT_2PI;
    const double log_unit = unit == 1.0 ? 0.0 : fp_log(unit), sum_unit = direct ? 1.0 : 1.0 / unit;
    const double one = direct ? 1.0 / unit : 1.0, lost_units = direct ? lost : lost * unit;
    const double count = side->n < 32 ? side->n : 32 + side->n / 32; /* additions in a row */
    for (int b = 0; b < n; b += FP_LANES) {
        double y[FP_LANES], sum[FP_LANES] = {0}, size[FP_LANES] = {0}, lambda[FP_LANES], inverse[FP_LANES];
        double total[FP_LANES] = {0}, error[FP_LANES] = {0}, spread[FP_LANES], moved[FP_LANES];
        FP_LANE_LOOP(k)
            y[k] = (origin + d[b + k]) * is, moved[k] = 3.0 * fabs(d[b + k]) * is;
        for (int start = 0; start < side->n; start += 32) {
            const int stop = start + 32 < side->n ? start + 32 : side->n;
            double part[FP_LANES] = {0};
            for (int j = start; j < stop && direct; j++)
                FP_LANE_LOOP(k) {
                    const double a = offset[j], v = a * (y[k] - 0.5 * a), x = fp_exp(v);
                    e[j * FP_LANES + k] = x;
                    part[k] += prior[j] * unit * x;
                    size[k] += prior[j] * unit * x * (10.0 * fabs(v) + fabs(a) * (4.0 * fabs(a) + moved[k]) + count + 4.0);
                }
            for (int j = start; j < stop && !direct; j++)
                FP_LANE_LOOP(k) {
                    const double a = offset[j], v = a * (y[k] - 0.5 * a), x = fp_expm1(v);
                    e[j * FP_LANES + k] = 1.0 + x;
                    part[k] += prior[j] * unit * x;
                    size[k] += prior[j] * unit
                               * ((count + 5.0) * fabs(x)
                                  + (1.0 + x) * (10.0 * fabs(v) + fabs(a) * (4.0 * fabs(a) + moved[k])));
                }
            FP_LANE_LOOP(k)
                sum[k] += part[k];
        }
        FP_LANE_LOOP(k) {
            const double less_one = sum[k] * sum_unit - lost, small = fp_log1p(less_one), large = fp_log(sum[k]);
            lambda[k] = direct ? large - log_unit : small;
            inverse[k] = 1.0 / (direct ? sum[k] : 1.0 + less_one);
            spread[k] = 1.01 * (size[k] * sum_unit + (direct ? 0.0 : 4.0 * lost)) * inverse[k]
                        + 9.0 * fabs(lambda[k]) + (direct ? 7.0 * log_unit : 0.0);
        }
        for (int start = 0; start < side->n; start += 32) {
            const int stop = start + 32 < side->n ? start + 32 : side->n;
            double part[FP_LANES] = {0};
            for (int j = start; j < stop; j++)
                FP_LANE_LOOP(k) {
                    const double a = offset[j], v = a * (y[k] - 0.5 * a), l = v - lambda[k];
                    const double rho = e[j * FP_LANES + k] * inverse[k];
                    const double near = rho * fp_kappa_series(-fp_clamp1(l)), far = one + rho * (l - 1.0);
                    const double psi = fabs(l) < 1.0 ? near : far;
                    const double dl = 10.0 * fabs(v) + fabs(a) * (4.0 * fabs(a) + moved[k]) + spread[k];
                    part[k] += prior[j] * unit * psi;
                    error[k] += prior[j] * unit
                                * (rho * (fabs(l) + FP_U * dl) * dl + 28.0 * psi
                                   + (direct ? 0.0 : 4.0 * inverse[k] * (fabs(l) < 1.0 ? psi : fabs(l))));
                }
            FP_LANE_LOOP(k)
                total[k] += part[k];
        }
        FP_LANE_LOOP(k) {
            const double log_t = lambda[k] + (direct ? log_unit : 0.0);
            const double q = fp_exp((log_scale - 0.5 * y[k] * y[k]) + log_t), v = q * (total[k] + lost_units);
            f[b + k] = v;
            err[b + k] = FP_U * (q * error[k] + v * (count + 16.0 + (7.0 * fabs(y[k]) + moved[k]) * fabs(y[k])
                                                     + 5.0 * fabs(log_scale) + spread[k]));
        }
    }
}

