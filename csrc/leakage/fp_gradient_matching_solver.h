/* Levenberg-Marquardt of fp_gradient_matching.h; no include guard, included once per instruction set. */

/* The upper half of J'J, shape (n, n), n = S D, from p and e; jacobian receives M_i (S, C, width), back M_i'e_j. */
static void FP_NAME(fp_matching_normal)(const fp_matching *m, const double *x, const double *p, const double *e,
                                        double *jacobian, double *back, double *normal)
{
    const ptrdiff_t records = m->records, classes = m->classes, features = m->features, width = m->width;
    const ptrdiff_t n = records * features;
    for (ptrdiff_t i = 0; i < records; i++) {
        const double *q = p + i * classes;
        double *mean = back + i * records * width, *rows = jacobian + i * classes * width;
        for (ptrdiff_t d = 0; d < width; d++)
            mean[d] = 0.0;
        for (ptrdiff_t c = 0; c < classes; c++)
            FP_NAME(fp_matching_add)(width, q[c], m->weights + c * width, mean);
        for (ptrdiff_t c = 0; c < classes; c++)
            for (ptrdiff_t d = 0; d < width; d++)
                rows[c * width + d] = d < features ? q[c] * (m->weights[c * width + d] - mean[d]) : 0.0;
        for (ptrdiff_t j = 0; j < records; j++) {
            double *row = back + (i * records + j) * width;
            for (ptrdiff_t d = 0; d < width; d++)
                row[d] = 0.0;
            for (ptrdiff_t c = 0; c < classes; c++)
                FP_NAME(fp_matching_add)(width, e[j * classes + c], rows + c * width, row);
        }
    }
    for (ptrdiff_t i = 0; i < records; i++)
        for (ptrdiff_t j = i; j < records; j++) {
            const double *left = jacobian + i * classes * width, *right = jacobian + j * classes * width;
            const double *xi = x + i * width, *xj = x + j * width;
            const double *ij = back + (i * records + j) * width, *ji = back + (j * records + i) * width;
            const double share = m->shares[i] * m->shares[j], product = share * FP_NAME(fp_row_dot)(width, xi, xj);
            double errors = 0.0;
            for (ptrdiff_t c = 0; c < classes; c++)
                errors += e[i * classes + c] * e[j * classes + c];
            for (ptrdiff_t d = 0; d < features; d++) {
                double *row = normal + (i * features + d) * n + j * features;
                for (ptrdiff_t f = 0; f < features; f++)
                    row[f] = share * (ij[d] * xi[f] + xj[d] * ji[f]);
                row[d] += share * errors;
                for (ptrdiff_t c = 0; c < classes; c++)
                    FP_NAME(fp_matching_add)(features, product * left[c * width + d], right + c * width, row);
            }
        }
}

/* Solve (A + shift I) s = b by Cholesky's method, A by its upper half; upper receives the factor, b the solution. 0 if
 * a pivot is not positive. */
static int FP_NAME(fp_matching_solve)(ptrdiff_t n, const double *a, double shift, double *restrict upper, double *b)
{
    memcpy(upper, a, (size_t)(n * n) * sizeof(double));
    for (ptrdiff_t k = 0; k < n; k++) {
        double *pivot = upper + k * n;
        const double square = pivot[k] + shift;
        if (!(square > 0.0))
            return 0;
        const double root = sqrt(square), inverse = 1.0 / root;
        pivot[k] = root;
        for (ptrdiff_t j = k + 1; j < n; j++)
            pivot[j] *= inverse;
        for (ptrdiff_t i = k + 1; i < n; i++)
            FP_NAME(fp_matching_add)(n - i, -pivot[i], pivot + i, upper + i * n + i);
        b[k] *= inverse;
        FP_NAME(fp_matching_add)(n - k - 1, -b[k], pivot + k + 1, b + k + 1);
    }
    for (ptrdiff_t k = n - 1; k >= 0; k--) {
        double rest = b[k];
        for (ptrdiff_t j = k + 1; j < n; j++)
            rest -= upper[k * n + j] * b[j];
        b[k] = rest / upper[k * n + k];
    }
    return 1;
}

/* ridge |x - centre|^2 */
static double FP_NAME(fp_matching_penalty)(const fp_matching *m, const double *x, const fp_matching_descent *descent)
{
    double sum = 0.0;
    for (ptrdiff_t i = 0; descent->ridge > 0.0 && i < m->records; i++)
        for (ptrdiff_t d = 0; d < m->features; d++) {
            const double gap = x[i * m->width + d] - descent->centre[d];
            sum += gap * gap;
        }
    return descent->ridge * sum;
}

static int FP_NAME(fp_matching_descend)(const fp_matching *m, const double *labels, double *x, double *work,
                                        fp_matching_descent *descent, fp_stop_token *stop)
{
    const ptrdiff_t records = m->records, features = m->features, width = m->width, many = records * m->classes;
    const ptrdiff_t n = records * features, rows = records * width, half = fp_matching_work(m);
    double *state = work, *trial = work + half, *jacobian = work + 2 * half;
    double *normal = jacobian + m->classes * rows, *upper = normal + n * n, *moved = upper + n * n;
    double *slope = moved + rows, *back = slope + rows, *step = back + records * rows;
    double damping = FP_MATCHING_FIRST_DAMPING;
    descent->steps = 0;
    FP_NAME(fp_matching_errors)(m, x, labels, state, state + many);
    double value = FP_NAME(fp_matching_residual)(m, x, state + many, state + 2 * many);
    value += FP_NAME(fp_matching_penalty)(m, x, descent);
    while (descent->steps < descent->most && value > descent->tolerance) {
        FP_NAME(fp_matching_derivatives)(m, x, state, state + many, state + 2 * many,
                                         state + 2 * many + m->classes * width, slope, NULL);
        FP_NAME(fp_matching_normal)(m, x, state, state + many, jacobian, back, normal);
        double largest = 0.0, next = value;
        for (ptrdiff_t k = 0; k < n; k++) {
            normal[k * n + k] += descent->ridge;
            largest = normal[k * n + k] > largest ? normal[k * n + k] : largest;
        }
        for (; damping <= FP_MATCHING_MOST_DAMPING; damping *= FP_MATCHING_RISES) {
            if (fp_stop_requested(stop, n * n * n / 16 + n * n * m->classes / 8 + 1))
                return stop->status;
            for (ptrdiff_t i = 0; i < records; i++)
                for (ptrdiff_t d = 0; d < features; d++)
                    step[i * features + d] = -0.5 * slope[i * width + d]
                        - descent->ridge * (x[i * width + d] - descent->centre[d]);
            if (!FP_NAME(fp_matching_solve)(n, normal, damping * largest, upper, step))
                continue;
            memcpy(moved, x, (size_t)rows * sizeof(double));
            for (ptrdiff_t i = 0; i < records; i++)
                for (ptrdiff_t d = 0; d < features; d++)
                    moved[i * width + d] += step[i * features + d];
            FP_NAME(fp_matching_errors)(m, moved, labels, trial, trial + many);
            next = FP_NAME(fp_matching_residual)(m, moved, trial + many, trial + 2 * many);
            next += FP_NAME(fp_matching_penalty)(m, moved, descent);
            if (next < value)
                break;
        }
        if (!(next < value))
            break;
        memcpy(x, moved, (size_t)rows * sizeof(double));
        double *kept = state;
        state = trial;
        trial = kept;
        descent->steps++;
        damping *= FP_MATCHING_FALLS;
        damping = damping > FP_MATCHING_LEAST_DAMPING ? damping : FP_MATCHING_LEAST_DAMPING;
        const double gain = value - next;
        value = next;
        if (gain <= FP_MATCHING_LEAST_GAIN * value)
            break;
    }
    descent->value = value;
    return 0;
}
