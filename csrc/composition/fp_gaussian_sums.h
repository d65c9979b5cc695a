/* Sums over independent coordinates (y, w) of two normal distributions at points z of the complex plane, h = 1 - z y.
 *
 * What they are for, and the bounds: fastpriv/divergences/reductions/gaussian_sums.py. log |h| is taken from |z y|^2 -
 * 2 Re z y where |z y| < 1/2, so that it keeps digits where y is small; each logarithm and angle errs by at most a few u
 * of itself and of |z y| / |h|, a sum over n coordinates by n u of its sizes. The loops are those of
 * fp_gaussian_sums_loops.h, over blocks of points.
 */
#ifndef FP_GAUSSIAN_SUMS_H
#define FP_GAUSSIAN_SUMS_H

#include <math.h>
#include <stddef.h>

#include "special/fp_elementary.h"

enum { FP_GAUSSIAN_COLUMNS = 17, FP_GAUSSIAN_POINTS = 64 };

#define FP_LOOPS "composition/fp_gaussian_sums_loops.h"
#include "common/fp_variants.h"

/* Columns, each of `points` numbers: sum n log |h|, sum n arg h (0 without `angles`), sums of w2 / h, n y / h and
 * w2 y / h^2 (real and imaginary part each), the least |h / y|, sum 2 n y^2 / |h|^2 + 8 (1 + y + b) w2 / |h|^3, sum
 * w2 / |h|, sum n eta / (1 - eta), the largest eta = |z| moved / |h| and (e + |z| b) / |h|, sum error2 / |h|, and the
 * sizes sum n (|log |h|| + |arg h| + |z y| / |h|) and sum w2 (1 + |z y| / |h|) / |h|. */
static void fp_gaussian_sums(ptrdiff_t points, const double *re, const double *im, ptrdiff_t m, const double *y,
                             const double *w2, const double *n, const double *b, const double *error2, const double *e,
                             int angles, double *out)
{
    void (*const add)(ptrdiff_t, const double *, const double *, const double *, double, double, double, double, double,
                      double, double (*)[FP_GAUSSIAN_POINTS]) = FP_SELECT(fp_add_coordinate);
    double block[FP_GAUSSIAN_COLUMNS][FP_GAUSSIAN_POINTS], size[FP_GAUSSIAN_POINTS];
    for (ptrdiff_t start = 0; start < points; start += FP_GAUSSIAN_POINTS) {
        const ptrdiff_t k = points - start < FP_GAUSSIAN_POINTS ? points - start : FP_GAUSSIAN_POINTS;
        for (ptrdiff_t i = 0; i < k; i++) {
            size[i] = hypot(re[start + i], im[start + i]);
            for (int c = 0; c < FP_GAUSSIAN_COLUMNS; c++)
                block[c][i] = c == 8 ? INFINITY : 0.0;
        }
        for (ptrdiff_t j = 0; j < m; j++) {
            add(k, re + start, im + start, size, y[j], w2[j], n[j], b[j], error2[j], e[j], block);
            for (ptrdiff_t i = 0; angles && i < k; i++) {
                const double arg = atan2(-im[start + i] * y[j], 1.0 - re[start + i] * y[j]);
                block[1][i] += n[j] * arg, block[15][i] += n[j] * fabs(arg);
            }
        }
        for (int c = 0; c < FP_GAUSSIAN_COLUMNS; c++)
            for (ptrdiff_t i = 0; i < k; i++)
                out[c * points + start + i] = block[c][i];
    }
}

#endif
