/* The exact posterior of who is in a pool, given a release: a sum over all subsets of at most 24 people.
 *
 * Notation: people 0 ... K - 1; a subset b is a low half, its first L people, and a high half, the other H, so b has
 * the index low + 2^L high; n = |b|.  The exponent of b, its log joint weight less a reference, is
 *     E(b) = prior[n(high)][low] + sum of log odds of the high people + sum over terms of q(b) F(n) - reference,
 * where q is, by the kind of the term,
 *     quadratic    b' G b,  G = sum over releases of <r - d_k, r - d_l> / s^2           (Gaussian noise)
 *     absolute     sum over attributes j of |x_j|,  x_j = sum over members of (r_j - d_kj)    (Laplace noise)
 *     maximum      max |x_j|                                                            (L-infinity noise)
 *     consistent   max |x_j|, and instead of q F: 0 where it is at most the limit F(n), -1e300 otherwise (no noise)
 *     censored     sum over attributes of table[n][count_j], instead of q F              (Gaussian noise, clipped)
 * A subset is excluded by -1e300 in its prior.
 *
 * Numbers.  q, F and the prior are unevaluated sums of two doubles. The first part of q is a multiple of a grid so
 * coarse that all sums of it are exact, that of F has 26 bits, and the first parts of the prior and of log odds stand
 * on a grid too. With q1 = qa + qb, qa of 26 bits, the product qa F1 is exact, its sum with the prior is kept with its
 * error, and
 *     E = (sum of products - reference) + (qb F1 + (q1 F2 + what was lost)),   qb = (q1 - qa) + q2.
 * With u = 2^-53, the two last roundings are u |E| and u |sum - reference|, and those of the second parts are below
 * 2^-24 u |q F|; what is left of attributes in x_j is one rounding each, of the size of the rest.
 *
 * Rows.  A row is a high half, with all 2^L low ones.  Running sums of the vectors that people add (r - d_k, or a row
 * of G) stand on a stack, one level a bit of the high half, and four rows share what is below their last two bits.
 * From the maximum M of a row come its mass, sum of e^(E - M), its moment, sum of e^(E - M) (E - M), and the weights
 * that are added to the columns, one for each low half, relative to a multiple of 32 above all M so far.  A column is
 * a plain sum over FP_MEMBERSHIP_FLUSH rows and one in two doubles from there on.  What is below e^-700 of its row is
 * 0 in the sums: those of columns that are below 1e-200 of everything must be found otherwise, with the people in
 * another order.
 */
#ifndef FP_MEMBERSHIP_POSTERIOR_H
#define FP_MEMBERSHIP_POSTERIOR_H

#include <stddef.h>
#include <stdint.h>

#include "common/fp_lanes.h"
#include "common/fp_vector_tables.h"

#define FP_MEMBERSHIP_ROWS 4        /* rows that share a running sum */
#define FP_MEMBERSHIP_FLUSH 64      /* rows between two flushes of the columns */
#define FP_MEMBERSHIP_LOW 8         /* most people of a low half: their tables stay in the first cache */
#define FP_MEMBERSHIP_SUBSETS 256   /* 2^FP_MEMBERSHIP_LOW */
#define FP_MEMBERSHIP_HIGH 24       /* most people of a high half */
#define FP_MEMBERSHIP_NEVER (-1e300) /* the exponent of a subset that is excluded */

enum { FP_QUADRATIC, FP_ABSOLUTE, FP_MAXIMUM, FP_CONSISTENT, FP_CENSORED };

typedef struct {
    int kind;
    ptrdiff_t length;       /* of the vectors: 2 (K + 1) for quadratic terms, attributes for the others */
    const double *vectors;  /* (H, length): what each high person adds to the running sums */
    const double *rest;     /* (attributes,): what is left of r */
    const double *low;      /* quadratic: q of low halves, (2, 2^L); absolute, maximum: x (2^L / 8, attributes, 8) */
    const double *factor;   /* F: (2, H + 1, 2^L) */
    const double *table;    /* censored: (K + 1, K + 1) */
    const int32_t *index;   /* censored: (attributes, 2^L): n (K + 1) + count of low halves */
    ptrdiff_t people;       /* K */
} fp_membership_term;

typedef struct {
    int low, high;              /* L, H */
    double reference;
    const double *prior;        /* (2, H + 1, 2^L) */
    const double *log_odds;     /* (2, H) */
    const double *sizes;        /* (2^L,): members of a low half */
    int terms;
    const fp_membership_term *term;
} fp_membership_model;

/* The sums of a range of rows. */
typedef struct {
    double *top, *mass, *moment;       /* one for each row */
    double *column, *column_rest;      /* (2^L,): in two doubles */
    double column_top;                 /* what the columns are relative to */
    double best;                       /* the largest exponent so far; then its index, the first one of equal ones */
    ptrdiff_t mode;
} fp_membership_sums;

/* e^x for x <= 0, 0 below -700: one ulp */
FP_INLINE double fp_exp_nonpositive(double x)
{
    double q, shifted;
    const double r = fp_exp_reduced(x, 0.0, &q, &shifted);
    const double value = (1.0 + (r + q)) * fp_double((fp_bits(shifted) - fp_bits(FP_SHIFT) + 1023) << 52);
    return x < -700.0 ? 0.0 : value;
}

/* Doubles of workspace that the rows of a model take. */
static inline ptrdiff_t fp_membership_workspace(const fp_membership_model *model)
{
    ptrdiff_t doubles = 0;
    for (int t = 0; t < model->terms; t++)
        doubles += (model->high + 1 + FP_MEMBERSHIP_ROWS) * model->term[t].length;
    return doubles;
}

#define FP_LOOPS "membership/fp_membership_posterior_loops.h"
#include "common/fp_variants.h"

/* The rows start ... stop - 1, multiples of FP_MEMBERSHIP_ROWS; and the largest exponent of one side of a person, with
 * the sum relative to it, for each of the `high` bits of a row and both sides: (high, 2, 2). */
typedef void (*fp_membership_kernel)(const fp_membership_model *, ptrdiff_t start, ptrdiff_t stop, double *work,
                                     fp_membership_sums *);
typedef void (*fp_membership_sides_kernel)(int high, const double *top, const double *mass, double *sides);
typedef void (*fp_membership_total_kernel)(ptrdiff_t rows, const double *top, const double *mass,
                                           const double *moment, double *total);

typedef struct {
    fp_membership_kernel rows;
    fp_membership_sides_kernel sides;
    fp_membership_total_kernel total;
} fp_membership_kernels;

static inline fp_membership_kernels fp_membership_select(void)
{
    return (fp_membership_kernels){FP_SELECT(fp_membership_rows), FP_SELECT(fp_membership_sides),
                                   FP_SELECT(fp_membership_total)};
}

#endif
