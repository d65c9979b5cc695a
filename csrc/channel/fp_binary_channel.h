/* Binary entropy and the capacity of the binary asymmetric channel, in nats.
 *
 * Notation.  Input X in {0, 1}, crossover e0 = P(Y = 1 | X = 0) and e1 = P(Y = 0 | X = 1), complements c0 = 1 - e0 and
 * c1 = 1 - e1 as inputs of their own, because a complement below 1e-16 is lost in e.  D = c1 - e0 = 1 - e0 - e1,
 * psi(u) = u log u - u + 1 >= 0; q = (e0 + c1) / 2 and qc = 1 - q are the probabilities of the outputs for the uniform
 * input, whose cells are q (1 +- t) and qc (1 +- s), t = |D| / (2 q), s = |D| / (2 qc).  The divergences d0, d1 of both
 * rows from (q, qc) have
 *
 *     I = (d0 + d1) / 2 = (q S(t^2) + qc S(s^2)) / 2,       S(t^2) = psi(1 + t) + psi(1 - t),
 *     y = (d0 - d1) / D = (B(t^2) - B(s^2)) / 2,          t B(t^2) = psi(1 - t) - psi(1 + t),
 *
 * and S and B are power series of positive terms, so that nothing cancels on the line e0 + e1 = 1 either, where the
 * capacity is 0; the published closed form is 0/0 there.  The best output has logit q* = logit q - y, and
 *
 *     C = I + KL(q || q*) = I + q g(q/q* - 1) + qc g(qc/qc* - 1),   g(x) = log(1 + x) - x / (1 + x),
 *
 * where q/q* - 1 = qc (e^y - 1) and qc/qc* - 1 = q (e^-y - 1), |y| <= 1 - log 2: docs/proofs/finite_capacity.md, 7.20.
 *
 * psi of other channels.  Near u = 1, with x = u - 1, z = x / (2 + x) and atanh z = z + z^3 T(z^2):
 *     psi = 2 z^2 / (1 - z) (1 + (1 + z) z T(z^2)),   no cancellation for |z| <= 1/4.
 *
 * Accuracy (tests/kernels/test_binary_channel.py): capacity to 2.5e-15 relative, entropy to 1e-15.
 */
/* bounds: proved - the series of psi, and of S and B for t^2 <= 1/8, by their next terms:
 * docs/proofs/finite_capacity.md, theorems 7.4 and 7.20 */
#ifndef FP_BINARY_CHANNEL_H
#define FP_BINARY_CHANNEL_H

#include "special/fp_elementary.h"

/* h(p) = -p log p - (1-p) log(1-p), given p and its complement; NaN outside [0, 1] */
FP_INLINE double fp_binary_entropy(double p, double complement)
{
    const double small = p < complement ? p : complement, large = p < complement ? complement : p;
    const double logarithm = fp_log(small > 0.0 ? small : 1.0);
    const double value = -(small * logarithm) - large * fp_log1p(-small);
    return (p >= 0.0) & (complement >= 0.0) & (small <= 0.5) & (large <= 1.0) ? value : NAN;
}

/* psi(u) for u = 1 + x >= 0, both given */
FP_INLINE double fp_channel_psi(double u, double x)
{
    static const double T[14] = {
        1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15,
        1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27, 1.0 / 29,
    };
    const double z = x / (2.0 + x), square = z * z;
    const double near = 2.0 * square / (1.0 - z) * (1.0 + (1.0 + z) * z * fp_polynomial(square, T, 14));
    const double far = u * fp_log(u > 0.0 ? u : 1.0) - x;
    return square <= 0.0625 ? near : far;
}

/* D = 1 - e0 - e1 to an ulp, from the smaller one of each pair */
FP_INLINE double fp_channel_gap(double e0, double c0, double e1, double c1)
{
    const double m0 = e0 < c0 ? e0 : c0, m1 = e1 < c1 ? e1 : c1;
    const double rest = 1.0 - m0, both = (rest - m1) + ((1.0 - rest) - m0);
    const double below = e1 > c1 ? m1 - m0 : both, above = e1 > c1 ? -both : m0 - m1;
    return e0 > c0 ? above : below;
}

/* One output of the uniform input distribution: q, the smaller one of its two cells, and |D|.  Returns S, the sum of
 * psi(1 + t) and psi(1 - t), and writes B/2. */
FP_INLINE double fp_bac_output(double q, double small, double size, double *half_b)
{
    static const double S[16] = { /* 1 / (n (2 n - 1)) */
        1.0, 1.0 / 6, 1.0 / 15, 1.0 / 28, 1.0 / 45, 1.0 / 66, 1.0 / 91, 1.0 / 120,
        1.0 / 153, 1.0 / 190, 1.0 / 231, 1.0 / 276, 1.0 / 325, 1.0 / 378, 1.0 / 435, 1.0 / 496,
    };
    static const double B[16] = { /* 1 / (2 n (2 n + 1)) */
        1.0 / 6, 1.0 / 20, 1.0 / 42, 1.0 / 72, 1.0 / 110, 1.0 / 156, 1.0 / 210, 1.0 / 272,
        1.0 / 342, 1.0 / 420, 1.0 / 506, 1.0 / 600, 1.0 / 702, 1.0 / 812, 1.0 / 930, 1.0 / 1056,
    };
    const double ratio = 0.5 * size / q, square = ratio * ratio, low = small / q, t = 1.0 - low, high = 1.0 + t;
    const double upper = high * fp_log(high), lower = low * fp_log(low > 0.0 ? low : 1.0);
    const int near = square <= 0.125;
    *half_b = near ? square * fp_polynomial(square, B, 16) : 1.0 - 0.5 * (upper - lower) / t;
    return near ? square * fp_polynomial(square, S, 16) : upper + lower;
}

/* log(1 + x) - x / (1 + x) for -0.27 <= x <= 0.36 */
FP_INLINE double fp_bac_gain(double x)
{
    const double inverse = 1.0 / ((2.0 + x) * (1.0 + x)), z = x * (1.0 + x) * inverse, square = z * z;
    return x * x * inverse + z * (square * fp_polynomial(square, fp_log_tail, 7));
}

/* bound: proved - docs/proofs/finite_capacity.md, theorem 7.20: relative error of the capacity; tests find 2.5e-15 */
#define FP_BAC_CAPACITY_ERROR 8e-15

FP_INLINE double fp_bac_capacity(double e0, double c0, double e1, double c1)
{
    const double gap = fp_channel_gap(e0, c0, e1, c1), size = fabs(gap), one = 0.5 * (e0 + c1), zero = 0.5 * (c0 + e1);
    /* bound: none - it stands for a mean of subnormals that rounds to 0; bounds are not formed from such cells */
    const double least = 0x1p-1074;
    const double q = one > 0.0 ? one : least, qc = zero > 0.0 ? zero : least;
    double b, b_zero;
    const double first = fp_bac_output(q, gap > 0.0 ? e0 : c1, size, &b);
    const double second = fp_bac_output(qc, gap > 0.0 ? e1 : c0, size, &b_zero);
    const double rise = fp_expm1(b - b_zero);
    const double gain = q * fp_bac_gain(qc * rise) + qc * fp_bac_gain(-q * (rise / (1.0 + rise)));
    const double value = gap == 0.0 ? 0.0 : 0.5 * (q * first + qc * second) + gain;
    return (e0 >= 0.0) & (c0 >= 0.0) & (e1 >= 0.0) & (c1 >= 0.0) & (e0 <= 1.0) & (c0 <= 1.0) & (e1 <= 1.0) & (c1 <= 1.0)
        ? value : NAN;
}

/* The ufuncs (common/fp_ufunc.h): number of inputs, name, function of single numbers. */
#define FP_BINARY_CHANNEL_FUNCTIONS(F)                      \
    F(1, binary_entropy, FP_NAME(fp_binary_entropy_of))     \
    F(2, binary_entropy_with_complement, fp_binary_entropy) \
    F(2, bac_capacity, FP_NAME(fp_bac_capacity_of))         \
    F(4, bac_capacity_with_complements, fp_bac_capacity)

#endif
