/* Sums in eight lanes, in a fixed order whatever the instruction set. */
#ifndef FP_LANES_H
#define FP_LANES_H

#define FP_LANES 8
/* bound: tested by enclosures/test_hockey_stick - the few roundings of each elementary term, nine units of 2^-53 */
#define FP_ROUND 1.0e-15 /* nine units of 2^-53: covers the few roundings of each elementary term below */

typedef double fp_v8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef long long fp_v8i __attribute__((vector_size(64), aligned(8), may_alias));

static inline int fp_padded(int n) { return (n + FP_LANES - 1) / FP_LANES * FP_LANES; }

static inline double *fp_take(double **cursor, int n)
{
    double *start = *cursor;
    *cursor += n;
    return start;
}

#endif
