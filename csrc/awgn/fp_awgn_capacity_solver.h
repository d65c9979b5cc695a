/* C(d, R) by whatever method serves: the solvers of fp_awgn_solver.h, and bounds in closed form beyond their reach.
 *
 * Notation of fp_awgn.h; V_d(R) is the volume of the ball of radius R.  The bounds in closed form are
 *
 *   average power: C <= (d/2) log(1 + R^2/d), and C <= R^2 / 2;
 *   one sphere at low power: C >= (R^2/2) (1 - R^2);
 *   entropy power, X uniform in the ball: C >= (d/2) log(1 + V_d(R)^(2/d) / (2 pi e));
 *   an output density that is flat to the radius R + b, with e^(-(rho - R - b)^2/2) times that outside: since
 *   rho <= R + Z_1 + |Z|^2 / (2R) given ||X|| = R, the worst case, with a = (d-1)/R, phi and Q the normal density and
 *   tail at b,
 *
 *       C <= log V_d(R) - (d/2) log(2 pi e) + log((1 + b/R)^d + (d/R) e^(ab) sqrt(2 pi) e^(a^2/2) Phi(a))
 *            + ((1 + b^2) Q - b phi) / 2 + ((d+1) phi - d b Q) / (2R) + d (d+2) / (8 R^2);
 *
 *   d = 1 and b = 0, without that loss (McKellips 2004): C <= log(1 + 2 R / sqrt(2 pi e)).
 *
 * No include guard: fp_awgn_solver.h includes this, once per instruction set. */
/* bounds: proved - docs/proofs/roundings.md, 13.20: rounding of R^2 / 2 and of the logarithm of the volume */

/* log(1 + e^x) */
static double FP_NAME(fp_awgn_log1pexp)(double x) { return x < 700.0 ? log1p(exp(x)) : x; }

static double FP_NAME(fp_awgn_closed_upper)(double d, double radius, double log_radius)
{
    if (radius < 1e-7)
        return radius > 0.0 ? nextafter(0.5 * radius * radius * (1.0 + 1e-15), INFINITY) : 0.0;
    double best = radius > 1e150 ? 0.5 * d * (2.0 * log_radius - log(d) + 1e-15) : 0.5 * d * log1p(radius * radius / d);
    double other = INFINITY;
    if (d == 1.0) {
        other = FP_NAME(fp_awgn_log1pexp)(log(2.0) + log_radius - 0.5 * FP_AWGN_LOG_2_PI_E);
    } else if (radius > d) {
        const double b = sqrt(2.0 * (log_radius - log(d))), a = (d - 1.0) / radius, root = sqrt(2.0 * FP_PI);
        const double phi = exp(-0.5 * b * b) / root, tail = 0.5 * erfc(b / sqrt(2.0));
        const double outside = d / radius * root * exp(a * b + 0.5 * a * a) * 0.5 * erfc(-a / sqrt(2.0));
        const double beyond = 0.5 * ((1.0 + b * b) * tail - b * phi) + ((d + 1.0) * phi - d * b * tail) / (2.0 * radius)
                              + d * (d + 2.0) / (8.0 * radius * radius);
        other = FP_NAME(fp_awgn_log_volume)(d, log_radius) - 0.5 * d * FP_AWGN_LOG_2_PI_E
                + log1p(expm1(d * log1p(b / radius)) + outside) + beyond;
    }
    best = other < best ? other : best;
    return best + FP_AWGN_CLOSED_ERROR * (fabs(best) + d);
}

static double FP_NAME(fp_awgn_closed_lower)(double d, double radius, double log_radius)
{
    double best = 0.5 * radius * radius * (1.0 - radius * radius - 1e-15) - 5e-324;
    if (!(radius < 1e-7)) {
        best = 0.5 * d
               * FP_NAME(fp_awgn_log1pexp)(2.0 / d * FP_NAME(fp_awgn_log_volume)(d, log_radius) - FP_AWGN_LOG_2_PI_E);
        best -= FP_AWGN_CLOSED_ERROR * (fabs(best) + d);
    }
    return best > 0.0 ? best : 0.0;
}

/* The limit of C for large R: the volume of a ball whose radius is larger by an empirical constant. */
static double FP_NAME(fp_awgn_asymptotic_value)(double d, double log_radius)
{
    return FP_NAME(fp_awgn_log_volume)(d, log_radius) - 0.5 * d * FP_AWGN_LOG_2_PI_E
           + log1p(0.5 * FP_AWGN_EMPIRICAL * d * exp(-log_radius));
}

/* The bounds in closed form; log_radius stands in for a radius that overflows. */
static void FP_NAME(fp_awgn_closed_form)(double d, double radius, double log_radius, fp_awgn_result *out)
{
    const int tiny = radius < FP_AWGN_SMALLEST_RADIUS;
    const double value = tiny ? 0.5 * radius * radius : FP_NAME(fp_awgn_asymptotic_value)(d, log_radius);
    out->lower = FP_NAME(fp_awgn_closed_lower)(d, radius, log_radius);
    out->upper = FP_NAME(fp_awgn_closed_upper)(d, radius, log_radius);
    out->value = value < out->lower ? out->lower : value > out->upper ? out->upper : value;
    out->slope = tiny ? radius : d / radius;
    out->count = 1;
    out->radius[0] = radius;
    out->weight[0] = 1.0;
    out->evaluations = 0;
    out->status = FP_AWGN_DONE;
    out->method = tiny ? FP_AWGN_BY_ONE_SPHERE : FP_AWGN_BY_CLOSED_FORM;
}

/* Intersect a bracket that a solver could not close with the bounds in closed form. */
static void FP_NAME(fp_awgn_tighten)(double d, double radius, fp_awgn_result *out)
{
    const double log_radius = log(radius), lower = FP_NAME(fp_awgn_closed_lower)(d, radius, log_radius);
    const double upper = FP_NAME(fp_awgn_closed_upper)(d, radius, log_radius);
    if (out->lower >= lower && out->upper <= upper)
        return;
    out->lower = out->lower > lower ? out->lower : lower;
    out->upper = out->upper < upper ? out->upper : upper;
    if (!(out->lower <= out->value && out->value <= out->upper)) {
        const double value = FP_NAME(fp_awgn_asymptotic_value)(d, log_radius);
        out->value = value < out->lower ? out->lower : value > out->upper ? out->upper : value;
        out->slope = d / radius;
    }
    out->method |= FP_AWGN_BY_CLOSED_FORM;
}

/* C(d, R) with bounds, to relative width rtol where a solver reaches that, for R >= 0; `start` may be NULL or a
 * solution nearby. */
static void FP_NAME(fp_awgn_capacity)(double d, double radius, double rtol, const fp_awgn_result *start,
                                      fp_awgn_result *out)
{
    if (!(radius >= FP_AWGN_SMALLEST_RADIUS && radius <= FP_AWGN_LARGEST_RADIUS)) {
        FP_NAME(fp_awgn_closed_form)(d, radius, log(radius), out);
        return;
    }
    FP_NAME(fp_awgn_solve)(d, radius, rtol, start, out);
    if (out->status != FP_AWGN_DONE)
        FP_NAME(fp_awgn_tighten)(d, radius, out);
}

/* Value, lower and upper bound of C(d, R); NaN outside 1 <= d <= 1e6 (whole), 0 <= R < inf and 1e-13 <= rtol <= 0.1. */
static void FP_NAME(fp_awgn_bounds)(double d, double radius, double rtol, double *found)
{
    const int valid = d >= 1.0 && d <= FP_AWGN_LARGEST_DIMENSION && d == floor(d) && radius >= 0.0 && radius < INFINITY
                      && rtol >= 1e-13 && rtol <= 0.1;
    fp_awgn_result out;
    out.value = out.lower = out.upper = NAN;
    if (valid)
        FP_NAME(fp_awgn_capacity)(d, radius, rtol, NULL, &out);
    found[0] = out.value;
    found[1] = out.lower > out.value ? out.value : out.lower;
    found[2] = out.upper < out.value ? out.value : out.upper;
}
