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

FP_INLINE fp_v FP_NAME(fp_at)(const double *f)
{
    return *(const fp_vu *)f;
}

FP_INLINE double FP_NAME(fp_lanes_most)(fp_v a)
{
    double most = a[0];
    for (int j = 1; j < FP_W; j++)
        most = a[j] > most ? a[j] : most;
    return most;
}

FP_INLINE double FP_NAME(fp_lanes_sum)(fp_v a)
{
    double sum = a[0];
    for (int j = 1; j < FP_W; j++)
        sum += a[j];
    return sum;
}

/* log joint weights t of n secrets, n a multiple of 2 FP_W: `one` gets top, most, least and mass.  Returns whether every
 * l is a number below infinity and every prior a number that is not negative.  Where the prior is uniform t is l. */
FP_INLINE int FP_NAME(fp_first_weights)(ptrdiff_t n, const int kind, const double *l, const double *w, double shift,
                                        double *t, fp_first *one)
{
    const fp_v none = FP_NAME(fp_all)(-INFINITY), finite = FP_NAME(fp_all)(0x1.fffffffffffffp1023);
    fp_v top[2], most[2], fall[2], mass[2]; /* fall: the largest -l */
    fp_mask good[2];
    for (int s = 0; s < 2; s++) {
        top[s] = most[s] = fall[s] = none, mass[s] = (fp_v){0};
        good[s] = FP_FROM(finite, mass[s]);
    }
    for (ptrdiff_t i = 0; i < n; i += 2 * FP_W)
#pragma GCC unroll 2
        for (int s = 0; s < 2; s++) {
            const fp_v x = FP_NAME(fp_at)(l + i + s * FP_W);
            good[s] = (fp_mask)(good[s] & FP_FROM(finite, x));
            if (kind == FP_PRIOR_NONE) {
                most[s] = FP_MAX(x, most[s]);
                fall[s] = FP_MAX(-x, fall[s]);
                continue;
            }
            const fp_v given = FP_NAME(fp_at)(w + i + s * FP_W);
            const fp_v floor = FP_NAME(fp_all)(kind == FP_PRIOR_PLAIN ? 0x1p-1074 : -0x1.fffffffffffffp1023);
            const fp_mask live = FP_FROM(given, floor);
            fp_v log_w = given;
            if (kind == FP_PRIOR_PLAIN) {
                good[s] = (fp_mask)(good[s] & FP_FROM(given, (fp_v){0}));
                log_w = FP_NAME(fp_log_over)(given);
                mass[s] = mass[s] + given;
            } else {
                good[s] = (fp_mask)(good[s] & FP_FROM(FP_NAME(fp_all)(1.0), given));
                mass[s] = mass[s] + FP_KEPT(FP_FROM(given, FP_NAME(fp_all)(-690.0)),
                                            FP_NAME(fp_exp2)(given * FP_LOG2E));
            }
            const fp_v sum = FP_WHERE(live, (x - shift) + log_w, none);
            most[s] = FP_MAX(FP_WHERE(live, x, none), most[s]);
            fall[s] = FP_MAX(FP_WHERE(live, -x, none), fall[s]);
            top[s] = FP_MAX(sum, top[s]);
            *(fp_vu *)(t + i + s * FP_W) = sum;
        }
    one->most = FP_NAME(fp_lanes_most)(FP_MAX(most[0], most[1]));
    one->least = -FP_NAME(fp_lanes_most)(FP_MAX(fall[0], fall[1]));
    one->top = kind == FP_PRIOR_NONE ? one->most : FP_NAME(fp_lanes_most)(FP_MAX(top[0], top[1]));
    one->mass.high = FP_NAME(fp_lanes_sum)(mass[0] + mass[1]);
    return !FP_SOME((fp_mask)~(good[0] & good[1]));
}

/* ties, rest and moment of a tile whose largest t is one->top > -inf; n a multiple of 2 FP_W */
FP_INLINE void FP_NAME(fp_first_sums)(ptrdiff_t n, const double *t, fp_first *one)
{
    const fp_v top = FP_NAME(fp_all)(one->top), low = FP_NAME(fp_all)(-690.0);
    fp_v ties = {0}, rest[2] = {{0}, {0}}, moment[2] = {{0}, {0}};
    for (ptrdiff_t i = 0; i < n; i += 2 * FP_W)
#pragma GCC unroll 2
        for (int s = 0; s < 2; s++) {
            const fp_v d = FP_NAME(fp_at)(t + i + s * FP_W) - top;
            const fp_mask seen = FP_FROM(d, low), tied = FP_FROM(d, (fp_v){0});
            const fp_v e = FP_KEPT((fp_mask)(seen & ~tied), FP_NAME(fp_exp2)(d * FP_LOG2E));
            ties = ties + FP_KEPT(tied, FP_NAME(fp_all)(1.0));
            rest[s] = rest[s] + e;
            moment[s] = FP_FMA(e, FP_KEPT(seen, d), moment[s]);
        }
    one->ties = FP_NAME(fp_lanes_sum)(ties);
    one->rest.high = FP_NAME(fp_lanes_sum)(rest[0] + rest[1]);
    one->moment.high = FP_NAME(fp_lanes_sum)(moment[0] + moment[1]);
}

FP_INLINE ptrdiff_t FP_NAME(fp_up)(ptrdiff_t n)
{
    return (n + 2 * FP_W - 1) & ~(ptrdiff_t)(2 * FP_W - 1);
}

/* fills a tile's array of n numbers up to the next multiple of 2 FP_W */
FP_INLINE void FP_NAME(fp_fill)(ptrdiff_t n, double *f, double value)
{
    for (ptrdiff_t i = n; i < FP_NAME(fp_up)(n); i++)
        f[i] = value;
}

/* The first pass over n secrets whose l and w are filled up to a multiple of 2 FP_W, by the last l and by a prior of
 * zero; `room` is a tile's.  sums: 0 for the largest and smallest alone. */
FP_INLINE void FP_NAME(fp_first_part)(fp_first *all, fp_best *best, ptrdiff_t at, ptrdiff_t n, const int kind, int sums,
                                      double shift, const double *l, const double *w, double *room)
{
    fp_first one = fp_first_empty();
    const ptrdiff_t filled = FP_NAME(fp_up)(n);
    const double *t = room;
    if (!FP_NAME(fp_first_weights)(filled, kind, l, w, shift, room, &one))
        one.mass.high = NAN;
    else if (kind == FP_PRIOR_NONE)
        one.mass.high = (double)n;
    if (kind == FP_PRIOR_NONE && n == filled) {
        t = l;
    } else if (kind == FP_PRIOR_NONE) {
        for (ptrdiff_t i = 0; i < n; i++)
            room[i] = l[i];
        FP_NAME(fp_fill)(n, room, -INFINITY);
    }
    if (one.most > all->most || one.least < all->least) {
        ptrdiff_t most_at = -1, least_at = -1;
        for (ptrdiff_t i = n - 1; i >= 0; i--) {
            const int live = kind == FP_PRIOR_NONE || w[i] > (kind == FP_PRIOR_PLAIN ? 0.0 : -INFINITY);
            most_at = live && l[i] == one.most ? i : most_at;
            least_at = live && l[i] == one.least ? i : least_at;
        }
        one.most_at = at + most_at, one.least_at = at + least_at;
    }
    if (one.top > -INFINITY && (best->count < best->room || (best->room && one.top > best->t[0])))
        for (ptrdiff_t i = 0; i < n; i++)
            if (t[i] > -INFINITY)
                fp_best_offer(best, t[i], at + i);
    if (one.top > all->top)
        one.top_at = at + FP_NAME(fp_belief_place)(n, t, one.top);
    if (one.top > -INFINITY && sums)
        FP_NAME(fp_first_sums)(filled, t, &one);
    FP_NAME(fp_first_join)(all, &one);
}

/* The first pass over a tile of log likelihoods in l, under a uniform prior. */
FP_INLINE void FP_NAME(fp_first_tile)(fp_first *all, fp_best *best, ptrdiff_t at, ptrdiff_t n, fp_tile *tile)
{
    FP_NAME(fp_fill)(n, tile->l, tile->l[n - 1]);
    FP_NAME(fp_first_part)(all, best, at, n, FP_PRIOR_NONE, 1, 0.0, tile->l, NULL, tile->t);
}

/* One vector of the second pass: adds w (e^y - 1), w psi(y), w phi(y), all but the last to `excess` and `kl`, the last
 * doubled to `js`; returns the posterior w e^y.  y < 600, or the sums are not meant to be used. */
FP_INLINE fp_v FP_NAME(fp_second_step)(fp_v w, fp_v y, fp_v *excess, fp_v *kl, fp_v *js)
{
    const fp_v z = y * y;
    const fp_mask near = FP_FROM(FP_NAME(fp_all)(1.0 / 4), z), seen = FP_FROM(y, FP_NAME(fp_all)(-690.0));
    const fp_v r = FP_KEPT(seen, FP_NAME(fp_exp2)(y * FP_LOG2E)), v = w * r, s = w + v;
    fp_v a = v - w, b = {0}, c = {0};
    if (FP_SOME((fp_mask)~near)) {
        const fp_v reach = FP_KEPT(seen, y);
        b = FP_FMA(v, reach - 1.0, w);
        c = FP_FMA(s, FP_LOG2 - FP_NAME(fp_log_over)(1.0 + r), v * reach);
    }
    if (FP_SOME(near)) {
        fp_v tail = FP_NAME(fp_all)(fp_tanh_tail[6]), even = FP_NAME(fp_all)(fp_divergence_tail[6]);
        even = FP_FMA(FP_NAME(fp_all)(fp_divergence_tail[7]), z, even);
#pragma GCC unroll 6
        for (int i = 5; i >= 0; i--) {
            tail = FP_FMA(tail, z, FP_NAME(fp_all)(fp_tanh_tail[i]));
            even = FP_FMA(even, z, FP_NAME(fp_all)(fp_divergence_tail[i]));
        }
        const fp_v sz = s * z, half = FP_NAME(fp_all)(0.5);
        a = FP_WHERE(near, s * (y * FP_FMA(z, tail, half)), a);
        b = FP_WHERE(near, sz * FP_FMA(tail, FP_FMA(half, z, -y), FP_NAME(fp_all)(0.25)), b);
        c = FP_WHERE(near, sz * even, c);
    }
    *excess = *excess + a, *kl = *kl + b, *js = *js + c;
    return v;
}

/* The second pass over a tile that holds y in l, w, and the posterior in t where it is known; leaves it there. */
static void FP_NAME(fp_second_tile)(fp_second *all, ptrdiff_t n, int known, fp_tile *tile)
{
    double *restrict y = tile->l, *restrict w = tile->w;
    double *restrict v = tile->t, *restrict a = tile->a, *restrict b = tile->b, *restrict c = tile->c;
    if (known) {
        for (ptrdiff_t i = 0; i < n; i++)
            fp_second_terms(w[i], y[i], 1, &v[i], &a[i], &b[i], &c[i]);
        fp_long_add(&all->excess, FP_NAME(fp_belief_lanes)(n, a));
        fp_long_add(&all->kl, FP_NAME(fp_belief_lanes)(n, b));
        fp_long_add(&all->js, FP_NAME(fp_belief_lanes)(n, c));
        return;
    }
    const ptrdiff_t filled = FP_NAME(fp_up)(n);
    FP_NAME(fp_fill)(n, y, 0.0);
    FP_NAME(fp_fill)(n, w, 0.0);
    fp_v sums[2][3] = {{{0}}};
    for (ptrdiff_t i = 0; i < filled; i += 2 * FP_W)
#pragma GCC unroll 2
        for (int s = 0; s < 2; s++)
            *(fp_vu *)(v + i + s * FP_W) = FP_NAME(fp_second_step)(
                FP_NAME(fp_at)(w + i + s * FP_W), FP_NAME(fp_at)(y + i + s * FP_W), &sums[s][0], &sums[s][1],
                &sums[s][2]);
    fp_long_add(&all->excess, FP_NAME(fp_lanes_sum)(sums[0][0] + sums[1][0]));
    fp_long_add(&all->kl, FP_NAME(fp_lanes_sum)(sums[0][1] + sums[1][1]));
    fp_long_add(&all->js, 0.5 * FP_NAME(fp_lanes_sum)(sums[0][2] + sums[1][2]));
}

/* The second pass over n secrets, a multiple of 2 FP_W; returns whether all of it could be done so. */
FP_INLINE int FP_NAME(fp_second_part)(fp_second *all, ptrdiff_t n, const int kind, double weight, double high, double low,
                                      const double *l, const double *given, double *posterior)
{
    fp_v sums[2][3] = {{{0}}}, most[2];
    fp_mask bad[2];
    for (int s = 0; s < 2; s++)
        most[s] = FP_NAME(fp_all)(-INFINITY), bad[s] = FP_FROM(most[s], (fp_v){0});
    for (ptrdiff_t i = 0; i < n; i += 2 * FP_W)
#pragma GCC unroll 2
        for (int s = 0; s < 2; s++) {
            fp_v w = FP_NAME(fp_all)(weight), y = (FP_NAME(fp_at)(l + i + s * FP_W) - high) - low;
            if (kind != FP_PRIOR_NONE) {
                w = FP_NAME(fp_at)(given + i + s * FP_W);
                if (kind == FP_PRIOR_PLAIN) {
                    y = FP_KEPT(FP_FROM(w, FP_NAME(fp_all)(0x1p-1074)), y);
                    w = w * weight;
                } else {
                    const fp_mask live = FP_FROM(w, FP_NAME(fp_all)(-0x1.fffffffffffffp1023));
                    const fp_mask seen = FP_FROM(w, FP_NAME(fp_all)(-690.0));
                    bad[s] = (fp_mask)(bad[s] | (live & ~seen));
                    y = FP_KEPT(live, y);
                    w = FP_KEPT(seen, weight * FP_NAME(fp_exp2)(w * FP_LOG2E));
                }
            }
            most[s] = FP_MAX(y, most[s]);
            const fp_v v = FP_NAME(fp_second_step)(w, y, &sums[s][0], &sums[s][1], &sums[s][2]);
            if (posterior)
                *(fp_vu *)(posterior + i + s * FP_W) = v;
        }
    if (FP_SOME((fp_mask)(bad[0] | bad[1])) || FP_NAME(fp_lanes_most)(FP_MAX(most[0], most[1])) > 600.0)
        return 0;
    fp_long_add(&all->excess, FP_NAME(fp_lanes_sum)(sums[0][0] + sums[1][0]));
    fp_long_add(&all->kl, FP_NAME(fp_lanes_sum)(sums[0][1] + sums[1][1]));
    fp_long_add(&all->js, 0.5 * FP_NAME(fp_lanes_sum)(sums[0][2] + sums[1][2]));
    return 1;
}

/* n numbers from `at` on as doubles, n at most a tile: where they lie, or in `room`, filled up by `value` (the last
 * number where it is NaN) */
FP_INLINE const double *FP_NAME(fp_belief_numbers)(ptrdiff_t n, const void *source, int single, ptrdiff_t at,
                                                   double value, double *restrict room)
{
    if (!single) {
        const double *d = (const double *)source + at;
        if (n == FP_NAME(fp_up)(n))
            return d;
        for (ptrdiff_t i = 0; i < n; i++)
            room[i] = d[i];
    } else {
        const float *restrict f = (const float *)source + at;
        for (ptrdiff_t i = 0; i < n; i++)
            room[i] = f[i];
    }
    FP_NAME(fp_fill)(n, room, value == value ? value : room[n - 1]);
    return room;
}

static void FP_NAME(fp_first_block)(ptrdiff_t n, const void *l, int l_single, int kind, const void *prior,
                                    int prior_single, double shift, int sums, fp_first *all, fp_best *best)
{
    fp_tile tile;
    *all = fp_first_empty();
    for (ptrdiff_t at = 0; at < n; at += FP_TILE) {
        const ptrdiff_t m = n - at < FP_TILE ? n - at : FP_TILE;
        const double *x = FP_NAME(fp_belief_numbers)(m, l, l_single, at, NAN, tile.l), *w = NULL;
        if (kind != FP_PRIOR_NONE)
            w = FP_NAME(fp_belief_numbers)(m, prior, prior_single, at, kind == FP_PRIOR_PLAIN ? 0.0 : -INFINITY, tile.w);
        if (kind == FP_PRIOR_NONE)
            FP_NAME(fp_first_part)(all, best, at, m, FP_PRIOR_NONE, sums, 0.0, x, w, tile.t);
        else if (kind == FP_PRIOR_PLAIN)
            FP_NAME(fp_first_part)(all, best, at, m, FP_PRIOR_PLAIN, sums, shift, x, w, tile.t);
        else
            FP_NAME(fp_first_part)(all, best, at, m, FP_PRIOR_LOG, sums, shift, x, w, tile.t);
    }
}

/* The second pass over a tile where the posterior is a double and one of its factors is none, term by term. */
static void FP_NAME(fp_second_slow)(fp_second *all, ptrdiff_t n, int kind, double weight, double high, double low,
                                    const double *l, const double *given, fp_tile *tile)
{
    double *restrict y = tile->a, *restrict v = tile->t, *restrict w = tile->b, *restrict lw = tile->c;
    const double log_weight = fp_log(weight);
    for (ptrdiff_t i = 0; i < n; i++) {
        const double p = kind == FP_PRIOR_NONE ? 1.0 : given[i];
        lw[i] = kind == FP_PRIOR_LOG ? p + log_weight : fp_log(p) + log_weight;
        w[i] = weight * (kind == FP_PRIOR_LOG ? fp_exp(p) : p);
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        y[i] = lw[i] == -INFINITY ? 0.0 : (l[i] - high) - low;
        v[i] = fp_exp(lw[i] + y[i]);
    }
    for (ptrdiff_t i = 0; i < n; i++)
        tile->l[i] = y[i], tile->w[i] = w[i];
    FP_NAME(fp_second_tile)(all, n, 1, tile);
}

/* weight: the prior of each secret where it is uniform, else what the prior is multiplied by */
static void FP_NAME(fp_second_block)(ptrdiff_t n, const void *l, int l_single, int kind, const void *prior,
                                     int prior_single, double weight, double high, double low, fp_second *all,
                                     double *posterior)
{
    fp_tile tile;
    *all = (fp_second){{0}};
    for (ptrdiff_t at = 0; at < n; at += FP_TILE) {
        const ptrdiff_t m = n - at < FP_TILE ? n - at : FP_TILE, filled = FP_NAME(fp_up)(m);
        const double *x = FP_NAME(fp_belief_numbers)(m, l, l_single, at, NAN, tile.l), *w = NULL;
        int given = kind, done;
        if (kind != FP_PRIOR_NONE) {
            w = FP_NAME(fp_belief_numbers)(m, prior, prior_single, at, kind == FP_PRIOR_PLAIN ? 0.0 : -INFINITY, tile.w);
        } else if (m != filled) { /* what fills up must not count */
            for (ptrdiff_t i = 0; i < m; i++)
                tile.w[i] = 1.0;
            FP_NAME(fp_fill)(m, tile.w, 0.0);
            w = tile.w, given = FP_PRIOR_PLAIN;
        }
        double *to = !posterior ? NULL : m == filled ? posterior + at : tile.t;
        if (given == FP_PRIOR_NONE)
            done = FP_NAME(fp_second_part)(all, filled, FP_PRIOR_NONE, weight, high, low, x, w, to);
        else if (given == FP_PRIOR_PLAIN)
            done = FP_NAME(fp_second_part)(all, filled, FP_PRIOR_PLAIN, weight, high, low, x, w, to);
        else
            done = FP_NAME(fp_second_part)(all, filled, FP_PRIOR_LOG, weight, high, low, x, w, to);
        if (!done)
            FP_NAME(fp_second_slow)(all, m, given, weight, high, low, x, w, &tile);
        if (posterior && (!done || m != filled))
            for (ptrdiff_t i = 0; i < m; i++)
                posterior[at + i] = tile.t[i];
    }
}
