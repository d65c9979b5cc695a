/* delta(epsilon) of local differential privacy that follows from context-independent mutual information m, equation
 * (10).
 *
 * Notation of fp_lmip.h.  A pair of outputs p0 < p1 is allowed when the binary channel with these rows has a capacity
 * of at most m, that is, when d(p0 || q) <= m and d(p1 || q) <= m for some q: a convex set.  For m < log 2 both hold
 * with equality at the best pair, q lies in (1 - e^-m, 1/2], and with D = dp/dq on each curve
 *
 *     D1 / D0 = e^epsilon,   D = (p - q) / (q (1-q) (logit p - logit q)).
 *
 * The unknown is v = log(q / p0).  v gives q on the ray p0 = e^-v q, q gives p1, and T = D1 / D0 - 1 rises with v; T is
 * formed from the excesses D - 1, so it keeps its digits near 0.  v^2 is close to a parabola Z(T), as v^2 = T^2 + 8 m
 * for small m and epsilon shows; the secant steps in (Z, v^2) use it.  The error of v enters delta by its square:
 *
 *     delta = (p1 - q) + q (1 - e^(epsilon - v)).
 */
#ifndef FP_LMIP_LDP_H
#define FP_LMIP_LDP_H

#include "lmip/fp_lmip.h"

typedef struct {
    double rise, weight; /* T, and p0 D1 / D0 / p1: the weight of a squared error of v in delta */
} fp_lmip_pair;

/* at v, from the q and x = p1 - q that belong to it */
FP_INLINE fp_lmip_pair fp_lmip_pair_of(double v, double q, double x)
{
    const double fall = -fp_expm1(-v), u = fp_exp(-v), y = fall * (q / (1.0 - q));
    const fp_lmip_term low = fp_lmip_of(u, -fall), high = fp_lmip_of(1.0 + y, y);
    const double rest = v > 1.0 ? v - fall : low.rest; /* e^-v may be 0 */
    const double h0 = -(rest - high.rest) / (v + high.log), h1 = fp_lmip_above_of(q, x).excess;
    fp_lmip_pair out;
    out.rise = (h1 - h0) / (1.0 + h0);
    out.weight = u * (1.0 + out.rise) * (q / (q + x));
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

/* a first x at epsilon = 0, where q = 1/2: 4 p (1-p) is close to the entropy of p in bits to the power 4/3 */
FP_INLINE double fp_lmip_floor_start(double m)
{
    const double bits = m / FP_LN2;
    return 0.5 * FP_LMIP_BELOW_ONE * __builtin_sqrt(-fp_expm1(fp_log1p(-bits) * (4.0 / 3.0)));
}

#endif
