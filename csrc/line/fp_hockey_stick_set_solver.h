/* The set E on which p > e^eps q, from the monotone pieces of L, and a bound of what it may lack; included once per
 * instruction set (docs/proofs/monotone_pieces.md, theorem 3.1). H_{e^eps}(P||Q) = integral of (p - e^eps q)^+ = sup_E
 * P(E) - e^eps Q(E), so any set E gives the lower bound P(E) - e^eps Q(E). E is the union of the pieces on which L >
 * eps is proved, cut at computed crossings. It lacks at most the integral of |p - e^eps q| over the enclosures of the
 * crossings and over the pieces whose enclosure contains eps: the loss below, which is of second order in the width of
 * the enclosures. */
/* bounds: proved - error of log p - log q in double-doubles, of crossings found with it, and of loss in logarithms:
 * docs/proofs/monotone_pieces.md, theorems 3.14 and 3.15 */

#define FP_EPSILON_SUMMED 1e12 /* beyond, e^eps Q(E) has no useful relative accuracy */

/* log of an upper bound of the density anywhere on [left, right]. */
static double FP_NAME(fp_density_upper_bound)(const fp_mixture *side, double left, double right)
{
    double top = -INFINITY, sum = 0.0;
    for (int pass = 0; pass < 2; ++pass)
        for (int i = 0; i < side->n; ++i) {
            double below = left - side->mean[i], above = side->mean[i] - right, away = below > above ? below : above;
            double z = (away > 0.0 ? away : 0.0) * side->inverse[i], h = side->log_weight[i] - 0.5 * z * z;
            if (pass == 0)
                top = h > top ? h : top;
            else
                sum += exp(h - top);
        }
    return top + log(sum) - FP_LOG_SQRT_2PI + 1e-9 + 1e-14 * fabs(top);
}

/* log of an upper bound of the mass of a set of length `width` within [left, right]. */
static double FP_NAME(fp_mass_upper_bound)(const fp_mixture *side, double left, double right, double width)
{
    double top = -INFINITY, by_height = INFINITY;
    if (left > -INFINITY && right < INFINITY)
        by_height = log(width) + FP_NAME(fp_density_upper_bound)(side, left, right);
    for (int i = 0; i < side->n; ++i) {
        double below = left - side->mean[i], above = side->mean[i] - right, away = below > above ? below : above;
        double z = (away > 0.0 ? away : 0.0) * side->inverse[i], h = -0.5 * z * z;
        top = h > top ? h : top;
    }
    top = by_height < top ? by_height : top;
    return top > -INFINITY ? top + 1e-9 + 1e-14 * fabs(top) : top;
}

static inline void FP_NAME(fp_add_loss)(fp_optimal_set *set, double log_loss)
{
    if (log_loss > -INFINITY) {
        double more = set->loss_count ? log_loss - set->loss_log : INFINITY;
        set->loss_sum =
            more > 0.0 ? 1.0 + (set->loss_count ? set->loss_sum * exp(-more) : 0.0) : set->loss_sum + exp(more);
        set->loss_log = more > 0.0 ? log_loss : set->loss_log;
        set->loss_count++;
    }
}

/* Adds the integral of |p - e^eps q| over `width` of [left, right], where |L - eps| <= dev; from dev = 1 on that of
 * (p - e^eps q)^+, which is less. */
static void FP_NAME(fp_add_interval_loss)(const fp_log_ratio *r, double epsilon, double left, double right,
                                          double width, double dev, fp_optimal_set *set)
{
    fp_stop_requested(r->stop, 2 * (r->np + r->nq));
    double by_q = INFINITY, by_p = FP_NAME(fp_mass_upper_bound)(&r->p, left, right, width);
    if (!(by_p <= 0.0))
        by_p = 1e-9; /* the total mass */
    if (dev < INFINITY)
        by_q = epsilon + FP_NAME(fp_mass_upper_bound)(&r->q, left, right, width) + fp_log_expm1(dev);
    double by_p_too = dev < INFINITY && dev < 1.0 ? by_p + fp_log_expm1(dev) + dev : by_p;
    FP_NAME(fp_add_loss)(set, by_q < by_p_too ? by_q : by_p_too);
}

/* Log density (without sqrt(2 pi)) in double-doubles; components more than 80 below the largest do not count in
 * `error`. */
static fp_dd FP_NAME(fp_mixture_log_density_dd)(int n, const double *w, const double *m, const double *s, fp_dd x,
                                                double *error)
{
    fp_dd top = {-INFINITY, 0.0}, sum = {0.0, 0.0};
    double largest = 0.0;
    for (int pass = 0; pass < 2; ++pass)
        for (int i = 0; i < n; ++i) {
            double rough = (x.hi - m[i]) / s[i];
            rough = log(w[i] / s[i]) - 0.5 * rough * rough;
            if (pass && rough < top.hi - 200.0 - 1e-9 * fabs(top.hi))
                continue;
            if (!pass && !(rough > top.hi - 1.0 - 1e-9 * fabs(top.hi)))
                continue;
            fp_dd z = fp_dd_div_d(fp_dd_add_d(x, -m[i]), s[i]), square = fp_dd_sqr(z);
            fp_dd load = fp_dd_sub(fp_dd_log(fp_dd_set(w[i])), fp_dd_log(fp_dd_set(s[i])));
            fp_dd h = fp_dd_sub(load, fp_dd_make(0.5 * square.hi, 0.5 * square.lo));
            if (!pass) {
                if (h.hi > top.hi)
                    top = h;
                continue;
            }
            fp_dd away = fp_dd_sub(h, top);
            if (away.hi > -80.0) {
                double size = square.hi + fabs(log(w[i])) + fabs(log(s[i]));
                largest = size > largest ? size : largest;
            }
            sum = fp_dd_add(sum, fp_dd_exp(away));
        }
    *error = 0x1p-96 * (4.0 + 2.0 * largest + n) + n * 1e-34;
    return fp_dd_add(top, fp_dd_log(sum));
}

static fp_dd FP_NAME(fp_log_ratio_dd_at)(const fp_log_ratio *r, fp_dd x, double *error)
{
    double other;
    fp_stop_requested(r->stop, 8 * (r->np + r->nq));
    fp_dd p = FP_NAME(fp_mixture_log_density_dd)(r->np, r->w, r->m, r->s, x, error);
    fp_dd q = FP_NAME(fp_mixture_log_density_dd)(r->nq, r->v, r->n, r->t, x, &other);
    *error += other;
    return fp_dd_sub(p, q);
}

/* The crossing that is known to lie between `ends`, to double-double accuracy; 0 when its enclosure cannot be
 * proved. */
static int FP_NAME(fp_crossing_dd)(const fp_log_ratio *r, double epsilon, int sign, double slope, const double *ends,
                                     fp_dd x, fp_dd *crossing, fp_optimal_set *set)
{
    double error = 0.0, f = INFINITY, dev = 0.0;
    for (int i = 0; i < 12 && !r->stop->status; ++i) {
        fp_dd value = fp_dd_add_d(FP_NAME(fp_log_ratio_dd_at)(r, x, &error), -epsilon);
        double before = f;
        f = value.hi;
        if (!(fabs(f) < fabs(before)) || fabs(f) <= 2.0 * error)
            break;
        x = fp_dd_add_d(x, -f / slope);
    }
    if (r->stop->status)
        return 0;
    double step = 4.0 * (fabs(f) + 2.0 * error) / fabs(slope) + 0x1p-103 * fabs(x.hi);
    for (int which = 0; which < 2; ++which) {
        fp_dd end = fp_dd_add_d(x, which ? step : -step);
        if (!(end.hi >= ends[0] && end.hi <= ends[1]))
            return 0;
        fp_dd value = fp_dd_add_d(FP_NAME(fp_log_ratio_dd_at)(r, end, &error), -epsilon);
        double g = sign * value.hi;
        if (!(which ? g > error : g < -error))
            return 0;
        dev = fabs(g) + error > dev ? fabs(g) + error : dev;
    }
    FP_NAME(fp_add_interval_loss)(r, epsilon, ends[0], ends[1], 2.0 * step * (1.0 + 1e-9), dev, set);
    *crossing = x;
    return 1;
}

/* The crossing of eps in a monotone piece, searched from `guess` where that lies in it, with the loss of using it for
 * the true one; an arbitrary point when stopped. */
static fp_dd FP_NAME(fp_crossing_by_bisection)(const fp_log_ratio *r, const fp_piece *piece, double epsilon,
                                               double guess, double scale, fp_optimal_set *set)
{
    double a = piece->left, b = piece->right, x;
    int sign = piece->sign;
    fp_dd crossing;
    fp_taylor at, side;
    guess = fabs(guess) < FP_FARTHEST_POSITION ? guess : NAN;
    int proved[2] = {1, 1}; /* whether the crossing is proved to lie inside each end */
    double start = guess > a && guess < b ? guess : isfinite(a) ? a : isfinite(b) ? b : r->n[0];
    for (int right = 0; right < 2; ++right) { /* a finite bracket */
        double *end = right ? &b : &a;
        if (isfinite(*end))
            continue;
        proved[right] = 0;
        for (double step = scale; !r->stop->status; step *= 2.0) {
            *end = right ? start + step : start - step;
            if (!(fabs(*end) < FP_FARTHEST_POSITION))
                break;
            FP_NAME(fp_log_ratio_value)(r, *end, &at);
            set->evaluations++;
            double g = (right ? sign : -sign) * (at.value - epsilon);
            proved[right] = g > at.error;
            if (proved[right])
                break;
            if (g < -at.error) /* the crossing is farther out */
                *(right ? &a : &b) = *end;
        }
    }
    x = guess > a && guess < b ? guess : 0.5 * (a + b);
    double lo = a, hi = b, f = 0.0, previous = INFINITY;
    at = (fp_taylor){0};
    for (int i = 0; i < 200 && !r->stop->status; ++i) {
        FP_NAME(fp_log_ratio_value)(r, x, &at);
        set->evaluations++;
        f = at.value - epsilon;
        if (fabs(f) <= 2.0 * at.error)
            break;
        if (sign * f < 0.0)
            lo = x;
        else
            hi = x;
        double next = x - f / at.slope;
        if (!(next > lo && next < hi) || fabs(f) > 0.7 * previous || i % 8 == 7) /* far from a narrow peak steps halve */
            next =
                hi - lo > 1e3 * scale ? scale * sinh(0.5 * (asinh(lo / scale) + asinh(hi / scale))) : 0.5 * (lo + hi);
        previous = fabs(f);
        if (next == x || !(next > lo && next < hi))
            break;
        x = next;
    }
    if (r->stop->status)
        return fp_dd_set(x);
    /* enclosure, proved by the signs at its ends */
    double spacing_of_doubles = nextafter(fabs(x), INFINITY) - fabs(x);
    double width = 2.0 * (fabs(f) + 2.0 * at.error) / (fabs(at.slope) + 1e-300) + spacing_of_doubles, dev = 0.0,
           ends[2];
    for (int which = 0; which < 2; ++which) {
        double step = width, near = 0.0;
        ends[which] = which ? piece->right : piece->left; /* unless something better is proved */
        for (int attempt = 0; attempt < 600 && !r->stop->status; ++attempt, step *= 4.0) {
            double end = which ? x + step : x - step;
            int outside = which ? !(end < b) : !(end > a);
            if (outside && !proved[which]) {
                dev = INFINITY;
                break;
            }
            if (outside)
                end = which ? b : a;
            FP_NAME(fp_log_ratio_value)(r, end, &side);
            set->evaluations++;
            double g = sign * (side.value - epsilon), far = fabs(g) + side.error;
            if (outside || (which ? g > side.error : g < -side.error)) {
                double far_step = fabs(end - x);
                for (int i = 0; outside && i < 45 && !r->stop->status && far_step - near > 1e-9 * far_step;
                     ++i) { /* draw nearer */
                    double middle = 0.5 * (near + far_step);
                    FP_NAME(fp_log_ratio_value)(r, which ? x + middle : x - middle, &side);
                    set->evaluations++;
                    g = sign * (side.value - epsilon);
                    if (which ? g > side.error : g < -side.error)
                        far_step = middle, far = fabs(g) + side.error, end = which ? x + middle : x - middle;
                    else
                        near = middle;
                }
                ends[which] = end;
                dev = far <= dev ? dev : far < INFINITY ? far : INFINITY;
                break;
            }
            near = step;
        }
    }
    if (!(ends[0] <= x && x <= ends[1]))
        x = isfinite(ends[0]) ? ends[0] : isfinite(ends[1]) ? ends[1] : 0.0;
    if (set->extended_precision
        && FP_NAME(fp_crossing_dd)(r, epsilon, sign, at.slope, ends, fp_dd_set(x), &crossing, set))
        return crossing;
    if (!(dev < 1.0)) /* the mass of P bounds the loss only if E lacks the enclosure, since it is no bound of e^eps q */
        x = ends[sign > 0];
    FP_NAME(fp_add_interval_loss)(r, epsilon, ends[0], ends[1], ends[1] - ends[0], dev, set);
    return fp_dd_set(x);
}

static inline int FP_NAME(fp_optimal_set_append)(fp_optimal_set *set, fp_dd left, fp_dd right)
{
    if (set->count && set->interval[2 * set->count - 1].hi == left.hi
        && set->interval[2 * set->count - 1].lo == left.lo) {
        set->interval[2 * set->count - 1] = right;
        return 0;
    }
    if (set->count == set->capacity) {
        int capacity = set->capacity ? 2 * set->capacity : 32;
        fp_dd *grown = realloc(set->interval, 2 * (size_t)capacity * sizeof *grown);
        if (!grown)
            return -1;
        set->interval = grown;
        set->capacity = capacity;
    }
    set->interval[2 * set->count] = left;
    set->interval[2 * set->count + 1] = right;
    set->count++;
    return 0;
}

/* Note that the last end of the last interval on the side where L crosses eps is to be found. */
static int FP_NAME(fp_optimal_set_note)(fp_optimal_set *set, const fp_piece *piece, double epsilon)
{
    if (set->crossings == set->crossing_capacity) {
        int capacity = set->crossing_capacity ? 2 * set->crossing_capacity : 16;
        fp_crossing *grown = realloc(set->crossing, (size_t)capacity * sizeof *grown);
        if (!grown)
            return -1;
        set->crossing = grown;
        set->crossing_capacity = capacity;
    }
    double x = set->extended_precision ? set->crossing[set->crossings].x : NAN; /* the first time found it in doubles */
    set->crossing[set->crossings++] = (fp_crossing){
        .piece = piece, .epsilon = epsilon, .x = x, .log_loss = NAN, .slot = 2 * (set->count - 1) + (piece->sign < 0)};
    return 0;
}

/* Put the crossings into the set; those that were not found are searched here. Returns the reason to stop, or 0. */
static int FP_NAME(fp_optimal_set_fill)(const fp_log_ratio *r, double scale, fp_optimal_set *set)
{
    for (int i = 0; i < set->crossings && !r->stop->status; ++i) {
        const fp_crossing *c = &set->crossing[i];
        int found = c->log_loss == c->log_loss && !set->extended_precision;
        set->interval[c->slot] =
            found ? fp_dd_set(c->x)
                  : FP_NAME(fp_crossing_by_bisection)(r, c->piece, c->epsilon, c->x, scale, set);
        if (found)
            FP_NAME(fp_add_loss)(set, c->log_loss);
    }
    return r->stop->status;
}

/* Integral of (p - e^eps q)^+ over an enclosed piece by the midpoint rule: an estimate, not a bound. */
static double FP_NAME(fp_estimated_gain)(const fp_log_ratio *r, double epsilon, double left, double right, int points,
                                      fp_optimal_set *set)
{
    double *h = r->scratch, *e = h + r->p.padded, *g = e + r->p.padded, sum = 0.0, width = (right - left) / points;
    if (!(width < INFINITY))
        return 0.0;
    for (int k = 0; k < points && !r->stop->status; ++k) {
        FP_NAME(fp_moments) p;
        fp_taylor at;
        double x = left + (k + 0.5) * width;
        FP_NAME(fp_log_ratio_value)(r, x, &at);
        set->evaluations++;
        if (!(at.value > epsilon))
            continue;
        FP_NAME(fp_mixture_log_density)(&r->p, x, h, e, g, &p);
        sum -= exp(p.log - FP_LOG_SQRT_2PI) * expm1(epsilon - at.value);
    }
    return sum * width < 1.0 ? sum * width : 0.0;
}

/* 1 when p >= e^eps q, -1 when p <= e^eps q, proved component by component (equal components taken together); 0
 * otherwise. */
static int FP_NAME(fp_dominance)(const fp_log_ratio *r, double epsilon)
{
    int above = epsilon <= 0.0, below = 1, i = 0, j = 0;
    double factor = fp_exp(epsilon < 700.0 ? epsilon : 700.0) * (1.0 - 1e-14); /* rounded down */
    factor = epsilon >= 0.0 && factor < 1.0 ? 1.0 : factor;
    while ((i < r->np || j < r->nq) && (above || below)) {
        const int first_p = i, first_q = j;
        fp_dd p = {0.0, 0.0}, q = {0.0, 0.0};
        int take_p = i < r->np && (j == r->nq || r->m[i] < r->n[j] || (r->m[i] == r->n[j] && r->s[i] <= r->t[j]));
        double m = take_p ? r->m[i] : r->n[j], s = take_p ? r->s[i] : r->t[j];
        for (; i < r->np && r->m[i] == m && r->s[i] == s; ++i)
            p = fp_dd_add_d(p, r->w[i]);
        for (; j < r->nq && r->n[j] == m && r->t[j] == s; ++j)
            q = fp_dd_add_d(q, r->v[j]);
        const int many = i - first_p > j - first_q ? i - first_p : j - first_q; /* the sum of two weights is exact */
        const fp_dd off = fp_dd_set(many > 2 ? 0x1p-104 * many * (p.hi + q.hi) : 0.0), most = fp_dd_mul_d(q, factor);
        above = above && fp_dd_ge(p, fp_dd_add(q, off));
        below = below && fp_dd_le(fp_dd_add(p, off), most);
    }
    return below ? -1 : above;
}

/* Bounds of L on a piece. */
static void FP_NAME(fp_piece_bounds)(const fp_piece *piece, double *least, double *most)
{
    if (piece->kind_of_piece == FP_ENCLOSED) {
        *least = piece->low, *most = piece->high;
    } else {
        *least = piece->sign > 0 ? piece->low - piece->low_error : piece->high - piece->high_error;
        *most = piece->sign > 0 ? piece->high + piece->high_error : piece->low + piece->low_error;
    }
}

/* The set E for one eps, without its crossings, which are noted; returns nonzero when memory is short or when it was
 * stopped. */
static int FP_NAME(fp_optimal_set_build)(const fp_log_ratio *r, const fp_pieces *pieces, double epsilon,
                                         fp_optimal_set *set)
{
    int status = 0;
    int points = 1 + 20000 / (pieces->count + 625);
    set->count = set->loss_count = set->crossings = 0;
    set->gain = 0.0;
    set->loss_log = -INFINITY;
    set->loss_sum = 0.0;
    int dominance = FP_NAME(fp_dominance)(r, epsilon);
    if (dominance < 0)
        return 0;
    if (dominance > 0)
        return FP_NAME(fp_optimal_set_append)(set, fp_dd_set(-INFINITY), fp_dd_set(INFINITY));
    for (int i = 0; i < pieces->count && !status; ++i) {
        const fp_piece *piece = &pieces->piece[i];
        double least, most;
        FP_NAME(fp_piece_bounds)(piece, &least, &most);
        if (least >= epsilon)
            status = FP_NAME(fp_optimal_set_append)(set, fp_dd_set(piece->left), fp_dd_set(piece->right));
        else if (most <= epsilon)
            continue;
        else if (piece->kind_of_piece == FP_ENCLOSED || !(least <= most)) {
            double over = most - epsilon, under = epsilon - least;
            FP_NAME(fp_add_interval_loss)(r, epsilon, piece->left, piece->right, piece->right - piece->left,
                                     over > under ? over : under, set);
            set->gain += FP_NAME(fp_estimated_gain)(r, epsilon, piece->left, piece->right, points, set);
        } else {
            fp_dd c = fp_dd_set(NAN);
            status = piece->sign > 0 ? FP_NAME(fp_optimal_set_append)(set, c, fp_dd_set(piece->right))
                                     : FP_NAME(fp_optimal_set_append)(set, fp_dd_set(piece->left), c);
            status = status ? status : FP_NAME(fp_optimal_set_note)(set, piece, epsilon);
        }
        status = status ? status : r->stop->status;
    }
    return status;
}
