/* Capacity of the Gaussian channel Y = X + N(0, I_d) with ||X|| <= R: types.
 *
 * Notation.  The best input is a finite set of spheres (r_j, p_j).  rho = ||Y|| has, given ||X|| = r, the density
 *
 *     w(rho | r) = rho^(d-1) 2^(1-d/2) / Gamma(d/2) e^(-(rho^2 + r^2)/2) G_d(r rho),      G_d as in
 * special/fp_sphere.h,
 *
 * and p_Y / N(0, I) = S(rho) = sum p_j e^(-r_j^2/2) G_d(r_j rho).  With s = R^2/d and S_G the ratio of the Gaussian
 * output law of that power, l = log S - log S_G is what a peak constraint changes, and
 *
 *     i(r) = KL(P_{Y | ||X|| = r} || P_Y) = g(r) - E_r l(rho),   g(r) = (d/2) log(1+s) + (r^2 - R^2) / (2 (1+s)).
 *
 * Proofs: docs/proofs/awgn.md, theorem 6.1 (bracket), 6.2 (strip), 6.3 (rule), 6.4 (maximum). g(R) is the capacity
 * under average power; nothing cancels, whether R is 1e-150 or 1e4.  For every input P
 *
 *     I(P) = sum p_j i(r_j) <= C <= max_{0 <= r <= R} i(r),
 *
 * and the maximum need not be sought below r_low: an output law that puts weight e on N(0, (1 + r_low^2/d) I) shows
 * i(r) <= log(1/e) + (d/2) log(1 + r_low^2/d) there, at the price of -log(1-e) elsewhere.
 *
 * Quadrature.  The trapezoidal rule in t, rho = t for odd d (the integrand is even in rho), rho = log(1 + e^t) for even
 * d.  S(rho + i y) = S(rho) E e^{i y T}, T the component of X along Y under the posterior, hence
 * |S(rho + i y)| >= S(rho) (1 - y^2 V/2), V the posterior variance: log S is analytic wherever y^2 V < 2, and the rule
 * errs by at most 2 N / (e^(2 pi b/h) - 1), N a bound of the integral of the modulus at height b.  V is bounded by
 * second differences of S (fp_awgn_quadrature_bounds_loops.h) on the windows that are summed.  That is enough: the
 * contour is moved above and below a window only, and its short vertical sides, where w is as small as at the ends of
 * the window, add no more than the tails do.
 *
 * The maximum.  i is entire; on a cell it is interpolated at Chebyshev nodes, the remainder bounded on a Bernstein
 * ellipse by |i(x + i y) - c| <= e^(y^2/2) E_x |k - c|, k = -log p_Y(rho) but for a constant, and the polynomial is
 * maximised by branch and bound.  For one sphere i'(r)/r = 1 - E'[(log S)'(rho)/rho], E' the mean for r in dimension
 * d + 2 (the law of rho^2 is a Poisson mixture of chi-squares); (log S)' = R (log G)'(R rho) is concave from 0, and rho
 * grows with r, so i'(r)/r is increasing and the maximum is at an end.
 *
 * Files: fp_awgn_quadrature_loops.h (nodes, tables, i), fp_awgn_quadrature_bounds_loops.h (errors),
 * fp_awgn_maximum_solver.h (maximum), fp_awgn_weights_solver.h (best weights on given radii: interior point),
 * fp_awgn_input_solver.h (radii too: Newton), fp_awgn_ball_loops.h (a ball in place of the inner spheres, for large R),
 * fp_awgn_solver.h (the solver), fp_awgn_capacity_solver.h (bounds in closed form where it does not serve).
 */
/* bounds: none - where a node is found by rho itself */
#ifndef FP_AWGN_H
#define FP_AWGN_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fp_constants.h"
#include "common/fp_lanes.h"
#include "special/fp_math.h"
#include "special/fp_sphere.h"

enum { FP_AWGN_SPHERES = 256, FP_AWGN_PANELS = 512, FP_AWGN_CHEBYSHEV = 32 };
enum { FP_AWGN_DONE = 0, FP_AWGN_TOO_WIDE = 1, FP_AWGN_MEMORY = -1 };
/* how a capacity was found; bits */
enum { FP_AWGN_BY_ONE_SPHERE = 1, FP_AWGN_BY_SPHERES = 2, FP_AWGN_BY_BALL = 4, FP_AWGN_BY_CLOSED_FORM = 8 };

#define FP_AWGN_RANGE 80.0   /* longest range of radii where no ball takes the place of the inner spheres */
#define FP_AWGN_WORK_LIMIT 4e9      /* products summed before the search is given up: below a second */
#define FP_AWGN_NODES 65536   /* most nodes of a grid */
/* bound: none - where spheres may lie */
#define FP_AWGN_MARGIN 3.0    /* how far below r_low spheres may lie */
#define FP_AWGN_CELL 4.0      /* longest cell of the search for the maximum */
#define FP_AWGN_SPACING 0.3   /* spacing of the radii from which a solution starts */
#define FP_AWGN_MERGE_DISTANCE 0.7      /* spheres closer than this are merged */
/* bound: none - which weights the solver drops; the certificate is of what is left */
#define FP_AWGN_NEGLIGIBLE_WEIGHT 1e-17   /* spheres of less weight are dropped */
/* bound: proved - a choice, of which docs/proofs/awgn.md, theorem 6.5 takes 2 1.2^2 = 2.88; large balls: the width of the ramp of the uniform density; the
 * documentation of AwgnCapacity names it */
#define FP_AWGN_RAMP 1.2
/* bound: proved - docs/proofs/awgn.md, theorem 6.10: the least half-width of a window */
#define FP_AWGN_BALL_WINDOW 9.5
/* bound: none - how far below the middle of the ramp spheres are sought */
#define FP_AWGN_RAMP_REACH 7.0
/* bound: none - relative width that ends the search in large balls */
#define FP_AWGN_BALL_RTOL 1e-8
/* bound: none - entries that the solver of the weights leaves out; the certificate takes all */
#define FP_AWGN_NEGLIGIBLE_ENTRY                                                                                       \
    1e-20 /* table entries below this, relative to the best radius at their node, are skipped */
#define FP_AWGN_LARGEST_DIMENSION 1e6 /* for which the accuracy of the solver was tested */
/* bound: none - how far below R the innermost sphere of a ball is, without four windows */
#define FP_AWGN_BALL_DEPTH 35.0
/* bound: proved - below it R^2 / 2 is the capacity to the last bit: docs/proofs/awgn.md, theorem 6.5 */
#define FP_AWGN_SMALLEST_RADIUS 1e-150
/* bound: none - from where closed bounds take the place of the solver */
#define FP_AWGN_LARGEST_RADIUS 1e7
/* bound: none - the value for long intervals on the line and very large balls,
 * fitted to the solver's capacities; the bounds do without it */
#define FP_AWGN_EMPIRICAL 3.98160794705
#define FP_AWGN_LOG_2_PI_E 2.83787706640934548356 /* twice the entropy of a standard normal variable, in nats */
/* bound: proved - docs/proofs/roundings.md, 13.20: rounding of the closed bounds, relative to them and to d */
#define FP_AWGN_CLOSED_ERROR 1e-13

/* A problem, its quadrature grid and its tables; rows of a table are radii, columns are nodes. */
typedef struct {
    fp_sphere law;
    double d, radius, power, shrink, full; /* R, s, 1/(1+s), g(R) */
    double least_radius, scan_start, cover, scan_bound; /* least radius of a sphere, r_low, the weight e, and the lower
                                                           bound of C that covers radii below r_low */
    double rtol, step, window, log_norm;    /* h, half-width of a window, log of 2^(1-d/2) / Gamma(d/2) */
    double max_height;                          /* largest height b that the map from t to rho allows */
    int even, small, nodes, padded;
    double *rho, *log_measure, *l, *top, *c; /* per node; weight = table * c */
    int mixed, floored;                      /* spheres of l, 0 for one of radius R; whether a density was too small */
    int rows;                                /* capacity of the table */
    double *table, *first, *second;          /* e^(exponent - top); times the first and second derivative over r */
    double *gram, *line[6];                  /* workspace: a matrix, and six rows of nodes */
    int cells;
    double *cell_r, *cell_weight, *cell_value; /* Chebyshev nodes of the search, and the rows of their windows */
    int *cell_first, *cell_count, *cell_mid, cell_stride;
    double edge, constant, level, deep; /* large balls: R_1 (else 0), log V - (d/2) log 2 pi, -log alpha, and what part
                                           of the ball's output lies below the grid */
    double *ball, *panel_radius, *panel_weight; /* the row of the ball, its spheres, and room for the others */
    int panels;
    void *memory;
    long evaluations;
    double work;
} fp_awgn;

typedef struct {
    double value, lower, upper, slope; /* slope: dC/dR */
    int count, status, method;
    long evaluations;
    double radius[FP_AWGN_SPHERES], weight[FP_AWGN_SPHERES];
} fp_awgn_result;

/* T_j at the Chebyshev nodes cos(pi (k + 1/2) / n) */
static double fp_awgn_cosine[FP_AWGN_CHEBYSHEV][FP_AWGN_CHEBYSHEV];

/* Runs before anything of the module does, so that solvers in several threads only read. */
static __attribute__((constructor)) void fp_awgn_prepare(void)
{
    for (int j = 0; j < FP_AWGN_CHEBYSHEV; j++)
        for (int k = 0; k < FP_AWGN_CHEBYSHEV; k++)
            fp_awgn_cosine[j][k] = cos(FP_PI * (j * (2 * k + 1) % (4 * FP_AWGN_CHEBYSHEV)) / (2 * FP_AWGN_CHEBYSHEV));
}

/* The root mean square of rho given r, at most 1 above its mean. */
static inline double fp_awgn_output_centre(const fp_awgn *a, double r) { return sqrt(a->d + r * r); }

/* The first node at or above rho, as an index of the grid t = step * (index + 1/2). */
static inline double fp_awgn_node_index(const fp_awgn *a, double rho)
{
    const double floor = a->even ? -38.0 / a->d - 1.0 : 0.0;
    double t = rho;
    if (a->even)
        t = rho > 36.0 ? rho : rho > 1e-9 ? log(expm1(rho)) : -INFINITY;
    return ceil((t > floor ? t : floor) / a->step - 0.5);
}

/* The half-width of a window in a large ball, outside which there is less than 1e-15 whatever rtol is. */
static inline double fp_awgn_ball_window(const fp_awgn *a)
{
    return a->window > FP_AWGN_BALL_WINDOW ? a->window : FP_AWGN_BALL_WINDOW;
}

/* Where spheres are sought at first, but for the least radius. */
static inline double fp_awgn_lowest(const fp_awgn *a)
{
    return a->edge > 0.0 ? a->edge - FP_AWGN_RAMP_REACH : a->least_radius;
}

/* g(r) */
static inline double fp_awgn_gaussian_term(const fp_awgn *a, double r)
{
    return a->full + 0.5 * a->shrink * (r - a->radius) * (r + a->radius);
}

#endif
