/* Normal noise outside a ball, for the instruction set at hand: see fp_gaussian_ball_loops.h. */
#ifndef FP_GAUSSIAN_BALL_H
#define FP_GAUSSIAN_BALL_H

#include "common/fp_lanes.h"
#include "special/fp_math.h"

#define FP_SQRT_HALF 0.70710678118654752440
#define FP_SQRT_2_OVER_PI 0.79788456080286535588

#define FP_LOOPS "gauss/fp_gaussian_ball_loops.h"
#include "common/fp_variants.h"

typedef ptrdiff_t (*fp_outside_ball_kernel)(ptrdiff_t, double, ptrdiff_t, const double *, double *, double *, double *);

static inline fp_outside_ball_kernel fp_outside_ball_select(void) { return FP_SELECT(fp_outside_ball); }

#endif
