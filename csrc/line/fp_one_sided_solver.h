/* Hockey-stick curves of one Gaussian and a mixture to one side of it, all of one sigma: subsampled groups of records;
 * included once per instruction set.
 *
 * Lengths are in sigmas from the mean of the single Gaussian, with the means r_i >= 0 of the mixture, weights c_i where
 * r_i > 0.  With u_i(z) = r_i z - r_i^2 / 2, the log ratio of component i and the single Gaussian, and h of
 * fp_two_points.h for the distance r_i, the crossing z solves sum c_i e^{u_i(z)} = B, and
 *
 *     H(P||Q) = sum c_i h(u_i),                       B = a v - w_0,          for a mixture P and Q = v N(0, 1),
 *     H(P||Q) = a sum c_i e^{u_i} h(-u_i),            B = (w - a v_0) / a,    for a mixture Q and P = w N(0, 1);
 *
 * w_0 and v_0 are the weights at 0.  No term is negative: the constant at 0 is exchanged for the sum at the crossing.
 *
 * For any z both are exact with sum c_i e^{u_i(z)} in the place of B; the tangent takes the difference back, and what
 * is left is of second order: docs/proofs/monotone_pieces.md, theorem 3.6. No sign has to be proved. */
/* bounds: proved - rounding of powers, of their sum and of the tangent, a few units of 2^-53 each; thresholds for
 * choosing the general path */

enum { FP_NAME(FP_ONE_SIDED_COMPONENTS) = 64, FP_NAME(FP_ONE_SIDED_STEPS) = 40 };

typedef struct {
    int n, mixture_is_p;
    double r[FP_NAME(FP_ONE_SIDED_COMPONENTS)], r_low[FP_NAME(FP_ONE_SIDED_COMPONENTS)];
    double weight[FP_NAME(FP_ONE_SIDED_COMPONENTS)], log_weight[FP_NAME(FP_ONE_SIDED_COMPONENTS)];
    double least_r, rounding;
    fp_two_points constant; /* weights at 0 */
} FP_NAME(fp_one_sided);

/* 0 where the pair is none of this form. */
static int FP_NAME(fp_one_sided_from_pair)(const FP_NAME(fp_pair) * pair, FP_NAME(fp_one_sided) * out)
{
    const int mixture_is_p = pair->nq == 1, k = mixture_is_p ? pair->np : pair->nq;
    if ((pair->np > 1 && pair->nq > 1) || k > FP_NAME(FP_ONE_SIDED_COMPONENTS) || !FP_NAME(fp_has_one_sigma)(pair))
        return 0;
    const double *weight = mixture_is_p ? pair->w : pair->v, *mean = mixture_is_p ? pair->m : pair->n;
    const double centre = mixture_is_p ? pair->n[0] : pair->m[0], single = mixture_is_p ? pair->v[0] : pair->w[0];
    double at_zero = 0.0, side = 0.0;
    out->n = 0;
    out->mixture_is_p = mixture_is_p;
    out->least_r = INFINITY;
    for (int i = 0; i < k; ++i) {
        const fp_dd distance = fp_two_sum(mean[i], -centre);
        if (distance.hi == 0.0) {
            if (at_zero > 0.0)
                return 0;
            at_zero = weight[i];
            continue;
        }
        const double sign = distance.hi < 0.0 ? -1.0 : 1.0;
        const fp_dd half = fp_two_points_ratio(distance, pair->s[0]);
        if (side * sign < 0.0 || !(half.hi > 1e-9 && half.hi < 1e5 && weight[i] > 1e-150))
            return 0;
        side = sign;
        out->r[out->n] = half.hi;
        out->r_low[out->n] = half.lo;
        out->weight[out->n] = weight[i];
        out->log_weight[out->n++] = fp_log(weight[i]);
        out->least_r = 2.0 * half.hi < out->least_r ? 2.0 * half.hi : out->least_r;
    }
    out->rounding = 4e-16 + 1.2e-16 * out->n; /* of a power and its weight, and of their sum */
    out->constant = mixture_is_p ? fp_two_points_of(at_zero, 0.0, single, 0.0)
                                 : fp_two_points_of(single, 0.0, at_zero, 0.0);
    return out->n > 0;
}

/* log of sum c_i e^{u_i(z)}, to a few digits less than a double has, and its derivative */
FP_INLINE double FP_NAME(fp_one_sided_log_sum)(const FP_NAME(fp_one_sided) * g, double z, double *slope)
{
    double term[FP_NAME(FP_ONE_SIDED_COMPONENTS)], top = -INFINITY, sum = 0.0, first = 0.0;
    for (int i = 0; i < g->n; ++i) {
        term[i] = g->log_weight[i] + 2.0 * g->r[i] * (z - g->r[i]);
        top = term[i] > top ? term[i] : top;
    }
    for (int i = 0; i < g->n; ++i)
        term[i] = fp_exp(term[i] - top);
    for (int i = 0; i < g->n; ++i) {
        sum += term[i];
        first += 2.0 * g->r[i] * term[i];
    }
    *slope = first / sum;
    return top + fp_log(sum);
}

/* The z at which the sum is about e^log_b; NaN where it is not found. The logarithm of the sum is convex and each of
 * its terms is a lower bound: Newton's steps come down from the least z at which one of them reaches log_b. */
static double FP_NAME(fp_one_sided_crossing)(const FP_NAME(fp_one_sided) * g, double log_b)
{
    double z = INFINITY;
    for (int i = 0; i < g->n; ++i) {
        const double alone = 0.5 * (log_b - g->log_weight[i]) / g->r[i] + g->r[i];
        z = alone < z ? alone : z;
    }
    for (int step = 0; step < FP_NAME(FP_ONE_SIDED_STEPS); ++step) {
        double slope;
        const double value = FP_NAME(fp_one_sided_log_sum)(g, z, &slope) - log_b, next = z - value / slope;
        if (!(fabs(next - z) > 1e-9 * (1.0 + fabs(z)))) /* the next step is below a rounding: the steps square */
            return next;
        z = next;
    }
    return NAN;
}

/* The bracket for one epsilon, with NaN as value where nothing is proved. */
static void FP_NAME(fp_one_sided_bracket)(const FP_NAME(fp_one_sided) * g, double epsilon, double target, int logs,
                                          fp_bracket *out)
{
    double h[FP_NAME(FP_ONE_SIDED_COMPONENTS)], error[FP_NAME(FP_ONE_SIDED_COMPONENTS)];
    double power[FP_NAME(FP_ONE_SIDED_COMPONENTS)], scaled_error;
    fp_dd rise;
    out->value = NAN;
    if (!(epsilon >= -0.5 && epsilon < 300.0))
        return;
    const int p_first = g->mixture_is_p;
    const fp_dd scaled = p_first ? fp_two_points_loss(&g->constant, 0, epsilon, &rise, &scaled_error)
                                 : fp_two_points_coefficient(&g->constant, 0, epsilon, &rise, &scaled_error);
    if (!p_first && scaled.hi <= -scaled_error) { /* p <= a q everywhere */
        *out = (fp_bracket){0.0, 0.0, 0.0, -INFINITY, -INFINITY, -INFINITY};
        return;
    }
    const double a = fp_exp(epsilon), sign = p_first ? -1.0 : 1.0, bare = scaled.hi / FP_WEIGHT_SCALE;
    const double b = p_first ? bare * a : bare / a, b_error = scaled_error / fabs(scaled.hi) + 5e-16; /* relative */
    if (!(b > 1e-150 && b_error < 1e-6))
        return;
    const double z = FP_NAME(fp_one_sided_crossing)(g, fp_log(b));
    if (!(fabs(z) < 1e5))
        return;
    uint64_t irregular = 0;
    for (int i = 0; i < g->n; ++i) {
        /* u = 2 r (z - r) for r = r_i / 2 */
        const double difference = z - g->r[i], rest = fp_sum_error(z, -g->r[i], difference) - g->r_low[i];
        const double u = 2.0 * g->r[i] * difference;
        const double low = fp_product_error(2.0 * g->r[i], difference, u) + 2.0 * g->r[i] * rest
                           + 2.0 * g->r_low[i] * difference;
        const double raised = fp_exp_times(u, low, 1.0);
        const fp_two_points_parts part = fp_two_points_evaluate(g->r[i], g->r_low[i], -sign * u, -sign * low, 0.0);
        power[i] = u < -700.0 ? 0.0 : raised;
        h[i] = part.value;
        error[i] = part.error;
        irregular |= (u < 600.0) & part.is_regular ? 0 : 1;
    }
    if (irregular)
        return;
    double sum = 0.0, errors = 0.0, reached = 0.0;
    for (int i = 0; i < g->n; ++i) {
        const double own = g->weight[i] * power[i], term = h[i] * (p_first ? g->weight[i] : own);
        sum += term;
        errors += error[i] * term;
        reached += own;
    }
    const double tail = fp_ndtr(sign * z), gap = b - reached, log_gap = fabs(gap) / (b < reached ? b : reached) + 1e-14;
    const double shift = 1.1 * log_gap / g->least_r, density = fp_exp(-0.5 * z * z) * FP_INV_SQRT_2PI;
    const double tangent = sign * gap * tail, factor = p_first ? 1.0 : a;
    const double second = 1.1 * b * log_gap * shift * density; /* the density changes by e^(|z| shift) < 1.01 */
    const double inner = errors + g->rounding * sum + 1.1 * (b_error + g->rounding) * b * tail + second
                         + 4e-16 * fabs(tangent);
    if (!(log_gap < 1e-6 && shift * (fabs(z) + 1.0) < 1e-3))
        return;
    const double value = factor * (sum + tangent), whole = factor * inner * (1.0 + 1e-12) + 2e-15 * value;
    if (!(value > 1e-280 && 2.0 * whole <= target * value && (value < 0.5 || !logs)))
        return;
    const double low = value - whole, high = value + whole;
    *out = (fp_bracket){value, low, high, fp_log(value), fp_log(low), fp_log(high)};
    FP_NAME(fp_bracket_round_outward)(out);
}
