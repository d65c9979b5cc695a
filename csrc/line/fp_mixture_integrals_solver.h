/* A divergence, an entropy or an information of Gaussian mixtures in one dimension, with proved bounds, row by row.
 *
 * Notation: p, q the densities of P and Q, l = log(p/q), A and B the sums of their weights, a = A - 1, b = B - 1; for
 * Renyi divergences the order is called order, J is the logarithm of the integral of p^order q^(1 - order).
 *
 * One row. Components of weight zero are dropped; lengths are divided by a power of two, so that standard deviations
 * lie around 1. Equal pairs and two single Gaussians have closed forms. Otherwise the integral is taken in doubles
 * (fp_quadrature_solver.h); where its rounding bound is too wide, log(p/q) is computed again from p - q in
 * double-doubles. The bounds hold for the weights as they are and for those divided by their sums:
 *     KL      the integral of p l - p + q is A KL(P/A||Q/B) + A log(A/B) + B - A
 *     Renyi   J is that of the weights divided by their sums: order log A + (1 - order) log B is subtracted; with S the
 *             integral of fp_integrand.h, b = order - 1, x = B/A - 1 and t = S/A - x the integral is A (1 + b t), so
 *             that J / b = log1p(b t) / b + log(1 + x) = S/A - excess(x) - excess(b t) / b
 * A pair of one standard deviation goes to fp_one_sigma_solver.h first; sampled Gaussians of whole orders have a sum there
 * of which a block is computed side by side. Every other bracket of an integral is closed by
 * bounds of another kind (fp_elementary_divergences.h, fp_information_bounds).
 *
 * Two Gaussians P = N(m, s^2) and Q = N(n, t^2): x = s^2/t^2 - 1 and z = (m - n)/t, excess(x) = x - log(1 + x) >= 0,
 *     KL = (excess(x) + z^2) / 2,
 *     D = order z^2 / (2 (1 - b x)) + (excess(x) + excess(-b x) / b) / 2,   b = order - 1,
 * Gil, Alajaji and Linder 2013, table 2; for orders below 1/2 the second part is order / (1 - order) times that of Q
 * and P at 1 - order.
 *
 * Where the answer of a row could be sharper by other means, its status says so; its bounds are true all the same.
 */
/* bounds: proved - rounding of closed forms, of sums of weights and of what is done with an integral:
 * docs/proofs/quadrature.md, theorems 4.18 and 4.19 */
#ifndef FP_MIXTURE_INTEGRALS_SOLVER_H
#define FP_MIXTURE_INTEGRALS_SOLVER_H

#include "line/fp_elementary_divergences.h"
#include "line/fp_one_sigma_solver.h"
#include "line/fp_quadrature_solver.h"

/* bound: none - half the relative width aimed at, 1e-12, with some room; sharper arithmetic is tried beyond it */
#define FP_TARGET_WIDTH 4e-13
/* bound: none - relative discretisation error at which panels are no longer halved */
#define FP_TARGET_TRUNCATION 1e-14
/* bound: none - what rounding costs, as a fraction of its bound, in estimates of kind heuristic; those that are
 * certified take all of it. Every family of enclosures/test_integrals has it */
#define FP_TYPICAL_ROUNDING 0.125
/* bound: proved - above all that lies beyond 41 standard deviations of every component, e^-840, and what underflows */
#define FP_TRUNCATED_TAILS 1e-250
/* bound: proved - components that are dropped on panels, 10 e^-89.9 for each: docs/proofs/quadrature.md, theorem 4.14 */
#define FP_DROPPED 1e-38
/* bound: none - relative error of an integral from which bounds of another kind are sharper */
#define FP_WIDE 1e-3
#define FP_SMALL_LOG_INTEGRAL 0.5 /* |J| below which it is computed from the integral of (p^a q^(1-a) + b q - a p) / b */
#define FP_UNSCALED_EXPONENT 16 /* standard deviations around 2^16 or 2^-16 cost no accuracy */
#define FP_SCALED_EXPONENT 990 /* means and standard deviations stay below 2^990 when they are rescaled */
/* bound: none - what means and sigmas may be; outside a row is invalid */
#define FP_LARGEST_LENGTH 1e300
/* bound: none - distance of the sum of the weights from 1 beyond which a row is invalid */
#define FP_LARGEST_GAP 1e-9
/* bound: proved - distance from 1 of a sum that rounds to 1, with a margin: no wider than what the weights mean */
#define FP_ROUNDED_GAP 0x1.00001p-54
/* bound: proved - beyond this order, or half-width, nothing is computed here */
#define FP_LARGEST_ORDER 1e300
#define FP_LARGEST_HALF_WIDTH 1e305
/* bound: proved - range / sigma below which the first term of the expansion in 1 / sigma^2 is the information to
 * rounding; its bounds hold for any range: docs/proofs/quadrature.md, theorem 4.19 */
#define FP_LOW_SIGNAL 1e-7
/* bound: none - which path is taken, not what it states */
#define FP_RARE 0x1p-30 /* prior of all inputs but the likeliest below which the information is computed in its units */
/* bound: none - the largest power of two by which a prior is scaled, exactly */
#define FP_MAX_UNIT 960 /* log2 of the largest unit: products with it stay in the range of doubles */
/* bound: none - relative distance from 0 of a difference that doubles decide */
#define FP_DECIDED 1e-6

#define FP_NORMAL_ENTROPY 1.4189385332046727418 /* log(2 pi e) / 2 */
/* bound: proved - log 2 rounded up */
#define FP_LOG_2_ABOVE 0x1.62e42fefa39f0p-1

/* Status of a row: settled; a bracket that other means may narrow; undecided, within [0, infinity]; invalid, NaN. */
enum { FP_ROW_SETTLED = 0, FP_ROW_WIDE = 1, FP_ROW_UNDECIDED = 2, FP_ROW_INVALID = 3 };

/* How a row was computed, as bits. */
enum {
    FP_BY_PANELS = 1,
    FP_BY_RATIO = 2,
    FP_OUT_OF_BUDGET = 4,
    FP_OUT_OF_TIME = 8,
    FP_BY_CLOSED_FORM = 16,
    FP_EQUAL_PAIR = 32,
    FP_DIVERGES = 64,
    FP_BY_PANEL_BOUNDS = 128,
    FP_BY_TRAPEZOID = 256,
    FP_BY_BINOMIAL_SUM = 512,
    FP_BY_LOW_SIGNAL = 1024,
    FP_HEURISTIC = 2048,
    FP_ONE_INPUT = 4096,
    FP_BOUNDS_DISAGREE = 8192
};

typedef struct {
    double value, lower, upper; /* in nats */
    int status, method;
    long panels, evaluations;
} fp_row;

/* A column of n doubles, `step` bytes apart. */
typedef struct {
    const char *data;
    ptrdiff_t step;
} fp_column;

FP_INLINE double fp_entry(fp_column c, int i) { return *(const double *)(c.data + i * c.step); }

/* One side of a pair: components of positive weight; excess is the sum of the weights less 1, to `slack`. For the
 * information of a prior, `largest` is the likeliest input, `others` the prior of all others, and unit is a power of two,
 * about 1 / others where that is small, else 1. */
typedef struct {
    int n, largest;
    double *w, *m, *s, excess, slack, others, unit;
} fp_side;

typedef struct {
    double w, m, s;
    int position;
} fp_signed_component;

/* Memory of a loop over rows, zeroed before its first use. */
typedef struct {
    fp_integral integral;
    double *columns, *terms;
    fp_signed_component *components;
    int column_capacity, term_capacity;
    fp_row rows[FP_BINOMIALS]; /* of fp_mixture_rows */
    /* set by the caller */
    int certified; /* whether only proved bounds are wanted */
    long max_panels, max_work; /* max_panels 0: by the number of components */
    fp_stop_token stop;
} fp_row_workspace;

/* An integral e^scale sum with absolute errors of sum. */
typedef struct {
    double scale, sum, truncation, rounding;
    int method;
} fp_row_integral;

static inline void fp_row_workspace_free(fp_row_workspace *ws)
{
    fp_integral_free(&ws->integral);
    free(ws->columns);
    free(ws->terms);
    free(ws->components);
}

static inline double fp_below(double x) { return nextafter(x, -INFINITY); }
static inline double fp_above(double x) { return nextafter(x, INFINITY); }
static inline double fp_ulp(double x) { return x < INFINITY && x > -INFINITY ? nextafter(fabs(x), INFINITY) - fabs(x) : x * x; }

/* An upper bound of the error of the sum */
static inline double fp_row_error(const fp_row_integral *r)
{
    const double fraction = r->method & FP_HEURISTIC ? FP_TYPICAL_ROUNDING : 1.0;
    return 1.0000001 * (r->truncation + fraction * r->rounding) + (r->method & FP_BY_PANELS ? FP_TRUNCATED_TAILS : 0.0);
}

/* The middle of a bracket, or its lower end where the upper one is infinite. */
static inline double fp_row_middle(const fp_row *row)
{
    const double value = row->upper < INFINITY ? row->lower + 0.5 * (row->upper - row->lower) : row->lower;
    return value == 1.7976931348623157e308 ? INFINITY : value;
}

/* value +- error, outward by one double, within [floor, ceiling] */
static inline void fp_row_enclose(fp_row *row, double value, double error, double floor, double ceiling)
{
    error += 4.0 * fp_ulp(value);
    const double below = fp_below(value - error), above = fp_above(value + error);
    row->lower = below > floor ? below : floor; /* a NaN leaves the limits */
    row->upper = above < ceiling ? above : ceiling;
    row->value = row->lower < value && value < row->upper ? value : fp_row_middle(row); /* nothing prefers one end */
}

static inline void fp_row_exact(fp_row *row, double value, double margin, int method)
{
    row->value = value;
    row->lower = value - margin;
    row->upper = value + margin;
    row->status = FP_ROW_SETTLED;
    row->method = method;
}

/* Gather the components of one side; 0, or FP_ROW_INVALID. */
static inline int fp_side_gather(fp_side *side, double **cursor, int n, fp_column w, fp_column m, fp_column s)
{
    fp_dd total = {0.0, 0.0};
    int kept = 0, valid = 1;
    side->w = *cursor, side->m = *cursor + n, side->s = *cursor + 2 * n;
    *cursor += 3 * n;
    for (int i = 0; i < n; i++) {
        const double weight = fp_entry(w, i), mean = fp_entry(m, i), sigma = fp_entry(s, i);
        valid &= (weight >= 0.0) & (weight <= 2.0) & (fabs(mean) <= FP_LARGEST_LENGTH)
                 & (sigma >= 1.0 / FP_LARGEST_LENGTH) & (sigma <= FP_LARGEST_LENGTH);
        if (!(weight > 0.0))
            continue;
        total = fp_dd_add_d(total, weight);
        side->w[kept] = weight, side->m[kept] = mean, side->s[kept] = sigma;
        kept++;
    }
    const fp_dd gap = fp_dd_add_d(total, -1.0);
    side->n = kept, side->largest = 0;
    side->others = side->unit = 1.0;
    side->excess = gap.hi;
    side->slack = (kept > 2 ? 4e-32 * kept : 0.0) + FP_U * fabs(gap.hi);
    return valid && fabs(side->excess) <= FP_LARGEST_GAP ? 0 : FP_ROW_INVALID;
}

/* A bound of |sum of weights - 1| */
FP_INLINE double fp_side_gap(const fp_side *side) { return fabs(side->excess) * (1.0 + 2.0 * FP_U) + side->slack; }

static inline int fp_sides_equal(const fp_side *p, const fp_side *q)
{
    if (p->n != q->n)
        return 0;
    for (int i = 0; i < p->n; i++)
        if (p->w[i] != q->w[i] || p->m[i] != q->m[i] || p->s[i] != q->s[i])
            return 0;
    return 1;
}

static inline int fp_exponent(double x)
{
    int exponent = 0;
    frexp(x, &exponent);
    return exponent;
}

/* Divide lengths by 2^k, exactly, k such that standard deviations lie around 1; returns k. */
static inline int fp_sides_rescale(fp_side *p, fp_side *q)
{
    double least = INFINITY, largest = 0.0, farthest = 0.0;
    fp_side *sides[2] = {p, q};
    int low = 1 << 20, high = -(1 << 20);
    for (int k = 0; k < 2; k++) {
        if (!sides[k]->n)
            continue;
        double smallest = INFINITY, widest = 0.0;
        for (int i = 0; i < sides[k]->n; i++) {
            smallest = fp_min(smallest, sides[k]->s[i]);
            widest = fp_max(widest, sides[k]->s[i]);
            farthest = fp_max(farthest, fabs(sides[k]->m[i]));
        }
        least = fp_min(least, smallest), largest = fp_max(largest, widest);
    }
    low = fp_exponent(least), high = fp_exponent(largest);
    const int far = fp_exponent(farthest), middle = (low + high) >= 0 ? (low + high) / 2 : -((1 - low - high) / 2);
    int k = middle;
    k = far - FP_SCALED_EXPONENT > k ? far - FP_SCALED_EXPONENT : k;
    k = high - FP_SCALED_EXPONENT > k ? high - FP_SCALED_EXPONENT : k;
    k = k < low + FP_SCALED_EXPONENT ? k : low + FP_SCALED_EXPONENT;
    if (k <= FP_UNSCALED_EXPONENT && k >= -FP_UNSCALED_EXPONENT)
        return 0;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < sides[side]->n; i++) {
            sides[side]->m[i] = ldexp(sides[side]->m[i], -k);
            sides[side]->s[i] = ldexp(sides[side]->s[i], -k);
        }
    return k;
}

static int fp_signed_order(const void *first, const void *second)
{
    const fp_signed_component *a = first, *b = second;
    if (a->m != b->m)
        return a->m < b->m ? -1 : 1;
    if (a->s != b->s)
        return a->s < b->s ? -1 : 1;
    return a->position - b->position;
}

/* The components of p - q, equal ones merged, with weights hi + lo that are exact to 2^-106; returns how many, or -1. */
static inline int fp_signed_difference(fp_row_workspace *ws, const fp_side *p, const fp_side *q,
                                       fp_log_ratio_terms *ratio)
{
    const int n = p->n + q->n;
    if (n > ws->term_capacity) {
        free(ws->terms), free(ws->components);
        ws->terms = malloc(sizeof(double) * 6 * (size_t)n);
        ws->components = malloc(sizeof(fp_signed_component) * (size_t)n);
        ws->term_capacity = ws->terms && ws->components ? n : 0;
        if (!ws->term_capacity)
            return -1;
    }
    double *hi = ws->terms, *lo = hi + n, *m = hi + 2 * n, *s = hi + 3 * n, *zero = hi + 4 * n, *parts = hi + 5 * n;
    for (int i = 0; i < n; i++) {
        const fp_side *side = i < p->n ? p : q;
        const int j = i < p->n ? i : i - p->n;
        ws->components[i] = (fp_signed_component){i < p->n ? side->w[j] : -side->w[j], side->m[j], side->s[j], i};
        zero[i] = 0.0;
    }
    qsort(ws->components, (size_t)n, sizeof *ws->components, fp_signed_order);
    int kept = 0;
    for (int i = 0, end; i < n; i = end) {
        int count = 0; /* of parts, which sum to the weights so far exactly and do not overlap (Shewchuk 1997) */
        for (end = i; end < n && ws->components[end].m == ws->components[i].m
                      && ws->components[end].s == ws->components[i].s; end++) {
            fp_dd carry = {ws->components[end].w, 0.0};
            for (int j = 0; j < count; j++) {
                carry = fp_two_sum(carry.hi, parts[j]);
                parts[j] = carry.lo;
            }
            parts[count++] = carry.hi;
        }
        fp_dd sum = {0.0, 0.0};
        for (int j = count - 1; j >= 0; j--)
            sum = fp_dd_add_d(sum, parts[j]);
        if (sum.hi == 0.0)
            continue;
        hi[kept] = sum.hi, lo[kept] = sum.lo, m[kept] = ws->components[i].m, s[kept] = ws->components[i].s;
        kept++;
    }
    ratio->difference = (fp_component_terms){kept, hi, lo, m, s};
    ratio->q = (fp_component_terms){q->n, q->w, zero, q->m, q->s};
    return kept;
}

/* One run of the engine. Returns 0, -1 when memory is short, or FP_INTERRUPTED. */
static inline int fp_row_run(fp_row_workspace *ws, fp_row *row, int kind, const fp_side *p, const fp_side *q, double b,
                             double reach, const fp_log_ratio_terms *ratio, fp_row_integral *out)
{
    fp_integral *w = &ws->integral;
    w->kind = kind, w->b = b, w->reach = reach, w->unit = kind == FP_INFORMATION ? q->unit : 1.0, w->target = FP_TARGET_TRUNCATION, w->ratio = ratio;
    w->max_panels = ws->max_panels ? ws->max_panels : 100000 + 100 * (long)(p->n + q->n);
    w->max_work = ws->max_work;
    w->stop = ws->stop;
    if (fp_gaussian_mixture_build(&w->p, p->n, p->w, p->m, p->s)
        || fp_gaussian_mixture_build(&w->q, q->n, q->w, q->m, q->s) || fp_integral_start(w))
        return -1;
    const int status = fp_integral_run(w);
    ws->stop = w->stop;
    if (status == -1 || status == FP_INTERRUPTED)
        return status;
    const double size = fabs(fp_accumulator_value(&w->sum)) + w->truncation + w->rounding + (kind == FP_ENTROPY ? 2e3 : 0.0);
    w->truncation += FP_DROPPED * (p->n + q->n) * (1.0 + 2.0 * fabs(b)) * (size + sqrt(size));
    *out = (fp_row_integral){w->scale, fp_accumulator_value(&w->sum), w->truncation, w->rounding,
                             FP_BY_PANELS | (ratio ? FP_BY_RATIO : 0) | (status == 1 ? FP_OUT_OF_BUDGET : 0)
                             | (status == FP_EXPIRED ? FP_OUT_OF_TIME : 0)};
    row->panels = w->panels, row->evaluations = w->evaluations;
    if (!(fabs(out->sum + out->truncation + out->rounding) < INFINITY)) {
        out->sum = fabs(out->sum) < INFINITY ? out->sum : 0.0;
        out->truncation = INFINITY, out->rounding = 0.0;
    }
    return 0;
}

/* Gather a pair for the trapezoidal rule; 0 where it does not serve. */
static inline int fp_row_trapezoid_gather(fp_trapezoid *w, const fp_side *p, const fp_side *q)
{
    return p->n + q->n <= 2 * FP_MAX_POINTS
           && fp_trapezoid_gather(w, p->n, p->w, p->m, p->s, q->n, q->w, q->m, q->s, p->excess - q->excess);
}

/* The integral by the trapezoidal rule; 1 where it served and is sharp. */
static inline int fp_row_trapezoid(fp_row *row, int kind, const fp_side *p, const fp_side *q, double b,
                                   fp_row_integral *out)
{
    fp_trapezoid w;
    w.kind = kind, w.b = b, w.unit = q->unit, w.rare = q->unit * q->others;
    if (kind == FP_ENTROPY || !fp_row_trapezoid_gather(&w, p, q) || !fp_trapezoid_run(&w)
        || (kind != FP_RENYI && w.truncation + w.rounding > FP_TARGET_WIDTH * fabs(w.sum)))
        return 0;
    *out = (fp_row_integral){w.scale, w.sum, w.truncation, w.rounding, FP_BY_TRAPEZOID};
    row->panels = 0, row->evaluations = w.evaluations;
    return 1;
}

/* The integral of one integrand of fp_integrand.h, again in double-doubles where its bounds are wide. The method is
 * FP_EQUAL_PAIR when p and q turn out to be the same measure. */
static inline int fp_row_integrate(fp_row_workspace *ws, fp_row *row, int kind, const fp_side *p, const fp_side *q,
                                   double b, double reach, fp_row_integral *out)
{
    if (fp_row_trapezoid(row, kind, p, q, b, out))
        return 0;
    int status = fp_row_run(ws, row, kind, p, q, b, reach, NULL, out);
    if (status)
        return status;
    double allowed = FP_TARGET_WIDTH * fabs(out->sum);
    if (kind == FP_RENYI && out->sum > 0.0) /* the logarithm of this integral is the answer */
        allowed *= fabs(out->scale + fp_log(out->sum));
    const double error = out->truncation + out->rounding;
    const double typical = out->truncation + FP_TYPICAL_ROUNDING * out->rounding;
    const int sharper = (kind == FP_KL || kind == FP_JS || kind == FP_RENYI_SMALL)
                        && !(out->method & (FP_OUT_OF_BUDGET | FP_OUT_OF_TIME));
    if (error > allowed && sharper && out->truncation < INFINITY && (ws->certified || typical > allowed)) {
        fp_log_ratio_terms ratio;
        fp_row_integral again;
        fp_row spent = *row;
        const int n = fp_signed_difference(ws, p, q, &ratio);
        if (n < 0)
            return -1;
        if (n == 0) {
            out->method = FP_EQUAL_PAIR;
            return 0;
        }
        status = fp_row_run(ws, &spent, kind, p, q, b, reach, &ratio, &again);
        if (status)
            return status;
        if (again.truncation + again.rounding < error)
            *out = again, *row = spent;
    }
    if (!ws->certified && !(out->truncation + out->rounding <= allowed))
        out->method |= FP_HEURISTIC; /* proved bounds are used wherever they are narrow enough or asked for */
    return 0;
}

/* KL (order 1) or Renyi divergence of two Gaussians, where doubles lose no digits; else the row is wide. */
static inline void fp_row_two_gaussians(fp_row *row, const fp_side *p, const fp_side *q, double order)
{
    const double s = p->s[0], t = q->s[0], gap = (s - t) / t, z = (p->m[0] - q->m[0]) / t;
    const double x = gap * ((s + t) / t), b = order - 1.0, y = -b * x, square = z * z;
    row->status = FP_ROW_WIDE;
    if (!(square < 1e290 && fabs(x) < 1e290 && fabs(y) < 1e290) || (z != 0.0 && square < 1e-280)
        || (x != 0.0 && (fabs(x) < 1e-140 || s < 1e-290 * t)))
        return; /* out of the range of doubles */
    if (order != 1.0 && (!(1.0 + y > 0.05 * (1.0 + fabs(y))) || order < 0.5 || fabs(b) < 1e-10 || order > 1e10
                         || fabs(x) > 0.25 || (b < 0.0 && fabs(y) > 0.25)))
        return; /* terms would cancel */
    const double value = fp_gaussian_divergence(b, s, t, square);
    const double margin = (order == 1.0 ? 64.0 : 128.0) * fp_ulp(value);
    if (!(value < 1e300))
        return;
    fp_row_exact(row, value, value != 0.0 ? margin : 0.0, FP_BY_CLOSED_FORM);
    row->lower = fp_max(row->lower, 0.0);
}

/* Whether p^order q^(1 - order) has a finite integral, for an order above 1: 1, 0 or, undecided, -1. It has where
 * order t^2 > (order - 1) s^2 for the largest standard deviations s of P and t of Q. */
static inline int fp_tails_finite(const fp_side *p, const fp_side *q, double order)
{
    double s = 0.0, t = 0.0;
    for (int i = 0; i < p->n; i++)
        s = fp_max(s, p->s[i]);
    for (int j = 0; j < q->n; j++)
        t = fp_max(t, q->s[j]);
    if (s <= t)
        return 1;
    const double r = s / t, other = (order - 1.0) * r * r, gap = order - other;
    return !(fabs(gap) > FP_DECIDED * (order + other)) && other < INFINITY ? -1 : gap > 0.0;
}

/* Half-width that leaves out at most e^-750 of the integral, for an order a above 1, rounded up; infinity where doubles
 * do not decide it. p^a <= k^b sum (w_i N_i)^a, b = a - 1, and q is at least its widest component; each product is a
 * Gaussian curve, and J >= 0. With g = a - b s^2 / t^2 its centre is n + a (m - n) / g, its precision g / s^2, and
 * the logarithm of its height a log(w / s) - b log(v / t) + a b ((m - n) / t)^2 / (2 g). */
static inline double fp_half_width(const fp_side *p, const fp_side *q, double order)
{
    const double a = order, b = order - 1.0;
    int widest = 0;
    for (int j = 1; j < q->n; j++)
        if (q->s[j] > q->s[widest] || (q->s[j] == q->s[widest] && q->w[j] > q->w[widest]))
            widest = j;
    const double n = q->m[widest], t = q->s[widest], log_q = fp_log(q->w[widest]) - fp_log(t);
    const double extra = 801.0 + b * fp_log((double)p->n);
    double most = 0.0;
    for (int i = 0; i < p->n; i++) {
        const double ratio = p->s[i] / t, g = a - b * ratio * ratio, z = (p->m[i] - n) / t;
        if (!(g > FP_DECIDED * a))
            return INFINITY;
        const double peak = a * (fp_log(p->w[i]) - fp_log(p->s[i])) - b * log_q, rise = 0.5 * a * b * z * z / g;
        const double drop = 2.0 * (fp_max(peak + rise, 0.0) + extra);
        const double half = fabs(n) + a * fabs(p->m[i] - n) / g + p->s[i] * sqrt(drop / g);
        most = half > most ? half : most;
        if (!(half < INFINITY))
            return INFINITY;
    }
    return most * 1.0001;
}

/* D from bounds of p^(1 + b) q^(-b) on panels, where rounding leaves no digit of the integral: J is so large there that
 * they leave most digits of its logarithm. */
static inline int fp_row_panel_bounds(fp_row_workspace *ws, fp_row *row, const fp_side *p, const fp_side *q,
                                      double order, double b, double half_width, double log_normaliser,
                                      double normaliser_error, const fp_row_integral *integral)
{
    fp_integral *w = &ws->integral;
    double lower = 0.0, upper = 0.0;
    w->kind = FP_RENYI, w->b = b, w->reach = fp_min(half_width, FP_LARGEST_HALF_WIDTH), w->unit = 1.0, w->ratio = NULL;
    w->target = FP_TARGET_TRUNCATION, w->max_panels = w->max_work = 0, w->stop = ws->stop;
    if (fp_gaussian_mixture_build(&w->p, p->n, p->w, p->m, p->s)
        || fp_gaussian_mixture_build(&w->q, q->n, q->w, q->m, q->s) || fp_integral_start(w)
        || fp_renyi_bounds(w, &lower, &upper))
        return -1;
    ws->stop = w->stop;
    if (ws->stop.status == FP_INTERRUPTED)
        return FP_INTERRUPTED;
    row->panels += w->panels;
    row->method = FP_BY_PANEL_BOUNDS | (ws->stop.status == FP_EXPIRED ? FP_OUT_OF_TIME : 0);
    upper = half_width <= FP_LARGEST_HALF_WIDTH ? upper + 1e-13 : INFINITY; /* 1e-13: what lies beyond the half-width */
    const double error = fp_row_error(integral);
    if (integral->sum > 0.0 && error < INFINITY) {
        const double most = fp_log(integral->sum + error), least = fp_log(integral->sum - error), scale = integral->scale;
        upper = fp_min(upper, scale + most + 4.0 * FP_U * (fabs(scale) + fabs(most) + 1.0));
        if (error < integral->sum)
            lower = fp_max(lower, scale + least - 4.0 * FP_U * (fabs(scale) + fabs(least) + 1.0));
    }
    lower -= normaliser_error, upper += normaliser_error;
    const double ends[2] = {(lower + log_normaliser) / (order - 1.0), (upper + log_normaliser) / (order - 1.0)};
    double low = fp_min(ends[0], ends[1]), high = fp_max(ends[0], ends[1]);
    low -= 4.0 * FP_U * fabs(low), high += 4.0 * FP_U * fabs(high);
    row->lower = fp_min(fp_max(low, 0.0), 1.7976931348623157e308);
    row->upper = high > 0.0 || high != high ? high : 0.0;
    row->upper = row->upper == row->upper ? row->upper : INFINITY;
    row->lower = row->lower == row->lower ? row->lower : 0.0;
    row->status = row->upper < INFINITY ? FP_ROW_SETTLED : FP_ROW_WIDE;
    row->value = fp_row_middle(row);
    return 0;
}

/* KL, JS, entropy and information from their integrals; Renyi below. */
static inline int fp_row_of_integral(fp_row_workspace *ws, fp_row *row, int kind, const fp_side *p, const fp_side *q,
                                     int exponent, double ceiling)
{
    fp_row_integral r;
    const fp_side none = {0};
    if (kind == FP_ENTROPY && fp_row_trapezoid(row, FP_INFORMATION, &none, p, 0.0, &r)) {
        const double log_sigma = fp_log(p->s[0]); /* log(sigma sqrt(2 pi e)) and the information of the component */
        r.rounding += fp_side_gap(p) * r.sum, r.sum += FP_NORMAL_ENTROPY + log_sigma;
        r.rounding += 2.0 * FP_U * (3.0 + fabs(log_sigma) + fabs(r.sum));
    } else {
        const int status = fp_row_integrate(ws, row, kind, p, q, 0.0, 0.0, &r);
        if (status)
            return status;
    }
    if (r.method & FP_EQUAL_PAIR) {
        fp_row_exact(row, 0.0, 0.0, FP_EQUAL_PAIR);
        return 0;
    }
    row->method = r.method;
    const double a = p->n ? p->excess : 0.0, b = q->n ? q->excess : 0.0;
    const double gap_a = p->n ? fp_side_gap(p) : 0.0, gap_b = q->n ? fp_side_gap(q) : 0.0;
    double value = r.sum, error = fp_row_error(&r), floor = 0.0;
    switch (kind) {
    case FP_INFORMATION: {
        const double down = 1.0 / q->unit, count = q->n; /* what the sum of the weights changes: theorem 4.18 */
        const double relative = gap_b * (q->unit > 1.0 ? 4.0 + 100.0 * count * count * gap_b : 16.0 * count);
        const double square = q->unit > 1.0 && count <= 4000.0 ? 0.0 : gap_b * gap_b;
        value *= down;
        error = error * down + 1e-323
                + fp_min(2.0 * gap_b * (value + 40.0 * count * count * gap_b), relative * value + square);
        break;
    }
    case FP_KL: {
        const double apart = (a - b) / (1.0 + b); /* A/B - 1, and the logarithm of A/B to first order */
        const double extra = fabs(apart) > 1e-5 ? (1.0 + a) * fp_log1p(apart) - (a - b) : 0.5 * apart * apart;
        const double slack = p->slack + q->slack;
        for (int proved = 0; proved < 2; proved++) {
            value = fp_max((r.sum - extra) / (1.0 + a), 0.0);
            error = fp_row_error(&r) * (1.0 + 2.0 * gap_a) + 2.0 * (gap_a + gap_b) * r.sum + 2.0 * extra
                    + slack * (slack + fabs(apart));
            if (error <= FP_WIDE * value || !(r.method & FP_HEURISTIC))
                break;
            r.method &= ~FP_HEURISTIC;
            row->method = r.method;
        }
        row->status = error <= FP_WIDE * value ? FP_ROW_SETTLED : FP_ROW_WIDE;
        break;
    }
    case FP_JS: {
        const double apart = fabs(a - b) + p->slack + q->slack;
        error += 2.0 * fp_max(gap_a, gap_b) * fabs(value) + apart * apart;
        break;
    }
    case FP_ENTROPY: {
        const double shift = exponent * FP_LN2;
        value += shift * (1.0 + a);
        error += 8.0 * FP_U * (fabs(shift) + fabs(value)) + 1.1 * gap_a * (1.0 + fabs(value));
        floor = -INFINITY;
        break;
    }
    }
    fp_row_enclose(row, value, error, floor, ceiling);
    return 0;
}

/* A row from the binomial sum of its setting, the i-th */
static inline void fp_row_binomial(fp_row *row, const fp_binomials *sums, int i)
{
    const double divisor = sums->order[i] - 1.0;
    *row = (fp_row){.status = FP_ROW_SETTLED, .method = FP_BY_BINOMIAL_SUM};
    fp_row_enclose(row, sums->value[i] / divisor, sums->error[i] / divisor, 0.0, INFINITY);
}

static inline int fp_row_renyi(fp_row_workspace *ws, fp_row *row, const fp_side *p, const fp_side *q, double order,
                               double half_width)
{
    const double divisor = order - 1.0;
    /* J is symmetric under a -> 1 - a with P and Q exchanged; b is then exact and at least -1/2 */
    const int swapped = order < 0.5;
    const fp_side *first = swapped ? q : p, *second = swapped ? p : q;
    const double b = swapped ? -order : divisor;
    fp_row_integral r, small;
    int status = fp_row_integrate(ws, row, FP_RENYI, first, second, b, half_width, &r);
    if (status)
        return status;
    row->method = r.method;
    const double normaliser_p = order * fp_log1p(p->excess), normaliser_q = divisor * fp_log1p(q->excess);
    const double log_normaliser = normaliser_q - normaliser_p;
    const double normaliser_error = 8.0 * FP_U * (fabs(normaliser_p) + fabs(normaliser_q)) + 1.1 * order * p->slack
                                    + 1.1 * fabs(divisor) * q->slack;
    if (!(fp_row_error(&r) <= FP_WIDE * r.sum))
        return fp_row_panel_bounds(ws, row, first, second, order, b, half_width, log_normaliser, normaliser_error, &r);
    const double log_integral = r.scale + fp_log(r.sum) + log_normaliser;
    double error = -fp_log1p(-fp_row_error(&r) / r.sum) + 4.0 * FP_U * (fabs(r.scale) + fabs(fp_log(r.sum)))
                   + normaliser_error;
    if (fabs(log_integral) < FP_SMALL_LOG_INTEGRAL) {
        status = fp_row_integrate(ws, row, FP_RENYI_SMALL, first, second, b, half_width, &small);
        if (status)
            return status;
        if (small.method & FP_EQUAL_PAIR) {
            fp_row_exact(row, 0.0, 0.0, FP_EQUAL_PAIR);
            return 0;
        }
        if (small.method & FP_OUT_OF_TIME) { /* the first integral is complete, better than a part of this one */
            row->method |= FP_OUT_OF_TIME;
        } else {
            const double mass = 1.0 + first->excess, x = (second->excess - first->excess) / mass;
            const double slack = first->slack + second->slack, size = fp_row_error(&small) / mass;
            const double s = small.sum / mass, t = s - x, bent = fp_excess(b * t) / b, gap = fp_excess(x);
            const double factor = b / divisor; /* 1, or order / (1 - order) where P and Q are exchanged */
            const double least = 1.0 + fp_min(0.0, b * t - fabs(b) * size); /* bounds 1 + b t from below */
            error = least > 0.0 ? (size + 2.0 * slack * (s + fabs(x) + slack)) / least : INFINITY;
            error += FP_U * (12.0 * s + 32.0 * (fabs(bent) + gap));
            row->method = small.method;
            fp_row_enclose(row, factor * (s - gap - bent), fabs(factor) * error, 0.0, INFINITY);
            return 0;
        }
    }
    fp_row_enclose(row, log_integral / divisor, error / fabs(divisor), 0.0, INFINITY);
    return 0;
}

/* Half the signal-to-noise ratio. With v = variance / sigma^2 and r = range / sigma, dI/d(1/sigma^2) is half the mean
 * square error of the best estimate (Guo, Shamai and Verdu 2005), which starts at the variance and falls no faster
 * than v r^2 / 4, so that v/2 (1 - r^2 / 8) <= I <= v/2. */
static inline void fp_row_low_signal(fp_row *row, const fp_side *q, double range)
{
    const double sigma = q->s[0], origin = q->m[q->largest], exact_gap = fp_side_gap(q), gap = exact_gap <= FP_ROUNDED_GAP ? 0.0 : exact_gap;
    fp_dd centre = {0.0, 0.0}, sum = {0.0, 0.0}; /* the centre need not be the mean, from which squares are least */
    for (int i = 0; i < q->n; i++)
        centre = fp_dd_add(centre, fp_dd_mul_d(fp_two_sum(q->m[i], -origin), q->w[i]));
    for (int i = 0; i < q->n; i++) {
        const double z = fp_dd_sub(fp_two_sum(q->m[i], -origin), centre).hi / sigma;
        sum = fp_dd_add_d(sum, q->w[i] * (z * z));
    }
    const double farthest = range * fp_min(q->others, 1.0);
    const double value = 0.5 * (sum.hi + sum.lo), centre_error = 1.1 * (exact_gap + 1e-28 * q->n) * farthest;
    const double rounding = 12.0 * FP_U * value + 1e-322 * (q->n + 8) + 4.0 * gap * value;
    row->method = FP_BY_LOW_SIGNAL;
    row->value = value;
    row->lower = fp_max(value * (1.0 - range * range / 8.0) - rounding - centre_error * centre_error, 0.0);
    row->upper = value + rounding;
}

/* An upper bound of the entropy of the weights; (1 - r) log(1/(1 - r)) <= r bounds the term of the likeliest. */
static inline double fp_entropy_above(const fp_side *q)
{
    const double gap = fp_side_gap(q);
    double sum = 0.0;
    for (int i = 0; i < q->n; i++)
        sum += q->unit == 1.0 || i != q->largest ? q->w[i] * ((q->unit > 1.0) - fp_log(q->w[i])) : 0.0;
    return sum * (1.0 + (q->n + 8) * 2.0 * FP_U) + (q->unit > 1.0 ? 2.0 * gap * sum + 1e-323 * q->n : 2.0 * gap);
}

/* A lower bound of the information: that of the answer to X > mean and the answer to Y > threshold, between the means of
 * both sides. b and a are the probabilities of Y > threshold given either side, o that of both, beta the prior of the
 * upper side; b and a are brought nearer to each other by more than their rounding, and beta d(b || o) +
 * (1 - beta) d(a || o) is written so that it stays accurate for small beta: the upper side is the less likely of both. */
static inline double fp_information_of_threshold(const fp_side *q, double mean)
{
    const double origin = q->m[q->largest];
    double weight[2] = {0.0, 0.0}, centre[2] = {0.0, 0.0}, above[2] = {0.0, 0.0}, below[2] = {0.0, 0.0};
    double scale = 1.0 / q->s[0];
    for (int i = 0; i < q->n; i++)
        weight[(q->m[i] - origin) * scale > mean] += q->w[i];
    if (weight[1] > weight[0])
        scale = -scale, mean = -mean;
    weight[0] = weight[1] = 0.0;
    for (int i = 0; i < q->n; i++) {
        const double c = (q->m[i] - origin) * scale;
        weight[c > mean] += q->w[i], centre[c > mean] += q->w[i] * c;
    }
    if (!(weight[0] > 0.0 && weight[1] > 0.0))
        return 0.0;
    centre[0] /= weight[0], centre[1] /= weight[1];
    const double threshold = 0.5 * (centre[0] + centre[1]) + fp_log(weight[0] / weight[1]) / (centre[1] - centre[0]);
    for (int i = 0; i < q->n; i++) {
        const double c = (q->m[i] - origin) * scale, slip = 8.0 * FP_U * (fabs(threshold) + fabs(c));
        const double t = (threshold - c + (c > mean ? slip : -slip)) * 0.70710678118654752;
        const double fraction = 0.5 * (q->w[i] / weight[c > mean]);
        above[c > mean] += fraction * fp_erfc(t);
        below[c > mean] += fraction * fp_erfc(-t);
    }
    const double total = weight[0] + weight[1], beta = weight[1] / total, complement = weight[0] / total;
    const int low_b = above[1] < 0.5, low_a = above[0] < 0.5;
    const double small_b = low_b ? above[1] * (1.0 - 1e-9) : below[1] * (1.0 + 1e-9);
    const double small_a = low_a ? above[0] * (1.0 + 1e-9) : below[0] * (1.0 - 1e-9);
    const double b = low_b ? small_b : 1.0 - small_b, not_b = low_b ? 1.0 - small_b : small_b;
    const double a = low_a ? small_a : 1.0 - small_a, not_a = low_a ? 1.0 - small_a : small_a;
    const double difference = low_b == low_a && !low_b ? not_a - not_b : b - a;
    const double o = beta * b + complement * a, not_o = beta * not_b + complement * not_a;
    if (!(difference > 0.0 && o > 0.0 && not_o > 0.0))
        return 0.0;
    const double gain_b = b * fp_log(b / o), loss_a = a > 0.0 ? a * fp_log(a / o) : 0.0;
    const double loss_b = not_b > 0.0 ? not_b * fp_log1p(-(complement * difference / not_o)) : 0.0;
    const double gain_a = not_a * fp_log1p(beta * difference / not_o);
    const double size = beta * (fabs(gain_b) + fabs(loss_b)) + complement * (fabs(loss_a) + fabs(gain_a));
    return beta * (gain_b + loss_b) + complement * (loss_a + gain_a) - (1e-12 * size + 2e-15 * o);
}

/* Bounds of the information that share nothing with the integral. With c_i the distances from the likeliest input in
 * sigma, r the prior of the others, V the variance and R the range of the inputs in sigma:
 *     upper   the entropy of the prior; log(1 + V) / 2, the most of any input of that variance (Shannon 1948);
 *     lower   sum pi_i c_i^2 / 2 less KL(q||N_0), which is at most log(1 + (sum pi_i sqrt(e^(c_i^2) - 1))^2);
 *             V/2 (1 - R^2 / 8); what a threshold says about X > mean. */
static inline void fp_information_bounds(const fp_side *q, double range, double *lower, double *upper)
{
    const double origin = q->m[q->largest], scale = 1.0 / q->s[0], gap = fp_side_gap(q);
    double mean = 0.0, first = 0.0, root = 0.0, variance;
    for (int i = 0; i < q->n; i++) {
        if (i == q->largest)
            continue;
        const double c = (q->m[i] - origin) * scale, square = c * c;
        mean += q->w[i] * c, first += 0.5 * (q->w[i] * square);
        root += square < 700.0 ? q->w[i] * sqrt(fp_expm1(square)) : INFINITY;
    }
    variance = (q->unit > 1.0 ? 1.0 : q->w[q->largest]) * mean * mean;
    for (int i = 0; i < q->n; i++) {
        const double c = (q->m[i] - origin) * scale - mean;
        variance += i == q->largest ? 0.0 : q->w[i] * (c * c);
    }
    const double slack = 1e-9 + 4.0 * gap, tiny = 1e-322 * (q->n + 4);
    *upper = 0.5 * fp_log1p(variance) * (1.0 + slack) + tiny;
    *lower = 0.0;
    if (root < 1e150)
        *lower = fp_max(*lower, (first - fp_log1p(root * root)) - slack * (first + fp_log1p(root * root)) - tiny);
    if (range < 2.0)
        *lower = fp_max(*lower, 0.5 * variance * (1.0 - range * range / 8.0) * (1.0 - slack) - tiny);
    if (range > 1.0 && range < 1e100)
        *lower = fp_max(*lower, fp_information_of_threshold(q, mean) * (1.0 - slack) - tiny);
}

/* Intersect the bounds with others of the same number, derived independently; where they do not meet, one of them is
 * false, and the hull holds if the other does. */
static inline void fp_row_reconcile(fp_row *row, double lower, double upper)
{
    if (row->lower <= upper && lower <= row->upper) {
        row->lower = fp_max(row->lower, lower), row->upper = fp_min(row->upper, upper);
    } else {
        row->lower = fp_min(row->lower, lower), row->upper = fp_max(row->upper, upper);
        row->method |= FP_BOUNDS_DISAGREE;
    }
    if (!(row->lower <= row->value && row->value <= row->upper))
        row->value = fp_row_middle(row);
}

/* Close the bracket of an entropy or a divergence by bounds of another kind; lengths were divided by 2^exponent. An
 * entropy lies between the mean of those of the components and that plus the entropy of the weights. */
static inline void fp_row_close(fp_row_workspace *ws, fp_row *row, int quantity, const fp_side *p, const fp_side *q,
                                double order, int exponent)
{
    double lower = 0.0, upper;
    if (quantity == FP_ENTROPY) {
        const double weights = fp_entropy_above(p), gap = fp_side_gap(p);
        double size = 0.0;
        for (int i = 0; i < p->n; i++) {
            const double h = FP_NORMAL_ENTROPY + (fp_log(p->s[i]) + exponent * FP_LN2);
            lower += p->w[i] * h, size += p->w[i] * (4.0 + fabs(h) + fabs(exponent * FP_LN2));
        }
        size *= (p->n + 16) * FP_U + 2.0 * gap;
        fp_row_reconcile(row, lower - size, lower + weights + size);
        return;
    }
    const int swapped = quantity == FP_RENYI && order < 0.5; /* as in fp_row_renyi */
    const fp_side *first = swapped ? q : p, *second = swapped ? p : q;
    const fp_mixture_columns of_p = {first->n, first->w, first->m, first->s, fp_side_gap(first)},
                             of_q = {second->n, second->w, second->m, second->s, fp_side_gap(second)};
    const double b = quantity != FP_RENYI ? 0.0 : swapped ? -order : order - 1.0;
    const double factor = swapped ? b / (order - 1.0) : 1.0, slack = swapped ? 4.0 * FP_U : 0.0;
    fp_elementary_divergence(quantity, b, &of_p, &of_q, ws->columns + 3 * ws->column_capacity, &lower, &upper);
    fp_row_reconcile(row, factor * lower * (1.0 - slack), factor * upper * (1.0 + slack));
}

static inline int fp_row_information(fp_row_workspace *ws, fp_row *row, fp_side *q)
{
    double least = INFINITY, largest = -INFINITY, others = 0.0, lower, upper;
    fp_side none = {0};
    for (int i = 0; i < q->n; i++) {
        least = fp_min(least, q->m[i]), largest = fp_max(largest, q->m[i]);
        q->largest = q->w[i] > q->w[q->largest] ? i : q->largest;
    }
    if (least == largest) {
        fp_row_exact(row, 0.0, 0.0, FP_ONE_INPUT);
        return 0;
    }
    for (int i = 0; i < q->n; i++)
        others += i == q->largest ? 0.0 : q->w[i];
    q->others = others * (1.0 + 1e-9);
    if (others < FP_RARE)
        q->unit = ldexp(1.0, -fp_exponent(others) < FP_MAX_UNIT ? -fp_exponent(others) : FP_MAX_UNIT);
    const double range = (largest - least) / q->s[0], entropy = fp_entropy_above(q);
    int status = 0;
    fp_information_bounds(q, range, &lower, &upper);
    if (range < FP_LOW_SIGNAL) {
        fp_row_low_signal(row, q, range);
    } else {
        fp_sides_rescale(&none, q);
        status = fp_row_of_integral(ws, row, FP_INFORMATION, &none, q, 0, entropy);
    }
    fp_row_reconcile(row, lower, fp_min(upper, entropy));
    return status;
}

/* Gather the components of a row, with room for fp_row_close; 0, FP_ROW_INVALID, or -1 when memory is short. */
static inline int fp_row_gather(fp_row_workspace *ws, int k, fp_column w, fp_column m, fp_column s, int j, fp_column v,
                                fp_column n, fp_column t, fp_side *p, fp_side *q)
{
    if (k + j > ws->column_capacity) {
        free(ws->columns);
        ws->columns = malloc(sizeof(double) * 5 * (size_t)(k + j));
        ws->column_capacity = ws->columns ? k + j : 0;
        if (!ws->columns)
            return -1;
    }
    double *cursor = ws->columns;
    const int invalid = fp_side_gather(p, &cursor, k, w, m, s);
    return invalid | (j ? fp_side_gather(q, &cursor, j, v, n, t) : 0);
}

/* One row: the quantity is FP_KL, FP_JS, FP_RENYI, FP_ENTROPY (of P alone) or FP_INFORMATION (P: prior, points, sigma).
 * half_width is negative, or that of an interval that holds all of a Renyi integral but e^-750 of it, computed by the
 * caller after fp_sides_rescale. Returns 0, -1 when memory is short, or FP_INTERRUPTED. */
static inline int fp_mixture_row(fp_row_workspace *ws, int quantity, int k, fp_column w, fp_column m, fp_column s,
                                 int j, fp_column v, fp_column n, fp_column t, double order, double half_width,
                                 fp_row *row)
{
    const int exact = half_width >= 0.0; /* then the tails were decided, too */
    fp_side p, q = {0};
    *row = (fp_row){0.0, 0.0, INFINITY, FP_ROW_SETTLED, 0, 0, 0};
    const int invalid = fp_row_gather(ws, k, w, m, s, j, v, n, t, &p, &q);
    if (invalid == -1)
        return -1;
    if (invalid || (quantity == FP_RENYI && !(order > 0.0))) {
        row->value = row->lower = row->upper = NAN;
        row->status = FP_ROW_INVALID;
        return 0;
    }
    if (quantity == FP_INFORMATION)
        return fp_row_information(ws, row, &p);
    if (quantity == FP_RENYI && order == 1.0)
        quantity = FP_KL;
    const int pair = quantity != FP_ENTROPY, single = p.n == 1 && p.w[0] == 1.0;
    if (pair && fp_sides_equal(&p, &q)) {
        fp_row_exact(row, 0.0, 0.0, FP_EQUAL_PAIR);
        return 0;
    }
    if (quantity == FP_RENYI && p.n == 2 && q.n == 1) {
        fp_binomials sums; /* as of several rows, for the same bits */
        sums.n = 0;
        if (fp_binomials_add(&sums, order, p.w, p.m, p.s, q.m[0], q.s[0])) {
            fp_binomials_run(&sums);
            fp_row_binomial(row, &sums, 0);
            return 0;
        }
    }
    if (quantity == FP_ENTROPY && single) {
        const double log_sigma = fp_log(p.s[0]), value = FP_NORMAL_ENTROPY + log_sigma;
        fp_row_exact(row, value, 2.0 * FP_U * (2.0 + fabs(log_sigma) + fabs(value)), FP_BY_CLOSED_FORM);
        return 0;
    }
    if (quantity == FP_RENYI && !exact) {
        const int finite = order < INFINITY ? order > 1.0 ? fp_tails_finite(&p, &q, order) : 1 : -1;
        if (finite == 0) {
            row->value = row->lower = INFINITY;
            row->method = FP_DIVERGES;
            return 0;
        }
        if (finite < 0) {
            row->status = FP_ROW_UNDECIDED;
            return 0;
        }
    }
    const int gaussians = single && q.n == 1 && q.w[0] == 1.0 && quantity != FP_JS;
    if (gaussians) {
        fp_row_two_gaussians(row, &p, &q, quantity == FP_KL ? 1.0 : order);
        if (row->status == FP_ROW_SETTLED)
            return 0;
    }
    const int exponent = fp_sides_rescale(&p, &q);
    if (quantity != FP_RENYI || order <= 1.0) {
        half_width = 0.0;
    } else if (!exact) {
        half_width = order > FP_LARGEST_ORDER ? INFINITY : fp_half_width(&p, &q, order);
        if (!(half_width <= FP_LARGEST_HALF_WIDTH)) {
            row->status = FP_ROW_UNDECIDED;
            return 0;
        }
    }
    row->status = FP_ROW_SETTLED;
    const int status = quantity == FP_RENYI
        ? fp_row_renyi(ws, row, &p, &q, order, half_width)
        : fp_row_of_integral(ws, row, quantity, &p, &q, exponent, quantity == FP_JS ? FP_LOG_2_ABOVE : INFINITY);
    if (!status)
        fp_row_close(ws, row, quantity, &p, &q, order, exponent);
    if (gaussians && row->status == FP_ROW_SETTLED)
        row->status = FP_ROW_WIDE; /* exact arithmetic has a closed form for it */
    return status;
}

/* Columns of several rows: entry i of row r is `row` r + `step` i bytes from `data`. */
typedef struct {
    const char *data;
    ptrdiff_t row, step;
} fp_columns;

FP_INLINE double fp_columns_entry(const fp_columns *c, ptrdiff_t r, int i)
{
    return *(const double *)(c->data + r * c->row + i * c->step);
}

/* Several rows of one quantity: the columns of P, of k components, and those of Q, of j; each row has `orders`
 * orders. */
typedef struct {
    int quantity, k, j;
    fp_columns columns[6], order;
    ptrdiff_t orders;
} fp_rows;

/* Add a row of two components and one to the binomial sums; 0 where these do not serve. */
FP_INLINE int fp_rows_binomial(const fp_rows *in, ptrdiff_t r, double order, fp_binomials *sums)
{
    double w[2], m[2], s[2];
    int valid = 1;
    for (int i = 0; i < 2; i++) {
        w[i] = fp_columns_entry(&in->columns[0], r, i);
        m[i] = fp_columns_entry(&in->columns[1], r, i);
        s[i] = fp_columns_entry(&in->columns[2], r, i);
        valid &= (w[i] > 0.0) & (fabs(m[i]) <= FP_LARGEST_LENGTH);
    }
    const double v = fp_columns_entry(&in->columns[3], r, 0), n = fp_columns_entry(&in->columns[4], r, 0);
    const double t = fp_columns_entry(&in->columns[5], r, 0);
    valid &= (fabs(w[0] + w[1] - 1.0) <= 0.99 * FP_LARGEST_GAP) & (fabs(v - 1.0) <= 0.99 * FP_LARGEST_GAP);
    valid &= (t >= 1.0 / FP_LARGEST_LENGTH) & (t <= FP_LARGEST_LENGTH);
    return valid && fp_binomials_add(sums, order, w, m, s, n, t);
}

/* Fill ws->rows with `count` rows from the one of number `first`, orders innermost, at most FP_BINOMIALS. Returns as
 * `fp_mixture_row`; a row for which memory is short is NaN. */
static inline int fp_mixture_rows(fp_row_workspace *ws, const fp_rows *in, ptrdiff_t first, int count)
{
    fp_binomials sums;
    fp_row *rows = ws->rows;
    int position[FP_BINOMIALS], status = 0;
    sums.n = 0;
    for (int at = 0; at < count; at++) {
        const ptrdiff_t r = (first + at) / in->orders;
        const double order = in->order.data ? fp_columns_entry(&in->order, r, (int)((first + at) % in->orders)) : 0.0;
        if (in->quantity == FP_RENYI && in->k == 2 && in->j == 1 && fp_rows_binomial(in, r, order, &sums)) {
            position[sums.n - 1] = at;
            continue;
        }
        fp_column c[6];
        for (int i = 0; i < 6; i++)
            c[i] = (fp_column){in->columns[i].data + r * in->columns[i].row, in->columns[i].step};
        const int failed = fp_mixture_row(ws, in->quantity, in->k, c[0], c[1], c[2], in->j, c[3], c[4], c[5], order, -1.0,
                                          &rows[at]);
        if (failed == FP_INTERRUPTED)
            return failed;
        if (failed)
            rows[at] = (fp_row){.value = NAN, .lower = NAN, .upper = NAN}, status = failed;
    }
    fp_binomials_run(&sums);
    for (int i = 0; i < sums.n; i++)
        fp_row_binomial(&rows[position[i]], &sums, i);
    return status;
}

/* The bracket of `row` closed as that of an integral; returns 0, FP_ROW_INVALID, or -1 when memory is short. */
static inline int fp_mixture_row_close(fp_row_workspace *ws, int quantity, int k, fp_column w, fp_column m, fp_column s,
                                       int j, fp_column v, fp_column n, fp_column t, double order, fp_row *row)
{
    fp_side p, q = {0};
    const int status = fp_row_gather(ws, k, w, m, s, j, v, n, t, &p, &q);
    if (!status)
        fp_row_close(ws, row, quantity, &p, &q, order, fp_sides_rescale(&p, &q));
    return status;
}

#endif
