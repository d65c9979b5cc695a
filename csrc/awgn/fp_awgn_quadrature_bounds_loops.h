/* Error bounds of the trapezoidal rule for i(r); included once per instruction set.
 *
 * At height b the integral of the modulus of w is below 4 e^(b^2) for every d and r, and below 7 e^(b^2) on the path of
 * even d: docs/proofs/awgn.md, theorem 6.3.  |l| moves by at most (b + h) max |l'| + s b^2 / 2 and
 * -log(1 - b^2 V/2) off its nodes, and |l'| <= min(1, s) rho, as 0 <= E T <= min(R, R^2 rho / d).
 *
 * Where every window lies beyond rho = 36 the map of even d is the identity to the last bit and the height is not limited
 * by it: the rule is then that of the integrand times erf(rho/4), which is even in rho like that of odd d, at most 3 in
 * modulus, and 1 but for 1e-35 from rho = 36 on.
 */
/* bounds: proved - docs/proofs/awgn.md, theorems 6.7 and 6.8: rounding of weights and of l, as a mean over a window, and
 * of the posterior variance */

/* Bound of the distance of l at height b from its values at the nodes. */
static inline double FP_NAME(fp_awgn_variation)(const fp_awgn *a, double b, double variance, double rho)
{
    const double s = a->power < 1.0 ? a->power : 1.0;
    return s * ((b + a->step) * (rho + a->radius * (a->power > 1.0)) + 0.5 * b * b) - log1p(-0.5 * b * b * variance);
}

/* The largest height at which log S is proved analytic, but not more than pays. */
static inline double FP_NAME(fp_awgn_height)(const fp_awgn *a, double variance, double most)
{
    const double b = sqrt(1.8 / variance), limit = most < a->max_height ? most : a->max_height;
    return b < limit ? b : limit;
}

/* Sets the step so that the rule errs by about 1/50 of the tolerance of C for posterior variances up to `variance`. */
static void FP_NAME(fp_awgn_choose_step)(fp_awgn *a, double variance)
{
    const double rho = fp_awgn_output_centre(a, a->radius) + a->window, aim = 0.02 * a->rtol * 0.5 * a->full;
    double b = FP_NAME(fp_awgn_height)(a, variance, 5.0);
    const double size =
        log(24.0 * (FP_NAME(fp_awgn_variation)(a, b, variance, rho) + 10.0 * (a->small ? a->power : 1.0)) / aim);
    b = FP_NAME(fp_awgn_height)(a, variance, sqrt(size));
    a->step = (float)(2.0 * FP_PI * b / (size + b * b));
}

/* Error bound of the rule, for l within `spread` of its centre at the nodes of a window that ends at rho. */
static double FP_NAME(fp_awgn_rule_error)(const fp_awgn *a, double variance, double spread, double rho)
{
    const double b = FP_NAME(fp_awgn_height)(a, variance, FP_PI / a->step);
    const double sway = FP_NAME(fp_awgn_variation)(a, b, variance, rho) + spread;
    /* bound: proved - docs/proofs/awgn.md, theorem 6.3: twice the integral of |w| over e^(b^2) is below 8, and below 14
     * with the map of even d */
    const double modulus = a->max_height < 2.0 ? 24.0 : 8.0;
    return modulus * exp(b * b) * sway / expm1(2.0 * FP_PI * b / a->step);
}

/* Bound of the part outside the window: rho is a 1-Lipschitz function of a normal vector, within 1 of its root mean
 * square. */
static double FP_NAME(fp_awgn_tail_error)(const fp_awgn *a, double spread, double rho)
{
    const double s = a->power < 1.0 ? a->power : 1.0, t = a->window - 1.0;
    return 2.0 * exp(-0.5 * t * t) * (spread + s * (rho + a->radius + 2.0) * 2.0);
}

/* Rounding of weights (times `size`, the sum of w |l - centre|) and of l, which stays within `spread` of its centre, as a
 * mean over the window of r, where i(r) is `value`: theorem 6.7. */
static double FP_NAME(fp_awgn_rounding)(const fp_awgn *a, double spread, double size, double r, double value)
{
    const double unit = 1.2e-16, d = a->d, centre = fp_awgn_output_centre(a, r), top = centre + a->window;
    const double reach = top - r, R = a->radius, full = a->edge > 0.0 ? 0.0 : a->full;
    double weight = 50.0 * (d - 1.0) * log(top) + 22.0 * d + 110.0 + 4.0 * reach * reach
        + 0.25 * (a->window + 12.0) / a->step;
    double l = a->small && !a->mixed
        ? R * R * (22.0 + 16.0 * r * r / d)
        : 27.0 * (fabs(value) + 0.5 * d) + 5.3 * d + 2.0 * full + a->mixed + 26.0;
    if (a->even && centre - a->window < 36.0) { /* rounding of rho */
        weight += 2.4 * top * (a->window + 2.0) + 7.0 * (d + 3.0 * r + 9.0) + 60.0;
        l += (a->power < 1.0 ? a->power * centre : centre + R) * (centre + 5.0);
    }
    return unit * (weight * size + 3.0 * spread + l + 13.0 * full + 4.0 * fabs(value));
}

/* The sum of the three errors of i(r), about `value`, from a window that ends at rho. */
static double FP_NAME(fp_awgn_error)(const fp_awgn *a, double r, double value, double variance, double spread,
                                     double size, double rho)
{
    return FP_NAME(fp_awgn_rule_error)(a, variance, spread, rho) + FP_NAME(fp_awgn_tail_error)(a, spread, rho)
        + FP_NAME(fp_awgn_rounding)(a, spread, size, r, value);
}

/* A bound of the posterior variance V of T for all rho in [low, high].
 *
 * Let q be a step, T' = T - E T at a node, M(x) = E e^(x T') there, from S(rho + x).  For |x| <= q the variance at
 * rho + x is at most E e^(x T') T'^2 / M(x), where M >= 1, T'^2 <= (2 cosh(q T') - 2) / q^2, and the numerator is
 * convex in x: V <= max over signs of (M(2q) + 1 - 2 M(q)) / q^2.  With F = log S - rho^2/2, log M(x) = F(rho + x) -
 * F(rho) + x (rho - E T) + x^2/2: no square of rho, however large, is rounded.
 */
static double FP_NAME(fp_awgn_variance)(fp_awgn *a, const double *r, const double *p, int m, double least_radius,
                                        double high)
{
    enum { BLOCK = 128 };
    const double q = 0.15;
    double worst = 0.0, deepest = 0.0, steep = 0.0, total = 0.0, rho[BLOCK], x[BLOCK], exponent[BLOCK], relative[BLOCK], slope[BLOCK];
    double top[BLOCK], sum[BLOCK], mean[BLOCK];
    for (double from = least_radius - 2.0 * q; from < high; from += (BLOCK - 4) * q) {
        for (int k = 0; k < BLOCK; k++) {
            rho[k] = fabs(from + k * q);
            top[k] = -1e300;
            sum[k] = mean[k] = 0.0;
        }
        for (int pass = 0; pass < 2; pass++)
            for (int j = 0; j < m; j++) {
                FP_NAME(fp_awgn_row)(a, r[j], rho, BLOCK, x, exponent, relative, slope);
                if (pass == 0) {
                    for (int k = 0; k < BLOCK; k++)
                        top[k] = exponent[k] > top[k] ? exponent[k] : top[k];
                } else {
                    for (int k = 0; k < BLOCK; k++) {
                        const double part = p[j] * fp_exp(exponent[k] - top[k]);
                        sum[k] += part;
                        mean[k] += part * r[j] * slope[k];
                    }
                }
            }
        for (int k = 0; k < BLOCK; k++) {
            const double sign = from + k * q < 0.0 ? -1.0 : 1.0;
            mean[k] = sign * mean[k] / sum[k];
            sum[k] = top[k] + fp_log(sum[k]);
            mean[k] -= from + k * q;
            deepest = deepest > -sum[k] ? deepest : -sum[k];
            steep = steep > fabs(mean[k]) ? steep : fabs(mean[k]);
        }
        for (int k = 2; k < BLOCK - 2; k++)
            for (int side = -1; side <= 1; side += 2) {
                const double one = fp_exp(sum[k + side] - sum[k] - side * q * mean[k] + 0.5 * q * q);
                const double two = fp_exp(sum[k + 2 * side] - sum[k] - 2 * side * q * mean[k] + 2.0 * q * q);
                const double bound = (two + 1.0 - 2.0 * one) / (q * q);
                worst = bound <= worst || worst != worst ? worst : bound;
            }
    }
    for (int j = 0; j < m; j++)
        total += p[j];
    const double logs = 26.0 * (deepest + fabs(log(total))) + 0.75 * a->d + 45.0; /* rounding of log M: theorem 6.8 */
    const double rounding = 1.2e-16 * ((2.0 + q * a->radius) * logs + 2.0 * m + 4.0 * (fabs(high) + 1.0) * steep);
    return worst + (1e-9 + 150.0 * rounding) * (1.0 + worst);
}
