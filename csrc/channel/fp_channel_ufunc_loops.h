/* Quantities of channels for the generalised ufuncs: value, lower and upper bound; NaN for rows or a prior that are no
 * probabilities. No include guard. A prior is NULL for the uniform one; the cells, which are doubles, may be changed. */
/* bounds: proved - sums of columns in which q is below 1e-300 change an information or a chance by at most 1e-290 m */

/* The largest of n gaps of rows; -1 where a row is no distribution. */
static double FP_NAME(fp_channel_largest_gap)(ptrdiff_t n, const double *gaps)
{
    double largest = 0.0;
    for (ptrdiff_t d = 0; d < n; d++) {
        if (!(gaps[d] >= 0.0 && gaps[d] <= FP_SUM_TOLERANCE))
            return -1.0;
        largest = gaps[d] > largest ? gaps[d] : largest;
    }
    return largest;
}

static double FP_NAME(fp_channel_valid_gap)(ptrdiff_t n, ptrdiff_t m, const double *cells, double *gaps)
{
    FP_NAME(fp_channel_row_gaps)(n, m, cells, gaps);
    return FP_NAME(fp_channel_largest_gap)(n, gaps);
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
    static void FP_NAME(stem)(ptrdiff_t count, ptrdiff_t n, ptrdiff_t m, double *cells, const double *priors,          \
                              double *workspace, double *out)                                                          \
    {                                                                                                                  \
        for (ptrdiff_t k = 0; k < count; k++) {                                                                        \
            double all[3 * FP_CHANNEL_QUANTITIES];                                                                     \
            const double *prior = priors ? priors + k * n : NULL;                                                      \
            const int valid                                                                                            \
                = FP_NAME(fp_channel_brackets)(n, m, cells + k * n * m, prior, 1 << (quantity), workspace, all);       \
            for (int x = 0; x < 3; x++)                                                                                \
                out[3 * k + x] = valid ? all[3 * (quantity) + x] : NAN;                                                \
        }                                                                                                              \
    }

FP_CHANNEL_UFUNC(channel_ldp_epsilon, FP_LDP_EPSILON)
FP_CHANNEL_UFUNC(channel_maximal_leakage, FP_MAXIMAL_LEAKAGE)
FP_CHANNEL_UFUNC(channel_information_one_by_one, FP_CD_LMIP)
FP_CHANNEL_UFUNC(channel_bayes_vulnerability, FP_BAYES_VULNERABILITY)

/* Mutual information: of small channels side by side, but for those in which a column has to be scaled. */
static void FP_NAME(channel_mutual_information)(ptrdiff_t count, ptrdiff_t n, ptrdiff_t m, double *cells,
                                                const double *priors, double *workspace, double *out)
{
    if (n * m > FP_SIDE_BY_SIDE_CELLS) {
        FP_NAME(channel_information_one_by_one)(count, n, m, cells, priors, workspace, out);
        return;
    }
    double *gaps = workspace + fp_channel_workspace(n, m) + 2 * n, numbers[6 * FP_UFUNC_CHANNELS];
    double row_gap[FP_UFUNC_CHANNELS] = {0.0}, prior_gap[FP_UFUNC_CHANNELS];
    signed char scaled[FP_UFUNC_CHANNELS];
    FP_NAME(fp_channel_row_gaps)(count * n, m, cells, gaps);
    fp_prior_gaps(FP_NAME(fp_channel_row_gaps), count, n, priors, prior_gap);
    for (ptrdiff_t k = 0; k < count; k++)
        row_gap[k] = FP_NAME(fp_channel_largest_gap)(n, gaps + k * n);
    FP_NAME(fp_channels_side_by_side)(n, m, count, (const char *)cells, n * m * (ptrdiff_t)sizeof *cells, 0, NULL,
                                      row_gap, priors, NULL, prior_gap, numbers, 6, scaled);
    for (ptrdiff_t k = 0; k < count; k++) {
        const int valid = row_gap[k] >= 0.0 && prior_gap[k] >= 0.0 && prior_gap[k] <= FP_SUM_TOLERANCE;
        for (int x = 0; x < 3; x++)
            out[3 * k + x] = valid ? numbers[6 * k + x] : NAN;
        if (valid && scaled[k])
            FP_NAME(channel_information_one_by_one)(1, n, m, cells + k * n * m, priors + k * n, workspace, out + 3 * k);
    }
}

/* The capacity of small channels, solved side by side; that of others lies between the information under the uniform
 * input distribution and the largest divergence of a row from the output distribution that it gives. */
static void FP_NAME(channel_capacity)(ptrdiff_t count, ptrdiff_t n, ptrdiff_t m, double *cells, const double *priors,
                                      double *workspace, double *out)
{
    (void)priors;
    if (n <= FP_CAPACITY_SIZE && m <= FP_CAPACITY_SIZE) {
        double *gaps = workspace, *input = gaps + count * n, *output = input + count * n;
        double *divergence = output + count * m, *numbers = divergence + count * n;
        for (ptrdiff_t k = 0; k < count; k++) {
            const int valid = FP_NAME(fp_channel_valid_gap)(n, m, cells + k * n * m, gaps + k * n) >= 0.0;
            out[3 * k] = valid ? 0.0 : NAN;
            for (ptrdiff_t i = 0; !valid && i < n * m; i++)
                cells[k * n * m + i] = 1.0 / (double)m;
            for (ptrdiff_t d = 0; !valid && d < n; d++)
                gaps[k * n + d] = 0.0;
        }
        fp_capacity_of_small(FP_NAME(fp_capacity_solve), count, (int)n, (int)m, cells, gaps, FP_UFUNC_RTOL,
                             FP_UFUNC_STEPS, numbers, input, output, divergence);
        for (ptrdiff_t k = 0; k < count; k++)
            for (int x = 0, valid = out[3 * k] == 0.0; x < 3; x++)
                out[3 * k + x] = valid ? numbers[5 * k + x] : NAN;
        return;
    }
    for (ptrdiff_t k = 0; k < count; k++) {
        double all[3 * FP_CHANNEL_QUANTITIES];
        const int valid = FP_NAME(fp_channel_brackets)(n, m, cells + k * n * m, NULL, FP_NEEDS_ROWS, workspace, all);
        const double value = all[3 * FP_CD_LMIP], upper = all[3 * FP_POINTWISE_LMIP + 2];
        out[3 * k] = valid ? value : NAN;
        out[3 * k + 1] = valid ? all[3 * FP_CD_LMIP + 1] : NAN;
        out[3 * k + 2] = valid ? (upper > value ? upper : value) : NAN;
    }
}

#undef FP_CHANNEL_UFUNC
