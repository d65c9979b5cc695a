/* The maximum of i(r) over a range of radii, with a bound; included once per instruction set. */
/* bounds: proved - docs/proofs/awgn.md, theorem 6.9: rounding of the series (3.5e-13 of the largest difference of two
 * values, and what the degrees amplify) and of the bound (3e-15); the rest steers the search */

/* Middle and half-width of a cell. The first cell is what lies below r_low if r_low exceeds the least radius; the
 * others divide the rest. */
static inline double FP_NAME(fp_awgn_cell)(const fp_awgn *a, int cell, double *half)
{
    const int margin = a->scan_start > a->least_radius;
    if (cell < margin) {
        *half = 0.5 * (a->scan_start - a->least_radius);
        return a->least_radius + *half;
    }
    *half = 0.5 * (a->radius - a->scan_start) / (a->cells - margin);
    return a->scan_start + (2 * (cell - margin) + 1) * *half;
}

/* The Chebyshev nodes of every cell, and the weights of their windows, kept for all inputs on this grid. */
static void FP_NAME(fp_awgn_maximise_prepare)(fp_awgn *a)
{
    double *x = a->line[0], *relative = a->line[1], *slope = a->line[2];
    for (int cell = 0; cell < a->cells; cell++) {
        double half;
        const double middle = FP_NAME(fp_awgn_cell)(a, cell, &half);
        for (int j = 0; j < FP_AWGN_CHEBYSHEV; j++) {
            const int at = cell * FP_AWGN_CHEBYSHEV + j;
            const double r = middle + half * fp_awgn_cosine[1][j];
            const double centre = fp_awgn_output_centre(a, r), origin = fp_awgn_node_index(a, a->rho[0]);
            int first = (int)(fp_awgn_node_index(a, centre - a->window) - origin);
            int end = (int)(fp_awgn_node_index(a, centre + a->window) - origin) + 1;
            first = first < 0 ? 0 : first;
            end = end > a->nodes ? a->nodes : end;
            if (end - first > a->cell_stride)
                end = first + a->cell_stride;
            double *weight = a->cell_weight + (size_t)at * a->cell_stride;
            FP_NAME(fp_awgn_row)(a, r, a->rho + first, end - first, x, weight, relative, slope);
            for (int k = 0; k < end - first; k++)
                weight[k] = fp_exp(weight[k] + a->log_measure[first + k]);
            a->cell_r[at] = r;
            a->cell_first[at] = first;
            a->cell_count[at] = end - first;
            const int mid = (int)(fp_awgn_node_index(a, centre) - origin) - first;
            a->cell_mid[at] = mid < 0 ? 0 : mid < end - first ? mid : end - first - 1;
        }
    }
}

/* p, p', p'' of a Chebyshev series at u in [-1, 1] */
static inline void FP_NAME(fp_awgn_chebyshev)(const double *c, double u, double *value, double *slope, double *bend)
{
    double t0 = 1.0, t1 = u, d0 = 0.0, d1 = 1.0, e0 = 0.0, e1 = 0.0;
    double p = c[0] + c[1] * u, dp = c[1], ep = 0.0;
    for (int j = 2; j < FP_AWGN_CHEBYSHEV; j++) {
        const double t = 2.0 * u * t1 - t0, d = 2.0 * (t1 + u * d1) - d0, e = 2.0 * (2.0 * d1 + u * e1) - e0;
        p += c[j] * t;
        dp += c[j] * d;
        ep += c[j] * e;
        t0 = t1, t1 = t, d0 = d1, d1 = d, e0 = e1, e1 = e;
    }
    *value = p, *slope = dp, *bend = ep;
}

typedef struct {
    double peak, at, bound; /* largest value found, where, and a bound of all values */
    int count;              /* local maxima */
    double maximum[FP_AWGN_SPHERES], value[FP_AWGN_SPHERES];
} FP_NAME(fp_awgn_maxima);

/* Maximum of two; NaN propagates. */
static inline double FP_NAME(fp_awgn_max)(double a, double b) { return (a >= b) | (a != a) ? a : b; }

/* Raise *bound to cover p on [u - half, u + half] by branch and bound; third bounds |p'''|, *budget limits the work. */
static void FP_NAME(fp_awgn_branch_and_bound)(const double *c, double u, double half, double third, double slack,
                                              double peak, int *budget, double *bound)
{
    double value, slope, bend;
    FP_NAME(fp_awgn_chebyshev)(c, u, &value, &slope, &bend);
    double top = fabs(slope) * half + 0.5 * bend * half * half;
    if (bend < 0.0 && fabs(slope) < -bend * half)
        top = -0.5 * slope * slope / bend;
    top = value + (top > 0.0 ? top : 0.0) + third * half * half * half / 6.0;
    if (!(top > peak + slack) || --*budget < 0) {
        *bound = FP_NAME(fp_awgn_max)(*bound, top);
        return;
    }
    FP_NAME(fp_awgn_branch_and_bound)(c, u - 0.5 * half, 0.5 * half, third, slack, peak, budget, bound);
    FP_NAME(fp_awgn_branch_and_bound)(c, u + 0.5 * half, 0.5 * half, third, slack, peak, budget, bound);
}

/* The local maxima of one cell, from its Chebyshev series. */
static void FP_NAME(fp_awgn_local_maxima)(const fp_awgn *a, const double *c, int cell, FP_NAME(fp_awgn_maxima) *out)
{
    enum { SAMPLES = 32 };
    const int counts = cell > 0 || a->scan_start == a->least_radius; /* this cell counts towards the peak */
    double half, value, slope, bend, before = 0.0;
    const double middle = FP_NAME(fp_awgn_cell)(a, cell, &half);
    for (int k = 0; k <= SAMPLES; k++) {
        double u = 2.0 * k / SAMPLES - 1.0;
        FP_NAME(fp_awgn_chebyshev)(c, u, &value, &slope, &bend);
        const int first = k == 0 && cell == 0 && slope <= 0.0;
        const int last = k == SAMPLES && cell == a->cells - 1 && slope > 0.0;
        const double after = slope;
        int found = first || last;
        if (!found && k > 0 && before > 0.0 && slope <= 0.0) {
            double left = u - 2.0 / SAMPLES, right = u;
            found = 1;
            for (int step = 0; step < 40 && right - left > 1e-12; step++) {
                u = slope != 0.0 && bend < 0.0 && step > 0 ? u - slope / bend : 0.5 * (left + right);
                u = u > left && u < right ? u : 0.5 * (left + right);
                FP_NAME(fp_awgn_chebyshev)(c, u, &value, &slope, &bend);
                if (fabs(slope) < 1e-15)
                    break;
                *(slope > 0.0 ? &left : &right) = u;
            }
        }
        before = after;
        if (found && counts && value > out->peak) {
            out->peak = value;
            out->at = first ? a->least_radius : last ? a->radius : middle + half * u;
        }
        if (found && middle + half * u > a->edge - FP_AWGN_RAMP_REACH - 1.0 && out->count < FP_AWGN_SPHERES) {
            out->maximum[out->count] = first ? a->least_radius : last ? a->radius : middle + half * u;
            out->value[out->count++] = value;
        }
        if (counts && value > out->peak) {
            out->peak = value;
            out->at = middle + half * u;
        }
    }
}

/* Maximise i over [r_low, R] for the l of the grid. `slack` is the allowed excess of the bound; `variance` bounds V
 * for the error terms. */
static void FP_NAME(fp_awgn_maximise)(fp_awgn *a, double variance, double slack, FP_NAME(fp_awgn_maxima) *out)
{
    const int n = FP_AWGN_CHEBYSHEV;
    const int margin = a->scan_start > a->least_radius;
    const double rho = a->rho[a->nodes - 1];
    double half;
    FP_NAME(fp_awgn_cell)(a, a->cells - 1, &half);
    double lowest = INFINITY, highest = -INFINITY, error = 0.0, series[FP_AWGN_CHEBYSHEV];
    out->count = 0;
    out->peak = out->bound = -INFINITY;
    out->at = a->radius;
    for (int k = 0; k < a->nodes; k++) { /* k(rho) but for a constant */
        const double k_value = 0.5 * a->shrink * a->rho[k] * a->rho[k] - a->l[k];
        lowest = k_value < lowest ? k_value : lowest;
        highest = k_value > highest ? k_value : highest;
    }
    for (int at = 0; at < a->cells * n; at++) {
        const int first = a->cell_first[at], count = a->cell_count[at];
        const double *l = a->l + first;
        double size, spread = 0.0;
        const int mid = a->cell_mid[at];
        a->cell_value[at] = fp_awgn_gaussian_term(a, a->cell_r[at]) + a->level
            - FP_NAME(fp_awgn_mean)(a->cell_weight + (size_t)at * a->cell_stride, l, count, mid, &size);
        for (int k = 0; k < count; k++)
            spread = fabs(l[k] - l[mid]) > spread ? fabs(l[k] - l[mid]) : spread;
        const double here = FP_NAME(fp_awgn_error)(a, a->cell_r[at], a->cell_value[at], variance, spread, size,
                                                   a->rho[first + count - 1]);
        error = here > error && at >= margin * n ? here : error;
    }
    /* the ellipse of height y: the remainder of interpolation at n nodes is at most 4 M q^(1-n) / (q - 1); off the
     * nodes k' = rho - E T lies between -R and rho */
    const double y = half < 1.0 ? 5.0 : 7.0, q = y / half + sqrt(1.0 + y * y / (half * half));
    const double beyond = 0.5 * half * (q + 1.0 / q) - half + 4.0, steep = a->radius + rho;
    const double modulus = exp(0.5 * y * y) * (highest - lowest + beyond * (steep + beyond));
    const double remainder = 4.0 * modulus * pow(q, 1 - n) / (q - 1.0);
    for (int cell = 0; cell < a->cells; cell++) {
        const double *value = a->cell_value + cell * n;
        double third = 0.0, tilt = 0.0, rough = 0.0, range = 0.0;
        for (int j = 0; j < n; j++) {
            const double square = j * (double)j;
            double sum = 0.0;
            for (int k = 0; k < n; k++)
                sum += fp_awgn_cosine[j][k] * (value[k] - value[n / 2]);
            series[j] = sum * (j ? 2.0 : 1.0) / n;
            third += fabs(series[j]) * square * (square - 1.0) * (square - 4.0) / 15.0;
            tilt += fabs(series[j]) * square;
            rough += fabs(series[j]) * (100.0 + square * (40.0 + square * (13.0 + square)));
            range = FP_NAME(fp_awgn_max)(range, fabs(value[j] - value[n / 2]));
        }
        rough += 3.3 * tilt * (4.0 * a->radius / half + 14.0);
        series[0] += value[n / 2];
        FP_NAME(fp_awgn_local_maxima)(a, series, cell, out);
        if (cell < margin)
            continue;
        double bound = -INFINITY;
        int budget = 20000;
        FP_NAME(fp_awgn_branch_and_bound)(series, 0.0, 1.0, third, slack, out->peak, &budget, &bound);
        out->bound = FP_NAME(fp_awgn_max)(out->bound, bound + FP_U * rough + 3.5e-13 * range);
    }
    out->bound += 3.3 * error + remainder + 3e-15 * (a->full + fabs(out->bound));
}
