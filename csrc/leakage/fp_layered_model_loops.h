/* The loops of fp_layered_model.h for one instruction set; no include guard.  FP_PW is the number of lanes of a vector. */

typedef double FP_NAME(fp_wide) __attribute__((vector_size(8 * FP_PW), aligned(8), may_alias));

/* Four rows, or one, of c += a b in `vectors` vectors of columns, two at most. */
FP_INLINE void FP_NAME(fp_tile)(const int rows, const int vectors, ptrdiff_t k, const double *a, ptrdiff_t row_step,
                                ptrdiff_t step, const double *b, ptrdiff_t ldb, double *c, ptrdiff_t ldc)
{
    typedef FP_NAME(fp_wide) v;
    v sum[FP_TILE_ROWS][2];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            sum[r][j] = *(const v *)(c + r * ldc + j * FP_PW);
    for (ptrdiff_t i = 0; i < k; i++) {
        v right[2];
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            right[j] = *(const v *)(b + i * ldb + j * FP_PW);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            const double left = a[r * row_step + i * step];
#pragma GCC unroll 2
            for (int j = 0; j < vectors; j++)
                sum[r][j] += left * right[j];
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            *(v *)(c + r * ldc + j * FP_PW) = sum[r][j];
}

/* c += a b for a (n, k), b (k, m) and c (n, m), m a multiple of FP_LANES; entry (r, i) of a is a[r * row_step + i * step] */
static void FP_NAME(fp_add_product)(ptrdiff_t n, ptrdiff_t k, ptrdiff_t m, const double *restrict a, ptrdiff_t row_step,
                                    ptrdiff_t step, const double *restrict b, ptrdiff_t ldb, double *restrict c,
                                    ptrdiff_t ldc)
{
    for (ptrdiff_t j = 0; j < m;) {
        const int two = m - j >= 2 * FP_PW;
        ptrdiff_t r = 0;
        for (; r + FP_TILE_ROWS <= n; r += FP_TILE_ROWS)
            if (two)
                FP_NAME(fp_tile)(FP_TILE_ROWS, 2, k, a + r * row_step, row_step, step, b + j, ldb, c + r * ldc + j, ldc);
            else
                FP_NAME(fp_tile)(FP_TILE_ROWS, 1, k, a + r * row_step, row_step, step, b + j, ldb, c + r * ldc + j, ldc);
        for (; r < n; r++)
            if (two)
                FP_NAME(fp_tile)(1, 2, k, a + r * row_step, row_step, step, b + j, ldb, c + r * ldc + j, ldc);
            else
                FP_NAME(fp_tile)(1, 1, k, a + r * row_step, row_step, step, b + j, ldb, c + r * ldc + j, ldc);
        j += two ? 2 * FP_PW : FP_PW;
    }
}

static inline void FP_NAME(fp_zero)(double *x, ptrdiff_t n) { memset(x, 0, (size_t)n * sizeof *x); }

/* Flat matrices to padded ones, and to padded transposes where these are given. */
static void FP_NAME(fp_layered_unpack)(const fp_layered_model *m, const double *flat, double *const *rows,
                                       double *const *columns)
{
    for (int l = 0; l < m->layers; l++) {
        const ptrdiff_t in = m->width[l] + 1, out = m->width[l + 1];
        const ptrdiff_t row = fp_padded_width(in), column = fp_padded_width(out);
        if (rows)
            for (ptrdiff_t j = 0; j < out; j++) {
                memcpy(rows[l] + j * row, flat + j * in, (size_t)in * sizeof *flat);
                FP_NAME(fp_zero)(rows[l] + j * row + in, row - in);
            }
        for (ptrdiff_t i = 0; i < in; i++) {
            for (ptrdiff_t j = 0; j < out; j++)
                columns[l][i * column + j] = flat[j * in + i];
            FP_NAME(fp_zero)(columns[l] + i * column + out, column - out);
        }
        flat += in * out;
    }
}

/* Take weights into the model, `backward` those of backward passes too, and set the gradient to 0. */
static void FP_NAME(fp_layered_load)(const fp_layered_model *m, const double *weights, int backward)
{
    FP_NAME(fp_layered_unpack)(m, weights, backward ? m->rows : NULL, m->columns);
    for (int l = 0; l < m->layers; l++)
        FP_NAME(fp_zero)(m->gradient[l], m->width[l + 1] * fp_padded_width(m->width[l] + 1));
}

/* The gradient times a factor, as a flat vector. */
static void FP_NAME(fp_layered_unload)(const fp_layered_model *m, double factor, double *out)
{
    for (int l = 0; l < m->layers; l++) {
        const ptrdiff_t in = m->width[l] + 1, row = fp_padded_width(in);
        for (ptrdiff_t j = 0; j < m->width[l + 1]; j++, out += in)
            for (ptrdiff_t i = 0; i < in; i++)
                out[i] = m->gradient[l][j * row + i] * factor;
    }
}

#define FP_ACTIVATE(kind)                                                                                             \
    case kind:                                                                                                        \
        for (ptrdiff_t i = 0; i < width; i++)                                                                         \
            fp_activation(kind, z[i], a + i, slope + i, curvature + i);                                               \
        break

static void FP_NAME(fp_activate)(int kind, ptrdiff_t width, const double *restrict z, double *restrict a,
                                 double *restrict slope, double *restrict curvature)
{
    switch (kind) {
        FP_ACTIVATE(FP_SIGMOID);
        FP_ACTIVATE(FP_TANH);
        FP_ACTIVATE(FP_SOFTPLUS);
        FP_ACTIVATE(FP_RELU);
    }
}
#undef FP_ACTIVATE

/* inputs, outputs, slopes and curvatures of n <= block records */
static void FP_NAME(fp_layered_forward)(const fp_layered_model *m, ptrdiff_t n, const double *records)
{
    for (int l = 0; l < m->layers; l++) {
        const ptrdiff_t in = m->width[l], out = m->width[l + 1];
        const ptrdiff_t row = fp_padded_width(in + 1), column = fp_padded_width(out);
        for (ptrdiff_t s = 0; s < n; s++) {
            double *a = m->inputs[l] + s * row;
            if (l == 0)
                memcpy(a, records + s * in, (size_t)in * sizeof *a);
            else
                FP_NAME(fp_activate)(m->activation, in, m->outputs[l - 1] + s * fp_padded_width(in), a,
                                     m->slope[l - 1] + s * fp_padded_width(in),
                                     m->curvature[l - 1] + s * fp_padded_width(in));
            a[in] = 1.0;
            FP_NAME(fp_zero)(a + in + 1, row - in - 1);
        }
        FP_NAME(fp_zero)(m->outputs[l], n * column);
        FP_NAME(fp_add_product)(n, in + 1, column, m->inputs[l], row, 1, m->columns[l], column, m->outputs[l], column);
    }
}

/* exp(z - max z) of one record's logits, their sum and the largest logit */
static double FP_NAME(fp_exponentials)(ptrdiff_t classes, const double *z, double *e, double *largest)
{
    double top = z[0], sum = 0.0;
    for (ptrdiff_t j = 1; j < classes; j++)
        top = z[j] > top ? z[j] : top;
    for (ptrdiff_t j = 0; j < classes; j++)
        e[j] = fp_exp(z[j] - top);
    for (ptrdiff_t j = 0; j < classes; j++)
        sum += e[j];
    *largest = top;
    return sum;
}

/* Derivatives of each record's loss by z, layer by layer downward; labels are classes, or probabilities `soft`.  The
 * error at the label is minus the sum of the others, which keeps its digits where the label is almost certain. */
static void FP_NAME(fp_layered_backward)(const fp_layered_model *m, ptrdiff_t n, const int64_t *labels,
                                         const double *soft, double *const *pulled)
{
    const int last = m->layers - 1;
    const ptrdiff_t classes = m->width[m->layers], logit_row = fp_padded_width(classes);
    const ptrdiff_t error_row = fp_padded_width(classes + 1);
    for (ptrdiff_t s = 0; s < n; s++) {
        double *e = m->errors[last] + s * error_row, top;
        const double sum = FP_NAME(fp_exponentials)(classes, m->outputs[last] + s * logit_row, e, &top);
        for (ptrdiff_t j = 0; j < classes; j++)
            e[j] /= sum;
        if (soft) {
            for (ptrdiff_t j = 0; j < classes; j++)
                e[j] -= soft[s * classes + j];
        } else {
            double others = 0.0;
            for (ptrdiff_t j = 0; j < classes; j++)
                others += j == labels[s] ? 0.0 : e[j];
            e[labels[s]] = -others;
        }
        FP_NAME(fp_zero)(e + classes, error_row - classes);
    }
    for (int l = last; l > 0; l--) {
        const ptrdiff_t in = m->width[l], row = fp_padded_width(in + 1), slope_row = fp_padded_width(in);
        double *below = pulled ? pulled[l] : m->errors[l - 1];
        FP_NAME(fp_zero)(below, n * row);
        FP_NAME(fp_add_product)(n, m->width[l + 1], row, m->errors[l], fp_padded_width(m->width[l + 1] + 1), 1,
                                m->rows[l], row, below, row);
        for (ptrdiff_t s = 0; s < n; s++)
            for (ptrdiff_t i = 0; i < row; i++)
                m->errors[l - 1][s * row + i] = i < in ? below[s * row + i] * m->slope[l - 1][s * slope_row + i] : 0.0;
    }
}

/* Sum of squares in eight lanes, of a row padded with zeros. */
static double FP_NAME(fp_square_sum)(ptrdiff_t n, const double *x)
{
    fp_v8 sum = {0};
    for (ptrdiff_t i = 0; i < n; i += FP_LANES) {
        const fp_v8 one = *(const fp_v8 *)(x + i);
        sum += one * one;
    }
    double lanes[FP_LANES];
    memcpy(lanes, &sum, sizeof lanes);
    return fp_lane_sum(lanes);
}

/* Scale the errors of each record so that its gradient is not longer than `clip`. */
static void FP_NAME(fp_layered_clip)(const fp_layered_model *m, ptrdiff_t n, double clip)
{
    for (ptrdiff_t s = 0; s < n; s++) {
        double square = 0.0;
        for (int l = 0; l < m->layers; l++) {
            const ptrdiff_t in = fp_padded_width(m->width[l] + 1), out = fp_padded_width(m->width[l + 1] + 1);
            square += FP_NAME(fp_square_sum)(out, m->errors[l] + s * out)
                      * FP_NAME(fp_square_sum)(in, m->inputs[l] + s * in);
        }
        const double length = sqrt(square);
        if (length > clip)
            for (int l = 0; l < m->layers; l++) {
                const ptrdiff_t out = fp_padded_width(m->width[l + 1] + 1);
                for (ptrdiff_t j = 0; j < out; j++)
                    m->errors[l][s * out + j] *= clip / length;
            }
    }
}

static void FP_NAME(fp_layered_collect)(const fp_layered_model *m, ptrdiff_t n)
{
    for (int l = 0; l < m->layers; l++) {
        const ptrdiff_t row = fp_padded_width(m->width[l] + 1);
        FP_NAME(fp_add_product)(m->width[l + 1], n, row, m->errors[l], 1, fp_padded_width(m->width[l + 1] + 1),
                                m->inputs[l], row, m->gradient[l], row);
    }
}

/* Add the gradients of n <= block records, each scaled down to length `clip`, to the model's. */
static void FP_NAME(fp_layered_add_gradients)(const fp_layered_model *m, ptrdiff_t n, const double *records,
                                              const int64_t *labels, double clip)
{
    FP_NAME(fp_layered_forward)(m, n, records);
    FP_NAME(fp_layered_backward)(m, n, labels, NULL, NULL);
    if (clip < HUGE_VAL)
        FP_NAME(fp_layered_clip)(m, n, clip);
    FP_NAME(fp_layered_collect)(m, n);
}

/* The gradients of n <= block records, one flat row each. */
static void FP_NAME(fp_layered_per_example)(const fp_layered_model *m, ptrdiff_t n, const double *records,
                                            const int64_t *labels, double *out)
{
    FP_NAME(fp_layered_forward)(m, n, records);
    FP_NAME(fp_layered_backward)(m, n, labels, NULL, NULL);
    for (ptrdiff_t s = 0; s < n; s++)
        for (int l = 0; l < m->layers; l++) {
            const ptrdiff_t in = m->width[l] + 1;
            const double *a = m->inputs[l] + s * fp_padded_width(in);
            const double *e = m->errors[l] + s * fp_padded_width(m->width[l + 1] + 1);
            for (ptrdiff_t j = 0; j < m->width[l + 1]; j++, out += in)
                for (ptrdiff_t i = 0; i < in; i++)
                    out[i] = e[j] * a[i];
        }
}

static void FP_NAME(fp_layered_logits)(const fp_layered_model *m, ptrdiff_t n, const double *records, double *out)
{
    const ptrdiff_t classes = m->width[m->layers], row = fp_padded_width(classes);
    FP_NAME(fp_layered_forward)(m, n, records);
    for (ptrdiff_t s = 0; s < n; s++)
        memcpy(out + s * classes, m->outputs[m->layers - 1] + s * row, (size_t)classes * sizeof *out);
}

/* log sum exp z - z[label]; the largest logit is left out of the sum under the logarithm, which is then of 1 + rest */
static void FP_NAME(fp_layered_losses)(ptrdiff_t n, ptrdiff_t classes, const double *logits, const int64_t *labels,
                                       double *out)
{
    for (ptrdiff_t s = 0; s < n; s++) {
        const double *z = logits + s * classes;
        ptrdiff_t top = 0;
        for (ptrdiff_t j = 1; j < classes; j++)
            top = z[j] > z[top] ? j : top;
        double rest = 0.0;
        for (ptrdiff_t j = 0; j < classes; j++)
            rest += j == top ? 0.0 : fp_exp(z[j] - z[top]);
        out[s] = fp_log1p(rest) + (z[top] - z[labels[s]]);
    }
}

/* |mean gradient - target|^2 of `block` records and its derivatives by records and by label logits, whose softmax takes
 * the place of labels; without logits labels are classes. */
static double FP_NAME(fp_layered_matching)(const fp_layered_model *m, const double *records, const int64_t *labels,
                                           const double *logits, const double *target, double *by_records,
                                           double *by_logits)
{
    const ptrdiff_t n = m->block, classes = m->width[m->layers];
    const int last = m->layers - 1;
    double *soft = logits ? m->soft : NULL, top;
    for (ptrdiff_t s = 0; soft && s < n; s++) {
        const double sum = FP_NAME(fp_exponentials)(classes, logits + s * classes, soft + s * classes, &top);
        for (ptrdiff_t j = 0; j < classes; j++)
            soft[s * classes + j] /= sum;
    }
    FP_NAME(fp_layered_forward)(m, n, records);
    FP_NAME(fp_layered_backward)(m, n, labels, soft, m->pulled);
    FP_NAME(fp_layered_collect)(m, n);
    double value = 0.0;
    for (int l = 0; l < m->layers; l++) { /* V = 2 (g - target), and its transpose */
        const ptrdiff_t in = m->width[l] + 1, out = m->width[l + 1];
        const ptrdiff_t row = fp_padded_width(in), column = fp_padded_width(out);
        for (ptrdiff_t j = 0; j < out; j++, target += in) {
            double *apart = m->direction_rows[l] + j * row;
            for (ptrdiff_t i = 0; i < in; i++)
                apart[i] = m->gradient[l][j * row + i] / (double)n - target[i];
            FP_NAME(fp_zero)(apart + in, row - in);
            value += FP_NAME(fp_square_sum)(row, apart);
            for (ptrdiff_t i = 0; i < in; i++)
                apart[i] *= 2.0;
        }
        for (ptrdiff_t i = 0; i < in; i++) {
            for (ptrdiff_t j = 0; j < out; j++)
                m->direction_columns[l][i * column + j] = m->direction_rows[l][j * row + i];
            FP_NAME(fp_zero)(m->direction_columns[l] + i * column + out, column - out);
        }
    }
    for (int l = 0; l <= last; l++) { /* tangents upward */
        const ptrdiff_t in = m->width[l], out = m->width[l + 1];
        const ptrdiff_t row = fp_padded_width(in + 1), column = fp_padded_width(out), below = fp_padded_width(in);
        FP_NAME(fp_zero)(m->tangents[l], n * column);
        FP_NAME(fp_add_product)(n, in + 1, column, m->inputs[l], row, 1, m->direction_columns[l], column,
                                m->tangents[l], column);
        if (l > 0) {
            for (ptrdiff_t s = 0; s < n; s++)
                for (ptrdiff_t i = 0; i < in; i++)
                    m->input_tangents[l][s * row + i] = m->slope[l - 1][s * below + i]
                                                        * m->tangents[l - 1][s * below + i];
            FP_NAME(fp_add_product)(n, in, column, m->input_tangents[l], row, 1, m->columns[l], column, m->tangents[l],
                                    column);
        }
    }
    const ptrdiff_t row = fp_padded_width(classes);
    for (ptrdiff_t s = 0; s < n; s++) { /* adjoint of the logits: p (z. - p' z.) */
        const double *t = m->tangents[last] + s * row;
        double *b = m->adjoint + s * row, mean = 0.0, soft_mean = 0.0;
        const double sum = FP_NAME(fp_exponentials)(classes, m->outputs[last] + s * row, b, &top);
        for (ptrdiff_t j = 0; j < classes; j++) {
            b[j] /= sum;
            mean += b[j] * t[j];
        }
        for (ptrdiff_t j = 0; j < classes; j++)
            b[j] *= t[j] - mean;
        if (!soft)
            continue;
        const double *y = soft + s * classes; /* the derivative by y is -t / n */
        for (ptrdiff_t j = 0; j < classes; j++)
            soft_mean += y[j] * t[j];
        for (ptrdiff_t j = 0; j < classes; j++)
            by_logits[s * classes + j] = y[j] * (soft_mean - t[j]) / (double)n;
    }
    for (int l = last; l >= 0; l--) { /* adjoints downward */
        const ptrdiff_t in = m->width[l], out = m->width[l + 1], wide = fp_padded_width(in + 1);
        const ptrdiff_t slope_row = fp_padded_width(in);
        FP_NAME(fp_zero)(m->below, n * wide);
        FP_NAME(fp_add_product)(n, out, wide, m->errors[l], fp_padded_width(out + 1), 1, m->direction_rows[l], wide,
                                m->below, wide);
        FP_NAME(fp_add_product)(n, out, wide, m->adjoint, fp_padded_width(out), 1, m->rows[l], wide, m->below, wide);
        for (ptrdiff_t s = 0; s < n; s++) {
            const double *d = m->below + s * wide;
            if (l == 0) {
                for (ptrdiff_t i = 0; i < in; i++)
                    by_records[s * in + i] = d[i] / (double)n;
                continue;
            }
            const ptrdiff_t start = s * slope_row;
            for (ptrdiff_t i = 0; i < in; i++)
                m->adjoint[start + i] = m->slope[l - 1][start + i] * d[i]
                                        + m->curvature[l - 1][start + i] * m->tangents[l - 1][start + i]
                                              * m->pulled[l][s * wide + i];
        }
    }
    return value;
}
