/* Beliefs over all subsets of a given size of a pool, whose log likelihood is a sum over members and pairs of members.
 *
 * Notation: N records, subsets S of `size` members i_1 < i_2 < ...; l(S) = sum of linear[i] + sum over pairs of
 * pairwise[i, j].  Subsets are in lexicographic order; the prior is uniform.  A prefix i_1 ... i_s carries base =
 * l(prefix) and reach[k] = linear[k] + sum of pairwise[i, k], what each further member would add; the last two members
 * are a loop over rows, l = base + (reach[k] + pairwise[j, k]),  k = j + 1 ... N - 1. A task is a prefix and a range of
 * next members.  Both passes use the tiles of fp_posterior.h.  The posterior mass of a member is summed over at most
 * FP_SUBSET_ROWS rows in plain doubles and in two doubles from there on.
 */
#ifndef FP_SUBSET_POSTERIOR_H
#define FP_SUBSET_POSTERIOR_H

#include "posterior/fp_posterior.h"

#define FP_SUBSET_SIZE 12 /* largest number of members: no pool that has more of them can be enumerated */
#define FP_SUBSET_ROWS 64

typedef struct {
    ptrdiff_t pool;
    int size;
    const double *linear_terms, *pair_terms; /* (pool,), (pool, pool) row by row */
    double *next_terms;                   /* (size, pool): room */
    double *recent_mass; /* (pool,): mass of each member since the last flush; second pass */
    double *high, *low;              /* (pool,): flushed mass, in two doubles */
    double weight, evidence, rest; /* prior of a subset; log evidence in two doubles; second pass */
    ptrdiff_t rank, increases;           /* rank of the next subset; how often the largest t increased */
    int rows;                        /* rows since the last flush */
    fp_evidence_sums first;
    fp_largest_weights best;
    fp_divergence_sums second;
    fp_tile tile;
} fp_subset_enumeration;

#define FP_LOOPS "posterior/fp_subset_posterior_loops.h"
#include "common/fp_variants.h"

/* Enumerate all subsets that begin with the `depth` members of a prefix and continue with one of [start, stop), in
 * the first pass (1) or the second pass (2). */
typedef void (*fp_subset_posterior_kernel)(fp_subset_enumeration *s, int depth, const ptrdiff_t *prefix,
                                           ptrdiff_t start, ptrdiff_t stop, int pass);

static inline fp_subset_posterior_kernel fp_subset_posterior_select(void) { return FP_SELECT(fp_subset_posterior); }

#endif
