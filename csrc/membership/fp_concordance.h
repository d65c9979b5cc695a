/* The Mann-Whitney statistic in whole numbers: twice the number of pairs (member, non-member) in which the member has the
 * higher score, and once the number of pairs with equal scores.
 *
 * Non-members are distributed to buckets whose index is a non-decreasing function of the score, so that a member is
 * compared with the non-members of its own bucket alone: those of lower buckets are lower, those of higher buckets
 * higher.  Rounding cannot break the order: subtraction of a constant, multiplication by a positive one, 1 - 1/(1 + y)
 * step by step, and truncation are non-decreasing functions of doubles.  If scores crowd in few buckets of equal width,
 * the width grows with the distance from the median as for a Cauchy distribution of the same quartiles, in the logarithms
 * where quartiles of one sign are far apart.  If they crowd there too, the buckets are those between FP_SPLITTERS of the
 * scores themselves, sorted: the index is the number of these that are below.  Buckets with more than FP_SCANNED scores
 * are sorted and searched, so that a row never takes more than n log n steps. */
#ifndef FP_CONCORDANCE_H
#define FP_CONCORDANCE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/fp_dispatch.h"

/* bound: none - scores of a bucket that are compared one by one, and runs of the sort */
enum { FP_SCANNED = 16, FP_RUN = 8 };
/* bound: none - a power of 2; scores between two of them are few where there are some hundred scores */
enum { FP_SPLITTERS = 128 };

/* bound: none - scores compared at a time: two vectors of so many */
enum { FP_FOUR = 4 };
typedef double fp_four __attribute__((vector_size(32), aligned(8), may_alias));
typedef long long fp_four_counts __attribute__((vector_size(32), aligned(8), may_alias));
/* bound: none - scores whose quartiles stand for those of all, and the ratio of quartiles from which logarithms serve */
enum { FP_SAMPLED = 31, FP_LOGARITHMIC = 8 };

/* The median of scores, or of their logarithms, and the reciprocals of its distances to the quartiles. */
typedef struct {
    double centre, below, above;
    int logarithmic;
} fp_quartiles;

/* Scratch of one row of n scores: both groups, the buckets of their scores, and the ends of the buckets. */
typedef struct {
    double *members, *others, *sorted; /* n, n, n + 2 * FP_FOUR */
    int32_t *bucket;                   /* n */
    int64_t *start;                    /* buckets + 2, at least FP_SPLITTERS + 3 */
    ptrdiff_t buckets;                 /* at most 2^30 */
} fp_concordance_scratch;

/* Merge sort of n scores, with room for n more: runs of FP_RUN by insertion, then merges without branches on scores. */
static inline void fp_merge_sort(ptrdiff_t n, double *x, double *spare)
{
    for (ptrdiff_t begin = 0; begin < n; begin += FP_RUN) {
        const ptrdiff_t end = n - begin < FP_RUN ? n : begin + FP_RUN;
        for (ptrdiff_t i = begin + 1; i < end; i++) {
            const double moved = x[i];
            ptrdiff_t j = i;
            for (; j > begin && moved < x[j - 1]; j--)
                x[j] = x[j - 1];
            x[j] = moved;
        }
    }
    double *from = x, *to = spare;
    for (ptrdiff_t run = FP_RUN; run < n; run *= 2) {
        for (ptrdiff_t begin = 0; begin < n; begin += 2 * run) {
            const ptrdiff_t middle = n - begin < run ? n : begin + run;
            const ptrdiff_t end = n - begin < 2 * run ? n : begin + 2 * run;
            ptrdiff_t i = begin, j = middle, k = begin;
            while (i < middle && j < end) {
                const double one = from[i], other = from[j];
                const ptrdiff_t second = other < one;
                to[k++] = second ? other : one;
                i += 1 - second;
                j += second;
            }
            memcpy(to + k, from + i, (size_t)(middle - i) * sizeof *to);
            memcpy(to + k + (middle - i), from + j, (size_t)(end - j) * sizeof *to);
        }
        double *const full = to;
        to = from;
        from = full;
    }
    if (from != x)
        memcpy(x, from, (size_t)n * sizeof *x);
}

static inline int fp_ascending(ptrdiff_t n, const double *x)
{
    for (ptrdiff_t i = 1; i < n; i++)
        if (x[i] < x[i - 1])
            return 0;
    return 1;
}

/* The number of the n >= 1 ascending scores that are below v, or (`equal`) not above it. */
static inline ptrdiff_t fp_count_below(ptrdiff_t n, const double *x, double v, int equal)
{
    const double *low = x;
    while (n > 1) {
        const ptrdiff_t half = n / 2;
        low += (low[half - 1] < v) | (equal & (low[half - 1] == v)) ? half : 0;
        n -= half;
    }
    return low - x + ((*low < v) | (equal & (*low == v)));
}

/* The upper half of the bit pattern of a score that is not -0.0, as a whole number in the order of the scores. */
FP_INLINE double fp_upper_bits(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int32_t upper = (int32_t)(bits >> 32);
    return (double)(upper ^ ((upper >> 31) & INT32_MAX));
}

/* The quartiles of a sample of the n scores; 0 if they are equal, infinite, or too far apart for reciprocals. */
static inline int fp_quartiles_of(ptrdiff_t n, const double *x, fp_quartiles *q)
{
    double sample[FP_SAMPLED], spare[FP_SAMPLED];
    for (ptrdiff_t k = 0; k < FP_SAMPLED; k++)
        sample[k] = x[(ptrdiff_t)((double)k * (double)n / FP_SAMPLED)] + 0.0;
    fp_merge_sort(FP_SAMPLED, sample, spare);
    double low = sample[FP_SAMPLED / 4], middle = sample[FP_SAMPLED / 2], high = sample[3 * FP_SAMPLED / 4];
    q->logarithmic = low > 0.0 ? low < high / FP_LOGARITHMIC : high < 0.0 && high > low / FP_LOGARITHMIC;
    if (q->logarithmic) {
        low = fp_upper_bits(low);
        middle = fp_upper_bits(middle);
        high = fp_upper_bits(high);
    }
    q->centre = middle;
    q->below = 1.0 / (middle > low ? middle - low : high - low);
    q->above = 1.0 / (high > middle ? high - middle : high - low);
    const double infinite = __builtin_inf();
    return q->below > 0.0 && q->below < infinite && q->above > 0.0 && q->above < infinite;
}

#define FP_LOOPS "membership/fp_concordance_loops.h"
#include "common/fp_variants.h"

/* The statistic of n scores without NaN and their membership (0 or 1); `count` is the number of members. */
typedef int64_t fp_concordance_kernel(ptrdiff_t n, const double *scores, const uint8_t *membership,
                                      const fp_concordance_scratch *scratch, int64_t *count);

static inline fp_concordance_kernel *fp_concordance_select(void) { return FP_SELECT(fp_concordance); }

#endif
