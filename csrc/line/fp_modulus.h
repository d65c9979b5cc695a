/* Bounds of the moduli of p, q and their divergence integrands on an ellipse around a panel, as logarithms.
 *
 * log_p and log_q bound log |p| and log |q| there; the notation is that of fp_panel.h.
 */
/* bounds: proved - rounding of moduli on the ellipse, in logarithms: docs/proofs/quadrature.md, theorem 4.12 */
#ifndef FP_MODULUS_H
#define FP_MODULUS_H

#include "line/fp_panel.h"

static inline double fp_log_sum(double a, double b)
{
    const double top = fp_max(a, b), low = a < b ? a : b;
    return top == -INFINITY || top == INFINITY ? top : top + fp_log1p(fp_exp(low - top));
}

/* max of Re(alpha d - beta d^2 / 2) over the ellipse with semi-axes x (real) and y */
static inline double fp_quadratic_maximum(double alpha, double beta, double x, double y)
{
    const double linear = fabs(alpha) * x, curvature = 0.5 * beta * (x * x + y * y), base = 0.5 * beta * y * y;
    double c = 1.0;
    if (curvature > 0.0 && linear < 2.0 * curvature)
        c = linear / (2.0 * curvature);
    return fp_max(base + c * (linear - c * curvature), fp_max(base, base + linear - curvature));
}

/* An upper bound of -log(1 - kappa), 0 <= kappa < 1, at most 6 % above it for small kappa */
static inline double fp_log_loss(double kappa)
{
    return kappa < 0.1 ? kappa / (1.0 - kappa) : -fp_log1p(-kappa);
}

/* log of a bound of |kappa-type integrand p f(l)| for |l| <= size: the quadratic bound, which is below p for size <
 * 0.9, or the plain one, p (1 + size) + q, within a factor of two */
static inline double fp_log_modulus_kl(double log_p, double log_q, double size)
{
    if (size < 0.9)
        return log_p + 2.0 * fp_log(size) + size - 0.69;
    return fp_max(log_p + fp_log(1.0 + size), log_q) + 0.6931472;
}

/* The same of p [(e^(b l) - 1) / b - 1] + q, where log_power bounds log |p^(1 + b) q^(-b)| and size bounds |l|, or l
 * alone on the real line: |e^z - 1| is at most 1 + |e^z|, and at most |z| max(1, |e^z|); on the real line p |l| max(1,
 * e^(b l)) <= q where l < 0, b > -1/2. */
static inline double fp_log_renyi_small(double log_p, double log_q, double log_power, double b, double size)
{
    const double plain = fp_log_sum(log_power, fp_log_sum(log_q + fp_log(fabs(b)), log_p + fp_log1p(b)))
                         - fp_log(fabs(b));
    const double rest = fp_log_sum(log_q + FP_LN2, log_p), slope = fp_log(size > 1e-300 ? size : 1e-300);
    return fp_min(plain, fp_log_sum(fp_max(log_power, log_p) + fp_min(slope, 2800.0), rest));
}

/* p log(p/m) + q log(q/m), halved; m = (p + q)/2 is itself a mixture of the two, gap bounds the change of log(p/q)
 * but for eps; slip the rounding of both logarithms */
static inline double fp_log_modulus_js(const fp_local_mixture *p, const fp_local_mixture *q, double log_p, double log_q,
                                       double gap, double slip)
{
    const double both = fp_log_sum(p->l0, q->l0), rp = fp_exp(p->l0 - both), rq = fp_exp(q->l0 - both);
    const double kappa = (1.0 + 1e-9 + 2.0 * slip) * (fp_exp(p->l0 - both + fp_log1p(p->kappa) + rq * gap)
                                         + fp_exp(q->l0 - both + fp_log1p(q->kappa) + rp * gap)) - 1.0;
    if (!(kappa < 0.97))
        return INFINITY;
    const double lambda = -fp_log1p(-fp_max(kappa, 1e-9)), middle = both - FP_LN2;
    const double size_p = fabs(p->l0 - middle) + rq * gap + p->lambda + lambda + slip;
    const double size_q = fabs(q->l0 - middle) + rp * gap + q->lambda + lambda + slip;
    const double plain = fp_log_sum(log_p + fp_log(size_p), log_q + fp_log(size_q));
    const double tight = size_p < 1.0 && size_q < 1.0
        ? fp_log_sum(log_p + 2.0 * fp_log(size_p) + size_p, log_q + 2.0 * fp_log(size_q) + size_q) - 0.69 : INFINITY;
    return (plain < tight ? plain : tight) - 0.69;
}

#endif
