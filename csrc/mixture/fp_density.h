/* Log densities of Gaussian mixtures in d dimensions over many samples.
 *
 * Notation: component c has weight w_c, mean m_c and a scale R_c, the inverse of a lower Cholesky factor: a number, a
 * diagonal, or a triangle packed by rows; z_c = R_c (x - m_c), a_c = -|z_c|^2/2 - log det R_c^-1 - (d/2) log 2 pi, and
 * constant_c = log w_c + a_c(m_c).  Samples are x[d, n], a row a coordinate.  For each sample
 *
 *   out  = log sum_c exp(constant_c - |z_c|^2/2)
 *   info = KL(posterior of the component || weights) = sum_c w_c (u_c e^u_c - e^u_c + 1), u_c = a_c - out,
 *
 * the second a sum of terms that are never negative and of second order in u_c: where all components nearly coincide it
 * keeps the relative accuracy of u_c, whose absolute error is a few ulps of 1 + |out|.
 *
 * How, and why:
 * - FP_SAMPLE_VECTORS vectors of samples times FP_REGISTER_ROWS components stay in registers, so the loads are few and
 * the loops run at the rate of the multipliers: x - m then squared is one subtraction and one FMA (isotropic), with a
 * scale one more product.  Expanding the square would save nothing on a machine that subtracts beside its multipliers,
 * and loses digits; (x - m) r with m 1e8 sigmas away from 0 loses none.  On Zen 4 (one FMA of 512 bits a cycle, 3.6
 * GHz) a diagonal component costs 0.071 ns a coordinate, where two products cannot cost less than 0.069, and a full one
 *   0.035 an entry of its factor, where one cannot cost less; six components at a time instead of four cost 2 % more.
 * - A block of samples is copied side by side first: rows of x are a power of two apart in a tile and would share a few
 *   sets of the cache.  A value depends on its sample alone, not on its place in the tile or on n.
 * - Exponents are binary (2^y needs no reduction by log 2), of FP_CHUNK components in a buffer: the largest is known
 *   before the first power.  Between chunks the sum is scaled to the new largest.
 * - The vector power takes sixteen values of 2^(j/16) from registers and six terms, 0.34 ns; twelve terms and no table
 *   take 0.42.
 * - Components below 2^-65 / K of the largest are left out (less than 3e-20 of the density in all), and where this is
 *   so in all lanes no power is taken (the test costs 7 % of a power).  What is left out is decided lane by lane, so it
 *   changes no bit of another sample.
 * - A covariance shared by all components of a full mixture whitens the block once; the rest is isotropic.  Whitened
 *   means beyond FP_FARTHEST keep the form as it is: rounding them would cost more than 1e-13.
 * - Isotropic components square x - m before they scale; it over- or underflows only where the scales are extreme
 *   (then z is formed first) or the density is below e^-1e100: such samples, and infinite and NaN ones, are done again
 *   one by one with a wider exponent (fp_density_scalar).  NaN comes out only where x has NaN.
 *
 * FMA is used where the machine has it: the same bits for any cut into tiles and any number of threads on one
 * instruction set, and the accuracy of tests/kernels/test_density.py on all.
 */
/* bounds: none - where scales are taken one by one against over- and underflow */
#ifndef FP_DENSITY_H
#define FP_DENSITY_H

#include <stddef.h>

#include "common/fp_vector_tables.h"

#define FP_SAMPLE_VECTORS 4             /* vectors of samples in a block */
#define FP_MAX_BLOCK 32       /* samples in the largest block */
#define FP_CHUNK 64        /* components whose exponents are kept */
#define FP_LEAST_LOG_DENSITY -1e100  /* samples with a lower log density are recomputed one by one */
#define FP_FARTHEST 1024.0 /* whitened distance of a mean from the first */

enum { FP_ISOTROPIC = 0, FP_DIAGONAL = 1, FP_FULL = 2 };

typedef struct {
    int form, plain;     /* plain: isotropic, the scale is in factors */
    ptrdiff_t k, d, row; /* row: entries of scales from one component to the next; 0 when all share one */
    double cut;          /* binary exponents this far below the largest are left out */
    const double *constants, *log_weights, *means, *scales;
    const double *binary, *factors, *weights; /* exponent = binary + factor |z|^2, to base 2; e when k = 1 */
    const double *factor, *centre;            /* of a shared full covariance; else NULL */
} fp_density;

/* |z|^2 / 2 of component c at the sample whose coordinates are n apart */
static long double fp_half_square(const fp_density *p, ptrdiff_t n, ptrdiff_t c, const double *x)
{
    const double *m = p->means + c * p->d, *r = p->scales + c * p->row;
    long double sum = 0.0L;
    for (ptrdiff_t i = 0; i < p->d; i++) {
        long double z = 0.0L;
        if (p->form == FP_FULL)
            for (ptrdiff_t j = 0; j <= i; j++)
                z += ((long double)x[j * n] - m[j]) * r[i * (i + 1) / 2 + j];
        else
            z = ((long double)x[i * n] - m[i]) * r[p->form == FP_DIAGONAL ? i : 0];
        sum += z * z;
    }
    return 0.5L * sum;
}

/* One sample in long double, where the vector loop may have failed. */
static void fp_density_scalar(const fp_density *p, ptrdiff_t n, const double *x, double *out, double *info)
{
    long double top = -INFINITY, sum = 0.0L, information = 0.0L;
    for (ptrdiff_t j = 0; j < p->d; j++)
        if (isnan(x[j * n])) {
            *out = *info = NAN;
            return;
        }
    for (ptrdiff_t c = 0; c < p->k; c++) {
        const long double e = p->constants[c] - fp_half_square(p, n, c, x);
        if (e > top) {
            sum = sum * fp_exp((double)(top - e)) + 1.0L;
            top = e;
        } else if (e > -INFINITY) {
            sum += fp_exp((double)(e - top));
        }
    }
    *out = sum > 0.0L ? (double)(top + fp_log((double)sum)) : -INFINITY;
    for (ptrdiff_t c = 0; p->log_weights && sum > 0.0L && c < p->k; c++) {
        const double y = (double)(p->constants[c] - fp_half_square(p, n, c, x) - top) - fp_log((double)sum);
        const double u = y - p->log_weights[c], post = fp_exp(y);
        information += post > 0.0 ? post * (u - 1.0) + p->weights[c] : p->weights[c];
    }
    *info = information > 0.0L ? (double)information : 0.0;
}

#define FP_LOOPS "mixture/fp_density_loops.h"
#include "common/fp_variants.h"

typedef void (*fp_density_kernel)(const fp_density *, ptrdiff_t, const double *, double *, double *, double *);

static inline fp_density_kernel fp_density_select(void) { return FP_SELECT(fp_density_tile); }

/* What is computed once in a call; `prepared` has room for 3 k numbers. */
static void fp_density_prepare(fp_density *p, double *prepared)
{
    const double unit = p->k > 1 ? FP_LOG2E : 1.0;
    double *binary = prepared, *factors = binary + p->k, *weights = factors + p->k;
    p->plain = p->form == FP_ISOTROPIC;
    for (ptrdiff_t c = 0; p->plain && c < (p->row ? p->k : 1); c++)
        p->plain = p->scales[c] >= 1e-100 && p->scales[c] <= 1e100;
    p->cut = 65.0;
    for (ptrdiff_t c = 1; c < p->k; c *= 2)
        p->cut += 1.0;
    for (ptrdiff_t c = 0; c < p->k; c++) {
        const double r = p->plain ? p->scales[c * p->row] : 1.0;
        binary[c] = p->constants[c] * unit;
        factors[c] = -0.5 * unit * (r * r);
        weights[c] = p->log_weights ? fp_exp(p->log_weights[c]) : 0.0;
    }
    p->binary = binary;
    p->factors = factors;
    p->weights = weights;
    p->factor = p->centre = NULL;
    if (p->form == FP_FULL && p->row == 0 && p->k > 1) {
        p->factor = p->scales;
        p->centre = p->means;
        p->plain = 1;
    }
}

#endif
