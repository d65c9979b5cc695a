/* Capacity of finite channels: divergences with proved bounds, and a solver for many small channels at once.
 *
 * Notation.  Channel Q (n inputs d, m outputs w), input law p, output law q = pQ, natural logarithms,
 *
 *     K_d = KL(Q_d || q) = sum over w of q psi(Q_dw / q),   psi(u) = u log u - u + 1 >= 0   (fp_binary_channel.h),
 *     I(p) = sum of p_d K_d  <=  C  <=  max of K_d.
 *
 * Every term of K_d is positive and right to 60 u, u = 2^-53, so that K_d has a relative error however small it is: x =
 * (Q - q)/q is formed from the difference. With sums in runs of 512 terms, eight lanes each, the error of K_d is at
 * most (140 + m/512) u of itself (docs/proofs/finite_capacity.md, theorem 7.4). The bracket is theorem 7.1 of
 * docs/proofs/finite_capacity.md, rows and inputs that miss 1 are 7.2 and 7.3, its roundings 7.5.
 *
 * Solver: primal-dual interior-point Newton with Mehrotra's predictor and corrector on
 *
 *     K_d + s_d = lambda,   p_d s_d = mu,   sum of p = 1,
 *     (B B^T + S/P) dp + dlambda = b,   B = [(Q - q)/sqrt(q), sqrt(k)],
 *
 * where centring the rows keeps the digits of nearly useless channels, and the last column, which does nothing to steps
 * of sum 0, keeps the matrix from being singular along p.  mu goes no lower than the target needs, since beyond that
 * the equations only lose digits.  Eight channels go side by side, one a lane; a lane that is done stands still, so
 * that no answer depends on its neighbours.
 */
/* bounds: proved - error of a divergence, (140 + m/512) u: docs/proofs/finite_capacity.md, theorem 7.4 */
#ifndef FP_CAPACITY_H
#define FP_CAPACITY_H

#include <stddef.h>

#include "channel/fp_binary_channel.h"
#include "common/fp_lanes.h"

#define FP_CAPACITY_SIZE 16  /* largest number of inputs and of outputs of a small channel */
#define FP_CAPACITY_RUN 512  /* terms summed in lanes before their sum is added to the total */
/* bound: proved - columns below it are left out, and 2^-899 is added to the upper bound for each */
#define FP_NEGLIGIBLE_COLUMN 0x1p-900
#define FP_CAPACITY_CENTRING 0.1 /* final sum of p_d s_d that steps aim at, as a fraction of the target */
/* bound: none - relative width to which the solver takes 2 x 2 channels */
#define FP_BINARY_RTOL 1e-13
/* bound: none - the solver's least probability */
#define FP_CAPACITY_LEAST_PROBABILITY 1e-30

/* Bound on the relative error of a divergence over m outputs. */
FP_INLINE double fp_divergence_relative_error(double m)
{
    return (140.0 + m / FP_CAPACITY_RUN) * 0x1p-53;
}

/* Bound of the change of the divergence k of a row whose sum differs from 1 by gap. */
FP_INLINE double fp_divergence_gap_error(double k, double gap)
{
    return 1.01 * gap * (k + sqrt(2.01 * k) + gap);
}

typedef double fp_capacity_lanes[FP_LANES];

typedef struct {
    int n, m;
    fp_capacity_lanes Q[FP_CAPACITY_SIZE * FP_CAPACITY_SIZE], B[FP_CAPACITY_SIZE * (FP_CAPACITY_SIZE + 1)];
    fp_capacity_lanes M[FP_CAPACITY_SIZE * FP_CAPACITY_SIZE], pivot[FP_CAPACITY_SIZE];
    fp_capacity_lanes p[FP_CAPACITY_SIZE], s[FP_CAPACITY_SIZE], K[FP_CAPACITY_SIZE], inverse[FP_CAPACITY_SIZE];
    fp_capacity_lanes q[FP_CAPACITY_SIZE], over[FP_CAPACITY_SIZE];
    fp_capacity_lanes b[FP_CAPACITY_SIZE], v[FP_CAPACITY_SIZE], dp[FP_CAPACITY_SIZE], ds[FP_CAPACITY_SIZE],
        rest[FP_CAPACITY_SIZE];
    fp_capacity_lanes best_p[FP_CAPACITY_SIZE], best_q[FP_CAPACITY_SIZE], best_K[FP_CAPACITY_SIZE];
    fp_capacity_lanes lambda, step, mean, most, active, best, mu, move, rounds_without_gain, rounds;
} fp_capacity_workspace;

#define FP_LOOPS "channel/fp_capacity_solver.h"
#include "common/fp_variants.h"

/* gap[d] = |1 - sum of row d|, rounded up; -1 where a cell is negative, -2 where one is NaN */
typedef void (*fp_channel_row_gaps_kernel)(ptrdiff_t n, ptrdiff_t m, const double *Q, double *gap);

/* K[d] for given q, 0 where q = 0; and, unless B is NULL, (Q - q)/sqrt(q) in rows of m + 1, whose last cell is not
 * written. */
typedef void (*fp_channel_divergences_kernel)(ptrdiff_t n, ptrdiff_t m, const double *Q, const double *q, double *K,
                                           double *B);

/* Many channels of n, m <= FP_CAPACITY_SIZE: rows of value, lower, upper, width reached by the solver, iterations. */
typedef void (*fp_capacity_solve_kernel)(ptrdiff_t many, int n, int m, const double *Q, const double *gap,
                                         double target, int most, double *numbers, double *input, double *output,
                                         double *K);

/* A channel of equal rows has capacity 0 exactly, and its row is the output law. */
static inline void fp_capacity_set_equal_rows(ptrdiff_t n, ptrdiff_t m, const double *Q, double *numbers, double *input,
                                              double *output, double *K)
{
    if (!(numbers[0] < 1e-25))
        return;
    for (ptrdiff_t d = 1; d < n; d++)
        for (ptrdiff_t w = 0; w < m; w++)
            if (Q[d * m + w] != Q[w])
                return;
    memset(numbers, 0, 5 * sizeof *numbers);
    memcpy(output, Q, (size_t)m * sizeof *output);
    for (ptrdiff_t d = 0; d < n; d++) {
        input[d] = 1.0 / (double)n;
        K[d] = 0.0;
    }
}

/* Intersect the bracket of a channel of two inputs and outputs with the one from the weight of the closed form, where
 * the rows are pairs of a number and its complement: docs/proofs/finite_capacity.md, theorem 7.12. */
static inline void fp_capacity_intersect_binary(const double *Q, const double *gaps, double *numbers)
{
    const double gap = gaps[0] > gaps[1] ? gaps[0] : gaps[1];
    const double value = fp_bac_capacity(Q[1], Q[0], Q[2], Q[3]);
    /* bound: proved - rows that miss 1 by more are left out, and small cells, so that nothing underflows: theorem
     * 7.12 of docs/proofs/finite_capacity.md */
    const double largest_gap = 0x1p-53, least_cell = 0x1p-800;
    int tiny = 0;
    for (int i = 0; i < 4; i++)
        tiny |= (Q[i] > 0.0) & (Q[i] < least_cell);
    if (!(gap <= largest_gap && value > 0.0) || tiny)
        return;
    const double spread = 2.1 * gap * (value + sqrt(2.1 * value) + 2.0 * gap), error = FP_BAC_CAPACITY_ERROR * value;
    const double low = value - error - spread, high = value + error + spread;
    const double lower = numbers[1] > low ? numbers[1] : low, upper = numbers[2] < high ? numbers[2] : high;
    if (lower <= upper) {
        numbers[0] = value < lower ? lower : value > upper ? upper : value;
        numbers[1] = lower, numbers[2] = upper;
        numbers[3] = upper - lower < numbers[3] ? upper - lower : numbers[3];
    }
}

/* Solve many small channels, and take what is known of equal rows and of two inputs and outputs. */
static inline void fp_capacity_of_small(fp_capacity_solve_kernel solve, ptrdiff_t many, int n, int m, const double *Q,
                                        const double *gaps, double target, int most, double *numbers, double *input,
                                        double *output, double *K)
{
    const int binary = n == 2 && m == 2;
    solve(many, n, m, Q, gaps, binary && target > FP_BINARY_RTOL ? FP_BINARY_RTOL : target, most, numbers, input, output,
          K);
    for (ptrdiff_t i = 0; i < many; i++) {
        fp_capacity_set_equal_rows(n, m, Q + i * n * m, numbers + 5 * i, input + i * n, output + i * m, K + i * n);
        if (binary)
            fp_capacity_intersect_binary(Q + i * n * m, gaps + i * n, numbers + 5 * i);
    }
}

typedef struct {
    fp_channel_row_gaps_kernel rows;
    fp_channel_divergences_kernel divergences;
    fp_capacity_solve_kernel small;
} fp_capacity_kernels;

static inline fp_capacity_kernels fp_capacity_select(void)
{
    return (fp_capacity_kernels){FP_SELECT(fp_channel_row_gaps), FP_SELECT(fp_channel_divergences),
                                 FP_SELECT(fp_capacity_solve)};
}

#endif
