/* What one release does to beliefs over a discrete domain: sums over blocks of log likelihoods and priors.
 *
 * Notation: l_d = log likelihood of the release under secret d, pi_d its prior, t_d = log pi_d + l_d the joint weight,
 * Z = sum e^t the evidence, post_d = e^t_d / Z, y_d = l_d - log Z = log post_d / pi_d the log ratio.  Secrets of prior
 * zero take part in nothing; those of likelihood zero have y = -inf.
 *
 * First pass, one exponential a secret: largest and smallest l with their places, largest t with its place and number
 * of ties, and relative to a reference  rest = sum of e^(t - reference) without the ties,  moment = sum of
 * e^(t - reference) (t - reference). The reference is the multiple of 4 nearest to top: sums of tiles and blocks whose
 * tops lie near each other are added as they are, and those of others are scaled by e^-4 at most, so that what counts
 * among n secrets is scaled log(n) / 4 times and no more, in whatever order they come. With both relative to top
 *     log Z = top + log(ties + rest),   entropy = log(ties + rest) - moment / (ties + rest),
 * and nothing in the entropy cancels, however concentrated the posterior.
 * Second pass, given log Z to one rounding:  excess = sum pi (e^y - 1), the correction of Z, and
 *     KL(post||prior) = sum pi e^y kappa(-y),  kappa(x) = e^x - 1 - x,
 *     JS(post, prior) = sum (pi + post)/2 phi(tanh(y/2)),  phi(t) = t atanh(t) + log(1 - t^2)/2,
 * whose terms are never negative and are right to second order in an error of log Z.
 *
 * Away from y = 0 phi is log 2 - log(1 + e^-|y|) - |y| / (1 + e^|y|): a series in tanh(log(1 + e^-|y|) / 2), no
 * logarithm.
 *
 * Sums run in the lanes of a group of vectors over a tile of FP_TILE secrets and in two doubles from tile to tile, so a
 * block has the same bits on one instruction set, and its sums are right to 2^-46 (FP_TILE / 8 + 16 roundings at most,
 * and those of FMA where the machine has it).
 */
/* bounds: proved - e^x and e^-x together, and series near 0 by their next term: docs/proofs/posteriors.md, theorem 10.6 */
#ifndef FP_POSTERIOR_H
#define FP_POSTERIOR_H

#include <stddef.h>

#include "line/fp_integrand.h"
#include "common/fp_lanes.h"
#include "common/fp_vector_tables.h"

#define FP_TILE 512

/* How the prior of a block is given. */
enum { FP_PRIOR_NONE, FP_PRIOR_PLAIN, FP_PRIOR_LOG };

typedef struct {
    double top, ties, most, least; /* of t; then of l */
    ptrdiff_t top_at, most_at, least_at;
    fp_accumulator mass, rest, moment;
} fp_evidence_sums;

typedef struct {
    fp_accumulator excess, kl, js;
} fp_divergence_sums;

/* The `capacity` largest t with their indices, as a heap. Its root is the next one to be replaced: the smallest,
 * and of equal ones the latest. */
typedef struct {
    ptrdiff_t capacity, count;
    double *t;
    ptrdiff_t *at;
} fp_largest_weights;

FP_INLINE int fp_largest_weights_before(const fp_largest_weights *best, ptrdiff_t i,
                                        ptrdiff_t j) /* whether i is replaced before j */
{
    return best->t[i] < best->t[j] || (best->t[i] == best->t[j] && best->at[i] > best->at[j]);
}

FP_INLINE void fp_largest_weights_swap(fp_largest_weights *best, ptrdiff_t i, ptrdiff_t j)
{
    const double t = best->t[i];
    const ptrdiff_t at = best->at[i];
    best->t[i] = best->t[j], best->at[i] = best->at[j];
    best->t[j] = t, best->at[j] = at;
}

/* Offer an entry. Indices must come in ascending order: of equal entries the first ones stay. */
static void fp_largest_weights_offer(fp_largest_weights *best, double t, ptrdiff_t at)
{
    if (best->count < best->capacity) {
        ptrdiff_t i = best->count++;
        best->t[i] = t, best->at[i] = at;
        while (i && fp_largest_weights_before(best, i, (i - 1) / 2))
            fp_largest_weights_swap(best, i, (i - 1) / 2), i = (i - 1) / 2;
        return;
    }
    if (!(best->capacity && t > best->t[0]))
        return;
    best->t[0] = t, best->at[0] = at;
    for (ptrdiff_t i = 0;;) {
        ptrdiff_t first = i, left = 2 * i + 1;
        if (left < best->capacity && fp_largest_weights_before(best, left, first))
            first = left;
        if (left + 1 < best->capacity && fp_largest_weights_before(best, left + 1, first))
            first = left + 1;
        if (first == i)
            return;
        fp_largest_weights_swap(best, i, first), i = first;
    }
}

/* The workspace of one tile. */
typedef struct {
    double l[FP_TILE], t[FP_TILE], w[FP_TILE], a[FP_TILE], b[FP_TILE], c[FP_TILE];
} fp_tile;

/* What the sums of secrets with this largest t are relative to. */
FP_INLINE double fp_evidence_reference(double top) { return 4.0 * rint(0.25 * top); }

FP_INLINE fp_evidence_sums fp_evidence_sums_empty(void)
{
    return (fp_evidence_sums){
        .top = -INFINITY, .most = -INFINITY, .least = INFINITY, .top_at = -1, .most_at = -1, .least_at = -1};
}

/* e^x and e^-x for 0 <= x <= 700 from one reduction: with x = k log 2 + r, both are sums of the even and the odd part
 * of e^r, scaled by 2^k and by 2^-k; 3 units of 2^-53 */
FP_INLINE void fp_exp_both(double x, double *rise, double *fall)
{
    static const double even[6] = {1.0 / 2, 1.0 / 24, 1.0 / 720, 1.0 / 40320, 1.0 / 3628800, 1.0 / 479001600};
    static const double odd[6] = {
        1.0 / 6, 1.0 / 120, 1.0 / 5040, 1.0 / 362880, 1.0 / 39916800, 1.0 / 6227020800.0,
    };
    const double shifted = x * FP_LOG2E + FP_SHIFT, k = shifted - FP_SHIFT;
    const double r = (x - k * FP_LN2_HI) - k * FP_LN2_LO, z = r * r;
    double c = even[5], s = odd[5];
#pragma GCC unroll 5
    for (int i = 4; i >= 0; i--) {
        c = c * z + even[i];
        s = s * z + odd[i];
    }
    c = c * z;
    s = r + r * z * s;
    const uint64_t power = (fp_bits(shifted) - fp_bits(FP_SHIFT)) << 52;
    *rise = fp_double(fp_bits(1.0) + power) * (1.0 + (c + s));
    *fall = fp_double(fp_bits(1.0) - power) * (1.0 + (c - s));
}

/* log(1 + e) for 0 <= e <= 0.61, to 4 units of 2^-53 */
FP_INLINE double fp_log1p_below(double e)
{
    static const double c[12] = {
        1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
        1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25,
    };
    const double x = e / (2.0 + e), z = x * x;
    return 2.0 * x + 2.0 * x * z * fp_polynomial(z, c, 12);
}

/* kappa(y) and kappa(-y) on |y| <= 1/2, to 64 units of 2^-53: the series leaves 58 at -1/2 */
FP_INLINE void fp_kappa_both(double y, double *forward, double *backward)
{
    static const double even[6] = {1.0 / 2, 1.0 / 24, 1.0 / 720, 1.0 / 40320, 1.0 / 3628800, 1.0 / 479001600};
    static const double odd[6] = {
        1.0 / 6, 1.0 / 120, 1.0 / 5040, 1.0 / 362880, 1.0 / 39916800, 1.0 / 6227020800.0,
    };
    const double z = y * y;
    double c = even[5], s = odd[5];
#pragma GCC unroll 5
    for (int i = 4; i >= 0; i--) {
        c = c * z + even[i];
        s = s * z + odd[i];
    }
    *forward = z * (c + y * s);
    *backward = z * (c - y * s);
}

/* phi(tanh(y/2)) on |y| <= 1/2, to 5 units of 2^-53; z = y^2 */
FP_INLINE double fp_phi_near(double z)
{
    static const double c[11] = {
        1.0 / 8, -1.0 / 64, 1.0 / 576, -17.0 / 92160, 31.0 / 1612800, -691.0 / 348364800, 5461.0 / 26824089600.0,
        -929569.0 / 44635285094400.0, 3202291.0 / 1506440871936000.0, -2.1664872983109939e-10, 2.205613494954526e-11,
    };
    return z * fp_polynomial(z, c, 11);
}

/* The three terms of the second pass from the prior w and y = log posterior/prior; the posterior is w e^y, or
 * *posterior where it is known. For |y| > 600 the terms depend on y only through the posterior, which must then be
 * known. */
FP_INLINE void fp_divergence_terms(double w, double y, const int known, double *posterior, double *excess, double *kl,
                               double *js)
{
    const int up = y > 0.0, near = fabs(y) < 0.5;
    const double size = fabs(y), a = size < 700.0 ? size : 700.0, short_y = near ? y : 0.0;
    double rise, fall, forward, backward;
    fp_exp_both(a, &rise, &fall);
    const double faded = size > 700.0 ? 0.0 : fall;
    const double v = known ? *posterior : w * (up ? rise : faded);
    fp_kappa_both(short_y, &forward, &backward);
    const double part = FP_LN2 - fp_log1p_below(faded < 0.61 ? faded : 0.61);
    const double ratio_less_one = near ? w * (y + forward) : v - w; /* v - w */
    const double large = up ? v : w, small = up ? w : v, next_terms = size < 1e300 ? size : 0.0;
    *posterior = v;
    *excess = ratio_less_one;
    *kl = near ? v * backward : (up ? v * next_terms : -(v * next_terms)) - ratio_less_one;
    *js = 0.5 * (near ? (w + v) * fp_phi_near(short_y * short_y) : large * part + small * (part - next_terms));
}

/* (tanh(y/2) - y/2) / y^3 in y^2, |y| <= 1/2 */
/* bound: proved by proofs/tables - tanh less its first term, to 1e-17 */
static const double fp_tanh_tail[7] = {
    -0x1.5555555555535p-5, 0x1.1111111107930p-8, -0x1.ba1ba1a0507a9p-12, 0x1.664f391041d63p-15,
    -0x1.226974288f4d1p-18, 0x1.d541253a09aa8p-22, -0x1.5b671c1bef12bp-25,
};

/* (log((1 + q) / (1 - q)) - 2 q) / q^3 in q^2, where (1 + q) / (1 - q) = 1 + e^-|y|, |y| >= 1/2 */
/* bound: proved by proofs/tables - log(1 + e^-|y|), to 1e-17 */
static const double fp_atanh_tail[8] = {
    0x1.555555555550ep-1, 0x1.99999999aed23p-2, 0x1.249249138f530p-2, 0x1.c71c7ee7dac3ep-3,
    0x1.745a4ccd57381p-3, 0x1.3b6bbe8272e23p-3, 0x1.0ad43f162024cp-3, 0x1.2c71ca2da23eep-3,
};

/* (y/2 tanh(y/2) - log cosh(y/2)) / y^2 in y^2, |y| <= 1/2 */
/* bound: proved by proofs/tables - the divergence of two coins near 0, to 1.6e-17 of itself */
static const double fp_divergence_tail[8] = {
    0x1.0000000000000p-3, -0x1.ffffffffffefap-7, 0x1.c71c71c6f15fcp-10, -0x1.82d82d579c42bp-13,
    0x1.427a78ba12cf7p-16, -0x1.0a34a17ac3ab5p-19, 0x1.b37c953126bcap-23, -0x1.4366dda93070bp-26,
};

#define FP_LOOPS "posterior/fp_posterior_loops.h"
#include "common/fp_variants.h"

typedef void (*fp_evidence_kernel)(ptrdiff_t n, const void *l, int l_single, int kind, const void *prior,
                                   int prior_single, double shift, int sums, fp_evidence_sums *all,
                                   fp_largest_weights *best);
typedef void (*fp_divergence_kernel)(ptrdiff_t n, const void *l, int l_single, int kind, const void *prior,
                                     int prior_single, double weight, double high, double low, fp_divergence_sums *all,
                                     double *posterior);
typedef void (*fp_evidence_merge_kernel)(fp_evidence_sums *all, const fp_evidence_sums *one);

typedef struct {
    fp_evidence_kernel first;
    fp_divergence_kernel second;
    fp_evidence_merge_kernel join;
} fp_posterior_kernels;

static inline fp_posterior_kernels fp_posterior_select(void)
{
    return (fp_posterior_kernels){FP_SELECT(fp_evidence_block), FP_SELECT(fp_divergence_block),
                                  FP_SELECT(fp_evidence_merge)};
}

#endif
