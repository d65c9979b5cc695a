/* Beliefs over all subsets of a given size of a pool, whose log likelihood is a sum over members and pairs of members.
 *
 * Notation: N records, subsets S of `size` members i_1 < i_2 < ...; l(S) = sum of linear[i] + sum over pairs of
 * pairwise[i, j].  Subsets are in lexicographic order, and the prior is uniform over them.  A prefix i_1 ... i_s carries
 * base = l(prefix) and reach[k] = linear[k] + sum of pairwise[i, k], what each further member would add; the last two
 * members are a loop over rows,  l = base + reach[j] + (reach[k] + pairwise[j, k]),  k = j + 1 ... N - 1.
 * A task is a range of first members.  Both passes use the tiles of fp_beliefs.h.
 */
#ifndef FP_SUBSETS_H
#define FP_SUBSETS_H

#include "fp_beliefs.h"

#define FP_SUBSETS_SIZE 12 /* members at most: more than can be enumerated from any pool that has them */

typedef struct {
    ptrdiff_t pool;
    int size;
    const double *linear, *pairwise; /* (pool,), (pool, pool) row by row */
    double *reach;                   /* (size, pool): room */
    double *inclusion;               /* (pool,): posterior mass of the subsets with each member; second pass */
    double weight, high, low;        /* prior of a subset, log evidence; second pass */
    ptrdiff_t rank;                  /* of the next subset */
    fp_first first;
    fp_best best;
    fp_second second;
    fp_tile tile;
} fp_subsets;

#define FP_LOOPS "fp_subsets_loops.h"
#include "fp_variants.h"

/* the walk over first members from `start` to `stop`; which: first pass 1, second pass 2 */
typedef void (*fp_subsets_call)(fp_subsets *s, ptrdiff_t start, ptrdiff_t stop, int which);

static inline fp_subsets_call fp_subsets_pick(void)
{
#if FP_HAVE_VARIANTS
    if (fp_isa() == FP_ISA_AVX512)
        return fp_subsets_walk_avx512;
    if (fp_isa() == FP_ISA_AVX2)
        return fp_subsets_walk_avx2;
#endif
    return fp_subsets_walk_baseline;
}

#endif
