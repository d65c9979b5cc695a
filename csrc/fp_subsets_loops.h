/* The walk over subsets; the layout is in fp_subsets.h, the tiles are those of fp_beliefs_loops.h. */

/* members k of a row from `start` on: l = base + reach[k] (+ pair[k]); returns the posterior mass of the row */
static double FP_NAME(fp_subsets_row)(fp_subsets *s, ptrdiff_t start, double base, const double *reach,
                                      const double *pair, int which)
{
    double mass = 0.0;
    for (ptrdiff_t at = start; at < s->pool; at += FP_TILE) {
        const ptrdiff_t n = s->pool - at < FP_TILE ? s->pool - at : FP_TILE;
        double *restrict l = s->tile.l, *restrict t = s->tile.t, *restrict w = s->tile.w;
        const double *restrict r = reach + at, *restrict p = pair ? pair + at : NULL;
        if (p)
            for (ptrdiff_t i = 0; i < n; i++)
                l[i] = base + (r[i] + p[i]);
        else
            for (ptrdiff_t i = 0; i < n; i++)
                l[i] = base + r[i];
        if (which == 1) {
            FP_NAME(fp_first_tile)(&s->first, &s->best, s->rank, n, &s->tile);
        } else {
            double *restrict inclusion = s->inclusion + at;
            for (ptrdiff_t i = 0; i < n; i++) {
                l[i] = (l[i] - s->high) - s->low;
                w[i] = s->weight;
            }
            FP_NAME(fp_second_tile)(&s->second, n, 0, &s->tile);
            for (ptrdiff_t i = 0; i < n; i++)
                inclusion[i] += t[i];
            mass += FP_NAME(fp_belief_lanes)(n, t);
        }
        s->rank += n;
    }
    return mass;
}

/* all subsets that go on from a prefix of `depth` members with a member of [start, stop); returns their mass */
static double FP_NAME(fp_subsets_from)(fp_subsets *s, int depth, ptrdiff_t start, ptrdiff_t stop, double base, int which)
{
    const int left = s->size - depth;
    const double *reach = depth ? s->reach + (depth - 1) * s->pool : s->linear;
    double total = 0.0;
    if (left == 1)
        return FP_NAME(fp_subsets_row)(s, start, base, reach, NULL, which);
    for (ptrdiff_t j = start; j < stop; j++) {
        const double *restrict pair = s->pairwise + j * s->pool, *restrict before = reach;
        double mass;
        if (left == 2) {
            mass = FP_NAME(fp_subsets_row)(s, j + 1, base + before[j], before, pair, which);
        } else {
            double *restrict next = s->reach + depth * s->pool;
            for (ptrdiff_t k = j + 1; k < s->pool; k++)
                next[k] = before[k] + pair[k];
            mass = FP_NAME(fp_subsets_from)(s, depth + 1, j + 1, s->pool - (left - 2), base + before[j], which);
        }
        if (which == 2)
            s->inclusion[j] += mass;
        total += mass;
    }
    return total;
}

static void FP_NAME(fp_subsets_walk)(fp_subsets *s, ptrdiff_t start, ptrdiff_t stop, int which)
{
    s->first = fp_first_empty();
    s->second = (fp_second){{0}};
    if (s->size == 1) { /* a row of its own, cut to the range */
        const ptrdiff_t pool = s->pool;
        s->pool = stop;
        FP_NAME(fp_subsets_from)(s, 0, start, stop, 0.0, which);
        s->pool = pool;
    } else {
        FP_NAME(fp_subsets_from)(s, 0, start, stop, 0.0, which);
    }
}
