/* The tail Q(z) = 1 - Phi(z) of the normal distribution to about 2^-62, between doubles and double-doubles in accuracy
 * and in time; branch-free, without FMA, the same bits on every instruction set.
 *
 * With z0 the nearest point of the table, z = z0 + h, |h| <= 1/64:
 *     Q(z0) - Q(z) = h phi(z0) (1 + G),   G = sum_{n >= 1} (-1)^n a_n / (n + 1),   a_n = He_n(z0) h^n / n!,
 * a_{n+1} = (z0 h a_n - h^2 a_{n-1}) / (n + 1). The product h phi(z0) is exact in its leading 52 bits, and G, which is
 * formed in doubles, is below |h| (z0 + 1) / 2. For |z| <= 12, the end of the table, the tail is right to 2.57e-19 of
 * Q(z) (1 + z^2). */
#ifndef FP_NORMAL_TAIL_H
#define FP_NORMAL_TAIL_H

#include "common/fp_error_free.h"
#include "special/fp_erfc.h"
#include "special/fp_normal_tail_table.h"

/* bound: proved by proofs/tables - relative error of the tail, in units of 1 + z^2, for |z| <= 12: 2.57e-19 */
#define FP_NORMAL_TAIL_ERROR 0x1.3p-62
/* bound: proved - Q(12), which a tail beyond the table is at most */
#define FP_NORMAL_TAIL_LEAST 1.8e-33
#define FP_NORMAL_TAIL_LAST 12.0 /* the end of the table */

typedef struct {
    double high, low;
} fp_unevaluated; /* a sum of two doubles, of which the second may be up to 2^-12 of the first */

/* Q(|z|) for z = high + low, |low| <= 2^-53 |high|; beyond the table Q(12). */
FP_INLINE fp_unevaluated fp_normal_tail(double high, double low)
{
    const double magnitude = fabs(high), size = magnitude < FP_NORMAL_TAIL_LAST ? magnitude : FP_NORMAL_TAIL_LAST;
    const double rest_of_size = magnitude < FP_NORMAL_TAIL_LAST ? (high < 0.0 ? -low : low) : 0.0;
    const double shifted = size * 32.0 + FP_SHIFT, point = (shifted - FP_SHIFT) * 0.03125;
    const double *row = fp_normal_tail_table[fp_bits(shifted) & 0x1ff];
    const double h = size - point, h_high = fp_upper(h), h_low = h - h_high;
    const double product = point * h, square = h * h;
    double before = 1.0, term = product, sum = 0.0;
/* written out, for a loop of this size is left rolled and then nothing around it vectorises */
#define FP_STEP(j)                                                                                                     \
    sum -= term * (1.0 / (j));                                                                                         \
    before = (product * term - square * before) * (1.0 / (j));                                                         \
    sum += before * (1.0 / ((j) + 1));                                                                                 \
    term = (product * before - square * term) * (1.0 / ((j) + 1));
    FP_STEP(2) FP_STEP(4) FP_STEP(6) FP_STEP(8) FP_STEP(10)
#undef FP_STEP
    const double lead = row[2] * h_high, density = row[2] + row[3];
    const double slope = 1.0 - product /* phi(z0 + h) / phi(z0) */
        + 0.5 * (product * product - square) * (1.0 - product * (1.0 / 3.0));
    const double rest = (row[2] * h_low + row[3] * h) + density * (rest_of_size * slope + h * sum);
    fp_unevaluated tail;
    tail.high = row[0] - lead;
    tail.low = ((row[0] - tail.high) - lead) + (row[1] - rest);
    return tail;
}

/* z = (x - mean) / sigma to 2^-75, the inverse of sigma given as 26 bits and a double. */
FP_INLINE fp_unevaluated fp_standard_score(double x, double mean, double inverse_high, double inverse_low)
{
    const double away = x - mean, lost = fp_sum_error(x, -mean, away);
    const double away_high = fp_upper(away), away_low = away - away_high;
    const double lead = away_high * inverse_high, next = away_low * inverse_high;
    const double sum = lead + next, rest = (next - (sum - lead)) + (away * inverse_low + lost * inverse_high);
    fp_unevaluated z;
    z.high = sum + rest;
    z.low = rest - (z.high - sum);
    return z;
}

#endif
