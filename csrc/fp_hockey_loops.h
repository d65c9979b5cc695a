/* H_{e^eps}(P||Q) = integral of (p - e^eps q)^+ from the monotone pieces of L; included once per instruction set.
 *
 * Any set E gives the lower bound P(E) - e^eps Q(E).  E is the union of the pieces on which L > eps is proved, cut at
 * computed crossings.  What E may lack is at most the integral of |p - e^eps q| over the enclosures of the crossings
 * and over flat pieces that eps runs through: `loss` below, of second order in the enclosures' width.
 */

#define FP_LOG_SQRT_2PI 0.91893853320467274178

/* log of an upper bound of the density anywhere on [left, right]. */
static double FP_NAME(fp_ceiling)(const fp_side *side, double left, double right)
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
    return top + log(sum) - FP_LOG_SQRT_2PI + 1e-9;
}

/* log of an upper bound of the mass of a set of length `width` within [left, right]. */
static double FP_NAME(fp_mass_ceiling)(const fp_side *side, double left, double right, double width)
{
    double top = -INFINITY, by_height = INFINITY;
    if (left > -INFINITY && right < INFINITY)
        by_height = log(width) + FP_NAME(fp_ceiling)(side, left, right);
    for (int i = 0; i < side->n; ++i) {
        double below = left - side->mean[i], above = side->mean[i] - right, away = below > above ? below : above;
        double z = (away > 0.0 ? away : 0.0) * side->inverse[i], h = -0.5 * z * z;
        top = h > top ? h : top;
    }
    top = by_height < top ? by_height : top;
    return top + 1e-9;
}

static inline void FP_NAME(fp_lose)(fp_hockey_set *set, double log_loss)
{
    if (log_loss > -INFINITY) {
        set->loss_count++;
        set->loss_log = log_loss > set->loss_log ? log_loss : set->loss_log;
    }
}

/* Adds the integral of |p - e^eps q| over `width` of [left, right], where |L - eps| <= dev. */
static void FP_NAME(fp_lose_between)(const fp_ratio *r, double epsilon, double left, double right, double width,
                                     double dev, fp_hockey_set *set)
{
    double by_q = INFINITY, by_p = FP_NAME(fp_mass_ceiling)(&r->p, left, right, width);
    if (dev < INFINITY)
        by_q = epsilon + FP_NAME(fp_mass_ceiling)(&r->q, left, right, width) + fp_log_expm1(dev);
    double by_p_too = dev < INFINITY && dev < 1.0 ? by_p + fp_log_expm1(dev) + dev : by_p;
    FP_NAME(fp_lose)(set, by_q < by_p_too ? by_q : by_p_too);
}

/* log density (without sqrt(2 pi)) in double-doubles; components 80 below the largest count for nothing in `error`. */
static fp_dd FP_NAME(fp_side_log_dd)(int n, const double *w, const double *m, const double *s, fp_dd x, double *error)
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

static fp_dd FP_NAME(fp_ratio_dd)(const fp_ratio *r, fp_dd x, double *error)
{
    double other;
    fp_dd p = FP_NAME(fp_side_log_dd)(r->np, r->w, r->m, r->s, x, error);
    fp_dd q = FP_NAME(fp_side_log_dd)(r->nq, r->v, r->n, r->t, x, &other);
    *error += other;
    return fp_dd_sub(p, q);
}

/* The crossing known to lie between `ends`, to double-double accuracy; 0 when its enclosure cannot be proved. */
static int FP_NAME(fp_crossing_fine)(const fp_ratio *r, double epsilon, int sign, double slope, const double *ends,
                                     fp_dd x, fp_dd *crossing, fp_hockey_set *set)
{
    double error = 0.0, f = INFINITY, dev = 0.0;
    for (int i = 0; i < 12; ++i) {
        fp_dd value = fp_dd_add_d(FP_NAME(fp_ratio_dd)(r, x, &error), -epsilon);
        double before = f;
        f = value.hi;
        if (!(fabs(f) < fabs(before)) || fabs(f) <= 2.0 * error)
            break;
        x = fp_dd_add_d(x, -f / slope);
    }
    double step = 4.0 * (fabs(f) + 2.0 * error) / fabs(slope) + 0x1p-103 * fabs(x.hi);
    for (int which = 0; which < 2; ++which) {
        fp_dd end = fp_dd_add_d(x, which ? step : -step);
        if (!(end.hi >= ends[0] && end.hi <= ends[1]))
            return 0;
        fp_dd value = fp_dd_add_d(FP_NAME(fp_ratio_dd)(r, end, &error), -epsilon);
        double g = sign * value.hi;
        if (!(which ? g > error : g < -error))
            return 0;
        dev = fabs(g) + error > dev ? fabs(g) + error : dev;
    }
    FP_NAME(fp_lose_between)(r, epsilon, ends[0], ends[1], 2.0 * step * (1.0 + 1e-9), dev, set);
    *crossing = x;
    return 1;
}

/* Crossing of eps in a monotone piece: a point, with the loss of taking it for the true one. */
static fp_dd FP_NAME(fp_crossing)(const fp_ratio *r, fp_piece *piece, double epsilon, double scale, fp_hockey_set *set)
{
    double a = piece->left, b = piece->right, x;
    int sign = piece->sign;
    fp_dd crossing;
    fp_taylor at, side;
    double start = isfinite(piece->guess) ? piece->guess : isfinite(a) ? a : isfinite(b) ? b : r->n[0];
    for (int right = 0; right < 2; ++right) { /* a finite bracket */
        double *end = right ? &b : &a;
        if (isfinite(*end))
            continue;
        for (double step = scale;; step *= 2.0) {
            *end = right ? start + step : start - step;
            if (!(fabs(*end) < FP_REACH))
                break;
            FP_NAME(fp_ratio_value)(r, *end, &at);
            set->evaluations++;
            double g = (right ? sign : -sign) * (at.value - epsilon);
            if (g > at.error)
                break;
        }
    }
    x = piece->guess > a && piece->guess < b ? piece->guess : 0.5 * (a + b);
    double lo = a, hi = b, f = 0.0, previous = INFINITY;
    for (int i = 0; i < 120; ++i) {
        FP_NAME(fp_ratio_value)(r, x, &at);
        set->evaluations++;
        f = at.value - epsilon;
        if (fabs(f) <= 2.0 * at.error)
            break;
        if (sign * f < 0.0)
            lo = x;
        else
            hi = x;
        double next = x - f / at.slope;
        if (!(next > lo && next < hi) || fabs(f) > 0.7 * previous)
            next = 0.5 * (lo + hi);
        previous = fabs(f);
        if (next == x || !(next > lo && next < hi))
            break;
        x = next;
    }
    piece->guess = x;
    /* enclosure, proved by the signs at its ends */
    double grain = nextafter(fabs(x), INFINITY) - fabs(x);
    double width = 2.0 * (fabs(f) + 2.0 * at.error) / (fabs(at.slope) + 1e-300) + grain, dev = 0.0, ends[2];
    for (int which = 0; which < 2; ++which) {
        double step = width;
        for (;; step *= 4.0) {
            double end = which ? x + step : x - step;
            int outside = which ? end >= b : end <= a;
            if (outside)
                end = which ? b : a;
            FP_NAME(fp_ratio_value)(r, end, &side);
            set->evaluations++;
            double g = sign * (side.value - epsilon), far = fabs(g) + side.error;
            if (outside || (which ? g > side.error : g < -side.error)) {
                ends[which] = end;
                dev = far > dev ? far : dev;
                break;
            }
        }
    }
    if (set->fine && FP_NAME(fp_crossing_fine)(r, epsilon, sign, at.slope, ends, fp_dd_set(x), &crossing, set))
        return crossing;
    FP_NAME(fp_lose_between)(r, epsilon, ends[0], ends[1], ends[1] - ends[0], dev, set);
    return fp_dd_set(x);
}

static inline int FP_NAME(fp_include)(fp_hockey_set *set, fp_dd left, fp_dd right)
{
    if (set->count && set->interval[2 * set->count - 1].hi == left.hi && set->interval[2 * set->count - 1].lo == left.lo) {
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

/* 1 when p >= e^eps q, -1 when p <= e^eps q, component by component (equal ones taken together); 0 otherwise. */
static int FP_NAME(fp_dominance)(const fp_ratio *r, double epsilon)
{
    int above = epsilon == 0.0, below = 1, i = 0, j = 0;
    double factor = fp_exp(epsilon < 700.0 ? epsilon : 700.0) * (1.0 - 1e-14); /* rounded down */
    factor = factor > 1.0 ? factor : 1.0;
    while ((i < r->np || j < r->nq) && (above || below)) {
        fp_dd p = {0.0, 0.0}, q = {0.0, 0.0};
        int take_p = i < r->np && (j == r->nq || r->m[i] < r->n[j] || (r->m[i] == r->n[j] && r->s[i] <= r->t[j]));
        double m = take_p ? r->m[i] : r->n[j], s = take_p ? r->s[i] : r->t[j];
        for (; i < r->np && r->m[i] == m && r->s[i] == s; ++i)
            p = fp_dd_add_d(p, r->w[i]);
        for (; j < r->nq && r->n[j] == m && r->t[j] == s; ++j)
            q = fp_dd_add_d(q, r->v[j]);
        above = above && fp_dd_ge(p, q);
        below = below && fp_dd_le(p, fp_dd_mul_d(q, factor));
    }
    return below ? -1 : above;
}

/* The set E for one eps. */
static int FP_NAME(fp_hockey_choose)(const fp_ratio *r, fp_pieces *pieces, double epsilon, double scale,
                                     fp_hockey_set *set)
{
    int status = 0;
    set->count = set->loss_count = 0;
    set->loss_log = -INFINITY;
    int dominance = FP_NAME(fp_dominance)(r, epsilon);
    if (dominance < 0)
        return 0;
    if (dominance > 0)
        return FP_NAME(fp_include)(set, fp_dd_set(-INFINITY), fp_dd_set(INFINITY));
    for (int i = 0; i < pieces->count && !status; ++i) {
        fp_piece *piece = &pieces->piece[i];
        double least, most;
        if (piece->settled == FP_FLAT) {
            least = piece->low, most = piece->high;
        } else {
            least = (piece->sign > 0 ? piece->low : piece->high) - piece->error;
            most = (piece->sign > 0 ? piece->high : piece->low) + piece->error;
        }
        if (least >= epsilon)
            status = FP_NAME(fp_include)(set, fp_dd_set(piece->left), fp_dd_set(piece->right));
        else if (most <= epsilon)
            continue;
        else if (piece->settled == FP_FLAT) {
            double over = most - epsilon, under = epsilon - least;
            FP_NAME(fp_lose_between)(r, epsilon, piece->left, piece->right, piece->right - piece->left,
                                     over > under ? over : under, set);
        } else {
            fp_dd c = FP_NAME(fp_crossing)(r, piece, epsilon, scale, set);
            status = piece->sign > 0 ? FP_NAME(fp_include)(set, c, fp_dd_set(piece->right))
                                     : FP_NAME(fp_include)(set, fp_dd_set(piece->left), c);
        }
    }
    return status;
}

/* Sum over one side of weight * (mass of the interval), and an absolute error bound, in doubles. */
static void FP_NAME(fp_side_mass)(const fp_side *side, const double *restrict weight, double left, double right,
                                  double *restrict part, double *restrict slip, double *mass, double *error)
{
    const double *restrict mean = side->mean, *restrict inverse = side->inverse;
    for (int i = 0; i < side->n; ++i) {
        double a = (left - mean[i]) * inverse[i], b = (right - mean[i]) * inverse[i];
        a = a < -1e3 ? -1e3 : a > 1e3 ? 1e3 : a;
        b = b < -1e3 ? -1e3 : b > 1e3 ? 1e3 : b;
        part[i] = weight[i] * fp_ndtr_diff(a, b);
        slip[i] = weight[i] * (fabs(a) * fp_exp(-0.5 * a * a) + fabs(b) * fp_exp(-0.5 * b * b));
    }
    for (int i = side->n; i < side->padded; ++i)
        part[i] = slip[i] = 0.0;
    fp_v8 sum = {0}, slips = {0};
    for (int i = 0; i < side->padded; i += FP_LANES) {
        sum += FP_AT(part, i);
        slips += FP_AT(slip, i);
    }
    *mass = FP_NAME(fp_total)(sum);
    *error = FP_NDTR_DIFF_ERROR * *mass + FP_ROUND * FP_NAME(fp_total)(slips) + 1e-300;
}

/* In doubles; 0 when the relative width is not below the target. */
static int FP_NAME(fp_hockey_double)(const fp_ratio *r, double epsilon, const fp_hockey_set *set, double target,
                                     int logs, fp_hockey *out)
{
    double sum = 0.0, error = 0.0, factor, *part = r->scratch, *slip = part + r->p.padded + r->q.padded;
    if (!(epsilon < 600.0))
        return 0;
    factor = fp_exp(epsilon);
    double size = 0.0;
    for (int i = 0; i < set->count; ++i) {
        double p, q, pe, qe;
        FP_NAME(fp_side_mass)(&r->p, r->w, set->interval[2 * i].hi, set->interval[2 * i + 1].hi, part, slip, &p, &pe);
        FP_NAME(fp_side_mass)(&r->q, r->v, set->interval[2 * i].hi, set->interval[2 * i + 1].hi, part, slip, &q, &qe);
        sum += p - factor * q;
        size += p + factor * q;
        error += pe + factor * qe;
    }
    error += (FP_ROUND + 2.3e-16 * (r->p.padded + r->q.padded + set->count)) * size;
    double loss = set->loss_count ? set->loss_count * exp(set->loss_log) * (1.0 + 1e-12 * fabs(set->loss_log)) : 0.0;
    double size_of_log = logs && sum > 0.3 ? fabs(log(sum)) : 1.0;
    if (!(sum > 1e-280) || !(2.0 * error + loss <= target * sum * (size_of_log < 1.0 ? size_of_log : 1.0)))
        return 0;
    out->value = sum;
    out->lower = sum - error;
    out->upper = sum + error + loss;
    out->log_value = log(sum);
    out->log_lower = log(out->lower);
    out->log_upper = log(out->upper);
    return 1;
}

/* A sum of double-doubles times powers of two, with an error bound in the same scale. */
typedef struct {
    fp_dd sum;
    double error;
    int64_t exponent;
    int empty;
} FP_NAME(fp_scaled);

static void FP_NAME(fp_scaled_add)(FP_NAME(fp_scaled) *s, fp_dd term, double error, int64_t exponent)
{
    int own;
    if (term.hi == 0.0 && error == 0.0)
        return;
    frexp(fabs(term.hi) > error ? term.hi : error, &own);
    term = fp_dd_ldexp(term, -own);
    error = ldexp(error, -own);
    exponent += own;
    if (s->empty) {
        s->empty = 0;
        s->exponent = exponent;
    } else if (exponent > s->exponent) {
        int64_t down = s->exponent - exponent;
        s->sum = fp_dd_ldexp(s->sum, down);
        s->error = fp_dd_ldexp(fp_dd_set(s->error), down).hi;
        s->exponent = exponent;
    }
    int64_t down = exponent - s->exponent;
    s->sum = fp_dd_add(s->sum, fp_dd_ldexp(term, down));
    s->error += fp_dd_ldexp(fp_dd_set(error), down).hi + 0x1p-104 * fabs(s->sum.hi) + 0x1p-900;
}

/* coefficient (w - e^eps v) times the mass of [left, right] under N(mean, sigma^2). */
static void FP_NAME(fp_scaled_interval)(FP_NAME(fp_scaled) *s, fp_dd coefficient, double coefficient_error,
                                        int64_t exponent, fp_dd left, fp_dd right, double mean, double sigma)
{
    fp_dd a = left, b = right;
    double slip = 0.0;
    int64_t k, ka = 0, kb = 0;
    if (isfinite(left.hi))
        a = fp_dd_div_d(fp_dd_add_d(left, -mean), sigma);
    if (isfinite(right.hi))
        b = fp_dd_div_d(fp_dd_add_d(right, -mean), sigma);
    const double reach = 0x1p25;
    if (a.hi > reach || b.hi < -reach)
        return; /* below e^(-2^49): fp_hockey_double_double adds it */
    if (a.hi < -reach)
        a = fp_dd_set(-INFINITY);
    if (b.hi > reach)
        b = fp_dd_set(INFINITY);
    fp_dd mass = fp_dd_ndtr_diff_scaled(a, b, &k);
    if (isfinite(a.hi)) {
        double phi = fp_dd_phi_scaled(a, &ka).hi;
        slip += fp_dd_ldexp(fp_dd_set(fabs(a.hi) * phi), ka - k).hi;
    }
    if (isfinite(b.hi)) {
        double phi = fp_dd_phi_scaled(b, &kb).hi;
        slip += fp_dd_ldexp(fp_dd_set(fabs(b.hi) * phi), kb - k).hi;
    }
    fp_dd term = fp_dd_mul(coefficient, mass);
    double error = (0x1p-94 * fabs(mass.hi) + 0x1p-103 * slip) * fabs(coefficient.hi) + coefficient_error * fabs(mass.hi);
    FP_NAME(fp_scaled_add)(s, term, error * (1.0 + 1e-9), exponent + k);
}

static void FP_NAME(fp_hockey_double_double)(const fp_ratio *r, double epsilon, const fp_hockey_set *set, fp_hockey *out)
{
    const double ln2 = 0.69314718055994530942;
    FP_NAME(fp_scaled) s = {{0.0, 0.0}, 0.0, 0, 1};
    int64_t ka;
    fp_dd factor = fp_dd_exp_scaled(fp_dd_set(epsilon), &ka);
    double factor_error = epsilon == 0.0 ? 0.0 : 0x1p-97;
    for (int n = 0; n < set->count; ++n) {
        fp_dd left = set->interval[2 * n], right = set->interval[2 * n + 1];
        int i = 0, j = 0;
        while (i < r->np || j < r->nq) {
            int order = i == r->np ? 1 : j == r->nq ? -1 : 0;
            if (!order)
                order = r->m[i] != r->n[j] ? (r->m[i] < r->n[j] ? -1 : 1) : (r->s[i] > r->t[j]) - (r->s[i] < r->t[j]);
            if (order == 0 && ka < 300) { /* one component in both: subtract the weights first */
                fp_dd q = fp_dd_ldexp(fp_dd_mul_d(factor, r->v[j]), ka), c = fp_dd_add_d(fp_dd_neg(q), r->w[i]);
                double error = factor_error * q.hi + (epsilon == 0.0 ? 0.0 : 0x1p-104 * fabs(c.hi));
                FP_NAME(fp_scaled_interval)(&s, c, error, 0, left, right, r->m[i], r->s[i]);
                ++i, ++j;
                continue;
            }
            if (order <= 0) {
                FP_NAME(fp_scaled_interval)(&s, fp_dd_set(r->w[i]), 0.0, 0, left, right, r->m[i], r->s[i]);
                ++i;
            }
            if (order >= 0) {
                fp_dd c = fp_dd_neg(fp_dd_mul_d(factor, r->v[j]));
                FP_NAME(fp_scaled_interval)(&s, c, 2.0 * factor_error * fabs(c.hi), ka, left, right, r->n[j], r->t[j]);
                ++j;
            }
        }
    }
    if (s.empty) { /* no set at all, or masses below e^(-2^49) */
        double most = set->count ? -0x1p48 + epsilon : -INFINITY;
        if (set->loss_count && set->loss_log + log(set->loss_count) > most)
            most = set->loss_log + log(set->loss_count) + 1e-12 * fabs(set->loss_log);
        out->value = out->lower = 0.0;
        out->log_value = out->log_lower = -INFINITY;
        out->log_upper = most;
        out->upper = most > -INFINITY ? exp(most) * (1.0 + 1e-12) + 5e-324 : 0.0;
        return;
    }
    double loss = 0.0, base = (double)s.exponent * ln2;
    if (set->loss_count)
        loss = set->loss_count * exp(set->loss_log - base) * (1.0 + 1e-14 * (fabs(set->loss_log) + fabs(base)));
    double value = s.sum.hi > 0.0 ? s.sum.hi : 0.0, error = s.error * (1.0 + 1e-9) + 0x1p-900;
    double step = error + 0x1p-53 * value, lower = s.sum.hi - step, upper = s.sum.hi + step + loss;
    lower = lower > 0.0 ? lower : 0.0;
    upper = upper > value ? upper : value;
    int k = s.exponent < -100000 ? -100000 : s.exponent > 100000 ? 100000 : (int)s.exponent;
    out->value = ldexp(value, k);
    out->lower = ldexp(lower, k);
    out->upper = upper > 0.0 ? nextafter(ldexp(upper, k), INFINITY) : 0.0;
    if (out->lower > 0.0 && out->lower < 1e-300)
        out->lower = nextafter(out->lower, 0.0);
    if (error + loss < 1e-3 * value) { /* the logarithm keeps the low part, so that it is good near 0 too */
        out->log_value = fp_dd_log_scaled(s.sum, s.exponent).hi;
        out->log_lower = out->log_value - error / value * 1.01;
        out->log_upper = out->log_value + (error + loss) / value * 1.01;
    } else {
        out->log_value = log(value) + base;
        out->log_lower = log(lower) + base;
        out->log_upper = log(upper) + base;
    }
}

/* Outward rounding of the logarithms, probabilities kept within [0, 1], bounds around the value. */
static void FP_NAME(fp_hockey_finish)(fp_hockey *out)
{
    double slack = 8.9e-16;
    if (out->log_lower > -INFINITY)
        out->log_lower -= slack * fabs(out->log_lower);
    if (out->log_upper > -INFINITY)
        out->log_upper += slack * fabs(out->log_upper);
    if (out->upper > 1.0)
        out->upper = 1.0;
    if (out->value > out->upper)
        out->value = out->upper;
    if (out->lower > out->value)
        out->lower = out->value;
    if (out->log_upper > 0.0)
        out->log_upper = 0.0;
    if (out->log_value > out->log_upper)
        out->log_value = out->log_upper;
    if (out->log_lower > out->log_value || out->log_lower != out->log_lower)
        out->log_lower = out->log_lower != out->log_lower ? -INFINITY : out->log_value;
}

/* log of an upper bound of H, from P(E) alone and what E may lack. */
static double FP_NAME(fp_hockey_ceiling)(const fp_ratio *r, const fp_hockey_set *set)
{
    double top = set->loss_count ? set->loss_log + log(set->loss_count) + 1e-9 : -INFINITY;
    for (int i = 0; i < set->count; ++i) {
        double left = set->interval[2 * i].hi, right = set->interval[2 * i + 1].hi;
        double mass = FP_NAME(fp_mass_ceiling)(&r->p, left, right, right - left) + 1e-9;
        top = (top > mass ? top : mass) + (top > -INFINITY ? 0.6931471806 : 0.0);
    }
    return top;
}

/* H for one eps; when it is proved to lie below e^floor only that is reported (lower 0, upper e^floor). */
static int FP_NAME(fp_hockey_one)(const fp_ratio *r, fp_pieces *pieces, double epsilon, double scale, double target,
                                  int logs, double floor, fp_hockey_set *set, fp_hockey *out, long *extended)
{
    if (epsilon == INFINITY) {
        *out = (fp_hockey){0.0, 0.0, 0.0, -INFINITY, -INFINITY, -INFINITY};
        return 0;
    }
    if (FP_NAME(fp_hockey_choose)(r, pieces, epsilon, scale, set))
        return -1;
    if (!FP_NAME(fp_hockey_double)(r, epsilon, set, target, logs, out)) {
        if (FP_NAME(fp_hockey_ceiling)(r, set) < floor) {
            *out = (fp_hockey){0.0, 0.0, exp(floor), -INFINITY, -INFINITY, floor};
            return 0;
        }
        FP_NAME(fp_hockey_double_double)(r, epsilon, set, out);
        if (!(out->log_upper - out->log_lower <= 0.25 * target) && set->loss_count) {
            set->fine = 1; /* the crossings were the limit */
            int status = FP_NAME(fp_hockey_choose)(r, pieces, epsilon, scale, set);
            set->fine = 0;
            if (status)
                return -1;
            FP_NAME(fp_hockey_double_double)(r, epsilon, set, out);
        }
        ++*extended;
    }
    FP_NAME(fp_hockey_finish)(out);
    return 0;
}

static double FP_NAME(fp_widest)(const fp_ratio *r)
{
    double scale = 0.0;
    for (int i = 0; i < r->np; ++i)
        scale = r->s[i] > scale ? r->s[i] : scale;
    for (int j = 0; j < r->nq; ++j)
        scale = r->t[j] > scale ? r->t[j] : scale;
    return scale;
}

/* H of P against Q for every eps; -1 when memory is short.  cost: evaluations of L, double-double sums, pieces. */
static int FP_NAME(fp_hockey_all)(int np, const double *w, const double *m, const double *s, int nq, const double *v,
                                  const double *n, const double *t, const double *epsilon, ptrdiff_t count,
                                  double target, int logs, fp_hockey *out, long *cost)
{
    fp_ratio r;
    fp_pieces pieces = {0};
    cost[0] = cost[1] = cost[2] = 0;
    if (fp_ratio_set(&r, np, w, m, s, nq, v, n, t))
        return -1;
    int status = FP_NAME(fp_pieces_set)(&r, &pieces);
    fp_hockey_set set = {0};
    double scale = FP_NAME(fp_widest)(&r);
    for (ptrdiff_t e = 0; e < count && !status; ++e)
        status = FP_NAME(fp_hockey_one)(&r, &pieces, epsilon[e], scale, target, logs, -INFINITY, &set, &out[e], &cost[1]);
    cost[0] = pieces.evaluations + set.evaluations;
    cost[2] = pieces.count;
    free(set.interval);
    fp_pieces_free(&pieces);
    fp_ratio_free(&r);
    return status;
}

static void FP_NAME(fp_raise)(fp_hockey *best, const fp_hockey *other)
{
    best->value = other->value > best->value ? other->value : best->value;
    best->lower = other->lower > best->lower ? other->lower : best->lower;
    best->upper = other->upper > best->upper ? other->upper : best->upper;
    best->log_value = other->log_value > best->log_value ? other->log_value : best->log_value;
    best->log_lower = other->log_lower > best->log_lower ? other->log_lower : best->log_lower;
    best->log_upper = other->log_upper > best->log_upper ? other->log_upper : best->log_upper;
}

/* e^-eps H, outward */
static void FP_NAME(fp_damp)(fp_hockey *h, double epsilon)
{
    double factor = exp(-epsilon), slack = 2.3e-16 * (epsilon + 1.0);
    h->value *= factor;
    h->lower *= factor * (1.0 - 1e-15);
    h->upper = h->upper > 0.0 ? nextafter(h->upper * factor * (1.0 + 1e-15), INFINITY) : 0.0;
    h->lower = h->lower < 1e-300 && h->lower > 0.0 ? nextafter(h->lower, 0.0) : h->lower;
    h->lower = h->lower < h->value ? h->lower : h->value;
    h->upper = h->upper > h->value ? h->upper : h->value;
    h->log_value -= epsilon;
    h->log_lower -= epsilon + slack * (h->log_lower > -INFINITY);
    h->log_upper -= epsilon - slack * (h->log_upper > -INFINITY);
}

/* The optimal LIP curve, max over points of max{H(M||x), e^-eps H(x||M)} with M = sum_i w_i N(x_i, sigma^2), eq (6) of
 * Ngo et al.: every ratio has at most two crossings.  `epsilon` rises.  The points are taken from both ends inwards, since far ones are
 * the likely maxima, and a point proved below the maximum so far costs little. */
static int FP_NAME(fp_lip_all)(int n, const double *w, const double *x, const double *sigma, const double *epsilon,
                               ptrdiff_t count, double target, int logs, fp_hockey *out, long *cost)
{
    const double one = 1.0;
    fp_hockey_set set = {0};
    int status = 0;
    cost[0] = cost[1] = cost[2] = 0;
    for (ptrdiff_t e = 0; e < count; ++e)
        out[e] = (fp_hockey){0.0, 0.0, 0.0, -INFINITY, -INFINITY, -INFINITY};
    for (int turn = 0; turn < n && !status; ++turn) {
        int k = turn % 2 ? n - 1 - turn / 2 : turn / 2;
        for (int direction = 0; direction < 2 && !status; ++direction) {
            fp_ratio r;
            fp_pieces pieces = {0};
            status = direction ? fp_ratio_set(&r, 1, &one, x + k, sigma + k, n, w, x, sigma)
                               : fp_ratio_set(&r, n, w, x, sigma, 1, &one, x + k, sigma + k);
            if (status)
                break;
            status = FP_NAME(fp_pieces_set)(&r, &pieces);
            double ceiling = INFINITY; /* H falls with eps: the last upper bound of this pair still holds */
            for (ptrdiff_t e = 0; e < count && !status; ++e) {
                fp_hockey h;
                double shift = direction ? epsilon[e] : 0.0;
                if (ceiling - shift < out[e].log_lower)
                    continue;
                status = FP_NAME(fp_hockey_one)(&r, &pieces, epsilon[e], r.s[0], target, logs,
                                                out[e].log_lower + shift, &set, &h, &cost[1]);
                ceiling = h.log_upper;
                if (direction && epsilon[e] < INFINITY)
                    FP_NAME(fp_damp)(&h, epsilon[e]);
                FP_NAME(fp_raise)(&out[e], &h);
            }
            cost[0] += pieces.evaluations;
            cost[2] += pieces.count;
            fp_pieces_free(&pieces);
            fp_ratio_free(&r);
        }
    }
    cost[0] += set.evaluations;
    free(set.interval);
    return status;
}
