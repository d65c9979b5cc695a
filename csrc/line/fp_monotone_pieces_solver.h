/* Partition of the line into pieces on which L = log p/q is proved monotone; included once per instruction set. On
 * |d| <= R around x the analysis of fp_log_ratio_on_disc gives L' = l1 + l2 d + sum_{n>=3} n c_n d^{n-1} with |c_n|
 * <= M / R^n (Cauchy). With t = |d| / R the remainder of L' is at most M/R (1/(1-t)^2 - 1 - 2t) <= 8 M t^2 / R for
 * t <= 1/2, and that of L'' at most M/R^2 (2/(1-t)^3 - 2). A cell is decided when L' or L'' keeps its sign on it. */
/* bounds: tested by enclosures/test_hockey_stick - slack of tails and remainders, by which signs of L' are held to
 * be proved */

#define FP_FARTHEST_POSITION 1e140 /* positions beyond this are not examined */

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

/* Decided cells from `left` to `right`; adjacent cells of one kind are merged. As the budget runs out, cells get
 * coarser; what is left when the budget or the time is spent becomes one piece without bounds. */
static int FP_NAME(fp_subdivide)(const fp_log_ratio *r, double left, double right, double scale, long budget,
                                 fp_pieces *out)
{
    double cursor = left, step = 0.25 * scale > (right - left) / 64.0 ? 0.25 * scale : (right - left) / 64.0;
    long start = out->evaluations;
    while (cursor < right) {
        long undecided = out->evaluations - start;
        if (r->stop->status == FP_INTERRUPTED)
            return FP_INTERRUPTED;
        if (undecided > budget || !(step > 0.0) || r->stop->status) {
            out->undecided++;
            return FP_NAME(fp_pieces_append)(out,
                                             (fp_piece){cursor, right, FP_ENCLOSED, 0, -INFINITY, INFINITY, 0, 0, 0});
        }
        fp_taylor at;
        double a, b, reach, spacing_of_doubles = 4.0 * (nextafter(fabs(cursor), INFINITY) - fabs(cursor));
        double finest = undecided < budget / 10 * 8 ? 1e-6 : undecided < budget / 10 * 9 ? 0.02 : 0.4;
        if (step < spacing_of_doubles)
            step = spacing_of_doubles;
        if (cursor + 2.0 * step > right)
            step = 0.5 * (right - cursor) > spacing_of_doubles ? 0.5 * (right - cursor) : spacing_of_doubles;
        double x = cursor + step;
        step = x - cursor;
        FP_NAME(fp_log_ratio_on_disc)(r, x, 4.0 * step > scale ? 4.0 * step : scale, &at);
        out->evaluations++;
        FP_NAME(fp_sign_radii)(&at, &a, &b);
        reach = a > b ? a : b;
        fp_piece run = {cursor, x + reach, 0, 0, 0, 0, 0, 0, 0};
        double t = at.radius > 0.0 ? step / at.radius : 1.0;
        double off = (fabs(at.slope) + at.slope_error) * step + 0.5 * (fabs(at.curve) + at.curve_error) * step * step
                     + at.bound * t * t * t / (1.0 - t);
        if (reach >= step) {
            run.kind_of_piece = a > b ? FP_MONOTONE : FP_CURVED;
            run.sign = (a > b ? at.slope : at.curve) > 0.0 ? 1 : -1;
        } else if (step <= spacing_of_doubles || t <= finest || (t < 1.0 && off <= 4.0 * at.error)) {
            run.kind_of_piece = FP_ENCLOSED;
            run.right = x + step;
            run.low = t < 1.0 ? at.value - at.error - off : -INFINITY;
            run.high = t < 1.0 ? at.value + at.error + off : INFINITY;
        } else {
            double next = 0.9 * reach, least = 0.9 * finest * at.radius;
            if (!(next > 0.2 * step))
                next = 0.2 * step;
            step = next > least ? next : least;
            continue;
        }
        if (run.right > right)
            run.right = right;
        if (FP_NAME(fp_pieces_append)(out, run))
            return -1;
        step = 1.3 * (run.right - x > step ? run.right - x : step);
        cursor = run.right;
    }
    return 0;
}

/* Zero of the slope in [a, b], on which the slope is monotone with direction `sign`, by Illinois steps on computed
 * values. */
static double FP_NAME(fp_slope_zero)(const fp_log_ratio *r, double a, double b, int sign, fp_pieces *out)
{
    fp_taylor at;
    FP_NAME(fp_log_ratio_at)(r, a, &at);
    double fa = sign * at.slope;
    FP_NAME(fp_log_ratio_at)(r, b, &at);
    double fb = sign * at.slope;
    int side = 0;
    if (fa >= 0.0)
        return a;
    if (fb <= 0.0)
        return b;
    for (int i = 0; i < 200 && !r->stop->status; ++i) {
        double x = i % 3 == 2 ? 0.5 * (a + b) : (fa * b - fb * a) / (fa - fb);
        if (!(x > a && x < b))
            x = 0.5 * (a + b);
        if (!(x > a && x < b))
            return a;
        FP_NAME(fp_log_ratio_at)(r, x, &at);
        out->evaluations++;
        double f = sign * at.slope;
        if (fabs(f) <= 2.0 * at.slope_error)
            return x;
        if (f < 0.0) {
            a = x, fa = f;
            if (side < 0)
                fb *= 0.5;
            side = -1;
        } else {
            b = x, fb = f;
            if (side > 0)
                fa *= 0.5;
            side = 1;
        }
    }
    return 0.5 * (a + b);
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

/* From a zero x of the slope towards `end`: the nearest examined point where the sign of the slope is proved, or
 * `end`. */
static double FP_NAME(fp_slope_sign_proved)(const fp_log_ratio *r, double x, double end, int sign, fp_pieces *out)
{
    fp_taylor at;
    double reach = fabs(end - x), step = 2.0 * (nextafter(fabs(x), INFINITY) - fabs(x)), near = 0.0;
    int direction = end > x ? 1 : -1;
    for (; step < reach && !r->stop->status; near = step, step *= 4.0) {
        FP_NAME(fp_log_ratio_at)(r, x + direction * step, &at);
        out->evaluations++;
        if (sign * at.slope > at.slope_error)
            break;
    }
    if (step < 1e-6 * reach)
        return x + direction * step;
    step = step < reach ? step : reach;
    for (int i = 0; i < 45 && step - near > 1e-12 * reach && !r->stop->status;
         ++i) { /* the flat part is long, or the sign is proved at `end` alone: bisect */
        double middle = 0.5 * (near + step);
        FP_NAME(fp_log_ratio_at)(r, x + direction * middle, &at);
        out->evaluations++;
        if (sign * at.slope > at.slope_error)
            step = middle;
        else
            near = middle;
    }
    return step == reach ? end : x + direction * step;
}

/* Split a run on which L'' has a sign into its falling, flat and rising parts. */
static int FP_NAME(fp_split_curved)(const fp_log_ratio *r, fp_piece run, fp_pieces *out)
{
    double a = run.left, b = run.right, x = FP_NAME(fp_slope_zero)(r, a, b, run.sign, out);
    double xl = x > a ? FP_NAME(fp_slope_sign_proved)(r, x, a, -run.sign, out) : a;
    double xr = x < b ? FP_NAME(fp_slope_sign_proved)(r, x, b, run.sign, out) : b;
    fp_taylor at, left, right;
    if (r->stop->status) { /* stopped halfway: nothing is known of the run */
        out->undecided++;
        return FP_NAME(fp_pieces_append)(out, (fp_piece){a, b, FP_ENCLOSED, 0, -INFINITY, INFINITY, 0, 0, 0});
    }
    if (FP_NAME(fp_pieces_append_monotone)(out, a, xl, -run.sign))
        return -1;
    if (xl < xr) {
        FP_NAME(fp_log_ratio_at)(r, x, &at);
        FP_NAME(fp_log_ratio_at)(r, xl, &left);
        FP_NAME(fp_log_ratio_at)(r, xr, &right);
        /* convex: below the higher end and above the tangent at x; concave: the mirror image */
        double ends[2] = {run.sign * left.value, run.sign * right.value};
        double tops[2] = {ends[0] + left.error, ends[1] + right.error}, top = tops[0] > tops[1] ? tops[0] : tops[1];
        double foot = run.sign * at.value - at.error - (fabs(at.slope) + at.slope_error) * (xr - xl);
        top = top > foot ? top : foot;
        if (fp_pieces_reserve(out))
            return -1;
        out->piece[out->count++] =
            (fp_piece){xl, xr, FP_ENCLOSED, 0, run.sign > 0 ? foot : -top, run.sign > 0 ? top : -foot, 0, 0, 0};
    }
    return FP_NAME(fp_pieces_append_monotone)(out, xr, b, run.sign);
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
                double rate = 1.0 / s / s - 1.0 / s0 / s0, gap = z / s - z0 / s0, more = -0.5 * (z * z - z0 * z0);
                int sure = gap > 1e-12 * (z / s);
                if (s == s0) { /* without cancellation, however close the means */
                    gap = (m0 - m) / s / s;
                    more = -0.5 * ((m0 - m) / s) * (z + z0);
                    sure = gap > 0.0;
                }
                double ratio = exp(log(weight[side][i] / weight[side][top[side]] * (s0 / s)) + more);
                if (!sure || gap * gap < rate * (1.0 + 1e-9)) {
                    kind_of_piece = 0;
                    break;
                }
                excess[side] += ratio * gap;
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
    fp_taylor at;
    for (int i = 0; i < out->count; ++i) {
        fp_piece *piece = &out->piece[i];
        if (piece->kind_of_piece == FP_ENCLOSED)
            continue;
        if (r->stop->status) {
            *piece = (fp_piece){piece->left, piece->right, FP_ENCLOSED, 0, -INFINITY, INFINITY, 0, 0, 0};
            out->undecided++;
            continue;
        }
        if (isfinite(piece->left)) {
            FP_NAME(fp_log_ratio_at)(r, piece->left, &at);
            piece->low = at.value, piece->low_error = at.error;
        } else
            piece->low = out->limit[0];
        if (isfinite(piece->right)) {
            FP_NAME(fp_log_ratio_at)(r, piece->right, &at);
            piece->high = at.value, piece->high_error = at.error;
        } else
            piece->high = out->limit[1];
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
    for (int i = 0; i < runs.count && !status; ++i) {
        fp_piece run = runs.piece[i];
        if (run.kind_of_piece == FP_MONOTONE)
            status = FP_NAME(fp_pieces_append_monotone)(out, run.left, run.right, run.sign);
        else if (run.kind_of_piece == FP_CURVED)
            status = FP_NAME(fp_split_curved)(r, run, out);
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
    fp_pieces_free(&runs);
    return r->stop->status == FP_INTERRUPTED ? FP_INTERRUPTED : status;
}
