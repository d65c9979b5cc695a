/* delta(epsilon) of local differential privacy that follows from context-independent mutual information m, equation (10).
 *
 * Notation of fp_lmip.h.  A pair of outputs p0 < p1 is allowed when the binary channel with these rows has a capacity of
 * at most m, that is, when d(p0 || q) <= m and d(p1 || q) <= m for some q: a convex set.  For m < log 2 both hold with
 * equality at the best pair, q lies in (1 - e^-m, 1/2], and with D = dp/dq on each curve
 *
 *     D1 / D0 = e^epsilon,   D = (p - q) / (q (1-q) (logit p - logit q)).
 *
 * The unknown is v = log(q / p0).  v gives q on the ray p0 = e^-v q, q gives p1, and T = D1 / D0 - 1 rises with v; T is
 * formed from the excesses D - 1, so it keeps its digits near 0.  v^2 is close to a parabola Z(T), as v^2 = T^2 + 8 m for
 * small m and epsilon shows; the secant steps in (Z, v^2) use it.  The error of v enters delta by its square:
 *
 *     delta = (p1 - q) + q (1 - e^(epsilon - v)).
 */
#ifndef FP_LMIP_LDP_H
#define FP_LMIP_LDP_H

#include "fp_lmip.h"

typedef struct {
    double q, x, rise, weight; /* x = p1 - q, rise = T, weight = p0 D1 / D0: that of a squared error of v in delta */
} fp_lmip_pair;

FP_INLINE fp_lmip_pair fp_lmip_pair_of(double m, double v, const int steps)
{
    const double fall = -fp_expm1(-v), u = fp_exp(-v);
    const fp_lmip_ray ray = fp_lmip_ray_of(u, fall, 0.0, 1.0);
    fp_lmip_pair out;
    double l, h;
    out.q = fp_lmip_on_ray(ray, m, steps);
    const double lean = fall * (1.0 - 2.0 * out.q);
    out.x = fp_lmip_above(m, out.q, fall * out.q * (1.0 + lean * (1.0 / 3.0 + 0.4 * lean)), steps, &l, &h);
    const fp_lmip_term low = fp_lmip_of(u, -fall);
    const double y = fall * (out.q / (1.0 - out.q));
    const fp_lmip_term high = fp_lmip_of(1.0 + y, y);
    const double l0 = v + high.log, h0 = -(low.rest - high.rest) / l0;
    out.rise = (h - h0) / (1.0 + h0);
    out.weight = u * out.q * (1.0 + out.rise);
    return out;
}

/* Z(T) = linear T + bend T^2 with v^2 - floor^2 within a third of Z(T) for T = e^epsilon - 1 = excess */
typedef struct {
    double linear, bend;
} fp_lmip_parabola;

FP_INLINE fp_lmip_parabola fp_lmip_parabola_of(double floor, double excess)
{
    const double square = floor * floor;
    fp_lmip_parabola out;
    out.linear = floor * (1.0 + floor * (0.63 + 0.37 * floor / (4.0 + floor)));
    out.bend = (1.0 + 0.164 * excess) / (1.0 + 0.484 * excess) * (1.0 + square * (1.2 + 0.03 * square));
    return out;
}

/* v at epsilon = 0, where q = 1/2 */
FP_INLINE double fp_lmip_pair_floor(double mu, double m, const int steps)
{
    double l, h;
    const double guess = 0.5 * __builtin_sqrt(-fp_expm1(fp_log1p(-mu) * (4.0 / 3.0)));
    const double x = fp_lmip_above(m, 0.5, guess, steps, &l, &h);
    return -fp_log1p(-2.0 * x);
}

/* delta as epsilon grows: p1 with d(p1 || q) = m at q = 1 - e^-m, where p0 = 0 */
FP_INLINE double fp_lmip_ldp_saturation(double mu)
{
    const double bits = (mu > 0.0) & (mu < 1.0) ? mu : 0.5, m = bits * FP_LMIP_LN2, q = -fp_expm1(-m);
    double l, h;
    const double lean = 1.0 - 2.0 * q, x = fp_lmip_above(m, q, q * (1.0 + lean * (1.0 / 3.0 + 0.4 * lean)), 6, &l, &h);
    double value = q + x;
    value = mu == 0.0 ? 0.0 : value;
    value = mu >= 1.0 ? 1.0 : value;
    return mu >= 0.0 ? value : NAN;
}

#endif
