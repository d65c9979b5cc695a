/* What the conversions of mutual-information privacy share: one divergence, and the points where it takes a value.
 *
 * Notation.  Probabilities p and q, x = p - q, r = x / q, s = x / (1-q); d(p || q) is the divergence of two coins, in
 * nats.  With psi(u) = u log u - u + 1 and L(x) = x - log(1 + x), both >= 0,
 *
 *     d(p || q) = q psi(1 + r) + (1-q) psi(1 - s),      l = logit p - logit q = (r + s) - L(r) + L(-s),
 *
 * and all of it keeps its digits however small x is, because one logarithm gives psi and L through z = x / (2 + x):
 *
 *     psi = 2 z^2 / (1-z) (1 + (1+z) z T),   L = 2 z^2 / (1-z) (1 - (1-z) z T),   log(1+x) = 2 (z + z^3 T),  T =
 * T(z^2).
 *
 * On the curve d(p || q) = m the slope dp/dq is (r + s) / l = 1 + (L(r) - L(-s)) / l.
 *
 * An equation d = m is solved by Newton's method.  d is convex along the lines used, so one step from anywhere leads
 * above the root and the steps that follow fall to it; a point known to 1e-16 of itself costs no more digits than d,
 * since a convex function that vanishes at 0 has x d'(x) >= d(x).
 */
/* bounds: proved - docs/proofs/conversions.md, 12.12: the series of psi; where an argument of the logarithm is
 * subnormal */
#ifndef FP_LMIP_H
#define FP_LMIP_H

#include "special/fp_elementary.h"

#define FP_LMIP_BELOW_ONE 0x1.fffffffffffffp-1
/* bound: proved - e^epsilon p is below 1e-98 from there on: the curves differ from their limits by less than an ulp */
#define FP_LMIP_EPSILON_CAP 6.0

/* bound: proved - a smaller mu counts as this one: delta, a maximum over what mu allows, rises with mu, and the lower
 * bound is 0 there */
#define FP_LMIP_LEAST 1e-300

enum { FP_LMIP_BLOCK = 64, FP_LMIP_STEPS = 40 };
enum {
    FP_LMIP_DELTA,
    FP_LMIP_HIGH,
    FP_LMIP_LOG_LOW
}; /* the requested output: delta, or the high or the logarithm of the low probability of the pair that attains it */

/* mu > 0 in nats, raised to the least supported value. */
FP_INLINE double fp_lmip_clamp(double mu)
{
    return mu < FP_LMIP_LEAST ? FP_LMIP_LEAST : mu;
}

/* A point between low >= 0 and high <= inf, for steps that would leave the bracket. */
FP_INLINE double fp_lmip_between(double low, double high, double here)
{
    const double middle = low > 0.0 ? __builtin_sqrt(low) * __builtin_sqrt(high) : 0.125 * high;
    return high < INFINITY ? middle : 8.0 * here;
}

typedef struct {
    double psi, rest, log; /* psi(1 + x), L(x), log(1 + x) */
} fp_lmip_term;

/* of 1 + x = u >= 0, both given */
FP_INLINE fp_lmip_term fp_lmip_of(double u, double x)
{
    static const double T[14] = {
        1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15,
        1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27, 1.0 / 29,
    };
    const double z = x / (2.0 + x), square = z * z, tail = z * fp_polynomial(square, T, 14);
    const double twice = 2.0 * square / (1.0 - z), logarithm = fp_log(u > 0x1p-1022 ? u : 0x1p-1022);
    const int near = square <= 0.0625;
    fp_lmip_term out;
    out.psi = near ? twice * (1.0 + (1.0 + z) * tail) : u * logarithm - x;
    out.rest = near ? twice * (1.0 - (1.0 - z) * tail) : x - logarithm;
    out.log = near ? 2.0 * z * (1.0 + z * tail) : logarithm;
    return out;
}

/* d(q + x || q) for 0 < x < 1 - q */
typedef struct {
    double value, logit, excess; /* the divergence, logit p - logit q, and the slope dp/dq of its level line, less 1 */
} fp_lmip_above;

FP_INLINE fp_lmip_above fp_lmip_above_of(double q, double x)
{
    const double qc = 1.0 - q, r = x / q, s = x / qc;
    const fp_lmip_term up = fp_lmip_of(1.0 + r, r), down = fp_lmip_of(1.0 - s, -s);
    fp_lmip_above out;
    out.value = q * up.psi + qc * down.psi;
    out.logit = (r + s) - up.rest + down.rest;
    out.excess = (up.rest - down.rest) / out.logit;
    return out;
}

/* Newton's step for d(q + x || q) = m */
FP_INLINE double fp_lmip_above_step(double m, double q, double x)
{
    const fp_lmip_above at = fp_lmip_above_of(q, x);
    const double most = (1.0 - q) * FP_LMIP_BELOW_ONE, next = x - (at.value - m) / at.logit;
    const double kept = next > 0.25 * x ? next : 0.25 * x;
    return kept < most ? kept : most;
}

/* a first x, from that of the lower point x = fall q */
FP_INLINE double fp_lmip_above_start(double q, double fall)
{
    const double lean = fall * (1.0 - 2.0 * q), most = (1.0 - q) * FP_LMIP_BELOW_ONE;
    const double x = fall * q * (1.0 + lean * (1.0 / 3.0 + 0.4 * lean));
    return x < most ? x : most;
}

/* The atom's law on a ray: q = P(B), p = u q = P(B | atom), s = (1 + rise) q = P(B | no atom), rise = pi (1-u) /
 * (1-pi). information = pi d(p || q) + (1-pi) d(s || q), all over pi; pi = 0 leaves d(p || q). */
typedef struct {
    double fall, rise;      /* 1 - u, and s / q - 1 */
    double odds;            /* (1-pi) / pi, or 0 for pi = 0 */
    double psi;             /* psi(u) + odds psi(1 + rise) */
} fp_lmip_ray;

FP_INLINE fp_lmip_ray fp_lmip_ray_of(double u, double fall, double pi, double rest)
{
    fp_lmip_ray ray;
    ray.fall = fall;
    ray.rise = pi / rest * fall;
    ray.odds = pi > 0.0 ? rest / pi : 0.0;
    ray.psi = fp_lmip_of(u, -fall).psi + ray.odds * fp_lmip_of(1.0 + ray.rise, ray.rise).psi;
    return ray;
}

/* information at q, qc = 1 - q, and its derivative along the ray; for q <= 0 the tangent at 0 */
FP_INLINE double fp_lmip_information(fp_lmip_ray ray, double q, double qc, double *slope)
{
    const double ratio = q > 0.0 ? q / qc : 0.0;
    const double y = ray.fall * ratio, least = 1.0 - ray.rise * ratio, ws = least > 0.0 ? least : 0.0;
    const fp_lmip_term p = fp_lmip_of(1.0 + y, y), s = fp_lmip_of(ws, ws - 1.0 > -0.5 ? -ray.rise * ratio : ws - 1.0);
    *slope = ray.psi + (p.rest + ray.fall * p.log) + ray.odds * (s.rest - ray.rise * s.log);
    return q * ray.psi + qc * (p.psi + ray.odds * s.psi);
}

/* y = -log(1 - q) with information = level: a first one, and Newton's step.  In y the information is close to a
 * straight line also where q is close to 1. */
FP_INLINE double fp_lmip_ray_most(fp_lmip_ray ray)
{
    return ray.rise > 0.0 ? FP_LMIP_BELOW_ONE * fp_log1p(1.0 / ray.rise) : 1000.0; /* s = 1 */
}

FP_INLINE double fp_lmip_ray_start(fp_lmip_ray ray, double level)
{
    const double scale = 1.0 / (ray.fall * ray.fall), linear = ray.psi * scale, lift = ray.rise / ray.fall;
    const double bend = 1.0 + ray.odds * (lift * lift) - linear, target = level * scale, most = fp_lmip_ray_most(ray);
    const double y = 2.0 * target / (linear + __builtin_sqrt(linear * linear + 2.0 * bend * target));
    return y < most ? y : most;
}

FP_INLINE double fp_lmip_ray_step(fp_lmip_ray ray, double level, double y)
{
    const double q = -fp_expm1(-y), qc = fp_exp(-y), most = fp_lmip_ray_most(ray);
    double slope;
    const double value = fp_lmip_information(ray, q, qc, &slope), next = y - (value - level) / (qc * slope);
    const double kept = next > 0.25 * y ? next : 0.25 * y;
    return kept < most ? kept : most;
}

#endif
