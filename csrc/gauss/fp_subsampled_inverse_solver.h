/* Inverses of the subsampled Gaussian mechanism: the least epsilon, or the least noise, for a target delta, with bounds.
 *
 * Notation of fp_two_points.h: q is the rate, H = A h(u) with h the curve of the Gaussian mechanism at r = 1 / (2 sigma).
 * "Remove" has A = q and e^u = 1 + (e^epsilon - 1) / q, "add" has A = 1 - (1 - q) e^epsilon and e^u = q e^epsilon / A,
 * hence e^-epsilon = 1 + q (e^-u - 1) and A = q / (q + (1 - q) e^u).
 *
 * The approximation.  Where A is known the inverse is that of the Gaussian mechanism for the target delta / A
 * (fp_gauss_solver.h).  For epsilon in the add direction log A(u) + log h(u) is concave and falls in u (both terms do,
 * fp_gauss_inverse.h), so Newton's method is monotone from the right, where h(u) = delta.
 *
 * The bounds need no property of the approximation.  H falls in epsilon and, by data processing, in sigma: an x at which
 * the upper bound of log H is below log delta is at least the least one, and an x at which the lower bound is above
 * log delta is at most that.  Both are sought at growing distances from the approximation, in the order of the doubles;
 * where one of them is far from it, the other is sought again from there.
 *
 * No include guard: included once per instruction set, after fp_gauss_solver.h. */
/* bounds: proved - the rounding of log delta, with a margin; the rest steers the search */

/* bound: proved - relative error of a logarithm: fp_log errs by 0.98 ulp */
#define FP_SUBSAMPLED_LOG_ERROR 4e-16
enum {
    FP_NAME(FP_SUBSAMPLED_NEWTON_STEPS) = 60,
    FP_NAME(FP_SUBSAMPLED_FAR) = 20 /* log2 of the doubles between a bound and an approximation that is not one */
};

/* The approximate u with log A(u) + log h(u) = log delta in the add direction */
static double FP_NAME(fp_subsampled_add_u)(double rate, double r, double delta)
{
    const double *const in[] = {&r, &delta};
    double u;
    FP_NAME(gaussian_epsilon)(in, &u, 1);
    const double target = fp_log(delta), log_rate = fp_log(rate), log_rest = fp_log1p(-rate);
    for (int step = 0; step < FP_NAME(FP_SUBSAMPLED_NEWTON_STEPS) && u > 0.0 && u < INFINITY; step++) {
        const double log_sum = fp_logaddexp(log_rate, log_rest + u);
        const fp_gauss_parts p = fp_gauss_evaluate(r, u);
        const double density = fp_gauss_density(p.a, p.a_low);
        const double rate_of_h = p.is_bulk ? density * p.far / (1.0 - density * p.bulk) : p.far * p.scale / p.tail;
        const double slope = rate_of_h + fp_exp(log_rest + u - log_sum);
        const double excess = (log_rate - log_sum) + fp_gaussian_log_delta(r, u) - target;
        const double next = u + excess / slope;
        if (!(next < u)) /* the root, but for rounding */
            break;
        u = next > 0.0 ? next : 0.0;
    }
    return u;
}

/* An x near the least epsilon or the least sigma; NaN or anything else where there is none */
static double FP_NAME(fp_subsampled_approximate)(double rate, double known, double delta, int adding, int unknown)
{
    double x, target = delta, u = known;
    const double *const in[] = {unknown == FP_GAUSS_OF_EPSILON ? &known : &u, &target};
    if (unknown == FP_GAUSS_OF_EPSILON) {
        const double r = 0.5 / known;
        if (adding) {
            u = FP_NAME(fp_subsampled_add_u)(rate, r, delta);
            return rate > 0.5 && u > 1.0 ? u - fp_logaddexp(fp_log(rate), fp_log1p(-rate) + u)
                                         : -fp_log1p(rate * fp_expm1(-u));
        }
        known = r;
        target = delta < rate ? delta / rate : 1.0;
        FP_NAME(gaussian_epsilon)(in, &u, 1);
        x = fp_log1p(rate * fp_expm1(u));
        return u < 700.0 ? x : u + fp_log(rate);
    }
    const double epsilon = known, rise = fp_expm1(epsilon);
    double mass = rate;
    if (adding && rate < 1.0) {
        mass = rate - (1.0 - rate) * rise;
        u = epsilon + fp_log(rate / mass);
    } else {
        u = rise / rate < 1e300 ? fp_log1p(rise / rate) : epsilon - fp_log(rate);
    }
    target = delta < mass ? delta / mass : 1.0;
    FP_NAME(gaussian_noise)(in, &x, 1);
    return x;
}

/* Whether log H at x is certainly at most log delta (side 1), or certainly above it (side -1) */
FP_ONCE int FP_NAME(fp_subsampled_is_beyond)(double rate, double known, double x, double log_delta, int adding,
                                             int unknown, int side)
{
    const int of_epsilon = unknown == FP_GAUSS_OF_EPSILON;
    const double margin = log_delta > -INFINITY ? FP_SUBSAMPLED_LOG_ERROR * -log_delta : 0.0;
    const fp_gauss_bounded found =
        fp_subsampled_bounded(rate, of_epsilon ? known : x, of_epsilon ? x : known, adding, 1);
    return side > 0 ? found.upper <= log_delta - margin : found.lower > log_delta + margin;
}

/* The x of that kind that is found nearest to `from`, in steps that grow from an ulp; `last` if there is none before */
static double FP_NAME(fp_subsampled_search)(double rate, double known, double from, double last, double log_delta,
                                            int adding, int unknown, int side)
{
    const int64_t start = (int64_t)fp_bits(from), end = (int64_t)fp_bits(last);
    int64_t not_yet = start, reached = end;
    for (int power = 0; power < 64; power += 2) {
        const int64_t step = (int64_t)1 << power;
        if (step >= (side > 0 ? end - start : start - end))
            break;
        const int64_t at = side > 0 ? start + step : start - step;
        if (FP_NAME(fp_subsampled_is_beyond)(rate, known, fp_double((uint64_t)at), log_delta, adding, unknown, side)) {
            reached = at;
            break;
        }
        not_yet = at;
    }
    /* far from the approximation the steps are coarse: halve the last one to a relative 2^-36 */
    while ((side > 0 ? reached - not_yet : not_yet - reached) > ((int64_t)1 << 16)) {
        const int64_t at = not_yet + (reached - not_yet) / 2;
        if (FP_NAME(fp_subsampled_is_beyond)(rate, known, fp_double((uint64_t)at), log_delta, adding, unknown, side))
            reached = at;
        else
            not_yet = at;
    }
    return fp_double((uint64_t)reached);
}

/* The least epsilon for (rate, sigma, delta), or the least sigma for (rate, epsilon, delta), with bounds; NaN outside
 * the domains */
static fp_gauss_bounded FP_NAME(fp_subsampled_inverse)(double rate, double known, double delta, int adding, int unknown)
{
    const int of_epsilon = unknown == FP_GAUSS_OF_EPSILON;
    const int valid = (rate >= 0.0) & (rate <= 1.0) & (delta >= 0.0) & (delta <= 1.0)
                      & (of_epsilon ? known > 0.0 : known >= 0.0);
    fp_gauss_bounded out = {NAN, NAN, NAN};
    if (!valid)
        return out;
    out.value = out.lower = out.upper = 0.0;
    if (delta == 1.0 || rate == 0.0 || known == INFINITY) /* H <= 1; P is Q, or H = 0 */
        return out;
    const double log_delta = delta > 0.0 ? fp_log(delta) : -INFINITY;
    const double least = of_epsilon ? 0.0 : 5e-324; /* noise of 0 is no mechanism: the limit is below every noise */
    if (FP_NAME(fp_subsampled_is_beyond)(rate, known, least, log_delta, adding, unknown, 1)) {
        out.upper = least;
        return out;
    }
    double x = FP_NAME(fp_subsampled_approximate)(rate, known, delta, adding, unknown);
    x = x >= least ? x : x < least ? least : 1.0;
    out.value = x;
    out.upper = FP_NAME(fp_subsampled_search)(rate, known, x, INFINITY, log_delta, adding, unknown, 1);
    out.lower = FP_NAME(fp_subsampled_search)(rate, known, x, 0.0, log_delta, adding, unknown, -1);
    const int64_t at = (int64_t)fp_bits(x), far = (int64_t)1 << FP_NAME(FP_SUBSAMPLED_FAR);
    if (out.upper < INFINITY && (int64_t)fp_bits(out.upper) - at > far)
        out.lower = FP_NAME(fp_subsampled_search)(rate, known, out.upper, out.lower, log_delta, adding, unknown, -1);
    else if (out.lower > 0.0 && at - (int64_t)fp_bits(out.lower) > far)
        out.upper = FP_NAME(fp_subsampled_search)(rate, known, out.lower, out.upper, log_delta, adding, unknown, 1);
    if (!(out.lower <= x && x <= out.upper))
        out.value = out.lower + 0.5 * (out.upper - out.lower);
    return out;
}
