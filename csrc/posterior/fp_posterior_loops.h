/* Both passes over a tile and over a block; the mathematics is in fp_posterior.h. FP_GROUP vectors are processed
 * side by side, that is FP_STEP secrets. */
/* bounds: none - replaces a prior or a weight of 0 in a logarithm */
#include "common/fp_lanes_loops.h"
#include "common/fp_vector_loops.h"
#undef FP_STEP
#define FP_STEP (FP_GROUP * FP_W)

static ptrdiff_t FP_NAME(fp_first_index_of)(ptrdiff_t n, const double *f, double value)
{
    ptrdiff_t i = 0;
    while (i < n - 1 && f[i] != value)
        i++;
    return i;
}

/* Merge the sums of `one` into `all`. */
static void FP_NAME(fp_evidence_merge)(fp_evidence_sums *all, const fp_evidence_sums *one)
{
    fp_accumulator_add(&all->mass, one->mass.high);
    fp_accumulator_add(&all->mass, one->mass.low);
    if (one->most > all->most)
        all->most = one->most, all->most_at = one->most_at;
    if (one->least < all->least)
        all->least = one->least, all->least_at = one->least_at;
    if (one->top == -INFINITY)
        return;
    fp_evidence_sums other = *one;
    if (one->top > all->top) {
        other = *all;
        all->top = one->top, all->top_at = one->top_at, all->ties = one->ties;
        all->rest = one->rest, all->moment = one->moment;
    }
    if (other.top == -INFINITY)
        return;
    const double reference = fp_evidence_reference(all->top), d = other.top - reference;
    if (other.top == all->top) {
        all->ties += other.ties;
    } else {
        const double e = fp_exp(d);
        fp_accumulator_add(&all->rest, e * other.ties);
        fp_accumulator_add(&all->moment, e * d * other.ties);
    }
    const double shift = fp_evidence_reference(other.top) - reference, factor = shift == 0.0 ? 1.0 : fp_exp(shift);
    if (factor > 0.0) { /* a factor of 1 rounds nothing */
        fp_accumulator_add(&all->rest, factor * other.rest.high);
        fp_accumulator_add(&all->rest, factor * other.rest.low);
        fp_accumulator_add(&all->moment, factor * (other.moment.high + shift * other.rest.high));
        fp_accumulator_add(&all->moment, factor * (other.moment.low + shift * other.rest.low));
    }
}

FP_INLINE fp_v FP_NAME(fp_load)(const double *f)
{
    return *(const fp_vu *)f;
}

FP_INLINE double FP_NAME(fp_vector_max)(fp_v a)
{
    double most = a[0];
    for (int j = 1; j < FP_W; j++)
        most = a[j] > most ? a[j] : most;
    return most;
}

FP_INLINE double FP_NAME(fp_vector_sum)(fp_v a)
{
    double sum = a[0];
    for (int j = 1; j < FP_W; j++)
        sum += a[j];
    return sum;
}

/* The maximum of a group of vectors. */
FP_INLINE fp_v FP_NAME(fp_group_max)(const fp_v *a)
{
    fp_v most = a[0];
    for (int s = 1; s < FP_GROUP; s++)
        most = FP_MAX(a[s], most);
    return most;
}

/* The sum of a group of vectors. */
FP_INLINE double FP_NAME(fp_group_sum)(const fp_v *a)
{
    fp_v sum = a[0];
    for (int s = 1; s < FP_GROUP; s++)
        sum = sum + a[s];
    return FP_NAME(fp_vector_sum)(sum);
}

/* Log joint weights t of n secrets, n a multiple of FP_STEP; `one` receives top, most, least and mass. Returns
 * whether every l is a number below infinity and every prior is a number that is not negative. Where the prior is
 * uniform, t is l. */
FP_INLINE int FP_NAME(fp_evidence_joint_weights)(ptrdiff_t n, const int kind, const double *l, const double *w,
                                                 double shift, double *t, fp_evidence_sums *one)
{
    const fp_v none = FP_NAME(fp_broadcast)(-INFINITY), finite = FP_NAME(fp_broadcast)(0x1.fffffffffffffp1023);
    fp_v top[FP_GROUP], most[FP_GROUP], fall[FP_GROUP], mass[FP_GROUP]; /* fall: the largest -l */
    fp_mask good = FP_GE(finite, (fp_v){0});
    for (int s = 0; s < FP_GROUP; s++) {
        top[s] = most[s] = fall[s] = none, mass[s] = (fp_v){0};
    }
    const fp_v floor = FP_NAME(fp_broadcast)(kind == FP_PRIOR_PLAIN ? 0x1p-1074 : -0x1.fffffffffffffp1023);
    for (ptrdiff_t i = 0; i < n; i += FP_STEP) {
        fp_v given[FP_GROUP], other[FP_GROUP]; /* the prior; its logarithm, or where that is given its exponential */
#pragma GCC unroll 4
        for (int s = 0; s < FP_GROUP && kind != FP_PRIOR_NONE; s++) {
            given[s] = FP_NAME(fp_load)(w + i + s * FP_W);
            other[s] = given[s] * (kind == FP_PRIOR_PLAIN ? 1.0 : FP_LOG2E);
        }
        if (kind == FP_PRIOR_PLAIN)
            FP_NAME(fp_log_group)(FP_GROUP, other, other);
        if (kind == FP_PRIOR_LOG)
            FP_NAME(fp_exp2_group)(FP_GROUP, other, other);
#pragma GCC unroll 4
        for (int s = 0; s < FP_GROUP; s++) {
            const fp_v x = FP_NAME(fp_load)(l + i + s * FP_W);
            good = (fp_mask)(good & FP_GE(finite, x));
            if (kind == FP_PRIOR_NONE) {
                most[s] = FP_MAX(x, most[s]);
                fall[s] = FP_MAX(-x, fall[s]);
                continue;
            }
            const fp_mask live = FP_GE(given[s], floor);
            if (kind == FP_PRIOR_PLAIN) {
                good = (fp_mask)(good & FP_GE(given[s], (fp_v){0}));
                mass[s] = mass[s] + given[s];
            } else {
                good = (fp_mask)(good & FP_GE(FP_NAME(fp_broadcast)(1.0), given[s]));
                mass[s] = mass[s] + FP_MASKED(FP_GE(given[s], FP_NAME(fp_broadcast)(-690.0)), other[s]);
            }
            const fp_v sum = FP_WHERE(live, (x - shift) + (kind == FP_PRIOR_PLAIN ? other[s] : given[s]), none);
            most[s] = FP_MAX(FP_WHERE(live, x, none), most[s]);
            fall[s] = FP_MAX(FP_WHERE(live, -x, none), fall[s]);
            top[s] = FP_MAX(sum, top[s]);
            *(fp_vu *)(t + i + s * FP_W) = sum;
        }
    }
    one->most = FP_NAME(fp_vector_max)(FP_NAME(fp_group_max)(most));
    one->least = -FP_NAME(fp_vector_max)(FP_NAME(fp_group_max)(fall));
    one->top = kind == FP_PRIOR_NONE ? one->most : FP_NAME(fp_vector_max)(FP_NAME(fp_group_max)(top));
    one->mass.high = FP_NAME(fp_group_sum)(mass);
    return FP_ALL(good);
}

/* ties, rest and moment of a tile whose largest t is one->top > -inf; n is a multiple of FP_STEP. */
FP_INLINE void FP_NAME(fp_evidence_tile_sums)(ptrdiff_t n, const double *t, fp_evidence_sums *one)
{
    const fp_v top = FP_NAME(fp_broadcast)(one->top), low = FP_NAME(fp_broadcast)(-690.0);
    const fp_v reference = FP_NAME(fp_broadcast)(fp_evidence_reference(one->top));
    fp_v ties = {0}, rest[FP_GROUP], moment[FP_GROUP];
    for (int s = 0; s < FP_GROUP; s++)
        rest[s] = moment[s] = (fp_v){0};
    for (ptrdiff_t i = 0; i < n; i += FP_STEP) {
        fp_v all[FP_GROUP], d[FP_GROUP], e[FP_GROUP];
#pragma GCC unroll 4
        for (int s = 0; s < FP_GROUP; s++) {
            all[s] = FP_NAME(fp_load)(t + i + s * FP_W);
            d[s] = all[s] - reference;
            e[s] = d[s] * FP_LOG2E;
        }
        FP_NAME(fp_exp2_group)(FP_GROUP, e, e);
#pragma GCC unroll 4
        for (int s = 0; s < FP_GROUP; s++) {
            const fp_mask seen = FP_GE(d[s], low), tied = FP_GE(all[s], top);
            e[s] = FP_MASKED((fp_mask)(seen & ~tied), e[s]);
            ties = ties + FP_MASKED(tied, FP_NAME(fp_broadcast)(1.0));
            rest[s] = rest[s] + e[s];
            moment[s] = FP_FMA(e[s], FP_MASKED(seen, d[s]), moment[s]);
        }
    }
    one->ties = FP_NAME(fp_vector_sum)(ties);
    one->rest.high = FP_NAME(fp_group_sum)(rest);
    one->moment.high = FP_NAME(fp_group_sum)(moment);
}

FP_INLINE ptrdiff_t FP_NAME(fp_round_up)(ptrdiff_t n)
{
    return (n + FP_STEP - 1) & ~(ptrdiff_t)(FP_STEP - 1);
}

/* Fill an array of n numbers of a tile up to the next multiple of FP_STEP. */
FP_INLINE void FP_NAME(fp_fill_up)(ptrdiff_t n, double *f, double value)
{
    for (ptrdiff_t i = n; i < FP_NAME(fp_round_up)(n); i++)
        f[i] = value;
}

/* The first pass over n secrets whose l and w are filled up to a multiple of FP_STEP, by the last l and by a prior
 * of zero; `workspace` is that of a tile. sums = 0 computes only the largest and the smallest. */
FP_INLINE void FP_NAME(fp_evidence_tile_add)(fp_evidence_sums *all, fp_largest_weights *best, ptrdiff_t at, ptrdiff_t n,
                                             const int kind, int sums, double shift, const double *l, const double *w,
                                             double *workspace)
{
    fp_evidence_sums one = fp_evidence_sums_empty();
    const ptrdiff_t filled = FP_NAME(fp_round_up)(n);
    const double *t = workspace;
    if (!FP_NAME(fp_evidence_joint_weights)(filled, kind, l, w, shift, workspace, &one))
        one.mass.high = NAN;
    else if (kind == FP_PRIOR_NONE)
        one.mass.high = (double)n;
    if (kind == FP_PRIOR_NONE && n == filled) {
        t = l;
    } else if (kind == FP_PRIOR_NONE) {
        for (ptrdiff_t i = 0; i < n; i++)
            workspace[i] = l[i];
        FP_NAME(fp_fill_up)(n, workspace, -INFINITY);
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
    if (one.top > -INFINITY && (best->count < best->capacity || (best->capacity && one.top > best->t[0])))
        for (ptrdiff_t i = 0; i < n; i++)
            if (t[i] > -INFINITY)
                fp_largest_weights_offer(best, t[i], at + i);
    if (one.top > all->top)
        one.top_at = at + FP_NAME(fp_first_index_of)(n, t, one.top);
    if (one.top > -INFINITY && sums)
        FP_NAME(fp_evidence_tile_sums)(filled, t, &one);
    FP_NAME(fp_evidence_merge)(all, &one);
}

/* The first pass over a tile of log likelihoods in l, under a uniform prior. */
FP_INLINE void FP_NAME(fp_evidence_uniform_tile)(fp_evidence_sums *all, fp_largest_weights *best, ptrdiff_t at,
                                                 ptrdiff_t n, fp_tile *tile)
{
    FP_NAME(fp_fill_up)(n, tile->l, tile->l[n - 1]);
    FP_NAME(fp_evidence_tile_add)(all, best, at, n, FP_PRIOR_NONE, 1, 0.0, tile->l, NULL, tile->t);
}

/* The second pass over a group of vectors: add w (e^y - 1), w psi(y), w phi(y) to `excess`, `kl` and, doubled, to
 * `js`; v is the posterior w e^y. For y >= 600 the sums must not be used. With r = e^y, q = min(r, 1) / (min(r, 1)
 * + 2 max(r, 1)) is tanh(log(1 + e^-|y|) / 2), so that log(1 + e^-|y|) takes no logarithm. */
FP_INLINE void FP_NAME(fp_divergence_group)(const fp_v *w, const fp_v *y, fp_v (*sums)[3], fp_v *v)
{
    const fp_v one = FP_NAME(fp_broadcast)(1.0), half = FP_NAME(fp_broadcast)(0.5);
    fp_v r[FP_GROUP], a[FP_GROUP], b[FP_GROUP], c[FP_GROUP];
    fp_mask every = FP_GE(one, one), some = (fp_mask){0};
#pragma GCC unroll 4
    for (int s = 0; s < FP_GROUP; s++) {
        const fp_mask near = FP_GE(FP_NAME(fp_broadcast)(1.0 / 4), y[s] * y[s]);
        every = (fp_mask)(every & near), some = (fp_mask)(some | near);
        r[s] = y[s] * FP_LOG2E;
    }
    FP_NAME(fp_exp2_group)(FP_GROUP, r, r);
#pragma GCC unroll 4
    for (int s = 0; s < FP_GROUP; s++) {
        r[s] = FP_MASKED(FP_GE(y[s], FP_NAME(fp_broadcast)(-690.0)), r[s]);
        v[s] = w[s] * r[s];
        a[s] = v[s] - w[s];
        b[s] = c[s] = (fp_v){0};
    }
    if (!FP_ALL(every)) {
        fp_v q[FP_GROUP], z[FP_GROUP], tail[FP_GROUP];
#pragma GCC unroll 4
        for (int s = 0; s < FP_GROUP; s++) {
            const fp_v small = FP_MIN(r[s], one), large = FP_MAX(r[s], one);
            q[s] = small / FP_FMA(FP_NAME(fp_broadcast)(2.0), large, small);
            z[s] = q[s] * q[s];
            tail[s] = FP_NAME(fp_broadcast)(fp_atanh_tail[7]);
        }
#pragma GCC unroll 7
        for (int i = 6; i >= 0; i--)
#pragma GCC unroll 4
            for (int s = 0; s < FP_GROUP; s++)
                tail[s] = FP_FMA(tail[s], z[s], FP_NAME(fp_broadcast)(fp_atanh_tail[i]));
#pragma GCC unroll 4
        for (int s = 0; s < FP_GROUP; s++) {
            const fp_v next_terms = FP_MASKED(FP_GE(y[s], FP_NAME(fp_broadcast)(-690.0)), y[s]),
                       size = FP_MAX(next_terms, -next_terms);
            const fp_v part = (FP_LN2 - (q[s] + q[s])) - (q[s] * z[s]) * tail[s];
            b[s] = FP_FMA(v[s], next_terms - one, w[s]);
            c[s] = (w[s] + v[s]) * part - FP_MIN(v[s], w[s]) * size;
        }
    }
    if (FP_ANY(some)) {
        fp_v z[FP_GROUP], tail[FP_GROUP], even[FP_GROUP];
#pragma GCC unroll 4
        for (int s = 0; s < FP_GROUP; s++) {
            z[s] = y[s] * y[s];
            tail[s] = FP_NAME(fp_broadcast)(fp_tanh_tail[6]);
            even[s] = FP_FMA(FP_NAME(fp_broadcast)(fp_divergence_tail[7]), z[s],
                             FP_NAME(fp_broadcast)(fp_divergence_tail[6]));
        }
#pragma GCC unroll 6
        for (int i = 5; i >= 0; i--)
#pragma GCC unroll 4
            for (int s = 0; s < FP_GROUP; s++) {
                tail[s] = FP_FMA(tail[s], z[s], FP_NAME(fp_broadcast)(fp_tanh_tail[i]));
                even[s] = FP_FMA(even[s], z[s], FP_NAME(fp_broadcast)(fp_divergence_tail[i]));
            }
#pragma GCC unroll 4
        for (int s = 0; s < FP_GROUP; s++) {
            const fp_mask near = FP_GE(FP_NAME(fp_broadcast)(1.0 / 4), z[s]);
            const fp_v sum = w[s] + v[s], sz = sum * z[s];
            a[s] = FP_WHERE(near, sum * (y[s] * FP_FMA(z[s], tail[s], half)), a[s]);
            b[s] = FP_WHERE(near, sz * FP_FMA(tail[s], FP_FMA(half, z[s], -y[s]), FP_NAME(fp_broadcast)(0.25)), b[s]);
            c[s] = FP_WHERE(near, sz * even[s], c[s]);
        }
    }
#pragma GCC unroll 4
    for (int s = 0; s < FP_GROUP; s++)
        sums[s][0] = sums[s][0] + a[s], sums[s][1] = sums[s][1] + b[s], sums[s][2] = sums[s][2] + c[s];
}

/* Add the sums of a tile. */
FP_INLINE void FP_NAME(fp_divergence_add)(fp_divergence_sums *all, fp_v (*sums)[3])
{
    fp_v total[3] = {sums[0][0], sums[0][1], sums[0][2]};
    for (int s = 1; s < FP_GROUP; s++)
        for (int k = 0; k < 3; k++)
            total[k] = total[k] + sums[s][k];
    fp_accumulator_add(&all->excess, FP_NAME(fp_vector_sum)(total[0]));
    fp_accumulator_add(&all->kl, FP_NAME(fp_vector_sum)(total[1]));
    fp_accumulator_add(&all->js, 0.5 * FP_NAME(fp_vector_sum)(total[2]));
}

/* The second pass over a tile that holds y in l, w, and the posterior in t where it is known; it leaves the
 * posterior there. */
static void FP_NAME(fp_divergence_tile)(fp_divergence_sums *all, ptrdiff_t n, int known, fp_tile *tile)
{
    double *restrict y = tile->l, *restrict w = tile->w;
    double *restrict v = tile->t, *restrict a = tile->a, *restrict b = tile->b, *restrict c = tile->c;
    if (known) {
        for (ptrdiff_t i = 0; i < n; i++)
            fp_divergence_terms(w[i], y[i], 1, &v[i], &a[i], &b[i], &c[i]);
        fp_accumulator_add(&all->excess, FP_NAME(fp_ordered_sum)(n, a));
        fp_accumulator_add(&all->kl, FP_NAME(fp_ordered_sum)(n, b));
        fp_accumulator_add(&all->js, FP_NAME(fp_ordered_sum)(n, c));
        return;
    }
    const ptrdiff_t filled = FP_NAME(fp_round_up)(n);
    FP_NAME(fp_fill_up)(n, y, 0.0);
    FP_NAME(fp_fill_up)(n, w, 0.0);
    fp_v sums[FP_GROUP][3] = {{{0}}};
    for (ptrdiff_t i = 0; i < filled; i += FP_STEP) {
        fp_v prior[FP_GROUP], ratio[FP_GROUP], after[FP_GROUP];
#pragma GCC unroll 4
        for (int s = 0; s < FP_GROUP; s++)
            prior[s] = FP_NAME(fp_load)(w + i + s * FP_W), ratio[s] = FP_NAME(fp_load)(y + i + s * FP_W);
        FP_NAME(fp_divergence_group)(prior, ratio, sums, after);
#pragma GCC unroll 4
        for (int s = 0; s < FP_GROUP; s++)
            *(fp_vu *)(v + i + s * FP_W) = after[s];
    }
    FP_NAME(fp_divergence_add)(all, sums);
}

/* The second pass over n secrets, a multiple of FP_STEP; returns whether all of it could be done so. */
FP_INLINE int FP_NAME(fp_divergence_part)(fp_divergence_sums *all, ptrdiff_t n, const int kind, double weight,
                                          double high, double low, const double *l, const double *given,
                                          double *posterior)
{
    const fp_v least = FP_NAME(fp_broadcast)(-690.0);
    fp_v sums[FP_GROUP][3] = {{{0}}}, most = FP_NAME(fp_broadcast)(-INFINITY);
    fp_mask bad = FP_GE(most, (fp_v){0});
    for (ptrdiff_t i = 0; i < n; i += FP_STEP) {
        fp_v w[FP_GROUP], y[FP_GROUP], v[FP_GROUP];
#pragma GCC unroll 4
        for (int s = 0; s < FP_GROUP; s++) {
            y[s] = (FP_NAME(fp_load)(l + i + s * FP_W) - high) - low;
            w[s] = kind == FP_PRIOR_NONE ? FP_NAME(fp_broadcast)(weight) : FP_NAME(fp_load)(given + i + s * FP_W);
        }
        if (kind == FP_PRIOR_PLAIN)
#pragma GCC unroll 4
            for (int s = 0; s < FP_GROUP; s++) {
                y[s] = FP_MASKED(FP_GE(w[s], FP_NAME(fp_broadcast)(0x1p-1074)), y[s]);
                w[s] = w[s] * weight;
            }
        if (kind == FP_PRIOR_LOG) {
            fp_v power[FP_GROUP];
#pragma GCC unroll 4
            for (int s = 0; s < FP_GROUP; s++)
                power[s] = w[s] * FP_LOG2E;
            FP_NAME(fp_exp2_group)(FP_GROUP, power, power);
#pragma GCC unroll 4
            for (int s = 0; s < FP_GROUP; s++) {
                const fp_mask live = FP_GE(w[s], FP_NAME(fp_broadcast)(-0x1.fffffffffffffp1023)),
                              seen = FP_GE(w[s], least);
                bad = (fp_mask)(bad | (live & ~seen));
                y[s] = FP_MASKED(live, y[s]);
                w[s] = FP_MASKED(seen, weight * power[s]);
            }
        }
#pragma GCC unroll 4
        for (int s = 0; s < FP_GROUP; s++)
            most = FP_MAX(y[s], most);
        FP_NAME(fp_divergence_group)(w, y, sums, v);
        if (posterior)
#pragma GCC unroll 4
            for (int s = 0; s < FP_GROUP; s++)
                *(fp_vu *)(posterior + i + s * FP_W) = v[s];
    }
    if (FP_ANY(bad) || FP_NAME(fp_vector_max)(most) > 600.0)
        return 0;
    FP_NAME(fp_divergence_add)(all, sums);
    return 1;
}

/* n numbers from `at` on as doubles, n at most a tile: where they are, or copied to `workspace` and filled up by
 * `value` (by the last number where it is NaN). */
FP_INLINE const double *FP_NAME(fp_load_doubles)(ptrdiff_t n, const void *source, int single, ptrdiff_t at,
                                                   double value, double *restrict workspace)
{
    if (!single) {
        const double *d = (const double *)source + at;
        if (n == FP_NAME(fp_round_up)(n))
            return d;
        for (ptrdiff_t i = 0; i < n; i++)
            workspace[i] = d[i];
    } else {
        const float *restrict f = (const float *)source + at;
        for (ptrdiff_t i = 0; i < n; i++)
            workspace[i] = f[i];
    }
    FP_NAME(fp_fill_up)(n, workspace, value == value ? value : workspace[n - 1]);
    return workspace;
}

static void FP_NAME(fp_evidence_block)(ptrdiff_t n, const void *l, int l_single, int kind, const void *prior,
                                       int prior_single, double shift, int sums, fp_evidence_sums *all,
                                       fp_largest_weights *best)
{
    fp_tile tile;
    *all = fp_evidence_sums_empty();
    for (ptrdiff_t at = 0; at < n; at += FP_TILE) {
        const ptrdiff_t m = n - at < FP_TILE ? n - at : FP_TILE;
        const double *x = FP_NAME(fp_load_doubles)(m, l, l_single, at, NAN, tile.l), *w = NULL;
        if (kind != FP_PRIOR_NONE)
            w = FP_NAME(fp_load_doubles)(m, prior, prior_single, at, kind == FP_PRIOR_PLAIN ? 0.0 : -INFINITY, tile.w);
        if (kind == FP_PRIOR_NONE)
            FP_NAME(fp_evidence_tile_add)(all, best, at, m, FP_PRIOR_NONE, sums, 0.0, x, w, tile.t);
        else if (kind == FP_PRIOR_PLAIN)
            FP_NAME(fp_evidence_tile_add)(all, best, at, m, FP_PRIOR_PLAIN, sums, shift, x, w, tile.t);
        else
            FP_NAME(fp_evidence_tile_add)(all, best, at, m, FP_PRIOR_LOG, sums, shift, x, w, tile.t);
    }
}

/* The second pass term by term, for a tile in which the posterior is a double but one of its factors is not. */
static void FP_NAME(fp_divergence_scalar)(fp_divergence_sums *all, ptrdiff_t n, int kind, double weight, double high,
                                          double low, const double *l, const double *given, fp_tile *tile)
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
    FP_NAME(fp_divergence_tile)(all, n, 1, tile);
}

/* weight: the prior of each secret where the prior is uniform, else the factor of the prior. */
static void FP_NAME(fp_divergence_block)(ptrdiff_t n, const void *l, int l_single, int kind, const void *prior,
                                     int prior_single, double weight, double high, double low, fp_divergence_sums *all,
                                     double *posterior)
{
    fp_tile tile;
    *all = (fp_divergence_sums){{0}};
    for (ptrdiff_t at = 0; at < n; at += FP_TILE) {
        const ptrdiff_t m = n - at < FP_TILE ? n - at : FP_TILE, filled = FP_NAME(fp_round_up)(m);
        const double *x = FP_NAME(fp_load_doubles)(m, l, l_single, at, NAN, tile.l), *w = NULL;
        int given = kind, done;
        if (kind != FP_PRIOR_NONE) {
            w = FP_NAME(fp_load_doubles)(m, prior, prior_single, at, kind == FP_PRIOR_PLAIN ? 0.0 : -INFINITY, tile.w);
        } else if (m != filled) { /* entries that fill up the tile must not count */
            for (ptrdiff_t i = 0; i < m; i++)
                tile.w[i] = 1.0;
            FP_NAME(fp_fill_up)(m, tile.w, 0.0);
            w = tile.w, given = FP_PRIOR_PLAIN;
        }
        double *to = !posterior ? NULL : m == filled ? posterior + at : tile.t;
        if (given == FP_PRIOR_NONE)
            done = FP_NAME(fp_divergence_part)(all, filled, FP_PRIOR_NONE, weight, high, low, x, w, to);
        else if (given == FP_PRIOR_PLAIN)
            done = FP_NAME(fp_divergence_part)(all, filled, FP_PRIOR_PLAIN, weight, high, low, x, w, to);
        else
            done = FP_NAME(fp_divergence_part)(all, filled, FP_PRIOR_LOG, weight, high, low, x, w, to);
        if (!done)
            FP_NAME(fp_divergence_scalar)(all, m, given, weight, high, low, x, w, &tile);
        if (posterior && (!done || m != filled))
            for (ptrdiff_t i = 0; i < m; i++)
                posterior[at + i] = tile.t[i];
    }
}
