/* Certified hockey-stick divergences of one-dimensional Gaussian mixtures: types, and the choice of instruction set. */
#ifndef FP_HOCKEY_STICK_H
#define FP_HOCKEY_STICK_H

#include "gauss/fp_two_points.h"
#include "special/fp_dd_normal.h"
#include "line/fp_log_ratio_solver.h"
#include "line/fp_elementary_bounds.h"

/* A crossing of L with eps in a monotone piece, which is about between `low` and `high`, and what is lost by using x in
 * its place: e^log_loss, NaN where x is not proved to be near. */
typedef struct {
    const fp_piece *piece;
    double epsilon, low, high, x, previous, log_loss;
    int slot, steps; /* the end of an interval of E that it is */
} fp_crossing;

/* The intervals of E, and an upper bound of what E may lack: loss_sum e^loss_log, in loss_count terms. */
typedef struct {
    fp_dd *interval;
    fp_crossing *crossing;
    int crossings, crossing_capacity;
    int extended_precision; /* locate crossings in double-doubles */
    int count, capacity, loss_count;
    double loss_log, loss_sum;
    double gain; /* what the enclosed pieces are estimated to add; not a bound */
    fp_dd p, q;  /* P(E) and Q(E) by sums of tails, with bounds of their errors */
    double p_error, q_error;
    long evaluations;
} fp_optimal_set;

/* bound: none - eps that are worked on at the same time, so that their crossings fill all lanes; a few where a crossing
 * takes long, so that a deadline is met */
#define FP_EPSILON_BLOCK 32
#define FP_EPSILON_BLOCK_OF_MANY 4 /* for more than FP_MANY_COMPONENTS */
#define FP_MANY_COMPONENTS 1024

/* The sets of a block of eps, and workspaces for their crossings and the ends of their intervals. */
typedef struct {
    fp_optimal_set set[FP_EPSILON_BLOCK];
    fp_crossing **crossing;
    ptrdiff_t capacity;
} fp_optimal_sets;

/* The monotone pieces of a pair, which may be used by several threads for different eps. */
typedef struct {
    fp_log_ratio r;
    fp_pieces pieces;
    double scale; /* the largest sigma */
} fp_pair_analysis;

static inline void fp_pair_analysis_free(fp_pair_analysis *analysis)
{
    fp_pieces_free(&analysis->pieces);
    fp_log_ratio_free(&analysis->r);
}

/* bound: none - seconds allowed for brackets after the deadline */
#define FP_DEADLINE_GRACE_SECONDS 0.5
/* bound: none - intervals that such a bracket is made from, for each mixture */
#define FP_DEADLINE_INTERVALS 100

/* log(e^dev - 1) */
static inline double fp_log_expm1(double dev) { return dev > 30.0 ? dev : log(expm1(dev)); }

#define FP_LOOPS "line/fp_hockey_stick_solver.h"
#include "common/fp_variants.h"
#define FP_LOOPS "line/fp_hockey_stick_closed_solver.h"
#include "common/fp_variants.h"

typedef int (*fp_pair_analysis_builder)(fp_pair_analysis *, int, const double *, const double *, const double *, int,
                                        const double *, const double *, const double *, fp_interrupted, double);
typedef int (*fp_pair_analysis_kernel)(const fp_pair_analysis *, const double *, ptrdiff_t, double, int, fp_interrupted,
                                       double, fp_bracket *, long *);

static inline fp_pair_analysis_builder fp_pair_analysis_builder_select(void)
{
    return FP_SELECT(fp_pair_analysis_build);
}

static inline fp_pair_analysis_kernel fp_pair_analysis_select(void) { return FP_SELECT(fp_pair_analysis_curve); }

typedef int (*fp_hockey_stick_kernel)(int, const double *, const double *, const double *, int, const double *,
                                      const double *, const double *, const double *, ptrdiff_t, double, int,
                                      fp_interrupted, double, fp_bracket *, long *);

static inline fp_hockey_stick_kernel fp_hockey_stick_select(void) { return FP_SELECT(fp_hockey_stick_curve); }

#endif
