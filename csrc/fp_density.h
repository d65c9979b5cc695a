/* Log densities of Gaussian mixtures in d dimensions: log sum_c exp(constant_c - |z_c|^2 / 2), over many samples.
 */
#ifndef FP_DENSITY_H
#define FP_DENSITY_H

#include <stddef.h>
#include <stdlib.h>

#include "fp_elementary.h"
#if FP_HAVE_VARIANTS
#include <immintrin.h>
#endif

#define FP_LN2 0x1.62e42fefa39efp-1
#define FP_CHUNK 64
#define FP_RESCUE -1e100 /* below it a sample is done again by fp_density_far */

enum { FP_ISOTROPIC = 0, FP_DIAGONAL = 1, FP_FULL = 2 };

typedef struct {
    int form, plain;      /* plain: squares of x - m first, scaled once */
    ptrdiff_t k, d, row;  /* row: entries of scales from one component to the next; 0 when all share one */
    double cut;           /* binary exponents this far below the largest are dropped */
    const double *constants, *log_weights, *means, *scales;
} fp_density;

static const double fp_exp2_series[12] = {
    1.0, 0x1.62e42fefa39efp-1, 0x1.ebfbdff82c5adp-3, 0x1.c6b08d7049fd1p-5, 0x1.3b2ab6fb9f413p-7,
    0x1.5d87fe78cf260p-10, 0x1.43091310bf66dp-13, 0x1.ffcbfba7bc9a1p-17, 0x1.62bfc3c1d2153p-20,
    0x1.b5267882d5309p-24, 0x1.e620fb67ac6ddp-28, 0x1.e7aa1c12faa3cp-32,
};

/* |z|^2 / 2 of component c; x_j at x[j n]; no overflow unless the truth overflows */
static double fp_half_square(const fp_density *p, ptrdiff_t n, ptrdiff_t c, const double *x)
{
    const double *m = p->means + c * p->d, *r = p->scales + c * p->row;
    double sum = 0.0;
    for (ptrdiff_t i = 0; i < p->d; i++) {
        double z;
        if (p->form == FP_FULL) {
            z = 0.0;
            for (ptrdiff_t j = 0; j <= i; j++)
                z += (0.5 * x[j * n] - 0.5 * m[j]) * r[i * (i + 1) / 2 + j];
        } else {
            z = (0.5 * x[i * n] - 0.5 * m[i]) * r[p->form == FP_DIAGONAL ? i : 0];
        }
        z *= 0x1.6a09e667f3bcdp+0;
        sum += z * z;
    }
    return sum;
}

static double fp_density_far(const fp_density *p, ptrdiff_t n, const double *x)
{
    double top = -INFINITY, sum = 0.0;
    for (ptrdiff_t c = 0; c < p->k; c++) {
        const double e = p->constants[c] - fp_half_square(p, n, c, x);
        if (isnan(e))
            return NAN;
        if (e > top) {
            sum = sum * fp_exp(top - e) + 1.0;
            top = e;
        } else if (e > -INFINITY) {
            sum += fp_exp(e - top);
        }
    }
    return sum > 0.0 ? top + fp_log(sum) : -INFINITY;
}

/* u e^u - e^u + 1 >= 0 */
static double fp_information_term(double u)
{
    if (fabs(u) > 1.0)
        return u * fp_exp(u) - fp_expm1(u);
    double s = 0.0, power = 1.0;
    for (int k = 20; k >= 2; k--)
        s = s * u / k + (k - 1.0) * power, power *= 1.0;
    double total = 0.0, f = 1.0;
    for (int k = 2; k <= 20; k++) {
        f /= k;
        total += (k - 1.0) * f * power;
        power *= u;
    }
    return u * u * total;
}

static double fp_density_information(const fp_density *p, ptrdiff_t n, const double *x, double log_density)
{
    double sum = 0.0;
    for (ptrdiff_t c = 0; c < p->k; c++) {
        const double lw = p->log_weights[c], e = p->constants[c] - lw - fp_half_square(p, n, c, x), u = e - log_density;
        sum += u > 1.0 ? fp_exp(lw + u) * (u - 1.0) + fp_exp(lw) : fp_exp(lw) * fp_information_term(u);
    }
    return sum;
}

#define FP_LOOPS "fp_density_room.h"
#include "fp_variants.h"

typedef void (*fp_density_call)(const fp_density *, ptrdiff_t, const double *, double *, double *, double *);

static inline fp_density_call fp_density_pick(void)
{
#if FP_HAVE_VARIANTS
    if (fp_isa() == FP_ISA_AVX512)
        return fp_density_tile_avx512;
    if (fp_isa() == FP_ISA_AVX2)
        return fp_density_tile_avx2;
#endif
    return fp_density_tile_baseline;
}

/* 0, or -1 without memory */
static inline int fp_density_run(fp_density_call call, fp_density *p, ptrdiff_t n, const double *x, double *out,
                                 double *info)
{
    double *work = aligned_alloc(64, (size_t)(2 * p->d * 32 * 8));
    if (!work)
        return -1;
    p->plain = p->form == FP_ISOTROPIC;
    const ptrdiff_t many = p->row ? p->k : 1;
    for (ptrdiff_t c = 0; p->plain && c < many; c++)
        p->plain = p->scales[c] >= 1e-100 && p->scales[c] <= 1e100;
    p->cut = 65.0;
    for (ptrdiff_t c = 1; c < p->k; c *= 2)
        p->cut += 1.0;
    call(p, n, x, work, out, info);
    free(work);
    return 0;
}

#endif
