/* Maximum over the atoms of the divergences of fp_lip.h; included once per instruction set. */
/* bounds: proved - rounding of the log-ratio, of masses and of sums, what atoms beyond a window weigh, and outward
 * rounding of brackets: docs/proofs/lip.md, theorems 5.5 to 5.9 */
/* Grouped atoms.  Their density is M' with |M' / M - 1| <= eta within the radius. Hence |log M' - log M| <= 1.01 eta,
 * and the mass of a tail is off by eta times it. Where 1 is taken out of M / N_a, sum w' replaces sum w: these differ by
 * at most eta, and N_a <= e^0.25 M there. Three eta cover each of these; the slope of f is then not known. */
#include "common/fp_lanes_loops.h"
#include "line/fp_scaled_sum_loops.h"

/* bound: none - priors of at most so many atoms are summed over all atoms */
#define FP_LIP_SMALL 64
#define FP_LIP_FARTHEST 1e150 /* in sigmas; atoms farther away are moved to this distance */
/* bound: proved - atoms beyond a window have less than 1e-19 of the density, and for double-doubles less than 1e-39:
 * docs/proofs/lip.md, theorem 5.5 */
#define FP_LIP_REACH 44.0
#define FP_LIP_REACH_EXTENDED 90.0
/* bound: none - more terms are summed in double-doubles only where doubles leave more than FP_LIP_WIDE */
#define FP_LIP_EXTENDED 1024
/* bound: none - the relative width above which double-doubles are used at any cost */
#define FP_LIP_WIDE 1e-9

/* The weights may sum to 1 + m with a small m. H(N_a||M) is then at most H(M||N_a) + 2 m, and above eps = 2 m
 * e^-eps H(N_a||M) at most the larger of H(M||N_a) and e^-eps (H(M||N_a) + 2 m e^eps N_a(E)), with E taken for eps - 2 m:
 * docs/proofs/lip.md, theorem 5.9; both terms are part of the bracket. */
/* bound: none - below this epsilon f is that of M / (1 + m) */
#define FP_LIP_NORMALISED 1e-12
/* bound: proved - 2 |m|, and what eps - |m| leaves of it above the epsilon at which it is added: theorem 5.9 */
#define FP_LIP_MISSED 2.6

/* The log-ratio minus eps at a point, and the window of atoms it was summed over; its terms are e_k e^peak. */
typedef struct {
    double value, slope, error, peak;
    double steep, curvature; /* lower bound of the slope, 0 where none is known; upper bound of f'' */
    double amplify; /* e to the largest error of the logarithm of a term, 1 where that is small */
    int first, count;
    const fp_lip_atoms *atoms; /* what was summed: all atoms or the groups */
} FP_NAME(fp_lip_point);

/* Relative rounding error of a sum of so many terms in eight lanes. */
static inline double FP_NAME(fp_lip_sum_error)(int count) { return 1.2e-16 * (count / 8 + 8); }

/* The first index whose x is at least y. */
static inline int FP_NAME(fp_lip_search)(const double *x, int n, double y)
{
    int low = 0, high = n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (x[middle] < y)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The atoms that make up all but e^-reach of the density of M at a + sigma t, extended to whole lanes. */
static void FP_NAME(fp_lip_window)(const fp_lip *lip, const fp_lip_atoms *side, double a, double t, double reach,
                                   int *first, int *count)
{
    double y = a + t * lip->sigma, rounding = 1e-15 * (fabs(a) + fabs(y)) * lip->inverse, best = -INFINITY;
    *first = 0;
    *count = fp_padded(side->n);
    if (side->n <= FP_LIP_SMALL || !(t < 1e5) || !(rounding < 1e-3))
        return;
    int next = FP_NAME(fp_lip_search)(side->x, side->n, y);
    for (int i = next > 0 ? next - 1 : 0; i <= next && i < side->n; ++i) {
        double z = (side->x[i] - y) * lip->inverse, h = side->log_weight[i] - 0.5 * z * z;
        best = h > best ? h : best;
    }
    double radius = (sqrt(2.0 * (reach - best)) * (1.0 + 1e-9) + 2e-3) * lip->sigma;
    *first = FP_NAME(fp_lip_search)(side->x, side->n, y - radius);
    *count = fp_padded(FP_NAME(fp_lip_search)(side->x, side->n, y + radius) - *first);
}

/* The atoms to sum for M at a + sigma t: the groups where their error is known. */
static const fp_lip_atoms *FP_NAME(fp_lip_atoms_at)(const fp_lip *lip, int which, double a, double t)
{
    const fp_lip_atoms *side = &lip->side[which];
    if (!lip->group[which].n || !(t < 1e5))
        return side;
    double y = a + t * lip->sigma, nearest = INFINITY;
    int next = FP_NAME(fp_lip_search)(side->x, side->n, y);
    for (int i = next > 0 ? next - 1 : 0; i <= next && i < side->n; ++i) {
        double distance = fabs(side->x[i] - y) * lip->inverse;
        nearest = distance < nearest ? distance : nearest;
    }
    return nearest * nearest <= lip->group_square ? &lip->group[which] : side;
}

/* f - eps and its slope at t. Where all exponents are small, the form is free of cancellation. Below
 * FP_LIP_NORMALISED the weights are taken to sum to 1. */
static void FP_NAME(fp_lip_log_ratio)(fp_lip *lip, const fp_lip_atoms *side, double a, double t, double epsilon,
                               FP_NAME(fp_lip_point) *at)
{
    double below = (a - side->x[0]) * lip->inverse, above = (side->x[side->n - 1] - a) * lip->inverse;
    double far = below > above ? below : above, inverse = lip->inverse;
    int first = 0, count = fp_padded(side->n), near = far * (t + far) <= 0.25;
    if (!near)
        FP_NAME(fp_lip_window)(lip, side, a, t, FP_LIP_REACH, &first, &count);
    const double *restrict x = side->x + first, *restrict w = side->weight + first,
                           *restrict lw = side->log_weight + first;
    double *restrict h = lip->h, *restrict e = lip->e, *restrict d = lip->d;
    fp_v8 mass = {0}, slope = {0}, slip = {0}, wide = {0};
    lip->evaluations++;
    fp_stop_requested(&lip->stop, count + 32);
    int grouped = side != &lip->side[0] && side != &lip->side[1];
    double group_error = grouped ? lip->group_error : 0.0;
    at->atoms = side;
    at->first = first;
    at->count = count;
    at->steep = at->curvature = 0.0, at->amplify = 1.0;
    for (int k = 0; k < count; ++k) {
        double away = (x[k] - a) * inverse;
        away = away > FP_LIP_FARTHEST ? FP_LIP_FARTHEST : away;
        d[k] = away = away < -FP_LIP_FARTHEST ? -FP_LIP_FARTHEST : away;
        h[k] = away * (t - 0.5 * away);
    }
    if (near) {
        for (int k = 0; k < count; ++k) {
            h[k] = w[k] * fp_expm1(h[k]);
            e[k] = w[k] + h[k];
        }
        for (int k = 0; k < count; k += FP_LANES) {
            fp_v8 dk = FP_AT(d, k), size = FP_NAME(fp_v8_abs)(dk);
            mass += FP_AT(h, k);
            slope += FP_AT(e, k) * dk;
            slip += FP_AT(w, k) * size * (t + size);
            wide += FP_AT(w, k) * size;
        }
        double excess = epsilon < FP_LIP_NORMALISED ? 0.0 : lip->excess;
        double rise = FP_NAME(fp_v8_sum)(mass) + excess, log_ratio = fp_log1p(rise);
        at->peak = 0.0;
        at->value = log_ratio - epsilon;
        at->slope = FP_NAME(fp_v8_sum)(slope) / (1.0 + rise);
        at->steep = grouped ? 0.0 : at->slope - 8.0 * (FP_ROUND + FP_NAME(fp_lip_sum_error)(count)) * FP_NAME(fp_v8_sum)(wide);
        at->curvature = far * far * (1.0 + 1e-9);
        at->error = (2.0 * FP_ROUND + 2.0 * FP_NAME(fp_lip_sum_error)(count)) * FP_NAME(fp_v8_sum)(slip)
                    + 2.3e-16 * (2.0 * fabs(excess) + epsilon + 3.0 * fabs(log_ratio)) + 1e-300 * (1.0 + t) + group_error;
        return;
    }
    for (int k = 0; k < count; ++k)
        h[k] += lw[k];
    double peak = FP_NAME(fp_max_of)(h, count);
    for (int k = 0; k < count; ++k)
        e[k] = fp_exp(h[k] - peak);
    for (int k = 0; k < count; k += FP_LANES) {
        fp_v8 ek = FP_AT(e, k), dk = FP_AT(d, k), size = FP_NAME(fp_v8_abs)(dk);
        mass += ek;
        slope += ek * dk;
        slip += ek * (FP_NAME(fp_v8_abs)(FP_AT(lw, k)) + size * (t + size));
    }
    double total = FP_NAME(fp_v8_sum)(mass), slips = FP_NAME(fp_v8_sum)(slip) / total;
    double most = fabs(d[0]) > fabs(d[count - 1]) ? fabs(d[0]) : fabs(d[count - 1]), some = 12.0 * t * t + 8.0 * fabs(peak);
    double largest = 1.2e4 + (most * (t + most) < some ? most * (t + most) : some);
    if (largest > 1e13) { /* errors of terms are then bounded by the largest, not by their mean */
        slips = largest;
        at->amplify = fp_exp(largest < 3e17 ? 2.0 * FP_ROUND * largest : 600.0);
    }
    at->peak = peak;
    at->value = peak - epsilon + fp_log(total);
    at->slope = FP_NAME(fp_v8_sum)(slope) / total;
    at->error = FP_ROUND * (4.0 + fabs(peak) + slips) + FP_NAME(fp_lip_sum_error)(count) + 2.3e-16 * epsilon
                + 1e-300 * (1.0 + t) + group_error;
}

/* An upper bound of the crossing t_R of atom k, since f(t) >= log w_i + d_i t - d_i^2 / 2 for every i. */
static double FP_NAME(fp_lip_crossing_bound)(const fp_lip *lip, const fp_lip_atoms *side, int k, double epsilon)
{
    double a = side->x[k], least = INFINITY, step = sqrt(2.0 * (epsilon + fp_log((double)lip->n))) * lip->sigma;
    int many = lip->n - k > FP_LIP_SMALL, place = many ? FP_NAME(fp_lip_search)(side->x, lip->n, a + step) : 0;
    int some[4] = {k + 1, place - 1, place, lip->n - 1}, count = many ? 4 : lip->n - 1 - k;
    for (int j = 0; j < count; ++j) {
        int i = many ? some[j] : k + 1 + j;
        if (i <= k || i >= lip->n)
            continue;
        double d = (side->x[i] - a) * lip->inverse;
        d = d > FP_LIP_FARTHEST ? FP_LIP_FARTHEST : d;
        double t = (epsilon - side->log_weight[i]) / d + 0.5 * d;
        least = t < least ? t : least;
    }
    return least;
}

/* Upper bound of Right(a) of atom k where its crossing is only known to be at least `least`: at most M(t > least),
 * that is exp(-(least - D)^2 / 2) with D = d_n; since f(t) <= D t, also with eps / D in place of `least`; and by
 * convexity of H at most sum_i w_i min(1, 0.4 d_i) over d_i > 0. */
static void FP_NAME(fp_lip_unresolved)(fp_lip *lip, const fp_lip_atoms *side, int k, double epsilon, double least,
                                       fp_lip_tail *tail)
{
    double a = side->x[k], far = (side->x[lip->n - 1] - a) * lip->inverse, sum = 0.0;
    double line = (epsilon * (1.0 - 1e-15) - fabs(lip->excess)) / far;
    double past = (line > least ? line : least) * (1.0 - 1e-15) - far * (1.0 + 1e-15);
    for (int i = k + 1; i < lip->n; ++i) {
        double d = 0.4 * (side->x[i] - a) * lip->inverse;
        sum += side->weight[i] * (d < 1.0 ? d : 1.0);
    }
    double scale = past > 2.0 ? -0.5 * past * past * (1.0 - 1e-15) : 0.0;
    sum = (sum + (epsilon < FP_LIP_NORMALISED ? fabs(lip->excess) : 0.0)) * (1.0 + 3e-16 * (lip->n + 8.0)) + 1e-322;
    tail->scale_above = fp_dd_set(scale > -1e300 ? scale : -1e300);
    tail->upper = tail->loss = past > 2.0 ? 1.0 + 1e-9 : sum;
    lip->undecided++;
}

/* x e^scale */
static inline double FP_NAME(fp_lip_unscaled)(fp_dd scale, double x)
{
    return scale.hi == 0.0 ? x : scale.hi < -1400.0 ? 0.0 : fp_exp_times(scale.hi, scale.lo, x);
}

/* Right(a) of atom k from the terms at t. It lacks at most e^log_lost times the density e^(eps - t^2/2) / sqrt(2
 * pi). Where no atom lies beyond t, all numbers are in units of that density. */
static void FP_NAME(fp_lip_mass)(fp_lip *lip, const fp_lip_atoms *side, int k, double t, double epsilon,
                                 double log_lost, double theta, const FP_NAME(fp_lip_point) * at, fp_lip_tail *tail)
{
    double low, square = fp_half_square(t, &low), mills = fp_mills(t), error,
                sum_error = FP_NAME(fp_lip_sum_error)(at->count);
    double far = (side->x[lip->n - 1] - side->x[k]) * lip->inverse;
    fp_dd scale = fp_two_sum(epsilon, -square);
    scale = fp_two_sum(scale.hi, scale.lo - low);
    const fp_lip_atoms *atoms = at->atoms;
    int count = at->count, end = at->first + count < atoms->n ? at->first + count : atoms->n;
    const double *restrict w = atoms->weight + at->first, *restrict lw = atoms->log_weight + at->first;
    double group_error = atoms == side ? 0.0 : lip->group_error;
    const double *restrict e = lip->e, *restrict d = lip->d;
    double *restrict part = lip->h;
    fp_v8 sum = {0}, slip = {0};
    fp_stop_requested(&lip->stop, 4 * count);
    if (far <= t + 1.0) {
        for (int i = 0; i < count; ++i)
            part[i] = e[i] * fp_mills(t - d[i]);
        for (int i = 0; i < count; i += FP_LANES) {
            fp_v8 di = FP_AT(d, i), size = FP_NAME(fp_v8_abs)(di), pi = FP_AT(part, i);
            sum += pi;
            slip += pi * (FP_NAME(fp_v8_abs)(FP_AT(lw, i)) + size * (t + size) + 3.0 * size + t);
        }
        double unit = fp_exp(at->peak - epsilon), p = unit * FP_NAME(fp_v8_sum)(sum);
        theta = epsilon * (p - mills) <= theta * mills ? theta : 0.0;
        error = FP_ROUND * (unit * FP_NAME(fp_v8_sum)(slip) + (12.0 + fabs(at->peak) + epsilon) * p + 2.0 * mills)
                + (sum_error + group_error) * p + theta * mills + 1e-300;
        error *= at->amplify;
        tail->scale = scale;
        tail->value = (p - mills) * FP_INV_SQRT_2PI;
        tail->loss = fp_exp(log_lost) * FP_INV_SQRT_2PI;
        error *= FP_INV_SQRT_2PI;
    } else {
        for (int i = 0; i < count; ++i)
            part[i] = w[i] * fp_ndtr(d[i] - t);
        for (int i = 0; i < count; i += FP_LANES) {
            fp_v8 di = FP_AT(d, i);
            sum += FP_AT(part, i);
            slip += FP_AT(e, i) * (FP_NAME(fp_v8_abs)(di) + FP_NAME(fp_v8_abs)(t - di));
        }
        double p = FP_NAME(fp_v8_sum)(sum) + atoms->beyond[end].hi,
               q = FP_NAME(fp_lip_unscaled)(scale, mills * FP_INV_SQRT_2PI);
        theta = epsilon * (p - q) <= theta * q ? theta : 0.0;
        double density = fp_exp(at->peak - square) * (0.5 * FP_INV_SQRT_2PI);
        double off = at->amplify > 1.0 ? 0.0 : FP_ROUND * density * FP_NAME(fp_v8_sum)(slip);
        for (int i = 0; i < count && at->amplify > 1.0; ++i) { /* arguments may be off by more than a sigma */
            double z = fabs(d[i] - t), eta = FP_ROUND * (fabs(d[i]) + z), near = z > eta ? z - eta : 0.0;
            double moved = eta * fp_exp(-0.5 * near * near);
            off += w[i] * (moved < 1.0 ? moved : 1.0);
        }
        error = (2.0 * FP_ROUND + sum_error + group_error) * p + off
                + (4.0 * FP_ROUND + theta) * q + 1e-300;
        tail->loss = fp_exp(log_lost + scale.hi + FP_ROUND * fabs(scale.hi));
        tail->scale = fp_dd_set(0.0);
        tail->value = p - q;
    }
    tail->lower = tail->value - error > 0.0 ? tail->value - error : 0.0;
    tail->upper = tail->value + error + tail->loss;
    tail->theta = theta;
    tail->scale_above = tail->scale;
    tail->value = tail->value > 0.0 ? tail->value : 0.0;
}

/* Right(a) of atom k of one side from a crossing near `tail->t`, which is known if `again`. If the crossing cannot be
 * enclosed, the result is a bound. Returns whether it was enclosed, or all atoms were summed; if `whole`, they are. */
static int FP_NAME(fp_lip_tail_solve)(fp_lip *lip, int which, int k, double epsilon, int again, int whole,
                                      fp_lip_tail *tail)
{
    const fp_lip_atoms *side = &lip->side[which];
    FP_NAME(fp_lip_point) at = {0};
    double a = side->x[k], *centre = &lip->centre[which ? lip->n - 1 - k : k], above = INFINITY;
    if (isnan(*centre)) {
        FP_NAME(fp_lip_log_ratio)(lip, FP_NAME(fp_lip_atoms_at)(lip, which, a, 0.0), a, 0.0, 0.0, &at);
        *centre = at.value + at.error;
    }
    double t = again ? tail->t + (epsilon - tail->epsilon) / tail->slope : NAN, behind = 0.0;
    if (!(t >= 0.0 && t < INFINITY))
        t = above = FP_NAME(fp_lip_crossing_bound)(lip, side, k, epsilon);
    for (int i = 0; i < 100 && t < FP_LIP_FARTHEST; ++i) {
        FP_NAME(fp_lip_log_ratio)(lip, whole ? side : FP_NAME(fp_lip_atoms_at)(lip, which, a, t), a, t, epsilon, &at);
        double close = 1e-10 * at.slope / (1.0 + t);
        if (lip->stop.status || fabs(at.value) <= 2.0 * at.error || (at.slope > 0.0 && fabs(at.value) <= close))
            break;
        behind = at.value < 0.0 ? t : behind;
        double next = t - at.value / at.slope;
        if (at.value < 0.0
            && !(at.slope > 0.0
                 && next < 1.5 * t + 1.0)) { /* far out, the lower bounds by single atoms are more reliable */
            above = above < INFINITY ? above : FP_NAME(fp_lip_crossing_bound)(lip, side, k, epsilon);
            next = at.slope > 0.0 && next < above ? next : above > t ? above : 2.0 * t + 1.0;
        }
        if (!(next > behind) && next != t)
            next = 0.5 * (behind + t);
        if (next == t)
            break;
        t = next;
    }
    double error = fabs(at.value) + at.error, far = (side->x[lip->n - 1] - a) * lip->inverse;
    double rise = epsilon * (1.0 - 4.0 * FP_U) - error - *centre - (epsilon < FP_LIP_NORMALISED ? 0.0 : fabs(lip->excess)),
           width = rise > 0.0 ? error * t / rise : INFINITY;
    if (at.steep > 0.0 && 4.0 * error * at.curvature <= at.steep * at.steep && 2.0 * error / at.steep < width)
        width = 2.0 * error / at.steep;
    width *= 1.0 + 1e-9;
    double log_lost = fp_log(width) + (error < 30.0 ? fp_log(fp_expm1(error)) : error) + t * width + 1e-9;
    /* m moves the crossing by at most `shift`, the length of a chord, and changes the mass of N_a with it */
    double miss = FP_LIP_MISSED * fabs(lip->excess), room = epsilon - miss - (*centre > 0.0 ? *centre : 0.0);
    double shift = miss < epsilon ? miss * t / (room > 0.0 ? room : 1e-300) : 0.0, growth = shift * (t + 1.0);
    int known = t < FP_LIP_FARTHEST && width + shift < t;
    tail->t = t;
    tail->slope = at.slope;
    tail->epsilon = epsilon;
    tail->value = tail->lower = 0.0;
    tail->resolved = known && growth <= 1.0 && log_lost < (far > t + 1.0 ? 0.5 * t * t - epsilon : 40.0);
    if (t < FP_LIP_FARTHEST)
        FP_NAME(fp_lip_mass)(lip, side, k, t, epsilon, tail->resolved ? log_lost : INFINITY,
                             tail->resolved && miss < epsilon && miss > 0.0 ? miss * fp_exp(growth + (t + 1.0) * width) : 0.0, &at, tail);
    if (!tail->resolved && at.atoms != side && !lip->stop.status)
        return 0;
    if (!tail->resolved)
        FP_NAME(fp_lip_unresolved)(lip, side, k, epsilon, known ? t - width - shift : 0.0, tail);
    return 1;
}

/* Right(a) of atom k of one side, for the epsilon with index visit - 1. */
static const fp_lip_tail *FP_NAME(fp_lip_tail_at)(fp_lip *lip, int which, int k, double epsilon, ptrdiff_t visit)
{
    fp_lip_tail *tail = &lip->tail[which][k];
    if (tail->visit == visit)
        return tail;
    int again = tail->visit > 0;
    tail->visit = visit;
    if (k == lip->n - 1) { /* without an atom on this side there is no tail */
        *tail = (fp_lip_tail){.visit = visit};
        return tail;
    }
    if (!FP_NAME(fp_lip_tail_solve)(lip, which, k, epsilon, again, 0, tail))
        FP_NAME(fp_lip_tail_solve)(lip, which, k, epsilon, 1, 1, tail);
    return tail;
}

/* log(l e^a + r e^b), where the sum itself is `plain`. */
static double FP_NAME(fp_lip_log)(double l, fp_dd a, double r, fp_dd b, double plain)
{
    if (plain > 1e-280)
        return fp_log(plain);
    return fp_logaddexp(a.hi + fp_log(l > 0.0 ? l : 0.0), b.hi + fp_log(r > 0.0 ? r : 0.0));
}

/* Upper bound of Left + Right of two tails. */
static fp_lip_bound FP_NAME(fp_lip_upper_bound)(const fp_lip_tail *left, const fp_lip_tail *right)
{
    double plain = FP_NAME(fp_lip_unscaled)(left->scale_above, left->upper)
                   + FP_NAME(fp_lip_unscaled)(right->scale_above, right->upper);
    plain = plain * (1.0 + 2e-15) + 1e-322;
    double log_bound = FP_NAME(fp_lip_log)(left->upper, left->scale_above, right->upper, right->scale_above, plain);
    return (fp_lip_bound){plain, log_bound + 1e-15 * fabs(log_bound)};
}

/* Upper bound of 1 minus a weight. */
static fp_lip_bound FP_NAME(fp_lip_weight_bound)(const fp_lip *lip, double weight)
{
    double miss = fabs(lip->excess), cap = (1.0 - weight + miss) * (1.0 + 1e-15) + 1e-322;
    double log_cap = weight < 0.5 ? fp_log1p(miss - weight) : fp_log(cap);
    return (fp_lip_bound){cap, log_cap + 1e-15 * (fabs(log_cap) + miss)};
}

/* H(M||N_a) in doubles. */
static fp_bracket FP_NAME(fp_lip_double)(const fp_lip_tail *left, const fp_lip_tail *right)
{
    fp_bracket out;
    fp_lip_bound most = FP_NAME(fp_lip_upper_bound)(left, right);
    double lower =
        FP_NAME(fp_lip_unscaled)(left->scale, left->lower) + FP_NAME(fp_lip_unscaled)(right->scale, right->lower);
    out.value =
        FP_NAME(fp_lip_unscaled)(left->scale, left->value) + FP_NAME(fp_lip_unscaled)(right->scale, right->value);
    out.lower = lower > 1e-300 ? lower * (1.0 - 2e-15) : 0.0;
    out.upper = most.plain;
    out.log_value = FP_NAME(fp_lip_log)(left->value, left->scale, right->value, right->scale, out.value);
    out.log_lower = FP_NAME(fp_lip_log)(left->lower, left->scale, right->lower, right->scale, out.lower);
    out.log_upper = most.log;
    if (out.log_lower > -INFINITY)
        out.log_lower -= 1e-15 * fabs(out.log_lower);
    return out;
}

/* H(M||N_a) for atom i, whose crossings are known, summed in double-doubles. */
static fp_bracket FP_NAME(fp_lip_double_double)(fp_lip *lip, int i, double epsilon)
{
    FP_NAME(fp_scaled_sum) s = {{0.0, 0.0}, 0.0, 0, 1};
    double log_loss[2] = {-INFINITY, -INFINITY};
    int64_t factor_exponent, exponent;
    fp_dd factor = fp_dd_exp_scaled(fp_dd_set(epsilon), &factor_exponent);
    fp_bracket out;
    for (int which = 0; which < 2; ++which) {
        const fp_lip_atoms *side = &lip->side[which];
        int k = which ? lip->n - 1 - i : i, first, count;
        const fp_lip_tail *tail = &lip->tail[which][k];
        double a = side->x[k], t = tail->t;
        log_loss[which] = tail->loss > 0.0 ? tail->scale_above.hi + fp_log(tail->loss) : -INFINITY;
        if (k == lip->n - 1 || !tail->resolved)
            continue;
        FP_NAME(fp_lip_window)(lip, side, a, t, FP_LIP_REACH_EXTENDED, &first, &count);
        int end = first + count < lip->n ? first + count : lip->n;
        for (int j = first; j < end && !lip->stop.status; ++j) {
            double w = side->weight[j];
            fp_stop_requested(&lip->stop, 128);
            fp_dd d = fp_dd_div_d(fp_two_sum(side->x[j], -a), lip->sigma), z = fp_dd_add_d(fp_dd_neg(d), t);
            if (z.hi < -0x1p25 || d.hi > 0x1p40) {
                FP_NAME(fp_scaled_sum_add)(&s, fp_dd_set(w), 0.0, 0);
                continue;
            }
            if (!(z.hi < 0x1p25)) { /* below e^-(2^49) */
                FP_NAME(fp_scaled_sum_add)(&s, fp_dd_set(0.0), w,
                                           z.hi < 0x1p29 ? -(int64_t)(0.72 * z.hi * z.hi) : -((int64_t)1 << 57));
                continue;
            }
            fp_dd mass = fp_dd_ndtr_tail_scaled(z, &exponent);
            double shift = 0x1p-102 * (fabs(d.hi) + fabs(z.hi));
            double slip = 0.6 * shift * fp_exp(-0.5 * z.hi * z.hi - (double)exponent * FP_LN2);
            FP_NAME(fp_scaled_sum_add)(&s, fp_dd_mul_d(mass, w), (0x1p-98 * mass.hi + slip) * w, exponent);
        }
        FP_NAME(fp_scaled_sum_add)(&s, side->beyond[end], 0x1p-103 * lip->n * side->beyond[end].hi, 0);
        fp_dd mass = fp_dd_mul(factor, fp_dd_ndtr_tail_scaled(fp_dd_set(t), &exponent));
        FP_NAME(fp_scaled_sum_add)(&s, fp_dd_neg(mass), (0x1p-95 + tail->theta) * mass.hi, exponent + factor_exponent);
    }
    double most = log_loss[0] > log_loss[1] ? log_loss[0] : log_loss[1];
    FP_NAME(fp_scaled_sum_bracket)(&s, most > -INFINITY, most, fp_exp(log_loss[0] - most) + fp_exp(log_loss[1] - most),
                                   &out);
    FP_NAME(fp_bracket_round_outward)(&out);
    lip->extended++;
    return out;
}

/* H(M||N_a) for atom i, whose crossings are enclosed, from its complement
 *     sum w_j P_j(t_L < t < t_R) + e^eps (Phi(t_L) + Phi(-t_R)) - (sum w_j - 1):
 * where H is near 1, these positive terms keep the digits of log H.  Points of the interval farther from all atoms than
 * the groups serve have at most 4e-22 of 1 - H, which is at least the least weight. */
static fp_bracket FP_NAME(fp_lip_complement)(fp_lip *lip, int i, double epsilon)
{
    const fp_lip_atoms *atoms = lip->group[0].n ? &lip->group[0] : &lip->side[0];
    double a = lip->side[0].x[i], end[2] = {INFINITY, INFINITY}, slip = 0.0, q = 0.0, q_error = 0.0,
           loss = 0.0;
    fp_dd total = fp_dd_set(0.0);
    for (int which = 0; which < 2; ++which) {
        int k = which ? lip->n - 1 - i : i;
        const fp_lip_tail *tail = &lip->tail[which][k];
        if (k == lip->n - 1)
            continue;
        double low, t = tail->t, square = fp_half_square(t, &low);
        fp_dd scale = fp_two_sum(epsilon, -square);
        scale = fp_two_sum(scale.hi, scale.lo - low);
        double mass = FP_NAME(fp_lip_unscaled)(scale, fp_mills(t) * FP_INV_SQRT_2PI);
        end[which] = t;
        q += mass;
        q_error += (4.0 * FP_ROUND + tail->theta) * mass;
        loss += FP_NAME(fp_lip_unscaled)(tail->scale_above, tail->loss);
    }
    for (int j = 0; j < atoms->n && !lip->stop.status; ++j) {
        double d = (atoms->x[j] - a) * lip->inverse, high = end[0] - d, below = -end[1] - d, w = atoms->weight[j];
        int mirrored = below > 0.0;
        double most = fp_ndtr(mirrored ? -below : high), least = fp_ndtr(mirrored ? -high : below);
        double density = high < INFINITY ? fp_exp(-0.5 * high * high) * (2.0 * fabs(d) + end[0]) : 0.0;
        density += below > -INFINITY ? fp_exp(-0.5 * below * below) * (2.0 * fabs(d) + end[1]) : 0.0;
        total = fp_dd_add_d(total, w * (most - least));
        slip += w * (4.0 * (most + least) + density);
        fp_stop_requested(&lip->stop, 16);
    }
    double sum = total.hi, c = sum + q - lip->excess;
    double error = FP_ROUND * (slip + 4.0 * (sum + q + fabs(lip->excess))) + q_error
                   + (lip->group[0].n ? lip->group_error : 0.0) * sum + 1e-20 * (sum + q) + 1e-300;
    double least = c - error - loss, most = c + error;
    fp_bracket out = {1.0 - c, 0.0, 1.0, fp_log1p(-c), -INFINITY, INFINITY};
    if (least > 0.0 && most < 0.7) {
        out.lower = nextafter(1.0 - most, 0.0);
        out.upper = nextafter(1.0 - least, INFINITY);
        out.log_lower = fp_log1p(-most) * (1.0 + 1e-15);
        out.log_upper = fp_log1p(-least) * (1.0 - 1e-15);
    }
    return out;
}

/* The intersection of two valid brackets, with the value of the narrower one. */
static void FP_NAME(fp_bracket_intersect)(fp_bracket *one, const fp_bracket *other)
{
    int narrower = other->log_upper - other->log_lower < one->log_upper - one->log_lower;
    one->value = narrower ? other->value : one->value;
    one->log_value = narrower ? other->log_value : one->log_value;
    one->lower = other->lower > one->lower ? other->lower : one->lower;
    one->upper = other->upper < one->upper ? other->upper : one->upper;
    one->log_lower = other->log_lower > one->log_lower ? other->log_lower : one->log_lower;
    one->log_upper = other->log_upper < one->log_upper ? other->log_upper : one->log_upper;
}

/* The width of a bracket relative to the requested width; at most 1 is narrow enough. */
static double FP_NAME(fp_lip_width)(const fp_lip *lip, const fp_bracket *h)
{
    double size = fabs(h->log_upper);
    if (h->value > 1e-280) {
        double plain = (h->upper - h->lower) / (lip->target * h->value),
               log_width = (h->log_upper - h->log_lower) / (lip->target * size);
        return lip->logs && h->value > 0.3 && size < 1.0 && !(log_width <= plain) ? log_width : plain;
    }
    return (h->log_upper - h->log_lower) / (lip->target * (size > 700.0 ? size / 700.0 : 1.0));
}

/* Whether a bound is below the best value, within a fifth of the requested width; if so it raises the ceiling,
 * which covers what was skipped. */
static int FP_NAME(fp_lip_is_dominated)(const fp_lip *lip, fp_lip_bound bound, const fp_bracket *best,
                                        fp_lip_bound *ceiling)
{
    double size = fabs(best->log_lower);
    double room = 0.2 * lip->target * (size < 1.0 ? (lip->logs ? size : 1.0) : size > 700.0 ? size / 700.0 : 1.0);
    if (!(bound.log <= best->log_lower + (size < INFINITY ? room : 0.0)))
        return 0;
    ceiling->plain = bound.plain > ceiling->plain ? bound.plain : ceiling->plain;
    ceiling->log = bound.log > ceiling->log ? bound.log : ceiling->log;
    return 1;
}

static void FP_NAME(fp_bracket_maximum)(fp_bracket *best, const fp_bracket *other)
{
    best->value = other->value > best->value ? other->value : best->value;
    best->lower = other->lower > best->lower ? other->lower : best->lower;
    best->upper = other->upper > best->upper ? other->upper : best->upper;
    best->log_value = other->log_value > best->log_value ? other->log_value : best->log_value;
    best->log_lower = other->log_lower > best->log_lower ? other->log_lower : best->log_lower;
    best->log_upper = other->log_upper > best->log_upper ? other->log_upper : best->log_upper;
}

/* Evaluate one atom; returns whether it is the best so far. */
static int FP_NAME(fp_lip_visit_atom)(fp_lip *lip, int i, double epsilon, ptrdiff_t visit, fp_bracket *best,
                                      fp_lip_bound *ceiling)
{
    fp_lip_bound cap = FP_NAME(fp_lip_weight_bound)(lip, lip->side[0].weight[i]);
    if (FP_NAME(fp_lip_is_dominated)(lip, cap, best, ceiling))
        return 0;
    const fp_lip_tail *right = FP_NAME(fp_lip_tail_at)(lip, 0, i, epsilon, visit);
    const fp_lip_tail *left = FP_NAME(fp_lip_tail_at)(lip, 1, lip->n - 1 - i, epsilon, visit);
    if (FP_NAME(fp_lip_is_dominated)(lip, FP_NAME(fp_lip_upper_bound)(left, right), best, ceiling))
        return 0;
    fp_bracket h = FP_NAME(fp_lip_double)(left, right);
    double width = FP_NAME(fp_lip_width)(lip, &h), wide = FP_LIP_WIDE / lip->target;
    int first[2] = {0, 0}, count[2] = {0, 0};
    int suited = !(left->resolved && left->t > 0x1p25) && !(right->resolved && right->t > 0x1p25);
    if (width > 1.0 && lip->logs && h.value > 0.5 && (right->resolved || i == lip->n - 1) && (left->resolved || i == 0)) {
        fp_bracket better = FP_NAME(fp_lip_complement)(lip, i, epsilon);
        FP_NAME(fp_bracket_intersect)(&h, &better);
        width = FP_NAME(fp_lip_width)(lip, &h);
    }
    if (width > 1.0 && suited && epsilon <= 1e12) {
        for (int s = 0; s < 2; ++s)
            FP_NAME(fp_lip_window)(lip, &lip->side[s], lip->side[s].x[s ? lip->n - 1 - i : i], s ? left->t : right->t,
                                   FP_LIP_REACH_EXTENDED, first + s, count + s);
        if (count[0] + count[1] <= 2 * FP_LIP_EXTENDED || width > wide) {
            fp_bracket better = FP_NAME(fp_lip_double_double)(lip, i, epsilon);
            FP_NAME(fp_bracket_intersect)(&h, &better);
        }
    }
    h.upper = cap.plain < h.upper ? cap.plain : h.upper;
    h.log_upper = cap.log < h.log_upper ? cap.log : h.log_upper;
    int better = h.log_value > best->log_value;
    FP_NAME(fp_bracket_maximum)(best, &h);
    return better;
}

/* delta(eps); `winner` is the atom that was best at the previous epsilon. */
static fp_bracket FP_NAME(fp_lip_delta)(fp_lip *lip, double epsilon, ptrdiff_t visit, int *winner)
{
    fp_bracket best = {0.0, 0.0, 0.0, -INFINITY, -INFINITY, -INFINITY};
    fp_lip_bound ceiling = {0.0, -INFINITY};
    int n = lip->n, depth = 0, likely[3] = {*winner, 0, n - 1};
    if (epsilon == INFINITY || n == 1)
        return best;
    for (int j = 0; j < 3; ++j)
        if ((j == 0 || likely[j] != likely[0])
            && FP_NAME(fp_lip_visit_atom)(lip, likely[j], epsilon, visit, &best, &ceiling))
            *winner = likely[j];
    lip->stack[depth++] = (fp_lip_run){0, n - 1, 0};
    while (depth > 0 && !lip->stop.status) {
        fp_lip_run run = lip->stack[--depth];
        int done = run.first == run.last && (run.first == likely[0] || run.first == 0 || run.first == n - 1);
        if (done
            || FP_NAME(fp_lip_is_dominated)(lip, FP_NAME(fp_lip_weight_bound)(lip, lip->least_weights[run.node]), &best,
                                            &ceiling))
            continue;
        if (run.first == run.last) {
            if (FP_NAME(fp_lip_visit_atom)(lip, run.first, epsilon, visit, &best, &ceiling))
                *winner = run.first;
            continue;
        }
        /* a bound found at an earlier, smaller epsilon still holds */
        const fp_lip_tail *left = &lip->tail[1][n - 1 - run.last], *right = &lip->tail[0][run.first];
        if (left->visit && right->visit
            && FP_NAME(fp_lip_is_dominated)(lip, FP_NAME(fp_lip_upper_bound)(left, right), &best, &ceiling))
            continue;
        FP_NAME(fp_lip_tail_at)(lip, 1, n - 1 - run.last, epsilon, visit);
        FP_NAME(fp_lip_tail_at)(lip, 0, run.first, epsilon, visit);
        if (FP_NAME(fp_lip_is_dominated)(lip, FP_NAME(fp_lip_upper_bound)(left, right), &best, &ceiling))
            continue;
        int middle = run.first + (run.last - run.first) / 2;
        lip->stack[depth++] = (fp_lip_run){run.first, middle, run.node + 1};
        lip->stack[depth++] = (fp_lip_run){middle + 1, run.last, run.node + 2 * (middle - run.first + 1)};
    }
    best.upper = ceiling.plain > best.upper ? ceiling.plain : best.upper;
    best.log_upper = ceiling.log > best.log_upper ? ceiling.log : best.log_upper;
    double miss = FP_LIP_MISSED * fabs(lip->excess);
    if ((epsilon <= 2.0 * miss || epsilon < FP_LIP_NORMALISED) && miss > 0.0) {
        best.lower = best.lower > miss ? (best.lower - miss) * (1.0 - 1e-15) : 0.0;
        best.upper = (best.upper + miss) * (1.0 + 1e-15);
        best.log_lower = best.lower > 0.0 ? fp_log(best.lower) : -INFINITY;
        best.log_upper = fp_log(best.upper);
    }
    if (best.upper < 1e-270) { /* near the smallest doubles the logarithms may be more accurate */
        double lower = fp_exp(best.log_lower) * (1.0 - 1e-12), upper = fp_exp(best.log_upper) * (1.0 + 1e-12);
        upper = best.log_upper > -INFINITY ? nextafter(upper, INFINITY) : 0.0;
        best.lower = lower > 1e-300 && lower > best.lower ? lower : best.lower;
        best.upper = upper < best.upper ? upper : best.upper;
        best.value = best.value > 1e-300 ? best.value : fp_exp(best.log_value);
    }
    FP_NAME(fp_bracket_round_outward)(&best);
    return best;
}

/* The curve for increasing eps; returns -1 when memory is short, FP_INTERRUPTED when the caller stopped it. cost:
 * evaluations of the log-ratio, sums in double-doubles, tails, tails whose crossing could not be enclosed. */
static int FP_NAME(fp_lip_curve)(int n, const double *w, const double *x, double sigma,
                               const fp_lip_groups *groups, const double *epsilon, ptrdiff_t count, double target,
                               int logs, fp_interrupted interrupted, fp_bracket *out, long *cost)
{
    fp_lip lip;
    void *block = calloc(1, fp_lip_bytes(n, groups));
    int winner = 0, status = block ? fp_lip_build(&lip, n, w, x, sigma, groups, block) : -1;
    cost[0] = cost[1] = cost[2] = cost[3] = 0;
    if (status < 0)
        return status;
    lip.target = target;
    lip.logs = logs;
    lip.stop = fp_stop_token_make(interrupted, INFINITY);
    for (int i = 1; i < n; ++i)
        winner = w[i] < w[winner] ? i : winner;
    double far = (lip.side[0].x[n - 1] - lip.side[0].x[0]) * lip.inverse;
    for (ptrdiff_t e = 0; e < count && !lip.stop.status; ++e) {
        if ((status || (far > FP_LIP_FARTHEST && epsilon[e] > 1e200)) && epsilon[e] < INFINITY && n > 1) {
            fp_lip_bound cap = FP_NAME(fp_lip_weight_bound)(&lip, lip.least_weights[0]);
            out[e] = (fp_bracket){0.5 * cap.plain, 0.0, cap.plain, cap.log - FP_LN2, -INFINITY, cap.log};
            lip.undecided++;
        } else {
            out[e] = FP_NAME(fp_lip_delta)(&lip, epsilon[e], e + 1, &winner);
        }
    }
    for (int s = 0; s < 2; ++s)
        for (int k = 0; k < n; ++k)
            cost[2] += lip.tail[s][k].visit > 0;
    cost[0] = lip.evaluations;
    cost[1] = lip.extended;
    cost[3] = lip.undecided;
    status = lip.stop.status ? FP_INTERRUPTED : 0;
    free(block);
    return status;
}
