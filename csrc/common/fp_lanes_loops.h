/* Sums and maxima over eight lanes; no include guard, included once per instruction set. */

typedef long long FP_NAME(fp_lane_indices) __attribute__((vector_size(64)));

/* Sum of eight lanes in the order of fp_lane_sum. */
static inline double FP_NAME(fp_v8_sum)(fp_v8 a)
{
    fp_v8 half = a + __builtin_shuffle(a, (FP_NAME(fp_lane_indices)){4, 5, 6, 7, 0, 1, 2, 3});
    fp_v8 quarter = half + __builtin_shuffle(half, (FP_NAME(fp_lane_indices)){2, 3, 0, 1, 4, 5, 6, 7});
    return quarter[0] + quarter[1];
}

/* Sum of n terms: lane i % 8 takes term i. */
static inline double FP_NAME(fp_ordered_sum)(ptrdiff_t n, const double *terms)
{
    double lane[FP_LANES] = {0};
    ptrdiff_t i = 0;
    for (; i + FP_LANES <= n; i += FP_LANES)
        for (int j = 0; j < FP_LANES; j++)
            lane[j] += terms[i + j];
    for (int j = 0; i + j < n; j++)
        lane[j] += terms[i + j];
    return fp_lane_sum(lane);
}

static inline fp_v8 FP_NAME(fp_v8_max)(fp_v8 a, fp_v8 b)
{
    fp_v8i larger = b > a;
    return (fp_v8)((larger & (fp_v8i)b) | (~larger & (fp_v8i)a));
}

/* The largest of n terms, n a multiple of FP_LANES. */
static inline double FP_NAME(fp_max_of)(const double *terms, int n)
{
    fp_v8 top = *(const fp_v8 *)terms;
    for (int i = FP_LANES; i < n; i += FP_LANES)
        top = FP_NAME(fp_v8_max)(top, *(const fp_v8 *)(terms + i));
    top = FP_NAME(fp_v8_max)(top, __builtin_shuffle(top, (FP_NAME(fp_lane_indices)){4, 5, 6, 7, 0, 1, 2, 3}));
    top = FP_NAME(fp_v8_max)(top, __builtin_shuffle(top, (FP_NAME(fp_lane_indices)){2, 3, 0, 1, 4, 5, 6, 7}));
    return top[0] > top[1] ? top[0] : top[1];
}

static inline fp_v8 FP_NAME(fp_v8_abs)(fp_v8 a)
{
    return (fp_v8)((fp_v8i)a & 0x7fffffffffffffffLL);
}

#define FP_AT(array, i) (*(const fp_v8 *)((array) + (i)))
