/* The moment generating function of a point uniform on the unit sphere of R^d, by its logarithm and slope:
 *
 *     G_d(x) = E e^{x U_1} = Gamma(d/2) (2/x)^nu I_nu(x),  nu = d/2 - 1;  G_1 = cosh x, G_2 = I_0(x), G_3 = sinh x / x;
 *     slope = (log G_d)' = I_{nu+1}(x) / I_nu(x), the mean of U_1 under the tilted law, in [0, 1).
 *
 * d = 1 is cosh.  For d >= 2 let a = (d-1)/2, b = (d+1)/2, s = sqrt(b^2 + x^2), v = s - b = x^2 / (b + s), p = b / s.
 * Amos' lower bound (1974) of the slope, x / (a + s), is right in its leading term at 0 and in two terms at infinity.
 * It integrates to A = v - a log(1 + v/d).  What is left is smooth in p, from p = 1 at x = 0 to p = 0 at infinity:
 *
 *     log G_d = A + (1-p)^2 Q_d(p),   slope = x / (a + s) + (x/s) (1-p) p^2 S_d(p) / b,   S = 2 Q - (1-p) Q'.
 *
 * Q is at most 0.24.  It is a polynomial fitted by fit_sphere.py: in two pieces of p for d < 16, where the zeros of G
 * on the imaginary axis come close, in one piece for d >= 16, with coefficients that are polynomials in 1/(d+1).  So
 * one square root, one logarithm and two polynomials do for every d and x, nothing cancels, nothing overflows.
 * A - x = -b (x + v) / (s + x) - a log(1 + v/d), two negative terms, serves x > b.
 *
 * Accuracy for d = 1 .. 1e9 and all x >= 0, proved (docs/proofs/awgn.md, theorem 6.6), and in brackets that of 60,000
 * points in ball arithmetic (tests/kernels/test_sphere.py): log G relative 2.3e-15 (6.5e-16) where it exceeds 1e-290;
 * log G - x absolute 2.3e-15 (5e-16) times 1 + its size; slope relative 1.5e-15 (5e-16).  What tools/proofs/sphere.py
 * proves of the polynomials alone is the logarithm, d < 16: 4e-16 (1 - p)^2, the logarithm, d >= 16: 1.3e-15 (1 - p)^2,
 * the slope, d < 16: 4.2e-16 relative, the slope, d >= 16: 6e-17 relative.
 */
#ifndef FP_SPHERE_H
#define FP_SPHERE_H

#include "special/fp_elementary.h"
#include "special/fp_sphere_tables.h"

enum { FP_SPHERE_NONE, FP_SPHERE_LINE, FP_SPHERE_LOW, FP_SPHERE_MIDDLE, FP_SPHERE_HIGH };

typedef struct {
    int kind;
    double dimension, a, b;
    double value[2][FP_SPHERE_LOW_TERMS], slope[2][FP_SPHERE_LOW_TERMS]; /* Q and S for p <= FP_SPHERE_CUT, above it */
} fp_sphere;

/* S = 2 Q - (1-p) dQ/dp for p = (low + high)/2 + q (high - low)/2 */
static inline void fp_sphere_slope(const double *value, double *slope, int terms, double low, double high)
{
    const double ratio = (2.0 - low - high) / (high - low);
    for (int i = 0; i < terms; i++)
        slope[i] = (2.0 + i) * value[i] - (i + 1 < terms ? ratio * (i + 1) * value[i + 1] : 0.0);
}

/* kind FP_SPHERE_NONE, and NaN ever after, unless the dimension is a whole number from 1 to 1e9 */
static inline void fp_sphere_prepare(fp_sphere *s, double dimension)
{
    memset(s, 0, sizeof *s);
    s->dimension = dimension;
    if (!(dimension >= 1.0 && dimension <= 1e9 && dimension == (double)(int)dimension))
        return;
    const int d = (int)dimension;
    s->a = 0.5 * (dimension - 1.0);
    s->b = 0.5 * (dimension + 1.0);
    if (d == 1) {
        s->kind = FP_SPHERE_LINE;
    } else if (d < FP_SPHERE_HIGH_FROM) {
        const int low = d < FP_SPHERE_MIDDLE_FROM, terms = low ? FP_SPHERE_LOW_TERMS : FP_SPHERE_MIDDLE_TERMS;
        const double *row = low ? fp_sphere_low[d - 2] : fp_sphere_middle[d - FP_SPHERE_MIDDLE_FROM];
        s->kind = low ? FP_SPHERE_LOW : FP_SPHERE_MIDDLE;
        memcpy(s->value[0], row, terms * sizeof *row);
        memcpy(s->value[1], row + terms, terms * sizeof *row);
        fp_sphere_slope(s->value[0], s->slope[0], terms, 0.0, FP_SPHERE_CUT);
        fp_sphere_slope(s->value[1], s->slope[1], terms, FP_SPHERE_CUT, 1.0);
    } else {
        const double r = 2.0 * (FP_SPHERE_HIGH_FROM + 1) / (dimension + 1.0) - 1.0;
        s->kind = FP_SPHERE_HIGH;
        for (int i = 0; i < FP_SPHERE_HIGH_TERMS; i++)
            s->value[0][i] = fp_polynomial(r, fp_sphere_high[i], FP_SPHERE_ORDERS);
        fp_sphere_slope(s->value[0], s->slope[0], FP_SPHERE_HIGH_TERMS, 0.0, 1.0);
    }
}

/* d = 1, with w = 1 - e^-x: cosh x = 1 + w^2 / (2 (1-w)) = e^x (1 + (1-w)^2) / 2 */
FP_INLINE void fp_sphere_line(double x, double *log_g, double *scaled_log, double *slope)
{
    const double w = -fp_expm1(-x), rest = 1.0 - w, power = rest * rest;
    const int near = x < 1.0;
    const double logarithm = fp_log1p(near ? w * w / (2.0 * rest) : power);
    *log_g = near ? logarithm : (x - FP_LN2) + logarithm;
    *scaled_log = logarithm - (near ? x : FP_LN2);
    *slope = w * (1.0 + rest) / (1.0 + power);
}

/* sum of c[i] q^i in four chains, c = near or far; one piece has only near; terms is a multiple of 4 */
FP_INLINE double fp_sphere_polynomial(double q, int is_near, const double *near, const double *far, const int terms,
                                      const int pieces)
{
    const double square = q * q, fourth = square * square;
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
#pragma GCC unroll 10
    for (int i = terms - 4; i >= 0; i -= 4)
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            sum[j] = sum[j] * fourth + (pieces == 1 || is_near ? near[i + j] : far[i + j]);
    return (sum[0] + square * sum[2]) + q * (sum[1] + square * sum[3]);
}

/* d >= 2 */
FP_INLINE void fp_sphere_curved(const fp_sphere *s, double x, double *log_g, double *scaled_log, double *slope,
                                const int terms, const int pieces)
{
    const int huge = x > 1e100;
    const double a = s->a, b = s->b, root = huge ? x : sqrt(x * x + b * b), v = huge ? x : x * x / (b + root);
    const double inverse = 1.0 / root, p = b * inverse, gap = huge ? 1.0 : v * inverse, sine = huge ? 1.0 : x * inverse;
    const int is_near = p <= FP_SPHERE_CUT;
    const double stretch = pieces == 1 ? 2.0 : is_near ? 2.0 / FP_SPHERE_CUT : 2.0 / (1.0 - FP_SPHERE_CUT);
    const double shift = pieces == 1 || is_near ? 1.0 : (1.0 + FP_SPHERE_CUT) / (1.0 - FP_SPHERE_CUT);
    const double q = p * stretch - shift;
    const double left = gap * gap * fp_sphere_polynomial(q, is_near, s->value[0], s->value[1], terms, pieces);
    const double bend = gap * p * p * fp_sphere_polynomial(q, is_near, s->slope[0], s->slope[1], terms, pieces);
    const double logarithm = a * fp_log1p(v / s->dimension), base = huge ? 1.0 : (x + v) / (root + x);
    const double value = (v - logarithm) + left;
    *log_g = x == INFINITY ? x : value;
    *scaled_log = x < b ? value - x : left - (b * base + logarithm);
    *slope = huge ? 1.0 : x / (a + root) + sine * bend / b;
}

/* log G_d(x), log G_d(x) - x and the slope, for the kind that s has; NaN for x < 0 */
FP_INLINE void fp_sphere_log_of(const fp_sphere *s, double x, double *log_g, double *scaled_log, double *slope,
                                const int kind)
{
    *log_g = *scaled_log = *slope = NAN;
    if (kind == FP_SPHERE_LINE)
        fp_sphere_line(x, log_g, scaled_log, slope);
    else if (kind == FP_SPHERE_LOW)
        fp_sphere_curved(s, x, log_g, scaled_log, slope, FP_SPHERE_LOW_TERMS, 2);
    else if (kind == FP_SPHERE_MIDDLE)
        fp_sphere_curved(s, x, log_g, scaled_log, slope, FP_SPHERE_MIDDLE_TERMS, 2);
    else if (kind == FP_SPHERE_HIGH)
        fp_sphere_curved(s, x, log_g, scaled_log, slope, FP_SPHERE_HIGH_TERMS, 1);
    const int proper = x >= 0.0;
    *log_g = proper ? *log_g : NAN;
    *scaled_log = proper ? *scaled_log : NAN;
    *slope = proper ? *slope : NAN;
}

/* the same for a single point; inside a loop the kind should be a constant (fp_sphere_loops.h) */
FP_INLINE void fp_sphere_log(const fp_sphere *s, double x, double *log_g, double *scaled_log, double *slope)
{
    fp_sphere_log_of(s, x, log_g, scaled_log, slope, s->kind);
}

#endif
