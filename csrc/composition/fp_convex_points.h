/* The greatest convex function below given heights at the points 0, x_0, x_1, .. with x_i = e^((first + i) h).
 *
 * Notation: v the heights, falling; "start" that at 0. Times x_b, the slope from a to b less that from b to c is
 * (v_a - v_b) / (1 - e^-(b-a)h) - (v_b - v_c) / (e^((c-b)h) - 1), with start - v_b where there is no a. A point stays
 * unless this is negative: the stack of those that stay is convex after every step (Andrew 1979). */
#ifndef FP_CONVEX_POINTS_H
#define FP_CONVEX_POINTS_H

#include <math.h>
#include <stddef.h>

/* e^(gap h) - 1, from a table of the first gaps. */
static inline long double fp_growth(ptrdiff_t gap, ptrdiff_t known, const long double *table, long double h)
{
    return gap < known ? table[gap] : expm1l((long double)gap * h);
}

/* Writes the indices that stay to ``kept``, whose number is returned. */
static ptrdiff_t fp_convex_points(ptrdiff_t n, long double start, const long double *v, long double h, ptrdiff_t known,
                                  const long double *table, ptrdiff_t *kept)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t c = 0; c < n; c++) {
        while (count) {
            const ptrdiff_t b = kept[count - 1];
            long double into = start - v[b];
            if (count > 1) {
                const ptrdiff_t a = kept[count - 2];
                const long double growth = fp_growth(b - a, known, table, h);
                into = (v[a] - v[b]) * (1 + 1 / growth);
            }
            if (into * fp_growth(c - b, known, table, h) >= v[b] - v[c])
                break;
            count--;
        }
        kept[count++] = c;
    }
    return count;
}

#endif
