/* Few atoms in place of many: every cell of a sorted discrete law becomes a rule of k nodes with the moments of the
 * cell, as a Gauss rule has them.
 *
 * Notation: a cell holds atoms x_i of weights w_i between its first and its last, c its middle as a double, H the
 * distance from c to the farther of these two, t = (x - c) / H in [-1, 1], W the sum of its weights,
 * mu_m = sum w_i T_m(t_i) / W with the Chebyshev polynomials T_m.
 * The nodes are the eigenvalues of the Jacobi matrix of the cell's measure, which the atoms enter one after another
 * (Gragg and Harwood 1984, the algorithm RKPW, which is stable); they are then rounded to doubles, and their weights
 * solve the k equations of mu_0 to mu_(k-1).  Nothing rests on how well that went: the difference of all 2k moments is
 * computed, and a cell in which its weighted sum, sum cost_m |difference of mu_m|, is above what is allowed, or that
 * has no more than k atoms, keeps its atoms.  Source: Gautschi, Orthogonal Polynomials, 2004, 2.2.3 and 3.1.1.
 *
 * Work comes in pieces: fp_grouping_run goes on until about `share` atoms are done.
 */
#ifndef FP_GROUPING_SOLVER_H
#define FP_GROUPING_SOLVER_H

#include <math.h>
#include <stddef.h>

#include "common/fp_dd.h"

#define FP_NODES 16
#define FP_MOMENTS (2 * FP_NODES)
/* bound: none - cells of less weight keep their atoms, so that no product of a weight loses digits below 1e-308 */
#define FP_LEAST_CELL 1e-290
/* bound: none - off-diagonal entries of the Jacobi matrix that are taken for 0; moments are compared afterwards */
#define FP_NEGLIGIBLE_ENTRY 1e-17

typedef struct {
    /* the distribution and the request */
    ptrdiff_t n;
    const double *x, *w;
    double width;             /* largest length of a cell, in the unit of x */
    int k;
    const double *cost;       /* of 2k moments */
    double tolerance;
    /* results, room for n nodes and n + 1 starts */
    double *node, *weight;
    ptrdiff_t *first_atom, *first_node; /* of every cell; behind the last cell n and the number of nodes */
    ptrdiff_t cells, nodes;
    double worst;             /* largest weighted sum of differences among the cells that were replaced */
    /* the cell in progress */
    ptrdiff_t start, stop, done;
    double middle, half, diagonal[FP_NODES], squares[FP_NODES];
    fp_dd moment[FP_MOMENTS];
} fp_grouping;

static inline void fp_dd_accumulate(fp_dd *sum, double x)
{
    const fp_dd s = fp_two_sum(sum->hi, x);
    sum->hi = s.hi;
    sum->lo += s.lo;
}

/* Add w T_m(t), m < count, to the moments. */
static inline void fp_moments_add(fp_dd *moment, int count, double t, double w)
{
    double before = 1.0, current = t;
    fp_dd_accumulate(&moment[0], w);
    for (int m = 1; m < count; m++) {
        const double next = 2.0 * t * current - before;
        fp_dd_accumulate(&moment[m], w * current);
        before = current;
        current = next;
    }
}

/* Add an atom to the first k rows of the Jacobi matrix of the `known` atoms before it. */
static inline void fp_jacobi_add(double *diagonal, double *squares, int k, ptrdiff_t known, double x, double w)
{
    double cosine = 1.0, sine = 0.0, shift = 0.0, rest = w;
    const int rows = known < k ? (int)known + 1 : k;
    if (known < k) {
        diagonal[known] = x;
        squares[known] = 0.0;
    }
    for (int j = 0; j < rows; j++) {
        const double sum = squares[j] + rest, scaled = cosine * sum, old_sine = sine;
        if (sum <= 0.0) {
            cosine = 1.0;
            sine = 0.0;
        } else {
            cosine = squares[j] / sum;
            sine = rest / sum;
        }
        const double turned = sine * (diagonal[j] - x) - cosine * shift;
        diagonal[j] -= turned - shift;
        shift = turned;
        rest = sine <= 0.0 ? old_sine * squares[j] : shift * shift / sine;
        squares[j] = scaled;
    }
}

/* eigenvalues of the symmetric tridiagonal matrix with entries d and, beside them, e, by implicit QL steps; 0 if they
 * do not converge */
static inline int fp_tridiagonal_eigenvalues(int n, double *d, double *e)
{
    for (int l = 0; l < n; l++) {
        for (int step = 0;; step++) {
            int m = l;
            while (m < n - 1 && fabs(e[m]) > FP_NEGLIGIBLE_ENTRY)
                m++;
            if (m == l)
                break;
            if (step == 60)
                return 0;
            double g = (d[l + 1] - d[l]) / (2.0 * e[l]), r = sqrt(g * g + 1.0);
            g = d[m] - d[l] + e[l] / (g + (g < 0.0 ? -r : r));
            double s = 1.0, c = 1.0, p = 0.0;
            int i = m - 1;
            for (; i >= l; i--) {
                double f = s * e[i];
                const double b = c * e[i];
                r = sqrt(f * f + g * g);
                e[i + 1] = r;
                if (r == 0.0) {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    break;
                }
                s = f / r;
                c = g / r;
                g = d[i + 1] - p;
                r = (d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
            }
            if (i >= l)
                continue;
            d[l] -= p;
            e[l] = g;
            e[m] = 0.0;
        }
    }
    return 1;
}

/* weights of the nodes t with the first k moments given; 0 where the equations are singular */
static inline int fp_node_weights(int k, const double *t, const fp_dd *moment, double *weight)
{
    double a[FP_NODES][FP_NODES + 1];
    for (int j = 0; j < k; j++) {
        double before = 1.0, current = t[j];
        a[0][j] = 1.0;
        for (int m = 1; m < k; m++) {
            const double next = 2.0 * t[j] * current - before;
            a[m][j] = current;
            before = current;
            current = next;
        }
    }
    for (int m = 0; m < k; m++)
        a[m][k] = moment[m].hi + moment[m].lo;
    for (int j = 0; j < k; j++) {
        int best = j;
        for (int m = j + 1; m < k; m++)
            best = fabs(a[m][j]) > fabs(a[best][j]) ? m : best;
        if (!(fabs(a[best][j]) > 0.0))
            return 0;
        for (int i = j; i <= k && best != j; i++) {
            const double swapped = a[j][i];
            a[j][i] = a[best][i];
            a[best][i] = swapped;
        }
        for (int m = j + 1; m < k; m++) {
            const double factor = a[m][j] / a[j][j];
            for (int i = j + 1; i <= k; i++)
                a[m][i] -= factor * a[j][i];
        }
    }
    for (int j = k - 1; j >= 0; j--) {
        double rest = a[j][k];
        for (int i = j + 1; i < k; i++)
            rest -= a[j][i] * weight[i];
        weight[j] = rest / a[j][j];
    }
    return 1;
}

/* The number of nodes that replace the atoms of the cell; 0 where it must keep its atoms. */
static inline int fp_cell_nodes(fp_grouping *g)
{
    const int k = g->k;
    const double mass = g->moment[0].hi + g->moment[0].lo;
    double e[FP_NODES], t[FP_NODES], x[FP_NODES], weight[FP_NODES];
    fp_dd moment[FP_MOMENTS] = {{0.0, 0.0}};
    int used = 0;
    if (!(mass >= FP_LEAST_CELL && mass < INFINITY))
        return 0;
    for (int j = 0; j + 1 < k; j++)
        e[j] = sqrt(g->squares[j + 1]);
    if (!fp_tridiagonal_eigenvalues(k, g->diagonal, e))
        return 0;
    for (int j = 1; j < k; j++)
        for (int i = j; i > 0 && g->diagonal[i] < g->diagonal[i - 1]; i--) {
            const double swapped = g->diagonal[i];
            g->diagonal[i] = g->diagonal[i - 1];
            g->diagonal[i - 1] = swapped;
        }
    const double low = g->x[g->start], high = g->x[g->stop - 1];
    for (int j = 0; j < k; j++) {
        x[j] = g->middle + g->half * g->diagonal[j];
        x[j] = x[j] < low ? low : x[j] > high ? high : x[j];
        t[j] = (x[j] - g->middle) / g->half;
        if (!(j == 0 || x[j] > x[j - 1]))
            return 0;
    }
    if (!fp_node_weights(k, t, g->moment, weight))
        return 0;
    for (int j = 0; j < k; j++)
        if (weight[j] > 0.0) {
            fp_moments_add(moment, 2 * k, t[j], weight[j]);
            g->node[g->nodes + used] = x[j];
            g->weight[g->nodes + used] = weight[j];
            used++;
        }
    double sum = 0.0;
    for (int m = 0; m < 2 * k; m++)
        sum += g->cost[m] * (fabs((moment[m].hi - g->moment[m].hi) + (moment[m].lo - g->moment[m].lo)) / mass);
    if (!(sum <= g->tolerance))
        return 0;
    g->worst = sum > g->worst ? sum : g->worst;
    return used;
}

/* Begin the cell at atom `start`. */
static inline void fp_cell_begin(fp_grouping *g, ptrdiff_t start)
{
    ptrdiff_t near = start + 1, beyond = g->n, step = 1;
    for (; near + step < beyond && g->x[near + step - 1] - g->x[start] <= g->width; step *= 2)
        near += step;
    beyond = near + step < beyond ? near + step : beyond;
    while (near < beyond) { /* the first atom at or after `near` that is out of the cell */
        const ptrdiff_t middle = near + (beyond - near) / 2;
        if (g->x[middle] - g->x[start] <= g->width)
            near = middle + 1;
        else
            beyond = middle;
    }
    g->start = g->done = start;
    g->stop = near;
    g->middle = g->x[start] + 0.5 * (g->x[near - 1] - g->x[start]);
    g->half = fmax(g->x[near - 1] - g->middle, g->middle - g->x[start]);
    for (int m = 0; m < 2 * g->k; m++)
        g->moment[m] = (fp_dd){0.0, 0.0};
}

/* Continue until about `budget` atoms are processed; returns 0 when all is done, 1 when there is more to do. */
static inline int fp_grouping_run(fp_grouping *g, ptrdiff_t budget)
{
    while (budget > 0) {
        if (g->done == g->stop) {
            if (g->stop == g->n)
                break;
            fp_cell_begin(g, g->stop);
            g->first_atom[g->cells] = g->start;
            g->first_node[g->cells++] = g->nodes;
        }
        const ptrdiff_t size = g->stop - g->start;
        int used = 0;
        if (size > g->k && g->half > 0.0 && 2.0 * g->half <= g->width) {
            const ptrdiff_t end = g->stop - g->done < budget ? g->stop : g->done + budget;
            budget -= end - g->done;
            for (; g->done < end; g->done++) {
                const double t = (g->x[g->done] - g->middle) / g->half;
                fp_moments_add(g->moment, 2 * g->k, t, g->w[g->done]);
                fp_jacobi_add(g->diagonal, g->squares, g->k, g->done - g->start, t, g->w[g->done]);
            }
            if (g->done < g->stop)
                return 1;
            used = fp_cell_nodes(g);
            budget -= 32;
        }
        g->done = g->stop;
        for (ptrdiff_t i = g->start; i < g->stop && !used; i++) {
            g->node[g->nodes + i - g->start] = g->x[i];
            g->weight[g->nodes + i - g->start] = g->w[i];
        }
        g->nodes += used ? used : size;
        budget -= used ? 0 : size;
    }
    g->first_atom[g->cells] = g->stop;
    g->first_node[g->cells] = g->nodes;
    return g->stop < g->n || g->done < g->stop;
}

#endif
