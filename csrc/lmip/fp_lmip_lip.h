/* delta(epsilon) of local information privacy that follows from mutual information, for an atom of probability pi.
 *
 * Notation of fp_lmip.h.  B is the event, p = P(B | atom), s = P(B | no atom), q = pi p + (1-pi) s, rho = 1 - pi:
 *
 *     delta = max of q - e^epsilon p   subject to   pi d(p || q) + rho d(s || q) <= m.
 *
 * The set is convex and so is the problem.  Where the constraint binds, the logits obey, with c the distance of logit s
 * and logit p, and tau = pi e^-epsilon,
 *
 *     logit s - logit q = tau c =: a,   logit q - logit p = (1 - tau) c =: b,
 *     q = rho / (1 - e^-b) - pi / (e^a - 1) = rho B(b) + pi (1 - B(a)) - (e^epsilon - 1) / b,
 *     v = log(q / p) = epsilon + integral of B from a to c,   B(x) = 1 / (1 - e^-x) - 1 / x,
 *
 * so that one unknown c is left, and the information rises with c.  c fixes the ray p = e^-v q, and q is then found
 * again on that ray (fp_lmip_ray_step): delta = q (1 - e^(epsilon - v)) keeps all digits although c is only known to
 * 1e-8, since the error of the ray enters by its square.
 *
 * All divergences are divided by pi.  For pi = 0 the second one drops out and the constraint is d(p || q) <= m / pi,
 * the form printed as equation (13).
 *
 * The other half of the notion, e^-epsilon p - q with p > q, is never larger.  Let t = e^epsilon and (q, p) be its
 * optimum.  If p >= t / (1+t), the complement (1-q, 1-p) is as informative and 1-q - t (1-p) >= p/t - q.  Otherwise
 * q < p/t gives p + q < 1, and (q', p') = (p/t, q/t) has q' - t p' = p/t - q and no more information: substituting
 * z -> z/t in d(p' || q') = integral of (z - p') / (z (1-z)) and reflecting it about (p+q)/2 leaves the integrand of
 * d(p || q) with z (t-z) in the place of z (1-z) at the mirrored point, where it is larger; the same for
 * s. */
/* bounds: proved - docs/proofs/conversions.md, 12.12: series of B, its integral and its slope, which place the ray */
#ifndef FP_LMIP_LIP_H
#define FP_LMIP_LIP_H

#include "lmip/fp_lmip.h"

typedef struct {
    double value, complement, tilt; /* B(x), 1 - B(x), x B'(x) */
} fp_lmip_bernoulli;

/* the coefficients of B(x) = 1/2 + x/12 - x^3/720 + ... and of the logarithm of sinh(x/2) / (x/2) */
static const double fp_lmip_b[8] = {
    1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160,
    -5.2841901386874931e-10, 1.3382536530684679e-11, -3.3896802963225829e-13,
};

/* x >= 0 */
FP_INLINE fp_lmip_bernoulli fp_lmip_bernoulli_of(double x, double missing) /* missing = 1 - e^-x */
{
    static const double D[8] = {
        1.0 / 12, -3.0 / 720, 5.0 / 30240, -7.0 / 1209600, 9.0 / 47900160,
        -11 * 5.2841901386874931e-10, 13 * 1.3382536530684679e-11, -15 * 3.3896802963225829e-13,
    };
    const double square = x * x, odd = x * fp_polynomial(square, fp_lmip_b, 8), inverse = 1.0 / x;
    const double power = (1.0 - missing) / missing; /* 1 / (e^x - 1) */
    const int near = x < 1.0;
    fp_lmip_bernoulli out;
    out.value = near ? 0.5 + odd : 1.0 / missing - inverse;
    out.complement = near ? 0.5 - odd : inverse - power;
    out.tilt = near ? x * fp_polynomial(square, D, 8) : inverse - x * (power / missing);
    return out;
}

typedef struct {
    double level;       /* m / pi, or m for pi = 0 */
    double pi, rest;    /* rest = 1 - pi */
    double cap;         /* the entropy of the atom over pi; inf for pi = 0 */
    double epsilon, excess, tau, gap; /* capped epsilon, e^epsilon - 1, pi e^-epsilon, 1 - tau */
} fp_lmip_atom;

/* for epsilon = 0 a small delta is the root of m (1-pi) / (2 pi), whose square must not be subnormal: a smaller m
 * counts as this over 1-pi, the safe side */
/* bound: proved - a smaller mu (1 - pi) counts as this one: delta rises with mu, and the lower bound is 0 there */
#define FP_LMIP_LEAST_SPREAD 1e-306

FP_INLINE fp_lmip_atom fp_lmip_atom_of(double information, double epsilon, double pi)
{
    fp_lmip_atom out;
    const double small = pi < 0.5 ? pi : 1.0 - pi, least = FP_LMIP_LEAST_SPREAD / (1.0 - pi);
    const double m = information < least ? least : information;
    const double entropy = -small * fp_log(small > 0.0 ? small : 1.0) - (1.0 - small) * fp_log1p(-small);
    out.pi = pi;
    out.rest = 1.0 - pi;
    out.level = pi > 0.0 ? m / pi : m;
    out.cap = pi > 0.0 ? entropy / pi : INFINITY;
    out.epsilon = epsilon < FP_LMIP_EPSILON_CAP ? epsilon : FP_LMIP_EPSILON_CAP;
    out.excess = fp_expm1(out.epsilon);
    out.tau = pi / (1.0 + out.excess);
    out.gap = (out.excess + out.rest) / (1.0 + out.excess);
    return out;
}

/* does the constraint bind, and is there anything to find? */
FP_INLINE int fp_lmip_atom_binds(fp_lmip_atom atom)
{
    return (atom.level > 0.0) & (atom.level < atom.cap) & (atom.level < 745.0) & (atom.rest > 0.0);
}

FP_INLINE double fp_lmip_atom_guess(fp_lmip_atom atom)
{
    /* where q = 0: a fixed point of b -> gap / tau log(1 + pi / rho (1 - e^-b)) */
    double root = atom.excess + atom.excess / (1.0 + atom.excess);
#pragma GCC unroll 2
    for (int k = 0; k < 2; k++) {
        const double part = -fp_expm1(-root);
        root =
            atom.gap * (atom.pi > 0.0 ? fp_log1p(atom.pi / atom.rest * part) / atom.tau : (1.0 + atom.excess) * part);
    }
    const double floor = root / atom.gap;
    /* small gaps of the logits, gaps on the scale of the rarer side, and the end of the range */
    const double odds = atom.pi / atom.rest, rare = atom.level * (odds > 1.0 ? odds : 1.0);
    const double growth = rare < 680.0 ? (1.0 + atom.excess) * fp_expm1(rare) : 1e300;
    const double square = growth < 1e150 ? growth * growth : 0.0;
    const double modest = __builtin_sqrt(8.0 * atom.level / atom.rest + floor * floor + square);
    const double free = growth < 1e150 ? modest : growth, share = atom.cap < INFINITY ? atom.level / atom.cap : 0.0;
    const double most = (3.0 - 1.2 * fp_log(1.0 - share)) / (atom.tau < atom.gap ? atom.tau : atom.gap);
    return free < most ? free : most;
}

typedef struct {
    double v, excess; /* log(q / p); the information at c less its level */
    double p, missing; /* p and 1 - s */
    double fixed;      /* 1 if s is so close to 1 that it has to be held instead of the ray, else 0 */
    double step; /* Newton's in log c, on log(1 - information / cap), which is close to linear where it saturates */
} fp_lmip_at;

FP_INLINE fp_lmip_at fp_lmip_atom_at(fp_lmip_atom atom, double c)
{
    const double tau = atom.tau, a = tau * c, b = atom.gap * c;
    const double power = fp_exp(-a), ma = -fp_expm1(-a), mb = -fp_expm1(-b), mc = ma + mb - ma * mb;
    const fp_lmip_bernoulli A = fp_lmip_bernoulli_of(a, ma), B = fp_lmip_bernoulli_of(b, mb);
    const fp_lmip_bernoulli C = fp_lmip_bernoulli_of(c, mc);
    const double drop = atom.excess / b, upper = atom.rest / mb, lower = atom.pi * (power / ma);
    const int apart = a > 1.0; /* then 1/a and 1/b would cancel in B */
    const double q = apart ? upper - lower : atom.rest * B.value + atom.pi * A.complement - drop;
    const double qc = atom.rest * B.complement + atom.pi * A.value + drop;
    /* integral of B from a to c: by its series, or b + log(tau (1 - e^-c) / (1 - e^-a)) */
    const double aa = a * a, cc = c * c, sum = a + c;
    double last = 1.0, series = 0.0, total = 0.0;
    static const double S[7] = {
        1.0 / 24, -1.0 / 2880, 1.0 / 181440, -1.0 / 9676800, 1.0 / 479001600, -4.4034917822395777e-11,
        9.5589546647747704e-13,
    };
#pragma GCC unroll 7
    for (int k = 0; k < 7; k++) {
        total = k == 0 ? 1.0 : total * cc + last; /* (c^2k - a^2k) / (c^2 - a^2) */
        last *= aa;
        series += S[k] * total;
    }
    const double growth = power * mb / ma, less = growth - (1.0 + growth) * atom.gap, one = 1.0 + less;
    const double ratio = (mc / c) / (a > 0.0 ? ma / a : 1.0);
    const double far = b + (tau > 0.5 ? fp_log_two(one, less - (one - 1.0)) : fp_log_two(ratio, 0.0));
    const double v = atom.epsilon + (c < 1.0 ? b * (0.5 + sum * series) : far);
    const double fall = -fp_expm1(-v), u = fp_exp(-v);
    const fp_lmip_ray ray = fp_lmip_ray_of(u, fall, atom.pi, atom.rest);
    double along;
    const double information = fp_lmip_information(ray, q, qc, &along);
    const double turn = apart ? a * (lower / ma) - b * (upper / mb) * (1.0 - mb)
                              : atom.rest * B.tilt - atom.pi * A.tilt + drop; /* c dq/dc */
    /* c times the slope of the information: (e^-epsilon - u) dq + q u dv; where 1 - s is tiny these cancel, and it is
     * taken from dp and d(1 - s) */
    const double p = u * q, missing = qc * (mb / mc) * (power / atom.rest), tail = b * ((1.0 - mb) / mb);
    const double spread = -fp_expm1(atom.epsilon - v) / (1.0 + atom.excess), lift = c * (C.value - tau * A.value);
    const double fade = a + turn / qc - tail + c * (power * (1.0 - mb) / mc);
    const int fixed = (a > 2.0) & (a > b) & (missing < 0.5);
    const double apart_rate = b * (p * lift - u * turn) + ray.odds * (a * (missing * fade));
    const double rate = fixed ? apart_rate : c * (turn * spread + (q > 0.0 ? p * lift : 0.0));
    const double excess = information - atom.level, left = 1.0 - information / atom.cap;
    const double room = atom.cap * (left > 0x1p-53 ? left : 0x1p-53);
    fp_lmip_at out;
    out.v = v;
    out.p = p;
    out.missing = missing;
    out.fixed = fixed ? 1.0 : 0.0;
    out.excess = excess;
    out.step = -(atom.cap < INFINITY ? room * fp_log1p(excess / room) : excess) / rate;
    return out;
}

/* p for the s at hand: where a > b, 1 - s is smaller than p, and an error of the ray would ask for a larger s than
 * there is.  delta = rho (s - p) - (e^epsilon - 1) p. */
FP_INLINE double fp_lmip_fixed_step(fp_lmip_atom atom, double missing, double b, double p)
{
    const double span = (1.0 - missing) - p, q = p + atom.rest * span, qc = atom.pi * (1.0 - p) + atom.rest * missing;
    const fp_lmip_ray ray = fp_lmip_ray_of(p / q, atom.rest * (span / q), atom.pi, atom.rest);
    double slope;
    const double next = p + (fp_lmip_information(ray, q, qc, &slope) - atom.level) / b;
    return next > 0.25 * p ? next : 0.25 * p;
}

#endif
