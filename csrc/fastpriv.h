/* Functions of fastpriv for C: static, without allocation; NaN outside their domains.
 *
 * A function that returns fastpriv_bounds gives a value with a lower and an upper bound of the truth. gaussian_epsilon
 * and gaussian_noise are on the safe side of the truth, and those with _below on the other, so that each pair is a
 * bracket. The capacity under a peak-power constraint, whose solver takes memory, is in fastpriv_awgn.h.
 *
 * The directory of this header is fastpriv.get_include(). Compile with -ffp-contract=off for the bits of
 * fastpriv.special, whose documentation has domains and accuracy; link with -lm.  GCC or Clang, C11 or later; for a GPU
 * NVRTC, with the options of fastpriv.device.
 */
#ifndef FASTPRIV_H
#define FASTPRIV_H

#include "special/fp_math.h"
#include "gauss/fp_gauss_inverse.h"
#include "gauss/fp_two_points.h"
#include "channel/fp_binary_channel.h"

#define FASTPRIV_1(name, scalar) static inline double fastpriv_##name(double a) { return scalar(a); }
#define FASTPRIV_2(name, scalar) static inline double fastpriv_##name(double a, double b) { return scalar(a, b); }
#define FASTPRIV_4(name, scalar)                                                                                       \
    static inline double fastpriv_##name(double a, double b, double c, double d) { return scalar(a, b, c, d); }

FASTPRIV_1(exp, fp_exp)
FASTPRIV_1(expm1, fp_expm1)
FASTPRIV_1(log, fp_log)
FASTPRIV_1(log1p, fp_log1p)
FASTPRIV_1(erfc, fp_erfc)
FASTPRIV_1(erfcx, fp_erfcx)
FASTPRIV_1(mills_ratio, fp_mills)
FASTPRIV_1(ndtr, fp_ndtr)
FASTPRIV_1(log_ndtr, fp_log_ndtr)
FASTPRIV_1(log1mexp, fp_log1mexp)
FASTPRIV_2(logaddexp, fp_logaddexp)
FASTPRIV_2(ndtr_difference, fp_ndtr_diff)
FASTPRIV_2(log_ndtr_difference, fp_log_ndtr_diff)
FASTPRIV_2(gaussian_delta, fp_gaussian_delta)         /* r = sensitivity / (2 sigma), epsilon */
FASTPRIV_2(gaussian_log_delta, fp_gaussian_log_delta) /* the same */
FASTPRIV_2(binary_entropy_with_complement, fp_binary_entropy)
FASTPRIV_4(bac_capacity_with_complements, fp_bac_capacity)

/* solvers, once, for the processor that the compiler is told of */
#define FP_ISA header
#include "gauss/fp_gauss_solver.h"
#include "gauss/fp_subsampled_inverse_solver.h"
#undef FP_ISA

#define FASTPRIV_INVERSE(name)                                                                                         \
    static inline double fastpriv_##name(double known, double target)                                                  \
    {                                                                                                                  \
        const double *const in[] = {&known, &target};                                                                  \
        double found;                                                                                                  \
        name##_header(in, &found, 1);                                                                                  \
        return found;                                                                                                  \
    }

FASTPRIV_INVERSE(gaussian_epsilon) /* r, delta */
FASTPRIV_INVERSE(gaussian_epsilon_below)
FASTPRIV_INVERSE(gaussian_epsilon_from_log_delta) /* r, log delta */
FASTPRIV_INVERSE(gaussian_epsilon_below_from_log_delta)
FASTPRIV_INVERSE(gaussian_noise) /* epsilon, delta; returns sigma / sensitivity */
FASTPRIV_INVERSE(gaussian_noise_below)
FASTPRIV_INVERSE(gaussian_noise_from_log_delta) /* epsilon, log delta */
FASTPRIV_INVERSE(gaussian_noise_below_from_log_delta)

typedef struct {
    double value, lower, upper;
} fastpriv_bounds;

#define FASTPRIV_SUBSAMPLED(name, expression)                                                                          \
    static inline fastpriv_bounds fastpriv_##name(double first, double second, double target)                          \
    {                                                                                                                  \
        const fp_gauss_bounded found = expression;                                                                     \
        const fastpriv_bounds out = {found.value, found.lower, found.upper};                                           \
        return out;                                                                                                    \
    }

/* sigma, rate, epsilon */
FASTPRIV_SUBSAMPLED(sampled_gaussian_delta_remove, fp_subsampled_bounded(second, first, target, 0, 0))
FASTPRIV_SUBSAMPLED(sampled_gaussian_delta_add, fp_subsampled_bounded(second, first, target, 1, 0))
FASTPRIV_SUBSAMPLED(sampled_gaussian_log_delta_remove, fp_subsampled_bounded(second, first, target, 0, 1))
FASTPRIV_SUBSAMPLED(sampled_gaussian_log_delta_add, fp_subsampled_bounded(second, first, target, 1, 1))
/* sigma, rate, delta */
FASTPRIV_SUBSAMPLED(sampled_gaussian_epsilon_remove,
                    fp_subsampled_inverse_header(second, first, target, 0, FP_GAUSS_OF_EPSILON))
FASTPRIV_SUBSAMPLED(sampled_gaussian_epsilon_add,
                    fp_subsampled_inverse_header(second, first, target, 1, FP_GAUSS_OF_EPSILON))
/* rate, epsilon, delta; sigma over sensitivity */
FASTPRIV_SUBSAMPLED(sampled_gaussian_noise_remove,
                    fp_subsampled_inverse_header(first, second, target, 0, FP_GAUSS_OF_R))
FASTPRIV_SUBSAMPLED(sampled_gaussian_noise_add,
                    fp_subsampled_inverse_header(first, second, target, 1, FP_GAUSS_OF_R))

static inline double fastpriv_binary_entropy(double p) { return fp_binary_entropy(p, 1.0 - p); }
static inline double fastpriv_bac_capacity(double a, double b) { return fp_bac_capacity(a, 1.0 - a, b, 1.0 - b); }

#endif
