/* The optimal LIP curve of a discrete law behind Gaussian noise: types, layout of the memory, and the choice of
 * instruction set.
 *
 * Notation.  The law has atoms x_1 < ... < x_n of weights w_i; M = sum w_i N(x_i, sigma^2), N_a = N(a, sigma^2) for an
 * atom a, d_i = (x_i - a) / sigma, t = (y - a) / sigma, Phi the normal distribution function, R the Mills ratio,
 * H_e(P||Q) = sup_E P(E) - e^e Q(E).  By Ngo, Oestman and Graell i Amat, On local mutual-information privacy, eq. (6),
 *     delta(e) = max over a of max{H_e(M||N_a), e^-e H_e(N_a||M)}.
 *
 * docs/proofs/lip.md, theorem 5.1: f(t) = log M/N_a is convex and f(0) <= 0, so that {f > e} is t > t_R and t < t_L
 * with t_L <= 0 <= t_R. docs/proofs/lip.md, theorem 5.2: the second divergence is never the larger one.
 * docs/proofs/lip.md, theorem 5.3: with Right(a), Left(a) what the two tails contribute, H_e(M||N_a) <= Left(u) +
 * Right(l) for every atom a from l to u, and <= 1 - w_a. Runs of atoms are halved until one of these proves that none
 * of them exceeds the best one found. docs/proofs/lip.md, theorem 5.4: any t gives a lower bound of Right(a), which
 * lacks little near t_R. */
/* bounds: none - the scale of lengths below which nothing is computed but 1 - min w */
#ifndef FP_LIP_H
#define FP_LIP_H

#include "common/fp_lanes.h"
#include "special/fp_math.h"
#include "line/fp_bracket.h"
#include "common/fp_stop_token.h"
#include <stddef.h>

/* bound: proved - the error of log M by that of M, of M by that of its mass where 1 is taken out of it (head of
 * fp_lip_solver.h), and what lies beyond the radius */
#define FP_LIP_GROUP_MARGIN 3.0

/* Atoms as seen from one side: x increases and right tails are taken. The arrays are padded with atoms of weight
 * zero. */
typedef struct {
    int n;
    double *x, *weight, *log_weight;
    fp_dd *beyond; /* total weight of atoms i to n - 1 */
} fp_lip_atoms;

/* Right(a) at the last epsilon: value and lower bound times e^scale, upper bound times e^scale_above. */
typedef struct {
    double t, slope, epsilon;
    double value, lower, upper, loss; /* loss: what the upper bound adds for the error of the crossing */
    double theta; /* relative error of the mass of N_a */
    fp_dd scale, scale_above;
    int resolved; /* whether the crossing is enclosed and the two scales are equal */
    ptrdiff_t visit; /* 1 + index of that epsilon; 0 before the first one */
} fp_lip_tail;

/* A divergence's upper bound, and its logarithm. */
typedef struct {
    double plain, log;
} fp_lip_bound;

typedef struct {
    int first, last, node;
} fp_lip_run;

typedef struct {
    int n;
    double sigma, inverse; /* in the unit of x */
    fp_lip_atoms side[2];   /* 0: right tails, 1: left tails, the atoms mirrored */
    fp_lip_atoms group[2];  /* fewer atoms with nearly the same density; n is 0 where there are none */
    double group_error;     /* relative error of that density within sqrt(group_square) sigmas of an atom */
    double group_square;
    fp_lip_tail *tail[2];
    double *centre;        /* upper bound of f(0) for each atom; NaN where it is unknown */
    double *least_weights;      /* least weight of each node of a binary tree of runs */
    double *h, *e, *d;     /* workspace of one window */
    fp_lip_run *stack;
    double excess;         /* sum of the weights minus 1 */
    double target;
    int logs;
    long evaluations, extended, undecided;
    fp_stop_token stop;
} fp_lip;

/* Least weight within [first, last]. A node's left child follows it; the right child follows the left subtree. */
static inline double fp_lip_least_weights(fp_lip *lip, int first, int last, int node)
{
    double least = lip->side[0].weight[first];
    if (first < last) {
        int middle = first + (last - first) / 2;
        double left = fp_lip_least_weights(lip, first, middle, node + 1);
        double right = fp_lip_least_weights(lip, middle + 1, last, node + 2 * (middle - first + 1));
        least = left < right ? left : right;
    }
    return lip->least_weights[node] = least;
}

/* Fewer atoms whose density with noise added is that of all atoms, within a factor of 1 +- error wherever an atom lies
 * within `radius` sigmas. Each of them lies between two atoms of a cell. */
typedef struct {
    int n;
    const double *weight, *x;
    double error, radius;
} fp_lip_groups;

/* Fill `side` with n atoms times 2^unit, mirrored for the left tails; returns the cursor behind what it has taken. */
static inline double *fp_lip_fill(fp_lip_atoms *side, int mirrored, int n, const double *w, const double *x, int unit,
                                  double *cursor)
{
    size_t padded = (size_t)n + 2 * FP_LANES;
    double **fields[] = {&side->x, &side->weight, &side->log_weight};
    side->n = n;
    side->beyond = (fp_dd *)cursor;
    cursor += 2 * ((size_t)n + 1);
    for (size_t f = 0; f < sizeof fields / sizeof *fields; ++f)
        *fields[f] = cursor, cursor += padded;
    for (size_t i = 0; i < padded; ++i) {
        size_t from = mirrored ? (size_t)n - 1 - i : i;
        int real = i < (size_t)n;
        side->x[i] = real ? ldexp(mirrored ? -x[from] : x[from], unit) : side->x[n - 1];
        side->weight[i] = real ? w[from] : 0.0;
        side->log_weight[i] = real ? fp_log(w[from]) : -1e300;
    }
    side->beyond[n] = fp_dd_set(0.0);
    for (int i = n - 1; i >= 0; --i)
        side->beyond[i] = fp_dd_add_d(side->beyond[i + 1], side->weight[i]);
    return cursor;
}

/* Bytes of the memory that fp_lip_build takes; `groups` may be NULL. */
static inline size_t fp_lip_bytes(int n, const fp_lip_groups *groups)
{
    size_t of_groups = groups && groups->n ? (size_t)groups->n : 0;
    size_t padded = (size_t)n + 2 * FP_LANES, grouped = of_groups ? of_groups + 2 * FP_LANES : 0;
    size_t doubles = 9 * padded + 6 * grouped + (size_t)n + 2 * (size_t)n;
    size_t dds = 2 * ((size_t)n + 1) + (of_groups ? 2 * (of_groups + 1) : 0);
    return doubles * sizeof(double) + dds * sizeof(fp_dd) + 2 * (size_t)n * sizeof(fp_lip_tail)
        + 128 * sizeof(fp_lip_run);
}

/* `x` increases strictly; `groups` may be NULL; `block` has fp_lip_bytes zero bytes. Returns 0, or 1 when the lengths
 * are too far apart for doubles. */
static inline int fp_lip_build(fp_lip *lip, int n, const double *w, const double *x, double sigma,
                               const fp_lip_groups *groups, void *block)
{
    static const fp_lip_groups none = {0};
    groups = groups ? groups : &none;
    size_t padded = (size_t)n + 2 * FP_LANES;
    *lip = (fp_lip){.n = n};
    double *cursor = block, farthest = fabs(x[0]) > fabs(x[n - 1]) ? fabs(x[0]) : fabs(x[n - 1]);
    int exponent, far;
    frexp(sigma, &exponent);
    frexp(farthest, &far);
    int unit = -exponent + far > 1000 ? 1000 - far : -exponent; /* x and sigma times 2^unit */
    lip->sigma = ldexp(sigma, unit);
    lip->inverse = 1.0 / lip->sigma;
    for (int s = 0; s < 2; ++s) {
        cursor = fp_lip_fill(&lip->side[s], s, n, w, x, unit, cursor);
        if (groups->n)
            cursor = fp_lip_fill(&lip->group[s], s, groups->n, groups->weight, groups->x, unit, cursor);
    }
    lip->h = cursor, cursor += padded;
    lip->e = cursor, cursor += padded;
    lip->d = cursor, cursor += padded;
    lip->centre = cursor, cursor += n;
    lip->least_weights = cursor, cursor += 2 * (size_t)n;
    for (int i = 0; i < n; ++i)
        lip->centre[i] = NAN;
    for (int s = 0; s < 2; ++s)
        lip->tail[s] = (fp_lip_tail *)cursor + (size_t)s * n;
    lip->stack = (fp_lip_run *)(lip->tail[1] + n);
    fp_lip_least_weights(lip, 0, n - 1, 0);
    lip->excess = fp_dd_add_d(lip->side[0].beyond[0], -1.0).hi;
    /* Where no atom lies within `radius`, M and the grouped M have mass at most 4 Phi(-radius), and beyond a point at a
     * distance r from the nearest atom M has at least about w Phi(-r). Points with r^2 <= radius^2 - 90 + 2 log w lose
     * less than e^-43 of it, which FP_LIP_GROUP_MARGIN covers. */
    lip->group_error = FP_LIP_GROUP_MARGIN * groups->error;
    lip->group_square = groups->radius * groups->radius - 90.0 + 2.0 * fp_log(lip->least_weights[0]);
    return !(lip->sigma > 0x1p-1000);
}

#define FP_LOOPS "line/fp_lip_solver.h"
#include "common/fp_variants.h"

typedef int (*fp_lip_kernel)(int, const double *, const double *, double, const fp_lip_groups *, const double *, ptrdiff_t,
                               double, int, fp_interrupted, fp_bracket *, long *);

static inline fp_lip_kernel fp_lip_select(void) { return FP_SELECT(fp_lip_curve); }

#endif
