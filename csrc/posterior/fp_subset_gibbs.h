/* Gibbs steps for the posterior over all subsets of a given size of a pool, and exchanges between temperatures.
 *
 * Notation: N records, subsets S of `size` members, l(S) = sum of linear[i] + sum over pairs of pairs[i, j], where pairs
 * is symmetric with a diagonal of 0; a replica at inverse temperature t has the density e^(t l(S)). With
 *     sum[k] = linear[k] + sum over members i of pairs[i, k],    l(S) = sum over members of (linear[i] + sum[i]) / 2.
 * A step takes a member away and draws the next one from all records that are no member, with the probabilities that
 * these have given the other members, proportional to e^(t sum[k]): a Gibbs step. A sweep does so for each member in
 * turn; after it neighbouring temperatures offer to exchange their states. The probabilities of the steps of the first
 * replica are summed: their means have a smaller variance than the visits (Rao and Blackwell).
 *
 * Sums are computed anew at the start of a run, so that roundings do not gather. Those over records run in eight lanes
 * over blocks, and exponentials use no FMA: the same bits on every instruction set.
 */
#ifndef FP_SUBSET_GIBBS_H
#define FP_SUBSET_GIBBS_H

#include <stddef.h>
#include <stdint.h>

#include "common/fp_lanes.h"
#include "common/fp_stop_token.h"
#include "sampling/fp_random_stream.h"
#include "special/fp_elementary.h"

#define FP_SUBSET_GIBBS_BLOCK 256 /* records whose weights are summed together */

typedef struct {
    ptrdiff_t pool, size, replicas;
    const double *linear, *pairs; /* (pool,), (pool, pool) */
    const double *temperature;    /* (replicas,): inverse, the first one 1 */
} fp_subset_gibbs_model;

typedef struct {
    int32_t *members; /* (size,) */
    double *sum;      /* (pool,) */
    double l;
} fp_subset_gibbs_replica;

typedef struct {
    double *probability, *visits; /* (pool,): of the first replica, sums over steps, and over sweeps */
    double *l;                    /* (sweeps, replicas) */
    double *exchanged;            /* (replicas,): how often a replica took the state of the one before */
    int32_t *best;                /* (size,): the subset of the largest l, which is best_l */
    double best_l;
} fp_subset_gibbs_report;

/* The next word of a stream; `buffer` holds those that are left of a group of eight. */
typedef struct {
    fp_stream stream;
    uint64_t buffer[FP_LANES];
    int next;
} fp_subset_gibbs_words;

FP_INLINE double fp_subset_gibbs_next(fp_subset_gibbs_words *words)
{
    if (words->next == FP_LANES) {
        fp_stream_next(&words->stream, words->buffer);
        words->next = 0;
    }
    return fp_stream_uniform(words->buffer[words->next++]);
}

#define FP_LOOPS "posterior/fp_subset_gibbs_loops.h"
#include "common/fp_variants.h"

typedef int (*fp_subset_gibbs_kernel)(const fp_subset_gibbs_model *model, fp_subset_gibbs_replica *replica,
                                      const uint64_t *words, ptrdiff_t sweeps, double *work,
                                      fp_subset_gibbs_report *report, fp_stop_token *stop);

static inline fp_subset_gibbs_kernel fp_subset_gibbs_select(void) { return FP_SELECT(fp_subset_gibbs_run); }

#endif
