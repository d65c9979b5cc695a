/* The rows of the enumeration; the mathematics is in fp_membership_posterior.h. No include guard. */
#include "common/fp_lanes_loops.h"
#include "common/fp_vector_loops.h"

/* Rows whose absolute values are summed side by side: as many as the registers hold. */
#undef FP_ABSOLUTE_ROWS
#define FP_ABSOLUTE_ROWS_baseline 1
#define FP_ABSOLUTE_ROWS_avx2 2
#define FP_ABSOLUTE_ROWS_avx512 4
#define FP_ABSOLUTE_ROWS FP_CAT(FP_ABSOLUTE_ROWS, FP_ISA)

/* The running sums of one more person: `to` = `from` and the vector of the high person h. */
static void FP_NAME(fp_membership_add)(const fp_membership_term *term, int low, int h, const double *restrict from,
                                       double *restrict to)
{
    const double *restrict vector = term->vectors + h * term->length;
    for (ptrdiff_t i = 0; i < term->length; i++)
        to[i] = from[i] + vector[i];
    if (term->kind == FP_QUADRATIC) { /* b' G b grows by 2 (G b)_h + G_hh, which is the last entry of the vector */
        const ptrdiff_t k = term->people;
        to[k] += 2.0 * from[low + h];
        to[2 * k + 1] += 2.0 * from[k + 1 + low + h];
    }
}

/* Add q F(n) to the exponents of a row, in two doubles. */
static void FP_NAME(fp_membership_combine)(ptrdiff_t n, const double *restrict q1, const double *restrict q2,
                                           const double *restrict f1, const double *restrict f2, double *restrict e1,
                                           double *restrict e2)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double qa = fp_upper_half(q1[i]), qb = (q1[i] - qa) + q2[i];
        const double product = qa * f1[i], sum = e1[i] + product;
        e2[i] += fp_sum_error(e1[i], product, sum) + (qb * f1[i] + q1[i] * f2[i]);
        e1[i] = sum;
    }
}

/* b' G b of a row: a quadratic form of the low half, and a linear one whose table is built by doubling. */
static void FP_NAME(fp_membership_quadratic)(const fp_membership_term *term, int low, const double *running,
                                             double *restrict q1, double *restrict q2)
{
    const ptrdiff_t subsets = (ptrdiff_t)1 << low, k = term->people;
    const double *restrict low1 = term->low, *restrict low2 = term->low + subsets;
    q1[0] = running[k], q2[0] = running[2 * k + 1];
    for (int bit = 0; bit < low; bit++) {
        const double g1 = 2.0 * running[bit], g2 = 2.0 * running[k + 1 + bit];
        const ptrdiff_t half = (ptrdiff_t)1 << bit;
        double *restrict upper1 = q1 + half, *restrict upper2 = q2 + half;
        for (ptrdiff_t i = 0; i < half; i++) {
            upper1[i] = q1[i] + g1;
            upper2[i] = q2[i] + g2;
        }
    }
    for (ptrdiff_t i = 0; i < subsets; i++) {
        q1[i] += low1[i];
        q2[i] += low2[i];
    }
}

/* Over attributes, of rows that share the table of the low halves: the sum of |x_j| in two doubles, or the largest. */
FP_INLINE void FP_NAME(fp_membership_distances)(const int largest, const fp_membership_term *term, ptrdiff_t n,
                                                const double *sizes, const double *members,
                                                const double *const *running, double (*q1)[FP_MEMBERSHIP_SUBSETS],
                                                double (*q2)[FP_MEMBERSHIP_SUBSETS])
{
    const ptrdiff_t m = term->length;
    const fp_vi sign_bit = (fp_vi){0} + 0x8000000000000000u;
    for (ptrdiff_t i = 0; i < n; i += FP_W) {
        const double *table = term->low + i / FP_LANES * m * FP_LANES + i % FP_LANES;
        fp_v high[FP_ABSOLUTE_ROWS], rest[FP_ABSOLUTE_ROWS], size[FP_ABSOLUTE_ROWS];
        for (int r = 0; r < FP_ABSOLUTE_ROWS; r++)
            high[r] = rest[r] = (fp_v){0}, size[r] = *(const fp_vu *)(sizes + i) + members[r];
        for (ptrdiff_t j = 0; j < m; j++) {
            const fp_v low = *(const fp_vu *)(table + j * FP_LANES);
            const double left = term->rest[j];
#pragma GCC unroll 4
            for (int r = 0; r < FP_ABSOLUTE_ROWS; r++) {
                const fp_v x1 = low + running[r][j], x2 = size[r] * left, x = x1 + x2;
                const fp_vi sign = (fp_vi)x & sign_bit;
                if (largest) {
                    high[r] = FP_MAX((fp_v)((fp_vi)x ^ sign), high[r]);
                } else {
                    high[r] = high[r] + (fp_v)((fp_vi)x1 ^ sign);
                    rest[r] = rest[r] + (fp_v)((fp_vi)x2 ^ sign);
                }
            }
        }
        for (int r = 0; r < FP_ABSOLUTE_ROWS; r++) {
            *(fp_vu *)(q1[r] + i) = high[r];
            *(fp_vu *)(q2[r] + i) = rest[r];
        }
    }
}

/* Add q to the exponents of a row, in two doubles. */
static void FP_NAME(fp_membership_plus)(ptrdiff_t n, const double *restrict q, double *restrict e1,
                                        double *restrict e2)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double sum = e1[i] + q[i];
        e2[i] += fp_sum_error(e1[i], q[i], sum);
        e1[i] = sum;
    }
}

/* The log probabilities of attributes at the ends of the range, for a row with `members` high people. */
static void FP_NAME(fp_membership_censored)(const fp_membership_term *term, ptrdiff_t n, ptrdiff_t members,
                                            const double *running, double *restrict q)
{
    for (ptrdiff_t i = 0; i < n; i++)
        q[i] = 0.0;
    for (ptrdiff_t j = 0; j < term->length; j++) {
        const double *restrict table = term->table + members * (term->people + 1) + (ptrdiff_t)running[j];
        const int32_t *restrict index = term->index + j * n;
        for (ptrdiff_t i = 0; i < n; i++)
            q[i] += table[index[i]];
    }
}

/* Exclude the subsets whose q is above the limit F(n). */
static void FP_NAME(fp_membership_exclude)(ptrdiff_t n, const double *restrict q, const double *restrict limit,
                                           double *restrict e)
{
    for (ptrdiff_t i = 0; i < n; i++)
        e[i] += q[i] <= limit[i] ? 0.0 : FP_MEMBERSHIP_NEVER;
}

static void FP_NAME(fp_membership_flush)(ptrdiff_t n, double *restrict recent, double *restrict high,
                                         double *restrict low)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double sum = high[i] + recent[i];
        low[i] += fp_sum_error(high[i], recent[i], sum);
        high[i] = sum;
        recent[i] = 0.0;
    }
}

/* Recent sums of columns. */
typedef struct {
    double column[FP_MEMBERSHIP_SUBSETS];
} FP_NAME(fp_membership_recent);

static void FP_NAME(fp_membership_flush_all)(const fp_membership_model *model, FP_NAME(fp_membership_recent) *recent,
                                             fp_membership_sums *sums)
{
    FP_NAME(fp_membership_flush)((ptrdiff_t)1 << model->low, recent->column, sums->column, sums->column_rest);
}

/* Multiply all sums of columns by `factor`. */
static void FP_NAME(fp_membership_rescale)(const fp_membership_model *model, FP_NAME(fp_membership_recent) *recent,
                                           fp_membership_sums *sums, double factor)
{
    const ptrdiff_t subsets = (ptrdiff_t)1 << model->low;
    for (ptrdiff_t i = 0; i < subsets; i++)
        recent->column[i] *= factor, sums->column[i] *= factor, sums->column_rest[i] *= factor;
}

/* The sums of one row from its exponents e1 + e2. */
static void FP_NAME(fp_membership_row)(const fp_membership_model *model, ptrdiff_t row, double *restrict e1,
                                       const double *restrict e2, double *restrict w,
                                       FP_NAME(fp_membership_recent) *recent, ptrdiff_t position,
                                       fp_membership_sums *sums)
{
    const ptrdiff_t n = (ptrdiff_t)1 << model->low;
    const double reference = model->reference;
    for (ptrdiff_t i = 0; i < n; i++)
        e1[i] = (e1[i] - reference) + e2[i];
    const double top = FP_NAME(fp_max_of)(e1, (int)n);
    if (top > sums->best) {
        ptrdiff_t first = 0;
        while (first < n - 1 && e1[first] != top)
            first++;
        sums->best = top, sums->mode = row * n + first;
    }
    for (ptrdiff_t i = 0; i < n; i++)
        w[i] = fp_exp_nonpositive(e1[i] - top);
    for (ptrdiff_t i = 0; i < n; i++)
        e1[i] = w[i] * (e1[i] - top);
    sums->top[position] = top;
    sums->mass[position] = FP_NAME(fp_ordered_sum)(n, w);
    sums->moment[position] = FP_NAME(fp_ordered_sum)(n, e1);
    if (top < 0.5 * FP_MEMBERSHIP_NEVER)
        return;
    if (top > sums->column_top) {
        const double above = 32.0 * ceil(top / 32.0);
        if (sums->column_top > 0.5 * FP_MEMBERSHIP_NEVER)
            FP_NAME(fp_membership_rescale)(model, recent, sums, fp_exp_nonpositive(sums->column_top - above));
        sums->column_top = above;
    }
    const double factor = fp_exp_nonpositive(top - sums->column_top);
    for (ptrdiff_t i = 0; i < n; i++)
        recent->column[i] += w[i] * factor;
}

/* Four rows, from the running sums below their last two bits. */
static void FP_NAME(fp_membership_four_rows)(const fp_membership_model *model, ptrdiff_t row, double *const *shared,
                                             double *const *rows, FP_NAME(fp_membership_recent) *recent,
                                             ptrdiff_t position, fp_membership_sums *sums)
{
    static const int last = FP_MEMBERSHIP_ROWS - 1;
    double e1[FP_MEMBERSHIP_ROWS][FP_MEMBERSHIP_SUBSETS], e2[FP_MEMBERSHIP_ROWS][FP_MEMBERSHIP_SUBSETS];
    double q1[FP_MEMBERSHIP_ROWS][FP_MEMBERSHIP_SUBSETS], q2[FP_MEMBERSHIP_ROWS][FP_MEMBERSHIP_SUBSETS];
    double members[FP_MEMBERSHIP_ROWS];
    const ptrdiff_t n = (ptrdiff_t)1 << model->low, plane = (model->high + 1) * n;
    for (int r = 0; r <= last; r++) {
        const int size = __builtin_popcountll((unsigned long long)(row + r));
        const double *restrict p1 = model->prior + size * n, *restrict p2 = p1 + plane;
        double odds1 = 0.0, odds2 = 0.0;
        for (int h = 0; h < model->high; h++)
            if ((row + r) >> h & 1)
                odds1 += model->log_odds[h], odds2 += model->log_odds[model->high + h];
        for (ptrdiff_t i = 0; i < n; i++) {
            e1[r][i] = p1[i] + odds1;
            e2[r][i] = p2[i] + odds2;
        }
        members[r] = size;
    }
    for (int t = 0; t < model->terms; t++) {
        const fp_membership_term *term = model->term + t;
        const double *running[FP_MEMBERSHIP_ROWS] = {shared[t], rows[t], rows[t] + term->length,
                                                     rows[t] + 2 * term->length};
        FP_NAME(fp_membership_add)(term, model->low, 0, shared[t], rows[t]);
        FP_NAME(fp_membership_add)(term, model->low, 1, shared[t], rows[t] + term->length);
        FP_NAME(fp_membership_add)(term, model->low, 0, rows[t] + term->length, rows[t] + 2 * term->length);
        for (int r = 0; r <= last; r += FP_ABSOLUTE_ROWS) {
            if (term->kind == FP_ABSOLUTE)
                FP_NAME(fp_membership_distances)(0, term, n, model->sizes, members + r, running + r, q1 + r, q2 + r);
            if (term->kind == FP_MAXIMUM || term->kind == FP_CONSISTENT)
                FP_NAME(fp_membership_distances)(1, term, n, model->sizes, members + r, running + r, q1 + r, q2 + r);
        }
        for (int r = 0; r <= last; r++) {
            const double *factor = term->factor + (ptrdiff_t)members[r] * n;
            if (term->kind == FP_QUADRATIC)
                FP_NAME(fp_membership_quadratic)(term, model->low, running[r], q1[r], q2[r]);
            if (term->kind == FP_CENSORED) {
                FP_NAME(fp_membership_censored)(term, n, (ptrdiff_t)members[r], running[r], q1[r]);
                FP_NAME(fp_membership_plus)(n, q1[r], e1[r], e2[r]);
            } else if (term->kind == FP_CONSISTENT)
                FP_NAME(fp_membership_exclude)(n, q1[r], factor, e1[r]);
            else
                FP_NAME(fp_membership_combine)(n, q1[r], q2[r], factor, factor + plane, e1[r], e2[r]);
        }
    }
    for (int r = 0; r <= last; r++)
        FP_NAME(fp_membership_row)(model, row + r, e1[r], e2[r], q1[r], recent, position + r, sums);
}

static void FP_NAME(fp_membership_rows)(const fp_membership_model *model, ptrdiff_t start, ptrdiff_t stop,
                                        double *work, fp_membership_sums *sums)
{
    enum { TERMS = 64 };
    double *stack[TERMS], *rows[TERMS], *level[TERMS][FP_MEMBERSHIP_HIGH + 1];
    FP_NAME(fp_membership_recent) recent = {{0}};
    for (int t = 0; t < model->terms; t++) {
        const ptrdiff_t length = model->term[t].length;
        stack[t] = fp_take(&work, (int)((model->high + 1) * length));
        rows[t] = fp_take(&work, (int)(FP_MEMBERSHIP_ROWS * length));
        for (ptrdiff_t i = 0; i < length; i++) /* no members */
            stack[t][model->high * length + i] = 0.0;
        level[t][model->high] = stack[t] + model->high * length;
    }
    sums->column_top = FP_MEMBERSHIP_NEVER, sums->best = -INFINITY, sums->mode = 0;
    int changed = model->high - 1, filled = 0; /* the highest bit that differs from the rows before */
    for (ptrdiff_t row = start; row < stop; row += FP_MEMBERSHIP_ROWS) {
        for (int t = 0; t < model->terms; t++)
            for (int h = changed; h >= 2; h--) {
                level[t][h] = level[t][h + 1];
                if (row >> h & 1) {
                    level[t][h] = stack[t] + h * model->term[t].length;
                    FP_NAME(fp_membership_add)(model->term + t, model->low, h, level[t][h + 1], level[t][h]);
                }
            }
        double *shared[TERMS];
        for (int t = 0; t < model->terms; t++)
            shared[t] = level[t][2];
        FP_NAME(fp_membership_four_rows)(model, row, shared, rows, &recent, row - start, sums);
        const ptrdiff_t next = row + FP_MEMBERSHIP_ROWS;
        changed = next < stop ? 63 - __builtin_clzll((unsigned long long)(row ^ next)) : 0;
        filled += FP_MEMBERSHIP_ROWS;
        if (filled == FP_MEMBERSHIP_FLUSH || next >= stop) {
            FP_NAME(fp_membership_flush_all)(model, &recent, sums);
            filled = 0;
        }
    }
}

/* The sum of mass e^(top - most) over the rows of one side of a bit. */
static void FP_NAME(fp_membership_side)(ptrdiff_t rows, ptrdiff_t bit, ptrdiff_t with, const double *top,
                                        const double *mass, double *side)
{
    double most = -INFINITY, part[FP_LANES];
    fp_accumulator sum = {0.0, 0.0};
    for (ptrdiff_t at = with ? bit : 0; at < rows; at += 2 * bit)
        for (ptrdiff_t i = at; i < at + bit; i++)
            most = top[i] > most ? top[i] : most;
    for (ptrdiff_t at = with ? bit : 0; at < rows; at += 2 * bit) {
        for (ptrdiff_t i = at; i < at + bit; i += FP_LANES) {
            const ptrdiff_t n = at + bit - i < FP_LANES ? at + bit - i : FP_LANES;
            for (ptrdiff_t j = 0; j < n; j++)
                part[j] = mass[i + j] * fp_exp_nonpositive(top[i + j] - most);
            double eight = 0.0;
            for (ptrdiff_t j = 0; j < n; j++)
                eight += part[j];
            fp_accumulator_add(&sum, eight);
        }
    }
    side[0] = most, side[1] = fp_accumulator_value(&sum);
}

static void FP_NAME(fp_membership_sides)(int high, const double *top, const double *mass, double *sides)
{
    const ptrdiff_t rows = (ptrdiff_t)1 << high;
    for (int h = 0; h < high; h++)
        for (int with = 0; with < 2; with++)
            FP_NAME(fp_membership_side)(rows, (ptrdiff_t)1 << h, with, top, mass, sides + 4 * h + 2 * with);
}

/* The largest exponent, and mass and moment relative to it. */
static void FP_NAME(fp_membership_total)(ptrdiff_t rows, const double *top, const double *mass, const double *moment,
                                         double *total)
{
    fp_accumulator sum = {0.0, 0.0}, first = {0.0, 0.0};
    ptrdiff_t best = 0;
    for (ptrdiff_t i = 1; i < rows; i++)
        if (top[i] > top[best])
            best = i;
    for (ptrdiff_t i = 0; i < rows; i++) {
        const double away = top[i] - top[best], factor = fp_exp_nonpositive(away);
        fp_accumulator_add(&sum, factor * mass[i]);
        fp_accumulator_add(&first, factor > 0.0 ? factor * (moment[i] + away * mass[i]) : 0.0);
    }
    total[0] = top[best], total[1] = fp_accumulator_value(&sum), total[2] = fp_accumulator_value(&first);
}
