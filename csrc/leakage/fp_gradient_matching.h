/* Gradient matching for softmax regression: records whose gradients add up to a gradient that was seen.
 *
 * For one softmax layer, shares that differ by record and damped Gauss-Newton steps, in a reduced basis too;
 * fp_layered_model.h has the objective of deep models, by passes through the layers and with equal shares.
 *
 * Notation: S records x_i (D features and a 1 for the intercept), C classes, weights W (C, D + 1), label weights q_i
 * (C; one-hot, or any probabilities), p_i = softmax(W x_i), errors e_i = p_i - q_i.  The batch has the gradient
 * G = sum s_i e_i x_i' of its cross-entropies, with a share s_i = 1/S of each record in a mean, and less where its
 * gradient was clipped; T is the gradient that was seen and R = G - T.  The objective and its derivatives are
 *
 *     V = |R|^2 = sum of R_cd^2,      a_i = 2 s_i R x_i,      b_i = p_i (a_i - p_i . a_i)  entry by entry,
 *     dV/dx_i = 2 s_i R' e_i + W' b_i,      dV/dq_i = -a_i.
 *
 * Levenberg-Marquardt: with M_i = (diag p_i - p_i p_i') W, the change of G for a change d_i of x_i is
 * s_i (M_i d_i x_i' + e_i d_i'), so that the block of records i and j in J'J is
 *
 *     s_i s_j [(x_i . x_j) M_i'M_j + (M_i'e_j) x_i' + x_j (M_j'e_i)' + (e_i . e_j) I],
 *
 * of D x D numbers; a ridge r adds r |x - centre|^2 to the objective and r I to J'J.
 *
 * Rank: the rows of T without its intercepts span the records where T is a gradient without noise of S < C records
 * whose errors are independent; and where it is any gradient, stationary points of V lie in the span of the rows of T
 * and W (what is orthogonal to both adds |E'x|^2 / S^2, which x = 0 there makes 0).  In an orthonormal basis B of such
 * a span, x = B y, the problem is the same with W B and T B: the same functions solve it with fewer features.
 *
 * Rows of x, W and T are padded with zeros to a multiple of FP_LANES; x has its 1 at index D.  Errors keep their digits
 * where p is near 1: p - q = p (1 - q) - q (1 - p), with 1 - p of the largest class as the sum of the others.
 *
 * Sources: L. Zhu, Z. Liu and S. Han, Deep leakage from gradients (2019), equation 3, for the objective; K. Levenberg
 * (1944) and D. Marquardt (1963) for the damped steps.
 */
#ifndef FP_GRADIENT_MATCHING_H
#define FP_GRADIENT_MATCHING_H

#include "common/fp_stop_token.h"
#include "leakage/fp_padded_rows.h"
#include "special/fp_elementary.h"

/* Sizes, weights and target of a problem. */
typedef struct {
    ptrdiff_t records, classes, features, width; /* width: features + 1, padded */
    const double *weights, *target;              /* (classes, width) */
    const double *shares;                        /* (records,) */
} fp_matching;

/* Where a descent stops, and what it did. */
typedef struct {
    double ridge, tolerance; /* of |x - centre|^2; of the objective, below which it is solved */
    const double *centre;    /* (width,), 0 beyond the features */
    int most;                /* accepted steps */
    int steps;               /* accepted */
    double value;            /* of the objective with its ridge */
} fp_matching_descent;

#define FP_MATCHING_FIRST_DAMPING 1e-3 /* relative to the largest diagonal entry of J'J */
#define FP_MATCHING_MOST_DAMPING 1e3   /* beyond it a descent gives up */
#define FP_MATCHING_FALLS 0.1          /* damping after a step that lowered the objective, as a factor */
#define FP_MATCHING_RISES 5.0          /* and after one that did not */
/* bound: none - damping below which Gauss-Newton steps are as good as plain ones */
#define FP_MATCHING_LEAST_DAMPING 1e-15
/* bound: none - relative decrease of the objective below which a descent ends */
#define FP_MATCHING_LEAST_GAIN 1e-10

/* Doubles of work memory of one evaluation. */
FP_INLINE ptrdiff_t fp_matching_work(const fp_matching *m)
{
    return 2 * m->records * m->classes + m->classes * m->width + m->classes;
}

/* Doubles of work memory of a descent: two evaluations, M, J'J twice, and vectors. */
FP_INLINE ptrdiff_t fp_matching_descent_work(const fp_matching *m)
{
    const ptrdiff_t n = m->records * m->features, rows = m->records * m->width;
    return 2 * fp_matching_work(m) + m->classes * rows + 2 * n * n + 2 * rows + m->records * rows + n;
}

#define FP_LOOPS "leakage/fp_gradient_matching_loops.h"
#include "common/fp_variants.h"
#define FP_LOOPS "leakage/fp_gradient_matching_solver.h"
#include "common/fp_variants.h"

/* The objective at records x (S, width) with label weights (S, C); by_records (S, width) and by_labels (S, C) receive
 * its derivatives where they are not NULL. */
typedef double fp_matching_value_kernel(const fp_matching *m, const double *x, const double *labels, double *work,
                                        double *by_records, double *by_labels);
/* Levenberg-Marquardt from x, which receives the best records; 0, or the reason to stop. */
typedef int fp_matching_descent_kernel(const fp_matching *m, const double *labels, double *x, double *work,
                                       fp_matching_descent *descent, fp_stop_token *stop);

static inline fp_matching_value_kernel *fp_matching_value_select(void) { return FP_SELECT(fp_matching_value); }
static inline fp_matching_descent_kernel *fp_matching_descent_select(void) { return FP_SELECT(fp_matching_descend); }

#endif
