/* Loops of fp_concordance.h; no include guard, included once per instruction set. */

#define FP_LOWEST_LANES 8

/* The range of the finite scores; 0 and 0 if there is none. */
static void FP_NAME(fp_finite_range)(ptrdiff_t n, const double *x, double *lowest, double *highest)
{
    const double infinite = __builtin_inf();
    double low[FP_LOWEST_LANES], high[FP_LOWEST_LANES];
    for (int l = 0; l < FP_LOWEST_LANES; l++) {
        low[l] = infinite;
        high[l] = -infinite;
    }
    ptrdiff_t i = 0;
    for (; i + FP_LOWEST_LANES <= n; i += FP_LOWEST_LANES)
        for (int l = 0; l < FP_LOWEST_LANES; l++) {
            const double v = x[i + l], below = v > -infinite ? v : infinite, above = v < infinite ? v : -infinite;
            low[l] = below < low[l] ? below : low[l];
            high[l] = above > high[l] ? above : high[l];
        }
    for (; i < n; i++) {
        const double v = x[i];
        low[0] = v > -infinite && v < low[0] ? v : low[0];
        high[0] = v < infinite && v > high[0] ? v : high[0];
    }
    for (int l = 1; l < FP_LOWEST_LANES; l++) {
        low[0] = low[l] < low[0] ? low[l] : low[0];
        high[0] = high[l] > high[0] ? high[l] : high[0];
    }
    *lowest = low[0] < infinite && high[0] > -infinite ? low[0] : 0.0;
    *highest = low[0] < infinite && high[0] > -infinite ? high[0] : 0.0;
}

/* The bucket of each score: 0 for -inf and where the scale is 0, buckets - 1 for +inf. */
static void FP_NAME(fp_bucket_of)(ptrdiff_t n, const double *x, double lowest, double scale, double last,
                                  int32_t *bucket)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        double v = (0.5 * x[i] - lowest) * scale;
        v = v > 0.0 ? v : 0.0; /* also where 0 times infinity is NaN */
        v = v < last ? v : last;
        bucket[i] = (int32_t)v;
    }
}

/* The bucket of each score by its distance y from the median, in distances of quartiles: y / (1 + |y|) fills [-1, 1]. */
static void FP_NAME(fp_bucket_by_quartiles)(ptrdiff_t n, const double *x, const fp_quartiles *q, double last,
                                            int32_t *bucket)
{
    const double centre = q->centre, below = q->below, above = q->above, half = 0.5 * last;
    const int logarithmic = q->logarithmic;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double v = x[i] + 0.0, distance = (logarithmic ? fp_upper_bits(v) : v) - centre; /* -0.0 becomes 0.0 */
        const double y = distance * (distance < 0.0 ? below : above);
        bucket[i] = (int32_t)((1.0 + __builtin_copysign(1.0 - 1.0 / (1.0 + __builtin_fabs(y)), y)) * half);
    }
}

/* The number of splitters, ascending, that are below each score. */
static void FP_NAME(fp_bucket_between)(ptrdiff_t n, const double *x, const double *splitters, int32_t *bucket)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double v = x[i];
        int64_t below = 0;
        for (int64_t half = FP_SPLITTERS / 2; half > 0; half /= 2)
            below += splitters[below + half - 1] < v ? half : 0;
        bucket[i] = (int32_t)(below + (splitters[below] < v));
    }
}

/* Distribute scores to their buckets: start[k] is then the first position of bucket k; the size of the largest bucket. */
static int64_t FP_NAME(fp_distributed)(ptrdiff_t n, const double *x, const int32_t *bucket, ptrdiff_t buckets,
                                       int64_t *start, double *sorted)
{
    int64_t largest = 0;
    for (ptrdiff_t k = 0; k < buckets + 2; k++)
        start[k] = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        start[bucket[i] + 2]++;
    for (ptrdiff_t k = 2; k < buckets + 2; k++) {
        largest = start[k] > largest ? start[k] : largest;
        start[k] += start[k - 1];
    }
    for (ptrdiff_t i = 0; i < n; i++)
        sorted[start[bucket[i] + 1]++] = x[i];
    return largest;
}

/* Distribute scores; whether a bucket has many, not all ascending as equal scores are. */
static int FP_NAME(fp_is_crowded)(ptrdiff_t n, const double *x, const int32_t *bucket, ptrdiff_t buckets,
                                  int64_t *start, double *sorted)
{
    if (FP_NAME(fp_distributed)(n, x, bucket, buckets, start, sorted) <= FP_SCANNED)
        return 0;
    for (ptrdiff_t k = 0; k < buckets; k++)
        if (start[k + 1] - start[k] > FP_SCANNED && !fp_ascending(start[k + 1] - start[k], sorted + start[k]))
            return 1;
    return 0;
}

static int64_t FP_NAME(fp_concordance)(ptrdiff_t n, const double *scores, const uint8_t *membership,
                                       const fp_concordance_scratch *scratch, int64_t *count)
{
    double *members = scratch->members, *others = scratch->others, *sorted = scratch->sorted;
    int32_t *bucket = scratch->bucket;
    int64_t *start = scratch->start;
    ptrdiff_t buckets = scratch->buckets, inside = 0, outside = 0;
    for (ptrdiff_t i = 0; i < n; i++) { /* both stores always, the counters decide which one stays */
        const double v = scores[i];
        const ptrdiff_t is_member = membership[i] != 0;
        members[inside] = v;
        others[outside] = v;
        inside += is_member;
        outside += 1 - is_member;
    }
    *count = inside;
    double lowest, highest;
    FP_NAME(fp_finite_range)(n, scores, &lowest, &highest);
    lowest *= 0.5; /* halves, whose difference does not overflow */
    const double width = 0.5 * highest - lowest, last = (double)(buckets - 1);
    double scale = width > 0.0 ? last / width : 0.0;
    scale = scale < __builtin_inf() ? scale : 0.0;

    FP_NAME(fp_bucket_of)(outside, others, lowest, scale, last, bucket);
    int crowded = FP_NAME(fp_is_crowded)(outside, others, bucket, buckets, start, sorted);
    fp_quartiles quartiles;
    const int by_quartiles = crowded && fp_quartiles_of(outside, others, &quartiles);
    if (by_quartiles) {
        FP_NAME(fp_bucket_by_quartiles)(outside, others, &quartiles, last, bucket);
        crowded = FP_NAME(fp_is_crowded)(outside, others, bucket, buckets, start, sorted);
    }
    if (crowded) {
        double splitters[FP_SPLITTERS], spare[FP_SPLITTERS];
        for (ptrdiff_t k = 0; k < FP_SPLITTERS; k++)
            splitters[k] = others[(ptrdiff_t)((double)k * (double)outside / FP_SPLITTERS)];
        fp_merge_sort(FP_SPLITTERS, splitters, spare);
        buckets = FP_SPLITTERS + 1;
        FP_NAME(fp_bucket_between)(outside, others, splitters, bucket);
        if (FP_NAME(fp_distributed)(outside, others, bucket, buckets, start, sorted) > FP_SCANNED)
            for (ptrdiff_t k = 0; k < buckets; k++) {
                const int64_t size = start[k + 1] - start[k];
                if (size > FP_SCANNED && !fp_ascending(size, sorted + start[k]))
                    fp_merge_sort(size, sorted + start[k], others);
            }
        FP_NAME(fp_bucket_between)(inside, members, splitters, bucket);
    } else if (by_quartiles) {
        FP_NAME(fp_bucket_by_quartiles)(inside, members, &quartiles, last, bucket);
    } else {
        FP_NAME(fp_bucket_of)(inside, members, lowest, scale, last, bucket);
    }
    for (int k = 0; k < 2 * FP_FOUR; k++)
        sorted[outside + k] = __builtin_nan("");
    int64_t twice = 0;
    fp_four_counts minus = {0}; /* a comparison that holds is -1 */
    for (ptrdiff_t i = 0; i < inside; i++) {
        const double v = members[i];
        const ptrdiff_t begin = start[bucket[i]], end = start[bucket[i] + 1];
        twice += 2 * begin;
        if (end - begin > FP_SCANNED) {
            const ptrdiff_t below = fp_count_below(end - begin, sorted + begin, v, 0);
            const int tied = below < end - begin && sorted[begin + below] == v;
            twice += below + (tied ? fp_count_below(end - begin, sorted + begin, v, 1) : below);
            continue;
        }
        const fp_four wide = {v, v, v, v};
        for (ptrdiff_t j = begin; j < end; j += 2 * FP_FOUR) { /* what follows the bucket is higher, or NaN: it adds 0 */
            const fp_four one = *(const fp_four *)(sorted + j), next = *(const fp_four *)(sorted + j + FP_FOUR);
            minus += (one < wide) + (one <= wide) + (next < wide) + (next <= wide);
        }
    }
    for (int k = 0; k < FP_FOUR; k++)
        twice -= minus[k];
    return twice;
}

#undef FP_LOWEST_LANES
