/* Divergences of the rows of FP_LANES small channels, one channel a lane; no include guard.
 *
 * The operations of fp_channel_quantities_of_cells in their order, so that each lane has the bits that this function has
 * for its channel, wherever the channel is in a stack: what a row of prior probability 0 and a sum of fewer than eight
 * terms leave out there is here a term that is 0, and adds nothing. */

/* Move the rows of positive weight to the front of a lane: their number. The others get weight 0 and repeat a row. */
static ptrdiff_t FP_NAME(fp_channel_pack_lane)(ptrdiff_t n, ptrdiff_t m, int lane, fp_capacity_lanes *x,
                                               fp_capacity_lanes *weight)
{
    ptrdiff_t count = 0;
    while (count < n && weight[count][lane] > 0.0)
        count++;
    for (ptrdiff_t d = count; d < n; d++)
        if (weight[d][lane] > 0.0) {
            weight[count][lane] = weight[d][lane];
            for (ptrdiff_t i = 0; i < m; i++)
                x[count * m + i][lane] = x[d * m + i][lane];
            count++;
        }
    for (ptrdiff_t d = count; d < n; d++) {
        weight[d][lane] = 0.0;
        for (ptrdiff_t i = 0; i < m && count > 0; i++)
            x[d * m + i][lane] = x[(count - 1) * m + i][lane];
    }
    return count;
}

/* Mutual information and the largest divergence of a row: value, lower and upper bound of both. `scaled` is 1 where a
 * column has to be scaled. The rows are the first of x that have a weight in any lane. */
static void FP_NAME(fp_channel_lanes_of_rows)(ptrdiff_t rows, ptrdiff_t m, const fp_capacity_lanes *x,
                                              const fp_capacity_lanes *weight, const double *row_gap,
                                              const double *prior_gap, fp_capacity_lanes *out, double *scaled)
{
    fp_capacity_lanes centre[FP_SIDE_BY_SIDE_CELLS], delta[FP_SIDE_BY_SIDE_CELLS], q[FP_SIDE_BY_SIDE_CELLS];
    fp_capacity_lanes inverse[FP_SIDE_BY_SIDE_CELLS], term[FP_SIDE_BY_SIDE_CELLS], after[FP_SIDE_BY_SIDE_CELLS];
    fp_capacity_lanes mass_high = {0}, mass_low = {0}, energy_high = {0}, energy_low = {0};
    fp_capacity_lanes sum_high = {0}, sum_low = {0};
    fp_capacity_lanes total, energy, largest = {0}, low = {0}, high = {0};
    for (ptrdiff_t d = 0; d < rows; d++)
        FP_LANE_LOOP(l) fp_compensated_add(&mass_high[l], &mass_low[l], weight[d][l]);
    FP_LANE_LOOP(l) {
        total[l] = mass_high[l] + mass_low[l];
        scaled[l] = 0.0;
    }
    for (ptrdiff_t i = 0; i < m; i++) {
        fp_capacity_lanes c, top, spread, sum_of_groups = {0}, rest = {0};
        FP_LANE_LOOP(l) {
            c[l] = INFINITY;
            top[l] = -1.0;
        }
        for (ptrdiff_t d = 0; d < rows; d++)
            FP_LANE_LOOP(l) {
                c[l] = FP_NAME(fp_smaller)(x[d * m + i][l], c[l]);
                top[l] = FP_NAME(fp_larger)(x[d * m + i][l], top[l]);
            }
        for (ptrdiff_t group = 0; group < rows; group += FP_CHANNEL_ROWS) {
            fp_capacity_lanes part[FP_CHANNEL_ROWS];
            for (ptrdiff_t k = 0; k < FP_CHANNEL_ROWS; k++)
                if (group + k < rows)
                    FP_LANE_LOOP(l) part[k][l] = weight[group + k][l] * (x[(group + k) * m + i][l] - c[l]);
                else
                    FP_LANE_LOOP(l) part[k][l] = 0.0;
            FP_LANE_LOOP(l) {
                const double sum = FP_TREE_OF_EIGHT(fp_plus, part[0][l], part[1][l], part[2][l], part[3][l], part[4][l],
                                                    part[5][l], part[6][l], part[7][l]);
                fp_compensated_add(&sum_of_groups[l], &rest[l], sum);
            }
        }
        FP_LANE_LOOP(l) {
            const double d = (sum_of_groups[l] + rest[l]) / total[l];
            centre[i][l] = c[l];
            delta[i][l] = d;
            q[i][l] = fp_channel_column_mass(c[l], d, top[l] - c[l], &spread[l]);
        }
        FP_LANE_LOOP(l) {
            const double mass = q[i][l], tiny = top[l] > 0.0 ? FP_TINY_COLUMN : 0.0;
            scaled[l] = mass < tiny ? 1.0 : scaled[l];
            scaled[l] = c[l] > 2.0 * mass ? 1.0 : scaled[l];
            inverse[i][l] = mass > 0.0 ? 1.0 / mass : 0.0;
            fp_compensated_add(&energy_high[l], &energy_low[l], fp_channel_column_energy(mass, spread[l]));
        }
    }
    FP_LANE_LOOP(l) energy[l] = energy_high[l] + energy_low[l];
    for (ptrdiff_t d = 0; d < rows; d++) {
        fp_capacity_lanes lane[FP_LANES];
        for (ptrdiff_t i = 0; i < FP_LANES; i++)
            FP_LANE_LOOP(l) lane[i][l] = 0.0;
        FP_NAME(fp_channel_divergence_terms)(m * FP_LANES, x[d * m], 0.0, centre[0], delta[0], inverse[0], q[0], term[0],
                                             after[0]);
        for (ptrdiff_t i = 0; i < m; i++)
            FP_LANE_LOOP(l) lane[i % FP_LANES][l] += term[i][l];
        FP_LANE_LOOP(l) {
            const fp_channel_row_totals z = {.energy = energy[l], .row_gap = row_gap[l]};
            const double sum = ((lane[0][l] + lane[4][l]) + (lane[2][l] + lane[6][l]))
                               + ((lane[1][l] + lane[5][l]) + (lane[3][l] + lane[7][l]));
            const double k = (weight[d][l] > 0.0) & (sum > 0.0) ? sum : 0.0;
            const double error = FP_NAME(fp_channel_divergence_error)(&z, k);
            fp_compensated_add(&sum_high[l], &sum_low[l], weight[d][l] * k);
            largest[l] = FP_NAME(fp_larger)(k, largest[l]);
            low[l] = FP_NAME(fp_larger)(k - error, low[l]);
            high[l] = FP_NAME(fp_larger)(k + error, high[l]);
        }
    }
    FP_LANE_LOOP(l) {
        const fp_channel_row_totals z = {.total = total[l], .energy = energy[l], .row_gap = row_gap[l],
                                         .prior_gap = prior_gap[l]};
        double bracket[6];
        FP_NAME(fp_channel_information)(&z, sum_high[l] + sum_low[l], bracket);
        FP_NAME(fp_channel_largest_divergence)(&z, largest[l], low[l], high[l], bracket + 3);
        out[0][l] = bracket[0];
        out[1][l] = bracket[1];
        out[2][l] = bracket[2];
        out[3][l] = bracket[3];
        out[4][l] = bracket[4];
        out[5][l] = bracket[5];
    }
}

/* The quantities of rows of `count` pairs of a channel and a prior, which is NULL for the uniform ones: six numbers of
 * each, `out_step` numbers apart. Pair k takes the channel[k]-th of the channels, `step` bytes apart, with its row_gap,
 * and the prior[k]-th of the priors; the k-th where the indices are NULL. `status` is 1 where a column has to be scaled;
 * then nothing is written. */
static void FP_NAME(fp_channels_side_by_side)(ptrdiff_t n, ptrdiff_t m, ptrdiff_t count, const char *cells,
                                              ptrdiff_t step, int single, const ptrdiff_t *channel,
                                              const double *row_gap, const double *priors, const ptrdiff_t *prior,
                                              const double *prior_gap, double *out, ptrdiff_t out_step,
                                              signed char *status)
{
    fp_capacity_lanes x[FP_SIDE_BY_SIDE_CELLS], weight[FP_SIDE_BY_SIDE_CELLS];
    fp_capacity_lanes gap_of_row, gap_of_prior, result[6], scaled;
    for (ptrdiff_t start = 0; start < count; start += FP_LANES) {
        const void *from[FP_LANES];
        const double *weights[FP_LANES];
        ptrdiff_t rows = 0;
        for (int l = 0; l < FP_LANES; l++) {
            const ptrdiff_t k = start + l < count ? start + l : start; /* lanes that are left repeat the first pair */
            const ptrdiff_t c = channel ? channel[k] : k, p = prior ? prior[k] : k;
            from[l] = cells + c * step;
            weights[l] = priors ? priors + p * n : NULL;
            gap_of_row[l] = row_gap[c];
            gap_of_prior[l] = prior_gap[k];
        }
        for (ptrdiff_t i = 0; i < n * m && single; i++)
            FP_LANE_LOOP(l) x[i][l] = ((const float *)from[l])[i];
        for (ptrdiff_t i = 0; i < n * m && !single; i++)
            FP_NAME(fp_channel_gather)((const double *const *)from, i, x[i]);
        for (ptrdiff_t d = 0; d < n && priors; d++)
            FP_NAME(fp_channel_gather)(weights, d, weight[d]);
        for (ptrdiff_t d = 0; d < n && !priors; d++)
            FP_LANE_LOOP(l) weight[d][l] = 1.0 / (double)n;
        for (int l = 0; l < FP_LANES; l++) {
            const ptrdiff_t support = FP_NAME(fp_channel_pack_lane)(n, m, l, x, weight);
            rows = support > rows ? support : rows;
        }
        FP_NAME(fp_channel_lanes_of_rows)(rows, m, x, weight, gap_of_row, gap_of_prior, result, scaled);
        for (int l = 0; l < FP_LANES && start + l < count; l++) {
            status[start + l] = scaled[l] > 0.0;
            for (int k = 0; k < 6 && !status[start + l]; k++)
                out[(start + l) * out_step + k] = result[k][l];
        }
    }
}
