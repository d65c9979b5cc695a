/* Loops of fp_gradient_matching.h; no include guard, included once per instruction set. */

/* row += factor * other */
FP_INLINE void FP_NAME(fp_matching_add)(ptrdiff_t width, double factor, const double *restrict other,
                                        double *restrict row)
{
    for (ptrdiff_t d = 0; d < width; d++)
        row[d] += factor * other[d];
}

/* Probabilities p and errors e of all records, (S, C). */
static void FP_NAME(fp_matching_errors)(const fp_matching *m, const double *x, const double *labels, double *p,
                                        double *e)
{
    const ptrdiff_t classes = m->classes;
    for (ptrdiff_t i = 0; i < m->records; i++, p += classes, e += classes, labels += classes) {
        double most = -INFINITY, sum = 0.0, others = 0.0;
        ptrdiff_t top = 0;
        for (ptrdiff_t c = 0; c < classes; c++) {
            e[c] = FP_NAME(fp_row_dot)(m->width, x + i * m->width, m->weights + c * m->width);
            top = e[c] > most ? c : top;
            most = e[c] > most ? e[c] : most;
        }
        for (ptrdiff_t c = 0; c < classes; c++)
            p[c] = fp_exp(e[c] - most);
        for (ptrdiff_t c = 0; c < classes; c++)
            sum += p[c];
        for (ptrdiff_t c = 0; c < classes; c++)
            p[c] /= sum;
        for (ptrdiff_t c = 0; c < classes; c++)
            others += c == top ? 0.0 : p[c];
        for (ptrdiff_t c = 0; c < classes; c++)
            e[c] = p[c] * (1.0 - labels[c]) - labels[c] * (c == top ? others : 1.0 - p[c]);
    }
}

/* R (C, width) from records and errors; the sum of its squares. */
static double FP_NAME(fp_matching_residual)(const fp_matching *m, const double *x, const double *e, double *r)
{
    double sum = 0.0;
    for (ptrdiff_t c = 0; c < m->classes; c++) {
        double *row = r + c * m->width;
        for (ptrdiff_t d = 0; d < m->width; d++)
            row[d] = -m->target[c * m->width + d];
        for (ptrdiff_t i = 0; i < m->records; i++)
            FP_NAME(fp_matching_add)(m->width, m->shares[i] * e[i * m->classes + c], x + i * m->width, row);
        sum += FP_NAME(fp_row_dot)(m->width, row, row);
    }
    return sum;
}

/* Derivatives of the objective from p, e and R; those at the padding and at the intercept's 1 are 0. */
static void FP_NAME(fp_matching_derivatives)(const fp_matching *m, const double *x, const double *p, const double *e,
                                             const double *r, double *a, double *by_records, double *by_labels)
{
    const ptrdiff_t classes = m->classes, width = m->width;
    for (ptrdiff_t i = 0; i < m->records; i++, p += classes, e += classes) {
        const double twice = 2.0 * m->shares[i];
        double mean = 0.0;
        for (ptrdiff_t c = 0; c < classes; c++)
            a[c] = twice * FP_NAME(fp_row_dot)(width, r + c * width, x + i * width);
        for (ptrdiff_t c = 0; c < classes; c++)
            mean += p[c] * a[c];
        if (by_labels)
            for (ptrdiff_t c = 0; c < classes; c++)
                by_labels[i * classes + c] = -a[c];
        if (!by_records)
            continue;
        double *row = by_records + i * width;
        for (ptrdiff_t d = 0; d < width; d++)
            row[d] = 0.0;
        for (ptrdiff_t c = 0; c < classes; c++) {
            FP_NAME(fp_matching_add)(width, twice * e[c], r + c * width, row);
            FP_NAME(fp_matching_add)(width, p[c] * (a[c] - mean), m->weights + c * width, row);
        }
        for (ptrdiff_t d = m->features; d < width; d++)
            row[d] = 0.0;
    }
}

static double FP_NAME(fp_matching_value)(const fp_matching *m, const double *x, const double *labels, double *work,
                                         double *by_records, double *by_labels)
{
    const ptrdiff_t many = m->records * m->classes;
    double *p = work, *e = p + many, *r = e + many, *a = r + m->classes * m->width;
    FP_NAME(fp_matching_errors)(m, x, labels, p, e);
    const double value = FP_NAME(fp_matching_residual)(m, x, e, r);
    FP_NAME(fp_matching_derivatives)(m, x, p, e, r, a, by_records, by_labels);
    return value;
}
