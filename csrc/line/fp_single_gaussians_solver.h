/* Hockey-stick curves of one Gaussian against another of any sigma, in closed form; included once per instruction set.
 *
 * P = w N(m, s^2), Q = v N(n, t^2); z = (x - m) / s, y = (x - n) / t, and
 *     f(x) = L(x) - epsilon = log(w t / (v s)) - epsilon + (y - z) (y + z) / 2,
 * a quadratic in z: f = c + b z - k z^2 / 2 with b = (s / t) (m - n) / t, k = 1 - (s / t)^2, D = b^2 + 2 k c.  So f > 0
 * between its roots where k > 0 and outside of them where k < 0; f < 0 everywhere for k > 0 > D.  Roots are found in
 * doubles, improved by a Newton step with f in double-doubles, and kept as double-doubles x.
 *
 * In doubles.  For k < 0 H is a sum of two tails without cancellation between them, and w phi(z) / s = a v phi(y) / t
 * at a root: the right tail is w phi(z) (R(z) - (t / s) R(y)), R the Mills ratio.  Away from the root the second term
 * is off by a relative e^-f - 1.  Where this is not narrow, and for k > 0, tails are formed in double-doubles.
 *
 * What a root misses.  (df/dz)^2 = D - 2 k f, so where |2 k f(x)| <= D / 5 the true root is within 1.25 |f| / sqrt(D)
 * of z, and between them |p - a q| <= p expm1(|f|): a loss of second order, which goes into the upper bound, as in
 * fp_hockey_stick_set_solver.h. */
/* bounds: proved - the rounding of f from the errors of fp_dd.h, or of doubles, and of Mills ratios from those of
 * fp_erfc.h; margins of D, of the distance of a root and of the logarithm of the loss */

/* bound: none - lengths and their ratios beyond which the pair is left to the general path */
#define FP_SINGLE_LARGEST 1e100

typedef struct {
    double w, m, s, v, n, t;
    double b, k;        /* coefficients of f but for epsilon */
    double shift;       /* ((m - n) / t)^2 / 2 */
    fp_dd log_scale;    /* log(w t / (v s)) */
} FP_NAME(fp_single_gaussians);

/* 0 where the pair is none of this form, or too far from ordinary sizes. */
static int FP_NAME(fp_single_gaussians_from_pair)(const FP_NAME(fp_pair) * pair, FP_NAME(fp_single_gaussians) * out)
{
    const double largest = FP_SINGLE_LARGEST, least = 1.0 / FP_SINGLE_LARGEST;
    if (pair->np != 1 || pair->nq != 1)
        return 0;
    const double w = pair->w[0], m = pair->m[0], s = pair->s[0], v = pair->v[0], n = pair->n[0], t = pair->t[0];
    const double ratio = s / t, shift = (m - n) / t;
    if (!(fabs(m) < largest && fabs(n) < largest && s < largest && t < largest && s > least && t > least
          && ratio < largest && ratio > least && fabs(shift) < largest && w > least && v > least))
        return 0;
    *out = (FP_NAME(fp_single_gaussians)){w, m, s, v, n, t, 0.0, 0.0, 0.0, {0.0, 0.0}};
    out->b = ratio * shift;
    out->k = (t - s) / t * ((t + s) / t);
    out->shift = 0.5 * shift * shift;
    out->log_scale = fp_dd_log(fp_dd_div(fp_two_prod(w, t), fp_two_prod(v, s)));
    return 1;
}

/* f in double-doubles with its error, and df/dz */
static double FP_NAME(fp_single_gaussians_at)(const FP_NAME(fp_single_gaussians) * g, double epsilon, fp_dd x,
                                              double *error, double *slope, double *z_of_x)
{
    const fp_dd z = fp_dd_div_d(fp_dd_add_d(x, -g->m), g->s), y = fp_dd_div_d(fp_dd_add_d(x, -g->n), g->t);
    const fp_dd product = fp_dd_mul(fp_dd_sub(y, z), fp_dd_add(y, z));
    const fp_dd half = {0.5 * product.hi, 0.5 * product.lo};
    const fp_dd f = fp_dd_add(fp_dd_add_d(g->log_scale, -epsilon), half);
    *error = 0x1p-97 * (fabs(g->log_scale.hi) + fabs(epsilon) + z.hi * z.hi + y.hi * y.hi);
    *slope = g->s / g->t * y.hi - z.hi;
    *z_of_x = z.hi;
    return f.hi;
}

/* The root near z, with the logarithm of its loss; 0 where the root cannot be proved. `sign` is that of df/dz. */
static int FP_NAME(fp_single_gaussians_root)(const FP_NAME(fp_single_gaussians) * g, double epsilon, double z,
                                             double sign, double discriminant, fp_dd *x, double *log_loss)
{
    double error, slope, at;
    *x = fp_dd_add_d(fp_two_prod(g->s, z), g->m);
    for (int step = 0; step < 3; ++step) {
        const double f = FP_NAME(fp_single_gaussians_at)(g, epsilon, *x, &error, &slope, &at);
        const double size = fabs(f) + error, root = sqrt(discriminant);
        if (!(slope * sign > 0.0 && fabs(2.0 * g->k) * size <= 0.2 * discriminant))
            return 0;
        if (step && size < 1e-14) {
            const double distance = 1.3 * size / root;
            *log_loss = log(g->w * distance * size * (1.0 + 1e-9)) - 0.5 * at * at + (fabs(at) + distance) * distance
                        + 1e-12 + 1e-14 * at * at;
            return distance < 1.0 && size * distance > 0.0;
        }
        *x = fp_dd_add_d(*x, -g->s * f / slope);
    }
    return 0;
}

/* The tail beyond the root near z, on the side `sign`, in doubles, with its error and its loss; 0 where these are not
 * known. */
FP_INLINE int FP_NAME(fp_single_gaussians_tail)(const FP_NAME(fp_single_gaussians) * g, double epsilon, double z,
                                                double sign, double discriminant, double *tail, double *error)
{
    const double ratio = g->s / g->t, shift = ratio != 0.0 ? g->b / ratio : 0.0, constant = g->log_scale.hi - epsilon;
    double y = ratio * z + shift;
    z -= (constant + 0.5 * (y - z) * (y + z)) / (ratio * y - z);
    y = ratio * z + shift;
    const double f = constant + 0.5 * (y - z) * (y + z), slope = ratio * y - z;
    const double y_error = 8e-16 * (fabs(ratio * z) + fabs(shift));
    const double size = fabs(f) + 1e-15 * (fabs(g->log_scale.hi) + fabs(epsilon) + z * z + y * y) + fabs(y) * y_error;
    const double first = fp_mills(sign * z), second = fp_mills(sign * y) / ratio;
    const double scale = g->w * fp_gauss_times(fabs(z), FP_INV_SQRT_2PI);
    const double loss = 1.4 * size * size / sqrt(discriminant);
    *tail = scale * (first - second);
    *error = scale * (2e-15 * (first + second) + y_error / ratio * (1.0 + fabs(y) * second * ratio)
                      + 1.1 * size * second + loss);
    return slope * sign > 0.0 && fabs(2.0 * g->k) * size <= 0.2 * discriminant && size < 1e-3
           && size * fabs(z) < 1e-3 * slope * sign;
}

/* The bracket in doubles for k < 0; 0 where it is not narrow. */
static int FP_NAME(fp_single_gaussians_in_doubles)(const FP_NAME(fp_single_gaussians) * g, double epsilon,
                                                   double rising, double falling, double discriminant, double target,
                                                   fp_bracket *out)
{
    double right, left, right_error, left_error;
    if (!FP_NAME(fp_single_gaussians_tail)(g, epsilon, rising, 1.0, discriminant, &right, &right_error)
        || !FP_NAME(fp_single_gaussians_tail)(g, epsilon, falling, -1.0, discriminant, &left, &left_error))
        return 0;
    const double sum = right + left, error = right_error + left_error + 1e-15 * fabs(sum);
    if (!(sum > 1e-280 && sum < 0.5 && 2.0 * error <= target * sum))
        return 0;
    const double low = sum - error, high = sum + error;
    *out = (fp_bracket){sum, low, high, fp_log(sum), fp_log(low), fp_log(high)};
    FP_NAME(fp_bracket_round_outward)(out);
    return 1;
}

/* The bracket for one epsilon, with NaN as value where nothing is proved; returns the sums in double-doubles. */
static int FP_NAME(fp_single_gaussians_bracket)(const FP_NAME(fp_single_gaussians) * g, double epsilon, double target,
                                                fp_bracket *out)
{
    out->value = NAN;
    if (!(epsilon >= -0.5 && epsilon < FP_EPSILON_SUMMED))
        return 0;
    const double c = g->log_scale.hi + g->shift - epsilon, discriminant = g->b * g->b + 2.0 * g->k * c;
    const double size = g->b * g->b + 2.0 * fabs(g->k) * (fabs(g->log_scale.hi) + g->shift + fabs(epsilon));
    if (!(fabs(discriminant) > 1e-6 * size)) /* its sign is not known, or the roots are close */
        return 0;
    if (discriminant < 0.0) {
        if (g->k > 0.0)
            *out = (fp_bracket){0.0, 0.0, 0.0, -INFINITY, -INFINITY, -INFINITY};
        return 0;
    }
    /* roots of -k/2 z^2 + b z + c without cancellation; df/dz is sqrt(D) at the first and -sqrt(D) at the other */
    const double root = sqrt(discriminant), q = -0.5 * (g->b + (g->b < 0.0 ? -root : root));
    const double by_k = -2.0 * q / g->k, by_q = c / q;
    const double rising = g->b < 0.0 ? by_k : by_q, falling = g->b < 0.0 ? by_q : by_k;
    if (g->k < 0.0
        && FP_NAME(fp_single_gaussians_in_doubles)(g, epsilon, rising, falling, discriminant, target, out))
        return 0;
    fp_dd up, down;
    double loss[2];
    if (!FP_NAME(fp_single_gaussians_root)(g, epsilon, rising, 1.0, discriminant, &up, &loss[0])
        || !FP_NAME(fp_single_gaussians_root)(g, epsilon, falling, -1.0, discriminant, &down, &loss[1]))
        return 0;
    const fp_dd none = fp_dd_set(-INFINITY), all = fp_dd_set(INFINITY);
    const fp_dd interval[4] = {g->k > 0.0 ? up : none, down, up, all};
    const int intervals = g->k > 0.0 ? 1 : 2;
    FP_NAME(fp_scaled_sum) sum = {{0.0, 0.0}, 0.0, 0, 1};
    int64_t exponent;
    const fp_dd factor = fp_dd_mul_d(fp_dd_exp_scaled(fp_dd_set(epsilon), &exponent), -g->v);
    for (int i = 0; i < intervals; ++i) {
        const fp_dd left = interval[2 * i], right = interval[2 * i + 1];
        FP_NAME(fp_scaled_sum_add_interval)(&sum, fp_dd_set(g->w), 0.0, 0, left, right, g->m, g->s);
        FP_NAME(fp_scaled_sum_add_interval)(&sum, factor, 0x1p-96 * fabs(factor.hi), exponent, left, right, g->n, g->t);
    }
    FP_NAME(fp_scaled_sum_bracket)(&sum, 1, loss[0] > loss[1] ? loss[0] : loss[1], 2.0, out);
    FP_NAME(fp_bracket_round_outward)(out);
    if (!FP_NAME(fp_bracket_is_narrow)(out, target))
        out->value = NAN;
    return 1;
}
