/* Partition of the line into pieces on which L = log p/q is proved monotone; included once per instruction set. On
 * |d| <= R around x the analysis of fp_log_ratio_on_disc gives L' = l1 + l2 d + sum_{n>=3} n c_n d^{n-1} with |c_n|
 * <= M / R^n (docs/proofs/monotone_pieces.md, theorem 3.2). With t = |d| / R the remainder of L' is at most 8 M t^2 / R
 * for t <= 1/2, and that of L'' at most M/R^2 (2/(1-t)^3 - 2). A cell is decided when L' or L'' keeps its sign on it.
 */
/* bounds: proved - slack of tails and remainders, by which signs of L' are held to be proved:
 * docs/proofs/monotone_pieces.md, theorem 3.12 */

#define FP_FARTHEST_POSITION 1e140 /* positions beyond this are not examined */
#define FP_FIRST_CELLS 32          /* into which a part of the line is divided first, at most */

static inline int FP_NAME(fp_pieces_append)(fp_pieces *out, fp_piece run)
{
    fp_piece *last = out->count ? &out->piece[out->count - 1] : NULL;
    int same = last && last->kind_of_piece == run.kind_of_piece && last->sign == run.sign;
    if (same && run.kind_of_piece != FP_ENCLOSED) {
        last->right = run.right;
        return 0;
    }
    double low = last && last->low < run.low ? last->low : run.low,
           high = last && last->high > run.high ? last->high : run.high;
    double least = last && last->high - last->low < run.high - run.low ? last->high - last->low : run.high - run.low;
    if (same && (high - low <= 4.0 * least || least == INFINITY)
        && last->right - last->left < 1e3 * (run.right - run.left)) {
        last->right = run.right;
        last->low = low;
        last->high = high;
        return 0;
    }
    if (fp_pieces_reserve(out))
        return -1;
    out->piece[out->count++] = run;
    return 0;
}

/* Append a cell to a list that is not merged; -1 when memory is short. */
static inline int FP_NAME(fp_cells_append)(fp_pieces *cells, double left, double right, int kind_of_piece, int sign,
                                           double low, double high)
{
    if (!(left < right))
        return 0;
    if (fp_pieces_reserve(cells))
        return -1;
    cells->piece[cells->count++] = (fp_piece){left, right, kind_of_piece, sign, low, high, 0, 0, 0, 0};
    return 0;
}

/* What the analysis at the middle x of a cell says of it: the cell decided, or the part around x decided and the rest
 * open. `finest` is the least half-width, relative to the disc, of cells that are divided further. */
static int FP_NAME(fp_cell_decide)(const fp_piece *cell, double x, const fp_taylor *at, double finest, fp_pieces *out)
{
    double a, b, reach, step = x - cell->left > cell->right - x ? x - cell->left : cell->right - x;
    FP_NAME(fp_sign_radii)(at, &a, &b);
    reach = a > b ? a : b;
    int kind_of_piece = a > b ? FP_MONOTONE : FP_CURVED, sign = (a > b ? at->slope : at->curve) > 0.0 ? 1 : -1;
    if (reach >= step)
        return FP_NAME(fp_cells_append)(out, cell->left, cell->right, kind_of_piece, sign, 0.0, 0.0);
    double t = at->radius > 0.0 ? step / at->radius : 1.0, spacing_of_doubles = 4.0 * (nextafter(fabs(x), INFINITY) - fabs(x));
    double off = (fabs(at->slope) + at->slope_error) * step + 0.5 * (fabs(at->curve) + at->curve_error) * step * step
                 + at->bound * t * t * t / (1.0 - t);
    double range = (at->error + off) * (1.0 + 1e-9) + 2.3e-16 * fabs(at->value);
    if (step <= spacing_of_doubles || t <= finest || (t < 1.0 && off <= 4.0 * at->error))
        return FP_NAME(fp_cells_append)(out, cell->left, cell->right, FP_ENCLOSED, 0,
                                        t < 1.0 ? at->value - range : -INFINITY,
                                        t < 1.0 ? at->value + range : INFINITY);
    if (reach >= 0.4 * step) {
        double inner = reach - 0.25 * spacing_of_doubles; /* so that no end is rounded beyond the reach */
        double from = x - inner > cell->left ? x - inner : cell->left,
               to = x + inner < cell->right ? x + inner : cell->right;
        return FP_NAME(fp_cells_append)(out, cell->left, from, FP_OPEN, 0, 0.0, 0.0)
                       || FP_NAME(fp_cells_append)(out, from, to, kind_of_piece, sign, 0.0, 0.0)
                       || FP_NAME(fp_cells_append)(out, to, cell->right, FP_OPEN, 0, 0.0, 0.0)
                   ? -1
                   : 0;
    }
    int status = 0, parts = reach > 0.12 * step ? (int)(step / (0.9 * reach)) + 1 : reach > 0.0 ? 8 : 4;
    double from = cell->left;
    for (int k = 1; k <= parts && !status; ++k) {
        double to = k < parts ? cell->left + (cell->right - cell->left) * k / parts : cell->right;
        status = FP_NAME(fp_cells_append)(out, from, to, FP_OPEN, 0, 0.0, 0.0);
        from = from < to ? to : from;
    }
    return status;
}

/* Decided cells from `left` to `right`; adjacent cells of one kind are merged. In each round all open cells are
 * analysed. As the budget runs out, cells get coarser; what is left when the budget or the time is spent becomes
 * pieces without bounds. */
static int FP_NAME(fp_subdivide)(const fp_log_ratio *r, double left, double right, double scale, long budget,
                                 fp_pieces *out)
{
    fp_pieces cells = {0}, next = {0};
    int status = 0, open = 0, many = (int)fmin(FP_FIRST_CELLS, 1.0 + (right - left) / scale);
    long start = out->evaluations;
    double from = left;
    for (int k = 1; k <= many && !status; ++k) {
        double to = k < many ? left + (right - left) * k / many : right;
        status = FP_NAME(fp_cells_append)(&cells, from, to, FP_OPEN, 0, 0.0, 0.0);
        from = from < to ? to : from;
    }
    do {
        next.count = open = 0;
        for (int i = 0; i < cells.count && !status;) {
            fp_taylor at[FP_LANES];
            double x[FP_LANES], radius[FP_LANES];
            int last = i, taken = 0, done = 0;
            long spent = out->evaluations - start, planned = spent + next.count + (cells.count - i) / 2;
            double finest = planned < budget / 10 * 8 ? 1e-6 : planned < budget / 10 * 9 ? 0.02 : 0.4;
            int stopped = spent > budget || r->stop->status;
            for (; last < cells.count && taken < FP_LANES; ++last)
                if (cells.piece[last].kind_of_piece == FP_OPEN) {
                    const fp_piece *cell = &cells.piece[last];
                    double half = 0.5 * (cell->right - cell->left);
                    x[taken] = cell->left + half;
                    radius[taken++] = 4.0 * half > scale ? 4.0 * half : scale;
                }
            for (int k = taken; k < FP_LANES && taken; ++k)
                x[k] = x[taken - 1], radius[k] = radius[taken - 1];
            if (taken && !stopped) {
                FP_NAME(fp_log_ratio_on_discs)(r, x, radius, taken, at);
                out->evaluations += taken;
                stopped = r->stop->status;
            }
            for (; i < last && !status; ++i) {
                const fp_piece *cell = &cells.piece[i];
                if (cell->kind_of_piece != FP_OPEN)
                    status = FP_NAME(fp_cells_append)(&next, cell->left, cell->right, cell->kind_of_piece, cell->sign,
                                                      cell->low, cell->high);
                else if (stopped)
                    status = FP_NAME(fp_cells_append)(&next, cell->left, cell->right, FP_ENCLOSED, 0, -INFINITY,
                                                      INFINITY);
                else
                    status = FP_NAME(fp_cell_decide)(cell, x[done], &at[done], finest, &next);
                done += cell->kind_of_piece == FP_OPEN;
                out->undecided += cell->kind_of_piece == FP_OPEN && stopped;
            }
        }
        fp_pieces swap = cells;
        cells = next;
        next = swap;
        for (int i = 0; i < cells.count && !open; ++i)
            open = cells.piece[i].kind_of_piece == FP_OPEN;
    } while (open && !status);
    for (int i = 0; i < cells.count && !status; ++i)
        status = FP_NAME(fp_pieces_append)(out, cells.piece[i]);
    fp_pieces_free(&cells);
    fp_pieces_free(&next);
    return status ? status : r->stop->status == FP_INTERRUPTED ? FP_INTERRUPTED : 0;
}

/* Append a monotone piece; it is merged with its left neighbour where the direction agrees. */
static int FP_NAME(fp_pieces_append_monotone)(fp_pieces *out, double left, double right, int sign)
{
    fp_piece *last = out->count ? &out->piece[out->count - 1] : NULL;
    if (!(left < right))
        return 0;
    if (last && last->kind_of_piece == FP_MONOTONE && last->sign == sign && last->right == left) {
        last->right = right;
        return 0;
    }
    if (fp_pieces_reserve(out))
        return -1;
    out->piece[out->count++] = (fp_piece){left, right, FP_MONOTONE, sign, 0, 0, 0, 0, 0};
    return 0;
}

/* The search for the flat part of a run on which the slope is monotone with direction `sign`: for a zero of the slope,
 * by Illinois steps on computed values, then on both sides of it for the nearest point found where the sign of the
 * slope is proved, or the end of the run. */
typedef struct {
    double x; /* the next point */
    double left, right, low, high, f_low, f_high, x_before, f_before, secant,
        slope_error; /* at the left end */
    double zero, side[2], slope_size;
    double value[3], error[3]; /* of L at the left side, the zero and the right side */
    double end_value[2], end_error[2];
    double near, far, step; /* from the zero to points where the sign is not proved, and where it is */
    int sign, phase, same_side, steps, bisections, growing, strict;
} FP_NAME(fp_extremum);

/* Begin the search on a side of the zero; whether there is none. */
static int FP_NAME(fp_extremum_begin_side)(FP_NAME(fp_extremum) * s, int right)
{
    double end = right ? s->right : s->left, least = 2.0 * (nextafter(fabs(s->zero), INFINITY) - fabs(s->zero));
    s->phase = right ? FP_AT_RIGHT_SIDE : FP_AT_LEFT_SIDE;
    s->side[right] = end;
    s->value[2 * right] = s->end_value[right];
    s->error[2 * right] = s->end_error[right];
    s->far = fabs(end - s->zero);
    if (!(s->far > 0.0))
        return right ? 1 : FP_NAME(fp_extremum_begin_side)(s, 1);
    s->step = 2.0 * s->slope_size / s->secant;
    s->step = s->step > least ? s->step : least;
    s->step = s->step < 0.5 * s->far ? s->step : 0.5 * s->far;
    s->near = 0.0;
    s->bisections = 0;
    s->growing = 1;
    s->x = right ? s->zero + s->step : s->zero - s->step;
    return 0;
}

/* The next point of the search for the zero, or the begin of that for its sides; whether the search has ended. */
static int FP_NAME(fp_extremum_next)(FP_NAME(fp_extremum) * s, const FP_NAME(fp_ratios) * at, int lane, int zero)
{
    double next = s->steps % 3 == 2 ? 0.5 * (s->low + s->high)
                                    : (s->f_low * s->high - s->f_high * s->low) / (s->f_low - s->f_high);
    if (!(next > s->low && next < s->high))
        next = 0.5 * (s->low + s->high);
    if (!zero && next > s->low && next < s->high) {
        s->phase = FP_AT_ZERO;
        s->x = next;
        return 0;
    }
    int at_left = s->phase == FP_AT_RIGHT_END && s->f_low >= 0.0;
    double proved = at_left                         ? s->f_low - s->slope_error
                    : s->phase == FP_AT_RIGHT_END ? -s->f_high - at->slope_error[lane]
                                                    : 0.0;
    if (proved > 0.0) { /* the slope has the same sign on all of the run */
        s->side[0] = s->side[1] = at_left ? s->left : s->right;
        return 1;
    }
    s->zero = at_left ? s->left : s->x;
    s->value[1] = at_left ? s->end_value[0] : at->value[lane];
    s->error[1] = at_left ? s->end_error[0] : at->error[lane];
    s->slope_size = at_left ? s->f_low + s->slope_error : fabs(at->slope[lane]) + at->slope_error[lane];
    return FP_NAME(fp_extremum_begin_side)(s, 0);
}

/* Take in what is known at x; whether the search has ended. */
static int FP_NAME(fp_extremum_step)(FP_NAME(fp_extremum) * s, const FP_NAME(fp_ratios) * at, int lane)
{
    double slope_error = at->slope_error[lane], f = s->sign * at->slope[lane], x = s->x;
    if (s->phase == FP_AT_LEFT_END) {
        s->end_value[0] = at->value[lane], s->end_error[0] = at->error[lane];
        s->f_low = f, s->slope_error = slope_error;
        s->x = s->right;
        s->phase = FP_AT_RIGHT_END;
        return 0;
    }
    if (s->phase == FP_AT_RIGHT_END) {
        s->end_value[1] = at->value[lane], s->end_error[1] = at->error[lane];
        s->f_high = f;
        s->secant = fabs((f - s->f_low) / (x - s->left));
        s->x_before = x, s->f_before = f;
        return FP_NAME(fp_extremum_next)(s, at, lane, f <= 0.0 || s->f_low >= 0.0);
    }
    int right = s->phase == FP_AT_RIGHT_SIDE, side = s->phase != FP_AT_ZERO;
    if (side && s->steps <= 200 && (right ? -f : f) > slope_error && x > s->low && x < s->high)
        s->strict = 1, s->phase = FP_AT_ZERO; /* the zero lies farther on */
    if (s->phase == FP_AT_ZERO) {
        /* L is within its error of its extremum, or the slope is no better known */
        int zero = fabs(f) <= 2.0 * slope_error || (!s->strict && f * f <= at->error[lane] * s->secant)
                   || ++s->steps > 200;
        if (x != s->x_before)
            s->secant = fabs((f - s->f_before) / (x - s->x_before));
        s->x_before = x, s->f_before = f;
        if (f < 0.0) {
            s->low = x, s->f_low = f;
            s->f_high *= s->same_side < 0 ? 0.5 : 1.0;
            s->same_side = -1;
        } else {
            s->high = x, s->f_high = f;
            s->f_low *= s->same_side > 0 ? 0.5 : 1.0;
            s->same_side = 1;
        }
        return FP_NAME(fp_extremum_next)(s, at, lane, zero);
    }
    double all = fabs((right ? s->right : s->left) - s->zero);
    if ((right ? f : -f) > slope_error) {
        s->far = s->step, s->side[right] = x, s->growing = 0;
        s->value[2 * right] = at->value[lane], s->error[2 * right] = at->error[lane];
    } else
        s->near = s->step;
    if (s->growing && 4.0 * s->step < all)
        s->step *= 4.0;
    else { /* L may differ along the flat part, or the sign is proved at the end alone: draw nearer */
        double least = 2.0 * (nextafter(fabs(s->zero), INFINITY) - fabs(s->zero));
        int level = fabs(s->value[2 * right] - s->value[1]) <= 4.0 * (s->error[2 * right] + s->error[1]);
        s->growing = 0;
        if ((level && s->far < 1e-6 * all) || ++s->bisections > 200 || s->far - s->near <= 1e-3 * s->far
            || s->far <= least)
            return right ? 1 : FP_NAME(fp_extremum_begin_side)(s, 1);
        s->step = s->near > 0.0 ? 0.5 * (s->near + s->far) : 0.0625 * s->far;
        s->step = s->step > least ? s->step : least;
    }
    s->x = right ? s->zero + s->step : s->zero - s->step;
    return 0;
}

/* The flat parts of `count` runs, searched side by side. */
static void FP_NAME(fp_extrema_find)(const fp_log_ratio *r, FP_NAME(fp_extremum) * extremum, int count,
                                     long *evaluations)
{
    FP_SEARCH_SIDE_BY_SIDE(FP_NAME(fp_extremum), r, count, evaluations, &extremum[next],
                           FP_NAME(fp_extremum_step)(lane[k], &at, k))
}

/* Append the falling, flat and rising parts of the run of an extremum that was found. */
static int FP_NAME(fp_split_curved)(const FP_NAME(fp_extremum) * s, int stopped, fp_pieces *out)
{
    double xl = s->side[0], xr = s->side[1];
    if (stopped) { /* halfway: nothing is known of the run */
        out->undecided++;
        return FP_NAME(fp_pieces_append)(
            out, (fp_piece){s->left, s->right, FP_ENCLOSED, 0, -INFINITY, INFINITY, 0, 0, 0, 0});
    }
    if (FP_NAME(fp_pieces_append_monotone)(out, s->left, xl, -s->sign))
        return -1;
    if (xl < xr) {
        /* convex: below the higher end and above the tangent at the zero; concave: the mirror image */
        double tops[2] = {s->sign * s->value[0] + s->error[0], s->sign * s->value[2] + s->error[2]},
               top = tops[0] > tops[1] ? tops[0] : tops[1];
        double foot = s->sign * s->value[1] - s->error[1] - s->slope_size * (xr - xl) * (1.0 + 1e-9);
        foot = fabs(foot) < INFINITY ? foot : -INFINITY; /* where L overflows nothing bounds it */
        top = !(tops[0] + tops[1] < INFINITY) ? INFINITY : top > foot ? top : foot;
        if (fp_pieces_reserve(out))
            return -1;
        out->piece[out->count++] = (fp_piece){
            xl, xr, FP_ENCLOSED, 0, s->sign > 0 ? foot : -top, s->sign > 0 ? top : -foot, 0, 0, 0, 0};
    }
    return FP_NAME(fp_pieces_append_monotone)(out, xr, s->right, s->sign);
}

/* Where the right tail (direction = 1; the left one is mirrored, -1) begins: beyond `*edge` the slope keeps
 * `*sign`, and L has the limit `*limit`; sign 0 means that L stays within `*spread` of the limit. */
static void FP_NAME(fp_tail_sign)(const fp_log_ratio *r, int direction, double scale, double *edge, int *sign,
                                  double *limit, double *spread)
{
    const double *mean[2] = {r->m, r->n}, *sigma[2] = {r->s, r->t}, *weight[2] = {r->w, r->v};
    int count[2] = {r->np, r->nq}, top[2];
    double far = -INFINITY;
    for (int side = 0; side < 2; ++side) {
        int best = 0;
        for (int i = 0; i < count[side]; ++i) {
            double m = direction * mean[side][i], s = sigma[side][i];
            if (s > sigma[side][best] || (s == sigma[side][best] && m > direction * mean[side][best]))
                best = i;
            far = m > far ? m : far;
        }
        top[side] = best;
    }
    double sp = sigma[0][top[0]], sq = sigma[1][top[1]], mp = direction * mean[0][top[0]],
           mq = direction * mean[1][top[1]];
    double slope_rate =
        (sp - sq) / sp / sq * (1.0 / sp + 1.0 / sq); /* growth of the leading slope; its sign is exact */
    int same = sp == sq && mp == mq;
    for (double away = scale; away < FP_FARTHEST_POSITION && !fp_stop_requested(r->stop, 4 * (r->np + r->nq));
         away *= 1.5) {
        double x = far + away, excess[2], total[2];
        int kind_of_piece = x > far;
        for (int side = 0; side < 2 && kind_of_piece; ++side) {
            double m0 = direction * mean[side][top[side]], s0 = sigma[side][top[side]];
            double z0 = (x - m0) / s0;
            excess[side] = total[side] = 0.0;
            for (int i = 0; i < count[side]; ++i) {
                double m = direction * mean[side][i], s = sigma[side][i], z = (x - m) / s;
                if (m == m0 && s == s0)
                    continue;
                double rate = 1.0 / s / s - 1.0 / s0 / s0 + FP_ROUND / s / s, gap = z / s - z0 / s0;
                double gap_error = FP_ROUND * (fabs(z / s) + fabs(z0 / s0));
                double more = -0.5 * (z * z - z0 * z0) + FP_ROUND * (z * z + z0 * z0);
                if (s == s0) { /* without cancellation, however close the means */
                    rate = 0.0;
                    gap = (m0 - m) / s / s;
                    gap_error = FP_ROUND * gap;
                    more = -0.5 * ((m0 - m) / s) * (z + z0) * (1.0 - FP_ROUND);
                }
                double ratio = exp(log(weight[side][i]) - log(weight[side][top[side]]) + log(s0) - log(s) + more);
                double least_gap = gap - gap_error;
                if (!(least_gap > 0.0) || !(least_gap * least_gap >= rate * (1.0 + 1e-9))) {
                    kind_of_piece = 0;
                    break;
                }
                excess[side] += ratio * (gap + gap_error);
                total[side] += ratio;
            }
        }
        if (!kind_of_piece)
            continue;
        double growing_part = (x - mq) * slope_rate, constant_part = (mp - mq) / sp / sp,
               d = growing_part + constant_part;
        double slack = 1e-14 * (fabs(growing_part) + fabs(constant_part));
        double margin[2] = {excess[0] * (1.0 + 1e-6) + slack, excess[1] * (1.0 + 1e-6) + slack};
        if (sp == sq)
            d = (mp - mq) / sp / sq; /* exact sign */
        if (sp == sq && mp != mq) {
            margin[0] = excess[0] * (1.0 + 1e-6) + 1e-12 * fabs(d);
            margin[1] = excess[1] * (1.0 + 1e-6) + 1e-12 * fabs(d);
        }
        *edge = direction * x;
        if (same) {
            double wp = 0.0, wq = 0.0;
            if (total[0] + total[1] > 1e-18 || (x - mp) / sp < 40.0)
                continue;
            fp_dd over = {0.0, 0.0};
            for (int i = 0; i < r->np; ++i)
                wp += direction * r->m[i] == mp && r->s[i] == sp ? r->w[i] : 0.0;
            for (int i = 0; i < r->np; ++i)
                over = direction * r->m[i] == mp && r->s[i] == sp ? fp_dd_add_d(over, r->w[i]) : over;
            for (int j = 0; j < r->nq; ++j)
                wq += direction * r->n[j] == mq && r->t[j] == sq ? r->v[j] : 0.0;
            for (int j = 0; j < r->nq; ++j)
                over = direction * r->n[j] == mq && r->t[j] == sq ? fp_dd_add_d(over, -r->v[j]) : over;
            int near = fabs(over.hi) < 0.5 * wq;
            double rounding = 2.3e-16 * (r->np + r->nq + 4) * (fabs(over.hi) / wq + (near ? 0.0 : 1.0));
            *sign = 0;
            *limit = near ? log1p(over.hi / wq) : log(wp / wq);
            *spread = 2.0 * (total[0] + total[1]) + 4.0 * rounding + 1e-15 * fabs(*limit) + 0x1p-98 * (r->np + r->nq);
            return;
        }
        if (d - margin[0] > 0.0 && slope_rate >= 0.0) {
            *sign = direction, *limit = INFINITY;
            return;
        }
        if (d + margin[1] < 0.0 && slope_rate <= 0.0) {
            *sign = -direction, *limit = -INFINITY;
            return;
        }
    }
    *edge = direction * (far + FP_FARTHEST_POSITION);
    *sign = 0;
    *limit = 0.0;
    *spread = INFINITY;
}

/* The values of L at the ends of every monotone piece, with errors. */
static void FP_NAME(fp_pieces_end_values)(const fp_log_ratio *r, fp_pieces *out)
{
    double x[FP_LANES], *value[2 * FP_LANES], *error[2 * FP_LANES];
    int owner[2 * FP_LANES], ends = 0, filled = 0; /* an end of two pieces is evaluated once */
    for (int i = 0; i <= out->count; ++i) {
        fp_piece *piece = i < out->count ? &out->piece[i] : NULL;
        for (int right = 0; right < 2 && piece && piece->kind_of_piece != FP_ENCLOSED; ++right) {
            double end = right ? piece->right : piece->left;
            if (!isfinite(end)) {
                *(right ? &piece->high : &piece->low) = out->limit[right];
                continue;
            }
            if (!filled || x[filled - 1] != end)
                x[filled++] = end;
            value[ends] = right ? &piece->high : &piece->low;
            error[ends] = right ? &piece->high_error : &piece->low_error;
            owner[ends++] = filled - 1;
        }
        if (filled > FP_LANES - 2 || (!piece && filled)) {
            FP_NAME(fp_ratios) at;
            FP_NAME(fp_log_ratio_at_some)(r, x, filled, &at);
            for (int k = 0; k < ends; ++k)
                *value[k] = at.value[owner[k]], *error[k] = at.error[owner[k]];
            filled = ends = 0;
        }
    }
    for (int i = 0; i < out->count && r->stop->status; ++i)
        if (out->piece[i].kind_of_piece != FP_ENCLOSED) {
            fp_piece *piece = &out->piece[i];
            *piece = (fp_piece){piece->left, piece->right, FP_ENCLOSED, 0, -INFINITY, INFINITY, 0, 0, 0, 0};
            out->undecided++;
        }
}

/* The outermost point that lies `reach` standard deviations from a mean, on the side given by the sign. */
static double FP_NAME(fp_outermost_point)(const fp_log_ratio *r, double reach)
{
    double far = reach > 0.0 ? -INFINITY : INFINITY;
    for (int i = 0; i < r->np + r->nq; ++i) {
        double x = i < r->np ? r->m[i] + reach * r->s[i] : r->n[i - r->np] + reach * r->t[i - r->np];
        far = (reach > 0.0 ? x > far : x < far) ? x : far;
    }
    return far;
}

/* All pieces of L, from minus to plus infinity; -1 when memory is short. They are coarse where the time is spent. */
static int FP_NAME(fp_pieces_build)(const fp_log_ratio *r, fp_pieces *out)
{
    fp_pieces runs = {0};
    double edge[2], spread[2], scale = INFINITY;
    int sign[2], status = 0, curved = 0;
    double least_p = INFINITY, least_q = INFINITY, most_p = 0.0, most_q = 0.0;
    for (int i = 0; i < r->np; ++i)
        least_p = r->s[i] < least_p ? r->s[i] : least_p, most_p = r->s[i] > most_p ? r->s[i] : most_p;
    for (int j = 0; j < r->nq; ++j)
        least_q = r->t[j] < least_q ? r->t[j] : least_q, most_q = r->t[j] > most_q ? r->t[j] : most_q;
    scale = least_p < least_q ? least_p : least_q;
    out->sharpest = (1.0 + 1e-9) / scale / scale;
    FP_NAME(fp_tail_sign)(r, -1, most_p > most_q ? most_p : most_q, &edge[0], &sign[0], &out->limit[0], &spread[0]);
    FP_NAME(fp_tail_sign)(r, 1, most_p > most_q ? most_p : most_q, &edge[1], &sign[1], &out->limit[1], &spread[1]);
    /* one narrowest component against the others: L'' = Var_r(g) - b + t has one sign everywhere */
    if (r->nq == 1 && most_q <= least_p)
        curved = 1;
    else if (r->np == 1 && most_p <= least_q)
        curved = -1;
    if (curved) {
        fp_piece run = {edge[0], edge[1], FP_CURVED, curved, 0, 0, 0, 0, 0};
        status = FP_NAME(fp_pieces_append)(&runs, run);
    } else {
        /* the core, and rings of 40, 150, 600 and 3000 standard deviations around it, each with its own budget */
        static const double ring[] = {3000.0, 600.0, 150.0, 40.0};
        double cuts[10];
        for (int k = 0; k < 4; ++k) {
            cuts[k + 1] = FP_NAME(fp_outermost_point)(r, -ring[k]);
            cuts[8 - k] = FP_NAME(fp_outermost_point)(r, ring[k]);
        }
        cuts[0] = edge[0], cuts[9] = edge[1];
        double now = fp_seconds(), deadline = r->stop->deadline;
        r->stop->deadline = now + 0.5 * (deadline - now); /* the rest of the time is reserved for the use of the runs */
        for (int k = 0; k < 9 && !status; ++k) {
            double from = cuts[k] > edge[0] ? cuts[k] : edge[0], to = cuts[k + 1] < edge[1] ? cuts[k + 1] : edge[1];
            long share = 20L * (r->np + r->nq), budget = (k == 4 ? 120000 : 8000) + share;
            if (r->np + r->nq > 256) /* an evaluation takes time in proportion to the number of components */
                budget = (k == 4 ? 40000 : 4000) + share;
            if (!(from < to))
                continue;
            if (k == 0 || k == 8) /* too far out to matter: the mass there is below e^-4000000 */
                status = FP_NAME(fp_pieces_append)(&runs,
                                                   (fp_piece){from, to, FP_ENCLOSED, 0, -INFINITY, INFINITY, 0, 0, 0});
            else
                status = FP_NAME(fp_subdivide)(r, from, to, scale, budget, &runs);
        }
        r->stop->deadline = deadline;
        out->expired = r->stop->status == FP_EXPIRED;
        r->stop->status = out->expired ? 0 : r->stop->status;
    }
    out->evaluations = runs.evaluations;
    out->undecided = runs.undecided;
    fp_piece tail = {-INFINITY, edge[0], FP_ENCLOSED, 0, out->limit[0] - spread[0], out->limit[0] + spread[0], 0, 0, 0};
    if (!status && !sign[0])
        status = fp_pieces_reserve(out) ? -1 : (out->piece[out->count++] = tail, 0);
    else if (!status)
        status = FP_NAME(fp_pieces_append_monotone)(out, -INFINITY, edge[0], sign[0]);
    FP_NAME(fp_extremum) *extremum = runs.count ? malloc((size_t)runs.count * sizeof *extremum) : NULL;
    int extrema = 0;
    status = status ? status : runs.count && !extremum ? -1 : 0;
    for (int i = 0; i < runs.count && !status; ++i) {
        const fp_piece *run = &runs.piece[i];
        if (run->kind_of_piece == FP_CURVED)
            extremum[extrema++] = (FP_NAME(fp_extremum)){
                .x = run->left, .left = run->left, .right = run->right, .low = run->left, .high = run->right,
                .sign = run->sign};
    }
    FP_NAME(fp_extrema_find)(r, extremum, extrema, &out->evaluations);
    extrema = 0;
    for (int i = 0; i < runs.count && !status; ++i) {
        fp_piece run = runs.piece[i];
        if (run.kind_of_piece == FP_MONOTONE)
            status = FP_NAME(fp_pieces_append_monotone)(out, run.left, run.right, run.sign);
        else if (run.kind_of_piece == FP_CURVED)
            status = FP_NAME(fp_split_curved)(&extremum[extrema++], r->stop->status, out);
        else
            status = fp_pieces_reserve(out) ? -1 : (out->piece[out->count++] = run, 0);
    }
    tail = (fp_piece){edge[1], INFINITY, FP_ENCLOSED, 0, out->limit[1] - spread[1], out->limit[1] + spread[1], 0, 0, 0};
    if (!status && !sign[1])
        status = fp_pieces_reserve(out) ? -1 : (out->piece[out->count++] = tail, 0);
    else if (!status)
        status = FP_NAME(fp_pieces_append_monotone)(out, edge[1], INFINITY, sign[1]);
    if (!status)
        FP_NAME(fp_pieces_end_values)(r, out);
    if (!status)
        status = FP_NAME(fp_knots_build)(r, most_p > most_q ? most_p : most_q, out);
    free(extremum);
    fp_pieces_free(&runs);
    return r->stop->status == FP_INTERRUPTED ? FP_INTERRUPTED : status;
}
