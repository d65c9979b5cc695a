/* Crossings of L with many eps in monotone pieces, eight at a time; included once per instruction set.
 *
 * Every piece has knots, points with L and L'; between two of them inverse Hermite interpolation gives a start, and
 * Newton steps follow. From x with |L(x) - eps| = |f| the last step d = -f / L'(x) is not evaluated again: with B a
 * bound of |L''| between x and x + d, |L(x + d) - eps| <= D = error of L + error of L' |d| + B d^2 / 2 and the rounding
 * of x + d (docs/proofs/monotone_pieces.md, theorem 3.4). With |L'(x + d)| >= l and 4 B D <= l^2 the crossing is at
 * most 2 D / l away; the crossing lies in the piece if these points do. What is lost by using x + d for the crossing is
 * at most 2 D / l times the largest e^eps q there times expm1(D). Nothing depends on the other crossings, nor on their
 * order. */
/* bounds: proved - margins of the loss by a crossing: docs/proofs/monotone_pieces.md, theorem 3.4 */

#define FP_KNOTS 8 /* of a piece; that many more for each infinite end */
/* bound: none - L may be off by so much, and four times the error of L, at what is taken for a crossing */
#define FP_CROSSING_WIDTH 1e-12
#define FP_CROSSING_STEPS 60 /* Newton steps before a crossing is left to bisection */

/* The knots of all pieces; -1 when memory is short. */
static int FP_NAME(fp_knots_build)(const fp_log_ratio *r, double scale, fp_pieces *out)
{
    ptrdiff_t many = 0, made = 0;
    for (int i = 0; i < out->count; ++i)
        many += out->piece[i].kind_of_piece == FP_MONOTONE ? 3 * FP_KNOTS : 0;
    out->knot = many ? malloc((size_t)many * sizeof *out->knot) : NULL;
    if (many && !out->knot)
        return -1;
    double centre = 0.5 * (r->m[0] + r->m[r->np - 1]);
    for (int i = 0; i < out->count; ++i) {
        fp_piece *piece = &out->piece[i];
        int left = isfinite(piece->left), right = isfinite(piece->right);
        if (piece->kind_of_piece != FP_MONOTONE)
            continue;
        piece->knot = made;
        piece->knots = FP_KNOTS * (1 + !left + !right);
        double length = piece->right - piece->left, unit = 0.02 * scale;
        int moderate = length < 100.0 * scale, half = piece->knots / 2;
        for (int k = 0; k < piece->knots; ++k) {
            double t = (double)k / (piece->knots - 1), *x = &out->knot[made + k].x;
            if (left && right && moderate)
                *x = piece->left + length * (0.5 - 0.5 * cos(M_PI * t));
            else if (left && right) /* closer together at the ends */
                *x = k < half ? piece->left + unit * expm1(8.0 * k / half)
                              : piece->right - unit * expm1(8.0 * (piece->knots - 1 - k) / half);
            else if (left)
                *x = piece->left + unit * expm1(8.0 * t);
            else if (right)
                *x = piece->right - unit * expm1(8.0 * (1.0 - t));
            else
                *x = centre + unit * sinh(8.0 * (2.0 * t - 1.0));
        }
        for (int k = 0; k < piece->knots; k += FP_LANES) {
            FP_NAME(fp_ratios) at;
            double x[FP_LANES];
            for (int lane = 0; lane < FP_LANES; ++lane)
                x[lane] = out->knot[made + k + lane].x;
            FP_NAME(fp_log_ratio_at_points)(r, x, &at);
            for (int lane = 0; lane < FP_LANES; ++lane)
                out->knot[made + k + lane].value = at.value[lane], out->knot[made + k + lane].slope = at.slope[lane];
        }
        made += piece->knots;
        out->evaluations += piece->knots;
    }
    return 0;
}

/* The point where the cubic through two points with given slopes has the value y, seen as a function of the value. */
static double FP_NAME(fp_inverse_hermite)(const fp_knot *a, const fp_knot *b, double y)
{
    double width = b->value - a->value, t = (y - a->value) / width, s = 1.0 - t;
    double x = a->x * s * s * (1.0 + 2.0 * t) + b->x * t * t * (1.0 + 2.0 * s)
               + width * t * s * (s / a->slope - t / b->slope);
    return x > a->x && x < b->x ? x : a->x + (b->x - a->x) * t;
}

/* Where to look for a crossing first. */
static void FP_NAME(fp_crossing_start)(const fp_pieces *pieces, fp_crossing *c)
{
    const fp_knot *knot = pieces->knot + c->piece->knot;
    int sign = c->piece->sign, low = -1, high = c->piece->knots;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (sign * (knot[middle].value - c->epsilon) < 0.0)
            low = middle;
        else
            high = middle;
    }
    c->low = low >= 0 ? knot[low].x : c->piece->left;
    c->high = high < c->piece->knots ? knot[high].x : c->piece->right;
    c->steps = 0;
    c->previous = INFINITY;
    c->log_loss = NAN;
    if (low >= 0 && high < c->piece->knots)
        c->x = FP_NAME(fp_inverse_hermite)(&knot[low], &knot[high], c->epsilon);
    else
        c->x = low < 0 ? knot[0].x : knot[c->piece->knots - 1].x;
}

/* One step from a point where L is known; whether it was the last one. */
static int FP_NAME(fp_crossing_step)(fp_crossing *c, const FP_NAME(fp_ratios) * at, int lane, double sharpest)
{
    double f = at->value[lane] - c->epsilon, slope = at->slope[lane], step = -f / slope, x = c->x, next = x + step;
    double away = fabs(step) + 2.3e-16 * fabs(next), error = at->error[lane], slope_error = at->slope_error[lane];
    double steepest = at->steepest[lane] + away * sharpest, curvature = (steepest * steepest + sharpest) * (1.0 + 1e-5);
    double off = error + slope_error * away + 0.5 * curvature * away * away
                 + 4.5e-16 * fabs(slope) * (fabs(next) + away);
    double least = fabs(slope) - slope_error - curvature * away, reach = 2.0 * off / least * (1.0 + 1e-9);
    if (off <= FP_CROSSING_WIDTH + 4.0 * error && least > 0.0 && 4.0 * off * curvature <= least * least
        && reach * sharpest <= 1e-6 * (steepest + sqrt(sharpest)) && next - reach > c->piece->left
        && next + reach < c->piece->right) {
        double grow = (steepest + sharpest * reach) * (away + reach);
        c->x = next;
        c->log_loss = fp_log(reach * (off < 1e-3 ? off * (1.0 + off) : expm1(off))) + c->epsilon + at->log_q[lane] + at->log_q_error[lane] + grow
                      - FP_LOG_SQRT_2PI + 1e-9;
        c->log_loss += 1e-15 * (fabs(c->log_loss) + fabs(c->epsilon) + fabs(at->log_q[lane]));
        return 1;
    }
    if (++c->steps > FP_CROSSING_STEPS || !(fabs(f) < INFINITY))
        return 1;
    if (c->piece->sign * f < 0.0)
        c->low = x;
    else
        c->high = x;
    if (!(next > c->low && next < c->high) || fabs(f) > 0.7 * c->previous) {
        double unit = 1.0 / sqrt(sharpest);
        next = c->high - c->low > 1e3 * unit ? unit * sinh(0.5 * (asinh(c->low / unit) + asinh(c->high / unit)))
                                             : 0.5 * (c->low + c->high);
        if (!(fabs(next) < INFINITY)) /* an infinite end: twice as far */
            next = c->low > -INFINITY ? c->low + 2.0 * (x - c->low) + away : c->high - 2.0 * (c->high - x) - away;
    }
    c->previous = fabs(f);
    if (next == x || !(next >= c->low && next <= c->high))
        return 1;
    c->x = next;
    return 0;
}

/* All of `count` crossings; those that were not found keep log_loss = NaN. */
static void FP_NAME(fp_crossings_find)(const fp_log_ratio *r, const fp_pieces *pieces, fp_crossing **crossing,
                                       ptrdiff_t count, long *evaluations)
{
    FP_SEARCH_SIDE_BY_SIDE(fp_crossing, r, count, evaluations,
                           (FP_NAME(fp_crossing_start)(pieces, crossing[next]), crossing[next]),
                           FP_NAME(fp_crossing_step)(lane[k], &at, k, pieces->sharpest))
}
