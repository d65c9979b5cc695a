/* The search of fp_bounded_lbfgs.h; no include guard, included once per instruction set. */

/* d = -H g over the free coordinates; `pairs` of them are kept in a ring, the latest before `next`. */
static void FP_NAME(fp_lbfgs_direction)(const fp_bounded_lbfgs *b, const double *free, const double *g, int pairs,
                                        int next, const double *s, const double *y, double *rho, double *alpha,
                                        double *restrict d)
{
    const ptrdiff_t n = b->n;
    double scale = 0.0;
    for (ptrdiff_t k = 0; k < n; k++)
        d[k] = -free[k] * g[k];
    for (int i = 1; i <= pairs; i++) {
        const int at = (next - i + b->memory) % b->memory;
        const double *restrict own = y + at * n;
        const double sy = FP_NAME(fp_row_masked_dot)(n, free, s + at * n, own);
        const double yy = FP_NAME(fp_row_masked_dot)(n, free, own, own);
        rho[at] = sy > FP_LBFGS_CURVATURE * yy ? 1.0 / sy : 0.0;
        if (!(rho[at] > 0.0))
            continue;
        scale = scale > 0.0 ? scale : sy / yy;
        alpha[at] = rho[at] * FP_NAME(fp_row_dot)(n, s + at * n, d);
        for (ptrdiff_t k = 0; k < n; k++)
            d[k] -= alpha[at] * free[k] * own[k];
    }
    for (ptrdiff_t k = 0; scale > 0.0 && k < n; k++)
        d[k] *= scale;
    for (int i = pairs; i >= 1; i--) {
        const int at = (next - i + b->memory) % b->memory;
        const double *restrict own = s + at * n;
        if (!(rho[at] > 0.0))
            continue;
        const double gap = alpha[at] - rho[at] * FP_NAME(fp_row_dot)(n, y + at * n, d);
        for (ptrdiff_t k = 0; k < n; k++)
            d[k] += gap * free[k] * own[k];
    }
}

static int FP_NAME(fp_bounded_lbfgs_run)(fp_bounded_lbfgs *b, fp_objective *objective, void *context, double *x,
                                         double *work, fp_stop_token *stop)
{
    const ptrdiff_t n = b->n;
    double *g = work, *d = g + n, *free = d + n, *moved = free + n, *slope = moved + n;
    double *s = slope + n, *y = s + b->memory * n, *rho = y + b->memory * n, *alpha = rho + b->memory;
    int pairs = 0, next = 0, stalled = 0, status = 0;
    for (ptrdiff_t k = 0; k < n; k++) {
        x[k] = x[k] > b->lower[k] ? x[k] : b->lower[k];
        x[k] = x[k] < b->upper[k] ? x[k] : b->upper[k];
    }
    b->evaluations = 1;
    b->value = objective(context, x, g, &status);
    while (!status && b->evaluations < b->most && b->value > b->solved && stalled < 2) {
        for (ptrdiff_t k = 0; k < n; k++)
            free[k] = (x[k] <= b->lower[k] && g[k] > 0.0) || (x[k] >= b->upper[k] && g[k] < 0.0) ? 0.0 : 1.0;
        FP_NAME(fp_lbfgs_direction)(b, free, g, pairs, next, s, y, rho, alpha, d);
        double promised = FP_NAME(fp_row_dot)(n, g, d), step = 1.0, value = INFINITY, gap = 0.0;
        if (pairs > 0 && !(promised < 0.0)) {
            pairs = 0;
            continue;
        }
        if (!(promised < 0.0)) /* a stationary point */
            break;
        if (pairs == 0) {
            const double length = sqrt(FP_NAME(fp_row_dot)(n, d, d));
            step = length > 1.0 ? 1.0 / length : 1.0;
        }
        for (int trial = 0; trial < FP_LBFGS_TRIALS && b->evaluations < b->most; trial++) {
            for (ptrdiff_t k = 0; k < n; k++) {
                const double to = x[k] + step * d[k], above = to > b->lower[k] ? to : b->lower[k];
                moved[k] = above < b->upper[k] ? above : b->upper[k];
            }
            gap = FP_NAME(fp_row_dot)(n, g, moved) - FP_NAME(fp_row_dot)(n, g, x);
            b->evaluations++;
            value = objective(context, moved, slope, &status);
            if (status || (status = fp_stop_requested(stop, 16 * n)))
                return status;
            if (value <= b->value + FP_LBFGS_DECREASE * gap && value < b->value)
                break;
            /* the lowest point of the parabola through both values and the slope, between a tenth and a half */
            const double bend = value - b->value - gap, least = -0.5 * gap / bend;
            step *= bend > 0.0 && least > 0.1 ? (least < 0.5 ? least : 0.5) : bend > 0.0 ? 0.1 : 0.5;
        }
        if (!(value < b->value)) {
            if (pairs == 0)
                break;
            pairs = 0; /* once more along the slope */
            continue;
        }
        for (ptrdiff_t k = 0; k < n; k++) {
            s[next * n + k] = moved[k] - x[k];
            y[next * n + k] = slope[k] - g[k];
        }
        next = (next + 1) % b->memory;
        pairs = pairs < b->memory ? pairs + 1 : pairs;
        memcpy(x, moved, (size_t)n * sizeof(double));
        memcpy(g, slope, (size_t)n * sizeof(double));
        stalled = b->value - value <= b->tolerance * fabs(value) ? stalled + 1 : 0;
        b->value = value;
    }
    return status;
}
