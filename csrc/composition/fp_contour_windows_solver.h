/* Windows that cut a pair by its outcome: bounds of the parts on cells.
 *
 * Notation of fp_contour_solver.h and fp_contour_shells_solver.h. For a pair with one Gaussian Q = N(0, 1) and all
 * means of P in [0, D] (mirrored where they are in [-D, 0]) the loss l(x) increases, and chi_i is the product of
 * Phi((b_j - x) / v_j), j <= i (docs/proofs/contour.md, theorem 2.12), so that H is p chi_(i-1) Phi((x - b_i) / v_i).
 * As Phi is an integral of Gaussian densities, |Phi(u + i e)| <= e^(e^2/2) Phi(u), and, as Phi' = phi, |Phi(u + i e)|
 * <= Phi(u) + e e^(e^2/2) phi(u), which for u >= d >= 0 is at most (1 + 0.8 e e^((e^2 - d^2)/2)) Phi(u). With r(x, y)
 * the product of the lesser of these factors, theta = y D < pi, z = t + i w, f_t = p chi e^(t l),
 *     |(p chi e^(z l))(x + i y)| <= e^(y^2/2) r(x, y) f_t(x) e^(-w phi(x)),
 * phi(x) = Im l(x + i y) = arg of a sum of weights >= 0 with phases in [0, theta]: phi >= 0, and phi increases with x,
 * as Im of (log sum u_j)' is the sum over pairs of |u_i| |u_j| (c_i - c_j) sin((c_i - c_j) y) / |sum u_j|^2.
 *
 * Cells. Integrals of f_t are bounded on cells between equidistant points, on each of which log f_t has a slope of at
 * most
 *     s = max(|x|, (1 + t) l'(x)), or their sum where x < 0, plus for each window the mean of a Gaussian beyond u,
 * with l' = mean of P's means under their weights at x, which increases; that mean is at most u + 0.8 for u >= 0 and
 * 0.8 e^(-u^2/2) for u < 0, over v. So f_t is at most e^(s width / 2) times the larger of its values at the ends.
 *
 * Ends. Left of the first point log f_t falls to the left at the rate -x + max(0, b - x)/v^2 at least, with the window
 * that cuts below, which is at least 1. Right of the last one cells of growing sizes follow. On [a, b], with the middle
 * m, -x^2/2 <= m^2/2 - m x; log Phi is concave with a slope of at least max(0, -u), so that the windows lie below a
 * straight line through their value at a; and l is convex: the sum of the three is at most the larger of its values at
 * a and b. phi is at most that at b. The cells end where log f_t falls at the rate x - (1 + t) D + sum of max(0, x -
 * b_j)/v_j^2 >= 1, which grows.
 */
/* bounds: proved - rounding of points and cells, docs/proofs/contour.md, theorem 2.18 */
#ifndef FP_CONTOUR_WINDOWS_SOLVER_H
#define FP_CONTOUR_WINDOWS_SOLVER_H

#include "composition/fp_contour_solver.h"

#define FP_WINDOW_SHIFTS 8
#define FP_WINDOW_BUMPS 256
#define FP_WINDOW_CELLS (1 << 13)
#define FP_WINDOW_TAILS 128 /* cells beyond the last point; a multiple of eight */
#define FP_WINDOW_SCRATCH 8 /* arrays that are needed while cells are made */
#define FP_SHELLS 20

#define FP_LOOPS "composition/fp_contour_window_loops.h"
#include "common/fp_variants.h"

typedef struct {
    void (*logs)(int, const double *, int, int, const double *, const double *, double, double *, double *);
    void (*angles)(int, const double *, int, const double *, const double *, int, const double *, const double *, int,
                   double *, double *);
    void (*growth)(int, const double *, double, int, int, const double *, const double *, double, double *);
    double (*log_sum)(int, const double *, const double *, const double *, double);
    double (*path)(int, const double *, const double *, const double *, double, double, double *);
    double (*dot)(int, const double *, const double *);
    void (*tilted)(int, const double *, const double *, double, double *);
} fp_window_kernels;

static fp_window_kernels fp_window_selected;

/* Must be called once, before any composition. */
static inline void fp_contour_windows_select(void)
{
    fp_contour_select();
    fp_window_selected = (fp_window_kernels){
        FP_SELECT(fp_window_logs), FP_SELECT(fp_window_angles), FP_SELECT(fp_window_growth),
        FP_SELECT(fp_window_log_sum), FP_SELECT(fp_window_path), FP_SELECT(fp_window_dot), FP_SELECT(fp_window_tilted),
    };
}

/* log(e^a + e^b); its rounding is at most FP_LOG_ADD of it */
#define FP_LOG_ADD(x) (6.0 * FP_U * (1.0 + fabs(x)))
FP_INLINE double fp_log_add(double a, double b)
{
    return a == -INFINITY ? b : b == -INFINITY ? a : fp_log_sum(a, b);
}

/* p times the product of Phi((cut_i - x) / width_i), i < cuts; with `above` also times Phi((x - cut) / width) of the
 * next. */
typedef struct {
    const fp_contour_one_sigma *pair;
    double side, centre; /* x = side (point - centre), centre the mean of Q */
    int means;
    double mean[FP_MAX_POINTS], weight[FP_MAX_POINTS], log_q; /* of P, by x; log of the weight of Q */
    int cuts, above;
    double cut[FP_SHELLS + 1], width[FP_SHELLS + 1], bend; /* bend: 1 + sum of 1 / width^2 */
    /* Cells of f_t of equal size between `points` points from `left` on; logarithms of bounds of its integral on a
     * cell and beyond the left end, of its values; of each shift phi at the points, and log of |window(x + i y)| /
     * window(x) on a cell. Beyond the last point come `tails` cells, and what lies beyond those. */
    int points, capacity, bumps, stride; /* bumps: 0 before masses are known; stride: cells from one to the next */
    double left, size, shift[FP_WINDOW_SHIFTS], *log_cell, *log_value, *phi, *grown, mass[FP_WINDOW_BUMPS];
    double *block, log_left, log_tails, log_last;
    int tails;
    double log_tail[FP_WINDOW_TAILS], tail_end[FP_WINDOW_TAILS], tail_phi[FP_WINDOW_SHIFTS * FP_WINDOW_TAILS];
    /* Few nodes for all t up to quick_t: log of p, the window and the step, and losses; logarithms of bounds of what
     * lies beyond them, of f_t for t = 0 and for quick_t. */
    int quick, quick_capacity;
    double quick_t, *quick_log_p, *quick_loss, quick_left, quick_right, quick_end;
    double quick_p_error, quick_loss_error; /* the largest errors of log p with the window, and of losses */
} fp_contour_window;

/* The loss at x, and its derivative */
static inline double fp_window_loss(const fp_contour_window *part, double x, double *slope)
{
    double sum = 0.0, excess = part->pair->g.apart, moment = 0.0;
    for (int i = 0; i < part->means; i++) {
        const double m = part->mean[i], y = m * (x - 0.5 * m), e = part->weight[i] * fp_exp(y);
        sum += e, excess += part->weight[i] * fp_expm1(y), moment += m * e;
    }
    *slope = moment / sum;
    const double ratio = excess * fp_exp(-part->log_q);
    return fabs(ratio) < 0.5 ? fp_log1p(ratio) : fp_log(sum) - part->log_q;
}

/* log of f_t at x */
static inline double fp_window_height(const fp_contour_window *part, double t, double x, double *slope)
{
    double value = part->log_q - FP_LOG_SQRT_2PI - 0.5 * x * x + (1.0 + t) * fp_window_loss(part, x, slope);
    for (int i = 0; i < part->cuts + part->above; i++) {
        const double u = (i < part->cuts ? part->cut[i] - x : x - part->cut[i]) / part->width[i];
        value += u < 9.0 ? fp_log_ndtr(u) : 0.0;
    }
    return value;
}

/* Whether ratios of components are in the range of double precision there */
FP_INLINE int fp_window_in_reach(const fp_contour_window *part, double left, double right)
{
    const double range = part->pair->range;
    return range * (fp_max(-left, right) + range) < FP_LARGEST_EXPONENT;
}

/* The derivative of log f_t at x, roughly */
static inline double fp_window_pull(const fp_contour_window *part, double t, double x)
{
    double slope, pull = -x;
    fp_window_loss(part, x, &slope);
    for (int i = 0; i < part->cuts + part->above; i++) {
        const double beyond = i < part->cuts ? fp_max(0.0, x - part->cut[i]) : fp_min(0.0, x - part->cut[i]);
        pull -= beyond / (part->width[i] * part->width[i]);
    }
    return pull + (1.0 + t) * slope;
}

/* Points beyond which f_t, times e^(w phi) for a shift that suits w, is at most e^-exponent of its largest value,
 * roughly: the bounds allow for what lies beyond. 1 where they are out of reach. */
static inline int fp_window_range(const fp_contour_window *part, double t, double w, double exponent, double *left,
                                  double *right)
{
    enum { PLACES = 24 };
    const double reach = sqrt(2.0 * exponent), most = FP_LARGEST_EXPONENT / part->pair->range - part->pair->range;
    double bend = 1.0, moment = (1.0 + t) * part->pair->range, low = -reach, high = moment + reach;
    if (part->above) {
        const double cut = part->cut[part->cuts], v = part->width[part->cuts];
        low = fp_max(low, fp_min(cut, cut / (1.0 + v * v)) - v * reach), high = fp_max(high, cut + reach);
    }
    for (int i = part->cuts - 1; i >= 0; i--) { /* no top of f_t lies farther to the right */
        const double weight = 1.0 / (part->width[i] * part->width[i]);
        bend += weight, moment += weight * part->cut[i];
        high = fp_min(high, moment / bend + reach / sqrt(bend));
    }
    low -= 1.0, high = fp_max(high + 1.0, 1.0);
    if (!(high < most) || !(-low < most))
        return 1;
    double top[PLACES + 1], height[PLACES + 1], slope[PLACES + 1], highest = -INFINITY, steepest = 0.0, after = high;
    int tops = 0;
    for (int i = 1; i <= PLACES; i++) { /* from the right */
        const double x = high - (high - low) * i / PLACES;
        if (i < PLACES && !(fp_window_pull(part, t, x) > 0.0)) {
            after = x;
            continue;
        }
        double from = x, to = after;
        for (int j = 0; j < 40 && to - from > 0.02 / sqrt(part->bend); j++) {
            const double middle = 0.5 * (from + to);
            if (fp_window_pull(part, t, middle) > 0.0)
                from = middle;
            else
                to = middle;
        }
        top[tops] = to, height[tops] = fp_window_height(part, t, to, slope + tops);
        if (height[tops] > highest)
            highest = height[tops], steepest = slope[tops];
        tops++;
        while (++i <= PLACES && fp_window_pull(part, t, after = high - (high - low) * i / PLACES) > 0.0)
            ;
    }
    double pitch = part->above ? part->width[part->cuts] : 1.0, value, gain = 0.0;
    int first = tops - 1, last = 0;
    while (first > 0 && height[first] < highest - exponent)
        first--;
    *left = top[first];
    do
        *left -= 0.5 * pitch, pitch *= 1.5, value = fp_window_height(part, t, *left, &gain);
    while (value > highest - exponent);
    for (; last < tops; last++) {
        gain = w > 0.0 ? fp_min(exponent * slope[last] / (steepest + 1e-300), 400.0) : 0.0;
        if (height[last] + gain >= highest - exponent)
            break;
    }
    *right = top[last < tops ? last : tops - 1];
    bend = 1.0;
    for (int i = 0; i < part->cuts; i++)
        bend += *right > part->cut[i] ? 1.0 / (part->width[i] * part->width[i]) : 0.0;
    for (pitch = 1.0 / sqrt(bend); *right < most; pitch *= 1.3) {
        *right += pitch;
        value = fp_window_height(part, t, *right, &gain);
        gain = w > 0.0 ? fp_min(exponent * gain / (steepest + 1e-300), 400.0) : 0.0;
        if (value + gain < highest - exponent)
            break;
    }
    *right = fp_max(*right, 0.0);
    return *right < most && -*left < most ? 0 : 1;
}

/* Whether f_t falls to the left at a rate >= 1, left of x */
FP_INLINE int fp_window_falls(const fp_contour_window *part, double x)
{
    double outwards = 0.0;
    if (part->above)
        outwards = fp_max(0.0, part->cut[part->cuts] - x) / (part->width[part->cuts] * part->width[part->cuts]);
    return outwards - x >= 1.001;
}

/* Cells that bound f_t beyond x >= 0, as far as a rate of fall is proved and f_t e^(w D shift) is small; log of the
 * sum is returned, and of the integral beyond them kept in log_last. */
static inline double fp_window_beyond(fp_contour_window *part, double t, double x, double w_range)
{
    const double range = part->pair->range;
    double sum = -INFINITY, size = 0.25 / sqrt(part->bend), start = 0.0;
    part->log_last = INFINITY, part->tails = 0;
    for (int i = 0; i < FP_WINDOW_TAILS; i++) {
        double fall = 0.0, window = 0.0, furthest = 0.0, slope, at_ends[2];
        for (int k = 0; k < part->cuts; k++) {
            const double u = (part->cut[k] - x) / part->width[k];
            window += u < 9.0 ? fp_log_ndtr(u) : 0.0, fall += fp_max(0.0, -u) / part->width[k];
            furthest = fp_max(furthest, x - part->cut[k]);
        }
        size = fp_min(1.25 * size, 1.0 + 0.5 * furthest);
        const double end = x + size, middle = x + 0.5 * size;
        for (int k = 0; k < 2; k++) { /* l <= log of the mass ratio + D x */
            const double at = k ? end : x;
            const double loss = range * (at + range) < FP_LARGEST_EXPONENT
                                    ? fp_window_loss(part, at, &slope)
                                    : range * at + 1.001 * fabs(part->pair->g.apart) * fp_exp(-part->log_q);
            at_ends[k] = part->log_q - FP_LOG_SQRT_2PI + (1.0 + t) * (loss + 1e-12 * (1.0 + fabs(loss)))
                         + middle * (0.5 * middle - at) + 1e-14 * (middle * middle + middle * at)
                         + window * (1.0 - 1e-13) - k * fall * size * (1.0 - 1e-14) + 1e-9;
        }
        start = i ? start : at_ends[0];
        if (x - (1.0 + t) * range + fall >= 1.001 && (!(w_range > 0.0) || at_ends[0] + w_range < start - 60.0)) {
            part->log_last = at_ends[0];
            break;
        }
        const double cell = fp_max(at_ends[0], at_ends[1]) + fp_log(size);
        part->log_tail[i] = cell, part->tail_end[i] = end, part->tails = i + 1;
        sum = fp_log_add(sum, cell);
        x = end;
    }
    return sum > -INFINITY ? sum + 1e-12 + 1e-13 * fabs(sum) : sum;
}

/* Cells of f_t, with phi at their ends. Returns 0, -1 without memory, 1 where there would be too many. */
static inline int fp_window_cells(fp_contour_window *part, double t, double w, double aim)
{
    const double d = part->pair->range, scale = 1.0 / sqrt(part->bend), size = fp_upper(0.35 * scale);
    const double longest = fp_min(4.5, 2.6 / d), shortest = fp_min(0.3 * scale, 0.25 * longest);
    double left, right;
    for (int s = 0; s < FP_WINDOW_SHIFTS; s++)
        part->shift[s] = shortest * pow(longest / shortest, s / (FP_WINDOW_SHIFTS - 1.0));
    if (fp_window_range(part, t, w, aim + 10.0, &left, &right))
        return 1;
    const double first = floor((part->centre + part->side * (part->side > 0.0 ? left : right)) / size);
    const double count = ceil((right - left) / size) + 2.0;
    if (!(count < FP_WINDOW_CELLS))
        return 1;
    const int n = fp_padded((int)count);
    if (n + FP_LANES > part->capacity) {
        free(part->block);
        part->capacity = fp_padded(n + n / 4) + FP_LANES;
        part->block = malloc(sizeof(double) * (2 + FP_WINDOW_SCRATCH + 2 * FP_WINDOW_SHIFTS) * (size_t)part->capacity);
        if (!part->block)
            return part->capacity = 0, -1;
        double *cursor = part->block;
        part->log_value = fp_take(&cursor, part->capacity), part->log_cell = fp_take(&cursor, part->capacity);
        part->phi = fp_take(&cursor, FP_WINDOW_SHIFTS * part->capacity);
        part->grown = fp_take(&cursor, FP_WINDOW_SHIFTS * part->capacity);
    }
    double *scratch[FP_WINDOW_SCRATCH], *cursor = part->grown + FP_WINDOW_SHIFTS * part->capacity;
    for (int i = 0; i < FP_WINDOW_SCRATCH; i++)
        scratch[i] = fp_take(&cursor, part->capacity);
    double *x = scratch[0], *log_p = scratch[1], *loss = scratch[2], *p_error = scratch[3], *loss_error = scratch[4];
    double *window = scratch[5], *window_error = scratch[6], *slope = scratch[7];
    fp_one_sigma_selected.nodes(&part->pair->g, first, size, n, log_p, x, loss, p_error, slope, loss_error);
    for (int j = 0; j < n / 2 && part->side < 0.0; j++) {
        double *turned[4] = {log_p, loss, p_error, loss_error};
        for (int i = 0; i < 4; i++) {
            const double kept = turned[i][j];
            turned[i][j] = turned[i][n - 1 - j], turned[i][n - 1 - j] = kept;
        }
    }
    for (int j = 0; j < n; j++)
        x[j] = part->side * ((first + (part->side > 0.0 ? j : n - 1 - j)) * size - part->centre);
    double cosine[FP_WINDOW_SHIFTS * FP_MAX_POINTS], sine[FP_WINDOW_SHIFTS * FP_MAX_POINTS], unused[FP_WINDOW_TAILS];
    for (int s = 0; s < FP_WINDOW_SHIFTS; s++)
        for (int i = 0; i < part->means; i++) {
            const double angle = part->mean[i] * part->shift[s];
            cosine[s * FP_MAX_POINTS + i] = cos(angle), sine[s * FP_MAX_POINTS + i] = sin(angle);
        }
    const int windows = part->cuts + part->above;
    fp_window_selected.logs(n, x, windows, part->cuts, part->cut, part->width, part->centre != 0.0, window,
                            window_error);
    fp_window_selected.angles(n, x, part->means, part->mean, part->weight, FP_WINDOW_SHIFTS, cosine, sine,
                              part->capacity, slope, part->phi);
    for (int s = 0; s < FP_WINDOW_SHIFTS; s++) {
        part->phi[s * part->capacity + n] = 0.0; /* of a cell of no mass */
        fp_window_selected.growth(n, x, size, windows, part->cuts, part->cut, part->width, part->shift[s],
                                  part->grown + s * part->capacity);
    }
    for (int j = 0; j < n; j++) {
        const double tilted = t * loss[j];
        part->log_value[j] = log_p[j] + tilted + window[j] - FP_LOG_SQRT_2PI + p_error[j] + t * loss_error[j]
                             + window_error[j] + 16.0 * FP_U * (1.0 + fabs(log_p[j]) + fabs(tilted) + fabs(window[j]));
    }
    const double log_size = fp_log(size) + 1e-9;
    for (int j = 0; j + 1 < n; j++) {
        double outwards = 0.0;
        for (int i = 0; i < windows; i++) {
            const double outside = (i < part->cuts ? x[j + 1] - part->cut[i] : part->cut[i] - x[j]) / part->width[i];
            if (outside > -8.0)
                outwards += (outside > 0.0 ? 0.8 + outside : 0.8 * fp_exp(-0.5 * outside * outside)) / part->width[i];
            else
                outwards += 1e-13 / part->width[i];
        }
        const double furthest = fp_max(fabs(x[j]), fabs(x[j + 1])), pull = (1.0 + t) * slope[j + 1] * (1.0 + 1e-12);
        const double most = (x[j] < 0.0 ? furthest + pull : fp_max(furthest, pull)) + outwards;
        const double height = fp_max(part->log_value[j], part->log_value[j + 1]);
        part->log_cell[j] = height + 1e-14 * fabs(height) + 0.5 * most * size + log_size;
    }
    part->log_cell[n - 1] = -1e300;
    part->log_left = fp_window_falls(part, x[0]) ? part->log_value[0] : INFINITY;
    part->log_tails = fp_window_beyond(part, t, fp_max(x[n - 1], 0.0), w * d * longest);
    fp_window_selected.angles(FP_WINDOW_TAILS, part->tail_end, part->means, part->mean, part->weight, FP_WINDOW_SHIFTS,
                              cosine, sine, FP_WINDOW_TAILS, unused, part->tail_phi);
    part->points = n, part->left = x[0], part->size = size, part->bumps = 0;
    return 0;
}

/* log of the bound of |window(x + i y)| / window(x) left of all points: windows that cut below grow less there */
FP_INLINE double fp_window_left_edge(const fp_contour_window *part, int shift)
{
    const double y = part->shift[shift];
    return part->above ? 0.5 * (part->bend - 1.0) * y * y : part->grown[shift * part->capacity];
}

/* log of a bound of the integral of |f(x + i y)| for z = t - i w, w >= 0, for one shift */
static inline double fp_window_integral(const fp_contour_window *part, int shift, double w)
{
    const double *phi = part->phi + shift * part->capacity, *grown = part->grown + shift * part->capacity;
    const double y = part->shift[shift], whole = 0.5 * y * y, edge = 0.5 * part->bend * y * y;
    const double faster = w * (1.0 + 2e-12), turned = faster * part->pair->range * y;
    const double inside = fp_window_selected.log_sum(part->points, part->log_cell, phi + 1, grown, faster);
    const double left = part->log_left + faster * phi[0] + fp_window_left_edge(part, shift) + whole;
    double ends = part->log_last + turned;
    for (int i = 0; i < part->tails; i++) {
        const double at = part->tail_phi[shift * FP_WINDOW_TAILS + i];
        ends = fp_log_add(ends, part->log_tail[i] + (at >= 0.0 ? fp_min(faster * at, turned) : turned));
    }
    return fp_log_add(inside + whole + 1e-9, fp_log_add(ends + edge, left) + 1e-9 + 1e-13 * fabs(ends));
}

#endif
