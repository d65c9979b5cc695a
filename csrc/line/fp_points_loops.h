/* The log-likelihood ratio, its local analysis and the two distribution functions at eight points at once, one to a
 * lane; included once per instruction set. What a lane holds does not depend on the others. */
/* bounds: proved - errors of L, its derivatives and remainders, and of the tails: docs/proofs/monotone_pieces.md,
 * theorems 3.8 to 3.10 and 3.13 */

/* As fp_moments, for eight points. */
typedef struct {
    double log[FP_LANES], error[FP_LANES], score[FP_LANES], score_error[FP_LANES], rate[FP_LANES], rate_error[FP_LANES],
        spread[FP_LANES], spread_error[FP_LANES], peak[FP_LANES], mass[FP_LANES], doubt[FP_LANES];
} FP_NAME(fp_point_moments);

/* L, its error, L' and its error, log q (without sqrt(2 pi)) and its error, and the largest |g_i| of both sides, at eight
 * points. */
typedef struct {
    double value[FP_LANES], error[FP_LANES], slope[FP_LANES], slope_error[FP_LANES], log_q[FP_LANES],
        log_q_error[FP_LANES], steepest[FP_LANES];
} FP_NAME(fp_ratios);

/* Log density of one side and its score, with errors. `h` and `e` have eight entries for a component: h_i - max h and
 * its exponential are left there. */
static void FP_NAME(fp_log_density_at_points)(const fp_mixture *side, const double *restrict x, double *restrict h,
                                              double *restrict e, double *restrict steepest,
                                              FP_NAME(fp_point_moments) *restrict out)
{
    double peak[FP_LANES], centre[FP_LANES], mass[FP_LANES], load[FP_LANES], moment[FP_LANES], size[FP_LANES],
        distance[FP_LANES], loaded[FP_LANES];
    for (int k = 0; k < FP_LANES; ++k)
        peak[k] = -INFINITY, centre[k] = mass[k] = load[k] = moment[k] = size[k] = distance[k] = loaded[k] = 0.0;
    for (int i = 0; i < side->n; ++i) {
        const double mean = side->mean[i], inverse = side->inverse[i], weight = side->log_weight[i];
        double *restrict row = h + (ptrdiff_t)FP_LANES * i;
        for (int k = 0; k < FP_LANES; ++k) {
            const double z = (x[k] - mean) * inverse, value = weight - 0.5 * z * z;
            row[k] = value;
            centre[k] = value > peak[k] ? -z * inverse : centre[k]; /* g of the largest term */
            peak[k] = value > peak[k] ? value : peak[k];
        }
    }
    for (int i = 0; i < side->n; ++i) {
        const double mean = side->mean[i], inverse = side->inverse[i], own = side->load[i];
        double *restrict row = h + (ptrdiff_t)FP_LANES * i, *restrict term = e + (ptrdiff_t)FP_LANES * i;
        for (int k = 0; k < FP_LANES; ++k) {
            const double z = (x[k] - mean) * inverse, g = -z * inverse, wide = fabs(g), below = row[k] - peak[k];
            const double value = fp_exp(below), heavy = value * (z * z + own), away = g - centre[k], off = fabs(away);
            row[k] = below;
            term[k] = value;
            mass[k] += value;
            moment[k] += value * away;
            load[k] += heavy;
            size[k] += value * wide;
            distance[k] += value * off;
            loaded[k] += heavy * off;
            steepest[k] = wide > steepest[k] ? wide : steepest[k];
        }
    }
    for (int k = 0; k < FP_LANES; ++k) {
        const double base = 4.0 + fabs(peak[k]), shift = moment[k] / mass[k];
        out->peak[k] = peak[k];
        out->doubt[k] = FP_NAME(fp_doubt)(peak[k]);
        out->mass[k] = mass[k];
        out->log[k] = peak[k] + fp_log(mass[k]);
        out->score[k] = centre[k] + shift;
        out->error[k] = FP_ROUND * (base + load[k] / mass[k]) + 2.3e-16 * side->n;
        /* by the errors of e_i, in numerator and denominator, and of g_i */
        out->score_error[k] = (2.0 * FP_ROUND + 2.3e-16 * side->n) / mass[k]
                                  * (base * distance[k] + loaded[k] + size[k] + fabs(shift) * (base * mass[k] + load[k]))
                              + FP_ROUND * (fabs(centre[k]) + fabs(shift)) + 1e-300 * side->steepest;
        double unused[2];
        if (out->doubt[k] > FP_DOUBTFUL)
            FP_NAME(fp_doubtful_errors)(side, x[k], h + k, FP_LANES, out->doubt[k], out->score[k], 0.0, 0.0,
                                        &out->score_error[k], &unused[0], &unused[1]);
    }
}

/* The second-order part of the local analysis, from what fp_log_density_at_points left. */
static void FP_NAME(fp_curvature_at_points)(const fp_mixture *side, const double *restrict x, const double *restrict h,
                                            const double *restrict e, FP_NAME(fp_point_moments) *restrict out)
{
    double rate[FP_LANES], spread[FP_LANES], score_error[FP_LANES], rate_error[FP_LANES], spread_error[FP_LANES],
        base[FP_LANES];
    for (int k = 0; k < FP_LANES; ++k)
        rate[k] = spread[k] = score_error[k] = rate_error[k] = spread_error[k] = 0.0;
    for (int i = 0; i < side->n; ++i) {
        const double precision = side->precision[i];
        const double *restrict term = e + (ptrdiff_t)FP_LANES * i;
        for (int k = 0; k < FP_LANES; ++k)
            rate[k] += term[k] * precision;
    }
    for (int k = 0; k < FP_LANES; ++k) {
        rate[k] /= out->mass[k];
        base[k] = 4.0 + fabs(out->peak[k]);
    }
    for (int i = 0; i < side->n; ++i) {
        const double mean = side->mean[i], inverse = side->inverse[i], precision = side->precision[i],
                     own = side->load[i];
        const double *restrict term = e + (ptrdiff_t)FP_LANES * i;
        for (int k = 0; k < FP_LANES; ++k) {
            const double z = (x[k] - mean) * inverse, g = -z * inverse, away = g - out->score[k], square = away * away;
            const double eta = base[k] + z * z + own, off = fabs(away), wide = fabs(g);
            spread[k] += term[k] * square;
            score_error[k] += term[k] * (eta * off + wide);
            rate_error[k] += term[k] * (eta * fabs(precision - rate[k]) + precision + rate[k]);
            spread_error[k] += term[k] * (eta * (square + precision + rate[k]) + (wide + fabs(out->score[k])) * off);
        }
    }
    for (int k = 0; k < FP_LANES; ++k) {
        out->rate[k] = rate[k];
        out->spread[k] = spread[k] / out->mass[k];
        out->rate_error[k] = (2.0 * FP_ROUND + 2.3e-16 * side->n) / out->mass[k] * rate_error[k]
                             + 1e-300 * side->steepest * side->steepest;
        out->score_error[k] = (2.0 * FP_ROUND + 2.3e-16 * side->n) / out->mass[k] * score_error[k]
                              + FP_ROUND * fabs(out->score[k]) + 1e-300 * side->steepest; /* sharper, by the score */
        out->spread_error[k] = (2.0 * FP_ROUND + 2.3e-16 * side->n) / out->mass[k] * spread_error[k]
                               + out->error[k] * out->spread[k] + out->score_error[k] * out->score_error[k]
                               + 1e-300 * side->steepest * side->steepest;
        if (out->doubt[k] > FP_DOUBTFUL)
            FP_NAME(fp_doubtful_errors)(side, x[k], h + k, FP_LANES, out->doubt[k], out->score[k], rate[k],
                                        out->spread[k], &out->score_error[k], &out->rate_error[k],
                                        &out->spread_error[k]);
    }
}

/* fp_mixture_remainder on discs around eight points. */
static void FP_NAME(fp_remainder_at_points)(const fp_mixture *side, const double *restrict x, const double *restrict h,
                                            const FP_NAME(fp_point_moments) *restrict at,
                                            const double *restrict radius, double *restrict bound)
{
    double sum[FP_LANES], reach[FP_LANES], half[FP_LANES], residue[FP_LANES], most[FP_LANES];
    for (int k = 0; k < FP_LANES; ++k) {
        sum[k] = 0.0;
        reach[k] = radius[k] * (1.0 + 1e-14);
        half[k] = 0.5 * reach[k] * reach[k];
        most[k] = fp_log(at->mass[k]) + 1e-12; /* no responsibility exceeds 1 */
        residue[k] = FP_NAME(fp_residue)(at->score_error[k], at->rate_error[k], reach[k], half[k]);
    }
    for (int i = 0; i < side->n; ++i) {
        const double mean = side->mean[i], inverse = side->inverse[i], precision = side->precision[i];
        const double *restrict row = h + (ptrdiff_t)FP_LANES * i;
        for (int k = 0; k < FP_LANES; ++k) {
            const double g = -((x[k] - mean) * inverse) * inverse;
            const double grow = fabs(g - at->score[k]) * reach[k] + fabs(precision - at->rate[k]) * half[k] + residue[k];
            const double share = row[k] * (1.0 - 2e-15) + 2.0 * at->doubt[k];
            sum[k] += (0.5 * grow * grow) * (fp_exp((share < most[k] ? share : most[k]) + grow) + 1e-323);
        }
    }
    for (int k = 0; k < FP_LANES; ++k)
        bound[k] = sum[k] / at->mass[k] * (1.0 + 1e-6);
}

/* L and L' at eight points. */
static void FP_NAME(fp_log_ratio_at_points)(const fp_log_ratio *r, const double *x, FP_NAME(fp_ratios) * out)
{
    FP_NAME(fp_point_moments) p, q;
    double *h = r->scratch, *e = h + FP_LANES * (ptrdiff_t)(r->np > r->nq ? r->np : r->nq);
    fp_stop_requested(r->stop, FP_LANES * (r->np + r->nq));
    for (int k = 0; k < FP_LANES; ++k)
        out->steepest[k] = 0.0;
    FP_NAME(fp_log_density_at_points)(&r->q, x, h, e, out->steepest, &q);
    FP_NAME(fp_log_density_at_points)(&r->p, x, h, e, out->steepest, &p);
    for (int k = 0; k < FP_LANES; ++k) {
        out->value[k] = p.log[k] - q.log[k];
        out->error[k] = p.error[k] + q.error[k];
        out->slope[k] = p.score[k] - q.score[k];
        out->slope_error[k] = p.score_error[k] + q.score_error[k] + FP_ROUND * fabs(out->slope[k]);
        out->log_q[k] = q.log[k];
        out->log_q_error[k] = q.error[k];
    }
    if (!r->coupled && !r->tilt.sign)
        return;
    for (int k = 0; k < FP_LANES; ++k) { /* the forms that keep more digits */
        fp_taylor at;
        int same = k && x[k] == x[k - 1];
        if (!same)
            FP_NAME(fp_log_ratio_at)(r, x[k], &at);
        out->value[k] = same ? out->value[k - 1] : at.value;
        out->error[k] = same ? out->error[k - 1] : at.error;
        out->slope[k] = same ? out->slope[k - 1] : at.slope;
        out->slope_error[k] = same ? out->slope_error[k - 1] : at.slope_error;
    }
}

/* The same at the first `count` points alone, 1 <= count <= FP_LANES; returns count. */
static int FP_NAME(fp_log_ratio_at_some)(const fp_log_ratio *r, double *x, int count, FP_NAME(fp_ratios) * out)
{
    for (int k = count; k < FP_LANES; ++k)
        x[k] = x[count - 1];
    FP_NAME(fp_log_ratio_at_points)(r, x, out);
    return count;
}

/* Runs `count` searches on the line, FP_LANES of them side by side, until the last is done or the clock stops them.
 * `admitted` is a pointer to search number `next`, a struct whose x is the point it wants; `done`, an expression in k,
 * tells whether the search lane[k] has ended with what `at` holds of L there. */
#define FP_SEARCH_SIDE_BY_SIDE(type, r, count, evaluations, admitted, done)                                            \
    type *lane[FP_LANES];                                                                                              \
    double x[FP_LANES];                                                                                                \
    ptrdiff_t next = 0;                                                                                                \
    for (int active = 0, kept; !(r)->stop->status; active = kept) {                                                    \
        FP_NAME(fp_ratios) at;                                                                                         \
        for (; next < (count) && active < FP_LANES; ++next)                                                            \
            lane[active++] = (admitted);                                                                               \
        if (!active)                                                                                                   \
            return;                                                                                                    \
        for (int k = 0; k < active; ++k)                                                                               \
            x[k] = lane[k]->x;                                                                                         \
        *(evaluations) += FP_NAME(fp_log_ratio_at_some)(r, x, active, &at);                                            \
        kept = 0;                                                                                                      \
        for (int k = 0; k < active; ++k)                                                                               \
            if (!(done))                                                                                               \
                lane[kept++] = lane[k];                                                                                \
    }

/* The complete local analysis at the first `count` of eight points, as fp_log_ratio_on_disc. */
static void FP_NAME(fp_log_ratio_on_discs)(const fp_log_ratio *r, const double *x, const double *first_radius,
                                           int count, fp_taylor *out)
{
    if (r->coupled) {
        for (int k = 0; k < count; ++k)
            FP_NAME(fp_log_ratio_on_disc)(r, x[k], first_radius[k], &out[k]);
        return;
    }
    FP_NAME(fp_point_moments) p, q;
    double radius[FP_LANES], of_p[FP_LANES], of_q[FP_LANES], steepest[FP_LANES] = {0};
    double *hp = r->scratch, *hq = hp + FP_LANES * (ptrdiff_t)r->np, *e = hq + FP_LANES * (ptrdiff_t)r->nq;
    int open = count;
    fp_stop_requested(r->stop, 3 * FP_LANES * (r->np + r->nq));
    FP_NAME(fp_log_density_at_points)(&r->p, x, hp, e, steepest, &p);
    FP_NAME(fp_curvature_at_points)(&r->p, x, hp, e, &p);
    FP_NAME(fp_log_density_at_points)(&r->q, x, hq, e, steepest, &q);
    FP_NAME(fp_curvature_at_points)(&r->q, x, hq, e, &q);
    for (int k = 0; k < FP_LANES; ++k) {
        double spread = p.spread[k] > q.spread[k] ? p.spread[k] : q.spread[k], slope = p.score[k] - q.score[k];
        radius[k] = first_radius[k] * first_radius[k] * spread > 0.36 ? 0.6 / sqrt(spread) : first_radius[k];
        if (k < count)
            out[k] = (fp_taylor){
                p.log[k] - q.log[k], p.error[k] + q.error[k], slope,
                p.score_error[k] + q.score_error[k] + FP_ROUND * fabs(slope),
                (p.spread[k] - p.rate[k]) - (q.spread[k] - q.rate[k]),
                p.spread_error[k] + q.spread_error[k] + FP_ROUND * (p.rate[k] + q.rate[k]) * (r->np + r->nq + 16), 0.0,
                INFINITY};
    }
    for (int attempt = 0; attempt < 60 && open; ++attempt) {
        FP_NAME(fp_remainder_at_points)(&r->p, x, hp, &p, radius, of_p);
        FP_NAME(fp_remainder_at_points)(&r->q, x, hq, &q, radius, of_q);
        for (int k = 0; k < count; ++k) {
            if (out[k].radius > 0.0)
                continue;
            if (of_p[k] < 0.45 && of_q[k] < 0.45) {
                out[k].radius = radius[k];
                out[k].bound = (-log1p(-of_p[k]) - log1p(-of_q[k])) * (1.0 + 1e-9) + 1e-300;
                --open;
            } else
                radius[k] *= attempt < 4 ? 0.6 : 0.3;
        }
    }
}

/* F(x) = sum of w_i Phi((x - m_i) / s_i) at eight points, as the total weight of the `count` components that begin left
 * of x plus `high` + `low`, sums of tails alone; `error` bounds the error of the latter. */
typedef struct {
    double high[FP_LANES], low[FP_LANES], error[FP_LANES], count[FP_LANES];
} FP_NAME(fp_tail_sums);

static void FP_NAME(fp_tails_at_points)(const fp_mixture *side, const double *restrict x, FP_NAME(fp_tail_sums) * out)
{
    const double beyond = FP_NORMAL_TAIL_LEAST / FP_NORMAL_TAIL_ERROR;
    double high[FP_LANES], low[FP_LANES], error[FP_LANES], count[FP_LANES];
    for (int k = 0; k < FP_LANES; ++k)
        high[k] = low[k] = error[k] = count[k] = 0.0;
    for (int i = 0; i < side->n; ++i) {
        const double mean = side->mean[i], inverse_high = side->inverse_high[i], inverse_low = side->inverse_low[i];
        const double weight_high = side->weight_high[i], weight_low = side->weight_low[i];
        for (int k = 0; k < FP_LANES; ++k) {
            const fp_unevaluated z = fp_standard_score(x[k], mean, inverse_high, inverse_low),
                                 tail = fp_normal_tail(z.high, z.low);
            const double lead = fp_upper(tail.high), sign = x[k] > mean ? -1.0 : 1.0, size = fabs(z.high);
            const double near = size < FP_NORMAL_TAIL_LAST ? size : FP_NORMAL_TAIL_LAST;
            const double term = sign * (weight_high * lead), sum = high[k] + term;
            low[k] += fp_sum_error(high[k], term, sum)
                      + sign * (weight_high * ((tail.high - lead) + tail.low) + weight_low * (tail.high + tail.low));
            high[k] = sum;
            error[k] += (weight_high + weight_low)
                        * (tail.high * (1.0 + near * near) + (size < FP_NORMAL_TAIL_LAST ? 0.0 : beyond));
            count[k] += x[k] > mean ? 1.0 : 0.0;
        }
    }
    for (int k = 0; k < FP_LANES; ++k) {
        out->high[k] = high[k];
        out->low[k] = low[k];
        out->error[k] = error[k] * (FP_NORMAL_TAIL_ERROR * 1.01 + 0x1p-64 * (side->n + 4)); /* and what `low` rounds */
        out->count[k] = count[k];
    }
}
