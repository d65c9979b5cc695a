/* Sweeps of Gibbs steps; the mathematics is in fp_membership_gibbs.h. No include guard. */

/* q of the terms over attributes with n members, if counts change by plus - minus; either may be NULL. */
static double FP_NAME(fp_gibbs_attributes)(const fp_gibbs_term *term, ptrdiff_t people, ptrdiff_t n,
                                           const int32_t *restrict count, const uint8_t *restrict plus,
                                           const uint8_t *restrict minus)
{
    const double *restrict r = term->released, size = (double)n;
    const double *restrict table = term->kind == FP_GIBBS_CENSORED ? term->table + n * (people + 1) : NULL;
    double lane[FP_LANES] = {0};
    for (ptrdiff_t at = 0; at < term->m; at += 256) {
        const ptrdiff_t many = term->m - at < 256 ? term->m - at : 256;
        int32_t c[256];
        double x[256];
        for (ptrdiff_t j = 0; j < many; j++)
            c[j] = count[at + j];
        if (plus)
            for (ptrdiff_t j = 0; j < many; j++)
                c[j] += plus[at + j];
        if (minus)
            for (ptrdiff_t j = 0; j < many; j++)
                c[j] -= minus[at + j];
        if (table)
            for (ptrdiff_t j = 0; j < many; j++)
                x[j] = table[c[j]];
        else
            for (ptrdiff_t j = 0; j < many; j++)
                x[j] = fabs(size * r[at + j] - (double)c[j]);
        for (ptrdiff_t j = many; j < (many + 7) / 8 * 8; j++)
            x[j] = 0.0;
        if (term->kind == FP_GIBBS_MAXIMUM)
            for (ptrdiff_t j = 0; j < many; j += FP_LANES)
                for (int i = 0; i < FP_LANES; i++)
                    lane[i] = x[j + i] > lane[i] ? x[j + i] : lane[i];
        else
            for (ptrdiff_t j = 0; j < many; j += FP_LANES)
                for (int i = 0; i < FP_LANES; i++)
                    lane[i] += x[j + i];
    }
    if (term->kind != FP_GIBBS_MAXIMUM)
        return fp_lane_sum(lane);
    double most = lane[0];
    for (int i = 1; i < FP_LANES; i++)
        most = lane[i] > most ? lane[i] : most;
    return most;
}

/* (G b)_k, and G_kk */
FP_INLINE double FP_NAME(fp_gibbs_row)(const fp_gibbs_term *term, const fp_gibbs_replica *s, int t, ptrdiff_t k)
{
    return (double)s->n * term->linear[k] + s->linear[t] + (double)s->count[t][k];
}
FP_INLINE double FP_NAME(fp_gibbs_diagonal)(const fp_gibbs_term *term, ptrdiff_t people, ptrdiff_t k)
{
    return 2.0 * term->linear[k] + (double)term->shared[k * people + k];
}

/* q of a term if person `in` joins and `out` leaves; -1: nobody. */
static double FP_NAME(fp_gibbs_value)(const fp_gibbs_model *model, const fp_gibbs_replica *s, int t, ptrdiff_t in,
                                      ptrdiff_t out)
{
    const fp_gibbs_term *term = model->term + t;
    if (term->kind == FP_GIBBS_QUADRATIC) {
        const ptrdiff_t k = model->people;
        double q = s->q[t];
        if (in >= 0)
            q += 2.0 * FP_NAME(fp_gibbs_row)(term, s, t, in) + FP_NAME(fp_gibbs_diagonal)(term, k, in);
        if (out >= 0)
            q -= 2.0 * FP_NAME(fp_gibbs_row)(term, s, t, out) - FP_NAME(fp_gibbs_diagonal)(term, k, out);
        if (in >= 0 && out >= 0)
            q -= 2.0 * (term->linear[in] + term->linear[out] + (double)term->shared[in * k + out]);
        return q;
    }
    return FP_NAME(fp_gibbs_attributes)(term, model->people, s->n + (in >= 0) - (out >= 0), s->count[t],
                                        in >= 0 ? term->people + in * term->m : NULL,
                                        out >= 0 ? term->people + out * term->m : NULL);
}

/* Let a person join (sign 1) or leave (-1); the values q are set by the caller. */
static void FP_NAME(fp_gibbs_move)(const fp_gibbs_model *model, fp_gibbs_replica *s, ptrdiff_t k, int sign)
{
    const ptrdiff_t last = sign > 0 ? s->n : s->n - 1, other = s->order[last], from = s->place[k];
    s->order[from] = (int32_t)other, s->place[other] = (int32_t)from;
    s->order[last] = (int32_t)k, s->place[k] = (int32_t)last;
    s->n += sign;
    s->member[k] = sign > 0;
    for (int t = 0; t < model->terms; t++) {
        const fp_gibbs_term *term = model->term + t;
        int32_t *restrict count = s->count[t];
        if (term->kind == FP_GIBBS_QUADRATIC) {
            const int32_t *restrict row = term->shared + k * model->people;
            for (ptrdiff_t i = 0; i < model->people; i++)
                count[i] += sign * row[i];
            s->linear[t] += sign * term->linear[k];
        } else {
            const uint8_t *restrict row = term->people + k * term->m;
            for (ptrdiff_t j = 0; j < term->m; j++)
                count[j] += sign * row[j];
        }
    }
}

/* All sums of a replica from its members. */
static void FP_NAME(fp_gibbs_start)(const fp_gibbs_model *model, fp_gibbs_replica *s)
{
    const ptrdiff_t people = model->people;
    ptrdiff_t members = 0, others = people;
    for (ptrdiff_t k = 0; k < people; k++) {
        const ptrdiff_t at = s->member[k] ? members++ : --others;
        s->order[at] = (int32_t)k, s->place[k] = (int32_t)at;
    }
    s->n = members;
    for (int t = 0; t < model->terms; t++) {
        const fp_gibbs_term *term = model->term + t;
        const int quadratic = term->kind == FP_GIBBS_QUADRATIC;
        for (ptrdiff_t j = 0; j < term->m; j++)
            s->count[t][j] = 0;
        s->linear[t] = 0.0;
        for (ptrdiff_t i = 0; i < members; i++) {
            const ptrdiff_t k = s->order[i];
            if (quadratic)
                s->linear[t] += term->linear[k];
            for (ptrdiff_t j = 0; j < term->m; j++)
                s->count[t][j] += quadratic ? term->shared[k * people + j] : (int32_t)term->people[k * term->m + j];
        }
        if (quadratic) {
            s->q[t] = 2.0 * (double)members * s->linear[t];
            int64_t pairs = 0;
            for (ptrdiff_t i = 0; i < members; i++)
                pairs += s->count[t][s->order[i]];
            s->q[t] += (double)pairs;
        } else {
            s->q[t] = FP_NAME(fp_gibbs_attributes)(term, people, members, s->count[t], NULL, NULL);
        }
    }
}

/* One sweep of flips; delta receives the log odds of each person given the others. */
static int FP_NAME(fp_gibbs_flips)(const fp_gibbs_model *model, fp_gibbs_replica *s, double temperature,
                                   const double *logistic, double *delta, ptrdiff_t cost, fp_stop_token *stop)
{
    for (ptrdiff_t k = 0; k < model->people; k++) {
        const int in = s->member[k];
        double q[FP_GIBBS_TERMS];
        if (in && s->n == 1) { /* somebody must be a member */
            delta[k] = INFINITY;
            continue;
        }
        for (int t = 0; t < model->terms; t++)
            q[t] = FP_NAME(fp_gibbs_value)(model, s, t, in ? -1 : k, in ? k : -1);
        const ptrdiff_t n = in ? s->n - 1 : s->n + 1;
        const double now = fp_gibbs_likelihood(model, s->n, s->q), then = fp_gibbs_likelihood(model, n, q);
        const double change = model->prior[n] - model->prior[s->n] + temperature * (then - now);
        delta[k] = model->log_odds[k] + (in ? -change : change);
        if ((delta[k] > logistic[k]) != in) {
            FP_NAME(fp_gibbs_move)(model, s, k, in ? -1 : 1);
            for (int t = 0; t < model->terms; t++)
                s->q[t] = q[t];
        }
        if (fp_stop_requested(stop, cost))
            return stop->status;
    }
    return 0;
}

/* Exchanges of a member for one that is none, `many` of them, from 3 `many` words; work: one double each. */
static int FP_NAME(fp_gibbs_exchanges)(const fp_gibbs_model *model, fp_gibbs_replica *s, double temperature,
                                       ptrdiff_t many, const uint64_t *bits, double *restrict logs, ptrdiff_t cost,
                                       fp_stop_token *stop)
{
    const ptrdiff_t people = model->people, n = s->n;
    for (ptrdiff_t i = 0; i < many; i++)
        logs[i] = fp_log(fp_stream_uniform(bits[2 * many + i]));
    for (ptrdiff_t i = 0; i < many && n < people; i++) {
        const ptrdiff_t out = s->order[fp_gibbs_index(bits[i], n)];
        const ptrdiff_t in = s->order[n + fp_gibbs_index(bits[many + i], people - n)];
        double q[FP_GIBBS_TERMS];
        for (int t = 0; t < model->terms; t++)
            q[t] = FP_NAME(fp_gibbs_value)(model, s, t, in, out);
        const double now = fp_gibbs_likelihood(model, n, s->q), then = fp_gibbs_likelihood(model, n, q);
        if (model->log_odds[in] - model->log_odds[out] + temperature * (then - now) > logs[i]) {
            FP_NAME(fp_gibbs_move)(model, s, out, -1);
            FP_NAME(fp_gibbs_move)(model, s, in, 1);
            for (int t = 0; t < model->terms; t++)
                s->q[t] = q[t];
        }
        if (fp_stop_requested(stop, 2 * cost))
            return stop->status;
    }
    return 0;
}

/* Sweeps of all replicas. work: 8 K + 2 replicas + 64 doubles. */
static int FP_NAME(fp_gibbs_run)(const fp_gibbs_model *model, fp_gibbs_replica *replica, const uint64_t *words,
                                 ptrdiff_t sweeps, double *work, fp_gibbs_report *report, fp_stop_token *stop)
{
    const ptrdiff_t people = model->people, last = 3 * people + 8;
    const ptrdiff_t many = (last + model->replicas + 7) / 8 * 8, some = people / FP_GIBBS_EXCHANGES + 1;
    uint64_t *bits = (uint64_t *)work;
    double *restrict variate = work + many, *restrict delta = variate + people;
    fp_stream stream;
    fp_stream_seed(&stream, words);
    ptrdiff_t cost = 1;
    for (int t = 0; t < model->terms; t++)
        cost += model->term[t].kind == FP_GIBBS_QUADRATIC ? 16 : model->term[t].m / 4;
    for (int r = 0; r < model->replicas; r++)
        FP_NAME(fp_gibbs_start)(model, replica + r);
    for (ptrdiff_t sweep = 0; sweep < sweeps; sweep++) {
        for (int r = 0; r < model->replicas; r++) {
            fp_gibbs_replica *s = replica + r;
            for (ptrdiff_t i = 0; i < many; i += FP_LANES)
                fp_stream_next(&stream, bits + i);
            int status;
            if (model->fixed_size) {
                status = FP_NAME(fp_gibbs_exchanges)(model, s, model->temperature[r], people, bits, variate, cost,
                                                     stop);
            } else {
                for (ptrdiff_t k = 0; k < people; k++) {
                    const double u = fp_stream_uniform(bits[k]);
                    variate[k] = fp_log(u / (1.0 - u));
                }
                status = FP_NAME(fp_gibbs_flips)(model, s, model->temperature[r], variate, delta, cost, stop);
                if (!status)
                    status = FP_NAME(fp_gibbs_exchanges)(model, s, model->temperature[r], some, bits + people, variate,
                                                         cost, stop);
            }
            if (status)
                return status;
            if (r == 0 && model->fixed_size)
                for (ptrdiff_t k = 0; k < people; k++) {
                    report->probability[k] += (double)s->member[k];
                    report->probability[people + k] += 1.0 - (double)s->member[k];
                }
            else if (r == 0)
                for (ptrdiff_t k = 0; k < people; k++) {
                    const double x = delta[k], small = fp_exp(-fabs(x)), large = 1.0 / (1.0 + small);
                    report->probability[k] += x >= 0.0 ? large : small * large;
                    report->probability[people + k] += x >= 0.0 ? small * large : large;
                }
            if (r == 0)
                continue;
            const double mine = fp_gibbs_likelihood(model, s->n, s->q);
            const double theirs = fp_gibbs_likelihood(model, s[-1].n, s[-1].q);
            const double gain = (model->temperature[r - 1] - model->temperature[r]) * (mine - theirs);
            if (gain > fp_log(fp_stream_uniform(bits[last + r]))) {
                const fp_gibbs_replica kept = s[-1];
                s[-1] = *s;
                *s = kept;
            }
        }
        double log_density = fp_gibbs_likelihood(model, replica->n, replica->q) + model->prior[replica->n];
        for (ptrdiff_t k = 0; k < people; k++) {
            report->states[sweep * people + k] = replica->member[k];
            log_density += replica->member[k] ? model->log_odds[k] : 0.0;
        }
        report->log_density[sweep] = log_density;
    }
    return 0;
}
