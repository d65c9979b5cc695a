/* Quantities of one channel for the generalised ufuncs: value, lower and upper bound; NaN for rows or a prior that are no
 * probabilities. No include guard. `prior` is NULL for the uniform one; the cells, which are doubles, may be changed. */
/* bounds: proved - sums of columns in which q is below 1e-300 change an information or a chance by at most 1e-290 m */

/* The largest gap of a row; -1 where a row is no distribution. */
static double FP_NAME(fp_channel_valid_gap)(ptrdiff_t n, ptrdiff_t m, const double *cells, double *gaps)
{
    double largest = 0.0;
    FP_NAME(fp_channel_row_gaps)(n, m, cells, gaps);
    for (ptrdiff_t d = 0; d < n; d++) {
        if (!(gaps[d] >= 0.0 && gaps[d] <= FP_SUM_TOLERANCE))
            return -1.0;
        largest = gaps[d] > largest ? gaps[d] : largest;
    }
    return largest;
}

/* Brackets of the wanted quantities; returns whether the channel and the prior are valid. */
static int FP_NAME(fp_channel_brackets)(ptrdiff_t n, ptrdiff_t m, double *cells, const double *prior, int wanted,
                                        double *workspace, double *out)
{
    double *gaps = workspace + fp_channel_workspace(n, m), *uniform = gaps + n, prior_gap = 0.0;
    const double gap = FP_NAME(fp_channel_valid_gap)(n, m, cells, gaps);
    for (ptrdiff_t d = 0; d < n; d++)
        uniform[d] = 1.0 / (double)n;
    if (prior)
        prior_gap = fp_prior_gap(FP_NAME(fp_channel_row_gaps), n, prior);
    if (gap < 0.0 || !(prior_gap >= 0.0 && prior_gap <= FP_SUM_TOLERANCE))
        return 0;
    const double *weight = prior ? prior : uniform;
    if (!FP_NAME(fp_channel_quantities_of_cells)(n, m, cells, 0, weight, gap, prior_gap, wanted, workspace, out))
        return 1;
    for (ptrdiff_t w = 0; w < m; w++) { /* leave out the columns that would have to be scaled */
        double q = 0.0;
        for (ptrdiff_t d = 0; d < n; d++)
            q += weight[d] * cells[d * m + w];
        if (q < 2.0 * FP_TINY_COLUMN)
            for (ptrdiff_t d = 0; d < n; d++)
                cells[d * m + w] = 0.0;
    }
    FP_NAME(fp_channel_quantities_of_cells)(n, m, cells, 0, weight, gap, prior_gap, wanted, workspace, out);
    for (int k = 0; k < FP_CHANNEL_QUANTITIES; k++) {
        out[3 * k + 1] -= 1e-290 * (double)m;
        out[3 * k + 1] = out[3 * k + 1] > 0.0 ? out[3 * k + 1] : 0.0;
        out[3 * k + 2] += 1e-290 * (double)m;
    }
    return 1;
}

#define FP_CHANNEL_UFUNC(stem, quantity)                                                                               \
    static void FP_NAME(stem)(ptrdiff_t n, ptrdiff_t m, double *cells, const double *prior, double *workspace,         \
                              double *out)                                                                             \
    {                                                                                                                  \
        double all[3 * FP_CHANNEL_QUANTITIES];                                                                         \
        const int valid = FP_NAME(fp_channel_brackets)(n, m, cells, prior, 1 << (quantity), workspace, all);           \
        for (int k = 0; k < 3; k++)                                                                                    \
            out[k] = valid ? all[3 * (quantity) + k] : NAN;                                                            \
    }

FP_CHANNEL_UFUNC(channel_ldp_epsilon, FP_LDP_EPSILON)
FP_CHANNEL_UFUNC(channel_maximal_leakage, FP_MAXIMAL_LEAKAGE)
FP_CHANNEL_UFUNC(channel_mutual_information, FP_CD_LMIP)
FP_CHANNEL_UFUNC(channel_bayes_vulnerability, FP_BAYES_VULNERABILITY)

/* Small channels are solved; the capacity of others lies between the information under the uniform input distribution and
 * the largest divergence of a row from the output distribution that it gives. */
static void FP_NAME(channel_capacity)(ptrdiff_t n, ptrdiff_t m, double *cells, const double *prior, double *workspace,
                                      double *out)
{
    double all[3 * FP_CHANNEL_QUANTITIES], numbers[5];
    (void)prior;
    out[0] = out[1] = out[2] = NAN;
    if (n <= FP_CAPACITY_SIZE && m <= FP_CAPACITY_SIZE) {
        double *gaps = workspace, *input = gaps + n, *output = input + n, *divergence = output + m;
        if (FP_NAME(fp_channel_valid_gap)(n, m, cells, gaps) >= 0.0) {
            fp_capacity_of_small(FP_NAME(fp_capacity_solve), 1, (int)n, (int)m, cells, gaps, FP_UFUNC_RTOL,
                                 FP_UFUNC_STEPS, numbers, input, output, divergence);
            memcpy(out, numbers, 3 * sizeof *out);
        }
    } else if (FP_NAME(fp_channel_brackets)(n, m, cells, NULL, FP_NEEDS_ROWS, workspace, all)) {
        out[0] = all[3 * FP_CD_LMIP];
        out[1] = all[3 * FP_CD_LMIP + 1];
        out[2] = all[3 * FP_POINTWISE_LMIP + 2];
    }
}

#undef FP_CHANNEL_UFUNC
