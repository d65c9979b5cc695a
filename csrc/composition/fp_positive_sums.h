/* Sums of independent positive variables with atoms, gathered into cells: every operation adds positive numbers.
 *
 * Notation: atoms a_i < a_{i+1} with masses, and b_j; cell k is (edge_k, edge_{k+1}], the last edge may be infinite and
 * no sum is at or below the first but those that equal it, which count to cell 0. For each cell the mass of the sums
 * in it and their moment about its left edge, sum of mass (s - edge_k), tell two laws: the one with an atom at the mean
 * of each cell lies below that of the sums in convex order, the one that divides each mass between the ends of its cell
 * so that the mean is kept lies above.
 *
 * Rounding.  A mass or moment is a sum of at most na terms, each of which is a sum of at most nb products: its relative
 * error is at most (na + nb + 8) u, but for that of the sums s themselves, relative to s, which is u. */
#ifndef FP_POSITIVE_SUMS_H
#define FP_POSITIVE_SUMS_H

#include <stddef.h>

/* Adds to mass and moment of each cell those of a_i + b_j.  If ``same``, b is a, and each pair is taken once. */
static void fp_sums_in_cells(ptrdiff_t na, const double *a, const double *a_mass, ptrdiff_t nb, const double *b,
                             const double *b_mass, int same, ptrdiff_t cells, const double *edge, double *mass,
                             double *moment)
{
    ptrdiff_t start = 0;
    for (ptrdiff_t i = 0; i < na; i++) {
        const double shift = a[i];
        ptrdiff_t j = same ? i : 0;
        if (j >= nb)
            break;
        while (start < cells - 1 && shift + b[j] > edge[start + 1])
            start++;
        ptrdiff_t k = start;
        double total = same ? 0.5 * b_mass[j] : b_mass[j], first = total * (shift + b[j] - edge[k]);
        for (j++; j < nb; j++) {
            const double s = shift + b[j];
            if (k < cells - 1 && s > edge[k + 1]) {
                const double scale = same ? 2.0 * a_mass[i] : a_mass[i];
                mass[k] += scale * total;
                moment[k] += scale * first;
                total = first = 0.0;
                do
                    k++;
                while (k < cells - 1 && s > edge[k + 1]);
            }
            total += b_mass[j];
            first += b_mass[j] * (s - edge[k]);
        }
        const double scale = same ? 2.0 * a_mass[i] : a_mass[i];
        mass[k] += scale * total;
        moment[k] += scale * first;
    }
}

/* E (a + b - level)^+ and E (level - a - b)^+ for each level. ``above[j]`` and ``excess[j]`` are the mass of b_j and
 * all larger atoms, and their moment about b_j; ``below[j]`` and ``deficit[j]`` the mass of b_j and all smaller ones,
 * and minus their moment about b_j. */
static void fp_sum_excesses(ptrdiff_t na, const double *a, const double *a_mass, ptrdiff_t nb, const double *b,
                            const double *above, const double *excess, const double *below, const double *deficit,
                            ptrdiff_t levels, const double *level, double *over, double *under)
{
    for (ptrdiff_t n = 0; n < levels; n++) {
        double call = 0.0, put = 0.0;
        ptrdiff_t next = nb; /* the least j with b_j > x */
        for (ptrdiff_t i = 0; i < na; i++) {
            const double x = level[n] - a[i];
            while (next > 0 && b[next - 1] > x)
                next--;
            if (next < nb)
                call += a_mass[i] * (excess[next] + above[next] * (b[next] - x));
            if (next > 0)
                put += a_mass[i] * (deficit[next - 1] + below[next - 1] * (x - b[next - 1]));
        }
        over[n] = call;
        under[n] = put;
    }
}

#endif
