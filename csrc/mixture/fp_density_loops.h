/* Log densities of mixtures over a tile of samples; the mathematics and its reasons are in fp_density.h. */
#include "common/fp_vector_loops.h"
#include "mixture/fp_quadratic_form_loops.h"

/* Add 2^(e - top) of a chunk to sum, which was relative to old or does not exist yet. */
FP_INLINE void FP_NAME(fp_add_chunk)(const fp_density *p, int fresh, int count, const double *restrict e,
                                  const fp_v *restrict old, const fp_v *restrict top, fp_v *restrict sum)
{
    const fp_v low = FP_NAME(fp_broadcast)(-p->cut);
    fp_v part[FP_SAMPLE_VECTORS];
#pragma GCC unroll 4
    for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
        part[s] = (fp_v){0};
    for (int c = 0; c < count; c++) {
        fp_v y[FP_SAMPLE_VECTORS];
        fp_mask kept[FP_SAMPLE_VECTORS];
#pragma GCC unroll 4
        for (int s = 0; s < FP_SAMPLE_VECTORS; s++) {
            y[s] = *(const fp_v *)(e + c * FP_BLOCK + s * FP_W) - top[s];
            kept[s] = FP_GE(y[s], low);
        }
        if (FP_ANY((kept[0] | kept[1]) | (kept[2] | kept[3]))) {
            FP_NAME(fp_exp2_group)(FP_SAMPLE_VECTORS, y, y);
#pragma GCC unroll 4
            for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
                part[s] = part[s] + FP_MASKED(kept[s], y[s]);
        }
    }
#pragma GCC unroll 4
    for (int s = 0; s < FP_SAMPLE_VECTORS; s++) {
        const fp_v y = old[s] - top[s];
        if (!fresh)
            part[s] = FP_FMA(sum[s], FP_MASKED(FP_GE(y, low), FP_NAME(fp_exp2)(y)), part[s]);
        sum[s] = part[s];
    }
}

/* info += sum_c of w (u e^u - e^u + 1), u = log(post / w): post = 2^y, y = e - top - log2 sum */
FP_INLINE void FP_NAME(fp_add_information)(const fp_density *p, ptrdiff_t first, int count, const double *restrict e,
                                  const fp_v *restrict top, const fp_v *restrict log_sum, fp_v *restrict info)
{
    fp_v part[FP_SAMPLE_VECTORS];
    for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
        part[s] = (fp_v){0};
    for (int c = 0; c < count; c++) {
        const fp_v w = FP_NAME(fp_broadcast)(p->weights[first + c]);
        const fp_v logs = FP_NAME(fp_broadcast)(p->log_weights[first + c] * FP_LOG2E);
        fp_v y[FP_SAMPLE_VECTORS], u[FP_SAMPLE_VECTORS], g[FP_SAMPLE_VECTORS], power[FP_SAMPLE_VECTORS];
#pragma GCC unroll 4
        for (int s = 0; s < FP_SAMPLE_VECTORS; s++) {
            y[s] = (*(const fp_v *)(e + c * FP_BLOCK + s * FP_W) - top[s]) - log_sum[s];
            u[s] = (y[s] - logs) * FP_LN2;
            g[s] = FP_NAME(fp_broadcast)(fp_information_series[13]);
        }
#pragma GCC unroll 13
        for (int i = 12; i >= 0; i--)
#pragma GCC unroll 4
            for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
                g[s] = FP_FMA(g[s], u[s], FP_NAME(fp_broadcast)(fp_information_series[i]));
        FP_NAME(fp_exp2_group)(FP_SAMPLE_VECTORS, y, power);
#pragma GCC unroll 4
        for (int s = 0; s < FP_SAMPLE_VECTORS; s++) {
            const fp_v square = u[s] * u[s];
            const fp_mask near = FP_GE(FP_NAME(fp_broadcast)(1.0), square),
                          seen = FP_GE(y[s], FP_NAME(fp_broadcast)(-1000.0));
            const fp_v far = FP_MASKED(seen, power[s] * (u[s] - 1.0)) + w;
            part[s] = part[s] + FP_WHERE(near, w * square * g[s], far);
        }
    }
    for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
        info[s] = info[s] + part[s];
}

/* Copy samples first to first + FP_BLOCK - 1 of x (d, n) side by side; past the end the last one is repeated. */
static void FP_NAME(fp_copy_block)(ptrdiff_t d, ptrdiff_t n, ptrdiff_t first, const double *restrict x,
                                   double *restrict to)
{
    const ptrdiff_t available = n - first < FP_BLOCK ? n - first : FP_BLOCK;
    for (ptrdiff_t j = 0; j < d; j++) {
        const double *from = x + j * n + first;
        if (available == FP_BLOCK)
#pragma GCC unroll 4
            for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
                *(fp_v *)(to + j * FP_BLOCK + s * FP_W) = *(const fp_vu *)(from + s * FP_W);
        else
            for (ptrdiff_t i = 0; i < FP_BLOCK; i++)
                to[j * FP_BLOCK + i] = from[i < available ? i : available - 1];
    }
}

/* Log densities of a block of samples; with `info` also the divergence of the component posterior from the weights. */
static void FP_NAME(fp_density_block)(const fp_density *p, const double *block, double *t, double *out, double *info)
{
    double e[FP_CHUNK * FP_BLOCK] __attribute__((aligned(64)));
    fp_v top[FP_SAMPLE_VECTORS], sum[FP_SAMPLE_VECTORS], log_sum[FP_SAMPLE_VECTORS], old[FP_SAMPLE_VECTORS];
    for (int s = 0; s < FP_SAMPLE_VECTORS; s++) {
        top[s] = FP_NAME(fp_broadcast)(-0x1.fp1023);
        sum[s] = (fp_v){0};
    }
    for (ptrdiff_t c = 0; c < p->k; c += FP_CHUNK) {
        const int count = p->k - c < FP_CHUNK ? (int)(p->k - c) : FP_CHUNK;
        for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
            old[s] = top[s];
        FP_NAME(fp_exponents)(p, c, count, block, t, e, top);
        FP_NAME(fp_add_chunk)(p, c == 0, count, e, old, top, sum);
    }
    FP_NAME(fp_log_group)(FP_SAMPLE_VECTORS, sum, log_sum);
    for (int s = 0; s < FP_SAMPLE_VECTORS; s++) {
        const fp_mask some = FP_GE(sum[s], FP_NAME(fp_broadcast)(0.5));
        const fp_v value = FP_FMA(top[s], FP_NAME(fp_broadcast)(FP_LN2), log_sum[s]);
        *(fp_v *)(out + s * FP_W) =
            FP_MASKED(some, value) + FP_MASKED((fp_mask)~some, FP_NAME(fp_broadcast)(-INFINITY));
        log_sum[s] = log_sum[s] * FP_LOG2E;
    }
    if (!info)
        return;
    fp_v information[FP_SAMPLE_VECTORS] = {{0}};
    for (ptrdiff_t c = 0; c < p->k; c += FP_CHUNK) {
        const int count = p->k - c < FP_CHUNK ? (int)(p->k - c) : FP_CHUNK;
        if (p->k > FP_CHUNK) {
            for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
                old[s] = top[s];
            FP_NAME(fp_exponents)(p, c, count, block, t, e, old);
        }
        FP_NAME(fp_add_information)(p, c, count, e, top, log_sum, information);
    }
    for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
        *(fp_v *)(info + s * FP_W) = information[s];
}

/* A single component needs no exponential. */
static void FP_NAME(fp_density_single)(const fp_density *p, const double *block, double *t, double *out, double *info)
{
    fp_v top[FP_SAMPLE_VECTORS];
    for (int s = 0; s < FP_SAMPLE_VECTORS; s++)
        top[s] = FP_NAME(fp_broadcast)(-INFINITY);
    FP_NAME(fp_exponents)(p, 0, 1, block, t, out, top);
    for (int i = 0; info && i < FP_BLOCK; i++)
        info[i] = 0.0;
}

/* Transform all means to the coordinates in which the common covariance is 1; returns 0 where a mean is too far
 * away to do so accurately. */
static int FP_NAME(fp_whiten_means)(const fp_density *p, double *work, double *means)
{
    const ptrdiff_t d = p->d;
    double *block = work, *t = work + d * FP_BLOCK, *to = t + d * FP_BLOCK, largest = 0.0;
    for (ptrdiff_t c = 0; c < p->k; c += FP_BLOCK) {
        const ptrdiff_t available = p->k - c < FP_BLOCK ? p->k - c : FP_BLOCK;
        for (ptrdiff_t j = 0; j < d; j++)
            for (ptrdiff_t i = 0; i < FP_BLOCK; i++)
                block[j * FP_BLOCK + i] = p->means[(c + (i < available ? i : available - 1)) * d + j];
        FP_NAME(fp_whiten_block)(p, block, t, to);
        for (ptrdiff_t i = 0; i < available; i++)
            for (ptrdiff_t j = 0; j < d; j++) {
                means[(c + i) * d + j] = to[j * FP_BLOCK + i];
                largest = fabs(to[j * FP_BLOCK + i]) <= largest ? largest : fabs(to[j * FP_BLOCK + i]);
            }
    }
    return largest <= FP_FARTHEST;
}

/* out = log density of n samples; info, unless NULL, as in fp_density.h */
static void FP_NAME(fp_density_tile)(const fp_density *given, ptrdiff_t n, const double *x, double *work, double *out,
                                     double *info)
{
    const ptrdiff_t d = given->d;
    double *block = work, *t = work + d * FP_BLOCK, *white = t + d * FP_BLOCK, *means = white + d * FP_BLOCK;
    double value[FP_BLOCK] __attribute__((aligned(64))), information[FP_BLOCK] __attribute__((aligned(64)));
    fp_density p = *given;
    if (p.factor && FP_NAME(fp_whiten_means)(&p, work, means)) {
        p.form = FP_ISOTROPIC;
        p.means = means;
    } else {
        p.factor = NULL;
    }
    for (ptrdiff_t first = 0; first < n; first += FP_BLOCK) {
        const int available = n - first < FP_BLOCK ? (int)(n - first) : FP_BLOCK;
        const double *at = block;
        FP_NAME(fp_copy_block)(d, n, first, x, block);
        if (p.factor) {
            FP_NAME(fp_whiten_block)(&p, block, t, white);
            at = white;
        }
        if (p.k == 1)
            FP_NAME(fp_density_single)(&p, at, t, value, info ? information : NULL);
        else
            FP_NAME(fp_density_block)(&p, at, t, value, info ? information : NULL);
        fp_mask near = FP_GE(*(fp_v *)value, FP_NAME(fp_broadcast)(FP_LEAST_LOG_DENSITY));
#pragma GCC unroll 4
        for (int s = 1; s < FP_SAMPLE_VECTORS; s++)
            near = near & FP_GE(*(fp_v *)(value + s * FP_W), FP_NAME(fp_broadcast)(FP_LEAST_LOG_DENSITY));
        if (!FP_ALL(near))
            for (int i = 0; i < available; i++)
                if (!(value[i] >= FP_LEAST_LOG_DENSITY))
                    fp_density_scalar(given, n, x + first + i, value + i, information + i);
        memcpy(out + first, value, available * sizeof *out);
        if (info)
            memcpy(info + first, information, available * sizeof *info);
    }
}
