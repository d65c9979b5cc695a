/* The normal law and its kin: erfc, erfcx, the Mills ratio, Phi, log Phi, and Phi(b) - Phi(a) with its logarithm.
 *
 * Notation: phi(x) = exp(-x^2/2) / sqrt(2 pi), Phi its integral, R(x) = (1 - Phi(x)) / phi(x) the Mills ratio,
 * erfcx(z) = exp(z^2) erfc(z).  Branch-free and the same bits on every instruction set, like fp_elementary.h.
 *
 * For x >= 0 one fit covers the half-line: with r = 1 / (x + K), R(x) = r (1 + r G(1 - 2 K r)), G a polynomial, and
 * erfcx likewise; it is exact at infinity and at 0, and the rounding of x + K and of r is taken back through
 * R'(x) = x R(x) - 1.  Where exp(-x^2/2) enters, x^2 is kept in two terms: the far tail is as good as the middle.
 *
 * Bounds in ulps of the true value, subnormal results included.  Proved by tools/proofs: fp_erfcx 7, fp_mills 8.3,
 * fp_erfc 9.2, fp_ndtr 9.7, fp_log_ndtr 17; tests find at most 3.5, 4.5, 4.5, 4.5 and 6.5.
 * Differences of Phi have 24 units of 2^-53 (docs/proofs/gaussian.md, theorem 1.5); tests find 6 ulps of them, and 6.5
 * of those of log Phi, which no bound rests on (tests/kernels/test_special_accuracy.py).
 * The tables are minimax fits by fit_coefficients.py.
 */
/* bounds: proved - a power of two, by which products are exact */
#ifndef FP_ERFC_H
#define FP_ERFC_H

#include "special/fp_elementary.h"

#define FP_SQRT_2PI 0x1.40d931ff62706p+1
#define FP_INV_SQRT_PI 0x1.20dd750429b6dp-1

/* bound: proved by proofs/tables - erfcx on the half-line, to 6.2e-17 relative: 1e-17 of the fit, and rounded coefficients */
static const double fp_erfcx_table[24] = {
    0x1.1048e2dcf273bp+2, -0x1.c76a9e1f84507p+1, 0x1.50596785548fap+1, -0x1.b2f85d6097b40p+0,
    0x1.e53a4e1b11719p-1, -0x1.c70ac65ccb0b3p-2, 0x1.5559be69ca269p-3, -0x1.6ac91b0ae5e42p-5,
    0x1.2e3160f8bbbb5p-8, 0x1.35c7708af2112p-9, -0x1.4ec1ac29db09bp-10, 0x1.205f92eabbd7dp-13,
    0x1.c6c4d46adcaf6p-14, -0x1.642cd548148d6p-15, -0x1.48e76896c3e2ap-18, 0x1.b34b773dd782ep-18,
    -0x1.3ad4ff5678241p-22, -0x1.dc69497334095p-21, 0x1.0b6ccbaa64547p-23, 0x1.0514299ceccecp-23,
    -0x1.72acdc5f549f5p-26, -0x1.0c7aaa7d6bbf1p-26, 0x1.115ce284b22b9p-29, 0x1.6b924f412d631p-30,
};

/* bound: proved by proofs/tables - the Mills ratio on the half-line, to 5.2e-17 relative: as above */
static const double fp_mills_table[24] = {
    0x1.c954025225bbcp+2, -0x1.42d7b116fd100p+2, 0x1.5c03a8a98d3f4p+1, -0x1.057ecc79d7a52p+0,
    0x1.8470af324d6e3p-3, 0x1.3b19ca74df61ap-5, -0x1.00860a80a099fp-5, 0x1.6c197e332d63bp-10,
    0x1.0a43ede6d8db3p-8, -0x1.2b823833e42c9p-11, -0x1.3f925a639d9a4p-11, 0x1.8f6ce5ab5175dp-14,
    0x1.cbb8045822a36p-14, -0x1.32a44a948bdefp-17, -0x1.6d60819c2c08cp-16, -0x1.4aa22914d766cp-20,
    0x1.1d04562553381p-18, 0x1.1918119c18dc2p-20, -0x1.7d946470f7572p-21, -0x1.7df8e701f264fp-22,
    0x1.6b9b91c3a73aap-24, 0x1.3de94919e9f6cp-24, -0x1.51ab180bd5b2ep-28, -0x1.0253e49295f3ap-27,
};

/* x without its low 27 bits: products of two such are exact */
FP_INLINE double fp_upper(double x)
{
    return fp_double(fp_bits(x) & ~(uint64_t)0x7ffffff);
}

/* x >= 0 finite; the function tends to limit / x and its derivative is slope (x value - limit) */
FP_INLINE double fp_half_line(double x, const double limit, const double slope, const double *table)
{
    const double sum = x + 4.0, r = 1.0 / sum; /* K = 4, so that 1 - 2 K r is exact where it matters */
    const double value = r * (limit + r * fp_polynomial(1.0 - 8.0 * r, table, 24));
    const double r_high = fp_upper(r), r_low = r - r_high, sum_high = fp_upper(sum), sum_low = sum - sum_high;
    const double residue = ((1.0 - r_high * sum_high) - (r_high * sum_low + r_low * sum_high)) - r_low * sum_low;
    const double shift = (x - (sum - 4.0)) - sum * residue; /* x less the argument that r stands for */
    return value + shift * r * (x < 1e4 ? slope * (x * value - limit) * sum : -limit * r);
}

FP_INLINE double fp_mills_half(double x)
{
    return fp_half_line(x, 1.0, 1.0, fp_mills_table);
}

FP_INLINE double fp_erfcx_half(double x)
{
    return fp_half_line(x, FP_INV_SQRT_PI, 2.0, fp_erfcx_table);
}

/* x^2 / 2 = value + low, the value exact in 52 bits; |low| <= 2^-24 value */
FP_INLINE double fp_half_square(double x, double *low)
{
    const double high = fp_upper(x), half = 0.5 * high;
    *low = 0.5 * ((x - high) * (x + high));
    return half * high;
}

/* exp(x + low) y, rounded once when the result is subnormal; bounds as in fp_exp_reduced */
FP_INLINE double fp_exp_times(double x, double low, double y)
{
    double q, shifted;
    const double r = fp_exp_reduced(x, low, &q, &shifted);
    return fp_scale(y + y * (r + q), shifted);
}

/* exp(-x^2/2) y for x >= 0; beyond 40 it is zero */
FP_INLINE double fp_gauss_times(double x, double y)
{
    double low;
    const double square = fp_half_square(x, &low), value = fp_exp_times(-square, -low, y);
    return x > 40.0 ? 0.0 : value;
}

FP_INLINE double fp_mills(double x)
{
    double low;
    const double size = fabs(x), value = fp_mills_half(size), square = fp_half_square(size, &low);
    const double both = fp_exp_times(square, low, FP_SQRT_2PI) - value;
    const double right = x == INFINITY ? 0.0 : value, left = x < -40.0 ? INFINITY : both;
    return x < 0.0 ? left : right;
}

FP_INLINE double fp_erfcx(double x)
{
    double low;
    const double size = fabs(x), value = fp_erfcx_half(size), square = fp_half_square(size, &low);
    const double both = fp_exp_times(2.0 * square, 2.0 * low, 2.0) - value;
    const double right = x == INFINITY ? 0.0 : value, left = x < -28.0 ? INFINITY : both;
    return x < 0.0 ? left : right;
}

FP_INLINE double fp_erfc(double x)
{
    double low;
    const double size = fabs(x), square = fp_half_square(size, &low);
    const double value = fp_exp_times(-2.0 * square, -2.0 * low, fp_erfcx_half(size));
    const double tail = size > 28.0 ? 0.0 : value;
    return x < 0.0 ? 2.0 - tail : tail;
}

FP_INLINE double fp_ndtr(double x)
{
    const double size = fabs(x), tail = fp_gauss_times(size, fp_mills_half(size) * FP_INV_SQRT_2PI);
    return x > 0.0 ? 1.0 - tail : tail;
}

FP_INLINE double fp_log_ndtr(double x)
{
    double low;
    const double size = fabs(x), factor = fp_mills_half(size) * FP_INV_SQRT_2PI, square = fp_half_square(size, &low);
    const double tail = fp_gauss_times(size, factor), rest = 1.0 - tail;
    const double value = fp_log_two(x > 0.0 ? rest : factor, x > 0.0 ? (1.0 - rest) - tail : 0.0);
    const double left = x < -2e154 ? -INFINITY : (value - low) - square;
    return x > 0.0 ? value : left;
}

/* sum over j of He_2j(m) h^2j / (2j+1)!, the mean of exp(-m t - t^2/2) over |t| <= h; h <= 1/2 and m h <= 1/2 */
FP_INLINE double fp_gauss_mean(double m, double h)
{
    const double product = m * h, square = h * h;
    double before = 1.0, term = product, sum = 1.0;
/* written out, for a loop of this size is left rolled and then nothing around it vectorises */
#define FP_STEP(j)                                                                                                     \
    before = (product * term - square * before) * (1.0 / (j));                                                         \
    term = (product * before - square * term) * (1.0 / ((j) + 1));                                                     \
    sum += before * (1.0 / ((j) + 1));
    FP_STEP(2) FP_STEP(4) FP_STEP(6) FP_STEP(8) FP_STEP(10) FP_STEP(12) FP_STEP(14) FP_STEP(16) FP_STEP(18) FP_STEP(20)
#undef FP_STEP
    return sum;
}

/* Phi(b) - Phi(a) = outside ? 1 - value : value 2^-60 exp(-point^2/2), for a <= b; the power of two lifts subnormal
 * widths.  By symmetry 0 <= |low| <= high.  Three ways: ends close together, a series at the middle; both in one tail,
 * a difference of Mills ratios that loses less than two bits; else one less both tails. */
typedef struct {
    double value, point, point_low;
    int outside;
} fp_span;

FP_INLINE fp_span fp_normal_span(double a, double b)
{
    const double low = a + b < 0.0 ? -b : a, high = a + b < 0.0 ? -a : b;
    const double width = high - low, twice = high + low, part = twice - high;
    const double twice_low = (high - (twice - part)) + (low - part);
    const double slope = 0.5 * width * twice, reach = slope > width ? slope : width;
    const int near = reach <= 1.0, outside = (low <= 0.0 ? reach : 0.0) > 1.0;

    const double low_size = fabs(low), low_mills = fp_mills_half(low_size), high_mills = fp_mills_half(high);
    double square_low;
    const double square = fp_half_square(high, &square_low), decay = outside ? square : slope;
    const double damped = fp_exp_times(-decay, outside ? -square_low : 0.0, high_mills);
    const double far = decay > 800.0 ? 0.0 : damped;
    const double close = width * fp_gauss_mean(0.5 * twice, 0.5 * width), apart = low_mills - far;
    const double beyond = fp_gauss_times(low_size, low_mills) + far, inside = near ? close : apart;

    fp_span span;
    span.outside = outside;
    span.value = FP_INV_SQRT_2PI * (outside ? beyond : 0x1p60 * inside);
    span.point = near ? 0.5 * twice : low_size;
    span.point_low = near ? 0.5 * twice_low : 0.0;
    return span;
}

FP_INLINE double fp_ndtr_diff(double a, double b)
{
    double low;
    const fp_span span = fp_normal_span(a > b ? b : a, a > b ? a : b);
    const double square = fp_half_square(span.point, &low);
    const double value = fp_exp_times(-square, -low - span.point * span.point_low, span.value);
    const double inside = span.point > 40.0 ? 0.0 : 0x1p-60 * value;
    const double size = span.outside ? 1.0 - span.value : inside;
    const double signed_size = a > b ? -size : size, known = a == b ? 0.0 : signed_size;
    const double both = fabs(a) + fabs(b);
    return both == both ? known : both; /* NaN when either is */
}

FP_INLINE double fp_log_ndtr_diff(double a, double b)
{
    double low;
    const fp_span span = fp_normal_span(a, b);
    const double square = fp_half_square(span.point, &low), rest = 1.0 - span.value;
    const double lost = span.outside ? (1.0 - rest) - span.value : 0.0;
    const double value = fp_log_lifted(span.outside ? rest : span.value, lost, span.outside ? 0.0 : 60.0);
    const double near = ((value - low) - span.point * span.point_low) - square;
    const double inside = span.point > 2e154 ? -INFINITY : near, known = span.outside ? value : inside;
    const double unordered = a == b ? -INFINITY : NAN;
    return a < b ? known : unordered;
}

#endif
