/* Sums of products along a chain: S = sum over i of f_0(n_i) f_1(n_{i+1}) .. f_{w-1}(n_{i+w-1}), n_j independent.
 *
 * Notation: each n_j is one of N points with weights; value[(n_i, .., n_{i+w-1})] is the product, the last index running
 * fastest. The law of the partial sum is kept for each state, the last w - 1 points: cells (edge_k, edge_{k+1}] with a
 * mass and an atom in each, at an edge where laws from above are asked for, else at the mean of the cell. A term moves
 * all atoms of a state; from above the mass of each is divided between the ends of its cell so that the mean is kept,
 * from below it is gathered with the others of the cell. Both orders are those of fp_positive_sums.h.
 *
 * Masses below FP_BANDED_LEAST are left out; their sum is returned.
 *
 * Rounding.  A mass or moment is a sum of at most N K positive terms for each step, K the number of cells: relative
 * errors of (N K + 16) u a step. */
#ifndef FP_BANDED_SUMS_H
#define FP_BANDED_SUMS_H

#include <stddef.h>
#include <string.h>

/* bound: proved - what is left out is returned */
#define FP_BANDED_LEAST 1e-290

/* One term. ``from`` and ``at`` are masses and atoms of all states, ``to`` gets masses and ``moment`` moments about the
 * left edge of each cell, used from below alone. ``rest`` is N^(w-2), or 0 for w = 1. */
static double fp_banded_step(ptrdiff_t points, ptrdiff_t states, ptrdiff_t rest, ptrdiff_t cells, const double *value,
                             const double *weight, const double *edge, int above, const double *from, const double *at,
                             double *to, double *moment)
{
    double lost = 0.0;
    memset(to, 0, (size_t)(states * cells) * sizeof(double));
    memset(moment, 0, (size_t)(states * cells) * sizeof(double));
    for (ptrdiff_t s = 0; s < states; s++)
        for (ptrdiff_t n = 0; n < points; n++) {
            const double y = value[s * points + n], w = weight[n];
            const ptrdiff_t row = (rest ? s % rest * points + n : 0) * cells;
            ptrdiff_t k = 0;
            for (ptrdiff_t j = 0; j < cells; j++) {
                const double m = from[s * cells + j] * w;
                if (m < FP_BANDED_LEAST) {
                    lost += m;
                    continue;
                }
                const double v = at[s * cells + j] + y;
                while (k < cells - 2 && v > edge[k + 1])
                    k++;
                if (above) {
                    const double width = edge[k + 1] - edge[k];
                    to[row + k] += m * ((edge[k + 1] - v) / width);
                    to[row + k + 1] += m * ((v - edge[k]) / width);
                } else {
                    to[row + k] += m;
                    moment[row + k] += m * (v - edge[k]);
                }
            }
        }
    return lost;
}

/* All bins; ``mass`` and ``at`` hold the law on entry, all states' sums being 0, and on return. Work has the size of
 * two masses. Each state has as many entries as there are edges. */
static double fp_banded_sum(ptrdiff_t points, ptrdiff_t states, ptrdiff_t rest, ptrdiff_t bins, ptrdiff_t edges,
                            const double *value, const double *weight, const double *edge, int above, double *mass,
                            double *at, double *work)
{
    double lost = 0.0, *to = work, *moment = work + states * edges;
    for (ptrdiff_t i = 0; i < bins; i++) {
        lost += fp_banded_step(points, states, rest, edges, value, weight, edge, above, mass, at, to, moment);
        memcpy(mass, to, (size_t)(states * edges) * sizeof(double));
        for (ptrdiff_t s = 0; s < states; s++)
            for (ptrdiff_t k = 0; k < edges; k++) {
                const ptrdiff_t j = s * edges + k;
                at[j] = edge[k];
                if (!above && mass[j] > 0.0) {
                    const double mean = edge[k] + moment[j] / mass[j];
                    at[j] = k < edges - 1 && mean > edge[k + 1] ? edge[k + 1] : mean;
                }
            }
    }
    return lost;
}

#endif
