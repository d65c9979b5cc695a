/* delta(epsilon) of a composition, and e^epsilon Q(S > epsilon), by sums along a contour over a product of factors.
 *
 * Notation. Pair i is composed count_i times; l = log(p/q) its loss, M(z) = E_P e^(z l), kappa(t) = log M(t); S the
 * sum of all losses under P. For t > 0,
 * with z_n = t + i n h and period = 2 pi / h,
 *     h/pi Re[ f(z_0)/2 + sum_{n >= 1} f(z_n) ] = sum over integers j of delta(epsilon + j period) e^(t j period),
 *     f(z) = e^(-epsilon z) prod M_i(z)^count_i / (z (z + 1)),
 * whose terms are >= 0, that of j = 0 being delta(epsilon). docs/proofs/contour.md, theorem 2.1 has this and bounds of
 * the aliases j != 0; docs/proofs/contour.md, theorem 2.2 bounds the terms beyond the last frequency and 2.3 how a
 * bound of |m| at one frequency bounds it at others; 2.4 the frequencies that are passed by where |m| returns to near
 * 1, with D(w)^2 = 2 sum count_i (1 - |m_i(w)|^2) the square of a norm and prod |m_i|^count_i <= e^(-D^2 / 4).
 *
 * The tail a(x) = e^x Q(S > x) has 1 / (z + 1) for 1 / (z (z + 1)); Q(S > x) is replaced by its means over intervals of
 * length s = FP_CONTOUR_SMOOTHING / (t + 1) (2.5). The lower tail P(S <= x) = P(-S >= -x) has the moments M(-z) and 1 /
 * z, 0 < t < 1 (2.6): left of its pole at 0 the kernel 1/z sums the other tail, with its own digits. In the code this
 * is a composition of side -1, of the sum -S at -epsilon. That of the reversed pair, whose S is -S, has Q(S >= epsilon)
 * at -epsilon: the tail by t - 1 in (-1, 0), where epsilon is far below the mean of S under P.
 *
 * Tables. The terms at one t serve all epsilons whose saddle point is near: t is taken from a grid t_i, of which the
 * curvature of the exponent at the saddle point says how dense it must be. The result at an epsilon depends on the
 * composition alone, not on the other epsilons.
 */
/* bounds: proved - rounding of sums along the contour, docs/proofs/contour.md, theorem 2.16 */
#ifndef FP_CONTOUR_SOLVER_H
#define FP_CONTOUR_SOLVER_H

#include "common/fp_dd.h"
#include "composition/fp_contour_closed_forms.h"
#include "composition/fp_contour_one_sigma.h"
#include "composition/fp_contour_several_sigmas_solver.h"

#define FP_CONTOUR_TERMS (1 << 20) /* frequencies of a table, */
#define FP_CONTOUR_KEPT (1 << 21) /* and of all tables: 84 MB */
#define FP_CONTOUR_WORK 4e8 /* nodes times frequencies of a table */
/* bound: none - exponent of the error aimed at by the search of t and by Chernoff's bound, which adds what it errs by
 */
#define FP_CONTOUR_SEARCH_AIM 20.0
/* bound: none - log of what an error of quadrature may be multiplied by before the aim is raised */
#define FP_CONTOUR_SPARE 14.0
/* bound: proved - the interval, in units of 1/(t+1), over which the tail is averaged; it enters the bounds */
#define FP_CONTOUR_SMOOTHING 1e-14
/* bound: none - relative width from which a nearer table is tried */
#define FP_CONTOUR_WIDE 1e-10

/* bound: none - times the frequency up to which no bound of |m| below 1 is known from which none is expected: 512 of
 * fp_contour_rest from there on are beyond all terms of a table */
#define FP_CONTOUR_FAR 512.0
/* bound: none - times e^this further than now terms that do not fall are not summed, beyond so many of them */
#define FP_CONTOUR_HOPE 4.0
#define FP_CONTOUR_FLAT (1 << 16)

#define FP_SLOTS_PER_OCTAVE 64
#define FP_SLOTS (2 * 40 * FP_SLOTS_PER_OCTAVE + 1) /* t from 2^-40 to 2^40 */
#define FP_CONTOUR_TABLES 64
#define FP_CONTOUR_TILTS 32 /* nodes of tilted pairs that compositions of one pair share */
#define FP_CONTOUR_CHERNOFF 16 /* values of t' */
#define FP_CONTOUR_LADDER 192 /* frequencies 2^(j/2 - 16) at which bounds of |m| are known */

enum { FP_CONTOUR_DELTA = 0, FP_CONTOUR_TAIL = 1 };
/* The quantity of the side -1, in the place of the first */
#define FP_CONTOUR_LOWER 0

/* Must be called once, before any composition. */
static inline void fp_contour_select(void)
{
    fp_contour_one_sigma_select();
    fp_contour_several_select();
    fp_contour_selected = (fp_contour_kernels){FP_SELECT(fp_contour_sums), FP_SELECT(fp_contour_cosines)};
}

/* sum count kappa with its error, sum count mean, sum count variance at one t */
typedef struct {
    double t, value, error, slope, variance;
    int known; /* 0: not computed; 1; -1: not computable, t is too large */
    int slow[2]; /* of fp_contour_shell_tables_solver.h */
} fp_contour_slot;

/* Moments of one release at the t of a slot, which compositions of one pair with different counts share; `status` is
 * that of `build`. Counts of second order have moments of their own. */
typedef struct {
    double aim, kappa, kappa_error, mean, variance;
    fp_dd offset;
    int known, status, many, nodes;
} fp_contour_release;

/* The nodes of one tilted release at the t of a slot, for frequencies up to `design`, with its ladder */
typedef struct {
    int slot, many; /* slot: 0 where there is none, or it is not complete; slot 0 itself is not stored */
    unsigned long used;
    double design, aim, ladder[FP_CONTOUR_LADDER];
    fp_contour_factor factor;
} fp_contour_tilt;

typedef struct {
    int slot, terms, padded, status; /* status: 1 where a budget was spent */
    unsigned long used;
    double t, h, period, centre; /* epsilon at which the angles are given */
    fp_dd scale;                 /* sum count kappa - log(t (t + 1)) for delta, - log(t + 1) for the tail */
    double scale_error, frequency, log_rest; /* log_rest: of prod rho^count beyond the last frequency */
    double longest;                          /* frequencies of the longest run, times h */
    double cut[2], log_payoff[2], log_h, log_below; /* of the bounds at any epsilon: they wait for no logarithm */
    double *size[2], *angle[2], *block; /* of the terms, without e^scale */
    double *first;                      /* of each block of FP_CONTOUR_AT_ONCE terms: n of its first frequency */
    double error[2], moment[2];         /* what the sums err by, at the centre and for each unit away from it */
    double chernoff_t[FP_CONTOUR_CHERNOFF], chernoff[FP_CONTOUR_CHERNOFF][2];
    int chernoffs;
} fp_contour_table;

typedef struct {
    int n, side; /* side: 1 for the sum S of the losses, -1 for -S */
    fp_contour_factor *factors;
    double largest_t, log_mass;
    double cut; /* how far the sums are taken, and the largest aliases, relative to the value; both enter the bounds */
    double saddle[3]; /* epsilon, place and curvature of the last one found */
    int start;  /* the slot from which a saddle point is sought; 0: from the middle. It has no effect on the place. */
    int single; /* whether there is one epsilon alone, for which no table is made that serves others too */
    int power;  /* of fp_contour_rest, there: the one that was enough */
    fp_contour_slot *slots;
    fp_contour_table *tables[FP_CONTOUR_TABLES];
    int n_tables;
    fp_contour_release *releases; /* of FP_SLOTS, the caller's, where there is one factor; else NULL */
    fp_contour_tilt *tilts;       /* of FP_CONTOUR_TILTS, likewise */
    fp_contour_tilt *stored;      /* the last one of them that was used */
    double work;                  /* nodes times frequencies of a table, at most */
    int first_slot, last_slot;    /* of those that are known */
    void *shells; /* tables of fp_contour_shell_tables_solver.h */
    unsigned long clock;
    double *ladder; /* of each factor: decay at frequencies of the ladder, for the table being made; -1: not computed */
    long nodes, terms, made; /* cost */
} fp_composition;

typedef struct {
    double value, lower, upper; /* logarithms */
} fp_contour_answer;

static inline void fp_composition_free(fp_composition *c)
{
    for (int i = 0; i < c->n_tables; i++) {
        free(c->tables[i]->block);
        free(c->tables[i]);
    }
    free(c->slots), free(c->ladder);
    memset(c, 0, sizeof *c);
}

/* `factors` stay the caller's; compositions of both sides may share them. -1 without memory. */
static inline int fp_composition_make(fp_composition *c, int n, fp_contour_factor *factors, int side, double cut)
{
    memset(c, 0, sizeof *c);
    c->n = n, c->cut = cut, c->factors = factors, c->side = side, c->largest_t = side > 0 ? INFINITY : 1.0;
    c->saddle[0] = NAN, c->work = FP_CONTOUR_WORK, c->first_slot = FP_SLOTS, c->last_slot = -1;
    double sizes = 0.0;
    for (int i = 0; i < n; i++) {
        c->largest_t = fp_min(c->largest_t, side > 0 ? factors[i].largest_t : factors[i].both_sides);
        c->log_mass += factors[i].count * factors[i].log_mass;
        sizes += factors[i].count * fabs(factors[i].log_mass);
    }
    c->log_mass += FP_U * (n + 8.0) * sizes; /* log_mass is right to 5 units */
    c->slots = calloc(FP_SLOTS, sizeof *c->slots);
    c->ladder = malloc(sizeof(double) * FP_CONTOUR_LADDER * (size_t)n);
    if (c->slots && c->ladder)
        return 0;
    fp_composition_free(c);
    return -1;
}

/* t_i = x / (1 + x / T), x = 2^((i - middle) / 64), T the largest t */
FP_INLINE double fp_contour_t(const fp_composition *c, int i)
{
    const double x = exp2((double)(i - FP_SLOTS / 2) / FP_SLOTS_PER_OCTAVE);
    return c->largest_t < INFINITY ? x / (1.0 + x / c->largest_t) : x;
}

/* d t / d i */
FP_INLINE double fp_contour_spacing(const fp_composition *c, double t)
{
    return FP_LN2 / FP_SLOTS_PER_OCTAVE * t * (c->largest_t < INFINITY ? 1.0 - t / c->largest_t : 1.0);
}

/* How much more is aimed at where errors of masses count (1 + |z|) times for each of many releases */
static inline double fp_contour_more(const fp_contour_factor *factor, double size)
{
    const int many = factor->has_gap && factor->count >= FP_CONTOUR_MANY;
    return many ? fp_max(0.0, fp_log(factor->count * (1.0 + size)) - FP_CONTOUR_SPARE) : 0.0;
}

/* Moments at t > 0 of one release of factor j, at slot i. -1 without memory. */
static inline int fp_contour_release_at(fp_composition *c, int j, int i, double t, fp_contour_release *out)
{
    fp_contour_factor *factor = c->factors + j;
    const double aim = FP_CONTOUR_SEARCH_AIM + fp_contour_more(factor, t);
    const int many = factor->count >= FP_CONTOUR_MANY;
    fp_contour_release *shared = c->releases ? c->releases + i : NULL;
    if (shared && shared->known && shared->aim == aim && shared->many == many) {
        *out = *shared;
        return 0;
    }
    const int status = fp_contour_build(factor, c->side * t, 0.0, aim);
    if (status == -1)
        return -1;
    *out = (fp_contour_release){aim, factor->kappa, factor->kappa_error, factor->mean, factor->variance, factor->offset,
                                1, status, many, factor->nodes.n};
    c->nodes += factor->nodes.n;
    if (shared)
        *shared = *out;
    return 0;
}

/* -1 without memory */
static inline int fp_contour_find(fp_composition *c, int i, const fp_contour_slot **out)
{
    fp_contour_slot *slot = c->slots + i;
    *out = slot;
    if (slot->known)
        return 0;
    slot->t = fp_contour_t(c, i), slot->value = slot->error = slot->slope = slot->variance = 0.0;
    c->first_slot = i < c->first_slot ? i : c->first_slot, c->last_slot = i > c->last_slot ? i : c->last_slot;
    for (int j = 0; j < c->n; j++) {
        const double count = c->factors[j].count;
        fp_contour_release release;
        if (fp_contour_release_at(c, j, i, slot->t, &release))
            return -1;
        if (release.status) {
            slot->known = -1;
            return 0;
        }
        const double offset = fp_dd_double(release.offset), part = count * (release.kappa + slot->t * offset);
        slot->value += part;
        slot->error += count * (release.kappa_error + 4.0 * FP_U * (fabs(release.kappa) + slot->t * fabs(offset)))
                       + 4.0 * FP_U * (fabs(part) + fabs(slot->value));
        slot->slope += c->side * count * (release.mean + offset), slot->variance += count * release.variance;
    }
    slot->known = slot->value < INFINITY && slot->error < INFINITY && slot->variance < INFINITY ? 1 : -1;
    return 0;
}

/* epsilon whose saddle point is the slot, and log of delta, or of the lower tail, there, roughly */
FP_INLINE double fp_contour_epsilon(const fp_composition *c, const fp_contour_slot *slot)
{
    return slot->slope - 1.0 / slot->t - (c->side > 0 ? 1.0 / (1.0 + slot->t) : 0.0);
}
FP_INLINE double fp_contour_curvature(const fp_composition *c, const fp_contour_slot *slot)
{
    const double t = slot->t, other = c->side > 0 ? 1.0 / (1.0 + t) : 0.0;
    return slot->variance + 1.0 / (t * t) + other * other;
}
FP_INLINE double fp_contour_rough(const fp_composition *c, const fp_contour_slot *slot, double epsilon)
{
    return slot->value - epsilon * slot->t - fp_log(slot->t) - (c->side > 0 ? fp_log1p(slot->t) : 0.0)
        - 0.5 * fp_log(2.0 * FP_PI * fp_contour_curvature(c, slot));
}
/* The nearest epsilon that is asked */
FP_INLINE double fp_contour_asked(const fp_composition *c, double epsilon)
{
    return c->side > 0 ? fp_max(0.0, epsilon) : epsilon;
}

/* The saddle point of `epsilon` as a place on the grid of t, between two slots of different signs of the derivative: by
 * Newton's method from the middle of the grid, and by bisection where that is slow. */
static inline int fp_contour_saddle(fp_composition *c, double epsilon, double *place, double *curvature)
{
    if (c->saddle[0] == epsilon) {
        *place = c->saddle[1], *curvature = c->saddle[2];
        return 0;
    }
    int low = 0, high = FP_SLOTS - 1, i = c->start > 0 ? c->start : FP_SLOTS / 2;
    double below = 0.0, above = 0.0; /* derivatives at low and high; 0 where unknown */
    *curvature = 1.0;
    for (int step = 0; high - low > 1; step++) {
        const fp_contour_slot *slot;
        if (fp_contour_find(c, i, &slot))
            return -1;
        double move = -64.0;
        if (slot->known > 0) {
            const double residual = fp_contour_epsilon(c, slot) - epsilon;
            *curvature = fp_contour_curvature(c, slot);
            move = -residual / (*curvature * fp_contour_spacing(c, slot->t));
            if (residual > 0.0)
                high = i, above = residual;
            else
                low = i, below = residual;
        } else {
            high = i, above = 0.0;
        }
        move = fp_max(-192.0, fp_min(move, 192.0));
        int next = (int)floor(i + move + 0.5);
        next = next == i ? (move < 0.0 ? i - 1 : i + 1) : next;
        const int halve = step > 3 && step % 2 && high - low < 2 * FP_SLOTS_PER_OCTAVE;
        i = halve || next <= low || next >= high ? (low + high) / 2 : next;
    }
    *place = above > below && below > -INFINITY ? low - below / (above - below) : low;
    c->saddle[0] = epsilon, c->saddle[1] = *place, c->saddle[2] = *curvature, c->start = low;
    return 0;
}

/* Chernoff's bounds of the terms j > 0 of Poisson's sum for values of t' > t: a - t' epsilon are their logarithms.
 * Those far below e^enough are not sought. */
static inline int fp_contour_chernoff(fp_composition *c, fp_contour_table *table, double deviation, double enough)
{
    double least = INFINITY; /* at the centre; the bound is convex in t' */
    table->chernoffs = 0;
    const double spacing = fp_contour_spacing(c, table->t);
    int last = table->slot;
    for (int k = 0; k < FP_CONTOUR_CHERNOFF; k++) {
        static const double steps[FP_CONTOUR_CHERNOFF] = {0.12, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 5.5, 7, 9, 12, 16,
                                                          24, 40};
        int i = table->slot + (int)(steps[k] / (deviation * spacing) + 0.999);
        i = i > last ? i : last + 1;
        if (i >= FP_SLOTS)
            break;
        last = i;
        const fp_contour_slot *slot;
        if (fp_contour_find(c, i, &slot))
            return -1;
        if (slot->known < 0)
            break;
        const double other = slot->t, gap = (other - table->t) * table->period * (1.0 - 1e-14);
        const double whole = slot->value + slot->error - gap - fp_log1p(-fp_exp(-gap))
            + 4.0 * FP_U * (fabs(slot->value) + gap);
        table->chernoff_t[table->chernoffs] = other;
        table->chernoff[table->chernoffs][FP_CONTOUR_TAIL] = whole;
        const double least_delta = other * fp_log(other) - (1.0 + other) * fp_log1p(other)
            + 12.0 * FP_U * (1.0 + other) * (1.0 + fp_log1p(other));
        table->chernoff[table->chernoffs++][FP_CONTOUR_DELTA] = whole + (c->side > 0 ? least_delta : 0.0);
        const double here = whole - other * table->centre;
        if (here > least + 10.0 || here < enough - 100.0)
            break;
        least = fp_min(least, here);
    }
    return 0;
}

FP_INLINE double fp_contour_aliases_above(const fp_contour_table *table, int quantity, double epsilon)
{
    double best = INFINITY;
    for (int k = 0; k < table->chernoffs; k++) {
        const double moved = table->chernoff_t[k] * epsilon, bound = table->chernoff[k][quantity];
        best = fp_min(best, bound - moved + 4.0 * FP_U * (fabs(bound) + fabs(moved)));
    }
    return best + 1e-12;
}

/* A bound of |m| of a factor for all frequencies >= w */
static inline double fp_contour_ladder(fp_composition *c, int i, double w)
{
    int j = (int)floor(2.0 * log2(w)) + 32;
    j = j < 0 ? 0 : j >= FP_CONTOUR_LADDER ? FP_CONTOUR_LADDER - 1 : j;
    double *known = c->ladder + (size_t)i * FP_CONTOUR_LADDER + j;
    const double at = exp2(0.5 * (j - 32));
    if (at > w)
        return 1.0;
    if (*known < 0.0)
        *known = c->factors[i].kind->decay(c->factors + i, at);
    return *known;
}

/* log of a bound of prod |m|^count for all frequencies >= w; few bounds are computed where those are below `enough`. */
static inline double fp_contour_rest(fp_composition *c, double w, double enough)
{
    double sum = 0.0;
    for (int i = 0; i < c->n; i++) {
        const double count = c->factors[i].count;
        double best = 0.0;
        for (int attempt = -c->single; attempt < 10 && sum + best > enough; attempt++) {
            const int power = attempt < 0 ? c->power : attempt;
            const double times = (double)(1 << power);
            if (c->single) { /* only a bound that is enough matters: the sum goes on where there is none */
                const double log_rho = fp_max(enough - sum, -1e3 * count) / count;
                const double square = power ? 1.0 + times * times * fp_expm1(2.0 * log_rho) : fp_exp(2.0 * log_rho);
                if (!(square > 0.0) && attempt >= 0)
                    break;
                if (!(square > 0.0))
                    continue;
                c->factors[i].enough = 0.95 * sqrt(square);
            }
            const double rho = attempt < 0 ? c->factors[i].kind->decay(c->factors + i, w * times)
                                           : fp_contour_ladder(c, i, w * times);
            const double lost = (1.0 - rho) * (1.0 + rho) / (times * times);
            /* 1 - rho^2 would lose a small rho, and be 1 where it is below 1e-8 */
            const double log_bound = power ? 0.5 * fp_log1p(-lost) : fp_log(rho + 1e-300);
            best = fp_min(best, count * log_bound * (1.0 - 1e-12 - FP_U * c->n));
            c->power = sum + best <= enough ? power : c->power;
            if (rho < 1e-3 && attempt >= 0)
                break;
        }
        sum += best;
    }
    return sum;
}

/* The bound of the sum of the terms beyond w, without e^scale and in units of the sum, where prod rho^count is 1 */
FP_INLINE double fp_contour_cut(const fp_composition *c, const fp_contour_table *table, int quantity, double w)
{
    const double t = table->t, s = FP_CONTOUR_SMOOTHING / (t + 1.0), whole = 1.0000001 / table->h;
    if (c->side > 0 && quantity == FP_CONTOUR_DELTA)
        return whole * t * (t + 1.0) / w;
    return whole * (c->side > 0 ? t + 1.0 : t) * (1.0 + fp_max(0.0, fp_log(2.1 / (s * w)))
                                                  + 2.1 / (s * w) * (s * w > 2.1));
}

static inline int fp_contour_table_reserve(fp_contour_table *table, int capacity)
{
    double *block = malloc(sizeof(double) * 5 * (size_t)capacity);
    if (!block)
        return -1;
    double *cursor = block, *first = fp_take(&cursor, capacity);
    if (table->block)
        memcpy(first, table->first, sizeof(double) * (size_t)(table->padded / FP_CONTOUR_AT_ONCE));
    table->first = first;
    for (int k = 0; k < 2; k++) {
        double *size = fp_take(&cursor, capacity), *angle = fp_take(&cursor, capacity);
        if (table->block) {
            memcpy(size, table->size[k], sizeof(double) * (size_t)table->padded);
            memcpy(angle, table->angle[k], sizeof(double) * (size_t)table->padded);
        }
        table->size[k] = size, table->angle[k] = angle;
    }
    free(table->block);
    table->block = block;
    return 0;
}

/* The sum of the terms at `epsilon`, one run of consecutive frequencies after the other */
static inline double fp_contour_sum(const fp_contour_table *table, int quantity, double epsilon)
{
    const double turn = table->h * (epsilon - table->centre);
    const int blocks = table->padded / FP_CONTOUR_AT_ONCE;
    double sum = 0.0;
    for (int b = 0, end; b < blocks; b = end) {
        for (end = b + 1; end < blocks && table->first[end] == table->first[end - 1] + FP_CONTOUR_AT_ONCE;)
            end++;
        const int at = b * FP_CONTOUR_AT_ONCE;
        sum += fp_contour_selected.cosines((end - b) * FP_CONTOUR_AT_ONCE, table->size[quantity] + at,
                                           table->angle[quantity] + at, b ? remainder(table->first[b] * turn, 2.0 * FP_PI) : 0.0,
                                           turn);
    }
    return sum;
}

/* Slot i moved by `move`, or the nearest to it where t is not too large */
static inline int fp_contour_neighbour(fp_composition *c, int i, int move, const fp_contour_slot **out)
{
    for (;; move /= 2) {
        const int j = i + move < 0 ? 0 : i + move >= FP_SLOTS ? FP_SLOTS - 1 : i + move;
        if (fp_contour_find(c, j, out))
            return -1;
        if ((*out)->known > 0 || move == 0)
            return 0;
    }
}

/* Whether no factor falls, and prod |m|^count stays above e^least for ever, as far as is known */
static inline int fp_contour_is_flat(fp_composition *c, double least)
{
    for (int j = 0; j < c->n; j++)
        if (!c->factors[j].kind->distance)
            return 0;
    return fp_contour_rest(c, exp2(0.5 * (FP_CONTOUR_LADDER - 33)), least) > least;
}

typedef struct {
    fp_dd scale, drift;
    double error, fall; /* of scale; D(v) <= fall v, INFINITY where no |m| returns or its variance is vague */
    double drift_error;
} fp_contour_tilts;

/* Let the factor and the ladder be those of a stored tilt; whether they were built before. */
static inline int fp_contour_stored_tilt(fp_composition *c, int slot, double design, double aim)
{
    const fp_contour_factor factor = *c->factors;
    const int many = factor.count >= FP_CONTOUR_MANY;
    fp_contour_tilt *tilt = c->tilts;
    int known = 0;
    for (int k = 0; k < FP_CONTOUR_TILTS && !known; k++) {
        fp_contour_tilt *other = c->tilts + k;
        known = other->slot == slot && other->design == design && other->aim == aim && other->many == many;
        tilt = known || other->used < tilt->used ? other : tilt;
    }
    if (!known) {
        const fp_contour_nodes nodes = tilt->factor.nodes; /* their memory stays */
        tilt->factor = factor, tilt->factor.nodes = nodes;
        tilt->slot = 0, tilt->design = design, tilt->aim = aim, tilt->many = many;
    }
    tilt->factor.count = factor.count, tilt->used = ++c->clock, c->stored = tilt;
    c->factors = &tilt->factor, c->ladder = tilt->ladder;
    return known;
}

/* Tilt all factors at a slot for frequencies up to `design`. Their status. */
static inline int fp_contour_tilt_all(fp_composition *c, int slot, double t, double centre, double design,
                                      fp_contour_tilts *out)
{
    double square = 0.0;
    *out = (fp_contour_tilts){fp_dd_set(0.0), fp_dd_set(-centre), 0.0, INFINITY, 0.0};
    const int known = c->tilts && slot > 0
        && fp_contour_stored_tilt(c, slot, design, FP_CONTOUR_AIM + fp_contour_more(c->factors, t + design));
    for (int j = 0; j < c->n * FP_CONTOUR_LADDER && !known; j++)
        c->ladder[j] = -1.0;
    for (int j = 0; j < c->n; j++) {
        fp_contour_factor *factor = c->factors + j;
        const double aim = FP_CONTOUR_AIM + fp_contour_more(factor, t + design);
        const int status = known ? 0 : fp_contour_build(factor, c->side * t, design, aim);
        if (status)
            return status;
        const fp_dd offset = fp_dd_mul_d(factor->offset, factor->count);
        out->scale = fp_dd_add(fp_dd_add(out->scale, fp_two_prod(factor->count, factor->kappa)),
                               fp_dd_mul_d(offset, t));
        out->drift = fp_dd_add(fp_dd_add(out->drift, fp_two_prod(c->side * factor->count, factor->mean)), offset);
        out->error += factor->count * factor->kappa_error;
        out->drift_error += factor->count * (fabs(factor->mean) + fabs(factor->offset.hi));
        c->nodes += factor->nodes.n;
        if (factor->kind->distance)
            square += 2.0 * factor->count * (factor->variance + 2.0 * (factor->nodes.moved_square
                                                                       + factor->nodes.weighted_square));
    }
    out->drift_error = FP_U * FP_U * (128.0 + 8.0 * c->n) * (out->drift_error + fabs(centre)); /* of double-doubles */
    out->error += t * out->drift_error;
    if (c->tilts && slot > 0)
        c->stored->slot = slot; /* complete */
    if (square > 0.0 && square < INFINITY)
        out->fall = sqrt(square) * (1.0 + 1e-6);
    return 0;
}

/* D(w), rounded down */
static inline double fp_contour_distance(const fp_composition *c, double w)
{
    double square = 0.0;
    for (int j = 0; j < c->n; j++) {
        const fp_contour_factor *factor = c->factors + j;
        if (factor->kind->distance)
            square += 2.0 * factor->count * fp_max(0.0, factor->kind->distance(factor, w) - 1e-15);
    }
    return sqrt(square) * (1.0 - 1e-12 - FP_U * c->n);
}

/* log of a bound of prod |m|^count of the factors without distance, for all frequencies >= w */
static inline double fp_contour_falling(fp_composition *c, double w)
{
    double sum = 0.0;
    for (int j = 0; j < c->n; j++)
        if (!c->factors[j].kind->distance)
            sum += c->factors[j].count * fp_log(fp_contour_ladder(c, j, w) + 1e-300) * (1.0 - 1e-12);
    return fp_min(sum, 0.0);
}

/* The first frequency from number `next` on at which a term may count, at most `last`; the bound of what is passed by
 * is added to the errors. Terms are negligible where they are 1e-15 of `sum` together. */
static inline double fp_contour_pass(fp_composition *c, fp_contour_table *table, double fall, double sum, double next,
                                     double last, double *work)
{
    const double h = table->h, t = table->t;
    double falling = 0.0, known = 0.0, stride = FP_CONTOUR_AT_ONCE;
    while (next < last) {
        const double w = next * h, exponent = -fp_log(0.1 * c->cut * sum * h * w / (t * (t + 1.0)));
        if (w > known)
            falling = fp_contour_falling(c, w), known = 1.05 * w;
        const double least = 2.0 * sqrt(fp_max(0.0, exponent + falling));
        /* D >= least from next to place + away, where D(place) - away fall is so */
        double place = fp_min(next + stride, last), away = 0.0;
        for (;;) {
            away = (fp_contour_distance(c, place * h) - least) / (fall * h) * (1.0 - 1e-9) - 4.0 * FP_U * place;
            c->terms++;
            for (int j = 0; j < c->n; j++)
                *work += c->factors[j].kind->distance ? 32.0 + c->factors[j].nodes.n : 0.0;
            if (away >= place - next || place == next)
                break;
            stride = fp_max(0.0, fp_min(0.5 * stride, floor(0.5 * (away + place - next))));
            stride = stride < FP_CONTOUR_AT_ONCE ? 0.0 : stride;
            place = next + stride;
        }
        const double end = fp_min(floor(place + fp_max(away, 0.0)), last);
        if (end - next < FP_CONTOUR_AT_ONCE)
            break;
        const double size = fp_exp(-exponent) * (t + 1.0) * (1.0 + 1e-6);
        table->error[FP_CONTOUR_DELTA] += size * t / (h * h) * (1.0 / (next - 1.0) - 1.0 / (end - 1.0) + 1e-15 / next);
        table->error[FP_CONTOUR_TAIL] += size / h * (fp_log((end - 1.0) / (next - 1.0)) + 1e-15);
        stride = fp_max(floor(away), FP_CONTOUR_AT_ONCE);
        next = end;
        if (*work > c->work)
            break;
    }
    return next;
}

/* Fill a table at slot i for epsilons up to reach / 2 slots away. -1 without memory, or the reason to stop. Factors and
 * ladder may be those of a stored tilt afterwards. */
static inline int fp_contour_table_fill(fp_composition *c, fp_contour_table *table, int i, int reach,
                                        fp_stop_token *stop)
{
    const fp_contour_slot *slot;
    if (fp_contour_find(c, i, &slot))
        return -1;
    const fp_contour_slot *first, *last;
    if (fp_contour_neighbour(c, i, -(reach + 1) / 2, &first) || fp_contour_neighbour(c, i, (reach + 1) / 2, &last))
        return -1;
    if (slot->known < 0) {
        table->slot = i, table->terms = 0, table->status = 1;
        return 0;
    }
    const double t = slot->t, deviation = sqrt(slot->variance);
    const double near = fp_contour_asked(c, fp_contour_epsilon(c, first));
    const double far = fp_contour_asked(c, fp_contour_epsilon(c, last));
    const double centre = fp_contour_asked(c, fp_contour_epsilon(c, slot)); /* where the angles are given */
    const double log_near = fp_contour_rough(c, first, near), log_far = fp_contour_rough(c, last, far);
    const double log_cut = fp_log(c->cut);
    table->slot = i, table->t = t, table->centre = centre, table->terms = table->padded = table->status = 0;
    table->period = fp_max(8.0 * deviation, (-log_cut - fp_min(log_far, 0.0)) / t);
    for (int k = 0; k < 20; k++) {
        if (fp_contour_chernoff(c, table, deviation, log_far + log_cut))
            return -1;
        if (fp_contour_aliases_above(table, FP_CONTOUR_DELTA, near) < log_near + log_cut
            && fp_contour_aliases_above(table, FP_CONTOUR_DELTA, far) < log_far + log_cut)
            break;
        table->period *= 1.25;
    }
    const double h = table->h = 2.0 * FP_PI / table->period;
    double design = fp_max(8.0 / deviation, FP_CONTOUR_AT_ONCE * h);
    if (c->tilts) /* so that tables of several counts share a tilt */
        design = exp2(ceil(log2(design)));
    int capacity = 256, n = 0, check = 0, summed = 0, started = 0;
    double next = 0.0, sum = 0.0, run = 0.0; /* the next frequency; the sum of the terms; those of this run */
    fp_contour_tilts tilts = {fp_dd_set(0.0), fp_dd_set(0.0), INFINITY, INFINITY, INFINITY};
    free(table->block);
    table->block = NULL;
    if (fp_contour_table_reserve(table, capacity))
        return -1;
    table->error[0] = table->error[1] = table->moment[0] = table->moment[1] = 0.0;
    double work = 0.0;
    table->longest = 0.0;
    for (;;) {
        if (!started || (next + FP_CONTOUR_AT_ONCE) * h > design) {
            design *= started ? 2.0 : 1.0;
            fp_contour_tilts made;
            const int status = fp_contour_tilt_all(c, i, t, centre, c->tilts ? design : design + FP_CONTOUR_AT_ONCE * h,
                                                   &made);
            if (status == -1)
                return -1;
            if (status) { /* what was summed with the former nodes stays */
                table->status = 1, table->log_rest = 0.0;
                break;
            }
            tilts = made, started = 1;
        }
        if (sum > 0.0 && tilts.fall < INFINITY && c->side > 0) {
            const double end = fp_contour_pass(c, table, tilts.fall, sum, next, floor(design / h), &work);
            if (end > next) {
                next = end, run = 0.0, table->frequency = (next - 1.0) * h;
                const double terms = fp_contour_cut(c, table, FP_CONTOUR_DELTA, table->frequency);
                const double wanted = fp_log(c->cut * sum / terms) - 4.0;
                table->log_rest = fp_contour_rest(c, table->frequency, fp_min(wanted, -1.0));
                table->status = work > c->work;
                if (table->status || table->log_rest <= wanted)
                    break;
                if (fp_stop_requested(stop, FP_CONTOUR_AT_ONCE * 256))
                    return stop->status;
                if ((next + FP_CONTOUR_AT_ONCE) * h > design)
                    continue;
            }
        }
        const double slope = fp_dd_double(tilts.drift);
        double log_m[FP_CONTOUR_AT_ONCE], angle_m[FP_CONTOUR_AT_ONCE], wrong[FP_CONTOUR_AT_ONCE],
            log_size[FP_CONTOUR_AT_ONCE],
            phase[FP_CONTOUR_AT_ONCE], relative[FP_CONTOUR_AT_ONCE], log_above[FP_CONTOUR_AT_ONCE];
        int vague[FP_CONTOUR_AT_ONCE] = {0}; /* where m is not known to a tenth */
        for (int j = 0; j < FP_CONTOUR_AT_ONCE; j++) {
            log_size[j] = log_above[j] = 0.0, phase[j] = (next + j) * h * slope;
            relative[j] = 4.0 * FP_U * fabs(phase[j]) + (next + j) * h * tilts.drift_error;
        }
        for (int f = 0; f < c->n; f++) {
            const fp_contour_factor *factor = c->factors + f;
            const double count = factor->count;
            factor->kind->moments(factor, next, h, FP_CONTOUR_AT_ONCE, log_m, angle_m, wrong);
            work += 32.0 * factor->nodes.n;
            for (int j = 0; j < FP_CONTOUR_AT_ONCE; j++) {
                const double size = fp_exp(log_m[j]);
                log_size[j] += count * log_m[j], phase[j] += c->side * count * angle_m[j];
                relative[j] += wrong[j] < 0.1 * size ? -count * fp_log1p(-wrong[j] / size) : 0.0;
                vague[j] |= !(wrong[j] < 0.1 * size);
                log_above[j] += count * fp_log((size + wrong[j]) * (1.0 + 8.0 * FP_U) + 1e-300);
                relative[j] += 8.0 * FP_U * count * (fabs(log_m[j]) + fabs(angle_m[j]))
                               + FP_U * (fabs(log_size[j]) + fabs(phase[j])); /* of the sums over factors */
            }
        }
        if (n + FP_CONTOUR_AT_ONCE > capacity) {
            capacity *= 2;
            if (fp_contour_table_reserve(table, capacity))
                return -1;
        }
        double largest = 0.0;
        for (int j = 0; j < FP_CONTOUR_AT_ONCE; j++) {
            const double w = (next + j) * h, weight = n + j ? 1.0 : 0.5, size = weight * fp_exp(log_size[j]);
            const double first = t / sqrt(t * t + w * w), second = (t + 1.0) / sqrt((t + 1.0) * (t + 1.0) + w * w);
            const double turn = atan2(w, t), other = atan2(w, t + 1.0), turned = fabs(phase[j]) + 4.0;
            const double payoff[2] = {c->side > 0 ? first * second : first, second};
            const double argument[2] = {c->side > 0 ? turn + other : turn, other};
            for (int q = 0; q < 2; q++) {
                const double part = size * payoff[q];
                table->size[q][n + j] = part, table->angle[q][n + j] = remainder(phase[j], 2.0 * FP_PI) - argument[q];
                const double first_order = relative[j] < 0.1 ? size * 1.06 * relative[j] : INFINITY;
                table->error[q] += payoff[q] * (vague[j] || !(first_order < INFINITY) ? size
                                                + 1.001 * weight * fp_exp(log_above[j]) : first_order)
                                   + part * FP_U * (72.0 + 2.0 * turned + 0.25 * FP_CONTOUR_AT_ONCE);
                if (q == FP_CONTOUR_TAIL || c->side < 0) /* the average over [x, x + s] */
                    table->error[q] += part * FP_CONTOUR_SMOOTHING * (1.0 + w / (t + 1.0));
                table->moment[q] += 8.0 * FP_U * part * w;
            }
            largest = fp_max(largest, size * payoff[0]);
        }
        table->first[n / FP_CONTOUR_AT_ONCE] = next;
        n += FP_CONTOUR_AT_ONCE, next += FP_CONTOUR_AT_ONCE, run += FP_CONTOUR_AT_ONCE;
        table->terms = table->padded = n, table->longest = fp_max(table->longest, run * h);
        c->terms += FP_CONTOUR_AT_ONCE;
        const double w = (next - 1.0) * h;
        const int spent = n >= FP_CONTOUR_TERMS || work > c->work;
        if (fp_stop_requested(stop, FP_CONTOUR_AT_ONCE * 256))
            return stop->status;
        table->frequency = w, table->log_rest = 0.0;
        if (n < check && !spent)
            continue;
        check = n + fp_padded(n / 16);
        if (n < 4096 || n >= 2 * summed || spent) { /* the sums at the ends take as long as n terms */
            const double least = fp_min(fabs(fp_contour_sum(table, 0, near)), fabs(fp_contour_sum(table, 0, far)));
            sum = fp_min(least, fabs(fp_contour_sum(table, 0, centre))), summed = n;
        }
        if (spent || largest * n < 1e-2 * c->cut * sum) {
            const double wanted = fp_log(c->cut * sum / fp_contour_cut(c, table, FP_CONTOUR_DELTA, w)) - 4.0;
            table->log_rest = fp_contour_rest(c, w, fp_min(wanted, -1.0));
            table->status = spent || (n >= FP_CONTOUR_FLAT && fp_contour_is_flat(c, wanted + FP_CONTOUR_HOPE))
                            || (table->log_rest == 0.0 && fp_contour_rest(c, FP_CONTOUR_FAR * w, -1.0) == 0.0);
            if (table->status || table->log_rest <= wanted)
                break;
        }
    }
    for (int q = 0; q < 2; q++) { /* eight partial sums */
        double total = 0.0;
        for (int j = 0; j < n; j++)
            total += table->size[q][j];
        table->error[q] += FP_U * (0.125 * n) * total;
    }
    table->scale = tilts.scale, table->scale_error = tilts.error;
    const double gap = t * table->period * (1.0 - 1e-14);
    table->log_below = c->log_mass - gap - fp_log1p(-fp_exp(-gap)), table->log_h = fp_log(h);
    table->log_payoff[1] = fp_log1p(t), table->log_payoff[0] = fp_log(t) + (c->side > 0 ? fp_log1p(t) : 0.0);
    for (int q = 0; q < 2; q++)
        table->cut[q] = fp_exp(table->log_rest) * fp_contour_cut(c, table, q, table->frequency);
    c->made++;
    return 0;
}

static inline int fp_contour_table_make(fp_composition *c, fp_contour_table *table, int i, int reach,
                                        fp_stop_token *stop)
{
    fp_contour_factor *factors = c->factors;
    double *ladder = c->ladder;
    const int status = fp_contour_table_fill(c, table, i, reach, stop);
    c->factors = factors, c->ladder = ladder;
    return status;
}

/* The table at slot i, made where there is none. */
static inline int fp_contour_table_find(fp_composition *c, int i, int reach, fp_contour_table **out,
                                        fp_stop_token *stop)
{
    int oldest = 0;
    for (int k = 0; k < c->n_tables; k++) {
        if (c->tables[k]->slot == i) {
            c->tables[k]->used = ++c->clock;
            *out = c->tables[k];
            return 0;
        }
        oldest = c->tables[k]->used < c->tables[oldest]->used ? k : oldest;
    }
    if (c->n_tables < FP_CONTOUR_TABLES) {
        oldest = c->n_tables;
        c->tables[oldest] = calloc(1, sizeof **c->tables);
        if (!c->tables[oldest])
            return -1;
        c->n_tables++;
    }
    fp_contour_table *table = c->tables[oldest];
    for (long kept = 0, k = 0; k < c->n_tables; k++) { /* the first ones stay as long as there is room */
        kept += c->tables[k]->padded;
        if (kept > FP_CONTOUR_KEPT - FP_CONTOUR_TERMS && c->tables[k] != table) {
            kept -= c->tables[k]->padded;
            free(c->tables[k]->block);
            c->tables[k]->block = NULL, c->tables[k]->slot = -1, c->tables[k]->terms = c->tables[k]->padded = 0;
        }
    }
    const int status = fp_contour_table_make(c, table, i, reach, stop);
    table->used = ++c->clock;
    if (status)
        table->slot = -1;
    *out = table;
    return status;
}

/* Bounds for all epsilons within `slack`: the sum changes by at most the sum of sizes times
 * frequencies for each unit of epsilon, the scale by t, aliases by less than e^(2 t' slack). */
static inline fp_contour_answer fp_contour_read(const fp_composition *c, const fp_contour_table *table, int quantity,
                                                double epsilon, double slack)
{
    const double t = table->t, mass = c->log_mass;
    fp_contour_answer out = {mass, -INFINITY, mass};
    if (!table->terms || !(table->scale_error < INFINITY))
        return out;
    const double off = fabs(epsilon - table->centre);
    const double away = off + slack * (0.1255 / FP_U); /* moments are 8 u times those sums */
    if (!(table->longest * off < 0.5 * FP_LARGEST_ANGLE))
        return out;
    const double sum = fp_contour_sum(table, quantity, epsilon);
    const double error = table->error[quantity] + table->moment[quantity] * away + FP_U * table->size[quantity][0] * 4.0
                         + table->cut[quantity];
    const double payoff = table->log_payoff[quantity];
    const fp_dd tilted = fp_dd_sub(table->scale, fp_two_prod(epsilon, t));
    const double scale = (fp_dd_double(tilted) - payoff) + (table->log_h - 1.14472988584940017414); /* log pi */
    const double scale_error = table->scale_error + t * slack + FP_U * (8.0 + 7.0 * fabs(payoff) + 4.0 * fabs(scale)
                                                            + 2.0 * fabs(fp_dd_double(tilted))
                                                            + 3.0 * fabs(table->log_h));
    const double above = fp_contour_aliases_above(table, quantity, epsilon);
    const double moved = 2.0 * slack * table->chernoff_t[table->chernoffs ? table->chernoffs - 1 : 0];
    const double lifted = scale - scale_error;
    const double alias = (fp_exp(table->log_below - lifted) + fp_exp(above - lifted)) * 1.001 * (1.0 + 2.0 * moved);
    if (!(moved < 0.1))
        return out;
    const double lower = sum - error - alias, upper = sum + error;
    out.value = sum - 0.5 * alias > 0.0 ? scale + fp_log(sum - 0.5 * alias) : -INFINITY;
    const double log_lower = fp_log(lower), log_upper = fp_log(upper);
    out.lower = lower > 0.0 ? scale + log_lower - scale_error - 4.0 * FP_U * fabs(log_lower) : -INFINITY;
    out.upper = upper > 0.0 && upper < INFINITY
        ? fp_min(mass, scale + log_upper + scale_error + 4.0 * FP_U * fabs(log_upper)) : mass;
    out.lower = fp_min(out.lower, out.upper);
    out.value = fp_max(out.lower, fp_min(out.value, out.upper));
    return out;
}

/* The t of the saddle point, roughly */
static inline int fp_composition_tilt(fp_composition *c, double epsilon, double *t)
{
    double place, curvature;
    if (fp_contour_saddle(c, epsilon, &place, &curvature))
        return -1;
    *t = fp_contour_t(c, (int)(place + 0.5));
    return 0;
}

/* Bounds at all epsilons within `slack` of one >= 0, or of any one of the side -1 */
static inline int fp_contour_at(fp_composition *c, int quantity, double epsilon, double slack, fp_contour_answer *out,
                                fp_stop_token *stop)
{
    double place, curvature;
    fp_contour_table *table;
    *out = (fp_contour_answer){c->log_mass, -INFINITY, c->log_mass};
    if (!(c->largest_t > 0.0 && fabs(epsilon) < INFINITY)) /* a factor of one side, or nothing to sum */
        return 0;
    if (fp_contour_saddle(c, epsilon, &place, &curvature))
        return -1;
    /* the widest stride of tables at whose ends the terms are e^3.1 of those at the saddle point, roughly */
    int stride = c->single ? 1 : FP_SLOTS_PER_OCTAVE;
    const double whole = 5.0 / (fp_contour_spacing(c, fp_contour_t(c, (int)(place + 0.5))) * sqrt(curvature));
    for (; stride > 1; stride /= 2) {
        if (stride > whole)
            continue;
        const int i = (int)floor(place / stride + 0.5) * stride;
        const fp_contour_slot *slot, *first, *last;
        if (fp_contour_neighbour(c, i, 0, &slot) || fp_contour_neighbour(c, i, -stride / 2, &first)
            || fp_contour_neighbour(c, i, stride / 2, &last))
            return -1;
        const double middle = fp_contour_epsilon(c, slot);
        if ((slot->t - first->t) * (middle - fp_contour_epsilon(c, first)) <= 6.25
            && (last->t - slot->t) * (fp_contour_epsilon(c, last) - middle) <= 6.25)
            break;
    }
    for (;;) {
        int i = (int)floor(place / stride + 0.5) * stride;
        i = i < 0 ? 0 : i >= FP_SLOTS ? FP_SLOTS - 1 : i;
        const int status = fp_contour_table_find(c, i, stride, &table, stop);
        if (status)
            return status;
        *out = fp_contour_read(c, table, quantity, epsilon, slack);
        if (stride == 1 || out->upper - out->lower < FP_CONTOUR_WIDE + 2.0 * table->scale_error || table->status)
            return 0;
        stride = 1;
    }
}

/* A pair of any kind */
typedef union {
    fp_contour_one_sigma one_sigma;
    fp_contour_several several;
    fp_contour_gaussians gaussians;
    fp_contour_laplace laplace;
    fp_contour_atoms atoms;
} fp_contour_any;

/* The factor of a pair, which `pair` holds from then on: 1; 0 where no kind fits; -1 without memory. */
static inline int fp_contour_any_mixtures(fp_contour_factor *factor, fp_contour_any *pair, double count, int np,
                                          const double *pw, const double *pm, const double *ps, int nq,
                                          const double *qw, const double *qm, const double *qs, const double excess[2])
{
    if (np == 1 && nq == 1) {
        fp_contour_gaussians_make(&pair->gaussians, pm[0], ps[0], qm[0], qs[0], excess);
        fp_contour_gaussians_factor(factor, &pair->gaussians, excess[0], count);
        return 1;
    }
    if (fp_contour_one_sigma_make(&pair->one_sigma, np, pw, pm, ps, nq, qw, qm, qs, excess)
        && (pair->one_sigma.p_low >= pair->one_sigma.q_high || pair->one_sigma.q_low >= pair->one_sigma.p_high)) {
        fp_contour_one_sigma_factor(factor, &pair->one_sigma, count);
        return 1;
    }
    const int status = fp_contour_several_make(&pair->several, np, pw, pm, ps, nq, qw, qm, qs, excess);
    fp_contour_several_factor(factor, &pair->several, count);
    if (status)
        fp_contour_several_free(&pair->several);
    return status ? (status < 0 ? -1 : 0) : 1;
}

static inline void fp_contour_any_free(fp_contour_factor *factor, fp_contour_any *pair)
{
    if (factor->kind == &fp_contour_several_kind)
        fp_contour_several_free(&pair->several);
    fp_contour_factor_free(factor);
}

static inline int fp_contour_any_laplace(fp_contour_factor *factor, fp_contour_any *pair, double count, double scale,
                                         double shift)
{
    fp_contour_laplace_factor(factor, &pair->laplace, scale, shift, count);
    return 1;
}

static inline int fp_contour_any_atoms(fp_contour_factor *factor, fp_contour_any *pair, double count, int n,
                                       const double *p, const double *q, double excess)
{
    pair->atoms = (fp_contour_atoms){n, p, q, excess};
    fp_contour_atoms_factor(factor, &pair->atoms, count);
    return 1;
}

#endif
