/* Sums of double-doubles times powers of two, with every rounding bounded; included once per instruction set. */
/* bounds: proved - rounding of the sum, of the loss and of results that are subnormal:
 * docs/proofs/monotone_pieces.md, theorem 3.13 */

/* A sum of double-doubles times powers of two, with an error bound in the same scale. */
typedef struct {
    fp_dd sum;
    double error;
    int64_t exponent;
    int empty;
} FP_NAME(fp_scaled_sum);

static void FP_NAME(fp_scaled_sum_add)(FP_NAME(fp_scaled_sum) *s, fp_dd term, double error, int64_t exponent)
{
    int own;
    if (term.hi == 0.0 && error == 0.0)
        return;
    frexp(fabs(term.hi) > error ? term.hi : error, &own);
    term = fp_dd_ldexp(term, -own);
    error = ldexp(error, -own);
    exponent += own;
    if (s->empty) {
        s->empty = 0;
        s->exponent = exponent;
    } else if (exponent > s->exponent) {
        int64_t down = s->exponent - exponent;
        s->sum = fp_dd_ldexp(s->sum, down);
        s->error = fp_dd_ldexp(fp_dd_set(s->error), down).hi;
        s->exponent = exponent;
    }
    int64_t down = exponent - s->exponent;
    s->sum = fp_dd_add(s->sum, fp_dd_ldexp(term, down));
    s->error += fp_dd_ldexp(fp_dd_set(error), down).hi + 0x1p-104 * fabs(s->sum.hi) + 0x1p-900;
}

/* log x + base, moved by what its roundings may be; -infinity for x = 0. */
static double FP_NAME(fp_log_moved)(double x, double base, double direction)
{
    const double log_x = log(x);
    return x > 0.0 ? log_x + base + direction * (FP_ROUND * (fabs(log_x) + fabs(base))) : -INFINITY;
}

/* Write the sum as a bracket whose upper end is `loss_sum` e^loss_log higher; `lossy` says whether there is a loss. */
static void FP_NAME(fp_scaled_sum_bracket)(FP_NAME(fp_scaled_sum) * s, int lossy, double loss_log, double loss_sum,
                                           fp_bracket *out)
{
    if (s->empty && !lossy) {
        *out = (fp_bracket){0.0, 0.0, 0.0, -INFINITY, -INFINITY, -INFINITY};
        return;
    }
    const double lifted = loss_log + 3e-14 * fabs(loss_log); /* also for the rounding of base */
    if (lossy) { /* choose a unit in which the loss does not overflow */
        double exponent = lifted / FP_LN2;
        int64_t least = exponent > -0x1p60 ? (int64_t)exponent : -(int64_t)0x1p60;
        if (s->empty || s->exponent < least - 500) {
            int64_t down = s->empty ? 0 : s->exponent - least;
            s->sum = fp_dd_ldexp(s->sum, down);
            s->error = fp_dd_ldexp(fp_dd_set(s->error), down).hi;
            s->exponent = least;
        }
    }
    double loss = 0.0, base = (double)s->exponent * FP_LN2;
    if (lossy)
        loss = loss_sum * (1.0 + 1e-9) * exp(lifted - base);
    double value = s->sum.hi > 0.0 ? s->sum.hi : 0.0, error = s->error * (1.0 + 1e-9) + 0x1p-900;
    double step = error + 0x1.01p-52 * value; /* the low part of the sum, and the rounding of the ends */
    double lower = s->sum.hi - step, upper = s->sum.hi + step + loss;
    lower = lower > 0.0 ? lower : 0.0;
    upper = upper > value ? upper : value;
    int k = s->exponent < -100000 ? -100000 : s->exponent > 100000 ? 100000 : (int)s->exponent;
    out->value = ldexp(value, k);
    out->lower = ldexp(lower, k);
    out->upper = upper > 0.0 ? nextafter(ldexp(upper, k), INFINITY) : 0.0;
    if (out->lower > 0.0 && out->lower < 1e-300)
        out->lower = nextafter(out->lower, 0.0);
    if (error + loss < 1e-3 * value) { /* the logarithm uses the low part, so that it is accurate near 0 too */
        out->log_value = fp_dd_log_scaled(s->sum, s->exponent).hi;
        out->log_lower = out->log_value - error / value * 1.01;
        out->log_upper = out->log_value + (error + loss) / value * 1.01;
    } else {
        out->log_value = log(value) + base;
        out->log_lower = FP_NAME(fp_log_moved)(lower, base, -1.0);
        out->log_upper = FP_NAME(fp_log_moved)(upper, base, 1.0);
    }
}

/* Round the logarithms outward, keep probabilities within [0, 1] and the value within its bounds. */
static void FP_NAME(fp_bracket_round_outward)(fp_bracket *out)
{
    double slack = 8.9e-16;
    if (out->log_lower > -INFINITY)
        out->log_lower -= slack * fabs(out->log_lower);
    if (out->log_upper > -INFINITY)
        out->log_upper += slack * fabs(out->log_upper);
    if (out->upper > 1.0)
        out->upper = 1.0;
    if (out->value > out->upper)
        out->value = out->upper;
    if (out->lower > out->value)
        out->lower = out->value;
    if (out->log_upper > 0.0)
        out->log_upper = 0.0;
    if (out->log_value > out->log_upper)
        out->log_value = out->log_upper;
    if (out->log_lower > out->log_value || out->log_lower != out->log_lower)
        out->log_lower = out->log_lower != out->log_lower ? -INFINITY : out->log_value;
}
