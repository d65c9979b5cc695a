/* Sums and maxima over eight lanes; included once per instruction set. */

typedef long long FP_NAME(fp_lanes) __attribute__((vector_size(64)));

/* ((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7)) */
static inline double FP_NAME(fp_total)(fp_v8 a)
{
    fp_v8 half = a + __builtin_shuffle(a, (FP_NAME(fp_lanes)){4, 5, 6, 7, 0, 1, 2, 3});
    fp_v8 quarter = half + __builtin_shuffle(half, (FP_NAME(fp_lanes)){2, 3, 0, 1, 4, 5, 6, 7});
    return quarter[0] + quarter[1];
}

static inline fp_v8 FP_NAME(fp_larger)(fp_v8 a, fp_v8 b)
{
    fp_v8i more = b > a;
    return (fp_v8)((more & (fp_v8i)b) | (~more & (fp_v8i)a));
}

/* Largest entry of h[0 .. padded). */
static inline double FP_NAME(fp_peak)(const double *h, int padded)
{
    fp_v8 top = *(const fp_v8 *)h;
    for (int i = FP_LANES; i < padded; i += FP_LANES)
        top = FP_NAME(fp_larger)(top, *(const fp_v8 *)(h + i));
    top = FP_NAME(fp_larger)(top, __builtin_shuffle(top, (FP_NAME(fp_lanes)){4, 5, 6, 7, 0, 1, 2, 3}));
    top = FP_NAME(fp_larger)(top, __builtin_shuffle(top, (FP_NAME(fp_lanes)){2, 3, 0, 1, 4, 5, 6, 7}));
    return top[0] > top[1] ? top[0] : top[1];
}

static inline fp_v8 FP_NAME(fp_absolute)(fp_v8 a)
{
    return (fp_v8)((fp_v8i)a & 0x7fffffffffffffffLL);
}

#define FP_AT(array, i) (*(const fp_v8 *)((array) + (i)))
