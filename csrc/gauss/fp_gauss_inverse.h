/* Inverses of the privacy curve: epsilon for a target delta, and the noise for a target (epsilon, delta).
 *
 * Notation of fp_gauss.h.  The unknown x is epsilon (r given) or r (epsilon given).  The residual is
 *
 *     H(x) = log delta(x) - log target                         for a target of at most 1/2,
 *     H(x) = log(1 - target) - log(1 - delta(x))               above,
 *
 * falling in epsilon and rising in r.  log delta and log(1 - delta) are concave in epsilon (the privacy loss is normal,
 * and (1 - e^-t)_+ and min(1, e^t) are log-concave: Prekopa), so Newton's method is monotone after the first step.
 *
 * Sides.  H is known up to rounding; `margin` is at least twice its error (docs/proofs/gaussian.md, theorem 1.7).  A
 * point with H <= -margin/2 is safe: the true delta is at most the target.  The solver aims at H = -margin and stops as soon as a
 * point has -3/2 margin <= H <= -margin/2, or when the safe and the unsafe end of the bracket are neighbours; the
 * result is the safe end, a point at which H was evaluated.  With `below` it aims at +margin and returns a point on the
 * other side of the truth.  A step that leaves the bracket, and every step after the 32nd, halves the bracket in the
 * order of the doubles, so 100 steps always suffice and the bracket may be [0, inf].
 */
/* bounds: proved - margin of the residual, at least twice its error: docs/proofs/gaussian.md, theorem 1.7; where a
 * first guess lies steers the search alone */
#ifndef FP_GAUSS_INVERSE_H
#define FP_GAUSS_INVERSE_H

#include "gauss/fp_gauss.h"

enum { FP_GAUSS_BLOCK = 64, FP_GAUSS_NEWTON_STEPS = 32, FP_GAUSS_STEPS = 100 };
enum { FP_GAUSS_OF_EPSILON = 0, FP_GAUSS_OF_R = 1 };

/* target = divisor e^level in the tail, with divisor 1 or level 0; 1 - target = e^level in the bulk */
typedef struct {
    double level, divisor, log_value; /* log_value: log target, or log(1 - target) in the bulk */
    double bulk;                      /* 1 or 0; a double, so that loops vectorise */
} fp_gauss_target;

FP_INLINE fp_gauss_target fp_gauss_target_of(double target, const int logarithmic)
{
    fp_gauss_target out;
    const int bulk = logarithmic ? target > -FP_LN2 : target > 0.5;
    const double missing = logarithmic ? -fp_expm1(target) : 1.0 - target;
    const double logarithm = fp_log(bulk ? missing : target), plain = logarithmic ? target : logarithm;
    out.bulk = bulk ? 1.0 : 0.0;
    out.log_value = bulk ? logarithm : plain;
    out.level = bulk ? logarithm : logarithmic ? target : 0.0;
    out.divisor = bulk ? 1.0 : logarithmic ? 1.0 : target;
    return out;
}

/* H, its margin, and |dH/d epsilon| or |dH/d log r| */
FP_INLINE double fp_gauss_residual(
    double r, double epsilon, fp_gauss_target target, double unknown_is_r, const int logarithmic, double *margin,
    double *slope)
{
    const fp_gauss_parts p = fp_gauss_evaluate(r, epsilon);
    const double density = fp_gauss_density(p.a, p.a_low);
    const int natural =
        (p.is_bulk ? target.bulk : 1.0 - target.bulk) > 0.0; /* value = e^(-a^2/2) y; otherwise value = y, near 1/2 */
    const double scale = target.bulk > 0.0 ? 1.0 : p.scale, log_scale = target.bulk > 0.0 ? 0.0 : p.log_scale;
    const double complement = 1.0 - density * (p.is_bulk ? p.bulk : p.tail / p.scale);
    const double y = natural ? (p.is_bulk ? p.bulk : p.tail) : complement;
    /* y / divisor without overflow: a tiny divisor takes the scale of y, or one of its own */
    const double lift = target.divisor < 0x1p-960 ? FP_GAUSS_SCALE : scale;
    const double log_lift = target.divisor < 0x1p-960 ? FP_GAUSS_LOG_SCALE : log_scale;
    const double quotient = logarithmic ? y : y / (target.divisor * lift);
    const double log_y = fp_log(quotient > 1e-305 ? quotient : 1e-305);
    const double offset = (logarithmic ? 0.0 : log_lift) - log_scale;
    const double square = natural ? p.a * (0.5 * p.a + p.a_low) : 0.0;
    const double h = (log_y + offset) - (square + target.level);
    const double lost = 5e-323 / r * (__builtin_fabs(p.a) + 2.0); /* where quotients by r lose digits */
    const double size = (target.bulk > 0.0 ? 1.6e-14 : 7.2e-15) + lost
        + 4.5e-16 * (square + __builtin_fabs(target.level)) + 9e-16 * (__builtin_fabs(log_y) + __builtin_fabs(offset));
    *margin = (size < 1e300) & (lost < 1e-3) ? size : 1e300;
    const double rate = unknown_is_r > 0.0 ? 2.0 * FP_INV_SQRT_2PI * r : p.far;
    *slope = (natural ? 1.0 : density) * (rate * scale) / y;
    return target.bulk > 0.0 ? -h : h;
}

/* a first guess on the side from which Newton's method is monotone: delta <= e^(-a^2/2) min(1, 1.6 r) for a >= 0 and
 * 1 - delta <= e^(-a^2/2) for a <= 0 */
FP_INLINE double fp_gauss_guess(double known, fp_gauss_target target, const int unknown)
{
    double guess;
    if (unknown == FP_GAUSS_OF_EPSILON) {
        const double log_r = fp_log(1.6 * known), cap = (log_r < 0.0) & (target.bulk == 0.0) ? log_r : 0.0;
        const double room = cap - target.log_value, root = __builtin_sqrt(room > 0.0 ? room : 0.0) * 1.4142135623730951;
        guess = 2.0 * known * (target.bulk > 0.0 ? known - root : known + root);
    } else {
        const double root = __builtin_sqrt(-target.log_value) * 1.4142135623730951;
        const double far = __builtin_sqrt(known - target.log_value) * 1.4142135623730951;
        const double low = known / (root + far), least = 1.25 * fp_exp(target.log_value);
        guess = target.bulk > 0.0 ? 0.5 * (root + far) : low > least ? low : least;
    }
    guess *= target.bulk == (unknown == FP_GAUSS_OF_R ? 1.0 : 0.0) ? 1.0 + 0x1p-49
                                                                   : 1.0 - 0x1p-49; /* whatever its rounding */
    guess = guess > 0.0 ? guess : 0.0;
    return guess < 0x1.fffffffffffffp1023 ? guess : 0x1.fffffffffffffp1023;
}

FP_INLINE double fp_gauss_next_up(double x)
{
    return x < HUGE_VAL ? fp_double(fp_bits(x) + 1) : x; /* x >= 0 */
}

FP_INLINE double fp_gauss_next_down(double x)
{
    return x > 0.0 ? fp_double(fp_bits(x) - 1) : x;
}

#endif
