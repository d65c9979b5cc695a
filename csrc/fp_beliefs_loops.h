/* Loops of both passes over a tile and over a block; the mathematics is in fp_beliefs.h. */

/* sum of n terms in eight lanes, in a fixed order */
static double FP_NAME(fp_belief_lanes)(ptrdiff_t n, const double *f)
{
    double lane[8] = {0};
    ptrdiff_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++)
            lane[j] += f[i + j];
    for (int j = 0; i + j < n; j++)
        lane[j] += f[i + j];
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static double FP_NAME(fp_belief_most)(ptrdiff_t n, const double *f)
{
    double lane[8], most = -INFINITY;
    for (int j = 0; j < 8; j++)
        lane[j] = -INFINITY;
    ptrdiff_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++)
            lane[j] = f[i + j] > lane[j] ? f[i + j] : lane[j];
    for (int j = 0; i + j < n; j++)
        lane[j] = f[i + j] > lane[j] ? f[i + j] : lane[j];
    for (int j = 0; j < 8; j++)
        most = lane[j] > most ? lane[j] : most;
    return most;
}

static ptrdiff_t FP_NAME(fp_belief_place)(ptrdiff_t n, const double *f, double value)
{
    ptrdiff_t i = 0;
    while (i < n - 1 && f[i] != value)
        i++;
    return i;
}

/* joins sums that are relative to `top` with those of `one` */
static void FP_NAME(fp_first_join)(fp_first *all, const fp_first *one)
{
    fp_long_add(&all->mass, one->mass.high);
    fp_long_add(&all->mass, one->mass.low);
    if (one->most > all->most)
        all->most = one->most, all->most_at = one->most_at;
    if (one->least < all->least)
        all->least = one->least, all->least_at = one->least_at;
    if (one->top == -INFINITY)
        return;
    fp_first other = *one;
    if (one->top > all->top) {
        other = *all;
        all->top = one->top, all->top_at = one->top_at, all->ties = one->ties;
        all->rest = one->rest, all->moment = one->moment;
    }
    if (other.top == -INFINITY)
        return;
    const double gap = other.top - all->top, factor = fp_exp(gap);
    if (gap == 0.0) {
        all->ties += other.ties;
    } else {
        fp_long_add(&all->rest, factor * other.ties);
        fp_long_add(&all->moment, factor * gap * other.ties);
    }
    if (factor > 0.0) {
        fp_long_add(&all->rest, factor * other.rest.high);
        fp_long_add(&all->rest, factor * other.rest.low);
        fp_long_add(&all->moment, factor * (other.moment.high + gap * other.rest.high));
        fp_long_add(&all->moment, factor * (other.moment.low + gap * other.rest.low));
    }
}

/* The first pass over a tile that holds l, t and, unless the prior is uniform, w. */
static void FP_NAME(fp_first_tile)(fp_first *all, fp_best *best, ptrdiff_t at, ptrdiff_t n, int uniform,
                                   fp_tile *tile)
{
    const double *restrict l = tile->l, *restrict t = tile->t, *restrict w = tile->w;
    double *restrict a = tile->a, *restrict b = tile->b, *restrict c = tile->c;
    fp_first one = fp_first_empty();
    if (uniform) {
        for (ptrdiff_t i = 0; i < n; i++)
            b[i] = -l[i];
        one.mass.high = (double)n;
        one.most = FP_NAME(fp_belief_most)(n, l), one.least = -FP_NAME(fp_belief_most)(n, b);
        if (one.most > all->most)
            one.most_at = at + FP_NAME(fp_belief_place)(n, l, one.most);
        if (one.least < all->least)
            one.least_at = at + FP_NAME(fp_belief_place)(n, b, -one.least);
    } else {
        for (ptrdiff_t i = 0; i < n; i++) {
            a[i] = w[i] == 0.0 && t[i] == -INFINITY ? -INFINITY : l[i];
            b[i] = w[i] == 0.0 && t[i] == -INFINITY ? -INFINITY : -l[i];
        }
        one.mass.high = FP_NAME(fp_belief_lanes)(n, w);
        one.most = FP_NAME(fp_belief_most)(n, a), one.least = -FP_NAME(fp_belief_most)(n, b);
        if (one.most > all->most)
            one.most_at = at + FP_NAME(fp_belief_place)(n, a, one.most);
        if (one.least < all->least)
            one.least_at = at + FP_NAME(fp_belief_place)(n, b, -one.least);
    }
    one.top = FP_NAME(fp_belief_most)(n, t);
    if (one.top > -INFINITY && (best->count < best->room || (best->room && one.top > best->t[0])))
        for (ptrdiff_t i = 0; i < n; i++)
            if (t[i] > -INFINITY)
                fp_best_offer(best, t[i], at + i);
    if (one.top > all->top)
        one.top_at = at + FP_NAME(fp_belief_place)(n, t, one.top);
    if (one.top > -INFINITY) {
        const double top = one.top;
        for (ptrdiff_t i = 0; i < n; i++) {
            const double d = t[i] - top, e = fp_exp(d), below = d < -800.0 ? 0.0 : d;
            a[i] = d == 0.0 ? 0.0 : e;
            b[i] = e * below;
            c[i] = d == 0.0 ? 1.0 : 0.0;
        }
        one.ties = FP_NAME(fp_belief_lanes)(n, c);
        one.rest.high = FP_NAME(fp_belief_lanes)(n, a);
        one.moment.high = FP_NAME(fp_belief_lanes)(n, b);
    } else {
        one.rest.high = FP_NAME(fp_belief_lanes)(n, t) == -INFINITY ? 0.0 : NAN; /* a NaN among the impossible */
        one.mass.high += one.rest.high;
    }
    FP_NAME(fp_first_join)(all, &one);
}

/* The second pass over a tile that holds y in l, w, and the posterior in t where it is known; leaves it there. */
static void FP_NAME(fp_second_tile)(fp_second *all, ptrdiff_t n, int known, fp_tile *tile)
{
    const double *restrict y = tile->l, *restrict w = tile->w;
    double *restrict v = tile->t, *restrict a = tile->a, *restrict b = tile->b, *restrict c = tile->c;
    if (known)
        for (ptrdiff_t i = 0; i < n; i++)
            fp_second_terms(w[i], y[i], 1, &v[i], &a[i], &b[i], &c[i]);
    else
        for (ptrdiff_t i = 0; i < n; i++)
            fp_second_terms(w[i], y[i], 0, &v[i], &a[i], &b[i], &c[i]);
    fp_long_add(&all->excess, FP_NAME(fp_belief_lanes)(n, a));
    fp_long_add(&all->kl, FP_NAME(fp_belief_lanes)(n, b));
    fp_long_add(&all->js, FP_NAME(fp_belief_lanes)(n, c));
}

/* n numbers of a block as doubles */
static void FP_NAME(fp_belief_load)(ptrdiff_t n, const void *source, int single, double *restrict out)
{
    const double *restrict d = source;
    const float *restrict f = source;
    if (single)
        for (ptrdiff_t i = 0; i < n; i++)
            out[i] = f[i];
    else
        for (ptrdiff_t i = 0; i < n; i++)
            out[i] = d[i];
}

FP_INLINE const void *FP_NAME(fp_belief_at)(const void *source, int single, ptrdiff_t at)
{
    return single ? (const void *)((const float *)source + at) : (const void *)((const double *)source + at);
}

static void FP_NAME(fp_first_block)(ptrdiff_t n, const void *l, int l_single, int kind, const void *prior,
                                    int prior_single, fp_first *all, fp_best *best)
{
    fp_tile tile;
    *all = fp_first_empty();
    for (ptrdiff_t at = 0; at < n; at += FP_TILE) {
        const ptrdiff_t m = n - at < FP_TILE ? n - at : FP_TILE;
        double *restrict t = tile.t, *restrict w = tile.w;
        const double *restrict given = tile.l;
        FP_NAME(fp_belief_load)(m, FP_NAME(fp_belief_at)(l, l_single, at), l_single, tile.l);
        if (kind == FP_PRIOR_NONE) {
            for (ptrdiff_t i = 0; i < m; i++)
                t[i] = given[i];
        } else {
            FP_NAME(fp_belief_load)(m, FP_NAME(fp_belief_at)(prior, prior_single, at), prior_single, w);
            if (kind == FP_PRIOR_PLAIN)
                for (ptrdiff_t i = 0; i < m; i++)
                    t[i] = w[i] == 0.0 ? -INFINITY : fp_log(w[i]) + given[i];
            else
                for (ptrdiff_t i = 0; i < m; i++) {
                    t[i] = w[i] == -INFINITY ? -INFINITY : w[i] + given[i];
                    w[i] = fp_exp(w[i]);
                }
        }
        FP_NAME(fp_first_tile)(all, best, at, m, kind == FP_PRIOR_NONE, &tile);
    }
}

/* weight: the prior of each secret where it is uniform */
static void FP_NAME(fp_second_block)(ptrdiff_t n, const void *l, int l_single, int kind, const void *prior,
                                     int prior_single, double weight, double high, double low, fp_second *all,
                                     double *posterior)
{
    fp_tile tile;
    *all = (fp_second){{0}};
    for (ptrdiff_t at = 0; at < n; at += FP_TILE) {
        const ptrdiff_t m = n - at < FP_TILE ? n - at : FP_TILE;
        double *restrict y = tile.l, *restrict v = tile.t, *restrict w = tile.w;
        int known = kind == FP_PRIOR_LOG;
        FP_NAME(fp_belief_load)(m, FP_NAME(fp_belief_at)(l, l_single, at), l_single, y);
        if (kind == FP_PRIOR_NONE)
            for (ptrdiff_t i = 0; i < m; i++)
                w[i] = weight;
        else
            FP_NAME(fp_belief_load)(m, FP_NAME(fp_belief_at)(prior, prior_single, at), prior_single, w);
        for (ptrdiff_t i = 0; i < m; i++)
            y[i] = w[i] == (known ? -INFINITY : 0.0) ? 0.0 : (y[i] - high) - low;
        if (kind == FP_PRIOR_PLAIN && FP_NAME(fp_belief_most)(m, y) > 600.0) {
            known = 1; /* e^y is beyond doubles, the posterior is not */
            for (ptrdiff_t i = 0; i < m; i++)
                v[i] = w[i] == 0.0 ? 0.0 : fp_exp(fp_log(w[i]) + y[i]);
        } else if (known) {
            for (ptrdiff_t i = 0; i < m; i++) {
                v[i] = fp_exp(w[i] + y[i]);
                w[i] = fp_exp(w[i]);
            }
        }
        FP_NAME(fp_second_tile)(all, m, known, &tile);
        if (posterior)
            for (ptrdiff_t i = 0; i < m; i++)
                posterior[at + i] = v[i];
    }
}
