/* Long intervals in dimension 1; included once per instruction set. Far from the ends of a long interval the best
 * output density is flat, and so is that of a lattice of step FP_AWGN_LATTICE_STEP with equal weights, but for a
 * ripple of 1e-23. For R = R' + k step, R' near FP_AWGN_SHORT_INTERVAL, the best weights are sought on [-R', R']
 * among inputs that are such a lattice on [-FP_AWGN_LATTICE_EXTENT, FP_AWGN_LATTICE_EXTENT], keep the points of the
 * best input near the edge, and are free on a fine grid between. Inserting 2k more lattice points of weight w each
 * in the middle of that input multiplies all of it by 1/M, M = 1 + 2 k w, and changes the output density nowhere
 * else except further than 10 standard deviations from the window of any radius, by less than 1e-22. Every i grows
 * by log M, hence log M + (I + 2 k w i(0)) / M <= C(R) <= log M + max i. */
/* bounds: tested by enclosures/test_awgn_capacity - rounding where lattice points are inserted (4e-15); the rest
 * steers the solver */

/* The best weights of `in`, whose first `lattice_count` spheres share one lattice weight; returns I. */
static double FP_NAME(fp_awgn_lattice_weights)(fp_awgn *a, FP_NAME(fp_awgn_input) * in, int lattice_count,
                                               double tolerance)
{
    const int n = a->padded, m = in->count - lattice_count + 1;
    double p[FP_AWGN_SPHERES], share[FP_AWGN_SPHERES], gauss[FP_AWGN_SPHERES];
    FP_NAME(fp_awgn_tabulate)(a, in->radius, in->count, 0);
    double *restrict first = a->table;
    gauss[0] = 0.0;
    for (int j = 0; j < lattice_count; j++) { /* the lattice becomes the first row of the table */
        share[j] = (in->radius[j] == 0.0 ? 1.0 : 2.0) / (2 * lattice_count - 1);
        gauss[0] += share[j] * fp_awgn_gaussian_term(a, in->radius[j]);
        const double *restrict row = a->table + (size_t)j * n;
        for (int k = 0; k < n; k++)
            first[k] = j ? first[k] + share[j] * row[k] : share[j] * row[k];
    }
    for (int j = lattice_count; j < in->count; j++) {
        memmove(a->table + (size_t)(j - lattice_count + 1) * n, a->table + (size_t)j * n, n * sizeof *a->table);
        gauss[j - lattice_count + 1] = fp_awgn_gaussian_term(a, in->radius[j]);
    }
    const double information = FP_NAME(fp_awgn_weights)(a, gauss, m, p, tolerance);
    for (int j = 0; j < lattice_count; j++)
        in->weight[j] = p[0] * share[j];
    for (int j = lattice_count; j < in->count; j++)
        in->weight[j] = p[j - lattice_count + 1];
    return information;
}

/* C(1, R) for large R. out is the solution for R' with its input, extended in value, lower, upper and slope; *extra
 * is k. */
static int FP_NAME(fp_awgn_interval)(double radius, double rtol, fp_awgn_result *out, long *extra)
{
    const double step = FP_AWGN_LATTICE_STEP;
    const long k = (long)floor((radius - FP_AWGN_SHORT_INTERVAL) / step);
    const int lattice_count = (int)(FP_AWGN_LATTICE_EXTENT / step) + 1;
    const double lattice_end = FP_AWGN_SHORT_INTERVAL - FP_AWGN_EDGE_WIDTH;
    fp_awgn a;
    FP_NAME(fp_awgn_input) *in = malloc(sizeof *in);
    FP_NAME(fp_awgn_maxima) *found = malloc(sizeof *found);
    FP_NAME(fp_awgn_init)(&a, 1.0, radius - k * step, rtol);
    FP_NAME(fp_awgn_choose_step)(&a, 2.6);
    *extra = k;
    out->status = FP_AWGN_MEMORY;
    if (!in || !found || !FP_NAME(fp_awgn_grid)(&a, FP_AWGN_SPHERES))
        goto done;
    FP_NAME(fp_awgn_maximise_prepare)(&a);
    FP_NAME(fp_awgn_solve)(1.0, a.radius, 1e-9, NULL, out);
    in->count = 0;
    for (double r = 0.0; r < lattice_end; r += in->count < lattice_count ? step : FP_AWGN_SPACING)
        in->radius[in->count++] = r;
    for (int j = 0; j < out->count; j++)
        if (out->radius[j] >= lattice_end)
            in->radius[in->count++] = out->radius[j];
    out->lower = 0.0;
    out->upper = INFINITY;
    double gap = INFINITY, middle = 0.0;
    for (int round = 0; round < 12 && gap > 0.5 * rtol; round++) {
        const double information = FP_NAME(fp_awgn_lattice_weights)(&a, in, lattice_count, 1e-13);
        FP_NAME(fp_awgn_maximise)(&a, 2.5, 0.02 * rtol * information, found);
        const double now = (found->peak - information) / information;
        const double width = out->upper - out->lower;
        FP_NAME(fp_awgn_certify)(&a, in, out, found);
        if (out->upper - out->lower < width) { /* i at 0, with the errors of the search */
            double gauss = fp_awgn_gaussian_term(&a, 0.0), value;
            FP_NAME(fp_awgn_values)(&a, &gauss, 1, &value);
            middle = value - (found->bound - found->peak);
        }
        if (!(now < 0.7 * gap))
            break;
        gap = now;
        int count = lattice_count; /* drop unused points, add the local maxima beyond the lattice */
        for (int j = lattice_count; j < in->count; j++)
            if (in->weight[j] > 1e-13 || in->radius[j] == a.radius) {
                in->radius[count] = in->radius[j];
                in->weight[count++] = in->weight[j];
            }
        in->count = count;
        for (int f = 0; f < found->count && in->count < FP_AWGN_SPHERES; f++) {
            int known = found->maximum[f] < lattice_count * step;
            for (int j = lattice_count; j < count; j++)
                known |= fabs(in->radius[j] - found->maximum[f]) < 1e-5;
            if (!known) {
                in->radius[in->count] = found->maximum[f];
                in->weight[in->count++] = 1e-9;
            }
        }
        FP_NAME(fp_awgn_merge_spheres)(in, a.radius, 0.0);
    }
    if (!(out->upper < INFINITY)) {
        out->status = FP_AWGN_TOO_WIDE;
        goto done;
    }
    const double w = out->weight[0], mass = 1.0 + 2.0 * k * w, shift = log(mass), slack = 4e-15 * (1.0 + shift);
    out->value = shift + out->value + (1.0 - 1.0 / mass) * (middle - out->value);
    out->lower = shift + out->lower + (1.0 - 1.0 / mass) * (middle - out->lower) - slack;
    out->upper += shift + slack;
    out->slope /= mass;
    out->status = out->upper - out->lower <= rtol * out->lower ? FP_AWGN_DONE : FP_AWGN_TOO_WIDE;
done:
    free(in);
    free(found);
    free(a.memory);
    out->evaluations = a.evaluations;
    return out->status;
}
