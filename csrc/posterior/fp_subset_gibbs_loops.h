/* Sweeps of Gibbs steps over subsets; the mathematics is in fp_subset_gibbs.h. No include guard. */

/* The sums and l of a replica, from its members. */
static void FP_NAME(fp_subset_gibbs_start)(const fp_subset_gibbs_model *model, fp_subset_gibbs_replica *s)
{
    double *restrict sum = s->sum;
    for (ptrdiff_t k = 0; k < model->pool; k++)
        sum[k] = model->linear[k];
    for (ptrdiff_t i = 0; i < model->size; i++) {
        const double *restrict row = model->pairs + s->members[i] * model->pool;
        for (ptrdiff_t k = 0; k < model->pool; k++)
            sum[k] += row[k];
    }
}

static double FP_NAME(fp_subset_gibbs_l)(const fp_subset_gibbs_model *model, const fp_subset_gibbs_replica *s)
{
    double total = 0.0;
    for (ptrdiff_t i = 0; i < model->size; i++)
        total += 0.5 * (model->linear[s->members[i]] + s->sum[s->members[i]]);
    return total;
}

/* One step for member number `place`; work receives the weights, then blocks of sums. Returns the sum of weights. */
static double FP_NAME(fp_subset_gibbs_step)(const fp_subset_gibbs_model *model, fp_subset_gibbs_replica *s,
                                            ptrdiff_t place, double temperature, double u, double *restrict w)
{
    const ptrdiff_t pool = model->pool, filled = (pool + FP_LANES - 1) / FP_LANES * FP_LANES;
    double *restrict sum = s->sum, *restrict part = w + filled;
    const double *restrict row = model->pairs + s->members[place] * pool;
    for (ptrdiff_t k = 0; k < pool; k++) {
        sum[k] -= row[k];
        w[k] = temperature * sum[k];
    }
    for (ptrdiff_t k = pool; k < filled; k++)
        w[k] = -INFINITY;
    for (ptrdiff_t i = 0; i < model->size; i++)
        if (i != place)
            w[s->members[i]] = -INFINITY;
    double lane[FP_LANES];
    for (int i = 0; i < FP_LANES; i++)
        lane[i] = -INFINITY;
    for (ptrdiff_t k = 0; k < filled; k += FP_LANES)
        for (int i = 0; i < FP_LANES; i++)
            lane[i] = w[k + i] > lane[i] ? w[k + i] : lane[i];
    double most = lane[0];
    for (int i = 1; i < FP_LANES; i++)
        most = lane[i] > most ? lane[i] : most;
    for (ptrdiff_t k = 0; k < filled; k++)
        w[k] = fp_exp(w[k] - most);
    double total = 0.0;
    ptrdiff_t block = 0;
    for (ptrdiff_t at = 0; at < filled; at += FP_SUBSET_GIBBS_BLOCK, block++) {
        const ptrdiff_t end = at + FP_SUBSET_GIBBS_BLOCK < filled ? at + FP_SUBSET_GIBBS_BLOCK : filled;
        for (int i = 0; i < FP_LANES; i++)
            lane[i] = 0.0;
        for (ptrdiff_t k = at; k < end; k += FP_LANES)
            for (int i = 0; i < FP_LANES; i++)
                lane[i] += w[k + i];
        part[block] = fp_lane_sum(lane);
        total += part[block];
    }
    double left = u * total;
    ptrdiff_t chosen = -1;
    for (ptrdiff_t b = 0; b < block; b++) {
        const ptrdiff_t at = b * FP_SUBSET_GIBBS_BLOCK;
        if (left >= part[b] && b < block - 1) {
            left -= part[b];
            continue;
        }
        const ptrdiff_t end = at + FP_SUBSET_GIBBS_BLOCK < pool ? at + FP_SUBSET_GIBBS_BLOCK : pool;
        for (ptrdiff_t k = at; k < end; k++)
            if (w[k] > 0.0) {
                chosen = k;
                if (left < w[k])
                    break;
                left -= w[k];
            }
        if (chosen >= 0) /* where rounding has left a block without any, the next one has it */
            break;
    }
    if (chosen < 0)
        chosen = s->members[place];
    s->members[place] = (int32_t)chosen;
    row = model->pairs + chosen * pool;
    for (ptrdiff_t k = 0; k < pool; k++)
        sum[k] += row[k];
    return total;
}

/* Sweeps of all replicas. work: pool + 8 + pool / FP_SUBSET_GIBBS_BLOCK + 8 doubles. */
static int FP_NAME(fp_subset_gibbs_run)(const fp_subset_gibbs_model *model, fp_subset_gibbs_replica *replica,
                                        const uint64_t *words, ptrdiff_t sweeps, double *work,
                                        fp_subset_gibbs_report *report, fp_stop_token *stop)
{
    const ptrdiff_t pool = model->pool, size = model->size, replicas = model->replicas;
    fp_subset_gibbs_words random;
    fp_stream_seed(&random.stream, words);
    random.next = FP_LANES;
    for (ptrdiff_t r = 0; r < replicas; r++)
        FP_NAME(fp_subset_gibbs_start)(model, replica + r);
    for (ptrdiff_t sweep = 0; sweep < sweeps; sweep++) {
        for (ptrdiff_t r = 0; r < replicas; r++) {
            fp_subset_gibbs_replica *s = replica + r;
            for (ptrdiff_t place = 0; place < size; place++) {
                const double u = fp_subset_gibbs_next(&random);
                const double total = FP_NAME(fp_subset_gibbs_step)(model, s, place, model->temperature[r], u, work);
                if (fp_stop_requested(stop, pool))
                    return stop->status;
                if (r)
                    continue;
                const double scale = 1.0 / total;
                double *restrict probability = report->probability;
                for (ptrdiff_t k = 0; k < pool; k++)
                    probability[k] += work[k] * scale;
                for (ptrdiff_t i = 0; i < size; i++)
                    if (i != place)
                        probability[s->members[i]] += 1.0;
            }
            s->l = FP_NAME(fp_subset_gibbs_l)(model, s);
            if (s->l > report->best_l) {
                report->best_l = s->l;
                for (ptrdiff_t i = 0; i < size; i++)
                    report->best[i] = s->members[i];
            }
        }
        for (ptrdiff_t r = 0; r < replicas; r++)
            report->l[sweep * replicas + r] = replica[r].l;
        for (ptrdiff_t i = 0; i < size; i++)
            report->visits[replica->members[i]] += 1.0;
        for (ptrdiff_t r = 1; r < replicas; r++) {
            const double gain = (model->temperature[r - 1] - model->temperature[r]) * (replica[r].l - replica[r - 1].l);
            if (gain > fp_log(fp_subset_gibbs_next(&random))) {
                const fp_subset_gibbs_replica kept = replica[r - 1];
                replica[r - 1] = replica[r];
                replica[r] = kept;
                report->exchanged[r] += 1.0;
            }
        }
    }
    return 0;
}
