/* Sums in a fixed order, whatever the instruction set: in eight lanes, and in two doubles. */
#ifndef FP_LANES_H
#define FP_LANES_H

#include <stddef.h>

#include "common/fp_error_free.h"

#define FP_LANES 8
/* One vector of independent work; it is kept a loop for the vectoriser. */
#define FP_LANE_LOOP(k) _Pragma("GCC unroll 1") for (ptrdiff_t k = 0; k < FP_LANES; k++)

typedef double fp_v8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef long long fp_v8i __attribute__((vector_size(64), aligned(8), may_alias));

/* Sum of eight lanes: ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). */
FP_INLINE double fp_lane_sum(const double *lane)
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* The least multiple of FP_LANES that is at least n. */
static inline int fp_padded(int n) { return (n + FP_LANES - 1) / FP_LANES * FP_LANES; }

/* The next n doubles of a block of memory. */
static inline double *fp_take(double **cursor, int n)
{
    double *start = *cursor;
    *cursor += n;
    return start;
}

/* A compensated sum: the rounding error of every addition is itself summed, in `low`. */
typedef struct {
    double high, low;
} fp_accumulator;

FP_INLINE void fp_compensated_add(double *high, double *low, double x)
{
    const double s = *high + x;
    *low += fp_sum_error(*high, x, s);
    *high = s;
}

FP_INLINE void fp_accumulator_add(fp_accumulator *sum, double x) { fp_compensated_add(&sum->high, &sum->low, x); }

FP_INLINE double fp_accumulator_value(const fp_accumulator *sum) { return sum->high + sum->low; }

#endif
