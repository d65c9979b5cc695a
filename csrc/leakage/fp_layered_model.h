/* Layers of a multilayer perceptron: logits, losses, gradients, and the derivative of gradient matching.
 *
 * Notation: layer l = 0 ... L - 1 maps width[l] numbers to width[l + 1]: z = W [a; 1], the intercept in the last column of
 * W; a = f(z) below the last layer, whose z are logits.  Weights are the matrices one after another, row by row.  The
 * formulas and their source are at the head of fastpriv/studies/leakage/layered_models.py.
 * Gradient matching of one softmax layer alone, with its Gauss-Newton steps, is in fp_gradient_matching.h.
 *
 * Memory.  Rows of tables are padded to a multiple of FP_LANES: `rows` holds W, `columns` its transpose, so that every
 * product runs along contiguous columns of its right factor.  A sum is taken one product after another, each rounded,
 * and lanes are different sums: the bits are the same on every instruction set. */
#ifndef FP_LAYERED_MODEL_H
#define FP_LAYERED_MODEL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/fp_lanes.h"
#include "special/fp_elementary.h"

/* bound: none - layers of a model, and rows of a tile */
enum { FP_MOST_LAYERS = 16, FP_TILE_ROWS = 4 };
enum { FP_SIGMOID = 0, FP_TANH = 1, FP_SOFTPLUS = 2, FP_RELU = 3 };

/* A model with its workspace for `block` records at a time. */
typedef struct {
    int layers, activation;
    ptrdiff_t block;
    ptrdiff_t width[FP_MOST_LAYERS + 1];
    double *rows[FP_MOST_LAYERS], *columns[FP_MOST_LAYERS]; /* W and its transpose */
    double *gradient[FP_MOST_LAYERS];                       /* like rows */
    double *inputs[FP_MOST_LAYERS];                         /* a_l and a 1, block rows */
    double *outputs[FP_MOST_LAYERS];                        /* z_{l+1}, block rows */
    double *errors[FP_MOST_LAYERS];                         /* derivative of the loss by z_{l+1}, block rows */
    double *slope[FP_MOST_LAYERS], *curvature[FP_MOST_LAYERS];
    double *norms; /* of gradients, a number a record */
    /* of gradient matching alone */
    double *direction_rows[FP_MOST_LAYERS], *direction_columns[FP_MOST_LAYERS]; /* V, as W */
    double *tangents[FP_MOST_LAYERS];                                           /* of z_{l+1} along V */
    double *input_tangents[FP_MOST_LAYERS];                                     /* of a_l along V */
    double *pulled[FP_MOST_LAYERS];                                             /* W' e, before the slope */
    double *adjoint, *below;                                                    /* of z_{l+1} and of a_l */
    double *soft; /* softmax of label logits, block rows */
} fp_layered_model;

static inline ptrdiff_t fp_padded_width(ptrdiff_t n) { return (n + FP_LANES - 1) / FP_LANES * FP_LANES; }

/* Doubles of the workspace; with `memory` its tables are placed there.  width, layers, activation and block are set. */
static inline ptrdiff_t fp_layered_workspace(fp_layered_model *m, int matching, double *memory)
{
    ptrdiff_t used = 0, widest = 0;
#define FP_PLACE(table, count)                                                                                        \
    do {                                                                                                              \
        if (memory)                                                                                                   \
            (table) = memory + used;                                                                                  \
        used += (count);                                                                                              \
    } while (0)
    for (int l = 0; l < m->layers; l++) {
        const ptrdiff_t in = fp_padded_width(m->width[l] + 1), out = fp_padded_width(m->width[l + 1]);
        const ptrdiff_t out_one = fp_padded_width(m->width[l + 1] + 1);
        widest = in > widest ? in : widest;
        widest = out_one > widest ? out_one : widest;
        FP_PLACE(m->rows[l], m->width[l + 1] * in);
        FP_PLACE(m->columns[l], (m->width[l] + 1) * out);
        FP_PLACE(m->gradient[l], m->width[l + 1] * in);
        FP_PLACE(m->inputs[l], m->block * in);
        FP_PLACE(m->outputs[l], m->block * out);
        FP_PLACE(m->errors[l], m->block * out_one);
        FP_PLACE(m->slope[l], m->block * out);
        FP_PLACE(m->curvature[l], m->block * out);
        if (matching) {
            FP_PLACE(m->direction_rows[l], m->width[l + 1] * in);
            FP_PLACE(m->direction_columns[l], (m->width[l] + 1) * out);
            FP_PLACE(m->tangents[l], m->block * out);
            FP_PLACE(m->input_tangents[l], m->block * in);
            FP_PLACE(m->pulled[l], m->block * in);
        }
    }
    FP_PLACE(m->norms, m->block);
    if (matching) {
        FP_PLACE(m->adjoint, m->block * widest);
        FP_PLACE(m->below, m->block * widest);
        FP_PLACE(m->soft, m->block * m->width[m->layers]);
    }
#undef FP_PLACE
    return used;
}

static inline ptrdiff_t fp_layered_parameters(const fp_layered_model *m)
{
    ptrdiff_t total = 0;
    for (int l = 0; l < m->layers; l++)
        total += m->width[l + 1] * (m->width[l] + 1);
    return total;
}

/* f(z), f'(z) and f''(z); with e = exp(-|z|) none of them overflows */
FP_INLINE void fp_activation(const int kind, double z, double *a, double *slope, double *curvature)
{
    const double size = fabs(z);
    if (kind == FP_RELU) {
        *a = z > 0.0 ? z : z < 0.0 ? 0.0 : z; /* NaN stays */
        *slope = z > 0.0 ? 1.0 : 0.0;
        *curvature = 0.0;
    } else if (kind == FP_TANH) {
        const double less = fp_expm1(-2.0 * size), e = fp_exp(-2.0 * size), s = 1.0 / (1.0 + e);
        const double t = copysign(-less / (2.0 + less), z);
        *a = t;
        *slope = 4.0 * e * s * s;
        *curvature = -2.0 * t * *slope;
    } else {
        const double e = fp_exp(-size), s = 1.0 / (1.0 + e), logistic = z >= 0.0 ? s : e * s, product = e * s * s;
        if (kind == FP_SOFTPLUS) {
            *a = (z > 0.0 ? z : 0.0) + fp_log1p(e);
            *slope = logistic;
            *curvature = product;
        } else {
            *a = logistic;
            *slope = product;
            *curvature = copysign((1.0 - e) * s, -z) * product;
        }
    }
}

#define FP_PW_baseline 2
#define FP_PW_avx2 4
#define FP_PW_avx512 8
#define FP_PW FP_CAT(FP_PW, FP_ISA)
#define FP_LOOPS "leakage/fp_layered_model_loops.h"
#include "common/fp_variants.h"

/* What Python calls, for one instruction set; see the loops. */
typedef struct {
    void (*load)(const fp_layered_model *m, const double *weights, int backward);
    void (*logits)(const fp_layered_model *m, ptrdiff_t n, const double *records, double *out);
    void (*losses)(ptrdiff_t n, ptrdiff_t classes, const double *logits, const int64_t *labels, double *out);
    void (*add_gradients)(const fp_layered_model *m, ptrdiff_t n, const double *records, const int64_t *labels,
                          double clip);
    void (*per_example)(const fp_layered_model *m, ptrdiff_t n, const double *records, const int64_t *labels,
                        double *out);
    void (*unload)(const fp_layered_model *m, double factor, double *out);
    double (*matching)(const fp_layered_model *m, const double *records, const int64_t *labels, const double *logits,
                       const double *target, double *by_records, double *by_logits);
} fp_layered_kernels;

#define FP_LAYERED_KERNELS(isa)                                                                                       \
    (fp_layered_kernels){fp_layered_load_##isa,          fp_layered_logits_##isa,      fp_layered_losses_##isa,       \
                         fp_layered_add_gradients_##isa, fp_layered_per_example_##isa, fp_layered_unload_##isa,       \
                         fp_layered_matching_##isa}

static inline fp_layered_kernels fp_layered_select(void)
{
#if FP_HAVE_VARIANTS
    if (fp_isa() == FP_ISA_AVX512)
        return FP_LAYERED_KERNELS(avx512);
    if (fp_isa() == FP_ISA_AVX2)
        return FP_LAYERED_KERNELS(avx2);
#endif
    return FP_LAYERED_KERNELS(baseline);
}

#endif
