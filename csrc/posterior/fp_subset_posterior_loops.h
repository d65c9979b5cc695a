/* The enumeration of subsets; the layout is in fp_subset_posterior.h, the tiles are those of fp_posterior_loops.h. */

static void FP_NAME(fp_subset_flush_masses)(fp_subset_enumeration *s)
{
    for (ptrdiff_t k = 0; k < s->pool; k++) {
        const double sum = s->high[k] + s->recent_mass[k];
        s->low[k] += fp_sum_error(s->high[k], s->recent_mass[k], sum);
        s->high[k] = sum;
        s->recent_mass[k] = 0.0;
    }
    s->rows = 0;
}

/* The members k of a row from `start` to `stop`; returns the posterior mass of the row. */
static double FP_NAME(fp_subset_row)(fp_subset_enumeration *s, ptrdiff_t start, ptrdiff_t stop, double base,
                                      const double *next_terms, const double *pair, int pass)
{
    double mass = 0.0;
    for (ptrdiff_t at = start; at < stop; at += FP_TILE) {
        const ptrdiff_t n = stop - at < FP_TILE ? stop - at : FP_TILE;
        double *restrict l = s->tile.l, *restrict t = s->tile.t, *restrict w = s->tile.w;
        const double *restrict r = next_terms + at, *restrict p = pair ? pair + at : NULL;
        if (p)
            for (ptrdiff_t i = 0; i < n; i++)
                l[i] = base + (r[i] + p[i]);
        else
            for (ptrdiff_t i = 0; i < n; i++)
                l[i] = base + r[i];
        if (pass == 1) {
            const double top = s->first.top;
            FP_NAME(fp_evidence_uniform_tile)(&s->first, &s->best, s->rank, n, &s->tile);
            s->increases += s->first.top > top;
        } else {
            double *restrict recent_mass = s->recent_mass + at;
            for (ptrdiff_t i = 0; i < n; i++) {
                l[i] = (l[i] - s->evidence) - s->rest;
                w[i] = s->weight;
            }
            FP_NAME(fp_divergence_tile)(&s->second, n, 0, &s->tile);
            for (ptrdiff_t i = 0; i < n; i++)
                recent_mass[i] += t[i];
            mass += FP_NAME(fp_ordered_sum)(n, t);
        }
        s->rank += n;
    }
    if (pass == 2 && ++s->rows == FP_SUBSET_ROWS)
        FP_NAME(fp_subset_flush_masses)(s);
    return mass;
}

/* All subsets that extend a prefix of `depth` members by a member of [start, stop); returns their mass. */
static double FP_NAME(fp_subset_enumerate)(fp_subset_enumeration *s, int depth, ptrdiff_t start, ptrdiff_t stop,
                                           double base, int pass)
{
    const int left = s->size - depth;
    const double *next_terms = depth ? s->next_terms + (depth - 1) * s->pool : s->linear_terms;
    fp_accumulator total = {0.0, 0.0};
    if (left == 1)
        return FP_NAME(fp_subset_row)(s, start, stop, base, next_terms, NULL, pass);
    for (ptrdiff_t j = start; j < stop; j++) {
        const double *restrict pair = s->pair_terms + j * s->pool, *restrict before = next_terms;
        const double longer = base + before[j];
        double mass;
        if (left == 2) {
            mass = FP_NAME(fp_subset_row)(s, j + 1, s->pool, longer, before, pair, pass);
        } else {
            double *restrict next = s->next_terms + depth * s->pool;
            for (ptrdiff_t k = j + 1; k < s->pool; k++)
                next[k] = before[k] + pair[k];
            mass = FP_NAME(fp_subset_enumerate)(s, depth + 1, j + 1, s->pool - (left - 2), longer, pass);
        }
        if (pass == 2)
            s->recent_mass[j] += mass;
        fp_accumulator_add(&total, mass);
    }
    return fp_accumulator_value(&total);
}

static void FP_NAME(fp_subset_posterior)(fp_subset_enumeration *s, int depth, const ptrdiff_t *members, ptrdiff_t start,
                                     ptrdiff_t stop, int pass)
{
    double base = 0.0;
    s->first = fp_evidence_sums_empty();
    s->second = (fp_divergence_sums){{0}};
    s->increases = 0, s->rows = 0;
    for (int d = 0; d < depth; d++) {
        const double *next_terms = d ? s->next_terms + (d - 1) * s->pool : s->linear_terms;
        const double *pair = s->pair_terms + members[d] * s->pool;
        base += next_terms[members[d]];
        for (ptrdiff_t k = members[d] + 1; k < s->pool; k++)
            s->next_terms[d * s->pool + k] = next_terms[k] + pair[k];
    }
    const double mass = FP_NAME(fp_subset_enumerate)(s, depth, start, stop, base, pass);
    if (pass == 2) {
        for (int d = 0; d < depth; d++)
            s->recent_mass[members[d]] += mass;
        FP_NAME(fp_subset_flush_masses)(s);
    }
}
