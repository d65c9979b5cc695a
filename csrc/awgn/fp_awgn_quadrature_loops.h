/* The nodes in rho, tables over radii and nodes, and i(r) by the trapezoidal rule; included once per instruction
 * set. */
/* bounds: none - the least density of the output at a node relative to its largest term, below which no bound is made
 * of it */

/* Inner product, in eight lanes. */
FP_INLINE double FP_NAME(fp_awgn_dot)(const double *restrict a, const double *restrict b, int n)
{
    fp_v8 sum = {0};
    for (int k = 0; k < n; k += FP_LANES)
        sum += FP_AT(a, k) * FP_AT(b, k);
    return FP_NAME(fp_v8_sum)(sum);
}

/* Parameters that do not depend on the grid. */
static void FP_NAME(fp_awgn_init)(fp_awgn *a, double dimension, double radius, double rtol)
{
    memset(a, 0, sizeof *a);
    fp_sphere_prepare(&a->law, dimension);
    a->d = dimension;
    a->radius = radius;
    a->rtol = rtol;
    a->even = fmod(dimension, 2.0) == 0.0;
    a->power = radius * radius / dimension;
    a->shrink = 1.0 / (1.0 + a->power);
    a->full = 0.5 * dimension * fp_log1p(a->power);
    a->small = a->power <= 1.0;
    int sign;
    a->log_norm = (1.0 - 0.5 * dimension) * FP_LN2 - lgamma_r(0.5 * dimension, &sign);
    const double aim = rtol * (a->full < 0.3 ? 0.3 : 0.5 * a->full);
    a->window = 1.5 + sqrt(2.0 * log(300.0 * (10.0 + radius + sqrt(dimension)) / aim));
    a->max_height = a->even && sqrt(dimension) < 36.0 + a->window ? 1.5 : 5.0;
}

/* Nodes from rho = low to high, into rho and log_measure: the log weight apart from -(rho - r)^2/2 + log G - r rho. The
 * step has 24 bits, so that t is exact; where it would not be, the buffer is said to be full. */
static int FP_NAME(fp_awgn_nodes)(const fp_awgn *a, double least_radius, double high, double *rho, double *log_measure,
                                  int capacity_of_buffer)
{
    const double start = fp_awgn_node_index(a, least_radius), end = fp_awgn_node_index(a, high);
    const int n = end - start + 1 < capacity_of_buffer && end < 0x1p28 ? (int)(end - start + 1) : capacity_of_buffer;
    const double log_step = log(a->step) + a->log_norm;
    for (int k = 0; k < n; k++) {
        const double t = a->step * (start + k + 0.5);
        const double near = t > 36.0 ? t : t < 0.0 ? fp_log1p(fp_exp(t)) : t + fp_log1p(fp_exp(-t));
        const double bend = t < 0.0 ? t - fp_log1p(fp_exp(t)) : -fp_log1p(fp_exp(-t)); /* log of d rho / d t */
        rho[k] = a->even ? near : t;
        log_measure[k] = (a->d - 1.0) * fp_log(rho[k]) + log_step + (a->even ? bend : 0.0);
    }
    return n;
}

/* One row: the exponent of the weight, apart from log_measure. x is workspace; slope receives the derivative of log
 * G. */
static void FP_NAME(fp_awgn_row)(fp_awgn *a, double r, const double *restrict rho, int n, double *restrict x,
                                 double *restrict exponent, double *restrict relative, double *restrict slope)
{
    for (int k = 0; k < n; k++)
        x[k] = r * rho[k];
    FP_NAME(sphere_log)(&a->law, x, relative, exponent, slope, n);
    for (int k = 0; k < n; k++)
        exponent[k] -= 0.5 * (rho[k] - r) * (rho[k] - r);
    if (a->small)
        for (int k = 0; k < n; k++)
            relative[k] -= 0.5 * r * r;
    a->evaluations += n;
}

/* l for one sphere of radius R, whose row is `exponent` and `relative`. */
static void FP_NAME(fp_awgn_one_sphere_log_ratio)(const fp_awgn *a, const double *restrict rho,
                                                  const double *restrict exponent, const double *restrict relative,
                                                  double *restrict l, int n)
{
    const double tilt = 0.5 * a->power * a->shrink, rest = 0.5 * a->shrink;
    if (a->small)
        for (int k = 0; k < n; k++)
            l[k] = relative[k] + (a->full - tilt * rho[k] * rho[k]);
    else
        for (int k = 0; k < n; k++)
            l[k] = exponent[k] + (a->full + rest * rho[k] * rho[k]);
}

/* The mean of l over n nodes with weights w, centred at l[mid]; *size receives sum w |l - l[mid]|. */
FP_INLINE double FP_NAME(fp_awgn_mean)(const double *restrict w, const double *restrict l, int n, int mid, double *size)
{
    double sum[FP_LANES] = {0}, total[FP_LANES] = {0};
    const double centre = l[mid];
    for (int k = 0; k < n; k += FP_LANES)
        for (int lane = 0; lane < FP_LANES; lane++) {
            const double part = k + lane < n ? w[k + lane] * (l[k + lane] - centre) : 0.0;
            sum[lane] += part;
            total[lane] += fabs(part);
        }
    *size = fp_lane_sum(total);
    return centre + fp_lane_sum(sum);
}

#include "awgn/fp_awgn_ball_loops.h"

/* The table of m radii: e^(exponent - top) with top the largest exponent of a node, and c with weight = table * c.
 * With derivatives, also first and second: times M and M' + M^2 for M = d/dr of the exponent. */
static void FP_NAME(fp_awgn_tabulate)(fp_awgn *a, const double *r, int m, int derivatives)
{
    const int n = a->padded;
    double *restrict x = a->line[0], *restrict relative = a->line[1], *restrict slope = a->line[2];
    const double *restrict rho = a->rho;
    double *restrict top = a->top;
    for (int k = 0; k < n; k++)
        top[k] = -1e300;
    for (int j = 0; j < m; j++) {
        const int is_ball = a->edge > 0.0 && j == 0;
        double *restrict row = a->table + (size_t)j * n;
        FP_NAME(fp_awgn_row)(a, r[j], rho, n, x, row, relative, slope);
        if (is_ball)
            memcpy(row, a->ball, n * sizeof *row);
        for (int k = 0; k < n; k++)
            top[k] = row[k] > top[k] ? row[k] : top[k];
        if (derivatives) {
            double *restrict first = a->first + (size_t)j * n, *restrict second = a->second + (size_t)j * n;
            const double d = a->d, radius = r[j];
            for (int k = 0; k < n; k++) {
                const double at = x[k] > 1e-6 ? x[k] : 1.0;
                const double bend = x[k] > 1e-6 ? 1.0 - slope[k] * (slope[k] + (d - 1.0) / at) : 1.0 / d;
                const double tilt = rho[k] * slope[k] - radius;
                first[k] = is_ball ? 0.0 : tilt;
                second[k] = is_ball ? 0.0 : tilt * tilt + (rho[k] * rho[k] * bend - 1.0);
            }
        }
    }
    for (int j = 0; j < m; j++) {
        double *restrict row = a->table + (size_t)j * n;
        for (int k = 0; k < n; k++)
            row[k] = fp_exp(row[k] - top[k]);
        if (derivatives) {
            double *restrict first = a->first + (size_t)j * n, *restrict second = a->second + (size_t)j * n;
            for (int k = 0; k < n; k++) {
                first[k] *= row[k];
                second[k] *= row[k];
            }
        }
    }
    for (int k = 0; k < n; k++)
        a->c[k] = k < a->nodes ? fp_exp(a->log_measure[k] + top[k]) : 0.0;
    if (a->edge > 0.0)
        a->deep = 1.0 - FP_NAME(fp_awgn_dot)(a->table, a->c, n);
}

/* l for weights p on the m radii of the table; line[3] receives the mixture at each node in units of e^top. */
static void FP_NAME(fp_awgn_mixture)(fp_awgn *a, const double *p, int m)
{
    const int n = a->padded;
    double *restrict sum = a->line[3], *restrict l = a->l;
    const double *restrict top = a->top, *restrict rho = a->rho;
    for (int k = 0; k < n; k++)
        sum[k] = 0.0;
    for (int j = 0; j < m; j++) {
        const double *restrict row = a->table + (size_t)j * n;
        const double weight = p[j];
        for (int k = 0; k < n; k++)
            sum[k] += weight * row[k];
    }
    a->level = a->edge > 0.0 ? -log(p[0]) : 0.0;
    const double offset = a->edge > 0.0 ? a->constant + a->level : a->full;
    a->mixed = m + a->panels;
    a->floored = 0;
    for (int k = 0; k < n; k++) {
        a->floored |= sum[k] <= 1e-300;
        sum[k] = sum[k] > 1e-300 ? sum[k] : 1e-300;
    }
    for (int k = 0; k < n; k++)
        l[k] = (top[k] + fp_log(sum[k])) + (offset + 0.5 * a->shrink * rho[k] * rho[k]);
}
