/* The Gaussian mechanism: its privacy curve delta(epsilon), the inverse, and the noise for a target.
 *
 * Notation.  r = l2 sensitivity / (2 sigma) > 0, epsilon >= 0, c = epsilon / (2 r), a = c - r, b = c + r; phi and Phi
 * are the standard normal density and distribution function, R(x) = (1 - Phi(x)) / phi(x) is the Mills ratio.  Then
 *
 *     delta = Phi(-a) - e^epsilon Phi(-b) = phi(a) (R(a) - R(b))         (Balle and Wang 2018, theorem 8)
 *     1 - delta = phi(a) (R(-a) + R(b))
 *
 * because e^epsilon phi(b) = phi(a).  The first form serves a >= -1/2, the second a < -1/2, where 1 - delta < 0.62.
 *
 * The difference without cancellation.  With u = 1 / (x + 9/2) and t = 1 - 8 u, which maps [-1/2, inf] to [-1, 1],
 * R = u F(t), and F is a polynomial of degree 26 (a Chebyshev series from 64 nodes, to 2e-17).  A divided difference
 * of a polynomial is a polynomial, and Horner's scheme yields it beside the value:
 *
 *     R(x1) - R(x2) = (x2 - x1) u1 u2 (F(t1) - 8 u2 F[t1, t2]),   x2 - x1 = 2 r exactly.
 *
 * All terms are positive, so one formula without a branch holds for r from 1e-300 to 1e300.
 *
 * Rounding of a.  c carries two remainders of its division and a the error of its subtraction, and phi(a) the error of
 * a^2: a^2 is then good to 1e-16 absolutely even where c and r agree in every digit.  r and epsilon may have a second
 * part, of at most 2^-52 of the first: to first order c is (epsilon + epsilon_low - 2 c r_low) / (2 r), and what is
 * left is below 2^-104 of c; the Mills ratios, which have no such amplification, take r and epsilon alone.
 *
 * Accuracy: the constants below, proved by tools/proofs (docs/proofs/gaussian.md, theorem 1.2). Tests find 4e-15 of
 * delta where it is a normal number, and of log delta down to the most negative double
 * (tests/kernels/test_gaussian_mechanism.py).
 */
/* bounds: proved by proofs/tables - the polynomial F of the Mills ratio (mills_series), to 6.1e-17 relative, and its
 * slope to 1.6e-16 relative: 2e-17 of the fit, and rounded coefficients */
#ifndef FP_GAUSS_H
#define FP_GAUSS_H

#include "special/fp_math.h"
#include "common/fp_error_free.h"

/* bound: none - where results are scaled against underflow */
#define FP_GAUSS_TINY 0x1p-400           /* below this r is scaled by 2^600, so that nothing underflows */
#define FP_GAUSS_SCALE 0x1p600
#define FP_GAUSS_LOG_SCALE 415.88830833596718565 /* 600 log 2 */

typedef struct {
    double a, a_low;      /* a = c - r in two parts */
    double tail;          /* (R(a) - R(b)) / sqrt(2 pi), scaled; phi-free part of delta; only where a >= -1/2 */
    double bulk;          /* (R(-a) + R(b)) / sqrt(2 pi); phi-free part of 1 - delta; only where a < -1/2 */
    double far;           /* R(b) / sqrt(2 pi) */
    double log_scale;     /* logarithm of the scale of `tail` */
    double scale;
    int is_bulk;            /* a < -1/2 */
} fp_gauss_parts;

/* F in powers of t, lowest first */
static const double fp_mills_series[27] = {
    0x1.10f724278b794p+1, -0x1.1400e7853343ep+1, 0x1.c0b5dc9a1d9ddp+0,
    -0x1.1f2435a06d015p+0, 0x1.1240467b214eap-1, -0x1.50699cccf7268p-3,
    0x1.7e71881c1bab9p-7, 0x1.ef1c450bc5b71p-7, -0x1.633f33757abdfp-8,
    -0x1.0b1cf5d95c501p-10, 0x1.f7c56c6196b0ap-11, 0x1.26a42e4775d90p-14,
    -0x1.5be59c1072b83p-13, -0x1.71109991e00b9p-17, 0x1.ff546fc664fb7p-16,
    0x1.1594164e38f59p-18, -0x1.7f079a5c5de04p-18, -0x1.ac9d8ecc0def9p-20,
    0x1.0579c3a2bfb87p-20, 0x1.1714a8710d7f7p-21, -0x1.ff3ed35aac8e2p-24,
    -0x1.217ee6395a1e8p-23, 0x1.9b2b13312173dp-31, 0x1.a7c0fbbe3d40fp-26,
    0x1.d690945aeeadfp-29, -0x1.415614389b44bp-29, -0x1.2cedfc22f9bf4p-31,
};

FP_INLINE fp_gauss_parts fp_gauss_evaluate_pairs(double r, double r_low, double epsilon, double epsilon_low)
{
    fp_gauss_parts out;
    const double half = 0.5 * epsilon, c = half / r, product = c * r;
    const double rest = ((half - product) - fp_product_error(c, r, product)) + (0.5 * epsilon_low - c * r_low);
    const double c_low = rest / r, part = c_low * r;
    const double c_lower = ((rest - part) - fp_product_error(c_low, r, part)) / r;
    const double difference = c - r;
    const double low = (fp_sum_error(c, -r, difference) + c_low) - r_low;
    const double a = difference + low, a_low = ((difference - a) + low) + c_lower;
    const int finite = __builtin_fabs(difference) < 1e160;
    out.a = finite ? a : difference;
    out.a_low = finite ? a_low : 0.0;
    out.is_bulk = out.a < -0.5;
    out.scale = r < FP_GAUSS_TINY ? FP_GAUSS_SCALE : 1.0;
    out.log_scale = r < FP_GAUSS_TINY ? FP_GAUSS_LOG_SCALE : 0.0;

    const double x1 = out.is_bulk ? -out.a : out.a, x2 = c + r, gap = 2.0 * (out.is_bulk ? c : r * out.scale);
    const double u1 = 1.0 / (x1 + 4.5), u2 = 1.0 / (x2 + 4.5);
    const double t1 = 1.0 - 8.0 * u1, t2 = 1.0 - 8.0 * u2;
    double value = fp_mills_series[26], divided = 0.0;
#pragma GCC unroll 32
    for (int k = 25; k >= 0; k--) {
        divided = divided * t2 + value;
        value = value * t1 + fp_mills_series[k];
    }
    const double drop = gap * u2 * u1 * (value - 8.0 * u2 * divided) * FP_INV_SQRT_2PI; /* R(x1) - R(x2) */
    out.tail = drop > 1e-300 ? drop : 1e-300; /* reached only where a^2 > 1e100 */
    out.bulk = 2.0 * FP_INV_SQRT_2PI * u1 * value - drop;
    out.far = FP_INV_SQRT_2PI * u2 * (value + 8.0 * (u1 - u2) * divided);
    return out;
}

FP_INLINE fp_gauss_parts fp_gauss_evaluate(double r, double epsilon)
{
    return fp_gauss_evaluate_pairs(r, 0.0, epsilon, 0.0);
}

/* exp(-a^2 / 2), the rounding of a and of its square included */
FP_INLINE double fp_gauss_density(double a, double a_low)
{
    const double square = a * a;
    const double error = 0.5 * fp_product_error(a, a, square) + a * a_low;
    return fp_exp(-0.5 * square) * (__builtin_fabs(a) < 64.0 ? 1.0 - error : 1.0);
}

FP_INLINE double fp_gauss_limits(double r, double epsilon, double value, double none, double all)
{
    value = r == 0.0 || epsilon == HUGE_VAL ? none : value;
    value = r == HUGE_VAL ? all : value;
    return r >= 0.0 && epsilon >= 0.0 ? value : NAN;
}

FP_INLINE double fp_gaussian_delta(double r, double epsilon)
{
    const fp_gauss_parts p = fp_gauss_evaluate(r, epsilon);
    const double density = fp_gauss_density(p.a, p.a_low);
    return fp_gauss_limits(r, epsilon, p.is_bulk ? 1.0 - density * p.bulk : density * (p.tail / p.scale), 0.0, 1.0);
}

FP_INLINE double fp_gaussian_log_delta(double r, double epsilon)
{
    const fp_gauss_parts p = fp_gauss_evaluate(r, epsilon);
    const double missing = fp_gauss_density(p.a, p.a_low) * p.bulk; /* 1 - delta */
    const double y = p.is_bulk ? 1.0 - missing : p.tail;
    const double rounded = p.is_bulk ? (1.0 - y) - missing : 0.0;
    const double square = p.is_bulk ? 0.0 : p.a * (0.5 * p.a + p.a_low);
    return fp_gauss_limits(r, epsilon, fp_log_two(y, rounded) - p.log_scale - square, -HUGE_VAL, 0.0);
}

/* The curve with bounds that hold the rounding of r = span / (2 sigma) and of the formula.
 *
 * The derivative of delta by r is 2 phi(a): the first term of delta yields phi(a) (1 + epsilon / (2 r^2)) and the
 * second phi(a) (1 - epsilon / (2 r^2)).  The true r is within 1.12e-16 r of its rounding, where b < 1e6 phi(a) changes
 * by less than 2e-4 of itself, and 1.2e-16 covers both.  Outside the plain settings `lower` is NaN: the caller takes
 * the curve at the doubles beside r.  An epsilon that is negative or NaN is not plain either. */
/* bound: proved by proofs/gaussian - relative error of delta, at most 3.5e-15 */
#define FP_GAUSS_RELATIVE 4e-15
/* bound: proved by proofs/gaussian - error of log delta where a >= -1/2: 2.9e-15 and 5.6e-16 of it */
#define FP_GAUSS_LOG_ERROR 3e-15
/* bound: proved - the second of these, with the rounding of each end */
#define FP_GAUSS_LOG_RELATIVE 7e-16
/* bound: proved by proofs/gaussian - error of log delta where a < -1/2, at most 7.6e-15 of it */
#define FP_GAUSS_LOG_BULK 8e-15
/* bound: proved - rounding of r, by the note above */
#define FP_GAUSS_ROUNDED (2.0 * FP_INV_SQRT_2PI * 1.2e-16)
/* bound: proved - four units of 2^-1074: of results that are subnormal the last product loses half a unit, and the
 * exponential one, of which a >= 37 takes the hundredth part */
#define FP_GAUSS_LEAST 2e-323

typedef struct {
    double value, lower, upper;
} fp_gauss_bounded;

FP_INLINE int fp_gauss_is_regular(double r, double epsilon)
{
    return (epsilon >= 0.0) & (0.5 * epsilon / r + r < 1e6) & (r > 1e-280);
}

FP_INLINE fp_gauss_bounded fp_gaussian_delta_bounded(double r, double epsilon)
{
    const fp_gauss_parts p = fp_gauss_evaluate(r, epsilon);
    const double density = fp_gauss_density(p.a, p.a_low);
    const double value =
        fp_gauss_limits(r, epsilon, p.is_bulk ? 1.0 - density * p.bulk : density * (p.tail / p.scale), 0.0, 1.0);
    const double error = FP_GAUSS_RELATIVE * value + FP_GAUSS_ROUNDED * r * density + FP_GAUSS_LEAST;
    const double low = value - error, high = value + error, least = low > 0.0 ? low : 0.0;
    const fp_gauss_bounded out = {value, fp_gauss_is_regular(r, epsilon) ? least : NAN, high < 1.0 ? high : 1.0};
    return out;
}

FP_INLINE fp_gauss_bounded fp_gaussian_log_delta_bounded(double r, double epsilon)
{
    const fp_gauss_parts p = fp_gauss_evaluate(r, epsilon);
    const double density = fp_gauss_density(p.a, p.a_low), missing = density * p.bulk; /* 1 - delta */
    const double y = p.is_bulk ? 1.0 - missing : p.tail;
    const double rounded = p.is_bulk ? (1.0 - y) - missing : 0.0;
    const double square = p.is_bulk ? 0.0 : p.a * (0.5 * p.a + p.a_low);
    const double value = fp_gauss_limits(r, epsilon, fp_log_two(y, rounded) - p.log_scale - square, -HUGE_VAL, 0.0);
    const double slope = r * p.scale * (p.is_bulk ? density : 1.0) / y; /* r phi(a) / delta, but for sqrt(2 pi) */
    const double of_log = p.is_bulk ? FP_GAUSS_LOG_BULK * -value : FP_GAUSS_LOG_ERROR + FP_GAUSS_LOG_RELATIVE * -value;
    const double error = of_log + FP_GAUSS_ROUNDED * slope + FP_GAUSS_LEAST, high = value + error;
    const fp_gauss_bounded out = {
        value, fp_gauss_is_regular(r, epsilon) ? value - error : NAN, high < 0.0 ? high : 0.0};
    return out;
}

#endif
