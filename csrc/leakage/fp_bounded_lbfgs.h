/* Least values of a smooth function in a box: limited-memory BFGS on the coordinates that bounds do not hold.
 *
 * Notation: n coordinates x in [lower, upper], n a multiple of FP_LANES (a coordinate whose bounds are equal is a
 * constant), f the function and g its derivatives.  A coordinate is held where x is at a bound and -g points out of the
 * box.  The others take the step d = -H g, H the limited-memory BFGS matrix of the last pairs s = x' - x, y = g' - g,
 * restricted to them (two-metric projection), and x' is x + t d cut to the box, with t halved or less until
 * f(x') <= f(x) + FP_LBFGS_DECREASE g.(x' - x).  A pair whose s.y is not positive there is left out.
 *
 * Sums have eight lanes and no library is called: the bits depend neither on threads nor on the machine.
 * Sources: J. Nocedal, Updating quasi-Newton matrices with limited storage (1980), for H; D. Bertsekas, Projected Newton
 * methods for optimization problems with simple constraints (1982), for the projection.
 *
 * Why it is not SciPy's L-BFGS-B: benches/bench_gradient_inversion.py, four digits with noise, attacks on softmax
 * regression take 1.6 ms against 12 ms (start) and 16 ms against 74 to 129 ms (trained) with the same objective in C.
 * Networks, whose objective is called through Python, gain a factor of 1.6 to 2.3.
 */
#ifndef FP_BOUNDED_LBFGS_H
#define FP_BOUNDED_LBFGS_H

#include <math.h>

#include "common/fp_stop_token.h"
#include "leakage/fp_padded_rows.h"

/* f at x, and its derivatives; a negative `*status` stops the search. What is not finite is no lower value. */
typedef double fp_objective(void *context, const double *x, double *slope, int *status);

typedef struct {
    ptrdiff_t n;
    const double *lower, *upper; /* (n,) */
    int memory;                  /* pairs */
    int most;                    /* evaluations */
    double tolerance;            /* relative decrease of f below which, twice in a row, the search ends */
    double solved;               /* value of f at which it ends at once */
    double value;                /* f at x */
    int evaluations;
} fp_bounded_lbfgs;

#define FP_LBFGS_DECREASE 1e-4 /* part of the decrease that the slope promises */
#define FP_LBFGS_TRIALS 30     /* of one line search */
/* bound: none - least s.y relative to y.y of a pair that is used */
#define FP_LBFGS_CURVATURE 1e-12

FP_INLINE ptrdiff_t fp_bounded_lbfgs_work(const fp_bounded_lbfgs *b)
{
    return (5 + 2 * b->memory) * b->n + 2 * b->memory;
}

#define FP_LOOPS "leakage/fp_bounded_lbfgs_solver.h"
#include "common/fp_variants.h"

/* Search from x, which receives the best point; work: fp_bounded_lbfgs_work doubles. 0, or the reason to stop. */
typedef int fp_bounded_lbfgs_kernel(fp_bounded_lbfgs *b, fp_objective *objective, void *context, double *x,
                                    double *work, fp_stop_token *stop);

static inline fp_bounded_lbfgs_kernel *fp_bounded_lbfgs_select(void) { return FP_SELECT(fp_bounded_lbfgs_run); }

#endif
