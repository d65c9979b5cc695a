/* Hockey-stick divergences of two distributions on the same two points with Gaussian noise, in closed form.
 *
 * Notation.  P = p_0 N(m_0, s^2) + p_1 N(m_1, s^2) and Q = q_0 N(m_0, s^2) + q_1 N(m_1, s^2), weights >= 0 that need
 * not sum to 1; a = e^epsilon, c_k = p_k - a q_k, r = |m_1 - m_0| / (2 s), h(u) = delta of the Gaussian mechanism
 * (fp_gauss.h) at epsilon = u, for u of either sign.  Then p - a q = c_0 phi_0 + c_1 phi_1, so
 *
 *     H_a(P||Q) = 0 where both c_k <= 0,   c_0 + c_1 where both are >= 0,
 *               = A h(u)  for A = c_i > 0 > c_j = -B,  u = log(B / A),
 *     h(u) = 1 - e^u + e^u h(-u)          for u < 0, which happens only where the weights do not sum to 1.
 *
 * Poisson subsampling with rate q: "remove" is P = (1 - q, q), Q = (1, 0), and "add" is the other direction.  So is the
 * mixture of a release and its randomised response; p = (0, 1), q = (1, 0) is the Gaussian mechanism itself.
 *
 * Rounding of u.  h'(u) = -e^u Phi(-c - r), c = u / (2 r), which is h times R(b) / (R(a) - R(b)): about a / (2 r) for
 * small r.  So u is formed in double-doubles, from expm1(epsilon) and expm1(-epsilon):
 *
 *     A = (p_i - q_i) - q_i expm1(epsilon),   G = B / a = (q_j - p_j) - p_j expm1(-epsilon),
 *     u = epsilon + log(G / A) = epsilon + log1p((G - A) / A).
 *
 * The differences of weights are exact, and G - A is summed from its own terms, so that u keeps its relative accuracy
 * where epsilon is tiny.  What remains is bounded in `u_error`.  H is a convex function of A and B with derivatives
 * Phi_i(E) and -Phi_j(E), both in [-1, 1]: a relative error x of A changes H by x of itself, and by as much as an error
 * x of u does.
 *
 * Weights are scaled by 2^600, which is exact, so that no product underflows that matters. */
/* bounds: proved - the roundings of the product A h and of its logarithm, a few units of 2^-53 each; thresholds for
 * choosing a formula */
#ifndef FP_TWO_POINTS_H
#define FP_TWO_POINTS_H

#include "gauss/fp_gauss.h"
#include "special/fp_dd_elementary.h"

/* bound: none - what weights are scaled by, and the power of two */
#define FP_WEIGHT_SCALE 0x1p600
/* bound: none - the same */
#define FP_WEIGHT_SCALE_LOG2 600.0
/* bound: proved - relative errors of c_k, of G - A and of the logarithms: fp_dd.h and fp_dd_elementary.h, whose
 * bounds add up to less */
#define FP_TWO_POINTS_SUM 0x1p-99
/* bound: proved - the same, of sums alone */
#define FP_TWO_POINTS_KEPT 0x1p-103
/* bound: proved - absolute error of products that underflow, in the scale of the weights, with a margin */
#define FP_TWO_POINTS_LEAST 1e-280
/* bound: none - beyond these the quantity is bounded by monotonicity alone */
#define FP_TWO_POINTS_LEAST_R 1e-280
/* bound: none - the same */
#define FP_TWO_POINTS_FARTHEST 1e10
/* bound: proved - r is moved to these from beyond, by monotonicity */
#define FP_TWO_POINTS_LARGEST_R 1e200
/* bound: proved - the same */
#define FP_TWO_POINTS_SMALLEST_R 1e-300
/* bound: proved - stands for u = -inf: e^u underflows */
#define FP_TWO_POINTS_ALL -1e4
/* bound: proved - relative error of h, u and r being exact, and of log h but for half as much: delta, with 8 units of
 * 2^-53 more for the second parts of r and u, which the Mills ratios do without; where u < 0 three times as much serves
 * 1 - e^u + e^u h(-u), or 1 - h = e^u (1 - h(-u)), of which h(-u) leaves 0.31 (docs/proofs/gaussian.md, theorem 1.3) */
#define FP_TWO_POINTS_RELATIVE 6e-15

/* The weights, scaled; `first` is the point to be tried first. */
typedef struct {
    fp_dd p[2], q[2], excess[2], total; /* excess_k = p_k - q_k; total is their sum */
    int first;
} fp_two_points;

/* What H is made of at one epsilon: H = A h(u); NaN where the arguments are invalid. */
typedef struct {
    double r, r_low;
    double mass, mass_low; /* A, scaled */
    double mass_error;     /* relative */
    double u, u_low, u_error;
} fp_two_points_terms;

FP_INLINE fp_two_points fp_two_points_make(fp_dd p0, fp_dd p1, fp_dd q0, fp_dd q1, fp_dd excess0, fp_dd excess1)
{
    const fp_dd given[6] = {p0, p1, q0, q1, excess0, excess1};
    fp_dd scaled[6];
    for (int k = 0; k < 6; k++)
        scaled[k] = fp_dd_make(given[k].hi * FP_WEIGHT_SCALE, given[k].lo * FP_WEIGHT_SCALE);
    const fp_two_points out = {{scaled[0], scaled[1]}, {scaled[2], scaled[3]},
                               {scaled[4], scaled[5]}, fp_dd_add(scaled[4], scaled[5]), q0.hi > 0.0 && q1.hi == 0.0};
    return out;
}

/* Weights that are doubles. */
FP_INLINE fp_two_points fp_two_points_of(double p0, double p1, double q0, double q1)
{
    return fp_two_points_make(fp_dd_set(p0), fp_dd_set(p1), fp_dd_set(q0), fp_dd_set(q1), fp_two_sum(p0, -q0),
                              fp_two_sum(p1, -q1));
}

/* Poisson subsampling: P = (1 - rate, rate) and Q = (1, 0), or the other direction. */
FP_INLINE fp_two_points fp_two_points_subsampled(double rate, int adding)
{
    const fp_dd none = fp_dd_set(0.0), one = fp_dd_set(1.0), given = fp_dd_set(rate), less = fp_dd_set(-rate);
    const fp_dd complement = fp_two_sum(1.0, -rate);
    return adding ? fp_two_points_make(one, none, complement, given, given, less)
                  : fp_two_points_make(complement, given, one, none, less, given);
}

/* r = |distance| / (2 sigma) in two parts; the low part is dropped where r is beyond the limits. H rises with r, and
 * only an upper bound is taken from an r below the least, a lower bound from one above the largest. */
FP_INLINE fp_dd fp_two_points_ratio(fp_dd distance, double sigma)
{
    const fp_dd half = {0.5 * distance.hi, 0.5 * distance.lo};
    const fp_dd r = fp_dd_div_d(half.hi < 0.0 ? fp_dd_neg(half) : half, sigma);
    const double ratio = fabs(half.hi) / sigma, least = distance.hi != 0.0 ? FP_TWO_POINTS_SMALLEST_R : 0.0;
    const double rounded = ratio > least ? ratio : least;
    const int usual = r.hi >= FP_TWO_POINTS_LEAST_R && r.hi < FP_TWO_POINTS_FARTHEST;
    return usual ? r : fp_dd_set(rounded < FP_TWO_POINTS_LARGEST_R ? rounded : FP_TWO_POINTS_LARGEST_R);
}

/* c_k = p_k - a q_k with its error bound, scaled, and q_k expm1(epsilon); -1 where c_k is clearly negative */
FP_INLINE fp_dd fp_two_points_coefficient(const fp_two_points *w, int k, double epsilon, fp_dd *rise, double *error)
{
    *rise = fp_dd_set(0.0);
    *error = 0.0;
    if (w->q[k].hi == 0.0)
        return w->p[k];
    if (epsilon > 650.0) { /* q_k e^650 exceeds 2 unless q_k < 1e-281; what is left is not worth a formula */
        *error = w->q[k].hi < FP_WEIGHT_SCALE * 1e-281 ? (double)INFINITY : 0.0;
        return fp_dd_set(-FP_WEIGHT_SCALE);
    }
    if (epsilon == 0.0)
        return w->excess[k];
    const double rough = w->q[k].hi * fp_expm1(epsilon); /* the rise, to 1e-15 of it */
    if (rough > 1.0 && rough > 1.001 * w->excess[k].hi)  /* c_k < 0, and nobody asks how far */
        return fp_dd_set(-FP_WEIGHT_SCALE);
    const fp_dd growth = fp_dd_expm1(fp_dd_set(epsilon));
    if (!(w->q[k].hi * growth.hi < 4.0 * FP_WEIGHT_SCALE)) /* p_k < 2 */
        return fp_dd_set(-FP_WEIGHT_SCALE);
    *rise = fp_dd_mul(w->q[k], growth);
    const fp_dd c = fp_dd_sub(w->excess[k], *rise);
    *error = FP_TWO_POINTS_SUM * fabs(rise->hi) + FP_TWO_POINTS_KEPT * fabs(c.hi) + FP_TWO_POINTS_LEAST;
    return c;
}

/* -c_k / a = (q_k - p_k) - p_k expm1(-epsilon) with its error bound, scaled, and p_k expm1(-epsilon) */
FP_INLINE fp_dd fp_two_points_loss(const fp_two_points *w, int k, double epsilon, fp_dd *fall, double *error)
{
    const int none = w->p[k].hi == 0.0 || epsilon == 0.0;
    *fall = none ? fp_dd_set(0.0) : fp_dd_mul(w->p[k], fp_dd_expm1(fp_dd_set(-epsilon)));
    const fp_dd loss = fp_dd_neg(fp_dd_add(w->excess[k], *fall));
    *error = none ? 0.0
                  : FP_TWO_POINTS_SUM * fabs(fall->hi) + FP_TWO_POINTS_LEAST + FP_TWO_POINTS_KEPT * fabs(loss.hi);
    return loss;
}

/* A and u at one epsilon >= -1/2. */
FP_INLINE fp_two_points_terms fp_two_points_at(const fp_two_points *w, fp_dd r, double epsilon)
{
    fp_two_points_terms out = {r.hi, r.lo, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    double error, other_error, scaled_error;
    fp_dd rise, other_rise;
    int i = w->first;
    if (!(epsilon >= -0.5) || epsilon == (double)INFINITY) {
        out.mass = epsilon == (double)INFINITY ? 0.0 : (double)NAN;
        return out;
    }
    fp_dd mass = fp_two_points_coefficient(w, i, epsilon, &rise, &error);
    if (!(mass.hi > error)) {
        const fp_dd other = fp_two_points_coefficient(w, 1 - i, epsilon, &other_rise, &other_error);
        if (error > 0.0 && !(mass.hi < -error)) { /* its sign is not known: H <= |c_i| + its error + |c_j| */
            const double most = fabs(mass.hi) + error + (other.hi > -other_error ? fabs(other.hi) + other_error : 0.0);
            out.mass = most < INFINITY ? most : 2.0 * FP_WEIGHT_SCALE;
            out.u_error = INFINITY;
            return out;
        }
        mass = other;
        error = other_error;
        rise = other_rise;
        i = 1 - i;
        if (!(mass.hi > error)) { /* none is positive, but for their errors */
            out.mass = mass.hi > -error ? (error < INFINITY ? fabs(mass.hi) + error : 2.0 * FP_WEIGHT_SCALE) : 0.0;
            out.u_error = out.mass > 0.0 ? (double)INFINITY : 0.0;
            return out;
        }
    }
    const int j = 1 - i;
    fp_dd fall;
    const fp_dd scaled = fp_two_points_loss(w, j, epsilon, &fall, &scaled_error);
    if (!(scaled.hi > scaled_error)) { /* c_j >= 0, but for its error */
        const fp_dd other = fp_two_points_coefficient(w, j, epsilon, &other_rise, &other_error);
        const fp_dd sum = fp_dd_add(mass, other);
        const int known = scaled.hi < -scaled_error || scaled_error == 0.0;
        out.mass = known ? sum.hi : mass.hi + fabs(other.hi) + error + other_error;
        out.mass_low = known ? sum.lo : 0.0;
        out.mass_error = (error + other_error) / out.mass + FP_TWO_POINTS_KEPT;
        out.u = known ? FP_TWO_POINTS_ALL : 0.0;
        out.u_error = known ? 0.0 : (double)INFINITY;
        return out;
    }
    out.mass = mass.hi;
    out.mass_low = mass.lo;
    out.mass_error = error / mass.hi;

    const fp_dd gap = fp_dd_sub(rise, fp_dd_add(w->total, fall)); /* G - A */
    const double gap_error = FP_TWO_POINTS_SUM * (fabs(rise.hi) + fabs(fall.hi) + fabs(w->total.hi))
                             + (rise.hi != 0.0 || fall.hi != 0.0 ? FP_TWO_POINTS_LEAST : 0.0);
    fp_dd log_ratio;
    if (fabs(gap.hi) <= 0.5 * mass.hi) {
        const fp_dd z = fp_dd_div(gap, mass);
        log_ratio = fp_dd_log1p(z);
        out.u_error =
            2.01 * (gap_error / mass.hi + fabs(z.hi) * out.mass_error) + FP_TWO_POINTS_SUM * fabs(log_ratio.hi);
    } else {
        const int fits = mass.hi > 1e-100; /* so that the quotient is a double */
        const fp_dd top = fp_dd_log(fits ? fp_dd_div(scaled, mass) : scaled);
        const fp_dd bottom = fits ? fp_dd_set(0.0) : fp_dd_log(mass);
        log_ratio = fp_dd_sub(top, bottom);
        out.u_error = 1.01 * (scaled_error / scaled.hi + out.mass_error)
                      + FP_TWO_POINTS_SUM * (fabs(top.hi) + fabs(bottom.hi));
        if (!(scaled_error < 1e-3 * scaled.hi && error < 1e-3 * mass.hi))
            out.u_error = INFINITY;
    }
    const fp_dd u = fp_dd_add_d(log_ratio, epsilon);
    out.u = u.hi;
    out.u_low = u.lo;
    const int exact = gap.hi == 0.0 && gap_error == 0.0;
    out.u_error = exact ? 0.0 : out.u_error + FP_TWO_POINTS_KEPT * (fabs(epsilon) + fabs(log_ratio.hi));
    return out;
}

/* Whether `fp_two_points_usual` takes this epsilon. */
FP_INLINE int fp_two_points_is_usual(double epsilon) { return (epsilon >= 0x1p-60) & (epsilon <= 40.0); }

/* The bits of fp_two_points_at for q_1 = 0 and weights p_0 and p_1 = `mass` from 2^-200 to 2, all scaled, without
 * branches: loops of it are vectorised. NaN as the mass of what its formulas do not cover. */
FP_INLINE fp_two_points_terms fp_two_points_usual(fp_dd p, double mass, fp_dd excess, fp_dd total, fp_dd r,
                                                  double epsilon)
{
    const fp_dd fall = fp_dd_mul(p, fp_dd_expm1_falling(-epsilon)), scaled = fp_dd_neg(fp_dd_add(excess, fall));
    const fp_dd gap = fp_dd_sub(fp_dd_set(0.0), fp_dd_add(total, fall)); /* G - A */
    const double scaled_error = FP_TWO_POINTS_SUM * fabs(fall.hi) + FP_TWO_POINTS_LEAST
                                + FP_TWO_POINTS_KEPT * fabs(scaled.hi);
    const double gap_error = FP_TWO_POINTS_SUM * (fabs(fall.hi) + fabs(total.hi)) + FP_TWO_POINTS_LEAST;
    const int near = fabs(gap.hi) <= 0.5 * mass;
    const fp_dd top = {near ? gap.hi : scaled.hi, near ? gap.lo : scaled.lo}, z = fp_dd_div(top, fp_dd_set(mass));
    const fp_dd log_ratio = fp_dd_log1p_or_log(z, near), u = fp_dd_add_d(log_ratio, epsilon);
    const double relative = near ? 2.01 * (gap_error / mass) : 1.01 * (scaled_error / scaled.hi);
    const double u_error = relative + FP_TWO_POINTS_SUM * fabs(log_ratio.hi);
    const int holds = (z.hi >= (near ? 0x1p-100 : 1.4)) & (scaled_error < 1e-3 * scaled.hi);
    const fp_two_points_terms out = {r.hi, r.lo, holds ? mass : (double)NAN, 0.0, 0.0, u.hi, u.lo,
                                     u_error + FP_TWO_POINTS_KEPT * (epsilon + fabs(log_ratio.hi))};
    return out;
}

/* What H of the subsampled Gaussian mechanism is made of, from the weights and r of its arguments. */
FP_INLINE fp_two_points_terms fp_subsampled_terms(const fp_two_points *w, fp_dd r, double rate, double sigma,
                                                  double epsilon)
{
    const int valid = (rate >= 0.0) & (rate <= 1.0) & (sigma > 0.0) & (epsilon >= 0.0);
    const double distinct = sigma == (double)INFINITY ? (double)INFINITY : epsilon; /* infinite noise: P is Q */
    return fp_two_points_at(w, r, valid ? distinct : (double)NAN);
}

/* The parts of h that its value and its logarithm share. */
typedef struct {
    fp_gauss_parts parts;
    double missing;       /* 1 - h where it is below 0.62 */
    double value;         /* h */
    double error;         /* relative error of h and of log h, u being exact */
    double error_of_u;    /* relative error of h that u causes */
    double below;         /* a where h < e^(-a^2 / 2) is all that is known, else 0 */
    double least, most;   /* bounds of h where it is not regular */
    int negative;         /* u < 0 */
    int is_near;          /* log h is taken from `missing` */
    int is_regular;       /* the formula holds */
} fp_two_points_parts;

FP_INLINE fp_two_points_parts fp_two_points_evaluate(double r, double r_low, double u, double u_low, double u_error)
{
    fp_two_points_parts out;
    const int negative = u < 0.0;
    const double size = negative ? -u : u, size_low = negative ? -u_low : u_low;
    const fp_gauss_parts p = fp_gauss_evaluate_pairs(r, r_low, size, size_low);
    const double density = fp_gauss_density(p.a, p.a_low), lost = density * p.bulk;
    const double delta = p.is_bulk ? 1.0 - lost : density * (p.tail / p.scale);
    const double power = negative ? fp_exp(-size) : 1.0, rise = negative ? -fp_expm1(-size) : 0.0;
    const double missing = power * (p.is_bulk ? lost : 1.0 - delta), c = 0.5 * size / r;
    const double value = negative ? rise + power * delta : delta;
    const double factor = p.is_bulk ? density * p.far / delta : p.far * p.scale / p.tail; /* R(b) / (R(a) - R(b)) */
    const double rate = negative ? missing / value : factor;
    /* h(u) <= h(0) = 2 Phi(r) - 1 <= 0.8 r for u >= 0, and |h'| <= 1 */
    const double start = 0.8 * r < 1.0 ? 0.8 * r : 1.0, beyond = c - r, spread = 1e-6 * (c + r);
    const int is_known = u_error * (c + r) <= 1e-3 * r;
    const int below = (beyond > 100.0) & (beyond >= spread) & is_known & !negative;
    const int above = (-beyond > 100.0) & (-beyond >= spread) & is_known & !negative;
    const double most = rise + power * start + u_error;
    out.parts = p;
    out.missing = missing;
    out.value = value;
    out.error = FP_TWO_POINTS_RELATIVE * (negative ? 3.0 : 1.0);
    out.error_of_u = 1.01 * rate * u_error;
    out.negative = negative;
    out.is_near = p.is_bulk | (negative & (missing < 0.5));
    out.is_regular = (r >= FP_TWO_POINTS_LEAST_R) & (c + r < FP_TWO_POINTS_FARTHEST) & is_known;
    out.below = below ? beyond : 0.0;
    out.most = below ? 0.0 : most < 1.0 ? most : 1.0;
    out.least = above ? 1.0 : rise > u_error ? rise - u_error : 0.0;
    return out;
}

/* H = A h with bounds */
FP_INLINE fp_gauss_bounded fp_two_points_value(const fp_two_points_parts *h, double mass, double mass_error)
{
    const double scale = 1.0 / FP_WEIGHT_SCALE, middle = 0.5 * (h->least + h->most);
    const double bare = (h->value >= h->least) & (h->value <= h->most) ? h->value : middle;
    const double share = h->is_regular ? h->value : bare, value = mass * share * scale;
    const double relative = h->error + h->error_of_u + mass_error + 1e-15, error = value * relative + FP_GAUSS_LEAST;
    const double outward = mass_error + 1e-15;
    const double low = h->is_regular ? value - error : mass * h->least * scale * (1.0 - outward) - FP_GAUSS_LEAST;
    const double high = h->is_regular ? value + error : mass * h->most * scale * (1.0 + outward) + FP_GAUSS_LEAST;
    const int invalid = mass != mass, none = mass == 0.0;
    const double lower = low > 0.0 ? low : 0.0, upper = high < 1.0 ? high : 1.0, answer = value < 1.0 ? value : 1.0;
    const fp_gauss_bounded out = {invalid ? NAN : none ? 0.0 : answer,
                                  invalid ? NAN : none ? 0.0 : lower < answer ? lower : answer,
                                  invalid ? NAN : none ? 0.0 : upper};
    return out;
}

/* log H with bounds */
FP_INLINE fp_gauss_bounded fp_two_points_log(const fp_two_points_parts *h, double mass, double mass_low,
                                             double mass_error)
{
    const fp_gauss_parts p = h->parts;
    const double near = 1.0 - h->missing, far = h->negative ? h->value * 0x1p60 : p.tail;
    const int is_lifted = h->negative & !h->is_near, is_tail = !h->negative & !h->is_near;
    const double share = fp_log_lifted(h->is_near ? near : far, h->is_near ? (1.0 - near) - h->missing : 0.0,
                                       is_lifted ? 60.0 : 0.0);
    const double log_share = share - (is_tail ? p.log_scale + p.a * (0.5 * p.a + p.a_low) : 0.0);
    const double log_mass = fp_log_lifted(mass, mass_low, FP_WEIGHT_SCALE_LOG2), value = log_mass + log_share;
    const double of_log = is_tail ? h->error + 1e-15 * fabs(log_share) : 1.5 * h->error * fabs(log_share);
    const double error = of_log + h->error_of_u + mass_error
                         + 1e-15 * (fabs(log_mass) + fabs(value)) + FP_GAUSS_LEAST;
    const double bottom = h->below * (-0.51 * h->below), top = h->below * (-0.49 * h->below);
    const double least = h->least > 0.0 ? fp_log(h->least) : -HUGE_VAL;
    const double most = h->below > 0.0 ? (top > -1e308 ? top : -1e308) : fp_log(h->most);
    const double slack = mass_error + 1e-15 * (1.0 + fabs(log_mass));
    const double low = h->is_regular ? value - error : log_mass + least * (1.0 + 1e-15) - slack;
    const double high = h->is_regular ? value + error : log_mass + most * (1.0 - 1e-15) + slack;
    const double middle = low > -HUGE_VAL ? 0.5 * (low + high) : h->below > 0.0 ? log_mass + bottom : high - FP_LN2;
    const int invalid = mass != mass, none = mass == 0.0, fits = (value >= low) & (value <= high);
    const double upper = high < 0.0 ? high : 0.0, found = fits ? value : middle, answer = found < upper ? found : upper;
    const fp_gauss_bounded out = {invalid ? NAN : none ? -HUGE_VAL : answer,
                                  invalid ? NAN : none ? -HUGE_VAL : low < answer ? low : answer,
                                  invalid ? NAN : none ? -HUGE_VAL : upper};
    return out;
}

/* H or log H of the subsampled Gaussian mechanism, with bounds. */
FP_INLINE fp_gauss_bounded fp_subsampled_bounded(double rate, double sigma, double epsilon, int adding, int logs)
{
    const fp_two_points weights = fp_two_points_subsampled(rate, adding);
    const fp_two_points_terms t =
        fp_subsampled_terms(&weights, fp_two_points_ratio(fp_dd_set(1.0), sigma), rate, sigma, epsilon);
    const fp_two_points_parts h = fp_two_points_evaluate(t.r, t.r_low, t.u, t.u_low, t.u_error);
    return logs ? fp_two_points_log(&h, t.mass, t.mass_low, t.mass_error) : fp_two_points_value(&h, t.mass, t.mass_error);
}

#endif
