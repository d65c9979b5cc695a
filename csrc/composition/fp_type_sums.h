/* Sums over the types of discrete pairs: how often each outcome occurs among the draws, and the loss that this makes.
 *
 * Notation. An atom j has probability p_j under P, q_j under Q and the loss l_j = log(p_j / q_j); the counts n_j of k
 * draws have the probability k! prod p_j^n_j / n_j! and the loss sum n_j l_j. A weight is a probability times
 * e^(theta loss) times a constant.
 *
 * Logarithms of probabilities, losses and factorials are double-doubles: a weight is the exponential of n slope +
 * offset - log n!, whose error is that of the exponential, as n slope is right to 2^-98 of its size.
 *
 * Two independent sums of losses a and b. With x = epsilon - a, the parts of delta that the b > x make are
 *     d(x) = sum w_b e^(-theta (b - x)) (1 - e^(-(b - x))),
 * and what is needed besides is r(x) = sum w_b e^(-(theta + 1) (b - x)), the tail under Q, and t(x) = sum w_b
 * e^(-theta (b - x)). As x falls by s to another point they change by
 *     t' = t e^(-theta s) + w,   r' = r e^(-(theta + 1) s) + w,
 *     d' = d e^(-(theta + 1) s) + t e^(-theta s) (1 - e^-s),
 * in which all terms are positive: one pass over the a and the b in order suffices, and nothing cancels. Short steps
 * add expm1 of small numbers to double-doubles, so that the errors do not grow with the number of points; they are
 * added up beside the sums, in units whose count is docs/proofs/sampled_tables.md, theorem 11.15. Near theta = -1 the
 * step of r is small, and not the sum of those of the factors: it is an expm1 by itself.
 *
 * log n!: a product below 32, Stirling's series with an error below its first term left out, 2e-22, from there on.
 */
/* bounds: proved - log(2 pi) / 2 less its leading part, to 2^-109; the errors of sums over types are theorem 11.15 */
#ifndef FP_TYPE_SUMS_H
#define FP_TYPE_SUMS_H

#include <stddef.h>
#include "special/fp_dd_elementary.h"
#include "special/fp_elementary.h"

/* log(p / q) of positive doubles p > q to 2^-98 */
FP_INLINE fp_dd fp_log_of_ratio(double p, double q)
{
    int a, b;
    const double f = frexp(p, &a), g = frexp(q, &b);
    if (p > 0.5 * q && p < 2.0 * q) { /* both scaled alike: the difference is exact */
        const fp_dd r = fp_dd_div_d(fp_two_sum(ldexp(f, a - b), -g), g);
        return fabs(r.hi) < 0.25 ? fp_dd_log1p(r) : fp_dd_log(fp_dd_add_d(r, 1.0));
    }
    return fp_dd_log_scaled(fp_dd_div_d(fp_dd_set(f), g), a - b);
}

/* log(p / q) of positive doubles to 2^-98; swapped, they have the opposite */
FP_INLINE fp_dd fp_loss_of_atom(double p, double q)
{
    return p > q ? fp_log_of_ratio(p, q) : p < q ? fp_dd_neg(fp_log_of_ratio(q, p)) : fp_dd_set(0.0);
}

/* log n! to 2e-21 + 2^-98 (n + 1) (log(n + 1) + 2) */
FP_INLINE fp_dd fp_log_factorial(double n)
{
    if (n < 32.0) {
        fp_dd product = fp_dd_set(1.0);
        for (double i = 2.0; i <= n; i += 1.0)
            product = fp_dd_mul_d(product, i);
        return fp_dd_log(product);
    }
    const fp_dd half_log_two_pi = {0x1.d67f1c864beb5p-1, -0x1.65b5a1b7ff5dfp-55};
    const double y = 1.0 / n, x = y * y;
    const double series = -1.0 / 360 + x * (1.0 / 1260 + x * (-1.0 / 1680 + x * (1.0 / 1188 + x * (-691.0 / 360360))));
    fp_dd sum = fp_dd_add_d(fp_dd_mul_d(fp_dd_log(fp_dd_set(n)), n + 0.5), -n);
    sum = fp_dd_add(sum, half_log_two_pi);
    return fp_dd_add_d(fp_dd_add(sum, fp_dd_div_d(fp_dd_set(1.0), 12.0 * n)), series * y * x);
}

/* e^(n slope + offset - log n!), at most 1.1 for who chooses the offset */
FP_INLINE double fp_type_weight(double n, fp_dd slope, fp_dd offset)
{
    const fp_dd e = fp_dd_add(fp_dd_sub(fp_dd_mul_d(slope, n), fp_log_factorial(n)), offset);
    return e.hi < -700.0 ? 0.0 : fp_exp(e.hi) * (1.0 + e.lo);
}

typedef struct {
    fp_dd d, d_error, r, r_error; /* sums of d(epsilon - a) and r(epsilon - a) times the weights of the a */
} fp_type_total;

typedef struct {
    fp_dd d, t, r;
    double d_error, t_error, r_error;
} fp_type_state;

/* bound: proved - relative error of one step or one pair, 12 units of 2^-53 (theorem 11.15), and the products with s */
#define FP_TYPE_ROUNDING (13.0 * FP_U)

/* x falls by s >= 0. fade = expm1(-theta s), fall = expm1(-s), both = expm1(-(theta + 1) s); theta >= -1, below 0 for
 * the tail alone */
FP_INLINE void fp_type_step(fp_type_state *z, double s, double theta, double fade, double fall, double both)
{
    const double unit = FP_TYPE_ROUNDING, kept = 1.0 + fade;
    const double gain = z->t.hi * kept * -fall;
    if ((theta + 1.0) * s < 0.5 && s < 0.5) {
        z->d_error += z->d_error * both - z->t_error * kept * fall + unit * (gain - z->d.hi * both);
        z->t_error += z->t_error * fade + unit * z->t.hi * fabs(fade);
        z->r_error += z->r_error * both - unit * z->r.hi * both;
        z->d = fp_dd_add_d(z->d, z->d.hi * both + gain);
        z->t = fp_dd_add_d(z->t, z->t.hi * fade);
        z->r = fp_dd_add_d(z->r, z->r.hi * both);
    } else {
        const double slow = fp_exp(-theta * s), fast = fp_exp(-(theta + 1.0) * s);
        const double slow_error = unit * (1.0 + fabs(theta) * s), fast_error = slow_error + unit * s;
        const double decayed = z->d.hi * fast, gained = -z->t.hi * slow * fall;
        z->d = fp_dd_set(decayed + gained);
        z->t = fp_dd_set(z->t.hi * slow);
        z->r = fp_dd_set(z->r.hi * fast);
        z->d_error = z->d_error * fast - z->t_error * slow * fall + fast_error * decayed + slow_error * gained;
        z->t_error = z->t_error * slow + slow_error * z->t.hi;
        z->r_error = z->r_error * fast + fast_error * z->r.hi;
    }
}

/* Adds what the pairs of one a and one b make. Both rise; b_step > 0 is the distance of all neighbouring b. */
static inline void fp_type_pairs(ptrdiff_t a_size, const double *a_hi, const double *a_lo, const double *a_weight,
                                 ptrdiff_t b_size, const double *b_hi, const double *b_lo, const double *b_weight,
                                 double b_step, fp_dd epsilon, double theta, fp_type_total *total)
{
    fp_type_state z = {{0.0, 0.0}, {0.0, 0.0}, {0.0, 0.0}, 0.0, 0.0, 0.0};
    ptrdiff_t j = b_size; /* the least b that is counted */
    double step = b_step, fade = fp_expm1(-theta * step), fall = fp_expm1(-step);
    double both = fp_expm1(-(theta + 1.0) * step);
    for (ptrdiff_t i = 0; i < a_size; i++) {
        const fp_dd x = fp_dd_sub(epsilon, fp_dd_make(a_hi[i], a_lo[i]));
        for (; j > 0 && fp_dd_gt(fp_dd_make(b_hi[j - 1], b_lo[j - 1]), x); j--) {
            if (j < b_size) {
                if (!(b_step > 0.0)) {
                    step = fp_dd_double(fp_dd_sub(fp_dd_make(b_hi[j], b_lo[j]), fp_dd_make(b_hi[j - 1], b_lo[j - 1])));
                    fade = fp_expm1(-theta * step), fall = fp_expm1(-step), both = fp_expm1(-(theta + 1.0) * step);
                }
                fp_type_step(&z, step, theta, fade, fall, both);
            }
            z.t = fp_dd_add_d(z.t, b_weight[j - 1]);
            z.r = fp_dd_add_d(z.r, b_weight[j - 1]);
        }
        if (j == b_size || a_weight[i] == 0.0)
            continue;
        const double s = fp_dd_double(fp_dd_sub(fp_dd_make(b_hi[j], b_lo[j]), x));
        const double slow = fp_exp(-theta * s), fast = fp_exp(-(theta + 1.0) * s), up = -fp_expm1(-s);
        const double slow_error = FP_TYPE_ROUNDING * (1.0 + fabs(theta) * s);
        const double fast_error = slow_error + FP_TYPE_ROUNDING * s;
        const double decayed = z.d.hi * fast, gained = z.t.hi * slow * up, d = decayed + gained, r = z.r.hi * fast;
        const double d_error = z.d_error * fast + z.t_error * slow * up + fast_error * decayed + slow_error * gained;
        const double w = a_weight[i];
        total->d = fp_dd_add_d(total->d, w * d);
        total->r = fp_dd_add_d(total->r, w * r);
        total->d_error = fp_dd_add_d(total->d_error, w * d_error);
        total->r_error = fp_dd_add_d(total->r_error, w * (z.r_error * fast + fast_error * r));
    }
}

/* One or two atoms, those of the larger loss first: their losses, and the weights of the counts first_i .. first_i +
 * size_i - 1 of each. */
typedef struct {
    int atoms;
    fp_dd losses[2];
    double first[2];
    ptrdiff_t size[2];
    const double *weights[2];
} fp_type_side;

/* The types of n draws from one side in order of their losses, and their number; room for the smaller of both sizes,
 * or for 1. */
static inline ptrdiff_t fp_type_side_list(const fp_type_side *side, double n, double *hi, double *lo, double *weight)
{
    if (side->atoms == 0) {
        hi[0] = lo[0] = 0.0;
        weight[0] = 1.0;
        return n == 0.0;
    }
    if (side->atoms == 1) {
        const double at = n - side->first[0];
        if (at < 0.0 || at >= (double)side->size[0])
            return 0;
        const fp_dd loss = fp_dd_mul_d(side->losses[0], n);
        hi[0] = loss.hi;
        lo[0] = loss.lo;
        weight[0] = side->weights[0][(ptrdiff_t)at];
        return 1;
    }
    const double low = fmax(side->first[0], n - (side->first[1] + (double)side->size[1] - 1.0));
    const double high = fmin(side->first[0] + (double)side->size[0] - 1.0, n - side->first[1]);
    if (!(low <= high))
        return 0;
    const ptrdiff_t count = (ptrdiff_t)(high - low) + 1;
    const double *u = side->weights[0] + (ptrdiff_t)(low - side->first[0]);
    const double *v = side->weights[1] + (ptrdiff_t)(n - low - side->first[1]);
    const fp_dd rise = fp_dd_sub(side->losses[0], side->losses[1]), base = fp_dd_mul_d(side->losses[1], n);
    for (ptrdiff_t i = 0; i < count; i++) {
        const fp_dd loss = fp_dd_add(base, fp_dd_mul_d(rise, low + (double)i));
        hi[i] = loss.hi;
        lo[i] = loss.lo;
        weight[i] = u[i] * v[-i];
    }
    return count;
}

/* k draws from both sides together, of which first .. first + size - 1 fall into side a. work: 3 (room_a + room_b). */
static inline void fp_type_splits(const fp_type_side *a, const fp_type_side *b, double k, double first, ptrdiff_t size,
                                  ptrdiff_t room_a, ptrdiff_t room_b, double *work, fp_dd epsilon, double theta,
                                  fp_type_total *total)
{
    double *w = work + 3 * room_a;
    const double b_step = b->atoms == 2 ? fp_dd_double(fp_dd_sub(b->losses[0], b->losses[1])) : 0.0;
    for (ptrdiff_t i = 0; i < size; i++) {
        const double n = first + (double)i;
        const ptrdiff_t m = fp_type_side_list(a, n, work, work + room_a, work + 2 * room_a);
        const ptrdiff_t l = m ? fp_type_side_list(b, k - n, w, w + room_b, w + 2 * room_b) : 0;
        if (l)
            fp_type_pairs(m, work, work + room_a, work + 2 * room_a, l, w, w + room_b, w + 2 * room_b, b_step, epsilon,
                          theta, total);
    }
}

#endif
