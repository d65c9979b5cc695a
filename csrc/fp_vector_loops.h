/* One vector of doubles, as wide as the instruction set: fp_v with FP_W lanes; no include guard, part of a room.
 *
 * Arithmetic is written with the operators of the vector extension; what they lack is here.  FP_FMA is one rounding
 * where the machine has it and two on the baseline: rooms built on it give the same bits for any cut and any number of
 * threads on one instruction set, and agree within their stated accuracy between instruction sets.
 */
#undef fp_v
#undef fp_vi
#undef fp_vu
#undef FP_W
#undef FP_FMA
#undef FP_MAX
#undef FP_FROM
#undef FP_ANY_FROM
#define FP_LEVEL_baseline 0
#define FP_LEVEL_avx2 1
#define FP_LEVEL_avx512 2
#define fp_v FP_NAME(fp_vector)
#define fp_vi FP_NAME(fp_vector_of_integers)
#define fp_vu FP_NAME(fp_vector_anywhere)

#if FP_CAT(FP_LEVEL, FP_ISA) == 2
#define FP_W 8
#elif FP_CAT(FP_LEVEL, FP_ISA) == 1
#define FP_W 4
#else
#define FP_W 2
#endif

typedef double fp_v __attribute__((vector_size(8 * FP_W), may_alias));
typedef double fp_vu __attribute__((vector_size(8 * FP_W), may_alias, aligned(8)));
typedef int64_t fp_vi __attribute__((vector_size(8 * FP_W), may_alias));

/* FP_FMA(a, b, c) = a b + c;  FP_MAX(a, b): b where a is NaN
 * FP_FROM(y, low, v) = v where y >= low, else 0;  FP_ANY_FROM(y, low): is any y >= low? */
#if FP_CAT(FP_LEVEL, FP_ISA) == 2
#define FP_FMA(a, b, c) ((fp_v)_mm512_fmadd_pd(a, b, c))
#define FP_MAX(a, b) ((fp_v)_mm512_max_pd(a, b))
#define FP_FROM(y, low, v) ((fp_v)_mm512_maskz_mov_pd(_mm512_cmp_pd_mask(y, low, _CMP_GE_OQ), v))
#define FP_ANY_FROM(y, low) (_mm512_cmp_pd_mask(y, low, _CMP_GE_OQ) != 0)
#elif FP_CAT(FP_LEVEL, FP_ISA) == 1
#define FP_FMA(a, b, c) ((fp_v)_mm256_fmadd_pd(a, b, c))
#define FP_MAX(a, b) ((fp_v)_mm256_max_pd(a, b))
#define FP_FROM(y, low, v) ((fp_v)((fp_vi)(v) & (fp_vi)((y) >= (low))))
#define FP_ANY_FROM(y, low) (_mm256_movemask_pd((fp_v)((y) >= (low))) != 0)
#else
#define FP_FMA(a, b, c) ((a) * (b) + (c))
#define FP_FROM(y, low, v) ((fp_v)((fp_vi)(v) & (fp_vi)((y) >= (low))))
#define FP_ANY_FROM(y, low) FP_NAME(fp_any)((fp_vi)((y) >= (low)))
#define FP_MAX(a, b) FP_NAME(fp_larger)(a, b)
FP_INLINE int FP_NAME(fp_any)(fp_vi mask)
{
    return (mask[0] | mask[1]) != 0;
}

FP_INLINE fp_v FP_NAME(fp_larger)(fp_v a, fp_v b)
{
    const fp_vi first = a > b;
    return (fp_v)(((fp_vi)a & first) | ((fp_vi)b & ~first));
}
#endif

FP_INLINE fp_v FP_NAME(fp_all)(double x)
{
    return x - (fp_v){0};
}

FP_INLINE fp_v FP_NAME(fp_load)(const double *p)
{
    return *(const fp_vu *)p;
}

FP_INLINE void FP_NAME(fp_store)(double *p, fp_v x)
{
    *(fp_vu *)p = x;
}
