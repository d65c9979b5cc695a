/* Sums over independent coordinates (y, w) of two normal distributions at points z of the complex plane, h = 1 - z y.
 *
 * What they are for, and the bounds: fastpriv/divergences/reductions/gaussian_sums.py. log |h| is taken from |z y|^2 -
 * 2 Re z y where |z y| < 1/2, so that it keeps digits where y is small; each logarithm and angle errs by at most a few u
 * of itself and of |z y| / |h|, a sum over n coordinates by n u of its sizes.
 */
#ifndef FP_GAUSSIAN_SUMS_H
#define FP_GAUSSIAN_SUMS_H

#include <math.h>
#include <stddef.h>

#include "special/fp_elementary.h"

#define FP_GAUSSIAN_COLUMNS 17

/* Columns: sum n log |h|, sum n arg h (0 without `angles`), sums of w2 / h, n y / h and w2 y / h^2 (real and imaginary
 * part each), the least |h / y|, sum 2 n y^2 / |h|^2 + 8 (1 + y + b) w2 / |h|^3, sum w2 / |h|, sum n eta / (1 - eta),
 * the largest eta = |z| moved / |h| and (e + |z| b) / |h|, sum error2 / |h|, and the sizes sum n (|log |h|| + |arg h| +
 * |z y| / |h|) and sum w2 (1 + |z y| / |h|) / |h|. */
static void fp_gaussian_sums(ptrdiff_t points, const double *re, const double *im, ptrdiff_t m, const double *y,
                             const double *w2, const double *n, const double *b, const double *error2, const double *e,
                             int angles, double *out)
{
    for (ptrdiff_t i = 0; i < points; i++, out += FP_GAUSSIAN_COLUMNS) {
        const double size = hypot(re[i], im[i]);
        for (int k = 0; k < FP_GAUSSIAN_COLUMNS; k++)
            out[k] = 0.0;
        out[8] = INFINITY;
        for (ptrdiff_t j = 0; j < m; j++) {
            const double v_re = re[i] * y[j], v_im = im[i] * y[j], a = 1.0 - v_re, moved = size * fabs(y[j]);
            const double large = fmax(fabs(a), fabs(v_im)), r = fmin(fabs(a), fabs(v_im)) / large, square = 1.0 + r * r;
            const double log_h = moved < 0.5 ? 0.5 * fp_log1p(v_re * (v_re - 2.0) + v_im * v_im)
                                             : fp_log(large) + 0.5 * fp_log1p(r * r);
            const double arg = angles ? atan2(-v_im, a) : 0.0;
            const double far = 1.0 / (large * sqrt(square)), far2 = far * far;
            /* 1 / h = (a + i v_im) / |h|^2 */
            const double h_re = a * far * far, h_im = v_im * far * far;
            const double eta = size * far * ((b[j] + e[j] * fabs(y[j])) / (1.0 - e[j])), along = moved * far;
            out[0] += n[j] * log_h, out[1] += n[j] * arg;
            out[2] += w2[j] * h_re, out[3] += w2[j] * h_im;
            out[4] += n[j] * y[j] * h_re, out[5] += n[j] * y[j] * h_im;
            out[6] += w2[j] * y[j] * (h_re * h_re - h_im * h_im), out[7] += w2[j] * y[j] * (2.0 * h_re * h_im);
            out[8] = fmin(out[8], 1.0 / (far * fabs(y[j])));
            out[9] += 2.0 * n[j] * y[j] * y[j] * far2 + 8.0 * fmax(1.0 + y[j] + b[j], 0.0) * w2[j] * far2 * far;
            out[10] += w2[j] * far, out[11] += n[j] * eta / (1.0 - eta);
            out[12] = fmax(out[12], eta), out[13] = fmax(out[13], (e[j] + size * b[j]) * far);
            out[14] += error2[j] * far;
            out[15] += n[j] * (fabs(log_h) + fabs(arg) + along), out[16] += w2[j] * far * (1.0 + along);
        }
    }
}

#endif
