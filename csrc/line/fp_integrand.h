/* The integrands whose integrals over the line are the divergences of two densities p and q.
 *
 * Notation: lp = log p, lq = log q, l = lp - lq; dp, dq, dl bounds of the absolute errors of these three; u = 2^-53.
 * theorem 4.3 of docs/proofs/quadrature.md. Every integrand is written so that a small divergence costs no digits: with
 * kappa(x) = e^x - 1 - x >= 0,
 *   KL(P||Q)         integral of p kappa(-l)                       (p (l - 1) + q away from l = 0)
 *   JS(P, Q)         integral of m phi(t), m = (p + q)/2, t = tanh(l/2), phi(t) = t atanh(t) + log1p(-t^2)/2
 *   h(P)             integral of -p lp
 *   Renyi, order a   log of the integral of e^(lp + b l), b = a - 1, divided by b;  when that logarithm is small,
 *                    log1p(b S) / b, S the integral of p [kappa(b l) / b + kappa(-l)], which tends to KL as b -> 0
 *   where p or q is negligible   a constant times q or p, the limit of the above
 * The integrals of p and of q that these forms add and subtract cancel when both have the same mass.
 * Each function also returns a bound of the rounding error of its value, to second order in dl where f'(l)
 * vanishes; dp and dq are at most 1/64, and dl at most 1, where p and q do not underflow. */
/* bounds: proved - rounding of integrands, by first and second order: docs/proofs/quadrature.md, theorem 4.7 */
#ifndef FP_INTEGRAND_H
#define FP_INTEGRAND_H

#include "common/fp_constants.h"
#include "special/fp_math.h"

enum {
    FP_KL = 0,
    FP_JS = 1,
    FP_ENTROPY = 2,
    FP_RENYI = 3,
    FP_RENYI_SMALL = 4,
    FP_INFORMATION = 5,
    FP_MASS_P = 6,
    FP_MASS_Q = 7
};

/* kappa on |x| <= 1, to 4.7 units of 2^-53 */
FP_INLINE double fp_kappa_series(double x)
{
    static const double c[17] = {
        1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
        1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0, 1.0 / 87178291200.0, 1.0 / 1307674368000.0,
        1.0 / 20922789888000.0, 1.0 / 355687428096000.0, 1.0 / 6402373705728000.0,
    };
    double s = c[16];
#pragma GCC unroll 16
    for (int i = 15; i >= 0; i--)
        s = s * x + c[i];
    return x * x * s;
}

FP_INLINE double fp_clamp1(double x) { return x > 1.0 ? 1.0 : x < -1.0 ? -1.0 : x; }
FP_INLINE double fp_max(double a, double b) { return a > b ? a : b; }
FP_INLINE double fp_min(double a, double b) { return a < b ? a : b; }

FP_INLINE double fp_kl_node(double lp, double lq, double l, double dp, double dq, double dl, double *err)
{
    const double p = fp_exp(lp), q = fp_exp(lq), near = p * fp_kappa_series(-fp_clamp1(l)), far = q + p * (l - 1.0);
    const int small = fabs(l) < 1.0;
    const double f = small ? near : far;
    *err = 24.0 * FP_U * f
           + 1.03 * (small ? f * dp + (fabs(p - q) + 2.0 * (p + q) * dl) * dl : q * dq + p * fabs(l - 1.0) * dp + p * dl);
    return f;
}

FP_INLINE double fp_js_node(double lp, double lq, double l, double dp, double dq, double dl, double *err)
{
    const double p = fp_exp(lp), q = fp_exp(lq), m = 0.5 * (p + q), a = fabs(l), e = fp_exp(-a);
    const double t = -fp_expm1(-a) / (1.0 + e), s = t < 0.8 ? t : 0.8;
    const double near = 0.5 * (t * a) + 0.5 * fp_log1p(-(s * s));
    const double far = FP_LN2 - e * a / (1.0 + e) - fp_log1p(e);
    const double phi = a < 2.0 ? near : far, f = m * phi;
    /* phi'(a) = e a / (1 + e)^2 <= 1/4 a, and <= 3 e a anywhere in [a - 1, a]; log 2 - phi(a) <= (1 + a) e^-a */
    const double least = fp_max(a - dl, 0.0), rest = (1.0 + least) * fp_exp(-least);
    const double slope = a < 2.0 ? e * a / ((1.0 + e) * (1.0 + e)) + 0.25 * dl : 3.0 * e * a;
    *err = 28.0 * FP_U * f
           + 1.03 * (0.5 * phi * (p * dp + q * dq) + m * (dl < 1.0 ? slope * dl : rest < 0.7 ? rest : 0.7));
    return f;
}

FP_INLINE double fp_entropy_node(double lp, double dp, double *err)
{
    const double p = fp_exp(lp);
    *err = p * (1.03 * (fabs(lp) + 1.0) * dp + 4.0 * FP_U * fabs(lp));
    return -(p * lp);
}

FP_INLINE double fp_mass_node(double l, double factor, double dl, double *err)
{
    const double f = factor * fp_exp(l);
    *err = fabs(f) * (1.03 * dl + 4.0 * FP_U);
    return f;
}

FP_INLINE double fp_renyi_node(double lp, double l, double b, double shift, double dp, double dl, double *err)
{
    const double exponent = (lp - shift) + b * l;
    const double off = dp + fabs(b) * dl + FP_U * (4.0 + 2.0 * (fabs(lp) + fabs(shift)) + 3.0 * fabs(b * l));
    *err = off * fp_exp(exponent + off); /* e^y - 1 <= y e^y, whatever its size */
    return fp_exp(exponent);
}

/* (e^y - 1) / b, y = b l <= 1, to 5.3 units of 2^-53, also where b is subnormal */
FP_INLINE double fp_expm1_quotient(double l, double b)
{
    const double y = b * l;
    return fabs(y) < 1e-17 ? l : fp_expm1(y) / b;
}

FP_INLINE double fp_renyi_small_node(double lp, double lq, double l, double b, double dp, double dq, double dl,
                                     double *err)
{
    const double p = fp_exp(lp), q = fp_exp(lq), y = b * l, shifted = fp_exp(lp + y);
    const double near = p * (fp_kappa_series(fp_clamp1(y)) / b + fp_kappa_series(-fp_clamp1(l)));
    const double first = y > 1.0 ? (shifted - p) / b : p * fp_expm1_quotient(l, b), far = first + (q - p);
    const int small = fabs(l) < 1.0 && fabs(y) < 1.0;
    const double f = small ? near : far;
    const double risen = shifted * fp_exp(fabs(b) * dl); /* the largest e^(lp + b l) within dl of l */
    const double slope = (fabs(shifted - q) + (fabs(b) * risen + 2.0 * q) * dl) * dl + fabs(f) * dp;
    const double loose = 8.0 * FP_U * (fabs(first) + p + q) + q * dq + fabs(first) * dp + p * dp
                         + risen * (dl + FP_U * (y > 1.0 ? (fabs(lp) + 2.0 * fabs(y)) / b : fabs(l)));
    *err = 28.0 * FP_U * fabs(f) + 1.03 * (small ? slope : loose);
    return f;
}

#endif
