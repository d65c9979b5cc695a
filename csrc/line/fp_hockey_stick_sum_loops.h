/* P(E) - e^eps Q(E) in doubles and in double-doubles, with every rounding bounded; included once per instruction
 * set. */
/* bounds: proved - rounding of interval masses, of their sum in doubles and double-doubles, and of the loss:
 * docs/proofs/monotone_pieces.md, theorems 3.5 and 3.13 */

/* bound: none - P(E) below which sums in doubles are tried: sums of tails are no more accurate there */
#define FP_FAR_OUT 1e-15

/* Sum over one mixture of weight times mass of the interval, and a bound of its absolute error, in doubles. */
static void FP_NAME(fp_mixture_mass)(const fp_mixture *side, const double *restrict weight, double left, double right,
                                  double *restrict part, double *restrict slip, double *mass, double *error)
{
    const double *restrict mean = side->mean, *restrict inverse = side->inverse;
    for (int i = 0; i < side->n; ++i) {
        double a = (left - mean[i]) * inverse[i], b = (right - mean[i]) * inverse[i];
        a = a < -1e3 ? -1e3 : a > 1e3 ? 1e3 : a;
        b = b < -1e3 ? -1e3 : b > 1e3 ? 1e3 : b;
        part[i] = weight[i] * fp_ndtr_diff(a, b);
        slip[i] = weight[i] * (fabs(a) * fp_exp(-0.5 * a * a) + fabs(b) * fp_exp(-0.5 * b * b));
    }
    for (int i = side->n; i < side->padded; ++i)
        part[i] = slip[i] = 0.0;
    fp_v8 sum = {0}, slips = {0};
    for (int i = 0; i < side->padded; i += FP_LANES) {
        sum += FP_AT(part, i);
        slips += FP_AT(slip, i);
    }
    *mass = FP_NAME(fp_v8_sum)(sum);
    *error = FP_NDTR_DIFF_ERROR * *mass + FP_ROUND * FP_NAME(fp_v8_sum)(slips) + 1e-300;
}

/* P(E) - e^eps Q(E) in doubles; returns 0 when the relative width is above the target or when it was stopped. */
static int FP_NAME(fp_hockey_stick_in_doubles)(const fp_log_ratio *r, double epsilon, const fp_optimal_set *set,
                                               double target, int logs, fp_bracket *out)
{
    double sum = 0.0, error = 0.0, factor, *part = r->scratch, *slip = part + r->p.padded + r->q.padded;
    if (!(epsilon < 600.0))
        return 0;
    factor = fp_exp(epsilon);
    double size = 0.0;
    for (int i = 0; i < set->count; ++i) {
        double p, q, pe, qe;
        if (fp_stop_requested(r->stop, 4 * (r->np + r->nq)))
            return 0;
        FP_NAME(fp_mixture_mass)(&r->p, r->w, set->interval[2 * i].hi, set->interval[2 * i + 1].hi, part, slip, &p,
                                 &pe);
        FP_NAME(fp_mixture_mass)(&r->q, r->v, set->interval[2 * i].hi, set->interval[2 * i + 1].hi, part, slip, &q,
                                 &qe);
        sum += p - factor * q;
        size += p + factor * q;
        error += pe + factor * qe;
    }
    error += (FP_ROUND + 2.3e-16 * (r->p.padded + r->q.padded + set->count)) * size;
    double loss =
        set->loss_count ? set->loss_sum * (1.0 + 1e-9) * exp(set->loss_log) * (1.0 + 1e-12 * fabs(set->loss_log)) : 0.0;
    double size_of_log = logs && sum > 0.3 ? fabs(log(sum)) : 1.0;
    if (!(sum > 1e-280) || !(2.0 * error + loss <= target * sum * (size_of_log < 1.0 ? size_of_log : 1.0)))
        return 0;
    out->value = sum;
    out->lower = sum - error;
    out->upper = sum + error + loss;
    out->log_value = log(sum);
    out->log_lower = log(out->lower);
    out->log_upper = log(out->upper);
    return 1;
}

/* Add the distribution functions at the first `count` of eight ends of intervals to the sums of their sets; `sign` is -1
 * for a left end. */
static void FP_NAME(fp_optimal_set_add_ends)(const fp_log_ratio *r, const double *x, const int *sign,
                                             fp_optimal_set **owner, int count)
{
    FP_NAME(fp_tail_sums) p, q;
    FP_NAME(fp_tails_at_points)(&r->p, x, &p);
    FP_NAME(fp_tails_at_points)(&r->q, x, &q);
    for (int k = 0; k < count; ++k) {
        fp_optimal_set *set = owner[k];
        const double *before_p = r->p.before + 2 * (int)p.count[k], *before_q = r->q.before + 2 * (int)q.count[k];
        fp_dd in_p = fp_dd_add(fp_dd_make(before_p[0], before_p[1]), fp_two_sum(p.high[k], p.low[k]));
        fp_dd in_q = fp_dd_add(fp_dd_make(before_q[0], before_q[1]), fp_two_sum(q.high[k], q.low[k]));
        set->p = fp_dd_add(set->p, sign[k] < 0 ? fp_dd_neg(in_p) : in_p);
        set->q = fp_dd_add(set->q, sign[k] < 0 ? fp_dd_neg(in_q) : in_q);
        set->p_error += p.error[k];
        set->q_error += q.error[k];
    }
}

/* P(E) and Q(E) of `count` sets from the tails beyond the ends of their intervals. */
static void FP_NAME(fp_optimal_sets_sum)(const fp_log_ratio *r, fp_optimal_set *sets, int count)
{
    double x[FP_LANES];
    fp_optimal_set *owner[FP_LANES];
    int sign[FP_LANES], filled = 0;
    for (int e = 0; e < count; ++e) {
        fp_optimal_set *set = &sets[e];
        /* a crossing beyond all doubles leaves the empty interval [inf, inf], whose left end is not subtracted below */
        int last = 2 * set->count - 1;
        int unbounded = set->count && set->interval[last].hi == INFINITY && set->interval[last - 1].hi < INFINITY;
        const double *all_p = r->p.before + 2 * r->np, *all_q = r->q.before + 2 * r->nq;
        set->p = unbounded ? fp_dd_make(all_p[0], all_p[1]) : fp_dd_set(0.0);
        set->q = unbounded ? fp_dd_make(all_q[0], all_q[1]) : fp_dd_set(0.0);
        set->p_error = 0x1p-104 * (r->np + 4) * (2 * set->count + 1); /* weights before a component, and their sum */
        set->q_error = 0x1p-104 * (r->nq + 4) * (2 * set->count + 1);
        for (int i = 0; i < 2 * set->count && !fp_stop_requested(r->stop, r->np + r->nq); ++i) {
            if (!isfinite(set->interval[i].hi))
                continue;
            x[filled] = set->interval[i].hi;
            sign[filled] = i % 2 ? 1 : -1;
            owner[filled++] = set;
            if (filled == FP_LANES) {
                FP_NAME(fp_optimal_set_add_ends)(r, x, sign, owner, filled);
                filled = 0;
            }
        }
    }
    for (int k = filled; k < FP_LANES && filled; ++k)
        x[k] = x[filled - 1];
    if (filled)
        FP_NAME(fp_optimal_set_add_ends)(r, x, sign, owner, filled);
}

/* Whether both sums lie between 0 and the mass of the whole line. */
static int FP_NAME(fp_masses_of_a_set)(const fp_log_ratio *r, const fp_optimal_set *set)
{
    double all_p = r->p.before[2 * r->np], all_q = r->q.before[2 * r->nq];
    return set->p.hi >= -set->p_error && set->p.hi <= all_p * (1.0 + 1e-15) + set->p_error
           && set->q.hi >= -set->q_error && set->q.hi <= all_q * (1.0 + 1e-15) + set->q_error;
}

/* P(E) - e^eps Q(E) from these sums; returns 0 when the relative width is above the target, or when they are no masses
 * of a set. */
static int FP_NAME(fp_hockey_stick_from_tails)(const fp_log_ratio *r, double epsilon, const fp_optimal_set *set,
                                               double target, int logs, fp_bracket *out)
{
    if (!(epsilon < 600.0) || !FP_NAME(fp_masses_of_a_set)(r, set))
        return 0;
    fp_dd factor = fp_dd_exp(fp_dd_set(epsilon)), part = fp_dd_mul(factor, set->q), sum = fp_dd_sub(set->p, part);
    double error = (set->p_error + factor.hi * set->q_error + 0x1p-97 * (fabs(set->p.hi) + fabs(part.hi))) * 1.01;
    double loss =
        set->loss_count ? set->loss_sum * (1.0 + 1e-9) * exp(set->loss_log) * (1.0 + 1e-12 * fabs(set->loss_log)) : 0.0;
    double value = sum.hi, size_of_log = logs && value > 0.3 ? fabs(log(value)) : 1.0;
    error += 0x1.01p-52 * fabs(value); /* the low part of the sum, and the rounding of the ends */
    if (!(value > 1e-280) || !(2.0 * error + loss <= target * value * (size_of_log < 1.0 ? size_of_log : 1.0)))
        return 0;
    double log_value = log(value), slip = error / value * 1.01;
    *out = (fp_bracket){value, value - error, value + (error + loss), log_value, log_value - slip,
                        log_value + slip + 1.01 * (loss / value)};
    return 1;
}

/* Add the coefficient (w - e^eps v) times the mass of [left, right] under N(mean, sigma^2). */
static void FP_NAME(fp_scaled_sum_add_interval)(FP_NAME(fp_scaled_sum) *s, fp_dd coefficient, double coefficient_error,
                                        int64_t exponent, fp_dd left, fp_dd right, double mean, double sigma)
{
    fp_dd a = left, b = right;
    double slip = 0.0;
    int64_t k;
    if (coefficient.hi == 0.0 && coefficient_error == 0.0)
        return;
    if (isfinite(left.hi))
        a = fp_dd_div_d(fp_dd_add_d(left, -mean), sigma);
    if (isfinite(right.hi))
        b = fp_dd_div_d(fp_dd_add_d(right, -mean), sigma);
    const double reach = 0x1p25;
    if (a.hi > reach || b.hi < -reach) { /* below e^(-2^49): at most |coefficient| e^(-z^2 / 2), whatever its sign */
        double z = a.hi > reach ? a.hi : b.hi, log2_mass = -0.72 * z * z;
        int64_t bound = log2_mass > -0x1p60 ? (int64_t)log2_mass : -(int64_t)0x1p60;
        FP_NAME(fp_scaled_sum_add)(s, fp_dd_set(0.0), fabs(coefficient.hi) * (1.0 + 1e-9), exponent + bound + 1);
        return;
    }
    if ((isfinite(a.hi) && a.hi < -reach) || (isfinite(b.hi) && b.hi > reach)) /* a tail beyond is added or left out */
        FP_NAME(fp_scaled_sum_add)(s, fp_dd_set(0.0), fabs(coefficient.hi) * (1.0 + 1e-9),
                                   exponent + (int64_t)(-0.72 * reach * reach) + 1);
    if (a.hi < -reach)
        a = fp_dd_set(-INFINITY);
    if (b.hi > reach)
        b = fp_dd_set(INFINITY);
    fp_dd mass = fp_dd_ndtr_diff_scaled(a, b, &k);
    /* the effect of the roundings of a and b: |z| phi(z) each, in the scale of the mass, and half as much again for
     * the argument of exp */
    if (isfinite(a.hi))
        slip += 0.6 * fabs(a.hi) * exp(-0.5 * a.hi * a.hi - (double)k * FP_LN2);
    if (isfinite(b.hi))
        slip += 0.6 * fabs(b.hi) * exp(-0.5 * b.hi * b.hi - (double)k * FP_LN2);
    fp_dd term = fp_dd_mul(coefficient, mass);
    double error =
        (0x1p-94 * fabs(mass.hi) + 0x1p-103 * slip) * fabs(coefficient.hi) + coefficient_error * fabs(mass.hi);
    FP_NAME(fp_scaled_sum_add)(s, term, error * (1.0 + 1e-9) + 0x1p-1060, exponent + k); /* where products underflow */
}

/* P(E) - e^eps Q(E) in double-doubles; the result must not be used when it was stopped. */
static void FP_NAME(fp_hockey_stick_in_double_doubles)(const fp_log_ratio *r, double epsilon, const fp_optimal_set *set,
                                                       fp_bracket *out)
{
    FP_NAME(fp_scaled_sum) s = {{0.0, 0.0}, 0.0, 0, 1};
    int64_t ka;
    fp_dd factor = fp_dd_exp_scaled(fp_dd_set(epsilon), &ka);
    double factor_error = epsilon == 0.0 ? 0.0 : 0x1p-97;
    for (int n = 0; n < set->count; ++n) {
        fp_dd left = set->interval[2 * n], right = set->interval[2 * n + 1];
        int i = 0, j = 0;
        while ((i < r->np || j < r->nq) && !fp_stop_requested(r->stop, 256)) {
            int order = i == r->np ? 1 : j == r->nq ? -1 : 0;
            if (!order)
                order = r->m[i] != r->n[j] ? (r->m[i] < r->n[j] ? -1 : 1) : (r->s[i] > r->t[j]) - (r->s[i] < r->t[j]);
            if (order == 0 && ka < 300) { /* a component of both mixtures: subtract the weights first */
                fp_dd q = fp_dd_ldexp(fp_dd_mul_d(factor, r->v[j]), ka), c = fp_dd_add_d(fp_dd_neg(q), r->w[i]);
                double error =
                    epsilon == 0.0 ? 0.0 : factor_error * q.hi + 0x1p-104 * fabs(c.hi)
                                           + fp_dd_ldexp(fp_dd_set(0x1p-1070), ka).hi;
                FP_NAME(fp_scaled_sum_add_interval)(&s, c, error, 0, left, right, r->m[i], r->s[i]);
                ++i, ++j;
                continue;
            }
            if (order <= 0) {
                FP_NAME(fp_scaled_sum_add_interval)(&s, fp_dd_set(r->w[i]), 0.0, 0, left, right, r->m[i], r->s[i]);
                ++i;
            }
            if (order >= 0) {
                fp_dd c = fp_dd_neg(fp_dd_mul_d(factor, r->v[j]));
                FP_NAME(fp_scaled_sum_add_interval)(&s, c, 2.0 * factor_error * fabs(c.hi), ka, left, right, r->n[j],
                                                    r->t[j]);
                ++j;
            }
        }
    }
    FP_NAME(fp_scaled_sum_bracket)(&s, set->loss_count > 0, set->loss_log, set->loss_sum, out);
    if (set->gain > 1e-3 * out->value && !(out->upper - out->value < 1e-3 * out->value)) {
        out->value += set->gain;
        out->log_value = log(out->value);
    }
}

/* Masses of intervals of the line with their errors, for all eps: of cells between some of the means, which cover
 * the line, and of the pieces of L. Those for which the time did not suffice are not counted. */
typedef struct {
    fp_interval_mass *cell, *piece;
    int cells, pieces;
    double all; /* an upper bound of the mass of P */
} FP_NAME(fp_interval_masses);

static fp_interval_mass FP_NAME(fp_interval_mass_of)(const fp_log_ratio *r, double left, double right)
{
    fp_interval_mass s;
    double *part = r->scratch, *slip = part + r->p.padded + r->q.padded,
           rounding = 2.3e-16 * (r->p.padded + r->q.padded);
    FP_NAME(fp_mixture_mass)(&r->p, r->w, left, right, part, slip, &s.p, &s.p_error);
    FP_NAME(fp_mixture_mass)(&r->q, r->v, left, right, part, slip, &s.q, &s.q_error);
    s.p_error += rounding * s.p;
    s.q_error += rounding * s.q;
    return s;
}

/* Bracket of H after the deadline. Any partition C of the line gives H >= sum of (P(c) - e^eps Q(c))^+. With E on
 * which L > eps and D on which L < eps, both proved, H <= P - P(D) - e^eps Q(E), and any part of E or D gives a
 * valid bound. */
static void FP_NAME(fp_hockey_stick_from_masses)(const fp_pieces *pieces, const FP_NAME(fp_interval_masses) * known,
                                                 double epsilon, fp_bracket *out)
{
    double sum = 0.0, below = 0.0, least, most, factor = epsilon < 600.0 ? fp_exp(epsilon) : INFINITY;
    double lower = factor < INFINITY ? fp_lower_bound_from_cells(known->cell, known->cells, factor, &sum) : 0.0;
    for (int k = 0; k < known->pieces; ++k) {
        const fp_interval_mass *s = &known->piece[k];
        double gain = 0.0;
        FP_NAME(fp_piece_bounds)(&pieces->piece[k], &least, &most);
        if (most <= epsilon)
            gain = s->p - s->p_error;
        else if (least >= epsilon && factor < INFINITY)
            gain = factor * (s->q - s->q_error) * (1.0 - FP_ROUND);
        below += gain > 0.0 ? gain : 0.0;
    }
    double rounding = 2.3e-16 * (known->cells + known->pieces + 4);
    double upper = (known->all - below * (1.0 - rounding)) * (1.0 + 1e-15) + 1e-300;
    lower = lower > 0.0 ? lower : 0.0;
    upper = upper < 1.0 ? upper > lower ? upper : lower : 1.0;
    double value = lower > 0.0 ? sum : 0.5 * upper;
    *out = (fp_bracket){value, lower, upper, log(value), log(lower), log(upper)};
    FP_NAME(fp_bracket_round_outward)(out);
}
